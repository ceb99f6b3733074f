/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "pattern/pattern.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "harness/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *lines_path;

static int read_line(struct hf_pattern *pattern, struct hf_pattern_rank *rank, const char *line,
		     char ret_text[256])
{
	struct hf_pattern_step step;
	struct hf_error err;
	int kind = hf_pattern_read(pattern, rank, line, strlen(line), &step, &err), len;

	if (kind != HF_PATTERN_STEP) {
		(void)snprintf(ret_text, 256, "%s",
			       kind == HF_PATTERN_BAR ? "bar"
			       : kind < 0             ? err.text
						      : "other");
		return kind;
	}
	assert_true(step.beat.has_step);
	assert_int_equal(step.beat.rank, -1);
	len = snprintf(ret_text, 256, "step %" PRIu64, step.beat.step);
	if (step.beat.total > 0)
		len += snprintf(ret_text + len, 256 - (size_t)len, "/%" PRIu64, step.beat.total);
	if (step.per_second > 0)
		len += snprintf(ret_text + len, 256 - (size_t)len, " rate %g", step.per_second);
	if (step.beat.loss[0] != '\0')
		(void)snprintf(ret_text + len, 256 - (size_t)len, " loss %s", step.beat.loss);
	return kind;
}

static void lines_of_trainers_give_their_steps(void **state)
{
	struct hf_pattern *pattern;
	struct hf_pattern_rank rank = {0};
	struct hf_error err;
	FILE *file = fopen(lines_path, "re");
	char line[4096], text[256] = "";
	int number = 0, seen = 0;

	assert_non_null(file);
	assert_int_equal(hf_pattern_create(NULL, &pattern, &err), 0);
	while (fgets(line, sizeof(line), file) != NULL) {
		number++;
		line[strcspn(line, "\n")] = '\0';
		if (hf_str_has_prefix(line, "# process:")) {
			rank = (struct hf_pattern_rank){0};
		} else if (hf_str_has_prefix(line, "> ")) {
			(void)read_line(pattern, &rank, line + 2, text);
		} else if (hf_str_has_prefix(line, "= ")) {
			if (!hf_streq(line + 2, text))
				fail_msg("trainer_lines.txt:%d: '%s' is read as '%s'", number,
					 line + 2, text);
			seen++;
		}
	}
	assert_true(seen > 30);
	(void)fclose(file);
	hf_pattern_destroy(pattern);
}

static void assert_reads(const char *regex, const char *line, const char *expected)
{
	struct hf_pattern *pattern;
	struct hf_pattern_rank rank = {0};
	struct hf_error err;
	char text[256];

	assert_int_equal(hf_pattern_create(regex, &pattern, &err), 0);
	(void)read_line(pattern, &rank, line, text);
	assert_string_equal(text, expected);
	hf_pattern_destroy(pattern);
}

static void an_expression_names_its_groups_or_begins_with_the_step(void **state)
{
	assert_reads("step (\\d+)", "at step 12 now", "step 12");
	assert_reads("(?<total>\\d+) in all, step (?<step>\\d+)", "200 in all, step 12",
		     "step 12/200");
	assert_reads("s=(?<step>\\d+) l=(?<loss>\\S+) r=(?<rate>\\S+)", "s=3 l=0.5 r=2.5",
		     "step 3 rate 2.5 loss 0.5");
	assert_reads("s=(?<step>\\d+)( l=(?<loss>\\S+))?", "s=3", "step 3");
	/* A loss that is no number is left out, and a line whose step is no number has no step. */
	assert_reads("s=(?<step>\\d+) l=(?<loss>\\S+)", "s=3 l=\033[2J", "step 3");
	assert_reads("s=(\\S+)", "s=three", "other");
	assert_reads("s=(\\d+)", "s=99999999999999999999", "other");
	assert_reads("s=(\\d+)", "nothing", "other");
}

static void a_wrong_expression_is_refused_with_the_place(void **state)
{
	struct hf_pattern *pattern = NULL;
	char *big = hf_xcalloc(1, HF_PATTERN_BYTES_MAX + 2);
	struct hf_error err;

	assert_int_equal(hf_pattern_create("step (\\d+", &pattern, &err), HF_E_INVALID);
	assert_string_equal(err.text, "missing closing parenthesis, at character 10");
	assert_int_equal(hf_pattern_create("step \\d+", &pattern, &err), HF_E_INVALID);
	assert_string_equal(err.text,
			    "the expression has no group: write the step in brackets, as in 'step "
			    "(\\d+)'");
	memset(big, '(', HF_PATTERN_BYTES_MAX + 1);
	assert_int_equal(hf_pattern_create(big, &pattern, &err), HF_E_INVALID);
	assert_int_equal(
		hf_pattern_create(
			"((((((((((((((((((((((((((((((((((a))))))))))))))))))))))))))))))))))",
			&pattern, &err),
		HF_E_INVALID);
	assert_null(pattern);
	free(big);
}

static void a_match_that_explodes_is_cut_off(void **state)
{
	static const struct {
		const char *regex;
		char letter;
	} cases[] = {{"^(a+)+$", 'a'},
		     {"^(?:(a|aa)+)+$", 'a'},
		     {"(?<step>(x+x+)+y)", 'x'},
		     {"^(?<step>(?:a?){64}a{64})$", 'a'},
		     {"(a(?1)?)+b", 'a'}};
	struct hf_pattern_rank rank = {0};
	struct timespec before, after;
	char line[1000], text[256];
	struct hf_error err;
	int cut = 0;

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_pattern *pattern;

		memset(line, cases[i].letter, sizeof(line) - 2);
		line[sizeof(line) - 2] = '!';
		line[sizeof(line) - 1] = '\0';
		assert_int_equal(hf_pattern_create(cases[i].regex, &pattern, &err), 0);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
		cut += read_line(pattern, &rank, line, text) == HF_E_TOO_LARGE;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
		/* Without a limit such a match takes years. With the limit it ends within
		 * milliseconds, also under a sanitizer. */
		assert_true(after.tv_sec - before.tv_sec < 2);
		hf_pattern_destroy(pattern);
	}
	assert_true(cut >= 3);
}

static void bytes_of_any_kind_are_read(void **state)
{
	struct hf_pattern *pattern;
	struct hf_pattern_rank rank = {0};
	struct hf_pattern_step step;
	struct hf_error err;
	char line[8192];

	assert_int_equal(hf_pattern_create("step (\\d+)", &pattern, &err), 0);
	memset(line, 0xff, sizeof(line));
	memcpy(line + 10, "\0step 7", 7);
	assert_int_equal(hf_pattern_read(pattern, &rank, line, sizeof(line), &step, &err),
			 HF_PATTERN_STEP);
	assert_int_equal(step.beat.step, 7);
	/* A step after the first HF_PATTERN_LINE_BYTES_MAX bytes of a line is not found. */
	memset(line, 0xff, sizeof(line));
	memcpy(line + HF_PATTERN_LINE_BYTES_MAX, "step 7", 6);
	assert_int_equal(hf_pattern_read(pattern, &rank, line, sizeof(line), &step, &err),
			 HF_PATTERN_OTHER);
	hf_pattern_destroy(pattern);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_trainers_give_their_steps),
		cmocka_unit_test(an_expression_names_its_groups_or_begins_with_the_step),
		cmocka_unit_test(a_wrong_expression_is_refused_with_the_place),
		cmocka_unit_test(a_match_that_explodes_is_cut_off),
		cmocka_unit_test(bytes_of_any_kind_are_read),
	};

	lines_path = argc > 1 ? argv[1] : "trainer_lines.txt";
	return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
