/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/reader_internal.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>

/* Reads spec.runPolicy with Holdfast's additions, podFailurePolicy and recovery. */

/* Reads one item more than is allowed, so that validation can report that the list is too long. */
static size_t one_over(size_t len, size_t len_max)
{
	return len <= len_max ? len : len_max + 1;
}

static enum hf_rule_operator parse_operator(const char *text)
{
	if (hf_streq(text, "In"))
		return HF_RULE_IN;
	return hf_streq(text, "NotIn") ? HF_RULE_NOT_IN : HF_RULE_OPERATOR_UNKNOWN;
}

static void report_value(struct hf_reader *r, size_t i, int64_t value)
{
	char text[24];
	size_t mark;

	if (r->errors == NULL)
		return;
	(void)snprintf(text, sizeof(text), "%" PRId64, value);
	mark = hf_reader_enter(r, ".values[%zu]", i);
	hf_field_add(r->errors, HF_PROBLEM_INVALID, text, "must be between 0 and 2147483647", "%s",
		     hf_reader_path(r));
	hf_reader_leave(r, mark);
}

static void read_exit_codes(struct hf_reader *r, const struct hf_json *rule,
			    struct hf_rule *ret_rule)
{
	const struct hf_json *codes = hf_reader_get(r, rule, "onExitCodes", HF_JSON_OBJECT);
	const struct hf_json *array;
	size_t mark = hf_reader_enter(r, ".onExitCodes"), n;
	int32_t *values;

	ret_rule->has_exit_codes = codes != NULL;
	ret_rule->container = hf_reader_str(r, codes, "containerName");
	ret_rule->op = parse_operator(hf_reader_str(r, codes, "operator"));
	array = hf_reader_get(r, codes, "values", HF_JSON_ARRAY);
	n = one_over(hf_json_len(array), HF_RULE_VALUES_MAX);
	values = HF_ARENA_ARRAY(r->arena, int32_t, n + 1);
	for (size_t i = 0; i < n; i++) {
		const struct hf_json *item = hf_reader_item(r, array, "values", i, HF_JSON_INT);
		int64_t value = hf_json_i64(item, 0);
		/* No process ends with an exit code outside of 32 bits, so a clipped value matches
		 * no exit code. */
		values[i] = value < INT32_MIN   ? INT32_MIN
			    : value > INT32_MAX ? INT32_MAX
						: (int32_t)value;
		if (value != values[i])
			report_value(r, i, value);
	}
	ret_rule->values = values;
	ret_rule->values_len = n;
	hf_reader_leave(r, mark);
}

static void read_pod_conditions(struct hf_reader *r, const struct hf_json *rule,
				struct hf_rule *ret_rule)
{
	const struct hf_json *array = hf_reader_get(r, rule, "onPodConditions", HF_JSON_ARRAY);
	size_t n = one_over(hf_json_len(array), HF_RULE_PATTERNS_MAX);
	struct hf_rule_condition *conditions =
		HF_ARENA_ARRAY(r->arena, struct hf_rule_condition, n + 1);

	ret_rule->has_pod_conditions = array != NULL;
	for (size_t i = 0; i < n; i++) {
		const struct hf_json *item =
			hf_reader_item(r, array, "onPodConditions", i, HF_JSON_OBJECT);
		size_t mark = hf_reader_enter(r, ".onPodConditions[%zu]", i);
		conditions[i].type = hf_reader_str(r, item, "type");
		conditions[i].status = hf_reader_str(r, item, "status");
		conditions[i].reason = hf_reader_str(r, item, "reason");
		hf_reader_leave(r, mark);
	}
	ret_rule->pod_conditions = conditions;
	ret_rule->pod_conditions_len = n;
}

static void read_rule(struct hf_reader *r, const struct hf_json *rule, struct hf_rule *ret_rule)
{
	ret_rule->name = hf_reader_str(r, rule, "name");
	ret_rule->action_text = hf_reader_str(r, rule, "action");
	ret_rule->action = hf_rule_action_parse(ret_rule->action_text);
	ret_rule->replica_types = hf_reader_strings(r, rule, "replicaTypes", HF_ROLES_MAX + 1,
						    &ret_rule->replica_types_len);
	ret_rule->has_replica_types = hf_reader_get(r, rule, "replicaTypes", HF_JSON_ARRAY) != NULL;
	read_exit_codes(r, rule, ret_rule);
	read_pod_conditions(r, rule, ret_rule);
	ret_rule->has_pod_reasons = hf_reader_get(r, rule, "onPodReasons", HF_JSON_ARRAY) != NULL;
	ret_rule->pod_reasons = hf_reader_strings(r, rule, "onPodReasons", HF_RULE_PATTERNS_MAX + 1,
						  &ret_rule->pod_reasons_len);
	ret_rule->has_device = hf_reader_get(r, rule, "onDevice", HF_JSON_ARRAY) != NULL;
	ret_rule->device_classes = hf_reader_strings(r, rule, "onDevice", HF_RULE_PATTERNS_MAX + 1,
						     &ret_rule->device_classes_len);
}

static void read_failure_policy(struct hf_reader *r, const struct hf_json *run_policy,
				struct hf_run_policy *ret_policy)
{
	const struct hf_json *policy =
		hf_reader_get(r, run_policy, "podFailurePolicy", HF_JSON_OBJECT);
	const struct hf_json *array;
	size_t mark = hf_reader_enter(r, ".podFailurePolicy"), n;
	struct hf_rule *rules;

	array = hf_reader_get(r, policy, "rules", HF_JSON_ARRAY);
	/* An API server treats null like an absent field. */
	if (r->errors != NULL && policy != NULL &&
	    (hf_json_get(policy, "rules") == NULL ||
	     hf_json_type(hf_json_get(policy, "rules")) == HF_JSON_NULL))
		hf_field_add(r->errors, HF_PROBLEM_REQUIRED, NULL, "", "%s.rules",
			     hf_reader_path(r));
	n = one_over(hf_json_len(array), HF_RULES_MAX);
	rules = HF_ARENA_ARRAY(r->arena, struct hf_rule, n + 1);
	for (size_t i = 0; i < n; i++) {
		const struct hf_json *rule = hf_reader_item(r, array, "rules", i, HF_JSON_OBJECT);
		size_t rule_mark = hf_reader_enter(r, ".rules[%zu]", i);
		read_rule(r, rule, &rules[i]);
		hf_reader_leave(r, rule_mark);
	}
	ret_policy->has_pod_failure_policy = policy != NULL;
	ret_policy->rules = rules;
	ret_policy->rules_len = n;
	hf_reader_leave(r, mark);
}

static void read_node_lost(struct hf_reader *r, const struct hf_json *recovery,
			   struct hf_recovery_spec *ret_recovery)
{
	const struct hf_json *node = hf_reader_get(r, recovery, "nodeLost", HF_JSON_OBJECT);
	const struct hf_json *device = hf_reader_get(r, recovery, "device", HF_JSON_OBJECT);
	size_t mark = hf_reader_enter(r, ".nodeLost");

	ret_recovery->node_lost_after_seconds = hf_reader_i32(r, node, "afterSeconds");
	ret_recovery->node_lost_force_delete = hf_reader_str(r, node, "forceDelete");
	ret_recovery->node_lost_self_fence = hf_reader_bool(r, node, "selfFence");
	hf_reader_leave(r, mark);

	mark = hf_reader_enter(r, ".device");
	ret_recovery->device_on_unhealthy = hf_reader_str(r, device, "onUnhealthy");
	ret_recovery->device_avoid = hf_reader_bool(r, device, "avoid");
	hf_reader_leave(r, mark);
}

static void read_recovery(struct hf_reader *r, const struct hf_json *run_policy,
			  struct hf_recovery_spec *ret_recovery)
{
	const struct hf_json *recovery = hf_reader_get(r, run_policy, "recovery", HF_JSON_OBJECT);
	const struct hf_json *backoff, *checkpoint;
	size_t mark = hf_reader_enter(r, ".recovery"), backoff_mark, checkpoint_mark;

	ret_recovery->restart_scope = hf_reader_str(r, recovery, "restartScope");
	ret_recovery->infrastructure_limit = hf_reader_i32(r, recovery, "infrastructureLimit");
	ret_recovery->device_limit = hf_reader_i32(r, recovery, "deviceLimit");
	ret_recovery->incident_seconds = hf_reader_i32(r, recovery, "incidentSeconds");
	ret_recovery->replace_delay_seconds = hf_reader_i32(r, recovery, "replaceDelaySeconds");
	ret_recovery->settle_seconds = hf_reader_i32(r, recovery, "settleSeconds");
	ret_recovery->restart_grace_seconds = hf_reader_i32(r, recovery, "restartGraceSeconds");
	ret_recovery->force_delete_after_seconds =
		hf_reader_i32(r, recovery, "forceDeleteAfterSeconds");
	ret_recovery->progress_deadline_seconds =
		hf_reader_i32(r, recovery, "progressDeadlineSeconds");
	ret_recovery->no_progress_limit = hf_reader_i32(r, recovery, "noProgressLimit");
	ret_recovery->exec = hf_reader_str(r, recovery, "exec");
	hf_read_log_rules(r, recovery, ret_recovery);
	ret_recovery->in_place = hf_reader_str(r, recovery, "inPlace");
	ret_recovery->in_place_limit = hf_reader_i32(r, recovery, "inPlaceLimit");
	ret_recovery->in_place_wait_seconds = hf_reader_i32(r, recovery, "inPlaceWaitSeconds");
	ret_recovery->sidecar_grace_seconds = hf_reader_i32(r, recovery, "sidecarGraceSeconds");
	ret_recovery->pods_after_end = hf_reader_str(r, recovery, "podsAfterEnd");
	backoff = hf_reader_get(r, recovery, "backoff", HF_JSON_OBJECT);
	backoff_mark = hf_reader_enter(r, ".backoff");
	ret_recovery->backoff_initial_seconds = hf_reader_i32(r, backoff, "initialSeconds");
	ret_recovery->backoff_max_seconds = hf_reader_i32(r, backoff, "maxSeconds");
	ret_recovery->backoff_reset_after_seconds = hf_reader_i32(r, backoff, "resetAfterSeconds");
	hf_reader_leave(r, backoff_mark);
	checkpoint = hf_reader_get(r, recovery, "checkpoint", HF_JSON_OBJECT);
	checkpoint_mark = hf_reader_enter(r, ".checkpoint");
	ret_recovery->checkpoint_grace_seconds = hf_reader_i32(r, checkpoint, "graceSeconds");
	hf_reader_leave(r, checkpoint_mark);
	read_node_lost(r, recovery, ret_recovery);
	hf_reader_leave(r, mark);
}

void hf_read_policy_additions(struct hf_reader *r, const struct hf_json *policy,
			      struct hf_run_policy *ret_policy)
{
	read_failure_policy(r, policy, ret_policy);
	read_recovery(r, policy, &ret_policy->recovery);
}

void hf_read_run_policy(struct hf_reader *r, const struct hf_json *spec,
			struct hf_run_policy *ret_policy)
{
	const struct hf_json *policy = hf_reader_get(r, spec, "runPolicy", HF_JSON_OBJECT);
	const struct hf_json *scheduling, *resources;
	size_t mark = hf_reader_enter(r, ".runPolicy"), inner;

	ret_policy->clean_pod_policy = hf_reader_str(r, policy, "cleanPodPolicy");
	ret_policy->ttl_seconds_after_finished =
		hf_reader_i32(r, policy, "ttlSecondsAfterFinished");
	ret_policy->active_deadline_seconds =
		hf_reader_int(r, policy, "activeDeadlineSeconds", INT64_MIN, INT64_MAX);
	ret_policy->backoff_limit = hf_reader_i32(r, policy, "backoffLimit");
	ret_policy->suspend = hf_reader_bool(r, policy, "suspend");
	ret_policy->managed_by = hf_reader_str(r, policy, "managedBy");
	scheduling = hf_reader_get(r, policy, "schedulingPolicy", HF_JSON_OBJECT);
	inner = hf_reader_enter(r, ".schedulingPolicy");
	ret_policy->min_available = hf_reader_i32(r, scheduling, "minAvailable");
	resources = hf_reader_get(r, scheduling, "minResources", HF_JSON_OBJECT);
	ret_policy->has_min_resources = resources != NULL;
	ret_policy->min_resources = hf_read_amounts(r, resources, &ret_policy->min_resources_len);
	ret_policy->queue = hf_reader_str(r, scheduling, "queue");
	ret_policy->priority_class = hf_reader_str(r, scheduling, "priorityClass");
	ret_policy->schedule_timeout_seconds =
		hf_reader_i32(r, scheduling, "scheduleTimeoutSeconds");
	hf_reader_leave(r, inner);
	hf_read_policy_additions(r, policy, ret_policy);
	hf_reader_leave(r, mark);
}
