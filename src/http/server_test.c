/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of the server with raw bytes: requests, limits, refusals, untrusted connections and
 * lifetime. exchange_test.c covers streams, client_test.c TLS and real clients. */
#include "harness/raw_client.h"
#include "http/certificate.h"
#include "http/server_internal.h"

#include "base/fs.h"
#include "base/mem.h"

#include <stdlib.h>

struct bench {
	struct hf_test_loop t;
	struct hf_http_server *server;
	struct hf_raw raw;
	unsigned handled, closed;
	struct hf_exchange *kept; /* kept by the handler for "/keep" */
	char seen[2048];          /* a text form of the last request */
	bool destroy_in_handler;
};

static void on_closed(void *arg, struct hf_exchange *ex)
{
	struct bench *bench = arg;

	assert_ptr_equal(ex, bench->kept);
	bench->kept = NULL;
	bench->closed++;
	hf_loop_stop(bench->t.loop);
}

static void note_request(struct bench *bench, struct hf_exchange *ex)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(sizeof(bench->seen) - 1);
	size_t len;
	const char *body = hf_exchange_body(ex, &len), *x = hf_exchange_header(ex, "x-TEST");

	hf_strbuf_addf(&sb, "%s %s", hf_exchange_method(ex), hf_exchange_path(ex));
	for (size_t i = 0; i < ex->target.query_count; i++)
		hf_strbuf_addf(&sb, " %s=%s", ex->target.query[i].name, ex->target.query[i].value);
	const char *y = hf_exchange_query(ex, "y");
	assert_true(!y || strcmp(y, "&") == 0);
	assert_null(hf_exchange_query(ex, "no such"));
	hf_strbuf_addf(&sb, " x=%s body=%zu:%.40s", x ? x : "-", len, body);
	memcpy(bench->seen, sb.data, sb.len + 1);
}

static void on_request(void *arg, struct hf_exchange *ex)
{
	struct bench *bench = arg;

	bench->handled++;
	note_request(bench, ex);
	if (bench->destroy_in_handler) {
		bench->server = hf_http_server_destroy(bench->server);
		hf_loop_stop(bench->t.loop);
		return;
	}
	if (strcmp(hf_exchange_path(ex), "/keep") == 0) {
		hf_exchange_on_closed(ex, on_closed, bench);
		bench->kept = ex;
		hf_loop_stop(bench->t.loop);
		return;
	}
	hf_exchange_add_header(ex, "X-Answer", "yes");
	hf_exchange_respond(ex, 201, "text/plain", "hello", 5);
}

static void start_server(struct bench *bench, struct hf_http_server_spec spec)
{
	struct hf_error err = {0};

	spec.address = "127.0.0.1";
	spec.handler = spec.handler ? spec.handler : on_request;
	spec.arg = bench;
	assert_ok(hf_http_server_create(bench->t.loop, &spec, &bench->server, &err), &err);
	assert_true(hf_http_server_port(bench->server) != 0);
	hf_raw_open(&bench->raw, &bench->t, hf_http_server_port(bench->server));
}

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	hf_test_loop_init(&bench->t);
	bench->raw.fd = -1;
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_raw_close(&bench->raw);
	hf_http_server_destroy(bench->server);
	hf_test_loop_release(&bench->t);
	free(bench);
	return 0;
}

static void a_request_arrives_whole_and_gets_its_response(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0});
	hf_raw_say(&bench->raw, "POST /a%20b?x=1&y=%26&x=2 HTTP/1.1\r\nHost: h\r\nX-Test: v w\r\n"
				"Content-Length: 4\r\n\r\nbo");
	hf_raw_say(&bench->raw, "dy");
	hf_raw_expect(&bench->raw, "\r\n\r\nhello");
	assert_string_equal(bench->seen, "POST /a b x=1 y=& x=2 x=v w body=4:body");
	hf_raw_expect(&bench->raw, "HTTP/1.1 201 ");
	hf_raw_expect(&bench->raw, "Content-Length: 5\r\n");
	hf_raw_expect(&bench->raw, "Content-Type: text/plain\r\n");
	hf_raw_expect(&bench->raw, "X-Answer: yes\r\n");
}

static void a_chunked_body_arrives_whole(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0});
	hf_raw_say(&bench->raw, "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
				"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
	hf_raw_expect(&bench->raw, "hello");
	assert_string_equal(bench->seen, "PUT / x=- body=5:abcde");
}

static void one_connection_carries_many_requests(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0});
	for (int i = 0; i < 20; i++) {
		hf_strbuf_clear(&bench->raw.in);
		hf_raw_say(&bench->raw, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
		hf_raw_expect(&bench->raw, "hello");
	}
	assert_int_equal(bench->handled, 20);
	assert_int_equal(hf_http_server_connections(bench->server), 1);
	assert_int_equal(bench->server->live, 0);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0});
	hf_raw_say(&bench->raw,
		   "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n"
		   "GET /3 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
	hf_raw_expect_eof(&bench->raw);
	assert_int_equal(bench->handled, 3);
	assert_string_equal(bench->seen, "GET /3 x=- body=0:");
}

static void head_gets_no_body(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0});
	hf_raw_say(&bench->raw, "HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
	hf_raw_expect_eof(&bench->raw);
	assert_null(strstr(bench->raw.in.data, "hello"));
	assert_non_null(strstr(bench->raw.in.data, "Content-Length: 5\r\n"));
}

static void an_answer_may_come_later(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_STRBUF body = HF_STRBUF_INIT(100);

	start_server(bench, (struct hf_http_server_spec){0});
	hf_raw_say(&bench->raw, "GET /keep HTTP/1.1\r\nHost: h\r\n\r\n");
	hf_test_loop_run(&bench->t);
	assert_non_null(bench->kept);
	assert_int_equal(bench->server->live, 1);
	hf_strbuf_addstr(&body, "late");
	hf_exchange_respond_take(bench->kept, 200, NULL, &body);
	assert_int_equal(body.len, 0);
	assert_int_equal(bench->server->live, 0);
	hf_raw_expect(&bench->raw, "late");
	assert_int_equal(bench->closed, 0);
}

static void a_client_that_leaves_while_waiting_is_noticed(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0});
	hf_raw_say(&bench->raw, "GET /keep HTTP/1.1\r\nHost: h\r\n\r\n");
	hf_test_loop_run(&bench->t);
	assert_non_null(bench->kept);
	hf_raw_close(&bench->raw);
	hf_test_loop_run(&bench->t); /* on_closed stops the loop */
	assert_int_equal(bench->closed, 1);
	assert_int_equal(bench->server->live, 0);
	assert_int_equal(hf_http_server_connections(bench->server), 0);
}

static void an_aborted_exchange_cuts_the_connection(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0});
	hf_raw_say(&bench->raw, "GET /keep HTTP/1.1\r\nHost: h\r\n\r\n");
	hf_test_loop_run(&bench->t);
	hf_exchange_abort(bench->kept);
	hf_raw_expect_eof(&bench->raw);
	assert_int_equal(bench->raw.in.len, 0);
	assert_int_equal(bench->closed, 0);
}

static void destroying_the_server_calls_the_closed_callbacks(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0});
	hf_raw_say(&bench->raw, "GET /keep HTTP/1.1\r\nHost: h\r\n\r\n");
	hf_test_loop_run(&bench->t);
	bench->server = hf_http_server_destroy(bench->server);
	assert_int_equal(bench->closed, 1);
	hf_raw_expect_eof(&bench->raw);
}

static void a_handler_may_destroy_the_server(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0});
	bench->destroy_in_handler = true;
	hf_raw_say(&bench->raw,
		   "GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n");
	hf_test_loop_run(&bench->t);
	assert_null(bench->server);
	assert_int_equal(bench->handled, 1);
	hf_raw_expect_eof(&bench->raw);
}

/* Returns errno of an attempt to connect, 0 on success. */
static int connect_to(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	HF_AUTO_FD fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? 0 : errno;
}

static void a_quiet_server_takes_no_new_connections(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0});
	hf_raw_say(&bench->raw, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	hf_raw_expect(&bench->raw, "hello");
	hf_http_server_quiesce(bench->server);
	hf_http_server_quiesce(bench->server);
	/* The connection is refused at once; it does not wait in the listen queue. */
	assert_int_equal(connect_to(hf_http_server_port(bench->server)), ECONNREFUSED);
	hf_strbuf_clear(&bench->raw.in);
	/* the old connection stays in use */
	hf_raw_say(&bench->raw, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	hf_raw_expect(&bench->raw, "hello");
}

/* --- limits --- */

static void assert_answer(struct bench *bench, const char *request, const char *status)
{
	struct hf_raw raw;

	hf_raw_open(&raw, &bench->t, hf_http_server_port(bench->server));
	hf_raw_say(&raw, request);
	hf_raw_expect(&raw, status);
	hf_raw_close(&raw);
}

static void a_body_announced_too_large_is_refused_before_it_is_sent(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){.body_bytes_max = 10});
	assert_answer(bench, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n",
		      "HTTP/1.1 413 ");
	assert_int_equal(bench->handled, 0);
	assert_answer(bench, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n0123456789",
		      " 201 ");
	assert_int_equal(bench->handled, 1);
}

static void a_chunked_body_too_large_is_refused(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){.body_bytes_max = 10});
	assert_answer(bench,
		      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
		      "6\r\n012345\r\n6\r\n012345\r\n6\r\n012345\r\n0\r\n\r\n",
		      "HTTP/1.1 413 ");
	assert_int_equal(bench->handled, 0);
}

static void an_endless_body_is_cut(void **state)
{
	struct bench *bench = *state;
	char *block = hf_xmalloc((1 << 20) + 16);
	int sent = 0;

	start_server(bench, (struct hf_http_server_spec){.body_bytes_max = 10});
	hf_raw_say(&bench->raw, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
	memcpy(block, "100000\r\n", 8);
	memset(block + 8, 'x', 1 << 20);
	memcpy(block + 8 + (1 << 20), "\r\n", 3);
	for (; sent < 18; sent++)
		hf_raw_say(&bench->raw, block);
	hf_raw_expect_eof(&bench->raw);
	assert_int_equal(bench->handled, 0);
	free(block);
}

static void on_hold(void *arg, struct hf_exchange *ex)
{
	struct bench *bench = arg;

	bench->handled++; /* keeps the exchange and its body until the client leaves */
	hf_loop_stop(bench->t.loop);
}

static void all_bodies_together_have_a_limit(void **state)
{
	enum { COUNT = 5, EACH = 15 << 20 };
	struct bench *bench = *state;
	struct hf_raw raws[COUNT];
	char *body = hf_xmalloc(EACH + 1);

	memset(body, 'b', EACH);
	body[EACH] = '\0';
	start_server(bench,
		     (struct hf_http_server_spec){.body_bytes_max = EACH, .handler = on_hold});
	for (int i = 0; i < COUNT; i++) {
		hf_raw_open(&raws[i], &bench->t, hf_http_server_port(bench->server));
		hf_raw_say(&raws[i],
			   "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 15728640\r\n\r\n");
		hf_raw_say(&raws[i], body);
		while (i < COUNT - 1 && bench->handled <= (unsigned)i)
			hf_test_loop_run(&bench->t);
	}
	hf_raw_expect(&raws[COUNT - 1], "HTTP/1.1 503 ");
	/* When a client leaves, the server frees the body of its request. */
	hf_raw_close(&raws[0]);
	while (bench->server->live == COUNT - 1) {
		hf_strbuf_clear(&raws[COUNT - 1].in);
		/* this request keeps the loop running */
		hf_raw_say(&raws[COUNT - 1], "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n");
		hf_raw_expect(&raws[COUNT - 1], "HTTP/1.1 400 ");
	}
	hf_raw_say(&raws[COUNT - 1],
		   "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 15728640\r\n\r\n");
	hf_raw_say(&raws[COUNT - 1], body);
	while (bench->handled < COUNT)
		hf_test_loop_run(&bench->t);
	for (int i = 1; i < COUNT; i++)
		hf_raw_close(&raws[i]);
	free(body);
}

static void long_targets_and_heads_are_refused(void **state)
{
	struct bench *bench = *state;
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 20);

	start_server(bench, (struct hf_http_server_spec){0});
	hf_strbuf_addstr(&sb, "GET /");
	while (sb.len < HF_HTTP_TARGET_BYTES_MAX + 10)
		hf_strbuf_addch(&sb, 'x');
	hf_strbuf_addstr(&sb, " HTTP/1.1\r\nHost: h\r\n\r\n");
	assert_answer(bench, sb.data, "HTTP/1.1 414 ");

	hf_strbuf_clear(&sb);
	hf_strbuf_addstr(&sb, "GET / HTTP/1.1\r\nHost: h\r\nX-Long: ");
	while (sb.len < 2 * HF_HTTP_HEAD_BYTES_MAX)
		hf_strbuf_addch(&sb, 'x');
	hf_strbuf_addstr(&sb, "\r\n\r\n");
	assert_answer(bench, sb.data, "HTTP/1.1 431 ");
	assert_int_equal(bench->handled, 0);
}

static void malformed_requests_are_refused(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){0});
	assert_answer(bench, "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 400 ");
	assert_answer(bench, "GET /?a=%00 HTTP/1.1\r\nHost: h\r\n\r\n",
		      "a broken escape in the query");
	assert_answer(bench, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 400 ");
	assert_answer(bench, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n",
		      "HTTP/1.1 400 ");
	assert_int_equal(bench->handled, 0);
}

static void rubbish_is_cut_and_the_server_goes_on(void **state)
{
	struct bench *bench = *state;
	static const char *const rubbish[] = {
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 TLS to a plain port\r\n\r\n",
		"\r\n\r\n\r\n\r\nx\r\n\r\n",
		"GET\r\n\r\n",
		"GET / HTTP/9.9\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nx\r\n",
		"GET / HTTP/1.1\r\nno colon here\r\nHost: h\r\n\r\n",
	};

	start_server(bench, (struct hf_http_server_spec){.idle_timeout_s = 1});
	for (size_t i = 0; i < HF_ARRAY_LEN(rubbish); i++) {
		struct hf_raw raw;

		hf_raw_open(&raw, &bench->t, hf_http_server_port(bench->server));
		hf_raw_say(&raw, rubbish[i]);
		hf_raw_expect_eof(&raw);
		hf_raw_close(&raw);
	}
	assert_answer(bench, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "hello");
}

static void an_idle_connection_is_closed(void **state)
{
	struct bench *bench = *state;

	start_server(bench, (struct hf_http_server_spec){.idle_timeout_s = 1});
	hf_raw_say(&bench->raw, "GET / HT");
	hf_raw_expect_eof(&bench->raw);
	assert_int_equal(bench->handled, 0);
}

static void connections_past_the_limit_wait_their_turn(void **state)
{
	struct bench *bench = *state;
	struct hf_raw second;

	start_server(bench, (struct hf_http_server_spec){.connections_max = 1});
	hf_raw_say(&bench->raw, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	hf_raw_expect(&bench->raw, "hello");
	hf_raw_open(&second, &bench->t, hf_http_server_port(bench->server));
	hf_raw_say(&second, "GET /second HTTP/1.1\r\nHost: h\r\n\r\n");
	hf_strbuf_clear(&bench->raw.in);
	hf_raw_say(&bench->raw, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	hf_raw_expect(&bench->raw, "hello");
	assert_int_equal(second.in.len, 0);
	hf_raw_close(&bench->raw);
	hf_raw_expect(&second, "hello");
	hf_raw_close(&second);
}

static void two_hundred_clients_are_served_at_a_time(void **state)
{
	enum { COUNT = 200 };
	struct bench *bench = *state;
	struct hf_raw *raws = hf_xcalloc(COUNT, sizeof(*raws));

	start_server(bench, (struct hf_http_server_spec){0});
	for (int i = 0; i < COUNT; i++) {
		hf_raw_open(&raws[i], &bench->t, hf_http_server_port(bench->server));
		hf_raw_say(&raws[i], "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
	}
	for (int i = 0; i < COUNT; i++)
		hf_raw_expect(&raws[i], "hello");
	assert_true(hf_http_server_connections(bench->server) >= COUNT);
	for (int i = 0; i < COUNT; i++)
		hf_raw_close(&raws[i]);
	assert_int_equal(bench->handled, COUNT);
	free(raws);
}

/* --- admission and refusals --- */

static int admit_with_token(void *arg, const struct hf_exchange *ex, struct hf_error *err)
{
	const char *token = hf_exchange_header(ex, "Authorization");

	if (token && strcmp(token, "Bearer good") == 0) {
		hf_exchange_trust(ex);
		return 0;
	}
	if (strcmp(hf_exchange_path(ex), "/public") == 0)
		return 0;
	return hf_error_set(err, HF_E_UNAUTHORIZED, "who are you, %s %s?", hf_exchange_method(ex),
			    hf_exchange_path(ex));
}

#define GOOD "Host: h\r\nAuthorization: Bearer good\r\n\r\n"

static void idle_untrusted_connections_are_cut_and_trusted_ones_stay(void **state)
{
	enum { MAX = 2, COUNT = 12 };
	struct bench *bench = *state;
	struct hf_raw raws[COUNT];

	start_server(bench, (struct hf_http_server_spec){.admit = admit_with_token,
							 .connections_max = MAX + 2,
							 .untrusted_max = MAX});
	hf_raw_say(&bench->raw, "GET / HTTP/1.1\r\n" GOOD);
	hf_raw_expect(&bench->raw, "hello");
	/* One half of the clients sends nothing. The other half sends requests that need no
	 * token. */
	for (int i = 0; i < COUNT; i++) {
		hf_raw_open(&raws[i], &bench->t, hf_http_server_port(bench->server));
		if (i % 2) {
			hf_raw_say(&raws[i], "GET /public HTTP/1.1\r\nHost: h\r\n\r\n");
			hf_raw_expect(&raws[i], "hello");
		}
	}
	for (int i = 0; i < COUNT - MAX; i++)
		hf_raw_expect_eof(&raws[i]);
	hf_strbuf_clear(&bench->raw.in);
	hf_raw_say(&bench->raw, "GET / HTTP/1.1\r\n" GOOD);
	hf_raw_expect(&bench->raw, "hello");
	/* A further trusted client can still connect. */
	hf_raw_close(&raws[0]);
	hf_raw_open(&raws[0], &bench->t, hf_http_server_port(bench->server));
	hf_raw_say(&raws[0], "GET / HTTP/1.1\r\n" GOOD);
	hf_raw_expect(&raws[0], "hello");
	for (int i = 0; i < COUNT; i++)
		hf_raw_close(&raws[i]);
}

/* A client with a token opens more connections than the server has, and leaves them open. */
static void trust_that_ends_with_the_request_keeps_no_idle_connection(void **state)
{
	enum { MAX = 2, COUNT = 12 };
	struct bench *bench = *state;
	struct hf_raw raws[COUNT];

	start_server(bench, (struct hf_http_server_spec){.admit = admit_with_token,
							 .connections_max = MAX + 2,
							 .untrusted_max = MAX,
							 .trust_ends_with_request = true});
	for (int i = 0; i < COUNT; i++) {
		hf_raw_open(&raws[i], &bench->t, hf_http_server_port(bench->server));
		hf_raw_say(&raws[i], "GET / HTTP/1.1\r\n" GOOD);
		hf_raw_expect(&raws[i], "hello");
	}
	for (int i = 0; i < COUNT - MAX; i++)
		hf_raw_expect_eof(&raws[i]);
	/* The last ones are still open. */
	hf_strbuf_clear(&raws[COUNT - 1].in);
	hf_raw_say(&raws[COUNT - 1], "GET / HTTP/1.1\r\n" GOOD);
	hf_raw_expect(&raws[COUNT - 1], "hello");
	for (int i = 0; i < COUNT; i++)
		hf_raw_close(&raws[i]);
}

static void a_slow_untrusted_client_is_cut_in_time(void **state)
{
	struct bench *bench = *state;
	struct hf_raw trusted;

	start_server(bench, (struct hf_http_server_spec){.admit = admit_with_token,
							 .untrusted_timeout_s = 1});
	hf_raw_open(&trusted, &bench->t, hf_http_server_port(bench->server));
	hf_raw_say(&trusted, "GET / HTTP/1.1\r\n" GOOD);
	hf_raw_expect(&trusted, "hello");
	hf_raw_say(&bench->raw, "GET /public HTTP/1.1\r\nHost: h\r\n\r\nGET /");
	hf_raw_expect(&bench->raw, "hello");
	hf_raw_expect_eof(&bench->raw);
	hf_strbuf_clear(&trusted.in);
	hf_raw_say(&trusted, "GET / HTTP/1.1\r\n" GOOD);
	hf_raw_expect(&trusted, "hello");
	hf_raw_close(&trusted);
}

static void refuse_in_json(void *arg, int code, const char *text, struct hf_strbuf *ret_body)
{
	hf_strbuf_addf(ret_body, "{\"%s\": \"%s\"}", hf_code_reason(code), text);
}

static void untrusted_requests_are_refused_before_their_body(void **state)
{
	struct bench *bench = *state;

	start_server(bench,
		     (struct hf_http_server_spec){.admit = admit_with_token,
						  .refusal = refuse_in_json,
						  .refusal_content_type = "application/json"});
	hf_raw_say(&bench->raw, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n");
	hf_raw_expect(&bench->raw, "{\"Unauthorized\": \"who are you, POST /x?\"}");
	hf_raw_expect(&bench->raw, "HTTP/1.1 401 ");
	hf_raw_expect(&bench->raw, "application/json");
	hf_raw_expect_eof(&bench->raw); /* the body was not read, so the connection cannot be
	                                 * reused */
	assert_answer(bench,
		      "POST / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer good\r\n"
		      "Content-Length: 1\r\n\r\nx",
		      "hello");
	assert_answer(bench, "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", "{\"BadRequest\": ");
	/* After a refused request without a body the connection stays open. */
	hf_raw_close(&bench->raw);
	hf_raw_open(&bench->raw, &bench->t, hf_http_server_port(bench->server));
	hf_raw_say(&bench->raw, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n"
				"GET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
	hf_raw_expect(&bench->raw, "who are you, GET /2?");
	assert_null(strstr(bench->raw.in.data, "close"));
	assert_int_equal(bench->handled, 1);
}

/* Starts a TLS server and a client that sends `hello` to it. */
static void start_tls(struct bench *bench, const char *hello)
{
	const char *const names[] = {"127.0.0.1", NULL};
	struct hf_certificate_spec spec = {.common_name = "ca",
					   .names = names,
					   .now = hf_loop_wall(bench->t.loop),
					   .valid_for = HF_DAY};
	struct hf_certificate ca, pair;
	struct hf_error err;

	assert_ok(hf_certificate_make_ca(&spec, &ca, &err), &err);
	spec.common_name = NULL;
	assert_ok(hf_certificate_make_server(&ca, &spec, &pair, &err), &err);
	start_server(bench, (struct hf_http_server_spec){.cert_pem = pair.cert_pem,
							 .key_pem = pair.key_pem});
	hf_certificate_release(&ca);
	hf_certificate_release(&pair);
	hf_raw_say(&bench->raw, hello);
}

struct poll {
	struct bench *bench;
	struct hf_timer *timer;
	bool (*seen)(const struct hf_http_server *server, hf_time due);
};

static void on_poll(void *arg)
{
	struct poll *poll = arg;
	const struct hf_http_server *server = poll->bench->server;
	hf_time due = hf_timer_due(server->timer);

	if (poll->seen(server,
		       due == HF_TIME_NEVER ? due : due - hf_loop_mono(poll->bench->t.loop)))
		hf_loop_stop(poll->bench->t.loop);
	else
		hf_timer_arm(poll->timer, HF_MS);
}

static void wait_until(struct bench *bench, bool (*seen)(const struct hf_http_server *, hf_time))
{
	struct poll poll = {.bench = bench, .seen = seen};

	poll.timer = hf_timer_create(bench->t.loop, on_poll, &poll);
	hf_timer_arm(poll.timer, 0);
	hf_test_loop_run(&bench->t);
	hf_timer_destroy(poll.timer);
}

/* libmicrohttpd wants to run again soon (the idle timeout would be longer), but not at once. */
static bool runs_again_after_a_while(const struct hf_http_server *server, hf_time due)
{
	return server->before_first_request == 1 && due > HF_MS && due < HF_SECOND;
}

static bool has_no_connections(const struct hf_http_server *server, hf_time due)
{
	return server->before_first_request == 0 && hf_http_server_connections(server) == 0;
}

static void a_handshake_that_stops_does_not_keep_the_server_busy(void **state)
{
	struct bench *bench = *state;

	start_tls(bench, "\x16\x03\x01\x02\x02\x01");
	wait_until(bench, runs_again_after_a_while);
	hf_raw_close(&bench->raw);
	wait_until(bench, has_no_connections);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_request_arrives_whole_and_gets_its_response),
		UNIT(a_chunked_body_arrives_whole),
		UNIT(one_connection_carries_many_requests),
		UNIT(pipelined_requests_are_answered_in_order),
		UNIT(head_gets_no_body),
		UNIT(an_answer_may_come_later),
		UNIT(a_client_that_leaves_while_waiting_is_noticed),
		UNIT(an_aborted_exchange_cuts_the_connection),
		UNIT(destroying_the_server_calls_the_closed_callbacks),
		UNIT(a_handler_may_destroy_the_server),
		UNIT(a_quiet_server_takes_no_new_connections),
		UNIT(a_body_announced_too_large_is_refused_before_it_is_sent),
		UNIT(a_chunked_body_too_large_is_refused),
		UNIT(an_endless_body_is_cut),
		UNIT(all_bodies_together_have_a_limit),
		UNIT(long_targets_and_heads_are_refused),
		UNIT(malformed_requests_are_refused),
		UNIT(rubbish_is_cut_and_the_server_goes_on),
		UNIT(an_idle_connection_is_closed),
		UNIT(idle_untrusted_connections_are_cut_and_trusted_ones_stay),
		UNIT(trust_that_ends_with_the_request_keeps_no_idle_connection),
		UNIT(a_slow_untrusted_client_is_cut_in_time),
		UNIT(connections_past_the_limit_wait_their_turn),
		UNIT(two_hundred_clients_are_served_at_a_time),
		UNIT(untrusted_requests_are_refused_before_their_body),
		UNIT(a_handshake_that_stops_does_not_keep_the_server_busy),
	};
	return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
