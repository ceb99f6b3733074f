/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/brain_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Measurements of a device become evidence that something is wrong or is right again.  Each
 * kind has a track per device: how often in a row it was bad or good, since when, and whether it
 * is firing.  While it fires every bad measurement is evidence once more, which is what confirms
 * it; the first good streak that is long enough ends it.
 */

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

/* Bad or good so many times in a row; a measurement that is neither changes nothing. */
static void streak(struct hf_health_brain *b, const struct hf_health_sample *s,
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

static void note(struct hf_health_track *t, bool bad)
{
	/* Far above any limit, and it must not wrap. */
	const uint16_t enough = 1000;

	if (bad) {
		t->bad = t->bad < enough ? t->bad + 1 : enough;
		t->good = 0;
	} else {
		t->good = t->good < enough ? t->good + 1 : enough;
		t->bad = 0;
	}
}

/* Since when it is so; a change begins anew. */
static hf_time lasting(struct hf_health_track *t, int state, hf_time at)
{
	if (t->base[0] != (uint64_t)state || !t->primed) {
		t->primed = true;
		t->base[0] = (uint64_t)state;
		t->since = at;
	}
	return at - t->since;
}

/* ---- what the driver says ------------------------------------------------------------------------- */

/* Zero is what it says of a device that never had anything: only the way back from something else
 * is a sign, and it must be said twice. */
static void recovery(struct hf_health_brain *b, const struct hf_health_sample *s,
		     struct hf_health_track *t)
{
	if (s->recovery.action > 5)
		return;
	note(t, s->recovery.action != 0);
	/* 0: whoever saw the first of them did not note it. */
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

/* Who said that it is lost says twice in a row that it is not (base, by source: 1 since it was, more for each time
 * that it was not): where nobody else had said so, it never was. */
static void lost(struct hf_health_brain *b, const struct hf_health_sample *s,
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

/* That its driver cannot bring it up stands against it. */
static bool is_down(const struct hf_health_brain *b, const struct hf_health_sample *s)
{
	const struct hf_health_device *d = hf_health_memory_find(b->memory, s->device);

	for (size_t i = 0; i < d->faults_len; i++)
		if (d->faults[i].open && d->faults[i].detector == HF_HEALTH_BUSLOST &&
		    d->faults[i].code == HF_HEALTH_CODE_INIT)
			return true;
	return false;
}

/* The driver has brought it up, whoever said that it cannot; a line that came since the first answer stays. */
static void came_up(struct hf_health_brain *b, const struct hf_health_sample *s, hf_time first_at)
{
	hf_health_clear(b, s, HF_HEALTH_CODE_INIT);
	hf_health_find(b, s, HF_HEALTH_CODE_INIT, "");
	b->evidence[b->evidence_len - 1].verb = HF_HEALTH_RECOVERED;
	b->evidence[b->evidence_len - 1].at = first_at;
}

/* Three looks in a row of which the library tells nothing of it (base, behind the sources: how many), and two in a
 * row of which it does (at: the last such, 0: none).  A driver that is loaded anew fails for a moment. */
static void answered(struct hf_health_brain *b, const struct hf_health_sample *s,
		     struct hf_health_track *t)
{
	uint64_t *mute = &t->base[HF_HEALTH_SOURCES];
	bool well = !s->bus.mute && !s->bus.lost && !s->bus.reset_required;

	*mute = s->bus.mute ? *mute + (*mute < 3) : 0;
	if (*mute == 3)
		hf_health_find(b, s, HF_HEALTH_CODE_INIT, "");
	if (well && t->at != 0 && is_down(b, s))
		came_up(b, s, t->at);
	t->at = well ? s->at : 0;
}

/* That calls for it work again, twice in a row, says that the reset was made; the bus knows nothing of that. */
static void bus(struct hf_health_brain *b, const struct hf_health_sample *s,
		struct hf_health_track *t)
{
	/* Of what can tell nothing it is no word that the device is there. */
	if (!s->bus.mute)
		lost(b, s, t);
	if (s->source != HF_HEALTH_BY_NVML)
		return;
	answered(b, s, t);
	note(t, s->bus.lost || s->bus.reset_required || s->bus.mute);
	if (s->bus.reset_required) {
		t->firing = true;
		reset_required(b, s, HF_HEALTH_FAULT);
	} else if (t->firing && t->good >= 2) {
		t->firing = false;
		reset_required(b, s, HF_HEALTH_RECOVERED);
	}
}

static void ecc(struct hf_health_brain *b, const struct hf_health_sample *s,
		struct hf_health_track *t)
{
	/* A counter that fell was reset, and counts on from nothing; what is seen first is old news. */
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

/* What only load can show is neither bad nor good of a device that does not work. */
static bool is_busy(uint32_t load_percent)
{
	return load_percent > 50;
}

/* Hardware slowdown, thermal slowdown, power brake: what the device did not choose. */
#define THROTTLE_BITS UINT64_C(0xc8)
#define THROTTLE_MINUTES 10
#define BUCKET_BITS 6
#define BUCKET_MAX ((UINT64_C(1) << BUCKET_BITS) - 1)

/* Ten counters of a minute each, the newest lowest. */
static unsigned sum(uint64_t buckets)
{
	unsigned total = 0;

	for (int i = 0; i < THROTTLE_MINUTES; i++)
		total += (unsigned)(buckets >> (i * BUCKET_BITS) & BUCKET_MAX);
	return total;
}

static void advance(struct hf_health_track *t, hf_time at)
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
	/* After a long silence what is in the window says nothing. */
	if (at - t->at >= HF_MINUTE) {
		t->base[0] = t->base[1] = 0;
		t->at = t->since = at;
	}
}

static void throttle(struct hf_health_brain *b, const struct hf_health_sample *s,
		     struct hf_health_track *t)
{
	bool slow = s->throttle.reasons & THROTTLE_BITS;
	unsigned bad, total;

	/* An idle device is slow as it likes, and cool whatever is wrong with it. */
	if (!is_busy(s->throttle.load_percent))
		return;
	advance(t, s->at);
	if ((t->base[1] & BUCKET_MAX) < BUCKET_MAX) {
		t->base[0] += slow;
		t->base[1]++;
	}
	bad = sum(t->base[0]);
	total = sum(t->base[1]);
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

/* The clocks of the step by which others may be measured, by model and rate. */
struct clocks {
	struct clock {
		uint64_t model;
		uint32_t mhz;
	} * all;
	size_t len;
};

/* By which it may be found slow, and by which one that was may be found well. */
struct peers {
	struct clocks free, working;
};

/* Idle, set by a person, at its power limit, bound to its slowest peer, for a display: a rate that the device
 * has by intent says nothing of how well it is. */
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

static struct clocks clocks_of(struct hf_health_brain *b, uint64_t but_for)
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

/* Of the devices of that model: 0 for fewer than three, which have no middle. */
static uint32_t median_of(const struct clocks *clocks, uint64_t model)
{
	size_t from = 0, end;

	while (from < clocks->len && clocks->all[from].model != model)
		from++;
	end = from;
	while (end < clocks->len && clocks->all[end].model == model)
		end++;
	return end - from < 3 ? 0 : clocks->all[from + (end - from) / 2].mhz;
}

/* Slower than its peers that work as much (2), as fast as they (1), between (0); -1: it cannot be told.  In full
 * training all are at their power limit: who is slow there is not seen by it, but who was slow is well when it is as
 * fast as they. */
static int rate_of(const struct hf_health_sample *s, const struct peers *peers, bool was_slow)
{
	uint32_t median = median_of(&peers->free, s->clock.model);
	uint64_t mhz = s->clock.mhz;

	if (median > 0 && is_comparable(s, CHOSEN_BITS)) {
		if (mhz * 100 < (uint64_t)median * 85)
			return 2;
		return mhz * 100 >= (uint64_t)median * 95;
	}
	median = median_of(&peers->working, s->clock.model);
	if (!was_slow || median == 0 || !is_comparable(s, CHOSEN_BITS & ~POWER_BIT))
		return -1;
	return mhz * 100 >= (uint64_t)median * 95;
}

/* Slower than 85 % of them for 5 minutes; well again at 95 % for 10. */
static void clock_rate(struct hf_health_brain *b, const struct hf_health_sample *s,
		       struct hf_health_track *t, const struct peers *peers)
{
	int state = rate_of(s, peers, t->firing);
	hf_time span;

	if (state < 0)
		return;
	/* Minutes that it did not work, or not so that it could be told, are not of them. */
	if (s->at - t->at > HF_MINUTE)
		t->primed = false;
	t->at = s->at;
	span = lasting(t, state, s->at);
	if (state == 2 && span >= 5 * HF_MINUTE)
		t->firing = true;
	if (t->firing && state == 2)
		hf_health_find(b, s, HF_HEALTH_CODE_SLOW, "");
	if (t->firing && state == 1 && span >= 10 * HF_MINUTE) {
		t->firing = false;
		hf_health_clear(b, s, HF_HEALTH_CODE_SLOW);
	}
}

/* A width is true at any time, a speed only under load: an idle link slows down to save power. */
static void pcie(struct hf_health_brain *b, const struct hf_health_sample *s,
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
	note(t, slow);
	streak(b, s, t, HF_HEALTH_CODE_SPEED, (int[2]){2, 3});
}

/* What a link with a bit error rate of 1e-12 replays: per lane and minute, in hundredths. */
static const unsigned replays[] = {0, 15, 30, 48, 96, 192, 384};

static void replay(struct hf_health_brain *b, const struct hf_health_sample *s,
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
	/* By the minutes that really passed, rounded up. */
	limit = (lanes * replays[s->replay.generation] * (uint64_t)(span / HF_MINUTE) + 99) / 100;
	/* A link over which nothing goes replays nothing. */
	if (rise <= limit && t->firing && !is_busy(s->replay.load_percent))
		return;
	note(t, rise > limit);
	streak(b, s, t, HF_HEALTH_CODE_SLOW, (int[2]){2, 5});
}

/* ---- counts and links -------------------------------------------------------------------------------- */

static int64_t max_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* That somebody sees: of the node's own, and with those that other drivers have. */
static int64_t own(const struct hf_health_sample *s)
{
	return max_of(s->count.pci, s->count.nvml);
}

static int64_t on_bus(const struct hf_health_sample *s)
{
	return max_of(s->count.bus, own(s));
}

static int64_t expected(const struct hf_health_memory *m)
{
	return max_of(m->gpus, m->gpus_before);
}

static int64_t expected_on_bus(const struct hf_health_memory *m)
{
	return max_of(expected(m), max_of(m->bus, m->bus_before));
}

/* One that was given to another driver is on the bus still; where another driver always had some, those
 * stand in for none that is gone. */
static bool is_fewer(const struct hf_health_memory *m, const struct hf_health_sample *s)
{
	return s->count.bus >= 0 && own(s) < expected(m) && on_bus(s) < expected_on_bus(m);
}

/* What the driver does not see is missing; what was there before is gone, though all agree; what only the
 * kubelet does not see was lost on the way.  0 where they agree. */
static int32_t disagreement(const struct hf_health_brain *b, const struct hf_health_sample *s)
{
	int32_t pci = s->count.pci, nvml = s->count.nvml, kubelet = s->count.allocatable;

	if (pci >= 0 && nvml >= 0 && pci != nvml)
		return HF_HEALTH_CODE_PCI_MISSING;
	if (is_fewer(b->memory, s))
		return HF_HEALTH_CODE_FEWER;
	return kubelet >= 0 && kubelet < (pci > nvml ? pci : nvml) ? HF_HEALTH_CODE_KUBELET_FEWER
								   : 0;
}

/* All are counted that it is between. */
static bool can_tell(const struct hf_health_sample *s, int32_t code)
{
	switch (code) {
	case HF_HEALTH_CODE_PCI_MISSING: return s->count.pci >= 0 && s->count.nvml >= 0;
	case HF_HEALTH_CODE_FEWER: return s->count.bus >= 0;
	case HF_HEALTH_CODE_KUBELET_FEWER: return s->count.allocatable != -1;
	default: return true;
	}
}

/* The kubelet offers what nobody has seen. */
static void offers(struct hf_health_memory *m, const struct hf_health_sample *s)
{
	bool none = on_bus(s) == 0 && expected(m) == 0;

	if (s->count.allocatable >= 0 || !none)
		m->offered = none && s->count.allocatable > 0;
}

static void tell_fewer(struct hf_health_brain *b, const struct hf_health_sample *s, size_t from)
{
	for (size_t i = from; i < b->evidence_len; i++) {
		struct hf_health_evidence *e = &b->evidence[i];

		if (e->verb == HF_HEALTH_FAULT && e->code == HF_HEALTH_CODE_FEWER)
			snprintf(e->line, sizeof(e->line), "devices on the bus: %lld, before: %lld",
				 (long long)on_bus(s), (long long)expected_on_bus(b->memory));
	}
}

/* Three polls in a row, of the same disagreement (base[0]); base[1] is the one that fires. */
static void counts(struct hf_health_brain *b, const struct hf_health_sample *s,
		   struct hf_health_track *t)
{
	struct hf_health_memory *m = b->memory;
	int32_t code = disagreement(b, s);
	size_t before = b->evidence_len;

	if (s->count.bus > (int64_t)m->bus) {
		m->bus = (uint32_t)s->count.bus;
		b->changed = true;
	}
	if (s->count.pci < 0 && s->count.nvml < 0)
		return;
	b->changed |= !m->counted;
	m->counted = true;
	offers(m, s);
	/* Silence is no agreement. */
	if (code == 0 && !can_tell(s, (int32_t)t->base[t->firing]))
		return;
	if (code != 0 && t->base[0] != (uint64_t)code) {
		t->base[0] = (uint64_t)code;
		t->bad = 0;
	}
	note(t, code != 0);
	if (t->firing && code != 0 && t->base[1] != t->base[0]) {
		/* From one disagreement into the other, once that is found. */
		if (t->bad < 3)
			return;
		hf_health_clear(b, s, (int32_t)t->base[1]);
		t->firing = false;
	}
	if (t->bad >= 3)
		t->base[1] = t->base[0];
	streak(b, s, t, (int32_t)(t->firing ? t->base[1] : t->base[0]), (int[2]){3, 3});
	tell_fewer(b, s, before);
}

/* Fields of two bits in NVML's health of the fabric: 1 is a fault, 2 none, 0 not supported.  Then one of four bits, the
 * configuration: 1 is right, more is wrong. */
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

/* The first fault; NULL without a fault. */
static const char *find_fabric_fault(uint32_t health)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(fabric_faults); i++)
		if ((health >> fabric_faults[i].shift & 3) == 1)
			return fabric_faults[i].text;
	return (health >> FABRIC_CONFIGURATION_SHIFT & 15) > 1 ? "incorrect configuration" : NULL;
}

/* A fault begins after three looks in a row with the fault and ends after three without; base[1] and
 * base[2] count these looks. */
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

/* A link counts from when it was first active in this boot: cards without a bridge have links that
 * never are. */
static void nvlink(struct hf_health_brain *b, const struct hf_health_sample *s,
		   struct hf_health_track *t)
{
	char line[64];
	uint32_t lost;

	judge_fabric_health(b, s, t);
	t->base[0] |= s->nvlink.active;
	lost = (uint32_t)t->base[0] & ~s->nvlink.active;
	note(t, lost != 0);
	/* A link that trains anew is away for a moment. */
	if (lost != 0 && t->bad >= 2) {
		t->firing = true;
		snprintf(line, sizeof(line), "links inactive: 0x%x", lost);
		hf_health_find(b, s, HF_HEALTH_CODE_LINK_INACTIVE, line);
	} else if (lost == 0 && t->firing && t->good >= 3) {
		t->firing = false;
		hf_health_clear(b, s, HF_HEALTH_CODE_LINK_INACTIVE);
	}
}

/* ---- between a device and its users -------------------------------------------------------------------- */

/* Three deadlines missed in a row; who missed them says that it answers again (base[1]: a bit for each of them):
 * a module that is loaded is no answer of a library that hangs. */
static void answers(struct hf_health_brain *b, const struct hf_health_sample *s,
		    struct hf_health_track *t)
{
	uint64_t who = UINT64_C(1) << s->source;

	if (s->driver.timed_out)
		t->base[1] |= who;
	else
		t->base[1] &= ~who;
	if (!s->driver.timed_out && t->base[1] != 0)
		return;
	note(t, s->driver.timed_out);
	streak(b, s, t, HF_HEALTH_CODE_UNRESPONSIVE, (int[2]){3, 1});
}

/* After a boot or a restart of the driver, the fabric manager takes a while to register all GPUs. */
#define FABRIC_PATIENCE (5 * HF_MINUTE)

static const char *name_fabric_state(uint32_t state)
{
	static const char *const names[] = {"not supported", "not started", "in progress",
					    "completed"};

	return state < HF_ARRAY_LEN(names) ? names[state] : "unknown";
}

/* The track: base[0] is whether GPUs wait, since that is since when, base[2] whether it is a fault already. */
static void judge_fabric(struct hf_health_brain *b, const struct hf_health_sample *s,
			 struct hf_health_track *t)
{
	uint32_t waiting = s->driver.fabric_waiting;
	char line[128];
	hf_time span;

	if (s->driver.fabric_asked == 0 && s->driver.fabric_none == 0)
		return;
	span = lasting(t, waiting > 0, s->at);
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

/* The other two are said outright. */
static void driver(struct hf_health_brain *b, const struct hf_health_sample *s,
		   struct hf_health_track *t)
{
	/* What it missed is nobody's any more; that the driver is well others have to say. */
	if (s->driver.aside) {
		t->base[1] &= ~(UINT64_C(1) << s->source);
		return;
	}
	answers(b, s, t);
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

/* A minute without, and a minute with: plugins restart, and so does the kubelet. */
static void plugin(struct hf_health_brain *b, const struct hf_health_sample *s,
		   struct hf_health_track *t)
{
	int state = s->plugin.unreachable ? 1 : s->plugin.resource_gone ? 2 : 0;
	hf_time span = lasting(t, state, s->at);

	if (state != 0 && span >= HF_MINUTE) {
		t->firing = true;
		hf_health_find(b, s, state, "");
	} else if (state == 0 && t->firing && span >= HF_MINUTE) {
		t->firing = false;
		hf_health_clear(b, s, 0);
	}
}

static void amd(struct hf_health_brain *b, const struct hf_health_sample *s,
		struct hf_health_track *t)
{
	/* The sum over many blocks, of which one may begin anew: less than before says nothing. */
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
	note(t, s->amd.throttle_percent >= 20);
	/* Ten minutes of it, at a measurement each half minute. */
	streak(b, s, t, HF_HEALTH_CODE_AMD_SLOW, (int[2]){20, 20});
}

static void straggler(struct hf_health_brain *b, const struct hf_health_sample *s,
		      struct hf_health_track *t)
{
	note(t, s->straggler.slow);
	/* The verdict took two windows to find; two clean ones end it. */
	streak(b, s, t, HF_HEALTH_CODE_SLOW, (int[2]){1, 2});
}

/* ---- all of them -------------------------------------------------------------------------------------------- */

static void judge(struct hf_health_brain *b, const struct hf_health_sample *s,
		  struct hf_health_track *t, const struct peers *peers)
{
	switch (s->detector) {
	case HF_HEALTH_RECOVERY: recovery(b, s, t); break;
	case HF_HEALTH_BUSLOST: bus(b, s, t); break;
	case HF_HEALTH_ECC: ecc(b, s, t); break;
	case HF_HEALTH_THROTTLE: throttle(b, s, t); break;
	case HF_HEALTH_CLOCK: clock_rate(b, s, t, peers); break;
	case HF_HEALTH_PCIE: pcie(b, s, t); break;
	case HF_HEALTH_REPLAY: replay(b, s, t); break;
	case HF_HEALTH_COUNT: counts(b, s, t); break;
	case HF_HEALTH_NVLINK: nvlink(b, s, t); break;
	case HF_HEALTH_IB: hf_health_judge_port(b, s, t); break;
	case HF_HEALTH_DRIVER: driver(b, s, t); break;
	case HF_HEALTH_PLUGIN: plugin(b, s, t); break;
	case HF_HEALTH_AMD: amd(b, s, t); break;
	case HF_HEALTH_STRAGGLER: straggler(b, s, t); break;
	default: break;
	}
}

static enum hf_health_kind kind_of(enum hf_health_detector detector)
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
		.free = clocks_of(b, CHOSEN_BITS),
		.working = clocks_of(b, CHOSEN_BITS & ~POWER_BIT),
	};

	for (size_t i = 0; i < b->input->samples_len; i++) {
		struct hf_health_sample s = b->input->samples[i];
		enum hf_health_kind kind = kind_of(s.detector);
		struct hf_health_device *d;

		if (!s.supported)
			continue;
		if (s.at == HF_TIME_NONE || s.at > b->now)
			s.at = b->now;
		d = hf_health_device_get(b, kind == HF_HEALTH_NODE ? "" : s.device, kind);
		/* What says that it is about a device but names none is about nothing. */
		if (!d || d->kind != kind)
			continue;
		memcpy(s.device, d->id, sizeof(s.device));
		b->changed = true;
		hf_health_seen(b, d);
		judge(b, &s, &d->tracks[s.detector], &peers);
	}
}
