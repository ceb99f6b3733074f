/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/memstore_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Watches. A watch is a position in the history of its kind and costs nothing while nothing
 * changes. If history overwrites the position of a slow watch, the watch ends with HF_E_GONE, as on
 * an API server. A watch without a resourceVersion first delivers the objects that exist when its
 * turn comes.
 *
 * hf_memstore_watches_pump runs after each commit and delivers at most HF_MEMSTORE_EVENTS_PER_TURN events
 * per watch. A callback may stop any watch, its own too.
 */
struct memstore_watch {
	struct hf_watch base;
	struct memstore_client *client;
	struct hf_kind *kind;
	/* The options of the caller. ns is a copy; the other strings are NULL, because the caller
	 * may free them. */
	struct hf_watch_options options;
	struct hf_selector *labels, *fields;
	hf_event_fn fn;
	void *arg;

	/* the objects that the watch delivers first; NULL: all are delivered */
	struct hf_doc **initial;
	size_t n_initial, at_initial;
	uint64_t initial_version;
	/* Sequence number, in the kind's history, of the next change to look at. */
	uint64_t seq;
	uint64_t reported; /* resourceVersion of the last event or bookmark that was delivered */

	int end_code; /* valid if ending */
	char *end_message;
	/* true: the watch has to deliver the existing objects first, and has not yet put them into
	 * `initial` */
	bool needs_initial;
	bool ending, ended, stopped, busy;
	/* true: the client's fault hook has already been asked about the change number seq */
	bool fault_asked;
	/* The event that is delayed, and all events after it, wait until this time (monotonic
	 * clock). */
	hf_time not_before;
	struct hf_timer *timeout, *delay;

	struct memstore_watch *prev, *next;           /* of the client's list */
	struct memstore_watch *kind_prev, *kind_next; /* of the kind's list, oldest first */
};

/* An event made of a change. */
struct found_event {
	struct hf_event event;
	/* the object of the event, if a copy was made for this event; else NULL */
	struct hf_doc *owned;
	char version[24];
};

static void wake_watch(struct memstore_watch *w)
{
	w->kind->wake = true;
	hf_memstore_wake(w->client->memstore);
}

static void set_ending(struct memstore_watch *w, int code, const char *message)
{
	if (w->ending)
		return;
	w->ending = true;
	w->end_code = code;
	w->end_message = hf_xstrdup(message);
	wake_watch(w);
}

/* --- lists; the kind's list has the oldest watch first --- */

static void link_watch(struct memstore_watch *w)
{
	struct hf_kind *kind = w->kind;

	w->kind_prev = kind->watch_last;
	*(kind->watch_last ? &kind->watch_last->kind_next : &kind->watch_first) = w;
	kind->watch_last = w;
	w->next = w->client->watches;
	if (w->next)
		w->next->prev = w;
	w->client->watches = w;
	w->client->memstore->n_watches++;
	w->client->memstore->n_bookmark_watches += w->options.bookmarks;
}

static void unlink_watch(struct memstore_watch *w)
{
	struct hf_kind *kind = w->kind;

	if (kind->watch_cursor == w)
		kind->watch_cursor = w->kind_next;
	*(w->kind_prev ? &w->kind_prev->kind_next : &kind->watch_first) = w->kind_next;
	*(w->kind_next ? &w->kind_next->kind_prev : &kind->watch_last) = w->kind_prev;
	*(w->prev ? &w->prev->next : &w->client->watches) = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->client->memstore->n_watches--;
	w->client->memstore->n_bookmark_watches -= w->options.bookmarks;
	w->client = NULL;
	w->kind = NULL;
	w->timeout = hf_timer_destroy(w->timeout);
	w->delay = hf_timer_destroy(w->delay);
}

static void drop_initial(struct memstore_watch *w)
{
	for (size_t i = w->at_initial; i < w->n_initial; i++)
		hf_doc_unref(w->initial[i]);
	free(w->initial);
	w->initial = NULL;
	w->n_initial = w->at_initial = 0;
}

static void free_own_string(const char *s)
{
	union {
		const char *given;
		char *owned;
	} u = {.given = s};

	free(u.owned);
}

static void watch_free(struct memstore_watch *w)
{
	drop_initial(w);
	hf_selector_destroy(w->labels);
	hf_selector_destroy(w->fields);
	free(w->end_message);
	free_own_string(w->options.ns);
	free(w);
}

/* --- from a change to an event --- */

static bool is_selected(const struct memstore_watch *w, struct hf_doc *doc)
{
	if (!doc || (w->options.ns && !hf_streq(hf_doc_namespace(doc), w->options.ns)))
		return false;
	const struct hf_json *object = hf_doc_json(doc);
	return hf_selector_match_labels(w->labels,
					hf_json_path(object, "metadata", "labels", NULL)) &&
	       hf_selector_match_fields(w->fields, object);
}

/* Returns a copy of the object with the resourceVersion of the change by which the object left the
 * watch's selection. */
static struct hf_doc *at_version(struct hf_doc *doc, const char *version)
{
	struct hf_json *object = hf_json_shallow(hf_doc_json(doc));
	struct hf_json *meta = hf_json_shallow(hf_json_get(object, "metadata"));

	hf_json_set_str(meta, "resourceVersion", version);
	hf_json_set(object, "metadata", meta);
	return hf_doc_from_json(object);
}

/* Makes the event for a change. False: the watch selects neither the old nor the new version of
 * the object. */
static bool translate_change(const struct memstore_watch *w, const struct hf_change *c,
			     struct found_event *f)
{
	bool now = is_selected(w, c->after), before = is_selected(w, c->before.doc);

	if (!now && !before)
		return false;
	snprintf(f->version, sizeof(f->version), "%" PRIu64, c->version);
	f->event = (struct hf_event){.type = !before ? HF_EVENT_ADDED
					     : now   ? HF_EVENT_MODIFIED
						     : HF_EVENT_DELETED,
				     .object = c->after,
				     .resource_version = f->version,
				     .message = ""};
	if (now)
		return true;
	f->event.object = c->last;
	if (!c->last)
		f->event.object = f->owned = at_version(c->before.doc, f->version);
	return true;
}

/* --- delivery --- */

/* Calls the watch's callback with an event. False: the callback stopped the watch, which is then
 * freed. */
static bool call_back(struct memstore_watch *w, const struct hf_event *event)
{
	w->busy = true;
	w->fn(w->arg, event);
	w->busy = false;
	if (w->stopped) {
		watch_free(w);
		return false;
	}
	return true;
}

static bool deliver_end(struct memstore_watch *w)
{
	const struct hf_event event = {.type = HF_EVENT_ENDED,
				       .resource_version = "",
				       .code = w->end_code,
				       .message = w->end_message};

	w->ended = true;
	drop_initial(w);
	return call_back(w, &event);
}

static void on_delay(void *arg)
{
	wake_watch(arg);
}

enum verdict { DELIVER, SKIP, WAIT };

/* Asks the client's fault hook, once per event, whether to deliver, skip or delay it, or to end the
 * watch. */
static enum verdict ask_fault(struct memstore_watch *w, const struct hf_event *event,
			      bool *ret_twice)
{
	const struct hf_memstore_faults *faults = &w->client->faults;
	hf_time now = hf_loop_mono(w->client->memstore->loop);
	struct hf_event_fault fault = {0};

	if (w->fault_asked) {
		if (now < w->not_before)
			return WAIT;
		w->fault_asked = false;
		return DELIVER;
	}
	if (faults->event)
		faults->event(faults->arg, &w->options, event, &fault);
	*ret_twice = fault.duplicate;
	if (fault.end) {
		set_ending(w, fault.end, "the connection broke");
		return WAIT;
	}
	if (fault.drop)
		return SKIP;
	if (fault.delay <= 0)
		return DELIVER;
	w->fault_asked = true;
	w->not_before = hf_time_add(now, fault.delay);
	if (!w->delay)
		w->delay = hf_timer_create(w->client->memstore->loop, on_delay, w);
	hf_timer_arm(w->delay, fault.delay);
	return WAIT;
}

enum step { STEP_MORE, STEP_IDLE, STEP_GONE };

/* Delivers one of the objects that existed when the watch began. */
static enum step step_initial(struct memstore_watch *w)
{
	struct hf_doc *doc = w->initial[w->at_initial];
	const struct hf_event event = {.type = HF_EVENT_ADDED,
				       .object = doc,
				       .resource_version = hf_doc_resource_version(doc),
				       .message = ""};
	bool twice = false;
	enum verdict verdict = ask_fault(w, &event, &twice);

	if (verdict == WAIT)
		return w->ending ? STEP_MORE : STEP_IDLE;
	w->at_initial++;
	bool alive = true;
	for (int i = 0; alive && verdict == DELIVER && i < 1 + twice; i++)
		alive = call_back(w, &event);
	hf_doc_unref(doc);
	if (!alive)
		return STEP_GONE;
	if (w->at_initial == w->n_initial) {
		drop_initial(w);
		w->reported = w->initial_version;
	}
	return STEP_MORE;
}

static enum step step_change(struct memstore_watch *w)
{
	const struct hf_history *history = &w->kind->history;
	const struct hf_change *c = hf_history_at(history, w->seq);
	struct found_event f = {0};
	bool twice = false;

	if (!c) {
		if (w->seq >= history->first)
			return STEP_IDLE;
		set_ending(w, HF_E_GONE, "too old resource version: the watch could not keep up");
		return STEP_MORE;
	}
	if (!translate_change(w, c, &f)) {
		w->seq++;
		return STEP_MORE;
	}
	enum verdict verdict = ask_fault(w, &f.event, &twice);
	if (verdict == WAIT) {
		hf_doc_unref(f.owned);
		return w->ending ? STEP_MORE : STEP_IDLE;
	}
	w->seq++;
	w->reported = c->version;
	/* Keep a reference to the object while the callback runs, because the callback may change
	 * the store. */
	HF_AUTO_DOC held = hf_doc_ref(f.event.object);
	bool alive = true;
	for (int i = 0; alive && verdict == DELIVER && i < 1 + twice; i++)
		alive = call_back(w, &f.event);
	hf_doc_unref(f.owned);
	return alive ? STEP_MORE : STEP_GONE;
}

/* Collects the objects that the watch delivers first. All changes must be committed before: an
 * uncommitted object could be undone after its event. */
static void take_initial(struct memstore_watch *w)
{
	const struct hf_engine *engine = w->client->memstore->engine;
	const struct hf_kind *kind = w->kind;

	w->needs_initial = false;
	w->seq = kind->history.first + kind->history.len;
	w->initial_version = w->reported = engine->version;
	w->initial = hf_xcalloc(kind->entries.len + 1, sizeof(struct hf_doc *));
	for (size_t i = 0; i < kind->entries.len; i++)
		if (is_selected(w, kind->entries.items[i]->doc))
			w->initial[w->n_initial++] = hf_doc_ref(kind->entries.items[i]->doc);
	if (w->n_initial == 0)
		drop_initial(w);
}

static enum step step_begin(struct memstore_watch *w)
{
	if (w->client->memstore->engine->pending.len > 0) {
		wake_watch(w);
		return STEP_IDLE;
	}
	take_initial(w);
	return STEP_MORE;
}

static enum step step_watch(struct memstore_watch *w)
{
	if (w->ended || !w->client || w->client->paused)
		return STEP_IDLE;
	if (w->ending)
		return deliver_end(w) ? STEP_IDLE : STEP_GONE;
	if (w->needs_initial)
		return step_begin(w);
	return w->initial ? step_initial(w) : step_change(w);
}

static void pump_kind(struct hf_memstore *memstore, struct hf_kind *kind)
{
	kind->wake = false;
	for (struct memstore_watch *w = kind->watch_first; w; w = kind->watch_cursor) {
		enum step at = STEP_MORE;
		kind->watch_cursor = w->kind_next;
		for (int i = 0; at == STEP_MORE && i < HF_MEMSTORE_EVENTS_PER_TURN; i++)
			at = step_watch(w);
		if (at == STEP_MORE) {
			kind->wake = true;
			hf_memstore_wake(memstore);
		}
	}
}

void hf_memstore_watches_pump(struct hf_memstore *memstore)
{
	for (size_t i = 0; i < memstore->engine->n_kinds; i++)
		if (memstore->engine->kinds[i].wake)
			pump_kind(memstore, &memstore->engine->kinds[i]);
}

/* --- bookmarks --- */

static void send_bookmark(struct memstore_watch *w, uint64_t version)
{
	char text[24], api_version[HF_API_VERSION_MAX];
	struct hf_json *object = hf_json_object();

	snprintf(text, sizeof(text), "%" PRIu64, version);
	hf_json_set_str(object, "kind", w->kind->resource->kind);
	hf_json_set_str(object, "apiVersion",
			hf_resource_api_version(w->kind->resource, api_version));
	struct hf_json *meta = hf_json_ensure_object(object, "metadata");
	hf_json_set_str(meta, "resourceVersion", text);
	hf_json_set(meta, "creationTimestamp", hf_json_null());
	HF_AUTO_DOC doc = hf_doc_from_json(object);
	const struct hf_event event = {
		.type = HF_EVENT_BOOKMARK, .object = doc, .resource_version = text, .message = ""};
	w->reported = version;
	call_back(w, &event);
}

static bool wants_bookmark(const struct memstore_watch *w, uint64_t version)
{
	return w->options.bookmarks && !w->client->paused && w->reported < version &&
	       !w->needs_initial && !w->initial && !w->ending && !w->fault_asked &&
	       !hf_history_at(&w->kind->history, w->seq);
}

/* Runs when the bookmark timer fires. Sends a bookmark to each watch that has delivered all events
 * and has not reported the committed version yet. */
void hf_memstore_watches_bookmark(void *arg)
{
	struct hf_memstore *memstore = arg;
	uint64_t version = memstore->engine->committed;

	for (size_t i = 0; i < memstore->engine->n_kinds; i++) {
		struct hf_kind *kind = &memstore->engine->kinds[i];
		for (struct memstore_watch *w = kind->watch_first; w; w = kind->watch_cursor) {
			kind->watch_cursor = w->kind_next;
			if (wants_bookmark(w, version))
				send_bookmark(w, version);
		}
	}
}

/* --- the interface --- */

static void on_timeout(void *arg)
{
	set_ending(arg, HF_OK, "");
}

static void set_position(struct memstore_watch *w)
{
	const struct hf_history *history = &w->kind->history;
	const struct hf_engine *engine = w->client->memstore->engine;
	const char *text = w->options.resource_version;
	int64_t version;

	if (hf_str_is_empty(text) || hf_streq(text, "0")) {
		w->needs_initial = true;
		return;
	}
	if (hf_str_to_i64(text, 0, INT64_MAX, &version, NULL)) {
		set_ending(w, HF_E_BAD_REQUEST, "resourceVersion is not valid");
	} else if ((uint64_t)version < history->oldest || (uint64_t)version > engine->version) {
		char why[96];
		snprintf(why, sizeof(why), "too old resource version: %" PRId64 " (%" PRIu64 ")",
			 version, history->oldest);
		set_ending(w, HF_E_GONE, why);
	} else {
		w->seq = hf_history_after(history, (uint64_t)version);
		w->reported = (uint64_t)version;
	}
}

static int parse_selectors(struct memstore_watch *w, const struct hf_watch_options *options,
			   struct hf_error *err)
{
	int rc = hf_watch_options_check(options, err);

	if (rc == 0)
		rc = hf_selector_parse_labels(options->label_selector, &w->labels, err);
	if (rc == 0)
		rc = hf_selector_parse_fields(options->field_selector, w->kind->info->fields,
					      &w->fields, err);
	return rc;
}

struct hf_watch *hf_memstore_watch_start(struct hf_store *store,
					 const struct hf_watch_options *options, hf_event_fn fn,
					 void *arg)
{
	struct memstore_client *client = (struct memstore_client *)store;
	struct hf_memstore *memstore = client->memstore;
	struct memstore_watch *w = hf_xcalloc(1, sizeof(*w));
	struct hf_error err = {0};

	w->base.ops = store->ops;
	w->client = client;
	w->kind = hf_engine_kind(memstore->engine, options->resource);
	w->fn = fn;
	w->arg = arg;
	/* A watch of an unknown kind ends with an ENDED event. Until then it must be in the list
	 * of some kind, so the first kind is used. */
	bool unknown = !w->kind;
	if (unknown)
		w->kind = &memstore->engine->kinds[0];
	w->options = *options;
	w->options.ns = options->ns ? hf_xstrdup(options->ns) : NULL;
	link_watch(w);
	int rc = unknown ? 0 : parse_selectors(w, options, &err);
	if (unknown)
		set_ending(w, HF_E_NOT_FOUND, "the server could not find the requested resource");
	else if (rc)
		set_ending(w, rc, err.text);
	else if (memstore->n_watches > HF_MEMSTORE_WATCHES_MAX)
		set_ending(w, HF_E_TOO_MANY, "too many watches");
	else
		set_position(w);
	/* Drop these strings of the caller, because the caller may free them: selectors and
	 * version have been parsed. */
	w->options.label_selector = w->options.field_selector = w->options.resource_version = NULL;
	if (options->bookmarks && !hf_timer_armed(memstore->bookmark))
		hf_timer_arm(memstore->bookmark, memstore->bookmark_every);
	if (options->timeout > 0) {
		w->timeout = hf_timer_create(memstore->loop, on_timeout, w);
		hf_timer_arm(w->timeout, options->timeout);
	}
	wake_watch(w);
	return &w->base;
}

void hf_memstore_watch_stop(struct hf_watch *base)
{
	struct memstore_watch *w = (struct memstore_watch *)base;

	hf_assert(!w->stopped);
	if (w->client)
		unlink_watch(w);
	w->stopped = true;
	if (!w->busy)
		watch_free(w);
}

void hf_memstore_client_break_watches(struct hf_store *store, int code, const char *message)
{
	struct memstore_client *client = (struct memstore_client *)store;

	for (struct memstore_watch *w = client->watches; w; w = w->next)
		if (!w->ended)
			set_ending(w, code, message);
}

void hf_memstore_watches_wake(struct memstore_client *client)
{
	for (struct memstore_watch *w = client->watches; w; w = w->next)
		wake_watch(w);
}

/* Ends the client's watches. It does not free them, because their owners hold them until they call
 * hf_watch_stop. */
void hf_memstore_watches_cancel(struct memstore_client *client)
{
	const struct hf_event event = {.type = HF_EVENT_ENDED,
				       .resource_version = "",
				       .code = HF_E_CANCELED,
				       .message = "the store was closed"};

	while (client->watches) {
		struct memstore_watch *w = client->watches;
		bool outer = w->busy;
		unlink_watch(w);
		drop_initial(w);
		if (w->ended)
			continue;
		w->ended = true;
		w->busy = true;
		w->fn(w->arg, &event);
		w->busy = outer;
		if (w->stopped && !outer)
			watch_free(w);
	}
}
