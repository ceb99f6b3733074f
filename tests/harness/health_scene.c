/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/health_scene.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/health_plan_text.h"
#include "health/kmsg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES ((size_t)64 << 20)
#define ITEMS_MAX 256
/* The clock of a scene begins at this time instead of 0, so that a scene can have earlier
 * times. */
#define ZERO (100 * HF_DAY)

struct scene {
	/* memory of two steps: each step reads from one arena and writes to the other */
	struct hf_arena *arenas[2];
	int turn;
	struct hf_health_memory memory;
	struct hf_health_line_reader reader;
	struct hf_health_presence devices[HF_HEALTH_DEVICES_MAX];
	size_t devices_len;
	char boot[HF_HEALTH_BOOT_MAX];
	hf_time boot_at;
	struct hf_strbuf *sb;
	/* Of one step. */
	struct hf_health_evidence evidence[ITEMS_MAX];
	size_t evidence_len;
	struct hf_health_sample samples[ITEMS_MAX];
	size_t samples_len;
	struct hf_health_order orders[ITEMS_MAX];
	size_t orders_len;
	struct hf_health_heard heard[HF_HEALTH_DETECTORS];
	size_t heard_len;
};

static void text(const struct hf_json *json, const char *key, char *ret_text, size_t size)
{
	memset(ret_text, 0, size);
	snprintf(ret_text, size, "%s", hf_str_or(hf_json_path_str(json, key, NULL), ""));
}

static uint64_t number(const struct hf_json *json, const char *key, uint64_t fallback)
{
	double value = hf_json_num(hf_json_get(json, key), (double)fallback);

	return value < 0 || value > 1e15 ? 0 : (uint64_t)value;
}

static bool flag(const struct hf_json *json, const char *key)
{
	return hf_json_true(hf_json_get(json, key), false);
}

static hf_time seconds(const struct hf_json *value)
{
	double s = hf_json_num(value, 0);

	return ZERO + (hf_time)((s < -1e6 || s > 1e8 ? 0 : s) * 1000) * HF_MS;
}

static void read_devices(struct scene *s, const struct hf_json *list)
{
	static const char *const kinds[] = {"node", "gpu", "switch", "port"};

	for (size_t i = 0; i < hf_json_len(list) && i < HF_HEALTH_DEVICES_MAX; i++) {
		const struct hf_json *json = hf_json_item(list, i);
		struct hf_health_presence *p = &s->devices[s->devices_len++];
		const char *kind = hf_str_or(hf_json_path_str(json, "kind", NULL), "gpu");

		text(json, "id", p->id, sizeof(p->id));
		text(json, "uuid", p->uuid, sizeof(p->uuid));
		text(json, "alias", p->alias, sizeof(p->alias));
		text(json, "below", p->above, sizeof(p->above));
		for (int k = 0; k < HF_HEALTH_KINDS; k++)
			if (hf_streq(kinds[k], kind))
				p->kind = (enum hf_health_kind)k;
	}
}

/* Removes devices from the list that the driver reports from now on. */
static void take_away(struct scene *s, const struct hf_json *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->devices_len; i++) {
		bool gone = false;

		for (size_t k = 0; k < hf_json_len(list); k++)
			gone |= hf_streq(s->devices[i].id, hf_json_str(hf_json_item(list, k), ""));
		if (!gone)
			s->devices[kept++] = s->devices[i];
	}
	s->devices_len = kept;
}

static void say_evidence(struct scene *s, const struct hf_health_evidence *e)
{
	static const char *const verbs[] = {"", " cleared", " recovered"};
	struct hf_strbuf *sb = s->sb;

	hf_strbuf_addf(sb, "- line %s %d", hf_health_detector_name(e->detector), e->code);
	if (e->subcode >= 0)
		hf_strbuf_addf(sb, ".%d", e->subcode);
	if (e->severity)
		hf_strbuf_addf(sb, " %s", hf_health_severity_name(e->severity));
	if (e->unit[0])
		hf_strbuf_addf(sb, " [%s]", e->unit);
	if (e->gpu_instance >= 0)
		hf_strbuf_addf(sb, " instance %d", e->gpu_instance);
	if (e->compute_instance >= 0)
		hf_strbuf_addf(sb, "/%d", e->compute_instance);
	if (e->cause > 0)
		hf_strbuf_addf(sb, " because of %d", e->cause);
	hf_strbuf_addf(sb, "%s on %s\n", verbs[e->verb], e->device[0] ? e->device : "node");
}

static void read_line(struct scene *s, const char *line, hf_time at)
{
	static struct hf_health_record record;
	struct hf_health_evidence *e = &s->evidence[s->evidence_len];
	enum hf_health_kmsg kind = HF_HEALTH_KMSG_KERNEL;

	/* A line that begins with a digit has the form of /dev/kmsg, which begins with the
	 * priority; other lines are bare text. */
	if (line[0] >= '0' && line[0] <= '9')
		kind = hf_health_kmsg_parse(line, strlen(line), &record);
	else
		hf_health_kmsg_bare(line, strlen(line), &record);
	if (kind != HF_HEALTH_KMSG_KERNEL) {
		hf_strbuf_addf(s->sb, "- line %s\n",
			       kind == HF_HEALTH_KMSG_FORGED ? "forged" : "broken");
		return;
	}
	if (!hf_health_line_parse(&s->reader, &record, e)) {
		hf_strbuf_addstr(s->sb, "- line says nothing\n");
		return;
	}
	e->at = at;
	if (s->evidence_len < ITEMS_MAX - 1)
		s->evidence_len++;
	say_evidence(s, e);
}

static void read_values(struct hf_health_sample *x, const struct hf_json *j)
{
	uint32_t load = (uint32_t)number(j, "load", 100);

	switch (x->detector) {
	case HF_HEALTH_RECOVERY: x->recovery.action = (uint32_t)number(j, "action", 0); break;
	case HF_HEALTH_BUSLOST:
		x->bus.lost = flag(j, "lost");
		x->bus.reset_required = flag(j, "resetRequired");
		x->bus.mute = flag(j, "mute");
		break;
	case HF_HEALTH_ECC:
		x->ecc.uncorrectable = number(j, "uncorrectable", 0);
		x->ecc.remap_known = hf_json_get(j, "pending") || hf_json_get(j, "failed");
		x->ecc.pending = flag(j, "pending");
		x->ecc.failed = flag(j, "failed");
		x->ecc.remapped_uncorrectable = (uint32_t)number(j, "remapped", 0);
		break;
	case HF_HEALTH_THROTTLE:
		x->throttle.reasons = number(j, "reasons", 0);
		x->throttle.load_percent = load;
		break;
	case HF_HEALTH_CLOCK:
		x->clock.mhz = (uint32_t)number(j, "mhz", 0);
		x->clock.load_percent = load;
		x->clock.model = number(j, "model", 1);
		x->clock.reasons = number(j, "reasons", 0);
		break;
	case HF_HEALTH_PCIE:
		x->pcie.width = (uint32_t)number(j, "width", 16);
		x->pcie.width_max = (uint32_t)number(j, "widthMax", 16);
		x->pcie.speed = (uint32_t)number(j, "speed", 320);
		x->pcie.speed_max = (uint32_t)number(j, "speedMax", 320);
		x->pcie.load_percent = load;
		break;
	case HF_HEALTH_REPLAY:
		x->replay.counter = number(j, "counter", 0);
		x->replay.lanes = (uint32_t)number(j, "lanes", 16);
		x->replay.generation = (uint32_t)number(j, "generation", 5);
		x->replay.load_percent = load;
		break;
	default: break;
	}
}

static void read_more(struct hf_health_sample *x, const struct hf_json *j)
{
	switch (x->detector) {
	case HF_HEALTH_COUNT:
		x->count.pci = hf_json_get(j, "pci") ? (int32_t)number(j, "pci", 0) : -1;
		x->count.bus = hf_json_get(j, "bus") ? (int32_t)number(j, "bus", 0) : -1;
		x->count.nvml = hf_json_get(j, "nvml") ? (int32_t)number(j, "nvml", 0) : -1;
		x->count.allocatable =
			hf_json_get(j, "kubelet") ? (int32_t)number(j, "kubelet", 0) : -1;
		if (flag(j, "divided"))
			x->count.allocatable = HF_HEALTH_DIVIDED;
		break;
	case HF_HEALTH_NVLINK:
		x->nvlink.active = (uint32_t)number(j, "active", 0);
		x->nvlink.health_known = hf_json_get(j, "health") != NULL;
		x->nvlink.health = (uint32_t)number(j, "health", 0);
		break;
	case HF_HEALTH_IB:
		x->ib.missing = flag(j, "missing");
		x->ib.hidden = flag(j, "hidden");
		x->ib.up = !flag(j, "down");
		x->ib.link_downed = number(j, "downed", 0);
		x->ib.fatal_errors = number(j, "errors", 0);
		x->ib.symbol_errors = number(j, "symbols", 0);
		x->ib.recoveries = number(j, "recoveries", 0);
		x->ib.slow_restarts = number(j, "slowRestarts", 0);
		break;
	case HF_HEALTH_DRIVER:
		x->driver.mismatch = flag(j, "mismatch");
		x->driver.not_loaded = flag(j, "notLoaded");
		x->driver.timed_out = flag(j, "timedOut");
		x->driver.aside = flag(j, "aside");
		x->driver.fabric_asked = (uint32_t)number(j, "fabric", 0);
		x->driver.fabric_none = (uint32_t)number(j, "none", 0);
		x->driver.fabric_waiting = (uint32_t)number(j, "waiting", 0);
		x->driver.fabric_state = (uint32_t)number(j, "state", 3);
		x->driver.fabric_status = (uint32_t)number(j, "status", 0);
		break;
	case HF_HEALTH_PLUGIN:
		x->plugin.unreachable = flag(j, "unreachable");
		x->plugin.resource_gone = flag(j, "gone");
		break;
	case HF_HEALTH_STRAGGLER: x->straggler.slow = flag(j, "slow"); break;
	case HF_HEALTH_AMD:
		x->amd.counted = !flag(j, "uncounted");
		x->amd.timed = !flag(j, "untimed");
		x->amd.uncorrectable = number(j, "uncorrectable", 0);
		x->amd.throttle_percent = (uint32_t)number(j, "throttle", 0);
		x->amd.load_percent = (uint32_t)number(j, "load", 100);
		break;
	default: break;
	}
}

/* Reads a sample such as {is: throttle, of: ID}; without "of", the sample is made for every
 * GPU. */
static void read_sample(struct scene *s, const struct hf_json *json, hf_time at)
{
	struct hf_health_sample x;
	const char *of = hf_json_path_str(json, "of", NULL);
	bool node;

	memset(&x, 0, sizeof(x));
	if (!hf_health_detector_of(hf_str_or(hf_json_path_str(json, "is", NULL), ""), &x.detector))
		return;
	x.source = flag(json, "sysfs") ? HF_HEALTH_BY_SYSFS : HF_HEALTH_BY_NVML;
	x.supported = hf_json_true(hf_json_get(json, "supported"), true);
	x.at = at;
	read_values(&x, json);
	read_more(&x, json);
	node = x.detector == HF_HEALTH_COUNT || x.detector == HF_HEALTH_DRIVER ||
	       x.detector == HF_HEALTH_PLUGIN;
	for (size_t i = 0; i < s->devices_len && !of && !node; i++) {
		if (s->devices[i].kind != HF_HEALTH_GPU || s->samples_len >= ITEMS_MAX)
			continue;
		memcpy(x.device, s->devices[i].id, sizeof(x.device));
		s->samples[s->samples_len++] = x;
	}
	if ((of || node) && s->samples_len < ITEMS_MAX) {
		text(json, "of", x.device, sizeof(x.device));
		s->samples[s->samples_len++] = x;
	}
}

/* {do: quarantine, of: ID, action: reset-device} */
static void read_order(struct scene *s, const struct hf_json *json, hf_time at)
{
	static const char *const words[HF_HEALTH_ORDERS] = {
		"quarantine", "remediate", "verified", "failed", "give-up", "release", "clear"};
	struct hf_health_order *o = &s->orders[s->orders_len];
	const char *word = hf_json_path_str(json, "do", NULL);

	memset(o, 0, sizeof(*o));
	o->at = hf_json_get(json, "at") ? seconds(hf_json_get(json, "at")) : at;
	text(json, "of", o->device, sizeof(o->device));
	(void)hf_health_action_of(hf_str_or(hf_json_path_str(json, "action", NULL), ""),
				  &o->action);
	for (int i = 0; i < HF_HEALTH_ORDERS && s->orders_len < ITEMS_MAX - 1; i++) {
		if (hf_streq(words[i], word)) {
			o->kind = (enum hf_health_order_kind)i;
			s->orders_len++;
			return;
		}
	}
}

static void read_heard(struct scene *s, const struct hf_json *list, hf_time at)
{
	s->heard_len = 0;
	for (int i = 0; i < HF_HEALTH_DETECTORS; i++) {
		bool in = !list;

		for (size_t k = 0; k < hf_json_len(list); k++)
			in |= hf_streq(hf_json_str(hf_json_item(list, k), ""),
				       hf_health_detector_name((enum hf_health_detector)i));
		if (in)
			s->heard[s->heard_len++] = (struct hf_health_heard){
				.detector = (enum hf_health_detector)i, .at = at};
	}
}

static void step(struct scene *s, hf_time now, bool quiet)
{
	struct hf_health_input input = {
		.now = now,
		.boot_at = s->boot_at,
		.node = "n0",
		.devices = s->devices,
		.devices_len = s->devices_len,
		.heard = s->heard,
		.heard_len = s->heard_len,
		.samples = s->samples,
		.samples_len = s->samples_len,
		.evidence = s->evidence,
		.evidence_len = s->evidence_len,
		.orders = s->orders,
		.orders_len = s->orders_len,
	};
	struct hf_health_plan plan;
	struct hf_error err = {0};

	memcpy(input.boot_id, s->boot, sizeof(input.boot_id));
	s->turn = !s->turn;
	hf_arena_reset(s->arenas[s->turn]);
	if (hf_health_step(&s->memory, &input, &hf_health_config_default, s->arenas[s->turn], &plan,
			   &err) != 0) {
		hf_strbuf_addf(s->sb, "error: %s\n", err.text);
		return;
	}
	s->memory = plan.memory;
	if (quiet && plan.moves_len == 0)
		return;
	if ((now - ZERO) % HF_SECOND == 0)
		hf_strbuf_addf(s->sb, "at: %llds\n", (long long)((now - ZERO) / HF_SECOND));
	else
		hf_strbuf_addf(s->sb, "at: %lldms\n", (long long)((now - ZERO) / HF_MS));
	hf_health_plan_render(&plan, ZERO, s->sb);
}

/* Runs one entry of a scene. With `times` and `each` the entry is repeated, and only values that
 * change are listed. */
static void run_entry(struct scene *s, const struct hf_json *json)
{
	hf_time at = seconds(hf_json_get(json, "at"));
	hf_time each = (hf_time)number(json, "each", 1) * HF_SECOND;
	uint64_t times = number(json, "times", 1);
	const struct hf_json *kmsg = hf_json_get(json, "kmsg");
	const struct hf_json *samples = hf_json_get(json, "samples");
	const struct hf_json *orders = hf_json_get(json, "orders");

	if (hf_json_get(json, "boot")) {
		text(json, "boot", s->boot, sizeof(s->boot));
		s->boot_at = at;
	}
	take_away(s, hf_json_get(json, "gone"));
	/* "lost": begin like an agent whose journal cannot be read. */
	if (flag(json, "lost")) {
		hf_health_memory_init(&s->memory);
		memcpy(s->memory.boot_id, s->boot, sizeof(s->memory.boot_id));
		s->memory.doubted = true;
	}
	for (uint64_t i = 0; i < times && i < 10000; i++, at += each) {
		hf_time evidence_at =
			hf_json_get(json, "seen") ? seconds(hf_json_get(json, "seen")) : at;

		s->evidence_len = s->samples_len = s->orders_len = 0;
		read_heard(s, hf_json_get(json, "heard"), at);
		for (size_t k = 0; k < hf_json_len(kmsg); k++)
			read_line(s, hf_json_str(hf_json_item(kmsg, k), ""), evidence_at);
		for (size_t k = 0; k < hf_json_len(samples); k++)
			read_sample(s, hf_json_item(samples, k), at);
		for (size_t k = 0; k < hf_json_len(orders); k++)
			read_order(s, hf_json_item(orders, k), at);
		step(s, at, times > 1 && i + 1 < times);
	}
}

void health_scene_run(const struct hf_json *root, struct hf_strbuf *sb)
{
	struct scene *s = hf_xcalloc(1, sizeof(*s));
	const struct hf_json *steps = hf_json_get(root, "steps");

	s->sb = sb;
	s->arenas[0] = hf_arena_create(ARENA_BYTES);
	s->arenas[1] = hf_arena_create(ARENA_BYTES);
	snprintf(s->boot, sizeof(s->boot), "first");
	s->boot_at = HF_TIME_NONE;
	hf_health_memory_init(&s->memory);
	read_devices(s, hf_json_get(root, "devices"));
	for (size_t i = 0; i < hf_json_len(steps); i++)
		run_entry(s, hf_json_item(steps, i));
	hf_arena_destroy(s->arenas[0]);
	hf_arena_destroy(s->arenas[1]);
	free(s);
}
