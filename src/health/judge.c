/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Turns measurements into evidence of a fault, or of its end.  Each detector has a track per device: how often in a
 * row the measurement was bad or good, since when, and whether the track fires.  While a track fires, each bad
 * measurement is evidence again, which confirms the fault.  A long enough series of good measurements ends the fault.
 */
#include "health/brain_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hf_health_find(struct hf_health_brain *b, const struct hf_health_sample *s, int32_t code,
		    const char *line)
{
	struct hf_health_evidence *e = &b->evidence[b->evidence_len];

	hf_assert(b->evidence_len < b->evidence_cap);
	b->evidence_len++;
	*e = hf_health_evidence_none();
	e->detector = s->detector;
	e->source = s->source;
	e->code = code;
	e->at = s->at;
	memcpy(e->device, s->device, sizeof(e->device));
	snprintf(e->line, sizeof(e->line), "%s", line);
}

void hf_health_clear(struct hf_health_brain *b, const struct hf_health_sample *s, int32_t code)
{
	hf_health_find(b, s, code, "");
	b->evidence[b->evidence_len - 1].verb = HF_HEALTH_CLEARED;
}

/* The track fires after bad_good[0] bad measurements in a row, and stops after bad_good[1] good ones, which ends
 * the fault. */
static void judge_streak(struct hf_health_brain *b, const struct hf_health_sample *s,
			 struct hf_health_track *t, int32_t code, int bad_good[2])
{
	if (t->bad >= bad_good[0])
		t->firing = true;
	if (t->firing && t->bad > 0)
		hf_health_find(b, s, code, "");
	if (t->firing && t->good >= bad_good[1]) {
		t->firing = false;
		hf_health_clear(b, s, code);
	}
}

static void note_result(struct hf_health_track *t, bool bad)
{
	/* A value far above any limit, so that the counter does not wrap. */
	const uint16_t enough = 1000;

	if (bad) {
		t->bad = t->bad < enough ? t->bad + 1 : enough;
		t->good = 0;
	} else {
		t->good = t->good < enough ? t->good + 1 : enough;
		t->bad = 0;
	}
}

/* How long the state has lasted at the time `at`; a change of the state begins a new time. */
static hf_time measure_lasting(struct hf_health_track *t, int state, hf_time at)
{
	if (t->base[0] != (uint64_t)state || !t->primed) {
		t->primed = true;
		t->base[0] = (uint64_t)state;
		t->since = at;
	}
	return at - t->since;
}

/* ---- what NVIDIA's driver reports ----------------------------------------------------------------- */

/* Action 0 is also the value of a device that never had a fault.  So 0 ends a fault only after another action, and
 * only twice in a row. */
static void judge_recovery(struct hf_health_brain *b, const struct hf_health_sample *s,
			   struct hf_health_track *t)
{
	if (s->recovery.action > 5)
		return;
	note_result(t, s->recovery.action != 0);
	/* t->at is the time of the first 0 in a row; a journal of an older version has none. */
	if (t->good == 1 || t->at == 0)
		t->at = s->at;
	if (s->recovery.action != 0) {
		t->firing = true;
		hf_health_find(b, s, (int32_t)s->recovery.action, "");
	} else if (t->firing && t->good >= 2) {
		t->firing = false;
		hf_health_find(b, s, 0, "");
		b->evidence[b->evidence_len - 1].verb = HF_HEALTH_RECOVERED;
		b->evidence[b->evidence_len - 1].at = t->at; /* of the first zero */
	}
}

static void reset_required(struct hf_health_brain *b, const struct hf_health_sample *s,
			   enum hf_health_verb verb)
{
	hf_health_find(b, s, HF_HEALTH_CODE_RESET_REQUIRED, "");
	b->evidence[b->evidence_len - 1].detector = HF_HEALTH_RECOVERY;
	b->evidence[b->evidence_len - 1].verb = verb;
}

/* A source that reported a loss takes it back by reporting twice in a row that the device is there.  The loss ends
 * then, if no other source had reported it.  base[source] is 1 after a report of a loss, and grows by one with
 * each report that the device is there. */
static void judge_loss(struct hf_health_brain *b, const struct hf_health_sample *s,
		       struct hf_health_track *t)
{
	uint64_t *said = &t->base[s->source];

	if (s->bus.lost) {
		*said = 1;
		hf_health_find(b, s, HF_HEALTH_CODE_BUS, "");
	} else if (*said > 0 && ++*said > 2) {
		*said = 0;
		hf_health_clear(b, s, HF_HEALTH_CODE_BUS);
	}
}

/* Whether the device has the open fault that the driver cannot initialize it. */
static bool is_down(const struct hf_health_brain *b, const struct hf_health_sample *s)
{
	const struct hf_health_device *d = hf_health_memory_find(b->memory, s->device);

	for (size_t i = 0; i < d->faults_len; i++)
		if (d->faults[i].open && d->faults[i].detector == HF_HEALTH_BUSLOST &&
		    d->faults[i].code == HF_HEALTH_CODE_INIT)
			return true;
	return false;
}

/* The driver has initialized the device, so the fault of any source ends.  A line of the log that is later than
 * the first answer opens the fault again. */
static void end_down(struct hf_health_brain *b, const struct hf_health_sample *s, hf_time first_at)
{
	hf_health_clear(b, s, HF_HEALTH_CODE_INIT);
	hf_health_find(b, s, HF_HEALTH_CODE_INIT, "");
	b->evidence[b->evidence_len - 1].verb = HF_HEALTH_RECOVERED;
	b->evidence[b->evidence_len - 1].at = first_at;
}

/* The fault begins after three measurements in a row without an answer about the device (base[HF_HEALTH_SOURCES]
 * counts them).  It ends after two measurements with an answer (t->at is the time of the last one, 0: none): a
 * driver that is loaded again fails for a moment. */
static void judge_answers(struct hf_health_brain *b, const struct hf_health_sample *s,
			  struct hf_health_track *t)
{
	uint64_t *mute = &t->base[HF_HEALTH_SOURCES];
	bool well = !s->bus.mute && !s->bus.lost && !s->bus.reset_required;

	*mute = s->bus.mute ? *mute + (*mute < 3) : 0;
	if (*mute == 3)
		hf_health_find(b, s, HF_HEALTH_CODE_INIT, "");
	if (well && t->at != 0 && is_down(b, s))
		end_down(b, s, t->at);
	t->at = well ? s->at : 0;
}

/* Two calls of NVML in a row that work again show that the required reset was made; sysfs cannot show it. */
static void judge_bus(struct hf_health_brain *b, const struct hf_health_sample *s,
		      struct hf_health_track *t)
{
	/* A measurement without an answer does not show that the device is there. */
	if (!s->bus.mute)
		judge_loss(b, s, t);
	if (s->source != HF_HEALTH_BY_NVML)
		return;
	judge_answers(b, s, t);
	note_result(t, s->bus.lost || s->bus.reset_required || s->bus.mute);
	if (s->bus.reset_required) {
		t->firing = true;
		reset_required(b, s, HF_HEALTH_FAULT);
	} else if (t->firing && t->good >= 2) {
		t->firing = false;
		reset_required(b, s, HF_HEALTH_RECOVERED);
	}
}

static void judge_ecc(struct hf_health_brain *b, const struct hf_health_sample *s,
		      struct hf_health_track *t)
{
	/* A counter that fell was reset, and counts from 0.  The errors in the first value are from before the
	 * first measurement. */
	if (t->primed && s->ecc.uncorrectable < t->base[0])
		t->base[0] = 0;
	if (t->primed && s->ecc.uncorrectable > t->base[0])
		hf_health_find(b, s, HF_HEALTH_CODE_UNCORRECTABLE, "");
	t->primed = true;
	t->base[0] = s->ecc.uncorrectable;
	if (!s->ecc.remap_known)
		return;
	if (s->ecc.pending)
		hf_health_find(b, s, HF_HEALTH_CODE_REMAP_PENDING, "");
	else if (t->firing)
		hf_health_clear(b, s, HF_HEALTH_CODE_REMAP_PENDING);
	t->firing = s->ecc.pending;
	if (s->ecc.failed)
		hf_health_find(b, s,
			       s->ecc.remapped_uncorrectable > 0 ? HF_HEALTH_CODE_REMAP_RMA
								 : HF_HEALTH_CODE_REMAP_FAILED,
			       "");
}

/* ---- slow ---------------------------------------------------------------------------------------------- */

/* Whether the load is high enough to judge the speed of a device. */
static bool is_busy(uint32_t load_percent)
{
	return load_percent > 50;
}

/* Hardware slowdown, thermal slowdown, power brake. */
#define THROTTLE_BITS UINT64_C(0xc8)
#define THROTTLE_MINUTES 10
#define BUCKET_BITS 6
#define BUCKET_MAX ((UINT64_C(1) << BUCKET_BITS) - 1)

/* Adds up ten counters of six bits, one for each minute, the newest in the lowest bits. */
static unsigned sum_minutes(uint64_t buckets)
{
	unsigned total = 0;

	for (int i = 0; i < THROTTLE_MINUTES; i++)
		total += (unsigned)(buckets >> (i * BUCKET_BITS) & BUCKET_MAX);
	return total;
}

static void advance_minutes(struct hf_health_track *t, hf_time at)
{
	const uint64_t all = (UINT64_C(1) << (THROTTLE_MINUTES * BUCKET_BITS)) - 1;

	if (!t->primed) {
		t->primed = true;
		t->since = at;
		t->at = at;
	}
	for (int i = 0; i <= THROTTLE_MINUTES && at - t->at >= HF_MINUTE; i++) {
		t->base[0] = t->base[0] << BUCKET_BITS & all;
		t->base[1] = t->base[1] << BUCKET_BITS & all;
		t->at += HF_MINUTE;
	}
	/* After a long pause the window of ten minutes begins again. */
	if (at - t->at >= HF_MINUTE) {
		t->base[0] = t->base[1] = 0;
		t->at = t->since = at;
	}
}

static void judge_throttle(struct hf_health_brain *b, const struct hf_health_sample *s,
			   struct hf_health_track *t)
{
	bool slow = s->throttle.reasons & THROTTLE_BITS;
	unsigned bad, total;

	/* An idle device is slow to save power, and cool even if its cooling has failed. */
	if (!is_busy(s->throttle.load_percent))
		return;
	advance_minutes(t, s->at);
	if ((t->base[1] & BUCKET_MAX) < BUCKET_MAX) {
		t->base[0] += slow;
		t->base[1]++;
	}
	bad = sum_minutes(t->base[0]);
	total = sum_minutes(t->base[1]);
	if (s->at - t->since < (THROTTLE_MINUTES - 1) * HF_MINUTE || total < THROTTLE_MINUTES)
		return;
	if (bad * 10 >= total * 6)
		t->firing = true;
	if (t->firing && bad * 10 < total) {
		t->firing = false;
		hf_health_clear(b, s, HF_HEALTH_CODE_SLOW);
	} else if (t->firing && slow) {
		hf_health_find(b, s, HF_HEALTH_CODE_SLOW, "");
	}
}

/* The clock rates of the devices of a step, sorted by model and rate, for comparisons. */
struct clocks {
	struct clock {
		uint64_t model;
		uint32_t mhz;
	} * all;
	size_t len;
};

/* free: rates of devices without a chosen limit, which show that another device is slow.  working: rates that also
 * include devices at their power limit, which show that a slow device is well again. */
struct peers {
	struct clocks free, working;
};

/* NVML's reasons of a chosen rate: idle, set by a person, at the power limit, bound to the slowest peer, for a
 * display.  A chosen rate is no fault. */
#define CHOSEN_BITS UINT64_C(0x117)
#define POWER_BIT UINT64_C(0x4)

static bool is_comparable(const struct hf_health_sample *s, uint64_t but_for)
{
	return s->detector == HF_HEALTH_CLOCK && s->supported && s->clock.model != 0 &&
	       is_busy(s->clock.load_percent) && !(s->clock.reasons & but_for);
}

static int by_model_and_rate(const void *left, const void *right)
{
	const struct clock *a = left, *c = right;

	if (a->model != c->model)
		return a->model < c->model ? -1 : 1;
	return a->mhz < c->mhz ? -1 : a->mhz > c->mhz;
}

static struct clocks collect_clocks(struct hf_health_brain *b, uint64_t but_for)
{
	struct clocks clocks = {
		.all = HF_ARENA_ARRAY(b->arena, struct clock, b->input->samples_len + 1)};

	for (size_t i = 0; i < b->input->samples_len; i++) {
		const struct hf_health_sample *s = &b->input->samples[i];

		if (is_comparable(s, but_for))
			clocks.all[clocks.len++] = (struct clock){s->clock.model, s->clock.mhz};
	}
	qsort(clocks.all, clocks.len, sizeof(*clocks.all), by_model_and_rate);
	return clocks;
}

/* The median rate of the devices of the model; 0 if there are fewer than three. */
static uint32_t find_median(const struct clocks *clocks, uint64_t model)
{
	size_t from = 0, end;

	while (from < clocks->len && clocks->all[from].model != model)
		from++;
	end = from;
	while (end < clocks->len && clocks->all[end].model == model)
		end++;
	return end - from < 3 ? 0 : clocks->all[from + (end - from) / 2].mhz;
}

/* Compares the rate with that of peers with as much load.  2: slower; 1: as fast; 0: between; -1: not known.  In
 * full training all devices are at their power limit: then no device is found slow, but a slow device that keeps
 * up counts as well again. */
static int compare_rate(const struct hf_health_sample *s, const struct peers *peers, bool was_slow)
{
	uint32_t median = find_median(&peers->free, s->clock.model);
	uint64_t mhz = s->clock.mhz;

	if (median > 0 && is_comparable(s, CHOSEN_BITS)) {
		if (mhz * 100 < (uint64_t)median * 85)
			return 2;
		return mhz * 100 >= (uint64_t)median * 95;
	}
	median = find_median(&peers->working, s->clock.model);
	if (!was_slow || median == 0 || !is_comparable(s, CHOSEN_BITS & ~POWER_BIT))
		return -1;
	return mhz * 100 >= (uint64_t)median * 95;
}

/* A device is slow if its rate is below 85 % of the peers' median for 5 minutes, and well again at 95 % for 10
 * minutes. */
static void judge_clock(struct hf_health_brain *b, const struct hf_health_sample *s,
			struct hf_health_track *t, const struct peers *peers)
{
	int state = compare_rate(s, peers, t->firing);
	hf_time span;

	if (state < 0)
		return;
	/* A minute without a comparable measurement ends the series. */
	if (s->at - t->at > HF_MINUTE)
		t->primed = false;
	t->at = s->at;
	span = measure_lasting(t, state, s->at);
	if (state == 2 && span >= 5 * HF_MINUTE)
		t->firing = true;
	if (t->firing && state == 2)
		hf_health_find(b, s, HF_HEALTH_CODE_SLOW, "");
	if (t->firing && state == 1 && span >= 10 * HF_MINUTE) {
		t->firing = false;
		hf_health_clear(b, s, HF_HEALTH_CODE_SLOW);
	}
}

/* The width of the link counts at any time, its speed only under load: an idle link slows down to save power. */
static void judge_pcie(struct hf_health_brain *b, const struct hf_health_sample *s,
		       struct hf_health_track *t)
{
	bool narrow = s->pcie.width > 0 && s->pcie.width < s->pcie.width_max;
	bool slow = s->pcie.speed > 0 && s->pcie.speed < s->pcie.speed_max;
	bool busy = is_busy(s->pcie.load_percent);

	if (narrow)
		hf_health_find(b, s, HF_HEALTH_CODE_WIDTH, "");
	t->base[0] = narrow ? 0 : t->base[0] + (t->base[0] < 3);
	if (t->base[0] == 3)
		hf_health_clear(b, s, HF_HEALTH_CODE_WIDTH);
	if (!busy && slow)
		return;
	note_result(t, slow);
	judge_streak(b, s, t, HF_HEALTH_CODE_SPEED, (int[2]){2, 3});
}

/* The replays of a link with a bit error rate of 1e-12, in hundredths per lane and minute, by PCIe generation. */
static const unsigned replays[] = {0, 15, 30, 48, 96, 192, 384};

static void judge_replay(struct hf_health_brain *b, const struct hf_health_sample *s,
			 struct hf_health_track *t)
{
	uint64_t lanes = s->replay.lanes, limit, rise;
	hf_time span = s->at - t->at;
	bool primed = t->primed;

	if (s->replay.generation == 0 || s->replay.generation >= HF_ARRAY_LEN(replays) ||
	    lanes == 0 || lanes > 32)
		return;
	if (primed && span < HF_MINUTE)
		return;
	rise = s->replay.counter >= t->base[0] ? s->replay.counter - t->base[0] : 0;
	t->primed = true;
	t->at = s->at;
	t->base[0] = s->replay.counter;
	if (!primed)
		return;
	/* The limit for the minutes that have passed, rounded up. */
	limit = (lanes * replays[s->replay.generation] * (uint64_t)(span / HF_MINUTE) + 99) / 100;
	/* A link without traffic has no replays, so few replays of an idle device do not end the fault. */
	if (rise <= limit && t->firing && !is_busy(s->replay.load_percent))
		return;
	note_result(t, rise > limit);
	judge_streak(b, s, t, HF_HEALTH_CODE_SLOW, (int[2]){2, 5});
}

/* ---- counts and links -------------------------------------------------------------------------------- */

static int64_t choose_larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The number of the node's GPUs that sysfs or NVML finds, without GPUs of other drivers. */
static int64_t count_own(const struct hf_health_sample *s)
{
	return choose_larger(s->count.pci, s->count.nvml);
}

static int64_t count_on_bus(const struct hf_health_sample *s)
{
	return choose_larger(s->count.bus, count_own(s));
}

static int64_t find_expected(const struct hf_health_memory *m)
{
	return choose_larger(m->gpus, m->gpus_before);
}

static int64_t find_expected_on_bus(const struct hf_health_memory *m)
{
	return choose_larger(find_expected(m), choose_larger(m->bus, m->bus_before));
}

/* Whether the node has fewer GPUs than before.  A GPU that went to another driver is still on the bus.  GPUs that
 * another driver always had do not replace a GPU that is gone. */
static bool is_fewer(const struct hf_health_memory *m, const struct hf_health_sample *s)
{
	return s->count.bus >= 0 && count_own(s) < find_expected(m) &&
	       count_on_bus(s) < find_expected_on_bus(m);
}

/* The code of the disagreement: sysfs and NVML find different numbers, or there are fewer GPUs than before, or the
 * kubelet offers fewer than sysfs and NVML find.  0: the numbers agree. */
static int32_t find_disagreement(const struct hf_health_brain *b, const struct hf_health_sample *s)
{
	int32_t pci = s->count.pci, nvml = s->count.nvml, kubelet = s->count.allocatable;

	if (pci >= 0 && nvml >= 0 && pci != nvml)
		return HF_HEALTH_CODE_PCI_MISSING;
	if (is_fewer(b->memory, s))
		return HF_HEALTH_CODE_FEWER;
	return kubelet >= 0 && kubelet < (pci > nvml ? pci : nvml) ? HF_HEALTH_CODE_KUBELET_FEWER
								   : 0;
}

/* Whether all numbers that the code compares are known. */
static bool can_tell(const struct hf_health_sample *s, int32_t code)
{
	switch (code) {
	case HF_HEALTH_CODE_PCI_MISSING: return s->count.pci >= 0 && s->count.nvml >= 0;
	case HF_HEALTH_CODE_FEWER: return s->count.bus >= 0;
	case HF_HEALTH_CODE_KUBELET_FEWER: return s->count.allocatable != -1;
	default: return true;
	}
}

/* Notes whether the kubelet offers GPUs although no other source has found one. */
static void note_offers(struct hf_health_memory *m, const struct hf_health_sample *s)
{
	bool none = count_on_bus(s) == 0 && find_expected(m) == 0;

	if (s->count.allocatable >= 0 || !none)
		m->offered = none && s->count.allocatable > 0;
}

static void report_fewer(struct hf_health_brain *b, const struct hf_health_sample *s, size_t from)
{
	for (size_t i = from; i < b->evidence_len; i++) {
		struct hf_health_evidence *e = &b->evidence[i];

		if (e->verb == HF_HEALTH_FAULT && e->code == HF_HEALTH_CODE_FEWER)
			snprintf(e->line, sizeof(e->line), "devices on the bus: %lld, before: %lld",
				 (long long)count_on_bus(s),
				 (long long)find_expected_on_bus(b->memory));
	}
}

/* Three measurements in a row with the same disagreement are a fault.  base[0] is the code of the last
 * measurement, base[1] the code of the fault. */
static void judge_counts(struct hf_health_brain *b, const struct hf_health_sample *s,
			 struct hf_health_track *t)
{
	struct hf_health_memory *m = b->memory;
	int32_t code = find_disagreement(b, s);
	size_t before = b->evidence_len;

	if (s->count.bus > (int64_t)m->bus) {
		m->bus = (uint32_t)s->count.bus;
		b->changed = true;
	}
	if (s->count.pci < 0 && s->count.nvml < 0)
		return;
	b->changed |= !m->counted;
	m->counted = true;
	note_offers(m, s);
	/* If a number is not known, the numbers do not count as equal. */
	if (code == 0 && !can_tell(s, (int32_t)t->base[t->firing]))
		return;
	if (code != 0 && t->base[0] != (uint64_t)code) {
		t->base[0] = (uint64_t)code;
		t->bad = 0;
	}
	note_result(t, code != 0);
	if (t->firing && code != 0 && t->base[1] != t->base[0]) {
		/* A new disagreement replaces the former one after three measurements. */
		if (t->bad < 3)
			return;
		hf_health_clear(b, s, (int32_t)t->base[1]);
		t->firing = false;
	}
	if (t->bad >= 3)
		t->base[1] = t->base[0];
	judge_streak(b, s, t, (int32_t)(t->firing ? t->base[1] : t->base[0]), (int[2]){3, 3});
	report_fewer(b, s, before);
}

/* NVML's health of the fabric: fields of two bits, 1 a fault, 2 none, 0 not supported.  Then a field of four bits,
 * the configuration: 1 is right, a higher value is wrong. */
static const struct {
	unsigned shift;
	const char *text;
} fabric_faults[] = {
	{0, "degraded bandwidth"},
	{2, "a route is being recovered"},
	{4, "a route is unhealthy"},
	{6, "an access timeout is being recovered"},
};
#define FABRIC_CONFIGURATION_SHIFT 8

/* The text of the first fault in the fields; NULL: there is no fault. */
static const char *find_fabric_fault(uint32_t health)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(fabric_faults); i++)
		if ((health >> fabric_faults[i].shift & 3) == 1)
			return fabric_faults[i].text;
	return (health >> FABRIC_CONFIGURATION_SHIFT & 15) > 1 ? "incorrect configuration" : NULL;
}

/* A fault begins after three measurements in a row with it and ends after three without it; base[1] and base[2]
 * count the measurements. */
static void judge_fabric_health(struct hf_health_brain *b, const struct hf_health_sample *s,
				struct hf_health_track *t)
{
	const char *fault = find_fabric_fault(s->nvlink.health);
	char line[96];

	if (!s->nvlink.health_known)
		return;
	t->base[1] = fault ? t->base[1] + (t->base[1] < 3) : 0;
	t->base[2] = fault ? 0 : t->base[2] + (t->base[2] < 3);
	if (t->base[1] == 3) {
		snprintf(line, sizeof(line), "NVLink fabric: %s (health 0x%x)", fault,
			 s->nvlink.health);
		hf_health_find(b, s, HF_HEALTH_CODE_FABRIC_UNHEALTHY, line);
	} else if (t->base[2] == 3) {
		hf_health_clear(b, s, HF_HEALTH_CODE_FABRIC_UNHEALTHY);
	}
}

/* A link counts once it was active in this boot: cards without a bridge have links that are never active. */
static void judge_nvlink(struct hf_health_brain *b, const struct hf_health_sample *s,
			 struct hf_health_track *t)
{
	char line[64];
	uint32_t lost;

	judge_fabric_health(b, s, t);
	t->base[0] |= s->nvlink.active;
	lost = (uint32_t)t->base[0] & ~s->nvlink.active;
	note_result(t, lost != 0);
	/* A link that is being trained again is inactive for a moment. */
	if (lost != 0 && t->bad >= 2) {
		t->firing = true;
		snprintf(line, sizeof(line), "links inactive: 0x%x", lost);
		hf_health_find(b, s, HF_HEALTH_CODE_LINK_INACTIVE, line);
	} else if (lost == 0 && t->firing && t->good >= 3) {
		t->firing = false;
		hf_health_clear(b, s, HF_HEALTH_CODE_LINK_INACTIVE);
	}
}

/* ---- driver, device plugin and slow ranks -------------------------------------------------------------- */

/* Three missed deadlines in a row are a fault.  Only an answer of the source that missed them ends the fault
 * (base[1] has a bit for each such source): a loaded kernel module does not show that the library answers. */
static void judge_deadlines(struct hf_health_brain *b, const struct hf_health_sample *s,
			    struct hf_health_track *t)
{
	uint64_t who = UINT64_C(1) << s->source;

	if (s->driver.timed_out)
		t->base[1] |= who;
	else
		t->base[1] &= ~who;
	if (!s->driver.timed_out && t->base[1] != 0)
		return;
	note_result(t, s->driver.timed_out);
	judge_streak(b, s, t, HF_HEALTH_CODE_UNRESPONSIVE, (int[2]){3, 1});
}

/* How long GPUs may wait for the fabric: after a boot or a restart of the driver the fabric manager needs time to
 * register all GPUs. */
#define FABRIC_PATIENCE (5 * HF_MINUTE)

static const char *name_fabric_state(uint32_t state)
{
	static const char *const names[] = {"not supported", "not started", "in progress",
					    "completed"};

	return state < HF_ARRAY_LEN(names) ? names[state] : "unknown";
}

/* Judges GPUs that wait for their NVLink fabric. The track remembers: base[0], whether GPUs wait;
 * `since`, since when; base[2], whether the wait counts as a fault already. */
static void judge_fabric(struct hf_health_brain *b, const struct hf_health_sample *s,
			 struct hf_health_track *t)
{
	uint32_t waiting = s->driver.fabric_waiting;
	char line[128];
	hf_time span;

	if (s->driver.fabric_asked == 0 && s->driver.fabric_none == 0)
		return;
	span = measure_lasting(t, waiting > 0, s->at);
	if (waiting == 0 && t->base[2] != 0)
		hf_health_clear(b, s, HF_HEALTH_CODE_FABRIC_DOWN);
	if (waiting > 0 && span >= FABRIC_PATIENCE) {
		t->base[2] = 1;
		snprintf(line, sizeof(line), "NVLink fabric: %u of %u GPUs wait: %s, status %u",
			 waiting, s->driver.fabric_asked, name_fabric_state(s->driver.fabric_state),
			 s->driver.fabric_status);
		hf_health_find(b, s, HF_HEALTH_CODE_FABRIC_DOWN, line);
	}
	if (waiting == 0)
		t->base[2] = 0;
}

/* Judges all codes of detector driver. */
static void judge_driver(struct hf_health_brain *b, const struct hf_health_sample *s,
			 struct hf_health_track *t)
{
	/* The source does not serve this node any more, so its missed deadlines do not count. */
	if (s->driver.aside) {
		t->base[1] &= ~(UINT64_C(1) << s->source);
		return;
	}
	judge_deadlines(b, s, t);
	if (s->driver.timed_out)
		return;
	judge_fabric(b, s, t);
	if (s->driver.mismatch)
		hf_health_find(b, s, HF_HEALTH_CODE_MISMATCH, "");
	else
		hf_health_clear(b, s, HF_HEALTH_CODE_MISMATCH);
	if (s->driver.not_loaded)
		hf_health_find(b, s, HF_HEALTH_CODE_NOT_LOADED, "");
	else
		hf_health_clear(b, s, HF_HEALTH_CODE_NOT_LOADED);
}

/* A fault begins after a minute without the plugin or its resource, and ends after a minute with it: plugins and
 * the kubelet restart. */
static void judge_plugin(struct hf_health_brain *b, const struct hf_health_sample *s,
			 struct hf_health_track *t)
{
	int state = s->plugin.unreachable ? 1 : s->plugin.resource_gone ? 2 : 0;
	hf_time span = measure_lasting(t, state, s->at);

	if (state != 0 && span >= HF_MINUTE) {
		t->firing = true;
		hf_health_find(b, s, state, "");
	} else if (state == 0 && t->firing && span >= HF_MINUTE) {
		t->firing = false;
		hf_health_clear(b, s, 0);
	}
}

static void judge_amd(struct hf_health_brain *b, const struct hf_health_sample *s,
		      struct hf_health_track *t)
{
	/* The number is a sum over many blocks, and a block may begin at 0 again: a smaller sum is no event. */
	if (s->amd.counted) {
		if (t->primed && s->amd.uncorrectable > t->base[0])
			hf_health_find(b, s, HF_HEALTH_CODE_UNCORRECTABLE, "");
		t->primed = true;
		t->base[0] = s->amd.uncorrectable;
	}
	if (!s->amd.timed)
		return;
	if (s->amd.throttle_percent < 20 && t->firing && !is_busy(s->amd.load_percent))
		return;
	note_result(t, s->amd.throttle_percent >= 20);
	/* 20 measurements take ten minutes, because the interval of the measurements is half a
	 * minute. */
	judge_streak(b, s, t, HF_HEALTH_CODE_AMD_SLOW, (int[2]){20, 20});
}

static void judge_straggler(struct hf_health_brain *b, const struct hf_health_sample *s,
			    struct hf_health_track *t)
{
	note_result(t, s->straggler.slow);
	/* The verdict "slow" needed two slow windows; two windows without it end the fault. */
	judge_streak(b, s, t, HF_HEALTH_CODE_SLOW, (int[2]){1, 2});
}

/* ---- judging all samples of a step -------------------------------------------------------------------------- */

static void judge_sample(struct hf_health_brain *b, const struct hf_health_sample *s,
			 struct hf_health_track *t, const struct peers *peers)
{
	switch (s->detector) {
	case HF_HEALTH_RECOVERY: judge_recovery(b, s, t); break;
	case HF_HEALTH_BUSLOST: judge_bus(b, s, t); break;
	case HF_HEALTH_ECC: judge_ecc(b, s, t); break;
	case HF_HEALTH_THROTTLE: judge_throttle(b, s, t); break;
	case HF_HEALTH_CLOCK: judge_clock(b, s, t, peers); break;
	case HF_HEALTH_PCIE: judge_pcie(b, s, t); break;
	case HF_HEALTH_REPLAY: judge_replay(b, s, t); break;
	case HF_HEALTH_COUNT: judge_counts(b, s, t); break;
	case HF_HEALTH_NVLINK: judge_nvlink(b, s, t); break;
	case HF_HEALTH_IB: hf_health_judge_port(b, s, t); break;
	case HF_HEALTH_DRIVER: judge_driver(b, s, t); break;
	case HF_HEALTH_PLUGIN: judge_plugin(b, s, t); break;
	case HF_HEALTH_AMD: judge_amd(b, s, t); break;
	case HF_HEALTH_STRAGGLER: judge_straggler(b, s, t); break;
	default: break;
	}
}

static enum hf_health_kind get_sample_kind(enum hf_health_detector detector)
{
	switch (detector) {
	case HF_HEALTH_COUNT:
	case HF_HEALTH_DRIVER:
	case HF_HEALTH_PLUGIN: return HF_HEALTH_NODE;
	case HF_HEALTH_IB: return HF_HEALTH_PORT;
	default: return HF_HEALTH_GPU;
	}
}

void hf_health_judge(struct hf_health_brain *b)
{
	const struct peers peers = {
		.free = collect_clocks(b, CHOSEN_BITS),
		.working = collect_clocks(b, CHOSEN_BITS & ~POWER_BIT),
	};

	for (size_t i = 0; i < b->input->samples_len; i++) {
		struct hf_health_sample s = b->input->samples[i];
		enum hf_health_kind kind = get_sample_kind(s.detector);
		struct hf_health_device *d;

		if (!s.supported)
			continue;
		if (s.at == HF_TIME_NONE || s.at > b->now)
			s.at = b->now;
		d = hf_health_device_get(b, kind == HF_HEALTH_NODE ? "" : s.device, kind);
		/* A sample about a device that names none, or a device of another kind, is dropped. */
		if (!d || d->kind != kind)
			continue;
		memcpy(s.device, d->id, sizeof(s.device));
		b->changed = true;
		hf_health_seen(b, d);
		judge_sample(b, &s, &d->tracks[s.detector], &peers);
	}
}
