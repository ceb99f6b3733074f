/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Formats and parses the report of a training process.
 * Invariant: a wrong value is left out; a wrong rank, a wrong fence or a repeated key makes the whole report void.
 */
#include "health/beat.h"

#include "base/ascii.h"
#include "base/str.h"
#include "health/pairs_internal.h"

#include <inttypes.h>
#include <string.h>

#define KEY_MAX 16
#define STEP_DIGITS 18 /* any number with this many digits fits 63 bits */
#define US_DIGITS 15

enum key {
	STEP,
	TOTAL,
	OWN,
	WAIT,
	LOSS,
	PHASE,
	RANK,
	GROUP,
	ATTEMPT,
	FENCE,
	CAN_SAVE,
	SAVED,
	KEYS
};

/* A bit beside those of the keys that were found: the group is wrong. */
#define GROUP_UNKNOWN (1u << KEYS)

static const char *const names[KEYS] = {
	[STEP] = "step",       [TOTAL] = "total",   [OWN] = "own_us",        [WAIT] = "wait_us",
	[LOSS] = "loss",       [PHASE] = "phase",   [RANK] = "rank",         [GROUP] = "group",
	[ATTEMPT] = "attempt", [FENCE] = "fence_s", [CAN_SAVE] = "can_save", [SAVED] = "saved",
};

static bool is_over(const struct hf_scan *value)
{
	return hf_scan_left(value) == 0;
}

static bool take_small(struct hf_scan *value, uint64_t max, uint32_t *ret_number)
{
	uint64_t number;

	if (!hf_pairs_take_number(value, 9, max, &number))
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

static void copy_word(const struct hf_scan *value, char *ret_text)
{
	memcpy(ret_text, value->at, hf_scan_left(value));
	ret_text[hf_scan_left(value)] = '\0';
}

/* Skips digits and at most one decimal point. Returns false if no digit was found. */
static bool skip_decimal(struct hf_scan *s)
{
	size_t digits = 0;

	for (int points = 0; s->at < s->end; s->at++) {
		if (*s->at == '.' && points == 0)
			points++;
		else if (hf_ascii_is_digit(*s->at))
			digits++;
		else
			break;
	}
	return digits > 0;
}

/* Copies the loss as text, since it is only shown. */
static bool take_loss(struct hf_scan *value, char ret_loss[HF_BEAT_LOSS_MAX])
{
	struct hf_scan s = *value;
	uint64_t exponent;

	if (hf_scan_left(value) >= HF_BEAT_LOSS_MAX)
		return false;
	(void)(hf_scan_char(&s, '-') || hf_scan_char(&s, '+'));
	if (!hf_scan_text(&s, "nan") && !hf_scan_text(&s, "inf")) {
		if (!skip_decimal(&s))
			return false;
		if (hf_scan_char(&s, 'e') || hf_scan_char(&s, 'E')) {
			(void)(hf_scan_char(&s, '-') || hf_scan_char(&s, '+'));
			if (!hf_scan_decimal(&s, 4, &exponent))
				return false;
		}
	}
	if (!is_over(&s))
		return false;
	copy_word(value, ret_loss);
	return true;
}

static bool take_phase(const struct hf_scan *value, enum hf_health_phase *ret_phase)
{
	struct hf_scan s = *value;

	if (hf_scan_text(&s, "training"))
		*ret_phase = HF_HEALTH_TRAINING;
	else if (hf_scan_text(&s, "other"))
		*ret_phase = HF_HEALTH_OTHER_PHASE;
	else
		return false;
	return is_over(&s);
}

static bool take_group(struct hf_scan *value, char ret_group[HF_BEAT_GROUP_MAX])
{
	struct hf_scan word;

	if (hf_scan_left(value) >= HF_BEAT_GROUP_MAX || !hf_scan_word(value, "-_.", &word) ||
	    !is_over(value))
		return false;
	copy_word(&word, ret_group);
	return true;
}

static bool take_bit(struct hf_scan *value, bool *ret_bit)
{
	uint32_t number;

	if (!take_small(value, 1, &number))
		return false;
	*ret_bit = number == 1;
	return true;
}

static bool take_rank(struct hf_scan *value, int32_t *ret_rank)
{
	uint32_t number;

	if (!take_small(value, HF_HEALTH_RANKS_MAX - 1, &number))
		return false;
	*ret_rank = (int32_t)number;
	return true;
}

static bool take_value(struct hf_beat *beat, enum key key, struct hf_scan *value)
{
	switch (key) {
	case STEP:
		beat->has_step = hf_pairs_take_number(value, STEP_DIGITS, UINT64_MAX, &beat->step);
		return beat->has_step;
	case TOTAL: return hf_pairs_take_number(value, STEP_DIGITS, UINT64_MAX, &beat->total);
	case OWN:
		beat->has_own = hf_pairs_take_number(value, US_DIGITS, UINT64_MAX, &beat->own_us);
		return beat->has_own;
	case WAIT: return hf_pairs_take_number(value, US_DIGITS, UINT64_MAX, &beat->wait_us);
	case LOSS: return take_loss(value, beat->loss);
	case PHASE: return take_phase(value, &beat->phase);
	case GROUP: return take_group(value, beat->group);
	case ATTEMPT: return hf_pairs_take_number(value, STEP_DIGITS, UINT64_MAX, &beat->attempt);
	case FENCE:
		return take_small(value, HF_BEAT_FENCE_MAX, &beat->fence_s) && beat->fence_s > 0;
	case CAN_SAVE: return take_bit(value, &beat->can_save);
	case SAVED:
		beat->has_saved =
			hf_pairs_take_number(value, STEP_DIGITS, UINT64_MAX, &beat->saved);
		return beat->has_saved;
	case RANK: return take_rank(value, &beat->rank);
	default: return false;
	}
}

/* Leaves out a value without sense, and the values that depend on it.  False: the whole report is void. */
static bool leave_out(struct hf_beat *beat, enum key key, uint32_t *seen)
{
	if (key == PHASE)
		beat->phase = HF_HEALTH_OTHER_PHASE;
	else if (key == GROUP)
		*seen |= GROUP_UNKNOWN;
	/* With a wrong rank the report would count for another rank, and a fence must not be lost. */
	return key != RANK && key != FENCE;
}

/* "KEY=VALUE" */
static bool take_pair(struct hf_beat *beat, struct hf_scan pair, uint32_t *seen)
{
	struct hf_scan name;
	int key;

	if (!hf_scan_until(&pair, "=", &name) || is_over(&name) || hf_scan_left(&name) > KEY_MAX)
		return false;
	key = hf_pairs_find_key(names, KEYS, &name);
	if (key < 0)
		return true;
	if (*seen & 1u << key)
		return false;
	*seen |= 1u << key;
	return take_value(beat, (enum key)key, &pair) || leave_out(beat, (enum key)key, seen);
}

static bool is_printable(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] < ' ' || bytes[i] > '~')
			return false;
	return true;
}

bool hf_beat_parse(const char *bytes, size_t len, struct hf_beat *ret_beat)
{
	struct hf_beat beat = {.rank = -1};
	struct hf_scan s;
	uint32_t seen = 0;

	if (len > 0 && len < HF_BEAT_BYTES_MAX && bytes[len - 1] == '\n')
		len--;
	if (len >= HF_BEAT_BYTES_MAX || !is_printable(bytes, len))
		return false;
	s = hf_scan_of(bytes, len);
	if (!hf_scan_text(&s, HF_BEAT_VERSION))
		return false;
	for (int keys = 0; !is_over(&s); keys++) {
		struct hf_scan pair;

		if (keys == HF_BEAT_KEYS_MAX || !hf_scan_char(&s, ' '))
			return false;
		pair = s;
		while (s.at < s.end && *s.at != ' ')
			s.at++;
		pair.end = s.at;
		if (!take_pair(&beat, pair, &seen))
			return false;
	}
	/* If the group is wrong, the rank's own work cannot be compared with that of others, so it is left out. */
	if ((seen & GROUP_UNKNOWN) != 0) {
		beat.has_own = false;
		beat.own_us = 0;
	}
	*ret_beat = beat;
	return true;
}

/* ---- writing --------------------------------------------------------------------------------- */

size_t hf_beat_format(const struct hf_beat *beat, char *ret_text)
{
	struct hf_pairs line = {.text = ret_text, .size = HF_BEAT_BYTES_MAX};

	hf_pairs_add(&line, "%s", HF_BEAT_VERSION);
	if (beat->has_step)
		hf_pairs_add(&line, " step=%" PRIu64, beat->step);
	if (beat->total > 0)
		hf_pairs_add(&line, " total=%" PRIu64, beat->total);
	if (beat->has_own)
		hf_pairs_add(&line, " own_us=%" PRIu64, beat->own_us);
	if (beat->wait_us > 0)
		hf_pairs_add(&line, " wait_us=%" PRIu64, beat->wait_us);
	if (beat->loss[0] != '\0')
		hf_pairs_add(&line, " loss=%s", beat->loss);
	if (beat->phase != HF_HEALTH_TRAINING)
		hf_pairs_add(&line, " phase=other");
	if (beat->rank >= 0)
		hf_pairs_add(&line, " rank=%" PRId32, beat->rank);
	if (beat->group[0] != '\0')
		hf_pairs_add(&line, " group=%s", beat->group);
	if (beat->attempt > 0)
		hf_pairs_add(&line, " attempt=%" PRIu64, beat->attempt);
	if (beat->fence_s > 0)
		hf_pairs_add(&line, " fence_s=%" PRIu32, beat->fence_s);
	if (beat->can_save)
		hf_pairs_add(&line, " can_save=1");
	if (beat->has_saved)
		hf_pairs_add(&line, " saved=%" PRIu64, beat->saved);
	return line.len;
}
