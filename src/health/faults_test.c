/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/health.h"

#include "harness/test.h"
#include "health/brain_internal.h"

#include <stdio.h>
#include <string.h>

static struct health_node n;

static int setup(void **state)
{
	(void)state;
	health_init(&n, 4, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	health_release(&n);
	return 0;
}

static void a_flood_is_one_fault_and_one_sighting(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++)
		health_xid(&n, 78, "gpu-0");
	health_step(&n, HF_SECOND);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 78)->count, 200);
	assert_int_equal(health_device(&n, "gpu-0")->sightings_len, 1);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_SUSPECT);
}

/* However often the driver repeats its report, of one fault or of several in turn, and with pauses of any length:
 * the device has stopped once. */
static void a_stream_of_what_stops_is_one_stop(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		health_xid(&n, 119, "gpu-0");
		health_step(&n, 4 * HF_SECOND);
	}
	for (int i = 0; i < 30; i++) {
		health_xid(&n, i % 3 == 0 ? 119 : 62, "gpu-0");
		health_step(&n, 2 * HF_MINUTE);
	}
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 119)->cls, HF_HEALTH_GPU_RESET);
	assert_int_equal(health_device(&n, "gpu-0")->fatals_len, 1);
}

static void another_witness_is_no_second_time(void **state)
{
	(void)state;
	health_xid(&n, 62, "gpu-0");
	health_xid(&n, 62, "gpu-0")->source = HF_HEALTH_BY_NVML;
	health_step(&n, HF_SECOND);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 62)->count, 1);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 62)->sources, 3);
}

/* A call of the library that hangs delays NVML's events: NVML reports the Xid of the kernel's line again half a
 * minute later. */
static void a_late_witness_is_no_second_time(void **state)
{
	(void)state;
	health_xid(&n, 78, "gpu-0");
	health_step(&n, HF_SECOND);
	health_xid(&n, 78, "gpu-0")->source = HF_HEALTH_BY_NVML;
	health_step(&n, 30 * HF_SECOND);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 78)->last,
			 n.now - 30 * HF_SECOND);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 78)->count, 1);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 78)->sources, 3);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_SUSPECT);
	/* By then it is another one. */
	health_step(&n, HF_MINUTE);
	health_xid(&n, 78, "gpu-0")->source = HF_HEALTH_BY_NVML;
	health_step(&n, HF_SECOND);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 78)->count, 2);
}

static void a_late_witness_opens_nothing_that_the_driver_got_over(void **state)
{
	(void)state;
	health_xid(&n, 48, "gpu-0");
	health_step(&n, HF_SECOND);
	health_xid(&n, 0, "gpu-0")->verb = HF_HEALTH_RECOVERED;
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_PROBATION);
	health_xid(&n, 48, "gpu-0")->source = HF_HEALTH_BY_NVML;
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_PROBATION);
	/* The log tells of the next. */
	health_xid(&n, 48, "gpu-0");
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_UNHEALTHY);
}

static void severities_of_one_link_are_two_faults(void **state)
{
	(void)state;
	health_xid(&n, 149, "gpu-0")->severity = HF_HEALTH_NONFATAL;
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_HEALTHY);
	health_xid(&n, 149, "gpu-0")->severity = HF_HEALTH_FATAL;
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_UNHEALTHY);
	assert_int_equal(health_device(&n, "gpu-0")->faults_len, 2);
}

static void a_program_that_fails_twice_in_unknown_places_condemns_no_device(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		health_xid(&n, 13, "gpu-0");
		health_step(&n, HF_HOUR);
	}
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_HEALTHY);
}

static void bursts_count_once(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		health_xid(&n, 31, "gpu-0");
		health_step(&n, HF_MINUTE);
	}
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 31)->cls, HF_HEALTH_APP);
	health_step(&n, 4 * HF_MINUTE);
	health_xid(&n, 31, "gpu-0");
	health_step(&n, 0);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 31)->cls, HF_HEALTH_DEGRADED);
}

static void a_repeat_after_a_day_is_a_first_time(void **state)
{
	(void)state;
	health_xid(&n, 31, "gpu-0");
	health_step(&n, HF_HOUR);
	health_xid(&n, 31, "gpu-0");
	health_step(&n, 25 * HF_HOUR);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 31)->cls, HF_HEALTH_APP);
}

/* After five stops within a day the fault needs a person, also when the first of these stops are longer than a day
 * ago. */
static void what_was_escalated_stays_so(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		health_xid(&n, 62, "gpu-0");
		health_step(&n, HF_HOUR);
	}
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 62)->cls, HF_HEALTH_SUPPORT);
	health_xid(&n, 62, "gpu-0");
	health_step(&n, 25 * HF_HOUR);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 62)->cls, HF_HEALTH_SUPPORT);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 62)->action,
			 HF_HEALTH_REPLACE_NODE);
}

/* The agent did not run for hours and reads the log of that time in one step. */
static void stops_that_are_told_in_one_step_are_as_many(void **state)
{
	(void)state;
	n.now += HF_DAY;
	for (int i = 5; i > 0; i--) {
		health_xid(&n, 62, "gpu-0");
		n.evidence[n.evidence_len - 1].at = n.now - i * HF_HOUR;
	}
	health_step(&n, 0);
	assert_int_equal(health_device(&n, "gpu-0")->fatals_len, 5);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 62)->cls, HF_HEALTH_SUPPORT);
}

static void link_error(void)
{
	struct hf_health_evidence *e = health_xid(&n, 74, "gpu-1");

	e->has_word = true;
	e->word = 0x10;
	snprintf(e->unit, sizeof(e->unit), "link 3");
}

/* The second link error within a day stops its device.  The stop is undone when the loss of another device explains the
 * error, in the same step or in a later one. */
static void a_link_of_a_loss_is_no_stop_in_whatever_step_it_is_told(void **state)
{
	(void)state;
	link_error();
	health_step(&n, 0);
	health_step(&n, HF_HOUR);
	link_error();
	health_step(&n, 0);
	assert_int_equal(health_device(&n, "gpu-1")->fatals_len, 1);
	health_xid(&n, 79, "gpu-0")->at = n.now + HF_SECOND;
	link_error();
	health_step(&n, 3 * HF_SECOND);
	assert_true(health_fault(&n, "gpu-1", HF_HEALTH_XID, 74)->of_loss);
	assert_int_equal(health_device(&n, "gpu-1")->fatals_len, 0);
}

static void a_consequence_that_is_late_is_its_own(void **state)
{
	(void)state;
	health_xid(&n, 62, "gpu-0");
	health_step(&n, HF_SECOND);
	health_xid(&n, 45, "gpu-0");
	health_step(&n, 6 * HF_SECOND);
	assert_false(health_fault(&n, "gpu-0", HF_HEALTH_XID, 45)->attached);
	health_xid(&n, 62, "gpu-0");
	health_xid(&n, 45, "gpu-0");
	health_step(&n, HF_MINUTE);
	assert_true(health_fault(&n, "gpu-0", HF_HEALTH_XID, 45)->attached);
}

/* A fault that a table of rules leaves out, or calls mild, is not made graver because it has one witness. */
static void a_table_that_has_no_lost_bus_makes_nothing_of_it(void **state)
{
	static const struct hf_health_rule none[] = {
		{.detector = HF_HEALTH_XID, .code_min = 43, .code_max = 43, .subcode = -1},
	};
	const struct hf_health_rules rules = {.items = none, .len = 1};

	(void)state;
	n.config.rules = &rules;
	for (int i = 0; i < 4; i++) {
		health_sample(&n, HF_HEALTH_BUSLOST, "gpu-0")->bus.lost = true;
		health_step(&n, 30 * HF_SECOND);
	}
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_HEALTHY);
}

/* Link and loss may be reported in either order.  A link's fault from before the loss does not follow from it, nor
 * does a fault that remains after the loss. */
static void links_to_a_lost_device_follow_from_its_loss(void **state)
{
	(void)state;
	health_xid(&n, 74, "gpu-3");
	health_step(&n, HF_SECOND);
	health_xid(&n, 74, "gpu-1");
	health_step(&n, 20 * HF_SECOND);
	assert_false(health_fault(&n, "gpu-1", HF_HEALTH_XID, 74)->of_loss);
	health_xid(&n, 79, "gpu-0");
	health_step(&n, 3 * HF_SECOND);
	assert_true(health_fault(&n, "gpu-1", HF_HEALTH_XID, 74)->of_loss);
	assert_false(health_fault(&n, "gpu-3", HF_HEALTH_XID, 74)->of_loss);
	health_xid(&n, 74, "gpu-2");
	health_step(&n, HF_MINUTE);
	assert_true(health_fault(&n, "gpu-2", HF_HEALTH_XID, 74)->of_loss);
	assert_false(health_fault(&n, "gpu-0", HF_HEALTH_BUSLOST, 79)->of_loss);
	health_order(&n, HF_HEALTH_ORDER_CLEAR, HF_HEALTH_RECORD, "gpu-0");
	health_step(&n, HF_SECOND);
	assert_false(health_fault(&n, "gpu-1", HF_HEALTH_XID, 74)->of_loss);
	health_xid(&n, 79, "gpu-0");
	health_step(&n, HF_SECOND);
	health_xid(&n, 74, "gpu-3");
	health_step(&n, 61 * HF_SECOND);
	assert_false(health_fault(&n, "gpu-3", HF_HEALTH_XID, 74)->of_loss);
}

static void lines_about_devices_that_are_not_ours_make_none(void **state)
{
	struct hf_health_evidence *e = health_xid(&n, 1, "0000:99:00.0");

	(void)state;
	e->detector = HF_HEALTH_AER;
	e->severity = HF_HEALTH_FATAL;
	health_step(&n, HF_SECOND);
	assert_null(hf_health_memory_find(&n.memory, "0000:99:00.0"));
}

static void times_keep_the_newest_within_their_window(void **state)
{
	hf_time times[3] = {0};
	uint32_t len = 0;

	(void)state;
	for (hf_time t = 1; t <= 5; t++)
		hf_health_times_add(times, &len, 3, t, 0);
	assert_int_equal(len, 3);
	assert_int_equal(times[0], 3);
	hf_health_times_add(times, &len, 3, 9, 5);
	assert_int_equal(len, 2);
	assert_int_equal(times[0], 5);
	assert_int_equal(times[2], 0);
}

/* A loss of a neighbour takes more links than a device has room for faults.  The device's own fault is still kept,
 * and a further fault of a link replaces no other fault. */
static void what_follows_hides_no_fault_of_its_own(void **state)
{
	(void)state;
	health_xid(&n, 79, "gpu-0");
	for (int i = 0; i <= HF_HEALTH_FAULTS_MAX; i++)
		snprintf(health_xid(&n, 74, "gpu-1")->unit, HF_HEALTH_UNIT_MAX, "link %d", i);
	health_step(&n, 20 * HF_SECOND);
	assert_true(health_fault(&n, "gpu-1", HF_HEALTH_XID, 74)->of_loss);
	assert_int_equal(n.memory.faults_dropped, 1);
	snprintf(health_xid(&n, 74, "gpu-1")->unit, HF_HEALTH_UNIT_MAX, "link 99");
	health_step(&n, HF_SECOND);
	for (size_t i = 0; i < HF_HEALTH_FAULTS_MAX; i++)
		assert_string_not_equal(health_device(&n, "gpu-1")->faults[i].unit, "link 99");
	n.memory.faults_dropped = 1;
	health_xid(&n, 119, "gpu-1");
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-1")->state, HF_HEALTH_UNHEALTHY);
	assert_int_equal(n.memory.faults_dropped, 2);
}

/* If one fault is found to be a program's, the stops of other faults of the device stay counted. */
static void a_program_that_is_forgiven_takes_no_stop_with_it(void **state)
{
	(void)state;
	health_xid(&n, 31, "gpu-1");
	health_xid(&n, 31, "gpu-0");
	health_step(&n, 4 * HF_MINUTE);
	health_xid(&n, 119, "gpu-0");
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-0")->fatals_len, 1);
	health_xid(&n, 31, "gpu-0");
	health_step(&n, HF_SECOND);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 31)->cls, HF_HEALTH_APP);
	assert_int_equal(health_device(&n, "gpu-0")->fatals_len, 1);
}

/* Lines that are read at once have one time.  Xid 78 twice within five minutes is confirmed, whether or not a
 * program's Xid is forgiven. */
static void a_program_that_is_forgiven_takes_one_sighting_and_no_others(void **state)
{
	(void)state;
	health_xid(&n, 31, "gpu-1");
	health_xid(&n, 31, "gpu-0");
	health_step(&n, HF_SECOND);
	for (int i = 0; i < 2; i++) {
		health_xid(&n, 31, "gpu-0");
		health_xid(&n, 78, "gpu-0");
		health_step(&n, 4 * HF_MINUTE);
		assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 31)->cls, HF_HEALTH_APP);
		assert_int_equal(health_device(&n, "gpu-0")->sightings_len, i + 1);
	}
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_DEGRADED_STATE);
}

/* With a table of rules in which a program's Xid stops the device if it comes again, and one stop needs a person. */
static void a_program_that_is_forgiven_leaves_nothing_of_its_own(void **state)
{
	static const struct hf_health_rule rule[] = {
		{.detector = HF_HEALTH_XID,
		 .code_min = 31,
		 .code_max = 31,
		 .subcode = -1,
		 .cls = HF_HEALTH_GPU_RESET,
		 .action = HF_HEALTH_RESET_DEVICE,
		 .clear = HF_HEALTH_BY_SIGNAL,
		 .count = 2,
		 .window = HF_DAY,
		 .burst = HF_SECOND,
		 .below = HF_HEALTH_APP},
	};
	const struct hf_health_rules rules = {
		.items = rule, .len = 1, .escalate_count = 1, .escalate_window = HF_DAY};
	const struct hf_health_fault *f;

	(void)state;
	n.config.rules = &rules;
	for (int i = 0; i < 3; i++) {
		health_xid(&n, 31, "gpu-0");
		health_step(&n, HF_MINUTE);
	}
	f = health_fault(&n, "gpu-0", HF_HEALTH_XID, 31);
	assert_true(f->raised && f->confirmed);
	assert_int_equal(health_device(&n, "gpu-0")->fatals_len, 1);
	assert_int_equal(health_device(&n, "gpu-0")->sightings_len, 2);
	health_xid(&n, 31, "gpu-1");
	health_step(&n, HF_SECOND);
	f = health_fault(&n, "gpu-0", HF_HEALTH_XID, 31);
	assert_int_equal(f->cls, HF_HEALTH_APP);
	assert_false(f->raised || f->confirmed);
	assert_int_equal(health_device(&n, "gpu-0")->fatals_len, 0);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_PROBATION);
}

/* A request of the driver is one stop until it ends, however long the pauses between the measurements are. */
static void what_the_driver_asks_for_is_one_stop(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++) {
		health_sample(&n, HF_HEALTH_RECOVERY, "gpu-0")->recovery.action = 1;
		health_step(&n, 4 * HF_MINUTE);
	}
	assert_int_equal(health_device(&n, "gpu-0")->fatals_len, 1);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_RECOVERY, 1)->cls,
			 HF_HEALTH_GPU_RESET);
}

/* The fault counted several times as the device's own.  Then a neighbour has it too, so a program causes it. */
static void a_program_that_is_forgiven_leaves_no_sighting(void **state)
{
	(void)state;
	health_xid(&n, 31, "gpu-0");
	health_step(&n, HF_SECOND);
	for (int i = 0; i < 3; i++) {
		health_xid(&n, 31, "gpu-0");
		health_step(&n, i > 0 ? 20 * HF_SECOND : 4 * HF_MINUTE);
	}
	health_xid(&n, 31, "gpu-1");
	health_step(&n, HF_SECOND);
	assert_int_equal(health_fault(&n, "gpu-0", HF_HEALTH_XID, 31)->cls, HF_HEALTH_APP);
	health_xid(&n, 78, "gpu-0");
	health_step(&n, HF_SECOND);
	assert_false(health_fault(&n, "gpu-0", HF_HEALTH_XID, 78)->confirmed);
}

/* As where the agent was away. */
static void programs_of_one_step_are_forgiven_together(void **state)
{
	(void)state;
	health_xid(&n, 31, "gpu-0");
	health_xid(&n, 31, "gpu-1");
	health_step(&n, 4 * HF_MINUTE);
	for (int i = 0; i < 3; i++) {
		health_xid(&n, 31, "gpu-0")->at = n.now + i * 20 * HF_SECOND;
		health_xid(&n, 31, "gpu-1")->at = n.now + i * 20 * HF_SECOND;
	}
	health_step(&n, HF_MINUTE);
	health_xid(&n, 78, "gpu-0");
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_SUSPECT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_flood_is_one_fault_and_one_sighting),
		TEST(a_stream_of_what_stops_is_one_stop),
		TEST(another_witness_is_no_second_time),
		TEST(a_late_witness_is_no_second_time),
		TEST(a_late_witness_opens_nothing_that_the_driver_got_over),
		TEST(severities_of_one_link_are_two_faults),
		TEST(a_program_that_fails_twice_in_unknown_places_condemns_no_device),
		TEST(bursts_count_once),
		TEST(a_repeat_after_a_day_is_a_first_time),
		TEST(what_was_escalated_stays_so),
		TEST(stops_that_are_told_in_one_step_are_as_many),
		TEST(a_link_of_a_loss_is_no_stop_in_whatever_step_it_is_told),
		TEST(a_consequence_that_is_late_is_its_own),
		TEST(a_table_that_has_no_lost_bus_makes_nothing_of_it),
		TEST(links_to_a_lost_device_follow_from_its_loss),
		TEST(lines_about_devices_that_are_not_ours_make_none),
		TEST(times_keep_the_newest_within_their_window),
		TEST(what_follows_hides_no_fault_of_its_own),
		TEST(a_program_that_is_forgiven_leaves_no_sighting),
		TEST(programs_of_one_step_are_forgiven_together),
		TEST(a_program_that_is_forgiven_takes_no_stop_with_it),
		TEST(a_program_that_is_forgiven_leaves_nothing_of_its_own),
		TEST(what_the_driver_asks_for_is_one_stop),
		TEST(a_program_that_is_forgiven_takes_one_sighting_and_no_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
