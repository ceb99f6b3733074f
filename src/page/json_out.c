/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/json_out.h"

#include <math.h>

/* Three digits behind the point: more would only change with each reading. */
#define DIGITS 1000

void hf_page_set_text(struct hf_json *object, const char *key, const char *text)
{
	hf_json_set(object, key, text == NULL ? hf_json_null() : hf_json_string(text));
}

void hf_page_set_time(struct hf_json *object, const char *key, hf_time time)
{
	char text[HF_TIME_TEXT_MAX];

	if (time != HF_TIME_NONE)
		hf_time_format_milli(time, text);
	hf_page_set_text(object, key, time == HF_TIME_NONE ? NULL : text);
}

void hf_page_set_count(struct hf_json *object, const char *key, int64_t count)
{
	hf_json_set(object, key, count < 0 ? hf_json_null() : hf_json_int(count));
}

void hf_page_set_number(struct hf_json *object, const char *key, double number)
{
	bool known = isfinite(number) && number >= 0;

	hf_json_set(object, key,
		    known ? hf_json_real(round(number * DIGITS) / DIGITS) : hf_json_null());
}

void hf_page_set_seconds(struct hf_json *object, const char *key, hf_time span)
{
	hf_page_set_number(object, key,
			   span == HF_TIME_NONE ? -1 : (double)span / (double)HF_SECOND);
}

void hf_page_count_up(struct hf_json *counts, const char *key)
{
	hf_json_set_i64(counts, key, hf_json_i64(hf_json_get(counts, key), 0) + 1);
}

hf_time hf_page_time_of(const struct hf_json *object, const char *key)
{
	const char *text = hf_json_path_str(object, key, NULL);
	hf_time time;

	return text != NULL && hf_time_parse(text, &time, NULL) == 0 ? time : HF_TIME_NONE;
}
