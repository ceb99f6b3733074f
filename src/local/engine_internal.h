/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_ENGINE_INTERNAL_H
#define HF_LOCAL_ENGINE_INTERNAL_H

#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "local/local.h"
#include "store/request.h"
#include "store/resource.h"
#include "store/selector.h"

/*
 * The engine: objects with Kubernetes semantics, as a data structure.  No loop, no
 * disk; time and randomness come from env.  Changes collect in `pending` until the
 * owner calls hf_engine_commit (they become history, which watches read) or
 * hf_engine_undo (they never were).
 *
 * Documents are trees shared by reference: a new version of an object is a new root
 * and a new metadata over the unchanged parts of the old.  "Did it change" is then
 * mostly a comparison of pointers.
 */
struct hf_engine;
struct hf_kind;
struct local_watch;

/* Finalizers that local/gc.c removes when it has done what they ask for. */
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

struct hf_owner; /* all objects that name one UID as an owner */

struct hf_owner_link {
	struct hf_entry *entry;
	struct hf_owner *owner;
	struct hf_owner_link *prev, *next;
};

struct hf_entry {
	struct hf_kind *kind;
	struct hf_doc *doc;
	uint64_t version;
	size_t bytes; /* of text */
	hf_time written_at;
	struct hf_owner_link *links; /* one per ownerReference */
	size_t n_links;
	struct hf_entry *older, *newer; /* by written_at; only kinds that expire */
	const char *ns, *name;          /* behind the struct */
};

struct hf_owner {
	struct hf_owner_link *first, *last;
};

/* What an entry holds. */
struct hf_version {
	struct hf_doc *doc;
	uint64_t number; /* resourceVersion */
	size_t bytes;    /* of text */
	hf_time written_at;
};

/* One change, in the order of versions. */
struct hf_change {
	struct hf_kind *kind;
	struct hf_version before; /* doc NULL: did not exist */
	struct hf_doc *after;     /* NULL: gone */
	struct hf_doc *last;      /* a deletion's: before, with the version of the deletion */
	uint64_t version;
};

/* A ring of committed changes.  Event i has sequence first + i. */
struct hf_history {
	struct hf_change *ring;
	size_t start, len, cap;
	uint64_t first;  /* sequence of the oldest kept */
	uint64_t oldest; /* every change later than this version is kept */
};

struct hf_kind {
	const struct hf_resource *resource;
	const struct hf_resource_info *info;
	struct hf_local_rules rules;
	HF_VEC(struct hf_entry *) entries; /* by namespace, then name */
	struct hf_history history;
	struct hf_entry *oldest, *newest; /* only kinds that expire */
	bool expires;
	/* local/watch.c: in order of birth; cursor is the next one its pump visits. */
	struct local_watch *watch_first, *watch_last, *watch_cursor;
	bool wake; /* a watch of this kind has something to do */
};

struct hf_engine {
	struct hf_engine_env env;
	struct hf_kind kinds[HF_RESOURCES_MAX];
	size_t n_kinds;
	struct hf_map *owners; /* UID to struct hf_owner */
	size_t bytes;
	uint64_t version;   /* the last one given out */
	uint64_t committed; /* the last one of a commit */
	HF_VEC(struct hf_change) pending;
};

struct hf_engine *hf_engine_create(const struct hf_engine_env *env);
struct hf_engine *hf_engine_destroy(struct hf_engine *engine);
/* While loading from disk: an object as it was stored. */
int hf_engine_load(struct hf_engine *engine, const struct hf_resource *resource, struct hf_doc *doc,
		   hf_time written_at, struct hf_error *err) HF_MUST_CHECK;
/* After the last of them: version is where numbering goes on. */
void hf_engine_loaded(struct hf_engine *engine, uint64_t version);

struct hf_kind *hf_engine_kind(struct hf_engine *engine, const struct hf_resource *resource);
void hf_engine_apply(struct hf_engine *engine, const struct hf_request *request,
		     struct hf_result *ret_result);
/* As hf_engine_apply for GET and LIST, as things were `stale` changes of the kind ago. */
void hf_engine_read_past(struct hf_engine *engine, const struct hf_request *request, uint64_t stale,
			 struct hf_result *ret_result);
/* Remove what has outlived its time; returns when the next one is due (HF_TIME_NEVER). */
hf_time hf_engine_expire(struct hf_engine *engine);

/* pending becomes history and is handed to each (may be NULL) in order. */
void hf_engine_commit(struct hf_engine *engine, void (*each)(void *arg, struct hf_change *change),
		      void *arg);
void hf_engine_undo(struct hf_engine *engine);

/* Index (engine_index.c). */
struct hf_entry *hf_kind_find(const struct hf_kind *kind, const char *ns, const char *name);
/* Position of the first entry not before (ns, name); "" for both is the start. */
size_t hf_kind_lower_bound(const struct hf_kind *kind, const char *ns, const char *name);
int hf_key_compare(const char *ns_a, const char *name_a, const char *ns_b, const char *name_b);
/* Insert or replace (the reference to version->doc is taken over), or remove (NULL); no checks. */
void hf_kind_put(struct hf_engine *engine, struct hf_kind *kind, const char *ns, const char *name,
		 const struct hf_version *version);
struct hf_owner *hf_engine_owner(struct hf_engine *engine, const char *uid);

/* Sizes (engine_size.c). */
/* Bytes of compact text, without writing it; stops counting beyond max. */
size_t hf_json_text_size(const struct hf_json *value, size_t max);
/* The same of `after`, where `before` has bytes_before: what they share is not measured again. */
size_t hf_json_text_size_after(const struct hf_json *before, size_t bytes_before,
			       const struct hf_json *after);

/* History (engine_history.c). */
void hf_history_release(struct hf_history *history);
void hf_history_push(struct hf_history *history, struct hf_change *change, size_t max);
const struct hf_change *hf_history_at(const struct hf_history *history, uint64_t seq); /* or NULL */
/* Sequence of the first change later than version. */
uint64_t hf_history_after(const struct hf_history *history, uint64_t version);
/* The objects of a kind as they were at version, those behind the key (NULL: all): calls fn in
 * order until it returns false.  HF_E_GONE where history does not reach so far. */
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
	struct hf_json *causes; /* NULL: none */
	size_t bytes;           /* of the object to store, by hf_op_size_check */
	bool applied;           /* its managedFields are written already (engine_apply.c) */
	bool scales;            /* a write of the object that came as one of its scale */
};

/* Results (engine_result.c).  Each returns the code, for "return hf_op_fail(…)". */
int hf_op_fail(struct hf_op *op, int code, const char *fmt, ...) HF_PRINTF(3, 4);
int hf_op_not_found(struct hf_op *op);
int hf_op_exists(struct hf_op *op, const char *name);
int hf_op_conflict(struct hf_op *op, const char *why);
int hf_op_forbidden(struct hf_op *op, const char *name, const char *why);
int hf_op_done(struct hf_op *op, struct hf_doc *object); /* takes over the reference */
/* Collect a problem of the object: "field: Invalid value: …"; hf_op_invalid ends with all. */
void hf_op_problem(struct hf_op *op, const char *reason, const char *field, const char *fmt, ...)
	HF_PRINTF(4, 5);
int hf_op_invalid(struct hf_op *op, const char *name);
bool hf_op_has_problems(const struct hf_op *op);
void hf_op_warn(struct hf_op *op, const char *text);

/* Storing (engine_store.c). */
int hf_op_size_check(struct hf_op *op, const struct hf_json *object, const char *name,
		     const struct hf_entry *entry); /* that it takes the place of; NULL: none */
/* Gives object (taken over; private root and metadata) the next version and stores it. */
struct hf_doc *hf_op_store(struct hf_op *op, struct hf_entry *entry, struct hf_json *object);
/* Removes it; returns its last version (a new reference). */
struct hf_doc *hf_op_remove(struct hf_op *op, struct hf_entry *entry);
/* Runs the kind's admit on a private copy of *object, which it replaces. */
int hf_op_admit(struct hf_op *op, enum hf_verb verb, struct hf_doc *before,
		struct hf_json **object);

/* Verbs. */
int hf_op_get(struct hf_op *op);
int hf_op_list(struct hf_op *op);
int hf_op_create(struct hf_op *op);
int hf_op_update(struct hf_op *op);
int hf_op_patch(struct hf_op *op);
int hf_op_delete(struct hf_op *op);
int hf_op_scale_put(struct hf_op *op, struct hf_entry *entry, const struct hf_json *scale);
int hf_op_bind(struct hf_op *op);  /* CREATE of pods/binding */
int hf_op_evict(struct hf_op *op); /* CREATE of pods/eviction (engine_delete.c) */
/* The object as a Scale, or NULL after hf_op_fail. */
struct hf_json *hf_op_scale_of(struct hf_op *op, struct hf_entry *entry);
/* What PUT and PATCH share: object (taken over) is the wish for entry. */
int hf_op_write(struct hf_op *op, struct hf_entry *entry, struct hf_json *object);

/* Metadata (engine_meta.c): problems are collected in op. */
void hf_meta_check(struct hf_op *op, const struct hf_json *meta, const struct hf_json *before);
int hf_meta_check_type(struct hf_op *op, const struct hf_json *object);
const char *hf_meta_name_problem(const struct hf_kind *kind, const char *name);
bool hf_meta_has_finalizers(const struct hf_json *meta);
bool hf_meta_has_finalizer(const struct hf_json *meta, const char *name);
void hf_meta_set_time(struct hf_json *meta, const char *key, hf_time t);
hf_time hf_meta_time(const struct hf_json *meta, const char *key); /* or HF_TIME_NONE */
/* A new array without that string; NULL when nothing would be left. */
struct hf_json *hf_json_without_string(const struct hf_json *array, const char *s);

/* A new object whose members are those of value; the members are shared. */
struct hf_json *hf_json_shallow(const struct hf_json *value);
/* The same without members that are null: clients say "absent" so (creationTimestamp: null). */
struct hf_json *hf_json_members(const struct hf_json *value);
/* A new reference to a shared, read-only value. */
struct hf_json *hf_json_share(const struct hf_json *value);

/* Lists that are really maps or sets, known by name (engine_lists.c). */
struct hf_list_rule {
	const char *name;
	const char *keys[2]; /* keys[0] NULL: a set of values */
	unsigned int by;     /* which of the two ways below know it */
};
/* The first of that name for strategic merge, and the one behind it (a name may stand for two);
 * NULL: the list is replaced whole. */
const struct hf_list_rule *hf_list_rule_patched(const char *name);
const struct hf_list_rule *hf_list_rule_next(const struct hf_list_rule *rule);
/* That of server-side apply whose first key all items have; NULL: the list is one value. */
const struct hf_list_rule *hf_list_rule_applied(const char *name, const struct hf_json *array);

/* Patches (engine_patch.c): new values that share what did not change with target; the very
 * target (a new reference) when nothing did. */
struct hf_json *hf_patch_merge(const struct hf_json *target, const struct hf_json *patch);
/* Strategic merge (engine_strategic.c). */
int hf_patch_strategic(const struct hf_json *target, const struct hf_json *patch,
		       struct hf_json **ret_value, struct hf_error *err) HF_MUST_CHECK;

/* Sets of fields (engine_fieldset.c): trees as fieldsV1 has them, each a new reference. */
struct hf_fieldset_diff {
	struct hf_json *changed; /* and what is new */
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
/* Each path of a set, as people know it: ".spec.containers[name="c"].image". */
void hf_fieldset_each(const struct hf_json *set, void (*fn)(void *arg, const char *path),
		      void *arg);
/* live (NULL: nothing) with what wish says; its nulls say nothing. */
struct hf_json *hf_fieldset_merge(const struct hf_json *live, const struct hf_json *wish);
/* value without what is gone, unless something in it is kept. */
struct hf_json *hf_fieldset_prune(const struct hf_json *value, const struct hf_json *gone,
				  const struct hf_json *kept);

/* Who owns which fields (engine_apply.c).  entry NULL: the object is made. */
int hf_op_apply(struct hf_op *op, struct hf_entry *entry);
/* metadata.managedFields as the client sends them, else as they are stored. */
void hf_managed_keep(struct hf_json *meta, const struct hf_json *wish,
		     const struct hf_json *stored);
/* Writes down whose the changes are, where the object has managedFields. */
void hf_managed_note(struct hf_op *op, const struct hf_json *stored, struct hf_json *object);

/* Pods (engine_pod.c). */
void hf_pod_init(struct hf_json *object);
void hf_pod_check_update(struct hf_op *op, const struct hf_json *before,
			 const struct hf_json *after);
int64_t hf_pod_grace_seconds(const struct hf_json *pod, int64_t asked);

#endif
