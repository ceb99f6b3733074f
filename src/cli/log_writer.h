/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_LOG_WRITER_H
#define HF_CLI_LOG_WRITER_H

#include "base/strbuf.h"
#include "cli/terminal_filter.h"

#include <stdio.h>

HF_BEGIN_DECLS

/*
 * Writes one log to the output.  Without a prefix, bytes are written as they come, except
 * that a terminal gets no escape sequences.  With a prefix,
 * a line is written once it is whole, so that lines of several logs do not mix.
 */
struct hf_log_writer {
	FILE *out;
	/* text that is written before each line; NULL: bytes are written as they come */
	char *prefix;
	struct hf_strbuf line; /* the bytes of the unfinished line; used only with a prefix */
	bool inside;   /* the last written byte was not a newline; used only without a prefix */
	bool terminal; /* `out` is a terminal: escape sequences are removed */
	struct hf_terminal_filter filter;
};

/* limit of a line; a longer line is written as several lines */
#define HF_CLI_LINE_BYTES_MAX ((size_t)64 << 10)

/* terminal: `out` is a terminal. prefix is copied; NULL: none. */
void hf_log_writer_init(struct hf_log_writer *lines, FILE *out, bool terminal, const char *prefix);
void hf_log_writer_release(struct hf_log_writer *lines);
/* Write and flush.  HF_E_IO: the output cannot be written. */
int hf_log_writer_write(struct hf_log_writer *lines, const char *bytes, size_t len) HF_MUST_CHECK;
/* End an unfinished line, so that the next bytes begin a new one. */
void hf_log_writer_break_line(struct hf_log_writer *lines);
/* Write the unfinished line that was kept back, at the end of the log. */
void hf_log_writer_end(struct hf_log_writer *lines);

HF_END_DECLS

#endif
