/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Reads steps from lines of output: with one expression of the user, or with those of trainers.c in
 * turn. */
#include "pattern/pattern.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"
#include "pattern/trainers_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 15

struct hf_pattern {
	struct hf_regex *own; /* the expression of the user; NULL: those of trainers.c are used */
	struct hf_regex *trainers[HF_TRAINERS_LEN];
};

bool hf_pattern_number(const struct hf_regex_part *part, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (part->at == NULL || part->len == 0 || part->len > DIGITS_MAX)
		return false;
	for (size_t i = 0; i < part->len; i++) {
		if (!hf_ascii_is_digit(part->at[i]))
			return false;
		number = number * 10 + (uint64_t)(part->at[i] - '0');
	}
	*ret_number = number;
	return true;
}

double hf_pattern_rate(const struct hf_regex_part *part)
{
	char text[32], *end;
	double rate;

	if (part->at == NULL || part->len == 0 || part->len >= sizeof(text) ||
	    !hf_ascii_is_digit(part->at[0]))
		return 0;
	memcpy(text, part->at, part->len);
	text[part->len] = '\0';
	rate = strtod(text, &end);
	return *end == '\0' && rate > 0 && rate < 1e9 ? rate : 0;
}

/* A loss must have the form that a report of steps allows, so the parser of reports checks it. */
void hf_pattern_set_loss(char ret_loss[HF_BEAT_LOSS_MAX], const struct hf_regex_part *part)
{
	char text[HF_BEAT_BYTES_MAX];
	struct hf_beat beat;
	int len;

	if (part->at == NULL || part->len == 0 || part->len >= HF_BEAT_LOSS_MAX)
		return;
	len = snprintf(text, sizeof(text), "%s loss=%.*s", HF_BEAT_VERSION, (int)part->len,
		       part->at);
	if (hf_beat_parse(text, (size_t)len, &beat) && beat.loss[0] != '\0')
		memcpy(ret_loss, beat.loss, HF_BEAT_LOSS_MAX);
}

int hf_pattern_create(const char *regex, struct hf_pattern **ret_pattern, struct hf_error *err)
{
	struct hf_pattern *pattern;
	int rc = 0;

	if (regex != NULL && strlen(regex) > HF_PATTERN_BYTES_MAX)
		return hf_error_set(err, HF_E_INVALID, "the expression has more than %d characters",
				    HF_PATTERN_BYTES_MAX);
	pattern = hf_xcalloc(1, sizeof(*pattern));
	if (regex != NULL)
		rc = hf_regex_create(regex, HF_REGEX_NEEDS_STEP, &pattern->own, err);
	for (size_t i = 0; rc == 0 && regex == NULL && i < HF_TRAINERS_LEN; i++)
		rc = hf_regex_create(hf_trainers[i].regex, HF_REGEX_NEEDS_STEP,
				     &pattern->trainers[i], err);
	if (rc != 0) {
		hf_pattern_destroy(pattern);
		return rc;
	}
	*ret_pattern = pattern;
	return 0;
}

struct hf_pattern *hf_pattern_destroy(struct hf_pattern *pattern)
{
	if (pattern == NULL)
		return NULL;
	hf_regex_destroy(pattern->own);
	for (size_t i = 0; i < HF_TRAINERS_LEN; i++)
		hf_regex_destroy(pattern->trainers[i]);
	free(pattern);
	return NULL;
}

static enum hf_pattern_kind take_own(const struct hf_regex_match *match,
				     struct hf_pattern_step *ret_step)
{
	*ret_step = (struct hf_pattern_step){.beat = {.rank = -1}};
	if (!hf_pattern_number(&match->groups[HF_REGEX_STEP], &ret_step->beat.step))
		return HF_PATTERN_OTHER;
	ret_step->beat.has_step = true;
	(void)hf_pattern_number(&match->groups[HF_REGEX_TOTAL], &ret_step->beat.total);
	hf_pattern_set_loss(ret_step->beat.loss, &match->groups[HF_REGEX_LOSS]);
	ret_step->per_second = hf_pattern_rate(&match->groups[HF_REGEX_RATE]);
	return HF_PATTERN_STEP;
}

int hf_pattern_read(const struct hf_pattern *pattern, struct hf_pattern_rank *rank,
		    const char *line, size_t len, struct hf_pattern_step *ret_step,
		    struct hf_error *err)
{
	struct hf_regex_match match;
	int rc;

	len = len < HF_PATTERN_LINE_BYTES_MAX ? len : HF_PATTERN_LINE_BYTES_MAX;
	if (pattern->own != NULL) {
		rc = hf_regex_match(pattern->own, line, len, &match, err);
		return rc <= 0 ? rc : (int)take_own(&match, ret_step);
	}
	for (size_t i = 0; i < HF_TRAINERS_LEN; i++) {
		const struct hf_trainer *trainer = &hf_trainers[i];

		if (memmem(line, len, trainer->needs, strlen(trainer->needs)) == NULL)
			continue;
		rc = hf_regex_match(pattern->trainers[i], line, len, &match, err);
		if (rc != 0)
			return rc < 0 ? rc : (int)trainer->take(rank, &match, ret_step);
	}
	return HF_PATTERN_OTHER;
}
