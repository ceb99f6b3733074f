/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/patient_stream.h"

#include "harness/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* far more than a pipe of Linux takes at once */
#define LINES 50000

/* Reads the pipe to its end, and counts the lines. */
static void *count_lines(void *arg)
{
	static char bytes[4096];
	int *pipe_end = arg;
	int lines = 0;
	ssize_t n;

	while ((n = read(*pipe_end, bytes, sizeof(bytes))) > 0)
		for (ssize_t i = 0; i < n; i++)
			lines += bytes[i] == '\n';
	*pipe_end = lines;
	return NULL;
}

static void a_full_pipe_that_does_not_block_loses_nothing(void **state)
{
	int fds[2], reader;
	pthread_t thread;
	FILE *stream;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	stream = hf_patient_stream_open(fds[1]);
	assert_non_null(stream);
	reader = fds[0];
	assert_int_equal(pthread_create(&thread, NULL, count_lines, &reader), 0);
	for (int i = 0; i < LINES; i++)
		fprintf(stream, "line %d\n", i);
	assert_int_equal(fclose(stream), 0);
	assert_int_equal(close(fds[1]), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(reader, LINES);
	assert_int_equal(close(fds[0]), 0);
}

static void an_error_is_one_of_the_stream(void **state)
{
	FILE *stream;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	stream = hf_patient_stream_open(fd);
	assert_non_null(stream);
	fputs("lost\n", stream);
	assert_int_equal(fflush(stream), EOF);
	assert_true(ferror(stream) != 0);
	(void)fclose(stream);
	assert_int_equal(close(fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_pipe_that_does_not_block_loses_nothing),
		cmocka_unit_test(an_error_is_one_of_the_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
