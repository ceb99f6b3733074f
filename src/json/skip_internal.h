/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_SKIP_INTERNAL_H
#define HF_JSON_SKIP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The two scans that the skip reader lives by, each in a form that every machine can run and
 * in the fastest one this machine has; a test holds them against each other.
 *
 * p is at the opening quote or bracket; the answer is behind the closing one, NULL where
 * there is none before end.  *escaped becomes true when a backslash was passed.
 */
const char *hf_skip_string_end_portable(const char *p, const char *end, bool *escaped);
const char *hf_skip_string_end(const char *p, const char *end, bool *escaped);
const char *hf_skip_container_end_portable(const char *p, const char *end);
const char *hf_skip_container_end(const char *p, const char *end);

#endif
