/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CTL_WEBHOOK_H
#define HF_CTL_WEBHOOK_H

#include "base/time.h"

/*
 * Webhooks: requests of a controller to a server that is no API server. The program makes them
 * (app/webhook_caller.h); tests have a double.
 *
 * A call is repeated after a failure that may end by itself. Every attempt has the same key, so that the server can
 * perform the call once. It ends in one of two ways: `done` is called, never from inside `call`, or the caller cancels it.
 */

struct hf_webhook {
	const char *url;   /* http:// or https:// */
	const char *key;   /* of header Idempotency-Key */
	const char *body;  /* JSON */
	hf_time timeout;   /* of each attempt */
	unsigned attempts; /* how often the call is tried at most; at least 1 */
};

struct hf_webhook_result {
	/* 0: the server has accepted the call (2xx). HF_E_TIMEOUT: no attempt was accepted, and whether the server performs
	 * one of them is unknown. Any other code: the server does not perform the call. */
	int code;
	const char *message; /* such as "HTTP 202"; valid until `done` returns */
};
typedef void (*hf_webhook_fn)(void *arg, const struct hf_webhook_result *result);

struct hf_webhook_call;
struct hf_webhooks {
	void *arg;
	/* Texts are copied. Never NULL. */
	struct hf_webhook_call *(*call)(void *arg, const struct hf_webhook *webhook,
					hf_webhook_fn done, void *done_arg);
	/* Ends a call whose `done` was not called yet. The server may have seen an attempt. */
	void (*cancel)(struct hf_webhook_call *call);
};

#endif
