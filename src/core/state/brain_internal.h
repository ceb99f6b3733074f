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
 * leave notes: events, lines of explanation, wake-ups, requests for reads.  The ledger, the ranks,
 * the conditions and the actions stay as they are.  A function that takes `struct hf_brain *`
 * changes one of those; core/README.md says which file may change what.
 */

/* How far the pod of a rank's present attempt has come. The pod's own container (that of the kind's
 * name) decides: another container may keep the pod alive, but does not make its rank run. */
enum hf_slot_phase {
	HF_SLOT_ABSENT,   /* no pod of the present attempt, or the pod is being deleted */
	HF_SLOT_STARTING, /* the own container has not started, or waits to be started again */
	/* the own container runs; or the pod's phase is Running without reported containers */
	HF_SLOT_RUNNING,
	HF_SLOT_TRAINED, /* the own container ended with 0 for good, and the pod has not ended */
	HF_SLOT_BROKEN, /* the own container failed for good, and another container keeps the pod */
	HF_SLOT_ENDED,  /* the pod has ended, or has no container left that could run */
	HF_SLOT_PHASES,
};

/* A rank: facts from the ledger, facts from the objects seen, and facts derived from both. */
struct hf_slot {
	/* Seen in the cluster. */
	const struct hf_pod *pod;              /* the job's pod under the rank's name; NULL: none */
	const struct hf_service_seen *service; /* the job's service; NULL: none */
	const struct hf_pod *last; /* the pod as last seen, before it disappeared; NULL: unknown */
	bool pod_taken;            /* a pod of another owner has the rank's name … */
	const struct hf_pod *pod_holder; /* … namely this one */
	bool service_taken;
	/* the pod or service of another owner is being deleted */
	bool pod_leaving, service_leaving;
	/* Remembered: the ledger's texts. */
	bool created;   /* the pod of the present attempt was seen at least once */
	bool succeeded; /* the rank's pod has succeeded in the present generation */
	bool trained;   /* the own container was seen ended with 0 before the pod ended */
	/* one restart by the kubelet was counted to the open incident: the next one opens another */
	bool covered;
	bool held; /* the rank's process must stay down until barrier.c releases the rank */
	int64_t attempt;
	int64_t in_place; /* how often the rank restarted alone in this pod */
	/* the last incident in which the rank restarted alone in this pod; 0: no such restart */
	int64_t in_place_since;
	/* How many terminations in the present pod were counted (hf_pod_terminations): `seen` of
	 * its own container, `init_seen` of init containers before that container had begun. */
	int64_t seen, init_seen;
	/* Derived (generations.c, terminations.c). */
	bool current; /* the pod belongs to the present generation and attempt */
	enum hf_slot_phase phase;
	bool gave_up; /* the added init container waited in vain, before the program began */
	bool moves;   /* evidence of this step forbids a restart in the same pod */
	bool fell;    /* the pod ended after an order to restart in place, before a process ran */
};

/* One replica type with its ranks.  Slots from `replicas` on are ranks that the spec no longer asks
 * for. */
struct hf_role_slots {
	const char *type;  /* "Worker" */
	const char *lower; /* "worker" */
	bool present;      /* the spec has this type */
	/* the role has at most one rank, and the name of the rank's pod has no index */
	bool single;
	int32_t replicas;
	struct hf_slot *slots;
	/* at least `replicas`; covers each index that the ledger or a pod names */
	int32_t slots_len;
};

/* A rank on a lost node that may be the cause of the open incident: the answer of
 * is_loss_suspected. */
struct hf_suspect {
	int64_t incident; /* the incident that was examined; 0: no incident yet */
	bool found;
	int role;
	int32_t index;
};

/* A cache of sorted lists and answers, each made when it is first asked for. It holds no decision:
 * with an empty cache every answer is the same. */
struct hf_cache {
	struct hf_node *nodes;     /* the nodes that the step sees, sorted by name */
	struct hf_suspect suspect; /* the answer of is_loss_suspected in incident.c */
	/* the nodes with a device out of service, sorted by name */
	const struct hf_sick_seen **sick;
	/* by name: the pods that disappeared from nodes with a NoExecute taint */
	const struct hf_gone_seen **gone;
	size_t gone_len;
	/* edits that keep pods off nodes: [role][0] for first pods, [role][1] for replacements */
	struct hf_edits avoided[HF_ROLES_MAX][2];
	const char *shared; /* see struct hf_edits */
	/* A pod of the role has reported a process under exec; `reports_known`: that was looked
	 * up. */
	bool reports[HF_ROLES_MAX], reports_known[HF_ROLES_MAX];
};

/* What a step reports to people and asks of the caller. */
struct hf_notes {
	struct hf_ask *asks;
	size_t asks_len, asks_cap;
	struct hf_plan_event *events;
	size_t events_len, events_cap;
	struct hf_reason *reasons;
	size_t reasons_len;
	/* what keeps a pod until a person or the cluster acts; NULL: nothing */
	const char *blocker;
	hf_time wake_at;
};

struct hf_actions {
	struct hf_action *items;
	size_t len, cap;
};

struct hf_brain {
	/* The input, and what can be derived from the input alone. */
	const struct hf_job_view *view;
	const struct hf_observed *seen;
	struct hf_job job;
	hf_time now; /* API-server time, cut to microseconds like the times of the ledger */
	struct hf_arena *arena;
	size_t nodes_lost;
	struct hf_cache *cache;
	struct hf_notes *notes;

	/* the caller's plan; plan->status is the working copy of all but the ledger */
	struct hf_plan *plan;

	/* The ranks: slots.c, load.c, generations.c, ledger.c. */
	/* the working copy; its compact texts are written at the end of the step */
	struct hf_ledger ledger;
	struct hf_role_slots roles[HF_ROLES_MAX];
	int roles_len;
	const struct hf_pod **strays; /* the job's pods that have not the name of a rank */
	size_t strays_len;
	/* How many pods belong to an older generation than the ledger's, plus the ranks with a
	 * process of an older generation that is not known to be down. */
	int32_t older_pods;
	bool barrier; /* a rank is held */
	struct hf_counts counts[HF_ROLES_MAX];

	/* The terminations of this step: policy/terminations.c, apply.c. */
	struct hf_termination *terminations;
	size_t terminations_len;
	/* number of failed ranks by role, for upstream's text "n replica(s) failed" */
	int32_t failed_count[HF_ROLES_MAX];
	/* a verdict waits for later evidence, and this evidence may change the verdict */
	bool settling;
	/* a verdict was withdrawn in this step: hf_verdict_reconsider found a better cause, which
	 * the step still acts on */
	bool gave_way;
	/* since when a rank that opened an incident in this step had done no work; NONE: unknown */
	hf_time idle_since;
	bool restarting; /* a rank was restarted in this step */
	/* if `restarting`: the first role in which this step restarted a rank */
	int restarting_role;
	int32_t restarting_count;

	struct hf_condition *conditions;
	size_t conditions_len, conditions_cap;

	/* The actions: action_list.c, actions/. */
	struct hf_actions deletes;
	struct hf_actions extras;
	struct hf_actions creates;
	struct hf_actions asides; /* extra objects that no pod waits for */
	bool extras_wait;         /* no pod is made: an object that it needs cannot be made yet */
	bool gated; /* neither pods nor services are created: Volcano has not admitted the group */
	/* the first wanted object with a name that an object of another owner has */
	const struct hf_extra *extra_taken;
	/* how many objects of other owners with wanted names are not being deleted */
	int32_t extras_staying;
	int32_t creates_pods; /* number of roles that get the first pods in this step */
	size_t create_bytes;  /* bytes of the variables in the pods that this step creates */
	struct hf_strbuf scratch;
};

/* ---- slots.c: questions about one rank ---------------------------------------------------------- */

/* The name of a rank's pod and service. */
const char *hf_rank_pod_name(const struct hf_brain *b, int role, int64_t index);
/* Find role and index of the rank with a pod of that name; false: no rank of this job. */
bool hf_rank_find(const struct hf_brain *b, const char *name, int *ret_role, int32_t *ret_index);
/* The name of the own container in pods of the role: the kind's name, else the first container. */
const char *hf_own_container_name(const struct hf_brain *b, int role);
/* The kubelet's report on the pod's own container; NULL: not reported. */
const struct hf_container_seen *hf_own_container(const struct hf_brain *b, int role,
						 const struct hf_pod *pod);
/* The kind has added this init container to the pod: the user's template does not have it. */
bool hf_init_wait_is_added(const struct hf_brain *b, int role,
			   const struct hf_container_seen *container);
/* How often the kubelet restarted the containers of a pod that concern the pod's rank. */
struct hf_pod_count {
	int64_t own; /* restarts of the rank's own container (hf_own_container_name) */
	/* of init containers, except the one that the kind added; they concern the rank only until
	 * its own container has begun */
	int64_t init;
	bool begun; /* the own container has begun */
};
struct hf_pod_count hf_pod_restarts(const struct hf_brain *b, int role, const struct hf_pod *pod);
/* Like hf_pod_restarts, plus one for each of the containers that has ended and waits for the
 * kubelet's next start. */
struct hf_pod_count hf_pod_terminations(const struct hf_brain *b, int role,
					const struct hf_pod *pod);
/* How many of the rank's terminations the ledger has not counted yet; never negative. */
int64_t hf_slot_uncounted(const struct hf_slot *slot, const struct hf_pod_count *terminations);
/* Set the rank's counts so that all terminations in this pod so far are counted, without a charge. */
void hf_slot_count_all(const struct hf_brain *b, int role, struct hf_slot *slot,
		       const struct hf_pod *pod);
/* The rank runs or has trained, so the job does not wait for it. */
bool hf_slot_is_up(const struct hf_slot *slot);
/* The pod belongs to the ledger's generation and to the rank's attempt. Pods kept by restarts in
 * place belong to them, too. */
bool hf_slot_is_current(const struct hf_brain *b, const struct hf_slot *slot,
			const struct hf_pod *pod);
/* The pod was created for the present generation and attempt, so it was not restarted in place
 * since. */
bool hf_slot_has_new_pod(const struct hf_brain *b, const struct hf_slot *slot);
/* The agent's report on the rank's process. NULL: no report; or the report is about an earlier
 * container, or names a later attempt than the ledger. */
const struct hf_process_seen *hf_slot_process(const struct hf_brain *b, int role,
					      const struct hf_slot *slot);
/* The process in the report is of the ledger's generation and of the rank's attempt. */
bool hf_slot_is_reached(const struct hf_brain *b, const struct hf_slot *slot,
			const struct hf_process_seen *process);
/* A process of the present generation and attempt has run, as far as is known. */
bool hf_slot_has_run(const struct hf_brain *b, int role, const struct hf_slot *slot);
/* No process of the rank runs, and exec waits for the order to start the present attempt. */
bool hf_slot_is_down(const struct hf_brain *b, int role, const struct hf_slot *slot);
/* The held ranks restart together (scope Job), not each for itself. */
bool hf_barrier_is_of_all(const struct hf_brain *b);
/* When a rank that is not held counts as running, even if no agent has reported its process. */
hf_time hf_slot_presumed_at(const struct hf_brain *b);
/* The number of the incident after which the rank's present process was started. */
int64_t hf_slot_incident(const struct hf_brain *b, const struct hf_slot *slot,
			 const struct hf_pod *pod);
/* The rank's pod. If the pod of the present attempt has disappeared: as it was last seen, or
 * NULL. */
const struct hf_pod *hf_slot_pod(const struct hf_brain *b, const struct hf_slot *slot);

/* ---- load.c, generations.c: the slots ----------------------------------------------------------- */

/* Fill the slots from the ledger's texts and the objects seen. HF_E_INVALID: a text of the ledger
 * cannot be read. */
int hf_ranks_load(struct hf_brain *b, struct hf_error *err) HF_MUST_CHECK;
/* Derive which pods belong to the present generation and attempt, and how far they have come. To be
 * called again after the generation or an attempt has changed. */
void hf_ranks_refresh(struct hf_brain *b);

/* ---- ledger.c ----------------------------------------------------------------------------------- */

/* Begin a ledger for a job without a ledger. If the job has pods, the stamps of the pods give the
 * generation. */
void hf_ledger_begin(struct hf_brain *b);
/* HF_E_INVALID: a number in the ledger is out of its range. Drops a verdict that lacks a reason, a
 * message or a time. */
int hf_ledger_check(struct hf_ledger *ledger, struct hf_error *err) HF_MUST_CHECK;
/* hf_ledger_read sets the slots from the ledger's texts; there must be as many slots as
 * hf_ledger_top asks for. hf_ledger_write sets the texts from the slots. */
int hf_ledger_read(struct hf_brain *b, struct hf_error *err) HF_MUST_CHECK;
void hf_ledger_write(struct hf_brain *b);
/* The highest index that the ledger's texts for this replica type name; -1: no index. */
int hf_ledger_top(const struct hf_role_ledger *role, const char *type, int32_t *ret_top,
		  struct hf_error *err) HF_MUST_CHECK;
/* An upper bound for the size of the ledger as JSON, in bytes. */
size_t hf_ledger_bytes(const struct hf_ledger *ledger);
/* Set created, succeeded and trained in the slots, from the pods that were seen. */
void hf_ledger_note(struct hf_brain *b);
/* A verdict stands and the job has not failed yet. */
bool hf_verdict_pending(const struct hf_brain *b);
void hf_verdict_set(struct hf_brain *b, const char *reason, const char *message);

/* ---- counts.c, phase.c -------------------------------------------------------------------------- */

/* Count active, succeeded and failed ranks. For a suspended job, active is every pod that is not
 * terminal. */
void hf_counts_take(struct hf_brain *b);
void hf_counts_write(struct hf_brain *b);
/* Derive the ledger's phase for the present generation. */
void hf_phase_step(struct hf_brain *b);
/* If the phase, Running or Restarting has changed: add the time since the last change to
 * productiveSeconds (it was Running) or to downtimeSeconds (it was Restarting). */
void hf_phase_book(struct hf_brain *b);

/* ---- nodes.c ------------------------------------------------------------------------------------ */

/* The node that the pod is bound to; NULL: the pod is not bound, or the node was not seen. */
const struct hf_node *hf_node_of(const struct hf_brain *b, const struct hf_pod *pod);
/* The node of the pod if that node is lost (hf_node_is_lost), else NULL.  Also NULL if the node is
 * out of service, its kubelet is heard of, and the pod is not being deleted: that pod tolerates the
 * taint and runs on.  Cheap when no node of the job is lost. */
const struct hf_node *hf_node_lost(const struct hf_brain *b, const struct hf_pod *pod);
/* Like hf_node_lost, but NULL if the node was lost before the pod came to it: such a loss explains
 * nothing. */
const struct hf_node *hf_node_blamed(const struct hf_brain *b, const struct hf_pod *pod);
/* The loss of its node explains the termination of the pod: no delete was requested before the
 * loss. */
bool hf_node_explains(const struct hf_brain *b, const struct hf_pod *pod);
/* The record is of a rank that was lost with its node, and no exit code of it is known. endedAt of
 * such a record is the time at which the node became Unknown. */
bool hf_record_is_node_loss(const struct hf_record *record);
/* Seconds for which a node must be silent after a sign of life, or after a storm of its zone. */
int64_t hf_node_wait_seconds(const struct hf_brain *b);

/* ---- conditions.c: the list --------------------------------------------------------------------- */

/* Load the stored conditions. Of two conditions with the same type, the later is kept. */
void hf_cond_load(struct hf_brain *b, const struct hf_status *stored);
/* The condition of a type, valid until the next hf_cond_set; NULL: no such condition. */
const struct hf_condition *hf_cond_find(const struct hf_brain *b, const char *type);
bool hf_cond_is_true(const struct hf_brain *b, const char *type);
/*
 * Set a condition as upstream does.
 *
 * - If status and reason are as before, only a condition of Holdfast changes: it takes a new
 *   message.
 * - Else the condition moves to the end. Its transition time changes only with its status.
 */
void hf_cond_set(struct hf_brain *b, const char *type, bool status, const char *reason,
		 const char *message);
/* Make a True condition False without moving it. NULL: reason and message stay as they are. */
void hf_cond_lower(struct hf_brain *b, const char *type, const char *reason, const char *message);
/* Move the True condition that names the job's state to the end. */
void hf_cond_arrange(struct hf_brain *b);
/* "PyTorchJob" + suffix */
const char *hf_cond_reason(const struct hf_brain *b, const char *suffix);
/* The type of the condition that names the job's state: "Running", …; "" if no condition does. */
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
/* Report what keeps a pod. The text of the last call in a step goes into the job's summary. */
void hf_block(const struct hf_brain *b, const char *text);
/* Step again at time `at`, which must be later than now. */
void hf_wake(const struct hf_brain *b, hf_time at);
/* Ask the caller to read an object that it does not watch. */
void hf_ask(const struct hf_brain *b, enum hf_ask_kind kind, const char *name);

/* ---- action_list.c ------------------------------------------------------------------------------ */

void hf_action_add(struct hf_brain *b, struct hf_actions *list, const struct hf_action *action);
/* Append the list to the plan as its next stage, unless the list is empty. */
void hf_stage_add(struct hf_brain *b, const struct hf_actions *actions);
/* Delete the pod, unless it is being deleted already. grace: not set means the pod's own. */
void hf_pod_delete(struct hf_brain *b, const struct hf_pod *pod, struct hf_opt_int grace);
/* End the pod's containers and keep the pod object with its logs; `why` is one of HF_STOPPED_*.
 * Does nothing for a pod that was stopped before. */
void hf_pod_stop(struct hf_brain *b, const struct hf_pod *pod, const char *why);
void hf_service_delete(struct hf_brain *b, const struct hf_service_seen *service);
/* The labels of a rank's pod and service, in the arena: HF_REPLICA_LABELS of them, or one less if
 * the pod's name has no index. */
#define HF_REPLICA_LABELS 4
const struct hf_key_value *hf_replica_labels(const struct hf_brain *b, int role, int32_t index,
					     int *ret_len);

HF_END_DECLS

#endif
