/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_SAMPLES_H
#define HF_TESTS_HARNESS_SAMPLES_H

/* Reads what a probe of the agent reports, on a virtual loop. */

#include "probes/intake.h"

#include <string.h>

/* Runs the loop for `span`, and returns what the probe reported in that time. */
static inline void samples_pass(struct hf_loop *loop, struct hf_intake *intake, hf_time span,
				struct hf_health_input *ret_input)
{
	hf_intake_taken(intake);
	hf_loop_run_until(loop, hf_loop_mono(loop) + span);
	memset(ret_input, 0, sizeof(*ret_input));
	hf_intake_take(intake, ret_input);
}

/* Returns the last sample of the detector, and the number of its samples; NULL: there is none. */
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
