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
 * CMD's stderr or stdout on its way to the own file. Input: a pipe whose other end CMD has. Output: the same bytes, and
 * calls with the bytes and with the lines. CMD waits for a reader that is slow, as it would without exec, and gets SIGPIPE if
 * the reader is gone.
 */

/* poll() calls a pipe writable when this many bytes fit. */
#define HF_EXEC_CHUNK 4096

struct hf_exec_stream {
	int own;  /* STDOUT_FILENO or STDERR_FILENO */
	int from; /* the pipe; -1: CMD has the own file, or its output has ended */
	int to;   /* the own file, where writing never blocks if that is possible */
	char chunk[HF_EXEC_CHUNK];
	size_t len, at;
	char line[HF_PATTERN_LINE_BYTES_MAX]; /* the begin of the present line */
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

/* Bytes wait for the own file. */
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
