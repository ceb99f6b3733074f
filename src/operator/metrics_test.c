/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/script_test.h"

#include "operator/operator_internal.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tests what a scrape shows, after passes with a scripted step. */

#define RENDER_MAX ((size_t)8 << 20)

static bool shows(struct bench *bench, const char *series)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(RENDER_MAX);

	hf_operator_update_metrics(bench->op);
	hf_metrics_render(bench->metrics, &text);
	return strstr(text.data, series) != NULL;
}

#define assert_shows(bench, series) assert_true(shows((bench), (series)))
#define assert_hides(bench, series) assert_false(shows((bench), (series)))

static const char running[] =
	",\"status\":{\"conditions\":[{\"type\":\"Created\",\"status\":\"True\"},"
	"{\"type\":\"Restarting\",\"status\":\"False\"},{\"type\":\"Running\",\"status\":\"True\"}],"
	"\"recovery\":{\"productiveSeconds\":90,\"downtimeSeconds\":7,\"activeSeconds\":100,"
	"\"step\":120,\"savedStep\":100,\"saveMillis\":2000,"
	"\"restarts\":{\"application\":1,\"device\":1}}}";
static const char ended[] =
	",\"status\":{\"completionTime\":\"2023-11-14T22:13:20Z\",\"conditions\":["
	"{\"type\":\"Succeeded\",\"status\":\"True\"}]}";

static void test_counters_of_jobs_are_there_from_the_start(void **state)
{
	struct bench *bench = *state;

	assert_shows(bench, "training_operator_jobs_created_total{job_namespace=\"default\","
			    "framework=\"pytorch\"} 0\n");
	assert_shows(bench, "training_operator_jobs_restarted_total{job_namespace=\"default\","
			    "framework=\"pytorch\"} 0\n");
}

static void test_a_job_is_told_by_its_name_and_state(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *jobs[] = {job_doc("ddp", "u-1", 7, running)};

	start_with(bench, jobs, 1);
	turn(bench);
	assert_shows(bench, "holdfast_jobs{namespace=\"n\",framework=\"pytorch\","
			    "state=\"Running\"} 1\n");
	assert_shows(bench, "holdfast_job_info{namespace=\"n\",job=\"ddp\",kind=\"PyTorchJob\","
			    "queue=\"\",priority=\"\"} 1\n");
	assert_shows(bench, "holdfast_job_status_condition{namespace=\"n\",job=\"ddp\","
			    "kind=\"PyTorchJob\",condition=\"Running\",status=\"true\"} 1\n");
	assert_shows(bench, "condition=\"Restarting\",status=\"true\"} 0\n");
	/* 90 s of 100 s; sqrt(2 * 2 s * 50 s) */
	assert_shows(bench, "holdfast_job_step{namespace=\"n\",job=\"ddp\"} 120\n");
	assert_shows(bench, "holdfast_job_saved_step{namespace=\"n\",job=\"ddp\"} 100\n");
	assert_shows(bench, "holdfast_job_ettr_ratio{namespace=\"n\",job=\"ddp\"} 0.9\n");
	assert_shows(bench, "holdfast_job_checkpoint_interval_seconds{namespace=\"n\","
			    "job=\"ddp\"} 14\n");
	assert_shows(bench, "holdfast_job_productive_seconds_total{namespace=\"n\",job=\"ddp\"} "
			    "90\n");
	assert_shows(bench, "holdfast_job_downtime_seconds_total{namespace=\"n\",job=\"ddp\"} 7\n");
}

/* 90 s are booked; the present run began 100 s before, and goes on without a change of the job. */
static void test_the_present_run_counts(void **state)
{
	struct bench *bench = *state;
	char status[512];
	struct hf_doc *jobs[1];

	snprintf(status, sizeof(status),
		 ",\"status\":{\"conditions\":[{\"type\":\"Running\",\"status\":\"True\"}],"
		 "\"recovery\":{\"schema\":1,\"generation\":1,\"phase\":\"Running\","
		 "\"since\":\"2023-11-14T22:11:40Z\",\"productiveSeconds\":90}}");
	jobs[0] = job_doc("ddp", "u-1", 7, status);
	start_with(bench, jobs, 1);
	turn(bench);
#define PRODUCTIVE "holdfast_job_productive_seconds_total{namespace=\"n\",job=\"ddp\"} "
	assert_shows(bench, PRODUCTIVE "190\n");
	/* An earlier operator process has counted those 190 s. */
	assert_hides(bench, "holdfast_training_seconds_total{spent=\"productive\"}");
	turn_for(bench, 10 * HF_MINUTE);
	assert_shows(bench, PRODUCTIVE "790\n");
	assert_shows(bench, "holdfast_training_seconds_total{spent=\"productive\"} 600\n");
	assert_shows(bench, PRODUCTIVE "790\n");
#undef PRODUCTIVE
}

static void test_counted_time_never_falls(void **state)
{
	struct hf_condition running_condition = {.type = HF_COND_RUNNING, .status = "True"};
	struct hf_job_state job = {.pass = NULL};
	struct bench *bench = *state;
	struct hf_status before = {.start_time = JOB_TIME, .ledger.present = true}, now;

	hf_operator_count_time(bench->op, &job, &before, &before);
	now = before;
	now.conditions = &running_condition;
	now.conditions_len = 1;
	now.ledger.phase = HF_PHASE_RUNNING;
	now.ledger.since = hf_operator_now(bench->op) - 100 * HF_SECOND;
	hf_operator_count_time(bench->op, &job, &before, &now);
	assert_shows(bench, "holdfast_training_seconds_total{spent=\"productive\"} 100\n");
	/* The run ended two seconds before the operator wrote that it has ended. */
	before = now;
	running_condition.status = "False";
	now.ledger.productive_seconds = 98;
	hf_operator_count_time(bench->op, &job, &before, &now);
	assert_shows(bench, "holdfast_training_seconds_total{spent=\"productive\"} 100\n");
	now.ledger.productive_seconds = 105;
	hf_operator_count_time(bench->op, &job, &before, &now);
	assert_shows(bench, "holdfast_training_seconds_total{spent=\"productive\"} 105\n");
}

static void test_time_before_the_ledger_is_not_counted(void **state)
{
	struct hf_condition running_condition = {.type = HF_COND_RUNNING, .status = "True"};
	struct hf_job_state job = {.pass = NULL};
	struct bench *bench = *state;
	struct hf_status before = {.start_time = JOB_TIME,
				   .conditions = &running_condition,
				   .conditions_len = 1},
			 now = before;

	now.ledger = (struct hf_ledger){.present = true,
					.phase = HF_PHASE_RUNNING,
					.since = hf_operator_now(bench->op),
					.productive_seconds = 864000};
	hf_operator_count_time(bench->op, &job, &before, &now);
	assert_hides(bench, "holdfast_training_seconds_total{spent=\"productive\"}");
}

static void test_a_job_that_is_gone_leaves_no_series(void **state)
{
	struct bench *bench = *state;

	start(bench);
	turn(bench);
	assert_shows(bench, "holdfast_job_info{namespace=\"n\",job=\"ddp\"");
	fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_DELETED, job_doc("ddp", "u-1", 9, ""));
	assert_hides(bench, "job=\"ddp\"");
}

static void test_a_job_is_told_of_for_ten_minutes_after_its_end(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *jobs[] = {job_doc("ddp", "u-1", 7, ended)};

	start_with(bench, jobs, 1);
	turn_for(bench, 10 * HF_MINUTE);
	assert_shows(bench, "job=\"ddp\"");
	turn_for(bench, HF_SECOND);
	assert_hides(bench, "job=\"ddp\"");
	assert_shows(bench, "holdfast_jobs{namespace=\"n\",framework=\"pytorch\","
			    "state=\"Succeeded\"} 1\n");
}

static void test_a_status_that_cannot_be_read_is_counted_all_the_same(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *jobs[] = {job_doc("ddp", "u-1", 7, ",\"status\":{\"conditions\":7}")};

	start_with(bench, jobs, 1);
	assert_shows(bench, "holdfast_jobs{namespace=\"n\",framework=\"pytorch\",state=\"New\"} "
			    "1\n");
}

static void test_jobs_beyond_the_limit_are_counted_as_dropped(void **state)
{
	struct bench *bench = *state;
	char name[32], uid[32];

	start(bench);
	for (int i = 0; i < 5001; i++) {
		snprintf(name, sizeof(name), "job-%d", i);
		snprintf(uid, sizeof(uid), "uid-%d", i);
		fake_event(watch_of(bench, "pytorchjobs"), HF_EVENT_ADDED,
			   job_doc(name, uid, 100 + i, ""));
	}
	/* With the job "ddp" there are 5,002 jobs: of job_info, productive and downtime, two series
	 * each have no room. */
	assert_shows(bench, "holdfast_metrics_dropped_series_total 6\n");
	assert_shows(bench, "state=\"New\"} 5002\n");
}

/* The fault was seen at JOB_TIME and decided two seconds later; not all ranks run again yet. */
static void begin_recovery(struct hf_status *ret_status)
{
	memset(ret_status, 0, sizeof(*ret_status));
	ret_status->ledger.records_len = 1;
	ret_status->ledger.records[0] = (struct hf_record){.generation = 2,
							   .incident = 1,
							   .cause = HF_CLASS_INFRASTRUCTURE,
							   .detected_at = JOB_TIME,
							   .decided_at = JOB_TIME + 2 * HF_SECOND,
							   .running_at = HF_TIME_NONE};
}

static void test_a_recovery_is_measured_once_when_it_is_over(void **state)
{
	struct bench *bench = *state;
	struct hf_status before, now;

	begin_recovery(&now);
	before = now;
	hf_operator_count_recovery(bench->op, &before, &now);
	assert_hides(bench, "holdfast_recovery_duration_seconds_count");
	now.ledger.records[0].running_at = JOB_TIME + 40 * HF_SECOND;
	hf_operator_count_recovery(bench->op, &before, &now);
	before = now;
	hf_operator_count_recovery(bench->op, &before, &now);
	assert_shows(bench, "holdfast_recovery_duration_seconds_sum{stage=\"decide\","
			    "cause=\"infrastructure\"} 2\n");
	assert_shows(bench, "holdfast_recovery_duration_seconds_sum{stage=\"total\","
			    "cause=\"infrastructure\"} 40\n");
	assert_shows(bench, "holdfast_recovery_duration_seconds_count{stage=\"total\","
			    "cause=\"infrastructure\"} 1\n");
}

static void test_parts_of_a_restart_and_lost_steps_have_their_series(void **state)
{
	struct hf_job_state job = {.pass = NULL};
	struct bench *bench = *state;
	struct hf_status before, now;

	begin_recovery(&now);
	now.ledger.present = true;
	now.ledger.records[0].stepped_at = HF_TIME_NONE;
	now.ledger.records[0].ended_at = JOB_TIME - HF_SECOND;
	now.ledger.records[0].down_at = JOB_TIME + 5 * HF_SECOND;
	now.ledger.records[0].step = 120;
	now.ledger.records[0].saved_step = 100;
	before = now;
	now.ledger.records[0].running_at = JOB_TIME + 9 * HF_SECOND;
	now.ledger.productive_seconds = 30;
	now.ledger.downtime_seconds = 9;
	hf_operator_count_recovery(bench->op, &before, &now);
	hf_operator_count_time(bench->op, &job, &before, &now);
	before = now;
	now.ledger.records[0].stepped_at = JOB_TIME + 20 * HF_SECOND;
	for (int i = 0; i < 2; i++) {
		hf_operator_count_recovery(bench->op, &before, &now);
		hf_operator_count_time(bench->op, &job, &before, &now);
		before = now;
	}
#define SUM(stage)                                                                                 \
	"holdfast_recovery_duration_seconds_sum{stage=\"" stage "\",cause=\"infrastructure\"} "
	assert_shows(bench, SUM("detect") "1\n");
	assert_shows(bench, SUM("down") "3\n");
	assert_shows(bench, SUM("start") "4\n");
	assert_shows(bench, SUM("first_step") "11\n");
#undef SUM
	assert_shows(bench, "holdfast_lost_steps_total{cause=\"infrastructure\"} 20\n");
	assert_shows(bench, "holdfast_training_seconds_total{spent=\"productive\"} 30\n");
	assert_shows(bench, "holdfast_training_seconds_total{spent=\"infrastructure\"} 9\n");
}

static void test_a_suspension_is_not_of_a_recovery(void **state)
{
	struct bench *bench = *state;
	struct hf_status before, now;

	begin_recovery(&now);
	now.start_time = JOB_TIME + HF_HOUR;
	before = now;
	now.ledger.records[0].running_at = now.start_time + 7 * HF_SECOND;
	hf_operator_count_recovery(bench->op, &before, &now);
	assert_shows(bench, "holdfast_recovery_duration_seconds_sum{stage=\"decide\","
			    "cause=\"infrastructure\"} 2\n");
	assert_shows(bench, "holdfast_recovery_duration_seconds_sum{stage=\"total\","
			    "cause=\"infrastructure\"} 7\n");
}

static void test_a_start_is_measured_once_from_creation_to_running(void **state)
{
	struct bench *bench = *state;
	struct hf_condition condition = {.type = HF_COND_RUNNING,
					 .status = "True",
					 .last_transition = JOB_TIME + 42 * HF_SECOND};
	struct hf_job_view *job = hf_xcalloc(1, sizeof(*job));
	struct hf_status now = {.start_time = JOB_TIME + 30 * HF_SECOND};

	job->creation_time = JOB_TIME;
	hf_operator_count_start(bench->op, job, &now);
	assert_hides(bench, "holdfast_job_start_duration_seconds_count");
	now.conditions = &condition;
	now.conditions_len = 1;
	hf_operator_count_start(bench->op, job, &now);
	/* Neither a job that goes on running nor one that runs again after a restart counts as a
	 * start. */
	job->status = now;
	hf_operator_count_start(bench->op, job, &now);
	assert_shows(bench, "holdfast_job_start_duration_seconds_sum{stage=\"queue\"} 30\n");
	assert_shows(bench, "holdfast_job_start_duration_seconds_sum{stage=\"start\"} 12\n");
	assert_shows(bench, "holdfast_job_start_duration_seconds_count{stage=\"start\"} 1\n");
	free(job);
}

static void test_passes_show_in_the_queues_and_workers_names(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	want(0, HF_ACTION_CREATE_POD, 0, 1);
	start(bench);
	call = expect(bench, HF_VERB_CREATE, "pods");
	turn_for(bench, 3 * HF_SECOND);
	assert_shows(bench,
		     "controller_runtime_active_workers{controller=\"pytorchjob-controller\"} "
		     "1\n");
	assert_shows(bench, "workqueue_unfinished_work_seconds{name=\"holdfast\"} 3\n");
	assert_shows(bench, "workqueue_longest_running_processor_seconds{name=\"holdfast\"} 3\n");
	grant_pod(call, 101);
	turn(bench);
	assert_shows(bench,
		     "controller_runtime_active_workers{controller=\"pytorchjob-controller\"} "
		     "0\n");
	assert_shows(bench, "workqueue_unfinished_work_seconds{name=\"holdfast\"} 0\n");
	assert_shows(bench, "workqueue_work_duration_seconds_sum{name=\"holdfast\"} 3\n");
	assert_shows(bench,
		     "controller_runtime_reconcile_total{controller=\"pytorchjob-controller\","
		     "result=\"success\"} ");
}

static void test_deletes_by_force_are_counted_though_nothing_else_is_to_be_told(void **state)
{
	struct bench *bench = *state;

	/* Only counts change: such a status may wait, but the success that it counts may not. */
	want_status(JOB_TIME, false);
	want(0, HF_ACTION_DELETE_POD, 0, 2);
	brain.plan.metrics[HF_METRIC_FORCED_PRESUMED] = 2;
	start(bench);
	grant_status(expect(bench, HF_VERB_PATCH, "pytorchjobs"), 101);
	fake_refuse(expect(bench, HF_VERB_DELETE, "pods"), HF_E_NOT_FOUND);
	assert_shows(bench, "holdfast_force_deletes_total{namespace=\"n\",framework=\"pytorch\","
			    "reason=\"Presumed\"} 2\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_counters_of_jobs_are_there_from_the_start),
		T(test_a_job_is_told_by_its_name_and_state),
		T(test_the_present_run_counts),
		T(test_counted_time_never_falls),
		T(test_time_before_the_ledger_is_not_counted),
		T(test_a_job_that_is_gone_leaves_no_series),
		T(test_a_job_is_told_of_for_ten_minutes_after_its_end),
		T(test_a_status_that_cannot_be_read_is_counted_all_the_same),
		T(test_jobs_beyond_the_limit_are_counted_as_dropped),
		T(test_a_recovery_is_measured_once_when_it_is_over),
		T(test_parts_of_a_restart_and_lost_steps_have_their_series),
		T(test_a_suspension_is_not_of_a_recovery),
		T(test_a_start_is_measured_once_from_creation_to_running),
		T(test_deletes_by_force_are_counted_though_nothing_else_is_to_be_told),
		T(test_passes_show_in_the_queues_and_workers_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
