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
 * Decides the next action for each node of a fleet, or the reason for none, from a snapshot: budgets, the breaker and
 * the ladder of remedies.  Right before it acts, the operator decides once more, with a fresh snapshot that includes
 * its own actions. Pure; the order of the nodes does not matter.
 */

/* Most nodes of one cluster: Kubernetes is tested with 5,000. */
#define HF_HEALTH_NODES_MAX 20000
/* Most attempts that are remembered of a node, and most quarantines of the fleet within the breaker's window. */
#define HF_HEALTH_ATTEMPTS_MAX 32
/* Windows of a policy. */
#define HF_HEALTH_WINDOWS_MAX 16

enum hf_health_mode {
	HF_HEALTH_OBSERVE,     /* decide and show */
	HF_HEALTH_QUARANTINES, /* and quarantine, and release */
	HF_HEALTH_REMEDIATES,
};

/* A number of nodes, a percentage of the nodes, or both; then the lower value counts. */
struct hf_health_limit {
	int32_t count;   /* -1: none */
	int32_t percent; /* -1: none; rounded down */
	bool at_least_one;
};

struct hf_health_rung {
	/* how often the remedy may be tried within the window; 0: it is never tried */
	int32_t attempts;
	hf_time window;
	hf_time timeout; /* the remedy has failed if there is no verdict after this time */
	/* a fault within this time after a remedy may be an effect of the remedy */
	hf_time settle;
};

/* A time of the week, in UTC.  If a policy has windows, disruptive actions happen only within one of them. */
struct hf_health_window {
	uint8_t days; /* bit 0: Sunday */
	/* minutes of the day; the window goes beyond midnight if to < from */
	int32_t from_minute, to_minute;
};

struct hf_health_policy {
	enum hf_health_mode mode;
	bool paused;
	/* restart a node although pods remain that cannot be drained */
	bool force_drain;
	struct hf_health_limit unavailable; /* most nodes out of use, for any reason */
	struct hf_health_limit quarantines; /* most quarantines within quarantine_window */
	hf_time quarantine_window;
	int32_t concurrent; /* most remedies that may be under way at the same time */
	int32_t per_domain; /* most unavailable nodes in one failure domain; 0: no limit */
	/* limit of the remedies of a node within node_window, for all rungs together */
	int32_t node_attempts;
	hf_time node_window;
	/* most disturbances of one job within the window; 0: no limit */
	int32_t job_evictions;
	/* the breaker opens if more nodes than this become bad within breaker_window */
	struct hf_health_limit breaker;
	hf_time breaker_window;
	struct hf_health_rung rungs[HF_HEALTH_ACTIONS];
	struct hf_health_window windows[HF_HEALTH_WINDOWS_MAX];
	size_t windows_len;
	/* no decision about a node after this time without a report of its agent */
	hf_time stale_after;
};
extern const struct hf_health_policy hf_health_policy_default;
/* Returns NULL, or the problem of the policy as a static text. */
const char *hf_health_policy_problem(const struct hf_health_policy *policy);

struct hf_health_attempt {
	enum hf_health_action action;
	hf_time at;
	bool failed;
	bool before_fault; /* the act was proved, and the node's newest fault came after the proof */
};

/* One node: facts from the cluster and from the node's agent. */
struct hf_health_node {
	const char *name;
	const char *domain;           /* "": none */
	const char *job;              /* job of the pod that holds the bad device; "": no job */
	enum hf_health_state state;   /* the worst state of the node's devices */
	enum hf_health_class cls;     /* the strictest class of a fault that acts on the node */
	enum hf_health_action action; /* the remedy that the node's faults ask for */
	/* time of the newest fault that acts; a measurement that finds the fault again renews it */
	hf_time evidence_at;
	/* when the node's newest bad state began; NONE: at evidence_at */
	hf_time began_at;
	bool weighed; /* the breaker has counted this bad state already */
	/* the window has counted this quarantine already; it was lost with the Node object */
	bool counted;
	hf_time observed_at; /* when the agent of the node last reported; NONE: there is no agent */
	bool same_boot;      /* the evidence is of the boot that the node is in */
	bool unavailable;    /* the node is cordoned, tainted or not ready, for any reason */
	bool foreign;        /* the node is unavailable, and not by Holdfast */
	bool owned;          /* quarantined by Holdfast */
	hf_time owned_at;
	/* the operator has not waited for stale_after yet: for the node's next report, or, if the agent knows nothing of a
	 * device since a boot, for a report that does */
	bool awaited;
	bool of_act; /* the quarantine is of a Remediation that has not succeeded: the policy does not end it */
	bool excluded;
	/* the API server refused a write about the node: no other try before this time; 0: none was refused */
	hf_time not_before;
	bool device_busy; /* a process, or an operand of the GPU Operator, uses the device */
	bool undrainable; /* pods have devices of the node, and may not be evicted for a remedy */
	bool job_restarting;   /* the job on the node restarts at this moment */
	int32_t job_evictions; /* how often that job was disturbed within node_window */
	/* The only faults that act are those that a pod of a driver or a plugin mends, and a taint would keep that
	 * pod away.  Until then the node offers nothing of the resource, or only its healthy part. */
	bool by_pods;
	bool rest_well; /* by_pods is true, and all of the node's devices are Healthy */
	/* nodes with an equal text can take each other's work; NULL: any node can; never "" */
	const char *like;
	bool free;        /* the node is a spare: it could take the work of another node */
	bool replaceable; /* a spare node could take the node's work */
	/* A person holds back the remedies of the node or of the policy. */
	bool held;
	/* No further remedy begins: one waits for what may never come, or a person has cancelled the last one. Such a
	 * node takes no place of others. */
	bool no_remedy;
	/* The node can have every remedy but a reset: no device that is out of use has a UUID. */
	bool no_reset;
	/* The remedy that is under way on the node; RECORD: none. */
	enum hf_health_action running;
	hf_time running_since;
	/* the node's finished remedies, the oldest first */
	const struct hf_health_attempt *attempts;
	size_t attempts_len;
};

/* The breaker: it opens by itself, and a person closes it.  The caller keeps it durably between decisions. */
struct hf_health_breaker {
	bool tripped;
	uint64_t epoch;    /* epoch of the last closing */
	hf_time closed_at; /* evidence from before this time has no effect; NONE: never closed */
};

struct hf_health_quarantined {
	const char *node;
	hf_time at;
};

struct hf_health_fleet {
	hf_time now;
	const struct hf_health_node *nodes;
	size_t nodes_len;
	/* nodes with accelerators that the policy selects: percentages are of this number */
	size_t selected;
	const struct hf_health_quarantined *quarantined; /* within the longest window */
	size_t quarantined_len;
	int32_t room; /* how many more quarantines the policy's status can record; -1: any number */
	struct hf_health_breaker breaker;
};

enum hf_health_answer {
	HF_HEALTH_NOTHING, /* there is nothing to do */
	HF_HEALTH_GO,
	HF_HEALTH_WOULD, /* the answer would be GO, but the policy's mode only shows the action */
	/* the decision is held back: a limit, a pause or another rule forbids it */
	HF_HEALTH_HELD,
	/* the decision waits for something under way, such as a remedy on the node */
	HF_HEALTH_WAITS,
	HF_HEALTH_ANSWERS
};

/* What a decision does with a node. */
enum hf_health_doing {
	HF_HEALTH_DO_NOTHING,
	HF_HEALTH_DO_QUARANTINE,
	HF_HEALTH_DO_REMEDY, /* `action` tells which */
	HF_HEALTH_DO_FAIL,   /* to record that the remedy under way has not helped in time */
	HF_HEALTH_DO_GIVE_UP,
	HF_HEALTH_DO_RELEASE,
	HF_HEALTH_DOINGS
};

/* The reasons for and against a decision, as X(name, text).  Metrics use the part of the text before the colon. */
#define HF_HEALTH_WHYS(X)                                                                                \
	X(WELL, "well: no fault counts against the node")                                                \
	X(EVIDENCE, "evidence: the fault's class asks for it")                                           \
	X(ESCALATED, "escalated: milder remedies have been tried")                                       \
	X(MENDED, "mended: the node's faults have ended")                                                \
	X(PODS,                                                                                          \
	  "pods: a driver's or plugin's pod mends the fault, and a taint would keep the pod away")       \
	X(EXHAUSTED, "exhausted: the policy allows no further remedy")                                   \
	X(LOST, "lost: nothing is heard of the node since a remedy has failed")                          \
	X(TIMED_OUT, "timed-out: the remedy has not helped in time")                                     \
	X(RUNNING, "running: a remedy is under way")                                                     \
	X(OF_ACT, "of-act: a Remediation has quarantined the node; its success, a later one or a "       \
		  "person ends that")                                                                    \
	X(SETTLING, "settling: on probation, or too soon after the last remedy")                         \
	X(EXCLUDED, "excluded: the policy leaves the node out")                                          \
	X(FAILED_STATE, "failed: a person must look at the node")                                        \
	X(SILENT, "silent: the node's agent has not reported")                                           \
	X(UNCONFIRMED, "unconfirmed: the fault is only suspected")                                       \
	X(STALE,                                                                                         \
	  "stale: the evidence is older than this boot, the last quarantine or the breaker's closing")   \
	X(FOREIGN, "foreign: a person or another tool has taken the node out")                           \
	X(PAUSED, "paused: the policy is paused")                                                        \
	X(BREAKER, "breaker: too many nodes failed at once; a person must close it")                     \
	X(REFUSED, "refused: the API server has refused the write; Holdfast tries again")                \
	X(WINDOW, "window: the policy allows it only at other times of the week")                        \
	X(NO_CAPACITY,                                                                                   \
	  "no-capacity: no free node could take the work, and the node may still work")                  \
	X(UNAVAILABLE, "unavailable: too many nodes are out of use")                                     \
	X(RATE, "rate: too many quarantines within the window")                                          \
	X(FLAPS,                                                                                         \
	  "flaps: quarantined three times within the window; the node stays as it is until one is past") \
	X(HELD,                                                                                          \
	  "held: a person holds acts back, by spec.mend.hold or by annotation holdfast.dev/hold")        \
	X(NO_REMEDY,                                                                                     \
	  "no-remedy: an act waits for what is missing or cannot be read, or a person has cancelled "    \
	  "one in this quarantine")                                                                      \
	X(CONCURRENT, "concurrent: too many remedies are under way")                                     \
	X(DOMAIN, "domain: too many nodes of the failure domain are out of use")                         \
	X(JOB, "job: the node's job has been disturbed often enough")                                    \
	X(JOB_RESTARTING, "job-restarting: the node's job restarts anyway")                              \
	X(DEVICE_BUSY, "device-busy: a process uses the device")                                         \
	X(UNDRAINABLE,                                                                                   \
	  "undrainable: pods have devices of the node, and the policy or the class of the fault lets "   \
	  "them end by themselves; an act that a person orders does not wait")

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
	/* The remainder of the policy's limits after these decisions. */
	int32_t unavailable_left, quarantines_left, concurrent_left;
	hf_time wake_at;
};

const char *hf_health_mode_name(enum hf_health_mode mode);
const char *hf_health_answer_name(enum hf_health_answer answer);
const char *hf_health_doing_name(enum hf_health_doing doing);
const char *hf_health_why_text(enum hf_health_why why);

/* Whether the time is in one of the windows; true if there are no windows. */
bool hf_health_in_window(const struct hf_health_window *windows, size_t len, hf_time now);
/* When the next window opens, within 8 days after `now`; HF_TIME_NONE: none does. */
hf_time hf_health_find_opening(const struct hf_health_window *windows, size_t len, hf_time now);

/* Converts a time of a node's clock to the API server's clock.  observed_at: time of the node's newest report, by the
 * node's clock; heard_at: arrival of this report, by the API server's clock.  If one of them is NONE, the result is
 * `at`, or `now` if `at` is later.  A time after the report counts as the arrival of the report.  NONE stays NONE. */
hf_time hf_health_convert_time(hf_time at, hf_time observed_at, hf_time heard_at, hf_time now);

/* The limit as a number of nodes, for `total` nodes; -1: no limit. */
int32_t hf_health_limit_of(const struct hf_health_limit *limit, size_t total);

/* Decides about all nodes.  HF_E_TOO_LARGE: more than HF_HEALTH_NODES_MAX nodes.  The plan lives in the arena. */
int hf_health_fleet_decide(const struct hf_health_fleet *fleet,
			   const struct hf_health_policy *policy, struct hf_arena *arena,
			   struct hf_health_fleet_plan *ret_plan, struct hf_error *err)
	HF_MUST_CHECK;

/* Sets `replaceable` of each node: whether a free node could take the work of a slow node of its kind.  Of each kind `keep`
 * nodes stay free.  Nodes with work get the free nodes in the order of need; a node without work needs none.  A quarantined
 * node keeps its spare until its work has gone.  nodes must be the fleet's.  Returns how many free nodes may be used. */
int32_t hf_health_fleet_spares(const struct hf_health_fleet *fleet,
			       const struct hf_health_policy *policy, int32_t keep,
			       struct hf_health_node *nodes, struct hf_arena *arena);

HF_END_DECLS

#endif
