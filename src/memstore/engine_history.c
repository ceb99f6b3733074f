/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

/*
 * History, commit and undo.
 *
 * History serves three readers: a watch that resumes, the later pages of a list, and the
 * simulator's reads of the past. All need the state at a version: the present state, with the
 * changes since then taken back.
 */

static void change_release(struct hf_change *change)
{
	hf_doc_unref(change->before.doc);
	hf_doc_unref(change->after);
	hf_doc_unref(change->last);
}

static struct hf_change *slot_at(const struct hf_history *history, size_t i)
{
	hf_assert(i < history->len);
	return &history->ring[(history->start + i) % history->cap];
}

void hf_history_release(struct hf_history *history)
{
	for (size_t i = 0; i < history->len; i++)
		change_release(slot_at(history, i));
	free(history->ring);
	*history = (struct hf_history){0};
}

static void grow_ring(struct hf_history *history, size_t max)
{
	size_t cap = history->cap ? history->cap * 2 : 64;
	if (cap > max)
		cap = max;
	struct hf_change *ring = hf_xcalloc(cap, sizeof(*ring));

	for (size_t i = 0; i < history->len; i++)
		ring[i] = *slot_at(history, i);
	free(history->ring);
	history->ring = ring;
	history->cap = cap;
	history->start = 0;
}

/* Appends a change and takes over its references; drops the oldest change if the ring is full. */
void hf_history_push(struct hf_history *history, struct hf_change *change, size_t max)
{
	if (history->len == history->cap && history->cap < max)
		grow_ring(history, max);
	if (history->len == history->cap) {
		struct hf_change *lost = slot_at(history, 0);
		history->oldest = lost->version;
		change_release(lost);
		history->start = (history->start + 1) % history->cap;
		history->len--;
		history->first++;
	}
	history->len++;
	*slot_at(history, history->len - 1) = *change;
}

const struct hf_change *hf_history_at(const struct hf_history *history, uint64_t seq)
{
	if (seq < history->first || seq - history->first >= history->len)
		return NULL;
	return slot_at(history, (size_t)(seq - history->first));
}

uint64_t hf_history_after(const struct hf_history *history, uint64_t version)
{
	size_t low = 0, high = history->len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (slot_at(history, mid)->version <= version)
			low = mid + 1;
		else
			high = mid;
	}
	return history->first + low;
}

/* --- commit and undo --- */

void hf_engine_commit(struct hf_engine *engine, void (*each)(void *arg, struct hf_change *change),
		      void *arg)
{
	/* Take the changes out of `pending` first: the callback may make further changes, which
	 * belong to the next commit. */
	struct hf_change *changes = engine->pending.items;
	size_t n = engine->pending.len;

	engine->pending.items = NULL;
	engine->pending.len = engine->pending.cap = 0;
	engine->committed = engine->version;
	for (size_t i = 0; i < n; i++) {
		struct hf_kind *kind = changes[i].kind;
		kind->wake = true;
		hf_history_push(&kind->history, &changes[i], engine->env.watch_history);
	}
	for (size_t i = 0; each && i < n; i++)
		each(arg, &changes[i]);
	free(changes);
}

void hf_engine_undo(struct hf_engine *engine)
{
	while (engine->pending.len > 0) {
		struct hf_change *c = &engine->pending.items[--engine->pending.len];
		struct hf_doc *key = c->after ? c->after : c->last;
		const char *ns = hf_doc_namespace(key), *name = hf_doc_name(key);

		hf_kind_put(engine, c->kind, ns, name, c->before.doc ? &c->before : NULL);
		/* hf_kind_put took over the reference. */
		c->before.doc = NULL;
		change_release(c);
	}
	/* Do not set engine->version back: code of this process may have seen the versions that
	 * are now undone. */
}

/* --- the past --- */

struct past {
	const struct hf_snapshot *snapshot;
	/* Maps "ns/name" to the document at the snapshot's version, or to &gone if it did not
	 * exist. */
	struct hf_map *changed;
	HF_VEC(struct hf_doc *) docs;
};

static char gone;

static bool is_behind(const struct hf_snapshot *s, const char *ns, const char *name)
{
	return !s->after_name || hf_key_compare(ns, name, s->after_ns, s->after_name) > 0;
}

static void past_add(struct past *past, const struct hf_change *c)
{
	struct hf_doc *any = c->after ? c->after : c->last;
	const char *ns = hf_doc_namespace(any), *name = hf_doc_name(any);

	if (c->version <= past->snapshot->version || !is_behind(past->snapshot, ns, name))
		return;
	/* The state of an object at the version is its state before the first later change. */
	HF_AUTOFREE char *key = hf_xasprintf("%s/%s", ns, name);
	if (!hf_map_has(past->changed, key))
		hf_assert(hf_map_put(past->changed, key,
				     c->before.doc ? (void *)c->before.doc : (void *)&gone));
}

static void past_changes(struct hf_engine *engine, struct past *past)
{
	const struct hf_snapshot *s = past->snapshot;
	const struct hf_history *history = &s->kind->history;
	const struct hf_change *c;

	for (uint64_t seq = hf_history_after(history, s->version);
	     (c = hf_history_at(history, seq)); seq++)
		past_add(past, c);
	for (size_t i = 0; i < engine->pending.len; i++)
		if (engine->pending.items[i].kind == s->kind)
			past_add(past, &engine->pending.items[i]);
}

/* Returns the index of the first entry behind the key at which the snapshot begins. */
static size_t first_entry(const struct hf_snapshot *s)
{
	size_t i = 0;

	if (s->after_name)
		i = hf_kind_lower_bound(s->kind, s->after_ns, s->after_name);
	while (i < s->kind->entries.len &&
	       !is_behind(s, s->kind->entries.items[i]->ns, s->kind->entries.items[i]->name))
		i++;
	return i;
}

/* Walks the present objects: nothing has changed since the version, so they are the objects of
 * that version. */
static void walk_now(const struct hf_snapshot *s)
{
	for (size_t i = first_entry(s); i < s->kind->entries.len; i++)
		if (!s->fn(s->arg, s->kind->entries.items[i]->doc))
			return;
}

static int compare_docs(const void *a, const void *b)
{
	struct hf_doc *const *da = a, *const *db = b;

	return hf_key_compare(hf_doc_namespace(*da), hf_doc_name(*da), hf_doc_namespace(*db),
			      hf_doc_name(*db));
}

static void past_collect(struct past *past)
{
	const struct hf_kind *kind = past->snapshot->kind;
	bool sorted = true;
	const char *key;
	void *value;

	for (size_t i = first_entry(past->snapshot); i < kind->entries.len; i++) {
		struct hf_entry *entry = kind->entries.items[i];
		HF_AUTOFREE char *name = hf_xasprintf("%s/%s", entry->ns, entry->name);
		void *then = hf_map_get(past->changed, name);
		if (then != &gone)
			hf_assert(HF_VEC_PUSH(&past->docs, then ? then : entry->doc));
		if (then)
			hf_map_remove(past->changed, name);
	}
	/* Objects left in `changed` existed at the version and have been deleted since. */
	for (size_t it = 0; hf_map_next(past->changed, &it, &key, &value);)
		if (value != &gone) {
			hf_assert(HF_VEC_PUSH(&past->docs, value));
			sorted = false;
		}
	if (!sorted)
		qsort(past->docs.items, past->docs.len, sizeof(struct hf_doc *), compare_docs);
}

int hf_engine_snapshot(struct hf_engine *engine, const struct hf_snapshot *snapshot,
		       struct hf_error *err)
{
	const struct hf_history *history = &snapshot->kind->history;

	if (snapshot->version < history->oldest || snapshot->version > engine->version)
		return hf_error_set(err, HF_E_GONE,
				    "The provided continue parameter is too old to display a "
				    "consistent list result. You can start a new list without the "
				    "continue parameter.");

	struct past past = {.snapshot = snapshot};
	past.docs.len_max = SIZE_MAX / sizeof(struct hf_doc *);
	past.changed = hf_map_create(history->len + engine->pending.len + 1, 0, NULL);
	past_changes(engine, &past);
	if (hf_map_len(past.changed) == 0) {
		walk_now(snapshot);
	} else {
		past_collect(&past);
		for (size_t i = 0; i < past.docs.len; i++)
			if (!snapshot->fn(snapshot->arg, past.docs.items[i]))
				break;
	}
	HF_VEC_RELEASE(&past.docs);
	hf_map_destroy(past.changed);
	return 0;
}
