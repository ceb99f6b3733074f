/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CTL_METRICS_H
#define HF_CTL_METRICS_H

#include "base/compiler.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The metrics of the process, and their text for Prometheus (exposition format 0.0.4).
 *
 * A family has a name, a help text, a type and label names. A series is a family with label values.
 * Each family has a limit of series. A value for a further series is dropped and counted in
 * holdfast_metrics_dropped_series_total. So a label with too many values cannot exhaust the memory.
 *
 * Families are printed in the order of their creation, series in the order of their first use.
 * Equal runs print equal bytes. Lifetime: process.
 */
struct hf_metrics;
struct hf_family;

#define HF_METRIC_LABELS_MAX 6
#define HF_METRIC_BUCKETS_MAX 16
#define HF_METRIC_SERIES_MAX ((size_t)5000)

enum hf_metric_type { HF_METRIC_COUNTER, HF_METRIC_GAUGE, HF_METRIC_HISTOGRAM };

struct hf_metric_options {
	const char *name; /* [a-zA-Z_:][a-zA-Z0-9_:]*; asserted */
	const char *help;
	enum hf_metric_type type;
	const char *labels[HF_METRIC_LABELS_MAX]; /* label names, up to the first NULL */
	/* Upper bounds, rising, up to the first 0; +Inf is added. */
	double buckets[HF_METRIC_BUCKETS_MAX];
	size_t series_max; /* 0: HF_METRIC_SERIES_MAX */
};

struct hf_metrics *hf_metrics_create(void);
struct hf_metrics *hf_metrics_destroy(struct hf_metrics *metrics); /* accepts NULL; returns NULL */

/* Returns the family with this name. The first call creates the family. */
struct hf_family *hf_metrics_family(struct hf_metrics *metrics,
				    const struct hf_metric_options *options);

/*
 * The label values follow as const char *, one for each label name, and a NULL at the end
 * (asserted): hf_family_add(m, 1, "default", "pytorch", NULL).
 *
 * add is for counters (by must be ≥ 0) and gauges. set is for gauges, and for counters that are
 * kept elsewhere; such a counter must not fall. observe is for histograms.
 */
void hf_family_add(struct hf_family *metric, double by, ...) __attribute__((sentinel));
void hf_family_set(struct hf_family *metric, double value, ...) __attribute__((sentinel));
void hf_family_observe(struct hf_family *metric, double value, ...) __attribute__((sentinel));
/* The value of a counter or gauge, or the number of observations of a histogram; 0 if the series
 * does not exist. */
double hf_family_value(const struct hf_family *metric, ...) __attribute__((sentinel));
/* Removes all series of a family, before the family is set again from a snapshot. */
void hf_family_clear(struct hf_family *metric);

/* Appends the text of all families to sb. */
void hf_metrics_render(const struct hf_metrics *metrics, struct hf_strbuf *sb);

#endif
