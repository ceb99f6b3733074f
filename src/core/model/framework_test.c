/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/framework.h"

#include "harness/brain.h"
#include "harness/test.h"

static void types_are_found_in_any_case(void **state)
{
	(void)state;
	assert_int_equal(hf_framework_role(&brain_kind, "Boss"), BRAIN_BOSS);
	assert_int_equal(hf_framework_role(&brain_kind, "hAND"), BRAIN_HAND);
	assert_int_equal(hf_framework_role(&brain_kind, "Foot"), -1);
	assert_int_equal(hf_framework_role(&brain_kind, ""), -1);
}

static void edits_grow_and_keep_their_order(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
	struct hf_edits edits;
	const char *shared = NULL;

	(void)state;
	hf_edits_init(&edits, &shared, arena);
	for (int i = 0; i < 100; i++)
		hf_edits_env(&edits, HF_EDIT_EVERY_CONTAINER, "N", "%d", i);
	assert_int_equal(edits.len, 100);
	assert_string_equal(edits.items[0].value, "0");
	assert_string_equal(edits.items[99].value, "99");
	assert_int_equal(edits.items[99].kind, HF_EDIT_ENV);
	assert_int_equal(edits.items[99].container, HF_EDIT_EVERY_CONTAINER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_are_found_in_any_case),
		cmocka_unit_test(edits_grow_and_keep_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
