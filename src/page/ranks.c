/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Keeps the last steps of each rank, and compares the ranks of a job. */
#include "page/ranks.h"

#include "base/compare.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "page/json_out.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A rank with own work above this multiple of the median delays the job. */
#define BEHIND_SCORE 1.2
#define SWEEP_EVERY HF_MINUTE

struct rank {
	int64_t step, total, own_us, wait_us;
	hf_time at;
	double step_seconds; /* of the last steps; negative: unknown */
	char state[16];
	/* seconds of the last steps, the newest at spark_at - 1 */
	float spark[HF_PAGE_SPARK_MAX];
	unsigned spark_len, spark_at;
};

struct hf_page_ranks {
	struct hf_map *by_uid; /* UID of a pod → struct rank */
	hf_time newest;        /* time of the latest step of any pod */
	hf_time swept_at;      /* `newest` at the last sweep */
};

struct hf_page_ranks *hf_page_ranks_create(void)
{
	struct hf_page_ranks *ranks = hf_xcalloc(1, sizeof(*ranks));

	/* The API server chooses UIDs, so the table needs no secret seed. */
	ranks->by_uid = hf_map_create(HF_PAGE_RANKS_MAX, 0, free);
	return ranks;
}

struct hf_page_ranks *hf_page_ranks_destroy(struct hf_page_ranks *ranks)
{
	if (ranks == NULL)
		return NULL;
	hf_map_destroy(ranks->by_uid);
	free(ranks);
	return NULL;
}

/* Removes the pods without a step for long, at most once a minute, because it looks at all pods. */
static void sweep_ranks(struct hf_page_ranks *ranks)
{
	const char *uid;
	void *value;

	if (ranks->newest - ranks->swept_at < SWEEP_EVERY)
		return;
	ranks->swept_at = ranks->newest;
	for (size_t it = 0; hf_map_next(ranks->by_uid, &it, &uid, &value);) {
		const struct rank *rank = value;

		if (rank->at <= ranks->newest - HF_PAGE_RANK_SILENT)
			hf_map_remove(ranks->by_uid, uid);
	}
}

static struct rank *find_rank(struct hf_page_ranks *ranks, const char *uid)
{
	struct rank *rank = hf_map_get(ranks->by_uid, uid);

	if (rank != NULL)
		return rank;
	if (hf_map_len(ranks->by_uid) >= HF_PAGE_RANKS_MAX)
		sweep_ranks(ranks);
	rank = hf_xcalloc(1, sizeof(*rank));
	rank->at = HF_TIME_NONE;
	rank->step_seconds = -1;
	if (hf_map_put(ranks->by_uid, uid, rank))
		return rank;
	free(rank);
	return NULL;
}

/* Notes how long the steps since the last report took. A step that is not later than the known one is a sign of life,
 * or the process began again from its checkpoint. */
static void take_step(struct rank *rank, const struct hf_page_rank_report *report)
{
	int64_t steps = report->step - rank->step;

	if (report->step <= 0)
		return;
	if (steps > 0 && rank->step > 0 && rank->at != HF_TIME_NONE && report->at != HF_TIME_NONE &&
	    report->at > rank->at) {
		rank->step_seconds =
			(double)(report->at - rank->at) / (double)HF_SECOND / (double)steps;
		rank->spark[rank->spark_at] = (float)rank->step_seconds;
		rank->spark_at = (rank->spark_at + 1) % HF_PAGE_SPARK_MAX;
		rank->spark_len += rank->spark_len < HF_PAGE_SPARK_MAX;
	}
	if (steps != 0)
		rank->at = report->at;
	rank->step = report->step;
}

void hf_page_ranks_report(struct hf_page_ranks *ranks, const struct hf_page_rank_report *report)
{
	struct rank *rank = hf_str_is_empty(report->uid) ? NULL : find_rank(ranks, report->uid);

	if (rank == NULL)
		return;
	take_step(rank, report);
	if (rank->at > ranks->newest)
		ranks->newest = rank->at;
	if (report->total > 0)
		rank->total = report->total;
	if (report->own_us > 0)
		rank->own_us = report->own_us;
	if (report->wait_us > 0)
		rank->wait_us = report->wait_us;
	if (report->state != NULL)
		hf_str_print(rank->state, sizeof(rank->state), report->state,
			     strlen(report->state));
}

struct hf_page_progress hf_page_ranks_progress(const struct hf_page_ranks *ranks,
					       const struct hf_pod *pods, size_t len)
{
	struct hf_page_progress progress = {.steps_per_second = -1};
	double slowest = 0;

	for (size_t i = 0; i < len; i++) {
		const struct rank *rank =
			pods[i].uid == NULL ? NULL : hf_map_get(ranks->by_uid, pods[i].uid);

		if (rank == NULL)
			continue;
		if (rank->step > progress.step)
			progress.step = rank->step;
		if (rank->total > progress.total)
			progress.total = rank->total;
		if (rank->step_seconds > slowest)
			slowest = rank->step_seconds;
	}
	/* All ranks of a synchronous job wait for the slowest. */
	if (slowest > 0)
		progress.steps_per_second = 1 / slowest;
	return progress;
}

/* ---- the list ------------------------------------------------------------------------------------- */

struct row {
	const struct hf_pod *pod;
	const struct rank *rank; /* NULL: no report */
	double score;            /* own work by the median of the job; 0: unknown */
	size_t order;
};

static int64_t median_own(const struct row *rows, size_t len)
{
	HF_AUTOFREE int64_t *own = hf_xcalloc(len + 1, sizeof(*own));
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		if (rows[i].rank != NULL && rows[i].rank->own_us > 0)
			own[n++] = rows[i].rank->own_us;
	return hf_median(own, n);
}

/* Compares two names so that worker-2 comes before worker-10: by length of equal stems, then by text. */
static int compare_names(const char *a, const char *b)
{
	const char *left = strrchr(a, '-'), *right = strrchr(b, '-');
	size_t len = left == NULL ? 0 : (size_t)(left - a);

	if (left != NULL && right != NULL && len == (size_t)(right - b) &&
	    strncmp(a, b, len) == 0 && strlen(left) != strlen(right))
		return strlen(left) < strlen(right) ? -1 : 1;
	return strcmp(a, b);
}

static int by_rank(const void *a, const void *b)
{
	const struct row *left = a, *right = b;

	return compare_names(hf_str_or(left->pod->name, ""), hf_str_or(right->pod->name, ""));
}

static int by_straggler(const void *a, const void *b)
{
	const struct row *left = a, *right = b;

	if (left->score != right->score)
		return left->score > right->score ? -1 : 1;
	return (left->order > right->order) - (left->order < right->order);
}

static int32_t count_restarts(const struct hf_pod *pod)
{
	int32_t restarts = 0;

	for (size_t i = 0; i < pod->containers_len; i++)
		if (!pod->containers[i].init && pod->containers[i].restart_count < INT16_MAX)
			restarts += pod->containers[i].restart_count;
	return restarts;
}

static void add_spark(struct hf_json *item, const struct rank *rank)
{
	struct hf_json *list = hf_json_ensure_array(item, "spark");

	for (unsigned i = 0; rank != NULL && i < rank->spark_len; i++) {
		unsigned at = (rank->spark_at + HF_PAGE_SPARK_MAX - rank->spark_len + i) %
			      HF_PAGE_SPARK_MAX;

		/* Microseconds: the other digits of a float are noise, and a list has 16,000 of these numbers. */
		hf_json_append(list, hf_json_real(round((double)rank->spark[at] * 1e6) / 1e6));
	}
}

static double seconds_of(int64_t us)
{
	return us > 0 ? (double)us / 1e6 : -1;
}

const char *hf_page_rank_name(const struct hf_pod *pod, const char *job)
{
	const char *name = hf_str_or(pod->name, "");
	size_t prefix = strlen(job);

	return hf_str_has_prefix(name, job) && name[prefix] == '-' ? name + prefix + 1 : name;
}

/* The phase of a pod stays Running while the kubelet waits before it starts a container again. */
static const char *describe_phase(const struct hf_pod *pod)
{
	bool runs = pod->containers_len == 0;

	if (pod->deletion_time != HF_TIME_NONE)
		return "Terminating";
	for (size_t i = 0; i < pod->containers_len; i++)
		runs = runs || pod->containers[i].phase == HF_CONTAINER_RUNNING;
	return pod->phase == HF_POD_RUNNING && !runs ? "Waiting" : hf_pod_phase_name(pod->phase);
}

static struct hf_json *row_json(const struct row *row, const char *job)
{
	const struct hf_pod *pod = row->pod;
	const struct rank *rank = row->rank;
	struct hf_json *item = hf_json_object();

	hf_page_set_count(item, "rank", (int64_t)row->order);
	hf_json_set_str(item, "name", hf_page_rank_name(pod, job));
	hf_page_set_text(item, "pod", pod->name);
	hf_page_set_text(item, "node", pod->node);
	hf_json_set_str(item, "phase", describe_phase(pod));
	hf_json_set_bool(item, "ready", hf_page_pod_is_ready(pod));
	hf_page_set_count(item, "generation", pod->stamped ? pod->generation : -1);
	hf_page_set_text(item, "state",
			 rank == NULL || rank->state[0] == '\0' ? NULL : rank->state);
	hf_page_set_count(item, "step", rank != NULL && rank->step > 0 ? rank->step : -1);
	hf_page_set_number(item, "stepSeconds", rank == NULL ? -1 : rank->step_seconds);
	hf_page_set_number(item, "ownSeconds", rank == NULL ? -1 : seconds_of(rank->own_us));
	hf_page_set_number(item, "waitSeconds", rank == NULL ? -1 : seconds_of(rank->wait_us));
	hf_page_set_number(item, "score", row->score > 0 ? row->score : -1);
	hf_page_set_time(item, "reportedAt", rank == NULL ? HF_TIME_NONE : rank->at);
	add_spark(item, rank);
	hf_page_set_count(item, "restarts", count_restarts(pod));
	return item;
}

/* Fills the rows in the order of ranks. Returns how many delay the job. */
static int64_t fill_rows(const struct hf_page_ranks *ranks, const struct hf_pod *pods, size_t len,
			 struct row *rows)
{
	int64_t median, behind = 0;

	for (size_t i = 0; i < len; i++)
		rows[i] = (struct row){.pod = &pods[i],
				       .rank = pods[i].uid == NULL
						       ? NULL
						       : hf_map_get(ranks->by_uid, pods[i].uid)};
	qsort(rows, len, sizeof(*rows), by_rank);
	median = median_own(rows, len);
	for (size_t i = 0; i < len; i++) {
		rows[i].order = i;
		if (median > 0 && rows[i].rank != NULL && rows[i].rank->own_us > 0)
			rows[i].score = (double)rows[i].rank->own_us / (double)median;
		behind += rows[i].score > BEHIND_SCORE;
	}
	return behind;
}

struct hf_json *hf_page_ranks_json(const struct hf_page_ranks *ranks, const struct hf_page_job *job,
				   const struct hf_pod *pods, size_t len,
				   const struct hf_page_query *query)
{
	HF_AUTOFREE struct row *rows = hf_xcalloc(len + 1, sizeof(*rows));
	size_t start = (size_t)query->start < len ? (size_t)query->start : len;
	size_t end = len - start < (size_t)query->limit ? len : start + (size_t)query->limit;
	struct hf_json *object = hf_json_object();
	struct hf_json *list;
	HF_AUTOFREE char *token = NULL;

	hf_page_set_count(object, "total", (int64_t)len);
	hf_page_set_count(object, "ranksBehind", fill_rows(ranks, pods, len, rows));
	if (query->sort != HF_PAGE_SORT_RANK)
		qsort(rows, len, sizeof(*rows), by_straggler);
	if (end < len)
		token = hf_xasprintf("%zu", end);
	hf_page_set_text(object, "continue", token);
	list = hf_json_ensure_array(object, "items");
	for (size_t i = start; i < end; i++)
		hf_json_append(list, row_json(&rows[i], job->name));
	return object;
}
