/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of error texts for a proxy that fails; client_test.c has one that works. */
#include "harness/listen.h"
#include "harness/real_loop.h"
#include "http/client.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNREACHED "the proxy cannot be reached: "

struct bench {
	struct hf_test_loop t;
	int code;
	char text[HF_ERROR_TEXT_MAX];
};

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	hf_test_loop_init(&bench->t);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_test_loop_release(&bench->t);
	free(bench);
	return 0;
}

static void on_done(void *arg, const struct hf_http_result *result)
{
	struct bench *bench = arg;

	bench->code = result->code;
	snprintf(bench->text, sizeof(bench->text), "%s", result->err->text);
	hf_loop_stop(bench->t.loop);
}

static void send_through_proxy(struct bench *bench, const char *server, const char *proxy,
			       hf_time connect_timeout)
{
	struct hf_http_client_spec spec = {
		.base_url = server, .proxy_url = proxy, .connect_timeout = connect_timeout};
	struct hf_http_request request = {
		.method = "GET", .target = "/x", .on_done = on_done, .arg = bench};
	struct hf_http_client *client;
	struct hf_error err = {0};

	assert_ok(hf_http_client_create(bench->t.loop, &spec, &client, &err), &err);
	assert_ok(hf_http_client_send(client, &request, NULL, &err), &err);
	hf_test_loop_run(&bench->t);
	hf_http_client_destroy(client);
}

static void a_missing_proxy_is_reported_as_the_proxy(void **state)
{
	static const char *const servers[] = {"http://far.example:81", "https://far.example:81"};
	static const char *const proxies[] = {"http://127.0.0.1", "http://u:secret@127.0.0.1",
					      "socks5h://127.0.0.1"};
	struct bench *bench = *state;
	char proxy[64], number[16];
	uint16_t port;
	int fd = hf_test_bind(&port);

	snprintf(number, sizeof(number), "%u", port);
	for (size_t i = 0; i < 2 * HF_ARRAY_LEN(proxies); i++) {
		snprintf(proxy, sizeof(proxy), "%s:%u", proxies[i / 2], port);
		send_through_proxy(bench, servers[i % 2], proxy, 0);
		assert_int_equal(bench->code, HF_E_UNAVAILABLE);
		assert_non_null(strstr(bench->text, UNREACHED));
		assert_non_null(strstr(bench->text, number));
		assert_null(strstr(bench->text, "secret"));
	}
	close(fd);
}

static void a_missing_server_is_not_reported_as_a_proxy(void **state)
{
	struct bench *bench = *state;
	char server[64];
	uint16_t port;
	int fd = hf_test_bind(&port);

	snprintf(server, sizeof(server), "http://127.0.0.1:%u", port);
	send_through_proxy(bench, server, "", 0);
	assert_int_equal(bench->code, HF_E_UNAVAILABLE);
	assert_null(strstr(bench->text, "proxy"));
	close(fd);
}

static void a_silent_proxy_counts_as_reached(void **state)
{
	struct bench *bench = *state;
	char proxy[64];
	uint16_t port;
	int fd = hf_test_bind(&port);

	/* The kernel accepts the connection; no program answers the CONNECT. */
	assert_int_equal(listen(fd, 4), 0);
	snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%u", port);
	send_through_proxy(bench, "https://far.example:81", proxy, 50 * HF_MS);
	assert_int_equal(bench->code, HF_E_UNAVAILABLE);
	assert_null(strstr(bench->text, UNREACHED));
	close(fd);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_missing_proxy_is_reported_as_the_proxy),
		UNIT(a_missing_server_is_not_reported_as_a_proxy),
		UNIT(a_silent_proxy_counts_as_reached),
	};

	return cmocka_run_group_tests_name("proxy", tests, NULL, NULL);
}
