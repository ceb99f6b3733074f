/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* What rules for lines remember from line to line, and when they are broken. */
#include "pattern/log_rule_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "pattern/pattern.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES_MAX 64
/* A rule with action Event is told again after so long. */
#define AGAIN_MS 60000

struct rule {
	char name[HF_LOG_RULE_NAME_MAX];
	struct hf_log_rule_must must;
	enum hf_log_rule_action action;
	struct hf_regex *regex; /* NULL: the lines of known trainers */
	/* Of the present process: */
	bool seen;        /* a line has matched */
	int64_t since_ms; /* of that line, or of the start */
	uint32_t bad;     /* bad numbers in a row */
	char last[NUMBER_BYTES_MAX];
	bool broken; /* a number broke the rule, and it was not told yet */
	bool told;
	int64_t told_ms;
	bool off, off_told;
};

struct hf_log_rules {
	struct rule items[HF_LOG_RULES_MAX];
	size_t len;
	struct hf_pattern *trainers; /* NULL: no rule needs them */
	struct hf_pattern_rank rank; /* what these lines have said */
};

struct hf_log_rules *hf_log_rules_create(void)
{
	return hf_xcalloc(1, sizeof(struct hf_log_rules));
}

struct hf_log_rules *hf_log_rules_destroy(struct hf_log_rules *rules)
{
	if (rules == NULL)
		return NULL;
	for (size_t i = 0; i < rules->len; i++)
		hf_regex_destroy(rules->items[i].regex);
	hf_pattern_destroy(rules->trainers);
	free(rules);
	return NULL;
}

size_t hf_log_rules_len(const struct hf_log_rules *rules)
{
	return rules->len;
}

static bool has_name(const struct hf_log_rules *rules, const char *name)
{
	for (size_t i = 0; i < rules->len; i++)
		if (hf_streq(rules->items[i].name, name))
			return true;
	return false;
}

static int read_parts(struct hf_log_rules *rules, const struct hf_log_rule_parts *parts,
		      struct rule *ret, struct hf_error *err)
{
	int rc = hf_log_rule_check_name(parts->name, err);

	*ret = (struct rule){.regex = NULL};
	if (rc == 0)
		rc = hf_log_rule_parse_must(parts->must, &ret->must, err);
	if (rc == 0)
		rc = hf_log_rule_parse_action(parts->action, &ret->action, err);
	if (rc != 0)
		return rc;
	if (has_name(rules, parts->name))
		return hf_error_set(err, HF_E_INVALID, "another rule has the name '%s'",
				    parts->name);
	memcpy(ret->name, parts->name, strlen(parts->name) + 1);
	if (parts->pattern[0] != '\0') {
		rc = hf_log_rule_compile(parts->pattern, ret->must.kind, &ret->regex, err);
		return rc != 0 ? hf_error_wrap(err, "pattern") : 0;
	}
	return rules->trainers == NULL ? hf_pattern_create(NULL, &rules->trainers, err) : 0;
}

int hf_log_rules_add(struct hf_log_rules *rules, const char *text, size_t len, struct hf_error *err)
{
	char copy[HF_LOG_RULE_TEXT_MAX];
	struct hf_log_rule_parts parts;
	int rc;

	if (len >= sizeof(copy))
		return hf_error_set(err, HF_E_INVALID, "a rule has at most %d bytes",
				    HF_LOG_RULE_TEXT_MAX - 1);
	if (rules->len == HF_LOG_RULES_MAX)
		return hf_error_set(err, HF_E_TOO_LARGE, "there are more than %d rules",
				    HF_LOG_RULES_MAX);
	memcpy(copy, text, len);
	copy[len] = '\0';
	rc = hf_log_rule_split(copy, &parts, err);
	if (rc == 0)
		rc = read_parts(rules, &parts, &rules->items[rules->len], err);
	if (rc == 0)
		rules->len++;
	return rc;
}

void hf_log_rules_begin(struct hf_log_rules *rules, int64_t now_ms)
{
	rules->rank = (struct hf_pattern_rank){.locked = false};
	for (size_t i = 0; i < rules->len; i++) {
		struct rule *rule = &rules->items[i];

		rule->seen = rule->broken = rule->told = false;
		rule->since_ms = now_ms;
		rule->bad = 0;
		rule->last[0] = '\0';
	}
}

/* ---- lines ------------------------------------------------------------------------------------------ */

/* False: the text is no number, so it is neither good nor bad. */
static bool read_number(const char *at, size_t len, char ret_text[NUMBER_BYTES_MAX],
			double *ret_number)
{
	char *end;

	if (at == NULL || len == 0 || len >= NUMBER_BYTES_MAX)
		return false;
	memcpy(ret_text, at, len);
	ret_text[len] = '\0';
	*ret_number = strtod(ret_text, &end);
	return end != ret_text && *end == '\0';
}

static bool is_good(const struct hf_log_rule_must *must, double number)
{
	switch (must->kind) {
	case HF_LOG_RULE_BELOW: return number < must->limit;
	case HF_LOG_RULE_ABOVE: return number > must->limit;
	default: return isfinite(number);
	}
}

static void take_number(struct rule *rule, const char *at, size_t len)
{
	char text[NUMBER_BYTES_MAX];
	double number;

	if (!read_number(at, len, text, &number))
		return;
	if (is_good(&rule->must, number)) {
		rule->bad = 0;
		rule->told = rule->told && rule->action != HF_LOG_RULE_EVENT;
		return;
	}
	rule->bad += rule->bad < HF_LOG_RULE_LINES_MAX;
	memcpy(rule->last, text, sizeof(rule->last));
	rule->broken = rule->broken || (rule->bad >= rule->must.lines && !rule->told);
}

static bool awaits_line(const struct rule *rule)
{
	return rule->must.kind == HF_LOG_RULE_APPEARS || rule->must.kind == HF_LOG_RULE_RECURS;
}

static void take_match(struct rule *rule, const char *number, size_t len, int64_t now_ms)
{
	if (!awaits_line(rule)) {
		take_number(rule, number, len);
		return;
	}
	rule->seen = true;
	rule->since_ms = now_ms;
	if (rule->action == HF_LOG_RULE_EVENT && rule->must.kind == HF_LOG_RULE_RECURS)
		rule->told = false;
}

static void match_own(struct rule *rule, const char *line, size_t len, int64_t now_ms)
{
	struct hf_regex_match match;
	struct hf_error err;
	int rc = hf_regex_match(rule->regex, line, len, &match, &err);

	if (rc > 0)
		take_match(rule, match.groups[HF_REGEX_VALUE].at, match.groups[HF_REGEX_VALUE].len,
			   now_ms);
	rule->off = rc < 0;
}

/* The built-in lines are read once for all rules. */
static void match_trainers(struct hf_log_rules *rules, const char *line, size_t len, int64_t now_ms)
{
	struct hf_pattern_step step;
	struct hf_error err;

	if (hf_pattern_read(rules->trainers, &rules->rank, line, len, &step, &err) !=
	    HF_PATTERN_STEP)
		return;
	for (size_t i = 0; i < rules->len; i++)
		if (rules->items[i].regex == NULL)
			take_match(&rules->items[i], step.beat.loss, strlen(step.beat.loss),
				   now_ms);
}

void hf_log_rules_read(struct hf_log_rules *rules, const char *line, size_t len, int64_t now_ms)
{
	len = len < HF_PATTERN_LINE_BYTES_MAX ? len : HF_PATTERN_LINE_BYTES_MAX;
	for (size_t i = 0; i < rules->len; i++)
		if (rules->items[i].regex != NULL && !rules->items[i].off)
			match_own(&rules->items[i], line, len, now_ms);
	if (rules->trainers != NULL)
		match_trainers(rules, line, len, now_ms);
}

/* ---- findings --------------------------------------------------------------------------------------- */

/* The time at which the rule breaks if no line comes; INT64_MAX: never. */
static int64_t find_deadline(const struct rule *rule)
{
	if (!awaits_line(rule) || rule->told || rule->off ||
	    (rule->must.kind == HF_LOG_RULE_APPEARS && rule->seen) ||
	    (rule->must.kind == HF_LOG_RULE_RECURS && !rule->seen))
		return INT64_MAX;
	return rule->since_ms + rule->must.span_ms;
}

static void explain_finding(const struct rule *rule, struct hf_log_finding *ret)
{
	static const char *const should[] = {[HF_LOG_RULE_FINITE] = "finite",
					     [HF_LOG_RULE_BELOW] = "below ",
					     [HF_LOG_RULE_ABOVE] = "above "};
	long long seconds = (long long)(rule->must.span_ms / 1000);

	if (rule->must.kind == HF_LOG_RULE_APPEARS)
		snprintf(ret->why, sizeof(ret->why),
			 "log rule '%s': no line matched within %lld s of the start", rule->name,
			 seconds);
	else if (rule->must.kind == HF_LOG_RULE_RECURS)
		snprintf(ret->why, sizeof(ret->why), "log rule '%s': no line matched for %lld s",
			 rule->name, seconds);
	else
		snprintf(ret->why, sizeof(ret->why),
			 "log rule '%s': %s is not %s%s, %u line%s in a row", rule->name,
			 rule->last, should[rule->must.kind], rule->must.bound, rule->must.lines,
			 rule->must.lines == 1 ? "" : "s");
}

static bool take_off(struct rule *rule, struct hf_log_finding *ret)
{
	if (!rule->off || rule->off_told)
		return false;
	rule->off_told = true;
	*ret = (struct hf_log_finding){
		.name = rule->name, .action = HF_LOG_RULE_EVENT, .off = true};
	snprintf(ret->why, sizeof(ret->why),
		 "log rule '%s' is off: its pattern took too many steps for a line", rule->name);
	return true;
}

static bool take_broken(struct rule *rule, int64_t now_ms, struct hf_log_finding *ret)
{
	bool hang = now_ms >= find_deadline(rule);

	if (!hang && !rule->broken)
		return false;
	rule->broken = false;
	rule->told = true;
	/* Numbers that go up and down would flood the events. */
	if (rule->action == HF_LOG_RULE_EVENT && rule->told_ms != 0 &&
	    now_ms - rule->told_ms < AGAIN_MS)
		return false;
	rule->told_ms = now_ms;
	*ret = (struct hf_log_finding){.name = rule->name, .action = rule->action, .hang = hang};
	explain_finding(rule, ret);
	return true;
}

bool hf_log_rules_next(struct hf_log_rules *rules, int64_t now_ms,
		       struct hf_log_finding *ret_finding)
{
	for (size_t i = 0; i < rules->len; i++)
		if (take_off(&rules->items[i], ret_finding) ||
		    take_broken(&rules->items[i], now_ms, ret_finding))
			return true;
	return false;
}

int64_t hf_log_rules_wake_ms(const struct hf_log_rules *rules)
{
	int64_t at = INT64_MAX;

	for (size_t i = 0; i < rules->len; i++) {
		const struct rule *rule = &rules->items[i];
		int64_t own = rule->broken || (rule->off && !rule->off_told) ? INT64_MIN
									     : find_deadline(rule);

		at = own < at ? own : at;
	}
	return at;
}
