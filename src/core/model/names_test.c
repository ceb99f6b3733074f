/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/names.h"

#include "harness/test.h"

static void names_are_upstreams(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(1 << 16);

	(void)state;
	assert_string_equal(hf_replica_name(arena, "ddp", "Worker", 0), "ddp-worker-0");
	assert_string_equal(hf_replica_name(arena, "ddp", "Master", 12), "ddp-master-12");
	assert_string_equal(hf_replica_name(arena, "a/b", "PS", 1), "a-b-ps-1");
	assert_string_equal(hf_rank_name(arena, "Worker", 3), "worker-3");
	assert_string_equal(hf_type_lower(arena, "Evaluator"), "evaluator");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_upstreams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
