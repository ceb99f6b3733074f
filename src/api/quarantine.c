/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/health_policy.h"

#include "api/remediation.h"

#include "api/node_internal.h"
#include "base/str.h"

#include <string.h>

/* Reads and writes the quarantine of a Node: the taint, and the annotation (the "mark") that
 * records which policy put the taint there, when and why. */

/* The most labels of a Node that are read; further labels are ignored. Node feature discovery
 * writes a hundred or more. */
#define LABELS_MAX 4096
/* The effect of Holdfast's taint. A taint with the same key and another effect is not Holdfast's. */
#define EFFECT "NoSchedule"
#define SCOPE_DEVICE "Device"

static const struct hf_fields_options lenient = {.lenient = true};

/* ---- reading --------------------------------------------------------------------------------- */

struct annotations {
	uint64_t present;
	const char *quarantine, *paused, *hold;
};
static const struct hf_field annotations_fields[] = {
	HF_FIELD_STRING(HF_QUARANTINE_ANNOTATION, struct annotations, quarantine, 0, 0),
	HF_FIELD_STRING(HF_PAUSED_ANNOTATION, struct annotations, paused, 0, 0),
	HF_FIELD_STRING(HF_MEND_HOLD_ANNOTATION, struct annotations, hold, 0, 0),
};
static const struct hf_field_table annotations_table =
	HF_FIELD_TABLE(annotations_fields, struct annotations);

struct metadata {
	uint64_t present;
	struct annotations annotations;
	HF_LIST(struct hf_field_pair) labels;
	hf_time created_at;
};
static const struct hf_field metadata_fields[] = {
	HF_FIELD_OBJECT("annotations", struct metadata, annotations, &annotations_table, 0),
	HF_FIELD_STRING_MAP("labels", struct metadata, labels, LABELS_MAX, 0),
	HF_FIELD_TIME("creationTimestamp", struct metadata, created_at, 0),
};
static const struct hf_field_table metadata_table =
	HF_FIELD_TABLE(metadata_fields, struct metadata);

struct node {
	uint64_t present;
	struct metadata metadata;
	struct hf_node_spec_read spec;
	struct hf_node_status_read status;
};
static const struct hf_field node_fields[] = {
	HF_FIELD_OBJECT("metadata", struct node, metadata, &metadata_table, 0),
	HF_FIELD_OBJECT("spec", struct node, spec, &hf_node_spec_table, 0),
	HF_FIELD_OBJECT("status", struct node, status, &hf_node_status_table, 0),
};
static const struct hf_field_table node_table = HF_FIELD_TABLE(node_fields, struct node);

bool hf_paused(const char *annotation)
{
	return annotation != NULL && !hf_streq(annotation, "false");
}

void hf_node_marks_read(struct hf_doc *doc, struct hf_arena *arena, struct hf_node_marks *ret_marks)
{
	struct node read = {.present = 0};
	struct hf_node_marks marks;

	if (hf_fields_read_doc(&node_table, doc, &lenient, arena, &read, NULL) < 0)
		read = (struct node){.present = 0};
	marks = (struct hf_node_marks){
		.boot_id =
			hf_str_is_empty(read.status.info.boot_id) ? NULL : read.status.info.boot_id,
		.created_at = read.metadata.created_at > 0 ? read.metadata.created_at : 0,
		.ready = hf_streq(hf_node_ready_status(&read.status), "True"),
		.unschedulable = read.spec.unschedulable,
		.paused = hf_paused(read.metadata.annotations.paused),
		.held = hf_paused(read.metadata.annotations.hold),
		.quarantine = read.metadata.annotations.quarantine,
		.labels = {read.metadata.labels.items, read.metadata.labels.len},
	};
	marks.taints.items = HF_ARENA_ARRAY(arena, struct hf_node_taint, read.spec.taints.len + 1);
	for (size_t i = 0; i < read.spec.taints.len; i++) {
		const struct hf_node_taint_read *t = &read.spec.taints.items[i];

		if (!hf_str_is_empty(t->key))
			marks.taints.items[marks.taints.len++] =
				(struct hf_node_taint){.key = t->key,
						       .value = hf_str_or(t->value, ""),
						       .effect = hf_str_or(t->effect, "")};
	}
	*ret_marks = marks;
}

bool hf_node_has_quarantine_taint(const struct hf_node_marks *marks)
{
	for (size_t i = 0; i < marks->taints.len; i++)
		if (hf_streq(marks->taints.items[i].key, HF_QUARANTINE_TAINT) &&
		    hf_streq(marks->taints.items[i].effect, EFFECT))
			return true;
	return false;
}

/* ---- the mark -------------------------------------------------------------------------------- */

struct hf_json *hf_quarantine_mark_json(const struct hf_quarantine_mark *mark)
{
	struct hf_json *json = hf_json_object();
	char text[HF_TIME_TEXT_MAX];

	hf_time_format_micro(mark->at, text);
	hf_json_set_str(json, "policy", mark->policy);
	hf_json_set_str(json, "class", mark->cls);
	hf_json_set_str(json, "time", text);
	hf_json_set_i64(json, "epoch", mark->epoch);
	if (mark->devices)
		hf_json_set_str(json, "scope", SCOPE_DEVICE);
	if (mark->off != HF_TIME_NONE) {
		hf_time_format_micro(mark->off, text);
		hf_json_set_str(json, "takenOff", text);
	}
	if (mark->late > 0) {
		hf_json_set_i64(json, "late", mark->late);
		hf_json_set_str(json, "latePod", hf_str_or(mark->late_pod, ""));
	}
	return json;
}

struct read_mark {
	uint64_t present;
	const char *policy, *cls;
	hf_time at;
	int64_t epoch;
	const char *scope, *late_pod;
	hf_time off;
	int32_t late;
};
enum { MARK_POLICY, MARK_CLASS, MARK_TIME, MARK_EPOCH, MARK_OFF };
static const struct hf_field mark_fields[] = {
	[MARK_POLICY] = HF_FIELD_STRING("policy", struct read_mark, policy, 0,
					HF_FIELD_REQUIRED | HF_FIELD_NONEMPTY),
	[MARK_CLASS] = HF_FIELD_STRING("class", struct read_mark, cls, 0, 0),
	[MARK_TIME] = HF_FIELD_TIME("time", struct read_mark, at, HF_FIELD_REQUIRED),
	[MARK_EPOCH] = HF_FIELD_INT64("epoch", struct read_mark, epoch, 0, INT32_MAX, 0),
	[MARK_OFF] = HF_FIELD_TIME("takenOff", struct read_mark, off, 0),
	HF_FIELD_STRING("scope", struct read_mark, scope, 0, 0),
	HF_FIELD_INT32("late", struct read_mark, late, 0, INT32_MAX - 1, 0),
	HF_FIELD_STRING("latePod", struct read_mark, late_pod, 0, 0),
};
static const struct hf_field_table mark_table = HF_FIELD_TABLE(mark_fields, struct read_mark);

const char *hf_quarantine_act(const char *policy)
{
	return policy != NULL && hf_str_has_prefix(policy, HF_MEND_MARK_PREFIX)
		       ? policy + strlen(HF_MEND_MARK_PREFIX)
		       : NULL;
}

bool hf_quarantine_mark_read(const char *text, struct hf_arena *arena,
			     struct hf_quarantine_mark *ret_mark)
{
	const struct hf_fields_text source = {text, text == NULL ? 0 : strlen(text)};
	struct read_mark read;

	if (text == NULL || hf_fields_read_text(&mark_table, &source, NULL, arena, &read, NULL) < 0)
		return false;
	*ret_mark = (struct hf_quarantine_mark){
		.policy = read.policy,
		.cls = hf_str_or(read.cls, ""),
		.at = read.at,
		.epoch = read.epoch,
		.devices = hf_streq(read.scope, SCOPE_DEVICE),
		.off = hf_field_time(read.present, MARK_OFF, read.off),
		.late = read.late,
		.late_pod = read.late_pod,
	};
	return true;
}

/* ---- patches --------------------------------------------------------------------------------- */

static struct hf_json *own_taint(const struct hf_quarantine_mark *mark, hf_time now)
{
	struct hf_json *taint = hf_json_object();
	char text[HF_TIME_TEXT_MAX];

	hf_time_format(now, text);
	hf_json_set_str(taint, "key", HF_QUARANTINE_TAINT);
	hf_json_set_str(taint, "value", mark->cls);
	hf_json_set_str(taint, "effect", EFFECT);
	hf_json_set_str(taint, "timeAdded", text);
	return taint;
}

static struct hf_json *guarded_patch(struct hf_doc *node)
{
	struct hf_json *patch = hf_json_object();

	hf_json_set_str(hf_json_ensure_object(patch, "metadata"), "resourceVersion",
			hf_doc_resource_version(node));
	return patch;
}

static void set_mark(struct hf_json *patch, const struct hf_quarantine_mark *mark)
{
	struct hf_json *annotations =
		hf_json_ensure_object(hf_json_ensure_object(patch, "metadata"), "annotations");
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_HEALTH_POLICY_TEXT_MAX);

	if (mark == NULL) {
		hf_json_set(annotations, HF_QUARANTINE_ANNOTATION, hf_json_null());
		return;
	}
	HF_AUTO_JSON json = hf_quarantine_mark_json(mark);

	hf_json_write(json, HF_JSON_COMPACT, &text);
	hf_json_set_str(annotations, HF_QUARANTINE_ANNOTATION, text.data);
}

struct hf_doc *hf_node_mark_patch(struct hf_doc *node, const struct hf_quarantine_mark *mark)
{
	struct hf_json *patch = guarded_patch(node);

	set_mark(patch, mark);
	return hf_doc_from_json(patch);
}

/* A merge patch replaces a list as a whole, so the patch contains all taints. Its resourceVersion
 * makes the server refuse it if another writer has changed the Node meanwhile. */
struct hf_doc *hf_node_quarantine_patch(struct hf_doc *node, const struct hf_quarantine_mark *mark,
					hf_time now)
{
	const struct hf_json *old = hf_json_path(hf_doc_json(node), "spec", "taints", NULL);
	struct hf_json *patch, *taints;

	if (hf_doc_json(node) == NULL)
		return NULL;
	patch = guarded_patch(node);
	set_mark(patch, mark);
	taints = hf_json_ensure_array(hf_json_ensure_object(patch, "spec"), "taints");
	for (size_t i = 0; i < hf_json_len(old); i++) {
		const struct hf_json *taint = hf_json_item(old, i);

		if (!hf_streq(hf_json_path_str(taint, "key", NULL), HF_QUARANTINE_TAINT) ||
		    !hf_streq(hf_json_path_str(taint, "effect", NULL), EFFECT))
			hf_json_append(taints, hf_json_copy(taint));
	}
	if (mark != NULL && !mark->devices)
		hf_json_append(taints, own_taint(mark, now));
	return hf_doc_from_json(patch);
}
