/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include <string.h>

static struct brain b;

static void begin(void)
{
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
}

static void a_request_for_one_replica_restarts_that_one_for_nothing(void **state)
{
	(void)state;
	begin();
	b.view.restart = "2026-01-01T00:00:00Z hand-2";
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-2"));
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 1);
	assert_int_equal(b.plan.status.ledger.incident.charged, HF_BUDGET_NONE);
	brain_perform_all(&b);
	brain_terminating_gone(&b);
	brain_run_up(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	assert_int_equal(b.created, 5);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 0);
	/* A new value of the annotation is a new request. */
	b.view.restart = "2026-01-01T00:00:01Z hand-2";
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-2"));
	brain_release(&b);
}

static void a_request_in_scope_job_restarts_all_even_if_it_names_one(void **state)
{
	(void)state;
	begin();
	b.view.run_policy.recovery.restart_scope = "Job";
	b.view.restart = "2026-01-01T00:00:00Z hand-2";
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.generation, 2);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 4);
	brain_release(&b);
}

static void a_request_that_cannot_be_is_answered_once(void **state)
{
	static char long_one[100001];
	const char *const requests[] = {"2026-01-01T00:00:00Z hand-9",
					"2026-01-01T00:00:00Z foot-1",
					"2026-01-01T00:00:00Z nonsense",
					"now",
					"t hand-1",
					"2026-01-01T00:00:00Zhand-1",
					long_one};

	(void)state;
	memset(long_one, 'x', sizeof(long_one) - 1);
	for (size_t i = 0; i < HF_ARRAY_LEN(requests); i++) {
		begin();
		b.view.restart = requests[i];
		brain_step(&b);
		assert_int_equal(hf_plan_actions(&b.plan), 0);
		assert_true(brain_event(&b, "TestJobRestarting")->warning);
		brain_perform_all(&b);
		brain_step(&b);
		assert_int_equal(b.plan.events_len, 0);
		assert_false(b.plan.status_changed);
		/* The explanation names the problem in every step while the annotation is there. */
		assert_true(brain_says(&b, HF_TOPIC_DECISION, "restart"));
		assert_true(strlen(b.plan.status.ledger.restart_handled) <= 128);
		assert_int_equal(b.plan.status.ledger.generation, 1);
		brain_release(&b);
	}
}

static void a_request_from_before_the_job_began_restarts_nothing(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	b.view.restart = "2026-01-01T00:00:00Z";
	brain_run_up(&b);
	assert_int_equal(b.created, 4);
	assert_int_equal(b.view.status.ledger.generation, 1);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_for_one_replica_restarts_that_one_for_nothing),
		cmocka_unit_test(a_request_in_scope_job_restarts_all_even_if_it_names_one),
		cmocka_unit_test(a_request_that_cannot_be_is_answered_once),
		cmocka_unit_test(a_request_from_before_the_job_began_restarts_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
