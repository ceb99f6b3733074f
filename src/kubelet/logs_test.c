/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/node.h"
#include "kubelet/runtime/shim_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/runtime/shim.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tests how a shim writes logs, and how the kubelet reads them. */

/* --- writing, without a shim --- */

struct sink_test {
	char dir[64];
	int dir_fd;
	struct hf_log_sink *sink;
};

static void open_sink(struct sink_test *t, int64_t bytes_max, int files_max)
{
	struct hf_error err;

	(void)snprintf(t->dir, sizeof(t->dir), "/tmp/hf-logs-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	t->dir_fd = open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	t->sink = hf_xmalloc(sizeof(*t->sink));
	assert_ok(hf_log_sink_open(t->sink, t->dir_fd, "c.0.log", bytes_max, files_max, &err),
		  &err);
}

static void close_sink(struct sink_test *t)
{
	struct hf_error err;

	hf_log_sink_close(t->sink, 0);
	free(t->sink);
	(void)close(t->dir_fd);
	assert_ok(hf_fs_remove_tree(t->dir, &err), &err);
}

static void add(struct sink_test *t, int stream, const char *text)
{
	hf_log_sink_add(t->sink, stream, text, strlen(text), 1700000000 * HF_SECOND);
}

static void assert_log(struct sink_test *t, const char *name, const char *expected)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", t->dir, name);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)4 << 20);
	struct hf_error err;

	assert_ok(hf_fs_read(path, &text, &err), &err);
	assert_string_equal(text.data, expected);
}

#define AT "2023-11-14T22:13:20.000000Z "

static void lines_get_a_time_and_their_stream(void **state)
{
	struct sink_test t;

	open_sink(&t, 1 << 20, 3);
	add(&t, 0, "one\ntwo\n");
	add(&t, 1, "oops\n");
	add(&t, 0, "half ");
	add(&t, 1, "between\n");
	add(&t, 0, "a line\n\n");
	add(&t, 0, "no end");
	hf_log_sink_close(t.sink, 1700000000 * HF_SECOND);
	assert_log(&t, "c.0.log",
		   AT "stdout F one\n" AT "stdout F two\n" AT "stderr F oops\n" AT
		      "stderr F between\n" AT "stdout F half a line\n" AT "stdout F \n" AT
		      "stdout P no end\n");
	close_sink(&t);
}

static void a_progress_bar_is_seen_before_its_line_ends(void **state)
{
	struct sink_test t;

	open_sink(&t, 1 << 20, 3);
	add(&t, 1, "\r 10%");
	add(&t, 0, "between\n");
	add(&t, 1, "\r 20%");
	add(&t, 1, "\r100%\n");
	add(&t, 0, "a line of Windows\r");
	add(&t, 0, "\n");
	assert_log(&t, "c.0.log",
		   AT "stderr P \r\n" AT "stdout F between\n" AT "stderr P  10%\r\n" AT
		      "stderr F  20%\r100%\n" AT "stdout F a line of Windows\r\n");
	close_sink(&t);
}

static void long_lines_come_in_parts(void **state)
{
	HF_AUTO_STRBUF expected = HF_STRBUF_INIT((size_t)1 << 20);
	HF_AUTO_STRBUF line = HF_STRBUF_INIT((size_t)1 << 20);
	struct sink_test t;

	open_sink(&t, 1 << 20, 3);
	for (size_t i = 0; i < HF_LOG_LINE_MAX; i++)
		hf_strbuf_addch(&line, 'x');
	hf_strbuf_addf(&expected, AT "stdout P %s\n" AT "stdout P %s\n" AT "stdout F x\n",
		       line.data, line.data);
	add(&t, 0, line.data);
	add(&t, 0, line.data);
	add(&t, 0, "x\n");
	assert_log(&t, "c.0.log", expected.data);
	close_sink(&t);
}

static void old_parts_are_kept_up_to_their_number(void **state)
{
	struct hf_kubelet_log_extent extent;
	struct sink_test t;
	struct stat st;
	char path[128];

	open_sink(&t, 100, 3);
	add(&t, 0, "1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
	add(&t, 0, "2 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
	add(&t, 0, "3 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
	add(&t, 0, "4 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
	assert_log(&t, "c.0.log", AT "stdout F 4 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
	assert_log(&t, "c.0.log.1", AT "stdout F 3 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
	assert_log(&t, "c.0.log.2", AT "stdout F 2 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
	assert_int_equal(fstatat(t.dir_fd, "c.0.log.3", &st, 0), -1);
	/* The first part had 74 bytes. */
	assert_log(&t, "c.0.log.dropped", "74");
	(void)snprintf(path, sizeof(path), "%s/c.0.log", t.dir);
	hf_kubelet_log_extent(path, &extent);
	assert_int_equal(extent.parts, 3);
	assert_int_equal(extent.dropped, 74);
	close_sink(&t);
}

static void what_a_full_disk_cost_is_said_once_there_is_room(void **state)
{
	struct sink_test t;
	int good;

	open_sink(&t, 1 << 20, 3);
	add(&t, 0, "before\n");
	good = t.sink->fd;
	t.sink->fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	add(&t, 0, "lost one\n");
	add(&t, 0, "lost two\n");
	(void)close(t.sink->fd);
	t.sink->fd = good;
	add(&t, 0, "after\n");
	assert_log(&t, "c.0.log",
		   AT "stdout F before\n" AT
		      "stderr F holdfast: 18 bytes of output could not be written here\n" AT
		      "stdout F after\n");
	close_sink(&t);
}

static bool keep_lines(void *arg, const char *lines, size_t len)
{
	hf_strbuf_add(arg, lines, len);
	return true;
}

static void lines_that_cannot_be_written_are_passed_to_the_client(void **state)
{
	HF_AUTO_STRBUF got = HF_STRBUF_INIT(4096);
	struct sink_test t;
	int good;

	open_sink(&t, 1 << 20, 3);
	t.sink->spill = keep_lines;
	t.sink->spill_arg = &got;
	add(&t, 0, "before\n");
	good = t.sink->fd;
	t.sink->fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	add(&t, 0, "lost one\nlost two\nha");
	add(&t, 0, "lf\n");
	(void)close(t.sink->fd);
	t.sink->fd = good;
	add(&t, 0, "after\n");
	assert_string_equal(got.data,
			    AT "stdout F lost one\n" AT "stdout F lost two\n" AT "stdout F half\n");
	/* The note has the tag of output that a client got. */
	assert_log(&t, "c.0.log",
		   AT "stdout F before\n" AT
		      "stderr N holdfast: 23 bytes of output could not be written here\n" AT
		      "stdout F after\n");
	close_sink(&t);
}

/* Limits the size of files so that a write fails in the middle of a block, as on a disk that is
 * nearly full. */
static void set_file_limit(rlim_t bytes)
{
	struct rlimit limit;

	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_container_that_ends_on_a_full_disk_leaves_a_log_that_says_so(void **state)
{
	HF_AUTO_STRBUF line = HF_STRBUF_INIT(4096);
	struct sink_test t;

	for (int i = 0; i < 1000; i++)
		hf_strbuf_add(&line, "x", 1);
	hf_strbuf_add(&line, "\n", 1);
	open_sink(&t, 1 << 20, 3);
	add(&t, 0, "before\n");
	set_file_limit(500);
	add(&t, 0, line.data);
	assert_log(&t, "c.0.log",
		   AT "stdout F before\n" AT "stderr F holdfast: output is lost from here on: it "
		      "cannot be written\n");
	add(&t, 0, line.data);
	hf_log_sink_close(t.sink, 1700000000 * HF_SECOND);
	set_file_limit(RLIM_INFINITY);
	assert_log(&t, "c.0.log",
		   AT "stdout F before\n" AT "stderr F holdfast: output is lost from here on: it "
		      "cannot be written\n" AT
		      "stderr F holdfast: 2002 bytes of output could not be written here\n");
	close_sink(&t);
}

/* --- reading, from real pods --- */

static void tail_and_limit_cut_a_log(void **state)
{
	struct testnode *n = *state;
	struct testlog log;

	testnode_script(n, "a", "Never", "seq 1 2000");
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_logs(n, "a", (struct hf_log_options){.tail_lines = 3}, &log);
	assert_string_equal(log.text.data, "1998\n1999\n2000\n");
	testlog_release(&log);
	testnode_logs(n, "a", (struct hf_log_options){.tail_lines = 0}, &log);
	assert_string_equal(log.text.data, "");
	testlog_release(&log);
	testnode_logs(n, "a", (struct hf_log_options){.tail_lines = 5000, .limit_bytes = 6}, &log);
	assert_string_equal(log.text.data, "1\n2\n3\n");
	assert_int_equal(log.code, 0);
	testlog_release(&log);
}

static void timestamps_and_since_are_those_of_the_lines(void **state)
{
	struct testnode *n = *state;
	struct testlog log;
	hf_time at;

	testnode_script(n, "a", "Never", "echo x");
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_logs(n, "a",
		      (struct hf_log_options){
			      .tail_lines = -1, .timestamps = true, .since_seconds = 3600},
		      &log);
	assert_true(hf_str_has_suffix(log.text.data, " x\n"));
	log.text.data[strcspn(log.text.data, " ")] = '\0';
	assert_int_equal(hf_time_parse(log.text.data, &at, NULL), 0);
	assert_true(hf_loop_wall(n->loop) - at < 60 * HF_SECOND);
	testlog_release(&log);
}

static void a_line_in_parts_has_one_timestamp(void **state)
{
	struct testnode *n = *state;
	struct testlog log;
	size_t stamps = 0;

	testnode_script(n, "a", "Never", "head -c 40000 /dev/zero | tr -c x x; echo; echo y");
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_logs(n, "a", (struct hf_log_options){.tail_lines = -1, .timestamps = true}, &log);
	for (const char *at = log.text.data; (at = strstr(at, "Z ")) != NULL; at++)
		stamps++;
	assert_int_equal(stamps, 2);
	assert_true(hf_str_has_suffix(log.text.data, "Z y\n"));
	testlog_release(&log);
}

struct follow {
	struct testlog *log;
	const char *text;
};

static bool log_has(struct testnode *n, void *arg)
{
	const struct follow *f = arg;

	return strstr(f->log->text.data, f->text) != NULL;
}

static bool log_ended(struct testnode *n, void *arg)
{
	return ((struct testlog *)arg)->ended;
}

static void following_shows_lines_as_they_come_and_ends_with_the_container(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *go = hf_xasprintf("%s/go", n->dir);
	HF_AUTOFREE char *script = hf_xasprintf("echo first; read x < %s; echo second", go);
	struct hf_log_options options = {.tail_lines = -1, .follow = true};
	struct testlog log;
	struct follow first = {&log, "first\n"};
	HF_AUTO_FD fd = -1;

	assert_int_equal(mkfifo(go, 0600), 0);
	testnode_script(n, "a", "Never", script);
	testnode_wait_state(n, "a", "running", NULL);
	testlog_start(n, "a", options, &log);
	testnode_wait(n, log_has, &first);
	assert_false(log.ended);
	fd = open(go, O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(fd, "\n", 1), 1);
	testnode_wait(n, log_ended, &log);
	assert_string_equal(log.text.data, "first\nsecond\n");
	assert_int_equal(log.code, 0);
	testlog_release(&log);
}

static void a_stream_may_be_stopped_at_any_time(void **state)
{
	struct testnode *n = *state;
	struct hf_log_options options = {.tail_lines = -1, .follow = true};
	struct testlog log;
	struct follow first = {&log, "x\n"};

	testnode_script(n, "a", "Never", "echo x; exec tail -f /dev/null");
	testnode_wait_state(n, "a", "running", NULL);
	testlog_start(n, "a", options, &log);
	testlog_release(&log);
	testlog_start(n, "a", options, &log);
	testnode_wait(n, log_has, &first);
	testlog_release(&log);
}

static void nothing_is_lost_where_a_log_is_rotated_while_it_is_read(void **state)
{
	struct testnode *n = *state;
	struct hf_log_options options = {.tail_lines = -1, .follow = true};
	struct testlog log;
	const char *at;
	long line = 0;

	/* The output is 25 MB with the prefixes, and a file of a log has at most 10 MiB, so the
	 * log is rotated. */
	testnode_script(n, "a", "Never", "seq 100001 600000");
	testnode_wait_state(n, "a", "running", NULL);
	testlog_start(n, "a", options, &log);
	testnode_wait(n, log_ended, &log);
	at = log.text.data;
	for (line = 100001; line <= 600000; line++) {
		char expected[16];

		(void)snprintf(expected, sizeof(expected), "%ld\n", line);
		assert_memory_equal(at, expected, 7);
		at += 7;
	}
	assert_int_equal(*at, 0);
	testlog_release(&log);
	testnode_logs(n, "a", (struct hf_log_options){.tail_lines = 450000}, &log);
	assert_int_equal(log.text.len, 450000 * 7);
	testlog_release(&log);
}

static bool was_restarted(struct testnode *n, void *arg)
{
	const struct hf_json *c = testnode_container(n, "a", 0, false);

	return hf_json_i64(hf_json_get(c, "restartCount"), 0) == 1 &&
	       hf_json_path(c, "state", "running", NULL);
}

static void the_attempt_before_is_to_be_had(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *script = hf_xasprintf(
		"test -e %s/mark && { echo second; exec tail -f /dev/null; }; touch %s/mark; "
		"echo first; exit 1",
		n->dir, n->dir);
	struct hf_log_options previous = {.tail_lines = -1, .previous = true};
	struct testlog log;
	struct follow second = {&log, "second\n"};

	testnode_script(n, "a", "OnFailure", script);
	testnode_wait(n, was_restarted, NULL);
	testlog_start(n, "a", (struct hf_log_options){.tail_lines = -1, .follow = true}, &log);
	testnode_wait(n, log_has, &second);
	testlog_release(&log);
	testnode_logs(n, "a", previous, &log);
	assert_string_equal(log.text.data, "first\n");
	testlog_release(&log);
}

static void what_cannot_be_shown_is_said_in_upstreams_words(void **state)
{
	struct testnode *n = *state;
	static const struct {
		const char *pod, *container;
		bool previous;
		const char *message;
	} rows[] = {
		{"two", NULL, false,
		 "a container name must be specified for pod two, choose one of: [a b]"},
		{"two", "c", false, "container c is not valid for pod two"},
		{"two", "a", true, "previous terminated container \"a\" in pod \"two\" not found"},
		{"stuck", NULL, false,
		 "container \"main\" in pod \"stuck\" is waiting to start: "
		 "CreateContainerConfigError"},
	};

	testnode_pod(n, "two",
		     "'restartPolicy':'Never','containers':[{'name':'a','command':['tail',"
		     "'-f','/dev/null']},{'name':'b','command':['echo','b']}]");
	testnode_pod(n, "stuck", "'containers':[{'name':'main','image':'x'}]");
	testnode_wait_phase(n, "two", "Running");
	testnode_wait_state(n, "stuck", "waiting", "CreateContainerConfigError");
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		struct hf_log_options o = {.tail_lines = -1,
					   .container = rows[i].container,
					   .previous = rows[i].previous};
		struct testlog log;

		testnode_logs(n, rows[i].pod, o, &log);
		assert_int_equal(log.code, HF_E_BAD_REQUEST);
		assert_string_equal(log.message, rows[i].message);
		testlog_release(&log);
	}
	{
		struct testlog log;

		testnode_logs(
			n, "two",
			(struct hf_log_options){.tail_lines = -1, .container = "b", .follow = true},
			&log);
		assert_string_equal(log.text.data, "b\n");
		testlog_release(&log);
	}
}

int main(int argc, char **argv)
{
#define T(name) TESTNODE_TEST(name, memory)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_get_a_time_and_their_stream),
		cmocka_unit_test(a_progress_bar_is_seen_before_its_line_ends),
		cmocka_unit_test(long_lines_come_in_parts),
		cmocka_unit_test(old_parts_are_kept_up_to_their_number),
		cmocka_unit_test(what_a_full_disk_cost_is_said_once_there_is_room),
		cmocka_unit_test(lines_that_cannot_be_written_are_passed_to_the_client),
		cmocka_unit_test(a_container_that_ends_on_a_full_disk_leaves_a_log_that_says_so),
		T(tail_and_limit_cut_a_log),
		T(timestamps_and_since_are_those_of_the_lines),
		T(a_line_in_parts_has_one_timestamp),
		T(following_shows_lines_as_they_come_and_ends_with_the_container),
		T(a_stream_may_be_stopped_at_any_time),
		T(nothing_is_lost_where_a_log_is_rotated_while_it_is_read),
		T(the_attempt_before_is_to_be_had),
		T(what_cannot_be_shown_is_said_in_upstreams_words),
	};
	int rc = hf_shim_helper_main(argc, argv);

	return rc >= 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
