/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Writes core/v1 Events about objects. Input: notes about objects; output: creates and patches of
 * Event objects, one at a time.
 *
 * A note passes three filters: the limit for routine events, the limit for each object, and the
 * combination of similar events. Then it waits in the send queue.
 *
 * Invariants: only the first event of the queue is in flight. An event's content is kept only while
 * the event waits to be sent.
 */
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

/* client-go's constants (tools/record/events_cache.go, event.go). */
/* Most different messages in a group; further events of the group are combined. */
#define ALIKE_MAX 10
#define ALIKE_WINDOW (10 * HF_MINUTE)
#define SPAM_BURST 25
#define SPAM_REFILL (5 * HF_MINUTE)
/* Holdfast's own limit for routine events. Each event is a write to etcd, as large as a status, and
 * etcd keeps it for an hour. */
#define ROUTINE_BURST 256
#define ROUTINE_REFILL HF_SECOND
#define TRIES_MAX 12
#define TRY_MIN HF_SECOND
#define TRY_MAX (10 * HF_SECOND)
/* Bytes of the object's name, so that ".<16 hex digits>" fits into 253. */
#define NAME_MAX_BYTES 236
#define KEY_BYTES_MAX 8192
/* Thousands of keys are remembered as hashes of 128 bits, which takes less memory than their
 * texts. */
#define DIGEST_SIZE 33
#define COMBINED "(combined from similar events): "

/* The content of an Event, in one block of memory. It is freed after the write, because recording
 * the same event again brings the same content again. */
struct content {
	const char *api_version, *kind, *ns, *object, *uid, *object_version, *field_path;
	const char *type, *reason, *component, *message;
	char text[];
};

/* One Event object: the state that is to be written, and what is known about the stored state. */
struct event {
	struct event *next; /* in the send queue */
	/* What to write; NULL: the stored Event has this content already. */
	struct content *content;
	char *name; /* name of the Event */
	hf_time first, last;
	int64_t count, sent_count; /* sent_count 0: not created yet */
	bool queued;               /* true: the event waits in the queue or is being sent */
	bool unsure;               /* a create timed out, so the Event may exist */
	char key[DIGEST_SIZE];
};

/* A group: events that are equal except for the message. */
struct group {
	/* must be the first member: find_or_create fills in the key */
	char key[DIGEST_SIZE];
	uint64_t messages[ALIKE_MAX]; /* hashes of the messages */
	size_t n_messages;
	hf_time last;
};

/* The object of an event, with its token bucket. The bucket is kept as one time: when it will be
 * full again. */
struct source {
	char key[DIGEST_SIZE]; /* must be the first member: find_or_create fills in the key */
	hf_time full_at;
};

struct hf_recorder {
	struct hf_loop *loop;
	struct hf_store *store;
	char *component;
	struct hf_map *events, *groups, *sources;
	struct event *first, **last; /* the send queue; the first event may be in flight */
	size_t n_queued;
	struct hf_call *call;
	struct hf_timer *timer; /* armed: time of the next send */
	struct hf_rng rng;
	uint64_t seed;
	struct hf_backoff backoff;
	hf_time delay;
	int64_t sending_count;
	hf_time last_stamp;
	struct hf_task *idle_task;
	hf_task_fn idle;
	void *idle_arg;
	/* The time when the token bucket of routine events is full again. */
	hf_time routine_full_at;
	struct hf_recorder_stats stats;
	void (*refused)(void *arg, int code, const char *message);
	void (*recorded)(void *arg, const struct hf_event_note *note, hf_time now);
	void *arg;                /* of refused and recorded */
	bool refused_reported[2]; /* already reported: patches [1], creates [0] */
};

static void free_event(void *value)
{
	struct event *event = value;

	free(event->name);
	free(event->content);
	free(event);
}

/* --- correlation --- */

/* Makes room for one more key: removes the oldest one, but never an event that waits to be sent. */
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
	/* The loop has always found a key: fewer events can wait than keys are remembered. So this
	 * assert fails if it is ever reached. */
	hf_assert(HF_RECORDER_QUEUE_MAX >= HF_RECORDER_KEYS_MAX);
}

/* Finds a group or a source by key, or creates a new entry. Both structs begin with the key. */
static void *find_or_create(struct hf_map *map, const char *key, size_t size)
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

/* True if the group has too many messages; the caller then combines the event with similar ones. */
static bool is_group_full(struct hf_recorder *recorder, const char *key, const char *message,
			  hf_time now)
{
	struct group *group = find_or_create(recorder->groups, key, sizeof(*group));
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

/* Takes a token from a bucket; false if the bucket is empty. */
static bool take_token(hf_time *full_at, hf_time refill, int burst, hf_time now)
{
	if (*full_at < now)
		*full_at = now;
	if (*full_at + refill > now + burst * refill)
		return false;
	*full_at += refill;
	return true;
}

static bool take_source_token(struct hf_recorder *recorder, const char *key, hf_time now)
{
	struct source *source = find_or_create(recorder->sources, key, sizeof(*source));

	return take_token(&source->full_at, SPAM_REFILL, SPAM_BURST, now);
}

static const char *or_empty(const char *s)
{
	return s == NULL ? "" : s;
}

/* Appends one part and a separator. The separator cannot be part of a name, kind or reason. */
static void add_key_part(struct hf_strbuf *sb, const char *part)
{
	hf_strbuf_addstr(sb, or_empty(part));
	hf_strbuf_addch(sb, '\n');
}

static const char *hash_key(const struct hf_recorder *recorder, const struct hf_strbuf *key,
			    char buf[DIGEST_SIZE])
{
	snprintf(buf, DIGEST_SIZE, "%016llx%016llx",
		 (unsigned long long)hf_siphash(recorder->seed, key->data, key->len),
		 (unsigned long long)hf_siphash(~recorder->seed, key->data, key->len));
	return buf;
}

static char *cut_message(const char *prefix, const char *message)
{
	size_t prefix_len = strlen(prefix), len = strlen(message);
	size_t room = HF_RECORDER_MESSAGE_MAX - prefix_len;
	char *text;

	if (len > room) {
		len = room - 3;
		/* Do not cut inside a character: step back over UTF-8's continuation bytes. */
		while (len > 0 && ((unsigned char)message[len] & 0xc0) == 0x80)
			len--;
		HF_AUTOFREE char *cut = hf_xstrndup(message, len);

		text = hf_xasprintf("%s%s...", prefix, cut);
	} else {
		text = hf_xasprintf("%s%s", prefix, message);
	}
	return text;
}

static const char *copy_text(char **at, const char *s)
{
	const char *start = *at;
	size_t size = strlen(s) + 1;

	memcpy(*at, s, size);
	*at += size;
	return start;
}

static struct content *create_content(const struct hf_event_note *note, const char *component,
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
	content->api_version = copy_text(&at, texts[0]);
	content->kind = copy_text(&at, texts[1]);
	content->ns = copy_text(&at, texts[2]);
	content->object = copy_text(&at, texts[3]);
	content->uid = copy_text(&at, texts[4]);
	content->object_version = copy_text(&at, texts[5]);
	content->field_path = copy_text(&at, texts[6]);
	content->type = copy_text(&at, texts[7]);
	content->reason = copy_text(&at, texts[8]);
	content->component = copy_text(&at, texts[9]);
	content->message = copy_text(&at, texts[10]);
	return content;
}

/* Gives the event a name that is unique in this process: the name has a time stamp, and no stamp is
 * used twice. */
static void set_event_name(struct hf_recorder *recorder, struct event *event, hf_time now)
{
	hf_time stamp = now > recorder->last_stamp ? now : recorder->last_stamp + 1;
	HF_AUTOFREE char *object = hf_xstrndup(event->content->object, NAME_MAX_BYTES);

	recorder->last_stamp = stamp;
	free(event->name);
	event->name = hf_xasprintf("%s.%016llx", object, (unsigned long long)stamp);
}

/* --- sending --- */

static void schedule_send(struct hf_recorder *recorder, hf_time after)
{
	if (recorder->first != NULL && recorder->call == NULL && !hf_timer_armed(recorder->timer))
		hf_timer_arm(recorder->timer, after);
}

static void enqueue_event(struct hf_recorder *recorder, struct event *event)
{
	event->queued = true;
	event->next = NULL;
	*recorder->last = event;
	recorder->last = &event->next;
	recorder->n_queued++;
	schedule_send(recorder, recorder->delay);
}

/* Removes the first event from the queue after its write. If the event changed meanwhile, it goes
 * to the end of the queue. */
static void finish_first(struct hf_recorder *recorder, bool keep)
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
		enqueue_event(recorder, event);
	else
		free(hf_steal(&event->content));
	schedule_send(recorder, 0);
	if (recorder->first == NULL && recorder->idle != NULL)
		hf_task_post(recorder->idle_task);
}

static struct hf_doc *make_event(const struct event *event)
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

static struct hf_doc *make_event_patch(const struct event *event)
{
	struct hf_json *root = hf_json_object();
	char last[HF_TIME_TEXT_MAX];

	hf_time_format(event->last, last);
	hf_json_set_i64(root, "count", event->count);
	hf_json_set_str(root, "lastTimestamp", last);
	hf_json_set_str(root, "message", event->content->message);
	return hf_doc_from_json(root);
}

static bool is_transient(int code)
{
	return code == HF_E_TIMEOUT || code == HF_E_UNAVAILABLE || code == HF_E_TOO_MANY ||
	       code == HF_E_INTERNAL || code == HF_E_IO || code == HF_E_CONFLICT;
}

/* Reports a refused write. Without the right to write events, every write is refused; only the
 * first is reported. */
static void report_refused(struct hf_recorder *recorder, bool created, const struct hf_reply *reply)
{
	if (recorder->refused != NULL && !recorder->refused_reported[created])
		recorder->refused(recorder->arg, reply->code, reply->message);
	recorder->refused_reported[created] = true;
}

static void on_sent(void *arg, const struct hf_reply *reply)
{
	struct hf_recorder *recorder = arg;
	struct event *event = recorder->first;
	bool created = event->sent_count > 0;
	int code = reply->code;

	recorder->call = NULL;
	if (!created && code == HF_E_EXISTS && event->unsure)
		code = 0; /* the event exists, so the create that timed out has succeeded */
	if (code == 0) {
		event->sent_count = recorder->sending_count;
		*(created ? &recorder->stats.patched : &recorder->stats.created) += 1;
		recorder->refused_reported[created] = false;
		finish_first(recorder, true);
		return;
	}
	event->unsure = event->unsure || code == HF_E_TIMEOUT;
	if (created && code == HF_E_NOT_FOUND) {
		event->sent_count = 0; /* the Event expired: create it again */
		event->unsure = false;
	} else if (!created && code == HF_E_EXISTS) {
		set_event_name(recorder, event, recorder->last_stamp);
	} else if (!is_transient(code)) {
		recorder->stats.dropped++;
		report_refused(recorder, created, reply);
		finish_first(recorder, false);
		return;
	}
	if (recorder->backoff.failures + 1 >= TRIES_MAX) {
		recorder->stats.dropped++;
		finish_first(recorder, false);
		return;
	}
	hf_time delay = hf_backoff_next(&recorder->backoff, &recorder->rng);

	schedule_send(recorder, delay > reply->retry_after ? delay : reply->retry_after);
}

static void send_first(void *arg)
{
	struct hf_recorder *recorder = arg;
	struct event *event = recorder->first;
	bool created = event->sent_count > 0;
	HF_AUTO_DOC body = created ? make_event_patch(event) : make_event(event);
	struct hf_request request = {
		.verb = created ? HF_VERB_PATCH : HF_VERB_CREATE,
		.resource = &hf_events,
		.ns = hf_str_or(event->content->ns, "default"),
		.name = created ? event->name : NULL,
		.body = body,
		.patch_type = HF_PATCH_MERGE,
	};

	recorder->sending_count = event->count;
	recorder->call = hf_store_request(recorder->store, &request, on_sent, recorder);
}

static void call_idle(void *arg)
{
	struct hf_recorder *recorder = arg;
	hf_task_fn idle = recorder->idle;

	if (recorder->first != NULL || idle == NULL)
		return;
	recorder->idle = NULL;
	idle(recorder->idle_arg);
}

/* --- public functions --- */

struct hf_recorder *hf_recorder_create(const struct hf_recorder_options *options)
{
	struct hf_recorder *recorder = hf_xcalloc(1, sizeof(*recorder));

	hf_assert(options->loop != NULL && options->store != NULL && options->component != NULL);
	recorder->loop = options->loop;
	recorder->store = options->store;
	recorder->component = hf_xstrdup(options->component);
	recorder->delay = options->delay;
	recorder->refused = options->refused;
	recorder->recorded = options->recorded;
	recorder->arg = options->arg;
	recorder->events = hf_map_create_borrowing(HF_RECORDER_KEYS_MAX, options->seed, free_event);
	recorder->groups = hf_map_create_borrowing(HF_RECORDER_KEYS_MAX, options->seed, free);
	recorder->sources = hf_map_create_borrowing(HF_RECORDER_KEYS_MAX, options->seed, free);
	recorder->last = &recorder->first;
	recorder->timer = hf_timer_create(options->loop, send_first, recorder);
	recorder->idle_task = hf_task_create(options->loop, call_idle, recorder);
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
		event->content = create_content(note, component, message);
		event->first = now;
		set_event_name(recorder, event, now);
		make_room(recorder->events, true);
		bool put = hf_map_put(recorder->events, event->key, event);

		hf_assert(put);
	} else {
		free(event->content);
		event->content = create_content(note, component, message);
	}
	event->count++;
	event->last = now;
	if (!event->queued)
		enqueue_event(recorder, event);
}

void hf_recorder_record(struct hf_recorder *recorder, const struct hf_event_note *note, hf_time now)
{
	const char *message = or_empty(note->message);
	HF_AUTO_STRBUF key = HF_STRBUF_INIT(KEY_BYTES_MAX);
	char buf[DIGEST_SIZE];
	bool combine;

	recorder->stats.recorded++;
	if (note->routine &&
	    !take_token(&recorder->routine_full_at, ROUTINE_REFILL, ROUTINE_BURST, now)) {
		recorder->stats.spared++;
		return;
	}
	add_key_part(&key, note->component != NULL ? note->component : recorder->component);
	add_key_part(&key, note->kind);
	add_key_part(&key, note->ns);
	add_key_part(&key, note->name);
	add_key_part(&key, note->uid);
	if (!take_source_token(recorder, hash_key(recorder, &key, buf), now)) {
		recorder->stats.spam++;
		return;
	}
	add_key_part(&key, note->field_path);
	add_key_part(&key, note->type);
	add_key_part(&key, note->reason);
	combine = is_group_full(recorder, hash_key(recorder, &key, buf), message, now);
	if (!combine)
		hf_strbuf_addstr(&key, message);
	HF_AUTOFREE char *cut = cut_message(combine ? COMBINED : "", message);

	record_event(recorder, note, hash_key(recorder, &key, buf), cut, now);
	if (recorder->recorded != NULL)
		recorder->recorded(recorder->arg, note, now);
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
