/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_KEYBOARD_H
#define HF_APP_KEYBOARD_H

#include "loop/loop.h"

/* The keys of a terminal on standard input, one by one and without echo. */
struct hf_keyboard;

typedef void (*hf_keyboard_fn)(void *arg, char key);

/* Set the terminal up. *ret_keyboard is NULL if the terminal's settings cannot be read. */
int hf_keyboard_create(struct hf_loop *loop, hf_keyboard_fn fn, void *arg,
		       struct hf_keyboard **ret_keyboard, struct hf_error *err) HF_MUST_CHECK;
/* Restore the terminal.  NULL is fine; returns NULL. */
struct hf_keyboard *hf_keyboard_destroy(struct hf_keyboard *keyboard);

#endif
