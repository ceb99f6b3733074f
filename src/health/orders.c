/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Begins a new boot, and applies orders and acknowledgements.
 * Invariant: an order does not affect evidence that is later than the order.
 */
#include "health/brain_internal.h"

#include "base/str.h"

#include <string.h>

/* ---- a new boot ----------------------------------------------------------------------------------- */

static bool is_stopped(const struct hf_health_device *device)
{
	return hf_health_is_fatal(hf_health_device_class(device));
}

/* Whether an agent counted the devices in the boot that is over; it may not have run for long enough. */
static bool was_looked_at(const struct hf_health_memory *m)
{
	return m->counted || m->gpus > 0 || m->bus > 0;
}

/* Whether the device is forgotten: it was not seen in the boot that is over, is not named now, and has no open
 * fault. */
static bool is_phantom(const struct hf_health_brain *b, const struct hf_health_device *d)
{
	for (size_t i = 0; i < b->input->devices_len; i++)
		if (hf_streq(b->input->devices[i].id, d->id))
			return false;
	for (size_t i = 0; i < d->faults_len; i++) {
		if (d->faults[i].open)
			return false;
	}
	if (d->kind == HF_HEALTH_SWITCH)
		return !d->seen && d->state <= HF_HEALTH_HEALTHY;
	return !d->seen && d->state == HF_HEALTH_UNKNOWN &&
	       (was_looked_at(b->memory) || d->kind != HF_HEALTH_GPU);
}

static void boot_device(struct hf_health_brain *b, struct hf_health_device *d)
{
	for (size_t i = 0; i < d->faults_len; i++) {
		if (d->faults[i].clear != HF_HEALTH_BY_PERSON)
			hf_health_fault_close(b, &d->faults[i]);
	}
	/* Counters begin at 0 after a boot, so the tracks of the judges are cleared. */
	memset(d->tracks, 0, sizeof(d->tracks));
	d->sightings_len = 0;
	memset(d->sightings, 0, sizeof(d->sightings));
	d->fresh_after = b->input->boot_at;
	d->seen = false;
	d->heard_at = HF_TIME_NONE;
	hf_health_move(b, d, HF_HEALTH_BOOTED, "a new boot");
	if (d->state == HF_HEALTH_UNHEALTHY && !is_stopped(d))
		hf_health_move(b, d, HF_HEALTH_MENDED, "a new boot");
}

void hf_health_begin_boot(struct hf_health_brain *b)
{
	struct hf_health_memory *m = b->memory;

	if (hf_streq(m->boot_id, b->input->boot_id))
		return;
	for (size_t i = m->devices_len; i-- > 1;)
		if (m->boot_id[0] != '\0' && is_phantom(b, &m->devices[i]))
			hf_health_forget(b, &m->devices[i]);
	for (size_t i = 0; i < m->devices_len && m->boot_id[0] != '\0'; i++)
		boot_device(b, &m->devices[i]);
	/* If nothing was counted in the boot that is over, the numbers of the boot before stay. */
	if (m->gpus > 0 || m->counted)
		m->gpus_before = m->gpus;
	if (m->bus > 0 || m->counted)
		m->bus_before = m->bus;
	m->gpus = m->bus = 0;
	m->counted = m->offered = false;
	m->doubted = b->input->doubted;
	memcpy(m->boot_id, b->input->boot_id, sizeof(m->boot_id));
	b->changed = true;
}

/* ---- orders -------------------------------------------------------------------------------------------- */

/* Whether a verified action of this kind ends the fault. */
static bool ends_fault(enum hf_health_action action, const struct hf_health_fault *f)
{
	switch (action) {
	case HF_HEALTH_REPLACE_NODE: return true;
	case HF_HEALTH_RESTART_NODE: return f->clear != HF_HEALTH_BY_PERSON;
	case HF_HEALTH_RESET_DEVICE:
	case HF_HEALTH_RESTART_DRIVER:
		/* Loading a driver resets its devices. */
		return f->clear == HF_HEALTH_BY_SIGNAL || f->clear == HF_HEALTH_BY_AGE ||
		       f->detector == HF_HEALTH_PEERS;
	default: return false;
	}
}

static void mend_device(struct hf_health_brain *b, struct hf_health_device *d,
			enum hf_health_action action, hf_time at)
{
	for (size_t i = 0; i < d->faults_len; i++) {
		if (ends_fault(action, &d->faults[i]))
			hf_health_fault_close(b, &d->faults[i]);
	}
	/* Evidence from before the cure is dropped. */
	d->fresh_after = at;
	b->changed = true;
}

static void take_verified(struct hf_health_brain *b, struct hf_health_device *d,
			  const struct hf_health_order *order)
{
	if (d->state != HF_HEALTH_REMEDIATING)
		return;
	mend_device(b, d, order->action, order->at);
	if (is_stopped(d))
		hf_health_move(b, d, HF_HEALTH_MISSED, "verified, but a fault stands");
	else
		hf_health_move(b, d, HF_HEALTH_VERIFIED, hf_health_action_name(order->action));
}

/* Whether the fault is measured again and again while it lasts, so that its last time is no new error.  A line of
 * the log, or a counter that rises, is a new error each time. */
static bool is_measured(const struct hf_health_fault *f)
{
	if (f->sources & 1u << HF_HEALTH_BY_KMSG)
		return false;
	switch (f->detector) {
	case HF_HEALTH_RECOVERY:
	case HF_HEALTH_BUSLOST: return true;
	case HF_HEALTH_ECC: return f->code != HF_HEALTH_CODE_UNCORRECTABLE;
	/* The last time of a shared fault is that of the last device that got the fault. */
	case HF_HEALTH_PEERS: return false;
	default: return f->clear == HF_HEALTH_BY_LEVEL;
	}
}

/* Closes the faults that were known at that time.  False: later faults remain. */
static bool close_known(struct hf_health_brain *b, struct hf_health_device *d, hf_time at)
{
	bool all = true;

	for (size_t i = 0; i < d->faults_len; i++) {
		struct hf_health_fault *f = &d->faults[i];

		if (!f->open)
			continue;
		if ((is_measured(f) ? f->opened_at : f->last) <= at)
			hf_health_fault_close(b, f);
		else if (f->cls >= HF_HEALTH_SOFTWARE)
			all = false;
	}
	return all;
}

static void take_cleared(struct hf_health_brain *b, struct hf_health_device *d,
			 const struct hf_health_order *order)
{
	enum hf_health_state next;

	/* The person acknowledged before the device got its present state. */
	if (order->at <= d->since)
		return;
	if (d->kind == HF_HEALTH_NODE) {
		/* The acknowledgement accepts the present devices. */
		b->changed |= b->memory->doubted || b->memory->gpus_before > b->memory->gpus;
		b->memory->doubted = false;
		b->memory->gpus_before = b->memory->bus_before = 0;
	}
	/* The device was removed, or has another address now. */
	if (!d->seen && d->kind != HF_HEALTH_NODE) {
		if (d->kind == HF_HEALTH_GPU && b->memory->gpus_before > b->memory->gpus)
			b->memory->gpus_before--;
		if (d->kind == HF_HEALTH_GPU && b->memory->bus_before > b->memory->bus)
			b->memory->bus_before--;
		hf_health_forget(b, d);
		return;
	}
	/* The device has no fault, or a remedy is under way, or later faults remain. */
	if (d->state == HF_HEALTH_HEALTHY || d->state == HF_HEALTH_REMEDIATING ||
	    !close_known(b, d, order->at))
		return;
	/* The tracks of measurements begin again: a fault must be measured again. */
	memset(d->tracks, 0, sizeof(d->tracks));
	b->changed = true;
	/* A device that is Unknown or on probation keeps its state: its faults belong to the node, or no detector
	 * sees the device. */
	if (!hf_health_next(d->state, HF_HEALTH_CLEARED_BY_PERSON, &next))
		return;
	/* Evidence from before the acknowledgement is dropped. */
	d->fresh_after = order->at;
	d->flaps_len = 0;
	memset(d->flaps, 0, sizeof(d->flaps));
	d->fatals_len = 0;
	memset(d->fatals, 0, sizeof(d->fatals));
	d->hold_until = 0;
	hf_health_move(b, d, HF_HEALTH_CLEARED_BY_PERSON, "a person acknowledged the repair");
}

static void obey_order(struct hf_health_brain *b, struct hf_health_device *d,
		       const struct hf_health_order *order)
{
	switch (order->kind) {
	case HF_HEALTH_ORDER_QUARANTINE:
		if (hf_health_move(b, d, HF_HEALTH_TAKEN, "by order"))
			d->owned = true;
		break;
	case HF_HEALTH_ORDER_REMEDIATE: hf_health_move(b, d, HF_HEALTH_BEGUN, "by order"); break;
	case HF_HEALTH_ORDER_VERIFIED: take_verified(b, d, order); break;
	case HF_HEALTH_ORDER_RUNG_FAILED: hf_health_move(b, d, HF_HEALTH_MISSED, "by order"); break;
	case HF_HEALTH_ORDER_GIVE_UP: hf_health_move(b, d, HF_HEALTH_GIVEN_UP, "by order"); break;
	case HF_HEALTH_ORDER_RELEASE:
		/* A device is not released while a fault that counts against it acts. */
		if (hf_health_device_class(d) < HF_HEALTH_SOFTWARE)
			hf_health_move(b, d, HF_HEALTH_RELEASED, "by order");
		break;
	case HF_HEALTH_ORDER_CLEAR: take_cleared(b, d, order); break;
	default: break;
	}
}

void hf_health_apply_orders(struct hf_health_brain *b)
{
	for (size_t i = 0; i < b->input->orders_len; i++) {
		struct hf_health_order order = b->input->orders[i];
		struct hf_health_device *d = hf_health_memory_find(b->memory, order.device);
		bool node;

		if (order.at == HF_TIME_NONE || order.at > b->now)
			order.at = b->now;
		/* An order from before this boot has no effect. */
		if (!d || (b->input->boot_at != HF_TIME_NONE && order.at < b->input->boot_at))
			continue;
		node = d->kind == HF_HEALTH_NODE;
		obey_order(b, d, &order);
		/* An action on the node, for instance a restart of the driver, concerns every device of the node. */
		for (size_t k = 1;
		     node && order.kind == HF_HEALTH_ORDER_VERIFIED && k < b->memory->devices_len;
		     k++)
			mend_device(b, &b->memory->devices[k], order.action, order.at);
	}
}
