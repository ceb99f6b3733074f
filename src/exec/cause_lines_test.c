/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "exec/tail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The code before each line of cause_lines.txt is the code of the cause that exec finds if a process prints the
 * line to stderr. */

static const char *path;

/* Splits "CODE LINE\n".  False: the row is empty or a comment. */
static bool split(const char *row, int *ret_code, const char **ret_line)
{
	char *end;

	if (row[0] == '#' || row[0] == '\n')
		return false;
	*ret_code = (int)strtol(row, &end, 10);
	if (end == row || *end != ' ')
		fail_msg("no code and a blank: %s", row);
	*ret_line = end + 1;
	return true;
}

static enum hf_exec_cause find_cause(const char *line)
{
	struct hf_tail tail = {0};

	hf_tail_add(&tail, line, strlen(line), 0);
	hf_tail_end(&tail, 0);
	return hf_tail_cause(&tail, 0);
}

static void each_line_names_its_cause(void **state)
{
	FILE *file = fopen(path, "re");
	char row[HF_TAIL_LINE_BYTES_MAX];
	int of_cause = 0, of_none = 0, wrong = 0;

	assert_non_null(file);
	while (fgets(row, sizeof(row), file) != NULL) {
		const char *line;
		int code, cause;

		assert_non_null(strchr(row, '\n'));
		if (!split(row, &code, &line))
			continue;
		*(code == 0 ? &of_none : &of_cause) += 1;
		cause = (int)find_cause(line);
		if (cause == code)
			continue;
		print_error("%d, not %d: %s", cause, code, line);
		wrong++;
	}
	fclose(file);
	assert_int_equal(wrong, 0);
	/* A file that was cut short would test nothing, so the test counts the lines. */
	assert_true(of_cause > 50 && of_none > 50);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_line_names_its_cause),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s FILE\n", argv[0]);
		return 2;
	}
	path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
