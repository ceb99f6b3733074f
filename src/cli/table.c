/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Builds and prints tables of text. Columns are as wide as their widest cell, with three blanks
 * between them. */
#include "cli/output.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/text.h"

#include <stdlib.h>
#include <string.h>

#define CELLS_MAX (HF_OUTPUT_COLUMNS_MAX * 100000)
#define CELL_BYTES_MAX 4096
#define GAP 3

struct hf_table {
	const char *const *headers;
	size_t n_columns;
	HF_VEC(char *) cells; /* row by row */
};

struct hf_table *hf_table_create(const char *const *headers, size_t n_columns)
{
	struct hf_table *table = hf_xcalloc(1, sizeof(*table));

	hf_assert(n_columns > 0 && n_columns <= HF_OUTPUT_COLUMNS_MAX);
	table->headers = headers;
	table->n_columns = n_columns;
	table->cells.len_max = CELLS_MAX;
	return table;
}

struct hf_table *hf_table_destroy(struct hf_table *table)
{
	if (table == NULL)
		return NULL;
	for (size_t i = 0; i < table->cells.len; i++)
		free(table->cells.items[i]);
	HF_VEC_RELEASE(&table->cells);
	free(table);
	return NULL;
}

void hf_table_cell(struct hf_table *table, const char *fmt, ...)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(CELL_BYTES_MAX);
	va_list ap;

	va_start(ap, fmt);
	hf_strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	char *cell = hf_strbuf_detach(&text);
	hf_text_blank(cell);
	if (!HF_VEC_PUSH(&table->cells, cell))
		/* the table has reached its limit of cells, so this cell is not shown */
		free(cell);
}

void hf_table_cell_age(struct hf_table *table, const char *since, hf_time now)
{
	char age[HF_TIME_TEXT_MAX] = "<unknown>";
	hf_time time;

	if (since != NULL && hf_time_parse(since, &time, NULL) == 0)
		hf_span_format(now > time ? now - time : 0, age);
	hf_table_cell(table, "%s", age);
}

size_t hf_table_rows(const struct hf_table *table)
{
	hf_assert(table->n_columns > 0);
	return table->cells.len / table->n_columns;
}

static void print_row(const struct hf_table *table, const char *const *cells, const size_t *widths,
		      FILE *out)
{
	for (size_t c = 0; c < table->n_columns; c++) {
		bool last = c + 1 == table->n_columns;
		fputs(cells[c], out);
		if (!last)
			fprintf(out, "%*s", (int)(widths[c] - hf_utf8_count(cells[c]) + GAP), "");
	}
	fputc('\n', out);
}

void hf_table_fit(const struct hf_table *table, bool headers, struct hf_table_widths *widths)
{
	size_t *width = widths->columns;

	hf_assert(table->n_columns > 0);
	for (size_t c = 0; headers && c < table->n_columns; c++)
		if (hf_utf8_count(table->headers[c]) > width[c])
			width[c] = hf_utf8_count(table->headers[c]);
	for (size_t i = 0; i < table->cells.len; i++) {
		size_t cell = hf_utf8_count(table->cells.items[i]);
		if (cell > width[i % table->n_columns])
			width[i % table->n_columns] = cell;
	}
}

void hf_table_print_on(const struct hf_table *table, FILE *out, bool headers,
		       struct hf_table_widths *widths)
{
	const size_t *width = widths->columns;

	hf_table_fit(table, headers, widths);
	if (headers)
		print_row(table, table->headers, width, out);
	for (size_t row = 0; row < hf_table_rows(table); row++)
		print_row(table, (const char *const *)&table->cells.items[row * table->n_columns],
			  width, out);
}

void hf_table_print(const struct hf_table *table, FILE *out, bool headers)
{
	struct hf_table_widths widths = {{0}};

	hf_table_print_on(table, out, headers, &widths);
}
