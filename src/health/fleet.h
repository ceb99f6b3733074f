/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_FLEET_H
#define HF_HEALTH_FLEET_H

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "health/types.h"

HF_BEGIN_DECLS

/*
 * Decides the next action for each node of a fleet, and why none: budgets, the breaker and the ladder of
 * remedies, over a snapshot.  The operator decides once more right before it acts, with a fresh snapshot
 * that includes its own actions.  Pure; the order of the nodes does not matter.
 */

/* Nodes of one cluster: Kubernetes is tested with 5,000. */
#define HF_HEALTH_NODES_MAX 20000
/* Attempts remembered of a node, and quarantines of the fleet within the breaker's window. */
#define HF_HEALTH_ATTEMPTS_MAX 32
/* Windows of a policy. */
#define HF_HEALTH_WINDOWS_MAX 16

enum hf_health_mode {
	HF_HEALTH_OBSERVE,     /* decide and show */
	HF_HEALTH_QUARANTINES, /* and quarantine, and release */
	HF_HEALTH_REMEDIATES,
};

/* A number, a share, or both; the lower value counts. */
struct hf_health_limit {
	int32_t count;   /* -1: none */
	int32_t percent; /* -1: none; rounded down */
	bool at_least_one;
};

struct hf_health_rung {
	int32_t attempts; /* within the window; 0: never taken */
	hf_time window;
	hf_time timeout; /* without a verdict it has failed */
	hf_time settle;  /* a fault within this time after a remedy may be its effect */
};

/* In UTC.  If a policy has windows, disruptive actions happen only within one. */
struct hf_health_window {
	uint8_t days;                   /* bit 0: Sunday */
	int32_t from_minute, to_minute; /* of the day; beyond midnight where to < from */
};

struct hf_health_policy {
	enum hf_health_mode mode;
	bool paused;
	bool force_drain;                   /* restart though pods remain that cannot be drained */
	struct hf_health_limit unavailable; /* nodes out of use, for any reason */
	struct hf_health_limit quarantines; /* within their window */
	hf_time quarantine_window;
	int32_t concurrent;    /* remedies at once */
	int32_t per_domain;    /* unavailable nodes in one failure domain; 0: no limit */
	int32_t node_attempts; /* of any rung, within the window */
	hf_time node_window;
	int32_t job_evictions;          /* of one job, within the window; 0: no limit */
	struct hf_health_limit breaker; /* newly bad nodes within its window */
	hf_time breaker_window;
	struct hf_health_rung rungs[HF_HEALTH_ACTIONS];
	struct hf_health_window windows[HF_HEALTH_WINDOWS_MAX];
	size_t windows_len;
	hf_time stale_after; /* no decision about a node after this silence of its agent */
};
extern const struct hf_health_policy hf_health_policy_default;
/* NULL, or the problem of the policy, a static text. */
const char *hf_health_policy_problem(const struct hf_health_policy *policy);

struct hf_health_attempt {
	enum hf_health_action action;
	hf_time at;
	bool failed;
};

/* One node: facts from the cluster and from its agent. */
struct hf_health_node {
	const char *name;
	const char *domain;           /* "": none */
	const char *job;              /* that holds its bad device; "": none */
	enum hf_health_state state;   /* the worst of its devices */
	enum hf_health_class cls;     /* the strictest that acts */
	enum hf_health_action action; /* what its evidence asks for */
	hf_time evidence_at;          /* time of the newest acting fault; a measurement renews it */
	hf_time began_at;             /* the begin of its newest bad state; NONE: at evidence_at */
	bool weighed;                 /* the breaker has counted that state already */
	bool counted; /* the window has its quarantine already, which was lost with the Node object */
	hf_time observed_at; /* the agent's last report; NONE: no agent */
	bool same_boot;      /* that evidence is of the boot that the node is in */
	bool unavailable;    /* cordoned, tainted or not ready, for any reason */
	bool foreign;        /* … and not by Holdfast */
	bool owned;          /* quarantined by Holdfast */
	hf_time owned_at;
	bool excluded;
	hf_time not_before; /* a write about it was refused: not again until then; 0: none was */
	bool device_busy;   /* a process, or an operand of an operator, is on the device */
	bool undrainable;
	bool job_restarting;   /* its gang starts anew at this moment */
	int32_t job_evictions; /* of that job, within its window */
	/* All that acts is what a pod of a driver or a plugin mends, and a taint would keep that away: its resource is not
	 * offered meanwhile, or only what works of it is. */
	bool by_pods;
	bool rest_well; /* … and all of its devices are Healthy */
	const char
		*like; /* nodes with an equal value can take each other's work; NULL: any; not "" */
	bool free;     /* it could take another one's work */
	bool replaceable; /* a spare or free node could take its work */
	/* A remedy at work; RECORD: none. */
	enum hf_health_action running;
	hf_time running_since;
	const struct hf_health_attempt *attempts; /* finished ones, the oldest first */
	size_t attempts_len;
};

/* Kept by the caller between decisions, durably: it opens by itself and is closed by a person. */
struct hf_health_breaker {
	bool tripped;
	uint64_t epoch;    /* of the last closing */
	hf_time closed_at; /* evidence from before then moves nothing; NONE: never closed */
};

struct hf_health_quarantined {
	const char *node;
	hf_time at;
};

struct hf_health_fleet {
	hf_time now;
	const struct hf_health_node *nodes;
	size_t nodes_len;
	size_t selected; /* of the policy's nodes with accelerators: what shares are of */
	const struct hf_health_quarantined *quarantined; /* within the longest window */
	size_t quarantined_len;
	int32_t room; /* for so many quarantines more to be remembered; -1: for any number */
	struct hf_health_breaker breaker;
};

enum hf_health_answer {
	HF_HEALTH_NOTHING, /* there is nothing to do */
	HF_HEALTH_GO,
	HF_HEALTH_WOULD, /* it would be done, were the policy not to observe only */
	HF_HEALTH_HELD,  /* something forbids it */
	HF_HEALTH_WAITS, /* for what is under way */
	HF_HEALTH_ANSWERS
};

/* The kind of a decision about a node. */
enum hf_health_doing {
	HF_HEALTH_DO_NOTHING,
	HF_HEALTH_DO_QUARANTINE,
	HF_HEALTH_DO_REMEDY, /* `action` tells which */
	HF_HEALTH_DO_FAIL,   /* the remedy under way has not helped in time */
	HF_HEALTH_DO_GIVE_UP,
	HF_HEALTH_DO_RELEASE,
	HF_HEALTH_DOINGS
};

/* Why (not); X(name, text), the name of metrics is the text in front of the colon. */
#define HF_HEALTH_WHYS(X)                                                                          \
	X(WELL, "well: nothing acts against it")                                                   \
	X(EVIDENCE, "evidence: its class asks for it")                                             \
	X(ESCALATED, "escalated: the milder rungs have been tried")                                \
	X(MENDED, "mended: its faults have ended")                                                 \
	X(PODS, "pods: one of a driver or a plugin mends it, and a taint would keep that away")    \
	X(EXHAUSTED, "exhausted: every rung has been tried as often as it may")                    \
	X(TIMED_OUT, "timed-out: no verdict in time")                                              \
	X(RUNNING, "running: a remedy is at work")                                                 \
	X(SETTLING, "settling: on probation, or too soon after the last remedy")                   \
	X(EXCLUDED, "excluded: the policy leaves it out")                                          \
	X(FAILED_STATE, "failed: a person must look at it")                                        \
	X(SILENT, "silent: its agent has not been heard")                                          \
	X(UNCONFIRMED, "unconfirmed: a suspicion")                                                 \
	X(STALE, "stale: seen before this boot, this quarantine or this breaker")                  \
	X(FOREIGN, "foreign: somebody else has taken it out")                                      \
	X(PAUSED, "paused: by the policy")                                                         \
	X(BREAKER, "breaker: too many at once, a person must close it")                            \
	X(REFUSED, "refused: the API server has refused the write, and is asked again")            \
	X(WINDOW, "window: not at this time of the week")                                          \
	X(NO_CAPACITY, "no-capacity: no free node could take its work, and it may still work")     \
	X(UNAVAILABLE, "unavailable: too many nodes are out")                                      \
	X(RATE, "rate: too many quarantines within the window")                                    \
	X(FLAPS,                                                                                   \
	  "flaps: quarantined three times within the window, it stays as it is until one is past") \
	X(CONCURRENT, "concurrent: too many remedies at work")                                     \
	X(DOMAIN, "domain: too many nodes of its failure domain are out")                          \
	X(JOB, "job: it has been disturbed often enough")                                          \
	X(JOB_RESTARTING, "job-restarting: it restarts already, that one is joined")               \
	X(DEVICE_BUSY, "device-busy: a process is on it")                                          \
	X(UNDRAINABLE, "undrainable: pods remain that cannot be drained")

enum hf_health_why {
#define X(name, text) HF_HEALTH_WHY_##name,
	HF_HEALTH_WHYS(X)
#undef X
		HF_HEALTH_WHY_COUNT
};

struct hf_health_decision {
	const char *node;
	enum hf_health_doing doing;
	enum hf_health_action action;
	enum hf_health_answer answer;
	enum hf_health_why why;
};

struct hf_health_fleet_plan {
	const struct hf_health_decision *decisions; /* by name of node */
	size_t len;
	struct hf_health_breaker breaker;
	bool breaker_tripped_now;
	/* What is left after these decisions. */
	int32_t unavailable_left, quarantines_left, concurrent_left;
	hf_time wake_at;
};

const char *hf_health_mode_name(enum hf_health_mode mode);
const char *hf_health_answer_name(enum hf_health_answer answer);
const char *hf_health_doing_name(enum hf_health_doing doing);
const char *hf_health_why_text(enum hf_health_why why);

/* True in any of the windows, and if there are none. */
bool hf_health_in_window(const struct hf_health_window *windows, size_t len, hf_time now);

/* of `total`; -1 where there is no limit. */
int32_t hf_health_limit_of(const struct hf_health_limit *limit, size_t total);

/* HF_E_TOO_LARGE beyond HF_HEALTH_NODES_MAX.  The plan lives in the arena. */
int hf_health_fleet_decide(const struct hf_health_fleet *fleet,
			   const struct hf_health_policy *policy, struct hf_arena *arena,
			   struct hf_health_fleet_plan *ret_plan, struct hf_error *err)
	HF_MUST_CHECK;

/* Sets `replaceable`: a free node could take the work of a slow node of its kind.  Of each kind `keep` nodes stay free.  Nodes
 * with work get the free ones in the order of need; a node without work needs none.  A quarantined node keeps its spare until
 * its work has gone.  nodes are the fleet's.  Returns how many free nodes may be used. */
int32_t hf_health_fleet_spares(const struct hf_health_fleet *fleet,
			       const struct hf_health_policy *policy, int32_t keep,
			       struct hf_health_node *nodes, struct hf_arena *arena);

HF_END_DECLS

#endif
