/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Builds one log line, as text or JSON, and writes it with a single call.
 *
 * The line is built on the stack, because logging must work when memory is exhausted. Its size is
 * therefore fixed. Every step checks the room that is left, so the result is one complete line for
 * any values.
 */
#include "base/log.h"

#include "base/str.h"
#include "base/time.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#define LINE_MAX_BYTES 16384
/* Bytes kept free while a line grows, for its end: closing quotes, the mark of a cut line, the
 * brace. */
#define TAIL_BYTES 32

/* The log output of the process. The whole process shares one output, like stderr. main sets the
 * output once. */
static struct {
	FILE *out;
	enum hf_log_level level;
	enum hf_log_format format;
} sink = {.level = HF_LOG_INFO, .format = HF_LOG_TEXT};

struct line {
	size_t len;
	bool cut;
	char bytes[LINE_MAX_BYTES];
};

void hf_log_setup(FILE *out, enum hf_log_level level, enum hf_log_format format)
{
	sink.out = out;
	sink.level = level;
	sink.format = format;
}

bool hf_log_enabled(enum hf_log_level level)
{
	return sink.out && level >= sink.level;
}

/* Appends one unit (a character, an escape or a separator) completely or not at all. After a
 * unit that did not fit, nothing more is appended. */
static void put_unit(struct line *line, const char *unit, size_t len)
{
	if (line->cut || len > sizeof(line->bytes) - TAIL_BYTES - line->len) {
		line->cut = true;
		return;
	}
	memcpy(line->bytes + line->len, unit, len);
	line->len += len;
}

static void put_str(struct line *line, const char *s)
{
	put_unit(line, s, strlen(s));
}

/* Appends to the end of a line, for which put_unit has kept TAIL_BYTES free. */
static void put_tail(struct line *line, const char *s)
{
	size_t len = strlen(s);

	hf_assert(len <= sizeof(line->bytes) - line->len);
	memcpy(line->bytes + line->len, s, len);
	line->len += len;
}

static unsigned int decode_utf8(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;

	switch (len) {
	case 2: return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
	case 3: return (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
	/* A sequence of one byte or of four bytes. For four bytes the result is the lead byte (0xf0
	 * and up), which is no harmful character; characters beyond U+FFFF are all harmless. */
	default: return p[0];
	}
}

/* True for characters that end a line, control a terminal, or change the direction of text.
 * Printed raw, they could make one line look like another. */
static bool is_harmful(unsigned int c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x2028 || c == 0x2029 ||
	       (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e ||
	       c == 0x200f || c == 0x061c || c == 0xfeff;
}

/* Appends a byte that is not UTF-8 as \xNN. JSON cannot express such a byte, so there it becomes
 * U+FFFD. */
static void put_bad_byte(struct line *line, unsigned char byte)
{
	char escape[8];

	if (sink.format == HF_LOG_JSON) {
		put_str(line, "\\ufffd");
		return;
	}
	(void)snprintf(escape, sizeof(escape), "\\x%02x", byte);
	put_str(line, escape);
}

static void put_escaped(struct line *line, const char *s)
{
	size_t left = strlen(s);

	while (left && !line->cut) {
		size_t n = hf_utf8_sequence(s, left);
		unsigned int c = n ? decode_utf8(s, n) : 0;
		char escape[8];

		if (!n) {
			put_bad_byte(line, (unsigned char)*s);
			n = 1;
		} else if (c == '"' || c == '\\') {
			put_unit(line, (const char[]){'\\', (char)c}, 2);
		} else if (c == '\n' || c == '\t' || c == '\r') {
			put_str(line, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r");
		} else if (is_harmful(c)) {
			(void)snprintf(escape, sizeof(escape), "\\u%04x", c & 0xffffu);
			put_str(line, escape);
		} else {
			put_unit(line, s, n);
		}
		s += n;
		left -= n;
	}
}

static void put_quoted(struct line *line, const char *s)
{
	if (line->cut)
		return;
	put_unit(line, "\"", 1);
	/* The closing quote comes from the tail, so do not continue if the opening quote did not
	 * fit. */
	if (line->cut)
		return;
	put_escaped(line, s);
	put_tail(line, "\"");
}

/* True if a value can be printed without quotes. */
static bool is_plain(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if ((unsigned char)*s <= ' ' || (unsigned char)*s >= 0x7f || strchr("\"\\=", *s))
			return false;
	return true;
}

static void put_text_value(struct line *line, const char *s)
{
	if (is_plain(s))
		put_escaped(line, s);
	else
		put_quoted(line, s);
}

static void put_pairs(struct line *line, va_list ap)
{
	bool json = sink.format == HF_LOG_JSON;
	const char *key;
	size_t start;
	bool first = true;

	while ((key = va_arg(ap, const char *)) && !line->cut) {
		const char *value = va_arg(ap, const char *);

		start = line->len;
		if (json) {
			put_unit(line, ",", 1);
			put_quoted(line, key);
			put_unit(line, ":", 1);
		} else {
			put_str(line, first ? "  " : " ");
			put_text_value(line, key);
			put_unit(line, "=", 1);
		}
		/* A key without its value would make the line invalid: remove the key and stop. */
		if (line->cut || line->len + 2 > sizeof(line->bytes) - TAIL_BYTES) {
			line->cut = true;
			line->len = start;
			return;
		}
		if (json)
			put_quoted(line, value ? value : "");
		else
			put_text_value(line, value ? value : "");
		first = false;
	}
}

static void put_head(struct line *line, enum hf_log_level level, const char *logger,
		     const char *msg)
{
	static const char *const json_levels[] = {"debug", "info", "warn", "error"};
	static const char *const text_levels[] = {"DEBUG ", "INFO  ", "WARN  ", "ERROR "};
	char ts[HF_TIME_TEXT_MAX];
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	hf_time_format_milli(now.tv_sec * HF_SECOND + now.tv_nsec, ts);
	if (sink.format == HF_LOG_JSON) {
		put_str(line, "{\"level\":\"");
		put_str(line, json_levels[level]);
		put_str(line, "\",\"ts\":\"");
		put_str(line, ts);
		put_str(line, "\"");
		if (!hf_str_is_empty(logger)) {
			put_str(line, ",\"logger\":");
			put_quoted(line, logger);
		}
		put_str(line, ",\"msg\":");
		put_quoted(line, msg);
		return;
	}
	put_str(line, ts);
	put_str(line, " ");
	put_str(line, text_levels[level]);
	if (!hf_str_is_empty(logger)) {
		put_escaped(line, logger);
		put_str(line, ": ");
	}
	put_escaped(line, msg);
}

void hf_log(enum hf_log_level level, const char *logger, const char *msg, ...)
{
	struct line line;
	va_list ap;

	if (!hf_log_enabled(level))
		return;
	line.len = 0;
	line.cut = false;
	put_head(&line, level, logger, msg);
	va_start(ap, msg);
	put_pairs(&line, ap);
	va_end(ap);
	if (sink.format == HF_LOG_JSON)
		put_tail(&line, line.cut ? ",\"cut\":\"true\"}\n" : "}\n");
	else
		put_tail(&line, line.cut ? " cut=true\n" : "\n");
	/* One call per line, so that lines of several threads do not mix. A failed write is
	 * ignored: the work must go on without its log. */
	(void)fwrite(line.bytes, 1, line.len, sink.out);
	(void)fflush(sink.out);
}
