/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/health.h"

#include "harness/test.h"

#include <stdio.h>

static struct health_node n;

static int setup(void **state)
{
	(void)state;
	health_init(&n, 8, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	health_release(&n);
	return 0;
}

static void stop(int gpu, int code)
{
	char name[16];

	snprintf(name, sizeof(name), "gpu-%d", gpu);
	health_xid(&n, code, name);
}

static const struct hf_health_fault *of_node(int code)
{
	return health_fault(&n, "", HF_HEALTH_PEERS, code);
}

static void three_of_eight_are_three_devices(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		stop(i, 62);
	health_step(&n, HF_SECOND);
	assert_null(of_node(HF_HEALTH_CODE_SAME));
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_UNHEALTHY);
}

static void four_of_eight_are_the_node(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		stop(i, 62);
		health_step(&n, 19 * HF_SECOND);
	}
	assert_non_null(of_node(HF_HEALTH_CODE_SAME));
	assert_int_equal(of_node(HF_HEALTH_CODE_SAME)->cls, HF_HEALTH_GPU_RESET);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_UNKNOWN);
	/* A fifth, long after: its own. */
	stop(4, 119);
	health_step(&n, HF_HOUR);
	assert_int_equal(health_device(&n, "gpu-4")->state, HF_HEALTH_UNHEALTHY);
}

static void all_of_them_by_whatever_are_the_driver(void **state)
{
	static const int codes[] = {46, 62, 64, 95, 109, 110, 119, 120};

	(void)state;
	for (int i = 0; i < 8; i++)
		stop(i, codes[i]);
	health_step(&n, HF_SECOND);
	assert_int_equal(of_node(HF_HEALTH_CODE_ALL)->action, HF_HEALTH_RESTART_DRIVER);
	assert_int_equal(n.memory.conditions[2].status, HF_HEALTH_TRUE);
	for (int i = 0; i < 8; i++) {
		char name[16];

		snprintf(name, sizeof(name), "gpu-%d", i);
		assert_int_equal(health_device(&n, name)->state, HF_HEALTH_UNKNOWN);
	}
}

/* A table of rules from a file has no rule for PEERS. */
static void what_covers_the_devices_acts_by_any_table(void **state)
{
	static const struct hf_health_rule xids = {.detector = HF_HEALTH_XID,
						   .code_max = 1000,
						   .subcode = -1,
						   .cls = HF_HEALTH_GPU_RESET,
						   .action = HF_HEALTH_RESET_DEVICE,
						   .clear = HF_HEALTH_BY_SIGNAL};
	static const struct hf_health_rules table = {.items = &xids, .len = 1};

	(void)state;
	n.config.rules = &table;
	for (int i = 0; i < 8; i++)
		stop(i, 119);
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_UNKNOWN);
	assert_int_equal(health_device(&n, "")->state, HF_HEALTH_DEGRADED_STATE);
	assert_int_equal(of_node(HF_HEALTH_CODE_ALL)->action, HF_HEALTH_RESTART_DRIVER);
	/* The fault does not end by age, as a fault without a rule would. */
	health_step(&n, HF_HOUR);
	assert_int_equal(health_device(&n, "")->state, HF_HEALTH_DEGRADED_STATE);
	assert_int_equal(n.memory.conditions[2].status, HF_HEALTH_TRUE);
}

static void the_nodes_fault_ends_with_the_last_under_it(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		stop(i, 62);
	health_step(&n, HF_SECOND);
	for (int i = 0; i < 4; i++) {
		char name[16];

		assert_non_null(of_node(HF_HEALTH_CODE_SAME));
		snprintf(name, sizeof(name), "gpu-%d", i);
		health_xid(&n, 0, name)->verb = HF_HEALTH_RECOVERED;
		health_step(&n, HF_SECOND);
	}
	assert_null(of_node(HF_HEALTH_CODE_SAME));
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_HEALTHY);
}

static void a_node_with_one_device_has_no_peers(void **state)
{
	(void)state;
	health_release(&n);
	health_init(&n, 1, 0);
	stop(0, 62);
	health_step(&n, HF_SECOND);
	assert_null(of_node(HF_HEALTH_CODE_ALL));
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_UNHEALTHY);
}

/* The first devices have two faults each, ten seconds apart; then all other devices have faults. */
static void what_is_the_nodes_is_no_stop_of_its_devices(void **state)
{
	static const int codes[] = {46, 62, 64, 95, 109, 110, 119, 120};

	(void)state;
	for (int i = 0; i < 3; i++)
		stop(i, codes[i]);
	health_step(&n, 10 * HF_SECOND);
	for (int i = 0; i < 3; i++)
		stop(i, codes[7]);
	health_step(&n, 10 * HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-0")->fatals_len, 1);
	for (int i = 3; i < 8; i++)
		stop(i, codes[i]);
	health_step(&n, HF_SECOND);
	assert_non_null(of_node(HF_HEALTH_CODE_ALL));
	assert_int_equal(health_device(&n, "gpu-0")->fatals_len, 0);
	assert_int_equal(health_device(&n, "gpu-7")->fatals_len, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(three_of_eight_are_three_devices),
		TEST(what_is_the_nodes_is_no_stop_of_its_devices),
		TEST(four_of_eight_are_the_node),
		TEST(all_of_them_by_whatever_are_the_driver),
		TEST(what_covers_the_devices_acts_by_any_table),
		TEST(the_nodes_fault_ends_with_the_last_under_it),
		TEST(a_node_with_one_device_has_no_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
