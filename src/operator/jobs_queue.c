/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/operator_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/*
 * Puts jobs into the queue, and holds what every file of this folder may use: the clock, the log of
 * problems, the namespaces that are being deleted, and the end of a stop.
 *
 * Input: the key of a job ("pytorchjobs/ns/name") and how urgent the change is. Output: an entry in
 * op->queue, at once or after a delay.
 * Invariant: this file calls no file of this folder but clock.c and startups.c.
 */

/* The delay before a step, for each object of the job.  A step costs about 0.5 us an object; the
 * delay is ten times that: 10 ms for 1,000 pods and their services, 100 ms for 10,000. */
#define GATHER_PER_OBJECT (5 * HF_US)
#define GATHER_MIN HF_MS
/* A pod that is created, placed and started causes about ten routine changes within a moment.  One
 * step takes them together. */
#define GATHER_ROUTINE (50 * HF_MS)
/* The ranks of a job end within moments.  One step and one status record all ranks that succeed in
 * this time. */
#define GATHER_SUCCESS (50 * HF_MS)
/* Additional delay of routine changes for each job in the queue: about the time that the API server
 * needs for the pods and services of a small job.  So one status shows them all. */
#define GATHER_PER_JOB (20 * HF_MS)
#define GATHER_MAX (5 * HF_SECOND)
/* When the operator is told to stop, waiting events have this much time to be written. */
#define DRAIN_MAX (2 * HF_SECOND)

/* --- functions that all files use ------------------------------------------------------------- */

void hf_operator_problem(struct hf_operator *op, const char *key, int code, const char *message)
{
	if (op->options.problem != NULL)
		op->options.problem(op->options.arg, key, code, message);
}

void hf_operator_heard(struct hf_operator *op, const struct hf_reply *reply)
{
	bool jumped = hf_server_clock_hear(&op->clock, reply->server_time, hf_loop_mono(op->loop),
					   hf_loop_wall(op->loop));

	/* Wake-ups in the queue were planned with the old estimate and may come late, so all jobs
	 * are stepped. */
	for (size_t i = 0; jumped && i < op->n_kinds; i++)
		hf_operator_enqueue_kind(&op->kinds[i]);
}

hf_time hf_operator_now(struct hf_operator *op)
{
	return hf_server_clock_now(&op->clock, hf_loop_mono(op->loop), hf_loop_wall(op->loop));
}

void hf_operator_check_synced(struct hf_operator *op)
{
	op->check_synced(op);
}

void hf_operator_namespace_ends(struct hf_operator *op, const char *ns)
{
	/* If the table is full, each pass over a job of that namespace tries one more create. */
	if (!hf_map_put(op->ending, ns, op))
		return;
}

bool hf_operator_is_ending(const struct hf_operator *op, const char *ns)
{
	return hf_map_has(op->ending, ns);
}

/* --- keys ------------------------------------------------------------------------------------- */

char *hf_operator_job_key(const struct hf_kind *kind, const char *ns, const char *name)
{
	return hf_xasprintf("%s/%s/%s", kind->resource->plural, ns, name);
}

struct hf_kind *hf_kind_of_key(struct hf_operator *op, const char *key, char **ret_ns,
			       const char **ret_name)
{
	for (size_t i = 0; i < op->n_kinds; i++) {
		const char *plural = op->kinds[i].resource->plural;
		size_t len = strlen(plural);

		if (strncmp(key, plural, len) != 0 || key[len] != '/')
			continue;
		const char *ns = key + len + 1, *slash = strchr(ns, '/');

		hf_assert(slash != NULL);
		*ret_ns = hf_xstrndup(ns, (size_t)(slash - ns));
		*ret_name = slash + 1;
		return &op->kinds[i];
	}
	return NULL;
}

/* --- the queue -------------------------------------------------------------------------------- */

/* Queue a job.  Jobs that had a pass before go ahead of new jobs.  So of a thousand new jobs, the
 * first ones get their status before the pods of the last ones are created. */
static void add_job(struct hf_operator *op, const char *key)
{
	bool added;

	if (!op->running)
		return;
	if (hf_map_has(op->states, key))
		added = hf_queue_add(op->queue, key);
	else
		added = hf_queue_add_behind(op->queue, key);
	if (!added)
		hf_operator_problem(op, key, HF_E_TOO_LARGE,
				    "the queue of jobs is full: this job is not stepped until it "
				    "changes again");
}

hf_time hf_operator_gather_time(const struct hf_operator *op)
{
	size_t jobs = hf_queue_waiting(op->queue) + hf_queue_running(op->queue);
	hf_time gather = (hf_time)jobs * GATHER_PER_JOB;

	if (gather < GATHER_ROUTINE)
		return GATHER_ROUTINE;
	return gather < GATHER_MAX ? gather : GATHER_MAX;
}

/* Queue a job after a delay that grows with the number of its objects.  Otherwise the steps of a
 * job with 10,000 pods would keep the process busy. */
static void add_job_later(struct hf_operator *op, const char *key, bool routine)
{
	struct hf_job_state *state = hf_map_get(op->states, key);
	hf_time gather = state == NULL ? 0 : (hf_time)state->size * GATHER_PER_OBJECT;

	/* Most routine changes during a pass come from the pass itself, so they wait for its
	 * end. */
	if (routine && state != NULL && state->pass != NULL) {
		state->routine_owed = true;
		return;
	}
	if (routine && gather < hf_operator_gather_time(op))
		gather = hf_operator_gather_time(op);
	if (routine && state != NULL && state->starting_since != HF_TIME_NONE &&
	    gather < hf_startups_gather_time(&op->startups))
		gather = hf_startups_gather_time(&op->startups);
	if (gather < GATHER_MIN)
		add_job(op, key);
	else
		hf_operator_enqueue_after(op, key, gather);
}

void hf_operator_enqueue_now(struct hf_operator *op, const char *key)
{
	add_job(op, key);
}

void hf_operator_enqueue(struct hf_operator *op, const char *key)
{
	add_job_later(op, key, false);
}

/* The first success of a job is stepped like any other change.  Later successes wait for the end of
 * the gather time. */
void hf_operator_enqueue_success(struct hf_operator *op, const char *key)
{
	struct hf_job_state *state = hf_map_get(op->states, key);
	hf_time now = hf_loop_mono(op->loop), due = now;

	if (state != NULL && state->success_due != HF_TIME_NONE &&
	    now < state->success_due + GATHER_SUCCESS)
		due = now <= state->success_due ? state->success_due
						: state->success_due + GATHER_SUCCESS;
	if (state != NULL)
		state->success_due = due;
	if (due > now)
		hf_operator_enqueue_after(op, key, due - now);
	else
		add_job_later(op, key, false);
}

void hf_operator_enqueue_routine(struct hf_operator *op, const char *key)
{
	add_job_later(op, key, true);
}

void hf_operator_enqueue_after(struct hf_operator *op, const char *key, hf_time delay)
{
	if (op->running && !hf_queue_add_after(op->queue, key, delay))
		hf_operator_problem(op, key, HF_E_TOO_LARGE,
				    "the queue of jobs is full: this job is not stepped until it "
				    "changes again");
}

void hf_operator_enqueue_kind(struct hf_kind *kind)
{
	const struct hf_cache_entry *entry;

	for (size_t it = 0; (entry = hf_cache_next(kind->cache, &it)) != NULL;) {
		HF_AUTOFREE char *key = hf_operator_job_key(kind, entry->ns, entry->name);

		add_job(kind->op, key);
	}
}

void hf_operator_each_by_name(struct hf_operator *op, const char *ns, const char *name,
			      void (*fn)(void *arg, const struct hf_kind *kind,
					 const struct hf_cache_entry *job),
			      void *arg)
{
	HF_AUTOFREE char *job = hf_xstrdup(name);

	for (int dashes = 0; dashes < 2; dashes++) {
		char *dash = strrchr(job, '-');

		if (dash == NULL)
			return;
		*dash = '\0';
		for (size_t i = 0; i < op->n_kinds; i++) {
			const struct hf_cache_entry *entry =
				hf_cache_get(op->kinds[i].cache, ns, job);

			if (entry != NULL)
				fn(arg, &op->kinds[i], entry);
		}
	}
}

static void add_named_job(void *arg, const struct hf_kind *kind, const struct hf_cache_entry *job)
{
	HF_AUTOFREE char *key = hf_operator_job_key(kind, job->ns, job->name);

	add_job(arg, key);
}

void hf_operator_enqueue_by_name(struct hf_operator *op, const char *ns, const char *name)
{
	hf_operator_each_by_name(op, ns, name, add_named_job, op);
}

/* --- the end of a stop ------------------------------------------------------------------------ */

static void note_events_sent(void *arg)
{
	struct hf_operator *op = arg;

	hf_task_post(op->stopped_task);
}

void hf_operator_check_stopped(struct hf_operator *op)
{
	if (!op->stopping || hf_queue_running(op->queue) > 0 || hf_timer_armed(op->stop_timer))
		return;
	hf_timer_arm(op->stop_timer, DRAIN_MAX);
	hf_recorder_drain(op->recorder, note_events_sent, op);
}
