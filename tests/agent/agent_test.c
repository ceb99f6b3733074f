/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/agent_world.h"

#include "base/fs.h"
#include "base/str.h"
#include "harness/test.h"
#include "health/contact.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void create_pod(struct world *w, const char *name)
{
	char text[512];

	snprintf(
		text, sizeof(text),
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
		"\"default\"},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\","
		"\"image\":\"i\"}]}}",
		name);
	apply(w, HF_VERB_CREATE, &hf_pods, name, NULL, text);
}

static void holds(struct world *w, const char *pod, const char *id)
{
	struct hf_holding holding;

	memset(&holding, 0, sizeof(holding));
	snprintf(holding.ns, sizeof(holding.ns), "default");
	snprintf(holding.pod, sizeof(holding.pod), "%s", pod);
	snprintf(holding.container, sizeof(holding.container), "c");
	snprintf(holding.resource, sizeof(holding.resource), "nvidia.com/gpu");
	snprintf(holding.id, sizeof(holding.id), "%s", id);
	(void)hf_intake_holdings(hf_agent_intake(w->agent), &holding, pod[0] != '\0',
				 hf_intake_now(hf_agent_intake(w->agent)));
}

/* ---- */

static const char *state_now(struct world *w, const char *device)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health = health_of(w, arena);
	static char state[32];

	snprintf(state, sizeof(state), "%s", device_in(&health, device)->state);
	return state;
}

static void a_line_of_the_kernel_becomes_a_condition_and_a_device_health(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;
	const struct hf_device_report *gpu;
	struct hf_error err;

	open_agent(w);
	assert_true(hf_agent_ready(w->agent, &err) < 0);
	run_for(w, 5 * HF_SECOND);
	assert_ok(hf_agent_ready(w->agent, &err), &err);
	assert_string_equal(status_of(w, &hf_nodes, "n1", "AcceleratorUnhealthy"), "False");
	kernel_says(w, LOST);
	run_for(w, 400 * HF_MS);
	assert_string_equal(status_of(w, &hf_nodes, "n1", "AcceleratorUnhealthy"), "True");
	assert_string_equal(status_of(w, &hf_nodes, "n1", "Ready"), "True");
	run_for(w, 2 * HF_SECOND);
	health = health_of(w, arena);
	gpu = device_in(&health, GPU);
	assert_non_null(gpu);
	assert_string_equal(gpu->state, "Unhealthy");
	assert_string_equal(gpu->uuid, UUID);
	assert_int_equal(gpu->faults.items[0].code, 79);
	assert_non_null(strstr(gpu->faults.items[0].line, "fallen off the bus"));
	assert_string_equal(health.state, "Unhealthy");
	assert_string_equal(health.boot_id, "11111111-2222");
	assert_string_equal(device_in(&health, "0000:1b:00.0")->state, "Healthy");
	assert_true(health.evidence_at > 20000 * HF_DAY);
	assert_int_equal(hf_memstore_count(w->memstore, &hf_events), 1);
}

/* DeviceHealth was written a moment before, for another reason. */
static void a_device_that_fails_is_reported_at_once(void **state)
{
	struct world *w = *state;

	open_agent(w);
	run_for(w, 5 * HF_SECOND);
	w->device_writes = 0;
	kernel_says(w, "NVRM: Xid (PCI:0000:1b:00): 31, pid=1, name=x, Ch 00000008, MMU Fault\n");
	run_for(w, 300 * HF_MS);
	assert_int_equal(w->device_writes, 1);
	kernel_says(w, LOST);
	run_for(w, 300 * HF_MS);
	assert_string_equal(state_now(w, GPU), "Unhealthy");
}

static void nothing_is_written_at_rest_but_the_heartbeat(void **state)
{
	struct world *w = *state;

	open_agent(w);
	run_for(w, HF_MINUTE);
	w->writes = 0;
	run_for(w, HF_HOUR);
	/* Each 5 minutes ± 20 %: the Node and DeviceHealth. */
	assert_in_range(w->node_writes + w->device_writes, 20, 40);
	assert_in_range(w->writes, 2 * 9, 2 * 16);
}

static void a_pod_that_holds_the_sick_device_is_told_and_no_other(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;
	const struct hf_device_report *gpu;

	open_agent(w);
	create_pod(w, "sick");
	create_pod(w, "well");
	run_for(w, 2 * HF_SECOND);
	holds(w, "sick", UUID "::1");
	run_for(w, 5 * HF_SECOND);
	assert_string_equal(status_of(w, &hf_pods, "sick", HF_POD_COND_DEVICE_HEALTHY), "-");
	kernel_says(w, HUNG);
	run_for(w, 2 * HF_SECOND);
	assert_string_equal(status_of(w, &hf_pods, "sick", HF_POD_COND_DEVICE_HEALTHY), "False");
	assert_string_equal(
		hf_json_path_str(condition_of(w, &hf_pods, "sick", HF_POD_COND_DEVICE_HEALTHY),
				 "reason", NULL),
		"GpuReset");
	assert_string_equal(status_of(w, &hf_pods, "well", HF_POD_COND_DEVICE_HEALTHY), "-");
	assert_int_equal(w->pod_writes, 1);
	health = health_of(w, arena);
	gpu = device_in(&health, GPU);
	assert_int_equal(gpu->holders.len, 1);
	assert_string_equal(gpu->holders.items[0].pod, "sick");
	assert_non_null(gpu->holders.items[0].uid);
	/* Events: of the node and of the pod. */
	assert_int_equal(hf_memstore_count(w->memstore, &hf_events), 2);
	kernel_says(w, MENDED);
	run_for(w, 30 * HF_SECOND);
	assert_string_equal(status_of(w, &hf_pods, "sick", HF_POD_COND_DEVICE_HEALTHY), "True");
	assert_int_equal(w->pod_writes, 2);
}

static void the_end_of_a_container_is_reported_promptly_and_its_holder_stays_an_hour(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;
	hf_time ended;

	open_agent(w);
	create_pod(w, "p");
	run_for(w, 2 * HF_SECOND);
	holds(w, "p", UUID);
	run_for(w, HF_MINUTE);
	ended = hf_loop_wall(w->loop);
	apply(w, HF_VERB_PATCH, &hf_pods, "p", "status",
	      "{\"status\":{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"c\",\"state\":"
	      "{\"terminated\":{\"exitCode\":1}}}]}}");
	run_for(w, 3 * HF_SECOND);
	health = health_of(w, arena);
	assert_true(health.observed_at >= ended);
	holds(w, "", "");
	run_for(w, HF_MINUTE);
	health = health_of(w, arena);
	assert_int_equal(device_in(&health, GPU)->holders.len, 1);
	assert_true(device_in(&health, GPU)->holders.items[0].until >= ended);
	/* Its fault comes behind it and is still its own: the line was late. */
	run_for(w, 2 * HF_HOUR);
	health = health_of(w, arena);
	assert_int_equal(device_in(&health, GPU)->holders.len, 0);
}

/* A kubelet that the agent asks each ten seconds, and soon after a poke.  Its answer names the pod
 * that holds the device. */
struct kubelet {
	struct hf_probe base; /* first */
	struct world *world;
	struct hf_timer *timer;
	char pod[64]; /* holds UUID; "": no pod holds it */
	int looks;
};

static void kubelet_looks(void *arg)
{
	struct kubelet *k = arg;

	k->looks++;
	hf_timer_arm(k->timer, 10 * HF_SECOND);
	holds(k->world, k->pod, UUID);
}

static void kubelet_starts(struct hf_probe *probe)
{
	struct kubelet *k = (struct kubelet *)probe;

	k->timer = hf_timer_create(k->world->loop, kubelet_looks, k);
	hf_timer_arm(k->timer, 0);
}

static void kubelet_is_poked(struct hf_probe *probe)
{
	struct kubelet *k = (struct kubelet *)probe;

	if (hf_timer_due(k->timer) > hf_loop_mono(k->world->loop) + 200 * HF_MS)
		hf_timer_arm(k->timer, 200 * HF_MS);
}

static void kubelet_ends(struct hf_probe *probe)
{
	hf_timer_destroy(((struct kubelet *)probe)->timer);
}

static const struct hf_probe_ops kubelet_ops = {.name = "kubelet",
						.has_holders = true,
						.start = kubelet_starts,
						.poke = kubelet_is_poked,
						.destroy = kubelet_ends};

static struct kubelet *kubelet_of(struct world *w)
{
	static struct kubelet kubelet;

	kubelet = (struct kubelet){.base = {.ops = &kubelet_ops}, .world = w};
	w->probe = &kubelet.base;
	return &kubelet;
}

static void container_is(struct world *w, const char *pod, int restarts, const char *state)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "{\"status\":{\"containerStatuses\":[{\"name\":\"c\",\"restartCount\":%d,"
		 "\"state\":%s}]}}",
		 restarts, state);
	apply(w, HF_VERB_PATCH, &hf_pods, pod, "status", text);
}

/* A program may die of a fault of its GPU as soon as it launches its first kernel. */
static void a_holder_that_lives_for_a_second_is_known_and_its_end_is_told(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct kubelet *kubelet = kubelet_of(w);
	struct hf_device_health health;
	hf_time ended;

	open_agent(w);
	run_for(w, 12 * HF_SECOND);
	create_pod(w, "p");
	run_for(w, HF_SECOND);
	snprintf(kubelet->pod, sizeof(kubelet->pod), "p");
	container_is(w, "p", 0, "{\"running\":{}}");
	run_for(w, HF_SECOND / 2);
	kernel_says(w, HUNG);
	run_for(w, HF_SECOND / 2);
	kubelet->pod[0] = '\0';
	ended = hf_loop_wall(w->loop);
	container_is(w, "p", 0, "{\"terminated\":{\"exitCode\":1}}");
	run_for(w, 2 * HF_SECOND);
	health = health_of(w, arena);
	assert_true(health.observed_at >= ended);
	assert_int_equal(device_in(&health, GPU)->holders.len, 1);
	assert_true(device_in(&health, GPU)->holders.items[0].until >= ended);
	assert_string_equal(status_of(w, &hf_pods, "p", HF_POD_COND_DEVICE_HEALTHY), "False");
}

static void evidence_makes_the_kubelet_be_asked_once_a_second_and_rest_does_not(void **state)
{
	struct world *w = *state;
	struct kubelet *kubelet = kubelet_of(w);
	int looks;

	open_agent(w);
	create_pod(w, "p");
	run_for(w, 15 * HF_SECOND);
	looks = kubelet->looks;
	run_for(w, HF_HOUR);
	assert_in_range(kubelet->looks - looks, 359, 361);
	looks = kubelet->looks;
	kernel_says(w, HUNG);
	run_for(w, HF_SECOND);
	assert_int_equal(kubelet->looks, looks + 1);
	run_for(w, 2 * HF_SECOND);
	looks = kubelet->looks;
	for (int i = 0; i < 200; i++) {
		kernel_says(w, HUNG);
		run_for(w, 100 * HF_MS);
	}
	assert_in_range(kubelet->looks - looks, 10, 21);
}

/* A pod of a DaemonSet that fails as often as kubelets let it at the last. */
static void a_pod_that_fails_again_and_again_makes_the_kubelet_be_asked_as_often(void **state)
{
	struct world *w = *state;
	struct kubelet *kubelet = kubelet_of(w);
	int looks, writes;

	open_agent(w);
	create_pod(w, "p");
	run_for(w, 15 * HF_SECOND);
	looks = kubelet->looks;
	writes = w->writes;
	for (int i = 0; i < 12; i++) {
		container_is(w, "p", i, "{\"running\":{}}");
		run_for(w, 3 * HF_SECOND);
		container_is(w, "p", i, "{\"terminated\":{\"exitCode\":1}}");
		run_for(w, HF_SECOND);
		container_is(w, "p", i + 1, "{\"waiting\":{}}");
		run_for(w, 5 * HF_MINUTE);
	}
	assert_in_range(kubelet->looks - looks, 360, 365 + 2 * 12);
	/* Of the heartbeat. */
	assert_in_range(w->writes - writes, 10, 30);
}

static const char *word_on(struct world *w, const char *pod)
{
	return status_of(w, &hf_pods, pod, "holdfast.dev/DeviceHealthy");
}

static void a_person_says(struct world *w, const char *device, hf_time at)
{
	char time[HF_TIME_TEXT_MAX], text[256];

	hf_time_format(at, time);
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"annotations\":{\"holdfast.dev/cleared\":\"%s%s%s\"}}}", device,
		 device[0] != '\0' ? " " : "", time);
	apply(w, HF_VERB_PATCH, &hf_devicehealths, "n1", NULL, text);
}

/* What several devices share is the node's. */
static void a_fault_of_one_device_does_not_concern_the_holder_of_another(void **state)
{
	struct world *w = *state;

	open_agent(w);
	create_pod(w, "other");
	create_pod(w, "hung");
	run_for(w, 5 * HF_SECOND);
	holds(w, "other", "0000:1c:00.0");
	run_for(w, 3 * HF_SECOND);
	/* Two of three. */
	kernel_says(w, HUNG);
	kernel_says(w, "NVRM: Xid (PCI:0000:1b:00): 119, pid=1, x\n");
	run_for(w, 3 * HF_SECOND);
	assert_string_equal(state_now(w, GPU), "Unknown");
	assert_string_equal(status_of(w, &hf_nodes, "n1", "AcceleratorUnhealthy"), "True");
	assert_string_equal(word_on(w, "other"), "-");
	holds(w, "hung", GPU);
	run_for(w, 3 * HF_SECOND);
	assert_string_equal(word_on(w, "hung"), "False");
}

/* The driver sees one device fewer.  If a device is out of use, it is the missing one; else any device may be. */
static void a_missing_device_concerns_its_holder_if_it_is_known(void **state)
{
	struct world *w = *state;

	open_agent(w);
	create_pod(w, "other");
	for (int i = 0; i < HF_COUNTS; i++)
		hf_intake_count(hf_agent_intake(w->agent), (enum hf_intake_count)i,
				i == HF_COUNT_NVML ? 2 : 3);
	run_for(w, 2 * HF_SECOND);
	kernel_says(w, LOST);
	run_for(w, 3 * HF_MINUTE);
	holds(w, "other", "0000:1c:00.0");
	run_for(w, 3 * HF_SECOND);
	assert_string_equal(word_on(w, "other"), "-");
	a_person_says(w, GPU, hf_loop_wall(w->loop));
	run_for(w, HF_MINUTE);
	assert_string_equal(word_on(w, "other"), "False");
}

/* The driver numbers those that it finds. */
static void a_number_that_another_device_has_now_is_that_ones(void **state)
{
	static const char *const before[] = {"0000:1a:00.0", "0000:1b:00.0", "0000:1c:00.0"};
	struct hf_health_presence gpu;
	struct world *w = *state;

	open_agent(w);
	create_pod(w, "fresh");
	memset(&gpu, 0, sizeof(gpu));
	gpu.kind = HF_HEALTH_GPU;
	for (int i = 0; i < 3; i++) {
		snprintf(gpu.id, sizeof(gpu.id), "%s", before[i]);
		snprintf(gpu.alias, sizeof(gpu.alias), "gpu-%d", i);
		hf_intake_device(hf_agent_intake(w->agent), &gpu);
	}
	run_for(w, 5 * HF_SECOND);
	kernel_says(w, LOST);
	run_for(w, 5 * HF_SECOND);
	for (int i = 1; i < 3; i++) {
		snprintf(gpu.id, sizeof(gpu.id), "%s", before[i]);
		snprintf(gpu.alias, sizeof(gpu.alias), "gpu-%d", i - 1);
		hf_intake_device(hf_agent_intake(w->agent), &gpu);
	}
	run_for(w, 5 * HF_SECOND);
	holds(w, "fresh", "gpu-0");
	run_for(w, 5 * HF_SECOND);
	assert_string_equal(word_on(w, "fresh"), "-");
	kernel_says(w, "NVRM: Xid (PCI:0000:1b:00): 62, pid=1, x\n");
	run_for(w, 5 * HF_SECOND);
	assert_string_equal(word_on(w, "fresh"), "False");
}

/* Its event has the number alone, and the line says that it means nothing. */
static void the_librarys_word_of_an_xid_is_a_witness_of_the_kernels(void **state)
{
	struct world *w = *state;
	struct hf_health_evidence e = hf_health_evidence_none();
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;

	open_agent(w);
	run_for(w, 5 * HF_SECOND);
	e.detector = HF_HEALTH_XID;
	e.source = HF_HEALTH_BY_NVML;
	e.code = 74;
	snprintf(e.device, sizeof(e.device), GPU);
	for (int i = 0; i < 3; i++) {
		/* Whichever comes first. */
		if (i != 1)
			hf_intake_second(hf_agent_intake(w->agent), &e);
		run_for(w, 300 * HF_MS);
		kernel_says(w, "NVRM: Xid (PCI:0000:1a:00): 74, pid=1, name=x, NVLink: fatal error "
			       "detected on link 2(0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)\n");
		run_for(w, 300 * HF_MS);
		if (i == 1)
			hf_intake_second(hf_agent_intake(w->agent), &e);
		run_for(w, 70 * HF_SECOND);
	}
	health = health_of(w, arena);
	assert_string_equal(device_in(&health, GPU)->state, "Healthy");
	assert_int_equal(device_in(&health, GPU)->faults.len, 1);
	/* What the log does not tell the library does, a little later. */
	e.code = 48;
	hf_intake_second(hf_agent_intake(w->agent), &e);
	run_for(w, HF_SECOND);
	assert_string_equal(state_now(w, GPU), "Healthy");
	run_for(w, 2 * HF_SECOND);
	assert_string_equal(state_now(w, GPU), "Unhealthy");
}

static void a_pod_of_the_same_name_is_another_holder(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;
	const struct hf_device_report *gpu;

	open_agent(w);
	create_pod(w, "rank-0");
	run_for(w, 2 * HF_SECOND);
	holds(w, "rank-0", UUID);
	run_for(w, HF_MINUTE);
	apply(w, HF_VERB_DELETE, &hf_pods, "rank-0", NULL, NULL);
	run_for(w, HF_SECOND);
	create_pod(w, "rank-0");
	run_for(w, HF_SECOND);
	/* Of which the kubelet's list shows nothing. */
	holds(w, "rank-0", UUID);
	run_for(w, 5 * HF_SECOND);
	health = health_of(w, arena);
	gpu = device_in(&health, GPU);
	assert_int_equal(gpu->holders.len, 2);
	assert_true(gpu->holders.items[0].until == HF_TIME_NONE);
	assert_true(gpu->holders.items[1].until != HF_TIME_NONE);
	assert_string_not_equal(gpu->holders.items[0].uid, gpu->holders.items[1].uid);
	kernel_says(w, HUNG);
	run_for(w, 3 * HF_SECOND);
	assert_string_equal(status_of(w, &hf_pods, "rank-0", HF_POD_COND_DEVICE_HEALTHY), "False");
}

static void has_part(struct world *w, const char *name, int32_t instance)
{
	struct hf_mig_instance part;

	memset(&part, 0, sizeof(part));
	snprintf(part.name, sizeof(part.name), "%s", name);
	snprintf(part.device, sizeof(part.device), "%s", GPU);
	part.instance = instance;
	hf_intake_mig_instance(hf_agent_intake(w->agent), &part);
}

static void hold_parts(struct world *w)
{
	struct hf_holding two[2];

	memset(two, 0, sizeof(two));
	for (int i = 0; i < 2; i++) {
		snprintf(two[i].ns, sizeof(two[i].ns), "default");
		snprintf(two[i].pod, sizeof(two[i].pod), "of-%d", 7 + i);
		snprintf(two[i].container, sizeof(two[i].container), "c");
		snprintf(two[i].resource, sizeof(two[i].resource), "nvidia.com/mig-1g.10gb");
		snprintf(two[i].id, sizeof(two[i].id), "MIG-%d", 7 + i);
	}
	(void)hf_intake_holdings(hf_agent_intake(w->agent), two, 2,
				 hf_intake_now(hf_agent_intake(w->agent)));
}

/* A GPU in instances: the kubelet tells of those alone, whose they are the library. */
static void the_holder_of_a_mig_instance_is_told_of_the_sick_gpu(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;

	open_agent(w);
	create_pod(w, "of-7");
	create_pod(w, "of-8");
	run_for(w, 2 * HF_SECOND);
	hold_parts(w);
	run_for(w, 2 * HF_SECOND);
	has_part(w, "MIG-7", 7);
	has_part(w, "MIG-8", 8);
	run_for(w, 3 * HF_SECOND);
	/* Nothing happened but that: its holders are written now. */
	health = health_of(w, arena);
	assert_int_equal(device_in(&health, GPU)->holders.len, 2);
	/* What stops nothing is told of the instance that it names: on the Node and on one pod. */
	kernel_says(w, "NVRM: Xid (PCI:0000:1a:00 GPU-I:07): 78, pid=1, name=x, y\n");
	run_for(w, 3 * HF_SECOND);
	assert_int_equal(hf_memstore_count(w->memstore, &hf_events), 2);
	assert_string_equal(word_on(w, "of-7"), "-");
	kernel_says(w, "NVRM: Xid (PCI:0000:1a:00 GPU-I:07): 95, pid=7, name=python, Uncontained: "
		       "FBHUB (0x0,0x0). RST: Yes, D-RST: No\n");
	run_for(w, 3 * HF_SECOND);
	assert_string_equal(word_on(w, "of-7"), "False");
	assert_string_equal(word_on(w, "of-8"), "False");
	assert_int_equal(hf_memstore_count(w->memstore, &hf_events), 5);
}

/* Rank 0 of a job that begins again: the kubelet's last word was on the one before. */
static void a_pod_that_came_after_the_kubelets_word_holds_nothing_by_it(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;
	const struct hf_device_report *gpu;
	char uid[64];

	open_agent(w);
	create_pod(w, "rank-0");
	run_for(w, 2 * HF_SECOND);
	holds(w, "rank-0", UUID);
	run_for(w, 5 * HF_SECOND);
	kernel_says(w, HUNG);
	run_for(w, 3 * HF_SECOND);
	assert_string_equal(word_on(w, "rank-0"), "False");
	health = health_of(w, arena);
	snprintf(uid, sizeof(uid), "%s", device_in(&health, GPU)->holders.items[0].uid);
	apply(w, HF_VERB_DELETE, &hf_pods, "rank-0", NULL, NULL);
	create_pod(w, "rank-0");
	run_for(w, 100 * HF_MS);
	kernel_says(w, "NVRM: Xid (PCI:0000:1c:00): 43, pid=1, x\n");
	run_for(w, 5 * HF_SECOND);
	assert_string_equal(word_on(w, "rank-0"), "-");
	holds(w, "rank-0", "0000:1c:00.0");
	run_for(w, 5 * HF_SECOND);
	assert_string_equal(word_on(w, "rank-0"), "-");
	health = health_of(w, arena);
	gpu = device_in(&health, GPU);
	assert_int_equal(gpu->holders.len, 1);
	assert_string_equal(gpu->holders.items[0].uid, uid);
	assert_true(gpu->holders.items[0].until != HF_TIME_NONE);
}

static void a_fault_long_after_a_pods_end_is_not_that_pods(void **state)
{
	struct world *w = *state;

	open_agent(w);
	create_pod(w, "p");
	run_for(w, 2 * HF_SECOND);
	holds(w, "p", UUID);
	run_for(w, HF_MINUTE);
	holds(w, "", "");
	run_for(w, HF_MINUTE);
	kernel_says(w, HUNG);
	run_for(w, 5 * HF_SECOND);
	assert_string_equal(status_of(w, &hf_pods, "p", HF_POD_COND_DEVICE_HEALTHY), "-");
	assert_int_equal(w->pod_writes, 0);
}

static void an_api_server_that_refuses_is_asked_ever_more_rarely_and_told_in_the_end(void **state)
{
	struct world *w = *state;

	w->refuse = HF_E_UNAVAILABLE;
	open_agent(w);
	run_for(w, 2 * HF_SECOND);
	kernel_says(w, LOST);
	run_for(w, 10 * HF_MINUTE);
	/* Two objects and an event, each 30 s at the last. */
	assert_in_range(w->writes, 30, 120);
	w->refuse = 0;
	run_for(w, HF_MINUTE);
	assert_string_equal(status_of(w, &hf_nodes, "n1", "AcceleratorUnhealthy"), "True");
	assert_non_null(hf_memstore_peek(w->memstore, &hf_devicehealths, NULL, "n1"));
}

static void without_the_crd_the_node_is_written_all_the_same(void **state)
{
	struct world *w = *state;
	struct hf_error err;

	w->no_crd = true;
	open_agent(w);
	kernel_says(w, "");
	run_for(w, 10 * HF_SECOND);
	kernel_says(w, LOST);
	run_for(w, 10 * HF_MINUTE);
	assert_string_equal(status_of(w, &hf_nodes, "n1", "AcceleratorUnhealthy"), "True");
	assert_in_range(w->device_writes, 10, 60);
	assert_true(hf_agent_ready(w->agent, &err) < 0);
	assert_non_null(strstr(err.text, "written yet: devicehealth: "));
	w->no_crd = false;
	run_for(w, HF_MINUTE);
	assert_ok(hf_agent_ready(w->agent, &err), &err);
}

static void what_a_person_clears_is_on_probation_and_what_fails_later_is_not(void **state)
{
	struct world *w = *state;
	int requests;

	w->no_health_watch = true;
	open_agent(w);
	run_for(w, 2 * HF_SECOND);
	kernel_says(w, LOST);
	run_for(w, 3 * HF_SECOND);
	assert_string_equal(state_now(w, GPU), "Unhealthy");
	/* The acknowledgement is older than the failure, so the person did not look at that failure. */
	a_person_says(w, GPU, hf_loop_wall(w->loop) - 10 * HF_SECOND);
	run_for(w, 7 * HF_MINUTE);
	assert_string_equal(state_now(w, GPU), "Unhealthy");
	/* Another device: this one is not meant. */
	a_person_says(w, "GPU-2", hf_loop_wall(w->loop));
	run_for(w, 7 * HF_MINUTE);
	assert_string_equal(state_now(w, GPU), "Unhealthy");
	/* Prompt, and with two looks a minute. */
	requests = w->device_writes;
	run_for(w, 4 * HF_MINUTE);
	assert_in_range(w->device_writes - requests, 7, 9);
	a_person_says(w, UUID, hf_loop_wall(w->loop));
	run_for(w, 32 * HF_SECOND);
	assert_string_equal(state_now(w, GPU), "Probation");
	assert_string_equal(status_of(w, &hf_nodes, "n1", "AcceleratorUnhealthy"), "False");
	/* It fails again, and the word that stands there is no word about that: not now, and not to an
	 * agent that has just started. */
	kernel_says(w, HUNG);
	run_for(w, 7 * HF_MINUTE);
	assert_string_equal(state_now(w, GPU), "Unhealthy");
	w->agent = hf_agent_destroy(w->agent);
	open_agent(w);
	run_for(w, 7 * HF_MINUTE);
	assert_string_equal(state_now(w, GPU), "Unhealthy");
}

/* With the Node the garbage collector takes what its agent says. */
static void a_node_that_is_made_anew_is_told_of_soon(void **state)
{
	struct world *w = *state;

	open_agent(w);
	run_for(w, 2 * HF_SECOND);
	kernel_says(w, LOST);
	run_for(w, 3 * HF_SECOND);
	assert_string_equal(state_now(w, GPU), "Unhealthy");
	apply(w, HF_VERB_DELETE, &hf_nodes, "n1", NULL, NULL);
	apply(w, HF_VERB_DELETE, &hf_devicehealths, "n1", NULL, NULL);
	run_for(w, 20 * HF_SECOND);
	apply(w, HF_VERB_CREATE, &hf_nodes, "n1", NULL,
	      "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}");
	run_for(w, HF_MINUTE);
	assert_string_equal(state_now(w, GPU), "Unhealthy");
	assert_string_equal(status_of(w, &hf_nodes, "n1", "AcceleratorUnhealthy"), "True");
}

static void a_wall_clock_that_steps_moves_what_is_shown_and_nothing_else(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;

	open_agent(w);
	run_for(w, 2 * HF_SECOND);
	kernel_says(w, HUNG);
	run_for(w, 2 * HF_SECOND);
	hf_loop_step_wall(w->loop, -HF_DAY);
	w->device_writes = 0;
	run_for(w, 7 * HF_MINUTE);
	assert_true(w->device_writes > 0);
	health = health_of(w, arena);
	assert_true(health.observed_at <= hf_loop_wall(w->loop));
	assert_true(health.observed_at > hf_loop_wall(w->loop) - 7 * HF_MINUTE);
	assert_true(device_in(&health, GPU)->since < hf_loop_wall(w->loop));
}

static void a_detector_that_cannot_see_says_why_on_the_page_and_in_the_object(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	HF_AUTO_STRBUF page = HF_STRBUF_INIT((size_t)1 << 20);
	struct hf_device_health health;
	size_t found = 0;

	open_agent(w);
	hf_intake_off(hf_agent_intake(w->agent), HF_HEALTH_BY_NVML, HF_HEALTH_ECC, "no library");
	run_for(w, 5 * HF_SECOND);
	health = health_of(w, arena);
	for (size_t i = 0; i < health.detectors.len; i++) {
		const struct hf_detector_report *d = &health.detectors.items[i];

		if (hf_streq(d->name, "ecc")) {
			assert_string_equal(d->state, "Off");
			assert_string_equal(d->reason, "no library");
			found++;
		}
		if (hf_streq(d->name, "xid")) {
			assert_string_equal(d->state, "On");
			found++;
		}
	}
	assert_int_equal(found, 2);
	hf_agent_page(w->agent, &page);
	assert_non_null(strstr(page.data, "ecc        Off: no library"));
	hf_agent_update_metrics(w->agent);
	hf_strbuf_clear(&page);
	hf_metrics_render(w->metrics, &page);
	assert_non_null(strstr(page.data, "holdfast_agent_detector_up{detector=\"ecc\"} 0"));
	assert_non_null(strstr(page.data, "holdfast_agent_detector_up{detector=\"xid\"} 1"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void says(struct world *w, const char *pod, const char *text)
{
	struct hf_doc *doc = hf_memstore_peek(w->memstore, &hf_pods, "default", pod);
	struct hf_beat beat;

	assert_true(hf_beat_parse(text, strlen(text), &beat));
	hf_agent_heard(w->agent, hf_doc_uid(doc), &beat);
}

static void a_rank_that_reports_stands_in_device_health(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	HF_AUTO_STRBUF page = HF_STRBUF_INIT(65536);
	struct hf_device_health health;

	open_agent(w);
	create_pod(w, "r0");
	run_for(w, HF_MINUTE);
	says(w, "r0", "holdfast/1 step=7 total=100 rank=0");
	run_for(w, 5 * HF_SECOND);
	health = health_of(w, arena);
	assert_int_equal(health.ranks.len, 1);
	assert_string_equal(health.ranks.items[0].pod, "r0");
	assert_string_equal(health.ranks.items[0].state, HF_RANK_ADVANCING);
	assert_int_equal(health.ranks.items[0].step, 7);
	assert_true(health.ranks.items[0].heard_at > 20000 * HF_DAY);
	hf_agent_page(w->agent, &page);
	assert_non_null(strstr(page.data, "default/r0 rank 0  Advancing  step 7"));
	run_for(w, HF_MINUTE);
	health = health_of(w, arena);
	assert_string_equal(health.ranks.items[0].state, HF_RANK_SILENT);
	apply(w, HF_VERB_DELETE, &hf_pods, "r0", NULL, NULL);
	run_for(w, HF_MINUTE);
	health = health_of(w, arena);
	assert_int_equal(health.ranks.len, 0);
}

static void the_ranks_of_a_static_pod_stand_under_its_mirrors_names(void **state)
{
	static const char hash[] = "0123456789abcdef0123456789abcdef";
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	const char *text = "holdfast/1 step=7 total=100 rank=0";
	struct hf_device_health health;
	struct hf_beat beat;
	const char *uid;

	open_agent(w);
	apply(w, HF_VERB_CREATE, &hf_pods, "s-n1", NULL,
	      "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"s-n1\",\"namespace\":"
	      "\"default\",\"annotations\":{\"kubernetes.io/config.hash\":"
	      "\"0123456789abcdef0123456789abcdef\",\"kubernetes.io/config.mirror\":"
	      "\"0123456789abcdef0123456789abcdef\"}},\"spec\":{\"nodeName\":\"n1\","
	      "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}");
	run_for(w, HF_MINUTE);
	assert_true(hf_beat_parse(text, strlen(text), &beat));
	hf_agent_heard(w->agent, hash, &beat);
	beat = (struct hf_beat){.fence_s = 50};
	hf_agent_heard(w->agent, hash, &beat);
	run_for(w, 5 * HF_SECOND);
	uid = hf_doc_uid(hf_memstore_peek(w->memstore, &hf_pods, "default", "s-n1"));
	health = health_of(w, arena);
	assert_int_equal(health.ranks.len, 1);
	assert_string_equal(health.ranks.items[0].pod, "s-n1");
	assert_string_equal(health.ranks.items[0].uid, uid);
	assert_int_equal(health.fences.len, 1);
	assert_string_equal(health.fences.items[0].pod, "s-n1");
	assert_string_equal(health.fences.items[0].uid, uid);
}

static void lease(struct world *w, enum hf_verb verb, int renewal)
{
	char text[256];
	HF_AUTO_DOC body = NULL;
	struct hf_request request = {.verb = verb,
				     .resource = &hf_leases,
				     .ns = "kube-node-lease",
				     .name = verb == HF_VERB_CREATE ? NULL : "n1",
				     .patch_type = HF_PATCH_MERGE,
				     .grace_seconds = HF_GRACE_DEFAULT};
	HF_AUTO_RESULT result;

	snprintf(text, sizeof(text),
		 "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":"
		 "{\"name\":\"n1\",\"namespace\":\"kube-node-lease\"},\"spec\":"
		 "{\"renewTime\":\"1970-01-01T00:%02d:%02d.000000Z\"}}",
		 renewal / 60 % 60, renewal % 60);
	body = hf_doc_from_text(text, strlen(text));
	request.body = body;
	hf_memstore_apply(w->memstore, &request, &result);
	if (result.code != 0)
		fail_msg("lease: %s", result.err.text);
}

/* An operator far away would take the node for dead. */
static void while_ranks_live_and_the_kubelet_is_silent_the_agent_says_so(void **state)
{
	struct world *w = *state;
	int renewal = 0, before;

	open_agent(w);
	create_pod(w, "r0");
	apply(w, HF_VERB_CREATE, &hf_namespaces, "kube-node-lease", NULL,
	      "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":"
	      "\"kube-node-lease\"}}");
	lease(w, HF_VERB_CREATE, renewal);
	run_for(w, HF_MINUTE);
	for (int i = 0; i < 30; i++) {
		says(w, "r0", "holdfast/1 step=7 phase=other");
		lease(w, HF_VERB_PATCH, ++renewal);
		run_for(w, 10 * HF_SECOND);
	}
	before = w->device_writes;
	for (int i = 0; i < 12; i++) {
		says(w, "r0", "holdfast/1 step=7 phase=other");
		run_for(w, 10 * HF_SECOND);
	}
	assert_in_range(w->device_writes - before, 8, 13);
	/* Once they are gone as well there is nothing to save. */
	run_for(w, HF_MINUTE);
	before = w->device_writes;
	run_for(w, 3 * HF_MINUTE);
	assert_in_range(w->device_writes - before, 0, 1);
}

static bool has_contact(struct world *w, uint64_t limit_ms)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	struct hf_contact now = {.at_ms = (uint64_t)(boot_clock(w->loop) / HF_MS)};
	uint64_t age_ms;

	snprintf(now.boot_id, sizeof(now.boot_id), "%s", w->boot);
	return hf_fs_read(w->contact, &text, NULL) == 0 &&
	       hf_contact_judge(text.data, text.len, &now, limit_ms, &age_ms) == HF_CONTACT_FRESH;
}

/* Its pod is told of, and contacts are recorded for as long as the kubelet renews its Lease. */
static void a_rank_that_fences_itself_finds_the_nodes_contact(void **state)
{
	struct world *w = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_device_health health;
	int renewal = 0;

	open_agent(w);
	create_pod(w, "r0");
	apply(w, HF_VERB_CREATE, &hf_namespaces, "kube-node-lease", NULL,
	      "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":"
	      "\"kube-node-lease\"}}");
	lease(w, HF_VERB_CREATE, renewal);
	for (int i = 0; i < 6; i++) {
		lease(w, HF_VERB_PATCH, ++renewal);
		run_for(w, 10 * HF_SECOND);
	}
	assert_false(has_contact(w, 50000));
	says(w, "r0", "holdfast/1 fence_s=50");
	run_for(w, 2 * HF_SECOND);
	health = health_of(w, arena);
	assert_int_equal(health.fences.len, 1);
	assert_string_equal(health.fences.items[0].pod, "r0");
	assert_int_equal(health.fences.items[0].seconds, 50);
	assert_int_equal(health.ranks.len, 0);
	for (int i = 0; i < 30; i++) {
		says(w, "r0", "holdfast/1 fence_s=50");
		lease(w, HF_VERB_PATCH, ++renewal);
		run_for(w, 10 * HF_SECOND);
		/* Ten seconds, two looks, and a request. */
		assert_true(has_contact(w, 21000));
	}
	for (int i = 0; i < 5; i++) {
		says(w, "r0", "holdfast/1 fence_s=50");
		run_for(w, 10 * HF_SECOND);
	}
	assert_false(has_contact(w, 50000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_ranks_of_a_static_pod_stand_under_its_mirrors_names, setup, teardown),
		cmocka_unit_test_setup_teardown(a_rank_that_reports_stands_in_device_health, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			while_ranks_live_and_the_kubelet_is_silent_the_agent_says_so, setup,
			teardown),
		TEST(a_rank_that_fences_itself_finds_the_nodes_contact),
		TEST(a_line_of_the_kernel_becomes_a_condition_and_a_device_health),
		TEST(a_device_that_fails_is_reported_at_once),
		TEST(nothing_is_written_at_rest_but_the_heartbeat),
		TEST(a_pod_that_holds_the_sick_device_is_told_and_no_other),
		TEST(a_holder_that_lives_for_a_second_is_known_and_its_end_is_told),
		TEST(evidence_makes_the_kubelet_be_asked_once_a_second_and_rest_does_not),
		TEST(a_pod_that_fails_again_and_again_makes_the_kubelet_be_asked_as_often),
		TEST(the_end_of_a_container_is_reported_promptly_and_its_holder_stays_an_hour),
		TEST(a_fault_of_one_device_does_not_concern_the_holder_of_another),
		TEST(a_missing_device_concerns_its_holder_if_it_is_known),
		TEST(a_number_that_another_device_has_now_is_that_ones),
		TEST(the_librarys_word_of_an_xid_is_a_witness_of_the_kernels),
		TEST(a_pod_of_the_same_name_is_another_holder),
		TEST(the_holder_of_a_mig_instance_is_told_of_the_sick_gpu),
		TEST(a_pod_that_came_after_the_kubelets_word_holds_nothing_by_it),
		TEST(a_fault_long_after_a_pods_end_is_not_that_pods),
		TEST(an_api_server_that_refuses_is_asked_ever_more_rarely_and_told_in_the_end),
		TEST(without_the_crd_the_node_is_written_all_the_same),
		TEST(what_a_person_clears_is_on_probation_and_what_fails_later_is_not),
		TEST(a_node_that_is_made_anew_is_told_of_soon),
		TEST(a_wall_clock_that_steps_moves_what_is_shown_and_nothing_else),
		TEST(a_detector_that_cannot_see_says_why_on_the_page_and_in_the_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
