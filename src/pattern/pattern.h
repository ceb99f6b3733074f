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
#define HF_PATTERN_BYTES_MAX 1024 /* the longest expression */
/* bytes of a line that are searched; the remaining bytes are ignored */
#define HF_PATTERN_LINE_BYTES_MAX 2048

struct hf_pattern;

/*
 * Compiles an expression of the user. The group "step" is the step; without this group, the first
 * group is. The groups "total", "loss" and "rate" (steps a second) are optional. With regex NULL
 * the pattern reads the built-in lines of tqdm, Hugging Face Trainer, Lightning, Megatron and NeMo.
 *
 * HF_E_INVALID: the text is no regular expression (the error has the place), has no group, or is
 * too long.
 */
int hf_pattern_create(const char *regex, struct hf_pattern **ret_pattern, struct hf_error *err)
	HF_MUST_CHECK;
struct hf_pattern *hf_pattern_destroy(struct hf_pattern *pattern); /* NULL is fine */

/* What the reader remembers of one process from line to line. All fields start with zero. */
struct hf_pattern_rank {
	/* The current progress bar without a text: its length, its last step, and how many complete
	 * bars of this length came before it. */
	uint64_t bar_total, bar_step, laps;
	/* A line of Hugging Face Trainer has come, so the first bar is the bar of the training. */
	bool locked;
	uint64_t step, total;
	char loss[HF_BEAT_LOSS_MAX];
};

struct hf_pattern_step {
	struct hf_beat beat;
	double per_second; /* steps a second; 0: the line does not say it */
};

enum hf_pattern_kind {
	HF_PATTERN_OTHER, /* no expression matches the line */
	HF_PATTERN_BAR,   /* a progress bar, but not of the training */
	HF_PATTERN_STEP,  /* ret_step is set */
};

/* Reads one line, without its newline. Returns an enum hf_pattern_kind, or HF_E_TOO_LARGE if the
 * match exceeded a limit. */
int hf_pattern_read(const struct hf_pattern *pattern, struct hf_pattern_rank *rank,
		    const char *line, size_t len, struct hf_pattern_step *ret_step,
		    struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
