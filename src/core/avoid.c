/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/framework.h"
#include "core/brain_internal.h"

#include "base/str.h"
#include "core/names.h"

/*
 * Keep off nodes that this job has had bad luck with: lost ones, those with a failed device, and
 * those whose kubelet refused a pod.  A preference only, so that a job whose last node it is
 * still runs; but while a node's agent calls a device out of service, which the kubelet may not know,
 * the same device would be given out again: there it is a must.
 * Where Kueue or the user has chosen the node, nothing is added: it could only make
 * the pod unschedulable.
 */

#define AVOID_SECONDS (24 * 3600)
/* Names in one pod's affinity: room for more records than are kept. */
#define AVOID_NODES_MAX 16

static bool is_bad_luck(const struct hf_brain *b, const struct hf_record *record)
{
	if (hf_str_is_empty(record->node) || record->detected_at == HF_TIME_NONE ||
	    hf_elapsed(record->detected_at, b->now) >= hf_seconds(AVOID_SECONDS))
		return false;
	if (record->cause == HF_CLASS_DEVICE)
		return b->job.recovery.avoid_devices;
	return hf_streq(record->reason, HF_REASON_NODE_LOST) || record->cause == HF_CLASS_ADMISSION;
}

/* What was a must is written on the pod, which keeps it when that is over: unplaced.c. */
static void note_musts(struct hf_edits *edits, size_t first)
{
	size_t last = edits->len;
	struct hf_edit note = {.kind = HF_EDIT_ANNOTATION, .name = HF_ANNOTATION_AVOIDS};

	for (size_t i = first; i < last; i++) {
		if (edits->items[i].number == 0)
			continue;
		note.value = note.value ? hf_arena_printf(edits->arena, "%s,%s", note.value,
							  edits->items[i].name)
					: edits->items[i].name;
	}
	if (note.value)
		hf_edits_add(edits, &note);
}

void hf_avoid_nodes(struct hf_brain *b, int role, struct hf_edits *edits)
{
	const struct hf_ledger *ledger = &b->ledger;
	size_t first = edits->len;

	if (b->job.roles[role].pod->placed)
		return;
	/* Newest first: they matter most. */
	for (size_t i = 0; i < ledger->records_len && edits->len - first < AVOID_NODES_MAX; i++) {
		struct hf_edit edit = {.kind = HF_EDIT_AVOID_NODE,
				       .name = ledger->records[i].node,
				       .number = hf_device_is_out(b, &ledger->records[i])};
		bool known = false;

		if (!is_bad_luck(b, &ledger->records[i]))
			continue;
		for (size_t e = first; e < edits->len && !known; e++) {
			known = hf_streq(edits->items[e].name, edit.name);
			if (known && edit.number)
				edits->items[e].number = edit.number;
		}
		if (!known)
			hf_edits_add(edits, &edit);
	}
	note_musts(edits, first);
}
