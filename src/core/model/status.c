/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/status.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>
#include "core/model/model_internal.h"
#include "core/model/observed.h"
#include "core/model/plan.h"

/*
 * The names behind the enums of core, for writing and parsing; and questions about a status.
 */

static const char *const class_names[] = {
	[HF_CLASS_NONE] = "",
	[HF_CLASS_OURS] = "ours",
	[HF_CLASS_OUT_OF_MEMORY] = "out-of-memory",
	[HF_CLASS_INFRASTRUCTURE] = "infrastructure",
	[HF_CLASS_DEVICE] = "device",
	[HF_CLASS_ADMISSION] = "admission",
	[HF_CLASS_USER] = "user",
	[HF_CLASS_APPLICATION] = "application",
};
static const char *const budget_names[] = {
	[HF_BUDGET_APPLICATION] = "application",
	[HF_BUDGET_INFRASTRUCTURE] = "infrastructure",
	[HF_BUDGET_DEVICE] = "device",
	[HF_BUDGET_NONE] = "none",
	[HF_BUDGET_PENDING] = "",
};
static const char *const phase_names[] = {
	[HF_PHASE_CREATING] = "Creating", [HF_PHASE_RUNNING] = "Running",
	[HF_PHASE_TEARING] = "Tearing",   [HF_PHASE_SUSPENDED] = "Suspended",
	[HF_PHASE_ENDED] = "Ended",
};
static const char *const pod_phase_names[] = {
	[HF_POD_PENDING] = "Pending",
	[HF_POD_RUNNING] = "Running",
	[HF_POD_SUCCEEDED] = "Succeeded",
	[HF_POD_FAILED] = "Failed",
};
static const char *const process_phase_names[] = {
	[HF_PROCESS_WAITING] = "Waiting",
	[HF_PROCESS_RUNNING] = "Running",
	[HF_PROCESS_ENDED] = "Ended",
	[HF_PROCESS_DOWN] = "Down",
};
static const char *const policy_names[] = {
	[HF_RESTART_UNSET] = "",
	[HF_RESTART_ALWAYS] = "Always",
	[HF_RESTART_ON_FAILURE] = "OnFailure",
	[HF_RESTART_NEVER] = "Never",
	[HF_RESTART_EXIT_CODE] = "ExitCode",
	[HF_RESTART_UNKNOWN] = "",
};
static const char *const action_names[] = {
	[HF_RULE_FAIL_JOB] = "FailJob",
	[HF_RULE_IGNORE] = "Ignore",
	[HF_RULE_COUNT] = "Count",
	[HF_RULE_RESTART_REPLICA] = "RestartReplica",
	[HF_RULE_RESTART_JOB] = "RestartJob",
	[HF_RULE_UNKNOWN] = "",
};

/* The index of the text in the table, or fallback if it is not there.  "" never matches. */
static int find_in_table(const char *const *names, size_t names_len, const char *text, int fallback)
{
	if (hf_str_is_empty(text))
		return fallback;
	for (size_t i = 0; i < names_len; i++) {
		if (hf_streq(names[i], text))
			return (int)i;
	}
	return fallback;
}
#define FIND(names, text, fallback) find_in_table((names), HF_ARRAY_LEN(names), (text), (fallback))

const char *hf_class_name(enum hf_class cls)
{
	hf_assert((size_t)cls < HF_ARRAY_LEN(class_names));
	return class_names[cls];
}

enum hf_class hf_class_parse(const char *name)
{
	return (enum hf_class)FIND(class_names, name, HF_CLASS_NONE);
}

void hf_ledger_restarts(const struct hf_ledger *ledger, int64_t ret_restarts[HF_BUDGETS])
{
	const struct hf_record *last = ledger->records_len > 0 ? &ledger->records[0] : NULL;
	enum hf_budget charged = ledger->incident.charged;

	memcpy(ret_restarts, ledger->restarts, sizeof(ledger->restarts));
	/* The incident that ended the job was charged and restarted nothing. */
	if (last && !last->scope && last->incident == ledger->incident.id &&
	    (int)charged < HF_BUDGETS && ret_restarts[charged] > 0)
		ret_restarts[charged]--;
}

void hf_restarts_text(const int64_t restarts[HF_BUDGETS], char text[HF_RESTARTS_TEXT_MAX])
{
	int64_t sum = 0;
	int kinds = 0;
	size_t len;

	for (int i = 0; i < HF_BUDGETS; i++) {
		/* Any client may have edited a counter, so a number may be out of range. */
		if (restarts[i] < 0 || restarts[i] > INT32_MAX) {
			snprintf(text, HF_RESTARTS_TEXT_MAX, "?");
			return;
		}
		sum += restarts[i];
		kinds += restarts[i] > 0;
	}
	len = (size_t)snprintf(text, HF_RESTARTS_TEXT_MAX, "%lld", (long long)sum);
	for (int i = 0, n = 0; i < HF_BUDGETS; i++) {
		if (restarts[i] == 0)
			continue;
		len += (size_t)snprintf(text + len, HF_RESTARTS_TEXT_MAX - len, "%s",
					n++ == 0 ? " (" : ", ");
		if (kinds > 1)
			len += (size_t)snprintf(text + len, HF_RESTARTS_TEXT_MAX - len, "%lld ",
						(long long)restarts[i]);
		len += (size_t)snprintf(text + len, HF_RESTARTS_TEXT_MAX - len, "%s%s",
					hf_budget_name((enum hf_budget)i), n == kinds ? ")" : "");
	}
	hf_assert(len < HF_RESTARTS_TEXT_MAX);
}

const char *hf_streak_name(int streak)
{
	hf_assert(streak >= 0 && streak < HF_STREAKS);
	return streak == HF_BUDGET_NONE ? hf_class_name(HF_CLASS_USER)
					: hf_budget_name((enum hf_budget)streak);
}

const char *hf_budget_name(enum hf_budget budget)
{
	hf_assert((size_t)budget < HF_ARRAY_LEN(budget_names));
	return budget_names[budget];
}

enum hf_budget hf_budget_parse(const char *name)
{
	return (enum hf_budget)FIND(budget_names, name, HF_BUDGET_PENDING);
}

const char *hf_phase_name(enum hf_phase phase)
{
	hf_assert((size_t)phase < HF_ARRAY_LEN(phase_names));
	return phase_names[phase];
}

enum hf_phase hf_phase_parse(const char *name)
{
	return (enum hf_phase)FIND(phase_names, name, HF_PHASE_CREATING);
}

enum hf_pod_phase hf_pod_phase_parse(const char *text)
{
	return (enum hf_pod_phase)FIND(pod_phase_names, text, HF_POD_PENDING);
}

const char *hf_pod_phase_name(enum hf_pod_phase phase)
{
	hf_assert((size_t)phase < HF_ARRAY_LEN(pod_phase_names));
	return pod_phase_names[phase];
}

enum hf_process_phase hf_process_phase_parse(const char *text)
{
	return (enum hf_process_phase)FIND(process_phase_names, text, HF_PROCESS_PHASES);
}

enum hf_restart_policy hf_restart_policy_parse(const char *text)
{
	if (hf_str_is_empty(text))
		return HF_RESTART_UNSET;
	return (enum hf_restart_policy)FIND(policy_names, text, HF_RESTART_UNKNOWN);
}

const char *hf_restart_policy_name(enum hf_restart_policy policy)
{
	hf_assert((size_t)policy < HF_ARRAY_LEN(policy_names));
	return policy_names[policy];
}

enum hf_rule_action hf_rule_action_parse(const char *text)
{
	return (enum hf_rule_action)FIND(action_names, text, HF_RULE_UNKNOWN);
}

const char *hf_rule_action_name(enum hf_rule_action action)
{
	hf_assert((size_t)action < HF_ARRAY_LEN(action_names));
	return action_names[action];
}

bool hf_status_recovered(const struct hf_status *status, const struct hf_record *record,
			 hf_time *ret_span)
{
	hf_time start = status->start_time;
	hf_time from = record->detected_at;

	if (record->running_at == HF_TIME_NONE || from == HF_TIME_NONE || start == HF_TIME_NONE ||
	    start > record->running_at)
		return false;
	/* If the job was resumed after the fault, the span starts with the resume. */
	if (start > from)
		from = start;
	*ret_span = record->running_at > from ? record->running_at - from : 0;
	return true;
}

const struct hf_condition *hf_status_condition(const struct hf_status *status, const char *type)
{
	hf_assert(type);
	for (size_t i = 0; i < status->conditions_len; i++) {
		if (hf_streq(status->conditions[i].type, type))
			return &status->conditions[i];
	}
	return NULL;
}

bool hf_status_is_true(const struct hf_status *status, const char *type)
{
	const struct hf_condition *condition = hf_status_condition(status, type);

	return condition && hf_streq(condition->status, "True");
}

bool hf_status_is_finished(const struct hf_status *status)
{
	return hf_status_is_true(status, HF_COND_SUCCEEDED) ||
	       hf_status_is_true(status, HF_COND_FAILED);
}

enum hf_budget hf_class_budget(enum hf_class cls)
{
	static const enum hf_budget budgets[] = {
		[HF_CLASS_NONE] = HF_BUDGET_NONE,
		[HF_CLASS_OURS] = HF_BUDGET_NONE,
		[HF_CLASS_OUT_OF_MEMORY] = HF_BUDGET_APPLICATION,
		[HF_CLASS_INFRASTRUCTURE] = HF_BUDGET_INFRASTRUCTURE,
		[HF_CLASS_DEVICE] = HF_BUDGET_DEVICE,
		[HF_CLASS_ADMISSION] = HF_BUDGET_INFRASTRUCTURE,
		[HF_CLASS_USER] = HF_BUDGET_NONE,
		[HF_CLASS_APPLICATION] = HF_BUDGET_APPLICATION,
	};

	hf_assert((size_t)cls < HF_ARRAY_LEN(budgets));
	return budgets[cls];
}

bool hf_class_is_application(enum hf_class cls)
{
	return hf_class_budget(cls) == HF_BUDGET_APPLICATION;
}
