/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Reads keys from the terminal on standard input while the program is in the foreground, and
 * restores the terminal's settings whenever it leaves the terminal. */
#include "app/keyboard.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#define KEYS_AT_ONCE 32

struct hf_keyboard {
	struct hf_keyboard_options options;
	int fd;
	bool mine; /* the terminal has the settings of this program */
	struct hf_io *io;
	struct hf_signal *stop; /* SIGTSTP; NULL: it is ignored */
	struct termios saved;
};

bool hf_terminal_in_foreground(int fd)
{
	pid_t group = tcgetpgrp(fd);

	return group < 0 || group == getpgrp();
}

/* Opens the terminal on standard input anew. The loop makes the descriptor non-blocking, and the flag belongs to
 * the open file, which standard input shares with standard output and with other programs. */
static int open_terminal(void)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	int fd = open("/proc/self/fd/0", flags);

	/* After `su`, the terminal belongs to another user. */
	return fd >= 0 ? fd : open("/dev/tty", flags);
}

static void take_terminal(struct hf_keyboard *keyboard)
{
	struct termios raw;

	if (tcgetattr(keyboard->fd, &raw) != 0)
		return;
	/* While this program was stopped, the shell may have set the terminal for its prompt. */
	if (!keyboard->mine || (raw.c_lflag & ICANON) != 0)
		keyboard->saved = raw;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	(void)tcsetattr(keyboard->fd, TCSANOW, &raw);
	hf_io_want(keyboard->io, HF_IO_READ);
	keyboard->mine = true;
}

/* Leaves the terminal to another program. */
static void leave_terminal(struct hf_keyboard *keyboard)
{
	if (!keyboard->mine)
		return;
	/* In the background this would stop the program, and the shell has set the terminal. */
	if (hf_terminal_in_foreground(keyboard->fd))
		(void)tcsetattr(keyboard->fd, TCSANOW, &keyboard->saved);
	hf_io_want(keyboard->io, 0);
	keyboard->mine = false;
}

static bool is_canonical(int fd)
{
	struct termios now;

	return tcgetattr(fd, &now) == 0 && (now.c_lflag & ICANON) != 0;
}

static void on_readable(void *arg, unsigned events)
{
	struct hf_keyboard *keyboard = arg;
	char keys[KEYS_AT_ONCE];
	ssize_t n = read(keyboard->fd, keys, sizeof(keys));

	/* The shell may have read the keys while this program was stopped. */
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || (events & HF_IO_HANGUP) != 0) {
		hf_io_want(keyboard->io, 0);
		return;
	}
	for (ssize_t i = 0; i < n; i++)
		keyboard->options.key(keyboard->options.arg, keys[i]);
}

void hf_keyboard_look(struct hf_keyboard *keyboard)
{
	bool foreground, before;

	if (keyboard == NULL)
		return;
	foreground = hf_terminal_in_foreground(keyboard->fd);
	before = keyboard->mine;
	if (foreground && (!before || is_canonical(keyboard->fd))) {
		take_terminal(keyboard);
		if (keyboard->mine && keyboard->options.back != NULL)
			keyboard->options.back(keyboard->options.arg);
	} else if (!foreground && before) {
		leave_terminal(keyboard);
		if (keyboard->options.leave != NULL)
			keyboard->options.leave(keyboard->options.arg);
	}
	/* The loop is not told of keys that were pressed before the terminal's settings changed. */
	if (keyboard->mine)
		on_readable(keyboard, 0);
}

/* Ctrl-Z: restores the terminal for the shell, then stops this program as the signal does by default. The call of
 * raise() returns when the program continues. */
static void on_stop(void *arg, int signum)
{
	struct hf_keyboard *keyboard = arg;
	const struct sigaction stop = {.sa_handler = SIG_DFL};
	struct sigaction before;

	if (keyboard->mine && keyboard->options.leave != NULL)
		keyboard->options.leave(keyboard->options.arg);
	leave_terminal(keyboard);
	if (sigaction(signum, &stop, &before) == 0) {
		(void)raise(signum);
		(void)sigaction(signum, &before, NULL);
	}
	hf_keyboard_look(keyboard);
}

int hf_keyboard_create(const struct hf_keyboard_options *options, struct hf_keyboard **ret_keyboard,
		       struct hf_error *err)
{
	struct hf_keyboard *keyboard = hf_xcalloc(1, sizeof(*keyboard));
	int rc = 0;

	*ret_keyboard = NULL;
	keyboard->options = *options;
	keyboard->fd = open_terminal();
	if (keyboard->fd >= 0 && tcgetattr(keyboard->fd, &keyboard->saved) == 0)
		rc = hf_io_create(options->loop, keyboard->fd, on_readable, keyboard, &keyboard->io,
				  err);
	if (rc == 0 && keyboard->io != NULL && !hf_signal_is_ignored(SIGTSTP))
		rc = hf_signal_create(options->loop, SIGTSTP, on_stop, keyboard, &keyboard->stop,
				      err);
	if (rc != 0 || keyboard->io == NULL) {
		(void)hf_keyboard_destroy(keyboard);
		return rc;
	}
	if (hf_terminal_in_foreground(keyboard->fd))
		take_terminal(keyboard);
	*ret_keyboard = keyboard;
	return 0;
}

struct hf_keyboard *hf_keyboard_destroy(struct hf_keyboard *keyboard)
{
	if (keyboard == NULL)
		return NULL;
	if (keyboard->io != NULL)
		leave_terminal(keyboard);
	keyboard->stop = hf_signal_destroy(keyboard->stop);
	keyboard->io = hf_io_destroy(keyboard->io);
	if (keyboard->fd >= 0)
		(void)close(keyboard->fd);
	free(keyboard);
	return NULL;
}
