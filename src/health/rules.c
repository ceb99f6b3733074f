/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Finds the first rule that matches evidence, and checks and hashes a table of rules. */
#include "health/rules.h"

#include "base/str.h"
#include "base/strbuf.h"

/* Most bytes of a table as text: a rule has at most some 200 bytes. */
#define TEXT_MAX ((size_t)HF_HEALTH_RULES_MAX * 256)

static bool is_match(const struct hf_health_rule *rule, const struct hf_health_evidence *e)
{
	if (rule->detector != e->detector || e->code < rule->code_min || e->code > rule->code_max)
		return false;
	if (rule->subcode >= 0 && rule->subcode != e->subcode)
		return false;
	if (rule->severity != HF_HEALTH_UNSAID && rule->severity != e->severity)
		return false;
	if (rule->bits_any && !(e->has_word && (e->word & rule->bits_any)))
		return false;
	return !rule->bits_only || (e->has_word && (e->word & ~rule->bits_only) == 0);
}

const struct hf_health_rule *hf_health_rules_match(const struct hf_health_rules *rules,
						   const struct hf_health_evidence *evidence)
{
	for (size_t i = 0; i < rules->len; i++) {
		if (is_match(&rules->items[i], evidence))
			return &rules->items[i];
	}
	/* A shared fault takes the place of the devices' own faults, which the table has rated.  Without a rule in
	 * the table it gets the built-in rule. */
	if (evidence->detector == HF_HEALTH_PEERS && rules != &hf_health_rules_builtin)
		return hf_health_rules_match(&hf_health_rules_builtin, evidence);
	return NULL;
}

/* The hash is made over a text, so that neither padding nor the byte order of a machine changes it. */
uint64_t hf_health_rules_hash(const struct hf_health_rules *rules)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(TEXT_MAX);

	hf_strbuf_addf(&sb, "%d %lld\n", rules->escalate_count, (long long)rules->escalate_window);
	for (size_t i = 0; i < rules->len; i++) {
		const struct hf_health_rule *r = &rules->items[i];

		hf_strbuf_addf(&sb, "%s %d-%d %d %s %x %x ", hf_health_detector_name(r->detector),
			       r->code_min, r->code_max, r->subcode,
			       hf_health_severity_name(r->severity), r->bits_any, r->bits_only);
		hf_strbuf_addf(&sb, "%s %s %s %s ", hf_health_class_name(r->cls),
			       hf_health_action_name(r->action), hf_health_scope_name(r->scope),
			       hf_health_clear_name(r->clear));
		hf_strbuf_addf(&sb, "%d %lld %lld %s %d %d\n", r->count, (long long)r->window,
			       (long long)r->burst, hf_health_class_name(r->below), r->same_unit,
			       r->follows);
	}
	return hf_hash_bytes(sb.data, sb.len);
}

static bool words_are_known(const struct hf_health_rule *r)
{
	return (unsigned)r->detector < HF_HEALTH_DETECTORS &&
	       (unsigned)r->cls < HF_HEALTH_CLASSES && (unsigned)r->below < HF_HEALTH_CLASSES &&
	       (unsigned)r->action < HF_HEALTH_ACTIONS && (unsigned)r->scope < HF_HEALTH_SCOPES &&
	       (unsigned)r->clear < HF_HEALTH_CLEARS &&
	       (unsigned)r->severity < HF_HEALTH_SEVERITIES;
}

static const char *rule_problem(const struct hf_health_rule *r)
{
	if (!words_are_known(r))
		return "an unknown name";
	if (r->code_min > r->code_max)
		return "the first code is larger than the last";
	if (r->count < 0 || r->count > HF_HEALTH_REPEATS_MAX)
		return "the count is larger than the number of times that are kept";
	if (r->count > 1 && r->window <= 0)
		return "a count needs a window";
	if (r->window < 0 || r->burst < 0)
		return "a span below zero";
	/* A fatal class stops the device until something repairs it, so its fault must not end by
	 * age alone. */
	if (hf_health_is_fatal(r->cls) && r->clear == HF_HEALTH_BY_AGE)
		return "a class that stops a device cannot end by age";
	/* Otherwise the first repeats would be graver than the later ones, and would end as the
	 * milder class ends. */
	if (r->count > 1 && r->below > r->cls)
		return "the class below the count is stricter than the class from the count on";
	return NULL;
}

const char *hf_health_rules_problem(const struct hf_health_rules *rules, size_t *ret_index)
{
	*ret_index = 0;
	if (rules->len > HF_HEALTH_RULES_MAX)
		return "too many rules";
	if (rules->escalate_count < 0 || rules->escalate_count > HF_HEALTH_REPEATS_MAX)
		return "escalateCount is larger than the number of stops that are kept";
	for (size_t i = 0; i < rules->len; i++) {
		const char *problem = rule_problem(&rules->items[i]);

		if (problem) {
			*ret_index = i;
			return problem;
		}
	}
	return NULL;
}
