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
 * Where training processes of this machine report: a datagram socket in the file system.  Whoever
 * may open it may write anything there, so a sender is not asked who it is: the kernel tells its
 * process, and that process's pod is what counts.  Nothing is ever answered.
 *
 * The path can be lost to whoever may write in its folder.  Where nobody listens there any more, the
 * socket is made anew; one that another process took since, and listens at, is left to it as long as it does.
 */
struct hf_report_socket;

#define HF_REPORT_POD_UID_MAX 64
/* Reports a second have an end: agent/report_limits.h.  A rank that makes more steps tells a part of them. */

struct hf_report_socket_options {
	struct hf_loop *loop;
	const char *path;   /* an old socket there is replaced; its folder is there */
	hf_time look_every; /* whether the path is still our socket's; 0: 5 s */
	mode_t mode;        /* of the socket: 0666 where pods of other users report */
	/* The UID of the process's pod; false: it is in none.  Called once for each report. */
	bool (*identify)(void *arg, pid_t pid, char ret_uid[HF_REPORT_POD_UID_MAX]);
	void (*heard)(void *arg, const char *pod_uid, const struct hf_beat *beat);
	/* Nobody can report to us, and why; NULL: they can again.  May be NULL. */
	void (*trouble)(void *arg, const char *why);
	void *arg;
	struct hf_metrics *metrics; /* may be NULL */
};

/* HF_E_INVALID: the path is too long for a socket.  Where it cannot be made that is trouble, told before this
 * returns, and it is tried again with each look. */
int hf_report_socket_create(const struct hf_report_socket_options *options,
			    struct hf_report_socket **ret_beats, struct hf_error *err)
	HF_MUST_CHECK;
/* The socket's name goes too, while it is ours.  NULL is fine; returns NULL. */
struct hf_report_socket *hf_report_socket_destroy(struct hf_report_socket *beats);

/* The pod of a process by what /proc/PID/cgroup holds, as kubelets name the groups of pods.  The
 * outermost counts: what a container makes inside its own group is its own word. */
bool hf_report_socket_pod_of_cgroup(const char *text, size_t len,
				    char ret_uid[HF_REPORT_POD_UID_MAX]);
/* Of a process of the embedded plane: a variable of its environment. */
bool hf_report_socket_pod_of_environ(const char *text, size_t len,
				     char ret_uid[HF_REPORT_POD_UID_MAX]);

HF_END_DECLS

#endif
