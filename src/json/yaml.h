/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_YAML_H
#define HF_JSON_YAML_H

#include "json/json.h"

/*
 * YAML files as kubectl reads them (YAML 1.1 as go.yaml.in/yaml/v2 resolves it), stricter
 * where laxness hides mistakes:
 *
 * - plain y, yes, on, true (and Yes, YES, …) are true, n, no, off, false are false; ~, null
 *   and nothing are null; 0x1F, 017, 0o17, 0b11 and 1_000 are integers; integers beyond
 *   int64 become reals, as in the API machinery; .inf and .nan are refused (JSON has none);
 *   dates stay strings;
 * - refused, each with line and column: duplicate keys (with both lines), keys that are no
 *   strings (8080: must be "8080":), tags other than !!str !!int !!float !!bool !!null,
 *   aliases inside their own anchor, tabs as indentation, bytes that are no UTF-8, NUL;
 * - merge keys (<<) work; a key written out wins over a merged one wherever it stands;
 * - a text that starts with "{" and is JSON but no YAML (tabs) is taken as JSON.
 *
 * Aliases are expanded, and every node made by expansion counts against nodes_max.
 */

struct hf_yaml_limits {
	size_t bytes_max; /* of the whole text; 0: HF_YAML_BYTES_MAX */
	size_t docs_max;  /* 0: HF_YAML_DOCS_MAX */
	size_t nodes_max; /* of all documents together; 0: HF_YAML_NODES_MAX */
	int depth_max;    /* 0: HF_JSON_DEPTH_MAX */
};
/* Six upstream CRDs in one file are 3.7 MB and about 90,000 nodes. */
#define HF_YAML_BYTES_MAX ((size_t)8 << 20)
#define HF_YAML_DOCS_MAX 1000
#define HF_YAML_NODES_MAX 250000

/* The documents of one text, and where their fields stand. */
struct hf_yaml;

/* Documents without content ("---" alone, comments) are left out, so there may be none.
 * HF_E_TOO_LARGE: over a limit; HF_E_BAD_REQUEST: all else.  limits may be NULL, text too
 * where len is 0. */
int hf_yaml_parse(const char *text, size_t len, const struct hf_yaml_limits *limits,
		  struct hf_yaml **ret_yaml, struct hf_error *err) HF_MUST_CHECK;
struct hf_yaml *hf_yaml_destroy(struct hf_yaml *yaml); /* NULL is fine; returns NULL */
void hf_yaml_cleanup(struct hf_yaml **yaml);
#define HF_AUTO_YAML HF_CLEANUP(hf_yaml_cleanup) struct hf_yaml *

size_t hf_yaml_len(const struct hf_yaml *yaml);
/* Document i, borrowed; a reference to it may be taken and outlives yaml. */
struct hf_json *hf_yaml_doc(const struct hf_yaml *yaml, size_t i);

struct hf_yaml_place {
	int line, column; /* from 1; 0: not known (the text was JSON with tabs) */
	bool exact;       /* false: of the nearest field above that is there */
};
/*
 * Where a field of document i stands, by its path as error texts have it:
 * spec.pytorchReplicaSpecs[Worker].replicas, spec.pytorchReplicaSpecs.Worker.replicas,
 * spec.containers[0], metadata.labels[a.b/c].  The place of a field is that of its key, of an
 * item that of its value, of "" that of the document.
 */
struct hf_yaml_place hf_yaml_find(const struct hf_yaml *yaml, size_t i, const char *path);

#endif
