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
 * The version, then KEY=VALUE with single blanks between; a line feed at the end is allowed.  A report without a step
 * is a sign of life.  Unknown keys are skipped, so a newer program may send more.  A wrong value is left out: with a
 * wrong group own_us is left out too, and a wrong phase counts as "other".  A wrong rank or fence_s, or a repeated
 * key, makes the whole report void.  The kernel tells the receiver which process sent it.
 *
 *   step      the last step that the rank has completed, from 1
 *   total     the number of all steps
 *   own_us    microseconds of the step in which this rank worked, before it waited for the other ranks
 *   wait_us   microseconds of the step in which this rank waited for the other ranks
 *   loss      a number as people write it: digits, sign, point, exponent; or nan, inf, -inf
 *   phase     training (the default), or other: checkpoint, evaluation, compilation
 *   rank      the rank among all ranks of the job, where a pod has several ranks
 *   group     own_us of a rank is compared only with that of ranks of the same group
 *   attempt   a number that grows with each start of the process (holdfast exec adds its own start to
 *             an attempt below 1,000)
 *   can_save  1: the process saves when holdfast exec asks it, by a datagram "holdfast/1 save=1" to the
 *             socket that sent the report
 *   saved     the last step whose state the process has saved
 *   fence_s   holdfast exec ends the process, or does not start it, when the node has had no contact
 *             with the control plane for this many seconds; only holdfast exec sends the key
 */
#define HF_BEAT_VERSION "holdfast/1"
#define HF_BEAT_BYTES_MAX 512
#define HF_BEAT_KEYS_MAX 32
#define HF_BEAT_LOSS_MAX 25     /* size of the longest text of a double, with the NUL */
#define HF_BEAT_FENCE_MAX 86400 /* seconds */
/* Size of a group's name, with the NUL; the name has letters, digits, '-', '_', '.'. */
#define HF_BEAT_GROUP_MAX 33

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

/* Parses bytes, which need no NUL.  False: they are no report. */
bool hf_beat_parse(const char *bytes, size_t len, struct hf_beat *ret_beat);
/* Formats a report into a buffer of HF_BEAT_BYTES_MAX bytes; returns the length without the NUL.  Parsing the text
 * gives the same report. */
size_t hf_beat_format(const struct hf_beat *beat, char *ret_text);

HF_END_DECLS

#endif
