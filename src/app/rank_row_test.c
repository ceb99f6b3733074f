/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/rank_row.h"

#include "base/str.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static struct hf_beat beat_of(const char *text)
{
	struct hf_beat beat;

	assert_true(hf_beat_parse(text, strlen(text), &beat));
	return beat;
}

/* Writes all rows into one text. */
static void write_rows(const struct hf_rank_row *rows, size_t n, int width, bool utf8,
		       struct hf_strbuf *sb)
{
	struct hf_rank_columns columns = {.name = 0};

	for (size_t i = 0; i < n; i++)
		hf_rank_columns_add(&columns, &rows[i]);
	hf_rank_columns_fit(&columns, width);
	for (size_t i = 0; i < n; i++) {
		size_t begin = sb->len;

		hf_rank_row_write(&rows[i], &columns, utf8, sb);
		/* A row may exceed the terminal only by the text of a failure, which the caller
		 * cuts off. */
		if (width > 0 && !hf_str_has_prefix(rows[i].state, "Failed"))
			assert_true((int)hf_utf8_count(sb->data + begin) < width);
		hf_strbuf_addch(sb, '\n');
	}
}

static void rows_fit_into_40_80_and_200_columns(void **state)
{
	struct hf_beat a = beat_of("holdfast/1 step=120 total=200 own_us=31000 loss=0.0972");
	struct hf_beat b = beat_of("holdfast/1 step=9 total=200 loss=1.23456789012 phase=other");
	const struct hf_rank_row rows[] = {
		{.name = "master-0", .state = "Running", .step = &a, .per_second = 4.1},
		{.name = "worker-0", .state = "Running", .step = &b, .per_second = 0.05},
		{.name = "worker-10", .state = "Pending"},
		{.name = "worker-11", .state = "Failed code=137 (SIGKILL)", .step = &b},
	};
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(8192);

	write_rows(rows, HF_ARRAY_LEN(rows), 40, false, &text);
	assert_string_equal(text.data, " master-0   ####...  120/200  eta 19s\n"
				       " worker-0   .......  9/200    eta 63m\n"
				       " worker-10  Pending\n"
				       " worker-11  Failed code=137 (SIGKILL)  9/200\n");
	hf_strbuf_clear(&text);
	write_rows(rows, HF_ARRAY_LEN(rows), 80, false, &text);
	assert_string_equal(
		text.data,
		" master-0   ######.....  step 120/200  4.1/s        loss 0.0972  eta 19s\n"
		" worker-0   ...........  step 9/200    20.0 s/step  loss 1.235   eta 63m\n"
		" worker-10  Pending\n"
		" worker-11  Failed code=137 (SIGKILL)  step 9/200                 loss 1.235\n");
	hf_strbuf_clear(&text);
	write_rows(rows, HF_ARRAY_LEN(rows), 200, true, &text);
	assert_string_equal(
		text.data,
		" master-0   ████████████████████████░░░░░░░░░░░░░░░░  step 120/200  4.1/s        loss 0.0972  eta 19s  (own 31 ms)\n"
		" worker-0   █▊░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  step 9/200    20.0 s/step  loss 1.235   eta 63m  (not training)\n"
		" worker-10  Pending\n"
		" worker-11  Failed code=137 (SIGKILL)                 step 9/200                 loss 1.235            (not training)\n");
}

static void a_rank_without_a_total_has_no_bar(void **state)
{
	struct hf_beat a = beat_of("holdfast/1 step=120 own_us=1500");
	const struct hf_rank_row rows[] = {
		{.name = "worker-0",
		 .state = "Running",
		 .step = &a,
		 .per_second = 12345,
		 .restarts = 2},
		{.name = "worker-1", .state = "Succeeded"},
	};
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(8192);

	write_rows(rows, HF_ARRAY_LEN(rows), 80, true, &text);
	assert_string_equal(text.data,
			    " worker-0  Running    step 120  12345/s  restarts 2  (own 1.5 ms)\n"
			    " worker-1  Succeeded\n");
}

static void a_silent_rank_says_so_instead_of_the_rest_of_the_time(void **state)
{
	struct hf_beat a = beat_of("holdfast/1 step=120 total=200");
	struct hf_rank_row row = {.name = "worker-0",
				  .state = "Running",
				  .step = &a,
				  .per_second = 0.1,
				  .silent = 99 * HF_SECOND};
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(8192);
	char left[HF_TIME_TEXT_MAX];

	/* Fewer than ten of its steps. */
	assert_true(hf_rank_row_left(&row, left));
	assert_string_equal(left, "13m");
	row.silent = 100 * HF_SECOND;
	assert_false(hf_rank_row_left(&row, left));
	write_rows(&row, 1, 80, false, &text);
	assert_non_null(strstr(text.data, "0.1/s  no step for 100s"));
	assert_null(strstr(text.data, "eta"));
}

static void no_row_is_wider_than_its_terminal(void **state)
{
	struct hf_beat a = beat_of(
		"holdfast/1 step=999999999999999999 total=999999999999999999 own_us=999999999999999 "
		"loss=-1.2345678901234567e-300 phase=other");
	struct hf_rank_row row = {.name = "worker-0",
				  .state = "Running",
				  .step = &a,
				  .per_second = 1e-9,
				  .silent = 1000 * HF_DAY,
				  .restarts = INT64_MAX};

	for (int width = 75; width < 300; width++) {
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(8192);

		write_rows(&row, 1, width, true, &text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_fit_into_40_80_and_200_columns),
		cmocka_unit_test(a_rank_without_a_total_has_no_bar),
		cmocka_unit_test(a_silent_rank_says_so_instead_of_the_rest_of_the_time),
		cmocka_unit_test(no_row_is_wider_than_its_terminal),
	};

	return cmocka_run_group_tests_name("rank_row", tests, NULL, NULL);
}
