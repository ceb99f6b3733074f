/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "local/engine_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "json/patch.h"

#include <stdio.h>

/*
 * PUT and PATCH.  Both end in "this is what the client wants the object to be"
 * (hf_op_write), from which the parts that are not the client's are put back.
 */

/* Parts of metadata only the server writes. */
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

/* --- what the wish may not say --- */

static int check_version(struct hf_op *op, const struct hf_entry *entry, const struct hf_json *meta)
{
	const char *version = hf_json_path_str(meta, "resourceVersion", NULL);
	int64_t number;

	if (hf_str_is_empty(version) || hf_streq(version, "0")) {
		/* Kinds of a CRD, and leases, never let a writer go on without having read. */
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
	/* A patch of a custom resource's status: metadata is reset from what is stored, and a
	 * wrong uid passes unseen, as on an API server. */
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

/* --- putting back what is not the client's --- */

static struct hf_json *merged_meta(struct hf_op *op, const struct hf_json *wish,
				   const struct hf_json *stored)
{
	/* A patch that leaves metadata alone shares it, and stored is what was put back before. */
	if (wish == stored)
		return hf_json_shallow(stored);
	if (is_status(op) && op->kind->info->custom) {
		struct hf_json *same = hf_json_shallow(stored);

		hf_managed_keep(same, wish, stored);
		return same;
	}

	struct hf_json *meta = hf_json_members(wish);
	for (size_t i = 0; i < HF_ARRAY_LEN(server_fields); i++) {
		const char *key = server_fields[i];
		struct hf_json *value = hf_json_get(stored, key);
		if (value)
			hf_json_set(meta, key, hf_json_ref(value));
		else
			hf_json_remove(meta, key);
	}
	hf_json_remove(meta, "selfLink");
	hf_managed_keep(meta, wish, stored);
	if (is_status(op)) {
		/* A kubelet's status write must not change who owns the pod. */
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

static struct hf_json *merged_object(struct hf_op *op, const struct hf_json *wish,
				     const struct hf_json *stored)
{
	struct hf_json *object;

	if (is_status(op)) {
		object = hf_json_shallow(stored);
		take_member(object, wish, "status");
	} else {
		object = hf_json_members(wish);
		if (op->kind->info->status)
			take_member(object, stored, "status");
		/* spec.finalizers of a namespace goes by "finalize" alone. */
		if (op->kind->resource == &hf_namespaces && !op->request->subresource)
			take_member(object, stored, "spec");
	}
	hf_json_set(
		object, "metadata",
		merged_meta(op, hf_json_get(wish, "metadata"), hf_json_get(stored, "metadata")));
	return object;
}

/* --- what changed --- */

/* All but resourceVersion, which only storing changes. */
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

/* Anything but metadata and status is the spec: what generation counts. */
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

/* Marked deleted, with nothing left to wait for. */
static bool deletion_complete(const struct hf_json *meta)
{
	return hf_json_get(meta, "deletionTimestamp") && !hf_meta_has_finalizers(meta) &&
	       hf_json_i64(hf_json_get(meta, "deletionGracePeriodSeconds"), 0) == 0;
}

/* A namespace waits for spec.finalizers too, which local/gc.c takes away at the end. */
static bool may_vanish(const struct hf_json *object)
{
	return hf_json_len(hf_json_path(object, "spec", "finalizers", NULL)) == 0;
}

static int check_wish(struct hf_op *op, struct hf_entry *entry, const struct hf_json *wish)
{
	const struct hf_json *meta = hf_json_get(wish, "metadata");
	int rc = hf_meta_check_type(op, wish);

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

int hf_op_write(struct hf_op *op, struct hf_entry *entry, struct hf_json *wish_taken)
{
	HF_AUTO_JSON wish = wish_taken;
	const struct hf_json *stored = hf_doc_json(entry->doc);
	int rc = check_wish(op, entry, wish);

	if (rc)
		return rc;
	HF_AUTO_JSON object = merged_object(op, wish, stored);
	/* Nothing asked for: nothing to admit, nothing to store, no event. */
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
	if (deletion_complete(hf_json_get(object, "metadata")) && may_vanish(object))
		return hf_op_done(op, hf_op_remove(op, entry));
	return hf_op_done(op, hf_op_store(op, entry, hf_steal(&object)));
}

/* --- verbs --- */

static struct hf_entry *find(struct hf_op *op)
{
	struct hf_entry *entry = hf_kind_find(op->kind, op->request->ns, op->request->name);

	if (!entry)
		hf_op_not_found(op);
	return entry;
}

static int check_subresource(struct hf_op *op)
{
	const struct hf_resource_info *info = op->kind->info;
	const char *sub = op->request->subresource;

	if ((hf_streq(sub, "status") && !info->status) ||
	    (hf_streq(sub, "scale") && !info->scale_spec) ||
	    (hf_streq(sub, "finalize") && op->kind->resource != &hf_namespaces))
		return hf_op_fail(op, HF_E_NOT_FOUND,
				  "the server could not find the requested resource");
	return 0;
}

int hf_op_update(struct hf_op *op)
{
	struct hf_entry *entry;
	const struct hf_json *body = hf_doc_json(op->request->body);
	int rc = check_subresource(op);

	if (rc)
		return rc;
	entry = find(op);
	if (!entry)
		return op->result->code;
	if (hf_streq(op->request->subresource, "scale"))
		return hf_op_scale_put(op, entry, body);
	return hf_op_write(op, entry, hf_json_share(body));
}

static int apply_patch(struct hf_op *op, const struct hf_json *target, struct hf_json **ret_value)
{
	const struct hf_json *patch = hf_doc_json(op->request->body);
	struct hf_error err = {0};

	switch (op->request->patch_type) {
	case HF_PATCH_MERGE: *ret_value = hf_patch_merge(target, patch); return 0;
	case HF_PATCH_JSON:
		if (hf_json_patch(target, patch, ret_value, &err))
			return hf_op_fail(op, err.code, "%s", err.text);
		return 0;
	case HF_PATCH_STRATEGIC:
		if (op->kind->info->custom)
			return hf_op_fail(op, HF_E_MEDIA_TYPE,
					  "the body of the request was in an unknown format - "
					  "accepted media types include: "
					  "application/json-patch+json, "
					  "application/merge-patch+json");
		if (hf_patch_strategic(target, patch, ret_value, &err))
			return hf_op_fail(op, err.code, "%s", err.text);
		return 0;
	case HF_PATCH_APPLY: break;
	}
	return hf_op_fail(op, HF_E_MEDIA_TYPE, "a scale cannot be applied here: patch it");
}

int hf_op_patch(struct hf_op *op)
{
	struct hf_entry *entry;
	struct hf_json *wish;
	int rc = check_subresource(op);

	if (rc)
		return rc;
	if (op->request->patch_type == HF_PATCH_APPLY)
		return hf_op_apply(op, hf_kind_find(op->kind, op->request->ns, op->request->name));
	entry = find(op);
	if (!entry)
		return op->result->code;
	if (hf_streq(op->request->subresource, "scale")) {
		HF_AUTO_JSON scale = hf_op_scale_of(op, entry);
		if (!scale)
			return op->result->code;
		rc = apply_patch(op, scale, &wish);
		if (rc)
			return rc;
		rc = hf_op_scale_put(op, entry, wish);
		hf_json_unref(wish);
		return rc;
	}
	rc = apply_patch(op, hf_doc_json(entry->doc), &wish);
	if (rc)
		return rc;
	if (hf_json_type(wish) != HF_JSON_OBJECT) {
		hf_json_unref(wish);
		return hf_op_fail(op, HF_E_BAD_REQUEST, "the patch leaves no object");
	}
	return hf_op_write(op, entry, wish);
}
