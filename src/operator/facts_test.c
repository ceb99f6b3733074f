/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/facts_internal.h"
#include "operator/facts_test.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* Tests what a step is told about nodes, from the watch and from the history of pods. */

/* A node that was cordoned at one time (NONE: unknown) and is Unknown since another time. */
static struct hf_doc *cordoned_at_doc(const char *name, int version, hf_time cordoned,
				      hf_time since)
{
	char text[TEXT_MAX], at[HF_TIME_TEXT_MAX], taint[TEXT_MAX] = "";

	if (cordoned != HF_TIME_NONE) {
		hf_time_format(cordoned, at);
		snprintf(taint, sizeof(taint),
			 ",\"taints\":[{\"key\":\"node.kubernetes.io/unschedulable\","
			 "\"effect\":\"NoSchedule\",\"timeAdded\":\"%s\"}]",
			 at);
	}
	hf_time_format(since, at);
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"%s\",\"resourceVersion\":\"%d\","
		 "\"labels\":{\"topology.kubernetes.io/zone\":\"z\"}},"
		 "\"spec\":{\"unschedulable\":true%s},\"status\":{\"conditions\":[{\"type\":"
		 "\"Ready\",\"status\":\"Unknown\",\"lastTransitionTime\":\"%s\"}]}}",
		 name, version, taint, at);
	return hf_doc_from_text(text, strlen(text));
}

static struct hf_doc *cordoned_doc(const char *name, int version, hf_time since)
{
	return cordoned_at_doc(name, version, HF_TIME_NONE, since);
}

/* --- the watch -------------------------------------------------------------------------------- */

static void test_a_node_is_seen_as_it_stands_and_since_when(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	assert_int_equal(brain.n_nodes, 1);
	assert_string_equal(brain.node_names[0], "a");
	assert_int_equal(brain.nodes[0].ready, HF_NODE_READY);
	assert_int_equal(brain.nodes[0].zone_nodes, 1);
	assert_int_equal(brain.nodes[0].renewed_at, HF_TIME_NONE);
	turn_for(bench, HF_MINUTE);
	node_becomes(bench, 120, "Unknown",
		     "\"taints\":[{\"key\":\"node.kubernetes.io/unreachable\",\"effect\":"
		     "\"NoSchedule\"}]");
	assert_int_equal(brain.nodes[0].ready, HF_NODE_UNKNOWN);
	assert_true(brain.nodes[0].unreachable);
	assert_false(brain.nodes[0].no_execute);
	assert_int_equal(brain.nodes[0].zone_lost, 1);
	assert_int_equal(brain.nodes[0].since, brain.now);
	/* The taint that follows does not change the time since which the node is Unknown. */
	turn_for(bench, 10 * HF_SECOND);
	node_becomes(bench, 121, "Unknown",
		     "\"taints\":[{\"key\":\"node.kubernetes.io/unreachable\",\"effect\":"
		     "\"NoExecute\"}]");
	assert_true(brain.nodes[0].no_execute);
	assert_true(brain.now - brain.nodes[0].since >= 10 * HF_SECOND);
}

static void node_is_unknown(struct bench *bench, int version, const char *since)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"a\",\"uid\":\"uid-a\",\"resourceVersion\":\"%d\"},"
		 "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\","
		 "\"lastTransitionTime\":\"%s\"}]}}",
		 version, since);
	fake_event(watch_of(bench, "nodes"), HF_EVENT_MODIFIED,
		   hf_doc_from_text(text, strlen(text)));
	turn_for(bench, 100 * HF_MS);
}

static void test_unknown_once_more_is_another_time(void **state)
{
	struct bench *bench = *state;
	hf_time since;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	assert_int_equal(brain.nodes[0].unknown_at, HF_TIME_NONE);
	node_is_unknown(bench, 120, "1970-01-01T00:01:00Z");
	assert_int_equal(brain.nodes[0].unknown_at, HF_MINUTE);
	since = brain.nodes[0].since;
	turn_for(bench, HF_MINUTE);
	/* The same is no news. */
	node_is_unknown(bench, 121, "1970-01-01T00:01:00Z");
	step_again(bench);
	assert_int_equal(brain.nodes[0].since, since);
	/* The node was Ready for a while, and no event reported that. */
	node_is_unknown(bench, 122, "1970-01-01T00:02:00Z");
	assert_int_equal(brain.nodes[0].unknown_at, 2 * HF_MINUTE);
	assert_true(brain.nodes[0].since >= since + HF_MINUTE);
}

static void test_a_kubelets_usual_report_wakes_no_job(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	int steps = brain.steps;

	node_becomes(bench, 120, "True", "\"podCIDR\":\"10.0.0.0/24\"");
	turn_for(bench, HF_MINUTE);
	assert_int_equal(brain.steps, steps);
	/* A change of a node without pods of jobs queues no job. */
	fake_event(watch_of(bench, "nodes"), HF_EVENT_ADDED, node_doc("b", 121, "Unknown", ""));
	turn_for(bench, 100 * HF_MS);
	assert_int_equal(brain.steps, steps);
}

static void test_nodes_of_a_zone_are_counted_and_proven_deaths_are_not_lost(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, node_doc("a", 5, "Unknown", ""));
	for (int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof(name), "b%d", i);
		fake_event(watch_of(bench, "nodes"), HF_EVENT_ADDED,
			   node_doc(name, 130 + i, i == 0 ? "Unknown" : "True",
				    i == 3 ? "\"unschedulable\":true" : ""));
	}
	fake_event(watch_of(bench, "nodes"), HF_EVENT_ADDED,
		   node_doc("dead", 140, "Unknown",
			    "\"taints\":[{\"key\":\"node.kubernetes.io/out-of-service\","
			    "\"effect\":\"NoExecute\"}]"));
	step_again(bench);
	assert_int_equal(brain.nodes[0].zone_nodes, 5);
	assert_int_equal(brain.nodes[0].zone_lost, 2);
	/* One second after the end of the storm, the jobs held by the storm are queued. */
	int steps = brain.steps;

	fake_event(watch_of(bench, "nodes"), HF_EVENT_MODIFIED, node_doc("b0", 150, "True", ""));
	turn_for(bench, HF_SECOND + 100 * HF_MS);
	assert_true(brain.steps > steps);
	assert_int_equal(brain.nodes[0].zone_lost, 1);
}

static struct hf_doc *zoned_doc(const char *name, int version, const char *zone, const char *ready)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"%s\",\"uid\":\"uid-%s\",\"resourceVersion\":\"%d\","
		 "\"labels\":{\"topology.kubernetes.io/zone\":\"%s\"}},\"status\":{"
		 "\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
		 name, name, version, zone, ready);
	return hf_doc_from_text(text, strlen(text));
}

static void zoned_is(struct bench *bench, const char *name, int version, const char *zone,
		     const char *ready)
{
	fake_event(watch_of(bench, "nodes"), HF_EVENT_MODIFIED,
		   zoned_doc(name, version, zone, ready));
	turn_for(bench, 100 * HF_MS);
}

/* A zone of two nodes cannot be in a storm, because a storm needs three lost nodes. */
static void test_small_zones_that_are_all_silent_are_a_storm_of_the_cluster(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	static const char *const zones[] = {"y", "y", "z", "z"};
	struct bench *bench = *state;
	hf_time start;

	start_on_a(bench, zoned_doc("a", 5, "y", "True"));
	for (int i = 1; i < 4; i++)
		fake_event(watch_of(bench, "nodes"), HF_EVENT_ADDED,
			   zoned_doc(names[i], 130 + i, zones[i], "True"));
	step_again(bench);
	start = brain.nodes[0].calm_since;
	/* If only one zone of two nodes is silent, neither the zone nor the cluster is in a
	 * storm. */
	zoned_is(bench, "a", 140, "y", "Unknown");
	zoned_is(bench, "b", 141, "y", "Unknown");
	step_again(bench);
	assert_int_equal(brain.nodes[0].zone_nodes, 2);
	assert_int_equal(brain.nodes[0].zone_lost, 2);
	assert_int_equal(brain.nodes[0].calm_since, start);
	zoned_is(bench, "c", 142, "z", "Unknown");
	zoned_is(bench, "d", 143, "z", "Unknown");
	step_again(bench);
	assert_int_equal(brain.nodes[0].zone_nodes, 4);
	assert_int_equal(brain.nodes[0].zone_lost, 4);
	assert_null(brain.nodes[0].zone);
	assert_int_equal(brain.nodes[0].calm_since, HF_TIME_NONE);
	assert_true(hf_nodes_are_in_storm(brain.nodes[0].zone_nodes, brain.nodes[0].zone_lost));
	/* After a storm of the cluster, calm begins anew in every zone, also in a zone without a
	 * storm. */
	turn_for(bench, HF_MINUTE);
	zoned_is(bench, "c", 144, "z", "True");
	zoned_is(bench, "d", 145, "z", "True");
	step_again(bench);
	assert_true(brain.nodes[0].calm_since >= start + HF_MINUTE);
}

static void node_is(struct bench *bench, const char *name, int version, const char *ready)
{
	fake_event(watch_of(bench, "nodes"), HF_EVENT_MODIFIED, node_doc(name, version, ready, ""));
	turn_for(bench, 100 * HF_MS);
}

/* Start with four nodes; the job's pod is on "a".  The zone is calm since the first list. */
static hf_time start_of_four(struct bench *bench)
{
	static const char *const others[] = {"b", "c", "d"};

	start_on_a(bench, node_doc("a", 5, "True", ""));
	for (int i = 0; i < 3; i++)
		fake_event(watch_of(bench, "nodes"), HF_EVENT_ADDED,
			   node_doc(others[i], 130 + i, "True", ""));
	step_again(bench);
	return brain.nodes[0].calm_since;
}

static void test_calm_begins_with_the_watch_and_anew_with_the_end_of_each_storm(void **state)
{
	struct bench *bench = *state;
	hf_time start = start_of_four(bench);

	assert_true(brain.now - start <= 2 * HF_SECOND);
	node_is(bench, "a", 140, "Unknown");
	node_is(bench, "b", 141, "Unknown");
	step_again(bench);
	assert_int_equal(brain.nodes[0].calm_since, start);
	for (int i = 0; i < 3; i++) {
		/* Three lost nodes of four are a storm, two of four are not: here the number
		 * changes back and forth. */
		node_is(bench, "c", 150 + 2 * i, "Unknown");
		turn_for(bench, HF_MINUTE);
		step_again(bench);
		assert_int_equal(brain.nodes[0].calm_since, HF_TIME_NONE);
		node_is(bench, "c", 151 + 2 * i, "True");
		hf_time ended = brain.now;

		turn_for(bench, 10 * HF_SECOND);
		step_again(bench);
		assert_true(brain.nodes[0].calm_since >= ended - HF_SECOND);
		assert_true(brain.nodes[0].calm_since <= ended + HF_SECOND);
	}
}

/* While the watch was broken, a storm may have come and gone. */
static void test_calm_begins_anew_when_the_watch_of_nodes_has_a_gap(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *nodes[] = {node_doc("a", 5, "True", "")};
	struct fake_call *call;
	hf_time start = start_of_four(bench);

	turn_for(bench, HF_MINUTE);
	step_again(bench);
	assert_int_equal(brain.nodes[0].calm_since, start);
	fake_end(watch_of(bench, "nodes"), HF_E_GONE, 0);
	turn_for(bench, HF_MINUTE);
	while ((call = next(bench)) != NULL)
		if (hf_streq(call->request->resource->plural, "nodes"))
			fake_answer_list(call, "200", "", nodes, 1);
	turn_for(bench, HF_SECOND);
	step_again(bench);
	assert_true(brain.nodes[0].calm_since >= start + HF_MINUTE);
}

static void test_a_node_that_comes_to_a_zone_was_not_seen_calm_there(void **state)
{
	static const char elsewhere[] =
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"uid-a\",\"resourceVersion\":\"160\","
		"\"labels\":{\"topology.kubernetes.io/zone\":\"elsewhere\"}},\"status\":{"
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}";
	struct bench *bench = *state;
	hf_time start = start_of_four(bench);

	turn_for(bench, HF_MINUTE);
	fake_event(watch_of(bench, "nodes"), HF_EVENT_MODIFIED,
		   hf_doc_from_text(elsewhere, strlen(elsewhere)));
	step_again(bench);
	assert_int_equal(brain.nodes[0].zone_nodes, 1);
	assert_true(brain.nodes[0].calm_since >= start + HF_MINUTE);
}

/* People cordon dead nodes, which must not make a storm smaller.  A node that has been away for a
 * day does not count any more. */
static void test_a_cordon_takes_a_lost_node_out_after_a_day(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, node_doc("a", 5, "Unknown", ""));
	fake_event(watch_of(bench, "nodes"), HF_EVENT_ADDED, node_doc("b", 130, "Unknown", ""));
	fake_event(watch_of(bench, "nodes"), HF_EVENT_MODIFIED,
		   cordoned_doc("b", 131, brain.now - HF_DAY + HF_MINUTE));
	fake_event(watch_of(bench, "nodes"), HF_EVENT_ADDED,
		   cordoned_doc("old", 132, brain.now - HF_DAY - HF_MINUTE));
	step_again(bench);
	assert_int_equal(brain.nodes[0].zone_nodes, 2);
	assert_int_equal(brain.nodes[0].zone_lost, 2);
	turn_for(bench, HF_HOUR);
	step_again(bench);
	assert_int_equal(brain.nodes[0].zone_nodes, 1);
	assert_int_equal(brain.nodes[0].zone_lost, 1);
	/* The node comes back, cordoned: it is not in the numbers, and is not subtracted twice. */
	fake_event(watch_of(bench, "nodes"), HF_EVENT_MODIFIED,
		   node_doc("b", 140, "True", "\"unschedulable\":true"));
	fake_event(watch_of(bench, "nodes"), HF_EVENT_MODIFIED, node_doc("b", 141, "True", ""));
	step_again(bench);
	assert_int_equal(brain.nodes[0].zone_nodes, 2);
	assert_int_equal(brain.nodes[0].zone_lost, 1);
}

/* Nodes that are cordoned and then switched off make no storm.  Cordoning silent nodes does not end
 * a storm. */
static void test_what_was_cordoned_before_it_fell_silent_is_no_part_of_a_storm(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, node_doc("a", 5, "Unknown", ""));
	fake_event(
		watch_of(bench, "nodes"), HF_EVENT_ADDED,
		cordoned_at_doc("drained", 131, brain.now - 2 * HF_MINUTE, brain.now - HF_MINUTE));
	fake_event(watch_of(bench, "nodes"), HF_EVENT_ADDED,
		   cordoned_at_doc("dead", 132, brain.now - 30 * HF_SECOND, brain.now - HF_MINUTE));
	fake_event(watch_of(bench, "nodes"), HF_EVENT_ADDED,
		   cordoned_at_doc("at-once", 133, brain.now - HF_MINUTE, brain.now - HF_MINUTE));
	step_again(bench);
	assert_int_equal(brain.nodes[0].zone_nodes, 3);
	assert_int_equal(brain.nodes[0].zone_lost, 3);
}

static void test_a_node_that_pods_name_without_a_node_object_is_gone(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, NULL);
	hf_time since = brain.nodes[0].since;

	assert_int_equal(brain.nodes[0].ready, HF_NODE_GONE);
	assert_int_equal(brain.nodes[0].confirmed_at, HF_TIME_NONE);
	turn_for(bench, 40 * HF_SECOND);
	step_again(bench);
	assert_int_equal(brain.nodes[0].since, since);
	fake_event(watch_of(bench, "nodes"), HF_EVENT_ADDED, node_doc("a", 150, "True", ""));
	turn_for(bench, 100 * HF_MS);
	assert_int_equal(brain.nodes[0].ready, HF_NODE_READY);
	/* The node is deleted: it counts as gone from now on, and jobs with pods on it are
	 * stepped. */
	int steps = brain.steps;

	turn_for(bench, 10 * HF_SECOND);
	fake_event(watch_of(bench, "nodes"), HF_EVENT_DELETED, node_doc("a", 151, "True", ""));
	turn(bench);
	assert_true(brain.steps > steps);
	assert_int_equal(brain.nodes[0].ready, HF_NODE_GONE);
	assert_int_equal(brain.nodes[0].since, brain.now);
}

static void test_a_storm_is_a_metric(void **state)
{
	struct bench *bench = *state;

	for (int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof(name), "b%d", i);
		bench->nodes[bench->n_nodes++] =
			node_doc(name, 20 + i, i < 2 ? "Unknown" : "True", "");
	}
	start(bench);
	assert_metric(bench, "holdfast_nodes_lost 2\n");
	assert_metric(bench, "holdfast_node_loss_guard{reason=\"storm\"} 0\n");
	fake_event(watch_of(bench, "nodes"), HF_EVENT_MODIFIED, node_doc("b2", 130, "Unknown", ""));
	assert_metric(bench, "holdfast_nodes_lost 3\n");
	assert_metric(bench, "holdfast_node_loss_guard{reason=\"storm\"} 1\n");
}

static void test_without_the_right_to_see_nodes_none_is_told(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *jobs[] = {job_doc("ddp", "u-1", 7, "")};
	struct fake_call *call;

	hf_operator_start(bench->op);
	while ((call = next(bench)) != NULL) {
		const char *plural = call->request->resource->plural;
		bool is_jobs = hf_streq(plural, "pytorchjobs");

		if (hf_streq(plural, "nodes"))
			fake_refuse(call, HF_E_FORBIDDEN);
		else
			fake_answer_list(call, "100", "", is_jobs ? jobs : NULL, is_jobs ? 1 : 0);
	}
	assert_true(hf_operator_synced(bench->op));
	assert_non_null(strstr(bench->problem, "nodes"));
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
		   bound_pod("ddp-worker-0", 110, "a", RUNNING));
	turn_for(bench, HF_SECOND);
	assert_int_equal(brain.pods, 1);
	assert_int_equal(brain.n_nodes, 0);
	/* If nodes cannot be seen, a node may have had a taint. */
	fake_event(watch_of(bench, "pods"), HF_EVENT_DELETED,
		   bound_pod("ddp-worker-0", 111, "a", RUNNING));
	turn_for(bench, HF_SECOND);
	assert_int_equal(brain.n_gone, 1);
	assert_true(brain.gone[0].no_execute);
}

/* --- history ---------------------------------------------------------------------------------- */

static void pod_becomes(struct bench *bench, int version, const char *status)
{
	fake_event(watch_of(bench, "pods"), HF_EVENT_MODIFIED,
		   bound_pod("ddp-worker-0", version, "a", status));
	turn_for(bench, HF_SECOND);
}

static void test_what_only_a_kubelet_writes_is_a_sign_of_life(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	assert_int_equal(brain.news_at, HF_TIME_NONE);
	/* The control plane's node controller sets this condition for pods of a silent node. */
	pod_becomes(bench, 120,
		    RUNNING ",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]");
	step_again(bench);
	assert_int_equal(brain.news_at, HF_TIME_NONE);
	/* Taint eviction and the pod garbage collector write this condition. */
	pod_becomes(bench, 121,
		    "\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"pytorch\",\"state\":{"
		    "\"running\":{\"startedAt\":\"2026-01-01T00:00:00Z\"}}}],\"conditions\":[{"
		    "\"type\":\"DisruptionTarget\",\"status\":\"True\"}]");
	assert_int_equal(brain.news_at, HF_TIME_NONE);
	pod_becomes(bench, 122,
		    RUNNING ",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]");
	step_again(bench);
	assert_int_equal(brain.now - brain.news_at, HF_SECOND);
	pod_becomes(bench, 123,
		    "\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"pytorch\","
		    "\"restartCount\":1,\"state\":{\"waiting\":{}}}]");
	step_again(bench);
	assert_int_equal(brain.now - brain.news_at, HF_SECOND);
}

#define ALLOCATED(health)                                                                            \
	"\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"pytorch\",\"state\":{"             \
	"\"running\":{\"startedAt\":\"2026-01-01T00:00:00Z\"}},\"allocatedResourcesStatus\":[{"      \
	"\"name\":\"example.com/gpu\",\"resources\":[{\"resourceID\":\"gpu-0\",\"health\":\"" health \
	"\"}]}]}]"

static void test_what_a_kubelet_says_of_a_device_stands_since_it_said_so_last(void **state)
{
	struct bench *bench = *state;
	hf_time first;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	pod_becomes(bench, 120, ALLOCATED("Healthy"));
	step_again(bench);
	assert_int_equal(brain.unwell_at, HF_TIME_NONE);
	pod_becomes(bench, 121, ALLOCATED("Unhealthy"));
	turn_for(bench, 10 * HF_SECOND);
	step_again(bench);
	assert_int_equal(brain.now - brain.unwell_at, 11 * HF_SECOND);
	/* That condition is also a sign of life, because the kubelet wrote it. */
	assert_int_equal(brain.news_at, brain.unwell_at);
	first = brain.unwell_at;
	/* Whatever else is written meanwhile. */
	pod_becomes(
		bench, 122,
		ALLOCATED(
			"Unhealthy") ",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]");
	step_again(bench);
	assert_int_equal(brain.unwell_at, first);
	pod_becomes(bench, 123, ALLOCATED("Healthy"));
	step_again(bench);
	assert_int_equal(brain.unwell_at, HF_TIME_NONE);
	pod_becomes(bench, 124, ALLOCATED("Unhealthy"));
	step_again(bench);
	assert_int_equal(brain.now - brain.unwell_at, HF_SECOND);
}

#define ENDED(more)                                                                                        \
	"\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"proxy\",\"state\":{\"running\":{}}" more \
	"},{\"name\":\"pytorch\",\"restartCount\":0,\"state\":{\"terminated\":{\"exitCode\":0,"            \
	"\"finishedAt\":\"2026-01-01T00:00:00Z\"}}}]"

static void test_the_end_of_the_own_container_stands_since_it_was_seen(void **state)
{
	struct bench *bench = *state;
	hf_time first;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	assert_int_equal(brain.own_ended_at, HF_TIME_NONE);
	pod_becomes(bench, 120, ENDED(""));
	turn_for(bench, 10 * HF_SECOND);
	step_again(bench);
	assert_int_equal(brain.now - brain.own_ended_at, 11 * HF_SECOND);
	first = brain.own_ended_at;
	/* Meanwhile the kubelet restarts the other container. */
	pod_becomes(bench, 121, ENDED(",\"restartCount\":1"));
	step_again(bench);
	assert_int_equal(brain.own_ended_at, first);
	pod_becomes(bench, 122, RUNNING);
	step_again(bench);
	assert_int_equal(brain.own_ended_at, HF_TIME_NONE);
}

/* If no container has the name of the kind, core takes the first container of the template. */
static void test_the_end_of_an_own_container_by_another_name_is_seen_too(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	pod_becomes(
		bench, 120,
		"\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"proxy\",\"state\":{"
		"\"running\":{}}},{\"name\":\"main\",\"restartCount\":0,\"state\":{\"terminated\":{"
		"\"exitCode\":0,\"finishedAt\":\"2026-01-01T00:00:00Z\"}}}]");
	turn_for(bench, 10 * HF_SECOND);
	step_again(bench);
	assert_int_equal(brain.now - brain.own_ended_at, 11 * HF_SECOND);
}

static void test_what_stood_there_when_we_came_may_have_been_said_just_then(void **state)
{
	struct bench *bench = *state;

	bench->nodes[bench->n_nodes++] = node_doc("a", 5, "True", "");
	start(bench);
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
		   bound_pod("ddp-worker-0", 110, "a", ALLOCATED("Unhealthy")));
	turn_for(bench, HF_SECOND);
	step_again(bench);
	assert_int_equal(brain.now - brain.unwell_at, HF_SECOND);
	assert_int_equal(brain.news_at, HF_TIME_NONE);
}

static void test_a_name_that_was_freed_is_told_for_a_while(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	assert_int_equal(brain.n_gone, 0);
	fake_event(watch_of(bench, "pods"), HF_EVENT_DELETED,
		   bound_pod("ddp-worker-0", 120, "a", RUNNING));
	turn(bench);
	step_again(bench);
	assert_int_equal(brain.n_gone, 1);
	assert_string_equal(brain.gone_names[0], "ddp-worker-0");
	assert_int_equal(brain.gone[0].at, brain.now);
	assert_false(brain.gone[0].no_execute);
	/* The node had the taint all along, and the event about it comes late. */
	node_becomes(bench, 121, "True", "\"taints\":[{\"key\":\"x\",\"effect\":\"NoExecute\"}]");
	step_again(bench);
	assert_true(brain.gone[0].no_execute);
	turn_for(bench, HF_POD_HISTORY_KEPT);
	step_again(bench);
	assert_int_equal(brain.n_gone, 0);
}

static struct hf_doc *marked_pod(int version, const char *spec)
{
	char more[TEXT_MAX];

	snprintf(
		more, sizeof(more),
		",\"deletionTimestamp\":\"2023-11-14T22:14:20Z\",\"deletionGracePeriodSeconds\":30},"
		"\"spec\":{%s},\"status\":{" RUNNING,
		spec);
	return pod_doc("ddp-worker-0", "uid-ddp-worker-0", version, "u-1", more);
}

/* Both events come in one turn of the loop, so no pass sees the pod while it is terminating. */
static void test_how_a_pod_was_that_went_before_a_pass_looked(void **state)
{
	static const char *const specs[] = {"\"nodeName\":\"a\"", ""};
	struct bench *bench = *state;
	struct fake_watch *pods;
	int version = 120;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	pods = watch_of(bench, "pods");
	for (size_t i = 0; i < HF_ARRAY_LEN(specs); i++) {
		fake_event(pods, HF_EVENT_MODIFIED, marked_pod(version++, specs[i]));
		fake_event(pods, HF_EVENT_DELETED, marked_pod(version++, specs[i]));
		step_again(bench);
		assert_int_equal(brain.n_gone, 1);
		assert_true(brain.gone_owned[0]);
		assert_int_equal(brain.gone_deleted[0], JOB_TIME + HF_MINUTE);
		/* The pod's node is shown to steps as long as the pod's name is remembered. */
		assert_int_equal(brain.n_nodes, i == 0 ? 1 : 0);
		fake_event(pods, HF_EVENT_ADDED,
			   bound_pod("ddp-worker-0", version++, "a", RUNNING));
		turn_for(bench, HF_SECOND);
	}
	/* A pod that vanished without a deletion timestamp leaves no last state. */
	fake_event(pods, HF_EVENT_DELETED, bound_pod("ddp-worker-0", version, "a", RUNNING));
	step_again(bench);
	assert_int_equal(brain.n_gone, 1);
	assert_false(brain.gone_owned[0]);
	assert_int_equal(brain.n_nodes, 0);
}

static void test_news_of_a_pod_may_come_after_those_of_the_taint_it_went_for(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, node_doc("a", 5, "True",
				   "\"taints\":[{\"key\":\"x\",\"effect\":\"NoExecute\"}]"));
	turn_for(bench, HF_MINUTE);
	assert_int_equal(brain.nodes[0].evicted_at, HF_TIME_NONE);
	node_becomes(bench, 110, "True", "");
	assert_int_equal(brain.nodes[0].evicted_at, brain.now);
	turn_for(bench, HF_SECOND);
	fake_event(watch_of(bench, "pods"), HF_EVENT_DELETED,
		   bound_pod("ddp-worker-0", 105, "a", RUNNING));
	step_again(bench);
	assert_int_equal(brain.n_gone, 1);
	assert_true(brain.gone[0].no_execute);
	/* If the pod ends long after the taint is gone, no timer can be left. */
	turn_for(bench, HF_POD_HISTORY_KEPT);
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
		   bound_pod("ddp-worker-0", 111, "a", RUNNING));
	turn_for(bench, HF_SECOND);
	fake_event(watch_of(bench, "pods"), HF_EVENT_DELETED,
		   bound_pod("ddp-worker-0", 112, "a", RUNNING));
	step_again(bench);
	assert_int_equal(brain.n_gone, 1);
	assert_false(brain.gone[0].no_execute);
}

static void test_a_strangers_pod_frees_a_name_too(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *pod;

	start_on_a(bench, node_doc("a", 5, "True",
				   "\"taints\":[{\"key\":\"x\",\"effect\":\"NoExecute\"}]"));
	for (int i = 0; i < 2; i++) {
		pod = pod_doc("ddp-worker-1", "uid-stranger", 120 + i, "u-9",
			      "},\"spec\":{\"nodeName\":\"a\"},\"status\":{\"phase\":\"Running\"");
		fake_event(watch_of(bench, "pods"), i == 0 ? HF_EVENT_ADDED : HF_EVENT_DELETED,
			   pod);
		turn_for(bench, HF_SECOND);
	}
	step_again(bench);
	assert_int_equal(brain.n_gone, 1);
	assert_string_equal(brain.gone_names[0], "ddp-worker-1");
	assert_true(brain.gone[0].no_execute);
}

static void job_event(struct bench *bench, enum hf_event_type type, const char *uid, int version)
{
	fake_event(watch_of(bench, "pytorchjobs"), type, job_doc("ddp", uid, version, ""));
	turn_for(bench, HF_SECOND);
}

static void delete_pod(struct bench *bench, int version)
{
	fake_event(watch_of(bench, "pods"), HF_EVENT_DELETED,
		   bound_pod("ddp-worker-0", version, "a", RUNNING));
}

/* The pod of a deleted job goes before or after its job.  A taint's timer knows names alone, so the next
 * job of this name must know of the freed name. */
static void test_the_next_job_of_a_name_knows_of_freed_names(void **state)
{
	static const char tainted[] = "\"taints\":[{\"key\":\"x\",\"effect\":\"NoExecute\"}]";
	struct bench *bench = *state;

	for (int i = 0; i < 4; i++) {
		bool taint = i < 2, pod_first = i % 2 == 0;
		int version = 1000 + 100 * i;

		if (i == 0)
			start_on_a(bench, node_doc("a", 5, "True", tainted));
		node_becomes(bench, version, "True", taint ? tainted : "");
		/* The timers of the last round are over. */
		turn_for(bench, HF_POD_HISTORY_KEPT);
		fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
			   bound_pod("ddp-worker-0", version + 1, "a", RUNNING));
		turn_for(bench, HF_SECOND);
		if (pod_first)
			delete_pod(bench, version + 2);
		job_event(bench, HF_EVENT_DELETED, "u-1", version + 3);
		if (!pod_first)
			delete_pod(bench, version + 4);
		turn_for(bench, HF_SECOND);
		job_event(bench, HF_EVENT_ADDED, "u-2", version + 5);
		assert_int_equal(brain.n_gone, taint ? 1 : 0);
		if (taint) {
			assert_string_equal(brain.gone_names[0], "ddp-worker-0");
			assert_true(brain.gone[0].no_execute);
			assert_false(brain.gone_owned[0]);
			assert_true(brain.now - brain.gone[0].at >= HF_SECOND);
		}
		turn_for(bench, HF_POD_HISTORY_KEPT);
		job_event(bench, HF_EVENT_MODIFIED, "u-2", version + 6);
		assert_int_equal(brain.n_gone, 0);
		job_event(bench, HF_EVENT_DELETED, "u-2", version + 7);
		job_event(bench, HF_EVENT_ADDED, "u-1", version + 8);
	}
}

/* A pod of an earlier job of the same name is on the node.  When the node is lost, the new job is
 * stepped. */
static void test_a_node_wakes_the_job_that_waits_for_a_name_on_it(void **state)
{
	struct bench *bench = *state;
	int steps;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	fake_event(watch_of(bench, "nodes"), HF_EVENT_ADDED, node_doc("b", 110, "True", ""));
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
		   pod_doc("ddp-worker-1", "uid-old", 120, "u-9",
			   "},\"spec\":{\"nodeName\":\"b\"},\"status\":{\"phase\":\"Running\""));
	turn_for(bench, HF_SECOND);
	steps = brain.steps;
	fake_event(watch_of(bench, "nodes"), HF_EVENT_MODIFIED, node_doc("b", 121, "Unknown", ""));
	turn_for(bench, HF_SECOND);
	assert_true(brain.steps > steps);
}

static void test_the_last_holder_of_a_name_counts(void **state)
{
	struct bench *bench = *state;

	start_on_a(bench, node_doc("a", 5, "True",
				   "\"taints\":[{\"key\":\"x\",\"effect\":\"NoExecute\"}]"));
	for (int i = 0; i < 3; i++) {
		fake_event(watch_of(bench, "pods"), HF_EVENT_DELETED,
			   bound_pod("ddp-worker-0", 120 + 2 * i, "a", RUNNING));
		turn_for(bench, HF_SECOND);
		fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
			   bound_pod("ddp-worker-0", 121 + 2 * i, "a", RUNNING));
		turn_for(bench, HF_SECOND);
	}
	step_again(bench);
	assert_int_equal(brain.n_gone, 1);
	assert_true(brain.gone[0].no_execute);
	assert_int_equal(brain.now - brain.gone[0].at, 2 * HF_SECOND);
}

static void test_a_gap_in_the_watch_of_pods_is_told(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	start_on_a(bench, node_doc("a", 5, "True", ""));
	turn_for(bench, HF_MINUTE);
	step_again(bench);
	assert_int_equal(brain.now - brain.watched_since, HF_MINUTE + HF_SECOND);
	fake_end(watch_of(bench, "pods"), HF_E_GONE, 0);
	turn_for(bench, HF_MINUTE);
	while ((call = next(bench)) != NULL)
		if (hf_streq(call->request->resource->plural, "pods"))
			fake_answer_list(call, "200", "", NULL, 0);
	turn_for(bench, HF_SECOND);
	assert_true(brain.now - brain.watched_since <= HF_MINUTE);
	/* The pod is missing in the new list, so it was deleted some time ago. */
	assert_int_equal(brain.n_gone, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		N(test_a_node_is_seen_as_it_stands_and_since_when),
		N(test_unknown_once_more_is_another_time),
		N(test_a_kubelets_usual_report_wakes_no_job),
		N(test_nodes_of_a_zone_are_counted_and_proven_deaths_are_not_lost),
		N(test_small_zones_that_are_all_silent_are_a_storm_of_the_cluster),
		N(test_calm_begins_with_the_watch_and_anew_with_the_end_of_each_storm),
		N(test_calm_begins_anew_when_the_watch_of_nodes_has_a_gap),
		N(test_a_node_that_comes_to_a_zone_was_not_seen_calm_there),
		N(test_a_cordon_takes_a_lost_node_out_after_a_day),
		N(test_what_was_cordoned_before_it_fell_silent_is_no_part_of_a_storm),
		N(test_a_node_that_pods_name_without_a_node_object_is_gone),
		N(test_a_storm_is_a_metric),
		N(test_without_the_right_to_see_nodes_none_is_told),
		N(test_what_only_a_kubelet_writes_is_a_sign_of_life),
		N(test_what_a_kubelet_says_of_a_device_stands_since_it_said_so_last),
		N(test_the_end_of_the_own_container_stands_since_it_was_seen),
		N(test_the_end_of_an_own_container_by_another_name_is_seen_too),
		N(test_what_stood_there_when_we_came_may_have_been_said_just_then),
		N(test_a_name_that_was_freed_is_told_for_a_while),
		N(test_how_a_pod_was_that_went_before_a_pass_looked),
		N(test_news_of_a_pod_may_come_after_those_of_the_taint_it_went_for),
		N(test_a_strangers_pod_frees_a_name_too),
		N(test_the_next_job_of_a_name_knows_of_freed_names),
		N(test_a_node_wakes_the_job_that_waits_for_a_name_on_it),
		N(test_the_last_holder_of_a_name_counts),
		N(test_a_gap_in_the_watch_of_pods_is_told),
	};

	return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
