/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/operator_internal.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/kinds_internal.h"
#include "operator/narrow_schema_internal.h"
#include "operator/pass_internal.h"
#include "operator/watch_internal.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

/*
 * Creates, starts, stops and explains an operator: joins caches, queue, facts, gates and passes.
 *
 * Input: struct hf_operator_options.  The files that it joins do the work: watch.c, jobs_queue.c,
 * pass.c.
 */

#define REQUEST_TIMEOUT (30 * HF_SECOND)
/* Delay of events, so that events do not delay the three requests that replace a pod. */
#define EVENT_DELAY (200 * HF_MS)
/* Memory for reading one object at a time.  The store limits the size of an object. */
#define SCRATCH_BYTES_MAX ((size_t)64 << 20)
/* The most namespaces that may be noted as being deleted during an operator's life. */
#define ENDING_MAX ((size_t)16384)

/* --- life ------------------------------------------------------------------------------------- */

static int kinds_init(struct hf_operator *op, struct hf_error *err)
{
	for (const struct hf_framework *const *f = op->options.frameworks; *f != NULL; f++) {
		const struct hf_resource *resource =
			hf_resource_by_plural((*f)->group, (*f)->plural);

		hf_assert(op->n_kinds < HF_KINDS_MAX);
		if (resource == NULL)
			return hf_error_set(err, HF_E_UNSUPPORTED, "the store has no kind '%s'",
					    (*f)->kind);
		hf_watch_create_jobs(op, &op->kinds[op->n_kinds], *f, resource);
		hf_narrow_init(&op->kinds[op->n_kinds++]);
	}
	hf_assert(op->n_kinds > 0);
	hf_watch_create_objects(op);
	op->facts.history = hf_pod_history_create(op);
	if (op->options.watch_nodes) {
		op->facts.nodes = hf_nodes_create(op);
		op->facts.asks = hf_asks_create(op);
	}
	if (op->options.watch_nodes || op->options.watch_agents)
		op->facts.devices = hf_devices_create(op);
	return 0;
}

/* Begin the passes of each kind with known objects.  Pods and services must be listed first,
 * because all kinds need them.  A kind with a missing CRD or a refused list does not delay the
 * other kinds. */
static void begin_kinds(struct hf_operator *op)
{
	hf_companions_wake(op);
	if (!hf_cache_synced(op->pods.cache) || !hf_cache_synced(op->services.cache) ||
	    (op->facts.nodes != NULL && !hf_nodes_synced(op->facts.nodes)) ||
	    (op->facts.devices != NULL && !hf_devices_synced(op->facts.devices)))
		return;
	hf_extras_enqueue(op);
	for (size_t i = 0; i < op->n_kinds; i++) {
		struct hf_kind *kind = &op->kinds[i];

		if (kind->running || !hf_cache_synced(kind->cache) || !hf_narrow_synced(kind))
			continue;
		kind->running = true;
		if (!op->running && op->facts.history != NULL)
			hf_pod_history_synced(op->facts.history);
		op->running = true;
		hf_kind_found(kind);
		hf_operator_enqueue_kind(kind);
	}
}

static int check_template(struct hf_operator *op, struct hf_error *err)
{
	HF_AUTO_JSON list = NULL;

	op->options.settings.init_container_template = op->init_container_template != NULL;
	if (op->init_container_template == NULL)
		return 0;
	return hf_render_init_containers(op->init_container_template, "job-master-0",
					 &op->options.settings, &list, err);
}

static void on_stopped(void *arg)
{
	struct hf_operator *op = arg;
	hf_task_fn stopped = op->stopped;

	hf_timer_disarm(op->stop_timer);
	op->stopped = NULL;
	if (stopped != NULL)
		stopped(op->stopped_arg);
}

static void on_gate_timer(void *arg)
{
	hf_gate_open(arg);
}

static void event_refused(void *arg, int code, const char *message)
{
	hf_operator_problem(arg, "events", code, message);
}

static void event_recorded(void *arg, const struct hf_event_note *note, hf_time now)
{
	const struct hf_operator *op = arg;

	if (op->options.noted != NULL)
		op->options.noted(op->options.arg, note, now);
}

static void queue_init(struct hf_operator *op)
{
	const struct hf_operator_options *options = &op->options;
	const struct hf_queue_options queue = {
		.loop = op->loop,
		.running_max = options->passes_max ? options->passes_max : HF_OPERATOR_PASSES_MAX,
		.seed = options->seed,
		.run = hf_pass_run,
		.waited = hf_operator_count_wait,
		.arg = op,
	};
	const struct hf_recorder_options recorder = {
		.loop = op->loop,
		.store = op->store,
		.component = "holdfast",
		.seed = options->seed,
		.delay = EVENT_DELAY,
		.refused = event_refused,
		.recorded = event_recorded,
		.arg = op,
	};

	op->queue = hf_queue_create(&queue);
	op->recorder = hf_recorder_create(&recorder);
}

static void state_free(void *value)
{
	struct hf_job_state *state = value;

	free(state->looked);
	free(state);
}

int hf_operator_create(const struct hf_operator_options *options, struct hf_operator **ret_operator,
		       struct hf_error *err)
{
	struct hf_operator *op = hf_xcalloc(1, sizeof(*op));
	size_t jobs_max = HF_CACHE_ENTRIES_MAX * HF_KINDS_MAX;
	int rc;

	op->options = *options;
	op->loop = options->loop;
	op->store = options->store;
	op->ns = options->ns == NULL ? NULL : hf_xstrdup(options->ns);
	if (options->init_container_template != NULL)
		op->init_container_template = hf_xstrdup(options->init_container_template);
	if (options->request_timeout <= 0)
		op->options.request_timeout = REQUEST_TIMEOUT;
	op->check_synced = begin_kinds;
	op->in_flight_max =
		options->in_flight_max ? options->in_flight_max : HF_OPERATOR_IN_FLIGHT_MAX;
	for (size_t i = 0; i < HF_ARRAY_LEN(op->gates); i++)
		op->gates[i].last = &op->gates[i].first;
	op->tokens = options->burst;
	op->tokens_at = hf_loop_mono(op->loop);
	op->gate_timer = hf_timer_create(op->loop, on_gate_timer, op);
	op->job_keys = hf_map_create(jobs_max, options->seed, free);
	op->states = hf_map_create(jobs_max, options->seed, state_free);
	op->ending = hf_map_create(ENDING_MAX, options->seed, NULL);
	op->scratch = hf_arena_create(SCRATCH_BYTES_MAX);
	op->stopped_task = hf_task_create(op->loop, on_stopped, op);
	op->stop_timer = hf_timer_create(op->loop, on_stopped, op);
	queue_init(op);
	rc = check_template(op, err);
	if (rc == 0)
		rc = kinds_init(op, err);
	if (rc != 0) {
		hf_operator_destroy(op);
		return rc;
	}
	if (options->watch_nodes && op->ns == NULL)
		hf_companions_create(op);
	hf_operator_metrics_init(op);
	*ret_operator = op;
	return 0;
}

void hf_operator_start(struct hf_operator *op)
{
	hf_cache_start(op->pods.cache);
	hf_cache_start(op->services.cache);
	hf_groups_start(op);
	for (size_t i = 0; i < op->n_kinds; i++) {
		hf_cache_start(op->kinds[i].cache);
		hf_narrow_start(&op->kinds[i]);
	}
	if (op->facts.nodes != NULL)
		hf_nodes_start(op->facts.nodes);
	if (op->facts.devices != NULL)
		hf_devices_start(op->facts.devices);
	hf_companions_start(op);
}

static void each_pass(struct hf_operator *op, void (*fn)(struct hf_pass *))
{
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(op->states, &it, &key, &value);) {
		struct hf_job_state *state = value;

		if (state->pass != NULL)
			fn(state->pass);
	}
}

void hf_operator_stop(struct hf_operator *op, hf_task_fn stopped, void *arg)
{
	hf_assert(!op->stopping);
	op->stopping = true;
	op->stopped = stopped;
	op->stopped_arg = arg;
	hf_queue_pause(op->queue);
	if (op->facts.asks != NULL)
		hf_asks_stop(op->facts.asks);
	hf_companions_stop(op);
	each_pass(op, hf_pass_stop);
	hf_operator_check_stopped(op);
}

struct hf_operator *hf_operator_destroy(struct hf_operator *op)
{
	if (op == NULL)
		return NULL;
	op->stopping = true;
	/* The metrics live longer than the operator, and another process may report these jobs from
	 * now on. */
	if (op->metrics.states != NULL)
		hf_operator_job_metrics_clear(op);
	each_pass(op, hf_pass_abort);
	hf_companions_destroy(op);
	hf_queue_destroy(op->queue);
	hf_recorder_destroy(op->recorder);
	for (size_t i = 0; i < op->n_kinds; i++) {
		hf_cache_destroy(op->kinds[i].cache);
		hf_narrow_release(&op->kinds[i]);
	}
	hf_asks_destroy(op->facts.asks);
	hf_devices_destroy(op->facts.devices);
	hf_nodes_destroy(op->facts.nodes);
	hf_pod_history_destroy(op->facts.history);
	hf_cache_destroy(op->pods.cache);
	hf_cache_destroy(op->services.cache);
	for (size_t i = 0; i < HF_EXTRA_KINDS; i++)
		hf_cache_destroy(op->extras[i].cache);
	hf_map_destroy(op->job_keys);
	hf_map_destroy(op->states);
	hf_map_destroy(op->ending);
	hf_arena_destroy(op->scratch);
	hf_task_destroy(op->stopped_task);
	hf_timer_destroy(op->stop_timer);
	hf_timer_destroy(op->gate_timer);
	free(op->ns);
	free(op->init_container_template);
	free(op);
	return NULL;
}

/* --- questions -------------------------------------------------------------------------------- */

bool hf_operator_synced(const struct hf_operator *op)
{
	return hf_kinds_known(op);
}

void hf_operator_missing(const struct hf_operator *op, struct hf_strbuf *sb)
{
	hf_kinds_describe(op, sb);
}

bool hf_operator_idle(const struct hf_operator *op)
{
	return hf_queue_waiting(op->queue) == 0 && hf_queue_running(op->queue) == 0 &&
	       hf_recorder_pending(op->recorder) == 0;
}

int hf_operator_explain(struct hf_operator *op, const struct hf_job_ref *job,
			struct hf_arena *arena, struct hf_job_view *ret_view,
			struct hf_plan *ret_plan, struct hf_error *err)
{
	struct hf_observe_args args = {.pods = op->pods.cache,
				       .services = op->services.cache,
				       .job = ret_view,
				       .facts = &op->facts,
				       .mono = hf_loop_mono(op->loop)};
	HF_AUTOFREE char *key =
		hf_xasprintf("%s/%s/%s", job->framework->plural, job->ns, job->name);
	const struct hf_cache_entry *entry = NULL;
	struct hf_observed seen;

	args.key = key;
	for (size_t i = 0; i < HF_EXTRA_KINDS; i++)
		args.extras[i] = op->extras[i].cache;
	for (size_t i = 0; i < op->n_kinds && entry == NULL; i++)
		if (op->kinds[i].framework == job->framework)
			entry = hf_cache_get(op->kinds[i].cache, job->ns, job->name);
	if (entry == NULL)
		return hf_error_set(err, HF_E_NOT_FOUND, "%s \"%s\" not found",
				    job->framework->plural, job->name);
	args.now = hf_operator_now(op);
	hf_job_read(entry->doc, job->framework, &op->options.settings, arena, NULL, ret_view);
	hf_observe(&args, arena, NULL, &seen);
	return hf_job_step(ret_view, &seen, args.now, arena, ret_plan, err);
}
