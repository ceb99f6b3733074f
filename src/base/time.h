/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_TIME_H
#define HF_BASE_TIME_H

#include "base/compiler.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

HF_BEGIN_DECLS

/* A point in time is a number of nanoseconds since 1970-01-01T00:00:00Z; a span is a number of
 * nanoseconds. No function here reads a clock: the time is an argument. loop/loop.h has the
 * clocks. */
typedef int64_t hf_time;

#define HF_TIME_NONE INT64_MIN /* "not set"; no calculation gives this value */
#define HF_TIME_NEVER INT64_MAX
#define HF_US ((hf_time)1000)
#define HF_MS ((hf_time)1000000)
#define HF_SECOND ((hf_time)1000000000)
#define HF_MINUTE (60 * HF_SECOND)
#define HF_HOUR (60 * HF_MINUTE)
#define HF_DAY (24 * HF_HOUR)

#define HF_TIME_TEXT_MAX 36 /* bytes for any text below, including the NUL */

/* RFC 3339 as Kubernetes writes metav1.Time: whole seconds and "Z". A fraction is cut, toward
 * the past. HF_TIME_NONE gives "", also in the next two functions. */
void hf_time_format(hf_time t, char ret_text[HF_TIME_TEXT_MAX]);
/* As hf_time_format, but with three fraction digits, for log lines. */
void hf_time_format_milli(hf_time t, char ret_text[HF_TIME_TEXT_MAX]);
/* With six fraction digits, as metav1.MicroTime. */
void hf_time_format_micro(hf_time t, char ret_text[HF_TIME_TEXT_MAX]);
/* Reads RFC 3339 with any offset and any number of fraction digits; digits after the ninth are
 * ignored. The years 1678 to 2261 are accepted, everything else is HF_E_INVALID. */
int hf_time_parse(const char *text, hf_time *ret_time, struct hf_error *err) HF_MUST_CHECK;

/* Prints a span as kubectl prints ages: "12s", "3m18s", "2d4h". HF_TIME_NONE gives "<unknown>";
 * a span of -2 s or less gives "<invalid>". */
void hf_span_format(hf_time span, char ret_text[HF_TIME_TEXT_MAX]);
/* Reads a whole number of seconds ("90") or a duration of Go's time.ParseDuration: numbers with
 * the units ns, us, ms, s, m, h, with fractions ("1m30s", "1.5h"). Parts finer than a nanosecond
 * are cut. HF_E_INVALID for signs, because no span here may be negative, and for more than 292
 * years. */
int hf_span_parse(const char *text, hf_time *ret_span, struct hf_error *err) HF_MUST_CHECK;

/* Returns a + b, limited to HF_TIME_NEVER and to HF_TIME_NONE + 1 instead of overflowing. If
 * either is NONE, the sum is NONE; else, if either is NEVER, the sum is NEVER. */
hf_time hf_time_add(hf_time a, hf_time b);
/* Rounds down to whole seconds, the precision of metav1.Time. NEVER and NONE do not change. */
hf_time hf_time_floor_second(hf_time t);

HF_END_DECLS

#endif
