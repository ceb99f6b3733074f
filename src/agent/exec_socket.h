/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_EXEC_SOCKET_H
#define HF_AGENT_EXEC_SOCKET_H

#include "agent/report_socket.h"
#include "health/process_line.h"

HF_BEGIN_DECLS

/*
 * The socket to which `holdfast exec` in this node's pods connects (health/process_line.h).
 * Input: connections of any process that may open the socket.  Output: calls with the pod, its states and its notes;
 * targets are sent.
 * Invariants:
 * - The pod of a connection is that of the connecting process, which the kernel names.  What a process says about
 *   itself does not count.
 * - No peer delays the loop or another peer: connections and lines per second are limited (agent/report_limits.h),
 *   and the agent queues no lines.  A peer that does not read is closed; exec connects again and gets the newest
 *   target.
 */
struct hf_exec_socket;
struct hf_exec_peer; /* one connection */

#define HF_EXEC_PEERS_MAX 128

struct hf_exec_socket_options {
	struct hf_loop *loop;
	const char *path;
	hf_time look_every; /* as in struct hf_named_socket_options */
	mode_t mode;
	/* Finds the UID of the process's pod.  False: the process is in no pod. */
	bool (*identify)(void *arg, pid_t pid, char ret_uid[HF_REPORT_POD_UID_MAX]);
	/* Called for a new connection.  False: the connection is refused.  Each accepted connection ends with one
	 * call of `closed`. */
	bool (*opened)(void *arg, struct hf_exec_peer *peer, const char *pod_uid);
	void (*told)(void *arg, struct hf_exec_peer *peer, const struct hf_process_state *state);
	/* A sentence for people; may be NULL. */
	void (*noted)(void *arg, const char *pod_uid, const char *words);
	void (*closed)(void *arg, struct hf_exec_peer *peer);
	void (*trouble)(void *arg, const char *why);
	void *arg;
	struct hf_metrics *metrics; /* may be NULL */
};

int hf_exec_socket_create(const struct hf_exec_socket_options *options,
			  struct hf_exec_socket **ret_socket, struct hf_error *err) HF_MUST_CHECK;
/* Closes all connections; `closed` is called for each connection.  NULL is fine; returns NULL. */
struct hf_exec_socket *hf_exec_socket_destroy(struct hf_exec_socket *socket);

/* Sends the target.  Does not block.  A peer that cannot take the line is closed soon after. */
void hf_exec_socket_send(struct hf_exec_peer *peer, const struct hf_process_target *target);

HF_END_DECLS

#endif
