/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_TEXT_H
#define HF_EXEC_TEXT_H

#include "base/compiler.h"

#include <stddef.h>

HF_BEGIN_DECLS

/*
 * Converts a program's output, in place, to the text that a terminal would show in the end.  Returns the new length,
 * which is not larger.  The result is UTF-8 without control characters except line feeds and tabs.
 *
 * - Colours and other escape sequences are removed.
 * - A byte that is not UTF-8 becomes '?'.  A character that is cut off at the end is left out.
 * - Text after a carriage return replaces the line before it, so of a progress bar the last state stays.  Text after
 *   a backspace replaces one character.
 * - No sequence changes another line: moves of the cursor to other lines are left out.  A title without an end is
 *   removed up to the end of its line.
 */
size_t hf_exec_text_clean(char *text, size_t len);

HF_END_DECLS

#endif
