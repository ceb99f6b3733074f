/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/explain/explain_internal.h"

#include "base/str.h"
#include "core/model/container_reason.h"
#include "core/model/names.h"

#include <string.h>

/*
 * The lines of `holdfast why` about the last restart, and the summary.  Input: the ledger's
 * records, so that every later step gives the same account, and the lines that policies have added.
 * Output: lines of explanation, plan.summary.
 */

/* ---- the last restart --------------------------------------------------------------------------- */

static void say_evidence(const struct hf_brain *b, const struct hf_record *record)
{
	hf_say(b, record->detected_at, HF_TOPIC_EVIDENCE, "%s",
	       hf_record_evidence(b->arena, record));
}

/* Name the restart policy of the replica type, if that policy made the decision. */
static void say_policy(const struct hf_brain *b, const struct hf_record *record)
{
	bool application = hf_class_is_application(record->cause);

	/* progressDeadlineSeconds made the decision. */
	if (hf_streq(record->reason, HF_REASON_NO_PROGRESS))
		return;
	for (int r = 0; r < b->roles_len && application && record->replica; r++) {
		size_t len = strlen(b->roles[r].lower);

		if (strncmp(record->replica, b->roles[r].lower, len) == 0 &&
		    record->replica[len] == '-')
			hf_say(b, record->detected_at, HF_TOPIC_RULE, "restartPolicy %s",
			       hf_restart_policy_name(b->job.roles[r].restart));
	}
}

/* The meaning of the record's reason or exit code, or the sender of the signal; NULL if unknown. */
static const char *explain_end(const struct hf_brain *b, const struct hf_record *record)
{
	const struct hf_container_reason *row = hf_container_reason_find(record->reason);
	const char *sender = hf_signal_sender(hf_record_signal(record));
	const char *meaning = record->exit_code.set && record->cause == HF_CLASS_APPLICATION
				      ? hf_exit_code_meaning(record->exit_code.value)
				      : NULL;

	if (hf_streq(record->reason, HF_REASON_NO_PROGRESS))
		return "it hung";
	if (hf_streq(record->reason, HF_REASON_SELF_FENCED))
		return "the process ended itself, because its node had no contact with the control "
		       "plane";
	if (record->cause == HF_CLASS_OUT_OF_MEMORY || record->cause == HF_CLASS_DEVICE ||
	    record->cause == HF_CLASS_USER)
		return NULL;
	/* A node gives the reason Evicted for a pod that it refuses, too, so the row does not fit
	 * class admission. */
	if (row && (row->never_started || record->cause != HF_CLASS_ADMISSION))
		return row->sentence;
	if (meaning)
		return hf_arena_printf(b->arena, "%s (code %lld of holdfast exec)", meaning,
				       (long long)record->exit_code.value);
	return record->cause == HF_CLASS_APPLICATION && *sender ? sender : NULL;
}

static void say_class(const struct hf_brain *b, const struct hf_record *record)
{
	static const char *const meaning[] = {
		[HF_CLASS_NONE] = "nothing is known of the cause",
		[HF_CLASS_OURS] = "Holdfast ended the pod",
		[HF_CLASS_OUT_OF_MEMORY] = ("a container exceeded its own memory limit and was "
					    "killed"),
		[HF_CLASS_INFRASTRUCTURE] = "the cluster removed the pod, or the pod vanished "
					    "unseen",
		[HF_CLASS_DEVICE] = "a device failed",
		[HF_CLASS_ADMISSION] = "the node refused the pod",
		[HF_CLASS_USER] = "a person asked for the restart",
		[HF_CLASS_APPLICATION] = "the program ended by itself",
	};
	const char *text;

	hf_assert((size_t)record->cause < HF_ARRAY_LEN(meaning));
	text = hf_str_or(explain_end(b, record), meaning[record->cause]);
	hf_say(b, record->detected_at, HF_TOPIC_CLASS, "%s: %s", hf_class_name(record->cause),
	       text);
	if (record->rule && !hf_streq(record->rule, HF_ANNOTATION_RESTART))
		hf_say(b, record->detected_at, HF_TOPIC_RULE, "podFailurePolicy rule %s",
		       record->rule);
	else
		say_policy(b, record);
}

static void say_failed(const struct hf_brain *b, hf_time at)
{
	hf_say(b, at, HF_TOPIC_DECISION, "the job fails: %s",
	       hf_str_or(b->ledger.verdict.reason, "unknown reason (the ledger has no verdict)"));
}

/* The restart of the record was decided before the verdict that failed the job.  So that restart is
 * not the cause; a deadline may be, for example. */
static bool is_older_than_verdict(const struct hf_brain *b, const struct hf_record *record)
{
	hf_time at = b->ledger.verdict.at;

	return record->scope && at != HF_TIME_NONE && record->decided_at != HF_TIME_NONE &&
	       record->decided_at < at;
}

/* The record names the lost node's rank as the cause, but that rank still has its old pod: only its
 * peers terminated and restarted. */
static bool is_of_peers(const struct hf_brain *b, const struct hf_record *record)
{
	const struct hf_slot *slot;
	int32_t index;
	int role;

	if (!hf_streq(record->reason, HF_REASON_NODE_LOST) || !record->pod ||
	    !hf_rank_find(b, record->pod, &role, &index) || index >= b->roles[role].slots_len)
		return false;
	slot = &b->roles[role].slots[index];
	return slot->pod && slot->current &&
	       hf_slot_incident(b, slot, slot->pod) < record->incident;
}

/* An undecided incident adds no line here: verdict.c reports what its verdict waits for. */
static void say_decision(const struct hf_brain *b, const struct hf_record *record)
{
	bool peers = is_of_peers(b, record);
	hf_time at = record->decided_at;

	if (hf_cond_is_true(b, HF_COND_FAILED) && !is_older_than_verdict(b, record)) {
		say_failed(b, at);
		return;
	}
	if (at == HF_TIME_NONE)
		return;
	if (hf_streq(record->scope, "Job"))
		hf_say(b, at, HF_TOPIC_DECISION, "all ranks restart as generation %lld%s",
		       (long long)record->generation,
		       record->in_place ? ", in their pods where they can" : "");
	else if (hf_streq(record->scope, "Container"))
		hf_say(b, at, HF_TOPIC_DECISION,
		       "the kubelet restarts %s, and the restart is counted",
		       peers ? "the containers that ended" : "it");
	else if (record->in_place)
		hf_say(b, at, HF_TOPIC_DECISION, "%s restarts in its pod, the others go on",
		       hf_str_or(record->replica, "it"));
	else if (peers)
		hf_say(b, at, HF_TOPIC_DECISION,
		       "the ranks that ended are replaced, the others go on");
	else if (hf_record_is_node_loss(record) && record->node)
		/* The record names one rank; the node may have had more. */
		hf_say(b, at, HF_TOPIC_DECISION,
		       "the ranks on node %s are replaced, the others go on", record->node);
	else
		hf_say(b, at, HF_TOPIC_DECISION, "%s is replaced, the others go on",
		       hf_str_or(record->replica, "it"));
}

static void say_budget(const struct hf_brain *b, hf_time at)
{
	enum hf_budget budget = b->ledger.incident.charged;

	if (budget != HF_BUDGET_PENDING)
		hf_say(b, at, HF_TOPIC_BUDGET, "%s", hf_incident_charge_text(b));
}

/* Parts of a restart in place are tenths of a second. */
static const char *tell_short(const struct hf_brain *b, hf_time span)
{
	if (span >= 10 * HF_SECOND)
		return hf_span_text(b->arena, span);
	return hf_arena_printf(b->arena, "%lld.%llds", (long long)(span / HF_SECOND),
			       (long long)(span % HF_SECOND / (HF_SECOND / 10)));
}

/* The span between two texts; "" where it is unknown. */
static const char *tell_part(const struct hf_brain *b, const char *before, hf_time span,
			     const char *behind)
{
	return span == HF_TIME_NONE
		       ? ""
		       : hf_arena_printf(b->arena, "%s%s%s", before, tell_short(b, span), behind);
}

/* How long each part of a restart took.  Of one that re-creates pods only the first step is news. */
static void say_parts(const struct hf_brain *b, const struct hf_record *record)
{
	struct hf_record_parts parts = hf_record_parts(record);

	if (record->running_at == HF_TIME_NONE)
		return;
	if (record->in_place)
		hf_say(b, record->running_at, HF_TOPIC_DONE,
		       "restart in place: %s%srunning %s later",
		       tell_part(b, "seen after ", parts.detect, ", "),
		       tell_part(b, "let start ", parts.down, " after the decision, "),
		       tell_short(b, parts.start == HF_TIME_NONE ? 0 : parts.start));
	if (parts.first_step != HF_TIME_NONE)
		hf_say(b, record->stepped_at, HF_TOPIC_DONE,
		       "the first step was done at most %s after all ranks ran",
		       tell_short(b, parts.first_step));
}

/* What the restart cost: the steps since the last checkpoint. */
static void say_steps(const struct hf_brain *b, const struct hf_record *record)
{
	int64_t lost = hf_record_lost_steps(record);

	if (lost >= 0)
		hf_say(b, record->detected_at, HF_TOPIC_EVIDENCE,
		       "step %lld was reached and step %lld saved: %lld step(s) are lost",
		       (long long)record->step, (long long)record->saved_step, (long long)lost);
	else if (record->step > 0 && record->in_place)
		hf_say(b, record->detected_at, HF_TOPIC_EVIDENCE, "step %lld was reached",
		       (long long)record->step);
}

/* A node has been Unknown for a minute or more before the decision, and that time is part of what its loss
 * cost. */
static const char *tell_unknown(const struct hf_brain *b, const struct hf_record *record)
{
	if (!hf_record_is_node_loss(record) || !record->node || record->ended_at == HF_TIME_NONE ||
	    record->ended_at > record->running_at)
		return "";
	return hf_arena_printf(
		b->arena, " (%s after node %s became Unknown)",
		hf_span_text(b->arena, hf_elapsed(record->ended_at, record->running_at)),
		record->node);
}

static void say_recovered(const struct hf_brain *b, const struct hf_record *record)
{
	const char *verb = b->ledger.phase == HF_PHASE_RUNNING ? "runs" : "ran";
	const struct hf_status *status = &b->plan->status;
	const char *text;
	hf_time span;

	if (record->running_at == HF_TIME_NONE)
		return;
	if (!hf_status_recovered(status, record, &span)) {
		hf_say(b, record->running_at, HF_TOPIC_DONE, "every rank %s again", verb);
		return;
	}
	text = hf_span_text(b->arena, span);
	if (status->start_time > record->detected_at)
		hf_say(b, record->running_at, HF_TOPIC_DONE,
		       "every rank %s again, %s after the job was resumed", verb, text);
	else
		hf_say(b, record->running_at, HF_TOPIC_DONE, "every rank %s again, after %s%s",
		       verb, text, tell_unknown(b, record));
}

/* What the job has done, and how much of its time it trained.  Jobs that report nothing have no such
 * lines. */
static void tell_progress(const struct hf_brain *b)
{
	const struct hf_ledger *ledger = &b->ledger;
	struct hf_checkpoint_advice advice;
	struct hf_status status = b->plan->status;
	int64_t permille;

	status.ledger = *ledger;
	status.conditions = b->conditions;
	status.conditions_len = b->conditions_len;
	if (ledger->step > 0)
		hf_say(b, ledger->steps_at, HF_TOPIC_DONE, "step %lld is done%s",
		       (long long)ledger->step,
		       ledger->saved_step > 0 ? hf_arena_printf(b->arena, ", step %lld is saved",
								(long long)ledger->saved_step)
					      : "");
	if (ledger->step > 0 && ledger->records_len > 0 &&
	    hf_status_ettr(&status, b->now, &permille))
		hf_say(b, b->now, HF_TOPIC_DONE, "all ranks ran in %lld.%lld %% of the time (ETTR)",
		       (long long)(permille / 10), (long long)(permille % 10));
	if (hf_status_advise(&status, b->now, &advice))
		hf_say(b, b->now, HF_TOPIC_DONE,
		       "save every %s: a save takes %s, and an incident comes every %s on average, "
		       "%lld so far (Young's rule)",
		       hf_span_text(b->arena, hf_seconds(advice.seconds)),
		       tell_short(b, advice.save_ms * HF_MS),
		       hf_span_text(b->arena, hf_seconds(advice.between_seconds)),
		       (long long)advice.incidents);
}

void hf_recovered_event(const struct hf_brain *b)
{
	const struct hf_record *last = &b->ledger.records[0];
	struct hf_record_parts parts = hf_record_parts(last);
	int64_t lost = hf_record_lost_steps(last);
	hf_time span;

	hf_assert(b->ledger.records_len > 0 && last->running_at != HF_TIME_NONE);
	if ((!last->in_place && last->step == 0) ||
	    !hf_status_recovered(&b->plan->status, last, &span))
		return;
	hf_event(b, false, "Recovered",
		 hf_arena_printf(b->arena, "all ranks run again after %s%s%s%s%s",
				 tell_short(b, span),
				 tell_part(b, ", seen after ", parts.detect, ""),
				 tell_part(b, ", let start after ", parts.down, ""),
				 tell_part(b, ", started after ", parts.start, ""),
				 lost < 0 ? ""
					  : hf_arena_printf(b->arena, "; %lld step(s) are lost",
							    (long long)lost)));
}

void hf_why_tell_history(const struct hf_brain *b)
{
	const struct hf_ledger *ledger = &b->ledger;
	const struct hf_record *last = &ledger->records[0];

	hf_assert(ledger->records_len <= HF_RECORDS_MAX);
	if (!ledger->present)
		return;
	for (size_t i = ledger->records_len; i-- > 1;) {
		const struct hf_record *record = &ledger->records[i];

		hf_say(b, record->decided_at, HF_TOPIC_DONE, "%s restart, %s: %s",
		       hf_str_or(record->scope, "a"), hf_class_name(record->cause),
		       hf_record_evidence(b->arena, record));
	}
	if (ledger->records_len > 0) {
		say_evidence(b, last);
		say_steps(b, last);
		say_class(b, last);
		say_decision(b, last);
		say_budget(b, last->decided_at);
		say_recovered(b, last);
		say_parts(b, last);
		if (hf_cond_is_true(b, HF_COND_FAILED) && is_older_than_verdict(b, last))
			say_failed(b, ledger->verdict.at);
	} else if (ledger->verdict.reason && hf_cond_is_true(b, HF_COND_FAILED)) {
		say_failed(b, ledger->verdict.at);
	}
	tell_progress(b);
}

static const char *find_line(const struct hf_brain *b, enum hf_topic topic)
{
	for (size_t i = 0; i < b->notes->reasons_len; i++) {
		if (b->notes->reasons[i].topic == topic)
			return b->notes->reasons[i].text;
	}
	return NULL;
}

/* "Restarting for 12s: worker-3 exited with code 1 on node n1" */
void hf_why_write_summary(const struct hf_brain *b)
{
	const char *state = hf_cond_state(b);
	const struct hf_condition *condition = hf_cond_find(b, state);
	const char *detail = find_line(b, HF_TOPIC_BLOCKED);
	hf_time since = condition ? condition->last_transition : HF_TIME_NONE;

	if (hf_streq(state, HF_COND_RESTARTING))
		detail = find_line(b, HF_TOPIC_EVIDENCE);
	/* If something keeps a pod until a person acts, the summary names it rather than the
	 * evidence of the restart. */
	if (b->notes->blocker)
		detail = b->notes->blocker;
	if (!detail)
		detail = find_line(b, HF_TOPIC_NEXT);
	/* The messages of the conditions Failed and Held explain those states. */
	if (hf_cond_is_true(b, HF_COND_HELD))
		detail = hf_cond_find(b, HF_COND_HELD)->message;
	else if (hf_streq(state, HF_COND_FAILED))
		detail = condition->message;
	b->plan->summary = hf_arena_printf(
		b->arena, "%s%s%s%s%s", *state ? state : "New",
		since != HF_TIME_NONE ? " for " : "",
		since != HF_TIME_NONE ? hf_span_text(b->arena, hf_elapsed(since, b->now)) : "",
		detail ? ": " : "", hf_str_or(detail, ""));
}
