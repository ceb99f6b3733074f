/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/memstore_internal.h"

/*
 * Commits: makes the pending changes durable and tells observers. No reply, event or observer
 * reports a change before its commit. A failed commit is undone in memory, and the observers' reset
 * is called.
 */

void hf_memstore_wake(struct hf_memstore *memstore)
{
	hf_task_post(memstore->turn);
}

static void notify_change(void *arg, struct hf_change *c)
{
	struct hf_memstore *memstore = arg;
	struct hf_memstore_change change = {
		.resource = c->kind->resource,
		.before = c->before.doc,
		.after = c->after,
		.version = c->version,
	};

	for (size_t i = 0; i < memstore->observers.len; i++)
		memstore->observers.items[i]->changed(memstore->observers.items[i]->arg, &change);
}

static void notify_reset(struct hf_memstore *memstore)
{
	for (size_t i = 0; i < memstore->observers.len; i++)
		memstore->observers.items[i]->reset(memstore->observers.items[i]->arg);
}

/* Records the result of a commit. Calls on_health if the error code differs from that of the
 * previous commit: writes begin to fail, fail for another reason, or work again. */
static void set_health(struct hf_memstore *memstore, const struct hf_error *why)
{
	int before = memstore->health.code;

	memstore->health = why ? *why : (struct hf_error){0};
	if (memstore->on_health && before != memstore->health.code)
		memstore->on_health(memstore->health_arg, why);
}

int hf_memstore_commit(struct hf_memstore *memstore, struct hf_error *err)
{
	struct hf_error why = {0};

	if (memstore->engine->pending.len == 0)
		return 0;
	if (memstore->sqlite && hf_sqlite_commit(memstore->sqlite, memstore->engine, &why)) {
		set_health(memstore, &why);
		hf_engine_undo(memstore->engine);
		notify_reset(memstore);
		return hf_error_set(err, why.code, "%s", why.text);
	}
	set_health(memstore, NULL);
	hf_engine_commit(memstore->engine, notify_change, memstore);
	if (memstore->n_bookmark_watches > 0 && !hf_timer_armed(memstore->bookmark))
		hf_timer_arm(memstore->bookmark, memstore->bookmark_every);
	return 0;
}

int hf_memstore_flush(struct hf_memstore *memstore, struct hf_error *err)
{
	int rc = hf_memstore_commit(memstore, err);

	hf_memstore_wake(memstore);
	return rc;
}

int hf_memstore_health(const struct hf_memstore *memstore, struct hf_error *err)
{
	if (memstore->health.code && err)
		*err = memstore->health;
	return memstore->health.code;
}

void hf_memstore_observe(struct hf_memstore *memstore, const struct hf_memstore_observer *observer)
{
	hf_assert(observer->changed && observer->reset);
	hf_assert(HF_VEC_PUSH(&memstore->observers, observer));
}

void hf_memstore_unobserve(struct hf_memstore *memstore,
			   const struct hf_memstore_observer *observer)
{
	for (size_t i = 0; i < memstore->observers.len; i++)
		if (memstore->observers.items[i] == observer) {
			HF_VEC_REMOVE(&memstore->observers, i);
			return;
		}
}
