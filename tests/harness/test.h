/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_TEST_H
#define HF_TESTS_HARNESS_TEST_H

/* Includes cmocka and the headers that must come before it; every *_test.c includes this file. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"

/* Asserts that a call succeeded (code 0). If it failed, the test fails with the text of the
 * error. */
#define assert_ok(call, err)                                                                       \
	do {                                                                                       \
		int hf_rc_ = (call);                                                               \
		if (hf_rc_ != 0)                                                                   \
			fail_msg("%s: %s: %s", #call, hf_code_name(hf_rc_), (err)->text);          \
	} while (0)

/* The call failed with this code. */
#define assert_code(call, code)                                                                    \
	do {                                                                                       \
		int hf_rc_ = (call);                                                               \
		if (hf_rc_ != (code))                                                              \
			fail_msg("%s: %s, expected %s", #call, hf_code_name(hf_rc_),               \
				 hf_code_name(code));                                              \
	} while (0)

#endif
