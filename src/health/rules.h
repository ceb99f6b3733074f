/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_RULES_H
#define HF_HEALTH_RULES_H

#include "health/evidence.h"

HF_BEGIN_DECLS

/*
 * The rules that rate evidence: a built-in table, which a file may replace.  The first rule that matches counts, so
 * narrow rules come first.  Evidence without a rule is UNRATED: it is recorded, and nothing acts on it.
 */

/* Most rules that a table from a file may have. */
#define HF_HEALTH_RULES_MAX 512
/* Most times of repeats that a fault remembers; the count of a rule may not be higher. */
#define HF_HEALTH_REPEATS_MAX 8

struct hf_health_rule {
	/* Which evidence the rule matches. */
	enum hf_health_detector detector;
	int32_t code_min, code_max;
	int32_t subcode;                  /* -1: any */
	enum hf_health_severity severity; /* UNSAID: any */
	uint32_t bits_any; /* the first word must have at least one of these bits; 0: not checked */
	/* the first word must have no bits besides these; 0: not checked */
	uint32_t bits_only;
	/* How the rule rates the evidence that the rule matches. */
	enum hf_health_class cls;
	enum hf_health_action action;
	enum hf_health_scope scope;
	enum hf_health_clear clear;
	/* The class holds only from the count-th time within the window on; before that the class is `below`.
	 * Times that are closer together than the burst count once. */
	int32_t count; /* 0 and 1: the class holds from the first time on */
	hf_time window;
	hf_time burst;
	enum hf_health_class below;
	bool same_unit; /* the repeats of each unit of a device count separately */
	/* If the device has another fault that may be the cause, the fault follows from it and never acts. */
	bool follows;
};

struct hf_health_rules {
	const struct hf_health_rule *items;
	size_t len;
	/* After this many stops of one device within the window, by any faults, the next fault needs a person. */
	int32_t escalate_count;
	hf_time escalate_window;
};

extern const struct hf_health_rules hf_health_rules_builtin;

/* Finds the rule for the evidence; NULL: no rule matches.  A table without a rule for PEERS uses the built-in
 * rule. */
const struct hf_health_rule *hf_health_rules_match(const struct hf_health_rules *rules,
						   const struct hf_health_evidence *evidence);
/* A hash over the table, the same on every machine.  It is published, so that a person sees which nodes have the
 * same rules. */
uint64_t hf_health_rules_hash(const struct hf_health_rules *rules);
/* Returns NULL, or what is wrong with a table as a static text; ret_index is the index of the rule. */
const char *hf_health_rules_problem(const struct hf_health_rules *rules, size_t *ret_index);

HF_END_DECLS

#endif
