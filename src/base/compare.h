/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_COMPARE_H
#define HF_BASE_COMPARE_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * Comparators for qsort and bsearch that order elements by a name, in byte order. Names must
 * not be NULL. Elements with the same name compare as equal; qsort may put them in any order.
 */

/* For arrays of texts (const char *), and for arrays of structs that begin with the name
 * (const char *). */
int hf_compare_by_name(const void *left, const void *right);
/* For arrays of pointers to structs that begin with the name. */
int hf_compare_pointers_by_name(const void *left, const void *right);

/* Sorts the numbers, and returns the median: of two in the middle the lower; of none 0. */
int64_t hf_median(int64_t *numbers, size_t len);

HF_END_DECLS

#endif
