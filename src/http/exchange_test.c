/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of streams from the server: written bytes arrive in order and at once; slow clients,
 * clients that leave, and the end of a stream. */
#include "harness/raw_client.h"
#include "http/server_internal.h"

#include "base/mem.h"

#include <stdlib.h>

struct bench {
	struct hf_test_loop t;
	struct hf_http_server *server;
	struct hf_raw raw;
	struct hf_exchange *stream;
	unsigned closed, drained;
	bool destroy_on_drained;
};

static void on_closed(void *arg, struct hf_exchange *ex)
{
	struct bench *bench = arg;

	bench->closed++;
	bench->stream = NULL;
	hf_loop_stop(bench->t.loop);
}

static void on_drained(void *arg, struct hf_exchange *ex)
{
	struct bench *bench = arg;

	bench->drained++;
	if (bench->destroy_on_drained)
		bench->server = hf_http_server_destroy(bench->server);
	hf_loop_stop(bench->t.loop);
}

static void on_request(void *arg, struct hf_exchange *ex)
{
	struct bench *bench = arg;

	hf_exchange_on_closed(ex, on_closed, bench);
	hf_exchange_on_drained(ex, on_drained, bench);
	hf_exchange_begin(ex, 200, "application/json");
	bench->stream = ex;
	hf_loop_stop(bench->t.loop);
}

static void start_with(struct bench *bench, struct hf_http_server_spec spec)
{
	struct hf_error err = {0};

	spec.address = "127.0.0.1";
	spec.arg = bench;
	if (!spec.handler)
		spec.handler = on_request;
	assert_ok(hf_http_server_create(bench->t.loop, &spec, &bench->server, &err), &err);
	hf_raw_open(&bench->raw, &bench->t, hf_http_server_port(bench->server));
}

static void open_stream(struct bench *bench, const char *request)
{
	hf_raw_say(&bench->raw, request);
	while (!bench->stream)
		hf_test_loop_run(&bench->t);
}

#define GET "GET /watch HTTP/1.1\r\nHost: h\r\n\r\n"

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

static void write_text(struct bench *bench, const char *text)
{
	assert_true(hf_exchange_write(bench->stream, text, strlen(text)));
}

static void each_write_arrives_at_once_as_a_chunk(void **state)
{
	struct bench *bench = *state;

	start_with(bench, (struct hf_http_server_spec){0});
	open_stream(bench, GET);
	/* the head is sent before the first write */
	hf_raw_expect(&bench->raw, "Transfer-Encoding: chunked\r\n");
	write_text(bench, "one\n");
	hf_raw_expect(&bench->raw, "4\r\none\n\r\n");
	write_text(bench, "two\n");
	write_text(bench, "three\n");
	hf_raw_expect(&bench->raw, "\r\ntwo\nthree\n\r\n");
	assert_true(hf_exchange_write(bench->stream, "", 0));
	hf_exchange_finish(bench->stream);
	hf_raw_expect(&bench->raw, "0\r\n\r\n");
	assert_int_equal(bench->closed, 0);
}

static void all_written_bytes_are_sent_after_finish(void **state)
{
	struct bench *bench = *state;
	char *big = hf_xmalloc(500001);

	start_with(bench, (struct hf_http_server_spec){0});
	open_stream(bench, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
	memset(big, 'b', 500000);
	big[500000] = 'E';
	assert_true(hf_exchange_write(bench->stream, big, 500001));
	hf_exchange_finish(bench->stream);
	hf_raw_expect_eof(&bench->raw);
	assert_true(bench->raw.in.len > 500001);
	hf_raw_expect(&bench->raw, "E\r\n0\r\n\r\n");
	free(big);
}

static void the_connection_is_good_for_more_after_a_stream(void **state)
{
	struct bench *bench = *state;

	start_with(bench, (struct hf_http_server_spec){0});
	for (int i = 0; i < 5; i++) {
		bench->stream = NULL;
		hf_strbuf_clear(&bench->raw.in);
		open_stream(bench, GET);
		write_text(bench, "x");
		hf_exchange_finish(bench->stream);
		hf_raw_expect(&bench->raw, "0\r\n\r\n");
	}
	assert_int_equal(hf_http_server_connections(bench->server), 1);
}

static void a_client_of_http_1_0_gets_the_bytes_and_an_end(void **state)
{
	struct bench *bench = *state;

	start_with(bench, (struct hf_http_server_spec){0});
	open_stream(bench, "GET / HTTP/1.0\r\n\r\n");
	write_text(bench, "plain");
	hf_exchange_finish(bench->stream);
	hf_raw_expect_eof(&bench->raw);
	assert_non_null(strstr(bench->raw.in.data, "\r\n\r\nplain"));
	assert_null(strstr(bench->raw.in.data, "chunked"));
}

static void a_head_request_ends_the_stream(void **state)
{
	struct bench *bench = *state;

	start_with(bench, (struct hf_http_server_spec){0});
	open_stream(bench, "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
	while (bench->closed == 0)
		hf_test_loop_run(&bench->t);
	hf_raw_expect(&bench->raw, "HTTP/1.1 200 OK");
}

static void a_slow_client_is_pushed_back_on_and_loses_nothing(void **state)
{
	enum { LINES = 3000, LINE = 1000 };
	struct bench *bench = *state;
	char line[LINE + 1];
	unsigned written = 0, refused = 0;

	start_with(bench, (struct hf_http_server_spec){.stream_bytes_max = 64 * 1024});
	open_stream(bench, GET);
	bench->raw.paused = true;
	hf_raw_want(&bench->raw);
	while (written < LINES) {
		snprintf(line, sizeof(line), "%08u%*s\n", written, LINE - 9, "");
		if (hf_exchange_write(bench->stream, line, LINE)) {
			written++;
			continue;
		}
		refused++;
		assert_true(hf_exchange_room(bench->stream) < LINE);
		/* The client reads nothing until the server's buffer is full, then everything. */
		bench->raw.paused = false;
		hf_raw_want(&bench->raw);
		unsigned before = bench->drained;
		while (bench->drained == before)
			hf_test_loop_run(&bench->t);
		assert_true(hf_exchange_room(bench->stream) >= 32 * 1024);
	}
	assert_true(refused > 0 && bench->drained >= 1);
	hf_exchange_finish(bench->stream);
	bench->raw.paused = false;
	hf_raw_want(&bench->raw);
	hf_raw_expect(&bench->raw, "0\r\n\r\n");
	/* Every line came once. Chunk boundaries may cut lines, so compare their numbers. */
	HF_AUTO_STRBUF body = HF_STRBUF_INIT((size_t)8 << 20);
	const char *at = strstr(bench->raw.in.data, "\r\n\r\n") + 4;
	for (unsigned long size; (size = strtoul(at, NULL, 16)) > 0;) {
		at = strstr(at, "\r\n") + 2;
		hf_strbuf_add(&body, at, size);
		at += size + 2;
	}
	assert_int_equal(body.len, LINES * LINE);
	for (unsigned i = 0; i < LINES; i++)
		assert_int_equal(strtoul(body.data + (size_t)i * LINE, NULL, 10), i);
}

static void a_write_past_the_limit_takes_nothing(void **state)
{
	struct bench *bench = *state;
	char bytes[2000] = {0};

	start_with(bench, (struct hf_http_server_spec){.stream_bytes_max = 1500});
	open_stream(bench, GET);
	assert_int_equal(hf_exchange_room(bench->stream), 1500);
	assert_false(hf_exchange_write(bench->stream, bytes, 1501));
	assert_int_equal(hf_exchange_room(bench->stream), 1500);
	assert_true(hf_exchange_write(bench->stream, bytes, 1500));
	assert_int_equal(hf_exchange_room(bench->stream), 0);
	assert_true(hf_exchange_write(bench->stream, bytes, 0));
}

static void a_client_that_leaves_a_quiet_stream_is_noticed(void **state)
{
	struct bench *bench = *state;

	start_with(bench, (struct hf_http_server_spec){0});
	open_stream(bench, GET);
	write_text(bench, "one\n");
	hf_raw_expect(&bench->raw, "one\n");
	hf_raw_close(&bench->raw);
	while (bench->closed == 0)
		hf_test_loop_run(&bench->t);
	assert_int_equal(bench->server->live, 0);
	assert_int_equal(hf_http_server_connections(bench->server), 0);
}

static void a_client_that_leaves_while_much_is_unsent_is_noticed(void **state)
{
	struct bench *bench = *state;
	char *big = hf_xcalloc(1, 900000);

	start_with(bench, (struct hf_http_server_spec){0});
	open_stream(bench, GET);
	bench->raw.paused = true;
	hf_raw_want(&bench->raw);
	for (int i = 0; i < 20 && hf_exchange_write(bench->stream, big, 900000); i++)
		;
	hf_raw_close(&bench->raw);
	while (bench->closed == 0)
		hf_test_loop_run(&bench->t);
	assert_int_equal(hf_http_server_connections(bench->server), 0);
	free(big);
}

static void an_aborted_stream_ends_without_its_last_chunk(void **state)
{
	struct bench *bench = *state;

	start_with(bench, (struct hf_http_server_spec){0});
	open_stream(bench, GET);
	write_text(bench, "half");
	hf_raw_expect(&bench->raw, "half");
	hf_exchange_abort(bench->stream);
	hf_raw_expect_eof(&bench->raw);
	assert_null(strstr(bench->raw.in.data, "0\r\n\r\n"));
	assert_int_equal(bench->closed, 0);
}

static void destroying_the_server_closes_streams(void **state)
{
	struct bench *bench = *state;

	start_with(bench, (struct hf_http_server_spec){0});
	open_stream(bench, GET);
	write_text(bench, "x");
	bench->server = hf_http_server_destroy(bench->server);
	assert_int_equal(bench->closed, 1);
	hf_raw_expect_eof(&bench->raw);
}

static void a_drained_callback_may_destroy_the_server(void **state)
{
	struct bench *bench = *state;
	char bytes[1500] = {0};

	start_with(bench, (struct hf_http_server_spec){.stream_bytes_max = 2000});
	bench->destroy_on_drained = true;
	open_stream(bench, GET);
	assert_true(hf_exchange_write(bench->stream, bytes, 1500));
	assert_false(hf_exchange_write(bench->stream, bytes, 1500));
	while (bench->server)
		hf_test_loop_run(&bench->t);
	assert_int_equal(bench->closed, 1);
	hf_raw_expect_eof(&bench->raw);
}

static void an_idle_stream_outlives_the_idle_timeout(void **state)
{
	struct bench *bench = *state;
	struct hf_raw other;

	start_with(bench, (struct hf_http_server_spec){.idle_timeout_s = 1});
	open_stream(bench, GET);
	/* The server closes another connection without traffic after a second. The stream without
	 * traffic stays open. */
	hf_raw_open(&other, &bench->t, hf_http_server_port(bench->server));
	hf_raw_expect_eof(&other);
	hf_raw_close(&other);
	write_text(bench, "still here");
	hf_raw_expect(&bench->raw, "still here");
}

/* --- many watches at a time --- */

#define WATCHERS 200

struct crowd {
	struct bench *bench;
	struct hf_exchange *streams[WATCHERS];
	size_t count, closed;
};

static struct crowd crowd;

static void on_crowd_closed(void *arg, struct hf_exchange *ex)
{
	crowd.closed++;
	if (crowd.closed == WATCHERS)
		hf_loop_stop(crowd.bench->t.loop);
}

static void on_crowd(void *arg, struct hf_exchange *ex)
{
	hf_exchange_on_closed(ex, on_crowd_closed, NULL);
	hf_exchange_begin(ex, 200, NULL);
	crowd.streams[crowd.count++] = ex;
}

static void two_hundred_watchers_each_get_every_event_and_may_leave_at_once(void **state)
{
	struct bench *bench = *state;
	struct hf_raw *raws = hf_xcalloc(WATCHERS, sizeof(*raws));

	memset(&crowd, 0, sizeof(crowd));
	crowd.bench = bench;
	start_with(bench, (struct hf_http_server_spec){.handler = on_crowd});
	for (int i = 0; i < WATCHERS; i++) {
		hf_raw_open(&raws[i], &bench->t, hf_http_server_port(bench->server));
		hf_raw_say(&raws[i], GET);
	}
	for (int i = 0; i < WATCHERS; i++)
		hf_raw_expect(&raws[i], "\r\n\r\n");
	assert_int_equal(crowd.count, WATCHERS);
	for (int event = 0; event < 3; event++) {
		for (int i = 0; i < WATCHERS; i++)
			assert_true(hf_exchange_write(crowd.streams[i], &"abc"[event], 1));
	}
	for (int i = 0; i < WATCHERS; i++)
		hf_raw_expect(&raws[i], "3\r\nabc\r\n");
	for (int i = 0; i < WATCHERS; i++)
		hf_raw_close(&raws[i]);
	while (crowd.closed < WATCHERS)
		hf_test_loop_run(&bench->t);
	assert_int_equal(bench->server->live, 0);
	free(raws);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(each_write_arrives_at_once_as_a_chunk),
		UNIT(all_written_bytes_are_sent_after_finish),
		UNIT(the_connection_is_good_for_more_after_a_stream),
		UNIT(a_client_of_http_1_0_gets_the_bytes_and_an_end),
		UNIT(a_head_request_ends_the_stream),
		UNIT(a_slow_client_is_pushed_back_on_and_loses_nothing),
		UNIT(a_write_past_the_limit_takes_nothing),
		UNIT(a_client_that_leaves_a_quiet_stream_is_noticed),
		UNIT(a_client_that_leaves_while_much_is_unsent_is_noticed),
		UNIT(an_aborted_stream_ends_without_its_last_chunk),
		UNIT(destroying_the_server_closes_streams),
		UNIT(a_drained_callback_may_destroy_the_server),
		UNIT(an_idle_stream_outlives_the_idle_timeout),
		UNIT(two_hundred_watchers_each_get_every_event_and_may_leave_at_once),
	};
	return cmocka_run_group_tests_name("exchange", tests, NULL, NULL);
}
