/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Prints text of servers and files without control characters, so that the text cannot move the
 * cursor, change colours or begin a new line. */
#include "cli/text.h"

#include "base/str.h"

#include <string.h>

#define ELLIPSIS "\xe2\x80\xa6"

size_t hf_text_control(const char *at)
{
	const unsigned char *c = (const unsigned char *)at;

	if (c[0] == '\0')
		return 0;
	if (c[0] < 0x20 || c[0] == 0x7f)
		return 1;
	return c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f ? 2 : 0;
}

/* The length of an escape sequence "ESC [ … letter". The text may end inside the sequence. */
static size_t csi_length(const char *bytes, size_t len)
{
	size_t i = 2;

	while (i < len && (unsigned char)bytes[i] >= 0x20 && (unsigned char)bytes[i] < 0x40)
		i++;
	return i < len ? i + 1 : len;
}

/* The length of an escape sequence "ESC ] … BEL" or "ESC ] … ESC \", which sets a title or a link.
 * The text may end inside the sequence. */
static size_t osc_length(const char *bytes, size_t len)
{
	size_t i = 2;

	while (i < len && bytes[i] != '\a' && bytes[i] != '\033')
		i++;
	if (i + 1 < len && bytes[i] == '\033' && bytes[i + 1] == '\\')
		i++;
	return i < len ? i + 1 : len;
}

/* Returns the length of the escape sequence at the start of the bytes, such as a colour; 0: no
 * escape sequence begins there. */
static size_t escape_length(const char *bytes, size_t len)
{
	if (len == 0 || bytes[0] != '\033')
		return 0;
	if (len == 1)
		return 1;
	if (bytes[1] == '[')
		return csi_length(bytes, len);
	if (bytes[1] == ']')
		return osc_length(bytes, len);
	return (unsigned char)bytes[1] >= 0x20 && (unsigned char)bytes[1] < 0x7f ? 2 : 1;
}

void hf_text_add_clean(struct hf_strbuf *sb, const char *bytes, size_t len, bool utf8)
{
	for (size_t i = 0; i < len;) {
		size_t escape = escape_length(bytes + i, len - i);
		size_t letter = hf_utf8_sequence(bytes + i, len - i);
		unsigned char c = (unsigned char)bytes[i];
		bool control = c < 0x20 || c == 0x7f ||
			       (c == 0xc2 && letter == 2 && (unsigned char)bytes[i + 1] <= 0x9f);

		if (escape > 0)
			letter = escape;
		else if (c == '\t')
			hf_strbuf_addch(sb, ' ');
		else if (!control && (letter == 0 || (letter > 1 && !utf8)))
			hf_strbuf_addch(sb, '?');
		else if (!control)
			hf_strbuf_add(sb, bytes + i, letter);
		i += letter > 0 ? letter : 1;
	}
}

void hf_text_print_safe(FILE *out, const char *text)
{
	hf_text_print(out, text, true);
}

void hf_text_blank(char *text)
{
	while (*text != '\0') {
		size_t n = hf_text_control(text);
		memset(text, ' ', n);
		text += n > 0 ? n : 1;
	}
}

void hf_text_print(FILE *out, const char *text, bool utf8)
{
	while (*text != '\0') {
		size_t n = hf_text_control(text);
		if (n > 0) {
			fputc('?', out);
		} else if (utf8 || (unsigned char)*text < 0x80) {
			fputc(*text, out);
			n = 1;
		} else if (hf_str_has_prefix(text, ELLIPSIS)) {
			fputs("...", out);
			n = strlen(ELLIPSIS);
		} else {
			/* Print a single "?" for a letter of several bytes, not a "?" for every
			 * byte. */
			fputc('?', out);
			for (n = 1; ((unsigned char)text[n] & 0xc0) == 0x80; n++)
				;
		}
		text += n;
	}
}
