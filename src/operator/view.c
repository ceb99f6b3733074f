/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/operator_internal.h"

#include "api/extra_object.h"
#include "api/pod.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

/*
 * Views of pods, services and extra objects.
 * Input: documents. Output: one block of memory each: the struct, the texts of its pointers, and a
 * packed record of everything else.
 * Most fields of a pod are absent, zero, or equal in all pods, and pods are read a thousand times
 * less often than they are held. So a record is a row of small values without names or gaps:
 *   number   zigzag, seven bits a byte, least significant first
 *   time     0: none; 1 and whole seconds; 2 and nanoseconds
 *   text     0: NULL; 1, the bytes and a NUL; else the index of a word in the list below
 * Packing and unpacking name the fields in the same order. Records do not leave the process.
 */

/* Frequent texts of API servers, kubelets and Holdfast's own jobs, each packed as one byte. */
static const char *const words[] = {
	"",
	"True",
	"False",
	"Unknown",
	"Ready",
	"Initialized",
	"PodScheduled",
	"ContainersReady",
	"PodReadyToStartContainers",
	"DisruptionTarget",
	"Unschedulable",
	"SchedulingGated",
	"PodCompleted",
	"ContainersNotReady",
	"ContainersNotInitialized",
	"pytorch",
	"init-pytorch",
	"ContainerCreating",
	"PodInitializing",
	"CrashLoopBackOff",
	"ImagePullBackOff",
	"ErrImagePull",
	"Completed",
	"Error",
	"OOMKilled",
	"PyTorchJob",
	"TFJob",
	"XGBoostJob",
	"PaddleJob",
	"JAXJob",
	"MPIJob",
};
enum { TEXT_NULL, TEXT_BYTES, TEXT_WORDS };
enum { TIME_NONE, TIME_SECONDS, TIME_NANOS };

_Static_assert(TEXT_WORDS + HF_ARRAY_LEN(words) <= 256, "a word's place is one byte");
/* The sizes change when a field is added.  Then pack and unpack the field, and extend view_test. */
_Static_assert(sizeof(struct hf_pod) == 376 && sizeof(struct hf_container_seen) == 120 &&
		       sizeof(struct hf_pod_condition) == 32 &&
		       sizeof(struct hf_service_seen) == 32 && sizeof(struct hf_extra_seen) == 48,
	       "a field that is not packed below is lost");

/* --- packing: a first walk measures (at is NULL), a second writes ----------------------------- */

struct packer {
	unsigned char *at;
	size_t size;
};

static void put_bytes(struct packer *packer, const void *bytes, size_t len)
{
	packer->size += len;
	if (packer->at == NULL)
		return;
	memcpy(packer->at, bytes, len);
	packer->at += len;
}

static void put_byte(struct packer *packer, unsigned value)
{
	unsigned char byte = (unsigned char)value;

	put_bytes(packer, &byte, 1);
}

static void put_number(struct packer *packer, int64_t value)
{
	uint64_t left = ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);

	for (; left >= 128; left >>= 7)
		put_byte(packer, (unsigned)(left & 127) | 128);
	put_byte(packer, (unsigned)left);
}

static void put_time(struct packer *packer, hf_time time)
{
	bool whole = time % HF_SECOND == 0;

	put_byte(packer, time == HF_TIME_NONE ? TIME_NONE : whole ? TIME_SECONDS : TIME_NANOS);
	if (time != HF_TIME_NONE)
		put_number(packer, whole ? time / HF_SECOND : time);
}

static void put_text(struct packer *packer, const char *s)
{
	if (s == NULL) {
		put_byte(packer, TEXT_NULL);
		return;
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(words); i++) {
		if (words[i][0] == s[0] && strcmp(words[i], s) == 0) {
			put_byte(packer, TEXT_WORDS + (unsigned)i);
			return;
		}
	}
	put_byte(packer, TEXT_BYTES);
	put_bytes(packer, s, strlen(s) + 1);
}

static void put_texts(struct packer *packer, const char *const *texts, size_t len)
{
	put_number(packer, (int64_t)len);
	for (size_t i = 0; i < len; i++)
		put_text(packer, texts[i]);
}

static void put_option(struct packer *packer, const struct hf_opt_int *option)
{
	put_byte(packer, option->set);
	if (option->set)
		put_number(packer, option->value);
}

static void put_container(struct packer *packer, const struct hf_container_seen *container)
{
	put_text(packer, container->name);
	put_byte(packer, container->init);
	put_byte(packer, container->again);
	put_number(packer, container->restart_count);
	put_number(packer, container->phase);
	put_text(packer, container->waiting_reason);
	put_text(packer, container->waiting_message);
	put_number(packer, container->exit_code);
	put_number(packer, container->signal);
	put_text(packer, container->terminated_reason);
	put_text(packer, container->terminated_message);
	put_time(packer, container->finished_at);
	put_time(packer, container->started_at);
	put_option(packer, &container->last_exit_code);
	put_number(packer, container->last_signal);
	put_text(packer, container->last_reason);
	put_text(packer, container->last_message);
}

static void put_condition(struct packer *packer, const struct hf_pod_condition *condition)
{
	put_text(packer, condition->type);
	put_text(packer, condition->status);
	put_text(packer, condition->reason);
	put_text(packer, condition->message);
}

static void put_device(struct packer *packer, const struct hf_device_seen *device)
{
	put_text(packer, device->id);
	put_text(packer, device->cls);
	put_byte(packer, device->agent);
	put_byte(packer, device->fatal);
	put_byte(packer, device->over);
	put_byte(packer, device->held);
	put_time(packer, device->first);
	put_time(packer, device->last);
}

static void put_pod(struct packer *packer, const struct hf_pod *pod)
{
	put_text(packer, pod->name);
	put_text(packer, pod->uid);
	put_text(packer, pod->resource_version);
	put_byte(packer, pod->owned);
	put_text(packer, pod->maker);
	put_byte(packer, pod->stamped);
	put_number(packer, pod->generation);
	put_number(packer, pod->attempt);
	put_number(packer, pod->incident);
	put_text(packer, pod->avoids);
	put_text(packer, pod->stopped);
	put_text(packer, pod->spec);
	put_option(packer, &pod->active_deadline_seconds);
	put_option(packer, &pod->grace_seconds);
	put_number(packer, pod->phase);
	put_text(packer, pod->reason);
	put_text(packer, pod->message);
	put_time(packer, pod->creation_time);
	put_time(packer, pod->start_time);
	put_time(packer, pod->deletion_time);
	put_time(packer, pod->deleted_at);
	put_time(packer, pod->bound_at);
	put_option(packer, &pod->tolerates_unreachable);
	put_byte(packer, pod->forced);
	put_texts(packer, pod->claims, pod->claims_len);
	put_texts(packer, pod->finalizers, pod->finalizers_len);
	put_number(packer, (int64_t)pod->containers_len);
	for (size_t i = 0; i < pod->containers_len; i++)
		put_container(packer, &pod->containers[i]);
	put_number(packer, (int64_t)pod->conditions_len);
	for (size_t i = 0; i < pod->conditions_len; i++)
		put_condition(packer, &pod->conditions[i]);
	put_number(packer, (int64_t)pod->devices_len);
	for (size_t i = 0; i < pod->devices_len; i++)
		put_device(packer, &pod->devices[i]);
}

static void put_service(struct packer *packer, const struct hf_service_seen *service)
{
	put_text(packer, service->name);
	put_text(packer, service->uid);
	put_text(packer, service->resource_version);
	put_byte(packer, service->owned);
	put_byte(packer, service->terminating);
}

static void put_extra(struct packer *packer, const struct hf_extra_seen *seen)
{
	put_number(packer, seen->kind);
	put_text(packer, seen->name);
	put_text(packer, seen->uid);
	put_text(packer, seen->resource_version);
	put_byte(packer, seen->owned);
	put_byte(packer, seen->terminating);
	put_byte(packer, seen->ready);
	put_number(packer, (int64_t)seen->digest);
}

/* --- unpacking -------------------------------------------------------------------------------- */

struct unpacker {
	const unsigned char *at;
	struct hf_arena *arena; /* for lists */
};

static bool get_bool(struct unpacker *unpacker)
{
	return *unpacker->at++ != 0;
}

static int64_t get_number(struct unpacker *unpacker)
{
	uint64_t value = 0;
	unsigned char byte;
	unsigned shift = 0;

	do {
		byte = *unpacker->at++;
		value |= (uint64_t)(byte & 127) << shift;
		shift += 7;
	} while (byte >= 128);
	return (int64_t)((value >> 1) ^ ((value & 1) != 0 ? UINT64_MAX : 0));
}

static int32_t get_small(struct unpacker *unpacker)
{
	return (int32_t)get_number(unpacker);
}

static hf_time get_time(struct unpacker *unpacker)
{
	unsigned char kind = *unpacker->at++;

	if (kind == TIME_NONE)
		return HF_TIME_NONE;
	return get_number(unpacker) * (kind == TIME_SECONDS ? HF_SECOND : 1);
}

static const char *get_text(struct unpacker *unpacker)
{
	unsigned char kind = *unpacker->at++;
	const char *text = (const char *)unpacker->at;

	if (kind == TEXT_NULL)
		return NULL;
	if (kind != TEXT_BYTES)
		return words[kind - TEXT_WORDS];
	unpacker->at += strlen(text) + 1;
	return text;
}

static const char *const *get_texts(struct unpacker *unpacker, size_t *ret_len)
{
	size_t len = (size_t)get_number(unpacker);
	const char **texts = len == 0 ? NULL : HF_ARENA_ARRAY(unpacker->arena, const char *, len);

	for (size_t i = 0; i < len; i++)
		texts[i] = get_text(unpacker);
	*ret_len = len;
	return texts;
}

static struct hf_opt_int get_option(struct unpacker *unpacker)
{
	struct hf_opt_int option = {.set = get_bool(unpacker)};

	if (option.set)
		option.value = get_number(unpacker);
	return option;
}

static void get_container(struct unpacker *unpacker, struct hf_container_seen *container)
{
	container->name = get_text(unpacker);
	container->init = get_bool(unpacker);
	container->again = (enum hf_container_again) * unpacker->at++;
	container->restart_count = get_small(unpacker);
	container->phase = (enum hf_container_phase)get_number(unpacker);
	container->waiting_reason = get_text(unpacker);
	container->waiting_message = get_text(unpacker);
	container->exit_code = get_small(unpacker);
	container->signal = get_small(unpacker);
	container->terminated_reason = get_text(unpacker);
	container->terminated_message = get_text(unpacker);
	container->finished_at = get_time(unpacker);
	container->started_at = get_time(unpacker);
	container->last_exit_code = get_option(unpacker);
	container->last_signal = get_small(unpacker);
	container->last_reason = get_text(unpacker);
	container->last_message = get_text(unpacker);
}

static void get_condition(struct unpacker *unpacker, struct hf_pod_condition *condition)
{
	condition->type = get_text(unpacker);
	condition->status = get_text(unpacker);
	condition->reason = get_text(unpacker);
	condition->message = get_text(unpacker);
}

static void get_devices(struct unpacker *unpacker, struct hf_pod *pod)
{
	struct hf_device_seen *devices;

	pod->devices_len = (size_t)get_number(unpacker);
	if (pod->devices_len == 0)
		return;
	devices = HF_ARENA_ARRAY(unpacker->arena, struct hf_device_seen, pod->devices_len);
	for (size_t i = 0; i < pod->devices_len; i++) {
		devices[i] = (struct hf_device_seen){.id = get_text(unpacker)};
		devices[i].cls = get_text(unpacker);
		devices[i].agent = get_bool(unpacker);
		devices[i].fatal = get_bool(unpacker);
		devices[i].over = get_bool(unpacker);
		devices[i].held = get_bool(unpacker);
		devices[i].first = get_time(unpacker);
		devices[i].last = get_time(unpacker);
	}
	pod->devices = devices;
}

static void get_lists(struct unpacker *unpacker, struct hf_pod *pod)
{
	struct hf_container_seen *containers;
	struct hf_pod_condition *conditions;

	pod->claims = get_texts(unpacker, &pod->claims_len);
	pod->finalizers = get_texts(unpacker, &pod->finalizers_len);
	pod->containers_len = (size_t)get_number(unpacker);
	containers = HF_ARENA_ARRAY(unpacker->arena, struct hf_container_seen, pod->containers_len);
	for (size_t i = 0; i < pod->containers_len; i++)
		get_container(unpacker, &containers[i]);
	pod->containers = containers;
	pod->conditions_len = (size_t)get_number(unpacker);
	conditions = HF_ARENA_ARRAY(unpacker->arena, struct hf_pod_condition, pod->conditions_len);
	for (size_t i = 0; i < pod->conditions_len; i++)
		get_condition(unpacker, &conditions[i]);
	pod->conditions = conditions;
	get_devices(unpacker, pod);
}

static struct unpacker record_of(const struct hf_view *view, struct hf_arena *arena)
{
	return (struct unpacker){.at = view->bytes + view->record, .arena = arena};
}

void hf_view_pod(const struct hf_view *view, struct hf_arena *arena, struct hf_pod *ret_pod)
{
	struct unpacker unpacker = record_of(view, arena);
	struct hf_pod pod = {.node = view->node,
			     .news_at = view->news_at,
			     .unwell_at = view->unwell_at,
			     .own_ended_at = view->own_ended_at};

	pod.name = get_text(&unpacker);
	pod.uid = get_text(&unpacker);
	pod.resource_version = get_text(&unpacker);
	pod.owned = get_bool(&unpacker);
	pod.maker = get_text(&unpacker);
	pod.stamped = get_bool(&unpacker);
	pod.generation = get_number(&unpacker);
	pod.attempt = get_number(&unpacker);
	pod.incident = get_number(&unpacker);
	pod.avoids = get_text(&unpacker);
	pod.stopped = get_text(&unpacker);
	pod.spec = get_text(&unpacker);
	pod.active_deadline_seconds = get_option(&unpacker);
	pod.grace_seconds = get_option(&unpacker);
	pod.phase = (enum hf_pod_phase)get_number(&unpacker);
	pod.reason = get_text(&unpacker);
	pod.message = get_text(&unpacker);
	pod.creation_time = get_time(&unpacker);
	pod.start_time = get_time(&unpacker);
	pod.deletion_time = get_time(&unpacker);
	pod.deleted_at = get_time(&unpacker);
	pod.bound_at = get_time(&unpacker);
	pod.tolerates_unreachable = get_option(&unpacker);
	pod.forced = get_bool(&unpacker);
	get_lists(&unpacker, &pod);
	*ret_pod = pod;
}

void hf_view_service(const struct hf_view *view, struct hf_service_seen *ret_service)
{
	struct unpacker unpacker = record_of(view, NULL);

	*ret_service = (struct hf_service_seen){.name = get_text(&unpacker)};
	ret_service->uid = get_text(&unpacker);
	ret_service->resource_version = get_text(&unpacker);
	ret_service->owned = get_bool(&unpacker);
	ret_service->terminating = get_bool(&unpacker);
}

void hf_view_extra(const struct hf_view *view, struct hf_extra_seen *ret_seen)
{
	struct unpacker unpacker = record_of(view, NULL);

	*ret_seen = (struct hf_extra_seen){.kind = (enum hf_extra_kind)get_number(&unpacker)};
	ret_seen->name = get_text(&unpacker);
	ret_seen->uid = get_text(&unpacker);
	ret_seen->resource_version = get_text(&unpacker);
	ret_seen->owned = get_bool(&unpacker);
	ret_seen->terminating = get_bool(&unpacker);
	ret_seen->ready = get_bool(&unpacker);
	ret_seen->digest = (uint64_t)get_number(&unpacker);
}

/* --- life ------------------------------------------------------------------------------------- */

/* Allocate a view with the two texts and `size` bytes of packed record behind them. */
static struct hf_view *view_create(const char *controller_uid, const char *node, size_t size,
				   struct packer *ret_packer)
{
	size_t uid_size = controller_uid == NULL ? 0 : strlen(controller_uid) + 1;
	size_t node_size = node == NULL ? 0 : strlen(node) + 1;
	struct hf_view *view = hf_xmalloc(sizeof(*view) + uid_size + node_size + size);
	unsigned char *node_at = view->bytes + uid_size;

	*view = (struct hf_view){.refs = 1,
				 .news_at = HF_TIME_NONE,
				 .unwell_at = HF_TIME_NONE,
				 .own_ended_at = HF_TIME_NONE};
	view->record = (uint32_t)(uid_size + node_size);
	if (uid_size > 0)
		view->controller_uid = memcpy(view->bytes, controller_uid, uid_size);
	if (node_size > 0)
		view->node = memcpy(node_at, node, node_size);
	*ret_packer = (struct packer){.at = view->bytes + view->record};
	return view;
}

struct hf_view *hf_view_of_pod(struct hf_doc *doc, struct hf_arena *scratch)
{
	struct packer packer = {.at = NULL};
	struct hf_view *view;
	struct hf_pod pod;
	const char *uid = hf_pod_read(doc, NULL, scratch, &pod);

	put_pod(&packer, &pod);
	view = view_create(uid, pod.node, packer.size, &packer);
	view->news_at = pod.news_at;
	view->unwell_at = pod.unwell_at;
	view->own_ended_at = pod.own_ended_at;
	put_pod(&packer, &pod);
	return view;
}

struct hf_view *hf_view_of_service(struct hf_doc *doc, struct hf_arena *scratch)
{
	struct packer packer = {.at = NULL};
	struct hf_service_seen service;
	struct hf_view *view;
	const char *uid = hf_service_read(doc, NULL, scratch, &service);

	put_service(&packer, &service);
	view = view_create(uid, NULL, packer.size, &packer);
	put_service(&packer, &service);
	return view;
}

struct hf_view *hf_view_of_extra(struct hf_doc *doc, enum hf_extra_kind kind,
				 struct hf_arena *scratch)
{
	struct packer packer = {.at = NULL};
	struct hf_extra_seen seen;
	struct hf_view *view;
	const char *uid = hf_extra_read(doc, kind, NULL, scratch, &seen);

	put_extra(&packer, &seen);
	view = view_create(uid, NULL, packer.size, &packer);
	put_extra(&packer, &seen);
	return view;
}

/* --- comparing -------------------------------------------------------------------------------- */

/* A condition that the kubelet writes on the way to Ready.  Policies name such conditions only for
 * pods that have failed. */
static bool is_passing_condition(const char *type)
{
	return hf_streq(type, "Initialized") || hf_streq(type, "ContainersReady") ||
	       hf_streq(type, "PodReadyToStartContainers");
}

/* Pack what a step reads of a pod that has not ended, to compare two views. */
static unsigned char *pack_pod(const struct hf_view *view, struct hf_arena *arena,
			       struct packer *ret_size)
{
	struct hf_pod_condition *conditions;
	struct packer packer;
	unsigned char *record;
	struct hf_pod pod;

	hf_view_pod(view, arena, &pod);
	pod.resource_version = NULL;
	conditions = HF_ARENA_ARRAY(arena, struct hf_pod_condition, pod.conditions_len + 1);
	for (size_t i = 0, n = pod.conditions_len; i < n; i++) {
		if (i == 0)
			pod.conditions_len = 0;
		if (!is_passing_condition(pod.conditions[i].type))
			conditions[pod.conditions_len++] = pod.conditions[i];
	}
	pod.conditions = conditions;
	*ret_size = (struct packer){.at = NULL};
	put_pod(ret_size, &pod);
	packer.size = 0;
	packer.at = record = HF_ARENA_ARRAY(arena, unsigned char, ret_size->size);
	put_pod(&packer, &pod);
	return record;
}

bool hf_view_is_same_pod(const struct hf_view *a, const struct hf_view *b, struct hf_arena *scratch)
{
	struct packer sizes[2];
	const unsigned char *records[2];

	if (!hf_streq(a->controller_uid, b->controller_uid) || !hf_streq(a->node, b->node) ||
	    a->news_at != b->news_at || a->unwell_at != b->unwell_at ||
	    a->own_ended_at != b->own_ended_at)
		return false;
	records[0] = pack_pod(a, scratch, &sizes[0]);
	records[1] = pack_pod(b, scratch, &sizes[1]);
	return sizes[0].size == sizes[1].size && memcmp(records[0], records[1], sizes[0].size) == 0;
}

/* --- references ------------------------------------------------------------------------------- */

struct hf_view *hf_view_ref(struct hf_view *view)
{
	view->refs++;
	return view;
}

void hf_view_unref(void *arg)
{
	struct hf_view *view = arg;

	if (view != NULL && --view->refs == 0)
		free(view);
}

void hf_views_release(struct hf_views *views)
{
	for (size_t i = 0; i < views->len; i++)
		hf_view_unref(views->items[i]);
	HF_VEC_RELEASE(views);
}
