/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_STREAM_H
#define HF_EXEC_STREAM_H

#include "base/compiler.h"
#include "pattern/pattern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * Passes CMD's stderr or stdout on to the same file of exec. Input: a pipe to which CMD writes. Output: the same bytes in
 * exec's file, and calls with the bytes and with the lines. If the reader of exec's file is slow, CMD waits, as it would
 * without exec. If that reader is gone, CMD gets SIGPIPE.
 */

/* poll() calls a pipe writable when this many bytes fit. */
#define HF_EXEC_CHUNK 4096

struct hf_exec_stream {
	int own;  /* STDOUT_FILENO or STDERR_FILENO */
	int from; /* the pipe; -1: CMD has exec's file, or its output has ended */
	int to;   /* exec's file, where writing never blocks if that is possible */
	char chunk[HF_EXEC_CHUNK];
	size_t len, at;
	char line[HF_PATTERN_LINE_BYTES_MAX]; /* the beginning of the present line */
	size_t line_len;
	void (*took_bytes)(void *arg, const char *bytes, size_t len); /* may be NULL */
	void (*took_line)(void *arg, const char *line, size_t len);   /* may be NULL */
	void *arg;
};

/* 0 or an errno. ret_write: the end for CMD, which the caller closes. */
int hf_exec_stream_begin(struct hf_exec_stream *stream, int *ret_write);
/* Reads once. ended: CMD has ended, so an empty pipe is the end, though another process may hold it open. */
void hf_exec_stream_read(struct hf_exec_stream *stream, bool ended);
void hf_exec_stream_write(struct hf_exec_stream *stream);
/* Closes the pipe; the rest of a line counts as a line. */
void hf_exec_stream_stop(struct hf_exec_stream *stream);

/* Bytes wait for exec's file. */
static inline bool hf_exec_stream_is_full(const struct hf_exec_stream *stream)
{
	return stream->len > 0;
}

static inline bool hf_exec_stream_is_done(const struct hf_exec_stream *stream)
{
	return stream->from < 0 && stream->len == 0;
}

HF_END_DECLS

#endif
