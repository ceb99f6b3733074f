/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/operator_internal.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/status.h"
#include "operator/kinds_internal.h"
#include "operator/narrow_schema_internal.h"
#include "operator/pass_internal.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

#define REQUEST_TIMEOUT (30 * HF_SECOND)
/* Events that wait when the operator is told to stop get so long to be written. */
#define DRAIN_MAX (2 * HF_SECOND)
/* 10 ms for 1,000 pods with their services, 100 ms for 10,000: ten times what a step takes. */
#define GATHER_PER_OBJECT (5 * HF_US)
#define GATHER_MIN HF_MS
/* Pods that are created, placed and started pass through some ten changes in a moment, none of
 * which decides anything alone: they are looked at together. */
#define GATHER_CALM (50 * HF_MS)
/* While many jobs wait for an API server, their progress is told less often: for each about what
 * the server needs for the pods and services of a small job, so that one status tells it all. */
#define GATHER_PER_JOB (20 * HF_MS)
#define GATHER_MAX (5 * HF_SECOND)
/* A pod is replaced within some three requests; what is told of it does not compete with them. */
#define EVENT_DELAY (200 * HF_MS)
/* One object decoded at a time; its text is bounded by the store. */
#define SCRATCH_BYTES_MAX ((size_t)64 << 20)
/* More namespaces than that are not deleted in the life of an operator. */
#define ENDING_MAX ((size_t)16384)

void hf_operator_problem(struct hf_operator *op, const char *key, int code, const char *message)
{
	if (op->options.problem != NULL)
		op->options.problem(op->options.arg, key, code, message);
}

void hf_operator_heard(struct hf_operator *op, const struct hf_reply *reply)
{
	bool jumped = hf_server_clock_hear(&op->clock, reply->server_time, hf_loop_mono(op->loop),
					   hf_loop_wall(op->loop));

	/* Wake-ups were armed by the old estimate: nothing else would bring these jobs back. */
	for (size_t i = 0; jumped && i < op->n_kinds; i++)
		hf_operator_enqueue_kind(&op->kinds[i]);
}

hf_time hf_operator_now(struct hf_operator *op)
{
	return hf_server_clock_now(&op->clock, hf_loop_mono(op->loop), hf_loop_wall(op->loop));
}

/* --- from changes to jobs ------------------------------------------------------------------ */

/* Jobs that have begun go before those that have not: of a thousand at once the first ones are told
 * of before the last ones are made. */
static void enqueue(struct hf_operator *op, const char *key)
{
	bool added;

	if (!op->running)
		return;
	if (hf_map_has(op->states, key))
		added = hf_queue_add(op->queue, key);
	else
		added = hf_queue_add_behind(op->queue, key);
	if (!added)
		hf_operator_problem(op, key, HF_E_TOO_LARGE, "too many jobs are waiting");
}

hf_time hf_operator_gather(const struct hf_operator *op)
{
	size_t jobs = hf_queue_waiting(op->queue) + hf_queue_running(op->queue);
	hf_time gather = (hf_time)jobs * GATHER_PER_JOB;

	if (gather < GATHER_CALM)
		return GATHER_CALM;
	return gather < GATHER_MAX ? gather : GATHER_MAX;
}

/* Pods change by the hundred; a step costs as much as the job is big.  So their changes gather, the
 * longer the bigger the job, and a job of ten thousand does not keep the process busy. */
static void enqueue_gathering(struct hf_operator *op, const char *key, bool calm)
{
	struct hf_job_state *state = hf_map_get(op->states, key);
	hf_time gather = state == NULL ? 0 : (hf_time)state->size * GATHER_PER_OBJECT;

	/* Mostly what the pass itself makes: one right behind it would see nothing else. */
	if (calm && state != NULL && state->pass != NULL) {
		state->calm_owed = true;
		return;
	}
	if (calm && gather < hf_operator_gather(op))
		gather = hf_operator_gather(op);
	if (calm && state != NULL && state->rising_since != HF_TIME_NONE &&
	    gather < hf_startups_gather_time(&op->startups))
		gather = hf_startups_gather_time(&op->startups);
	if (gather < GATHER_MIN)
		enqueue(op, key);
	else
		hf_operator_enqueue_after(op, key, gather);
}

void hf_operator_enqueue(struct hf_operator *op, const char *key)
{
	enqueue_gathering(op, key, false);
}

void hf_operator_enqueue_calm(struct hf_operator *op, const char *key)
{
	enqueue_gathering(op, key, true);
}

void hf_operator_enqueue_after(struct hf_operator *op, const char *key, hf_time delay)
{
	if (op->running && !hf_queue_add_after(op->queue, key, delay))
		hf_operator_problem(op, key, HF_E_TOO_LARGE, "too many jobs are waiting");
}

static char *job_key(const struct hf_kind *kind, const char *ns, const char *name)
{
	return hf_xasprintf("%s/%s/%s", kind->resource->plural, ns, name);
}

struct hf_kind *hf_kind_of_key(struct hf_operator *op, const char *key, char **ret_ns,
			       const char **ret_name)
{
	for (size_t i = 0; i < op->n_kinds; i++) {
		const char *plural = op->kinds[i].resource->plural;
		size_t len = strlen(plural);

		if (strncmp(key, plural, len) != 0 || key[len] != '/')
			continue;
		const char *ns = key + len + 1, *slash = strchr(ns, '/');

		hf_assert(slash != NULL);
		*ret_ns = hf_xstrndup(ns, (size_t)(slash - ns));
		*ret_name = slash + 1;
		return &op->kinds[i];
	}
	return NULL;
}

void hf_operator_each_by_name(struct hf_operator *op, const char *ns, const char *name,
			      void (*fn)(void *arg, const struct hf_kind *kind,
					 const struct hf_cache_entry *job),
			      void *arg)
{
	HF_AUTOFREE char *job = hf_xstrdup(name);

	for (int dashes = 0; dashes < 2; dashes++) {
		char *dash = strrchr(job, '-');

		if (dash == NULL)
			return;
		*dash = '\0';
		for (size_t i = 0; i < op->n_kinds; i++) {
			const struct hf_cache_entry *entry =
				hf_cache_get(op->kinds[i].cache, ns, job);

			if (entry != NULL)
				fn(arg, &op->kinds[i], entry);
		}
	}
}

static void enqueue_job(void *arg, const struct hf_kind *kind, const struct hf_cache_entry *job)
{
	HF_AUTOFREE char *key = job_key(kind, job->ns, job->name);

	enqueue(arg, key);
}

void hf_operator_enqueue_by_name(struct hf_operator *op, const char *ns, const char *name)
{
	hf_operator_each_by_name(op, ns, name, enqueue_job, op);
}

void hf_operator_namespace_ends(struct hf_operator *op, const char *ns)
{
	if (!hf_map_put(op->ending, ns, op))
		return; /* a full table costs each job there a try a pass */
}

bool hf_operator_is_ending(const struct hf_operator *op, const char *ns)
{
	return hf_map_has(op->ending, ns);
}

void hf_operator_enqueue_kind(struct hf_kind *kind)
{
	const struct hf_cache_entry *entry;

	for (size_t it = 0; (entry = hf_cache_next(kind->cache, &it)) != NULL;) {
		HF_AUTOFREE char *key = job_key(kind, entry->ns, entry->name);

		enqueue(kind->op, key);
	}
}

static void job_changed(void *arg, enum hf_cache_change change, const struct hf_cache_entry *before,
			const struct hf_cache_entry *now)
{
	struct hf_kind *kind = arg;
	const struct hf_cache_entry *entry = now != NULL ? now : before;

	if (change == HF_CACHE_SYNCED) {
		hf_operator_check_synced(kind->op);
		return;
	}
	hf_kind_found(kind);
	HF_AUTOFREE char *key = job_key(kind, entry->ns, entry->name);

	if (change == HF_CACHE_DELETED) {
		hf_map_remove(kind->op->job_keys, entry->uid);
		if (kind->op->facts.history != NULL)
			hf_pod_history_forget(kind->op->facts.history, entry->uid);
	}
	if (change == HF_CACHE_ADDED) {
		char *copy = hf_xstrdup(key);

		hf_map_remove(kind->op->ending, entry->ns);
		/* A full table costs this job the wake-ups by its pods. */
		if (!hf_map_put(kind->op->job_keys, entry->uid, copy))
			free(copy);
	}
	/* Progress that was written as it was planned changes nothing that a step would see. */
	if (!kind->op->own_write)
		enqueue(kind->op, key);
	else if (!kind->op->own_calm)
		enqueue_gathering(kind->op, key, true);
}

/* No news that somebody waits for: the object is there, and nothing of it has ended. */
static bool is_calm_pod(const struct hf_pod *was, const struct hf_pod *pod)
{
	if (pod->deletion_time != HF_TIME_NONE ||
	    (pod->phase != HF_POD_PENDING && pod->phase != HF_POD_RUNNING))
		return false;
	for (size_t i = 0; i < pod->containers_len; i++) {
		const struct hf_container_seen *container = &pod->containers[i];
		int32_t restarts = i < was->containers_len ? was->containers[i].restart_count : 0;

		if (container->restart_count != restarts ||
		    (container->phase == HF_CONTAINER_TERMINATED && !container->init))
			return false;
	}
	return true;
}

static bool is_calm(const struct hf_kind *kind, const struct hf_view *was,
		    const struct hf_view *now)
{
	struct hf_operator *op = kind->op;
	struct hf_service_seen service;
	struct hf_pod before = {.containers_len = 0}, pod;
	struct hf_extra_seen extra, extra_before = {.ready = false};
	bool calm;

	if (kind >= op->extras && kind < op->extras + HF_EXTRA_KINDS) {
		if (was != NULL)
			hf_view_extra(was, &extra_before);
		hf_view_extra(now, &extra);
		return !extra.terminating && extra.ready == extra_before.ready;
	}

	if (kind != &op->pods) {
		hf_view_service(now, &service);
		return !service.terminating;
	}
	if (was != NULL)
		hf_view_pod(was, op->scratch, &before);
	hf_view_pod(now, op->scratch, &pod);
	calm = is_calm_pod(&before, &pod);
	hf_arena_reset(op->scratch);
	return calm;
}

static void object_changed(void *arg, enum hf_cache_change change,
			   const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	struct hf_kind *kind = arg;
	const struct hf_cache_entry *both[] = {before, now};
	const char *last = NULL;
	bool calm;

	hf_kind_found(kind);
	if (change == HF_CACHE_SYNCED) {
		hf_operator_check_synced(kind->op);
		return;
	}
	if (kind == &kind->op->pods && kind->op->facts.history != NULL)
		hf_pod_history_changed(kind->op->facts.history, before, now);
	calm = now != NULL && is_calm(kind, before == NULL ? NULL : before->view, now->view);
	for (size_t i = 0; i < HF_ARRAY_LEN(both); i++) {
		const struct hf_view *view = both[i] == NULL ? NULL : both[i]->view;
		const char *key = view == NULL || view->controller_uid == NULL
					  ? NULL
					  : hf_map_get(kind->op->job_keys, view->controller_uid);

		if (key != NULL && key != last)
			enqueue_gathering(kind->op, key, calm);
		else if (view != NULL && key == NULL)
			hf_operator_enqueue_by_name(kind->op, both[i]->ns, both[i]->name);
		last = key;
	}
}

static void cache_heard(void *arg, const struct hf_reply *reply)
{
	hf_operator_heard(((const struct hf_kind *)arg)->op, reply);
}

static void cache_problem(void *arg, int code, const char *message)
{
	struct hf_kind *kind = arg;

	if (kind->framework != NULL)
		hf_kind_problem(kind, code, message);
	else if (kind == hf_groups_kind(kind->op))
		hf_groups_problem(kind, code, message);
	else
		hf_operator_problem(kind->op, kind->resource->plural, code, message);
}

/* --- views --------------------------------------------------------------------------------- */

/* Jobs are kept as text, without what the API server notes for itself: half of it, mostly. */
/* A status that changes while a pass is at work, or after one whose write was not answered, may be ours. */
static bool may_be_ours(const struct hf_kind *kind, struct hf_doc *doc)
{
	HF_AUTOFREE char *key = job_key(kind, hf_doc_namespace(doc), hf_doc_name(doc));
	const struct hf_job_state *state = hf_map_get(kind->op->states, key);

	return kind->op->own_write || (state != NULL && (state->pass != NULL || state->unsure));
}

static void show_job(const struct hf_kind *kind, struct hf_doc *doc)
{
	const struct hf_operator *op = kind->op;
	const struct hf_cache_entry *entry;

	if (op->options.job_seen == NULL || may_be_ours(kind, doc))
		return;
	entry = hf_cache_get(kind->cache, hf_doc_namespace(doc), hf_doc_name(doc));
	op->options.job_seen(op->options.job_seen_arg, entry == NULL ? NULL : entry->doc, doc);
}

static struct hf_doc *trim_job(void *arg, struct hf_doc *doc)
{
	show_job(arg, doc);
	return hf_doc_without(doc, "metadata", "managedFields");
}

static void *decode_pod(void *arg, struct hf_doc *doc)
{
	const struct hf_kind *kind = arg;
	struct hf_view *view = hf_view_of_pod(doc, kind->op->scratch);

	hf_arena_reset(kind->op->scratch);
	return view;
}

static void *decode_service(void *arg, struct hf_doc *doc)
{
	const struct hf_kind *kind = arg;
	struct hf_view *view = hf_view_of_service(doc, kind->op->scratch);

	hf_arena_reset(kind->op->scratch);
	return view;
}

/* Of a cluster's ConfigMaps most are nobody's: their names are all that may matter. */
static void *decode_extra(void *arg, struct hf_doc *doc)
{
	const struct hf_kind *kind = arg;
	struct hf_view *view = hf_view_of_extra(doc, kind->extra, kind->op->scratch);

	hf_doc_drop_tree(doc);
	hf_arena_reset(kind->op->scratch);
	return view;
}

static const char *by_controller(const struct hf_cache_entry *entry)
{
	return ((const struct hf_view *)entry->view)->controller_uid;
}

/* Of pods that have a controller: whose it is is looked up. */
static const char *by_node(const struct hf_cache_entry *entry)
{
	const struct hf_view *view = entry->view;

	return view->controller_uid == NULL || hf_str_is_empty(view->node) ? NULL : view->node;
}

/* --- life ---------------------------------------------------------------------------------- */

static void kind_init(struct hf_operator *op, struct hf_kind *kind,
		      const struct hf_framework *framework, const struct hf_resource *resource,
		      void *(*decode)(void *arg, struct hf_doc *doc))
{
	struct hf_cache_options options = {
		.loop = op->loop,
		.store = op->store,
		.resource = resource,
		.ns = op->ns,
		.seed = op->options.seed ^ hf_hash_str(resource->plural),
		.keep_docs = framework != NULL,
		.changed = framework != NULL ? job_changed : object_changed,
		.problem = cache_problem,
		.heard = cache_heard,
		.arg = kind,
	};

	if (framework != NULL) {
		options.trim = trim_job;
	} else {
		options.decode = decode;
		options.view_free = hf_view_unref;
		options.index_key[HF_PODS_BY_OWNER] = by_controller;
		if (resource == &hf_pods && op->options.watch_nodes)
			options.index_key[HF_PODS_BY_NODE] = by_node;
	}
	kind->op = op;
	kind->framework = framework;
	kind->resource = resource;
	kind->cache = hf_cache_create(&options);
}

static int kinds_init(struct hf_operator *op, struct hf_error *err)
{
	for (const struct hf_framework *const *f = op->options.frameworks; *f != NULL; f++) {
		const struct hf_resource *resource =
			hf_resource_by_plural((*f)->group, (*f)->plural);

		hf_assert(op->n_kinds < HF_KINDS_MAX);
		if (resource == NULL)
			return hf_error_set(err, HF_E_UNSUPPORTED, "the store has no kind '%s'",
					    (*f)->kind);
		kind_init(op, &op->kinds[op->n_kinds], *f, resource, NULL);
		hf_narrow_init(&op->kinds[op->n_kinds++]);
	}
	hf_assert(op->n_kinds > 0);
	kind_init(op, &op->pods, NULL, &hf_pods, decode_pod);
	kind_init(op, &op->services, NULL, &hf_services, decode_service);
	for (size_t i = 0; i < HF_EXTRA_KINDS; i++) {
		op->extras[i].extra = (enum hf_extra_kind)i;
		kind_init(op, &op->extras[i], NULL, hf_extra_resource((enum hf_extra_kind)i),
			  decode_extra);
	}
	op->facts.history = hf_pod_history_create(op);
	if (op->options.watch_nodes) {
		op->facts.nodes = hf_nodes_create(op);
		op->facts.asks = hf_asks_create(op);
		op->facts.devices = hf_devices_create(op);
	}
	return 0;
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
		.arg = op,
	};

	op->queue = hf_queue_create(&queue);
	op->recorder = hf_recorder_create(&recorder);
}

/* --- what the companion asks ---------------------------------------------------------------- */

static hf_time tell_time(void *arg)
{
	return hf_operator_now(arg);
}

static void take_reply(void *arg, const struct hf_reply *reply)
{
	hf_operator_heard(arg, reply);
}

static void pass_problem_on(void *arg, const char *what, int code, const char *message)
{
	hf_operator_problem(arg, what, code, message);
}

static bool knows_pods(void *arg)
{
	return hf_cache_synced(((const struct hf_operator *)arg)->pods.cache);
}

static const char *find_owner(void *arg, const char *ns, const char *pod, const char *uid)
{
	const struct hf_operator *op = arg;
	const struct hf_cache_entry *entry = hf_cache_get(op->pods.cache, ns, pod);
	const struct hf_view *view = entry == NULL ? NULL : entry->view;

	if (view == NULL || view->controller_uid == NULL ||
	    (!hf_str_is_empty(uid) && !hf_streq(entry->uid, uid)))
		return NULL;
	return hf_map_get(op->job_keys, view->controller_uid);
}

static bool has_restarting(const struct hf_json *job)
{
	const struct hf_json *list = hf_json_path(job, "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *c = hf_json_item(list, i);

		if (hf_streq(hf_json_path_str(c, "type", NULL), HF_COND_RESTARTING))
			return hf_streq(hf_json_path_str(c, "status", NULL), "True");
	}
	return false;
}

static bool is_restarting(void *arg, const char *key)
{
	struct hf_operator *op = arg;
	HF_AUTOFREE char *ns = NULL;
	const char *name = NULL;
	const struct hf_kind *kind = key == NULL ? NULL : hf_kind_of_key(op, key, &ns, &name);
	const struct hf_cache_entry *entry =
		kind == NULL ? NULL : hf_cache_get(kind->cache, ns, name);

	return entry != NULL && has_restarting(hf_doc_json(entry->doc));
}

static void create_companion(struct hf_operator *op)
{
	const struct hf_controller_env env = {
		.loop = op->loop,
		.store = op->store,
		.recorder = op->recorder,
		.metrics = op->options.metrics,
		.seed = op->options.seed,
		.request_timeout = op->options.request_timeout,
		.arg = op,
		.now = tell_time,
		.heard = take_reply,
		.problem = pass_problem_on,
		.knows_pods = knows_pods,
		.find_job = find_owner,
		.is_restarting = is_restarting,
	};

	op->companion = op->options.create_companion(&env);
}

/* --- life, continued ------------------------------------------------------------------------ */

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
	if (options->create_companion != NULL && options->watch_nodes && op->ns == NULL)
		create_companion(op);
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
	if (op->facts.nodes != NULL) {
		hf_nodes_start(op->facts.nodes);
		hf_devices_start(op->facts.devices);
	}
	if (op->companion != NULL)
		op->companion->ops->start(op->companion);
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
	if (op->companion != NULL)
		op->companion->ops->stop(op->companion);
	each_pass(op, hf_pass_stop);
	hf_operator_check_stopped(op);
}

static void events_sent(void *arg)
{
	struct hf_operator *op = arg;

	hf_task_post(op->stopped_task);
}

void hf_operator_check_stopped(struct hf_operator *op)
{
	if (!op->stopping || hf_queue_running(op->queue) > 0 || hf_timer_armed(op->stop_timer))
		return;
	hf_timer_arm(op->stop_timer, DRAIN_MAX);
	hf_recorder_drain(op->recorder, events_sent, op);
}

struct hf_operator *hf_operator_destroy(struct hf_operator *op)
{
	if (op == NULL)
		return NULL;
	op->stopping = true;
	/* The metrics may outlive it, and be told by another process from here on. */
	if (op->metrics.states != NULL)
		hf_operator_job_metrics_clear(op);
	each_pass(op, hf_pass_abort);
	if (op->companion != NULL)
		op->companion->ops->destroy(op->companion);
	op->companion = NULL;
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

/* --- questions ----------------------------------------------------------------------------- */

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
