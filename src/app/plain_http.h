/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_PLAIN_HTTP_H
#define HF_APP_PLAIN_HTTP_H

#include "base/strbuf.h"
#include "http/server.h"
#include "loop/loop.h"

/* What operator and agent have in common where they answer over plain HTTP: text, to be read only. */

#define HF_PLAIN_TEXT "text/plain; charset=utf-8"
#define HF_PLAIN_METRICS "text/plain; version=0.0.4; charset=utf-8"

/* ":8081", "localhost:8081", "127.0.0.1:0"; "0" or "": nowhere, and the server stays NULL. */
int hf_plain_listen(struct hf_loop *loop, const char *address, hf_exchange_fn handler, void *arg,
		    struct hf_http_server **ret_server, struct hf_error *err) HF_MUST_CHECK;
/* False: it is neither GET nor HEAD, and was refused. */
bool hf_plain_begin(struct hf_exchange *ex);
void hf_plain_answer(struct hf_exchange *ex, int status, const char *text);
/* 200, or 500 where there was more than fits. */
void hf_plain_answer_take(struct hf_exchange *ex, const char *type, struct hf_strbuf *text);
/* To /readyz: code 0 is ready, and the text a note or ""; else it is what is missing. */
void hf_plain_answer_ready(struct hf_exchange *ex, int code, const struct hf_error *err);

#endif
