/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Any text as a log rule, and any lines: no finding has another rule's name, no text is longer than its buffer, and a rule
 * that was told is told once. The first line is the rule; each further line is read a second later. */
#include "fuzz/fuzz.h"
#include "pattern/log_rule.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static void check_findings(struct hf_log_rules *rules, int64_t now_ms)
{
	struct hf_log_finding finding;
	int found = 0;

	while (hf_log_rules_next(rules, now_ms, &finding)) {
		hf_assert(memchr(finding.why, '\0', sizeof(finding.why)) != NULL);
		hf_assert(strstr(finding.why, finding.name) != NULL);
		/* It is broken, and its pattern may be off. */
		hf_assert(++found <= 2);
	}
	hf_assert(hf_log_rules_wake_ms(rules) > now_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data, *end = size > 0 ? memchr(bytes, '\n', size) : NULL;
	struct hf_log_rules *rules = hf_log_rules_create();
	size_t len = end != NULL ? (size_t)(end - bytes) : size;
	int64_t now_ms = 1000;
	struct hf_error err;

	if (hf_log_rules_add(rules, bytes, len, &err) == 0) {
		hf_log_rules_begin(rules, now_ms);
		for (size_t at = len + 1; at < size; now_ms += 1000) {
			const char *stop = memchr(bytes + at, '\n', size - at);
			size_t n = stop != NULL ? (size_t)(stop - bytes) - at : size - at;
			/* Of its own size, so that a byte too far is seen. */
			char *line = hf_xmalloc(n > 0 ? n : 1);

			memcpy(line, bytes + at, n);
			hf_log_rules_read(rules, line, n, now_ms);
			free(line);
			check_findings(rules, now_ms);
			at += n + 1;
		}
		check_findings(rules, now_ms + 3000000);
	}
	hf_log_rules_destroy(rules);
	return 0;
}
