/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/health.h"

#include "harness/test.h"

#include <stdio.h>
#include <string.h>

#define ARENA_BYTES ((size_t)64 << 20)

void health_init(struct health_node *n, int gpus, int ports)
{
	memset(n, 0, sizeof(*n));
	n->arenas[0] = hf_arena_create(ARENA_BYTES);
	n->arenas[1] = hf_arena_create(ARENA_BYTES);
	n->now = 100 * HF_DAY;
	n->boot = "boot";
	n->boot_at = HF_TIME_NONE;
	n->config = hf_health_config_default;
	hf_health_memory_init(&n->memory);
	for (int i = 0; i < gpus + ports; i++) {
		struct hf_health_presence *p = &n->devices[n->devices_len++];

		p->kind = i < gpus ? HF_HEALTH_GPU : HF_HEALTH_PORT;
		snprintf(p->id, sizeof(p->id), i < gpus ? "gpu-%d" : "port-%d",
			 i < gpus ? i : i - gpus);
	}
	health_step(n, 0);
}

void health_release(struct health_node *n)
{
	n->arenas[0] = hf_arena_destroy(n->arenas[0]);
	n->arenas[1] = hf_arena_destroy(n->arenas[1]);
}

void health_step(struct health_node *n, hf_time span)
{
	struct hf_health_heard heard[HF_HEALTH_DETECTORS];
	struct hf_health_input input = {.boot_at = n->boot_at,
					.node = "n0",
					.devices = n->devices,
					.devices_len = n->devices_len,
					.heard = heard,
					.heard_len = HF_HEALTH_DETECTORS,
					.samples = n->samples,
					.samples_len = n->samples_len,
					.evidence = n->evidence,
					.evidence_len = n->evidence_len,
					.orders = n->orders,
					.orders_len = n->orders_len};
	struct hf_error err = {0};

	snprintf(input.boot_id, sizeof(input.boot_id), "%s", n->boot);
	n->now += span;
	input.now = n->now;
	for (int i = 0; i < HF_HEALTH_DETECTORS; i++)
		heard[i] = (struct hf_health_heard){.detector = (enum hf_health_detector)i,
						    .at = n->now};
	for (size_t i = 0; i < n->samples_len; i++)
		n->samples[i].at = n->now;
	for (size_t i = 0; i < n->evidence_len; i++)
		if (n->evidence[i].at == HF_TIME_NONE)
			n->evidence[i].at = n->now;
	for (size_t i = 0; i < n->orders_len; i++)
		if (n->orders[i].at == 0)
			n->orders[i].at = n->now;
	n->turn = !n->turn;
	hf_arena_reset(n->arenas[n->turn]);
	assert_ok(
		hf_health_step(&n->memory, &input, &n->config, n->arenas[n->turn], &n->plan, &err),
		&err);
	assert_null(hf_health_memory_problem(&n->plan.memory));
	n->memory = n->plan.memory;
	n->samples_len = n->evidence_len = n->orders_len = 0;
}

struct hf_health_sample *health_sample(struct health_node *n, enum hf_health_detector detector,
				       const char *device)
{
	struct hf_health_sample *s = &n->samples[n->samples_len++];

	assert_true(n->samples_len <= HEALTH_ITEMS_MAX);
	memset(s, 0, sizeof(*s));
	s->detector = detector;
	s->source = HF_HEALTH_BY_NVML;
	s->supported = true;
	snprintf(s->device, sizeof(s->device), "%s", device);
	return s;
}

struct hf_health_evidence *health_xid(struct health_node *n, int code, const char *device)
{
	struct hf_health_evidence *e = &n->evidence[n->evidence_len++];

	assert_true(n->evidence_len <= HEALTH_ITEMS_MAX);
	*e = hf_health_evidence_none();
	e->detector = HF_HEALTH_XID;
	e->source = HF_HEALTH_BY_KMSG;
	e->code = code;
	snprintf(e->device, sizeof(e->device), "%s", device);
	return e;
}

void health_order(struct health_node *n, enum hf_health_order_kind kind,
		  enum hf_health_action action, const char *device)
{
	struct hf_health_order *o = &n->orders[n->orders_len++];

	assert_true(n->orders_len <= HEALTH_ITEMS_MAX);
	memset(o, 0, sizeof(*o));
	o->kind = kind;
	o->action = action;
	snprintf(o->device, sizeof(o->device), "%s", device);
}

struct hf_health_device *health_device(struct health_node *n, const char *device)
{
	struct hf_health_device *d = hf_health_memory_find(&n->memory, device);

	assert_non_null(d);
	return d;
}

const struct hf_health_fault *health_fault(struct health_node *n, const char *device,
					   enum hf_health_detector detector, int code)
{
	const struct hf_health_device *d = health_device(n, device);

	for (size_t i = 0; i < d->faults_len; i++) {
		const struct hf_health_fault *f = &d->faults[i];

		if (f->open && f->detector == detector && f->code == code)
			return f;
	}
	return NULL;
}
