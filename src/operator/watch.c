/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/watch_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/kinds_internal.h"
#include "store/resource.h"

#include <stdlib.h>

/*
 * The caches of jobs, pods, services and extra objects.
 *
 * Input: the changes that the caches report.  Output: the jobs that a change concerns, in the
 * queue; notes about deleted pods.
 *
 * Invariant: a change that no step can see queues no job.
 */

/* --- jobs ------------------------------------------------------------------------------------- */

/* A changed status may be this operator's own write: during a pass, or after a write without an
 * answer. */
static bool may_be_ours(const struct hf_kind *kind, struct hf_doc *doc)
{
	HF_AUTOFREE char *key = hf_operator_job_key(kind, hf_doc_namespace(doc), hf_doc_name(doc));
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

/* Remove managedFields, which are about half of a job, before the cache keeps it as text. */
static struct hf_doc *trim_job(void *arg, struct hf_doc *doc)
{
	show_job(arg, doc);
	return hf_doc_without_managed_fields(doc);
}

static void note_added_job(struct hf_operator *op, const struct hf_cache_entry *job,
			   const char *key)
{
	char *copy = hf_xstrdup(key);

	hf_map_remove(op->ending, job->ns);
	/* If the table is full, changes of this job's pods do not queue the job. */
	if (!hf_map_put(op->job_keys, job->uid, copy))
		free(copy);
	if (op->facts.history != NULL)
		hf_pod_history_begin(op->facts.history, job);
}

static void note_deleted_job(struct hf_operator *op, const struct hf_cache_entry *job)
{
	hf_map_remove(op->job_keys, job->uid);
	if (op->facts.history != NULL)
		hf_pod_history_end(op->facts.history, job);
}

static void tell_seen(const struct hf_operator *op, const char *key)
{
	if (op->options.seen != NULL)
		op->options.seen(op->options.arg, key);
}

static void take_job_change(void *arg, enum hf_cache_change change,
			    const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	struct hf_kind *kind = arg;
	const struct hf_cache_entry *entry = now != NULL ? now : before;

	if (change == HF_CACHE_SYNCED) {
		hf_operator_check_synced(kind->op);
		return;
	}
	hf_kind_found(kind);
	HF_AUTOFREE char *key = hf_operator_job_key(kind, entry->ns, entry->name);

	if (change == HF_CACHE_DELETED)
		note_deleted_job(kind->op, entry);
	if (change == HF_CACHE_ADDED)
		note_added_job(kind->op, entry, key);
	tell_seen(kind->op, key);
	/* If the change is this operator's own routine status, a step would see nothing new. */
	if (!kind->op->own_write)
		hf_operator_enqueue_now(kind->op, key);
	else if (!kind->op->own_routine)
		hf_operator_enqueue_routine(kind->op, key);
}

/* --- pods, services, extra objects ------------------------------------------------------------ */

enum weight {
	WEIGHT_NONE,    /* the change concerns nothing that a step reads */
	WEIGHT_ROUTINE, /* progress: no decision waits for it */
	WEIGHT_SUCCESS, /* a rank has succeeded */
	WEIGHT_FULL,    /* a deletion, another termination, a restart */
};

/* The pod has news that must not wait: a restart or a failed container.  ret_success: a main
 * container has terminated with code 0, or the pod has succeeded. */
static bool has_news(const struct hf_pod *was, const struct hf_pod *pod, bool *ret_success)
{
	*ret_success = pod->phase == HF_POD_SUCCEEDED;
	for (size_t i = 0; i < pod->containers_len; i++) {
		const struct hf_container_seen *container = &pod->containers[i];
		int32_t restarts = i < was->containers_len ? was->containers[i].restart_count : 0;
		bool ended = container->phase == HF_CONTAINER_TERMINATED && !container->init;

		if (container->restart_count != restarts || (ended && container->exit_code != 0) ||
		    (ended && container->signal != 0))
			return true;
		*ret_success = *ret_success || ended;
	}
	return false;
}

static enum weight weigh_pod(struct hf_operator *op, const struct hf_view *was,
			     const struct hf_view *now)
{
	struct hf_pod before = {.containers_len = 0}, pod;
	bool success;

	if (was != NULL)
		hf_view_pod(was, op->scratch, &before);
	hf_view_pod(now, op->scratch, &pod);
	if (pod.deletion_time != HF_TIME_NONE || pod.phase == HF_POD_FAILED ||
	    has_news(&before, &pod, &success))
		return WEIGHT_FULL;
	if (success)
		return WEIGHT_SUCCESS;
	return was != NULL && hf_view_is_same_pod(was, now, op->scratch) ? WEIGHT_NONE
									 : WEIGHT_ROUTINE;
}

static bool is_extra_kind(const struct hf_kind *kind)
{
	return kind >= kind->op->extras && kind < kind->op->extras + HF_EXTRA_KINDS;
}

static bool is_routine_extra(const struct hf_view *was, const struct hf_view *now)
{
	struct hf_extra_seen extra, before = {.ready = false};

	if (was != NULL)
		hf_view_extra(was, &before);
	hf_view_extra(now, &extra);
	return !extra.terminating && extra.ready == before.ready;
}

static enum weight weigh_change(const struct hf_kind *kind, const struct hf_view *was,
				const struct hf_view *now)
{
	struct hf_operator *op = kind->op;
	struct hf_service_seen service;
	enum weight weight;

	if (now == NULL)
		return WEIGHT_FULL;
	if (is_extra_kind(kind))
		return is_routine_extra(was, now) ? WEIGHT_ROUTINE : WEIGHT_FULL;
	if (kind != &op->pods) {
		hf_view_service(now, &service);
		return service.terminating ? WEIGHT_FULL : WEIGHT_ROUTINE;
	}
	weight = weigh_pod(op, was, now);
	hf_arena_reset(op->scratch);
	return weight;
}

static void queue_job(struct hf_operator *op, const char *key, enum weight weight)
{
	switch (weight) {
	case WEIGHT_NONE: break;
	case WEIGHT_ROUTINE: hf_operator_enqueue_routine(op, key); break;
	case WEIGHT_SUCCESS: hf_operator_enqueue_success(op, key); break;
	case WEIGHT_FULL: hf_operator_enqueue(op, key); break;
	}
}

static void take_object_change(void *arg, enum hf_cache_change change,
			       const struct hf_cache_entry *before,
			       const struct hf_cache_entry *now)
{
	struct hf_kind *kind = arg;
	const struct hf_cache_entry *both[] = {before, now};
	const char *last = NULL;
	enum weight weight;

	hf_kind_found(kind);
	if (change == HF_CACHE_SYNCED) {
		hf_operator_check_synced(kind->op);
		return;
	}
	if (kind == &kind->op->pods && kind->op->facts.history != NULL)
		hf_pod_history_changed(kind->op->facts.history, before, now);
	weight = weigh_change(kind, before == NULL ? NULL : before->view,
			      now == NULL ? NULL : now->view);
	for (size_t i = 0; i < HF_ARRAY_LEN(both); i++) {
		const struct hf_view *view = both[i] == NULL ? NULL : both[i]->view;
		const char *key = view == NULL || view->controller_uid == NULL
					  ? NULL
					  : hf_map_get(kind->op->job_keys, view->controller_uid);

		if (key != NULL && key != last) {
			queue_job(kind->op, key, weight);
			tell_seen(kind->op, key);
		}
		if (view != NULL && key == NULL && weight != WEIGHT_NONE)
			hf_operator_enqueue_by_name(kind->op, both[i]->ns, both[i]->name);
		last = key;
	}
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

/* Read an extra object for the cache.  Most ConfigMaps of a cluster belong to no job; of those only
 * the name is kept. */
static void *decode_extra(void *arg, struct hf_doc *doc)
{
	const struct hf_kind *kind = arg;
	struct hf_view *view = hf_view_of_extra(doc, kind->extra, kind->op->scratch);

	hf_doc_drop_tree(doc);
	hf_arena_reset(kind->op->scratch);
	return view;
}

static const char *index_by_controller(const struct hf_cache_entry *entry)
{
	return ((const struct hf_view *)entry->view)->controller_uid;
}

/* Index pods by node.  Pods without a controller belong to no job and are left out. */
static const char *index_by_node(const struct hf_cache_entry *entry)
{
	const struct hf_view *view = entry->view;

	return view->controller_uid == NULL || hf_str_is_empty(view->node) ? NULL : view->node;
}

/* --- the caches ------------------------------------------------------------------------------- */

static void take_reply(void *arg, const struct hf_reply *reply)
{
	hf_operator_heard(((const struct hf_kind *)arg)->op, reply);
}

static void take_problem(void *arg, int code, const char *message)
{
	struct hf_kind *kind = arg;

	if (kind->framework != NULL) {
		hf_kind_problem(kind, code, message);
		/* Nothing waits for the jobs of a missing kind. */
		hf_companions_wake(kind->op);
	} else if (kind == hf_groups_kind(kind->op)) {
		hf_groups_problem(kind, code, message);
	} else {
		hf_operator_problem(kind->op, kind->resource->plural, code, message);
	}
}

static void create_cache(struct hf_operator *op, struct hf_kind *kind,
			 const struct hf_resource *resource,
			 void *(*decode)(void *arg, struct hf_doc *doc))
{
	bool is_job = kind->framework != NULL;
	struct hf_cache_options options = {
		.loop = op->loop,
		.store = op->store,
		.resource = resource,
		.ns = op->ns,
		.seed = op->options.seed ^ hf_hash_str(resource->plural),
		.keep_docs = is_job,
		.changed = is_job ? take_job_change : take_object_change,
		.problem = take_problem,
		.heard = take_reply,
		.arg = kind,
	};

	if (is_job) {
		options.trim = trim_job;
	} else {
		options.decode = decode;
		options.view_free = hf_view_unref;
		options.index_key[HF_PODS_BY_OWNER] = index_by_controller;
		if (resource == &hf_pods && (op->options.watch_nodes || op->options.watch_agents))
			options.index_key[HF_PODS_BY_NODE] = index_by_node;
	}
	kind->op = op;
	kind->resource = resource;
	kind->cache = hf_cache_create(&options);
}

void hf_watch_create_jobs(struct hf_operator *op, struct hf_kind *kind,
			  const struct hf_framework *framework, const struct hf_resource *resource)
{
	kind->framework = framework;
	kind->failed_at = HF_TIME_NONE;
	create_cache(op, kind, resource, NULL);
}

void hf_watch_create_objects(struct hf_operator *op)
{
	create_cache(op, &op->pods, &hf_pods, decode_pod);
	create_cache(op, &op->services, &hf_services, decode_service);
	for (size_t i = 0; i < HF_EXTRA_KINDS; i++) {
		op->extras[i].extra = (enum hf_extra_kind)i;
		create_cache(op, &op->extras[i], hf_extra_resource((enum hf_extra_kind)i),
			     decode_extra);
	}
}
