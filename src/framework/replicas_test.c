/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "framework/replicas_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

static struct brain b;
static struct hf_field_errors errors;

static size_t count_problems(struct hf_replicas_rules rules)
{
	hf_field_errors_init(&errors, b.pass);
	hf_replicas_validate(&b.view, &rules, &errors);
	return errors.len;
}

static const struct hf_replicas_rules strict = {.known_types_only = true,
						.single_role = BRAIN_BOSS,
						.others_at_least_one = true,
						.required_role = -1};
static const struct hf_replicas_rules lax = {.single_role = -1, .required_role = -1};

static void each_kind_has_its_own_rules(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	assert_int_equal(count_problems(strict), 0);
	b.replicas[0].replicas = HF_SOME_INT(2);
	b.replicas[1].replicas = HF_SOME_INT(0);
	assert_int_equal(count_problems(strict), 2);
	assert_int_equal(count_problems(lax), 0);
	b.replicas[1].replicas = HF_SOME_INT(-1);
	/* Upstream accepts a negative number, but such a job cannot run. */
	assert_int_equal(count_problems(lax), 1);
	b.replicas[0].type = "boss";
	b.replicas[1].replicas = HF_SOME_INT(1);
	assert_int_equal(count_problems(lax), 0);
	b.replicas[0].replicas = HF_SOME_INT(1);
	assert_int_equal(count_problems(strict), 1);
	assert_int_equal(errors.items[0].problem, HF_PROBLEM_NOT_SUPPORTED);
	brain_release(&b);
}

static void every_kind_requires_containers(void **state)
{
	static const struct hf_container two[] = {{.name = "main", .image = ""},
						  {.name = "", .image = ""}};

	(void)state;
	brain_init(&b, &brain_kind, 1, 1);
	b.replicas[1].pod.containers = two;
	b.replicas[1].pod.containers_len = 2;
	assert_int_equal(count_problems(lax), 2);
	assert_string_equal(errors.items[1].field,
			    "spec.testReplicaSpecs[Hand].template.spec.containers[1].image");
	b.replicas[1].null = true;
	assert_int_equal(count_problems(strict), 2);
	b.view.replicas_len = 0;
	assert_int_equal(count_problems(strict), 0);
	b.view.has_replicas = false;
	assert_int_equal(count_problems(strict), 1);
	assert_int_equal(errors.items[0].problem, HF_PROBLEM_REQUIRED);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_has_its_own_rules),
		cmocka_unit_test(every_kind_requires_containers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
