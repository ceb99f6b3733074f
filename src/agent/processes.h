/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_PROCESSES_H
#define HF_AGENT_PROCESSES_H

#include "agent/holders.h"
#include "agent/job_watches.h"
#include "health/process_line.h"

HF_BEGIN_DECLS

/*
 * The processes under `holdfast exec` on this node.
 * Input: connections of exec and the states that exec sends, the node's pods, the jobs of these pods.  Output: a
 * target for each connection, and the list DeviceHealth.status.processes.
 *
 * Invariants:
 * - The pod tells which rank exec runs, and the job which start that rank should have; exec's own words do not count.
 * - A process is stopped or started only if the API server has a DeviceHealth that lists its pod: else the operator
 *   cannot have meant the process with its order.
 * - If several execs of a pod are connected, none of them counts any more: the pod is treated as one without exec.
 * - A termination, a stop, and a held rank that waits are published at once (`news` with urgent).  At a barrier they
 *   are published when all held ranks of the node are down, at most a second late.  The start of a process is
 *   published with the next write.
 * - While a job trains, the first rank of each type alone causes writes: one for each save.
 */
struct hf_processes;
struct hf_exec_peer; /* a connection of exec_socket.h, or of a test */

#define HF_PROCESSES_MAX 128
/* How often a target with a hold is repeated, so that exec knows that its agent lives. */
#define HF_PROCESSES_REPEAT (10 * HF_SECOND)
/* How long urgent news waits, so that the states of several ranks are published in one write. */
#define HF_PROCESSES_WAVE (10 * HF_MS)
/* How long ranks that are down for a barrier wait for the node's other ranks that are being stopped. */
#define HF_PROCESSES_BARRIER HF_SECOND
/* The first state of a pod's exec is published within this time; the start of a later process within three
 * minutes. */
#define HF_PROCESSES_FIRST_WITHIN (10 * HF_SECOND)
/* The first state of an exec is published within this time if its job does not restart in place yet: the operator
 * may not know that the job runs under exec. */
#define HF_PROCESSES_NEW_WITHIN HF_SECOND
/* The first step of a process of a first rank. */
#define HF_PROCESSES_STEP_WITHIN HF_SECOND
#define HF_PROCESSES_AGAIN_WITHIN (3 * HF_MINUTE)
/* A new save of a first rank is published so long after the last write.  New steps wait for the heartbeat. */
#define HF_PROCESSES_SAVED_EVERY (30 * HF_SECOND)
/* After its start an agent does not publish the list for this time, so that each exec can connect again. */
#define HF_PROCESSES_SETTLE (1500 * HF_MS)
/* Open connections of one pod. */
#define HF_PROCESSES_POD_MAX 4

struct hf_processes_options {
	struct hf_loop *loop;
	struct hf_store *store;
	uint64_t seed;
	hf_time (*now)(void *arg); /* the steps' clock */
	/* Finds the pod of a UID, and its rank.  False: the API server has not reported such a pod. */
	bool (*pod)(void *arg, const char *uid, struct hf_pod_name *ret_name,
		    const struct hf_pod_rank **ret_rank);
	void (*send)(void *arg, struct hf_exec_peer *peer, const struct hf_process_target *target);
	/* The list has changed.  urgent: it has to be published now, else with the next write. */
	void (*news)(void *arg, bool urgent);
	void (*problem)(void *arg, const char *job, int code, const char *message);
	void *arg;
};

struct hf_processes *hf_processes_create(const struct hf_processes_options *options);
struct hf_processes *hf_processes_destroy(struct hf_processes *processes); /* NULL is fine */
/* Call this at the start of the agent: processes then have time to connect again before the list is
 * published. */
void hf_processes_start(struct hf_processes *processes);

/* Call this when a `holdfast exec` has connected. Returns false if there are too many connections,
 * of the pod or in all. */
bool hf_processes_opened(struct hf_processes *processes, struct hf_exec_peer *peer,
			 const char *pod_uid);
void hf_processes_told(struct hf_processes *processes, const struct hf_exec_peer *peer,
		       const struct hf_process_state *state);
void hf_processes_closed(struct hf_processes *processes, const struct hf_exec_peer *peer);
/* Takes DeviceHealth as the API server has it; NULL: the API server has none. */
void hf_processes_seen(struct hf_processes *processes, const struct hf_json *health);
/* Call this when a pod of the node came, went or changed. */
void hf_processes_pods_changed(struct hf_processes *processes);

/* An entry of DeviceHealth.status.processes. */
struct hf_process_entry {
	const char *ns, *pod, *uid, *job; /* job: its UID */
	struct hf_process_state state;    /* with the start */
	hf_time at;                       /* when exec told it */
};
/* Makes the list, in the arena, sorted by pod.  False: the agent has just started, and the list is not complete
 * yet. */
bool hf_processes_list(const struct hf_processes *processes, struct hf_arena *arena,
		       struct hf_process_entry **ret_items, size_t *ret_len);
/* Tells that the present list was handed to the publisher. */
void hf_processes_published(struct hf_processes *processes);

/* The list as JSON; wall_less: the wall clock minus the steps' clock. */
struct hf_json *hf_process_entries_json(const struct hf_process_entry *items, size_t len,
					hf_time wall_less);

HF_END_DECLS

#endif
