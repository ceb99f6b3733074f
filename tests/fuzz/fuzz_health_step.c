/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: evidence, samples and orders for the health step, in any combination. Every step must end
 * in a valid memory and keep the promises of health/step.h. The same input in another order must
 * give the same memory. */

#include "base/mem.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "harness/health_plan_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES ((size_t)64 << 20)
#define TEXT_MAX ((size_t)4 << 20)
#define STEPS_MAX 40
#define ITEMS_MAX 16
#define DEVICES 6

struct bytes {
	const uint8_t *at, *end;
};

struct life {
	struct bytes in;
	/* memory of two steps in turn, and of the repeated step with another order */
	struct hf_arena *arenas[3];
	int turn;
	struct hf_health_memory memory;
	hf_time now;
	int boot;
	struct hf_health_presence devices[DEVICES];
	struct hf_health_evidence evidence[ITEMS_MAX];
	struct hf_health_sample samples[ITEMS_MAX];
	struct hf_health_order orders[ITEMS_MAX];
	struct hf_health_heard heard[ITEMS_MAX];
};

static unsigned draw(struct bytes *in, unsigned below)
{
	return in->at < in->end ? *in->at++ % below : 0;
}

static uint64_t wide(struct bytes *in)
{
	static const uint64_t odd[] = {0,         1,         2,          UINT32_MAX,
				       INT64_MAX, INT64_MIN, UINT64_MAX, 1000000000};
	uint64_t value = 0;

	switch (draw(in, 3)) {
	case 0: return odd[draw(in, 8)];
	case 1: return draw(in, 256);
	default:
		for (int i = 0; i < 8; i++)
			value = value << 8 | draw(in, 256);
		return value;
	}
}

/* Mostly about now, sometimes anything. */
static hf_time moment(struct life *l)
{
	if (draw(&l->in, 8) > 0)
		return l->now - (hf_time)draw(&l->in, 256) * HF_SECOND;
	return (hf_time)wide(&l->in);
}

static void name(struct life *l, char text[HF_HEALTH_DEVICE_MAX])
{
	unsigned n = draw(&l->in, DEVICES + 5);

	memset(text, 0, HF_HEALTH_DEVICE_MAX);
	if (n < DEVICES)
		memcpy(text, l->devices[n].id, HF_HEALTH_DEVICE_MAX);
	else if (n == DEVICES)
		snprintf(text, HF_HEALTH_DEVICE_MAX, "new-%u", draw(&l->in, 200));
	else if (n == DEVICES + 1)
		memset(text, 'x', HF_HEALTH_DEVICE_MAX); /* no end */
	else if (n > DEVICES + 2)
		snprintf(text, HF_HEALTH_DEVICE_MAX, "0000:0%u:00.0", n - DEVICES - 2);
}

static void draw_evidence(struct life *l, struct hf_health_evidence *e)
{
	static const int codes[] = {13, 31, 43, 45, 48, 62, 74, 78, 79, 94, 95, 119, 149, 154, 166};

	*e = hf_health_evidence_none();
	e->detector = (enum hf_health_detector)draw(&l->in, HF_HEALTH_DETECTORS);
	e->verb = (enum hf_health_verb)draw(&l->in, 3);
	e->source = (enum hf_health_source)draw(&l->in, HF_HEALTH_SOURCES);
	e->severity = (enum hf_health_severity)draw(&l->in, HF_HEALTH_SEVERITIES);
	e->code = draw(&l->in, 2) ? codes[draw(&l->in, HF_ARRAY_LEN(codes))]
				  : (int32_t)draw(&l->in, 8);
	e->has_word = draw(&l->in, 2);
	e->word = (uint32_t)wide(&l->in);
	e->cause = (int32_t)draw(&l->in, 2);
	e->at = moment(l);
	e->seq = wide(&l->in);
	name(l, e->device);
	snprintf(e->unit, sizeof(e->unit), "%.*s", (int)draw(&l->in, 2), "a");
}

static void draw_sample(struct life *l, struct hf_health_sample *s)
{
	uint64_t fill[8];

	memset(s, 0, sizeof(*s));
	/* Fill the union with random bytes; boolean members get 0 or 1 below. */
	for (size_t i = 0; i < HF_ARRAY_LEN(fill); i++)
		fill[i] = wide(&l->in);
	s->detector = (enum hf_health_detector)draw(&l->in, HF_HEALTH_DETECTORS);
	s->source = (enum hf_health_source)draw(&l->in, HF_HEALTH_SOURCES);
	s->at = moment(l);
	name(l, s->device);
	s->supported = draw(&l->in, 8) > 0;
	switch (s->detector) {
	case HF_HEALTH_BUSLOST:
	case HF_HEALTH_DRIVER:
	case HF_HEALTH_PLUGIN:
	case HF_HEALTH_STRAGGLER:
		s->driver.mismatch = fill[0] & 1;
		s->driver.not_loaded = fill[1] & 1;
		s->driver.timed_out = fill[2] & 1;
		s->driver.aside = s->detector == HF_HEALTH_DRIVER && (fill[2] >> 1 & 1);
		s->driver.fabric_asked = (uint32_t)fill[3];
		s->driver.fabric_waiting = (uint32_t)fill[4];
		s->driver.fabric_state = (uint32_t)fill[5];
		s->driver.fabric_status = (uint32_t)fill[6];
		s->driver.fabric_none = (uint32_t)fill[7];
		break;
	case HF_HEALTH_ECC:
		s->ecc.uncorrectable = fill[0];
		s->ecc.remapped_uncorrectable = (uint32_t)fill[1];
		s->ecc.remap_known = fill[2] & 1;
		s->ecc.pending = fill[3] & 1;
		s->ecc.failed = fill[4] & 1;
		break;
	case HF_HEALTH_AMD:
		s->amd.counted = fill[0] & 1;
		s->amd.timed = fill[1] & 1;
		s->amd.uncorrectable = fill[2];
		s->amd.throttle_percent = (uint32_t)fill[3];
		break;
	case HF_HEALTH_IB:
		s->ib.missing = fill[0] & 1;
		s->ib.up = fill[1] & 1;
		s->ib.hidden = fill[1] >> 1 & 1;
		s->ib.link_downed = fill[2];
		s->ib.fatal_errors = fill[3];
		s->ib.symbol_errors = fill[4];
		s->ib.recoveries = fill[5];
		s->ib.slow_restarts = fill[6];
		break;
	case HF_HEALTH_NVLINK:
		s->nvlink.active = (uint32_t)fill[0];
		s->nvlink.health_known = fill[1] & 1;
		s->nvlink.health = (uint32_t)fill[2];
		break;
	default: memcpy(&s->recovery, fill, 24); break;
	}
}

static void draw_order(struct life *l, struct hf_health_order *o)
{
	memset(o, 0, sizeof(*o));
	o->kind = (enum hf_health_order_kind)draw(&l->in, HF_HEALTH_ORDERS);
	o->action = (enum hf_health_action)draw(&l->in, HF_HEALTH_ACTIONS);
	o->at = moment(l);
	name(l, o->device);
}

/* Changes the names that the driver gives a device: its own board, another board, a board that two
 * devices claim, or a text without end. */
static void draw_names(struct life *l)
{
	struct hf_health_presence *p = &l->devices[draw(&l->in, DEVICES)];
	unsigned board = draw(&l->in, DEVICES + 2);

	memset(p->uuid, 0, sizeof(p->uuid));
	memset(p->alias, 0, sizeof(p->alias));
	if (board < DEVICES)
		snprintf(p->uuid, sizeof(p->uuid), "GPU-%u", board);
	else if (board == DEVICES)
		memset(p->uuid, 'x', sizeof(p->uuid)); /* no end */
	if (draw(&l->in, 2))
		snprintf(p->alias, sizeof(p->alias), "gpu-%u", draw(&l->in, DEVICES));
	memset(p->above, 0, sizeof(p->above));
	switch (draw(&l->in, 5)) {
	case 0: memset(p->above, 'x', sizeof(p->above)); break; /* no end */
	case 1: snprintf(p->above, sizeof(p->above), "0000:01:00.0 0000:02:00.0"); break;
	case 2: snprintf(p->above, sizeof(p->above), "0000:02:00.0"); break;
	default: break;
	}
}

static void draw_input(struct life *l, struct hf_health_input *input)
{
	static const hf_time spans[] = {
		0, HF_SECOND, 10 * HF_SECOND, HF_MINUTE, 5 * HF_MINUTE, HF_HOUR, -HF_HOUR, HF_DAY};

	memset(input, 0, sizeof(*input));
	l->now += spans[draw(&l->in, 8)];
	l->boot += draw(&l->in, 16) == 15;
	for (unsigned names = draw(&l->in, 16); names > 11; names--)
		draw_names(l);
	input->now = l->now;
	input->boot_at = draw(&l->in, 2) ? HF_TIME_NONE : moment(l);
	snprintf(input->boot_id, sizeof(input->boot_id), "boot-%d", l->boot);
	input->node = "n";
	input->devices = l->devices;
	input->devices_len = draw(&l->in, DEVICES + 1);
	input->evidence = l->evidence;
	input->evidence_len = draw(&l->in, ITEMS_MAX);
	input->samples = l->samples;
	input->samples_len = draw(&l->in, ITEMS_MAX);
	input->orders = l->orders;
	input->orders_len = draw(&l->in, 4);
	input->heard = l->heard;
	input->heard_len = draw(&l->in, 4);
	for (size_t i = 0; i < input->evidence_len; i++)
		draw_evidence(l, &l->evidence[i]);
	for (size_t i = 0; i < input->samples_len; i++)
		draw_sample(l, &l->samples[i]);
	for (size_t i = 0; i < input->orders_len; i++)
		draw_order(l, &l->orders[i]);
	for (size_t i = 0; i < input->heard_len; i++)
		l->heard[i] = (struct hf_health_heard){
			.detector = (enum hf_health_detector)draw(&l->in, HF_HEALTH_DETECTORS),
			.at = moment(l)};
}

static void check_moves(const struct hf_health_plan *plan)
{
	for (size_t i = 0; i < plan->moves_len; i++) {
		const struct hf_health_move *m = &plan->moves[i];

		/* Promises 1 and 6: a device that was out of service becomes Healthy only after
		 * Probation, and a Failed device only by an acknowledgement. */
		if (m->to == HF_HEALTH_QUARANTINED)
			hf_assert(m->from != HF_HEALTH_UNKNOWN && m->from != HF_HEALTH_HEALTHY);
		if (m->to == HF_HEALTH_HEALTHY)
			hf_assert(m->from != HF_HEALTH_UNHEALTHY &&
				  m->from != HF_HEALTH_QUARANTINED &&
				  m->from != HF_HEALTH_REMEDIATING && m->from != HF_HEALTH_FAILED);
		if (m->from == HF_HEALTH_FAILED)
			hf_assert(m->event == HF_HEALTH_CLEARED_BY_PERSON);
	}
}

static void check_devices(const struct hf_health_plan *plan)
{
	const struct hf_health_memory *m = &plan->memory;

	for (size_t i = 0; i < m->devices_len; i++) {
		enum hf_health_class cls = hf_health_device_class(&m->devices[i]);

		if (m->devices[i].state == HF_HEALTH_HEALTHY)
			hf_assert(cls < HF_HEALTH_SOFTWARE);
		if (hf_health_is_fatal(cls))
			hf_assert(m->devices[i].state >= HF_HEALTH_UNHEALTHY &&
				  m->devices[i].state != HF_HEALTH_PROBATION);
	}
}

static void step(const struct hf_health_memory *memory, const struct hf_health_input *input,
		 struct hf_arena *arena, struct hf_health_plan *ret_plan)
{
	struct hf_error err;

	hf_arena_reset(arena);
	hf_assert(hf_health_step(memory, input, &hf_health_config_default, arena, ret_plan, &err) ==
		  0);
	hf_assert(!hf_health_memory_problem(&ret_plan->memory));
	hf_assert(ret_plan->wake_at > ret_plan->memory.now);
}

static char *text_of(const struct hf_health_plan *plan)
{
	struct hf_strbuf sb = HF_STRBUF_INIT(TEXT_MAX);

	hf_health_plan_render(plan, 0, &sb);
	return hf_strbuf_detach(&sb);
}

static void check_order(struct life *l, const struct hf_health_input *input, const char *expected)
{
	struct hf_health_evidence swap;
	struct hf_health_plan plan;
	HF_AUTOFREE char *text = NULL;

	for (size_t i = 0; i < input->evidence_len / 2; i++) {
		swap = l->evidence[i];
		l->evidence[i] = l->evidence[input->evidence_len - 1 - i];
		l->evidence[input->evidence_len - 1 - i] = swap;
	}
	step(&l->memory, input, l->arenas[2], &plan);
	text = text_of(&plan);
	hf_assert(strcmp(text, expected) == 0);
}

static void live(struct life *l)
{
	for (int i = 0; i < STEPS_MAX && l->in.at < l->in.end; i++) {
		struct hf_health_input input;
		struct hf_health_plan plan;
		HF_AUTOFREE char *text = NULL;

		draw_input(l, &input);
		if (input.now < 0)
			return;
		step(&l->memory, &input, l->arenas[l->turn++ % 2], &plan);
		check_moves(&plan);
		check_devices(&plan);
		text = text_of(&plan);
		check_order(l, &input, text);
		l->memory = plan.memory;
	}
}

/* ---- and in the end it is well ------------------------------------------------------------------------- */

#define CURE_STEPS 100
#define CURE_STEP (30 * HF_SECOND)

/* Orders for every known device: give up its repair, or (kind CLEAR) acknowledge it. */
static size_t give_orders(struct life *l, enum hf_health_order_kind kind,
			  struct hf_health_order *orders)
{
	for (size_t i = 0; i < l->memory.devices_len; i++) {
		orders[i] = (struct hf_health_order){.kind = kind, .at = l->now};
		memcpy(orders[i].device, l->memory.devices[i].id, sizeof(orders[i].device));
	}
	return l->memory.devices_len;
}

/* True if only a person can bring the device back: an order took it out of service, or one of its
 * faults ends only by an acknowledgement. */
static bool is_for_person(const struct hf_health_device *d)
{
	if (d->state == HF_HEALTH_FAILED || d->state == HF_HEALTH_QUARANTINED ||
	    d->state == HF_HEALTH_REMEDIATING)
		return true;
	for (size_t i = 0; i < d->faults_len; i++)
		if (d->faults[i].open && d->faults[i].clear == HF_HEALTH_BY_PERSON)
			return true;
	return false;
}

static bool waits_for_person(const struct hf_health_memory *memory)
{
	for (size_t i = 0; i < memory->devices_len; i++)
		if (is_for_person(&memory->devices[i]))
			return true;
	return memory->doubted;
}

static bool is_here(const struct hf_health_device *d)
{
	return d->seen || d->kind == HF_HEALTH_NODE;
}

static void check_well(const struct life *l, bool word)
{
	for (size_t i = 0; i < l->memory.devices_len; i++)
		hf_assert(l->memory.devices[i].state == HF_HEALTH_HEALTHY ||
			  !(word || is_here(&l->memory.devices[i])));
}

/* How often anything was seen. */
static uint64_t seen(const struct hf_health_memory *memory)
{
	uint64_t n = 0;

	for (size_t i = 0; i < memory->devices_len; i++)
		for (size_t k = 0; k < memory->devices[i].faults_len; k++)
			n += memory->devices[i].faults[k].count;
	return n;
}

/* Boots the node with all devices present and without faults. After some steps every device must
 * be Healthy, unless it needs a person. word: a person acknowledges all devices, so that none may
 * stay at fault. */
static void cure(struct life *l, bool word)
{
	static struct hf_health_order orders[HF_HEALTH_DEVICES_MAX];
	struct hf_health_heard heard[HF_HEALTH_DETECTORS];
	struct hf_health_input input = {.boot_id = "cured", .node = "n", .heard = heard};
	struct hf_health_plan plan;

	if (l->memory.now > l->now)
		l->now = l->memory.now;
	if (l->now < 0 || l->now > HF_TIME_NEVER - HF_DAY)
		return;
	for (int i = 0; i < DEVICES; i++) {
		memset(l->devices[i].uuid, 0, sizeof(l->devices[i].uuid));
		memset(l->devices[i].alias, 0, sizeof(l->devices[i].alias));
		snprintf(l->devices[i].uuid, sizeof(l->devices[i].uuid), "GPU-%d", i);
	}
	input.devices = l->devices;
	input.devices_len = DEVICES;
	input.boot_at = l->now + 1;
	input.heard_len = HF_ARRAY_LEN(heard);
	input.orders = orders;
	for (int i = 0; i < CURE_STEPS; i++) {
		l->now += CURE_STEP;
		input.now = l->now;
		input.orders_len = 0;
		if (word && (i == 2 || i == 3))
			input.orders_len = give_orders(
				l, i == 2 ? HF_HEALTH_ORDER_GIVE_UP : HF_HEALTH_ORDER_CLEAR,
				orders);
		for (size_t k = 0; k < HF_ARRAY_LEN(heard); k++)
			heard[k] = (struct hf_health_heard){.detector = (enum hf_health_detector)k,
							    .at = l->now};
		step(&l->memory, &input, l->arenas[l->turn++ % 2], &plan);
		/* In the second half no fault may be counted again: no detector reports one, and
		 * delayed faults have ended before. */
		hf_assert(i < CURE_STEPS / 2 || seen(&plan.memory) == seen(&l->memory));
		l->memory = plan.memory;
	}
	hf_assert(!word || (!waits_for_person(&l->memory) && !hf_health_memory_misses(&l->memory)));
	if (!waits_for_person(&l->memory))
		check_well(l, word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct life *l = calloc(1, sizeof(*l));
	bool word;

	hf_assert(l);
	l->in = (struct bytes){.at = data, .end = data + size};
	l->now = 100 * HF_DAY;
	for (int i = 0; i < 3; i++)
		l->arenas[i] = hf_arena_create(ARENA_BYTES);
	for (int i = 0; i < DEVICES; i++) {
		l->devices[i].kind = i < 4    ? HF_HEALTH_GPU
				     : i == 4 ? HF_HEALTH_SWITCH
					      : HF_HEALTH_PORT;
		snprintf(l->devices[i].id, sizeof(l->devices[i].id), "0000:%02x:00.0", i);
	}
	hf_health_memory_init(&l->memory);
	word = draw(&l->in, 2);
	live(l);
	cure(l, word);
	for (int i = 0; i < 3; i++)
		hf_arena_destroy(l->arenas[i]);
	free(l);
	return 0;
}
