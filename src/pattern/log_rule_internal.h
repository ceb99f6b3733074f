/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PATTERN_LOG_RULE_INTERNAL_H
#define HF_PATTERN_LOG_RULE_INTERNAL_H

#include "pattern/log_rule.h"
#include "pattern/regex_internal.h"

HF_BEGIN_DECLS

/* The parts of a rule's text, each inside the text that was split. */
struct hf_log_rule_parts {
	const char *name, *must;
	const char *action;  /* NULL: absent */
	const char *pattern; /* "": absent */
};

/* Writes NULs into the text. */
int hf_log_rule_split(char *text, struct hf_log_rule_parts *ret_parts, struct hf_error *err)
	HF_MUST_CHECK;
int hf_log_rule_compile(const char *pattern, enum hf_log_rule_kind kind,
			struct hf_regex **ret_regex, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
