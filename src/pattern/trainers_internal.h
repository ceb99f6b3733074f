/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PATTERN_TRAINERS_INTERNAL_H
#define HF_PATTERN_TRAINERS_INTERNAL_H

#include "pattern/pattern.h"
#include "pattern/regex_internal.h"

HF_BEGIN_DECLS

/* The built-in lines of trainers: for each an expression, and a function that reads its groups. */
enum { HF_TRAINERS_LEN = 5 };

struct hf_trainer {
	const char *regex;
	/* a text that every line of this kind contains; searched first, because that is
	 * faster */
	const char *needs;
	enum hf_pattern_kind (*take)(struct hf_pattern_rank *rank,
				     const struct hf_regex_match *match,
				     struct hf_pattern_step *ret_step);
};

extern const struct hf_trainer hf_trainers[HF_TRAINERS_LEN];

/* Reads a number of at most 15 digits, without a sign. The whole part must be digits. */
bool hf_pattern_number(const struct hf_regex_part *part, uint64_t *ret_number);
/* Reads a rate such as "12.3". Returns 0 if the part is no positive number. */
double hf_pattern_rate(const struct hf_regex_part *part);
/* Sets the loss if the part is a number; else the loss stays. */
void hf_pattern_set_loss(char ret_loss[HF_BEAT_LOSS_MAX], const struct hf_regex_part *part);

HF_END_DECLS

#endif
