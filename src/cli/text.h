/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_TEXT_H
#define HF_CLI_TEXT_H

#include "base/strbuf.h"

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

HF_BEGIN_DECLS

/* Text of servers and files must not move the cursor, change colours or begin a new line. */

/* Return the length in bytes of the control character at `at`: 1 for ASCII, 2 for U+0080 to
 * U+009F, which terminals also obey. 0: there is no control character at `at`. */
size_t hf_text_control(const char *at);
/* Add the text without escape sequences and control characters; a tab becomes a blank.  Bytes that are not
 * UTF-8 become "?"; if utf8 is false, so does every letter that is not ASCII. */
void hf_text_add_clean(struct hf_strbuf *sb, const char *bytes, size_t len, bool utf8);
/* Print the text, with "?" in place of each control character. */
void hf_text_print_safe(FILE *out, const char *text);
/* Replace each byte of a control character by a blank, in place. */
void hf_text_blank(char *text);
/* Print the text with "?" for each control character.  If utf8 is false, print ASCII only: "..." for
 * the ellipsis, "?" for every other letter. */
void hf_text_print(FILE *out, const char *text, bool utf8);

HF_END_DECLS

#endif
