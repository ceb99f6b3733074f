/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PATTERN_REGEX_INTERNAL_H
#define HF_PATTERN_REGEX_INTERNAL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

HF_BEGIN_DECLS

/* The only caller of PCRE2: expressions with a few named groups, and limits for each match. */
struct hf_regex;

/* The groups that are looked for by name. */
enum hf_regex_group {
	HF_REGEX_STEP,
	HF_REGEX_TOTAL,
	HF_REGEX_LOSS,
	HF_REGEX_RATE,
	HF_REGEX_TEXT, /* what stands before a progress bar */
	HF_REGEX_UNIT, /* of the rate */
	HF_REGEX_REST, /* further values */
	HF_REGEX_EPOCH,
	HF_REGEX_GROUPS,
};

/* A part of the line; at NULL: the group did not take part in the match. */
struct hf_regex_part {
	const char *at;
	size_t len;
};

struct hf_regex_match {
	struct hf_regex_part groups[HF_REGEX_GROUPS];
};

int hf_regex_create(const char *text, struct hf_regex **ret_regex, struct hf_error *err)
	HF_MUST_CHECK;
struct hf_regex *hf_regex_destroy(struct hf_regex *regex);
/* 1: ret_match is set; 0: no match; HF_E_TOO_LARGE: cut off at a limit. */
int hf_regex_match(const struct hf_regex *regex, const char *line, size_t len,
		   struct hf_regex_match *ret_match, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
