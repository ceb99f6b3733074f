/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/health.h"

#include "harness/test.h"

#include <string.h>

static struct health_node n;

static int setup(void **state)
{
	(void)state;
	health_init(&n, 2, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	health_release(&n);
	return 0;
}

static void order(enum hf_health_order_kind kind, enum hf_health_action action)
{
	health_order(&n, kind, action, "gpu-0");
	health_step(&n, HF_SECOND);
}

static enum hf_health_state state_of(void)
{
	return health_device(&n, "gpu-0")->state;
}

static void orders_that_do_not_fit_change_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < HF_HEALTH_ORDERS; i++)
		order((enum hf_health_order_kind)i, HF_HEALTH_REPLACE_NODE);
	assert_int_equal(state_of(), HF_HEALTH_HEALTHY);
	health_order(&n, HF_HEALTH_ORDER_QUARANTINE, HF_HEALTH_RECORD, "nobody");
	health_step(&n, HF_SECOND);
}

static void each_action_mends_what_it_can(void **state)
{
	static const struct {
		enum hf_health_action action;
		int xid;
		enum hf_health_state then;
	} rows[] = {
		{HF_HEALTH_RESET_DEVICE, 62, HF_HEALTH_PROBATION},
		{HF_HEALTH_RESET_DEVICE, 79, HF_HEALTH_QUARANTINED},
		{HF_HEALTH_RESTART_PROCESS, 62, HF_HEALTH_QUARANTINED},
		{HF_HEALTH_RESTART_DRIVER, 62, HF_HEALTH_PROBATION},
		{HF_HEALTH_RESTART_NODE, 79, HF_HEALTH_PROBATION},
		{HF_HEALTH_REPLACE_NODE, 54, HF_HEALTH_PROBATION},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		health_release(&n);
		health_init(&n, 3, 0);
		health_xid(&n, rows[i].xid, "gpu-0");
		health_step(&n, HF_SECOND);
		order(HF_HEALTH_ORDER_QUARANTINE, HF_HEALTH_RECORD);
		order(HF_HEALTH_ORDER_REMEDIATE, HF_HEALTH_RECORD);
		assert_int_equal(state_of(), HF_HEALTH_REMEDIATING);
		order(HF_HEALTH_ORDER_VERIFIED, rows[i].action);
		assert_int_equal(state_of(), rows[i].then);
	}
}

static void nothing_is_released_while_something_stands(void **state)
{
	(void)state;
	health_xid(&n, 62, "gpu-0");
	health_step(&n, HF_SECOND);
	order(HF_HEALTH_ORDER_QUARANTINE, HF_HEALTH_RECORD);
	order(HF_HEALTH_ORDER_RELEASE, HF_HEALTH_RECORD);
	assert_int_equal(state_of(), HF_HEALTH_QUARANTINED);
	order(HF_HEALTH_ORDER_CLEAR, HF_HEALTH_RECORD);
	assert_int_equal(state_of(), HF_HEALTH_PROBATION);
	assert_null(health_fault(&n, "gpu-0", HF_HEALTH_XID, 62));
}

static void a_word_is_about_what_was_known_at_its_time(void **state)
{
	(void)state;
	health_xid(&n, 62, "gpu-0");
	health_step(&n, HF_SECOND);
	hf_time looked = n.now + HF_SECOND;
	health_step(&n, 2 * HF_SECOND);
	/* The device was Unhealthy already, so no state changes. */
	health_xid(&n, 46, "gpu-0");
	health_step(&n, HF_SECOND);
	health_order(&n, HF_HEALTH_ORDER_CLEAR, HF_HEALTH_RECORD, "gpu-0");
	n.orders[0].at = looked;
	health_step(&n, HF_SECOND);
	assert_int_equal(state_of(), HF_HEALTH_UNHEALTHY);
	assert_null(health_fault(&n, "gpu-0", HF_HEALTH_XID, 62));
	assert_non_null(health_fault(&n, "gpu-0", HF_HEALTH_XID, 46));
	/* The acknowledgement is given at each step of an hour, and has no further effect. */
	health_order(&n, HF_HEALTH_ORDER_CLEAR, HF_HEALTH_RECORD, "gpu-0");
	n.orders[0].at = looked;
	health_step(&n, HF_SECOND);
	assert_false(n.plan.changed);
	order(HF_HEALTH_ORDER_CLEAR, HF_HEALTH_RECORD);
	assert_int_equal(state_of(), HF_HEALTH_PROBATION);
}

/* Gives an acknowledgement between two measurements, or between two lines, of a fault.  Returns whether the fault
 * ends. */
static bool word_ends(void (*find)(void), enum hf_health_detector detector, int code)
{
	hf_time between;

	health_release(&n);
	health_init(&n, 3, 0);
	/* The second time moves no state. */
	for (int i = 0; i < 2; i++) {
		find();
		health_step(&n, 10 * HF_SECOND);
	}
	between = n.now + 10 * HF_SECOND;
	health_step(&n, 20 * HF_SECOND);
	find();
	health_step(&n, HF_SECOND);
	assert_non_null(health_fault(&n, "gpu-0", detector, code));
	health_order(&n, HF_HEALTH_ORDER_CLEAR, HF_HEALTH_RECORD, "gpu-0");
	n.orders[0].at = between;
	health_step(&n, HF_SECOND);
	return health_fault(&n, "gpu-0", detector, code) == NULL;
}

static void find_remap_failed(void)
{
	struct hf_health_sample *s = health_sample(&n, HF_HEALTH_ECC, "gpu-0");

	s->ecc.remap_known = s->ecc.failed = true;
}

static uint64_t errors;

static void find_errors(void)
{
	health_sample(&n, HF_HEALTH_ECC, "gpu-0")->ecc.uncorrectable = errors++;
	health_step(&n, HF_SECOND);
	health_sample(&n, HF_HEALTH_ECC, "gpu-0")->ecc.uncorrectable = errors++;
}

static void find_lost(void)
{
	health_sample(&n, HF_HEALTH_BUSLOST, "gpu-0")->bus.lost = true;
}

static void find_lost_by_two(void)
{
	find_lost();
	find_lost();
	n.samples[1].source = HF_HEALTH_BY_SYSFS;
}

static void find_lost_line(void)
{
	find_lost();
	health_xid(&n, 79, "gpu-0");
}

static void find_request(void)
{
	health_sample(&n, HF_HEALTH_RECOVERY, "gpu-0")->recovery.action = 1;
}

static void find_narrow(void)
{
	struct hf_health_sample *s = health_sample(&n, HF_HEALTH_PCIE, "gpu-0");

	s->pcie.width = 4;
	s->pcie.width_max = 16;
}

/* A fault that is measured again and again is not new because of its last time; another line or another error is
 * new. */
static void a_word_is_about_what_is_measured_on_and_on_and_not_about_what_came_anew(void **state)
{
	(void)state;
	assert_true(word_ends(find_remap_failed, HF_HEALTH_ECC, HF_HEALTH_CODE_REMAP_FAILED));
	assert_true(word_ends(find_lost, HF_HEALTH_BUSLOST, HF_HEALTH_CODE_BUS));
	assert_true(word_ends(find_lost_by_two, HF_HEALTH_BUSLOST, HF_HEALTH_CODE_BUS));
	assert_true(word_ends(find_request, HF_HEALTH_RECOVERY, 1));
	assert_true(word_ends(find_narrow, HF_HEALTH_PCIE, HF_HEALTH_CODE_WIDTH));
	assert_false(word_ends(find_errors, HF_HEALTH_ECC, HF_HEALTH_CODE_UNCORRECTABLE));
	assert_false(word_ends(find_lost_line, HF_HEALTH_BUSLOST, HF_HEALTH_CODE_BUS));
}

/* A fault of the node to which another device was added after the acknowledgement. */
static void a_word_is_not_about_what_spread_since(void **state)
{
	hf_time between, opened_at;

	(void)state;
	health_release(&n);
	health_init(&n, 4, 0);
	for (int i = 0; i < 2; i++)
		health_sample(&n, HF_HEALTH_PCIE, i == 0 ? "gpu-0" : "gpu-1")->pcie.width_max = 16;
	for (int i = 0; i < 2; i++)
		n.samples[i].pcie.width = 4;
	health_step(&n, HF_SECOND);
	opened_at = health_fault(&n, "", HF_HEALTH_PEERS, HF_HEALTH_CODE_SAME)->opened_at;
	between = n.now + 10 * HF_SECOND;
	health_step(&n, 20 * HF_SECOND);
	health_sample(&n, HF_HEALTH_PCIE, "gpu-2")->pcie.width_max = 16;
	n.samples[0].pcie.width = 4;
	health_step(&n, HF_SECOND);
	health_order(&n, HF_HEALTH_ORDER_CLEAR, HF_HEALTH_RECORD, "");
	n.orders[0].at = between;
	health_step(&n, HF_SECOND);
	/* Not ended and found again either. */
	assert_int_equal(health_fault(&n, "", HF_HEALTH_PEERS, HF_HEALTH_CODE_SAME)->opened_at,
			 opened_at);
}

static void a_word_about_the_node_ends_what_it_covers(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		health_xid(&n, 62, i == 0 ? "gpu-0" : "gpu-1");
	health_step(&n, HF_SECOND);
	assert_int_equal(state_of(), HF_HEALTH_UNKNOWN);
	assert_int_equal(health_device(&n, "")->state, HF_HEALTH_DEGRADED_STATE);
	health_step(&n, HF_SECOND);
	health_order(&n, HF_HEALTH_ORDER_CLEAR, HF_HEALTH_RECORD, "");
	health_order(&n, HF_HEALTH_ORDER_CLEAR, HF_HEALTH_RECORD, "gpu-0");
	health_order(&n, HF_HEALTH_ORDER_CLEAR, HF_HEALTH_RECORD, "gpu-1");
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "")->state, HF_HEALTH_PROBATION);
	assert_null(health_fault(&n, "", HF_HEALTH_PEERS, HF_HEALTH_CODE_ALL));
	assert_null(health_fault(&n, "gpu-0", HF_HEALTH_XID, 62));
	assert_int_equal(state_of(), HF_HEALTH_HEALTHY);
	assert_int_equal(health_device(&n, "gpu-1")->state, HF_HEALTH_HEALTHY);
}

/* The journal is older than DeviceHealth, which showed a fault. */
static void a_device_that_is_healthy_by_an_old_journal_is_unknown_until_acknowledged(void **state)
{
	(void)state;
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_HEALTHY);
	n.memory.doubted = true;
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_UNKNOWN);
	assert_int_equal(health_device(&n, "")->state, HF_HEALTH_UNKNOWN);
	health_step(&n, HF_HOUR);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_UNKNOWN);
	health_order(&n, HF_HEALTH_ORDER_CLEAR, HF_HEALTH_RECORD, "");
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_HEALTHY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(orders_that_do_not_fit_change_nothing),
		TEST(each_action_mends_what_it_can),
		TEST(nothing_is_released_while_something_stands),
		TEST(a_word_is_about_what_was_known_at_its_time),
		TEST(a_word_is_about_what_is_measured_on_and_on_and_not_about_what_came_anew),
		TEST(a_word_is_not_about_what_spread_since),
		TEST(a_word_about_the_node_ends_what_it_covers),
		TEST(a_device_that_is_healthy_by_an_old_journal_is_unknown_until_acknowledged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
