/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/pass_internal.h"

#include "base/str.h"
#include "operator/kinds_internal.h"
#include "operator/watch_internal.h"

/* The label value of the queue that all job kinds share. */
static const char queue_name[] = "holdfast";

/*
 * Metrics of jobs, passes, caches and the queue.
 *
 * Input: counts from passes, and the state at a scrape.  Output: families of ctl/metrics.h.
 *
 * Names that users of the Go operator have in their graphs stay as they are; new names begin with
 * holdfast_.
 */

struct hf_family *hf_operator_family(struct hf_operator *op, enum hf_metric_type type,
				     const char *name, const char *help, const char *const labels[])
{
	struct hf_metric_options options = {.name = name, .help = help, .type = type};

	for (size_t i = 0; labels != NULL && labels[i] != NULL; i++)
		options.labels[i] = labels[i];
	return hf_metrics_family(op->options.metrics, &options);
}

static struct hf_family *create_histogram(struct hf_operator *op, const char *name,
					  const char *help, const char *label)
{
	const struct hf_metric_options options = {
		.name = name,
		.help = help,
		.type = HF_METRIC_HISTOGRAM,
		.labels = {label},
		.buckets = {0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5},
	};

	return hf_metrics_family(op->options.metrics, &options);
}

static void init_jobs(struct hf_operator *op)
{
	static const char *const job_labels[] = {"job_namespace", "framework", NULL};
	static const char *const restart_labels[] = {"namespace", "framework", "cause", "scope",
						     NULL};
	static const char *const force_labels[] = {"namespace", "framework", "reason", NULL};
	static const struct {
		enum hf_metric metric;
		const char *name, *help;
	} counters[] = {
		{HF_METRIC_CREATED, "training_operator_jobs_created_total",
		 "Jobs that the operator accepted."},
		{HF_METRIC_DELETED, "training_operator_jobs_deleted_total",
		 "Jobs deleted when their time to live was over."},
		{HF_METRIC_SUCCESSFUL, "training_operator_jobs_successful_total",
		 "Jobs that succeeded."},
		{HF_METRIC_FAILED, "training_operator_jobs_failed_total", "Jobs that failed."},
		{HF_METRIC_RESTARTED, "training_operator_jobs_restarted_total",
		 "Restarts of a job or of one of its replicas."},
		{HF_METRIC_STRAYS, "holdfast_stray_evictions_total",
		 "Evictions by taint although the pod's own node has no such taint."},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(counters); i++) {
		struct hf_family *f = hf_operator_family(op, HF_METRIC_COUNTER, counters[i].name,
							 counters[i].help, job_labels);

		op->metrics.jobs[counters[i].metric] = f;
		/* Each series exists from the start with value 0.  Otherwise a metric without
		 * events would look like a missing metric. */
		for (size_t k = 0; k < op->n_kinds; k++)
			hf_family_add(f, 0, hf_str_or(op->ns, "default"),
				      op->kinds[k].framework->metrics_name, NULL);
	}
	op->metrics.jobs[HF_METRIC_RESTARTS] =
		hf_operator_family(op, HF_METRIC_COUNTER, "holdfast_job_restarts_total",
				   "Restarts, by cause and scope.", restart_labels);
	op->metrics.jobs
		[HF_METRIC_FORCED_PROVEN] = op->metrics.jobs
						    [HF_METRIC_FORCED_PRESUMED] = hf_operator_family(
		op, HF_METRIC_COUNTER, "holdfast_force_deletes_total",
		"Pods of lost nodes that were deleted by force; reason: Proven or Presumed node loss.",
		force_labels);
}

static void init_queue(struct hf_operator *op)
{
	static const char *const name[] = {"name", NULL};
	struct hf_operator_metrics *m = &op->metrics;

	m->queue_depth = hf_operator_family(op, HF_METRIC_GAUGE, "workqueue_depth",
					    "Jobs that wait for a pass.", name);
	m->queue_adds = hf_operator_family(op, HF_METRIC_COUNTER, "workqueue_adds_total",
					   "Times a job was queued.", name);
	m->queue_retries =
		hf_operator_family(op, HF_METRIC_COUNTER, "workqueue_retries_total",
				   "Times a job was queued again after a failed pass.", name);
	m->queue_wait = create_histogram(op, "workqueue_queue_duration_seconds",
					 "Seconds that a job waits in the queue.", "name");
	m->queue_work = create_histogram(op, "workqueue_work_duration_seconds",
					 "Seconds that a pass over a job takes.", "name");
	m->queue_unfinished =
		hf_operator_family(op, HF_METRIC_GAUGE, "workqueue_unfinished_work_seconds",
				   "Seconds that all running passes have taken so far.", name);
	m->queue_longest = hf_operator_family(
		op, HF_METRIC_GAUGE, "workqueue_longest_running_processor_seconds",
		"Seconds that the longest running pass has taken so far.", name);
}

void hf_operator_metrics_init(struct hf_operator *op)
{
	static const char *const result[] = {"controller", "result", NULL};
	static const char *const controller[] = {"controller", NULL};
	static const char *const kind[] = {"kind", NULL};
	static const char *const states[] = {"namespace", "framework", "state", NULL};
	static const char *const reason[] = {"reason", NULL};
	struct hf_operator_metrics *m = &op->metrics;

	if (op->options.metrics == NULL)
		return;
	init_jobs(op);
	m->reconcile =
		hf_operator_family(op, HF_METRIC_COUNTER, "controller_runtime_reconcile_total",
				   "Passes over a job, by result.", result);
	m->reconcile_errors = hf_operator_family(
		op, HF_METRIC_COUNTER, "controller_runtime_reconcile_errors_total",
		"Passes over a job that failed and will be retried.", controller);
	m->reconcile_time = create_histogram(op, "controller_runtime_reconcile_time_seconds",
					     "Seconds from the step of a pass to its last reply.",
					     "controller");
	m->active_workers =
		hf_operator_family(op, HF_METRIC_GAUGE, "controller_runtime_active_workers",
				   "Passes that are running.", controller);
	m->workers_max = hf_operator_family(
		op, HF_METRIC_GAUGE, "controller_runtime_max_concurrent_reconciles",
		"Limit of passes that run at the same time, for all kinds together.", controller);
	m->steps = create_histogram(op, "holdfast_step_duration_seconds",
				    "Seconds that one step over a job takes.", "kind");
	m->status_patches =
		hf_operator_family(op, HF_METRIC_COUNTER, "holdfast_status_patches_total",
				   "Status patches that were answered.", kind);
	m->status_conflicts =
		hf_operator_family(op, HF_METRIC_COUNTER, "holdfast_status_conflicts_total",
				   "Status patches refused because the job had changed.", kind);
	m->states =
		hf_operator_family(op, HF_METRIC_GAUGE, "holdfast_jobs", "Jobs by state.", states);
	m->watch_events = hf_operator_family(op, HF_METRIC_COUNTER, "holdfast_watch_events_total",
					     "Watch events received, including bookmarks.", kind);
	m->relists = hf_operator_family(op, HF_METRIC_COUNTER, "holdfast_relists_total",
					"Lists that a cache began.", kind);
	m->cache_objects = hf_operator_family(op, HF_METRIC_GAUGE, "holdfast_cache_objects",
					      "Objects in the cache.", kind);
	init_queue(op);
	m->events_dropped =
		hf_operator_family(op, HF_METRIC_COUNTER, "holdfast_events_dropped_total",
				   "Events that were not written.", NULL);
	m->crd_narrow = hf_operator_family(
		op, HF_METRIC_GAUGE, "holdfast_crd_narrow",
		"1 if the CRD of the kind lacks status.recovery and an annotation holds the ledger.",
		kind);
	m->crd_missing = hf_operator_family(op, HF_METRIC_GAUGE, "holdfast_crd_missing",
					    "1 if the cluster lacks the CRD of the kind.", kind);
	m->nodes_lost = hf_operator_family(
		op, HF_METRIC_GAUGE, "holdfast_nodes_lost",
		"Schedulable nodes that are Unknown without proof that they are down.", NULL);
	m->node_loss_guard = hf_operator_family(
		op, HF_METRIC_GAUGE, "holdfast_node_loss_guard",
		"Zones where a guard holds back forced deletes, by reason.", reason);
	hf_operator_job_metrics_init(op);
}

void hf_operator_count_pass(struct hf_operator *op, const struct hf_framework *framework, int code,
			    hf_time took)
{
	const char *controller = framework->controller_name;

	if (op->options.metrics == NULL)
		return;
	hf_family_add(op->metrics.reconcile, 1, controller, code == 0 ? "success" : "error", NULL);
	hf_family_add(op->metrics.reconcile_errors, code == 0 ? 0 : 1, controller, NULL);
	hf_family_observe(op->metrics.reconcile_time, (double)took / (double)HF_SECOND, controller,
			  NULL);
	hf_family_observe(op->metrics.queue_work, (double)took / (double)HF_SECOND, queue_name,
			  NULL);
}

void hf_operator_count_wait(void *arg, hf_time waited)
{
	struct hf_operator *op = arg;

	if (op->options.metrics != NULL)
		hf_family_observe(op->metrics.queue_wait, (double)waited / (double)HF_SECOND,
				  queue_name, NULL);
}

static void report_recovery(const struct hf_operator *op, const struct hf_job_view *job,
			    const struct hf_status *now)
{
	struct hf_operator_recovery recovery = {.job = job, .record = &now->ledger.records[0]};

	if (op->options.recovered == NULL)
		return;
	if (hf_status_ends_recovery(&job->status, now))
		op->options.recovered(op->options.arg, &recovery);
	recovery.stepped = true;
	if (hf_status_shows_first_step(&job->status, now))
		op->options.recovered(op->options.arg, &recovery);
}

void hf_operator_count_plan(struct hf_operator *op, const char *key, const struct hf_job_view *job,
			    const struct hf_plan *plan)
{
	const char *framework = job->framework->metrics_name;

	report_recovery(op, job, &plan->status);
	if (op->options.metrics == NULL)
		return;
	hf_operator_count_recovery(op, &job->status, &plan->status);
	hf_operator_count_start(op, job, &plan->status);
	hf_operator_count_time(op, hf_map_get(op->states, key), &job->status, &plan->status);
	for (int i = 0; i < HF_METRICS; i++) {
		if (plan->metrics[i] == 0)
			continue;
		if (i == HF_METRIC_FORCED_PROVEN || i == HF_METRIC_FORCED_PRESUMED)
			hf_family_add(op->metrics.jobs[i], plan->metrics[i], job->ns, framework,
				      i == HF_METRIC_FORCED_PROVEN ? "Proven" : "Presumed", NULL);
		else if (i == HF_METRIC_RESTARTS)
			hf_family_add(op->metrics.jobs[i], plan->metrics[i], job->ns, framework,
				      hf_class_name(plan->restart_cause),
				      plan->restart_scope == HF_SCOPE_JOB ? "Job" : "Replica",
				      NULL);
		else
			hf_family_add(op->metrics.jobs[i], plan->metrics[i], job->ns, framework,
				      NULL);
	}
}

static void update_kind(struct hf_operator *op, const struct hf_kind *kind,
			struct hf_cache_stats *told)
{
	const struct hf_cache_stats *stats = hf_cache_stats(kind->cache);
	const char *name = kind->resource->kind;
	const struct hf_cache_entry *entry;

	hf_family_add(op->metrics.watch_events, (double)(stats->events - told->events), name, NULL);
	hf_family_add(op->metrics.relists, (double)(stats->relists - told->relists), name, NULL);
	*told = *stats;
	hf_family_set(op->metrics.cache_objects, (double)hf_cache_len(kind->cache), name, NULL);
	if (kind->framework == NULL)
		return;
	hf_family_set(
		op->metrics.workers_max,
		(double)(op->options.passes_max ? op->options.passes_max : HF_OPERATOR_PASSES_MAX),
		kind->framework->controller_name, NULL);
	for (size_t it = 0; (entry = hf_cache_next(kind->cache, &it)) != NULL;)
		hf_operator_job_metrics_add(op, kind, entry->doc);
}

static void update_workers(struct hf_operator *op)
{
	hf_time now = hf_loop_mono(op->loop), sum = 0, longest = 0;
	const char *key;
	void *value;

	for (size_t i = 0; i < op->n_kinds; i++)
		hf_family_set(op->metrics.active_workers, 0,
			      op->kinds[i].framework->controller_name, NULL);
	for (size_t it = 0; hf_map_next(op->states, &it, &key, &value);) {
		const struct hf_job_state *state = value;

		if (state->pass == NULL)
			continue;
		hf_family_add(op->metrics.active_workers, 1,
			      state->pass->kind->framework->controller_name, NULL);
		sum += now - state->pass->began;
		if (now - state->pass->began > longest)
			longest = now - state->pass->began;
	}
	hf_family_set(op->metrics.queue_unfinished, (double)sum / (double)HF_SECOND, queue_name,
		      NULL);
	hf_family_set(op->metrics.queue_longest, (double)longest / (double)HF_SECOND, queue_name,
		      NULL);
}

static void update_nodes(struct hf_operator *op)
{
	int32_t lost, storms;

	if (op->facts.nodes == NULL)
		return;
	hf_nodes_count(op->facts.nodes, &lost, &storms);
	hf_family_set(op->metrics.nodes_lost, lost, NULL);
	hf_family_set(op->metrics.node_loss_guard, storms, "storm", NULL);
}

void hf_operator_update_metrics(struct hf_operator *op)
{
	const struct hf_queue_stats *queue = hf_queue_stats(op->queue);
	const struct hf_recorder_stats *events = hf_recorder_stats(op->recorder);
	uint64_t dropped = events->dropped + events->spam + events->spared;
	struct hf_operator_metrics *m = &op->metrics;
	const struct hf_kind *groups = hf_groups_kind(op);

	if (op->options.metrics == NULL)
		return;
	hf_operator_job_metrics_clear(op);
	for (size_t i = 0; i < op->n_kinds; i++) {
		update_kind(op, &op->kinds[i], &m->told[i]);
		hf_family_set(m->crd_narrow, op->kinds[i].narrow ? 1 : 0,
			      op->kinds[i].framework->kind, NULL);
		hf_family_set(m->crd_missing, op->kinds[i].missing ? 1 : 0,
			      op->kinds[i].framework->kind, NULL);
	}
	if (groups != NULL)
		hf_family_set(m->crd_missing, groups->missing ? 1 : 0, groups->resource->kind,
			      NULL);
	update_kind(op, &op->pods, &m->told[HF_KINDS_MAX]);
	update_kind(op, &op->services, &m->told[HF_KINDS_MAX + 1]);
	for (size_t i = 0; i < HF_EXTRA_KINDS; i++)
		if (op->extras[i].started)
			update_kind(op, &op->extras[i], &m->told[HF_KINDS_MAX + 2 + i]);
	update_workers(op);
	update_nodes(op);
	hf_companions_update_metrics(op);
	hf_family_set(m->queue_depth, (double)hf_queue_waiting(op->queue), queue_name, NULL);
	hf_family_add(m->queue_adds, (double)(queue->adds - m->told_queue.adds), queue_name, NULL);
	hf_family_add(m->queue_retries, (double)(queue->retries - m->told_queue.retries),
		      queue_name, NULL);
	m->told_queue = *queue;
	hf_family_add(m->events_dropped, (double)(dropped - m->told_events_dropped), NULL);
	m->told_events_dropped = dropped;
}
