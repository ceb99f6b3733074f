/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of links against an HTTP/2 server over TLS. client_test.c covers servers without HTTP/2 and
 * untrusted certificates. */
#include "http/link_test.h"
#include "http/certificate.h"
#include "http/link_asker_test.h"

#include "base/str.h"

#include <string.h>
#include <time.h>

#define BIG_BYTES ((size_t)3 << 20)

struct bench {
	struct hf_requester requester;
	struct hf_h2_server server;
	struct hf_h2_exchange *kept[HF_REQUESTER_NOTES_MAX];
	size_t kept_count;
};

static struct hf_certificate ca, other_ca, server_pair, client_pair, other_pair;

static int set_up_all(void **state)
{
	static const char *const names[] = {"127.0.0.1", "named.example", NULL};
	struct hf_certificate_spec spec = {.common_name = "test CA", .valid_for = HF_DAY};
	struct hf_error err = {0};

	spec.now = (hf_time)time(NULL) * HF_SECOND;
	assert_ok(hf_certificate_make_ca(&spec, &ca, &err), &err);
	spec.common_name = "other CA";
	assert_ok(hf_certificate_make_ca(&spec, &other_ca, &err), &err);
	spec.common_name = "admin";
	assert_ok(hf_certificate_make_client(&ca, &spec, &client_pair, &err), &err);
	assert_ok(hf_certificate_make_client(&other_ca, &spec, &other_pair, &err), &err);
	spec.common_name = NULL;
	spec.names = names;
	assert_ok(hf_certificate_make_server(&ca, &spec, &server_pair, &err), &err);
	return 0;
}

static int tear_down_all(void **state)
{
	hf_certificate_release(&ca);
	hf_certificate_release(&other_ca);
	hf_certificate_release(&server_pair);
	hf_certificate_release(&client_pair);
	hf_certificate_release(&other_pair);
	return 0;
}

/* --- the server's side --- */

static bool head_contains(const struct hf_h2_exchange *ex, const char *text)
{
	return strstr(ex->head, text) != NULL;
}

static void serve_request(void *arg, struct hf_h2_exchange *ex)
{
	static char big[BIG_BYTES];
	struct bench *bench = arg;

	if (head_contains(ex, ":path: /under/keep")) {
		assert_true(bench->kept_count < HF_REQUESTER_NOTES_MAX);
		bench->kept[bench->kept_count++] = ex;
		hf_loop_stop(bench->requester.t.loop);
	} else if (head_contains(ex, ":path: /under/big")) {
		hf_h2_begin(ex, "200");
		hf_h2_say(ex, big, sizeof(big), true);
	} else if (head_contains(ex, ":path: /under/refuse")) {
		nghttp2_submit_rst_stream(ex->peer->h2, 0, ex->id, NGHTTP2_REFUSED_STREAM);
	} else if (head_contains(ex, ":path: /under/reset")) {
		nghttp2_submit_rst_stream(ex->peer->h2, 0, ex->id, NGHTTP2_INTERNAL_ERROR);
	} else {
		hf_h2_answer(ex, head_contains(ex, ":path: /under/gone") ? "410" : "200", "hello");
	}
}

static void connect_with(struct bench *bench, struct hf_http_client_spec spec)
{
	spec.ca_pem = spec.insecure ? NULL : hf_str_or(spec.ca_pem, ca.cert_pem);
	hf_requester_connect(&bench->requester, bench->server.port, "/under/", spec);
}

static void connect_client(struct bench *bench)
{
	connect_with(bench, (struct hf_http_client_spec){0});
}

/* --- the client's side --- */

static struct hf_transfer *send_kept(struct bench *bench, bool stream)
{
	size_t before = bench->kept_count;
	struct hf_transfer *transfer = hf_requester_send(
		&bench->requester, (struct hf_http_request){.target = "/keep", .stream = stream});

	while (bench->kept_count == before)
		hf_test_loop_run(&bench->requester.t);
	return transfer;
}

static struct hf_h2_exchange *last_kept(struct bench *bench)
{
	return bench->kept[bench->kept_count - 1];
}

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	hf_test_loop_init(&bench->requester.t);
	bench->server = (struct hf_h2_server){
		.loop = bench->requester.t.loop, .serve = serve_request, .arg = bench};
	hf_h2_server_start(&bench->server, server_pair.cert_pem, server_pair.key_pem, ca.cert_pem);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_http_client_destroy(bench->requester.client);
	hf_h2_server_stop(&bench->server);
	hf_test_loop_release(&bench->requester.t);
	free(bench);
	return 0;
}

/* --- requests --- */

static void a_request_arrives_as_given_and_its_answer_comes_back(void **state)
{
	struct bench *bench = *state;
	const char *const headers[] = {"Accept: application/json", NULL};
	char authority[64];

	connect_client(bench);
	hf_http_client_set_bearer(bench->requester.client, "tok\nen");
	const struct hf_requester_note *note = hf_requester_fetch(
		&bench->requester,
		(struct hf_http_request){.method = "PATCH",
					 .target = "/a%20b?c=d",
					 .headers = headers,
					 .body = "{}",
					 .body_len = 2,
					 .content_type = "application/merge-patch+json"});
	assert_int_equal(note->code, 0);
	assert_int_equal(note->status, 200);
	assert_string_equal(note->body, "hello");
	assert_string_equal(note->retry_after, "7");
	const struct hf_h2_exchange *ex = bench->server.exchanges;
	snprintf(authority, sizeof(authority), ":authority: 127.0.0.1:%u\n", bench->server.port);
	assert_true(head_contains(ex, authority));
	assert_true(head_contains(ex, ":method: PATCH\n"));
	assert_true(head_contains(ex, ":scheme: https\n"));
	assert_true(head_contains(ex, ":path: /under/a%20b?c=d\n"));
	assert_true(head_contains(ex, "authorization: Bearer token\n"));
	assert_true(head_contains(ex, "content-type: application/merge-patch+json\n"));
	assert_true(head_contains(ex, "content-length: 2\n"));
	assert_true(head_contains(ex, "accept: application/json\n"));
	assert_true(head_contains(ex, "user-agent: holdfast/"));
	assert_string_equal(ex->body.data, "{}");
}

static void a_status_of_failure_is_an_answer(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	const struct hf_requester_note *note =
		hf_requester_fetch(&bench->requester, (struct hf_http_request){.target = "/gone"});
	assert_int_equal(note->code, 0);
	assert_int_equal(note->status, 410);
}

static void requests_share_a_connection(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	for (int i = 0; i < 100; i++)
		hf_requester_send(&bench->requester, (struct hf_http_request){0});
	hf_requester_wait(&bench->requester);
	for (int i = 0; i < 100; i++)
		assert_int_equal(bench->requester.notes[i].status, 200);
	assert_int_equal(bench->server.accepted, 1);
}

static void large_bodies_arrive_whole_both_ways(void **state)
{
	struct bench *bench = *state;
	size_t len = 500000;
	char *body = hf_xcalloc(1, len);

	connect_client(bench);
	const struct hf_requester_note *note = hf_requester_fetch(
		&bench->requester,
		(struct hf_http_request){
			.method = "POST", .target = "/big", .body = body, .body_len = len});
	free(body);
	assert_int_equal(note->code, 0);
	assert_int_equal(note->body_len, BIG_BYTES);
	assert_int_equal(bench->server.exchanges->body.len, len);
}

static void an_answer_too_large_is_refused_and_the_connection_goes_on(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	const struct hf_requester_note *note = hf_requester_fetch(
		&bench->requester,
		(struct hf_http_request){.target = "/big", .response_bytes_max = 100000});
	assert_int_equal(note->code, HF_E_TOO_LARGE);
	assert_int_equal(hf_requester_fetch(&bench->requester, (struct hf_http_request){0})->status,
			 200);
	assert_int_equal(bench->server.accepted, 1);
}

static void a_malformed_target_is_a_bad_request(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	assert_int_equal(
		hf_requester_fetch(&bench->requester, (struct hf_http_request){.target = "/a b"})
			->code,
		HF_E_BAD_REQUEST);
	assert_int_equal(bench->server.requests, 0);
}

static void a_canceled_request_ends_for_the_server_and_others_go_on(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	hf_transfer_cancel(send_kept(bench, false));
	bench->requester.wanted--;
	while (!last_kept(bench)->closed)
		hf_test_loop_run(&bench->requester.t);
	assert_int_equal(last_kept(bench)->closed_code, NGHTTP2_CANCEL);
	assert_int_equal(hf_requester_fetch(&bench->requester, (struct hf_http_request){0})->status,
			 200);
	assert_int_equal(bench->server.accepted, 1);
}

static void a_late_answer_is_a_timeout_and_its_outcome_unknown(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	(void)hf_requester_fetch(&bench->requester, (struct hf_http_request){0});
	const struct hf_requester_note *note = hf_requester_fetch(
		&bench->requester,
		(struct hf_http_request){.target = "/keep", .timeout = 50 * HF_MS});
	assert_int_equal(note->code, HF_E_TIMEOUT);
}

/* The situation after a suspension of the process: the task that sends runs before the timer that
 * ends the request. */
static void an_overdue_request_is_not_sent(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	(void)hf_requester_fetch(&bench->requester, (struct hf_http_request){0});
	assert_int_equal(bench->server.requests, 1);
	assert_int_equal(
		hf_requester_fetch(&bench->requester, (struct hf_http_request){.timeout = 1})->code,
		HF_E_UNAVAILABLE);
	assert_int_equal(hf_requester_fetch(&bench->requester, (struct hf_http_request){0})->status,
			 200);
	assert_int_equal(bench->server.requests, 2);
}

/* --- failures --- */

static void a_refused_stream_was_not_seen_by_the_server(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	const struct hf_requester_note *note = hf_requester_fetch(
		&bench->requester, (struct hf_http_request){.target = "/refuse"});
	assert_int_equal(note->code, HF_E_UNAVAILABLE);
	assert_true(note->retry_now);
	note = hf_requester_fetch(&bench->requester, (struct hf_http_request){.target = "/reset"});
	assert_int_equal(note->code, HF_E_TIMEOUT);
	assert_true(note->retry_now);
	assert_int_equal(bench->server.accepted, 1);
}

static void after_goaway_started_requests_still_finish(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	(void)send_kept(bench, false);
	bench->requester.wanted = 0; /* that request is waited for last */
	nghttp2_submit_goaway(last_kept(bench)->peer->h2, 0, last_kept(bench)->id, NGHTTP2_NO_ERROR,
			      NULL, 0);
	hf_h2_peer_send(last_kept(bench)->peer);
	/* The client may send the request before it reads the GOAWAY. The GOAWAY then says that the
	 * server has not processed the request. */
	const struct hf_requester_note *note =
		hf_requester_fetch(&bench->requester, (struct hf_http_request){0});
	if (note->code != 0) {
		assert_int_equal(note->code, HF_E_UNAVAILABLE);
		assert_true(note->retry_now);
		note = hf_requester_fetch(&bench->requester, (struct hf_http_request){0});
	}
	assert_int_equal(note->status, 200);
	assert_int_equal(bench->server.accepted, 2);
	hf_h2_answer(last_kept(bench), "200", "late");
	hf_h2_peer_send(last_kept(bench)->peer);
	bench->requester.wanted++;
	hf_requester_wait(&bench->requester);
	assert_string_equal(bench->requester.notes[bench->requester.done - 1].body, "late");
}

static void a_connection_that_is_lost_leaves_outcomes_unknown_and_a_new_one_is_made(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	(void)send_kept(bench, false);
	hf_h2_peer_close(last_kept(bench)->peer);
	hf_requester_wait(&bench->requester);
	assert_int_equal(bench->requester.notes[0].code, HF_E_TIMEOUT);
	assert_int_equal(hf_requester_fetch(&bench->requester, (struct hf_http_request){0})->status,
			 200);
	assert_int_equal(bench->server.accepted, 2);
}

static void a_server_that_is_not_there_is_unavailable(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	hf_h2_server_close(&bench->server);
	assert_int_equal(hf_requester_fetch(&bench->requester, (struct hf_http_request){0})->code,
			 HF_E_UNAVAILABLE);
}

/* --- certificates --- */

static void the_name_that_was_asked_for_is_verified(void **state)
{
	struct bench *bench = *state;

	connect_with(bench, (struct hf_http_client_spec){.tls_server_name = "named.example"});
	assert_int_equal(hf_requester_fetch(&bench->requester, (struct hf_http_request){0})->status,
			 200);
	assert_true(head_contains(bench->server.exchanges, ":authority: 127.0.0.1:"));
	hf_http_client_destroy(bench->requester.client);
	connect_with(bench, (struct hf_http_client_spec){.tls_server_name = "other.example"});
	assert_int_equal(hf_requester_fetch(&bench->requester, (struct hf_http_request){0})->code,
			 HF_E_UNAVAILABLE);
	hf_http_client_destroy(bench->requester.client);
	connect_with(bench, (struct hf_http_client_spec){.ca_pem = other_ca.cert_pem});
	assert_int_equal(hf_requester_fetch(&bench->requester, (struct hf_http_request){0})->code,
			 HF_E_UNAVAILABLE);
	assert_int_equal(bench->server.requests, 1);
}

static void the_clients_certificate_is_shown_whatever_cas_the_server_names(void **state)
{
	struct bench *bench = *state;

	connect_with(bench, (struct hf_http_client_spec){.cert_pem = other_pair.cert_pem,
							 .key_pem = other_pair.key_pem});
	assert_int_equal(hf_requester_fetch(&bench->requester, (struct hf_http_request){0})->status,
			 200);
	assert_int_equal(bench->server.peers->certificates, 1);
	hf_http_client_set_cert(bench->requester.client, NULL, NULL);
	assert_int_equal(hf_requester_fetch(&bench->requester, (struct hf_http_request){0})->status,
			 200);
	assert_int_equal(bench->server.accepted, 2);
	assert_int_equal(bench->server.peers->certificates, 0);
}

/* --- streams --- */

static void a_stream_delivers_each_piece_as_it_arrives(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	(void)send_kept(bench, true);
	hf_h2_begin(last_kept(bench), "200");
	hf_h2_say(last_kept(bench), "one", 3, false);
	hf_h2_peer_send(last_kept(bench)->peer);
	while (bench->requester.data_len < 3)
		hf_test_loop_run(&bench->requester.t);
	assert_int_equal(bench->requester.head_status, 200);
	hf_h2_say(last_kept(bench), "two", 3, true);
	hf_h2_peer_send(last_kept(bench)->peer);
	hf_requester_wait(&bench->requester);
	assert_int_equal(bench->requester.data_len, 6);
	assert_int_equal(bench->requester.notes[0].code, 0);
}

static void a_paused_stream_holds_the_server_back_and_loses_nothing(void **state)
{
	struct bench *bench = *state;
	struct hf_transfer *transfer;
	size_t held;

	connect_client(bench);
	bench->requester.pause_on_data = true;
	transfer = hf_requester_send(&bench->requester,
				     (struct hf_http_request){.target = "/big", .stream = true});
	while (bench->requester.data_len == 0)
		hf_test_loop_run(&bench->requester.t);
	/* Requests on another connection show that the loop ran many turns. */
	for (int i = 0; i < 50; i++) {
		bench->requester.wanted = bench->requester.done;
		(void)hf_requester_fetch(&bench->requester, (struct hf_http_request){0});
	}
	held = bench->server.exchanges->sent_bytes;
	for (const struct hf_h2_exchange *ex = bench->server.exchanges; ex; ex = ex->next)
		held = head_contains(ex, "/big") ? ex->sent_bytes : held;
	assert_true(held < BIG_BYTES / 2);
	bench->requester.pause_on_data = false;
	bench->requester.wanted = bench->requester.done + 1;
	hf_transfer_resume(transfer);
	hf_requester_wait(&bench->requester);
	assert_int_equal(bench->requester.data_len, BIG_BYTES);
}

static void a_stream_that_breaks_off_is_unavailable(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	(void)send_kept(bench, true);
	hf_h2_begin(last_kept(bench), "200");
	hf_h2_say(last_kept(bench), "one", 3, false);
	hf_h2_peer_send(last_kept(bench)->peer);
	while (bench->requester.data_len < 3)
		hf_test_loop_run(&bench->requester.t);
	hf_h2_peer_close(last_kept(bench)->peer);
	hf_requester_wait(&bench->requester);
	assert_int_equal(bench->requester.notes[0].code, HF_E_UNAVAILABLE);
	assert_int_equal(bench->requester.notes[0].status, 200);
}

static void a_quiet_stream_times_out(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	const struct hf_requester_note *note = hf_requester_fetch(
		&bench->requester, (struct hf_http_request){.target = "/keep",
							    .stream = true,
							    .idle_timeout = 30 * HF_MS});
	assert_int_equal(note->code, HF_E_TIMEOUT);
}

static void the_client_may_be_destroyed_with_much_under_way(void **state)
{
	struct bench *bench = *state;

	connect_client(bench);
	(void)send_kept(bench, true);
	(void)send_kept(bench, false);
	hf_requester_send(&bench->requester, (struct hf_http_request){.target = "/big"});
	bench->requester.client = hf_http_client_destroy(bench->requester.client);
	assert_int_equal(bench->requester.done, 0);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_request_arrives_as_given_and_its_answer_comes_back),
		UNIT(a_status_of_failure_is_an_answer),
		UNIT(requests_share_a_connection),
		UNIT(large_bodies_arrive_whole_both_ways),
		UNIT(an_answer_too_large_is_refused_and_the_connection_goes_on),
		UNIT(a_malformed_target_is_a_bad_request),
		UNIT(a_canceled_request_ends_for_the_server_and_others_go_on),
		UNIT(a_late_answer_is_a_timeout_and_its_outcome_unknown),
		UNIT(an_overdue_request_is_not_sent),
		UNIT(a_refused_stream_was_not_seen_by_the_server),
		UNIT(after_goaway_started_requests_still_finish),
		UNIT(a_connection_that_is_lost_leaves_outcomes_unknown_and_a_new_one_is_made),
		UNIT(a_server_that_is_not_there_is_unavailable),
		UNIT(the_name_that_was_asked_for_is_verified),
		UNIT(the_clients_certificate_is_shown_whatever_cas_the_server_names),
		UNIT(a_stream_delivers_each_piece_as_it_arrives),
		UNIT(a_paused_stream_holds_the_server_back_and_loses_nothing),
		UNIT(a_stream_that_breaks_off_is_unavailable),
		UNIT(a_quiet_stream_times_out),
		UNIT(the_client_may_be_destroyed_with_much_under_way),
	};
	return cmocka_run_group_tests_name("link", tests, set_up_all, tear_down_all);
}
