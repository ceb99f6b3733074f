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
 * What a step is told of nodes, beyond pods and services.  Four sources:
 *
 * - nodes.c: Nodes are watched, as views of some fifty bytes.
 * - asks.c: Leases, claims and single Nodes are read while plans ask for them.
 * - devices.c: DeviceHealth objects are watched, if their CRD exists.
 * - pod_history.c: when a kubelet last wrote to a pod; names that were just freed.
 *
 * Spans are measured on the monotonic clock, from the moment when this process saw something.  A
 * step gets times on its own clock, converted by struct hf_moment.  All these facts are lost with
 * the process: a new leader measures anew, which delays conclusions from silence and never hastens
 * them.
 *
 * If the kubelet runs in this process, the four pointers of struct hf_facts are NULL.
 */
struct hf_operator;
struct hf_view;
struct hf_cache_entry;

/* An instant on two clocks, for the conversion of times between the clocks. */
struct hf_moment {
	hf_time now;  /* the time that the step gets: API-server time */
	hf_time mono; /* the loop's */
};
/* Convert a monotonic time to the step's clock.  HF_TIME_NONE stays HF_TIME_NONE. */
hf_time hf_moment_at(const struct hf_moment *moment, hf_time mono);

struct hf_facts {
	struct hf_nodes *nodes;
	struct hf_asks *asks;
	struct hf_pod_history *history;
	struct hf_devices *devices;
};

/* --- nodes.c ------------------------------------------------------------------------------- */

/* The most zones that are counted.  A label is free text; nodes of further zones count as nodes
 * without a zone. */
#define HF_ZONES_MAX 4096

struct hf_nodes *hf_nodes_create(struct hf_operator *op);
void hf_nodes_start(struct hf_nodes *nodes);
struct hf_nodes *hf_nodes_destroy(struct hf_nodes *nodes); /* NULL is fine; returns NULL */
/* Returns true if all nodes are listed, or if the right to list nodes is missing. Without that
 * right every node counts as silent. */
bool hf_nodes_synced(const struct hf_nodes *nodes);
/* Fill in the facts about a node, except those of its Lease.  A name without a Node object gives
 * HF_NODE_GONE.  False: nothing is known of nodes. */
bool hf_nodes_see(struct hf_nodes *nodes, const char *name, const struct hf_moment *moment,
		  struct hf_arena *arena, struct hf_node_seen *ret_node);
/* True: taint eviction may hold a timer for a pod that was on this node a moment ago.  That is so
 * if the node is missing, cannot be seen, or was tainted within HF_POD_HISTORY_KEPT. */
bool hf_nodes_evicts(const struct hf_nodes *nodes, const char *name);
/* Put a Node into the cache that a live read has found. */
void hf_nodes_put(struct hf_nodes *nodes, struct hf_doc *node);
/* Queue the jobs with pods on this node. */
void hf_nodes_enqueue(struct hf_operator *op, const char *name);
/* For metrics: the number of schedulable nodes that are lost without proof, and of zones in a
 * storm. */
void hf_nodes_count(const struct hf_nodes *nodes, int32_t *ret_lost, int32_t *ret_storms);

/* --- devices.c ----------------------------------------------------------------------------- */

struct hf_devices *hf_devices_create(struct hf_operator *op);
void hf_devices_start(struct hf_devices *devices);
struct hf_devices *hf_devices_destroy(struct hf_devices *devices); /* NULL is fine; returns NULL */
/* Returns true if all DeviceHealth objects are listed, or if the CRD or the right to list them is
 * missing. */
bool hf_devices_synced(const struct hf_devices *devices);
/* Set in `node` whether it has an agent, and when that agent last reported. */
void hf_devices_see_node(const struct hf_devices *devices, const struct hf_moment *moment,
			 struct hf_node_seen *node);
/* Add the devices of the pod that the agent reports, behind those of the pod's own status. */
void hf_devices_see_pod(const struct hf_devices *devices, const struct hf_job_view *job,
			struct hf_arena *arena, struct hf_pod *pod);
/* Add the agents' reports on the job's training processes to the pods: ranks that advance, and the
 * rank that delays its peers. */
void hf_devices_see_ranks(const struct hf_devices *devices, const struct hf_moment *moment,
			  struct hf_pod *pods, size_t len, struct hf_arena *arena);
/* Fill in seen->late, from the job's records, and seen->sick. The pods and the gone pods of `seen`
 * must be filled in before. */
void hf_devices_see_records(const struct hf_devices *devices, const struct hf_moment *moment,
			    const struct hf_job_view *job, struct hf_arena *arena,
			    struct hf_observed *seen);

/* --- asks.c -------------------------------------------------------------------------------- */

/* The most objects that are read for all jobs together: those of a job of 10,000 pods on as many
 * nodes, and half as many again. */
#define HF_ASKS_MAX 16384
/* The most reads under way, in addition to the requests of passes. */
#define HF_ASKS_IN_FLIGHT_MAX 16
/* Reads a second.  A thousand nodes that a verdict waits for are read in five seconds. */
#define HF_ASKS_RATE 200
/* The time between two reads of an object.  Kubelets renew every ten seconds, so a verdict that
 * waits for a renewal is not delayed for long. */
#define HF_ASKS_INTERVAL (2 * HF_SECOND)
#define HF_ASKS_RETRY_MAX (60 * HF_SECOND)

struct hf_asks *hf_asks_create(struct hf_operator *op);
struct hf_asks *hf_asks_destroy(struct hf_asks *asks); /* NULL is fine; returns NULL */
/* Replace the asks of a job by those of its newest plan. */
void hf_asks_set(struct hf_asks *asks, const char *key, const char *ns, const struct hf_plan *plan);
/* Drops the asks of a job. Call the function when the job is gone. */
void hf_asks_forget(struct hf_asks *asks, const char *key);
/* Sends no further reads, because the operator stops. */
void hf_asks_stop(struct hf_asks *asks);
/* Fill in what was read of the node's Lease, and of the node itself if a plan asked for it. */
void hf_asks_see_node(const struct hf_asks *asks, const struct hf_moment *moment,
		      struct hf_node_seen *node);
/* Add the claims of this job that have been read so far. */
void hf_asks_see_claims(const struct hf_asks *asks, const char *key, struct hf_arena *arena,
			struct hf_observed *seen);

/* --- pod_history.c ------------------------------------------------------------------------------ */

/* The most deleted pods that are remembered: two gang restarts of the largest job.  When more pods
 * are deleted, all are forgotten, and the watch counts as begun then. */
#define HF_POD_HISTORY_MAX 65536
/* Longer than any sensible replaceDelaySeconds. */
#define HF_POD_HISTORY_KEPT (5 * HF_MINUTE)

struct hf_pod_history *hf_pod_history_create(struct hf_operator *op);
struct hf_pod_history *hf_pod_history_destroy(
	struct hf_pod_history *history); /* NULL is fine; returns NULL */
/* Must be called with each change of a pod; `now` is NULL when the pod was deleted.  Sets in the
 * new view the times that are known from the old view. */
void hf_pod_history_changed(struct hf_pod_history *history, const struct hf_cache_entry *before,
			    const struct hf_cache_entry *now);
/* Call this when all pods were listed: deletions are seen from now on. */
void hf_pod_history_synced(struct hf_pod_history *history);
/* Fill in seen->gone and seen->watched_since for the job of this UID.  views: as in hf_observe. */
struct hf_views;
void hf_pod_history_see(struct hf_pod_history *history, const char *uid,
			const struct hf_moment *moment, struct hf_arena *arena,
			struct hf_views *views, struct hf_observed *seen);
/* Gives a new job the names that pods of a former job of its name freed a moment ago. */
void hf_pod_history_begin(struct hf_pod_history *history, const struct hf_cache_entry *job);
/* The job is gone: its history is forgotten, but for the names that a next job must know. */
void hf_pod_history_end(struct hf_pod_history *history, const struct hf_cache_entry *job);

#endif
