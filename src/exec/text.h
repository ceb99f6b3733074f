/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_TEXT_H
#define HF_EXEC_TEXT_H

#include "base/compiler.h"

#include <stddef.h>

HF_BEGIN_DECLS

/*
 * Converts a program's output to the text that a terminal would show in the end.  In place; returns the
 * new length, which is not larger.
 *
 * The result is UTF-8 with no control characters but line feeds and tabs.  Colours and other escape
 * sequences are removed.  Bytes that are no UTF-8 become '?', and a character that is cut off at the end is
 * left out.  Text after a carriage return replaces its line (of a progress bar the last state stays), text
 * after a backspace the character before.  No sequence changes another line: moves of the cursor to other
 * lines are left out, and a title without an end is lost up to the end of its line.
 */
size_t hf_exec_text_clean(char *text, size_t len);

HF_END_DECLS

#endif
