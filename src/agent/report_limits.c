/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Counts reports by process, by pod and for the node, anew each second.
 * Input: process and pod of a report.  Output: whether the pod may be looked up, and whether the report may be taken.
 */
#include "agent/report_limits.h"

#include "base/str.h"

#include <string.h>

static void begin_second(struct hf_report_limits *t, hf_time mono)
{
	hf_time second = mono / HF_SECOND;

	if (second == t->second)
		return;
	memset(t, 0, sizeof(*t));
	t->second = second;
}

/* Finds or adds the counts of a sender. NULL: the table has no place for a further sender. */
static struct hf_report_limits_count *find_count(struct hf_report_limits_count *counts,
						 uint64_t who)
{
	for (size_t i = 0; i < 8; i++) {
		struct hf_report_limits_count *c = &counts[(who + i) % HF_REPORT_LIMITS_SENDERS];

		if (c->who == 0)
			c->who = who;
		if (c->who == who)
			return c;
	}
	return NULL;
}

bool hf_report_limits_may_ask(struct hf_report_limits *t, pid_t pid, hf_time mono)
{
	struct hf_report_limits_count *process;

	begin_second(t, mono);
	process = find_count(t->processes, (uint64_t)pid);
	/* Refuses the report without a look-up if the process, or the pod found for its pid in this second, is at
	 * its limit. Below the limit the pod is looked up for each report, because the pid may have gone to a
	 * process of another pod. */
	if (process && (process->reports++ >= HF_REPORT_LIMITS_PROCESS ||
			(process->pod && process->pod->reports >= HF_REPORT_LIMITS_POD)))
		return false;
	return t->lookups++ < HF_REPORT_LIMITS_LOOKUPS;
}

bool hf_report_limits_may_hear(struct hf_report_limits *t, pid_t pid, const char *pod_uid)
{
	struct hf_report_limits_count *pod = find_count(t->pods, hf_hash_str(pod_uid) | 1);
	struct hf_report_limits_count *process = find_count(t->processes, (uint64_t)pid);

	if (process)
		process->pod = pod;
	if (pod && pod->reports++ >= HF_REPORT_LIMITS_POD)
		return false;
	return t->heard++ < HF_REPORT_LIMITS_NODE;
}
