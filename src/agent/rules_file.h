/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_RULES_FILE_H
#define HF_AGENT_RULES_FILE_H

#include "base/arena.h"
#include "health/rules.h"

HF_BEGIN_DECLS

/*
 * Reads a table of rules from a JSON file, in place of the built-in one:
 *
 *     {"rules": [{"detector": "xid", "code": 43, "class": "app", "action": "restart-process"},
 *                {"detector": "xid", "codes": [144, 150], "severity": "fatal",
 *                 "class": "gpu-reset", "action": "reset-device", "clear": "signal",
 *                 "count": 3, "window": "10m", "burst": "15s", "below": "info"}],
 *      "escalateCount": 5, "escalateWindow": "24h"}
 *
 * Further keys of a rule: subcode, bitsAny, bitsOnly, scope, sameUnit, follows.  An absent key gives
 * the widest match (any subcode) or the default (scope device, clear age).  HF_E_INVALID, with the
 * number of the rule: an unknown key, an unknown name, or a table that hf_health_rules_problem refuses.
 * All memory comes from the arena.
 */
#define HF_RULES_FILE_BYTES_MAX ((size_t)1 << 20)

int hf_rules_parse(const char *text, size_t len, struct hf_arena *arena,
		   struct hf_health_rules *ret_rules, struct hf_error *err) HF_MUST_CHECK;
/* Reads the rules from a file in the form above. */
int hf_rules_load(const char *path, struct hf_arena *arena, struct hf_health_rules *ret_rules,
		  struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
