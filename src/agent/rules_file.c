/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads a table of rules from JSON.
 * Input: a file.  Output: struct hf_health_rules, or an error with the number of the rule and the key.
 * Invariant: an unknown key is an error.
 */
#include "agent/rules_file.h"

#include "base/fs.h"
#include "base/str.h"
#include "json/json.h"

#include <string.h>

struct reader {
	const struct hf_json *rule;
	/* the number of known keys found in the object; if it has more keys, one is unknown */
	size_t read;
	struct hf_error *err;
	int rc;
};

static const struct hf_json *take_value(struct reader *r, const char *key)
{
	const struct hf_json *value = hf_json_get(r->rule, key);

	r->read += value != NULL;
	return value;
}

static void refuse_rule(struct reader *r, const char *key, const char *what)
{
	if (r->rc == 0)
		r->rc = hf_error_set(r->err, HF_E_INVALID, "'%s' %s", key, what);
}

static int64_t read_number(struct reader *r, const char *key, int64_t min, int64_t max,
			   int64_t fallback)
{
	const struct hf_json *value = take_value(r, key);
	int64_t found = hf_json_i64(value, fallback);

	if (value != NULL && (hf_json_type(value) != HF_JSON_INT || found < min || found > max)) {
		refuse_rule(r, key, "is not a number in its range");
		return fallback;
	}
	return found;
}

static bool read_bool(struct reader *r, const char *key)
{
	const struct hf_json *value = take_value(r, key);

	if (value != NULL && hf_json_type(value) != HF_JSON_BOOL)
		refuse_rule(r, key, "must be true or false");
	return hf_json_true(value, false);
}

static hf_time read_span(struct reader *r, const char *key, hf_time fallback)
{
	const struct hf_json *value = take_value(r, key);
	hf_time found = fallback;

	if (value != NULL && hf_span_parse(hf_json_str(value, ""), &found, NULL) != 0)
		refuse_rule(r, key, "is not a duration such as \"10m\"");
	return found;
}

/* Reads an enumeration by its words; name_fn gives the word of a value. */
#define WORD(r, key, lvalue, name_fn, n, needed)                                                   \
	do {                                                                                       \
		const struct hf_json *word_ = take_value((r), (key));                              \
		int at_ = 0;                                                                       \
		while (word_ != NULL && at_ < (n) &&                                               \
		       !hf_streq(name_fn((__typeof__(lvalue))at_), hf_json_str(word_, NULL)))      \
			at_++;                                                                     \
		if (word_ != NULL && at_ < (n))                                                    \
			(lvalue) = (__typeof__(lvalue))at_;                                        \
		else if (word_ != NULL || (needed))                                                \
			refuse_rule((r), (key),                                                    \
				    word_ != NULL ? "is not one of the allowed names"              \
						  : "is missing");                                 \
	} while (0)

static void read_codes(struct reader *r, struct hf_health_rule *rule)
{
	const struct hf_json *range = take_value(r, "codes");

	rule->code_min = rule->code_max = (int32_t)read_number(r, "code", 0, INT32_MAX, 0);
	if (range == NULL) {
		if (hf_json_get(r->rule, "code") == NULL)
			rule->code_max = INT32_MAX;
		return;
	}
	if (hf_json_get(r->rule, "code") != NULL || hf_json_len(range) != 2 ||
	    hf_json_type(hf_json_item(range, 0)) != HF_JSON_INT ||
	    hf_json_type(hf_json_item(range, 1)) != HF_JSON_INT ||
	    hf_json_i64(hf_json_item(range, 0), -1) < 0 ||
	    hf_json_i64(hf_json_item(range, 1), -1) > INT32_MAX ||
	    hf_json_i64(hf_json_item(range, 0), 0) > hf_json_i64(hf_json_item(range, 1), 0)) {
		refuse_rule(r, "codes",
			    "must be a first and a last number, without 'code' beside it");
		return;
	}
	rule->code_min = (int32_t)hf_json_i64(hf_json_item(range, 0), 0);
	rule->code_max = (int32_t)hf_json_i64(hf_json_item(range, 1), 0);
}

/* Refuses a rule that no fault can match: Xid 79 is reported by the detector buslost. */
static void check_bus(struct reader *r, const struct hf_health_rule *rule)
{
	if (rule->detector == HF_HEALTH_XID && rule->code_min == HF_HEALTH_CODE_BUS &&
	    rule->code_max == HF_HEALTH_CODE_BUS)
		refuse_rule(r, "detector", "has no code 79: use detector 'buslost' for a lost bus");
}

static int read_rule(const struct hf_json *item, struct hf_health_rule *rule, struct hf_error *err)
{
	struct reader r = {.rule = item, .err = err};

	if (hf_json_type(item) != HF_JSON_OBJECT)
		return hf_error_set(err, HF_E_INVALID, "is not an object");
	*rule = (struct hf_health_rule){.subcode = -1};
	WORD(&r, "detector", rule->detector, hf_health_detector_name, HF_HEALTH_DETECTORS, true);
	read_codes(&r, rule);
	check_bus(&r, rule);
	rule->subcode = (int32_t)read_number(&r, "subcode", 0, INT32_MAX, -1);
	WORD(&r, "severity", rule->severity, hf_health_severity_name, HF_HEALTH_SEVERITIES, false);
	rule->bits_any = (uint32_t)read_number(&r, "bitsAny", 0, UINT32_MAX, 0);
	rule->bits_only = (uint32_t)read_number(&r, "bitsOnly", 0, UINT32_MAX, 0);
	WORD(&r, "class", rule->cls, hf_health_class_name, HF_HEALTH_CLASSES, true);
	WORD(&r, "action", rule->action, hf_health_action_name, HF_HEALTH_ACTIONS, true);
	WORD(&r, "scope", rule->scope, hf_health_scope_name, HF_HEALTH_SCOPES, false);
	WORD(&r, "clear", rule->clear, hf_health_clear_name, HF_HEALTH_CLEARS, false);
	rule->count = (int32_t)read_number(&r, "count", 0, HF_HEALTH_REPEATS_MAX, 0);
	rule->window = read_span(&r, "window", 0);
	rule->burst = read_span(&r, "burst", 0);
	WORD(&r, "below", rule->below, hf_health_class_name, HF_HEALTH_CLASSES, false);
	rule->same_unit = read_bool(&r, "sameUnit");
	rule->follows = read_bool(&r, "follows");
	(void)take_value(&r, "comment");
	if (r.rc == 0 && r.read != hf_json_len(item))
		return hf_error_set(err, HF_E_INVALID, "has an unknown key");
	return r.rc;
}

static int read_all(const struct hf_json *root, struct hf_arena *arena,
		    struct hf_health_rules *ret_rules, struct hf_error *err)
{
	struct reader r = {.rule = root, .err = err};
	const struct hf_json *list = take_value(&r, "rules");
	struct hf_health_rules rules = {.len = hf_json_len(list)};
	struct hf_health_rule *items;
	const char *problem;
	size_t at;

	if (hf_json_type(list) != HF_JSON_ARRAY || rules.len > HF_HEALTH_RULES_MAX)
		return hf_error_set(err, HF_E_INVALID, "'rules' must be a list of at most %d rules",
				    HF_HEALTH_RULES_MAX);
	items = HF_ARENA_ARRAY(arena, struct hf_health_rule, rules.len + 1);
	for (size_t i = 0; i < rules.len; i++)
		if (read_rule(hf_json_item(list, i), &items[i], err) != 0)
			return hf_error_wrap(err, "rule %zu", i + 1);
	rules.items = items;
	rules.escalate_count = (int32_t)read_number(&r, "escalateCount", 0, HF_HEALTH_REPEATS_MAX,
						    hf_health_rules_builtin.escalate_count);
	rules.escalate_window =
		read_span(&r, "escalateWindow", hf_health_rules_builtin.escalate_window);
	(void)take_value(&r, "comment");
	if (r.rc != 0)
		return r.rc;
	if (r.read != hf_json_len(root))
		return hf_error_set(err, HF_E_INVALID, "there is an unknown key beside 'rules'");
	problem = hf_health_rules_problem(&rules, &at);
	if (problem != NULL)
		return hf_error_set(err, HF_E_INVALID, "rule %zu: %s", at + 1, problem);
	*ret_rules = rules;
	return 0;
}

int hf_rules_parse(const char *text, size_t len, struct hf_arena *arena,
		   struct hf_health_rules *ret_rules, struct hf_error *err)
{
	HF_AUTO_JSON root = NULL;
	int rc = hf_json_parse(text, len, NULL, &root, err);

	return rc == 0 ? read_all(root, arena, ret_rules, err) : rc;
}

int hf_rules_load(const char *path, struct hf_arena *arena, struct hf_health_rules *ret_rules,
		  struct hf_error *err)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_RULES_FILE_BYTES_MAX);
	int rc = hf_fs_read_regular(path, &text, err);

	if (rc == 0)
		rc = hf_rules_parse(text.data, text.len, arena, ret_rules, err);
	return rc == 0 ? 0 : hf_error_wrap(err, "cannot use the rules in '%s'", path);
}
