/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"
#include "core/model/ledger_text_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

#include <string.h>

static struct brain b;

static void a_new_job_starts_at_generation_1(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.generation, 1);
	assert_int_equal(b.plan.status.ledger.schema, HF_LEDGER_SCHEMA);
	assert_int_equal(b.plan.status.ledger.incident.id, 0);
	assert_true(b.plan.status_changed);
	assert_false(b.plan.status_urgent); /* its pods will say as much */
	brain_release(&b);
}

static void pods_of_another_operator_are_generation_0_and_keep_running(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	memset(&b.view.status.ledger, 0, sizeof(b.view.status.ledger));
	for (size_t i = 0; i < b.pods_len; i++) {
		b.pods[i].pod.stamped = false;
		b.pods[i].containers[0].restart_count = 7;
	}
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.generation, 0);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 0);
	assert_string_equal(b.view.status.ledger.roles[BRAIN_HAND].seen, "0:7,1:7");
	assert_int_equal(b.created, 3);
	/* After the take-over, the job's restarts are charged like those of any other job. */
	brain_crash_in_place(&b, "demo-hand-0");
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	brain_exit(&b, "demo-hand-1", 1);
	brain_quiet(&b);
	assert_int_equal(brain_pod(&b, "demo-hand-1")->pod.generation, 0);
	assert_int_equal(brain_pod(&b, "demo-hand-1")->pod.attempt, 1);
	brain_release(&b);
}

static void a_restart_before_the_first_ledger_is_counted(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	memset(&b.view.status, 0, sizeof(b.view.status));
	b.view.status.start_time = b.view.status.completion_time = HF_TIME_NONE;
	b.view.status.last_reconcile_time = HF_TIME_NONE;
	b.pods[1].containers[0].restart_count = 1;
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.generation, 1);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	brain_release(&b);
}

/* The state after upstream's operator: a status without a ledger, pods without stamps. */
static void forget_ledger(void)
{
	memset(&b.view.status.ledger, 0, sizeof(b.view.status.ledger));
}

static void make_foreign(const char *name)
{
	struct brain_pod *pod = brain_pod(&b, name);

	pod->pod.stamped = false;
	pod->pod.generation = pod->pod.attempt = pod->pod.incident = 0;
	pod->pod.creation_time = b.now;
}

static void pods_of_two_operators_are_one_job_and_keep_running(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 4);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_run_up(&b);
	make_foreign("demo-hand-1");
	make_foreign("demo-hand-3");
	forget_ledger();
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.generation, 1);
	assert_int_equal(b.view.status.ledger.phase, HF_PHASE_RUNNING);
	assert_string_equal(b.view.status.ledger.roles[BRAIN_HAND].created, "0-3");
	assert_string_equal(b.view.status.ledger.roles[BRAIN_HAND].attempts, "0:1");
	assert_int_equal(b.created, 6);
	/* A termination of a pod without stamps is charged, and only its rank gets a new pod. */
	brain_after(&b, 3600);
	brain_exit(&b, "demo-hand-3", 1);
	brain_quiet(&b);
	assert_int_equal(b.created, 7);
	assert_int_equal(brain_pod(&b, "demo-hand-3")->pod.attempt, 1);
	assert_false(brain_pod(&b, "demo-hand-1")->pod.stamped);
	brain_release(&b);
}

static void a_generation_of_two_operators_goes_as_one(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.recovery.restart_scope = "Job";
	brain_run_up(&b);
	make_foreign("demo-hand-1");
	forget_ledger();
	brain_quiet(&b);
	assert_int_equal(b.created, 3);
	brain_exit(&b, "demo-hand-0", 1);
	brain_step(&b);
	assert_int_equal(b.plan.status.ledger.generation, 2);
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 3);
	/* If the operator crashes here, the next operator finds the new generation and a pod
	 * without stamps.  That pod counts as older. */
	brain_write_status(&b);
	brain_gone(&b, "demo-boss-0");
	brain_gone(&b, "demo-hand-0");
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-1"));
	assert_int_equal(brain_count(&b, HF_ACTION_CREATE_POD), 0);
	brain_perform_all(&b);
	brain_terminating_gone(&b);
	brain_quiet(&b);
	assert_int_equal(b.created, 6);
	brain_release(&b);
}

static void what_another_operator_made_under_a_ledger_that_lived_on_stays(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	/* The other operator replaced a pod that the ledger has seen, and made a pod that the ledger never saw. */
	make_foreign("demo-hand-1");
	make_foreign("demo-hand-2");
	b.view.status.ledger.roles[BRAIN_HAND].created = "0-1";
	brain_quiet(&b);
	assert_int_equal(b.created, 4);
	assert_string_equal(b.view.status.ledger.roles[BRAIN_HAND].created, "0-2");
	/* The other operator creates a pod for an attempt that Holdfast had decided on but not
	 * created yet. */
	brain_after(&b, 10);
	make_foreign("demo-hand-1");
	b.view.status.ledger.roles[BRAIN_HAND].created = "0,2";
	b.view.status.ledger.roles[BRAIN_HAND].attempts = "1:1";
	brain_quiet(&b);
	assert_int_equal(b.created, 4);
	/* A pod that is older than that decision counts as given up. */
	brain_pod(&b, "demo-hand-1")->pod.creation_time = b.view.status.ledger.since - HF_SECOND;
	b.view.status.ledger.roles[BRAIN_HAND].created = "0,2";
	brain_step(&b);
	assert_true(brain_deletes(&b, "demo-hand-1"));
	assert_int_equal(brain_count(&b, HF_ACTION_DELETE_POD), 1);
	brain_release(&b);
}

static void what_is_made_while_a_generation_goes_is_of_the_next(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.recovery.restart_scope = "Job";
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.phase, HF_PHASE_TEARING);
	/* While Holdfast is away, another operator deletes the remaining pods and creates all pods
	 * anew. */
	brain_terminating_gone(&b);
	brain_after(&b, 60);
	brain_quiet(&b);
	b.view.status.ledger.phase = HF_PHASE_TEARING;
	b.view.status.ledger.roles[BRAIN_BOSS].created = NULL;
	b.view.status.ledger.roles[BRAIN_HAND].created = NULL;
	b.view.status.ledger.since = b.now - HF_SECOND;
	make_foreign("demo-boss-0");
	make_foreign("demo-hand-0");
	make_foreign("demo-hand-1");
	brain_quiet(&b);
	assert_int_equal(b.created, 6);
	assert_int_equal(b.view.status.ledger.generation, 2);
	assert_int_not_equal(b.view.status.ledger.phase, HF_PHASE_TEARING);
	brain_release(&b);
}

static void an_erased_ledger_is_read_off_the_pods(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.run_policy.recovery.restart_scope = "Job";
	brain_run_up(&b);
	for (int i = 0; i < 3; i++) {
		brain_exit(&b, "demo-hand-1", 1);
		brain_quiet(&b);
		brain_terminating_gone(&b);
		brain_after(&b, 300);
		brain_run_up(&b);
	}
	assert_int_equal(b.view.status.ledger.generation, 4);
	memset(&b.view.status.ledger, 0, sizeof(b.view.status.ledger));
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.generation, 4);
	assert_int_equal(b.view.status.ledger.incident.id, 3);
	assert_int_equal(b.created, 12);
	brain_release(&b);
}

static void after_an_erasure_ends_of_the_open_incident_are_still_covered(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_run_up(&b);
	memset(&b.view.status.ledger, 0, sizeof(b.view.status.ledger));
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.incident.id, 1);
	assert_int_equal(b.view.status.ledger.records_len, 0);
	brain_exit(&b, "demo-hand-1", 1);
	brain_run_up(&b);
	assert_int_equal(b.view.status.ledger.incident.id, 1);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 0);
	assert_string_equal(b.view.status.ledger.records[0].replica, "hand-1");
	assert_int_equal(b.view.status.ledger.incident.cause, HF_CLASS_APPLICATION);
	brain_release(&b);
}

static void texts_survive_writing_and_reading(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 12);
	brain_run_up(&b);
	assert_string_equal(b.view.status.ledger.roles[BRAIN_HAND].created, "0-11");
	brain_exit(&b, "demo-hand-3", 0);
	brain_exit(&b, "demo-hand-7", 1);
	brain_exit(&b, "demo-hand-8", 1);
	brain_quiet(&b);
	assert_string_equal(b.view.status.ledger.roles[BRAIN_HAND].succeeded, "3");
	assert_string_equal(b.view.status.ledger.roles[BRAIN_HAND].attempts, "7:1,8:1");
	brain_gone(&b, "demo-hand-3");
	brain_quiet(&b);
	assert_null(brain_pod(&b, "demo-hand-3"));
	brain_release(&b);
}

static void an_unreadable_ledger_holds_the_job(void **state)
{
	static const struct hf_role_ledger broken[] = {
		{.attempts = "1"},   {.created = "3-1"},        {.succeeded = "x"},
		{.seen = "1:0"},     {.covered = "1,"},         {.hold = "2-1"},
		{.in_place = "1:0"}, {.in_place_since = "x:1"}, {.init_seen = "1"}};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(broken); i++) {
		brain_init(&b, &brain_kind, 1, 2);
		brain_run_up(&b);
		b.view.status.ledger.roles[BRAIN_HAND] = broken[i];
		brain_exit(&b, "demo-hand-0", 1);
		brain_step(&b);
		assert_true(hf_status_is_true(&b.plan.status, HF_COND_HELD));
		assert_true(b.plan.status.ledger.kept);
		assert_int_equal(hf_plan_actions(&b.plan), 0);
		assert_non_null(strstr(hf_status_condition(&b.plan.status, HF_COND_HELD)->message,
				       "status.recovery.replicas[Hand]"));
		brain_release(&b);
	}
	/* If the schema is no number, the reader of the status gives -1. */
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	b.view.status.ledger.schema = -1;
	brain_step(&b);
	assert_true(hf_status_is_true(&b.plan.status, HF_COND_HELD));
	assert_true(b.plan.status.ledger.kept);
	brain_release(&b);
}

static void size_is_bounded_and_counts_every_text(void **state)
{
	struct hf_ledger ledger = {.present = true};
	size_t empty = hf_ledger_bytes(&ledger);

	(void)state;
	assert_true(empty < 4096);
	ledger.roles[0].attempts = "17:2,40:1";
	ledger.verdict.message = "because";
	assert_true(hf_ledger_bytes(&ledger) > empty + 16);
	ledger.records_len = HF_RECORDS_MAX;
	assert_true(hf_ledger_bytes(&ledger) > empty + HF_RECORDS_MAX * 100);
}

/* ---- what it weighs -------------------------------------------------------------------------------- */

/* The bytes of a ledger with one replica type.  Every step-th of its ranks was restarted alone
 * until it reached `attempt`. */
static size_t weigh(int32_t ranks, int32_t step, int64_t attempt, size_t records)
{
	HF_AUTO_STRBUF attempts = HF_STRBUF_INIT((size_t)1 << 20);
	HF_AUTO_STRBUF created = HF_STRBUF_INIT((size_t)1 << 20);
	struct hf_ranges_writer writer = HF_RANGES_WRITER_INIT(&created);
	struct hf_ledger ledger;

	hf_ledger_blank(&ledger);
	for (int32_t i = 0; i < ranks; i++) {
		bool alone = step > 0 && i % step == 0;

		hf_sparse_add(&attempts, i, alone ? attempt : 0);
		/* Ranks that were restarted last have no pod yet, so the text of ranges does not
		 * shorten. */
		if (!alone)
			hf_ranges_add(&writer, i);
	}
	hf_ranges_finish(&writer);
	ledger.roles[0].attempts = attempts.data;
	ledger.roles[0].created = created.data;
	ledger.records_len = records;
	for (size_t i = 0; i < records; i++)
		ledger.records[i] = (struct hf_record){.reason = "DeletionByTaintManager",
						       .scope = "Replica",
						       .replica = "worker-9999",
						       .pod = "a-name-of-middle-length-worker-9999",
						       .node = "gpu-node-1234.example.internal",
						       .ended_at = HF_TIME_NONE,
						       .down_at = HF_TIME_NONE};
	return hf_ledger_bytes(&ledger);
}

static void what_it_weighs_does_not_depend_on_the_ranks_but_on_those_restarted_alone(void **state)
{
	static const int32_t sizes[] = {1000, 10000};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(sizes); i++) {
		int32_t n = sizes[i];

		print_message(
			"%d ranks, bytes at most: at rest %zu, after a restart %zu, with all "
			"its history %zu; each fiftieth restarted alone %zu, every other %zu, "
			"each %zu\n",
			n, weigh(n, 0, 0, 0), weigh(n, 0, 0, 1), weigh(n, 0, 0, HF_RECORDS_MAX),
			weigh(n, 50, 3, HF_RECORDS_MAX), weigh(n, 2, 12, HF_RECORDS_MAX),
			weigh(n, 1, 12, HF_RECORDS_MAX));
		/* Typical: ranges collapse. */
		assert_true(weigh(n, 0, 0, 1) < 3072);
		assert_true(weigh(n, 0, 0, HF_RECORDS_MAX) < 12288);
	}
	/* The worst case: a thousand ranks fit, and with ten thousand the ledger begins anew
	 * (restart.c). */
	assert_true(weigh(1000, 1, 12, HF_RECORDS_MAX) < HF_LEDGER_BYTES_MAX / 2);
	assert_true(weigh(1000, 2, 999, HF_RECORDS_MAX) < HF_LEDGER_BYTES_MAX / 2);
	assert_true(weigh(10000, 50, 3, HF_RECORDS_MAX) < HF_LEDGER_BYTES_MAX / 2);
	assert_true(weigh(10000, 1, 12, HF_RECORDS_MAX) > HF_LEDGER_BYTES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_restart_before_the_first_ledger_is_counted),
		cmocka_unit_test(a_new_job_starts_at_generation_1),
		cmocka_unit_test(pods_of_another_operator_are_generation_0_and_keep_running),
		cmocka_unit_test(pods_of_two_operators_are_one_job_and_keep_running),
		cmocka_unit_test(a_generation_of_two_operators_goes_as_one),
		cmocka_unit_test(what_another_operator_made_under_a_ledger_that_lived_on_stays),
		cmocka_unit_test(what_is_made_while_a_generation_goes_is_of_the_next),
		cmocka_unit_test(an_erased_ledger_is_read_off_the_pods),
		cmocka_unit_test(after_an_erasure_ends_of_the_open_incident_are_still_covered),
		cmocka_unit_test(texts_survive_writing_and_reading),
		cmocka_unit_test(an_unreadable_ledger_holds_the_job),
		cmocka_unit_test(size_is_bounded_and_counts_every_text),
		cmocka_unit_test(
			what_it_weighs_does_not_depend_on_the_ranks_but_on_those_restarted_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
