/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/reader_internal.h"

#include "base/str.h"
#include "pattern/log_rule.h"

/*
 * Reads recovery.logRules. Output: the rules as one text for `holdfast exec`, a rule a line (pattern/log_rule.h), and what is
 * wrong with them, for validation. The expressions are compiled here, because core is without PCRE2.
 */

/* All rules, each $ written twice. */
#define TEXT_BYTES_MAX ((size_t)2 * HF_LOG_RULES_MAX * HF_LOG_RULE_TEXT_MAX)

struct rule {
	const char *name, *pattern, *must, *action; /* NULL: absent */
};

struct reading {
	struct hf_reader *r;
	struct hf_field_errors *errors;
	const char *path; /* of recovery */
	const struct rule *rules;
	size_t len;
};

static void add_error(const struct reading *reading, size_t i, const char *field, const char *value,
		      const struct hf_error *err)
{
	hf_field_add(reading->errors, HF_PROBLEM_INVALID,
		     hf_field_quote(reading->errors, hf_str_or(value, "")), err->text,
		     "%s.logRules[%zu].%s", reading->path, i, field);
}

static bool is_name_taken(const struct reading *reading, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (hf_streq(reading->rules[k].name, reading->rules[i].name))
			return true;
	return false;
}

/* Returns whether the action is FailJob. */
static bool check_rule(const struct reading *reading, size_t i)
{
	const struct rule *rule = &reading->rules[i];
	enum hf_log_rule_action action = HF_LOG_RULE_RESTART;
	struct hf_log_rule_must must;
	struct hf_error err;

	if (hf_log_rule_check_name(rule->name, &err) != 0)
		add_error(reading, i, "name", rule->name, &err);
	else if (is_name_taken(reading, i))
		hf_field_add(reading->errors, HF_PROBLEM_DUPLICATE,
			     hf_field_quote(reading->errors, rule->name), "",
			     "%s.logRules[%zu].name", reading->path, i);
	if (hf_log_rule_parse_must(rule->must, &must, &err) != 0)
		add_error(reading, i, "must", rule->must, &err);
	else if (hf_log_rule_check_pattern(rule->pattern, must.kind, &err) != 0)
		add_error(reading, i, "pattern", rule->pattern, &err);
	if (hf_log_rule_parse_action(rule->action, &action, &err) != 0)
		hf_field_add(reading->errors, HF_PROBLEM_NOT_SUPPORTED,
			     hf_field_quote(reading->errors, rule->action),
			     "supported values: \"Event\", \"FailJob\", \"Restart\"",
			     "%s.logRules[%zu].action", reading->path, i);
	return action == HF_LOG_RULE_FAIL_JOB;
}

static const struct rule *read_rules(struct hf_reader *r, const struct hf_json *array, size_t len)
{
	struct rule *rules = HF_ARENA_ARRAY(r->arena, struct rule, len + 1);

	for (size_t i = 0; i < len; i++) {
		const struct hf_json *item =
			hf_reader_item(r, array, "logRules", i, HF_JSON_OBJECT);
		size_t mark = hf_reader_enter(r, ".logRules[%zu]", i);

		rules[i].name = hf_reader_str(r, item, "name");
		rules[i].pattern = hf_reader_str(r, item, "pattern");
		rules[i].must = hf_reader_str(r, item, "must");
		rules[i].action = hf_reader_str(r, item, "action");
		hf_reader_leave(r, mark);
	}
	return rules;
}

/* A kubelet reads $(NAME) in the value of a variable as that variable, and $$ as $. */
static void add_escaped(struct hf_strbuf *sb, const char *text)
{
	for (const char *at = text; *at != '\0'; at++)
		hf_strbuf_addf(sb, "%s%c", *at == '$' ? "$" : "", *at);
}

static const char *write_rules(const struct reading *reading)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(TEXT_BYTES_MAX);

	for (size_t i = 0; i < reading->len; i++) {
		const struct rule *rule = &reading->rules[i];

		hf_strbuf_addf(&sb, "%s%s must %s", i > 0 ? "\n" : "", rule->name, rule->must);
		if (rule->action != NULL)
			hf_strbuf_addf(&sb, " or %s", rule->action);
		if (!hf_str_is_empty(rule->pattern)) {
			hf_strbuf_addstr(&sb, ": ");
			add_escaped(&sb, rule->pattern);
		}
	}
	return hf_arena_strdup(reading->r->arena, sb.data);
}

void hf_read_log_rules(struct hf_reader *r, const struct hf_json *recovery,
		       struct hf_recovery_spec *ret_recovery)
{
	const struct hf_json *array = hf_reader_get(r, recovery, "logRules", HF_JSON_ARRAY);
	size_t len = hf_json_len(array);
	struct hf_field_errors *errors;
	struct reading reading = {.r = r};

	ret_recovery->has_log_rules = array != NULL;
	ret_recovery->log_rules = NULL;
	ret_recovery->log_rules_fail = false;
	ret_recovery->log_rule_errors_len = 0;
	if (array == NULL)
		return;
	errors = reading.errors = HF_ARENA_NEW(r->arena, struct hf_field_errors);
	/* A reader that collects no errors keeps no path. */
	reading.path = hf_arena_strdup(r->arena, r->errors != NULL ? hf_reader_path(r)
								   : "spec.runPolicy.recovery");
	hf_field_errors_init(errors, r->arena);
	if (len > HF_LOG_RULES_MAX)
		hf_field_add(
			errors, HF_PROBLEM_TOO_MANY, hf_arena_printf(r->arena, "%zu", len),
			hf_arena_printf(r->arena, "must have at most %d items", HF_LOG_RULES_MAX),
			"%s.logRules", reading.path);
	reading.len = len < HF_LOG_RULES_MAX ? len : HF_LOG_RULES_MAX;
	reading.rules = read_rules(r, array, reading.len);
	for (size_t i = 0; i < reading.len; i++)
		ret_recovery->log_rules_fail |= check_rule(&reading, i);
	ret_recovery->log_rule_errors = errors->items;
	ret_recovery->log_rule_errors_len = errors->len;
	if (reading.len > 0 && errors->len == 0)
		ret_recovery->log_rules = write_rules(&reading);
}
