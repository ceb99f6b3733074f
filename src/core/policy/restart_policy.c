/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

/*
 * Fate, scope, budget and verdict of a termination, as if the termination opened an incident.
 * Input: its class, the rule that matches, the role's restartPolicy.  Two tables: one for
 * terminations without a matching rule, one for the actions of rules.
 */

enum verb {
	RESTART, /* restart the rank, charged to the class's budget */
	FREE,    /* restart the rank, charged to nothing */
	FAIL,    /* the job fails */
	/* restartPolicy ExitCode: 1 to 127 fails the job, any other code restarts the rank */
	BY_CODE,
};

/* The verb for each restart policy and class, without a rule.  Every kind has a default policy, so
 * UNSET does not occur.  An unknown policy must not end a job, so it restarts. */
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

enum hf_budget hf_termination_budget(const struct hf_termination *termination)
{
	return termination->stray || termination->same_fault ? HF_BUDGET_NONE
							     : hf_class_budget(termination->cls);
}

/* The exit code is permanent under restartPolicy ExitCode.  Upstream calls codes of 128 and above
 * retryable.  A termination without a code of the kind's own container (an init container, a
 * sidecar, an eviction) is retryable, too.  Code 0 in a Failed pod means that another container
 * failed: also retryable. */
static bool is_permanent(const struct hf_termination *termination)
{
	return termination->exit_code.set && termination->exit_code.value > 0 &&
	       termination->exit_code.value < 128;
}

/* The exit code with which NVIDIA's resiliency tools say that a restart cannot help. */
#define DO_NOT_RESTART_CODE 93

/* The code of the kind's own container; absent where the program did not end by itself. */
static struct hf_opt_int find_own_code(const struct hf_brain *b,
				       const struct hf_termination *termination)
{
	const struct hf_container_seen *own;
	struct hf_opt_int none = {0};

	if (!termination->pod || termination->cls != HF_CLASS_APPLICATION ||
	    termination->kind == HF_TERMINATION_HUNG)
		return none;
	if (termination->kind != HF_TERMINATION_RESTARTED)
		return termination->exit_code;
	own = hf_own_container(b, termination->role, termination->pod);
	return own ? hf_container_last_termination(own).exit_code : none;
}

/* The verdict of a code that asks for no restart; NULL: it does not.  A rule of the job that matches goes before this. */
static const char *find_code_verdict(const struct hf_brain *b,
				     const struct hf_termination *termination)
{
	struct hf_opt_int code = find_own_code(b, termination);

	if (code.set && code.value == DO_NOT_RESTART_CODE)
		return HF_VERDICT_DO_NOT_RESTART;
	return code.set && code.value == HF_LOG_RULE_FAIL_EXIT_CODE &&
			       b->job.recovery.log_rules_fail
		       ? HF_VERDICT_LOG_RULE
		       : NULL;
}

static enum hf_scope find_scope(const struct hf_brain *b, const struct hf_termination *termination)
{
	/* If all ranks hang, no report names the rank at fault, so all ranks restart. */
	return termination->kind == HF_TERMINATION_HUNG ? HF_SCOPE_JOB : b->job.recovery.scope;
}

/* The restart policy has no say: the kubelet has restarted the container already, or
 * progressDeadlineSeconds has decided. */
static bool is_decided(const struct hf_termination *termination)
{
	return termination->kind == HF_TERMINATION_RESTARTED ||
	       termination->kind == HF_TERMINATION_HUNG;
}

/* backoffLimit is 0.  The kubelet restarts a container the first time without a delay, so such a
 * limit needs pods that the kubelet never restarts. */
static bool allows_no_failure(const struct hf_brain *b)
{
	const struct hf_opt_int *limit = &b->job.recovery.limits[HF_BUDGET_APPLICATION];

	return limit->set && limit->value == 0;
}

/*
 * The restartPolicy to write into pods.  The kubelet must not restart a container in four cases:
 *
 * - restartPolicy ExitCode or podFailurePolicy looks at exit codes.
 * - All ranks restart together.
 * - The pod fences itself: a kubelet that wakes up would run it beside its replacement.
 * - backoffLimit is 0 under restartPolicy OnFailure.
 */
enum hf_restart_policy hf_restart_policy_of_pods(const struct hf_brain *b,
						 const struct hf_role *role)
{
	if (role->restart == HF_RESTART_EXIT_CODE || b->job.recovery.scope == HF_SCOPE_JOB ||
	    b->job.recovery.fence_seconds > 0 || b->view->run_policy.has_pod_failure_policy ||
	    (role->restart == HF_RESTART_ON_FAILURE && allows_no_failure(b)))
		return HF_RESTART_NEVER;
	return role->restart;
}

void hf_restart_policy_decide(const struct hf_brain *b, struct hf_termination *termination)
{
	enum hf_restart_policy restart = b->job.roles[termination->role].restart;
	const char *code_verdict = find_code_verdict(b, termination);
	enum verb verb;

	hf_assert((size_t)restart < HF_ARRAY_LEN(without_rule));
	hf_assert(termination->cls > HF_CLASS_OURS && termination->cls <= HF_CLASS_APPLICATION);
	termination->scope = find_scope(b, termination);
	if (termination->rule >= 0) {
		enum hf_rule_action action = b->view->run_policy.rules[termination->rule].action;

		hf_assert((size_t)action < HF_ARRAY_LEN(with_rule));
		verb = with_rule[action].verb;
		if (with_rule[action].sets_scope)
			termination->scope = with_rule[action].scope;
		termination->verdict = HF_VERDICT_RULE;
	} else if (code_verdict) {
		verb = FAIL;
		termination->verdict = code_verdict;
	} else if (is_decided(termination)) {
		verb = RESTART;
	} else {
		verb = without_rule[restart][termination->cls];
		if (termination->cls == HF_CLASS_DEVICE &&
		    b->job.recovery.on_unhealthy == HF_DEVICE_FAIL)
			verb = FAIL;
		if (verb == BY_CODE)
			verb = is_permanent(termination) ? FAIL : RESTART;
		termination->verdict = termination->cls == HF_CLASS_DEVICE ? HF_VERDICT_DEVICE
				       : restart == HF_RESTART_NEVER       ? HF_VERDICT_NEVER
									   : HF_VERDICT_EXIT_CODE;
	}
	termination->fate = verb == FAIL ? HF_FATE_FAIL : HF_FATE_RESTART;
	/* An eviction by a stray timer charges nothing, even if a rule matches, nor does the next rank of one node. */
	termination->budget = verb == RESTART ? hf_termination_budget(termination) : HF_BUDGET_NONE;
	if (termination->fate != HF_FATE_FAIL)
		termination->verdict = NULL;
}
