/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/job.h"

#include "api/reader_internal.h"
#include "api/writer_internal.h"

/*
 * Writes core's status into JSON. Each object starts as a copy of the stored one, so that members
 * of other writers survive. Two are written from scratch: the ledger, which only Holdfast writes,
 * and the map of replicaStatuses.
 */

static void set_time(struct hf_json *object, const char *key, hf_time time)
{
	char text[HF_TIME_TEXT_MAX];

	if (time == HF_TIME_NONE) {
		hf_json_remove(object, key);
		return;
	}
	hf_time_format(time, text);
	hf_json_set_str(object, key, text);
}

/* Returns a copy of the stored object. If nothing is stored, returns a new object. */
static struct hf_json *copy_or_new(const struct hf_json *stored)
{
	return hf_json_type(stored) == HF_JSON_OBJECT ? hf_json_copy(stored) : hf_json_object();
}

static struct hf_json *write_conditions(const struct hf_status *status,
					const struct hf_json *stored)
{
	struct hf_json *list = hf_json_array();

	for (size_t i = 0; i < status->conditions_len; i++) {
		const struct hf_condition *condition = &status->conditions[i];
		const struct hf_json *before =
			condition->stored >= 0 ? hf_json_item(stored, (size_t)condition->stored)
					       : NULL;
		struct hf_json *item = copy_or_new(before);
		hf_json_set_str(item, "type", condition->type);
		hf_json_set_str(item, "status", condition->status);
		hf_write_text(item, "reason", condition->reason);
		hf_write_text(item, "message", condition->message);
		set_time(item, "lastUpdateTime", condition->last_update);
		set_time(item, "lastTransitionTime", condition->last_transition);
		hf_json_append(list, item);
	}
	return list;
}

/* Leaves out replica types that the kind does not have. Otherwise a count left by another operator
 * would stay for ever, and Kueue keeps a job's quota while any `active` is above 0. */
static struct hf_json *write_replica_statuses(const struct hf_status *status,
					      const struct hf_framework *framework,
					      const struct hf_json *stored)
{
	struct hf_json *map = hf_json_object();

	for (int role = 0; role < framework->roles_len; role++) {
		const struct hf_replica_status *counts = &status->replicas[role];
		const char *name = framework->roles[role].name;
		struct hf_json *entry;
		if (!counts->present)
			continue;
		entry = copy_or_new(hf_json_get(stored, name));
		hf_write_count(entry, "active", counts->active);
		hf_write_count(entry, "succeeded", counts->succeeded);
		hf_write_count(entry, "failed", counts->failed);
		hf_write_text(entry, "selector", counts->selector);
		hf_json_set(map, name, entry);
	}
	return map;
}

static void write_budgets(struct hf_json *ledger, const char *key, const int64_t *budgets, int len)
{
	struct hf_json *object = hf_json_object();

	for (int budget = 0; budget < len; budget++)
		hf_write_count(object, hf_streak_name(budget), budgets[budget]);
	if (hf_json_len(object) > 0)
		hf_json_set(ledger, key, object);
	else
		hf_json_unref(object);
}

static struct hf_json *write_record(const struct hf_record *record)
{
	struct hf_json *object = hf_json_object();

	hf_write_count(object, "generation", record->generation);
	hf_write_count(object, "incident", record->incident);
	hf_write_text(object, "cause", hf_class_name(record->cause));
	hf_write_text(object, "reason", record->reason);
	hf_write_text(object, "message", record->message);
	hf_write_text(object, "scope", record->scope);
	hf_write_text(object, "replica", record->replica);
	hf_write_text(object, "pod", record->pod);
	hf_write_text(object, "node", record->node);
	hf_write_text(object, "device", record->device);
	if (record->exit_code.set)
		hf_json_set_i64(object, "exitCode", record->exit_code.value);
	if (record->signal.set)
		hf_json_set_i64(object, "signal", record->signal.value);
	hf_write_text(object, "rule", record->rule);
	hf_write_micro_time(object, "detectedAt", record->detected_at);
	hf_write_micro_time(object, "decidedAt", record->decided_at);
	hf_write_micro_time(object, "runningAt", record->running_at);
	if (record->in_place)
		hf_json_set(object, "inPlace", hf_json_bool(true));
	hf_write_micro_time(object, "endedAt", record->ended_at);
	hf_write_micro_time(object, "downAt", record->down_at);
	hf_write_micro_time(object, "steppedAt", record->stepped_at);
	hf_write_count(object, "step", record->step);
	hf_write_count(object, "savedStep", record->saved_step);
	return object;
}

static void write_records(struct hf_json *object, const struct hf_ledger *ledger)
{
	struct hf_json *history;

	if (ledger->records_len == 0)
		return;
	hf_json_set(object, "last", write_record(&ledger->records[0]));
	if (ledger->records_len == 1)
		return;
	history = hf_json_array();
	for (size_t i = 1; i < ledger->records_len; i++)
		hf_json_append(history, write_record(&ledger->records[i]));
	hf_json_set(object, "history", history);
}

static void write_incident(struct hf_json *object, const struct hf_incident *incident)
{
	struct hf_json *entry;

	if (incident->id == 0)
		return;
	entry = hf_json_object();
	hf_json_set_i64(entry, "id", incident->id);
	hf_write_micro_time(entry, "openedAt", incident->opened_at);
	hf_write_text(entry, "cause", hf_class_name(incident->cause));
	hf_write_text(entry, "charged", hf_budget_name(incident->charged));
	hf_json_set(object, "incident", entry);
}

static void write_role_ledgers(struct hf_json *object, const struct hf_ledger *ledger,
			       const struct hf_framework *framework)
{
	struct hf_json *map = hf_json_object();

	for (int role = 0; role < framework->roles_len; role++) {
		const struct hf_role_ledger *texts = &ledger->roles[role];
		struct hf_json *entry = hf_json_object();
		hf_write_text(entry, "attempts", texts->attempts);
		hf_write_text(entry, "created", texts->created);
		hf_write_text(entry, "succeeded", texts->succeeded);
		hf_write_text(entry, "seen", texts->seen);
		hf_write_text(entry, "initSeen", texts->init_seen);
		hf_write_text(entry, "trained", texts->trained);
		hf_write_text(entry, "covered", texts->covered);
		hf_write_text(entry, "hold", texts->hold);
		hf_write_text(entry, "inPlace", texts->in_place);
		hf_write_text(entry, "inPlaceSince", texts->in_place_since);
		if (hf_json_len(entry) > 0)
			hf_json_set(map, framework->roles[role].name, entry);
		else
			hf_json_unref(entry);
	}
	if (hf_json_len(map) > 0)
		hf_json_set(object, "replicas", map);
	else
		hf_json_unref(map);
}

struct hf_json *hf_ledger_json(const struct hf_ledger *ledger, const struct hf_framework *framework)
{
	struct hf_json *object = hf_json_object();

	hf_json_set_i64(object, "schema", ledger->schema);
	hf_json_set_i64(object, "generation", ledger->generation);
	hf_json_set_str(object, "phase", hf_phase_name(ledger->phase));
	hf_write_micro_time(object, "since", ledger->since);
	write_incident(object, &ledger->incident);
	hf_write_micro_time(object, "notBefore", ledger->not_before);
	hf_write_count(object, "activeSeconds", ledger->active_seconds);
	write_budgets(object, "restarts", ledger->restarts, HF_BUDGETS);
	write_budgets(object, "streak", ledger->streak, HF_STREAKS);
	write_role_ledgers(object, ledger, framework);
	write_records(object, ledger);
	hf_write_count(object, "downtimeSeconds", ledger->downtime_seconds);
	hf_write_count(object, "productiveSeconds", ledger->productive_seconds);
	hf_write_count(object, "inPlaceBase", ledger->in_place_base);
	hf_write_count(object, "inPlaceIncident", ledger->in_place_incident);
	hf_write_micro_time(object, "inPlaceAt", ledger->in_place_at);
	hf_write_count(object, "inPlaceWaitSeconds", ledger->in_place_wait_seconds);
	hf_write_count(object, "inPlaceGraceSeconds", ledger->in_place_grace_seconds);
	hf_write_count(object, "inPlaceSaveSeconds", ledger->in_place_save_seconds);
	hf_write_count(object, "inPlaceStreak", ledger->in_place_streak);
	hf_write_micro_time(object, "saveUntil", ledger->save_until);
	hf_write_count(object, "step", ledger->step);
	hf_write_count(object, "savedStep", ledger->saved_step);
	hf_write_count(object, "saveMillis", ledger->save_ms);
	hf_write_micro_time(object, "stepsAt", ledger->steps_at);
	hf_write_count(object, "bestStep", ledger->best_step);
	hf_write_count(object, "noProgressStreak", ledger->no_progress_streak);
	hf_write_text(object, "restartHandled", ledger->restart_handled);
	if (ledger->verdict.reason != NULL) {
		struct hf_json *verdict = hf_json_object();
		hf_json_set_str(verdict, "reason", ledger->verdict.reason);
		hf_write_text(verdict, "message", ledger->verdict.message);
		hf_write_micro_time(verdict, "at", ledger->verdict.at);
		hf_json_set(object, "verdict", verdict);
	}
	return object;
}

/* Adds the members for printer columns to the ledger. A ledger in an annotation has no columns. */
static struct hf_json *write_recovery(const struct hf_ledger *ledger,
				      const struct hf_framework *framework)
{
	struct hf_json *object = hf_ledger_json(ledger, framework);
	char summary[HF_RESTARTS_TEXT_MAX];
	int64_t restarts[HF_BUDGETS];

	hf_ledger_restarts(ledger, restarts);
	hf_restarts_text(restarts, summary);
	hf_json_set_str(object, "summary", summary);
	return object;
}

struct hf_json *hf_status_write(const struct hf_status *status,
				const struct hf_framework *framework, const struct hf_json *stored)
{
	struct hf_json *object = copy_or_new(stored);

	hf_json_set(object, "conditions",
		    write_conditions(status, hf_json_get(stored, "conditions")));
	hf_json_set(
		object, "replicaStatuses",
		write_replica_statuses(status, framework, hf_json_get(stored, "replicaStatuses")));
	set_time(object, "startTime", status->start_time);
	set_time(object, "completionTime", status->completion_time);
	set_time(object, "lastReconcileTime", status->last_reconcile_time);
	if (status->ledger.kept)
		return object;
	if (status->ledger.present)
		hf_json_set(object, "recovery", write_recovery(&status->ledger, framework));
	else
		hf_json_remove(object, "recovery");
	return object;
}
