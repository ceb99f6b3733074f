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
 * The datagram socket to which training processes of this machine report.  Any process that may open the socket can
 * send any bytes.  So the kernel names the sending process, and the pod of that process counts as the sender.  The
 * agent never answers. agent/named_socket.h tells what happens if the path is removed or replaced.
 */
struct hf_report_socket;

#define HF_REPORT_POD_UID_MAX 64
/* agent/report_limits.h limits the reports per second.  A rank with more steps than that reports only some of
 * them. */

struct hf_report_socket_options {
	struct hf_loop *loop;
	/* path of the socket; its folder must exist, and an old socket is replaced */
	const char *path;
	/* how often to check whether the path is still the agent's socket; 0: 5 s */
	hf_time look_every;
	mode_t mode; /* the mode of the socket: 0666 where pods of other users report */
	/* Finds the UID of the process's pod.  False: the process is in no pod.  Called once for each report. */
	bool (*identify)(void *arg, pid_t pid, char ret_uid[HF_REPORT_POD_UID_MAX]);
	void (*heard)(void *arg, const char *pod_uid, const struct hf_beat *beat);
	/* Reports cannot arrive, and the reason; NULL: reports arrive again.  May be NULL. */
	void (*trouble)(void *arg, const char *why);
	void *arg;
	struct hf_metrics *metrics; /* may be NULL */
};

/* HF_E_INVALID: the path is too long for a socket.  If the socket cannot be created, `trouble` is called before
 * this function returns, and each check tries again. */
int hf_report_socket_create(const struct hf_report_socket_options *options,
			    struct hf_report_socket **ret_socket, struct hf_error *err)
	HF_MUST_CHECK;
/* Closes the socket, and removes the path if it is still the agent's.  NULL is fine; returns NULL. */
struct hf_report_socket *hf_report_socket_destroy(struct hf_report_socket *reports);

/* Finds the pod in the text of /proc/PID/cgroup, by the names that kubelets give to the groups of pods.  The
 * outermost group of that form counts: a container chooses the names of groups inside its own. */
bool hf_report_socket_pod_of_cgroup(const char *text, size_t len,
				    char ret_uid[HF_REPORT_POD_UID_MAX]);
/* Finds the pod in the text of /proc/PID/environ: processes of the embedded plane have their pod's UID in a
 * variable. */
bool hf_report_socket_pod_of_environ(const char *text, size_t len,
				     char ret_uid[HF_REPORT_POD_UID_MAX]);

HF_END_DECLS

#endif
