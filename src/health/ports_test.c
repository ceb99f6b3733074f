/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/health.h"

#include "harness/test.h"

#include <string.h>

static struct health_node n;

static int setup(void **state)
{
	(void)state;
	health_init(&n, 0, 2);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	health_release(&n);
	return 0;
}

static struct hf_health_sample *port(bool up)
{
	struct hf_health_sample *s = health_sample(&n, HF_HEALTH_IB, "port-0");

	s->ib.up = up;
	return s;
}

static void poll(bool up, hf_time span)
{
	port(up);
	health_step(&n, span);
}

/* One outage of so long. */
static void outage(hf_time span)
{
	poll(false, HF_MINUTE);
	poll(true, span);
}

static enum hf_health_state state_of(void)
{
	return health_device(&n, "port-0")->state;
}

static void a_retraining_is_no_flap(void **state)
{
	(void)state;
	poll(true, HF_SECOND);
	for (int i = 0; i < 10; i++)
		outage(24 * HF_SECOND);
	assert_int_equal(state_of(), HF_HEALTH_HEALTHY);
}

static void the_third_flap_within_twelve_hours_is_a_fault(void **state)
{
	(void)state;
	poll(true, HF_SECOND);
	outage(25 * HF_SECOND);
	outage(25 * HF_SECOND);
	assert_int_equal(state_of(), HF_HEALTH_HEALTHY);
	outage(25 * HF_SECOND);
	assert_non_null(health_fault(&n, "port-0", HF_HEALTH_IB, HF_HEALTH_CODE_PORT_FLAP));
}

static void flaps_that_are_far_apart_are_not_counted_together(void **state)
{
	(void)state;
	poll(true, HF_SECOND);
	for (int i = 0; i < 6; i++) {
		outage(25 * HF_SECOND);
		poll(true, 7 * HF_HOUR);
	}
	assert_null(health_fault(&n, "port-0", HF_HEALTH_IB, HF_HEALTH_CODE_PORT_FLAP));
}

static void what_counters_say_at_first_is_old(void **state)
{
	struct hf_health_sample *s = port(true);

	(void)state;
	s->ib.fatal_errors = s->ib.symbol_errors = s->ib.recoveries = 1000000;
	health_step(&n, HF_SECOND);
	s = port(true);
	s->ib.fatal_errors = s->ib.symbol_errors = s->ib.recoveries = 1000000;
	health_step(&n, HF_SECOND);
	/* A tool has set the counters to 0. */
	poll(true, HF_SECOND);
	assert_int_equal(health_device(&n, "port-0")->faults_len, 0);
}

static void symbol_errors_count_by_the_hour(void **state)
{
	uint64_t errors = 0;

	(void)state;
	/* A hundred errors an hour are usual for cables. */
	for (int i = 0; i < 36; i++) {
		port(true)->ib.symbol_errors = errors += 10;
		health_step(&n, 6 * HF_MINUTE);
	}
	assert_int_equal(health_device(&n, "port-0")->faults_len, 0);
	for (int i = 0; i < 10; i++) {
		port(true)->ib.symbol_errors = errors += 20;
		health_step(&n, 6 * HF_MINUTE);
	}
	assert_non_null(hf_health_memory_find(&n.memory, "port-0"));
	assert_true(health_device(&n, "port-0")->faults_len > 0);
}

static void a_port_is_missed_at_the_third_poll(void **state)
{
	(void)state;
	poll(true, HF_SECOND);
	for (int i = 0; i < 3; i++) {
		assert_null(health_fault(&n, "port-0", HF_HEALTH_IB, HF_HEALTH_CODE_PORT_MISSING));
		port(false)->ib.missing = true;
		health_step(&n, HF_SECOND);
	}
	assert_non_null(health_fault(&n, "port-0", HF_HEALTH_IB, HF_HEALTH_CODE_PORT_MISSING));
}

static void a_blink_is_written_down_and_no_more(void **state)
{
	(void)state;
	poll(true, HF_SECOND);
	port(true)->ib.link_downed = 1;
	health_step(&n, HF_SECOND);
	assert_int_equal(health_fault(&n, "port-0", HF_HEALTH_IB, HF_HEALTH_CODE_PORT_BLINK)->cls,
			 HF_HEALTH_INFO);
	assert_int_equal(state_of(), HF_HEALTH_HEALTHY);
}

/* The adapter's function is on the bus, and its driver prints lines about it. */
static void a_line_about_a_hidden_port_makes_it_not_healthy(void **state)
{
	(void)state;
	poll(true, HF_SECOND);
	poll(true, HF_SECOND);
	assert_int_equal(state_of(), HF_HEALTH_HEALTHY);
	for (int i = 0; i < 12; i++) {
		health_sample(&n, HF_HEALTH_IB, "port-0")->ib.hidden = true;
		health_step(&n, 10 * HF_SECOND);
	}
	assert_int_equal(state_of(), HF_HEALTH_UNKNOWN);
	health_xid(&n, HF_HEALTH_CODE_MLX5_CABLE, "port-0")->detector = HF_HEALTH_MLX5;
	health_step(&n, HF_SECOND);
	assert_int_equal(state_of(), HF_HEALTH_UNKNOWN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_retraining_is_no_flap),
		TEST(the_third_flap_within_twelve_hours_is_a_fault),
		TEST(flaps_that_are_far_apart_are_not_counted_together),
		TEST(what_counters_say_at_first_is_old),
		TEST(symbol_errors_count_by_the_hour),
		TEST(a_port_is_missed_at_the_third_poll),
		TEST(a_blink_is_written_down_and_no_more),
		TEST(a_line_about_a_hidden_port_makes_it_not_healthy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
