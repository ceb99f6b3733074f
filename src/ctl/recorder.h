/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CTL_RECORDER_H
#define HF_CTL_RECORDER_H

#include "base/time.h"
#include "loop/loop.h"
#include "store/store.h"

#include <stdint.h>

/*
 * Writes core/v1 Events about objects. To spare the API server, it combines events as client-go's
 * correlator does:
 *
 * - The same event again (same source, object, type, reason and message) becomes a patch of count
 *   and lastTimestamp of the existing Event.
 * - If more than 10 events within 10 min differ in their message only, the further ones become one
 *   Event. Its message starts with "(combined from similar events): ".
 * - An object may cause 25 events at once, and one more every 5 min. Further events are dropped and
 *   counted.
 * - Routine events repeat what the objects themselves show. Over all objects, 256 of them may come
 *   at once, and one more every second. Further ones are dropped and counted.
 *
 * Events are sent one at a time, in the order of recording. A write with a transient failure is
 * tried at most 12 times; a write that the server refuses is dropped. At most HF_RECORDER_QUEUE_MAX
 * events wait; further events are dropped and counted. Recording never fails and never blocks,
 * because no decision depends on an event.
 */
struct hf_recorder;

#define HF_RECORDER_QUEUE_MAX ((size_t)1000)
/* Keys remembered for combination, as in client-go's LRU. */
#define HF_RECORDER_KEYS_MAX ((size_t)4096)
#define HF_RECORDER_MESSAGE_MAX ((size_t)1024) /* bytes; an API server refuses more */

struct hf_event_note;

struct hf_recorder_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char
		/* Source.component and reportingComponent of events that name no component. */
		*component;
	uint64_t seed; /* for the retry jitter */
	/* Wait before the first of several events is sent, so that more important writes go
	 * first. */
	hf_time delay;
	/* Called when the server refuses a create or patch, and not again until a write has
	 * succeeded. May be NULL; must not record an event. */
	void (*refused)(void *arg, int code, const char *message);
	/* Called with each event that is not dropped, before it is sent. May be NULL; must not record
	 * an event. */
	void (*recorded)(void *arg, const struct hf_event_note *note, hf_time now);
	void *arg;
};

/* All strings are copied. NULL counts as "". */
struct hf_event_note {
	/* The involvedObject. */
	const char *api_version, *kind, *ns, *name, *uid, *resource_version;
	const char *field_path;
	const char *type; /* "Normal" or "Warning" */
	const char *reason;
	const char *message;
	const char *component; /* NULL: the recorder's component */
	/* True: a routine event, which may be dropped if thousands come at once. */
	bool routine;
};

struct hf_recorder_stats {
	uint64_t recorded;
	uint64_t created, patched; /* writes that succeeded */
	uint64_t spam;             /* events dropped by the limit for each object */
	uint64_t spared;           /* events dropped by the limit for routine events */
	/* Events dropped because the queue was full, the write was refused, or no tries were
	 * left. */
	uint64_t dropped;
};

struct hf_recorder *hf_recorder_create(const struct hf_recorder_options *options);
/* Drops the events that wait. Accepts NULL; returns NULL. */
struct hf_recorder *hf_recorder_destroy(struct hf_recorder *recorder);

/* now is the time stamp of the event: the API server's time if it is known. */
void hf_recorder_record(struct hf_recorder *recorder, const struct hf_event_note *note,
			hf_time now);
/* Calls idle once, from the loop, as soon as no event waits. */
void hf_recorder_drain(struct hf_recorder *recorder, hf_task_fn idle, void *arg);
/* The number of events that wait or are being sent. */
size_t hf_recorder_pending(const struct hf_recorder *recorder);
const struct hf_recorder_stats *hf_recorder_stats(const struct hf_recorder *recorder);

#endif
