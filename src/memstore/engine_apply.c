/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * Server-side apply, and the ownership of fields, as on an API server.
 *
 * An object that was never applied has no managedFields, which costs nothing. The first apply gives
 * all its fields to "before-first-apply". From then on every write records its manager:
 *
 *    apply        A field that another manager owns and that would change is a conflict; with force the
 *                 other manager loses it. A field of the manager's previous apply that is missing now
 *                 is removed, unless another manager owns it too.
 *    PUT, PATCH   The manager becomes the owner of the fields that the write changes.
 */

#define BEFORE "before-first-apply"
#define APPLY "Apply"
#define UPDATE "Update"
#define MANAGER_BYTES_MAX 128 /* upstream's limit */

/* Fields of metadata that no manager owns: fields that the server sets, and the name of the
 * object. */
static const char *const unowned_fields[] = {"name",
					     "namespace",
					     "uid",
					     "selfLink",
					     "resourceVersion",
					     "generation",
					     "generateName",
					     "creationTimestamp",
					     "deletionTimestamp",
					     "managedFields",
					     "deletionGracePeriodSeconds"};

static bool is_status(const struct hf_op *op)
{
	return hf_streq(op->request->subresource, "status");
}

/* Copies the part of object whose fields this request can own: status for a request to the
 * subresource status, else all but status. */
static struct hf_json *owned_part(const struct hf_op *op, const struct hf_json *object)
{
	struct hf_json *out, *meta;

	if (is_status(op)) {
		out = hf_json_object();
		if (hf_json_get(object, "status"))
			hf_json_set(out, "status", hf_json_ref(hf_json_get(object, "status")));
		return out;
	}
	out = hf_json_members(object);
	hf_json_remove(out, "apiVersion");
	hf_json_remove(out, "kind");
	if (op->kind->info->status)
		hf_json_remove(out, "status");
	meta = hf_json_members(hf_json_get(object, "metadata"));
	for (size_t i = 0; i < HF_ARRAY_LEN(unowned_fields); i++)
		hf_json_remove(meta, unowned_fields[i]);
	hf_json_set(out, "metadata", meta);
	if (hf_json_len(meta) == 0)
		hf_json_remove(out, "metadata");
	return out;
}

static struct hf_json *fields_of(const struct hf_op *op, const struct hf_json *object)
{
	HF_AUTO_JSON part = owned_part(op, object);

	return hf_json_len(part) == 0 ? hf_json_object() : hf_fieldset_of(part);
}

static struct hf_fieldset_diff diff_objects(const struct hf_op *op, const struct hf_json *old,
					    const struct hf_json *new)
{
	HF_AUTO_JSON from = owned_part(op, old);
	HF_AUTO_JSON to = owned_part(op, new);

	return hf_fieldset_diff(from, to);
}

/* --- entries of managedFields --- */

/* Writes the field manager of a request: the name that the request gives, else its User-Agent up
 * to the first "/". */
static void manager_of(const struct hf_op *op, char *text, size_t size)
{
	const char *manager = hf_str_or(op->request->field_manager, "holdfast");

	snprintf(text, size, "%.*s", (int)strcspn(manager, "/"), manager);
}

/* Returns the subresource that the request's entry in managedFields names; NULL: the object
 * itself. */
static const char *subresource_of(const struct hf_op *op)
{
	return op->scales ? "scale" : op->request->subresource;
}

static bool is_entry_of(const struct hf_op *op, const struct hf_json *entry, const char *operation)
{
	char manager[MANAGER_BYTES_MAX];

	manager_of(op, manager, sizeof(manager));
	return hf_streq(hf_json_path_str(entry, "manager", NULL), manager) &&
	       hf_streq(hf_json_path_str(entry, "operation", NULL), operation) &&
	       hf_streq(hf_str_or(hf_json_path_str(entry, "subresource", NULL), ""),
			hf_str_or(subresource_of(op), ""));
}

static struct hf_json *new_entry(const struct hf_op *op, const char *manager, const char *operation)
{
	const struct hf_resource *resource = op->kind->resource;
	struct hf_json *entry = hf_json_object();
	char version[128];

	snprintf(version, sizeof(version), "%s%s%s", resource->group, *resource->group ? "/" : "",
		 resource->version);
	hf_json_set_str(entry, "manager", manager);
	hf_json_set_str(entry, "operation", operation);
	hf_json_set_str(entry, "apiVersion", version);
	hf_meta_set_time(entry, "time", op->now);
	hf_json_set_str(entry, "fieldsType", "FieldsV1");
	return entry;
}

static struct hf_json *fields_in(const struct hf_json *entry)
{
	const struct hf_json *wire = hf_json_get(entry, "fieldsV1");

	return hf_json_len(wire) == 0 ? hf_json_object() : hf_fieldset_read(wire);
}

/* Returns a copy of the entry with these fields and the present time. If the entry has these fields
 * already, returns the entry itself, so that its time does not change. */
static struct hf_json *with_fields(const struct hf_json *entry, const struct hf_json *fields,
				   const struct hf_op *op)
{
	HF_AUTO_JSON wire = hf_fieldset_write(fields);
	struct hf_json *out;

	if (hf_json_equal(wire, hf_json_get(entry, "fieldsV1")))
		return hf_json_share(entry);
	out = hf_json_shallow(entry);
	hf_meta_set_time(out, "time", op->now);
	hf_json_set(out, "fieldsV1", hf_json_ref(wire));
	return out;
}

/* Appends a copy of the entry with these fields to list, unless there are no fields. Takes over
 * fields. */
static void add_entry(const struct hf_op *op, struct hf_json *list, const struct hf_json *entry,
		      struct hf_json *fields)
{
	if (hf_json_len(fields) > 0)
		hf_json_append(list, with_fields(entry, fields, op));
	hf_json_unref(fields);
}

static bool has_entries(const struct hf_json *managed)
{
	/* False also for the list [{}], by which a client removes all entries. */
	return hf_json_len(managed) > 0 && hf_json_len(hf_json_item(managed, 0)) > 0;
}

/* --- an ordinary write --- */

void hf_managed_keep(struct hf_json *meta, const struct hf_json *desired,
		     const struct hf_json *stored)
{
	const struct hf_json *managed = hf_json_get(desired, "managedFields");

	if (hf_json_type(managed) != HF_JSON_ARRAY)
		managed = hf_json_get(stored, "managedFields");
	if (has_entries(managed))
		hf_json_set(meta, "managedFields", hf_json_share(managed));
	else
		hf_json_remove(meta, "managedFields");
}

void hf_managed_note(struct hf_op *op, const struct hf_json *stored, struct hf_json *object)
{
	struct hf_json *meta = hf_json_get(object, "metadata");
	const struct hf_json *managed = hf_json_get(meta, "managedFields");
	char manager[MANAGER_BYTES_MAX];
	bool found = false;

	if (!managed || op->applied)
		return;
	struct hf_fieldset_diff made = diff_objects(op, stored, object);
	struct hf_json *list = hf_json_array();
	for (size_t i = 0; i < hf_json_len(managed); i++) {
		const struct hf_json *entry = hf_json_item(managed, i);
		HF_AUTO_JSON fields = fields_in(entry);
		HF_AUTO_JSON left = hf_fieldset_minus(fields, made.removed);

		if (is_entry_of(op, entry, UPDATE)) {
			found = true;
			add_entry(op, list, entry, hf_fieldset_union(left, made.changed));
		} else {
			add_entry(op, list, entry, hf_fieldset_minus(left, made.changed));
		}
	}
	manager_of(op, manager, sizeof(manager));
	if (!found && hf_json_len(made.changed) > 0) {
		HF_AUTO_JSON entry = new_entry(op, manager, UPDATE);

		if (subresource_of(op))
			hf_json_set_str(entry, "subresource", subresource_of(op));
		add_entry(op, list, entry, hf_json_ref(made.changed));
	}
	hf_json_set(meta, "managedFields", list);
	hf_fieldset_diff_release(&made);
}

/* --- apply --- */

/* The state of one apply. */
struct apply {
	struct hf_op *op;
	const struct hf_json *config;
	struct hf_json *own;     /* fields of the configuration */
	struct hf_json *last;    /* fields of the manager's previous apply */
	struct hf_json *others;  /* fields of other managers: apply must not remove these fields */
	struct hf_json *managed; /* the new managedFields */
	/* name of the owner in the text of the conflict that is being added */
	const char *owner;
	size_t conflicts;
};

static void apply_release(struct apply *apply)
{
	hf_json_unref(apply->own);
	hf_json_unref(apply->last);
	hf_json_unref(apply->others);
	hf_json_unref(apply->managed);
}

static void add_conflict(void *arg, const char *path)
{
	struct apply *apply = arg;

	apply->conflicts++;
	hf_op_problem(apply->op, "FieldManagerConflict", path, "conflict with %s", apply->owner);
}

static void add_conflicts(struct apply *apply, const struct hf_json *entry,
			  const struct hf_json *fields)
{
	HF_AUTO_STRBUF owner = HF_STRBUF_INIT(1024);
	const char *subresource = hf_json_path_str(entry, "subresource", NULL);

	hf_strbuf_addf(&owner, "\"%s\"",
		       hf_str_or(hf_json_path_str(entry, "manager", NULL), "unknown"));
	if (subresource)
		hf_strbuf_addf(&owner, " with subresource \"%s\"", subresource);
	hf_strbuf_addf(&owner, " using %s",
		       hf_str_or(hf_json_path_str(entry, "apiVersion", NULL), "v1"));
	apply->owner = owner.data;
	hf_fieldset_each(fields, add_conflict, apply);
}

static void classify_entry(struct apply *apply, const struct hf_json *entry,
			   const struct hf_json *changed)
{
	HF_AUTO_JSON fields = fields_in(entry);
	HF_AUTO_JSON taken = hf_fieldset_both(fields, changed);

	if (is_entry_of(apply->op, entry, APPLY)) {
		hf_json_unref(apply->last);
		apply->last = hf_json_ref(fields);
		return;
	}
	if (hf_json_len(taken) > 0 && !apply->op->request->force)
		add_conflicts(apply, entry, taken);
	HF_AUTO_JSON left = hf_fieldset_minus(fields, taken);
	HF_AUTO_JSON before = apply->others;
	apply->others = hf_fieldset_union(before, left);
	add_entry(apply->op, apply->managed, entry, hf_json_ref(left));
}

static struct hf_json *entries_of(const struct hf_op *op, const struct hf_json *stored)
{
	const struct hf_json *managed = hf_json_path(stored, "metadata", "managedFields", NULL);
	struct hf_json *list, *fields;

	if (has_entries(managed))
		return hf_json_share(managed);
	list = hf_json_array();
	fields = fields_of(op, stored);
	HF_AUTO_JSON entry = new_entry(op, BEFORE, UPDATE);
	add_entry(op, list, entry, fields);
	return list;
}

static void add_own_entry(struct apply *apply, const struct hf_json *entries)
{
	struct hf_op *op = apply->op;
	HF_AUTO_JSON entry = NULL;
	char manager[MANAGER_BYTES_MAX];

	for (size_t i = 0; i < hf_json_len(entries) && !entry; i++)
		if (is_entry_of(op, hf_json_item(entries, i), APPLY))
			entry = hf_json_share(hf_json_item(entries, i));
	manager_of(op, manager, sizeof(manager));
	if (!entry)
		entry = new_entry(op, manager, APPLY);
	if (op->request->subresource && !hf_json_get(entry, "subresource"))
		hf_json_set_str(entry, "subresource", op->request->subresource);
	add_entry(op, apply->managed, entry, hf_json_ref(apply->own));
}

static int fail_conflicts(struct apply *apply)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(8192);
	struct hf_op *op = apply->op;

	hf_strbuf_addf(&text, "Apply failed with %zu conflict%s:", apply->conflicts,
		       apply->conflicts == 1 ? "" : "s");
	for (size_t i = 0; i < hf_json_len(op->causes); i++) {
		const struct hf_json *cause = hf_json_item(op->causes, i);

		hf_strbuf_addf(&text, "%s %s: %s", i > 0 ? "," : "",
			       hf_json_str(hf_json_get(cause, "message"), ""),
			       hf_json_str(hf_json_get(cause, "field"), ""));
	}
	return hf_op_fail(op, HF_E_CONFLICT, "%s", text.data);
}

/* Returns the object that results from the apply; NULL if hf_op_fail was called with the reason. */
static struct hf_json *make_applied(struct apply *apply, const struct hf_json *stored)
{
	struct hf_op *op = apply->op;
	HF_AUTO_JSON desired = hf_fieldset_merge(stored, apply->config);
	HF_AUTO_JSON entries = entries_of(op, stored);
	struct hf_fieldset_diff made = diff_objects(op, stored, desired);

	for (size_t i = 0; i < hf_json_len(entries); i++)
		classify_entry(apply, hf_json_item(entries, i), made.changed);
	hf_fieldset_diff_release(&made);
	if (apply->conflicts > 0) {
		fail_conflicts(apply);
		return NULL;
	}
	add_own_entry(apply, entries);
	HF_AUTO_JSON kept = hf_fieldset_union(apply->own, apply->others);
	HF_AUTO_JSON gone = hf_fieldset_minus(apply->last, kept);
	struct hf_json *object = hf_fieldset_prune(desired, gone, kept);
	struct hf_json *meta = hf_json_members(hf_json_get(object, "metadata"));
	hf_json_set(meta, "managedFields", hf_json_ref(apply->managed));
	hf_json_set(object, "metadata", meta);
	return object;
}

/* Creates the object, like a CREATE of the configuration with managedFields. */
static int create_applied(struct apply *apply)
{
	struct hf_op *op = apply->op;
	const struct hf_request *asked = op->request;
	struct hf_request request = *asked;
	struct hf_json *object = hf_fieldset_merge(NULL, apply->config);
	struct hf_json *meta = hf_json_members(hf_json_get(object, "metadata"));
	int rc;

	add_own_entry(apply, NULL);
	hf_json_set_str(meta, "name", asked->name);
	hf_json_set(meta, "managedFields", hf_json_ref(apply->managed));
	hf_json_set(object, "metadata", meta);
	request.body = hf_doc_from_json(object);
	op->request = &request;
	rc = hf_op_create(op);
	op->request = asked;
	hf_doc_unref(request.body);
	return rc;
}

static int check_config(struct hf_op *op, const struct hf_json *config)
{
	const char *name = hf_json_path_str(config, "metadata", "name", NULL);

	if (hf_streq(op->request->subresource, "scale"))
		return hf_op_fail(op, HF_E_MEDIA_TYPE,
				  "server-side apply of a scale is not supported: patch the scale");
	if (hf_json_type(config) != HF_JSON_OBJECT)
		return hf_op_fail(op, HF_E_BAD_REQUEST,
				  "the applied configuration must be an object");
	if (hf_json_len(hf_json_path(config, "metadata", "managedFields", NULL)) > 0)
		return hf_op_fail(op, HF_E_BAD_REQUEST, "metadata.managedFields must be nil");
	if (!hf_str_is_empty(name) && !hf_streq(name, op->request->name))
		return hf_op_fail(op, HF_E_BAD_REQUEST,
				  "the name of the object (%s) does not match the name on the URL "
				  "(%s)",
				  name, op->request->name);
	return hf_meta_check_type(op, config);
}

int hf_op_apply(struct hf_op *op, struct hf_entry *entry)
{
	struct apply apply = {.op = op, .config = hf_doc_json(op->request->body)};
	struct hf_json *object;
	int rc = check_config(op, apply.config);

	if (rc)
		return rc;
	if (!entry && op->request->subresource)
		return hf_op_not_found(op);
	op->applied = true;
	apply.own = fields_of(op, apply.config);
	apply.last = hf_json_object();
	apply.others = hf_json_object();
	apply.managed = hf_json_array();
	if (entry) {
		object = make_applied(&apply, hf_doc_json(entry->doc));
		rc = object ? hf_op_write(op, entry, object) : op->result->code;
	} else {
		rc = create_applied(&apply);
	}
	apply_release(&apply);
	return rc;
}
