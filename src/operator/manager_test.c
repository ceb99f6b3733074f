/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/fake_store.h"
#include "harness/test.h"
#include "operator/manager.h"
#include "operator/script_test.h"

#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The step is replaced by a script (script_test.c).  These tests show only when the operator
 * acts. */

struct life {
	struct hf_loop *loop;
	struct fake_store *store;
	struct hf_metrics *metrics;
	struct hf_manager *manager;
	enum hf_manager_state state;
	char why[256];
	int problem, stopped;
	char problem_text[512];
};

static void on_changed(void *arg, enum hf_manager_state state, const char *why)
{
	struct life *life = arg;

	life->state = state;
	snprintf(life->why, sizeof(life->why), "%s", why);
}

static void on_problem(void *arg, const char *what, int code, const char *message)
{
	struct life *life = arg;

	life->problem = code;
	snprintf(life->problem_text, sizeof(life->problem_text), "%s: %s", what, message);
}

static void on_job_problem(void *arg, const char *key, int code, const char *message)
{
}

static void on_over(void *arg)
{
	((struct life *)arg)->stopped++;
}

static void begin(struct life *life, bool elect, const char *rival_ns)
{
	struct hf_manager_options options = {
		.op = {.loop = life->loop,
		       .store = &life->store->base,
		       .frameworks = script_frameworks,
		       .metrics = life->metrics,
		       .problem = on_job_problem,
		       .seed = 3},
		.elect = elect,
		.lease_ns = "kubeflow",
		.lease_name = "the-lease",
		.identity = "me",
		.rival_ns = {rival_ns, rival_ns == NULL ? NULL : "holdfast-system"},
		.changed = on_changed,
		.problem = on_problem,
		.arg = life,
	};
	struct hf_error err;

	assert_ok(hf_manager_create(&options, &life->manager, &err), &err);
	hf_manager_start(life->manager);
}

static int setup_life(void **state)
{
	struct life *life = hf_xcalloc(1, sizeof(*life));

	memset(&brain, 0, sizeof(brain));
	brain.start_time = HF_TIME_NONE;
	brain.plan.wake_at = HF_TIME_NEVER;
	brain.once = true;
	life->loop = hf_loop_create_virtual(JOB_TIME);
	life->store = fake_store_create();
	life->metrics = hf_metrics_create();
	*state = life;
	return 0;
}

static int teardown_life(void **state)
{
	struct life *life = *state;

	hf_manager_destroy(life->manager);
	fake_store_destroy(life->store);
	hf_metrics_destroy(life->metrics);
	hf_loop_destroy(life->loop);
	free(life);
	return 0;
}

static void pass_time(struct life *life, hf_time span)
{
	hf_loop_run_until(life->loop, hf_loop_mono(life->loop) + span);
}

/* The next request of this kind.  Other requests, such as events and renewals, stay in the
 * queue. */
static struct fake_call *request(struct life *life, enum hf_verb verb, const char *plural)
{
	struct fake_call *call;

	pass_time(life, 0);
	while ((call = fake_next(life->store)) != NULL)
		if (call->request->verb == verb &&
		    hf_streq(call->request->resource->plural, plural))
			return call;
	fail_msg("no %d of %s was sent", (int)verb, plural);
	return NULL;
}

/* How many writes were sent, without events: those are written even while the operator does
 * nothing. */
static size_t writes(const struct life *life)
{
	size_t n = 0;

	for (size_t i = 0; i < life->store->n_calls; i++) {
		const struct hf_request *r = life->store->calls[i].request;

		n += r->verb != HF_VERB_GET && r->verb != HF_VERB_LIST &&
		     !hf_streq(r->resource->plural, "leases") &&
		     !hf_streq(r->resource->plural, "events");
	}
	return n;
}

static void answer_lists(struct life *life, struct hf_doc *job)
{
	struct hf_doc *jobs[] = {job};

	fake_answer_list(request(life, HF_VERB_LIST, "pods"), "100", "", NULL, 0);
	fake_answer_list(request(life, HF_VERB_LIST, "services"), "100", "", NULL, 0);
	fake_answer_list(request(life, HF_VERB_LIST, "pytorchjobs"), "100", "", jobs, 1);
	pass_time(life, 0);
}

static struct hf_doc *lease_of(const char *holder)
{
	HF_AUTOFREE char *text = hf_xasprintf(
		"{\"metadata\":{\"name\":\"the-lease\",\"namespace\":\"kubeflow\",\"uid\":\"u\","
		"\"resourceVersion\":\"5\"},\"spec\":{\"holderIdentity\":\"%s\"}}",
		holder);

	return hf_doc_from_text(text, strlen(text));
}

static void get_lease(struct life *life)
{
	fake_refuse(request(life, HF_VERB_GET, "leases"), HF_E_NOT_FOUND);
	fake_answer_object(request(life, HF_VERB_CREATE, "leases"), lease_of("me"));
}

static struct hf_doc *written_with(const char *manager, const char *time, int version, int active)
{
	HF_AUTOFREE char *text = hf_xasprintf(
		"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{"
		"\"name\":\"ddp\",\"namespace\":\"n\",\"uid\":\"u-1\",\"resourceVersion\":\"%d\","
		"\"managedFields\":[{\"manager\":\"%s\",\"subresource\":\"status\",\"time\":\"%s\","
		"\"fieldsV1\":{\"f:status\":{\"f:replicaStatuses\":{}}}}]"
		"},\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"template\":{\"spec\":{"
		"\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"}]}}}}},"
		"\"status\":{\"replicaStatuses\":{\"Worker\":{\"active\":%d}}}}",
		version, manager, time, active);

	return hf_doc_from_text(text, strlen(text));
}

/* Each version has another status. */
static struct hf_doc *written_by(const char *manager, const char *time, int version)
{
	return written_with(manager, time, version, version);
}

static const char *not_ready(struct life *life)
{
	static struct hf_error err;

	hf_error_clear(&err);
	return hf_manager_ready(life->manager, &err) == 0 ? "ready" : err.text;
}

static struct fake_watch *job_watch(struct life *life)
{
	struct fake_watch *watch = fake_watch_live(life->store);

	assert_non_null(watch);
	return watch; /* the newest: jobs are listed last */
}

/* --- alone ------------------------------------------------------------------------------------ */

static void test_an_operator_without_election_acts_without_a_lease(void **state)
{
	struct life *life = *state;

	want(0, HF_ACTION_CREATE_POD, 0, 1);
	begin(life, false, NULL);
	pass_time(life, 0);
	assert_int_equal(life->state, HF_MANAGER_LEADING);
	assert_string_equal(not_ready(life), "jobs and pods are being listed");
	answer_lists(life, job_doc("ddp", "u-1", 7, ""));
	assert_string_equal(not_ready(life), "ready");
	request(life, HF_VERB_CREATE, "pods");
}

/* --- the Lease -------------------------------------------------------------------------------- */

static void test_nothing_is_listed_before_the_lease_is_held(void **state)
{
	struct life *life = *state;
	struct fake_call *call;

	begin(life, true, NULL);
	call = request(life, HF_VERB_GET, "leases");
	assert_string_equal(not_ready(life), "waiting for the Lease");
	fake_answer_object(call, lease_of("other"));
	assert_int_equal(life->state, HF_MANAGER_STANDBY);
	assert_string_equal(not_ready(life), "ready");
	assert_null(fake_next(life->store));
}

static void test_a_lease_that_may_not_be_read_says_what_has_the_right(void **state)
{
	struct life *life = *state;

	begin(life, true, NULL);
	fake_refuse(request(life, HF_VERB_GET, "leases"), HF_E_FORBIDDEN);
	assert_int_equal(life->problem, HF_E_FORBIDDEN);
	assert_non_null(strstr(life->problem_text, "`holdfast manifests --operator` allows"));
	assert_non_null(strstr(life->problem_text, "--leader-election-id"));
	assert_string_equal(not_ready(life), "waiting for the Lease");
}

static void test_a_lease_that_is_lost_ends_what_is_under_way(void **state)
{
	struct life *life = *state;
	struct fake_call *pod;

	want(0, HF_ACTION_CREATE_POD, 0, 1);
	want(1, HF_ACTION_CREATE_POD, 1, 1);
	begin(life, true, NULL);
	get_lease(life);
	answer_lists(life, job_doc("ddp", "u-1", 7, ""));
	pod = request(life, HF_VERB_CREATE, "pods");
	assert_int_equal(pod->request->timeout, 10 * HF_SECOND);
	/* No renewal is answered. */
	pass_time(life, 9999 * HF_MS);
	assert_int_equal(life->state, HF_MANAGER_LEADING);
	pass_time(life, HF_MS);
	assert_int_equal(life->state, HF_MANAGER_STANDBY);
	assert_true(pod->canceled);
	assert_null(hf_manager_operator(life->manager));
	assert_int_equal(writes(life), 1);
}

static void test_a_process_that_was_stopped_sends_nothing_whatever_runs_first(void **state)
{
	struct life *life = *state;
	struct fake_call *pod;

	want(0, HF_ACTION_CREATE_POD, 0, 1);
	want(1, HF_ACTION_CREATE_POD, 1, 5);
	begin(life, true, NULL);
	get_lease(life);
	answer_lists(life, job_doc("ddp", "u-1", 7, ""));
	pod = request(life, HF_VERB_CREATE, "pods");
	hf_loop_freeze(life->loop, HF_MINUTE);
	/* The process was stopped; the reply that opens the next stage comes before any timer has
	 * run. */
	grant_pod(pod, 101);
	assert_int_equal(writes(life), 1);
	pass_time(life, 0);
	assert_int_equal(life->state, HF_MANAGER_STANDBY);
	pass_time(life, HF_HOUR / 60);
	assert_int_equal(writes(life), 1);
	hf_manager_update_metrics(life->manager);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)1 << 20);
	hf_metrics_render(life->metrics, &text);
	assert_non_null(strstr(text.data, "leader_election_master_status{name=\"the-lease\"} 0\n"));
	assert_non_null(strstr(text.data, "holdfast_writes_held_back_total 5\n"));
}

static void test_counters_go_on_when_it_leads_again(void **state)
{
	struct life *life = *state;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)1 << 20);

	begin(life, true, NULL);
	get_lease(life);
	answer_lists(life, job_doc("ddp", "u-1", 7, ""));
	hf_manager_update_metrics(life->manager);
	hf_loop_freeze(life->loop, HF_MINUTE);
	pass_time(life, 0);
	hf_manager_update_metrics(life->manager);
	hf_metrics_render(life->metrics, &text);
	/* The next leader exports the series of jobs from now on. */
	assert_null(strstr(text.data, "holdfast_job_info{"));
	assert_non_null(strstr(text.data, "workqueue_adds_total{name=\"holdfast\"} 1\n"));
	fake_answer_object(request(life, HF_VERB_GET, "leases"), lease_of("me"));
	fake_answer_object(request(life, HF_VERB_UPDATE, "leases"), lease_of("me"));
	answer_lists(life, job_doc("ddp", "u-1", 7, ""));
	hf_manager_update_metrics(life->manager);
	hf_strbuf_clear(&text);
	hf_metrics_render(life->metrics, &text);
	assert_non_null(strstr(text.data, "workqueue_adds_total{name=\"holdfast\"} 2\n"));
	assert_non_null(strstr(text.data, "holdfast_relists_total{kind=\"Pod\"} 2\n"));
	assert_non_null(strstr(text.data, "holdfast_job_info{namespace=\"n\",job=\"ddp\""));
}

/* --- rivals ----------------------------------------------------------------------------------- */

static struct hf_doc *deployment(int ready)
{
	HF_AUTOFREE char *text = hf_xasprintf(
		"{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":"
		"\"training-operator\",\"namespace\":\"kubeflow\"},\"status\":{\"readyReplicas\":%d}}",
		ready);

	return hf_doc_from_text(text, strlen(text));
}

/* Answer the request for the event that says why the operator does nothing. */
static void grant_event(struct life *life, const char *kind, const char *name)
{
	struct fake_call *call = request(life, HF_VERB_CREATE, "events");
	const struct hf_json *event = hf_doc_json(call->request->body);

	assert_string_equal(hf_json_path_str(event, "involvedObject", "kind", NULL), kind);
	assert_string_equal(hf_json_path_str(event, "involvedObject", "name", NULL), name);
	assert_string_equal(hf_json_path_str(event, "reason", NULL), "AnotherOperator");
	fake_answer_object(call, fake_object("e", "e", "1", ""));
}

static void test_beside_a_ready_go_operator_it_waits_and_looks_again(void **state)
{
	struct life *life = *state;
	struct fake_call *call;

	begin(life, false, "kubeflow");
	call = request(life, HF_VERB_GET, "deployments");
	assert_string_equal(call->request->ns, "kubeflow");
	assert_string_equal(call->request->name, "training-operator");
	fake_answer_object(call, deployment(1));
	assert_int_equal(life->state, HF_MANAGER_YIELDING);
	assert_string_equal(not_ready(life), "Deployment kubeflow/training-operator is ready and "
					     "serves the same jobs: scale it to 0");
	grant_event(life, "Deployment", "training-operator");
	pass_time(life, 29 * HF_SECOND);
	assert_null(fake_next(life->store));
	pass_time(life, 8 * HF_SECOND);
	fake_answer_object(request(life, HF_VERB_GET, "deployments"), deployment(1));
	fake_answer_object(request(life, HF_VERB_PATCH, "events"), fake_object("e", "e", "2", ""));
	pass_time(life, 59 * HF_SECOND);
	assert_null(fake_next(life->store));
	pass_time(life, 15 * HF_SECOND);
	fake_answer_object(request(life, HF_VERB_GET, "deployments"), deployment(0));
	call = request(life, HF_VERB_GET, "deployments");
	assert_string_equal(call->request->ns, "holdfast-system");
	fake_refuse(call, HF_E_NOT_FOUND);
	assert_int_equal(life->state, HF_MANAGER_LEADING);
}

static void test_a_go_operator_for_other_kinds_is_no_hindrance(void **state)
{
	struct life *life = *state;
	static const char text[] =
		"{\"metadata\":{\"name\":\"training-operator\",\"namespace\":\"kubeflow\"},\"spec\":{"
		"\"template\":{\"spec\":{\"containers\":[{\"args\":[\"--enable-scheme=mpijob\"]}]}}},"
		"\"status\":{\"readyReplicas\":1}}";

	begin(life, false, "kubeflow");
	fake_answer_object(request(life, HF_VERB_GET, "deployments"),
			   hf_doc_from_text(text, strlen(text)));
	fake_refuse(request(life, HF_VERB_GET, "deployments"), HF_E_NOT_FOUND);
	assert_int_equal(life->state, HF_MANAGER_LEADING);
}

static void test_a_go_operator_that_becomes_ready_later_is_seen_within_a_minute(void **state)
{
	struct life *life = *state;

	begin(life, false, "kubeflow");
	for (int i = 0; i < 2; i++)
		fake_refuse(request(life, HF_VERB_GET, "deployments"), HF_E_NOT_FOUND);
	answer_lists(life, job_doc("ddp", "u-1", 7, ""));
	pass_time(life, HF_MANAGER_LOOK_AGAIN - HF_MS);
	assert_null(fake_next(life->store));
	/* Neither an API server without an answer nor a missing right stops the operator or its
	 * search. */
	pass_time(life, HF_MS);
	fake_refuse(request(life, HF_VERB_GET, "deployments"), HF_E_UNAVAILABLE);
	fake_refuse(request(life, HF_VERB_GET, "deployments"), HF_E_FORBIDDEN);
	assert_int_equal(life->problem, HF_E_UNAVAILABLE);
	assert_null(fake_next(life->store));
	pass_time(life, HF_MANAGER_LOOK_AGAIN);
	assert_int_equal(life->state, HF_MANAGER_LEADING);
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	fake_answer_object(request(life, HF_VERB_GET, "deployments"), deployment(1));
	assert_int_equal(life->state, HF_MANAGER_YIELDING);
	assert_null(hf_manager_operator(life->manager));
	grant_event(life, "Deployment", "training-operator");
	/* Writes that the rival made before it was scaled down do not make the new leader step
	 * back. */
	pass_time(life, HF_MANAGER_YIELD_MIN * 2);
	for (int i = 0; i < 2; i++)
		fake_refuse(request(life, HF_VERB_GET, "deployments"), HF_E_NOT_FOUND);
	answer_lists(life, written_by("manager", "2023-11-14T22:14:25Z", 8));
	pass_time(life, 0);
	assert_int_equal(life->state, HF_MANAGER_LEADING);
	assert_int_equal(writes(life), 1);
}

static void test_no_deployment_and_no_permission_to_look_are_no_hindrance(void **state)
{
	struct life *life = *state;

	begin(life, false, "kubeflow");
	fake_refuse(request(life, HF_VERB_GET, "deployments"), HF_E_FORBIDDEN);
	fake_refuse(request(life, HF_VERB_GET, "deployments"), HF_E_NOT_FOUND);
	assert_int_equal(life->problem, HF_E_FORBIDDEN);
	assert_int_equal(life->state, HF_MANAGER_LEADING);
}

static void test_an_api_server_that_is_away_is_asked_again(void **state)
{
	struct life *life = *state;

	begin(life, false, "kubeflow");
	for (int i = 0; i < 5; i++) {
		fake_refuse(request(life, HF_VERB_GET, "deployments"), HF_E_UNAVAILABLE);
		assert_int_equal(life->state, HF_MANAGER_LOOKING);
		assert_string_equal(not_ready(life), "looking for another operator");
		pass_time(life, HF_MINUTE);
	}
	fake_refuse(request(life, HF_VERB_GET, "deployments"), HF_E_NOT_FOUND);
	fake_refuse(request(life, HF_VERB_GET, "deployments"), HF_E_NOT_FOUND);
	assert_int_equal(life->state, HF_MANAGER_LEADING);
}

static void test_a_status_by_another_writer_makes_the_operator_step_back_at_once(void **state)
{
	struct life *life = *state;

	begin(life, false, NULL);
	pass_time(life, 0);
	answer_lists(life, job_doc("ddp", "u-1", 7, ""));
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	fake_event(job_watch(life), HF_EVENT_MODIFIED,
		   written_by("manager", "2023-11-14T22:13:21Z", 8));
	pass_time(life, 0);
	assert_int_equal(life->state, HF_MANAGER_YIELDING);
	assert_string_equal(
		life->why,
		"another operator writes to the jobs of this one, as 'manager'; only one may run");
	assert_int_equal(writes(life), 0);
	assert_null(hf_manager_operator(life->manager));
	grant_event(life, "PyTorchJob", "ddp");
}

/* Any client that may write a job can name a rival in managedFields. */
static void test_the_word_of_a_job_that_a_rival_wrote_it_is_not_enough(void **state)
{
	struct life *life = *state;

	begin(life, false, NULL);
	pass_time(life, 0);
	pass_time(life, 5 * HF_SECOND);
	/* The forged managedFields are in the first list, and then in a job with an unchanged
	 * status. */
	answer_lists(life, written_with("manager", "2023-11-14T22:13:21Z", 8, 1));
	assert_int_equal(life->state, HF_MANAGER_LEADING);
	fake_event(job_watch(life), HF_EVENT_MODIFIED,
		   written_with("manager", "2023-11-14T22:13:22Z", 9, 1));
	pass_time(life, HF_MINUTE);
	assert_int_equal(life->state, HF_MANAGER_LEADING);
}

/* During a pass a changed status may be this operator's own, even if managedFields name a rival. */
static void test_a_status_that_may_be_our_own_is_no_rivals(void **state)
{
	struct life *life = *state;
	struct fake_call *pod;

	begin(life, false, NULL);
	pass_time(life, 0);
	pass_time(life, 5 * HF_SECOND);
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	answer_lists(life, job_doc("ddp", "u-1", 7, ""));
	pod = request(life, HF_VERB_CREATE, "pods");
	fake_event(job_watch(life), HF_EVENT_MODIFIED,
		   written_by("manager", "2023-11-14T22:13:21Z", 8));
	pass_time(life, 0);
	assert_int_equal(life->state, HF_MANAGER_LEADING);
	grant_pod(pod, 101);
	pass_time(life, HF_SECOND);
	fake_event(job_watch(life), HF_EVENT_MODIFIED,
		   written_by("manager", "2023-11-14T22:13:22Z", 9));
	pass_time(life, 0);
	assert_int_equal(life->state, HF_MANAGER_YIELDING);
}

static void test_the_operator_comes_back_when_the_rival_has_fallen_silent(void **state)
{
	struct life *life = *state;

	begin(life, false, NULL);
	pass_time(life, 0);
	pass_time(life, 5 * HF_SECOND);
	answer_lists(life, job_doc("ddp", "u-1", 7, ""));
	fake_event(job_watch(life), HF_EVENT_MODIFIED,
		   written_by("manager", "2023-11-14T22:13:22Z", 8));
	pass_time(life, 0);
	assert_int_equal(life->state, HF_MANAGER_YIELDING);
	/* The rival writes again, which the list shows before this operator has done anything. */
	pass_time(life, 40 * HF_SECOND);
	assert_int_equal(life->state, HF_MANAGER_LEADING);
	answer_lists(life, written_by("manager", "2023-11-14T22:13:50Z", 9));
	assert_int_equal(life->state, HF_MANAGER_YIELDING);
	pass_time(life, 40 * HF_SECOND);
	assert_int_equal(life->state, HF_MANAGER_YIELDING);
	pass_time(life, 40 * HF_SECOND);
	assert_int_equal(life->state, HF_MANAGER_LEADING);
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	answer_lists(life, written_by("manager", "2023-11-14T22:13:50Z", 9));
	assert_int_equal(life->state, HF_MANAGER_LEADING);
	request(life, HF_VERB_CREATE, "pods");
}

/* --- the end ---------------------------------------------------------------------------------- */

static void test_the_end_waits_for_replies_then_gives_the_lease_up(void **state)
{
	struct life *life = *state;
	struct fake_call *pod;

	want(0, HF_ACTION_CREATE_POD, 0, 1);
	begin(life, true, NULL);
	get_lease(life);
	answer_lists(life, job_doc("ddp", "u-1", 7, ""));
	pod = request(life, HF_VERB_CREATE, "pods");
	hf_manager_stop(life->manager, on_over, life);
	pass_time(life, HF_SECOND);
	assert_int_equal(life->stopped, 0);
	grant_pod(pod, 101);
	/* The event about the rival has two seconds to be written, then: */
	pass_time(life, 2 * HF_SECOND);
	fake_answer_object(request(life, HF_VERB_UPDATE, "leases"), lease_of("me"));
	for (int i = 0; i < 20 && life->stopped == 0; i++) {
		struct fake_call *call = fake_next(life->store);

		if (call != NULL && hf_streq(call->request->resource->plural, "leases"))
			fake_answer_object(call, lease_of(""));
		pass_time(life, 100 * HF_MS);
	}
	assert_int_equal(life->stopped, 1);
	assert_int_equal(life->state, HF_MANAGER_OVER);
	struct hf_request *last = life->store->calls[life->store->n_calls - 1].request;
	assert_string_equal(
		hf_json_path_str(hf_doc_json(last->body), "spec", "holderIdentity", NULL), "");
}

static void test_the_end_does_not_wait_for_ever(void **state)
{
	struct life *life = *state;

	want(0, HF_ACTION_CREATE_POD, 0, 1);
	begin(life, false, NULL);
	pass_time(life, 0);
	answer_lists(life, job_doc("ddp", "u-1", 7, ""));
	request(life, HF_VERB_CREATE, "pods");
	hf_manager_stop(life->manager, on_over, life);
	pass_time(life, 10 * HF_SECOND);
	assert_int_equal(life->stopped, 1);
}

static void test_the_end_may_come_in_any_state(void **state)
{
	struct life *life = *state;

	begin(life, true, "kubeflow");
	fake_answer_object(request(life, HF_VERB_GET, "leases"), lease_of("other"));
	hf_manager_stop(life->manager, on_over, life);
	pass_time(life, 0);
	assert_int_equal(life->stopped, 1);
	hf_manager_destroy(life->manager);
	begin(life, false, "kubeflow");
	request(life, HF_VERB_GET, "deployments");
	hf_manager_stop(life->manager, on_over, life);
	pass_time(life, 0);
	assert_int_equal(life->stopped, 2);
	hf_manager_destroy(life->manager);
	begin(life, false, "kubeflow");
	fake_answer_object(request(life, HF_VERB_GET, "deployments"), deployment(1));
	hf_manager_stop(life->manager, on_over, life);
	pass_time(life, HF_HOUR);
	assert_int_equal(life->stopped, 3);
}

#define L(name) cmocka_unit_test_setup_teardown(name, setup_life, teardown_life)

int main(void)
{
	const struct CMUnitTest tests[] = {
		L(test_an_operator_without_election_acts_without_a_lease),
		L(test_nothing_is_listed_before_the_lease_is_held),
		L(test_a_lease_that_may_not_be_read_says_what_has_the_right),
		L(test_a_lease_that_is_lost_ends_what_is_under_way),
		L(test_a_process_that_was_stopped_sends_nothing_whatever_runs_first),
		L(test_counters_go_on_when_it_leads_again),
		L(test_beside_a_ready_go_operator_it_waits_and_looks_again),
		L(test_a_go_operator_that_becomes_ready_later_is_seen_within_a_minute),
		L(test_a_go_operator_for_other_kinds_is_no_hindrance),
		L(test_no_deployment_and_no_permission_to_look_are_no_hindrance),
		L(test_an_api_server_that_is_away_is_asked_again),
		L(test_a_status_by_another_writer_makes_the_operator_step_back_at_once),
		L(test_the_word_of_a_job_that_a_rival_wrote_it_is_not_enough),
		L(test_a_status_that_may_be_our_own_is_no_rivals),
		L(test_the_operator_comes_back_when_the_rival_has_fallen_silent),
		L(test_the_end_waits_for_replies_then_gives_the_lease_up),
		L(test_the_end_does_not_wait_for_ever),
		L(test_the_end_may_come_in_any_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
