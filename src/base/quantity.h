/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_QUANTITY_H
#define HF_BASE_QUANTITY_H

#include "base/compiler.h"
#include "base/error.h"

#include <stdint.h>

HF_BEGIN_DECLS

/*
 * Kubernetes quantities ("100m", "2Gi", "1e3", "0.5"), as apimachinery's
 * resource.Quantity reads them, in thousandths: "1" is 1000, "100m" is 100.
 * What is finer than a thousandth is rounded up, away from zero: who asks for a
 * little gets some.  What does not fit is capped at ±(2^63 - 1) thousandths
 * (upstream caps only some forms and wraps around for the rest).
 *
 * HF_E_INVALID, with upstream's text, for what is no quantity; for numbers without
 * a digit ("+", "."), which upstream's parser takes for 0 and the pattern of its
 * published schema refuses; and for texts of more than 256 bytes.
 */
int hf_quantity_parse_milli(const char *text, int64_t *ret_milli, struct hf_error *err)
	HF_MUST_CHECK;

HF_END_DECLS

#endif
