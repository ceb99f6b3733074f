/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/report.h"

#include "api/device_health.h"
#include "base/str.h"
#include "harness/health.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

/* A node with devices, and the objects that the agent would write for it. */

struct world {
	struct hf_loop *loop;
	struct hf_intake *intake;
	struct health_node node;
	struct hf_holder holders[24];
	struct hf_report report;
};

static void on_news(void *arg, bool urgent)
{
}

static int setup(void **state)
{
	static struct world w;
	struct hf_intake_options options = {.news = on_news};

	memset(&w, 0, sizeof(w));
	w.loop = options.loop = hf_loop_create_virtual(0);
	w.intake = hf_intake_create(&options);
	health_init(&w.node, 3, 1);
	health_step(&w.node, HF_SECOND);
	w.report = (struct hf_report){
		.node = "n1", .intake = w.intake, .holders = w.holders, .label = "healthy"};
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	health_release(&w->node);
	hf_intake_destroy(w->intake);
	hf_loop_destroy(w->loop);
	return 0;
}

static void look(struct world *w)
{
	w->report.memory = &w->node.memory;
	w->report.now = w->report.reaches = w->node.now;
}

static void hold(struct world *w, const char *pod, const char *id, hf_time until)
{
	struct hf_holder *h = &w->holders[w->report.holders_len++];

	snprintf(h->holding.ns, sizeof(h->holding.ns), "d");
	snprintf(h->holding.pod, sizeof(h->holding.pod), "%s", pod);
	snprintf(h->holding.id, sizeof(h->holding.id), "%s", id);
	snprintf(h->uid, sizeof(h->uid), "uid-%s", pod);
	h->until = until;
}

static void ids_of_plugins_lead_to_devices(void **state)
{
	struct world *w = *state;

	look(w);
	hold(w, "a", "gpu-1", HF_TIME_NONE);
	hold(w, "b", "gpu-1::3", HF_TIME_NONE);
	hold(w, "c", "something-else", HF_TIME_NONE);
	hold(w, "d", "", HF_TIME_NONE);
	assert_string_equal(hf_report_device_of(&w->report, &w->holders[0])->id, "gpu-1");
	assert_string_equal(hf_report_device_of(&w->report, &w->holders[1])->id, "gpu-1");
	assert_null(hf_report_device_of(&w->report, &w->holders[2]));
	assert_null(hf_report_device_of(&w->report, &w->holders[3]));
}

static struct hf_device_health read(struct world *w, struct hf_arena *arena)
{
	HF_AUTO_DOC doc = NULL;
	struct hf_device_health health;

	look(w);
	doc = hf_doc_from_json(hf_report_device_patch(&w->report));
	hf_device_health_read(doc, arena, &health);
	return health;
}

static void has_part(struct world *w, const char *name, const char *device, int32_t instance)
{
	struct hf_mig_instance mig;

	memset(&mig, 0, sizeof(mig));
	snprintf(mig.name, sizeof(mig.name), "%s", name);
	snprintf(mig.device, sizeof(mig.device), "%s", device);
	mig.instance = instance;
	hf_intake_mig_instance(w->intake, &mig);
}

static void ids_of_instances_lead_to_their_device(void **state)
{
	struct world *w = *state;

	snprintf(w->node.devices[1].uuid, sizeof(w->node.devices[1].uuid), "GPU-1");
	health_step(&w->node, HF_SECOND);
	look(w);
	has_part(w, "MIG-1", "gpu-1", 7);
	hold(w, "a", "MIG-1", HF_TIME_NONE);
	hold(w, "b", "MIG-1::2", HF_TIME_NONE);
	hold(w, "c", "MIG-GPU-1/7/0", HF_TIME_NONE);
	hold(w, "d", "gpu-1-mig-1g10gb-19-4", HF_TIME_NONE);
	for (size_t i = 0; i < w->report.holders_len; i++)
		assert_string_equal(hf_report_device_of(&w->report, &w->holders[i])->id, "gpu-1");
	hold(w, "e", "MIG-2", HF_TIME_NONE);
	hold(w, "f", "MIG-GPU-7/7/0", HF_TIME_NONE);
	assert_null(hf_report_device_of(&w->report, &w->holders[4]));
	assert_null(hf_report_device_of(&w->report, &w->holders[5]));
}

/* A reset of a device ends the processes of all its MIG instances. */
static void what_stops_a_device_stops_all_that_hold_a_part_of_it(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_health_evidence *e = health_xid(&w->node, 95, "gpu-1");
	struct hf_pod_verdict verdict;
	struct hf_device_health health;

	e->gpu_instance = 7;
	snprintf(e->line, sizeof(e->line), "x");
	health_step(&w->node, HF_SECOND);
	has_part(w, "MIG-1", "gpu-1", 7);
	has_part(w, "MIG-2", "gpu-1", 8);
	hold(w, "its", "MIG-1", HF_TIME_NONE);
	hold(w, "other", "MIG-2", HF_TIME_NONE);
	health = read(w, arena);
	for (size_t i = 0; i < 2; i++) {
		hf_report_pod(&w->report, i, &verdict);
		assert_int_equal(verdict.condition, HF_POD_SICK);
		assert_string_equal(verdict.message,
				    "gpu-1 is Unhealthy: xid 95 in GPU instance 7");
	}
	assert_string_equal(health.devices.items[2].id, "gpu-1");
	assert_int_equal(health.devices.items[2].holders.len, 2);
	assert_string_equal(health.devices.items[2].holders.items[1].resource_id, "MIG-1");
	/* The kubelet's ids name only instances of this device. */
	assert_null(health.devices.items[2].resource_id);
}

static void a_fault_of_one_instance_concerns_its_holder_and_possible_holders(void **state)
{
	struct world *w = *state;
	struct hf_health_notice told = {.device = "gpu-1", .gpu_instance = 7};

	look(w);
	has_part(w, "MIG-7", "gpu-1", 7);
	has_part(w, "MIG-8", "gpu-1", 8);
	has_part(w, "MIG-x", "gpu-1", -1);
	hold(w, "a", "MIG-7", HF_TIME_NONE);
	hold(w, "b", "MIG-x", HF_TIME_NONE);
	hold(w, "c", "gpu-1", HF_TIME_NONE);
	hold(w, "d", "MIG-8", HF_TIME_NONE);
	hold(w, "e", "gpu-2", HF_TIME_NONE);
	hold(w, "f", "what", HF_TIME_NONE);
	for (size_t i = 0; i < w->report.holders_len; i++)
		assert_int_equal(hf_report_concerns(&w->report, &told, &w->holders[i]), i < 3);
	told.gpu_instance = -1;
	assert_true(hf_report_concerns(&w->report, &told, &w->holders[3]));
}

static void a_pod_is_sick_by_what_it_holds_or_held_then(void **state)
{
	struct world *w = *state;
	struct hf_pod_verdict verdict;

	(void)health_xid(&w->node, 119, "gpu-1");
	health_step(&w->node, HF_SECOND);
	look(w);
	hold(w, "holds", "gpu-1", HF_TIME_NONE);
	hold(w, "other", "gpu-2", HF_TIME_NONE);
	hold(w, "just-before", "gpu-1", w->node.now - 5 * HF_SECOND);
	hold(w, "long-before", "gpu-1", w->node.now - HF_MINUTE);
	hold(w, "unknown", "what", HF_TIME_NONE);
	hf_report_pod(&w->report, 0, &verdict);
	assert_int_equal(verdict.condition, HF_POD_SICK);
	assert_string_equal(verdict.reason, "GpuReset");
	assert_string_equal(verdict.message, "gpu-1 is Unhealthy: xid 119");
	hf_report_pod(&w->report, 1, &verdict);
	assert_int_equal(verdict.condition, HF_POD_WELL);
	hf_report_pod(&w->report, 2, &verdict);
	assert_int_equal(verdict.condition, HF_POD_SICK);
	hf_report_pod(&w->report, 3, &verdict);
	assert_int_equal(verdict.condition, HF_POD_NO_CONDITION);
	hf_report_pod(&w->report, 4, &verdict);
	assert_int_equal(verdict.condition, HF_POD_NO_CONDITION);
}

static void a_pod_of_several_devices_is_sick_by_one(void **state)
{
	struct world *w = *state;
	struct hf_pod_verdict verdict;

	(void)health_xid(&w->node, 119, "gpu-2");
	health_step(&w->node, HF_SECOND);
	look(w);
	hold(w, "p", "gpu-0", HF_TIME_NONE);
	hold(w, "p", "gpu-1", HF_TIME_NONE);
	hold(w, "p", "gpu-2", HF_TIME_NONE);
	hf_report_pod(&w->report, 0, &verdict);
	assert_int_equal(verdict.condition, HF_POD_SICK);
	assert_non_null(strstr(verdict.message, "gpu-2"));
}

static void a_fault_of_all_devices_at_once_is_the_nodes_and_all_holders_are_told(void **state)
{
	struct world *w = *state;
	struct hf_pod_verdict verdict;

	for (int i = 0; i < 3; i++) {
		char id[16];

		snprintf(id, sizeof(id), "gpu-%d", i);
		(void)health_xid(&w->node, 119, id);
	}
	health_step(&w->node, HF_SECOND);
	look(w);
	hold(w, "p", "gpu-0", HF_TIME_NONE);
	assert_int_equal(health_device(&w->node, "gpu-0")->state, HF_HEALTH_UNKNOWN);
	hf_report_pod(&w->report, 0, &verdict);
	/* The node is Degraded because of two shared faults, and the holder of the sick device is stopped by its
	 * own device. */
	assert_int_equal(health_device(&w->node, "")->state, HF_HEALTH_DEGRADED_STATE);
	assert_int_equal(verdict.condition, HF_POD_NO_CONDITION);
}

static void times_are_shown_on_the_wall_clock(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;
	HF_AUTO_DOC doc = NULL;

	(void)health_xid(&w->node, 119, "gpu-1");
	health_step(&w->node, HF_SECOND);
	look(w);
	w->report.wall_less = 30 * HF_DAY;
	w->report.lost = 12;
	for (int i = 0; i < 20; i++)
		hold(w, i % 2 ? "odd" : "even", "gpu-1", i < 18 ? w->node.now : HF_TIME_NONE);
	doc = hf_doc_from_json(hf_report_device_patch(&w->report));
	hf_device_health_read(doc, arena, &health);
	assert_true(health.observed_at == w->node.now + 30 * HF_DAY);
	assert_int_equal(health.lost_records, 12);
	assert_string_equal(health.state, "Unhealthy");
	assert_string_equal(health.cls, "gpu-reset");
	assert_string_equal(health.action, "reset-device");
	for (size_t i = 0; i < health.devices.len; i++) {
		const struct hf_device_report *d = &health.devices.items[i];

		if (!hf_streq(d->id, "gpu-1"))
			continue;
		assert_true(d->since == w->node.now + 30 * HF_DAY);
		assert_true(d->faults.items[0].acts);
		/* The list of holders is cut off, and present holders come first. */
		assert_int_equal(d->holders.len, HF_DEVICE_HEALTH_HOLDERS_MAX);
		assert_true(d->holders.items[0].until == HF_TIME_NONE);
		assert_true(d->holders.items[1].until == HF_TIME_NONE);
		assert_true(d->holders.items[2].until != HF_TIME_NONE);
	}
}

/* A quarantine that a person has lifted comes back only by evidence that counts: not by a program's fault, a
 * suspicion, or a note on another device. */
static void evidence_is_of_what_makes_the_node_bad(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	hf_time seen;

	(void)health_xid(&w->node, 119, "gpu-1");
	health_step(&w->node, HF_SECOND);
	seen = w->node.now;
	assert_true(read(w, arena).evidence_at == seen);
	(void)health_xid(&w->node, 31, "gpu-2");
	(void)health_xid(&w->node, 63, "gpu-1");
	(void)health_xid(&w->node, 78, "gpu-0");
	health_step(&w->node, HF_MINUTE);
	assert_int_equal(health_device(&w->node, "gpu-0")->state, HF_HEALTH_SUSPECT);
	assert_true(read(w, arena).evidence_at == seen);
	(void)health_xid(&w->node, 119, "gpu-1");
	health_step(&w->node, HF_MINUTE);
	assert_true(read(w, arena).evidence_at == w->node.now);
}

static void what_failed_for_good_hides_nothing_that_can_be_acted_on(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;

	(void)health_xid(&w->node, 142, "gpu-0");
	health_step(&w->node, HF_SECOND);
	health_device(&w->node, "gpu-0")->state = HF_HEALTH_FAILED;
	health = read(w, arena);
	assert_string_equal(health.state, "Failed");
	assert_string_equal(health.cls, "support");
	(void)health_xid(&w->node, 119, "gpu-1");
	health_step(&w->node, HF_MINUTE);
	health = read(w, arena);
	assert_string_equal(health.state, "Unhealthy");
	assert_string_equal(health.cls, "gpu-reset");
	assert_string_equal(health.action, "reset-device");
	assert_true(health.evidence_at == w->node.now);
	assert_string_equal(health.devices.items[1].id, "gpu-0");
	assert_string_equal(health.devices.items[1].state, "Failed");
}

/* After a restart there is no device at the sick device's address; the other device does not count as its
 * replacement. */
static void a_sick_device_that_is_gone_makes_the_node_unknown(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_health_presence *moved = &w->node.devices[1];

	for (int i = 0; i < 3; i++) {
		(void)health_xid(&w->node, 78, "gpu-1");
		health_step(&w->node, HF_MINUTE);
	}
	assert_string_equal(read(w, arena).state, "Degraded");
	snprintf(w->node.memory.boot_id, sizeof(w->node.memory.boot_id), "before");
	snprintf(moved->id, sizeof(moved->id), "gpu-9");
	for (int i = 0; i < 2; i++)
		health_step(&w->node, HF_MINUTE);
	assert_int_equal(health_device(&w->node, "gpu-9")->state, HF_HEALTH_HEALTHY);
	assert_int_equal(health_device(&w->node, "gpu-1")->state, HF_HEALTH_UNKNOWN);
	assert_string_equal(read(w, arena).state, "Unknown");
	/* It has another address now. */
	snprintf(moved->uuid, sizeof(moved->uuid), "GPU-1");
	snprintf(health_device(&w->node, "gpu-1")->uuid, sizeof(moved->uuid), "GPU-1");
	health_step(&w->node, HF_MINUTE);
	assert_string_equal(read(w, arena).state, "Healthy");
}

static const char *state_of(const struct hf_device_health *health, const char *id)
{
	for (size_t i = 0; i < health->devices.len; i++)
		if (hf_streq(health->devices.items[i].id, id))
			return health->devices.items[i].state;
	return "";
}

/* The boot has ended the fault of a GPU, which has not come back. Before a probe has named it, nothing is known of it. */
static void a_gpu_on_probation_that_no_probe_has_named_is_unknown(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_health_presence gone = w->node.devices[0];
	struct hf_device_health health;

	(void)health_xid(&w->node, 79, gone.id);
	health_step(&w->node, HF_MINUTE);
	assert_string_equal(read(w, arena).state, "Unhealthy");
	snprintf(w->node.memory.boot_id, sizeof(w->node.memory.boot_id), "before");
	w->node.devices[0] = w->node.devices[2];
	w->node.devices_len = 2;
	health_step(&w->node, HF_MINUTE);
	assert_int_equal(health_device(&w->node, gone.id)->state, HF_HEALTH_PROBATION);
	health = read(w, arena);
	assert_string_equal(state_of(&health, gone.id), "Unknown");
	assert_string_not_equal(health.state, "Healthy");
	w->node.devices[2] = gone;
	w->node.devices_len = 3;
	health_step(&w->node, HF_MINUTE);
	health = read(w, arena);
	assert_string_equal(state_of(&health, gone.id), "Probation");
	assert_string_equal(health.state, "Probation");
}

static void the_nodes_patch_names_the_four_conditions(void **state)
{
	struct world *w = *state;
	HF_AUTO_JSON patch = NULL;
	const struct hf_json *list;

	look(w);
	patch = hf_report_node_patch(&w->report);
	list = hf_json_path(patch, "status", "conditions", NULL);
	assert_int_equal(hf_json_len(list), HF_HEALTH_CONDITIONS);
	for (size_t i = 0; i < HF_HEALTH_CONDITIONS; i++) {
		const struct hf_json *c = hf_json_item(list, i);

		assert_string_equal(hf_json_path_str(c, "type", NULL),
				    hf_health_condition_names[i]);
		assert_string_equal(hf_json_path_str(c, "status", NULL), "False");
		assert_non_null(hf_json_path_str(c, "lastHeartbeatTime", NULL));
	}
}

static void a_detector_that_was_not_heard_for_long_is_stale(void **state)
{
	struct world *w = *state;
	const char *why;

	hf_intake_heard(w->intake, HF_HEALTH_BY_NVML, HF_HEALTH_ECC);
	look(w);
	w->report.now = HF_MINUTE;
	assert_string_equal(hf_report_detector(&w->report, HF_HEALTH_ECC, &why), "On");
	w->report.now = HF_HOUR;
	assert_string_equal(hf_report_detector(&w->report, HF_HEALTH_ECC, &why), "Stale");
	assert_string_not_equal(why, "");
	assert_string_equal(hf_report_detector(&w->report, HF_HEALTH_IB, &why), "Off");
	assert_string_not_equal(why, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void versions_of_the_driver_are_published(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 20);
	struct hf_device_health health = read(w, arena);

	assert_null(health.driver_version);
	hf_intake_note_version(w->intake, HF_VERSION_DRIVER, "570.86.15");
	hf_intake_note_version(w->intake, HF_VERSION_LIBRARY, "575.57.08");
	hf_intake_note_version(w->intake, HF_VERSION_MODULE, "570.86.15");
	health = read(w, arena);
	assert_string_equal(health.driver_version, "570.86.15");
	assert_string_equal(health.library_version, "575.57.08");
	assert_string_equal(health.module_version, "570.86.15");
	assert_null(health.firmware_version);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ids_of_plugins_lead_to_devices),
		TEST(ids_of_instances_lead_to_their_device),
		TEST(what_stops_a_device_stops_all_that_hold_a_part_of_it),
		TEST(a_fault_of_one_instance_concerns_its_holder_and_possible_holders),
		TEST(a_pod_is_sick_by_what_it_holds_or_held_then),
		TEST(a_pod_of_several_devices_is_sick_by_one),
		TEST(a_fault_of_all_devices_at_once_is_the_nodes_and_all_holders_are_told),
		TEST(times_are_shown_on_the_wall_clock),
		TEST(evidence_is_of_what_makes_the_node_bad),
		TEST(what_failed_for_good_hides_nothing_that_can_be_acted_on),
		TEST(a_sick_device_that_is_gone_makes_the_node_unknown),
		TEST(a_gpu_on_probation_that_no_probe_has_named_is_unknown),
		TEST(the_nodes_patch_names_the_four_conditions),
		TEST(a_detector_that_was_not_heard_for_long_is_stale),
		TEST(versions_of_the_driver_are_published),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
