/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/brain_internal.h"

#include "base/str.h"

/*
 * The end of a job.  A terminal condition never leaves and its type never changes; what is left
 * to do is the clean-up policy, deleting pods that were created late, and the TTL.
 */

/* What both ends of a job have in common.  The caller has said why in an event. */
static void end(struct hf_brain *b, const char *type, const char *reason, const char *message)
{
	hf_time at = hf_time_floor_second(b->now), start = b->plan->status.start_time;

	hf_assert(!hf_cond_finished(b));
	/* A server's clock may be set back; a job does not end before it began. */
	b->plan->status.completion_time = start != HF_TIME_NONE && at < start ? start : at;
	/* As upstream: Running keeps the reason and the message that it had. */
	hf_cond_lower(b, HF_COND_RUNNING, NULL, NULL);
	hf_cond_lower(b, HF_COND_RESTARTING, NULL, NULL);
	hf_cond_set(b, type, true, reason, message);
	b->ledger.not_before = HF_TIME_NONE;
	b->ledger.phase = HF_PHASE_ENDED;
	b->settling = false;
}

void hf_finish_failed(struct hf_brain *b)
{
	struct hf_ledger *ledger = &b->ledger;
	const char *reason = hf_cond_reason(b, "Failed"), *shown = reason;
	/* Upstream warns of exit codes and reports the rest as normal. */
	bool warning = hf_streq(ledger->verdict.reason, HF_VERDICT_EXIT_CODE);

	hf_assert(ledger->verdict.reason && ledger->verdict.message);
	if (ledger->incident.charged == HF_BUDGET_PENDING && ledger->incident.id > 0)
		hf_budget_charge(b, hf_budget_of_verdict(ledger->verdict.reason));
	if (ledger->records_len > 0 && ledger->records[0].decided_at == HF_TIME_NONE)
		ledger->records[0].decided_at = b->now;
	if (b->job.framework->failed_reason && hf_streq(ledger->verdict.reason, HF_VERDICT_NEVER))
		shown = b->job.framework->failed_reason;
	end(b, HF_COND_FAILED, shown, ledger->verdict.message);
	hf_event(b, warning, reason, ledger->verdict.message);
	b->plan->metrics[HF_METRIC_FAILED]++;
}

void hf_finish_succeeded(struct hf_brain *b, const struct hf_judgement *judgement)
{
	const char *reason = hf_cond_reason(b, "Succeeded");

	hf_assert(judgement->succeeded);
	b->ledger.verdict = (struct hf_verdict){.at = HF_TIME_NONE};
	if (b->ledger.incident.charged == HF_BUDGET_PENDING)
		b->ledger.incident.charged = HF_BUDGET_NONE;
	end(b, HF_COND_SUCCEEDED, reason, judgement->succeeded_message);
	hf_event(b, false, reason, judgement->succeeded_message);
	b->plan->metrics[HF_METRIC_SUCCESSFUL]++;
	/* Ranks that still run when the job has succeeded count as succeeded. */
	for (int r = 0; r < b->crews_len; r++) {
		b->counts[r].succeeded += b->counts[r].active;
		b->counts[r].active = 0;
	}
	hf_counts_write(b);
}

/* ---- afterwards ----------------------------------------------------------------------------- */

static bool is_active(const struct hf_pod *pod)
{
	return pod->phase == HF_POD_PENDING || pod->phase == HF_POD_RUNNING;
}

/* The ledger knows the pod.  One that it does not know was created late: by a leader that had
 * lost its lease, or by a request that took its time.  A job that never had a ledger ended under
 * another operator: nothing in it is late. */
static bool of_record(const struct hf_brain *b, const struct hf_crew *crew,
		      const struct hf_slot *slot)
{
	return !b->ledger.present || !crew->present ||
	       (slot->current && (slot->created || slot->succeeded));
}

static bool cleans(const struct hf_brain *b, const struct hf_pod *pod)
{
	return b->job.clean == HF_CLEAN_ALL || (b->job.clean == HF_CLEAN_RUNNING && is_active(pod));
}

/* Level-triggered: what was deleted already does not show up, what was not is asked for again. */
static void clean_slot(struct hf_brain *b, const struct hf_crew *crew, int32_t index)
{
	const struct hf_slot *slot = &crew->slots[index];
	bool goes = slot->pod && (cleans(b, slot->pod) || !of_record(b, crew, slot));
	bool beyond = crew->present && index >= crew->replicas;

	if (goes)
		hf_pod_delete(b, slot->pod, (struct hf_opt_int){0});
	/* A service stays only beside a pod that stays, and goes with a rank that is none any more. */
	if (slot->service && (beyond || (b->job.clean != HF_CLEAN_NONE && (goes || !slot->pod))))
		hf_service_delete(b, slot->service);
}

static void clean_up(struct hf_brain *b)
{
	for (int r = 0; r < b->crews_len; r++) {
		for (int32_t i = 0; i < b->crews[r].slots_len; i++)
			clean_slot(b, &b->crews[r], i);
	}
	for (size_t i = 0; i < b->strays_len; i++) {
		if (cleans(b, b->strays[i]))
			hf_pod_delete(b, b->strays[i], (struct hf_opt_int){0});
	}
}

/* Of a failed job the ranks that go on running are told, as clean-up policy None lets them;
 * successes and failures stay as the verdict left them. */
static void recount(struct hf_brain *b)
{
	if (!hf_cond_is_true(b, HF_COND_FAILED))
		return;
	for (int r = 0; r < b->crews_len; r++) {
		struct hf_replica_status *status = &b->plan->status.replicas[r];
		int32_t active = 0;

		for (int32_t i = 0; i < b->crews[r].slots_len; i++) {
			const struct hf_pod *pod = b->crews[r].slots[i].pod;

			active += pod && pod->phase == HF_POD_RUNNING &&
				  pod->deletion_time == HF_TIME_NONE;
		}
		if (status->present)
			status->active = active;
	}
}

/* The TTL runs from the terminal condition, whatever `suspend` says by now.  Foreground, so that
 * the job is seen until its pods are gone. */
static void expire(struct hf_brain *b, const struct hf_condition *terminal)
{
	struct hf_opt_int ttl = b->view->run_policy.ttl_seconds_after_finished;
	struct hf_action action = {
		.kind = HF_ACTION_DELETE_JOB, .name = b->view->name, .uid = b->view->uid};
	struct hf_stage *stage = &b->plan->stages[b->plan->stages_len];
	struct hf_action *last;
	hf_time at = terminal->last_transition;

	if (at == HF_TIME_NONE)
		at = b->plan->status.completion_time;
	if (!ttl.set || at == HF_TIME_NONE)
		return;
	at = hf_time_add(at, hf_seconds(ttl.value > 0 ? ttl.value : 0));
	if (b->now < at) {
		hf_wake(b, at);
		hf_say(b, at, HF_TOPIC_NEXT, "the job is deleted %lld s after its end",
		       (long long)ttl.value);
		return;
	}
	hf_assert(b->plan->stages_len < HF_STAGES_MAX && b->view->uid);
	last = HF_ARENA_NEW(b->arena, struct hf_action);
	*last = action;
	stage->actions = last;
	stage->actions_len = 1;
	b->plan->stages_len++;
	hf_say(b, b->now, HF_TOPIC_NEXT, "the job's time to live is over: it is deleted");
}

/* Good until a condition is set: the list moves. */
static const struct hf_condition *terminal_of(struct hf_brain *b)
{
	const struct hf_condition *failed = hf_cond_find(b, HF_COND_FAILED);

	return failed && hf_streq(failed->status, "True") ? failed
							  : hf_cond_find(b, HF_COND_SUCCEEDED);
}

void hf_finished(struct hf_brain *b)
{
	hf_assert(hf_cond_finished(b));
	/* Upstream's operator left some failed jobs without it, which then never expired. */
	if (b->plan->status.completion_time == HF_TIME_NONE)
		b->plan->status.completion_time = terminal_of(b)->last_transition;
	recount(b);
	clean_up(b);
	hf_taken_over(b);
	hf_unplaced_over(b);
	hf_advance_over(b);
	hf_lost_step(b);
	hf_stuck_step(b);
	hf_extras_drop(b, HF_LIFE_FINISHED);
	hf_stage_add(b, &b->deletes);
	if (b->deletes.len > 0)
		hf_say(b, b->now, HF_TOPIC_NEXT, "%zu object(s) are deleted", b->deletes.len);
	expire(b, terminal_of(b));
}
