/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Writes one log to the output: as raw bytes, or as whole lines with a prefix, so that the lines
 * of several logs do not mix. */
#include "cli/log_writer.h"

#include "base/mem.h"

#include <stdlib.h>

void hf_log_writer_init(struct hf_log_writer *lines, FILE *out, bool terminal, const char *prefix)
{
	*lines = (struct hf_log_writer){.out = out, .terminal = terminal};
	lines->prefix = prefix != NULL ? hf_xstrdup(prefix) : NULL;
	hf_strbuf_init(&lines->line, HF_CLI_LINE_BYTES_MAX);
}

void hf_log_writer_release(struct hf_log_writer *lines)
{
	hf_strbuf_release(&lines->line);
	free(lines->prefix);
	lines->prefix = NULL;
}

static void print_line(struct hf_log_writer *lines)
{
	fprintf(lines->out, "%s | ", lines->prefix);
	(void)fwrite(lines->line.data, 1, lines->line.len, lines->out);
	fputc('\n', lines->out);
	hf_strbuf_clear(&lines->line);
}

static void write_bytes(struct hf_log_writer *lines, const char *bytes, size_t len)
{
	if (lines->prefix == NULL) {
		(void)fwrite(bytes, 1, len, lines->out);
		if (len > 0)
			lines->inside = bytes[len - 1] != '\n';
	}
	for (size_t i = 0; lines->prefix != NULL && i < len; i++) {
		if (lines->line.len == HF_CLI_LINE_BYTES_MAX)
			print_line(lines);
		if (bytes[i] == '\n')
			print_line(lines);
		else
			hf_strbuf_addch(&lines->line, bytes[i]);
	}
}

int hf_log_writer_write(struct hf_log_writer *lines, const char *bytes, size_t len)
{
	HF_AUTO_STRBUF clean = HF_STRBUF_INIT(len + 16);

	if (lines->terminal) {
		hf_terminal_filter_add(&lines->filter, bytes, len, &clean);
		write_bytes(lines, clean.data, clean.len);
	} else {
		write_bytes(lines, bytes, len);
	}
	return fflush(lines->out) == 0 ? 0 : HF_E_IO;
}

void hf_log_writer_end(struct hf_log_writer *lines)
{
	if (lines->line.len > 0)
		print_line(lines);
}

void hf_log_writer_break_line(struct hf_log_writer *lines)
{
	hf_log_writer_end(lines);
	if (lines->inside)
		fputc('\n', lines->out);
	lines->inside = false;
}
