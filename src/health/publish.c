/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Makes conditions, the node's label and events from the devices, and limits writes.
 * Invariant: a step without news writes nothing but the heartbeat.
 */
#include "health/brain_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One write a second is allowed, and five in a row. */
#define TOKEN_MS 1000
#define TOKENS_MAX_MS 5000

const char *const hf_health_condition_names[HF_HEALTH_CONDITIONS] = {
	"AcceleratorUnhealthy",
	"AcceleratorDegraded",
	"AcceleratorDriverUnresponsive",
	"FabricUnhealthy",
};

static const char *const reasons[HF_HEALTH_CLASSES] = {
	"OutOfService",  "OutOfService",    "OutOfService",  "OutOfService",
	"SoftwareFault", "Degraded",        "FabricFault",   "DrainRequired",
	"ResetRequired", "RestartRequired", "SupportNeeded", "ReplacementNeeded",
};

/* The reason of a condition by the fault, for faults of class degraded: the device may be slow, missing, or fail
 * now and then. */
static const struct {
	enum hf_health_detector detector;
	int32_t code_min, code_max;
	const char *reason;
} degraded[] = {
	{HF_HEALTH_THROTTLE, 1, 1, "Slow"},
	{HF_HEALTH_CLOCK, 1, 1, "Slow"},
	{HF_HEALTH_PCIE, 1, 2, "Slow"},
	{HF_HEALTH_REPLAY, 1, 1, "Slow"},
	{HF_HEALTH_STRAGGLER, 1, 1, "Slow"},
	{HF_HEALTH_AMD, HF_HEALTH_CODE_AMD_SLOW, HF_HEALTH_CODE_AMD_SLOW, "Slow"},
	{HF_HEALTH_IB, HF_HEALTH_CODE_PORT_SLOW, HF_HEALTH_CODE_PORT_SLOW, "Slow"},
	{HF_HEALTH_COUNT, HF_HEALTH_CODE_FEWER, HF_HEALTH_CODE_FEWER, "DeviceMissing"},
	{HF_HEALTH_BUSLOST, HF_HEALTH_CODE_BUS, HF_HEALTH_CODE_BUS, "DeviceMissing"},
	{HF_HEALTH_BUSLOST, HF_HEALTH_CODE_INIT, HF_HEALTH_CODE_INIT, "DeviceUnresponsive"},
	{HF_HEALTH_RECOVERY, HF_HEALTH_CODE_RESET_SOMEWHERE, HF_HEALTH_CODE_RESET_SOMEWHERE,
	 "ResetRequired"},
	{HF_HEALTH_AER, 1, INT32_MAX, "BusErrors"},
	{HF_HEALTH_XID, 1, INT32_MAX, "RepeatedErrors"},
};

static bool is_bad(enum hf_health_state state)
{
	return state == HF_HEALTH_DEGRADED_STATE || hf_health_is_out(state);
}

static bool is_of_driver(const struct hf_health_device *d)
{
	for (size_t i = 0; i < d->faults_len; i++) {
		const struct hf_health_fault *f = &d->faults[i];

		if (hf_health_fault_acts(f) &&
		    (f->detector == HF_HEALTH_DRIVER || f->detector == HF_HEALTH_PLUGIN ||
		     (f->detector == HF_HEALTH_PEERS && f->code == HF_HEALTH_CODE_ALL)))
			return true;
	}
	return false;
}

static bool is_of_fabric(const struct hf_health_device *d)
{
	const struct hf_health_fault *f = hf_health_device_worst(d);

	return d->kind == HF_HEALTH_PORT || d->kind == HF_HEALTH_SWITCH ||
	       (f && f->scope == HF_HEALTH_OF_FABRIC);
}

/* The device counts for the condition. */
static bool counts_for(const struct hf_health_device *d, size_t condition)
{
	bool accelerator = d->kind == HF_HEALTH_GPU || d->kind == HF_HEALTH_NODE;

	switch (condition) {
	case 0: return accelerator && hf_health_is_out(d->state);
	case 1:
		return accelerator && d->state == HF_HEALTH_DEGRADED_STATE &&
		       !(d->kind == HF_HEALTH_NODE && is_of_driver(d));
	case 2: return d->kind == HF_HEALTH_NODE && is_bad(d->state) && is_of_driver(d);
	default: return is_bad(d->state) && is_of_fabric(d);
	}
}

/* Whether the state of a device that the condition is about is known; else the condition is Unknown. */
static bool is_condition_known(const struct hf_health_brain *b, size_t condition)
{
	bool any = false;

	for (size_t i = 0; i < b->memory->devices_len; i++) {
		const struct hf_health_device *d = &b->memory->devices[i];
		bool fabric = d->kind == HF_HEALTH_PORT || d->kind == HF_HEALTH_SWITCH;
		bool asked = condition == 2   ? d->kind == HF_HEALTH_NODE
			     : condition == 3 ? fabric || d->kind == HF_HEALTH_GPU
					      : d->kind == HF_HEALTH_GPU;

		any |= asked && d->state != HF_HEALTH_UNKNOWN;
	}
	return any;
}

/* Adds "0000:1a:00.0 Unhealthy (xid 119: gpu-reset)", without numbers that grow by themselves. */
static void name_device(struct hf_strbuf *sb, const struct hf_health_device *d)
{
	const struct hf_health_fault *f = hf_health_device_worst(d);

	hf_strbuf_addf(sb, "%s%s %s", sb->len > 0 ? "; " : "",
		       d->kind == HF_HEALTH_NODE ? "node" : d->id, hf_health_state_name(d->state));
	if (d->state == HF_HEALTH_DEGRADED_STATE && (!f || f->cls < HF_HEALTH_SOFTWARE))
		hf_strbuf_addstr(sb, " (its faults have ended)");
	else if (f)
		hf_strbuf_addf(sb, " (%s %d%s%s: %s)", hf_health_detector_name(f->detector),
			       f->code, f->unit[0] ? " " : "", f->unit,
			       hf_health_class_name(f->cls));
}

struct key {
	enum hf_health_detector detector;
	int32_t code;
};

/* A fault of several devices at once has as its unit the detector and the code of the devices' faults, such as
 * "buslost 79": it gets the reason that those faults would have. */
static struct key find_shared_key(const struct hf_health_fault *fault)
{
	struct key key = {fault->detector, fault->code};
	char name[HF_HEALTH_UNIT_MAX];
	const char *blank = strchr(fault->unit, ' ');

	if (fault->detector != HF_HEALTH_PEERS || !blank)
		return key;
	hf_str_print(name, sizeof(name), fault->unit, (size_t)(blank - fault->unit));
	if (hf_health_detector_of(name, &key.detector))
		key.code = (int32_t)strtol(blank + 1, NULL, 10);
	return key;
}

/* The reason of a condition, from its gravest fault; NULL: no fault acts any more. */
static const char *get_reason(const struct hf_health_fault *fault, bool out)
{
	enum hf_health_class cls = fault ? fault->cls : HF_HEALTH_NONE;
	struct key key;

	if (cls < HF_HEALTH_SOFTWARE && !out)
		return "FaultEnded";
	if (cls != HF_HEALTH_DEGRADED)
		return reasons[cls];
	key = find_shared_key(fault);
	for (size_t i = 0; i < HF_ARRAY_LEN(degraded); i++)
		if (degraded[i].detector == key.detector && key.code >= degraded[i].code_min &&
		    key.code <= degraded[i].code_max)
			return degraded[i].reason;
	return reasons[cls];
}

static void judge_condition(struct hf_health_brain *b, size_t condition,
			    struct hf_health_condition *ret)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_HEALTH_MESSAGE_MAX - 1);
	const struct hf_health_fault *worst = NULL;
	bool found = false, out = false;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		const struct hf_health_device *d = &b->memory->devices[i];
		const struct hf_health_fault *fault = hf_health_device_worst(d);

		if (!counts_for(d, condition))
			continue;
		found = true;
		out |= hf_health_is_out(d->state);
		if (fault && (!worst || hf_health_fault_is_graver(fault, worst)))
			worst = fault;
		name_device(&sb, d);
	}
	ret->status = found                              ? HF_HEALTH_TRUE
		      : is_condition_known(b, condition) ? HF_HEALTH_FALSE
							 : HF_HEALTH_UNCERTAIN;
	snprintf(ret->reason, sizeof(ret->reason), "%s",
		 found                            ? get_reason(worst, out)
		 : ret->status == HF_HEALTH_FALSE ? "NoFault"
						  : "NotKnown");
	memcpy(ret->message, sb.data, sb.len);
}

/* ---- when to write ---------------------------------------------------------------------------- */

static uint64_t mix_hash(uint64_t hash, uint64_t value)
{
	const uint64_t both[2] = {hash, value};

	return hf_hash_bytes(both, sizeof(both));
}

/* A hash over the fields of DeviceHealth on which its readers decide, without counts and times, which change by
 * themselves. */
static uint64_t hash_devices(const struct hf_health_brain *b)
{
	uint64_t hash = mix_hash(b->memory->rules_hash, hf_health_memory_misses(b->memory));

	for (size_t i = 0; i < b->memory->devices_len; i++) {
		const struct hf_health_device *d = &b->memory->devices[i];

		hash = mix_hash(hash, hf_hash_str(d->id));
		hash = mix_hash(hash, hf_hash_str(d->uuid));
		hash = mix_hash(hash, d->generation);
		hash = mix_hash(hash, d->state);
		for (size_t k = 0; k < d->faults_len; k++) {
			const struct hf_health_fault *f = &d->faults[k];

			if (!f->open)
				continue;
			hash = mix_hash(hash, (uint64_t)f->detector << 32 | (uint32_t)f->code);
			hash = mix_hash(hash, (uint64_t)f->cls << 2 |
						      (uint64_t)hf_health_fault_follows(f) << 1 |
						      f->covered);
			hash = mix_hash(hash, hf_hash_str(f->unit));
		}
	}
	return hash;
}

/* The time between heartbeats, which depends on the node's name, so that the heartbeats of many nodes do not come
 * at one moment. */
static hf_time find_heartbeat(const struct hf_health_brain *b)
{
	hf_time span = b->config->heartbeat;
	uint64_t spread = b->input->node ? hf_hash_str(b->input->node) % 401 : 200;

	return span * 4 / 5 + span / 1000 * (hf_time)spread;
}

static bool take_token(struct hf_health_brain *b)
{
	struct hf_health_memory *m = b->memory;
	hf_time passed;

	if (m->tokens_at == HF_TIME_NONE) {
		m->tokens_at = b->now;
		m->tokens_ms = TOKENS_MAX_MS;
	}
	passed = (b->now - m->tokens_at) / HF_MS;
	if (passed > TOKENS_MAX_MS - m->tokens_ms) {
		m->tokens_ms = TOKENS_MAX_MS;
		m->tokens_at = b->now;
	} else {
		m->tokens_ms += passed;
		m->tokens_at += passed * HF_MS;
	}
	if (m->tokens_ms < TOKEN_MS) {
		hf_health_wake(b, m->tokens_at + (TOKEN_MS - m->tokens_ms) * HF_MS);
		return false;
	}
	m->tokens_ms -= TOKEN_MS;
	return true;
}

static bool is_changed(const struct hf_health_condition *a, const struct hf_health_condition *b)
{
	return a->status != b->status || !hf_streq(a->reason, b->reason) ||
	       !hf_streq(a->message, b->message);
}

static void plan_write(struct hf_health_brain *b)
{
	struct hf_health_memory *m = b->memory;
	struct hf_health_condition now[HF_HEALTH_CONDITIONS];
	bool first = m->written_at == HF_TIME_NONE;
	bool due = first || b->now - m->written_at >= find_heartbeat(b), news = first;
	uint64_t hash = hash_devices(b);

	for (size_t i = 0; i < HF_HEALTH_CONDITIONS; i++) {
		judge_condition(b, i, &now[i]);
		news |= is_changed(&now[i], &m->conditions[i]);
		now[i].changed_at = first || now[i].status != m->conditions[i].status
					    ? b->now
					    : m->conditions[i].changed_at;
	}
	if ((news || due || hash != m->written_hash) && take_token(b)) {
		b->plan->write_conditions = news || due;
		b->plan->write_devices = first || hash != m->written_hash;
		memcpy(m->conditions, now, sizeof(now));
		m->written_hash = hash;
		m->written_at = b->now;
		b->changed = true;
	}
	if (m->written_at != HF_TIME_NONE)
		hf_health_wake(b, m->written_at + find_heartbeat(b));
}

/* ---- events and the node in a word ---------------------------------------------------------------- */

/* The MIG instance that the fault concerns; -1: all instances, since a fault that stops the device stops all of
 * them. */
static int32_t find_instance(const struct hf_health_fault *f)
{
	return hf_health_is_fatal(f->cls) ? -1 : hf_health_fault_instance(f);
}

/* Whether the former event named one instance, while the fault now concerns all instances. */
static bool is_for_more(const struct hf_health_fault *f)
{
	return f->told_part && f->told_at >= f->opened_at && find_instance(f) < 0;
}

/* Whether the fault acts, or acted until its end in this step. */
static bool is_news(struct hf_health_fault *f)
{
	bool passed = f->passed;

	f->passed = false;
	return (hf_health_fault_acts(f) || passed) && f->cls >= HF_HEALTH_SOFTWARE;
}

static void report_faults(struct hf_health_brain *b)
{
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++) {
			struct hf_health_fault *f = &d->faults[k];

			if (!is_news(f))
				continue;
			/* A fault gives one event while it is open; a fault that comes and goes gives one within
			 * event_every. */
			if (f->told_at != HF_TIME_NONE && !is_for_more(f) &&
			    (f->told_at >= f->opened_at ||
			     b->now - f->told_at < b->config->event_every))
				continue;
			f->told_at = b->now;
			f->told_part = find_instance(f) >= 0;
			hf_health_event(b, d, "DeviceFault",
					hf_arena_printf(b->arena, "%s %d%s%s: %s, %s",
							hf_health_detector_name(f->detector),
							f->code, f->unit[0] ? " " : "", f->unit,
							hf_health_class_name(f->cls),
							hf_health_action_name(f->action)));
			b->events[b->events_len - 1].gpu_instance = find_instance(f);
		}
	}
}

/* The worst first. */
static const struct {
	enum hf_health_state state;
	const char *label;
} labels[] = {
	{HF_HEALTH_FAILED, "failed"},           {HF_HEALTH_REMEDIATING, "remediating"},
	{HF_HEALTH_QUARANTINED, "quarantined"}, {HF_HEALTH_UNHEALTHY, "unhealthy"},
	{HF_HEALTH_DEGRADED_STATE, "degraded"}, {HF_HEALTH_PROBATION, "probation"},
	{HF_HEALTH_SUSPECT, "suspect"},         {HF_HEALTH_HEALTHY, "healthy"},
};

static const char *find_label(const struct hf_health_memory *m)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(labels); i++) {
		for (size_t k = 0; k < m->devices_len; k++) {
			if (m->devices[k].state == labels[i].state)
				return labels[i].state == HF_HEALTH_HEALTHY &&
						       hf_health_memory_misses(m)
					       ? "unknown"
					       : labels[i].label;
		}
	}
	return "unknown";
}

void hf_health_publish(struct hf_health_brain *b)
{
	report_faults(b);
	plan_write(b);
	b->plan->label = find_label(b->memory);
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		enum hf_health_class cls = hf_health_device_class(&b->memory->devices[i]);

		b->plan->cls = cls > b->plan->cls ? cls : b->plan->cls;
	}
}
