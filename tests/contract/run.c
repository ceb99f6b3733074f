/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Runs all groups of contract tests on a world, each test as a cmocka test. */
#include "contract/contract.h"

struct run {
	const struct contract_test *test;
	struct world *world;
};

static void run_one(void **state)
{
	struct run *run = *state;

	run->test->run(run->world);
	settle(run->world);
}

#define TESTS_MAX 200

int contract_run(const char *name, struct world *world)
{
	static const struct contract_test *const groups[] = {
		contract_replies, contract_reads,   contract_writes,
		contract_patches, contract_deletes, contract_watches,
	};
	static struct run runs[TESTS_MAX];
	static struct CMUnitTest tests[TESTS_MAX];
	size_t n = 0;

	for (size_t g = 0; g < HF_ARRAY_LEN(groups); g++)
		for (const struct contract_test *t = groups[g]; t->name; t++, n++) {
			hf_assert(n < TESTS_MAX);
			runs[n] = (struct run){.test = t, .world = world};
			tests[n] = (struct CMUnitTest){
				.name = t->name, .test_func = run_one, .initial_state = &runs[n]};
		}
	return _cmocka_run_group_tests(name, tests, n, NULL, NULL);
}
