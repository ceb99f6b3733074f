/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_POLICY_INTERNAL_H
#define HF_CORE_POLICY_INTERNAL_H

#include "core/explain/explain_internal.h"
#include "core/state/brain_internal.h"

HF_BEGIN_DECLS

/*
 * The policies, in the order in which a termination passes them.  A policy that takes a const view
 * answers a question;
 * the others write the part of the state that their section names.
 */

/* ---- lost nodes: node_evidence.c, node_loss.c, node_loss_cause.c, lost_pods.c ---------------------- */

/* The node is gone, out of service, or has been silent for as long as it takes to give pods up,
 * also if another guard holds back this pod (its volumes, the job's forceDelete). A node that is
 * merely Unknown may be heard of again: it does not count as lost. */
bool hf_node_counts_as_lost(const struct hf_brain *b, const struct hf_node *node,
			    const struct hf_pod *pod);
/* A node that is lost now was silent by then, as far as is known: there was no sign of life after
 * that time, and the control plane called the node Unknown soon after. */
bool hf_node_was_silent(const struct hf_node *node, hf_time at);
/* What is known of the death of the pod's node, by the job's forceDelete mode. The pod's own
 * deadline and its toleration are not looked at. */
struct hf_evidence hf_node_evidence(const struct hf_brain *b, const struct hf_node *node,
				    const struct hf_pod *pod);
/* hf_node_evidence, and then the pod's toleration, or its deadline if it is terminating. */
struct hf_evidence hf_node_loss_evidence(const struct hf_brain *b, const struct hf_node *node,
					 const struct hf_pod *pod);
/* The pod's node is lost, the pod is neither terminal nor terminating, and no guard holds it back. */
bool hf_node_loss_gives_up(const struct hf_brain *b, const struct hf_pod *pod);
/* Find a rank that was started before the incident opened, on a node that is lost and was silent
 * at that time; as a termination. The loss may be the cause of what happened then. */
bool hf_node_loss_suspect(const struct hf_brain *b, int64_t incident, hf_time at,
			  struct hf_termination *ret_termination);
/* hf_node_loss_suspect for a node that counts as lost: the loss is the cause. */
bool hf_node_loss_cause(const struct hf_brain *b, int64_t incident, hf_time at,
			struct hf_termination *ret_termination);
/* The termination may be the cause of what happened at that time: its node was not heard of later. */
bool hf_node_loss_precedes(const struct hf_brain *b, const struct hf_termination *termination,
			   hf_time at);
/* Writes actions and the condition NodeUnreachable: fail and delete the terminating pods that are
 * to be given up. Runs after every other policy that deletes. */
void hf_lost_pods_step(struct hf_brain *b);
/* The same for a job that is being deleted: no condition. */
void hf_lost_pods_force(struct hf_brain *b);

/* ---- devices.c, init_wait.c, progress.c: other causes ---------------------------------------------- */

/* The device that best explains the termination of the pod; NULL: none. at: when the pod ended, by
 * its node's clock; NONE: not known. */
const struct hf_device_seen *hf_device_find_cause(const struct hf_pod *pod, hf_time at);
/* The same among the device classes that a rule names. */
const struct hf_device_seen *hf_device_match(const struct hf_rule *rule, const struct hf_pod *pod,
					     hf_time at);
/* a is better evidence than b: fatal first, then the agent's report, then by name. */
bool hf_device_is_better(const struct hf_device_seen *a, const struct hf_device_seen *b);
/* The running pod must be restarted, because a device that it holds cannot be worked with. */
bool hf_device_ends_pod(const struct hf_brain *b, const struct hf_pod *pod);
/* The added init container that ended in vain before the program began, while not all ranks that
 * it waits for ran; or NULL. */
const struct hf_container_seen *hf_init_wait_gave_up(const struct hf_brain *b,
						     const struct hf_termination *termination);
/* Writes slots and the delay: make the pods anew that waited in vain. */
void hf_init_wait_restart(struct hf_brain *b);
/* Tell people that pods wait in their init container. */
void hf_init_wait_tell(const struct hf_brain *b);
/* The job hangs; as the termination of the rank that has stood still for longest. */
bool hf_progress_find_hang(const struct hf_brain *b, struct hf_termination *ret_termination);
/* Writes the condition Straggler; tells a deadline that is running. */
void hf_progress_tell(struct hf_brain *b);
void hf_progress_clear(struct hf_brain *b);

/* ---- classify.c, rules.c, restart_policy.c: from a fact to a decision ------------------------------ */

/* Fill in the class of the termination and its evidence. */
void hf_classify(const struct hf_brain *b, struct hf_termination *termination);
/* What was seen, in one word for the record; NULL: the exit code says it all. */
const char *hf_termination_reason(const struct hf_termination *termination);
/* The index of the first rule that matches, or -1; fills in what the rule matched. */
int hf_rules_match(const struct hf_brain *b, struct hf_termination *termination);
/* Fill in fate, scope, budget and verdict, as if the termination opened an incident. */
void hf_restart_policy_decide(const struct hf_brain *b, struct hf_termination *termination);
/* The restart policy of the pods of a replica type. */
enum hf_restart_policy hf_restart_policy_of_pods(const struct hf_brain *b,
						 const struct hf_role *role);
/* The budget that an incident with this cause is charged to. */
enum hf_budget hf_termination_budget(const struct hf_termination *termination);
/* The cause outranks an application's: it rests on evidence of infrastructure or a device. */
bool hf_termination_outranks(const struct hf_termination *termination);
/* A rule with action Ignore matches it. */
bool hf_termination_is_ignored(const struct hf_termination *termination);

/* ---- terminations.c: writes the list of terminations ------------------------------------------------ */

/* Collect every termination of a present attempt that has not been counted, with class, rule and
 * policy. The order does not depend on the input's: by finish time, then role and index. Of two in
 * one second, the one with fate RESTART comes first. */
void hf_terminations_collect(struct hf_brain *b);
/* Upstream's event that a pod exited with a code; when the termination is counted. */
void hf_termination_event(const struct hf_brain *b, const struct hf_termination *termination);

/* ---- incident.c, late_evidence.c: write the ledger's incident and records ---------------------------- */

bool hf_incident_is_open(const struct hf_brain *b);
/* When the incident began, to compare it with the loss of a node: when the operator saw it, or
 * earlier if it saw it late. */
hf_time hf_incident_time(const struct hf_brain *b);
/* The termination belongs to the open incident: its attempt had started before that opened. */
bool hf_incident_covers(const struct hf_brain *b, const struct hf_termination *termination);
/* Open a new incident with its record. budget PENDING: not decided, nothing is charged yet.
 * termination: NULL for a restart that a person asked for. */
void hf_incident_open(struct hf_brain *b, const struct hf_termination *termination,
		      enum hf_class cause, enum hf_budget budget);
/* Add a record for the termination, without a decision. */
void hf_incident_record(struct hf_brain *b, const struct hf_termination *termination);
/* Add a record to the open incident if the record was erased with the ledger. */
void hf_incident_ensure_record(struct hf_brain *b, const struct hf_termination *termination);
/* The whole incident takes the cause of a termination that outranks it: a charge moves from the
 * application's budget. False: the new budget does not allow it. */
bool hf_incident_adopt(struct hf_brain *b, const struct hf_termination *termination);
/* Make the termination the cause of the open incident and of its record. */
void hf_incident_set_cause(struct hf_brain *b, const struct hf_termination *termination);
/* The incident that a pod of that rank is stamped with. Usually the open one, so that the pod's
 * next termination is a new incident. While the rank of a lost node does not run again, the one
 * before: a peer that starts without that rank ends of the same fault. */
int64_t hf_incident_stamp(const struct hf_brain *b, int role, int32_t index);
/* While the open incident is being mended, it takes a lost node as its cause. */
void hf_late_node_adopt(struct hf_brain *b);
/* While the open incident is being mended, it takes a failed device as its cause. */
void hf_late_device_adopt(struct hf_brain *b);

/* ---- budget.c: writes the ledger's charges ------------------------------------------------------------ */

/* One more unit stays within the limit. */
bool hf_budget_allows(const struct hf_brain *b, enum hf_budget budget);
/* Charge the open incident. */
void hf_budget_charge(struct hf_brain *b, enum hf_budget budget);
const char *hf_budget_verdict(enum hf_budget budget); /* "BackoffLimitExceeded", … */
/* The budget with that verdict; HF_BUDGET_NONE: not a verdict of a budget. */
enum hf_budget hf_budget_of_verdict(const char *verdict);
const char *hf_budget_message(const struct hf_brain *b, enum hf_budget budget);

/* ---- verdict.c, settle.c, deadline.c: write the ledger's verdict ---------------------------------------- */

/* The verdict takes effect at once: no later evidence can change it. */
bool hf_verdict_is_final(const struct hf_brain *b);
/* The job is to fail because of this termination; opens an incident unless one covers it. */
void hf_verdict_of_termination(struct hf_brain *b, const struct hf_termination *termination);
/* A pending verdict gives way to a cause that outranks it. */
void hf_verdict_reconsider(struct hf_brain *b);
/* True: a verdict stands and nothing is awaited any more, so the job fails. Else tells what is
 * awaited. */
bool hf_verdict_settle(struct hf_brain *b);
/* The latest time to which a verdict of time `since` may wait for news of nodes. */
hf_time hf_settle_latest(const struct hf_brain *b, hf_time since);
/* What a verdict still waits for. */
struct hf_settling {
	bool done;
	hf_time until;      /* when to look again at the latest */
	const char *silent; /* the first node by name that was not heard of */
};
struct hf_settling hf_settle_look(const struct hf_brain *b, hf_time since);
/* Active time: from the start until now, and what earlier runs had. */
int64_t hf_active_seconds(const struct hf_brain *b);
/* activeDeadlineSeconds has passed; else sets the wake-up. */
bool hf_deadline_has_passed(const struct hf_brain *b);

/* ---- delay.c: writes the ledger's streaks and notBefore -------------------------------------------------- */

/* How long the n-th restart of a streak waits. */
hf_time hf_delay_compute(const struct hf_recovery *recovery, enum hf_budget budget, int64_t n,
			 const char *uid, bool kueue);
/* Lengthen the streak and set notBefore; before the restart is recorded. */
void hf_delay_next(struct hf_brain *b, enum hf_budget budget);
/* Pods that waited in vain are made anew after a tenth of the time for which ranks have been
 * missing, if the ranks that they wait for still are. No streak: the first failure behind it does
 * not wait. */
void hf_delay_waited(struct hf_brain *b, bool still);
/* Begin the streaks anew for a job that has run for long enough. */
void hf_delay_reset(struct hf_brain *b);

/* ---- restart.c, gang_restart.c, restart_request.c: write slots and generation ------------------------------ */

/* Begin the next attempt of one rank, in a new pod. */
void hf_restart_replica(struct hf_brain *b, int role, int32_t index);
/* Begin the next attempt of one rank: in its pod if that is possible, which is the answer. */
bool hf_restart_replica_any(struct hf_brain *b, int role, int32_t index);
/* Begin the next generation of all ranks, in new pods. */
void hf_gang_restart(struct hf_brain *b);
/* Begin the next generation of all ranks: in place if that is possible, which is the answer.  The
 * record of the incident has its scope already, as for hf_restart_replica_any. */
bool hf_gang_restart_any(struct hf_brain *b);
/* Forget the ranks beyond the replicas. */
void hf_restart_retire_ranks(struct hf_brain *b);
/* Tell and count a restart that is decided, once for its incident. */
void hf_restart_tell(struct hf_brain *b, enum hf_class cause);
/* A ledger that has grown too large is emptied by a new generation. */
void hf_restart_when_too_large(struct hf_brain *b);
/* The restart annotation as the ledger keeps it; NULL or empty: none. */
const char *hf_restart_request_key(const struct hf_brain *b);
/* Act on the restart annotation, once per value. */
void hf_restart_request_step(struct hf_brain *b);

/* ---- in_place.c, barrier.c: restarts in the pods ------------------------------------------------------------ */

/* What becomes of the pod of a rank in a restart in place. */
enum hf_in_place {
	HF_IN_PLACE_STAYS,   /* exec in it starts the next process */
	HF_IN_PLACE_MOVES,   /* it is re-created */
	HF_IN_PLACE_REFUSED, /* its program runs outside of exec: nothing restarts in place */
};
enum hf_in_place hf_in_place_rank(const struct hf_brain *b, int role, int32_t index);
/* Writes the resolved configuration into the ledger, for the agents. */
void hf_in_place_tell_agents(struct hf_brain *b);
/* All ranks, or this rank alone, can restart in place now. */
bool hf_in_place_allows_all(const struct hf_brain *b);
bool hf_in_place_allows_rank(const struct hf_brain *b, int role, int32_t index);
/* Writes the ledger's streak: restarts that no person asked for. */
void hf_in_place_count(struct hf_brain *b, bool in_place);
/* By when the process of a held rank must be down, or its new pod must have reported. */
hf_time hf_in_place_deadline(const struct hf_brain *b, int role, const struct hf_slot *slot);
/* Writes slots and the last record: re-create what does not answer, then let all held ranks start. */
void hf_barrier_step(struct hf_brain *b);
/* Writes slots: hold ranks with a pod that is to go, until that is gone. */
void hf_barrier_hold_old(struct hf_brain *b);
void hf_barrier_release_gone(struct hf_brain *b);
/* Tells what the barrier waits for. */
void hf_barrier_tell(const struct hf_brain *b);
/* Writes the ledger's steps and streaks when an incident restarts ranks.  False: noProgressLimit
 * ends the job, and a verdict is set. */
void hf_steps_note(struct hf_brain *b);
bool hf_steps_allow(const struct hf_brain *b, enum hf_class cls);
const char *hf_steps_message(const struct hf_brain *b);

/* ---- suspend.c, sidecar.c --------------------------------------------------------------------------------- */

/* The job is to be suspended, or the ledger has a suspension that the status does not say yet. */
bool hf_suspend_is_due(const struct hf_brain *b);
void hf_suspend_step(struct hf_brain *b);
void hf_resume(struct hf_brain *b);
/* Writes slots: ranks with an own container that ended with 0 count as succeeded when the grace of
 * their other containers is over, or when their pod failed, was deleted or was lost after that.
 * Before the counts are taken. */
void hf_sidecar_release(struct hf_brain *b);
/* Writes actions and the condition HeldBySidecar: stop the pods of released ranks, tell the ranks
 * that wait. */
void hf_sidecar_step(struct hf_brain *b);
/* The rank's program has succeeded and its other containers have had their time. Else sets the
 * wake-up. */
bool hf_sidecar_is_over(const struct hf_brain *b, int role, const struct hf_slot *slot);
void hf_sidecar_clear(struct hf_brain *b); /* the job is not active: the condition is lowered */

/* ---- where and when a new pod may start: avoided_nodes.c, unschedulable.c, name_reuse.c --------------------- */

/* Keep a pod of the role off the nodes where the job had failures and, if it replaces another pod,
 * off those where a device is out of service. */
void hf_avoid_nodes(const struct hf_brain *b, int role, bool replaces, struct hf_edits *edits);
/* A replacement must not go to the node of this name now; the name has len bytes. */
bool hf_avoid_is_must(const struct hf_brain *b, int role, const char *name, size_t len);
/* Writes slots and the condition PodUnschedulable: pods that no node takes because of avoided
 * nodes. */
void hf_unschedulable_step(struct hf_brain *b);
void hf_unschedulable_clear(struct hf_brain *b);
/* Names that stay empty for a while after their pod was removed from a tainted node. */
struct hf_empty_names {
	int32_t count;
	const char *first;
	hf_time until; /* when the first of them may be used again */
};
/* The rank's name must stay empty now; counts it. */
bool hf_name_reuse_waits(const struct hf_brain *b, int role, int32_t index,
			 struct hf_empty_names *empty);
void hf_name_reuse_tell(const struct hf_brain *b, const struct hf_empty_names *empty);

HF_END_DECLS

#endif
