/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_STATUS_H
#define HF_CORE_STATUS_H

#include "core/model/types.h"

HF_BEGIN_DECLS

/*
 * The status of a job, as it is stored and as the plan wants it.
 *
 * The same structs serve for reading and writing, so that a comparison field by field shows a
 * change.  JSON names stand beside the fields.  A field with its absent value (NULL, HF_TIME_NONE,
 * 0 for a count, "" for a text) is not written.  Times of conditions, startTime and completionTime
 * are metav1.Time (seconds); all times in the ledger are metav1.MicroTime.
 */

struct hf_condition {
	const char *type;        /* "type"; never NULL */
	const char *status;      /* "status": "True", "False", "Unknown" */
	const char *reason;      /* "reason" */
	const char *message;     /* "message" */
	hf_time last_update;     /* "lastUpdateTime" */
	hf_time last_transition; /* "lastTransitionTime" */
	/* The condition's index in the stored list; -1: a new condition.  The writer starts from
	 * the stored element and sets the six fields above, so that members that Holdfast does not
	 * know survive. */
	int stored;
};

/* status.replicaStatuses[<type>] */
struct hf_replica_status {
	bool present;
	int32_t active;       /* "active" */
	int32_t succeeded;    /* "succeeded" */
	int32_t failed;       /* "failed" */
	const char *selector; /* "selector"; NULL for kinds without scale */
};

/* The class of a termination.  If several classes fit, the first in this order is taken; only a lost
 * exit code (infrastructure) is looked for after admission (policy/classify.c). */
enum hf_class {
	HF_CLASS_NONE, /* no termination */
	HF_CLASS_OURS, /* the operator itself ended the pod: the termination is never counted */
	/* charged to the application's budget, but with a name of its own */
	HF_CLASS_OUT_OF_MEMORY,
	HF_CLASS_INFRASTRUCTURE, /* an eviction, a lost node, or a pod that vanished unseen */
	HF_CLASS_DEVICE,
	HF_CLASS_ADMISSION, /* infrastructure: the kubelet refused the pod */
	HF_CLASS_USER,      /* a person deleted the pod or asked for the restart */
	HF_CLASS_APPLICATION,
};
/* "application", "infrastructure", …; "" for NONE */
const char *hf_class_name(enum hf_class cls);
/* The class of that name; HF_CLASS_NONE for an unknown name. */
enum hf_class hf_class_parse(const char *name);
/* True if terminations of this class are charged to the application's budget. */
bool hf_class_is_application(enum hf_class cls);

/* The budget to which an incident is charged. */
enum hf_budget {
	HF_BUDGET_APPLICATION,
	HF_BUDGET_INFRASTRUCTURE,
	HF_BUDGET_DEVICE,
	HF_BUDGETS,                  /* how many there are */
	HF_BUDGET_NONE = HF_BUDGETS, /* decided, and charged to nothing */
	HF_BUDGET_PENDING,           /* not decided yet (settling) */
};
/* One streak for each budget, and one at HF_BUDGET_NONE for deletes and restarts by people. */
#define HF_STREAKS (HF_BUDGETS + 1)
const char *hf_streak_name(int streak); /* "application", …, "user" */
/* Write the restarts in words, for the tables of kubectl and holdfast and for "summary": "0", "1
 * (infrastructure)", "3 (2 application, 1 device)"; "?" for a number out of range. */
#define HF_RESTARTS_TEXT_MAX 96
void hf_restarts_text(const int64_t restarts[HF_BUDGETS], char text[HF_RESTARTS_TEXT_MAX]);
struct hf_ledger;
/* Count the restarts: the charged incidents, without the one that ended the job, because it restarted
 * nothing. */
void hf_ledger_restarts(const struct hf_ledger *ledger, int64_t ret_restarts[HF_BUDGETS]);
/* "application", "infrastructure", "device", "none", "" (pending) */
const char *hf_budget_name(enum hf_budget budget);
enum hf_budget hf_budget_parse(const char *name); /* NULL, "" and unknown: PENDING */

enum hf_phase {
	HF_PHASE_CREATING, /* ranks of this generation are missing or not running yet */
	HF_PHASE_RUNNING,  /* every rank runs or has succeeded */
	HF_PHASE_TEARING,  /* pods of an older generation still exist: no pod is created */
	/* The ledger has counted the suspension or the end of the job.  The conditions may show it
	 * later. */
	HF_PHASE_SUSPENDED,
	HF_PHASE_ENDED,
	HF_PHASES, /* how many there are */
};
const char *hf_phase_name(enum hf_phase phase); /* "Creating", "Running", "Tearing", … */
/* HF_PHASE_CREATING for an unknown name. */
enum hf_phase hf_phase_parse(const char *name);

/* status.recovery.incident */
struct hf_incident {
	int64_t id;             /* "id"; 0: no incident yet */
	hf_time opened_at;      /* "openedAt" */
	enum hf_class cause;    /* "cause" */
	enum hf_budget charged; /* "charged" */
};

/* One restart, or the termination that failed the job: status.recovery.last and .history[]. */
struct hf_record {
	int64_t generation;  /* "generation": the job's generation after the restart */
	int64_t incident;    /* "incident" */
	enum hf_class cause; /* "cause" */
	const char *reason;  /* "reason": the event in one word: NodeLost, Evicted, …; NULL */
	/* "message": the node's own text for that reason; only in the newest record; or NULL */
	const char *message;
	/* "scope": Replica, Job or Container; NULL: nothing restarted, the job ended */
	const char *scope;
	const char *replica;         /* "replica": "worker-1"; NULL: no single rank */
	const char *pod;             /* "pod" */
	const char *node;            /* "node" */
	const char *device;          /* "device" */
	struct hf_opt_int exit_code; /* "exitCode" */
	struct hf_opt_int signal;    /* "signal" */
	/* "rule": name or "#<index>" of the podFailurePolicy rule, or holdfast.dev/restart */
	const char *rule;
	hf_time detected_at; /* "detectedAt" */
	hf_time decided_at;  /* "decidedAt" */
	hf_time running_at;  /* "runningAt": when the last rank ran again */
	bool in_place;       /* "inPlace": processes restarted in their pods */
	/* "endedAt": the process ended, or the pod if seen late, by the node's clock; NodeLost: the node
	 * became Unknown, by the control plane's clock */
	hf_time ended_at;
	hf_time down_at;    /* "downAt": no old process ran any more, and the ranks may start */
	int64_t step;       /* "step": the last step before the restart; 0: unknown */
	int64_t saved_step; /* "savedStep": the last step that was saved; 0: unknown */
	hf_time stepped_at; /* "steppedAt": a rank had done a step after the restart */
};

/*
 * status.recovery.replicas[<type>]: compact texts that only core parses and writes.
 *
 * Ranges: "0-999,1003".  Sparse maps of index:value: "17:2,40:1".  Ascending, without blanks; NULL
 * or "": empty.
 */
struct hf_role_ledger {
	const char *attempts;  /* "attempts": index:attempt, 0 left out */
	const char *created;   /* "created": ranks with a pod seen in the present attempt */
	const char *succeeded; /* "succeeded" in this generation */
	/* Sparse maps of terminations in the present pod that were counted, without zeros.
	 * "seen": of the own container; "initSeen": of init containers before the own container
	 * had begun. */
	const char *seen, *init_seen;
	/* "trained": own container of the present attempt ended with 0, the pod not */
	const char *trained;
	/* "covered": ranks with a counted restart by the kubelet in the open incident */
	const char *covered;
	/* "hold": ranks that keep the process down, because not all ranks may start yet */
	const char *hold;
	/* "inPlace": index:how often the rank restarted alone in its present pod, 0 left out; and
	 * "inPlaceSince": index:incident of the last such restart */
	const char *in_place, *in_place_since;
};

/* Why the job has failed, or will fail unless later evidence withdraws the verdict. */
struct hf_verdict {
	const char *reason;  /* "reason": BackoffLimitExceeded, ExitCode, …; NULL: no verdict */
	const char *message; /* "message": the Failed condition's */
	hf_time at;          /* "at": when the termination was seen */
};

/* status.recovery */
#define HF_LEDGER_SCHEMA 1
struct hf_ledger {
	bool present;
	/* In a plan: the stored ledger is newer or unreadable, and must stay byte for byte. */
	bool kept;
	/* The ledger's annotation cannot be read. */
	bool broken;
	int64_t schema;              /* "schema" */
	int64_t generation;          /* "generation" */
	enum hf_phase phase;         /* "phase" */
	hf_time since;               /* "since": when phase, Running or Restarting last changed */
	struct hf_incident incident; /* "incident" (absent while id is 0) */
	hf_time not_before;          /* "notBefore": no pod is created earlier */
	/* "activeSeconds": how long the job was active before its last suspension */
	int64_t active_seconds;
	/* "restarts": how many incidents each budget was charged, {"application", "infrastructure",
	 * "device"}; also written in words as "summary" */
	int64_t restarts[HF_BUDGETS];
	/* "streak": restarts in a row, from which the delay follows, by budget; the last entry,
	 * "user", counts deletes and restarts by people */
	int64_t streak[HF_STREAKS];
	/* "replicas": by replica type, in the kind's order */
	struct hf_role_ledger roles[HF_ROLES_MAX];
	/* the newest record first: [0] is "last", the others are "history" */
	struct hf_record records[HF_RECORDS_MAX];
	size_t records_len;
	int64_t downtime_seconds;   /* "downtimeSeconds" */
	int64_t productive_seconds; /* "productiveSeconds" */
	/* "restartHandled": the value of the restart annotation that was last acted on */
	const char *restart_handled;
	struct hf_verdict verdict; /* "verdict" */
	/* Restarts in place.  "inPlaceBase": pods with this generation or a later one count as
	 * present; 0: only pods of the present generation.  "inPlaceIncident": the incident of the
	 * last restart of all ranks in place. */
	int64_t in_place_base;
	int64_t in_place_incident;
	hf_time in_place_at; /* "inPlaceAt": when the last restart in place was ordered */
	/* What agents need of the configuration, once a rank of the job reports an exec.
	 * "inPlaceWaitSeconds": an exec waits so long for an order after its program's end; 0: no
	 * restart in place.  "inPlaceGraceSeconds": from SIGTERM to SIGKILL, 0: that of the pod.
	 * "inPlaceSaveSeconds": for a save before a planned restart. */
	int64_t in_place_wait_seconds, in_place_grace_seconds, in_place_save_seconds;
	/* "saveUntil": a planned end was decided.  Agents ask ranks to save before they stop them, and
	 * no pod with a rank that may still save is deleted earlier. */
	hf_time save_until;
	/* "step", "savedStep": the last step that any rank has done and has saved, as noted at
	 * "stepsAt"; 0: unknown.  "saveMillis": how long the slowest rank saved, when it was last
	 * asked; 0: unknown. */
	int64_t step, saved_step, save_ms;
	hf_time steps_at;
	int64_t in_place_streak;    /* "inPlaceStreak": such restarts in a row without a new step */
	int64_t best_step;          /* "bestStep": the highest step of any rank at a restart */
	int64_t no_progress_streak; /* "noProgressStreak": restarts in a row without a new best step */
};

struct hf_status {
	const struct hf_condition *conditions; /* "conditions" */
	size_t conditions_len;
	struct hf_replica_status replicas[HF_ROLES_MAX]; /* "replicaStatuses", the kind's order */
	hf_time start_time;                              /* "startTime" */
	hf_time completion_time;                         /* "completionTime" */
	/* "lastReconcileTime": Holdfast writes back the stored value and never sets one */
	hf_time last_reconcile_time;
	struct hf_ledger ledger; /* "recovery" */
};

/* Compute how long a restart took: from the first sign of its fault until every rank ran again.  If
 * the job was resumed after the fault, the span begins with the resume.  False: the restart is not
 * over, or the job was suspended after it. */
bool hf_status_recovered(const struct hf_status *status, const struct hf_record *record,
			 hf_time *ret_span);

/* The duration of every part of a restart; NONE: unknown. */
struct hf_record_parts {
	hf_time detect;     /* from the end of the process until the operator saw it */
	hf_time decide;     /* ... until it decided */
	hf_time down;       /* ... until no old process ran and the delay was over: in place */
	hf_time start;      /* ... until all ranks ran */
	hf_time first_step; /* ... until a step was seen, by reports */
	/* all parts but first_step: from the first known of these times until all ranks ran */
	hf_time total;
};
struct hf_record_parts hf_record_parts(const struct hf_record *record);
/* The steps since the last save; -1: unknown. */
int64_t hf_record_lost_steps(const struct hf_record *record);
/* True: by the status `now` the ranks run again after the newest record's fault, and by the status
 * `before` they did not. */
bool hf_status_ends_recovery(const struct hf_status *before, const struct hf_status *now);
/* True: by `now` a step was seen after the newest record's restart, and by `before` there was none. */
bool hf_status_shows_first_step(const struct hf_status *before, const struct hf_status *now);
/* Whether all ranks run now, and whether a job that had begun waits for ranks that restart. */
bool hf_status_is_productive(const struct hf_status *status);
bool hf_status_is_down(const struct hf_status *status);
/* The seconds in which a job was productive, and in which it was down: the ledger's, and the present span. */
int64_t hf_status_productive_seconds(const struct hf_status *status, hf_time now);
int64_t hf_status_downtime_seconds(const struct hf_status *status, hf_time now);
/* The times that ETTR is made of, to keep without the status. */
struct hf_training_times {
	hf_time start, end;         /* NONE: not begun, not ended */
	hf_time running_since;      /* NONE: not all ranks run now */
	hf_time active, productive; /* spans in the ledger; productive < 0: there is no ledger */
};
struct hf_training_times hf_status_training_times(const struct hf_status *status);
/* The permille of the active time in which all ranks ran (ETTR).  False: the job has not run yet. */
bool hf_training_ettr(const struct hf_training_times *times, hf_time now, int64_t *ret_permille);
bool hf_status_ettr(const struct hf_status *status, hf_time now, int64_t *ret_permille);
/* How often a job that fails now and then should save, by Young's rule: the interval that loses
 * least is sqrt(2 × time of a save × mean time between incidents). */
struct hf_checkpoint_advice {
	int64_t seconds;
	int64_t save_ms, incidents, between_seconds; /* what the interval is made of */
};
/* False: no save was measured, or there were fewer than two incidents. */
bool hf_status_advise(const struct hf_status *status, hf_time now,
		      struct hf_checkpoint_advice *ret_advice);

/* Returns the condition with this type, or NULL if the status has none. */
const struct hf_condition *hf_status_condition(const struct hf_status *status, const char *type);
bool hf_status_is_true(const struct hf_status *status, const char *type);
/* Succeeded or Failed is True. */
bool hf_status_is_finished(const struct hf_status *status);

/* Condition types.  Those with the prefix holdfast.dev/ are Holdfast's own.  Messages name objects
 * and numbers that are true now.  They hold no time and no figure that moves by itself, because
 * each change of a message is a write. */
#define HF_COND_PREFIX "holdfast.dev/"
#define HF_COND_CREATED "Created"
#define HF_COND_RUNNING "Running"
#define HF_COND_RESTARTING "Restarting"
#define HF_COND_SUSPENDED "Suspended"
#define HF_COND_SUCCEEDED "Succeeded"
#define HF_COND_FAILED "Failed"
#define HF_COND_HELD                                                                               \
	"holdfast.dev/Held" /* Holdfast does nothing for this job; reason and message say why */
/* Pods of the job are on a lost node; the message says what must happen before they are given
 * up. */
#define HF_COND_NODE_UNREACHABLE "holdfast.dev/NodeUnreachable"
/* A pod on a reachable node has not ended although its grace is over. */
#define HF_COND_POD_STUCK "holdfast.dev/PodStuckTerminating"
/* No node takes a pod of the job, because nodes with failed devices are excluded. */
#define HF_COND_POD_UNPLACED "holdfast.dev/PodUnschedulable"
/* A slow rank: in every step the rank works longer than its peers. */
#define HF_COND_STRAGGLER "holdfast.dev/Straggler"
/* The program of a rank has ended with 0, and another container keeps the rank's pod. */
#define HF_COND_SIDECAR "holdfast.dev/HeldBySidecar"
/* The kubelet cannot start a container of a rank. */
#define HF_COND_NOT_STARTED "holdfast.dev/ContainerNotStarted"
/* The job has ended, and pods of it still run. */
#define HF_COND_STILL_RUN "holdfast.dev/PodsStillRun"
#define HF_COND_NAME_TAKEN                                                                         \
	"holdfast.dev/NameTaken" /* another owner's object has the name of a rank */

/* A condition on a pod: its node was lost, and Holdfast has given up the pod. */
#define HF_POD_COND_NODE_LOST "holdfast.dev/NodeLost"

HF_END_DECLS

#endif
