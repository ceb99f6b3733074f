/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * A local copy of all objects of one resource. Input: pages of lists, watch events and replies to
 * writes; output: entries, indexes and change callbacks.
 *
 * A cache goes through the states LIST (pages, or a stream of initial events) and WATCH. The retry
 * timer starts the next request after a failure; the idle timer replaces a silent watch. Rules for
 * stale data are in cache.h.
 *
 * Invariants: at most one list request or one watch is open; an entry never changes after it was
 * put, but is replaced.
 */
#include "ctl/cache.h"

#include "base/ascii.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "ctl/backoff.h"

#include <stdlib.h>
#include <string.h>

/* Delays before a retry, as in client-go's reflector. The jitter at most doubles a delay. */
#define RETRY_MIN (800 * HF_MS)
#define RETRY_MAX (30 * HF_SECOND)
#define JITTER_PERCENT 100
#define PAGE_LIMIT 500
/* A list may have this many times the pages of a full cache. A longer list would never end, so the
 * cache gives it up. */
#define LIST_FILLS_MAX 10
#define IDLE_MAX (3 * HF_MINUTE)
/* A watch asks the server to end it after 5 to 10 minutes, so that watches spread over the API
 * servers. */
#define WATCH_MIN (5 * HF_MINUTE)
/* If a watch without an event ends earlier than this, the cache waits before it starts the next
 * watch. (A busy API server ends watches that it cannot serve fast enough, one after the other.) */
#define WATCH_SHORT HF_SECOND
/* Stands for a version that is not a number; no server gives version 0 to an object. */
#define VERSION_UNKNOWN 0
#define KEY_MAX 512 /* namespace (63), slash, name (253), NUL, and some reserve */

struct node;

/* The list of nodes with the same key in one index. */
struct chain {
	struct node *first, *last;
	char key[];
};

struct link {
	/* the chain of entries with the same key in this index; NULL: the entry is not in the
	 * index */
	struct chain *chain;
	struct node *prev, *next;
};

/* One object, in one block of memory: this struct, a link for each index, and the texts key, ns,
 * uid and version, each with its NUL. The key is "namespace/name"; the name is its last part. */
struct node {
	/* First member: a pointer to an entry is also a pointer to its node. */
	struct hf_cache_entry entry;
	uint64_t version;
	uintptr_t list_round; /* number of the last list that contained the object */
	const char *key;
	struct link links[];
};

struct hf_cache {
	struct hf_cache_options options;
	char *ns, *label_selector, *field_selector;
	struct hf_map *nodes; /* "ns/name" → struct node, which holds the key */
	struct hf_map *indexes[HF_CACHE_INDEXES_MAX]; /* key → struct chain, which holds the key */
	size_t n_indexes;
	/* The UIDs that replies reported as deleted. Each maps to the number of the list that ran
	 * then. */
	struct hf_map *gone;
	struct hf_call *call;
	struct hf_watch *watch;
	struct hf_timer *retry_timer, *idle_timer;
	struct hf_rng rng;
	struct hf_backoff backoff;
	char *version;        /* the watch starts from this version; NULL: list first */
	uint64_t position;    /* every change up to this version is in the cache */
	char *list_version;   /* version of the running list; NULL: no list is running */
	char *continue_token; /* token of the running list; NULL: first page */
	size_t pages;         /* pages read of the running list */
	uintptr_t round;      /* number of lists started */
	hf_time watch_since;
	bool watch_progress; /* an event arrived since watch_since */
	bool streaming;      /* the watch still delivers the initial objects */
	bool synced, full;
	struct hf_cache_stats stats;
};

static void request_page(struct hf_cache *cache);
static void start_watch(struct hf_cache *cache);
static void start_next(void *arg);

static uint64_t parse_version(const char *text)
{
	uint64_t value = 0;

	for (const char *p = text; *p != '\0'; p++) {
		if (!hf_ascii_is_digit(*p) || value > (UINT64_MAX - 9) / 10)
			return VERSION_UNKNOWN;
		value = value * 10 + (uint64_t)(*p - '0');
	}
	return value;
}

static void set_string(char **where, const char *s)
{
	char *copy = s == NULL ? NULL : hf_xstrdup(s); /* s may point into *where */

	free(*where);
	*where = copy;
}

static void report_problem(struct hf_cache *cache, int code, const char *message)
{
	if (cache->options.problem != NULL)
		cache->options.problem(cache->options.arg, code, message);
}

static void report_change(struct hf_cache *cache, enum hf_cache_change change,
			  const struct node *before, const struct node *now)
{
	if (cache->options.changed != NULL)
		cache->options.changed(cache->options.arg, change,
				       before == NULL ? NULL : &before->entry,
				       now == NULL ? NULL : &now->entry);
}

static void advance_position(struct hf_cache *cache, const char *version)
{
	uint64_t position = parse_version(version);

	if (position > cache->position)
		cache->position = position;
}

/* --- entries --- */

static bool make_key(char buf[KEY_MAX], const char *ns, const char *name)
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

static struct node *find_node(const struct hf_cache *cache, const char *ns, const char *name)
{
	char key[KEY_MAX];

	return make_key(key, ns, name) ? hf_map_get(cache->nodes, key) : NULL;
}

static const char *copy_text(char **at, const char *s)
{
	const char *start = *at;
	size_t size = strlen(s) + 1;

	memcpy(*at, s, size);
	*at += size;
	return start;
}

static struct node *create_node(const struct hf_cache *cache, const char *key, struct hf_doc *doc,
				void *view)
{
	const char *ns = hf_doc_namespace(doc), *uid = hf_doc_uid(doc);
	const char *version = hf_doc_resource_version(doc);
	size_t texts = strlen(key) + strlen(ns) + strlen(uid) + strlen(version) + 4;
	size_t links = cache->n_indexes * sizeof(struct link);
	struct node *node = hf_xcalloc(1, sizeof(*node) + links + texts);
	char *at = (char *)&node->links[cache->n_indexes];

	node->key = copy_text(&at, key);
	node->entry.name = node->key + strlen(ns) + 1;
	node->entry.ns = copy_text(&at, ns);
	node->entry.uid = copy_text(&at, uid);
	node->entry.resource_version = copy_text(&at, version);
	if (cache->options.keep_docs)
		node->entry.doc = cache->options.trim != NULL
					  ? cache->options.trim(cache->options.arg, doc)
					  : hf_doc_ref(doc);
	node->entry.view = view;
	node->version = parse_version(version);
	return node;
}

static void free_view(const struct hf_cache *cache, void *view)
{
	if (view != NULL && cache->options.view_free != NULL)
		cache->options.view_free(view);
}

static void free_node(const struct hf_cache *cache, struct node *node)
{
	hf_doc_unref(node->entry.doc);
	free_view(cache, node->entry.view);
	free(node);
}

static void add_to_indexes(struct hf_cache *cache, struct node *node)
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
			/* An index has at most one key for each node, so a chain always fits. */
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

static void remove_from_indexes(struct hf_cache *cache, struct node *node)
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
			hf_map_remove(cache->indexes[i], chain->key); /* frees the chain */
	}
}

static void remove_node(struct hf_cache *cache, struct node *node)
{
	remove_from_indexes(cache, node);
	hf_map_remove(cache->nodes, node->key);
	report_change(cache, HF_CACHE_DELETED, node, NULL);
	free_node(cache, node);
}

static void put_node(struct hf_cache *cache, struct node *old, struct node *node)
{
	if (old != NULL && node->list_round < old->list_round)
		node->list_round = old->list_round;
	/* An object with another UID is another object, so report the deletion of the old object
	 * first. */
	if (old != NULL && !hf_streq(old->entry.uid, node->entry.uid)) {
		remove_node(cache, old);
		old = NULL;
	}
	if (old != NULL)
		remove_from_indexes(cache, old);
	if (!hf_map_put(cache->nodes, node->key, node)) {
		hf_assert(old == NULL);
		free_node(cache, node);
		if (!cache->full)
			report_problem(cache, HF_E_TOO_LARGE,
				       "the cache is full: objects are missing");
		cache->full = true;
		return;
	}
	add_to_indexes(cache, node);
	report_change(cache, old == NULL ? HF_CACHE_ADDED : HF_CACHE_UPDATED, old, node);
	if (old != NULL)
		free_node(cache, old);
}

/* Puts an object into the cache without comparing versions. round is the number of the list that
 * contains the object; 0: it comes from a watch or a reply. */
static void put_object(struct hf_cache *cache, const char *key, struct hf_doc *doc, uintptr_t round)
{
	struct node *old = hf_map_get(cache->nodes, key);
	void *view = NULL;

	if (cache->options.decode != NULL) {
		view = cache->options.decode(cache->options.arg, doc);
		if (view == NULL) {
			if (old != NULL)
				remove_node(cache, old);
			return;
		}
	}
	struct node *node = create_node(cache, key, doc, view);

	node->list_round = round;
	put_node(cache, old, node);
}

/* Puts a version of an object into the cache, unless the version is stale; returns false for a
 * stale version. round is the number of the list that contains the object, or 0 if the object
 * comes from a watch or a reply. */
static bool upsert_object(struct hf_cache *cache, struct hf_doc *doc, uintptr_t round)
{
	uint64_t version = parse_version(hf_doc_resource_version(doc));
	struct node *old;
	char key[KEY_MAX];

	if (!make_key(key, hf_doc_namespace(doc), hf_doc_name(doc)))
		return false;
	old = hf_map_get(cache->nodes, key);
	if (old != NULL && round > 0)
		old->list_round = round;
	if (hf_map_has(cache->gone, hf_doc_uid(doc)) ||
	    (old != NULL && version != VERSION_UNKNOWN && version <= old->version)) {
		cache->stats.stale++;
		return false;
	}
	put_object(cache, key, doc, round);
	return true;
}

static void delete_object(struct hf_cache *cache, struct hf_doc *doc)
{
	struct node *node = find_node(cache, hf_doc_namespace(doc), hf_doc_name(doc));
	const char *uid = hf_doc_uid(doc);

	hf_map_remove(cache->gone, uid);
	if (node != NULL && hf_streq(node->entry.uid, uid))
		remove_node(cache, node);
}

/* --- list --- */

static void retry_later(struct hf_cache *cache, hf_time at_least)
{
	hf_time delay = hf_backoff_next(&cache->backoff, &cache->rng);

	hf_timer_arm(cache->retry_timer, delay > at_least ? delay : at_least);
}

static void forget_list(struct hf_cache *cache)
{
	set_string(&cache->continue_token, NULL);
	set_string(&cache->list_version, NULL);
	cache->pages = 0;
}

/* Removes every object that the complete list does not contain, unless the object is newer than
 * the list. */
static void sweep_unlisted(struct hf_cache *cache)
{
	uint64_t version = parse_version(cache->list_version);
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(cache->nodes, &it, &key, &value);) {
		struct node *node = value;
		bool younger = version != VERSION_UNKNOWN && node->version > version;

		if (node->list_round != cache->round && !younger)
			remove_node(cache, node);
	}
	for (size_t it = 0; hf_map_next(cache->gone, &it, &key, &value);)
		if ((uintptr_t)value < cache->round)
			hf_map_remove(cache->gone, key);
}

static void finish_list(struct hf_cache *cache)
{
	sweep_unlisted(cache);
	advance_position(cache, cache->list_version);
	free(cache->version);
	cache->version = hf_steal(&cache->list_version);
	forget_list(cache);
	if (cache->watch == NULL)
		start_watch(cache);
	if (!cache->synced) {
		cache->synced = true;
		report_change(cache, HF_CACHE_SYNCED, NULL, NULL);
	}
}

/* Handles a list that makes no progress: reports it, and waits before the next request. Without the
 * wait the cache would repeat requests as fast as the server answers. */
static void report_stuck_list(struct hf_cache *cache, const char *why)
{
	cache->stats.errors++;
	report_problem(cache, HF_E_BAD_REQUEST, why);
	retry_later(cache, 0);
}

static int64_t page_limit(const struct hf_cache *cache)
{
	return cache->options.page_limit > 0 ? cache->options.page_limit : PAGE_LIMIT;
}

/* Asks for the page after this reply, with the reply's continue token. */
static void read_next_page(struct hf_cache *cache, const struct hf_reply *reply)
{
	bool same = hf_streq(cache->continue_token, reply->continue_token);
	size_t fill = cache->options.entries_max / (size_t)page_limit(cache) + 1;

	if (same || ++cache->pages >= LIST_FILLS_MAX * fill) {
		forget_list(cache);
		report_stuck_list(cache,
				  same ? "the server's list does not end: its continue token leads "
					 "to the same page again"
				       : "the server's list does not end: ten times the pages of a "
					 "full cache were read");
		return;
	}
	set_string(&cache->continue_token, reply->continue_token);
	/* An empty page may be followed by the last one, so the list goes on, but after a delay. */
	if (reply->n_items == 0)
		report_stuck_list(
			cache, "a page of the server's list is empty, but announces another page");
	else
		request_page(cache);
}

static void on_list_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_cache *cache = arg;

	cache->call = NULL;
	if (cache->options.heard != NULL)
		cache->options.heard(cache->options.arg, reply);
	if (reply->code != 0) {
		cache->stats.errors++;
		report_problem(cache, reply->code, reply->message);
		/* A token that is too old cannot be used again. After any other error, ask for
		 * the same page again. */
		if (reply->code == HF_E_GONE)
			forget_list(cache);
		retry_later(cache, reply->retry_after);
		return;
	}
	if (cache->list_version == NULL)
		set_string(&cache->list_version, reply->resource_version);
	for (size_t i = 0; i < reply->n_items; i++)
		upsert_object(cache, reply->items[i], cache->round);
	if (hf_str_is_empty(reply->continue_token)) {
		finish_list(cache);
		return;
	}
	read_next_page(cache, reply);
}

static void request_page(struct hf_cache *cache)
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
	cache->call = hf_store_request(options->store, &request, on_list_reply, cache);
}

/* --- watch --- */

static void close_watch(struct hf_cache *cache)
{
	cache->streaming = false;
	cache->watch = hf_watch_stop(cache->watch);
	hf_timer_disarm(cache->idle_timer);
}

static void arm_idle_timer(struct hf_cache *cache)
{
	hf_time idle = cache->options.idle_max;

	hf_timer_arm(cache->idle_timer, idle > 0 ? idle : IDLE_MAX);
}

static void handle_watch_end(struct hf_cache *cache, const struct hf_event *event)
{
	hf_time lasted = hf_loop_mono(cache->options.loop) - cache->watch_since;
	int code = event->code;

	close_watch(cache);
	if (code != 0) {
		cache->stats.errors++;
		report_problem(cache, code, event->message);
	}
	if (code == HF_E_GONE)
		set_string(&cache->version, NULL);
	bool progress = lasted >= WATCH_SHORT || (code == 0 && cache->watch_progress);

	if ((code == 0 || code == HF_E_GONE) && progress && event->retry_after <= 0)
		hf_timer_arm(cache->retry_timer, 0);
	else
		retry_later(cache, event->retry_after);
}

static void handle_stream_end(struct hf_cache *cache, const struct hf_event *event)
{
	close_watch(cache);
	/* The server cannot stream lists, so read the list in pages, without a delay. */
	if (event->code == HF_E_INVALID && !hf_store_can_stream_lists(cache->options.store)) {
		hf_timer_arm(cache->retry_timer, 0);
		return;
	}
	cache->stats.errors++;
	report_problem(cache, event->code,
		       event->code == 0 ? "the list ended before it was complete" : event->message);
	retry_later(cache, event->retry_after);
}

/* Handles an event of a streamed list, before all initial objects have come. The cache's position
 * does not change yet: a watch cannot be resumed from the version of one initial object. */
static void handle_stream_event(struct hf_cache *cache, const struct hf_event *event)
{
	switch (event->type) {
	case HF_EVENT_ENDED: handle_stream_end(cache, event); return;
	case HF_EVENT_DELETED: delete_object(cache, event->object); break;
	case HF_EVENT_ADDED:
	case HF_EVENT_MODIFIED: upsert_object(cache, event->object, cache->round); break;
	case HF_EVENT_BOOKMARK:
		if (event->initial_end) {
			cache->streaming = false;
			hf_backoff_reset(&cache->backoff);
			set_string(&cache->list_version, event->resource_version);
			finish_list(cache);
		}
		break;
	}
	cache->stats.events++;
	arm_idle_timer(cache);
}

static void on_watch_event(void *arg, const struct hf_event *event)
{
	struct hf_cache *cache = arg;

	if (cache->streaming) {
		handle_stream_event(cache, event);
		return;
	}
	if (event->type == HF_EVENT_ENDED) {
		handle_watch_end(cache, event);
		return;
	}
	cache->stats.events++;
	cache->watch_progress = true;
	hf_backoff_reset(&cache->backoff);
	arm_idle_timer(cache);
	if (event->type == HF_EVENT_DELETED)
		delete_object(cache, event->object);
	else if (event->type != HF_EVENT_BOOKMARK)
		upsert_object(cache, event->object, 0);
	if (!hf_str_is_empty(event->resource_version)) {
		set_string(&cache->version, event->resource_version);
		advance_position(cache, event->resource_version);
	}
}

static void start_stream(struct hf_cache *cache)
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
	cache->watch_progress = false;
	arm_idle_timer(cache);
	cache->watch = hf_store_watch(options->store, &watch, on_watch_event, cache);
}

static void start_watch(struct hf_cache *cache)
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
	cache->watch_progress = false;
	arm_idle_timer(cache);
	cache->watch = hf_store_watch(options->store, &watch, on_watch_event, cache);
}

static void on_watch_idle(void *arg)
{
	struct hf_cache *cache = arg;

	cache->stats.hung++;
	close_watch(cache);
	start_next(cache);
}

static void start_next(void *arg)
{
	struct hf_cache *cache = arg;

	if (cache->version != NULL)
		start_watch(cache);
	else if (cache->continue_token == NULL && hf_store_can_stream_lists(cache->options.store))
		start_stream(cache);
	else
		request_page(cache);
}

/* --- creation and destruction --- */

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
	cache->retry_timer = hf_timer_create(options->loop, start_next, cache);
	cache->idle_timer = hf_timer_create(options->loop, on_watch_idle, cache);
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
		free_node(cache, value);
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
	struct node *node = find_node(cache, ns, name);

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

/* True if the cache holds an older version of the reply's object. Then the watch has lost the event
 * of the newer version. */
static bool is_held_older(const struct hf_cache *cache, struct hf_doc *doc, uint64_t version)
{
	const struct node *held = find_node(cache, hf_doc_namespace(doc), hf_doc_name(doc));

	return held != NULL && hf_streq(held->entry.uid, hf_doc_uid(doc)) &&
	       held->version != VERSION_UNKNOWN && held->version < version;
}

bool hf_cache_put_reply(struct hf_cache *cache, struct hf_doc *doc)
{
	uint64_t version = parse_version(hf_doc_resource_version(doc));

	/* A reply without a version cannot be compared with the cache: wait for the watch event. */
	if (version == VERSION_UNKNOWN ||
	    (version <= cache->position && !is_held_older(cache, doc, version))) {
		cache->stats.stale++;
		return false;
	}
	return upsert_object(cache, doc, 0);
}

static bool is_same_text(struct hf_doc *one, struct hf_doc *other)
{
	size_t len, other_len;
	const char *text = hf_doc_text(one, &len), *other_text = hf_doc_text(other, &other_len);

	return len == other_len && memcmp(text, other_text, len) == 0;
}

bool hf_cache_put_live(struct hf_cache *cache, struct hf_doc *doc)
{
	struct node *held = find_node(cache, hf_doc_namespace(doc), hf_doc_name(doc));
	char key[KEY_MAX];

	/* The live text replaces an entry only if both have the same UID and version. Else the
	 * document is handled as a reply. */
	if (held == NULL || !hf_streq(held->entry.uid, hf_doc_uid(doc)) ||
	    !hf_streq(held->entry.resource_version, hf_doc_resource_version(doc)) ||
	    !make_key(key, held->entry.ns, held->entry.name))
		return hf_cache_put_reply(cache, doc);
	/* If the text did not change, report no change. A caller that reads the object after each
	 * change would otherwise never stop. */
	if (held->entry.doc == NULL || !is_same_text(held->entry.doc, doc))
		put_object(cache, key, doc, held->list_round);
	return true;
}

void hf_cache_put_gone(struct hf_cache *cache, const char *ns, const char *name, const char *uid)
{
	struct node *node = find_node(cache, ns, name);
	const char *oldest;
	void *value;
	size_t it = 0;

	/* If the cache does not hold the object, the watch has reported its deletion already. So no
	 * late event can bring the object back, and its UID need not be remembered. */
	if (node == NULL || !hf_streq(node->entry.uid, uid))
		return;
	if (hf_map_len(cache->gone) == HF_CACHE_GONE_MAX &&
	    hf_map_next(cache->gone, &it, &oldest, &value))
		hf_map_remove(cache->gone, oldest);
	bool put = hf_map_put(cache->gone, node->entry.uid, (void *)cache->round);

	hf_assert(put);
	remove_node(cache, node);
}
