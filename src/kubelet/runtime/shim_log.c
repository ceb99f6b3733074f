/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/shim_internal.h"

#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Writes a container's output as CRI lines ("<time> stdout F <line>") and rotates the files.
 * Reserves blocks ahead, so that the next output is written even if other processes fill the disk,
 * and so that the log can say where output was lost.
 */

/* Limit of one batch of lines. Each line gains a prefix of 37 bytes, so 64 KiB of newlines become
 * almost 3 MiB. */
#define BATCH_BYTES_MAX ((size_t)4 << 20)

/* Blocks are reserved in steps of HOLD_BYTES, and before less than AHEAD_BYTES are left: this much
 * output is never lost, however full the disk becomes. The last NOTES_BYTES of the reserved blocks are for
 * notes about lost output. */
#define HOLD_BYTES ((int64_t)64 << 10)
#define AHEAD_BYTES (HOLD_BYTES / 2)
#define NOTES_BYTES 512
/* how long to wait for a client that does not read */
#define SEND_WAIT_MS 1000

static const char *const stream_names[] = {"stdout", "stderr"};

static int open_file(struct hf_log_sink *sink)
{
	struct stat st;

	sink->fd = openat(sink->dir_fd, sink->name,
			  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (sink->fd < 0)
		return -1;
	sink->bytes = fstat(sink->fd, &st) == 0 ? (int64_t)st.st_size : 0;
	sink->held = sink->bytes;
	return 0;
}

/* Reserves blocks for len bytes and a note behind them. Returns false if the disk is full. On a
 * file system that cannot reserve blocks, writes are tried without. */
static bool hold_blocks(struct hf_log_sink *sink, size_t len)
{
	int64_t need = sink->bytes + (int64_t)len + NOTES_BYTES;
	int64_t ahead = ((need + AHEAD_BYTES) / HOLD_BYTES + 1) * HOLD_BYTES;
	int64_t wanted[] = {ahead, need};

	if (sink->fd < 0 && open_file(sink) < 0)
		return false;
	if (need + AHEAD_BYTES <= sink->held)
		return true;
	for (size_t i = 0; i < HF_ARRAY_LEN(wanted); i++) {
		if (fallocate(sink->fd, FALLOC_FL_KEEP_SIZE, (off_t)sink->held,
			      (off_t)(wanted[i] - sink->held)) == 0) {
			sink->held = wanted[i];
			return true;
		}
		if (need <= sink->held)
			return true;
	}
	if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
		return false;
	sink->held = INT64_MAX;
	return true;
}

int hf_log_sink_open(struct hf_log_sink *sink, int dir_fd, const char *name, int64_t bytes_max,
		     int files_max, struct hf_error *err)
{
	hf_assert(files_max >= 1 && bytes_max > 0 && strlen(name) < sizeof(sink->name));
	sink->dir_fd = dir_fd;
	(void)snprintf(sink->name, sizeof(sink->name), "%s", name);
	sink->fd = -1;
	sink->bytes = 0;
	sink->bytes_max = bytes_max;
	sink->files_max = files_max;
	sink->dropped = 0;
	sink->lost = 0;
	sink->told = false;
	sink->spill = NULL;
	sink->shown = false;
	sink->part[0].len = sink->part[1].len = 0;
	if (open_file(sink) < 0)
		return hf_error_errno(err, errno, "cannot open log '%s'", name);
	/* Ignore a full disk: the container may run, and the log says that output is lost. */
	(void)!hold_blocks(sink, 0);
	return 0;
}

static void part_name(const struct hf_log_sink *sink, int i, char *out, size_t size)
{
	(void)snprintf(out, size, i ? "%s.%d" : "%s", sink->name, i);
}

/* Releases unused blocks and closes the file. */
static void close_file(struct hf_log_sink *sink)
{
	if (sink->fd >= 0 && sink->held > sink->bytes)
		(void)!ftruncate(sink->fd, (off_t)sink->bytes);
	hf_fd_cleanup(&sink->fd);
}

/* Notes the size of the oldest part, which a rotation drops, for readers of the log. */
static void note_dropped(struct hf_log_sink *sink)
{
	char name[sizeof(sink->name) + 16], text[32];
	struct stat st;
	int n, fd;

	part_name(sink, sink->files_max - 1, name, sizeof(name));
	if (fstatat(sink->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	sink->dropped += (int64_t)st.st_size;
	(void)snprintf(name, sizeof(name), "%s" HF_LOG_DROPPED, sink->name);
	n = snprintf(text, sizeof(text), "%" PRId64, sink->dropped);
	fd = openat(sink->dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	/* Ignore a failure: on a full disk the number is too small. It never becomes shorter, so the
	 * file needs no truncation. */
	if (fd >= 0)
		(void)!write(fd, text, (size_t)n);
	hf_fd_cleanup(&fd);
}

/* Renames NAME to NAME.1, NAME.1 to NAME.2 and so on, and opens a new NAME. At most files_max files
 * stay: the oldest file is overwritten. */
static void rotate_files(struct hf_log_sink *sink)
{
	char from[sizeof(sink->name) + 16], to[sizeof(sink->name) + 16];

	close_file(sink);
	note_dropped(sink);
	if (sink->files_max == 1)
		(void)unlinkat(sink->dir_fd, sink->name, 0);
	for (int i = sink->files_max - 2; i >= 0; i--) {
		part_name(sink, i, from, sizeof(from));
		part_name(sink, i + 1, to, sizeof(to));
		(void)renameat(sink->dir_fd, from, sink->dir_fd, to);
	}
	(void)open_file(sink);
}

/* Writes all bytes or none: an incomplete line would be joined with the next line. */
static bool write_batch(struct hf_log_sink *sink, const char *bytes, size_t len)
{
	size_t done = 0;

	if (sink->fd < 0 && open_file(sink) < 0)
		return false;
	while (done < len) {
		ssize_t n = write(sink->fd, bytes + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			(void)!ftruncate(sink->fd, (off_t)sink->bytes);
			sink->held = sink->bytes;
			return false;
		}
		done += (size_t)n;
	}
	sink->bytes += (int64_t)len;
	return true;
}

static void add_line(struct hf_strbuf *sb, hf_time now, int stream, char tag, const char *line,
		     size_t len)
{
	char at[HF_TIME_TEXT_MAX];

	hf_time_format_micro(now, at);
	hf_strbuf_addf(sb, "%s %s %c ", at, stream_names[stream], tag);
	hf_strbuf_add(sb, line, len);
	hf_strbuf_addch(sb, '\n');
}

static char note_tag(const struct hf_log_sink *sink)
{
	return sink->shown ? HF_LOG_TAG_SHOWN : 'F';
}

static void add_note(const struct hf_log_sink *sink, struct hf_strbuf *sb, hf_time now)
{
	char text[128];
	int n = snprintf(text, sizeof(text),
			 "holdfast: %" PRIu64 " bytes of output could not be written here",
			 sink->lost);

	add_line(sb, now, 1, note_tag(sink), text, (size_t)n);
}

/* Writes a note into the blocks reserved for it. If the container ends before the disk has room
 * again, the log thus still shows where output is missing. */
static void say_lost(struct hf_log_sink *sink, hf_time now)
{
	static const char text[] = "holdfast: output is lost from here on: it cannot be written";
	HF_AUTO_STRBUF note = HF_STRBUF_INIT(512);

	add_line(&note, now, 1, note_tag(sink), text, sizeof(text) - 1);
	sink->told = sink->told || write_batch(sink, note.data, note.len);
}

/* Passes lines that cannot be written to the clients, and counts them. */
static void lose_lines(struct hf_log_sink *sink, const struct hf_strbuf *batch, size_t raw_len,
		       hf_time now)
{
	bool shown = sink->spill && sink->spill(sink->spill_arg, batch->data, batch->len);

	sink->shown = shown && (sink->shown || !sink->lost);
	sink->lost += raw_len;
	/* The clients have the lines before a reader of the log can see the note. */
	say_lost(sink, now);
}

/* Writes lines, with a note before them if output was lost. Note and lines are written together or
 * not at all; otherwise notes alone would fill a nearly full disk. */
static void write_lines(struct hf_log_sink *sink, const struct hf_strbuf *batch, size_t raw_len,
			hf_time now)
{
	HF_AUTO_STRBUF both = HF_STRBUF_INIT(BATCH_BYTES_MAX + 512);
	const struct hf_strbuf *lines = batch;

	if (!batch->len)
		return;
	if (sink->bytes > 0 && sink->bytes + (int64_t)batch->len > sink->bytes_max)
		rotate_files(sink);
	if (sink->lost) {
		add_note(sink, &both, now);
		hf_strbuf_add(&both, batch->data, batch->len);
		hf_assert(!both.full);
		batch = &both;
	}
	if (!hold_blocks(sink, batch->len) || !write_batch(sink, batch->data, batch->len)) {
		lose_lines(sink, lines, raw_len, now);
		return;
	}
	sink->lost = 0;
	sink->told = false;
}

/* Writes the finished part of an unfinished line: all bytes up to the last carriage return. A
 * progress bar is one long line, and readers would otherwise see it only at its end. */
static void take_redrawn(struct hf_log_sink *sink, int stream, struct hf_strbuf *batch, hf_time now)
{
	char *line = sink->part[stream].line;
	size_t *have = &sink->part[stream].len;
	const char *last = memrchr(line, '\r', *have);
	size_t take = last ? (size_t)(last - line) + 1 : 0;

	/* Wait if the carriage return is the last byte: it may belong to "\r\n", the end of a
	 * line. */
	if (!take || take == *have)
		return;
	add_line(batch, now, stream, 'P', line, take);
	memmove(line, line + take, *have - take);
	*have -= take;
}

void hf_log_sink_add(struct hf_log_sink *sink, int stream, const char *bytes, size_t len,
		     hf_time now)
{
	HF_AUTO_STRBUF batch = HF_STRBUF_INIT(BATCH_BYTES_MAX);
	size_t raw_len = len;

	while (len) {
		char *line = sink->part[stream].line;
		size_t *have = &sink->part[stream].len;
		size_t room = HF_LOG_LINE_MAX - *have;
		const char *end = memchr(bytes, '\n', len < room ? len : room);
		size_t take = end ? (size_t)(end - bytes) : len < room ? len : room;

		memcpy(line + *have, bytes, take);
		*have += take;
		bytes += take + (end != NULL);
		len -= take + (end != NULL);
		if (!end && *have < HF_LOG_LINE_MAX)
			break;
		add_line(&batch, now, stream, end ? 'F' : 'P', line, *have);
		*have = 0;
	}
	take_redrawn(sink, stream, &batch, now);
	hf_assert(!batch.full);
	write_lines(sink, &batch, raw_len, now);
}

void hf_log_sink_close(struct hf_log_sink *sink, hf_time now)
{
	for (int stream = 0; stream < 2; stream++) {
		HF_AUTO_STRBUF batch = HF_STRBUF_INIT(BATCH_BYTES_MAX);
		size_t len = sink->part[stream].len;

		if (len)
			add_line(&batch, now, stream, 'P', sink->part[stream].line, len);
		write_lines(sink, &batch, len, now);
		sink->part[stream].len = 0;
	}
	if (sink->lost) {
		HF_AUTO_STRBUF note = HF_STRBUF_INIT(512);

		add_note(sink, &note, now);
		if (write_batch(sink, note.data, note.len))
			sink->lost = 0;
	}
	close_file(sink);
}

bool hf_log_send(int client, const struct hf_strbuf *message, bool *stuck)
{
	struct pollfd fd = {.fd = client, .events = POLLOUT};
	bool sent = false;

	for (int tries = 0; tries < 2 && !sent; tries++) {
		sent = send(client, message->data, message->len, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
		if (!sent && (errno != EAGAIN || *stuck || poll(&fd, 1, SEND_WAIT_MS) <= 0))
			break;
	}
	*stuck = !sent;
	return sent;
}
