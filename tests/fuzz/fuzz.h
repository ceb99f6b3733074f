/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_FUZZ_FUZZ_H
#define HF_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Runs the harness with one input; called by libFuzzer and by replay.c. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
