/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of the client against a scripted server with just enough HTTP/2 without TLS (RFC 9113). The
 * server sends trailers, resets streams and sends GOAWAY. */
#include "harness/listen.h"
#include "harness/raw_client.h"
#include "http/client.h"

#include "base/mem.h"

#include <stdlib.h>

#define FRAME_HEAD 9
#define PREFACE_LEN 24
#define CONNECTIONS_MAX 8

enum frame { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, GOAWAY = 7 };
enum flag { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

enum script { ANSWER, TRAILERS_ONLY, RESET, RESET_AFTER_HEAD, GO_AWAY, CLOSE };

struct bench;

struct connection {
	struct bench *bench;
	int fd;
	struct hf_io *io;
	struct hf_strbuf in;
	bool greeted;
	unsigned to_reset;
};

struct bench {
	struct hf_test_loop t;
	int listen_fd;
	struct hf_io *listen_io;
	uint16_t port;
	enum script script;
	struct connection connections[CONNECTIONS_MAX];
	size_t accepted;
	char request_head[512]; /* its bytes, to search for literals */
	size_t request_head_len;

	struct hf_http_client *client;
	unsigned done;
	int code, status;
	bool retry_now;
	char body[64], grpc_status[16], grpc_message[32], text[HF_ERROR_TEXT_MAX];
	struct hf_strbuf data;
	int head_status;
};

/* --- the server --- */

static void send_frame(struct connection *c, enum frame type, unsigned flags, unsigned stream,
		       const void *payload, size_t len)
{
	unsigned char head[FRAME_HEAD] = {
		(unsigned char)(len >> 16),
		(unsigned char)(len >> 8),
		(unsigned char)len,
		(unsigned char)type,
		(unsigned char)flags,
		(unsigned char)(stream >> 24),
		(unsigned char)(stream >> 16),
		(unsigned char)(stream >> 8),
		(unsigned char)stream,
	};

	assert_int_equal(send(c->fd, head, sizeof(head), MSG_NOSIGNAL), sizeof(head));
	if (len > 0)
		assert_int_equal(send(c->fd, payload, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* Adds a header field as HPACK's "literal without indexing, new name". */
static void add_field(struct hf_strbuf *sb, const char *name, const char *value)
{
	hf_strbuf_addch(sb, 0);
	hf_strbuf_addch(sb, (char)strlen(name));
	hf_strbuf_addstr(sb, name);
	hf_strbuf_addch(sb, (char)strlen(value));
	hf_strbuf_addstr(sb, value);
}

static void send_head(struct connection *c, unsigned stream, bool trailers_only)
{
	HF_AUTO_STRBUF fields = HF_STRBUF_INIT(256);

	hf_strbuf_addch(&fields, (char)0x88); /* ":status: 200" from the static table */
	add_field(&fields, "content-type", "application/grpc");
	if (trailers_only) {
		add_field(&fields, "grpc-status", "12");
		add_field(&fields, "grpc-message", "no%20such");
	}
	send_frame(c, HEADERS, END_HEADERS | (trailers_only ? END_STREAM : 0u), stream, fields.data,
		   fields.len);
}

static void send_trailers(struct connection *c, unsigned stream)
{
	HF_AUTO_STRBUF fields = HF_STRBUF_INIT(256);

	add_field(&fields, "grpc-status", "0");
	send_frame(c, HEADERS, END_HEADERS | END_STREAM, stream, fields.data, fields.len);
}

static const unsigned char internal_error[4] = {0, 0, 0, 2};

static void serve_request(struct connection *c, unsigned stream)
{
	static const unsigned char go_away[8] = {0, 0, 0, 0, 0, 0, 0, 2};

	switch (c->bench->script) {
	case ANSWER:
		send_head(c, stream, false);
		send_frame(c, DATA, 0, stream, "hello", 5);
		send_trailers(c, stream);
		break;
	case TRAILERS_ONLY: send_head(c, stream, true); break;
	case RESET_AFTER_HEAD:
		send_head(c, stream, false);
		send_frame(c, DATA, 0, stream, "half", 4);
		/* The server resets the stream once the client has received these bytes. */
		c->to_reset = stream;
		break;
	case RESET:
		send_frame(c, RST_STREAM, 0, stream, internal_error, sizeof(internal_error));
		break;
	case GO_AWAY: send_frame(c, GOAWAY, 0, 0, go_away, sizeof(go_away)); break;
	case CLOSE: shutdown(c->fd, SHUT_RDWR); break;
	}
}

static void on_frame(struct connection *c, const unsigned char *frame, size_t len)
{
	struct bench *bench = c->bench;
	unsigned stream = (unsigned)frame[5] << 24 | (unsigned)frame[6] << 16 |
			  (unsigned)frame[7] << 8 | frame[8];

	if (frame[3] == SETTINGS && !(frame[4] & ACK)) {
		send_frame(c, SETTINGS, 0, 0, "", 0);
		send_frame(c, SETTINGS, ACK, 0, "", 0);
	} else if (frame[3] == HEADERS) {
		bench->request_head_len = len < sizeof(bench->request_head) ? len : 0;
		memcpy(bench->request_head, frame + FRAME_HEAD, bench->request_head_len);
		serve_request(c, stream);
	}
}

static void on_connection_io(void *arg, unsigned events)
{
	struct connection *c = arg;
	char bytes[4096];
	ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);

	if (n <= 0) {
		hf_io_want(c->io, 0);
		return;
	}
	hf_strbuf_add(&c->in, bytes, (size_t)n);
	if (!c->greeted && c->in.len >= PREFACE_LEN) {
		assert_memory_equal(c->in.data, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", PREFACE_LEN);
		hf_strbuf_consume(&c->in, PREFACE_LEN);
		c->greeted = true;
	}
	while (c->greeted && c->in.len >= FRAME_HEAD) {
		const unsigned char *frame = (const unsigned char *)c->in.data;
		size_t len = (size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2];

		if (c->in.len < FRAME_HEAD + len)
			return;
		on_frame(c, frame, len);
		hf_strbuf_consume(&c->in, FRAME_HEAD + len);
	}
}

static void on_accept(void *arg, unsigned events)
{
	struct bench *bench = arg;
	struct hf_error err = {0};

	assert_true(bench->accepted < CONNECTIONS_MAX);
	struct connection *c = &bench->connections[bench->accepted++];
	c->bench = bench;
	c->fd = accept4(bench->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(c->fd >= 0);
	hf_strbuf_init(&c->in, 1 << 16);
	assert_ok(hf_io_create(bench->t.loop, c->fd, on_connection_io, c, &c->io, &err), &err);
	hf_io_want(c->io, HF_IO_READ);
}

/* --- the client --- */

static void on_done(void *arg, const struct hf_http_result *result)
{
	struct bench *bench = arg;

	bench->done++;
	bench->code = result->code;
	bench->status = result->status;
	bench->retry_now = result->retry_now;
	snprintf(bench->body, sizeof(bench->body), "%s", result->body);
	snprintf(bench->text, sizeof(bench->text), "%s", result->err->text);
	const char *grpc_status = hf_transfer_header(result->transfer, "grpc-status");
	const char *grpc_message = hf_transfer_header(result->transfer, "grpc-message");
	snprintf(bench->grpc_status, sizeof(bench->grpc_status), "%s",
		 grpc_status ? grpc_status : "-");
	snprintf(bench->grpc_message, sizeof(bench->grpc_message), "%s",
		 grpc_message ? grpc_message : "-");
	hf_loop_stop(bench->t.loop);
}

static void on_head(void *arg, struct hf_transfer *transfer, int status)
{
	struct bench *bench = arg;

	bench->head_status = status;
}

static void on_data(void *arg, struct hf_transfer *transfer, const char *bytes, size_t len)
{
	struct bench *bench = arg;

	struct connection *c = &bench->connections[0];

	hf_strbuf_add(&bench->data, bytes, len);
	if (c->to_reset)
		send_frame(c, RST_STREAM, 0, c->to_reset, internal_error, sizeof(internal_error));
}

static void send_and_wait(struct bench *bench, bool stream)
{
	const char *const headers[] = {"TE: trailers", NULL};
	struct hf_http_request request = {
		.method = "POST",
		.target = "/v1.Lister/List",
		.headers = headers,
		.body = "message",
		.body_len = 7,
		.content_type = "application/grpc",
		.stream = stream,
		.on_head = on_head,
		.on_data = on_data,
		.on_done = on_done,
		.arg = bench,
	};
	struct hf_error err = {0};
	unsigned before = bench->done;

	assert_ok(hf_http_client_send(bench->client, &request, NULL, &err), &err);
	while (bench->done == before)
		hf_test_loop_run(&bench->t);
}

static void listen_on_loopback(struct bench *bench)
{
	struct hf_error err = {0};

	bench->listen_fd = hf_test_listen(&bench->port);
	assert_ok(hf_io_create(bench->t.loop, bench->listen_fd, on_accept, bench, &bench->listen_io,
			       &err),
		  &err);
	hf_io_want(bench->listen_io, HF_IO_READ);
}

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));
	char url[64];
	struct hf_http_client_spec spec = {.base_url = url, .http2_plain = true, .proxy_url = ""};
	struct hf_error err = {0};

	hf_test_loop_init(&bench->t);
	hf_strbuf_init(&bench->data, 1 << 16);
	listen_on_loopback(bench);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", bench->port);
	assert_ok(hf_http_client_create(bench->t.loop, &spec, &bench->client, &err), &err);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_http_client_destroy(bench->client);
	for (size_t i = 0; i < bench->accepted; i++) {
		hf_io_destroy(bench->connections[i].io);
		close(bench->connections[i].fd);
		hf_strbuf_release(&bench->connections[i].in);
	}
	hf_io_destroy(bench->listen_io);
	close(bench->listen_fd);
	hf_strbuf_release(&bench->data);
	hf_test_loop_release(&bench->t);
	free(bench);
	return 0;
}

static void trailers_are_headers_behind_the_body(void **state)
{
	struct bench *bench = *state;

	send_and_wait(bench, false);
	assert_int_equal(bench->code, 0);
	assert_int_equal(bench->status, 200);
	assert_string_equal(bench->body, "hello");
	assert_string_equal(bench->grpc_status, "0");
}

static void an_error_of_grpc_is_in_the_head(void **state)
{
	struct bench *bench = *state;

	bench->script = TRAILERS_ONLY;
	send_and_wait(bench, false);
	assert_int_equal(bench->code, 0);
	assert_int_equal(bench->status, 200);
	assert_string_equal(bench->body, "");
	assert_string_equal(bench->grpc_status, "12");
	assert_string_equal(bench->grpc_message, "no%20such");
}

static void streams_have_trailers_too(void **state)
{
	struct bench *bench = *state;

	send_and_wait(bench, true);
	assert_int_equal(bench->code, 0);
	assert_int_equal(bench->head_status, 200);
	assert_string_equal(bench->data.data, "hello");
	assert_string_equal(bench->grpc_status, "0");
}

static void each_request_has_a_connection_of_its_own(void **state)
{
	struct bench *bench = *state;

	for (unsigned i = 1; i <= 3; i++) {
		send_and_wait(bench, false);
		assert_int_equal(bench->code, 0);
		assert_int_equal(bench->accepted, i);
	}
}

static void a_reset_stream_can_be_tried_again_and_its_outcome_is_unknown(void **state)
{
	struct bench *bench = *state;

	bench->script = RESET;
	send_and_wait(bench, false);
	assert_int_equal(bench->code, HF_E_TIMEOUT);
	assert_true(bench->retry_now);
	assert_non_null(strstr(bench->text, "/v1.Lister/List"));
}

static void a_reset_watch_counts_as_broken_off(void **state)
{
	struct bench *bench = *state;

	bench->script = RESET_AFTER_HEAD;
	send_and_wait(bench, true);
	assert_int_equal(bench->code, HF_E_UNAVAILABLE);
	assert_true(bench->retry_now);
	assert_string_equal(bench->data.data, "half");
}

static void a_goaway_is_not_a_response(void **state)
{
	struct bench *bench = *state;

	bench->script = GO_AWAY;
	send_and_wait(bench, false);
	assert_true(bench->code == HF_E_TIMEOUT || bench->code == HF_E_UNAVAILABLE);
	/* After a GOAWAY curl 8 itself retries the requests that the server has not processed, and
	 * gives up after a few tries. */
	assert_true(bench->retry_now || bench->accepted > 1);
	assert_int_equal(bench->status, 0);
}

static void a_connection_closed_during_a_request_is_not_a_response(void **state)
{
	struct bench *bench = *state;

	bench->script = CLOSE;
	send_and_wait(bench, false);
	assert_int_equal(bench->code, HF_E_TIMEOUT);
	assert_int_equal(bench->status, 0);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(trailers_are_headers_behind_the_body),
		UNIT(an_error_of_grpc_is_in_the_head),
		UNIT(streams_have_trailers_too),
		UNIT(each_request_has_a_connection_of_its_own),
		UNIT(a_reset_stream_can_be_tried_again_and_its_outcome_is_unknown),
		UNIT(a_reset_watch_counts_as_broken_off),
		UNIT(a_goaway_is_not_a_response),
		UNIT(a_connection_closed_during_a_request_is_not_a_response),
	};
	return cmocka_run_group_tests_name("http2", tests, NULL, NULL);
}
