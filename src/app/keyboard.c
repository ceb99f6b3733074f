/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Reads keys from a terminal on standard input, and restores the terminal's settings at the
 * end. */
#include "app/keyboard.h"

#include "base/mem.h"

#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#define KEYS_AT_ONCE 32

struct hf_keyboard {
	hf_keyboard_fn fn;
	void *arg;
	struct hf_io *io;
	struct termios saved;
};

static void on_readable(void *arg, unsigned events)
{
	struct hf_keyboard *keyboard = arg;
	char keys[KEYS_AT_ONCE];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n <= 0 || (events & HF_IO_HANGUP) != 0) {
		hf_io_want(keyboard->io, 0);
		return;
	}
	for (ssize_t i = 0; i < n; i++)
		keyboard->fn(keyboard->arg, keys[i]);
}

int hf_keyboard_create(struct hf_loop *loop, hf_keyboard_fn fn, void *arg,
		       struct hf_keyboard **ret_keyboard, struct hf_error *err)
{
	struct hf_keyboard *keyboard = hf_xcalloc(1, sizeof(*keyboard));
	struct termios raw;
	int rc = 0;

	keyboard->fn = fn;
	keyboard->arg = arg;
	*ret_keyboard = NULL;
	if (tcgetattr(STDIN_FILENO, &keyboard->saved) == 0)
		rc = hf_io_create(loop, STDIN_FILENO, on_readable, keyboard, &keyboard->io, err);
	if (keyboard->io == NULL) {
		free(keyboard);
		return rc;
	}
	raw = keyboard->saved;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	hf_io_want(keyboard->io, HF_IO_READ);
	*ret_keyboard = keyboard;
	return 0;
}

struct hf_keyboard *hf_keyboard_destroy(struct hf_keyboard *keyboard)
{
	if (keyboard == NULL)
		return NULL;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &keyboard->saved);
	keyboard->io = hf_io_destroy(keyboard->io);
	free(keyboard);
	return NULL;
}
