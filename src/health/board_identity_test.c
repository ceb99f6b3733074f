/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/health.h"

#include "base/str.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

#define BOARDS 3

static struct health_node n;

static void name(int device, const char *id, const char *uuid)
{
	struct hf_health_presence *p = &n.devices[device];

	*p = (struct hf_health_presence){.kind = HF_HEALTH_GPU};
	snprintf(p->id, sizeof(p->id), "%s", id);
	snprintf(p->uuid, sizeof(p->uuid), "%s", uuid);
}

/* Names all boards at these addresses. If `driver` is true, the names include the UUIDs. */
static void name_all(const char *const ids[BOARDS], bool driver)
{
	static const char *const boards[BOARDS] = {"GPU-A", "GPU-B", "GPU-C"};

	for (int i = 0; i < BOARDS; i++)
		name(i, ids[i], driver ? boards[i] : "");
}

static const char *const first[BOARDS] = {"gpu-0", "gpu-1", "gpu-2"};
static const char *const moved[BOARDS] = {"gpu-7", "gpu-8", "gpu-9"};

/* Boards A, B and C are at gpu-0, gpu-1 and gpu-2; B has failed for good. */
static int setup(void **state)
{
	(void)state;
	health_init(&n, BOARDS, 0);
	name_all(first, true);
	health_step(&n, HF_SECOND);
	health_sample(&n, HF_HEALTH_ECC, "gpu-1")->ecc.remap_known = true;
	n.samples[n.samples_len - 1].ecc.failed = true;
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-1")->state, HF_HEALTH_UNHEALTHY);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	health_release(&n);
	return 0;
}

static void boot(const char *id)
{
	n.boot = id;
	n.boot_at = n.now + HF_SECOND;
	n.now += HF_MINUTE;
}

static void is(const char *id, const char *uuid, enum hf_health_state state)
{
	const struct hf_health_device *d = health_device(&n, id);

	if (!hf_streq(d->uuid, uuid) || d->state != state)
		fail_msg("%s is %s, %s", id, d->uuid, hf_health_state_name(d->state));
	assert_ptr_equal(hf_health_memory_find(&n.memory, uuid), d);
}

static void a_board_at_another_address_is_what_it_was(void **state)
{
	(void)state;
	boot("second");
	name_all(moved, true);
	health_step(&n, HF_SECOND);
	is("gpu-7", "GPU-A", HF_HEALTH_HEALTHY);
	is("gpu-8", "GPU-B", HF_HEALTH_UNHEALTHY);
	is("gpu-9", "GPU-C", HF_HEALTH_HEALTHY);
	assert_int_equal(n.memory.devices_len, 1 + BOARDS);
	assert_non_null(health_fault(&n, "gpu-8", HF_HEALTH_ECC, HF_HEALTH_CODE_REMAP_FAILED));
}

static void boards_that_changed_places_keep_what_they_were(void **state)
{
	/* For each order of boards: which of the three addresses has A, B and C, as far as there are boards. */
	static const char *const orders[][BOARDS] = {
		{"gpu-0", "gpu-2", "gpu-1"}, {"gpu-1", "gpu-0", "gpu-2"},
		{"gpu-2", "gpu-1", "gpu-0"}, {"gpu-1", "gpu-2", "gpu-0"},
		{"gpu-2", "gpu-0", "gpu-1"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(orders); i++) {
		if (i > 0) {
			health_release(&n);
			setup(state);
		}
		boot("second");
		name_all(orders[i], true);
		health_step(&n, HF_SECOND);
		is(orders[i][0], "GPU-A", HF_HEALTH_HEALTHY);
		is(orders[i][1], "GPU-B", HF_HEALTH_UNHEALTHY);
		is(orders[i][2], "GPU-C", HF_HEALTH_HEALTHY);
		assert_int_equal(n.memory.devices_len, 1 + BOARDS);
	}
}

/* The bus names the addresses at once; the driver tells the boards' UUIDs a little later. */
static void what_was_found_before_the_driver_spoke_is_the_addresses(void **state)
{
	(void)state;
	boot("second");
	name_all(first, false);
	health_xid(&n, 48, "gpu-2");
	health_step(&n, HF_SECOND);
	is("gpu-1", "GPU-B", HF_HEALTH_UNHEALTHY);
	name(1, "gpu-1", "GPU-C");
	name(2, "gpu-2", "GPU-B");
	health_step(&n, HF_SECOND);
	assert_string_equal(health_device(&n, "gpu-2")->uuid, "GPU-B");
	assert_non_null(health_fault(&n, "gpu-2", HF_HEALTH_XID, 48));
	assert_non_null(health_fault(&n, "gpu-2", HF_HEALTH_ECC, HF_HEALTH_CODE_REMAP_FAILED));
	assert_int_equal(health_device(&n, "gpu-2")->state, HF_HEALTH_UNHEALTHY);
	assert_null(health_fault(&n, "gpu-1", HF_HEALTH_XID, 48));
	assert_null(health_fault(&n, "gpu-1", HF_HEALTH_ECC, HF_HEALTH_CODE_REMAP_FAILED));
	assert_int_not_equal(health_device(&n, "gpu-1")->state, HF_HEALTH_UNHEALTHY);
}

static void what_was_suspected_before_the_driver_spoke_stays_so(void **state)
{
	(void)state;
	boot("second");
	name(0, "gpu-7", "");
	health_step(&n, HF_SECOND);
	health_xid(&n, 78, "gpu-7");
	health_step(&n, HF_SECOND);
	health_xid(&n, 78, "gpu-7");
	health_step(&n, 10 * HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-7")->state, HF_HEALTH_DEGRADED_STATE);
	name(0, "gpu-7", "GPU-A");
	health_step(&n, HF_SECOND);
	is("gpu-7", "GPU-A", HF_HEALTH_DEGRADED_STATE);
	assert_true(health_fault(&n, "gpu-7", HF_HEALTH_XID, 78)->open);
}

static void a_board_on_probation_gets_no_further_with_what_is_seen_at_its_address(void **state)
{
	(void)state;
	health_xid(&n, 48, "gpu-0");
	health_step(&n, HF_SECOND);
	boot("second");
	name(0, "gpu-7", "");
	health_step(&n, HF_SECOND);
	health_xid(&n, 78, "gpu-7");
	health_step(&n, HF_SECOND);
	name(0, "gpu-7", "GPU-A");
	health_step(&n, HF_SECOND);
	is("gpu-7", "GPU-A", HF_HEALTH_SUSPECT);
	/* The state Suspect ends without new evidence, as always. */
	for (int i = 0; i < 30; i++)
		health_step(&n, HF_MINUTE);
	is("gpu-7", "GPU-A", HF_HEALTH_HEALTHY);
}

static void the_worst_is_kept_where_there_is_no_room_for_all(void **state)
{
	(void)state;
	boot("second");
	name(1, "gpu-7", "");
	health_step(&n, HF_SECOND);
	for (int i = 0; i < HF_HEALTH_FAULTS_MAX; i++) {
		struct hf_health_evidence *e = health_xid(&n, 13, "gpu-7");

		snprintf(e->unit, sizeof(e->unit), "GPC %d", i);
	}
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-7")->faults_len, HF_HEALTH_FAULTS_MAX);
	name(1, "gpu-7", "GPU-B");
	health_step(&n, HF_SECOND);
	is("gpu-7", "GPU-B", HF_HEALTH_UNHEALTHY);
	assert_non_null(health_fault(&n, "gpu-7", HF_HEALTH_ECC, HF_HEALTH_CODE_REMAP_FAILED));
	assert_int_equal(n.memory.faults_dropped, 1);
}

static void a_probation_that_the_restart_began_is_the_boards(void **state)
{
	(void)state;
	health_xid(&n, 48, "gpu-0");
	health_step(&n, HF_SECOND);
	boot("second");
	name_all(first, false);
	health_step(&n, HF_SECOND);
	is("gpu-0", "GPU-A", HF_HEALTH_PROBATION);
	name(0, "gpu-0", "GPU-C");
	name(2, "gpu-2", "GPU-A");
	health_step(&n, HF_SECOND);
	is("gpu-0", "GPU-C", HF_HEALTH_HEALTHY);
	is("gpu-2", "GPU-A", HF_HEALTH_PROBATION);
}

/* All boards moved; the bus named the addresses first, and one board was sick before the driver told the UUIDs. */
static void an_address_without_a_board_is_forgotten(void **state)
{
	(void)state;
	boot("second");
	name_all(moved, false);
	health_xid(&n, 48, "gpu-7");
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-7")->state, HF_HEALTH_UNHEALTHY);
	name_all(moved, true);
	health_step(&n, HF_SECOND);
	is("gpu-7", "GPU-A", HF_HEALTH_UNHEALTHY);
	is("gpu-8", "GPU-B", HF_HEALTH_UNHEALTHY);
	is("gpu-9", "GPU-C", HF_HEALTH_HEALTHY);
	assert_int_equal(n.memory.devices_len, 1 + BOARDS);
}

/* The device was sick before the driver told the UUIDs, and is on probation since then. */
static void what_an_address_was_in_this_boot_it_stays(void **state)
{
	(void)state;
	boot("second");
	name(0, "gpu-7", "");
	health_step(&n, HF_SECOND);
	health_xid(&n, 62, "gpu-7");
	health_step(&n, HF_SECOND);
	health_xid(&n, 0, "gpu-7")->verb = HF_HEALTH_RECOVERED;
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-7")->state, HF_HEALTH_PROBATION);
	name(0, "gpu-7", "GPU-A");
	health_step(&n, HF_SECOND);
	is("gpu-7", "GPU-A", HF_HEALTH_PROBATION);
	assert_int_equal(health_device(&n, "gpu-7")->fatals_len, 1);
}

/* The driver reports the board at another address while the node runs: its history moves with the next start. */
static void a_board_that_moved_in_its_boot_has_its_history_in_the_next(void **state)
{
	(void)state;
	name(1, "gpu-5", "GPU-B");
	health_step(&n, HF_SECOND);
	boot("second");
	health_step(&n, HF_SECOND);
	is("gpu-5", "GPU-B", HF_HEALTH_UNHEALTHY);
	assert_int_equal(n.memory.devices_len, 1 + BOARDS);
}

/* A person exchanged the card; the new card has the old card's state until the person acknowledges the repair. */
static void an_unknown_board_has_what_its_address_had(void **state)
{
	(void)state;
	boot("second");
	name(1, "gpu-1", "GPU-D");
	health_step(&n, HF_SECOND);
	is("gpu-1", "GPU-D", HF_HEALTH_UNHEALTHY);
}

/* No detector saw the board when its node went down, so the board's state is Unknown then. */
static void a_board_that_was_unknown_keeps_its_history_at_another_address(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		health_xid(&n, 48, "gpu-0");
		health_step(&n, HF_HOUR);
		health_xid(&n, 154, "gpu-0")->verb = HF_HEALTH_RECOVERED;
		health_step(&n, HF_MINUTE);
	}
	n.memory.devices[1].state = HF_HEALTH_UNKNOWN;
	assert_int_equal(health_device(&n, "gpu-0")->fatals_len, 4);
	boot("second");
	name(0, "gpu-7", "GPU-A");
	health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-7")->fatals_len, 4);
}

/* A new card in front moves all addresses by one; so the new card has the address of a known board. */
static void an_unknown_board_takes_nothing_from_a_present_one(void **state)
{
	(void)state;
	boot("second");
	n.devices_len = BOARDS + 1;
	name(0, "gpu-0", "GPU-A");
	name(1, "gpu-1", "GPU-N");
	name(2, "gpu-2", "GPU-B");
	name(3, "gpu-3", "GPU-C");
	health_step(&n, HF_SECOND);
	is("gpu-0", "GPU-A", HF_HEALTH_HEALTHY);
	is("gpu-1", "GPU-N", HF_HEALTH_HEALTHY);
	is("gpu-2", "GPU-B", HF_HEALTH_UNHEALTHY);
	is("gpu-3", "GPU-C", HF_HEALTH_HEALTHY);
	assert_int_equal(n.memory.devices_len, 1 + BOARDS + 1);
}

static void a_board_that_is_named_elsewhere_in_this_boot_moves_nothing_twice(void **state)
{
	uint64_t generation;

	(void)state;
	name(1, "gpu-5", "GPU-B");
	health_step(&n, HF_SECOND);
	generation = health_device(&n, "gpu-5")->generation;
	for (int i = 0; i < 3; i++) {
		health_step(&n, HF_SECOND);
		assert_int_equal(health_device(&n, "gpu-1")->state, HF_HEALTH_UNHEALTHY);
		assert_false(n.plan.changed);
	}
	assert_int_equal(health_device(&n, "gpu-5")->generation, generation);
}

static void one_name_for_two_moves_nothing(void **state)
{
	(void)state;
	name(0, "gpu-0", "GPU-B");
	for (int i = 0; i < 3; i++)
		health_step(&n, HF_SECOND);
	assert_int_equal(health_device(&n, "gpu-0")->state, HF_HEALTH_HEALTHY);
	assert_int_equal(health_device(&n, "gpu-1")->state, HF_HEALTH_UNHEALTHY);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_board_at_another_address_is_what_it_was),
		T(boards_that_changed_places_keep_what_they_were),
		T(what_was_found_before_the_driver_spoke_is_the_addresses),
		T(what_was_suspected_before_the_driver_spoke_stays_so),
		T(a_board_on_probation_gets_no_further_with_what_is_seen_at_its_address),
		T(the_worst_is_kept_where_there_is_no_room_for_all),
		T(a_probation_that_the_restart_began_is_the_boards),
		T(an_address_without_a_board_is_forgotten),
		T(what_an_address_was_in_this_boot_it_stays),
		T(a_board_that_moved_in_its_boot_has_its_history_in_the_next),
		T(an_unknown_board_has_what_its_address_had),
		T(a_board_that_was_unknown_keeps_its_history_at_another_address),
		T(an_unknown_board_takes_nothing_from_a_present_one),
		T(a_board_that_is_named_elsewhere_in_this_boot_moves_nothing_twice),
		T(one_name_for_two_moves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
