/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/shim_internal.h"

#include "base/fs.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The other end of a shim's socket: for the kubelet and for the stand-in for kubectl. */

int hf_shim_connect(int pod_dir, int socket_flags)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | socket_flags, 0);

	/* Connect by a path in /proc, because the path of the pod's folder may be longer than a
	 * socket's address. */
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path),
		       "/proc/self/fd/%d/" HF_SHIM_SOCKET_FILE, pod_dir);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		hf_fd_cleanup(&fd);
	return fd;
}

bool hf_shim_ask(int fd, const char *verb, const char *container, const char *const *argv,
		 const int stdio[3])
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_SHIM_EXEC_MAX);
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(3 * sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec part;
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	hf_strbuf_addf(&text, "%s %s", verb, container);
	for (; *argv; argv++) {
		hf_strbuf_addch(&text, '\0');
		hf_strbuf_addstr(&text, *argv);
	}
	if (hf_strbuf_ok(&text, "the command", NULL) != 0)
		return false;
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(3 * sizeof(int));
	memcpy(CMSG_DATA(header), stdio, 3 * sizeof(int));
	part = (struct iovec){.iov_base = text.data, .iov_len = text.len};
	return sendmsg(fd, &message, MSG_NOSIGNAL) >= 0;
}
