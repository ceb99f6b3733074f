/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads datagrams of training processes. Input: the socket. Output: a call with pod and report.
 * Invariants: the kernel names the sender; a burst delays the loop by AT_ONCE reports at most.
 */
#include "agent/report_socket.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Reports taken at once. Then the loop has its turn, so a flood delays everything else by no
 * more than these. */
#define AT_ONCE 128
/* Far below the fences of ranks, whose reports must arrive before the fences run out. */
#define LOOK_EVERY (5 * HF_SECOND)

struct hf_report_socket {
	struct hf_report_socket_options options;
	char *path;
	int fd;
	dev_t dev; /* of the name, while io is there */
	ino_t ino;
	struct hf_io *io;
	struct hf_timer *look;
	bool troubled; /* and told */
	struct hf_family *reports;
	struct hf_report_limits limits;
};

static void count_report(struct hf_report_socket *b, const char *result)
{
	if (b->reports != NULL)
		hf_family_add(b->reports, 1, result, NULL);
}

/* ---- reports ------------------------------------------------------------------------------------ */

static bool read_sender(const struct msghdr *message, pid_t *ret_pid)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(message);
	struct ucred sender;

	if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
		return false;
	memcpy(&sender, CMSG_DATA(c), sizeof(sender));
	*ret_pid = sender.pid;
	return sender.pid > 0;
}

static void take_datagram(struct hf_report_socket *b, const struct msghdr *message,
			  const char *text, size_t len)
{
	char uid[HF_REPORT_POD_UID_MAX];
	struct hf_beat beat;
	pid_t pid;

	if ((message->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
	    !hf_beat_parse(text, len, &beat)) {
		count_report(b, "broken");
	} else if (!read_sender(message, &pid)) {
		count_report(b, "unknown");
	} else if (!hf_report_limits_may_ask(&b->limits, pid, hf_loop_mono(b->options.loop))) {
		count_report(b, "limited");
	} else if (!b->options.identify(b->options.arg, pid, uid)) {
		count_report(b, "unknown");
	} else if (!hf_report_limits_may_hear(&b->limits, pid, uid)) {
		count_report(b, "limited");
	} else {
		count_report(b, "taken");
		b->options.heard(b->options.arg, uid, &beat);
	}
}

static void on_socket(void *arg, unsigned events HF_UNUSED)
{
	struct hf_report_socket *b = arg;
	char text[HF_BEAT_BYTES_MAX];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;

	for (int i = 0; i < AT_ONCE; i++) {
		struct iovec mig = {.iov_base = text, .iov_len = sizeof(text)};
		struct msghdr message = {.msg_iov = &mig,
					 .msg_iovlen = 1,
					 .msg_control = control.bytes,
					 .msg_controllen = sizeof(control.bytes)};
		/* File descriptors in the message do not fit into control, so the kernel closes
		 * them. */
		ssize_t n = recvmsg(b->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n < 0)
			return;
		take_datagram(b, &message, text, (size_t)n);
	}
}

/* ---- life --------------------------------------------------------------------------------------- */

static int make_name(const struct hf_report_socket *b, struct sockaddr_un *ret_name,
		     struct hf_error *err)
{
	memset(ret_name, 0, sizeof(*ret_name));
	ret_name->sun_family = AF_UNIX;
	if (strlen(b->path) >= sizeof(ret_name->sun_path))
		return hf_error_set(err, HF_E_INVALID,
				    "the socket path '%s' is longer than %zu bytes", b->path,
				    sizeof(ret_name->sun_path) - 1);
	memcpy(ret_name->sun_path, b->path, strlen(b->path) + 1);
	return 0;
}

static int open_socket(struct hf_report_socket *b, struct hf_error *err)
{
	struct sockaddr_un name;
	struct stat st;
	int on = 1, rc = make_name(b, &name, err);

	if (rc != 0)
		return rc;
	b->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (b->fd < 0 || setsockopt(b->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0)
		return hf_error_errno(err, errno, "cannot create a socket");
	if (lstat(b->path, &st) == 0 && S_ISSOCK(st.st_mode))
		(void)unlink(b->path);
	if (bind(b->fd, (const struct sockaddr *)&name, sizeof(name)) != 0 ||
	    chmod(b->path, b->options.mode) != 0 || lstat(b->path, &st) != 0)
		return hf_error_errno(err, errno, "cannot create the socket '%s'", b->path);
	b->dev = st.st_dev;
	b->ino = st.st_ino;
	return 0;
}

/* No other file has the inode number while our socket holds it. */
static bool is_ours(const struct hf_report_socket *b)
{
	struct stat st;

	return b->io != NULL && lstat(b->path, &st) == 0 && st.st_dev == b->dev &&
	       st.st_ino == b->ino;
}

static bool is_anothers(const struct hf_report_socket *b)
{
	HF_AUTO_FD fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un name;
	struct hf_error err;

	return fd >= 0 && make_name(b, &name, &err) == 0 &&
	       connect(fd, (const struct sockaddr *)&name, sizeof(name)) == 0;
}

static void close_socket(struct hf_report_socket *b)
{
	/* Only a name that we made, and that is still ours. */
	if (is_ours(b))
		(void)unlink(b->path);
	b->io = hf_io_destroy(b->io);
	hf_fd_cleanup(&b->fd);
}

static int listen_at_path(struct hf_report_socket *b, struct hf_error *err)
{
	int rc = open_socket(b, err);

	if (rc == 0)
		rc = hf_io_create(b->options.loop, b->fd, on_socket, b, &b->io, err);
	if (rc == 0)
		hf_io_want(b->io, HF_IO_READ);
	return rc;
}

static void report_trouble(struct hf_report_socket *b, const char *why)
{
	bool before = b->troubled;

	b->troubled = why != NULL;
	if (b->troubled != before && b->options.trouble != NULL)
		b->options.trouble(b->options.arg, why);
}

static void on_look(void *arg)
{
	struct hf_report_socket *b = arg;
	struct hf_error err;

	hf_timer_arm(b->look, b->options.look_every);
	if (!is_ours(b) && is_anothers(b)) {
		(void)hf_error_set(&err, HF_E_CONFLICT, "another process listens at '%s'", b->path);
		report_trouble(b, err.text);
		return;
	}
	if (!is_ours(b)) {
		close_socket(b);
		if (listen_at_path(b, &err) != 0) {
			close_socket(b);
			report_trouble(b, err.text);
			return;
		}
	}
	report_trouble(b, NULL);
}

static struct hf_family *make_family(struct hf_metrics *metrics)
{
	static const struct hf_metric_options options = {
		.name = "holdfast_agent_reports_total",
		.help = "Reports of training processes, by result.",
		.type = HF_METRIC_COUNTER,
		.labels = {"result"},
		.series_max = 4,
	};

	return metrics != NULL ? hf_metrics_family(metrics, &options) : NULL;
}

int hf_report_socket_create(const struct hf_report_socket_options *options,
			    struct hf_report_socket **ret_socket, struct hf_error *err)
{
	struct hf_report_socket *b = hf_xcalloc(1, sizeof(*b));
	struct sockaddr_un name;
	struct hf_error trouble;
	int rc;

	b->options = *options;
	b->path = hf_xstrdup(options->path);
	b->fd = -1;
	b->reports = make_family(options->metrics);
	if (b->options.look_every == 0)
		b->options.look_every = LOOK_EVERY;
	b->look = hf_timer_create(options->loop, on_look, b);
	hf_timer_arm(b->look, b->options.look_every);
	rc = make_name(b, &name, err);
	if (rc != 0) {
		hf_report_socket_destroy(b);
		return rc;
	}
	if (listen_at_path(b, &trouble) != 0) {
		close_socket(b);
		report_trouble(b, trouble.text);
	}
	*ret_socket = b;
	return 0;
}

struct hf_report_socket *hf_report_socket_destroy(struct hf_report_socket *b)
{
	if (b == NULL)
		return NULL;
	close_socket(b);
	hf_timer_destroy(b->look);
	free(b->path);
	free(b);
	return NULL;
}

/* ---- whose pod ---------------------------------------------------------------------------------- */

static bool is_uid(const char *text, size_t len)
{
	/* Of static pods the kubelet makes 32 digits. */
	if (len != 36 && len != 32)
		return false;
	for (size_t i = 0; i < len; i++)
		if (strchr("0123456789abcdef-_", text[i]) == NULL)
			return false;
	return true;
}

/* "pod<uid>", or systemd's "kubepods-burstable-pod<uid with '_'>.slice" */
static bool read_pod_component(const char *text, size_t len, char ret_uid[HF_REPORT_POD_UID_MAX])
{
	static const char slice[] = ".slice";
	size_t from = 0;

	if (len > sizeof(slice) - 1 &&
	    memcmp(text + len - (sizeof(slice) - 1), slice, sizeof(slice) - 1) == 0)
		len -= sizeof(slice) - 1;
	for (size_t i = 0; i < len; i++)
		if (text[i] == '-' && len - i > 4 && memcmp(text + i + 1, "pod", 3) == 0 &&
		    is_uid(text + i + 4, len - i - 4))
			from = i + 1;
	if (len - from < 4 || memcmp(text + from, "pod", 3) != 0 ||
	    !is_uid(text + from + 3, len - from - 3))
		return false;
	for (size_t i = 0; i < len - from - 3; i++)
		ret_uid[i] = text[from + 3 + i] == '_' ? '-' : text[from + 3 + i];
	ret_uid[len - from - 3] = '\0';
	return true;
}

bool hf_report_socket_pod_of_cgroup(const char *text, size_t len,
				    char ret_uid[HF_REPORT_POD_UID_MAX])
{
	const char *end = text + len;

	for (const char *at = text; at < end;) {
		const char *stop = at;

		while (stop < end && *stop != '/' && *stop != '\n')
			stop++;
		if (read_pod_component(at, (size_t)(stop - at), ret_uid))
			return true;
		at = stop + 1;
	}
	return false;
}

bool hf_report_socket_pod_of_environ(const char *text, size_t len,
				     char ret_uid[HF_REPORT_POD_UID_MAX])
{
	static const char mark[] = "HOLDFAST_POD_UID=";
	const char *end = text + len;

	for (const char *at = text; at < end;) {
		size_t n = strnlen(at, (size_t)(end - at));

		if (n >= sizeof(mark) && n - (sizeof(mark) - 1) < HF_REPORT_POD_UID_MAX &&
		    memcmp(at, mark, sizeof(mark) - 1) == 0) {
			snprintf(ret_uid, HF_REPORT_POD_UID_MAX, "%.*s",
				 (int)(n - (sizeof(mark) - 1)), at + sizeof(mark) - 1);
			return true;
		}
		at += n + 1;
	}
	return false;
}
