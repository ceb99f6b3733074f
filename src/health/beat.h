/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_BEAT_H
#define HF_HEALTH_BEAT_H

#include "health/straggle.h"

HF_BEGIN_DECLS

/*
 * The report of a training process, in one datagram of text:
 *
 *     holdfast/1 step=120 total=200 own_us=31000 wait_us=1200 loss=0.0972 phase=training rank=3
 *
 * The version, then KEY=VALUE by single blanks; a line feed at the end is allowed.  A report without a step
 * is a sign of life.  Unknown keys are skipped, so a newer program may send more.  A wrong value is left out:
 * with a wrong group own_us is left out too, and a wrong phase is "other".  A wrong rank or fence_s, or a
 * repeated key, makes the whole datagram void.  The kernel tells the receiver which process sent it.
 *
 *   step      the last step that is done, from 1
 *   total     how many there will be
 *   own_us    microseconds of the step that this rank worked, before it waited for the others
 *   wait_us   ... and waited
 *   loss      a number as people write it: digits, sign, point, exponent; or nan, inf, -inf
 *   phase     training (the default), or other: checkpoint, evaluation, compilation
 *   rank      of all ranks of the job, where a pod has several; "group" compares with its like only
 *   attempt   a number that grows with each start of the process (holdfast exec adds its own start to
 *             what is below 1,000)
 *   can_save  1: the process saves when holdfast exec asks it, by a datagram "holdfast/1 save=1" to the
 *             socket that sent the report
 *   saved     the step that the process has saved last
 *   fence_s   holdfast exec ends the process, or does not start it, when the node has had no contact
 *             with the control plane for so many seconds; only holdfast exec sends it
 */
#define HF_BEAT_VERSION "holdfast/1"
#define HF_BEAT_BYTES_MAX 512
#define HF_BEAT_KEYS_MAX 32
#define HF_BEAT_LOSS_MAX 25     /* the longest of a double, and the NUL */
#define HF_BEAT_FENCE_MAX 86400 /* seconds */
#define HF_BEAT_GROUP_MAX 33    /* letters, digits, '-', '_', '.', and the NUL */

struct hf_beat {
	bool has_step;
	uint64_t step;
	uint64_t total; /* 0: not said */
	uint64_t own_us, wait_us;
	bool has_own;
	char loss[HF_BEAT_LOSS_MAX]; /* "": not said */
	char group[HF_BEAT_GROUP_MAX];
	enum hf_health_phase phase;
	int32_t rank;     /* -1: not said */
	uint64_t attempt; /* 0: not said */
	uint32_t fence_s; /* 0: no fence */
	bool can_save;
	bool has_saved;
	uint64_t saved;
};

/* False: the bytes are no report.  They need no NUL. */
bool hf_beat_parse(const char *bytes, size_t len, struct hf_beat *ret_beat);
/* Into a buffer of HF_BEAT_BYTES_MAX bytes; returns its length without the NUL.  What is written
 * can be parsed, and gives the same. */
size_t hf_beat_format(const struct hf_beat *beat, char *ret_text);

HF_END_DECLS

#endif
