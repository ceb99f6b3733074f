/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/fake_store.h"
#include "harness/test.h"
#include "ctl/lease.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench {
	struct hf_loop *loop;
	struct fake_store *store;
	struct hf_lease *lease;
	int got, lost, released;
	int problem;
	char why[128];
};

static void on_changed(void *arg, bool held, const char *why)
{
	struct bench *bench = arg;

	bench->got += held;
	bench->lost += !held;
	snprintf(bench->why, sizeof(bench->why), "%s", why);
	/* hf_lease_left agrees with the callback. */
	assert_true(held == (hf_lease_left(bench->lease) > 0));
}

static void on_problem(void *arg, int code, const char *message)
{
	((struct bench *)arg)->problem = code;
}

static int setup(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));
	struct hf_lease_options options = {.ns = "n",
					   .name = "l",
					   .identity = "me",
					   .seed = 1,
					   .changed = on_changed,
					   .problem = on_problem,
					   .arg = bench};

	bench->loop = hf_loop_create_virtual(1700000000 * HF_SECOND);
	bench->store = fake_store_create();
	options.loop = bench->loop;
	options.store = &bench->store->base;
	bench->lease = hf_lease_create(&options);
	hf_lease_start(bench->lease);
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	hf_lease_destroy(bench->lease);
	fake_store_destroy(bench->store);
	hf_loop_destroy(bench->loop);
	free(bench);
	return 0;
}

static void turn_for(struct bench *bench, hf_time span)
{
	hf_loop_run_until(bench->loop, hf_loop_mono(bench->loop) + span);
}

static struct fake_call *next_call(struct bench *bench)
{
	turn_for(bench, 0);
	return fake_next(bench->store);
}

static struct fake_call *expect_call(struct bench *bench, enum hf_verb verb)
{
	struct fake_call *call = next_call(bench);

	assert_non_null(call);
	assert_int_equal(call->request->verb, verb);
	assert_string_equal(call->request->resource->plural, "leases");
	return call;
}

static struct hf_doc *lease_doc(const char *version, const char *spec)
{
	HF_AUTOFREE char *text =
		hf_xasprintf("{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
			     "\"metadata\":{\"name\":\"l\",\"namespace\":\"n\",\"uid\":\"u\","
			     "\"resourceVersion\":\"%s\"}%s%s}",
			     version, spec[0] == '\0' ? "" : ",\"spec\":", spec);

	return hf_doc_from_text(text, strlen(text));
}

static const struct hf_json *spec_of(const struct fake_call *call)
{
	return hf_json_get(hf_doc_json(call->request->body), "spec");
}

static const char *spec_text(const struct fake_call *call, const char *key)
{
	return hf_json_str(hf_json_get(spec_of(call), key), "absent");
}

/* Answers a write as an API server would: the reply is the written object, with this version. */
static void grant_write(struct fake_call *call, const char *version)
{
	struct hf_json *root = hf_doc_copy_json(call->request->body);
	struct hf_json *metadata = hf_json_ensure_object(root, "metadata");

	hf_json_set_str(metadata, "uid", "u");
	hf_json_set_str(metadata, "resourceVersion", version);
	fake_answer_object(call, hf_doc_from_json(root));
}

#define OTHERS                                                                                     \
	"{\"holderIdentity\":\"other\",\"leaseDurationSeconds\":15,\"leaseTransitions\":4,"        \
	"\"acquireTime\":\"2023-11-14T22:00:00.000000Z\","                                         \
	"\"renewTime\":\"2023-11-14T22:00:00.000000Z\"}"

static void acquire_lease(struct bench *bench)
{
	fake_refuse(expect_call(bench, HF_VERB_GET), HF_E_NOT_FOUND);
	grant_write(expect_call(bench, HF_VERB_CREATE), "1");
	assert_int_equal(bench->got, 1);
}

/* --- taking the Lease ---------------------------------------------------------------------- */

static void test_a_missing_lease_is_created(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	assert_int_equal(hf_lease_left(bench->lease), 0);
	fake_refuse(expect_call(bench, HF_VERB_GET), HF_E_NOT_FOUND);
	call = expect_call(bench, HF_VERB_CREATE);
	assert_string_equal(call->request->ns, "n");
	assert_string_equal(spec_text(call, "holderIdentity"), "me");
	assert_string_equal(spec_text(call, "renewTime"), "2023-11-14T22:13:20.000000Z");
	assert_int_equal(hf_json_i64(hf_json_get(spec_of(call), "leaseDurationSeconds"), 0), 15);
	assert_int_equal(bench->got, 0);
	grant_write(call, "1");
	assert_int_equal(bench->got, 1);
	assert_string_equal(hf_lease_holder(bench->lease), "me");
	assert_int_equal(hf_lease_left(bench->lease), 10 * HF_SECOND);
}

static void test_validity_counts_from_the_sending_not_from_the_answer(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	fake_refuse(expect_call(bench, HF_VERB_GET), HF_E_NOT_FOUND);
	call = expect_call(bench, HF_VERB_CREATE);
	turn_for(bench, 4 * HF_SECOND);
	grant_write(call, "1");
	assert_int_equal(hf_lease_left(bench->lease), 6 * HF_SECOND);
}

static void test_an_answer_slower_than_the_lease_gives_no_leadership(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	fake_refuse(expect_call(bench, HF_VERB_GET), HF_E_NOT_FOUND);
	call = expect_call(bench, HF_VERB_CREATE);
	turn_for(bench, 11 * HF_SECOND);
	grant_write(call, "1");
	assert_int_equal(bench->got, 0);
	/* The stored Lease names this process as holder, so the process renews the Lease. */
	turn_for(bench, HF_SECOND);
	grant_write(expect_call(bench, HF_VERB_UPDATE), "2");
	assert_int_equal(bench->got, 1);
}

static void test_another_processs_lease_is_respected_for_its_duration_on_our_clock(void **state)
{
	struct bench *bench = *state;
	hf_time begin = hf_loop_mono(bench->loop);
	struct fake_call *call;

	/* The Lease's renewTime is an hour old by our clock, which must not matter. */
	for (;;) {
		turn_for(bench, HF_SECOND);
		call = fake_next(bench->store);
		if (call == NULL)
			continue;
		if (call->request->verb != HF_VERB_GET)
			break;
		fake_answer_object(call, lease_doc("7", OTHERS));
		assert_string_equal(hf_lease_holder(bench->lease), "other");
	}
	assert_int_equal(call->request->verb, HF_VERB_UPDATE);
	assert_in_range(hf_loop_mono(bench->loop) - begin, 15 * HF_SECOND, 21 * HF_SECOND);
	assert_string_equal(hf_doc_resource_version(call->request->body), "7");
	assert_string_equal(spec_text(call, "holderIdentity"), "me");
	assert_int_equal(hf_json_i64(hf_json_get(spec_of(call), "leaseTransitions"), 0), 5);
	grant_write(call, "8");
	assert_int_equal(bench->got, 1);
}

static void test_a_renewed_lease_is_never_taken(void **state)
{
	struct bench *bench = *state;
	char spec[160];

	for (int i = 0; i < 100; i++) {
		struct fake_call *call = next_call(bench);

		if (call != NULL) {
			assert_int_equal(call->request->verb, HF_VERB_GET);
			snprintf(spec, sizeof(spec),
				 "{\"holderIdentity\":\"other\",\"leaseDurationSeconds\":15,"
				 "\"renewTime\":\"t%d\"}",
				 i);
			fake_answer_object(call, lease_doc("7", spec));
		}
		turn_for(bench, HF_SECOND);
	}
	assert_int_equal(bench->got, 0);
}

static void test_a_change_of_metadata_alone_does_not_renew_a_lease(void **state)
{
	struct bench *bench = *state;
	char version[16];

	/* A user edits the labels again and again; the record itself does not change. */
	for (int i = 0; i < 30 && bench->got == 0; i++) {
		struct fake_call *call = next_call(bench);

		snprintf(version, sizeof(version), "%d", 10 + i);
		if (call != NULL && call->request->verb == HF_VERB_GET)
			fake_answer_object(call, lease_doc(version, OTHERS));
		else if (call != NULL)
			grant_write(call, version);
		turn_for(bench, HF_SECOND);
	}
	assert_int_equal(bench->got, 1);
}

static void test_a_released_lease_is_taken_at_once(void **state)
{
	struct bench *bench = *state;

	fake_answer_object(expect_call(bench, HF_VERB_GET),
			   lease_doc("7", "{\"holderIdentity\":\"\",\"leaseDurationSeconds\":1}"));
	grant_write(expect_call(bench, HF_VERB_UPDATE), "8");
	assert_int_equal(bench->got, 1);
}

static void test_of_two_concurrent_creators_one_becomes_leader(void **state)
{
	struct bench *bench = *state;

	fake_refuse(expect_call(bench, HF_VERB_GET), HF_E_NOT_FOUND);
	fake_refuse(expect_call(bench, HF_VERB_CREATE), HF_E_EXISTS);
	turn_for(bench, 100 * HF_MS);
	fake_answer_object(expect_call(bench, HF_VERB_GET), lease_doc("7", OTHERS));
	assert_null(next_call(bench));
	assert_int_equal(bench->got, 0);
}

static void test_waiting_processes_retry_at_different_times(void **state)
{
	struct bench *bench = *state;
	hf_time begin = hf_loop_mono(bench->loop), first = 0, second;
	struct fake_call *call = expect_call(bench, HF_VERB_GET);

	for (int i = 0; i < 2; i++) {
		first = hf_loop_mono(bench->loop) - begin;
		begin = hf_loop_mono(bench->loop);
		fake_answer_object(call, lease_doc("7", OTHERS));
		while ((call = next_call(bench)) == NULL)
			turn_for(bench, HF_MS);
	}
	second = hf_loop_mono(bench->loop) - begin;
	assert_true(first != second);
	assert_in_range(first, 2 * HF_SECOND, 5 * HF_SECOND);
	assert_in_range(second, 2 * HF_SECOND, 5 * HF_SECOND);
}

/* --- invalid content ----------------------------------------------------------------------- */

/* Returns the time until the Lease is taken, measured in steps of `step`. Every read returns
 * this spec. */
static hf_time time_to_take(struct bench *bench, const char *spec, hf_time step)
{
	hf_time begin = hf_loop_mono(bench->loop);

	for (;;) {
		struct fake_call *call = next_call(bench);

		if (call != NULL && call->request->verb != HF_VERB_GET) {
			grant_write(call, "8");
			break;
		}
		if (call != NULL)
			fake_answer_object(call, lease_doc("7", spec));
		else
			hf_loop_freeze(bench->loop, step);
	}
	assert_int_equal(bench->got, 1);
	return hf_loop_mono(bench->loop) - begin;
}

static void test_a_lease_without_a_spec_has_no_holder(void **state)
{
	assert_int_equal(time_to_take(*state, "", HF_SECOND), 0);
}

static void test_a_spec_that_is_no_object_has_no_holder(void **state)
{
	assert_int_equal(time_to_take(*state, "\"x\"", HF_SECOND), 0);
}

static void test_a_holder_that_is_no_text_counts_as_none(void **state)
{
	assert_int_equal(time_to_take(*state, "{\"holderIdentity\":7}", HF_SECOND), 0);
}

static void test_an_invalid_duration_counts_as_our_own(void **state)
{
	assert_in_range(time_to_take(*state,
				     "{\"holderIdentity\":\"x\",\"leaseTransitions\":-3,"
				     "\"leaseDurationSeconds\":-1,\"renewTime\":{}}",
				     HF_SECOND),
			15 * HF_SECOND, 21 * HF_SECOND);
}

static void test_a_duration_of_years_is_an_hour(void **state)
{
	assert_in_range(time_to_take(*state,
				     "{\"holderIdentity\":\"x\","
				     "\"leaseDurationSeconds\":9223372036854775807}",
				     HF_MINUTE),
			HF_HOUR, HF_HOUR + 2 * HF_MINUTE);
}

/* --- renewing ------------------------------------------------------------------------------ */

static void test_a_lease_is_renewed_every_two_seconds_with_one_request(void **state)
{
	struct bench *bench = *state;
	char version[16];

	acquire_lease(bench);
	for (int i = 0; i < 50; i++) {
		struct fake_call *call;

		turn_for(bench, 1999 * HF_MS);
		assert_null(next_call(bench));
		turn_for(bench, HF_MS);
		call = expect_call(bench, HF_VERB_UPDATE);
		assert_string_equal(spec_text(call, "acquireTime"), "2023-11-14T22:13:20.000000Z");
		assert_int_equal(hf_json_i64(hf_json_get(spec_of(call), "leaseTransitions"), -1),
				 1);
		snprintf(version, sizeof(version), "%d", i + 2);
		grant_write(call, version);
		assert_int_equal(hf_lease_left(bench->lease), 10 * HF_SECOND);
	}
	assert_int_equal(bench->lost, 0);
}

static void test_steps_of_the_wall_clock_change_nothing(void **state)
{
	struct bench *bench = *state;

	acquire_lease(bench);
	hf_loop_step_wall(bench->loop, -HF_DAY);
	turn_for(bench, 2 * HF_SECOND);
	grant_write(expect_call(bench, HF_VERB_UPDATE), "2");
	hf_loop_step_wall(bench->loop, 3 * HF_DAY);
	assert_int_equal(hf_lease_left(bench->lease), 10 * HF_SECOND);
	turn_for(bench, 2 * HF_SECOND);
	grant_write(expect_call(bench, HF_VERB_UPDATE), "3");
	assert_int_equal(bench->lost, 0);
}

static void test_the_lease_is_lost_when_the_api_server_is_away_for_ten_seconds(void **state)
{
	struct bench *bench = *state;
	hf_time begin;
	struct fake_call *call;

	acquire_lease(bench);
	begin = hf_loop_mono(bench->loop);
	while (bench->lost == 0) {
		turn_for(bench, 500 * HF_MS);
		if ((call = fake_next(bench->store)) != NULL)
			fake_refuse(call, HF_E_UNAVAILABLE);
		if (hf_loop_mono(bench->loop) - begin < 10 * HF_SECOND)
			assert_true(hf_lease_left(bench->lease) > 0);
	}
	assert_int_equal(hf_loop_mono(bench->loop) - begin, 10 * HF_SECOND);
	assert_int_equal(bench->problem, HF_E_UNAVAILABLE);
	assert_string_equal(bench->why, "the Lease was not renewed in time");
	/* When the API server answers again, the process takes the Lease again. */
	while ((call = next_call(bench)) == NULL)
		turn_for(bench, HF_SECOND);
	fake_answer_object(call, lease_doc("9", "{\"holderIdentity\":\"me\"}"));
	grant_write(expect_call(bench, HF_VERB_UPDATE), "10");
	assert_int_equal(bench->got, 2);
}

static void test_requests_have_a_deadline_within_the_time_left(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	acquire_lease(bench);
	turn_for(bench, 2 * HF_SECOND);
	call = expect_call(bench, HF_VERB_UPDATE);
	assert_int_equal(call->request->timeout, 5 * HF_SECOND);
	turn_for(bench, 5 * HF_SECOND);
	fake_refuse(call, HF_E_TIMEOUT);
	turn_for(bench, 2 * HF_SECOND);
	call = expect_call(bench, HF_VERB_GET);
	assert_int_equal(call->request->timeout, HF_SECOND);
}

static void test_after_a_lost_answer_the_lease_is_read_and_renewed_again(void **state)
{
	struct bench *bench = *state;

	acquire_lease(bench);
	turn_for(bench, 2 * HF_SECOND);
	fake_refuse(expect_call(bench, HF_VERB_UPDATE), HF_E_TIMEOUT);
	turn_for(bench, 2 * HF_SECOND);
	fake_answer_object(expect_call(bench, HF_VERB_GET),
			   lease_doc("5", "{\"holderIdentity\":\"me\"}"));
	grant_write(expect_call(bench, HF_VERB_UPDATE), "6");
	assert_int_equal(hf_lease_left(bench->lease), 10 * HF_SECOND);
	assert_int_equal(bench->lost, 0);
}

static void test_a_lease_edited_by_hand_is_overwritten(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	acquire_lease(bench);
	turn_for(bench, 2 * HF_SECOND);
	fake_refuse(expect_call(bench, HF_VERB_UPDATE), HF_E_CONFLICT);
	turn_for(bench, 100 * HF_MS);
	fake_answer_object(expect_call(bench, HF_VERB_GET),
			   lease_doc("50", "{\"holderIdentity\":\"me\",\"strange\":true}"));
	call = expect_call(bench, HF_VERB_UPDATE);
	assert_string_equal(hf_doc_resource_version(call->request->body), "50");
	assert_true(hf_json_true(hf_json_get(spec_of(call), "strange"), false));
	grant_write(call, "51");
	assert_int_equal(bench->lost, 0);
}

static void test_a_lease_given_to_another_holder_by_hand_is_lost_at_once(void **state)
{
	struct bench *bench = *state;

	acquire_lease(bench);
	turn_for(bench, 2 * HF_SECOND);
	fake_refuse(expect_call(bench, HF_VERB_UPDATE), HF_E_CONFLICT);
	turn_for(bench, 100 * HF_MS);
	fake_answer_object(expect_call(bench, HF_VERB_GET), lease_doc("50", OTHERS));
	assert_int_equal(bench->lost, 1);
	assert_string_equal(bench->why, "another process has taken the Lease");
	assert_int_equal(hf_lease_left(bench->lease), 0);
}

static void test_a_deleted_lease_is_created_again_and_kept(void **state)
{
	struct bench *bench = *state;

	acquire_lease(bench);
	turn_for(bench, 2 * HF_SECOND);
	fake_refuse(expect_call(bench, HF_VERB_UPDATE), HF_E_NOT_FOUND);
	turn_for(bench, 100 * HF_MS);
	fake_refuse(expect_call(bench, HF_VERB_GET), HF_E_NOT_FOUND);
	grant_write(expect_call(bench, HF_VERB_CREATE), "70");
	assert_int_equal(bench->lost, 0);
	assert_int_equal(hf_lease_left(bench->lease), 10 * HF_SECOND);
}

static void test_a_process_stopped_for_too_long_loses_the_lease_before_it_writes(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	acquire_lease(bench);
	hf_loop_freeze(bench->loop, 20 * HF_SECOND);
	/* hf_lease_left returns 0 even before a timer of the lease has run. */
	assert_int_equal(hf_lease_left(bench->lease), 0);
	call = expect_call(bench, HF_VERB_GET);
	assert_int_equal(bench->lost, 1);
	fake_answer_object(call, lease_doc("50", OTHERS));
	assert_null(next_call(bench));
	assert_int_equal(bench->got, 1);
}

static void test_a_server_that_stores_another_holder_gives_no_leadership(void **state)
{
	struct bench *bench = *state;

	fake_refuse(expect_call(bench, HF_VERB_GET), HF_E_NOT_FOUND);
	fake_answer_object(expect_call(bench, HF_VERB_CREATE), lease_doc("1", OTHERS));
	assert_int_equal(bench->got, 0);
	assert_int_equal(hf_lease_left(bench->lease), 0);
}

static void test_a_forbidden_request_is_reported_and_repeated(void **state)
{
	struct bench *bench = *state;

	fake_refuse(expect_call(bench, HF_VERB_GET), HF_E_NOT_FOUND);
	fake_refuse(expect_call(bench, HF_VERB_CREATE), HF_E_FORBIDDEN);
	assert_int_equal(bench->problem, HF_E_FORBIDDEN);
	turn_for(bench, 5 * HF_SECOND);
	(void)expect_call(bench, HF_VERB_GET);
}

/* --- releasing ----------------------------------------------------------------------------- */

static void on_released(void *arg)
{
	((struct bench *)arg)->released++;
}

static void test_a_release_writes_a_record_without_a_holder(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	acquire_lease(bench);
	hf_lease_release(bench->lease, on_released, bench);
	assert_int_equal(hf_lease_left(bench->lease), 0);
	call = expect_call(bench, HF_VERB_UPDATE);
	assert_string_equal(spec_text(call, "holderIdentity"), "");
	assert_int_equal(hf_json_i64(hf_json_get(spec_of(call), "leaseDurationSeconds"), 0), 1);
	assert_int_equal(bench->released, 0);
	grant_write(call, "2");
	turn_for(bench, HF_HOUR);
	assert_int_equal(bench->released, 1);
	assert_int_equal(bench->lost, 0);
	assert_null(next_call(bench));
}

static void test_a_release_waits_for_the_renewal_in_flight(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	acquire_lease(bench);
	turn_for(bench, 2 * HF_SECOND);
	call = expect_call(bench, HF_VERB_UPDATE);
	hf_lease_release(bench->lease, on_released, bench);
	assert_null(next_call(bench));
	grant_write(call, "2");
	call = expect_call(bench, HF_VERB_UPDATE);
	assert_string_equal(hf_doc_resource_version(call->request->body), "2");
	assert_string_equal(spec_text(call, "holderIdentity"), "");
	fake_refuse(call, HF_E_CONFLICT);
	turn_for(bench, 0);
	assert_int_equal(bench->released, 1);
}

static void test_a_release_does_not_wait_for_an_unreachable_server(void **state)
{
	struct bench *bench = *state;

	acquire_lease(bench);
	hf_lease_release(bench->lease, on_released, bench);
	(void)expect_call(bench, HF_VERB_UPDATE);
	turn_for(bench, 2 * HF_SECOND);
	assert_int_equal(bench->released, 1);
}

static void test_releasing_a_lease_that_is_not_held_needs_no_request(void **state)
{
	struct bench *bench = *state;

	fake_answer_object(expect_call(bench, HF_VERB_GET), lease_doc("7", OTHERS));
	hf_lease_release(bench->lease, on_released, bench);
	turn_for(bench, HF_MINUTE);
	assert_int_equal(bench->released, 1);
	assert_null(next_call(bench));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_missing_lease_is_created),
		T(test_validity_counts_from_the_sending_not_from_the_answer),
		T(test_an_answer_slower_than_the_lease_gives_no_leadership),
		T(test_another_processs_lease_is_respected_for_its_duration_on_our_clock),
		T(test_a_renewed_lease_is_never_taken),
		T(test_a_change_of_metadata_alone_does_not_renew_a_lease),
		T(test_a_released_lease_is_taken_at_once),
		T(test_of_two_concurrent_creators_one_becomes_leader),
		T(test_waiting_processes_retry_at_different_times),
		T(test_a_lease_without_a_spec_has_no_holder),
		T(test_a_spec_that_is_no_object_has_no_holder),
		T(test_a_holder_that_is_no_text_counts_as_none),
		T(test_an_invalid_duration_counts_as_our_own),
		T(test_a_duration_of_years_is_an_hour),
		T(test_a_lease_is_renewed_every_two_seconds_with_one_request),
		T(test_steps_of_the_wall_clock_change_nothing),
		T(test_the_lease_is_lost_when_the_api_server_is_away_for_ten_seconds),
		T(test_requests_have_a_deadline_within_the_time_left),
		T(test_after_a_lost_answer_the_lease_is_read_and_renewed_again),
		T(test_a_lease_edited_by_hand_is_overwritten),
		T(test_a_lease_given_to_another_holder_by_hand_is_lost_at_once),
		T(test_a_deleted_lease_is_created_again_and_kept),
		T(test_a_process_stopped_for_too_long_loses_the_lease_before_it_writes),
		T(test_a_server_that_stores_another_holder_gives_no_leadership),
		T(test_a_forbidden_request_is_reported_and_repeated),
		T(test_a_release_writes_a_record_without_a_holder),
		T(test_a_release_waits_for_the_renewal_in_flight),
		T(test_a_release_does_not_wait_for_an_unreachable_server),
		T(test_releasing_a_lease_that_is_not_held_needs_no_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
