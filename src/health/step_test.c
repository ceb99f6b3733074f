/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/step.h"

#include "base/str.h"
#include "harness/health_plan_text.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVIDENCE 12

static struct hf_arena *arenas[2];
static int turn;
static struct hf_health_memory memory;
static struct hf_health_plan plan;
static struct hf_health_input input;
static struct hf_health_evidence evidence[EVIDENCE];
static struct hf_health_presence devices[3];
static struct hf_health_config config;
static const struct hf_health_heard heard = {.detector = HF_HEALTH_XID, .at = 100 * HF_DAY};
static const struct hf_health_heard heard_later = {.detector = HF_HEALTH_XID,
						   .at = 100 * HF_DAY + HF_HOUR};

static int setup(void **state)
{
	(void)state;
	arenas[0] = hf_arena_create((size_t)64 << 20);
	arenas[1] = hf_arena_create((size_t)64 << 20);
	config = hf_health_config_default;
	hf_health_memory_init(&memory);
	memset(devices, 0, sizeof(devices));
	for (int i = 0; i < 3; i++) {
		devices[i].kind = HF_HEALTH_GPU;
		snprintf(devices[i].id, sizeof(devices[i].id), "0000:0%d:00.0", i);
		snprintf(devices[i].uuid, sizeof(devices[i].uuid), "GPU-%d", i);
	}
	memset(&input, 0, sizeof(input));
	input.now = 100 * HF_DAY;
	input.boot_at = HF_TIME_NONE;
	snprintf(input.boot_id, sizeof(input.boot_id), "boot");
	input.devices = devices;
	input.devices_len = 3;
	input.heard = &heard;
	input.heard_len = 1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hf_arena_destroy(arenas[0]);
	hf_arena_destroy(arenas[1]);
	return 0;
}

static void step(void)
{
	struct hf_error err = {0};

	turn = !turn;
	hf_arena_reset(arenas[turn]);
	assert_ok(hf_health_step(&memory, &input, &config, arenas[turn], &plan, &err), &err);
	assert_null(hf_health_memory_problem(&plan.memory));
	memory = plan.memory;
}

static void see(int i, int code, int device)
{
	evidence[i] = hf_health_evidence_none();
	evidence[i].detector = HF_HEALTH_XID;
	evidence[i].code = code;
	evidence[i].at = input.now;
	evidence[i].seq = (uint64_t)i;
	memcpy(evidence[i].device, devices[device].id, sizeof(evidence[i].device));
}

static enum hf_health_state state_of(int device)
{
	return hf_health_memory_find(&memory, devices[device].uuid)->state;
}

/* After a start of the agent, sysfs names the device at once, and the driver's library names it later, or never if
 * it hangs. */
static void a_name_that_is_not_said_again_yet_stays(void **state)
{
	(void)state;
	step();
	memset(devices[0].uuid, 0, sizeof(devices[0].uuid));
	step();
	assert_string_equal(hf_health_memory_find(&memory, devices[0].id)->uuid, "GPU-0");
	snprintf(devices[0].uuid, sizeof(devices[0].uuid), "GPU-9");
	step();
	assert_string_equal(hf_health_memory_find(&memory, devices[0].id)->uuid, "GPU-9");
	snprintf(input.boot_id, sizeof(input.boot_id), "second");
	memset(devices[0].uuid, 0, sizeof(devices[0].uuid));
	step();
	assert_string_equal(hf_health_memory_find(&memory, devices[0].id)->uuid, "GPU-9");
}

static void the_same_input_in_any_order_gives_the_same_bytes(void **state)
{
	struct hf_strbuf first = HF_STRBUF_INIT(1 << 20), again = HF_STRBUF_INIT(1 << 20);
	struct hf_health_evidence swap;
	struct hf_health_memory begin;
	uint64_t seed = 7;

	(void)state;
	step();
	begin = memory;
	for (int i = 0; i < EVIDENCE; i++)
		see(i, (int[]){13, 62, 45, 79, 31, 119}[i % 6], i % 3);
	input.evidence = evidence;
	input.evidence_len = EVIDENCE;
	for (int round = 0; round < 20; round++) {
		struct hf_arena *arena = hf_arena_create((size_t)64 << 20);
		struct hf_error err = {0};

		assert_ok(hf_health_step(&begin, &input, &config, arena, &plan, &err), &err);
		hf_strbuf_clear(&again);
		hf_health_plan_render(&plan, 0, &again);
		if (round == 0)
			hf_strbuf_addstr(&first, again.data);
		assert_string_equal(first.data, again.data);
		hf_arena_destroy(arena);
		for (int i = EVIDENCE - 1; i > 0; i--) {
			int k = (int)((seed = seed * 6364136223846793005u + 1) >> 33) % (i + 1);

			swap = evidence[i];
			evidence[i] = evidence[k];
			evidence[k] = swap;
		}
	}
	hf_strbuf_release(&first);
	hf_strbuf_release(&again);
}

static void devices_and_samples_may_come_in_any_order_too(void **state)
{
	struct hf_strbuf texts[2] = {HF_STRBUF_INIT(1 << 20), HF_STRBUF_INIT(1 << 20)};
	struct hf_health_sample samples[4], swap;
	struct hf_health_presence first;

	(void)state;
	memset(samples, 0, sizeof(samples));
	for (int i = 0; i < 4; i++) {
		samples[i].detector = HF_HEALTH_ECC;
		samples[i].supported = true;
		samples[i].at = input.now;
		samples[i].ecc.uncorrectable = (uint64_t)(i * 7 % 4);
		memcpy(samples[i].device, devices[i % 2].id, sizeof(samples[i].device));
	}
	input.samples = samples;
	input.samples_len = 4;
	for (int round = 0; round < 2; round++) {
		hf_health_memory_init(&memory);
		step();
		hf_health_plan_render(&plan, 0, &texts[round]);
		for (int i = 0; i < 2; i++) {
			swap = samples[i];
			samples[i] = samples[3 - i];
			samples[3 - i] = swap;
		}
		first = devices[0];
		devices[0] = devices[2];
		devices[2] = first;
	}
	assert_string_equal(texts[0].data, texts[1].data);
	hf_strbuf_release(&texts[0]);
	hf_strbuf_release(&texts[1]);
}

static void nothing_new_changes_nothing(void **state)
{
	(void)state;
	step();
	assert_true(plan.changed && plan.write_conditions && plan.write_devices);
	input.now += HF_SECOND;
	step();
	assert_false(plan.changed || plan.write_conditions || plan.write_devices);
	assert_int_equal(plan.moves_len + plan.events_len, 0);
	assert_true(plan.wake_at > input.now);
}

static void time_does_not_go_back(void **state)
{
	hf_time before;

	(void)state;
	step();
	before = memory.now;
	input.now -= HF_DAY;
	step();
	assert_int_equal(memory.now, before);
	assert_int_equal(plan.moves_len, 0);
}

static void evidence_names_a_device_by_uuid_or_makes_it(void **state)
{
	(void)state;
	see(0, 62, 0);
	snprintf(evidence[0].device, sizeof(evidence[0].device), "GPU-1");
	see(1, 62, 0);
	snprintf(evidence[1].device, sizeof(evidence[1].device), "0000:ff:00.0");
	input.evidence = evidence;
	input.evidence_len = 2;
	step();
	assert_int_equal(hf_health_memory_find(&memory, "GPU-1")->faults_len, 1);
	assert_non_null(hf_health_memory_find(&memory, "0000:ff:00.0"));
	assert_null(hf_health_memory_find(&memory, "0000:fe:00.0"));
}

static void more_devices_than_there_can_be_are_counted_and_dropped(void **state)
{
	(void)state;
	input.evidence = evidence;
	input.evidence_len = 1;
	for (int i = 0; i < HF_HEALTH_DEVICES_MAX + 10; i++) {
		see(0, 62, 0);
		snprintf(evidence[0].device, sizeof(evidence[0].device), "0001:%02x:00.0", i);
		step();
	}
	assert_int_equal(memory.devices_len, HF_HEALTH_DEVICES_MAX);
	assert_true(memory.faults_dropped > 0);
}

static void a_full_list_of_faults_keeps_what_matters(void **state)
{
	(void)state;
	see(0, 62, 0);
	input.evidence = evidence;
	input.evidence_len = 1;
	step();
	for (int i = 0; i < 100; i++) {
		see(0, 1000 + i, 0);
		step();
	}
	assert_int_equal(hf_health_memory_find(&memory, "GPU-0")->faults_len, HF_HEALTH_FAULTS_MAX);
	assert_int_equal(state_of(0), HF_HEALTH_UNHEALTHY);
	assert_int_equal(hf_health_device_class(hf_health_memory_find(&memory, "GPU-0")),
			 HF_HEALTH_GPU_RESET);
}

/* Promise 9: an agent that reads its journal goes on as if it had not been away. */
static void promise_9_a_crash_neither_clears_nor_raises(void **state)
{
	struct hf_arena *arena = hf_arena_create((size_t)64 << 20);
	struct hf_strbuf a = HF_STRBUF_INIT(1 << 20), b = HF_STRBUF_INIT(1 << 20);
	struct hf_health_memory *read;

	(void)state;
	see(0, 62, 0);
	see(1, 78, 1);
	input.evidence = evidence;
	input.evidence_len = 2;
	step();
	input.evidence_len = 0;
	read = hf_health_memory_copy(&memory, 0, arena);
	input.now += HF_HOUR;
	input.heard = &heard_later;
	step();
	hf_health_plan_render(&plan, 0, &a);
	memory = *read;
	step();
	hf_health_plan_render(&plan, 0, &b);
	assert_string_equal(a.data, b.data);
	assert_int_equal(state_of(0), HF_HEALTH_UNHEALTHY);
	hf_strbuf_release(&a);
	hf_strbuf_release(&b);
	hf_arena_destroy(arena);
}

static void a_journal_that_is_lost_is_unknown_and_not_healthy(void **state)
{
	(void)state;
	see(0, 62, 0);
	input.evidence = evidence;
	input.evidence_len = 1;
	step();
	hf_health_memory_init(&memory);
	input.evidence_len = input.heard_len = 0;
	step();
	assert_int_equal(state_of(0), HF_HEALTH_UNKNOWN);
}

static void another_table_of_rules_has_another_hash_and_judges_by_it(void **state)
{
	const struct hf_health_rule harmless = {.detector = HF_HEALTH_XID,
						.code_min = 62,
						.code_max = 62,
						.subcode = -1,
						.cls = HF_HEALTH_INFO};
	const struct hf_health_rules rules = {.items = &harmless, .len = 1};
	uint64_t before;

	(void)state;
	step();
	before = memory.rules_hash;
	config.rules = &rules;
	see(0, 62, 0);
	input.evidence = evidence;
	input.evidence_len = 1;
	step();
	assert_int_not_equal(memory.rules_hash, before);
	assert_int_equal(state_of(0), HF_HEALTH_HEALTHY);
}

static void what_cannot_be_is_refused(void **state)
{
	struct hf_error err = {0};

	(void)state;
	input.evidence_len = HF_HEALTH_INPUT_MAX + 1;
	assert_code(hf_health_step(&memory, &input, &config, arenas[0], &plan, &err),
		    HF_E_TOO_LARGE);
	input.evidence_len = 0;
	input.boot_id[0] = '\0';
	assert_code(hf_health_step(&memory, &input, &config, arenas[0], &plan, &err), HF_E_INVALID);
	assert_null(hf_health_config_problem(&hf_health_config_default));
	config.flap_fail = HF_HEALTH_FLAPS_MAX + 1;
	assert_non_null(hf_health_config_problem(&config));
	config = hf_health_config_default;
	config.age = 0;
	assert_non_null(hf_health_config_problem(&config));
	config = hf_health_config_default;
	config.rules = NULL;
	assert_non_null(hf_health_config_problem(&config));
}

static void a_memory_that_cannot_be_is_found(void **state)
{
	(void)state;
	step();
	assert_null(hf_health_memory_problem(&memory));
	memory.devices[1].state = (enum hf_health_state)99;
	assert_non_null(hf_health_memory_problem(&memory));
	memory.devices[1].state = HF_HEALTH_HEALTHY;
	memory.devices[1].faults_len = HF_HEALTH_FAULTS_MAX + 1;
	assert_non_null(hf_health_memory_problem(&memory));
	memory.devices[1].faults_len = 0;
	memset(memory.devices[2].uuid, 'x', sizeof(memory.devices[2].uuid));
	assert_non_null(hf_health_memory_problem(&memory));
	memset(memory.devices[2].uuid, 0, sizeof(memory.devices[2].uuid));
	memory.devices[0].id[0] = 'z';
	assert_non_null(hf_health_memory_problem(&memory));
	memory.devices[0].id[0] = '\0';
	assert_null(hf_health_memory_problem(&memory));
	memory.devices_len = HF_HEALTH_DEVICES_MAX + 1;
	assert_non_null(hf_health_memory_problem(&memory));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_name_that_is_not_said_again_yet_stays),
		TEST(the_same_input_in_any_order_gives_the_same_bytes),
		TEST(devices_and_samples_may_come_in_any_order_too),
		TEST(nothing_new_changes_nothing),
		TEST(time_does_not_go_back),
		TEST(evidence_names_a_device_by_uuid_or_makes_it),
		TEST(more_devices_than_there_can_be_are_counted_and_dropped),
		TEST(a_full_list_of_faults_keeps_what_matters),
		TEST(promise_9_a_crash_neither_clears_nor_raises),
		TEST(a_journal_that_is_lost_is_unknown_and_not_healthy),
		TEST(another_table_of_rules_has_another_hash_and_judges_by_it),
		TEST(what_cannot_be_is_refused),
		TEST(a_memory_that_cannot_be_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
