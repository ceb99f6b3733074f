/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_YAML_INTERNAL_H
#define HF_JSON_YAML_INTERNAL_H

#include "json/yaml.h"

/* The meaning of a scalar without quotes and tags. */
struct hf_yaml_scalar {
	enum hf_json_type type; /* NULL, BOOL, INT, REAL (may be infinite or NaN) or STRING */
	int64_t integer;        /* value of an INT; 0 or 1 for a BOOL */
	double real;
};

/* Resolves a scalar as go.yaml.in/yaml/v2 does (resolve.go), including its conversion to JSON
 * text. */
void hf_yaml_resolve(const char *text, size_t len, struct hf_yaml_scalar *ret_scalar);

/* True for strings that a writer must quote although this reader takes them for strings. Other
 * readers would see a date, or a number to base 60 (12:30:45). */
bool hf_yaml_is_timestamp(const char *text);
bool hf_yaml_is_base60(const char *text);

/* The position of a value and of its children. */
struct hf_yaml_mark {
	int line, column; /* position of the key; for an item of a list, of its value */
	/* key of the value; NULL: the value is an item of a list, or the whole document */
	const char *key;
	struct hf_yaml_mark *first, *next;
};

struct hf_yaml_place hf_yaml_mark_find(const struct hf_yaml_mark *mark, const char *path);

#endif
