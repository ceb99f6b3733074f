/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * A growable byte string with a maximum size.
 *
 * The memory doubles when it grows, so that appending a byte has a constant cost, up to bytes_max +
 * 1 bytes. More bytes are dropped: a peer that sends without end cannot use more memory than that.
 *
 * Invariants: data[len] is NUL; cap is 0 while data points to hf_strbuf_empty.
 */
#include "base/strbuf.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAP_FIRST 64

/* Never written: every writer checks cap first. */
const char hf_strbuf_empty[1] = "";

void hf_strbuf_init(struct hf_strbuf *sb, size_t bytes_max)
{
	*sb = (struct hf_strbuf)HF_STRBUF_INIT(bytes_max);
}

void hf_strbuf_release(struct hf_strbuf *sb)
{
	if (sb->cap)
		free(sb->data);
	hf_strbuf_init(sb, sb->bytes_max);
}

void hf_strbuf_clear(struct hf_strbuf *sb)
{
	sb->full = false;
	hf_strbuf_truncate(sb, 0);
}

/* Returns how many of `more` bytes still fit. */
static size_t fitting_len(const struct hf_strbuf *sb, size_t more)
{
	size_t left = sb->bytes_max > sb->len ? sb->bytes_max - sb->len : 0;

	return more < left ? more : left;
}

/* Allocates space for len + more bytes and the NUL. The caller has checked that `more` fits. */
static void grow_buffer(struct hf_strbuf *sb, size_t more)
{
	size_t need = sb->len + more + 1;
	size_t cap = sb->cap ? sb->cap : CAP_FIRST;

	hf_assert(sb->len < SIZE_MAX - 1 && need > sb->len);
	if (need <= sb->cap)
		return;
	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	/* The last doubling ends at the maximum. */
	if (sb->bytes_max < SIZE_MAX && cap > sb->bytes_max + 1)
		cap = need > sb->bytes_max + 1 ? need : sb->bytes_max + 1;
	sb->data = hf_xrealloc(sb->cap ? sb->data : NULL, cap);
	sb->data[sb->len] = '\0';
	sb->cap = cap;
}

void hf_strbuf_add(struct hf_strbuf *sb, const void *bytes, size_t len)
{
	size_t fits;

	/* The usual case: the bytes fit. cap never exceeds bytes_max + 1, so the maximum holds. */
	if (!sb->full && len < sb->cap - sb->len) {
		memcpy(sb->data + sb->len, bytes, len);
		sb->len += len;
		sb->data[sb->len] = '\0';
		return;
	}
	fits = sb->full ? 0 : fitting_len(sb, len);
	if (fits < len)
		sb->full = true;
	if (!fits)
		return;
	grow_buffer(sb, fits);
	memcpy(sb->data + sb->len, bytes, fits);
	sb->len += fits;
	sb->data[sb->len] = '\0';
}

void hf_strbuf_addstr(struct hf_strbuf *sb, const char *s)
{
	hf_strbuf_add(sb, s, strlen(s));
}

void hf_strbuf_addch(struct hf_strbuf *sb, char c)
{
	if (!sb->full && 1 < sb->cap - sb->len) {
		sb->data[sb->len++] = c;
		sb->data[sb->len] = '\0';
	} else {
		hf_strbuf_add(sb, &c, 1);
	}
}

void hf_strbuf_vaddf(struct hf_strbuf *sb, const char *fmt, va_list ap)
{
	size_t space = sb->cap ? sb->cap - sb->len : 0;
	size_t len, fits;
	va_list again;
	int n;

	if (sb->full)
		return;
	/* Print into the existing room first; that is usually enough. */
	va_copy(again, ap);
	n = vsnprintf(space ? sb->data + sb->len : NULL, space, fmt, ap);
	hf_assert(n >= 0);
	len = (size_t)n;
	fits = fitting_len(sb, len);
	if (fits && fits >= space) {
		grow_buffer(sb, fits);
		(void)vsnprintf(sb->data + sb->len, fits + 1, fmt, again);
	}
	va_end(again);
	sb->len += fits;
	if (sb->cap)
		sb->data[sb->len] = '\0';
	if (fits < len)
		sb->full = true;
}

void hf_strbuf_addf(struct hf_strbuf *sb, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	hf_strbuf_vaddf(sb, fmt, ap);
	va_end(ap);
}

void hf_strbuf_consume(struct hf_strbuf *sb, size_t len)
{
	hf_assert(len <= sb->len);
	if (!len)
		return;
	memmove(sb->data, sb->data + len, sb->len - len);
	hf_strbuf_truncate(sb, sb->len - len);
}

void hf_strbuf_truncate(struct hf_strbuf *sb, size_t len)
{
	hf_assert(len <= sb->len);
	sb->len = len;
	if (sb->cap)
		sb->data[len] = '\0';
}

char *hf_strbuf_reserve(struct hf_strbuf *sb, size_t more)
{
	if (fitting_len(sb, more) < more)
		return NULL;
	grow_buffer(sb, more);
	return sb->data + sb->len;
}

void hf_strbuf_grew(struct hf_strbuf *sb, size_t len)
{
	/* "<", not "<=": one byte is needed for the NUL. */
	hf_assert(sb->cap && len < sb->cap - sb->len);
	sb->len += len;
	sb->data[sb->len] = '\0';
}

int hf_strbuf_ok(const struct hf_strbuf *sb, const char *what, struct hf_error *err)
{
	if (!sb->full)
		return 0;
	return hf_error_set(err, HF_E_TOO_LARGE, "%s is larger than %zu bytes", what,
			    sb->bytes_max);
}

char *hf_strbuf_detach(struct hf_strbuf *sb)
{
	/* The result is always allocated, so that every caller can free it. Its size is cut to the
	 * content, because callers may keep it for long. */
	char *data = sb->cap ? hf_xrealloc(sb->data, sb->len + 1) : hf_xstrdup("");

	hf_strbuf_init(sb, sb->bytes_max);
	return data;
}
