/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/brain_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * Several devices of a node at once.  Half of them with the same fault within a minute share a
 * cause, and all of them stopped at once is no wear of eight chips but the driver, the agent or
 * the board: the node has the fault then, and the devices' own are covered, open but not acting,
 * until they end or the node's does.  Faults that began with the failure of a PCIe port above their
 * device are left out: their cause is known.  A device that only has such faults counts as one that had
 * stopped before the others.
 */

struct key {
	enum hf_health_detector detector;
	int32_t code;
};

static void unit_of(const struct key *key, char ret_unit[HF_HEALTH_UNIT_MAX])
{
	snprintf(ret_unit, HF_HEALTH_UNIT_MAX, "%s %d", hf_health_detector_name(key->detector),
		 key->code);
}

/* The fault is that of a PCIe port above the device, or began with such a fault or while it stood.  The kernel may report
 * the device and the port in either order, and may have recovered the port since. */
static bool is_with_port(const struct hf_health_brain *b, const struct hf_health_device *d,
			 const struct hf_health_fault *fault)
{
	hf_time window = b->config->peers_window;

	for (size_t i = 0; i < d->faults_len; i++) {
		const struct hf_health_fault *f = &d->faults[i];

		if (!hf_health_is_fatal(f->cls) || !hf_health_fault_is_of_port(f))
			continue;
		/* A boot or a cure has come between. */
		if (!f->open && d->fresh_after != HF_TIME_NONE && f->last < d->fresh_after)
			continue;
		if (fault->opened_at >= f->opened_at - window &&
		    (f->open || fault->opened_at <= hf_time_add(f->closed_at, window)))
			return true;
	}
	return false;
}

/* Marks the faults whose known cause is a port.  The mark stays when the port recovers. */
static void mark_of_port(struct hf_health_brain *b)
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

static bool is_of(const struct hf_health_fault *f, const struct key *key)
{
	if (!key)
		return hf_health_is_fatal(f->cls);
	return f->detector == key->detector && f->code == key->code;
}

/* A group is about such a fault; key NULL: any that is fatal.  Only what began within the window before
 * `last` belongs together. */
static bool is_member(const struct hf_health_brain *b, const struct hf_health_device *d,
		      const struct hf_health_fault *f, const struct key *key, hf_time last)
{
	return is_candidate(d, f) && !f->of_port && is_of(f, key) && f->opened_at <= last &&
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

static size_t members(const struct hf_health_brain *b, const struct key *key, hf_time last)
{
	size_t n = 0;

	for (size_t i = 0; i < b->memory->devices_len; i++)
		n += has_member(b, &b->memory->devices[i], key, last);
	return n;
}

/* Such a fault stands on it, whenever it began. */
static bool has(const struct hf_health_device *d, const struct key *key)
{
	for (size_t i = 0; i < d->faults_len; i++)
		if (is_candidate(d, &d->faults[i]) && is_of(&d->faults[i], key))
			return true;
	return false;
}

static bool is_taken_out(const struct hf_health_device *d)
{
	return d->kind == HF_HEALTH_GPU && d->seen && hf_health_is_out(d->state);
}

/* It had stopped before, or was taken out: with it, all can have stopped at once without being of those that
 * did now. */
static bool had_stopped(const struct hf_health_brain *b, const struct hf_health_device *d,
			hf_time last)
{
	return (has(d, NULL) || (is_taken_out(d) && d->since < last)) &&
	       !has_member(b, d, NULL, last);
}

/* All that still worked stopped within the window, and they were more than one. */
static bool all_stopped(const struct hf_health_brain *b, size_t all, hf_time last)
{
	size_t now = members(b, NULL, last), before = 0;

	for (size_t i = 0; i < b->memory->devices_len; i++)
		before += had_stopped(b, &b->memory->devices[i], last);
	return now >= 2 && now + before == all;
}

static size_t gpus(const struct hf_health_brain *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->memory->devices_len; i++)
		n += b->memory->devices[i].kind == HF_HEALTH_GPU && b->memory->devices[i].seen;
	return n;
}

/* What stopped half of the devices a moment ago was the begin of what has stopped all of them: it is the
 * same fault, whether the lines came in one step or in two.  A half that had stopped before is not. */
static void end_halves(struct hf_health_brain *b, hf_time last)
{
	struct hf_health_device *node = &b->memory->devices[0];

	for (size_t i = 0; i < node->faults_len; i++) {
		struct hf_health_fault *f = &node->faults[i];

		if (f->detector == HF_HEALTH_PEERS && f->code == HF_HEALTH_CODE_SAME &&
		    hf_health_is_fatal(f->cls) && last - f->opened_at <= b->config->peers_window)
			hf_health_fault_close(b, f);
	}
}

/* Its faults of the group are the node's.  False: it has none. */
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

/* The node's fault, and the devices' under it. */
static void cover(struct hf_health_brain *b, const struct key *key, hf_time last)
{
	struct hf_health_evidence e = hf_health_evidence_none();
	struct hf_health_device *node = &b->memory->devices[0];

	e.detector = HF_HEALTH_PEERS;
	e.source = HF_HEALTH_BY_STEP;
	e.code = key ? HF_HEALTH_CODE_SAME : HF_HEALTH_CODE_ALL;
	e.at = last;
	if (key)
		unit_of(key, e.unit);
	for (size_t i = 0; i < b->memory->devices_len; i++)
		if (cover_device(b, &b->memory->devices[i], key, last))
			hf_health_fault_sight(b, node, last);
	(void)hf_health_fault_see(b, node, &e);
}

/* The latest beginning of an uncovered fault of that kind; NONE: there is no news. */
static hf_time news(const struct hf_health_brain *b, const struct key *key)
{
	hf_time last = HF_TIME_NONE;

	for (size_t i = 0; i < b->memory->devices_len; i++) {
		const struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++) {
			const struct hf_health_fault *f = &d->faults[k];

			if (is_candidate(d, f) && !f->covered && !f->of_port && is_of(f, key) &&
			    f->opened_at > last)
				last = f->opened_at;
		}
	}
	return last;
}

/* How many devices such a fault stands on. */
static size_t standing(const struct hf_health_brain *b, const struct key *key)
{
	size_t n = 0;

	for (size_t i = 0; i < b->memory->devices_len; i++) {
		const struct hf_health_device *d = &b->memory->devices[i];

		n += has(d, key) || (key == NULL && is_taken_out(d));
	}
	return n;
}

static bool is_shared(const struct hf_health_brain *b, const struct hf_health_fault *f, size_t all)
{
	const struct key key = {.detector = f->detector, .code = f->code};
	size_t n = standing(b, &key);

	return (n >= 2 && n * 2 >= all) || (hf_health_is_fatal(f->cls) && standing(b, NULL) == all);
}

/* When the last of them ended that it was shared with; it began earlier. */
static hf_time ended_beside(const struct hf_health_brain *b, const struct hf_health_fault *f)
{
	const struct key key = {.detector = f->detector, .code = f->code};
	hf_time last = f->opened_at;

	for (size_t i = 0; i < b->memory->devices_len; i++) {
		const struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++) {
			const struct hf_health_fault *other = &d->faults[k];

			if (d->kind == HF_HEALTH_GPU && !other->open && other->closed_at > last &&
			    (is_of(other, &key) || hf_health_is_fatal(other->cls)))
				last = other->closed_at;
		}
	}
	return last;
}

/* What the others have got over is the own fault of those that are left: a driver that is loaded anew says so of one
 * device after the other, so a while later. */
static void release(struct hf_health_brain *b, size_t all)
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
			end = hf_time_add(ended_beside(b, f), b->config->peers_window);
			if (b->now < end) {
				hf_health_wake(b, end);
				continue;
			}
			f->covered = false;
			hf_health_fault_own(b, d, f);
		}
	}
}

/* The device's fault lies under that one of the node. */
static bool is_under(const struct hf_health_fault *f, const struct hf_health_fault *of_node)
{
	char unit[HF_HEALTH_UNIT_MAX];

	if (!f->open || !f->covered || !of_node->open || of_node->detector != HF_HEALTH_PEERS)
		return false;
	if (of_node->code == HF_HEALTH_CODE_ALL)
		return hf_health_is_fatal(f->cls);
	unit_of(&(struct key){.detector = f->detector, .code = f->code}, unit);
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

/* A fault of the node ends with the last of those under it; and they act for themselves again when
 * the node's is gone before them. */
static void uncover(struct hf_health_brain *b)
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

static void same_fault(struct hf_health_brain *b, size_t all)
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
			last = news(b, &key);
			n = members(b, &key, last);
			if (n >= 2 && n * 2 >= all)
				cover(b, &key, last);
		}
	}
}

/* The same fault on half of the devices needs what the strictest of them would need, also where that rises
 * later; all devices dead at once need a look at the driver first. */
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

void hf_health_peers(struct hf_health_brain *b)
{
	size_t all = gpus(b);
	hf_time last;

	mark_of_port(b);
	release(b, all);
	uncover(b);
	if (all < 2)
		return;
	last = news(b, NULL);
	if (last != HF_TIME_NONE && all_stopped(b, all, last)) {
		cover(b, NULL, last);
		end_halves(b, last);
	}
	same_fault(b, all);
	raise_halves(b);
}
