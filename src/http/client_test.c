/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of the client against this module's own server, over TLS unless noted. http2_test.c and
 * link_test.c cover what only an HTTP/2 server does. */
#include "harness/listen.h"
#include "harness/raw_client.h"
#include "http/certificate.h"
#include "http/client_internal.h"
#include "http/server.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <time.h>

#define NOTES_MAX 64

struct note {
	int code, status;
	bool retry_now;
	char retry_after[8];
	char body[64], text[HF_ERROR_TEXT_MAX];
	size_t body_len;
};

struct bench {
	struct hf_test_loop t;
	struct hf_http_server *server;
	struct hf_http_client *client;
	char url[64];
	/* the server's side */
	unsigned handled;
	char seen[1024];
	struct hf_exchange *kept[NOTES_MAX];
	size_t kept_count;
	unsigned closed;
	/* the client's side: outcomes of requests */
	struct note notes[NOTES_MAX];
	size_t done, wanted;
	/* the client's side: the outcome of a stream */
	struct hf_transfer *stream;
	int head_status;
	struct hf_strbuf data;
	size_t data_wanted;
	bool cancel_on_data, destroy_on_data, pause_on_data, destroy_on_done;
};

/* Made once for all tests: making key pairs takes longer than a test. */
static struct hf_certificate ca, other_ca, server_pair, client_pair;

static int set_up_all(void **state)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "::1", NULL};
	struct hf_certificate_spec spec = {.common_name = "test CA", .valid_for = HF_DAY};
	struct hf_error err = {0};

	spec.now = (hf_time)time(NULL) * HF_SECOND;
	assert_ok(hf_certificate_make_ca(&spec, &ca, &err), &err);
	assert_ok(hf_certificate_make_ca(&spec, &other_ca, &err), &err);
	spec.common_name = "admin";
	assert_ok(hf_certificate_make_client(&ca, &spec, &client_pair, &err), &err);
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
	return 0;
}

/* --- the server's side --- */

static void on_closed(void *arg, struct hf_exchange *ex)
{
	struct bench *bench = arg;

	bench->closed++;
	hf_loop_stop(bench->t.loop);
}

static void note_request(struct bench *bench, const struct hf_exchange *ex)
{
	static const char *const headers[] = {"Host",           "User-Agent", "Authorization",
					      "Content-Type",   "Accept",     "Expect",
					      "Accept-Encoding"};
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(sizeof(bench->seen) - 1);
	size_t len;
	const char *body = hf_exchange_body(ex, &len);

	hf_strbuf_addf(&sb, "%s %s [%.*s]\n", hf_exchange_method(ex), hf_exchange_target(ex),
		       len < 40 ? (int)len : 40, body);
	for (size_t i = 0; i < HF_ARRAY_LEN(headers); i++) {
		const char *value = hf_exchange_header(ex, headers[i]);
		if (value)
			hf_strbuf_addf(&sb, "%s: %s\n", headers[i], value);
	}
	memcpy(bench->seen, sb.data, sb.len + 1);
}

/* "hello " 200 times, compressed. */
static const unsigned char zipped[] = {
	0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0x48,
	0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x18, 0x25, 0x47, 0xc9, 0x51, 0x72, 0x94,
	0x1c, 0xf4, 0x24, 0x00, 0x45, 0x44, 0x9f, 0x68, 0xb0, 0x04, 0x00, 0x00,
};

static void answer_big(struct hf_exchange *ex)
{
	HF_AUTO_STRBUF big = HF_STRBUF_INIT(200000);

	for (int i = 0; i < 100000; i++)
		hf_strbuf_addch(&big, (char)('a' + i % 26));
	hf_exchange_respond_take(ex, 200, "text/plain", &big);
}

static void on_request(void *arg, struct hf_exchange *ex)
{
	struct bench *bench = arg;
	const char *path = hf_exchange_path(ex);

	bench->handled++;
	note_request(bench, ex);
	if (strcmp(path, "/keep") == 0 || strcmp(path, "/stream") == 0) {
		hf_exchange_on_closed(ex, on_closed, bench);
		assert_true(bench->kept_count < NOTES_MAX);
		bench->kept[bench->kept_count++] = ex;
		if (strcmp(path, "/stream") == 0)
			hf_exchange_begin(ex, 200, "application/json");
		hf_loop_stop(bench->t.loop);
	} else if (strcmp(path, "/big") == 0) {
		answer_big(ex);
	} else if (strcmp(path, "/zipped") == 0) {
		hf_exchange_add_header(ex, "Content-Encoding", "gzip");
		hf_exchange_respond(ex, 200, "text/plain", zipped, sizeof(zipped));
	} else if (strcmp(path, "/head") == 0) {
		HF_AUTO_STRBUF big = HF_STRBUF_INIT(100000);
		while (big.len < HF_HTTP_RESPONSE_HEAD_BYTES_MAX)
			hf_strbuf_addch(&big, 'x');
		hf_exchange_add_header(ex, "X-Big", big.data);
		hf_exchange_respond(ex, 200, "text/plain", "", 0);
	} else if (strcmp(path, "/cut") == 0) {
		hf_exchange_abort(ex);
	} else {
		hf_exchange_add_header(ex, "Retry-After", "7");
		hf_exchange_respond(ex, strcmp(path, "/gone") == 0 ? 410 : 200, "text/plain",
				    "hello", 5);
	}
}

static void start_server(struct bench *bench, struct hf_http_server_spec spec, bool tls)
{
	struct hf_error err = {0};

	spec.address = "127.0.0.1";
	spec.handler = on_request;
	spec.arg = bench;
	spec.cert_pem = tls ? server_pair.cert_pem : NULL;
	spec.key_pem = tls ? server_pair.key_pem : NULL;
	assert_ok(hf_http_server_create(bench->t.loop, &spec, &bench->server, &err), &err);
	snprintf(bench->url, sizeof(bench->url), "%s://127.0.0.1:%u", tls ? "https" : "http",
		 hf_http_server_port(bench->server));
}

/* --- the client's side --- */

static void connect_with(struct bench *bench, struct hf_http_client_spec spec)
{
	struct hf_error err = {0};

	if (!spec.base_url)
		spec.base_url = bench->url;
	if (!spec.ca_pem && !spec.insecure)
		spec.ca_pem = ca.cert_pem;
	spec.proxy_url = hf_str_or(spec.proxy_url, "");
	assert_ok(hf_http_client_create(bench->t.loop, &spec, &bench->client, &err), &err);
}

static void start_pair(struct bench *bench)
{
	start_server(bench, (struct hf_http_server_spec){0}, true);
	connect_with(bench, (struct hf_http_client_spec){0});
}

static void on_done(void *arg, const struct hf_http_result *result)
{
	struct bench *bench = arg;
	struct note *note = &bench->notes[bench->done % NOTES_MAX];

	note->code = result->code;
	note->status = result->status;
	note->retry_now = result->retry_now;
	note->body_len = result->body_len;
	snprintf(note->body, sizeof(note->body), "%s", result->body);
	snprintf(note->text, sizeof(note->text), "%s", result->err->text);
	const char *retry_after = hf_transfer_header(result->transfer, "retry-AFTER");
	snprintf(note->retry_after, sizeof(note->retry_after), "%s", hf_str_or(retry_after, "-"));
	assert_int_equal(result->code, result->err->code);
	if (result->status == 200 && !bench->stream)
		assert_non_null(hf_transfer_header(result->transfer, "content-type"));
	bench->done++;
	if (bench->destroy_on_done)
		bench->client = hf_http_client_destroy(bench->client);
	hf_loop_stop(bench->t.loop);
}

static struct hf_transfer *send_request(struct bench *bench, struct hf_http_request request)
{
	struct hf_transfer *transfer = NULL;
	struct hf_error err = {0};

	request.method = request.method ? request.method : "GET";
	request.target = request.target ? request.target : "/";
	request.on_done = on_done;
	request.arg = bench;
	assert_ok(hf_http_client_send(bench->client, &request, &transfer, &err), &err);
	bench->wanted++;
	return transfer;
}

static void run_until_done(struct bench *bench)
{
	while (bench->done < bench->wanted)
		hf_test_loop_run(&bench->t);
}

static const struct note *fetch_url(struct bench *bench, struct hf_http_request request)
{
	send_request(bench, request);
	run_until_done(bench);
	return &bench->notes[(bench->done - 1) % NOTES_MAX];
}

static void run_until_kept(struct bench *bench, size_t count)
{
	while (bench->kept_count < count)
		hf_test_loop_run(&bench->t);
}

/* Connects first, so that short timeouts measure the request and not the handshake. */
static void start_connected(struct bench *bench)
{
	start_pair(bench);
	assert_int_equal(fetch_url(bench, (struct hf_http_request){0})->status, 200);
	bench->done = bench->wanted = 0;
}

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	hf_test_loop_init(&bench->t);
	hf_strbuf_init(&bench->data, (size_t)16 << 20);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_http_client_destroy(bench->client);
	hf_http_server_destroy(bench->server);
	hf_test_loop_release(&bench->t);
	hf_strbuf_release(&bench->data);
	free(bench);
	return 0;
}

static void a_get_returns_its_response(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	const struct note *note = fetch_url(bench, (struct hf_http_request){.target = "/x?a=%20b"});
	assert_int_equal(note->code, 0);
	assert_int_equal(note->status, 200);
	assert_string_equal(note->body, "hello");
	assert_non_null(strstr(bench->seen, "GET /x?a=%20b []\n"));
	assert_non_null(strstr(bench->seen, "User-Agent: holdfast/" HF_VERSION "\n"));
	assert_null(strstr(bench->seen, "Authorization"));
	assert_null(strstr(bench->seen, "Content-Type"));
}

static void methods_bodies_and_headers_arrive_as_given(void **state)
{
	struct bench *bench = *state;
	static const char *const methods[] = {"POST", "PUT", "PATCH", "DELETE"};
	const char *const headers[] = {"Accept: application/json\r\nX-Evil: 1", NULL};

	start_pair(bench);
	for (size_t i = 0; i < HF_ARRAY_LEN(methods); i++) {
		char expected[64];

		assert_int_equal(fetch_url(bench, (struct hf_http_request){.method = methods[i],
									   .headers = headers,
									   .body = "{}",
									   .body_len = 2})
					 ->status,
				 200);
		snprintf(expected, sizeof(expected), "%s / [{}]\n", methods[i]);
		assert_non_null(strstr(bench->seen, expected));
		assert_non_null(strstr(bench->seen, "Content-Type: application/json\n"));
		/* The line break in the value must not start a header. */
		assert_non_null(strstr(bench->seen, "Accept: application/json  X-Evil: 1\n"));
		assert_null(strstr(bench->seen, "Expect"));
	}
	fetch_url(bench, (struct hf_http_request){.method = "PATCH",
						  .body = "x",
						  .body_len = 1,
						  .content_type = "application/merge-patch+json"});
	assert_non_null(strstr(bench->seen, "Content-Type: application/merge-patch+json\n"));
	fetch_url(bench, (struct hf_http_request){.method = "POST"});
	assert_non_null(strstr(bench->seen, "POST / []\n"));
	fetch_url(bench, (struct hf_http_request){.method = "DELETE"});
	assert_non_null(strstr(bench->seen, "DELETE / []\n"));
	assert_int_equal(fetch_url(bench, (struct hf_http_request){.method = "HEAD"})->body_len, 0);
}

static void a_body_larger_than_any_buffer_arrives_whole(void **state)
{
	struct bench *bench = *state;
	size_t len = 3u << 20;
	char *body = hf_xmalloc(len);

	memset(body, 'b', len);
	start_pair(bench);
	assert_int_equal(
		fetch_url(bench,
			  (struct hf_http_request){.method = "POST", .body = body, .body_len = len})
			->status,
		200);
	assert_int_equal(fetch_url(bench, (struct hf_http_request){.method = "POST",
								   .body = body,
								   .body_len = len - 1})
				 ->status,
			 200);
	free(body);
	assert_int_equal(fetch_url(bench, (struct hf_http_request){.target = "/big"})->body_len,
			 100000);
}

static void compressed_answers_are_asked_for_and_arrive_decoded(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	const struct note *note =
		fetch_url(bench, (struct hf_http_request){.target = "/zipped", .gzip = true});
	assert_int_equal(note->body_len, 1200);
	assert_memory_equal(note->body, "hello hello ", 12);
	assert_non_null(strstr(bench->seen, "Accept-Encoding: gzip\n"));
	/* The limit applies to the decoded body: a small response may decode to a large one. */
	note = fetch_url(bench, (struct hf_http_request){.target = "/zipped",
							 .gzip = true,
							 .response_bytes_max = 1199});
	assert_int_equal(note->code, HF_E_TOO_LARGE);
	fetch_url(bench, (struct hf_http_request){0});
	assert_null(strstr(bench->seen, "Accept-Encoding"));
}

static void a_status_of_failure_is_an_answer_and_headers_can_be_read(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	const struct note *note = fetch_url(bench, (struct hf_http_request){.target = "/gone"});
	assert_int_equal(note->code, 0);
	assert_int_equal(note->status, 410);
	assert_string_equal(note->retry_after, "7");
}

static void tokens_may_change_between_requests(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	hf_http_client_set_bearer(bench->client, "one\n");
	fetch_url(bench, (struct hf_http_request){0});
	assert_non_null(strstr(bench->seen, "Authorization: Bearer one\n"));
	hf_http_client_set_bearer(bench->client, "two");
	fetch_url(bench, (struct hf_http_request){0});
	assert_non_null(strstr(bench->seen, "Authorization: Bearer two\n"));
	hf_http_client_set_bearer(bench->client, "");
	fetch_url(bench, (struct hf_http_request){0});
	assert_null(strstr(bench->seen, "Authorization"));
}

static void one_connection_serves_one_request_after_another(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	for (int i = 0; i < 10; i++)
		assert_int_equal(fetch_url(bench, (struct hf_http_request){0})->status, 200);
	assert_int_equal(hf_http_server_connections(bench->server), 1);
}

static void requests_past_the_bound_wait_and_then_go_in_order(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};

	start_server(bench, (struct hf_http_server_spec){0}, true);
	connect_with(bench, (struct hf_http_client_spec){.in_flight_max = 2, .queue_max = 3});
	for (int i = 0; i < 5; i++)
		send_request(bench, (struct hf_http_request){.target = "/keep"});
	assert_int_equal(bench->client->in_flight, 2);
	assert_int_equal(bench->client->queued, 3);
	struct hf_http_request request = {.method = "GET", .target = "/", .on_done = on_done};
	assert_code(hf_http_client_send(bench->client, &request, NULL, &err), HF_E_TOO_MANY);
	for (size_t i = 0; i < 5; i++) {
		run_until_kept(bench, i + 1);
		hf_exchange_respond(bench->kept[i], 200, "text/plain", "x", 1);
	}
	run_until_done(bench);
	assert_int_equal(bench->client->in_flight, 0);
	assert_int_equal(bench->client->queued, 0);
}

static void canceled_requests_make_room_and_are_not_called_back(void **state)
{
	struct bench *bench = *state;
	struct hf_transfer *transfers[4];

	start_server(bench, (struct hf_http_server_spec){0}, true);
	connect_with(bench, (struct hf_http_client_spec){.in_flight_max = 1});
	for (int i = 0; i < 4; i++)
		transfers[i] = send_request(bench, (struct hf_http_request){.target = "/keep"});
	run_until_kept(bench, 1);
	hf_transfer_cancel(transfers[1]); /* waiting, first in the queue */
	hf_transfer_cancel(transfers[3]); /* waiting, last in the queue */
	assert_int_equal(bench->client->queued, 1);
	hf_transfer_cancel(transfers[0]); /* in flight: its connection is cut */
	run_until_kept(bench, 2);
	while (bench->closed == 0)
		hf_test_loop_run(&bench->t);
	hf_exchange_respond(bench->kept[1], 200, "text/plain", "third", 5);
	bench->wanted = 1;
	run_until_done(bench);
	assert_string_equal(bench->notes[0].body, "third");
	assert_int_equal(bench->closed, 1);
}

static void a_late_answer_is_a_timeout_and_its_outcome_unknown(void **state)
{
	struct bench *bench = *state;

	start_connected(bench);
	const struct note *note = fetch_url(
		bench, (struct hf_http_request){.target = "/keep", .timeout = 500 * HF_MS});
	assert_int_equal(note->code, HF_E_TIMEOUT);
	assert_int_equal(note->status, 0);
	assert_false(note->retry_now);
	assert_non_null(strstr(note->text, "GET '/keep'"));
}

static void time_in_the_queue_counts_and_nothing_was_sent(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0}, true);
	connect_with(bench, (struct hf_http_client_spec){.in_flight_max = 1});
	send_request(bench, (struct hf_http_request){.target = "/keep"});
	send_request(bench, (struct hf_http_request){.timeout = 10 * HF_MS});
	while (bench->done < 1)
		hf_test_loop_run(&bench->t);
	assert_int_equal(bench->notes[0].code, HF_E_UNAVAILABLE);
	assert_non_null(strstr(bench->notes[0].text, "not sent"));
}

static void a_server_that_is_not_there_is_unavailable(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	bench->server = hf_http_server_destroy(bench->server);
	const struct note *note = fetch_url(bench, (struct hf_http_request){0});
	assert_int_equal(note->code, HF_E_UNAVAILABLE);
	assert_int_equal(note->status, 0);
	assert_non_null(strstr(note->text, "GET '/': "));
}

static void a_connection_cut_after_sending_leaves_the_outcome_unknown(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	assert_int_equal(fetch_url(bench, (struct hf_http_request){.method = "POST",
								   .target = "/cut",
								   .body = "x",
								   .body_len = 1})
				 ->code,
			 HF_E_TIMEOUT);
}

static void an_answer_too_large_is_refused(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	assert_int_equal(fetch_url(bench, (struct hf_http_request){.target = "/big",
								   .response_bytes_max = 99999})
				 ->code,
			 HF_E_TOO_LARGE);
	assert_int_equal(fetch_url(bench, (struct hf_http_request){.target = "/big",
								   .response_bytes_max = 100000})
				 ->code,
			 0);
}

static void a_head_too_large_is_refused(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){.head_bytes_max = 256u << 10}, true);
	connect_with(bench, (struct hf_http_client_spec){0});
	assert_int_equal(fetch_url(bench, (struct hf_http_request){.target = "/head"})->code,
			 HF_E_TOO_LARGE);
	assert_non_null(strstr(bench->notes[0].text, "head"));
}

static void a_server_that_answers_no_handshake_is_unavailable(void **state)
{
	struct bench *bench = *state;
	/* The kernel accepts the connection; no program answers the TLS handshake. */
	uint16_t port;
	int fd = hf_test_listen(&port);

	snprintf(bench->url, sizeof(bench->url), "https://127.0.0.1:%u", port);
	connect_with(bench, (struct hf_http_client_spec){.connect_timeout = 50 * HF_MS});
	const struct note *note = fetch_url(bench, (struct hf_http_request){0});
	assert_int_equal(note->code, HF_E_UNAVAILABLE);
	note = fetch_url(bench, (struct hf_http_request){.timeout = 20 * HF_MS});
	assert_int_equal(note->code, HF_E_UNAVAILABLE);
	assert_non_null(strstr(note->text, "not connected in time"));
	close(fd);
}

static void a_malformed_target_is_a_bad_request(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	assert_int_equal(fetch_url(bench, (struct hf_http_request){.target = "/a b"})->code,
			 HF_E_BAD_REQUEST);
	assert_int_equal(bench->handled, 0);
}

/* --- TLS --- */

static void a_server_of_another_ca_gets_no_request(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0}, true);
	connect_with(bench, (struct hf_http_client_spec){.ca_pem = other_ca.cert_pem});
	assert_int_equal(fetch_url(bench, (struct hf_http_request){0})->code, HF_E_UNAVAILABLE);
	assert_int_equal(bench->handled, 0);
}

static void insecure_verifies_nothing(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0}, true);
	connect_with(bench, (struct hf_http_client_spec){.insecure = true});
	assert_int_equal(fetch_url(bench, (struct hf_http_request){0})->status, 200);
}

static void a_server_name_is_asked_for_and_verified_in_place_of_the_host(void **state)
{
	struct bench *bench = *state;
	char expected[64];

	start_server(bench, (struct hf_http_server_spec){0}, true);
	connect_with(bench, (struct hf_http_client_spec){.tls_server_name = "localhost"});
	assert_int_equal(fetch_url(bench, (struct hf_http_request){0})->status, 200);
	snprintf(expected, sizeof(expected), "Host: 127.0.0.1:%u\n",
		 hf_http_server_port(bench->server));
	assert_non_null(strstr(bench->seen, expected));
	hf_http_client_destroy(bench->client);
	connect_with(bench, (struct hf_http_client_spec){.tls_server_name = "other.example"});
	assert_int_equal(fetch_url(bench, (struct hf_http_request){0})->code, HF_E_UNAVAILABLE);
}

static void client_certificates_are_taken_and_may_be_replaced(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	struct hf_http_client *none = NULL;

	start_server(bench, (struct hf_http_server_spec){0}, true);
	connect_with(bench, (struct hf_http_client_spec){.cert_pem = client_pair.cert_pem,
							 .key_pem = client_pair.key_pem});
	assert_int_equal(fetch_url(bench, (struct hf_http_request){0})->status, 200);
	hf_http_client_set_cert(bench->client, NULL, NULL);
	assert_int_equal(fetch_url(bench, (struct hf_http_request){0})->status, 200);
	/* the old connection is not used */
	assert_int_equal(hf_http_server_connections(bench->server), 2);
	struct hf_http_client_spec lone = {.base_url = "https://h", .cert_pem = "x"};
	assert_code(hf_http_client_create(bench->t.loop, &lone, &none, &err), HF_E_INVALID);
}

static void the_ca_may_be_replaced_while_a_request_is_in_flight(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	send_request(bench, (struct hf_http_request){0});
	hf_http_client_set_ca(bench->client, other_ca.cert_pem);
	run_until_done(bench);
	assert_int_equal(bench->notes[0].status, 200);
	/* A later request opens a new connection, which trusts the new CAs only. */
	assert_int_equal(fetch_url(bench, (struct hf_http_request){0})->code, HF_E_UNAVAILABLE);
}

static void urls_that_name_no_server_are_refused(void **state)
{
	struct bench *bench = *state;
	static const char *const urls[] = {"",
					   "host",
					   "ftp://host",
					   "http://",
					   "http://h/?q",
					   "http://h/#f",
					   "http://user@h/",
					   "/path",
					   "http://h:x"};
	struct hf_error err = {0};

	for (size_t i = 0; i < HF_ARRAY_LEN(urls); i++) {
		struct hf_http_client_spec spec = {.base_url = urls[i]};
		assert_code(hf_http_client_create(bench->t.loop, &spec, &bench->client, &err),
			    HF_E_INVALID);
	}
	assert_null(bench->client);
}

static void targets_go_behind_the_path_of_the_url(void **state)
{
	struct bench *bench = *state;
	char url[96];

	start_server(bench, (struct hf_http_server_spec){0}, false);
	snprintf(url, sizeof(url), "%s/k8s/clusters/c-1/", bench->url);
	connect_with(bench, (struct hf_http_client_spec){.base_url = url});
	fetch_url(bench, (struct hf_http_request){.target = "/api/../v1"});
	assert_non_null(strstr(bench->seen, "GET /k8s/clusters/c-1/api/../v1 []"));
}

static void a_proxy_is_asked_in_the_servers_place(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0}, false);
	connect_with(bench, (struct hf_http_client_spec){.base_url = "http://far.example:81",
							 .proxy_url = bench->url});
	assert_int_equal(fetch_url(bench, (struct hf_http_request){.target = "/x"})->status, 200);
	assert_non_null(strstr(bench->seen, "GET http://far.example:81/x []\n"));
	assert_non_null(strstr(bench->seen, "Host: far.example:81\n"));
}

static void plain_text_does_not_harm_a_tls_server(void **state)
{
	struct bench *bench = *state;
	struct hf_raw raw;

	start_pair(bench);
	hf_raw_open(&raw, &bench->t, hf_http_server_port(bench->server));
	hf_raw_say(&raw, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	hf_raw_expect_eof(&raw);
	hf_raw_close(&raw);
	assert_int_equal(fetch_url(bench, (struct hf_http_request){0})->status, 200);
}

/* --- streams --- */

static void on_head(void *arg, struct hf_transfer *transfer, int status)
{
	struct bench *bench = arg;

	assert_ptr_equal(transfer, bench->stream);
	assert_string_equal(hf_transfer_header(transfer, "CONTENT-TYPE"), "application/json");
	assert_null(hf_transfer_header(transfer, "nothing"));
	bench->head_status = status;
	hf_loop_stop(bench->t.loop);
}

static void on_data(void *arg, struct hf_transfer *transfer, const char *bytes, size_t len)
{
	struct bench *bench = arg;

	assert_true(len > 0 && bench->head_status == 200);
	hf_strbuf_add(&bench->data, bytes, len);
	if (bench->pause_on_data)
		hf_transfer_pause(transfer);
	if (bench->cancel_on_data) {
		hf_transfer_cancel(transfer);
		assert_true(bytes[0] != '\0'); /* on_data may still read the bytes after the
		                                * cancel */
	}
	if (bench->destroy_on_data)
		bench->client = hf_http_client_destroy(bench->client);
	if (bench->data.len >= bench->data_wanted)
		hf_loop_stop(bench->t.loop);
}

static void open_stream(struct bench *bench, struct hf_http_request request)
{
	request.target = "/stream";
	request.stream = true;
	request.on_head = on_head;
	request.on_data = on_data;
	bench->stream = send_request(bench, request);
	while (bench->head_status == 0)
		hf_test_loop_run(&bench->t);
	assert_int_equal(bench->head_status, 200);
}

static void server_writes(struct bench *bench, const char *text)
{
	assert_true(hf_exchange_write(bench->kept[0], text, strlen(text)));
}

static void run_until_data(struct bench *bench, size_t len)
{
	bench->data_wanted = len;
	while (bench->data.len < len)
		hf_test_loop_run(&bench->t);
}

static void a_stream_delivers_each_piece_as_it_arrives(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	open_stream(bench, (struct hf_http_request){0});
	server_writes(bench, "one\n");
	run_until_data(bench, 4);
	server_writes(bench, "two\n");
	run_until_data(bench, 8);
	assert_string_equal(bench->data.data, "one\ntwo\n");
	assert_int_equal(bench->done, 0);
	hf_exchange_finish(bench->kept[0]);
	run_until_done(bench);
	assert_int_equal(bench->notes[0].code, 0);
	assert_int_equal(bench->notes[0].status, 200);
	assert_int_equal(bench->notes[0].body_len, 0);
}

static void requests_go_on_beside_a_stream(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0}, true);
	connect_with(bench, (struct hf_http_client_spec){.in_flight_max = 1});
	open_stream(bench, (struct hf_http_request){0});
	send_request(bench, (struct hf_http_request){0});
	while (bench->done < 1)
		hf_test_loop_run(&bench->t);
	assert_int_equal(bench->notes[0].status, 200);
}

static void streams_are_bounded_apart(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};

	start_server(bench, (struct hf_http_server_spec){0}, true);
	connect_with(bench, (struct hf_http_client_spec){.streams_max = 1});
	open_stream(bench, (struct hf_http_request){0});
	struct hf_http_request second = {.method = "GET",
					 .target = "/stream",
					 .stream = true,
					 .on_data = on_data,
					 .on_done = on_done};
	assert_code(hf_http_client_send(bench->client, &second, NULL, &err), HF_E_TOO_MANY);
	hf_transfer_cancel(bench->stream);
	assert_ok(hf_http_client_send(bench->client, &second, &bench->stream, &err), &err);
}

static void a_stream_that_breaks_off_is_unavailable(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	open_stream(bench, (struct hf_http_request){0});
	server_writes(bench, "half");
	run_until_data(bench, 4);
	hf_exchange_abort(bench->kept[0]);
	run_until_done(bench);
	assert_int_equal(bench->notes[0].code, HF_E_UNAVAILABLE);
	assert_int_equal(bench->notes[0].status, 200);
}

static void a_quiet_stream_times_out_and_bytes_put_it_off(void **state)
{
	struct bench *bench = *state;

	start_connected(bench);
	open_stream(bench, (struct hf_http_request){.idle_timeout = 300 * HF_MS});
	server_writes(bench, "x");
	hf_time before = hf_loop_mono(bench->t.loop);
	run_until_done(bench);
	assert_true(hf_loop_mono(bench->t.loop) - before >= 300 * HF_MS);
	assert_int_equal(bench->notes[0].code, HF_E_TIMEOUT);
	assert_string_equal(bench->data.data, "x");
	while (bench->closed == 0) /* the server notices too that the stream has ended */
		hf_test_loop_run(&bench->t);
}

static void a_stream_may_have_a_limit_too(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	open_stream(bench, (struct hf_http_request){.response_bytes_max = 5});
	server_writes(bench, "12345");
	run_until_data(bench, 5);
	server_writes(bench, "6");
	run_until_done(bench);
	assert_int_equal(bench->notes[0].code, HF_E_TOO_LARGE);
	assert_string_equal(bench->data.data, "12345");
}

static void a_canceled_stream_is_gone_for_the_server_too(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	open_stream(bench, (struct hf_http_request){0});
	bench->cancel_on_data = true;
	server_writes(bench, "x");
	while (bench->closed == 0)
		hf_test_loop_run(&bench->t);
	assert_int_equal(bench->done, 0);
	assert_string_equal(bench->data.data, "x");
}

static void the_client_may_be_destroyed_while_a_stream_hands_over(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	open_stream(bench, (struct hf_http_request){0});
	send_request(bench, (struct hf_http_request){.target = "/keep"});
	run_until_kept(bench, 2);
	bench->destroy_on_data = true;
	server_writes(bench, "x");
	while (bench->closed < 2)
		hf_test_loop_run(&bench->t);
	assert_null(bench->client);
	assert_int_equal(bench->done, 0);
}

static void the_client_may_be_destroyed_in_on_done(void **state)
{
	struct bench *bench = *state;

	start_pair(bench);
	bench->destroy_on_done = true;
	send_request(bench, (struct hf_http_request){0});
	send_request(bench, (struct hf_http_request){0});
	bench->wanted = 1;
	run_until_done(bench);
	assert_null(bench->client);
	assert_int_equal(bench->done, 1);
}

static void a_paused_stream_holds_the_server_back_and_loses_nothing(void **state)
{
	enum { BLOCK = 50000 };
	struct bench *bench = *state;
	char *block = hf_xmalloc(BLOCK);
	size_t written = 0;

	memset(block, 'b', BLOCK);
	start_connected(bench);
	open_stream(bench, (struct hf_http_request){.idle_timeout = HF_SECOND});
	bench->pause_on_data = true;
	server_writes(bench, "x");
	run_until_data(bench, 1);
	/* Other requests keep the loop running, so the stream would move if it could. */
	for (int i = 0; i < 2000 && hf_exchange_room(bench->kept[0]) >= BLOCK; i++) {
		assert_true(hf_exchange_write(bench->kept[0], block, BLOCK));
		written += BLOCK;
		struct hf_transfer *beside = bench->stream;
		bench->stream = NULL;
		send_request(bench, (struct hf_http_request){0});
		while (bench->done < (size_t)i + 1)
			hf_test_loop_run(&bench->t);
		bench->stream = beside;
	}
	assert_true(hf_exchange_room(bench->kept[0]) < BLOCK); /* the server's buffer is full */
	assert_int_equal(bench->data.len, 1);
	bench->pause_on_data = false;
	hf_transfer_resume(bench->stream);
	run_until_data(bench, written + 1);
	hf_exchange_finish(bench->kept[0]);
	run_until_done(bench);
	assert_int_equal(bench->data.len, written + 1);
	free(block);
}

static void many_requests_at_a_time_all_come_back(void **state)
{
	enum { COUNT = 200 };
	struct bench *bench = *state;

	start_pair(bench);
	for (int i = 0; i < COUNT; i++)
		send_request(bench, (struct hf_http_request){0});
	run_until_done(bench);
	assert_int_equal(bench->handled, COUNT);
	for (int i = 0; i < NOTES_MAX; i++)
		assert_int_equal(bench->notes[i].status, 200);
	assert_true(hf_http_server_connections(bench->server) <= HF_HTTP_IN_FLIGHT_MAX);
}

static void the_virtual_loop_has_no_network(void **state)
{
	struct bench *bench = *state;
	struct hf_loop *loop = hf_loop_create_virtual(0);
	struct hf_http_client_spec client_spec = {.base_url = "http://h"};
	struct hf_http_server_spec server_spec = {.address = "127.0.0.1", .handler = on_request};
	struct hf_error err = {0};

	assert_code(hf_http_client_create(loop, &client_spec, &bench->client, &err),
		    HF_E_UNSUPPORTED);
	assert_code(hf_http_server_create(loop, &server_spec, &bench->server, &err),
		    HF_E_UNSUPPORTED);
	hf_loop_destroy(loop);
}

static void texts_are_escaped_for_urls(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(100);

	hf_url_escape(&sb, "aZ9-._~ /=&%\xc3\xa9");
	assert_string_equal(sb.data, "aZ9-._~%20%2F%3D%26%25%C3%A9");
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_get_returns_its_response),
		UNIT(methods_bodies_and_headers_arrive_as_given),
		UNIT(a_body_larger_than_any_buffer_arrives_whole),
		UNIT(compressed_answers_are_asked_for_and_arrive_decoded),
		UNIT(a_status_of_failure_is_an_answer_and_headers_can_be_read),
		UNIT(tokens_may_change_between_requests),
		UNIT(one_connection_serves_one_request_after_another),
		UNIT(requests_past_the_bound_wait_and_then_go_in_order),
		UNIT(canceled_requests_make_room_and_are_not_called_back),
		UNIT(a_late_answer_is_a_timeout_and_its_outcome_unknown),
		UNIT(time_in_the_queue_counts_and_nothing_was_sent),
		UNIT(a_server_that_is_not_there_is_unavailable),
		UNIT(a_connection_cut_after_sending_leaves_the_outcome_unknown),
		UNIT(an_answer_too_large_is_refused),
		UNIT(a_head_too_large_is_refused),
		UNIT(a_server_that_answers_no_handshake_is_unavailable),
		UNIT(a_malformed_target_is_a_bad_request),
		UNIT(a_server_of_another_ca_gets_no_request),
		UNIT(insecure_verifies_nothing),
		UNIT(a_server_name_is_asked_for_and_verified_in_place_of_the_host),
		UNIT(client_certificates_are_taken_and_may_be_replaced),
		UNIT(the_ca_may_be_replaced_while_a_request_is_in_flight),
		UNIT(urls_that_name_no_server_are_refused),
		UNIT(targets_go_behind_the_path_of_the_url),
		UNIT(a_proxy_is_asked_in_the_servers_place),
		UNIT(plain_text_does_not_harm_a_tls_server),
		UNIT(a_stream_delivers_each_piece_as_it_arrives),
		UNIT(requests_go_on_beside_a_stream),
		UNIT(streams_are_bounded_apart),
		UNIT(a_stream_that_breaks_off_is_unavailable),
		UNIT(a_quiet_stream_times_out_and_bytes_put_it_off),
		UNIT(a_stream_may_have_a_limit_too),
		UNIT(a_canceled_stream_is_gone_for_the_server_too),
		UNIT(the_client_may_be_destroyed_while_a_stream_hands_over),
		UNIT(the_client_may_be_destroyed_in_on_done),
		UNIT(a_paused_stream_holds_the_server_back_and_loses_nothing),
		UNIT(many_requests_at_a_time_all_come_back),
		UNIT(the_virtual_loop_has_no_network),
		UNIT(texts_are_escaped_for_urls),
	};
	return cmocka_run_group_tests_name("client", tests, set_up_all, tear_down_all);
}
