/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/framework.h"
#include "core/policy/policy_internal.h"

#include "base/compare.h"
#include "base/str.h"
#include "core/model/names.h"

#include <stdlib.h>
#include <string.h>

/*
 * Which nodes a new pod must not, or should not, run on.  Input: the ledger's records of the last
 * day, and the nodes with a device out of service.  Output: edits of the pod's node affinity.
 *
 * - A preference: nodes that were lost, that refused a pod, or where a device failed.  The job
 *   still runs if it has no other node.  A proved act that mended the node ends it.
 * - A must: a replacement that asks for devices never goes to a node where an agent reports a
 *   device out of service now.  The kubelet may not know of the fault, and would allocate the same
 *   device again.  If all such devices of the node are withheld from pods, this holds only for pods
 *   with a shared claim: it may still have the device.
 *
 * If Kueue or the user has chosen the node, no edit is made: it could only make the pod
 * unschedulable.
 */

#define AVOID_SECONDS (24 * 3600)
/* The most node names in one pod's affinity: more than the ledger has records, and a few kilobytes
 * of text. */
#define AVOID_NODES_MAX 32

/* The time is less than a day ago.  After a day the administrator has accepted the failure, or the
 * kubelet knows that the device is broken. */
static bool is_lately(const struct hf_brain *b, hf_time at)
{
	return hf_elapsed(at, b->now) < hf_seconds(AVOID_SECONDS);
}

/* An act has mended the node after the fault of the record. */
static bool is_mended(const struct hf_brain *b, const struct hf_record *record)
{
	for (size_t i = 0; i < b->seen->mended_len; i++)
		if (hf_streq(b->seen->mended[i].node, record->node))
			return b->seen->mended[i].at > record->detected_at;
	return false;
}

static bool is_bad_luck(const struct hf_brain *b, const struct hf_record *record)
{
	if (hf_str_is_empty(record->node) || record->detected_at == HF_TIME_NONE ||
	    !is_lately(b, record->detected_at))
		return false;
	if (record->cause == HF_CLASS_DEVICE)
		return b->job.recovery.avoid_devices && !is_mended(b, record);
	return hf_streq(record->reason, HF_REASON_NODE_LOST) || record->cause == HF_CLASS_ADMISSION;
}

/* ---- devices out of service now ------------------------------------------------------------- */

/* The nodes with a device out of service, sorted by name.  Most steps create no pod, so the list is
 * sorted when it is first asked for. */
static const struct hf_sick_seen **index_sick(const struct hf_brain *b)
{
	const struct hf_observed *seen = b->seen;

	if (b->cache->sick)
		return b->cache->sick;
	b->cache->sick = HF_ARENA_ARRAY(b->arena, const struct hf_sick_seen *, seen->sick_len + 1);
	for (size_t i = 0; i < seen->sick_len; i++)
		b->cache->sick[i] = &seen->sick[i];
	qsort(b->cache->sick, seen->sick_len, sizeof(*b->cache->sick), hf_compare_pointers_by_name);
	return b->cache->sick;
}

struct name {
	const char *text;
	size_t len;
};

static int compare_sick_key(const void *key, const void *item)
{
	const struct name *name = key;
	const struct hf_sick_seen *const *sick = item;
	int order = strncmp(name->text, (*sick)->node, name->len);

	return order != 0 ? order : (*sick)->node[name->len] == '\0' ? 0 : -1;
}

/* Pods of the role use devices: the template asks for one, or a device failed in a pod of the
 * role. */
static bool has_devices(const struct hf_brain *b, int role)
{
	if (b->job.roles[role].pod->devices)
		return true;
	for (size_t i = 0; i < b->ledger.records_len; i++) {
		const struct hf_record *record = &b->ledger.records[i];
		int32_t index;
		int of;

		if (record->cause == HF_CLASS_DEVICE && record->pod &&
		    hf_rank_find(b, record->pod, &of, &index) && of == role)
			return true;
	}
	return false;
}

/* The node has a device out of service now.  The report of a silent agent may be out of date, so it
 * does not count. */
static bool is_out(const struct hf_brain *b, const struct hf_sick_seen *sick)
{
	return !sick->silent && (sick->since == HF_TIME_NONE || is_lately(b, sick->since));
}

/* A record of the ledger names a device of this job on that node.  Such a node stays excluded even
 * if its agent falls silent: silence does not repair a device. */
static bool is_recorded(const struct hf_brain *b, const struct hf_sick_seen *sick)
{
	for (size_t i = 0; i < b->ledger.records_len; i++) {
		const struct hf_record *record = &b->ledger.records[i];

		if (record->cause == HF_CLASS_DEVICE && is_bad_luck(b, record) &&
		    hf_streq(record->node, sick->node))
			return true;
	}
	return false;
}

/* Pods of the role can be given a device that is out of service on that node. */
static bool is_exposed(const struct hf_brain *b, int role, const struct hf_sick_seen *sick)
{
	return !sick->withheld || b->job.roles[role].pod->shared_claims;
}

bool hf_avoid_is_must(const struct hf_brain *b, int role, const char *name, size_t len)
{
	const struct name key = {name, len};
	const struct hf_sick_seen *const *sick;

	if (b->job.roles[role].pod->placed || !b->job.recovery.avoid_devices ||
	    b->seen->sick_len == 0)
		return false;
	sick = bsearch(&key, index_sick(b), b->seen->sick_len, sizeof(*sick), compare_sick_key);
	return sick && is_exposed(b, role, *sick) &&
	       (is_recorded(b, *sick) || (is_out(b, *sick) && has_devices(b, role)));
}

/* ---- edits of a pod ------------------------------------------------------------------------- */

static void add_node(struct hf_edits *edits, const char *node, bool must)
{
	const struct hf_edit edit = {.kind = HF_EDIT_AVOID_NODE, .name = node, .number = must};

	for (size_t i = 0; i < edits->len; i++)
		if (hf_streq(edits->items[i].name, node))
			return;
	if (edits->len < AVOID_NODES_MAX)
		hf_edits_add(edits, &edit);
}

/* Exclude the nodes with a device out of service.  The job's own nodes come first in the limited
 * list: the ranks that end there leave room for new pods. */
static void add_sick(const struct hf_brain *b, int role, struct hf_edits *edits)
{
	const struct hf_sick_seen **sick = index_sick(b);

	if (!b->job.recovery.avoid_devices || !has_devices(b, role))
		return;
	for (int others = 0; others < 2; others++) {
		for (size_t i = 0; i < b->seen->sick_len; i++) {
			const struct hf_pod there = {.node = sick[i]->node};

			if (is_out(b, sick[i]) && is_exposed(b, role, sick[i]) &&
			    (hf_node_of(b, &there) == NULL) == others)
				add_node(edits, sick[i]->node, true);
		}
	}
}

/* List the excluded nodes in the pod's annotation holdfast.dev/avoids.  A pod keeps its affinity
 * for life, so unschedulable.c replaces a waiting pod when a reason for its affinity is over. */
static void note_musts(struct hf_edits *edits)
{
	size_t len = edits->len;
	struct hf_edit note = {.kind = HF_EDIT_ANNOTATION, .name = HF_ANNOTATION_AVOIDS};

	for (size_t i = 0; i < len; i++) {
		if (edits->items[i].number == 0)
			continue;
		note.value = note.value ? hf_arena_printf(edits->arena, "%s,%s", note.value,
							  edits->items[i].name)
					: edits->items[i].name;
	}
	if (note.value)
		hf_edits_add(edits, &note);
}

static void find_avoided(const struct hf_brain *b, int role, bool replaces, struct hf_edits *edits)
{
	const struct hf_ledger *ledger = &b->ledger;

	/* The newest records matter most. */
	for (size_t i = 0; i < ledger->records_len; i++) {
		const char *node = ledger->records[i].node;

		if (is_bad_luck(b, &ledger->records[i]))
			add_node(edits, node, hf_avoid_is_must(b, role, node, strlen(node)));
	}
	if (replaces && b->seen->sick_len > 0)
		add_sick(b, role, edits);
	note_musts(edits);
}

void hf_avoid_nodes(const struct hf_brain *b, int role, bool replaces, struct hf_edits *edits)
{
	struct hf_edits *avoided = &b->cache->avoided[role][replaces];

	if (b->job.roles[role].pod->placed)
		return;
	if (!avoided->arena) {
		hf_edits_init(avoided, &b->cache->shared, b->arena);
		find_avoided(b, role, replaces, avoided);
	}
	for (size_t i = 0; i < avoided->len; i++)
		hf_edits_add(edits, &avoided->items[i]);
	edits->bytes += avoided->len * sizeof(*avoided->items);
}
