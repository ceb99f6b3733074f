/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_PROMISE_H
#define HF_TESTS_HARNESS_PROMISE_H

/*
 * Tests that a wrong call is detected: expect_broken_promise(call) passes if the call ends in
 * hf_assert or in the out-of-memory hook, and the test goes on. The test program must be linked
 * with '-Wl,--wrap=hf_assert_failed', and its group needs promise_setup as set-up function, which
 * sets the hook.
 */

#include "harness/test.h"

#include "base/mem.h"

HF_NORETURN void __wrap_hf_assert_failed(const char *cond, const char *file, int line);

/* mock_assert jumps back into the test only while a call is expected to fail; else the trap ends
 * the program. */
void __wrap_hf_assert_failed(const char *cond, const char *file, int line)
{
	mock_assert(0, cond, file, line);
	__builtin_trap();
}

static inline void promise_out_of_memory(size_t size)
{
	mock_assert(0, "memory", __FILE__, __LINE__);
}

static inline int promise_setup(void **state)
{
	hf_set_oom_hook(promise_out_of_memory);
	return 0;
}

#define expect_broken_promise(call) expect_assert_failure(call)

#endif
