/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The list of reporting ranks, and when it is published.
 * Input: reports, with the time on the steps' clock.  Output: struct hf_rank_report for each rank.  Reads no clock.
 */
#include "agent/ranks.h"

#include "agent/report_socket.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The list is published again if a rank's own work differs by more than this from the published value; less is the
 * noise of one window. */
#define OWN_PERCENT 5
#define STALLED_FACTOR 5

struct rank {
	char uid[HF_REPORT_POD_UID_MAX];
	int32_t number; /* -1: not said */
	struct hf_health_rank_memory memory;
	uint64_t total;
	char group[HF_BEAT_GROUP_MAX];
	hf_time heard_at;
	hf_time longest; /* the longest time between two steps of the rank's present attempt */
	/* The rank's state as it was last written into DeviceHealth. */
	const char *state; /* NULL: nothing yet */
	uint64_t own_us;
};

struct hf_ranks {
	struct rank *items;
	size_t len;
	/* a rank of the published list is gone, so the list has to be published again */
	bool gone;
	hf_time published_at;
};

struct hf_ranks *hf_ranks_create(void)
{
	struct hf_ranks *ranks = hf_xcalloc(1, sizeof(*ranks));

	ranks->items = hf_xcalloc(HF_RANKS_HEARD_MAX, sizeof(*ranks->items));
	ranks->published_at = HF_TIME_NONE;
	return ranks;
}

struct hf_ranks *hf_ranks_destroy(struct hf_ranks *ranks)
{
	if (ranks == NULL)
		return NULL;
	free(ranks->items);
	free(ranks);
	return NULL;
}

/* ---- taking reports of ranks -------------------------------------------------------------------- */

static struct rank *find_rank(struct hf_ranks *ranks, const char *uid, int32_t number)
{
	for (size_t i = 0; i < ranks->len; i++)
		if (ranks->items[i].number == number && hf_streq(ranks->items[i].uid, uid))
			return &ranks->items[i];
	return NULL;
}

static size_t count_ranks(const struct hf_ranks *ranks, const char *uid)
{
	size_t n = 0;

	for (size_t i = 0; i < ranks->len; i++)
		n += hf_streq(ranks->items[i].uid, uid);
	return n;
}

/* Finds the rank that makes room for a newcomer: the last rank of the pod with the most ranks, if that pod then
 * still has at least as many as the newcomer's pod.  NULL: there is none. */
static struct rank *replace_rank(struct hf_ranks *ranks, const char *uid)
{
	size_t most = count_ranks(ranks, uid) + 1;
	struct rank *last = NULL;

	for (size_t i = 0; i < ranks->len; i++) {
		struct rank *rank = &ranks->items[i];
		size_t n;

		/* Ranks of a pod stand together, so count each pod once. The pod of the new rank
		 * cannot have the most ranks. */
		if (hf_streq(rank->uid, uid))
			continue;
		if (last != NULL && hf_streq(rank->uid, last->uid)) {
			last = rank;
			continue;
		}
		n = count_ranks(ranks, rank->uid);
		if (n > most) {
			most = n;
			last = rank;
		}
	}
	if (last != NULL)
		ranks->gone |= last->state != NULL;
	return last;
}

static struct rank *add_rank(struct hf_ranks *ranks, const char *uid, int32_t number)
{
	struct rank *rank = ranks->len < HF_RANKS_HEARD_MAX ? &ranks->items[ranks->len++]
							    : replace_rank(ranks, uid);

	if (rank == NULL)
		return NULL;
	*rank = (struct rank){.number = number};
	snprintf(rank->uid, sizeof(rank->uid), "%s", uid);
	return rank;
}

static void take_step(struct rank *rank, const struct hf_beat *beat, hf_time now)
{
	struct hf_health_report report = {
		.attempt = beat->attempt,
		.step = beat->step,
		.own_us = beat->own_us,
		.wait_us = beat->wait_us,
		/* A rank that does not report own_us cannot be compared with others. */
		.phase = beat->has_own ? beat->phase : HF_HEALTH_OTHER_PHASE,
		.at = now,
	};
	hf_time before = rank->memory.advanced_at;

	if (hf_health_rank_report(&rank->memory, &report))
		rank->longest = 0;
	else if (rank->memory.advanced_at - before > rank->longest)
		rank->longest = rank->memory.advanced_at - before;
	rank->total = beat->total;
	memcpy(rank->group, beat->group, sizeof(rank->group));
}

void hf_ranks_heard(struct hf_ranks *ranks, const char *pod_uid, const struct hf_beat *beat,
		    hf_time now)
{
	struct rank *rank;

	/* A report, also one without a rank number, is a sign of life of all ranks of its pod. */
	for (size_t i = 0; i < ranks->len; i++)
		if (hf_streq(ranks->items[i].uid, pod_uid))
			ranks->items[i].heard_at = now;
	if (!beat->has_step)
		return;
	rank = find_rank(ranks, pod_uid, beat->rank);
	if (rank == NULL)
		rank = add_rank(ranks, pod_uid, beat->rank);
	if (rank == NULL)
		return;
	rank->heard_at = now;
	take_step(rank, beat, now);
}

/* ---- states of ranks for DeviceHealth ----------------------------------------------------------- */

static const char *name_state(const struct rank *rank, hf_time now)
{
	hf_time limit = rank->longest * STALLED_FACTOR;

	if (now - rank->heard_at >= HF_RANKS_SILENT_AFTER)
		return HF_RANK_SILENT;
	if (limit < HF_RANKS_STALLED_AFTER)
		limit = HF_RANKS_STALLED_AFTER;
	return now - rank->memory.advanced_at >= limit ? HF_RANK_STALLED : HF_RANK_ADVANCING;
}

/* The rank's own work in a step: the smaller value of the last two windows, so that a rank counts as slow only if
 * it was slow in both. */
static uint64_t get_own_work(const struct rank *rank)
{
	const struct hf_health_rank_memory *m = &rank->memory;

	if (m->window < 2)
		return 0;
	return m->previous_own_us < m->median_own_us ? m->previous_own_us : m->median_own_us;
}

static bool differs_from_published(const struct rank *rank, hf_time now)
{
	uint64_t own = get_own_work(rank);
	uint64_t by = own > rank->own_us ? own - rank->own_us : rank->own_us - own;

	return !hf_streq(rank->state, name_state(rank, now)) ||
	       (own > 0 && by * 100 > rank->own_us * OWN_PERCENT);
}

static void forget_gone(struct hf_ranks *ranks, hf_ranks_pod_fn pod, void *arg, hf_time now)
{
	size_t kept = 0;

	for (size_t i = 0; i < ranks->len; i++) {
		struct rank *rank = &ranks->items[i];
		struct hf_pod_name name;

		/* A pod that the API server has not reported yet may be new: its first report can come earlier. */
		if (!pod(arg, rank->uid, &name) &&
		    (rank->state != NULL || now - rank->heard_at >= HF_RANKS_SILENT_AFTER)) {
			ranks->gone |= rank->state != NULL;
			continue;
		}
		if (kept != i)
			ranks->items[kept] = *rank;
		kept++;
	}
	ranks->len = kept;
}

static bool is_due(const struct hf_ranks *ranks, const struct rank *rank, hf_time now)
{
	return ranks->published_at != HF_TIME_NONE &&
	       now - ranks->published_at >= HF_RANKS_STALLED_EVERY &&
	       now - rank->memory.advanced_at < HF_RANKS_STALLED_FOR &&
	       hf_streq(name_state(rank, now), HF_RANK_STALLED);
}

bool hf_ranks_look(struct hf_ranks *ranks, hf_ranks_pod_fn pod, void *arg, hf_time now)
{
	bool news;

	forget_gone(ranks, pod, arg, now);
	if (ranks->published_at != HF_TIME_NONE && now - ranks->published_at < HF_RANKS_GAP)
		return false;
	news = ranks->gone;
	for (size_t i = 0; i < ranks->len && !news; i++) {
		const struct rank *rank = &ranks->items[i];
		struct hf_pod_name name;

		news = (differs_from_published(rank, now) || is_due(ranks, rank, now)) &&
		       pod(arg, rank->uid, &name);
	}
	return news;
}

static int by_pod(const void *left, const void *right)
{
	const struct hf_rank_report *a = left, *b = right;
	int order = strcmp(a->ns, b->ns);

	if (order == 0)
		order = strcmp(a->pod, b->pod);
	return order != 0 ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

void hf_ranks_list(const struct hf_ranks *ranks, hf_ranks_pod_fn pod, void *arg, hf_time now,
		   struct hf_arena *arena, struct hf_device_health *health)
{
	struct hf_rank_report *items = HF_ARENA_ARRAY(arena, struct hf_rank_report, ranks->len + 1);
	size_t len = 0;

	for (size_t i = 0; i < ranks->len; i++) {
		const struct rank *rank = &ranks->items[i];
		struct hf_pod_name name;

		if (!pod(arg, rank->uid, &name))
			continue;
		items[len++] = (struct hf_rank_report){
			.ns = hf_arena_strdup(arena, name.ns),
			.pod = hf_arena_strdup(arena, name.name),
			.uid = hf_arena_strdup(arena, name.uid),
			.rank = rank->number,
			.group =
				rank->group[0] != '\0' ? hf_arena_strdup(arena, rank->group) : NULL,
			.state = name_state(rank, now),
			.step = (int64_t)rank->memory.step,
			.total = (int64_t)rank->total,
			.own_us = (int64_t)get_own_work(rank),
			.advanced_at = rank->memory.advanced_at,
			.heard_at = rank->heard_at,
		};
	}
	if (len > 0)
		qsort(items, len, sizeof(*items), by_pod);
	health->ranks.items = items;
	health->ranks.len = len;
}

void hf_ranks_published(struct hf_ranks *ranks, hf_ranks_pod_fn pod, void *arg, hf_time now)
{
	ranks->gone = false;
	ranks->published_at = now;
	for (size_t i = 0; i < ranks->len; i++) {
		struct hf_pod_name name;

		if (!pod(arg, ranks->items[i].uid, &name))
			continue;
		ranks->items[i].state = name_state(&ranks->items[i], now);
		ranks->items[i].own_us = get_own_work(&ranks->items[i]);
	}
}

bool hf_ranks_owes(const struct hf_ranks *ranks)
{
	return ranks->len > 0 || ranks->gone;
}

size_t hf_ranks_count(const struct hf_ranks *ranks)
{
	return ranks->len;
}

bool hf_ranks_alive(const struct hf_ranks *ranks, hf_time now)
{
	for (size_t i = 0; i < ranks->len; i++)
		if (now - ranks->items[i].heard_at < HF_RANKS_SILENT_AFTER)
			return true;
	return false;
}
