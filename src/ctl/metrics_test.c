/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "ctl/metrics.h"

#include <math.h>
#include <string.h>

#define TEXT_MAX 65536
#define DROPPED                                                                                    \
	"# HELP holdfast_metrics_dropped_series_total Values dropped because a metric had too "    \
	"many combinations of label values.\n"                                                     \
	"# TYPE holdfast_metrics_dropped_series_total counter\n"

static void assert_text(const struct hf_metrics *metrics, const char *want)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

	hf_metrics_render(metrics, &text);
	assert_string_equal(text.data, want);
}

static struct hf_family *jobs_family(struct hf_metrics *metrics, size_t series_max)
{
	const struct hf_metric_options options = {
		.name = "training_operator_jobs_created_total",
		.help = "Jobs seen for the first time.",
		.labels = {"job_namespace", "framework"},
		.series_max = series_max,
	};

	return hf_metrics_family(metrics, &options);
}

static void test_counters_add_up_and_render_with_their_labels(void **state)
{
	struct hf_metrics *metrics = hf_metrics_create();
	struct hf_family *jobs = jobs_family(metrics, 0);

	hf_family_add(jobs, 0, "default", "pytorch", NULL);
	hf_family_add(jobs, 2, "team-a", "jax", NULL);
	hf_family_add(jobs, 3, "team-a", "jax", NULL);
	assert_text(metrics,
		    "# HELP training_operator_jobs_created_total Jobs seen for the first time.\n"
		    "# TYPE training_operator_jobs_created_total counter\n"
		    "training_operator_jobs_created_total{job_namespace=\"default\","
		    "framework=\"pytorch\"} 0\n"
		    "training_operator_jobs_created_total{job_namespace=\"team-a\","
		    "framework=\"jax\"} 5\n" DROPPED "holdfast_metrics_dropped_series_total 0\n");
	assert_true(hf_family_value(jobs, "team-a", "jax", NULL) == 5);
	assert_true(hf_family_value(jobs, "nobody", "jax", NULL) == 0);
	hf_metrics_destroy(metrics);
}

static void test_gauges_are_set_up_and_down_and_forgotten(void **state)
{
	struct hf_metrics *metrics = hf_metrics_create();
	const struct hf_metric_options options = {
		.name = "temperature", .help = "How hot.", .type = HF_METRIC_GAUGE};
	struct hf_family *gauge = hf_metrics_family(metrics, &options);

	hf_family_set(gauge, 21.5, NULL);
	hf_family_add(gauge, -2, NULL);
	assert_text(metrics,
		    "# HELP temperature How hot.\n# TYPE temperature gauge\n"
		    "temperature 19.5\n" DROPPED "holdfast_metrics_dropped_series_total 0\n");
	hf_family_clear(gauge);
	assert_true(hf_family_value(gauge, NULL) == 0);
	assert_text(metrics, "# HELP temperature How hot.\n# TYPE temperature gauge\n" DROPPED
			     "holdfast_metrics_dropped_series_total 0\n");
	hf_metrics_destroy(metrics);
}

static void test_histograms_have_cumulative_buckets_sum_and_count(void **state)
{
	struct hf_metrics *metrics = hf_metrics_create();
	const struct hf_metric_options options = {.name = "step_seconds",
						  .help = "Time.",
						  .type = HF_METRIC_HISTOGRAM,
						  .labels = {"kind"},
						  .buckets = {0.1, 1, 10}};
	struct hf_family *steps = hf_metrics_family(metrics, &options);

	hf_family_observe(steps, 0.1, "a", NULL);
	hf_family_observe(steps, 0.5, "a", NULL);
	hf_family_observe(steps, 100, "a", NULL);
	assert_text(metrics, "# HELP step_seconds Time.\n# TYPE step_seconds histogram\n"
			     "step_seconds_bucket{kind=\"a\",le=\"0.1\"} 1\n"
			     "step_seconds_bucket{kind=\"a\",le=\"1\"} 2\n"
			     "step_seconds_bucket{kind=\"a\",le=\"10\"} 2\n"
			     "step_seconds_bucket{kind=\"a\",le=\"+Inf\"} 3\n"
			     "step_seconds_sum{kind=\"a\"} 100.6\n"
			     "step_seconds_count{kind=\"a\"} 3\n" DROPPED
			     "holdfast_metrics_dropped_series_total 0\n");
	assert_true(hf_family_value(steps, "a", NULL) == 3);
	hf_metrics_destroy(metrics);
}

static void test_a_series_beyond_the_limit_is_dropped_and_counted(void **state)
{
	struct hf_metrics *metrics = hf_metrics_create();
	struct hf_family *jobs = jobs_family(metrics, 2);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

	hf_family_add(jobs, 1, "a", "x", NULL);
	hf_family_add(jobs, 1, "b", "x", NULL);
	hf_family_add(jobs, 1, "c", "x", NULL);
	hf_family_add(jobs, 1, "d", "x", NULL);
	hf_family_add(jobs, 1, "b", "x", NULL);
	hf_metrics_render(metrics, &text);
	assert_null(strstr(text.data, "\"c\""));
	assert_non_null(strstr(text.data, "holdfast_metrics_dropped_series_total 2\n"));
	assert_true(hf_family_value(jobs, "b", "x", NULL) == 2);
	hf_metrics_destroy(metrics);
}

static void test_label_values_and_help_are_escaped(void **state)
{
	struct hf_metrics *metrics = hf_metrics_create();
	const struct hf_metric_options options = {
		.name = "m", .help = "a\\b\nc\"d", .labels = {"l"}};
	struct hf_family *m = hf_metrics_family(metrics, &options);

	hf_family_add(m, 1, "q\"b\\n\nx", NULL);
	assert_text(metrics, "# HELP m a\\\\b\\nc\"d\n# TYPE m counter\n"
			     "m{l=\"q\\\"b\\\\n\\nx\"} 1\n" DROPPED
			     "holdfast_metrics_dropped_series_total 0\n");
	hf_metrics_destroy(metrics);
}

static void test_label_values_with_quotes_and_commas_stay_distinct(void **state)
{
	struct hf_metrics *metrics = hf_metrics_create();
	struct hf_family *jobs = jobs_family(metrics, 0);

	hf_family_add(jobs, 1, "a\",framework=\"b", "c", NULL);
	hf_family_add(jobs, 1, "a", "b\",framework=\"c", NULL);
	assert_true(hf_family_value(jobs, "a\",framework=\"b", "c", NULL) == 1);
	assert_true(hf_family_value(jobs, "a", "b\",framework=\"c", NULL) == 1);
	hf_metrics_destroy(metrics);
}

static void test_numbers_read_back_unchanged(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{0, "m 0\n"},
		{1e15, "m 1e+15\n"},
		{123456789, "m 123456789\n"},
		{0.1, "m 0.1\n"},
		{1.0 / 3, "m 0.3333333333333333\n"},
		{-2.5, "m -2.5\n"},
		{INFINITY, "m +Inf\n"},
		{-INFINITY, "m -Inf\n"},
		{NAN, "m NaN\n"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_metrics *metrics = hf_metrics_create();
		const struct hf_metric_options options = {
			.name = "m", .help = "h", .type = HF_METRIC_GAUGE};
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

		hf_family_set(hf_metrics_family(metrics, &options), cases[i].value, NULL);
		hf_metrics_render(metrics, &text);
		assert_non_null(strstr(text.data, cases[i].text));
		hf_metrics_destroy(metrics);
	}
}

static void test_a_family_is_made_once(void **state)
{
	struct hf_metrics *metrics = hf_metrics_create();

	assert_ptr_equal(jobs_family(metrics, 0), jobs_family(metrics, 0));
	hf_metrics_destroy(metrics);
	assert_null(hf_metrics_destroy(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_add_up_and_render_with_their_labels),
		cmocka_unit_test(test_gauges_are_set_up_and_down_and_forgotten),
		cmocka_unit_test(test_histograms_have_cumulative_buckets_sum_and_count),
		cmocka_unit_test(test_a_series_beyond_the_limit_is_dropped_and_counted),
		cmocka_unit_test(test_label_values_and_help_are_escaped),
		cmocka_unit_test(test_label_values_with_quotes_and_commas_stay_distinct),
		cmocka_unit_test(test_numbers_read_back_unchanged),
		cmocka_unit_test(test_a_family_is_made_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
