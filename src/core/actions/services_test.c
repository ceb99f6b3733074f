/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

static struct brain b;

static const struct hf_action *service(const char *name)
{
	for (size_t i = 0; i < b.plan.stages[0].actions_len; i++) {
		const struct hf_action *action = &b.plan.stages[0].actions[i];

		if (action->kind == HF_ACTION_CREATE_SERVICE && hf_streq(action->name, name))
			return action;
	}
	fail_msg("no service %s", name);
	return NULL;
}

static void one_headless_service_per_replica_before_its_pods(void **state)
{
	const struct hf_action *action;

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_SERVICE), 3);
	assert_int_equal(b.plan.stages[0].actions[2].kind, HF_ACTION_CREATE_SERVICE);
	assert_int_equal(b.plan.stages[0].actions[3].kind, HF_ACTION_CREATE_POD);
	action = service("demo-hand-1");
	assert_int_equal(action->labels_len, 4);
	assert_string_equal(action->labels[3].value, "1");
	assert_int_equal(action->ports_len, 1);
	assert_string_equal(action->ports[0].name, "test-port");
	assert_int_equal(action->ports[0].number, 4242);
	brain_release(&b);
}

static void ports_of_one_name_are_one_and_each_has_a_name(void **state)
{
	static const struct hf_port ports[] = {
		{"a", 1}, {"", 2}, {"a", 3}, {"", 4}, {"test-port", 5}};
	static const struct hf_container container = {
		.name = "main", .image = "x", .ports = ports, .ports_len = 5};
	const struct hf_action *action;

	(void)state;
	brain_init(&b, &brain_kind, 0, 1);
	b.replicas[0].pod.containers = &container;
	brain_step(&b);
	action = service("demo-hand-0");
	assert_int_equal(action->ports_len, 3);
	assert_int_equal(action->ports[0].number, 3);
	assert_string_equal(action->ports[1].name, "port-4");
	assert_int_equal(action->ports[2].number, 5);
	brain_release(&b);
}

static void services_outlive_their_pods(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.recovery.restart_scope = "Job";
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	for (int i = 0; i < 4; i++) {
		brain_step(&b);
		assert_int_equal(brain_count(&b, HF_ACTION_DELETE_SERVICE), 0);
		assert_int_equal(brain_count(&b, HF_ACTION_CREATE_SERVICE), 0);
		brain_perform_all(&b);
		brain_terminating_gone(&b);
	}
	brain_release(&b);
}

static void a_lost_service_is_created_again_and_another_owners_stays(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	b.services[0].service.owned = false;
	b.services[2] = b.services[--b.services_len];
	brain_step(&b);
	assert_int_equal(hf_plan_actions(&b.plan), 1);
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_SERVICE), 1);
	brain_release(&b);
}

static void a_kind_may_have_none(void **state)
{
	struct hf_framework kind = brain_kind;

	(void)state;
	kind.has_services = false;
	brain_init(&b, &kind, 1, 2);
	brain_step(&b);
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_SERVICE), 0);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_headless_service_per_replica_before_its_pods),
		cmocka_unit_test(ports_of_one_name_are_one_and_each_has_a_name),
		cmocka_unit_test(services_outlive_their_pods),
		cmocka_unit_test(a_lost_service_is_created_again_and_another_owners_stays),
		cmocka_unit_test(a_kind_may_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
