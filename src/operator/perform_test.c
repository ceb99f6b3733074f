/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/script_test.h"

#include <string.h>

/* Tests what replies to creates and deletes mean. */

/* --- replies to creates ----------------------------------------------------------------------- */

static struct fake_call *create_is_read(struct bench *bench, int code)
{
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	want(1, HF_ACTION_CREATE_POD, 1, 1);
	start(bench);
	fake_refuse(expect(bench, HF_VERB_CREATE, "pods"), code);
	struct fake_call *call = expect(bench, HF_VERB_GET, "pods");

	assert_string_equal(call->request->name, "ddp-worker-0");
	return call;
}

static void test_already_exists_is_good_when_it_is_the_pod_that_was_wanted(void **state)
{
	struct bench *bench = *state;

	fake_answer_object(create_is_read(bench, HF_E_EXISTS),
			   pod_doc("ddp-worker-0", "x", 101, "u-1", ""));
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 102);
	assert_int_equal(bench->last_code, 0);
}

static void test_a_create_that_timed_out_and_is_there_is_good(void **state)
{
	struct bench *bench = *state;

	fake_answer_object(create_is_read(bench, HF_E_TIMEOUT),
			   pod_doc("ddp-worker-0", "x", 101, "u-1", ""));
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 102);
	assert_int_equal(bench->last_code, 0);
}

static void test_a_create_that_timed_out_and_is_not_there_ends_the_pass(void **state)
{
	struct bench *bench = *state;

	fake_refuse(create_is_read(bench, HF_E_TIMEOUT), HF_E_NOT_FOUND);
	assert_int_equal(bench->last_code, HF_E_TIMEOUT);
	assert_null(next(bench));
	turn_for(bench, 5 * HF_MS);
	assert_int_equal(brain.steps, 2);
}

static void exists_but_is_not_wanted(struct bench *bench, struct hf_doc *pod)
{
	fake_answer_object(create_is_read(bench, HF_E_EXISTS), pod);
	assert_int_equal(bench->last_code, HF_E_EXISTS);
	assert_null(next(bench));
	gathered(bench);
	assert_int_equal(brain.steps, 2);
	assert_int_equal(brain.pods, 1); /* the step sees the other owner of the name */
}

static void test_a_strangers_pod_under_the_name_is_shown_to_the_brain(void **state)
{
	exists_but_is_not_wanted(*state, pod_doc("ddp-worker-0", "x", 101, "u-other", ""));
}

static void test_our_pod_of_an_older_attempt_is_not_the_one_wanted(void **state)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"ddp-worker-0\",\"namespace\":\"n\",\"uid\":\"x\","
		"\"resourceVersion\":\"101\",\"annotations\":{\"holdfast.dev/generation\":\"1\","
		"\"holdfast.dev/attempt\":\"0\"},\"ownerReferences\":[{\"kind\":\"PyTorchJob\","
		"\"apiVersion\":\"kubeflow.org/v1\",\"name\":\"ddp\",\"uid\":\"u-1\","
		"\"controller\":true}]}}";

	exists_but_is_not_wanted(*state, hf_doc_from_text(text, strlen(text)));
}

static void test_our_pod_on_its_way_out_is_not_the_one_wanted(void **state)
{
	exists_but_is_not_wanted(*state,
				 pod_doc("ddp-worker-0", "x", 101, "u-1",
					 ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""));
}

static void test_a_refused_create_ends_the_stage_says_so_and_is_tried_later(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_STRBUF lines = HF_STRBUF_INIT(TEXT_MAX);
	struct fake_call *first, *second;

	brain.once = false;
	want(0, HF_ACTION_CREATE_POD, 0, 2);
	want(1, HF_ACTION_CREATE_POD, 2, 1);
	start(bench);
	first = expect(bench, HF_VERB_CREATE, "pods");
	second = expect(bench, HF_VERB_CREATE, "pods");
	fake_refuse(first, HF_E_FORBIDDEN);
	assert_int_equal(bench->passes, 0);
	grant_pod(second, 101);
	assert_int_equal(bench->passes, 1);
	assert_int_equal(bench->last_code, HF_E_FORBIDDEN);
	event_lines(bench, &lines);
	assert_string_equal(lines.data, "FailedCreatePod: Error creating: refused by the test\n"
					"SuccessfulCreatePod: Created pod: ddp-worker-1\n");
	turn_for(bench, 5 * HF_MS);
	assert_int_equal(brain.steps, 2);
	fake_refuse(expect(bench, HF_VERB_CREATE, "pods"), HF_E_FORBIDDEN);
	fake_refuse(expect(bench, HF_VERB_CREATE, "pods"), HF_E_FORBIDDEN);
	assert_null(next(bench));
}

static void test_a_create_that_finds_no_place_has_the_job_read_and_is_tried_again(void **state)
{
	struct bench *bench = *state;

	brain.once = false;
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	start(bench);
	fake_refuse(expect(bench, HF_VERB_CREATE, "pods"), HF_E_NOT_FOUND);
	assert_int_equal(bench->passes, 0);
	fake_answer_object(expect(bench, HF_VERB_GET, "pytorchjobs"),
			   job_doc("ddp", "u-1", 150, ""));
	assert_int_equal(bench->passes, 1);
	assert_int_equal(bench->last_code, HF_E_NOT_FOUND);
	assert_false(bench->last_gone);
	turn_for(bench, 5 * HF_MS);
	fake_refuse(expect(bench, HF_VERB_CREATE, "pods"), HF_E_NOT_FOUND);
	fake_refuse(expect(bench, HF_VERB_GET, "pytorchjobs"), HF_E_NOT_FOUND);
	assert_true(bench->last_gone);
	turn_for(bench, HF_MINUTE);
	assert_null(next(bench));
}

static void refuse_as_the_namespace_ends(struct fake_call *call)
{
	static const char text[] = "{\"kind\":\"Status\",\"details\":{\"causes\":[{\"reason\":"
				   "\"NamespaceTerminating\",\"field\":\"metadata.namespace\"}]}}";
	HF_AUTO_DOC status = hf_doc_from_text(text, strlen(text));
	const struct hf_reply reply = {.code = HF_E_FORBIDDEN,
				       .message = "because it is being terminated",
				       .object = status,
				       .resource_version = "",
				       .continue_token = "",
				       .server_time = HF_TIME_NONE};

	fake_answer(call, &reply);
}

static void test_nothing_is_made_in_a_namespace_that_is_being_deleted(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_STRBUF lines = HF_STRBUF_INIT(TEXT_MAX);

	brain.once = false;
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	want(1, HF_ACTION_DELETE_POD, 1, 1);
	start(bench);
	assert_false(brain.leaving);
	refuse_as_the_namespace_ends(expect(bench, HF_VERB_CREATE, "pods"));
	assert_int_equal(bench->last_code, HF_E_FORBIDDEN); /* told once, and by no event */
	event_lines(bench, &lines);
	assert_string_equal(lines.data, "");
	/* Everything but creates goes on.  Ranks that end from here on are no failures. */
	turn_for(bench, 5 * HF_MS);
	assert_true(brain.leaving);
	fake_refuse(expect(bench, HF_VERB_DELETE, "pods"), HF_E_NOT_FOUND);
	assert_int_equal(bench->last_code, 0);
	turn_for(bench, HF_HOUR);
	assert_null(next(bench));
	/* A job of the same name in a new namespace of the same name is another job. */
	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_ADDED, job_doc("ddp", "u-2", 200, ""));
	turn(bench);
	(void)expect(bench, HF_VERB_CREATE, "pods");
	assert_false(brain.leaving);
}

static void test_what_one_job_learns_of_its_namespace_holds_for_its_neighbours(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *jobs[] = {job_doc("ddp", "u-1", 7, ""), job_doc("other", "u-2", 8, "")};
	struct fake_call *first, *second;

	brain.once = false;
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	start_with(bench, jobs, 2);
	first = expect(bench, HF_VERB_CREATE, "pods");
	second = expect(bench, HF_VERB_CREATE, "pods");
	refuse_as_the_namespace_ends(first);
	/* These codes do not tell whether the request was performed. */
	fake_refuse(second, HF_E_FORBIDDEN);
	turn_for(bench, HF_SECOND);
	assert_true(brain.leaving);
	assert_null(next(bench));
}

static void test_retry_after_is_kept(void **state)
{
	struct bench *bench = *state;
	const struct hf_reply busy = {.code = HF_E_TOO_MANY,
				      .message = "busy",
				      .resource_version = "",
				      .continue_token = "",
				      .server_time = HF_TIME_NONE,
				      .retry_after = 7 * HF_SECOND};

	brain.once = false;
	want(0, HF_ACTION_CREATE_POD, 0, 1);
	start(bench);
	fake_answer(expect(bench, HF_VERB_CREATE, "pods"), &busy);
	turn_for(bench, 6900 * HF_MS);
	assert_null(next(bench));
	turn_for(bench, 100 * HF_MS);
	fake_refuse(expect(bench, HF_VERB_CREATE, "pods"), HF_E_FORBIDDEN);
}

/* --- replies to deletes ----------------------------------------------------------------------- */

static struct fake_call *delete_begins(struct bench *bench)
{
	struct hf_doc *jobs[] = {job_doc("ddp", "u-1", 7, "")};

	start_with(bench, jobs, 1);
	turn(bench);
	brain.once = true;
	want(0, HF_ACTION_DELETE_POD, 0, 1);
	want(1, HF_ACTION_CREATE_POD, 1, 1);
	fake_event(watch_of(bench, "pods"), HF_EVENT_ADDED,
		   pod_doc("ddp-worker-0", "p-uid", 105, "u-1", ""));
	gathered(bench);
	return expect(bench, HF_VERB_DELETE, "pods");
}

static void test_a_graceful_delete_leaves_the_pod_marked_in_the_cache(void **state)
{
	struct bench *bench = *state;

	fake_answer_object(delete_begins(bench),
			   pod_doc("ddp-worker-0", "p-uid", 106, "u-1",
				   ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""));
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 107);
	gathered(bench);
	assert_int_equal(brain.pods, 2);
}

static void test_a_delete_that_is_complete_takes_the_pod_out_of_the_cache(void **state)
{
	struct bench *bench = *state;

	fake_answer_object(delete_begins(bench), pod_doc("ddp-worker-0", "p-uid", 105, "u-1", ""));
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 107);
	gathered(bench);
	assert_int_equal(brain.pods, 1);
}

static void test_a_pod_that_had_ended_is_gone_with_the_answer_although_marked(void **state)
{
	struct bench *bench = *state;

	fake_answer_object(delete_begins(bench),
			   pod_doc("ddp-worker-0", "p-uid", 106, "u-1",
				   ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\","
				   "\"deletionGracePeriodSeconds\":0"));
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 107);
	gathered(bench);
	assert_int_equal(brain.pods, 1);
}

static void test_a_refused_precondition_is_read_and_stepped_again(void **state)
{
	struct bench *bench = *state;

	fake_refuse(delete_begins(bench), HF_E_CONFLICT);
	fake_answer_object(expect(bench, HF_VERB_GET, "pods"),
			   pod_doc("ddp-worker-0", "p-new", 108, "u-1", ""));
	assert_int_equal(bench->last_code, HF_E_CONFLICT);
	gathered(bench);
	assert_int_equal(brain.pods, 1);
}

static void test_a_delete_that_timed_out_is_read(void **state)
{
	struct bench *bench = *state;

	fake_refuse(delete_begins(bench), HF_E_TIMEOUT);
	fake_refuse(expect(bench, HF_VERB_GET, "pods"), HF_E_NOT_FOUND);
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 109);
	assert_int_equal(bench->last_code, 0);
}

static void test_deleting_the_job_is_foreground_by_uid_and_counted(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(1 << 20);

	want(0, HF_ACTION_DELETE_JOB, 0, 1);
	actions[0].name = "ddp";
	actions[0].uid = "u-1";
	start(bench);
	call = expect(bench, HF_VERB_DELETE, "pytorchjobs");
	assert_int_equal(call->request->propagation, HF_PROPAGATE_FOREGROUND);
	assert_string_equal(call->request->precondition_uid, "u-1");
	assert_string_equal(call->request->precondition_resource_version, "7");
	/* The job's TTL was extended meanwhile, so the job is read and stepped anew. */
	fake_refuse(call, HF_E_CONFLICT);
	call = expect(bench, HF_VERB_GET, "pytorchjobs");
	want(0, HF_ACTION_DELETE_JOB, 0, 1);
	actions[0].name = "ddp";
	actions[0].uid = "u-1";
	fake_answer_object(call, job_doc("ddp", "u-1", 8, ""));
	turn_for(bench, HF_SECOND);
	call = expect(bench, HF_VERB_DELETE, "pytorchjobs");
	assert_string_equal(call->request->precondition_resource_version, "8");
	fake_answer_object(call, job_doc("ddp", "u-1", 8, ""));
	turn_for(bench, HF_MINUTE);
	assert_null(next(bench));
	hf_operator_update_metrics(bench->op);
	hf_metrics_render(bench->metrics, &text);
	assert_non_null(strstr(text.data,
			       "training_operator_jobs_deleted_total{job_namespace=\"n\","
			       "framework=\"pytorch\"} 1\n"));
}

static void test_nothing_is_decided_on_a_job_that_is_no_json(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *jobs[] = {job_doc("ddp", "u-1", 7, ",\"more\":[}")};

	want(0, HF_ACTION_CREATE_POD, 0, 1);
	start_with(bench, jobs, 1);
	assert_null(next(bench));
	assert_int_equal(brain.steps, 0);
	assert_int_equal(bench->last_code, HF_E_UNAVAILABLE);
}

/* --- giving up a pod -------------------------------------------------------------------------- */

static struct fake_call *fail_is_sent(struct bench *bench)
{
	want(0, HF_ACTION_FAIL_POD, 0, 1);
	actions[0].resource_version = "31";
	actions[0].message = "node n-1 is lost";
	want(1, HF_ACTION_CREATE_POD, 1, 1);
	start(bench);
	return expect(bench, HF_VERB_PATCH, "pods");
}

static void test_a_pod_is_given_up_by_one_guarded_patch_of_its_status(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call = fail_is_sent(bench);
	const struct hf_json *body = hf_doc_json(call->request->body);
	const struct hf_json *status = hf_json_get(body, "status");
	const struct hf_json *condition = hf_json_item(hf_json_get(status, "conditions"), 0);

	assert_string_equal(call->request->name, "ddp-worker-0");
	assert_string_equal(call->request->subresource, "status");
	assert_int_equal(call->request->patch_type, HF_PATCH_STRATEGIC);
	assert_string_equal(hf_json_path_str(body, "metadata", "uid", NULL), "p-uid");
	assert_string_equal(hf_json_path_str(body, "metadata", "resourceVersion", NULL), "31");
	assert_string_equal(hf_json_path_str(status, "phase", NULL), "Failed");
	assert_string_equal(hf_json_path_str(condition, "type", NULL), "holdfast.dev/NodeLost");
	assert_string_equal(hf_json_path_str(condition, "status", NULL), "True");
	assert_string_equal(hf_json_path_str(condition, "message", NULL), "node n-1 is lost");
	assert_non_null(hf_json_path_str(condition, "lastTransitionTime", NULL));
	fake_answer_object(call, pod_doc("ddp-worker-0", "p-uid", 101, "u-1", ""));
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 102);
	assert_int_equal(bench->last_code, 0);
}

static void test_a_kubelet_that_came_back_keeps_its_pod(void **state)
{
	struct bench *bench = *state;

	fake_refuse(fail_is_sent(bench), HF_E_CONFLICT);
	fake_answer_object(expect(bench, HF_VERB_GET, "pods"),
			   pod_doc("ddp-worker-0", "p-uid", 101, "u-1",
				   "},\"status\":{\"phase\":\"Running\""));
	assert_int_equal(bench->last_code, HF_E_CONFLICT);
	assert_null(next(bench));
	gathered(bench);
	/* The job is stepped again, with the version that was just read. */
	assert_int_equal(brain.steps, 2);
	assert_int_equal(brain.pods, 1);
}

static void test_a_pod_that_was_given_up_already_or_is_gone_is_good(void **state)
{
	struct bench *bench = *state;

	fake_refuse(fail_is_sent(bench), HF_E_TIMEOUT);
	fake_answer_object(
		expect(bench, HF_VERB_GET, "pods"),
		pod_doc("ddp-worker-0", "p-uid", 101, "u-1", "},\"status\":{\"phase\":\"Failed\""));
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 102);
	assert_int_equal(bench->last_code, 0);
}

static void test_a_pod_that_went_while_it_was_given_up_is_good(void **state)
{
	struct bench *bench = *state;

	fake_refuse(fail_is_sent(bench), HF_E_NOT_FOUND);
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 102);
	assert_int_equal(bench->last_code, 0);
}

/* --- ending a pod and keeping it -------------------------------------------------------------- */

static struct fake_call *stop_is_sent(struct bench *bench)
{
	want(0, HF_ACTION_STOP_POD, 0, 1);
	actions[0].message = "JobFailed";
	want(1, HF_ACTION_CREATE_POD, 1, 1);
	start(bench);
	return expect(bench, HF_VERB_PATCH, "pods");
}

static void test_a_pod_is_ended_by_one_patch_of_its_deadline(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call = stop_is_sent(bench);
	const struct hf_json *body = hf_doc_json(call->request->body);

	assert_string_equal(call->request->name, "ddp-worker-0");
	assert_null(call->request->subresource);
	assert_int_equal(call->request->patch_type, HF_PATCH_MERGE);
	assert_string_equal(hf_json_path_str(body, "metadata", "uid", NULL), "p-uid");
	assert_string_equal(
		hf_json_path_str(body, "metadata", "annotations", "holdfast.dev/stopped", NULL),
		"JobFailed");
	assert_int_equal(hf_json_i64(hf_json_path(body, "spec", "activeDeadlineSeconds", NULL), 0),
			 1);
	fake_answer_object(call, pod_doc("ddp-worker-0", "p-uid", 101, "u-1", ""));
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 102);
	assert_int_equal(bench->last_code, 0);
}

static void test_an_end_that_was_not_answered_is_looked_for(void **state)
{
	struct bench *bench = *state;

	fake_refuse(stop_is_sent(bench), HF_E_TIMEOUT);
	fake_answer_object(expect(bench, HF_VERB_GET, "pods"),
			   pod_doc("ddp-worker-0", "p-uid", 101, "u-1",
				   "},\"spec\":{\"activeDeadlineSeconds\":1"));
	grant_pod(expect(bench, HF_VERB_CREATE, "pods"), 102);
	assert_int_equal(bench->last_code, 0);
}

static void test_an_end_that_was_not_done_is_asked_for_again(void **state)
{
	struct bench *bench = *state;

	fake_refuse(stop_is_sent(bench), HF_E_TIMEOUT);
	fake_answer_object(expect(bench, HF_VERB_GET, "pods"),
			   pod_doc("ddp-worker-0", "p-uid", 101, "u-1",
				   "},\"spec\":{\"activeDeadlineSeconds\":600"));
	assert_int_equal(bench->last_code, HF_E_TIMEOUT);
	assert_null(next(bench));
}

static void test_another_pod_of_the_name_is_left_alone(void **state)
{
	struct bench *bench = *state;

	fake_refuse(fail_is_sent(bench), HF_E_CONFLICT);
	fake_answer_object(
		expect(bench, HF_VERB_GET, "pods"),
		pod_doc("ddp-worker-0", "p-2", 101, "u-1", "},\"status\":{\"phase\":\"Failed\""));
	assert_int_equal(bench->last_code, HF_E_CONFLICT);
	assert_null(next(bench));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_already_exists_is_good_when_it_is_the_pod_that_was_wanted),
		T(test_a_create_that_timed_out_and_is_there_is_good),
		T(test_a_create_that_timed_out_and_is_not_there_ends_the_pass),
		T(test_a_strangers_pod_under_the_name_is_shown_to_the_brain),
		T(test_our_pod_of_an_older_attempt_is_not_the_one_wanted),
		T(test_our_pod_on_its_way_out_is_not_the_one_wanted),
		T(test_a_refused_create_ends_the_stage_says_so_and_is_tried_later),
		T(test_a_create_that_finds_no_place_has_the_job_read_and_is_tried_again),
		T(test_nothing_is_made_in_a_namespace_that_is_being_deleted),
		T(test_what_one_job_learns_of_its_namespace_holds_for_its_neighbours),
		T(test_retry_after_is_kept),
		T(test_a_graceful_delete_leaves_the_pod_marked_in_the_cache),
		T(test_a_delete_that_is_complete_takes_the_pod_out_of_the_cache),
		T(test_a_pod_that_had_ended_is_gone_with_the_answer_although_marked),
		T(test_a_refused_precondition_is_read_and_stepped_again),
		T(test_a_delete_that_timed_out_is_read),
		T(test_deleting_the_job_is_foreground_by_uid_and_counted),
		T(test_nothing_is_decided_on_a_job_that_is_no_json),
		T(test_a_pod_is_given_up_by_one_guarded_patch_of_its_status),
		T(test_a_kubelet_that_came_back_keeps_its_pod),
		T(test_a_pod_that_was_given_up_already_or_is_gone_is_good),
		T(test_a_pod_that_went_while_it_was_given_up_is_good),
		T(test_a_pod_is_ended_by_one_patch_of_its_deadline),
		T(test_an_end_that_was_not_answered_is_looked_for),
		T(test_an_end_that_was_not_done_is_asked_for_again),
		T(test_another_pod_of_the_name_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
