/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: a moment (harness/moment.h) with any job, stored status and pods. A step must end in a
 * plan, and in the same plan if the objects come in another order. When the status of the plan is
 * stored, the next steps must come to rest: no further change. */

#include "api/job.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "fuzz/fuzz.h"
#include "harness/moment.h"
#include "harness/plan_text.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES ((size_t)512 << 20)
#define TEXT_MAX ((size_t)64 << 20)
/* Enough steps to count the restarts of a few pods with a few hundred restarts each: one step
 * counts about a hundred. */
#define STEPS_MAX 20
#define RESTARTS_MAX 200
#define RANKS_MAX 1000

static void step(const struct moment *moment, struct hf_arena *arena, struct hf_plan *ret_plan)
{
	struct hf_error err;
	int rc = hf_job_step(&moment->view, &moment->seen, moment->now, arena, ret_plan, &err);

	hf_assert(rc == 0);
}

static char *text_of(const struct hf_plan *plan, const struct hf_framework *framework)
{
	struct hf_strbuf sb = HF_STRBUF_INIT(TEXT_MAX);

	hf_plan_render(plan, framework, &sb);
	return hf_strbuf_detach(&sb);
}

static void check_plan(const struct moment *moment, const struct hf_plan *plan)
{
	const struct hf_status *status = &plan->status;
	bool finished = hf_status_is_finished(status);
	bool suspended =
		moment->view.run_policy.suspend.set && moment->view.run_policy.suspend.value;

	hf_assert(plan->wake_at > moment->now - HF_US);
	for (size_t s = 0; s < plan->stages_len; s++) {
		for (size_t a = 0; a < plan->stages[s].actions_len; a++) {
			const struct hf_action *action = &plan->stages[s].actions[a];

			hf_assert(!hf_str_is_empty(action->name));
			if (action->kind == HF_ACTION_CREATE_POD)
				hf_assert(!finished && !suspended);
			else if (action->kind != HF_ACTION_CREATE_SERVICE)
				hf_assert(!hf_str_is_empty(action->uid));
			if (action->kind == HF_ACTION_FAIL_POD ||
			    (action->grace_seconds.set && action->grace_seconds.value == 0))
				hf_assert(!hf_str_is_empty(action->resource_version));
		}
	}
}

static void check_order(struct moment *moment, struct hf_arena *arena, const char *expected)
{
	size_t n = moment->seen.pods_len;
	struct hf_pod *pods = HF_ARENA_ARRAY(arena, struct hf_pod, n + 1);
	const struct hf_pod *before = moment->seen.pods;
	struct hf_node_seen *nodes =
		HF_ARENA_ARRAY(arena, struct hf_node_seen, moment->seen.nodes_len + 1);
	const struct hf_node_seen *nodes_before = moment->seen.nodes;
	HF_AUTOFREE char *text = NULL;
	struct hf_plan plan;

	for (size_t i = 0; i < n; i++) {
		pods[i] = before[n - 1 - i];
		/* Skip a moment with two objects of one name: no API server has that, and which of
		 * them counts is undefined. */
		for (size_t k = 0; k < i; k++) {
			if (hf_streq(pods[k].name, pods[i].name))
				return;
		}
	}
	for (size_t i = 0; i < moment->seen.nodes_len; i++) {
		nodes[i] = nodes_before[moment->seen.nodes_len - 1 - i];
		for (size_t k = 0; k < i; k++) {
			if (hf_streq(nodes[k].name, nodes[i].name))
				return;
		}
	}
	moment->seen.pods = pods;
	moment->seen.nodes = nodes;
	step(moment, arena, &plan);
	text = text_of(&plan, moment->framework);
	hf_assert(strcmp(text, expected) == 0);
	moment->seen.pods = before;
	moment->seen.nodes = nodes_before;
}

static bool crashes_for_long(const struct moment *moment)
{
	int64_t restarts = 0;

	for (size_t i = 0; i < moment->seen.pods_len; i++) {
		for (size_t c = 0; c < moment->seen.pods[i].containers_len; c++)
			restarts += moment->seen.pods[i].containers[c].restart_count;
	}
	return restarts > RESTARTS_MAX || restarts < 0;
}

/* Skip jobs with very many ranks: a step for ten thousand takes a second, and shows no more than
 * one for a thousand. */
static bool is_huge(const struct moment *moment)
{
	int64_t ranks = 0;

	for (size_t i = 0; i < moment->view.replicas_len; i++)
		if (moment->view.replicas[i].replicas.value > 0)
			ranks += moment->view.replicas[i].replicas.value;
	return ranks > RANKS_MAX;
}

/* Stores the status as the operator does: writes it into the document and reads it back. */
static void write_down(struct moment *moment, const struct hf_plan *plan, struct hf_json **status,
		       struct hf_arena *arena)
{
	struct hf_json *next = hf_status_write(&plan->status, moment->framework, *status);

	hf_json_unref(*status);
	*status = next;
	hf_status_read(next, moment->framework, arena, &moment->view.status);
}

static void check_rest(struct moment *moment, const struct hf_json *job, struct hf_arena *arena)
{
	struct hf_json *status = hf_json_copy(hf_json_get(job, "status"));
	/* Keep the old documents, because strings of the view point into them. */
	struct hf_json *old[STEPS_MAX];
	struct hf_plan plan;
	int n = 0;

	do {
		hf_assert(n < STEPS_MAX);
		step(moment, arena, &plan);
		check_plan(moment, &plan);
		old[n] = hf_json_ref(status);
		write_down(moment, &plan, &status, arena);
		n++;
	} while (plan.status_urgent);
	for (int i = 0; i < n; i++)
		hf_json_unref(old[i]);
	hf_json_unref(status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_JSON root = NULL;
	HF_AUTOFREE char *text = NULL;
	struct moment moment;
	struct hf_plan plan;

	if (hf_json_parse((const char *)data, size, NULL, &root, NULL) != 0)
		return 0;
	moment_read(&moment, root, arena);
	if (moment.framework) {
		step(&moment, arena, &plan);
		check_plan(&moment, &plan);
	}
	if (moment.framework && !is_huge(&moment)) {
		text = text_of(&plan, moment.framework);
		check_order(&moment, arena, text);
		if (!crashes_for_long(&moment))
			check_rest(&moment, hf_json_get(root, "job"), arena);
	}
	moment_release(&moment);
	return 0;
}

/* ---- mutations of the tree, where those of bytes would only break the syntax ------------------ */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);

static unsigned draw(unsigned *seed, unsigned below)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % below;
}

static struct hf_json *odd_value(unsigned *seed)
{
	static const int64_t numbers[] = {0,         1,         -1,         2,         127,
					  128,       255,       1000,       INT32_MAX, INT32_MIN,
					  INT64_MAX, INT64_MIN, 1000000000, 1000000001};
	static const char *const texts[] = {"",
					    "0",
					    "1",
					    "0-1",
					    "0:1",
					    "0-19999",
					    "1:1000000000",
					    "True",
					    "False",
					    "Running",
					    "Failed",
					    "Succeeded",
					    "Job",
					    "Replica",
					    "Never",
					    "ExitCode",
					    "BackoffLimitExceeded",
					    "application",
					    "infrastructure",
					    "Unknown",
					    "Gone",
					    "Proven",
					    "NodeLost",
					    "user",
					    "none",
					    "Created",
					    "1677-09-21T00:12:44Z",
					    "2261-12-31T23:59:59Z",
					    "2026-01-01T00:10:00Z",
					    "worker-0",
					    "ddp-worker-0",
					    "job-1"};

	switch (draw(seed, 6)) {
	case 0:
	case 1: return hf_json_int(numbers[draw(seed, HF_ARRAY_LEN(numbers))]);
	case 2:
	case 3: return hf_json_string(texts[draw(seed, HF_ARRAY_LEN(texts))]);
	case 4: return draw(seed, 2) ? hf_json_bool(draw(seed, 2)) : hf_json_null();
	default: return draw(seed, 2) ? hf_json_object() : hf_json_array();
	}
}

static void mutate_array(struct hf_json *array, size_t at, unsigned *seed)
{
	switch (draw(seed, 3)) {
	case 0: hf_json_remove_item(array, at); break;
	case 1: hf_json_append(array, hf_json_copy(hf_json_item(array, at))); break;
	default: hf_json_replace_item(array, at, odd_value(seed));
	}
}

/* Changes a random value inside `value`: goes down by random members, and stops the more likely
 * the deeper it is. */
static void mutate_value(struct hf_json *value, int depth, unsigned *seed)
{
	size_t n = hf_json_len(value), at = n > 0 ? draw(seed, (unsigned)n) : 0;
	struct hf_json *child = NULL;
	const char *key = NULL;

	if (n == 0)
		return;
	if (hf_json_type(value) == HF_JSON_ARRAY) {
		child = hf_json_item(value, at);
		if (hf_json_len(child) > 0 && draw(seed, 8) > 0)
			mutate_value(child, depth + 1, seed);
		else
			mutate_array(value, at, seed);
		return;
	}
	for (void *it = NULL; (it = hf_json_next(value, it, &key, &child)) && at-- > 0;)
		continue;
	if (hf_json_len(child) > 0 && draw(seed, 12) > 0)
		mutate_value(child, depth + 1, seed);
	else if (draw(seed, 4) == 0)
		hf_json_remove(value, key);
	else
		hf_json_set(value, key, odd_value(seed));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(TEXT_MAX);
	HF_AUTO_JSON root = NULL;

	if (hf_json_parse((const char *)data, size, NULL, &root, NULL) != 0)
		return LLVMFuzzerMutate(data, size, size_max);
	for (unsigned n = 1 + draw(&seed, 3); n > 0; n--)
		mutate_value(root, 0, &seed);
	hf_json_write(root, HF_JSON_COMPACT, &sb);
	if (sb.len > size_max)
		return size;
	memcpy(data, sb.data, sb.len);
	return sb.len;
}
