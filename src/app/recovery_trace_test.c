/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/recovery_trace.h"

#include "harness/test.h"

#include "base/str.h"
#include "framework/framework.h"

#include <string.h>

/* Spans of restarts, from a record alone. */

#define START (1000 * HF_SECOND)

static struct hf_job_view job = {.ns = "team", .name = "llama", .uid = "u1"};

static struct hf_record begin(void)
{
	job.framework = hf_framework_by_name("pytorchjobs");
	return (struct hf_record){
		.generation = 3,
		.incident = 2,
		.cause = HF_CLASS_DEVICE,
		.reason = "DeviceFailed",
		.scope = "Job",
		.replica = "worker-1",
		.node = "node-17",
		.in_place = true,
		.step = 120,
		.saved_step = 100,
		.exit_code = {.set = true, .value = 220},
		.ended_at = START,
		.detected_at = START + HF_SECOND,
		.decided_at = START + 3 * HF_SECOND,
		.down_at = START + 7 * HF_SECOND,
		.running_at = START + 15 * HF_SECOND,
		.stepped_at = START + 31 * HF_SECOND,
	};
}

static struct hf_json *find_span(const struct hf_json *spans, const char *name)
{
	for (size_t i = 0; i < hf_json_len(spans); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(spans, i), "name", NULL), name))
			return hf_json_item(spans, i);
	fail_msg("no span '%s'", name);
	return NULL;
}

static void assert_span(const struct hf_json *spans, const char *name, const char *start,
			const char *end)
{
	const struct hf_json *span = find_span(spans, name);

	assert_string_equal(hf_json_path_str(span, "startTimeUnixNano", NULL), start);
	assert_string_equal(hf_json_path_str(span, "endTimeUnixNano", NULL), end);
}

/* The value of an attribute as text; NULL: the span has no such attribute. */
static const char *find_attribute(const struct hf_json *span, const char *key, const char *type)
{
	const struct hf_json *attributes = hf_json_get(span, "attributes");

	for (size_t i = 0; i < hf_json_len(attributes); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(attributes, i), "key", NULL), key))
			return hf_json_path_str(hf_json_item(attributes, i), "value", type, NULL);
	return NULL;
}

static void a_restart_gives_a_root_and_its_parts(void **state)
{
	struct hf_record record = begin();
	const struct hf_operator_recovery recovery = {.job = &job, .record = &record};
	HF_AUTO_JSON spans = hf_json_array();
	const struct hf_json *root;

	(void)state;
	hf_recovery_trace_add(&recovery, spans);
	assert_int_equal(hf_json_len(spans), 5);
	assert_span(spans, "recovery", "1000000000000", "1015000000000");
	assert_span(spans, "detect", "1000000000000", "1001000000000");
	assert_span(spans, "decide", "1001000000000", "1003000000000");
	assert_span(spans, "down", "1003000000000", "1007000000000");
	assert_span(spans, "start", "1007000000000", "1015000000000");
	root = find_span(spans, "recovery");
	assert_null(hf_json_get(root, "parentSpanId"));
	assert_string_equal(find_attribute(root, "k8s.namespace.name", "stringValue"), "team");
	assert_string_equal(find_attribute(root, "holdfast.job.kind", "stringValue"), "PyTorchJob");
	assert_string_equal(find_attribute(root, "holdfast.cause", "stringValue"), "device");
	assert_string_equal(find_attribute(root, "holdfast.exit_code", "intValue"), "220");
	assert_string_equal(find_attribute(root, "holdfast.steps_lost", "intValue"), "20");
	assert_null(find_attribute(root, "holdfast.signal", "intValue"));
	assert_string_equal(hf_json_path_str(find_span(spans, "down"), "parentSpanId", NULL),
			    hf_json_path_str(root, "spanId", NULL));
}

static void the_first_step_joins_the_same_trace(void **state)
{
	struct hf_record record = begin();
	struct hf_operator_recovery recovery = {.job = &job, .record = &record};
	HF_AUTO_JSON before = hf_json_array();
	HF_AUTO_JSON after = hf_json_array();

	(void)state;
	hf_recovery_trace_add(&recovery, before);
	recovery.stepped = true;
	hf_recovery_trace_add(&recovery, after);
	assert_int_equal(hf_json_len(after), 1);
	assert_span(after, "first step", "1015000000000", "1031000000000");
	assert_string_equal(hf_json_path_str(hf_json_item(after, 0), "traceId", NULL),
			    hf_json_path_str(hf_json_item(before, 0), "traceId", NULL));
	assert_string_equal(hf_json_path_str(hf_json_item(after, 0), "parentSpanId", NULL),
			    hf_json_path_str(find_span(before, "recovery"), "spanId", NULL));
}

static void unknown_times_leave_parts_out(void **state)
{
	struct hf_record record = begin();
	const struct hf_operator_recovery recovery = {.job = &job, .record = &record};
	HF_AUTO_JSON spans = hf_json_array();

	(void)state;
	/* The pods were re-created, and the end of the process is not known. */
	record.ended_at = record.down_at = HF_TIME_NONE;
	hf_recovery_trace_add(&recovery, spans);
	assert_int_equal(hf_json_len(spans), 3);
	assert_span(spans, "recovery", "1001000000000", "1015000000000");
	assert_span(spans, "start", "1003000000000", "1015000000000");
}

static void another_restart_has_other_ids(void **state)
{
	struct hf_record record = begin();
	const struct hf_operator_recovery recovery = {.job = &job, .record = &record};
	HF_AUTO_JSON spans = hf_json_array();
	const char *first, *second;

	(void)state;
	hf_recovery_trace_add(&recovery, spans);
	record.generation++;
	hf_recovery_trace_add(&recovery, spans);
	first = hf_json_path_str(hf_json_item(spans, 0), "traceId", NULL);
	second = hf_json_path_str(hf_json_item(spans, 5), "traceId", NULL);
	assert_int_equal(strlen(first), 32);
	assert_int_equal(strlen(hf_json_path_str(hf_json_item(spans, 0), "spanId", NULL)), 16);
	assert_string_not_equal(first, second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_restart_gives_a_root_and_its_parts),
		cmocka_unit_test(the_first_step_joins_the_same_trace),
		cmocka_unit_test(unknown_times_leave_parts_out),
		cmocka_unit_test(another_restart_has_other_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
