/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads datagrams of training processes.
 * Input: the socket.  Output: a call with pod and report.
 * Invariants: the kernel names the sender; a burst delays the loop by AT_ONCE reports at most.
 */
#include "agent/report_socket.h"

#include "agent/named_socket.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Most reports that are taken before the loop has its turn: a flood delays everything else by no more than these. */
#define AT_ONCE 128

struct hf_report_socket {
	struct hf_report_socket_options options;
	struct hf_named_socket *socket;
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

static void on_datagrams(void *arg, int fd)
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
		/* The message has no room for file descriptors, so the kernel closes those that a process sends. */
		ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n < 0)
			return;
		take_datagram(b, &message, text, (size_t)n);
	}
}

/* ---- life --------------------------------------------------------------------------------------- */

static void on_trouble(void *arg, const char *why)
{
	const struct hf_report_socket *b = arg;

	if (b->options.trouble != NULL)
		b->options.trouble(b->options.arg, why);
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
	const struct hf_named_socket_options named = {.loop = options->loop,
						      .path = options->path,
						      .type = SOCK_DGRAM,
						      .look_every = options->look_every,
						      .mode = options->mode,
						      .ready = on_datagrams,
						      .trouble = on_trouble,
						      .arg = b};
	int rc;

	b->options = *options;
	b->reports = make_family(options->metrics);
	rc = hf_named_socket_create(&named, &b->socket, err);
	if (rc != 0) {
		hf_report_socket_destroy(b);
		return rc;
	}
	*ret_socket = b;
	return 0;
}

struct hf_report_socket *hf_report_socket_destroy(struct hf_report_socket *b)
{
	if (b == NULL)
		return NULL;
	hf_named_socket_destroy(b->socket);
	free(b);
	return NULL;
}

/* ---- the pod of a sender ------------------------------------------------------------------------ */

static bool is_uid(const char *text, size_t len)
{
	/* A UID of the API server has 36 characters; the kubelet's hash of a static pod has 32. */
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
