/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Finds faults that several devices of a node have at once.
 *
 * If half of the devices get the same fault within a minute, they share a cause.  If all of them stop at once, the
 * cause is not the wear of eight chips, but the driver, the agent or the board.  In both cases the node has the
 * fault.  The devices' own faults are covered: open, but not acting, until they end or the node's fault ends.
 *
 * Faults that began with the failure of a PCIe port above their device are left out: their cause is known.  A device
 * with only such faults counts as a device that had stopped before the others.
 */
#include "health/brain_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

struct key {
	enum hf_health_detector detector;
	int32_t code;
};

static void make_unit(const struct key *key, char ret_unit[HF_HEALTH_UNIT_MAX])
{
	snprintf(ret_unit, HF_HEALTH_UNIT_MAX, "%s %d", hf_health_detector_name(key->detector),
		 key->code);
}

/* Whether the fault is one of a PCIe port above the device, or began with such a fault or while it lasted.  The
 * kernel may report the device and the port in either order, and may have recovered the port since. */
static bool is_with_port(const struct hf_health_brain *b, const struct hf_health_device *d,
			 const struct hf_health_fault *fault)
{
	hf_time window = b->config->peers_window;

	for (size_t i = 0; i < d->faults_len; i++) {
		const struct hf_health_fault *f = &d->faults[i];

		if (!hf_health_is_fatal(f->cls) || !hf_health_fault_is_of_port(f))
			continue;
		/* A boot or a cure came after the port's fault. */
		if (!f->open && d->fresh_after != HF_TIME_NONE && f->last < d->fresh_after)
			continue;
		if (fault->opened_at >= f->opened_at - window &&
		    (f->open || fault->opened_at <= hf_time_add(f->closed_at, window)))
			return true;
	}
	return false;
}

/* Marks faults with a port as their cause; the mark stays when the port recovers. */
static void mark_port_faults(struct hf_health_brain *b)
{
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++) {
			struct hf_health_fault *f = &d->faults[k];

			if (!f->open || f->of_port || !is_with_port(b, d, f))
				continue;
			f->of_port = true;
			b->changed = true;
		}
	}
}

static bool is_candidate(const struct hf_health_device *d, const struct hf_health_fault *f)
{
	return d->kind == HF_HEALTH_GPU && d->seen && f->open && !hf_health_fault_follows(f) &&
	       f->cls >= HF_HEALTH_SOFTWARE;
}

static bool has_key(const struct hf_health_fault *f, const struct key *key)
{
	if (!key)
		return hf_health_is_fatal(f->cls);
	return f->detector == key->detector && f->code == key->code;
}

/* Whether the fault belongs to the group of this key (NULL: any fatal fault), and began within the window before
 * `last`. */
static bool is_member(const struct hf_health_brain *b, const struct hf_health_device *d,
		      const struct hf_health_fault *f, const struct key *key, hf_time last)
{
	return is_candidate(d, f) && !f->of_port && has_key(f, key) && f->opened_at <= last &&
	       last - f->opened_at <= b->config->peers_window;
}

static bool has_member(const struct hf_health_brain *b, const struct hf_health_device *d,
		       const struct key *key, hf_time last)
{
	for (size_t i = 0; i < d->faults_len; i++)
		if (is_member(b, d, &d->faults[i], key, last))
			return true;
	return false;
}

static size_t count_members(const struct hf_health_brain *b, const struct key *key, hf_time last)
{
	size_t n = 0;

	for (size_t i = 0; i < b->memory->devices_len; i++)
		n += has_member(b, &b->memory->devices[i], key, last);
	return n;
}

/* Whether the device has an open fault of this key, of any age. */
static bool has_open(const struct hf_health_device *d, const struct key *key)
{
	for (size_t i = 0; i < d->faults_len; i++)
		if (is_candidate(d, &d->faults[i]) && has_key(&d->faults[i], key))
			return true;
	return false;
}

static bool is_taken_out(const struct hf_health_device *d)
{
	return d->kind == HF_HEALTH_GPU && d->seen && hf_health_is_out(d->state);
}

/* Whether the device had stopped before the others, or was taken out of service: then all GPUs may have stopped at
 * once although this one did not. */
static bool had_stopped(const struct hf_health_brain *b, const struct hf_health_device *d,
			hf_time last)
{
	return (has_open(d, NULL) || (is_taken_out(d) && d->since < last)) &&
	       !has_member(b, d, NULL, last);
}

/* Whether all GPUs that still worked stopped within the window, and at least two did. */
static bool all_stopped(const struct hf_health_brain *b, size_t all, hf_time last)
{
	size_t now = count_members(b, NULL, last), before = 0;

	for (size_t i = 0; i < b->memory->devices_len; i++)
		before += had_stopped(b, &b->memory->devices[i], last);
	return now >= 2 && now + before == all;
}

static size_t count_gpus(const struct hf_health_brain *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->memory->devices_len; i++)
		n += b->memory->devices[i].kind == HF_HEALTH_GPU && b->memory->devices[i].seen;
	return n;
}

/* Ends the node's fault of half of the devices if it began within the window: it was the beginning of the fault of
 * all devices, found in an earlier step.  A fault of half of the devices from before the window is another fault
 * and stays. */
static void end_half_faults(struct hf_health_brain *b, hf_time last)
{
	struct hf_health_device *node = &b->memory->devices[0];

	for (size_t i = 0; i < node->faults_len; i++) {
		struct hf_health_fault *f = &node->faults[i];

		if (f->detector == HF_HEALTH_PEERS && f->code == HF_HEALTH_CODE_SAME &&
		    hf_health_is_fatal(f->cls) && last - f->opened_at <= b->config->peers_window)
			hf_health_fault_close(b, f);
	}
}

/* Covers the device's faults of the group.  False: the device has none. */
static bool cover_device(struct hf_health_brain *b, struct hf_health_device *d,
			 const struct key *key, hf_time last)
{
	bool any = false;

	for (size_t i = 0; i < d->faults_len; i++) {
		struct hf_health_fault *f = &d->faults[i];

		if (!is_member(b, d, f, key, last))
			continue;
		if (!f->covered)
			hf_health_fault_uncount(d, f);
		f->covered = any = true;
	}
	return any;
}

/* Opens the node's fault, and covers the faults of the devices. */
static void open_shared(struct hf_health_brain *b, const struct key *key, hf_time last)
{
	struct hf_health_evidence e = hf_health_evidence_none();
	struct hf_health_device *node = &b->memory->devices[0];

	e.detector = HF_HEALTH_PEERS;
	e.source = HF_HEALTH_BY_STEP;
	e.code = key ? HF_HEALTH_CODE_SAME : HF_HEALTH_CODE_ALL;
	e.at = last;
	if (key)
		make_unit(key, e.unit);
	for (size_t i = 0; i < b->memory->devices_len; i++)
		if (cover_device(b, &b->memory->devices[i], key, last))
			hf_health_fault_sight(b, node, last);
	(void)hf_health_fault_see(b, node, &e);
}

/* Returns when the latest fault with this detector and code began that no fault of the node covers;
 * NONE: there is none. */
static hf_time find_news(const struct hf_health_brain *b, const struct key *key)
{
	hf_time last = HF_TIME_NONE;

	for (size_t i = 0; i < b->memory->devices_len; i++) {
		const struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++) {
			const struct hf_health_fault *f = &d->faults[k];

			if (is_candidate(d, f) && !f->covered && !f->of_port && has_key(f, key) &&
			    f->opened_at > last)
				last = f->opened_at;
		}
	}
	return last;
}

/* The number of devices with an open fault of this key. */
static size_t count_standing(const struct hf_health_brain *b, const struct key *key)
{
	size_t n = 0;

	for (size_t i = 0; i < b->memory->devices_len; i++) {
		const struct hf_health_device *d = &b->memory->devices[i];

		n += has_open(d, key) || (key == NULL && is_taken_out(d));
	}
	return n;
}

static bool is_shared(const struct hf_health_brain *b, const struct hf_health_fault *f, size_t all)
{
	const struct key key = {.detector = f->detector, .code = f->code};
	size_t n = count_standing(b, &key);

	return (n >= 2 && n * 2 >= all) ||
	       (hf_health_is_fatal(f->cls) && count_standing(b, NULL) == all);
}

/* Returns when the last fault with the same detector and code ended on another device. */
static hf_time find_end_beside(const struct hf_health_brain *b, const struct hf_health_fault *f)
{
	const struct key key = {.detector = f->detector, .code = f->code};
	hf_time last = f->opened_at;

	for (size_t i = 0; i < b->memory->devices_len; i++) {
		const struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++) {
			const struct hf_health_fault *other = &d->faults[k];

			if (d->kind == HF_HEALTH_GPU && !other->open && other->closed_at > last &&
			    (has_key(other, &key) || hf_health_is_fatal(other->cls)))
				last = other->closed_at;
		}
	}
	return last;
}

/* Uncovers faults that most of the other devices have recovered from: now they count as the device's own.  This
 * waits for the window, because a driver that is loaded again recovers one device after the other. */
static void release_faults(struct hf_health_brain *b, size_t all)
{
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++) {
			struct hf_health_fault *f = &d->faults[k];
			hf_time end;

			if (!f->open || !f->covered)
				continue;
			if (f->of_port) {
				f->covered = false;
				hf_health_fault_own(b, d, f);
				continue;
			}
			if (is_shared(b, f, all))
				continue;
			end = hf_time_add(find_end_beside(b, f), b->config->peers_window);
			if (b->now < end) {
				hf_health_wake(b, end);
				continue;
			}
			f->covered = false;
			hf_health_fault_own(b, d, f);
		}
	}
}

/* Whether the node's fault covers this fault of a device. */
static bool is_under(const struct hf_health_fault *f, const struct hf_health_fault *of_node)
{
	char unit[HF_HEALTH_UNIT_MAX];

	if (!f->open || !f->covered || !of_node->open || of_node->detector != HF_HEALTH_PEERS)
		return false;
	if (of_node->code == HF_HEALTH_CODE_ALL)
		return hf_health_is_fatal(f->cls);
	make_unit(&(struct key){.detector = f->detector, .code = f->code}, unit);
	return hf_streq(unit, of_node->unit);
}

static bool covers_any(const struct hf_health_brain *b, const struct hf_health_fault *of_node)
{
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		const struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++)
			if (is_under(&d->faults[k], of_node))
				return true;
	}
	return false;
}

static bool is_under_any(const struct hf_health_brain *b, const struct hf_health_fault *f)
{
	const struct hf_health_device *node = &b->memory->devices[0];

	for (size_t i = 0; i < node->faults_len; i++)
		if (is_under(f, &node->faults[i]))
			return true;
	return false;
}

/* Ends a fault of the node that covers no fault any more.  Uncovers the faults of devices that a fault of the node
 * covered until its end. */
static void end_shared(struct hf_health_brain *b)
{
	struct hf_health_device *node = &b->memory->devices[0];

	for (size_t i = 0; i < node->faults_len; i++)
		if (node->faults[i].detector == HF_HEALTH_PEERS && !covers_any(b, &node->faults[i]))
			hf_health_fault_close(b, &node->faults[i]);
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++)
			if (d->faults[k].open && d->faults[k].covered &&
			    !is_under_any(b, &d->faults[k])) {
				d->faults[k].covered = false;
				hf_health_fault_own(b, d, &d->faults[k]);
			}
	}
}

static void cover_same(struct hf_health_brain *b, size_t all)
{
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++) {
			struct key key = {.detector = d->faults[k].detector,
					  .code = d->faults[k].code};
			hf_time last;
			size_t n;

			if (!is_candidate(d, &d->faults[k]) || d->faults[k].covered ||
			    d->faults[k].of_port)
				continue;
			last = find_news(b, &key);
			n = count_members(b, &key, last);
			if (n >= 2 && n * 2 >= all)
				open_shared(b, &key, last);
		}
	}
}

/* Gives the node's fault of half of the devices the class of the strictest fault that it covers, also if that
 * class rises later.  A fault of all devices keeps its class: the driver should be looked at first. */
static void raise_node(struct hf_health_brain *b, struct hf_health_fault *of_node)
{
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		const struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++) {
			if (!is_under(&d->faults[k], of_node) || d->faults[k].cls <= of_node->cls)
				continue;
			of_node->cls = d->faults[k].cls;
			of_node->action = d->faults[k].action;
			b->changed = true;
		}
	}
}

static void raise_halves(struct hf_health_brain *b)
{
	struct hf_health_device *node = &b->memory->devices[0];

	for (size_t i = 0; i < node->faults_len; i++)
		if (node->faults[i].detector == HF_HEALTH_PEERS &&
		    node->faults[i].code == HF_HEALTH_CODE_SAME)
			raise_node(b, &node->faults[i]);
}

void hf_health_find_shared(struct hf_health_brain *b)
{
	size_t all = count_gpus(b);
	hf_time last;

	mark_port_faults(b);
	release_faults(b, all);
	end_shared(b);
	if (all < 2)
		return;
	last = find_news(b, NULL);
	if (last != HF_TIME_NONE && all_stopped(b, all, last)) {
		open_shared(b, NULL, last);
		end_half_faults(b, last);
	}
	cover_same(b, all);
	raise_halves(b);
}
