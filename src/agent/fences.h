/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_FENCES_H
#define HF_AGENT_FENCES_H

#include "agent/ranks.h"

HF_BEGIN_DECLS

/*
 * The pods of this node with processes that fence themselves, by their own reports.  Reads no clock: all times are of
 * the steps' clock.  A pod stays in the list for as long as it exists: its processes do not run without the fence,
 * and the published list must stay true while the API server is unreachable.
 */
struct hf_fences;

#define HF_FENCES_MAX HF_DEVICE_HEALTH_RANKS_MAX
/* How long after a report with a fence contacts are needed: a kubelet restarts an ended container within five
 * minutes, and the new process finds a contact at once. */
#define HF_FENCES_WANTED_FOR (10 * HF_MINUTE)

struct hf_fences *hf_fences_create(void);
struct hf_fences *hf_fences_destroy(struct hf_fences *fences); /* NULL is fine; returns NULL */

/* Takes a report with a fence of `seconds`, above 0.  If ranks of a pod report different fences, the longest
 * counts. */
void hf_fences_heard(struct hf_fences *fences, const char *pod_uid, uint32_t seconds, hf_time now);
/* Forgets deleted pods.  Returns whether the list differs from the published one. */
bool hf_fences_look(struct hf_fences *fences, hf_ranks_pod_fn pod, void *arg, hf_time now);
/* The list for DeviceHealth, in the arena, sorted by pod. */
void hf_fences_list(const struct hf_fences *fences, hf_ranks_pod_fn pod, void *arg,
		    struct hf_arena *arena, struct hf_device_health *health);
/* Call this when the list of hf_fences_list has been published: later changes are compared with
 * it. */
void hf_fences_published(struct hf_fences *fences, hf_ranks_pod_fn pod, void *arg);
/* Whether a process with a fence has reported lately, so that it needs contacts. */
bool hf_fences_wanted(const struct hf_fences *fences, hf_time now);

HF_END_DECLS

#endif
