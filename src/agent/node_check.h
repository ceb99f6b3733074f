/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_NODE_CHECK_H
#define HF_AGENT_NODE_CHECK_H

#include "agent/report.h"
#include "agent/report_socket.h"

HF_BEGIN_DECLS

/*
 * NVIDIA's node health check: the gRPC service nvhcd.HealthCheckService on a Unix socket, which `ft_launcher
 * --ft-node-health-check-endpoint` asks before each rendezvous. Input: the agent's report of now, and the process that asks.
 * Output: whether the devices of that process's pod can be worked with; of a process in no pod, and of a pod whose devices are
 * not known, all devices of the node count. A node without evidence is healthy: the launcher would go on without it anyway.
 */
struct hf_node_check;

#define HF_NODE_CHECK_SOCKET_FILE "health.sock" /* beside the agent's socket for reports */

struct hf_node_check_options {
	struct hf_loop *loop;
	const char *path;
	hf_time look_every; /* as in struct hf_named_socket_options */
	mode_t mode;
	/* The UID of the process's pod; false: it is in none. */
	bool (*identify)(void *arg, pid_t pid, char ret_uid[HF_REPORT_POD_UID_MAX]);
	struct hf_report (*report)(void *arg);
	void (*trouble)(void *arg, const char *why);
	void *arg;
};

int hf_node_check_create(const struct hf_node_check_options *options,
			 struct hf_node_check **ret_check, struct hf_error *err) HF_MUST_CHECK;
/* NULL is fine; returns NULL. */
struct hf_node_check *hf_node_check_destroy(struct hf_node_check *check);

/* The devices that cannot be worked with, as JSON; returns their number. pod_uid "": of the whole node. */
size_t hf_node_check_judge(const struct hf_report *report, const char *pod_uid,
			   struct hf_json **ret_json);

HF_END_DECLS

#endif
