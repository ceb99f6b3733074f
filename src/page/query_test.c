/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/query.h"

#include "base/str.h"
#include "harness/test.h"

#include <string.h>

/* Pairs of name and value, ended by NULL. */
static const char *find_pair(void *arg, const char *name)
{
	const char *const *pairs = arg;

	for (; *pairs != NULL; pairs += 2)
		if (hf_streq(pairs[0], name))
			return pairs[1];
	return NULL;
}

static struct hf_page_query read_pairs(const char *const *pairs)
{
	struct hf_page_query query;
	struct hf_error err = {0};

	assert_int_equal(hf_page_query_read(find_pair, (void *)(uintptr_t)pairs, &query, &err), 0);
	return query;
}

static void a_query_without_parameters_has_the_defaults(void **state)
{
	const char *const none[] = {NULL};
	struct hf_page_query query = read_pairs(none);

	assert_int_equal(query.limit, HF_PAGE_LIMIT_DEFAULT);
	assert_int_equal(query.sort, HF_PAGE_SORT_NAME);
	assert_null(query.ns);
	assert_null(query.token);
	assert_int_equal(query.window, HF_HOUR);
	assert_false(query.once);
}

static void parameters_are_taken(void **state)
{
	const char *const pairs[] = {"namespace", "team-a", "sort",   "restarts", "limit", "10",
				     "q",         "ddp",    "window", "7d",       "once",  "1",
				     "continue",  "20",     "state",  "",         NULL};
	struct hf_page_query query = read_pairs(pairs);

	assert_string_equal(query.ns, "team-a");
	assert_string_equal(query.q, "ddp");
	assert_int_equal(query.sort, HF_PAGE_SORT_RESTARTS);
	assert_int_equal(query.limit, 10);
	assert_int_equal(query.start, 20);
	assert_int_equal(query.window, 7 * HF_DAY);
	assert_true(query.once);
	assert_null(query.state); /* an empty filter is none */
}

static void a_limit_beyond_the_maximum_becomes_the_maximum(void **state)
{
	const char *const pairs[] = {"limit", "9000000", "tail", "9000000", NULL};
	struct hf_page_query query = read_pairs(pairs);

	assert_int_equal(query.limit, HF_PAGE_LIMIT_MAX);
	assert_int_equal(query.tail, 10000);
}

static void wrong_values_are_refused_with_the_name_of_the_parameter(void **state)
{
	static char longer[HF_PAGE_TEXT_MAX + 2];
	static const char *const cases[][2] = {
		{"limit", "0"},   {"limit", "-1"},  {"limit", "x"}, {"limit", "1e3"},
		{"sort", "age;"}, {"window", "2h"}, {"tail", " 1"}, {"q", longer},
	};

	memset(longer, 'a', sizeof(longer) - 1);
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		const char *const pairs[] = {cases[i][0], cases[i][1], NULL};
		struct hf_page_query query;
		struct hf_error err = {0};

		assert_int_equal(
			hf_page_query_read(find_pair, (void *)(uintptr_t)pairs, &query, &err),
			HF_E_BAD_REQUEST);
		assert_non_null(strstr(err.text, cases[i][0]));
	}
}

static void jobs_that_need_a_look_come_first(void **state)
{
	assert_true(hf_page_state_order("Restarting") < hf_page_state_order("Running"));
	assert_true(hf_page_state_order("Failed") < hf_page_state_order("Succeeded"));
	assert_true(hf_page_state_order("Succeeded") < hf_page_state_order("other"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_query_without_parameters_has_the_defaults),
		cmocka_unit_test(parameters_are_taken),
		cmocka_unit_test(a_limit_beyond_the_maximum_becomes_the_maximum),
		cmocka_unit_test(wrong_values_are_refused_with_the_name_of_the_parameter),
		cmocka_unit_test(jobs_that_need_a_look_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
