/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/plot.h"

#include "harness/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void report(struct hf_history *history, const char *rank, uint64_t step, double loss,
		   hf_time now)
{
	struct hf_beat beat = {.has_step = true, .step = step};

	(void)snprintf(beat.loss, sizeof(beat.loss), "%g", loss);
	hf_history_step(history, rank, &beat, now);
}

static void draw(struct hf_history *history, const char *title, struct hf_strbuf *sb)
{
	const struct hf_plot plot = {
		.title = title, .note = "a note", .started = 100 * HF_SECOND, .history = history};
	struct hf_error err;

	assert_int_equal(hf_plot_write(&plot, sb, &err), 0);
	assert_null(strstr(sb->data, "nan"));
	assert_null(strstr(sb->data, "inf"));
	hf_history_destroy(history);
}

static size_t count(const char *text, const char *word)
{
	size_t n = 0;

	for (; (text = strstr(text, word)) != NULL; text += strlen(word))
		n++;
	return n;
}

static void each_rank_has_a_line_in_both_panels(void **state)
{
	struct hf_history *history = hf_history_create();
	HF_AUTO_STRBUF svg = HF_STRBUF_INIT(HF_PLOT_BYTES_MAX);

	for (uint64_t i = 1; i <= 10; i++) {
		report(history, "worker-1", i, 2.0 / (double)i, (100 + (hf_time)i) * HF_SECOND);
		report(history, "worker-0", i, 3.0 / (double)i, (100 + (hf_time)i) * HF_SECOND);
	}
	draw(history, "PyTorchJob  ddp", &svg);
	assert_int_equal(count(svg.data, "<title>worker-0</title>"), 2);
	assert_int_equal(count(svg.data, "<title>worker-1</title>"), 2);
	/* The first rank by name has the first colour. The last loss, 0.3 of 3, is at the end of the time axis. */
	assert_non_null(strstr(svg.data, "<path class=\"l c0\" d=\"M162.4 84.0L"));
	assert_non_null(strstr(svg.data, "L940.0 255.0\"><title>worker-0</title>"));
	assert_non_null(strstr(svg.data, ">10s</text>"));
	assert_non_null(strstr(svg.data, ">1 s</text>"));
	assert_int_equal(count(svg.data, "class=\"restart\""), 0);
}

static void a_restart_breaks_the_lines_and_is_marked(void **state)
{
	struct hf_history *history = hf_history_create();
	HF_AUTO_STRBUF svg = HF_STRBUF_INIT(HF_PLOT_BYTES_MAX);

	for (uint64_t i = 1; i <= 4; i++)
		report(history, "worker-0", i, (double)i, (100 + (hf_time)i) * HF_SECOND);
	hf_history_restart(history, 2, 105 * HF_SECOND);
	hf_history_begin(history, "worker-0");
	for (uint64_t i = 3; i <= 6; i++)
		report(history, "worker-0", i, (double)i, (104 + (hf_time)i) * HF_SECOND);
	draw(history, "ddp", &svg);
	assert_int_equal(count(svg.data, "class=\"restart\""), 2);
	assert_int_equal(count(svg.data, ">generation 2</text>"), 1);
	assert_int_equal(count(svg.data, "<title>worker-0 began anew</title>"), 2);
	/* The line of the loss is interrupted once: two parts. */
	const char *line = strstr(svg.data, "class=\"l c0\"");
	const char *end = strstr(line, "</path>");
	size_t parts = 0;
	for (; line < end; line++)
		parts += *line == 'M';
	assert_int_equal(parts, 2);
}

static void any_text_and_any_value_can_be_drawn(void **state)
{
	static const double losses[] = {NAN, INFINITY, -1e308, 1e308, 0, 5e-324};
	struct hf_history *history = hf_history_create();
	HF_AUTO_STRBUF svg = HF_STRBUF_INIT(HF_PLOT_BYTES_MAX);

	for (uint64_t i = 0; i < HF_ARRAY_LEN(losses); i++)
		report(history, "<&\033\n>", i, losses[i], (100 + (hf_time)i) * HF_SECOND);
	draw(history, "</svg><script>&", &svg);
	assert_non_null(strstr(svg.data, "&lt;/svg>&lt;script>&amp;"));
	assert_null(strchr(svg.data, '\033'));
	assert_non_null(strstr(svg.data, "Loss: not reported"));
	/* If all values are equal, the axis still has a range around this value. */
	for (int i = 0; i < 3; i++) {
		double loss = i == 0 ? 0 : i == 1 ? 7 : -1e-12;

		history = hf_history_create();
		report(history, "a", 1, loss, 101 * HF_SECOND);
		report(history, "a", 2, loss, 102 * HF_SECOND);
		hf_strbuf_clear(&svg);
		draw(history, "", &svg);
		assert_non_null(strstr(svg.data, ">Loss</text>"));
	}
}

static void of_many_ranks_the_slowest_are_drawn(void **state)
{
	struct hf_history *history = hf_history_create();
	HF_AUTO_STRBUF svg = HF_STRBUF_INIT(HF_PLOT_BYTES_MAX);
	char name[32];

	for (int r = 0; r < 200; r++)
		for (uint64_t i = 0; i < 400; i++) {
			(void)snprintf(name, sizeof(name), "worker-%d", r);
			report(history, name, i, (double)i,
			       100 * HF_SECOND + (hf_time)i * HF_MS * (r == 77 ? 200 : 100));
		}
	draw(history, "", &svg);
	assert_non_null(strstr(svg.data, "<title>worker-77</title>"));
	assert_int_equal(count(svg.data, "class=\"l c"), 2 * HF_PLOT_RANKS_MAX + 8);
	assert_non_null(strstr(svg.data, "the 32 slowest of 200 ranks"));
	assert_true(svg.len < (size_t)2 << 20);
}

static void without_two_steps_there_is_no_picture(void **state)
{
	struct hf_history *history = hf_history_create();
	const struct hf_plot plot = {.title = "", .note = "", .history = history};
	HF_AUTO_STRBUF svg = HF_STRBUF_INIT(HF_PLOT_BYTES_MAX);
	struct hf_error err;

	assert_int_equal(hf_plot_write(&plot, &svg, &err), HF_E_NOT_FOUND);
	report(history, "a", 1, 1, HF_SECOND);
	assert_int_equal(hf_plot_write(&plot, &svg, &err), HF_E_NOT_FOUND);
	hf_history_destroy(history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rank_has_a_line_in_both_panels),
		cmocka_unit_test(a_restart_breaks_the_lines_and_is_marked),
		cmocka_unit_test(any_text_and_any_value_can_be_drawn),
		cmocka_unit_test(of_many_ranks_the_slowest_are_drawn),
		cmocka_unit_test(without_two_steps_there_is_no_picture),
	};

	return cmocka_run_group_tests_name("plot", tests, NULL, NULL);
}
