/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "ctl/cache.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "ctl/backoff.h"

#include <stdlib.h>
#include <string.h>

/* client-go's reflector uses these too; the jitter doubles a delay at most. */
#define RETRY_MIN (800 * HF_MS)
#define RETRY_MAX (30 * HF_SECOND)
#define JITTER_PERCENT 100
#define PAGE_LIMIT 500
/* As many times the pages that would fill the cache are no list any more. */
#define LIST_FILLS_MAX 10
#define IDLE_MAX (3 * HF_MINUTE)
/* A watch is asked to end after 5 to 10 min, so that watchers spread over the servers. */
#define WATCH_MIN (5 * HF_MINUTE)
/* A watch that ended sooner than this and told nothing is no progress: the next one waits.  (API
 * servers end watches that they cannot serve fast enough, one after the other when they are busy.) */
#define WATCH_SHORT HF_SECOND
#define VERSION_UNKNOWN 0 /* not a number; no server gives 0 to an object */
#define KEY_MAX 512       /* namespace (63), slash, name (253), NUL, and head room */

struct node;

/* The nodes that have one key in one index. */
struct chain {
	struct node *first, *last;
	char key[];
};

struct link {
	struct chain *chain; /* NULL: not in this index */
	struct node *prev, *next;
};

/* One block: the struct, a link for each index, and the texts: the key ("namespace/name", of which the
 * name is a part), namespace, uid and version, each with its NUL. */
struct node {
	struct hf_cache_entry entry; /* first: an entry is its node */
	uint64_t version;
	uintptr_t list_round; /* the list that last named it */
	const char *key;
	struct link links[];
};

struct hf_cache {
	struct hf_cache_options options;
	char *ns, *label_selector, *field_selector;
	struct hf_map *nodes; /* "ns/name" → struct node, which has the key */
	struct hf_map *indexes[HF_CACHE_INDEXES_MAX]; /* key → struct chain, which has the key */
	size_t n_indexes;
	struct hf_map *gone; /* uid → round when it was said to be gone */
	struct hf_call *call;
	struct hf_watch *watch;
	struct hf_timer *retry_timer, *idle_timer;
	struct hf_rng rng;
	struct hf_backoff backoff;
	char *version;        /* where to watch from; NULL: list first */
	uint64_t position;    /* every change up to this version is in the cache */
	char *list_version;   /* of the list under way; NULL: none is */
	char *continue_token; /* of the list under way; NULL: first page */
	size_t pages;         /* of the list under way */
	uintptr_t round;      /* lists begun */
	hf_time watch_since;
	bool watch_told; /* something, since then */
	bool streaming;  /* the watch is a list as a stream, not yet at its end */
	bool synced, full;
	struct hf_cache_stats stats;
};

static void list_page(struct hf_cache *cache);
static void watch_start(struct hf_cache *cache);
static void go_on(void *arg);

static uint64_t version_parse(const char *text)
{
	uint64_t value = 0;

	for (const char *p = text; *p != '\0'; p++) {
		if (*p < '0' || *p > '9' || value > (UINT64_MAX - 9) / 10)
			return VERSION_UNKNOWN;
		value = value * 10 + (uint64_t)(*p - '0');
	}
	return value;
}

static void set_string(char **where, const char *s)
{
	char *copy = s == NULL ? NULL : hf_xstrdup(s); /* s may be what is freed */

	free(*where);
	*where = copy;
}

static void problem(struct hf_cache *cache, int code, const char *message)
{
	if (cache->options.problem != NULL)
		cache->options.problem(cache->options.arg, code, message);
}

static void changed(struct hf_cache *cache, enum hf_cache_change change, const struct node *before,
		    const struct node *now)
{
	if (cache->options.changed != NULL)
		cache->options.changed(cache->options.arg, change,
				       before == NULL ? NULL : &before->entry,
				       now == NULL ? NULL : &now->entry);
}

static void position_set(struct hf_cache *cache, const char *version)
{
	uint64_t position = version_parse(version);

	if (position > cache->position)
		cache->position = position;
}

/* --- entries --- */

static bool key_make(char buf[KEY_MAX], const char *ns, const char *name)
{
	size_t ns_len = ns == NULL ? 0 : strlen(ns), name_len = strlen(name);

	if (name_len == 0 || ns_len + name_len + 2 > KEY_MAX)
		return false;
	if (ns_len > 0)
		memcpy(buf, ns, ns_len);
	buf[ns_len] = '/';
	memcpy(buf + ns_len + 1, name, name_len + 1);
	return true;
}

static struct node *node_find(const struct hf_cache *cache, const char *ns, const char *name)
{
	char key[KEY_MAX];

	return key_make(key, ns, name) ? hf_map_get(cache->nodes, key) : NULL;
}

static const char *text_put(char **at, const char *s)
{
	const char *start = *at;
	size_t size = strlen(s) + 1;

	memcpy(*at, s, size);
	*at += size;
	return start;
}

static struct node *node_create(const struct hf_cache *cache, const char *key, struct hf_doc *doc,
				void *view)
{
	const char *ns = hf_doc_namespace(doc), *uid = hf_doc_uid(doc);
	const char *version = hf_doc_resource_version(doc);
	size_t texts = strlen(key) + strlen(ns) + strlen(uid) + strlen(version) + 4;
	size_t links = cache->n_indexes * sizeof(struct link);
	struct node *node = hf_xcalloc(1, sizeof(*node) + links + texts);
	char *at = (char *)&node->links[cache->n_indexes];

	node->key = text_put(&at, key);
	node->entry.name = node->key + strlen(ns) + 1;
	node->entry.ns = text_put(&at, ns);
	node->entry.uid = text_put(&at, uid);
	node->entry.resource_version = text_put(&at, version);
	if (cache->options.keep_docs)
		node->entry.doc = cache->options.trim != NULL
					  ? cache->options.trim(cache->options.arg, doc)
					  : hf_doc_ref(doc);
	node->entry.view = view;
	node->version = version_parse(version);
	return node;
}

static void view_free(const struct hf_cache *cache, void *view)
{
	if (view != NULL && cache->options.view_free != NULL)
		cache->options.view_free(view);
}

static void node_free(const struct hf_cache *cache, struct node *node)
{
	hf_doc_unref(node->entry.doc);
	view_free(cache, node->entry.view);
	free(node);
}

static void link_in(struct hf_cache *cache, struct node *node)
{
	for (size_t i = 0; i < cache->n_indexes; i++) {
		struct link *link = &node->links[i];
		const char *key;

		if (cache->indexes[i] == NULL)
			continue;
		key = cache->options.index_key[i](&node->entry);
		if (key == NULL)
			continue;
		struct chain *chain = hf_map_get(cache->indexes[i], key);

		if (chain == NULL) {
			size_t size = strlen(key) + 1;

			chain = hf_xcalloc(1, sizeof(*chain) + size);
			memcpy(chain->key, key, size);
			/* An index has at most a key per node, and the nodes fit. */
			bool put = hf_map_put(cache->indexes[i], chain->key, chain);

			hf_assert(put);
		}
		link->chain = chain;
		link->prev = chain->last;
		link->next = NULL;
		*(chain->last == NULL ? &chain->first : &chain->last->links[i].next) = node;
		chain->last = node;
	}
}

static void link_out(struct hf_cache *cache, struct node *node)
{
	for (size_t i = 0; i < cache->n_indexes; i++) {
		struct link *link = &node->links[i];
		struct chain *chain = link->chain;

		if (chain == NULL)
			continue;
		*(link->prev == NULL ? &chain->first : &link->prev->links[i].next) = link->next;
		*(link->next == NULL ? &chain->last : &link->next->links[i].prev) = link->prev;
		link->chain = NULL;
		if (chain->first == NULL)
			hf_map_remove(cache->indexes[i], chain->key); /* frees it */
	}
}

static void node_remove(struct hf_cache *cache, struct node *node)
{
	link_out(cache, node);
	hf_map_remove(cache->nodes, node->key);
	changed(cache, HF_CACHE_DELETED, node, NULL);
	node_free(cache, node);
}

static void node_put(struct hf_cache *cache, struct node *old, struct node *node)
{
	if (old != NULL && node->list_round < old->list_round)
		node->list_round = old->list_round;
	/* An entry of another UID is another object: the owner sees the end of the old one. */
	if (old != NULL && !hf_streq(old->entry.uid, node->entry.uid)) {
		node_remove(cache, old);
		old = NULL;
	}
	if (old != NULL)
		link_out(cache, old);
	if (!hf_map_put(cache->nodes, node->key, node)) {
		hf_assert(old == NULL);
		node_free(cache, node);
		if (!cache->full)
			problem(cache, HF_E_TOO_LARGE, "the cache is full: objects are missing");
		cache->full = true;
		return;
	}
	link_in(cache, node);
	changed(cache, old == NULL ? HF_CACHE_ADDED : HF_CACHE_UPDATED, old, node);
	if (old != NULL)
		node_free(cache, old);
}

/* Takes an object in, whatever its version is.  round: as below. */
static void take_in(struct hf_cache *cache, const char *key, struct hf_doc *doc, uintptr_t round)
{
	struct node *old = hf_map_get(cache->nodes, key);
	void *view = NULL;

	if (cache->options.decode != NULL) {
		view = cache->options.decode(cache->options.arg, doc);
		if (view == NULL) {
			if (old != NULL)
				node_remove(cache, old);
			return;
		}
	}
	struct node *node = node_create(cache, key, doc, view);

	node->list_round = round;
	node_put(cache, old, node);
}

/* Takes a version of an object in unless it is stale.  false: it was.  round: of the list that
 * names it, 0 when it comes from elsewhere. */
static bool upsert(struct hf_cache *cache, struct hf_doc *doc, uintptr_t round)
{
	uint64_t version = version_parse(hf_doc_resource_version(doc));
	struct node *old;
	char key[KEY_MAX];

	if (!key_make(key, hf_doc_namespace(doc), hf_doc_name(doc)))
		return false;
	old = hf_map_get(cache->nodes, key);
	if (old != NULL && round > 0)
		old->list_round = round;
	if (hf_map_has(cache->gone, hf_doc_uid(doc)) ||
	    (old != NULL && version != VERSION_UNKNOWN && version <= old->version)) {
		cache->stats.stale++;
		return false;
	}
	take_in(cache, key, doc, round);
	return true;
}

static void object_deleted(struct hf_cache *cache, struct hf_doc *doc)
{
	struct node *node = node_find(cache, hf_doc_namespace(doc), hf_doc_name(doc));
	const char *uid = hf_doc_uid(doc);

	hf_map_remove(cache->gone, uid);
	if (node != NULL && hf_streq(node->entry.uid, uid))
		node_remove(cache, node);
}

/* --- list --- */

static void retry_later(struct hf_cache *cache, hf_time at_least)
{
	hf_time delay = hf_backoff_next(&cache->backoff, &cache->rng);

	hf_timer_arm(cache->retry_timer, delay > at_least ? delay : at_least);
}

static void list_forget(struct hf_cache *cache)
{
	set_string(&cache->continue_token, NULL);
	set_string(&cache->list_version, NULL);
	cache->pages = 0;
}

/* Whatever the complete list does not name is gone, unless it is younger than the list. */
static void list_sweep(struct hf_cache *cache)
{
	uint64_t version = version_parse(cache->list_version);
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(cache->nodes, &it, &key, &value);) {
		struct node *node = value;
		bool younger = version != VERSION_UNKNOWN && node->version > version;

		if (node->list_round != cache->round && !younger)
			node_remove(cache, node);
	}
	for (size_t it = 0; hf_map_next(cache->gone, &it, &key, &value);)
		if ((uintptr_t)value < cache->round)
			hf_map_remove(cache->gone, key);
}

static void list_done(struct hf_cache *cache)
{
	list_sweep(cache);
	position_set(cache, cache->list_version);
	free(cache->version);
	cache->version = hf_steal(&cache->list_version);
	list_forget(cache);
	if (cache->watch == NULL)
		watch_start(cache);
	if (!cache->synced) {
		cache->synced = true;
		changed(cache, HF_CACHE_SYNCED, NULL, NULL);
	}
}

/* Nothing that could go on for ever is asked for at the server's pace. */
static void list_stuck(struct hf_cache *cache, const char *why)
{
	cache->stats.errors++;
	problem(cache, HF_E_BAD_REQUEST, why);
	retry_later(cache, 0);
}

static int64_t page_limit(const struct hf_cache *cache)
{
	return cache->options.page_limit > 0 ? cache->options.page_limit : PAGE_LIMIT;
}

/* There is another page. */
static void list_more(struct hf_cache *cache, const struct hf_reply *reply)
{
	bool same = hf_streq(cache->continue_token, reply->continue_token);
	size_t fill = cache->options.entries_max / (size_t)page_limit(cache) + 1;

	if (same || ++cache->pages >= LIST_FILLS_MAX * fill) {
		list_forget(cache);
		list_stuck(cache, same ? "the server's list does not end: its continue token leads "
					 "to the same page again"
				       : "the server's list does not end: ten times the pages that "
					 "may be kept were read");
		return;
	}
	set_string(&cache->continue_token, reply->continue_token);
	/* This one may end. */
	if (reply->n_items == 0)
		list_stuck(cache, "a page of the server's list is empty and tells of more");
	else
		list_page(cache);
}

static void list_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_cache *cache = arg;

	cache->call = NULL;
	if (cache->options.heard != NULL)
		cache->options.heard(cache->options.arg, reply);
	if (reply->code != 0) {
		cache->stats.errors++;
		problem(cache, reply->code, reply->message);
		/* Too old a token cannot go on; all else asks for the same page again. */
		if (reply->code == HF_E_GONE)
			list_forget(cache);
		retry_later(cache, reply->retry_after);
		return;
	}
	if (cache->list_version == NULL)
		set_string(&cache->list_version, reply->resource_version);
	for (size_t i = 0; i < reply->n_items; i++)
		upsert(cache, reply->items[i], cache->round);
	if (hf_str_is_empty(reply->continue_token)) {
		list_done(cache);
		return;
	}
	list_more(cache, reply);
}

static void list_page(struct hf_cache *cache)
{
	const struct hf_cache_options *options = &cache->options;
	struct hf_request request = {
		.verb = HF_VERB_LIST,
		.resource = options->resource,
		.ns = cache->ns,
		.label_selector = cache->label_selector,
		.field_selector = cache->field_selector,
		.continue_token = cache->continue_token,
		.limit = page_limit(cache),
	};

	if (cache->continue_token == NULL) {
		cache->round++;
		cache->stats.relists++;
	}
	cache->call = hf_store_request(options->store, &request, list_reply, cache);
}

/* --- watch --- */

static void watch_close(struct hf_cache *cache)
{
	cache->streaming = false;
	cache->watch = hf_watch_stop(cache->watch);
	hf_timer_disarm(cache->idle_timer);
}

static void idle_arm(struct hf_cache *cache)
{
	hf_time idle = cache->options.idle_max;

	hf_timer_arm(cache->idle_timer, idle > 0 ? idle : IDLE_MAX);
}

static void watch_ended(struct hf_cache *cache, const struct hf_event *event)
{
	hf_time lasted = hf_loop_mono(cache->options.loop) - cache->watch_since;
	int code = event->code;

	watch_close(cache);
	if (code != 0) {
		cache->stats.errors++;
		problem(cache, code, event->message);
	}
	if (code == HF_E_GONE)
		set_string(&cache->version, NULL);
	bool progress = lasted >= WATCH_SHORT || (code == 0 && cache->watch_told);

	if ((code == 0 || code == HF_E_GONE) && progress && event->retry_after <= 0)
		hf_timer_arm(cache->retry_timer, 0);
	else
		retry_later(cache, event->retry_after);
}

static void stream_ended(struct hf_cache *cache, const struct hf_event *event)
{
	watch_close(cache);
	/* Not known to this server: pages, at once. */
	if (event->code == HF_E_INVALID && !hf_store_streams(cache->options.store)) {
		hf_timer_arm(cache->retry_timer, 0);
		return;
	}
	cache->stats.errors++;
	problem(cache, event->code,
		event->code == 0 ? "the list ended before it was complete" : event->message);
	retry_later(cache, event->retry_after);
}

/* Before the end of what is there: versions of single objects are no place to go on from. */
static void stream_event(struct hf_cache *cache, const struct hf_event *event)
{
	switch (event->type) {
	case HF_EVENT_ENDED: stream_ended(cache, event); return;
	case HF_EVENT_DELETED: object_deleted(cache, event->object); break;
	case HF_EVENT_ADDED:
	case HF_EVENT_MODIFIED: upsert(cache, event->object, cache->round); break;
	case HF_EVENT_BOOKMARK:
		if (event->initial_end) {
			cache->streaming = false;
			hf_backoff_reset(&cache->backoff);
			set_string(&cache->list_version, event->resource_version);
			list_done(cache);
		}
		break;
	}
	cache->stats.events++;
	idle_arm(cache);
}

static void watch_event(void *arg, const struct hf_event *event)
{
	struct hf_cache *cache = arg;

	if (cache->streaming) {
		stream_event(cache, event);
		return;
	}
	if (event->type == HF_EVENT_ENDED) {
		watch_ended(cache, event);
		return;
	}
	cache->stats.events++;
	cache->watch_told = true;
	hf_backoff_reset(&cache->backoff);
	idle_arm(cache);
	if (event->type == HF_EVENT_DELETED)
		object_deleted(cache, event->object);
	else if (event->type != HF_EVENT_BOOKMARK)
		upsert(cache, event->object, 0);
	if (!hf_str_is_empty(event->resource_version)) {
		set_string(&cache->version, event->resource_version);
		position_set(cache, event->resource_version);
	}
}

static void stream_start(struct hf_cache *cache)
{
	const struct hf_cache_options *options = &cache->options;
	hf_time spread = (hf_time)hf_rng_below(&cache->rng, (uint64_t)WATCH_MIN);
	const struct hf_watch_options watch = {
		.resource = options->resource,
		.ns = cache->ns,
		.label_selector = cache->label_selector,
		.field_selector = cache->field_selector,
		.bookmarks = true,
		.initial_events = true,
		.timeout = WATCH_MIN + spread,
	};

	cache->round++;
	cache->stats.relists++;
	cache->streaming = true;
	cache->watch_since = hf_loop_mono(options->loop);
	cache->watch_told = false;
	idle_arm(cache);
	cache->watch = hf_store_watch(options->store, &watch, watch_event, cache);
}

static void watch_start(struct hf_cache *cache)
{
	const struct hf_cache_options *options = &cache->options;
	hf_time spread = (hf_time)hf_rng_below(&cache->rng, (uint64_t)WATCH_MIN);
	struct hf_watch_options watch = {
		.resource = options->resource,
		.ns = cache->ns,
		.label_selector = cache->label_selector,
		.field_selector = cache->field_selector,
		.resource_version = cache->version,
		.bookmarks = true,
		.timeout = WATCH_MIN + spread,
	};

	cache->watch_since = hf_loop_mono(options->loop);
	cache->watch_told = false;
	idle_arm(cache);
	cache->watch = hf_store_watch(options->store, &watch, watch_event, cache);
}

static void watch_hung(void *arg)
{
	struct hf_cache *cache = arg;

	cache->stats.hung++;
	watch_close(cache);
	go_on(cache);
}

static void go_on(void *arg)
{
	struct hf_cache *cache = arg;

	if (cache->version != NULL)
		watch_start(cache);
	else if (cache->continue_token == NULL && hf_store_streams(cache->options.store))
		stream_start(cache);
	else
		list_page(cache);
}

/* --- life --- */

struct hf_cache *hf_cache_create(const struct hf_cache_options *options)
{
	struct hf_cache *cache = hf_xcalloc(1, sizeof(*cache));
	size_t max = options->entries_max > 0 ? options->entries_max : HF_CACHE_ENTRIES_MAX;

	hf_assert(options->loop != NULL && options->store != NULL && options->resource != NULL);
	cache->options = *options;
	cache->options.entries_max = max;
	set_string(&cache->ns, options->ns);
	set_string(&cache->label_selector, options->label_selector);
	set_string(&cache->field_selector, options->field_selector);
	cache->nodes = hf_map_create_borrowing(max, options->seed, NULL);
	for (size_t i = 0; i < HF_CACHE_INDEXES_MAX; i++) {
		if (options->index_key[i] == NULL)
			continue;
		cache->indexes[i] = hf_map_create_borrowing(max, options->seed, free);
		cache->n_indexes = i + 1;
	}
	cache->gone = hf_map_create(HF_CACHE_GONE_MAX, options->seed, NULL);
	cache->retry_timer = hf_timer_create(options->loop, go_on, cache);
	cache->idle_timer = hf_timer_create(options->loop, watch_hung, cache);
	hf_rng_init(&cache->rng, options->seed);
	cache->backoff = (struct hf_backoff)HF_BACKOFF_INIT(RETRY_MIN, RETRY_MAX, JITTER_PERCENT);
	return cache;
}

void hf_cache_start(struct hf_cache *cache)
{
	hf_assert(cache->call == NULL && cache->watch == NULL);
	hf_timer_arm(cache->retry_timer, 0);
}

struct hf_cache *hf_cache_destroy(struct hf_cache *cache)
{
	const char *key;
	void *value;

	if (cache == NULL)
		return NULL;
	hf_call_cancel(cache->call);
	hf_watch_stop(cache->watch);
	hf_timer_destroy(cache->retry_timer);
	hf_timer_destroy(cache->idle_timer);
	for (size_t it = 0; hf_map_next(cache->nodes, &it, &key, &value);)
		node_free(cache, value);
	hf_map_destroy(cache->nodes);
	for (size_t i = 0; i < HF_CACHE_INDEXES_MAX; i++)
		hf_map_destroy(cache->indexes[i]);
	hf_map_destroy(cache->gone);
	free(cache->ns);
	free(cache->label_selector);
	free(cache->field_selector);
	free(cache->version);
	free(cache->list_version);
	free(cache->continue_token);
	free(cache);
	return NULL;
}

/* --- questions --- */

bool hf_cache_synced(const struct hf_cache *cache)
{
	return cache->synced;
}

size_t hf_cache_len(const struct hf_cache *cache)
{
	return hf_map_len(cache->nodes);
}

const struct hf_cache_stats *hf_cache_stats(const struct hf_cache *cache)
{
	return &cache->stats;
}

const struct hf_cache_entry *hf_cache_get(const struct hf_cache *cache, const char *ns,
					  const char *name)
{
	struct node *node = node_find(cache, ns, name);

	return node == NULL ? NULL : &node->entry;
}

const struct hf_cache_entry *hf_cache_next(const struct hf_cache *cache, size_t *it)
{
	const char *key;
	void *value;

	return hf_map_next(cache->nodes, it, &key, &value) ? &((struct node *)value)->entry : NULL;
}

const struct hf_cache_entry *hf_cache_first(const struct hf_cache *cache, size_t index,
					    const char *key)
{
	hf_assert(index < HF_CACHE_INDEXES_MAX && cache->indexes[index] != NULL);
	const struct chain *chain = hf_map_get(cache->indexes[index], key);

	return chain == NULL ? NULL : &chain->first->entry;
}

const struct hf_cache_entry *hf_cache_after(const struct hf_cache *cache, size_t index,
					    const struct hf_cache_entry *entry)
{
	const struct node *next = ((const struct node *)entry)->links[index].next;

	hf_assert(cache->indexes[index] != NULL);
	return next == NULL ? NULL : &next->entry;
}

/* --- replies --- */

/* An older version of this very object is held: the watch has not told of this one. */
static bool is_held_older(const struct hf_cache *cache, struct hf_doc *doc, uint64_t version)
{
	const struct node *held = node_find(cache, hf_doc_namespace(doc), hf_doc_name(doc));

	return held != NULL && hf_streq(held->entry.uid, hf_doc_uid(doc)) &&
	       held->version != VERSION_UNKNOWN && held->version < version;
}

bool hf_cache_put_reply(struct hf_cache *cache, struct hf_doc *doc)
{
	uint64_t version = version_parse(hf_doc_resource_version(doc));

	/* One that does not say its version cannot be told from the past: the watch will tell. */
	if (version == VERSION_UNKNOWN ||
	    (version <= cache->position && !is_held_older(cache, doc, version))) {
		cache->stats.stale++;
		return false;
	}
	return upsert(cache, doc, 0);
}

static bool same_text(struct hf_doc *one, struct hf_doc *other)
{
	size_t len, other_len;
	const char *text = hf_doc_text(one, &len), *other_text = hf_doc_text(other, &other_len);

	return len == other_len && memcmp(text, other_text, len) == 0;
}

bool hf_cache_put_live(struct hf_cache *cache, struct hf_doc *doc)
{
	struct node *held = node_find(cache, hf_doc_namespace(doc), hf_doc_name(doc));
	char key[KEY_MAX];

	/* The same version of the same object: not even the watch is past it. */
	if (held == NULL || !hf_streq(held->entry.uid, hf_doc_uid(doc)) ||
	    !hf_streq(held->entry.resource_version, hf_doc_resource_version(doc)) ||
	    !key_make(key, held->entry.ns, held->entry.name))
		return hf_cache_put_reply(cache, doc);
	/* No news: a reader whom it wakes, to read again, would never end. */
	if (held->entry.doc == NULL || !same_text(held->entry.doc, doc))
		take_in(cache, key, doc, held->list_round);
	return true;
}

void hf_cache_put_gone(struct hf_cache *cache, const char *ns, const char *name, const char *uid)
{
	struct node *node = node_find(cache, ns, name);
	const char *oldest;
	void *value;
	size_t it = 0;

	/* Not held: the watch knows already, and nothing can bring it back. */
	if (node == NULL || !hf_streq(node->entry.uid, uid))
		return;
	if (hf_map_len(cache->gone) == HF_CACHE_GONE_MAX &&
	    hf_map_next(cache->gone, &it, &oldest, &value))
		hf_map_remove(cache->gone, oldest);
	bool put = hf_map_put(cache->gone, node->entry.uid, (void *)cache->round);

	hf_assert(put);
	node_remove(cache, node);
}
