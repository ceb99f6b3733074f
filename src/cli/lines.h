/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_LINES_H
#define HF_CLI_LINES_H

#include "base/strbuf.h"

#include <stdio.h>

HF_BEGIN_DECLS

/*
 * One log on the output: as it is, or among others, each line with a prefix and written when it
 * is whole.
 */
struct hf_cli_lines {
	FILE *out;
	char *prefix;          /* NULL: bytes as they come */
	struct hf_strbuf line; /* with a prefix: what is not yet whole */
	bool inside;           /* without one: the last byte was no line's end */
};

#define HF_CLI_LINE_BYTES_MAX ((size_t)64 << 10) /* a longer one is written as several */

/* prefix is copied; NULL: none. */
void hf_cli_lines_init(struct hf_cli_lines *lines, FILE *out, const char *prefix);
void hf_cli_lines_release(struct hf_cli_lines *lines);
/* Also flushes; HF_E_IO: the output cannot be written. */
int hf_cli_lines_write(struct hf_cli_lines *lines, const char *bytes, size_t len) HF_MUST_CHECK;
/* What comes next begins a line. */
void hf_cli_lines_break(struct hf_cli_lines *lines);
/* Nothing more comes: what is not whole and was kept back is written. */
void hf_cli_lines_end(struct hf_cli_lines *lines);

HF_END_DECLS

#endif
