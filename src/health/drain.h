/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_DRAIN_H
#define HF_HEALTH_DRAIN_H

#include "base/time.h"
#include "health/types.h"

HF_BEGIN_DECLS

/*
 * Whether a pod that holds a device which cannot be worked with is evicted now, and why not.  Only
 * from nodes that we have quarantined, so that it does not come back to the same device; only what
 * has stopped anyway: a slow device goes on being used until its pod ends.  Pure.
 */

struct hf_health_drain {
	bool evicts;       /* the policy lets pods be evicted */
	hf_time evicts_at; /* since then at the latest */
	bool paused;       /* by the policy, the node, or an open breaker */
	hf_time grace, timeout;
	hf_time now;
	hf_time quarantined_at; /* NONE: the node is not ours */
	bool stale;             /* what is known of the node is too old, or of another boot */
	unsigned
		came_back; /* pods that came in spite of the quarantine, and were evicted as well */
};

struct hf_health_pod {
	bool fatal;      /* one of the pod's devices has a fatal fault */
	bool selected;   /* by the policy */
	bool daemon;     /* of a DaemonSet: a new pod would come to this node */
	bool ended;      /* or ends already */
	bool restarting; /* its job starts anew at this moment */
	hf_time came_at; /* 0: not known */
	hf_time not_before; /* an eviction was refused, by a disruption budget for instance; NONE: none was */
};

enum hf_health_drain_why {
	HF_HEALTH_DRAIN_EVICT,      /* it holds what has failed */
	HF_HEALTH_DRAIN_ENDS,       /* it is on its way */
	HF_HEALTH_DRAIN_NOT_OURS,   /* the node is not quarantined by us */
	HF_HEALTH_DRAIN_WORKS,      /* what it holds is slow, and works */
	HF_HEALTH_DRAIN_UNSELECTED, /* the policy leaves it out */
	HF_HEALTH_DRAIN_DAEMON,     /* its DaemonSet would create a new pod on this node */
	HF_HEALTH_DRAIN_MODE,       /* the policy evicts no pods */
	HF_HEALTH_DRAIN_HALTED,     /* by a pause or the breaker */
	HF_HEALTH_DRAIN_OLD,        /* the agent has not been heard since */
	HF_HEALTH_DRAIN_GRACE,      /* it may still end by itself */
	HF_HEALTH_DRAIN_RESTARTING, /* its job restarts already */
	HF_HEALTH_DRAIN_REFUSED,    /* by a disruption budget; it is asked again */
};

/* EVICT, or why not; ret_wake is lowered to when time alone may change the answer. */
enum hf_health_drain_why hf_health_drain(const struct hf_health_drain *drain,
					 const struct hf_health_pod *pod, hf_time *ret_wake);
/* It goes on for longer than the policy thinks fit: a person is told, and nothing is forced. */
bool hf_health_drain_is_stuck(const struct hf_health_drain *drain);
/* Until it is asked again after so many refusals; asked: what the server wants, 0: nothing. */
hf_time hf_health_drain_backoff(unsigned refusals, hf_time asked);

HF_END_DECLS

#endif
