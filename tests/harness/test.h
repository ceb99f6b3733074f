/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_TEST_H
#define HF_TESTS_HARNESS_TEST_H

/* What every *_test.c includes: cmocka with the headers it wants first. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"

/* The call succeeded; else the test fails with the error's text. */
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
