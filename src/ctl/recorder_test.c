/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/fake_store.h"
#include "harness/test.h"
#include "ctl/recorder.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench {
	struct hf_loop *loop;
	struct fake_store *store;
	struct hf_recorder *recorder;
	hf_time now; /* time stamp of the events */
};

static int setup(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	bench->loop = hf_loop_create_virtual(0);
	bench->store = fake_store_create();
	bench->now = 1000 * HF_SECOND;
	struct hf_recorder_options options = {.loop = bench->loop,
					      .store = &bench->store->base,
					      .component = "pytorchjob-controller",
					      .seed = 1};

	bench->recorder = hf_recorder_create(&options);
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	hf_recorder_destroy(bench->recorder);
	fake_store_destroy(bench->store);
	hf_loop_destroy(bench->loop);
	free(bench);
	return 0;
}

static void record_note(struct bench *bench, const char *job, const char *reason,
			const char *message)
{
	struct hf_event_note note = {.api_version = "kubeflow.org/v1",
				     .kind = "PyTorchJob",
				     .ns = "team-a",
				     .name = job,
				     .uid = "u1",
				     .resource_version = "7",
				     .type = "Normal",
				     .reason = reason,
				     .message = message};

	hf_recorder_record(bench->recorder, &note, bench->now);
}

static struct fake_call *next_call(struct bench *bench)
{
	hf_loop_run_until(bench->loop, hf_loop_mono(bench->loop) + HF_MINUTE);
	return fake_next(bench->store);
}

static const char *text_of(const struct fake_call *call, const char *key)
{
	return hf_json_str(hf_json_get(hf_doc_json(call->request->body), key), "absent");
}

static int64_t count_of(const struct fake_call *call)
{
	return hf_json_i64(hf_json_get(hf_doc_json(call->request->body), "count"), -1);
}

static void grant_write(struct fake_call *call)
{
	fake_answer_object(call, fake_object("e", "u", "1", ""));
}

static void test_an_event_is_written_as_clients_read_it(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	record_note(bench, "ddp", "PyTorchJobSucceeded",
		    "PyTorchJob ddp is successfully completed.");
	call = next_call(bench);
	assert_int_equal(call->request->verb, HF_VERB_CREATE);
	assert_string_equal(call->request->resource->plural, "events");
	assert_string_equal(call->request->ns, "team-a");
	HF_AUTO_JSON want = NULL;
	const char *text =
		"{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":"
		"\"ddp.000000e8d4a51000\",\"namespace\":\"team-a\"},\"involvedObject\":{\"kind\":"
		"\"PyTorchJob\",\"namespace\":\"team-a\",\"name\":\"ddp\",\"uid\":\"u1\","
		"\"apiVersion\":\"kubeflow.org/v1\",\"resourceVersion\":\"7\"},\"reason\":"
		"\"PyTorchJobSucceeded\",\"message\":\"PyTorchJob ddp is successfully completed.\","
		"\"source\":{\"component\":\"pytorchjob-controller\"},\"firstTimestamp\":"
		"\"1970-01-01T00:16:40Z\",\"lastTimestamp\":\"1970-01-01T00:16:40Z\",\"count\":1,"
		"\"type\":\"Normal\",\"reportingComponent\":\"pytorchjob-controller\","
		"\"reportingInstance\":\"\"}";
	struct hf_error err;

	assert_ok(hf_json_parse(text, strlen(text), NULL, &want, &err), &err);
	assert_true(hf_json_equal(hf_doc_json(call->request->body), want));
	grant_write(call);
	assert_null(next_call(bench));
	assert_int_equal(hf_recorder_stats(bench->recorder)->created, 1);
	assert_int_equal(hf_recorder_pending(bench->recorder), 0);
}

static void test_the_same_event_again_patches_its_count(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	record_note(bench, "ddp", "R", "m");
	call = next_call(bench);
	const char *name = hf_doc_name(call->request->body);

	grant_write(call);
	bench->now += HF_MINUTE;
	record_note(bench, "ddp", "R", "m");
	call = next_call(bench);
	assert_int_equal(call->request->verb, HF_VERB_PATCH);
	assert_int_equal(call->request->patch_type, HF_PATCH_MERGE);
	assert_string_equal(call->request->name, name);
	assert_int_equal(count_of(call), 2);
	assert_string_equal(text_of(call, "lastTimestamp"), "1970-01-01T00:17:40Z");
	assert_string_equal(text_of(call, "firstTimestamp"), "absent");
	grant_write(call);
	assert_int_equal(hf_recorder_stats(bench->recorder)->patched, 1);
}

static void test_events_that_wait_are_counted_before_they_are_sent(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	record_note(bench, "ddp", "R", "m");
	call = next_call(bench);
	for (int i = 0; i < 3; i++) {
		record_note(bench, "ddp", "R", "m");
		record_note(bench, "ddp", "S", "m");
	}
	assert_int_equal(hf_recorder_pending(bench->recorder), 2);
	grant_write(call);
	call = next_call(bench);
	assert_string_equal(text_of(call, "reason"), "S");
	assert_int_equal(count_of(call), 3);
	grant_write(call);
	call = next_call(bench);
	assert_int_equal(call->request->verb, HF_VERB_PATCH);
	assert_int_equal(count_of(call), 4);
	grant_write(call);
	assert_null(next_call(bench));
}

static void test_two_events_of_one_moment_have_two_names(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	record_note(bench, "ddp", "R", "m");
	record_note(bench, "ddp", "S", "m");
	call = next_call(bench);
	grant_write(call);
	struct fake_call *second = next_call(bench);

	assert_string_not_equal(hf_doc_name(call->request->body),
				hf_doc_name(second->request->body));
	grant_write(second);
}

static void test_more_than_ten_similar_events_become_one(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;
	char message[16];

	for (int i = 0; i < 14; i++) {
		snprintf(message, sizeof(message), "pod %d", i);
		record_note(bench, "ddp", "R", message);
	}
	for (int i = 0; i < 10; i++) {
		call = next_call(bench);
		assert_null(strstr(text_of(call, "message"), "combined"));
		grant_write(call);
	}
	call = next_call(bench);
	assert_string_equal(text_of(call, "message"), "(combined from similar events): pod 13");
	assert_int_equal(count_of(call), 4);
	grant_write(call);
	assert_null(next_call(bench));
	/* After a time without events of this group, its messages are no longer combined. */
	bench->now += 11 * HF_MINUTE;
	record_note(bench, "ddp", "R", "pod 20");
	call = next_call(bench);
	assert_string_equal(text_of(call, "message"), "pod 20");
	grant_write(call);
}

static void test_an_object_may_cause_25_events_and_then_one_in_5_minutes(void **state)
{
	struct bench *bench = *state;
	char reason[16];

	for (int i = 0; i < 40; i++) {
		snprintf(reason, sizeof(reason), "R%d", i);
		record_note(bench, "ddp", reason, "m");
	}
	assert_int_equal(hf_recorder_stats(bench->recorder)->spam, 15);
	record_note(bench, "other", "R", "m");
	assert_int_equal(hf_recorder_stats(bench->recorder)->spam, 15);
	bench->now += 5 * HF_MINUTE;
	record_note(bench, "ddp", "S", "m");
	record_note(bench, "ddp", "T", "m");
	assert_int_equal(hf_recorder_stats(bench->recorder)->spam, 16);
	assert_int_equal(hf_recorder_pending(bench->recorder), 27);
}

static void record_routine(struct bench *bench, int i)
{
	HF_AUTOFREE char *name = hf_xasprintf("job-%d", i);
	const struct hf_event_note note = {
		.kind = "PyTorchJob",
		.ns = "team-a",
		.name = name,
		.uid = name,
		.type = "Normal",
		.reason = "SuccessfulCreatePod",
		.message = "Created 4 pods",
		.routine = true,
	};

	hf_recorder_record(bench->recorder, &note, bench->now);
}

static void test_256_routine_events_may_come_at_once_and_one_a_second(void **state)
{
	struct bench *bench = *state;
	const struct hf_recorder_stats *stats = hf_recorder_stats(bench->recorder);

	for (int i = 0; i < 300; i++)
		record_routine(bench, i);
	assert_int_equal(hf_recorder_pending(bench->recorder), 256);
	assert_int_equal(stats->spared, 300 - 256);
	/* Other events are not affected. */
	record_note(bench, "job-299", "PyTorchJobFailed", "m");
	assert_int_equal(hf_recorder_pending(bench->recorder), 257);
	bench->now += 2 * HF_SECOND;
	for (int i = 300; i < 310; i++)
		record_routine(bench, i);
	assert_int_equal(hf_recorder_pending(bench->recorder), 259);
	assert_int_equal(stats->dropped + stats->spam, 0);
}

static void test_a_full_queue_drops_and_counts(void **state)
{
	struct bench *bench = *state;
	char job[16];

	for (int i = 0; i < 1010; i++) {
		snprintf(job, sizeof(job), "j%d", i);
		record_note(bench, job, "R", "m");
	}
	assert_int_equal(hf_recorder_pending(bench->recorder), 1000);
	assert_int_equal(hf_recorder_stats(bench->recorder)->dropped, 10);
	/* The queue is full, but an event that already waits in it still counts up. */
	record_note(bench, "j5", "R", "m");
	assert_int_equal(hf_recorder_stats(bench->recorder)->dropped, 10);
}

static void test_old_correlations_make_room_for_new_ones(void **state)
{
	struct bench *bench = *state;
	char job[16];

	for (int i = 0; i < 5000; i++) {
		snprintf(job, sizeof(job), "j%d", i);
		record_note(bench, job, "R", "m");
		/* Only the first event is sent and answered, so the later ones fill the queue. */
		for (struct fake_call *call;
		     i % 500 == 0 && i < 400 && (call = next_call(bench)) != NULL;)
			grant_write(call);
	}
	assert_int_equal(hf_recorder_pending(bench->recorder), 1000);
}

static void test_a_transient_failure_is_retried_and_a_refusal_drops_the_event(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	record_note(bench, "ddp", "R", "m");
	fake_refuse(next_call(bench), HF_E_UNAVAILABLE);
	fake_refuse(next_call(bench), HF_E_TOO_MANY);
	call = next_call(bench);
	assert_int_equal(call->request->verb, HF_VERB_CREATE);
	grant_write(call);
	record_note(bench, "ddp", "S", "m");
	fake_refuse(next_call(bench), HF_E_FORBIDDEN);
	assert_null(next_call(bench));
	assert_int_equal(hf_recorder_stats(bench->recorder)->dropped, 1);
	/* The event was refused. If it is recorded again, it is a new event with count 1. */
	record_note(bench, "ddp", "S", "m");
	call = next_call(bench);
	assert_int_equal(count_of(call), 1);
	grant_write(call);
}

static void count_refusal(void *arg, int code, const char *message)
{
	assert_int_equal(code, HF_E_FORBIDDEN);
	assert_non_null(message);
	(*(unsigned *)arg)++;
}

static void test_only_the_first_of_many_refusals_is_reported(void **state)
{
	struct bench *bench = *state;
	unsigned told = 0;
	struct hf_recorder_options options = {.loop = bench->loop,
					      .store = &bench->store->base,
					      .component = "c",
					      .refused = count_refusal,
					      .arg = &told};

	hf_recorder_destroy(bench->recorder);
	bench->recorder = hf_recorder_create(&options);
	record_note(bench, "ddp", "R", "m");
	record_note(bench, "ddp", "S", "m");
	fake_refuse(next_call(bench), HF_E_FORBIDDEN);
	fake_refuse(next_call(bench), HF_E_FORBIDDEN);
	assert_int_equal(told, 1);
	record_note(bench, "ddp", "T", "m");
	grant_write(next_call(bench));
	/* A client that may create events may still not be allowed to patch them. */
	record_note(bench, "ddp", "T", "m");
	fake_refuse(next_call(bench), HF_E_FORBIDDEN);
	assert_int_equal(told, 2);
	record_note(bench, "ddp", "U", "m");
	fake_refuse(next_call(bench), HF_E_FORBIDDEN);
	assert_int_equal(told, 3);
}

static void test_after_twelve_tries_an_event_is_given_up(void **state)
{
	struct bench *bench = *state;

	record_note(bench, "ddp", "R", "m");
	record_note(bench, "ddp", "S", "m");
	for (int i = 0; i < 12; i++)
		fake_refuse(next_call(bench), HF_E_INTERNAL);
	assert_int_equal(hf_recorder_stats(bench->recorder)->dropped, 1);
	struct fake_call *call = next_call(bench);

	assert_string_equal(text_of(call, "reason"), "S");
	grant_write(call);
}

static void test_a_create_whose_reply_was_lost_is_not_repeated(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	record_note(bench, "ddp", "R", "m");
	fake_refuse(next_call(bench), HF_E_TIMEOUT);
	fake_refuse(next_call(bench), HF_E_EXISTS);
	assert_int_equal(hf_recorder_stats(bench->recorder)->created, 1);
	record_note(bench, "ddp", "R", "m");
	call = next_call(bench);
	assert_int_equal(call->request->verb, HF_VERB_PATCH);
	grant_write(call);
}

static void test_an_event_name_that_exists_is_changed(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	record_note(bench, "ddp", "R", "m");
	call = next_call(bench);
	fake_refuse(call, HF_E_EXISTS);
	struct fake_call *again = next_call(bench);

	assert_string_not_equal(hf_doc_name(call->request->body),
				hf_doc_name(again->request->body));
	grant_write(again);
}

static void test_an_expired_event_is_created_again(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	record_note(bench, "ddp", "R", "m");
	grant_write(next_call(bench));
	record_note(bench, "ddp", "R", "m");
	fake_refuse(next_call(bench), HF_E_NOT_FOUND);
	call = next_call(bench);
	assert_int_equal(call->request->verb, HF_VERB_CREATE);
	assert_int_equal(count_of(call), 2);
	grant_write(call);
}

static void test_long_messages_are_cut_between_characters(void **state)
{
	struct bench *bench = *state;
	char message[2049];
	struct fake_call *call;

	for (size_t i = 0; i + 1 < sizeof(message); i += 2)
		memcpy(message + i, "\xc3\xa9", 2); /* é */
	message[2048] = '\0';
	record_note(bench, "ddp", "R", message);
	call = next_call(bench);
	const char *text = text_of(call, "message");

	assert_in_range(strlen(text), 1000, 1024);
	assert_true(hf_utf8_valid(text, strlen(text)));
	assert_true(hf_str_has_suffix(text, "\xa9..."));
	grant_write(call);
}

static void test_events_about_cluster_objects_live_in_namespace_default(void **state)
{
	struct bench *bench = *state;
	struct hf_event_note note = {.api_version = "v1",
				     .kind = "Node",
				     .name = "n1",
				     .type = "Warning",
				     .reason = "R",
				     .message = "m",
				     .component = "agent"};
	struct fake_call *call;

	hf_recorder_record(bench->recorder, &note, bench->now);
	call = next_call(bench);
	assert_string_equal(call->request->ns, "default");
	const struct hf_json *body = hf_doc_json(call->request->body);

	assert_null(hf_json_path(body, "involvedObject", "namespace", NULL));
	assert_string_equal(hf_json_path_str(body, "source", "component", NULL), "agent");
	grant_write(call);
}

static void count_call(void *arg)
{
	++*(int *)arg;
}

static void test_a_delay_holds_the_first_of_a_row_and_drain_ends_it(void **state)
{
	struct bench *bench = *state;
	struct hf_recorder_options options = {.loop = bench->loop,
					      .store = &bench->store->base,
					      .component = "c",
					      .delay = 200 * HF_MS};
	int told = 0;

	hf_recorder_destroy(bench->recorder);
	bench->recorder = hf_recorder_create(&options);
	record_note(bench, "ddp", "R", "m");
	record_note(bench, "ddp", "R", "m2");
	hf_loop_run_until(bench->loop, 199 * HF_MS);
	assert_null(fake_next(bench->store));
	hf_loop_run_until(bench->loop, 200 * HF_MS);
	grant_write(fake_next(bench->store));
	grant_write(next_call(bench));
	record_note(bench, "ddp", "R", "m3");
	hf_loop_run_until(bench->loop, hf_loop_mono(bench->loop));
	assert_null(fake_next(bench->store));
	hf_recorder_drain(bench->recorder, count_call, &told);
	hf_loop_run_until(bench->loop, hf_loop_mono(bench->loop));
	grant_write(fake_next(bench->store));
	next_call(bench);
	assert_int_equal(told, 1);
}

static void test_drain_tells_once_when_nothing_waits_any_more(void **state)
{
	struct bench *bench = *state;
	int told = 0;

	record_note(bench, "ddp", "R", "m");
	hf_recorder_drain(bench->recorder, count_call, &told);
	struct fake_call *call = next_call(bench);

	assert_int_equal(told, 0);
	grant_write(call);
	next_call(bench);
	assert_int_equal(told, 1);
	record_note(bench, "ddp", "S", "m");
	grant_write(next_call(bench));
	next_call(bench);
	assert_int_equal(told, 1);
	hf_recorder_drain(bench->recorder, count_call, &told);
	assert_int_equal(told, 1);
	next_call(bench);
	assert_int_equal(told, 2);
}

static void test_destroy_drops_waiting_events(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	record_note(bench, "ddp", "R", "m");
	record_note(bench, "ddp", "S", "m");
	call = next_call(bench);
	bench->recorder = hf_recorder_destroy(bench->recorder);
	assert_true(call->canceled);
	hf_loop_run(bench->loop);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_an_event_is_written_as_clients_read_it),
		T(test_the_same_event_again_patches_its_count),
		T(test_events_that_wait_are_counted_before_they_are_sent),
		T(test_two_events_of_one_moment_have_two_names),
		T(test_more_than_ten_similar_events_become_one),
		T(test_an_object_may_cause_25_events_and_then_one_in_5_minutes),
		T(test_256_routine_events_may_come_at_once_and_one_a_second),
		T(test_a_full_queue_drops_and_counts),
		T(test_old_correlations_make_room_for_new_ones),
		T(test_a_transient_failure_is_retried_and_a_refusal_drops_the_event),
		T(test_only_the_first_of_many_refusals_is_reported),
		T(test_after_twelve_tries_an_event_is_given_up),
		T(test_a_create_whose_reply_was_lost_is_not_repeated),
		T(test_an_event_name_that_exists_is_changed),
		T(test_an_expired_event_is_created_again),
		T(test_long_messages_are_cut_between_characters),
		T(test_events_about_cluster_objects_live_in_namespace_default),
		T(test_drain_tells_once_when_nothing_waits_any_more),
		T(test_a_delay_holds_the_first_of_a_row_and_drain_ends_it),
		T(test_destroy_drops_waiting_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
