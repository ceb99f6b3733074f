/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/*
 * The index: the objects of each kind, their owners, and the Events by age; the engine's creation,
 * load and destruction.
 *
 * The objects of a kind are an array of pointers, sorted by namespace and name. Lookups bisect it;
 * lists and pages are in order for free. An insert moves 8 bytes per object behind it: tens of
 * microseconds at the kind's maximum, less than the rest of a create.
 */

int hf_key_compare(const char *ns_a, const char *name_a, const char *ns_b, const char *name_b)
{
	int c = strcmp(ns_a, ns_b);

	return c ? c : strcmp(name_a, name_b);
}

size_t hf_kind_lower_bound(const struct hf_kind *kind, const char *ns, const char *name)
{
	size_t low = 0, high = kind->entries.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct hf_entry *e = kind->entries.items[mid];
		if (hf_key_compare(e->ns, e->name, ns, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool entry_is(const struct hf_kind *kind, size_t i, const char *ns, const char *name)
{
	return i < kind->entries.len && hf_streq(kind->entries.items[i]->name, name) &&
	       hf_streq(kind->entries.items[i]->ns, ns);
}

struct hf_entry *hf_kind_find(const struct hf_kind *kind, const char *ns, const char *name)
{
	const char *place = kind->resource->namespaced ? hf_str_or(ns, "") : "";
	size_t i = hf_kind_lower_bound(kind, place, name);

	return entry_is(kind, i, place, name) ? kind->entries.items[i] : NULL;
}

/* --- owners --- */

static void owner_free(void *owner)
{
	free(owner);
}

struct hf_owner *hf_engine_owner(struct hf_engine *engine, const char *uid)
{
	return hf_map_get(engine->owners, uid);
}

static void unlink_owners(struct hf_engine *engine, struct hf_entry *entry)
{
	for (size_t i = 0; i < entry->n_links; i++) {
		struct hf_owner_link *link = &entry->links[i];
		*(link->prev ? &link->prev->next : &link->owner->first) = link->next;
		*(link->next ? &link->next->prev : &link->owner->last) = link->prev;
	}
	/* Look for owners without dependents only after all links are removed: two references may
	 * have the same UID. */
	const struct hf_json *refs =
		hf_json_path(hf_doc_json(entry->doc), "metadata", "ownerReferences", NULL);
	for (size_t i = 0; i < entry->n_links; i++) {
		const char *uid = hf_json_path_str(hf_json_item(refs, i), "uid", NULL);
		struct hf_owner *owner = uid ? hf_engine_owner(engine, uid) : NULL;
		if (owner && !owner->first)
			hf_map_remove(engine->owners, uid);
	}
	free(entry->links);
	entry->links = NULL;
	entry->n_links = 0;
}

static void link_owners(struct hf_engine *engine, struct hf_entry *entry)
{
	const struct hf_json *refs =
		hf_json_path(hf_doc_json(entry->doc), "metadata", "ownerReferences", NULL);
	size_t n = hf_json_len(refs);

	if (n == 0)
		return;
	entry->links = hf_xcalloc(n, sizeof(*entry->links));
	entry->n_links = n;
	for (size_t i = 0; i < n; i++) {
		const char *uid = hf_json_str(hf_json_get(hf_json_item(refs, i), "uid"), "");
		struct hf_owner *owner = hf_engine_owner(engine, uid);
		if (!owner) {
			owner = hf_xcalloc(1, sizeof(*owner));
			/* The map cannot be full: OWNERS_MAX exceeds the number of references that
			 * fit into all objects. */
			hf_assert(hf_map_put(engine->owners, uid, owner));
		}
		struct hf_owner_link *link = &entry->links[i];
		*link = (struct hf_owner_link){.entry = entry, .owner = owner, .prev = owner->last};
		*(owner->last ? &owner->last->next : &owner->first) = link;
		owner->last = link;
	}
}

/* --- expiry: a list by time of the last write --- */

static void unlink_age(struct hf_entry *entry)
{
	struct hf_kind *kind = entry->kind;

	if (!kind->expires)
		return;
	*(entry->older ? &entry->older->newer : &kind->oldest) = entry->newer;
	*(entry->newer ? &entry->newer->older : &kind->newest) = entry->older;
	entry->older = entry->newer = NULL;
}

/* Inserts the entry into the kind's list, which is ordered by the time of the last write. Its
 * place is normally the end; loading and undo insert elsewhere. */
static void link_age(struct hf_entry *entry)
{
	struct hf_kind *kind = entry->kind;
	struct hf_entry *before = kind->newest;

	if (!kind->expires)
		return;
	while (before && before->written_at > entry->written_at)
		before = before->older;
	entry->older = before;
	entry->newer = before ? before->newer : kind->oldest;
	*(entry->older ? &entry->older->newer : &kind->oldest) = entry;
	*(entry->newer ? &entry->newer->older : &kind->newest) = entry;
}

/* --- entries --- */

static struct hf_entry *entry_new(struct hf_kind *kind, const char *ns, const char *name)
{
	size_t ns_size = strlen(ns) + 1, name_size = strlen(name) + 1;
	struct hf_entry *entry = hf_xcalloc(1, sizeof(*entry) + ns_size + name_size);
	char *text = (char *)(entry + 1);

	memcpy(text, ns, ns_size);
	memcpy(text + ns_size, name, name_size);
	entry->kind = kind;
	entry->ns = text;
	entry->name = text + ns_size;
	return entry;
}

static void entry_detach(struct hf_engine *engine, struct hf_entry *entry)
{
	unlink_owners(engine, entry);
	unlink_age(entry);
	engine->bytes -= entry->bytes;
	entry->doc = hf_doc_unref(entry->doc);
}

static void entry_attach(struct hf_engine *engine, struct hf_entry *entry,
			 const struct hf_version *version)
{
	entry->doc = version->doc;
	entry->version = version->number;
	entry->bytes = version->bytes;
	entry->written_at = version->written_at;
	engine->bytes += entry->bytes;
	link_owners(engine, entry);
	link_age(entry);
}

void hf_kind_put(struct hf_engine *engine, struct hf_kind *kind, const char *ns, const char *name,
		 const struct hf_version *version)
{
	size_t i = hf_kind_lower_bound(kind, ns, name);
	struct hf_entry *entry = entry_is(kind, i, ns, name) ? kind->entries.items[i] : NULL;

	if (entry)
		entry_detach(engine, entry);
	if (!version) {
		if (entry)
			HF_VEC_REMOVE(&kind->entries, i);
		free(entry);
		return;
	}
	if (!entry) {
		entry = entry_new(kind, ns, name);
		hf_assert(HF_VEC_PUSH(&kind->entries, entry));
		struct hf_entry **at = &kind->entries.items[i];
		memmove(at + 1, at, (kind->entries.len - 1 - i) * sizeof(struct hf_entry *));
		*at = entry;
	}
	entry_attach(engine, entry, version);
}

/* --- the engine's birth and end --- */

/* Limit of owners in the index. The size of a reference's text limits the references in the store.
 * The map takes memory only for its present entries. */
#define OWNERS_MAX ((size_t)4 << 20)

/* The version of a store in which nothing was written. It is not 0: a watch from version "0" starts
 * with the objects that exist, and not at a position. etcd also begins with revision 1. */
#define FIRST_VERSION 1

struct hf_engine *hf_engine_create(const struct hf_engine_env *env)
{
	struct hf_engine *engine = hf_xcalloc(1, sizeof(*engine));

	engine->env = *env;
	engine->owners = hf_map_create(OWNERS_MAX, 0, owner_free);
	engine->pending.len_max = SIZE_MAX / sizeof(struct hf_change);
	engine->n_kinds = hf_resource_count();
	for (size_t i = 0; i < engine->n_kinds; i++) {
		struct hf_kind *kind = &engine->kinds[i];
		kind->info = hf_resource_at(i);
		kind->resource = kind->info->resource;
		kind->entries.len_max = env->objects_max;
		kind->expires = kind->resource == &hf_events;
	}
	hf_engine_loaded(engine, FIRST_VERSION);
	return engine;
}

static void change_release(struct hf_change *change)
{
	hf_doc_unref(change->before.doc);
	hf_doc_unref(change->after);
	hf_doc_unref(change->last);
}

struct hf_engine *hf_engine_destroy(struct hf_engine *engine)
{
	if (!engine)
		return NULL;
	for (size_t i = 0; i < engine->pending.len; i++)
		change_release(&engine->pending.items[i]);
	HF_VEC_RELEASE(&engine->pending);
	for (size_t i = 0; i < engine->n_kinds; i++) {
		struct hf_kind *kind = &engine->kinds[i];
		for (size_t e = 0; e < kind->entries.len; e++) {
			hf_doc_unref(kind->entries.items[e]->doc);
			free(kind->entries.items[e]->links);
			free(kind->entries.items[e]);
		}
		HF_VEC_RELEASE(&kind->entries);
		hf_history_release(&kind->history);
	}
	hf_map_destroy(engine->owners);
	free(engine);
	return NULL;
}

struct hf_kind *hf_engine_kind(struct hf_engine *engine, const struct hf_resource *resource)
{
	for (size_t i = 0; i < engine->n_kinds; i++)
		if (engine->kinds[i].resource == resource)
			return &engine->kinds[i];
	for (size_t i = 0; i < engine->n_kinds; i++)
		if (hf_resource_equal(engine->kinds[i].resource, resource))
			return &engine->kinds[i];
	return NULL;
}

int hf_engine_load(struct hf_engine *engine, const struct hf_resource *resource, struct hf_doc *doc,
		   hf_time written_at, struct hf_error *err)
{
	struct hf_kind *kind = hf_engine_kind(engine, resource);
	const char *name = hf_doc_name(doc);

	if (!kind || *name == '\0')
		return hf_error_set(err, HF_E_INTERNAL, "a stored object of '%s' cannot be read",
				    resource->plural);
	if (kind->entries.len == kind->entries.len_max)
		return hf_error_set(err, HF_E_TOO_LARGE, "more than %zu %s are stored",
				    kind->entries.len_max, resource->plural);
	struct hf_version version = {
		.doc = hf_doc_ref(doc),
		.number = strtoull(hf_doc_resource_version(doc), NULL, 10),
		.bytes = hf_json_text_size(hf_doc_json(doc), SIZE_MAX),
		.written_at = written_at,
	};
	hf_kind_put(engine, kind, hf_doc_namespace(doc), name, &version);
	return 0;
}

void hf_engine_loaded(struct hf_engine *engine, uint64_t version)
{
	if (version < FIRST_VERSION)
		version = FIRST_VERSION;
	engine->version = engine->committed = version;
	for (size_t i = 0; i < engine->n_kinds; i++)
		engine->kinds[i].history.oldest = version;
}
