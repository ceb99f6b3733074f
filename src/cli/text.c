/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Prints text from outside without control characters, so that it cannot move the cursor, change
 * colours or begin a new line. */
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
			/* Print one "?" for a letter of several bytes. */
			fputc('?', out);
			for (n = 1; ((unsigned char)text[n] & 0xc0) == 0x80; n++)
				;
		}
		text += n;
	}
}
