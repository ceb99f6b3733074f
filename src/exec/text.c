/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/text.h"

#include <stdbool.h>
#include <string.h>

/*
 * Removes from a text what a terminal would not show: escape sequences, overwritten text, broken
 * characters.
 *
 * Input and output share the buffer of struct cleaner: the writer (`out`) is never ahead of the
 * reader (`at`).  Each byte is read by one function: take_control, take_escape or take_character.
 */

#define ESCAPE '\x1b'

struct cleaner {
	char *text;
	size_t len, at; /* len: the number of bytes to read; at: the index of the next byte */
	/* the number of bytes written, never more than read, and the index where the last line begins */
	size_t out, line;
	size_t back;   /* pending backspaces */
	bool returned; /* a carriage return is pending */
};

/* ---- writing ----------------------------------------------------------------------------------- */

static bool continues_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static void put_bytes(struct cleaner *c, const char *bytes, size_t n)
{
	if (c->returned)
		c->out = c->line;
	for (; c->back > 0 && c->out > c->line; c->back--)
		do
			c->out--;
		while (c->out > c->line && continues_character(c->text[c->out]));
	c->returned = false;
	c->back = 0;
	memmove(c->text + c->out, bytes, n);
	c->out += n;
}

static void go_to_first_column(struct cleaner *c)
{
	c->returned = true;
	c->back = 0;
}

static void take_control(struct cleaner *c, char control)
{
	if (control == '\r') {
		go_to_first_column(c);
	} else if (control == '\b') {
		c->back++;
	} else if (control == '\t') {
		put_bytes(c, "\t", 1);
	} else if (control == '\n') {
		c->text[c->out++] = '\n';
		c->line = c->out;
		c->returned = false;
		c->back = 0;
	}
}

/* ---- escape sequences -------------------------------------------------------------------------- */

static size_t skip_range(const struct cleaner *c, size_t at, char first, char last)
{
	while (at < c->len && c->text[at] >= first && c->text[at] <= last)
		at++;
	return at;
}

/* Takes a control sequence: ESC [, parameters, a letter.  Of an incomplete sequence the part that is there is
 * dropped. */
static void take_csi(struct cleaner *c)
{
	size_t from = c->at + 2, end = skip_range(c, from, ' ', '?');
	char mode = end > from ? c->text[from] : '0';

	c->at = end;
	if (end == c->len || c->text[end] < '@' || c->text[end] > '~')
		return;
	c->at++;
	/* The sequence erases the whole line, or, with the cursor at the line's beginning, what is right of the
	 * cursor. */
	if (c->text[end] == 'K' && (mode == '2' || (mode == '0' && c->returned)))
		c->out = c->line;
	else if (c->text[end] == 'G' && end <= from + 1 && (mode == '0' || mode == '1'))
		go_to_first_column(c);
}

/* Takes ESC ], a title or a link, and the end BEL or ESC \. */
static void take_string(struct cleaner *c)
{
	for (c->at += 2; c->at < c->len; c->at++) {
		char b = c->text[c->at];

		if (b == '\n')
			return;
		if (b == '\a' || (b == '\\' && c->text[c->at - 1] == ESCAPE)) {
			c->at++;
			return;
		}
	}
}

static void take_escape(struct cleaner *c)
{
	char kind = c->at + 1 < c->len ? c->text[c->at + 1] : '\0';
	size_t end;

	if (kind == '[') {
		take_csi(c);
	} else if (kind != '\0' && strchr("]PX^_", kind) != NULL) {
		take_string(c);
	} else {
		end = skip_range(c, c->at + 1, ' ', '/');
		c->at = end < c->len && c->text[end] >= '0' && c->text[end] <= '~' ? end + 1 : end;
	}
}

/* ---- characters -------------------------------------------------------------------------------- */

/* The length in bytes of the UTF-8 character that begins with this byte; 0: no character begins with it. */
static size_t find_length(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/* Whether the second byte may follow the first: not for overlong forms, surrogates and numbers beyond Unicode. */
static bool is_second(unsigned char first, unsigned char second)
{
	unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
	unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;

	return second >= low && second <= high;
}

/* The number of bytes of the character that are there and valid. */
static size_t count_valid(const struct cleaner *c, size_t wanted)
{
	const char *bytes = c->text + c->at;
	size_t n = 1;

	while (n < wanted && c->at + n < c->len &&
	       (n == 1 ? is_second((unsigned char)bytes[0], (unsigned char)bytes[1])
		       : continues_character(bytes[n])))
		n++;
	return n;
}

static void take_character(struct cleaner *c)
{
	const char *bytes = c->text + c->at;
	size_t wanted = find_length((unsigned char)bytes[0]), have = count_valid(c, wanted);

	if (wanted > 0 && have == wanted) {
		/* The controls beyond ASCII. */
		if (wanted != 2 || (unsigned char)bytes[0] != 0xc2 ||
		    (unsigned char)bytes[1] >= 0xa0)
			put_bytes(c, bytes, wanted);
	} else if (wanted == 0 || c->at + have < c->len) {
		put_bytes(c, "?", 1);
	}
	c->at += have;
}

size_t hf_exec_text_clean(char *text, size_t len)
{
	struct cleaner c = {.text = text, .len = len};

	while (c.at < c.len) {
		char b = text[c.at];

		if (b == ESCAPE)
			take_escape(&c);
		else if ((unsigned char)b < ' ' || b == '\x7f')
			take_control(&c, text[c.at++]);
		else
			take_character(&c);
	}
	return c.out;
}
