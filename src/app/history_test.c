/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/history.h"

#include "base/fs.h"
#include "base/mem.h"
#include "harness/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void report(struct hf_history *history, const char *rank, uint64_t step, const char *loss,
		   hf_time now)
{
	struct hf_beat beat = {.has_step = true, .step = step};

	(void)snprintf(beat.loss, sizeof(beat.loss), "%s", loss);
	hf_history_step(history, rank, &beat, now);
}

static void points_stay_below_their_limit_and_span_the_run(void **state)
{
	struct hf_history *history = hf_history_create();
	const struct hf_history_rank *rank;

	for (uint64_t step = 1; step <= 100000; step++) {
		if (step == 60000)
			hf_history_begin(history, "worker-0");
		report(history, "worker-0", step, "0.5", (hf_time)step * HF_SECOND / 10);
	}
	rank = history->ranks[0];
	assert_true(rank->n <= HF_HISTORY_POINTS_MAX && rank->n > HF_HISTORY_POINTS_MAX / 4);
	assert_int_equal(rank->points[0].step, 1);
	assert_int_equal(rank->points[rank->n - 1].step, 100000);
	size_t begins = 0;
	for (size_t i = 1; i < rank->n; i++) {
		begins += rank->points[i].begins;
		assert_true(rank->points[i].at >= rank->points[i - 1].at);
		if (!rank->points[i].begins)
			assert_true(fabs(hf_history_value_at(rank, HF_HISTORY_STEP_SECONDS, i) -
					 0.1) < 1e-6);
	}
	assert_int_equal(begins, 1);
	hf_history_destroy(history);
}

static void ranks_and_restarts_have_a_limit(void **state)
{
	struct hf_history *history = hf_history_create();
	char name[32];

	for (int i = 0; i < HF_HISTORY_RANKS_MAX + 5; i++) {
		(void)snprintf(name, sizeof(name), "worker-%d", i);
		report(history, name, 1, "", 0);
		hf_history_restart(history, i, 0);
	}
	assert_int_equal(history->n_ranks, HF_HISTORY_RANKS_MAX);
	assert_int_equal(history->n_restarts, HF_HISTORY_RESTARTS_MAX);
	hf_history_destroy(history);
}

static void a_file_gives_the_same_points(void **state)
{
	char folder[] = "/tmp/hf-history-XXXXXX";
	struct hf_history *history = hf_history_create(), *read = NULL;
	struct hf_error err;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(hf_history_load(folder, &read, &err), HF_E_NOT_FOUND);
	report(history, "worker-0", 1, "2.5", 10 * HF_SECOND);
	report(history, "worker-0", 2, "nan", 11 * HF_SECOND);
	hf_history_begin(history, "worker-0");
	report(history, "worker-0", 1, "2.25", 20 * HF_SECOND);
	hf_history_restart(history, 2, 15 * HF_SECOND);
	assert_true(history->changed);
	assert_int_equal(hf_history_save(history, folder, &err), 0);
	assert_false(history->changed);
	assert_int_equal(hf_history_load(folder, &read, &err), 0);
	assert_int_equal(read->n_ranks, 1);
	assert_int_equal(read->ranks[0]->n, 3);
	assert_int_equal(read->ranks[0]->points[0].at, 10 * HF_SECOND);
	assert_true(read->ranks[0]->points[0].loss == 2.5 && isnan(read->ranks[0]->points[1].loss));
	assert_true(read->ranks[0]->points[2].begins && read->ranks[0]->points[2].step == 1);
	assert_int_equal(read->n_restarts, 1);
	assert_int_equal(read->restarts[0].generation, 2);
	hf_history_destroy(read);
	hf_history_destroy(history);
	assert_int_equal(hf_fs_remove_tree(folder, &err), 0);
}

static void wrong_files_are_refused_or_read_in_part(void **state)
{
	static const char *const wrong[] = {"", "[]", "{\"version\":2}", "{"};
	static const char partly[] =
		"{\"version\":1,\"ranks\":[3,{\"name\":5},{\"name\":\"a\",\"points\":[[],[-1,1],"
		"[9e300,1,1],[5,-1],[7,1,\"x\",1],[6,2],[9223372036854775807,2],[8,3,0.5]]}],"
		"\"restarts\":[{},{\"at\":-1},{\"at\":5}]}";
	char folder[] = "/tmp/hf-history-XXXXXX";
	struct hf_history *read = NULL;
	struct hf_error err;

	assert_non_null(mkdtemp(folder));
	HF_AUTOFREE char *path = hf_xasprintf("%s/" HF_HISTORY_FILE, folder);
	for (size_t i = 0; i < HF_ARRAY_LEN(wrong); i++) {
		assert_int_equal(hf_fs_write_atomic(path, wrong[i], strlen(wrong[i]), 0600, &err),
				 0);
		assert_true(hf_history_load(folder, &read, &err) < 0);
	}
	assert_int_equal(hf_fs_write_atomic(path, partly, strlen(partly), 0600, &err), 0);
	assert_int_equal(hf_history_load(folder, &read, &err), 0);
	assert_int_equal(read->n_ranks, 1);
	assert_int_equal(read->ranks[0]->n, 2);
	assert_int_equal(read->n_restarts, 1);
	hf_history_destroy(read);
	assert_int_equal(hf_fs_remove_tree(folder, &err), 0);
}

static void assert_spark(const struct hf_history *history, enum hf_history_value value, int columns,
			 bool utf8, const char *expected)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(1024);

	(void)hf_history_spark(history->ranks[0], value, columns, utf8, &text);
	assert_string_equal(text.data, expected);
}

static void a_row_of_characters_shows_the_values_and_the_restarts(void **state)
{
	static const char *const losses[] = {"8", "7", "6", "5", "4", "3", "2", "1"};
	struct hf_history *history = hf_history_create();

	for (uint64_t i = 0; i < 8; i++)
		report(history, "worker-0", i + 1, losses[i], (hf_time)i * HF_SECOND);
	assert_spark(history, HF_HISTORY_LOSS, 80, true, "█▇▆▅▄▃▂▁");
	assert_spark(history, HF_HISTORY_LOSS, 80, false, "#*+=-:._");
	assert_spark(history, HF_HISTORY_LOSS, 4, true, "█▆▃▁");
	assert_spark(history, HF_HISTORY_LOSS, 0, true, "");
	/* All steps take the same time. */
	assert_spark(history, HF_HISTORY_STEP_SECONDS, 80, true, "███████");
	hf_history_begin(history, "worker-0");
	report(history, "worker-0", 5, "4", 20 * HF_SECOND);
	report(history, "worker-0", 6, "3", 22 * HF_SECOND);
	assert_spark(history, HF_HISTORY_LOSS, 80, true, "█▇▆▅▄▃▂▁┆▃");
	assert_spark(history, HF_HISTORY_STEP_SECONDS, 80, true, "▅▅▅▅▅▅▅┆█");
	hf_history_destroy(history);
}

static void a_rank_without_a_loss_has_no_row(void **state)
{
	struct hf_history *history = hf_history_create();

	report(history, "worker-0", 1, "", 0);
	assert_spark(history, HF_HISTORY_LOSS, 10, true, "");
	assert_spark(history, HF_HISTORY_STEP_SECONDS, 10, true, "");
	hf_history_destroy(history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(points_stay_below_their_limit_and_span_the_run),
		cmocka_unit_test(ranks_and_restarts_have_a_limit),
		cmocka_unit_test(a_file_gives_the_same_points),
		cmocka_unit_test(wrong_files_are_refused_or_read_in_part),
		cmocka_unit_test(a_row_of_characters_shows_the_values_and_the_restarts),
		cmocka_unit_test(a_rank_without_a_loss_has_no_row),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
