/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Turns evidence into faults: counts, confirms, ends and ages them.
 * Input: evidence in the order of time.  Invariants: one event counts once; an open fault never becomes milder.
 */
#include "health/brain_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

void hf_health_times_add(hf_time *times, uint32_t *len, uint32_t max, hf_time at, hf_time from)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < *len; i++) {
		if (times[i] >= from)
			times[kept++] = times[i];
	}
	if (kept == max) {
		memmove(times, times + 1, (max - 1) * sizeof(*times));
		kept--;
	}
	times[kept++] = at;
	for (uint32_t i = kept; i < max; i++)
		times[i] = 0;
	*len = kept;
}

/* ---- finding the fault to which evidence belongs ---------------------------------------------- */

/* Whether the evidence is about this fault, so that no second fault is opened.  If a rule counts over all units of
 * a device, all units share one fault.  A loss of the bus is one fault, whether its report names a port above the
 * device or not. */
static bool is_about(const struct hf_health_fault *f, const struct hf_health_evidence *e,
		     const struct hf_health_rule *rule)
{
	bool any_unit =
		(rule && rule->count > 1 && !rule->same_unit) || e->detector == HF_HEALTH_BUSLOST;

	return f->detector == e->detector && f->code == e->code && f->severity == e->severity &&
	       f->subcode == e->subcode && (any_unit || hf_streq(f->unit, e->unit));
}

/* The weight of a fault when there is no room for another: a fault that has ended weighs least, then a fault that
 * follows from another. */
static int weigh_fault(const struct hf_health_fault *f)
{
	if (!f->open)
		return 0;
	return hf_health_fault_follows(f) ? 1 : 2;
}

/* Whether `a` is dropped before `b`: a mild fault before a grave one, an old one before a new one. */
static bool is_less(const struct hf_health_fault *a, const struct hf_health_fault *b)
{
	if (weigh_fault(a) != weigh_fault(b))
		return weigh_fault(a) < weigh_fault(b);
	return a->cls != b->cls ? a->cls < b->cls : a->last < b->last;
}

/* The fault of the device to drop first.  The device has at least one fault. */
static struct hf_health_fault *find_least(struct hf_health_device *device)
{
	struct hf_health_fault *least = &device->faults[0];

	for (size_t i = 1; i < device->faults_len; i++) {
		if (is_less(&device->faults[i], least))
			least = &device->faults[i];
	}
	return least;
}

void hf_health_fault_keep(struct hf_health_brain *b, struct hf_health_device *device,
			  const struct hf_health_fault *fault)
{
	struct hf_health_fault *least;

	if (device->faults_len < HF_HEALTH_FAULTS_MAX) {
		device->faults[device->faults_len++] = *fault;
		return;
	}
	least = find_least(device);
	b->memory->faults_dropped += least->open || fault->open;
	if (is_less(least, fault))
		*least = *fault;
}

static bool is_near_time(const struct hf_health_brain *b, hf_time a, hf_time c)
{
	hf_time d = a > c ? a - c : c - a;

	return d <= b->config->same_event;
}

/* ---- the class of a fault --------------------------------------------------------------------- */

static void add_repeat(struct hf_health_fault *f, const struct hf_health_rule *rule, hf_time at)
{
	if (f->repeats_len > 0 && at - f->repeats[f->repeats_len - 1] <= rule->burst)
		return;
	hf_health_times_add(f->repeats, &f->repeats_len, HF_HEALTH_REPEATS_MAX, at,
			    at - rule->window);
}

/* Lowers the class of a lost bus that has only one witness, and this is not the kernel: a driver that hangs calls
 * every device lost.  A single witness can take its report back. */
static void rate_bus(struct hf_health_fault *f)
{
	bool kernel = f->sources & 1u << HF_HEALTH_BY_KMSG;

	if (f->detector != HF_HEALTH_BUSLOST || kernel || (f->sources & (f->sources - 1)) ||
	    f->cls <= HF_HEALTH_DEGRADED)
		return;
	f->cls = HF_HEALTH_DEGRADED;
	f->clear = HF_HEALTH_BY_LEVEL;
}

/* Keeps the graver class: more evidence of an open fault never makes it milder.  The window of a rule's count may
 * have passed the first times, or another line with the same code may be less grave. */
static void keep_grave(struct hf_health_fault *f, const struct hf_health_fault *was)
{
	if (was->cls > f->cls) {
		f->cls = was->cls;
		f->action = was->action;
		f->scope = was->scope;
		f->clear = was->clear;
	} else if (was->cls == f->cls && f->clear == HF_HEALTH_BY_AGE) {
		f->clear = was->clear;
	}
	f->follows &= was->follows;
}

static void rate_fault(struct hf_health_fault *f, const struct hf_health_rule *rule, hf_time at)
{
	static const struct hf_health_rule unrated = {.cls = HF_HEALTH_UNRATED};
	bool counted = rule && rule->count > 1;
	/* Without a unit nothing shows whether two errors are in the same place. */
	bool placed = !counted || !rule->same_unit || f->unit[0] != '\0';

	if (!rule)
		rule = &unrated;
	if (counted)
		add_repeat(f, rule, at);
	f->cls = counted && (!placed || f->repeats_len < (uint32_t)rule->count) ? rule->below
										: rule->cls;
	f->action = rule->action;
	f->scope = rule->scope;
	f->clear = rule->clear;
	f->follows = rule->follows;
	f->program = counted && rule->below == HF_HEALTH_APP;
	rate_bus(f);
	/* While the rule still counts the fault, a recovery reported by the driver does not end it. */
	if (!hf_health_is_fatal(f->cls) && counted)
		f->clear = HF_HEALTH_BY_AGE;
	if (f->cls <= HF_HEALTH_APP) {
		f->clear = HF_HEALTH_BY_AGE;
		f->action = f->cls == HF_HEALTH_APP ? HF_HEALTH_RESTART_PROCESS : HF_HEALTH_RECORD;
	}
}

static void rate_anew(struct hf_health_fault *f, const struct hf_health_fault *was,
		      const struct hf_health_rule *rule, hf_time at)
{
	rate_fault(f, rule, at);
	if (was->open)
		keep_grave(f, was);
}

/* The last time at which a fatal fault stopped the device; NONE: no such time is known. */
static hf_time find_last_stop(const struct hf_health_device *device)
{
	hf_time last =
		device->fatals_len > 0 ? device->fatals[device->fatals_len - 1] : HF_TIME_NONE;

	for (size_t i = 0; i < device->faults_len; i++) {
		const struct hf_health_fault *f = &device->faults[i];

		if (hf_health_fault_acts(f) && hf_health_is_fatal(f->cls) && f->last > last)
			last = f->last;
	}
	return last;
}

/* Two successive reports of a stop within this time count as one stop. */
#define STOP_BURST (3 * HF_MINUTE)

/* Counts a stop of the device.  After escalate_count stops another reset or restart would not help, so the fault
 * needs a person (class support).  stopped: the time of the last stop before this one. */
static void escalate_stop(struct hf_health_brain *b, struct hf_health_device *device,
			  struct hf_health_fault *f, hf_time at, hf_time stopped)
{
	const struct hf_health_rules *rules = b->config->rules;

	if (rules->escalate_count == 0 || !hf_health_is_fatal(f->cls) ||
	    f->clear == HF_HEALTH_BY_LEVEL)
		return;
	if (stopped == HF_TIME_NONE || at - stopped > STOP_BURST)
		hf_health_times_add(device->fatals, &device->fatals_len, HF_HEALTH_REPEATS_MAX, at,
				    at - rules->escalate_window);
	if (device->fatals_len >= (uint32_t)rules->escalate_count && f->cls < HF_HEALTH_SUPPORT) {
		f->raised = true;
		f->milder_cls = f->cls;
		f->milder_action = f->action;
		f->milder_clear = f->clear;
		f->cls = HF_HEALTH_SUPPORT;
		f->action = HF_HEALTH_REPLACE_NODE;
		f->clear = HF_HEALTH_BY_PERSON;
	}
}

/* The stop belongs to the fault. */
static bool is_within(const struct hf_health_fault *f, hf_time stop)
{
	return stop >= f->opened_at - STOP_BURST && stop <= f->last;
}

/* Whether another fault of the device had stopped the device at that time as well. */
static bool stopped_by_another(const struct hf_health_device *device,
			       const struct hf_health_fault *than, hf_time at)
{
	for (size_t i = 0; i < device->faults_len; i++) {
		const struct hf_health_fault *f = &device->faults[i];

		if (f != than && hf_health_is_fatal(f->cls) && f->clear != HF_HEALTH_BY_LEVEL &&
		    !hf_health_fault_follows(f) && !f->covered && is_within(f, at))
			return true;
	}
	return false;
}

void hf_health_fault_uncount(struct hf_health_device *device, struct hf_health_fault *f)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < device->fatals_len; i++)
		if (!is_within(f, device->fatals[i]) ||
		    stopped_by_another(device, f, device->fatals[i]))
			device->fatals[kept++] = device->fatals[i];
	for (uint32_t i = kept; i < device->fatals_len; i++)
		device->fatals[i] = 0;
	device->fatals_len = kept;
	if (!f->raised)
		return;
	f->raised = false;
	f->cls = f->milder_cls;
	f->action = f->milder_action;
	f->clear = f->milder_clear;
}

/* ---- consequences --------------------------------------------------------------------------------- */

/* Whether the fault `of` may follow from `f`: a fault does not follow from a milder one. */
static bool is_cause(const struct hf_health_fault *f, const struct hf_health_fault *of)
{
	return !f->follows && of->follows && f->cls >= of->cls;
}

static bool is_of_link(const struct hf_health_fault *f)
{
	return f->open && (f->detector == HF_HEALTH_NVLINK ||
			   (f->detector == HF_HEALTH_XID && f->code == HF_HEALTH_CODE_LINK));
}

/* Whether the fault means that the device is off the bus, or that a fatal error of the bus has cut it off. */
static bool is_lost(const struct hf_health_fault *f)
{
	return f->open && (f->detector == HF_HEALTH_BUSLOST || f->detector == HF_HEALTH_AER) &&
	       hf_health_is_fatal(f->cls);
}

/* Whether the fault of a link began with the loss of a device, not before it.  The two may be reported in either
 * order. */
static bool is_with(const struct hf_health_brain *b, const struct hf_health_fault *link,
		    const struct hf_health_fault *lost)
{
	/* A measurement of links may come late if the library hangs because of the loss. */
	hf_time window =
		link->detector == HF_HEALTH_NVLINK ? b->config->same_bus : b->config->peers_window;

	return link->opened_at >= lost->opened_at - b->config->same_event &&
	       link->opened_at - lost->opened_at <= window;
}

static bool is_with_a_loss(const struct hf_health_brain *b, const struct hf_health_fault *link)
{
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		const struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++)
			if (is_lost(&d->faults[k]) && is_with(b, link, &d->faults[k]))
				return true;
	}
	return false;
}

void hf_health_fault_own(struct hf_health_brain *b, struct hf_health_device *device,
			 struct hf_health_fault *f)
{
	b->changed = true;
	if (!hf_health_fault_acts(f) || f->cls < HF_HEALTH_SOFTWARE)
		return;
	device->weak_at = b->now;
	for (int32_t i = 0; f->confirmed && i < b->config->confirm_count; i++)
		hf_health_fault_sight(b, device, b->now);
}

/* Links to a device that fell off the bus are gone, and the restart that the device needs mends them: their faults
 * do not count. If the device comes back without a restart, the faults of its links count for themselves. */
static void follow_loss(struct hf_health_brain *b, struct hf_health_device *device,
			struct hf_health_fault *f)
{
	bool with = is_of_link(f) && is_with_a_loss(b, f);

	if (with == f->of_loss)
		return;
	f->of_loss = with;
	b->changed = true;
	if (with)
		hf_health_fault_uncount(device, f);
	else
		hf_health_fault_own(b, device, f);
}

static void follow_links(struct hf_health_brain *b)
{
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++)
			follow_loss(b, d, &d->faults[k]);
	}
}

static bool is_near(const struct hf_health_brain *b, const struct hf_health_fault *f,
		    const struct hf_health_fault *other, hf_time at)
{
	return other != f && other->open && is_near_time(b, other->last, at);
}

/* Marks a fault as a consequence of another fault of its device at about the same time, in either order. */
static void attach_fault(struct hf_health_brain *b, struct hf_health_device *device,
			 struct hf_health_fault *f, const struct hf_health_evidence *e, bool same)
{
	f->attached = f->follows && (e->cause > 0 || (same && f->attached));
	for (size_t i = 0; i < device->faults_len; i++) {
		struct hf_health_fault *other = &device->faults[i];

		if (!is_near(b, f, other, e->at))
			continue;
		if (is_cause(other, f))
			f->attached = true;
		else if (is_cause(f, other))
			other->attached = true;
	}
}

/* ---- finding room for a new fault ----------------------------------------------------------------- */

/* Returns the fault that the evidence would open, with the members that decide its weight. */
static struct hf_health_fault make_awaited(const struct hf_health_brain *b,
					   const struct hf_health_device *device,
					   const struct hf_health_evidence *e,
					   const struct hf_health_rule *rule)
{
	struct hf_health_fault f = {
		.detector = e->detector,
		.code = e->code,
		.open = true,
		.opened_at = e->at,
		.cls = rule ? rule->cls : HF_HEALTH_UNRATED,
		.follows = rule && rule->follows,
	};

	f.attached = f.follows && e->cause > 0;
	for (size_t i = 0; i < device->faults_len; i++)
		f.attached |= is_near(b, &f, &device->faults[i], e->at) &&
			      is_cause(&device->faults[i], &f);
	f.of_loss = is_of_link(&f) && is_with_a_loss(b, &f);
	return f;
}

/* Finds a slot for the fault; NULL: none of the device's faults weighs less.  An open fault is dropped only for a
 * graver one; otherwise faults beyond the limit would be found, reported and dropped in turn. */
static struct hf_health_fault *find_slot(struct hf_health_brain *b, struct hf_health_device *device,
					 const struct hf_health_fault *fresh)
{
	struct hf_health_fault *least;
	bool graver;

	if (device->faults_len < HF_HEALTH_FAULTS_MAX)
		return &device->faults[device->faults_len++];
	least = find_least(device);
	b->memory->faults_dropped += least->open;
	graver = weigh_fault(fresh) == weigh_fault(least) ? fresh->cls > least->cls
							  : weigh_fault(fresh) > weigh_fault(least);
	return least->open && !graver ? NULL : least;
}

/* NVML reports an Xid late, and only its number.  If the kernel's line about that Xid came before, NVML is only
 * another witness, also if the driver has recovered since: another Xid would have a line of its own.  False: the
 * fault has no such line. */
static bool add_witness(struct hf_health_brain *b, struct hf_health_device *device,
			const struct hf_health_evidence *e)
{
	if (e->source != HF_HEALTH_BY_NVML || e->detector != HF_HEALTH_XID)
		return false;
	for (size_t i = 0; i < device->faults_len; i++) {
		struct hf_health_fault *f = &device->faults[i];

		if (f->detector != HF_HEALTH_XID || f->code != e->code ||
		    !(f->sources & 1u << HF_HEALTH_BY_KMSG) ||
		    f->last - e->at > b->config->same_event ||
		    e->at - f->last > b->config->event_max)
			continue;
		b->changed |= !(f->sources & 1u << e->source);
		f->sources |= 1u << e->source;
		return true;
	}
	return false;
}

static struct hf_health_fault *get_fault(struct hf_health_brain *b, struct hf_health_device *device,
					 const struct hf_health_evidence *e,
					 const struct hf_health_rule *rule)
{
	struct hf_health_fault *f, fresh;

	for (size_t i = 0; i < device->faults_len; i++) {
		if (is_about(&device->faults[i], e, rule))
			return &device->faults[i];
	}
	fresh = make_awaited(b, device, e, rule);
	f = find_slot(b, device, &fresh);
	if (!f)
		return NULL;
	memset(f, 0, sizeof(*f));
	f->detector = e->detector;
	f->code = e->code;
	f->subcode = e->subcode;
	f->severity = e->severity;
	memcpy(f->unit, e->unit, sizeof(f->unit));
	f->opened_at = f->event_at = f->last = f->closed_at = f->told_at = HF_TIME_NONE;
	return f;
}

/* ---- one piece of evidence ------------------------------------------------------------------------ */

void hf_health_fault_sight(struct hf_health_brain *b, struct hf_health_device *device, hf_time at)
{
	uint32_t max = HF_HEALTH_SIGHTINGS_MAX;

	hf_health_times_add(device->sightings, &device->sightings_len, max, at,
			    at - b->config->confirm_window);
}

/* Whether the evidence continues the fault's event, perhaps from another source.  The kernel prints several lines
 * about a lost bus within minutes, and a measurement repeats itself each time. */
static bool goes_on(const struct hf_health_brain *b, const struct hf_health_fault *f,
		    const struct hf_health_evidence *e)
{
	bool told = e->source == HF_HEALTH_BY_KMSG || !(f->sources & 1u << e->source);
	hf_time span = f->detector == HF_HEALTH_BUSLOST && told ? b->config->same_bus
								: b->config->same_event;

	return f->open && e->at - f->last <= span;
}

/* Whether the fault had stopped its device before this evidence.  A lost bus, and a request of the driver, last
 * until they end, and each measurement finds them again.  For other faults a new line is a new error. */
static bool had_stopped(const struct hf_health_brain *b, const struct hf_health_fault *f,
			const struct hf_health_evidence *e)
{
	bool stands = f->detector == HF_HEALTH_BUSLOST || f->detector == HF_HEALTH_RECOVERY;

	return f->open && hf_health_is_fatal(f->cls) && (stands || goes_on(b, f, e));
}

/* Whether the evidence belongs to the fault's event.  An event has a longest span, otherwise a flood without a
 * pause would count once for ever.  A lost bus has no such span: its first line has stopped the device. */
static bool is_same_event(const struct hf_health_brain *b, const struct hf_health_fault *f,
			  const struct hf_health_evidence *e)
{
	return goes_on(b, f, e) &&
	       (f->detector == HF_HEALTH_BUSLOST || f->event_at == HF_TIME_NONE ||
		e->at - f->event_at <= b->config->event_max);
}

static void count_evidence(struct hf_health_fault *f, const struct hf_health_evidence *e, bool same)
{
	/* The same event from another source is not counted again. */
	if (!same || (f->sources & 1u << e->source))
		f->count++;
	f->sources = (same || f->detector == HF_HEALTH_BUSLOST ? f->sources : 0) | 1u << e->source;
	if (e->at > f->last || f->last == HF_TIME_NONE)
		f->last = e->at;
	f->seq = e->seq ? e->seq : f->seq;
	if (e->line[0] == '\0' || (same && f->line[0] != '\0' && e->source != HF_HEALTH_BY_KMSG))
		return;
	f->gpu_instance = e->gpu_instance;
	f->compute_instance = e->compute_instance;
	memcpy(f->line, e->line, sizeof(f->line));
}

/* Opens the fault. */
static void open_fault(struct hf_health_fault *f, hf_time at)
{
	f->open = true;
	f->opened_at = at;
	f->closed_at = HF_TIME_NONE;
	f->covered = f->of_port = f->attached = f->of_loss = f->raised = f->confirmed = false;
	f->sources = 0;
}

/* What was true before a piece of evidence was applied. */
struct before {
	bool same;       /* the evidence continues an event */
	bool stands;     /* the fault had stopped its device, and still does */
	hf_time stopped; /* when a fault last stopped the device; NONE: the device works */
};

/* Whether another fault of the device has had a line of the same incident.  The kernel prints several lines about
 * one failed recovery: one for the device, one for each port above it.  mlx5_core also prints several lines about
 * one error of an adapter. */
static bool is_of_incident(const struct hf_health_brain *b, const struct hf_health_device *device,
			   const struct hf_health_fault *f, hf_time at)
{
	if (f->detector != HF_HEALTH_AER && f->detector != HF_HEALTH_MLX5)
		return false;
	for (size_t i = 0; i < device->faults_len; i++) {
		const struct hf_health_fault *other = &device->faults[i];

		if (other != f && other->open && other->detector == f->detector &&
		    other->cls >= HF_HEALTH_SOFTWARE && is_near_time(b, other->event_at, at))
			return true;
	}
	return false;
}

static void hold_against(struct hf_health_brain *b, struct hf_health_device *device,
			 struct hf_health_fault *f, hf_time at, const struct before *before)
{
	if (!before->stands && !f->covered)
		escalate_stop(b, device, f, at, before->stopped);
	if (f->cls < HF_HEALTH_SOFTWARE)
		return;
	device->weak_at = at > device->weak_at ? at : device->weak_at;
	if (!before->same && !is_of_incident(b, device, f, at))
		hf_health_fault_sight(b, device, at);
	f->confirmed |= hf_health_is_confirmed(b, device);
}

struct hf_health_fault *hf_health_fault_see(struct hf_health_brain *b,
					    struct hf_health_device *device,
					    const struct hf_health_evidence *e)
{
	const struct hf_health_rule *rule = hf_health_rules_match(b->config->rules, e);
	struct hf_health_fault *f = get_fault(b, device, e, rule), was;
	struct before before;
	bool same;

	if (!f)
		return NULL;
	b->changed = true;
	was = *f;
	same = is_same_event(b, f, e);
	before = (struct before){same, had_stopped(b, f, e), find_last_stop(device)};
	if (!same || f->event_at == HF_TIME_NONE)
		f->event_at = e->at;
	/* The report that names the port may arrive after the report about the device. */
	if (f->detector == HF_HEALTH_BUSLOST && (!f->open || f->unit[0] == '\0'))
		memcpy(f->unit, e->unit, sizeof(f->unit));
	if (!f->open)
		open_fault(f, e->at);
	count_evidence(f, e, same);
	if (!same || f->cls == HF_HEALTH_NONE || f->detector == HF_HEALTH_BUSLOST)
		rate_anew(f, &was, rule, e->at);
	attach_fault(b, device, f, e, same);
	follow_loss(b, device, f);
	if (!hf_health_fault_follows(f))
		hold_against(b, device, f, e->at, &before);
	return f;
}

void hf_health_fault_close(struct hf_health_brain *b, struct hf_health_fault *fault)
{
	if (!fault->open)
		return;
	fault->open = fault->covered = fault->attached = fault->of_loss = false;
	fault->closed_at = b->now;
	b->changed = true;
}

/* The index, among the ports above the device, of the port that a unit names; -1: the unit names none of them. */
static int find_unit_above(const struct hf_health_device *device, const char *unit)
{
	char port[HF_HEALTH_DEVICE_MAX];

	if (!hf_str_has_prefix(unit, HF_HEALTH_UNIT_PORT))
		return -1;
	return hf_health_find_above(device->above, unit + strlen(HF_HEALTH_UNIT_PORT), port);
}

/* Whether a recovery by the kernel covers the fault.  The kernel recovers one device, or all below a port; a fault
 * of a port above that remains. */
static bool is_within_recovery(const struct hf_health_device *device,
			       const struct hf_health_fault *f, const struct hf_health_evidence *e)
{
	if (e->detector != HF_HEALTH_AER || !hf_health_fault_is_of_port(f))
		return true;
	return hf_str_has_prefix(e->unit, HF_HEALTH_UNIT_PORT) &&
	       find_unit_above(device, f->unit) >= find_unit_above(device, e->unit);
}

/* Whether the evidence ends the fault: it names the fault's code, or no code.  A fault that was seen later than
 * the recovery remains. */
static bool is_over(const struct hf_health_device *device, const struct hf_health_fault *f,
		    const struct hf_health_evidence *e)
{
	bool of_detector = f->detector == e->detector;
	bool of_code = of_detector && (e->code == 0 || f->code == e->code);

	if (e->verb == HF_HEALTH_RECOVERED)
		return f->clear == HF_HEALTH_BY_SIGNAL && f->last <= e->at &&
		       (e->seq == 0 || f->seq <= e->seq) && is_within_recovery(device, f, e) &&
		       (of_code || (e->code == 0 && e->detector == HF_HEALTH_RECOVERY));
	return f->clear == HF_HEALTH_BY_LEVEL && of_code;
}

static void close_where(struct hf_health_brain *b, struct hf_health_device *device,
			const struct hf_health_evidence *e)
{
	/* A log that is read late has recoveries that are long past: they stop no device now. */
	bool late = b->now - e->at >= b->config->probation;

	for (size_t i = 0; i < device->faults_len; i++) {
		struct hf_health_fault *f = &device->faults[i];

		if (!is_over(device, f, e))
			continue;
		f->passed |= e->verb == HF_HEALTH_RECOVERED && hf_health_fault_acts(f) && !late;
		hf_health_fault_close(b, f);
	}
}

/* Ends the driver's former requests: the driver has one request at a time, and a new one replaces it.  "Reset
 * required" (NVML 16) is reported beside the request and stays, and so does a fault that needs a person. */
static void replace_request(struct hf_health_brain *b, struct hf_health_device *device, int code)
{
	for (size_t i = 0; i < device->faults_len; i++) {
		const struct hf_health_fault *f = &device->faults[i];

		if (f->detector == HF_HEALTH_RECOVERY && f->code != code && !f->raised &&
		    f->code != HF_HEALTH_CODE_RESET_REQUIRED)
			hf_health_fault_close(b, &device->faults[i]);
	}
}

static enum hf_health_kind get_device_kind(enum hf_health_detector detector)
{
	switch (detector) {
	case HF_HEALTH_SXID: return HF_HEALTH_SWITCH;
	case HF_HEALTH_IB: return HF_HEALTH_PORT;
	/* These lines may name any device on the bus; only known devices count. */
	case HF_HEALTH_AER:
	case HF_HEALTH_MLX5:
	case HF_HEALTH_DRIVER:
	case HF_HEALTH_PLUGIN:
	case HF_HEALTH_PEERS: return HF_HEALTH_NODE;
	default: return HF_HEALTH_GPU;
	}
}

static bool is_old_evidence(const struct hf_health_brain *b, const struct hf_health_device *device,
			    const struct hf_health_evidence *e)
{
	return (b->input->boot_at != HF_TIME_NONE && e->at < b->input->boot_at) ||
	       (device->fresh_after != HF_TIME_NONE && e->at < device->fresh_after);
}

static void apply_to(struct hf_health_brain *b, struct hf_health_device *device,
		     const struct hf_health_evidence *e)
{
	if (is_old_evidence(b, device, e)) {
		b->memory->evidence_dropped++;
		return;
	}
	/* The source of the evidence can see the device.  Of a port in another network namespace it sees only the
	 * PCI function. */
	hf_health_seen(b, device);
	if (e->at > device->heard_at && !hf_health_port_is_hidden(device))
		hf_health_hear(b, device, e->at);
	if (e->verb != HF_HEALTH_FAULT) {
		close_where(b, device, e);
		return;
	}
	if (e->detector == HF_HEALTH_RECOVERY && e->code >= 1 && e->code <= 5)
		replace_request(b, device, e->code);
	if (!add_witness(b, device, e))
		(void)hf_health_fault_see(b, device, e);
}

/* ---- PCIe: devices and the ports above them --------------------------------------------------------------- */

/* The severity of the error that the kernel could not recover: the kernel's line does not tell it, and after an
 * error that was not fatal the device works on.  So the severity of the device's other PCIe faults of the same
 * minute is taken; UNSAID: there are none. */
static enum hf_health_severity find_severity_beside(const struct hf_health_brain *b,
						    const struct hf_health_device *device,
						    hf_time at)
{
	enum hf_health_severity worst = HF_HEALTH_UNSAID;

	for (size_t i = 0; i < device->faults_len; i++) {
		const struct hf_health_fault *f = &device->faults[i];

		if (!f->open || f->detector != HF_HEALTH_AER ||
		    f->code == HF_HEALTH_CODE_UNRECOVERED || at - f->last > b->config->event_max)
			continue;
		if (f->severity == HF_HEALTH_FATAL)
			return HF_HEALTH_FATAL;
		if (f->severity == HF_HEALTH_NONFATAL)
			worst = HF_HEALTH_NONFATAL;
	}
	return worst;
}

static void apply_pcie_to(struct hf_health_brain *b, struct hf_health_device *device,
			  const struct hf_health_evidence *given)
{
	struct hf_health_evidence e = *given;

	/* If the ports above the device are not known, the evidence keeps the severity of the last report in the
	 * log. */
	if (e.code == HF_HEALTH_CODE_UNRECOVERED) {
		enum hf_health_severity beside = find_severity_beside(b, device, e.at);

		if (device->above[0] != '\0' || beside != HF_HEALTH_UNSAID)
			e.severity = beside;
	}
	if (e.code == HF_HEALTH_CODE_LINK_DOWN || e.code == HF_HEALTH_CODE_INACCESSIBLE) {
		/* For a network port, detector ib measures whether the port is there and whether it comes back. */
		if (device->kind != HF_HEALTH_GPU)
			return;
		e.detector = HF_HEALTH_BUSLOST;
		e.code = HF_HEALTH_CODE_BUS;
	}
	apply_to(b, device, &e);
}

/* Whether the address is that of the device: of its PCI function, or of the function of this network port (a
 * function may have two ports).  A port that only an earlier boot has seen may have another name by now; it counts
 * if no other device has the address. */
static bool is_at(const struct hf_health_brain *b, const struct hf_health_device *device,
		  const char *address)
{
	if (device->kind == HF_HEALTH_NODE)
		return false;
	return device == hf_health_memory_find(b->memory, address) ||
	       (device->seen && hf_streq(device->alias, address));
}

/* Whether the address is another function of the device, and the evidence concerns all functions.  They share the
 * link, which a fatal error stops and a recovery resets.  Milder evidence concerns only its own function, unless
 * the memory has no device for that function, for instance the audio function of a GPU.  That one function cannot
 * be reached does not concern the others. */
static bool is_function_of(const struct hf_health_brain *b, const struct hf_health_device *device,
			   const struct hf_health_evidence *e)
{
	const char *own = device->alias[0] != '\0' ? device->alias : device->id;

	if (device->kind == HF_HEALTH_NODE || e->code == HF_HEALTH_CODE_INACCESSIBLE ||
	    e->code == HF_HEALTH_CODE_LINK_DOWN || !hf_health_pci_same_device(own, e->device))
		return false;
	return e->severity == HF_HEALTH_FATAL || e->verb == HF_HEALTH_RECOVERED ||
	       !hf_health_memory_find(b->memory, e->device);
}

/* Makes evidence about a port into evidence about a device below the port. */
static struct hf_health_evidence make_evidence_below(const struct hf_health_evidence *e,
						     const struct hf_health_device *device,
						     const char *port)
{
	struct hf_health_evidence below = *e;

	memcpy(below.device, device->id, sizeof(below.device));
	memset(below.unit, 0, sizeof(below.unit));
	snprintf(below.unit, sizeof(below.unit), HF_HEALTH_UNIT_PORT "%.20s", port);
	if (e->code == HF_HEALTH_CODE_AER)
		below.code = HF_HEALTH_CODE_AER_PORT;
	return below;
}

/* Applies evidence about a PCI address: of a device, of another function of a device, or of a port above devices.
 * Evidence about a port applies to each device below it, except corrected errors. */
static void apply_pcie(struct hf_health_brain *b, const struct hf_health_evidence *e)
{
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		struct hf_health_device *d = &b->memory->devices[i];
		struct hf_health_evidence below;
		char port[HF_HEALTH_DEVICE_MAX];

		if (is_at(b, d, e->device) || is_function_of(b, d, e)) {
			apply_pcie_to(b, d, e);
			continue;
		}
		if (e->severity == HF_HEALTH_CORRECTED ||
		    hf_health_find_above(d->above, e->device, port) < 0)
			continue;
		/* If another function of the port's device cannot be reached, this port is not concerned. */
		if (e->code == HF_HEALTH_CODE_INACCESSIBLE && !hf_streq(port, e->device))
			continue;
		below = make_evidence_below(e, d, port);
		apply_pcie_to(b, d, &below);
	}
}

/* Applies a line of mlx5_core about a PCI function to all network ports of the function. */
static void apply_mlx5(struct hf_health_brain *b, const struct hf_health_evidence *e)
{
	for (size_t i = 0; i < b->memory->devices_len; i++)
		if (is_at(b, &b->memory->devices[i], e->device))
			apply_to(b, &b->memory->devices[i], e);
}

/* ---- a reset of a GPU that is not named --------------------------------------------------------------------- */

/* Whether the fault stops the device until a reset or a restart that has not been made yet. */
static bool awaits_reset(const struct hf_health_fault *f)
{
	enum hf_health_clear clear = f->raised ? f->milder_clear : f->clear;

	return hf_health_fault_acts(f) && hf_health_is_fatal(f->cls) &&
	       (clear == HF_HEALTH_BY_SIGNAL || clear == HF_HEALTH_BY_BOOT);
}

/* Whether a GPU already waits for a reset: then a line that asks for a reset and names no GPU means that GPU. */
static bool is_reset_explained(const struct hf_health_brain *b)
{
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		const struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; d->kind == HF_HEALTH_GPU && k < d->faults_len; k++)
			if (awaits_reset(&d->faults[k]))
				return true;
	}
	return false;
}

/* Closes the node's fault "a reset is required somewhere" if a GPU that waits for a reset explains it. */
static void close_explained(struct hf_health_brain *b)
{
	struct hf_health_device *node = &b->memory->devices[0];

	for (size_t i = 0; i < node->faults_len; i++) {
		struct hf_health_fault *f = &node->faults[i];

		if (f->open && f->detector == HF_HEALTH_RECOVERY &&
		    f->code == HF_HEALTH_CODE_RESET_SOMEWHERE && is_reset_explained(b))
			hf_health_fault_close(b, f);
	}
}

/* ---- applying all evidence of a step -------------------------------------------------------------------------- */

static void apply_evidence(struct hf_health_brain *b, const struct hf_health_evidence *given)
{
	struct hf_health_evidence e = *given;
	struct hf_health_device *device;

	if (e.at == HF_TIME_NONE || e.at > b->now)
		e.at = b->now;
	if (e.detector == HF_HEALTH_AER) {
		apply_pcie(b, &e);
		return;
	}
	if (e.detector == HF_HEALTH_MLX5 && e.device[0] != '\0') {
		apply_mlx5(b, &e);
		return;
	}
	if (e.detector == HF_HEALTH_RECOVERY && e.code == HF_HEALTH_CODE_RESET_SOMEWHERE &&
	    is_reset_explained(b))
		return;
	if (e.detector == HF_HEALTH_XID && e.code == HF_HEALTH_CODE_BUS)
		e.detector = HF_HEALTH_BUSLOST;
	device = hf_health_device_get(b, e.device, get_device_kind(e.detector));
	if (device)
		apply_to(b, device, &e);
}

/* ---- programs --------------------------------------------------------------------------------------- */

/* Whether another GPU of the node had the same fault within a day: then a bug of the program causes it, not the
 * GPUs. */
static bool is_programs(const struct hf_health_brain *b, const struct hf_health_device *device,
			const struct hf_health_fault *f)
{
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		const struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; d != device && k < d->faults_len; k++) {
			const struct hf_health_fault *other = &d->faults[k];

			if (other->program && other->detector == f->detector &&
			    other->code == f->code && f->last - other->last <= HF_DAY)
				return true;
		}
	}
	return false;
}

/* Returns the number of other faults of the device that were sighted at time `at`. */
static uint32_t count_sighted_with(const struct hf_health_device *device,
				   const struct hf_health_fault *than, hf_time at)
{
	uint32_t n = 0;

	for (size_t i = 0; i < device->faults_len; i++) {
		const struct hf_health_fault *f = &device->faults[i];

		n += f != than && f->cls >= HF_HEALTH_SOFTWARE && !hf_health_fault_follows(f) &&
		     (f->event_at == at || f->opened_at == at || f->last == at);
	}
	return n;
}

/* Removes the fault's own sightings; sightings of other faults at the same time stay. */
static void remove_sightings(struct hf_health_device *device, const struct hf_health_fault *f)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < device->sightings_len; i++) {
		hf_time at = device->sightings[i];
		uint32_t same = 0;

		for (uint32_t k = 0; k < kept; k++)
			same += device->sightings[k] == at;
		if (at < f->opened_at || at > f->last || same < count_sighted_with(device, f, at))
			device->sightings[kept++] = at;
	}
	for (uint32_t i = kept; i < device->sightings_len; i++)
		device->sightings[i] = 0;
	device->sightings_len = kept;
}

/* Makes faults that programs cause count against no device. */
static void forgive_programs(struct hf_health_brain *b)
{
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++) {
			struct hf_health_fault *f = &d->faults[k];

			if (!f->open || !f->program || f->cls <= HF_HEALTH_APP ||
			    !is_programs(b, d, f))
				continue;
			hf_health_fault_uncount(d, f);
			remove_sightings(d, f);
			f->cls = HF_HEALTH_APP;
			f->action = HF_HEALTH_RESTART_PROCESS;
			f->clear = HF_HEALTH_BY_AGE;
			f->confirmed = false;
			b->changed = true;
		}
	}
}

void hf_health_faults_apply(struct hf_health_brain *b)
{
	for (size_t i = 0; i < b->evidence_len; i++)
		apply_evidence(b, &b->evidence[i]);
	follow_links(b);
	forgive_programs(b);
	close_explained(b);
}

/* ---- age ---------------------------------------------------------------------------------------------- */

void hf_health_faults_age(struct hf_health_brain *b)
{
	for (size_t i = 0; i < b->memory->devices_len; i++) {
		struct hf_health_device *d = &b->memory->devices[i];

		for (size_t k = 0; k < d->faults_len; k++) {
			struct hf_health_fault *f = &d->faults[k];
			hf_time end = hf_time_add(f->last, b->config->age);

			if (!f->open || f->clear != HF_HEALTH_BY_AGE)
				continue;
			if (b->now >= end)
				hf_health_fault_close(b, f);
			else
				hf_health_wake(b, end);
		}
	}
}
