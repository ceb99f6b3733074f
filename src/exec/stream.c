/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/stream.h"

#include "exec/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- lines ------------------------------------------------------------------------------------- */

static void end_line(struct hf_exec_stream *stream)
{
	size_t len = stream->line_len;

	stream->line_len = 0;
	if (len == 0)
		return;
	if (memchr(stream->line, '\033', len) != NULL)
		len = hf_exec_text_clean(stream->line, len);
	stream->took_line(stream->arg, stream->line, len);
}

static void add_to_line(struct hf_exec_stream *stream, const char *bytes, size_t len)
{
	size_t room = sizeof(stream->line) - stream->line_len;

	if (len > room)
		len = room;
	memcpy(stream->line + stream->line_len, bytes, len);
	stream->line_len += len;
}

/* A progress bar ends its lines with a carriage return. */
static void split_lines(struct hf_exec_stream *stream, const char *bytes, size_t len)
{
	while (len > 0) {
		size_t n = 0;

		while (n < len && bytes[n] != '\n' && bytes[n] != '\r')
			n++;
		add_to_line(stream, bytes, n);
		if (n == len)
			return;
		end_line(stream);
		bytes += n + 1;
		len -= n + 1;
	}
}

/* ---- bytes ------------------------------------------------------------------------------------- */

void hf_exec_stream_stop(struct hf_exec_stream *stream)
{
	if (stream->from < 0)
		return;
	(void)close(stream->from);
	stream->from = -1;
	if (stream->took_line != NULL)
		end_line(stream);
}

/* If the own file has room, the bytes go out before took_line sees their lines.  Else exec's own line about a log rule
 * would stand between the program's line and its line feed: unbuffered programs write these apart. */
static void write_at_once(struct hf_exec_stream *stream)
{
	struct pollfd to = {.fd = stream->to, .events = POLLOUT};

	if (poll(&to, 1, 0) == 1 && (to.revents & POLLOUT) != 0)
		hf_exec_stream_write(stream);
}

void hf_exec_stream_read(struct hf_exec_stream *stream, bool ended)
{
	ssize_t n = read(stream->from, stream->chunk, sizeof(stream->chunk));

	if (n > 0) {
		stream->len = (size_t)n;
		stream->at = 0;
		if (stream->took_bytes != NULL)
			stream->took_bytes(stream->arg, stream->chunk, (size_t)n);
		if (stream->took_line != NULL) {
			write_at_once(stream);
			split_lines(stream, stream->chunk, (size_t)n);
		}
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR) || ended) {
		hf_exec_stream_stop(stream);
	}
}

void hf_exec_stream_write(struct hf_exec_stream *stream)
{
	ssize_t n = write(stream->to, stream->chunk + stream->at, stream->len - stream->at);

	if (n > 0) {
		stream->at += (size_t)n;
	} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		stream->len = stream->at = 0;
		/* The reader of the own file is gone.  exec closes CMD's pipe, so the next write of CMD raises SIGPIPE, as
		 * without `holdfast exec`. */
		if (errno == EPIPE)
			hf_exec_stream_stop(stream);
	}
	if (stream->at == stream->len)
		stream->at = stream->len = 0;
}

/* ---- the start --------------------------------------------------------------------------------- */

/* Opens the pipe behind the own file once more, with O_NONBLOCK.  Another process may fill the pipe between poll() and
 * write(), and a write that blocks would delay the fence.  On the inherited file the flag would hold for all
 * processes that share the file.  If the pipe cannot be opened, writes may block, but only if other processes
 * write there too. */
static int open_own(int own)
{
	char path[32];
	struct stat st;
	int fd = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", own);
	if (fstat(own, &st) == 0 && S_ISFIFO(st.st_mode))
		fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? own : fd;
}

int hf_exec_stream_begin(struct hf_exec_stream *stream, int *ret_write)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0)
		return errno;
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	stream->from = fds[0];
	stream->len = stream->at = stream->line_len = 0;
	/* Opened once: another start of CMD in this container keeps it. */
	if (stream->to == stream->own)
		stream->to = open_own(stream->own);
	*ret_write = fds[1];
	return 0;
}
