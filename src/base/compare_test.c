/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "base/compare.h"

#include <stdlib.h>

struct named {
	const char *name;
	int number;
};

static void texts_are_sorted_in_byte_order(void **state)
{
	const char *texts[] = {"b", "a10", "", "a2", "\xc3\xa4", "B"};

	(void)state;
	qsort(texts, HF_ARRAY_LEN(texts), sizeof(*texts), hf_compare_by_name);
	assert_string_equal(texts[0], "");
	assert_string_equal(texts[1], "B");
	assert_string_equal(texts[2], "a10");
	assert_string_equal(texts[3], "a2");
	assert_string_equal(texts[4], "b");
	assert_string_equal(texts[5], "\xc3\xa4");
}

static void structs_are_sorted_and_found_by_their_name(void **state)
{
	struct named items[] = {{"worker-2", 2}, {"master-0", 0}, {"worker-1", 1}};
	const struct named key = {.name = "worker-1"};
	const struct named absent = {.name = "worker-3"};
	const struct named *found;

	(void)state;
	qsort(items, HF_ARRAY_LEN(items), sizeof(*items), hf_compare_by_name);
	for (int i = 0; i < 3; i++)
		assert_int_equal(items[i].number, i);
	found = bsearch(&key, items, HF_ARRAY_LEN(items), sizeof(*items), hf_compare_by_name);
	assert_ptr_equal(found, &items[1]);
	assert_null(
		bsearch(&absent, items, HF_ARRAY_LEN(items), sizeof(*items), hf_compare_by_name));
}

static void pointers_are_sorted_by_the_names_they_lead_to(void **state)
{
	static const struct named b = {"b", 1}, a = {"a", 0}, c = {"c", 2};
	const struct named *items[] = {&b, &c, &a};

	(void)state;
	qsort(items, HF_ARRAY_LEN(items), sizeof(*items), hf_compare_pointers_by_name);
	for (int i = 0; i < 3; i++)
		assert_int_equal(items[i]->number, i);
}

static void the_median_of_two_in_the_middle_is_the_lower(void **state)
{
	int64_t odd[] = {INT64_MAX, INT64_MIN, 3}, even[] = {4, 1, 3, 2};

	(void)state;
	assert_int_equal(hf_median(odd, HF_ARRAY_LEN(odd)), 3);
	assert_int_equal(hf_median(even, HF_ARRAY_LEN(even)), 2);
	assert_int_equal(hf_median(even, 1), 1);
	assert_int_equal(hf_median(NULL, 0), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_sorted_in_byte_order),
		cmocka_unit_test(structs_are_sorted_and_found_by_their_name),
		cmocka_unit_test(pointers_are_sorted_by_the_names_they_lead_to),
		cmocka_unit_test(the_median_of_two_in_the_middle_is_the_lower),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
