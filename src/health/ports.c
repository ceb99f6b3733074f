/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Judges ports of InfiniBand and RoCE.  A cable that is pulled, a switch that restarts and a link that flaps look
 * alike at first: the length of an outage and the number of outages tell them apart.
 */
#include "health/brain_internal.h"

/* A shorter outage is a retraining of the link; GPUd uses the same limit. */
#define FLAP_DOWN_MIN (25 * HF_SECOND)
#define FLAP_WINDOW (12 * HF_HOUR)
/* One outage of this length is a fault: NVIDIA's validation calls it critical. */
#define DOWN_MIN (30 * HF_SECOND)
#define WELL_MIN (10 * HF_MINUTE)
#define MISSING_POLLS 3
/* Rates are counted over a minute: over a shorter span one retraining of a link would exceed them. */
#define RATE_SPAN HF_MINUTE
#define RECOVERIES_MAX 5
#define RESTARTS_MAX 600
/* The limit of symbol errors is ten a second, over ten seconds at least. */
#define SYMBOLS_SPAN (10 * HF_SECOND)

/* The numbers of a port's track. */
enum {
	DOWNED,           /* link_downed */
	FATAL,            /* counters that must not rise */
	SYMBOLS,          /* symbol errors counted at the beginning of the hour */
	HOUR,             /* the begin of the hour */
	RECOVERED,        /* recoveries counted at the beginning of the minute (track.at) */
	RESTARTS,         /* likewise */
	FLAP,             /* the ends of the last two outages, FLAP and FLAP + 1 */
	MARKS = FLAP + 2, /* bits: */
};
/* FLAPS_ON: the port flapped too often, until it is well.  HIDDEN: the port is in another network namespace. */
#define FLAPS_ON UINT64_C(1)
#define HIDDEN UINT64_C(2)

/* Adds the end of an outage.  True: it is the third within the window. */
static bool add_flap(struct hf_health_track *t, hf_time at)
{
	hf_time first = (hf_time)t->base[FLAP];
	bool third = t->base[FLAP] != 0 && at - first <= FLAP_WINDOW;

	t->base[FLAP] = t->base[FLAP + 1];
	t->base[FLAP + 1] = (uint64_t)at;
	return third;
}

/* Adds evidence of a fault with this code.  In the track, `good` is whether the port was up, and `bad` counts the
 * measurements that did not find the port. */
static void fire_fault(struct hf_health_brain *b, const struct hf_health_sample *s,
		       struct hf_health_track *t, int32_t code)
{
	t->firing = true;
	hf_health_find(b, s, code, "");
}

static void judge_state(struct hf_health_brain *b, const struct hf_health_sample *s,
			struct hf_health_track *t)
{
	bool was_up = t->good;
	hf_time span = s->at - t->since;

	if (was_up != s->ib.up) {
		if (s->ib.up && span >= FLAP_DOWN_MIN && add_flap(t, s->at))
			t->base[MARKS] |= FLAPS_ON;
		t->good = s->ib.up;
		t->since = s->at;
		span = 0;
	}
	if (t->base[MARKS] & FLAPS_ON)
		fire_fault(b, s, t, HF_HEALTH_CODE_PORT_FLAP);
	if (!s->ib.up && span >= DOWN_MIN)
		fire_fault(b, s, t, HF_HEALTH_CODE_PORT_DOWN);
}

static uint64_t find_rise(uint64_t now, uint64_t before)
{
	/* A counter that fell was cleared. */
	return now > before ? now - before : 0;
}

/* Whether the rate is above the limit, without a division: rise × span of the limit > limit × span that passed. */
static bool is_faster(uint64_t rose, hf_time span, uint64_t limit, hf_time per)
{
	return span > 0 && rose > 0 && (double)rose * (double)per > (double)limit * (double)span;
}

static void begin_rates(const struct hf_health_sample *s, struct hf_health_track *t)
{
	t->base[RECOVERED] = s->ib.recoveries;
	t->base[RESTARTS] = s->ib.slow_restarts;
	t->at = s->at;
}

/* Whether a counter rose by more than its limit for a minute.  Within a minute the number counts, over a longer
 * span the rate. */
static bool is_too_often(uint64_t rose, hf_time span, uint64_t limit)
{
	return is_faster(rose, span < RATE_SPAN ? RATE_SPAN : span, limit, RATE_SPAN);
}

/* Judges the counters.  True: a counter shows that the port is not well. */
static bool judge_counters(struct hf_health_brain *b, const struct hf_health_sample *s,
			   struct hf_health_track *t)
{
	hf_time span = s->at - t->at;
	uint64_t symbols = find_rise(s->ib.symbol_errors, t->base[SYMBOLS]);
	hf_time hour = s->at - (hf_time)t->base[HOUR];
	bool slow, bad = false;

	if (s->ib.link_downed > t->base[DOWNED]) {
		hf_health_find(b, s, HF_HEALTH_CODE_PORT_BLINK, "");
		bad = true;
	}
	slow = is_too_often(find_rise(s->ib.recoveries, t->base[RECOVERED]), span,
			    RECOVERIES_MAX) ||
	       is_too_often(find_rise(s->ib.slow_restarts, t->base[RESTARTS]), span,
			    RESTARTS_MAX) ||
	       (hour >= SYMBOLS_SPAN && is_faster(symbols, hour, 10, HF_SECOND));
	if (slow)
		fire_fault(b, s, t, HF_HEALTH_CODE_PORT_SLOW);
	/* A rise counts once. */
	if (slow || span >= RATE_SPAN)
		begin_rates(s, t);
	if (s->ib.fatal_errors > t->base[FATAL] || symbols > 120) {
		fire_fault(b, s, t, HF_HEALTH_CODE_PORT_ERRORS);
		bad = true;
	}
	return slow || bad;
}

static void remember_counters(const struct hf_health_sample *s, struct hf_health_track *t)
{
	t->base[DOWNED] = s->ib.link_downed;
	t->base[FATAL] = s->ib.fatal_errors;
	/* Counters that fell were cleared. */
	if (!t->primed || s->ib.recoveries < t->base[RECOVERED] ||
	    s->ib.slow_restarts < t->base[RESTARTS])
		begin_rates(s, t);
	if (!t->primed || s->at - (hf_time)t->base[HOUR] >= HF_HOUR ||
	    s->ib.symbol_errors < t->base[SYMBOLS] ||
	    s->ib.symbol_errors - t->base[SYMBOLS] > 120) {
		t->base[SYMBOLS] = s->ib.symbol_errors;
		t->base[HOUR] = (uint64_t)s->at;
	}
}

bool hf_health_port_is_hidden(const struct hf_health_device *d)
{
	return d->kind == HF_HEALTH_PORT && d->tracks[HF_HEALTH_IB].base[MARKS] & HIDDEN;
}

/* The port is in another network namespace, for instance of a pod.  Its counters rise without being seen, so a
 * later measurement begins with new values. */
static void hide_port(struct hf_health_track *t)
{
	t->base[MARKS] |= HIDDEN;
	t->bad = 0;
	t->primed = false;
}

void hf_health_judge_port(struct hf_health_brain *b, const struct hf_health_sample *s,
			  struct hf_health_track *t)
{
	bool bad = false;

	if (s->ib.hidden) {
		hide_port(t);
		return;
	}
	if (s->ib.missing) {
		if (++t->bad >= MISSING_POLLS) {
			t->bad = MISSING_POLLS;
			fire_fault(b, s, t, HF_HEALTH_CODE_PORT_MISSING);
		}
		return;
	}
	t->bad = 0;
	t->base[MARKS] &= ~HIDDEN;
	if (t->primed) {
		judge_state(b, s, t);
		bad = judge_counters(b, s, t);
	} else {
		/* The errors in the first values of the counters are from before the first measurement. */
		t->good = s->ib.up;
		t->since = s->at;
	}
	remember_counters(s, t);
	t->primed = true;
	/* A fault ends after ten minutes in which the port was up and no counter was bad. */
	if (bad && t->good)
		t->since = s->at;
	if (t->firing && t->good && s->at - t->since >= WELL_MIN) {
		t->firing = false;
		t->base[MARKS] = 0;
		hf_health_clear(b, s, 0);
	}
}
