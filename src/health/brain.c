/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The working state of one step (struct hf_health_brain): its devices, its events and its next wake-up.  The
 * functions here change only the state of this step; the policies in other files call them.
 */
#include "health/brain_internal.h"

#include "base/str.h"

#include <string.h>

void hf_health_wake(struct hf_health_brain *b, hf_time at)
{
	if (at > b->now && at < b->wake_at)
		b->wake_at = at;
}

void hf_health_event(struct hf_health_brain *b, const struct hf_health_device *device,
		     const char *reason, const char *message)
{
	/* Each fault and each change of a state reports at most one event in a step. */
	hf_assert(b->events_len < b->events_cap);
	b->events[b->events_len++] = (struct hf_health_notice){
		.device = hf_arena_strdup(b->arena, device->id),
		.warning = !hf_streq(reason, "DeviceRecovered"),
		.reason = reason,
		.message = message,
		.gpu_instance = -1,
	};
}

static size_t count_ports(const struct hf_health_memory *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->devices_len; i++)
		n += m->devices[i].kind == HF_HEALTH_PORT;
	return n;
}

struct hf_health_device *hf_health_insert(struct hf_health_brain *b, const char *id,
					  enum hf_health_kind kind)
{
	struct hf_health_memory *m = b->memory;
	struct hf_health_device *d;
	size_t at = 0;

	if (m->devices_len == b->devices_cap ||
	    (kind == HF_HEALTH_PORT && count_ports(m) >= HF_HEALTH_PORTS_MAX))
		return NULL;
	while (at < m->devices_len && strcmp(m->devices[at].id, id) < 0)
		at++;
	d = &m->devices[at];
	memmove(d + 1, d, (m->devices_len - at) * sizeof(*d));
	m->devices_len++;
	memset(d, 0, sizeof(*d));
	memcpy(d->id, id, strnlen(id, sizeof(d->id) - 1));
	d->kind = kind;
	d->heard_at = d->watched_at = HF_TIME_NONE;
	d->fresh_after = HF_TIME_NONE;
	d->since = b->now;
	b->changed = true;
	return d;
}

struct hf_health_device *hf_health_device_get(struct hf_health_brain *b, const char *name,
					      enum hf_health_kind kind)
{
	struct hf_health_device *d = hf_health_memory_find(b->memory, name);

	if (d || kind == HF_HEALTH_NODE)
		return d;
	d = hf_health_insert(b, name, kind);
	if (!d)
		b->memory->faults_dropped++;
	return d;
}

void hf_health_forget(struct hf_health_brain *b, struct hf_health_device *device)
{
	struct hf_health_memory *m = b->memory;
	size_t at = (size_t)(device - m->devices);

	m->devices_len--;
	memmove(device, device + 1, (m->devices_len - at) * sizeof(*device));
	b->changed = true;
}

void hf_health_seen(struct hf_health_brain *b, struct hf_health_device *device)
{
	b->changed |= !device->seen;
	device->seen = true;
}

void hf_health_hear(struct hf_health_brain *b, struct hf_health_device *d, hf_time at)
{
	if (d->heard_at == HF_TIME_NONE || at - d->heard_at > b->config->stale_after) {
		d->watched_at = at;
		b->changed = true;
	}
	d->heard_at = at;
}
