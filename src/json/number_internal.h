/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_NUMBER_INTERNAL_H
#define HF_JSON_NUMBER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

/* sign, 17 digits, point, up to 21 places before or 6 zeros behind it, "e-324", NUL */
#define HF_JSON_REAL_TEXT_MAX 48

/*
 * The shortest text that reads back as d, laid out as Go's encoding/json does: plain from
 * 1e-6 up to 1e21, else with an exponent.  Unlike Go's it always has a point or an exponent,
 * so that a real stays a real.
 */
void hf_json_format_real(double d, char ret_text[HF_JSON_REAL_TEXT_MAX]);

/* As Go's strconv formats with 'g': an exponent of two digits from 1e6 up and below 1e-4, no
 * ".0".  YAML that kubectl prints has its reals so. */
void hf_json_format_real_short(double d, char ret_text[HF_JSON_REAL_TEXT_MAX]);

/* Is d a whole number that int64_t holds? */
bool hf_json_whole(double d, int64_t *ret_integer);

#endif
