/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/publisher.h"

#include "base/str.h"
#include "harness/fake_store.h"
#include "harness/test.h"
#include "store/resource.h"

#include <stdio.h>
#include <string.h>

#define VERBS (HF_VERB_DELETE + 1)

struct world {
	struct hf_loop *loop;
	struct fake_store *store;
	struct hf_publisher *publisher;
	int troubles, mended, answers, none;
	char what[32], message[256];
};

static void on_seen(void *arg, struct hf_doc *health)
{
	struct world *w = arg;

	w->answers += health != NULL;
	w->none += health == NULL;
}

static void on_trouble(void *arg, const char *what, int code, const char *message)
{
	struct world *w = arg;

	if (code == 0)
		w->mended++;
	else
		w->troubles++;
	memcpy(w->what, what, strlen(what) + 1);
	snprintf(w->message, sizeof(w->message), "%s", message);
}

static int setup(void **state)
{
	static struct world w;
	struct hf_publisher_options options = {
		.node = "n1", .seed = 3, .trouble = on_trouble, .seen = on_seen, .arg = &w};

	memset(&w, 0, sizeof(w));
	w.loop = options.loop = hf_loop_create_virtual(0);
	w.store = fake_store_create();
	options.store = &w.store->base;
	w.publisher = hf_publisher_create(&options);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	hf_publisher_destroy(w->publisher);
	fake_store_destroy(w->store);
	hf_loop_destroy(w->loop);
	return 0;
}

static void run_for(struct world *w, hf_time span)
{
	assert_true(hf_loop_run_until(w->loop, hf_loop_mono(w->loop) + span));
}

static struct hf_json *patch(int64_t n)
{
	struct hf_json *object = hf_json_object();

	hf_json_set_i64(object, "n", n);
	return object;
}

static int64_t number_of(const struct fake_call *call)
{
	return hf_json_i64(hf_json_get(hf_doc_json(call->request->body), "n"), -1);
}

static void the_newest_patch_goes_next_and_one_at_a_time(void **state)
{
	struct world *w = *state;
	struct fake_call *call;

	hf_publisher_node(w->publisher, patch(1));
	run_for(w, HF_MS);
	call = fake_next(w->store);
	assert_ptr_equal(call->request->resource, &hf_nodes);
	assert_string_equal(call->request->subresource, "status");
	assert_int_equal(call->request->patch_type, HF_PATCH_STRATEGIC);
	hf_publisher_node(w->publisher, patch(2));
	hf_publisher_node(w->publisher, patch(3));
	run_for(w, HF_SECOND);
	assert_null(fake_next(w->store));
	fake_answer_object(call, NULL);
	run_for(w, HF_MS);
	call = fake_next(w->store);
	assert_int_equal(number_of(call), 3);
	fake_answer_object(call, NULL);
	run_for(w, HF_SECOND);
	assert_null(fake_next(w->store));
	assert_true(hf_publisher_is_idle(w->publisher));
}

static void what_fails_is_sent_again_ever_later_and_told_once_it_works(void **state)
{
	struct world *w = *state;
	struct fake_call *call;
	int tries = 0;

	hf_publisher_node(w->publisher, patch(1));
	for (hf_time t = 0; t < 5 * HF_MINUTE; t += HF_SECOND) {
		run_for(w, HF_SECOND);
		call = fake_next(w->store);
		if (call == NULL)
			continue;
		tries++;
		fake_refuse(call, HF_E_UNAVAILABLE);
	}
	/* The delays are 0.5, 1, 2 … 30 s, and up to half as much again. */
	assert_in_range(tries, 10, 20);
	assert_int_equal(w->troubles, tries);
	run_for(w, HF_MINUTE);
	call = fake_next(w->store);
	assert_int_equal(number_of(call), 1);
	fake_answer_object(call, NULL);
	assert_int_equal(w->mended, 1);
}

static void retry_after_is_kept_within_reason(void **state)
{
	struct world *w = *state;
	const struct hf_reply later = {
		.code = HF_E_TOO_MANY, .message = "", .retry_after = HF_MINUTE};
	const struct hf_reply never = {
		.code = HF_E_TOO_MANY, .message = "", .retry_after = 1000 * HF_DAY};

	hf_publisher_node(w->publisher, patch(1));
	run_for(w, HF_MS);
	fake_answer(fake_next(w->store), &later);
	run_for(w, 59 * HF_SECOND);
	/* A newer patch does not shorten the delay after a failure. */
	hf_publisher_node(w->publisher, patch(2));
	assert_null(fake_next(w->store));
	run_for(w, 2 * HF_SECOND);
	fake_answer(fake_next(w->store), &never);
	run_for(w, 11 * HF_MINUTE);
	assert_non_null(fake_next(w->store));
}

static void a_device_health_is_made_where_there_is_none_and_owned_by_its_node(void **state)
{
	struct world *w = *state;
	struct fake_call *call;

	hf_publisher_device(w->publisher, patch(1));
	run_for(w, HF_MS);
	call = fake_next(w->store);
	assert_int_equal(call->request->patch_type, HF_PATCH_MERGE);
	fake_refuse(call, HF_E_NOT_FOUND);
	call = fake_next(w->store);
	assert_int_equal(call->request->verb, HF_VERB_GET);
	assert_string_equal(call->request->name, "n1");
	fake_answer_object(call, fake_object("n1", "uid-1", "5", "x"));
	call = fake_next(w->store);
	assert_int_equal(call->request->verb, HF_VERB_CREATE);
	assert_non_null(strstr(hf_doc_text(call->request->body, NULL), "\"uid\":\"uid-1\""));
	fake_refuse(call, HF_E_EXISTS);
	call = fake_next(w->store);
	assert_int_equal(call->request->verb, HF_VERB_PATCH);
	assert_int_equal(number_of(call), 1);
	assert_false(hf_publisher_has_written(w->publisher));
	fake_answer_object(call, NULL);
	/* The next one keeps its distance. */
	hf_publisher_device(w->publisher, patch(2));
	run_for(w, HF_SECOND / 2);
	assert_null(fake_next(w->store));
	run_for(w, HF_SECOND);
	assert_int_equal(number_of(fake_next(w->store)), 2);
}

static void without_the_kind_it_is_asked_for_each_half_minute(void **state)
{
	struct world *w = *state;
	int creates = 0;

	hf_publisher_device(w->publisher, patch(1));
	for (hf_time t = 0; t < 10 * HF_MINUTE; t += HF_SECOND) {
		struct fake_call *call;

		run_for(w, HF_SECOND);
		while ((call = fake_next(w->store)) != NULL) {
			creates += call->request->verb == HF_VERB_CREATE;
			if (call->request->verb == HF_VERB_GET)
				fake_answer_object(call, fake_object("n1", "uid-1", "5", "x"));
			else
				fake_refuse(call, HF_E_NOT_FOUND);
		}
	}
	assert_in_range(creates, 10, 21);
}

/* The API server creates DeviceHealth but knows no status of it, for this span; ret_calls: the number of requests
 * of each verb. */
static void without_status(struct world *w, hf_time span, int create, int ret_calls[VERBS])
{
	for (hf_time t = 0; t < span; t += 100 * HF_MS) {
		struct fake_call *call;
		int turns = 0;

		run_for(w, 100 * HF_MS);
		while (turns++ < 20 && (call = fake_next(w->store)) != NULL) {
			ret_calls[call->request->verb]++;
			if (call->request->verb == HF_VERB_GET)
				fake_answer_object(call, fake_object("n1", "uid-1", "5", "x"));
			else if (call->request->verb == HF_VERB_CREATE && create == 0)
				fake_answer_object(call, NULL);
			else
				fake_refuse(call, call->request->verb == HF_VERB_CREATE
							  ? create
							  : HF_E_NOT_FOUND);
		}
	}
}

static void an_object_whose_status_is_never_found_is_a_failure_like_others(void **state)
{
	static const int creates[] = {0, HF_E_EXISTS};
	struct world *w = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(creates); i++) {
		int calls[VERBS] = {0};

		hf_publisher_device(w->publisher, patch(1));
		without_status(w, 10 * HF_MINUTE, creates[i], calls);
		assert_in_range(calls[HF_VERB_CREATE], 10, 21);
		assert_in_range(calls[HF_VERB_PATCH], 20, 42);
		assert_in_range(calls[HF_VERB_GET], 10, 21);
		assert_in_range(w->troubles, (i + 1) * 10, (i + 1) * 21);
		assert_string_equal(w->what, "devicehealth");
		assert_non_null(strstr(w->message, "status"));
		assert_ptr_equal(strstr(hf_publisher_why(w->publisher), "devicehealth: "),
				 hf_publisher_why(w->publisher));
		assert_non_null(strstr(hf_publisher_why(w->publisher), w->message));
	}
	run_for(w, HF_MINUTE);
	fake_answer_object(fake_next(w->store), NULL);
	assert_int_equal(w->mended, 1);
	assert_null(hf_publisher_why(w->publisher));
}

/* A DeviceHealth that was written and is missing now may have been deleted with its Node; the agent is told once. */
static void an_object_that_disappeared_after_a_write_is_reported_once(void **state)
{
	struct world *w = *state;
	int calls[VERBS] = {0};

	hf_publisher_device(w->publisher, patch(1));
	run_for(w, HF_MS);
	fake_answer_object(fake_next(w->store), NULL);
	hf_publisher_device(w->publisher, patch(2));
	without_status(w, 10 * HF_MINUTE, 0, calls);
	assert_in_range(calls[HF_VERB_CREATE], 10, 21);
	assert_int_equal(w->none, 1);
}

static void a_pod_that_is_gone_or_another_one_is_let_be(void **state)
{
	static const int codes[] = {HF_E_NOT_FOUND, HF_E_CONFLICT, HF_E_FORBIDDEN};
	struct world *w = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(codes); i++) {
		hf_publisher_pod(w->publisher, "ns", "p", "uid-9", patch(1));
		run_for(w, HF_MS);
		fake_refuse(fake_next(w->store), codes[i]);
		run_for(w, HF_MINUTE);
		assert_null(fake_next(w->store));
		assert_true(hf_publisher_is_idle(w->publisher));
	}
	/* Only the missing right is reported. */
	assert_int_equal(w->troubles, 1);
	assert_string_equal(w->what, "pod");
}

static void pods_are_written_beside_each_other_and_no_more_than_there_can_be(void **state)
{
	struct world *w = *state;
	int sent = 0;
	struct fake_call *call;

	for (int i = 0; i < HF_PUBLISH_PODS_MAX + 10; i++) {
		char uid[16];

		snprintf(uid, sizeof(uid), "uid-%d", i);
		hf_publisher_pod(w->publisher, "ns", "p", uid, patch(i));
	}
	run_for(w, HF_MS);
	while ((call = fake_next(w->store)) != NULL) {
		sent++;
		fake_answer_object(call, NULL);
	}
	assert_int_equal(sent, HF_PUBLISH_PODS_MAX);
	assert_true(hf_publisher_is_idle(w->publisher));
}

static void a_pod_that_cannot_be_written_is_given_up_in_the_end(void **state)
{
	struct world *w = *state;
	struct fake_call *call;
	int tries = 0;

	hf_publisher_pod(w->publisher, "ns", "p", "uid-9", patch(1));
	for (int i = 0; i < 1200; i++) {
		run_for(w, HF_SECOND);
		call = fake_next(w->store);
		tries += call != NULL;
		if (call != NULL)
			fake_refuse(call, HF_E_TIMEOUT);
	}
	assert_int_equal(tries, HF_PUBLISH_TRIES + 1);
	assert_true(hf_publisher_is_idle(w->publisher));
}

static void a_question_changes_nothing_and_a_write_need_not_wait_behind_it(void **state)
{
	struct world *w = *state;
	struct fake_call *call;

	hf_publisher_ask(w->publisher);
	hf_publisher_ask(w->publisher);
	run_for(w, HF_MS);
	call = fake_next(w->store);
	assert_int_equal(call->request->verb, HF_VERB_PATCH);
	assert_int_equal(call->request->patch_type, HF_PATCH_MERGE);
	assert_string_equal(call->request->subresource, "status");
	assert_string_equal(hf_doc_text(call->request->body, NULL), "{}");
	hf_publisher_device(w->publisher, patch(1));
	fake_answer_object(call, fake_object("n1", "uid-1", "5", "x"));
	assert_int_equal(w->answers, 1);
	assert_false(hf_publisher_has_written(w->publisher));
	run_for(w, HF_MS);
	call = fake_next(w->store);
	assert_int_equal(number_of(call), 1);
	/* The request under way was sent before the question, so it does not answer it. */
	hf_publisher_ask(w->publisher);
	fake_answer_object(call, fake_object("n1", "uid-1", "6", "x"));
	run_for(w, HF_MINUTE);
	assert_int_equal(w->answers, 2);
	assert_null(fake_next(w->store));
}

static void where_there_is_no_device_health_the_answer_is_none_and_it_is_not_made(void **state)
{
	struct world *w = *state;
	struct fake_call *call;

	hf_publisher_ask(w->publisher);
	run_for(w, HF_MS);
	fake_refuse(fake_next(w->store), HF_E_UNAVAILABLE);
	assert_int_equal(w->none, 0);
	run_for(w, HF_SECOND);
	call = fake_next(w->store);
	assert_string_equal(hf_doc_text(call->request->body, NULL), "{}");
	fake_refuse(call, HF_E_NOT_FOUND);
	assert_int_equal(w->none, 1);
	run_for(w, HF_MINUTE);
	assert_null(fake_next(w->store));
	assert_true(hf_publisher_is_idle(w->publisher));
}

/* {"status": {KEY: n}} */
static struct hf_json *status_patch(const char *key, int64_t n)
{
	struct hf_json *root = hf_json_object(), *status = hf_json_object();

	hf_json_set_i64(status, key, n);
	hf_json_set(root, "status", status);
	return root;
}

static int64_t member_of(const struct fake_call *call, const char *key)
{
	return hf_json_i64(hf_json_path(hf_doc_json(call->request->body), "status", key, NULL), -1);
}

static void test_urgent_members_do_not_wait(void **state)
{
	struct world *w = *state;
	struct fake_call *call;

	hf_publisher_device(w->publisher, status_patch("a", 1));
	run_for(w, HF_MS);
	fake_answer_object(fake_next(w->store), NULL);
	/* A patch waits for the gap: an urgent patch is joined with it, and both are sent at once. */
	hf_publisher_device(w->publisher, status_patch("a", 2));
	run_for(w, HF_MS);
	assert_null(fake_next(w->store));
	hf_publisher_urgent(w->publisher, status_patch("b", 3));
	run_for(w, HF_MS);
	call = fake_next(w->store);
	assert_non_null(call);
	assert_int_equal(member_of(call, "a"), 2);
	assert_int_equal(member_of(call, "b"), 3);
	/* While a request is under way, the next urgent patch waits for its answer, but not for the gap. */
	hf_publisher_urgent(w->publisher, status_patch("b", 4));
	run_for(w, HF_MS);
	assert_null(fake_next(w->store));
	fake_answer_object(call, NULL);
	run_for(w, HF_MS);
	call = fake_next(w->store);
	assert_int_equal(member_of(call, "b"), 4);
	assert_int_equal(member_of(call, "a"), -1);
	fake_answer_object(call, NULL);
	run_for(w, HF_MINUTE);
	assert_null(fake_next(w->store));
	assert_true(hf_publisher_is_idle(w->publisher));
}

/* The members of a failed patch are sent again, although the newer patch lacks them. */
static void test_failed_members_come_again(void **state)
{
	struct world *w = *state;
	struct fake_call *call;

	hf_publisher_device(w->publisher, status_patch("a", 1));
	run_for(w, HF_MS);
	call = fake_next(w->store);
	hf_publisher_urgent(w->publisher, status_patch("b", 2));
	fake_refuse(call, HF_E_UNAVAILABLE);
	run_for(w, HF_SECOND);
	call = fake_next(w->store);
	assert_int_equal(member_of(call, "a"), 1);
	assert_int_equal(member_of(call, "b"), 2);
	hf_publisher_device(w->publisher, status_patch("a", 5));
	fake_refuse(call, HF_E_UNAVAILABLE);
	/* A patch that failed waits for its backoff, urgent or not. */
	hf_publisher_urgent(w->publisher, status_patch("b", 6));
	run_for(w, HF_MS);
	assert_null(fake_next(w->store));
	run_for(w, 2 * HF_SECOND);
	call = fake_next(w->store);
	assert_int_equal(member_of(call, "a"), 5);
	assert_int_equal(member_of(call, "b"), 6);
}

static void test_urgent_writes_have_a_limit(void **state)
{
	struct world *w = *state;
	struct fake_call *call;
	int writes = 0;

	for (int i = 0; i < 1000; i++) {
		hf_publisher_urgent(w->publisher, status_patch("b", i));
		run_for(w, 10 * HF_MS);
		call = fake_next(w->store);
		if (call == NULL)
			continue;
		writes++;
		fake_answer_object(call, NULL);
	}
	/* Ten seconds. */
	assert_in_range(writes, HF_PUBLISH_URGENT_MAX, HF_PUBLISH_URGENT_MAX + 22);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_question_changes_nothing_and_a_write_need_not_wait_behind_it),
		TEST(where_there_is_no_device_health_the_answer_is_none_and_it_is_not_made),
		TEST(the_newest_patch_goes_next_and_one_at_a_time),
		TEST(what_fails_is_sent_again_ever_later_and_told_once_it_works),
		TEST(retry_after_is_kept_within_reason),
		TEST(a_device_health_is_made_where_there_is_none_and_owned_by_its_node),
		TEST(without_the_kind_it_is_asked_for_each_half_minute),
		TEST(an_object_whose_status_is_never_found_is_a_failure_like_others),
		TEST(an_object_that_disappeared_after_a_write_is_reported_once),
		TEST(a_pod_that_is_gone_or_another_one_is_let_be),
		TEST(pods_are_written_beside_each_other_and_no_more_than_there_can_be),
		TEST(a_pod_that_cannot_be_written_is_given_up_in_the_end),
		TEST(test_urgent_members_do_not_wait),
		TEST(test_failed_members_come_again),
		TEST(test_urgent_writes_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
