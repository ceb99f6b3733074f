/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Included by ./dev lint before each source that clang-tidy reads, never by a build: tells the
 * analyzer what it cannot see from outside, as base/error.h does for hf_error_set. */
#include "base/error.h"

#define hf_error_errno(err, errnum, ...) (hf_error_errno((err), (errnum), __VA_ARGS__), HF_E_IO)
