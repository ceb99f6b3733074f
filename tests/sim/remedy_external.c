/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/front_store.h"
#include "sim/remedy_actor.h"

#include "api/device_health.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The end of the ladder: rung external, with the object for another controller from the template of the policy to its
 * deletion, and tasks of persons.
 *
 * The embedded store knows no kinds of fix.example, so a store in front of it keeps the template and one object.
 * The node of each test is n003.
 */

#define NODE 3
#define NAME "n003"
#define ACT NAME "-1"
#define EXTERNAL                                                                                   \
	"'external':{'template':{'apiVersion':'fix.example/v1','kind':'FixTemplate','name':'t'}}"
/* A policy with these rungs. */
#define LADDER(rungs) "{'mode':'remediate','mend':{'rungs':[" rungs "]," EXTERNAL "}," WIDE "}"

/* What the cluster has of these kinds. */
struct fixes {
	struct hf_loop *loop;
	struct hf_doc *template, *object;
	unsigned creates, deletes;
	bool loses; /* the reply to the next create */
	bool stays; /* a finalizer keeps the deleted object */
	bool keeps; /* the operator may not delete the object */
	struct ra *actors;
};

static struct hf_doc *make_object(struct fixes *fixes, struct hf_doc *body)
{
	struct hf_json *json = hf_doc_copy_json(body);
	char uid[16];

	snprintf(uid, sizeof(uid), "fix-%u", ++fixes->creates);
	hf_json_set_str(hf_json_ensure_object(json, "metadata"), "uid", uid);
	hf_json_set_str(hf_json_ensure_object(json, "metadata"), "resourceVersion", "1");
	return hf_doc_from_json(json);
}

/* Performs the request. Returns a code of HF_E_*. */
static int perform(struct fixes *fixes, const struct front_call *call, struct hf_doc **ret_doc)
{
	if (call->verb == HF_VERB_CREATE) {
		if (fixes->object != NULL)
			return HF_E_EXISTS;
		fixes->object = make_object(fixes, call->body);
	} else if (call->verb == HF_VERB_DELETE && fixes->keeps) {
		return HF_E_FORBIDDEN;
	} else if (call->verb == HF_VERB_DELETE && fixes->object != NULL) {
		assert_string_equal(call->uid, hf_doc_uid(fixes->object));
		fixes->deletes++;
		if (!fixes->stays)
			hf_doc_unref(hf_steal(&fixes->object));
		else
			front_mark_deleted(&fixes->object);
		return 0;
	}
	*ret_doc = hf_streq(call->plural, "fixtemplates") ? fixes->template : fixes->object;
	if (*ret_doc != NULL && call->verb == HF_VERB_GET &&
	    !hf_streq(call->name, hf_doc_name(*ret_doc)))
		*ret_doc = NULL;
	return *ret_doc == NULL ? HF_E_NOT_FOUND : 0;
}

static void answer(void *arg, struct front_call *call)
{
	struct hf_doc *doc = NULL;
	struct fixes *fixes = arg;
	int code = perform(fixes, call, &doc);

	if (fixes->loses && call->verb == HF_VERB_CREATE) {
		fixes->loses = false;
		code = HF_E_TIMEOUT;
	}
	front_answer(call, code, code == 0 ? doc : NULL);
}

static struct hf_store *wrap(void *arg, struct hf_store *inner)
{
	struct fixes *fixes = arg;
	const struct front_options options = {
		.loop = fixes->loop, .group = "fix.example", .answer = answer, .arg = fixes};

	return front_store_create(&options, inner);
}

static void end(void *arg)
{
	struct fixes *fixes = arg;

	hf_doc_unref(fixes->template);
	hf_doc_unref(fixes->object);
	free(fixes);
}

/* ---- what is left of the object ------------------------------------------------------------------- */

static const char *phase_of(struct rw *w)
{
	return hf_str_or(
		hf_json_path_str(rw_get(w, &hf_remediations, NULL, ACT), "status", "phase", NULL),
		"");
}

/* The template exists. */
static struct fixes *create_fixes(struct rw *w)
{
	struct fixes *fixes = hf_xcalloc(1, sizeof(*fixes));

	fixes->actors = ra_create(w);
	fixes->actors->at_once = 1;
	fixes->loop = w->loop;
	fixes->template = json_doc_of(
		"{'apiVersion':'fix.example/v1','kind':'FixTemplate','metadata':{'name':'t','uid':'u',"
		"'resourceVersion':'1'},'spec':{'template':{'spec':{'how':'power'}}}}");
	rw_at_end(w, end, fixes);
	w->wrap_arg = fixes;
	w->wrap = wrap;
	return fixes;
}

/* The object exists, and the act waits for its proof. loses: the operator has not heard of the create. */
static struct fixes *begin_with(struct rw *w, bool loses)
{
	struct fixes *fixes = create_fixes(w);

	fixes->loses = loses;
	rw_begin(w, 10, LADDER("'external'"));
	rw_say(w, NODE, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_non_null(fixes->object);
	assert_string_equal(hf_doc_name(fixes->object), NAME);
	assert_string_equal(phase_of(w), "Verifying");
	return fixes;
}

static struct fixes *begin(struct rw *w)
{
	return begin_with(w, false);
}

static void the_object_goes_with_the_proof(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = begin(w);

	rw_say(w, NODE, RW_WELL);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(phase_of(w), "Succeeded");
	assert_null(fixes->object);
	assert_int_equal(fixes->creates, 1);
	assert_int_equal(fixes->deletes, 1);
	assert_null(hf_json_path(rw_get(w, &hf_remediations, NULL, ACT), "status", "saved",
				 "external", NULL));
}

/* The API server has created the object, and the operator has no answer: the other controller is at work. */
static void a_create_without_an_answer_is_proved(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = begin_with(w, true);

	rw_say(w, NODE, RW_WELL);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(phase_of(w), "Succeeded");
	assert_null(fixes->object);
	assert_int_equal(fixes->creates, 1);
	assert_int_equal(fixes->deletes, 1);
}

/* The other controller works on the node as long as the object exists, so it goes whatever becomes of the policy. */
static void the_object_goes_although_the_policy_has_changed(void **state)
{
	static const char *const patches[] = {
		NULL, "{'spec':{'mend':null}}",
		"{'spec':{'mend':{'external':{'template':{'apiVersion':'other.example/v2','kind':"
		"'PowerTemplate','name':'p','namespace':'default'}}}}}",
		"{'spec':{'mend':{'rungs':['no-rung']}}}"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(patches); i++) {
		struct fixes *fixes;
		struct rw *w;

		rw_setup((void **)&w);
		fixes = begin(w);
		if (patches[i] == NULL)
			rw_delete(w, &hf_healthpolicies, "p");
		else
			rw_patch(w, &hf_healthpolicies, "p", patches[i]);
		rw_run(w, HF_MINUTE);
		rw_say(w, NODE, RW_WELL);
		rw_run(w, 10 * HF_MINUTE);
		assert_string_equal(phase_of(w), "Succeeded");
		if (fixes->object != NULL)
			fail_msg("%zu: the object is left", i);
		assert_int_equal(fixes->creates, 1);
		rw_teardown((void **)&w);
	}
}

/* The other controller has replaced the machine. The next Node may have the same name, and is well. */
static void the_object_goes_with_the_node(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = begin(w);

	rw_delete(w, &hf_nodes, NAME);
	rw_run(w, HF_MINUTE);
	assert_string_equal(phase_of(w), "Succeeded");
	assert_null(fixes->object);
	assert_int_equal(fixes->creates, 1);
}

/* The times of an act without an actor are the operator's, whatever the clock of the node says. */
static void a_fault_from_before_the_act_is_mended(void **state)
{
	static const hf_time clocks[] = {-HF_HOUR, HF_HOUR};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(clocks); i++) {
		char at[HF_TIME_TEXT_MAX], more[128];
		struct fixes *fixes;
		struct rw *w;

		rw_setup((void **)&w);
		w->clock[NODE] = clocks[i];
		fixes = begin(w);
		rw_say(w, NODE, RW_WELL);
		rw_run(w, 10 * HF_MINUTE);
		assert_string_equal(phase_of(w), "Succeeded");
		rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'mode':'observe'}}");
		/* Half an hour ago, by the node's clock; the act is eleven minutes old. */
		hf_time_format_micro(hf_loop_wall(w->loop) + clocks[i] - HF_HOUR / 2, at);
		snprintf(more, sizeof(more), ",'fault':{'class':'reboot','time':'%s'}", at);
		rw_say(w, NODE, RW_REBOOT);
		w->people_ask = true;
		ra_request(fixes->actors, NODE, 2, "reboot", more);
		rw_run(w, HF_MINUTE);
		rw_expect_message(w, NAME "-2", "the fault is older than the last act");
		rw_teardown((void **)&w);
	}
}

/* The first act has failed, and the other controller is asked. */
static void expect_given_away(struct rw *w, const struct fixes *fixes)
{
	assert_string_equal(phase_of(w), "Failed");
	assert_string_equal(rw_rung(w, NAME "-2"), "external");
	assert_int_equal(fixes->creates, 1);
}

/* The machine never comes back from a reboot. The other controller is asked for it, and then a person. */
static void a_node_that_never_comes_back_is_given_away(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = create_fixes(w);

	rw_begin(w, 10, LADDER("'reboot','external'"));
	ra_all(fixes->actors, RA_NEVER, RA_NEVER);
	rw_say(w, NODE, RW_REBOOT);
	rw_run(w, HF_MINUTE);
	rw_set_ready(w, NODE, "Unknown");
	rw_run(w, 40 * HF_MINUTE);
	assert_string_equal(phase_of(w), "Failed");
	assert_string_equal(rw_rung(w, NAME "-2"), "external");
	assert_non_null(fixes->object);
	rw_run(w, HF_HOUR);
	assert_null(fixes->object);
	assert_string_equal(rw_rung(w, NAME "-3"), "person");
	rw_run(w, 3 * HF_HOUR);
	assert_string_equal(ra_phase(fixes->actors, NODE), "Pending");
	assert_int_equal(ra_count(fixes->actors), 3);
}

/* The node comes back from a reboot, and a GPU of it does not: no fault is left. */
static void a_gpu_that_never_comes_back_is_a_task_of_a_person(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_create(w);

	rw_begin(w, 10, "{'mode':'remediate','mend':{}," WIDE "}");
	ra_all(a, RA_MENDS, RA_LIES);
	rw_say(w, NODE, RW_REBOOT);
	rw_run(w, 20 * HF_SECOND);
	w->ill[NODE] = RW_UNSEEN;
	rw_run(w, HF_HOUR);
	assert_string_equal(phase_of(w), "Failed");
	assert_string_equal(rw_rung(w, NAME "-2"), "person");
	rw_say(w, NODE, RW_WELL);
	rw_run(w, HF_HOUR);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_false(rw_tainted(w, NODE));
}

/* The node dies during a reset, with pods of other devices on it. No kubelet can confirm that they have ended. */
static void pods_of_a_dead_node_do_not_keep_it_from_being_given_away(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = create_fixes(w);

	rw_begin(w, 10, LADDER("'reset-device','external'"));
	ra_all(fixes->actors, RA_NEVER, RA_NEVER);
	rw_pod(w, "other", NODE, "ReplicaSet");
	w->holder[NODE] = NULL;
	rw_say(w, NODE, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_string_equal(phase_of(w), "Acting");
	w->silent[NODE] = true;
	rw_set_ready(w, NODE, "Unknown");
	rw_run(w, 40 * HF_MINUTE);
	expect_given_away(w, fixes);
}

/* The node has rebooted, and its agent does not start. */
static void a_node_whose_agent_stays_away_after_a_reboot_is_given_away(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = create_fixes(w);

	rw_begin(w, 10, LADDER("'reboot','external'"));
	rw_say(w, NODE, RW_REBOOT);
	rw_run(w, HF_SECOND);
	w->mute[NODE] = true;
	rw_run(w, 40 * HF_MINUTE);
	expect_given_away(w, fixes);
}

/* The report of the dead agent is deleted. */
static void a_node_without_a_report_is_given_away(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = create_fixes(w);

	rw_begin(w, 10, LADDER("'reboot','external'"));
	ra_all(fixes->actors, RA_NEVER, RA_NEVER);
	rw_say(w, NODE, RW_REBOOT);
	rw_run(w, HF_MINUTE);
	rw_delete(w, &hf_devicehealths, NAME);
	rw_run(w, 40 * HF_MINUTE);
	expect_given_away(w, fixes);
	rw_run(w, 2 * HF_HOUR);
	assert_string_equal(rw_rung(w, NAME "-3"), "person");
}

/* The node dies during the act of a person, which has quarantined it. Its last report says that all is well. */
static struct fixes *die_under_act_of_person(struct rw *w)
{
	struct fixes *fixes = create_fixes(w);

	w->people_ask = true;
	rw_begin(w, 10, LADDER("'reboot','external'"));
	ra_all(fixes->actors, RA_NEVER, RA_NEVER);
	rw_run(w, HF_SECOND / 3);
	ra_request(fixes->actors, NODE, 1, "reset-device", "");
	rw_run(w, HF_MINUTE);
	rw_report(w, NODE);
	w->silent[NODE] = true;
	rw_set_ready(w, NODE, "Unknown");
	return fixes;
}

static void a_node_that_dies_under_the_act_of_a_person_is_given_away(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = die_under_act_of_person(w);

	rw_run(w, HF_HOUR);
	expect_given_away(w, fixes);
	rw_run(w, 5 * HF_HOUR);
	assert_string_equal(rw_rung(w, NAME "-3"), "person");
	assert_string_equal(ra_phase(fixes->actors, NODE), "Pending");
	assert_int_equal(ra_count(fixes->actors), 3);
}

/* The clock of the dead node was ahead, so its last report seems to be newer than the act of the other controller. */
static void the_report_of_a_dead_node_proves_nothing_to_a_new_leader(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes;

	w->clock[NODE] = 2 * HF_HOUR;
	fixes = die_under_act_of_person(w);
	rw_run(w, 40 * HF_MINUTE);
	assert_string_equal(rw_rung(w, NAME "-2"), "external");
	assert_string_equal(ra_phase(fixes->actors, NODE), "Verifying");
	rw_stop(w);
	rw_start(w);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(fixes->actors, NODE), "Verifying");
}

/* The other controller is broken, and its finalizer keeps the object. */
static void an_object_that_does_not_go_is_a_task_of_a_person(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = begin(w);

	fixes->stays = true;
	rw_run(w, 35 * HF_MINUTE);
	assert_string_equal(phase_of(w), "Restoring");
	rw_expect_message(w, ACT, "not put back: Fix n003 is deleted, but its finalizers keep it");
	assert_int_equal(fixes->deletes, 1);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(rw_rung(w, NAME "-2"), "person");
	hf_doc_unref(hf_steal(&fixes->object));
	rw_run(w, HF_MINUTE);
	assert_string_equal(phase_of(w), "Failed");
	rw_say(w, NODE, RW_WELL);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(fixes->actors, NODE), "Succeeded");
	assert_false(rw_tainted(w, NODE));
	assert_int_equal(ra_count(fixes->actors), 2);
}

/* The operator has no right to delete the object. */
static void an_object_that_may_not_be_deleted_is_a_task_of_a_person(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = begin(w);

	fixes->keeps = true;
	rw_run(w, 45 * HF_MINUTE);
	assert_string_equal(phase_of(w), "Restoring");
	rw_expect_message(w, ACT, "the API server refuses a request of the operator");
	assert_string_equal(rw_rung(w, NAME "-2"), "person");
	rw_say(w, 4, RW_RESET);
	rw_run(w, HF_MINUTE);
	/* It takes no place of others. The store in front knows one object. */
	rw_expect_message(w, "n004-1", "the act failed");
	fixes->keeps = false;
	rw_run(w, HF_MINUTE);
	assert_string_equal(phase_of(w), "Failed");
}

static void forget_uuids(void *arg, int node, struct hf_device_health *health)
{
	(void)arg;
	(void)node;
	for (size_t i = 0; i < health->devices.len; i++)
		health->devices.items[i].uuid = NULL;
}

/* A reset names its devices by UUID. */
static void a_device_without_a_uuid_is_rebooted(void **state)
{
	struct rw *w = *state;
	struct ra *a;

	w->ranks = forget_uuids;
	a = ra_begin(w, 10, "{'mode':'remediate','mend':{}," WIDE "}");
	rw_say(w, NODE, RW_RESET);
	rw_run(w, 9 * HF_MINUTE);
	assert_int_equal(ra_count(a), 0);
	rw_run(w, HF_HOUR);
	assert_string_equal(rw_rung(w, ACT), "reboot");
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_false(rw_tainted(w, NODE));
}

/* The template does not exist, so the acts wait. */
static void acts_that_wait_for_a_template_keep_no_other_waiting(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = create_fixes(w);

	hf_doc_unref(hf_steal(&fixes->template));
	fixes->actors->at_once = 50;
	rw_begin(w, 60,
		 "{'mode':'remediate','mend':{'rungs':['reset-device','external'],"
		 "'maxConcurrent':50," EXTERNAL "}," WIDE "}");
	for (int i = 0; i < 20; i++)
		rw_say(w, i, RW_REBOOT);
	rw_run(w, 10 * HF_MINUTE);
	for (int i = 0; i < 20; i++)
		assert_string_equal(ra_phase(fixes->actors, i), "Pending");
	rw_say(w, 30, RW_RESET);
	rw_run(w, 30 * HF_MINUTE);
	assert_string_equal(ra_phase(fixes->actors, 30), "Succeeded");
}

static bool count_lists(const struct rw *w, const struct hf_request *request,
			struct hf_fault *fault)
{
	(void)fault;
	*w->reads += request->verb == HF_VERB_LIST && request->resource == &hf_remediations;
	return false;
}

static void cancel_task(struct rw *w, int node)
{
	char name[32];

	snprintf(name, sizeof(name), "n%03d-1", node);
	rw_patch(w, &hf_remediations, name, "{'spec':{'cancel':true}}");
}

/* The controller asks for sixteen acts at a time. */
static void nodes_that_wait_for_persons_keep_no_other_waiting(void **state)
{
	struct rw *w = *state;
	struct ra *a =
		ra_begin(w, 60, "{'mode':'remediate','mend':{'rungs':['reset-device']}," WIDE "}");
	unsigned lists = 0;

	for (int i = 0; i < 20; i++)
		rw_say(w, i, RW_REBOOT);
	rw_run(w, 10 * HF_MINUTE);
	for (int i = 0; i < 20; i++)
		assert_string_equal(ra_phase(a, i), "Pending");
	rw_say(w, 30, RW_RESET);
	rw_run(w, 30 * HF_MINUTE);
	assert_string_equal(ra_phase(a, 30), "Succeeded");
	/* A task is looked at every five minutes, and after each report. */
	w->reads = &lists;
	w->fault = count_lists;
	rw_run(w, HF_HOUR);
	assert_in_range(lists, 1, 20 * 30);
	for (int i = 0; i < 20; i++)
		cancel_task(w, i);
	rw_run(w, HF_MINUTE);
	lists = 0;
	rw_say(w, 31, RW_RESET);
	rw_run(w, HF_HOUR);
	w->fault = NULL;
	assert_string_equal(ra_phase(a, 0), "Cancelled");
	assert_string_equal(ra_phase(a, 31), "Succeeded");
	/* No round asks for an act that would be refused. */
	assert_true(lists < 100);
}

/* The agent dies after a failed act, while the act of the next rung waits for a pod. */
static void an_act_that_waits_for_a_dead_agent_makes_way(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = create_fixes(w);

	rw_begin(
		w, 10,
		"{'mode':'remediate','mend':{'rungs':['reset-device','reboot','external']," EXTERNAL
		"},'drain':{'timeoutSeconds':3600}," WIDE "}");
	ra_all(fixes->actors, RA_FAILS, RA_MENDS);
	w->refuse_evictions = true;
	rw_pod(w, "other", NODE, "ReplicaSet");
	w->holder[NODE] = NULL;
	rw_say(w, NODE, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_string_equal(phase_of(w), "Failed");
	assert_string_equal(rw_rung(w, NAME "-2"), "reboot");
	w->mute[NODE] = true;
	rw_run(w, HF_HOUR);
	rw_expect_message(w, NAME "-2", "nothing is heard of the node since an act has failed");
	assert_string_equal(rw_rung(w, NAME "-3"), "external");
	w->refuse_evictions = false;
	(void)rw_remove(w, &hf_pods, "default", "other", 0);
	rw_run(w, HF_HOUR);
	assert_int_equal(fixes->creates, 1);
	assert_string_equal(rw_rung(w, NAME "-4"), "person");
}

/* Returns at once after the failure: the policy has not created the next act yet. */
static void fail_reset(struct rw *w)
{
	rw_say(w, NODE, RW_RESET);
	for (int i = 0; i < 300 && !hf_streq(phase_of(w), "Failed"); i++)
		rw_run(w, HF_SECOND / 10);
	assert_string_equal(phase_of(w), "Failed");
}

/* The clock of the node is behind, and the operator starts after a failed reset. The agent is not silent. */
static void a_new_leader_gives_no_node_away_by_its_clock(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = create_fixes(w);

	w->clock[NODE] = -HF_HOUR;
	rw_begin(w, 10, LADDER("'reset-device','reboot','external'"));
	ra_all(fixes->actors, RA_FAILS, RA_MENDS);
	fail_reset(w);
	rw_stop(w);
	rw_start(w);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(rw_rung(w, NAME "-2"), "reboot");
	assert_int_equal(fixes->creates, 0);
}

static void boot(struct rw *w)
{
	char boot[40], text[128];

	w->boots[NODE]++;
	rw_boot_id(w, NODE, boot);
	snprintf(text, sizeof(text), "{'status':{'nodeInfo':{'bootID':'%s'}}}", boot);
	rw_patch_status(w, &hf_nodes, NAME, text);
}

/* The act has waited for its template when a person rebooted the node, and the fault comes again. */
static void an_act_that_a_boot_has_cancelled_has_asked_no_one(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = create_fixes(w);
	struct hf_doc *template = hf_steal(&fixes->template);

	rw_begin(w, 10, LADDER("'external'"));
	rw_say(w, NODE, RW_REBOOT);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(rw_rung(w, ACT), "external");
	boot(w);
	rw_say(w, NODE, RW_REBOOT);
	fixes->template = template;
	rw_run(w, 2 * HF_MINUTE);
	assert_string_equal(phase_of(w), "Cancelled");
	assert_string_equal(rw_rung(w, NAME "-2"), "external");
	assert_int_equal(fixes->creates, 1);
}

/* A person reboots the node after a failed reset. It takes the driver some minutes to name the GPUs. */
static void a_node_that_has_just_booted_is_not_given_away(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = create_fixes(w);

	rw_begin(w, 10, LADDER("'reset-device','reboot','external'"));
	ra_all(fixes->actors, RA_FAILS, RA_NO_START);
	fail_reset(w);
	w->silent[NODE] = true;
	rw_run(w, HF_MINUTE);
	assert_string_equal(rw_rung(w, NAME "-2"), "reboot");
	boot(w);
	w->silent[NODE] = false;
	rw_say(w, NODE, RW_UNSEEN);
	rw_run(w, 14 * HF_MINUTE);
	assert_int_equal(ra_count(fixes->actors), 2);
	rw_say(w, NODE, RW_WELL);
	rw_run(w, HF_MINUTE);
	assert_false(rw_tainted(w, NODE));
	assert_int_equal(fixes->creates, 0);
}

/* An agent without news reports every five minutes. The policy calls it silent after one. */
static void a_node_is_not_lost_between_two_reports(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = create_fixes(w);

	rw_begin(
		w, 10,
		"{'mode':'remediate','staleAfterSeconds':60,'mend':{'rungs':['reset-device','reboot',"
		"'external']," EXTERNAL "}," WIDE "}");
	ra_all(fixes->actors, RA_FAILS, RA_NO_START);
	fail_reset(w);
	rw_run(w, 20 * HF_MINUTE);
	assert_string_equal(rw_rung(w, NAME "-2"), "reboot");
	assert_int_equal(ra_count(fixes->actors), 2);
	assert_int_equal(fixes->creates, 0);
}

/* Somebody deletes the report of a node after a failed reset. Its agent lives, and writes the next one some minutes later. */
static void delete_report(struct rw *w, bool restarts)
{
	struct fixes *fixes = create_fixes(w);

	rw_begin(w, 10, LADDER("'reset-device','reboot','external'"));
	ra_all(fixes->actors, RA_FAILS, RA_MENDS);
	rw_run(w, 20 * HF_MINUTE);
	fail_reset(w);
	if (restarts)
		rw_stop(w);
	rw_delete(w, &hf_devicehealths, NAME);
	if (restarts)
		rw_start(w);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(rw_rung(w, NAME "-2"), "reboot");
	assert_int_equal(fixes->creates, 0);
}

static void a_deleted_report_gives_no_node_away(void **state)
{
	delete_report(*state, false);
}

static void a_new_leader_gives_no_node_without_a_report_away(void **state)
{
	delete_report(*state, true);
}

/* The policy gets rung external while a person has a task for the node. */
static void another_controller_is_asked_beside_a_task_of_a_person(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = create_fixes(w);

	rw_begin(w, 10, LADDER("'reset-device'"));
	rw_say(w, NODE, RW_REBOOT);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(rw_rung(w, ACT), "person");
	rw_patch(w, &hf_healthpolicies, "p",
		 "{'spec':{'mend':{'rungs':['reset-device','external']}}}");
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(rw_rung(w, NAME "-2"), "external");
	assert_int_equal(fixes->creates, 1);
}

/* The pod on the slow node works on, so a person is asked first. */
static void a_slow_node_is_given_away_when_its_pods_have_ended(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = create_fixes(w);

	rw_begin(w, 10, LADDER("'external'"));
	rw_pod(w, "work", NODE, "ReplicaSet");
	rw_run(w, 2 * HF_SECOND);
	rw_say(w, NODE, RW_SLOW);
	rw_run(w, HF_HOUR);
	assert_string_equal(rw_rung(w, ACT), "person");
	assert_int_equal(ra_count(fixes->actors), 1);
	assert_false(rw_is_evicted(w, "default", "work"));
	rw_end_work(w, "work", NODE);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(rw_rung(w, NAME "-2"), "external");
	assert_int_equal(fixes->creates, 1);
}

static void report_no_answer(void *arg, int node, struct hf_device_health *health)
{
	struct hf_device_report *devices = health->devices.items;

	(void)arg;
	(void)node;
	if (devices[1].faults.len == 0)
		return;
	devices[0].state = devices[1].state;
	devices[0].faults = devices[1].faults;
	devices[0].faults.items[0].detector = "driver";
	devices[0].faults.items[0].code = 3;
}

/* Pods hang with the driver, so they would never end by themselves. */
static void a_driver_that_does_not_answer_keeps_no_pods(void **state)
{
	struct rw *w = *state;

	w->ranks = report_no_answer;
	(void)ra_begin(w, 10, "{'mode':'remediate','mend':{}," WIDE "}");
	rw_pod(w, "work", NODE, "ReplicaSet");
	rw_run(w, 2 * HF_SECOND);
	rw_say(w, NODE, RW_SLOW);
	rw_run(w, 5 * HF_MINUTE);
	assert_true(rw_tainted(w, NODE));
	assert_string_equal(rw_rung(w, ACT), "reboot");
	assert_true(rw_is_evicted(w, "default", "work"));
}

/* The policy waits until pods end. */
static void a_policy_that_evicts_none_reboots_when_pods_have_ended(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(
		w, 10, "{'mode':'remediate','drain':{'mode':'complete'},'mend':{}," WIDE "}");

	rw_pod(w, "work", NODE, "ReplicaSet");
	rw_run(w, 2 * HF_SECOND);
	rw_say(w, NODE, RW_REBOOT);
	rw_run(w, HF_HOUR);
	rw_expect_next(w, NODE, "held restart-node undrainable");
	assert_int_equal(ra_count(a), 0);
	rw_end_work(w, "work", NODE);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(rw_rung(w, ACT), "reboot");
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
}

/* Its last report names a pod, which no kubelet can end. */
static void a_slow_node_that_is_lost_is_given_away(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = create_fixes(w);

	w->people_ask = true;
	rw_begin(w, 10, LADDER("'external'"));
	ra_all(fixes->actors, RA_NEVER, RA_NEVER);
	rw_pod(w, "work", NODE, "ReplicaSet");
	rw_run(w, 2 * HF_SECOND);
	rw_say(w, NODE, RW_SLOW);
	rw_run(w, HF_MINUTE);
	ra_request(fixes->actors, NODE, 2, "reboot", "");
	rw_run(w, HF_MINUTE);
	w->silent[NODE] = true;
	rw_set_ready(w, NODE, "Unknown");
	rw_run(w, HF_HOUR);
	assert_string_equal(rw_rung(w, NAME "-3"), "external");
	assert_int_equal(fixes->creates, 1);
}

/* After the boot the agent knows nothing of the GPU, and a pod that was given it starts no more. The policy evicts none. */
static void work_on_a_device_that_is_gone_holds_no_act(void **state)
{
	struct rw *w = *state;
	struct fixes *fixes = create_fixes(w);

	rw_begin(w, 10,
		 "{'mode':'remediate','drain':{'mode':'complete'},'mend':{'rungs':['reset-device',"
		 "'reboot','external']," EXTERNAL "}," WIDE "}");
	ra_all(fixes->actors, RA_FAILS, RA_NO_START);
	fail_reset(w);
	w->silent[NODE] = true;
	rw_run(w, HF_MINUTE);
	assert_string_equal(rw_rung(w, NAME "-2"), "reboot");
	boot(w);
	w->silent[NODE] = false;
	rw_pod(w, "work", NODE, "ReplicaSet");
	rw_say(w, NODE, RW_UNSEEN);
	rw_run(w, 20 * HF_MINUTE);
	assert_string_equal(rw_rung(w, NAME "-3"), "external");
	rw_run(w, HF_HOUR);
	assert_string_equal(rw_rung(w, NAME "-4"), "person");
}

int main(int argc, char **argv)
{
#define T(test) cmocka_unit_test_setup_teardown(test, rw_setup, rw_teardown)
	const struct CMUnitTest tests[] = {
		T(the_object_goes_with_the_proof),
		T(a_create_without_an_answer_is_proved),
		cmocka_unit_test(the_object_goes_although_the_policy_has_changed),
		T(the_object_goes_with_the_node),
		cmocka_unit_test(a_fault_from_before_the_act_is_mended),
		T(a_node_that_never_comes_back_is_given_away),
		T(a_gpu_that_never_comes_back_is_a_task_of_a_person),
		T(a_node_whose_agent_stays_away_after_a_reboot_is_given_away),
		T(a_node_without_a_report_is_given_away),
		T(an_object_that_does_not_go_is_a_task_of_a_person),
		T(nodes_that_wait_for_persons_keep_no_other_waiting),
		T(an_object_that_may_not_be_deleted_is_a_task_of_a_person),
		T(a_device_without_a_uuid_is_rebooted),
		T(acts_that_wait_for_a_template_keep_no_other_waiting),
		T(an_act_that_waits_for_a_dead_agent_makes_way),
		T(a_new_leader_gives_no_node_away_by_its_clock),
		T(an_act_that_a_boot_has_cancelled_has_asked_no_one),
		T(a_node_that_has_just_booted_is_not_given_away),
		T(a_node_is_not_lost_between_two_reports),
		T(a_deleted_report_gives_no_node_away),
		T(a_new_leader_gives_no_node_without_a_report_away),
		T(a_slow_node_is_given_away_when_its_pods_have_ended),
		T(a_driver_that_does_not_answer_keeps_no_pods),
		T(a_policy_that_evicts_none_reboots_when_pods_have_ended),
		T(a_slow_node_that_is_lost_is_given_away),
		T(work_on_a_device_that_is_gone_holds_no_act),
		T(another_controller_is_asked_beside_a_task_of_a_person),
		T(a_node_that_dies_under_the_act_of_a_person_is_given_away),
		T(the_report_of_a_dead_node_proves_nothing_to_a_new_leader),
		T(pods_of_a_dead_node_do_not_keep_it_from_being_given_away),
	};

	rw_choose_tests(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
