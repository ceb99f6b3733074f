/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/window_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Reads weekly windows strictly: a day or a time that does not exist is an error with its path. */

static const struct hf_field window_fields[] = {
	HF_FIELD_STRINGS("days", struct hf_window_read, days, 7, 0),
	HF_FIELD_STRING("start", struct hf_window_read, start, 5, HF_FIELD_REQUIRED),
	HF_FIELD_STRING("end", struct hf_window_read, end, 5, HF_FIELD_REQUIRED),
};
const struct hf_field_table hf_window_table = HF_FIELD_TABLE(window_fields, struct hf_window_read);

static const char *const day_names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
					"Thursday", "Friday", "Saturday"};

static bool read_minute(const char *text, int32_t *ret_minute)
{
	int hours, minutes;

	if (text == NULL || strlen(text) != 5 || text[2] != ':' ||
	    strspn(text, "0123456789") != 2 || strspn(text + 3, "0123456789") != 2)
		return false;
	hours = (text[0] - '0') * 10 + text[1] - '0';
	minutes = (text[3] - '0') * 10 + text[4] - '0';
	*ret_minute = hours * 60 + minutes;
	return hours < 24 && minutes < 60;
}

static bool add_day(const char *name, uint8_t *days)
{
	for (unsigned i = 0; i < HF_ARRAY_LEN(day_names); i++)
		if (hf_streq(name, day_names[i])) {
			*days |= (uint8_t)(1u << i);
			return true;
		}
	return false;
}

/* The text names one window, such as "spec.windows[0]". */
static int read_time(const char *text, const char *window, const char *field, int32_t *ret_minute,
		     struct hf_error *err)
{
	if (read_minute(text, ret_minute))
		return 0;
	return hf_error_set(err, HF_E_INVALID,
			    "%s.%s: Invalid value: \"%s\": must be a time of the day such as 22:30",
			    window, field, text);
}

static int read_window(const struct hf_window_read *read, const char *path,
		       struct hf_policy_window *window, struct hf_error *err)
{
	*window = (struct hf_policy_window){.days = read->days.len == 0 ? 0x7f : 0};
	for (size_t d = 0; d < read->days.len; d++)
		if (!add_day(read->days.items[d], &window->days))
			return hf_error_set(err, HF_E_INVALID,
					    "%s.days[%zu]: Unsupported value: \"%s\": supported "
					    "values: \"Sunday\" to \"Saturday\"",
					    path, d, read->days.items[d]);
	if (read_time(read->start, path, "start", &window->from_minute, err) != 0 ||
	    read_time(read->end, path, "end", &window->to_minute, err) != 0)
		return HF_E_INVALID;
	if (window->from_minute == window->to_minute)
		return hf_error_set(err, HF_E_INVALID,
				    "%s.end: Invalid value: \"%s\": must differ from start", path,
				    read->end);
	return 0;
}

int hf_windows_read(const struct hf_window_read *list, size_t len, const char *path,
		    struct hf_policy_window *ret_windows, struct hf_error *err)
{
	char item[64];
	int rc = 0;

	for (size_t i = 0; i < len && rc == 0; i++) {
		snprintf(item, sizeof(item), "%s[%zu]", path, i);
		rc = read_window(&list[i], item, &ret_windows[i], err);
	}
	return rc;
}
