/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_STRBUF_H
#define HF_BASE_STRBUF_H

#include "base/compiler.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * A growable byte string, born with a maximum.
 *
 * Invariants: data is never NULL and data[len] is always NUL; bytes inside may
 * be NUL too.  Growing past bytes_max sets the flag `full`, keeps what fitted and
 * drops the rest and all that is added later: writers add freely and the owner
 * asks once, with hf_strbuf_ok, at the end.
 */
struct hf_strbuf {
	char *data;
	size_t len;
	size_t cap;       /* 0: data is not ours yet */
	size_t bytes_max; /* of len, without the NUL */
	bool full;        /* something did not fit */
};

/* What data points to while cap is 0; read-only, so that a stray write is found. */
extern const char hf_strbuf_empty[1];
#define HF_STRBUF_INIT(max)                                                                        \
	{                                                                                          \
		.data = (char *)(uintptr_t)hf_strbuf_empty, .bytes_max = (max)                     \
	}

void hf_strbuf_init(struct hf_strbuf *sb, size_t bytes_max);
void hf_strbuf_release(struct hf_strbuf *sb); /* frees; the buffer may be used again */
void hf_strbuf_clear(struct hf_strbuf *sb);   /* len = 0, full = false; keeps the memory */

void hf_strbuf_add(struct hf_strbuf *sb, const void *bytes, size_t len);
void hf_strbuf_addstr(struct hf_strbuf *sb, const char *s);
void hf_strbuf_addch(struct hf_strbuf *sb, char c);
void hf_strbuf_addf(struct hf_strbuf *sb, const char *fmt, ...) HF_PRINTF(2, 3);
void hf_strbuf_vaddf(struct hf_strbuf *sb, const char *fmt, va_list ap) HF_PRINTF(2, 0);
/* Remove the first len bytes. */
void hf_strbuf_consume(struct hf_strbuf *sb, size_t len);
void hf_strbuf_truncate(struct hf_strbuf *sb, size_t len);
/* Room for at least `more` bytes behind len, for code that writes in place; NULL
 * where that would pass bytes_max (the flag `full` is left as it is).  The writer
 * then calls hf_strbuf_grew. */
char *hf_strbuf_reserve(struct hf_strbuf *sb, size_t more);
void hf_strbuf_grew(struct hf_strbuf *sb, size_t len);

/* 0, or HF_E_TOO_LARGE with a text that names `what` and the limit. */
int hf_strbuf_ok(const struct hf_strbuf *sb, const char *what, struct hf_error *err) HF_MUST_CHECK;

/* The string, now the caller's to free; the buffer is empty again. */
char *hf_strbuf_detach(struct hf_strbuf *sb);

#define HF_AUTO_STRBUF HF_CLEANUP(hf_strbuf_release) struct hf_strbuf

HF_END_DECLS

#endif
