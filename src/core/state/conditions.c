/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/str.h"

#include <string.h>

/*
 * The list of conditions: find, set, lower, arrange.  Types, reasons and order are upstream's,
 * with three corrections: Restarting becomes False again, a transition has its time, and the last
 * condition is always the True one that names the state, because clients print conditions[-1].
 * Conditions of others keep their places.
 */

/* The conditions that can name the job's state. If several are True, the first in this list names
 * the state. */
static const char *const states[] = {HF_COND_FAILED,     HF_COND_SUCCEEDED, HF_COND_SUSPENDED,
				     HF_COND_RESTARTING, HF_COND_RUNNING,   HF_COND_CREATED};

const char *hf_cond_reason(const struct hf_brain *b, const char *suffix)
{
	return hf_arena_printf(b->arena, "%s%s", b->job.framework->kind, suffix);
}

const struct hf_condition *hf_cond_find(const struct hf_brain *b, const char *type)
{
	hf_assert(type);
	for (size_t i = 0; i < b->conditions_len; i++) {
		if (hf_streq(b->conditions[i].type, type))
			return &b->conditions[i];
	}
	return NULL;
}

static struct hf_condition *find_to_change(struct hf_brain *b, const char *type)
{
	const struct hf_condition *found = hf_cond_find(b, type);

	return found ? &b->conditions[found - b->conditions] : NULL;
}

bool hf_cond_is_true(const struct hf_brain *b, const char *type)
{
	const struct hf_condition *condition = hf_cond_find(b, type);

	return condition && hf_streq(condition->status, "True");
}

bool hf_cond_finished(const struct hf_brain *b)
{
	return hf_cond_is_true(b, HF_COND_SUCCEEDED) || hf_cond_is_true(b, HF_COND_FAILED);
}

/* Take the condition out of the list and insert it at place `to`. */
static void move_condition(struct hf_brain *b, struct hf_condition *condition, size_t to)
{
	size_t from = (size_t)(condition - b->conditions);
	struct hf_condition kept = *condition;

	hf_assert(from < b->conditions_len && to < b->conditions_len);
	memmove(&b->conditions[from], &b->conditions[from + 1],
		(b->conditions_len - from - 1) * sizeof(kept));
	memmove(&b->conditions[to + 1], &b->conditions[to],
		(b->conditions_len - 1 - to) * sizeof(kept));
	b->conditions[to] = kept;
}

/* Append a condition. The caller fills in status, reason, message and times. stored -1 means that
 * no stored condition belongs to it. */
static struct hf_condition *append_condition(struct hf_brain *b, const char *type)
{
	struct hf_condition *condition;

	b->conditions = hf_grow(b->arena, b->conditions, b->conditions_len, &b->conditions_cap,
				sizeof(*b->conditions));
	condition = &b->conditions[b->conditions_len++];
	*condition = (struct hf_condition){.type = type, .stored = -1};
	return condition;
}

void hf_cond_load(struct hf_brain *b, const struct hf_status *stored)
{
	hf_assert(b->conditions_cap >= stored->conditions_len && b->conditions_len == 0);
	for (size_t i = 0; i < stored->conditions_len; i++) {
		struct hf_condition *twin = find_to_change(b, stored->conditions[i].type);

		/* If two conditions have the same type, the later stays and the earlier is
		 * dropped. With both, every step would move a condition. */
		if (!twin)
			twin = &b->conditions[b->conditions_len++];
		*twin = stored->conditions[i];
		twin->stored = (int)i;
	}
}

/* Conditions of Holdfast always have the message of the present step. Upstream's conditions keep
 * their message until status or reason changes. */
static void refresh_message(struct hf_condition *condition, const char *message, hf_time second)
{
	if (!hf_str_has_prefix(condition->type, HF_COND_PREFIX) ||
	    hf_streq(condition->message, message))
		return;
	condition->message = message;
	condition->last_update = second;
}

void hf_cond_set(struct hf_brain *b, const char *type, bool status, const char *reason,
		 const char *message)
{
	struct hf_condition *condition = find_to_change(b, type);
	const char *text = status ? "True" : "False";
	hf_time second = hf_time_floor_second(b->now);

	hf_assert(reason && message);
	if (condition && hf_streq(condition->status, text) && hf_streq(condition->reason, reason)) {
		refresh_message(condition, message, second);
		return;
	}
	if (!condition)
		condition = append_condition(b, type);
	if (!hf_streq(condition->status, text))
		condition->last_transition = second;
	condition->last_update = second;
	condition->status = text;
	condition->reason = reason;
	condition->message = message;
	move_condition(b, condition, b->conditions_len - 1);
}

void hf_cond_lower(struct hf_brain *b, const char *type, const char *reason, const char *message)
{
	struct hf_condition *condition = find_to_change(b, type);

	hf_assert(!reason == !message);
	if (!condition || !hf_streq(condition->status, "True"))
		return;
	condition->status = "False";
	condition->last_update = condition->last_transition = hf_time_floor_second(b->now);
	if (reason) {
		condition->reason = reason;
		condition->message = message;
	}
}

const char *hf_cond_state(const struct hf_brain *b)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(states); i++) {
		if (hf_cond_is_true(b, states[i]))
			return states[i];
	}
	return "";
}

void hf_cond_arrange(struct hf_brain *b)
{
	/* If no condition names the state, the type is "", which no condition has. */
	struct hf_condition *state = find_to_change(b, hf_cond_state(b));
	struct hf_condition *created;

	if (!state)
		return;
	move_condition(b, state, b->conditions_len - 1);
	/* Created comes first by custom.  It is last only if no other state is True. */
	created = find_to_change(b, HF_COND_CREATED);
	if (created && created != &b->conditions[b->conditions_len - 1])
		move_condition(b, created, 0);
	hf_assert(hf_streq(b->conditions[b->conditions_len - 1].status, "True"));
}
