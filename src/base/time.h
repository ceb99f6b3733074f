/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_TIME_H
#define HF_BASE_TIME_H

#include "base/compiler.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * Points in time are nanoseconds since 1970-01-01T00:00:00Z, spans are
 * nanoseconds too.  Nothing in this header reads a clock: a clock value is an
 * argument wherever a decision needs one (loop/loop.h has the clocks).
 */
typedef int64_t hf_time;

#define HF_TIME_NONE INT64_MIN /* "not set"; never a value of arithmetic */
#define HF_TIME_NEVER INT64_MAX
#define HF_US ((hf_time)1000)
#define HF_MS ((hf_time)1000000)
#define HF_SECOND ((hf_time)1000000000)
#define HF_MINUTE (60 * HF_SECOND)
#define HF_HOUR (60 * HF_MINUTE)
#define HF_DAY (24 * HF_HOUR)

#define HF_TIME_TEXT_MAX 36 /* bytes for any text below, with the NUL */

/* RFC 3339 as Kubernetes writes metav1.Time: seconds, "Z".  A fraction is cut, toward
 * the past.  HF_TIME_NONE gives "", here and in the two below. */
void hf_time_format(hf_time t, char ret_text[HF_TIME_TEXT_MAX]);
/* With three digits of fraction: log lines. */
void hf_time_format_milli(hf_time t, char ret_text[HF_TIME_TEXT_MAX]);
/* As metav1.MicroTime: six digits of fraction. */
void hf_time_format_micro(hf_time t, char ret_text[HF_TIME_TEXT_MAX]);
/* RFC 3339 with any offset and up to nine digits of fraction; years 1678 to 2261.
 * A fraction beyond nine digits is cut.  HF_E_INVALID else. */
int hf_time_parse(const char *text, hf_time *ret_time, struct hf_error *err) HF_MUST_CHECK;

/* A span for people, as kubectl prints ages: "12s", "3m18s", "2d4h"; "<unknown>" for
 * HF_TIME_NONE, "<invalid>" for two seconds or more below zero. */
void hf_span_format(hf_time span, char ret_text[HF_TIME_TEXT_MAX]);
/* A whole number of seconds ("90"), or what Go's time.ParseDuration reads: numbers
 * with units ns us ms s m h one behind the other, fractions too ("1m30s", "1.5h").
 * What is finer than a nanosecond is cut.  Signs are refused: no span here may be
 * negative.  HF_E_INVALID also for what passes 292 years. */
int hf_span_parse(const char *text, hf_time *ret_span, struct hf_error *err) HF_MUST_CHECK;

/* a + b that stops at HF_TIME_NEVER (or just above HF_TIME_NONE) instead of
 * overflowing.  NONE with anything is NONE, else NEVER with anything is NEVER. */
hf_time hf_time_add(hf_time a, hf_time b);
/* Whole seconds, rounded toward minus infinity: what a metav1.Time keeps of t.
 * NEVER and NONE stay. */
hf_time hf_time_floor_second(hf_time t);

HF_END_DECLS

#endif
