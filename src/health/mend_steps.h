/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_MEND_STEPS_H
#define HF_HEALTH_MEND_STEPS_H

#include "base/time.h"
#include "health/types.h"

HF_BEGIN_DECLS

/*
 * Decides the next step of one Remediation (api/remediation.h): the next phase, or one thing to do.
 * The controller reads the cluster live, asks, and performs the step; then it asks again. It needs no
 * memory of its own: every answer follows from the object and from what the cluster shows. Pure.
 *
 * Promises:
 *   - A step changes the phase or does one thing, never both; HF_MEND_ACT_HERE alone comes after the
 *     guarded write of its phase.
 *   - The phase Approved, which permits the act, is left before anything that must prevent the act.
 *   - After act.startedAt no step begins an act. The proof alone decides.
 *   - Proof is newer than the act. Nothing is proved by an old report.
 */

enum hf_mend_phase {
	HF_MEND_PENDING, /* also: the operator has not seen the object yet */
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
	HF_MEND_POD_LEAVES, /* has not ended, and is marked for deletion */
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

/* A device as the newest DeviceHealth has it. */
struct hf_mend_seen {
	const char *id, *uuid; /* uuid NULL: none */
	bool out;              /* hf_health_is_out of its state */
	hf_time fault_at;      /* newest acting fault was last seen; NONE: no acting fault */
	const char *fault;     /* its class; NULL: none */
};

/* The facts. All times are of the operator's clock: the caller converts those of the node. */
struct hf_mend_view {
	hf_time now;

	/* The object. */
	enum hf_mend_phase phase;
	enum hf_mend_phase outcome; /* HF_MEND_PENDING: not decided */
	enum hf_mend_rung rung;
	bool dry_run, cancel, deleting;
	const char *boot_id; /* of the fault; NULL: any */
	hf_time fault_at;    /* NONE: no fault, a person asked */
	hf_time deadline;    /* span from the approval to the proof */
	const struct hf_mend_target *targets;
	size_t targets_len;                   /* at most HF_MEND_DEVICES_MAX */
	hf_time approved_at;                  /* NONE: not approved */
	const char *approved_boot_id;         /* NULL: not approved */
	hf_time act_started_at, act_ended_at; /* NONE: not yet */
	const char *act_boot_id;              /* NULL: unknown */
	bool act_failed;                      /* the act has an exit code, and it is not 0 */
	int act_exit;                         /* -1: none, or the tool hung */
	const char *act_message;              /* NULL: none */
	size_t act_holders;                   /* processes that kept the devices open */
	const char *act_holder; /* name and pid of one such process, for the message; NULL: none */
	bool saved;             /* labels, cordon or persistence mode have to be put back */

	/* The policy, by live reads. */
	bool allowed;        /* budgets, breaker, windows, no other open act on the node */
	const char *why_not; /* NULL: unknown */
	hf_time drain_until; /* the pods have to be gone by then; NEVER: no limit */
	hf_time settle;      /* span after the act in which no new fault may come */
	/* End of this node's newest proved act; NONE: no act was proved. */
	hf_time mended_at;

	/* The cluster, by live reads. */
	bool node_exists, node_ready;
	const char *node_boot_id; /* NULL: unknown */
	bool held;                /* annotation holdfast.dev/hold */
	bool quarantined;         /* the taint is on the node */
	const char *other_lock;   /* of kured or NodeMaintenance; NULL: none */
	enum hf_mend_lease lease;
	const char *lease_holder; /* NULL: unknown */
	size_t pods_left;         /* pods, not operands, that hold the devices */
	bool operands_off; /* the labels of the operands are false, or the node has no operands */
	size_t operands_left; /* pods of operands on the node */
	enum hf_mend_pod pod;
	int pod_exit; /* -1: unknown or still running */

	/* The newest DeviceHealth of the node. */
	bool health_exists;
	hf_time observed_at;
	const char *health_boot_id; /* NULL: unknown */
	const struct hf_mend_seen *seen;
	size_t seen_len;
};

enum hf_mend_do {
	HF_MEND_DO_NOTHING,
	HF_MEND_QUARANTINE,   /* put the taint on the node */
	HF_MEND_TAKE_LEASE,   /* holdfast-mend-NODE */
	HF_MEND_OPERANDS_OFF, /* write saved.labels first, then the labels of the Node */
	HF_MEND_MOVE_PODS,    /* ask the job operator, evict the others */
	HF_MEND_CREATE_POD,   /* the actor's */
	HF_MEND_DELETE_POD,
	HF_MEND_ACT_HERE, /* with phase Acting and act.startedAt written: perform the rung once */
	HF_MEND_RESTORE,  /* put back what is saved, then erase saved */
	HF_MEND_RELEASE_LEASE,
	HF_MEND_DOS
};

struct hf_mend_step {
	enum hf_mend_phase next; /* the view's phase: the phase stays */
	/* Written with `next`; HF_MEND_PENDING: erased or not decided. */
	enum hf_mend_phase outcome;
	bool approve; /* write status.approval with `next` */
	/* Erase status.approval and status.act with `next`: nothing was done, and another try needs a
	 * new approval. */
	bool unapprove;
	bool prove; /* write status.proof with `next`; its text is the message */
	enum hf_mend_do act;
	char message[HF_MEND_MESSAGE_MAX]; /* "": the stored message stays */
	hf_time wake_at;                   /* time alone may change the answer then; NEVER: not */
};

void hf_mend_step(const struct hf_mend_view *view, struct hf_mend_step *ret_step);

/* The conditions of the status, one for each step of the work; X(name, text). */
#define HF_MEND_CONDITION_NAMES(X)                                                                 \
	X(QUARANTINED, "Quarantined")                                                              \
	X(LOCKED, "Locked")                                                                        \
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
	const char *reason; /* NULL: the stored condition stays, or there is none */
	bool is_true;
};
/* What the conditions are once the step is written. */
void hf_mend_conditions(const struct hf_mend_view *view, const struct hf_mend_step *step,
			struct hf_mend_condition ret_conditions[HF_MEND_CONDITIONS]);

/* True if a status may change from one phase to the other. A phase may stay as it is. */
bool hf_mend_phase_may_follow(enum hf_mend_phase from, enum hf_mend_phase to);
bool hf_mend_is_final(enum hf_mend_phase phase);
/* The act is performed by the actor's pod, and not by the controller. */
bool hf_mend_has_actor(enum hf_mend_rung rung);

const char *hf_mend_phase_name(enum hf_mend_phase phase); /* "Pending" */
const char *hf_mend_rung_name(enum hf_mend_rung rung);    /* "reset-device" */
const char *hf_mend_do_name(enum hf_mend_do act);         /* "take-lease" */
/* False for an unknown name. "" and NULL are the phase Pending. */
bool hf_mend_phase_of(const char *name, enum hf_mend_phase *ret_phase);
bool hf_mend_rung_of(const char *name, enum hf_mend_rung *ret_rung);

HF_END_DECLS

#endif
