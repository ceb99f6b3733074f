/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_TARGET_H
#define HF_HTTP_TARGET_H

#include "base/error.h"

#include <stddef.h>

/* The target of a request ("/path?query", or the absolute form that proxies send), split and
 * percent-decoded. It comes from untrusted clients; tests/fuzz fuzzes the parser. */

struct hf_target_pair {
	const char *name, *value;
};

struct hf_target {
	char *raw;     /* the target as the client sent it */
	char *decoded; /* the buffer that the pointers below point into */
	const char *path;
	struct hf_target_pair *query;
	size_t query_count;
};

/* HF_E_BAD_REQUEST: no path, a broken escape, a decoded NUL or invalid UTF-8, or more than
 * HF_HTTP_QUERY_PARAMS_MAX parameters. HF_E_TOO_LARGE: longer than HF_HTTP_TARGET_BYTES_MAX. */
int hf_target_parse(const char *raw, struct hf_target *ret_target, struct hf_error *err)
	HF_MUST_CHECK;
void hf_target_release(struct hf_target *target);

#endif
