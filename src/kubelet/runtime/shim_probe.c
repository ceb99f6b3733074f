/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/shim_internal.h"

#include "base/fs.h"
#include "base/str.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/*
 * A probe over the pod's network: connects to a port, and for HTTP asks for a path. It runs in a
 * helper of the pod's shim, which is in the pod's network already; nothing else reaches a pod.
 *
 * Output: the exit code (0: healthy) and on stdout a sentence, in the words of upstream's kubelet.
 */
#define REQUEST_BYTES_MAX ((size_t)16 << 10)
#define STATUS_LINE_MAX 256

/* Connects to a port. Returns a socket whose reads and writes end after timeout_s; -1 and errno on
 * an error. */
static int connect_within(const char *host, const char *port, int64_t timeout_s)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	const struct timeval limit = {.tv_sec = timeout_s};
	struct addrinfo *all = NULL;
	int fd = -1;

	errno = EHOSTUNREACH;
	if (getaddrinfo(host, port, &hints, &all) != 0)
		return -1;
	for (const struct addrinfo *a = all; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		/* The time limit for sending is also that of connect. */
		if (fd >= 0 &&
		    (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
		     setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
		     connect(fd, a->ai_addr, a->ai_addrlen) < 0))
			hf_fd_cleanup(&fd);
	}
	freeaddrinfo(all);
	return fd;
}

static int fail_probe(const char *what, const char *host, const char *port)
{
	const char *reason =
		errno == EAGAIN || errno == EINPROGRESS ? "time limit exceeded" : strerror(errno);

	(void)dprintf(STDOUT_FILENO, "%s %s:%s: %s\n", what, host, port, reason);
	return 1;
}

static int send_request(int fd, const char *const *argv)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(REQUEST_BYTES_MAX);

	hf_strbuf_addf(&text, "GET %s HTTP/1.1\r\n", argv[0]);
	for (const char *const *header = argv + 1; *header; header++)
		hf_strbuf_addf(&text, "%s\r\n", *header);
	hf_strbuf_addstr(&text, "Connection: close\r\n\r\n");
	if (hf_strbuf_ok(&text, "the request", NULL) != 0) {
		errno = EMSGSIZE;
		return -1;
	}
	return send(fd, text.data, text.len, MSG_NOSIGNAL) == (ssize_t)text.len ? 0 : -1;
}

/* Reads the status line of the response and returns its code; -1: the response is not HTTP, or
 * none came. */
static int read_status(int fd)
{
	char line[STATUS_LINE_MAX + 1];
	size_t len = 0;
	int code = -1;

	while (len < STATUS_LINE_MAX && !memchr(line, '\n', len)) {
		ssize_t n = recv(fd, line + len, STATUS_LINE_MAX - len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	line[len] = '\0';
	errno = EPROTO;
	if (strncmp(line, "HTTP/1.", 7) != 0 || len < 12 || line[8] != ' ')
		return -1;
	for (int i = 9; i < 12; i++) {
		if (line[i] < '0' || line[i] > '9')
			return -1;
		code = (i == 9 ? 0 : code * 10) + (line[i] - '0');
	}
	return code;
}

/* Runs a probe. argv: "tcp" TIMEOUT_S HOST PORT, or "http" TIMEOUT_S HOST PORT PATH [HEADER…]. */
int hf_shim_probe(const char *const *argv)
{
	size_t n = 0;
	bool http;
	int64_t timeout_s;
	int code;

	while (argv[n])
		n++;
	http = n >= 5 && hf_streq(argv[0], "http");
	if ((!http && (n != 4 || !hf_streq(argv[0], "tcp"))) ||
	    hf_str_to_i64(argv[1], 1, INT32_MAX, &timeout_s, NULL) != 0) {
		(void)dprintf(STDOUT_FILENO, "this probe cannot be run\n");
		return 1;
	}
	/* Limit the whole probe by an alarm: the time limits of the socket hold for each call
	 * alone. */
	(void)alarm((unsigned)timeout_s + 1);
	HF_AUTO_FD fd = connect_within(argv[2], argv[3], timeout_s);

	if (fd < 0)
		return fail_probe("dial tcp", argv[2], argv[3]);
	if (!http)
		return 0;
	if (send_request(fd, argv + 4) < 0 || (code = read_status(fd)) < 0)
		return fail_probe("Get", argv[2], argv[3]);
	if (code >= 200 && code < 400)
		return 0;
	(void)dprintf(STDOUT_FILENO, "HTTP probe failed with statuscode: %d\n", code);
	return 1;
}
