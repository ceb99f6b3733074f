/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_SCHEMA_H
#define HF_API_SCHEMA_H

#include "core/model/framework.h"
#include "json/json.h"

HF_BEGIN_DECLS

/*
 * The fields of all kinds, one table for each message. The decoder of Kubernetes' protobuf (below),
 * strict decoding and OpenAPI all use these tables. tools/schema makes the tables of Kubernetes'
 * own types from its Go types; tools/crds makes those of the training jobs together with their
 * CRDs. The tables are constant, have no cycles, and live as long as the process.
 */

enum hf_schema_type {
	HF_SCHEMA_STRING,
	HF_SCHEMA_INT32,
	HF_SCHEMA_INT64,
	HF_SCHEMA_BOOL,
	HF_SCHEMA_BYTES,         /* base64 in JSON */
	HF_SCHEMA_QUANTITY,      /* a text such as "100m" or "2Gi"; a number is allowed too */
	HF_SCHEMA_TIME,          /* RFC 3339, seconds */
	HF_SCHEMA_MICRO_TIME,    /* RFC 3339, six digits of fraction */
	HF_SCHEMA_INT_OR_STRING, /* a number or a name */
	HF_SCHEMA_RAW,           /* any JSON */
	HF_SCHEMA_OBJECT,        /* an object with the fields of the table `schema` */
};

enum hf_schema_shape {
	HF_SCHEMA_ONE,
	HF_SCHEMA_LIST,
	HF_SCHEMA_MAP,    /* from texts to values */
	HF_SCHEMA_INLINE, /* an object; in JSON, its fields are members of the parent */
};

struct hf_schema;

struct hf_schema_field {
	const char *name; /* key in JSON; NULL ends the table */
	const struct hf_schema *schema;
	const char *about; /* description for users; NULL: none */
	uint16_t number;   /* the field's number in protobuf; 0: the field is not in protobuf */
	uint8_t type;      /* enum hf_schema_type */
	uint8_t shape;     /* enum hf_schema_shape */
	/* JSON keeps a zero of this field, because Go's type has a pointer or no omitempty */
	bool zero;
};

struct hf_schema {
	const char *name; /* "PodSpec" */
	const struct hf_schema_field *fields;
};

/* Tells whether a JSON value of this type may be in the field. Does not look inside the value. */
bool hf_schema_takes(const struct hf_schema_field *field, enum hf_json_type type);
/* Returns the types that a field of this type takes, in the words of OpenAPI, such as "integer or
 * string"; "": every type. */
const char *hf_schema_type_name(enum hf_schema_type type);

extern const struct hf_schema hf_schema_binding;
extern const struct hf_schema hf_schema_config_map;
extern const struct hf_schema hf_schema_delete_options;
extern const struct hf_schema hf_schema_event;
extern const struct hf_schema hf_schema_jax_job;
extern const struct hf_schema hf_schema_lease;
extern const struct hf_schema hf_schema_mpi_job;
extern const struct hf_schema hf_schema_namespace;
extern const struct hf_schema hf_schema_node;
extern const struct hf_schema hf_schema_object_meta;
extern const struct hf_schema hf_schema_paddle_job;
extern const struct hf_schema hf_schema_persistent_volume_claim;
extern const struct hf_schema hf_schema_pod;
extern const struct hf_schema hf_schema_role;
extern const struct hf_schema hf_schema_role_binding;
extern const struct hf_schema hf_schema_py_torch_job;
extern const struct hf_schema hf_schema_scale;
extern const struct hf_schema hf_schema_secret;
extern const struct hf_schema hf_schema_service;
extern const struct hf_schema hf_schema_service_account;
extern const struct hf_schema hf_schema_tf_job;
extern const struct hf_schema hf_schema_xg_boost_job;

/* Returns the table of a kind; NULL: unknown kind. */
const struct hf_schema *hf_schema_by_kind(const char *api_version, const char *kind);
/* Returns the field with this name, also from inlined objects; NULL: none. */
const struct hf_schema_field *hf_schema_field(const struct hf_schema *schema, const char *name);

/*
 * Decodes Kubernetes' protobuf (application/vnd.kubernetes.protobuf) into the JSON that Go's types
 * would write. The bytes are "k8s\0", then a runtime.Unknown with an object of a known kind in it.
 * Skips unknown fields, as Go does, and fieldsV1 of managedFields. HF_E_BAD_REQUEST: not such a
 * message, or of an unknown kind. HF_E_TOO_LARGE: above HF_JSON_BYTES_MAX, or too many keys in one
 * object.
 */
int hf_protobuf_decode(const void *bytes, size_t len, struct hf_json **ret_object,
		       struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
