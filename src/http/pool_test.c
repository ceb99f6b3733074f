/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of the pool: connections that die unnoticed, retired pools, and certificates that cannot be
 * used. */
#include "harness/scripted_server.h"

#include "http/client_internal.h"

struct bench {
	struct hf_test_loop t;
	struct hf_scripted server;
	struct hf_http_client *client;
	bool silent;
	unsigned done;
	int code, status;
	bool permanent;
};

static void serve_request(void *arg, struct hf_scripted_peer *peer, HF_UNUSED const char *head,
			  HF_UNUSED const char *body)
{
	struct bench *bench = arg;

	if (!bench->silent)
		hf_scripted_answer(peer, "200 OK\r\nWarning: 1\r\nwarning: 2", "hello");
}

static void on_done(void *arg, const struct hf_http_result *result)
{
	struct bench *bench = arg;

	bench->done++;
	bench->code = result->code;
	bench->status = result->status;
	bench->permanent = result->permanent;
	if (result->status == 200) {
		assert_string_equal(hf_transfer_header_at(result->transfer, "Warning", 0), "1");
		assert_string_equal(hf_transfer_header_at(result->transfer, "Warning", 1), "2");
		assert_null(hf_transfer_header_at(result->transfer, "Warning", 2));
	}
	hf_loop_stop(bench->t.loop);
}

static void send_and_wait(struct bench *bench, hf_time timeout)
{
	const struct hf_http_request request = {.method = "GET",
						.target = "/",
						.timeout = timeout,
						.on_done = on_done,
						.arg = bench};
	unsigned before = bench->done;
	struct hf_error err = {0};

	assert_ok(hf_http_client_send(bench->client, &request, NULL, &err), &err);
	while (bench->done == before)
		hf_test_loop_run(&bench->t);
}

static void start_pair(struct bench *bench, const char *scheme, struct hf_http_client_spec spec)
{
	struct hf_error err = {0};
	char url[64];

	hf_scripted_open(&bench->server, bench->t.loop, serve_request, bench);
	snprintf(url, sizeof(url), "%s://127.0.0.1:%u", scheme, bench->server.port);
	spec.base_url = url;
	spec.proxy_url = "";
	assert_ok(hf_http_client_create(bench->t.loop, &spec, &bench->client, &err), &err);
}

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	hf_test_loop_init(&bench->t);
	bench->server.fd = -1;
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_http_client_destroy(bench->client);
	hf_scripted_shut(&bench->server);
	hf_test_loop_release(&bench->t);
	free(bench);
	return 0;
}

static void a_server_that_falls_silent_is_left_for_new_connections(void **state)
{
	struct bench *bench = *state;

	start_pair(bench, "http", (struct hf_http_client_spec){.silence_max = 20 * HF_MS});
	send_and_wait(bench, 0);
	assert_int_equal(bench->status, 200);
	const struct hf_http_pool *before = bench->client->pool;
	bench->silent = true;
	send_and_wait(bench, 50 * HF_MS);
	assert_int_equal(bench->code, HF_E_TIMEOUT);
	assert_ptr_not_equal(bench->client->pool, before);
	bench->silent = false;
	send_and_wait(bench, 0);
	assert_int_equal(bench->status, 200);
	assert_null(bench->client->retired); /* the retired pools are freed after their last
	                                      * transfer */
	assert_int_equal(bench->server.accepted, 2);
}

static void transfers_on_retired_connections_go_on(void **state)
{
	struct bench *bench = *state;
	const struct hf_http_request slow = {
		.method = "GET", .target = "/slow", .on_done = on_done, .arg = bench};
	struct hf_error err = {0};

	start_pair(bench, "http", (struct hf_http_client_spec){.silence_max = 20 * HF_MS});
	bench->silent = true;
	assert_ok(hf_http_client_send(bench->client, &slow, NULL, &err), &err);
	send_and_wait(bench, 50 * HF_MS);
	assert_int_equal(bench->code, HF_E_TIMEOUT);
	assert_non_null(bench->client->retired);
	/* The slow request is still on the retired connection, and gets its response there. */
	struct hf_scripted_peer *peer = bench->server.peers;
	while (peer->next)
		peer = peer->next;
	hf_scripted_answer(peer, "200 OK\r\nWarning: 1\r\nWarning: 2", "late");
	while (bench->done < 2)
		hf_test_loop_run(&bench->t);
	assert_int_equal(bench->code, 0);
	assert_int_equal(bench->status, 200);
}

static void a_slow_response_alone_is_not_silence(void **state)
{
	struct bench *bench = *state;

	start_pair(bench, "http", (struct hf_http_client_spec){0}); /* the default silence_max, ten
	                                                        * seconds */
	const struct hf_http_pool *before = bench->client->pool;
	bench->silent = true;
	send_and_wait(bench, 50 * HF_MS);
	assert_int_equal(bench->code, HF_E_TIMEOUT);
	assert_ptr_equal(bench->client->pool, before);
}

static void on_data(HF_UNUSED void *arg, HF_UNUSED struct hf_transfer *transfer,
		    HF_UNUSED const char *bytes, HF_UNUSED size_t len)
{
}

static void streams_have_connections_of_their_own_which_fall_silent_alone(void **state)
{
	struct bench *bench = *state;
	const struct hf_http_request stream = {.method = "GET",
					       .target = "/watch",
					       .stream = true,
					       .idle_timeout = 50 * HF_MS,
					       .on_data = on_data,
					       .on_done = on_done,
					       .arg = bench};
	struct hf_error err = {0};

	start_pair(bench, "http", (struct hf_http_client_spec){.silence_max = 20 * HF_MS});
	send_and_wait(bench, 0);
	const struct hf_http_pool *before = bench->client->pool;
	bench->silent = true;
	assert_ok(hf_http_client_send(bench->client, &stream, NULL, &err), &err);
	const struct hf_http_pool *streamed = bench->client->streamed;
	while (bench->done < 2)
		hf_test_loop_run(&bench->t);
	assert_int_equal(bench->code, HF_E_TIMEOUT);
	assert_ptr_not_equal(bench->client->streamed, streamed);
	assert_ptr_equal(bench->client->pool, before);
	bench->silent = false;
	send_and_wait(bench, 0);
	assert_int_equal(bench->server.accepted, 2);
	assert_null(bench->client->retired);
}

static void the_client_may_be_destroyed_with_old_connections_at_work(void **state)
{
	struct bench *bench = *state;
	const struct hf_http_request slow = {
		.method = "GET", .target = "/slow", .on_done = on_done, .arg = bench};
	struct hf_error err = {0};

	start_pair(bench, "http", (struct hf_http_client_spec){.silence_max = 20 * HF_MS});
	bench->silent = true;
	assert_ok(hf_http_client_send(bench->client, &slow, NULL, &err), &err);
	send_and_wait(bench, 50 * HF_MS);
	assert_non_null(bench->client->retired);
	bench->client = hf_http_client_destroy(bench->client);
	assert_int_equal(bench->done, 1);
}

static void a_certificate_that_cannot_be_used_is_a_permanent_failure(void **state)
{
	struct bench *bench = *state;

	start_pair(bench, "https",
		   (struct hf_http_client_spec){
			   .cert_pem = "none", .key_pem = "none", .insecure = true});
	send_and_wait(bench, 0);
	assert_int_equal(bench->code, HF_E_UNAVAILABLE);
	assert_true(bench->permanent);
}

int main(void)
{
#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		UNIT(a_server_that_falls_silent_is_left_for_new_connections),
		UNIT(transfers_on_retired_connections_go_on),
		UNIT(a_slow_response_alone_is_not_silence),
		UNIT(streams_have_connections_of_their_own_which_fall_silent_alone),
		UNIT(the_client_may_be_destroyed_with_old_connections_at_work),
		UNIT(a_certificate_that_cannot_be_used_is_a_permanent_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
