/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_OTLP_EXPORTER_H
#define HF_APP_OTLP_EXPORTER_H

#include "ctl/metrics.h"
#include "loop/loop.h"
#include "operator/operator.h"

/*
 * Sends the traces of restarts to an OpenTelemetry collector by OTLP/HTTP, as JSON.
 *
 * Spans wait up to HF_OTLP_DELAY, so that restarts at the same time share a request; one request is in
 * flight at a time. If the collector cannot be reached, or answers 429, 502, 503 or 504, the request is
 * repeated with growing delays, HF_OTLP_TRIES_MAX times in all; after that, and after each other answer
 * that is not 2xx, its spans are dropped. More than HF_OTLP_SPANS_MAX waiting spans are dropped as well.
 * holdfast_trace_spans_total counts both. Spans that wait at the end of the process are lost.
 */
struct hf_otlp_exporter;

#define HF_OTLP_DELAY HF_SECOND
/* A restart gives at most 6 spans of about 300 bytes, and 1,500 bytes of attributes: in all some 2 MiB. */
#define HF_OTLP_SPANS_MAX 2048
#define HF_OTLP_TRIES_MAX 5

struct hf_otlp_options {
	struct hf_loop *loop;
	/* "http://collector:4318", the base URL of OTEL_EXPORTER_OTLP_ENDPOINT; "/v1/traces" is appended.
	 * Copied. */
	const char *endpoint;
	/* "name=value,name=value" with percent-encoded values, as in OTEL_EXPORTER_OTLP_HEADERS; NULL:
	 * none */
	const char *headers;
	struct hf_metrics *metrics; /* outlives the exporter */
	/* Called with the first failure after a success, and with NULL at the success after that. */
	void (*problem)(void *arg, const char *message);
	void *arg;
	uint64_t seed; /* seed for jitter */
};

/* HF_E_INVALID: the endpoint is not a URL, or the headers cannot be parsed. */
int hf_otlp_create(const struct hf_otlp_options *options, struct hf_otlp_exporter **ret_exporter,
		   struct hf_error *err) HF_MUST_CHECK;
struct hf_otlp_exporter *hf_otlp_destroy(struct hf_otlp_exporter *exporter); /* NULL is fine */

/* Queues the spans of a restart; returns at once. */
void hf_otlp_add(struct hf_otlp_exporter *exporter, const struct hf_operator_recovery *recovery);

#endif
