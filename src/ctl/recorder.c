/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "ctl/recorder.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "ctl/backoff.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* client-go's figures (tools/record/events_cache.go, event.go). */
#define ALIKE_MAX 10 /* messages before events alike are combined */
#define ALIKE_WINDOW (10 * HF_MINUTE)
#define SPAM_BURST 25
#define SPAM_REFILL (5 * HF_MINUTE)
/* Ours: an event is a write to etcd as big as a status, kept for an hour. */
#define ROUTINE_BURST 256
#define ROUTINE_REFILL HF_SECOND
#define TRIES_MAX 12
#define TRY_MIN HF_SECOND
#define TRY_MAX (10 * HF_SECOND)
#define NAME_MAX_BYTES 236 /* of the object, so that ".<16 hex digits>" fits into 253 */
#define KEY_BYTES_MAX 8192
/* Thousands of keys are remembered, and their words are nobody's business: 128 bits of hash. */
#define DIGEST_SIZE 33
#define COMBINED "(combined from similar events): "

/* What an Event says, in one block.  Whoever records it again brings it along. */
struct content {
	const char *api_version, *kind, *ns, *object, *uid, *object_version, *field_path;
	const char *type, *reason, *component, *message;
	char text[];
};

/* One Event object, as it is or should be in the store. */
struct event {
	struct event *next;      /* in the send queue */
	struct content *content; /* NULL: it is in the store */
	char *name;              /* of the Event */
	hf_time first, last;
	int64_t count, sent_count; /* sent_count 0: not created yet */
	bool queued;               /* in the queue or being sent */
	bool unsure;               /* a create timed out: it may be there */
	char key[DIGEST_SIZE];
};

/* Events alike but for the message. */
struct group {
	char key[DIGEST_SIZE];        /* first */
	uint64_t messages[ALIKE_MAX]; /* hashes */
	size_t n_messages;
	hf_time last;
};

/* A token bucket per object, as the time at which it would be full again. */
struct source {
	char key[DIGEST_SIZE]; /* first */
	hf_time full_at;
};

struct hf_recorder {
	struct hf_loop *loop;
	struct hf_store *store;
	char *component;
	struct hf_map *events, *groups, *sources;
	struct event *first, **last; /* to send; the first may be under way */
	size_t n_queued;
	struct hf_call *call;
	struct hf_timer *timer; /* armed: the next send */
	struct hf_rng rng;
	uint64_t seed;
	struct hf_backoff backoff;
	hf_time delay;
	int64_t sending_count;
	hf_time last_stamp;
	struct hf_task *idle_task;
	hf_task_fn idle;
	void *idle_arg;
	hf_time routine_full_at; /* as a source's full_at */
	struct hf_recorder_stats stats;
	void (*refused)(void *arg, int code, const char *message);
	void *refused_arg;
	bool refused_told[2]; /* creates, patches */
};

static void event_free(void *value)
{
	struct event *event = value;

	free(event->name);
	free(event->content);
	free(event);
}

/* --- correlation --- */

/* Room for one more: the oldest goes, events that wait to be sent excepted. */
static void make_room(struct hf_map *map, bool events)
{
	const char *key;
	void *value;

	if (hf_map_len(map) < HF_RECORDER_KEYS_MAX)
		return;
	for (size_t it = 0; hf_map_next(map, &it, &key, &value);) {
		if (!events || !((struct event *)value)->queued) {
			hf_map_remove(map, key);
			return;
		}
	}
	/* Not reached: fewer events wait than are remembered. */
	hf_assert(HF_RECORDER_QUEUE_MAX >= HF_RECORDER_KEYS_MAX);
}

/* A group or a source: either begins with its key. */
static void *remember(struct hf_map *map, const char *key, size_t size)
{
	char *value = hf_map_get(map, key);

	if (value != NULL)
		return value;
	make_room(map, false);
	value = hf_xcalloc(1, size);
	memcpy(value, key, DIGEST_SIZE);
	bool put = hf_map_put(map, value, value);

	hf_assert(put);
	return value;
}

/* true: the message is to be replaced, since too many alike came. */
static bool group_is_full(struct hf_recorder *recorder, const char *key, const char *message,
			  hf_time now)
{
	struct group *group = remember(recorder->groups, key, sizeof(*group));
	uint64_t hash = hf_hash_str(message);

	if (now - group->last > ALIKE_WINDOW)
		group->n_messages = 0;
	group->last = now;
	for (size_t i = 0; i < group->n_messages; i++)
		if (group->messages[i] == hash)
			return false;
	if (group->n_messages == ALIKE_MAX)
		return true;
	group->messages[group->n_messages++] = hash;
	return false;
}

/* Takes a token of a bucket, if there is one. */
static bool bucket_take(hf_time *full_at, hf_time refill, int burst, hf_time now)
{
	if (*full_at < now)
		*full_at = now;
	if (*full_at + refill > now + burst * refill)
		return false;
	*full_at += refill;
	return true;
}

static bool source_may(struct hf_recorder *recorder, const char *key, hf_time now)
{
	struct source *source = remember(recorder->sources, key, sizeof(*source));

	return bucket_take(&source->full_at, SPAM_REFILL, SPAM_BURST, now);
}

static const char *or_empty(const char *s)
{
	return s == NULL ? "" : s;
}

/* The separator is no part of names, kinds or reasons. */
static void key_add(struct hf_strbuf *sb, const char *part)
{
	hf_strbuf_addstr(sb, or_empty(part));
	hf_strbuf_addch(sb, '\n');
}

static const char *digest(const struct hf_recorder *recorder, const struct hf_strbuf *key,
			  char buf[DIGEST_SIZE])
{
	snprintf(buf, DIGEST_SIZE, "%016llx%016llx",
		 (unsigned long long)hf_siphash(recorder->seed, key->data, key->len),
		 (unsigned long long)hf_siphash(~recorder->seed, key->data, key->len));
	return buf;
}

static char *message_cut(const char *prefix, const char *message)
{
	size_t prefix_len = strlen(prefix), len = strlen(message);
	size_t room = HF_RECORDER_MESSAGE_MAX - prefix_len;
	char *text;

	if (len > room) {
		len = room - 3;
		/* Not inside a character: step back over UTF-8's continuation bytes. */
		while (len > 0 && ((unsigned char)message[len] & 0xc0) == 0x80)
			len--;
		HF_AUTOFREE char *cut = hf_xstrndup(message, len);

		text = hf_xasprintf("%s%s...", prefix, cut);
	} else {
		text = hf_xasprintf("%s%s", prefix, message);
	}
	return text;
}

static const char *text_put(char **at, const char *s)
{
	const char *start = *at;
	size_t size = strlen(s) + 1;

	memcpy(*at, s, size);
	*at += size;
	return start;
}

static struct content *content_create(const struct hf_event_note *note, const char *component,
				      const char *message)
{
	const char *const texts[] = {
		or_empty(note->api_version),
		or_empty(note->kind),
		or_empty(note->ns),
		or_empty(note->name),
		or_empty(note->uid),
		or_empty(note->resource_version),
		or_empty(note->field_path),
		or_empty(note->type),
		or_empty(note->reason),
		component,
		message,
	};
	struct content *content;
	size_t size = 0;
	char *at;

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++)
		size += strlen(texts[i]) + 1;
	content = hf_xmalloc(sizeof(*content) + size);
	at = content->text;
	content->api_version = text_put(&at, texts[0]);
	content->kind = text_put(&at, texts[1]);
	content->ns = text_put(&at, texts[2]);
	content->object = text_put(&at, texts[3]);
	content->uid = text_put(&at, texts[4]);
	content->object_version = text_put(&at, texts[5]);
	content->field_path = text_put(&at, texts[6]);
	content->type = text_put(&at, texts[7]);
	content->reason = text_put(&at, texts[8]);
	content->component = text_put(&at, texts[9]);
	content->message = text_put(&at, texts[10]);
	return content;
}

/* Unique for this process's life: the stamp never repeats. */
static void event_name(struct hf_recorder *recorder, struct event *event, hf_time now)
{
	hf_time stamp = now > recorder->last_stamp ? now : recorder->last_stamp + 1;
	HF_AUTOFREE char *object = hf_xstrndup(event->content->object, NAME_MAX_BYTES);

	recorder->last_stamp = stamp;
	free(event->name);
	event->name = hf_xasprintf("%s.%016llx", object, (unsigned long long)stamp);
}

/* --- sending --- */

static void send_soon(struct hf_recorder *recorder, hf_time after)
{
	if (recorder->first != NULL && recorder->call == NULL && !hf_timer_armed(recorder->timer))
		hf_timer_arm(recorder->timer, after);
}

static void enqueue(struct hf_recorder *recorder, struct event *event)
{
	event->queued = true;
	event->next = NULL;
	*recorder->last = event;
	recorder->last = &event->next;
	recorder->n_queued++;
	send_soon(recorder, recorder->delay);
}

/* The first event's turn is over; one that changed meanwhile goes to the end. */
static void advance(struct hf_recorder *recorder, bool keep)
{
	struct event *event = recorder->first;

	recorder->first = event->next;
	if (recorder->first == NULL)
		recorder->last = &recorder->first;
	recorder->n_queued--;
	event->queued = false;
	hf_backoff_reset(&recorder->backoff);
	if (!keep)
		hf_map_remove(recorder->events, event->key);
	else if (event->count != event->sent_count)
		enqueue(recorder, event);
	else
		free(hf_steal(&event->content));
	send_soon(recorder, 0);
	if (recorder->first == NULL && recorder->idle != NULL)
		hf_task_post(recorder->idle_task);
}

static struct hf_doc *event_body(const struct event *event)
{
	const struct content *content = event->content;
	struct hf_json *root = hf_json_object(), *meta, *object;
	char first[HF_TIME_TEXT_MAX], last[HF_TIME_TEXT_MAX];

	hf_time_format(event->first, first);
	hf_time_format(event->last, last);
	hf_json_set_str(root, "apiVersion", "v1");
	hf_json_set_str(root, "kind", "Event");
	meta = hf_json_ensure_object(root, "metadata");
	hf_json_set_str(meta, "name", event->name);
	hf_json_set_str(meta, "namespace", hf_str_or(content->ns, "default"));
	object = hf_json_ensure_object(root, "involvedObject");
	hf_json_set_str(object, "kind", content->kind);
	if (content->ns[0] != '\0')
		hf_json_set_str(object, "namespace", content->ns);
	hf_json_set_str(object, "name", content->object);
	hf_json_set_str(object, "uid", content->uid);
	hf_json_set_str(object, "apiVersion", content->api_version);
	if (content->object_version[0] != '\0')
		hf_json_set_str(object, "resourceVersion", content->object_version);
	if (content->field_path[0] != '\0')
		hf_json_set_str(object, "fieldPath", content->field_path);
	hf_json_set_str(root, "reason", content->reason);
	hf_json_set_str(root, "message", content->message);
	hf_json_set_str(hf_json_ensure_object(root, "source"), "component", content->component);
	hf_json_set_str(root, "firstTimestamp", first);
	hf_json_set_str(root, "lastTimestamp", last);
	hf_json_set_i64(root, "count", event->count);
	hf_json_set_str(root, "type", content->type);
	hf_json_set_str(root, "reportingComponent", content->component);
	hf_json_set_str(root, "reportingInstance", "");
	return hf_doc_from_json(root);
}

static struct hf_doc *event_patch(const struct event *event)
{
	struct hf_json *root = hf_json_object();
	char last[HF_TIME_TEXT_MAX];

	hf_time_format(event->last, last);
	hf_json_set_i64(root, "count", event->count);
	hf_json_set_str(root, "lastTimestamp", last);
	hf_json_set_str(root, "message", event->content->message);
	return hf_doc_from_json(root);
}

static bool may_pass(int code)
{
	return code == HF_E_TIMEOUT || code == HF_E_UNAVAILABLE || code == HF_E_TOO_MANY ||
	       code == HF_E_INTERNAL || code == HF_E_IO || code == HF_E_CONFLICT;
}

/* Without the right to write events each of them is refused: that is said once. */
static void refused(struct hf_recorder *recorder, bool created, const struct hf_reply *reply)
{
	if (recorder->refused != NULL && !recorder->refused_told[created])
		recorder->refused(recorder->refused_arg, reply->code, reply->message);
	recorder->refused_told[created] = true;
}

static void sent(void *arg, const struct hf_reply *reply)
{
	struct hf_recorder *recorder = arg;
	struct event *event = recorder->first;
	bool created = event->sent_count > 0;
	int code = reply->code;

	recorder->call = NULL;
	if (!created && code == HF_E_EXISTS && event->unsure)
		code = 0; /* the create that timed out had been done */
	if (code == 0) {
		event->sent_count = recorder->sending_count;
		*(created ? &recorder->stats.patched : &recorder->stats.created) += 1;
		recorder->refused_told[created] = false;
		advance(recorder, true);
		return;
	}
	event->unsure = event->unsure || code == HF_E_TIMEOUT;
	if (created && code == HF_E_NOT_FOUND) {
		event->sent_count = 0; /* it expired: write it anew */
		event->unsure = false;
	} else if (!created && code == HF_E_EXISTS) {
		event_name(recorder, event, recorder->last_stamp);
	} else if (!may_pass(code)) {
		recorder->stats.dropped++;
		refused(recorder, created, reply);
		advance(recorder, false);
		return;
	}
	if (recorder->backoff.failures + 1 >= TRIES_MAX) {
		recorder->stats.dropped++;
		advance(recorder, false);
		return;
	}
	hf_time delay = hf_backoff_next(&recorder->backoff, &recorder->rng);

	send_soon(recorder, delay > reply->retry_after ? delay : reply->retry_after);
}

static void send_first(void *arg)
{
	struct hf_recorder *recorder = arg;
	struct event *event = recorder->first;
	bool created = event->sent_count > 0;
	HF_AUTO_DOC body = created ? event_patch(event) : event_body(event);
	struct hf_request request = {
		.verb = created ? HF_VERB_PATCH : HF_VERB_CREATE,
		.resource = &hf_events,
		.ns = hf_str_or(event->content->ns, "default"),
		.name = created ? event->name : NULL,
		.body = body,
		.patch_type = HF_PATCH_MERGE,
	};

	recorder->sending_count = event->count;
	recorder->call = hf_store_request(recorder->store, &request, sent, recorder);
}

static void tell_idle(void *arg)
{
	struct hf_recorder *recorder = arg;
	hf_task_fn idle = recorder->idle;

	if (recorder->first != NULL || idle == NULL)
		return;
	recorder->idle = NULL;
	idle(recorder->idle_arg);
}

/* --- public --- */

struct hf_recorder *hf_recorder_create(const struct hf_recorder_options *options)
{
	struct hf_recorder *recorder = hf_xcalloc(1, sizeof(*recorder));

	hf_assert(options->loop != NULL && options->store != NULL && options->component != NULL);
	recorder->loop = options->loop;
	recorder->store = options->store;
	recorder->component = hf_xstrdup(options->component);
	recorder->delay = options->delay;
	recorder->refused = options->refused;
	recorder->refused_arg = options->arg;
	recorder->events = hf_map_create_borrowing(HF_RECORDER_KEYS_MAX, options->seed, event_free);
	recorder->groups = hf_map_create_borrowing(HF_RECORDER_KEYS_MAX, options->seed, free);
	recorder->sources = hf_map_create_borrowing(HF_RECORDER_KEYS_MAX, options->seed, free);
	recorder->last = &recorder->first;
	recorder->timer = hf_timer_create(options->loop, send_first, recorder);
	recorder->idle_task = hf_task_create(options->loop, tell_idle, recorder);
	hf_rng_init(&recorder->rng, options->seed);
	recorder->seed = options->seed;
	recorder->backoff = (struct hf_backoff)HF_BACKOFF_INIT(TRY_MIN, TRY_MAX, 100);
	return recorder;
}

struct hf_recorder *hf_recorder_destroy(struct hf_recorder *recorder)
{
	if (recorder == NULL)
		return NULL;
	hf_call_cancel(recorder->call);
	hf_timer_destroy(recorder->timer);
	hf_task_destroy(recorder->idle_task);
	hf_map_destroy(recorder->events);
	hf_map_destroy(recorder->groups);
	hf_map_destroy(recorder->sources);
	free(recorder->component);
	free(recorder);
	return NULL;
}

static void record_event(struct hf_recorder *recorder, const struct hf_event_note *note,
			 const char *key, const char *message, hf_time now)
{
	const char *component = note->component != NULL ? note->component : recorder->component;
	struct event *event = hf_map_get(recorder->events, key);

	if (event == NULL || !event->queued) {
		if (recorder->n_queued >= HF_RECORDER_QUEUE_MAX) {
			recorder->stats.dropped++;
			return;
		}
	}
	if (event == NULL) {
		event = hf_xcalloc(1, sizeof(*event));
		memcpy(event->key, key, DIGEST_SIZE);
		event->content = content_create(note, component, message);
		event->first = now;
		event_name(recorder, event, now);
		make_room(recorder->events, true);
		bool put = hf_map_put(recorder->events, event->key, event);

		hf_assert(put);
	} else {
		free(event->content);
		event->content = content_create(note, component, message);
	}
	event->count++;
	event->last = now;
	if (!event->queued)
		enqueue(recorder, event);
}

void hf_recorder_record(struct hf_recorder *recorder, const struct hf_event_note *note, hf_time now)
{
	const char *message = or_empty(note->message);
	HF_AUTO_STRBUF key = HF_STRBUF_INIT(KEY_BYTES_MAX);
	char buf[DIGEST_SIZE];
	bool combine;

	recorder->stats.recorded++;
	if (note->routine &&
	    !bucket_take(&recorder->routine_full_at, ROUTINE_REFILL, ROUTINE_BURST, now)) {
		recorder->stats.spared++;
		return;
	}
	key_add(&key, note->component != NULL ? note->component : recorder->component);
	key_add(&key, note->kind);
	key_add(&key, note->ns);
	key_add(&key, note->name);
	key_add(&key, note->uid);
	if (!source_may(recorder, digest(recorder, &key, buf), now)) {
		recorder->stats.spam++;
		return;
	}
	key_add(&key, note->field_path);
	key_add(&key, note->type);
	key_add(&key, note->reason);
	combine = group_is_full(recorder, digest(recorder, &key, buf), message, now);
	if (!combine)
		hf_strbuf_addstr(&key, message);
	HF_AUTOFREE char *cut = message_cut(combine ? COMBINED : "", message);

	record_event(recorder, note, digest(recorder, &key, buf), cut, now);
}

void hf_recorder_drain(struct hf_recorder *recorder, hf_task_fn idle, void *arg)
{
	recorder->idle = idle;
	recorder->idle_arg = arg;
	recorder->delay = 0;
	if (recorder->first == NULL)
		hf_task_post(recorder->idle_task);
	else if (recorder->call == NULL && recorder->backoff.failures == 0)
		hf_timer_arm(recorder->timer, 0);
}

size_t hf_recorder_pending(const struct hf_recorder *recorder)
{
	return recorder->n_queued;
}

const struct hf_recorder_stats *hf_recorder_stats(const struct hf_recorder *recorder)
{
	return &recorder->stats;
}
