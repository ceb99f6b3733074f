/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The list of pods with ranks that fence themselves, and whether the published list is still true.  Reads no
 * clock. */
#include "agent/fences.h"

#include "agent/report_socket.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fence {
	char uid[HF_REPORT_POD_UID_MAX];
	uint32_t seconds;
	/* the fence of the pod in the published list, in seconds; 0: not published */
	uint32_t published;
	hf_time heard_at;
};

struct hf_fences {
	struct fence *items;
	size_t len;
	/* a pod of the published list has been deleted since, so the list has to be published
	 * again */
	bool gone;
	hf_time heard_at;
};

struct hf_fences *hf_fences_create(void)
{
	struct hf_fences *fences = hf_xcalloc(1, sizeof(*fences));

	fences->items = hf_xcalloc(HF_FENCES_MAX, sizeof(*fences->items));
	fences->heard_at = HF_TIME_NONE;
	return fences;
}

struct hf_fences *hf_fences_destroy(struct hf_fences *fences)
{
	if (fences == NULL)
		return NULL;
	free(fences->items);
	free(fences);
	return NULL;
}

void hf_fences_heard(struct hf_fences *fences, const char *pod_uid, uint32_t seconds, hf_time now)
{
	struct fence *fence = NULL;

	hf_assert(seconds > 0);
	fences->heard_at = now;
	for (size_t i = 0; i < fences->len && fence == NULL; i++)
		if (hf_streq(fences->items[i].uid, pod_uid))
			fence = &fences->items[i];
	/* A pod without a place in the list has no proof of its fence: the operator replaces it as if it had no
	 * fence. */
	if (fence == NULL && fences->len == HF_FENCES_MAX)
		return;
	if (fence == NULL) {
		fence = &fences->items[fences->len++];
		*fence = (struct fence){.seconds = 0};
		snprintf(fence->uid, sizeof(fence->uid), "%s", pod_uid);
	}
	if (seconds > fence->seconds)
		fence->seconds = seconds;
	fence->heard_at = now;
}

static void forget_gone(struct hf_fences *fences, hf_ranks_pod_fn pod, void *arg, hf_time now)
{
	size_t kept = 0;

	for (size_t i = 0; i < fences->len; i++) {
		const struct fence *fence = &fences->items[i];
		struct hf_pod_name name;

		/* A pod that the API server has not reported yet may be new: its first report can come earlier. */
		if (!pod(arg, fence->uid, &name) &&
		    (fence->published > 0 || now - fence->heard_at >= HF_RANKS_SILENT_AFTER)) {
			fences->gone |= fence->published > 0;
			continue;
		}
		if (kept != i)
			fences->items[kept] = *fence;
		kept++;
	}
	fences->len = kept;
}

bool hf_fences_look(struct hf_fences *fences, hf_ranks_pod_fn pod, void *arg, hf_time now)
{
	bool news;

	forget_gone(fences, pod, arg, now);
	news = fences->gone;
	for (size_t i = 0; i < fences->len && !news; i++) {
		const struct fence *fence = &fences->items[i];
		struct hf_pod_name name;

		news = fence->published != fence->seconds && pod(arg, fence->uid, &name);
	}
	return news;
}

static int by_pod(const void *left, const void *right)
{
	const struct hf_fence_report *a = left, *b = right;
	int order = strcmp(a->ns, b->ns);

	return order != 0 ? order : strcmp(a->pod, b->pod);
}

void hf_fences_list(const struct hf_fences *fences, hf_ranks_pod_fn pod, void *arg,
		    struct hf_arena *arena, struct hf_device_health *health)
{
	struct hf_fence_report *items =
		HF_ARENA_ARRAY(arena, struct hf_fence_report, fences->len + 1);
	size_t len = 0;

	for (size_t i = 0; i < fences->len; i++) {
		const struct fence *fence = &fences->items[i];
		struct hf_pod_name name;

		if (!pod(arg, fence->uid, &name))
			continue;
		items[len++] = (struct hf_fence_report){.ns = hf_arena_strdup(arena, name.ns),
							.pod = hf_arena_strdup(arena, name.name),
							.uid = hf_arena_strdup(arena, name.uid),
							.seconds = fence->seconds};
	}
	if (len > 0)
		qsort(items, len, sizeof(*items), by_pod);
	health->fences.items = items;
	health->fences.len = len;
}

void hf_fences_published(struct hf_fences *fences, hf_ranks_pod_fn pod, void *arg)
{
	fences->gone = false;
	for (size_t i = 0; i < fences->len; i++) {
		struct hf_pod_name name;

		if (pod(arg, fences->items[i].uid, &name))
			fences->items[i].published = fences->items[i].seconds;
	}
}

bool hf_fences_wanted(const struct hf_fences *fences, hf_time now)
{
	return fences->heard_at != HF_TIME_NONE && now - fences->heard_at < HF_FENCES_WANTED_FOR;
}
