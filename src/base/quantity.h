/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_QUANTITY_H
#define HF_BASE_QUANTITY_H

#include "base/compiler.h"
#include "base/error.h"

#include <stdint.h>

HF_BEGIN_DECLS

/*
 * Parses a Kubernetes quantity ("100m", "2Gi", "1e3", "0.5") as apimachinery's resource.Quantity
 * does. The result is in thousandths: "1" is 1000, "100m" is 100.
 *
 * A finer value is rounded up, away from zero, so that a small positive request is never 0. A value
 * that does not fit is capped at ±(2^63 - 1) thousandths. (Upstream caps some forms only, and wraps
 * around for the others.)
 *
 * HF_E_INVALID, with upstream's text, for a text that is not a quantity and for a text of more than
 * 256 bytes. Numbers without a digit ("+", ".") are invalid too: upstream's parser reads them as 0,
 * but the pattern in its published schema refuses them.
 */
int hf_quantity_parse_milli(const char *text, int64_t *ret_milli, struct hf_error *err)
	HF_MUST_CHECK;

/* An exact quantity, for sums that are printed again. It is exact to 1e-9; a finer value is
 * rounded up. Whole units are capped at 2^63 - 1. The form decides how the quantity is printed.
 * A sum takes the form of its first summand that is not 0, as in apimachinery. */
enum hf_quantity_form {
	HF_QUANTITY_DECIMAL,  /* "1500m", "2k" */
	HF_QUANTITY_BINARY,   /* "2Gi"; printed as decimal below 1024 */
	HF_QUANTITY_EXPONENT, /* "2e3" */
};
struct hf_quantity {
	int64_t whole;
	int32_t nano; /* 0 to 999,999,999 */
	enum hf_quantity_form form;
};
/* Parses a quantity for sums. HF_E_INVALID as in hf_quantity_parse_milli, and also for a negative
 * quantity. */
int hf_quantity_parse(const char *text, struct hf_quantity *ret_quantity, struct hf_error *err)
	HF_MUST_CHECK;
/* Computes quantity += other × n; n must not be negative. */
void hf_quantity_add(struct hf_quantity *quantity, const struct hf_quantity *other, int32_t n);
/* Prints a quantity in canonical form, as an API server does: "1000m" is "1", "1024Mi" is "1Gi".
 * Returns buf. */
#define HF_QUANTITY_TEXT_MAX 32
const char *hf_quantity_format(const struct hf_quantity *quantity, char buf[HF_QUANTITY_TEXT_MAX]);

HF_END_DECLS

#endif
