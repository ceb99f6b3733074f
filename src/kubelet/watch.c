/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/kubelet_internal.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

/*
 * Keeps a copy of the store's objects of one kind: lists them, watches from there on, and lists
 * again if the watch cannot continue.
 */
#define OBJECTS_MAX 10000
#define RETRY_AFTER HF_SECOND

struct hf_kubelet_watch {
	struct hf_kubelet_watch_options o;
	struct hf_call *list;
	struct hf_watch *watch;
	struct hf_timer *retry;
	struct hf_map *docs; /* "namespace/name" → struct hf_doc */
	char *version; /* the resourceVersion from which the watch continues; NULL: list first */
	bool synced;
};

static void list_now(struct hf_kubelet_watch *w);
static void watch_now(struct hf_kubelet_watch *w);

static void drop_doc(void *doc)
{
	(void)hf_doc_unref(doc);
}

static char *key_of(struct hf_doc *doc)
{
	return hf_xasprintf("%s/%s", hf_doc_namespace(doc), hf_doc_name(doc));
}

static void drop_object(struct hf_kubelet_watch *w, const char *key)
{
	HF_AUTO_DOC doc = hf_doc_ref(hf_map_get(w->docs, key));

	if (!doc)
		return;
	(void)hf_map_remove(w->docs, key);
	w->o.removed(w->o.arg, doc);
}

static void put_object(struct hf_kubelet_watch *w, struct hf_doc *doc)
{
	HF_AUTOFREE char *key = key_of(doc);
	struct hf_doc *before = hf_map_get(w->docs, key);

	/* The UID differs: the object was deleted and created again between two events. Report the
	 * deletion of the old object first. */
	if (before && !hf_streq(hf_doc_uid(before), hf_doc_uid(doc)))
		drop_object(w, key);
	if (!hf_map_put(w->docs, key, hf_doc_ref(doc))) {
		(void)hf_doc_unref(doc);
		return;
	}
	w->o.changed(w->o.arg, doc);
}

static void set_version(struct hf_kubelet_watch *w, const char *version)
{
	if (hf_str_is_empty(version))
		return;
	free(w->version);
	w->version = hf_xstrdup(version);
}

static void retry_later(struct hf_kubelet_watch *w, hf_time after)
{
	hf_timer_arm(w->retry, after > 0 ? after : RETRY_AFTER);
}

static void on_retry(void *arg)
{
	struct hf_kubelet_watch *w = arg;

	if (w->version)
		watch_now(w);
	else
		list_now(w);
}

static void on_event(void *arg, const struct hf_event *event)
{
	struct hf_kubelet_watch *w = arg;

	if (event->type == HF_EVENT_ENDED) {
		w->watch = hf_watch_stop(w->watch);
		if (event->code == HF_E_GONE) {
			free(w->version);
			w->version = NULL;
		}
		retry_later(w, event->code ? event->retry_after : HF_MS);
		return;
	}
	set_version(w, event->resource_version);
	if (event->type == HF_EVENT_DELETED) {
		HF_AUTOFREE char *key = key_of(event->object);

		drop_object(w, key);
	} else if (event->type != HF_EVENT_BOOKMARK) {
		put_object(w, event->object);
	}
}

static void watch_now(struct hf_kubelet_watch *w)
{
	struct hf_watch_options options = {.resource = w->o.resource,
					   .field_selector = w->o.field_selector,
					   .resource_version = w->version,
					   .bookmarks = true};

	w->watch = hf_store_watch(w->o.store, &options, on_event, w);
}

/* Removes the objects that are not in the list: they were deleted while no watch ran. */
static void forget_absent(struct hf_kubelet_watch *w, const struct hf_reply *reply)
{
	struct hf_map *present = hf_map_create(OBJECTS_MAX, 0, NULL);
	const char *key;
	void *value;

	for (size_t i = 0; i < reply->n_items; i++) {
		HF_AUTOFREE char *name = key_of(reply->items[i]);

		(void)!hf_map_put(present, name, w);
	}
	for (size_t it = 0; hf_map_next(w->docs, &it, &key, &value);) {
		HF_AUTOFREE char *copy = hf_xstrdup(key);

		if (!hf_map_has(present, copy))
			drop_object(w, copy);
	}
	present = hf_map_destroy(present);
}

static void on_list(void *arg, const struct hf_reply *reply)
{
	struct hf_kubelet_watch *w = arg;

	w->list = NULL;
	if (reply->code) {
		retry_later(w, reply->retry_after);
		return;
	}
	set_version(w, reply->resource_version);
	forget_absent(w, reply);
	for (size_t i = 0; i < reply->n_items; i++)
		put_object(w, reply->items[i]);
	if (!w->synced) {
		w->synced = true;
		w->o.synced(w->o.arg);
	}
	watch_now(w);
}

static void list_now(struct hf_kubelet_watch *w)
{
	struct hf_request request = {.verb = HF_VERB_LIST,
				     .resource = w->o.resource,
				     .field_selector = w->o.field_selector};

	w->list = hf_store_request(w->o.store, &request, on_list, w);
}

struct hf_kubelet_watch *hf_kubelet_watch_create(const struct hf_kubelet_watch_options *options)
{
	struct hf_kubelet_watch *w = hf_xcalloc(1, sizeof(*w));

	w->o = *options;
	w->docs = hf_map_create(OBJECTS_MAX, 0, drop_doc);
	w->retry = hf_timer_create(options->loop, on_retry, w);
	list_now(w);
	return w;
}

struct hf_kubelet_watch *hf_kubelet_watch_destroy(struct hf_kubelet_watch *w)
{
	if (!w)
		return NULL;
	hf_call_cancel(w->list);
	w->watch = hf_watch_stop(w->watch);
	w->retry = hf_timer_destroy(w->retry);
	w->docs = hf_map_destroy(w->docs);
	free(w->version);
	free(w);
	return NULL;
}

bool hf_kubelet_watch_next(const struct hf_kubelet_watch *w, size_t *it, struct hf_doc **ret_doc)
{
	const char *key;
	void *value;

	if (!hf_map_next(w->docs, it, &key, &value))
		return false;
	*ret_doc = value;
	return true;
}
