/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_actor.h"

#include "api/remediation.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * A person or a machine changes an object in the middle of an act, in each phase of the act; and attempts to have an act
 * done on a node that is well. The operator lives through all of it. The invariants of remedy_actor.c hold at each write:
 * no act on a well node, at most one act for each Remediation. At the end nothing is left of the acts: no Lease, no
 * finalizer, no changed label, no taint, no condition.
 */

#define NODE 1
#define NAME "n001"
#define ACT NAME "-1"
#define LEASE "holdfast-mend-" NAME
#define LABEL "nvidia.com/gpu.deploy.dcgm"
#define MEND "{'mode':'remediate','mend':{'deadlineSeconds':600}," WIDE "}"
#define READY "{'type':'Ready','status':'True'}"
#define STEP (200 * HF_MS)
/* The proof waits for the next heartbeat of the agent, which comes within five minutes. */
#define WAITS 2000

struct middle {
	struct rw *w;
	struct ra *a;
	bool node_is_new;  /* the Node was made again, without the label */
	bool lease_stolen; /* another program holds the Lease */
};

static const struct hf_json *get_act(struct rw *w)
{
	return rw_get(w, &hf_remediations, NULL, ACT);
}

static const char *phase_of_act(struct rw *w)
{
	return hf_str_or(hf_json_path_str(get_act(w), "status", "phase", NULL), "");
}

static void create_named(struct rw *w, const struct hf_resource *resource, const char *kind)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'%s','metadata':{'name':'%s'}}",
		 kind, NAME);
	rw_create(w, resource, NULL, text);
}

/* ---- phases ----------------------------------------------------------------------------------------------- */

static void wait_for_other_tool(struct middle *m)
{
	rw_patch_status(m->w, &hf_nodes, NAME,
			"{'status':{'conditions':[" READY
			",{'type':'MaintenanceInProgress','status':'True'}]}}");
}

static void end_other_tool(struct middle *m)
{
	if (rw_get(m->w, &hf_nodes, NULL, NAME) != NULL)
		rw_patch_status(m->w, &hf_nodes, NAME, "{'status':{'conditions':[" READY "]}}");
}

static void keep_pod(struct middle *m)
{
	rw_pod(m->w, "serve", NODE, "ReplicaSet");
	m->w->refuse_evictions = true;
}

static void end_pod(struct middle *m)
{
	m->w->refuse_evictions = false;
	(void)rw_remove(m->w, &hf_pods, "default", "serve", 0);
	m->w->holder[NODE] = NULL;
	rw_say_again(m->w);
}

static void delay_start(struct middle *m)
{
	ra_all(m->a, RA_NO_START, RA_NO_START);
}

static void delay_end(struct middle *m)
{
	ra_all(m->a, RA_NEVER, RA_NEVER);
}

static void end_act(struct middle *m)
{
	if (m->a->ends_at[NODE] == 0)
		return;
	m->a->end[NODE] = RA_MENDS;
	m->a->ends_at[NODE] = hf_loop_mono(m->w->loop);
}

/* The agent reports a proof only with its next heartbeat. */
static void delay_proof(struct middle *m)
{
	ra_all(m->a, RA_KEEPS, RA_MENDS);
}

static void do_nothing(struct middle *m)
{
	(void)m;
}

static void hold_node(struct middle *m)
{
	rw_patch(m->w, &hf_nodes, NAME, "{'metadata':{'annotations':{'holdfast.dev/hold':'yes'}}}");
}

static void end_hold(struct middle *m)
{
	if (rw_get(m->w, &hf_nodes, NULL, NAME) != NULL)
		rw_patch(m->w, &hf_nodes, NAME,
			 "{'metadata':{'annotations':{'holdfast.dev/hold':null}}}");
}

static const struct stage {
	const char *phase;
	void (*prepare)(struct middle *m); /* keeps the act in the phase */
	void (*relieve)(struct middle *m); /* lets the act go on */
} stages[] = {
	{"Pending", wait_for_other_tool, end_other_tool},
	{"Draining", keep_pod, end_pod},
	{"Approved", delay_start, do_nothing},
	{"Acting", delay_end, end_act},
	{"Verifying", delay_proof, do_nothing},
	/* A hold on the node keeps the labels from being put back. */
	{"Restoring", do_nothing, end_hold},
};

static void begin(struct middle *m, const struct stage *stage)
{
	rw_setup((void **)&m->w);
	m->a = ra_create(m->w);
	m->a->at_once = 1;
	m->w->by_hand = true;
	rw_begin(m->w, 3, MEND);
	rw_patch(m->w, &hf_nodes, NAME, "{'metadata':{'labels':{'" LABEL "':'true'}}}");
	stage->prepare(m);
	rw_say(m->w, NODE, RW_RESET);
	for (int i = 0; i < WAITS && !hf_streq(phase_of_act(m->w), stage->phase); i++) {
		rw_run(m->w, STEP);
		if (hf_streq(stage->phase, "Restoring") && hf_streq(phase_of_act(m->w), "Acting"))
			hold_node(m);
	}
	if (!hf_streq(phase_of_act(m->w), stage->phase))
		fail_msg("%s is '%s', not %s", ACT, phase_of_act(m->w), stage->phase);
}

/* ---- what happens in the middle --------------------------------------------------------------------------- */

static void delete_act(struct middle *m)
{
	rw_delete(m->w, &hf_remediations, ACT);
}

static void cancel_act(struct middle *m)
{
	rw_patch(m->w, &hf_remediations, ACT, "{'spec':{'cancel':true}}");
}

static void delete_lease(struct middle *m)
{
	(void)rw_remove(m->w, &hf_leases, HF_MEND_NAMESPACE, LEASE, 0);
}

static void steal_lease(struct middle *m)
{
	delete_lease(m);
	rw_create(m->w, &hf_leases, HF_MEND_NAMESPACE,
		  "{'apiVersion':'coordination.k8s.io/v1','kind':'Lease','metadata':{'name':'" LEASE
		  "','namespace':'" HF_MEND_NAMESPACE "'},'spec':{'holderIdentity':'other'}}");
	m->lease_stolen = true;
}

static void remove_taint(struct middle *m)
{
	rw_patch(m->w, &hf_nodes, NAME, UNTAINTED);
}

static void remove_quarantine(struct middle *m)
{
	rw_patch(m->w, &hf_nodes, NAME, UNTAINTED);
	rw_patch(m->w, &hf_nodes, NAME, UNMARKED);
}

static void make_node_again(struct middle *m)
{
	char boot[40], text[256];

	(void)rw_remove(m->w, &hf_nodes, NULL, NAME, 0);
	rw_run(m->w, 20 * HF_SECOND);
	rw_node(m->w, NODE);
	rw_boot_id(m->w, NODE, boot);
	snprintf(text, sizeof(text),
		 "{'status':{'nodeInfo':{'bootID':'%s'},'conditions':[" READY "]}}", boot);
	rw_patch_status(m->w, &hf_nodes, NAME, text);
	m->node_is_new = true;
}

/* Another machine has the name of the node. */
static void replace_machine(struct middle *m)
{
	m->w->boots[NODE]++;
	m->a->ends_at[NODE] = 0;
	m->w->silent[NODE] = false;
	make_node_again(m);
	rw_say(m->w, NODE, RW_WELL);
}

static void delete_health(struct middle *m)
{
	(void)rw_remove(m->w, &hf_devicehealths, NULL, NAME, 0);
	create_named(m->w, &hf_devicehealths, "DeviceHealth");
}

static void delete_actor(struct middle *m)
{
	(void)rw_remove(m->w, &hf_pods, HF_MEND_NAMESPACE, HF_MEND_POD_PREFIX ACT,
			HF_GRACE_DEFAULT);
}

static void delete_policy(struct middle *m)
{
	rw_delete(m->w, &hf_healthpolicies, "p");
}

static void set_node_clock_back(struct middle *m)
{
	m->w->clock[NODE] = -HF_HOUR;
	rw_say_again(m->w);
}

static void set_node_clock_forward(struct middle *m)
{
	m->w->clock[NODE] = HF_HOUR;
	rw_say_again(m->w);
}

/* The clocks of all machines. */
static void set_clocks_back(struct middle *m)
{
	hf_loop_step_wall(m->w->loop, -30 * HF_MINUTE);
}

static void set_clocks_forward(struct middle *m)
{
	hf_loop_step_wall(m->w->loop, 30 * HF_MINUTE);
}

/* From now on the agent of an older version reports. */
static void install_old_agent(struct middle *m)
{
	m->w->old_agent[NODE] = true;
	rw_say_again(m->w);
}

static void get_well(struct middle *m)
{
	/* While the tool runs, the machine decides. */
	if (m->a->ends_at[NODE] == 0)
		rw_say(m->w, NODE, RW_WELL);
}

static void start_operator_again(struct middle *m)
{
	rw_stop(m->w);
	rw_run(m->w, 30 * HF_SECOND);
	rw_start(m->w);
}

static const struct trouble {
	const char *name;
	void (*happens)(struct middle *m);
} troubles[] = {
	{"nothing happens", do_nothing},
	{"the Remediation is deleted", delete_act},
	{"the act is cancelled", cancel_act},
	{"the Lease is deleted", delete_lease},
	{"the Lease is stolen", steal_lease},
	{"the taint is removed", remove_taint},
	{"taint and mark are removed", remove_quarantine},
	{"the Node is made again", make_node_again},
	{"the machine is replaced", replace_machine},
	{"the DeviceHealth is deleted", delete_health},
	{"the actor's pod is deleted", delete_actor},
	{"the policy is deleted", delete_policy},
	{"the node's clock steps back", set_node_clock_back},
	{"the node's clock steps forward", set_node_clock_forward},
	{"all clocks step back", set_clocks_back},
	{"all clocks step forward", set_clocks_forward},
	{"an older agent is installed", install_old_agent},
	{"the device becomes well", get_well},
	{"the operator starts again", start_operator_again},
};

/* ---- the end ---------------------------------------------------------------------------------------------- */

static void calm_down(struct middle *m, const struct stage *stage)
{
	struct rw *w = m->w;

	rw_run(w, HF_MINUTE);
	ra_all(m->a, RA_MENDS, RA_MENDS);
	stage->relieve(m);
	rw_run(w, 10 * HF_MINUTE);
	if (m->lease_stolen)
		delete_lease(m);
	if (rw_get(w, &hf_healthpolicies, NULL, "p") == NULL)
		rw_policy(w, MEND);
	w->clock[NODE] = 0;
	w->old_agent[NODE] = false;
	rw_run(w, 2 * HF_HOUR);
	/* The act may have left the node to a person, who repairs it. */
	end_act(m);
	rw_run(w, HF_MINUTE);
	rw_say(w, NODE, RW_WELL);
	rw_run(w, 2 * HF_HOUR);
}

struct left {
	const char *what;
	char name[254];
};

static void look_at_act(void *arg, struct hf_doc *doc)
{
	const struct hf_json *json = hf_doc_json(doc);
	const char *phase = hf_json_path_str(json, "status", "phase", NULL);
	struct left *left = arg;

	if (!ra_is_final(phase))
		left->what = hf_str_or(phase, "without a phase");
	else if (hf_json_path(json, "metadata", "finalizers", NULL) != NULL)
		left->what = "has its finalizer";
	else
		return;
	snprintf(left->name, sizeof(left->name), "%s: %.200s", hf_doc_name(doc),
		 hf_str_or(hf_json_path_str(json, "status", "message", NULL), ""));
}

static bool is_in_maintenance(struct rw *w)
{
	const struct hf_json *list =
		hf_json_path(rw_get(w, &hf_nodes, NULL, NAME), "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "type", NULL),
			     "holdfast.dev/MaintenanceInProgress"))
			return hf_streq(hf_json_path_str(hf_json_item(list, i), "status", NULL),
					"True");
	return false;
}

static void expect_nothing_left(struct middle *m, const struct stage *stage,
				const struct trouble *trouble)
{
	struct rw *w = m->w;
	struct left left = {.what = NULL};
	const char *label = hf_json_path_str(rw_get(w, &hf_nodes, NULL, NAME), "metadata", "labels",
					     LABEL, NULL);

	hf_memstore_each(w->memstore, &hf_remediations, NULL, look_at_act, &left);
	if (left.what != NULL)
		fail_msg("%s, %s: %s: %s", stage->phase, trouble->name, left.name, left.what);
	if (ra_has_lease(m->a, NODE))
		fail_msg("%s, %s: the Lease is left", stage->phase, trouble->name);
	if (!hf_streq(label, m->node_is_new ? NULL : "true"))
		fail_msg("%s, %s: the label is %s", stage->phase, trouble->name,
			 hf_str_or(label, "gone"));
	if (rw_tainted(w, NODE))
		fail_msg("%s, %s: the taint is left", stage->phase, trouble->name);
	if (is_in_maintenance(w))
		fail_msg("%s, %s: the condition MaintenanceInProgress is left", stage->phase,
			 trouble->name);
}

static void an_act_survives_what_happens_in_its_middle(void **state)
{
	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(stages); i++) {
		for (size_t k = 0; k < HF_ARRAY_LEN(troubles); k++) {
			struct middle m = {.w = NULL};

			begin(&m, &stages[i]);
			troubles[k].happens(&m);
			calm_down(&m, &stages[i]);
			expect_nothing_left(&m, &stages[i], &troubles[k]);
			rw_teardown((void **)&m.w);
		}
	}
}

/* ---- attempts to have a well node mended ------------------------------------------------------------------ */

/* An act begins about a second after its fault. In each of these moments the device becomes well. */
static void a_node_that_becomes_well_at_any_moment_is_left_alone(void **state)
{
	unsigned acts = 0, none = 0;

	(void)state;
	for (hf_time at = 0; at < 3 * HF_SECOND / 2; at += 10 * HF_MS) {
		struct rw *w;
		struct ra *a;

		rw_setup((void **)&w);
		a = ra_create(w);
		rw_begin(w, 3, MEND);
		rw_say(w, NODE, RW_RESET);
		rw_run(w, at);
		if (a->acts == 0)
			rw_say(w, NODE, RW_WELL);
		/* Fails if an act begins now. */
		rw_run(w, 30 * HF_MINUTE);
		acts += a->acts > 0;
		none += a->acts == 0;
		assert_false(rw_tainted(w, NODE));
		assert_false(ra_has_lease(a, NODE));
		rw_teardown((void **)&w);
	}
	assert_true(acts > 0 && none > 20);
}

static void expect_left_alone(struct rw *w, struct ra *a)
{
	rw_run(w, HF_HOUR);
	assert_int_equal(a->acts, 0);
	assert_int_equal(w->met.deaths, 0);
	assert_false(ra_has_lease(a, NODE));
	assert_false(is_in_maintenance(w));
}

/* The object names a fault that the agent does not report. */
static void a_forged_fault_is_not_mended(void **state)
{
	static const char *const times[] = {"2023-11-14T22:13:00.000000Z",
					    "2038-01-01T00:00:00.000000Z"};
	static const char *const rungs[] = {"reset-device", "reboot"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(times) * HF_ARRAY_LEN(rungs); i++) {
		struct rw *w;
		struct ra *a;
		char more[256];

		rw_setup((void **)&w);
		a = ra_create(w);
		rw_begin(w, 3, MEND);
		snprintf(more, sizeof(more),
			 ",'policy':'p','fault':{'class':'gpu-reset','time':'%s'}",
			 times[i / HF_ARRAY_LEN(rungs)]);
		ra_request(a, NODE, 1, rungs[i % HF_ARRAY_LEN(rungs)], more);
		expect_left_alone(w, a);
		assert_string_equal(phase_of_act(w), "Cancelled");
		assert_false(rw_tainted(w, NODE));
		rw_teardown((void **)&w);
	}
}

/* A person has deleted the report, so nothing shows that the node is well. */
static void a_fault_that_no_report_shows_is_not_mended(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_create(w);

	w->people_ask = true;
	rw_begin(w, 3, MEND);
	w->mute[NODE] = true;
	rw_delete(w, &hf_devicehealths, NAME);
	ra_request(a, NODE, 1, "reboot",
		   ",'fault':{'class':'gpu-reset','time':'2020-01-01T00:00:00Z'}");
	rw_run(w, HF_MINUTE);
	/* The agent has begun with a new object. */
	create_named(w, &hf_devicehealths, "DeviceHealth");
	rw_run(w, HF_HOUR);
	assert_int_equal(a->acts, 0);
	rw_expect_message(w, ACT, "no report of the node's agent shows the fault");
	w->mute[NODE] = false;
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(a->acts, 0);
	assert_string_equal(phase_of_act(w), "Cancelled");
}

/* The node is well, and its clock is ahead: a new leader does not know when the last report was made. A person's act for a fault
 * that is over must wait for the next one. */
static void a_new_leader_mends_no_fault_that_is_over(void **state)
{
	static const char *const rungs[] = {"reset-device", "reboot"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rungs); i++) {
		struct rw *w;
		struct ra *a;

		rw_setup((void **)&w);
		a = ra_create(w);
		w->people_ask = true;
		rw_begin(w, 3, MEND);
		w->clock[NODE] = HF_HOUR;
		rw_report(w, NODE);
		rw_run(w, HF_SECOND);
		rw_stop(w);
		ra_request(a, NODE, 1, rungs[i],
			   ",'fault':{'class':'gpu-reset','time':'2023-11-14T22:13:00Z'}");
		rw_start(w);
		rw_run(w, HF_MINUTE);
		assert_string_equal(phase_of_act(w), "Pending");
		rw_expect_message(w, ACT, "no report of the node's agent shows the fault");
		rw_report(w, NODE);
		expect_left_alone(w, a);
		assert_string_equal(phase_of_act(w), "Cancelled");
		rw_teardown((void **)&w);
	}
}

/* A writer of the status approves the act of a well node itself. */
static void a_forged_approval_is_withdrawn(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_create(w);

	delay_start(&(struct middle){.w = w, .a = a});
	rw_begin(w, 3, MEND);
	ra_request(
		a, NODE, 1, "reset-device",
		",'policy':'p','fault':{'class':'gpu-reset','time':'2023-11-14T22:13:00.000000Z'}");
	rw_patch_status(
		w, &hf_remediations, ACT,
		"{'status':{'phase':'Approved','approval':{'time':'2023-11-14T22:13:10.000000Z',"
		"'bootID':'b-" NAME "','resourceVersionOfNode':'1'}}}");
	expect_left_alone(w, a);
	assert_string_equal(phase_of_act(w), "Cancelled");
}

/* A person puts taint and mark of a quarantine on a well node. */
static void a_forged_quarantine_is_no_fault(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_create(w);

	w->people_ask = w->by_hand = true;
	rw_begin(w, 3, MEND);
	rw_patch(
		w, &hf_nodes, NAME,
		"{'metadata':{'annotations':{'holdfast.dev/quarantine':'{\\'policy\\':\\'p\\',\\'class"
		"\\':\\'gpu-reset\\',\\'time\\':\\'2023-11-14T22:13:00Z\\'}'}},'spec':{'taints':[{'key':"
		"'nvidia.com/gpu','value':'present','effect':'NoSchedule'},{'key':"
		"'holdfast.dev/device','value':'gpu-reset','effect':'NoSchedule'}]}}");
	expect_left_alone(w, a);
	assert_int_equal(ra_count(a), 0);
}

/* Makes DeviceHealth show a fault of this time, in this boot, in a report of this time. */
static void report_old(struct rw *w, const char *observed, const char *boot)
{
	char text[1024];

	snprintf(
		text, sizeof(text),
		"{'status':{'state':'Unhealthy','class':'gpu-reset','action':'reset-device','bootID':'%s',"
		"'observedTime':'%s','evidenceTime':'%s','devices':[{'id':'0000:1a:00.0','uuid':'GPU-" NAME
		"','kind':'gpu','state':'Unhealthy','class':'gpu-reset','since':'%s','faults':[{'detector':"
		"'xid','code':119,'class':'gpu-reset','action':'reset-device','first':'%s','last':'%s',"
		"'count':1,'active':true}]}]}}",
		boot, observed, observed, observed, observed, observed);
	w->by_test[NODE] = true;
	rw_patch_status(w, &hf_devicehealths, NAME, text);
}

/* An old report comes back, as from a backup of the store, while the agent is silent. */
static void an_old_report_begins_no_act(void **state)
{
	static const struct {
		const char *observed, *boot;
	} reports[] = {{"2023-11-14T20:13:00.000000Z", "b-" NAME},
		       {"2023-11-14T20:13:00.000000Z", "b-earlier"},
		       {"2023-11-14T22:13:25.000000Z", "b-earlier"}};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(reports); i++) {
		struct rw *w;
		struct ra *a;

		rw_setup((void **)&w);
		a = ra_create(w);
		rw_begin(w, 3, MEND);
		report_old(w, reports[i].observed, reports[i].boot);
		expect_left_alone(w, a);
		rw_teardown((void **)&w);
	}
}

/* The manifest of an act that has mended its node is applied again. */
static void an_act_is_not_repeated_by_its_manifest(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_create(w);
	char more[512];

	rw_begin(w, 3, MEND);
	rw_say(w, NODE, RW_RESET);
	rw_run(w, 20 * HF_MINUTE);
	assert_string_equal(phase_of_act(w), "Succeeded");
	assert_int_equal(a->acts, 1);
	snprintf(more, sizeof(more),
		 ",'policy':'p','fault':{'class':'gpu-reset','time':'%s'},'bootID':'%s'",
		 hf_json_path_str(get_act(w), "spec", "fault", "time", NULL),
		 hf_json_path_str(get_act(w), "spec", "bootID", NULL));
	rw_delete(w, &hf_remediations, ACT);
	rw_run(w, HF_MINUTE);
	assert_null(get_act(w));
	ra_request(a, NODE, 1, "reset-device", more);
	rw_run(w, HF_HOUR);
	assert_int_equal(a->acts, 1);
	assert_string_equal(phase_of_act(w), "Cancelled");
	assert_false(rw_tainted(w, NODE));
}

/* ---- what happens in the middle of a pass ----------------------------------------------------------------- */

static bool lease_is_slow(const struct rw *w, const struct hf_request *request,
			  struct hf_fault *ret_fault)
{
	(void)w;
	if (request->verb == HF_VERB_GET && request->resource == &hf_leases)
		ret_fault->delay_before = 400 * HF_MS;
	return false;
}

/* A pass looks every five seconds, and waits for the Lease after it has read DeviceHealth. The report of the proof comes
 * at each moment of these five seconds. */
static void a_report_in_the_middle_of_a_pass_counts_at_once(void **state)
{
	(void)state;
	for (hf_time at = 0; at < 5 * HF_SECOND; at += 100 * HF_MS) {
		struct middle m = {.w = NULL};
		hf_time waits = 0;

		begin(&m, &stages[4]);
		assert_string_equal(phase_of_act(m.w), "Verifying");
		m.w->fault = lease_is_slow;
		rw_run(m.w, 12 * HF_SECOND + at);
		assert_string_equal(phase_of_act(m.w), "Verifying");
		m.a->keeps[NODE] = false;
		rw_say(m.w, NODE, RW_WELL);
		while (hf_streq(phase_of_act(m.w), "Verifying") && waits < 6 * HF_SECOND) {
			rw_run(m.w, 100 * HF_MS);
			waits += 100 * HF_MS;
		}
		if (waits > HF_SECOND)
			fail_msg("%lld ms: the proof waits for %lld ms", (long long)(at / HF_MS),
				 (long long)(waits / HF_MS));
		rw_teardown((void **)&m.w);
	}
}

static void expect_wait(struct rw *w, const char *name, const char *phase, const char *words)
{
	const char *is =
		hf_json_path_str(rw_get(w, &hf_remediations, NULL, name), "status", "phase", NULL);

	if (!hf_streq(is, phase) || strstr(rw_message(w, name), words) == NULL)
		fail_msg("%s is %s: '%s', not %s: '%s'", name, hf_str_or(is, "?"),
			 rw_message(w, name), phase, words);
}

/* A person removes the finalizer of an object whose actor is at work, and orders another act. */
static void no_act_begins_beside_an_actor_without_object(void **state)
{
	struct middle m = {.w = NULL};

	(void)state;
	begin(&m, &stages[3]);
	assert_string_equal(phase_of_act(m.w), "Acting");
	rw_patch(m.w, &hf_remediations, ACT, "{'metadata':{'finalizers':null}}");
	(void)rw_remove(m.w, &hf_remediations, NULL, ACT, 0);
	rw_delete(m.w, &hf_healthpolicies, "p");
	ra_request(m.a, NODE, 7, "reset-device", "");
	/* Fails if an act begins now. */
	rw_run(m.w, HF_MINUTE);
	expect_wait(m.w, NAME "-7", "Pending", "waits for the Lease");
	(void)rw_remove(m.w, &hf_leases, HF_MEND_NAMESPACE, LEASE, 0);
	rw_run(m.w, HF_MINUTE);
	expect_wait(m.w, NAME "-7", "Draining",
		    "the actor of Remediation " ACT " is still on the node");
	/* The garbage collector deletes the pod, which has no owner any more. */
	delete_actor(&m);
	ra_all(m.a, RA_MENDS, RA_MENDS);
	rw_run(m.w, HF_MINUTE);
	rw_say_again(m.w);
	rw_run(m.w, HF_MINUTE);
	assert_string_equal(ra_phase(m.a, NODE), "Succeeded");
	rw_teardown((void **)&m.w);
}

/* A typing error in the UUID or in the address. */
static void a_device_that_the_node_does_not_have_is_not_reset(void **state)
{
	static const struct {
		const char *device, *words;
	} rows[] = {
		{"{'uuid':'GPU-other'}", "the node's agent reports no device with UUID GPU-other"},
		{"{'id':'0000:1b:00.0','uuid':'GPU-" NAME "'}",
		 "device GPU-" NAME " is at address 0000:1a:00.0, not 0000:1b:00.0"},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		struct rw *w;
		struct ra *a;
		char text[512];

		rw_setup((void **)&w);
		a = ra_create(w);
		rw_begin(w, 3, "{'mode':'observe'}");
		snprintf(text, sizeof(text),
			 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'Remediation','metadata':{"
			 "'name':'" ACT "'},'spec':{'node':'" NAME
			 "','rung':'reset-device','attempt':1,"
			 "'nonce':'0123456789abcdef0123456789abcdef','requestedBy':'ann',"
			 "'devices':[%s]}}",
			 rows[i].device);
		rw_create(w, &hf_remediations, NULL, text);
		rw_run(w, HF_MINUTE);
		expect_wait(w, ACT, "Pending", rows[i].words);
		assert_false(rw_tainted(w, NODE));
		assert_int_equal(a->acts, 0);
		rw_teardown((void **)&w);
	}
}

static void bind_late_pod(struct rw *w)
{
	rw_create(
		w, &hf_pods, "default",
		"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'late','namespace':'default'},"
		"'spec':{'nodeName':'" NAME "','containers':[{'name':'c','image':'i','resources':{"
		"'limits':{'nvidia.com/gpu':'1'}}}]}}");
}

static void create_late_pod(struct rw *w)
{
	bind_late_pod(w);
	rw_patch_in(w, &hf_pods, "default", "late", "status",
		    "{'status':{'phase':'Running','startTime':'2023-11-14T22:15:00Z'}}");
}

/* The agent dies, and then a pod comes that asks for a device: no report says which. */
static void a_reset_waits_for_the_agent_if_a_pod_came_after_its_report(void **state)
{
	struct middle m = {.w = NULL};

	(void)state;
	begin(&m, &stages[0]);
	m.w->mute[NODE] = true;
	rw_run(m.w, 10 * HF_SECOND);
	create_late_pod(m.w);
	rw_run(m.w, 2 * HF_MINUTE);
	end_other_tool(&m);
	rw_run(m.w, HF_MINUTE);
	assert_int_equal(m.a->acts, 0);
	expect_wait(m.w, ACT, "Draining", "newer than pod default/late");
	m.w->mute[NODE] = false;
	rw_say_again(m.w);
	rw_run(m.w, HF_MINUTE);
	assert_int_equal(m.a->acts, 1);
	rw_teardown((void **)&m.w);
}

static const char *request_of(struct rw *w)
{
	return hf_str_or(hf_json_path_str(rw_get(w, &hf_devicehealths, NULL, NAME), "metadata",
					  "annotations", "holdfast.dev/report", NULL),
			 "");
}

/* The agent is asked before the kubelet has started the pod. Its report comes too early, and the next one without a request
 * only minutes later. */
static void the_agent_is_asked_again_after_the_start_of_a_pod(void **state)
{
	struct middle m = {.w = NULL};
	char first[256];

	(void)state;
	begin(&m, &stages[0]);
	bind_late_pod(m.w);
	end_other_tool(&m);
	rw_run(m.w, HF_MINUTE);
	expect_wait(m.w, ACT, "Draining", "newer than pod default/late");
	snprintf(first, sizeof(first), "%s", request_of(m.w));
	rw_say_again(m.w);
	rw_patch_in(m.w, &hf_pods, "default", "late", "status",
		    "{'status':{'phase':'Running','startTime':'2023-11-14T22:16:00Z'}}");
	rw_run(m.w, 10 * HF_SECOND);
	assert_string_not_equal(request_of(m.w), first);
	rw_teardown((void **)&m.w);
}

/* The pod has no controller. A reboot ends its work, whichever device it was given. */
static void a_reboot_moves_a_pod_that_no_report_names(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_create(w);

	rw_begin(w, 3, "{'mode':'observe'}");
	w->people_ask = true;
	w->mute[NODE] = true;
	w->refuse_evictions = true;
	create_late_pod(w);
	ra_request(a, NODE, 1, "reboot", "");
	rw_run(w, HF_MINUTE);
	expect_wait(w, ACT, "Draining", "1 pod has not left the node: default/late");
	assert_int_equal(a->acts, 0);
}

static void a_hold_of_the_policy_withdraws_an_approval_at_once(void **state)
{
	struct middle m = {.w = NULL};

	(void)state;
	for (hf_time at = 0; at < 6 * HF_SECOND; at += 700 * HF_MS) {
		begin(&m, &stages[2]);
		rw_run(m.w, 10 * HF_SECOND + at);
		assert_string_equal(phase_of_act(m.w), "Approved");
		rw_patch(m.w, &hf_healthpolicies, "p", "{'spec':{'mend':{'hold':true}}}");
		rw_run(m.w, HF_SECOND / 2);
		assert_string_equal(phase_of_act(m.w), "Draining");
		rw_teardown((void **)&m.w);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, rw_setup, rw_teardown)

/* ---- acts that wait for long ------------------------------------------------------------------------------ */

/* Another holder, such as a DeviceRollout, is at work on the node: the act does not take the node out of use yet. */
static void an_act_that_waits_for_the_lease_leaves_the_node_alone(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_create(w);

	w->people_ask = true;
	rw_begin(w, 3, MEND);
	rw_create(w, &hf_leases, HF_MEND_NAMESPACE,
		  "{'apiVersion':'coordination.k8s.io/v1','kind':'Lease','metadata':{'name':'" LEASE
		  "'},'spec':{'holderIdentity':'other'}}");
	ra_request(a, NODE, 1, "reboot", "");
	rw_run(w, 20 * HF_MINUTE);
	assert_int_equal(w->met.quarantines, 0);
	(void)rw_remove(w, &hf_leases, HF_MEND_NAMESPACE, LEASE, 0);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_int_equal(w->met.quarantines, 1);
	assert_false(rw_tainted(w, NODE));
}

static bool refuse_leases(const struct rw *w, const struct hf_request *request,
			  struct hf_fault *ret_fault)
{
	(void)w;
	if (request->verb != HF_VERB_CREATE || request->resource != &hf_leases)
		return false;
	ret_fault->refuse = HF_E_FORBIDDEN;
	return true;
}

/* All devices are well, so the policy releases a node that is out of use, but not while an act needs the quarantine. */
static void no_policy_takes_off_the_taint_of_an_act(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_create(w);

	w->people_ask = true;
	rw_begin(w, 3, MEND);
	w->fault = refuse_leases;
	ra_request(a, NODE, 1, "reboot", "");
	rw_run(w, 20 * HF_MINUTE);
	assert_true(rw_tainted(w, NODE));
	w->fault = NULL;
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_int_equal(w->met.quarantines, 1);
	assert_false(rw_tainted(w, NODE));
}

/* The first write of the Node's condition takes 25 s. */
static bool delay_condition(const struct rw *w, const struct hf_request *request,
			    struct hf_fault *ret_fault)
{
	(void)w;
	if (request->verb != HF_VERB_PATCH || request->resource != &hf_nodes || *w->reads > 0)
		return false;
	++*w->reads;
	ret_fault->delay_before = 25 * HF_SECOND;
	return true;
}

/* Another leader has ended the act meanwhile. */
static void a_late_write_tells_of_no_act_that_is_over(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_create(w);
	unsigned delayed = 0;

	rw_begin(w, 3, MEND);
	w->reads = &delayed;
	rw_say(w, NODE, RW_RESET);
	rw_run(w, 350 * HF_MS);
	assert_true(rw_tainted(w, NODE));
	w->fault = delay_condition;
	rw_run(w, HF_SECOND);
	assert_int_equal(delayed, 1);
	rw_change_leaders(w);
	rw_run(w, 20 * HF_SECOND);
	rw_say_again(w);
	rw_run(w, 2 * HF_SECOND);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	rw_run(w, 5 * HF_MINUTE);
	assert_false(is_in_maintenance(w));
}

/* The clock of the node is an hour behind. The device fails again after its reset, and a person orders another reset with
 * the time of the fault as the agent reports it. */
static void a_fault_has_the_time_of_the_nodes_clock(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_create(w);
	char more[256], at[HF_TIME_TEXT_MAX];

	w->clock[NODE] = -HF_HOUR;
	rw_begin(w, 3, "{'mode':'observe'}");
	rw_say(w, NODE, RW_RESET);
	ra_request(a, NODE, 1, "reset-device", "");
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	rw_say(w, NODE, RW_RESET);
	hf_time_format_micro(hf_loop_wall(w->loop) + w->clock[NODE], at);
	rw_run(w, HF_MINUTE);
	snprintf(more, sizeof(more), ",'fault':{'class':'gpu-reset','time':'%s'}", at);
	ra_request(a, NODE, 2, "reset-device", more);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(rw_message(w, NAME "-2"),
			    "1 device back with the same UUID and no new fault");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_act_survives_what_happens_in_its_middle),
		cmocka_unit_test(a_node_that_becomes_well_at_any_moment_is_left_alone),
		cmocka_unit_test(a_forged_fault_is_not_mended),
		T(a_fault_that_no_report_shows_is_not_mended),
		cmocka_unit_test(a_new_leader_mends_no_fault_that_is_over),
		T(a_forged_approval_is_withdrawn),
		T(a_forged_quarantine_is_no_fault),
		cmocka_unit_test(an_old_report_begins_no_act),
		T(an_act_is_not_repeated_by_its_manifest),
		cmocka_unit_test(a_report_in_the_middle_of_a_pass_counts_at_once),
		cmocka_unit_test(no_act_begins_beside_an_actor_without_object),
		cmocka_unit_test(a_device_that_the_node_does_not_have_is_not_reset),
		cmocka_unit_test(a_reset_waits_for_the_agent_if_a_pod_came_after_its_report),
		cmocka_unit_test(the_agent_is_asked_again_after_the_start_of_a_pod),
		T(a_reboot_moves_a_pod_that_no_report_names),
		cmocka_unit_test(a_hold_of_the_policy_withdraws_an_approval_at_once),
		T(an_act_that_waits_for_the_lease_leaves_the_node_alone),
		T(no_policy_takes_off_the_taint_of_an_act),
		T(a_late_write_tells_of_no_act_that_is_over),
		T(a_fault_has_the_time_of_the_nodes_clock),
	};

	rw_choose_tests(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
