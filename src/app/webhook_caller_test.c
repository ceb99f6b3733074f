/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/webhook_caller.h"

#include "harness/real_loop.h"
#include "harness/test.h"

#include "app/plain_http.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The caller calls a webhook, which is a server in this process. */

struct bench {
	struct hf_test_loop t;
	struct hf_timer *look;
	struct hf_http_server *server;
	struct hf_webhook_caller *caller;
	/* HTTP status of the answer to each request; -1: no answer */
	int answers[4];
	char *long_answer; /* body of each answer; NULL: a short one */
	size_t requests;
	char path[64], query[64], key[64], authorization[64], body[64];
	unsigned ends;
	int code;
	char message[HF_ERROR_TEXT_MAX];
};

static void stop_loop(void *arg)
{
	hf_loop_stop(arg);
}

static void keep(char *to, size_t size, const char *text)
{
	(void)snprintf(to, size, "%s", hf_str_or(text, "(none)"));
}

static void serve(void *arg, struct hf_exchange *ex)
{
	struct bench *bench = arg;
	int status = bench->answers[bench->requests++ % HF_ARRAY_LEN(bench->answers)];
	size_t len;

	assert_string_equal(hf_exchange_method(ex), "POST");
	assert_string_equal(hf_exchange_header(ex, "Content-Type"), "application/json");
	if (bench->requests > 1)
		assert_string_equal(hf_exchange_header(ex, "Idempotency-Key"), bench->key);
	keep(bench->path, sizeof(bench->path), hf_exchange_path(ex));
	keep(bench->query, sizeof(bench->query), hf_exchange_query(ex, "team"));
	keep(bench->key, sizeof(bench->key), hf_exchange_header(ex, "Idempotency-Key"));
	keep(bench->authorization, sizeof(bench->authorization),
	     hf_exchange_header(ex, "Authorization"));
	keep(bench->body, sizeof(bench->body), hf_exchange_body(ex, &len));
	if (status > 0 && bench->long_answer != NULL)
		hf_exchange_respond(ex, status, "text/html", bench->long_answer,
				    strlen(bench->long_answer));
	else if (status > 0)
		hf_exchange_respond(ex, status, "text/plain", "secret", 6);
}

static void note_end(void *arg, const struct hf_webhook_result *result)
{
	struct bench *bench = arg;

	bench->ends++;
	bench->code = result->code;
	keep(bench->message, sizeof(bench->message), result->message);
}

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));
	struct hf_error err;

	hf_test_loop_init(&bench->t);
	bench->look = hf_timer_create(bench->t.loop, stop_loop, bench->t.loop);
	bench->caller = hf_webhook_caller_create(bench->t.loop, "token\n", 7);
	assert_ok(hf_plain_listen(bench->t.loop, "127.0.0.1:0", serve, bench, &bench->server, &err),
		  &err);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_webhook_caller_destroy(bench->caller);
	hf_http_server_destroy(bench->server);
	hf_timer_destroy(bench->look);
	hf_test_loop_release(&bench->t);
	free(bench->long_answer);
	free(bench);
	return 0;
}

static struct hf_webhook_call *call(struct bench *bench, const char *url, unsigned attempts)
{
	const struct hf_webhook webhook = {.url = url,
					   .key = "uid-1",
					   .body = "{\"node\":\"n1\"}",
					   .timeout = HF_SECOND,
					   .attempts = attempts};
	const struct hf_webhooks *webhooks = hf_webhook_caller_webhooks(bench->caller);

	return webhooks->call(webhooks->arg, &webhook, note_end, bench);
}

static void run_until(struct bench *bench, const unsigned *count, unsigned wanted)
{
	hf_time since = hf_loop_mono(bench->t.loop);

	while (*count < wanted) {
		assert_true(hf_loop_mono(bench->t.loop) - since < HF_MINUTE);
		hf_timer_arm(bench->look, 10 * HF_MS);
		hf_test_loop_run(&bench->t);
	}
}

/* Calls the path of the server, and waits for the end of the call. */
static void call_path(struct bench *bench, const char *path, unsigned attempts)
{
	char url[96];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u%s",
		       (unsigned)hf_http_server_port(bench->server), path);
	(void)call(bench, url, attempts);
	assert_int_equal(bench->ends, 0); /* not from inside the call */
	run_until(bench, &bench->ends, 1);
}

static void assert_end(const struct bench *bench, int code, const char *message, size_t requests)
{
	assert_string_equal(bench->message, message);
	assert_int_equal(bench->code, code);
	assert_int_equal(bench->requests, requests);
	assert_int_equal(bench->ends, 1);
}

static void a_call_has_its_body_its_key_and_the_token(void **state)
{
	struct bench *bench = *state;

	bench->answers[0] = 202;
	call_path(bench, "/power/cycle?team=a", 3);
	assert_end(bench, 0, "HTTP 202", 1);
	assert_string_equal(bench->path, "/power/cycle");
	assert_string_equal(bench->query, "a");
	assert_string_equal(bench->key, "uid-1");
	assert_string_equal(bench->authorization, "Bearer token");
	assert_string_equal(bench->body, "{\"node\":\"n1\"}");
}

static void a_url_without_a_path_calls_the_root(void **state)
{
	struct bench *bench = *state;

	bench->answers[0] = 200;
	call_path(bench, "?team=b", 1);
	assert_end(bench, 0, "HTTP 200", 1);
	assert_string_equal(bench->path, "/");
	assert_string_equal(bench->query, "b");
}

static void a_busy_server_is_asked_again_with_the_same_key(void **state)
{
	struct bench *bench = *state;

	bench->answers[0] = 503;
	bench->answers[1] = 204;
	call_path(bench, "/", 3);
	assert_end(bench, 0, "HTTP 204 (attempt 2)", 2);
}

static void the_number_of_attempts_has_a_limit(void **state)
{
	struct bench *bench = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(bench->answers); i++)
		bench->answers[i] = 500;
	call_path(bench, "/", 2);
	assert_end(bench, HF_E_UNAVAILABLE, "HTTP 500 (attempt 2)", 2);
}

static void a_refusal_is_not_repeated(void **state)
{
	struct bench *bench = *state;

	bench->answers[0] = 403;
	call_path(bench, "/", 3);
	assert_end(bench, HF_E_UNAVAILABLE, "HTTP 403", 1);
}

static void a_redirection_is_not_followed(void **state)
{
	struct bench *bench = *state;

	bench->answers[0] = 302;
	call_path(bench, "/", 3);
	assert_end(bench, HF_E_UNAVAILABLE, "HTTP 302", 1);
}

static void without_an_answer_nothing_is_known(void **state)
{
	struct bench *bench = *state;

	bench->answers[0] = -1;
	bench->answers[1] = 503;
	call_path(bench, "/", 2);
	assert_end(bench, HF_E_TIMEOUT, "HTTP 503 (attempt 2)", 2);
}

static void a_gateway_that_gives_up_knows_nothing(void **state)
{
	struct bench *bench = *state;

	bench->answers[0] = 504;
	call_path(bench, "/", 1);
	assert_end(bench, HF_E_TIMEOUT, "HTTP 504", 1);
}

static void a_server_that_is_away_has_not_seen_the_call(void **state)
{
	struct bench *bench = *state;

	(void)call(bench, "http://127.0.0.1:1/x", 1);
	run_until(bench, &bench->ends, 1);
	assert_int_equal(bench->code, HF_E_UNAVAILABLE);
	assert_non_null(strstr(bench->message, "127.0.0.1"));
}

static void a_url_that_cannot_be_used_ends_the_call(void **state)
{
	struct bench *bench = *state;

	(void)call(bench, "http://", 3);
	run_until(bench, &bench->ends, 1);
	assert_int_equal(bench->code, HF_E_INVALID);
	assert_true(bench->message[0] != '\0');
	assert_int_equal(bench->requests, 0);
}

/* A portal may answer with a whole page. The status says whether the call is accepted. */
static void a_call_that_is_answered_at_length_is_not_repeated(void **state)
{
	struct bench *bench = *state;
	const size_t len = (size_t)1 << 20;

	bench->long_answer = hf_xcalloc(1, len + 1);
	memset(bench->long_answer, 'x', len);
	bench->answers[0] = 200;
	call_path(bench, "/", 3);
	assert_end(bench, 0, "HTTP 200", 1);
}

static void a_cancelled_call_tells_nothing(void **state)
{
	struct bench *bench = *state;
	const struct hf_webhooks *webhooks = hf_webhook_caller_webhooks(bench->caller);
	unsigned requests = 0;
	char url[64];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u",
		       (unsigned)hf_http_server_port(bench->server));
	webhooks->cancel(call(bench, url, 3)); /* before the first attempt */
	bench->answers[0] = -1;
	struct hf_webhook_call *sent = call(bench, url, 3);

	while (requests == 0) {
		hf_timer_arm(bench->look, 10 * HF_MS);
		hf_test_loop_run(&bench->t);
		requests = (unsigned)bench->requests;
	}
	webhooks->cancel(sent);
	hf_timer_arm(bench->look, 50 * HF_MS);
	hf_test_loop_run(&bench->t);
	assert_int_equal(bench->ends, 0);
	assert_int_equal(bench->requests, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_call_has_its_body_its_key_and_the_token),
		T(a_url_without_a_path_calls_the_root),
		T(a_busy_server_is_asked_again_with_the_same_key),
		T(the_number_of_attempts_has_a_limit),
		T(a_refusal_is_not_repeated),
		T(a_redirection_is_not_followed),
		T(without_an_answer_nothing_is_known),
		T(a_gateway_that_gives_up_knows_nothing),
		T(a_server_that_is_away_has_not_seen_the_call),
		T(a_url_that_cannot_be_used_ends_the_call),
		T(a_call_that_is_answered_at_length_is_not_repeated),
		T(a_cancelled_call_tells_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
