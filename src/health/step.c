/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * One step of the brain: sorts the input, calls each policy in its order, and fills the plan.
 * Invariant: the same input gives the same bytes, in any order of its lists.
 */
#include "health/brain_internal.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

const struct hf_health_config hf_health_config_default = {
	.rules = &hf_health_rules_builtin,
	.confirm_count = 2,
	.confirm_window = 5 * HF_MINUTE,
	.clear_after = 10 * HF_MINUTE,
	.probation = 15 * HF_MINUTE,
	.flap_count = 3,
	.flap_fail = 5,
	.flap_window = 12 * HF_HOUR,
	.hold_base = 10 * HF_MINUTE,
	.hold_max = 6 * HF_HOUR,
	.age = 10 * HF_MINUTE,
	.stale_after = 90 * HF_SECOND,
	.same_event = 5 * HF_SECOND,
	.event_max = HF_MINUTE,
	.same_bus = 5 * HF_MINUTE,
	.peers_window = HF_MINUTE,
	.heartbeat = 5 * HF_MINUTE,
	.event_every = 10 * HF_MINUTE,
};

/* Limit of the pieces of evidence from a single sample. */
#define EVIDENCE_PER_SAMPLE 6
/* Most changes of a device's state in one step: by a boot, by orders, by evidence. */
#define MOVES_PER_DEVICE 16

const char *hf_health_config_problem(const struct hf_health_config *c)
{
	const hf_time spans[] = {c->confirm_window, c->clear_after, c->probation, c->flap_window,
				 c->hold_base,      c->hold_max,    c->age,       c->stale_after,
				 c->same_event,     c->event_max,   c->same_bus,  c->peers_window,
				 c->heartbeat,      c->event_every};
	size_t at;

	for (size_t i = 0; i < HF_ARRAY_LEN(spans); i++) {
		if (spans[i] <= 0 || spans[i] > 30 * HF_DAY)
			return "a span of the configuration is not between 0 and 30 days";
	}
	if (c->confirm_count < 1 || c->confirm_count > HF_HEALTH_SIGHTINGS_MAX)
		return "confirm_count is below 1 or above the number of sightings that are kept";
	if (c->flap_count < 1 || c->flap_fail < c->flap_count || c->flap_fail > HF_HEALTH_FLAPS_MAX)
		return "flap_count or flap_fail is out of range";
	return c->rules ? hf_health_rules_problem(c->rules, &at) : "no rules";
}

/* ---- devices that are present and seen ------------------------------------------------------------ */

/* Which devices a detector can see besides the node.  A detector that is missing here ends every golden file of a
 * node. */
enum sees { SEES_UNKNOWN, SEES_NODE_ONLY, SEES_GPUS, SEES_SWITCHES, SEES_PORTS };

static const enum sees sees[HF_HEALTH_DETECTORS] = {
	[HF_HEALTH_XID] = SEES_GPUS,         [HF_HEALTH_BUSLOST] = SEES_GPUS,
	[HF_HEALTH_SXID] = SEES_SWITCHES,    [HF_HEALTH_RECOVERY] = SEES_GPUS,
	[HF_HEALTH_ECC] = SEES_GPUS,         [HF_HEALTH_THROTTLE] = SEES_GPUS,
	[HF_HEALTH_CLOCK] = SEES_GPUS,       [HF_HEALTH_PCIE] = SEES_GPUS,
	[HF_HEALTH_REPLAY] = SEES_GPUS,      [HF_HEALTH_COUNT] = SEES_NODE_ONLY,
	[HF_HEALTH_NVLINK] = SEES_GPUS,      [HF_HEALTH_IB] = SEES_PORTS,
	[HF_HEALTH_DRIVER] = SEES_NODE_ONLY, [HF_HEALTH_PLUGIN] = SEES_NODE_ONLY,
	[HF_HEALTH_STRAGGLER] = SEES_GPUS,   [HF_HEALTH_AMD] = SEES_GPUS,
	[HF_HEALTH_AER] = SEES_GPUS,         [HF_HEALTH_MLX5] = SEES_PORTS,
	[HF_HEALTH_PEERS] = SEES_NODE_ONLY,
};

/* Whether the detector can see devices of this kind. */
static bool can_see(enum hf_health_detector detector, enum hf_health_kind kind)
{
	static const enum sees needed[HF_HEALTH_KINDS] = {
		[HF_HEALTH_GPU] = SEES_GPUS,
		[HF_HEALTH_SWITCH] = SEES_SWITCHES,
		[HF_HEALTH_PORT] = SEES_PORTS,
	};

	hf_assert(sees[detector] != SEES_UNKNOWN);
	return kind == HF_HEALTH_NODE || sees[detector] == needed[kind];
}

/* A device that a probe names is present in this boot. */
static void take_presence(struct hf_health_brain *b)
{
	uint32_t gpus = 0;

	for (size_t i = 0; i < b->input->devices_len; i++) {
		struct hf_health_device *d =
			hf_health_memory_find(b->memory, b->input->devices[i].id);

		if (d)
			hf_health_seen(b, d);
		gpus += b->input->devices[i].kind == HF_HEALTH_GPU;
	}
	if (gpus > b->memory->gpus) {
		b->memory->gpus = gpus;
		b->changed = true;
	}
}

/* Notes which devices a working detector can see.  A readable log does not show that a device which is only
 * remembered is there.  For a switch it does, as the log is its only source. */
static void take_heard(struct hf_health_brain *b)
{
	for (size_t i = 0; i < b->input->heard_len; i++) {
		const struct hf_health_heard *h = &b->input->heard[i];
		hf_time at = h->at > b->now ? b->now : h->at;

		for (size_t k = 0; k < b->memory->devices_len; k++) {
			struct hf_health_device *d = &b->memory->devices[k];

			if (can_see(h->detector, d->kind) && at > d->heard_at &&
			    !hf_health_port_is_hidden(d) &&
			    (d->seen || d->kind == HF_HEALTH_NODE || d->kind == HF_HEALTH_SWITCH))
				hf_health_hear(b, d, at);
		}
	}
}

/* ---- sorting the input of a step ------------------------------------------------------------------- */

static int compare_numbers(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_evidence(const void *left, const void *right)
{
	const struct hf_health_evidence *a = left, *b = right;
	const int64_t keys[][2] = {
		{a->at, b->at},
		{(int64_t)a->verb, b->verb},
		{(int64_t)a->seq, (int64_t)b->seq},
		{a->detector, b->detector},
		{a->code, b->code},
		{a->subcode, b->subcode},
		{a->severity, b->severity},
		{a->source, b->source},
		{a->cause, b->cause},
		{a->word, b->word},
		{a->has_word, b->has_word},
		{a->gpu_instance, b->gpu_instance},
		{a->compute_instance, b->compute_instance},
	};
	int d;

	for (size_t i = 0; i < HF_ARRAY_LEN(keys); i++) {
		if (keys[i][0] != keys[i][1])
			return compare_numbers(keys[i][0], keys[i][1]);
	}
	d = strcmp(a->device, b->device);
	if (d == 0)
		d = strcmp(a->unit, b->unit);
	return d != 0 ? d : strcmp(a->line, b->line);
}

static int by_sample(const void *left, const void *right)
{
	const struct hf_health_sample *a = left, *b = right;
	int d = compare_numbers(a->at, b->at);

	if (d == 0)
		d = compare_numbers(a->detector, b->detector);
	if (d == 0)
		d = strcmp(a->device, b->device);
	/* Contradictory samples are sorted by their bytes, so that the order is always the same. */
	return d != 0 ? d : memcmp(left, right, sizeof(struct hf_health_sample));
}

static int by_presence(const void *left, const void *right)
{
	return memcmp(left, right, sizeof(struct hf_health_presence));
}

static int by_order(const void *left, const void *right)
{
	const struct hf_health_order *a = left, *b = right;
	int d = compare_numbers(a->at, b->at);

	if (d == 0)
		d = compare_numbers(a->kind, b->kind);
	if (d == 0)
		d = compare_numbers(a->action, b->action);
	return d != 0 ? d : strcmp(a->device, b->device);
}

static void *sort_copy(struct hf_arena *arena, const void *items, size_t len, size_t size,
		       int (*order)(const void *, const void *))
{
	void *copy = hf_arena_array(arena, len + 1, size);

	if (len > 0) {
		memcpy(copy, items, len * size);
		qsort(copy, len, size, order);
	}
	return copy;
}

/* Adds the evidence of the input to that of the samples, and sorts all of it by time. */
static void take_evidence(struct hf_health_brain *b)
{
	if (b->input->evidence_len > 0)
		memcpy(b->evidence + b->evidence_len, b->input->evidence,
		       b->input->evidence_len * sizeof(*b->evidence));
	b->evidence_len += b->input->evidence_len;
	hf_assert(b->evidence_len <= b->evidence_cap);
	for (size_t i = 0; i < b->evidence_len; i++) {
		struct hf_health_evidence *e = &b->evidence[i];

		e->device[sizeof(e->device) - 1] = e->unit[sizeof(e->unit) - 1] =
			e->line[sizeof(e->line) - 1] = '\0';
		if (e->at < 0 || e->at > b->now)
			e->at = e->at == HF_TIME_NONE || e->at > b->now ? b->now : 0;
	}
	if (b->evidence_len > 0)
		qsort(b->evidence, b->evidence_len, sizeof(*b->evidence), by_evidence);
}

/* ---- one step ---------------------------------------------------------------------------------------- */

static int by_heard(const void *left, const void *right)
{
	const struct hf_health_heard *a = left, *c = right;
	int order = compare_numbers(a->at, c->at);

	return order != 0 ? order : compare_numbers(a->detector, c->detector);
}

static struct hf_health_input *arrange_input(const struct hf_health_input *given, hf_time now,
					     struct hf_arena *arena)
{
	struct hf_health_input *input = HF_ARENA_NEW(arena, struct hf_health_input);
	struct hf_health_presence *devices;
	struct hf_health_sample *samples;
	struct hf_health_order *orders;

	*input = *given;
	input->boot_id[sizeof(input->boot_id) - 1] = '\0';
	devices =
		sort_copy(arena, given->devices, given->devices_len, sizeof(*devices), by_presence);
	for (size_t i = 0; i < given->devices_len; i++) {
		devices[i].id[sizeof(devices[i].id) - 1] = '\0';
		devices[i].uuid[sizeof(devices[i].uuid) - 1] = '\0';
		devices[i].alias[sizeof(devices[i].alias) - 1] = '\0';
		devices[i].above[sizeof(devices[i].above) - 1] = '\0';
	}
	samples = sort_copy(arena, given->samples, given->samples_len, sizeof(*samples), by_sample);
	for (size_t i = 0; i < given->samples_len; i++) {
		samples[i].device[sizeof(samples[i].device) - 1] = '\0';
		/* A sample without a valid time, or with a time in the future, counts as taken
		 * now. */
		if (samples[i].at < 0 || samples[i].at > now)
			samples[i].at = now;
	}
	orders = sort_copy(arena, given->orders, given->orders_len, sizeof(*orders), by_order);
	for (size_t i = 0; i < given->orders_len; i++)
		orders[i].device[sizeof(orders[i].device) - 1] = '\0';
	input->heard =
		sort_copy(arena, given->heard, given->heard_len, sizeof(*given->heard), by_heard);
	input->devices = devices;
	input->samples = samples;
	input->orders = orders;
	return input;
}

static void init_brain(struct hf_health_brain *b, const struct hf_health_memory *memory,
		       const struct hf_health_input *input, struct hf_arena *arena)
{
	size_t more;

	b->arena = arena;
	/* Room for the node, the named devices, and those of samples and evidence; a device takes ten KiB. */
	more = 1 + input->devices_len + input->samples_len + input->evidence_len;
	if (more > HF_HEALTH_DEVICES_MAX - memory->devices_len)
		more = HF_HEALTH_DEVICES_MAX - memory->devices_len;
	b->devices_cap = memory->devices_len + more;
	b->memory = hf_health_memory_copy(memory, more, arena);
	/* Time does not go back within a boot, but the clock of another boot may begin earlier. */
	if (memory->now > input->now && !hf_streq(memory->boot_id, input->boot_id))
		hf_health_memory_shift(b->memory, input->now - memory->now);
	b->now = input->now > b->memory->now ? input->now : b->memory->now;
	b->memory->now = b->now;
	b->input = arrange_input(input, b->now, arena);
	b->wake_at = HF_TIME_NEVER;
	b->evidence_cap = input->samples_len * EVIDENCE_PER_SAMPLE + input->evidence_len;
	b->evidence = HF_ARENA_ARRAY(arena, struct hf_health_evidence, b->evidence_cap + 1);
	b->moves_cap = b->devices_cap * MOVES_PER_DEVICE + input->orders_len;
	b->moves = HF_ARENA_ARRAY(arena, struct hf_health_move, b->moves_cap);
	b->events_cap = b->moves_cap + b->devices_cap * HF_HEALTH_FAULTS_MAX;
	b->events = HF_ARENA_ARRAY(arena, struct hf_health_notice, b->events_cap);
}

static void fill_plan(struct hf_health_brain *b, struct hf_health_plan *plan)
{
	plan->memory = *b->memory;
	plan->changed = b->changed;
	plan->moves = b->moves;
	plan->moves_len = b->moves_len;
	plan->events = b->events;
	plan->events_len = b->events_len;
	plan->wake_at = b->wake_at;
}

int hf_health_step(const struct hf_health_memory *memory, const struct hf_health_input *input,
		   const struct hf_health_config *config, struct hf_arena *arena,
		   struct hf_health_plan *ret_plan, struct hf_error *err)
{
	struct hf_health_brain *b;

	hf_assert(!hf_health_config_problem(config) && !hf_health_memory_problem(memory));
	if (input->now < 0 || input->now > HF_TIME_NEVER / 2 || input->boot_id[0] == '\0')
		return hf_error_set(err, HF_E_INVALID, "a step needs a boot ID and a time");
	if (input->devices_len > HF_HEALTH_INPUT_MAX || input->samples_len > HF_HEALTH_INPUT_MAX ||
	    input->evidence_len > HF_HEALTH_INPUT_MAX || input->heard_len > HF_HEALTH_INPUT_MAX ||
	    input->orders_len > HF_HEALTH_INPUT_MAX)
		return hf_error_set(err, HF_E_TOO_LARGE,
				    "a list of the step's input has more than %d entries",
				    HF_HEALTH_INPUT_MAX);
	b = HF_ARENA_NEW(arena, struct hf_health_brain);
	b->config = config;
	b->plan = ret_plan;
	init_brain(b, memory, input, arena);
	memset(ret_plan, 0, sizeof(*ret_plan));
	b->memory->rules_hash = hf_health_rules_hash(config->rules);
	hf_health_place_boards(b);
	hf_health_begin_boot(b);
	take_presence(b);
	take_heard(b);
	hf_health_apply_orders(b);
	hf_health_judge(b);
	take_evidence(b);
	hf_health_faults_apply(b);
	hf_health_find_shared(b);
	hf_health_faults_age(b);
	hf_health_move_devices(b);
	hf_health_publish(b);
	fill_plan(b, ret_plan);
	return 0;
}
