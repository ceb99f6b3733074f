/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/exec_internal.h"

#include "base/str.h"
#include "exec/rest.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * The datagrams between exec and its surroundings: reports of the ranks below exec come in, signs
 * of life go out to the node's agent.
 *
 * Input: the agent's socket; datagrams of processes.  Output: reports of descendants alone: the
 * kernel names the sender of a datagram, and exec drops those of other processes.  No call blocks.
 */

/* The length of an abstract name that the kernel chooses at bind(): a NUL and five hexadecimal digits. */
#define AUTOBIND_LEN 6

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static void open_report(struct hf_exec_link *link)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(name);
	int on = 1;

	link->report_fd = open_socket();
	if (link->report_fd < 0)
		return;
	if (setsockopt(link->report_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0 &&
	    bind(link->report_fd, (const struct sockaddr *)&name, sizeof(name.sun_family)) == 0 &&
	    getsockname(link->report_fd, (struct sockaddr *)&name, &len) == 0 &&
	    len == offsetof(struct sockaddr_un, sun_path) + AUTOBIND_LEN) {
		snprintf(link->report_name, sizeof(link->report_name), "@%.*s", AUTOBIND_LEN - 1,
			 name.sun_path + 1);
		return;
	}
	(void)close(link->report_fd);
	link->report_fd = -1;
}

void hf_exec_link_open(struct hf_exec_link *link, const char *agent_socket)
{
	*link = (struct hf_exec_link){.agent_fd = -1, .report_fd = -1};
	open_report(link);
	if (hf_str_is_empty(agent_socket) || strlen(agent_socket) >= sizeof(link->agent.sun_path))
		return;
	link->agent.sun_family = AF_UNIX;
	memcpy(link->agent.sun_path, agent_socket, strlen(agent_socket) + 1);
	link->agent_fd = open_socket();
}

bool hf_exec_link_is_there(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t len = hf_str_is_empty(name) ? 0 : strlen(name);
	bool there;
	int fd;

	if (len < 2 || name[0] != '@' || len > sizeof(address.sun_path))
		return false;
	memcpy(address.sun_path + 1, name + 1, len - 1);
	fd = open_socket();
	there = fd >= 0 && connect(fd, (const struct sockaddr *)&address,
				   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) == 0;
	if (fd >= 0)
		(void)close(fd);
	return there;
}

bool hf_exec_link_send(const struct hf_exec_link *link, const struct hf_beat *beat)
{
	char text[HF_BEAT_BYTES_MAX];
	size_t len;

	if (link->agent_fd < 0)
		return false;
	len = hf_beat_format(beat, text);
	/* Each report is sent to the socket's name, so it reaches an agent that was started again. */
	return sendto(link->agent_fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)&link->agent, sizeof(link->agent)) >= 0;
}

/* Whether exec takes the report: its sender is a descendant, and runs as exec's user or as root.  If exec is root,
 * any user counts: entrypoints change the user before they train.  Senders of other PID namespaces have the pid 0,
 * and do not count.  child: see hf_exec_link_receive. */
static bool is_ours(const struct msghdr *message, pid_t child, pid_t *ret_pid)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(message);
	struct ucred sender;

	if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
		return false;
	memcpy(&sender, CMSG_DATA(c), sizeof(sender));
	*ret_pid = sender.pid;
	return (sender.uid == geteuid() || sender.uid == 0 || geteuid() == 0) &&
	       (sender.pid == child || hf_rest_is_below("/proc", sender.pid));
}

bool hf_exec_link_receive(const struct hf_exec_link *link, pid_t child, int *left,
			  struct hf_beat *ret_beat, struct hf_exec_sender *ret_sender)
{
	char text[HF_BEAT_BYTES_MAX];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;

	while (link->report_fd >= 0 && (*left)-- > 0) {
		struct iovec part = {.iov_base = text, .iov_len = sizeof(text)};
		struct msghdr message = {.msg_name = &ret_sender->name,
					 .msg_namelen = sizeof(ret_sender->name),
					 .msg_iov = &part,
					 .msg_iovlen = 1,
					 .msg_control = control.bytes,
					 .msg_controllen = sizeof(control.bytes)};
		ssize_t n = recvmsg(link->report_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n < 0)
			return false;
		if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
		    is_ours(&message, child, &ret_sender->pid) &&
		    hf_beat_parse(text, (size_t)n, ret_beat)) {
			ret_sender->len = message.msg_namelen;
			return true;
		}
	}
	return false;
}
