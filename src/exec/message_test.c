/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "exec/exec_internal.h"
#include "exec/tail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], path[96];
static struct hf_tail tail;

static int make(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/hf-message-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/log", dir);
	memset(&tail, 0, sizeof(tail));
	hf_tail_add(&tail, "last words\n", 11, 0);
	return 0;
}

static int unmake(void **state)
{
	(void)unlink(path);
	(void)rmdir(dir);
	return 0;
}

static void write_message(int code, int given, const char *why, bool create)
{
	struct hf_exec_ending ending = {.code = code, .given = given, .why = why, .tail = &tail};

	hf_exec_message_write(path, create, &ending);
}

static void assert_file(const char *expected)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(65536);
	struct hf_error err;

	assert_ok(hf_fs_read(path, &text, &err), &err);
	assert_string_equal(text.data, expected);
}

static void the_code_stands_before_the_last_words(void **state)
{
	write_message(1, 1, "", true);
	assert_file("exit code 1\nlast words\n");
}

static void a_code_by_cause_names_the_other_one(void **state)
{
	write_message(1, 220, "ECC", true);
	assert_file("exit code 1, given as 220 (device-fatal): ECC\nlast words\n");
}

static void a_file_that_is_not_there_is_made_only_where_a_person_named_it(void **state)
{
	write_message(1, 1, "", false);
	assert_int_not_equal(access(path, F_OK), 0);
	hf_exec_message_write("", true, &(struct hf_exec_ending){.tail = &tail});
}

static void what_the_program_wrote_itself_stands(void **state)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs("mine", file);
	fclose(file);
	write_message(1, 1, "", true);
	assert_file("mine");
}

static void the_message_has_no_more_bytes_than_the_kubelet_reads(void **state)
{
	struct stat st;

	for (int i = 0; i < 1000; i++)
		hf_tail_add(&tail, "a line of some length\n", 22, 0);
	write_message(1, 225, "no step was reported for 60 s", true);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 4000 && st.st_size <= HF_EXEC_MESSAGE_BYTES_MAX);
}

static void a_reason_that_is_too_long_is_cut_at_a_character(void **state)
{
	char why[600] = "cannot run '", expected[600];

	for (size_t at = strlen(why); at + 2 < sizeof(why); at += 2)
		memcpy(why + at, "\xc3\xa4", 2);
	write_message(127, 127, why, true);
	snprintf(expected, sizeof(expected), "exit code 127: %.*s\nlast words\n", 494, why);
	assert_file(expected);
}

static void all_of_it_is_text(void **state)
{
	hf_tail_add(&tail, "a\0b\x1b[31m\xff\n", 10, 0);
	write_message(127, 127, "cannot run 'a\x1b[31m\xff\rb\xc3'", true);
	assert_file("exit code 127: b?'\nlast words\nab?\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_code_stands_before_the_last_words, make,
						unmake),
		cmocka_unit_test_setup_teardown(a_code_by_cause_names_the_other_one, make, unmake),
		cmocka_unit_test_setup_teardown(
			a_file_that_is_not_there_is_made_only_where_a_person_named_it, make,
			unmake),
		cmocka_unit_test_setup_teardown(what_the_program_wrote_itself_stands, make, unmake),
		cmocka_unit_test_setup_teardown(
			the_message_has_no_more_bytes_than_the_kubelet_reads, make, unmake),
		cmocka_unit_test_setup_teardown(a_reason_that_is_too_long_is_cut_at_a_character,
						make, unmake),
		cmocka_unit_test_setup_teardown(all_of_it_is_text, make, unmake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
