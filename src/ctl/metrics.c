/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Counters, gauges and histograms, and their text for Prometheus.
 *
 * Input: names, label values and numbers from the program; output: the exposition format 0.0.4. A
 * label value beyond a family's limit is dropped and counted, so memory is bounded.
 */
#include "ctl/metrics.h"

#include "base/ascii.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of families are constants in the source, so more than this is a bug. */
#define FAMILIES_MAX 256
#define LABEL_VALUE_MAX 1024 /* bytes; longer values are cut (Kubernetes names have at most 253) */
#define SERIES_KEY_MAX (HF_METRIC_LABELS_MAX * (LABEL_VALUE_MAX * 2 + 8))

struct series {
	double value;      /* counter or gauge: the value; histogram: the sum */
	uint64_t count;    /* histogram: number of observations */
	uint64_t *buckets; /* histogram: observations in bucket i alone (not cumulative) */
	char labels[];     /* name="value",… as printed */
};

struct hf_family {
	struct hf_metrics *metrics;
	char *name, *help;
	enum hf_metric_type type;
	size_t n_labels, n_buckets;
	char *labels[HF_METRIC_LABELS_MAX];
	double buckets[HF_METRIC_BUCKETS_MAX];
	struct hf_map *series; /* printed labels → struct series */
};

struct hf_metrics {
	struct hf_map *families; /* name → struct hf_family */
	uint64_t dropped;
};

static void free_series(void *value)
{
	struct series *series = value;

	free(series->buckets);
	free(series);
}

static void free_family(void *value)
{
	struct hf_family *metric = value;

	hf_map_destroy(metric->series);
	for (size_t i = 0; i < metric->n_labels; i++)
		free(metric->labels[i]);
	free(metric->name);
	free(metric->help);
	free(metric);
}

struct hf_metrics *hf_metrics_create(void)
{
	struct hf_metrics *metrics = hf_xcalloc(1, sizeof(*metrics));

	metrics->families = hf_map_create(FAMILIES_MAX, 0, free_family);
	return metrics;
}

struct hf_metrics *hf_metrics_destroy(struct hf_metrics *metrics)
{
	if (metrics == NULL)
		return NULL;
	hf_map_destroy(metrics->families);
	free(metrics);
	return NULL;
}

static bool is_metric_name(const char *name, bool colon)
{
	for (const char *p = name; *p != '\0'; p++) {
		bool letter = hf_ascii_is_letter(*p) || *p == '_';

		if (!letter && !(colon && *p == ':') && !(p > name && hf_ascii_is_digit(*p)))
			return false;
	}
	return *name != '\0';
}

struct hf_family *hf_metrics_family(struct hf_metrics *metrics,
				    const struct hf_metric_options *options)
{
	struct hf_family *metric = hf_map_get(metrics->families, options->name);

	if (metric != NULL) {
		hf_assert(metric->type == options->type);
		return metric;
	}
	hf_assert(is_metric_name(options->name, true));
	metric = hf_xcalloc(1, sizeof(*metric));
	metric->metrics = metrics;
	metric->name = hf_xstrdup(options->name);
	metric->help = hf_xstrdup(options->help);
	metric->type = options->type;
	while (metric->n_labels < HF_METRIC_LABELS_MAX && options->labels[metric->n_labels]) {
		hf_assert(is_metric_name(options->labels[metric->n_labels], false));
		metric->labels[metric->n_labels] = hf_xstrdup(options->labels[metric->n_labels]);
		metric->n_labels++;
	}
	while (metric->n_buckets < HF_METRIC_BUCKETS_MAX &&
	       options->buckets[metric->n_buckets] > 0) {
		size_t i = metric->n_buckets++;

		metric->buckets[i] = options->buckets[i];
		hf_assert(i == 0 || metric->buckets[i - 1] < metric->buckets[i]);
	}
	hf_assert((metric->type == HF_METRIC_HISTOGRAM) == (metric->n_buckets > 0));
	metric->series = hf_map_create(
		options->series_max ? options->series_max : HF_METRIC_SERIES_MAX, 0, free_series);
	bool put = hf_map_put(metrics->families, options->name, metric);

	hf_assert(put);
	return metric;
}

/* --- series --- */

static void add_escaped(struct hf_strbuf *sb, const char *text, size_t len, bool quotes)
{
	const char *special = quotes ? "\\\n\"" : "\\\n";

	while (len > 0) {
		size_t plain = strcspn(text, special);

		if (plain > len)
			plain = len;
		hf_strbuf_add(sb, text, plain);
		text += plain;
		len -= plain;
		if (len == 0)
			return;
		hf_strbuf_addstr(sb, *text == '\\' ? "\\\\" : *text == '\n' ? "\\n" : "\\\"");
		text++;
		len--;
	}
}

/* Prints the labels. The text is also the key of the series; escaping makes it unambiguous. */
static void make_labels(const struct hf_family *metric, struct hf_strbuf *sb, va_list ap)
{
	for (size_t i = 0; i < metric->n_labels; i++) {
		const char *value = va_arg(ap, const char *);

		hf_assert(value != NULL);
		if (i > 0)
			hf_strbuf_addch(sb, ',');
		hf_strbuf_addstr(sb, metric->labels[i]);
		hf_strbuf_addstr(sb, "=\"");
		add_escaped(sb, value, strnlen(value, LABEL_VALUE_MAX), true);
		hf_strbuf_addch(sb, '"');
	}
	hf_assert(va_arg(ap, const char *) == NULL);
}

static struct series *get_series(struct hf_family *metric, va_list ap)
{
	HF_AUTO_STRBUF key = HF_STRBUF_INIT(SERIES_KEY_MAX);
	struct series *series;

	make_labels(metric, &key, ap);
	series = hf_map_get(metric->series, key.data);
	if (series != NULL)
		return series;
	series = hf_xcalloc(1, sizeof(*series) + key.len + 1);
	memcpy(series->labels, key.data, key.len + 1);
	if (metric->n_buckets > 0)
		series->buckets = hf_xcalloc(metric->n_buckets, sizeof(*series->buckets));
	if (hf_map_put(metric->series, key.data, series))
		return series;
	free_series(series);
	metric->metrics->dropped++;
	return NULL;
}

void hf_family_add(struct hf_family *metric, double by, ...)
{
	struct series *series;
	va_list ap;

	hf_assert(metric->type == HF_METRIC_GAUGE ||
		  (metric->type == HF_METRIC_COUNTER && by >= 0));
	va_start(ap, by);
	series = get_series(metric, ap);
	va_end(ap);
	if (series != NULL)
		series->value += by;
}

void hf_family_set(struct hf_family *metric, double value, ...)
{
	struct series *series;
	va_list ap;

	hf_assert(metric->type != HF_METRIC_HISTOGRAM);
	va_start(ap, value);
	series = get_series(metric, ap);
	va_end(ap);
	if (series == NULL)
		return;
	hf_assert(metric->type == HF_METRIC_GAUGE || value >= series->value);
	series->value = value;
}

void hf_family_observe(struct hf_family *metric, double value, ...)
{
	struct series *series;
	va_list ap;

	hf_assert(metric->type == HF_METRIC_HISTOGRAM);
	va_start(ap, value);
	series = get_series(metric, ap);
	va_end(ap);
	if (series == NULL)
		return;
	series->count++;
	series->value += value;
	for (size_t i = 0; i < metric->n_buckets; i++) {
		if (value <= metric->buckets[i]) {
			series->buckets[i]++;
			break;
		}
	}
}

double hf_family_value(const struct hf_family *metric, ...)
{
	HF_AUTO_STRBUF key = HF_STRBUF_INIT(SERIES_KEY_MAX);
	const struct series *series;
	va_list ap;

	va_start(ap, metric);
	make_labels(metric, &key, ap);
	va_end(ap);
	series = hf_map_get(metric->series, key.data);
	if (series == NULL)
		return 0;
	return metric->type == HF_METRIC_HISTOGRAM ? (double)series->count : series->value;
}

void hf_family_clear(struct hf_family *metric)
{
	hf_map_clear(metric->series);
}

/* --- text --- */

static void add_number(struct hf_strbuf *sb, double value)
{
	char text[40];

	if (isnan(value) || isinf(value)) {
		hf_strbuf_addstr(sb, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
		return;
	}
	/* Print with as few digits as possible, so that the text still reads back as the same
	 * number. */
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	hf_strbuf_addstr(sb, text);
}

static void add_sample(struct hf_strbuf *sb, const struct hf_family *metric, const char *suffix,
		       const struct series *series, const double *bound)
{
	bool labels = series->labels[0] != '\0';

	hf_strbuf_addf(sb, "%s%s", metric->name, suffix);
	if (labels || bound != NULL) {
		hf_strbuf_addf(sb, "{%s", series->labels);
		if (bound != NULL) {
			hf_strbuf_addf(sb, "%sle=\"", labels ? "," : "");
			add_number(sb, *bound);
			hf_strbuf_addch(sb, '"');
		}
		hf_strbuf_addch(sb, '}');
	}
	hf_strbuf_addch(sb, ' ');
}

static void render_histogram(struct hf_strbuf *sb, const struct hf_family *metric,
			     const struct series *series)
{
	const double infinite = INFINITY;
	uint64_t sum = 0;

	for (size_t i = 0; i < metric->n_buckets; i++) {
		sum += series->buckets[i];
		add_sample(sb, metric, "_bucket", series, &metric->buckets[i]);
		hf_strbuf_addf(sb, "%llu\n", (unsigned long long)sum);
	}
	add_sample(sb, metric, "_bucket", series, &infinite);
	hf_strbuf_addf(sb, "%llu\n", (unsigned long long)series->count);
	add_sample(sb, metric, "_sum", series, NULL);
	add_number(sb, series->value);
	hf_strbuf_addch(sb, '\n');
	add_sample(sb, metric, "_count", series, NULL);
	hf_strbuf_addf(sb, "%llu\n", (unsigned long long)series->count);
}

static void render_head(struct hf_strbuf *sb, const char *name, const char *help, const char *type)
{
	hf_strbuf_addf(sb, "# HELP %s ", name);
	add_escaped(sb, help, strlen(help), false);
	hf_strbuf_addf(sb, "\n# TYPE %s %s\n", name, type);
}

void hf_metrics_render(const struct hf_metrics *metrics, struct hf_strbuf *sb)
{
	static const char *const types[] = {
		[HF_METRIC_COUNTER] = "counter",
		[HF_METRIC_GAUGE] = "gauge",
		[HF_METRIC_HISTOGRAM] = "histogram",
	};
	static const char dropped[] = "holdfast_metrics_dropped_series_total";
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(metrics->families, &it, &key, &value);) {
		const struct hf_family *metric = value;

		render_head(sb, metric->name, metric->help, types[metric->type]);
		for (size_t at = 0; hf_map_next(metric->series, &at, &key, &value);) {
			const struct series *series = value;

			if (metric->type == HF_METRIC_HISTOGRAM) {
				render_histogram(sb, metric, series);
				continue;
			}
			add_sample(sb, metric, "", series, NULL);
			add_number(sb, series->value);
			hf_strbuf_addch(sb, '\n');
		}
	}
	render_head(sb, dropped,
		    "Values dropped because a metric had too many combinations of label values.",
		    "counter");
	hf_strbuf_addf(sb, "%s %llu\n", dropped, (unsigned long long)metrics->dropped);
}
