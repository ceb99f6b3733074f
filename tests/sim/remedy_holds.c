/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_actor.h"

#include "api/device_health.h"
#include "api/remediation.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * What holds an act back, what becomes of an act that was held, and what an object says about an act that was not done.
 * The node of each test is n003.
 */

#define NODE 3
#define NAME "n003"
#define ACT NAME "-1"
#define ACTOR HF_MEND_POD_PREFIX ACT
#define LABEL "nvidia.com/gpu.deploy.device-plugin"
#define MEND "{'mode':'remediate','mend':{}," WIDE "}"
/* RW_START is a Tuesday, 22:13 UTC. */
#define WINDOW                                                                                     \
	"{'mode':'remediate','mend':{'windows':[{'days':['Wednesday'],'start':'01:00',"            \
	"'end':'05:00'}]}," WIDE "}"
#define CORDON "{'spec':{'unschedulable':true}}"
#define UNCORDON "{'spec':{'unschedulable':null}}"
#define HOLD "{'metadata':{'annotations':{'holdfast.dev/hold':'yes'}}}"
#define UNHOLD "{'metadata':{'annotations':{'holdfast.dev/hold':null}}}"
#define IN_MAINTENANCE                                                                             \
	"{'status':{'conditions':[{'type':'Ready','status':'True'},"                               \
	"{'type':'MaintenanceInProgress','status':'True'}]}}"

/* An act that is approved, and whose actor does not start. */
static struct ra *begin_approved(struct rw *w, int ill)
{
	struct ra *a = ra_begin(w, 10, MEND);

	ra_all(a, RA_NO_START, RA_NO_START);
	rw_patch(w, &hf_nodes, NAME, "{'metadata':{'labels':{'" LABEL "':'true'}}}");
	rw_say(w, NODE, ill);
	rw_run(w, 20 * HF_SECOND);
	assert_string_equal(ra_phase(a, NODE), "Approved");
	return a;
}

static const char *label_of(struct rw *w)
{
	return hf_str_or(hf_json_path_str(rw_get(w, &hf_nodes, NULL, NAME), "metadata", "labels",
					  LABEL, NULL),
			 "");
}

/* ---- others at work on the node -------------------------------------------------------------------- */

/* A person or another tool cordons the node while the act waits for its window. */
static void a_cordon_holds_an_act_of_a_policy(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, WINDOW);

	rw_say(w, NODE, RW_RESET);
	rw_run(w, HF_HOUR);
	rw_patch(w, &hf_nodes, NAME, CORDON);
	rw_run(w, 3 * HF_HOUR);
	assert_int_equal(a->acts, 0);
	rw_expect_message(w, ACT, "taken the node out of use: cordon");
	rw_patch(w, &hf_nodes, NAME, UNCORDON);
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(a->acts, 1);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
}

static void a_cordon_or_a_taint_withdraws_an_approval(void **state)
{
	static const char *const patches[] = {
		CORDON, "{'spec':{'taints':[{'key':'nvidia.com/gpu','value':'present','effect':"
			"'NoSchedule'},{'key':'holdfast.dev/device','value':'reboot','effect':"
			"'NoSchedule'},{'key':'node.kubernetes.io/out-of-service','effect':"
			"'NoExecute'}]}}"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(patches); i++) {
		struct rw *w;
		struct ra *a;

		rw_setup((void **)&w);
		a = begin_approved(w, RW_REBOOT);
		rw_patch(w, &hf_nodes, NAME, patches[i]);
		rw_run(w, HF_MINUTE);
		ra_all(a, RA_MENDS, RA_MENDS);
		rw_run(w, HF_HOUR);
		assert_int_equal(a->acts, 0);
		assert_string_equal(ra_phase(a, NODE), "Draining");
		rw_teardown((void **)&w);
	}
}

/* A person who orders an act may have cordoned the node before. */
static void a_persons_act_goes_on_beside_a_cordon(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'observe'}");

	w->people_ask = true;
	rw_patch(w, &hf_nodes, NAME, CORDON);
	ra_request(a, NODE, 1, "reset-device", "");
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_true(hf_json_true(
		hf_json_path(rw_get(w, &hf_nodes, NULL, NAME), "spec", "unschedulable", NULL),
		false));
}

/* ---- budgets --------------------------------------------------------------------------------------- */

/* People request acts under a policy for nodes that are not quarantined: each act takes its node out of use. */
static void acts_of_people_under_a_policy_stay_within_its_budget(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_create(w);

	w->people_ask = true;
	w->limit = 1;
	rw_begin(w, 10,
		 "{'mode':'remediate','mend':{'maxConcurrent':5},'budget':{'maxUnavailable':"
		 "{'count':1}}}");
	for (int i = 1; i < 6; i++)
		ra_request(a, i, 1, "reboot", ",'policy':'p'");
	rw_run(w, 5 * HF_SECOND);
	assert_int_equal(rw_count_tainted(w), 1);
	rw_run(w, HF_HOUR);
	assert_int_equal(a->mended, 5);
	assert_int_equal(rw_count_tainted(w), 0);
}

/* ---- a policy that changes ------------------------------------------------------------------------- */

static void a_node_that_the_policy_does_not_select_any_more_is_left_alone(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, WINDOW);

	rw_say(w, NODE, RW_RESET);
	rw_run(w, HF_HOUR);
	rw_patch(w, &hf_healthpolicies, "p",
		 "{'spec':{'selector':{'matchLabels':{'pool':'none'}}}}");
	rw_run(w, 3 * HF_HOUR);
	assert_int_equal(a->acts, 0);
	rw_expect_message(w, ACT, "does not select the node any more");
}

/* The act is over, and what it had changed is put back. */
static void a_policy_that_allows_no_acts_any_more_ends_its_acts(void **state)
{
	static const char *const patches[] = {"{'spec':{'mode':'observe'}}",
					      "{'spec':{'mend':null}}",
					      "{'spec':{'mend':{'rungs':['reboot']}}}", NULL};
	static const char *const words[] = {"allows no acts any more", "allows no acts any more",
					    "does not allow this rung", "does not exist any more"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(patches); i++) {
		struct rw *w;
		struct ra *a;

		rw_setup((void **)&w);
		a = begin_approved(w, RW_RESET);
		assert_string_equal(label_of(w), "false");
		if (patches[i] != NULL)
			rw_patch(w, &hf_healthpolicies, "p", patches[i]);
		else
			rw_delete(w, &hf_healthpolicies, "p");
		rw_run(w, HF_MINUTE);
		assert_string_equal(hf_json_path_str(rw_get(w, &hf_remediations, NULL, ACT),
						     "status", "phase", NULL),
				    "Cancelled");
		rw_expect_message(w, ACT, words[i]);
		assert_string_equal(label_of(w), "true");
		assert_int_equal(a->acts, 0);
		rw_teardown((void **)&w);
	}
}

/* ---- a hold that ends ------------------------------------------------------------------------------ */

/* The time of a hold is no time of the drain: the act goes on where it was, and no rung is climbed. */
static void after_a_hold_the_act_goes_on(void **state)
{
	struct rw *w = *state;
	struct ra *a = begin_approved(w, RW_RESET);

	rw_patch(w, &hf_nodes, NAME, HOLD);
	rw_run(w, 3 * HF_HOUR);
	assert_string_equal(ra_phase(a, NODE), "Draining");
	ra_all(a, RA_MENDS, RA_MENDS);
	rw_patch(w, &hf_nodes, NAME, UNHOLD);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_int_equal(ra_count(a), 1);
	assert_int_equal(a->resets, 1);
	assert_int_equal(w->boots[NODE], 0);
}

/* A person holds the node while its GPU is reset, for longer than an agent accepts an acknowledgement. The GPU is mended
 * all the same, so it is not reset again. */
static void a_hold_during_the_act_mends_nothing_twice(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	ra_all(a, RA_KEEPS, RA_MENDS);
	rw_patch(w, &hf_nodes, NAME, "{'metadata':{'labels':{'" LABEL "':'true'}}}");
	rw_say(w, NODE, RW_RESET);
	for (int i = 0; i < 100 && !hf_streq(ra_phase(a, NODE), "Acting"); i++)
		rw_run(w, HF_SECOND / 2);
	rw_patch(w, &hf_nodes, NAME, HOLD);
	rw_run(w, 2 * HF_HOUR);
	assert_string_equal(ra_phase(a, NODE), "Restoring");
	assert_string_equal(label_of(w), "false");
	rw_expect_message(w, ACT,
			  "same UUID and no new fault; not put back: held by annotation "
			  "holdfast.dev/hold");
	rw_patch(w, &hf_nodes, NAME, UNHOLD);
	rw_run(w, 2 * HF_HOUR);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_string_equal(rw_message(w, ACT),
			    "1 device back with the same UUID and no new fault");
	assert_string_equal(label_of(w), "true");
	assert_int_equal(a->resets, 1);
	assert_int_equal(ra_count(a), 1);
	assert_false(rw_tainted(w, NODE));
}

/* The drain has its whole time after the hold, and no more. */
static void after_a_hold_the_drain_has_its_time(void **state)
{
	struct rw *w = *state;
	struct ra *a = begin_approved(w, RW_RESET);

	rw_patch(w, &hf_nodes, NAME, HOLD);
	rw_run(w, HF_HOUR);
	rw_pod(w, "serve", NODE, "ReplicaSet");
	w->refuse_evictions = true;
	rw_say_again(w);
	rw_patch(w, &hf_nodes, NAME, UNHOLD);
	rw_run(w, 9 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Draining");
	rw_run(w, 2 * HF_MINUTE);
	rw_expect_message(w, ACT, "the node was not emptied in time");
}

/* With one act at once, an act that is held back on its node takes no place of the others. */
static void a_held_act_keeps_no_other_waiting(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct rw *w;
		struct ra *a;

		rw_setup((void **)&w);
		a = begin_approved(w, RW_RESET);
		if (how == 2)
			rw_patch_status(w, &hf_nodes, NAME, IN_MAINTENANCE);
		else
			rw_patch(w, &hf_nodes, NAME, how == 0 ? HOLD : CORDON);
		rw_run(w, 10 * HF_MINUTE);
		ra_all(a, RA_MENDS, RA_MENDS);
		rw_say(w, 5, RW_RESET);
		rw_run(w, 20 * HF_MINUTE);
		if (!hf_streq(ra_phase(a, 5), "Succeeded"))
			fail_msg("%d: n005 is '%s'", how, ra_phase(a, 5));
		assert_string_equal(ra_phase(a, NODE), "Draining");
		assert_int_equal(a->acts, 1);
		rw_teardown((void **)&w);
	}
}

/* The act is over, and a hold keeps the operator from putting the labels back. */
static void an_act_that_is_over_keeps_no_other_waiting(void **state)
{
	struct rw *w = *state;
	struct ra *a = begin_approved(w, RW_RESET);

	a->at_once = -1;
	ra_all(a, RA_MENDS, RA_MENDS);
	for (int i = 0; i < 100 && a->acts == 0; i++)
		rw_run(w, HF_SECOND / 10);
	rw_patch(w, &hf_nodes, NAME, HOLD);
	rw_run(w, 20 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Restoring");
	assert_string_equal(label_of(w), "false");
	rw_say(w, 5, RW_RESET);
	rw_run(w, 20 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 5), "Succeeded");
	rw_patch(w, &hf_nodes, NAME, UNHOLD);
	rw_run(w, HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_string_equal(label_of(w), "true");
}

/* ---- an actor that does nothing ------------------------------------------------------------------------ */

/* The actor's pod is deleted, so the object keeps the reason. */
static void the_reason_of_an_actor_that_does_nothing_is_kept(void **state)
{
	static const struct {
		const char *status, *words;
	} cases[] = {
		{"'phase':'Failed','containerStatuses':[{'name':'actor','image':'i','imageID':'',"
		 "'ready':false,'restartCount':0,'state':{'terminated':{'exitCode':2,'message':"
		 "'{\\\"msg\\\":\\\"one\\\"}\\n{\\\"level\\\":\\\"error\\\",\\\"msg\\\":\\\"refused: the host has no "
		 "nvidia-smi\\\"}\\n'}}}]",
		 "exit code 2: refused: the host has no nvidia-smi"},
		{"'phase':'Failed','containerStatuses':[{'name':'actor','image':'i','imageID':'',"
		 "'ready':false,'restartCount':0,'state':{'terminated':{'exitCode':137,'reason':"
		 "'OOMKilled','message':'killed'}}}]",
		 "exit code 137: killed"},
		{"'phase':'Failed','reason':'OutOfmemory','message':'Node did not have enough "
		 "resource: memory'",
		 "OutOfmemory: Node did not have enough resource: memory"},
		/* The deadline of the pod ends an actor whose image cannot be pulled. */
		{"'phase':'Failed','reason':'DeadlineExceeded','message':'too long',"
		 "'containerStatuses':[{'name':'actor','image':'i','imageID':'','ready':false,"
		 "'restartCount':0,'state':{'waiting':{'reason':'ImagePullBackOff'}}}]",
		 "ImagePullBackOff; DeadlineExceeded: too long"},
		{"'phase':'Succeeded'", "its pod shows no reason"},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		char text[1024];
		struct rw *w;
		struct ra *a;

		rw_setup((void **)&w);
		a = begin_approved(w, RW_RESET);
		snprintf(text, sizeof(text), "{'status':{%s}}", cases[i].status);
		rw_patch_in(w, &hf_pods, HF_MEND_NAMESPACE, ACTOR, "status", text);
		rw_run(w, 10 * HF_SECOND);
		rw_expect_message(w, ACT, "the actor ended without an act");
		rw_expect_message(w, ACT, cases[i].words);
		assert_null(rw_get(w, &hf_pods, HF_MEND_NAMESPACE, ACTOR));
		assert_int_equal(a->acts, 0);
		rw_teardown((void **)&w);
	}
}

static void an_actor_that_does_not_start_is_explained(void **state)
{
	struct rw *w = *state;

	(void)begin_approved(w, RW_RESET);
	rw_patch_in(w, &hf_pods, HF_MEND_NAMESPACE, ACTOR, "status",
		    "{'status':{'phase':'Pending','containerStatuses':[{'name':'actor','image':'i',"
		    "'imageID':'','ready':false,'restartCount':0,'state':{'waiting':{'reason':"
		    "'ImagePullBackOff','message':'Back-off pulling image'}}}]}}");
	rw_run(w, HF_MINUTE);
	rw_expect_message(w, ACT, "waits for the actor: ImagePullBackOff");
	rw_run(w, HF_HOUR);
	rw_expect_message(w, ACT, "did not begin before the deadline: ImagePullBackOff");
}

/* ---- proof ------------------------------------------------------------------------------------------ */

/* The node comes back, and a GPU of it does not: its fault has ended with the boot, and the agent knows nothing of
 * it. */
static void a_reboot_without_the_gpu_is_not_proved(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	ra_all(a, RA_MENDS, RA_LIES);
	rw_say(w, NODE, RW_REBOOT);
	rw_run(w, 20 * HF_SECOND);
	assert_int_equal(a->acts, 1);
	w->ill[NODE] = RW_UNSEEN;
	rw_run(w, 20 * HF_MINUTE);
	assert_int_equal(w->boots[NODE], 1);
	rw_expect_message(w, ACT, "waits for device GPU-n003, of which the agent knows nothing");
	rw_run(w, 20 * HF_MINUTE);
	rw_expect_message(w, ACT, "no proof within 1800 s");
	assert_true(rw_tainted(w, NODE));
}

/* ---- people ----------------------------------------------------------------------------------------- */

static void put_plugin(struct rw *w, const char *pod, const char *app)
{
	char text[200];

	rw_pod(w, pod, NODE, "DaemonSet");
	snprintf(text, sizeof(text), "{'metadata':{'labels':{'app':'%s'}}}", app);
	rw_patch_in(w, &hf_pods, "default", pod, NULL, text);
	w->holder[NODE] = NULL;
}

static void plugins_of_other_hardware_stay(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'observe'}");

	put_plugin(w, "a-sriov", "sriov-device-plugin");
	put_plugin(w, "b-rdma", "rdma-shared-device-plugin");
	ra_request(a, NODE, 1, "restart-plugin", "");
	rw_run(w, HF_MINUTE);
	rw_expect_message(w, ACT, "no pod of a GPU device plugin's DaemonSet runs on the node");
	put_plugin(w, "c-gpu", "nvidia-device-plugin-daemonset");
	rw_run(w, HF_MINUTE);
	assert_true(rw_is_evicted(w, "default", "c-gpu"));
	assert_false(rw_is_evicted(w, "default", "a-sriov") ||
		     rw_is_evicted(w, "default", "b-rdma"));
}

/* The plugin's pod was made anew, and the kubelet still offers nothing. */
static void a_plugin_that_stays_away_is_not_proved(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'observe'}");

	put_plugin(w, "gpu", "nvidia-device-plugin-daemonset");
	rw_say(w, NODE, RW_PLUGIN);
	ra_request(a, NODE, 1, "restart-plugin", "");
	rw_run(w, HF_MINUTE);
	assert_true(rw_is_evicted(w, "default", "gpu"));
	rw_say_again(w);
	rw_run(w, HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Verifying");
	rw_expect_message(w, ACT, "software");
	rw_say(w, NODE, RW_WELL);
	rw_run(w, HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
}

/* A person orders a reset. It fails, and the node has the taint after this time. reboot: how later reboots end. */
static void fail_reset(struct ra *a, enum ra_end reboot, hf_time span)
{
	a->w->people_ask = true;
	ra_all(a, RA_FAILS, reboot);
	ra_request(a, NODE, 1, "reset-device", "");
	rw_run(a->w, span);
	assert_string_equal(ra_phase(a, NODE), "Failed");
	assert_true(rw_tainted(a->w, NODE));
}

static void the_taint_of_a_failed_act_goes_with_a_later_success(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'observe'}");

	fail_reset(a, RA_FAILS, HF_HOUR);
	/* A cancel shows nothing of the node. */
	ra_request(a, NODE, 2, "reset-device", ",'cancel':true");
	rw_run(w, HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Cancelled");
	assert_true(rw_tainted(w, NODE));
	ra_all(a, RA_MENDS, RA_MENDS);
	ra_request(a, NODE, 3, "reset-device", "");
	rw_run(w, HF_HOUR);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_false(rw_tainted(w, NODE));
}

/* The API server takes times that Holdfast cannot read. */
static void an_object_that_cannot_be_read_stops_no_other_act(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	w->people_ask = true;
	ra_request(a, NODE, 1, "reboot",
		   ",'fault':{'class':'reboot','time':'9999-12-31T23:59:59Z'}");
	rw_run(w, HF_MINUTE);
	rw_say(w, 5, RW_RESET);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 5), "Succeeded");
	/* The node itself as well; the number 1 is taken. */
	rw_say(w, NODE, RW_RESET);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_string_equal(rw_rung(w, NAME "-2"), "reset-device");
	assert_string_equal(rw_message(w, ACT), "");
	/* An act of it has begun, perhaps by another version: then no other may. */
	rw_patch_status(w, &hf_remediations, ACT, "{'status':{'phase':'Draining'}}");
	rw_say(w, 6, RW_RESET);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 6), "");
}

/* A person has chosen the last number that there is. */
static void the_last_number_ends_no_acts(void **state)
{
	struct rw *w = *state;

	(void)ra_begin(w, 10, MEND);
	rw_create(w, &hf_remediations, NULL,
		  "{'apiVersion':'holdfast.dev/v1alpha1','kind':'Remediation','metadata':{'name':"
		  "'n003-2147483647'},'spec':{'node':'n003','rung':'reboot','attempt':2147483647,"
		  "'nonce':'0123456789abcdef0123456789abcdef','requestedBy':'ann','dryRun':true}}");
	rw_run(w, HF_MINUTE);
	rw_say(w, NODE, RW_RESET);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(
		hf_json_path_str(rw_get(w, &hf_remediations, NULL, ACT), "status", "phase", NULL),
		"Succeeded");
}

/* ---- two devices -------------------------------------------------------------------------------- */

/* The node has a second device, which fails at another time than the first. */
struct second {
	struct rw *w;
	hf_time failed_at; /* 0: it has not failed */
	bool first_mended, mended;
};

/* The agent reports both devices. The world calls it with a well first device after each act. */
static void report_second(void *arg, int node, struct hf_device_health *health)
{
	static struct hf_device_report devices[3];
	static struct hf_device_fault fault;
	struct second *s = arg;

	if (node != NODE || s->failed_at == 0)
		return;
	if (health->cls == NULL && !s->first_mended)
		s->first_mended = true;
	else if (health->cls == NULL)
		s->mended = true;
	fault = (struct hf_device_fault){.detector = "xid",
					 .code = 119,
					 .subcode = -1,
					 .cls = "gpu-reset",
					 .action = "reset-device",
					 .first = s->failed_at,
					 .last = s->failed_at,
					 .count = 1,
					 .acts = true};
	devices[0] = health->devices.items[0];
	devices[1] = health->devices.items[1];
	if (s->first_mended) {
		devices[1].state = "Healthy";
		devices[1].faults.len = 0;
	}
	devices[2] = (struct hf_device_report){.id = "0000:1b:00.0",
					       .uuid = "GPU-second",
					       .kind = "gpu",
					       .state = s->mended ? "Healthy" : "Unhealthy",
					       .since = s->failed_at,
					       .hold_until = HF_TIME_NONE,
					       .faults = {&fault, !s->mended}};
	health->devices.items = devices;
	health->devices.len = 3;
	if (s->mended)
		return;
	s->w->ill[NODE] = RW_RESET;
	s->w->ill_since[NODE] = hf_loop_wall(s->w->loop) + 1;
	health->state = "Unhealthy";
	health->cls = "gpu-reset";
	health->action = "reset-device";
	health->evidence_at = s->failed_at;
}

/* A reset mends the devices that it names, and no other device, however old the fault of the other is. */
static void a_device_that_fails_before_the_reset_of_another_is_reset_too(void **state)
{
	static const enum ra_end ends[] = {RA_MENDS, RA_KEEPS};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(ends); i++) {
		struct second second = {.failed_at = 0};
		struct rw *w;
		struct ra *a;

		rw_setup((void **)&w);
		a = begin_approved(w, RW_RESET);
		second.w = w;
		w->ranks = report_second;
		w->ranks_arg = &second;
		second.failed_at = hf_loop_wall(w->loop);
		rw_say_again(w);
		rw_run(w, 20 * HF_SECOND);
		ra_all(a, ends[i], RA_MENDS);
		rw_run(w, 30 * HF_MINUTE);
		assert_int_equal(a->resets, 2);
		assert_int_equal(a->mended, 2);
		assert_int_equal(ra_count(a), 2);
		assert_false(rw_tainted(w, NODE));
		rw_teardown((void **)&w);
	}
}

/* A fault that only a reboot ends has come before the reset. The agent would end it too, if it read of the reset. */
static void a_reset_ends_no_fault_that_needs_more(void **state)
{
	struct rw *w = *state;
	struct ra *a = begin_approved(w, RW_RESET);

	rw_say(w, NODE, RW_REBOOT);
	rw_run(w, 20 * HF_SECOND);
	ra_all(a, RA_KEEPS, RA_MENDS);
	rw_run(w, HF_MINUTE);
	assert_int_equal(a->resets, 1);
	rw_say_again(w);
	rw_run(w, HF_SECOND);
	assert_string_equal(ra_phase(a, NODE), "Verifying");
	rw_expect_message(w, ACT, "has a fault that a reset does not end: reboot");
	rw_run(w, 2 * HF_HOUR);
	assert_string_equal(rw_rung(w, NAME "-2"), "reboot");
	assert_int_equal(w->boots[NODE], 1);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_false(rw_tainted(w, NODE));
}

/* A GPU of which the agent knows nothing, or that is not in its report any more, is not well. */
static void a_device_that_is_gone_is_not_well(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct rw *w;
		struct ra *a;

		rw_setup((void **)&w);
		a = begin_approved(w, how == 0 ? RW_REBOOT : RW_RESET);
		w->bare[NODE] = how == 2;
		rw_say(w, NODE, how == 2 ? RW_WELL : RW_UNSEEN);
		rw_run(w, HF_MINUTE);
		if (strstr(rw_message(w, ACT), "devices are well") != NULL)
			fail_msg("%d: %s: %s", how, ra_phase(a, NODE), rw_message(w, ACT));
		rw_teardown((void **)&w);
	}
}

/* The agent does not read of the reset: another program has removed the annotation. */
static bool removes_cleared(const struct rw *w, const struct hf_request *request,
			    struct hf_fault *ret_fault)
{
	const struct hf_json *cleared =
		request->body == NULL ? NULL
				      : hf_json_path(hf_doc_json(request->body), "metadata",
						     "annotations", "holdfast.dev/cleared", NULL);

	(void)w;
	(void)ret_fault;
	if (cleared != NULL)
		hf_json_set_str(
			hf_json_path(hf_doc_json(request->body), "metadata", "annotations", NULL),
			"holdfast.dev/cleared", "removed");
	return false;
}

/* A proved reset that has not ended the fault after an hour has not mended the node: the next rung follows. */
static void a_fault_that_outlives_its_reset_climbs(void **state)
{
	struct rw *w = *state;
	struct ra *a = begin_approved(w, RW_RESET);

	w->fault = removes_cleared;
	ra_all(a, RA_KEEPS, RA_MENDS);
	for (int i = 0; i < 11; i++) {
		rw_run(w, 5 * HF_MINUTE);
		rw_say_again(w);
	}
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_int_equal(a->acts, 1);
	assert_true(rw_tainted(w, NODE));
	for (int i = 0; i < 36; i++) {
		rw_run(w, 5 * HF_MINUTE);
		rw_say_again(w);
	}
	assert_int_equal(a->resets, 2);
	assert_int_equal(w->boots[NODE], 1);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_false(rw_tainted(w, NODE));
}

#define T(name) cmocka_unit_test_setup_teardown(name, rw_setup, rw_teardown)

/* The policy gives pods twenty minutes to end by themselves. */
static void the_time_for_the_drain_counts_from_the_first_eviction(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(
		w, 10, "{'mode':'remediate','drain':{'graceSeconds':1200},'mend':{}," WIDE "}");

	rw_pod(w, "work", NODE, "ReplicaSet");
	rw_run(w, 2 * HF_SECOND);
	rw_say(w, NODE, RW_RESET);
	rw_run(w, 19 * HF_MINUTE);
	assert_false(rw_is_evicted(w, "default", "work"));
	assert_string_equal(ra_phase(a, NODE), "Draining");
	rw_run(w, 2 * HF_MINUTE);
	assert_true(rw_is_evicted(w, "default", "work"));
	assert_int_equal(ra_count(a), 1);
	rw_run(w, 10 * HF_MINUTE);
	rw_expect_message(w, ACT, "the node was not emptied in time");
}

/* The work on the node goes on, so the reboot waits for its end. */
static void a_slow_node_is_rebooted_when_its_pods_have_ended(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	rw_pod(w, "work", NODE, "ReplicaSet");
	rw_run(w, 2 * HF_SECOND);
	rw_say(w, NODE, RW_SLOW);
	rw_run(w, HF_HOUR);
	assert_true(rw_tainted(w, NODE));
	rw_expect_next(w, NODE, "held restart-node undrainable");
	assert_false(rw_is_evicted(w, "default", "work"));
	assert_int_equal(ra_count(a), 0);
	rw_end_work(w, "work", NODE);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(rw_rung(w, ACT), "reboot");
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
}

/* GPU 1 is Degraded, and a person has GPU 0 reset: that act has not mended GPU 1. */
static void a_reset_of_one_gpu_mends_no_other_that_is_slow(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	w->gpus = 2;
	w->sick[NODE] = 2;
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mend':{'hold':true}}}");
	rw_say(w, NODE, RW_SLOW);
	rw_run(w, 20 * HF_SECOND);
	assert_true(rw_tainted(w, NODE));
	ra_request(a, NODE, 1, "reset-device", "");
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mend':{'hold':null}}}");
	rw_run(w, HF_HOUR);
	assert_string_equal(rw_rung(w, NAME "-2"), "reboot");
	assert_false(rw_tainted(w, NODE));
}

/* No act may be created for node 3, so it keeps no place from node 4: the policy has one. */
static void expect_next_mended(struct rw *w)
{
	rw_say(w, NODE + 1, RW_RESET);
	rw_run(w, 10 * HF_MINUTE);
	assert_true(rw_tainted(w, NODE));
	rw_expect_next(w, NODE, "held reset-device no-remedy");
	assert_false(rw_tainted(w, NODE + 1));
}

/* A person cancels an object of the quarantined node. The policy has created none. */
static void cancel_by_person(struct rw *w, const char *rung, const char *more)
{
	struct ra *a = ra_begin(w, 10, MEND);

	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mend':{'hold':true}}}");
	rw_say(w, NODE, RW_RESET);
	rw_run(w, 20 * HF_SECOND);
	assert_true(rw_tainted(w, NODE));
	ra_request(a, NODE, 1, rung, more);
	rw_run(w, 20 * HF_SECOND);
	assert_string_equal(ra_phase(a, NODE), "Cancelled");
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mend':{'hold':null}}}");
}

static void a_held_policy_does_not_say_go(void **state)
{
	struct rw *w = *state;

	(void)ra_begin(w, 10, MEND);
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mend':{'hold':true}}}");
	rw_say(w, NODE, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_null(rw_get(w, &hf_remediations, NULL, ACT));
	rw_expect_next(w, NODE, "held reset-device held");
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mend':{'hold':null}}}");
	rw_run(w, 10 * HF_MINUTE);
	assert_false(rw_tainted(w, NODE));
}

/* The node is well, and its quarantine is the act's. No policy removes it while the act waits. */
static void a_held_act_of_a_person_keeps_its_quarantine(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);
	unsigned long long writes;

	w->people_ask = true;
	ra_all(a, RA_NO_START, RA_NO_START);
	ra_request(a, NODE, 1, "reboot", "");
	rw_run(w, 20 * HF_SECOND);
	assert_string_equal(ra_phase(a, NODE), "Approved");
	rw_patch(w, &hf_nodes, NAME, HOLD);
	rw_run(w, HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Draining");
	writes = w->writes;
	for (int minute = 0; minute < 30; minute++) {
		rw_run(w, HF_MINUTE);
		assert_true(rw_tainted(w, NODE));
	}
	assert_true(w->writes - writes < 30);
}

/* Nobody knows how the node is. A later act or a person removes the taint. */
static void a_failed_act_of_a_person_keeps_its_quarantine(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	fail_reset(a, RA_MENDS, HF_HOUR);
	ra_request(a, NODE, 2, "reboot", "");
	rw_run(w, HF_HOUR);
	assert_false(rw_tainted(w, NODE));
}

static void a_cancelled_task_of_a_person_keeps_no_place(void **state)
{
	struct rw *w = *state;

	cancel_by_person(w, "person", ",'cancel':true");
	expect_next_mended(w);
	assert_null(rw_get(w, &hf_remediations, NULL, NAME "-2"));
}

/* A dry run acts on nothing, so its cancel calls off nothing. */
static void a_cancelled_dry_run_calls_off_no_act(void **state)
{
	struct rw *w = *state;

	cancel_by_person(w, "reset-device", ",'cancel':true,'dryRun':true");
	rw_run(w, 10 * HF_MINUTE);
	assert_false(rw_tainted(w, NODE));
}

/* An agent of an older version reports no UUIDs, and a reset has to name its devices. */
static void a_device_without_a_uuid_keeps_no_place(void **state)
{
	struct rw *w = *state;

	(void)ra_begin(w, 10, MEND);
	w->old_agent[NODE] = true;
	rw_say(w, NODE, RW_RESET);
	rw_run(w, 20 * HF_SECOND);
	expect_next_mended(w);
}

/* After the reset the device is on probation, and one weak sign makes it Suspect. */
static void a_suspicion_on_probation_reboots_no_node(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	ra_all(a, RA_LIES, RA_MENDS);
	rw_say(w, NODE, RW_RESET);
	rw_run(w, 6 * HF_SECOND);
	rw_say(w, NODE, RW_PROBATION);
	a->relapses_at[NODE] = 0;
	rw_run(w, HF_MINUTE);
	a->relapses_at[NODE] = 0;
	rw_say(w, NODE, RW_PROBATION);
	rw_run(w, 5 * HF_MINUTE);
	rw_say(w, NODE, RW_SUSPECT);
	rw_run(w, 10 * HF_MINUTE);
	assert_true(rw_tainted(w, NODE));
	rw_expect_next(w, NODE, "waits - settling");
	assert_null(rw_get(w, &hf_remediations, NULL, NAME "-2"));
	rw_say(w, NODE, RW_WELL);
	rw_run(w, HF_MINUTE);
	assert_false(rw_tainted(w, NODE));
}

/* A person orders the reset of GPU 1. */
static void order_second(struct rw *w, int attempt)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'Remediation','metadata':{'name':"
		 "'" NAME "-%d'},'spec':{'node':'" NAME "','rung':'reset-device','attempt':%d,"
		 "'nonce':'0123456789abcdef0123456789abcdef','requestedBy':'ann','devices':[{'id':"
		 "'0000:1b:00.0','uuid':'GPU-" NAME "-1'}]}}",
		 attempt, attempt);
	rw_create(w, &hf_remediations, NULL, text);
}

/* The reset of GPU 0 has failed. The reset of GPU 1 shows nothing of GPU 0. */
static void the_reset_of_another_gpu_leaves_the_taint_of_a_failed_act(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'observe'}");

	w->gpus = 2;
	fail_reset(a, RA_FAILS, HF_HOUR);
	ra_all(a, RA_MENDS, RA_MENDS);
	order_second(w, 2);
	rw_run(w, HF_HOUR);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_true(rw_tainted(w, NODE));
	/* Both are out of use. */
	w->sick[NODE] = 3;
	rw_say(w, NODE, RW_RESET);
	ra_request(a, NODE, 3, "reset-device", "");
	rw_run(w, HF_HOUR);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_true(rw_tainted(w, NODE));
	order_second(w, 4);
	rw_run(w, HF_HOUR);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_false(rw_tainted(w, NODE));
}

/* GPU 1 fails while an act of a person on GPU 0 has the node out of use. After the act the policy decides about it. */
static void a_gpu_that_fails_during_the_act_of_a_person_is_quarantined(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, "{'mode':'quarantine'," WIDE "}");

	w->gpus = 2;
	w->people_ask = w->by_hand = true;
	ra_request(a, NODE, 1, "reset-device", "");
	rw_run(w, 2 * HF_SECOND);
	assert_string_equal(ra_phase(a, NODE), "Acting");
	w->sick[NODE] = 2;
	rw_say(w, NODE, RW_RESET);
	rw_run(w, 20 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_true(rw_tainted(w, NODE));
	rw_say(w, NODE, RW_WELL);
	rw_run(w, HF_MINUTE);
	assert_false(rw_tainted(w, NODE));
}

/* The act of a person has failed, and then the policy mends the node. */
static void the_taint_of_a_failed_act_goes_with_the_success_of_a_policy(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	fail_reset(a, RA_MENDS, HF_MINUTE);
	rw_say(w, NODE, RW_REBOOT);
	rw_run(w, HF_HOUR);
	assert_string_equal(rw_rung(w, NAME "-2"), "reboot");
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_false(rw_tainted(w, NODE));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(a_cordon_holds_an_act_of_a_policy),
		cmocka_unit_test(a_cordon_or_a_taint_withdraws_an_approval),
		T(a_persons_act_goes_on_beside_a_cordon),
		T(acts_of_people_under_a_policy_stay_within_its_budget),
		T(a_node_that_the_policy_does_not_select_any_more_is_left_alone),
		cmocka_unit_test(a_policy_that_allows_no_acts_any_more_ends_its_acts),
		T(after_a_hold_the_act_goes_on),
		T(a_hold_during_the_act_mends_nothing_twice),
		T(after_a_hold_the_drain_has_its_time),
		cmocka_unit_test(a_held_act_keeps_no_other_waiting),
		T(an_act_that_is_over_keeps_no_other_waiting),
		cmocka_unit_test(the_reason_of_an_actor_that_does_nothing_is_kept),
		T(an_actor_that_does_not_start_is_explained),
		T(a_reboot_without_the_gpu_is_not_proved),
		T(plugins_of_other_hardware_stay),
		T(a_plugin_that_stays_away_is_not_proved),
		T(the_taint_of_a_failed_act_goes_with_a_later_success),
		T(an_object_that_cannot_be_read_stops_no_other_act),
		T(the_last_number_ends_no_acts),
		cmocka_unit_test(a_device_that_is_gone_is_not_well),
		T(a_fault_that_outlives_its_reset_climbs),
		T(a_reset_ends_no_fault_that_needs_more),
		cmocka_unit_test(a_device_that_fails_before_the_reset_of_another_is_reset_too),
		T(a_held_policy_does_not_say_go),
		T(the_time_for_the_drain_counts_from_the_first_eviction),
		T(a_slow_node_is_rebooted_when_its_pods_have_ended),
		T(a_reset_of_one_gpu_mends_no_other_that_is_slow),
		T(a_held_act_of_a_person_keeps_its_quarantine),
		T(a_failed_act_of_a_person_keeps_its_quarantine),
		T(a_cancelled_task_of_a_person_keeps_no_place),
		T(a_cancelled_dry_run_calls_off_no_act),
		T(a_device_without_a_uuid_keeps_no_place),
		T(a_suspicion_on_probation_reboots_no_node),
		T(the_reset_of_another_gpu_leaves_the_taint_of_a_failed_act),
		T(a_gpu_that_fails_during_the_act_of_a_person_is_quarantined),
		T(the_taint_of_a_failed_act_goes_with_the_success_of_a_policy),
	};

	rw_choose_tests(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
