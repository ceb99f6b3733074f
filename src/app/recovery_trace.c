/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Makes OpenTelemetry spans of a restart. Inputs: the record of the restart and the view of its job.
 * Output: JSON as OTLP/HTTP carries it. The same record gives the same spans. */
#include "app/recovery_trace.h"

#include "base/str.h"
#include "base/strbuf.h"
#include "core/model/framework.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Values of the enums SpanKind and StatusCode in trace.proto. */
#define SPAN_KIND_INTERNAL 1
#define STATUS_CODE_OK 1

#define TRACE_ID_DIGITS 32
#define SPAN_ID_DIGITS 16
#define ID_TEXT_BYTES_MAX 512

/* --- attributes ---------------------------------------------------------------------------------- */

static void add_attribute(struct hf_json *attributes, const char *key, const char *type,
			  struct hf_json *value)
{
	struct hf_json *attribute = hf_json_object();

	hf_json_set_str(attribute, "key", key);
	hf_json_set(hf_json_ensure_object(attribute, "value"), type, value);
	hf_json_append(attributes, attribute);
}

static void add_text(struct hf_json *attributes, const char *key, const char *text)
{
	if (!hf_str_is_empty(text))
		add_attribute(attributes, key, "stringValue", hf_json_string(text));
}

/* OTLP/JSON carries 64-bit integers as decimal strings. */
static void add_number(struct hf_json *attributes, const char *key, int64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, number);
	add_attribute(attributes, key, "intValue", hf_json_string(text));
}

static struct hf_json *describe_restart(const struct hf_operator_recovery *recovery)
{
	const struct hf_record *record = recovery->record;
	struct hf_json *attributes = hf_json_array();
	int64_t lost = hf_record_lost_steps(record);

	add_text(attributes, "k8s.namespace.name", recovery->job->ns);
	add_text(attributes, "k8s.pod.name", record->pod);
	add_text(attributes, "k8s.node.name", record->node);
	add_text(attributes, "holdfast.job.kind", recovery->job->framework->kind);
	add_text(attributes, "holdfast.job.name", recovery->job->name);
	add_text(attributes, "holdfast.job.uid", recovery->job->uid);
	add_number(attributes, "holdfast.generation", record->generation);
	add_number(attributes, "holdfast.incident", record->incident);
	add_text(attributes, "holdfast.cause", hf_class_name(record->cause));
	add_text(attributes, "holdfast.reason", record->reason);
	add_text(attributes, "holdfast.scope", record->scope);
	add_text(attributes, "holdfast.rank", record->replica);
	add_text(attributes, "holdfast.device", record->device);
	add_text(attributes, "holdfast.rule", record->rule);
	if (record->exit_code.set)
		add_number(attributes, "holdfast.exit_code", record->exit_code.value);
	if (record->signal.set)
		add_number(attributes, "holdfast.signal", record->signal.value);
	if (lost >= 0)
		add_number(attributes, "holdfast.steps_lost", lost);
	add_attribute(attributes, "holdfast.in_place", "boolValue", hf_json_bool(record->in_place));
	return attributes;
}

/* --- spans --------------------------------------------------------------------------------------- */

/* The first 16 digits come from one key and the others from a second one. An id of zeros is invalid
 * in OpenTelemetry, so a hash of 0 becomes 1. */
static void make_id(const struct hf_operator_recovery *recovery, const char *part, size_t digits,
		    char *ret_id)
{
	char text[ID_TEXT_BYTES_MAX];
	uint64_t hash;

	snprintf(text, sizeof(text), "%s/%" PRId64 "/%" PRId64 "/%s", recovery->job->uid,
		 recovery->record->incident, recovery->record->generation, part);
	for (size_t at = 0; at < digits; at += SPAN_ID_DIGITS) {
		hash = hf_siphash(at, text, strlen(text));
		snprintf(ret_id + at, SPAN_ID_DIGITS + 1, "%016" PRIx64, hash == 0 ? 1 : hash);
	}
}

static void set_time(struct hf_json *span, const char *key, hf_time time)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, (int64_t)time);
	hf_json_set_str(span, key, text);
}

/* Appends one span. parent: the name of the span above it; NULL: the span is the root. */
static struct hf_json *add_span(const struct hf_operator_recovery *recovery, const char *name,
				const char *parent, hf_time start, hf_time end,
				struct hf_json *spans)
{
	struct hf_json *span = hf_json_object();
	char trace[TRACE_ID_DIGITS + 1], id[SPAN_ID_DIGITS + 1], parent_id[SPAN_ID_DIGITS + 1];

	make_id(recovery, "", TRACE_ID_DIGITS, trace);
	make_id(recovery, name, SPAN_ID_DIGITS, id);
	hf_json_set_str(span, "traceId", trace);
	hf_json_set_str(span, "spanId", id);
	if (parent != NULL) {
		make_id(recovery, parent, SPAN_ID_DIGITS, parent_id);
		hf_json_set_str(span, "parentSpanId", parent_id);
	}
	hf_json_set_str(span, "name", name);
	hf_json_set_i64(span, "kind", SPAN_KIND_INTERNAL);
	set_time(span, "startTimeUnixNano", start);
	set_time(span, "endTimeUnixNano", end > start ? end : start);
	hf_json_set_i64(hf_json_ensure_object(span, "status"), "code", STATUS_CODE_OK);
	hf_json_append(spans, span);
	return span;
}

/* A part whose span is unknown is left out. */
static void add_part(const struct hf_operator_recovery *recovery, const char *name, hf_time start,
		     hf_time span, struct hf_json *spans)
{
	if (span != HF_TIME_NONE && start != HF_TIME_NONE)
		add_span(recovery, name, "recovery", start, hf_time_add(start, span), spans);
}

void hf_recovery_trace_add(const struct hf_operator_recovery *recovery, struct hf_json *spans)
{
	const struct hf_record *record = recovery->record;
	struct hf_record_parts parts = hf_record_parts(record);
	bool down = record->down_at != HF_TIME_NONE;
	struct hf_json *root;

	if (recovery->stepped) {
		add_part(recovery, "first step", record->running_at, parts.first_step, spans);
		return;
	}
	root = add_span(recovery, "recovery", NULL,
			parts.detect != HF_TIME_NONE ? record->ended_at : record->detected_at,
			record->running_at, spans);
	hf_json_set(root, "attributes", describe_restart(recovery));
	add_part(recovery, "detect", record->ended_at, parts.detect, spans);
	add_part(recovery, "decide", record->detected_at, parts.decide, spans);
	add_part(recovery, "down", record->decided_at, parts.down, spans);
	add_part(recovery, "start", down ? record->down_at : record->decided_at, parts.start,
		 spans);
}

struct hf_json *hf_recovery_trace_request(struct hf_json *spans)
{
	struct hf_json *request = hf_json_object(), *by_resource = hf_json_object(),
		       *by_scope = hf_json_object(), *scope, *attributes;

	attributes =
		hf_json_ensure_array(hf_json_ensure_object(by_resource, "resource"), "attributes");
	add_text(attributes, "service.name", "holdfast-operator");
	add_text(attributes, "service.version", HF_VERSION);
	scope = hf_json_ensure_object(by_scope, "scope");
	hf_json_set_str(scope, "name", "holdfast");
	hf_json_set_str(scope, "version", HF_VERSION);
	hf_json_set(by_scope, "spans", spans);
	hf_json_append(hf_json_ensure_array(by_resource, "scopeSpans"), by_scope);
	hf_json_append(hf_json_ensure_array(request, "resourceSpans"), by_resource);
	return request;
}
