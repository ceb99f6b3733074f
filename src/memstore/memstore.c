/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/memstore_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

/*
 * The store on a loop: turns, commits, observers, and the calls of in-process controllers.
 *
 * A turn is one posted task (run_turn): it applies the waiting requests, commits once, tells
 * observers, answers, and feeds the watches. Nothing is reported before it is committed. A failed
 * commit is undone in memory, and observers get reset.
 */

#define OBSERVERS_MAX 64

/* --- a turn --- */

void hf_local_wake(struct hf_local *local)
{
	hf_task_post(local->turn);
}

static void notify_change(void *arg, struct hf_change *c)
{
	struct hf_local *local = arg;
	struct hf_local_change change = {
		.resource = c->kind->resource,
		.before = c->before.doc,
		.after = c->after,
		.version = c->version,
	};

	for (size_t i = 0; i < local->observers.len; i++)
		local->observers.items[i]->changed(local->observers.items[i]->arg, &change);
}

static void notify_reset(struct hf_local *local)
{
	for (size_t i = 0; i < local->observers.len; i++)
		local->observers.items[i]->reset(local->observers.items[i]->arg);
}

/* Records the result of a commit. on_health hears of a change only, not of each failure. */
static void set_health(struct hf_local *local, const struct hf_error *why)
{
	int before = local->health.code;

	local->health = why ? *why : (struct hf_error){0};
	if (local->on_health && before != local->health.code)
		local->on_health(local->health_arg, why);
}

int hf_local_commit(struct hf_local *local, struct hf_error *err)
{
	struct hf_error why = {0};

	if (local->engine->pending.len == 0)
		return 0;
	if (local->sqlite && hf_sqlite_commit(local->sqlite, local->engine, &why)) {
		set_health(local, &why);
		hf_engine_undo(local->engine);
		notify_reset(local);
		return hf_error_set(err, why.code, "%s", why.text);
	}
	set_health(local, NULL);
	hf_engine_commit(local->engine, notify_change, local);
	if (local->n_bookmark_watches > 0 && !hf_timer_armed(local->bookmark))
		hf_timer_arm(local->bookmark, local->bookmark_every);
	return 0;
}

/* Removes expired Events. The timer is armed only while the store has Events. */
static void expire_events(void *arg)
{
	struct hf_local *local = arg;

	hf_engine_expire(local->engine);
	hf_local_wake(local);
}

static void arm_expiry(struct hf_local *local)
{
	const struct hf_kind *kind = hf_engine_kind(local->engine, &hf_events);

	if (!kind->oldest || hf_timer_armed(local->expiry))
		return;
	hf_time due = hf_time_add(kind->oldest->written_at, local->engine->env.event_ttl);
	hf_time now = hf_loop_wall(local->loop);
	/* The delay is at least 1 s, so that one run removes all Events of a second. */
	hf_timer_arm(local->expiry, due > now + HF_SECOND ? due - now : HF_SECOND);
}

static void run_turn(void *arg)
{
	struct hf_local *local = arg;

	hf_local_calls_turn(local);
	hf_local_watches_pump(local);
	arm_expiry(local);
	if (local->queue_first || local->engine->pending.len > 0)
		hf_local_wake(local);
}

/* --- birth and end --- */

static hf_time read_wall_clock(void *loop)
{
	return hf_loop_wall(loop);
}

static void kernel_random(void *arg, void *bytes, size_t len)
{
	/* getrandom does not fail for so few bytes after boot. */
	hf_assert(hf_random_bytes(bytes, len, NULL) == 0);
}

static size_t or_default(size_t value, size_t fallback)
{
	return value ? value : fallback;
}

static int make_namespace(struct hf_local *local, const char *name, struct hf_error *err)
{
	struct hf_json *object = hf_json_object();
	HF_AUTO_RESULT result = {0};

	hf_json_set_str(object, "apiVersion", "v1");
	hf_json_set_str(object, "kind", "Namespace");
	struct hf_json *meta = hf_json_ensure_object(object, "metadata");
	hf_json_set_str(meta, "name", name);

	HF_AUTO_DOC body = hf_doc_from_json(object);
	struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = &hf_namespaces, .body = body};
	hf_engine_apply(local->engine, &request, &result);
	if (result.code == 0 || result.code == HF_E_EXISTS)
		return 0;
	return hf_error_set(err, result.code, "%s", result.err.text);
}

static int prepare_store(struct hf_local *local, const char *data_dir, struct hf_error *err)
{
	static const char *const namespaces[] = {"default", "kube-public", "kube-system"};
	int rc = 0;

	if (data_dir)
		rc = hf_sqlite_open(data_dir, local->engine, &local->sqlite, err);
	for (size_t i = 0; rc == 0 && i < HF_ARRAY_LEN(namespaces); i++)
		rc = make_namespace(local, namespaces[i], err);
	if (rc == 0)
		rc = hf_local_commit(local, err);
	return rc;
}

int hf_local_create(struct hf_loop *loop, const struct hf_local_options *options,
		    struct hf_local **ret_local, struct hf_error *err)
{
	struct hf_local *local = hf_xcalloc(1, sizeof(*local));
	struct hf_engine_env env = {
		.now = read_wall_clock,
		.now_arg = loop,
		.random = options->random ? options->random : kernel_random,
		.random_arg = options->random_arg,
		.object_bytes_max =
			or_default(options->object_bytes_max, HF_LOCAL_OBJECT_BYTES_MAX),
		.objects_max = or_default(options->objects_max, HF_LOCAL_OBJECTS_MAX),
		.bytes_max = or_default(options->bytes_max, HF_LOCAL_BYTES_MAX),
		.watch_history = or_default(options->watch_history, HF_LOCAL_WATCH_HISTORY),
		.event_ttl = options->event_ttl ? options->event_ttl : HF_LOCAL_EVENT_TTL,
	};

	local->loop = loop;
	local->engine = hf_engine_create(&env);
	local->turn = hf_task_create(loop, run_turn, local);
	local->expiry = hf_timer_create(loop, expire_events, local);
	local->bookmark = hf_timer_create(loop, hf_local_watches_bookmark, local);
	local->bookmark_every =
		options->bookmark_every ? options->bookmark_every : HF_LOCAL_BOOKMARK_EVERY;
	local->observers.len_max = OBSERVERS_MAX;
	local->own = hf_local_client_new(local, NULL);
	int rc = prepare_store(local, options->data_dir, err);
	local->on_health = options->health;
	local->health_arg = options->health_arg;
	if (rc) {
		hf_engine_undo(local->engine);
		hf_sqlite_abandon(hf_steal(&local->sqlite));
		hf_local_destroy(local);
		return rc;
	}
	arm_expiry(local);
	*ret_local = local;
	return 0;
}

struct hf_local *hf_local_destroy(struct hf_local *local)
{
	if (!local)
		return NULL;
	hf_assert(local->clients == 0);
	local->ending = true;
	hf_local_client_free(local->own);
	hf_assert(local->observers.len == 0);
	/* The waiting requests were canceled above. Writes of in-process controllers are committed
	 * if the disk allows; if not, no reply has acknowledged them. */
	(void)hf_local_commit(local, NULL);
	hf_sqlite_close(local->sqlite);
	hf_task_destroy(local->turn);
	hf_timer_destroy(local->expiry);
	hf_timer_destroy(local->bookmark);
	HF_VEC_RELEASE(&local->observers);
	hf_engine_destroy(local->engine);
	free(local);
	return NULL;
}

/* --- small things --- */

struct hf_loop *hf_local_loop(const struct hf_local *local)
{
	return local->loop;
}

struct hf_store *hf_local_store(struct hf_local *local)
{
	return &local->own->base;
}

int hf_local_health(const struct hf_local *local, struct hf_error *err)
{
	if (local->health.code && err)
		*err = local->health;
	return local->health.code;
}

size_t hf_local_count(const struct hf_local *local, const struct hf_resource *resource)
{
	const struct hf_kind *kind = hf_engine_kind(local->engine, resource);

	return kind ? kind->entries.len : 0;
}

size_t hf_local_bytes(const struct hf_local *local)
{
	return local->engine->bytes;
}

void hf_local_apply(struct hf_local *local, const struct hf_request *request,
		    struct hf_result *ret_result)
{
	hf_engine_apply(local->engine, request, ret_result);
	if (local->engine->pending.len > 0)
		hf_local_wake(local);
}

struct hf_doc *hf_local_peek(struct hf_local *local, const struct hf_resource *resource,
			     const char *ns, const char *name)
{
	const struct hf_kind *kind = hf_engine_kind(local->engine, resource);
	struct hf_entry *entry = kind ? hf_kind_find(kind, ns, name) : NULL;

	return entry ? entry->doc : NULL;
}

void hf_local_each(struct hf_local *local, const struct hf_resource *resource, const char *ns,
		   hf_local_each_fn fn, void *arg)
{
	const struct hf_kind *kind = hf_engine_kind(local->engine, resource);

	if (!kind)
		return;
	for (size_t i = hf_kind_lower_bound(kind, hf_str_or(ns, ""), ""); i < kind->entries.len;
	     i++) {
		struct hf_entry *entry = kind->entries.items[i];
		if (ns && kind->resource->namespaced && !hf_streq(entry->ns, ns))
			break;
		fn(arg, entry->doc);
	}
}

int hf_local_flush(struct hf_local *local, struct hf_error *err)
{
	int rc = hf_local_commit(local, err);

	hf_local_wake(local);
	return rc;
}

void hf_local_observe(struct hf_local *local, const struct hf_local_observer *observer)
{
	hf_assert(observer->changed && observer->reset);
	hf_assert(HF_VEC_PUSH(&local->observers, observer));
}

void hf_local_unobserve(struct hf_local *local, const struct hf_local_observer *observer)
{
	for (size_t i = 0; i < local->observers.len; i++)
		if (local->observers.items[i] == observer) {
			HF_VEC_REMOVE(&local->observers, i);
			return;
		}
}

void hf_local_set_rules(struct hf_local *local, const struct hf_resource *resource,
			const struct hf_local_rules *rules)
{
	struct hf_kind *kind = hf_engine_kind(local->engine, resource);

	hf_assert(kind);
	kind->rules = *rules;
}

void hf_local_set_logs(struct hf_local *local, const struct hf_local_logs *logs)
{
	local->logs = logs ? *logs : (struct hf_local_logs){0};
}
