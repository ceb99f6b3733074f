/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/explain/explain_internal.h"

#include "base/str.h"

/*
 * The conditions that name the state of a job: Created, Running, Restarting, and which True
 * condition comes last.
 * Input: the counts, the phase and what the kind's table makes of them.  Output: the list of
 * conditions, events.
 */

void hf_cond_lower_unwatched(struct hf_brain *b)
{
	for (size_t i = 0; i < b->conditions_len; i++) {
		const char *type = b->conditions[i].type;

		if (hf_str_has_prefix(type, HF_COND_PREFIX) && !hf_streq(type, HF_COND_HELD))
			hf_cond_lower(b, type, "JobHeld",
				      "The operator does not update this condition while "
				      "condition " HF_COND_HELD " is True.");
	}
}

void hf_cond_created(struct hf_brain *b)
{
	if (hf_cond_find(b, HF_COND_CREATED))
		return;
	hf_cond_set(b, HF_COND_CREATED, true, hf_cond_reason(b, "Created"),
		    hf_arena_printf(b->arena, "%s %s is created.", b->job.framework->kind,
				    b->view->name));
	b->plan->metrics[HF_METRIC_CREATED]++;
}

/* Upstream's text counts the failed replicas of one type.  After a person's request for a restart
 * no replica has failed, so the text differs. */
static const char *restarting_message(const struct hf_brain *b)
{
	const char *kind = b->job.framework->kind;

	hf_assert(b->restarting_role >= 0 && b->restarting_role < b->roles_len);
	if (b->restarting_count == 0)
		return hf_arena_printf(b->arena, "%s %s is restarting because a user asked for it.",
				       kind, b->view->name);
	return hf_arena_printf(b->arena, "%s %s is restarting because %d %s replica(s) failed.%s",
			       kind, b->view->name, b->restarting_count,
			       b->roles[b->restarting_role].type, hf_never_started_text(b));
}

void hf_cond_active(struct hf_brain *b, const struct hf_judgement *judgement)
{
	const struct hf_framework *framework = b->job.framework;
	bool goes_on = framework->goes_on && framework->goes_on(&b->job, b->counts);
	bool restarting = b->restarting || hf_cond_is_true(b, HF_COND_RESTARTING);

	hf_assert(!hf_cond_finished(b) && !b->job.suspend);
	/* While a verdict settles, the state stays as it is.  Upstream lowers Running with the
	 * verdict; without Running the job would look as if it had never begun. */
	if (b->settling)
		return;
	if (restarting && b->ledger.phase != HF_PHASE_RUNNING && !goes_on) {
		const char *message = restarting_message(b);
		bool news = !hf_cond_is_true(b, HF_COND_RESTARTING);

		hf_cond_lower(b, HF_COND_RUNNING, NULL, NULL);
		hf_cond_set(b, HF_COND_RESTARTING, true, hf_cond_reason(b, "Restarting"), message);
		/* The event belongs to the step that decides the restart, not to later steps that
		 * see Restarting. */
		if (news || b->restarting)
			hf_event(b, true, hf_cond_reason(b, "Restarting"), message);
	} else {
		hf_cond_lower(b, HF_COND_RESTARTING, NULL, NULL);
		if (judgement->running)
			hf_cond_set(b, HF_COND_RUNNING, true, hf_cond_reason(b, "Running"),
				    judgement->running_message);
		if (b->restarting)
			hf_event(b, true, hf_cond_reason(b, "Restarting"), restarting_message(b));
	}
}

bool hf_cond_tell_blind(const struct hf_brain *b, const char *type)
{
	const struct hf_condition *condition = hf_cond_find(b, type);

	if (!b->seen->blind)
		return false;
	if (condition && hf_streq(condition->status, "True")) {
		hf_block(b, hf_str_or(condition->message, type));
		hf_say(b, condition->last_transition, HF_TOPIC_BLOCKED, "%s", b->notes->blocker);
	}
	return true;
}
