/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOOP_PIPE_H
#define HF_LOOP_PIPE_H

#include "base/error.h"
#include "loop/loop.h"

#include <stddef.h>

/* Pipes to and from child processes, read without blocking. */

#define HF_PIPE_READ_MAX (16u << 10) /* most bytes in one call of hf_reader_fn */

/* Returns two close-on-exec fds: [0] is the read end (non-blocking), [1] the write end (blocking,
 * for a child). */
int hf_pipe_make(int ret_fds[2], struct hf_error *err) HF_MUST_CHECK;

/* Reads an fd and passes the bytes to a callback. The reader keeps no bytes between calls, so the
 * receiver bounds the memory: it appends to a hf_strbuf with a maximum, or pauses the reader. */
struct hf_reader;
/* len > 0: bytes. len == 0: the last call, once; read_error is 0 at end of file, else an errno
 * value. */
typedef void (*hf_reader_fn)(void *arg, const char *bytes, size_t len, int read_error);
/* On success the reader owns fd and closes it. */
int hf_reader_create(struct hf_loop *loop, int fd, hf_reader_fn fn, void *arg,
		     struct hf_reader **ret_reader, struct hf_error *err) HF_MUST_CHECK;
struct hf_reader *hf_reader_destroy(struct hf_reader *reader); /* accepts NULL; returns NULL */
void hf_reader_pause(struct hf_reader *reader);
void hf_reader_resume(struct hf_reader *reader);
/* Reads what the pipe holds now, including the end of file, without the loop. Call it when the
 * writer has ended but another process may still hold the write end open. */
void hf_reader_drain(struct hf_reader *reader);

#endif
