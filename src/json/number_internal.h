/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_NUMBER_INTERNAL_H
#define HF_JSON_NUMBER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

/* bytes: sign, 17 digits, point, up to 21 places before or 6 zeros after it, "e-324", NUL */
#define HF_JSON_REAL_TEXT_MAX 48

/* Prints the shortest text that reads back as d, in the layout of Go's encoding/json: without an
 * exponent from 1e-6 to 1e21. Unlike Go's, the text always has a point or an exponent, so that a
 * real stays a real. */
void hf_json_format_real(double d, char ret_text[HF_JSON_REAL_TEXT_MAX]);

/* Prints d as Go's strconv does with format 'g': an exponent of two digits from 1e6 on and below
 * 1e-4, and no ".0". kubectl prints reals of YAML in this form. */
void hf_json_format_real_short(double d, char ret_text[HF_JSON_REAL_TEXT_MAX]);

/* True if d is a whole number that fits into int64_t. */
bool hf_json_whole(double d, int64_t *ret_integer);

#endif
