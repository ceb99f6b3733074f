/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_REPORT_SOCKET_H
#define HF_AGENT_REPORT_SOCKET_H

#include "agent/report_limits.h"
#include "ctl/metrics.h"
#include "health/beat.h"
#include "loop/loop.h"

#include <sys/types.h>

HF_BEGIN_DECLS

/*
 * The datagram socket where training processes of this machine report. Any process that may open
 * the socket can send any bytes. So the kernel names the sending process, and that process's pod
 * counts as the sender. The agent never answers.
 *
 * agent/named_socket.h says what becomes of the path.
 */
struct hf_report_socket;

#define HF_REPORT_POD_UID_MAX 64
/* agent/report_limits.h limits the reports per second. A rank with more steps sends some of
 * them. */

struct hf_report_socket_options {
	struct hf_loop *loop;
	const char *path;   /* the folder must exist; an old socket is replaced */
	hf_time look_every; /* whether the path is still our socket's; 0: 5 s */
	mode_t mode;        /* of the socket: 0666 where pods of other users report */
	/* The UID of the process's pod; false: it is in none.  Called once for each report. */
	bool (*identify)(void *arg, pid_t pid, char ret_uid[HF_REPORT_POD_UID_MAX]);
	void (*heard)(void *arg, const char *pod_uid, const struct hf_beat *beat);
	/* Reports cannot arrive, and the reason; NULL: reports arrive again. May be NULL. */
	void (*trouble)(void *arg, const char *why);
	void *arg;
	struct hf_metrics *metrics; /* may be NULL */
};

/* HF_E_INVALID: the path is too long for a socket. If the socket cannot be created, `trouble` is
 * called before this returns, and each look tries again. */
int hf_report_socket_create(const struct hf_report_socket_options *options,
			    struct hf_report_socket **ret_socket, struct hf_error *err)
	HF_MUST_CHECK;
/* The socket's name goes too, while it is ours.  NULL is fine; returns NULL. */
struct hf_report_socket *hf_report_socket_destroy(struct hf_report_socket *reports);

/* The pod of a process from its /proc/PID/cgroup, by the kubelets' names for the groups of pods.
 * The outermost group counts: a container chooses the names of groups inside its own. */
bool hf_report_socket_pod_of_cgroup(const char *text, size_t len,
				    char ret_uid[HF_REPORT_POD_UID_MAX]);
/* Of a process of the embedded plane: a variable of its environment. */
bool hf_report_socket_pod_of_environ(const char *text, size_t len,
				     char ret_uid[HF_REPORT_POD_UID_MAX]);

HF_END_DECLS

#endif
