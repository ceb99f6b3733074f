/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/gc.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "memstore/memstore_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The garbage collector: owners and dependents, and the emptying of namespaces.
 *
 * A committed change can turn objects into garbage, or free an owner that waits for them. The
 * collector queues the keys of such objects and processes each key once, in the object's state at
 * that time. Processing is idempotent and keeps no state. So after a start or a failed commit the
 * collector queues every candidate again.
 */

/* Limit of queued keys: as many objects as fit into the store. */
#define QUEUE_MAX ((size_t)HF_RESOURCES_MAX * HF_MEMSTORE_OBJECTS_MAX)
#define PER_PASS 1000               /* keys per turn of the loop */
#define RETRY_AFTER (5 * HF_SECOND) /* delay before a write that was refused is tried again */
#define RESCAN_AFTER HF_SECOND      /* delay after a failed commit */

struct hf_gc {
	struct hf_memstore *memstore;
	struct hf_memstore_observer observer;
	hf_time delay;
	struct hf_timer *timer;
	struct hf_map *queue; /* "KIND/NS/NAME" to the kind */
	struct hf_map *refused;
	bool rescan;
};

static const struct hf_json *meta_of(struct hf_doc *doc)
{
	return hf_json_get(hf_doc_json(doc), "metadata");
}

/* Arms the timer for the span `after`, unless it is armed for an earlier time. */
static void arm_timer(struct hf_gc *gc, hf_time after)
{
	hf_time now = hf_loop_mono(hf_memstore_loop(gc->memstore));

	if (!hf_timer_armed(gc->timer) || hf_timer_due(gc->timer) > hf_time_add(now, after))
		hf_timer_arm(gc->timer, after);
}

static void enqueue_into(struct hf_gc *gc, struct hf_map *map, struct hf_kind *kind, const char *ns,
			 const char *name)
{
	HF_AUTOFREE char *key = hf_xasprintf("%s.%s/%s/%s", kind->resource->plural,
					     kind->resource->group, ns, name);

	hf_assert(hf_map_put(map, key, kind));
}

static void enqueue_object(struct hf_gc *gc, struct hf_kind *kind, const char *ns, const char *name)
{
	enqueue_into(gc, gc->queue, kind, ns, name);
	arm_timer(gc, gc->delay);
}

static void enqueue_dependents(struct hf_gc *gc, const char *uid)
{
	struct hf_owner *owner = hf_engine_owner(gc->memstore->engine, uid);

	for (struct hf_owner_link *l = owner ? owner->first : NULL; l; l = l->next)
		enqueue_object(gc, l->entry->kind, l->entry->ns, l->entry->name);
}

/* --- owners --- */

/* Finds the object that an ownerReference names by kind and name; the object may have another UID.
 * *ret_known is false if the reference cannot be followed: the kind is unknown here, or the owner
 * is namespaced and the dependent is not. The collector never treats such an owner as deleted. */
static struct hf_entry *owner_entry(struct hf_gc *gc, const struct hf_json *ref, const char *ns,
				    bool *ret_known)
{
	const char *version = hf_json_path_str(ref, "apiVersion", NULL);
	const char *kind_name = hf_json_path_str(ref, "kind", NULL);
	const char *name = hf_json_path_str(ref, "name", NULL);
	const struct hf_resource *resource =
		version && kind_name ? hf_resource_by_kind(version, kind_name) : NULL;

	*ret_known = resource && name && (!resource->namespaced || *ns);
	if (!*ret_known)
		return NULL;
	return hf_kind_find(hf_engine_kind(gc->memstore->engine, resource), ns, name);
}

/* The state of an owner. SOLID: it exists, or nothing is known about it. WAITING: it is in
 * foreground deletion. GONE: it was deleted, or another object (another UID) has its name. */
enum owner_state { OWNER_SOLID, OWNER_WAITING, OWNER_GONE };

static enum owner_state classify_owner(struct hf_gc *gc, const struct hf_json *ref, const char *ns)
{
	bool known;
	struct hf_entry *owner = owner_entry(gc, ref, ns, &known);
	const char *uid = hf_str_or(hf_json_path_str(ref, "uid", NULL), "");

	if (!known)
		return OWNER_SOLID;
	if (!owner || !hf_streq(hf_doc_uid(owner->doc), uid))
		return OWNER_GONE;
	if (hf_json_get(meta_of(owner->doc), "deletionTimestamp") &&
	    hf_meta_has_finalizer(meta_of(owner->doc), HF_FINALIZER_FOREGROUND))
		return OWNER_WAITING;
	return OWNER_SOLID;
}

static void enqueue_owners(struct hf_gc *gc, struct hf_doc *doc)
{
	const struct hf_json *refs = hf_json_get(meta_of(doc), "ownerReferences");

	for (size_t i = 0; i < hf_json_len(refs); i++) {
		bool known;
		struct hf_entry *owner =
			owner_entry(gc, hf_json_item(refs, i), hf_doc_namespace(doc), &known);
		/* Queue the owner only if it is being deleted: it may wait for the dependent that
		 * has gone. */
		if (owner && hf_json_get(meta_of(owner->doc), "deletionTimestamp"))
			enqueue_object(gc, owner->kind, owner->ns, owner->name);
	}
}

/* --- writes --- */

static bool send_request(struct hf_gc *gc, const struct hf_request *request)
{
	HF_AUTO_RESULT result = {0};

	hf_memstore_apply(gc->memstore, request, &result);
	return result.code == 0 || result.code == HF_E_NOT_FOUND || result.code == HF_E_CONFLICT;
}

static struct hf_request request_for(const struct hf_entry *entry, enum hf_verb verb)
{
	return (struct hf_request){
		.verb = verb,
		.resource = entry->kind->resource,
		.ns = entry->kind->resource->namespaced ? entry->ns : NULL,
		.name = entry->name,
		.grace_seconds = HF_GRACE_DEFAULT,
		.field_manager = "garbage-collector",
	};
}

static bool delete_entry(struct hf_gc *gc, const struct hf_entry *entry,
			 enum hf_propagation propagation)
{
	struct hf_request request = request_for(entry, HF_VERB_DELETE);

	request.precondition_uid = hf_doc_uid(entry->doc);
	request.propagation = propagation;
	return send_request(gc, &request);
}

/* Sets one member of metadata. value is taken over; NULL removes the member. */
static bool patch_meta(struct hf_gc *gc, const struct hf_entry *entry, const char *key,
		       struct hf_json *value)
{
	struct hf_request request = request_for(entry, HF_VERB_PATCH);
	struct hf_json *patch = hf_json_object();

	hf_json_set(hf_json_ensure_object(patch, "metadata"), key, value ? value : hf_json_null());
	HF_AUTO_DOC body = hf_doc_from_json(patch);
	request.body = body;
	request.patch_type = HF_PATCH_MERGE;
	return send_request(gc, &request);
}

static bool drop_finalizer(struct hf_gc *gc, const struct hf_entry *entry, const char *name)
{
	const struct hf_json *list = hf_json_get(meta_of(entry->doc), "finalizers");

	return patch_meta(gc, entry, "finalizers", hf_json_without_string(list, name));
}

/* --- foreground and orphan: processing an owner --- */

static bool blocks_deletion(const struct hf_entry *dependent, const char *owner_uid)
{
	const struct hf_json *refs = hf_json_get(meta_of(dependent->doc), "ownerReferences");

	for (size_t i = 0; i < hf_json_len(refs); i++) {
		const struct hf_json *ref = hf_json_item(refs, i);
		if (hf_streq(hf_json_path_str(ref, "uid", NULL), owner_uid) &&
		    hf_json_true(hf_json_get(ref, "blockOwnerDeletion"), false))
			return true;
	}
	return false;
}

/* Handles an owner in foreground deletion: queues every dependent that blocks it. If no dependent
 * blocks it, removes the owner's finalizer. */
static bool process_foreground(struct hf_gc *gc, const struct hf_entry *entry)
{
	const char *uid = hf_doc_uid(entry->doc);
	struct hf_owner *owner = hf_engine_owner(gc->memstore->engine, uid);
	bool blocked = false;

	for (struct hf_owner_link *l = owner ? owner->first : NULL; l; l = l->next) {
		if (!blocks_deletion(l->entry, uid))
			continue;
		blocked = true;
		/* Do not queue a dependent that is already being deleted: the owner only has to
		 * wait for it. */
		if (!hf_json_get(meta_of(l->entry->doc), "deletionTimestamp"))
			enqueue_object(gc, l->entry->kind, l->entry->ns, l->entry->name);
	}
	return blocked || drop_finalizer(gc, entry, HF_FINALIZER_FOREGROUND);
}

static struct hf_json *refs_without(const struct hf_json *refs, const char *uid)
{
	struct hf_json *rest = hf_json_array();

	for (size_t i = 0; i < hf_json_len(refs); i++)
		if (!hf_streq(hf_json_path_str(hf_json_item(refs, i), "uid", NULL), uid))
			hf_json_append(rest, hf_json_ref(hf_json_item(refs, i)));
	return hf_json_len(rest) ? rest : hf_json_unref(rest);
}

static bool process_orphan(struct hf_gc *gc, const struct hf_entry *entry)
{
	HF_AUTOFREE char *uid = hf_xstrdup(hf_doc_uid(entry->doc));
	struct hf_owner *owner;
	bool good = true;

	/* Each patch removes the link of one dependent to this owner. When the last link is gone,
	 * the index has no struct hf_owner for the UID. */
	while (good && (owner = hf_engine_owner(gc->memstore->engine, uid))) {
		const struct hf_entry *dependent = owner->first->entry;
		const struct hf_json *refs =
			hf_json_get(meta_of(dependent->doc), "ownerReferences");
		good = patch_meta(gc, dependent, "ownerReferences", refs_without(refs, uid));
	}
	return good && drop_finalizer(gc, entry, HF_FINALIZER_ORPHAN);
}

/* --- processing a dependent --- */

struct owners {
	size_t solid, waiting, gone;
	struct hf_json *kept; /* the references to solid owners */
};

static void classify_owners(struct hf_gc *gc, const struct hf_entry *entry, struct owners *ret)
{
	const struct hf_json *refs = hf_json_get(meta_of(entry->doc), "ownerReferences");

	*ret = (struct owners){.kept = hf_json_array()};
	for (size_t i = 0; i < hf_json_len(refs); i++) {
		struct hf_json *ref = hf_json_item(refs, i);
		switch (classify_owner(gc, ref, entry->ns)) {
		case OWNER_SOLID:
			ret->solid++;
			hf_json_append(ret->kept, hf_json_ref(ref));
			break;
		case OWNER_WAITING: ret->waiting++; break;
		case OWNER_GONE: ret->gone++; break;
		}
	}
}

static bool has_dependents(struct hf_gc *gc, const struct hf_entry *entry)
{
	return hf_engine_owner(gc->memstore->engine, hf_doc_uid(entry->doc)) != NULL;
}

/* True if a dependent of the object is itself in foreground deletion: the object and the dependent
 * could then wait for each other for ever. */
static bool has_waiting_dependent(struct hf_gc *gc, const struct hf_entry *entry)
{
	struct hf_owner *owner = hf_engine_owner(gc->memstore->engine, hf_doc_uid(entry->doc));

	for (struct hf_owner_link *l = owner ? owner->first : NULL; l; l = l->next)
		if (hf_json_get(meta_of(l->entry->doc), "deletionTimestamp") &&
		    hf_meta_has_finalizer(meta_of(l->entry->doc), HF_FINALIZER_FOREGROUND))
			return true;
	return false;
}

/* Clears blockOwnerDeletion in all references of the object. kube-controller-manager does the same
 * to end a circle of objects that wait for each other. */
static bool unblock_owners(struct hf_gc *gc, const struct hf_entry *entry)
{
	const struct hf_json *refs = hf_json_get(meta_of(entry->doc), "ownerReferences");
	struct hf_json *open = hf_json_array();

	for (size_t i = 0; i < hf_json_len(refs); i++) {
		struct hf_json *ref = hf_json_shallow(hf_json_item(refs, i));
		hf_json_set_bool(ref, "blockOwnerDeletion", false);
		hf_json_append(open, ref);
	}
	return patch_meta(gc, entry, "ownerReferences", open);
}

static enum hf_propagation own_policy(const struct hf_entry *entry)
{
	const struct hf_json *meta = meta_of(entry->doc);

	if (hf_meta_has_finalizer(meta, HF_FINALIZER_ORPHAN))
		return HF_PROPAGATE_ORPHAN;
	if (hf_meta_has_finalizer(meta, HF_FINALIZER_FOREGROUND))
		return HF_PROPAGATE_FOREGROUND;
	return HF_PROPAGATE_BACKGROUND;
}

static bool process_dependent(struct hf_gc *gc, const struct hf_entry *entry)
{
	struct owners owners;
	bool good = true;

	classify_owners(gc, entry, &owners);
	HF_AUTO_JSON kept = owners.kept;
	if (owners.solid + owners.waiting + owners.gone == 0)
		return true;
	if (owners.solid > 0) {
		if (owners.waiting + owners.gone > 0)
			good = patch_meta(gc, entry, "ownerReferences", hf_steal(&kept));
	} else if (owners.waiting > 0 && has_dependents(gc, entry)) {
		if (has_waiting_dependent(gc, entry))
			good = unblock_owners(gc, entry);
		good = good && delete_entry(gc, entry, HF_PROPAGATE_FOREGROUND);
	} else {
		good = delete_entry(gc, entry, own_policy(entry));
	}
	return good;
}

/* --- namespaces --- */

static size_t delete_content(struct hf_gc *gc, const char *ns, bool *ret_good)
{
	struct hf_engine *engine = gc->memstore->engine;
	size_t left = 0;

	for (size_t k = 0; k < engine->n_kinds; k++) {
		struct hf_kind *kind = &engine->kinds[k];
		if (!kind->resource->namespaced)
			continue;
		/* If an object is removed at once, the entry at index i is then the next object.
		 * If the object is only marked as deleted, i must be increased. */
		size_t i = hf_kind_lower_bound(kind, ns, "");
		while (i < kind->entries.len && hf_streq(kind->entries.items[i]->ns, ns)) {
			const struct hf_entry *entry = kind->entries.items[i];
			size_t before = kind->entries.len;
			if (!hf_json_get(meta_of(entry->doc), "deletionTimestamp"))
				*ret_good = delete_entry(gc, entry, HF_PROPAGATE_BACKGROUND) &&
					    *ret_good;
			if (kind->entries.len == before) {
				left++;
				i++;
			}
		}
	}
	return left;
}

static bool process_namespace(struct hf_gc *gc, const struct hf_entry *entry)
{
	bool good = true;

	if (delete_content(gc, entry->name, &good) > 0 || !good)
		return good;
	struct hf_request request = request_for(entry, HF_VERB_PATCH);
	static const char text[] = "{\"spec\":{\"finalizers\":null}}";
	HF_AUTO_DOC body = hf_doc_from_text(text, sizeof(text) - 1);
	request.body = body;
	request.patch_type = HF_PATCH_MERGE;
	request.subresource = "finalize";
	return send_request(gc, &request);
}

/* --- the queue --- */

static bool process_object(struct hf_gc *gc, const struct hf_entry *entry)
{
	const struct hf_json *meta = meta_of(entry->doc);

	if (!hf_json_get(meta, "deletionTimestamp"))
		return process_dependent(gc, entry);
	if (hf_meta_has_finalizer(meta, HF_FINALIZER_ORPHAN))
		return process_orphan(gc, entry);
	if (hf_meta_has_finalizer(meta, HF_FINALIZER_FOREGROUND))
		return process_foreground(gc, entry);
	if (entry->kind->resource == &hf_namespaces)
		return process_namespace(gc, entry);
	/* Nothing to do: another finalizer, or the kubelet, ends this deletion. */
	return true;
}

/* Queues every object that has owners or is being deleted. */
static void scan_all(struct hf_gc *gc)
{
	struct hf_engine *engine = gc->memstore->engine;

	for (size_t k = 0; k < engine->n_kinds; k++) {
		struct hf_kind *kind = &engine->kinds[k];
		for (size_t i = 0; i < kind->entries.len; i++) {
			struct hf_entry *entry = kind->entries.items[i];
			if (entry->n_links > 0 ||
			    hf_json_get(meta_of(entry->doc), "deletionTimestamp"))
				enqueue_object(gc, kind, entry->ns, entry->name);
		}
	}
}

static void process_key(struct hf_gc *gc, const char *key, struct hf_kind *kind)
{
	const char *slash = strchr(key, '/');
	const char *second = strchr(slash + 1, '/');
	HF_AUTOFREE char *ns = hf_xstrndup(slash + 1, (size_t)(second - slash - 1));
	HF_AUTOFREE char *name = hf_xstrdup(second + 1);

	hf_map_remove(gc->queue, key);
	const struct hf_entry *entry = hf_kind_find(kind, ns, name);
	if (entry && !process_object(gc, entry))
		enqueue_into(gc, gc->refused, kind, ns, name);
}

/* Queues the refused keys again. */
static void requeue_refused(struct hf_gc *gc)
{
	const char *key;
	void *kind;

	for (size_t it = 0; hf_map_next(gc->refused, &it, &key, &kind);)
		hf_assert(hf_map_put(gc->queue, key, kind));
	hf_map_clear(gc->refused);
}

static void on_timer(void *arg)
{
	struct hf_gc *gc = arg;
	size_t n = 0;

	if (gc->rescan) {
		gc->rescan = false;
		scan_all(gc);
	}
	requeue_refused(gc);
	for (; n < PER_PASS; n++) {
		const char *key;
		void *kind;
		size_t it = 0;
		if (!hf_map_next(gc->queue, &it, &key, &kind))
			break;
		process_key(gc, key, kind);
	}
	if (hf_map_len(gc->queue) > 0)
		arm_timer(gc, gc->delay);
	else if (hf_map_len(gc->refused) > 0)
		arm_timer(gc, RETRY_AFTER);
	else if (!gc->rescan)
		hf_timer_disarm(gc->timer);
}

/* --- changes --- */

static bool refs_changed(struct hf_doc *before, struct hf_doc *after)
{
	return !hf_json_equal(hf_json_get(meta_of(before), "ownerReferences"),
			      hf_json_get(meta_of(after), "ownerReferences"));
}

static void on_changed(void *arg, const struct hf_memstore_change *change)
{
	struct hf_gc *gc = arg;
	struct hf_doc *doc = change->after ? change->after : change->before;
	struct hf_kind *kind = hf_engine_kind(gc->memstore->engine, change->resource);
	const char *ns = hf_doc_namespace(doc);

	if (!change->after) {
		enqueue_dependents(gc, hf_doc_uid(doc));
		enqueue_owners(gc, doc);
		struct hf_doc *space =
			*ns ? hf_memstore_peek(gc->memstore, &hf_namespaces, NULL, ns) : NULL;
		if (space && hf_json_get(meta_of(space), "deletionTimestamp"))
			enqueue_object(gc, hf_engine_kind(gc->memstore->engine, &hf_namespaces), "",
				       ns);
		return;
	}
	if (change->before && refs_changed(change->before, change->after))
		enqueue_owners(gc, change->before);
	if (hf_json_get(meta_of(doc), "deletionTimestamp") ||
	    (hf_json_get(meta_of(doc), "ownerReferences") &&
	     (!change->before || refs_changed(change->before, change->after))))
		enqueue_object(gc, kind, ns, hf_doc_name(doc));
}

static void on_reset(void *arg)
{
	struct hf_gc *gc = arg;

	gc->rescan = true;
	hf_timer_arm(gc->timer, RESCAN_AFTER);
}

struct hf_gc *hf_gc_create(struct hf_memstore *memstore, const struct hf_gc_options *options)
{
	struct hf_gc *gc = hf_xcalloc(1, sizeof(*gc));

	gc->memstore = memstore;
	gc->delay = options ? options->delay : 0;
	gc->timer = hf_timer_create(hf_memstore_loop(memstore), on_timer, gc);
	gc->queue = hf_map_create(QUEUE_MAX, 0, NULL);
	gc->refused = hf_map_create(QUEUE_MAX, 0, NULL);
	gc->observer =
		(struct hf_memstore_observer){.changed = on_changed, .reset = on_reset, .arg = gc};
	hf_memstore_observe(memstore, &gc->observer);
	scan_all(gc);
	return gc;
}

struct hf_gc *hf_gc_destroy(struct hf_gc *gc)
{
	if (!gc)
		return NULL;
	hf_memstore_unobserve(gc->memstore, &gc->observer);
	hf_timer_destroy(gc->timer);
	hf_map_destroy(gc->queue);
	hf_map_destroy(gc->refused);
	free(gc);
	return NULL;
}
