/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/procstat.h"

#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>

#define REST " R 7 8 9 0 -1 4194304 1 2 3 4 15 16 5 6 20 0 3 0 2233 1048576 256"

static long field_number(const char *text, int field)
{
	const char *at = hf_proc_stat_field(text, field);

	assert_non_null(at);
	return strtol(at, NULL, 10);
}

static void fields_count_from_behind_the_name(void **state)
{
	static const char *const names[] = {"sh", "", "a b", "x) S 1 (y", ")) ((", "\n"};

	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++) {
		char text[256];

		snprintf(text, sizeof(text), "42 (%s)" REST "\n", names[i]);
		assert_int_equal(*hf_proc_stat_field(text, HF_PROC_STATE), 'R');
		assert_int_equal(field_number(text, HF_PROC_PARENT), 7);
		assert_int_equal(field_number(text, HF_PROC_USER_TICKS), 15);
		assert_int_equal(field_number(text, HF_PROC_SYSTEM_TICKS), 16);
		assert_int_equal(field_number(text, HF_PROC_THREADS), 3);
		assert_int_equal(field_number(text, HF_PROC_START_TICKS), 2233);
		assert_int_equal(field_number(text, HF_PROC_VIRTUAL_BYTES), 1048576);
		assert_int_equal(field_number(text, HF_PROC_RESIDENT_PAGES), 256);
		assert_null(hf_proc_stat_field(text, HF_PROC_RESIDENT_PAGES + 1));
	}
}

static void a_cut_text_has_fewer_fields(void **state)
{
	static const char *const texts[] = {"",        "42",       "42 (sh",
					    "42 (sh)", "42 (sh) ", "42 (sh) \n"};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++)
		assert_null(hf_proc_stat_field(texts[i], HF_PROC_STATE));
	assert_non_null(hf_proc_stat_field("42 (sh) R", HF_PROC_STATE));
	assert_null(hf_proc_stat_field("42 (sh) R", HF_PROC_PARENT));
	assert_null(hf_proc_stat_field("42 (sh) R ", HF_PROC_PARENT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_count_from_behind_the_name),
		cmocka_unit_test(a_cut_text_has_fewer_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
