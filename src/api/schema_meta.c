/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/schema_internal.h"

/* Metadata, selectors and references.  Made by tools/schema; not for editing. */

/* A row a field. */
/* clang-format off */
static const struct hf_schema_field owner_reference_fields[] = {
	REQ(1, "kind", STRING),
	REQ(3, "name", STRING),
	REQ(4, "uid", STRING),
	REQ(5, "apiVersion", STRING),
	OPT(6, "controller", BOOL),
	OPT(7, "blockOwnerDeletion", BOOL),
	END,
};
static const struct hf_schema owner_reference = {"OwnerReference", owner_reference_fields};

static const struct hf_schema_field managed_fields_entry_fields[] = {
	ONE(1, "manager", STRING),
	ONE(2, "operation", STRING),
	ONE(3, "apiVersion", STRING),
	OPT(4, "time", TIME),
	ONE(6, "fieldsType", STRING),
	OPT(7, "fieldsV1", RAW),
	ONE(8, "subresource", STRING),
	END,
};
static const struct hf_schema managed_fields_entry = {"ManagedFieldsEntry", managed_fields_entry_fields};

static const struct hf_schema_field object_meta_fields[] = {
	ONE(1, "name", STRING),
	ONE(2, "generateName", STRING),
	ONE(3, "namespace", STRING),
	ONE(4, "selfLink", STRING),
	ONE(5, "uid", STRING),
	ONE(6, "resourceVersion", STRING),
	ONE(7, "generation", INT64),
	ONE(8, "creationTimestamp", TIME),
	OPT(9, "deletionTimestamp", TIME),
	OPT(10, "deletionGracePeriodSeconds", INT64),
	MAP(11, "labels", STRING),
	MAP(12, "annotations", STRING),
	LIST_OF(13, "ownerReferences", owner_reference),
	LIST(14, "finalizers", STRING),
	LIST_OF(17, "managedFields", managed_fields_entry),
	END,
};
const struct hf_schema hf_schema_object_meta = {"ObjectMeta", object_meta_fields};

static const struct hf_schema_field label_selector_requirement_fields[] = {
	REQ(1, "key", STRING),
	REQ(2, "operator", STRING),
	LIST(3, "values", STRING),
	END,
};
static const struct hf_schema label_selector_requirement = {"LabelSelectorRequirement", label_selector_requirement_fields};

static const struct hf_schema_field label_selector_fields[] = {
	MAP(1, "matchLabels", STRING),
	LIST_OF(2, "matchExpressions", label_selector_requirement),
	END,
};
const struct hf_schema hf_schema_label_selector = {"LabelSelector", label_selector_fields};

static const struct hf_schema_field local_object_reference_fields[] = {
	ONE(1, "name", STRING),
	END,
};
const struct hf_schema hf_schema_local_object_reference = {"LocalObjectReference", local_object_reference_fields};

static const struct hf_schema_field object_reference_fields[] = {
	ONE(1, "kind", STRING),
	ONE(2, "namespace", STRING),
	ONE(3, "name", STRING),
	ONE(4, "uid", STRING),
	ONE(5, "apiVersion", STRING),
	ONE(6, "resourceVersion", STRING),
	ONE(7, "fieldPath", STRING),
	END,
};
const struct hf_schema hf_schema_object_reference = {"ObjectReference", object_reference_fields};

static const struct hf_schema_field typed_local_object_reference_fields[] = {
	OPT(1, "apiGroup", STRING),
	REQ(2, "kind", STRING),
	REQ(3, "name", STRING),
	END,
};
const struct hf_schema hf_schema_typed_local_object_reference = {"TypedLocalObjectReference", typed_local_object_reference_fields};

static const struct hf_schema_field node_selector_requirement_fields[] = {
	REQ(1, "key", STRING),
	REQ(2, "operator", STRING),
	LIST(3, "values", STRING),
	END,
};
static const struct hf_schema node_selector_requirement = {"NodeSelectorRequirement", node_selector_requirement_fields};

static const struct hf_schema_field node_selector_term_fields[] = {
	LIST_OF(1, "matchExpressions", node_selector_requirement),
	LIST_OF(2, "matchFields", node_selector_requirement),
	END,
};
const struct hf_schema hf_schema_node_selector_term = {"NodeSelectorTerm", node_selector_term_fields};

static const struct hf_schema_field node_selector_fields[] = {
	LIST_OF(1, "nodeSelectorTerms", hf_schema_node_selector_term),
	END,
};
const struct hf_schema hf_schema_node_selector = {"NodeSelector", node_selector_fields};

static const struct hf_schema_field object_field_selector_fields[] = {
	ONE(1, "apiVersion", STRING),
	REQ(2, "fieldPath", STRING),
	END,
};
const struct hf_schema hf_schema_object_field_selector = {"ObjectFieldSelector", object_field_selector_fields};

static const struct hf_schema_field resource_field_selector_fields[] = {
	ONE(1, "containerName", STRING),
	REQ(2, "resource", STRING),
	ONE(3, "divisor", QUANTITY),
	END,
};
const struct hf_schema hf_schema_resource_field_selector = {"ResourceFieldSelector", resource_field_selector_fields};
