/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/operator_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "core/model/names.h"

#include <stdlib.h>
#include <string.h>

/*
 * Collects what a step sees of one job: its pods and services, objects of other owners under names
 * that the job needs, the nodes of the pods, and facts about pods that are gone.
 *
 * Input: the caches and the facts of nodes.c, asks.c, devices.c and pod_history.c.  Output: struct
 * hf_observed in the arena of the pass. hf_view_pod and hf_view_service unpack the views of the
 * caches; the views stay referenced until the pass ends.
 */

/* --- what a step sees ------------------------------------------------------------------------- */

/* The objects of a job in one cache: objects that the job owns, and objects of other owners with
 * names that the job needs. */
struct found {
	struct hf_view **views;
	bool *owned;
	size_t len;
};

static void found_add(struct found *found, struct hf_views *views, struct hf_view *view, bool owned)
{
	if (views != NULL) {
		bool pushed = HF_VEC_PUSH(views, view);

		hf_assert(pushed);
		hf_view_ref(view);
	}
	found->views[found->len] = view;
	found->owned[found->len++] = owned;
}

/* Look up a name that the job may use.  The result is an object of another owner with that name;
 * NULL: none. */
static const struct hf_cache_entry *add_stranger(const struct hf_cache *cache,
						 const struct hf_job *job, const char *name)
{
	const struct hf_cache_entry *entry = hf_cache_get(cache, job->view->ns, name);
	const struct hf_view *view = entry == NULL ? NULL : entry->view;

	return view == NULL || hf_streq(view->controller_uid, job->view->uid) ? NULL : entry;
}

static void find_objects(const struct hf_cache *cache, const struct hf_job *job,
			 struct hf_arena *arena, struct hf_views *views, struct found *ret_found)
{
	const struct hf_cache_entry *e;
	size_t n = (size_t)job->ranks;

	for (e = hf_cache_first(cache, 0, job->view->uid); e; e = hf_cache_after(cache, 0, e))
		n++;
	ret_found->views = HF_ARENA_ARRAY(arena, struct hf_view *, n);
	ret_found->owned = HF_ARENA_ARRAY(arena, bool, n);
	ret_found->len = 0;
	for (e = hf_cache_first(cache, 0, job->view->uid); e; e = hf_cache_after(cache, 0, e))
		if (hf_streq(e->ns, job->view->ns))
			found_add(ret_found, views, e->view, true);
	for (int role = 0; role < job->framework->roles_len; role++) {
		for (int32_t i = 0; job->roles[role].present && i < job->roles[role].replicas;
		     i++) {
			const char *name = hf_framework_pod_name(job->framework, role, arena,
								 job->view->name, i);

			e = add_stranger(cache, job, name);
			if (e != NULL)
				found_add(ret_found, views, e->view, false);
		}
	}
}

/* Makes the step's view of the node. Returns false if nothing is known of the node. */
static bool see_node(const struct hf_observe_args *args, const char *name, struct hf_arena *arena,
		     struct hf_node_seen *ret_node)
{
	const struct hf_facts *facts = args->facts;
	const struct hf_moment moment = {.now = args->now, .mono = args->mono};

	if (facts != NULL && facts->nodes != NULL) {
		if (!hf_nodes_see(facts->nodes, name, &moment, arena, ret_node))
			return false;
		hf_asks_see_node(facts->asks, &moment, ret_node);
		hf_devices_see_node(facts->devices, &moment, ret_node);
		return true;
	}
	hf_node_seen_init(ret_node, name, HF_NODE_READY, args->now);
	ret_node->renewed_at = args->now;
	ret_node->zone_nodes = 1;
	if (facts != NULL && facts->devices != NULL)
		hf_devices_see_node(facts->devices, &moment, ret_node);
	return true;
}

/* Tells whether the step needs the facts about the pod's node: the pod is the job's, or an earlier
 * job of the same name left it. */
static bool is_looked_after(const struct hf_observe_args *args, const struct hf_pod *pod)
{
	return !hf_str_is_empty(pod->node) && (pod->owned || hf_pod_is_inherited(args->job, pod));
}

/* Find the nodes of present pods, and of pods that were just deleted. */
static void find_nodes(const struct hf_observe_args *args, struct hf_arena *arena,
		       struct hf_observed *seen)
{
	size_t len = seen->pods_len + seen->gone_len;
	struct hf_node_seen *nodes = HF_ARENA_ARRAY(arena, struct hf_node_seen, len);
	/* Only names of the job's own pods come into the table, and it lives for one step, so it
	 * needs no secret seed. */
	struct hf_map *known = hf_map_create(len + 1, 0, NULL);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		const struct hf_pod *pod =
			i < seen->pods_len ? &seen->pods[i] : seen->gone[i - seen->pods_len].last;
		const char *name = pod == NULL ? NULL : pod->node;

		if (pod == NULL || !is_looked_after(args, pod) || hf_map_has(known, name))
			continue;
		bool put = hf_map_put(known, name, &nodes[n]);

		hf_assert(put);
		if (see_node(args, name, arena, &nodes[n]))
			n++;
	}
	hf_map_destroy(known);
	seen->nodes = nodes;
	seen->nodes_len = n;
}

static void find_facts(const struct hf_observe_args *args, struct hf_pod *pods,
		       struct hf_arena *arena, struct hf_views *views, struct hf_observed *seen)
{
	const struct hf_facts *facts = args->facts;
	const struct hf_moment moment = {.now = args->now, .mono = args->mono};
	size_t len = seen->pods_len;

	if (facts != NULL && facts->history != NULL)
		hf_pod_history_see(facts->history, args->job->uid, &moment, arena, views, seen);
	find_nodes(args, arena, seen);
	for (size_t i = 0; i < len; i++)
		pods[i].own_ended_at = hf_moment_at(&moment, pods[i].own_ended_at);
	if (facts == NULL || facts->devices == NULL)
		return;
	for (size_t i = 0; i < len; i++) {
		pods[i].news_at = hf_moment_at(&moment, pods[i].news_at);
		pods[i].unwell_at = hf_moment_at(&moment, pods[i].unwell_at);
	}
	for (size_t i = 0; i < len; i++)
		if (pods[i].owned)
			hf_devices_see_pod(facts->devices, args->job, arena, &pods[i]);
	hf_devices_see_ranks(facts->devices, &moment, pods, len, arena);
	hf_devices_see_records(facts->devices, &moment, args->job, arena, seen);
	if (facts->asks != NULL)
		hf_asks_see_claims(facts->asks, args->key, arena, seen);
}

void hf_observe(const struct hf_observe_args *args, struct hf_arena *arena, struct hf_views *views,
		struct hf_observed *ret_seen)
{
	struct hf_observed seen = {0};
	struct hf_service_seen *services;
	struct hf_pod *pods;
	struct found found;
	struct hf_job job;

	hf_job_defaults(args->job, arena, &job);
	find_objects(args->pods, &job, arena, views, &found);
	pods = HF_ARENA_ARRAY(arena, struct hf_pod, found.len);
	for (size_t i = 0; i < found.len; i++) {
		hf_view_pod(found.views[i], arena, &pods[i]);
		pods[i].owned = found.owned[i];
	}
	seen.pods = pods;
	seen.pods_len = found.len;
	find_objects(args->services, &job, arena, views, &found);
	services = HF_ARENA_ARRAY(arena, struct hf_service_seen, found.len);
	for (size_t i = 0; i < found.len; i++) {
		hf_view_service(found.views[i], &services[i]);
		services[i].owned = found.owned[i];
	}
	seen.services = services;
	seen.services_len = found.len;
	if (hf_extra_kinds(job.framework, job.settings) != 0)
		hf_extras_see(args, &job, arena, views, &seen);
	find_facts(args, pods, arena, views, &seen);
	*ret_seen = seen;
}
