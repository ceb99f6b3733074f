/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/framework.h"

#include "base/str.h"
#include "core/model/names.h"
#include "core/model/observed.h"

#include <stdio.h>
#include <string.h>

/*
 * The rules of validation that all kinds share.  Input: the job as written.  Output: errors of
 * fields.  For name, managedBy and replicas, words and paths are upstream's; for podFailurePolicy,
 * batch/v1's.  Holdfast's own fields follow the same grammar.
 */

#define RUN_POLICY "spec.runPolicy"
#define SCHEDULING RUN_POLICY ".schedulingPolicy"
#define ELASTIC "spec.elasticPolicy"
#define RULES RUN_POLICY ".podFailurePolicy.rules"
#define RECOVERY RUN_POLICY ".recovery"
#define VALUE_TEXT 24
/* In characters, as the CRDs count. */
#define RULE_NAME_LEN_MAX 63
#define CONDITION_REASON_LEN_MAX 1024
#define POD_REASON_LEN_MAX 128
#define DEVICE_CLASS_LEN_MAX 64

static const char *format_number(char text[VALUE_TEXT], int64_t value)
{
	int n = snprintf(text, VALUE_TEXT, "%lld", (long long)value);

	hf_assert(n > 0 && n < VALUE_TEXT);
	return text;
}

static void check_at_least(struct hf_field_errors *errors, struct hf_opt_int value, int64_t min,
			   const char *field)
{
	char text[VALUE_TEXT], detail[64];

	if (!value.set || value.value >= min)
		return;
	snprintf(detail, sizeof(detail), "must be greater than or equal to %lld", (long long)min);
	hf_field_add(errors, HF_PROBLEM_INVALID, format_number(text, value.value), detail, "%s",
		     field);
}

/* Report a value that is not in the list of allowed words.  The words are already quoted, and NULL
 * ends the list.  A value of NULL means that the field is absent, which is allowed. */
static void check_one_of(struct hf_field_errors *errors, const char *value,
			 const char *const *words, const char *field)
{
	HF_AUTO_STRBUF detail = HF_STRBUF_INIT(512);

	hf_assert(words[0]);
	if (!value)
		return;
	hf_strbuf_addstr(&detail, "supported values: ");
	for (size_t i = 0; words[i]; i++) {
		if (hf_streq(words[i], value))
			return;
		hf_strbuf_addf(&detail, "%s\"%s\"", i > 0 ? ", " : "", words[i]);
	}
	hf_field_add(errors, HF_PROBLEM_NOT_SUPPORTED, hf_field_quote(errors, value), detail.data,
		     "%s", field);
}

/* ---- upstream's rules ----------------------------------------------------------------------- */

static void check_name(const struct hf_job_view *view, struct hf_field_errors *errors)
{
	const char *name = view->name ? view->name : "";
	const char *problem = view->framework->any_name ? hf_dns1123_subdomain_problem(name)
							: hf_dns1035_label_problem(name);

	if (!problem)
		return;
	hf_field_add(errors, HF_PROBLEM_INVALID, hf_field_quote(errors, name),
		     hf_arena_printf(errors->arena, "should match: %s", problem), "metadata.name");
}

/* managedBy must be one of upstream's two values.  An absent field is allowed, but "" is refused,
 * as in upstream's set. */
static void check_managed_by(const struct hf_job_view *view, const struct hf_job_view *old,
			     struct hf_field_errors *errors)
{
	static const char *const managers[] = {HF_MANAGED_BY_US, HF_MANAGED_BY_MULTIKUEUE, NULL};
	const char *manager = view->run_policy.managed_by;

	if (old && !hf_streq(old->run_policy.managed_by, manager))
		hf_field_add(errors, HF_PROBLEM_INVALID,
			     manager ? hf_field_quote(errors, manager) : "null",
			     "field is immutable", RUN_POLICY ".managedBy");
	check_one_of(errors, manager, managers, RUN_POLICY ".managedBy");
}

/* ---- numbers of runPolicy, elasticPolicy ------------------------------------------------------- */

static void check_run_policy(const struct hf_job_view *view, struct hf_field_errors *errors)
{
	const struct hf_run_policy *policy = &view->run_policy;

	check_at_least(errors, policy->ttl_seconds_after_finished, 0,
		       RUN_POLICY ".ttlSecondsAfterFinished");
	check_at_least(errors, policy->active_deadline_seconds, 0,
		       RUN_POLICY ".activeDeadlineSeconds");
	check_at_least(errors, policy->backoff_limit, 0, RUN_POLICY ".backoffLimit");
	check_at_least(errors, policy->min_available, 0, SCHEDULING ".minAvailable");
	check_at_least(errors, policy->schedule_timeout_seconds, 0,
		       SCHEDULING ".scheduleTimeoutSeconds");
}

/* A bound below 0 is reported as negative only, not also as out of order with the other bound. */
static void check_elastic(const struct hf_elastic_policy *elastic, struct hf_field_errors *errors)
{
	const struct hf_opt_int *min = &elastic->min_replicas, *max = &elastic->max_replicas;
	char text[VALUE_TEXT];

	check_at_least(errors, *min, 0, ELASTIC ".minReplicas");
	check_at_least(errors, *max, 0, ELASTIC ".maxReplicas");
	if (min->set && max->set && max->value >= 0 && min->value > max->value)
		hf_field_add(errors, HF_PROBLEM_INVALID, format_number(text, max->value),
			     "must be greater than or equal to minReplicas",
			     ELASTIC ".maxReplicas");
	check_at_least(errors, elastic->rdzv_port, 0, ELASTIC ".rdzvPort");
	check_at_least(errors, elastic->max_restarts, 0, ELASTIC ".maxRestarts");
}

static void check_recovery(const struct hf_recovery_spec *recovery, struct hf_field_errors *errors)
{
	static const char *const scopes[] = {"Replica", "Job", NULL};
	static const char *const modes[] = {"Presumed", "Proven", "Never", NULL};
	static const char *const unhealthy[] = {"Ignore", "Restart", "Fail", NULL};
	static const char *const after_end[] = {"Stop", "Keep", NULL};
	static const char *const in_place[] = {"Auto", "Never", NULL};
	static const char *const exec[] = {"None", "Inject", NULL};
	char text[VALUE_TEXT];

	check_one_of(errors, recovery->restart_scope, scopes, RECOVERY ".restartScope");
	check_at_least(errors, recovery->infrastructure_limit, 0, RECOVERY ".infrastructureLimit");
	check_at_least(errors, recovery->device_limit, 0, RECOVERY ".deviceLimit");
	check_at_least(errors, recovery->backoff_initial_seconds, 1,
		       RECOVERY ".backoff.initialSeconds");
	check_at_least(errors, recovery->backoff_max_seconds, 1, RECOVERY ".backoff.maxSeconds");
	if (recovery->backoff_initial_seconds.set && recovery->backoff_max_seconds.set &&
	    recovery->backoff_initial_seconds.value > recovery->backoff_max_seconds.value)
		hf_field_add(errors, HF_PROBLEM_INVALID,
			     format_number(text, recovery->backoff_max_seconds.value),
			     "must be greater than or equal to initialSeconds",
			     RECOVERY ".backoff.maxSeconds");
	check_at_least(errors, recovery->backoff_reset_after_seconds, 1,
		       RECOVERY ".backoff.resetAfterSeconds");
	check_at_least(errors, recovery->incident_seconds, 0, RECOVERY ".incidentSeconds");
	check_at_least(errors, recovery->replace_delay_seconds, 0, RECOVERY ".replaceDelaySeconds");
	if (recovery->replace_delay_seconds.set &&
	    recovery->replace_delay_seconds.value > HF_GONE_KEPT_SECONDS)
		hf_field_warn(errors, RECOVERY ".replaceDelaySeconds: more than %d acts as %d",
			      HF_GONE_KEPT_SECONDS, HF_GONE_KEPT_SECONDS);
	check_at_least(errors, recovery->settle_seconds, 0, RECOVERY ".settleSeconds");
	check_at_least(errors, recovery->restart_grace_seconds, 0, RECOVERY ".restartGraceSeconds");
	check_at_least(errors, recovery->node_lost_after_seconds, 1,
		       RECOVERY ".nodeLost.afterSeconds");
	if (recovery->node_lost_self_fence.set && recovery->node_lost_self_fence.value &&
	    recovery->node_lost_after_seconds.set &&
	    recovery->node_lost_after_seconds.value < HF_FENCE_AFTER_SECONDS_MIN)
		hf_field_add(errors, HF_PROBLEM_INVALID,
			     format_number(text, recovery->node_lost_after_seconds.value),
			     "must be greater than or equal to 40 with selfFence",
			     RECOVERY ".nodeLost.afterSeconds");
	check_one_of(errors, recovery->node_lost_force_delete, modes,
		     RECOVERY ".nodeLost.forceDelete");
	check_at_least(errors, recovery->force_delete_after_seconds, 0,
		       RECOVERY ".forceDeleteAfterSeconds");
	check_one_of(errors, recovery->device_on_unhealthy, unhealthy,
		     RECOVERY ".device.onUnhealthy");
	check_at_least(errors, recovery->progress_deadline_seconds, 1,
		       RECOVERY ".progressDeadlineSeconds");
	check_at_least(errors, recovery->no_progress_limit, 0, RECOVERY ".noProgressLimit");
	check_one_of(errors, recovery->exec, exec, RECOVERY ".exec");
	for (size_t i = 0; i < recovery->log_rule_errors_len; i++) {
		const struct hf_field_error *error = &recovery->log_rule_errors[i];

		hf_field_add(errors, error->problem, error->value, error->detail, "%s",
			     error->field);
	}
	if (recovery->log_rules && !recovery->exec)
		hf_field_warn(errors,
			      RECOVERY ".logRules: holdfast exec obeys them, so set exec: Inject "
				       "or write holdfast-exec before the command");
	check_one_of(errors, recovery->in_place, in_place, RECOVERY ".inPlace");
	check_at_least(errors, recovery->in_place_limit, 0, RECOVERY ".inPlaceLimit");
	check_at_least(errors, recovery->in_place_wait_seconds, 1, RECOVERY ".inPlaceWaitSeconds");
	check_at_least(errors, recovery->checkpoint_grace_seconds, 0,
		       RECOVERY ".checkpoint.graceSeconds");
	check_at_least(errors, recovery->sidecar_grace_seconds, 0, RECOVERY ".sidecarGraceSeconds");
	check_one_of(errors, recovery->pods_after_end, after_end, RECOVERY ".podsAfterEnd");
}

static void check_at_most(struct hf_field_errors *errors, const char *value, size_t max,
			  const char *field)
{
	if (hf_utf8_count(hf_str_or(value, "")) <= max)
		return;
	hf_field_add(errors, HF_PROBLEM_INVALID, hf_field_quote(errors, value),
		     hf_arena_printf(errors->arena, "must have at most %zu characters", max), "%s",
		     field);
}

/* ---- podFailurePolicy ------------------------------------------------------------------------------ */

static bool template_has(const struct hf_template *pod, const char *container)
{
	for (size_t i = 0; i < pod->containers_len; i++) {
		if (hf_streq(pod->containers[i].name, container))
			return true;
	}
	for (size_t i = 0; i < pod->init_containers_len; i++) {
		if (hf_streq(pod->init_containers[i].name, container))
			return true;
	}
	return false;
}

/* At least one replica type to which the rule applies has a container of that name. */
static bool container_exists(const struct hf_job_view *view, const struct hf_rule *rule)
{
	for (size_t i = 0; i < view->replicas_len; i++) {
		bool meant = rule->replica_types_len == 0;

		for (size_t t = 0; t < rule->replica_types_len; t++)
			meant = meant ||
				hf_str_case_eq(rule->replica_types[t], view->replicas[i].type);
		if (meant && template_has(&view->replicas[i].pod, rule->container))
			return true;
	}
	return false;
}

/* The value stands earlier in the list, which batch/v1 refuses.  A list has at most 255 values. */
static bool is_repeated(const struct hf_rule *rule, size_t v)
{
	for (size_t i = 0; i < v; i++) {
		if (rule->values[i] == rule->values[v])
			return true;
	}
	return false;
}

static void check_values(const struct hf_rule *rule, size_t i, struct hf_field_errors *errors)
{
	bool unordered = false;
	char text[VALUE_TEXT];

	for (size_t v = 0; v < rule->values_len && v <= HF_RULE_VALUES_MAX; v++) {
		int32_t value = rule->values[v];

		if (value < 0)
			hf_field_add(errors, HF_PROBLEM_INVALID, format_number(text, value),
				     "must be greater than or equal to 0",
				     RULES "[%zu].onExitCodes.values[%zu]", i, v);
		if (value == 0 && rule->op == HF_RULE_IN)
			hf_field_add(errors, HF_PROBLEM_INVALID, "0",
				     "must not be 0 for the In operator",
				     RULES "[%zu].onExitCodes.values[%zu]", i, v);
		if (is_repeated(rule, v))
			hf_field_add(errors, HF_PROBLEM_DUPLICATE, format_number(text, value), "",
				     RULES "[%zu].onExitCodes.values[%zu]", i, v);
		if (v > 0 && rule->values[v - 1] > value && !unordered) {
			hf_field_add(errors, HF_PROBLEM_INVALID, format_number(text, value),
				     "must be ordered", RULES "[%zu].onExitCodes.values", i);
			unordered = true;
		}
	}
}

/* Check exit codes as batch/v1 does, in the same order. */
static void check_exit_codes(const struct hf_job_view *view, const struct hf_rule *rule, size_t i,
			     struct hf_field_errors *errors)
{
	char text[VALUE_TEXT];

	if (rule->op == HF_RULE_OPERATOR_UNKNOWN)
		hf_field_add(errors, HF_PROBLEM_REQUIRED, NULL, "valid values: \"In\", \"NotIn\"",
			     RULES "[%zu].onExitCodes.operator", i);
	if (rule->container && !container_exists(view, rule))
		hf_field_add(
			errors, HF_PROBLEM_INVALID, hf_field_quote(errors, rule->container),
			"must be one of the container or initContainer names in the pod template",
			RULES "[%zu].onExitCodes.containerName", i);
	if (rule->values_len == 0)
		hf_field_add(errors, HF_PROBLEM_INVALID, "[]", "at least one value is required",
			     RULES "[%zu].onExitCodes.values", i);
	if (rule->values_len > HF_RULE_VALUES_MAX)
		hf_field_add(errors, HF_PROBLEM_TOO_MANY,
			     format_number(text, (int64_t)rule->values_len),
			     "must have at most 255 items", RULES "[%zu].onExitCodes.values", i);
	check_values(rule, i, errors);
}

static void check_conditions(const struct hf_rule *rule, size_t i, struct hf_field_errors *errors)
{
	char text[VALUE_TEXT];

	if (rule->pod_conditions_len == 0)
		hf_field_add(errors, HF_PROBLEM_INVALID, "[]", "at least one value is required",
			     RULES "[%zu].onPodConditions", i);
	if (rule->pod_conditions_len > HF_RULE_PATTERNS_MAX)
		hf_field_add(errors, HF_PROBLEM_TOO_MANY,
			     format_number(text, (int64_t)rule->pod_conditions_len),
			     "must have at most 20 items", RULES "[%zu].onPodConditions", i);
	for (size_t c = 0; c < rule->pod_conditions_len; c++) {
		static const char *const statuses[] = {"False", "True", "Unknown", NULL};
		const struct hf_rule_condition *condition = &rule->pod_conditions[c];
		const char *problem = hf_qualified_name_problem(hf_str_or(condition->type, ""));

		if (problem)
			hf_field_add(errors, HF_PROBLEM_INVALID,
				     hf_field_quote(errors, hf_str_or(condition->type, "")),
				     problem, RULES "[%zu].onPodConditions[%zu].type", i, c);
		check_one_of(errors, condition->status, statuses,
			     hf_arena_printf(errors->arena,
					     RULES "[%zu].onPodConditions[%zu].status", i, c));
		check_at_most(errors, condition->reason, CONDITION_REASON_LEN_MAX,
			      hf_arena_printf(errors->arena,
					      RULES "[%zu].onPodConditions[%zu].reason", i, c));
	}
}

/* A field of a rule that is a list of texts: reasons, or device classes. */
struct words {
	bool present;
	const char *const *items;
	size_t len;
	const char *field;
	size_t chars_max;
};

static void check_words(const struct words *words, size_t i, struct hf_field_errors *errors)
{
	const char *field = words->field;
	size_t len = words->len;
	char text[VALUE_TEXT];

	for (size_t w = 0; w < len && w <= HF_RULE_PATTERNS_MAX; w++) {
		if (hf_str_is_empty(words->items[w]))
			hf_field_add(errors, HF_PROBLEM_INVALID, "\"\"", "must not be empty",
				     RULES "[%zu].%s[%zu]", i, field, w);
		check_at_most(errors, words->items[w], words->chars_max,
			      hf_arena_printf(errors->arena, RULES "[%zu].%s[%zu]", i, field, w));
	}
	if (words->present && len == 0)
		hf_field_add(errors, HF_PROBLEM_INVALID, "[]", "at least one value is required",
			     RULES "[%zu].%s", i, field);
	if (len > HF_RULE_PATTERNS_MAX)
		hf_field_add(errors, HF_PROBLEM_TOO_MANY, format_number(text, (int64_t)len),
			     "must have at most 20 items", RULES "[%zu].%s", i, field);
}

/* An unknown device class is only a warning, because a newer agent may publish further classes. */
static void warn_of_classes(const struct hf_rule *rule, size_t i, struct hf_field_errors *errors)
{
	for (size_t c = 0; c < rule->device_classes_len && c <= HF_RULE_PATTERNS_MAX; c++) {
		if (!hf_str_is_empty(rule->device_classes[c]) &&
		    !hf_device_class_is_known(rule->device_classes[c]))
			hf_field_warn(errors,
				      RULES "[%zu].onDevice[%zu]: no device has class %s, as far "
					    "as this version knows",
				      i, c, hf_field_quote(errors, rule->device_classes[c]));
	}
}

static void check_rule_name(const char *name, size_t i, struct hf_field_errors *errors)
{
	bool plain = true;

	if (!name)
		return;
	for (const char *c = name; *c; c++)
		plain = plain && (unsigned char)*c >= 0x20 && *c != 0x7f;
	if (*name == '\0')
		hf_field_add(errors, HF_PROBLEM_INVALID, "\"\"", "must not be empty",
			     RULES "[%zu].name", i);
	check_at_most(errors, name, RULE_NAME_LEN_MAX,
		      hf_arena_printf(errors->arena, RULES "[%zu].name", i));
	if (!plain)
		hf_field_add(errors, HF_PROBLEM_INVALID, hf_field_quote(errors, name),
			     "must have no control characters", RULES "[%zu].name", i);
}

static void check_types(const struct hf_job_view *view, const struct hf_rule *rule, size_t i,
			struct hf_field_errors *errors)
{
	const struct hf_framework *framework = view->framework;

	if (rule->has_replica_types && rule->replica_types_len == 0)
		hf_field_add(errors, HF_PROBLEM_INVALID, "[]", "at least one value is required",
			     RULES "[%zu].replicaTypes", i);
	for (size_t t = 0; t < rule->replica_types_len; t++) {
		const char *type = rule->replica_types[t];
		int role = hf_framework_role(framework, type);

		if (role < 0 ||
		    !(framework->any_type || hf_streq(framework->roles[role].name, type)))
			hf_field_add(errors, HF_PROBLEM_NOT_SUPPORTED, hf_field_quote(errors, type),
				     "no such replica type", RULES "[%zu].replicaTypes[%zu]", i, t);
	}
}

static void check_rule(const struct hf_job_view *view, const struct hf_rule *rule, size_t i,
		       struct hf_field_errors *errors)
{
	static const char *const actions[] = {"FailJob",        "Ignore",     "Count",
					      "RestartReplica", "RestartJob", NULL};
	int kinds = rule->has_exit_codes + rule->has_pod_conditions + rule->has_pod_reasons +
		    rule->has_device;

	if (hf_str_is_empty(rule->action_text) && rule->action == HF_RULE_UNKNOWN)
		hf_field_add(errors, HF_PROBLEM_REQUIRED, NULL,
			     "valid values: \"FailJob\", \"Ignore\", \"Count\", "
			     "\"RestartReplica\", \"RestartJob\"",
			     RULES "[%zu].action", i);
	else if (rule->action == HF_RULE_UNKNOWN)
		check_one_of(errors, hf_str_or(rule->action_text, ""), actions,
			     hf_arena_printf(errors->arena, RULES "[%zu].action", i));
	if (kinds != 1)
		hf_field_add(errors, HF_PROBLEM_INVALID,
			     format_number((char[VALUE_TEXT]){0}, kinds),
			     "exactly one of onExitCodes, onPodConditions, onPodReasons and "
			     "onDevice is required",
			     RULES "[%zu]", i);
	check_types(view, rule, i, errors);
	if (rule->has_exit_codes)
		check_exit_codes(view, rule, i, errors);
	if (rule->has_pod_conditions)
		check_conditions(rule, i, errors);
	check_words(&(struct words){rule->has_pod_reasons, rule->pod_reasons, rule->pod_reasons_len,
				    "onPodReasons", POD_REASON_LEN_MAX},
		    i, errors);
	check_words(&(struct words){rule->has_device, rule->device_classes,
				    rule->device_classes_len, "onDevice", DEVICE_CLASS_LEN_MAX},
		    i, errors);
	warn_of_classes(rule, i, errors);
	check_rule_name(rule->name, i, errors);
}

static void check_rules(const struct hf_job_view *view, struct hf_field_errors *errors)
{
	const struct hf_run_policy *policy = &view->run_policy;
	char text[VALUE_TEXT];

	if (policy->rules_len > HF_RULES_MAX)
		hf_field_add(errors, HF_PROBLEM_TOO_MANY,
			     format_number(text, (int64_t)policy->rules_len),
			     "must have at most 20 items", RULES);
	for (size_t i = 0; i < policy->rules_len && i < HF_RULES_MAX; i++)
		check_rule(view, &policy->rules[i], i, errors);
}

/* ---- replicas ------------------------------------------------------------------------------------------ */

/* The number of ranks is checked for all types together, so that several types cannot exceed the
 * limit of a job. */
const char *hf_job_unnameable(const struct hf_job_view *view, struct hf_arena *arena)
{
	const struct hf_replica_spec *const *specs = hf_job_replicas(view, arena);

	/* Another error reports an invalid job name. */
	if (!view->framework->has_services || hf_dns1035_label_problem(hf_str_or(view->name, "")))
		return NULL;
	for (size_t i = 0; i < view->replicas_len; i++) {
		int64_t n = specs[i]->replicas.set ? specs[i]->replicas.value : 1;
		const char *last;

		if (n <= 0 || hf_framework_role(view->framework, specs[i]->type) < 0)
			continue;
		last = hf_replica_name(arena, hf_str_or(view->name, ""), specs[i]->type, n - 1);
		if (strlen(last) > HF_SERVICE_NAME_LEN_MAX)
			return hf_arena_printf(arena,
					       "the job's name is too long: service '%s' would "
					       "have %zu characters, at most %d are allowed",
					       last, strlen(last), HF_SERVICE_NAME_LEN_MAX);
	}
	return NULL;
}

static void check_ranks(const struct hf_job_view *view, struct hf_field_errors *errors)
{
	static const char *const policies[] = {"Always", "ExitCode", "Never", "OnFailure", NULL};
	const struct hf_replica_spec *const *specs = hf_job_replicas(view, errors->arena);
	int64_t ranks = 0;
	char text[VALUE_TEXT];

	for (size_t i = 0; i < view->replicas_len; i++) {
		const struct hf_replica_spec *spec = specs[i];

		/* Each number is limited before the addition, so that the 64-bit sum cannot
		 * overflow. */
		if (spec->replicas.set && spec->replicas.value > 0)
			ranks +=
				spec->replicas.value < INT32_MAX ? spec->replicas.value : INT32_MAX;
		if (hf_restart_policy_parse(spec->restart_policy) == HF_RESTART_UNKNOWN)
			check_one_of(errors, spec->restart_policy, policies,
				     hf_arena_printf(errors->arena, "spec.%s[%s].restartPolicy",
						     view->framework->replicas_key, spec->type));
	}
	if (ranks > HF_RANKS_MAX)
		hf_field_add(errors, HF_PROBLEM_INVALID, format_number(text, ranks),
			     hf_arena_printf(errors->arena,
					     "a job has at most %d replicas, of all types together",
					     HF_RANKS_MAX),
			     "spec.%s", view->framework->replicas_key);
}

/* recovery.exec: Inject puts words before the command; that of the image is not known. */
static void check_commands(const struct hf_job_view *view, struct hf_field_errors *errors)
{
	const struct hf_replica_spec *const *specs = hf_job_replicas(view, errors->arena);

	if (!hf_streq(view->run_policy.recovery.exec, "Inject"))
		return;
	for (size_t i = 0; i < view->replicas_len; i++) {
		const struct hf_template *pod = &specs[i]->pod;
		int role = hf_framework_role(view->framework, specs[i]->type);
		size_t own = hf_framework_container(view->framework, pod);

		if (role < 0 || hf_has_role(view->framework->no_exec_roles, role) ||
		    specs[i]->null || pod->containers_len == 0 || pod->containers[own].has_command)
			continue;
		hf_field_add(errors, HF_PROBLEM_REQUIRED, NULL,
			     "with recovery.exec: Inject write the command here, because that of "
			     "the image is not known",
			     "spec.%s[%s].template.spec.containers[%zu].command",
			     view->framework->replicas_key, specs[i]->type, own);
	}
}

void hf_job_validate_additions(const struct hf_job_view *view, struct hf_field_errors *errors)
{
	check_recovery(&view->run_policy.recovery, errors);
	check_rules(view, errors);
	check_commands(view, errors);
}

void hf_job_validate(const struct hf_job_view *view, const struct hf_job_view *old,
		     struct hf_field_errors *errors)
{
	const char *unnameable = hf_job_unnameable(view, errors->arena);

	hf_assert(view->framework && errors->arena);
	if (unnameable)
		hf_field_warn(errors, "%s", unnameable);
	check_name(view, errors);
	check_managed_by(view, old, errors);
	if (view->framework->validate)
		view->framework->validate(view, errors);
	check_ranks(view, errors);
	check_elastic(&view->elastic, errors);
	check_run_policy(view, errors);
	hf_job_validate_additions(view, errors);
}
