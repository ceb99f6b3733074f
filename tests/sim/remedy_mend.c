/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_actor.h"

#include "api/remediation.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Acts that mend nodes: the controller of Remediations on a fleet, with actors that may fail. */

#define MEND "{'mode':'remediate','mend':{}," WIDE "}"
#define EXTERNAL                                                                                   \
	"{'mode':'remediate','mend':{'rungs':['external'],'external':{'template':{'apiVersion':"   \
	"'fix.example/v1','kind':'FixTemplate','name':'t'}}}," WIDE "}"

static const struct hf_json *remediation(struct ra *a, const char *name)
{
	return rw_get(a->w, &hf_remediations, NULL, name);
}

/* The condition is not True, and its message has this part. */
static void expect_condition(struct ra *a, const char *name, const char *type, const char *part)
{
	const struct hf_json *list =
		hf_json_path(remediation(a, name), "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *item = hf_json_item(list, i);

		if (!hf_streq(hf_json_path_str(item, "type", NULL), type))
			continue;
		assert_string_not_equal(hf_json_path_str(item, "status", NULL), "True");
		if (strstr(hf_str_or(hf_json_path_str(item, "message", NULL), ""), part) == NULL)
			fail_msg("%s: condition %s has not '%s'", name, type, part);
		return;
	}
	fail_msg("%s has no condition %s", name, type);
}

/* ---- an act from its fault to its end --------------------------------------------------------- */

static void a_reset_mends_the_node(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_true(rw_tainted(w, 3));
	rw_run(w, 20 * HF_SECOND);
	assert_int_equal(a->resets, 1);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Succeeded");
	rw_expect_message(a->w, "n003-1", "same UUID");
	assert_string_equal(hf_json_path_str(remediation(a, "n003-1"), "spec", "requestedBy", NULL),
			    "policy");
	assert_null(hf_json_path(remediation(a, "n003-1"), "metadata", "finalizers", NULL));
	assert_false(rw_tainted(w, 3));
	assert_false(ra_has_lease(a, 3));
	assert_true(rw_event(w, "Mended", "n003"));
	assert_int_equal(a->acts, 1);
	assert_int_equal(ra_count(a), 1);
}

/* The agent keeps a fault that only a reset ends until the operator has acknowledged the reset. */
static void the_agent_learns_of_the_reset(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	ra_all(a, RA_KEEPS, RA_MENDS);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 20 * HF_MINUTE);
	assert_int_equal(a->acts, 1);
	assert_string_equal(ra_phase(a, 3), "Succeeded");
	assert_non_null(strstr(
		hf_str_or(hf_json_path_str(rw_get(w, &hf_devicehealths, NULL, "n003"), "metadata",
					   "annotations", "holdfast.dev/cleared", NULL),
			  ""),
		"GPU-n003 20"));
	assert_non_null(strstr(
		hf_str_or(hf_json_path_str(rw_get(w, &hf_devicehealths, NULL, "n003"), "metadata",
					   "annotations", "holdfast.dev/mended", NULL),
			  ""),
		" n003-1"));
	assert_false(rw_tainted(w, 3));
}

static const char *maintenance_of(struct rw *w, const char *node)
{
	const struct hf_json *list =
		hf_json_path(rw_get(w, &hf_nodes, NULL, node), "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "type", NULL),
			     "holdfast.dev/MaintenanceInProgress"))
			return hf_json_path_str(hf_json_item(list, i), "status", NULL);
	return "none";
}

static void other_tools_are_told_of_an_act(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);
	bool told = false;

	rw_say(w, 3, RW_RESET);
	for (int i = 0; i < 100; i++) {
		rw_run(w, HF_SECOND / 5);
		told |= hf_streq(maintenance_of(w, "n003"), "True");
	}
	assert_true(told);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Succeeded");
	assert_string_equal(maintenance_of(w, "n003"), "False");
	assert_string_equal(maintenance_of(w, "n004"), "none");
}

static void a_reboot_mends_the_node(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	rw_say(w, 3, RW_REBOOT);
	rw_run(w, 30 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Succeeded");
	rw_expect_message(a->w, "n003-1", "rebooted into boot b-n003-1");
	assert_false(rw_tainted(w, 3));
	assert_int_equal(a->acts, 1);
	assert_int_equal(a->resets, 0);
}

static void put_operator(struct rw *w, const char *ns, const char *name)
{
	char text[1024];

	snprintf(
		text, sizeof(text),
		"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'%s','labels':"
		"{'app.kubernetes.io/name':'holdfast','app.kubernetes.io/component':'operator'},"
		"'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'o','uid':'u',"
		"'controller':true}]},'spec':{'nodeName':'n003','containers':[{'name':'c','image':"
		"'i'}]},'status':{'phase':'Running'}}",
		name, ns);
	rw_create(w, &hf_pods, ns, text);
}

/* In a cluster of one node an evicted operator would never start again, and nothing would take the taint off. A pod of
 * another namespace with the same labels is no operator. */
static void the_operator_stays_on_a_node_that_it_reboots(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	rw_create(w, &hf_namespaces, NULL,
		  "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'holdfast-system'}}");
	put_operator(w, "holdfast-system", "holdfast-operator-1");
	put_operator(w, "default", "copy");
	rw_say(w, 3, RW_REBOOT);
	rw_run(w, 2 * HF_MINUTE);
	assert_false(rw_is_evicted(w, "holdfast-system", "holdfast-operator-1"));
	assert_true(rw_is_evicted(w, "default", "copy"));
	assert_string_equal(ra_phase(a, 3), "Draining");
	(void)rw_remove(w, &hf_pods, "default", "copy", 0);
	rw_run(w, 20 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Succeeded");
	assert_false(rw_is_evicted(w, "holdfast-system", "holdfast-operator-1"));
}

static void without_the_section_mend_nothing_is_done(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'remediate'," WIDE "}");

	rw_say(w, 3, RW_RESET);
	rw_run(w, HF_HOUR);
	assert_int_equal(ra_count(a), 0);
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mode':'quarantine','mend':{}}}");
	rw_run(w, HF_HOUR);
	assert_int_equal(ra_count(a), 0);
}

/* ---- the ladder ------------------------------------------------------------------------------- */

static void a_failed_reset_climbs_to_a_reboot_and_then_to_a_person(void **state)
{
	static const enum ra_end ends[] = {RA_FAILS, RA_LIES,    RA_NEVER,   RA_DIES,
					   RA_BUSY,  RA_REFUSES, RA_NO_START};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(ends); i++) {
		struct rw *w;
		struct ra *a;

		rw_setup((void **)&w);
		a = ra_begin(w, 10, MEND);
		ra_all(a, ends[i], RA_LIES);
		rw_say(w, 3, RW_RESET);
		for (int k = 0; k < 40 && a->failed == 0; k++)
			rw_run(w, HF_MINUTE);
		if (a->failed != 1)
			fail_msg("%zu: %s: %s", i, ra_phase(a, 3), rw_message(a->w, "n003-1"));
		rw_run(w, 3 * HF_HOUR);
		assert_true(a->resets <= 1);
		assert_int_equal(a->failed, 2);
		assert_int_equal(w->boots[3], 1);
		assert_int_equal(a->persons, 1);
		assert_string_equal(ra_phase(a, 3), "Pending");
		rw_expect_message(a->w, "n003-3", "a person has to repair the node");
		assert_true(rw_tainted(w, 3));
		/* Nothing more is done. */
		rw_run(w, 6 * HF_HOUR);
		assert_int_equal(ra_count(a), 3);
		/* The person has repaired it. */
		rw_say(w, 3, RW_WELL);
		rw_run(w, 20 * HF_MINUTE);
		assert_string_equal(ra_phase(a, 3), "Succeeded");
		assert_false(rw_tainted(w, 3));
		rw_teardown((void **)&w);
	}
}

/* The API server writes the creation of an object in whole seconds, and a mark has microseconds. */
static void an_act_counts_in_the_second_of_its_quarantine(void **state)
{
	(void)state;
	for (int part = 0; part < 10; part++) {
		struct rw *w;
		struct ra *a;

		rw_setup((void **)&w);
		a = ra_begin(w, 10, MEND);
		ra_all(a, RA_FAILS, RA_MENDS);
		rw_run(w, part * HF_SECOND / 10);
		rw_say(w, 3, RW_RESET);
		rw_run(w, 10 * HF_MINUTE);
		assert_string_equal(rw_rung(w, "n003-2"), "reboot");
		rw_teardown((void **)&w);
	}
}

static void a_reboot_that_never_ends_is_a_matter_for_a_person(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	ra_all(a, RA_MENDS, RA_NEVER);
	rw_say(w, 3, RW_REBOOT);
	rw_run(w, 40 * HF_MINUTE);
	rw_expect_message(a->w, "n003-1", "no proof within 1800 s");
	assert_string_equal(rw_rung(w, "n003-2"), "person");
	assert_string_equal(ra_phase(a, 3), "Pending");
	assert_true(rw_tainted(w, 3));
	assert_int_equal(a->acts, 1);
	/* Others are mended meanwhile. */
	rw_say(w, 5, RW_RESET);
	rw_run(w, 20 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 5), "Succeeded");
}

/* ---- what holds an act back ------------------------------------------------------------------- */

static void a_hold_on_the_node_stops_everything_there(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	rw_patch(w, &hf_nodes, "n003", "{'metadata':{'annotations':{'holdfast.dev/hold':''}}}");
	rw_say(w, 3, RW_RESET);
	rw_run(w, HF_HOUR);
	assert_int_equal(ra_count(a), 0);
	ra_request(a, 3, 1, "reset-device", "");
	rw_run(w, HF_HOUR);
	assert_int_equal(a->acts, 0);
	rw_expect_message(a->w, "n003-1", "holdfast.dev/hold");
	rw_patch(w, &hf_nodes, "n003", "{'metadata':{'annotations':{'holdfast.dev/hold':null}}}");
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(a->acts, 1);
}

static void a_hold_withdraws_an_approval(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	ra_all(a, RA_NO_START, RA_NO_START);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 20 * HF_SECOND);
	assert_string_equal(ra_phase(a, 3), "Approved");
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mend':{'hold':true}}}");
	rw_run(w, 30 * HF_SECOND);
	assert_string_equal(ra_phase(a, 3), "Draining");
	assert_null(hf_json_path(remediation(a, "n003-1"), "status", "approval", NULL));
	ra_all(a, RA_MENDS, RA_MENDS);
	rw_run(w, HF_HOUR);
	assert_int_equal(a->acts, 0);
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mend':{'hold':null}}}");
	rw_run(w, 10 * HF_MINUTE);
	assert_true(ra_count_final(a) >= 1);
}

/* RW_START is a Tuesday, 22:13 UTC. */
static void an_act_waits_for_its_window(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(
		w, 10,
		"{'mode':'remediate','mend':{'windows':[{'days':['Wednesday'],'start':'01:00',"
		"'end':'02:00'}]}," WIDE "}");

	rw_say(w, 3, RW_RESET);
	rw_run(w, 2 * HF_HOUR);
	assert_int_equal(a->acts, 0);
	rw_expect_message(a->w, "n003-1",
			  "no window of the policy is open before 2023-11-15T01:00:00Z");
	rw_run(w, HF_HOUR);
	assert_int_equal(a->acts, 1);
	assert_string_equal(ra_phase(a, 3), "Succeeded");
}

/* Another tool says by a condition of the Node that it is at work there. */
static void an_act_waits_for_the_maintenance_of_others(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	rw_patch_status(w, &hf_nodes, "n003",
			"{'status':{'conditions':[{'type':'Ready','status':'True'},"
			"{'type':'MaintenanceInProgress','status':'True'}]}}");
	rw_say(w, 3, RW_RESET);
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(a->acts, 0);
	rw_expect_message(
		a->w, "n003-1",
		"the tool that set condition MaintenanceInProgress is at work on the node");
	rw_patch_status(w, &hf_nodes, "n003",
			"{'status':{'conditions':[{'type':'Ready','status':'True'},"
			"{'type':'MaintenanceInProgress','status':'False'}]}}");
	rw_run(w, HF_MINUTE);
	assert_int_equal(a->acts, 1);
}

static void an_act_on_a_node_that_is_well_ends_without_an_act(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	ra_all(a, RA_NO_START, RA_NO_START);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 20 * HF_SECOND);
	assert_string_equal(ra_phase(a, 3), "Approved");
	rw_say(w, 3, RW_WELL);
	rw_run(w, HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Cancelled");
	rw_expect_message(a->w, "n003-1", "the devices are well");
	assert_int_equal(a->acts, 0);
	assert_false(ra_has_lease(a, 3));
}

static void a_cancelled_act_is_not_made_again(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	ra_all(a, RA_NO_START, RA_NO_START);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 20 * HF_SECOND);
	rw_patch(w, &hf_remediations, "n003-1", "{'spec':{'cancel':true}}");
	rw_run(w, HF_HOUR);
	assert_string_equal(ra_phase(a, 3), "Cancelled");
	assert_int_equal(ra_count(a), 1);
	/* Another quarantine is another matter. */
	rw_say(w, 3, RW_WELL);
	rw_run(w, 15 * HF_MINUTE);
	assert_false(rw_tainted(w, 3));
	ra_all(a, RA_MENDS, RA_MENDS);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 15 * HF_MINUTE);
	assert_int_equal(a->acts, 1);
}

/* Two operators act as leaders at the same time. */
static void two_leaders_act_once(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 20, MEND);

	rw_change_leaders(w);
	for (int i = 0; i < 6; i++)
		rw_say(w, 3 * i, i % 2 == 0 ? RW_RESET : RW_REBOOT);
	rw_run(w, 3 * HF_HOUR);
	assert_int_equal(a->acts, 6);
	for (int i = 0; i < 6; i++)
		assert_false(rw_tainted(w, 3 * i));
}

static bool count_read(const struct rw *w, const struct hf_request *request,
		       struct hf_fault *ret_fault)
{
	(void)ret_fault;
	*w->reads += request->verb == HF_VERB_GET || request->verb == HF_VERB_LIST;
	return false;
}

/* Each act reads the node, and neither act wakes the other. */
static void two_waiting_acts_on_a_node_do_not_wake_each_other(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);
	unsigned reads = 0;

	ra_request(a, 3, 1, "external", "");
	ra_request(a, 3, 2, "external", "");
	rw_run(w, HF_MINUTE);
	w->reads = &reads;
	w->fault = count_read;
	rw_run(w, 10 * HF_MINUTE);
	assert_in_range(reads, 100, 1000);
}

/* With one act at once, a node on which nothing may begin takes no place of the others. */
static void a_node_that_waits_keeps_no_other_waiting(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct rw *w;
		struct ra *a;

		rw_setup((void **)&w);
		a = ra_begin(w, 10, MEND);
		ra_all(a, RA_NO_START, RA_NO_START);
		if (how == 0)
			ra_request(a, 3, 1, "external", ",'policy':'p'");
		if (how == 1)
			rw_patch(w, &hf_nodes, "n003",
				 "{'metadata':{'annotations':{'holdfast.dev/hold':'yes'}}}");
		rw_say(w, 3, RW_RESET);
		rw_run(w, 20 * HF_SECOND);
		if (how == 2)
			rw_patch(w, &hf_remediations, "n003-1", "{'spec':{'cancel':true}}");
		rw_run(w, HF_MINUTE);
		ra_all(a, RA_MENDS, RA_MENDS);
		rw_say(w, 5, RW_RESET);
		rw_run(w, 20 * HF_MINUTE);
		if (!hf_streq(ra_phase(a, 5), "Succeeded"))
			fail_msg("%d: n005 is '%s'", how, ra_phase(a, 5));
		assert_int_equal(a->acts, 1);
		rw_teardown((void **)&w);
	}
}

/* ---- draining --------------------------------------------------------------------------------- */

static bool pod_is_there(struct rw *w, const char *name)
{
	return rw_get(w, &hf_pods, "default", name) != NULL;
}

static void pods_leave_before_the_act(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_create(w);

	rw_fleet(w, 10);
	rw_pod(w, "serve", 3, "ReplicaSet");
	w->refuse_evictions = true;
	rw_say(w, 3, RW_WELL);
	rw_policy(w, MEND);
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	rw_say(w, 3, RW_RESET);
	rw_run(w, 3 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Draining");
	rw_expect_message(a->w, "n003-1",
			  "1 pod still uses the devices: default/serve: Cannot evict");
	expect_condition(a, "n003-1", "JobsMoved", "1 pod still uses the devices");
	assert_true(pod_is_there(w, "serve"));
	assert_int_equal(a->acts, 0);
	w->refuse_evictions = false;
	for (int i = 0; i < 10 && w->holder[3] != NULL; i++) {
		rw_run(w, HF_MINUTE);
		const struct hf_json *pod = rw_get(w, &hf_pods, "default", "serve");

		if (pod != NULL && hf_json_path(pod, "metadata", "deletionTimestamp", NULL) == NULL)
			continue;
		if (pod != NULL)
			(void)rw_remove(w, &hf_pods, "default", "serve", 0);
		w->holder[3] = NULL;
	}
	assert_null(w->holder[3]);
	rw_run(w, 15 * HF_MINUTE);
	assert_int_equal(a->acts, 1);
}

static const char *label_of(struct rw *w, const char *key)
{
	return hf_str_or(hf_json_path_str(rw_get(w, &hf_nodes, NULL, "n003"), "metadata", "labels",
					  key, NULL),
			 "");
}

static struct ra *begin_with_operands(struct rw *w)
{
	struct ra *a = ra_begin(w, 10, MEND);

	ra_all(a, RA_NO_START, RA_NO_START);
	rw_patch(w, &hf_nodes, "n003",
		 "{'metadata':{'labels':{'nvidia.com/gpu.deploy.device-plugin':'true',"
		 "'nvidia.com/gpu.deploy.dcgm':'false','nvidia.com/gpu.deploy.driver':'true'}}}");
	return a;
}

/* The operands are off, and a person deletes the Remediation in the middle of the act. */
static void delete_act(struct rw *w, struct ra *a)
{
	rw_run(w, 30 * HF_SECOND);
	assert_string_equal(ra_phase(a, 3), "Approved");
	assert_string_equal(label_of(w, "nvidia.com/gpu.deploy.device-plugin"), "false");
	assert_string_equal(label_of(w, "nvidia.com/gpu.deploy.driver"), "true");
	/* spec.mend.hold keeps the policy from creating a second one. */
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mend':{'hold':true}}}");
	rw_delete(w, &hf_remediations, "n003-1");
	rw_run(w, HF_MINUTE);
	assert_string_equal(label_of(w, "nvidia.com/gpu.deploy.device-plugin"), "true");
	assert_string_equal(label_of(w, "nvidia.com/gpu.deploy.dcgm"), "false");
	assert_null(remediation(a, "n003-1"));
}

static void operands_are_turned_off_and_on_again(void **state)
{
	struct rw *w = *state;
	struct ra *a = begin_with_operands(w);

	rw_say(w, 3, RW_RESET);
	delete_act(w, a);
}

/* A person creates a Remediation without the finalizer. */
static void operands_of_a_persons_act_are_turned_on_again(void **state)
{
	struct rw *w = *state;
	struct ra *a = begin_with_operands(w);

	w->people_ask = true;
	ra_request(a, 3, 1, "reset-device", "");
	delete_act(w, a);
}

/* ---- people ----------------------------------------------------------------------------------- */

static void a_person_resets_a_node_without_a_fault(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'observe'}");

	w->people_ask = true;
	ra_request(a, 3, 1, "reset-device", "");
	rw_run(w, 20 * HF_SECOND);
	assert_true(rw_tainted(w, 3) || a->acts == 1);
	rw_run(w, 15 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Succeeded");
	assert_int_equal(a->acts, 1);
	assert_false(rw_tainted(w, 3));
	assert_null(hf_json_path(rw_get(w, &hf_nodes, NULL, "n003"), "metadata", "annotations",
				 "holdfast.dev/quarantine", NULL));
}

/* A person orders a reset, and the actor turns the persistence mode of the GPU off. end: how the act ends. */
static void reset_without_persistence(struct ra *a, int node, enum ra_end end)
{
	char act[16], text[128];
	unsigned before = a->acts;

	ra_all(a, end, end);
	ra_request(a, node, 1, "reset-device", "");
	for (int i = 0; i < 100 && a->acts == before; i++)
		rw_run(a->w, HF_SECOND / 10);
	snprintf(act, sizeof(act), "n%03d-1", node);
	snprintf(text, sizeof(text), "{'status':{'saved':{'persistenceMode':{'GPU-n%03d':'on'}}}}",
		 node);
	rw_patch_status(a->w, &hf_remediations, act, text);
	rw_run(a->w, 15 * HF_MINUTE);
	assert_string_equal(ra_phase(a, node), "Succeeded");
}

/* The actor has turned the persistence mode off, and is killed before it turns it on again. No second actor may act. */
static void a_lost_actor_leaves_word_of_the_persistence_mode(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'observe'}");

	w->people_ask = true;
	reset_without_persistence(a, 3, RA_DIES);
	rw_expect_message(
		w, "n003-1",
		"; the actor did not end: turn the persistence mode of GPU-n003 on again");
	/* An actor that has written its end has put the mode back. */
	reset_without_persistence(a, 4, RA_MENDS);
	assert_null(strstr(rw_message(w, "n004-1"), "persistence"));
}

static void a_dry_run_says_what_it_would_do(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'observe'}");

	ra_request(a, 3, 1, "reboot", ",'dryRun':true");
	rw_run(w, HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Succeeded");
	rw_expect_message(a->w, "n003-1", "dry run: the act would begin now");
	assert_false(rw_event(w, "Mended", "n003"));
	assert_int_equal(a->acts, 0);
	assert_false(rw_tainted(w, 3));
}

/* Each try starts an actor on the node, so the pauses between tries grow. */
static void a_process_that_keeps_the_device_costs_few_actors(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'observe'}");
	unsigned long long writes;

	ra_all(a, RA_BUSY, RA_MENDS);
	rw_say(w, 3, RW_RESET);
	ra_request(a, 3, 1, "reset-device", "");
	rw_run(w, HF_MINUTE);
	rw_expect_message(a->w, "n003-1", "1 process kept the devices open: dcgm (pid 42)");
	writes = w->writes;
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Failed");
	/* One approval is six writes. */
	assert_true(w->writes - writes < 150);
}

/* ---- requests that arrive late ---------------------------------------------------------------------- */

/* A reset of node 3 by a person is at its end, as Remediation n003-1. */
static struct ra *end_reset(struct rw *w)
{
	struct ra *a = ra_begin(w, 10, "{'mode':'observe'}");

	rw_say(w, 3, RW_RESET);
	ra_request(a, 3, 1, "reset-device", "");
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Succeeded");
	assert_false(ra_has_lease(a, 3));
	return a;
}

/* A former leader has asked for this Lease, and the API server performs the request after the end of the act. */
static void a_lease_that_comes_after_the_end_keeps_no_act_waiting(void **state)
{
	struct rw *w = *state;
	struct ra *a = end_reset(w);
	char text[512];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'coordination.k8s.io/v1','kind':'Lease','metadata':{'name':"
		 "'holdfast-mend-n003','namespace':'" HF_MEND_NAMESPACE
		 "','ownerReferences':[{'apiVersion':'holdfast.dev/v1alpha1','kind':'Remediation',"
		 "'name':'n003-1','uid':'%s'}]},'spec':{'holderIdentity':'n003-1'}}",
		 hf_json_path_str(remediation(a, "n003-1"), "metadata", "uid", NULL));
	rw_create(w, &hf_leases, HF_MEND_NAMESPACE, text);
	rw_say(w, 3, RW_RESET);
	ra_request(a, 3, 2, "reset-device", "");
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Succeeded");
	assert_int_equal(a->resets, 2);
	assert_false(ra_has_lease(a, 3));
}

/* The same of the actor's pod: it would be left until its Remediation is deleted. */
static void an_actor_that_comes_after_the_end_is_removed(void **state)
{
	struct rw *w = *state;
	struct ra *a = end_reset(w);

	assert_null(rw_get(w, &hf_pods, HF_MEND_NAMESPACE, "mend-n003-1"));
	rw_create(w, &hf_pods, HF_MEND_NAMESPACE,
		  "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'mend-n003-1','namespace':"
		  "'" HF_MEND_NAMESPACE
		  "'},'spec':{'nodeName':'n003','containers':[{'name':'actor',"
		  "'image':'i'}]}}");
	rw_run(w, HF_MINUTE);
	assert_null(rw_get(w, &hf_pods, HF_MEND_NAMESPACE, "mend-n003-1"));
	assert_int_equal(a->acts, 1);
}

/* ---- acts without an actor -------------------------------------------------------------------------- */

/* The pod of a device plugin on the node, as a DaemonSet has it. */
static void put_plugin(struct rw *w)
{
	rw_pod(w, "device-plugin", 3, "DaemonSet");
	w->holder[3] = NULL;
}

static void a_plugin_restarts_by_an_eviction(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'observe'}");

	ra_request(a, 3, 1, "restart-plugin", "");
	rw_run(w, HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Pending");
	rw_expect_message(a->w, "n003-1",
			  "no pod of a GPU device plugin's DaemonSet runs on the node");
	rw_say(w, 3, RW_RESET);
	put_plugin(w);
	rw_run(w, HF_MINUTE);
	assert_true(rw_is_evicted(w, "default", "device-plugin"));
	assert_string_equal(ra_phase(a, 3), "Verifying");
	assert_int_equal(hf_json_i64(hf_json_path(remediation(a, "n003-1"), "status", "act",
						  "exitCode", NULL),
				     -1),
			 0);
	rw_say(w, 3, RW_WELL);
	rw_run(w, 2 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Succeeded");
	assert_false(rw_tainted(w, 3));
	assert_false(ra_has_lease(a, 3));
	assert_int_equal(a->acts, 0);
}

static void a_refused_act_fails_with_the_reason(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'observe'}");

	put_plugin(w);
	w->refuse_evictions = true;
	ra_request(a, 3, 1, "restart-plugin", "");
	rw_run(w, HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Failed");
	rw_expect_message(a->w, "n003-1", "the act failed with exit code 1: ");
	assert_false(rw_is_evicted(w, "default", "device-plugin"));
}

/* The plugin's pod is evicted at most once for one object, whenever the operator dies. */
static void an_act_without_an_actor_is_done_at_most_once(void **state)
{
	unsigned acts = 0, deaths = 0;

	(void)state;
	for (int how = RW_BEFORE; how <= RW_AFTER; how++) {
		for (unsigned at = 1; at < 14; at++) {
			struct rw *w;
			struct ra *a;

			rw_setup((void **)&w);
			a = ra_begin(w, 6, "{'mode':'observe'}");
			put_plugin(w);
			w->how = (enum rw_death)how;
			w->die_at = w->writes + at;
			ra_request(a, 3, 1, "restart-plugin", "");
			for (int k = 0; k < 12; k++) {
				rw_say_again(w);
				rw_run(w, 30 * HF_SECOND);
				if (w->op == NULL)
					rw_start(w);
				/* The next pod of the DaemonSet must not be evicted too. */
				if (rw_is_evicted(w, "default", "device-plugin") &&
				    rw_get(w, &hf_pods, "default", "device-plugin-2") == NULL) {
					rw_pod(w, "device-plugin-2", 3, "DaemonSet");
					w->holder[3] = NULL;
					acts++;
				}
			}
			if (rw_get(w, &hf_pods, "default", "device-plugin-2") != NULL)
				assert_false(rw_is_evicted(w, "default", "device-plugin-2"));
			assert_string_equal(ra_phase(a, 3), "Succeeded");
			assert_false(ra_has_lease(a, 3));
			deaths += w->met.deaths;
			rw_teardown((void **)&w);
		}
	}
	assert_true(acts >= 20 && deaths > 10);
}

static void what_an_act_needs_and_is_not_there_is_named(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, EXTERNAL);

	ra_request(a, 3, 1, "external", "");
	rw_run(w, HF_MINUTE);
	rw_expect_message(a->w, "n003-1", "the act names no policy with spec.mend.external");
	ra_request(a, 4, 1, "external", ",'policy':'p'");
	rw_run(w, HF_MINUTE);
	rw_expect_message(a->w, "n004-1", "FixTemplate t does not exist (fix.example/v1)");
	ra_request(a, 5, 1, "restart-process", "");
	rw_run(w, HF_MINUTE);
	rw_expect_message(a->w, "n005-1", "no rank of a job holds the devices");
	/* No act begins, and no act delays another one. */
	for (int i = 3; i <= 5; i++)
		assert_string_equal(ra_phase(a, i), "Pending");
}

/* What no rung mends goes to the external controller first, and then to a person. */
static void the_external_controller_comes_before_a_person(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, EXTERNAL);

	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_MINUTE);
	assert_string_equal(rw_rung(w, "n003-1"), "external");
	assert_int_equal(a->persons, 0);
	rw_patch(w, &hf_remediations, "n003-1", "{'spec':{'cancel':true}}");
	rw_run(w, 5 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 3), "Cancelled");
	assert_int_equal(a->persons, 0);
}

/* The newest Remediations of each node stay, and so does each one that is less than a week old. */
static void old_acts_are_deleted(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'observe'}");

	for (int i = 1; i <= 12; i++)
		ra_request(a, 3, i, "reboot", ",'dryRun':true");
	ra_request(a, 4, 1, "reboot", ",'dryRun':true");
	rw_run(w, HF_HOUR);
	assert_int_equal(ra_count(a), 13);
	hf_timer_disarm(a->timer);
	rw_run(w, 7 * HF_DAY);
	assert_int_equal(ra_count(a), 13);
	rw_run(w, 2 * HF_DAY);
	assert_int_equal(ra_count(a), 8 + 1);
	assert_null(remediation(a, "n003-4"));
	assert_non_null(remediation(a, "n003-5"));
}

/* ---- storms and deaths ------------------------------------------------------------------------ */

static void a_thousand_nodes_are_mended_within_the_budget(void **state)
{
	struct rw *w = *state;
	struct ra *a =
		ra_begin(w, 1000, "{'mode':'remediate','mend':{'maxConcurrent':4}," WIDE "}");
	int well = 0;

	a->at_once = 4;
	for (int i = 0; i < 24; i++) {
		a->reset[i * 20] = (enum ra_end)(i % RA_ENDS);
		a->reboot[i * 20] = i % 3 == 0 ? RA_NEVER : RA_MENDS;
		rw_say(w, i * 20, i % 2 == 0 ? RW_RESET : RW_REBOOT);
	}
	for (int k = 0; k < 6; k++) {
		rw_run(w, 30 * HF_MINUTE);
		if (k == 1 || k == 3) {
			rw_stop(w);
			rw_run(w, 10 * HF_SECOND);
			rw_start(w);
		}
	}
	assert_true(a->acts >= 18);
	assert_true(a->failed >= 5);
	for (int i = 0; i < 24; i++)
		well += w->ill[i * 20] == RW_WELL;
	assert_true(well >= 12);
	assert_true(a->mended >= 12);
}

/* Seven of ten nodes fail within a second. The breaker counts all of them before the first act. */
static void no_act_begins_before_the_breaker_has_counted(void **state)
{
	(void)state;
	for (int gap = 0; gap <= 160; gap += 20) {
		struct rw *w;
		struct ra *a;

		rw_setup((void **)&w);
		a = ra_begin(
			w, 10,
			"{'mode':'remediate','mend':{},'budget':{'maxUnavailable':{'percent':50},"
			"'maxQuarantines':{'count':60}}}");
		for (int i = 0; i < 7; i++) {
			rw_say(w, i, RW_RESET);
			rw_run(w, gap * HF_MS);
		}
		rw_run(w, HF_HOUR);
		assert_string_equal(rw_status(w, "breaker", "state"), "Open");
		assert_int_equal(rw_count_tainted(w), 0);
		assert_int_equal(a->acts, 0);
		rw_teardown((void **)&w);
	}
}

/* The operator dies at each of its writes, before and after the write is done. At the end one act
 * has mended the node. */
static void the_operator_may_die_at_each_write(void **state)
{
	unsigned deaths = 0;

	(void)state;
	for (int how = RW_BEFORE; how <= RW_AFTER; how++) {
		for (unsigned at = 1; at < 30; at++) {
			struct rw *w;
			struct ra *a;

			rw_setup((void **)&w);
			a = ra_begin(w, 6, MEND);
			rw_patch(w, &hf_nodes, "n003",
				 "{'metadata':{'labels':{'nvidia.com/gpu.deploy.dcgm':'true'}}}");
			w->how = (enum rw_death)how;
			w->die_at = w->writes + at;
			rw_say(w, 3, RW_RESET);
			for (int k = 0; k < 12; k++) {
				rw_run(w, 30 * HF_SECOND);
				if (w->op == NULL)
					rw_start(w);
			}
			rw_run(w, 12 * HF_MINUTE);
			assert_string_equal(ra_phase(a, 3), "Succeeded");
			assert_int_equal(a->acts, 1);
			assert_int_equal(ra_count(a), 1);
			assert_false(rw_tainted(w, 3));
			assert_false(ra_has_lease(a, 3));
			assert_string_equal(label_of(w, "nvidia.com/gpu.deploy.dcgm"), "true");
			deaths += w->met.deaths;
			rw_teardown((void **)&w);
		}
	}
	assert_true(deaths > 30);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rw_setup, rw_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(a_reset_mends_the_node),
		T(the_agent_learns_of_the_reset),
		T(other_tools_are_told_of_an_act),
		T(a_reboot_mends_the_node),
		T(the_operator_stays_on_a_node_that_it_reboots),
		T(without_the_section_mend_nothing_is_done),
		cmocka_unit_test(a_failed_reset_climbs_to_a_reboot_and_then_to_a_person),
		cmocka_unit_test(an_act_counts_in_the_second_of_its_quarantine),
		T(a_reboot_that_never_ends_is_a_matter_for_a_person),
		T(a_hold_on_the_node_stops_everything_there),
		T(a_hold_withdraws_an_approval),
		T(an_act_waits_for_its_window),
		T(an_act_waits_for_the_maintenance_of_others),
		T(an_act_on_a_node_that_is_well_ends_without_an_act),
		T(a_cancelled_act_is_not_made_again),
		T(two_leaders_act_once),
		T(two_waiting_acts_on_a_node_do_not_wake_each_other),
		cmocka_unit_test(a_node_that_waits_keeps_no_other_waiting),
		T(pods_leave_before_the_act),
		T(operands_are_turned_off_and_on_again),
		T(operands_of_a_persons_act_are_turned_on_again),
		T(a_person_resets_a_node_without_a_fault),
		T(a_lost_actor_leaves_word_of_the_persistence_mode),
		T(a_dry_run_says_what_it_would_do),
		T(a_process_that_keeps_the_device_costs_few_actors),
		T(a_lease_that_comes_after_the_end_keeps_no_act_waiting),
		T(an_actor_that_comes_after_the_end_is_removed),
		T(a_plugin_restarts_by_an_eviction),
		T(a_refused_act_fails_with_the_reason),
		cmocka_unit_test(an_act_without_an_actor_is_done_at_most_once),
		T(what_an_act_needs_and_is_not_there_is_named),
		T(the_external_controller_comes_before_a_person),
		T(old_acts_are_deleted),
		T(a_thousand_nodes_are_mended_within_the_budget),
		cmocka_unit_test(no_act_begins_before_the_breaker_has_counted),
		cmocka_unit_test(the_operator_may_die_at_each_write),
	};

	rw_choose_tests(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
