/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "exec/cause.h"

#include <string.h>

#define LINE_MAX_BYTES 1024

static void each_code_has_a_name(void **state)
{
	for (int code = 220; code <= 226; code++)
		assert_string_not_equal(hf_exec_cause_name((enum hf_exec_cause)code), "");
	assert_string_equal(hf_exec_cause_name(HF_EXEC_CAUSE_NONE), "");
	assert_string_equal(hf_exec_cause_name(HF_EXEC_CAUSE_HANG), "hang");
}

/* Fills the line with copies of piece, and puts end at its end. */
static void fill_line(char line[LINE_MAX_BYTES], const char *piece, const char *end)
{
	size_t len = strlen(piece), at = LINE_MAX_BYTES - strlen(end);

	for (size_t i = 0; i < at; i++)
		line[i] = piece[i % len];
	memcpy(line + at, end, strlen(end));
}

static void a_long_line_names_its_cause(void **state)
{
	const char *const end = " cudaMemcpyAsync(a, b, n, kind, s) failed: hardware stack error";
	char line[LINE_MAX_BYTES];

	fill_line(line, "the (long) text ", end);
	assert_int_equal(hf_exec_cause_of(line, sizeof(line)), HF_EXEC_CAUSE_DEVICE_TRANSIENT);
}

/* The line matches the wildcards of a label in very many ways.  Without the limit of comparisons this line costs
 * 20 ms. */
static void a_hostile_line_is_soon_read(void **state)
{
	const char *const end = ") failed: hardware stack error) failed: hardware stack error";
	char line[LINE_MAX_BYTES];

	fill_line(line, "xcudaA(", end);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(hf_exec_cause_of(line, sizeof(line)), HF_EXEC_CAUSE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_code_has_a_name),
		cmocka_unit_test(a_long_line_names_its_cause),
		cmocka_unit_test(a_hostile_line_is_soon_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
