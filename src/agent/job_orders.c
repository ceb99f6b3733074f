/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/job_orders.h"

#include "api/condition.h"
#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/*
 * Reads what a job's ledger orders for the processes of its ranks.
 *
 * Input: the job's document; the pod's rank (pod_rank.h).  Output: a target: generation and
 * attempt that the rank's process should have, whether the rank is held, and the spans of the
 * restart.
 *
 * The ledger's texts name ranks by index, such as "0-3,7" for `hold`.  If a text
 * cannot be read, the rank gets no target, so no process stops or starts by mistake.
 */

#define ANNOTATION_LEDGER "holdfast.dev/ledger"
/* The least wait of a held rank.  Agents repeat its target every HF_PROCESSES_REPEAT: an exec that waits less would end
 * during a delay, although its agent is well. */
#define HELD_WAIT_S 30
/* The most replica types that a job can have. */
#define TYPES_MAX 16

struct type_orders {
	char *name, *attempts, *in_place, *hold;
};

struct hf_job_orders {
	char *uid;
	bool active; /* the job has a ledger and is not over */
	int64_t generation, base;
	/* seconds that `holdfast exec` waits for an order after its program's end; 0: no restart in
	 * place */
	uint32_t wait_s;
	uint32_t save_s;
	uint32_t grace_s; /* seconds between SIGTERM and SIGKILL; 0: the pod's grace period */
	struct type_orders types[TYPES_MAX];
	size_t types_len;
};

/* ---- the compact texts of a job's ledger -------------------------------------------------------- */

static bool read_number(const char **at, int64_t *ret_number)
{
	int64_t number = 0;
	const char *s = *at;

	for (; hf_ascii_is_digit(*s); s++) {
		number = number * 10 + (*s - '0');
		if (number > HF_PROCESS_COUNTER_MAX)
			return false;
	}
	if (s == *at)
		return false;
	*at = s;
	*ret_number = number;
	return true;
}

/* Finds the index in ranges such as "0-3,7".  False: the text cannot be read. */
static bool find_in_ranges(const char *text, int32_t index, bool *ret_found)
{
	*ret_found = false;
	for (const char *at = text; *at != '\0';) {
		int64_t from, to;

		if (!read_number(&at, &from))
			return false;
		to = from;
		if (*at == '-' && (at++, !read_number(&at, &to)))
			return false;
		*ret_found |= index >= from && index <= to;
		if (*at == '\0')
			return true;
		if (*at++ != ',')
			return false;
	}
	return true;
}

/* Finds the index's value in a map such as "17:2,40:1"; 0 if the index is not there.  False: the text cannot be
 * read. */
static bool find_in_map(const char *text, int32_t index, int64_t *ret_value)
{
	*ret_value = 0;
	for (const char *at = text; *at != '\0';) {
		int64_t key, value;

		if (!read_number(&at, &key) || *at++ != ':' || !read_number(&at, &value))
			return false;
		if (key == index)
			*ret_value = value;
		if (*at == '\0')
			return true;
		if (*at++ != ',')
			return false;
	}
	return true;
}

/* ---- reading ------------------------------------------------------------------------------------ */

static int64_t read_count(const struct hf_json *object, const char *key, int64_t fallback,
			  int64_t max)
{
	int64_t number = hf_json_i64(hf_json_get(object, key), fallback);

	if (number < 0)
		return 0;
	return number < max ? number : max;
}

/* Parses the JSON in the job's annotation; NULL: there is none. */
static struct hf_json *parse_annotation(const struct hf_json *job, const char *key)
{
	const char *text =
		hf_json_str(hf_json_path(job, "metadata", "annotations", key, NULL), NULL);
	struct hf_json *object = NULL;
	struct hf_error err;

	if (text != NULL && hf_json_parse(text, strlen(text), NULL, &object, &err) != 0)
		return NULL;
	return object;
}

/* Whether the job is over or is being deleted: then it restarts nothing. */
static bool is_over(const struct hf_json *job)
{
	return hf_json_path(job, "metadata", "deletionTimestamp", NULL) != NULL ||
	       hf_condition_is_true(job, "Succeeded") || hf_condition_is_true(job, "Failed");
}

/* Reads how long exec waits, and the times for a save and for the grace period.  The operator writes these fields
 * into the ledger after it has resolved its own configuration and the job's.  An operator of an earlier version
 * does not write them: then exec does not wait, and nothing restarts in place.  The generation and attempt still
 * count, because the kubelet may restart the container of a pod whose rank had restarted in place before. */
static void read_spans(struct hf_job_orders *o, const struct hf_json *ledger)
{
	o->wait_s = (uint32_t)read_count(ledger, "inPlaceWaitSeconds", 0, HF_PROCESS_SPAN_MAX);
	o->grace_s = (uint32_t)read_count(ledger, "inPlaceGraceSeconds", 0, HF_PROCESS_SPAN_MAX);
	o->save_s = (uint32_t)read_count(ledger, "inPlaceSaveSeconds", 0, HF_PROCESS_SPAN_MAX);
	/* The operator asks for a save before a planned end alone: after a failure the other ranks wait for the failed one in
	 * vain. */
	if (hf_json_get(ledger, "saveUntil") == NULL)
		o->save_s = 0;
}

static void read_types(struct hf_job_orders *o, const struct hf_json *replicas)
{
	struct hf_json *entry;
	const char *name;

	for (void *it = NULL; o->types_len < TYPES_MAX &&
			      (it = hf_json_next(replicas, it, &name, &entry)) != NULL;) {
		struct type_orders *type = &o->types[o->types_len++];

		type->name = hf_xstrdup(name);
		hf_str_lower(type->name);
		type->attempts = hf_xstrdup(hf_json_str(hf_json_get(entry, "attempts"), ""));
		type->in_place = hf_xstrdup(hf_json_str(hf_json_get(entry, "inPlace"), ""));
		type->hold = hf_xstrdup(hf_json_str(hf_json_get(entry, "hold"), ""));
	}
}

struct hf_job_orders *hf_job_orders_read(const struct hf_json *job)
{
	HF_AUTO_JSON annotated = parse_annotation(job, ANNOTATION_LEDGER);
	const struct hf_json *ledger = hf_json_path(job, "status", "recovery", NULL);
	struct hf_job_orders *o = hf_xcalloc(1, sizeof(*o));

	if (ledger == NULL)
		ledger = annotated;
	o->uid = hf_xstrdup(hf_json_str(hf_json_path(job, "metadata", "uid", NULL), ""));
	read_spans(o, ledger);
	o->generation = read_count(ledger, "generation", 0, HF_PROCESS_COUNTER_MAX);
	o->base = read_count(ledger, "inPlaceBase", 0, HF_PROCESS_COUNTER_MAX);
	/* Before the first write of the ledger the job gives no orders. */
	o->active = o->generation > 0 && !is_over(job);
	read_types(o, hf_json_get(ledger, "replicas"));
	return o;
}

struct hf_job_orders *hf_job_orders_destroy(struct hf_job_orders *o)
{
	if (o == NULL)
		return NULL;
	for (size_t i = 0; i < o->types_len; i++) {
		free(o->types[i].name);
		free(o->types[i].attempts);
		free(o->types[i].in_place);
		free(o->types[i].hold);
	}
	free(o->uid);
	free(o);
	return NULL;
}

/* ---- the target (start, hold) that a rank's ledger asks for ------------------------------------- */

static const struct type_orders *find_type(const struct hf_job_orders *o, const char *name)
{
	for (size_t i = 0; i < o->types_len; i++)
		if (hf_streq(o->types[i].name, name))
			return &o->types[i];
	return NULL;
}

/* Whether the operator counts on another pod for the rank, or will create one.  The operator uses the same rule:
 * hf_slot_is_current() in core/state/slots.c. */
static bool is_given_up(const struct hf_job_orders *o, const struct hf_pod_rank *rank,
			int64_t attempt, int64_t in_place)
{
	return rank->generation < (o->base > 0 ? o->base : o->generation) ||
	       rank->attempt + in_place != attempt;
}

bool hf_job_orders_have_ledger(const struct hf_job_orders *o)
{
	return o->generation > 0;
}

bool hf_job_orders_target(const struct hf_job_orders *o, const struct hf_pod_rank *rank,
			  struct hf_process_target *ret_target)
{
	const struct type_orders *type = find_type(o, rank->type);
	struct hf_process_target target = {
		.start = {true, o->generation, 0},
		.first = {true, rank->generation, rank->attempt},
		.wait_s = o->wait_s,
		.grace_s = o->grace_s > 0 ? o->grace_s : rank->grace_s,
		.save_s = o->save_s,
		/* If the whole job has restarted in place since its pods were created together, its ranks meet
		 * under a new number. */
		.rendezvous = o->base > 0 && o->base < o->generation ? o->generation : 0,
	};

	int64_t in_place = 0;

	*ret_target = (struct hf_process_target){.hold = false};
	if (!o->active || rank->kind == NULL || rank->deleting || !hf_streq(rank->job_uid, o->uid))
		return false;
	if (type != NULL && (!find_in_map(type->attempts, rank->index, &target.start.attempt) ||
			     !find_in_map(type->in_place, rank->index, &in_place) ||
			     !find_in_ranges(type->hold, rank->index, &target.hold)))
		return false;
	target.hold |= is_given_up(o, rank, target.start.attempt, in_place);
	if (target.hold && target.wait_s > 0 && target.wait_s < HELD_WAIT_S)
		target.wait_s = HELD_WAIT_S;
	*ret_target = target;
	return true;
}
