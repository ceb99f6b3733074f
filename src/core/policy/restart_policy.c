/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/str.h"

/*
 * From a class and a rule to what one end would do, if it opened an incident of its own.
 * Two tables: restart policy × class without a rule, and what a rule's action changes.
 */

enum verb {
	RESTART, /* replace it, charged to the class's budget */
	FREE,    /* replace it, charged to nothing */
	FAIL,    /* the job fails */
	BY_CODE, /* ExitCode: 1 to 127 fails, all else restarts */
};

/* Rows for UNSET and UNKNOWN: a kind always has a default, so UNSET does not reach here, and a
 * policy nobody knows must not end a job. */
static const enum verb without_rule[][HF_CLASS_APPLICATION + 1] = {
#define ROW(app)                                                                                   \
	{                                                                                          \
		[HF_CLASS_OUT_OF_MEMORY] = (app), [HF_CLASS_INFRASTRUCTURE] = RESTART,             \
		[HF_CLASS_DEVICE] = RESTART, [HF_CLASS_ADMISSION] = RESTART,                       \
		[HF_CLASS_USER] = FREE, [HF_CLASS_APPLICATION] = (app),                            \
	}
	[HF_RESTART_UNSET] = ROW(RESTART),      [HF_RESTART_ALWAYS] = ROW(RESTART),
	[HF_RESTART_ON_FAILURE] = ROW(RESTART), [HF_RESTART_NEVER] = ROW(FAIL),
	[HF_RESTART_EXIT_CODE] = ROW(BY_CODE),  [HF_RESTART_UNKNOWN] = ROW(RESTART),
#undef ROW
};

static const struct {
	enum verb verb;
	bool sets_scope;
	enum hf_scope scope;
} with_rule[] = {
	[HF_RULE_FAIL_JOB] = {FAIL, false, HF_SCOPE_REPLICA},
	[HF_RULE_IGNORE] = {FREE, false, HF_SCOPE_REPLICA},
	[HF_RULE_COUNT] = {RESTART, false, HF_SCOPE_REPLICA},
	[HF_RULE_RESTART_REPLICA] = {RESTART, true, HF_SCOPE_REPLICA},
	[HF_RULE_RESTART_JOB] = {RESTART, true, HF_SCOPE_JOB},
};

enum hf_budget hf_class_budget(enum hf_class cls)
{
	static const enum hf_budget budgets[] = {
		[HF_CLASS_NONE] = HF_BUDGET_NONE,
		[HF_CLASS_OURS] = HF_BUDGET_NONE,
		[HF_CLASS_OUT_OF_MEMORY] = HF_BUDGET_APPLICATION,
		[HF_CLASS_INFRASTRUCTURE] = HF_BUDGET_INFRASTRUCTURE,
		[HF_CLASS_DEVICE] = HF_BUDGET_DEVICE,
		[HF_CLASS_ADMISSION] = HF_BUDGET_INFRASTRUCTURE,
		[HF_CLASS_USER] = HF_BUDGET_NONE,
		[HF_CLASS_APPLICATION] = HF_BUDGET_APPLICATION,
	};

	hf_assert((size_t)cls < HF_ARRAY_LEN(budgets));
	return budgets[cls];
}

bool hf_class_is_application(enum hf_class cls)
{
	return hf_class_budget(cls) == HF_BUDGET_APPLICATION;
}

enum hf_budget hf_end_budget(const struct hf_end *end)
{
	return end->stray ? HF_BUDGET_NONE : hf_class_budget(end->cls);
}

/* Upstream calls 128 and above retryable, and every end without a code of the kind's own
 * container (an init container, a sidecar, an eviction).  Code 0 in a Failed pod means that
 * something else in it failed: the same. */
static bool is_permanent(const struct hf_end *end)
{
	return end->exit_code.set && end->exit_code.value > 0 && end->exit_code.value < 128;
}

static enum hf_scope scope_of(const struct hf_brain *b, const struct hf_end *end)
{
	/* Of ranks that hang nobody knows who is at fault. */
	return end->kind == HF_END_HUNG ? HF_SCOPE_JOB : b->job.recovery.scope;
}

/* The kubelet has decided already, and it remains to be counted; or who set the deadline has. */
static bool is_decided(const struct hf_end *end)
{
	return end->kind == HF_END_RESTARTED || end->kind == HF_END_HUNG;
}

void hf_policy_decide(const struct hf_brain *b, struct hf_end *end)
{
	enum hf_restart_policy restart = b->job.roles[end->role].restart;
	enum verb verb;

	hf_assert((size_t)restart < HF_ARRAY_LEN(without_rule));
	hf_assert(end->cls > HF_CLASS_OURS && end->cls <= HF_CLASS_APPLICATION);
	end->scope = scope_of(b, end);
	if (end->rule >= 0) {
		enum hf_rule_action action = b->view->run_policy.rules[end->rule].action;

		hf_assert((size_t)action < HF_ARRAY_LEN(with_rule));
		verb = with_rule[action].verb;
		if (with_rule[action].sets_scope)
			end->scope = with_rule[action].scope;
		end->verdict = HF_VERDICT_RULE;
	} else if (is_decided(end)) {
		verb = RESTART;
	} else {
		verb = without_rule[restart][end->cls];
		if (end->cls == HF_CLASS_DEVICE && b->job.recovery.on_unhealthy == HF_DEVICE_FAIL)
			verb = FAIL;
		if (verb == BY_CODE)
			verb = is_permanent(end) ? FAIL : RESTART;
		end->verdict = end->cls == HF_CLASS_DEVICE   ? HF_VERDICT_DEVICE
			       : restart == HF_RESTART_NEVER ? HF_VERDICT_NEVER
							     : HF_VERDICT_EXIT_CODE;
	}
	end->fate = verb == FAIL ? HF_FATE_FAIL : HF_FATE_RESTART;
	/* A stray eviction is nobody's fault, whatever a rule would charge for it. */
	end->budget = verb == RESTART ? hf_end_budget(end) : HF_BUDGET_NONE;
	if (end->fate != HF_FATE_FAIL)
		end->verdict = NULL;
}
