/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_YAML_INTERNAL_H
#define HF_JSON_YAML_INTERNAL_H

#include "json/yaml.h"

/* What a scalar without quotes and tags is. */
struct hf_yaml_scalar {
	enum hf_json_type type; /* NULL, BOOL, INT, REAL (perhaps not finite) or STRING */
	int64_t integer;        /* INT, and 0 or 1 of a BOOL */
	double real;
};

/* As go.yaml.in/yaml/v2 resolves it (resolve.go), its way through JSON text included. */
void hf_yaml_resolve(const char *text, size_t len, struct hf_yaml_scalar *ret_scalar);

/* Strings that a writer quotes although this reader takes them for strings: other readers
 * see a date, or a number to base 60 (12:30:45). */
bool hf_yaml_is_timestamp(const char *text);
bool hf_yaml_is_base60(const char *text);

/* Where a value stands, and what is inside of it. */
struct hf_yaml_mark {
	int line, column; /* of the key, of an item that of its value */
	const char *key;  /* NULL: an item, or the document */
	struct hf_yaml_mark *first, *next;
};

struct hf_yaml_place hf_yaml_mark_find(const struct hf_yaml_mark *mark, const char *path);

#endif
