/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_TEXT_H
#define HF_CLI_TEXT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

HF_BEGIN_DECLS

/* What comes from outside must not move a cursor, change colours or begin a new line. */

/* Bytes of the control character that stands at `at`: 1 for those of ASCII, 2 for those of
 * Unicode (U+0080 to U+009F, which terminals obey too); 0: none stands there. */
size_t hf_text_control(const char *at);
/* Each control character as "?". */
void hf_text_print_safe(FILE *out, const char *text);
/* Each byte of a control character becomes a blank. */
void hf_text_blank(char *text);
/* Safe, and where the locale is not UTF-8 in ASCII: "..." for the ellipsis, else "?". */
void hf_text_print(FILE *out, const char *text, bool utf8);

HF_END_DECLS

#endif
