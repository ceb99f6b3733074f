/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/framework.h"

#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

#include <string.h>

static struct brain b;
static struct hf_field_errors errors;

/* How many errors the job has.  The texts of errors are in tests/golden/validation; these tests
 * check numbers and limits. */
static size_t complaints(const struct hf_job_view *old)
{
	hf_field_errors_init(&errors, b.pass);
	hf_job_validate(&b.view, old, &errors);
	return errors.len;
}

static bool complains(const char *field)
{
	for (size_t i = 0; i < errors.len; i++) {
		if (hf_streq(errors.items[i].field, field))
			return true;
	}
	return false;
}

static void a_plain_job_is_fine(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	assert_int_equal(complaints(NULL), 0);
	assert_int_equal(complaints(&b.view), 0);
	brain_release(&b);
}

static void managed_by_may_not_appear_change_or_go(void **state)
{
	struct hf_job_view old;

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	old = b.view;
	b.view.run_policy.managed_by = "kubeflow.org/training-operator";
	assert_int_equal(complaints(&old), 1);
	assert_int_equal(complaints(NULL), 0);
	old.run_policy.managed_by = b.view.run_policy.managed_by;
	b.view.run_policy.managed_by = NULL;
	assert_int_equal(complaints(&old), 1);
	b.view.run_policy.managed_by = "";
	assert_int_equal(complaints(NULL), 1);
	assert_true(complains("spec.runPolicy.managedBy"));
	brain_release(&b);
}

static void rules_have_plain_names_and_no_empty_words(void **state)
{
	static const char *const words[] = {"", "banana", "gpu-reset"};

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.rules[0] = (struct hf_rule){.action = HF_RULE_IGNORE,
				      .has_device = true,
				      .device_classes = words,
				      .device_classes_len = 3};
	b.rules[1] = (struct hf_rule){.action = HF_RULE_IGNORE,
				      .has_pod_reasons = true,
				      .pod_reasons = words,
				      .pod_reasons_len = 3};
	b.view.run_policy.rules_len = 2;
	b.view.run_policy.has_pod_failure_policy = true;
	assert_int_equal(complaints(NULL), 2);
	assert_true(complains("spec.runPolicy.podFailurePolicy.rules[0].onDevice[0]"));
	assert_true(complains("spec.runPolicy.podFailurePolicy.rules[1].onPodReasons[0]"));
	/* An unknown device class gives a warning, because it may be a class of a newer agent. */
	assert_int_equal(errors.warnings_len, 1);
	b.rules[0].device_classes = b.rules[1].pod_reasons = words + 2;
	b.rules[0].device_classes_len = b.rules[1].pod_reasons_len = 1;
	assert_int_equal(complaints(NULL), 0);
	b.rules[0].name = "two\nlines";
	b.rules[1].name = "";
	assert_int_equal(complaints(NULL), 2);
	assert_true(complains("spec.runPolicy.podFailurePolicy.rules[0].name"));
	assert_true(complains("spec.runPolicy.podFailurePolicy.rules[1].name"));
	b.view.run_policy.rules_len = 0;
	b.view.run_policy.recovery.replace_delay_seconds = HF_SOME_INT(1000);
	assert_int_equal(complaints(NULL), 0);
	assert_int_equal(errors.warnings_len, 1);
	brain_release(&b);
}

static void numbers_below_their_minimum_name_their_field(void **state)
{
	struct hf_run_policy *policy = &b.view.run_policy;

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	policy->recovery.backoff_initial_seconds = HF_SOME_INT(0);
	policy->recovery.settle_seconds = HF_SOME_INT(-1);
	policy->recovery.incident_seconds = HF_SOME_INT(-1);
	policy->recovery.restart_grace_seconds = HF_SOME_INT(-1);
	policy->recovery.replace_delay_seconds = HF_SOME_INT(-1);
	policy->recovery.force_delete_after_seconds = HF_SOME_INT(-1);
	policy->recovery.device_limit = HF_SOME_INT(-1);
	assert_int_equal(complaints(NULL), 7);
	assert_true(complains("spec.runPolicy.recovery.backoff.initialSeconds"));
	assert_true(complains("spec.runPolicy.recovery.settleSeconds"));
	policy->recovery = (struct hf_recovery_spec){.settle_seconds = HF_SOME_INT(0)};
	assert_int_equal(complaints(NULL), 0);
	brain_release(&b);
}

static void too_many_rules_values_and_patterns_are_refused(void **state)
{
	static struct hf_rule many[HF_RULES_MAX + 1];
	static int32_t values[HF_RULE_VALUES_MAX + 1];
	static struct hf_rule_condition patterns[HF_RULE_PATTERNS_MAX + 1];
	struct hf_run_policy *policy = &b.view.run_policy;

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	for (int i = 0; i <= HF_RULE_VALUES_MAX; i++)
		values[i] = i + 1;
	for (int i = 0; i <= HF_RULE_PATTERNS_MAX; i++)
		patterns[i] = (struct hf_rule_condition){.type = "Ready", .status = "False"};
	for (int i = 0; i <= HF_RULES_MAX; i++)
		many[i] = (struct hf_rule){.action = HF_RULE_COUNT,
					   .has_exit_codes = true,
					   .values = values,
					   .values_len = 2};
	policy->has_pod_failure_policy = true;
	policy->rules = many;
	policy->rules_len = HF_RULES_MAX;
	assert_int_equal(complaints(NULL), 0);
	policy->rules_len = HF_RULES_MAX + 1;
	assert_int_equal(complaints(NULL), 1);
	policy->rules_len = 2;
	many[0].values_len = HF_RULE_VALUES_MAX + 1;
	many[1] = (struct hf_rule){.action = HF_RULE_COUNT,
				   .has_pod_conditions = true,
				   .pod_conditions = patterns,
				   .pod_conditions_len = HF_RULE_PATTERNS_MAX + 1};
	assert_int_equal(complaints(NULL), 2);
	brain_release(&b);
}

static void a_container_is_looked_for_where_the_rule_applies(void **state)
{
	static const int32_t value[] = {1};
	static const char *const boss[] = {"Boss"};
	static const struct hf_container init = {.name = "warm-up", .image = "x"};
	struct hf_run_policy *policy = &b.view.run_policy;

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.replicas[1].pod.init_containers = &init; /* the Hand's */
	b.replicas[1].pod.init_containers_len = 1;
	b.rules[0] = (struct hf_rule){.action = HF_RULE_COUNT,
				      .has_exit_codes = true,
				      .values = value,
				      .values_len = 1,
				      .container = "warm-up"};
	policy->rules_len = 1;
	assert_int_equal(complaints(NULL), 0);
	b.rules[0].replica_types = boss;
	b.rules[0].replica_types_len = 1;
	assert_int_equal(complaints(NULL), 1);
	assert_true(
		complains("spec.runPolicy.podFailurePolicy.rules[0].onExitCodes.containerName"));
	brain_release(&b);
}

static void the_order_of_the_map_does_not_matter(void **state)
{
	HF_AUTO_STRBUF one = HF_STRBUF_INIT(1 << 16);
	HF_AUTO_STRBUF two = HF_STRBUF_INIT(1 << 16);
	struct hf_replica_spec swap;

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.replicas[0].restart_policy = "A";
	b.replicas[1].restart_policy = "B";
	assert_int_equal(complaints(NULL), 2);
	hf_field_errors_write(&errors, &one);
	swap = b.replicas[0];
	b.replicas[0] = b.replicas[1];
	b.replicas[1] = swap;
	assert_int_equal(complaints(NULL), 2);
	hf_field_errors_write(&errors, &two);
	assert_string_equal(one.data, two.data);
	brain_release(&b);
}

static void long_names_and_lists_of_a_rule_are_refused(void **state)
{
	static const char *reasons[HF_RULE_PATTERNS_MAX + 1];
	struct hf_run_policy *policy = &b.view.run_policy;
	char name[65];

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	for (size_t i = 0; i < HF_ARRAY_LEN(reasons); i++)
		reasons[i] = "Evicted";
	memset(name, 'a', sizeof(name));
	name[63] = '\0';
	b.rules[0] = (struct hf_rule){.name = name,
				      .action = HF_RULE_COUNT,
				      .has_pod_reasons = true,
				      .pod_reasons = reasons,
				      .pod_reasons_len = HF_RULE_PATTERNS_MAX};
	policy->rules = b.rules;
	policy->rules_len = 1;
	assert_int_equal(complaints(NULL), 0);
	name[63] = 'a';
	name[64] = '\0';
	b.rules[0].pod_reasons_len++;
	assert_int_equal(complaints(NULL), 2);
	assert_true(complains("spec.runPolicy.podFailurePolicy.rules[0].name"));
	assert_true(complains("spec.runPolicy.podFailurePolicy.rules[0].onPodReasons"));
	b.rules[0] = (struct hf_rule){.action = HF_RULE_COUNT, .has_device = true};
	assert_int_equal(complaints(NULL), 1);
	assert_true(complains("spec.runPolicy.podFailurePolicy.rules[0].onDevice"));
	brain_release(&b);
}

/* The same limits as in the CRDs: lengths count characters, and types are compared as written. */
static void lengths_are_of_characters_and_types_are_as_written(void **state)
{
	static const char *const worker[] = {"hand"};
	static struct hf_rule_condition condition = {.type = "Ready"};
	char name[3 * 64 + 1] = "", reason[1026];
	const char *const reasons[] = {reason};

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	for (int i = 0; i < 63; i++)
		memcpy(name + strlen(name), "\xe2\x82\xac", 3);
	memset(reason, 'a', sizeof(reason));
	reason[128] = '\0';
	b.rules[0] = (struct hf_rule){.name = name,
				      .action = HF_RULE_COUNT,
				      .has_pod_reasons = true,
				      .pod_reasons = reasons,
				      .pod_reasons_len = 1};
	b.view.run_policy.rules_len = 1;
	assert_int_equal(complaints(NULL), 0);
	memcpy(name + strlen(name), "\xe2\x82\xac", 3);
	reason[128] = 'a';
	reason[129] = '\0';
	b.rules[0].has_replica_types = true;
	assert_int_equal(complaints(NULL), 3);
	assert_true(complains("spec.runPolicy.podFailurePolicy.rules[0].name"));
	assert_true(complains("spec.runPolicy.podFailurePolicy.rules[0].onPodReasons[0]"));
	assert_true(complains("spec.runPolicy.podFailurePolicy.rules[0].replicaTypes"));
	reason[65] = '\0';
	b.rules[0] = (struct hf_rule){.action = HF_RULE_COUNT,
				      .has_replica_types = true,
				      .replica_types = worker,
				      .replica_types_len = 1,
				      .has_device = true,
				      .device_classes = reasons,
				      .device_classes_len = 1};
	assert_int_equal(complaints(NULL), 2);
	assert_true(complains("spec.runPolicy.podFailurePolicy.rules[0].onDevice[0]"));
	assert_true(complains("spec.runPolicy.podFailurePolicy.rules[0].replicaTypes[0]"));
	memset(reason, 'a', sizeof(reason));
	reason[1025] = '\0';
	condition.reason = reason;
	b.rules[0] = (struct hf_rule){.action = HF_RULE_COUNT,
				      .has_pod_conditions = true,
				      .pod_conditions = &condition,
				      .pod_conditions_len = 1};
	assert_int_equal(complaints(NULL), 1);
	assert_true(
		complains("spec.runPolicy.podFailurePolicy.rules[0].onPodConditions[0].reason"));
	reason[1024] = '\0';
	assert_int_equal(complaints(NULL), 0);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_job_is_fine),
		cmocka_unit_test(managed_by_may_not_appear_change_or_go),
		cmocka_unit_test(rules_have_plain_names_and_no_empty_words),
		cmocka_unit_test(numbers_below_their_minimum_name_their_field),
		cmocka_unit_test(too_many_rules_values_and_patterns_are_refused),
		cmocka_unit_test(long_names_and_lists_of_a_rule_are_refused),
		cmocka_unit_test(a_container_is_looked_for_where_the_rule_applies),
		cmocka_unit_test(the_order_of_the_map_does_not_matter),
		cmocka_unit_test(lengths_are_of_characters_and_types_are_as_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
