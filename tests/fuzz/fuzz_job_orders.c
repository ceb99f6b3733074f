/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: JSON, read as a job and as a pod. A target that the agent makes of them is within its
 * limits, and exec can parse the line that the agent sends. */

#include "agent/job_orders.h"
#include "fuzz/fuzz.h"

#include <string.h>

static void check_target(const struct hf_process_target *target)
{
	char text[HF_PROCESS_LINE_BYTES_MAX], again[HF_PROCESS_LINE_BYTES_MAX];
	struct hf_process_target read;
	size_t len = hf_process_target_format(target, text);

	hf_assert(hf_process_target_parse(text, len, &read));
	hf_assert(hf_process_target_format(&read, again) == len && memcmp(text, again, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HF_AUTO_JSON object = NULL;
	struct hf_process_target target;
	struct hf_job_orders *orders;
	struct hf_pod_rank rank;
	struct hf_error err;

	if (hf_json_parse((const char *)data, size, NULL, &object, &err) != 0)
		return 0;
	hf_pod_rank_read(object, &rank);
	orders = hf_job_orders_read(object);
	if (!hf_job_orders_target(orders, &rank, &target))
		hf_assert(!target.start.known && target.wait_s == 0);
	check_target(&target);
	hf_job_orders_destroy(orders);
	return 0;
}
