/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>

/*
 * Writes an object that a client wants over the stored one (hf_op_write); PUT, PATCH, apply and
 * scale end here. The parts that clients may not change are restored from the stored object: status
 * or spec, depending on the subresource, and the server's fields of metadata.
 */

/* Fields of metadata that only the server writes. */
static const char *const server_fields[] = {"creationTimestamp",
					    "deletionTimestamp",
					    "deletionGracePeriodSeconds",
					    "generation",
					    "uid",
					    "namespace",
					    "name"};

static bool is_status(const struct hf_op *op)
{
	return hf_streq(op->request->subresource, "status");
}

/* --- checks of the desired object --- */

static int check_version(struct hf_op *op, const struct hf_entry *entry, const struct hf_json *meta)
{
	const char *version = hf_json_path_str(meta, "resourceVersion", NULL);
	int64_t number;

	if (hf_str_is_empty(version) || hf_streq(version, "0")) {
		/* An update of a custom resource or a Lease must name a resourceVersion; other
		 * kinds need none. */
		if (!op->kind->info->custom && op->kind->resource != &hf_leases)
			return 0;
		hf_op_problem(op, "FieldValueInvalid", "metadata.resourceVersion",
			      "Invalid value: 0: must be specified for an update");
		return hf_op_invalid(op, entry->name);
	}
	if (hf_str_to_i64(version, 0, INT64_MAX, &number, NULL)) {
		hf_op_problem(op, "FieldValueInvalid", "metadata.resourceVersion",
			      "Invalid value: \"%s\": not a resource version", version);
		return hf_op_invalid(op, entry->name);
	}
	if ((uint64_t)number != entry->version)
		return hf_op_conflict(op, HF_MESSAGE_MODIFIED);
	return 0;
}

static int check_uid(struct hf_op *op, const struct hf_entry *entry, const struct hf_json *meta)
{
	const char *uid = hf_json_path_str(meta, "uid", NULL);
	const char *stored = hf_doc_uid(entry->doc);

	if (hf_str_is_empty(uid) || hf_streq(uid, stored))
		return 0;
	if (op->request->verb == HF_VERB_UPDATE) {
		char why[256];
		snprintf(why, sizeof(why),
			 "Precondition failed: UID in precondition: %s, UID in object meta: %s",
			 uid, stored);
		return hf_op_conflict(op, why);
	}
	/* In a status patch of a custom resource the metadata is restored from the stored object,
	 * so a wrong uid has no effect, as on an API server. */
	if (is_status(op) && op->kind->info->custom)
		return 0;
	hf_op_problem(op, "FieldValueInvalid", "metadata.uid",
		      "Invalid value: \"%s\": field is immutable", uid);
	return hf_op_invalid(op, entry->name);
}

static int check_identity(struct hf_op *op, const struct hf_entry *entry,
			  const struct hf_json *meta)
{
	const char *name = hf_json_path_str(meta, "name", NULL);
	const char *ns = hf_json_path_str(meta, "namespace", NULL);

	if (!hf_str_is_empty(name) && !hf_streq(name, entry->name))
		return hf_op_fail(op, HF_E_BAD_REQUEST,
				  "the name of the object (%s) does not match the name on the URL "
				  "(%s)",
				  name, entry->name);
	if (op->kind->resource->namespaced && !hf_str_is_empty(ns) && !hf_streq(ns, entry->ns))
		return hf_op_fail(op, HF_E_BAD_REQUEST,
				  "the namespace of the object (%s) does not match the namespace "
				  "on the URL (%s)",
				  ns, entry->ns);
	if (hf_json_get(meta, "deletionTimestamp") &&
	    hf_json_type(hf_json_get(meta, "deletionTimestamp")) != HF_JSON_NULL &&
	    !hf_json_path(hf_doc_json(entry->doc), "metadata", "deletionTimestamp", NULL)) {
		hf_op_problem(op, "FieldValueInvalid", "metadata.deletionTimestamp",
			      "Invalid value: field is immutable; may only be changed by "
			      "deleting");
		return hf_op_invalid(op, entry->name);
	}
	return 0;
}

/* --- restoring the parts that clients may not change --- */

static struct hf_json *restore_meta(struct hf_op *op, const struct hf_json *desired,
				    const struct hf_json *stored)
{
	/* A patch that does not change the metadata shares it with the stored object, so there is
	 * nothing to restore. */
	if (desired == stored)
		return hf_json_shallow(stored);
	if (is_status(op) && op->kind->info->custom) {
		struct hf_json *same = hf_json_shallow(stored);

		hf_managed_keep(same, desired, stored);
		return same;
	}

	struct hf_json *meta = hf_json_members(desired);
	for (size_t i = 0; i < HF_ARRAY_LEN(server_fields); i++) {
		const char *key = server_fields[i];
		struct hf_json *value = hf_json_get(stored, key);
		if (value)
			hf_json_set(meta, key, hf_json_ref(value));
		else
			hf_json_remove(meta, key);
	}
	hf_json_remove(meta, "selfLink");
	hf_managed_keep(meta, desired, stored);
	if (is_status(op)) {
		/* Keep the stored owners: a write of status must not change them. */
		hf_json_remove(meta, "ownerReferences");
		if (hf_json_get(stored, "ownerReferences"))
			hf_json_set(meta, "ownerReferences",
				    hf_json_ref(hf_json_get(stored, "ownerReferences")));
	}
	return meta;
}

static void take_member(struct hf_json *object, const struct hf_json *from, const char *key)
{
	struct hf_json *value = hf_json_get(from, key);

	if (value && hf_json_type(value) != HF_JSON_NULL)
		hf_json_set(object, key, hf_json_ref(value));
	else
		hf_json_remove(object, key);
}

static struct hf_json *restore_object(struct hf_op *op, const struct hf_json *desired,
				      const struct hf_json *stored)
{
	struct hf_json *object;

	if (is_status(op)) {
		object = hf_json_shallow(stored);
		take_member(object, desired, "status");
	} else {
		object = hf_json_members(desired);
		if (op->kind->info->status)
			take_member(object, stored, "status");
		/* spec.finalizers of a namespace changes only by the subresource "finalize". */
		if (op->kind->resource == &hf_namespaces && !op->request->subresource)
			take_member(object, stored, "spec");
	}
	hf_json_set(object, "metadata",
		    restore_meta(op, hf_json_get(desired, "metadata"),
				 hf_json_get(stored, "metadata")));
	return object;
}

/* --- what changed --- */

/* Compares metadata without resourceVersion, which every write changes. */
static bool meta_equal(const struct hf_json *a, const struct hf_json *b)
{
	const char *key;
	struct hf_json *value;
	size_t seen = 0, total = 0;
	void *at = NULL;

	for (void *it = NULL; (it = hf_json_next(a, it, &key, &value));) {
		if (hf_streq(key, "resourceVersion"))
			continue;
		if (!hf_json_equal(value, hf_json_get_along(b, &at, key)))
			return false;
		seen++;
	}
	total = hf_json_len(b) - (hf_json_get(b, "resourceVersion") != NULL);
	return seen == total;
}

static bool objects_equal(const struct hf_json *a, const struct hf_json *b)
{
	const char *key;
	struct hf_json *value;

	if (hf_json_len(a) != hf_json_len(b))
		return false;
	for (void *it = NULL; (it = hf_json_next(a, it, &key, &value));) {
		const struct hf_json *other = hf_json_get(b, key);
		if (hf_streq(key, "metadata") ? !meta_equal(value, other)
					      : !hf_json_equal(value, other))
			return false;
	}
	return true;
}

/* True if a member other than metadata and status differs; metadata.generation counts such
 * changes. */
static bool spec_changed(const struct hf_json *a, const struct hf_json *b)
{
	const char *key;
	struct hf_json *value;
	size_t members_a = 0, members_b = 0;

	for (void *it = NULL; (it = hf_json_next(a, it, &key, &value));) {
		if (hf_streq(key, "metadata") || hf_streq(key, "status"))
			continue;
		if (!hf_json_equal(value, hf_json_get(b, key)))
			return true;
		members_a++;
	}
	for (void *it = NULL; (it = hf_json_next(b, it, &key, &value));)
		members_b += !hf_streq(key, "metadata") && !hf_streq(key, "status");
	return members_a != members_b;
}

/* True for an object that is marked as deleted and has no finalizers and no grace period left. */
static bool deletion_complete(const struct hf_json *meta)
{
	return hf_json_get(meta, "deletionTimestamp") && !hf_meta_has_finalizers(meta) &&
	       hf_json_i64(hf_json_get(meta, "deletionGracePeriodSeconds"), 0) == 0;
}

/* True if a namespace has no spec.finalizers left. The garbage collector removes them when the
 * namespace is empty. */
static bool has_no_spec_finalizers(const struct hf_json *object)
{
	return hf_json_len(hf_json_path(object, "spec", "finalizers", NULL)) == 0;
}

static int check_desired(struct hf_op *op, struct hf_entry *entry, const struct hf_json *desired)
{
	const struct hf_json *meta = hf_json_get(desired, "metadata");
	int rc = hf_meta_check_type(op, desired);

	if (rc == 0)
		rc = check_identity(op, entry, meta);
	if (rc == 0)
		rc = check_uid(op, entry, meta);
	if (rc == 0)
		rc = check_version(op, entry, meta);
	return rc;
}

static int check_result(struct hf_op *op, struct hf_entry *entry, const struct hf_json *object)
{
	const struct hf_json *stored = hf_doc_json(entry->doc);

	hf_meta_check(op, hf_json_get(object, "metadata"), hf_json_get(stored, "metadata"));
	if (op->kind->resource == &hf_pods && !is_status(op))
		hf_pod_check_update(op, stored, object);
	if (hf_op_has_problems(op))
		return hf_op_invalid(op, entry->name);
	return hf_op_size_check(op, object, entry->name, entry);
}

static void count_generation(struct hf_op *op, const struct hf_json *stored, struct hf_json *object)
{
	struct hf_json *meta = hf_json_get(object, "metadata");

	if (op->kind->info->generation && !is_status(op) && spec_changed(stored, object))
		hf_json_set_i64(meta, "generation",
				hf_json_i64(hf_json_get(meta, "generation"), 0) + 1);
}

int hf_op_write(struct hf_op *op, struct hf_entry *entry, struct hf_json *desired_taken)
{
	HF_AUTO_JSON desired = desired_taken;
	const struct hf_json *stored = hf_doc_json(entry->doc);
	int rc = check_desired(op, entry, desired);

	if (rc)
		return rc;
	HF_AUTO_JSON object = restore_object(op, desired, stored);
	/* The write changes nothing, so it ends here: the rules do not run, and there is no new
	 * version and no event. */
	if (objects_equal(stored, object) && !deletion_complete(hf_json_get(object, "metadata")))
		return hf_op_done(op, hf_doc_ref(entry->doc));
	rc = hf_op_admit(op, HF_VERB_UPDATE, entry->doc, &object);
	if (rc == 0)
		hf_managed_note(op, stored, object);
	if (rc == 0)
		rc = check_result(op, entry, object);
	if (rc)
		return rc;
	count_generation(op, stored, object);
	if (op->request->dry_run)
		return hf_op_done(op, hf_doc_from_json(hf_steal(&object)));
	if (objects_equal(stored, object) && !deletion_complete(hf_json_get(object, "metadata")))
		return hf_op_done(op, hf_doc_ref(entry->doc));
	if (deletion_complete(hf_json_get(object, "metadata")) && has_no_spec_finalizers(object))
		return hf_op_done(op, hf_op_remove(op, entry));
	return hf_op_done(op, hf_op_store(op, entry, hf_steal(&object)));
}
