/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "ctl/queue.h"

#include "base/map.h"
#include "base/mem.h"
#include "ctl/backoff.h"

#include <stdlib.h>
#include <string.h>

/*
 * One item per key that waits, is delayed, runs, or has failures to remember.
 *
 *              add                 run                    done
 *   (nothing) ─────▶ ready ────────────▶ running ──────────────▶ (nothing)
 *       │ add_after    ▲  timer             │ add: again = true     │ again
 *       └──▶ delayed ──┘                    └──────────────────────▶ ready
 *
 * A timer may be armed while the key runs too: the delay then starts the next run.
 */
struct item {
	struct hf_queue *queue;
	struct item *next; /* in a ready list */
	struct hf_timer *timer;
	unsigned failures;
	bool ready, running, again;
	hf_time ready_since;
	char key[];
};

struct list {
	struct item *first, **last;
};

/* In the order they are worked on. */
enum { READY, READY_BEHIND, LISTS };

struct hf_queue {
	struct hf_loop *loop;
	struct hf_map *items; /* key → struct item */
	struct hf_task *task;
	struct list ready[LISTS];
	size_t n_ready, n_running, running_max;
	hf_queue_fn run;
	void (*waited)(void *arg, hf_time span);
	void *arg;
	struct hf_queue_stats stats;
	bool paused;
};

/* Keys started in one turn of the loop, so that a full queue does not starve its timers. */
#define STARTS_PER_TURN 64

static void item_free(void *value)
{
	struct item *item = value;

	hf_timer_destroy(item->timer);
	free(item);
}

static struct item *item_get(struct hf_queue *queue, const char *key)
{
	struct item *item = hf_map_get(queue->items, key);
	size_t len = strlen(key);

	if (item != NULL)
		return item;
	item = hf_xcalloc(1, sizeof(*item) + len + 1);
	item->queue = queue;
	memcpy(item->key, key, len);
	if (hf_map_put(queue->items, key, item))
		return item;
	item_free(item);
	queue->stats.dropped++;
	return NULL;
}

static void item_forget_if_idle(struct hf_queue *queue, struct item *item)
{
	bool delayed = item->timer != NULL && hf_timer_armed(item->timer);

	if (!item->ready && !item->running && !delayed && item->failures == 0)
		hf_map_remove(queue->items, item->key);
}

static void wake(struct hf_queue *queue)
{
	bool room = queue->running_max == 0 || queue->n_running < queue->running_max;

	if (!queue->paused && room && queue->n_ready > 0)
		hf_task_post(queue->task);
}

static void make_ready(struct hf_queue *queue, struct item *item, int which)
{
	struct list *list = &queue->ready[which];

	if (item->timer != NULL)
		hf_timer_disarm(item->timer);
	if (item->running) {
		queue->stats.adds += !item->again;
		item->again = true;
		return;
	}
	if (item->ready)
		return;
	item->ready = true;
	item->ready_since = hf_loop_mono(queue->loop);
	item->next = NULL;
	*list->last = item;
	list->last = &item->next;
	queue->n_ready++;
	queue->stats.adds++;
	wake(queue);
}

static struct item *take_first(struct hf_queue *queue)
{
	struct list *list = &queue->ready[queue->ready[READY].first != NULL ? READY : READY_BEHIND];
	struct item *item = list->first;

	list->first = item->next;
	if (list->first == NULL)
		list->last = &list->first;
	queue->n_ready--;
	return item;
}

static void start_some(void *arg)
{
	struct hf_queue *queue = arg;

	for (int n = 0; n < STARTS_PER_TURN && queue->n_ready > 0 && !queue->paused; n++) {
		if (queue->running_max != 0 && queue->n_running >= queue->running_max)
			return;
		struct item *item = take_first(queue);

		item->ready = false;
		item->running = true;
		queue->n_running++;
		if (queue->waited != NULL)
			queue->waited(queue->arg, hf_loop_mono(queue->loop) - item->ready_since);
		/* run may call done at once, and with it free the item. */
		HF_AUTOFREE char *key = hf_xstrdup(item->key);

		queue->run(queue->arg, key);
	}
	wake(queue);
}

static void item_due(void *arg)
{
	struct item *item = arg;

	make_ready(item->queue, item, READY);
}

struct hf_queue *hf_queue_create(const struct hf_queue_options *options)
{
	struct hf_queue *queue = hf_xcalloc(1, sizeof(*queue));

	hf_assert(options->loop != NULL && options->run != NULL);
	queue->loop = options->loop;
	queue->items = hf_map_create(options->keys_max ? options->keys_max : HF_QUEUE_KEYS_MAX,
				     options->seed, item_free);
	queue->task = hf_task_create(queue->loop, start_some, queue);
	for (int i = 0; i < LISTS; i++)
		queue->ready[i].last = &queue->ready[i].first;
	queue->running_max = options->running_max;
	queue->run = options->run;
	queue->waited = options->waited;
	queue->arg = options->arg;
	return queue;
}

struct hf_queue *hf_queue_destroy(struct hf_queue *queue)
{
	if (queue == NULL)
		return NULL;
	hf_task_destroy(queue->task);
	hf_map_destroy(queue->items);
	free(queue);
	return NULL;
}

static bool add(struct hf_queue *queue, const char *key, int which)
{
	struct item *item = item_get(queue, key);

	if (item == NULL)
		return false;
	make_ready(queue, item, which);
	return true;
}

bool hf_queue_add(struct hf_queue *queue, const char *key)
{
	return add(queue, key, READY);
}

bool hf_queue_add_behind(struct hf_queue *queue, const char *key)
{
	return add(queue, key, READY_BEHIND);
}

bool hf_queue_add_after(struct hf_queue *queue, const char *key, hf_time delay)
{
	struct item *item;
	hf_time due;

	if (delay <= 0)
		return hf_queue_add(queue, key);
	item = item_get(queue, key);
	if (item == NULL)
		return false;
	if (item->ready || item->again)
		return true; /* that run comes sooner */
	if (item->timer == NULL)
		item->timer = hf_timer_create(queue->loop, item_due, item);
	due = hf_time_add(hf_loop_mono(queue->loop), delay);
	if (due < hf_timer_due(item->timer))
		hf_timer_arm(item->timer, delay);
	return true;
}

bool hf_queue_retry(struct hf_queue *queue, const char *key)
{
	struct item *item = item_get(queue, key);
	struct hf_backoff backoff = HF_BACKOFF_INIT(HF_QUEUE_RETRY_MIN, HF_QUEUE_RETRY_MAX, 0);

	if (item == NULL)
		return false;
	backoff.failures = item->failures;
	hf_time delay = hf_backoff_next(&backoff, NULL);

	item->failures = backoff.failures;
	queue->stats.retries++;
	return hf_queue_add_after(queue, key, delay);
}

void hf_queue_forget(struct hf_queue *queue, const char *key)
{
	struct item *item = hf_map_get(queue->items, key);

	if (item == NULL)
		return;
	item->failures = 0;
	item_forget_if_idle(queue, item);
}

void hf_queue_done(struct hf_queue *queue, const char *key)
{
	struct item *item = hf_map_get(queue->items, key);

	hf_assert(item != NULL && item->running);
	item->running = false;
	queue->n_running--;
	if (item->again) {
		item->again = false;
		queue->stats.adds--; /* counted when it was added */
		make_ready(queue, item, READY);
	} else {
		item_forget_if_idle(queue, item);
	}
	wake(queue);
}

void hf_queue_pause(struct hf_queue *queue)
{
	queue->paused = true;
	hf_task_cancel(queue->task);
}

size_t hf_queue_waiting(const struct hf_queue *queue)
{
	return queue->n_ready;
}

size_t hf_queue_running(const struct hf_queue *queue)
{
	return queue->n_running;
}

unsigned hf_queue_failures(const struct hf_queue *queue, const char *key)
{
	const struct item *item = hf_map_get(queue->items, key);

	return item == NULL ? 0 : item->failures;
}

hf_time hf_queue_due(const struct hf_queue *queue, const char *key)
{
	const struct item *item = hf_map_get(queue->items, key);

	return item == NULL || item->timer == NULL ? HF_TIME_NEVER : hf_timer_due(item->timer);
}

const struct hf_queue_stats *hf_queue_stats(const struct hf_queue *queue)
{
	return &queue->stats;
}
