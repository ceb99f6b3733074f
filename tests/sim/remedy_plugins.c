/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_actor.h"
#include "sim/remedy_dra_store.h"

#include "base/str.h"
#include "store/resource.h"

#include <stdio.h>
#include <string.h>

/*
 * Single devices out of use whose device plugin withholds them from pods, or goes on offering them. The device of each
 * test is GPU-plugin of node n001.
 */

#define DEVICE "{'mode':'quarantine','quarantine':'Device'," WIDE "}"

static struct dra *begin(struct rw *w, int nodes, const char *policy)
{
	struct dra *dra = dra_create(w);

	rw_begin(w, nodes, policy);
	return dra;
}

/* The agent of node 1 reports a failed GPU of a device plugin. resource: "null" if the agent does not know it. pods: the pods
 * that have the GPU, with a space between two; "-NAME": the pod has ended. */
static void report_state(struct rw *w, const char *state, const char *cls, const char *resource,
			 const char *pods)
{
	char text[2048], boot[40], at[HF_TIME_TEXT_MAX], holders[768] = "", pod[32];
	const char *uid;
	int len;

	hf_time_format_micro(hf_loop_wall(w->loop), at);
	for (; sscanf(pods, "%31s%n", pod, &len) == 1; pods += len) {
		const char *name = pod + (*pod == '-');

		uid = hf_json_path_str(rw_get(w, &hf_pods, "default", name), "metadata", "uid",
				       NULL);
		assert_non_null(uid);
		snprintf(holders + strlen(holders), sizeof(holders) - strlen(holders),
			 "%s{'namespace':'default','pod':'%s','uid':'%s','container':'c'%s%s%s}",
			 *holders == '\0' ? "" : ",", name, uid, name > pod ? ",'until':'" : "",
			 name > pod ? at : "", name > pod ? "'" : "");
	}
	rw_boot_id(w, 1, boot);
	snprintf(
		text, sizeof(text),
		"{'status':{'state':'%s','class':'%s','action':'reset-device','bootID':'%s',"
		"'observedTime':'%s','evidenceTime':'%s','devices':[{'id':'0000:1a:00.0','uuid':'GPU-plugin',"
		"'kind':'gpu','resource':%s,'state':'%s','class':'%s','since':"
		"'%s','faults':[{'detector':'xid','code':119,'class':'%s','action':'reset-device',"
		"'first':'%s','last':'%s','count':1,'active':true}],'holders':[%s]}]}}",
		state, cls, boot, at, at, resource, state, cls, at, cls, at, at, holders);
	w->by_test[1] = true;
	rw_patch_status(w, &hf_devicehealths, "n001", text);
}

static void report_class(struct rw *w, const char *cls, const char *resource, const char *pods)
{
	report_state(w, "Unhealthy", cls, resource, pods);
}

#define RESOURCE "'example.com/gpu'"

static void report_gpu(struct rw *w, const char *pods)
{
	report_class(w, "gpu-reset", RESOURCE, pods);
}

/* The agent goes on reporting. */
static void run_on(struct rw *w, const char *pods, hf_time span)
{
	for (hf_time at = 0; at < span; at += 5 * HF_MINUTE) {
		report_gpu(w, pods);
		rw_run(w, 5 * HF_MINUTE);
	}
}

static void offer(struct rw *w, int capacity, int allocatable)
{
	char text[160];

	snprintf(
		text, sizeof(text),
		"{'status':{'capacity':{'example.com/gpu':'%d'},'allocatable':{'example.com/gpu':'%d'}}}",
		capacity, allocatable);
	rw_patch_status(w, &hf_nodes, "n001", text);
}

/* A GPU of node 1 has failed. The plugin of the node offers so many of its 8 GPUs. */
static struct dra *begin_with_plugin(struct rw *w, const char *policy, int allocatable)
{
	struct dra *dra = begin(w, 5, policy);

	offer(w, 8, allocatable);
	report_gpu(w, "");
	return dra;
}

/* The plugin withholds the failed device. Then the plugin is away, for instance during a reset, and after five minutes the
 * kubelet says that the node has none. */
static void a_plugin_that_is_away_offers_no_device(void **state)
{
	struct rw *w = *state;

	(void)begin_with_plugin(w, DEVICE, 7);
	rw_run(w, 10 * HF_SECOND);
	assert_true(dra_is_marked(w, "n001"));
	assert_string_equal(dra_devices_out(w, "n001"), "GPU-plugin");
	offer(w, 8, 0);
	rw_run(w, 5 * HF_MINUTE);
	offer(w, 0, 0);
	rw_run(w, 5 * HF_MINUTE);
	assert_false(rw_tainted(w, 1));
	assert_string_equal(dra_devices_out(w, "n001"), "GPU-plugin");
	/* The plugin comes back, and offers all. */
	offer(w, 8, 8);
	rw_run(w, 20 * HF_SECOND);
	assert_false(rw_tainted(w, 1));
	assert_string_equal(dra_devices_out(w, "n001"), "");
	rw_run(w, 30 * HF_SECOND);
	assert_true(rw_tainted(w, 1));
}

/* The agent sees the fault at once. The plugin sees it too, and the kubelet writes the Node some seconds later. */
static void a_plugin_has_time_to_withhold_the_device(void **state)
{
	struct rw *w = *state;

	(void)begin_with_plugin(w, DEVICE, 8);
	rw_run(w, 12 * HF_SECOND);
	assert_true(dra_is_marked(w, "n001"));
	assert_false(rw_tainted(w, 1));
	assert_string_equal(dra_devices_out(w, "n001"), "");
	offer(w, 8, 7);
	rw_run(w, HF_MINUTE);
	assert_false(rw_tainted(w, 1));
	assert_string_equal(dra_devices_out(w, "n001"), "GPU-plugin");
}

/* No pod is given the device, so the agent forgets its resource after an hour. */
static void a_device_stays_withheld_when_no_pod_has_it(void **state)
{
	struct rw *w = *state;

	(void)begin_with_plugin(w, DEVICE, 7);
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(dra_devices_out(w, "n001"), "GPU-plugin");
	report_class(w, "gpu-reset", "null", "");
	rw_run(w, 2 * HF_MINUTE);
	assert_false(rw_tainted(w, 1));
	assert_string_equal(dra_devices_out(w, "n001"), "GPU-plugin");
	offer(w, 8, 8);
	rw_run(w, HF_MINUTE);
	assert_true(rw_tainted(w, 1));
}

/* The node has the resource of a plugin that was removed: the kubelet calls its capacity 0 until it starts again. */
static void a_resource_that_is_left_over_withholds_no_device(void **state)
{
	struct rw *w = *state;

	(void)begin(w, 5, DEVICE);
	rw_patch_status(
		w, &hf_nodes, "n001",
		"{'status':{'capacity':{'example.com/old':'0'},'allocatable':{'example.com/old':'0'}}}");
	offer(w, 8, 7);
	report_gpu(w, "");
	rw_run(w, 10 * HF_SECOND);
	report_class(w, "gpu-reset", "null", "");
	rw_run(w, 2 * HF_MINUTE);
	assert_false(rw_tainted(w, 1));
	/* The plugin is away. */
	offer(w, 0, 0);
	rw_run(w, 2 * HF_MINUTE);
	assert_false(rw_tainted(w, 1));
	/* It has started again and does not know of the fault. */
	offer(w, 8, 8);
	rw_run(w, 2 * HF_MINUTE);
	assert_true(rw_tainted(w, 1));
}

/* The node gets its taint in 25 to 45 seconds. The plugin has had time to withhold the device then. */
static void expect_taint_after_wait(struct rw *w)
{
	rw_run(w, 25 * HF_SECOND);
	assert_false(rw_tainted(w, 1));
	rw_run(w, 20 * HF_SECOND);
	assert_true(rw_tainted(w, 1));
}

static void a_plugin_that_offers_a_failed_device_costs_the_node(void **state)
{
	struct rw *w = *state;

	(void)begin_with_plugin(w, DEVICE, 8);
	expect_taint_after_wait(w);
}

/* ---- pods that are given a failed device ----------------------------------------------------------- */

#define LATE_PODS(n)                                                                               \
	"{'mode':'remediate','quarantine':'Device','drain':{'graceSeconds':1,'latePods':" n        \
	"}," WIDE "}"

/* The count in the mark of node 1. */
static int late_of(struct rw *w)
{
	const char *found = strstr(dra_mark_of(w, "n001"), "\"late\":");
	int n = 0;

	return found != NULL && sscanf(found, "\"late\":%d", &n) == 1 ? n : 0;
}

struct said {
	const char *part;
	bool found;
};

static void look_at_message(void *arg, struct hf_doc *doc)
{
	struct said *said = arg;
	const char *message = hf_json_path_str(hf_doc_json(doc), "message", NULL);

	said->found |= message != NULL && strstr(message, said->part) != NULL;
}

static bool is_told(struct rw *w, const char *part)
{
	struct said said = {.part = part};

	hf_memstore_each(w->memstore, &hf_events, NULL, look_at_message, &said);
	return said.found;
}

/* The plugin gives the failed GPU of node 1 to these pods, which are new. */
static void give(struct rw *w, const char *pods)
{
	const char *rest = pods;
	char pod[32];
	int len;

	for (; sscanf(rest, "%31s%n", pod, &len) == 1; rest += len)
		rw_pod(w, pod, 1, "ReplicaSet");
	w->holder[1] = NULL; /* the name is gone at the return, and the report has it */
	report_gpu(w, pods);
}

/* The plugin of node 1 offers a failed GPU, and the node is not taken for it. */
static struct dra *begin_offered(struct rw *w, const char *policy)
{
	struct dra *dra = begin_with_plugin(w, policy, 8);

	rw_run(w, HF_MINUTE);
	assert_true(dra_is_marked(w, "n001"));
	assert_false(rw_tainted(w, 1));
	assert_string_equal(dra_devices_out(w, "n001"), "");
	return dra;
}

static void a_node_whose_plugin_offers_a_device_stays_until_the_limit(void **state)
{
	struct rw *w = *state;

	(void)begin(w, 5, LATE_PODS("2"));
	offer(w, 8, 8);
	/* This pod had the device before, so it does not count. */
	rw_pod(w, "early", 1, "ReplicaSet");
	rw_run(w, 2 * HF_SECOND);
	report_gpu(w, "early");
	rw_run(w, HF_MINUTE);
	assert_true(rw_is_evicted(w, "default", "early"));
	assert_int_equal(late_of(w), 0);
	assert_false(rw_tainted(w, 1));
	assert_true(rw_event(w, "DeviceStillOffered", "n001"));
	assert_true(is_told(w,
			    "the device plugin of example.com/gpu still offers the failed device "
			    "GPU-plugin: the node's other devices stay in use, and pods that are "
			    "given the failed one are evicted; after 2 of them the node gets the "
			    "taint (policy p, drain.latePods)"));
	give(w, "late-1");
	rw_run(w, HF_MINUTE);
	assert_true(rw_is_evicted(w, "default", "late-1"));
	assert_int_equal(late_of(w), 1);
	run_on(w, "", HF_HOUR);
	assert_false(rw_tainted(w, 1));
	give(w, "late-2");
	rw_run(w, HF_MINUTE);
	assert_true(rw_is_evicted(w, "default", "late-2"));
	assert_int_equal(late_of(w), 2);
	assert_true(rw_tainted(w, 1));
	assert_true(is_told(w,
			    "the device plugin of example.com/gpu still offers the failed device "
			    "GPU-plugin, and 2 pods that were given it have been evicted"));
	/* As on each quarantined node. */
	give(w, "late-3");
	rw_run(w, 2 * HF_MINUTE);
	assert_true(rw_is_evicted(w, "default", "late-3"));
	assert_int_equal(late_of(w), 2);
	/* The count ends with the quarantine. */
	w->by_test[1] = false;
	rw_say(w, 1, RW_WELL);
	rw_run(w, HF_MINUTE);
	assert_false(dra_is_marked(w, "n001") || rw_tainted(w, 1));
	report_gpu(w, "");
	rw_run(w, HF_MINUTE);
	assert_true(dra_is_marked(w, "n001"));
	assert_int_equal(late_of(w), 0);
	assert_false(rw_tainted(w, 1));
}

/* Each pod fails on the device before it is evicted, and its owner creates the next pod. */
static void pods_that_fail_on_the_device_count_too(void **state)
{
	struct rw *w = *state;

	(void)begin_offered(w, LATE_PODS("2"));
	give(w, "late-1");
	rw_run(w, HF_SECOND / 2);
	report_gpu(w, "-late-1");
	rw_run(w, HF_MINUTE);
	assert_false(rw_is_evicted(w, "default", "late-1"));
	assert_false(rw_tainted(w, 1));
	rw_pod(w, "late-2", 1, "ReplicaSet");
	w->holder[1] = NULL;
	report_gpu(w, "late-2 -late-1");
	rw_run(w, HF_SECOND / 2);
	report_gpu(w, "-late-2 -late-1");
	rw_run(w, 10 * HF_SECOND);
	assert_int_equal(late_of(w), 0);
	assert_true(rw_tainted(w, 1));
	assert_true(is_told(w, "and 2 pods that were given it have been evicted or ended"));
}

/* No pod is evicted from a device that only is slow, so the limit would never be reached. */
static void a_slow_device_that_is_offered_costs_the_node(void **state)
{
	struct rw *w = *state;

	(void)begin(w, 5, LATE_PODS("2"));
	offer(w, 8, 8);
	report_state(w, "Degraded", "degraded", RESOURCE, "");
	rw_run(w, 20 * HF_SECOND);
	assert_true(dra_is_marked(w, "n001"));
	rw_run(w, HF_MINUTE);
	assert_true(rw_tainted(w, 1));
	assert_false(rw_event(w, "DeviceStillOffered", "n001"));
}

/* Two pods that came in one moment: the second one waits until the node has its taint. The API server is slow, so that
 * the taint comes late. */
static void no_more_pods_are_evicted_than_the_limit_before_the_taint(void **state)
{
	struct rw *w = *state;
	struct dra *dra = begin_offered(w, LATE_PODS("1"));

	dra->delay = 40 * HF_SECOND;
	give(w, "late-1 late-2");
	for (int i = 0; i < 180 && !rw_tainted(w, 1); i++) {
		assert_true(rw_is_evicted(w, "default", "late-1") +
				    rw_is_evicted(w, "default", "late-2") <=
			    1);
		rw_run(w, HF_SECOND);
	}
	assert_true(rw_tainted(w, 1));
	assert_int_equal(late_of(w), 1);
	rw_run(w, 2 * HF_MINUTE);
	assert_true(rw_is_evicted(w, "default", "late-1") && rw_is_evicted(w, "default", "late-2"));
	assert_int_equal(late_of(w), 1);
}

/* A disruption budget refuses both. The next leader knows the last one of them. */
static void a_refused_eviction_counts_once(void **state)
{
	struct rw *w = *state;
	const char *uid;
	bool first;

	(void)begin_offered(w, LATE_PODS("3"));
	w->refuse_evictions = true;
	give(w, "late-1 late-2");
	for (int i = 0; i < 10; i++) {
		report_gpu(w, "late-1 late-2");
		rw_run(w, 3 * HF_MINUTE);
	}
	assert_int_equal(late_of(w), 2);
	assert_true(rw_event(w, "EvictionRefused", "n001"));
	uid = hf_json_path_str(rw_get(w, &hf_pods, "default", "late-1"), "metadata", "uid", NULL);
	first = strstr(dra_mark_of(w, "n001"), uid) != NULL;
	rw_remove(w, &hf_pods, "default", first ? "late-2" : "late-1", 0);
	rw_stop(w);
	rw_start(w);
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(late_of(w), 2);
	assert_false(rw_tainted(w, 1));
	report_gpu(w, first ? "late-1" : "late-2");
	w->refuse_evictions = false;
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(late_of(w), 2);
	assert_true(rw_is_evicted(w, "default", "late-1") && rw_is_evicted(w, "default", "late-2"));
	assert_false(rw_tainted(w, 1));
}

static void a_pod_counts_once_whenever_the_operator_dies(void **state)
{
	struct rw *w = *state;
	char pod[16];

	(void)begin_offered(w, LATE_PODS("9"));
	for (int i = 0; i < 8; i++) {
		snprintf(pod, sizeof(pod), "late-%d", i);
		w->how = i % 2 == 0 ? RW_BEFORE : RW_AFTER;
		w->die_at = w->writes + (unsigned)i / 2 + 1;
		give(w, pod);
		rw_run(w, 5 * HF_MINUTE);
		w->how = RW_ALIVE;
		rw_stop(w);
		rw_start(w);
		report_gpu(w, rw_is_evicted(w, "default", pod) ? "" : pod);
		rw_run(w, 10 * HF_MINUTE);
		assert_true(rw_is_evicted(w, "default", pod));
		assert_int_equal(late_of(w), i + 1);
		assert_false(rw_tainted(w, 1));
	}
	assert_true(w->met.deaths >= 4);
	give(w, "last");
	rw_run(w, 10 * HF_MINUTE);
	assert_true(rw_tainted(w, 1));
}

/* A reset needs that no pod can be given the device. A dry run acts on nothing, a person has no lock on the node, and the
 * plugin may withhold the device after its restart. */
static void an_act_takes_the_node_whose_plugin_offers_its_device(void **state)
{
	struct rw *w = *state;
	struct ra *actors = ra_create(w);

	w->people_ask = true;
	(void)begin_offered(w, LATE_PODS("2"));
	ra_all(actors, RA_NO_START, RA_NO_START);
	ra_request(actors, 1, 1, "person", "");
	ra_request(actors, 1, 2, "reset-device", ",'dryRun':true");
	ra_request(actors, 1, 3, "restart-plugin", "");
	rw_run(w, 5 * HF_MINUTE);
	assert_false(rw_tainted(w, 1));
	rw_patch(w, &hf_remediations, "n001-3", "{'spec':{'cancel':true}}");
	rw_run(w, HF_SECOND);
	ra_request(actors, 1, 4, "reset-device", "");
	rw_run(w, 2 * HF_MINUTE);
	assert_true(rw_tainted(w, 1));
	assert_non_null(strstr(dra_mark_of(w, "n001"), "\"policy\":\"p\""));
}

/* As without drain.latePods: the reset comes when no pod can be given the device. */
static void a_policy_that_mends_takes_the_node(void **state)
{
	struct rw *w = *state;
	struct ra *actors = ra_create(w);

	ra_all(actors, RA_NO_START, RA_NO_START);
	(void)begin_with_plugin(
		w,
		"{'mode':'remediate','quarantine':'Device','drain':{'latePods':2},'mend':{}," WIDE
		"}",
		8);
	expect_taint_after_wait(w);
	assert_string_equal(ra_phase(actors, 1), "Approved");
}

/* The limit ends, and the policy stops evicting. */
static void a_policy_without_late_pods_takes_the_node(void **state)
{
	static const char *const changes[] = {
		"{'spec':{'drain':{'latePods':null}}}", "{'spec':{'drain':{'mode':'complete'}}}",
		"{'spec':{'mode':'quarantine'}}", "{'spec':{'quarantine':'Node'}}"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(changes); i++) {
		struct rw *w;

		rw_setup((void **)&w);
		(void)begin_offered(w, LATE_PODS("2"));
		rw_run(w, 10 * HF_MINUTE);
		assert_false(rw_tainted(w, 1));
		rw_patch(w, &hf_healthpolicies, "p", changes[i]);
		rw_run(w, HF_MINUTE + 5 * HF_SECOND);
		assert_true(rw_tainted(w, 1));
		rw_teardown((void **)&w);
	}
}

/* Then no pod can be given the device, and resets need not wait. */
static void a_plugin_that_withholds_the_device_after_all_is_told(void **state)
{
	struct rw *w = *state;

	(void)begin_offered(w, LATE_PODS("2"));
	give(w, "late-1");
	rw_run(w, HF_MINUTE);
	/* A graver class is written into the mark, and the count stays. */
	report_class(w, "reboot", RESOURCE, "");
	rw_run(w, 10 * HF_SECOND);
	assert_non_null(strstr(dra_mark_of(w, "n001"), "\"class\":\"reboot\""));
	assert_int_equal(late_of(w), 1);
	offer(w, 8, 7);
	rw_run(w, 20 * HF_SECOND);
	assert_string_equal(dra_devices_out(w, "n001"), "GPU-plugin");
	rw_run(w, 10 * HF_MINUTE);
	report_class(w, "reboot", RESOURCE, "");
	offer(w, 8, 8);
	rw_run(w, 20 * HF_SECOND);
	assert_string_equal(dra_devices_out(w, "n001"), "");
	rw_run(w, 10 * HF_MINUTE);
	assert_false(rw_tainted(w, 1));
	assert_int_equal(late_of(w), 1);
}

/* These pods have waited for devices since before the fault. */
static void a_pod_that_has_waited_for_devices_counts(void **state)
{
	static const char *const pods[] = {"queued-1", "queued-2"};
	struct rw *w = *state;
	char at[HF_TIME_TEXT_MAX], text[192];

	(void)begin(w, 5, LATE_PODS("2"));
	offer(w, 8, 8);
	for (size_t i = 0; i < 2; i++)
		rw_pod(w, pods[i], 1, "ReplicaSet");
	w->holder[1] = NULL;
	rw_run(w, 2 * HF_SECOND);
	report_gpu(w, "");
	rw_run(w, HF_MINUTE);
	for (int i = 0; i < 2; i++) {
		assert_false(rw_tainted(w, 1));
		hf_time_format(hf_loop_wall(w->loop), at);
		snprintf(text, sizeof(text),
			 "{'status':{'conditions':[{'type':'PodScheduled','status':'True',"
			 "'lastTransitionTime':'%s'}]}}",
			 at);
		rw_patch_in(w, &hf_pods, "default", pods[i], "status", text);
		report_gpu(w, pods[i]);
		rw_run(w, HF_MINUTE);
		assert_true(rw_is_evicted(w, "default", pods[i]));
		assert_int_equal(late_of(w), i + 1);
	}
	assert_true(rw_tainted(w, 1));
}

/* Then nothing shows which pods are given the device. The policy allows no such pod, or two. */
static void a_node_whose_agent_dies_is_taken(void **state)
{
	static const char *const policies[] = {DEVICE, LATE_PODS("2")};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct rw *w;

		rw_setup((void **)&w);
		(void)begin_with_plugin(w, policies[i], i == 0 ? 7 : 8);
		rw_run(w, 14 * HF_MINUTE);
		assert_true(dra_is_marked(w, "n001"));
		assert_false(rw_tainted(w, 1));
		rw_run(w, 10 * HF_MINUTE);
		assert_int_equal(rw_tainted(w, 1), i == 1);
		offer(w, 8, 8);
		rw_run(w, HF_MINUTE);
		assert_true(rw_tainted(w, 1));
		rw_teardown((void **)&w);
	}
}

/* Evictions that are refused, operators that die, and a former leader that goes on beside the next one. */
static void evictions_keep_to_the_limit_under_trouble(unsigned seed)
{
	char pods[12][16], held[256];
	struct rw *w;

	rw_setup((void **)&w);
	hf_rng_init(&w->rng, seed);
	(void)begin_offered(w, LATE_PODS("3"));
	for (int n = 0; n < 12 && !rw_tainted(w, 1); n++) {
		snprintf(pods[n], sizeof(pods[n]), "late-%d", n);
		rw_pod(w, pods[n], 1, "ReplicaSet");
		w->holder[1] = NULL;
		w->refuse_evictions = rw_pick(w, 3) == 0;
		w->refuse_permille = rw_pick(w, 2) * 150;
		if (rw_pick(w, 2) == 0)
			rw_change_leaders(w);
		else if (rw_pick(w, 2) == 0)
			rw_kill_soon(w);
		for (int i = 0; i < 60 && !rw_tainted(w, 1); i++) {
			int evicted = 0;

			*held = '\0';
			for (int k = 0; k <= n; k++) {
				evicted += rw_is_evicted(w, "default", pods[k]);
				if (!rw_is_evicted(w, "default", pods[k]))
					snprintf(held + strlen(held), sizeof(held) - strlen(held),
						 " %s", pods[k]);
			}
			assert_true(evicted <= late_of(w) && late_of(w) <= 3);
			if (i % 10 == 0)
				report_gpu(w, held);
			rw_run(w, HF_SECOND);
		}
		rw_calm(w);
	}
	rw_calm(w);
	w->refuse_evictions = false;
	rw_run(w, 5 * HF_MINUTE);
	assert_true(rw_tainted(w, 1));
	rw_teardown((void **)&w);
}

static void no_trouble_makes_the_evictions_more_than_the_limit(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 40; seed++)
		evictions_keep_to_the_limit_under_trouble(seed);
}

int main(int argc, char **argv)
{
#define T(test) cmocka_unit_test_setup_teardown(test, rw_setup, rw_teardown)
	const struct CMUnitTest tests[] = {
		T(a_plugin_that_is_away_offers_no_device),
		T(a_plugin_has_time_to_withhold_the_device),
		T(a_device_stays_withheld_when_no_pod_has_it),
		T(a_resource_that_is_left_over_withholds_no_device),
		T(a_plugin_that_offers_a_failed_device_costs_the_node),
		T(a_node_whose_plugin_offers_a_device_stays_until_the_limit),
		T(pods_that_fail_on_the_device_count_too),
		T(a_slow_device_that_is_offered_costs_the_node),
		T(no_more_pods_are_evicted_than_the_limit_before_the_taint),
		T(a_refused_eviction_counts_once),
		T(a_pod_counts_once_whenever_the_operator_dies),
		T(a_pod_that_has_waited_for_devices_counts),
		cmocka_unit_test(a_node_whose_agent_dies_is_taken),
		T(an_act_takes_the_node_whose_plugin_offers_its_device),
		T(a_policy_that_mends_takes_the_node),
		cmocka_unit_test(a_policy_without_late_pods_takes_the_node),
		T(a_plugin_that_withholds_the_device_after_all_is_told),
		cmocka_unit_test(no_trouble_makes_the_evictions_more_than_the_limit),
	};

	rw_choose_tests(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
