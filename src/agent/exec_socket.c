/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/exec_socket.h"

#include "agent/named_socket.h"
#include "base/fs.h"
#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Accepts connections of `holdfast exec`, reads lines from them and sends targets.
 *
 * Input: a named socket; one struct hf_exec_peer for each connection.  Output: the calls of struct
 * hf_exec_socket_options.
 *
 * The kernel names the process of a new connection (SO_PEERCRED).  The agent refuses the
 * connection if that process is in no pod.  The agent closes the connection of a peer that sends
 * too many lines or does not read; exec connects again and sends its whole state.
 */

/* Most connections, and most lines of one connection, that are taken before the loop has its turn. */
#define ACCEPTED_AT_ONCE 32
#define LINES_AT_ONCE 16

/* Linux 6.5; headers may be older. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

struct hf_exec_peer {
	struct hf_exec_socket *socket;
	int fd;
	pid_t pid;
	char uid[HF_REPORT_POD_UID_MAX];
	struct hf_io *io;
	/* closes the peer from the loop, where the peer must not be freed at once */
	struct hf_task *close;
};

struct hf_exec_socket {
	struct hf_exec_socket_options options;
	struct hf_named_socket *named;
	struct hf_exec_peer *peers[HF_EXEC_PEERS_MAX];
	size_t len;
	struct hf_family *lines;
	struct hf_report_limits limits;
};

static void count_line(struct hf_exec_socket *s, const char *result)
{
	if (s->lines != NULL)
		hf_family_add(s->lines, 1, result, NULL);
}

/* ---- connections -------------------------------------------------------------------------------- */

static void free_peer(struct hf_exec_peer *peer)
{
	hf_io_destroy(peer->io);
	hf_task_destroy(peer->close);
	(void)close(peer->fd);
	free(peer);
}

static void drop_peer(struct hf_exec_peer *peer)
{
	struct hf_exec_socket *s = peer->socket;

	for (size_t i = 0; i < s->len; i++) {
		if (s->peers[i] != peer)
			continue;
		s->peers[i] = s->peers[--s->len];
		s->options.closed(s->options.arg, peer);
		free_peer(peer);
		return;
	}
}

static void on_close(void *arg)
{
	drop_peer(arg);
}

/* Whether the process that connected still lives.  After its end its pid may go to another process, but the pidfd
 * of the connection tells that it has ended. */
static bool is_alive(int pidfd)
{
	struct pollfd fd = {.fd = pidfd, .events = POLLIN};

	return pidfd < 0 || poll(&fd, 1, 0) == 0;
}

static bool find_pod(struct hf_exec_socket *s, int fd, pid_t *ret_pid,
		     char ret_uid[HF_REPORT_POD_UID_MAX])
{
	HF_AUTO_FD pidfd = -1;
	struct ucred peer = {.pid = 0};
	socklen_t len = sizeof(peer), pidfd_len = sizeof(pidfd);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 || peer.pid <= 0)
		return false;
	/* Without SO_PEERPIDFD in the kernel the process counts as alive. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &pidfd_len) != 0)
		pidfd = -1;
	*ret_pid = peer.pid;
	return hf_report_limits_may_ask(&s->limits, peer.pid, hf_loop_mono(s->options.loop)) &&
	       s->options.identify(s->options.arg, peer.pid, ret_uid) && is_alive(pidfd);
}

static bool take_note(const struct hf_exec_peer *peer, const char *text, size_t len)
{
	const struct hf_exec_socket *s = peer->socket;
	char words[HF_PROCESS_WORDS_MAX];

	if (!hf_process_note_parse(text, len, words))
		return false;
	if (s->options.noted != NULL)
		s->options.noted(s->options.arg, peer->uid, words);
	return true;
}

static void take_line(struct hf_exec_peer *peer, const char *text, size_t len)
{
	struct hf_exec_socket *s = peer->socket;
	struct hf_process_state state;

	if (!hf_report_limits_may_ask(&s->limits, peer->pid, hf_loop_mono(s->options.loop)) ||
	    !hf_report_limits_may_hear(&s->limits, peer->pid, peer->uid)) {
		count_line(s, "limited");
		/* exec sends its whole state again after it has connected again, so the lost state comes again. */
		hf_task_post(peer->close);
	} else if (take_note(peer, text, len)) {
		count_line(s, "taken");
	} else if (!hf_process_state_parse(text, len, &state)) {
		count_line(s, "broken");
	} else {
		count_line(s, "taken");
		s->options.told(s->options.arg, peer, &state);
	}
}

static void on_peer(void *arg, unsigned events HF_UNUSED)
{
	struct hf_exec_peer *peer = arg;
	char text[HF_PROCESS_LINE_BYTES_MAX];

	for (int i = 0; i < LINES_AT_ONCE && !hf_task_posted(peer->close); i++) {
		struct iovec part = {.iov_base = text, .iov_len = sizeof(text)};
		/* The message has no room for file descriptors, so the kernel closes those that a peer sends. */
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
		ssize_t n = recvmsg(peer->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			drop_peer(peer);
			return;
		}
		if ((message.msg_flags & MSG_TRUNC) != 0)
			count_line(peer->socket, "broken");
		else
			take_line(peer, text, (size_t)n);
	}
}

static void add_peer(struct hf_exec_socket *s, int fd, pid_t pid, const char *uid)
{
	struct hf_exec_peer *peer = hf_xcalloc(1, sizeof(*peer));
	struct hf_error err;

	peer->socket = s;
	peer->fd = fd;
	peer->pid = pid;
	memcpy(peer->uid, uid, sizeof(peer->uid));
	peer->close = hf_task_create(s->options.loop, on_close, peer);
	if (hf_io_create(s->options.loop, fd, on_peer, peer, &peer->io, &err) != 0 ||
	    !s->options.opened(s->options.arg, peer, uid)) {
		free_peer(peer);
		return;
	}
	s->peers[s->len++] = peer;
	hf_io_want(peer->io, HF_IO_READ);
}

static void on_connections(void *arg, int listener)
{
	struct hf_exec_socket *s = arg;

	for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		char uid[HF_REPORT_POD_UID_MAX] = "";
		pid_t pid = 0;

		if (fd < 0)
			return;
		if (s->len < HF_EXEC_PEERS_MAX && find_pod(s, fd, &pid, uid))
			add_peer(s, fd, pid, uid);
		else
			(void)close(fd);
	}
}

void hf_exec_socket_send(struct hf_exec_peer *peer, const struct hf_process_target *target)
{
	char text[HF_PROCESS_LINE_BYTES_MAX];
	size_t len = hf_process_target_format(target, text);

	if (send(peer->fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)len)
		hf_task_post(peer->close);
}

/* ---- life --------------------------------------------------------------------------------------- */

static void on_trouble(void *arg, const char *why)
{
	const struct hf_exec_socket *s = arg;

	s->options.trouble(s->options.arg, why);
}

static struct hf_family *make_family(struct hf_metrics *metrics)
{
	static const struct hf_metric_options options = {
		.name = "holdfast_agent_process_states_total",
		.help = "States of processes that holdfast exec has sent to the agent, by result.",
		.type = HF_METRIC_COUNTER,
		.labels = {"result"},
		.series_max = 3,
	};

	return metrics != NULL ? hf_metrics_family(metrics, &options) : NULL;
}

int hf_exec_socket_create(const struct hf_exec_socket_options *options,
			  struct hf_exec_socket **ret_socket, struct hf_error *err)
{
	struct hf_exec_socket *s = hf_xcalloc(1, sizeof(*s));
	const struct hf_named_socket_options named = {.loop = options->loop,
						      .path = options->path,
						      .type = SOCK_SEQPACKET,
						      .look_every = options->look_every,
						      .mode = options->mode,
						      .ready = on_connections,
						      .trouble = on_trouble,
						      .arg = s};
	int rc;

	s->options = *options;
	s->lines = make_family(options->metrics);
	rc = hf_named_socket_create(&named, &s->named, err);
	if (rc != 0) {
		hf_exec_socket_destroy(s);
		return rc;
	}
	*ret_socket = s;
	return 0;
}

struct hf_exec_socket *hf_exec_socket_destroy(struct hf_exec_socket *s)
{
	if (s == NULL)
		return NULL;
	while (s->len > 0)
		drop_peer(s->peers[s->len - 1]);
	hf_named_socket_destroy(s->named);
	free(s);
	return NULL;
}
