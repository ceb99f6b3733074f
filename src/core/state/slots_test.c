/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

static struct brain b;

static bool finds(const char *name, int role, int32_t index)
{
	struct hf_brain brain = {
		.view = &b.view, .roles_len = 2, .roles = {{.lower = "boss"}, {.lower = "hand"}}};
	int ret_role = -1;
	int32_t ret_index = -1;
	bool found = hf_rank_find(&brain, name, &ret_role, &ret_index);

	assert_int_equal(found ? ret_role : -1, role);
	assert_int_equal(found ? ret_index : -1, index);
	return found;
}

static void replicas_are_known_by_their_names(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 1);
	assert_true(finds("demo-boss-0", 0, 0));
	assert_true(finds("demo-hand-12", 1, 12));
	assert_true(finds("demo-hand-19999", 1, 19999));
	brain_release(&b);
}

static void other_names_are_no_replicas(void **state)
{
	static const char *const names[] = {
		"demo",         "demo-",        "demo-hand",     "demo-hand-",      "demo-hand-x",
		"demo-hand-01", "demo-hand--1", "demo-hand-1x",  "demo-hand-20000", "demo-foot-0",
		"demos-hand-0", "emo-hand-0",   "demo-hand-0-0", "demo-Hand-0",     ""};

	(void)state;
	brain_init(&b, &brain_kind, 1, 1);
	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++)
		assert_false(finds(names[i], -1, -1));
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replicas_are_known_by_their_names),
		cmocka_unit_test(other_names_are_no_replicas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
