/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/str.h"
#include "core/model/container_reason.h"
#include "core/model/names.h"

#include <stdio.h>
#include <string.h>

/*
 * Words for people.  What happened is told from the ledger's last record, so that a step which
 * runs long afterwards tells the same story; what is waited for is said by the policy that waits.
 */

/* A longer text ends with DOTS. */
#define TEXT_MAX 511
#define DOTS "..."

const char *hf_time_text(struct hf_arena *arena, hf_time t)
{
	char text[HF_TIME_TEXT_MAX];

	if (t == HF_TIME_NONE)
		return "";
	hf_time_format(t, text);
	return hf_arena_strdup(arena, text);
}

const char *hf_span_text(struct hf_arena *arena, hf_time span)
{
	char text[HF_TIME_TEXT_MAX];

	hf_assert(span >= 0);
	hf_span_format(span, text);
	return hf_arena_strdup(arena, text);
}

void hf_event_pod(struct hf_brain *b, bool warning, const char *reason, const char *message,
		  const struct hf_pod *pod)
{
	struct hf_plan_event *event;

	hf_assert(reason && message);
	b->events = hf_grow(b->arena, b->events, b->events_len, &b->events_cap, sizeof(*b->events));
	event = &b->events[b->events_len++];
	*event = (struct hf_plan_event){.warning = warning, .reason = reason, .message = message};
	if (pod) {
		event->pod = pod->name;
		event->pod_uid = pod->uid;
	}
}

void hf_event(struct hf_brain *b, bool warning, const char *reason, const char *message)
{
	hf_event_pod(b, warning, reason, message, NULL);
}

void hf_say(struct hf_brain *b, hf_time time, enum hf_topic topic, const char *fmt, ...)
{
	char text[TEXT_MAX + 1];
	va_list ap;

	hf_assert(b->reasons_len <= HF_REASONS_MAX);
	if (b->reasons_len == HF_REASONS_MAX)
		return;
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) > TEXT_MAX)
		memcpy(text + hf_utf8_cut(text, TEXT_MAX - strlen(DOTS)), DOTS, sizeof(DOTS));
	va_end(ap);
	b->reasons[b->reasons_len++] = (struct hf_reason){
		.time = time, .topic = topic, .text = hf_arena_strdup(b->arena, text)};
}

void hf_ask(struct hf_brain *b, enum hf_ask_kind kind, const char *name)
{
	b->asks = hf_grow(b->arena, b->asks, b->asks_len, &b->asks_cap, sizeof(*b->asks));
	b->asks[b->asks_len++] = (struct hf_ask){.kind = kind, .name = name};
}

/* Never in the past: a plan that wakes at once would spin. */
void hf_wake(struct hf_brain *b, hf_time at)
{
	hf_assert(at > b->now);
	if (at < b->plan->wake_at)
		b->plan->wake_at = at;
}

/* ---- the last restart --------------------------------------------------------------------------- */

static bool is_never_started(const struct hf_record *record)
{
	const struct hf_container_reason *row = hf_container_reason_find(record->reason);

	return row && row->never_started;
}

/* 0: none. */
static int64_t find_signal(const struct hf_record *record)
{
	if (record->signal.set)
		return record->signal.value;
	return record->exit_code.set ? hf_exit_code_signal(record->exit_code.value) : 0;
}

#define SIGKILL_NUMBER 9

/* "exited with code 1", "was killed by SIGKILL (128+9)" */
static const char *describe_exit(struct hf_brain *b, const struct hf_record *record)
{
	long long code = (long long)record->exit_code.value;
	long long number = (long long)find_signal(record);
	const char *name = hf_signal_name(number);

	if (name && code == 128 + number)
		return hf_arena_printf(b->arena, "was %s by %s (128+%lld)",
				       number == SIGKILL_NUMBER ? "killed" : "ended", name, number);
	if (number != 0)
		return hf_arena_printf(b->arena, "exited with code %lld (%s)", code,
				       name ? name
					    : hf_arena_printf(b->arena, "signal %lld", number));
	return hf_arena_printf(b->arena, "exited with code %lld", code);
}

static const char *how_it_ended(struct hf_brain *b, const struct hf_record *record)
{
	if (record->cause == HF_CLASS_USER)
		return "was deleted by somebody";
	if (is_never_started(record))
		return "never started";
	if (hf_streq(record->reason, HF_REASON_POST_START))
		return "was ended by its kubelet after its postStart hook failed";
	if (hf_exit_code_is_lost(record->reason))
		return "ended with an unknown exit code";
	if (record->exit_code.set)
		return describe_exit(b, record);
	if (hf_streq(record->scope, "Container"))
		return "had a container that ended and that the kubelet restarts";
	return record->pod ? "ended" : "vanished";
}

/* ": StartError: exec: …", or nothing. */
static const char *tell_reason(struct hf_brain *b, const struct hf_record *record)
{
	if (!record->reason && record->message)
		return hf_arena_printf(b->arena, ": %s",
				       hf_status_message_clean(b->arena, record->message));
	if (!record->reason)
		return "";
	return hf_arena_printf(b->arena, ": %s%s%s", record->reason, record->message ? ": " : "",
			       hf_status_message_clean(b->arena, record->message));
}

const char *hf_never_started_text(struct hf_brain *b)
{
	const struct hf_record *last = &b->ledger.records[0];

	if (b->ledger.records_len == 0 || last->incident != b->ledger.incident.id ||
	    last->cause != HF_CLASS_APPLICATION || !is_never_started(last) || !last->replica)
		return "";
	return hf_arena_printf(b->arena, " (%s never started%s)", last->replica,
			       tell_reason(b, last));
}

/* "worker-3 was killed by SIGKILL (128+9) on node n1" */
static const char *evidence(struct hf_brain *b, const struct hf_record *record)
{
	const char *who = hf_str_or(record->replica, "a replica");

	if (hf_streq(record->rule, HF_ANNOTATION_RESTART))
		return hf_arena_printf(b->arena, "somebody asked for a restart of %s",
				       hf_str_or(record->replica, "all ranks"));
	if (hf_streq(record->reason, HF_REASON_NODE_LOST) && !record->exit_code.set)
		return hf_arena_printf(b->arena, "%s was lost with node %s", who,
				       hf_str_or(record->node, ""));
	if (hf_streq(record->reason, HF_REASON_NO_PROGRESS))
		return hf_arena_printf(b->arena,
				       "no rank advanced for progressDeadlineSeconds, %s%s%s the "
				       "longest",
				       who, record->node ? " on node " : "",
				       hf_str_or(record->node, ""));
	if (record->cause == HF_CLASS_DEVICE && record->device)
		return hf_arena_printf(b->arena, "%s%s%s on node %s: device %s failed (%s)", who,
				       record->exit_code.set ? " " : "",
				       record->exit_code.set ? how_it_ended(b, record) : "",
				       hf_str_or(record->node, ""), record->device,
				       hf_str_or(record->reason, HF_DEVICE_UNHEALTHY));
	return hf_arena_printf(b->arena, "%s %s%s%s%s", who, how_it_ended(b, record),
			       record->node ? " on node " : "", hf_str_or(record->node, ""),
			       tell_reason(b, record));
}

static void say_evidence(struct hf_brain *b, const struct hf_record *record)
{
	hf_say(b, record->detected_at, HF_TOPIC_EVIDENCE, "%s", evidence(b, record));
}

/* The restart policy of the replica type, where that has decided. */
static void say_policy(struct hf_brain *b, const struct hf_record *record)
{
	bool application = hf_class_is_application(record->cause);

	/* Whoever set a deadline has decided. */
	if (hf_streq(record->reason, HF_REASON_NO_PROGRESS))
		return;
	for (int r = 0; r < b->crews_len && application && record->replica; r++) {
		size_t len = strlen(b->crews[r].lower);

		if (strncmp(record->replica, b->crews[r].lower, len) == 0 &&
		    record->replica[len] == '-')
			hf_say(b, record->detected_at, HF_TOPIC_RULE, "restartPolicy %s",
			       hf_restart_policy_name(b->job.roles[r].restart));
	}
}

/* The meaning of the reason, or the sender of the signal; NULL: neither is known. */
static const char *explain_end(const struct hf_record *record)
{
	const struct hf_container_reason *row = hf_container_reason_find(record->reason);
	const char *sender = hf_signal_sender(find_signal(record));

	if (hf_streq(record->reason, HF_REASON_NO_PROGRESS))
		return "it hung";
	if (hf_streq(record->reason, HF_REASON_SELF_FENCED))
		return "it ended itself, as its node had no contact with the control plane";
	if (record->cause == HF_CLASS_OUT_OF_MEMORY || record->cause == HF_CLASS_DEVICE ||
	    record->cause == HF_CLASS_USER)
		return NULL;
	/* Eviction is the reason of a refusal too. */
	if (row && (row->never_started || record->cause != HF_CLASS_ADMISSION))
		return row->sentence;
	return record->cause == HF_CLASS_APPLICATION && *sender ? sender : NULL;
}

static void say_class(struct hf_brain *b, const struct hf_record *record)
{
	static const char *const meaning[] = {
		[HF_CLASS_NONE] = "nothing is known of it",
		[HF_CLASS_OURS] = "we ended it",
		[HF_CLASS_OUT_OF_MEMORY] = ("a container was killed for its memory: the "
					    "application's own limit"),
		[HF_CLASS_INFRASTRUCTURE] = "the cluster took it, or it went unseen",
		[HF_CLASS_DEVICE] = "a device failed",
		[HF_CLASS_ADMISSION] = "the node refused it",
		[HF_CLASS_USER] = "a person wanted it",
		[HF_CLASS_APPLICATION] = "the program ended by itself",
	};
	const char *text;

	hf_assert((size_t)record->cause < HF_ARRAY_LEN(meaning));
	text = hf_str_or(explain_end(record), meaning[record->cause]);
	hf_say(b, record->detected_at, HF_TOPIC_CLASS, "%s: %s", hf_class_name(record->cause),
	       text);
	if (record->rule && !hf_streq(record->rule, HF_ANNOTATION_RESTART))
		hf_say(b, record->detected_at, HF_TOPIC_RULE, "podFailurePolicy rule %s",
		       record->rule);
	else
		say_policy(b, record);
}

/* Nothing is said of a decision that is not made yet: the settling says what it waits for. */
static void say_decision(struct hf_brain *b, const struct hf_record *record)
{
	hf_time at = record->decided_at;

	if (hf_cond_is_true(b, HF_COND_FAILED)) {
		hf_say(b, at, HF_TOPIC_DECISION, "the job fails: %s",
		       hf_str_or(b->ledger.verdict.reason, "for a reason nobody wrote down"));
		return;
	}
	if (at == HF_TIME_NONE)
		return;
	if (hf_streq(record->scope, "Job"))
		hf_say(b, at, HF_TOPIC_DECISION, "all ranks restart as generation %lld",
		       (long long)record->generation);
	else if (hf_streq(record->scope, "Container"))
		hf_say(b, at, HF_TOPIC_DECISION, "the kubelet restarts it, which is counted");
	else
		hf_say(b, at, HF_TOPIC_DECISION, "%s is replaced, the others go on",
		       hf_str_or(record->replica, "it"));
}

/* Of an incident that is decided. */
static const char *charge(struct hf_brain *b)
{
	enum hf_budget budget = b->ledger.incident.charged;
	const struct hf_opt_int *limit;
	long long used;

	hf_assert(budget != HF_BUDGET_PENDING);
	if (budget == HF_BUDGET_NONE)
		return "nothing is charged";
	limit = &b->job.recovery.limits[budget];
	used = (long long)b->ledger.restarts[budget];
	if (limit->set && used > limit->value)
		return hf_arena_printf(b->arena, "%s budget: limit %lld, exceeded by incident %lld",
				       hf_budget_name(budget), (long long)limit->value,
				       (long long)b->ledger.incident.id);
	if (limit->set)
		return hf_arena_printf(b->arena, "%s budget: %lld of %lld used",
				       hf_budget_name(budget), used, (long long)limit->value);
	return hf_arena_printf(b->arena, "%s budget: %lld used, unlimited", hf_budget_name(budget),
			       used);
}

void hf_cause_event(struct hf_brain *b)
{
	static const char *const reasons[] = {
		[HF_CLASS_OUT_OF_MEMORY] = "OutOfMemory",
		[HF_CLASS_INFRASTRUCTURE] = "InfrastructureFailure",
		[HF_CLASS_DEVICE] = "DeviceFailure",
		[HF_CLASS_ADMISSION] = "AdmissionFailure",
		[HF_CLASS_USER] = "RestartWanted",
		[HF_CLASS_APPLICATION] = "ApplicationFailure",
	};
	const struct hf_record *record = &b->ledger.records[0];
	const char *rule = record->rule;

	hf_assert(b->ledger.records_len > 0 && (size_t)record->cause < HF_ARRAY_LEN(reasons) &&
		  reasons[record->cause]);
	if (hf_streq(rule, HF_ANNOTATION_RESTART))
		rule = NULL;
	hf_event(b, record->cause != HF_CLASS_USER, reasons[record->cause],
		 hf_arena_printf(b->arena, "Incident %lld: %s%s%s; %s", (long long)record->incident,
				 evidence(b, record), rule ? "; rule " : "", hf_str_or(rule, ""),
				 charge(b)));
}

static void say_budget(struct hf_brain *b, hf_time at)
{
	enum hf_budget budget = b->ledger.incident.charged;

	if (budget != HF_BUDGET_PENDING)
		hf_say(b, at, HF_TOPIC_BUDGET, "%s", charge(b));
}

static void say_recovered(struct hf_brain *b, const struct hf_record *record)
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
		hf_say(b, record->running_at, HF_TOPIC_DONE, "every rank %s again, after %s", verb,
		       text);
}

void hf_why_history(struct hf_brain *b)
{
	const struct hf_ledger *ledger = &b->ledger;
	const struct hf_record *last = &ledger->records[0];

	hf_assert(ledger->records_len <= HF_RECORDS_MAX);
	if (!ledger->present)
		return;
	for (size_t i = ledger->records_len; i-- > 1;) {
		const struct hf_record *record = &ledger->records[i];

		hf_say(b, record->decided_at, HF_TOPIC_DONE, "%s restart of %s: %s",
		       hf_str_or(record->scope, "a"), hf_str_or(record->replica, "all ranks"),
		       hf_class_name(record->cause));
	}
	if (ledger->records_len > 0) {
		say_evidence(b, last);
		say_class(b, last);
		say_decision(b, last);
		say_budget(b, last->decided_at);
		say_recovered(b, last);
	} else if (ledger->verdict.reason && hf_cond_is_true(b, HF_COND_FAILED)) {
		hf_say(b, ledger->verdict.at, HF_TOPIC_DECISION, "the job fails: %s",
		       ledger->verdict.reason);
	}
}

static const char *find_reason(const struct hf_brain *b, enum hf_topic topic)
{
	for (size_t i = 0; i < b->reasons_len; i++) {
		if (b->reasons[i].topic == topic)
			return b->reasons[i].text;
	}
	return NULL;
}

/* "Restarting for 12s: worker-3 exited with code 1 on node n1" */
void hf_why_summary(struct hf_brain *b)
{
	const char *state = hf_cond_state(b);
	const struct hf_condition *condition = hf_cond_find(b, state);
	const char *detail = find_reason(b, HF_TOPIC_BLOCKED);
	hf_time since = condition ? condition->last_transition : HF_TIME_NONE;

	if (hf_streq(state, HF_COND_RESTARTING))
		detail = find_reason(b, HF_TOPIC_EVIDENCE);
	/* What keeps a pod for ever, unless somebody does something, comes before how it began. */
	if (b->blocker)
		detail = b->blocker;
	if (!detail)
		detail = find_reason(b, HF_TOPIC_NEXT);
	/* The end of a job and a held one explain themselves by their message. */
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
