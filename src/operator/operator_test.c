/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/script_test.h"

#include <stdio.h>
#include <string.h>

/* Tests the course of passes: their order, the status patch, the gates, when a job is stepped, and
 * the end. */

/* --- order ------------------------------------------------------------------------------------ */

static void test_steps_begin_when_every_cache_is_filled(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *jobs[] = {job_doc("a", "u-a", 7, ""), job_doc("b", "u-b", 8, "")};

	start_with(bench, jobs, 2);
	turn(bench);
	assert_int_equal(brain.steps, 2);
	assert_int_equal(bench->passes, 2);
	assert_null(next(bench));
	assert_true(hf_operator_idle(bench->op));
}

static void test_actions_wait_for_the_status_and_stages_for_each_other(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call, *first, *second;

	want_status(JOB_TIME, true);
	want(0, HF_ACTION_CREATE_SERVICE, 0, 1);
	want(1, HF_ACTION_CREATE_POD, 1, 2);
	want(2, HF_ACTION_DELETE_POD, 3, 1);
	start(bench);
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_string_equal(call->request->subresource, "status");
	assert_string_equal(call->request->name, "ddp");
	assert_string_equal(hf_doc_resource_version(call->request->body), "7");
	assert_null(next(bench));
	grant_status(call, 101);
	call = expect(bench, HF_VERB_CREATE, "services");
	assert_null(next(bench));
	fake_answer_object(call, pod_doc("ddp-worker-0", "s", 102, "u-1", ""));
	first = expect(bench, HF_VERB_CREATE, "pods");
	second = expect(bench, HF_VERB_CREATE, "pods");
	grant_pod(second, 103);
	assert_null(next(bench));
	grant_pod(first, 104);
	call = expect(bench, HF_VERB_DELETE, "pods");
	assert_string_equal(call->request->precondition_uid, "p-uid");
	assert_int_equal(bench->passes, 0);
	fake_refuse(call, HF_E_NOT_FOUND);
	assert_int_equal(bench->passes, 1);
	assert_int_equal(bench->last_code, 0);
	/* The replies are already in the caches, so the next step sees the new objects. */
	assert_null(next(bench));
	gathered(bench);
	assert_int_equal(brain.steps, 2);
	assert_int_equal(brain.pods, 2);
	assert_int_equal(brain.services, 1);
}

static void test_a_status_that_needs_no_writing_lets_actions_begin(void **state)
{
	struct bench *bench = *state;

	want(0, HF_ACTION_CREATE_POD, 0, 1);
	start(bench);
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 101);
	assert_null(next(bench));
	assert_int_equal(bench->last_code, 0);
}

/* --- the status ------------------------------------------------------------------------------- */

static void fails_then_rereads(struct bench *bench, int code)
{
	struct fake_call *call;

	brain.once = false;
	want_status(JOB_TIME, true);
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	start(bench);
	fake_refuse(expect(bench, HF_VERB_PATCH, "pytorchjobs"), code);
	call = expect(bench, HF_VERB_GET, "pytorchjobs");
	assert_int_equal(brain.steps, 1);
	fake_answer_object(call, job_doc("ddp", "u-1", 150, ""));
	assert_int_equal(bench->last_code, code);
	turn_for(bench, 5 * HF_MS);
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_string_equal(hf_doc_resource_version(call->request->body), "150");
	assert_int_equal(brain.steps, 2);
	fake_refuse(call, HF_E_FORBIDDEN);
}

static void test_a_conflict_is_read_live_and_stepped_again(void **state)
{
	fails_then_rereads(*state, HF_E_CONFLICT);
}

static void test_a_time_out_of_the_status_is_unknown_and_read(void **state)
{
	fails_then_rereads(*state, HF_E_TIMEOUT);
}

static void test_a_conflict_that_may_not_be_read_is_told_as_that(void **state)
{
	struct bench *bench = *state;

	want_status(JOB_TIME, true);
	start(bench);
	fake_refuse(expect(bench, HF_VERB_PATCH, "pytorchjobs"), HF_E_CONFLICT);
	fake_refuse(expect(bench, HF_VERB_GET, "pytorchjobs"), HF_E_FORBIDDEN);
	turn(bench);
	assert_int_equal(bench->passes, 1);
	assert_int_equal(bench->last_code, HF_E_FORBIDDEN);
}

static void test_a_job_that_turns_out_to_be_gone_is_left_alone(void **state)
{
	struct bench *bench = *state;

	want_status(JOB_TIME, true);
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	start(bench);
	fake_refuse(expect(bench, HF_VERB_PATCH, "pytorchjobs"), HF_E_NOT_FOUND);
	fake_refuse(expect(bench, HF_VERB_GET, "pytorchjobs"), HF_E_NOT_FOUND);
	turn_for(bench, HF_MINUTE);
	assert_null(next(bench));
	assert_int_equal(brain.steps, 1);
	assert_int_equal(bench->last_code, HF_E_NOT_FOUND);
	assert_true(bench->last_gone);
}

static void test_a_reply_that_lacks_what_was_sent_stops_the_actions(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_STRBUF lines = HF_STRBUF_INIT(TEXT_MAX);

	want_status(JOB_TIME, true);
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	start(bench);
	fake_answer_object(expect(bench, HF_VERB_PATCH, "pytorchjobs"),
			   job_doc("ddp", "u-1", 101, ",\"status\":{}"));
	assert_int_equal(bench->last_code, HF_E_UNSUPPORTED);
	assert_null(next(bench));
	event_lines(bench, &lines);
	assert_true(hf_str_has_prefix(lines.data, "StatusNotKept: "));
	assert_true(hf_str_has_prefix(bench->problem, "pytorchjobs/n/ddp: "));
}

static void test_counts_are_written_once_a_second_and_hold_nothing_up(void **state)
{
	struct bench *bench = *state;

	want_status(JOB_TIME, false);
	start(bench);
	grant_status(expect(bench, HF_VERB_PATCH, "pytorchjobs"), 101);
	turn_for(bench, 300 * HF_MS);
	brain.once = false;
	want_status(JOB_TIME + HF_SECOND, false);
	want(0, HF_ACTION_CREATE_SERVICE, 0, 1);
	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_MODIFIED,
		   job_doc("ddp", "u-1", 110,
			   ",\"status\":{\"startTime\":"
			   "\"2023-11-14T22:13:20Z\"}"));
	/* The service is created at once, and the status with the counts one second later. */
	struct fake_call *call = expect(bench, HF_VERB_CREATE, "services");

	brain.plan.stages_len = 0;
	fake_answer_object(call, pod_doc("ddp-worker-0", "s", 111, "u-1", ""));
	assert_null(next(bench));
	turn_for(bench, 690 * HF_MS);
	assert_null(next(bench));
	turn_for(bench, 10 * HF_MS);
	fake_refuse(expect(bench, HF_VERB_PATCH, "pytorchjobs"), HF_E_FORBIDDEN);
}

static void test_an_urgent_status_does_not_wait_for_the_second(void **state)
{
	struct bench *bench = *state;

	want_status(JOB_TIME, false);
	start(bench);
	grant_status(expect(bench, HF_VERB_PATCH, "pytorchjobs"), 101);
	want_status(JOB_TIME + HF_SECOND, true);
	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_MODIFIED,
		   job_doc("ddp", "u-1", 110, ""));
	fake_refuse(expect(bench, HF_VERB_PATCH, "pytorchjobs"), HF_E_FORBIDDEN);
}

/* A first status with a ledger, which shows whether the kind's CRD keeps the ledger. */
static void want_first_status(void)
{
	want_status(JOB_TIME, false);
	brain.generation = 1;
}

static void test_a_job_begins_before_its_status_where_ledgers_are_known_to_be_kept(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	/* It is not known yet whether the CRD keeps the ledger, so the status is written before the
	 * pod. */
	want_first_status();
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	start(bench);
	grant_status(expect(bench, HF_VERB_PATCH, "pytorchjobs"), 101);
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 102);
	gathered(bench);
	/* From here on the CRD is known to keep the ledger, so the pod is created first. */
	brain.once = false;
	want_first_status();
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_ADDED, job_doc("b", "u-b", 110, ""));
	call = expect(bench, HF_VERB_CREATE, "pods");
	assert_null(next(bench));
	brain.plan.stages_len = 0;
	fake_answer_object(call, pod_doc("ddp-worker-0", "uid-111", 111, "u-b", ""));
	/* The first status waits two seconds, and half a second more for the other job that
	 * starts. */
	turn_for(bench, 2500 * HF_MS - HF_MS);
	assert_null(next(bench));
	turn_for(bench, HF_MS);
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_string_equal(call->request->name, "b");
	fake_refuse(call, HF_E_FORBIDDEN);
}

static void test_no_object_is_created_while_the_result_of_a_status_write_is_unknown(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	brain.once = false;
	want_status(JOB_TIME, true);
	start(bench);
	fake_refuse(expect(bench, HF_VERB_PATCH, "pytorchjobs"), HF_E_TIMEOUT);
	fake_refuse(expect(bench, HF_VERB_GET, "pytorchjobs"), HF_E_UNAVAILABLE);
	/* An unread ledger may say that the pod existed and has succeeded. */
	want_status(JOB_TIME, false);
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	turn_for(bench, HF_SECOND);
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_null(next(bench));
	grant_status(call, 101);
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 102);
}

/* If the plan has no status to write, a read of the job must find out whether the cache is
 * behind. */
static void test_a_plan_without_a_status_reads_the_job_first_after_an_unknown_result(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	brain.once = false;
	want_status(JOB_TIME, true);
	start(bench);
	fake_refuse(expect(bench, HF_VERB_PATCH, "pytorchjobs"), HF_E_TIMEOUT);
	fake_refuse(expect(bench, HF_VERB_GET, "pytorchjobs"), HF_E_UNAVAILABLE);
	brain.plan.status_changed = false;
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	turn_for(bench, HF_SECOND);
	fake_refuse(expect(bench, HF_VERB_GET, "pytorchjobs"), HF_E_UNAVAILABLE);
	turn_for(bench, HF_SECOND);
	call = expect(bench, HF_VERB_GET, "pytorchjobs");
	assert_null(next(bench));
	fake_answer_object(call, job_doc("ddp", "u-1", 150, ""));
	turn_for(bench, HF_SECOND);
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 151);
}

/* The garbage collector knows before this cache that the job is gone or being deleted. */
static void made_and_gone(struct bench *bench, enum hf_action_kind kind, const char *plural)
{
	brain.once = false;
	want(0, kind, 0, 1);
	start(bench);
	for (int i = 0; i < 2; i++) {
		struct fake_call *call = expect(bench, HF_VERB_CREATE, plural);

		fake_answer_object(call, pod_doc("ddp-worker-0", "uid", 102 + 2 * i, "u-1", ""));
		fake_event(watch_of(bench, plural), HF_EVENT_DELETED,
			   pod_doc("ddp-worker-0", "uid", 103 + 2 * i, "u-1", ""));
		gathered(bench);
	}
	fake_refuse(expect(bench, HF_VERB_GET, "pytorchjobs"), HF_E_NOT_FOUND);
	turn_for(bench, HF_MINUTE);
	assert_null(next(bench));
}

static void test_a_job_whose_pods_go_as_soon_as_they_are_made_is_looked_at(void **state)
{
	made_and_gone(*state, HF_ACTION_CREATE_POD, "pods");
}

static void test_a_job_whose_services_go_as_soon_as_they_are_made_is_looked_at(void **state)
{
	made_and_gone(*state, HF_ACTION_CREATE_SERVICE, "services");
}

/* The CRD is known to keep the ledger, and ranks of the job are still missing: the job is
 * starting. */
static void startups(struct bench *bench)
{
	want_first_status();
	start(bench);
	grant_status(expect(bench, HF_VERB_PATCH, "pytorchjobs"), 101);
	turn_for(bench, 10 * HF_SECOND);
	brain.once = false;
	want_status(JOB_TIME + HF_SECOND, false);
}

static void a_pod_comes(struct bench *bench, int version)
{
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
		   pod_doc("ddp-worker-0", "p", version, "u-1", ""));
	gathered(bench);
}

static void test_counts_of_a_job_whose_ranks_still_come_wait_until_all_run(void **state)
{
	struct bench *bench = *state;

	startups(bench);
	a_pod_comes(bench, 102);
	turn_for(bench, 500 * HF_MS);
	assert_null(next(bench));
	brain.phase = HF_PHASE_RUNNING;
	a_pod_comes(bench, 103);
	brain.once = true;
	grant_status(expect(bench, HF_VERB_PATCH, "pytorchjobs"), 104);
}

static void test_counts_do_not_wait_for_ever_for_ranks_that_do_not_come(void **state)
{
	struct bench *bench = *state;

	startups(bench);
	a_pod_comes(bench, 102);
	turn_for(bench, 5 * HF_SECOND - HF_MS);
	assert_null(next(bench));
	turn_for(bench, HF_MS);
	brain.once = true;
	grant_status(expect(bench, HF_VERB_PATCH, "pytorchjobs"), 103);
}

static void test_counts_wait_half_as_long_again_as_jobs_took_lately(void **state)
{
	struct bench *bench = *state;

	/* After 1 s all ranks ran; 10 s later one is gone. */
	want_first_status();
	start(bench);
	grant_status(expect(bench, HF_VERB_PATCH, "pytorchjobs"), 101);
	turn_for(bench, HF_SECOND - 50 * HF_MS);
	brain.phase = HF_PHASE_RUNNING;
	a_pod_comes(bench, 102);
	turn_for(bench, 10 * HF_SECOND);
	brain.phase = HF_PHASE_CREATING;
	brain.once = false;
	want_status(JOB_TIME + HF_SECOND, false);
	a_pod_comes(bench, 103);
	turn_for(bench, 1500 * HF_MS - HF_MS);
	assert_null(next(bench));
	turn_for(bench, HF_MS);
	brain.once = true;
	grant_status(expect(bench, HF_VERB_PATCH, "pytorchjobs"), 104);
}

static void test_a_job_with_a_time_to_keep_is_told_of_at_once(void **state)
{
	struct bench *bench = *state;

	startups(bench);
	brain.plan.wake_at = JOB_TIME + HF_HOUR;
	a_pod_comes(bench, 102);
	brain.once = true;
	grant_status(expect(bench, HF_VERB_PATCH, "pytorchjobs"), 103);
}

static void test_a_status_does_not_wait_for_ever_for_actions_that_fail(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;
	int refused = 0;

	brain.once = false;
	want_status(JOB_TIME, false);
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	start(bench);
	for (int i = 0; i < 100; i++) {
		call = next(bench);
		if (call != NULL && call->request->verb == HF_VERB_PATCH)
			break;
		if (call != NULL) {
			fake_refuse(call, HF_E_FORBIDDEN);
			refused++;
		}
		turn_for(bench, HF_MS);
	}
	assert_true(refused >= 3);
	assert_non_null(call);
	assert_int_equal(call->request->verb, HF_VERB_PATCH);
	fake_refuse(call, HF_E_FORBIDDEN);
}

static void test_counts_that_go_on_changing_are_written_less_and_less_often(void **state)
{
	static const int gaps[] = {1, 2, 4, 4};
	struct bench *bench = *state;
	int version = 101;

	want_status(JOB_TIME, false);
	start(bench);
	grant_status(expect(bench, HF_VERB_PATCH, "pytorchjobs"), version++);
	for (size_t i = 0; i < HF_ARRAY_LEN(gaps); i++) {
		brain.once = false;
		want_status(JOB_TIME + (hf_time)(i + 1) * HF_SECOND, false);
		fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
			   pod_doc("ddp-worker-0", "p", version++, "u-1", ""));
		turn_for(bench, gaps[i] * HF_SECOND - HF_MS);
		assert_null(next(bench));
		turn_for(bench, HF_MS);
		grant_status(expect(bench, HF_VERB_PATCH, "pytorchjobs"), version++);
		brain.plan.status_changed = false;
	}
}

/* --- the gate --------------------------------------------------------------------------------- */

static void test_no_more_than_32_requests_are_under_way(void **state)
{
	struct bench *bench = *state;
	struct fake_call *calls[40];
	size_t n = 0;

	want(0, HF_ACTION_CREATE_POD, 0, 40);
	start(bench);
	while (n < 40 && (calls[n] = next(bench)) != NULL)
		n++;
	assert_int_equal(n, 32);
	for (size_t i = 0; i < 40; i++) {
		grant_pod(calls[i], 101 + (int)i);
		if (n < 40)
			calls[n++] = next(bench);
	}
	assert_null(next(bench));
	assert_int_equal(bench->last_code, 0);
}

static const char *owner_of(const struct fake_call *call)
{
	const struct hf_json *owner = hf_json_item(
		hf_json_path(hf_doc_json(call->request->body), "metadata", "ownerReferences", NULL),
		0);

	return hf_json_path_str(owner, "uid", NULL);
}

static void test_jobs_take_turns_of_16_at_the_gate(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *jobs[] = {job_doc("big", "u-a", 7, ""), job_doc("small", "u-b", 8, "")};
	struct fake_call *calls[76];
	size_t n = 0, answered = 0;

	brain.once = false;
	want(0, HF_ACTION_CREATE_POD, 0, 60);
	start_with(bench, jobs, 2);
	while ((calls[n] = next(bench)) != NULL)
		n++;
	assert_int_equal(n, 32);
	assert_int_equal(brain.steps, 2);
	/* The big job sent these requests while it was alone, and has begun another turn. */
	while (n < HF_ARRAY_LEN(calls)) {
		grant_pod(calls[answered++], 101 + (int)n);
		calls[n++] = next(bench);
	}
	for (size_t i = 0; i < n; i++)
		assert_string_equal(owner_of(calls[i]), i >= 48 && i < 64 ? "u-b" : "u-a");
}

static void test_a_decision_goes_before_what_waits_at_the_gate(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *jobs[] = {job_doc("big", "u-a", 7, ""), job_doc("small", "u-b", 8, "")};
	struct fake_call *first, *call;
	size_t n = 1;

	brain.once = false;
	want(0, HF_ACTION_CREATE_POD, 0, 60);
	start_with(bench, jobs, 1);
	first = expect(bench, HF_VERB_CREATE, "pods");
	while (next(bench) != NULL)
		n++;
	assert_int_equal(n, 32);
	want_status(JOB_TIME, true);
	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_ADDED, jobs[1]);
	assert_null(next(bench));
	fake_refuse(first, HF_E_EXISTS);
	call = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	assert_string_equal(call->request->name, "small");
}

static void test_requests_keep_to_the_rate_that_was_asked_for(void **state)
{
	struct bench *bench = *state;
	struct hf_operator_options options = {.loop = bench->loop,
					      .store = &bench->store->base,
					      .frameworks = script_frameworks,
					      .seed = 1,
					      .qps = 2,
					      .burst = 3};
	struct hf_error err;
	int sent = 0;

	hf_operator_destroy(bench->op);
	assert_ok(hf_operator_create(&options, &bench->op, &err), &err);
	want(0, HF_ACTION_CREATE_POD, 0, 20);
	start(bench);
	while (next(bench) != NULL)
		sent++;
	assert_int_equal(sent, 3);
	turn_for(bench, HF_MS);
	for (int second = 0; second < 4; second++) {
		turn_for(bench, HF_SECOND);
		while (next(bench) != NULL)
			sent++;
		assert_int_equal(sent, 5 + 2 * second);
	}
}

/* --- when ------------------------------------------------------------------------------------- */

static void test_one_pass_of_a_job_at_a_time(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	want(0, HF_ACTION_CREATE_POD, 0, 1);
	start(bench);
	call = expect(bench, HF_VERB_CREATE, "pods");
	for (int i = 0; i < 3; i++) {
		fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_MODIFIED,
			   job_doc("ddp", "u-1", 110 + i, ""));
		turn(bench);
	}
	assert_int_equal(brain.steps, 1);
	grant_pod(call, 120);
	turn(bench);
	assert_int_equal(brain.steps, 2);
	assert_null(next(bench));
	assert_int_equal(brain.steps, 2);
}

static void test_the_plan_says_when_to_wake(void **state)
{
	struct bench *bench = *state;

	brain.plan.wake_at = JOB_TIME + 90 * HF_SECOND;
	start(bench);
	turn_for(bench, 89 * HF_SECOND);
	assert_int_equal(brain.steps, 1);
	turn_for(bench, HF_SECOND);
	assert_int_equal(brain.steps, 2);
}

static void test_a_wake_up_that_is_overdue_does_not_spin(void **state)
{
	struct bench *bench = *state;

	brain.once = false;
	brain.plan.wake_at = JOB_TIME - HF_SECOND;
	start(bench);
	turn_for(bench, HF_SECOND);
	assert_in_range(brain.steps, 50, 101);
}

static void test_our_own_status_is_no_news_unless_others_wrote_meanwhile(void **state)
{
	struct bench *bench = *state;
	struct fake_call *patch;

	want_status(JOB_TIME, true);
	start(bench);
	grant_status(expect(bench, HF_VERB_PATCH, "pytorchjobs"), 101);
	turn(bench);
	assert_int_equal(brain.steps, 1);
	gathered(bench);
	assert_int_equal(brain.steps, 2);

	want_status(JOB_TIME + HF_SECOND, true);
	brain.once = true;
	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_MODIFIED,
		   job_doc("ddp", "u-1", 102, ""));
	patch = expect(bench, HF_VERB_PATCH, "pytorchjobs");
	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_MODIFIED,
		   job_doc("ddp", "u-1", 103, ""));
	grant_status(patch, 104);
	turn(bench);
	assert_int_equal(brain.steps, 4);
}

static void test_a_step_that_fails_is_told_and_tried_again(void **state)
{
	struct bench *bench = *state;

	brain.code = HF_E_TOO_LARGE;
	start(bench);
	turn(bench);
	assert_int_equal(bench->last_code, HF_E_TOO_LARGE);
	assert_string_equal(bench->problem, "pytorchjobs/n/ddp: the brain said no");
	turn_for(bench, 5 * HF_MS);
	assert_int_equal(brain.steps, 2);
	turn_for(bench, 10 * HF_MS);
	assert_int_equal(brain.steps, 3);
	brain.code = 0;
	turn_for(bench, HF_MINUTE);
	assert_int_equal(bench->last_code, 0);
	assert_int_equal(brain.steps, 4);
}

/* --- a job that changes under the pass -------------------------------------------------------- */

static void test_a_job_made_anew_under_the_name_ends_the_pass(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	want(0, HF_ACTION_CREATE_SERVICE, 0, 1);
	want(1, HF_ACTION_CREATE_POD, 1, 1);
	start(bench);
	call = expect(bench, HF_VERB_CREATE, "services");
	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_ADDED, job_doc("ddp", "u-2", 110, ""));
	fake_answer_object(call, pod_doc("ddp-worker-0", "s", 111, "u-1", ""));
	assert_int_equal(bench->last_code, HF_E_NOT_FOUND);
	assert_null(next(bench));
	assert_int_equal(brain.steps, 2); /* of the new one */
}

/* --- the end ---------------------------------------------------------------------------------- */

static void on_stopped(void *arg)
{
	((struct bench *)arg)->stopped++;
}

static void test_stop_waits_for_replies_and_sends_nothing_more(void **state)
{
	struct bench *bench = *state;
	struct fake_call *first, *second;

	want(0, HF_ACTION_CREATE_POD, 0, 2);
	want(1, HF_ACTION_CREATE_POD, 2, 1);
	start(bench);
	first = expect(bench, HF_VERB_CREATE, "pods");
	second = expect(bench, HF_VERB_CREATE, "pods");
	hf_operator_stop(bench->op, on_stopped, bench);
	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_MODIFIED,
		   job_doc("ddp", "u-1", 110, ""));
	grant_pod(first, 101);
	turn(bench);
	assert_int_equal(bench->stopped, 0);
	fake_refuse(second, HF_E_TIMEOUT);
	assert_null(next(bench));
	/* The event about the first pod has no answer yet; the stop does not wait for it for
	 * ever. */
	turn_for(bench, 3 * HF_SECOND);
	assert_int_equal(bench->stopped, 1);
	assert_int_equal(brain.steps, 1);
	assert_null(next(bench));
}

static void test_stop_at_rest_is_told_from_the_loop(void **state)
{
	struct bench *bench = *state;

	start(bench);
	turn(bench);
	hf_operator_stop(bench->op, on_stopped, bench);
	assert_int_equal(bench->stopped, 0);
	turn(bench);
	assert_int_equal(bench->stopped, 1);
}

static void test_stop_before_anything_is_listed(void **state)
{
	struct bench *bench = *state;

	hf_operator_start(bench->op);
	hf_operator_stop(bench->op, on_stopped, bench);
	turn(bench);
	assert_int_equal(bench->stopped, 1);
}

static void test_destroy_in_the_middle_cancels_what_is_under_way(void **state)
{
	struct bench *bench = *state;
	struct fake_call *first, *second;

	want(0, HF_ACTION_CREATE_POD, 0, 40);
	start(bench);
	first = expect(bench, HF_VERB_CREATE, "pods");
	second = expect(bench, HF_VERB_CREATE, "pods");
	grant_pod(first, 101);
	bench->op = hf_operator_destroy(bench->op);
	assert_true(second->canceled);
	hf_loop_run(bench->loop);
}

/* --- words and numbers ------------------------------------------------------------------------ */

static void test_pods_and_services_that_are_made_together_are_told_of_together(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_STRBUF lines = HF_STRBUF_INIT(TEXT_MAX);

	want(0, HF_ACTION_CREATE_SERVICE, 0, 2);
	want(1, HF_ACTION_CREATE_POD, 2, 2);
	brain.plan.stages[0].actions_len = 4;
	brain.plan.stages_len = 1;
	start(bench);
	for (int i = 0; i < 2; i++)
		fake_answer_object(expect(bench, HF_VERB_CREATE, "services"),
				   pod_doc("s", "s", 102 + i, "u-1", ""));
	for (int i = 2; i < 4; i++)
		grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 102 + i);
	event_lines(bench, &lines);
	assert_string_equal(lines.data, "SuccessfulCreatePod: Created 2 pods and their services: "
					"ddp-worker-2, ddp-worker-3\n");
}

static void test_what_a_stage_did_is_one_event_and_plans_are_counted(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_STRBUF lines = HF_STRBUF_INIT(TEXT_MAX), text = HF_STRBUF_INIT(1 << 20);
	static const struct hf_plan_event events[] = {
		{.reason = "PyTorchJobRestarting", .warning = true, .message = "why"},
		{.reason = "ExitedWithCode",
		 .message = "137",
		 .pod = "ddp-worker-1",
		 .pod_uid = "p1"},
	};

	brain.plan.events = events;
	brain.plan.events_len = 2;
	brain.plan.metrics[HF_METRIC_RESTARTED] = 1;
	brain.plan.metrics[HF_METRIC_RESTARTS] = 1;
	brain.plan.restart_cause = HF_CLASS_DEVICE;
	brain.plan.restart_scope = HF_SCOPE_JOB;
	want_status(JOB_TIME, true);
	want(0, HF_ACTION_CREATE_POD, 0, 10);
	start(bench);
	grant_status(expect(bench, HF_VERB_PATCH, "pytorchjobs"), 101);
	for (int i = 0; i < 10; i++)
		grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 102 + i);
	event_lines(bench, &lines);
	assert_string_equal(lines.data,
			    "PyTorchJobRestarting: why\nExitedWithCode: 137\n"
			    "SuccessfulCreatePod: Created 10 pods: ddp-worker-0, ddp-worker-1, "
			    "ddp-worker-2, ddp-worker-3, ddp-worker-4, ddp-worker-5, ddp-worker-6, "
			    "ddp-worker-7, ...\n");
	hf_operator_update_metrics(bench->op);
	hf_metrics_render(bench->metrics, &text);
	assert_non_null(strstr(text.data, "training_operator_jobs_restarted_total{job_namespace="
					  "\"n\",framework=\"pytorch\"} 1\n"));
	assert_non_null(strstr(text.data, "holdfast_job_restarts_total{namespace=\"n\",framework="
					  "\"pytorch\",cause=\"device\",scope=\"Job\"} 1\n"));
	assert_non_null(strstr(text.data, "holdfast_jobs{namespace=\"n\",framework=\"pytorch\","
					  "state=\"New\"} 1\n"));
	assert_non_null(strstr(text.data, "holdfast_cache_objects{kind=\"Pod\"} 10\n"));
}

static void test_nothing_of_a_plan_is_told_when_its_status_did_not_land(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_STRBUF lines = HF_STRBUF_INIT(TEXT_MAX);
	static const struct hf_plan_event event = {.reason = "R", .message = "m"};

	brain.plan.events = &event;
	brain.plan.events_len = 1;
	want_status(JOB_TIME, true);
	start(bench);
	fake_refuse(expect(bench, HF_VERB_PATCH, "pytorchjobs"), HF_E_FORBIDDEN);
	event_lines(bench, &lines);
	assert_string_equal(lines.data, "");
}

static void test_explain_steps_without_doing(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)16 << 20);
	struct hf_job_ref job = {&hf_framework_pytorch, "n", "ddp"};
	struct hf_job_view view;
	struct hf_plan plan;
	struct hf_error err;

	start(bench);
	turn(bench);
	want(0, HF_ACTION_CREATE_POD, 0, 2);
	assert_ok(hf_operator_explain(bench->op, &job, arena, &view, &plan, &err), &err);
	assert_int_equal(plan.stages[0].actions_len, 2);
	assert_string_equal(view.name, "ddp");
	assert_null(next(bench));
	job.name = "none";
	assert_code(hf_operator_explain(bench->op, &job, arena, &view, &plan, &err),
		    HF_E_NOT_FOUND);
	assert_string_equal(err.text, "pytorchjobs \"none\" not found");
}

static void test_an_unusable_template_is_refused_at_birth(void **state)
{
	struct bench *bench = *state;
	const struct hf_operator_options options = {.loop = bench->loop,
						    .store = &bench->store->base,
						    .frameworks = script_frameworks,
						    .init_container_template = "not: a list"};
	struct hf_operator *op = NULL;
	struct hf_error err;

	assert_code(hf_operator_create(&options, &op, &err), HF_E_INVALID);
	assert_null(op);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_steps_begin_when_every_cache_is_filled),
		T(test_actions_wait_for_the_status_and_stages_for_each_other),
		T(test_a_status_that_needs_no_writing_lets_actions_begin),
		T(test_a_conflict_is_read_live_and_stepped_again),
		T(test_a_time_out_of_the_status_is_unknown_and_read),
		T(test_a_conflict_that_may_not_be_read_is_told_as_that),
		T(test_a_job_that_turns_out_to_be_gone_is_left_alone),
		T(test_a_reply_that_lacks_what_was_sent_stops_the_actions),
		T(test_counts_are_written_once_a_second_and_hold_nothing_up),
		T(test_an_urgent_status_does_not_wait_for_the_second),
		T(test_a_job_begins_before_its_status_where_ledgers_are_known_to_be_kept),
		T(test_no_object_is_created_while_the_result_of_a_status_write_is_unknown),
		T(test_a_plan_without_a_status_reads_the_job_first_after_an_unknown_result),
		T(test_a_job_whose_pods_go_as_soon_as_they_are_made_is_looked_at),
		T(test_a_job_whose_services_go_as_soon_as_they_are_made_is_looked_at),
		T(test_counts_of_a_job_whose_ranks_still_come_wait_until_all_run),
		T(test_counts_do_not_wait_for_ever_for_ranks_that_do_not_come),
		T(test_counts_wait_half_as_long_again_as_jobs_took_lately),
		T(test_a_job_with_a_time_to_keep_is_told_of_at_once),
		T(test_a_status_does_not_wait_for_ever_for_actions_that_fail),
		T(test_counts_that_go_on_changing_are_written_less_and_less_often),
		T(test_a_decision_goes_before_what_waits_at_the_gate),
		T(test_no_more_than_32_requests_are_under_way),
		T(test_jobs_take_turns_of_16_at_the_gate),
		T(test_requests_keep_to_the_rate_that_was_asked_for),
		T(test_one_pass_of_a_job_at_a_time),
		T(test_the_plan_says_when_to_wake),
		T(test_a_wake_up_that_is_overdue_does_not_spin),
		T(test_our_own_status_is_no_news_unless_others_wrote_meanwhile),
		T(test_a_step_that_fails_is_told_and_tried_again),
		T(test_a_job_made_anew_under_the_name_ends_the_pass),
		T(test_stop_waits_for_replies_and_sends_nothing_more),
		T(test_stop_at_rest_is_told_from_the_loop),
		T(test_stop_before_anything_is_listed),
		T(test_destroy_in_the_middle_cancels_what_is_under_way),
		T(test_what_a_stage_did_is_one_event_and_plans_are_counted),
		T(test_pods_and_services_that_are_made_together_are_told_of_together),
		T(test_nothing_of_a_plan_is_told_when_its_status_did_not_land),
		T(test_explain_steps_without_doing),
		T(test_an_unusable_template_is_refused_at_birth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
