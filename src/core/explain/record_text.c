/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/explain/explain_internal.h"

#include "base/str.h"
#include "core/model/container_reason.h"
#include "core/model/names.h"

/*
 * The texts about one record of the ledger: how a rank ended, the evidence, what the incident is
 * charged to, and the event of its cause.  Input: the ledger's records.
 */

/* The record's reason says that the container's program has never run. */
static bool has_never_started(const struct hf_record *record)
{
	const struct hf_container_reason *row = hf_container_reason_find(record->reason);

	return row && row->never_started;
}

/* 0: no signal. */
int64_t hf_record_signal(const struct hf_record *record)
{
	if (record->signal.set)
		return record->signal.value;
	return record->exit_code.set ? hf_exit_code_signal(record->exit_code.value) : 0;
}

#define SIGKILL_NUMBER 9

/* "exited with code 1", "was killed by SIGKILL (128+9)" */
static const char *describe_exit(struct hf_arena *arena, const struct hf_record *record)
{
	long long code = (long long)record->exit_code.value;
	long long number = (long long)hf_record_signal(record);
	const char *name = hf_signal_name(number);

	if (name && code == 128 + number)
		return hf_arena_printf(arena, "was %s by %s (128+%lld)",
				       number == SIGKILL_NUMBER ? "killed" : "ended", name, number);
	if (number != 0)
		return hf_arena_printf(arena, "exited with code %lld (%s)", code,
				       name ? name : hf_arena_printf(arena, "signal %lld", number));
	return hf_arena_printf(arena, "exited with code %lld", code);
}

static const char *describe_termination(struct hf_arena *arena, const struct hf_record *record)
{
	if (record->cause == HF_CLASS_USER)
		return "was deleted by a user";
	if (has_never_started(record))
		return "never started";
	if (hf_streq(record->reason, HF_REASON_POST_START))
		return "was ended by its kubelet after its postStart hook failed";
	if (hf_exit_code_is_lost(record->reason))
		return "ended with an unknown exit code";
	if (record->exit_code.set)
		return describe_exit(arena, record);
	if (hf_streq(record->scope, "Container"))
		return "had a container that ended and that the kubelet restarts";
	return record->pod ? "ended" : "vanished";
}

/* ": StartError: exec: …", or "". */
static const char *tell_reason(struct hf_arena *arena, const struct hf_record *record)
{
	if (!record->reason && record->message)
		return hf_arena_printf(arena, ": %s",
				       hf_status_message_clean(arena, record->message));
	if (!record->reason)
		return "";
	return hf_arena_printf(arena, ": %s%s%s", record->reason, record->message ? ": " : "",
			       hf_status_message_clean(arena, record->message));
}

const char *hf_never_started_text(const struct hf_brain *b)
{
	const struct hf_record *last = &b->ledger.records[0];

	if (b->ledger.records_len == 0 || last->incident != b->ledger.incident.id ||
	    last->cause != HF_CLASS_APPLICATION || !has_never_started(last) || !last->replica)
		return "";
	/* The message of the matching rule already names the init container and its exit code. */
	if (last->rule && hf_streq(last->reason, HF_REASON_INIT_FAILED))
		return "";
	return hf_arena_printf(b->arena, " (%s never started%s)", last->replica,
			       tell_reason(b->arena, last));
}

/* "worker-3 was killed by SIGKILL (128+9) on node n1" */
const char *hf_record_evidence(struct hf_arena *arena, const struct hf_record *record)
{
	const char *who = hf_str_or(record->replica, "a replica");

	if (hf_streq(record->rule, HF_ANNOTATION_RESTART))
		return hf_arena_printf(arena, "a user asked for a restart of %s",
				       hf_str_or(record->replica, "all ranks"));
	if (hf_record_is_node_loss(record))
		return hf_arena_printf(arena, "%s was lost with node %s", who,
				       hf_str_or(record->node, ""));
	if (hf_streq(record->reason, HF_REASON_NO_PROGRESS))
		return hf_arena_printf(arena,
				       "no rank advanced for progressDeadlineSeconds; %s%s%s stood "
				       "still for longest",
				       who, record->node ? " on node " : "",
				       hf_str_or(record->node, ""));
	if (record->cause == HF_CLASS_DEVICE && record->device)
		return hf_arena_printf(arena, "%s%s%s on node %s: device %s failed (%s)", who,
				       record->exit_code.set ? " " : "",
				       record->exit_code.set ? describe_termination(arena, record)
							     : "",
				       hf_str_or(record->node, ""), record->device,
				       hf_str_or(record->reason, HF_DEVICE_UNHEALTHY));
	return hf_arena_printf(arena, "%s %s%s%s%s", who, describe_termination(arena, record),
			       record->node ? " on node " : "", hf_str_or(record->node, ""),
			       tell_reason(arena, record));
}

/* The node of the open incident was charged for an earlier rank (hf_incident_is_same_fault); NULL: it was not. */
static const char *find_charged_node(const struct hf_brain *b)
{
	const struct hf_record *last = &b->ledger.records[0];

	if (b->ledger.records_len == 0 || last->incident != b->ledger.incident.id || !last->node ||
	    last->rule || hf_streq(last->reason, HF_REASON_STRAY))
		return NULL;
	for (size_t i = 1; i < b->ledger.records_len; i++)
		if (last->cause == HF_CLASS_INFRASTRUCTURE &&
		    b->ledger.records[i].cause == last->cause &&
		    hf_streq(b->ledger.records[i].node, last->node))
			return last->node;
	return NULL;
}

/* The open incident must be decided. */
const char *hf_incident_charge_text(const struct hf_brain *b)
{
	const char *node = find_charged_node(b);
	enum hf_budget budget = b->ledger.incident.charged;
	const struct hf_opt_int *limit;
	long long used;

	hf_assert(budget != HF_BUDGET_PENDING);
	if (budget == HF_BUDGET_NONE)
		return node == NULL ? "nothing is charged"
				    : hf_arena_printf(
					      b->arena,
					      "nothing is charged: the same fault of node %s took "
					      "a rank before",
					      node);
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

void hf_cause_event(const struct hf_brain *b)
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
				 hf_record_evidence(b->arena, record), rule ? "; rule " : "",
				 hf_str_or(rule, ""), hf_incident_charge_text(b)));
}
