/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/output.h"

#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

static const char *const headers[] = {"NAME", "STATE"};

static char *print(const struct hf_table *table, bool with_headers)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	hf_table_print(table, out, with_headers);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
	struct hf_table *table = hf_table_create(headers, 2);
	char *text;

	hf_table_cell(table, "a-long-name");
	hf_table_cell(table, "%s", "Running");
	hf_table_cell(table, "b");
	hf_table_cell(table, "Failed");
	text = print(table, true);
	assert_string_equal(text,
			    "NAME          STATE\na-long-name   Running\nb             Failed\n");
	free(text);
	assert_int_equal(hf_table_rows(table), 2);
	hf_table_destroy(table);
}

static void without_headers_they_take_no_room(void **state)
{
	struct hf_table *table = hf_table_create(headers, 2);
	char *text;

	hf_table_cell(table, "a");
	hf_table_cell(table, "b");
	text = print(table, false);
	assert_string_equal(text, "a   b\n");
	free(text);
	hf_table_destroy(table);
}

static void letters_of_several_bytes_take_one_column(void **state)
{
	struct hf_table *table = hf_table_create(headers, 2);
	char *text;

	hf_table_cell(table, "\xc3\xa4\xc3\xb6");
	hf_table_cell(table, "x");
	hf_table_cell(table, "abc");
	hf_table_cell(table, "y");
	text = print(table, false);
	assert_string_equal(text, "\xc3\xa4\xc3\xb6    x\nabc   y\n");
	free(text);
	hf_table_destroy(table);
}

static void control_characters_become_blanks(void **state)
{
	struct hf_table *table = hf_table_create(headers, 2);
	char *text;

	hf_table_cell(table, "a\033[2Jb");
	hf_table_cell(table, "c\nd");
	text = print(table, false);
	assert_string_equal(text, "a [2Jb   c d\n");
	free(text);
	hf_table_destroy(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
		cmocka_unit_test(without_headers_they_take_no_room),
		cmocka_unit_test(letters_of_several_bytes_take_one_column),
		cmocka_unit_test(control_characters_become_blanks),
	};

	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
