/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Joins the kubelet's list of holdings with a cache of the node's pods.
 * Input: holdings, watch events.  Output: a sorted list of holders, and questions to the kubelet.
 * Invariant: a name in the kubelet's list counts for a pod only if the pod existed when the agent asked the kubelet.
 */
#include "agent/holders.h"

#include "api/device_health.h"
#include "api/lifetime.h"
#include "base/mem.h"
#include "base/str.h"
#include "ctl/cache.h"
#include "json/json.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most pods in the cache: three times the kubelet's default limit and more, with room for ended pods. */
#define PODS_MAX 2048
#define FIELD_MAX 300
#define ANNOTATION_HASH "kubernetes.io/config.hash"
#define ANNOTATION_MIRROR "kubernetes.io/config.mirror"

struct hf_holders {
	struct hf_holders_options options;
	struct hf_cache *cache;
	struct hf_holder *items;
	size_t len;
	uint64_t version;
};

/* ---- the pods of the node, from the API server ----------------------------------------------- */

static uint64_t count_ends(const struct hf_json *statuses)
{
	uint64_t ends = 0;

	for (size_t i = 0; i < hf_json_len(statuses); i++) {
		const struct hf_json *one = hf_json_item(statuses, i);

		ends += (uint64_t)hf_json_i64(hf_json_get(one, "restartCount"), 0);
		ends += hf_json_path(one, "state", "terminated", NULL) != NULL;
	}
	return ends;
}

/* A number that grows with each change of the containers: 1 while a container waits, 2 while it runs, 3 when it
 * has ended and waits again, … */
static uint64_t count_moves(const struct hf_json *statuses)
{
	uint64_t moves = 0;

	for (size_t i = 0; i < hf_json_len(statuses); i++) {
		const struct hf_json *one = hf_json_item(statuses, i);

		moves += 1 + 2 * (uint64_t)hf_json_i64(hf_json_get(one, "restartCount"), 0);
		moves += hf_json_path(one, "state", "running", NULL) != NULL;
		if (hf_json_path(one, "state", "terminated", NULL) != NULL)
			moves += 2;
	}
	return moves;
}

static void read_condition(struct hf_holder_pod *pod, const struct hf_json *conditions)
{
	for (size_t i = 0; i < hf_json_len(conditions); i++) {
		const struct hf_json *one = hf_json_item(conditions, i);

		if (!hf_streq(hf_json_path_str(one, "type", NULL), HF_POD_COND_DEVICE_HEALTHY))
			continue;
		pod->condition = hf_streq(hf_json_path_str(one, "status", NULL), "True")
					 ? HF_POD_WELL
					 : HF_POD_SICK;
		snprintf(pod->reason, sizeof(pod->reason), "%s",
			 hf_json_str(hf_json_get(one, "reason"), ""));
		snprintf(pod->message, sizeof(pod->message), "%s",
			 hf_json_str(hf_json_get(one, "message"), ""));
	}
}

/* Whether the text is a hash by which kubelets know static pods.  Any creator of pods may write these annotations.
 * But no UID of an API server looks like this hash, and kubelets soon delete a pod that falsely claims to mirror
 * one of their static pods. */
static bool is_hash(const char *text)
{
	return text != NULL && strlen(text) == HF_POD_HASH_MAX - 1 &&
	       strspn(text, "0123456789abcdef") == HF_POD_HASH_MAX - 1;
}

static void read_hash(struct hf_holder_pod *pod, const struct hf_json *object)
{
	const struct hf_json *annotations = hf_json_path(object, "metadata", "annotations", NULL);
	const char *hash = hf_json_str(hf_json_get(annotations, ANNOTATION_HASH), NULL);
	const char *mirror = hf_json_str(hf_json_get(annotations, ANNOTATION_MIRROR), NULL);

	if (is_hash(hash) && hf_streq(hash, mirror))
		memcpy(pod->hash, hash, sizeof(pod->hash));
}

static void *decode_pod(void *arg, struct hf_doc *doc)
{
	const struct hf_holders *h = arg;
	const struct hf_json *status = hf_json_get(hf_doc_json(doc), "status");
	const struct hf_json *mains = hf_json_get(status, "containerStatuses");
	const struct hf_json *inits = hf_json_get(status, "initContainerStatuses");
	struct hf_holder_pod *pod = hf_xcalloc(1, sizeof(*pod));

	pod->seen_at = h->options.now(h->options.arg);
	pod->ends = count_ends(mains) + count_ends(inits);
	pod->moves = count_moves(mains) + count_moves(inits);
	pod->over = hf_has_pod_ended(hf_doc_json(doc));
	pod->of_node = hf_is_pod_of_node(hf_doc_json(doc));
	read_hash(pod, hf_doc_json(doc));
	read_condition(pod, hf_json_get(status, "conditions"));
	hf_pod_rank_read(hf_doc_json(doc), &pod->rank);
	hf_doc_drop_tree(doc);
	return pod;
}

static bool is_held(const struct hf_holders *h, const struct hf_cache_entry *pod)
{
	for (size_t i = 0; i < h->len; i++)
		if (hf_streq(h->items[i].holding.pod, pod->name) &&
		    hf_streq(h->items[i].holding.ns, pod->ns))
			return true;
	return false;
}

static void on_pod(void *arg, enum hf_cache_change change, const struct hf_cache_entry *before,
		   const struct hf_cache_entry *now)
{
	struct hf_holders *h = arg;
	const struct hf_holder_pod *was = before != NULL ? before->view : NULL;
	struct hf_holder_pod *is = now != NULL ? now->view : NULL;

	/* A pod with another UID would be another entry, so this is the same pod. */
	if (is && was)
		is->seen_at = was->seen_at;
	if (is && (!was || is->moves > was->moves || is->over != was->over))
		h->options.ask(h->options.arg);
	if (change == HF_CACHE_DELETED ? is_held(h, before)
				       : is && was && is->ends > was->ends && is_held(h, now))
		h->options.ended(h->options.arg);
	h->options.changed(h->options.arg);
}

static void on_problem(void *arg, int code, const char *message)
{
	const struct hf_holders *h = arg;

	h->options.problem(h->options.arg, code, message);
}

struct hf_holders *hf_holders_create(const struct hf_holders_options *options)
{
	struct hf_holders *h = hf_xcalloc(1, sizeof(*h));
	char selector[FIELD_MAX];
	struct hf_cache_options cache = {
		.loop = options->loop,
		.store = options->store,
		.resource = &hf_pods,
		.field_selector = selector,
		.seed = options->seed,
		.entries_max = PODS_MAX,
		.decode = decode_pod,
		.view_free = free,
		.changed = on_pod,
		.problem = on_problem,
		.arg = h,
	};

	h->options = *options;
	h->options.node = NULL;
	snprintf(selector, sizeof(selector), "spec.nodeName=%s", options->node);
	h->cache = hf_cache_create(&cache);
	return h;
}

struct hf_holders *hf_holders_destroy(struct hf_holders *h)
{
	if (h == NULL)
		return NULL;
	hf_cache_destroy(h->cache);
	free(h->items);
	free(h);
	return NULL;
}

void hf_holders_start(struct hf_holders *h)
{
	hf_cache_start(h->cache);
}

/* Finds the mirror of the static pod.  Of several mirrors the one that was seen first counts. */
static const struct hf_cache_entry *find_mirror(const struct hf_holders *h, const char *hash)
{
	const struct hf_cache_entry *pod, *first = NULL;
	hf_time seen_at = HF_TIME_NONE;

	if (!is_hash(hash))
		return NULL;
	for (size_t it = 0; (pod = hf_cache_next(h->cache, &it)) != NULL;) {
		const struct hf_holder_pod *view = pod->view;

		if (!hf_streq(view->hash, hash) || (first != NULL && view->seen_at >= seen_at))
			continue;
		first = pod;
		seen_at = view->seen_at;
	}
	return first;
}

static const struct hf_cache_entry *pod_with(const struct hf_holders *h, const char *uid)
{
	const struct hf_cache_entry *pod;

	for (size_t it = 0; (pod = hf_cache_next(h->cache, &it)) != NULL;)
		if (hf_streq(pod->uid, uid))
			return pod;
	return find_mirror(h, uid);
}

bool hf_holders_rank(const struct hf_holders *h, const char *uid, struct hf_pod_name *ret_name,
		     const struct hf_pod_rank **ret_rank)
{
	const struct hf_cache_entry *pod = pod_with(h, uid);
	const struct hf_holder_pod *view;

	if (pod == NULL)
		return false;
	view = pod->view;
	*ret_name = (struct hf_pod_name){pod->ns, pod->name, pod->uid};
	*ret_rank = &view->rank;
	return true;
}

bool hf_holders_name(const struct hf_holders *h, const char *uid, struct hf_pod_name *ret_name)
{
	const struct hf_pod_rank *rank;

	return hf_holders_rank(h, uid, ret_name, &rank);
}

/* ---- the kubelet's list of devices and their holders ------------------------------------------ */

static void forget_old(struct hf_holders *h, hf_time now)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->len; i++) {
		if (h->items[i].until != HF_TIME_NONE && now - h->items[i].until > HF_HOLDER_KEPT)
			continue;
		if (kept != i)
			h->items[kept] = h->items[i];
		kept++;
	}
	h->len = kept;
}

/* The pod that the kubelet's entry is about; NULL: no pod of this name existed when the agent asked the kubelet. */
static const struct hf_cache_entry *find_holding_pod(const struct hf_holders *h,
						     const struct hf_holding *holding,
						     hf_time asked_at)
{
	const struct hf_cache_entry *pod = hf_cache_get(h->cache, holding->ns, holding->pod);
	const struct hf_holder_pod *view = pod != NULL ? pod->view : NULL;

	return view != NULL && view->seen_at <= asked_at ? pod : NULL;
}

/* Before Kubernetes 1.34 the kubelet names a pod that has ended until the pod is deleted, or its device is given away. */
static bool has_ended(const struct hf_holders *h, const struct hf_holding *holding,
		      hf_time asked_at)
{
	const struct hf_cache_entry *pod = find_holding_pod(h, holding, asked_at);
	const struct hf_holder_pod *view = pod != NULL ? pod->view : NULL;

	return view != NULL && view->over;
}

/* Makes room: drops the oldest holder that has let go of its device, or else the oldest of all. */
static void drop_oldest_holder(struct hf_holders *h)
{
	size_t at = 0;

	while (at < h->len && h->items[at].until == HF_TIME_NONE)
		at++;
	if (at == h->len)
		at = 0;
	h->len--;
	memmove(h->items + at, h->items + at + 1, (h->len - at) * sizeof(*h->items));
}

static void name_holder(struct hf_holder *holder, const struct hf_cache_entry *pod)
{
	const struct hf_holder_pod *view = pod->view;

	snprintf(holder->uid, sizeof(holder->uid), "%s", pod->uid);
	memcpy(holder->hash, view->hash, sizeof(holder->hash));
	holder->of_node = view->of_node;
}

/* Whether the holder may get the UID of the pod: the holder has no UID yet, or it is a static pod with a mirror
 * that was created again. */
static bool may_be_named(const struct hf_holder *holder, const struct hf_cache_entry *pod)
{
	const struct hf_holder_pod *view = pod->view;

	return holder->uid[0] == '\0' ||
	       (holder->hash[0] != '\0' && hf_streq(holder->hash, view->hash));
}

static void add_holder(struct hf_holders *h, const struct hf_holding *holding, hf_time asked_at)
{
	const struct hf_cache_entry *pod = find_holding_pod(h, holding, asked_at);
	struct hf_holder *holder;

	if (h->len == 2 * HF_HOLDINGS_MAX)
		drop_oldest_holder(h);
	h->items = hf_xrealloc(h->items, (h->len + 1) * sizeof(*h->items));
	holder = &h->items[h->len++];
	h->version++;
	*holder = (struct hf_holder){.holding = *holding, .until = HF_TIME_NONE};
	if (pod != NULL)
		name_holder(holder, pod);
}

/* Whether the pod that holds the device is still the same: false if the pod's name now belongs to
 * another pod. */
static bool goes_on(struct hf_holders *h, struct hf_holder *holder, hf_time asked_at)
{
	const struct hf_cache_entry *pod = find_holding_pod(h, &holder->holding, asked_at);

	if (pod == NULL || hf_streq(pod->uid, holder->uid))
		return true;
	if (!may_be_named(holder, pod))
		return false;
	name_holder(holder, pod);
	h->version++;
	return true;
}

void hf_holders_update(struct hf_holders *h, const struct hf_holdings *told)
{
	hf_time now = h->options.now(h->options.arg);
	/* whether the item is in the kubelet's list, by the items' index */
	HF_AUTOFREE bool *held = NULL;

	forget_old(h, now);
	if (!told->known)
		return;
	held = hf_xcalloc(told->len + 1, sizeof(*held));
	for (size_t i = 0; i < h->len; i++) {
		struct hf_holder *holder = &h->items[i];
		const struct hf_holding *named;

		if (holder->until != HF_TIME_NONE)
			continue;
		named = told->len == 0 ? NULL
				       : bsearch(&holder->holding, told->items, told->len,
						 sizeof(*told->items), hf_holding_order);
		if (named != NULL && !has_ended(h, named, told->asked_at) &&
		    goes_on(h, holder, told->asked_at)) {
			held[named - told->items] = true;
			continue;
		}
		if (named == NULL && told->cut)
			continue;
		holder->until = now;
		h->version++;
	}
	for (size_t i = 0; i < told->len; i++)
		if (!held[i] && !has_ended(h, &told->items[i], told->asked_at))
			add_holder(h, &told->items[i], told->asked_at);
}

uint64_t hf_holders_version(const struct hf_holders *h)
{
	return h->version;
}

const struct hf_holder *hf_holders_list(struct hf_holders *h, size_t *ret_len)
{
	forget_old(h, h->options.now(h->options.arg));
	*ret_len = h->len;
	return h->items;
}

const struct hf_holder_pod *hf_holders_pod(const struct hf_holders *h,
					   const struct hf_holder *holder)
{
	const struct hf_cache_entry *pod =
		hf_cache_get(h->cache, holder->holding.ns, holder->holding.pod);

	return pod != NULL && hf_streq(pod->uid, holder->uid) ? pod->view : NULL;
}
