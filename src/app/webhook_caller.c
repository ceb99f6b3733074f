/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/webhook_caller.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "ctl/backoff.h"
#include "http/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DELAY_FIRST HF_SECOND
#define DELAY_MAX (30 * HF_SECOND)
#define DELAY_JITTER_PERCENT 20
/* The body of an answer is not read. */
#define ANSWER_BYTES_MAX ((size_t)64 << 10)

struct hf_webhook_caller {
	struct hf_loop *loop;
	char *token;
	struct hf_rng rng;
	struct hf_webhooks webhooks;
};

struct hf_webhook_call {
	struct hf_webhook_caller *caller;
	/* A server of its own; NULL: the URL cannot be used. */
	struct hf_http_client *client;
	struct hf_timer *timer; /* of the next attempt */
	struct hf_backoff backoff;
	char *target, *key_header, *body;
	unsigned attempts;
	unsigned tried;
	/* an attempt was sent and not answered, so the server may perform it */
	bool unsure;
	char message[HF_ERROR_TEXT_MAX];
	hf_webhook_fn done;
	void *done_arg;
};

static void free_call(struct hf_webhook_call *call)
{
	hf_http_client_destroy(call->client);
	hf_timer_destroy(call->timer);
	free(call->target);
	free(call->key_header);
	free(call->body);
	free(call);
}

static void end_call(struct hf_webhook_call *call, int code)
{
	char message[HF_ERROR_TEXT_MAX + 32];
	const struct hf_webhook_result result = {.code = code, .message = message};

	if (call->tried > 1)
		snprintf(message, sizeof(message), "%s (attempt %u)", call->message, call->tried);
	else
		snprintf(message, sizeof(message), "%s", call->message);
	call->done(call->done_arg, &result);
	free_call(call);
}

/* Of an answer only the status counts: its body may be too long or break off. */
static bool is_answered(const struct hf_http_result *result)
{
	return result->status >= 200;
}

/* The server asks for another attempt, or has a problem that may end. */
static bool may_end(const struct hf_http_result *result)
{
	return !is_answered(result) ? !result->permanent
				    : result->status == 408 || result->status == 425 ||
					      result->status == 429 || result->status >= 500;
}

static void on_answer(void *arg, const struct hf_http_result *result)
{
	struct hf_webhook_call *call = arg;
	bool again = may_end(result) && call->tried < call->attempts;

	if (is_answered(result))
		snprintf(call->message, sizeof(call->message), "HTTP %d", result->status);
	else
		snprintf(call->message, sizeof(call->message), "%s", result->err->text);
	/* A gateway that gives up does not know either. */
	call->unsure |= is_answered(result) ? result->status == 502 || result->status == 504
					    : result->code != HF_E_UNAVAILABLE;
	if (is_answered(result) && result->status / 100 == 2)
		end_call(call, 0);
	else if (again)
		hf_timer_arm(call->timer, hf_backoff_next(&call->backoff, &call->caller->rng));
	else
		end_call(call, call->unsure ? HF_E_TIMEOUT : HF_E_UNAVAILABLE);
}

static void try_call(void *arg)
{
	struct hf_webhook_call *call = arg;
	const char *const headers[] = {call->key_header, NULL};
	const struct hf_http_request request = {
		.method = "POST",
		.target = call->target,
		.headers = headers,
		.body = call->body,
		.body_len = strlen(call->body),
		.response_bytes_max = ANSWER_BYTES_MAX,
		.on_done = on_answer,
		.arg = call,
	};
	struct hf_error err;

	if (call->client == NULL) {
		end_call(call, HF_E_INVALID);
		return;
	}
	call->tried++;
	if (hf_http_client_send(call->client, &request, NULL, &err) == 0)
		return;
	snprintf(call->message, sizeof(call->message), "%s", err.text);
	end_call(call, HF_E_UNAVAILABLE);
}

/* Splits the URL before its path. A URL without a path has the path "/". */
static void split_url(const char *url, char **ret_base, char **ret_target)
{
	const char *host = strstr(url, "://");
	size_t base = host == NULL ? strlen(url) : (size_t)(host + 3 - url);

	base += strcspn(url + base, "/?");
	*ret_base = hf_xstrndup(url, base);
	*ret_target = hf_xasprintf("%s%s", url[base] == '/' ? "" : "/", url + base);
}

static struct hf_webhook_call *begin_call(void *arg, const struct hf_webhook *webhook,
					  hf_webhook_fn done, void *done_arg)
{
	struct hf_webhook_caller *caller = arg;
	struct hf_webhook_call *call = hf_xcalloc(1, sizeof(*call));
	HF_AUTOFREE char *base = NULL;
	struct hf_http_client_spec spec = {.in_flight_max = 1,
					   .timeout = webhook->timeout,
					   .connect_timeout = webhook->timeout};
	struct hf_error err;

	*call = (struct hf_webhook_call){
		.caller = caller,
		.timer = hf_timer_create(caller->loop, try_call, call),
		.backoff = HF_BACKOFF_INIT(DELAY_FIRST, DELAY_MAX, DELAY_JITTER_PERCENT),
		.key_header = hf_xasprintf("Idempotency-Key: %s", webhook->key),
		.body = hf_xstrdup(webhook->body),
		.attempts = webhook->attempts,
		.done = done,
		.done_arg = done_arg,
	};
	split_url(webhook->url, &base, &call->target);
	spec.base_url = base;
	if (hf_http_client_create(caller->loop, &spec, &call->client, &err) == 0)
		hf_http_client_set_bearer(call->client, caller->token);
	else
		snprintf(call->message, sizeof(call->message), "%s", err.text);
	hf_timer_arm(call->timer, 0);
	return call;
}

struct hf_webhook_caller *hf_webhook_caller_create(struct hf_loop *loop, const char *token,
						   uint64_t seed)
{
	struct hf_webhook_caller *caller = hf_xcalloc(1, sizeof(*caller));

	caller->loop = loop;
	caller->token = token == NULL ? NULL : hf_xstrdup(token);
	hf_rng_init(&caller->rng, seed);
	caller->webhooks =
		(struct hf_webhooks){.arg = caller, .call = begin_call, .cancel = free_call};
	return caller;
}

struct hf_webhook_caller *hf_webhook_caller_destroy(struct hf_webhook_caller *caller)
{
	if (caller == NULL)
		return NULL;
	free(caller->token);
	free(caller);
	return NULL;
}

const struct hf_webhooks *hf_webhook_caller_webhooks(const struct hf_webhook_caller *caller)
{
	return &caller->webhooks;
}
