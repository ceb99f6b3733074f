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
 * A growable byte string whose maximum size is set at its creation.
 *
 * Invariants: data is never NULL and data[len] is always NUL. Bytes before len may be NUL too.
 *
 * Growing beyond bytes_max sets the flag `full`. The bytes that still fit are kept; the rest and
 * all later additions are dropped. So writers can add without checks, and the owner calls
 * hf_strbuf_ok once at the end.
 */
struct hf_strbuf {
	char *data;
	size_t len;
	/* allocated bytes; 0: nothing is allocated, and data points to hf_strbuf_empty */
	size_t cap;
	size_t bytes_max; /* maximum of len */
	bool full;        /* some bytes did not fit and were dropped */
};

/* data points here while cap is 0. Read-only memory, so that a write to it crashes. */
extern const char hf_strbuf_empty[1];
#define HF_STRBUF_INIT(max)                                                                        \
	{                                                                                          \
		.data = (char *)(uintptr_t)hf_strbuf_empty, .bytes_max = (max)                     \
	}

void hf_strbuf_init(struct hf_strbuf *sb, size_t bytes_max);
void hf_strbuf_release(struct hf_strbuf *sb); /* frees the memory; the buffer is usable and empty */
void hf_strbuf_clear(struct hf_strbuf *sb);   /* len = 0 and full = false; keeps the memory */

void hf_strbuf_add(struct hf_strbuf *sb, const void *bytes, size_t len);
void hf_strbuf_addstr(struct hf_strbuf *sb, const char *s);
void hf_strbuf_addch(struct hf_strbuf *sb, char c);
void hf_strbuf_addf(struct hf_strbuf *sb, const char *fmt, ...) HF_PRINTF(2, 3);
void hf_strbuf_vaddf(struct hf_strbuf *sb, const char *fmt, va_list ap) HF_PRINTF(2, 0);
/* Removes the first len bytes. */
void hf_strbuf_consume(struct hf_strbuf *sb, size_t len);
void hf_strbuf_truncate(struct hf_strbuf *sb, size_t len);
/* Returns room for at least `more` bytes behind len, for code that writes in place; then call
 * hf_strbuf_grew with the number of bytes written. Returns NULL if bytes_max would be exceeded;
 * the flag `full` does not change then. */
char *hf_strbuf_reserve(struct hf_strbuf *sb, size_t more);
void hf_strbuf_grew(struct hf_strbuf *sb, size_t len);

/* Returns 0, or HF_E_TOO_LARGE if bytes were dropped. The text names `what` and the limit. */
int hf_strbuf_ok(const struct hf_strbuf *sb, const char *what, struct hf_error *err) HF_MUST_CHECK;

/* Returns the string, which the caller must free. The buffer is empty and usable afterwards. */
char *hf_strbuf_detach(struct hf_strbuf *sb);

#define HF_AUTO_STRBUF HF_CLEANUP(hf_strbuf_release) struct hf_strbuf

HF_END_DECLS

#endif
