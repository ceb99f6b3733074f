/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Creates the listening socket of a server: an IP address and port, or a unix socket file. */
#include "http/server_internal.h"

#include "base/fs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LISTEN_BACKLOG 512

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

/* Removes the socket file of a server that has ended. If a server still listens on the file, the
 * call fails. */
static int clear_stale(const union address *address, socklen_t len, struct hf_error *err)
{
	const char *path = address->local.sun_path;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0
				       : hf_error_errno(err, errno, "cannot look at '%s'", path);
	if (!S_ISSOCK(st.st_mode))
		return hf_error_set(err, HF_E_IO, "'%s' exists and is not a socket", path);
	HF_AUTO_FD probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0)
		return hf_error_errno(err, errno, "cannot create a socket");
	if (connect(probe, &address->any, len) == 0 || errno != ECONNREFUSED)
		return hf_error_set(err, HF_E_IO, "'%s' is in use", path);
	if (unlink(path) < 0)
		return hf_error_errno(err, errno, "cannot remove '%s'", path);
	return 0;
}

static int fill_address(const struct hf_http_server_spec *spec, union address *address,
			socklen_t *ret_len, struct hf_error *err)
{
	memset(address, 0, sizeof(*address));
	if (spec->unix_path) {
		if (strlen(spec->unix_path) >= sizeof(address->local.sun_path))
			return hf_error_set(err, HF_E_INVALID, "'%s' is too long for a socket",
					    spec->unix_path);
		address->local.sun_family = AF_UNIX;
		memcpy(address->local.sun_path, spec->unix_path, strlen(spec->unix_path) + 1);
		*ret_len = sizeof(address->local);
		return clear_stale(address, *ret_len, err);
	}
	if (inet_pton(AF_INET, spec->address, &address->v4.sin_addr) == 1) {
		address->v4.sin_family = AF_INET;
		address->v4.sin_port = htons(spec->port);
		*ret_len = sizeof(address->v4);
		return 0;
	}
	if (inet_pton(AF_INET6, spec->address, &address->v6.sin6_addr) == 1) {
		address->v6.sin6_family = AF_INET6;
		address->v6.sin6_port = htons(spec->port);
		*ret_len = sizeof(address->v6);
		return 0;
	}
	return hf_error_set(err, HF_E_INVALID, "'%s' is not an IP address", spec->address);
}

static int bind_and_listen(int fd, const union address *address, socklen_t len)
{
	int one = 1;

	if (address->any.sa_family != AF_UNIX)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	mode_t before = umask(0177); /* the umask matters for a socket file only */
	int rc = bind(fd, &address->any, len);
	int errnum = errno;
	(void)umask(before);
	errno = errnum;
	return rc < 0 ? rc : listen(fd, LISTEN_BACKLOG);
}

int hf_http_listen(const struct hf_http_server_spec *spec, int *ret_fd, uint16_t *ret_port,
		   struct hf_error *err)
{
	const char *name = spec->unix_path ? spec->unix_path : spec->address;
	union address address;
	socklen_t len = 0;
	int rc = fill_address(spec, &address, &len, err);

	if (rc < 0)
		return rc;
	HF_AUTO_FD fd =
		socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return hf_error_errno(err, errno, "cannot create a socket");
	if (bind_and_listen(fd, &address, len) < 0) {
		if (spec->unix_path)
			return hf_error_errno(err, errno, "cannot listen on '%s'", name);
		return hf_error_errno(err, errno, "cannot listen on '%s', port %u", name,
				      spec->port);
	}
	uint16_t port = 0;
	if (!spec->unix_path) {
		len = sizeof(address);
		if (getsockname(fd, &address.any, &len) < 0)
			return hf_error_errno(err, errno,
					      "cannot read the port number of the socket");
		port = ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port
							      : address.v6.sin6_port);
	}
	*ret_fd = fd;
	*ret_port = port;
	fd = -1;
	return 0;
}

int hf_http_listen_check(const char *address, uint16_t port, struct hf_error *err)
{
	const struct hf_http_server_spec spec = {.address = address, .port = port};
	HF_AUTO_FD fd = -1;
	uint16_t bound;

	return hf_http_listen(&spec, &fd, &bound, err);
}
