/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PATTERN_REGEX_INTERNAL_H
#define HF_PATTERN_REGEX_INTERNAL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

HF_BEGIN_DECLS

/* A compiled expression with a few named groups and limits for each match. Only regex.c calls
 * PCRE2. */
struct hf_regex;

/* The names of groups that a match looks for: "step", "total" and so on. */
enum hf_regex_group {
	HF_REGEX_STEP,
	HF_REGEX_TOTAL,
	HF_REGEX_LOSS,
	HF_REGEX_RATE,
	HF_REGEX_TEXT, /* the text before a progress bar */
	HF_REGEX_UNIT, /* unit of the rate */
	HF_REGEX_REST, /* the remaining text of the line, with further values */
	HF_REGEX_EPOCH,
	HF_REGEX_VALUE, /* a number that a rule judges */
	HF_REGEX_GROUPS,
};

/* The group that an expression must have. If no group has that name, the first group counts. */
enum hf_regex_need { HF_REGEX_NEEDS_STEP, HF_REGEX_NEEDS_VALUE, HF_REGEX_NEEDS_NOTHING };

/* The part of the line that a group matched. If `at` is NULL, the group took no part in the
 * match. */
struct hf_regex_part {
	const char *at;
	size_t len;
};

struct hf_regex_match {
	struct hf_regex_part groups[HF_REGEX_GROUPS];
};

int hf_regex_create(const char *text, enum hf_regex_need need, struct hf_regex **ret_regex,
		    struct hf_error *err) HF_MUST_CHECK;
struct hf_regex *hf_regex_destroy(struct hf_regex *regex);
/* Returns 1 with ret_match set, 0 if the line does not match, or HF_E_TOO_LARGE if the match
 * exceeded a limit. */
int hf_regex_match(const struct hf_regex *regex, const char *line, size_t len,
		   struct hf_regex_match *ret_match, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
