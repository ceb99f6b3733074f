/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of requests with one response against a scripted server that fails, cuts, stalls and
 * refuses. */
#include "harness/kube_bench.h"

#include "base/str.h"
#include "kube/kube_internal.h"
#include "store/resource.h"

#include <time.h>

static void a_failing_server_is_asked_again_by_reads(void **state)
{
	static const char *const failures[] = {"500 Internal Server Error", "502 Bad Gateway",
					       "503 Unavailable", "504 Timeout"};

	for (size_t i = 0; i < HF_ARRAY_LEN(failures); i++) {
		struct bench *bench = *state;
		const struct step steps[] = {SAYS(failures[i], ""), SAYS("200 OK", POD), DONE};
		play_steps(bench, steps);
		assert_int_equal(get_pod(bench), 0);
		assert_string_equal(bench->name, "a");
		assert_int_equal(bench->server.requests, 2);
	}
}

static void a_failing_server_is_not_asked_again_by_writes(void **state)
{
	struct bench *bench = *state;
	static const struct step steps[] = {
		SAYS("500 Internal Server Error",
		     "{\"kind\":\"Status\",\"reason\":\"InternalError\",\"message\":\"etcd is slow\"}"),
		SAYS("201 Created", POD), DONE};

	play_steps(bench, steps);
	assert_int_equal(create_pod(bench), HF_E_INTERNAL);
	assert_string_equal(bench->message, "etcd is slow");
	assert_int_equal(bench->server.requests, 1);
}

static void reads_give_up_after_a_few_tries_and_say_so(void **state)
{
	struct bench *bench = *state;
	static const struct step steps[] = {SAYS("503 no", ""),  SAYS("503 no", ""),
					    SAYS("503 no", ""),  SAYS("503 no", ""),
					    SAYS("200 OK", POD), DONE};

	play_steps(bench, steps);
	assert_int_equal(get_pod(bench), HF_E_UNAVAILABLE);
	assert_int_equal(bench->server.requests, 4);
	assert_non_null(strstr(bench->message, "after 4 tries: "));
}

static void too_many_requests_come_back_when_told_to(void **state)
{
	struct bench *bench = *state;
	static const struct step steps[] = {SAYS("429 Busy\r\nRetry-After: 1", ""),
					    SAYS("201 Created", POD), DONE};
	hf_time before = hf_loop_mono(bench->t.loop);

	play_steps(bench, steps);
	assert_int_equal(create_pod(bench), 0);
	assert_int_equal(bench->server.requests, 2);
	assert_true(hf_loop_mono(bench->t.loop) - before >= HF_SECOND);
}

static void too_long_a_wait_is_reported_at_once(void **state)
{
	struct bench *bench = *state;
	static const struct step steps[] = {
		SAYS("429 Busy\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
		     "Retry-After: Sun, 06 Nov 1994 08:51:37 GMT",
		     ""),
		DONE};

	play_steps(bench, steps);
	assert_int_equal(get_pod(bench), HF_E_TOO_MANY);
	assert_true(bench->retry_after == 120 * HF_SECOND);
	assert_int_equal(bench->server.requests, 1);
}

static void a_lost_connection_is_tried_again_by_reads_alone(void **state)
{
	static const enum end ends[] = {CUT, RESET, CUT_IN_HEAD, CUT_IN_BODY, SHORT_BODY};

	for (size_t i = 0; i < HF_ARRAY_LEN(ends); i++) {
		struct bench *bench = *state;
		const struct step reads[] = {BREAKS(POD, ends[i]), SAYS("200 OK", POD), DONE};
		play_steps(bench, reads);
		if (get_pod(bench) != 0)
			fail_msg("end %d: %s", (int)ends[i], bench->message);
		assert_int_equal(bench->server.requests, 2);

		const struct step writes[] = {BREAKS(POD, ends[i]), SAYS("201 Created", POD), DONE};
		play_steps(bench, writes);
		/* HF_E_TIMEOUT tells the caller that the write may have been done, and that it must
		 * read the object. */
		if (create_pod(bench) != HF_E_TIMEOUT)
			fail_msg("end %d: %s", (int)ends[i], bench->message);
		assert_int_equal(bench->server.requests, 1);
	}
}

static void a_refusal_that_is_cut_behind_its_head_is_a_refusal(void **state)
{
	static const struct {
		const char *head;
		int code;
	} cases[] = {
		{"404 Not Found", HF_E_NOT_FOUND},
		{"403 Forbidden", HF_E_FORBIDDEN},
		{"422 Invalid", HF_E_INVALID},
		/* A 409 without its body can mean two things, so the outcome is unknown: the
		 * caller must read the object. */
		{"409 Conflict", HF_E_TIMEOUT},
		{"500 Internal Server Error", HF_E_TIMEOUT},
	};
	struct bench *bench = *state;
	const struct step busy[] = {{.head = "429 Busy\r\nRetry-After: 1", .end = CUT_REFUSAL},
				    SAYS("201 Created", POD),
				    DONE};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		const struct step steps[] = {{.head = cases[i].head, .end = CUT_REFUSAL}, DONE};
		play_steps(bench, steps);
		if (create_pod(bench) != cases[i].code)
			fail_msg("%s: %s", cases[i].head, bench->message);
		assert_int_equal(bench->server.requests, 1);
	}
	/* A 429 means that the server did nothing, so the call sends the write again. */
	play_steps(bench, busy);
	assert_int_equal(create_pod(bench), 0);
	assert_int_equal(bench->server.requests, 2);
	assert_int_equal(bench->seen[0].status, 429);
}

static void a_server_that_is_not_there_is_tried_a_few_times(void **state)
{
	struct bench *bench = *state;

	hf_scripted_shut(&bench->server);
	assert_int_equal(create_pod(bench), HF_E_UNAVAILABLE);
	assert_non_null(strstr(bench->message, "after 4 tries: "));
	assert_int_equal(bench->seen_count, 4);
	assert_int_equal(bench->seen[3].status, 0);
	assert_int_equal(bench->seen[3].retry, 3);
}

static void no_answer_in_time_is_a_timeout_and_the_end(void **state)
{
	struct bench *bench = *state;
	static const struct step steps[] = {BREAKS(POD, SILENCE), DONE};

	play_steps(bench, steps);
	bench->timeout = 50 * HF_MS;
	assert_int_equal(get_pod(bench), HF_E_TIMEOUT);
	assert_int_equal(bench->server.requests, 1);
}

static void a_body_past_its_limit_is_refused_with_the_limit(void **state)
{
	struct bench *bench = *state;
	static const struct step steps[] = {BREAKS(NULL, HUGE_BODY), DONE};

	play_steps(bench, steps);
	assert_int_equal(get_pod(bench), HF_E_TOO_LARGE);
	assert_non_null(strstr(bench->message, "67108864"));
	assert_int_equal(bench->server.requests, 1);
}

static void an_answer_that_is_no_json_leaves_the_outcome_unknown(void **state)
{
	static const char *const bodies[] = {"", "<html>", "{\"kind\":", "[]", "{} {}"};

	for (size_t i = 0; i < HF_ARRAY_LEN(bodies); i++) {
		struct bench *bench = *state;
		const struct step steps[] = {SAYS("200 OK", bodies[i]), DONE};
		play_steps(bench, steps);
		assert_int_equal(create_pod(bench), HF_E_TIMEOUT);
		assert_non_null(strstr(bench->message, "bad answer"));
		play_steps(bench, steps);
		/* a read changes nothing, so its outcome is never in doubt */
		assert_int_equal(list_pods(bench), HF_E_BAD_REQUEST);
	}
}

static void a_page_that_is_not_json_is_reported_with_status_type_and_first_words(void **state)
{
	struct bench *bench = *state;
	static const struct step steps[] = {
		SAYS("200 OK\r\nContent-Type: text/html", "<html>\n<b>Sign 'in'</b>\x1b"), DONE};
	static const struct step refusal[] = {
		SAYS("403 Forbidden\r\nContent-Type: text/plain", "no way\n"), DONE};

	play_steps(bench, steps);
	assert_int_equal(list_pods(bench), HF_E_BAD_REQUEST);
	assert_non_null(strstr(bench->message, "bad answer from the server (HTTP status 200, "
					       "text/html, begins '<html> <b>Sign in </b>'): "));
	play_steps(bench, refusal);
	assert_int_equal(list_pods(bench), HF_E_FORBIDDEN);
	assert_string_equal(bench->message, "the server answered with HTTP status 403, "
					    "text/plain, begins 'no way'");
}

static void a_list_without_a_version_is_no_list(void **state)
{
	struct bench *bench = *state;
	static const struct step steps[] = {SAYS("200 OK", "{\"metadata\":{},\"items\":[]}"), DONE};

	play_steps(bench, steps);
	assert_int_equal(list_pods(bench), HF_E_BAD_REQUEST);
	assert_non_null(strstr(bench->message, "no resourceVersion"));
}

static void a_forbidden_request_reports_the_servers_message(void **state)
{
	struct bench *bench = *state;
	static const struct step steps[] = {
		SAYS("403 Forbidden",
		     "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"pods is forbidden: "
		     "User \\\"x\\\" cannot list resource\"}"),
		DONE};

	play_steps(bench, steps);
	assert_int_equal(list_pods(bench), HF_E_FORBIDDEN);
	assert_string_equal(bench->message, "pods is forbidden: User \"x\" cannot list resource");
}

static void the_servers_clock_and_warnings_are_reported(void **state)
{
	struct bench *bench = *state;
	static const struct step steps[] = {
		SAYS("200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
		     "Warning: 299 - \"first\"\r\nWarning: 199 - \"no\"\r\nWarning: 299 - \"second\"",
		     POD),
		DONE};

	play_steps(bench, steps);
	assert_int_equal(get_pod(bench), 0);
	assert_true(bench->server_time == 784111777 * HF_SECOND);
	assert_string_equal(bench->warnings, "first|second|");
}

static void every_request_is_reported_to_the_observer(void **state)
{
	struct bench *bench = *state;
	static const struct step steps[] = {SAYS("503 no", ""), SAYS("200 OK", POD), DONE};

	play_steps(bench, steps);
	assert_int_equal(get_pod(bench), 0);
	assert_int_equal(bench->seen_count, 2);
	assert_int_equal(bench->seen[0].status, 503);
	assert_int_equal(bench->seen[0].retry, 0);
	assert_int_equal(bench->seen[1].status, 200);
	assert_int_equal(bench->seen[1].retry, 1);
	assert_string_equal(bench->seen_method, "GET");
	assert_true(hf_str_has_prefix(bench->seen_host, "127.0.0.1:"));
	assert_true(bench->seen[1].took > 0);
}

static void a_dry_run_of_a_delete_is_in_the_body(void **state)
{
	struct bench *bench = *state;
	static const struct step steps[] = {SAYS("200 OK", POD), DONE};
	struct hf_request request = {.verb = HF_VERB_DELETE,
				     .resource = &hf_pods,
				     .ns = "default",
				     .name = "a",
				     .grace_seconds = HF_GRACE_DEFAULT,
				     .precondition_uid = "u",
				     .dry_run = true};

	play_steps(bench, steps);
	assert_int_equal(send_and_wait(bench, &request), 0);
	assert_non_null(strstr(bench->last_body, "\"dryRun\":[\"All\"]"));
	assert_non_null(strstr(bench->last_body, "\"preconditions\":{\"uid\":\"u\"}"));
}

static void the_version_of_the_server_is_outside_the_groups(void **state)
{
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_server_version, .name = "version"};
	HF_AUTO_STRBUF target = HF_STRBUF_INIT(256);

	hf_kube_target(&target, &request);
	assert_string_equal(target.data, "/version");
}

static void a_canceled_request_is_silent_also_while_it_waits(void **state)
{
	struct bench *bench = *state;
	static const struct step steps[] = {SAYS("429 Busy\r\nRetry-After: 5", ""), DONE};

	play_steps(bench, steps);
	struct hf_call *call = begin_get(bench);
	while (bench->seen_count < 1)
		hf_test_loop_run(&bench->t);
	hf_call_cancel(call);
	assert_int_equal(bench->replies, 0);
}

static void a_destroyed_store_ends_what_waits(void **state)
{
	struct bench *bench = *state;
	static const struct step steps[] = {SAYS("429 Busy\r\nRetry-After: 5", ""), DONE};

	play_steps(bench, steps);
	(void)begin_get(bench);
	while (bench->seen_count < 1)
		hf_test_loop_run(&bench->t);
	bench->store = hf_store_destroy(bench->store);
	assert_int_equal(bench->replies, 1);
	assert_int_equal(bench->code, HF_E_CANCELED);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		UNIT(a_failing_server_is_asked_again_by_reads),
		UNIT(a_failing_server_is_not_asked_again_by_writes),
		UNIT(reads_give_up_after_a_few_tries_and_say_so),
		UNIT(too_many_requests_come_back_when_told_to),
		UNIT(too_long_a_wait_is_reported_at_once),
		UNIT(a_lost_connection_is_tried_again_by_reads_alone),
		UNIT(a_refusal_that_is_cut_behind_its_head_is_a_refusal),
		UNIT(a_server_that_is_not_there_is_tried_a_few_times),
		UNIT(no_answer_in_time_is_a_timeout_and_the_end),
		UNIT(a_body_past_its_limit_is_refused_with_the_limit),
		UNIT(an_answer_that_is_no_json_leaves_the_outcome_unknown),
		UNIT(a_page_that_is_not_json_is_reported_with_status_type_and_first_words),
		UNIT(a_list_without_a_version_is_no_list),
		UNIT(a_forbidden_request_reports_the_servers_message),
		UNIT(the_servers_clock_and_warnings_are_reported),
		UNIT(every_request_is_reported_to_the_observer),
		UNIT(a_dry_run_of_a_delete_is_in_the_body),
		UNIT(the_version_of_the_server_is_outside_the_groups),
		UNIT(a_canceled_request_is_silent_also_while_it_waits),
		UNIT(a_destroyed_store_ends_what_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
