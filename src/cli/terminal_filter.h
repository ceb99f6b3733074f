/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_TERMINAL_FILTER_H
#define HF_CLI_TERMINAL_FILTER_H

#include "base/strbuf.h"

HF_BEGIN_DECLS

/*
 * Removes what a program's output could do to a terminal: escape sequences (colours, the clipboard, the
 * title, questions that the terminal answers on its input) and control characters except newline,
 * carriage return and tab. Works on a stream: a sequence may be cut anywhere. Zero-initialize it. Pure.
 */
struct hf_terminal_filter {
	int state;
	int continuation; /* bytes that the present UTF-8 letter still needs */
	bool held_c2;     /* 0xc2 is held back: with the next byte it may be a control character */
};

/* Append the bytes that a terminal may get. */
void hf_terminal_filter_add(struct hf_terminal_filter *filter, const char *bytes, size_t len,
			    struct hf_strbuf *out);

HF_END_DECLS

#endif
