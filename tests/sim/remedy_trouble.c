/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* A HealthPolicy while requests are refused, lists come late, and people change their minds. */

#define TAINTED                                                                                    \
	"{'spec':{'taints':[{'key':'nvidia.com/gpu','value':'present','effect':'NoSchedule'},{"    \
	"'key':'holdfast.dev/device','value':'gpu-reset','effect':'NoSchedule'}]}}"

/* --- spares -------------------------------------------------------------------------------- */

/* Creates a fleet in which every node but the last has a pod. */
static void begin_busy(struct rw *w, const char *policy)
{
	static const char *const pods[] = {"a", "b", "c", "d", "e", "f", "g"};

	rw_fleet(w, 8);
	for (int i = 0; i < 7; i++) {
		rw_pod(w, pods[i], i, "ReplicaSet");
		rw_say(w, i, RW_WELL);
	}
	rw_policy(w, policy);
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
}

static void promise_8_one_free_node_takes_the_work_of_one_slow_node(void **state)
{
	struct rw *w = *state;

	begin_busy(w, "{'mode':'remediate'," WIDE "}");
	for (int i = 0; i < 4; i++)
		rw_say(w, i, RW_SLOW);
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(rw_count_tainted(w), 1);
	rw_expect_next(w, 1, "held quarantine no-capacity");
	/* The work of node 0 has moved to the spare, and node 6 has become free. */
	w->holder[7] = w->holder[0];
	w->holder[0] = w->holder[6] = NULL;
	rw_say(w, 7, RW_WELL);
	rw_say(w, 6, RW_WELL);
	rw_say(w, 0, RW_SLOW);
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(rw_count_tainted(w), 2);
}

/* --- lists that come late ------------------------------------------------------------------ */

static bool list_is_late(const struct rw *w, const struct hf_request *request,
			 struct hf_fault *ret_fault)
{
	if (request->verb == HF_VERB_LIST && hf_streq(request->resource->plural, w->victim))
		ret_fault->delay_before = 5 * HF_SECOND;
	return false;
}

static void rounds_begin_with_the_last_list_whichever_it_is(void **state)
{
	static const char *const lists[] = {"pods", "nodes", "devicehealths", "healthpolicies"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(lists); i++) {
		struct rw *w;

		rw_setup((void **)&w);
		rw_fleet(w, 10);
		rw_policy(w, QUARANTINE);
		rw_say(w, 3, RW_RESET);
		w->victim = lists[i];
		w->fault = list_is_late;
		rw_start(w);
		rw_run(w, 20 * HF_SECOND);
		assert_true(rw_tainted(w, 3));
		rw_teardown((void **)&w);
	}
}

/* --- writes that are refused --------------------------------------------------------------- */

static bool node_is_guarded(const struct rw *w, const struct hf_request *request,
			    struct hf_fault *ret_fault)
{
	if (request->resource != &hf_nodes || request->verb != HF_VERB_PATCH ||
	    !hf_streq(request->name, w->victim))
		return false;
	ret_fault->refuse = HF_E_INVALID;
	ret_fault->message = "admission webhook denied the request";
	return true;
}

static void a_node_that_may_not_be_written_keeps_no_other_waiting(void **state)
{
	struct rw *w = *state;
	unsigned long long writes;

	rw_begin(w, 30, "{'mode':'quarantine'," WIDE "}");
	w->victim = "n001";
	w->fault = node_is_guarded;
	rw_say(w, 1, RW_REBOOT);
	rw_run(w, HF_MINUTE);
	rw_say(w, 3, RW_RESET);
	rw_say(w, 5, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
	assert_true(rw_tainted(w, 5));
	rw_run(w, 10 * HF_MINUTE);
	rw_expect_next(w, 1, "held quarantine refused");
	assert_true(rw_event(w, "QuarantineBlocked", "n001"));
	/* Holdfast tries again every five minutes, and writes the policy's status before and
	 * after. */
	writes = w->writes;
	rw_run(w, HF_HOUR);
	assert_true(w->writes - writes <= 12 * 4);
	assert_true(w->writes - writes >= 11);
	rw_say(w, 3, RW_WELL);
	rw_run(w, 10 * HF_SECOND);
	assert_false(rw_tainted(w, 3));
	w->fault = NULL;
	rw_run(w, 6 * HF_MINUTE);
	assert_true(rw_tainted(w, 1));
}

static void a_note_that_may_not_be_written_keeps_no_node_waiting(void **state)
{
	struct rw *w = *state;

	rw_begin(w, 30, "{'mode':'quarantine'," WIDE "}");
	rw_say(w, 1, RW_RESET);
	rw_say(w, 7, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_int_equal(rw_count_tainted(w), 2);
	w->victim = "n001";
	w->fault = node_is_guarded;
	rw_patch(w, &hf_nodes, "n001", UNTAINTED);
	rw_run(w, HF_MINUTE);
	rw_say(w, 3, RW_REBOOT);
	rw_say(w, 7, RW_WELL);
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
	assert_false(rw_tainted(w, 7));
	rw_run(w, HF_HOUR);
	assert_false(rw_tainted(w, 1));
	rw_expect_next(w, 1, "held quarantine stale");
}

static bool all_is_down(const struct rw *w, const struct hf_request *request,
			struct hf_fault *ret_fault)
{
	if (request->resource != &hf_nodes || request->verb != HF_VERB_PATCH)
		return false;
	ret_fault->refuse = HF_E_UNAVAILABLE;
	ret_fault->message = "down";
	return true;
}

/* Each attempt changes the policy's status. This change must not cause the next attempt at once. */
static void where_all_writes_fail_attempts_become_rare(void **state)
{
	struct rw *w = *state;
	unsigned long long writes;

	rw_begin(w, 30, "{'mode':'quarantine'," WIDE "}");
	w->fault = all_is_down;
	for (int i = 0; i < 5; i++)
		rw_say(w, i, RW_RESET);
	rw_run(w, 10 * HF_MINUTE);
	writes = w->writes;
	rw_run(w, HF_HOUR);
	assert_true(w->writes - writes < 5 * 12 * 4);
	w->fault = NULL;
	rw_run(w, 6 * HF_MINUTE);
	assert_int_equal(rw_count_tainted(w), 5);
}

/* --- what can be remembered ---------------------------------------------------------------- */

static void promise_5_more_quarantines_than_can_be_remembered_wait(void **state)
{
	struct rw *w = *state;

	rw_begin(w, 300,
		 "{'mode':'quarantine','budget':{'maxUnavailable':{'percent':50},'maxQuarantines':{"
		 "'count':60}},'breaker':{'percent':100,'windowSeconds':14400}}");
	for (int hour = 0; hour < 3; hour++) {
		for (int i = 0; i < 50; i++)
			rw_say(w, 50 * hour + i, RW_RESET);
		rw_run(w, 5 * HF_MINUTE);
		assert_int_equal(rw_count_tainted(w), hour < 2 ? 50 : 28);
		for (int i = 0; i < 50 && hour < 2; i++)
			rw_say(w, 50 * hour + i, RW_WELL);
		rw_run(w, HF_HOUR);
	}
	rw_expect_next(w, 149, "held quarantine rate");
	assert_string_equal(rw_status(w, "budget", "quarantinesLeft"), "0");
	/* Releases go on. Further quarantines follow when the first ones are older than the
	 * window. */
	rw_say(w, 100, RW_WELL);
	rw_run(w, HF_MINUTE);
	assert_int_equal(rw_count_tainted(w), 27);
	rw_run(w, 2 * HF_HOUR);
	assert_int_equal(rw_count_tainted(w), 49);
}

static void what_no_job_was_disturbed_by_is_not_remembered_for_jobs(void **state)
{
	struct rw *w = *state;

	rw_begin(w, 300,
		 "{'mode':'quarantine','budget':{'maxUnavailable':{'percent':50},'maxQuarantines':{"
		 "'count':60},'perJob':{'windowSeconds':604800}},'breaker':{'percent':100}}");
	for (int hour = 0; hour < 4; hour++) {
		for (int i = 0; i < 50; i++)
			rw_say(w, 50 * hour + i, RW_RESET);
		rw_run(w, 5 * HF_MINUTE);
		assert_int_equal(rw_count_tainted(w), 50);
		for (int i = 0; i < 50; i++)
			rw_say(w, 50 * hour + i, RW_WELL);
		rw_run(w, HF_HOUR);
	}
}

/* A policy is deleted with its status and created again, and more Nodes have its mark than a status
 * can list. */
static void a_policy_made_anew_over_many_marks_goes_on(void **state)
{
	struct rw *w = *state;
	char mark[256], name[16];

	rw_fleet(w, 300);
	snprintf(mark, sizeof(mark),
		 "{'metadata':{'annotations':{'holdfast.dev/quarantine':'{\\'policy\\':\\'p\\',"
		 "\\'class\\':\\'gpu-reset\\',\\'time\\':\\'2023-11-14T22:13:00Z\\'}'}}}");
	for (int i = 0; i < 150; i++) {
		snprintf(name, sizeof(name), "n%03d", i);
		rw_say(w, i, RW_RESET);
		rw_patch(w, &hf_nodes, name, mark);
		rw_patch(w, &hf_nodes, name, TAINTED);
	}
	rw_policy(
		w,
		"{'mode':'quarantine','budget':{'maxUnavailable':{'percent':90}},'breaker':{'percent':100}}");
	rw_start(w);
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(rw_status(w, "counts", "quarantined"), "150");
	rw_say(w, 0, RW_WELL);
	rw_run(w, 10 * HF_SECOND);
	assert_int_equal(rw_count_tainted(w), 149);
	rw_say(w, 200, RW_RESET);
	rw_run(w, 2 * HF_HOUR);
	assert_true(rw_tainted(w, 200));
}

/* --- the breaker --------------------------------------------------------------------------- */

/* A policy is created with a high epoch, as when it is applied again from a repository. */
static void promise_5_an_epoch_closes_no_breaker_that_is_not_open(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 20);
	rw_say(w, 3, RW_RESET);
	rw_policy(w, "{'mode':'quarantine','breaker':{'epoch':3}}");
	rw_start(w);
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
	assert_string_equal(rw_status(w, "breaker", "epoch"), "3");
	rw_patch(w, &hf_healthpolicies, "p",
		 "{'metadata':{'annotations':{'holdfast.dev/paused':'true'}}}");
	rw_say(w, 4, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	rw_patch(w, &hf_healthpolicies, "p",
		 "{'metadata':{'annotations':null},'spec':{'breaker':{'epoch':4}}}");
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 4));
	assert_string_equal(rw_status(w, "breaker", "epoch"), "4");
	assert_false(rw_event(w, "BreakerClosed", "p"));
	/* The breaker opens all the same, and the next epoch closes it. */
	for (int i = 5; i < 15; i++)
		rw_say(w, i, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(rw_status(w, "breaker", "state"), "Open");
	rw_close_breaker(w, 5);
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(rw_status(w, "breaker", "state"), "Closed");
	assert_int_equal(rw_count_tainted(w), 2);
}

static void promise_5_a_smaller_fleet_opens_no_breaker_for_old_failures(void **state)
{
	struct rw *w = *state;
	char name[16];

	rw_begin(w, 15, "{'mode':'quarantine','budget':{'maxUnavailable':{'count':1}}}");
	for (int i = 0; i < 3; i++)
		rw_say(w, i, RW_RESET);
	rw_run(w, HF_DAY);
	assert_int_equal(rw_count_tainted(w), 1);
	for (int i = 9; i < 15; i++) {
		snprintf(name, sizeof(name), "n%03d", i);
		rw_delete(w, &hf_nodes, name);
		rw_delete(w, &hf_devicehealths, name);
	}
	w->nodes = 9;
	rw_run(w, HF_MINUTE);
	assert_string_equal(rw_status(w, "breaker", "state"), "Closed");
	/* Two nodes that fail now are too many for the smaller fleet. */
	rw_say(w, 3, RW_RESET);
	rw_say(w, 4, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(rw_status(w, "breaker", "state"), "Open");
}

static void promise_5_what_is_out_counts_without_an_agent_too(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 10);
	rw_patch(w, &hf_nodes, "n004", "{'spec':{'unschedulable':true}}");
	rw_patch(w, &hf_nodes, "n006", "{'spec':{'unschedulable':true}}");
	rw_policy(w, "{'mode':'quarantine','selector':{'matchLabels':{'pool':'even'}},'budget':{"
		     "'maxUnavailable':{'count':2}}}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	assert_string_equal(rw_status(w, "counts", "selected"), "5");
	w->silent[4] = w->silent[6] = true;
	rw_delete(w, &hf_devicehealths, "n004");
	rw_delete(w, &hf_devicehealths, "n006");
	rw_say(w, 2, RW_RESET);
	rw_run(w, HF_MINUTE);
	rw_expect_next(w, 2, "held quarantine unavailable");
	assert_string_equal(rw_status(w, "counts", "selected"), "3");
	assert_string_equal(rw_status(w, "counts", "unavailable"), "2");
	assert_string_equal(rw_status(w, "counts", "silent"), "0");
	rw_patch(w, &hf_nodes, "n004", "{'spec':{'unschedulable':null}}");
	rw_run(w, HF_MINUTE);
	assert_true(rw_tainted(w, 2));
}

/* The marks of a deleted policy are no failures under the policy that selects the nodes now. */
static void promise_5_what_another_policy_took_out_is_no_burst(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 20);
	rw_policy_named(w, "a",
			"{'mode':'quarantine','selector':{'matchLabels':{'pool':'even'}}," WIDE
			"}");
	rw_policy(w, "{'mode':'quarantine','budget':{'maxUnavailable':{'count':6}}}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	for (int i = 0; i < 10; i += 2)
		rw_say(w, i, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	assert_int_equal(rw_count_tainted(w), 5);
	rw_delete(w, &hf_healthpolicies, "a");
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(rw_status(w, "breaker", "state"), "Closed");
	assert_string_equal(rw_status(w, "counts", "quarantined"), "5");
	assert_string_equal(rw_status(w, "budget", "quarantinesLeft"), "5");
	assert_string_equal(rw_status(w, "budget", "unavailableLeft"), "1");
	/* The present policy releases the nodes when their agents report them as well. */
	for (int i = 0; i < 10; i += 2)
		rw_say(w, i, RW_WELL);
	rw_run(w, 10 * HF_SECOND);
	assert_int_equal(rw_count_tainted(w), 0);
}

/* --- drain --------------------------------------------------------------------------------- */

static void a_drain_is_stuck_ten_minutes_after_it_could_begin(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 10);
	rw_pod(w, "serve", 3, "ReplicaSet");
	rw_pod(w, "agent", 4, "DaemonSet");
	rw_policy(w, "{'mode':'quarantine'," WIDE "}");
	w->refuse_evictions = true;
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 3, RW_RESET);
	rw_say(w, 4, RW_RESET);
	rw_run(w, HF_HOUR);
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mode':'remediate'}}");
	rw_run(w, 9 * HF_MINUTE);
	assert_false(rw_event(w, "DrainStuck", "n003"));
	rw_run(w, 3 * HF_MINUTE);
	assert_true(rw_event(w, "DrainStuck", "n003"));
	/* A pod of a DaemonSet would be created again, so no drain waits for it. */
	assert_false(rw_event(w, "DrainStuck", "n004"));
}

static const char *uid_of(struct rw *w, const char *pod)
{
	return hf_json_path_str(rw_get(w, &hf_pods, "default", pod), "metadata", "uid", NULL);
}

/* The policy is created and deleted before the operator handles either event, as in a watch that
 * resumes. */
static void a_policy_that_comes_and_goes_in_one_breath_is_none(void **state)
{
	struct rw *w = *state;

	rw_fleet(w, 10);
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	for (int i = 0; i < 3; i++) {
		rw_policy(w, "{'mode':'quarantine'," WIDE "}");
		rw_delete(w, &hf_healthpolicies, "p");
		rw_run(w, i * HF_MS);
	}
	rw_policy(w, "{'mode':'quarantine'," WIDE "}");
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
}

static bool is_evicted(struct rw *w, const char *pod)
{
	return hf_json_path_str(rw_get(w, &hf_pods, "default", pod), "metadata",
				"deletionTimestamp", NULL) != NULL;
}

/* Half of the node's devices hang in the same way, so the node has the fault. The pod on a device
 * that works stays. */
static void a_pod_on_a_working_device_is_not_evicted(void **state)
{
	struct rw *w = *state;
	char text[2048];

	rw_fleet(w, 10);
	rw_pod(w, "hung", 3, "ReplicaSet");
	rw_pod(w, "other", 3, "ReplicaSet");
	rw_policy(w, "{'mode':'remediate'," WIDE "}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	w->ill[3] = RW_RESET;
	w->holder[3] = NULL; /* the test writes the holders itself */
	snprintf(
		text, sizeof(text),
		"{'status':{'state':'Unhealthy','class':'gpu-reset','action':'reset-device',"
		"'bootID':'b-n003','observedTime':'2023-11-14T22:13:30Z','evidenceTime':"
		"'2023-11-14T22:13:25Z','devices':[{'id':'node','kind':'node','state':'Unhealthy',"
		"'class':'gpu-reset','since':'2023-11-14T22:13:25Z','faults':[{'detector':'peers',"
		"'code':1,'class':'gpu-reset','active':true}]},{'id':'0000:1a:00.0','kind':'gpu',"
		"'state':'Unknown','faults':[{'detector':'xid','code':119,'class':'gpu-reset','active':"
		"false}],'holders':[{'namespace':'default','pod':'hung','uid':'%s'}]},"
		"{'id':'0000:1b:00.0','kind':'gpu','state':'Healthy','holders':[{'namespace':"
		"'default','pod':'other','uid':'%s'}]}]}}",
		uid_of(w, "hung"), uid_of(w, "other"));
	rw_patch_status(w, &hf_devicehealths, "n003", text);
	rw_run(w, 5 * HF_MINUTE);
	assert_true(rw_tainted(w, 3));
	assert_true(is_evicted(w, "hung"));
	assert_false(is_evicted(w, "other"));
}

static bool count_reads(const struct rw *w, const struct hf_request *request,
			struct hf_fault *ret_fault)
{
	(void)ret_fault;
	*w->reads += request->verb == HF_VERB_GET && request->resource == &hf_pods;
	return false;
}

static void what_hangs_in_its_end_is_looked_at_ever_more_seldom(void **state)
{
	struct rw *w = *state;
	unsigned reads = 0;

	rw_fleet(w, 10);
	rw_pod(w, "serve", 3, "ReplicaSet");
	rw_pod(w, "agent", 4, "DaemonSet");
	rw_policy(w, "{'mode':'remediate'," WIDE "}");
	w->reads = &reads;
	w->fault = count_reads;
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 3, RW_RESET);
	rw_say(w, 4, RW_RESET);
	rw_run(w, HF_HOUR);
	reads = 0;
	rw_run(w, HF_HOUR);
	assert_true(reads <= 2 * 12);
	assert_true(reads >= 11);
}

/* --- policies ------------------------------------------------------------------------------ */

static void the_first_sixteen_policies_by_name_count(void **state)
{
	struct rw *w = *state;
	char name[16];

	rw_fleet(w, 10);
	rw_start(w);
	for (int i = 0; i < 18; i++) {
		snprintf(name, sizeof(name), "q%02d", i);
		rw_policy_named(w, name, "{'selector':{'matchLabels':{'no':'no'}}}");
	}
	rw_run(w, 5 * HF_SECOND);
	/* This policy is created last, but its name comes before the others. */
	rw_policy(w, QUARANTINE);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
	/* A policy beyond the first sixteen is read when others are deleted. */
	assert_null(hf_json_path(rw_get(w, &hf_healthpolicies, NULL, "q17"), "status", NULL));
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "q%02d", i);
		rw_delete(w, &hf_healthpolicies, name);
	}
	rw_run(w, 30 * HF_SECOND);
	assert_non_null(hf_json_path(rw_get(w, &hf_healthpolicies, NULL, "q17"), "status", NULL));
}

/* --- what people take off ------------------------------------------------------------------ */

#define DAMAGED "{'metadata':{'annotations':{'holdfast.dev/quarantine':'mine'}}}"
#define PAUSED(word) "{'metadata':{'annotations':{'holdfast.dev/paused':" word "}}}"

static void quarantine_one(struct rw *w)
{
	rw_begin(w, 10, QUARANTINE);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 10 * HF_MINUTE);
	assert_true(rw_tainted(w, 3));
}

/* A person removes the taint and the annotation, with the two commands of
 * docs/how-to/quarantine-nodes.md, in either order; or overwrites the annotation. */
static void promise_2_what_a_person_takes_off_with_its_annotation_stays_off(void **state)
{
	static const char *const orders[][2] = {
		{UNTAINTED, UNMARKED}, {UNMARKED, UNTAINTED}, {UNTAINTED, DAMAGED}};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(orders) * 2; i++) {
		struct rw *w;

		rw_setup((void **)&w);
		quarantine_one(w);
		/* Later than all windows of the budget. */
		if (i >= HF_ARRAY_LEN(orders))
			rw_run(w, 3 * HF_HOUR);
		w->by_hand = true;
		for (int k = 0; k < 2; k++) {
			rw_patch(w, &hf_nodes, "n003", orders[i % HF_ARRAY_LEN(orders)][k]);
			rw_run(w, (hf_time)(i % 2) * 5 * HF_SECOND);
		}
		rw_run(w, 3 * HF_HOUR);
		assert_false(rw_tainted(w, 3));
		rw_expect_next(w, 3, "held quarantine stale");
		rw_stop(w);
		rw_start(w);
		rw_run(w, HF_HOUR);
		assert_false(rw_tainted(w, 3));
		rw_say(w, 3, RW_REBOOT);
		rw_run(w, 10 * HF_SECOND);
		assert_true(rw_tainted(w, 3));
		/* Afterwards the node needs no more writes. */
		rw_run(w, HF_HOUR);
		rw_teardown((void **)&w);
	}
}

/* The Node is paused, so Holdfast may not write there when the taint was taken off. */
static void promise_2_what_fails_after_a_taint_was_taken_off_is_acted_on(void **state)
{
	(void)state;
	for (int restart = 0; restart < 2; restart++) {
		struct rw *w;

		rw_setup((void **)&w);
		quarantine_one(w);
		rw_patch(w, &hf_nodes, "n003", PAUSED("'true'"));
		rw_run(w, HF_MINUTE);
		rw_patch(w, &hf_nodes, "n003", UNTAINTED);
		rw_run(w, HF_MINUTE);
		rw_say(w, 3, RW_REBOOT);
		rw_run(w, HF_HOUR);
		if (restart) {
			rw_stop(w);
			rw_start(w);
			rw_run(w, HF_HOUR);
		}
		rw_patch(w, &hf_nodes, "n003", PAUSED("null"));
		rw_run(w, 10 * HF_MINUTE);
		assert_true(rw_tainted(w, 3));
		rw_teardown((void **)&w);
	}
}

static void promise_2_each_time_that_it_is_taken_off_counts(void **state)
{
	struct rw *w = *state;

	quarantine_one(w);
	rw_patch(w, &hf_nodes, "n003", UNTAINTED);
	rw_run(w, HF_MINUTE);
	assert_false(rw_tainted(w, 3));
	rw_patch(w, &hf_nodes, "n003", TAINTED);
	rw_run(w, HF_MINUTE);
	rw_say(w, 3, RW_RESET);
	rw_run(w, HF_MINUTE);
	/* The taint is taken off while no operator runs. */
	rw_stop(w);
	rw_patch(w, &hf_nodes, "n003", UNTAINTED);
	rw_start(w);
	rw_run(w, HF_HOUR);
	assert_false(rw_tainted(w, 3));
	rw_say(w, 3, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_true(rw_tainted(w, 3));
}

/* --- a policy that cannot be used ---------------------------------------------------------- */

#define BAD "{'spec':{'colour':'red'}}"
#define GOOD "{'spec':{'colour':null}}"

/* A new operator leads for a minute and never reads a valid version of the policy. */
static void lead_without_a_good_policy(struct rw *w)
{
	rw_patch(w, &hf_healthpolicies, "p", BAD);
	rw_run(w, 5 * HF_SECOND);
	rw_stop(w);
	rw_start(w);
	rw_run(w, HF_MINUTE);
	assert_string_equal(rw_status(w, "mode", NULL), "observe");
}

static void promise_5_a_policy_that_cannot_be_used_forgets_no_budget(void **state)
{
	struct rw *w = *state;

	rw_begin(
		w, 30,
		"{'mode':'quarantine','budget':{'maxQuarantines':{'count':2,'windowSeconds':86400}}}");
	for (int i = 0; i < 2; i++) {
		rw_say(w, i, RW_RESET);
		rw_run(w, 10 * HF_MINUTE);
		rw_say(w, i, RW_WELL);
		rw_run(w, 2 * HF_HOUR);
	}
	assert_int_equal(w->taints_put, 2);
	rw_say(w, 5, RW_RESET);
	rw_run(w, HF_MINUTE);
	rw_expect_next(w, 5, "held quarantine rate");
	lead_without_a_good_policy(w);
	rw_patch(w, &hf_healthpolicies, "p", GOOD);
	rw_run(w, HF_MINUTE);
	rw_expect_next(w, 5, "held quarantine rate");
	assert_int_equal(w->taints_put, 2);
}

/* Even if a quarantine ends within a second, it counts. */
static void promise_5_a_quarantine_of_a_second_is_one(void **state)
{
	struct rw *w = *state;

	rw_begin(w, 30, "{'mode':'quarantine','budget':{'maxQuarantines':{'count':2}}}");
	for (int i = 0; i < 20; i++) {
		rw_say(w, 3, i % 2 == 0 ? RW_RESET : RW_WELL);
		for (int k = 0; k < 30 && rw_tainted(w, 3) != (i % 2 == 0); k++)
			rw_run(w, 100 * HF_MS);
	}
	assert_int_equal(w->taints_put, 2);
	rw_run(w, 2 * HF_MINUTE);
	assert_string_equal(rw_status(w, "budget", "quarantinesLeft"), "0");
}

static void a_policy_that_cannot_be_used_opens_no_breaker(void **state)
{
	struct rw *w = *state;

	rw_begin(w, 10, "{'mode':'quarantine'," WIDE "}");
	lead_without_a_good_policy(w);
	for (int i = 0; i < 3; i++)
		rw_say(w, i, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(rw_status(w, "breaker", "state"), "Closed");
	rw_patch(w, &hf_healthpolicies, "p", GOOD);
	rw_run(w, 10 * HF_SECOND);
	assert_int_equal(rw_count_tainted(w), 3);
}

/* A server with an older CRD drops fields of the status that it does not know. */
static void what_a_server_does_not_keep_is_not_written_each_second(void **state)
{
	struct rw *w = *state;
	unsigned long long writes;

	rw_fleet(w, 10);
	rw_policy(w, "{'mode':'quarantine'," WIDE "}");
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	writes = w->writes;
	for (int i = 0; i < 60; i++) {
		rw_patch_status(w, &hf_healthpolicies, "p", "{'status':{'budget':null}}");
		rw_run(w, 2 * HF_SECOND);
	}
	assert_in_range(w->writes - writes, 0, 2);
	/* A change of the status is still written. */
	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
	assert_string_equal(rw_status(w, "counts", "quarantined"), "1");
}

#define T(name) cmocka_unit_test_setup_teardown(name, rw_setup, rw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(promise_8_one_free_node_takes_the_work_of_one_slow_node),
		cmocka_unit_test(rounds_begin_with_the_last_list_whichever_it_is),
		T(a_node_that_may_not_be_written_keeps_no_other_waiting),
		T(a_note_that_may_not_be_written_keeps_no_node_waiting),
		T(where_all_writes_fail_attempts_become_rare),
		T(promise_5_more_quarantines_than_can_be_remembered_wait),
		T(what_no_job_was_disturbed_by_is_not_remembered_for_jobs),
		T(a_policy_made_anew_over_many_marks_goes_on),
		T(promise_5_an_epoch_closes_no_breaker_that_is_not_open),
		T(promise_5_a_smaller_fleet_opens_no_breaker_for_old_failures),
		T(promise_5_what_is_out_counts_without_an_agent_too),
		T(promise_5_what_another_policy_took_out_is_no_burst),
		T(a_drain_is_stuck_ten_minutes_after_it_could_begin),
		T(a_pod_on_a_working_device_is_not_evicted),
		T(a_policy_that_comes_and_goes_in_one_breath_is_none),
		T(what_hangs_in_its_end_is_looked_at_ever_more_seldom),
		T(the_first_sixteen_policies_by_name_count),
		cmocka_unit_test(promise_2_what_a_person_takes_off_with_its_annotation_stays_off),
		cmocka_unit_test(promise_2_what_fails_after_a_taint_was_taken_off_is_acted_on),
		T(promise_2_each_time_that_it_is_taken_off_counts),
		T(promise_5_a_policy_that_cannot_be_used_forgets_no_budget),
		T(promise_5_a_quarantine_of_a_second_is_one),
		T(a_policy_that_cannot_be_used_opens_no_breaker),
		T(what_a_server_does_not_keep_is_not_written_each_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
