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
 * What is finer than a thousandth is rounded up; what does not fit is capped
 * at the largest value, as upstream caps it.  HF_E_INVALID for what is no quantity.
 */
int hf_quantity_parse_milli(const char *text, int64_t *ret_milli, struct hf_error *err)
	HF_MUST_CHECK;

HF_END_DECLS

#endif
