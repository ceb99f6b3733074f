/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_RECOVERY_TRACE_H
#define HF_APP_RECOVERY_TRACE_H

#include "json/json.h"
#include "operator/operator.h"

/* Makes OpenTelemetry spans of a restart: one trace for each restart of a job, one span for each
 * part of it. */

/* Appends the spans of a report to `spans`, in the form of OTLP/JSON (opentelemetry-proto 1.x,
 * trace.proto). A restart that has ended gives the span "recovery" and below it detect, decide, down
 * and start, as far as their times are known. A first step gives the span "first step". The ids are
 * computed from the job's UID, the incident and the generation: whoever reports the restart again
 * gives the same ids. */
void hf_recovery_trace_add(const struct hf_operator_recovery *recovery, struct hf_json *spans);

/* Wraps spans into the body of a request to /v1/traces; takes over the reference to `spans`. */
struct hf_json *hf_recovery_trace_request(struct hf_json *spans);

#endif
