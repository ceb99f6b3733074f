/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/apiserver_internal.h"

#include "base/str.h"
#include "store/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Responses: JSON, failures as a Status in an API server's words, Warning headers; and the parsing
 * of common query parameters. */

#define JSON_TYPE "application/json"
/* Limit of one Warning header; upstream also cuts longer warnings. */
#define WARNING_BYTES_MAX 1024

/* Sends the text in sb and takes over its memory. If the text exceeded the limit of sb, sends a
 * 413 instead. */
static void answer_text(struct hf_exchange *ex, int status, struct hf_strbuf *sb)
{
	hf_strbuf_addch(sb, '\n');
	if (sb->full) {
		hf_apiserver_fail(
			ex, HF_E_TOO_LARGE,
			"the answer is larger than %zu bytes: ask for less, or in pages (limit)",
			HF_APISERVER_LIST_BYTES_MAX);
		return;
	}
	hf_exchange_add_header(ex, "Cache-Control", "no-cache, private");
	hf_exchange_respond_take(ex, status, JSON_TYPE, sb);
}

void hf_apiserver_answer_json(struct hf_exchange *ex, int status, const struct hf_json *value)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_APISERVER_LIST_BYTES_MAX);

	hf_json_write(value, HF_JSON_COMPACT, &sb);
	answer_text(ex, status, &sb);
}

void hf_apiserver_answer_doc(struct hf_exchange *ex, int status, struct hf_doc *doc)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_APISERVER_LIST_BYTES_MAX);

	hf_apiserver_add_doc(&sb, doc);
	answer_text(ex, status, &sb);
}

void hf_apiserver_add_doc(struct hf_strbuf *sb, struct hf_doc *doc)
{
	size_t len;
	const char *text = hf_doc_text(doc, &len);

	hf_strbuf_add(sb, text, len);
}

static void fail_status(struct hf_exchange *ex, int code, struct hf_json *status)
{
	hf_apiserver_answer_json(ex, hf_code_http(code), status);
	hf_json_unref(status);
}

void hf_apiserver_fail(struct hf_exchange *ex, int code, const char *fmt, ...)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(8192);
	struct hf_status_args args = {.code = code};
	va_list ap;

	va_start(ap, fmt);
	hf_strbuf_vaddf(&sb, fmt, ap);
	va_end(ap);
	args.message = sb.data;
	fail_status(ex, code, hf_status_failure(&args));
}

void hf_apiserver_fail_err(struct hf_exchange *ex, const struct hf_error *err)
{
	hf_apiserver_fail(ex, err->code, "%s", err->text);
}

void hf_apiserver_no_such_path(struct hf_exchange *ex)
{
	hf_apiserver_fail(ex, HF_E_NOT_FOUND, "the server could not find the requested resource");
}

void hf_apiserver_fail_reply(struct hf_exchange *ex, const struct hf_reply *reply)
{
	if (reply->retry_after > 0) {
		char text[24];
		snprintf(text, sizeof(text), "%" PRId64,
			 (reply->retry_after + HF_SECOND - 1) / HF_SECOND);
		hf_exchange_add_header(ex, "Retry-After", text);
	}
	for (size_t i = 0; i < reply->n_warnings; i++)
		hf_apiserver_warn(ex, reply->warnings[i]);
	if (reply->object != NULL)
		hf_apiserver_answer_doc(ex, hf_code_http(reply->code), reply->object);
	else
		hf_apiserver_fail(ex, reply->code, "%s", reply->message);
}

/* Code 299 is "miscellaneous persistent warning" of RFC 7234; the text must be a quoted string. */
void hf_apiserver_warn(struct hf_exchange *ex, const char *text)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(WARNING_BYTES_MAX);
	size_t room = WARNING_BYTES_MAX - strlen("299 - \"\\\"");

	hf_strbuf_addstr(&sb, "299 - \"");
	for (; *text != '\0' && sb.len < room; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\')
			hf_strbuf_addch(&sb, '\\');
		hf_strbuf_addch(&sb, c < 0x20 || c == 0x7f ? ' ' : *text);
	}
	hf_strbuf_addch(&sb, '"');
	hf_exchange_add_header(ex, "Warning", sb.data);
}

bool hf_apiserver_query_true(const struct hf_exchange *ex, const char *name)
{
	const char *value = hf_exchange_query(ex, name);

	return value != NULL && !hf_streq(value, "false") && !hf_streq(value, "0") &&
	       !hf_streq(value, "False");
}

bool hf_apiserver_query_i64(struct hf_exchange *ex, const char *name, int64_t absent,
			    int64_t *ret_value)
{
	const char *value = hf_exchange_query(ex, name);

	*ret_value = absent;
	if (hf_str_is_empty(value))
		return true;
	if (hf_str_to_i64(value, 0, INT64_MAX, ret_value, NULL) == 0)
		return true;
	hf_apiserver_fail(ex, HF_E_BAD_REQUEST,
			  "the query parameter %s must be a number of 0 or more", name);
	return false;
}
