/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_MEND_STEPS_H
#define HF_HEALTH_MEND_STEPS_H

#include "base/time.h"
#include "health/types.h"

HF_BEGIN_DECLS

/*
 * Decides the next step of one Remediation (api/remediation.h): the next phase, or one thing to do.  The controller
 * reads the cluster, asks, and performs the step; then it asks again.  It needs no memory of its own: every answer
 * follows from the object and from what the cluster shows.  Pure.
 *
 * Promises:
 * - A step changes the phase or does one thing, never both; only HF_MEND_ACT_HERE follows the guarded write of its
 *   phase.
 * - The phase Approved permits the act.  The controller leaves it before it does anything that must prevent the act.
 * - After act.startedAt no step begins an act.  Only the proof decides.
 * - Proof is newer than the act.  An old report proves nothing.
 */

enum hf_mend_phase {
	/* the act waits to begin; also the phase of an object that the operator has not seen yet */
	HF_MEND_PENDING,
	HF_MEND_DRAINING,
	HF_MEND_APPROVED,
	HF_MEND_ACTING,
	HF_MEND_VERIFYING,
	HF_MEND_RESTORING,
	HF_MEND_SUCCEEDED,
	HF_MEND_FAILED,
	HF_MEND_CANCELLED,
	HF_MEND_PHASES
};

enum hf_mend_rung {
	HF_MEND_RESTART_PROCESS,
	HF_MEND_RESET_DEVICE,
	HF_MEND_RESTART_PLUGIN,
	HF_MEND_REBOOT,
	HF_MEND_EXTERNAL,
	HF_MEND_PERSON,
	HF_MEND_RUNGS
};

enum hf_mend_lease { HF_MEND_LEASE_FREE, HF_MEND_LEASE_OURS, HF_MEND_LEASE_OTHERS };

/* The actor's pod. */
enum hf_mend_pod {
	HF_MEND_POD_NONE,
	HF_MEND_POD_LIVES,  /* Pending or Running */
	HF_MEND_POD_LEAVES, /* the pod has not ended, and is marked for deletion */
	HF_MEND_POD_ENDED,
};

/* Exit codes of `holdfast mend-node`. */
enum hf_mend_exit {
	HF_MEND_EXIT_DONE = 0,
	HF_MEND_EXIT_FAILED = 1,  /* the act failed */
	HF_MEND_EXIT_REFUSED = 2, /* nothing done, nothing written */
	HF_MEND_EXIT_BUSY = 3,    /* nothing done; status.act.holders names the processes */
};

/* Devices of one act; as HF_REMEDIATION_DEVICES_MAX. */
#define HF_MEND_DEVICES_MAX 16
#define HF_MEND_MESSAGE_MAX 320

struct hf_mend_target {
	const char *id, *uuid; /* id NULL: unknown */
};

/* A device as the newest DeviceHealth shows it. */
struct hf_mend_seen {
	const char *id, *uuid; /* uuid NULL: none */
	bool out;              /* hf_health_is_out is true for the device's state */
	/* a GPU that had a UUID, and of which the agent knows nothing now: it may be gone */
	bool unknown;
	/* when the newest fault that acts was last seen; NONE: no fault acts */
	hf_time fault_at;
	const char *fault; /* class of the newest fault that acts; NULL: no fault acts */
	/* class of a fault that acts and that needs more than a reset; NULL: there is none */
	const char *graver;
};

/* The facts about one Remediation.  All times are of the operator's clock: the caller converts the node's times. */
struct hf_mend_view {
	hf_time now;

	/* The object. */
	enum hf_mend_phase phase;
	enum hf_mend_phase outcome; /* HF_MEND_PENDING: not decided */
	enum hf_mend_rung rung;
	bool dry_run, cancel, deleting;
	const char *boot_id; /* id of the boot in which the fault was seen; NULL: any boot */
	/* when the fault was seen; NONE: a person ordered the act without a fault */
	hf_time fault_at;
	hf_time deadline; /* longest time from the approval to the proof */
	const struct hf_mend_target *targets;
	size_t targets_len;           /* at most HF_MEND_DEVICES_MAX */
	hf_time approved_at;          /* NONE: not approved */
	const char *approved_boot_id; /* NULL: not approved */
	hf_time withdrawn_at;         /* when the last approval was withdrawn; NONE: never */
	const char *withdrawn_why;    /* NULL: unknown */
	hf_time act_started_at, act_ended_at; /* NONE: not yet */
	const char *act_boot_id;              /* NULL: unknown */
	bool act_failed;                      /* the act has an exit code other than 0 */
	/* exit code of the act's tool; -1: no exit code, or the tool hung */
	int act_exit;
	const char *act_message; /* NULL: none */
	/* the act has no actor, and this leader still waits for its answer */
	bool calling;
	size_t act_holders; /* processes that kept the devices open */
	/* name and pid of one process that kept the devices open, for the message; NULL: none */
	const char *act_holder;
	/* the message about processes that have kept the devices open in a former approval; NULL: none */
	const char *kept_open;
	bool saved; /* labels, cordon or persistence mode have to be put back */
	/* the agent or the jobs do not know yet that the act has mended the node; `saved` is true too */
	bool untold;
	/* the object that the act created for another controller exists; `saved` is true too */
	bool external_left;

	/* The policy, by live reads. */
	/* budgets, breaker and windows permit the act, and the node has no other open act */
	bool allowed;
	const char *why_not; /* NULL: unknown */
	hf_time drain_since; /* since when pods are moved, and nothing holds the act back; NONE: not yet */
	hf_time drain_until; /* deadline by which the pods have to be gone; NEVER: no limit */
	hf_time settle;      /* how long after the act no new fault may come */
	/* When the newest proved act on this node ended; NONE: no act was proved. */
	hf_time mended_at;

	/* The cluster, by live reads. */
	bool node_exists, node_ready;
	const char *node_boot_id; /* NULL: unknown */
	bool held;                /* annotation holdfast.dev/hold */
	bool quarantined;         /* the taint is on the node */
	/* the other tool that locks the node, such as "kured" or "NodeMaintenance"; NULL: no such lock */
	const char *other_lock;
	enum hf_mend_lease lease;
	const char *lease_holder; /* NULL: unknown */
	size_t pods_left;         /* number of pods, without operands, that hold the devices */
	/* name of one of these pods, and why its eviction is refused, for the message; NULL: unknown */
	const char *pod_left;
	/* pod that may have been given a device of the act after the agent's newest report; NULL: there is none */
	const char *pod_unreported;
	size_t pods_stay; /* of pods_left: pods that the drain does not evict */
	size_t pods_lost; /* of pods_left: pods without a controller that would create them again */
	/* the labels that enable the operands are false, or the node has no operands */
	bool operands_off;
	size_t operands_left; /* pods of operands on the node */
	enum hf_mend_pod pod;
	int pod_exit; /* exit code of the actor's pod; -1: unknown, or the pod still runs */
	/* why the actor's pod ended, or why it has not started; NULL: unknown */
	const char *pod_why;

	/* The newest DeviceHealth of the node. */
	bool health_exists;
	hf_time observed_at;
	const char *health_boot_id; /* NULL: unknown */
	/* when the driver's library last answered the agent; NONE: unknown */
	hf_time driver_at;
	/* the targets have a driver's library that the agent asks, so driver_at NONE means: no answer yet */
	bool driver_asked;
	/* the DeviceHealth has the request for a report after this act already */
	bool report_asked;
	const struct hf_mend_seen *seen;
	size_t seen_len;
};

enum hf_mend_do {
	HF_MEND_DO_NOTHING,
	HF_MEND_QUARANTINE,   /* put the taint on the node */
	HF_MEND_TAKE_LEASE,   /* take the Lease holdfast-mend-NODE */
	HF_MEND_OPERANDS_OFF, /* do: write saved.labels, then change the labels of the Node */
	/* do: ask the job operator to move the pods of jobs, and evict the other pods */
	HF_MEND_MOVE_PODS,
	/* do: create the pod of the actor, which performs the act on the node */
	HF_MEND_CREATE_POD,
	HF_MEND_DELETE_POD,
	HF_MEND_ACT_HERE, /* do: write phase Acting and act.startedAt, then perform the remedy once */
	HF_MEND_ASK_REPORT, /* ask the agent to look at the devices and to report */
	HF_MEND_RESTORE, /* do: tell what is untold, then put back what is saved, then erase saved */
	HF_MEND_RELEASE_LEASE,
	HF_MEND_DOS
};

struct hf_mend_step {
	enum hf_mend_phase next; /* the view's phase: the phase stays */
	/* The outcome to write together with `next`; HF_MEND_PENDING: erase a stored outcome. */
	enum hf_mend_phase outcome;
	bool approve; /* write status.approval with `next` */
	/* Erase status.approval and status.act when `next` is written: nothing was done, and another try needs a
	 * new approval. */
	bool unapprove;
	/* write status.proof when `next` is written; `message` is the text of the proof */
	bool prove;
	enum hf_mend_do act;
	/* text for status.message; "": the stored message stays */
	char message[HF_MEND_MESSAGE_MAX];
	hf_time wake_at; /* when the answer may change by time alone; NEVER: time changes nothing */
};

void hf_mend_step(const struct hf_mend_view *view, struct hf_mend_step *ret_step);

/* The conditions of the status, one for each part of the work; X(name, text). */
#define HF_MEND_CONDITION_NAMES(X)                                                                 \
	X(QUARANTINED, "Quarantined")                                                              \
	X(LOCKED, "Locked")                                                                        \
	X(PERMITTED, "Permitted")                                                                  \
	X(JOBS_MOVED, "JobsMoved")                                                                 \
	X(HOLDERS_GONE, "HoldersGone")                                                             \
	X(APPROVED, "Approved")                                                                    \
	X(ACTED, "Acted")                                                                          \
	X(PROVEN, "Proven")                                                                        \
	X(RESTORED, "Restored")                                                                    \
	X(RELEASED, "Released")
enum hf_mend_condition_type {
#define X(name, text) HF_MEND_COND_##name,
	HF_MEND_CONDITION_NAMES(X)
#undef X
		HF_MEND_CONDITIONS
};
struct hf_mend_condition {
	const char *type;
	/* reason of the condition; NULL: the step writes no condition, and a stored one stays as it
	 * is */
	const char *reason;
	bool is_true;
};
/* Computes the conditions that belong to the step; the caller writes them with it. */
void hf_mend_conditions(const struct hf_mend_view *view, const struct hf_mend_step *step,
			struct hf_mend_condition ret_conditions[HF_MEND_CONDITIONS]);

/* Whether a status may change from one phase to the other.  A phase may stay as it is. */
bool hf_mend_phase_may_follow(enum hf_mend_phase from, enum hf_mend_phase to);
bool hf_mend_is_final(enum hf_mend_phase phase);
/* Whether an actor's pod performs the remedy; else the controller does. */
bool hf_mend_has_actor(enum hf_mend_rung rung);
/* Whether the remedy ends the work on the node: then the node must be quarantined and empty before. */
bool hf_mend_disturbs_work(enum hf_mend_rung rung);

const char *hf_mend_phase_name(enum hf_mend_phase phase); /* "Pending" */
const char *hf_mend_rung_name(enum hf_mend_rung rung);    /* "reset-device" */
const char *hf_mend_do_name(enum hf_mend_do act);         /* "take-lease" */
/* Finds the phase of a name; "" and NULL are the phase Pending.  False: the name is unknown. */
bool hf_mend_phase_of(const char *name, enum hf_mend_phase *ret_phase);
bool hf_mend_rung_of(const char *name, enum hf_mend_rung *ret_rung);

HF_END_DECLS

#endif
