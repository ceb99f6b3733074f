/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/memstore_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

/*
 * The store on a loop: its creation, its end and its turns.
 *
 * A turn is one posted task (run_turn): it applies the waiting requests, commits once, tells
 * observers, answers, and feeds the watches.
 */

#define OBSERVERS_MAX 64

/* --- a turn --- */

/* Removes expired Events. The timer is armed only while the store has Events. */
static void expire_events(void *arg)
{
	struct hf_memstore *memstore = arg;

	hf_engine_expire(memstore->engine);
	hf_memstore_wake(memstore);
}

static void arm_expiry(struct hf_memstore *memstore)
{
	const struct hf_kind *kind = hf_engine_kind(memstore->engine, &hf_events);

	if (!kind->oldest || hf_timer_armed(memstore->expiry))
		return;
	hf_time due = hf_time_add(kind->oldest->written_at, memstore->engine->env.event_ttl);
	hf_time now = hf_loop_wall(memstore->loop);
	/* The delay is at least 1 s, so that one run removes all Events of a second. */
	hf_timer_arm(memstore->expiry, due > now + HF_SECOND ? due - now : HF_SECOND);
}

static void run_turn(void *arg)
{
	struct hf_memstore *memstore = arg;

	hf_memstore_calls_turn(memstore);
	hf_memstore_watches_pump(memstore);
	arm_expiry(memstore);
	if (memstore->queue_first || memstore->engine->pending.len > 0)
		hf_memstore_wake(memstore);
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

static int make_namespace(struct hf_memstore *memstore, const char *name, struct hf_error *err)
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
	hf_engine_apply(memstore->engine, &request, &result);
	if (result.code == 0 || result.code == HF_E_EXISTS)
		return 0;
	return hf_error_set(err, result.code, "%s", result.err.text);
}

static int prepare_store(struct hf_memstore *memstore, const char *data_dir, struct hf_error *err)
{
	static const char *const namespaces[] = {"default", "kube-public", "kube-system"};
	int rc = 0;

	if (data_dir)
		rc = hf_sqlite_open(data_dir, memstore->engine, &memstore->sqlite, err);
	for (size_t i = 0; rc == 0 && i < HF_ARRAY_LEN(namespaces); i++)
		rc = make_namespace(memstore, namespaces[i], err);
	if (rc == 0)
		rc = hf_memstore_commit(memstore, err);
	return rc;
}

int hf_memstore_create(struct hf_loop *loop, const struct hf_memstore_options *options,
		       struct hf_memstore **ret_memstore, struct hf_error *err)
{
	struct hf_memstore *memstore = hf_xcalloc(1, sizeof(*memstore));
	struct hf_engine_env env = {
		.now = read_wall_clock,
		.now_arg = loop,
		.random = options->random ? options->random : kernel_random,
		.random_arg = options->random_arg,
		.object_bytes_max =
			or_default(options->object_bytes_max, HF_MEMSTORE_OBJECT_BYTES_MAX),
		.objects_max = or_default(options->objects_max, HF_MEMSTORE_OBJECTS_MAX),
		.bytes_max = or_default(options->bytes_max, HF_MEMSTORE_BYTES_MAX),
		.watch_history = or_default(options->watch_history, HF_MEMSTORE_WATCH_HISTORY),
		.event_ttl = options->event_ttl ? options->event_ttl : HF_MEMSTORE_EVENT_TTL,
	};

	memstore->loop = loop;
	memstore->engine = hf_engine_create(&env);
	memstore->turn = hf_task_create(loop, run_turn, memstore);
	memstore->expiry = hf_timer_create(loop, expire_events, memstore);
	memstore->bookmark = hf_timer_create(loop, hf_memstore_watches_bookmark, memstore);
	memstore->bookmark_every =
		options->bookmark_every ? options->bookmark_every : HF_MEMSTORE_BOOKMARK_EVERY;
	memstore->observers.len_max = OBSERVERS_MAX;
	memstore->own = hf_memstore_client_new(memstore, NULL);
	int rc = prepare_store(memstore, options->data_dir, err);
	memstore->on_health = options->health;
	memstore->health_arg = options->health_arg;
	if (rc) {
		hf_engine_undo(memstore->engine);
		hf_sqlite_abandon(hf_steal(&memstore->sqlite));
		hf_memstore_destroy(memstore);
		return rc;
	}
	arm_expiry(memstore);
	*ret_memstore = memstore;
	return 0;
}

struct hf_memstore *hf_memstore_destroy(struct hf_memstore *memstore)
{
	if (!memstore)
		return NULL;
	hf_assert(memstore->clients == 0);
	memstore->ending = true;
	hf_memstore_client_free(memstore->own);
	hf_assert(memstore->observers.len == 0);
	/* Waiting requests have been canceled, so only writes of controllers in this process are
	 * left. Commit them if the disk allows; no client has got a reply about them. */
	(void)hf_memstore_commit(memstore, NULL);
	hf_sqlite_close(memstore->sqlite);
	hf_task_destroy(memstore->turn);
	hf_timer_destroy(memstore->expiry);
	hf_timer_destroy(memstore->bookmark);
	HF_VEC_RELEASE(&memstore->observers);
	hf_engine_destroy(memstore->engine);
	free(memstore);
	return NULL;
}

/* --- loop, client and logs of a memstore --- */

struct hf_loop *hf_memstore_loop(const struct hf_memstore *memstore)
{
	return memstore->loop;
}

struct hf_store *hf_memstore_store(struct hf_memstore *memstore)
{
	return &memstore->own->base;
}

void hf_memstore_set_logs(struct hf_memstore *memstore, const struct hf_memstore_logs *logs)
{
	memstore->logs = logs ? *logs : (struct hf_memstore_logs){0};
}
