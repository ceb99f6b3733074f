/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Errors: sets and wraps struct hf_error, and translates error codes to HTTP statuses and
 * Kubernetes reasons.
 *
 * No function here allocates, because "out of memory" must be reportable too. The text therefore
 * has a fixed size, and every function that fills it marks a cut text with "..." (mark_cut).
 */
#include "base/error.h"

#include "base/str.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define DOTS "..."

/* Shortens a text that did not fit. The result ends with "..." and holds whole UTF-8 characters
 * only. */
static void mark_cut(char text[HF_ERROR_TEXT_MAX])
{
	size_t end = HF_ERROR_TEXT_MAX - sizeof(DOTS);

	while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	memcpy(text + end, DOTS, sizeof(DOTS));
}

HF_PRINTF(2, 0)
static void print_text(char text[HF_ERROR_TEXT_MAX], const char *fmt, va_list ap)
{
	int n = vsnprintf(text, HF_ERROR_TEXT_MAX, fmt, ap);

	if (n < 0)
		text[0] = '\0';
	else if (n >= HF_ERROR_TEXT_MAX)
		mark_cut(text);
}

int hf_error_vset(struct hf_error *err, int code, const char *fmt, va_list ap)
{
	char text[HF_ERROR_TEXT_MAX];

	hf_assert(code != HF_OK);
	if (!err)
		return code;
	/* Format into a copy: err->text may be one of the arguments. */
	print_text(text, fmt, ap);
	err->code = code;
	memcpy(err->text, text, strlen(text) + 1);
	return code;
}

int(hf_error_set)(struct hf_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	hf_error_vset(err, code, fmt, ap);
	va_end(ap);
	return code;
}

/* Writes "<front>: <behind>" and cuts a text that is too long. */
static void join_texts(char ret_text[HF_ERROR_TEXT_MAX], const char *front, const char *behind)
{
	int n = snprintf(ret_text, HF_ERROR_TEXT_MAX, "%s: %s", front, behind);

	if (n >= HF_ERROR_TEXT_MAX)
		mark_cut(ret_text);
}

int hf_error_errno(struct hf_error *err, int errnum, const char *fmt, ...)
{
	int code = errnum == ENOSPC || errnum == EDQUOT ? HF_E_NO_SPACE : HF_E_IO;
	char text[HF_ERROR_TEXT_MAX];
	char reason[128];
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	print_text(text, fmt, ap);
	va_end(ap);
	err->code = code;
	join_texts(err->text, text, strerror_r(errnum, reason, sizeof(reason)));
	return code;
}

int hf_error_wrap(struct hf_error *err, const char *fmt, ...)
{
	char front[HF_ERROR_TEXT_MAX];
	char behind[HF_ERROR_TEXT_MAX];
	va_list ap;

	if (!err)
		return HF_E_INTERNAL;
	/* A wrapped error is always a failure, even if the caller forgot to set a code. */
	if (err->code == HF_OK)
		err->code = HF_E_INTERNAL;
	/* Use copies of both halves: err->text may be one of the arguments. */
	va_start(ap, fmt);
	print_text(front, fmt, ap);
	va_end(ap);
	memcpy(behind, err->text, sizeof(behind));
	behind[sizeof(behind) - 1] = '\0';
	join_texts(err->text, front, behind);
	return err->code;
}

void hf_error_clear(struct hf_error *err)
{
	if (!err)
		return;
	err->code = HF_OK;
	err->text[0] = '\0';
}

/* The rows of HF_CODES, about twenty: a linear search is fast enough. If several codes share an
 * HTTP status, the first row wins in hf_code_from_http. */
static const struct code_row {
	int code;
	int http;
	const char *name;
	const char *reason;
} code_rows[] = {
#define X(name, value, http, reason) {(value), (http), #name, (reason)},
	HF_CODES(X)
#undef X
};

static const struct code_row *find_code_row(int code)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(code_rows); i++)
		if (code_rows[i].code == code)
			return &code_rows[i];
	return NULL;
}

const char *hf_code_name(int code)
{
	const struct code_row *row = find_code_row(code);

	if (code == HF_OK)
		return "OK";
	return row ? row->name : "UNKNOWN";
}

int hf_code_http(int code)
{
	const struct code_row *row = find_code_row(code);

	if (code == HF_OK)
		return 200;
	return row ? row->http : 500;
}

const char *hf_code_reason(int code)
{
	const struct code_row *row = find_code_row(code);

	if (code == HF_OK)
		return "";
	return row ? row->reason : "InternalError";
}

static int find_code_by_reason(const char *reason)
{
	/* Reasons of apimachinery that HF_CODES does not list. */
	static const struct {
		const char *reason;
		int code;
	} more[] = {
		{"Gone", HF_E_GONE},
		{"ServerTimeout", HF_E_TIMEOUT},
		{"StorageReadError", HF_E_INTERNAL},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(code_rows); i++)
		if (hf_streq(code_rows[i].reason, reason))
			return code_rows[i].code;
	for (size_t i = 0; i < HF_ARRAY_LEN(more); i++)
		if (hf_streq(more[i].reason, reason))
			return more[i].code;
	return HF_OK;
}

int hf_code_from_http(int http_status, const char *reason)
{
	int code;

	if (http_status >= 200 && http_status < 300)
		return HF_OK;
	/* A known reason outranks the status, as in client-go. */
	code = hf_str_is_empty(reason) ? HF_OK : find_code_by_reason(reason);
	if (code != HF_OK)
		return code;
	switch (http_status) {
	case 408: return HF_E_TIMEOUT;
	/* 409 without a reason is CONFLICT: EXISTS has the same status, but only the reason can
	 * tell. */
	case 409: return HF_E_CONFLICT;
	case 502: return HF_E_UNAVAILABLE;
	default: break;
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(code_rows); i++)
		if (code_rows[i].http == http_status)
			return code_rows[i].code;
	/* Unknown 4xx statuses are the client's fault; all others are the server's. */
	return http_status >= 400 && http_status < 500 ? HF_E_BAD_REQUEST : HF_E_INTERNAL;
}
