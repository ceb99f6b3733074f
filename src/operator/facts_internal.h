/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_FACTS_INTERNAL_H
#define HF_OPERATOR_FACTS_INTERNAL_H

#include "base/arena.h"
#include "core/model/job.h"
#include "core/model/observed.h"
#include "core/model/plan.h"
#include "json/doc.h"

/*
 * What a step is told of nodes, beyond pods and services. Four sources:
 *   nodes.c        Nodes are watched, as views of some fifty bytes
 *   asks.c         Leases, claims and single Nodes are read while plans ask for them
 *   devices.c      DeviceHealth objects are watched, if their CRD exists
 *   pod_history.c  when a kubelet last wrote to a pod; names that were just freed
 * Spans are measured on the monotonic clock from the moment when this process saw something. A step
 * gets times on its own clock, by way of struct hf_moment. All of it is lost with the operator: a
 * new leader measures anew. That delays conclusions from silence and never hastens them.
 * If the kubelet runs in this process, the four are NULL.
 */
struct hf_operator;
struct hf_view;
struct hf_cache_entry;

/* The same instant on the two clocks. */
struct hf_moment {
	hf_time now;  /* as the step has it: the API server's */
	hf_time mono; /* the loop's */
};
/* Converts a monotonic time to the step's clock. HF_TIME_NONE stays. */
hf_time hf_moment_at(const struct hf_moment *moment, hf_time mono);

struct hf_facts {
	struct hf_nodes *nodes;
	struct hf_asks *asks;
	struct hf_pod_history *history;
	struct hf_devices *devices;
};

/* --- nodes.c ------------------------------------------------------------------------------- */

/* A label is free text; what comes after this many counts as being in no zone. */
#define HF_ZONES_MAX 4096

struct hf_nodes *hf_nodes_create(struct hf_operator *op);
void hf_nodes_start(struct hf_nodes *nodes);
struct hf_nodes *hf_nodes_destroy(struct hf_nodes *nodes); /* NULL is fine; returns NULL */
/* Filled, or not to be seen with our rights: then every node is silent. */
bool hf_nodes_synced(const struct hf_nodes *nodes);
/* false: nothing is known of nodes.  A name without an object is HF_NODE_GONE.  The Lease is not
 * filled in. */
bool hf_nodes_see(struct hf_nodes *nodes, const char *name, const struct hf_moment *moment,
		  struct hf_arena *arena, struct hf_node_seen *ret_node);
/* May taint eviction hold a timer for pods that were on this node a moment ago?  Of a node that is
 * not there, cannot be seen, or was tainted within HF_POD_HISTORY_KEPT: yes. */
bool hf_nodes_evicts(const struct hf_nodes *nodes, const char *name);
/* The node of this name is there, by a live read. */
void hf_nodes_put(struct hf_nodes *nodes, struct hf_doc *node);
/* Queues the jobs with pods on this node. */
void hf_nodes_enqueue(struct hf_operator *op, const char *name);
/* For metrics: schedulable nodes lost without proof, and zones where the storm guard holds. */
void hf_nodes_count(const struct hf_nodes *nodes, int32_t *ret_lost, int32_t *ret_storms);

/* --- devices.c ----------------------------------------------------------------------------- */

struct hf_devices *hf_devices_create(struct hf_operator *op);
void hf_devices_start(struct hf_devices *devices);
struct hf_devices *hf_devices_destroy(struct hf_devices *devices); /* NULL is fine; returns NULL */
/* Filled, or not there, or not to be seen with our rights. */
bool hf_devices_synced(const struct hf_devices *devices);
/* Whether the node has an agent, and the time of its last report. */
void hf_devices_see_node(const struct hf_devices *devices, const struct hf_moment *moment,
			 struct hf_node_seen *node);
/* Adds the devices of the pod by the agent's report, behind those of the pod's status. */
void hf_devices_see_pod(const struct hf_devices *devices, const struct hf_job_view *job,
			struct hf_arena *arena, struct hf_pod *pod);
/* Adds agents' reports about the job's training processes: advancing ranks, and the rank that
 * delays its peers. */
void hf_devices_see_ranks(const struct hf_devices *devices, const struct hf_moment *moment,
			  struct hf_pod *pods, size_t len, struct hf_arena *arena);
/* Fills seen->late from the job's records, and seen->sick. Needs seen's pods and gone. */
void hf_devices_see_records(const struct hf_devices *devices, const struct hf_moment *moment,
			    const struct hf_job_view *job, struct hf_arena *arena,
			    struct hf_observed *seen);

/* --- asks.c -------------------------------------------------------------------------------- */

/* Things read at once, for all jobs: a job of 10,000 pods on as many nodes, and half as much. */
#define HF_ASKS_MAX 16384
/* Beside the requests of passes, and never more than that. */
#define HF_ASKS_IN_FLIGHT_MAX 16
/* A thousand nodes that are awaited by a settle are read in five seconds. */
#define HF_ASKS_RATE 200
/* Kubelets renew every ten seconds, and a settle is to be over then. */
#define HF_ASKS_INTERVAL (2 * HF_SECOND)
#define HF_ASKS_RETRY_MAX (60 * HF_SECOND)

struct hf_asks *hf_asks_create(struct hf_operator *op);
struct hf_asks *hf_asks_destroy(struct hf_asks *asks); /* NULL is fine; returns NULL */
/* Replaces the asks of a job by the asks of its newest plan. */
void hf_asks_set(struct hf_asks *asks, const char *key, const char *ns, const struct hf_plan *plan);
/* The job is gone. */
void hf_asks_forget(struct hf_asks *asks, const char *key);
/* Nothing more is sent. */
void hf_asks_stop(struct hf_asks *asks);
/* What was read of the node's Lease, and of the node if it seems gone. */
void hf_asks_see_node(const struct hf_asks *asks, const struct hf_moment *moment,
		      struct hf_node_seen *node);
/* Adds the claims of this job that were read so far. */
void hf_asks_see_claims(const struct hf_asks *asks, const char *key, struct hf_arena *arena,
			struct hf_observed *seen);

/* --- pod_history.c ------------------------------------------------------------------------------ */

/* A gang restart of the largest job, twice; past it all are forgotten and the watch counts as
 * begun then. */
#define HF_POD_HISTORY_MAX 65536
/* Longer than any sensible replaceDelaySeconds. */
#define HF_POD_HISTORY_KEPT (5 * HF_MINUTE)

struct hf_pod_history *hf_pod_history_create(struct hf_operator *op);
struct hf_pod_history *hf_pod_history_destroy(
	struct hf_pod_history *history); /* NULL is fine; returns NULL */
/* A change of a pod: now is NULL when it went.  Sets what the new view knows of the old one. */
void hf_pod_history_changed(struct hf_pod_history *history, const struct hf_cache_entry *before,
			    const struct hf_cache_entry *now);
/* All pods were listed. */
void hf_pod_history_synced(struct hf_pod_history *history);
/* gone and watched_since, of the job of this UID; views as in hf_observe. */
struct hf_views;
void hf_pod_history_see(struct hf_pod_history *history, const char *uid,
			const struct hf_moment *moment, struct hf_arena *arena,
			struct hf_views *views, struct hf_observed *seen);
/* The job of this UID is gone. */
void hf_pod_history_forget(struct hf_pod_history *history, const char *uid);

#endif
