/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_RANKS_H
#define HF_AGENT_RANKS_H

#include "agent/holders.h"
#include "api/device_health.h"
#include "health/beat.h"

HF_BEGIN_DECLS

/*
 * The training processes of this node that report, and what the API server should know about them.  Reads no clock:
 * all times are of the steps' clock.
 *
 * Processes do many steps in a second, and no decision needs each of them.  So the list holds what decisions need
 * (struct hf_rank_report).  It is published when that changes, and again and again while a rank stands still: a job
 * that just trains causes no write.
 */
struct hf_ranks;

/* Most ranks that are kept, as many as DeviceHealth holds.  If more ranks report, the pods with the most ranks
 * lose some, so that no pod can displace all ranks of another pod. */
#define HF_RANKS_HEARD_MAX HF_DEVICE_HEALTH_RANKS_MAX
/* A rank is stalled if it does no step for this time, and for five times as long as its longest step took. */
#define HF_RANKS_STALLED_AFTER (30 * HF_SECOND)
#define HF_RANKS_SILENT_AFTER (30 * HF_SECOND)
/* The least pause between two writes of DeviceHealth for ranks, and between two repeats while a rank is stalled.
 * The operator restarts a job without progress only after a report that is later than its deadline. */
#define HF_RANKS_GAP (10 * HF_SECOND)
#define HF_RANKS_STALLED_EVERY (30 * HF_SECOND)
#define HF_RANKS_STALLED_FOR (2 * HF_HOUR)

struct hf_ranks *hf_ranks_create(void);
struct hf_ranks *hf_ranks_destroy(struct hf_ranks *ranks); /* NULL is fine; returns NULL */

void hf_ranks_heard(struct hf_ranks *ranks, const char *pod_uid, const struct hf_beat *beat,
		    hf_time now);
/* Finds a pod by the UID that its control groups have.  False: the API server has no such pod. */
typedef bool (*hf_ranks_pod_fn)(void *arg, const char *pod_uid, struct hf_pod_name *ret_name);
/* Forgets ranks of deleted pods.  True: the list has to be published, because it differs from the published list
 * or a repeat is due, and the last write is long enough ago. */
bool hf_ranks_look(struct hf_ranks *ranks, hf_ranks_pod_fn pod, void *arg, hf_time now);
/* The list for DeviceHealth, in the arena, sorted by pod and rank. */
void hf_ranks_list(const struct hf_ranks *ranks, hf_ranks_pod_fn pod, void *arg, hf_time now,
		   struct hf_arena *arena, struct hf_device_health *health);
/* The present list has been published. */
void hf_ranks_published(struct hf_ranks *ranks, hf_ranks_pod_fn pod, void *arg, hf_time now);
size_t hf_ranks_count(const struct hf_ranks *ranks);
/* Whether hf_ranks_look() has to be called again: ranks report, or their absence is not published yet. */
bool hf_ranks_owes(const struct hf_ranks *ranks);
/* Whether any rank has reported within the last 30 s. */
bool hf_ranks_alive(const struct hf_ranks *ranks, hf_time now);

HF_END_DECLS

#endif
