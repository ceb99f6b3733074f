/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/node.h"

#include "api/node_internal.h"
#include "base/str.h"

/*
 * Reads the facts about a Node that decide whether it is lost or can take pods: condition Ready,
 * taints, the zone. Reads the renewal time of a node's Lease.
 */

/* Each kubelet updates its Node every few minutes, with a long list of images. The reader takes
 * only the fields below from the text and builds no tree. */
#define CONDITIONS_MAX 64
#define TAINTS_MAX 1024
#define BOOT_ID_MAX 256 /* the longest boot id that is read; the kernel's boot ids have 36 bytes */

static const struct hf_fields_options lenient = {.lenient = true};

struct labels {
	uint64_t present;
	const char *zone;
};
static const struct hf_field labels_fields[] = {
	HF_FIELD_STRING(HF_NODE_ZONE_LABEL, struct labels, zone, 0, 0),
};
static const struct hf_field_table labels_table = HF_FIELD_TABLE(labels_fields, struct labels);

struct metadata {
	uint64_t present;
	struct labels labels;
};
static const struct hf_field metadata_fields[] = {
	HF_FIELD_OBJECT("labels", struct metadata, labels, &labels_table, 0),
};
static const struct hf_field_table metadata_table =
	HF_FIELD_TABLE(metadata_fields, struct metadata);

static const struct hf_field taint_fields[] = {
	[HF_NODE_TAINT_KEY] = HF_FIELD_STRING("key", struct hf_node_taint_read, key, 0, 0),
	[HF_NODE_TAINT_VALUE] = HF_FIELD_STRING("value", struct hf_node_taint_read, value, 0, 0),
	[HF_NODE_TAINT_EFFECT] = HF_FIELD_STRING("effect", struct hf_node_taint_read, effect, 0, 0),
	[HF_NODE_TAINT_ADDED] = HF_FIELD_TIME("timeAdded", struct hf_node_taint_read, added_at, 0),
};
static const struct hf_field_table taint_table =
	HF_FIELD_TABLE(taint_fields, struct hf_node_taint_read);

static const struct hf_field spec_fields[] = {
	HF_FIELD_BOOL("unschedulable", struct hf_node_spec_read, unschedulable, 0),
	HF_FIELD_OBJECTS("taints", struct hf_node_spec_read, taints, &taint_table, TAINTS_MAX, 0),
};
const struct hf_field_table hf_node_spec_table =
	HF_FIELD_TABLE(spec_fields, struct hf_node_spec_read);

static const struct hf_field condition_fields[] = {
	[HF_NODE_CONDITION_TYPE] =
		HF_FIELD_STRING("type", struct hf_node_condition_read, type, 0, 0),
	[HF_NODE_CONDITION_STATUS] =
		HF_FIELD_STRING("status", struct hf_node_condition_read, status, 0, 0),
	[HF_NODE_CONDITION_CHANGED] =
		HF_FIELD_TIME("lastTransitionTime", struct hf_node_condition_read, changed_at, 0),
};
static const struct hf_field_table condition_table =
	HF_FIELD_TABLE(condition_fields, struct hf_node_condition_read);

static const struct hf_field info_fields[] = {
	HF_FIELD_STRING("bootID", struct hf_node_info_read, boot_id, BOOT_ID_MAX, 0),
};
static const struct hf_field_table info_table =
	HF_FIELD_TABLE(info_fields, struct hf_node_info_read);

static const struct hf_field status_fields[] = {
	HF_FIELD_OBJECTS("conditions", struct hf_node_status_read, conditions, &condition_table,
			 CONDITIONS_MAX, 0),
	HF_FIELD_OBJECT("nodeInfo", struct hf_node_status_read, info, &info_table, 0),
};
const struct hf_field_table hf_node_status_table =
	HF_FIELD_TABLE(status_fields, struct hf_node_status_read);

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

const struct hf_node_condition_read *hf_node_ready_condition(
	const struct hf_node_status_read *status)
{
	for (size_t i = 0; i < status->conditions.len; i++)
		if (hf_streq(status->conditions.items[i].type, "Ready"))
			return &status->conditions.items[i];
	return NULL;
}

const char *hf_node_ready_status(const struct hf_node_status_read *status)
{
	const struct hf_node_condition_read *ready = hf_node_ready_condition(status);

	return ready == NULL ? NULL : ready->status;
}

static enum hf_node_ready parse_ready(const struct hf_node_status_read *status)
{
	const char *said = hf_node_ready_status(status);

	if (hf_streq(said, "True"))
		return HF_NODE_READY;
	return hf_streq(said, "Unknown") ? HF_NODE_UNKNOWN : HF_NODE_NOT_READY;
}

/* Since when condition Ready is Unknown. Only the control plane sets Unknown, by its own clock. The
 * kubelet sets True and False by the node's clock, so their times are not used. */
static hf_time unknown_at(const struct hf_node_status_read *status)
{
	const struct hf_node_condition_read *ready = hf_node_ready_condition(status);

	return parse_ready(status) == HF_NODE_UNKNOWN &&
			       hf_field_has(ready->present, HF_NODE_CONDITION_CHANGED)
		       ? ready->changed_at
		       : HF_TIME_NONE;
}

void hf_node_read(struct hf_doc *doc, struct hf_arena *arena, struct hf_node_facts *ret_facts)
{
	struct node read = {.present = 0};
	struct hf_node_facts facts;

	if (hf_fields_read_doc(&node_table, doc, &lenient, arena, &read, NULL) < 0)
		read = (struct node){.present = 0};
	facts = (struct hf_node_facts){
		.ready = parse_ready(&read.status),
		.unknown_at = unknown_at(&read.status),
		.cordoned_at = HF_TIME_NONE,
		.schedulable = !read.spec.unschedulable,
		.zone = hf_str_is_empty(read.metadata.labels.zone) ? NULL
								   : read.metadata.labels.zone,
	};
	for (size_t i = 0; i < read.spec.taints.len; i++) {
		const struct hf_node_taint_read *taint = &read.spec.taints.items[i];

		facts.unreachable |= hf_streq(taint->key, HF_TAINT_UNREACHABLE);
		facts.out_of_service |= hf_streq(taint->key, HF_TAINT_OUT_OF_SERVICE);
		facts.no_execute |= hf_streq(taint->effect, "NoExecute");
		if (hf_streq(taint->key, HF_TAINT_UNSCHEDULABLE) &&
		    hf_field_has(taint->present, HF_NODE_TAINT_ADDED))
			facts.cordoned_at = taint->added_at;
	}
	*ret_facts = facts;
}

const char *hf_node_lease_renewal(struct hf_doc *lease)
{
	const char *text = hf_json_path_str(hf_doc_json(lease), "spec", "renewTime", NULL);

	return hf_str_is_empty(text) ? NULL : text;
}
