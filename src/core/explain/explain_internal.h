/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_EXPLAIN_INTERNAL_H
#define HF_CORE_EXPLAIN_INTERNAL_H

#include "core/explain/record_text.h"
#include "core/state/brain_internal.h"

HF_BEGIN_DECLS

/*
 * Texts for people: conditions, events and lines of `holdfast why`.  Input: the working state.
 * Output: notes and conditions.  Nothing here restarts, charges or deletes, and nothing here needs
 * a policy.
 */

/* ---- record_text.c: one record of the ledger ----------------------------------------------------- */

/* record_text.h has the texts that need no working state. */
/* "application budget: 1 of 3 used".  Must not be called while the open incident is pending. */
const char *hf_incident_charge_text(const struct hf_brain *b);
/* " (worker-0 never started: StartError: …)" if a program that never started is the cause of the
 * present incident; else "". */
const char *hf_never_started_text(const struct hf_brain *b);
/* One event for each incident that restarts something: the rank, the cause, the rule, the charge. */
void hf_cause_event(const struct hf_brain *b);

/* ---- why.c --------------------------------------------------------------------------------------- */

/* Add the lines about the last restart, from the ledger's records; before the lines of this
 * step. */
void hf_why_tell_history(const struct hf_brain *b);
/* An event: all ranks run again after the restart of the last record, with its parts and the lost
 * steps if they are known. */
void hf_recovered_event(const struct hf_brain *b);
/* Put the state of the job into one sentence. */
void hf_why_write_summary(const struct hf_brain *b);

/* ---- conditions.c: the state of the job ------------------------------------------------------------ */

/* Set Created, the first condition.  If the condition was missing, count the job as created. */
void hf_cond_created(struct hf_brain *b);
/* Set Running and Restarting of a job that is neither suspended nor finished. */
void hf_cond_active(struct hf_brain *b, const struct hf_judgement *judgement);
/* Set all conditions of Holdfast except Held to False, for a job that is Held. */
void hf_cond_lower_unwatched(struct hf_brain *b);
/* If the caller does not watch nodes (blind), take the stored condition of that type as the
 * blocker. Returns true if the caller is blind. */
bool hf_cond_tell_blind(const struct hf_brain *b, const char *type);

/* ---- what keeps ranks from running ----------------------------------------------------------------- */

/* taken_names.c: report names of ranks that objects of other owners have. */
void hf_taken_names_tell(struct hf_brain *b);
/* call this if the job makes no pods: lowers condition NameTaken */
void hf_taken_names_clear(struct hf_brain *b);
/* trouble.c: report pods that no node takes, and containers that do not start. */
void hf_trouble_tell(struct hf_brain *b);
/* call this if the job is not active: lowers the conditions that hf_trouble_tell sets */
void hf_trouble_clear(struct hf_brain *b);
/* overdue_pods.c: report pods past their grace on a reachable node; Holdfast never forces those. */
void hf_overdue_pods_tell(struct hf_brain *b);
/* node_loss_text.c: report the pods that wait to be given up, by guard.  hf_node_loss_tell_lines
 * writes the explanation only, for a job that is being deleted; hf_node_loss_tell also sets the
 * condition. */
void hf_node_loss_tell_lines(const struct hf_brain *b, const struct hf_guarded guarded[HF_GUARDS]);
void hf_node_loss_tell(struct hf_brain *b, const struct hf_guarded guarded[HF_GUARDS]);

HF_END_DECLS

#endif
