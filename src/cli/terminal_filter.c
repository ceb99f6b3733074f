/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Removes escape sequences and control characters from a stream of bytes for a terminal. The
 * sequences are those of ECMA-48. */
#include "cli/terminal_filter.h"

enum state {
	STATE_TEXT,
	STATE_ESCAPE,     /* behind ESC, or an intermediate byte */
	STATE_CSI,        /* ESC [ … letter */
	STATE_STRING,     /* ESC ] … BEL or ESC \; also DCS, SOS, PM and APC */
	STATE_STRING_END, /* ESC inside a string */
};

#define ESC 0x1b

static bool starts_string(unsigned char c)
{
	return c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_';
}

static enum state behind_escape(unsigned char c)
{
	if (c == '[')
		return STATE_CSI;
	if (starts_string(c))
		return STATE_STRING;
	return c == ESC || (c >= 0x20 && c < 0x30) ? STATE_ESCAPE : STATE_TEXT;
}

/* The state behind a byte of an escape sequence. A newline ends every sequence, so that an
 * unfinished one hides at most the rest of its line. */
static enum state next_state(enum state state, unsigned char c)
{
	if (c == '\n')
		return STATE_TEXT;
	switch (state) {
	case STATE_ESCAPE: return behind_escape(c);
	case STATE_STRING_END: return c == '\\' ? STATE_TEXT : behind_escape(c);
	case STATE_CSI:
		if (c == ESC)
			return STATE_ESCAPE;
		return c >= 0x40 && c < 0x7f ? STATE_TEXT : STATE_CSI;
	case STATE_STRING:
		if (c == ESC)
			return STATE_STRING_END;
		return c == '\a' ? STATE_TEXT : STATE_STRING;
	case STATE_TEXT: break;
	}
	return STATE_TEXT;
}

static int continuation_of(unsigned char c)
{
	return c >= 0xf0 && c < 0xf8 ? 3 : c >= 0xe0 ? 2 : 1;
}

static void add_text(struct hf_terminal_filter *filter, unsigned char c, struct hf_strbuf *out)
{
	if (c < 0x20 || c == 0x7f) {
		filter->continuation = 0;
		if (c == '\n' || c == '\r' || c == '\t')
			hf_strbuf_addch(out, (char)c);
	} else if (c < 0x80) {
		filter->continuation = 0;
		hf_strbuf_addch(out, (char)c);
	} else if (c >= 0xc0 && c < 0xf8) {
		filter->continuation = continuation_of(c);
		hf_strbuf_addch(out, (char)c);
	} else if (c < 0xc0 && filter->continuation > 0) {
		filter->continuation--;
		hf_strbuf_addch(out, (char)c);
	} else {
		/* A terminal without UTF-8 obeys bytes from 0x80 to 0x9f. */
		hf_strbuf_addch(out, '?');
	}
}

void hf_terminal_filter_add(struct hf_terminal_filter *filter, const char *bytes, size_t len,
			    struct hf_strbuf *out)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];
		bool held = filter->held_c2;

		filter->held_c2 = false;
		if (held && c >= 0x80 && c < 0xa0)
			continue; /* U+0080 to U+009F */
		if (held)
			add_text(filter, 0xc2, out);
		if (filter->state != STATE_TEXT) {
			filter->state = (int)next_state((enum state)filter->state, c);
			if (c == '\n')
				add_text(filter, c, out);
		} else if (c == ESC) {
			filter->state = STATE_ESCAPE;
		} else if (c == 0xc2) {
			filter->held_c2 = true;
		} else {
			add_text(filter, c, out);
		}
	}
}
