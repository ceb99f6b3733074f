/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>

/*
 * Deletion and eviction.
 *
 * An object without finalizers and grace period is removed at once. Others get a deletionTimestamp
 * and wait: a pod for the kubelet (grace period), an object with finalizers for their owners, one
 * with a foreground or orphan finalizer for the garbage collector (gc.c), a namespace until it is
 * empty.
 */

static bool is_own_finalizer(const char *name)
{
	return hf_streq(name, HF_FINALIZER_FOREGROUND) || hf_streq(name, HF_FINALIZER_ORPHAN);
}

static int check_preconditions(struct hf_op *op, const struct hf_entry *entry)
{
	const char *uid = op->request->precondition_uid;
	const char *version = op->request->precondition_resource_version;
	const char *stored_uid = hf_doc_uid(entry->doc);
	const char *stored_version = hf_doc_resource_version(entry->doc);
	char why[256];

	if (uid && !hf_streq(uid, stored_uid)) {
		snprintf(why, sizeof(why),
			 "Precondition failed: UID in precondition: %s, UID in object meta: %s",
			 uid, stored_uid);
		return hf_op_conflict(op, why);
	}
	if (version && !hf_streq(version, stored_version)) {
		snprintf(why, sizeof(why),
			 "Precondition failed: ResourceVersion in precondition: %s, "
			 "ResourceVersion in object meta: %s",
			 version, stored_version);
		return hf_op_conflict(op, why);
	}
	return 0;
}

/* Returns the finalizers that the object must still go through, by the propagation policy of the
 * request. A request with the default policy keeps the garbage collector's finalizers of an earlier
 * request. */
static struct hf_json *wanted_finalizers(const struct hf_op *op, const struct hf_json *meta)
{
	const struct hf_json *list = hf_json_get(meta, "finalizers");
	enum hf_propagation propagation = op->request->propagation;
	struct hf_json *out = hf_json_array();

	for (size_t i = 0; i < hf_json_len(list); i++) {
		struct hf_json *item = hf_json_item(list, i);
		if (propagation == HF_PROPAGATE_DEFAULT ||
		    !is_own_finalizer(hf_json_str(item, NULL)))
			hf_json_append(out, hf_json_ref(item));
	}
	if (propagation == HF_PROPAGATE_ORPHAN)
		hf_json_append(out, hf_json_string(HF_FINALIZER_ORPHAN));
	if (propagation == HF_PROPAGATE_FOREGROUND)
		hf_json_append(out, hf_json_string(HF_FINALIZER_FOREGROUND));
	return out;
}

static void bump_generation(struct hf_json *meta)
{
	int64_t generation = hf_json_i64(hf_json_get(meta, "generation"), 0);

	if (generation > 0)
		hf_json_set_i64(meta, "generation", generation + 1);
}

/* Sets the deletion's time. A later request may only shorten the grace period. */
static void set_mark(struct hf_op *op, struct hf_json *meta, int64_t grace)
{
	hf_time marked = hf_meta_time(meta, "deletionTimestamp");
	int64_t old = hf_json_i64(hf_json_get(meta, "deletionGracePeriodSeconds"), 0);

	if (marked == HF_TIME_NONE) {
		bump_generation(meta);
		hf_meta_set_time(meta, "deletionTimestamp", op->now + grace * HF_SECOND);
		hf_json_set_i64(meta, "deletionGracePeriodSeconds", grace);
	} else if (grace < old) {
		hf_time end = marked - (old - grace) * HF_SECOND;

		/* The shortened grace period may already be over, because it counts from the first
		 * request. Then the pod ends now: the length is set to 1 s (0 if the request asks
		 * for 0), which the kubelet sees. */
		if (end < op->now) {
			end = op->now;
			grace = grace == 0 ? 0 : 1;
		}
		hf_meta_set_time(meta, "deletionTimestamp", end);
		hf_json_set_i64(meta, "deletionGracePeriodSeconds", grace);
	}
}

static int64_t grace_of(const struct hf_op *op, const struct hf_json *object)
{
	const struct hf_json *left =
		hf_json_path(object, "metadata", "deletionGracePeriodSeconds", NULL);

	if (op->kind->resource != &hf_pods)
		return 0;
	/* A pod that is already being deleted: the request can only shorten the grace period. A
	 * period of 0 stays 0. */
	if (left)
		return hf_json_i64(left, 0) == 0 ? 0 : op->request->grace_seconds;
	return hf_pod_grace_seconds(object, op->request->grace_seconds);
}

/* True for a pod in its grace period if the request does not shorten that period. Such a request
 * changes nothing, not even finalizers. */
static bool is_pending(const struct hf_op *op, const struct hf_json *object)
{
	int64_t asked = op->request->grace_seconds;
	int64_t left = hf_json_i64(
		hf_json_path(object, "metadata", "deletionGracePeriodSeconds", NULL), 0);

	return op->kind->resource == &hf_pods && left > 0 &&
	       (asked == HF_GRACE_DEFAULT || asked >= left);
}

/* A namespace keeps spec.finalizers until the garbage collector has emptied it. */
static bool holds_content(const struct hf_op *op, const struct hf_json *object)
{
	return op->kind->resource == &hf_namespaces &&
	       hf_json_len(hf_json_path(object, "spec", "finalizers", NULL)) > 0;
}

static void set_terminating(struct hf_json *object)
{
	struct hf_json *status = hf_json_shallow(hf_json_get(object, "status"));

	hf_json_set_str(status, "phase", "Terminating");
	hf_json_set(object, "status", status);
}

static bool is_same_mark(const struct hf_json *a, const struct hf_json *b)
{
	return hf_json_equal(hf_json_get(a, "deletionTimestamp"),
			     hf_json_get(b, "deletionTimestamp")) &&
	       hf_json_equal(hf_json_get(a, "deletionGracePeriodSeconds"),
			     hf_json_get(b, "deletionGracePeriodSeconds")) &&
	       hf_json_equal(hf_json_get(a, "finalizers"), hf_json_get(b, "finalizers"));
}

/* Returns a copy of the stored object with a deletion mark and these finalizers (NULL: no
 * finalizers). Returns NULL if the stored object has both already. */
static struct hf_json *make_marked(struct hf_op *op, const struct hf_json *stored,
				   struct hf_json *finalizers, int64_t grace)
{
	HF_AUTO_JSON object = hf_json_shallow(stored);
	struct hf_json *meta = hf_json_shallow(hf_json_get(stored, "metadata"));

	hf_json_set(object, "metadata", meta);
	if (hf_json_len(finalizers) > 0)
		hf_json_set(meta, "finalizers", hf_json_ref(finalizers));
	else
		hf_json_remove(meta, "finalizers");
	set_mark(op, meta, grace);
	if (is_same_mark(meta, hf_json_get(stored, "metadata")))
		return NULL;
	if (holds_content(op, object))
		set_terminating(object);
	return hf_steal(&object);
}

/* Stores the object with a deletion mark. The reply is the marked object. */
static int store_marked(struct hf_op *op, struct hf_entry *entry, struct hf_json *finalizers,
			int64_t grace)
{
	HF_AUTO_JSON object = make_marked(op, hf_doc_json(entry->doc), finalizers, grace);

	if (!object)
		return hf_op_done(op, hf_doc_ref(entry->doc));
	if (op->request->dry_run)
		return hf_op_done(op, hf_doc_from_json(hf_steal(&object)));
	int rc = hf_op_size_check(op, object, entry->name, entry);
	if (rc)
		return rc;
	return hf_op_done(op, hf_op_store(op, entry, hf_steal(&object)));
}

/* Stores a pod with a deletion mark before the pod is removed, as kube-apiserver does. So watchers
 * can tell a requested deletion from a pod that vanished. */
static void store_mark_first(struct hf_op *op, struct hf_entry *entry)
{
	const struct hf_json *stored = hf_doc_json(entry->doc);

	if (op->kind->resource != &hf_pods || op->request->dry_run)
		return;
	HF_AUTO_JSON object = make_marked(op, stored, NULL, 0);

	if (!object)
		return;
	/* Do not check the size: a full store must not prevent the deletion of a pod. */
	op->bytes = hf_json_text_size_after(stored, entry->bytes, object);
	hf_doc_unref(hf_op_store(op, entry, hf_steal(&object)));
}

static int remove_now(struct hf_op *op, struct hf_entry *entry)
{
	const struct hf_resource *r = op->kind->resource;
	bool returns_object = r == &hf_pods || r == &hf_services ||
			      r == &hf_persistentvolumeclaims || r == &hf_serviceaccounts;

	store_mark_first(op, entry);
	HF_AUTO_DOC last = hf_doc_ref(entry->doc);

	if (!op->request->dry_run) {
		hf_doc_unref(last);
		last = hf_op_remove(op, entry);
	}
	/* As in kube-apiserver, the reply to a deletion is the object for some kinds, and a Status
	 * for the others. */
	if (returns_object)
		return hf_op_done(op, hf_steal(&last));
	return hf_op_done(
		op, hf_doc_from_json(hf_status_success(r, hf_doc_name(last), hf_doc_uid(last))));
}

int hf_op_delete(struct hf_op *op)
{
	struct hf_entry *entry = hf_kind_find(op->kind, op->request->ns, op->request->name);

	if (!entry)
		return hf_op_not_found(op);
	int rc = check_preconditions(op, entry);
	if (rc)
		return rc;
	if (op->kind->resource == &hf_namespaces &&
	    (hf_streq(entry->name, "default") || hf_streq(entry->name, "kube-system") ||
	     hf_streq(entry->name, "kube-public")))
		return hf_op_forbidden(op, entry->name, "this namespace may not be deleted");
	rc = hf_op_admit(op, HF_VERB_DELETE, entry->doc, NULL);
	if (rc)
		return rc;

	const struct hf_json *stored = hf_doc_json(entry->doc);
	if (is_pending(op, stored))
		return hf_op_done(op, hf_doc_ref(entry->doc));
	int64_t grace = grace_of(op, stored);
	HF_AUTO_JSON finalizers = wanted_finalizers(op, hf_json_get(stored, "metadata"));
	if (grace == 0 && hf_json_len(finalizers) == 0 && !holds_content(op, stored))
		return remove_now(op, entry);
	return store_marked(op, entry, finalizers, grace);
}

/* --- eviction: a deletion that is not the pod's fault
 * ------------------------------------------------ */

/* Returns a copy of the pod with the condition DisruptionTarget; an earlier condition of this type
 * is replaced. */
static struct hf_json *make_disruption_target(const struct hf_op *op, const struct hf_json *stored)
{
	struct hf_json *object = hf_json_shallow(stored), *condition = hf_json_object();
	struct hf_json *status = hf_json_shallow(hf_json_get(stored, "status"));
	const struct hf_json *old = hf_json_get(status, "conditions");
	struct hf_json *list = hf_json_array();

	for (size_t i = 0; i < hf_json_len(old); i++)
		if (!hf_streq(hf_json_path_str(hf_json_item(old, i), "type", NULL),
			      "DisruptionTarget"))
			hf_json_append(list, hf_json_ref(hf_json_item(old, i)));
	hf_json_set_str(condition, "type", "DisruptionTarget");
	hf_json_set_str(condition, "status", "True");
	hf_json_set(condition, "lastProbeTime", hf_json_null());
	hf_meta_set_time(condition, "lastTransitionTime", op->now);
	hf_json_set_str(condition, "reason", "EvictionByEvictionAPI");
	hf_json_set_str(condition, "message", "Eviction API: evicting");
	hf_json_append(list, condition);
	hf_json_set(status, "conditions", list);
	hf_json_set(object, "status", status);
	hf_json_set(object, "metadata", hf_json_shallow(hf_json_get(stored, "metadata")));
	return object;
}

int hf_op_evict(struct hf_op *op)
{
	const struct hf_request *asked = op->request;
	struct hf_entry *entry = hf_kind_find(op->kind, asked->ns, asked->name);
	struct hf_request deletion = {.verb = HF_VERB_DELETE,
				      .resource = asked->resource,
				      .ns = asked->ns,
				      .name = asked->name,
				      .grace_seconds = HF_GRACE_DEFAULT,
				      .dry_run = asked->dry_run};
	int rc;

	if (op->kind->resource != &hf_pods)
		return hf_op_fail(op, HF_E_NOT_FOUND,
				  "the server could not find the requested resource");
	if (!entry)
		return hf_op_not_found(op);
	deletion.precondition_uid = hf_json_path_str(hf_doc_json(asked->body), "deleteOptions",
						     "preconditions", "uid", NULL);
	op->request = &deletion;
	rc = check_preconditions(op, entry);
	if (rc == 0 && !asked->dry_run) {
		HF_AUTO_JSON object = make_disruption_target(op, hf_doc_json(entry->doc));

		rc = hf_op_size_check(op, object, entry->name, entry);
		if (rc == 0)
			hf_doc_unref(hf_op_store(op, entry, hf_steal(&object)));
	}
	if (rc == 0)
		rc = hf_op_delete(op);
	op->request = asked;
	return rc;
}
