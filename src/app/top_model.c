/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The numbers behind the rows of `holdfast top`, from the versions of jobs, pods and DeviceHealths. No
 * output, no clock. */
#include "app/top.h"

#include "api/device_health.h"
#include "base/compare.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"
#include "cli/ready.h"
#include "core/model/names.h"

#include <stdlib.h>
#include <string.h>

#define HEALTH_BYTES_MAX ((size_t)16 << 20)
#define SEED 0x70707070u

struct hf_top {
	struct hf_map *jobs;  /* UID to struct hf_top_job */
	struct hf_map *ranks; /* UID of a pod to struct hf_top_rank */
	struct hf_ready *ready;
	struct hf_arena *arena;
	struct hf_top_job **job_rows;
	struct hf_top_rank **rank_rows;
};

static void free_job(void *value)
{
	struct hf_top_job *job = value;

	free(job->uid);
	free(job->ns);
	free(job->name);
	free(job->kind);
	free(job->state);
	free(job->cause);
	free(job);
}

static void free_rank(void *value)
{
	struct hf_top_rank *rank = value;

	free(rank->uid);
	free(rank->ns);
	free(rank->job);
	free(rank->pod);
	free(rank->node);
	free(rank->status);
	free(rank);
}

struct hf_top *hf_top_create(void)
{
	struct hf_top *top = hf_xcalloc(1, sizeof(*top));

	top->jobs = hf_map_create(HF_TOP_JOBS_MAX, SEED, free_job);
	top->ranks = hf_map_create(HF_TOP_PODS_MAX, SEED, free_rank);
	top->ready = hf_ready_create();
	top->arena = hf_arena_create(HEALTH_BYTES_MAX);
	return top;
}

struct hf_top *hf_top_destroy(struct hf_top *top)
{
	if (top == NULL)
		return NULL;
	hf_map_destroy(top->jobs);
	hf_map_destroy(top->ranks);
	hf_ready_destroy(top->ready);
	hf_arena_destroy(top->arena);
	free(top->job_rows);
	free(top->rank_rows);
	free(top);
	return NULL;
}

struct hf_top_job *hf_top_find(const struct hf_top *top, const char *uid)
{
	return uid != NULL ? hf_map_get(top->jobs, uid) : NULL;
}

static void set_text(char **text, const char *value)
{
	free(*text);
	*text = hf_xstrdup(hf_str_or(value, ""));
}

/* ---- jobs -------------------------------------------------------------------------------------------- */

/* Steps a second between two reports; keeps the former rate if the later report has no new step. A lower
 * step means a restart: the rate begins anew. */
static double rate_of(double former, int64_t step, hf_time at, int64_t old_step, hf_time old_at)
{
	if (step == old_step)
		return former;
	if (step < old_step || old_step == 0 || at == HF_TIME_NONE || old_at == HF_TIME_NONE ||
	    at <= old_at)
		return 0;
	return (double)(step - old_step) * (double)HF_SECOND / (double)(at - old_at);
}

static void read_job(struct hf_top_job *job, struct hf_doc *doc, hf_time now)
{
	const struct hf_json *json = hf_doc_json(doc);
	struct hf_job_training training;
	struct hf_job_facts facts;
	hf_time steps_at =
		hf_facts_time(hf_json_path_str(json, "status", "recovery", "stepsAt", NULL));

	hf_job_facts_read(json, &facts);
	hf_job_training_read(json, now, &training);
	set_text(&job->uid, hf_doc_uid(doc));
	set_text(&job->ns, hf_doc_namespace(doc));
	set_text(&job->name, hf_doc_name(doc));
	set_text(&job->kind, facts.kind);
	set_text(&job->state, facts.state);
	set_text(&job->cause, hf_json_path_str(json, "status", "recovery", "last", "cause", NULL));
	job->rate = hf_streq(facts.state, "Running")
			    ? rate_of(job->rate, training.step, steps_at, job->step, job->steps_at)
			    : 0;
	job->marked = false;
	job->wanted = facts.wanted;
	job->succeeded = facts.succeeded;
	job->generation = facts.generation;
	memcpy(job->restarts, facts.restarts, sizeof(job->restarts));
	job->restarts_made = hf_job_restarts(&facts);
	job->step = training.step;
	job->saved_step = training.saved_step;
	job->steps_at = steps_at;
	job->has_ettr = training.has_ettr;
	job->ettr_permille = training.ettr_permille;
	job->created = hf_facts_time(hf_json_path_str(json, "metadata", "creationTimestamp", NULL));
}

void hf_top_see_job(struct hf_top *top, struct hf_doc *doc, bool gone, hf_time now)
{
	const char *uid = hf_str_or(hf_doc_uid(doc), "");
	struct hf_top_job *job = hf_map_get(top->jobs, uid);

	if (gone) {
		(void)hf_map_remove(top->jobs, uid);
		return;
	}
	if (job == NULL) {
		job = hf_xcalloc(1, sizeof(*job));
		job->steps_at = HF_TIME_NONE;
		if (!hf_map_put(top->jobs, uid, job)) {
			free(job);
			return;
		}
	}
	read_job(job, doc, now);
}

/* ---- pods -------------------------------------------------------------------------------------------- */

/* The rank of a pod; a new one belongs to no job yet. NULL: there are too many. */
static struct hf_top_rank *rank_of(struct hf_top *top, const char *uid)
{
	struct hf_top_rank *rank = hf_map_get(top->ranks, uid);

	if (rank != NULL)
		return rank;
	rank = hf_xcalloc(1, sizeof(*rank));
	rank->advanced_at = HF_TIME_NONE;
	set_text(&rank->job, "");
	if (hf_map_put(top->ranks, uid, rank))
		return rank;
	free_rank(rank);
	return NULL;
}

static void remove_rank(struct hf_top *top, const char *uid)
{
	(void)hf_ready_forget(top->ready, uid);
	(void)hf_map_remove(top->ranks, uid);
}

void hf_top_see_pod(struct hf_top *top, struct hf_doc *doc, bool gone)
{
	const char *uid = hf_str_or(hf_doc_uid(doc), ""), *job = hf_pod_job(doc);
	struct hf_top_rank *rank;
	struct hf_pod_facts facts;

	if (gone || job == NULL) {
		remove_rank(top, uid);
		return;
	}
	rank = rank_of(top, uid);
	if (rank == NULL)
		return;
	hf_pod_facts_read(hf_doc_json(doc), &facts);
	set_text(&rank->uid, uid);
	set_text(&rank->ns, hf_doc_namespace(doc));
	set_text(&rank->job, job);
	set_text(&rank->pod, hf_doc_name(doc));
	set_text(&rank->node, hf_json_path_str(hf_doc_json(doc), "spec", "nodeName", NULL));
	set_text(&rank->status, facts.status);
	rank->restarts = facts.restarts;
	rank->marked = false;
	(void)hf_ready_see(top->ready, doc, false);
}

/* ---- after a lost watch -------------------------------------------------------------------------- */

void hf_top_mark(struct hf_top *top, const char *kind)
{
	const char *key;
	void *value;

	if (kind != NULL)
		for (size_t it = 0; hf_map_next(top->jobs, &it, &key, &value);)
			((struct hf_top_job *)value)->marked |=
				hf_streq(((struct hf_top_job *)value)->kind, kind);
	else
		for (size_t it = 0; hf_map_next(top->ranks, &it, &key, &value);)
			((struct hf_top_rank *)value)->marked = true;
}

void hf_top_sweep(struct hf_top *top, const char *kind)
{
	const char *key;
	void *value;

	if (kind != NULL) {
		for (size_t it = 0; hf_map_next(top->jobs, &it, &key, &value);)
			if (((struct hf_top_job *)value)->marked &&
			    hf_streq(((struct hf_top_job *)value)->kind, kind))
				(void)hf_map_remove(top->jobs, key);
		return;
	}
	for (size_t it = 0; hf_map_next(top->ranks, &it, &key, &value);)
		if (((struct hf_top_rank *)value)->marked)
			remove_rank(top, key);
}

void hf_top_see_health(struct hf_top *top, struct hf_doc *doc)
{
	struct hf_device_health health;

	hf_device_health_read(doc, top->arena, &health);
	for (size_t i = 0; i < health.ranks.len; i++) {
		const struct hf_rank_report *report = &health.ranks.items[i];
		/* The report may arrive before the pod does. */
		struct hf_top_rank *rank = rank_of(top, hf_str_or(report->uid, ""));

		if (rank == NULL)
			continue;
		rank->rate = rate_of(rank->rate, report->step, report->advanced_at, rank->step,
				     rank->advanced_at);
		rank->reported = true;
		rank->step = report->step;
		rank->total = report->total;
		rank->own_us = report->own_us;
		rank->advanced_at = report->advanced_at;
	}
	hf_arena_reset(top->arena);
}

/* ---- rows -------------------------------------------------------------------------------------------- */

const char *hf_top_sort_name(enum hf_top_sort sort)
{
	static const char *const names[] = {"state", "name", "restarts", "progress", "speed"};

	return names[sort];
}

const char *const hf_top_states[] = {"Failed",    "Restarting", "Created", "Running",
				     "Suspended", "Succeeded",  NULL};

static int urgency_of(const char *state)
{
	int i = 0;

	while (hf_top_states[i] != NULL && !hf_streq(state, hf_top_states[i]))
		i++;
	return i;
}

/* A row with its key. Rows with equal keys are ordered by name. */
struct keyed {
	double key;
	const char *first, *second;
	void *row;
};

/* Compares names so that worker-2 stands before worker-10: a shorter name with the same start first. */
static int compare_names(const char *a, const char *b)
{
	size_t at = 0, len_a, len_b;

	while (a[at] != '\0' && a[at] == b[at])
		at++;
	while (at > 0 && a[at - 1] >= '0' && a[at - 1] <= '9')
		at--;
	len_a = strspn(a + at, "0123456789");
	len_b = strspn(b + at, "0123456789");
	if (len_a > 0 && len_b > 0 && len_a != len_b)
		return len_a < len_b ? -1 : 1;
	return strcmp(a, b);
}

static int compare_rows(const void *left, const void *right)
{
	const struct keyed *a = left, *b = right;
	int order;

	if (a->key < b->key || a->key > b->key)
		return a->key < b->key ? -1 : 1;
	order = strcmp(a->first, b->first);
	return order != 0 ? order : compare_names(a->second, b->second);
}

static double job_key(const struct hf_top_job *job, enum hf_top_sort sort)
{
	switch (sort) {
	case HF_TOP_BY_STATE: return urgency_of(job->state);
	case HF_TOP_BY_RESTARTS: return -(double)job->restarts_made;
	case HF_TOP_BY_PROGRESS: return job->has_ettr ? (double)job->ettr_permille : 1e9;
	case HF_TOP_BY_SCORE: return job->rate > 0 ? job->rate : 1e18;
	case HF_TOP_BY_NAME:
	case HF_TOP_SORTS: break;
	}
	return 0;
}

static double rank_key(const struct hf_top_rank *rank, enum hf_top_sort sort)
{
	switch (sort) {
	case HF_TOP_BY_RESTARTS: return -(double)rank->restarts;
	case HF_TOP_BY_PROGRESS: return rank->reported ? (double)rank->step : 1e18;
	case HF_TOP_BY_SCORE: return -rank->score;
	case HF_TOP_BY_STATE:
	case HF_TOP_BY_NAME:
	case HF_TOP_SORTS: break;
	}
	return 0;
}

struct hf_top_job *const *hf_top_jobs(struct hf_top *top, enum hf_top_sort sort, size_t *ret_n)
{
	size_t n = 0, len = hf_map_len(top->jobs);
	struct keyed *rows = hf_xcalloc(len + 1, sizeof(*rows));
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(top->jobs, &it, &key, &value);) {
		struct hf_top_job *job = value;

		job->ready = job->succeeded;
		if (!hf_streq(job->state, HF_COND_SUCCEEDED))
			job->ready += hf_ready_count(top->ready, job->ns, job->name);
		rows[n++] = (struct keyed){job_key(job, sort), job->ns, job->name, job};
	}
	qsort(rows, n, sizeof(*rows), compare_rows);
	top->job_rows = hf_xrealloc(top->job_rows, (n + 1) * sizeof(struct hf_top_job *));
	for (size_t i = 0; i < n; i++)
		top->job_rows[i] = rows[i].row;
	free(rows);
	*ret_n = n;
	return top->job_rows;
}

/* The median of the ranks' own times; 0: fewer than two ranks report one. */
static int64_t median_of(struct hf_top_rank *const *ranks, size_t n)
{
	int64_t *times = hf_xcalloc(n + 1, sizeof(*times)), median;
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		if (ranks[i]->own_us > 0)
			times[len++] = ranks[i]->own_us;
	median = len < 2 ? 0 : hf_median(times, len);
	free(times);
	return median;
}

struct hf_top_rank *const *hf_top_ranks(struct hf_top *top, const struct hf_top_job *job,
					enum hf_top_sort sort, size_t *ret_n)
{
	size_t n = 0, len = hf_map_len(top->ranks);
	struct keyed *rows = hf_xcalloc(len + 1, sizeof(*rows));
	int64_t median;
	const char *key;
	void *value;

	top->rank_rows = hf_xrealloc(top->rank_rows, (len + 1) * sizeof(struct hf_top_rank *));
	for (size_t it = 0; hf_map_next(top->ranks, &it, &key, &value);) {
		struct hf_top_rank *rank = value;

		if (hf_streq(rank->ns, job->ns) && hf_streq(rank->job, job->name))
			top->rank_rows[n++] = rank;
	}
	median = median_of(top->rank_rows, n);
	for (size_t i = 0; i < n; i++) {
		struct hf_top_rank *rank = top->rank_rows[i];

		rank->score = median > 0 ? (double)rank->own_us / (double)median : 0;
		rows[i] = (struct keyed){rank_key(rank, sort), "", rank->pod, rank};
	}
	qsort(rows, n, sizeof(*rows), compare_rows);
	for (size_t i = 0; i < n; i++)
		top->rank_rows[i] = rows[i].row;
	free(rows);
	*ret_n = n;
	return top->rank_rows;
}
