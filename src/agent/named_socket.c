/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/named_socket.h"

#include "base/fs.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* How often the agent checks whether the path is still its socket: far more often than fences run out, because the
 * reports of ranks must arrive before. */
#define LOOK_EVERY (5 * HF_SECOND)
/* Connections that wait to be accepted: after an agent's start, exec in all pods of the node connects at once. */
#define BACKLOG 256

struct hf_named_socket {
	struct hf_named_socket_options options;
	char *path;
	int fd;
	dev_t dev; /* the device number of the socket's file, while io is open */
	ino_t ino;
	struct hf_io *io;
	struct hf_timer *look;
	bool troubled; /* and told */
};

static int make_name(const struct hf_named_socket *s, struct sockaddr_un *ret_name,
		     struct hf_error *err)
{
	memset(ret_name, 0, sizeof(*ret_name));
	ret_name->sun_family = AF_UNIX;
	if (strlen(s->path) >= sizeof(ret_name->sun_path))
		return hf_error_set(err, HF_E_INVALID,
				    "the socket path '%s' is longer than %zu bytes", s->path,
				    sizeof(ret_name->sun_path) - 1);
	memcpy(ret_name->sun_path, s->path, strlen(s->path) + 1);
	return 0;
}

static int open_socket(struct hf_named_socket *s, struct hf_error *err)
{
	struct sockaddr_un name;
	struct stat st;
	int on = 1, rc = make_name(s, &name, err);

	if (rc != 0)
		return rc;
	s->fd = socket(AF_UNIX, s->options.type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0 || (s->options.type == SOCK_DGRAM &&
			  setsockopt(s->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0))
		return hf_error_errno(err, errno, "cannot create a socket");
	if (lstat(s->path, &st) == 0 && S_ISSOCK(st.st_mode))
		(void)unlink(s->path);
	if (bind(s->fd, (const struct sockaddr *)&name, sizeof(name)) != 0 ||
	    chmod(s->path, s->options.mode) != 0 || lstat(s->path, &st) != 0 ||
	    (s->options.type != SOCK_DGRAM && listen(s->fd, BACKLOG) != 0))
		return hf_error_errno(err, errno, "cannot create the socket '%s'", s->path);
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	return 0;
}

/* Whether the path is still the agent's socket: while the socket exists, no other file has its inode number. */
static bool is_ours(const struct hf_named_socket *s)
{
	struct stat st;

	return s->io != NULL && lstat(s->path, &st) == 0 && st.st_dev == s->dev &&
	       st.st_ino == s->ino;
}

static bool is_anothers(const struct hf_named_socket *s)
{
	HF_AUTO_FD fd = socket(AF_UNIX, s->options.type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un name;
	struct hf_error err;

	return fd >= 0 && make_name(s, &name, &err) == 0 &&
	       connect(fd, (const struct sockaddr *)&name, sizeof(name)) == 0;
}

static void close_socket(struct hf_named_socket *s)
{
	/* Removes the path only if the agent made it and it still is the agent's socket. */
	if (is_ours(s))
		(void)unlink(s->path);
	s->io = hf_io_destroy(s->io);
	hf_fd_cleanup(&s->fd);
}

static void on_socket(void *arg, unsigned events HF_UNUSED)
{
	struct hf_named_socket *s = arg;

	s->options.ready(s->options.arg, s->fd);
}

static int listen_at_path(struct hf_named_socket *s, struct hf_error *err)
{
	int rc = open_socket(s, err);

	if (rc == 0)
		rc = hf_io_create(s->options.loop, s->fd, on_socket, s, &s->io, err);
	if (rc == 0)
		hf_io_want(s->io, HF_IO_READ);
	return rc;
}

static void report_trouble(struct hf_named_socket *s, const char *why)
{
	bool before = s->troubled;

	s->troubled = why != NULL;
	if (s->troubled != before)
		s->options.trouble(s->options.arg, why);
}

static void on_look(void *arg)
{
	struct hf_named_socket *s = arg;
	struct hf_error err;

	hf_timer_arm(s->look, s->options.look_every);
	if (!is_ours(s) && is_anothers(s)) {
		(void)hf_error_set(&err, HF_E_CONFLICT, "another process listens at '%s'", s->path);
		report_trouble(s, err.text);
		return;
	}
	if (!is_ours(s)) {
		close_socket(s);
		if (listen_at_path(s, &err) != 0) {
			close_socket(s);
			report_trouble(s, err.text);
			return;
		}
	}
	report_trouble(s, NULL);
}

int hf_named_socket_create(const struct hf_named_socket_options *options,
			   struct hf_named_socket **ret_socket, struct hf_error *err)
{
	struct hf_named_socket *s = hf_xcalloc(1, sizeof(*s));
	struct sockaddr_un name;
	struct hf_error trouble;
	int rc;

	s->options = *options;
	s->path = hf_xstrdup(options->path);
	s->fd = -1;
	if (s->options.look_every == 0)
		s->options.look_every = LOOK_EVERY;
	s->look = hf_timer_create(options->loop, on_look, s);
	hf_timer_arm(s->look, s->options.look_every);
	rc = make_name(s, &name, err);
	if (rc != 0) {
		hf_named_socket_destroy(s);
		return rc;
	}
	if (listen_at_path(s, &trouble) != 0) {
		close_socket(s);
		report_trouble(s, trouble.text);
	}
	*ret_socket = s;
	return 0;
}

struct hf_named_socket *hf_named_socket_destroy(struct hf_named_socket *s)
{
	if (s == NULL)
		return NULL;
	close_socket(s);
	hf_timer_destroy(s->look);
	free(s->path);
	free(s);
	return NULL;
}
