/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_SCHEMA_H
#define HF_API_SCHEMA_H

#include "core/framework.h"
#include "json/json.h"

HF_BEGIN_DECLS

/*
 * What fields the kinds have: one table each message, shared by all that must know them:
 * the decoder of Kubernetes' protobuf (below), strict decoding, OpenAPI.  The tables of
 * Kubernetes' own types are made from its Go types by tools/schema, those of the training
 * jobs with their CRDs by tools/crds.  Constant, acyclic, process lifetime.
 */

enum hf_schema_type {
	HF_SCHEMA_STRING,
	HF_SCHEMA_INT32,
	HF_SCHEMA_INT64,
	HF_SCHEMA_BOOL,
	HF_SCHEMA_BYTES,         /* base64 in JSON */
	HF_SCHEMA_QUANTITY,      /* "100m", "2Gi"; a number too */
	HF_SCHEMA_TIME,          /* RFC 3339, seconds */
	HF_SCHEMA_MICRO_TIME,    /* RFC 3339, six digits of fraction */
	HF_SCHEMA_INT_OR_STRING, /* a number or a name */
	HF_SCHEMA_RAW,           /* any JSON */
	HF_SCHEMA_OBJECT,        /* of `schema` */
};

enum hf_schema_shape {
	HF_SCHEMA_ONE,
	HF_SCHEMA_LIST,
	HF_SCHEMA_MAP,    /* by any text */
	HF_SCHEMA_INLINE, /* an object whose fields stand in its parent's place, in JSON */
};

struct hf_schema;

struct hf_schema_field {
	const char *name; /* in JSON; NULL ends a table */
	const struct hf_schema *schema;
	const char *about; /* for people; NULL: nothing to say */
	uint16_t number;   /* in protobuf; 0: not there */
	uint8_t type;      /* enum hf_schema_type */
	uint8_t shape;     /* enum hf_schema_shape */
	bool zero;         /* zero is a value: Go has a pointer, or no omitempty */
};

struct hf_schema {
	const char *name; /* "PodSpec" */
	const struct hf_schema_field *fields;
};

/* A JSON value of that type may stand in the field; of what is in it nothing is said. */
bool hf_schema_takes(const struct hf_schema_field *field, enum hf_json_type type);
/* "integer or string": what may, in the words of OpenAPI; "" where anything may. */
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

/* The table of a kind; NULL: none here. */
const struct hf_schema *hf_schema_by_kind(const char *api_version, const char *kind);
/* By name, inlined fields too; NULL: none. */
const struct hf_schema_field *hf_schema_field(const struct hf_schema *schema, const char *name);

/*
 * Kubernetes' protobuf (application/vnd.kubernetes.protobuf): the four bytes "k8s\0", a
 * runtime.Unknown, and inside it an object of a kind above, to the JSON that Go's types would
 * give.  Fields that no table has are passed over, as Go passes over them; managedFields'
 * fieldsV1 is too.  HF_E_BAD_REQUEST: it is no such thing, or of another kind;
 * HF_E_TOO_LARGE: over HF_JSON_BYTES_MAX, or more keys in one object than JSON may have.
 */
int hf_protobuf_decode(const void *bytes, size_t len, struct hf_json **ret_object,
		       struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
