/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/operator_internal.h"

#include "api/pod.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "core/names.h"

#include <stdlib.h>
#include <string.h>

/* --- views: everything of an object that a step may ask for, in one block ---------------- */

/* Strings behind the structs.  The first walk measures (at == NULL), the second copies. */
struct packer {
	char *at;
	size_t size;
};

static const char *pack(struct packer *packer, const char *s)
{
	size_t size;
	char *start = packer->at;

	if (s == NULL)
		return NULL;
	size = strlen(s) + 1;
	packer->size += size;
	if (start == NULL)
		return NULL;
	memcpy(start, s, size);
	packer->at += size;
	return start;
}

static void pack_container(struct packer *packer, const struct hf_container_seen *from,
			   struct hf_container_seen *to)
{
	*to = *from;
	to->name = pack(packer, from->name);
	to->waiting_reason = pack(packer, from->waiting_reason);
	to->waiting_message = pack(packer, from->waiting_message);
	to->last_reason = pack(packer, from->last_reason);
	to->last_message = pack(packer, from->last_message);
	to->terminated_reason = pack(packer, from->terminated_reason);
}

static void pack_condition(struct packer *packer, const struct hf_pod_condition *from,
			   struct hf_pod_condition *to)
{
	to->type = pack(packer, from->type);
	to->status = pack(packer, from->status);
	to->reason = pack(packer, from->reason);
	to->message = pack(packer, from->message);
}

/* The lists behind the view; all NULL on the walk that measures. */
struct pod_lists {
	struct hf_container_seen *containers;
	struct hf_pod_condition *conditions;
	const char **claims, **finalizers;
};

static void pack_names(struct packer *packer, const char *const *from, size_t len, const char **to)
{
	for (size_t i = 0; i < len; i++) {
		const char *name = pack(packer, from[i]);

		if (to != NULL)
			to[i] = name;
	}
}

static void pack_pod(struct packer *packer, const struct hf_pod *from, struct hf_pod *to,
		     const struct pod_lists *lists)
{
	struct hf_container_seen container;
	struct hf_pod_condition condition;

	*to = *from;
	to->name = pack(packer, from->name);
	to->uid = pack(packer, from->uid);
	to->resource_version = pack(packer, from->resource_version);
	to->reason = pack(packer, from->reason);
	to->message = pack(packer, from->message);
	to->node = pack(packer, from->node);
	for (size_t i = 0; i < from->containers_len; i++)
		pack_container(packer, &from->containers[i],
			       lists->containers == NULL ? &container : &lists->containers[i]);
	for (size_t i = 0; i < from->conditions_len; i++)
		pack_condition(packer, &from->conditions[i],
			       lists->conditions == NULL ? &condition : &lists->conditions[i]);
	pack_names(packer, from->claims, from->claims_len, lists->claims);
	pack_names(packer, from->finalizers, from->finalizers_len, lists->finalizers);
	to->containers = lists->containers;
	to->conditions = lists->conditions;
	to->claims = lists->claims;
	to->finalizers = lists->finalizers;
}

struct hf_view *hf_view_of_pod(struct hf_doc *doc, struct hf_arena *scratch)
{
	struct packer packer = {0};
	struct pod_lists lists = {.containers = NULL};
	struct hf_view *view;
	struct hf_pod pod, sink;
	const char *uid = hf_pod_read(doc, NULL, scratch, &pod);
	size_t size;

	pack_pod(&packer, &pod, &sink, &lists);
	pack(&packer, uid);
	size = pod.containers_len * sizeof(*lists.containers) +
	       pod.conditions_len * sizeof(*lists.conditions) +
	       (pod.claims_len + pod.finalizers_len) * sizeof(*lists.claims);
	view = hf_xcalloc(1, sizeof(*view) + size + packer.size);
	lists.containers = (struct hf_container_seen *)(view + 1);
	lists.conditions = (struct hf_pod_condition *)(lists.containers + pod.containers_len);
	lists.claims = (const char **)(lists.conditions + pod.conditions_len);
	lists.finalizers = lists.claims + pod.claims_len;
	packer.at = (char *)(lists.finalizers + pod.finalizers_len);
	pack_pod(&packer, &pod, &view->pod, &lists);
	view->controller_uid = pack(&packer, uid);
	view->refs = 1;
	return view;
}

struct hf_view *hf_view_of_service(struct hf_doc *doc, struct hf_arena *scratch)
{
	struct hf_service_seen service;
	const char *uid = hf_service_read(doc, NULL, scratch, &service);
	struct packer packer = {0};
	struct hf_view *view = NULL;

	for (int walk = 0; walk < 2; walk++) {
		struct hf_view sink = {.refs = 1, .service = service};

		sink.service.name = pack(&packer, service.name);
		sink.service.uid = pack(&packer, service.uid);
		sink.service.resource_version = pack(&packer, service.resource_version);
		sink.controller_uid = pack(&packer, uid);
		if (walk == 0) {
			view = hf_xcalloc(1, sizeof(*view) + packer.size);
			packer.at = (char *)(view + 1);
		} else {
			*view = sink;
		}
	}
	return view;
}

struct hf_view *hf_view_ref(struct hf_view *view)
{
	view->refs++;
	return view;
}

void hf_view_unref(void *arg)
{
	struct hf_view *view = arg;

	if (view != NULL && --view->refs == 0)
		free(view);
}

void hf_views_release(struct hf_views *views)
{
	for (size_t i = 0; i < views->len; i++)
		hf_view_unref(views->items[i]);
	HF_VEC_RELEASE(views);
}

/* --- what a step sees -------------------------------------------------------------------- */

/* The objects of a job in one cache: those it controls, and strangers under its names. */
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

/* An object is looked up by each name the job may use: that finds strangers too, who have the
 * name but not our reference. */
static const struct hf_cache_entry *stranger(const struct hf_cache *cache, const struct hf_job *job,
					     const char *name)
{
	const struct hf_cache_entry *entry = hf_cache_get(cache, job->view->ns, name);
	const struct hf_view *view = entry == NULL ? NULL : entry->view;

	return view == NULL || hf_streq(view->controller_uid, job->view->uid) ? NULL : entry;
}

static void find(const struct hf_cache *cache, const struct hf_job *job, struct hf_arena *arena,
		 struct hf_views *views, struct found *ret_found)
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
		const char *type = job->framework->roles[role].name;

		for (int32_t i = 0; job->roles[role].present && i < job->roles[role].replicas;
		     i++) {
			const char *name = hf_replica_name(arena, job->view->name, type, i);

			e = stranger(cache, job, name);
			if (e != NULL)
				found_add(ret_found, views, e->view, false);
		}
	}
}

/* false: nothing is known of it. */
static bool see_node(const struct hf_observe_args *args, const char *name, struct hf_arena *arena,
		     struct hf_node_seen *ret_node)
{
	const struct hf_facts *facts = args->facts;
	const struct hf_moment moment = {.now = args->now, .mono = args->mono};

	if (facts != NULL && facts->nodes != NULL) {
		if (!hf_nodes_see(facts->nodes, name, &moment, arena, ret_node))
			return false;
		hf_asks_see_node(facts->asks, &moment, ret_node);
		return true;
	}
	*ret_node = (struct hf_node_seen){
		.name = name,
		.since = args->now,
		.confirmed_at = HF_TIME_NONE,
		.lease_read_at = HF_TIME_NONE,
		.lease_since = HF_TIME_NONE,
		.renewed_at = args->now,
		.reported_at = HF_TIME_NONE,
		.zone_nodes = 1,
	};
	return true;
}

static void find_nodes(const struct hf_observe_args *args, const struct hf_pod *pods, size_t len,
		       struct hf_arena *arena, struct hf_observed *seen)
{
	struct hf_node_seen *nodes = HF_ARENA_ARRAY(arena, struct hf_node_seen, len);
	/* Names come from our own pods and a table lives one step: no seed is needed. */
	struct hf_map *known = hf_map_create(len + 1, 0, NULL);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		const char *name = pods[i].node;

		if (hf_str_is_empty(name) || !pods[i].owned || hf_map_has(known, name))
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

static void find_facts(const struct hf_observe_args *args, struct hf_pod *pods, size_t len,
		       struct hf_arena *arena, struct hf_observed *seen)
{
	const struct hf_facts *facts = args->facts;
	const struct hf_moment moment = {.now = args->now, .mono = args->mono};

	find_nodes(args, pods, len, arena, seen);
	if (facts == NULL || facts->nodes == NULL)
		return;
	for (size_t i = 0; i < len; i++)
		pods[i].news_at = hf_moment_at(&moment, pods[i].news_at);
	hf_traces_see(facts->traces, args->job->uid, &moment, arena, seen);
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
	find(args->pods, &job, arena, views, &found);
	pods = HF_ARENA_ARRAY(arena, struct hf_pod, found.len);
	for (size_t i = 0; i < found.len; i++) {
		pods[i] = found.views[i]->pod;
		pods[i].owned = found.owned[i];
	}
	seen.pods = pods;
	seen.pods_len = found.len;
	find(args->services, &job, arena, views, &found);
	services = HF_ARENA_ARRAY(arena, struct hf_service_seen, found.len);
	for (size_t i = 0; i < found.len; i++) {
		services[i] = found.views[i]->service;
		services[i].owned = found.owned[i];
	}
	seen.services = services;
	seen.services_len = found.len;
	find_facts(args, pods, seen.pods_len, arena, &seen);
	*ret_seen = seen;
}
