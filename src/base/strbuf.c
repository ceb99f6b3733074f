/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/strbuf.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The memory doubles, so that adding byte by byte costs a constant each, and stops at
 * bytes_max + 1.  Past that nothing grows: a peer that sends without end costs what
 * was declared and no more.
 */
#define CAP_FIRST 64

/* Nothing writes it: every writer looks at cap. */
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

/* How much of `more` still fits. */
static size_t room(const struct hf_strbuf *sb, size_t more)
{
	size_t left = sb->bytes_max > sb->len ? sb->bytes_max - sb->len : 0;

	return more < left ? more : left;
}

/* Make space for len + more bytes and the NUL; more is within the maximum. */
static void grow(struct hf_strbuf *sb, size_t more)
{
	size_t need = sb->len + more + 1;
	size_t cap = sb->cap ? sb->cap : CAP_FIRST;

	hf_assert(sb->len < SIZE_MAX - 1 && need > sb->len);
	if (need <= sb->cap)
		return;
	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	/* The last doubling stops at the maximum. */
	if (sb->bytes_max < SIZE_MAX && cap > sb->bytes_max + 1)
		cap = need > sb->bytes_max + 1 ? need : sb->bytes_max + 1;
	sb->data = hf_xrealloc(sb->cap ? sb->data : NULL, cap);
	sb->data[sb->len] = '\0';
	sb->cap = cap;
}

void hf_strbuf_add(struct hf_strbuf *sb, const void *bytes, size_t len)
{
	size_t fits;

	/* Most of the time there is room, and cap is never past the maximum and its NUL. */
	if (!sb->full && len < sb->cap - sb->len) {
		memcpy(sb->data + sb->len, bytes, len);
		sb->len += len;
		sb->data[sb->len] = '\0';
		return;
	}
	fits = sb->full ? 0 : room(sb, len);
	if (fits < len)
		sb->full = true;
	if (!fits)
		return;
	grow(sb, fits);
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
	/* First into the room that is there, which is enough most of the time. */
	va_copy(again, ap);
	n = vsnprintf(space ? sb->data + sb->len : NULL, space, fmt, ap);
	hf_assert(n >= 0);
	len = (size_t)n;
	fits = room(sb, len);
	if (fits && fits >= space) {
		grow(sb, fits);
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
	if (room(sb, more) < more)
		return NULL;
	grow(sb, more);
	return sb->data + sb->len;
}

void hf_strbuf_grew(struct hf_strbuf *sb, size_t len)
{
	/* Less than, not at most: one byte is the NUL's. */
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
	/* Always something to free, so that callers need no second case; and no more than what
	 * was written, since it may be kept for long. */
	char *data = sb->cap ? hf_xrealloc(sb->data, sb->len + 1) : hf_xstrdup("");

	hf_strbuf_init(sb, sb->bytes_max);
	return data;
}
