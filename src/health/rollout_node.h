/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_ROLLOUT_NODE_H
#define HF_HEALTH_ROLLOUT_NODE_H

#include "base/time.h"
#include "health/rollout_pace.h"

HF_BEGIN_DECLS

/*
 * Decides the next step of a DeviceRollout on one node: the next phase, or one thing to do.  The controller reads the
 * cluster, asks, performs the step, and asks again.  It needs no memory of its own: every answer follows from the
 * object and from what the cluster shows.  Pure.
 *
 * Promises:
 * - A step changes the phase or does one thing, never both.
 * - Before phase Changing nothing of the change is done.  Once the change has begun, only the proof or its deadline
 *   ends the work.
 * - A node is changed only while it is locked, cordoned and empty (unless nodes are not emptied), and while nothing
 *   holds it.
 * - Only a cordon with the rollout's own annotation is taken off.
 * - Proof is newer than the change.
 * - A canary runs only on a locked, cordoned and empty node, and at most one at a time.  Its job is deleted before the
 *   work on the node goes on.
 */

enum hf_rollout_phase {
	HF_ROLLOUT_WAITING,  /* the Lease of the node is not taken yet */
	HF_ROLLOUT_LOCKED,   /* the Lease is taken */
	HF_ROLLOUT_CORDONED, /* the node takes no new pods */
	HF_ROLLOUT_EMPTYING, /* what the node shows is recorded; pods that request a device leave */
	HF_ROLLOUT_BASELINE, /* a canary runs before the change, because none is known of this node */
	HF_ROLLOUT_CHANGING,  /* the change is made, once */
	HF_ROLLOUT_PROVING,   /* the change is made; the proof is awaited */
	HF_ROLLOUT_CANARY,    /* the node is well; a canary runs */
	HF_ROLLOUT_RESTORING, /* cordon, condition and Lease are put back */
	/* The phases from here on are ends. */
	HF_ROLLOUT_DONE,
	HF_ROLLOUT_FAILED, /* no proof; the cordon stays until a rollback, a cancel or a deletion */
	HF_ROLLOUT_ROLLED_BACK, /* the change was taken back, with a proof */
	HF_ROLLOUT_SKIPPED,     /* nothing was changed */
	HF_ROLLOUT_PHASES
};

enum hf_rollout_lease { HF_ROLLOUT_LEASE_FREE, HF_ROLLOUT_LEASE_OURS, HF_ROLLOUT_LEASE_OTHERS };

enum hf_rollout_empty {
	HF_ROLLOUT_EMPTY_SAVE,  /* pods are evicted; gangs save first */
	HF_ROLLOUT_EMPTY_WAIT,  /* pods end by themselves */
	HF_ROLLOUT_EMPTY_NEVER, /* the change happens beside running pods */
};

#define HF_ROLLOUT_STEP_MESSAGE_MAX 320

/* A resource of the node, before the change and now, in thousandths. */
struct hf_rollout_resource {
	const char *name;
	int64_t before_milli, now_milli;
};

/* What the node shows after the change. */
struct hf_rollout_proof {
	/* DaemonSet: the node's pod has the wanted revision.  Label: the node has the wanted value */
	bool changed;
	/* changed; or marked, and the old pod of the DaemonSet is leaving or gone: the change cannot be stopped */
	bool begun;
	bool pod_ready; /* the pod is Ready; true for a label */
	/* when the change was complete: the pod became Ready, or the label was written; NONE: unknown */
	hf_time complete_at;
	bool node_ready;
	const char *boot_id; /* of the Node; NULL: unknown */
	/* The newest DeviceHealth.  health_wanted: the node had one before, or the proof names a driver version */
	bool health_exists, health_wanted;
	hf_time observed_at; /* by the operator's clock; NONE: unknown */
	const char *health_boot_id;
	bool report_asked; /* the DeviceHealth has the request for a report after this change */
	/* A device that is out of use, or that has a fault which began after the change: its name and class. NULL: none */
	const char *sick, *sick_class;
	/* UUID of a GPU of which the agent knows nothing: it may be gone, or its driver does not answer. NULL: none */
	const char *unknown;
	const char *driver_version, *driver_wanted; /* NULL: unknown; NULL: any */
	const struct hf_rollout_resource *resources;
	size_t resources_len;
	/* Until then the node may still offer devices that the DRA driver of before the change has published. 0: it does not. */
	hf_time fresh_at;
};

enum hf_rollout_job {
	HF_ROLLOUT_JOB_NONE,
	HF_ROLLOUT_JOB_OTHERS, /* a job of this name exists, and is not of this rollout */
	HF_ROLLOUT_JOB_RUNS,
	HF_ROLLOUT_JOB_SUCCEEDED,
	HF_ROLLOUT_JOB_FAILED
};

/* The canary of the node: the one before the change, or from phase Proving on the one after it. */
struct hf_rollout_canary {
	bool wanted;            /* the spec has a canary */
	int32_t slower_percent; /* how much slower it may be than before; -1: times are not compared */
	hf_time within;         /* from the begin of the phase to its success */
	const char *job;        /* "namespace/name" */
	enum hf_rollout_job state;
	bool leaving; /* the job is being deleted */
	hf_time took; /* from the job's creation to its end; 0: unknown */
	/* FAILED: the job's message; NONE: why the job could not be created; NULL: unknown */
	const char *why;
	struct hf_rollout_pace seen;          /* what the job shows now */
	struct hf_rollout_pace before, after; /* of the entry */
	bool kept;                            /* the Node has the record of these times */
};

struct hf_rollout_node_view {
	hf_time now;
	/* Since when the cluster has been read without a long gap. The time before does not count against the change: nothing
	 * was done or seen then. */
	hf_time seen_since;

	/* The entry of status.nodes. */
	enum hf_rollout_phase phase, outcome; /* outcome is valid in phase Restoring */
	hf_time since, changed_at;            /* changed_at NONE: not changed */

	/* The rollout.  stops: no further node is changed: halted or cancelled; ends: cordons of failed nodes are taken
	 * off too: cancelled, deleted */
	bool stops, ends;
	const char *stop_why;
	/* Why the spec cannot be read, so that nothing can be said about a change that has begun; NULL: it can, or `ends` */
	const char *no_spec;
	bool backwards; /* the change is taken back */
	/* backwards: the node had failed when it was to be taken back */
	bool had_failed;
	enum hf_rollout_empty empty;
	hf_time empty_for, prove_within;

	/* The cluster, by live reads. */
	bool node_exists, cordoned;
	/* Annotation holdfast.dev/rollout names this rollout. It stays if a person takes the cordon off. */
	bool own_cordon;
	bool marked;         /* the node has the rollout's mark of this change */
	hf_time marked_at;   /* marked: when the mark was written */
	bool in_maintenance; /* the Node's condition MaintenanceInProgress names this rollout */
	const char *
		held; /* what holds the node back: an annotation, a limit, a window; NULL: nothing */
	bool on_hold;           /* by annotation holdfast.dev/hold */
	const char *other_lock; /* the tool that is at work on the node; NULL: none */
	enum hf_rollout_lease lease;
	const char *lease_holder;
	size_t pods_left;     /* pods that request a device */
	const char *left_pod; /* the first of them, "namespace/name"; NULL: none */
	/* a pod among them that may not be moved, and why; NULL: all may */
	const char *stuck_pod, *stuck_why;
	struct hf_rollout_proof proof;
	struct hf_rollout_canary canary;
};

enum hf_rollout_do {
	HF_ROLLOUT_DO_NOTHING,
	HF_ROLLOUT_TAKE_LEASE,
	HF_ROLLOUT_CORDON,        /* with the rollout's annotation */
	HF_ROLLOUT_SET_CONDITION, /* MaintenanceInProgress True */
	HF_ROLLOUT_EVICT,         /* one pod */
	HF_ROLLOUT_MARK,          /* write the mark on the Node */
	HF_ROLLOUT_CHANGE,        /* delete the DaemonSet's pod, or write the label */
	HF_ROLLOUT_ASK_REPORT,    /* ask the agent to look at the devices */
	HF_ROLLOUT_CREATE_CANARY,
	HF_ROLLOUT_DELETE_CANARY,
	HF_ROLLOUT_KEEP_PACE,       /* write the times of the canaries on the Node */
	HF_ROLLOUT_UNCORDON,        /* and remove the annotation */
	HF_ROLLOUT_CLEAR_CONDITION, /* MaintenanceInProgress False */
	HF_ROLLOUT_RELEASE_LEASE,
	HF_ROLLOUT_DOS
};

struct hf_rollout_node_step {
	enum hf_rollout_phase next;    /* the view's phase: the phase stays */
	enum hf_rollout_phase outcome; /* with next Restoring: the phase that follows */
	bool gives_up;                 /* with outcome Skipped: the node is not tried again */
	enum hf_rollout_do act;
	bool takes_pace;    /* the entry takes `pace`: before the change, or after it */
	bool canary_failed; /* the canary has failed, or was slower */
	struct hf_rollout_pace pace;
	char message[HF_ROLLOUT_STEP_MESSAGE_MAX]; /* "": the stored message stays */
	hf_time wake_at; /* when time alone may change the answer; NEVER: it does not */
};

void hf_rollout_node_step(const struct hf_rollout_node_view *view,
			  struct hf_rollout_node_step *ret_step);

/* Whether the entry of a node may change from one phase to the other.  A phase may stay as it is. */
bool hf_rollout_phase_may_follow(enum hf_rollout_phase from, enum hf_rollout_phase to);
/* Whether the phase is an end. */
bool hf_rollout_phase_is_end(enum hf_rollout_phase phase);
const char *hf_rollout_phase_name(enum hf_rollout_phase phase); /* "Waiting" */
const char *hf_rollout_do_name(enum hf_rollout_do act);         /* "take-lease" */
bool hf_rollout_phase_of(const char *name, enum hf_rollout_phase *ret_phase);

HF_END_DECLS

#endif
