/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/agent_world.h"

#include "agent/journal.h"
#include "base/fs.h"
#include "base/str.h"
#include "harness/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What an agent knows after its end: its journal, or what DeviceHealth says where that is lost. */

static void open_and_hang(struct world *w)
{
	open_agent(w);
	run_for(w, 2 * HF_SECOND);
	kernel_says(w, HUNG);
	run_for(w, 3 * HF_SECOND);
}

/* As DeviceHealth has it. */
static void expect_gpu(struct world *w, const char *state, bool history_lost)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health = health_of(w, arena);

	assert_string_equal(device_in(&health, GPU)->state, state);
	assert_int_equal(health.history_lost, history_lost);
}

static void a_death_forgets_nothing_and_repeats_nothing(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;

	open_and_hang(w);
	/* As kill -9: what is not in the journal is gone. */
	w->agent = hf_agent_destroy(w->agent);
	kernel_says(w, "NVRM: Xid (PCI:0000:1b:00): 119, pid=1, Timeout\n");
	run_for(w, HF_MINUTE);
	open_agent(w);
	run_for(w, 5 * HF_SECOND);
	health = health_of(w, arena);
	assert_string_equal(device_in(&health, GPU)->state, "Unhealthy");
	assert_int_equal(device_in(&health, GPU)->faults.items[0].count, 1);
	/* And what the kernel said meanwhile is read. */
	assert_string_equal(device_in(&health, "0000:1b:00.0")->state, "Unhealthy");
}

/* The journal is also written between steps: what was read by then and is in no step is not passed
 * over by an agent that is killed right after. */
static void a_line_that_no_step_took_is_read_again(void **state)
{
	struct world *w = *state;
	struct hf_health_sample sample = hf_intake_sample_of(HF_HEALTH_BY_NVML, HF_HEALTH_ECC, GPU);
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;

	open_agent(w);
	run_for(w, 5 * HF_MINUTE - 4 * HF_SECOND);
	/* From here the log is looked at 10 ms before the journal's time: a look was 190 ms late. */
	hf_loop_freeze(w->loop, 390 * HF_MS);
	run_for(w, 610 * HF_MS);
	/* A measurement is for the journal, and does not hasten it. */
	(void)hf_intake_sample(hf_agent_intake(w->agent), &sample);
	run_for(w, 3 * HF_SECOND - 25 * HF_MS);
	kernel_says(w, HUNG);
	run_for(w, 27 * HF_MS);
	w->agent = hf_agent_destroy(w->agent);
	open_agent(w);
	run_for(w, 3 * HF_SECOND);
	health = health_of(w, arena);
	assert_string_equal(device_in(&health, GPU)->state, "Unhealthy");
}

static void plugin_says(struct world *w, bool gone)
{
	struct hf_health_sample sample =
		hf_intake_sample_of(HF_HEALTH_BY_KUBELET, HF_HEALTH_PLUGIN, "");

	sample.plugin.resource_gone = gone;
	(void)hf_intake_sample(hf_agent_intake(w->agent), &sample);
	run_for(w, 10 * HF_SECOND);
}

static void a_resource_that_is_missed_is_missed_by_the_next_agent_of_this_boot(void **state)
{
	struct world *w = *state;

	open_agent(w);
	assert_false(hf_agent_misses_resource(w->agent));
	for (int i = 0; i < 7; i++)
		plugin_says(w, true);
	assert_true(hf_agent_misses_resource(w->agent));
	w->agent = hf_agent_destroy(w->agent);
	open_agent(w);
	assert_true(hf_agent_misses_resource(w->agent));
	for (int i = 0; i < 8; i++)
		plugin_says(w, false);
	assert_false(hf_agent_misses_resource(w->agent));
	for (int i = 0; i < 7; i++)
		plugin_says(w, true);
	assert_true(hf_agent_misses_resource(w->agent));
	w->agent = hf_agent_destroy(w->agent);
	w->boot = "33333333-4444";
	open_agent(w);
	assert_false(hf_agent_misses_resource(w->agent));
}

/* What it said of this boot may have been that a device is out of service. */
static void a_journal_that_is_damaged_makes_nothing_well(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	HF_AUTO_STRBUF bytes = HF_STRBUF_INIT(HF_JOURNAL_ENCODED_MAX);
	struct hf_device_health health;
	char path[128];
	struct hf_error err;

	open_and_hang(w);
	w->agent = hf_agent_destroy(w->agent);
	snprintf(path, sizeof(path), "%s/%s", w->state, HF_JOURNAL_FILE);
	assert_ok(hf_fs_read(path, &bytes, &err), &err);
	bytes.data[bytes.len / 2] ^= 1;
	assert_ok(hf_fs_write_atomic(path, bytes.data, bytes.len, 0600, &err), &err);
	for (int lives = 0; lives < 2; lives++) {
		open_agent(w);
		run_for(w, 20 * HF_MINUTE);
		hf_intake_heard(hf_agent_intake(w->agent), HF_HEALTH_BY_KMSG, HF_HEALTH_XID);
		run_for(w, 2 * HF_SECOND);
		health = health_of(w, arena);
		assert_string_equal(health.state, "Unknown");
		assert_string_equal(device_in(&health, GPU)->state, "Unknown");
		w->agent = hf_agent_destroy(w->agent);
	}
	w->boot = "33333333-4444";
	open_agent(w);
	run_for(w, 5 * HF_SECOND);
	health = health_of(w, arena);
	assert_string_equal(device_in(&health, GPU)->state, "Healthy");
}

static void lose_journal(struct world *w)
{
	char path[128];

	w->agent = hf_agent_destroy(w->agent);
	snprintf(path, sizeof(path), "%s/%s", w->state, HF_JOURNAL_FILE);
	(void)unlink(path);
}

/* Nobody can read it, as on a disk that is broken there. */
static void block_journal(struct world *w)
{
	char path[128];

	lose_journal(w);
	snprintf(path, sizeof(path), "%s/%s", w->state, HF_JOURNAL_FILE);
	assert_int_equal(symlink(HF_JOURNAL_FILE, path), 0);
}

static void open_and_hear(struct world *w)
{
	open_agent(w);
	run_for(w, 20 * HF_MINUTE);
	hf_intake_heard(hf_agent_intake(w->agent), HF_HEALTH_BY_KMSG, HF_HEALTH_XID);
	run_for(w, 2 * HF_SECOND);
}

/* In this boot DeviceHealth reported a device as out of service.  Without the journal the agent does
 * not know whether it still is. */
static void a_journal_that_is_missing_makes_nothing_well(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;

	open_and_hang(w);
	/* Lost once, and once more, by then in the object of an agent that knew nothing; and then it
	 * is there and cannot be read. */
	for (int lives = 0; lives < 3; lives++) {
		if (lives < 2)
			lose_journal(w);
		else
			block_journal(w);
		open_and_hear(w);
		health = health_of(w, arena);
		assert_string_equal(health.state, "Unknown");
		assert_string_equal(device_in(&health, GPU)->state, "Unknown");
		assert_true(health.history_lost);
	}
	lose_journal(w);
	w->boot = "33333333-4444";
	open_agent(w);
	run_for(w, 5 * HF_SECOND);
	expect_gpu(w, "Healthy", false);
}

static void a_journal_that_is_missing_takes_nothing_from_what_was_well(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;

	/* A fresh node: all is as soon well as it can be seen. */
	open_agent(w);
	run_for(w, 2 * HF_SECOND);
	expect_gpu(w, "Healthy", false);
	lose_journal(w);
	open_agent(w);
	run_for(w, 2 * HF_SECOND);
	health = health_of(w, arena);
	assert_string_equal(device_in(&health, GPU)->state, "Healthy");
	/* Nor where it was long in doubt, and was killed meanwhile. */
	lose_journal(w);
	w->refuse = HF_E_UNAVAILABLE;
	open_and_hear(w);
	w->agent = hf_agent_destroy(w->agent);
	open_and_hear(w);
	w->refuse = 0;
	run_for(w, 2 * HF_MINUTE);
	hf_intake_heard(hf_agent_intake(w->agent), HF_HEALTH_BY_KMSG, HF_HEALTH_XID);
	run_for(w, 2 * HF_SECOND);
	expect_gpu(w, "Healthy", false);
}

/* As on a disk that cannot be written since the node's restart. */
static void a_journal_of_the_boot_before_makes_nothing_well(void **state)
{
	struct world *w = *state;
	HF_AUTO_STRBUF bytes = HF_STRBUF_INIT(HF_JOURNAL_ENCODED_MAX);
	char path[128];
	struct hf_error err;

	open_agent(w);
	run_for(w, 2 * HF_SECOND);
	w->agent = hf_agent_destroy(w->agent);
	snprintf(path, sizeof(path), "%s/%s", w->state, HF_JOURNAL_FILE);
	assert_ok(hf_fs_read(path, &bytes, &err), &err);
	w->boot = "33333333-4444";
	open_agent(w);
	run_for(w, 2 * HF_SECOND);
	expect_gpu(w, "Healthy", false);
	kernel_says(w, HUNG);
	run_for(w, 3 * HF_SECOND);
	/* Nobody answers at first, and one agent is killed meanwhile. */
	for (int lives = 0; lives < 3; lives++) {
		w->agent = hf_agent_destroy(w->agent);
		assert_ok(hf_fs_write_atomic(path, bytes.data, bytes.len, 0600, &err), &err);
		w->refuse = lives < 2 ? HF_E_UNAVAILABLE : 0;
		open_and_hear(w);
		expect_gpu(w, lives < 2 ? "Unhealthy" : "Unknown", lives == 2);
	}
	w->agent = hf_agent_destroy(w->agent);
	w->boot = "55555555-6666";
	open_agent(w);
	run_for(w, 5 * HF_SECOND);
	expect_gpu(w, "Healthy", false);
}

/* A fault ended while the API server took no writes: the journal is newer than DeviceHealth. */
static void what_the_journal_saw_end_is_in_no_doubt(void **state)
{
	struct world *w = *state;

	open_agent(w);
	run_for(w, 2 * HF_SECOND);
	kernel_says(w, "NVRM: Xid (PCI:0000:1a:00): 159, pid=1, x\n");
	run_for(w, 20 * HF_SECOND);
	for (int i = 0; i < 4; i++) {
		kernel_says(w, "NVRM: Xid (PCI:0000:1a:00): 31, pid=1, MMU\n");
		run_for(w, 100 * HF_SECOND);
	}
	expect_gpu(w, "Degraded", false);
	w->refuse = HF_E_UNAVAILABLE;
	/* One has ended by age, and the device is as it was by the other. */
	run_for(w, 11 * HF_MINUTE);
	w->agent = hf_agent_destroy(w->agent);
	w->refuse = 0;
	open_agent(w);
	run_for(w, 5 * HF_SECOND);
	expect_gpu(w, "Degraded", false);
	kernel_says(w, MENDED);
	run_for(w, 2 * HF_SECOND);
	run_for(w, 20 * HF_MINUTE);
	hf_intake_heard(hf_agent_intake(w->agent), HF_HEALTH_BY_KMSG, HF_HEALTH_XID);
	run_for(w, 2 * HF_SECOND);
	expect_gpu(w, "Healthy", false);
}

/* The API server does not answer, and the agent is killed meanwhile: the published DeviceHealth stays
 * as it is until an agent has read it. */
static void without_a_journal_a_published_fault_stays_until_devicehealth_is_read(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;

	open_and_hang(w);
	lose_journal(w);
	w->refuse = HF_E_UNAVAILABLE;
	for (int lives = 0; lives < 2; lives++) {
		open_and_hear(w);
		health = health_of(w, arena);
		assert_string_equal(device_in(&health, GPU)->state, "Unhealthy");
		w->agent = hf_agent_destroy(w->agent);
	}
	w->refuse = 0;
	open_and_hear(w);
	expect_gpu(w, "Unknown", true);
	/* And faults are found as ever. */
	kernel_says(w, LOST);
	run_for(w, 2 * HF_SECOND);
	health = health_of(w, arena);
	assert_string_equal(device_in(&health, GPU)->state, "Unhealthy");
}

static void bus_has(struct world *w, int count)
{
	hf_intake_count(hf_agent_intake(w->agent), HF_COUNT_PCI, count);
	hf_intake_count(hf_agent_intake(w->agent), HF_COUNT_BUS, count);
}

/* The bus is empty, and the kubelet offers no device: the sources agree, but the journal has three. */
static void a_node_whose_devices_are_gone_is_not_healthy(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	const char *id, *address;
	struct hf_device_health health;

	open_agent(w);
	bus_has(w, 3);
	run_for(w, 2 * HF_MINUTE);
	health = health_of(w, arena);
	assert_string_equal(health.state, "Healthy");
	assert_int_equal(health.dropped_devices, 0);
	hf_intake_refuse(hf_agent_intake(w->agent), "mlx5_24/1");
	run_for(w, 3 * HF_SECOND);
	health = health_of(w, arena);
	assert_int_equal(health.dropped_devices, 1);
	/* They go while no agent runs, in this boot. */
	w->agent = hf_agent_destroy(w->agent);
	w->no_devices = true;
	open_agent(w);
	bus_has(w, 0);
	/* Whoever looks at the bus knows what to look for. */
	assert_true(hf_intake_remembers(hf_agent_intake(w->agent), 2, &id, &address));
	assert_string_equal(id, "0000:1c:00.0");
	assert_false(hf_intake_remembers(hf_agent_intake(w->agent), 3, &id, &address));
	run_for(w, 3 * HF_MINUTE);
	health = health_of(w, arena);
	assert_string_equal(health.state, "Degraded");
	assert_string_equal(device_in(&health, "")->faults.items[0].line,
			    "devices on the bus: 0, before: 3");
	assert_string_equal(
		hf_json_path_str(condition_of(w, &hf_nodes, "n1", "AcceleratorDegraded"), "reason",
				 NULL),
		"DeviceMissing");
	/* After a restart of the node the devices are missing as well; at first their number is unknown. */
	w->agent = hf_agent_destroy(w->agent);
	w->boot = "33333333-4444";
	open_agent(w);
	assert_false(hf_intake_remembers(hf_agent_intake(w->agent), 0, &id, &address));
	bus_has(w, 0);
	run_for(w, 20 * HF_SECOND);
	health = health_of(w, arena);
	assert_string_equal(health.state, "Unknown");
	run_for(w, 3 * HF_MINUTE);
	health = health_of(w, arena);
	assert_string_equal(health.state, "Degraded");
}

/* Mended, started anew, and a person says so before the agent has looked at the bus. */
static void a_word_waits_until_it_is_known_what_is_there(void **state)
{
	struct world *w = *state;
	struct hf_health_presence gpu = {.kind = HF_HEALTH_GPU, .id = GPU};
	struct hf_health_sample sample = hf_intake_sample_of(HF_HEALTH_BY_NVML, HF_HEALTH_ECC, GPU);
	char at[HF_TIME_TEXT_MAX], text[160];

	open_agent(w);
	run_for(w, 2 * HF_SECOND);
	sample.ecc.remap_known = sample.ecc.failed = true;
	(void)hf_intake_sample(hf_agent_intake(w->agent), &sample);
	run_for(w, 3 * HF_SECOND);
	expect_gpu(w, "Unhealthy", false);
	w->agent = hf_agent_destroy(w->agent);
	w->boot = "33333333-4444";
	w->no_devices = true;
	run_for(w, HF_MINUTE);
	hf_time_format(hf_loop_wall(w->loop), at);
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"annotations\":{\"holdfast.dev/cleared\":\"" GPU " %s\"}}}", at);
	apply(w, HF_VERB_PATCH, &hf_devicehealths, "n1", NULL, text);
	open_agent(w);
	run_for(w, 5 * HF_SECOND);
	hf_intake_device(hf_agent_intake(w->agent), &gpu);
	hf_intake_looked(hf_agent_intake(w->agent), HF_PROBE_DEVICES, HF_MS);
	run_for(w, 5 * HF_SECOND);
	expect_gpu(w, "Probation", false);
}

static void another_boot_ends_what_a_boot_ends(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;

	open_agent(w);
	run_for(w, 2 * HF_SECOND);
	kernel_says(w, LOST);
	run_for(w, 3 * HF_SECOND);
	w->agent = hf_agent_destroy(w->agent);
	kernel_says(w, HUNG); /* of the boot before: no agent will read it */
	w->boot = "33333333-4444";
	run_for(w, HF_MINUTE);
	open_agent(w);
	run_for(w, 5 * HF_SECOND);
	health = health_of(w, arena);
	assert_string_equal(health.boot_id, "33333333-4444");
	assert_string_not_equal(device_in(&health, GPU)->state, "Unhealthy");
	assert_int_equal(device_in(&health, GPU)->faults.len, 0);
}

static void a_journal_that_cannot_be_written_does_not_blind_the_agent(void **state)
{
	struct world *w = *state;
	struct hf_error err;

	/* A file where the folder should be. */
	assert_ok(hf_fs_write_atomic(w->state, "x", 1, 0600, &err), &err);
	open_agent(w);
	run_for(w, 2 * HF_SECOND);
	kernel_says(w, LOST);
	run_for(w, 2 * HF_SECOND);
	assert_string_equal(status_of(w, &hf_nodes, "n1", "AcceleratorUnhealthy"), "True");
	hf_agent_stop(w->agent);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_death_forgets_nothing_and_repeats_nothing),
		TEST(a_line_that_no_step_took_is_read_again),
		TEST(a_journal_that_is_damaged_makes_nothing_well),
		TEST(a_journal_that_is_missing_makes_nothing_well),
		TEST(a_journal_that_is_missing_takes_nothing_from_what_was_well),
		TEST(without_a_journal_a_published_fault_stays_until_devicehealth_is_read),
		TEST(a_journal_of_the_boot_before_makes_nothing_well),
		TEST(what_the_journal_saw_end_is_in_no_doubt),
		TEST(a_node_whose_devices_are_gone_is_not_healthy),
		TEST(a_resource_that_is_missed_is_missed_by_the_next_agent_of_this_boot),
		TEST(a_word_waits_until_it_is_known_what_is_there),
		TEST(another_boot_ends_what_a_boot_ends),
		TEST(a_journal_that_cannot_be_written_does_not_blind_the_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
