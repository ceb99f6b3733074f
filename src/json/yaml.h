/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_YAML_H
#define HF_JSON_YAML_H

#include "json/json.h"

/*
 * Reads YAML files as kubectl does (YAML 1.1 as go.yaml.in/yaml/v2 resolves it), but stricter where
 * a lax reader hides mistakes:
 *
 * - Plain y, yes, on, true (and Yes, YES, …) are true; n, no, off, false are false. ~, null and an
 *   empty value are null. 0x1F, 017, 0o17, 0b11 and 1_000 are integers. Integers beyond int64
 *   become reals, as in apimachinery. .inf and .nan are refused, because JSON has no such numbers.
 *   Dates stay strings.
 * - Refused with line and column: duplicate keys (with both lines), keys that are not strings
 *   (write "8080": instead of 8080:), tags other than !!str !!int !!float !!bool !!null, aliases
 *   inside their own anchor, tabs as indentation, invalid UTF-8, NUL.
 * - Merge keys (<<) work. A key that is written out wins over a merged key, whatever their order.
 * - A text that starts with "{" and is JSON but not YAML (because of tabs) is read as JSON.
 *
 * Aliases are expanded. Every expanded node counts against nodes_max.
 */

struct hf_yaml_limits {
	size_t bytes_max; /* of the whole text; 0: HF_YAML_BYTES_MAX */
	size_t docs_max;  /* 0: HF_YAML_DOCS_MAX */
	size_t nodes_max; /* nodes of all documents together; 0: HF_YAML_NODES_MAX */
	int depth_max;    /* 0: HF_JSON_DEPTH_MAX */
};
/* For comparison: upstream's six CRDs in one file have 3.7 MB and about 90,000 nodes. */
#define HF_YAML_BYTES_MAX ((size_t)8 << 20)
#define HF_YAML_DOCS_MAX 1000
#define HF_YAML_NODES_MAX 250000

/* The documents of one text, and the positions of their fields. */
struct hf_yaml;

/* Parses a text. Documents without content ("---" alone, comments) are left out, so the result
 * may have no document. HF_E_TOO_LARGE: a limit is exceeded. HF_E_BAD_REQUEST: every other
 * problem. limits may be NULL; text may be NULL if len is 0. */
int hf_yaml_parse(const char *text, size_t len, const struct hf_yaml_limits *limits,
		  struct hf_yaml **ret_yaml, struct hf_error *err) HF_MUST_CHECK;
struct hf_yaml *hf_yaml_destroy(struct hf_yaml *yaml); /* accepts NULL; returns NULL */
void hf_yaml_cleanup(struct hf_yaml **yaml);
#define HF_AUTO_YAML HF_CLEANUP(hf_yaml_cleanup) struct hf_yaml *

size_t hf_yaml_len(const struct hf_yaml *yaml);
/* Returns document i, which belongs to yaml. A reference that the caller takes (hf_json_share)
 * stays valid after yaml is destroyed. */
struct hf_json *hf_yaml_doc(const struct hf_yaml *yaml, size_t i);

struct hf_yaml_place {
	int line, column; /* counted from 1; 0: unknown, because the text was JSON with tabs */
	/* true: the position of the field; false: the field is absent, and this is the position of
	 * the nearest existing field above it */
	bool exact;
};
/* Finds the position of a field of document i. The path has the form of error texts:
 * spec.pytorchReplicaSpecs[Worker].replicas, spec.pytorchReplicaSpecs.Worker.replicas,
 * spec.containers[0], metadata.labels[a.b/c]. The position of a field is that of its key, of an
 * item that of its value, of "" that of the document. */
struct hf_yaml_place hf_yaml_find(const struct hf_yaml *yaml, size_t i, const char *path);

#endif
