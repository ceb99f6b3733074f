/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOOP_PIPE_H
#define HF_LOOP_PIPE_H

#include "base/error.h"
#include "loop/loop.h"

#include <stddef.h>

/* Pipes to and from children, without blocking. */

#define HF_PIPE_READ_MAX (16u << 10) /* bytes handed over at a time, at most */

/* Two close-on-exec fds: [0] reads (non-blocking), [1] writes (blocking, for a child). */
int hf_pipe_make(int ret_fds[2], struct hf_error *err) HF_MUST_CHECK;

/*
 * Reads an fd and hands over what comes.  No bytes are kept between calls, so the
 * bound on memory is the receiver's: it appends to a hf_strbuf with a maximum, or
 * pauses.
 */
struct hf_reader;
/* len > 0: bytes.  len == 0: the end (read_error 0) or an error number, called once, last. */
typedef void (*hf_reader_fn)(void *arg, const char *bytes, size_t len, int read_error);
/* Owns fd from a success on. */
int hf_reader_create(struct hf_loop *loop, int fd, hf_reader_fn fn, void *arg,
		     struct hf_reader **ret_reader, struct hf_error *err) HF_MUST_CHECK;
struct hf_reader *hf_reader_destroy(struct hf_reader *reader); /* NULL is fine; returns NULL */
void hf_reader_pause(struct hf_reader *reader);
void hf_reader_resume(struct hf_reader *reader);
/* Hand over now what is there to be read, the end included: for when the writer is known to
 * have written its last, but somebody else still holds the other end. */
void hf_reader_drain(struct hf_reader *reader);

#endif
