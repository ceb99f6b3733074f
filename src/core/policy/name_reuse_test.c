/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

/* The state of one job.  Static because of its size; each test sets the state up anew. */
static struct brain b;

/* Taint eviction removes a Hand from a tainted node. */
static void evict(void)
{
	brain_init(&b, &brain_kind, 0, 2);
	brain_run_up(&b);
	brain_node(&b, brain_pod(&b, "demo-hand-1")->node)->no_execute = true;
	brain_disrupt(&b, "demo-hand-1");
	brain_terminate(&b, "demo-hand-1");
	brain_quiet(&b);
}

static void a_name_from_a_tainted_node_stays_empty_for_the_delay(void **state)
{
	(void)state;
	evict();
	brain_gone(&b, "demo-hand-1");
	brain_step(&b);
	assert_false(brain_creates(&b, "demo-hand-1"));
	assert_int_equal(b.plan.wake_at, b.now + 2 * HF_SECOND);
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "stay empty"));
	brain_after(&b, 2);
	brain_step(&b);
	assert_true(brain_creates(&b, "demo-hand-1"));
	brain_release(&b);
}

static void other_names_do_not_wait(void **state)
{
	(void)state;
	evict();
	brain_exit(&b, "demo-hand-0", 137);
	brain_gone(&b, "demo-hand-1");
	brain_step(&b);
	brain_perform_all(&b);
	brain_step(&b);
	assert_true(brain_creates(&b, "demo-hand-0"));
	assert_false(brain_creates(&b, "demo-hand-1"));
	brain_release(&b);
}

static void the_delay_is_the_jobs_own(void **state)
{
	(void)state;
	evict();
	b.view.run_policy.recovery.replace_delay_seconds = HF_SOME_INT(0);
	brain_gone(&b, "demo-hand-1");
	brain_step(&b);
	assert_true(brain_creates(&b, "demo-hand-1"));
	brain_release(&b);
}

static void generations_wait_as_attempts_do(void **state)
{
	(void)state;
	evict();
	b.view.restart = "2026-01-01T00:00:01Z";
	brain_quiet(&b);
	brain_terminating_gone(&b);
	brain_step(&b);
	assert_true(brain_creates(&b, "demo-hand-0"));
	assert_false(brain_creates(&b, "demo-hand-1"));
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_from_a_tainted_node_stays_empty_for_the_delay),
		cmocka_unit_test(other_names_do_not_wait),
		cmocka_unit_test(the_delay_is_the_jobs_own),
		cmocka_unit_test(generations_wait_as_attempts_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
