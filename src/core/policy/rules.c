/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"

/*
 * podFailurePolicy: finds the first rule that matches a termination.  As in batch/v1, a rule's exit
 * codes are compared with those of all terminated containers, main containers first, except code 0;
 * one match is enough.  A rule with an unknown action or operator matches nothing.
 */

static bool has_value(const struct hf_rule *rule, int32_t code)
{
	for (size_t i = 0; i < rule->values_len; i++) {
		if (rule->values[i] == code)
			return true;
	}
	return false;
}

/* Compare the rule with the init containers or the main containers.  On a match, note the
 * container's name and its code for messages and records. */
static bool match_container(const struct hf_rule *rule, struct hf_termination *termination,
			    bool init)
{
	for (size_t i = 0; i < termination->pod->containers_len; i++) {
		const struct hf_container_seen *seen = &termination->pod->containers[i];

		if (seen->init != init || seen->phase != HF_CONTAINER_TERMINATED ||
		    seen->exit_code == 0)
			continue;
		/* A rule without a container name does not mean the init container that the kind
		 * adds to the pod. */
		if (rule->container ? !hf_streq(rule->container, seen->name)
				    : seen == termination->gave_up)
			continue;
		if (has_value(rule, seen->exit_code) == (rule->op == HF_RULE_IN)) {
			termination->matched = seen->name;
			termination->matched_code = seen->exit_code;
			return true;
		}
	}
	return false;
}

static bool match_exit_codes(const struct hf_rule *rule, struct hf_termination *termination)
{
	if (termination->kind != HF_TERMINATION_FAILED || rule->op == HF_RULE_OPERATOR_UNKNOWN)
		return false;
	return match_container(rule, termination, false) ||
	       match_container(rule, termination, true);
}

/* The control plane adds the condition DisruptionTarget when it evicts the pods of a lost node.
 * Holdfast acts before that, and a rule for this condition must match all the same. */
static bool stands_for(const struct hf_rule_condition *pattern,
		       const struct hf_termination *termination)
{
	return termination->kind == HF_TERMINATION_LOST && !pattern->reason &&
	       hf_streq(hf_str_or(pattern->status, "True"), "True") &&
	       (hf_streq(pattern->type, "DisruptionTarget") ||
		hf_streq(pattern->type, HF_POD_COND_NODE_LOST));
}

/* The pod has the condition that the pattern describes.  A pattern may also name a reason, unlike
 * in batch/v1. */
static bool has_condition(const struct hf_rule_condition *pattern, const struct hf_pod *pod)
{
	for (size_t i = 0; i < pod->conditions_len; i++) {
		const struct hf_pod_condition *seen = &pod->conditions[i];

		if (hf_streq(seen->type, pattern->type) &&
		    hf_streq(seen->status, hf_str_or(pattern->status, "True")) &&
		    (!pattern->reason || hf_streq(seen->reason, pattern->reason)))
			return true;
	}
	return false;
}

static bool match_conditions(const struct hf_rule *rule, struct hf_termination *termination)
{
	for (size_t p = 0; p < rule->pod_conditions_len; p++) {
		const struct hf_rule_condition *pattern = &rule->pod_conditions[p];

		if (stands_for(pattern, termination) || has_condition(pattern, termination->pod)) {
			termination->matched = pattern->type;
			return true;
		}
	}
	return false;
}

/* The pod's own reason, or the reason of one of its containers: "Evicted", "OOMKilled". */
static bool has_reason(const char *reason, const struct hf_termination *termination)
{
	const struct hf_pod *pod = termination->pod;

	if (hf_streq(reason, pod->reason))
		return true;
	for (size_t i = 0; i < pod->containers_len; i++) {
		if (pod->containers[i].phase == HF_CONTAINER_TERMINATED &&
		    &pod->containers[i] != termination->gave_up &&
		    hf_streq(reason, pod->containers[i].terminated_reason))
			return true;
	}
	return false;
}

static bool match_reasons(const struct hf_rule *rule, struct hf_termination *termination)
{
	for (size_t r = 0; r < rule->pod_reasons_len; r++) {
		if (has_reason(rule->pod_reasons[r], termination)) {
			termination->matched = rule->pod_reasons[r];
			return true;
		}
	}
	return false;
}

/* A rule with onDevice matches a device of the pod.  That device becomes the cause, even if it
 * alone would not explain the termination.  Only an application's class becomes class device; any
 * other class stays. */
static bool match_device(const struct hf_rule *rule, struct hf_termination *termination)
{
	const struct hf_device_seen *device =
		hf_device_match(rule, termination->pod, termination->finished_at);

	if (!device)
		return false;
	termination->device = device;
	if (hf_class_is_application(termination->cls)) {
		termination->cls = HF_CLASS_DEVICE;
		termination->evidence = true;
	}
	return true;
}

/* A rule without replicaTypes applies to every type.  Types are compared without regard to case, as
 * in the spec. */
static bool match_type(const struct hf_brain *b, const struct hf_rule *rule, int role)
{
	for (size_t i = 0; i < rule->replica_types_len; i++) {
		if (hf_str_case_eq(rule->replica_types[i], b->roles[role].type))
			return true;
	}
	return rule->replica_types_len == 0;
}

static bool match_rule(const struct hf_brain *b, const struct hf_rule *rule,
		       struct hf_termination *termination)
{
	if (rule->action == HF_RULE_UNKNOWN || !match_type(b, rule, termination->role))
		return false;
	if (rule->has_exit_codes)
		return match_exit_codes(rule, termination);
	if (rule->has_pod_conditions)
		return match_conditions(rule, termination);
	if (rule->has_pod_reasons)
		return match_reasons(rule, termination);
	return rule->has_device && match_device(rule, termination);
}

int hf_rules_match(const struct hf_brain *b, struct hf_termination *termination)
{
	const struct hf_run_policy *policy = &b->view->run_policy;

	hf_assert(termination->cls != HF_CLASS_NONE);
	/* Rules do not apply to a pod that a person deleted, because that is not a failure, nor to
	 * a pod that vanished, because nothing is left to match. */
	if (!termination->pod || termination->cls == HF_CLASS_USER ||
	    termination->kind == HF_TERMINATION_RESTARTED)
		return -1;
	for (size_t i = 0; i < policy->rules_len && i < HF_RULES_MAX; i++) {
		if (match_rule(b, &policy->rules[i], termination))
			return (int)i;
	}
	return -1;
}
