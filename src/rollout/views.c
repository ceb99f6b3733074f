/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "rollout/rollout_internal.h"

#include "api/device_health.h"
#include "api/node_locks.h"
#include "api/remediation.h"
#include "base/mem.h"
#include "base/str.h"
#include "fleet/impact.h"
#include "health/fleet.h"

#include <stdlib.h>

/*
 * What the caches keep of DeviceRollouts, Nodes and DeviceHealth objects.
 * Input: documents. Output: views. Invariant: a view owns all its memory.
 */

#define VIEW_MAX ((size_t)4 << 20)

void *hf_ro_read_object(void *arg, struct hf_doc *doc)
{
	struct ro_object *view = hf_xcalloc(1, sizeof(*view));

	(void)arg;
	view->arena = hf_arena_create(VIEW_MAX);
	view->readable = hf_rollout_read(doc, view->arena, &view->r, NULL) == 0 &&
			 hf_rollout_state_of(view->r.status.phase, &view->state);
	view->usable = hf_rollout_spec_read(doc, view->arena, &view->spec, NULL) == 0;
	return view;
}

void hf_ro_free_object(void *arg)
{
	struct ro_object *view = arg;

	hf_arena_destroy(view->arena);
	free(view);
}

static const char *copy_text(struct hf_arena *arena, const char *text)
{
	return text == NULL ? NULL : hf_arena_strdup(arena, text);
}

/* Taints of a node that an autoscaler removes. */
static bool has_leaving_taint(const struct hf_node_marks *marks)
{
	for (size_t i = 0; i < marks->taints.len; i++)
		if (hf_streq(marks->taints.items[i].key, "ToBeDeletedByClusterAutoscaler") ||
		    hf_streq(marks->taints.items[i].key, "karpenter.sh/disrupted"))
			return true;
	return false;
}

static struct hf_json *copy_marks(const struct hf_json *annotations)
{
	struct hf_json *marks = hf_json_object(), *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(annotations, it, &key, &value));)
		if (hf_str_has_prefix(key, HF_ROLLOUT_MARK_PREFIX))
			hf_json_set(marks, key, hf_json_copy(value));
	return marks;
}

void *hf_ro_read_node(void *arg, struct hf_doc *doc)
{
	HF_AUTO_ARENA scratch = hf_arena_create(VIEW_MAX);
	struct ro_node *view = hf_xcalloc(1, sizeof(*view));
	struct hf_node_marks marks;
	HF_AUTO_JSON metadata = hf_doc_member_json(doc, "metadata");
	HF_AUTO_JSON status = hf_json_object();

	(void)arg;
	hf_node_marks_read(doc, scratch, &marks);
	view->arena = hf_arena_create(VIEW_MAX);
	view->labels = hf_json_copy(hf_json_get(metadata, "labels"));
	view->created_at = marks.created_at;
	view->ready = marks.ready;
	view->unready_at = HF_TIME_NONE;
	view->unschedulable = marks.unschedulable;
	view->held = marks.held;
	view->paused = marks.paused;
	view->quarantined = hf_node_has_quarantine_taint(&marks);
	view->owner = copy_text(view->arena, hf_json_path_str(metadata, "annotations",
							      HF_ROLLOUT_ANNOTATION, NULL));
	hf_json_set(status, "status", hf_doc_member_json(doc, "status"));
	view->work = copy_text(view->arena, hf_node_maintenance_message(status));
	view->attended = marks.unschedulable || has_leaving_taint(&marks) ||
			 hf_json_get(metadata, "deletionTimestamp") != NULL ||
			 hf_node_is_in_maintenance(status) ||
			 hf_node_find_maintenance(status) != NULL;
	view->alone_at = HF_TIME_NONE;
	view->marks = copy_marks(hf_json_get(metadata, "annotations"));
	return view;
}

void hf_ro_free_node(void *arg)
{
	struct ro_node *view = arg;

	hf_json_unref(view->labels);
	hf_json_unref(view->marks);
	hf_arena_destroy(view->arena);
	free(view);
}

static void read_device(struct ro_health *view, const struct hf_device_report *device)
{
	view->devices += !hf_str_is_empty(device->id);
	if (view->sick == NULL && hf_health_is_out(hf_impact_state(device->state))) {
		view->sick = copy_text(view->arena,
				       hf_str_or(device->uuid, hf_str_or(device->id, "node")));
		view->sick_class = copy_text(view->arena, hf_str_or(device->cls, device->state));
		view->sick_at = device->since;
	}
	if (view->unknown == NULL && hf_impact_is_unknown_gpu(device))
		view->unknown = copy_text(view->arena, device->uuid);
	for (size_t k = 0; k < device->faults.len && view->faults_len < RO_FAULTS_MAX; k++)
		if (hf_impact_is_of_device(&device->faults.items[k]))
			view->faults[view->faults_len++] = device->faults.items[k].first;
}

static void read_ranks(struct ro_health *view, const struct hf_device_health *health)
{
	view->ranks = HF_ARENA_ARRAY(view->arena, struct ro_rank, RO_RANKS_MAX);
	for (size_t i = 0; i < health->ranks.len && view->ranks_len < RO_RANKS_MAX; i++) {
		const struct hf_rank_report *rank = &health->ranks.items[i];

		if (rank->own_us <= 0 || !hf_streq(rank->state, HF_RANK_ADVANCING))
			continue;
		view->ranks[view->ranks_len++] =
			(struct ro_rank){.ns = copy_text(view->arena, rank->ns),
					 .pod = copy_text(view->arena, rank->pod),
					 .uid = copy_text(view->arena, rank->uid),
					 .group = copy_text(view->arena, rank->group),
					 .own_us = rank->own_us};
	}
}

void *hf_ro_read_health(void *arg, struct hf_doc *doc)
{
	HF_AUTO_ARENA scratch = hf_arena_create(VIEW_MAX);
	struct ro_health *view = hf_xcalloc(1, sizeof(*view));
	struct hf_device_health health;

	(void)arg;
	hf_device_health_read(doc, scratch, &health);
	view->arena = hf_arena_create(VIEW_MAX);
	view->observed_at = health.observed_at;
	view->seen_at = view->heard_at = view->unknown_at = HF_TIME_NONE;
	for (size_t i = 0; i < health.devices.len; i++)
		read_device(view, &health.devices.items[i]);
	read_ranks(view, &health);
	return view;
}

void hf_ro_free_health(void *arg)
{
	struct ro_health *view = arg;

	hf_arena_destroy(view->arena);
	free(view);
}

hf_time hf_ro_convert_time(const struct ro *ro, const char *node, hf_time at)
{
	const struct hf_cache_entry *entry =
		ro->health == NULL ? NULL : hf_cache_get(ro->health, NULL, node);
	const struct ro_health *health = entry == NULL ? NULL : entry->view;
	bool heard = health != NULL && health->seen_at != HF_TIME_NONE;
	hf_time now = hf_ro_now(ro);

	return hf_health_convert_time(
		at, health == NULL ? HF_TIME_NONE : health->observed_at,
		heard ? now - (hf_loop_mono(ro->env.loop) - health->seen_at) : HF_TIME_NONE, now);
}

bool hf_ro_is_stale(const struct ro *ro, const char *node)
{
	const struct hf_cache_entry *entry = hf_cache_get(ro->health, NULL, node);
	const struct ro_health *health = entry == NULL ? NULL : entry->view;

	return health != NULL && health->observed_at != HF_TIME_NONE &&
	       hf_ro_now(ro) - hf_ro_convert_time(ro, node, health->observed_at) > RO_SILENT_MAX;
}

bool hf_ro_needs_pass(const struct hf_rollout_node *entry)
{
	enum hf_rollout_phase phase;

	if (!hf_rollout_phase_of(entry->phase, &phase))
		return false;
	return !hf_rollout_phase_is_end(phase) || entry->cordoned_by_us;
}

bool hf_ro_is_unfinished(const struct ro_object *object)
{
	return object->readable && (!hf_rollout_state_is_end(object->state) ||
				    object->r.has_finalizer || object->r.deleting);
}
