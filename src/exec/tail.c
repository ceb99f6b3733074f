/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/tail.h"

#include "exec/text.h"
#include "exec/origin.h"

#include <stdio.h>
#include <string.h>

/*
 * Keeps the last bytes of a stream in a ring, and splits the stream into lines to find a cause in
 * them.
 *
 * Input: bytes as they come, and the time.  Output: the last bytes as clean text, and the gravest
 * cause with its line.  A line that may be of another rank (origin.h) names no cause.
 */

/* ---- lines ------------------------------------------------------------------------------------- */

/* Whether the line may be of another host or rank.  After the first line of another rank's exception this is so
 * for a minute, except for lines that a library prints at its own failure.  The end of such an exception cannot be
 * found: exceptions of several ranks come mixed, and a chain of exceptions repeats them behind a traceback of this
 * rank. */
static bool is_of_others(struct hf_tail *tail, size_t len, int64_t now_s)
{
	switch (hf_exec_find_origin(tail->line, len)) {
	case HF_EXEC_ORIGIN_OWN: return false;
	case HF_EXEC_ORIGIN_RELAYED: return true;
	case HF_EXEC_ORIGIN_OTHERS:
		tail->others_until_s = now_s + HF_TAIL_OTHERS_SECONDS;
		return true;
	default: return now_s < tail->others_until_s;
	}
}

/* The gravest first. */
static const enum hf_exec_cause by_gravity[HF_TAIL_CAUSES] = {
	HF_EXEC_CAUSE_DEVICE_FATAL,
	HF_EXEC_CAUSE_FABRIC,
	HF_EXEC_CAUSE_DRIVER,
	HF_EXEC_CAUSE_DEVICE_TRANSIENT,
};

static void keep_cause(struct hf_tail *tail, enum hf_exec_cause cause, size_t len, int64_t now_s)
{
	for (size_t i = 0; i < HF_TAIL_CAUSES; i++) {
		if (by_gravity[i] != cause)
			continue;
		tail->named[i].at_s = now_s;
		snprintf(tail->named[i].line, sizeof(tail->named[i].line), "%.*s", (int)len,
			 tail->line);
	}
}

/* The cause that the line names, alone or together with the line before. */
static enum hf_exec_cause find_cause(struct hf_tail *tail, size_t len)
{
	enum hf_exec_cause cause =
		tail->headed ? hf_exec_cause_below(tail->line, len) : HF_EXEC_CAUSE_NONE;

	tail->headed = hf_exec_cause_is_head(tail->line, len);
	return cause != HF_EXEC_CAUSE_NONE ? cause : hf_exec_cause_of(tail->line, len);
}

static void end_line(struct hf_tail *tail, int64_t now_s)
{
	size_t len = hf_exec_text_clean(tail->line, tail->line_len);
	enum hf_exec_cause cause = HF_EXEC_CAUSE_NONE;

	if (is_of_others(tail, len, now_s))
		tail->headed = false;
	else
		cause = find_cause(tail, len);
	if (cause != HF_EXEC_CAUSE_NONE)
		keep_cause(tail, cause, len, now_s);
	tail->line_len = 0;
}

static void add_to_line(struct hf_tail *tail, const char *bytes, size_t len)
{
	size_t room = sizeof(tail->line) - tail->line_len;

	if (len > room)
		len = room;
	memcpy(tail->line + tail->line_len, bytes, len);
	tail->line_len += len;
}

/* A carriage return ends a line as well: an error may follow a progress bar. */
static bool is_line_end(char c)
{
	return c == '\n' || c == '\r';
}

static void split_lines(struct hf_tail *tail, const char *bytes, size_t len, int64_t now_s)
{
	while (len > 0) {
		size_t n = 0;

		while (n < len && !is_line_end(bytes[n]))
			n++;
		add_to_line(tail, bytes, n);
		if (n == len)
			return;
		end_line(tail, now_s);
		bytes += n + 1;
		len -= n + 1;
	}
}

/* ---- bytes ------------------------------------------------------------------------------------- */

static void keep_bytes(struct hf_tail *tail, const char *bytes, size_t len)
{
	if (len > sizeof(tail->ring)) {
		tail->total += len - sizeof(tail->ring);
		bytes += len - sizeof(tail->ring);
		len = sizeof(tail->ring);
	}
	while (len > 0) {
		size_t at = tail->total % sizeof(tail->ring);
		size_t n = sizeof(tail->ring) - at < len ? sizeof(tail->ring) - at : len;

		memcpy(tail->ring + at, bytes, n);
		tail->total += n;
		bytes += n;
		len -= n;
	}
}

void hf_tail_add(struct hf_tail *tail, const char *bytes, size_t len, int64_t now_s)
{
	split_lines(tail, bytes, len, now_s);
	keep_bytes(tail, bytes, len);
}

void hf_tail_end(struct hf_tail *tail, int64_t now_s)
{
	if (tail->line_len > 0)
		end_line(tail, now_s);
}

/* The index of the gravest cause in by_gravity; HF_TAIL_CAUSES: no line since since_s names a cause. */
static size_t find_gravest(const struct hf_tail *tail, int64_t since_s)
{
	size_t i = 0;

	while (i < HF_TAIL_CAUSES &&
	       (tail->named[i].line[0] == '\0' || tail->named[i].at_s < since_s))
		i++;
	return i;
}

enum hf_exec_cause hf_tail_cause(const struct hf_tail *tail, int64_t since_s)
{
	size_t i = find_gravest(tail, since_s);

	return i < HF_TAIL_CAUSES ? by_gravity[i] : HF_EXEC_CAUSE_NONE;
}

const char *hf_tail_cause_line(const struct hf_tail *tail, int64_t since_s)
{
	size_t i = find_gravest(tail, since_s);

	return i < HF_TAIL_CAUSES ? tail->named[i].line : "";
}

static bool continues_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* The index of the first whole line in a text whose beginning was cut off, or, in a text of one line, of the first
 * whole character. */
static size_t find_first_whole(const char *text, size_t len)
{
	const char *end = memchr(text, '\n', len);
	size_t at = 0;

	if (end != NULL && (size_t)(end - text) + 1 < len)
		return (size_t)(end - text) + 1;
	while (at < len && at < 4 && continues_character(text[at]))
		at++;
	return at;
}

size_t hf_tail_text(const struct hf_tail *tail, char *ret_text, size_t size)
{
	size_t have = tail->total < sizeof(tail->ring) ? (size_t)tail->total : sizeof(tail->ring);
	size_t len = have < size ? have : size;
	bool cut = len < tail->total;
	size_t from;

	for (size_t i = 0; i < len; i++)
		ret_text[i] = tail->ring[(tail->total - len + i) % sizeof(tail->ring)];
	from = cut ? find_first_whole(ret_text, len) : 0;
	memmove(ret_text, ret_text + from, len - from);
	return hf_exec_text_clean(ret_text, len - from);
}
