/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_BRAIN_INTERNAL_H
#define HF_CORE_BRAIN_INTERNAL_H

#include "base/strbuf.h"
#include "core/model/framework.h"
#include "core/model/model_internal.h"
#include "core/state/node_loss_internal.h"
#include "core/state/termination_internal.h"

HF_BEGIN_DECLS

/*
 * The working state of one step.
 *
 * A function that takes `const struct hf_brain *` answers a question.  It reads everything and may
 * leave notes (events, lines of explanation, wake-ups, requests for reads); the ledger, the ranks,
 * the conditions and the actions stay as they are.  A function that takes `struct hf_brain *`
 * changes one of those; core/README.md says which file may change what.
 */

/* How far the pod of a rank's present attempt has come. The kind's own container decides: other
 * containers keep a pod alive, and do not make its rank run. */
enum hf_slot_phase {
	HF_SLOT_ABSENT,   /* no pod of the present attempt, or the pod is being deleted */
	HF_SLOT_STARTING, /* the own container has not started, or waits to be started again */
	HF_SLOT_RUNNING,  /* the own container runs, or the kubelet has reported no container */
	HF_SLOT_TRAINED,  /* the own container ended with 0 for good, and the pod has not ended */
	HF_SLOT_BROKEN,   /* the own container failed for good, and another one keeps the pod */
	HF_SLOT_ENDED,    /* the pod has ended, or has no container left that could run */
	HF_SLOT_PHASES,
};

/* A rank: facts from the ledger, facts from the objects, and facts derived from both. */
struct hf_slot {
	/* Seen. */
	const struct hf_pod *pod;              /* the job's pod under the rank's name; NULL: none */
	const struct hf_service_seen *service; /* the job's service; NULL: none */
	const struct hf_pod *last;             /* last seen, before it disappeared; or NULL */
	bool pod_taken;                        /* another owner's pod has the name … */
	const struct hf_pod *pod_holder;       /* … namely this one */
	bool service_taken;
	bool pod_leaving, service_leaving; /* the object that has the name is being deleted */
	/* Remembered: the ledger's texts. */
	bool created;   /* the present attempt's pod was seen once */
	bool succeeded; /* in this generation */
	bool trained;   /* the own container was seen ended with 0 before the pod ended */
	bool covered;   /* a restart by the kubelet within the open incident was counted */
	bool held;      /* the process must be down and wait: the barrier of a restart in place */
	int64_t attempt;
	int64_t in_place;       /* how often this rank restarted alone in its pod … */
	int64_t in_place_since; /* … and the incident of the last such restart; or 0 */
	/* Terminations in the present pod that were counted, see hf_pod_terminations: of the own
	 * container, and of init containers before that. */
	int64_t seen, init_seen;
	/* Derived (generations.c, terminations.c). */
	bool current; /* the pod is of this generation and attempt */
	enum hf_slot_phase phase;
	bool gave_up; /* the added init container waited in vain, before the program began */
	bool moves;   /* a termination of this step speaks against keeping the pod */
	bool fell;    /* the pod ended after the order to restart in place and before the start */
};

/* One replica type with its ranks.  The spec asks for the first `replicas` slots. */
struct hf_role_slots {
	const char *type;  /* "Worker" */
	const char *lower; /* "worker" */
	bool present;      /* the spec has this type */
	bool single;       /* the name of the pod has no index */
	int32_t replicas;
	struct hf_slot *slots;
	int32_t slots_len; /* >= replicas: every index that the ledger or a pod names */
};

/* A rank on a node that may turn out to be the cause of an incident. */
struct hf_suspect {
	int64_t incident; /* the incident that was examined; 0: no incident yet */
	bool found;
	int role;
	int32_t index;
};

/* Facts in an order that is fast to search; each part is made when it is first asked for. Never a
 * decision: with an empty cache every answer is the same. */
struct hf_cache {
	struct hf_node *nodes;            /* by name */
	struct hf_suspect suspect;        /* incident.c */
	const struct hf_sick_seen **sick; /* by name */
	const struct hf_gone_seen **gone; /* by name; those of nodes with a NoExecute taint */
	size_t gone_len;
	struct hf_edits avoided[HF_ROLES_MAX][2]; /* by role, and whether for replacements */
	const char *shared;                       /* see struct hf_edits */
	/* A pod of the role reports its process (in_place.c). */
	bool reports[HF_ROLES_MAX], reports_known[HF_ROLES_MAX];
};

/* What a step tells people and asks of the caller. */
struct hf_notes {
	struct hf_ask *asks;
	size_t asks_len, asks_cap;
	struct hf_plan_event *events;
	size_t events_len, events_cap;
	struct hf_reason *reasons;
	size_t reasons_len;
	const char
		*blocker; /* what keeps a pod until a person or the cluster acts; NULL: nothing */
	hf_time wake_at;
};

struct hf_actions {
	struct hf_action *items;
	size_t len, cap;
};

struct hf_brain {
	/* The input, and what follows from the input alone. */
	const struct hf_job_view *view;
	const struct hf_observed *seen;
	struct hf_job job;
	hf_time now; /* to the microsecond, as in the ledger */
	struct hf_arena *arena;
	size_t nodes_lost;
	struct hf_cache *cache;
	struct hf_notes *notes;

	struct hf_plan *plan; /* the caller's; its status is the working copy, its ledger aside */

	/* The ranks: slots.c, load.c, generations.c, ledger.c. */
	struct hf_ledger ledger; /* the working copy; its texts are written at the end */
	struct hf_role_slots roles[HF_ROLES_MAX];
	int roles_len;
	const struct hf_pod **strays; /* the job's pods that have no rank's name */
	size_t strays_len;
	/* Pods of an older generation than the ledger's, and ranks whose process of an older
	 * generation is not known to be down. */
	int32_t older_pods;
	bool barrier; /* a rank is held */
	struct hf_counts counts[HF_ROLES_MAX];

	/* The terminations of this step: policy/terminations.c, apply.c. */
	struct hf_termination *terminations;
	size_t terminations_len;
	int32_t failed_count[HF_ROLES_MAX]; /* for upstream's "n replica(s) failed" */
	bool settling;                      /* a verdict waits for its cause */
	bool gave_way;       /* a verdict was withdrawn in this step, and its cause remains */
	bool restarting;     /* something was restarted in this step … */
	int restarting_role; /* … in this role first */
	int32_t restarting_count;

	struct hf_condition *conditions;
	size_t conditions_len, conditions_cap;

	/* The actions: action_list.c, actions/. */
	struct hf_actions deletes;
	struct hf_actions extras;
	struct hf_actions creates;
	struct hf_actions asides; /* extra objects that no pod waits for */
	bool extras_wait;         /* no pod is made: an object that it needs cannot be made yet */
	bool gated;               /* nor a service: Volcano has not admitted the job's group */
	const struct hf_extra
		*extra_taken;   /* the first with a name that another owner's object has */
	int32_t extras_staying; /* how many of those objects are not being deleted */
	int32_t creates_pods;   /* roles that begin with this step */
	size_t create_bytes;    /* of the variables of the pods to create */
	struct hf_strbuf scratch;
};

/* ---- slots.c: questions about one rank ---------------------------------------------------------- */

/* The name of a rank's pod and service. */
const char *hf_rank_pod_name(const struct hf_brain *b, int role, int64_t index);
/* Role and index of a pod's name; false: no rank of this job has that name. */
bool hf_rank_find(const struct hf_brain *b, const char *name, int *ret_role, int32_t *ret_index);
/* The name of the kind's own container in pods of the role. */
const char *hf_own_container_name(const struct hf_brain *b, int role);
/* What the kubelet has reported of the own container; NULL: nothing. */
const struct hf_container_seen *hf_own_container(const struct hf_brain *b, int role,
						 const struct hf_pod *pod);
/* The kind has added this init container; the user's template does not have it. */
bool hf_init_wait_is_added(const struct hf_brain *b, int role,
			   const struct hf_container_seen *container);
/* The restartCounts in a pod that concern its rank.  Restarts of other containers do not. */
struct hf_pod_count {
	int64_t own; /* of the kind's own container */
	/* Of init containers, without the one that the kind added.  They concern the rank only
	 * until its own container has begun. */
	int64_t init;
	bool begun; /* the own container has begun */
};
struct hf_pod_count hf_pod_restarts(const struct hf_brain *b, int role, const struct hf_pod *pod);
/* hf_pod_restarts, plus the containers among these that have ended and wait for the kubelet to
 * start them again. */
struct hf_pod_count hf_pod_terminations(const struct hf_brain *b, int role,
					const struct hf_pod *pod);
/* The terminations that the ledger has not counted; 0 if it has counted them all. */
int64_t hf_slot_uncounted(const struct hf_slot *slot, const struct hf_pod_count *terminations);
/* Count all terminations, as a new baseline or without a charge. */
void hf_slot_count_all(struct hf_slot *slot, const struct hf_pod_count *terminations);
/* The rank runs or has trained: the job lacks nothing of it. */
bool hf_slot_is_up(const struct hf_slot *slot);
/* The pod is of the ledger's generation and of the rank's attempt. */
bool hf_slot_is_current(const struct hf_brain *b, const struct hf_slot *slot,
			const struct hf_pod *pod);
/* The rank's pod was made for this very generation and attempt: no restart in place came since. */
bool hf_slot_has_new_pod(const struct hf_brain *b, const struct hf_slot *slot);
/* The report of the rank's process, if it speaks of the container that runs now and of nothing
 * later than the ledger; else NULL. */
const struct hf_process_seen *hf_slot_process(const struct hf_brain *b, int role,
					      const struct hf_slot *slot);
/* The report speaks of the ledger's generation and of the rank's attempt. */
bool hf_slot_is_reached(const struct hf_brain *b, const struct hf_slot *slot,
			const struct hf_process_seen *process);
/* A process of the present generation and attempt has run, as far as is known. */
bool hf_slot_has_run(const struct hf_brain *b, const struct hf_slot *slot);
/* No process of the rank runs, and exec waits for the order to start the present attempt. */
bool hf_slot_is_down(const struct hf_brain *b, int role, const struct hf_slot *slot);
/* The ranks that are held restart together, not each for itself. */
bool hf_barrier_is_of_all(const struct hf_brain *b);
/* When a rank that may start counts as running without a report of its agent. */
hf_time hf_slot_presumed_at(const struct hf_brain *b);
/* The incident after which the rank's present process was started. */
int64_t hf_slot_incident(const struct hf_brain *b, const struct hf_slot *slot,
			 const struct hf_pod *pod);
/* The rank's pod; else the pod of its present attempt as it was before it disappeared; else NULL. */
const struct hf_pod *hf_slot_pod(const struct hf_brain *b, const struct hf_slot *slot);

/* ---- load.c, generations.c: the slots ----------------------------------------------------------- */

/* Fill the slots from the ledger's texts and the objects seen. HF_E_INVALID: the ledger is broken. */
int hf_ranks_load(struct hf_brain *b, struct hf_error *err) HF_MUST_CHECK;
/* Derive which pods are of the present generation and attempt; again after either has moved. */
void hf_ranks_refresh(struct hf_brain *b);

/* ---- ledger.c ----------------------------------------------------------------------------------- */

/* Begin the ledger of a job without a ledger, from the stamps of its pods if any. */
void hf_ledger_begin(struct hf_brain *b);
/* HF_E_INVALID: a number in the ledger makes no sense.  Drops a verdict that is not whole. */
int hf_ledger_check(struct hf_ledger *ledger, struct hf_error *err) HF_MUST_CHECK;
/* Texts into slots, which are as many as hf_ledger_top says; and back. */
int hf_ledger_read(struct hf_brain *b, struct hf_error *err) HF_MUST_CHECK;
void hf_ledger_write(struct hf_brain *b);
/* The highest index in the ledger's texts; -1: no index. */
int hf_ledger_top(const struct hf_role_ledger *role, const char *type, int32_t *ret_top,
		  struct hf_error *err) HF_MUST_CHECK;
/* An upper bound for the bytes of the ledger as JSON: every name and text counted. */
size_t hf_ledger_bytes(const struct hf_ledger *ledger);
/* Set the bits of what is seen: created, succeeded, trained. */
void hf_ledger_note(struct hf_brain *b);
/* A verdict stands and the job has not failed yet. */
bool hf_verdict_pending(const struct hf_brain *b);
void hf_verdict_set(struct hf_brain *b, const char *reason, const char *message);

/* ---- counts.c, phase.c -------------------------------------------------------------------------- */

/* Count the slots.  Suspended: active is every pod that is not terminal. */
void hf_counts_take(struct hf_brain *b);
void hf_counts_write(struct hf_brain *b);
/* Derive the phase of the present generation. */
void hf_phase_step(struct hf_brain *b);
/* If the phase, Running or Restarting have changed, book the time until now: productive (Running)
 * or down (Restarting). */
void hf_phase_book(struct hf_brain *b);

/* ---- nodes.c ------------------------------------------------------------------------------------ */

/* The node that the pod is bound to; NULL: the pod is not bound, or the node was not seen. */
const struct hf_node *hf_node_of(const struct hf_brain *b, const struct hf_pod *pod);
/* That node if it is lost, else NULL; cheap when no node is lost. */
const struct hf_node *hf_node_lost(const struct hf_brain *b, const struct hf_pod *pod);
/* hf_node_lost, if the loss can be the cause of what the pod or its peers do: not a loss from
 * before the pod. */
const struct hf_node *hf_node_blamed(const struct hf_brain *b, const struct hf_pod *pod);
/* The loss of the node explains the pod's own termination: the pod was not asked to end before the
 * loss. */
bool hf_node_explains(const struct hf_brain *b, const struct hf_pod *pod);
/* How long a node must be silent anew after a sign of life, or after a storm of its zone. */
int64_t hf_node_wait_seconds(const struct hf_brain *b);

/* ---- conditions.c: the list --------------------------------------------------------------------- */

/* Load the stored conditions; of two with one type the later. */
void hf_cond_load(struct hf_brain *b, const struct hf_status *stored);
/* The condition of a type, valid until the next hf_cond_set; NULL: no such condition. */
const struct hf_condition *hf_cond_find(const struct hf_brain *b, const char *type);
bool hf_cond_is_true(const struct hf_brain *b, const char *type);
/* Set a condition as upstream does. If status and reason are as before, nothing changes; else the
 * condition moves to the end. The transition time changes with the status only. A condition of
 * Holdfast takes a new message in its place. */
void hf_cond_set(struct hf_brain *b, const char *type, bool status, const char *reason,
		 const char *message);
/* Make a True condition False in its place; reason and message stay as they are when NULL. */
void hf_cond_lower(struct hf_brain *b, const char *type, const char *reason, const char *message);
/* Move the True condition that names the state to the end. */
void hf_cond_arrange(struct hf_brain *b);
/* "PyTorchJob" + suffix */
const char *hf_cond_reason(const struct hf_brain *b, const char *suffix);
/* The type that names the state: "Running", …; "" before there is any. */
const char *hf_cond_state(const struct hf_brain *b);
/* Succeeded or Failed is True. */
bool hf_cond_finished(const struct hf_brain *b);

/* ---- notes.c ------------------------------------------------------------------------------------ */

void hf_event(const struct hf_brain *b, bool warning, const char *reason, const char *message);
void hf_event_pod(const struct hf_brain *b, bool warning, const char *reason, const char *message,
		  const struct hf_pod *pod);
/* Add one line of explanation. */
void hf_say(const struct hf_brain *b, hf_time time, enum hf_topic topic, const char *fmt, ...)
	HF_PRINTF(4, 5);
/* Name what keeps a pod.  The last call in a step becomes the summary of the job. */
void hf_block(const struct hf_brain *b, const char *text);
/* Step again at time `at`, which must be later than now. */
void hf_wake(const struct hf_brain *b, hf_time at);
/* Ask the caller to read an object that is not watched. */
void hf_ask(const struct hf_brain *b, enum hf_ask_kind kind, const char *name);

/* ---- action_list.c ------------------------------------------------------------------------------ */

void hf_action_add(struct hf_brain *b, struct hf_actions *list, const struct hf_action *action);
/* Make the list the plan's next stage, unless it is empty. */
void hf_stage_add(struct hf_brain *b, const struct hf_actions *actions);
/* Delete the pod, unless it is being deleted already. */
void hf_pod_delete(struct hf_brain *b, const struct hf_pod *pod, struct hf_opt_int grace);
/* End the pod's containers and keep the object, with its logs; `why` is one of HF_STOPPED_*. Does
 * nothing for a pod that was stopped before. */
void hf_pod_stop(struct hf_brain *b, const struct hf_pod *pod, const char *why);
void hf_service_delete(struct hf_brain *b, const struct hf_service_seen *service);
/* The labels of a replica, in the arena: HF_REPLICA_LABELS, or one less without the index. */
#define HF_REPLICA_LABELS 4
const struct hf_key_value *hf_replica_labels(const struct hf_brain *b, int role, int32_t index,
					     int *ret_len);

HF_END_DECLS

#endif
