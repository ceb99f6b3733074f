/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_TEXT_H
#define HF_EXEC_TEXT_H

#include "base/compiler.h"

#include <stddef.h>

HF_BEGIN_DECLS

/*
 * What a program wrote for a terminal, as the text that a terminal would show at last.  In place; returns
 * the new length, which is never more.
 *
 * What is left is UTF-8 whose only control characters are line feeds and tabs.  Colours and other escape
 * sequences go, whole; bytes that are no UTF-8 are '?', and a character that the end cuts off is left out.
 * What follows a carriage return replaces its line (a progress bar's last state stays), what follows a
 * backspace the character before.  No sequence reaches beyond its line: the cursor's moves to other lines
 * are left out, and a title that does not end is lost only as far as the line goes.
 */
size_t hf_exec_text_clean(char *text, size_t len);

HF_END_DECLS

#endif
