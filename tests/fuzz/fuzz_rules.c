/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: a rules file of the agent. The file is refused, or gives a valid table, and the same
 * table each time. */

#include "agent/rules_file.h"
#include "base/arena.h"
#include "fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct hf_health_rules rules, again;
	struct hf_health_evidence evidence = hf_health_evidence_none();
	struct hf_error err = {0};
	size_t index;
	int rc;

	if (size > ((size_t)64 << 10))
		return 0;
	if (hf_rules_parse((const char *)data, size, arena, &rules, &err) != 0) {
		hf_assert(err.text[0] != '\0');
		return 0;
	}
	hf_assert(rules.len <= HF_HEALTH_RULES_MAX);
	hf_assert(hf_health_rules_problem(&rules, &index) == NULL);
	rc = hf_rules_parse((const char *)data, size, arena, &again, &err);
	hf_assert(rc == 0);
	hf_assert(hf_health_rules_hash(&rules) == hf_health_rules_hash(&again));
	for (size_t i = 0; i < rules.len; i++) {
		evidence.detector = rules.items[i].detector;
		evidence.code = rules.items[i].code_min;
		(void)hf_health_rules_match(&rules, &evidence);
	}
	return 0;
}
