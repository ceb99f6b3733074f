/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * The notes of a step: events, lines of explanation, the wake-up time and requests for reads.  Each
 * function adds one note.  A note changes no decision.
 */

/* The most bytes of a line.  A longer line is cut and ends with DOTS. */
#define TEXT_MAX 511
#define DOTS "..."

void hf_event_pod(const struct hf_brain *b, bool warning, const char *reason, const char *message,
		  const struct hf_pod *pod)
{
	struct hf_plan_event *event;

	hf_assert(reason && message);
	b->notes->events = hf_grow(b->arena, b->notes->events, b->notes->events_len,
				   &b->notes->events_cap, sizeof(*b->notes->events));
	event = &b->notes->events[b->notes->events_len++];
	*event = (struct hf_plan_event){.warning = warning, .reason = reason, .message = message};
	if (pod) {
		event->pod = pod->name;
		event->pod_uid = pod->uid;
	}
}

void hf_event(const struct hf_brain *b, bool warning, const char *reason, const char *message)
{
	hf_event_pod(b, warning, reason, message, NULL);
}

void hf_say(const struct hf_brain *b, hf_time time, enum hf_topic topic, const char *fmt, ...)
{
	char text[TEXT_MAX + 1];
	va_list ap;

	hf_assert(b->notes->reasons_len <= HF_REASONS_MAX);
	if (b->notes->reasons_len == HF_REASONS_MAX)
		return;
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) > TEXT_MAX)
		memcpy(text + hf_utf8_cut(text, TEXT_MAX - strlen(DOTS)), DOTS, sizeof(DOTS));
	va_end(ap);
	b->notes->reasons[b->notes->reasons_len++] = (struct hf_reason){
		.time = time, .topic = topic, .text = hf_arena_strdup(b->arena, text)};
}

void hf_ask(const struct hf_brain *b, enum hf_ask_kind kind, const char *name)
{
	b->notes->asks = hf_grow(b->arena, b->notes->asks, b->notes->asks_len, &b->notes->asks_cap,
				 sizeof(*b->notes->asks));
	b->notes->asks[b->notes->asks_len++] = (struct hf_ask){.kind = kind, .name = name};
}

/* A plan that wakes in the past would make the caller step in a loop. */
void hf_wake(const struct hf_brain *b, hf_time at)
{
	hf_assert(at > b->now);
	if (at < b->notes->wake_at)
		b->notes->wake_at = at;
}

void hf_block(const struct hf_brain *b, const char *text)
{
	hf_assert(text);
	b->notes->blocker = text;
}
