/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_DRAIN_H
#define HF_HEALTH_DRAIN_H

#include "base/strbuf.h"
#include "health/types.h"

HF_BEGIN_DECLS

/*
 * Whether a pod that holds a device which cannot be worked with is evicted now, and why not.  Only
 * from nodes that we have quarantined, so that it does not come back to the same device; only what
 * has stopped anyway: a slow device goes on being used until its pod ends.  Pure.
 */

struct hf_health_drain {
	bool evicts; /* the policy lets pods be evicted */
	bool paused; /* by the policy, the node, or an open breaker */
	hf_time grace, timeout;
	hf_time now;
	hf_time quarantined_at; /* NONE: the node is not ours */
	bool stale;             /* what is known of the node is too old, or of another boot */
};

struct hf_health_pod {
	bool fatal;         /* what it holds cannot be worked with */
	bool selected;      /* by the policy */
	bool daemon;        /* it would be made again on this very node */
	bool ended;         /* or is on its way */
	bool restarting;    /* its job starts anew at this moment */
	hf_time not_before; /* somebody refused it, a disruption budget say; NONE: nobody did */
};

/* X(name, text); the name of metrics is the text in front of the colon. */
#define HF_HEALTH_DRAIN_WHYS(X)                                                                    \
	X(EVICT, "evict: it holds what has failed")                                                \
	X(ENDS, "ends: it is on its way")                                                          \
	X(NOT_OURS, "not-ours: the node is not quarantined by us")                                 \
	X(WORKS, "works: what it holds is slow, and works")                                        \
	X(UNSELECTED, "unselected: the policy leaves it out")                                      \
	X(DAEMON, "daemon: it would be made again on this node")                                   \
	X(MODE, "mode: the policy evicts nobody")                                                  \
	X(HALTED, "halted: by a pause or the breaker")                                             \
	X(OLD, "old: the agent has not been heard since")                                          \
	X(GRACE, "grace: it may still end by itself")                                              \
	X(RESTARTING, "restarting: its job restarts already")                                      \
	X(REFUSED, "refused: by a disruption budget, it is asked again")

enum hf_health_drain_why {
#define X(name, text) HF_HEALTH_DRAIN_##name,
	HF_HEALTH_DRAIN_WHYS(X)
#undef X
		HF_HEALTH_DRAIN_WHY_COUNT
};

/* EVICT, or why not; ret_wake is lowered to when time alone may change the answer. */
enum hf_health_drain_why hf_health_drain(const struct hf_health_drain *drain,
					 const struct hf_health_pod *pod, hf_time *ret_wake);
/* It goes on for longer than the policy thinks fit: a person is told, and nothing is forced. */
bool hf_health_drain_is_stuck(const struct hf_health_drain *drain);
/* Until it is asked again after so many refusals; asked: what the server wants, 0: nothing. */
hf_time hf_health_drain_backoff(unsigned refusals, hf_time asked);

const char *hf_health_drain_text(enum hf_health_drain_why why);

HF_END_DECLS

#endif
