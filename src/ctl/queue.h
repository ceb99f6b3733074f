/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CTL_QUEUE_H
#define HF_CTL_QUEUE_H

#include "base/time.h"
#include "loop/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A work queue of keys.
 *
 * - A key waits at most once, however often it is added.
 * - A key never runs twice at once. If it is added while it runs, it waits until hf_queue_done and
 *   then runs again.
 * - Keys run in the order of their addition. Keys added with hf_queue_add_behind run only if no
 *   other key is ready, also in their order.
 * - Of several delays for a key, the earliest wins. A plain add cancels the delay, because the run
 *   that it causes will ask for its own.
 * - hf_queue_retry adds a key after 5 ms × 2^n, at most 120 s. n counts the failures of the key
 *   until hf_queue_forget. (controller-runtime's default limiter uses the same steps, up to 1,000
 *   s.)
 *
 * The work on a key may take any number of turns of the loop: `run` starts it, and hf_queue_done
 * ends it, inside run or later.
 */
struct hf_queue;

typedef void (*hf_queue_fn)(void *arg, const char *key);

/* Most keys. The queue has a key for each job. The limit is ten times the largest planned number of
 * jobs. */
#define HF_QUEUE_KEYS_MAX ((size_t)200000)
#define HF_QUEUE_RETRY_MIN (5 * HF_MS)
#define HF_QUEUE_RETRY_MAX (120 * HF_SECOND)

struct hf_queue_options {
	struct hf_loop *loop;
	size_t keys_max;    /* keys that wait, are delayed or run; 0: HF_QUEUE_KEYS_MAX */
	size_t running_max; /* keys that may run at once; 0: no limit */
	uint64_t seed;      /* for the hash table, see base/map.h */
	hf_queue_fn run;
	/* Called when a key starts to run, with the time for which the key was ready. May be
	 * NULL. */
	void (*waited)(void *arg, hf_time span);
	void *arg;
};

struct hf_queue_stats {
	uint64_t adds; /* adds of keys, except adds of a key that already waited */
	uint64_t retries;
	uint64_t dropped; /* adds refused because the queue was full */
};

struct hf_queue *hf_queue_create(const struct hf_queue_options *options);
/* `run` is not called after this. Accepts NULL; returns NULL. */
struct hf_queue *hf_queue_destroy(struct hf_queue *queue);

/* The four functions below copy the key. They return false if the queue is full, and count that
 * in `dropped`. */
bool hf_queue_add(struct hf_queue *queue, const char *key);
/* If the key is ready already, its place in the queue does not change. */
bool hf_queue_add_behind(struct hf_queue *queue, const char *key);
bool hf_queue_add_after(struct hf_queue *queue, const char *key, hf_time delay);
bool hf_queue_retry(struct hf_queue *queue, const char *key);
/* Forgets the key's failures; call it after a good run. */
void hf_queue_forget(struct hf_queue *queue, const char *key);
/* Ends the run of this key. The key must be running. */
void hf_queue_done(struct hf_queue *queue, const char *key);

/* Starts no more keys. Running keys continue, and keys can still be added. */
void hf_queue_pause(struct hf_queue *queue);

/* Number of keys that are ready to run; delayed keys are not included. */
size_t hf_queue_waiting(const struct hf_queue *queue);
size_t hf_queue_running(const struct hf_queue *queue);
unsigned hf_queue_failures(const struct hf_queue *queue, const char *key);
/* The time at which a delayed key is due, on the monotonic clock; HF_TIME_NEVER if it is not
 * delayed. */
hf_time hf_queue_due(const struct hf_queue *queue, const char *key);
const struct hf_queue_stats *hf_queue_stats(const struct hf_queue *queue);

#endif
