/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_FUZZ_FUZZ_H
#define HF_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* One input of a fuzz harness; libFuzzer and replay.c call it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
