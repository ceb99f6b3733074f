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

/* The lost node is taken as the cause of a fault.  It is gone, out of service, or has been silent
 * for as long as it takes to give pods up; or the pod's own fence has ended the pod.  Guards of the
 * job (its volumes, forceDelete) do not matter here.  Call it only for a node that hf_node_is_lost
 * or hf_node_lost calls lost: that node may be merely Unknown and be heard of again, and then it
 * does not count. */
bool hf_node_counts_as_lost(const struct hf_brain *b, const struct hf_node *node,
			    const struct hf_pod *pod);
/* For a node that is lost now: as far as is known, it was silent at that time.  No sign of life
 * came more than 10 s later, and the control plane called the node Unknown within 60 s. */
bool hf_node_was_silent(const struct hf_node *node, hf_time at);
/* What is known of the death of the pod's node, by the job's forceDelete mode.  Ignores the pod's
 * own deadline and toleration. */
struct hf_evidence hf_node_evidence(const struct hf_brain *b, const struct hf_node *node,
				    const struct hf_pod *pod);
/* hf_node_evidence, limited by the pod's own toleration; or by its deadline, if it is
 * terminating. */
struct hf_evidence hf_node_loss_evidence(const struct hf_brain *b, const struct hf_node *node,
					 const struct hf_pod *pod);
/* The pod's node is lost, the pod is neither terminal nor terminating, and no guard holds it back. */
bool hf_node_loss_gives_up(const struct hf_brain *b, const struct hf_pod *pod);
/* Find a rank that was started before the incident opened, on a node that is lost and was silent at
 * that time, and return it as a termination. The loss may be the cause of what happened then. */
bool hf_node_loss_suspect(const struct hf_brain *b, int64_t incident, hf_time at,
			  struct hf_termination *ret_termination);
/* Like hf_node_loss_suspect, but only for a node that counts as lost by now: then the loss is the
 * cause of the incident, not only a suspect. */
bool hf_node_loss_cause(const struct hf_brain *b, int64_t incident, hf_time at,
			struct hf_termination *ret_termination);
/* The termination may be the cause of what happened at that time. False only for a lost node that
 * was heard of later. */
bool hf_node_loss_precedes(const struct hf_brain *b, const struct hf_termination *termination,
			   hf_time at);
/* Writes actions and the condition NodeUnreachable: fail and delete the terminating pods that are
 * to be given up. Must run after every other policy that deletes pods. */
void hf_lost_pods_step(struct hf_brain *b);
/* Fail and delete the terminating pods that are to be given up, of a job that is being deleted.
 * Unlike hf_lost_pods_step, sets no condition. */
void hf_lost_pods_force(struct hf_brain *b);

/* ---- devices.c, init_wait.c, progress.c: other causes ---------------------------------------------- */

/* The device that best explains the termination of the pod; NULL: none. at: when the pod ended, by
 * its node's clock; NONE: not known. */
const struct hf_device_seen *hf_device_find_cause(const struct hf_pod *pod, hf_time at);
/* Like hf_device_find_cause, among devices of the classes that the rule names. */
const struct hf_device_seen *hf_device_match(const struct hf_rule *rule, const struct hf_pod *pod,
					     hf_time at);
/* a is better evidence than b: fatal first, then the agent's report, then by name. */
bool hf_device_is_better(const struct hf_device_seen *a, const struct hf_device_seen *b);
/* The running pod must be restarted, because a device that it holds cannot be worked with. */
bool hf_device_ends_pod(const struct hf_brain *b, const struct hf_pod *pod);
/* The added init container that failed before the program began, while not all ranks that it waits
 * for ran; NULL: none. */
const struct hf_container_seen *hf_init_wait_gave_up(const struct hf_brain *b,
						     const struct hf_termination *termination);
/* Writes slots and the delay: replace the pods with an init container that waited in vain. */
void hf_init_wait_restart(struct hf_brain *b);
/* Report the pods that wait in the init container of the job kind. */
void hf_init_wait_tell(const struct hf_brain *b);
/* The job hangs. Returns as a termination the rank that has stood still for longest. */
bool hf_progress_find_hang(const struct hf_brain *b, struct hf_termination *ret_termination);
/* If no rank advances: since when, but not before all ranks ran; NONE: a rank advances. */
hf_time hf_progress_idle_since(const struct hf_brain *b);
/* Writes the condition Straggler; reports a progress deadline that is running. */
void hf_progress_tell(struct hf_brain *b);
void hf_progress_clear(struct hf_brain *b);

/* ---- classify.c, rules.c, restart_policy.c: from a fact to a decision ------------------------------ */

/* Fill in the class of the termination, and whether the class rests on evidence. */
void hf_classify(const struct hf_brain *b, struct hf_termination *termination);
/* What was seen, in one word for the record: "NodeLost", "OOMKilled", …; NULL: the exit code says
 * it all. */
const char *hf_termination_reason(const struct hf_termination *termination);
/* The index of the first rule of podFailurePolicy that matches, or -1. Fills in what the rule
 * matched. */
int hf_rules_match(const struct hf_brain *b, struct hf_termination *termination);
/* Fill in fate, scope, budget and verdict, as if the termination opened an incident. */
void hf_restart_policy_decide(const struct hf_brain *b, struct hf_termination *termination);
/* The restartPolicy that the pods of the replica type get. */
enum hf_restart_policy hf_restart_policy_of_pods(const struct hf_brain *b,
						 const struct hf_role *role);
/* The budget that is charged if this termination is the cause of an incident. */
enum hf_budget hf_termination_budget(const struct hf_termination *termination);
/* The termination is a better cause than an application's: it rests on evidence of infrastructure
 * or a device. */
bool hf_termination_outranks(const struct hf_termination *termination);
/* True if a rule of the job with action Ignore matches the termination. */
bool hf_termination_is_ignored(const struct hf_termination *termination);

/* ---- terminations.c: writes the list of terminations ------------------------------------------------ */

/* Collect every termination of a present attempt that has not been counted, with class, rule and
 * policy. The order does not depend on the input's: by finish time, then role and index. Of two
 * terminations in one second, the one with fate RESTART comes first. */
void hf_terminations_collect(struct hf_brain *b);
/* Describe the end of a rank's process that exec has reported: class and evidence, no rule and no policy. */
void hf_termination_of_process(const struct hf_brain *b, int role, int32_t index,
			       const struct hf_process_seen *process,
			       struct hf_termination *ret_termination);
/* Send upstream's event that a pod exited with a code. To be called when the termination is
 * counted. */
void hf_termination_event(const struct hf_brain *b, const struct hf_termination *termination);

/* ---- incident.c, late_evidence.c: write the ledger's incident and records ---------------------------- */

bool hf_incident_is_open(const struct hf_brain *b);
/* The time of the open incident, to compare with the loss of a node: when the operator saw the
 * incident, or earlier if the operator saw it late. */
hf_time hf_incident_time(const struct hf_brain *b);
/* The termination belongs to the open incident: its attempt had started before the incident
 * opened. */
bool hf_incident_covers(const struct hf_brain *b, const struct hf_termination *termination);
/* The same fault has taken another rank before, and charges nothing more: its device had failed before the open incident; or it
 * leaves a node that was charged. A drain that a PodDisruptionBudget holds up, and a kubelet that shuts its node down, end the
 * ranks of a node one after the other. */
bool hf_incident_is_same_fault(const struct hf_brain *b, const struct hf_termination *termination);
/* Open a new incident with its record. budget PENDING: no decision yet, nothing is charged.
 * termination: NULL for a restart that a person asked for. */
void hf_incident_open(struct hf_brain *b, const struct hf_termination *termination,
		      enum hf_class cause, enum hf_budget budget);
/* Add a record for the termination. The record holds no decision yet. */
void hf_incident_record(struct hf_brain *b, const struct hf_termination *termination);
/* Add a record to the open incident, if its record was erased with the ledger. */
void hf_incident_ensure_record(struct hf_brain *b, const struct hf_termination *termination);
/* Adopt the termination as the cause of the open incident, if the incident has an application's
 * cause, which the termination outranks.  The charge moves from the application's budget to the
 * termination's.  False: that budget is used up. */
bool hf_incident_adopt(struct hf_brain *b, const struct hf_termination *termination);
/* Make this termination the cause of the open incident, in the ledger and in the incident's record
 * (status.recovery.last), if there is one. */
void hf_incident_set_cause(struct hf_brain *b, const struct hf_termination *termination);
/*
 * The number of the incident that a new pod of that rank is stamped with.
 *
 * Usually the open incident, so that the pod's next termination is a new incident. While the rank
 * of a lost node does not run again, its peers get the number before: a peer that starts without
 * that rank terminates of the same fault.
 */
int64_t hf_incident_stamp(const struct hf_brain *b, int role, int32_t index);
/* If the open incident has an application's cause, take a lost node as its cause. */
void hf_late_node_adopt(struct hf_brain *b);
/* Until all ranks run again, take a failed device as the cause of an incident that has an
 * application's cause. */
void hf_late_device_adopt(struct hf_brain *b);
/* Until all ranks run again, name in the record the rank whose process ended first, if that end is reported after the
 * end of another rank's process. */
void hf_late_end_adopt(struct hf_brain *b);

/* ---- budget.c: writes the ledger's charges ------------------------------------------------------------ */

/* True if the limit of this budget allows one more charge. */
bool hf_budget_allows(const struct hf_brain *b, enum hf_budget budget);
/* Charge the open incident. */
void hf_budget_charge(struct hf_brain *b, enum hf_budget budget);
const char *hf_budget_verdict(enum hf_budget budget); /* "BackoffLimitExceeded", … */
/* The budget to which that verdict belongs; HF_BUDGET_NONE: the verdict is not one of a budget. */
enum hf_budget hf_budget_of_verdict(const char *verdict);
const char *hf_budget_message(const struct hf_brain *b, enum hf_budget budget);

/* ---- verdict.c, settle.c, deadline.c: write the ledger's verdict ---------------------------------------- */

/* The verdict takes effect at once: no later evidence can change it. */
bool hf_verdict_is_final(const struct hf_brain *b);
/* Set the verdict that the job fails because of this termination. Opens an incident, unless the
 * open one covers the termination. */
void hf_verdict_of_termination(struct hf_brain *b, const struct hf_termination *termination);
/* Withdraw a pending verdict, if a cause that outranks it was seen. */
void hf_verdict_reconsider(struct hf_brain *b);
/* True: a verdict stands and waits for nothing more, so the job fails. False: no verdict, or it
 * waits; then reports for what. */
bool hf_verdict_settle(struct hf_brain *b);
/* The latest time until which a verdict that was reached at `since` may wait for news of nodes. */
hf_time hf_settle_latest(const struct hf_brain *b, hf_time since);
/* Tells what a verdict still waits for, and until when. */
struct hf_settling {
	bool done;
	hf_time until;      /* when the wait is over at the latest */
	const char *silent; /* the first node, by name, that was not heard of since the verdict */
};
struct hf_settling hf_settle_look(const struct hf_brain *b, hf_time since);
/* Active time in seconds: since startTime, plus the time before earlier suspensions. */
int64_t hf_active_seconds(const struct hf_brain *b);
/* True if the job's activeDeadlineSeconds have passed. Else sets the wake-up for that time. */
bool hf_deadline_has_passed(const struct hf_brain *b);

/* ---- delay.c: writes the ledger's streaks and notBefore -------------------------------------------------- */

/* How long the n-th restart of a streak waits. */
hf_time hf_delay_compute(const struct hf_recovery *recovery, enum hf_budget budget, int64_t n,
			 const char *uid, bool kueue);
/* Lengthen the streak of the budget and set notBefore. Must run before the restart is recorded. */
void hf_delay_next(struct hf_brain *b, enum hf_budget budget);
/* Set notBefore for pods that waited in vain. The delay is a tenth of the time for which ranks have
 * been missing, if the awaited ranks are missing `still`, else 5 s. Lengthens no streak. */
void hf_delay_waited(struct hf_brain *b, bool still);
/* Begin the streaks anew, if the job has run for long enough since its last restart. */
void hf_delay_reset(struct hf_brain *b);

/* ---- restart.c, gang_restart.c, restart_request.c: write slots and generation ------------------------------ */

/* Begin the next attempt of one rank, in a new pod. */
void hf_restart_replica(struct hf_brain *b, int role, int32_t index);
/* Begin the next attempt of one rank, in its present pod if possible. Returns whether the pod
 * stays. */
bool hf_restart_replica_any(struct hf_brain *b, int role, int32_t index);
/* Begin the next generation of all ranks, in new pods. */
void hf_gang_restart(struct hf_brain *b);
/* Begin the next generation of all ranks, in the present pods if possible. Returns whether pods
 * stay. The incident's record must have its scope already, as for hf_restart_replica_any. */
bool hf_gang_restart_any(struct hf_brain *b);
/* Forget the ranks beyond the replicas. */
void hf_restart_retire_ranks(struct hf_brain *b);
/* Report and count a restart that was decided. To be called once for each incident. */
void hf_restart_tell(struct hf_brain *b, enum hf_class cause);
/* If the ledger has grown too large, empty it by starting a new generation of all ranks. */
void hf_restart_when_too_large(struct hf_brain *b);
/* The value of the restart annotation, cut as the ledger keeps it; NULL or empty: no annotation. */
const char *hf_restart_request_key(const struct hf_brain *b);
/* Act on the annotation holdfast.dev/restart, once for each value. */
void hf_restart_request_step(struct hf_brain *b);

/* ---- in_place.c, barrier.c: restarts in the pods ------------------------------------------------------------ */

/* What happens to the pod of a rank in a restart in place. */
enum hf_in_place {
	HF_IN_PLACE_STAYS,   /* the pod stays, and exec in it starts the next process */
	HF_IN_PLACE_MOVES,   /* it is re-created */
	HF_IN_PLACE_REFUSED, /* the program runs outside of exec, so nothing can restart in place */
};
/* The job was edited since the pod was made. */
bool hf_pod_is_outdated(const struct hf_brain *b, const struct hf_pod *pod);
enum hf_in_place hf_in_place_rank(const struct hf_brain *b, int role, int32_t index);
/* The agent of the pod's node is heard of, and the node is not lost. */
bool hf_agent_is_heard(const struct hf_brain *b, const struct hf_pod *pod);
/* terminationGracePeriodSeconds of the role's pods. */
int64_t hf_template_grace_seconds(const struct hf_brain *b, int role);
/* Writes the resolved settings of restarts in place into the ledger, for the agents. */
void hf_in_place_tell_agents(struct hf_brain *b);
/* hf_in_place_allows_all: all ranks together can restart in place now. hf_in_place_allows_rank:
 * this rank alone can. */
bool hf_in_place_allows_all(const struct hf_brain *b);
const char *hf_in_place_refusal(const struct hf_brain *b);
bool hf_in_place_allows_rank(const struct hf_brain *b, int role, int32_t index);
/* Writes the ledger's streak: restarts in place in a row that no person asked for. A restart in new
 * pods ends the streak. */
void hf_in_place_count(struct hf_brain *b, bool in_place);
/* The time by which the process of a held rank must be down, or its new pod must have reported that
 * it waits. */
hf_time hf_in_place_deadline(const struct hf_brain *b, int role, const struct hf_slot *slot);
/* Writes slots and the newest record: re-create the pods of ranks that are not down in time or
 * whose pods ended.  Release the ranks of a restart of all together, when each of them waits;
 * release a rank that restarts alone as soon as it is down itself. */
void hf_barrier_step(struct hf_brain *b);
/* Writes slots: hold each rank with an old pod that is to be deleted, until the pod is gone. */
void hf_barrier_hold_old(struct hf_brain *b);
void hf_barrier_release_gone(struct hf_brain *b);
/* Tells what the barrier waits for. */
void hf_barrier_tell(const struct hf_brain *b);
/* ---- steps.c: writes the ledger's and the record's steps ---------------------------------------------------- */

/* Takes what ranks report into the ledger. */
void hf_steps_keep(struct hf_brain *b);
/* The same for a job that has ended: its last steps. */
void hf_steps_finish(struct hf_brain *b);
/* Call this when held ranks may start. After a stop of all ranks the record gets the last steps of the stopped
 * processes. */
void hf_steps_take_last(struct hf_brain *b);
/* hf_steps_note writes the ledger's steps and streaks when an incident restarts ranks.
 * hf_steps_allow returns false if noProgressLimit forbids the restart; then the caller sets a
 * verdict. */
void hf_steps_note(struct hf_brain *b);
bool hf_steps_allow(const struct hf_brain *b, enum hf_class cls);
const char *hf_steps_message(const struct hf_brain *b);

/* ---- save.c: writes the ledger's saveUntil ------------------------------------------------------------------ */

/* A planned end: ask the ranks to save, unless they were asked.  Before the slots are changed. */
void hf_job_save_request(struct hf_brain *b);
/* Returns the ledger's saveUntil. NONE: no save is requested, or saveUntil is later than a request
 * made now would allow. */
hf_time hf_job_save_until(const struct hf_brain *b);
/* The rank's process may still save, so its pod is not deleted yet; sets the wake-up. */
bool hf_job_save_is_awaited(const struct hf_brain *b, int role, const struct hf_slot *slot);
/* Tells which ranks are waited for. */
void hf_job_save_tell(const struct hf_brain *b);
/* Ends the request when no rank has to stop any more.  After all other policies. */
void hf_job_save_finish(struct hf_brain *b);

/* ---- suspend.c, sidecar.c --------------------------------------------------------------------------------- */

/* The job is to be suspended; or the ledger has a suspension that the status does not show yet. */
bool hf_suspend_is_due(const struct hf_brain *b);
void hf_suspend_step(struct hf_brain *b);
void hf_resume(struct hf_brain *b);
/* Writes slots: count a rank as succeeded if its own container ended with 0, and then the grace of
 * the other containers is over, or the pod failed, was deleted or was lost. Must run before the
 * counts are taken. */
void hf_sidecar_release(struct hf_brain *b);
/* Writes actions and the condition HeldBySidecar: stop the pods of released ranks, and report the
 * ranks that wait for another container. */
void hf_sidecar_step(struct hf_brain *b);
/* The rank's program has succeeded, and the grace of its other containers is over. If it is not
 * over, sets the wake-up. */
bool hf_sidecar_is_over(const struct hf_brain *b, int role, const struct hf_slot *slot);
/* lower the condition HeldBySidecar, because the job is not active */
void hf_sidecar_clear(struct hf_brain *b);

/* ---- where and when a new pod may start: avoided_nodes.c, unschedulable.c, name_reuse.c --------------------- */

/* Keep a pod of the role away from nodes where the job had failures and, if the pod replaces
 * another, from nodes where a device is out of service. */
void hf_avoid_nodes(const struct hf_brain *b, int role, bool replaces, struct hf_edits *edits);
/* A replacement must not run on the node of this name now; the name has len bytes. */
bool hf_avoid_is_must(const struct hf_brain *b, int role, const char *name, size_t len);
/* Writes slots and the condition PodUnschedulable, for pods that no node takes because nodes are
 * excluded. */
void hf_unschedulable_step(struct hf_brain *b);
void hf_unschedulable_clear(struct hf_brain *b);
/* Pod names that stay unused for a while after a pod was removed from a tainted node. */
struct hf_empty_names {
	int32_t count;
	const char *first;
	hf_time until; /* when the first of these names may be used again */
};
/* The rank's name must stay unused now. If so, counts it in `empty`. */
bool hf_name_reuse_waits(const struct hf_brain *b, int role, int32_t index,
			 struct hf_empty_names *empty);
void hf_name_reuse_tell(const struct hf_brain *b, const struct hf_empty_names *empty);

HF_END_DECLS

#endif
