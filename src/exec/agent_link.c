/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/agent_link.h"

#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Most lines of the agent that one call takes: an agent that sends without end delays the signals for CMD by no
 * more. */
#define LINES_AT_ONCE 64

void hf_agent_link_open(struct hf_agent_link *link, const char *agent_socket)
{
	const char *slash = strrchr(agent_socket, '/');
	int folder = slash != NULL ? (int)(slash - agent_socket + 1) : 0;
	int n;

	*link = (struct hf_agent_link){
		.fd = -1, .pause_ms = HF_AGENT_LINK_RETRY_MIN_MS, .due = true};
	/* An abstract name has no folder. */
	if (slash == NULL || agent_socket[0] == '@')
		return;
	n = snprintf(link->name.sun_path, sizeof(link->name.sun_path), "%.*s%s", folder,
		     agent_socket, HF_EXEC_SOCKET_FILE);
	if (n > 0 && (size_t)n < sizeof(link->name.sun_path))
		link->name.sun_family = AF_UNIX;
}

void hf_agent_link_close(struct hf_agent_link *link)
{
	if (link->fd >= 0)
		(void)close(link->fd);
	link->fd = -1;
}

static void close_for_now(struct hf_agent_link *link, int64_t now_ms)
{
	hf_agent_link_close(link);
	link->due = true;
	link->retry_at_ms = now_ms + link->pause_ms;
	link->pause_ms = 2 * link->pause_ms < HF_AGENT_LINK_RETRY_MAX_MS
				 ? 2 * link->pause_ms
				 : HF_AGENT_LINK_RETRY_MAX_MS;
}

bool hf_agent_link_is_connected(const struct hf_agent_link *link)
{
	return link->fd >= 0;
}

bool hf_agent_link_connect(struct hf_agent_link *link, int64_t now_ms)
{
	if (link->fd >= 0 || link->name.sun_family == 0 || now_ms < link->retry_at_ms)
		return link->fd >= 0;
	link->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (link->fd < 0 ||
	    connect(link->fd, (const struct sockaddr *)&link->name, sizeof(link->name)) != 0) {
		close_for_now(link, now_ms);
		return false;
	}
	return true;
}

int64_t hf_agent_link_retry_ms(const struct hf_agent_link *link)
{
	return link->fd >= 0 || link->name.sun_family == 0 ? INT64_MAX : link->retry_at_ms;
}

void hf_agent_link_send(struct hf_agent_link *link, const struct hf_process_state *state,
			int64_t now_ms)
{
	char text[HF_PROCESS_LINE_BYTES_MAX];
	size_t len;

	if (!link->due || link->fd < 0)
		return;
	len = hf_process_state_format(state, text);
	if (send(link->fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len)
		link->due = false;
	else if (errno != EAGAIN && errno != ENOBUFS)
		close_for_now(link, now_ms);
}

void hf_agent_link_note(const struct hf_agent_link *link, const char *words)
{
	char text[HF_PROCESS_LINE_BYTES_MAX];
	size_t len = hf_process_note_format(words, text);

	if (link->fd >= 0)
		(void)!send(link->fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool hf_agent_link_receive(struct hf_agent_link *link, int64_t now_ms,
			   struct hf_process_target *ret_target)
{
	char text[HF_PROCESS_LINE_BYTES_MAX];

	for (int i = 0; i < LINES_AT_ONCE && link->fd >= 0; i++) {
		struct iovec part = {.iov_base = text, .iov_len = sizeof(text)};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
		ssize_t n = recvmsg(link->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		/* An empty packet is the end. */
		if (n <= 0) {
			close_for_now(link, now_ms);
			return false;
		}
		if ((message.msg_flags & MSG_TRUNC) != 0 ||
		    !hf_process_target_parse(text, (size_t)n, ret_target))
			continue;
		link->pause_ms = HF_AGENT_LINK_RETRY_MIN_MS;
		return true;
	}
	return false;
}
