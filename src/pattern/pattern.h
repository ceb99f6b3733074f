/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PATTERN_PATTERN_H
#define HF_PATTERN_PATTERN_H

#include "base/error.h"
#include "health/beat.h"

HF_BEGIN_DECLS

/*
 * Reads training steps from the output of a program that does not report them. It knows the lines of
 * well-known trainers. Instead of these, a regular expression of the user (PCRE2) finds the step.
 *
 * Expressions are compiled with limits: a match that exceeds them fails with HF_E_TOO_LARGE after less
 * than a millisecond, whatever the expression and the line are.
 */
#define HF_PATTERN_BYTES_MAX 1024      /* of an expression */
#define HF_PATTERN_LINE_BYTES_MAX 2048 /* of a line; the rest is not looked at */

struct hf_pattern;

/*
 * Compile the expression. Its group "step", else its first group, is the step; the groups "total", "loss"
 * and "rate" (steps a second) may be there. NULL: the built-in lines of tqdm, Hugging Face Trainer,
 * Lightning, Megatron and NeMo.
 * HF_E_INVALID: it is no expression (the text has the place), or it has no group.
 */
int hf_pattern_create(const char *regex, struct hf_pattern **ret_pattern, struct hf_error *err)
	HF_MUST_CHECK;
struct hf_pattern *hf_pattern_destroy(struct hf_pattern *pattern); /* NULL is fine */

/* What is remembered of a process from line to line. It starts with zeros. */
struct hf_pattern_rank {
	/* A progress bar without a text: its length, its last step, and the number of complete bars before it. */
	uint64_t bar_total, bar_step, laps;
	/* A line of Hugging Face Trainer has come: its first bar is the bar of the training. */
	bool locked;
	uint64_t step, total;
	char loss[HF_BEAT_LOSS_MAX];
};

struct hf_pattern_step {
	struct hf_beat beat;
	double per_second; /* steps a second, if the line says it; else 0 */
};

enum hf_pattern_kind {
	HF_PATTERN_OTHER, /* the line is not of a known kind */
	HF_PATTERN_BAR,   /* a progress line without a step of the training */
	HF_PATTERN_STEP,  /* ret_step is set */
};

/* Read one line, without its newline. Returns an enum hf_pattern_kind, or HF_E_TOO_LARGE if the match was cut off at
 * the limits. */
int hf_pattern_read(const struct hf_pattern *pattern, struct hf_pattern_rank *rank,
		    const char *line, size_t len, struct hf_pattern_step *ret_step,
		    struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
