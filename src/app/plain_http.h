/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_PLAIN_HTTP_H
#define HF_APP_PLAIN_HTTP_H

#include "base/strbuf.h"
#include "http/server.h"
#include "loop/loop.h"

/* Read-only text pages over plain HTTP, for the operator and the agent. */

#define HF_PLAIN_TEXT "text/plain; charset=utf-8"
#define HF_PLAIN_METRICS "text/plain; version=0.0.4; charset=utf-8"

/* Listen on an address such as ":8081", "localhost:8081" or "127.0.0.1:0". "0" or "" switches HTTP
 * off: then *ret_server stays NULL. */
int hf_plain_listen(struct hf_loop *loop, const char *address, hf_exchange_fn handler, void *arg,
		    struct hf_http_server **ret_server, struct hf_error *err) HF_MUST_CHECK;
/* False: the method is neither GET nor HEAD, and the request was answered with 405. */
bool hf_plain_begin(struct hf_exchange *ex);
void hf_plain_answer(struct hf_exchange *ex, int status, const char *text);
/* Answer 200 with the text, or 500 if the text is larger than its limit. Takes over the memory of
 * the text. */
void hf_plain_answer_take(struct hf_exchange *ex, const char *type, struct hf_strbuf *text);
/* Answer /readyz.  code 0: ready, and err's text is a note or "".  Else: not ready, for the reason in
 * err. */
void hf_plain_answer_ready(struct hf_exchange *ex, int code, const struct hf_error *err);

#endif
