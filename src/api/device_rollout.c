/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/device_rollout.h"

#include "api/writer_internal.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * Reads and writes the status of a DeviceRollout, and the mark that a rollout leaves on a Node. The reader
 * is strict: a phase that cannot be read must not count as none. The writers cut texts and lists to what
 * the CRD's schema allows.
 */

/* The schema of the CRD counts characters; a character has at most four bytes. */
#define TEXT_BYTES ((int64_t)4 * HF_ROLLOUT_TEXT_MAX)
#define MESSAGE_BYTES ((int64_t)4 * HF_ROLLOUT_MESSAGE_MAX)
#define COUNT_MAX INT32_MAX
#define NEEDED (HF_FIELD_REQUIRED | HF_FIELD_NONEMPTY)
#define TEXT(key, type, member) HF_FIELD_STRING(key, type, member, TEXT_BYTES, 0)

/* ---- writing ------------------------------------------------------------------------------- */

static void set_text(struct hf_json *object, const char *key, const char *text)
{
	hf_write_cut_or_null(object, key, text, HF_ROLLOUT_TEXT_MAX);
}

/* For items of lists, which a merge patch replaces as a whole: without a text there is no member. */
static void add_text(struct hf_json *object, const char *key, const char *text, size_t bytes_max)
{
	if (!hf_str_is_empty(text))
		hf_json_set(object, key, hf_write_cut(text, bytes_max));
}

static void write_times(struct hf_json *json, const struct hf_rollout_times *times)
{
	if (times->step_us > 0)
		hf_json_set_i64(json, "stepMicros", times->step_us);
	if (times->run_ms > 0)
		hf_json_set_i64(json, "runMillis", times->run_ms);
}

static struct hf_json *write_before(const struct hf_rollout_node *n)
{
	struct hf_json *json = hf_json_object(), *resources;

	if (n->before.resources.len > 0) {
		resources = hf_json_ensure_object(json, "resources");
		for (size_t i = 0;
		     i < hf_at_most(n->before.resources.len, HF_ROLLOUT_RESOURCES_MAX); i++)
			hf_json_set_str(resources, n->before.resources.items[i].key,
					hf_str_or(n->before.resources.items[i].value, "0"));
	}
	add_text(json, "driverVersion", n->before.driver_version, HF_ROLLOUT_TEXT_MAX);
	add_text(json, "bootID", n->before.boot_id, HF_ROLLOUT_TEXT_MAX);
	write_times(json, &n->before.canary);
	return json;
}

static struct hf_json *write_canary(const struct hf_rollout_node *n)
{
	struct hf_json *json = hf_json_object();

	hf_json_set(json, "job", hf_write_cut(n->canary.job, HF_ROLLOUT_TEXT_MAX));
	write_times(json, &n->canary.times);
	if (n->canary.failed)
		hf_json_set_bool(json, "failed", true);
	return json;
}

static struct hf_json *write_node(const struct hf_rollout_node *n)
{
	struct hf_json *json = hf_json_object(), *before = write_before(n);

	hf_json_set_str(json, "name", n->name);
	hf_json_set_str(json, "phase", n->phase);
	add_text(json, "outcome", n->outcome, HF_ROLLOUT_TEXT_MAX);
	hf_write_micro_time(json, "since", n->since);
	hf_write_micro_time(json, "changedTime", n->changed_at);
	/* A label may have the value "", which differs from no label. */
	if (n->previous != NULL)
		hf_json_set(json, "previous", hf_write_cut(n->previous, HF_ROLLOUT_TEXT_MAX));
	if (n->cordoned_by_us)
		hf_json_set_bool(json, "cordonedByUs", true);
	if (n->was_well)
		hf_json_set_bool(json, "wasWell", true);
	if (n->was_away)
		hf_json_set_bool(json, "wasAway", true);
	hf_write_count(json, "tries", n->tries);
	if (hf_json_len(before) > 0)
		hf_json_set(json, "before", before);
	else
		hf_json_unref(before);
	if (n->canary.job != NULL)
		hf_json_set(json, "canary", write_canary(n));
	add_text(json, "message", n->message, HF_ROLLOUT_MESSAGE_MAX);
	return json;
}

static struct hf_json *write_evidence(const struct hf_rollout_evidence *e)
{
	struct hf_json *json = hf_json_object();

	hf_json_set_i64(json, "nodes", e->nodes);
	hf_json_set_i64(json, "deviceMinutes", e->device_minutes);
	hf_json_set_i64(json, "faults", e->faults);
	hf_json_set_i64(json, "restarts", e->restarts);
	hf_json_set_i64(json, "stepNodes", e->step_nodes);
	return json;
}

static struct hf_json *write_conditions(const struct hf_rollout_status *status)
{
	struct hf_json *list = hf_json_array();

	for (size_t i = 0; i < hf_at_most(status->conditions.len, HF_ROLLOUT_CONDITIONS_MAX); i++) {
		const struct hf_rollout_condition *c = &status->conditions.items[i];
		struct hf_json *item = hf_json_object();

		hf_json_set_str(item, "type", c->type);
		hf_json_set_str(item, "status", c->status);
		hf_json_set_str(item, "reason", hf_str_or(c->reason, "Unknown"));
		hf_json_set(item, "message",
			    hf_write_cut(hf_str_or(c->message, ""), HF_ROLLOUT_MESSAGE_MAX));
		hf_write_micro_time(item, "lastTransitionTime", c->since);
		hf_json_append(list, item);
	}
	return list;
}

struct hf_json *hf_rollout_status_patch(const char *resource_version,
					const struct hf_rollout_status *status)
{
	struct hf_json *json, *patch = hf_write_guarded_status(resource_version, &json), *part;
	struct hf_json *nodes = hf_json_array();

	set_text(json, "phase", status->phase);
	hf_write_cut_or_null(json, "message", status->message, HF_ROLLOUT_MESSAGE_MAX);
	hf_json_set_i64(json, "wave", status->wave);
	hf_write_time_or_null(json, "startedTime", status->started_at);
	hf_write_time_or_null(json, "soakSince", status->soak_since);
	set_text(json, "targetRevision", status->target_revision);
	set_text(json, "fromRevision", status->from_revision);
	part = hf_json_ensure_object(json, "counts");
	hf_json_set_i64(part, "selected", status->counts.selected);
	hf_json_set_i64(part, "changed", status->counts.changed);
	hf_json_set_i64(part, "failed", status->counts.failed);
	hf_json_set_i64(part, "skipped", status->counts.skipped);
	part = hf_json_ensure_object(json, "evidence");
	hf_json_set(part, "changed", write_evidence(&status->changed));
	hf_json_set(part, "unchanged", write_evidence(&status->unchanged));
	hf_json_set_i64(part, "stepPermille", status->step_permille);
	for (size_t i = 0; i < hf_at_most(status->nodes.len, HF_ROLLOUT_NODES_MAX); i++)
		hf_json_append(nodes, write_node(&status->nodes.items[i]));
	hf_json_set(json, "nodes", nodes);
	hf_json_set(json, "conditions", write_conditions(status));
	return patch;
}

/* ---- reading ------------------------------------------------------------------------------- */

struct before {
	uint64_t present;
	HF_LIST(struct hf_field_pair) resources;
	const char *driver_version, *boot_id;
	int64_t step_us, run_ms;
};
static const struct hf_field before_fields[] = {
	HF_FIELD_STRING_MAP("resources", struct before, resources, HF_ROLLOUT_RESOURCES_MAX, 0),
	TEXT("driverVersion", struct before, driver_version),
	TEXT("bootID", struct before, boot_id),
	HF_FIELD_INT64("stepMicros", struct before, step_us, 0, INT64_MAX, 0),
	HF_FIELD_INT64("runMillis", struct before, run_ms, 0, INT64_MAX, 0),
};
static const struct hf_field_table before_table = HF_FIELD_TABLE(before_fields, struct before);

struct canary {
	uint64_t present;
	const char *job;
	int64_t step_us, run_ms;
	bool failed;
};
static const struct hf_field canary_fields[] = {
	TEXT("job", struct canary, job),
	HF_FIELD_INT64("stepMicros", struct canary, step_us, 0, INT64_MAX, 0),
	HF_FIELD_INT64("runMillis", struct canary, run_ms, 0, INT64_MAX, 0),
	HF_FIELD_BOOL("failed", struct canary, failed, 0),
};
static const struct hf_field_table canary_table = HF_FIELD_TABLE(canary_fields, struct canary);

struct node {
	uint64_t present;
	const char *name, *phase, *outcome, *previous, *message;
	hf_time since, changed;
	bool cordoned, was_well, was_away;
	int32_t tries;
	struct before before;
	struct canary canary;
};
enum { NODE_SINCE, NODE_CHANGED };
static const struct hf_field node_fields[] = {
	[NODE_SINCE] = HF_FIELD_TIME("since", struct node, since, 0),
	[NODE_CHANGED] = HF_FIELD_TIME("changedTime", struct node, changed, 0),
	HF_FIELD_STRING("name", struct node, name, 253, NEEDED),
	HF_FIELD_STRING("phase", struct node, phase, 64, NEEDED),
	HF_FIELD_STRING("outcome", struct node, outcome, 64, 0),
	TEXT("previous", struct node, previous),
	HF_FIELD_BOOL("cordonedByUs", struct node, cordoned, 0),
	HF_FIELD_BOOL("wasWell", struct node, was_well, 0),
	HF_FIELD_BOOL("wasAway", struct node, was_away, 0),
	HF_FIELD_INT32("tries", struct node, tries, 0, COUNT_MAX, 0),
	HF_FIELD_OBJECT("before", struct node, before, &before_table, 0),
	HF_FIELD_OBJECT("canary", struct node, canary, &canary_table, 0),
	HF_FIELD_STRING("message", struct node, message, MESSAGE_BYTES, 0),
};
static const struct hf_field_table node_table = HF_FIELD_TABLE(node_fields, struct node);

struct numbers {
	uint64_t present;
	int64_t nodes, device_minutes, faults, restarts, step_nodes;
};
static const struct hf_field numbers_fields[] = {
	HF_FIELD_INT64("nodes", struct numbers, nodes, 0, INT64_MAX, 0),
	HF_FIELD_INT64("deviceMinutes", struct numbers, device_minutes, 0, INT64_MAX, 0),
	HF_FIELD_INT64("faults", struct numbers, faults, 0, INT64_MAX, 0),
	HF_FIELD_INT64("restarts", struct numbers, restarts, 0, INT64_MAX, 0),
	HF_FIELD_INT64("stepNodes", struct numbers, step_nodes, 0, INT64_MAX, 0),
};
static const struct hf_field_table numbers_table = HF_FIELD_TABLE(numbers_fields, struct numbers);

struct evidence {
	uint64_t present;
	struct numbers changed, unchanged;
	int64_t step_permille;
};
static const struct hf_field evidence_fields[] = {
	HF_FIELD_OBJECT("changed", struct evidence, changed, &numbers_table, 0),
	HF_FIELD_OBJECT("unchanged", struct evidence, unchanged, &numbers_table, 0),
	HF_FIELD_INT64("stepPermille", struct evidence, step_permille, 0, INT64_MAX, 0),
};
static const struct hf_field_table evidence_table =
	HF_FIELD_TABLE(evidence_fields, struct evidence);

struct counts {
	uint64_t present;
	int32_t selected, changed, failed, skipped;
};
static const struct hf_field counts_fields[] = {
	HF_FIELD_INT32("selected", struct counts, selected, 0, COUNT_MAX, 0),
	HF_FIELD_INT32("changed", struct counts, changed, 0, COUNT_MAX, 0),
	HF_FIELD_INT32("failed", struct counts, failed, 0, COUNT_MAX, 0),
	HF_FIELD_INT32("skipped", struct counts, skipped, 0, COUNT_MAX, 0),
};
static const struct hf_field_table counts_table = HF_FIELD_TABLE(counts_fields, struct counts);

struct condition {
	uint64_t present;
	const char *type, *status, *reason, *message;
	hf_time since;
};
enum { CONDITION_SINCE };
static const struct hf_field condition_fields[] = {
	[CONDITION_SINCE] = HF_FIELD_TIME("lastTransitionTime", struct condition, since, 0),
	HF_FIELD_STRING("type", struct condition, type, TEXT_BYTES, NEEDED),
	HF_FIELD_STRING("status", struct condition, status, 16, NEEDED),
	TEXT("reason", struct condition, reason),
	HF_FIELD_STRING("message", struct condition, message, MESSAGE_BYTES, 0),
};
static const struct hf_field_table condition_table =
	HF_FIELD_TABLE(condition_fields, struct condition);

struct status {
	uint64_t present;
	const char *phase, *message, *target, *from;
	int32_t wave;
	hf_time started, soak;
	struct counts counts;
	struct evidence evidence;
	HF_LIST(struct node) nodes;
	HF_LIST(struct condition) conditions;
};
enum { STATUS_STARTED, STATUS_SOAK };
static const struct hf_field status_fields[] = {
	[STATUS_STARTED] = HF_FIELD_TIME("startedTime", struct status, started, 0),
	[STATUS_SOAK] = HF_FIELD_TIME("soakSince", struct status, soak, 0),
	HF_FIELD_STRING("phase", struct status, phase, 64, 0),
	HF_FIELD_STRING("message", struct status, message, MESSAGE_BYTES, 0),
	HF_FIELD_INT32("wave", struct status, wave, 0, HF_ROLLOUT_WAVES_MAX, 0),
	TEXT("targetRevision", struct status, target),
	TEXT("fromRevision", struct status, from),
	HF_FIELD_OBJECT("counts", struct status, counts, &counts_table, 0),
	HF_FIELD_OBJECT("evidence", struct status, evidence, &evidence_table, 0),
	HF_FIELD_OBJECTS("nodes", struct status, nodes, &node_table, HF_ROLLOUT_NODES_MAX, 0),
	HF_FIELD_OBJECTS("conditions", struct status, conditions, &condition_table,
			 HF_ROLLOUT_CONDITIONS_MAX, 0),
};
static const struct hf_field_table status_table = HF_FIELD_TABLE(status_fields, struct status);

struct metadata {
	uint64_t present;
	const char *name, *uid, *resource_version;
	hf_time created;
	HF_LIST(const char *) finalizers;
};
enum { METADATA_CREATED, METADATA_DELETED };
static const struct hf_field metadata_fields[] = {
	[METADATA_CREATED] = HF_FIELD_TIME("creationTimestamp", struct metadata, created, 0),
	[METADATA_DELETED] = HF_FIELD_PRESENCE("deletionTimestamp", 0),
	HF_FIELD_STRING("name", struct metadata, name, 253, NEEDED),
	HF_FIELD_STRING("uid", struct metadata, uid, 128, 0),
	HF_FIELD_STRING("resourceVersion", struct metadata, resource_version, 128, 0),
	HF_FIELD_STRINGS("finalizers", struct metadata, finalizers, 64, 0),
};
static const struct hf_field_table metadata_table =
	HF_FIELD_TABLE(metadata_fields, struct metadata);

struct object {
	uint64_t present;
	struct metadata metadata;
	struct status status;
};
static const struct hf_field object_fields[] = {
	HF_FIELD_OBJECT("metadata", struct object, metadata, &metadata_table, HF_FIELD_REQUIRED),
	HF_FIELD_OBJECT("status", struct object, status, &status_table, 0),
};
static const struct hf_field_table object_table = HF_FIELD_TABLE(object_fields, struct object);

static struct hf_rollout_node node_of(const struct node *n)
{
	return (struct hf_rollout_node){
		.name = n->name,
		.phase = n->phase,
		.outcome = n->outcome,
		.since = hf_field_time(n->present, NODE_SINCE, n->since),
		.changed_at = hf_field_time(n->present, NODE_CHANGED, n->changed),
		.previous = n->previous,
		.cordoned_by_us = n->cordoned,
		.was_well = n->was_well,
		.was_away = n->was_away,
		.tries = n->tries,
		.before = {.resources = {n->before.resources.items, n->before.resources.len},
			   .driver_version = n->before.driver_version,
			   .boot_id = n->before.boot_id,
			   .canary = {.step_us = n->before.step_us, .run_ms = n->before.run_ms}},
		.canary = {.job = n->canary.job,
			   .times = {.step_us = n->canary.step_us, .run_ms = n->canary.run_ms},
			   .failed = n->canary.failed},
		.message = n->message,
	};
}

static struct hf_rollout_evidence evidence_of(const struct numbers *n)
{
	return (struct hf_rollout_evidence){.nodes = n->nodes,
					    .device_minutes = n->device_minutes,
					    .faults = n->faults,
					    .restarts = n->restarts,
					    .step_nodes = n->step_nodes};
}

static struct hf_rollout_status status_of(const struct status *s, struct hf_arena *arena)
{
	struct hf_rollout_status status = {
		.phase = s->phase,
		.message = s->message,
		.wave = s->wave,
		.started_at = hf_field_time(s->present, STATUS_STARTED, s->started),
		.soak_since = hf_field_time(s->present, STATUS_SOAK, s->soak),
		.target_revision = s->target,
		.from_revision = s->from,
		.counts = {.selected = s->counts.selected,
			   .changed = s->counts.changed,
			   .failed = s->counts.failed,
			   .skipped = s->counts.skipped},
		.changed = evidence_of(&s->evidence.changed),
		.unchanged = evidence_of(&s->evidence.unchanged),
		.step_permille = s->evidence.step_permille,
		.nodes = {HF_ARENA_ARRAY(arena, struct hf_rollout_node, s->nodes.len + 1),
			  s->nodes.len},
		.conditions = {HF_ARENA_ARRAY(arena, struct hf_rollout_condition,
					      s->conditions.len + 1),
			       s->conditions.len},
	};

	for (size_t i = 0; i < s->nodes.len; i++)
		status.nodes.items[i] = node_of(&s->nodes.items[i]);
	for (size_t i = 0; i < s->conditions.len; i++) {
		const struct condition *c = &s->conditions.items[i];

		status.conditions.items[i] = (struct hf_rollout_condition){
			.type = c->type,
			.status = c->status,
			.reason = c->reason,
			.message = c->message,
			.since = hf_field_time(c->present, CONDITION_SINCE, c->since)};
	}
	return status;
}

static bool has_finalizer(const struct metadata *m)
{
	for (size_t i = 0; i < m->finalizers.len; i++)
		if (hf_streq(m->finalizers.items[i], HF_ROLLOUT_FINALIZER))
			return true;
	return false;
}

int hf_rollout_read(struct hf_doc *doc, struct hf_arena *arena, struct hf_rollout *ret_rollout,
		    struct hf_error *err)
{
	struct object object;
	const struct metadata *m = &object.metadata;
	int rc = hf_fields_read_doc(&object_table, doc, NULL, arena, &object, err);

	if (rc != 0)
		return rc;
	*ret_rollout = (struct hf_rollout){
		.name = m->name,
		.uid = m->uid,
		.resource_version = m->resource_version,
		.created_at = hf_field_time(m->present, METADATA_CREATED, m->created),
		.deleting = hf_field_has(m->present, METADATA_DELETED),
		.has_finalizer = has_finalizer(m),
		.status = status_of(&object.status, arena),
	};
	return 0;
}

/* ---- the mark on a Node ------------------------------------------------------------------------ */

struct mark {
	uint64_t present;
	const char *rollout, *uid, *previous, *pod;
	hf_time at;
	bool rolled_back;
};
static const struct hf_field mark_fields[] = {
	HF_FIELD_STRING("rollout", struct mark, rollout, 253, NEEDED),
	HF_FIELD_STRING("uid", struct mark, uid, 128, NEEDED),
	HF_FIELD_TIME("time", struct mark, at, HF_FIELD_REQUIRED),
	HF_FIELD_STRING("previous", struct mark, previous, TEXT_BYTES, 0),
	HF_FIELD_STRING("pod", struct mark, pod, 128, 0),
	HF_FIELD_BOOL("rolledBack", struct mark, rolled_back, 0),
};
static const struct hf_field_table mark_table = HF_FIELD_TABLE(mark_fields, struct mark);

const char *hf_rollout_mark_key(const struct hf_rollout_spec *spec,
				char ret_key[HF_ROLLOUT_MARK_KEY_MAX])
{
	HF_AUTO_STRBUF what = HF_STRBUF_INIT(HF_HEALTH_POLICY_TEXT_MAX);

	if (spec->label.key != NULL)
		hf_strbuf_addf(&what, "label %s", spec->label.key);
	else
		hf_strbuf_addf(&what, "daemonset %s/%s", hf_str_or(spec->daemon_set.ns, ""),
			       hf_str_or(spec->daemon_set.name, ""));
	snprintf(ret_key, HF_ROLLOUT_MARK_KEY_MAX, HF_ROLLOUT_MARK_PREFIX "%016" PRIx64,
		 hf_hash_str(what.data));
	return ret_key;
}

struct hf_json *hf_rollout_mark_json(const struct hf_rollout_mark *mark)
{
	struct hf_json *json = hf_json_object();

	hf_json_set_str(json, "rollout", mark->rollout);
	hf_json_set_str(json, "uid", mark->uid);
	hf_write_micro_time(json, "time", mark->at);
	hf_json_set_str(json, "previous", mark->previous);
	hf_json_set_str(json, "pod", mark->pod);
	if (mark->rolled_back)
		hf_json_set_bool(json, "rolledBack", true);
	return json;
}

bool hf_rollout_mark_read(const char *text, struct hf_arena *arena,
			  struct hf_rollout_mark *ret_mark)
{
	const struct hf_fields_text source = {text, text == NULL ? 0 : strlen(text)};
	struct mark read;

	if (text == NULL || hf_fields_read_text(&mark_table, &source, NULL, arena, &read, NULL) < 0)
		return false;
	*ret_mark = (struct hf_rollout_mark){.rollout = read.rollout,
					     .uid = read.uid,
					     .at = read.at,
					     .previous = read.previous,
					     .pod = read.pod,
					     .rolled_back = read.rolled_back};
	return true;
}
