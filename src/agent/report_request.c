/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/report_request.h"

#include "api/device_health.h"
#include "base/str.h"

#include <string.h>

int hf_report_request_read(struct hf_report_request *request, const char *text, hf_time now,
			   struct hf_error *err)
{
	uint64_t seen = text != NULL ? hf_hash_str(text) : 0;
	const char *number;
	int64_t seconds;

	if (seen == request->seen)
		return 0;
	request->seen = seen;
	request->waiting = false;
	if (text == NULL)
		return 0;
	number = strrchr(text, ' ');
	if (number == NULL ||
	    hf_str_to_i64(number + 1, 0, HF_REPORT_SECONDS_MAX, &seconds, NULL) != 0)
		return hf_error_set(
			err, HF_E_INVALID,
			"the request does not end with a number of seconds from 0 to %d",
			HF_REPORT_SECONDS_MAX);
	request->waiting = true;
	request->look_at = hf_time_add(now, seconds * HF_SECOND);
	return 0;
}

static bool has_looked(hf_time at, hf_time since)
{
	return at == HF_TIME_NONE || at > since;
}

enum hf_report_request_step hf_report_request_next(struct hf_report_request *request, hf_time now,
						   hf_time bus_at, hf_time driver_at)
{
	if (!request->waiting)
		return HF_REPORT_REQUEST_NONE;
	if (now <= request->look_at)
		return HF_REPORT_REQUEST_WAITS;
	if (has_looked(bus_at, request->look_at) && has_looked(driver_at, request->look_at)) {
		request->waiting = false;
		return HF_REPORT_REQUEST_REPORT;
	}
	if (now > hf_time_add(request->look_at, HF_REPORT_REQUEST_TRIES)) {
		request->waiting = false;
		return HF_REPORT_REQUEST_NONE;
	}
	return HF_REPORT_REQUEST_LOOK;
}
