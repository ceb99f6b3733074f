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
 *   - A key waits at most once, however often it is added.
 *   - A key is never worked on twice at once: added while it is being worked on, it
 *     waits until hf_queue_done and then runs again.
 *   - Order is first come, first served; keys that were added behind run when no other is
 *     ready, in their order.
 *   - Delayed adds: the earliest due wins; a plain add overtakes a delay and cancels
 *     it, since the run it causes will ask for its own.
 *   - After failures: hf_queue_retry adds with 5 ms · 2^n, at most 1,000 s, n counted
 *     per key until hf_queue_forget.  (The figures of controller-runtime's default
 *     limiter, so that retries look the same to those who know it.)
 *
 * The work itself may take any number of loop turns: `run` starts it, hf_queue_done
 * ends it, from inside run or later.
 */
struct hf_queue;

typedef void (*hf_queue_fn)(void *arg, const char *key);

/* One key a job; ten times the most jobs planned for. */
#define HF_QUEUE_KEYS_MAX ((size_t)200000)
#define HF_QUEUE_RETRY_MIN (5 * HF_MS)
#define HF_QUEUE_RETRY_MAX (120 * HF_SECOND)

struct hf_queue_options {
	struct hf_loop *loop;
	size_t keys_max;    /* waiting, delayed and running together; 0: HF_QUEUE_KEYS_MAX */
	size_t running_max; /* keys worked on at once; 0: any number */
	uint64_t seed;      /* of the key table, see base/map.h */
	hf_queue_fn run;
	/* A run begins of a key that was ready for so long; may be NULL. */
	void (*waited)(void *arg, hf_time span);
	void *arg;
};

struct hf_queue_stats {
	uint64_t adds; /* that were not already waiting */
	uint64_t retries;
	uint64_t dropped; /* the queue was full */
};

struct hf_queue *hf_queue_create(const struct hf_queue_options *options);
/* `run` is not called any more; NULL is fine; returns NULL. */
struct hf_queue *hf_queue_destroy(struct hf_queue *queue);

/* Each copies the key.  false: the queue is full, counted as dropped. */
bool hf_queue_add(struct hf_queue *queue, const char *key);
/* A key that is ready already keeps its place, whichever it is. */
bool hf_queue_add_behind(struct hf_queue *queue, const char *key);
bool hf_queue_add_after(struct hf_queue *queue, const char *key, hf_time delay);
bool hf_queue_retry(struct hf_queue *queue, const char *key);
/* The key's last run was good. */
void hf_queue_forget(struct hf_queue *queue, const char *key);
/* The run of this key is over.  The key must be one that is running. */
void hf_queue_done(struct hf_queue *queue, const char *key);

/* Start nothing more (what runs goes on); keys still gather. */
void hf_queue_pause(struct hf_queue *queue);

size_t hf_queue_waiting(const struct hf_queue *queue); /* ready to run, delays aside */
size_t hf_queue_running(const struct hf_queue *queue);
unsigned hf_queue_failures(const struct hf_queue *queue, const char *key);
/* When a delayed key is due, monotonic; HF_TIME_NEVER for none. */
hf_time hf_queue_due(const struct hf_queue *queue, const char *key);
const struct hf_queue_stats *hf_queue_stats(const struct hf_queue *queue);

#endif
