/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/types.h"
#include "operator/facts_internal.h"
#include "operator/script_test.h"

#include <stdio.h>
#include <string.h>

/* Tests what a step is told of devices by the agents' objects. */

#define N(name) cmocka_unit_test_setup_teardown(name, setup_with_nodes, teardown)

static struct hf_doc *health(int version, const char *observed, const char *devices)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"a\",\"uid\":\"h-a\",\"resourceVersion\":\"%d\"},"
		 "\"status\":{\"observedTime\":\"%s\",\"devices\":[%s]}}",
		 version, observed, devices);
	return hf_doc_from_text(text, strlen(text));
}

#define HOLDER(more) "\"holders\":[{\"namespace\":\"n\",\"pod\":\"ddp-worker-0\"" more "}]"
#define WELL "{\"id\":\"g0\",\"state\":\"Healthy\"," HOLDER(",\"uid\":\"uid-ddp-worker-0\"") "}"
#define FAULT(cls, acts)                                                                           \
	"\"faults\":[{\"detector\":\"xid\",\"code\":79,\"class\":\"" cls "\",\"active\":" acts     \
	",\"firstTime\":\"2026-01-01T00:00:00Z\",\"lastTime\":\"2026-01-01T00:00:05Z\"}]"
#define SICK(state, cls, acts, holder)                                                             \
	"{\"id\":\"g0\",\"state\":\"" state "\"," FAULT(cls, acts) "," holder "}"

static struct hf_doc *bound_pod(int version)
{
	return pod_doc("ddp-worker-0", "uid-ddp-worker-0", version, "u-1",
		       "},\"spec\":{\"nodeName\":\"a\"},\"status\":{\"phase\":\"Running\"");
}

static struct hf_doc *node_doc(void)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"n-a\",\"resourceVersion\":\"5\"},"
		"\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}";

	return hf_doc_from_text(text, strlen(text));
}

static void start_with_agent(struct bench *bench)
{
	bench->nodes[bench->n_nodes++] = node_doc();
	start(bench);
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED, bound_pod(110));
	turn_for(bench, HF_SECOND);
}

static void agent_says(struct bench *bench, int version, const char *observed, const char *devices)
{
	int steps = brain.steps;

	fake_event(watch_of(bench, "devicehealths"),
		   version == 200 ? HF_EVENT_ADDED : HF_EVENT_MODIFIED,
		   health(version, observed, devices));
	turn_for(bench, HF_SECOND);
	assert_true(brain.steps > steps);
}

static void test_without_agents_nothing_is_told(void **state)
{
	struct bench *bench = *state;

	start_with_agent(bench);
	assert_true(brain.steps > 0);
	assert_int_equal(brain.n_devices, 0);
	assert_int_equal(brain.n_late, 0);
	assert_int_equal(brain.n_sick, 0);
	assert_false(brain.watched);
	assert_false(brain.nodes[0].has_agent);
	assert_int_equal(brain.nodes[0].reported_at, HF_TIME_NONE);
}

static void test_a_missing_crd_holds_nothing_up_and_is_not_told(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *jobs[] = {job_doc("ddp", "u-1", 7, "")};
	struct fake_call *call;

	hf_operator_start(bench->op);
	while (!hf_operator_synced(bench->op) && (call = next(bench)) != NULL) {
		const char *plural = call->request->resource->plural;

		if (hf_streq(plural, "devicehealths"))
			fake_refuse(call, HF_E_NOT_FOUND);
		else
			fake_answer_list(call, "100", "",
					 hf_streq(plural, "pytorchjobs") ? jobs : NULL,
					 hf_streq(plural, "pytorchjobs"));
	}
	assert_true(hf_operator_synced(bench->op));
	assert_string_equal(bench->problem, "");
	/* Looked for again. */
	turn_for(bench, HF_MINUTE);
	while ((call = next(bench)) != NULL &&
	       !hf_streq(call->request->resource->plural, "devicehealths"))
		;
	assert_non_null(call);
	fake_refuse(call, HF_E_FORBIDDEN);
	turn(bench);
	assert_string_equal(bench->problem, "");
}

static void test_an_agents_word_is_joined_with_the_pod_that_holds_the_device(void **state)
{
	struct bench *bench = *state;

	start_with_agent(bench);
	agent_says(bench, 200, "2026-01-01T00:00:01Z", WELL);
	assert_true(brain.watched);
	assert_int_equal(brain.n_devices, 0);
	assert_true(brain.nodes[0].has_agent);
	assert_true(brain.now - brain.nodes[0].reported_at <= HF_SECOND);
	agent_says(bench, 201, "2026-01-01T00:00:06Z",
		   SICK("Unhealthy", "reboot", "true", HOLDER(",\"uid\":\"uid-ddp-worker-0\"")));
	assert_int_equal(brain.n_devices, 1);
	assert_string_equal(brain.device_ids[0], "g0");
	assert_string_equal(brain.device_classes[0], "reboot");
	assert_true(brain.devices[0].fatal && brain.devices[0].held && brain.devices[0].agent);
	assert_int_equal(brain.devices[0].last - brain.devices[0].first, 5 * HF_SECOND);
	/* The pod ended, and the agent still reports it as the last holder. */
	agent_says(
		bench, 202, "2026-01-01T00:00:07Z",
		SICK("Unhealthy", "reboot", "true",
		     HOLDER(",\"uid\":\"uid-ddp-worker-0\",\"until\":\"2026-01-01T00:00:07Z\"")));
	assert_int_equal(brain.n_devices, 1);
	assert_false(brain.devices[0].held);
	/* A kernel line about the fault may be dated a little later than the end of the pod. */
	agent_says(
		bench, 203, "2026-01-01T00:00:08Z",
		SICK("Unhealthy", "reboot", "true",
		     HOLDER(",\"uid\":\"uid-ddp-worker-0\",\"until\":\"2025-12-31T23:59:59Z\"")));
	assert_int_equal(brain.n_devices, 1);
	/* The pod had released the device before the fault, so the fault does not concern it. */
	agent_says(
		bench, 204, "2026-01-01T00:00:09Z",
		SICK("Unhealthy", "reboot", "true",
		     HOLDER(",\"uid\":\"uid-ddp-worker-0\",\"until\":\"2025-12-31T23:59:40Z\"")));
	assert_int_equal(brain.n_devices, 0);
	assert_true(brain.watched);
	/* If the report has no UID, the pod's name decides. */
	agent_says(bench, 205, "2026-01-01T00:00:10Z",
		   SICK("Degraded", "fabric", "true", HOLDER("")));
	assert_int_equal(brain.n_devices, 1);
	assert_false(brain.devices[0].fatal);
}

static void test_what_does_not_count_is_not_told(void **state)
{
	static const char *const devices[] = {
		/* a report about another pod of the same name */
		SICK("Unhealthy", "reboot", "true", HOLDER(",\"uid\":\"other\"")),
		/* a device that is only suspect; a fault of the program; an unknown class */
		SICK("Suspect", "fabric", "true", HOLDER("")),
		SICK("Healthy", "app", "true", HOLDER("")),
		SICK("Healthy", "martian", "true", HOLDER("")),
		/* over before the pod began */
		SICK("Healthy", "reboot", "false", HOLDER("")),
	};
	struct bench *bench = *state;

	start_with_agent(bench);
	fake_event(
		watch_of(bench, "pods"), HF_EVENT_MODIFIED,
		pod_doc("ddp-worker-0", "uid-ddp-worker-0", 111, "u-1",
			",\"creationTimestamp\":\"2026-01-01T00:01:00Z\"},\"spec\":{\"nodeName\":\"a\"},"
			"\"status\":{\"phase\":\"Running\""));
	for (size_t i = 0; i < HF_ARRAY_LEN(devices); i++) {
		agent_says(bench, 200 + (int)i, "2026-01-01T00:02:00Z", devices[i]);
		assert_int_equal(brain.n_devices, 0);
	}
}

static void test_what_was_over_before_a_pod_began_is_told_by_the_nodes_clock(void **state)
{
	/* The fault was last seen at 00:00:05, by a node's clock that is ten minutes ahead. */
	static const char *const pods[] = {
		/* a pod that began before the fault by the server's clock, and after it by the
		 * node's clock */
		",\"creationTimestamp\":\"2025-12-31T23:51:00Z\"},\"spec\":{\"nodeName\":\"a\"},"
		"\"status\":{\"phase\":\"Running\",\"startTime\":\"2026-01-01T00:01:02Z\"",
		/* the other way round */
		",\"creationTimestamp\":\"2026-01-01T00:01:00Z\"},\"spec\":{\"nodeName\":\"a\"},"
		"\"status\":{\"phase\":\"Running\",\"startTime\":\"2026-01-01T00:00:05Z\"",
	};
	struct bench *bench = *state;

	start_with_agent(bench);
	for (size_t i = 0; i < HF_ARRAY_LEN(pods); i++) {
		fake_event(
			watch_of(bench, "pods"), HF_EVENT_MODIFIED,
			pod_doc("ddp-worker-0", "uid-ddp-worker-0", 111 + (int)i, "u-1", pods[i]));
		agent_says(bench, 200 + (int)i, "2026-01-01T00:02:00Z",
			   SICK("Healthy", "reboot", "false", HOLDER("")));
		assert_int_equal(brain.n_devices, i);
	}
}

/* Give the job a last record that names pod worker-1 on node a. */
static void record_of_worker_1(struct bench *bench)
{
	static const char record[] =
		",\"status\":{\"recovery\":{\"schema\":1,\"generation\":2,\"incident\":{\"id\":1,"
		"\"openedAt\":\"2026-01-01T00:00:02.000000Z\",\"cause\":\"device\"},\"last\":{"
		"\"generation\":2,\"incident\":1,\"cause\":\"device\",\"pod\":\"ddp-worker-1\","
		"\"node\":\"a\"}}}";

	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_MODIFIED,
		   job_doc("ddp", "u-1", 8, record));
	turn_for(bench, HF_SECOND);
}

static void worker_1(struct bench *bench, enum hf_event_type type, const char *uid, int version,
		     const char *more)
{
	char text[TEXT_MAX];

	snprintf(
		text, sizeof(text),
		",\"labels\":{}},\"spec\":{\"nodeName\":\"a\"},\"status\":{\"phase\":\"Running\"%s",
		more);
	fake_event(watch_of(bench, "pods"), type,
		   pod_doc("ddp-worker-1", uid, version, "u-1", text));
	turn_for(bench, HF_SECOND);
}

static void test_what_concerns_the_last_record_is_told_late(void **state)
{
	struct bench *bench = *state;

	start_with_agent(bench);
	record_of_worker_1(bench);
	worker_1(bench, HF_EVENT_ADDED, "gone", 120, "");
	worker_1(bench, HF_EVENT_DELETED, "gone", 121, "");
	assert_int_equal(brain.n_late, 0);
	assert_int_equal(brain.n_sick, 0);
	agent_says(
		bench, 200, "2026-01-01T00:00:06Z",
		SICK("Unhealthy", "reboot", "true",
		     "\"holders\":[{\"namespace\":\"n\",\"pod\":\"ddp-worker-1\",\"uid\":\"gone\","
		     "\"until\":\"2026-01-01T00:00:03Z\"},{\"namespace\":\"other\",\"pod\":"
		     "\"ddp-worker-1\"}]"));
	assert_int_equal(brain.n_late, 1);
	assert_int_equal(brain.n_sick, 1);
	assert_false(brain.watched);
	/* Mended. */
	agent_says(bench, 201, "2026-01-01T00:00:07Z",
		   SICK("Healthy", "reboot", "false", HOLDER("")));
	assert_int_equal(brain.n_late, 0);
	assert_int_equal(brain.n_sick, 0);
}

static struct hf_doc *health_of(const char *node, int version, const char *observed,
				const char *state)
{
	char text[TEXT_MAX];

	snprintf(
		text, sizeof(text),
		"{\"metadata\":{\"name\":\"%s\",\"uid\":\"h-%s\",\"resourceVersion\":\"%d\"},"
		"\"status\":{\"observedTime\":\"%s\",\"devices\":[{\"id\":\"g0\",\"state\":\"Healthy\","
		"\"since\":\"2026-01-02T00:00:00Z\"},{\"id\":\"g1\",\"state\":\"%s\","
		"\"since\":\"2026-01-01T00:00:00Z\"}]}}",
		node, node, version, observed, state);
	return hf_doc_from_text(text, strlen(text));
}

/* Check which nodes the next step is told to have an unusable device; names: "b c". */
static void expect_sick(struct bench *bench, const char *names)
{
	static int version = 400;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(256);
	int steps = brain.steps;

	fake_event(watch_of(bench, "pods"), HF_EVENT_MODIFIED, bound_pod(version++));
	turn_for(bench, HF_SECOND);
	assert_true(brain.steps > steps);
	for (size_t i = 0; i < brain.n_sick; i++)
		hf_strbuf_addf(&text, "%s%s%s%s", i > 0 ? " " : "", brain.sick_names[i],
			       brain.sick[i].silent ? " (silent)" : "",
			       brain.sick[i].withheld ? " (withheld)" : "");
	assert_string_equal(text.data ? text.data : "", names);
}

static void test_nodes_are_sick_while_their_agents_report_it_and_wake_no_job(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch;
	int steps;

	start_with_agent(bench);
	record_of_worker_1(bench);
	watch = watch_of(bench, "devicehealths");
	steps = brain.steps;
	fake_event(watch, HF_EVENT_ADDED, health_of("d", 201, "2026-01-01T00:01:00Z", "Failed"));
	fake_event(watch, HF_EVENT_ADDED, health_of("b", 202, "2026-01-01T00:01:00Z", "Unhealthy"));
	fake_event(watch, HF_EVENT_ADDED, health_of("c", 203, "2026-01-01T00:01:00Z", "Degraded"));
	turn_for(bench, HF_SECOND);
	assert_int_equal(brain.steps, steps);
	expect_sick(bench, "b d");
	assert_in_range(brain.now - brain.sick[0].since, HF_MINUTE, HF_MINUTE + 3 * HF_SECOND);
	/* The nodes of the job's records come first in the list. */
	fake_event(watch, HF_EVENT_ADDED, health_of("a", 204, "2026-01-01T00:01:00Z", "Unhealthy"));
	expect_sick(bench, "a b d");
	fake_event(watch, HF_EVENT_MODIFIED,
		   health_of("d", 205, "2026-01-01T00:02:00Z", "Probation"));
	fake_event(watch, HF_EVENT_MODIFIED,
		   health_of("c", 206, "2026-01-01T00:02:00Z", "Quarantined"));
	expect_sick(bench, "a b c");
	fake_event(watch, HF_EVENT_DELETED,
		   health_of("b", 207, "2026-01-01T00:01:00Z", "Unhealthy"));
	expect_sick(bench, "a c");
	/* A write by another client does not count as a sign of the agent. */
	turn_for(bench, 10 * HF_MINUTE);
	fake_event(watch, HF_EVENT_MODIFIED,
		   health_of("c", 208, "2026-01-01T00:02:00Z", "Quarantined"));
	turn_for(bench, 6 * HF_MINUTE);
	expect_sick(bench, "a (silent)");
	fake_event(watch, HF_EVENT_MODIFIED,
		   health_of("c", 209, "2026-01-01T00:20:00Z", "Quarantined"));
	expect_sick(bench, "a (silent) c");
}

#define WORKER_1(uid) "{\"namespace\":\"n\",\"pod\":\"ddp-worker-1\",\"uid\":\"" uid "\"}"

static void test_what_an_earlier_pod_of_the_name_had_explains_nothing(void **state)
{
	static const char sick[] =
		SICK("Unhealthy", "reboot", "true", "\"holders\":[" WORKER_1("first") "]");
	struct bench *bench = *state;

	start_with_agent(bench);
	record_of_worker_1(bench);
	worker_1(bench, HF_EVENT_ADDED, "first", 120, "");
	worker_1(bench, HF_EVENT_DELETED, "first", 121, "");
	/* The new pod is on the same node.  The record concerns the old pod, even if the new pod
	 * has no UID in the report. */
	worker_1(bench, HF_EVENT_ADDED, "second", 122, "");
	agent_says(bench, 200, "2026-01-01T00:00:06Z", sick);
	assert_int_equal(brain.n_late, 0);
	worker_1(bench, HF_EVENT_DELETED, "second", 123, "");
	agent_says(bench, 201, "2026-01-01T00:00:07Z", sick);
	assert_int_equal(brain.n_late, 0);
	agent_says(bench, 202, "2026-01-01T00:00:08Z",
		   SICK("Unhealthy", "reboot", "true",
			"\"holders\":[" WORKER_1("first") "," WORKER_1("second") "]"));
	assert_int_equal(brain.n_late, 1);
	/* The operator has forgotten the pod that held the device. */
	turn_for(bench, HF_POD_HISTORY_KEPT);
	agent_says(bench, 203, "2026-01-01T00:05:09Z", sick);
	assert_int_equal(brain.n_late, 0);
}

static void test_an_act_that_mended_the_node_of_a_record_is_told(void **state)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"h-a\",\"resourceVersion\":\"201\","
		"\"annotations\":{\"holdfast.dev/mended\":\"2026-01-01T00:01:00.5Z a-1\"}},"
		"\"status\":{\"observedTime\":\"2026-01-01T00:00:07Z\",\"devices\":[" WELL "]}}";
	struct bench *bench = *state;
	hf_time at;

	start_with_agent(bench);
	agent_says(bench, 200, "2026-01-01T00:00:06Z", WELL);
	assert_int_equal(brain.n_mended, 0);
	record_of_worker_1(bench);
	fake_event(watch_of(bench, "devicehealths"), HF_EVENT_MODIFIED,
		   hf_doc_from_text(text, strlen(text)));
	turn_for(bench, HF_SECOND);
	assert_int_equal(brain.n_mended, 1);
	assert_int_equal(hf_time_parse("2026-01-01T00:01:00.5Z", &at, NULL), 0);
	assert_int_equal(brain.mended_at, at);
}

/* Report device g0 of node a as failed and withheld, and the devices in `others` too. */
static void withhold_g0(struct bench *bench, int version, const char *others)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"a\",\"uid\":\"h-a\",\"resourceVersion\":\"%d\","
		 "\"annotations\":{\"holdfast.dev/devices-out\":\"g0\"}},"
		 "\"status\":{\"observedTime\":\"2026-01-01T00:00:07Z\",\"devices\":[%s%s]}}",
		 version, SICK("Unhealthy", "reboot", "true", "\"holders\":[]"), others);
	fake_event(watch_of(bench, "devicehealths"), HF_EVENT_MODIFIED,
		   hf_doc_from_text(text, strlen(text)));
	turn_for(bench, HF_SECOND);
}

/* The failed device is out of use alone, so the node takes new pods; pods with a shared claim may still get the device. */
static void test_a_node_is_withheld_if_all_its_failed_devices_are(void **state)
{
	struct bench *bench = *state;

	start_with_agent(bench);
	agent_says(bench, 200, "2026-01-01T00:00:06Z",
		   SICK("Unhealthy", "reboot", "true", "\"holders\":[]"));
	assert_int_equal(brain.n_sick, 1);
	assert_false(brain.sick[0].withheld);
	withhold_g0(bench, 201, "");
	assert_int_equal(brain.n_sick, 1);
	assert_true(brain.sick[0].withheld);
	withhold_g0(bench, 202,
		    ",{\"id\":\"g1\",\"state\":\"Failed\",\"since\":\"2025-01-01T00:00:00Z\"}");
	assert_int_equal(brain.n_sick, 1);
	assert_false(brain.sick[0].withheld);
}

static void test_a_device_that_is_out_without_a_fault_is_out(void **state)
{
	struct bench *bench = *state;

	start_with_agent(bench);
	agent_says(bench, 200, "2026-01-01T00:00:01Z",
		   "{\"id\":\"g0\",\"state\":\"Failed\",\"since\":\"2026-01-01T00:00:00Z\"," HOLDER(
			   "") "}");
	assert_int_equal(brain.n_devices, 1);
	assert_true(brain.devices[0].fatal);
	assert_string_equal(brain.device_classes[0], HF_DEVICE_UNHEALTHY);
}

static void test_only_what_is_new_is_a_report_and_silence_is_no_agent(void **state)
{
	struct bench *bench = *state;
	hf_time reported;

	start_with_agent(bench);
	agent_says(bench, 200, "2026-01-01T00:00:01Z", WELL);
	reported = brain.nodes[0].reported_at;
	turn_for(bench, HF_MINUTE);
	/* Somebody else wrote into the object. */
	agent_says(bench, 201, "2026-01-01T00:00:01Z", WELL);
	assert_true(brain.nodes[0].reported_at - reported < HF_SECOND);
	assert_true(brain.nodes[0].has_agent);
	turn_for(bench, 16 * HF_MINUTE);
	fake_event(watch_of(bench, "pods"), HF_EVENT_MODIFIED, bound_pod(300));
	turn_for(bench, HF_SECOND);
	assert_false(brain.nodes[0].has_agent);
}

/* A report of the agent on a rank of the pod. */
#define RANK(number, state, own, more)                                                                \
	"{\"namespace\":\"n\",\"pod\":\"ddp-worker-0\",\"uid\":\"uid-ddp-worker-0\",\"rank\":" number \
	",\"state\":\"" state "\",\"ownMicros\":" own more "}"
#define ADVANCED(at) ",\"advancedTime\":\"" at "\",\"heardTime\":\"2026-01-01T00:01:00Z\""

static void ranks_say(struct bench *bench, int version, const char *observed, const char *ranks)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), WELL "],\"ranks\":[%s", ranks);
	agent_says(bench, version, observed, text);
}

static void test_a_rank_advances_or_stands_by_the_nodes_clock(void **state)
{
	struct bench *bench = *state;

	start_with_agent(bench);
	ranks_say(bench, 200, "2026-01-01T00:01:00Z",
		  RANK("0", "Advancing", "0", ADVANCED("2026-01-01T00:00:59Z")));
	assert_int_equal(brain.advance, HF_ADVANCING);
	assert_true(brain.now - brain.nodes[0].beat_at <= 2 * HF_SECOND);
	/* When the agent wrote this report, the rank had stood still for 40 s. */
	ranks_say(bench, 201, "2026-01-01T00:02:00Z",
		  RANK("0", "Stalled", "0", ADVANCED("2026-01-01T00:01:20Z")));
	assert_int_equal(brain.advance, HF_ADVANCE_STALLED);
	assert_in_range(brain.now - brain.advanced_at, 40 * HF_SECOND, 42 * HF_SECOND);
	assert_in_range(brain.now - brain.stepped_at, 40 * HF_SECOND, 42 * HF_SECOND);
	assert_in_range(brain.now - brain.told_at, 0, 2 * HF_SECOND);
	/* If one of two ranks of a pod advances, the pod advances. */
	ranks_say(bench, 202, "2026-01-01T00:03:00Z",
		  RANK("0", "Stalled", "0", ADVANCED("2026-01-01T00:01:20Z")) "," RANK(
			  "1", "Advancing", "0", ADVANCED("2026-01-01T00:02:20Z")));
	assert_int_equal(brain.advance, HF_ADVANCING);
	ranks_say(bench, 203, "2026-01-01T00:04:00Z", "");
	assert_int_equal(brain.advance, HF_ADVANCE_UNKNOWN);
}

#define NODE(state, detector)                                                                      \
	"{\"id\":\"node\",\"kind\":\"node\",\"state\":\"" state                                    \
	"\",\"since\":\"2026-01-01T00:00:04Z\","                                                   \
	"\"faults\":[{\"detector\":\"" detector                                                    \
	"\",\"code\":1,\"class\":\"reboot\",\"active\":true,"                                      \
	"\"firstTime\":\"2026-01-01T00:00:04Z\",\"lastTime\":\"2026-01-01T00:00:05Z\"}]},"
#define OF_STATE(state)                                                                            \
	"{\"id\":\"g0\",\"state\":\"" state "\"," HOLDER(",\"uid\":\"uid-ddp-worker-0\"") "}"
#define COVERED                                                                                          \
	"{\"id\":\"g0\",\"state\":\"Unknown\",\"faults\":[{\"detector\":\"xid\",\"code\":119,\"class\":" \
	"\"gpu-reset\",\"active\":false}]," HOLDER(",\"uid\":\"uid-ddp-worker-0\"") "}"

static void test_a_fault_that_stops_the_node_stops_the_holders_of_its_devices(void **state)
{
	struct bench *bench = *state;

	start_with_agent(bench);
	agent_says(bench, 200, "2026-01-01T00:00:06Z",
		   NODE("Unhealthy", "sxid") OF_STATE("Unknown"));
	assert_int_equal(brain.n_devices, 1);
	assert_string_equal(brain.device_ids[0], "node");
	assert_string_equal(brain.device_classes[0], "reboot");
	assert_true(brain.devices[0].fatal && brain.devices[0].held);
	/* A fault that several devices share must not concern further devices. */
	agent_says(bench, 201, "2026-01-01T00:00:07Z", NODE("Unhealthy", "peers") COVERED);
	assert_int_equal(brain.n_devices, 1);
	assert_true(brain.devices[0].held && !brain.devices[0].over);
	agent_says(bench, 202, "2026-01-01T00:00:08Z",
		   NODE("Unhealthy", "peers") OF_STATE("Unknown"));
	assert_int_equal(brain.n_devices, 0);
	agent_says(bench, 203, "2026-01-01T00:00:09Z",
		   NODE("Unhealthy", "peers") OF_STATE("Healthy"));
	assert_int_equal(brain.n_devices, 0);
	agent_says(bench, 204, "2026-01-01T00:00:10Z",
		   NODE("Degraded", "driver") OF_STATE("Unknown"));
	assert_int_equal(brain.n_devices, 0);
}

/* A rank that has done its last step writes its model or evaluates.  No peer waits for such a rank
 * in a step. */
static void test_a_rank_that_has_done_its_last_step_stands_not_still(void **state)
{
	struct bench *bench = *state;

	start_with_agent(bench);
	ranks_say(bench, 200, "2026-01-01T00:02:00Z",
		  RANK("0", "Silent", "0",
		       ADVANCED("2026-01-01T00:01:20Z") ",\"step\":200,\"totalSteps\":200"));
	assert_int_equal(brain.advance, HF_ADVANCE_UNKNOWN);
	ranks_say(bench, 201, "2026-01-01T00:03:00Z",
		  RANK("0", "Stalled", "0",
		       ADVANCED("2026-01-01T00:01:20Z") ",\"step\":199,\"totalSteps\":200"));
	assert_int_equal(brain.advance, HF_ADVANCE_STALLED);
}

static void fences_say(struct bench *bench, int version, const char *observed, const char *fences)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), WELL "],\"fences\":[%s", fences);
	agent_says(bench, version, observed, text);
}

#define FENCE(uid, seconds)                                                                        \
	"{\"namespace\":\"n\",\"pod\":\"ddp-worker-0\",\"uid\":\"" uid "\",\"seconds\":" seconds "}"

static void test_what_an_agent_told_of_a_fence_holds_for_its_pod(void **state)
{
	struct bench *bench = *state;

	start_with_agent(bench);
	fences_say(bench, 200, "2026-01-01T00:01:00Z", FENCE("uid-ddp-worker-0", "50"));
	assert_int_equal(brain.fence_seconds, 50);
	/* Of another pod of that name. */
	fences_say(bench, 201, "2026-01-01T00:02:00Z", FENCE("uid-of-its-predecessor", "50"));
	assert_int_equal(brain.fence_seconds, 0);
	fences_say(bench, 202, "2026-01-01T00:03:00Z", FENCE("uid-ddp-worker-0", "-5"));
	assert_int_equal(brain.fence_seconds, 0);
	fences_say(bench, 203, "2026-01-01T00:04:00Z", FENCE("uid-ddp-worker-0", "50"));
	/* The agent falls silent together with its node.  Just then the fence matters. */
	turn_for(bench, 16 * HF_MINUTE);
	fake_event(watch_of(bench, "pods"), HF_EVENT_MODIFIED, bound_pod(111));
	turn_for(bench, HF_SECOND);
	assert_false(brain.nodes[0].has_agent);
	assert_int_equal(brain.fence_seconds, 50);
}

static void process_says(struct bench *bench, int version, const char *uid, const char *job,
			 const char *rest)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 WELL "],\"processes\":[{\"namespace\":\"n\",\"pod\":\"ddp-worker-0\",\"uid\":"
		      "\"%s\",\"job\":\"%s\",\"generation\":2,\"attempt\":1,%s}",
		 uid, job, rest);
	agent_says(bench, version, "2026-01-01T00:00:01Z", text);
}

static void test_the_program_of_a_pod_is_reported_by_its_agent(void **state)
{
	struct bench *bench = *state;

	start_with_agent(bench);
	process_says(bench, 200, "uid-ddp-worker-0", "u-1",
		     "\"phase\":\"Ended\",\"ordinal\":4,\"code\":1,\"cause\":\"Error-9\","
		     "\"message\":\"loss is nan\",\"step\":7,\"savedStep\":5,\"saveMillis\":1500");
	assert_true(brain.processed);
	assert_int_equal(brain.process.phase, HF_PROCESS_ENDED);
	assert_int_equal(brain.process.generation, 2);
	assert_int_equal(brain.process.attempt, 1);
	assert_int_equal(brain.process.ordinal, 4);
	assert_true(brain.process.code.set && brain.process.code.value == 1);
	assert_false(brain.process.signal.set);
	assert_int_equal(brain.process.step, 7);
	assert_int_equal(brain.process.saved_step, 5);
	assert_int_equal(brain.process.save_ms, 1500);
	assert_string_equal(brain.process_cause, "Error-9");
	assert_string_equal(brain.process_message, "loss is nan");
}

/* As on the embedded plane: node and agent are part of this process. */
static void test_an_agent_is_heard_where_no_node_is_watched(void **state)
{
	struct bench *bench = *state;

	start(bench);
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED, bound_pod(110));
	turn_for(bench, HF_SECOND);
	process_says(bench, 200, "uid-ddp-worker-0", "u-1", "\"phase\":\"Running\"");
	assert_true(brain.processed);
	assert_true(brain.nodes[0].has_agent);
	assert_int_equal(brain.nodes[0].ready, HF_NODE_READY);
}

static void test_a_report_of_a_program_that_cannot_be_changes_nothing(void **state)
{
	static const struct {
		const char *uid, *job, *rest;
	} bad[] = {
		{"uid-of-its-predecessor", "u-1", "\"phase\":\"Running\""},
		{"uid-ddp-worker-0", "u-of-another-job", "\"phase\":\"Running\""},
		{"", "u-1", "\"phase\":\"Running\""},
		{"uid-ddp-worker-0", "", "\"phase\":\"Running\""},
		{"uid-ddp-worker-0", "u-1", "\"phase\":\"Sleeping\""},
		{"uid-ddp-worker-0", "u-1", "\"step\":1"},
		/* exec ends when its program ended with code 0, and the kubelet reports that */
		{"uid-ddp-worker-0", "u-1", "\"phase\":\"Ended\",\"code\":0"},
		{"uid-ddp-worker-0", "u-1", "\"phase\":\"Ended\""},
		{"uid-ddp-worker-0", "u-1", "\"phase\":\"Ended\",\"code\":256"},
	};
	struct bench *bench = *state;

	start_with_agent(bench);
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		process_says(bench, 200 + 2 * (int)i, bad[i].uid, bad[i].job, bad[i].rest);
		assert_false(brain.processed);
		process_says(bench, 201 + 2 * (int)i, "uid-ddp-worker-0", "u-1",
			     "\"phase\":\"Running\"");
		assert_true(brain.processed);
	}
	/* A cause of more than one word is left out. */
	process_says(bench, 300, "uid-ddp-worker-0", "u-1",
		     "\"phase\":\"Ended\",\"signal\":9,\"cause\":\"two words\"");
	assert_true(brain.processed);
	assert_string_equal(brain.process_cause, "-");
}

static void test_a_silent_agents_word_of_ranks_is_of_the_past(void **state)
{
	struct bench *bench = *state;

	start_with_agent(bench);
	ranks_say(bench, 200, "2026-01-01T00:02:00Z",
		  RANK("0", "Stalled", "0", ADVANCED("2026-01-01T00:01:20Z")));
	turn_for(bench, 16 * HF_MINUTE);
	fake_event(watch_of(bench, "pods"), HF_EVENT_MODIFIED, bound_pod(300));
	turn_for(bench, HF_SECOND);
	assert_int_equal(brain.advance, HF_ADVANCE_UNKNOWN);
}

/* The operator starts after the agent wrote for the last time; `age` is the age of that report by
 * the agent's clock. */
static void start_after(struct bench *bench, hf_time age)
{
	char observed[HF_TIME_TEXT_MAX], advanced[HF_TIME_TEXT_MAX], text[TEXT_MAX];
	hf_time then = hf_operator_now(bench->op) - age;

	hf_time_format_micro(then, observed);
	hf_time_format_micro(then - 40 * HF_SECOND, advanced);
	snprintf(text, sizeof(text),
		 WELL "],\"ranks\":[{\"namespace\":\"n\",\"pod\":\"ddp-worker-0\",\"uid\":"
		      "\"uid-ddp-worker-0\",\"state\":\"Stalled\",\"advancedTime\":\"%s\"}",
		 advanced);
	bench->health = health(200, observed, text);
	start_with_agent(bench);
	assert_true(brain.watched);
	assert_int_equal(brain.nodes[0].reported_at, HF_TIME_NONE);
}

static void test_what_an_agent_said_long_before_we_came_is_old(void **state)
{
	start_after(*state, 2 * HF_HOUR);
	assert_false(brain.nodes[0].has_agent);
	assert_int_equal(brain.advance, HF_ADVANCE_UNKNOWN);
}

static void test_what_was_said_before_we_came_makes_no_rank_stand_still(void **state)
{
	struct bench *bench = *state;

	start_after(bench, 10 * HF_MINUTE);
	assert_true(brain.nodes[0].has_agent);
	assert_int_equal(brain.advance, HF_ADVANCE_UNKNOWN);
	/* The agent is silent for fifteen minutes since its last write, but not since the operator
	 * came. */
	turn_for(bench, 6 * HF_MINUTE);
	fake_event(watch_of(bench, "pods"), HF_EVENT_MODIFIED, bound_pod(300));
	turn_for(bench, HF_SECOND);
	assert_false(brain.nodes[0].has_agent);
	ranks_say(bench, 201, "2026-01-01T00:02:00Z",
		  RANK("0", "Stalled", "0", ADVANCED("2026-01-01T00:01:20Z")));
	assert_true(brain.nodes[0].has_agent);
	assert_int_equal(brain.advance, HF_ADVANCE_STALLED);
}

static void test_a_nodes_clock_that_is_ahead_makes_nothing_older(void **state)
{
	start_after(*state, -2 * HF_HOUR);
	assert_true(brain.nodes[0].has_agent);
	assert_int_equal(brain.advance, HF_ADVANCE_UNKNOWN);
}

static void test_a_rank_that_works_longer_than_its_peers_is_slow(void **state)
{
	struct bench *bench = *state;

	start_with_agent(bench);
	ranks_say(bench, 200, "2026-01-01T00:01:00Z",
		  RANK("0", "Advancing", "30000",
		       "") "," RANK("1", "Advancing", "31000",
				    "") "," RANK("2", "Advancing", "30500",
						 "") "," RANK("3", "Advancing", "33000", ""));
	assert_int_equal(brain.slow_permille, 0);
	ranks_say(bench, 201, "2026-01-01T00:02:00Z",
		  RANK("0", "Advancing", "30000",
		       "") "," RANK("1", "Advancing", "31000",
				    "") "," RANK("2", "Advancing", "30500",
						 "") "," RANK("3", "Advancing", "45000", ""));
	assert_in_range(brain.slow_permille, 1450, 1500);
	/* A rank that is alone in its group has no peers to be compared with. */
	ranks_say(bench, 202, "2026-01-01T00:03:00Z",
		  RANK("0", "Advancing", "30000",
		       "") "," RANK("1", "Advancing", "31000",
				    "") "," RANK("2", "Advancing", "30500",
						 "") "," RANK("3", "Advancing", "45000",
							      ",\"group\":\"stage-1\""));
	assert_int_equal(brain.slow_permille, 0);
}

/* Core has its own list of device classes, because it may not use module health. */
static void test_both_brains_know_the_same_classes(void **state)
{
	enum hf_health_class none;

	(void)state;
	for (int c = HF_HEALTH_NONE + 1; c < HF_HEALTH_CLASSES; c++)
		assert_true(
			hf_device_class_is_known(hf_health_class_name((enum hf_health_class)c)));
	assert_false(hf_device_class_is_known(hf_health_class_name(HF_HEALTH_NONE)));
	assert_true(hf_device_class_is_known(HF_DEVICE_UNHEALTHY));
	assert_false(hf_health_class_of(HF_DEVICE_UNHEALTHY, &none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		N(test_without_agents_nothing_is_told),
		N(test_a_missing_crd_holds_nothing_up_and_is_not_told),
		N(test_an_agents_word_is_joined_with_the_pod_that_holds_the_device),
		N(test_what_does_not_count_is_not_told),
		N(test_what_was_over_before_a_pod_began_is_told_by_the_nodes_clock),
		N(test_what_concerns_the_last_record_is_told_late),
		N(test_nodes_are_sick_while_their_agents_report_it_and_wake_no_job),
		N(test_what_an_earlier_pod_of_the_name_had_explains_nothing),
		N(test_an_act_that_mended_the_node_of_a_record_is_told),
		N(test_a_node_is_withheld_if_all_its_failed_devices_are),
		N(test_a_device_that_is_out_without_a_fault_is_out),
		N(test_a_rank_advances_or_stands_by_the_nodes_clock),
		N(test_a_fault_that_stops_the_node_stops_the_holders_of_its_devices),
		N(test_a_rank_that_has_done_its_last_step_stands_not_still),
		N(test_what_an_agent_told_of_a_fence_holds_for_its_pod),
		N(test_the_program_of_a_pod_is_reported_by_its_agent),
		N(test_a_report_of_a_program_that_cannot_be_changes_nothing),
		cmocka_unit_test_setup_teardown(test_an_agent_is_heard_where_no_node_is_watched,
						setup_with_agents, teardown),
		N(test_a_silent_agents_word_of_ranks_is_of_the_past),
		N(test_what_an_agent_said_long_before_we_came_is_old),
		N(test_what_was_said_before_we_came_makes_no_rank_stand_still),
		N(test_a_nodes_clock_that_is_ahead_makes_nothing_older),
		N(test_a_rank_that_works_longer_than_its_peers_is_slow),
		N(test_only_what_is_new_is_a_report_and_silence_is_no_agent),
		cmocka_unit_test(test_both_brains_know_the_same_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
