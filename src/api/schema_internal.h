/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_SCHEMA_INTERNAL_H
#define HF_API_SCHEMA_INTERNAL_H

#include "api/schema.h"

/* Macros for the rows of the tables: protobuf's field number, the name, and the type or the inner
 * table. */
/* clang-format off: it would break rows into several lines */
#define HF_ROW_(no, key, kind, form, keep)                                                         \
	{                                                                                          \
		.name = (key), .number = (no), .type = HF_SCHEMA_##kind,                           \
		.shape = HF_SCHEMA_##form, .zero = (keep)                                          \
	}
#define HF_ROW_OF_(no, key, inner, form, keep)                                                     \
	{                                                                                          \
		.name = (key), .number = (no), .type = HF_SCHEMA_OBJECT, .schema = &(inner),       \
		.shape = HF_SCHEMA_##form, .zero = (keep)                                          \
	}
#define ONE(no, key, kind) HF_ROW_(no, key, kind, ONE, false)
#define OPT(no, key, kind) HF_ROW_(no, key, kind, ONE, true) /* a pointer in Go */
#define REQ(no, key, kind) HF_ROW_(no, key, kind, ONE, true) /* always present */
#define LIST(no, key, kind) HF_ROW_(no, key, kind, LIST, false)
#define MAP(no, key, kind) HF_ROW_(no, key, kind, MAP, false)
#define ONE_OF(no, key, inner) HF_ROW_OF_(no, key, inner, ONE, false)
#define OPT_OF(no, key, inner) HF_ROW_OF_(no, key, inner, ONE, true)
#define LIST_OF(no, key, inner) HF_ROW_OF_(no, key, inner, LIST, false)
#define INLINE_OF(no, key, inner) HF_ROW_OF_(no, key, inner, INLINE, false)
/* Rows of the training jobs: no protobuf number, but a description. */
#define FIELD(key, kind, form, text)                                                               \
	{                                                                                          \
		.name = (key), .type = HF_SCHEMA_##kind, .shape = HF_SCHEMA_##form,                \
		.about = (text)                                                                    \
	}
#define FIELD_OF(key, inner, form, text)                                                           \
	{                                                                                          \
		.name = (key), .type = HF_SCHEMA_OBJECT, .schema = &(inner),                       \
		.shape = HF_SCHEMA_##form, .about = (text)                                         \
	}
#define TYPE_META ONE(0, "apiVersion", STRING), ONE(0, "kind", STRING)
#define END                                                                                        \
	{                                                                                          \
		.name = NULL                                                                       \
	}
/* clang-format on */

/* Tables of core/v1 that several files use. */
extern const struct hf_schema hf_schema_app_armor_profile;
extern const struct hf_schema hf_schema_container;
extern const struct hf_schema hf_schema_container_status;
extern const struct hf_schema hf_schema_ephemeral_container;
extern const struct hf_schema hf_schema_label_selector;
extern const struct hf_schema hf_schema_local_object_reference;
extern const struct hf_schema hf_schema_node_selector;
extern const struct hf_schema hf_schema_node_selector_term;
extern const struct hf_schema hf_schema_object_field_selector;
extern const struct hf_schema hf_schema_object_reference;
extern const struct hf_schema hf_schema_persistent_volume_claim_spec;
extern const struct hf_schema hf_schema_persistent_volume_claim_status;
extern const struct hf_schema hf_schema_pod_spec;
extern const struct hf_schema hf_schema_pod_status;
extern const struct hf_schema hf_schema_pod_template_spec;
extern const struct hf_schema hf_schema_resource_field_selector;
extern const struct hf_schema hf_schema_resource_requirements;
extern const struct hf_schema hf_schema_se_linux_options;
extern const struct hf_schema hf_schema_seccomp_profile;
extern const struct hf_schema hf_schema_typed_local_object_reference;
extern const struct hf_schema hf_schema_volume;
extern const struct hf_schema hf_schema_windows_security_context_options;

#endif
