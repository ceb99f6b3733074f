/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_RULES_FILE_H
#define HF_AGENT_RULES_FILE_H

#include "base/arena.h"
#include "health/rules.h"

HF_BEGIN_DECLS

/*
 * A table of rules from a file, in place of the built-in one:
 *
 *     {"rules": [{"detector": "xid", "code": 43, "class": "app", "action": "restart-process"},
 *                {"detector": "xid", "codes": [144, 150], "severity": "fatal",
 *                 "class": "gpu-reset", "action": "reset-device", "clear": "signal",
 *                 "count": 3, "window": "10m", "burst": "15s", "below": "info"}],
 *      "escalateCount": 5, "escalateWindow": "24h"}
 *
 * Further keys of a rule: subcode, bitsAny, bitsOnly, scope, sameUnit, follows.  What is left out
 * is what narrows nothing (any subcode, of the device, by age).  A key that nobody knows, a word
 * that is none and a table that hf_health_rules_problem refuses are HF_E_INVALID, with the number of
 * the rule.  Everything comes from the arena.
 */
#define HF_RULES_FILE_BYTES_MAX ((size_t)1 << 20)

int hf_rules_parse(const char *text, size_t len, struct hf_arena *arena,
		   struct hf_health_rules *ret_rules, struct hf_error *err) HF_MUST_CHECK;
/* Of a file: JSON as above. */
int hf_rules_load(const char *path, struct hf_arena *arena, struct hf_health_rules *ret_rules,
		  struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
