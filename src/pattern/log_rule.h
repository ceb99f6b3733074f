/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PATTERN_LOG_RULE_H
#define HF_PATTERN_LOG_RULE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * Rules for the lines that a program prints: a line must appear, must recur, or a number in it must be good. Input: the
 * rules as texts, lines, the time in ms. Output: the rules that are broken, each once.
 *
 *     NAME must MUST [or ACTION][: PATTERN]
 *
 *     start must appear within 30m: epoch 1
 *     steps must recur within 10m
 *     loss must be finite or FailJob: loss=(\S+)
 *     norm must be below 1000 for 20 lines or Event: grad_norm (?<value>\S+)
 *
 * PATTERN is an expression of PCRE2. The number is its group "value", else its first group. Without PATTERN the lines of
 * known trainers count (pattern.h): a line with a step matches, and its loss is the number.
 *
 * The caller gives the time, and may leave out time in which the program could not run.
 */
#define HF_LOG_RULES_MAX 16
#define HF_LOG_RULE_NAME_MAX 64  /* with the NUL */
#define HF_LOG_RULE_BOUND_MAX 32 /* characters of a bound */
#define HF_LOG_RULE_LINES_MAX 1000000
#define HF_LOG_RULE_SECONDS_MAX 2592000 /* 30 days */
#define HF_LOG_RULE_TEXT_MAX 1280       /* bytes of a rule: name, must, action, expression */
#define HF_LOG_RULE_WHY_MAX 224

enum hf_log_rule_kind {
	HF_LOG_RULE_APPEARS, /* within span_ms of the start */
	HF_LOG_RULE_RECURS, /* within span_ms of the line before it; the first line is not awaited */
	HF_LOG_RULE_FINITE, /* neither NaN nor infinite */
	HF_LOG_RULE_BELOW,  /* below the bound; NaN is not */
	HF_LOG_RULE_ABOVE,
};

enum hf_log_rule_action { HF_LOG_RULE_RESTART, HF_LOG_RULE_FAIL_JOB, HF_LOG_RULE_EVENT };

struct hf_log_rule_must {
	enum hf_log_rule_kind kind;
	int64_t span_ms;                   /* APPEARS, RECURS */
	char bound[HF_LOG_RULE_BOUND_MAX]; /* BELOW, ABOVE: as written */
	double limit;                      /* the bound */
	uint32_t lines;                    /* so many bad numbers in a row break the rule */
};

/* The errors have the part's text and what is wrong with it. "" and NULL: absent. */
int hf_log_rule_parse_must(const char *text, struct hf_log_rule_must *ret_must,
			   struct hf_error *err) HF_MUST_CHECK;
int hf_log_rule_check_name(const char *name, struct hf_error *err) HF_MUST_CHECK;
int hf_log_rule_check_pattern(const char *pattern, enum hf_log_rule_kind kind, struct hf_error *err)
	HF_MUST_CHECK;
/* NULL: RESTART, the default. */
int hf_log_rule_parse_action(const char *text, enum hf_log_rule_action *ret_action,
			     struct hf_error *err) HF_MUST_CHECK;

struct hf_log_rules;

struct hf_log_rules *hf_log_rules_create(void);
struct hf_log_rules *hf_log_rules_destroy(struct hf_log_rules *rules); /* NULL is fine */
/* HF_E_INVALID: it is no rule, or its name is taken; HF_E_TOO_LARGE: there are too many. */
int hf_log_rules_add(struct hf_log_rules *rules, const char *text, size_t len, struct hf_error *err)
	HF_MUST_CHECK;
size_t hf_log_rules_len(const struct hf_log_rules *rules);

/* A new process begins: nothing has been read of it. */
void hf_log_rules_begin(struct hf_log_rules *rules, int64_t now_ms);
/* Reads one line, without its end. Of a longer line than HF_PATTERN_LINE_BYTES_MAX the rest is not looked at. */
void hf_log_rules_read(struct hf_log_rules *rules, const char *line, size_t len, int64_t now_ms);

struct hf_log_finding {
	const char *name; /* of the rule; lives as long as the rules */
	enum hf_log_rule_action action;
	bool hang; /* a line is missing; else a number is bad */
	bool off; /* the rule is not broken: its expression took too many steps, and it is read no more */
	char why[HF_LOG_RULE_WHY_MAX];
};
/*
 * The next rule that is broken or off. A rule with action Event is told again at most once a minute, and only if it was
 * kept in between; any other rule once.
 */
bool hf_log_rules_next(struct hf_log_rules *rules, int64_t now_ms,
		       struct hf_log_finding *ret_finding);
/* The time of the next call of hf_log_rules_next(), if no line comes; INT64_MAX: none. */
int64_t hf_log_rules_wake_ms(const struct hf_log_rules *rules);

HF_END_DECLS

#endif
