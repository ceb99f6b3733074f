/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"

/*
 * Three budgets, one for each kind of cause: application, infrastructure, device.  An incident is
 * charged one unit of one budget.  backoffLimit 2 allows two restarts; the third incident ends the
 * job.  Writes: the ledger's counters, and in the open incident which budget was charged.
 */

static const struct {
	const char *verdict;
	const char *message; /* the first text is upstream's */
} words[HF_BUDGETS] = {
	[HF_BUDGET_APPLICATION] = {"BackoffLimitExceeded", "backoff"},
	[HF_BUDGET_INFRASTRUCTURE] = {"InfrastructureLimitExceeded", "infrastructure"},
	[HF_BUDGET_DEVICE] = {"DeviceLimitExceeded", "device"},
};

bool hf_budget_allows(const struct hf_brain *b, enum hf_budget budget)
{
	hf_assert(budget <= HF_BUDGET_NONE);
	if (budget == HF_BUDGET_NONE || !b->job.recovery.limits[budget].set)
		return true;
	return b->ledger.restarts[budget] + 1 <= b->job.recovery.limits[budget].value;
}

void hf_budget_charge(struct hf_brain *b, enum hf_budget budget)
{
	hf_assert(budget <= HF_BUDGET_NONE);
	hf_assert(b->ledger.incident.id > 0);
	b->ledger.incident.charged = budget;
	if (budget < HF_BUDGETS)
		b->ledger.restarts[budget]++;
}

const char *hf_budget_verdict(enum hf_budget budget)
{
	hf_assert(budget < HF_BUDGETS);
	return words[budget].verdict;
}

enum hf_budget hf_budget_of_verdict(const char *verdict)
{
	for (int i = 0; i < HF_BUDGETS; i++) {
		if (hf_streq(words[i].verdict, verdict))
			return (enum hf_budget)i;
	}
	return HF_BUDGET_NONE;
}

const char *hf_budget_message(const struct hf_brain *b, enum hf_budget budget)
{
	hf_assert(budget < HF_BUDGETS);
	return hf_arena_printf(b->arena,
			       "Job %s has failed because it has reached the specified %s limit%s",
			       b->view->name, words[budget].message, hf_never_started_text(b));
}
