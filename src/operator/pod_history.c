/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "framework/framework.h"
#include "operator/facts_internal.h"
#include "operator/operator_internal.h"

#include <stdlib.h>
#include <string.h>

/*
 * Facts about pods that no present object shows: when a kubelet last wrote to a pod, which names
 * were freed a moment ago, and the last state of a pod that was being deleted.
 *
 * Input: changes of the cache of pods.  Output: times in the new views, and the deleted pods of a
 * job for a step.
 *
 * A deleted pod is remembered for HF_POD_HISTORY_KEPT.  If the table is full, all pods are
 * forgotten, and the watch counts as begun then.
 *
 * A pod that belongs to no present job is remembered if a taint's timer may hold its name: the next
 * job of that name waits like the job of the deleted pod would.
 */

struct grave {
	hf_time at; /* monotonic */
	bool no_execute;
	char *uid;
	/* the pod's node; NULL: the pod was on no node, so no taint can have a timer for it */
	char *node;
	/* the pod's last state, marked for deletion; NULL: unmarked, or of another owner */
	struct hf_view *last;
};

struct hf_pod_history {
	struct hf_operator *op;
	struct hf_map *jobs; /* job UID → struct hf_map: pod name → struct grave, oldest first */
	/* "namespace/pod" → struct grave, oldest first: the pods of no present job */
	struct hf_map *orphans;
	size_t len;     /* of all tables */
	uint64_t lists; /* the number of lists of the cache of pods, when last looked at */
	/* monotonic: since when the operator has seen every deletion of a pod */
	hf_time watching;
};

/* --- signs of life ---------------------------------------------------------------------------- */

static bool is_ready(const struct hf_pod *pod)
{
	for (size_t i = 0; i < pod->conditions_len; i++)
		if (hf_streq(pod->conditions[i].type, "Ready"))
			return hf_streq(pod->conditions[i].status, "True");
	return false;
}

static bool same_container(const struct hf_container_seen *a, const struct hf_container_seen *b)
{
	return hf_streq(a->name, b->name) && a->init == b->init && a->phase == b->phase &&
	       a->restart_count == b->restart_count && a->exit_code == b->exit_code &&
	       a->signal == b->signal && a->started_at == b->started_at &&
	       a->finished_at == b->finished_at && hf_streq(a->waiting_reason, b->waiting_reason) &&
	       hf_streq(a->terminated_reason, b->terminated_reason);
}

/* The next device, from index `at` on, that the kubelet calls unhealthy; NULL: no further one. */
static const struct hf_device_seen *find_unhealthy(const struct hf_pod *pod, size_t *at)
{
	while (*at < pod->devices_len) {
		const struct hf_device_seen *device = &pod->devices[(*at)++];

		if (!device->agent)
			return device;
	}
	return NULL;
}

static bool same_unwell(const struct hf_pod *a, const struct hf_pod *b)
{
	size_t at_a = 0, at_b = 0;

	for (;;) {
		const struct hf_device_seen *one = find_unhealthy(a, &at_a),
					    *other = find_unhealthy(b, &at_b);

		if (one == NULL || other == NULL)
			return one == other;
		if (!hf_streq(one->id, other->id))
			return false;
	}
}

/* The kubelet wrote to the pod's status.  Only the kubelet writes container statuses and
 * Ready=True. Controllers also write Ready=False, DisruptionTarget and phase Failed, for a node
 * that is dead. */
static bool kubelet_wrote(const struct hf_pod *was, const struct hf_pod *now)
{
	if (was->containers_len != now->containers_len || (is_ready(now) && !is_ready(was)) ||
	    !same_unwell(was, now))
		return true;
	for (size_t i = 0; i < now->containers_len; i++)
		if (!same_container(&was->containers[i], &now->containers[i]))
			return true;
	return false;
}

/* The main container that terminated last; NULL: no main container has terminated. */
static const struct hf_container_seen *last_end(const struct hf_pod *pod)
{
	const struct hf_container_seen *last = NULL;

	for (size_t i = 0; i < pod->containers_len; i++) {
		const struct hf_container_seen *seen = &pod->containers[i];

		if (!seen->init && seen->phase == HF_CONTAINER_TERMINATED &&
		    (last == NULL || seen->finished_at > last->finished_at))
			last = seen;
	}
	return last;
}

/*
 * The rank's own container, if it has terminated; NULL: it has not, or the pod belongs to no kind
 * of job.
 *
 * If no container has the kind's name, the container that ended last is taken: only core knows the
 * template.  So the wait that core measures from this end is never too short.
 */
static const struct hf_container_seen *own_end(const struct hf_pod *pod)
{
	const struct hf_framework *kind = hf_framework_by_kind("kubeflow.org/v1", pod->maker);
	const struct hf_container_seen *own =
		kind == NULL ? NULL : hf_pod_find_container(pod, kind->container_name);

	if (kind != NULL && own == NULL)
		return last_end(pod);
	return own != NULL && own->phase == HF_CONTAINER_TERMINATED ? own : NULL;
}

static bool same_end(const struct hf_container_seen *a, const struct hf_container_seen *b)
{
	return a != NULL && a->restart_count == b->restart_count &&
	       a->finished_at == b->finished_at;
}

/* --- names that were freed -------------------------------------------------------------------- */

static void grave_free(void *arg)
{
	struct grave *grave = arg;

	free(grave->uid);
	free(grave->node);
	hf_view_unref(grave->last);
	free(grave);
}

static void graves_free(void *arg)
{
	hf_map_destroy(arg);
}

static void forget_all(struct hf_pod_history *history)
{
	hf_map_clear(history->jobs);
	hf_map_clear(history->orphans);
	history->len = 0;
	history->watching = hf_loop_mono(history->op->loop);
}

static struct hf_map *graves_of(struct hf_pod_history *history, const char *uid)
{
	struct hf_map *graves = hf_map_get(history->jobs, uid);

	if (graves != NULL)
		return graves;
	graves = hf_map_create(HF_POD_HISTORY_MAX, history->op->options.seed, grave_free);
	/* A table is removed with its last pod, and the pods are counted, so there is room. */
	bool put = hf_map_put(history->jobs, uid, graves);

	hf_assert(put);
	return graves;
}

static void expire_table(struct hf_pod_history *history, struct hf_map *graves)
{
	hf_time now = hf_loop_mono(history->op->loop);
	const char *name;
	void *value;

	for (size_t it = 0; hf_map_next(graves, &it, &name, &value);) {
		const struct grave *grave = value;

		if (now - grave->at < HF_POD_HISTORY_KEPT)
			break;
		hf_map_remove(graves, name);
		history->len--;
	}
}

static void expire_old(struct hf_pod_history *history, const char *uid)
{
	struct hf_map *graves = hf_map_get(history->jobs, uid);

	expire_table(history, history->orphans);
	if (graves == NULL)
		return;
	expire_table(history, graves);
	if (hf_map_len(graves) == 0)
		hf_map_remove(history->jobs, uid);
}

struct burial {
	struct hf_pod_history *history;
	const struct hf_cache_entry *pod;
	struct hf_view *last; /* as in struct grave, but borrowed */
	bool buried;          /* for a present job */
};

/* Taint eviction may have a timer for the deleted pod.  Asked again at each look, because the event
 * about the taint may come after the pod's. */
static bool has_timer(const struct hf_pod_history *history, const struct grave *grave)
{
	const struct hf_nodes *nodes = history->op->facts.nodes;

	return grave->no_execute ||
	       (nodes != NULL && grave->node != NULL && hf_nodes_evicts(nodes, grave->node));
}

/* There is room in all tables. */
static void make_room(struct hf_pod_history *history, const char *uid)
{
	expire_old(history, uid);
	if (history->len >= HF_POD_HISTORY_MAX)
		forget_all(history);
}

/* If several pods with the same name were deleted, only the last deletion is remembered. It moves to
 * the end of the list. */
static void put_grave(struct hf_pod_history *history, struct hf_map *graves, const char *name,
		      struct grave *grave)
{
	if (hf_map_remove(graves, name))
		history->len--;
	bool put = hf_map_put(graves, name, grave);

	hf_assert(put);
	history->len++;
}

static struct grave *dig_grave(const struct burial *burial)
{
	struct hf_pod_history *history = burial->history;
	const struct hf_view *view = burial->pod->view;
	struct grave *grave = hf_xcalloc(1, sizeof(*grave));

	grave->at = hf_loop_mono(history->op->loop);
	grave->uid = hf_xstrdup(hf_str_or(burial->pod->uid, ""));
	grave->node = hf_str_is_empty(view->node) ? NULL : hf_xstrdup(view->node);
	grave->no_execute = has_timer(history, grave);
	grave->last = burial->last == NULL ? NULL : hf_view_ref(burial->last);
	return grave;
}

static void bury_for(struct burial *burial, const char *uid)
{
	struct hf_pod_history *history = burial->history;

	make_room(history, uid);
	put_grave(history, graves_of(history, uid), burial->pod->name, dig_grave(burial));
	burial->buried = true;
}

static void bury_stranger(void *arg, const struct hf_kind *kind, const struct hf_cache_entry *job)
{
	(void)kind;
	bury_for(arg, job->uid);
}

/* A grave without the pod's last state, which concerns the job of the pod alone. */
static struct grave *copy_grave(const struct grave *grave)
{
	struct grave *copy = hf_xcalloc(1, sizeof(*copy));

	*copy = *grave;
	copy->uid = hf_xstrdup(grave->uid);
	copy->node = hf_xstrdup(grave->node);
	copy->last = NULL;
	return copy;
}

/* Keeps the name for the next job, if a taint's timer may hold it and there is room. */
static void keep_for_next_job(struct hf_pod_history *history, const char *ns, const char *name,
			      const struct grave *grave)
{
	HF_AUTOFREE char *key = NULL;

	if (!has_timer(history, grave) || history->len >= HF_POD_HISTORY_MAX)
		return;
	key = hf_xasprintf("%s/%s", ns, name);
	put_grave(history, history->orphans, key, copy_grave(grave));
}

static void bury_orphan(const struct burial *burial)
{
	struct grave *grave = dig_grave(burial);

	make_room(burial->history, "");
	keep_for_next_job(burial->history, burial->pod->ns, burial->pod->name, grave);
	grave_free(grave);
}

static bool is_marked(struct hf_pod_history *history, const struct hf_view *view)
{
	struct hf_pod pod;

	hf_view_pod(view, history->op->scratch, &pod);
	hf_arena_reset(history->op->scratch);
	return pod.deletion_time != HF_TIME_NONE;
}

/* Remember a deleted pod.  A taint's timer knows only the name of a pod.  So a pod of another owner
 * matters, too, to the job that waits for its name. */
static void remember_deleted(struct hf_pod_history *history, const struct hf_cache_entry *entry)
{
	struct burial burial = {.history = history, .pod = entry};
	struct hf_view *view = entry->view;

	if (view->controller_uid != NULL &&
	    hf_map_get(history->op->job_keys, view->controller_uid) != NULL) {
		burial.last = is_marked(history, view) ? view : NULL;
		if (burial.last != NULL || !hf_str_is_empty(view->node))
			bury_for(&burial, view->controller_uid);
	} else if (!hf_str_is_empty(view->node)) {
		hf_operator_each_by_name(history->op, entry->ns, entry->name, bury_stranger,
					 &burial);
		if (!burial.buried)
			bury_orphan(&burial);
	}
}

void hf_pod_history_changed(struct hf_pod_history *history, const struct hf_cache_entry *before,
			    const struct hf_cache_entry *now)
{
	const struct hf_view *was = before == NULL ? NULL : before->view;
	struct hf_view *view = now == NULL ? NULL : now->view;

	struct hf_arena *scratch = history->op->scratch;
	struct hf_pod old = {.containers_len = 0}, new;
	const struct hf_container_seen *ended;
	size_t at = 0;

	if (view == NULL) {
		remember_deleted(history, before);
		return;
	}
	hf_view_pod(view, scratch, &new);
	if (was != NULL)
		hf_view_pod(was, scratch, &old);
	/* The end of the own container is timed from when this process saw it: after a restart of
	 * the operator the wait begins anew. */
	ended = own_end(&new);
	if (ended != NULL)
		view->own_ended_at = same_end(own_end(&old), ended)
					     ? was->own_ended_at
					     : hf_loop_mono(history->op->loop);
	/* If Nodes are not watched, the kubelet runs in this process. */
	if (history->op->facts.nodes == NULL) {
		hf_arena_reset(scratch);
		return;
	}
	/* If the kubelet already called the device unhealthy at the start, the time since then
	 * counts. */
	if (find_unhealthy(&new, &at) != NULL)
		view->unwell_at = was != NULL && was->unwell_at != HF_TIME_NONE
					  ? was->unwell_at
					  : hf_loop_mono(history->op->loop);
	if (was != NULL)
		view->news_at =
			kubelet_wrote(&old, &new) ? hf_loop_mono(history->op->loop) : was->news_at;
	hf_arena_reset(scratch);
}

void hf_pod_history_synced(struct hf_pod_history *history)
{
	history->lists = hf_cache_stats(history->op->pods.cache)->relists;
	history->watching = hf_loop_mono(history->op->loop);
}

/* The last state of a deleted pod of this job; NULL: unknown. */
static const struct hf_pod *last_of(const struct grave *grave, const struct hf_moment *moment,
				    struct hf_arena *arena, struct hf_views *views)
{
	struct hf_pod *pod;

	if (grave->last == NULL)
		return NULL;
	if (views != NULL) {
		bool pushed = HF_VEC_PUSH(views, grave->last);

		hf_assert(pushed);
		hf_view_ref(grave->last);
	}
	pod = HF_ARENA_NEW(arena, struct hf_pod);
	hf_view_pod(grave->last, arena, pod);
	pod->owned = true;
	pod->news_at = hf_moment_at(moment, pod->news_at);
	pod->unwell_at = hf_moment_at(moment, pod->unwell_at);
	pod->own_ended_at = hf_moment_at(moment, pod->own_ended_at);
	return pod;
}

void hf_pod_history_see(struct hf_pod_history *history, const char *uid,
			const struct hf_moment *moment, struct hf_arena *arena,
			struct hf_views *views, struct hf_observed *seen)
{
	struct hf_gone_seen *gone;
	struct hf_map *graves;
	const char *name;
	void *value;

	/* After a gap of the watch, pods may have come and gone unseen, so the history begins
	 * anew. */
	if (history->lists != hf_cache_stats(history->op->pods.cache)->relists)
		hf_pod_history_synced(history);
	if (history->op->facts.nodes != NULL)
		seen->watched_since = hf_moment_at(moment, history->watching);
	expire_old(history, uid);
	graves = hf_map_get(history->jobs, uid);
	if (graves == NULL)
		return;
	gone = HF_ARENA_ARRAY(arena, struct hf_gone_seen, hf_map_len(graves));
	for (size_t it = 0; hf_map_next(graves, &it, &name, &value);) {
		const struct grave *grave = value;

		gone[seen->gone_len++] =
			(struct hf_gone_seen){.name = hf_arena_strdup(arena, name),
					      .uid = hf_arena_strdup(arena, grave->uid),
					      .at = hf_moment_at(moment, grave->at),
					      .no_execute = has_timer(history, grave),
					      .last = last_of(grave, moment, arena, views)};
	}
	seen->gone = gone;
}

void hf_pod_history_begin(struct hf_pod_history *history, const struct hf_cache_entry *job)
{
	HF_AUTOFREE char *prefix = NULL;
	const char *key;
	void *value;

	make_room(history, job->uid);
	if (hf_map_len(history->orphans) == 0)
		return;
	prefix = hf_xasprintf("%s/%s-", job->ns, job->name);
	/* The names stay in the table: a job of another kind may use them too. */
	for (size_t it = 0; hf_map_next(history->orphans, &it, &key, &value);)
		if (hf_str_has_prefix(key, prefix) && history->len < HF_POD_HISTORY_MAX)
			put_grave(history, graves_of(history, job->uid), key + strlen(job->ns) + 1,
				  copy_grave(value));
}

void hf_pod_history_end(struct hf_pod_history *history, const struct hf_cache_entry *job)
{
	const struct hf_map *graves = hf_map_get(history->jobs, job->uid);
	const char *name;
	void *value;

	if (graves == NULL)
		return;
	history->len -= hf_map_len(graves);
	for (size_t it = 0; hf_map_next(graves, &it, &name, &value);)
		keep_for_next_job(history, job->ns, name, value);
	hf_map_remove(history->jobs, job->uid);
}

/* --- life ------------------------------------------------------------------------------------- */

struct hf_pod_history *hf_pod_history_create(struct hf_operator *op)
{
	struct hf_pod_history *history = hf_xcalloc(1, sizeof(*history));

	history->op = op;
	history->jobs = hf_map_create(HF_POD_HISTORY_MAX, op->options.seed, graves_free);
	history->orphans = hf_map_create(HF_POD_HISTORY_MAX, op->options.seed, grave_free);
	return history;
}

struct hf_pod_history *hf_pod_history_destroy(struct hf_pod_history *history)
{
	if (history == NULL)
		return NULL;
	hf_map_destroy(history->jobs);
	hf_map_destroy(history->orphans);
	free(history);
	return NULL;
}
