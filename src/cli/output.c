/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Parses -o and prints objects as JSON, YAML, names, JSONPath or custom columns, in kubectl's
 * formats. */
#include "cli/output.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/text.h"
#include "json/yaml_write.h"
#include "store/resource.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define PRINT_BYTES_MAX ((size_t)1 << 30)  /* limit of one verb's output */
#define FIELD_BYTES_MAX ((size_t)64 << 10) /* a message of a condition has at most 32 KiB */

void hf_output_field(FILE *out, const char *name, const char *fmt, ...)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(FIELD_BYTES_MAX);
	va_list ap;

	va_start(ap, fmt);
	hf_strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	fprintf(out, "%-14s ", name);
	hf_text_print_safe(out, text.data);
	fputc('\n', out);
}

void hf_output_release(struct hf_output *output)
{
	output->path = hf_jsonpath_destroy(output->path);
	for (size_t i = 0; i < output->n_columns; i++) {
		free(output->headers[i]);
		hf_jsonpath_destroy(output->columns[i]);
	}
	output->n_columns = 0;
}

/* "NAME:.metadata.name,STATE:.status.phase" */
static int parse_columns(struct hf_cli *cli, const char *text, struct hf_output *output)
{
	HF_AUTOFREE char *copy = hf_xstrdup(text);
	char *rest = copy, *column;

	while ((column = strsep(&rest, ",")) != NULL) {
		char *colon = strchr(column, ':');
		struct hf_error err;
		if (colon == NULL || colon == column)
			return hf_cli_usage(
				cli,
				"-o custom-columns: '%s' is not HEADER:PATH, such as NAME:.metadata.name",
				column);
		if (output->n_columns == HF_OUTPUT_COLUMNS_MAX)
			return hf_cli_usage(cli, "-o custom-columns: more than %d columns",
					    HF_OUTPUT_COLUMNS_MAX);
		*colon = '\0';
		if (hf_jsonpath_compile_relaxed(colon + 1, &output->columns[output->n_columns],
						&err) != 0)
			return hf_cli_usage(cli, "-o custom-columns: column '%s': %s", column,
					    err.text);
		output->headers[output->n_columns++] = hf_xstrdup(column);
	}
	return 0;
}

int hf_output_parse(struct hf_cli *cli, struct hf_output *ret_output)
{
	static const struct {
		const char *name;
		enum hf_output_kind kind;
	} plain[] = {{"wide", HF_OUTPUT_WIDE},
		     {"json", HF_OUTPUT_JSON},
		     {"yaml", HF_OUTPUT_YAML},
		     {"name", HF_OUTPUT_NAME}};
	const char *text = hf_cli_flag(cli, "output");
	struct hf_error err;

	*ret_output = (struct hf_output){.kind = HF_OUTPUT_TABLE};
	if (text == NULL)
		return 0;
	for (size_t i = 0; i < HF_ARRAY_LEN(plain); i++) {
		if (hf_streq(text, plain[i].name)) {
			ret_output->kind = plain[i].kind;
			return 0;
		}
	}
	if (hf_str_has_prefix(text, "jsonpath=")) {
		ret_output->kind = HF_OUTPUT_JSONPATH;
		if (hf_jsonpath_compile(text + strlen("jsonpath="), &ret_output->path, &err) != 0)
			return hf_cli_usage(cli, "-o jsonpath: %s", err.text);
		return 0;
	}
	if (hf_str_has_prefix(text, "custom-columns=")) {
		ret_output->kind = HF_OUTPUT_COLUMNS;
		return parse_columns(cli, text + strlen("custom-columns="), ret_output);
	}
	return hf_cli_usage(cli,
			    "-o takes wide, json, yaml, name, jsonpath=TEMPLATE or "
			    "custom-columns=HEADER:PATH,…; not '%s'",
			    text);
}

static struct hf_json *list_of(struct hf_doc *const *docs, size_t n_docs)
{
	struct hf_json *list = hf_json_object();
	struct hf_json *items;

	hf_json_set_str(list, "apiVersion", "v1");
	items = hf_json_ensure_array(list, "items");
	for (size_t i = 0; i < n_docs; i++)
		hf_json_append(items, hf_doc_copy_json(docs[i]));
	hf_json_set_str(list, "kind", "List");
	hf_json_set_str(hf_json_ensure_object(list, "metadata"), "resourceVersion", "");
	return list;
}

static int print_names(struct hf_cli *cli, struct hf_doc *const *docs, size_t n_docs)
{
	for (size_t i = 0; i < n_docs; i++) {
		const struct hf_json *root = hf_doc_json(docs[i]);
		const struct hf_resource *resource = hf_resource_by_kind(
			hf_str_or(hf_json_path_str(root, "apiVersion", NULL), ""),
			hf_str_or(hf_json_path_str(root, "kind", NULL), ""));
		fprintf(cli->out, "%s%s%s/%s\n", resource != NULL ? resource->singular : "object",
			resource != NULL && resource->group[0] != '\0' ? "." : "",
			resource != NULL ? resource->group : "", hf_doc_name(docs[i]));
	}
	return HF_EXIT_OK;
}

static int print_columns(struct hf_cli *cli, const struct hf_output *output,
			 struct hf_doc *const *docs, size_t n_docs)
{
	struct hf_table *table =
		hf_table_create((const char *const *)output->headers, output->n_columns);
	struct hf_error err = {.code = 0};

	for (size_t i = 0; i < n_docs; i++) {
		for (size_t c = 0; c < output->n_columns; c++) {
			HF_AUTO_STRBUF cell = HF_STRBUF_INIT(65536);
			if (hf_jsonpath_column(output->columns[c], hf_doc_json(docs[i]), &cell,
					       &err) != 0)
				hf_strbuf_addstr(&cell, "<none>");
			hf_table_cell(table, "%s", cell.data);
		}
	}
	hf_table_print(table, cli->out, !hf_cli_has(cli, "no-headers"));
	hf_table_destroy(table);
	return HF_EXIT_OK;
}

static int print_value(struct hf_cli *cli, const struct hf_output *output,
		       const struct hf_json *value)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(PRINT_BYTES_MAX);
	struct hf_error err;

	switch (output->kind) {
	case HF_OUTPUT_JSON:
		hf_json_write(value, HF_JSON_INDENTED, &text);
		hf_strbuf_addch(&text, '\n');
		break;
	case HF_OUTPUT_YAML: hf_yaml_write(value, &text); break;
	default:
		if (hf_jsonpath_print(output->path, value, &text, &err) != 0)
			return hf_cli_fail(cli, &err);
		break;
	}
	if (hf_strbuf_ok(&text, "output", &err) != 0)
		return hf_cli_fail(cli, &err);
	(void)fwrite(text.data, 1, text.len, cli->out);
	return HF_EXIT_OK;
}

int hf_output_docs(struct hf_cli *cli, const struct hf_output *output, struct hf_doc *const *docs,
		   size_t n_docs, bool single)
{
	HF_AUTO_JSON list = NULL;

	hf_assert(output->kind != HF_OUTPUT_TABLE && output->kind != HF_OUTPUT_WIDE);
	if (output->kind == HF_OUTPUT_NAME)
		return print_names(cli, docs, n_docs);
	if (output->kind == HF_OUTPUT_COLUMNS)
		return print_columns(cli, output, docs, n_docs);
	if (single && n_docs == 1)
		return print_value(cli, output, hf_doc_json(docs[0]));
	list = list_of(docs, n_docs);
	return print_value(cli, output, list);
}

/* Fractions of a second make the table wide. */
static void add_time(struct hf_table *table, const char *text)
{
	char time[HF_TIME_TEXT_MAX];
	hf_time at;

	if (hf_time_parse(text, &at, NULL) == 0) {
		hf_time_format(at, time);
		text = time;
	}
	hf_table_cell(table, "%s", text);
}

void hf_output_conditions(FILE *out, const struct hf_json *object)
{
	static const char *const headers[] = {"TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"};
	const struct hf_json *list = hf_json_path(object, "status", "conditions", NULL);
	struct hf_table *table = hf_table_create(headers, HF_ARRAY_LEN(headers));

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *item = hf_json_item(list, i);

		hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(item, "type", NULL), ""));
		hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(item, "status", NULL), ""));
		hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(item, "reason", NULL), ""));
		add_time(table, hf_str_or(hf_json_path_str(item, "lastTransitionTime", NULL), ""));
		hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(item, "message", NULL), ""));
	}
	fputs("\nConditions:\n", out);
	hf_table_print(table, out, true);
	hf_table_destroy(table);
}
