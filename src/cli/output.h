/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_OUTPUT_H
#define HF_CLI_OUTPUT_H

#include "cli/cli.h"
#include "json/doc.h"
#include "json/jsonpath.h"

HF_BEGIN_DECLS

/* The format that -o selects. */
enum hf_output_kind {
	HF_OUTPUT_TABLE,
	HF_OUTPUT_WIDE,
	HF_OUTPUT_JSON,
	HF_OUTPUT_YAML,
	HF_OUTPUT_NAME,
	HF_OUTPUT_JSONPATH,
	HF_OUTPUT_COLUMNS,
};

#define HF_OUTPUT_COLUMNS_MAX 64

struct hf_output {
	enum hf_output_kind kind;
	struct hf_jsonpath *path; /* JSONPATH */
	size_t n_columns;         /* COLUMNS */
	char *headers[HF_OUTPUT_COLUMNS_MAX];
	struct hf_jsonpath *columns[HF_OUTPUT_COLUMNS_MAX];
};

/* Parse the flag -o. Returns 0, or HF_EXIT_USAGE after a message. */
int hf_output_parse(struct hf_cli *cli, struct hf_output *ret_output);
void hf_output_release(struct hf_output *output);
#define HF_AUTO_OUTPUT HF_CLEANUP(hf_output_release) struct hf_output

/* Print documents in each format except the two tables. The output is a "kind: List", unless
 * `single` is set and n_docs is 1. Returns an exit code. */
int hf_output_docs(struct hf_cli *cli, const struct hf_output *output, struct hf_doc *const *docs,
		   size_t n_docs, bool single);

/* Print a line "NAME:  text" of a description, without control characters. */
void hf_output_field(FILE *out, const char *name, const char *fmt, ...) HF_PRINTF(3, 4);

/*
 * A table of text: columns are as wide as their widest cell, three blanks apart.  Control
 * characters of cells are printed as blanks.
 */
struct hf_table;
struct hf_table *hf_table_create(const char *const *headers, size_t n_columns);
struct hf_table *hf_table_destroy(struct hf_table *table); /* NULL is fine */
void hf_table_cell(struct hf_table *table, const char *fmt, ...) HF_PRINTF(2, 3);
/* Add the time that has passed since `since`, a time in RFC 3339. NULL or other text: "<unknown>". */
void hf_table_cell_age(struct hf_table *table, const char *since, hf_time now);
void hf_table_print(const struct hf_table *table, FILE *out, bool headers);
/* Column widths for rows that are printed at different times, as by `get -w`. Widths only grow.
 * Set to zeros before the first use. */
struct hf_table_widths {
	size_t columns[HF_OUTPUT_COLUMNS_MAX];
};
/* Widen the columns so that the cells of a table fit, without printing the table. */
void hf_table_fit(const struct hf_table *table, bool headers, struct hf_table_widths *widths);
void hf_table_print_on(const struct hf_table *table, FILE *out, bool headers,
		       struct hf_table_widths *widths);
size_t hf_table_rows(const struct hf_table *table);

/* Print the conditions of an object's status as a table with a title. */
void hf_output_conditions(FILE *out, const struct hf_json *object);

HF_END_DECLS

#endif
