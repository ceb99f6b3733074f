/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_SAMPLES_H
#define HF_TESTS_HARNESS_SAMPLES_H

/* What a probe of the agent puts into the intake on a virtual loop. */

#include "probes/intake.h"

#include <string.h>

/* Found in that time, and nothing from before. */
static inline void samples_pass(struct hf_loop *loop, struct hf_intake *intake, hf_time span,
				struct hf_health_input *ret_input)
{
	hf_intake_taken(intake);
	hf_loop_run_until(loop, hf_loop_mono(loop) + span);
	memset(ret_input, 0, sizeof(*ret_input));
	hf_intake_take(intake, ret_input);
}

/* The last one of that detector; NULL: there is none. */
static inline const struct hf_health_sample *samples_last(const struct hf_health_input *input,
							  enum hf_health_detector detector,
							  size_t *ret_count)
{
	const struct hf_health_sample *found = NULL;

	*ret_count = 0;
	for (size_t i = 0; i < input->samples_len; i++)
		if (input->samples[i].detector == detector) {
			found = &input->samples[i];
			++*ret_count;
		}
	return found;
}

#endif
