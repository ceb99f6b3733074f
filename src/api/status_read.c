/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/job.h"

#include "api/reader_internal.h"
#include "base/str.h"

/*
 * Reads a job's status: conditions, replica statuses and the ledger (status.recovery). Fields that
 * cannot be read count as absent; a status has no errors to report.
 */

/* The most conditions that are read, those of Holdfast and of other writers. No controller makes a
 * longer list. */
#define CONDITIONS_MAX 64

static void read_conditions(struct hf_reader *r, const struct hf_json *status,
			    struct hf_status *ret_status)
{
	const struct hf_json *list = hf_reader_get(r, status, "conditions", HF_JSON_ARRAY);
	size_t n = hf_json_len(list) < CONDITIONS_MAX ? hf_json_len(list) : CONDITIONS_MAX, len = 0;
	struct hf_condition *conditions = HF_ARENA_ARRAY(r->arena, struct hf_condition, n + 1);

	for (size_t i = 0; i < n; i++) {
		const struct hf_json *item = hf_json_item(list, i);
		const char *type = hf_json_path_str(item, "type", NULL);
		if (type == NULL)
			continue;
		conditions[len++] = (struct hf_condition){
			.type = type,
			.status = hf_str_or(hf_reader_str(r, item, "status"), ""),
			.reason = hf_reader_str(r, item, "reason"),
			.message = hf_reader_str(r, item, "message"),
			.last_update = hf_reader_time(r, item, "lastUpdateTime"),
			.last_transition = hf_reader_time(r, item, "lastTransitionTime"),
			.stored = (int)i,
		};
	}
	ret_status->conditions = conditions;
	ret_status->conditions_len = len;
}

static int32_t read_replica_count(struct hf_reader *r, const struct hf_json *object,
				  const char *key)
{
	return (int32_t)hf_reader_int(r, object, key, 0, INT32_MAX).value;
}

static void read_replica_statuses(struct hf_reader *r, const struct hf_json *status,
				  const struct hf_framework *framework,
				  struct hf_status *ret_status)
{
	const struct hf_json *map = hf_reader_get(r, status, "replicaStatuses", HF_JSON_OBJECT);

	for (int role = 0; role < framework->roles_len; role++) {
		const struct hf_json *entry =
			hf_reader_get(r, map, framework->roles[role].name, HF_JSON_OBJECT);
		ret_status->replicas[role] = (struct hf_replica_status){
			.present = entry != NULL,
			.active = read_replica_count(r, entry, "active"),
			.succeeded = read_replica_count(r, entry, "succeeded"),
			.failed = read_replica_count(r, entry, "failed"),
			.selector = hf_reader_str(r, entry, "selector"),
		};
	}
}

static int64_t read_number(struct hf_reader *r, const struct hf_json *object, const char *key)
{
	return hf_reader_int(r, object, key, 0, INT64_MAX).value;
}

static void read_budgets(struct hf_reader *r, const struct hf_json *ledger, const char *key,
			 int64_t *ret_budgets, int len)
{
	const struct hf_json *object = hf_reader_get(r, ledger, key, HF_JSON_OBJECT);

	for (int budget = 0; budget < len; budget++)
		ret_budgets[budget] = read_number(r, object, hf_streak_name(budget));
}

static void read_record(struct hf_reader *r, const struct hf_json *object,
			struct hf_record *ret_record)
{
	*ret_record = (struct hf_record){
		.generation = read_number(r, object, "generation"),
		.incident = read_number(r, object, "incident"),
		.cause = hf_class_parse(hf_str_or(hf_reader_str(r, object, "cause"), "")),
		.reason = hf_reader_str(r, object, "reason"),
		.message = hf_reader_str(r, object, "message"),
		.scope = hf_reader_str(r, object, "scope"),
		.replica = hf_reader_str(r, object, "replica"),
		.pod = hf_reader_str(r, object, "pod"),
		.node = hf_reader_str(r, object, "node"),
		.device = hf_reader_str(r, object, "device"),
		.exit_code = hf_reader_i32(r, object, "exitCode"),
		.signal = hf_reader_i32(r, object, "signal"),
		.rule = hf_reader_str(r, object, "rule"),
		.detected_at = hf_reader_time(r, object, "detectedAt"),
		.decided_at = hf_reader_time(r, object, "decidedAt"),
		.running_at = hf_reader_time(r, object, "runningAt"),
		.in_place = hf_reader_bool(r, object, "inPlace").value,
		.ended_at = hf_reader_time(r, object, "endedAt"),
		.down_at = hf_reader_time(r, object, "downAt"),
		.stepped_at = hf_reader_time(r, object, "steppedAt"),
		.step = read_number(r, object, "step"),
		.saved_step = read_number(r, object, "savedStep"),
	};
}

/* Reads the records of incidents: "last" is the newest, "history" has the older ones. */
static void read_records(struct hf_reader *r, const struct hf_json *ledger,
			 struct hf_ledger *ret_ledger)
{
	const struct hf_json *last = hf_reader_get(r, ledger, "last", HF_JSON_OBJECT);
	const struct hf_json *history = hf_reader_get(r, ledger, "history", HF_JSON_ARRAY);
	size_t len = 0;

	if (last != NULL)
		read_record(r, last, &ret_ledger->records[len++]);
	for (size_t i = 0; i < hf_json_len(history) && len < HF_RECORDS_MAX; i++)
		read_record(r, hf_json_item(history, i), &ret_ledger->records[len++]);
	ret_ledger->records_len = len;
}

static void read_role_ledgers(struct hf_reader *r, const struct hf_json *ledger,
			      const struct hf_framework *framework, struct hf_ledger *ret_ledger)
{
	const struct hf_json *map = hf_reader_get(r, ledger, "replicas", HF_JSON_OBJECT);

	for (int role = 0; role < framework->roles_len; role++) {
		const struct hf_json *entry =
			hf_reader_get(r, map, framework->roles[role].name, HF_JSON_OBJECT);
		ret_ledger->roles[role] = (struct hf_role_ledger){
			.attempts = hf_reader_str(r, entry, "attempts"),
			.created = hf_reader_str(r, entry, "created"),
			.succeeded = hf_reader_str(r, entry, "succeeded"),
			.seen = hf_reader_str(r, entry, "seen"),
			.init_seen = hf_reader_str(r, entry, "initSeen"),
			.trained = hf_reader_str(r, entry, "trained"),
			.covered = hf_reader_str(r, entry, "covered"),
			.hold = hf_reader_str(r, entry, "hold"),
			.in_place = hf_reader_str(r, entry, "inPlace"),
			.in_place_since = hf_reader_str(r, entry, "inPlaceSince"),
		};
	}
}

void hf_read_ledger(struct hf_reader *r, const struct hf_json *ledger,
		    const struct hf_framework *framework, struct hf_ledger *ret_ledger)
{
	const struct hf_json *incident = hf_reader_get(r, ledger, "incident", HF_JSON_OBJECT);
	const struct hf_json *verdict = hf_reader_get(r, ledger, "verdict", HF_JSON_OBJECT);
	const struct hf_json *schema;

	ret_ledger->present = ledger != NULL;
	ret_ledger->schema = read_number(r, ledger, "schema");
	/* A schema number of another type marks a form that this version does not know, so nothing
	 * in the ledger is trusted. */
	schema = hf_json_get(ledger, "schema");
	if (schema != NULL && hf_json_type(schema) != HF_JSON_INT)
		ret_ledger->schema = -1;
	ret_ledger->generation = read_number(r, ledger, "generation");
	ret_ledger->phase = hf_phase_parse(hf_str_or(hf_reader_str(r, ledger, "phase"), ""));
	ret_ledger->since = hf_reader_time(r, ledger, "since");
	ret_ledger->incident = (struct hf_incident){
		.id = read_number(r, incident, "id"),
		.opened_at = hf_reader_time(r, incident, "openedAt"),
		.cause = hf_class_parse(hf_str_or(hf_reader_str(r, incident, "cause"), "")),
		.charged = hf_budget_parse(hf_reader_str(r, incident, "charged")),
	};
	ret_ledger->not_before = hf_reader_time(r, ledger, "notBefore");
	ret_ledger->active_seconds = read_number(r, ledger, "activeSeconds");
	read_budgets(r, ledger, "restarts", ret_ledger->restarts, HF_BUDGETS);
	read_budgets(r, ledger, "streak", ret_ledger->streak, HF_STREAKS);
	read_role_ledgers(r, ledger, framework, ret_ledger);
	read_records(r, ledger, ret_ledger);
	ret_ledger->downtime_seconds = read_number(r, ledger, "downtimeSeconds");
	ret_ledger->productive_seconds = read_number(r, ledger, "productiveSeconds");
	ret_ledger->in_place_base = read_number(r, ledger, "inPlaceBase");
	ret_ledger->in_place_incident = read_number(r, ledger, "inPlaceIncident");
	ret_ledger->in_place_at = hf_reader_time(r, ledger, "inPlaceAt");
	ret_ledger->in_place_wait_seconds = read_number(r, ledger, "inPlaceWaitSeconds");
	ret_ledger->in_place_grace_seconds = read_number(r, ledger, "inPlaceGraceSeconds");
	ret_ledger->in_place_save_seconds = read_number(r, ledger, "inPlaceSaveSeconds");
	ret_ledger->in_place_streak = read_number(r, ledger, "inPlaceStreak");
	ret_ledger->save_until = hf_reader_time(r, ledger, "saveUntil");
	ret_ledger->step = read_number(r, ledger, "step");
	ret_ledger->saved_step = read_number(r, ledger, "savedStep");
	ret_ledger->save_ms = read_number(r, ledger, "saveMillis");
	ret_ledger->steps_at = hf_reader_time(r, ledger, "stepsAt");
	ret_ledger->best_step = read_number(r, ledger, "bestStep");
	ret_ledger->no_progress_streak = read_number(r, ledger, "noProgressStreak");
	ret_ledger->restart_handled = hf_reader_str(r, ledger, "restartHandled");
	ret_ledger->verdict = (struct hf_verdict){
		.reason = hf_reader_str(r, verdict, "reason"),
		.message = hf_reader_str(r, verdict, "message"),
		.at = hf_reader_time(r, verdict, "at"),
	};
}

void hf_status_read(const struct hf_json *status, const struct hf_framework *framework,
		    struct hf_arena *arena, struct hf_status *ret_status)
{
	/* This reader has no list of errors, so fields that cannot be read count as absent. */
	struct hf_reader r = {.arena = arena};
	struct hf_status read = {.conditions_len = 0};

	read_conditions(&r, status, &read);
	read_replica_statuses(&r, status, framework, &read);
	read.start_time = hf_reader_time(&r, status, "startTime");
	read.completion_time = hf_reader_time(&r, status, "completionTime");
	read.last_reconcile_time = hf_reader_time(&r, status, "lastReconcileTime");
	hf_read_ledger(&r, hf_reader_get(&r, status, "recovery", HF_JSON_OBJECT), framework,
		       &read.ledger);
	*ret_status = read;
}
