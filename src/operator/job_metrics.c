/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/operator_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "core/model/names.h"
#include "json/fields.h"

#include <string.h>

/*
 * Metrics with one series for each job.
 *
 * Input: jobs in the cache.  Output: gauges, filled anew at each scrape, so that no series of a
 * deleted job is left.  The metric family limits the number of series.
 */

/* A finished job keeps its series for this long, so that scrapers see how the job ended. */
#define KEPT_AFTER_END (10 * HF_MINUTE)
#define CONDITIONS_MAX 64
/* The most annotations of a job that are read.  All annotations of an object together have at most
 * 256 KiB. */
#define PAIRS_MAX 65536

struct condition {
	uint64_t present;
	const char *type, *status;
};
struct budgets {
	uint64_t present;
	int64_t count[HF_BUDGETS];
};
struct verdict {
	uint64_t present;
	const char *reason;
};
struct last {
	uint64_t present;
	const char *cause;
	hf_time running_at;
};
struct recovery {
	uint64_t present;
	int64_t productive, downtime, active, step, saved_step, save_ms;
	hf_time since;
	const char *phase;
	struct budgets restarts;
	struct verdict verdict;
	struct last last;
};
struct status {
	uint64_t present;
	HF_LIST(struct condition) conditions;
	hf_time start_time, completion_time;
	struct recovery recovery;
};
struct scheduling {
	uint64_t present;
	const char *priority_class;
};
struct run_policy {
	uint64_t present;
	struct scheduling scheduling;
};
struct spec {
	uint64_t present;
	struct run_policy run_policy;
};
struct metadata {
	uint64_t present;
	HF_LIST(struct hf_field_pair) labels, annotations;
};
struct job {
	uint64_t present;
	struct metadata metadata;
	struct spec spec;
	struct status status;
};

static const struct hf_field condition_fields[] = {
	HF_FIELD_STRING("type", struct condition, type, 0, 0),
	HF_FIELD_STRING("status", struct condition, status, 0, 0),
};
static const struct hf_field_table condition_table =
	HF_FIELD_TABLE(condition_fields, struct condition);
static const struct hf_field budgets_fields[] = {
	HF_FIELD_INT64("application", struct budgets, count[HF_BUDGET_APPLICATION], 0, INT32_MAX,
		       0),
	HF_FIELD_INT64("infrastructure", struct budgets, count[HF_BUDGET_INFRASTRUCTURE], 0,
		       INT32_MAX, 0),
	HF_FIELD_INT64("device", struct budgets, count[HF_BUDGET_DEVICE], 0, INT32_MAX, 0),
};
static const struct hf_field_table budgets_table = HF_FIELD_TABLE(budgets_fields, struct budgets);
static const struct hf_field verdict_fields[] = {
	HF_FIELD_STRING("reason", struct verdict, reason, 0, 0),
};
static const struct hf_field_table verdict_table = HF_FIELD_TABLE(verdict_fields, struct verdict);
enum { LAST_RUNNING };
static const struct hf_field last_fields[] = {
	[LAST_RUNNING] = HF_FIELD_TIME("runningAt", struct last, running_at, 0),
	HF_FIELD_STRING("cause", struct last, cause, 0, 0),
};
static const struct hf_field_table last_table = HF_FIELD_TABLE(last_fields, struct last);
enum { RECOVERY_SINCE };
static const struct hf_field recovery_fields[] = {
	[RECOVERY_SINCE] = HF_FIELD_TIME("since", struct recovery, since, 0),
	HF_FIELD_STRING("phase", struct recovery, phase, 0, 0),
	HF_FIELD_INT64("activeSeconds", struct recovery, active, 0, INT32_MAX, 0),
	HF_FIELD_INT64("step", struct recovery, step, 0, INT64_MAX, 0),
	HF_FIELD_INT64("savedStep", struct recovery, saved_step, 0, INT64_MAX, 0),
	HF_FIELD_INT64("saveMillis", struct recovery, save_ms, 0, INT32_MAX, 0),
	HF_FIELD_OBJECT("restarts", struct recovery, restarts, &budgets_table, 0),
	HF_FIELD_OBJECT("verdict", struct recovery, verdict, &verdict_table, 0),
	HF_FIELD_OBJECT("last", struct recovery, last, &last_table, 0),
	HF_FIELD_INT64("productiveSeconds", struct recovery, productive, 0, INT32_MAX, 0),
	HF_FIELD_INT64("downtimeSeconds", struct recovery, downtime, 0, INT32_MAX, 0),
};
static const struct hf_field_table recovery_table =
	HF_FIELD_TABLE(recovery_fields, struct recovery);
enum { STATUS_START, STATUS_COMPLETION };
static const struct hf_field status_fields[] = {
	[STATUS_START] = HF_FIELD_TIME("startTime", struct status, start_time, 0),
	[STATUS_COMPLETION] = HF_FIELD_TIME("completionTime", struct status, completion_time, 0),
	HF_FIELD_OBJECTS("conditions", struct status, conditions, &condition_table, CONDITIONS_MAX,
			 0),
	HF_FIELD_OBJECT("recovery", struct status, recovery, &recovery_table, 0),
};
static const struct hf_field_table status_table = HF_FIELD_TABLE(status_fields, struct status);
static const struct hf_field scheduling_fields[] = {
	HF_FIELD_STRING("priorityClass", struct scheduling, priority_class, 0, 0),
};
static const struct hf_field_table scheduling_table =
	HF_FIELD_TABLE(scheduling_fields, struct scheduling);
static const struct hf_field run_policy_fields[] = {
	HF_FIELD_OBJECT("schedulingPolicy", struct run_policy, scheduling, &scheduling_table, 0),
};
static const struct hf_field_table run_policy_table =
	HF_FIELD_TABLE(run_policy_fields, struct run_policy);
static const struct hf_field spec_fields[] = {
	HF_FIELD_OBJECT("runPolicy", struct spec, run_policy, &run_policy_table, 0),
};
static const struct hf_field_table spec_table = HF_FIELD_TABLE(spec_fields, struct spec);
static const struct hf_field metadata_fields[] = {
	HF_FIELD_STRING_MAP("labels", struct metadata, labels, PAIRS_MAX, 0),
	HF_FIELD_STRING_MAP("annotations", struct metadata, annotations, PAIRS_MAX, 0),
};
static const struct hf_field_table metadata_table =
	HF_FIELD_TABLE(metadata_fields, struct metadata);
static const struct hf_field job_fields[] = {
	HF_FIELD_OBJECT("metadata", struct job, metadata, &metadata_table, 0),
	HF_FIELD_OBJECT("spec", struct job, spec, &spec_table, 0),
	HF_FIELD_OBJECT("status", struct job, status, &status_table, 0),
};
static const struct hf_field_table job_table = HF_FIELD_TABLE(job_fields, struct job);

void hf_operator_job_metrics_init(struct hf_operator *op)
{
	static const char *const info[] = {"namespace", "job", "kind", "queue", "priority", NULL};
	static const char *const condition[] = {"namespace", "job",    "kind",
						"condition", "status", NULL};
	static const char *const job[] = {"namespace", "job", NULL};
	static const char *const spent[] = {"spent", NULL};
	static const char *const cause[] = {"cause", NULL};
	const struct hf_metric_options recovery = {
		.name = "holdfast_recovery_duration_seconds",
		.help = "Seconds from the first sign of a fault until its restart was decided "
			"(decide), and until all ranks ran again (total); parts: detect, down, start, first_step.",
		.type = HF_METRIC_HISTOGRAM,
		.labels = {"stage", "cause"},
		.buckets = {0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600},
	};
	const struct hf_metric_options start = {
		.name = "holdfast_job_start_duration_seconds",
		.help = "Seconds from a job's creation until the operator began it (queue: "
			"includes a suspension), and from there until it was Running for the first "
			"time (start).",
		.type = HF_METRIC_HISTOGRAM,
		.labels = {"stage"},
		.buckets = {1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400},
	};
	struct hf_operator_metrics *m = &op->metrics;

	m->job_info = hf_operator_family(op, HF_METRIC_GAUGE, "holdfast_job_info",
					 "Each job: always 1.", info);
	m->job_condition = hf_operator_family(
		op, HF_METRIC_GAUGE, "holdfast_job_status_condition",
		"1 if the condition of the job has that status, else 0.", condition);
	m->job_productive =
		hf_operator_family(op, HF_METRIC_COUNTER, "holdfast_job_productive_seconds_total",
				   "Seconds in which all ranks of a job ran.", job);
	m->job_downtime =
		hf_operator_family(op, HF_METRIC_COUNTER, "holdfast_job_downtime_seconds_total",
				   "Seconds in which a job that had begun was restarting.", job);
	m->job_step = hf_operator_family(op, HF_METRIC_GAUGE, "holdfast_job_step",
					 "The last step that a rank of the job has done.", job);
	m->job_saved_step =
		hf_operator_family(op, HF_METRIC_GAUGE, "holdfast_job_saved_step",
				   "The last step that a rank of the job has saved.", job);
	m->job_ettr = hf_operator_family(
		op, HF_METRIC_GAUGE, "holdfast_job_ettr_ratio",
		"Share of the job's active time in which all ranks ran (ETTR).", job);
	m->job_interval = hf_operator_family(
		op, HF_METRIC_GAUGE, "holdfast_job_checkpoint_interval_seconds",
		"The interval of saves that loses least, from the job's saves and incidents.", job);
	m->training_time = hf_operator_family(
		op, HF_METRIC_COUNTER, "holdfast_training_seconds_total",
		"Time of all jobs: productive, start, or lost to a cause.", spent);
	m->lost_steps = hf_operator_family(
		op, HF_METRIC_COUNTER, "holdfast_lost_steps_total",
		"Steps since the last save that restarts have lost, by cause.", cause);
	m->recovery_time = hf_metrics_family(op->options.metrics, &recovery);
	m->start_time = hf_metrics_family(op->options.metrics, &start);
}

void hf_operator_job_metrics_clear(struct hf_operator *op)
{
	struct hf_operator_metrics *m = &op->metrics;

	hf_family_clear(m->states);
	hf_family_clear(m->job_info);
	hf_family_clear(m->job_condition);
	hf_family_clear(m->job_productive);
	hf_family_clear(m->job_downtime);
	hf_family_clear(m->job_step);
	hf_family_clear(m->job_saved_step);
	hf_family_clear(m->job_ettr);
	hf_family_clear(m->job_interval);
}

static bool ended_long_ago(struct hf_operator *op, const struct status *status)
{
	hf_time end = hf_field_time(status->present, STATUS_COMPLETION, status->completion_time);

	return end != HF_TIME_NONE && hf_operator_now(op) - end > KEPT_AFTER_END;
}

/* As much of the status as the shares of the job's time need. */
static void make_status(const struct status *from, struct hf_condition *conditions,
			struct hf_status *ret_status)
{
	const struct recovery *recovery = &from->recovery;

	*ret_status = (struct hf_status){
		.conditions = conditions,
		.conditions_len = from->conditions.len,
		.start_time = hf_field_time(from->present, STATUS_START, from->start_time),
		.completion_time =
			hf_field_time(from->present, STATUS_COMPLETION, from->completion_time),
	};
	for (size_t i = 0; i < from->conditions.len; i++)
		conditions[i] = (struct hf_condition){.type = from->conditions.items[i].type,
						      .status = from->conditions.items[i].status};
	ret_status->ledger.present = recovery->present != 0;
	ret_status->ledger.phase = hf_phase_parse(recovery->phase);
	ret_status->ledger.since =
		hf_field_time(recovery->present, RECOVERY_SINCE, recovery->since);
	ret_status->ledger.productive_seconds = recovery->productive;
	ret_status->ledger.downtime_seconds = recovery->downtime;
	ret_status->ledger.records_len = recovery->last.cause != NULL;
	ret_status->ledger.records[0].cause = hf_class_parse(hf_str_or(recovery->last.cause, ""));
	ret_status->ledger.records[0].running_at =
		hf_field_time(recovery->last.present, LAST_RUNNING, recovery->last.running_at);
	ret_status->ledger.active_seconds = recovery->active;
	ret_status->ledger.save_ms = recovery->save_ms;
	ret_status->ledger.verdict.reason = recovery->verdict.reason;
	memcpy(ret_status->ledger.restarts, recovery->restarts.count,
	       sizeof(ret_status->ledger.restarts));
}

static void add_time(struct hf_operator *op, int64_t seconds, const char *spent)
{
	if (seconds > 0)
		hf_family_add(op->metrics.training_time, (double)seconds, spent, NULL);
}

/* Counts the productive time and the downtime of a job by a status at this moment. What was counted already never shrinks:
 * the operator's clock is ahead of the time at which a span was booked. */
static void count_spans(struct hf_operator *op, struct hf_job_state *state,
			const struct hf_status *status)
{
	const struct hf_ledger *ledger = &status->ledger;
	hf_time now = hf_operator_now(op);
	int64_t productive = hf_status_productive_seconds(status, now);
	int64_t downtime = hf_status_downtime_seconds(status, now);

	if (!ledger->present)
		return;
	if (productive > state->productive_counted) {
		add_time(op, productive - state->productive_counted, "productive");
		state->productive_counted = productive;
	}
	if (downtime > state->downtime_counted) {
		if (ledger->records_len > 0)
			add_time(op, downtime - state->downtime_counted,
				 hf_class_name(ledger->records[0].cause));
		state->downtime_counted = downtime;
	}
}

/* The time before this process knew the job was counted by the process before, and that before the job had a ledger by
 * no process. */
static void begin_spans(struct hf_operator *op, struct hf_job_state *state,
			const struct hf_status *status)
{
	hf_time now = hf_operator_now(op);

	if (state->time_known || !status->ledger.present)
		return;
	state->time_known = true;
	state->productive_counted = hf_status_productive_seconds(status, now);
	state->downtime_counted = hf_status_downtime_seconds(status, now);
}

/* Adds the seconds to the job's series. Jobs of two kinds may have the same name, so the seconds are added up. */
static void add_spans(struct hf_operator *op, const struct hf_kind *kind,
		      const struct hf_status *status, const char *ns, const char *name)
{
	HF_AUTOFREE char *key = hf_operator_job_key(kind, ns, name);
	struct hf_job_state *state = hf_map_get(op->states, key), unknown = {.pass = NULL};

	if (state == NULL)
		state = &unknown;
	begin_spans(op, state, status);
	count_spans(op, state, status);
	hf_family_add(op->metrics.job_productive, (double)state->productive_counted, ns, name,
		      NULL);
	hf_family_add(op->metrics.job_downtime, (double)state->downtime_counted, ns, name, NULL);
}

/* What the ranks have reported, and how much of its time the job trained. */
static void add_training(struct hf_operator *op, const struct hf_kind *kind,
			 const struct status *status, const char *ns, const char *name)
{
	struct hf_condition conditions[CONDITIONS_MAX];
	struct hf_operator_metrics *m = &op->metrics;
	struct hf_checkpoint_advice advice;
	struct hf_status all;
	int64_t permille;

	make_status(status, conditions, &all);
	add_spans(op, kind, &all, ns, name);
	if (status->recovery.step > 0)
		hf_family_set(m->job_step, (double)status->recovery.step, ns, name, NULL);
	if (status->recovery.saved_step > 0)
		hf_family_set(m->job_saved_step, (double)status->recovery.saved_step, ns, name,
			      NULL);
	if (hf_status_ettr(&all, hf_operator_now(op), &permille))
		hf_family_set(m->job_ettr, (double)permille / 1000, ns, name, NULL);
	if (hf_status_advise(&all, hf_operator_now(op), &advice))
		hf_family_set(m->job_interval, (double)advice.seconds, ns, name, NULL);
}

static void add_series(struct hf_operator *op, const struct hf_kind *kind, struct hf_doc *doc,
		       const struct job *job)
{
	static const char queue_label[] = "kueue.x-k8s.io/queue-name";
	const char *ns = hf_doc_namespace(doc), *name = hf_doc_name(doc);
	const char *word = kind->framework->kind;
	const char *queue = hf_field_pair_find(job->metadata.labels.items, job->metadata.labels.len,
					       queue_label);
	const struct status *status = &job->status;

	hf_family_set(op->metrics.job_info, 1, ns, name, word, hf_str_or(queue, ""),
		      hf_str_or(job->spec.run_policy.scheduling.priority_class, ""), NULL);
	for (size_t i = 0; i < status->conditions.len; i++) {
		const struct condition *c = &status->conditions.items[i];

		if (c->type != NULL)
			hf_family_set(op->metrics.job_condition,
				      hf_streq(c->status, "True") ? 1 : 0, ns, name, word, c->type,
				      "true", NULL);
	}
	add_training(op, kind, status, ns, name);
}

/* If the CRD does not keep status.recovery, read the ledger from its annotation. */
static void read_annotated(struct hf_operator *op, struct job *job)
{
	for (size_t i = 0; i < job->metadata.annotations.len; i++) {
		const struct hf_field_pair *pair = &job->metadata.annotations.items[i];
		const struct hf_fields_text text = {pair->value, strlen(pair->value)};

		if (hf_streq(pair->key, HF_ANNOTATION_LEDGER) &&
		    hf_fields_read_text(&recovery_table, &text, NULL, op->scratch,
					&job->status.recovery, NULL) != 0)
			memset(&job->status.recovery, 0, sizeof(job->status.recovery));
	}
}

void hf_operator_job_metrics_add(struct hf_operator *op, const struct hf_kind *kind,
				 struct hf_doc *doc)
{
	struct job job;
	const char *state = NULL;

	/* Another client may have written anything into the status.  If it cannot be read, the job
	 * is only counted. */
	if (hf_fields_read_doc(&job_table, doc, NULL, op->scratch, &job, NULL) != 0)
		memset(&job, 0, sizeof(job));
	if (job.status.recovery.present == 0)
		read_annotated(op, &job);
	/* The gauge shows the last condition, as clients do. */
	if (job.status.conditions.len > 0)
		state = job.status.conditions.items[job.status.conditions.len - 1].type;
	hf_family_add(op->metrics.states, 1, hf_doc_namespace(doc), kind->framework->metrics_name,
		      hf_str_or(state, "New"), NULL);
	if (!ended_long_ago(op, &job.status))
		add_series(op, kind, doc, &job);
	hf_arena_reset(op->scratch);
}

static void observe_time(struct hf_operator *op, const char *stage, const struct hf_record *record,
			 hf_time span)
{
	hf_family_observe(op->metrics.recovery_time,
			  span > 0 ? (double)span / (double)HF_SECOND : 0, stage,
			  hf_class_name(record->cause), NULL);
}

static void observe_parts(struct hf_operator *op, const struct hf_record *record)
{
	struct hf_record_parts parts = hf_record_parts(record);

	if (parts.detect != HF_TIME_NONE)
		observe_time(op, "detect", record, parts.detect);
	if (parts.down != HF_TIME_NONE)
		observe_time(op, "down", record, parts.down);
	if (parts.start != HF_TIME_NONE)
		observe_time(op, "start", record, parts.start);
}

void hf_operator_count_time(struct hf_operator *op, struct hf_job_state *state,
			    const struct hf_status *before, const struct hf_status *now)
{
	if (state != NULL) {
		begin_spans(op, state, before->ledger.present ? before : now);
		count_spans(op, state, now);
	}
	if (hf_status_shows_first_step(before, now))
		observe_time(op, "first_step", &now->ledger.records[0],
			     hf_record_parts(&now->ledger.records[0]).first_step);
}

void hf_operator_count_recovery(struct hf_operator *op, const struct hf_status *before,
				const struct hf_status *now)
{
	const struct hf_record *last = &now->ledger.records[0];
	hf_time span;

	if (!hf_status_ends_recovery(before, now))
		return;
	if (hf_record_lost_steps(last) > 0)
		hf_family_add(op->metrics.lost_steps, (double)hf_record_lost_steps(last),
			      hf_class_name(last->cause), NULL);
	if (last->decided_at != HF_TIME_NONE)
		observe_time(op, "decide", last, last->decided_at - last->detected_at);
	if (hf_status_recovered(now, last, &span)) {
		observe_time(op, "total", last, span);
		observe_parts(op, last);
	}
}

static void observe_start(struct hf_operator *op, const char *stage, hf_time span)
{
	/* Both times are cut to seconds and may come from two clocks, so the span may be
	 * negative. */
	hf_family_observe(op->metrics.start_time, span > 0 ? (double)span / (double)HF_SECOND : 0,
			  stage, NULL);
}

void hf_operator_count_start(struct hf_operator *op, const struct hf_job_view *job,
			     const struct hf_status *now)
{
	const struct hf_condition *running = hf_status_condition(now, HF_COND_RUNNING);

	/* A job that ran once keeps the condition Running, with status False at times.  So only the
	 * first time counts. */
	if (running == NULL || !hf_streq(running->status, "True") ||
	    now->start_time == HF_TIME_NONE ||
	    hf_status_condition(&job->status, HF_COND_RUNNING) != NULL)
		return;
	observe_start(op, "queue", now->start_time - job->creation_time);
	observe_start(op, "start", running->last_transition - now->start_time);
	add_time(op, (running->last_transition - now->start_time) / HF_SECOND, "start");
}
