/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kube/kube_internal.h"

#include "base/str.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

/* IMF-fixdate of RFC 9110, the only form servers send today: "Sun, 06 Nov 1994 08:49:37 GMT". */
hf_time hf_kube_date_parse(const char *text)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	static const char shape[] = "aaa, 00 aaa 0000 00:00:00 GMT";
	struct tm tm = {0};
	const char *month;

	if (text == NULL || strlen(text) != sizeof(shape) - 1)
		return HF_TIME_NONE;
	for (size_t i = 0; shape[i] != '\0'; i++) {
		unsigned char c = (unsigned char)text[i];
		bool fits = shape[i] == 'a'   ? isalpha(c) != 0
			    : shape[i] == '0' ? isdigit(c) != 0
					      : (char)c == shape[i];
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
	/* The years that hf_time can hold (base/time.h). */
	if (tm.tm_year < 1678 - 1900 || tm.tm_year > 2261 - 1900)
		return HF_TIME_NONE;
	return (hf_time)timegm(&tm) * HF_SECOND;
}

static hf_time read_retry_after(const struct hf_http_result *result, const struct hf_json *status)
{
	int64_t seconds =
		hf_json_i64(hf_json_path(status, "details", "retryAfterSeconds", NULL), 0);
	const char *header = result->transfer != NULL
				     ? hf_transfer_header(result->transfer, "Retry-After")
				     : NULL;

	if (header != NULL && hf_str_to_i64(header, 0, 86400, &seconds, NULL) != 0)
		seconds = 0; /* the form with a date is not used by API servers */
	return seconds > 0 && seconds <= 86400 ? seconds * HF_SECOND : 0;
}

void hf_kube_failure_read(const struct hf_http_result *result, const char *body, size_t len,
			  struct hf_kube_failure *ret_failure)
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
	if (failure.err.text[0] == '\0')
		(void)hf_error_set(&failure.err, failure.err.code,
				   "the server answered with HTTP status %d", result->status);
	failure.retry_after = read_retry_after(result, status);
	*ret_failure = failure;
}
