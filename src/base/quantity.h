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

/*
 * One as it is kept and written: exact to 1e-9, what is finer is rounded up.  Whole units stop at
 * 2^63 - 1.  The form decides how it is written again, and a sum has that of its first part which
 * is not 0, as in apimachinery.
 */
enum hf_quantity_form {
	HF_QUANTITY_DECIMAL,  /* "1500m", "2k" */
	HF_QUANTITY_BINARY,   /* "2Gi"; below 1024 as decimal */
	HF_QUANTITY_EXPONENT, /* "2e3" */
};
struct hf_quantity {
	int64_t whole;
	int32_t nano; /* 0 to 999,999,999 */
	enum hf_quantity_form form;
};
/* HF_E_INVALID as above, and for what is below 0. */
int hf_quantity_parse(const char *text, struct hf_quantity *ret_quantity, struct hf_error *err)
	HF_MUST_CHECK;
/* quantity += other × n; n is not negative. */
void hf_quantity_add(struct hf_quantity *quantity, const struct hf_quantity *other, int32_t n);
/* The one way in which an API server writes it: "1000m" is "1", "1024Mi" is "1Gi". */
#define HF_QUANTITY_TEXT_MAX 32
const char *hf_quantity_format(const struct hf_quantity *quantity, char buf[HF_QUANTITY_TEXT_MAX]);

HF_END_DECLS

#endif
