/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_MEMSTORE_ENGINE_INTERNAL_H
#define HF_MEMSTORE_ENGINE_INTERNAL_H

#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "memstore/memstore.h"
#include "store/request.h"
#include "store/resource.h"
#include "store/selector.h"

/*
 * The engine: objects with Kubernetes semantics, as a data structure without loop and disk. Time
 * and randomness come from env.
 *
 * Changes collect in `pending`. hf_engine_commit moves them to the history, which watches read;
 * hf_engine_undo takes them back.
 *
 * Documents are trees that share their unchanged parts: a new version of an object has a new root
 * and new metadata. So "did it change" is mostly a comparison of pointers.
 */
struct hf_engine;
struct hf_kind;
struct memstore_watch;

/* Finalizers that the garbage collector (gc.c) handles and removes. */
#define HF_FINALIZER_FOREGROUND "foregroundDeletion"
#define HF_FINALIZER_ORPHAN "orphan"

struct hf_engine_env {
	hf_time (*now)(void *arg); /* wall clock */
	void *now_arg;
	void (*random)(void *arg, void *bytes, size_t len);
	void *random_arg;
	size_t object_bytes_max, objects_max, bytes_max, watch_history;
	hf_time event_ttl;
};

/* --- index --- */

struct hf_owner; /* All objects that have an ownerReference with one and the same UID. */

struct hf_owner_link {
	struct hf_entry *entry;
	struct hf_owner *owner;
	struct hf_owner_link *prev, *next;
};

struct hf_entry {
	struct hf_kind *kind;
	struct hf_doc *doc;
	uint64_t version;
	size_t bytes; /* upper bound of the size of the object's JSON text, in bytes */
	hf_time written_at;
	struct hf_owner_link *links; /* one link per ownerReference */
	size_t n_links;
	/* Neighbours in the kind's list of objects by age (written_at). Used only for kinds with
	 * objects that expire. */
	struct hf_entry *older, *newer;
	const char *ns, *name; /* stored after the struct */
};

struct hf_owner {
	struct hf_owner_link *first, *last;
};

/* The variable part of an entry. */
struct hf_version {
	struct hf_doc *doc;
	uint64_t number; /* resourceVersion */
	size_t bytes;    /* upper bound of the size of the object's JSON text, in bytes */
	hf_time written_at;
};

/* One change of an object. Lists of changes are ordered by version. */
struct hf_change {
	struct hf_kind *kind;
	/* the object's version before the change; doc NULL: the object was created */
	struct hf_version before;
	struct hf_doc *after; /* the object after the change; NULL: the object was deleted */
	/* If the change is a deletion: the last state of the object, with the version of the
	 * deletion. */
	struct hf_doc *last;
	uint64_t version;
};

/* The last committed changes of a kind, in a ring. The change at index i has the sequence number
 * first + i. */
struct hf_history {
	struct hf_change *ring;
	size_t start, len, cap;
	uint64_t first;  /* sequence number of the oldest change that the ring keeps */
	uint64_t oldest; /* the ring has all changes of the kind with a version above `oldest` */
};

struct hf_kind {
	const struct hf_resource *resource;
	const struct hf_resource_info *info;
	struct hf_memstore_rules rules;
	HF_VEC(struct hf_entry *) entries; /* by namespace, then name */
	struct hf_history history;
	/* Ends of the kind's list of objects by age (written_at). Used only for kinds with objects
	 * that expire. */
	struct hf_entry *oldest, *newest;
	bool expires;
	/* The watches of this kind (watch.c), the oldest first. watch_cursor: the watch that will
	 * be visited next. */
	struct memstore_watch *watch_first, *watch_last, *watch_cursor;
	bool wake; /* true: at least one watch of this kind has something to deliver */
};

struct hf_engine {
	struct hf_engine_env env;
	struct hf_kind kinds[HF_RESOURCES_MAX];
	size_t n_kinds;
	struct hf_map *owners; /* UID to struct hf_owner */
	size_t bytes;
	uint64_t version;   /* the version that was assigned last */
	uint64_t committed; /* the version that was committed last */
	HF_VEC(struct hf_change) pending;
};

struct hf_engine *hf_engine_create(const struct hf_engine_env *env);
struct hf_engine *hf_engine_destroy(struct hf_engine *engine);
/* Adds an object that was read from the disk, exactly as it was stored. */
int hf_engine_load(struct hf_engine *engine, const struct hf_resource *resource, struct hf_doc *doc,
		   hf_time written_at, struct hf_error *err) HF_MUST_CHECK;
/* Ends the loading. The next change gets the version after `version`; the history is empty. */
void hf_engine_loaded(struct hf_engine *engine, uint64_t version);

/* Finds the kind of a resource; NULL: the engine does not know the resource. */
struct hf_kind *hf_engine_kind(struct hf_engine *engine, const struct hf_resource *resource);
/* Performs a request. *ret_result is set in any case; release it with hf_result_release. */
void hf_engine_apply(struct hf_engine *engine, const struct hf_request *request,
		     struct hf_result *ret_result);
/* Performs a GET or LIST on an old state of the kind: the state before its last `stale`
 * changes. */
void hf_engine_read_past(struct hf_engine *engine, const struct hf_request *request, uint64_t stale,
			 struct hf_result *ret_result);
/* Deletes Events older than env.event_ttl; returns when the next one expires (HF_TIME_NEVER:
 * none). */
hf_time hf_engine_expire(struct hf_engine *engine);

/* hf_engine_commit moves pending to the history and calls each (may be NULL) for every change, in
 * order. hf_engine_undo takes all pending changes back. */
void hf_engine_commit(struct hf_engine *engine, void (*each)(void *arg, struct hf_change *change),
		      void *arg);
void hf_engine_undo(struct hf_engine *engine);

/* Index (engine_index.c). */
/* Finds an object; NULL: no such object. ns is ignored for cluster-wide kinds. */
struct hf_entry *hf_kind_find(const struct hf_kind *kind, const char *ns, const char *name);
/* Returns the index of the first entry with a key at or after (ns, name); "" for both gives the
 * first entry. */
size_t hf_kind_lower_bound(const struct hf_kind *kind, const char *ns, const char *name);
int hf_key_compare(const char *ns_a, const char *name_a, const char *ns_b, const char *name_b);
/* Inserts an entry, or replaces the entry of the same key, and takes over the reference to
 * version->doc. version NULL removes the entry. The caller has made all checks. */
void hf_kind_put(struct hf_engine *engine, struct hf_kind *kind, const char *ns, const char *name,
		 const struct hf_version *version);
/* Returns the list of objects that name this UID in metadata.ownerReferences; NULL: no such
 * objects. */
struct hf_owner *hf_engine_owner(struct hf_engine *engine, const char *uid);

/* Sizes (engine_size.c). */
/* Returns an upper bound of the size of a value as compact JSON text; stops counting above max. */
size_t hf_json_text_size(const struct hf_json *value, size_t max);
/* Returns an upper bound of the size of `after` as JSON text, computed from the size of `before`.
 * Measures only the parts that the two do not share. */
size_t hf_json_text_size_after(const struct hf_json *before, size_t bytes_before,
			       const struct hf_json *after);

/* History (engine_history.c). */
void hf_history_release(struct hf_history *history);
/* Appends a change and takes over its references. max: limit of the changes that the ring
 * keeps. */
void hf_history_push(struct hf_history *history, struct hf_change *change, size_t max);
/* Returns the change with this sequence number; NULL: the ring no longer keeps it. */
const struct hf_change *hf_history_at(const struct hf_history *history, uint64_t seq);
/* Returns the sequence number of the first change with a version above `version`. */
uint64_t hf_history_after(const struct hf_history *history, uint64_t version);
/* A walk over the objects of a kind as they were at version, in order, after the key (after_ns,
 * after_name), or all if after_name is NULL. Calls fn until it returns false. HF_E_GONE: history
 * does not reach back to version. */
struct hf_snapshot {
	struct hf_kind *kind;
	uint64_t version;
	const char *after_ns, *after_name;
	bool (*fn)(void *arg, struct hf_doc *doc);
	void *arg;
};
int hf_engine_snapshot(struct hf_engine *engine, const struct hf_snapshot *snapshot,
		       struct hf_error *err) HF_MUST_CHECK;

/* --- one request under way --- */

struct hf_op {
	struct hf_engine *engine;
	struct hf_kind *kind;
	const struct hf_request *request;
	struct hf_result *result;
	hf_time now;
	struct hf_json *causes; /* NULL: no problems yet */
	size_t bytes; /* size in bytes of the object that will be stored; set by hf_op_size_check */
	bool applied; /* the server-side apply has already set managedFields */
	/* the request writes the subresource scale, and so the object that has the scale */
	bool scales;
};

/* Results (engine_result.c). The functions return the code, for "return hf_op_fail(…)". */
int hf_op_fail(struct hf_op *op, int code, const char *fmt, ...) HF_PRINTF(3, 4);
int hf_op_not_found(struct hf_op *op);
int hf_op_exists(struct hf_op *op, const char *name);
int hf_op_conflict(struct hf_op *op, const char *why);
int hf_op_forbidden(struct hf_op *op, const char *name, const char *why);
int hf_op_done(struct hf_op *op, struct hf_doc *object); /* takes over the reference */
/* Adds a problem of the object to op->causes, as text like "Invalid value: …"; hf_op_invalid
 * reports all of them. */
void hf_op_problem(struct hf_op *op, const char *reason, const char *field, const char *fmt, ...)
	HF_PRINTF(4, 5);
int hf_op_invalid(struct hf_op *op, const char *name);
bool hf_op_has_problems(const struct hf_op *op);
void hf_op_warn(struct hf_op *op, const char *text);

/* Storing (engine_store.c). */
int hf_op_size_check(struct hf_op *op, const struct hf_json *object, const char *name,
		     const struct hf_entry *entry); /* entry: the replaced object, or NULL */
/* Gives object the next version and stores it. Takes over object; its root and metadata must be
 * private. */
struct hf_doc *hf_op_store(struct hf_op *op, struct hf_entry *entry, struct hf_json *object);
/* Stores an object that did not exist, under this namespace and name; else as hf_op_store. */
struct hf_doc *hf_op_store_new(struct hf_op *op, const char *ns, const char *name,
			       struct hf_json *object);
/* Deletes the object; returns a new reference to its last version. */
struct hf_doc *hf_op_remove(struct hf_op *op, struct hf_entry *entry);
/* Runs the kind's rules on a private copy of *object, and replaces *object by the copy. */
int hf_op_admit(struct hf_op *op, enum hf_verb verb, struct hf_doc *before,
		struct hf_json **object);

/* Verbs. */
int hf_op_get(struct hf_op *op);
int hf_op_list(struct hf_op *op);
int hf_op_create(struct hf_op *op);
int hf_op_update(struct hf_op *op);
int hf_op_patch(struct hf_op *op);
int hf_op_delete(struct hf_op *op);
/* Writes the replicas of a Scale to the object. The reply is the new Scale. */
int hf_op_scale_put(struct hf_op *op, struct hf_entry *entry, const struct hf_json *scale);
int hf_op_bind(struct hf_op *op);  /* CREATE of pods/binding (engine_bind.c) */
int hf_op_evict(struct hf_op *op); /* CREATE of pods/eviction (engine_delete.c) */
/* Returns the Scale of an object; NULL if hf_op_fail was called with the reason. */
struct hf_json *hf_op_scale_of(struct hf_op *op, struct hf_entry *entry);
/* The common part of PUT, PATCH and apply. object: the state that the client wants for entry; the
 * function takes it over. */
int hf_op_write(struct hf_op *op, struct hf_entry *entry, struct hf_json *object);

/* Metadata (engine_meta.c). Problems are collected in op. */
/* before NULL: the object is created. */
void hf_meta_check(struct hf_op *op, const struct hf_json *meta, const struct hf_json *before);
int hf_meta_check_type(struct hf_op *op, const struct hf_json *object);
/* Returns the rule that the name breaks, as static text; NULL: the name is valid. */
const char *hf_meta_name_problem(const struct hf_kind *kind, const char *name);
bool hf_meta_has_finalizers(const struct hf_json *meta);
bool hf_meta_has_finalizer(const struct hf_json *meta, const char *name);
void hf_meta_set_time(struct hf_json *meta, const char *key, hf_time t);
hf_time hf_meta_time(const struct hf_json *meta, const char *key); /* HF_TIME_NONE: no such time */
/* Returns a copy of array without the string s; NULL if the copy would be empty. */
struct hf_json *hf_json_without_string(const struct hf_json *array, const char *s);

/* Returns a new object with the members of `value`; the members themselves are shared. */
struct hf_json *hf_json_shallow(const struct hf_json *value);
/* Returns a new object with the members of `value`, without members that are null: Go clients send
 * null for an absent field (creationTimestamp: null). */
struct hf_json *hf_json_members(const struct hf_json *value);

/* Lists that the Kubernetes API treats as maps or sets, by the list's name (engine_list_keys.c). */
struct hf_list_rule {
	const char *name;
	const char *keys[2];  /* keys[0] NULL: a set of scalars */
	unsigned int used_by; /* bits: whether strategic merge and server-side apply use the rule */
};
/* hf_list_rule_patched returns the first rule of this name for strategic merge, hf_list_rule_next
 * the next one: two lists may share a name (ports). NULL: a patch replaces the whole list. */
const struct hf_list_rule *hf_list_rule_patched(const char *name);
const struct hf_list_rule *hf_list_rule_next(const struct hf_list_rule *rule);
/* Returns the rule for server-side apply: the first rule of this name whose first key is in all
 * items. NULL: the list is a single value. */
const struct hf_list_rule *hf_list_rule_applied(const char *name, const struct hf_json *array);

/* Patches (engine_patch.c). The result is a new value that shares its unchanged parts with target.
 * If nothing changed, it is a new reference to target. */
struct hf_json *hf_patch_merge(const struct hf_json *target, const struct hf_json *patch);
/* Strategic merge (engine_strategic.c). */
int hf_patch_strategic(const struct hf_json *target, const struct hf_json *patch,
		       struct hf_json **ret_value, struct hf_error *err) HF_MUST_CHECK;

/* Sets of fields (engine_fieldset.c): trees in the form of managedFields' fieldsV1. Functions that
 * return a set return a new reference. */
struct hf_fieldset_diff {
	struct hf_json *changed; /* fields that changed or are new */
	struct hf_json *removed;
};
struct hf_json *hf_fieldset_of(const struct hf_json *value);
struct hf_fieldset_diff hf_fieldset_diff(const struct hf_json *from, const struct hf_json *to);
void hf_fieldset_diff_release(struct hf_fieldset_diff *made);
struct hf_json *hf_fieldset_union(const struct hf_json *a, const struct hf_json *b);
struct hf_json *hf_fieldset_both(const struct hf_json *a, const struct hf_json *b);
struct hf_json *hf_fieldset_minus(const struct hf_json *a, const struct hf_json *b);
struct hf_json *hf_fieldset_read(const struct hf_json *wire);
struct hf_json *hf_fieldset_write(const struct hf_json *set);
/* Calls fn with each path of a set, as text: .spec.containers[name="c"].image. */
void hf_fieldset_each(const struct hf_json *set, void (*fn)(void *arg, const char *path),
		      void *arg);
/* Merges desired into live (NULL: no object). Nulls in desired are ignored. */
struct hf_json *hf_fieldset_merge(const struct hf_json *live, const struct hf_json *desired);
/* Removes the fields of gone from value, unless they contain a field of kept. */
struct hf_json *hf_fieldset_prune(const struct hf_json *value, const struct hf_json *gone,
				  const struct hf_json *kept);

/* Server-side apply and ownership of fields (engine_apply.c). entry NULL creates the object. */
int hf_op_apply(struct hf_op *op, struct hf_entry *entry);
/* Sets meta.managedFields to the list of the client's object. If the client's object has no such
 * list, keeps the list of the stored object. */
void hf_managed_keep(struct hf_json *meta, const struct hf_json *desired,
		     const struct hf_json *stored);
/* Records the requesting manager as the owner of the changed fields, if the object has
 * managedFields. */
void hf_managed_note(struct hf_op *op, const struct hf_json *stored, struct hf_json *object);

/* Pods (engine_pod.c). */
/* Sets the status of a new pod: phase, QoS class, the condition of its scheduling gates. */
void hf_pod_init(struct hf_json *object);
/* Adds a problem to op for each change of the spec that a stored pod does not allow. */
void hf_pod_check_update(struct hf_op *op, const struct hf_json *before,
			 const struct hf_json *after);
/* Returns the grace period of a pod's deletion in seconds: that of the request, or the pod's own
 * (HF_GRACE_DEFAULT); 0 if no process of the pod can run. */
int64_t hf_pod_grace_seconds(const struct hf_json *pod, int64_t asked);

#endif
