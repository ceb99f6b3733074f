/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/health.h"

#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static struct health_node n;

static int setup(void **state)
{
	(void)state;
	health_init(&n, 60, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	health_release(&n);
	return 0;
}

static void a_message_names_devices_as_far_as_it_goes(void **state)
{
	char name[16];

	(void)state;
	/* The steps are far enough apart for separate changes, and slow enough for each to be written. */
	for (int i = 0; i < 29; i++) {
		snprintf(name, sizeof(name), "gpu-%d", i);
		health_xid(&n, 46 + 16 * (i % 2), name);
		health_step(&n, 2 * HF_MINUTE);
	}
	assert_int_equal(n.memory.conditions[0].status, HF_HEALTH_TRUE);
	assert_int_equal(strlen(n.memory.conditions[0].message), HF_HEALTH_MESSAGE_MAX - 1);
}

static void heartbeats_are_spread_by_the_name_of_the_node(void **state)
{
	hf_time first = 0;

	(void)state;
	for (hf_time span = 0; first == 0 && span < 10 * HF_MINUTE; span += HF_SECOND) {
		health_step(&n, HF_SECOND);
		if (n.plan.write_conditions)
			first = span;
	}
	assert_in_range(first, 239 * HF_SECOND, 361 * HF_SECOND);
	assert_false(n.plan.write_devices);
}

static void more_changes_than_writes_are_told_when_there_is_room(void **state)
{
	int writes = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		health_xid(&n, 9000 + i, "gpu-0");
		health_step(&n, 10 * HF_MS);
		writes += n.plan.write_devices;
	}
	/* The very first step took one of the five writes. */
	assert_int_equal(writes, 4);
	assert_true(n.plan.wake_at - n.now <= HF_SECOND);
	health_step(&n, n.plan.wake_at - n.now);
	assert_true(n.plan.write_devices);
}

static void a_fault_that_comes_and_goes_is_told_each_ten_minutes(void **state)
{
	int told = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct hf_health_sample *s = health_sample(&n, HF_HEALTH_ECC, "gpu-0");

		s->ecc.remap_known = true;
		s->ecc.pending = i % 2 == 0;
		health_step(&n, HF_MINUTE);
		for (size_t k = 0; k < n.plan.events_len; k++)
			told += n.plan.events[k].warning;
	}
	assert_int_equal(told, 2);
}

static int told(void)
{
	return n.plan.events_len == 0 ? -2 : n.plan.events[0].gpu_instance;
}

/* The first event names one MIG instance.  If the fault comes on another instance too, one more event is for all
 * instances. */
static void a_fault_of_one_instance_is_told_to_all_when_it_is_anothers_too(void **state)
{
	static const int of[] = {3, 5, -2, -2};
	static const int expected[] = {3, -1, -2, -2};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(of); i++) {
		struct hf_health_evidence *e = health_xid(&n, 78, "gpu-0");

		e->gpu_instance = of[i] < 0 ? 3 : of[i];
		snprintf(e->line, sizeof(e->line), "line %zu", i);
		health_step(&n, 20 * HF_SECOND);
		assert_int_equal(told(), expected[i]);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_message_names_devices_as_far_as_it_goes),
		TEST(heartbeats_are_spread_by_the_name_of_the_node),
		TEST(more_changes_than_writes_are_told_when_there_is_room),
		TEST(a_fault_that_comes_and_goes_is_told_each_ten_minutes),
		TEST(a_fault_of_one_instance_is_told_to_all_when_it_is_anothers_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
