/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * A work queue of keys. Input: keys to work on, now or after a delay; output: calls of `run`, never
 * two at once for one key.
 *
 * Invariant: an item exists only for a key that is ready, delayed or running, or that has failures
 * to remember.
 */
#include "ctl/queue.h"

#include "base/map.h"
#include "base/mem.h"
#include "ctl/backoff.h"

#include <stdlib.h>
#include <string.h>

/*
 * The states of a key:
 *
 *              add                  run                     done
 *     (nothing) ─────▶ ready ────────────▶ running ──────────────▶ (nothing)
 *        │ add_after    ▲  timer              │ add: again = true    │ again
 *        └──▶ delayed ──┘                     └──────────────────────▶ ready
 *
 * A timer may also be armed while the key is running; it then starts the next run.
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

/* The two ready lists. Keys in READY_BEHIND run only while READY is empty. */
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

/* Keys started in one turn of the loop. The limit keeps a full queue from delaying the loop's
 * timers. */
#define STARTS_PER_TURN 64

static void free_item(void *value)
{
	struct item *item = value;

	hf_timer_destroy(item->timer);
	free(item);
}

static struct item *get_item(struct hf_queue *queue, const char *key)
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
	free_item(item);
	queue->stats.dropped++;
	return NULL;
}

static void forget_idle_item(struct hf_queue *queue, struct item *item)
{
	bool delayed = item->timer != NULL && hf_timer_armed(item->timer);

	if (!item->ready && !item->running && !delayed && item->failures == 0)
		hf_map_remove(queue->items, item->key);
}

static void post_start(struct hf_queue *queue)
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
	post_start(queue);
}

static struct item *take_first_ready(struct hf_queue *queue)
{
	struct list *list = &queue->ready[queue->ready[READY].first != NULL ? READY : READY_BEHIND];
	struct item *item = list->first;

	list->first = item->next;
	if (list->first == NULL)
		list->last = &list->first;
	queue->n_ready--;
	return item;
}

static void start_ready(void *arg)
{
	struct hf_queue *queue = arg;

	for (int n = 0; n < STARTS_PER_TURN && queue->n_ready > 0 && !queue->paused; n++) {
		if (queue->running_max != 0 && queue->n_running >= queue->running_max)
			return;
		struct item *item = take_first_ready(queue);

		item->ready = false;
		item->running = true;
		queue->n_running++;
		if (queue->waited != NULL)
			queue->waited(queue->arg, hf_loop_mono(queue->loop) - item->ready_since);
		/* A copy of the key, because `run` may call hf_queue_done, which can free the
		 * item. */
		HF_AUTOFREE char *key = hf_xstrdup(item->key);

		queue->run(queue->arg, key);
	}
	post_start(queue);
}

static void on_item_due(void *arg)
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
				     options->seed, free_item);
	queue->task = hf_task_create(queue->loop, start_ready, queue);
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

static bool add_ready(struct hf_queue *queue, const char *key, int which)
{
	struct item *item = get_item(queue, key);

	if (item == NULL)
		return false;
	make_ready(queue, item, which);
	return true;
}

bool hf_queue_add(struct hf_queue *queue, const char *key)
{
	return add_ready(queue, key, READY);
}

bool hf_queue_add_behind(struct hf_queue *queue, const char *key)
{
	return add_ready(queue, key, READY_BEHIND);
}

bool hf_queue_add_after(struct hf_queue *queue, const char *key, hf_time delay)
{
	struct item *item;
	hf_time due;

	if (delay <= 0)
		return hf_queue_add(queue, key);
	item = get_item(queue, key);
	if (item == NULL)
		return false;
	if (item->ready || item->again)
		return true; /* the key will run earlier than after this delay */
	if (item->timer == NULL)
		item->timer = hf_timer_create(queue->loop, on_item_due, item);
	due = hf_time_add(hf_loop_mono(queue->loop), delay);
	if (due < hf_timer_due(item->timer))
		hf_timer_arm(item->timer, delay);
	return true;
}

bool hf_queue_retry(struct hf_queue *queue, const char *key)
{
	struct item *item = get_item(queue, key);
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
	forget_idle_item(queue, item);
}

void hf_queue_done(struct hf_queue *queue, const char *key)
{
	struct item *item = hf_map_get(queue->items, key);

	hf_assert(item != NULL && item->running);
	item->running = false;
	queue->n_running--;
	if (item->again) {
		item->again = false;
		/* make_ready counts an add, but hf_queue_add has counted this one already. */
		queue->stats.adds--;
		make_ready(queue, item, READY);
	} else {
		forget_idle_item(queue, item);
	}
	post_start(queue);
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
