/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_RANKS_H
#define HF_AGENT_RANKS_H

#include "agent/holders.h"
#include "api/device_health.h"
#include "health/beat.h"

HF_BEGIN_DECLS

/*
 * The training processes of this node that report, as the API server is to know of them.  Reads no
 * clock: all times are of the steps' clock.
 *
 * Steps go by many times a second, and nobody decides anything on them.  So what is published is
 * what somebody decides on (struct hf_rank_report), and it is published when that changes, and again while one
 * stands still: nothing at all while a job just trains.
 */
struct hf_ranks;

/* Beyond what DeviceHealth holds there is nobody to tell.  Where there are more, the pods that tell of the
 * most have the fewest of theirs heard: none can keep another's out. */
#define HF_RANKS_HEARD_MAX HF_DEVICE_HEALTH_RANKS_MAX
/* Without a step for so long, and for five times the longest that one took, a rank is stalled. */
#define HF_RANKS_STALLED_AFTER (30 * HF_SECOND)
#define HF_RANKS_SILENT_AFTER (30 * HF_SECOND)
/* Between two writes of DeviceHealth because of ranks; and while one is stalled, for so long: who
 * restarts a job for want of progress goes by what is said after the deadline. */
#define HF_RANKS_GAP (10 * HF_SECOND)
#define HF_RANKS_STALLED_EVERY (30 * HF_SECOND)
#define HF_RANKS_STALLED_FOR (2 * HF_HOUR)

struct hf_ranks *hf_ranks_create(void);
struct hf_ranks *hf_ranks_destroy(struct hf_ranks *ranks); /* NULL is fine; returns NULL */

void hf_ranks_heard(struct hf_ranks *ranks, const char *pod_uid, const struct hf_beat *beat,
		    hf_time now);
/* The names of the pods by the UIDs that their control groups have; false: there is no such pod any more. */
typedef bool (*hf_ranks_pod_fn)(void *arg, const char *pod_uid, struct hf_pod_name *ret_name);
/* Forgets ranks of pods that are gone.  True: what would be published differs from what was, or has to be said
 * again, and the last time was long enough ago. */
bool hf_ranks_look(struct hf_ranks *ranks, hf_ranks_pod_fn pod, void *arg, hf_time now);
/* For DeviceHealth: in the arena, by pod and rank. */
void hf_ranks_list(const struct hf_ranks *ranks, hf_ranks_pod_fn pod, void *arg, hf_time now,
		   struct hf_arena *arena, struct hf_device_health *health);
/* That has been written, as it is now. */
void hf_ranks_published(struct hf_ranks *ranks, hf_ranks_pod_fn pod, void *arg, hf_time now);
size_t hf_ranks_count(const struct hf_ranks *ranks);
/* There are some, or that they are gone has still to be said: look again. */
bool hf_ranks_owes(const struct hf_ranks *ranks);
/* Somebody was heard within the last 30 s. */
bool hf_ranks_alive(const struct hf_ranks *ranks, hf_time now);

HF_END_DECLS

#endif
