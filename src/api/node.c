/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/node.h"

#include "base/str.h"
#include "json/fields.h"

/* Kubelets refresh their Node every few minutes each, with the list of all images: the text is
 * read as it stands, and only what is named here. */
#define CONDITIONS_MAX 64
#define TAINTS_MAX 1024

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

struct taint {
	uint64_t present;
	const char *key, *effect;
};
static const struct hf_field taint_fields[] = {
	HF_FIELD_STRING("key", struct taint, key, 0, 0),
	HF_FIELD_STRING("effect", struct taint, effect, 0, 0),
};
static const struct hf_field_table taint_table = HF_FIELD_TABLE(taint_fields, struct taint);

struct spec {
	uint64_t present;
	bool unschedulable;
	HF_LIST(struct taint) taints;
};
static const struct hf_field spec_fields[] = {
	HF_FIELD_BOOL("unschedulable", struct spec, unschedulable, 0),
	HF_FIELD_OBJECTS("taints", struct spec, taints, &taint_table, TAINTS_MAX, 0),
};
static const struct hf_field_table spec_table = HF_FIELD_TABLE(spec_fields, struct spec);

struct condition {
	uint64_t present;
	const char *type, *status;
};
static const struct hf_field condition_fields[] = {
	HF_FIELD_STRING("type", struct condition, type, 0, 0),
	HF_FIELD_STRING("status", struct condition, status, 0, 0),
};
static const struct hf_field_table condition_table =
	HF_FIELD_TABLE(condition_fields, struct condition);

struct status {
	uint64_t present;
	HF_LIST(struct condition) conditions;
};
static const struct hf_field status_fields[] = {
	HF_FIELD_OBJECTS("conditions", struct status, conditions, &condition_table, CONDITIONS_MAX,
			 0),
};
static const struct hf_field_table status_table = HF_FIELD_TABLE(status_fields, struct status);

struct node {
	uint64_t present;
	struct metadata metadata;
	struct spec spec;
	struct status status;
};
static const struct hf_field node_fields[] = {
	HF_FIELD_OBJECT("metadata", struct node, metadata, &metadata_table, 0),
	HF_FIELD_OBJECT("spec", struct node, spec, &spec_table, 0),
	HF_FIELD_OBJECT("status", struct node, status, &status_table, 0),
};
static const struct hf_field_table node_table = HF_FIELD_TABLE(node_fields, struct node);

static enum hf_node_ready readiness(const struct status *status)
{
	for (size_t i = 0; i < status->conditions.len; i++) {
		const struct condition *condition = &status->conditions.items[i];

		if (!hf_streq(condition->type, "Ready"))
			continue;
		if (hf_streq(condition->status, "True"))
			return HF_NODE_READY;
		return hf_streq(condition->status, "Unknown") ? HF_NODE_UNKNOWN : HF_NODE_NOT_READY;
	}
	return HF_NODE_NOT_READY;
}

void hf_node_read(struct hf_doc *doc, struct hf_arena *arena, struct hf_node_facts *ret_facts)
{
	struct node read = {.present = 0};
	struct hf_node_facts facts;

	if (hf_fields_read_doc(&node_table, doc, &lenient, arena, &read, NULL) < 0)
		read = (struct node){.present = 0};
	facts = (struct hf_node_facts){
		.ready = readiness(&read.status),
		.schedulable = !read.spec.unschedulable,
		.zone = hf_str_is_empty(read.metadata.labels.zone) ? NULL
								   : read.metadata.labels.zone,
	};
	for (size_t i = 0; i < read.spec.taints.len; i++) {
		const struct taint *taint = &read.spec.taints.items[i];

		facts.unreachable |= hf_streq(taint->key, HF_TAINT_UNREACHABLE);
		facts.out_of_service |= hf_streq(taint->key, HF_TAINT_OUT_OF_SERVICE);
		facts.no_execute |= hf_streq(taint->effect, "NoExecute");
	}
	*ret_facts = facts;
}
