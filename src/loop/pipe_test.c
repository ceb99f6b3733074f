/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of hf_reader over real pipes: bytes, end of file, pause, drain, and destroy from inside the
 * callback. */
#include "harness/test.h"
#include "loop/pipe.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bench {
	struct hf_loop *loop;
	struct hf_reader *reader;
	int write_fd;
	struct hf_strbuf got;
	unsigned ends;
	int read_error;
	bool pause_on_data, destroy_on_data, destroy_on_end;
};

static void collect_data(void *arg, const char *bytes, size_t len, int read_error)
{
	struct bench *bench = arg;

	assert_true(len <= HF_PIPE_READ_MAX);
	hf_strbuf_add(&bench->got, bytes, len);
	if (len == 0) {
		bench->ends++;
		bench->read_error = read_error;
	}
	if (bench->pause_on_data)
		hf_reader_pause(bench->reader);
	if (len > 0 ? bench->destroy_on_data : bench->destroy_on_end)
		bench->reader = hf_reader_destroy(bench->reader);
}

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));
	struct hf_error err = {0};
	int fds[2];

	assert_ok(hf_loop_create(&bench->loop, &err), &err);
	hf_strbuf_init(&bench->got, 1 << 20);
	assert_ok(hf_pipe_make(fds, &err), &err);
	assert_true((fcntl(fds[0], F_GETFD) & FD_CLOEXEC) && (fcntl(fds[1], F_GETFD) & FD_CLOEXEC));
	assert_true((fcntl(fds[0], F_GETFL) & O_NONBLOCK) &&
		    !(fcntl(fds[1], F_GETFL) & O_NONBLOCK));
	bench->write_fd = fds[1];
	assert_ok(hf_reader_create(bench->loop, fds[0], collect_data, bench, &bench->reader, &err),
		  &err);
	*state = bench;
	return 0;
}

static void close_write(struct bench *bench)
{
	if (bench->write_fd >= 0)
		close(bench->write_fd);
	bench->write_fd = -1;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_reader_destroy(bench->reader);
	close_write(bench);
	hf_loop_destroy(bench->loop);
	hf_strbuf_release(&bench->got);
	free(bench);
	return 0;
}

static void write_text(struct bench *bench, const char *text)
{
	assert_int_equal(write(bench->write_fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void bytes_come_and_then_one_end(void **state)
{
	struct bench *bench = *state;

	write_text(bench, "one");
	write_text(bench, "two");
	close_write(bench);
	/* hf_loop_run returns without a stop, because after the end of file no fd is watched. */
	hf_loop_run(bench->loop);
	assert_string_equal(bench->got.data, "onetwo");
	assert_int_equal(bench->ends, 1);
	assert_int_equal(bench->read_error, 0);
	hf_reader_drain(bench->reader); /* a drain after the end of file has no effect */
	hf_reader_resume(bench->reader);
	assert_int_equal(bench->ends, 1);
}

static void a_paused_reader_leaves_the_bytes_in_the_pipe(void **state)
{
	struct bench *bench = *state;

	bench->pause_on_data = true;
	write_text(bench, "first");
	hf_loop_run(bench->loop);
	assert_string_equal(bench->got.data, "first");
	write_text(bench, "second");
	hf_loop_run(bench->loop); /* a paused reader watches no fd */
	hf_reader_drain(bench->reader);
	assert_string_equal(bench->got.data, "first");
	hf_reader_resume(bench->reader);
	hf_loop_run(bench->loop);
	assert_string_equal(bench->got.data, "firstsecond");
}

static void drain_hands_over_what_is_there_without_the_loop(void **state)
{
	struct bench *bench = *state;

	hf_reader_drain(bench->reader);
	assert_int_equal(bench->got.len, 0);
	write_text(bench, "here");
	hf_reader_drain(bench->reader);
	assert_string_equal(bench->got.data, "here");
	assert_int_equal(bench->ends, 0);
	close_write(bench);
	hf_reader_drain(bench->reader);
	assert_int_equal(bench->ends, 1);
}

static void a_whole_pipe_is_drained(void **state)
{
	struct bench *bench = *state;
	char block[1024];
	size_t sent = 0;

	memset(block, 'x', sizeof(block));
	assert_int_equal(fcntl(bench->write_fd, F_SETFL, O_NONBLOCK), 0);
	for (ssize_t n; (n = write(bench->write_fd, block, sizeof(block))) > 0;)
		sent += (size_t)n;
	assert_true(sent > HF_PIPE_READ_MAX);
	hf_reader_drain(bench->reader);
	assert_int_equal(bench->got.len, sent);
}

static void a_reader_may_be_destroyed_in_its_callback(void **state)
{
	struct bench *bench = *state;

	bench->destroy_on_data = true;
	write_text(bench, "x");
	hf_reader_drain(bench->reader);
	assert_null(bench->reader);
	hf_loop_run(bench->loop);
}

static void a_reader_may_be_destroyed_at_its_end(void **state)
{
	struct bench *bench = *state;

	bench->destroy_on_end = true;
	close_write(bench);
	hf_loop_run(bench->loop);
	assert_null(bench->reader);
	assert_int_equal(bench->ends, 1);
}

static void an_fd_that_cannot_be_watched_stays_the_callers(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	struct hf_reader *reader = NULL;
	struct hf_loop *loop = hf_loop_create_virtual(0);

	assert_code(hf_reader_create(loop, bench->write_fd, collect_data, bench, &reader, &err),
		    HF_E_UNSUPPORTED);
	assert_true(fcntl(bench->write_fd, F_GETFD) >= 0);
	hf_loop_destroy(loop);
	assert_null(hf_reader_destroy(NULL));
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(bytes_come_and_then_one_end),
		UNIT(a_paused_reader_leaves_the_bytes_in_the_pipe),
		UNIT(drain_hands_over_what_is_there_without_the_loop),
		UNIT(a_whole_pipe_is_drained),
		UNIT(a_reader_may_be_destroyed_in_its_callback),
		UNIT(a_reader_may_be_destroyed_at_its_end),
		UNIT(an_fd_that_cannot_be_watched_stays_the_callers),
	};
	return cmocka_run_group_tests_name("pipe", tests, NULL, NULL);
}
