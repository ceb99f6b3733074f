/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include <string.h>

static struct brain b;
static struct hf_framework kind;
static const struct hf_container of_the_user = {.name = "wait", .image = "image"};

/* demo-hand-0 waits for the boss in an init container that its kind has added; no pod has begun. */
static void wait_for_the_boss(void)
{
	kind = brain_kind;
	kind.init_container = "wait";
	kind.awaited_role = BRAIN_BOSS;
	brain_init(&b, &kind, 1, 2);
	brain_quiet(&b);
}

static struct hf_container_seen *init_container(const char *name)
{
	struct brain_pod *pod = brain_pod(&b, name);

	pod->pod.containers_len = 2;
	pod->containers[1] = (struct hf_container_seen){.name = "wait",
							.init = true,
							.phase = HF_CONTAINER_RUNNING,
							.started_at = b.now,
							.finished_at = HF_TIME_NONE};
	return &pod->containers[1];
}

static void give_up(const char *name)
{
	struct hf_container_seen *wait = init_container(name);

	brain_pod(&b, name)->pod.phase = HF_POD_FAILED;
	wait->phase = HF_CONTAINER_TERMINATED;
	wait->exit_code = 1;
	wait->started_at = b.now - 3 * HF_SECOND;
	wait->finished_at = b.now;
}

static void a_pod_that_waited_in_vain_is_created_again_and_costs_nothing(void **state)
{
	const struct hf_ledger *ledger = &b.plan.status.ledger;

	(void)state;
	wait_for_the_boss();
	give_up("demo-hand-0");
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-0"));
	assert_int_equal(hf_plan_actions(&b.plan), 1);
	assert_int_equal(ledger->incident.id, 0);
	assert_int_equal(ledger->streak[HF_BUDGET_INFRASTRUCTURE], 0);
	assert_non_null(brain_event(&b, "WaitedInVain"));
	assert_null(brain_event(&b, "TestJobRestarting"));
	brain_perform_all(&b);
	/* Counted once. */
	brain_step(&b);
	assert_null(brain_event(&b, "WaitedInVain"));
	brain_release(&b);
}

static void the_delay_is_a_tenth_of_the_time_so_far(void **state)
{
	(void)state;
	wait_for_the_boss();
	brain_after(&b, 1);
	give_up("demo-hand-0");
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.not_before, b.now + 5 * HF_SECOND);
	brain_perform_all(&b);
	brain_after(&b, 599);
	brain_quiet(&b);
	give_up("demo-hand-0");
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.not_before, b.now + 60 * HF_SECOND);
	brain_perform_all(&b);
	brain_after(&b, 100000);
	brain_quiet(&b);
	give_up("demo-hand-0");
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.not_before, b.now + 300 * HF_SECOND);
	brain_release(&b);
}

static void in_a_gang_it_goes_alone(void **state)
{
	(void)state;
	wait_for_the_boss();
	b.view.run_policy.recovery.restart_scope = "Job";
	give_up("demo-hand-1");
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-1"));
	assert_int_equal(hf_plan_actions(&b.plan), 1);
	assert_int_equal(b.plan.status.ledger.generation, 1);
	brain_release(&b);
}

static void what_the_awaited_did_not_lack_is_a_failure(void **state)
{
	(void)state;
	wait_for_the_boss();
	brain_start(&b, "demo-boss-0");
	brain_after(&b, 60);
	give_up("demo-hand-0");
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	brain_release(&b);
}

static void a_users_container_of_that_name_is_his(void **state)
{
	(void)state;
	wait_for_the_boss();
	b.replicas[1].pod.init_containers = &of_the_user;
	b.replicas[1].pod.init_containers_len = 1;
	give_up("demo-hand-0");
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	brain_release(&b);
}

static void restarts_of_the_added_init_container_do_not_count(void **state)
{
	(void)state;
	wait_for_the_boss();
	init_container("demo-hand-0")->restart_count = 7;
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.incident.id, 0);
	brain_crash_in_place(&b, "demo-hand-0");
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	brain_release(&b);
}

static void the_awaited_rank_is_named(void **state)
{
	bool said = false;

	(void)state;
	wait_for_the_boss();
	init_container("demo-hand-0");
	init_container("demo-hand-1");
	brain_step(&b);
	for (size_t i = 0; i < b.plan.reasons_len; i++)
		said |= strstr(b.plan.reasons[i].text,
			       "demo-hand-0 and 1 more wait in init container wait until "
			       "demo-boss-0 runs") != NULL;
	assert_true(said);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_that_waited_in_vain_is_created_again_and_costs_nothing),
		cmocka_unit_test(the_delay_is_a_tenth_of_the_time_so_far),
		cmocka_unit_test(in_a_gang_it_goes_alone),
		cmocka_unit_test(what_the_awaited_did_not_lack_is_a_failure),
		cmocka_unit_test(a_users_container_of_that_name_is_his),
		cmocka_unit_test(restarts_of_the_added_init_container_do_not_count),
		cmocka_unit_test(the_awaited_rank_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
