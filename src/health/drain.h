/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_DRAIN_H
#define HF_HEALTH_DRAIN_H

#include "base/time.h"
#include "health/types.h"

HF_BEGIN_DECLS

/*
 * Decides whether a pod that holds a failed device is evicted now, and the reason if not.  Pods are evicted only from
 * nodes that Holdfast has quarantined, so that a pod does not come back to the same device.  A pod with a slow device
 * is not evicted: it works on until it ends.  Pure.
 */

struct hf_health_drain {
	bool evicts;       /* the policy lets pods be evicted */
	hf_time evicts_at; /* since when the policy allows evictions, at the latest */
	bool paused;       /* the policy or the node is paused, or the breaker is open */
	hf_time grace, timeout;
	hf_time now;
	/* when Holdfast quarantined the node; NONE: not quarantined by Holdfast */
	hf_time quarantined_at;
	bool stale; /* the facts about the node are too old, or of another boot */
	unsigned
		/* number of pods that came in spite of the quarantine and were evicted */
		came_back;
};

struct hf_health_pod {
	bool fatal;      /* at least one of the pod's devices has a fatal fault */
	bool selected;   /* the policy lets this pod be evicted */
	bool daemon;     /* the pod is of a DaemonSet, which would create a new pod on this node */
	bool ended;      /* the pod has ended, or is being deleted */
	bool restarting; /* the pod's job restarts at this moment */
	hf_time came_at; /* when the pod came to the node; 0: not known */
	/* an eviction was refused, for instance by a disruption budget: no other try before this time; NONE: none
	 * was refused */
	hf_time not_before;
};

enum hf_health_drain_why {
	HF_HEALTH_DRAIN_EVICT,      /* the pod is evicted: it holds a device that has failed */
	HF_HEALTH_DRAIN_ENDS,       /* the pod has ended, or is being deleted already */
	HF_HEALTH_DRAIN_NOT_OURS,   /* Holdfast has not quarantined the node */
	HF_HEALTH_DRAIN_WORKS,      /* the pod's device is slow, but works */
	HF_HEALTH_DRAIN_UNSELECTED, /* the policy does not let this pod be evicted */
	HF_HEALTH_DRAIN_DAEMON,     /* the pod's DaemonSet would create a new pod on this node */
	HF_HEALTH_DRAIN_MODE,       /* the policy evicts no pods */
	HF_HEALTH_DRAIN_HALTED,     /* the policy or the node is paused, or the breaker is open */
	HF_HEALTH_DRAIN_OLD,        /* the facts about the node are too old, or of another boot */
	HF_HEALTH_DRAIN_GRACE,      /* the pod still has time to end by itself */
	HF_HEALTH_DRAIN_RESTARTING, /* the pod's job restarts already, which ends the pod too */
	/* a disruption budget refused the eviction; Holdfast tries the eviction again */
	HF_HEALTH_DRAIN_REFUSED,
};

/* Returns EVICT, or the reason against it; lowers *ret_wake to the time when time alone may change the answer. */
enum hf_health_drain_why hf_health_drain(const struct hf_health_drain *drain,
					 const struct hf_health_pod *pod, hf_time *ret_wake);
/* Whether pods hold failed devices for longer than the policy allows: a person is told, and nothing is forced. */
bool hf_health_drain_is_stuck(const struct hf_health_drain *drain);
/* The delay after so many refused evictions; asked: the delay that the server asked for, 0: none. */
hf_time hf_health_drain_backoff(unsigned refusals, hf_time asked);

HF_END_DECLS

#endif
