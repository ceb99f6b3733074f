/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Finds the events of each device from its faults and its silence, and moves the device by the table of
 * device_states.c.
 * Invariant: a device with a fatal fault that acts is not in service.
 */
#include "health/brain_internal.h"

#include <string.h>

/* A summary of a device's faults that act now. */
struct standing {
	enum hf_health_class cls;
	bool fatal, weak, level, covered;
	bool mended;       /* a fatal fault has ended since the device got its present state */
	hf_time closed_at; /* the latest end of a fault */
	const char *why;
};

static const char *describe_fault(struct hf_health_brain *b, const struct hf_health_fault *f)
{
	const char *det = hf_health_detector_name(f->detector);

	if (f->unit[0] != '\0')
		return hf_arena_printf(b->arena, "%s %d %s: %s", det, f->code, f->unit,
				       hf_health_class_name(f->cls));
	return hf_arena_printf(b->arena, "%s %d: %s", det, f->code, hf_health_class_name(f->cls));
}

static struct standing sum_faults(struct hf_health_brain *b, const struct hf_health_device *d)
{
	struct standing s = {.closed_at = 0, .why = ""};
	const struct hf_health_fault *worst = NULL;

	for (size_t i = 0; i < d->faults_len; i++) {
		const struct hf_health_fault *f = &d->faults[i];

		if (f->open && f->covered)
			s.covered = true;
		if (!f->open && f->cls >= HF_HEALTH_SOFTWARE && f->closed_at > s.closed_at)
			s.closed_at = f->closed_at;
		s.mended |= !f->open && hf_health_is_fatal(f->cls) && f->closed_at >= d->since;
		if (!hf_health_fault_acts(f) || f->cls < HF_HEALTH_SOFTWARE)
			continue;
		s.fatal |= hf_health_is_fatal(f->cls);
		s.weak |= hf_health_is_weak(f->cls);
		s.level |= f->clear == HF_HEALTH_BY_LEVEL || f->clear == HF_HEALTH_BY_PERSON;
		if (!worst || hf_health_fault_is_graver(f, worst))
			worst = f;
	}
	if (worst) {
		s.cls = worst->cls;
		s.why = describe_fault(b, worst);
	}
	return s;
}

/* ---- moves ---------------------------------------------------------------------------------------- */

/* Whether only faults of programs act on the device: such faults make a device Suspect, but never Failed. */
static bool is_of_programs(const struct hf_health_device *d)
{
	for (size_t i = 0; i < d->faults_len; i++) {
		const struct hf_health_fault *f = &d->faults[i];

		if (hf_health_fault_acts(f) && f->cls >= HF_HEALTH_SOFTWARE && !f->program)
			return false;
	}
	return true;
}

/* Counts that a device entered the state Suspect. The flap_count-th entry within the window holds
 * the device in Suspect for hold_base, and each further entry for twice as long, up to hold_max.
 * With flap_fail entries the device becomes Failed; the node as a whole never does. */
static void count_flap(struct hf_health_brain *b, struct hf_health_device *d)
{
	const struct hf_health_config *c = b->config;
	hf_time hold = c->hold_base;
	uint32_t flaps;

	if (is_of_programs(d))
		return;
	hf_health_times_add(d->flaps, &d->flaps_len, HF_HEALTH_FLAPS_MAX, b->now,
			    b->now - c->flap_window);
	flaps = d->flaps_len;
	/* The node itself is never Failed: a plugin that restarts, or a driver that is loaded again, must not take
	 * the node's devices out of service for good. */
	if (flaps >= (uint32_t)c->flap_fail && d->kind != HF_HEALTH_NODE) {
		hf_health_move(b, d, HF_HEALTH_FLAPPED, "Suspect too many times within the window");
		return;
	}
	if (flaps < (uint32_t)c->flap_count)
		return;
	for (uint32_t i = (uint32_t)c->flap_count; i < flaps && hold < c->hold_max; i++)
		hold *= 2;
	d->hold_until = b->now + (hold < c->hold_max ? hold : c->hold_max);
	hf_health_event(b, d, "DeviceFlapping",
			hf_arena_printf(b->arena,
					"Suspect %u times within the window, held there for %lld s",
					flaps, (long long)((d->hold_until - b->now) / HF_SECOND)));
}

bool hf_health_move(struct hf_health_brain *b, struct hf_health_device *device,
		    enum hf_health_event event, const char *why)
{
	enum hf_health_state from = device->state, to;

	if (!hf_health_next(from, event, &to))
		return false;
	hf_assert(b->moves_len < b->moves_cap);
	b->moves[b->moves_len++] = (struct hf_health_move){

		.device = hf_arena_strdup(b->arena, device->id),
		.from = from,
		.to = to,
		.event = event,
		.why = why};
	device->state = to;
	device->since = b->now;
	device->generation++;
	b->changed = true;
	if (to == HF_HEALTH_PROBATION || to == HF_HEALTH_HEALTHY) {
		/* Sightings from before this change of the state do not count. */
		device->sightings_len = 0;
		memset(device->sightings, 0, sizeof(device->sightings));
	}
	if (to == HF_HEALTH_HEALTHY && from != HF_HEALTH_UNKNOWN) {
		device->owned = false;
		hf_health_event(b, device, "DeviceRecovered",
				from == HF_HEALTH_PROBATION ? "probation is over"
							    : "quiet for long enough");
	}
	if (to == HF_HEALTH_SUSPECT && (from == HF_HEALTH_HEALTHY || from == HF_HEALTH_PROBATION))
		count_flap(b, device);
	return true;
}

/* ---- which event --------------------------------------------------------------------------------------- */

static bool is_heard(struct hf_health_brain *b, const struct hf_health_device *d)
{
	hf_time end;

	if (d->heard_at == HF_TIME_NONE)
		return false;
	end = hf_time_add(d->heard_at, b->config->stale_after + 1);
	hf_health_wake(b, end);
	return b->now < end;
}

/* Whether the device may become Healthy: all faults have ended for long enough (for a Suspect device a weak fault
 * need not have ended), and a detector could see the device in that time. */
static bool is_quiet(struct hf_health_brain *b, const struct hf_health_device *d,
		     const struct standing *s)
{
	hf_time from = d->weak_at > s->closed_at ? d->weak_at : s->closed_at, end;

	if (b->memory->doubted || s->fatal || s->level ||
	    (s->weak && d->state != HF_HEALTH_SUSPECT))
		return false;
	if (d->watched_at > from)
		from = d->watched_at;
	end = hf_time_add(from, b->config->clear_after);
	if (d->hold_until > end)
		end = d->hold_until;
	hf_health_wake(b, end);
	return b->now >= end;
}

static void forget_weak(struct hf_health_brain *b, struct hf_health_device *d)
{
	for (size_t i = 0; i < d->faults_len; i++) {
		if (hf_health_fault_acts(&d->faults[i]))
			hf_health_fault_close(b, &d->faults[i]);
	}
}

bool hf_health_is_confirmed(const struct hf_health_brain *b, const struct hf_health_device *d)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->sightings_len; i++)
		n += b->now - d->sightings[i] <= b->config->confirm_window;
	return n >= (uint32_t)b->config->confirm_count;
}

static bool settle_unknown(struct hf_health_brain *b, struct hf_health_device *d,
			   const struct standing *s)
{
	if (s->fatal)
		return hf_health_move(b, d, HF_HEALTH_STOPPED, s->why);
	if (!is_heard(b, d) || s->covered)
		return false;
	if (s->weak)
		return hf_health_move(b, d, HF_HEALTH_WEAK, s->why);
	return !b->memory->doubted && hf_health_move(b, d, HF_HEALTH_HEARD, "");
}

/* Handles a device without a new fault: it becomes Healthy, or Unknown, or keeps its state. */
static bool settle_calm(struct hf_health_brain *b, struct hf_health_device *d,
			const struct standing *s)
{
	/* The history of this boot is lost, so later faults may be lost too. */
	if (d->state == HF_HEALTH_HEALTHY && b->memory->doubted)
		return hf_health_move(b, d, HF_HEALTH_SILENT, "its history is lost");
	/* If no detector sees the device, the lack of evidence does not show that it is well. */
	if (d->state != HF_HEALTH_HEALTHY && is_quiet(b, d, s) && is_heard(b, d)) {
		forget_weak(b, d);
		return hf_health_move(b, d, HF_HEALTH_QUIET, "");
	}
	/* A device that is held in Suspect stays Suspect although no detector sees it. */
	if (d->state == HF_HEALTH_SUSPECT && b->now < d->hold_until)
		return false;
	return !is_heard(b, d) && hf_health_move(b, d, HF_HEALTH_SILENT, "no detector sees it");
}

/* Healthy, Suspect, Degraded. */
static bool settle_running(struct hf_health_brain *b, struct hf_health_device *d,
			   const struct standing *s)
{
	if (s->fatal)
		return hf_health_move(b, d, HF_HEALTH_STOPPED, s->why);
	if (s->covered && !s->weak)
		return hf_health_move(b, d, HF_HEALTH_COVERED,
				      "a fault of the node covers its faults");
	if (s->weak && d->state == HF_HEALTH_HEALTHY)
		return hf_health_move(b, d, HF_HEALTH_WEAK, s->why);
	if (s->weak && d->state == HF_HEALTH_SUSPECT && hf_health_is_confirmed(b, d))
		return hf_health_move(b, d, HF_HEALTH_CONFIRMED, s->why);
	return settle_calm(b, d, s);
}

static bool settle_unhealthy(struct hf_health_brain *b, struct hf_health_device *d,
			     const struct standing *s)
{
	if (s->fatal)
		return false;
	if (s->covered && !s->mended)
		return hf_health_move(b, d, HF_HEALTH_COVERED,
				      "a fault of the node covers its faults");
	if (s->weak)
		return hf_health_move(b, d, HF_HEALTH_EASED, s->why);
	return hf_health_move(b, d, HF_HEALTH_MENDED,
			      s->covered ? "the fault that stopped the device has ended"
					 : "the device's faults have ended");
}

static bool settle_probation(struct hf_health_brain *b, struct hf_health_device *d,
			     const struct standing *s)
{
	bool again = s->fatal || s->weak;
	hf_time from = d->since, end;

	if (again && d->owned)
		return hf_health_move(b, d, HF_HEALTH_RELAPSED, s->why);
	if (again)
		return hf_health_move(b, d, s->fatal ? HF_HEALTH_STOPPED : HF_HEALTH_WEAK, s->why);
	/* A fault that ended during probation was one of the node; any other fault would have ended the probation. */
	if (s->closed_at > from)
		from = s->closed_at;
	if (d->watched_at > from)
		from = d->watched_at;
	end = hf_time_add(from, b->config->probation);
	hf_health_wake(b, end);
	/* A device passes probation only if a detector saw it and its history is known. */
	if (b->now < end || b->memory->doubted || s->covered || !is_heard(b, d))
		return false;
	return hf_health_move(b, d, HF_HEALTH_PASSED, "");
}

/* The first fatal fault of the device that a recovery ended in this step; NULL: none. */
static const struct hf_health_fault *find_passed(const struct hf_health_device *d)
{
	for (size_t i = 0; i < d->faults_len; i++)
		if (d->faults[i].passed && hf_health_is_fatal(d->faults[i].cls))
			return &d->faults[i];
	return NULL;
}

/* A fault that began and ended within one step stops the device, as it would in two steps. */
static void stop_for_passed(struct hf_health_brain *b, struct hf_health_device *d)
{
	const struct hf_health_fault *f = find_passed(d);

	if (f)
		hf_health_move(b, d,
			       d->state == HF_HEALTH_PROBATION && d->owned ? HF_HEALTH_RELAPSED
									   : HF_HEALTH_STOPPED,
			       describe_fault(b, f));
}

static bool settle_once(struct hf_health_brain *b, struct hf_health_device *d)
{
	struct standing s = sum_faults(b, d);

	switch (d->state) {
	case HF_HEALTH_UNKNOWN: return settle_unknown(b, d, &s);
	case HF_HEALTH_HEALTHY:
	case HF_HEALTH_SUSPECT:
	case HF_HEALTH_DEGRADED_STATE: return settle_running(b, d, &s);
	case HF_HEALTH_UNHEALTHY: return settle_unhealthy(b, d, &s);
	case HF_HEALTH_PROBATION: return settle_probation(b, d, &s);
	default: return false; /* by order alone */
	}
}

void hf_health_move_devices(struct hf_health_brain *b)
{
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		struct hf_health_device *d = &b->memory->devices[i];
		int rounds = 0;

		stop_for_passed(b, d);
		/* The longest chain of changes in a step is Unknown, Suspect, Degraded; no chain comes back to a
		 * state. */
		while (settle_once(b, d))
			hf_assert(++rounds < HF_HEALTH_STATES);
	}
}
