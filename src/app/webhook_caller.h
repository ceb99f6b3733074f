/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_WEBHOOK_CALLER_H
#define HF_APP_WEBHOOK_CALLER_H

#include "ctl/webhook.h"
#include "loop/loop.h"

#include <stdint.h>

/*
 * Calls webhooks by HTTP POST. An attempt is followed by another one if the server cannot be reached, does not answer in
 * time, or answers 408, 425, 429 or 5xx. The delays are 1 s, 2 s, 4 s, … up to 30 s, with jitter. Redirections are not
 * followed. Of an answer only the status is told: its body may hold secrets of the server.
 */
struct hf_webhook_caller;

/* token: of header "Authorization: Bearer TOKEN", copied; NULL or "": none. seed: of the jitter. */
struct hf_webhook_caller *hf_webhook_caller_create(struct hf_loop *loop, const char *token,
						   uint64_t seed);
/* No call may be under way. Accepts NULL; returns NULL. */
struct hf_webhook_caller *hf_webhook_caller_destroy(struct hf_webhook_caller *caller);

/* What controllers use; valid as long as the caller. */
const struct hf_webhooks *hf_webhook_caller_webhooks(const struct hf_webhook_caller *caller);

#endif
