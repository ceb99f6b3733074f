/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/str.h"

#include <string.h>

/*
 * Upstream's conditions in upstream's words, without its errors: Restarting does become False, a
 * transition has its time, and the last condition is always the True one that names the state,
 * because clients print conditions[-1].  Conditions of others keep their places.
 */

/* Who names the state, the strongest first. */
static const char *const states[] = {HF_COND_FAILED,     HF_COND_SUCCEEDED, HF_COND_SUSPENDED,
				     HF_COND_RESTARTING, HF_COND_RUNNING,   HF_COND_CREATED};

const char *hf_cond_reason(struct hf_brain *b, const char *suffix)
{
	return hf_arena_printf(b->arena, "%s%s", b->job.framework->kind, suffix);
}

struct hf_condition *hf_cond_find(const struct hf_brain *b, const char *type)
{
	hf_assert(type);
	for (size_t i = 0; i < b->conditions_len; i++) {
		if (hf_streq(b->conditions[i].type, type))
			return &b->conditions[i];
	}
	return NULL;
}

bool hf_cond_is_true(const struct hf_brain *b, const char *type)
{
	const struct hf_condition *condition = hf_cond_find(b, type);

	return condition && hf_streq(condition->status, "True");
}

bool hf_cond_finished(const struct hf_brain *b)
{
	return hf_cond_is_true(b, HF_COND_SUCCEEDED) || hf_cond_is_true(b, HF_COND_FAILED);
}

/* Take the condition out of the list and put it at a place of the rest. */
static void move(struct hf_brain *b, struct hf_condition *condition, size_t to)
{
	size_t from = (size_t)(condition - b->conditions);
	struct hf_condition kept = *condition;

	hf_assert(from < b->conditions_len && to < b->conditions_len);
	memmove(&b->conditions[from], &b->conditions[from + 1],
		(b->conditions_len - from - 1) * sizeof(kept));
	memmove(&b->conditions[to + 1], &b->conditions[to],
		(b->conditions_len - 1 - to) * sizeof(kept));
	b->conditions[to] = kept;
}

/* Whoever appends fills in the rest; -1 says that no stored element stands behind it. */
static struct hf_condition *append(struct hf_brain *b, const char *type)
{
	struct hf_condition *condition;

	b->conditions = hf_grow(b->arena, b->conditions, b->conditions_len, &b->conditions_cap,
				sizeof(*b->conditions));
	condition = &b->conditions[b->conditions_len++];
	*condition = (struct hf_condition){.type = type, .stored = -1};
	return condition;
}

void hf_cond_load(struct hf_brain *b, const struct hf_status *stored)
{
	hf_assert(b->conditions_cap >= stored->conditions_len && b->conditions_len == 0);
	for (size_t i = 0; i < stored->conditions_len; i++) {
		struct hf_condition *twin = hf_cond_find(b, stored->conditions[i].type);

		/* Of two with one type the later counts, and is all that stays: with both, each
		 * step would find the other one out of place. */
		if (!twin)
			twin = &b->conditions[b->conditions_len++];
		*twin = stored->conditions[i];
		twin->stored = (int)i;
	}
}

/* The message of a condition of ours is true at each write.  Upstream's keep theirs until status or reason
 * change, as upstream's operator has it. */
static void refresh_message(struct hf_condition *condition, const char *message, hf_time second)
{
	if (!hf_str_has_prefix(condition->type, HF_COND_PREFIX) ||
	    hf_streq(condition->message, message))
		return;
	condition->message = message;
	condition->last_update = second;
}

void hf_cond_set(struct hf_brain *b, const char *type, bool status, const char *reason,
		 const char *message)
{
	struct hf_condition *condition = hf_cond_find(b, type);
	const char *text = status ? "True" : "False";
	hf_time second = hf_time_floor_second(b->now);

	hf_assert(reason && message);
	if (condition && hf_streq(condition->status, text) && hf_streq(condition->reason, reason)) {
		refresh_message(condition, message, second);
		return;
	}
	if (!condition)
		condition = append(b, type);
	if (!hf_streq(condition->status, text))
		condition->last_transition = second;
	condition->last_update = second;
	condition->status = text;
	condition->reason = reason;
	condition->message = message;
	move(b, condition, b->conditions_len - 1);
}

void hf_cond_lower(struct hf_brain *b, const char *type, const char *reason, const char *message)
{
	struct hf_condition *condition = hf_cond_find(b, type);

	hf_assert(!reason == !message);
	if (!condition || !hf_streq(condition->status, "True"))
		return;
	condition->status = "False";
	condition->last_update = condition->last_transition = hf_time_floor_second(b->now);
	if (reason) {
		condition->reason = reason;
		condition->message = message;
	}
}

void hf_cond_lower_unwatched(struct hf_brain *b)
{
	for (size_t i = 0; i < b->conditions_len; i++) {
		const char *type = b->conditions[i].type;

		if (hf_str_has_prefix(type, HF_COND_PREFIX) && !hf_streq(type, HF_COND_HELD))
			hf_cond_lower(
				b, type, "JobHeld",
				"The operator does not look at this while condition " HF_COND_HELD
				" is True.");
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

/* Upstream counts the failed replicas of one type; a request has none to count. */
static const char *restarting_message(struct hf_brain *b)
{
	const char *kind = b->job.framework->kind;

	hf_assert(b->restarting_role >= 0 && b->restarting_role < b->crews_len);
	if (b->restarting_count == 0)
		return hf_arena_printf(b->arena, "%s %s is restarting because that was asked for.",
				       kind, b->view->name);
	return hf_arena_printf(b->arena, "%s %s is restarting because %d %s replica(s) failed.%s",
			       kind, b->view->name, b->restarting_count,
			       b->crews[b->restarting_role].type, hf_never_started_text(b));
}

void hf_cond_active(struct hf_brain *b, const struct hf_judgement *judgement)
{
	const struct hf_framework *framework = b->job.framework;
	bool goes_on = framework->goes_on && framework->goes_on(&b->job, b->counts);
	bool restarting = b->restarting || hf_cond_is_true(b, HF_COND_RESTARTING);

	hf_assert(!hf_cond_finished(b) && !b->job.suspend);
	/* Nothing is decided: the job is what it was.  Running would be lowered with the verdict, as
	 * upstream does; without it the state would read as that of a job that never began. */
	if (b->settling)
		return;
	if (restarting && b->ledger.phase != HF_PHASE_RUNNING && !goes_on) {
		const char *message = restarting_message(b);
		bool news = !hf_cond_is_true(b, HF_COND_RESTARTING);

		hf_cond_lower(b, HF_COND_RUNNING, NULL, NULL);
		hf_cond_set(b, HF_COND_RESTARTING, true, hf_cond_reason(b, "Restarting"), message);
		/* One event for each decision, not for each step that sees it last. */
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

const char *hf_cond_state(const struct hf_brain *b)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(states); i++) {
		if (hf_cond_is_true(b, states[i]))
			return states[i];
	}
	return "";
}

void hf_cond_arrange(struct hf_brain *b)
{
	/* "" is no type, so nothing is found while nothing is True. */
	struct hf_condition *state = hf_cond_find(b, hf_cond_state(b));
	struct hf_condition *created;

	if (!state)
		return;
	move(b, state, b->conditions_len - 1);
	/* Created is first by custom, and last only where no other state is True. */
	created = hf_cond_find(b, HF_COND_CREATED);
	if (created && created != &b->conditions[b->conditions_len - 1])
		move(b, created, 0);
	hf_assert(hf_streq(b->conditions[b->conditions_len - 1].status, "True"));
}
