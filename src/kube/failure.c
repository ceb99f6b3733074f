/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Reads failed responses of an API server: the Status in the body, Retry-After, Date and Warning
 * headers. For a response that is not from an API server it writes a short description. */
#include "kube/kube_internal.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Parses a date in the only form that servers send (IMF-fixdate of RFC 9110): "Sun, 06 Nov 1994
 * 08:49:37 GMT". */
hf_time hf_kube_date_parse(const char *text)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	static const char shape[] = "aaa, 00 aaa 0000 00:00:00 GMT";
	struct tm tm = {0};
	const char *month;

	if (text == NULL || strlen(text) != sizeof(shape) - 1)
		return HF_TIME_NONE;
	for (size_t i = 0; shape[i] != '\0'; i++) {
		char c = text[i];
		bool fits = shape[i] == 'a'   ? hf_ascii_is_letter(c)
			    : shape[i] == '0' ? hf_ascii_is_digit(c)
					      : c == shape[i];
		if (!fits)
			return HF_TIME_NONE;
	}
#define TWO(at) ((text[at] - '0') * 10 + (text[(at) + 1] - '0'))
	month = memmem(months, sizeof(months) - 1, text + 8, 3);
	if (month == NULL || (month - months) % 3 != 0)
		return HF_TIME_NONE;
	tm.tm_mday = TWO(5);
	tm.tm_mon = (int)(month - months) / 3;
	tm.tm_year = TWO(12) * 100 + TWO(14) - 1900;
	tm.tm_hour = TWO(17);
	tm.tm_min = TWO(20);
	tm.tm_sec = TWO(23);
#undef TWO
	/* hf_time can hold these years (base/time.h). */
	if (tm.tm_year < 1678 - 1900 || tm.tm_year > 2261 - 1900)
		return HF_TIME_NONE;
	return (hf_time)timegm(&tm) * HF_SECOND;
}

#define RETRY_AFTER_S_MAX 86400

hf_time hf_kube_retry_after_parse(const char *text, hf_time now)
{
	int64_t seconds = 0;
	hf_time date;

	if (text == NULL)
		return 0;
	if (hf_str_to_i64(text, 0, RETRY_AFTER_S_MAX, &seconds, NULL) == 0)
		return seconds * HF_SECOND;
	date = hf_kube_date_parse(text);
	if (date == HF_TIME_NONE || now == HF_TIME_NONE || date <= now)
		return 0;
	return date - now < RETRY_AFTER_S_MAX * HF_SECOND ? date - now
							  : RETRY_AFTER_S_MAX * HF_SECOND;
}

hf_time hf_kube_status_retry_after(const struct hf_json *status)
{
	int64_t seconds =
		hf_json_i64(hf_json_path(status, "details", "retryAfterSeconds", NULL), 0);

	return seconds > 0 && seconds <= RETRY_AFTER_S_MAX ? seconds * HF_SECOND : 0;
}

bool hf_kube_warning_parse(const char *header, char **ret_text)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1024);
	const char *quote = strchr(header, '"');

	/* An API server's warning has the code 299, the agent "-", and a quoted text (RFC
	 * 7234). */
	if (!hf_str_has_prefix(header, "299 ") || quote == NULL)
		return false;
	for (const char *at = quote + 1; *at != '\0' && *at != '"'; at++) {
		if (*at == '\\' && at[1] != '\0')
			at++;
		hf_strbuf_addch(&sb, (unsigned char)*at >= ' ' ? *at : ' ');
	}
	*ret_text = hf_strbuf_detach(&sb);
	return true;
}

static hf_time read_retry_after(const struct hf_http_result *result, const struct hf_json *status,
				hf_time now)
{
	hf_time server_now, told;

	if (result->transfer != NULL) {
		/* Compare a date in Retry-After with the Date header, because both are times of
		 * the server's clock. */
		server_now = hf_kube_date_parse(hf_transfer_header(result->transfer, "Date"));
		told = hf_kube_retry_after_parse(
			hf_transfer_header(result->transfer, "Retry-After"),
			server_now != HF_TIME_NONE ? server_now : now);
		if (told > 0)
			return told;
	}
	return hf_kube_status_retry_after(status);
}

#define BEGINNING_BYTES_MAX 60

/* Describes a response that is not JSON by its status, content type and first 60 characters:
 * enough to recognize a login page or a proxy. */
void hf_kube_response_describe(const struct hf_http_result *result, const char *body, size_t len,
			       char ret_text[HF_KUBE_RESPONSE_TEXT_MAX])
{
	const char *type = result->transfer != NULL
				   ? hf_transfer_header(result->transfer, "Content-Type")
				   : NULL;
	char words[BEGINNING_BYTES_MAX + 1];
	size_t n = 0;

	for (size_t i = 0; i < len && n < BEGINNING_BYTES_MAX; i++) {
		unsigned char c = (unsigned char)body[i];

		if (c > ' ' && c < 0x7f && c != '\'')
			words[n++] = (char)c;
		else if (n > 0 && words[n - 1] != ' ')
			words[n++] = ' ';
	}
	while (n > 0 && words[n - 1] == ' ')
		n--;
	words[n] = '\0';
	/* Leave out the first characters of a JSON object, because the text already has the error
	 * of the JSON parser. */
	if (words[0] == '{')
		words[0] = '\0';
	snprintf(ret_text, HF_KUBE_RESPONSE_TEXT_MAX, "HTTP status %d%s%.60s%s%s%s", result->status,
		 hf_str_is_empty(type) ? "" : ", ", hf_str_or(type, ""),
		 words[0] == '\0' ? "" : ", begins '", words, words[0] == '\0' ? "" : "'");
}

void hf_kube_failure_read(const struct hf_http_result *result, const char *body, size_t len,
			  hf_time now, struct hf_kube_failure *ret_failure)
{
	struct hf_kube_failure failure = {.retry_after = 0};
	const struct hf_json *status;
	const char *message;

	if (result->code != 0) {
		failure.err = *result->err;
		failure.err.code = result->code;
		*ret_failure = failure;
		return;
	}
	if (hf_doc_parse(body, len, NULL, &failure.status, NULL) == 0 &&
	    !hf_streq(hf_json_path_str(hf_doc_json(failure.status), "kind", NULL), "Status"))
		failure.status = hf_doc_unref(failure.status);
	status = hf_doc_json(failure.status);
	message = hf_json_path_str(status, "message", NULL);
	(void)hf_error_set(
		&failure.err,
		hf_code_from_http(result->status, hf_json_path_str(status, "reason", NULL)), "%s",
		hf_str_or(message, ""));
	if (failure.err.text[0] == '\0') {
		char text[HF_KUBE_RESPONSE_TEXT_MAX];

		hf_kube_response_describe(result, body, len, text);
		(void)hf_error_set(&failure.err, failure.err.code, "the server answered with %s",
				   text);
	}
	failure.retry_after = read_retry_after(result, status, now);
	*ret_failure = failure;
}
