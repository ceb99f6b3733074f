/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Helpers for servers that answer GET requests over plain HTTP. */
#include "app/plain_http.h"

#include "app/operator_flags.h"
#include "base/str.h"

#include <string.h>

int hf_plain_listen(struct hf_loop *loop, const char *address, hf_exchange_fn handler, void *arg,
		    struct hf_http_server **ret_server, struct hf_error *err)
{
	struct hf_http_server_spec spec = {.handler = handler, .arg = arg};
	char host[HF_HOST_BYTES_MAX];
	int rc;

	if (hf_str_is_empty(address) || hf_streq(address, "0"))
		return 0;
	rc = hf_bind_address_parse(address, host, &spec.port, err);
	if (rc != 0)
		return rc;
	spec.address = host;
	rc = hf_http_server_create_at(loop, &spec, ret_server, err);
	return rc == 0 ? 0 : hf_error_wrap(err, "cannot listen on '%s'", address);
}

void hf_plain_answer(struct hf_exchange *ex, int status, const char *text)
{
	hf_exchange_respond(ex, status, HF_PLAIN_TEXT, text, strlen(text));
}

bool hf_plain_begin(struct hf_exchange *ex)
{
	const char *method = hf_exchange_method(ex);

	if (hf_streq(method, "GET") || hf_streq(method, "HEAD"))
		return true;
	hf_plain_answer(ex, 405, "only GET and HEAD are allowed\n");
	return false;
}

void hf_plain_answer_take(struct hf_exchange *ex, const char *type, struct hf_strbuf *text)
{
	if (text->full)
		hf_plain_answer(ex, 500, "the response is larger than its limit\n");
	else
		hf_exchange_respond_take(ex, 200, type, text);
}

void hf_plain_answer_ready(struct hf_exchange *ex, int code, const struct hf_error *err)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(2 * HF_ERROR_TEXT_MAX);

	if (code == 0)
		hf_strbuf_addf(&text, "ok%s%s\n", err->text[0] != '\0' ? "; " : "", err->text);
	else
		hf_strbuf_addf(&text, "not ready: %s\n", err->text);
	hf_plain_answer(ex, code == 0 ? 200 : 503, text.data);
}
