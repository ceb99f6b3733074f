/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Sends answers: headers, JSON, texts and errors, and counts them. */
#include "page/page_internal.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>

#define JSON_TYPE "application/json"
#define ERROR_BYTES_MAX 2048

void hf_page_add_headers(struct hf_exchange *ex)
{
	hf_exchange_add_header(ex, "Content-Security-Policy",
			       "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
			       "form-action 'self'; object-src 'none'");
	hf_exchange_add_header(ex, "X-Content-Type-Options", "nosniff");
	hf_exchange_add_header(ex, "Referrer-Policy", "no-referrer");
	hf_exchange_add_header(ex, "Cross-Origin-Resource-Policy", "same-origin");
}

void hf_page_count(const struct hf_page *page, enum hf_page_route route, int status)
{
	static const char *const names[] = {
		[HF_PAGE_NOTHING] = "unknown",   [HF_PAGE_INDEX] = "index",
		[HF_PAGE_ASSET] = "asset",       [HF_PAGE_HEALTH] = "healthz",
		[HF_PAGE_SESSION] = "session",   [HF_PAGE_LOGIN] = "login",
		[HF_PAGE_LOGOUT] = "logout",     [HF_PAGE_JOBS] = "jobs",
		[HF_PAGE_JOB] = "job",           [HF_PAGE_JOB_YAML] = "yaml",
		[HF_PAGE_JOB_RANKS] = "ranks",   [HF_PAGE_JOB_LOG] = "log",
		[HF_PAGE_JOB_ACTION] = "action", [HF_PAGE_NODES] = "nodes",
		[HF_PAGE_NODE] = "node",         [HF_PAGE_RECOVERY] = "recovery",
		[HF_PAGE_EVENTS] = "events",
	};
	char code[16];

	if (page->metrics.requests == NULL)
		return;
	snprintf(code, sizeof(code), "%d", status);
	hf_family_add(page->metrics.requests, 1, names[route], code, NULL);
}

static void count_answer(const struct hf_page *page, const struct hf_exchange *ex, int status)
{
	struct hf_page_place place;

	hf_page_route(hf_exchange_path(ex), &place);
	hf_page_count(page, place.route, status);
}

void hf_page_add_no_store(struct hf_exchange *ex)
{
	hf_page_add_headers(ex);
	hf_exchange_add_header(ex, "Cache-Control", "no-store");
}

void hf_page_answer_text(struct hf_page *page, struct hf_exchange *ex, const char *type,
			 struct hf_strbuf *text)
{
	if (text->full) {
		hf_page_answer_error(page, ex, 500, "the answer is larger than its limit");
		return;
	}
	count_answer(page, ex, 200);
	hf_page_add_no_store(ex);
	hf_exchange_respond_take(ex, 200, type, text);
}

void hf_page_answer_json(struct hf_page *page, struct hf_exchange *ex, int status,
			 const struct hf_json *object)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_PAGE_ANSWER_BYTES_MAX);

	hf_json_write(object, HF_JSON_COMPACT, &text);
	if (text.full) {
		hf_page_answer_error(page, ex, 500, "the answer is larger than its limit");
		return;
	}
	count_answer(page, ex, status);
	hf_page_add_no_store(ex);
	hf_exchange_respond_take(ex, status, JSON_TYPE, &text);
}

void hf_page_answer_error(struct hf_page *page, struct hf_exchange *ex, int status, const char *fmt,
			  ...)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(ERROR_BYTES_MAX);
	HF_AUTO_STRBUF body = HF_STRBUF_INIT(2 * ERROR_BYTES_MAX + 64);
	HF_AUTO_JSON object = hf_json_object();
	va_list ap;

	va_start(ap, fmt);
	hf_strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	hf_json_set_str(object, "error", text.data);
	hf_json_write(object, HF_JSON_COMPACT, &body);
	count_answer(page, ex, status);
	hf_page_add_no_store(ex);
	hf_exchange_respond(ex, status, JSON_TYPE, body.data, body.len);
}
