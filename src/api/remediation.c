/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/remediation.h"

#include "api/writer_internal.h"

#include <stdio.h>
#include <string.h>

/*
 * Reads and writes Remediation objects. The reader is strict: a field of a wrong type is an error,
 * because an absent `status.act.startedAt` permits an act. The writers cut texts and lists to what the
 * CRD's schema allows.
 */

/* The schema of the CRD counts characters; a character has at most four bytes. */
#define TEXT_BYTES ((int64_t)4 * HF_REMEDIATION_TEXT_MAX)
#define MESSAGE_BYTES ((int64_t)4 * HF_REMEDIATION_MESSAGE_MAX)
#define PID_MAX ((int64_t)1 << 22)

/* ---- writing ------------------------------------------------------------------------------- */

static void set_text(struct hf_json *object, const char *key, const char *text)
{
	hf_write_cut_or_null(object, key, text, HF_REMEDIATION_TEXT_MAX);
}

static void set_message(struct hf_json *object, const char *key, const char *text)
{
	hf_write_cut_or_null(object, key, text, HF_REMEDIATION_MESSAGE_MAX);
}

bool hf_remediation_disturbs_work(const char *rung)
{
	return hf_streq(rung, "reset-device") || hf_streq(rung, "reboot") ||
	       hf_streq(rung, "external");
}

void hf_remediation_name(const char *node, int32_t attempt, char ret_name[HF_REMEDIATION_NAME_MAX])
{
	snprintf(ret_name, HF_REMEDIATION_NAME_MAX, "%.*s-%d", HF_REMEDIATION_NODE_MAX, node,
		 attempt);
}

static struct hf_json *write_devices(const struct hf_remediation_spec *spec)
{
	struct hf_json *list = hf_json_array();

	for (size_t i = 0; i < hf_at_most(spec->devices.len, HF_REMEDIATION_DEVICES_MAX); i++) {
		struct hf_json *item = hf_json_object();

		hf_write_text(item, "id", spec->devices.items[i].id);
		hf_write_text(item, "uuid", spec->devices.items[i].uuid);
		hf_json_append(list, item);
	}
	return list;
}

static void write_fault(struct hf_json *json, const struct hf_remediation_spec *spec)
{
	struct hf_json *fault;

	if (hf_str_is_empty(spec->fault.cls))
		return;
	fault = hf_json_ensure_object(json, "fault");
	set_text(fault, "class", spec->fault.cls);
	hf_write_count(fault, "code", spec->fault.code);
	if (!hf_str_is_empty(spec->fault.text))
		set_text(fault, "text", spec->fault.text);
	hf_write_micro_time(fault, "time", spec->fault.at);
}

struct hf_json *hf_remediation_object(const struct hf_remediation_spec *spec)
{
	struct hf_json *object = hf_json_object(), *json;
	char name[HF_REMEDIATION_NAME_MAX];

	hf_json_set_str(object, "apiVersion", HF_REMEDIATION_API_VERSION);
	hf_json_set_str(object, "kind", HF_REMEDIATION_KIND);
	hf_remediation_name(spec->node, spec->attempt, name);
	hf_json_set_str(hf_json_ensure_object(object, "metadata"), "name", name);
	json = hf_json_ensure_object(object, "spec");
	hf_json_set_str(json, "node", spec->node);
	hf_json_set_str(json, "rung", spec->rung);
	if (spec->devices.len > 0)
		hf_json_set(json, "devices", write_devices(spec));
	write_fault(json, spec);
	hf_write_text(json, "bootID", spec->boot_id);
	hf_json_set_i64(json, "attempt", spec->attempt);
	hf_json_set_str(json, "nonce", spec->nonce);
	hf_write_text(json, "policy", spec->policy);
	hf_write_text(json, "requestedBy", spec->requested_by);
	hf_json_set_i64(json, "deadlineSeconds", spec->deadline_seconds);
	if (spec->dry_run)
		hf_json_set_bool(json, "dryRun", true);
	return object;
}

static struct hf_json *write_conditions(const struct hf_remediation_status *status)
{
	struct hf_json *list = hf_json_array();

	for (size_t i = 0; i < hf_at_most(status->conditions.len, HF_REMEDIATION_CONDITIONS_MAX);
	     i++) {
		const struct hf_remediation_condition *c = &status->conditions.items[i];
		struct hf_json *item = hf_json_object();

		hf_json_set_str(item, "type", c->type);
		hf_json_set_str(item, "status", c->status);
		hf_json_set_str(item, "reason", hf_str_or(c->reason, "Unknown"));
		hf_json_set(item, "message",
			    hf_write_cut(hf_str_or(c->message, ""), HF_REMEDIATION_MESSAGE_MAX));
		hf_write_micro_time(item, "lastTransitionTime", c->since);
		hf_json_append(list, item);
	}
	return list;
}

static struct hf_json *write_holders(const struct hf_remediation_act *act)
{
	struct hf_json *list = hf_json_array();

	for (size_t i = 0; i < hf_at_most(act->holders.len, HF_REMEDIATION_HOLDERS_MAX); i++) {
		const struct hf_remediation_holder *h = &act->holders.items[i];
		struct hf_json *item = hf_json_object();

		hf_json_set_i64(item, "pid", h->pid);
		if (!hf_str_is_empty(h->comm))
			set_text(item, "comm", h->comm);
		if (!hf_str_is_empty(h->pod))
			set_text(item, "pod", h->pod);
		hf_json_append(list, item);
	}
	return list;
}

static struct hf_json *write_act(const struct hf_remediation_act *act)
{
	struct hf_json *json = hf_json_object();

	set_text(json, "nonce", act->nonce);
	set_text(json, "actor", act->actor);
	hf_write_time_or_null(json, "startedAt", act->started_at);
	hf_write_time_or_null(json, "endedAt", act->ended_at);
	set_text(json, "bootID", act->boot_id);
	set_text(json, "tool", act->tool);
	hf_json_set(json, "exitCode",
		    act->has_exit_code ? hf_json_int(act->exit_code) : hf_json_null());
	set_message(json, "message", act->message);
	hf_json_set(json, "holders", write_holders(act));
	return json;
}

static void set_pairs(struct hf_json *object, const char *key, const struct hf_field_pair *pairs,
		      size_t len)
{
	struct hf_json *map;

	if (len == 0) {
		hf_json_set(object, key, hf_json_null());
		return;
	}
	map = hf_json_ensure_object(object, key);
	for (size_t i = 0; i < hf_at_most(len, HF_REMEDIATION_LABELS_MAX); i++)
		hf_json_set_str(map, pairs[i].key, hf_str_or(pairs[i].value, ""));
}

static struct hf_json *write_external(const struct hf_remediation_status *status)
{
	struct hf_json *json;

	if (hf_str_is_empty(status->saved.external.kind))
		return hf_json_null();
	json = hf_json_object();
	set_text(json, "apiVersion", status->saved.external.api_version);
	set_text(json, "kind", status->saved.external.kind);
	set_text(json, "namespace", status->saved.external.ns);
	return json;
}

static struct hf_json *write_saved(const struct hf_remediation_status *status)
{
	struct hf_json *json = hf_json_object();

	set_pairs(json, "labels", status->saved.labels.items, status->saved.labels.len);
	hf_json_set(json, "cordoned",
		    status->saved.has_cordoned ? hf_json_bool(status->saved.cordoned)
					       : hf_json_null());
	set_pairs(json, "persistenceMode", status->saved.persistence.items,
		  status->saved.persistence.len);
	hf_json_set(json, "external", write_external(status));
	return json;
}

struct hf_json *hf_remediation_status_patch(const char *resource_version,
					    const struct hf_remediation_status *status)
{
	struct hf_json *json, *patch = hf_write_guarded_status(resource_version, &json), *part;

	set_text(json, "phase", status->phase);
	set_message(json, "message", status->message);
	set_text(json, "outcome", status->outcome);
	hf_json_set(json, "conditions", write_conditions(status));
	if (status->approval.at == HF_TIME_NONE) {
		hf_json_set(json, "approval", hf_json_null());
	} else {
		part = hf_json_ensure_object(json, "approval");
		hf_write_time_or_null(part, "time", status->approval.at);
		set_text(part, "bootID", status->approval.boot_id);
		set_text(part, "resourceVersionOfNode", status->approval.node_version);
	}
	hf_json_set(json, "act", write_act(&status->act));
	hf_json_set(json, "saved", write_saved(status));
	if (status->proof.at == HF_TIME_NONE) {
		hf_json_set(json, "proof", hf_json_null());
	} else {
		part = hf_json_ensure_object(json, "proof");
		set_text(part, "bootID", status->proof.boot_id);
		hf_write_time_or_null(part, "time", status->proof.at);
		set_message(part, "text", status->proof.text);
	}
	return patch;
}

struct hf_json *hf_remediation_act_patch(const struct hf_remediation_act_write *write)
{
	struct hf_json *json, *patch = hf_write_guarded_status(write->resource_version, &json);

	if (write->phase != NULL)
		hf_json_set_str(json, "phase", write->phase);
	hf_json_set(json, "act", write_act(write->act));
	if (write->persistence_len > 0)
		set_pairs(hf_json_ensure_object(json, "saved"), "persistenceMode",
			  write->persistence, write->persistence_len);
	return patch;
}

/* ---- reading ------------------------------------------------------------------------------- */

#define TEXT(key, type, member) HF_FIELD_STRING(key, type, member, TEXT_BYTES, 0)

struct device {
	uint64_t present;
	const char *id, *uuid;
};
static const struct hf_field device_fields[] = {
	HF_FIELD_STRING("id", struct device, id, 64, 0),
	HF_FIELD_STRING("uuid", struct device, uuid, 80, HF_FIELD_REQUIRED | HF_FIELD_NONEMPTY),
};
static const struct hf_field_table device_table = HF_FIELD_TABLE(device_fields, struct device);

struct fault {
	uint64_t present;
	const char *cls, *text;
	int64_t code;
	hf_time at;
};
enum { FAULT_TIME };
static const struct hf_field fault_fields[] = {
	[FAULT_TIME] = HF_FIELD_TIME("time", struct fault, at, 0),
	TEXT("class", struct fault, cls),
	TEXT("text", struct fault, text),
	HF_FIELD_INT64("code", struct fault, code, INT64_MIN, INT64_MAX, 0),
};
static const struct hf_field_table fault_table = HF_FIELD_TABLE(fault_fields, struct fault);

struct spec {
	uint64_t present;
	const char *node, *rung, *boot_id, *nonce, *policy, *requested_by;
	HF_LIST(struct device) devices;
	struct fault fault;
	int32_t attempt, deadline;
	bool dry_run, cancel;
};
enum { SPEC_FAULT, SPEC_DEADLINE };
#define NEEDED (HF_FIELD_REQUIRED | HF_FIELD_NONEMPTY)
static const struct hf_field spec_fields[] = {
	[SPEC_FAULT] = HF_FIELD_OBJECT("fault", struct spec, fault, &fault_table, 0),
	[SPEC_DEADLINE] =
		HF_FIELD_INT32("deadlineSeconds", struct spec, deadline, 10, 24 * 3600, 0),
	HF_FIELD_STRING("node", struct spec, node, HF_REMEDIATION_NODE_MAX, NEEDED),
	HF_FIELD_STRING("rung", struct spec, rung, 64, NEEDED),
	HF_FIELD_OBJECTS("devices", struct spec, devices, &device_table, HF_REMEDIATION_DEVICES_MAX,
			 0),
	TEXT("bootID", struct spec, boot_id),
	HF_FIELD_INT32("attempt", struct spec, attempt, 1, INT32_MAX, HF_FIELD_REQUIRED),
	HF_FIELD_STRING("nonce", struct spec, nonce, HF_REMEDIATION_NONCE_LEN, NEEDED),
	HF_FIELD_STRING("policy", struct spec, policy, 253, 0),
	TEXT("requestedBy", struct spec, requested_by),
	HF_FIELD_BOOL("dryRun", struct spec, dry_run, 0),
	HF_FIELD_BOOL("cancel", struct spec, cancel, 0),
};
static const struct hf_field_table spec_table = HF_FIELD_TABLE(spec_fields, struct spec);

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

struct approval {
	uint64_t present;
	hf_time at;
	const char *boot_id, *node_version;
};
enum { APPROVAL_TIME };
static const struct hf_field approval_fields[] = {
	[APPROVAL_TIME] = HF_FIELD_TIME("time", struct approval, at, 0),
	TEXT("bootID", struct approval, boot_id),
	TEXT("resourceVersionOfNode", struct approval, node_version),
};
static const struct hf_field_table approval_table =
	HF_FIELD_TABLE(approval_fields, struct approval);

struct holder {
	uint64_t present;
	int64_t pid;
	const char *comm, *pod;
};
static const struct hf_field holder_fields[] = {
	HF_FIELD_INT64("pid", struct holder, pid, 0, PID_MAX, 0),
	TEXT("comm", struct holder, comm),
	TEXT("pod", struct holder, pod),
};
static const struct hf_field_table holder_table = HF_FIELD_TABLE(holder_fields, struct holder);

struct act {
	uint64_t present;
	const char *nonce, *actor, *boot_id, *tool, *message;
	hf_time started, ended;
	int32_t exit_code;
	HF_LIST(struct holder) holders;
};
enum { ACT_STARTED, ACT_ENDED, ACT_EXIT };
static const struct hf_field act_fields[] = {
	[ACT_STARTED] = HF_FIELD_TIME("startedAt", struct act, started, 0),
	[ACT_ENDED] = HF_FIELD_TIME("endedAt", struct act, ended, 0),
	[ACT_EXIT] = HF_FIELD_INT32("exitCode", struct act, exit_code, -1, 255, 0),
	TEXT("nonce", struct act, nonce),
	TEXT("actor", struct act, actor),
	TEXT("bootID", struct act, boot_id),
	TEXT("tool", struct act, tool),
	HF_FIELD_STRING("message", struct act, message, MESSAGE_BYTES, 0),
	HF_FIELD_OBJECTS("holders", struct act, holders, &holder_table, HF_REMEDIATION_HOLDERS_MAX,
			 0),
};
static const struct hf_field_table act_table = HF_FIELD_TABLE(act_fields, struct act);

struct external {
	uint64_t present;
	const char *api_version, *kind, *ns;
};
static const struct hf_field external_fields[] = {
	TEXT("apiVersion", struct external, api_version),
	TEXT("kind", struct external, kind),
	TEXT("namespace", struct external, ns),
};
static const struct hf_field_table external_table =
	HF_FIELD_TABLE(external_fields, struct external);

struct saved {
	uint64_t present;
	HF_LIST(struct hf_field_pair) labels;
	HF_LIST(struct hf_field_pair) persistence;
	struct external external;
	bool cordoned;
};
enum { SAVED_CORDONED };
static const struct hf_field saved_fields[] = {
	[SAVED_CORDONED] = HF_FIELD_BOOL("cordoned", struct saved, cordoned, 0),
	HF_FIELD_STRING_MAP("labels", struct saved, labels, HF_REMEDIATION_LABELS_MAX, 0),
	HF_FIELD_STRING_MAP("persistenceMode", struct saved, persistence, HF_REMEDIATION_LABELS_MAX,
			    0),
	HF_FIELD_OBJECT("external", struct saved, external, &external_table, 0),
};
static const struct hf_field_table saved_table = HF_FIELD_TABLE(saved_fields, struct saved);

struct proof {
	uint64_t present;
	hf_time at;
	const char *boot_id, *text;
};
enum { PROOF_TIME };
static const struct hf_field proof_fields[] = {
	[PROOF_TIME] = HF_FIELD_TIME("time", struct proof, at, 0),
	TEXT("bootID", struct proof, boot_id),
	HF_FIELD_STRING("text", struct proof, text, MESSAGE_BYTES, 0),
};
static const struct hf_field_table proof_table = HF_FIELD_TABLE(proof_fields, struct proof);

struct status {
	uint64_t present;
	const char *phase, *message, *outcome;
	HF_LIST(struct condition) conditions;
	struct approval approval;
	struct act act;
	struct saved saved;
	struct proof proof;
};
static const struct hf_field status_fields[] = {
	HF_FIELD_STRING("phase", struct status, phase, 64, 0),
	HF_FIELD_STRING("message", struct status, message, MESSAGE_BYTES, 0),
	HF_FIELD_STRING("outcome", struct status, outcome, 64, 0),
	HF_FIELD_OBJECTS("conditions", struct status, conditions, &condition_table,
			 HF_REMEDIATION_CONDITIONS_MAX, 0),
	HF_FIELD_OBJECT("approval", struct status, approval, &approval_table, 0),
	HF_FIELD_OBJECT("act", struct status, act, &act_table, 0),
	HF_FIELD_OBJECT("saved", struct status, saved, &saved_table, 0),
	HF_FIELD_OBJECT("proof", struct status, proof, &proof_table, 0),
};
static const struct hf_field_table status_table = HF_FIELD_TABLE(status_fields, struct status);

struct metadata {
	uint64_t present;
	const char *name, *uid, *resource_version;
	hf_time created;
};
enum { METADATA_CREATED, METADATA_DELETED };
static const struct hf_field metadata_fields[] = {
	[METADATA_CREATED] = HF_FIELD_TIME("creationTimestamp", struct metadata, created, 0),
	[METADATA_DELETED] = HF_FIELD_PRESENCE("deletionTimestamp", 0),
	HF_FIELD_STRING("name", struct metadata, name, 253, NEEDED),
	HF_FIELD_STRING("uid", struct metadata, uid, 128, 0),
	HF_FIELD_STRING("resourceVersion", struct metadata, resource_version, 128, 0),
};
static const struct hf_field_table metadata_table =
	HF_FIELD_TABLE(metadata_fields, struct metadata);

struct object {
	uint64_t present;
	struct metadata metadata;
	struct spec spec;
	struct status status;
};
static const struct hf_field object_fields[] = {
	HF_FIELD_OBJECT("metadata", struct object, metadata, &metadata_table, HF_FIELD_REQUIRED),
	HF_FIELD_OBJECT("spec", struct object, spec, &spec_table, HF_FIELD_REQUIRED),
	HF_FIELD_OBJECT("status", struct object, status, &status_table, 0),
};
static const struct hf_field_table object_table = HF_FIELD_TABLE(object_fields, struct object);

static struct hf_remediation_spec spec_of(const struct spec *s, struct hf_arena *arena)
{
	struct hf_remediation_spec spec = {
		.node = s->node,
		.rung = s->rung,
		.devices = {HF_ARENA_ARRAY(arena, struct hf_remediation_device, s->devices.len),
			    s->devices.len},
		.fault = {.cls = s->fault.cls,
			  .text = s->fault.text,
			  .code = s->fault.code,
			  .at = hf_field_time(s->fault.present, FAULT_TIME, s->fault.at)},
		.boot_id = s->boot_id,
		.attempt = s->attempt,
		.nonce = s->nonce,
		.policy = s->policy,
		.requested_by = s->requested_by,
		.deadline_seconds = hf_field_has(s->present, SPEC_DEADLINE)
					    ? s->deadline
					    : HF_REMEDIATION_DEADLINE_DEFAULT,
		.dry_run = s->dry_run,
		.cancel = s->cancel,
	};

	for (size_t i = 0; i < s->devices.len; i++)
		spec.devices.items[i] = (struct hf_remediation_device){
			.id = s->devices.items[i].id, .uuid = s->devices.items[i].uuid};
	return spec;
}

static struct hf_remediation_act act_of(const struct act *a, struct hf_arena *arena)
{
	struct hf_remediation_act act = {
		.nonce = a->nonce,
		.actor = a->actor,
		.started_at = hf_field_time(a->present, ACT_STARTED, a->started),
		.ended_at = hf_field_time(a->present, ACT_ENDED, a->ended),
		.boot_id = a->boot_id,
		.tool = a->tool,
		.has_exit_code = hf_field_has(a->present, ACT_EXIT),
		.exit_code = a->exit_code,
		.message = a->message,
		.holders = {HF_ARENA_ARRAY(arena, struct hf_remediation_holder, a->holders.len),
			    a->holders.len},
	};

	for (size_t i = 0; i < a->holders.len; i++)
		act.holders.items[i] =
			(struct hf_remediation_holder){.pid = a->holders.items[i].pid,
						       .comm = a->holders.items[i].comm,
						       .pod = a->holders.items[i].pod};
	return act;
}

static struct hf_remediation_status status_of(const struct status *s, struct hf_arena *arena)
{
	const size_t conditions_len = s->conditions.len;
	struct hf_remediation_status status = {
		.phase = s->phase,
		.message = s->message,
		.outcome = s->outcome,
		.conditions = {HF_ARENA_ARRAY(arena, struct hf_remediation_condition,
					      conditions_len),
			       conditions_len},
		.approval = {.at = hf_field_time(s->approval.present, APPROVAL_TIME,
						 s->approval.at),
			     .boot_id = s->approval.boot_id,
			     .node_version = s->approval.node_version},
		.act = act_of(&s->act, arena),
		.saved = {.labels = {s->saved.labels.items, s->saved.labels.len},
			  .has_cordoned = hf_field_has(s->saved.present, SAVED_CORDONED),
			  .cordoned = s->saved.cordoned,
			  .persistence = {s->saved.persistence.items, s->saved.persistence.len},
			  .external = {s->saved.external.api_version, s->saved.external.kind,
				       s->saved.external.ns}},
		.proof = {.boot_id = s->proof.boot_id,
			  .text = s->proof.text,
			  .at = hf_field_time(s->proof.present, PROOF_TIME, s->proof.at)},
	};

	for (size_t i = 0; i < conditions_len; i++) {
		const struct condition *c = &s->conditions.items[i];

		status.conditions.items[i] = (struct hf_remediation_condition){
			.type = c->type,
			.status = c->status,
			.reason = c->reason,
			.message = c->message,
			.since = hf_field_time(c->present, CONDITION_SINCE, c->since)};
	}
	return status;
}

static int check_nonce(const char *nonce, struct hf_error *err)
{
	if (strlen(nonce) != HF_REMEDIATION_NONCE_LEN ||
	    strspn(nonce, "0123456789abcdef") != HF_REMEDIATION_NONCE_LEN)
		return hf_error_set(err, HF_E_INVALID,
				    "spec.nonce: must be %d lower-case hexadecimal digits",
				    HF_REMEDIATION_NONCE_LEN);
	return 0;
}

int hf_remediation_read(struct hf_doc *doc, struct hf_arena *arena,
			struct hf_remediation *ret_remediation, struct hf_error *err)
{
	struct object object;
	const struct metadata *m = &object.metadata;
	int rc = hf_fields_read_doc(&object_table, doc, NULL, arena, &object, err);

	if (rc == 0)
		rc = check_nonce(object.spec.nonce, err);
	if (rc != 0)
		return rc;
	*ret_remediation = (struct hf_remediation){
		.name = m->name,
		.uid = m->uid,
		.resource_version = m->resource_version,
		.created_at = hf_field_time(m->present, METADATA_CREATED, m->created),
		.deleting = hf_field_has(m->present, METADATA_DELETED),
		.spec = spec_of(&object.spec, arena),
		.status = status_of(&object.status, arena),
	};
	return 0;
}
