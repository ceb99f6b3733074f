/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/fake_store.h"
#include "harness/test.h"
#include "ctl/write_guard.h"

#include "base/mem.h"
#include "base/str.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

struct bench {
	struct hf_loop *loop;
	struct fake_store *behind;
	struct hf_store *guard;
	hf_time left;
	int replies, code;
};

static hf_time time_left(void *arg)
{
	return ((struct bench *)arg)->left;
}

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct bench *bench = arg;

	bench->replies++;
	bench->code = reply->code;
}

static int setup(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));
	struct hf_write_guard_options options = {.left = time_left, .arg = bench};

	bench->left = 7 * HF_SECOND;
	bench->loop = hf_loop_create_virtual(0);
	bench->behind = fake_store_create();
	options.loop = bench->loop;
	options.store = &bench->behind->base;
	bench->guard = hf_write_guard_create(&options);
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	hf_store_destroy(bench->guard);
	fake_store_destroy(bench->behind);
	hf_loop_destroy(bench->loop);
	free(bench);
	return 0;
}

static struct hf_call *send_request(struct bench *bench, enum hf_verb verb, hf_time timeout)
{
	HF_AUTO_DOC body = fake_object("a", "", "", "v");
	const struct hf_request request = {
		.verb = verb,
		.resource = &hf_pods,
		.ns = "default",
		.name = verb == HF_VERB_CREATE || verb == HF_VERB_LIST ? NULL : "a",
		.body = verb == HF_VERB_CREATE ? body : NULL,
		.timeout = timeout,
	};

	return hf_store_request(bench->guard, &request, on_reply, bench);
}

static void test_writes_have_a_deadline_within_the_time_left(void **state)
{
	struct bench *bench = *state;

	send_request(bench, HF_VERB_CREATE, 0);
	send_request(bench, HF_VERB_DELETE, 5 * HF_SECOND);
	send_request(bench, HF_VERB_DELETE, HF_MINUTE);
	assert_int_equal(fake_next(bench->behind)->request->timeout, 7 * HF_SECOND);
	assert_int_equal(fake_next(bench->behind)->request->timeout, 5 * HF_SECOND);
	assert_int_equal(fake_next(bench->behind)->request->timeout, 7 * HF_SECOND);
}

static void test_nothing_is_written_when_nothing_is_left(void **state)
{
	struct bench *bench = *state;

	bench->left = 0;
	send_request(bench, HF_VERB_CREATE, 0);
	send_request(bench, HF_VERB_DELETE, 0);
	send_request(bench, HF_VERB_PATCH, 0);
	send_request(bench, HF_VERB_UPDATE, 0);
	assert_null(fake_next(bench->behind));
	assert_int_equal(bench->replies, 0);
	hf_loop_run_until(bench->loop, 0);
	assert_int_equal(bench->replies, 4);
	assert_int_equal(bench->code, HF_E_UNAVAILABLE);
	assert_int_equal(hf_write_guard_held_back(bench->guard), 4);
}

static void test_reads_pass_at_any_time_and_as_they_are(void **state)
{
	struct bench *bench = *state;

	bench->left = 0;
	send_request(bench, HF_VERB_GET, 0);
	send_request(bench, HF_VERB_LIST, HF_MINUTE);
	assert_int_equal(fake_next(bench->behind)->request->timeout, 0);
	assert_int_equal(fake_next(bench->behind)->request->timeout, HF_MINUTE);
}

static void test_answers_are_passed_on(void **state)
{
	struct bench *bench = *state;

	send_request(bench, HF_VERB_DELETE, 0);
	fake_refuse(fake_next(bench->behind), HF_E_CONFLICT);
	assert_int_equal(bench->replies, 1);
	assert_int_equal(bench->code, HF_E_CONFLICT);
}

static void test_canceling_a_request_cancels_it_in_the_store_behind(void **state)
{
	struct bench *bench = *state;

	hf_call_cancel(send_request(bench, HF_VERB_GET, 0));
	assert_true(fake_next(bench->behind)->canceled);
	bench->left = 0;
	hf_call_cancel(send_request(bench, HF_VERB_CREATE, 0));
	hf_loop_run_until(bench->loop, HF_SECOND);
	assert_int_equal(bench->replies, 0);
}

static void test_the_end_of_the_guard_ends_its_requests_and_not_the_store(void **state)
{
	struct bench *bench = *state;

	send_request(bench, HF_VERB_GET, 0);
	send_request(bench, HF_VERB_CREATE, 0);
	bench->guard = hf_store_destroy(bench->guard);
	assert_int_equal(bench->replies, 2);
	assert_int_equal(bench->code, HF_E_CANCELED);
	assert_true(fake_next(bench->behind)->canceled);
	assert_true(fake_next(bench->behind)->canceled);
}

static void on_event(void *arg, const struct hf_event *event)
{
	((struct bench *)arg)->replies++;
}

static void test_watches_are_those_of_the_store_behind(void **state)
{
	struct bench *bench = *state;
	const struct hf_watch_options options = {.resource = &hf_pods};
	struct hf_watch *watch = hf_store_watch(bench->guard, &options, on_event, bench);

	fake_bookmark(fake_watch_live(bench->behind), "5");
	assert_int_equal(bench->replies, 1);
	hf_watch_stop(watch);
	assert_null(fake_watch_live(bench->behind));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_writes_have_a_deadline_within_the_time_left),
		T(test_nothing_is_written_when_nothing_is_left),
		T(test_reads_pass_at_any_time_and_as_they_are),
		T(test_answers_are_passed_on),
		T(test_canceling_a_request_cancels_it_in_the_store_behind),
		T(test_the_end_of_the_guard_ends_its_requests_and_not_the_store),
		T(test_watches_are_those_of_the_store_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
