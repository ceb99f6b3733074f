/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

static struct brain b;

static void begin(void)
{
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
}

static void a_replica_is_written_deleted_and_created_again(void **state)
{
	(void)state;
	begin();
	brain_exit(&b, "demo-hand-1", 137);
	brain_step(&b);
	assert_true(b.plan.status_urgent);
	assert_string_equal(b.plan.status.ledger.roles[BRAIN_HAND].attempts, "1:1");
	assert_string_equal(b.plan.status.ledger.roles[BRAIN_HAND].created, "0,2");
	assert_true(brain_deletes(&b, "demo-hand-1"));
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_POD), 0);
	brain_perform_all(&b);
	brain_step(&b);
	assert_true(brain_creates(&b, "demo-hand-1"));
	assert_string_equal(
		brain_edit(&b, "demo-hand-1", HF_EDIT_ANNOTATION, "holdfast.dev/attempt"), "1");
	assert_string_equal(
		brain_edit(&b, "demo-hand-1", HF_EDIT_ANNOTATION, "holdfast.dev/incident"), "1");
	assert_string_equal(
		brain_edit(&b, "demo-hand-1", HF_EDIT_ANNOTATION, "holdfast.dev/generation"), "1");
	brain_release(&b);
}

static void the_second_one_waits_ten_seconds(void **state)
{
	(void)state;
	begin();
	brain_exit(&b, "demo-hand-1", 137);
	brain_run_up(&b);
	brain_after(&b, 60);
	brain_exit(&b, "demo-hand-1", 137);
	brain_quiet(&b);
	assert_null(brain_pod(&b, "demo-hand-1"));
	assert_true(b.plan.wake_at >= b.now + 10 * HF_SECOND);
	assert_true(b.plan.wake_at <= b.now + 11 * HF_SECOND);
	b.now = b.plan.wake_at;
	brain_quiet(&b);
	assert_non_null(brain_pod(&b, "demo-hand-1"));
	brain_release(&b);
}

static void a_ledger_that_outgrows_its_limit_begins_anew(void **state)
{
	struct hf_strbuf attempts = HF_STRBUF_INIT(1 << 20);

	(void)state;
	brain_init(&b, &brain_kind, 1, 200);
	brain_run_up(&b);
	/* The ledger has attempts of ranks far beyond the replicas, as if the job had been
	 * larger. */
	for (int i = 300; i < 12000; i++)
		hf_strbuf_addf(&attempts, "%s%d:1", i > 300 ? "," : "", i);
	b.view.status.ledger.roles[BRAIN_HAND].attempts = attempts.data;
	brain_exit(&b, "demo-hand-1", 137);
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.generation, 2);
	assert_null(b.plan.status.ledger.roles[BRAIN_HAND].attempts);
	assert_int_equal(b.plan.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 201);
	assert_true(brain_says(&b, HF_TOPIC_DECISION, "outgrown"));
	hf_strbuf_release(&attempts);
	brain_release(&b);
}

static void a_rank_scaled_away_and_back_is_no_loss(void **state)
{
	(void)state;
	begin();
	b.replicas[1].replicas = HF_SOME_INT(1);
	brain_quiet(&b);
	b.replicas[1].replicas = HF_SOME_INT(3); /* while the old pods still terminate */
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.incident.id, 0);
	brain_terminating_gone(&b);
	brain_run_up(&b);
	assert_int_equal(b.view.status.ledger.incident.id, 0);
	assert_int_equal(b.pods_len, 4);
	assert_string_equal(b.view.status.ledger.roles[BRAIN_HAND].attempts, "1:1,2:1");
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_replica_is_written_deleted_and_created_again),
		cmocka_unit_test(the_second_one_waits_ten_seconds),
		cmocka_unit_test(a_ledger_that_outgrows_its_limit_begins_anew),
		cmocka_unit_test(a_rank_scaled_away_and_back_is_no_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
