/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_INJECT_H
#define HF_APP_INJECT_H

#include "base/error.h"
#include "base/time.h"

/* A fault to cause: the parsed value of --inject, such as "kill worker-1 at 5s". */
struct hf_injection {
	char rank[64]; /* "worker-1" */
	hf_time after; /* when to cause it: time since the job was Running for the first time */
};

#define HF_INJECTIONS_MAX 16

int hf_injection_parse(const char *text, struct hf_injection *ret_injection, struct hf_error *err)
	HF_MUST_CHECK;

#endif
