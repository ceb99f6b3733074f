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
 * Metrics of the process and their text for Prometheus (exposition format 0.0.4).
 *
 * A family has a name, a help text, a type and label names; a series is a family
 * with label values.  Each family declares how many series it may have; a value for
 * one more is dropped and counted in holdfast_metrics_dropped_series_total, so a
 * label that gets out of hand costs a number and not the process.
 *
 * Families are rendered in the order made, series in the order first used: equal
 * runs, equal bytes.  Lifetime: process.
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
	const char *labels[HF_METRIC_LABELS_MAX]; /* names, up to the first NULL */
	double buckets[HF_METRIC_BUCKETS_MAX];    /* upper bounds, rising, up to the first 0;
						     +Inf comes by itself */
	size_t series_max;                        /* 0: HF_METRIC_SERIES_MAX */
};

struct hf_metrics *hf_metrics_create(void);
struct hf_metrics *hf_metrics_destroy(struct hf_metrics *metrics); /* NULL is fine */

/* The family of that name; made at the first call, the same one after. */
struct hf_family *hf_metrics_family(struct hf_metrics *metrics,
				    const struct hf_metric_options *options);

/*
 * Label values follow as const char *, as many as the family has names (asserted by a
 * NULL at the end): hf_family_add(m, 1, "default", "pytorch", NULL).
 * add: counters (by ≥ 0) and gauges.  set: gauges, and counters that are kept elsewhere
 * (which may not fall).  observe: histograms.
 */
void hf_family_add(struct hf_family *metric, double by, ...) __attribute__((sentinel));
void hf_family_set(struct hf_family *metric, double value, ...) __attribute__((sentinel));
void hf_family_observe(struct hf_family *metric, double value, ...) __attribute__((sentinel));
/* The value, a histogram's count; 0 where there is no such series. */
double hf_family_value(const struct hf_family *metric, ...) __attribute__((sentinel));
/* Forget all series of a family, before it is set anew from a snapshot. */
void hf_family_clear(struct hf_family *metric);

void hf_metrics_render(const struct hf_metrics *metrics, struct hf_strbuf *sb);

#endif
