/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_RANKS_H
#define HF_AGENT_RANKS_H

#include "agent/holders.h"
#include "api/device_health.h"
#include "health/beat.h"

HF_BEGIN_DECLS

/*
 * The training processes of this node that report, and what the API server is to know about them.
 * Reads no clock: all times are of the steps' clock.
 *
 * Steps go by many times a second, and no decision needs each of them. So the list holds what
 * decisions need (struct hf_rank_report). It is published when that changes, and again while a rank
 * stands still: a job that just trains causes no write.
 */
struct hf_ranks;

/* DeviceHealth holds no more. If more ranks report, the pods with the most ranks lose some of
 * theirs, so no pod can displace all ranks of another. */
#define HF_RANKS_HEARD_MAX HF_DEVICE_HEALTH_RANKS_MAX
/* Without a step for so long, and for five times the longest that one took, a rank is stalled. */
#define HF_RANKS_STALLED_AFTER (30 * HF_SECOND)
#define HF_RANKS_SILENT_AFTER (30 * HF_SECOND)
/* The pause between two writes of DeviceHealth for ranks, and between two repeats while a rank
 * is stalled. The operator restarts a job without progress by a report from after its deadline. */
#define HF_RANKS_GAP (10 * HF_SECOND)
#define HF_RANKS_STALLED_EVERY (30 * HF_SECOND)
#define HF_RANKS_STALLED_FOR (2 * HF_HOUR)

struct hf_ranks *hf_ranks_create(void);
struct hf_ranks *hf_ranks_destroy(struct hf_ranks *ranks); /* NULL is fine; returns NULL */

void hf_ranks_heard(struct hf_ranks *ranks, const char *pod_uid, const struct hf_beat *beat,
		    hf_time now);
/* The names of the pods by the UIDs that their control groups have; false: there is no such pod any more. */
typedef bool (*hf_ranks_pod_fn)(void *arg, const char *pod_uid, struct hf_pod_name *ret_name);
/* Forgets ranks of deleted pods. True: the list differs from the published one, or a repeat is
 * due, and the last write was long enough ago. */
bool hf_ranks_look(struct hf_ranks *ranks, hf_ranks_pod_fn pod, void *arg, hf_time now);
/* For DeviceHealth: in the arena, by pod and rank. */
void hf_ranks_list(const struct hf_ranks *ranks, hf_ranks_pod_fn pod, void *arg, hf_time now,
		   struct hf_arena *arena, struct hf_device_health *health);
/* The present list has been published. */
void hf_ranks_published(struct hf_ranks *ranks, hf_ranks_pod_fn pod, void *arg, hf_time now);
size_t hf_ranks_count(const struct hf_ranks *ranks);
/* Ranks report, or their absence has still to be published: look again. */
bool hf_ranks_owes(const struct hf_ranks *ranks);
/* Somebody was heard within the last 30 s. */
bool hf_ranks_alive(const struct hf_ranks *ranks, hf_time now);

HF_END_DECLS

#endif
