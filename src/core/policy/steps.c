/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"

/*
 * The steps that ranks report: what was done and saved, what a restart loses, and whether restarts
 * bring the job on.
 *
 * Input: steps in the reports of ranks and of processes under exec.  Output: the ledger's step and
 * savedStep, the record's step, savedStep and steppedAt, the verdict of noProgressLimit.
 *
 * Steps go by many times a second and are no decision.  The ledger takes them with each save, and
 * else with the heartbeat of an agent, each five minutes, so that a job that just trains writes
 * seldom.  The ledger of a job that has ended takes the last ones.
 */

/* The shortest time between two heartbeats. */
#define STEPS_EVERY (4 * HF_MINUTE)

struct steps {
	int64_t step, saved; /* the highest of any rank; 0: unknown */
	int64_t save_ms;     /* the slowest save that was asked for; 0: unknown */
	hf_time stepped_at;  /* the last step; NONE: unknown */
	bool again; /* a process that was started after the last incident has done a step */
};

/* The last step of a process that is down is known from the report that it is down at the ledger's present start.  One
 * of an older start is of a process before the present one: agents report a start up to three minutes later. */
static bool is_down_now(const struct hf_brain *b, const struct hf_slot *slot,
			const struct hf_process_seen *process)
{
	return process->phase == HF_PROCESS_DOWN && hf_slot_is_reached(b, slot, process);
}

/* The reported step is of the rank's present process.  While the rank is held or its pod is to go, that is the process
 * that stops. */
static bool is_step_present(const struct hf_brain *b, const struct hf_slot *slot,
			    const struct hf_process_seen *process)
{
	bool stops = slot->held || !slot->current;

	if (process->phase == HF_PROCESS_DOWN)
		return stops && is_down_now(b, slot, process);
	return stops || hf_slot_is_reached(b, slot, process);
}

/* A saved step stays on disk, whichever process has saved it. */
static void add_process(struct steps *steps, const struct hf_process_seen *process, bool with_step)
{
	if (with_step && process->step > steps->step)
		steps->step = process->step;
	if (process->saved_step > steps->saved)
		steps->saved = process->saved_step;
	if (process->save_ms > steps->save_ms)
		steps->save_ms = process->save_ms;
}

/* Agents publish the first step of the first rank of each type at once. */
static bool does_step_again(const struct hf_brain *b, const struct hf_slot *slot)
{
	const struct hf_process_seen *process = slot->pod ? slot->pod->process : NULL;

	return process && slot->current && process->phase == HF_PROCESS_RUNNING &&
	       process->step > 0 && hf_slot_is_reached(b, slot, process) &&
	       hf_slot_incident(b, slot, slot->pod) == b->ledger.incident.id;
}

/* The newest restart in place that has let ranks start again; NULL: there was none. */
static const struct hf_record *find_in_place(const struct hf_brain *b)
{
	for (size_t i = 0; i < b->ledger.records_len; i++) {
		const struct hf_record *record = &b->ledger.records[i];

		if (record->in_place && record->down_at != HF_TIME_NONE)
			return record;
	}
	return NULL;
}

/* The pod's step is one of the process before the last restart in this pod.  Agents publish the steps of ranks
 * seldom, so a process that has done no step yet still has the step of the one before. */
static bool is_step_stale(const struct hf_record *record, const struct hf_pod *pod)
{
	return record && pod->stepped_at != HF_TIME_NONE && pod->stepped_at <= record->down_at &&
	       (hf_streq(record->scope, "Job") || hf_streq(record->pod, pod->name));
}

static struct steps find_steps(const struct hf_brain *b)
{
	const struct hf_record *in_place = find_in_place(b);
	struct steps steps = {.stepped_at = HF_TIME_NONE};

	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];
			const struct hf_pod *pod = hf_slot_pod(b, slot);

			if (!pod)
				continue;
			if (pod->step > steps.step && !is_step_stale(in_place, pod))
				steps.step = pod->step;
			if (pod->stepped_at > steps.stepped_at)
				steps.stepped_at = pod->stepped_at;
			if (pod->process)
				add_process(&steps, pod->process,
					    is_step_present(b, slot, pod->process));
			steps.again = steps.again || does_step_again(b, slot);
		}
	}
	return steps;
}

/* Returns false if noProgressLimit forbids another restart. A restart that a person asks for is
 * always allowed. */
bool hf_steps_allow(const struct hf_brain *b, enum hf_class cls)
{
	int64_t limit = b->job.recovery.no_progress_limit;

	if (limit == 0 || cls == HF_CLASS_USER || b->ledger.best_step == 0)
		return true;
	/* The streak does not yet count the run before this incident, so one is added. */
	return find_steps(b).step > b->ledger.best_step || b->ledger.no_progress_streak + 1 < limit;
}

const char *hf_steps_message(const struct hf_brain *b)
{
	return hf_arena_printf(
		b->arena,
		"Job %s has failed because %lld restart(s) in a row have not brought it "
		"beyond step %lld (noProgressLimit)",
		b->view->name, (long long)b->ledger.no_progress_streak + 1,
		(long long)b->ledger.best_step);
}

/* The last step and save of the job are at least those of the newest record. */
static void keep_record(struct hf_brain *b)
{
	struct hf_ledger *ledger = &b->ledger;
	const struct hf_record *last = &ledger->records[0];

	if (last->step <= ledger->step && last->saved_step <= ledger->saved_step)
		return;
	if (last->step > ledger->step)
		ledger->step = last->step;
	if (last->saved_step > ledger->saved_step)
		ledger->saved_step = last->saved_step;
	ledger->steps_at = b->now;
}

void hf_steps_note(struct hf_brain *b)
{
	struct hf_ledger *ledger = &b->ledger;
	struct hf_record *last = &ledger->records[0];
	struct steps steps = find_steps(b);

	hf_assert(ledger->records_len > 0);
	last->step = steps.step;
	/* The report of a save may be gone with its pod. */
	last->saved_step = steps.saved > 0                    ? steps.saved
			   : ledger->saved_step <= steps.step ? ledger->saved_step
							      : 0;
	if (steps.step > ledger->best_step) {
		ledger->best_step = steps.step;
		ledger->no_progress_streak = ledger->in_place_streak = 0;
	} else if (ledger->best_step > 0 && last->cause != HF_CLASS_USER) {
		ledger->no_progress_streak++;
	}
	keep_record(b);
}

/* ---- what is done and saved now --------------------------------------------------------------- */

/* Takes the last steps and saves of the stopped processes into the record.  Agents publish steps seldom, so the decision
 * did not know the last ones; with a save, ranks do steps after the decision too. */
static void take_last_words(struct hf_brain *b)
{
	struct hf_ledger *ledger = &b->ledger;
	struct hf_record *last = &ledger->records[0];
	struct steps steps = {.step = 0};

	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];
			const struct hf_process_seen *process =
				slot->pod ? slot->pod->process : NULL;

			if (process &&
			    (process->phase == HF_PROCESS_ENDED || is_down_now(b, slot, process)))
				add_process(&steps, process, true);
		}
	}
	if (steps.step > last->step)
		last->step = steps.step;
	if (steps.saved > last->saved_step)
		last->saved_step = steps.saved;
}

/* While ranks save before a restart, each step of the operator brings the record up to date. */
static void add_last_words(struct hf_brain *b)
{
	const struct hf_record *last = &b->ledger.records[0];

	if (b->ledger.records_len > 0 && last->step != 0 && last->running_at == HF_TIME_NONE &&
	    last->down_at == HF_TIME_NONE && b->ledger.save_until != HF_TIME_NONE)
		take_last_words(b);
}

void hf_steps_take_last(struct hf_brain *b)
{
	struct hf_ledger *ledger = &b->ledger;
	const struct hf_record *last = &ledger->records[0];

	if (ledger->records_len == 0 || !hf_streq(last->scope, "Job"))
		return;
	take_last_words(b);
	keep_record(b);
	if (last->step <= ledger->best_step)
		return;
	ledger->best_step = last->step;
	ledger->no_progress_streak = 0;
	/* This restart counts for the next one. */
	if (ledger->in_place_streak > 1)
		ledger->in_place_streak = 1;
}

/* The first step after the restart, by the first report of one. */
static void note_first_step(struct hf_brain *b, const struct steps *steps)
{
	struct hf_record *last = &b->ledger.records[0];
	hf_time from = last->down_at != HF_TIME_NONE ? last->down_at : last->running_at;

	if (b->ledger.records_len == 0 || last->stepped_at != HF_TIME_NONE ||
	    last->incident != b->ledger.incident.id || from == HF_TIME_NONE)
		return;
	if (steps->again)
		last->stepped_at = b->now;
	else if (steps->stepped_at != HF_TIME_NONE && steps->stepped_at > from)
		last->stepped_at = steps->stepped_at < b->now ? steps->stepped_at : b->now;
}

static void raise_step(int64_t *step, int64_t to)
{
	if (to > *step)
		*step = to;
}

/* While ranks restart, reports go with their pods: the record remembers them. */
static bool add_record(const struct hf_brain *b, struct steps *steps)
{
	const struct hf_record *last = &b->ledger.records[0];

	if (b->ledger.records_len == 0 || last->running_at != HF_TIME_NONE)
		return false;
	raise_step(&steps->step, last->step);
	raise_step(&steps->saved, last->saved_step);
	return true;
}

void hf_steps_finish(struct hf_brain *b)
{
	struct hf_ledger *ledger = &b->ledger;
	struct steps steps;

	if (b->seen->blind || !ledger->present)
		return;
	steps = find_steps(b);
	if (steps.step <= ledger->step && steps.saved <= ledger->saved_step)
		return;
	raise_step(&ledger->step, steps.step);
	raise_step(&ledger->saved_step, steps.saved);
	ledger->steps_at = b->now;
}

void hf_steps_keep(struct hf_brain *b)
{
	struct hf_ledger *ledger = &b->ledger;
	struct steps steps;
	bool due;

	if (b->seen->blind)
		return;
	steps = find_steps(b);
	add_last_words(b);
	note_first_step(b, &steps);
	if (steps.save_ms > 0)
		ledger->save_ms = steps.save_ms;
	due = add_record(b, &steps) || ledger->steps_at == HF_TIME_NONE ||
	      hf_elapsed(ledger->steps_at, b->now) >= STEPS_EVERY;
	if ((steps.saved == 0 || steps.saved == ledger->saved_step) &&
	    (steps.step == 0 || steps.step == ledger->step || !due))
		return;
	if (steps.step > 0)
		ledger->step = steps.step;
	if (steps.saved > 0)
		ledger->saved_step = steps.saved;
	ledger->steps_at = b->now;
}
