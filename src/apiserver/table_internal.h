/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APISERVER_TABLE_INTERNAL_H
#define HF_APISERVER_TABLE_INTERNAL_H

#include "apiserver/apiserver_internal.h"

/* The table of a kind: its columns, and a function that adds the cells of a row in the order of
 * the columns. */
struct hf_column {
	const char *name; /* NULL ends the list */
	const char *type; /* OpenAPI type: "string", "date" */
	const char *format;
	int priority; /* 1: shown only with -o wide */
};
struct hf_printer {
	const struct hf_resource *resource;
	const struct hf_column *columns;
	void (*print)(struct hf_json *cells, const struct hf_json *object, hf_time now);
};

/* Pods and nodes (table_pods.c). */
extern const struct hf_column hf_pod_columns[];
extern const struct hf_column hf_node_columns[];
void hf_print_pod(struct hf_json *cells, const struct hf_json *pod, hf_time now);
void hf_print_node(struct hf_json *cells, const struct hf_json *node, hf_time now);

/* Makers of cells. hf_cell_str: the text at path a.b, or "". hf_cell_age: the time since an RFC
 * 3339 time, as "5m". hf_cell_or_none: the text, or "<none>". hf_cell_labels: labels as
 * "a=b,c=d". */
struct hf_json *hf_cell_str(const struct hf_json *object, const char *a, const char *b);
struct hf_json *hf_cell_age(const char *time, hf_time now);
struct hf_json *hf_cell_or_none(const char *text);
struct hf_json *hf_cell_labels(const struct hf_json *labels);
void hf_cell_add(struct hf_json *cells, struct hf_json *value); /* NULL adds a null */

#endif
