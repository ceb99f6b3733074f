/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

#include <string.h>

static struct brain b;
static const int32_t codes[] = {42, 43};

static struct brain_pod *begin(struct hf_rule rule)
{
	/* The job runs before it gets the rule, because validation would refuse some of these rules
	 * in a new job. */
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	b.rules[0] = rule;
	b.view.run_policy.has_pod_failure_policy = true;
	b.view.run_policy.rules_len = 1;
	return brain_pod(&b, "demo-hand-0");
}

/* Whether the rule matches.  Every rule in these tests says FailJob, so a match fails the job. */
static bool matches(void)
{
	brain_step(&b);
	return hf_status_is_true(&b.plan.status, HF_COND_FAILED);
}

static bool is_told(const char *part)
{
	const struct hf_condition *failed = hf_status_condition(&b.plan.status, HF_COND_FAILED);

	return failed && strstr(failed->message, part);
}

static const struct hf_rule on_codes = {.action = HF_RULE_FAIL_JOB,
					.has_exit_codes = true,
					.op = HF_RULE_IN,
					.values = codes,
					.values_len = 2};

static void exit_codes_in_and_not_in(void **state)
{
	struct hf_rule rule = on_codes;

	(void)state;
	begin(rule);
	brain_exit(&b, "demo-hand-0", 43);
	assert_true(matches());
	brain_release(&b);
	begin(rule);
	brain_exit(&b, "demo-hand-0", 1);
	assert_false(matches());
	brain_release(&b);
	rule.op = HF_RULE_NOT_IN;
	begin(rule);
	brain_exit(&b, "demo-hand-0", 1);
	assert_true(matches());
	brain_release(&b);
}

static void code_0_is_never_looked_at(void **state)
{
	struct hf_rule rule = on_codes;
	struct brain_pod *pod;

	(void)state;
	rule.op = HF_RULE_NOT_IN;
	pod = begin(rule);
	brain_exit(&b, "demo-hand-0", 0);
	pod->pod.phase = HF_POD_FAILED; /* something else in it failed */
	assert_false(matches());
	brain_release(&b);
}

static void a_container_name_narrows_the_rule(void **state)
{
	struct hf_rule rule = on_codes;
	struct brain_pod *pod;

	(void)state;
	rule.container = "side";
	pod = begin(rule);
	brain_exit(&b, "demo-hand-0", 42);
	assert_false(matches());
	pod->containers[1] = pod->containers[0];
	pod->containers[1].name = "side";
	pod->containers[1].init = true; /* the rule also matches an init container of this name */
	pod->pod.containers_len = 2;
	assert_true(matches());
	brain_release(&b);
}

static void only_the_named_types_are_meant(void **state)
{
	static const char *const boss[] = {"Boss"};
	struct hf_rule rule = on_codes;

	(void)state;
	rule.replica_types = boss;
	rule.replica_types_len = 1;
	begin(rule);
	brain_exit(&b, "demo-hand-0", 42);
	assert_false(matches());
	brain_release(&b);
	begin(rule);
	brain_exit(&b, "demo-boss-0", 42);
	assert_true(matches());
	brain_release(&b);
}

static void conditions_match_type_status_and_reason(void **state)
{
	static struct hf_rule_condition pattern = {.type = "DisruptionTarget"};
	const struct hf_rule rule = {.action = HF_RULE_FAIL_JOB,
				     .has_pod_conditions = true,
				     .pod_conditions = &pattern,
				     .pod_conditions_len = 1};

	(void)state;
	begin(rule);
	brain_exit(&b, "demo-hand-0", 1);
	brain_disrupt(&b, "demo-hand-0");
	assert_true(matches()); /* True is the default */
	pattern.status = "False";
	assert_false(matches());
	pattern.status = "True";
	pattern.reason = "EvictionByEvictionAPI";
	assert_false(matches());
	pattern.reason = "PreemptionByScheduler";
	assert_true(matches());
	brain_release(&b);
}

static void the_condition_that_matched_is_told(void **state)
{
	static struct hf_rule_condition patterns[] = {{.type = "Ready", .status = "Unknown"},
						      {.type = "DisruptionTarget"}};
	const struct hf_rule rule = {.action = HF_RULE_FAIL_JOB,
				     .has_pod_conditions = true,
				     .pod_conditions = patterns,
				     .pod_conditions_len = 2};

	(void)state;
	begin(rule);
	brain_exit(&b, "demo-hand-0", 1);
	brain_disrupt(&b, "demo-hand-0");
	assert_true(matches());
	assert_true(is_told("has condition DisruptionTarget matching"));
	brain_release(&b);
}

static void reasons_match_the_pods_or_a_containers(void **state)
{
	static const char *const reasons[] = {"Evicted", "OOMKilled"};
	struct hf_rule rule = {.action = HF_RULE_FAIL_JOB,
			       .has_pod_reasons = true,
			       .pod_reasons = reasons,
			       .pod_reasons_len = 2};
	struct brain_pod *pod;

	(void)state;
	pod = begin(rule);
	brain_exit(&b, "demo-hand-0", 137);
	assert_false(matches());
	pod->containers[0].terminated_reason = "OOMKilled";
	assert_true(matches());
	assert_true(is_told("has reason OOMKilled"));
	pod->containers[0].terminated_reason = NULL;
	pod->pod.reason = "Evicted";
	assert_true(matches());
	assert_true(is_told("has reason Evicted"));
	brain_release(&b);
	/* A rule for another reason: the container's reason matches, the pod's does not. */
	rule.pod_reasons++;
	rule.pod_reasons_len--;
	pod = begin(rule);
	brain_exit(&b, "demo-hand-0", 137);
	pod->pod.reason = "Evicted";
	pod->containers[0].terminated_reason = "OOMKilled";
	assert_true(matches());
	assert_true(is_told("has reason OOMKilled"));
	brain_release(&b);
}

static void a_rule_with_an_unknown_action_or_operator_matches_nothing(void **state)
{
	struct hf_rule rule = on_codes;

	(void)state;
	rule.action = HF_RULE_UNKNOWN;
	begin(rule);
	brain_exit(&b, "demo-hand-0", 42);
	assert_false(matches());
	brain_release(&b);
	rule = on_codes;
	rule.op = HF_RULE_OPERATOR_UNKNOWN;
	begin(rule);
	brain_exit(&b, "demo-hand-0", 42);
	assert_false(matches());
	brain_release(&b);
	rule = (struct hf_rule){.action = HF_RULE_FAIL_JOB, .has_device = true};
	begin(rule);
	brain_exit(&b, "demo-hand-0", 42);
	assert_false(matches());
	brain_release(&b);
}

static void a_persons_delete_is_no_failure(void **state)
{
	static struct hf_rule_condition ready = {.type = "DisruptionTarget", .status = "Unknown"};
	const struct hf_rule rule = {.action = HF_RULE_FAIL_JOB,
				     .has_pod_conditions = true,
				     .pod_conditions = &ready,
				     .pod_conditions_len = 1};
	struct brain_pod *pod = begin(rule);

	(void)state;
	brain_disrupt(&b, "demo-hand-0");
	pod->condition.status = "Unknown";
	brain_terminate(&b, "demo-hand-0");
	assert_false(matches());
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_codes_in_and_not_in),
		cmocka_unit_test(code_0_is_never_looked_at),
		cmocka_unit_test(a_container_name_narrows_the_rule),
		cmocka_unit_test(only_the_named_types_are_meant),
		cmocka_unit_test(conditions_match_type_status_and_reason),
		cmocka_unit_test(the_condition_that_matched_is_told),
		cmocka_unit_test(reasons_match_the_pods_or_a_containers),
		cmocka_unit_test(a_rule_with_an_unknown_action_or_operator_matches_nothing),
		cmocka_unit_test(a_persons_delete_is_no_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
