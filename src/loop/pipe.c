/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Non-blocking reader of a pipe. It watches an fd on the loop and passes each read to a callback;
 * it keeps no bytes itself. The callback may pause or destroy the reader. */
#include "loop/pipe.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct hf_reader {
	int fd;
	struct hf_io *io;
	hf_reader_fn fn;
	void *arg;
	bool ended;
	bool paused;
	bool *dead; /* set to true by destroy while a callback runs; points into read_once */
};

int hf_pipe_make(int ret_fds[2], struct hf_error *err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return hf_error_errno(err, errno, "cannot make a pipe");
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0) {
		int errnum = errno;
		close(fds[0]);
		close(fds[1]);
		return hf_error_errno(err, errnum, "cannot make a pipe non-blocking");
	}
	ret_fds[0] = fds[0];
	ret_fds[1] = fds[1];
	return 0;
}

/* Reads once and calls fn. Returns false if no more bytes are there, at the end of file, or if fn
 * destroyed the reader. */
static bool read_once(struct hf_reader *reader)
{
	char bytes[HF_PIPE_READ_MAX];
	bool dead = false;
	ssize_t len = read(reader->fd, bytes, sizeof(bytes));
	int errnum = len < 0 ? errno : 0;

	if (errnum == EAGAIN || errnum == EINTR)
		return errnum == EINTR;
	if (len <= 0) {
		reader->ended = true;
		reader->io = hf_io_destroy(reader->io);
		reader->fn(reader->arg, "", 0, errnum);
		return false;
	}
	reader->dead = &dead;
	reader->fn(reader->arg, bytes, (size_t)len, 0);
	if (dead)
		return false;
	reader->dead = NULL;
	return true;
}

static void on_readable(void *arg, unsigned events)
{
	struct hf_reader *reader = arg;

	/* hf_io stops watching after an error; bytes before the error are still to be read. */
	if (read_once(reader) && !reader->paused)
		hf_io_want(reader->io, HF_IO_READ);
}

int hf_reader_create(struct hf_loop *loop, int fd, hf_reader_fn fn, void *arg,
		     struct hf_reader **ret_reader, struct hf_error *err)
{
	hf_assert(fn);
	struct hf_reader *reader = hf_xcalloc(1, sizeof(*reader));
	int rc = hf_io_create(loop, fd, on_readable, reader, &reader->io, err);

	if (rc < 0) {
		free(reader);
		return rc;
	}
	reader->fd = fd;
	reader->fn = fn;
	reader->arg = arg;
	hf_io_want(reader->io, HF_IO_READ);
	*ret_reader = reader;
	return 0;
}

struct hf_reader *hf_reader_destroy(struct hf_reader *reader)
{
	if (!reader)
		return NULL;
	if (reader->dead)
		*reader->dead = true;
	hf_io_destroy(reader->io);
	close(reader->fd);
	free(reader);
	return NULL;
}

void hf_reader_pause(struct hf_reader *reader)
{
	reader->paused = true;
	if (!reader->ended)
		hf_io_want(reader->io, 0);
}

void hf_reader_resume(struct hf_reader *reader)
{
	reader->paused = false;
	if (!reader->ended)
		hf_io_want(reader->io, HF_IO_READ);
}

void hf_reader_drain(struct hf_reader *reader)
{
	if (reader->ended)
		return;
	/* Ends at 64 reads: a pipe holds less, unless another process keeps writing. */
	for (int i = 0; i < 64 && !reader->paused; i++) {
		if (!read_once(reader))
			return;
	}
}
