/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_SKIP_INTERNAL_H
#define HF_JSON_SKIP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The two scans that take most of the skip reader's time. Each exists in a portable form and in the
 * fastest form for this machine; a test compares the two.
 *
 * p is at the opening quote or bracket. The result is the position after the closing one, or NULL
 * if there is none before end. *escaped becomes true if the string contains a backslash.
 */
const char *hf_skip_string_end_portable(const char *p, const char *end, bool *escaped);
const char *hf_skip_string_end(const char *p, const char *end, bool *escaped);
const char *hf_skip_container_end_portable(const char *p, const char *end);
const char *hf_skip_container_end(const char *p, const char *end);

#endif
