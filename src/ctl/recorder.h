/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CTL_RECORDER_H
#define HF_CTL_RECORDER_H

#include "base/time.h"
#include "loop/loop.h"
#include "store/store.h"

#include <stdint.h>

/*
 * Writes core/v1 Events about objects, sparing the API server as client-go's
 * correlator does:
 *
 *   - the same event again (source, object, type, reason, message) becomes a patch of
 *     count and lastTimestamp on the one that is there;
 *   - more than 10 events alike but for their message within 10 min become one whose
 *     message starts "(combined from similar events): ";
 *   - an object may cause 25 events at once and one more each 5 min; the rest is
 *     dropped and counted;
 *   - of routine events, which tell what the objects themselves show, 256 may come at once
 *     and one more each second, over all objects; the rest is left out and counted.
 *
 * Events are sent one after the other, in the order recorded.  A write that fails for
 * a reason that may pass is tried again, at most 12 times; one that is refused is
 * dropped.  At most HF_RECORDER_QUEUE_MAX wait; more are dropped and counted.
 * Recording never fails and never blocks: events are news, not state.
 */
struct hf_recorder;

#define HF_RECORDER_QUEUE_MAX ((size_t)1000)
#define HF_RECORDER_KEYS_MAX ((size_t)4096)    /* correlations remembered, as client-go's LRU */
#define HF_RECORDER_MESSAGE_MAX ((size_t)1024) /* bytes; an API server refuses more */

struct hf_recorder_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char
		*component; /* source.component and reportingComponent of events that name none */
	uint64_t seed;      /* of the retry jitter */
	hf_time delay;      /* before the first of a row is sent, so that what is told goes first */
	/* A create or patch was refused, the first since one was taken; may be NULL, must not record. */
	void (*refused)(void *arg, int code, const char *message);
	void *arg;
};

/* All strings are copied.  NULL reads as "". */
struct hf_event_note {
	const char *api_version, *kind, *ns, *name, *uid, *resource_version; /* involvedObject */
	const char *field_path;
	const char *type; /* "Normal" or "Warning" */
	const char *reason;
	const char *message;
	const char *component; /* NULL: the recorder's */
	bool routine;          /* may be left out where thousands come */
};

struct hf_recorder_stats {
	uint64_t recorded;
	uint64_t created, patched; /* writes that were done */
	uint64_t spam;             /* dropped by the limit per object */
	uint64_t spared;           /* routine, and beyond what may come of that */
	uint64_t dropped;          /* queue full, or refused, or out of tries */
};

struct hf_recorder *hf_recorder_create(const struct hf_recorder_options *options);
/* What still waits is dropped; NULL is fine; returns NULL. */
struct hf_recorder *hf_recorder_destroy(struct hf_recorder *recorder);

/* now: the time to stamp the event with (API-server time where known). */
void hf_recorder_record(struct hf_recorder *recorder, const struct hf_event_note *note,
			hf_time now);
/* Call idle once, from the loop, as soon as nothing waits any more. */
void hf_recorder_drain(struct hf_recorder *recorder, hf_task_fn idle, void *arg);
/* Waiting or being sent. */
size_t hf_recorder_pending(const struct hf_recorder *recorder);
const struct hf_recorder_stats *hf_recorder_stats(const struct hf_recorder *recorder);

#endif
