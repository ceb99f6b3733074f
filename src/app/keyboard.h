/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_KEYBOARD_H
#define HF_APP_KEYBOARD_H

#include "loop/loop.h"

/*
 * The keys of a terminal on standard input, one by one and without echo.
 *
 * The terminal is shared with the shell and with other programs. So its settings are changed only
 * while this program is in the foreground, and the file behind standard input is never made
 * non-blocking: on a terminal, standard output is the same file.
 */
struct hf_keyboard;

struct hf_keyboard_options {
	struct hf_loop *loop;
	void (*key)(void *arg, char key);
	/* Called when another program uses the terminal from now on: before Ctrl-Z stops this
	 * program, or when it was found in the background. NULL: not called. */
	void (*leave)(void *arg);
	/* Called when this program uses the terminal again. NULL: not called. */
	void (*back)(void *arg);
	void *arg;
};

/* Set the terminal up. *ret_keyboard is NULL if no terminal can be read. */
int hf_keyboard_create(const struct hf_keyboard_options *options, struct hf_keyboard **ret_keyboard,
		       struct hf_error *err) HF_MUST_CHECK;
/* Look if the program has come to the foreground or has left it. Call this a few times a second. NULL is
 * fine. */
void hf_keyboard_look(struct hf_keyboard *keyboard);
/* Restore the terminal.  NULL is fine; returns NULL. */
struct hf_keyboard *hf_keyboard_destroy(struct hf_keyboard *keyboard);

/* True if this program may use the terminal behind fd: it is in the foreground, or the terminal has no
 * job control for it. */
bool hf_terminal_in_foreground(int fd);

#endif
