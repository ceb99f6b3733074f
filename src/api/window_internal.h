/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_WINDOW_INTERNAL_H
#define HF_API_WINDOW_INTERNAL_H

#include "api/health_policy.h"

/* Weekly windows, as HealthPolicy and DeviceRollout have them: {days, start, end}. */
struct hf_window_read {
	uint64_t present;
	HF_LIST(const char *) days;
	const char *start, *end;
};
extern const struct hf_field_table hf_window_table;

/* Converts the windows of the list at `path`; ret_windows has room for all of them. HF_E_INVALID: err
 * names the field. */
int hf_windows_read(const struct hf_window_read *list, size_t len, const char *path,
		    struct hf_policy_window *ret_windows, struct hf_error *err) HF_MUST_CHECK;

#endif
