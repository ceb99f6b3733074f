/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/brain_internal.h"

#include "base/str.h"

/*
 * What an end is put down to: the first row that matches.  "Ours" has no row: an end of an
 * older generation or attempt is never collected.  Node and device evidence get their rows
 * when they are observed.
 */

static bool out_of_memory(const struct hf_end *end)
{
	if (end->kind != HF_END_FAILED)
		return false;
	for (size_t i = 0; i < end->pod->containers_len; i++) {
		if (end->pod->containers[i].phase == HF_CONTAINER_TERMINATED &&
		    hf_streq(end->pod->containers[i].terminated_reason, "OOMKilled"))
			return true;
	}
	return false;
}

/* The control plane or the kubelet says that it took the pod away.  Plain "Evicted" is not
 * here: without the condition, the pod broke a limit of its own. */
static bool disrupted(const struct hf_end *end)
{
	if (!end->pod)
		return false;
	for (size_t i = 0; i < end->pod->conditions_len; i++) {
		if (hf_streq(end->pod->conditions[i].type, "DisruptionTarget") &&
		    hf_streq(end->pod->conditions[i].status, "True"))
			return true;
	}
	return end->kind == HF_END_FAILED && (hf_streq(end->pod->reason, "NodeShutdown") ||
					      hf_streq(end->pod->reason, "Terminated"));
}

static bool vanished(const struct hf_end *end)
{
	return end->kind == HF_END_VANISHED;
}

static bool refused(const struct hf_end *end)
{
	const char *reason = end->pod ? end->pod->reason : NULL;

	return end->kind == HF_END_FAILED && reason &&
	       (hf_streq(reason, "UnexpectedAdmissionError") ||
		hf_str_has_prefix(reason, "OutOf") || hf_streq(reason, "NodeAffinity"));
}

static bool deleted(const struct hf_end *end)
{
	return end->kind == HF_END_DELETED;
}

static bool anything(const struct hf_end *end)
{
	return end->kind == HF_END_FAILED || end->kind == HF_END_RESTARTED;
}

static const struct {
	bool (*matches)(const struct hf_end *end);
	enum hf_class cls;
	bool evidence;
} rows[] = {
	{out_of_memory, HF_CLASS_OUT_OF_MEMORY, true},
	{disrupted, HF_CLASS_INFRASTRUCTURE, true},
	{vanished, HF_CLASS_INFRASTRUCTURE, false},
	{refused, HF_CLASS_ADMISSION, true},
	{deleted, HF_CLASS_USER, true},
	{anything, HF_CLASS_APPLICATION, true},
};

void hf_classify(const struct hf_brain *b, struct hf_end *end)
{
	hf_assert(b->ledger.present);
	hf_assert(end->pod || end->kind == HF_END_VANISHED);
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		if (rows[i].matches(end)) {
			end->cls = rows[i].cls;
			end->evidence = rows[i].evidence;
			return;
		}
	}
	hf_assert(!"an end of no class");
}
