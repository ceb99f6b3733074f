/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "exec/stream.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static struct hf_exec_stream stream;
static int reader, program; /* the ends of the two pipes: behind the own file, and of the program */
static char passed[256]; /* what the reader of the own file had got when the last line was judged */
static int lines;

static void take_line(void *arg, const char *line, size_t len)
{
	lines++;
	(void)read(reader, passed, sizeof(passed) - 1);
}

static void count_line(void *arg, const char *line, size_t len)
{
	lines++;
}

static int begin(void **state)
{
	int own[2];

	assert_int_equal(pipe2(own, O_CLOEXEC | O_NONBLOCK), 0);
	reader = own[0];
	memset(passed, 0, sizeof(passed));
	lines = 0;
	stream = (struct hf_exec_stream){
		.own = own[1], .from = -1, .to = own[1], .took_line = take_line};
	assert_int_equal(hf_exec_stream_begin(&stream, &program), 0);
	return 0;
}

static int end(void **state)
{
	stream.took_line = NULL;
	hf_exec_stream_stop(&stream);
	if (stream.to != stream.own)
		(void)close(stream.to);
	(void)close(stream.own);
	(void)close(program);
	(void)close(reader);
	return 0;
}

static void print_text(const char *text)
{
	assert_int_equal(write(program, text, strlen(text)), strlen(text));
	hf_exec_stream_read(&stream, false);
}

/* Else exec's message about the line would stand between the line and its line feed. */
static void a_line_is_passed_on_before_it_is_judged(void **state)
{
	print_text("loss=nan");
	assert_int_equal(lines, 0);
	print_text("\n");
	assert_int_equal(lines, 1);
	assert_string_equal(passed, "loss=nan\n");
}

static void a_slow_reader_delays_no_judgement(void **state)
{
	static const char filler[4096];

	stream.took_line = count_line;
	while (write(stream.own, filler, sizeof(filler)) > 0)
		continue;
	print_text("a\nb\n");
	assert_int_equal(lines, 2);
	assert_true(hf_exec_stream_is_full(&stream));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_line_is_passed_on_before_it_is_judged, begin,
						end),
		cmocka_unit_test_setup_teardown(a_slow_reader_delays_no_judgement, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
