/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "exec/tail.h"

#include <stdio.h>
#include <string.h>

#define ECC "CUDA error: uncorrectable ECC error encountered"

static struct hf_tail tail;

static int reset(void **state)
{
	memset(&tail, 0, sizeof(tail));
	return 0;
}

static void add(const char *text)
{
	hf_tail_add(&tail, text, strlen(text), 100);
}

static void assert_tail(size_t size, const char *expected)
{
	char text[HF_TAIL_BYTES_MAX + 1];
	size_t len = hf_tail_text(&tail, text, size);

	text[len] = '\0';
	assert_string_equal(text, expected);
}

static void short_streams_are_kept_whole(void **state)
{
	assert_tail(100, "");
	add("one\ntw");
	add("o\n");
	assert_tail(100, "one\ntwo\n");
}

static void what_is_cut_begins_with_a_line(void **state)
{
	add("first line\nsecond line\nthird\n");
	assert_tail(17, "third\n");
	assert_tail(5, "hird\n");
}

static void one_long_line_is_cut_between_characters(void **state)
{
	add("aaaa\xc3\xa4\xc3\xa4");
	assert_tail(3, "\xc3\xa4");
	assert_tail(4, "\xc3\xa4\xc3\xa4");
}

static void the_ring_holds_the_last_bytes_of_many(void **state)
{
	char text[HF_TAIL_BYTES_MAX];
	char line[32];
	size_t len;

	for (int i = 0; i < 5000; i++) {
		snprintf(line, sizeof(line), "line %d\n", i);
		add(line);
	}
	len = hf_tail_text(&tail, text, sizeof(text));
	assert_true(len > sizeof(text) - 32 && len <= sizeof(text));
	assert_memory_equal(text, "line ", 5);
	assert_memory_equal(text + len - 10, "line 4999\n", 10);
}

static void more_than_the_ring_at_once_is_as_well(void **state)
{
	char many[3 * HF_TAIL_BYTES_MAX], text[HF_TAIL_BYTES_MAX];

	memset(many, 'x', sizeof(many));
	memcpy(many + sizeof(many) - 4, "end\n", 4);
	hf_tail_add(&tail, many, sizeof(many), 100);
	assert_int_equal(hf_tail_text(&tail, text, sizeof(text)), sizeof(text));
	assert_memory_equal(text + sizeof(text) - 4, "end\n", 4);
}

static void a_cause_is_found_in_whatever_pieces_it_comes(void **state)
{
	const char *text = "Traceback\n" ECC "\nmore\n";

	for (const char *c = text; *c != '\0'; c++)
		hf_tail_add(&tail, c, 1, 100);
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
	assert_string_equal(tail.cause_line, ECC);
}

static void a_line_without_an_end_counts_when_the_stream_has_one(void **state)
{
	add(ECC);
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_NONE);
	hf_tail_end(&tail, 100);
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
}

static void a_cause_of_long_ago_is_another_story(void **state)
{
	add(ECC "\n");
	assert_int_equal(hf_tail_cause(&tail, 100 + HF_TAIL_CAUSE_SECONDS),
			 HF_EXEC_CAUSE_DEVICE_FATAL);
	assert_int_equal(hf_tail_cause(&tail, 101 + HF_TAIL_CAUSE_SECONDS), HF_EXEC_CAUSE_NONE);
}

static void a_line_without_end_takes_no_memory(void **state)
{
	for (int i = 0; i < 100000; i++)
		add("0123456789");
	add(ECC "\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_NONE);
	add(ECC "\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
}

static void what_it_gives_is_text(void **state)
{
	hf_tail_add(&tail, "a\0b\x1b[31m\xff\n", 10, 100);
	add(" 1%\r50%\r99%\n");
	assert_tail(100, "ab?\n99%\n");
}

static void a_cause_is_found_behind_a_progress_bar_and_in_colours(void **state)
{
	for (int i = 0; i < 1000; i++)
		add("\r 12%|####          | 12/100 [00:12<02:13]");
	add("\r" ECC "\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
	assert_int_equal(reset(NULL), 0);
	add("\x1b[31m" ECC "\x1b[0m\n");
	assert_int_equal(hf_tail_cause(&tail, 100), HF_EXEC_CAUSE_DEVICE_FATAL);
	assert_string_equal(tail.cause_line, ECC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(short_streams_are_kept_whole, reset),
		cmocka_unit_test_setup(what_is_cut_begins_with_a_line, reset),
		cmocka_unit_test_setup(one_long_line_is_cut_between_characters, reset),
		cmocka_unit_test_setup(the_ring_holds_the_last_bytes_of_many, reset),
		cmocka_unit_test_setup(more_than_the_ring_at_once_is_as_well, reset),
		cmocka_unit_test_setup(a_cause_is_found_in_whatever_pieces_it_comes, reset),
		cmocka_unit_test_setup(a_line_without_an_end_counts_when_the_stream_has_one, reset),
		cmocka_unit_test_setup(a_cause_of_long_ago_is_another_story, reset),
		cmocka_unit_test_setup(a_line_without_end_takes_no_memory, reset),
		cmocka_unit_test_setup(what_it_gives_is_text, reset),
		cmocka_unit_test_setup(a_cause_is_found_behind_a_progress_bar_and_in_colours,
				       reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
