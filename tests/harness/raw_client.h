/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_RAW_CLIENT_H
#define HF_TESTS_HARNESS_RAW_CLIENT_H

/* A TCP client for tests of a server: it sends exactly the bytes of the test, on the loop of the
 * server. */

#include "harness/real_loop.h"

#include "base/strbuf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct hf_raw {
	struct hf_test_loop *t;
	int fd;
	struct hf_io *io;
	struct hf_strbuf in, out;
	const char *until; /* text to wait for: the loop stops when `in` contains it */
	bool eof;    /* the server has closed or reset the connection, which also stops the loop */
	bool paused; /* reads nothing */
};

static inline void hf_raw_want(struct hf_raw *raw)
{
	unsigned want = 0;

	if (raw->out.len > 0)
		want |= HF_IO_WRITE;
	if (!raw->eof && !raw->paused)
		want |= HF_IO_READ;
	hf_io_want(raw->io, want);
}

static inline void hf_raw_check(struct hf_raw *raw)
{
	if (raw->eof ||
	    (raw->until && memmem(raw->in.data, raw->in.len, raw->until, strlen(raw->until))))
		hf_loop_stop(raw->t->loop);
}

static inline void hf_raw_on_io(void *arg, unsigned events)
{
	struct hf_raw *raw = (struct hf_raw *)arg;
	char bytes[16384];
	ssize_t n;

	if ((events & HF_IO_WRITE) && raw->out.len > 0) {
		n = send(raw->fd, raw->out.data, raw->out.len, MSG_NOSIGNAL);
		if (n > 0)
			hf_strbuf_consume(&raw->out, (size_t)n);
		else if (errno != EAGAIN)
			hf_strbuf_clear(&raw->out);
	}
	if (events & (HF_IO_READ | HF_IO_HANGUP)) {
		n = recv(raw->fd, bytes, sizeof(bytes), 0);
		if (n > 0)
			hf_strbuf_add(&raw->in, bytes, (size_t)n);
		else if (n == 0 || errno != EAGAIN)
			raw->eof = true;
	}
	hf_raw_want(raw);
	hf_raw_check(raw);
}

static inline void hf_raw_open(struct hf_raw *raw, struct hf_test_loop *t, uint16_t port)
{
	struct sockaddr_in address;
	struct hf_error err = {0};

	memset(raw, 0, sizeof(*raw));
	memset(&address, 0, sizeof(address));
	address.sin_family = AF_INET;
	address.sin_port = htons(port);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	raw->t = t;
	hf_strbuf_init(&raw->in, (size_t)64 << 20);
	hf_strbuf_init(&raw->out, (size_t)64 << 20);
	raw->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(raw->fd >= 0);
	/* A connect on loopback does not block. */
	assert_int_equal(connect(raw->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_ok(hf_io_create(t->loop, raw->fd, hf_raw_on_io, raw, &raw->io, &err), &err);
	hf_raw_want(raw);
}

static inline void hf_raw_close(struct hf_raw *raw)
{
	raw->io = hf_io_destroy(raw->io);
	if (raw->fd >= 0)
		close(raw->fd);
	raw->fd = -1;
	hf_strbuf_release(&raw->in);
	hf_strbuf_release(&raw->out);
}

static inline void hf_raw_say(struct hf_raw *raw, const char *text)
{
	hf_strbuf_addstr(&raw->out, text);
	hf_raw_want(raw);
}

/* Runs the loop until the server has sent `text`. If the server does not, the test fails. */
static inline void hf_raw_expect(struct hf_raw *raw, const char *text)
{
	raw->until = text;
	while (!raw->eof && !memmem(raw->in.data, raw->in.len, text, strlen(text)))
		hf_test_loop_run(raw->t); /* others may stop it, too */
	raw->until = NULL;
	if (!memmem(raw->in.data, raw->in.len, text, strlen(text)))
		fail_msg("no '%s' in '%s'", text, raw->in.data);
}

/* Runs the loop until the server has closed the connection. */
static inline void hf_raw_expect_eof(struct hf_raw *raw)
{
	while (!raw->eof)
		hf_test_loop_run(raw->t);
}

#endif
