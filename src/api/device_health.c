/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/device_health.h"

#include "api/lifetime.h"
#include "api/writer_internal.h"
#include "base/ascii.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * Converts DeviceHealth objects to struct hf_device_health (for the operator) and back (for the
 * agent). The reader uses field tables and builds no tree; it ignores fields of a wrong type. The
 * writer cuts texts and lists to what the CRD's schema allows.
 */

/* The id under which the node itself is in the list of devices: the list's key must not be empty. */
#define NODE_ID "node"

static const struct hf_fields_options lenient = {.lenient = true};

/* ---- writing ------------------------------------------------------------------------------- */

static void set_text(struct hf_json *object, const char *key, const char *text)
{
	if (!hf_str_is_empty(text))
		hf_json_set(object, key, hf_write_cut(text, HF_DEVICE_HEALTH_TEXT_MAX));
}

static void set_list(struct hf_json *object, const char *key, struct hf_json *list)
{
	if (hf_json_len(list) > 0)
		hf_json_set(object, key, list);
	else
		hf_json_unref(list);
}

static struct hf_json *write_fault(const struct hf_device_fault *fault)
{
	struct hf_json *item = hf_json_object();

	set_text(item, "detector", fault->detector);
	hf_json_set_i64(item, "code", fault->code);
	if (fault->subcode >= 0)
		hf_json_set_i64(item, "subcode", fault->subcode);
	set_text(item, "severity", fault->severity);
	set_text(item, "class", fault->cls);
	set_text(item, "action", fault->action);
	set_text(item, "unit", fault->unit);
	set_text(item, "line", fault->line);
	hf_write_micro_time(item, "firstTime", fault->first);
	hf_write_micro_time(item, "lastTime", fault->last);
	hf_write_count(item, "count", fault->count);
	hf_json_set_bool(item, "active", fault->acts);
	return item;
}

static struct hf_json *write_holder(const struct hf_device_holder *holder)
{
	struct hf_json *item = hf_json_object();

	set_text(item, "namespace", holder->ns);
	set_text(item, "pod", holder->pod);
	set_text(item, "uid", holder->uid);
	set_text(item, "container", holder->container);
	set_text(item, "resource", holder->resource);
	set_text(item, "resourceID", holder->resource_id);
	hf_write_micro_time(item, "until", holder->until);
	if (holder->of_node)
		hf_json_set_bool(item, "ofNode", true);
	return item;
}

static struct hf_json *write_device(const struct hf_device_report *device)
{
	struct hf_json *item = hf_json_object();
	struct hf_json *faults = hf_json_array(), *holders = hf_json_array();

	set_text(item, "id", hf_str_is_empty(device->id) ? NODE_ID : device->id);
	set_text(item, "uuid", device->uuid);
	set_text(item, "kind", device->kind);
	set_text(item, "resource", device->resource);
	set_text(item, "resourceID", device->resource_id);
	set_text(item, "state", device->state);
	set_text(item, "class", device->cls);
	set_text(item, "action", device->action);
	hf_write_micro_time(item, "since", device->since);
	hf_write_micro_time(item, "holdUntil", device->hold_until);
	hf_write_count(item, "generation", device->generation);
	for (size_t i = 0; i < hf_at_most(device->faults.len, HF_DEVICE_HEALTH_FAULTS_MAX); i++)
		hf_json_append(faults, write_fault(&device->faults.items[i]));
	for (size_t i = 0; i < hf_at_most(device->holders.len, HF_DEVICE_HEALTH_HOLDERS_MAX); i++)
		hf_json_append(holders, write_holder(&device->holders.items[i]));
	set_list(item, "faults", faults);
	set_list(item, "holders", holders);
	return item;
}

static struct hf_json *write_detector(const struct hf_detector_report *detector)
{
	struct hf_json *item = hf_json_object();

	set_text(item, "name", detector->name);
	set_text(item, "state", detector->state);
	set_text(item, "reason", detector->reason);
	hf_write_micro_time(item, "since", detector->since);
	return item;
}

static struct hf_json *write_rank(const struct hf_rank_report *rank)
{
	struct hf_json *item = hf_json_object();

	set_text(item, "namespace", rank->ns);
	set_text(item, "pod", rank->pod);
	set_text(item, "uid", rank->uid);
	if (rank->rank >= 0)
		hf_json_set_i64(item, "rank", rank->rank);
	set_text(item, "group", rank->group);
	set_text(item, "state", rank->state);
	hf_write_count(item, "step", rank->step);
	hf_write_count(item, "totalSteps", rank->total);
	hf_write_count(item, "ownMicros", rank->own_us);
	hf_write_micro_time(item, "advancedTime", rank->advanced_at);
	hf_write_micro_time(item, "heardTime", rank->heard_at);
	return item;
}

static struct hf_json *write_fence(const struct hf_fence_report *fence)
{
	struct hf_json *item = hf_json_object();

	set_text(item, "namespace", fence->ns);
	set_text(item, "pod", fence->pod);
	set_text(item, "uid", fence->uid);
	hf_write_count(item, "seconds", fence->seconds);
	return item;
}

/* A merge patch keeps members that it does not name. Optional members without a value are therefore
 * written as null, and empty lists as []. */
struct hf_json *hf_device_health_status(const struct hf_device_health *health)
{
	static const char *const optional[] = {"driverTime",    "driverVersion",   "libraryVersion",
					       "moduleVersion", "firmwareVersion", "class",
					       "action",        "evidenceTime",    "historyLost"};
	struct hf_json *status = hf_json_object();
	struct hf_json *detectors = hf_json_array(), *devices = hf_json_array();
	struct hf_json *ranks = hf_json_array(), *fences = hf_json_array();
	size_t devices_len = hf_at_most(health->devices.len, HF_DEVICE_HEALTH_DEVICES_MAX);

	hf_write_micro_time(status, "observedTime", health->observed_at);
	hf_write_micro_time(status, "driverTime", health->driver_at);
	set_text(status, "driverVersion", health->driver_version);
	set_text(status, "libraryVersion", health->library_version);
	set_text(status, "moduleVersion", health->module_version);
	set_text(status, "firmwareVersion", health->firmware_version);
	set_text(status, "bootID", health->boot_id);
	set_text(status, "agentVersion", health->agent_version);
	set_text(status, "rulesHash", health->rules_hash);
	set_text(status, "state", health->state);
	set_text(status, "class", health->cls);
	set_text(status, "action", health->action);
	hf_write_micro_time(status, "evidenceTime", health->evidence_at);
	if (health->history_lost)
		hf_json_set(status, "historyLost", hf_json_bool(true));
	for (size_t i = 0; i < HF_ARRAY_LEN(optional); i++)
		if (!hf_json_get(status, optional[i]))
			hf_json_set(status, optional[i], hf_json_null());
	hf_json_set_i64(status, "lostRecords", health->lost_records);
	hf_json_set_i64(status, "droppedDevices",
			health->dropped_devices + (int64_t)(health->devices.len - devices_len));
	for (size_t i = 0; i < hf_at_most(health->detectors.len, HF_DEVICE_HEALTH_DETECTORS_MAX);
	     i++)
		hf_json_append(detectors, write_detector(&health->detectors.items[i]));
	for (size_t i = 0; i < devices_len; i++)
		hf_json_append(devices, write_device(&health->devices.items[i]));
	for (size_t i = 0; i < hf_at_most(health->ranks.len, HF_DEVICE_HEALTH_RANKS_MAX); i++)
		hf_json_append(ranks, write_rank(&health->ranks.items[i]));
	for (size_t i = 0; i < hf_at_most(health->fences.len, HF_DEVICE_HEALTH_RANKS_MAX); i++)
		hf_json_append(fences, write_fence(&health->fences.items[i]));
	hf_json_set(status, "detectors", detectors);
	hf_json_set(status, "devices", devices);
	hf_json_set(status, "ranks", ranks);
	hf_json_set(status, "fences", fences);
	return status;
}

struct hf_json *hf_device_health_object(const char *node, const char *node_uid)
{
	struct hf_json *object = hf_json_object(), *meta = hf_json_object();
	const struct hf_owner owner = {
		.api_version = "v1", .kind = "Node", .name = node, .uid = node_uid};

	hf_json_set_str(object, "apiVersion", HF_DEVICE_HEALTH_API_VERSION);
	hf_json_set_str(object, "kind", HF_DEVICE_HEALTH_KIND);
	hf_json_set_str(meta, "name", node);
	if (!hf_str_is_empty(node_uid))
		hf_set_owner(meta, &owner);
	hf_json_set(object, "metadata", meta);
	return object;
}

struct hf_doc *hf_device_health_note(struct hf_doc *health, const char *key, const char *text)
{
	struct hf_json *patch = hf_json_object();
	struct hf_json *metadata = hf_json_ensure_object(patch, "metadata");

	hf_json_set_str(metadata, "uid", hf_doc_uid(health));
	hf_json_set(hf_json_ensure_object(metadata, "annotations"), key,
		    text == NULL ? hf_json_null() : hf_json_string(text));
	return hf_doc_from_json(patch);
}

bool hf_report_is_asked(struct hf_doc *health, const char *wanted)
{
	const char *stored = health == NULL
				     ? NULL
				     : hf_json_path_str(hf_doc_json(health), "metadata",
							"annotations", HF_REPORT_ANNOTATION, NULL);
	const char *a = stored == NULL ? NULL : strrchr(stored, ' '), *b = strrchr(wanted, ' ');
	int64_t later, seconds;

	return a != NULL && b != NULL && a - stored == b - wanted &&
	       strncmp(stored, wanted, (size_t)(b - wanted)) == 0 &&
	       hf_str_to_i64(a + 1, 0, HF_REPORT_SECONDS_MAX, &later, NULL) == 0 &&
	       hf_str_to_i64(b + 1, 0, HF_REPORT_SECONDS_MAX, &seconds, NULL) == 0 &&
	       later >= seconds;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* A text that is longer than the agent ever writes counts as absent. */
#define TEXT(key, type, member) HF_FIELD_STRING(key, type, member, HF_DEVICE_HEALTH_TEXT_MAX, 0)

struct fault {
	uint64_t present;
	const char *detector, *severity, *cls, *action, *unit, *line;
	int64_t code, subcode, count;
	hf_time first, last;
	bool acts;
};
enum { FAULT_SUBCODE, FAULT_FIRST, FAULT_LAST };
static const struct hf_field fault_fields[] = {
	[FAULT_SUBCODE] = HF_FIELD_INT64("subcode", struct fault, subcode, 0, INT64_MAX, 0),
	[FAULT_FIRST] = HF_FIELD_TIME("firstTime", struct fault, first, 0),
	[FAULT_LAST] = HF_FIELD_TIME("lastTime", struct fault, last, 0),
	TEXT("detector", struct fault, detector),
	HF_FIELD_INT64("code", struct fault, code, INT64_MIN, INT64_MAX, 0),
	TEXT("severity", struct fault, severity),
	TEXT("class", struct fault, cls),
	TEXT("action", struct fault, action),
	TEXT("unit", struct fault, unit),
	TEXT("line", struct fault, line),
	HF_FIELD_INT64("count", struct fault, count, 0, INT64_MAX, 0),
	HF_FIELD_BOOL("active", struct fault, acts, 0),
};
static const struct hf_field_table fault_table = HF_FIELD_TABLE(fault_fields, struct fault);

struct holder {
	uint64_t present;
	const char *ns, *pod, *uid, *container, *resource, *resource_id;
	hf_time until;
	bool of_node;
};
enum { HOLDER_UNTIL };
static const struct hf_field holder_fields[] = {
	[HOLDER_UNTIL] = HF_FIELD_TIME("until", struct holder, until, 0),
	TEXT("namespace", struct holder, ns),
	TEXT("pod", struct holder, pod),
	TEXT("uid", struct holder, uid),
	TEXT("container", struct holder, container),
	TEXT("resource", struct holder, resource),
	TEXT("resourceID", struct holder, resource_id),
	HF_FIELD_BOOL("ofNode", struct holder, of_node, 0),
};
static const struct hf_field_table holder_table = HF_FIELD_TABLE(holder_fields, struct holder);

struct device {
	uint64_t present;
	const char *id, *uuid, *kind, *resource, *resource_id, *state, *cls, *action;
	hf_time since, hold_until;
	int64_t generation;
	HF_LIST(struct fault) faults;
	HF_LIST(struct holder) holders;
};
enum { DEVICE_SINCE, DEVICE_HOLD };
static const struct hf_field device_fields[] = {
	[DEVICE_SINCE] = HF_FIELD_TIME("since", struct device, since, 0),
	[DEVICE_HOLD] = HF_FIELD_TIME("holdUntil", struct device, hold_until, 0),
	TEXT("id", struct device, id),
	TEXT("uuid", struct device, uuid),
	TEXT("kind", struct device, kind),
	TEXT("resource", struct device, resource),
	TEXT("resourceID", struct device, resource_id),
	TEXT("state", struct device, state),
	TEXT("class", struct device, cls),
	TEXT("action", struct device, action),
	HF_FIELD_INT64("generation", struct device, generation, 0, INT64_MAX, 0),
	HF_FIELD_OBJECTS("faults", struct device, faults, &fault_table, HF_DEVICE_HEALTH_FAULTS_MAX,
			 0),
	HF_FIELD_OBJECTS("holders", struct device, holders, &holder_table,
			 HF_DEVICE_HEALTH_HOLDERS_MAX, 0),
};
static const struct hf_field_table device_table = HF_FIELD_TABLE(device_fields, struct device);

struct detector {
	uint64_t present;
	const char *name, *state, *reason;
	hf_time since;
};
enum { DETECTOR_SINCE };
static const struct hf_field detector_fields[] = {
	[DETECTOR_SINCE] = HF_FIELD_TIME("since", struct detector, since, 0),
	TEXT("name", struct detector, name),
	TEXT("state", struct detector, state),
	TEXT("reason", struct detector, reason),
};
static const struct hf_field_table detector_table =
	HF_FIELD_TABLE(detector_fields, struct detector);

struct rank {
	uint64_t present;
	const char *ns, *pod, *uid, *group, *state;
	int64_t rank, step, total, own_us;
	hf_time advanced, heard;
};
enum { RANK_RANK, RANK_ADVANCED, RANK_HEARD };
static const struct hf_field rank_fields[] = {
	[RANK_RANK] = HF_FIELD_INT64("rank", struct rank, rank, 0, INT32_MAX, 0),
	[RANK_ADVANCED] = HF_FIELD_TIME("advancedTime", struct rank, advanced, 0),
	[RANK_HEARD] = HF_FIELD_TIME("heardTime", struct rank, heard, 0),
	TEXT("namespace", struct rank, ns),
	TEXT("pod", struct rank, pod),
	TEXT("uid", struct rank, uid),
	TEXT("group", struct rank, group),
	TEXT("state", struct rank, state),
	HF_FIELD_INT64("step", struct rank, step, 0, INT64_MAX, 0),
	HF_FIELD_INT64("totalSteps", struct rank, total, 0, INT64_MAX, 0),
	HF_FIELD_INT64("ownMicros", struct rank, own_us, 0, INT64_MAX, 0),
};
static const struct hf_field_table rank_table = HF_FIELD_TABLE(rank_fields, struct rank);

struct fence {
	uint64_t present;
	const char *ns, *pod, *uid;
	int64_t seconds;
};
static const struct hf_field fence_fields[] = {
	TEXT("namespace", struct fence, ns),
	TEXT("pod", struct fence, pod),
	TEXT("uid", struct fence, uid),
	HF_FIELD_INT64("seconds", struct fence, seconds, 0, INT32_MAX, 0),
};
static const struct hf_field_table fence_table = HF_FIELD_TABLE(fence_fields, struct fence);

struct process {
	uint64_t present;
	const char *ns, *pod, *uid, *job, *phase, *cause, *message;
	int64_t generation, attempt, ordinal, code, signal, step, saved_step, save_ms;
	hf_time at;
};
enum { PROCESS_GENERATION, PROCESS_ATTEMPT, PROCESS_CODE, PROCESS_SIGNAL, PROCESS_TIME };
static const struct hf_field process_fields[] = {
	[PROCESS_GENERATION] =
		HF_FIELD_INT64("generation", struct process, generation, 0, INT64_MAX, 0),
	[PROCESS_ATTEMPT] = HF_FIELD_INT64("attempt", struct process, attempt, 0, INT64_MAX, 0),
	[PROCESS_CODE] = HF_FIELD_INT64("code", struct process, code, 0, 255, 0),
	[PROCESS_SIGNAL] = HF_FIELD_INT64("signal", struct process, signal, 1, 64, 0),
	[PROCESS_TIME] = HF_FIELD_TIME("time", struct process, at, 0),
	TEXT("namespace", struct process, ns),
	TEXT("pod", struct process, pod),
	TEXT("uid", struct process, uid),
	TEXT("job", struct process, job),
	TEXT("phase", struct process, phase),
	TEXT("cause", struct process, cause),
	HF_FIELD_STRING("message", struct process, message, HF_DEVICE_HEALTH_MESSAGE_MAX, 0),
	HF_FIELD_INT64("ordinal", struct process, ordinal, 0, INT64_MAX, 0),
	HF_FIELD_INT64("step", struct process, step, 0, INT64_MAX, 0),
	HF_FIELD_INT64("savedStep", struct process, saved_step, 0, INT64_MAX, 0),
	HF_FIELD_INT64("saveMillis", struct process, save_ms, 0, INT32_MAX, 0),
};
static const struct hf_field_table process_table = HF_FIELD_TABLE(process_fields, struct process);

struct status {
	uint64_t present;
	const char *boot_id, *agent_version, *rules_hash, *state, *cls, *action;
	const char *driver_version, *library_version, *module_version, *firmware_version;
	hf_time observed, driver, evidence;
	int64_t lost_records, dropped_devices;
	bool history_lost;
	HF_LIST(struct detector) detectors;
	HF_LIST(struct device) devices;
	HF_LIST(struct rank) ranks;
	HF_LIST(struct fence) fences;
	HF_LIST(struct process) processes;
};
enum { STATUS_OBSERVED, STATUS_DRIVER, STATUS_EVIDENCE };
static const struct hf_field status_fields[] = {
	[STATUS_OBSERVED] = HF_FIELD_TIME("observedTime", struct status, observed, 0),
	[STATUS_DRIVER] = HF_FIELD_TIME("driverTime", struct status, driver, 0),
	[STATUS_EVIDENCE] = HF_FIELD_TIME("evidenceTime", struct status, evidence, 0),
	TEXT("driverVersion", struct status, driver_version),
	TEXT("libraryVersion", struct status, library_version),
	TEXT("moduleVersion", struct status, module_version),
	TEXT("firmwareVersion", struct status, firmware_version),
	TEXT("bootID", struct status, boot_id),
	TEXT("agentVersion", struct status, agent_version),
	TEXT("rulesHash", struct status, rules_hash),
	TEXT("state", struct status, state),
	TEXT("class", struct status, cls),
	TEXT("action", struct status, action),
	HF_FIELD_INT64("lostRecords", struct status, lost_records, 0, INT64_MAX, 0),
	HF_FIELD_INT64("droppedDevices", struct status, dropped_devices, 0, INT64_MAX, 0),
	HF_FIELD_BOOL("historyLost", struct status, history_lost, 0),
	HF_FIELD_OBJECTS("detectors", struct status, detectors, &detector_table,
			 HF_DEVICE_HEALTH_DETECTORS_MAX, 0),
	HF_FIELD_OBJECTS("devices", struct status, devices, &device_table,
			 HF_DEVICE_HEALTH_DEVICES_MAX, 0),
	HF_FIELD_OBJECTS("ranks", struct status, ranks, &rank_table, HF_DEVICE_HEALTH_RANKS_MAX, 0),
	HF_FIELD_OBJECTS("fences", struct status, fences, &fence_table, HF_DEVICE_HEALTH_RANKS_MAX,
			 0),
	HF_FIELD_OBJECTS("processes", struct status, processes, &process_table,
			 HF_DEVICE_HEALTH_PROCESSES_MAX, 0),
};
static const struct hf_field_table status_table = HF_FIELD_TABLE(status_fields, struct status);

struct annotations {
	uint64_t present;
	const char *mended, *devices_out;
};
static const struct hf_field annotation_fields[] = {
	HF_FIELD_STRING(HF_MENDED_ANNOTATION, struct annotations, mended, 0, 0),
	HF_FIELD_STRING(HF_DEVICES_OUT_ANNOTATION, struct annotations, devices_out, 0, 0),
};
static const struct hf_field_table annotation_table =
	HF_FIELD_TABLE(annotation_fields, struct annotations);

struct metadata {
	uint64_t present;
	struct annotations annotations;
};
static const struct hf_field metadata_fields[] = {
	HF_FIELD_OBJECT("annotations", struct metadata, annotations, &annotation_table, 0),
};
static const struct hf_field_table metadata_table =
	HF_FIELD_TABLE(metadata_fields, struct metadata);

struct object {
	uint64_t present;
	struct metadata metadata;
	struct status status;
};
static const struct hf_field object_fields[] = {
	HF_FIELD_OBJECT("metadata", struct object, metadata, &metadata_table, 0),
	HF_FIELD_OBJECT("status", struct object, status, &status_table, 0),
};
static const struct hf_field_table object_table = HF_FIELD_TABLE(object_fields, struct object);

static struct hf_device_fault fault_of(const struct fault *f)
{
	return (struct hf_device_fault){
		.detector = f->detector,
		.code = f->code,
		.subcode = hf_field_has(f->present, FAULT_SUBCODE) ? f->subcode : -1,
		.severity = f->severity,
		.cls = f->cls,
		.action = f->action,
		.unit = f->unit,
		.line = f->line,
		.first = hf_field_time(f->present, FAULT_FIRST, f->first),
		.last = hf_field_time(f->present, FAULT_LAST, f->last),
		.count = f->count,
		.acts = f->acts,
	};
}

static struct hf_device_holder holder_of(const struct holder *h)
{
	return (struct hf_device_holder){
		.ns = h->ns,
		.pod = h->pod,
		.uid = h->uid,
		.container = h->container,
		.resource = h->resource,
		.resource_id = h->resource_id,
		.until = hf_field_time(h->present, HOLDER_UNTIL, h->until),
		.of_node = h->of_node,
	};
}

static struct hf_device_report device_of(const struct device *d, struct hf_arena *arena)
{
	struct hf_device_report report = {
		.id = d->id == NULL || hf_streq(d->id, NODE_ID) ? "" : d->id,
		.uuid = d->uuid,
		.kind = d->kind,
		.resource = d->resource,
		.resource_id = d->resource_id,
		.state = d->state,
		.cls = d->cls,
		.action = d->action,
		.since = hf_field_time(d->present, DEVICE_SINCE, d->since),
		.hold_until = hf_field_time(d->present, DEVICE_HOLD, d->hold_until),
		.generation = d->generation,
		.faults = {HF_ARENA_ARRAY(arena, struct hf_device_fault, d->faults.len),
			   d->faults.len},
		.holders = {HF_ARENA_ARRAY(arena, struct hf_device_holder, d->holders.len),
			    d->holders.len},
	};

	for (size_t i = 0; i < d->faults.len; i++)
		report.faults.items[i] = fault_of(&d->faults.items[i]);
	for (size_t i = 0; i < d->holders.len; i++)
		report.holders.items[i] = holder_of(&d->holders.items[i]);
	return report;
}

static struct hf_rank_report rank_of(const struct rank *r)
{
	return (struct hf_rank_report){
		.ns = r->ns,
		.pod = r->pod,
		.uid = r->uid,
		.rank = hf_field_has(r->present, RANK_RANK) ? r->rank : -1,
		.group = r->group,
		.state = r->state,
		.step = r->step,
		.total = r->total,
		.own_us = r->own_us,
		.advanced_at = hf_field_time(r->present, RANK_ADVANCED, r->advanced),
		.heard_at = hf_field_time(r->present, RANK_HEARD, r->heard),
	};
}

static int64_t number_or_none(uint64_t present, unsigned field, int64_t number)
{
	return hf_field_has(present, field) ? number : -1;
}

static struct hf_process_report process_of(const struct process *p)
{
	return (struct hf_process_report){
		.ns = p->ns,
		.pod = p->pod,
		.uid = p->uid,
		.job = p->job,
		.generation = number_or_none(p->present, PROCESS_GENERATION, p->generation),
		.attempt = number_or_none(p->present, PROCESS_ATTEMPT, p->attempt),
		.ordinal = p->ordinal,
		.phase = p->phase,
		.code = number_or_none(p->present, PROCESS_CODE, p->code),
		.signal = number_or_none(p->present, PROCESS_SIGNAL, p->signal),
		.cause = p->cause,
		.message = p->message,
		.step = p->step,
		.saved_step = p->saved_step,
		.save_ms = p->save_ms,
		.at = hf_field_time(p->present, PROCESS_TIME, p->at),
	};
}

/* "TIME NAME". */
static hf_time read_mended(const char *text)
{
	char time[HF_TIME_TEXT_MAX];
	hf_time at;

	snprintf(time, sizeof(time), "%s", hf_str_or(text, ""));
	time[strcspn(time, " ")] = '\0';
	return hf_time_parse(time, &at, NULL) == 0 ? at : HF_TIME_NONE;
}

void hf_device_health_read(struct hf_doc *doc, struct hf_arena *arena,
			   struct hf_device_health *ret_health)
{
	struct object object = {.present = 0};
	const struct status *s = &object.status;
	struct hf_device_health health;

	if (hf_fields_read_doc(&object_table, doc, &lenient, arena, &object, NULL) < 0)
		object = (struct object){.present = 0};
	health = (struct hf_device_health){
		.node = hf_doc_name(doc),
		.observed_at = hf_field_time(s->present, STATUS_OBSERVED, s->observed),
		.driver_at = hf_field_time(s->present, STATUS_DRIVER, s->driver),
		.driver_version = s->driver_version,
		.library_version = s->library_version,
		.module_version = s->module_version,
		.firmware_version = s->firmware_version,
		.boot_id = s->boot_id,
		.agent_version = s->agent_version,
		.rules_hash = s->rules_hash,
		.state = s->state,
		.cls = s->cls,
		.action = s->action,
		.evidence_at = hf_field_time(s->present, STATUS_EVIDENCE, s->evidence),
		.lost_records = s->lost_records,
		.dropped_devices = s->dropped_devices,
		.history_lost = s->history_lost,
		.mended_at = read_mended(object.metadata.annotations.mended),
		.devices_out = object.metadata.annotations.devices_out,
		.detectors = {HF_ARENA_ARRAY(arena, struct hf_detector_report, s->detectors.len),
			      s->detectors.len},
		.devices = {HF_ARENA_ARRAY(arena, struct hf_device_report, s->devices.len),
			    s->devices.len},
		.ranks = {HF_ARENA_ARRAY(arena, struct hf_rank_report, s->ranks.len), s->ranks.len},
		.fences = {HF_ARENA_ARRAY(arena, struct hf_fence_report, s->fences.len),
			   s->fences.len},
		.processes = {HF_ARENA_ARRAY(arena, struct hf_process_report, s->processes.len),
			      s->processes.len},
	};
	for (size_t i = 0; i < s->processes.len; i++)
		health.processes.items[i] = process_of(&s->processes.items[i]);
	for (size_t i = 0; i < s->fences.len; i++)
		health.fences.items[i] =
			(struct hf_fence_report){.ns = s->fences.items[i].ns,
						 .pod = s->fences.items[i].pod,
						 .uid = s->fences.items[i].uid,
						 .seconds = s->fences.items[i].seconds};
	for (size_t i = 0; i < s->ranks.len; i++)
		health.ranks.items[i] = rank_of(&s->ranks.items[i]);
	for (size_t i = 0; i < s->detectors.len; i++) {
		const struct detector *d = &s->detectors.items[i];

		health.detectors.items[i] = (struct hf_detector_report){
			.name = d->name,
			.state = d->state,
			.reason = d->reason,
			.since = hf_field_time(d->present, DETECTOR_SINCE, d->since),
		};
	}
	for (size_t i = 0; i < s->devices.len; i++)
		health.devices.items[i] = device_of(&s->devices.items[i], arena);
	*ret_health = health;
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(hf_str_or(word, ""));

	for (const char *at = text; len > 0 && at != NULL && *at != '\0';) {
		size_t here = strcspn(at, " ");

		if (here == len && memcmp(at, word, len) == 0)
			return true;
		at += here + (at[here] == ' ');
	}
	return false;
}

bool hf_device_is_withheld(const struct hf_device_health *health,
			   const struct hf_device_report *device)
{
	return has_word(health->devices_out, device->uuid) ||
	       has_word(health->devices_out, device->id);
}

/* ---- classes as reasons --------------------------------------------------------------------- */

void hf_device_reason(const char *cls, char ret_reason[HF_DEVICE_REASON_MAX])
{
	size_t len = 0;
	bool upper = true;

	for (const char *c = cls ? cls : ""; *c != '\0' && len < HF_DEVICE_REASON_MAX - 1; c++) {
		if (*c == '-') {
			upper = true;
			continue;
		}
		ret_reason[len++] = upper ? hf_ascii_to_upper(*c) : *c;
		upper = false;
	}
	ret_reason[len] = '\0';
}

void hf_device_class(const char *reason, char ret_class[HF_DEVICE_REASON_MAX])
{
	size_t len = 0;

	/* A capital letter becomes two bytes, a dash and the small letter, so room for both is
	 * left. */
	for (const char *c = reason ? reason : ""; *c != '\0' && len < HF_DEVICE_REASON_MAX - 2;
	     c++) {
		bool upper = hf_ascii_is_upper(*c);

		if (upper && len > 0)
			ret_class[len++] = '-';
		ret_class[len++] = hf_ascii_to_lower(*c);
	}
	ret_class[len] = '\0';
}
