/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Regular expressions with limits.
 *
 * Input: an expression of a user, and lines of any program. Lines are bytes: bytes that are no
 * UTF-8 are allowed.
 */
#include "pattern/regex_internal.h"

#include "base/mem.h"
#include "base/str.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

/* The most steps of one match. A line of a trainer takes a few hundred; 20,000 steps take about 0.3
 * ms. */
#define MATCH_LIMIT 20000
#define DEPTH_LIMIT 1000
#define HEAP_LIMIT_KIB 1024
#define GROUPS_MAX 32 /* groups of an expression */

struct hf_regex {
	pcre2_code *code;
	pcre2_match_context *limits;
	pcre2_match_data *data;
	/* number of each named group; 0: the expression has no such group */
	int numbers[HF_REGEX_GROUPS];
};

static const char *const names[HF_REGEX_GROUPS] = {
	[HF_REGEX_STEP] = "step", [HF_REGEX_TOTAL] = "total", [HF_REGEX_LOSS] = "loss",
	[HF_REGEX_RATE] = "rate", [HF_REGEX_TEXT] = "text",   [HF_REGEX_UNIT] = "unit",
	[HF_REGEX_REST] = "rest", [HF_REGEX_EPOCH] = "epoch", [HF_REGEX_VALUE] = "value",
};

struct hf_regex *hf_regex_destroy(struct hf_regex *regex)
{
	if (regex == NULL)
		return NULL;
	pcre2_match_data_free(regex->data);
	pcre2_match_context_free(regex->limits);
	pcre2_code_free(regex->code);
	free(regex);
	return NULL;
}

static int fail_compile(int code, size_t offset, struct hf_error *err)
{
	PCRE2_UCHAR text[256];

	(void)pcre2_get_error_message(code, text, sizeof(text));
	return hf_error_set(err, HF_E_INVALID, "%s, at character %zu", (const char *)text,
			    offset + 1);
}

/* Finds the numbers of the named groups. If no group has the name that is needed, the first group
 * counts. */
static int find_groups(struct hf_regex *regex, enum hf_regex_need need, struct hf_error *err)
{
	enum hf_regex_group group = need == HF_REGEX_NEEDS_STEP ? HF_REGEX_STEP : HF_REGEX_VALUE;
	uint32_t count = 0;

	(void)pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &count);
	if (count == 0 && need != HF_REGEX_NEEDS_NOTHING)
		return hf_error_set(
			err, HF_E_INVALID,
			"the expression has no group: write the %s in brackets, as in '%s'",
			need == HF_REGEX_NEEDS_STEP ? "step" : "number",
			need == HF_REGEX_NEEDS_STEP ? "step (\\d+)" : "loss (\\S+)");
	if (count > GROUPS_MAX)
		return hf_error_set(err, HF_E_INVALID, "the expression has more than %d groups",
				    GROUPS_MAX);
	for (int i = 0; i < HF_REGEX_GROUPS; i++) {
		int number = pcre2_substring_number_from_name(regex->code, (PCRE2_SPTR)names[i]);

		regex->numbers[i] = number > 0 ? number : 0;
	}
	if (regex->numbers[group] == 0 && count > 0)
		regex->numbers[group] = 1;
	return 0;
}

static void must_have(const void *memory)
{
	if (memory == NULL)
		hf_out_of_memory(0);
}

int hf_regex_create(const char *text, enum hf_regex_need need, struct hf_regex **ret_regex,
		    struct hf_error *err)
{
	struct hf_regex *regex = hf_xcalloc(1, sizeof(*regex));
	int code = 0, rc;
	size_t offset = 0;

	regex->code =
		pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
			      PCRE2_NEVER_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &offset, NULL);
	if (regex->code == NULL) {
		hf_regex_destroy(regex);
		return fail_compile(code, offset, err);
	}
	rc = find_groups(regex, need, err);
	if (rc != 0) {
		hf_regex_destroy(regex);
		return rc;
	}
	/* This fails where the system forbids memory that is writable and executable. Matches are
	 * slower then. */
	(void)!pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
	regex->limits = pcre2_match_context_create(NULL);
	regex->data = pcre2_match_data_create_from_pattern(regex->code, NULL);
	must_have(regex->limits);
	must_have(regex->data);
	(void)pcre2_set_match_limit(regex->limits, MATCH_LIMIT);
	(void)pcre2_set_depth_limit(regex->limits, DEPTH_LIMIT);
	(void)pcre2_set_heap_limit(regex->limits, HEAP_LIMIT_KIB);
	*ret_regex = regex;
	return 0;
}

int hf_regex_match(const struct hf_regex *regex, const char *line, size_t len,
		   struct hf_regex_match *ret_match, struct hf_error *err)
{
	int rc = pcre2_match(regex->code, (PCRE2_SPTR)line, len, 0, 0, regex->data, regex->limits);
	const size_t *places = pcre2_get_ovector_pointer(regex->data);

	if (rc == PCRE2_ERROR_NOMATCH)
		return 0;
	/* A negative result means that the match exceeded a limit or the small stack of compiled
	 * matches. Every other error would come from a wrong call. */
	if (rc <= 0)
		return hf_error_set(err, HF_E_TOO_LARGE, "the match took too many steps");
	*ret_match = (struct hf_regex_match){{{NULL, 0}}};
	for (int i = 0; i < HF_REGEX_GROUPS; i++) {
		int number = regex->numbers[i];

		if (number == 0 || number >= rc || places[2 * number] == PCRE2_UNSET ||
		    places[2 * number + 1] < places[2 * number])
			continue;
		ret_match->groups[i] = (struct hf_regex_part){
			line + places[2 * number], places[2 * number + 1] - places[2 * number]};
	}
	return 1;
}
