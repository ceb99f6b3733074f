/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/status.h"
#include "harness/test.h"

/* What restarts cost a job, from a status alone. */

#define START HF_HOUR

static struct hf_condition running = {.type = HF_COND_RUNNING, .status = "True"};

static struct hf_status begin(void)
{
	return (struct hf_status){
		.conditions = &running,
		.conditions_len = 1,
		.start_time = START,
		.completion_time = HF_TIME_NONE,
		.ledger = {.present = true,
			   .phase = HF_PHASE_RUNNING,
			   .since = START + 100 * HF_SECOND,
			   .productive_seconds = 80},
	};
}

static void parts_are_known_as_far_as_their_times_are(void **state)
{
	struct hf_record record = {.ended_at = START,
				   .detected_at = START + HF_SECOND,
				   .decided_at = START + 3 * HF_SECOND,
				   .down_at = START + 7 * HF_SECOND,
				   .running_at = START + 15 * HF_SECOND,
				   .stepped_at = START + 31 * HF_SECOND};
	struct hf_record_parts parts = hf_record_parts(&record);

	(void)state;
	assert_int_equal(parts.detect, HF_SECOND);
	assert_int_equal(parts.decide, 2 * HF_SECOND);
	assert_int_equal(parts.down, 4 * HF_SECOND);
	assert_int_equal(parts.start, 8 * HF_SECOND);
	assert_int_equal(parts.first_step, 16 * HF_SECOND);
	assert_int_equal(parts.total, 15 * HF_SECOND);
	record.stepped_at = START + 14 * HF_SECOND;
	assert_int_equal(hf_record_parts(&record).first_step, 0);
	/* Pods that are re-created have no time at which all are down.  The node's clock is ahead. */
	record.down_at = record.stepped_at = HF_TIME_NONE;
	record.ended_at = START + 2 * HF_SECOND;
	parts = hf_record_parts(&record);
	assert_int_equal(parts.detect, HF_TIME_NONE);
	assert_int_equal(parts.total, 14 * HF_SECOND);
	assert_int_equal(parts.down, HF_TIME_NONE);
	assert_int_equal(parts.start, 12 * HF_SECOND);
	assert_int_equal(parts.first_step, HF_TIME_NONE);
}

static void steps_are_lost_since_the_last_save(void **state)
{
	struct hf_record record = {.step = 120, .saved_step = 100};

	(void)state;
	assert_int_equal(hf_record_lost_steps(&record), 20);
	record.saved_step = 120;
	assert_int_equal(hf_record_lost_steps(&record), 0);
	record.saved_step = 121;
	assert_int_equal(hf_record_lost_steps(&record), -1);
	record.saved_step = 0;
	assert_int_equal(hf_record_lost_steps(&record), -1);
	record = (struct hf_record){.step = -1, .saved_step = -5};
	assert_int_equal(hf_record_lost_steps(&record), -1);
}

static void ettr_is_the_share_of_the_active_time(void **state)
{
	struct hf_status status = begin();
	int64_t permille;

	(void)state;
	/* 80 s booked and 20 s of the present span, of 120 s. */
	assert_true(hf_status_ettr(&status, START + 120 * HF_SECOND, &permille));
	assert_int_equal(permille, 833);
	/* The span of a job that does not run is lost. */
	running.status = "False";
	assert_true(hf_status_ettr(&status, START + 120 * HF_SECOND, &permille));
	assert_int_equal(permille, 666);
	running.status = "True";
	/* So is that of a job of which a rank is missing, such as a container that the kubelet restarts. */
	status.ledger.phase = HF_PHASE_CREATING;
	assert_true(hf_status_ettr(&status, START + 120 * HF_SECOND, &permille));
	assert_int_equal(permille, 666);
	/* Earlier runs count, the time between them does not. */
	status.ledger.active_seconds = 40;
	assert_true(hf_status_ettr(&status, START + 120 * HF_SECOND, &permille));
	assert_int_equal(permille, 500);
	status.completion_time = START + 60 * HF_SECOND;
	assert_true(hf_status_ettr(&status, START + 120 * HF_SECOND, &permille));
	assert_int_equal(permille, 800);
	/* Spans are booked in whole seconds: never more than all. */
	status.ledger.productive_seconds = 101;
	assert_true(hf_status_ettr(&status, START + 120 * HF_SECOND, &permille));
	assert_int_equal(permille, 1000);
	status.ledger.productive_seconds = 0;
	assert_false(hf_status_ettr(&status, START + 120 * HF_SECOND, &permille));
	status.ledger.present = false;
	assert_false(hf_status_ettr(&status, START + 120 * HF_SECOND, &permille));
	running.status = "True";
}

/* Any client may write the status. These times are further from now than a span can be. */
static void forged_times_give_the_longest_span(void **state)
{
	const hf_time first = HF_TIME_NONE + 1, now = 56 * 365 * 24 * HF_HOUR;
	struct hf_status status = begin();
	int64_t permille;

	(void)state;
	status.ledger.since = first;
	assert_int_equal(hf_status_productive_seconds(&status, now),
			 80 + HF_TIME_NEVER / HF_SECOND);
	assert_int_equal(hf_status_downtime_seconds(&status, now), 0);
	status.start_time = first;
	assert_true(hf_status_ettr(&status, now, &permille));
	assert_int_equal(permille, 1000);
	running.type = HF_COND_RESTARTING;
	assert_int_equal(hf_status_downtime_seconds(&status, now), HF_TIME_NEVER / HF_SECOND);
	running.type = HF_COND_RUNNING;
}

/* sqrt(2 * 3 s * 300 s) = 42.4 s */
static void the_advice_is_youngs_interval(void **state)
{
	struct hf_checkpoint_advice advice;
	struct hf_status status = begin();
	hf_time now = START + 600 * HF_SECOND;

	(void)state;
	status.ledger.save_ms = 3000;
	status.ledger.restarts[HF_BUDGET_APPLICATION] = 1;
	assert_false(hf_status_advise(&status, now, &advice));
	status.ledger.restarts[HF_BUDGET_DEVICE] = 1;
	assert_true(hf_status_advise(&status, now, &advice));
	assert_int_equal(advice.seconds, 42);
	assert_int_equal(advice.incidents, 2);
	assert_int_equal(advice.between_seconds, 300);
	/* A save in no time: the shortest interval. */
	status.ledger.save_ms = 1;
	assert_true(hf_status_advise(&status, now, &advice));
	assert_int_equal(advice.seconds, 1);
	status.ledger.save_ms = 0;
	assert_false(hf_status_advise(&status, now, &advice));
	/* Numbers that any client may have written. */
	status.ledger.save_ms = INT64_MAX;
	assert_false(hf_status_advise(&status, now, &advice));
	status.ledger.save_ms = INT32_MAX;
	assert_true(hf_status_advise(&status, now, &advice));
	assert_int_equal(advice.seconds, 35895);
	status.start_time = 0;
	assert_false(hf_status_advise(&status, HF_TIME_NEVER - 1, &advice));
}

static void a_recovery_ends_once_and_shows_one_first_step(void **state)
{
	struct hf_status before = {.ledger = {.records_len = 1}}, now = before;

	(void)state;
	before.ledger.records[0] = (struct hf_record){.incident = 1,
						      .generation = 2,
						      .detected_at = START,
						      .running_at = HF_TIME_NONE,
						      .stepped_at = HF_TIME_NONE};
	now = before;
	assert_false(hf_status_ends_recovery(&before, &now));
	now.ledger.records[0].running_at = START + HF_SECOND;
	assert_true(hf_status_ends_recovery(&before, &now));
	assert_false(hf_status_shows_first_step(&before, &now));
	before = now;
	assert_false(hf_status_ends_recovery(&before, &now));
	now.ledger.records[0].stepped_at = START + 2 * HF_SECOND;
	assert_true(hf_status_shows_first_step(&before, &now));
	assert_false(hf_status_shows_first_step(&now, &now));
	now.ledger.records_len = 0;
	assert_false(hf_status_ends_recovery(&before, &now));
	assert_false(hf_status_shows_first_step(&before, &now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_known_as_far_as_their_times_are),
		cmocka_unit_test(steps_are_lost_since_the_last_save),
		cmocka_unit_test(ettr_is_the_share_of_the_active_time),
		cmocka_unit_test(forged_times_give_the_longest_span),
		cmocka_unit_test(the_advice_is_youngs_interval),
		cmocka_unit_test(a_recovery_ends_once_and_shows_one_first_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
