/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/job_view.h"

#include "base/str.h"
#include "framework/framework.h"
#include "harness/page_source.h"
#include "harness/test.h"

#include <string.h>

#define NOON (1767268800 * HF_SECOND)

/* A job of a fake source, and the JSON of this job. */
struct made {
	struct page_source *source;
	struct hf_page_job job;
	struct hf_json *tree, *object;
	struct hf_page_job_input input;
	struct hf_page_job_keys keys;
};

static void make(struct made *made, const char *status)
{
	page_source_put(made->source = page_source_create(), "team-a", "ddp", status);
	made->source->source.find_job(made->source, &hf_framework_pytorch, "team-a", "ddp",
				      &made->job);
	made->tree = hf_page_tree(made->job.doc);
	made->input = (struct hf_page_job_input){.job = &made->job,
						 .tree = made->tree,
						 .pods_len = 1,
						 .progress = {.steps_per_second = -1},
						 .now = NOON};
	made->source->source.find_pods(made->source, &made->job, NULL, &made->input.pods);
	made->object = hf_page_job_json(&made->input, &made->keys);
}

static void release(struct made *made)
{
	hf_json_unref(made->object);
	hf_json_unref(made->tree);
	page_source_destroy(made->source);
}

static const char *text_of(const struct made *made, const char *key)
{
	return hf_json_path_str(made->object, key, NULL);
}

static void a_row_has_every_member_of_the_contract(void **state)
{
	static const char *const members[] = {
		"namespace",  "kind",           "name",  "uid",        "state",    "since",
		"sentence",   "ready",          "ranks", "generation", "restarts", "step",
		"totalSteps", "stepsPerSecond", "ettr",  "created",    "ended",    "cause"};
	struct made made;

	make(&made, page_source_status("Running", 2));
	for (size_t i = 0; i < HF_ARRAY_LEN(members); i++)
		assert_non_null(hf_json_get(made.object, members[i]));
	assert_string_equal(text_of(&made, "kind"), "PyTorchJob");
	assert_string_equal(text_of(&made, "state"), "Running");
	assert_string_equal(text_of(&made, "since"), "2026-01-01T00:01:00.000Z");
	assert_int_equal(hf_json_i64(hf_json_get(made.object, "ready"), -1), 1);
	assert_int_equal(hf_json_i64(hf_json_get(made.object, "ranks"), -1), 1);
	assert_int_equal(
		hf_json_i64(hf_json_path(made.object, "restarts", "application", NULL), -1), 2);
	assert_string_equal(made.keys.cause, "application");
	release(&made);
}

static void an_unknown_value_is_null(void **state)
{
	struct made made;

	make(&made, "{}");
	assert_int_equal(hf_json_type(hf_json_get(made.object, "step")), HF_JSON_NULL);
	assert_int_equal(hf_json_type(hf_json_get(made.object, "ettr")), HF_JSON_NULL);
	assert_int_equal(hf_json_type(hf_json_get(made.object, "ended")), HF_JSON_NULL);
	assert_int_equal(hf_json_type(hf_json_get(made.object, "cause")), HF_JSON_NULL);
	assert_string_equal(text_of(&made, "state"), "Created");
	release(&made);
}

static void a_status_of_wrong_types_is_no_danger(void **state)
{
	static const char *const bad[] = {
		"[]",
		"\"x\"",
		"{\"conditions\":{}}",
		"{\"conditions\":[1,null,{\"type\":7}]}",
		"{\"recovery\":[1]}",
		"{\"recovery\":{\"last\":\"x\",\"history\":{},\"restarts\":[]}}",
		"{\"recovery\":{\"schema\":1,\"last\":{\"cause\":1,\"scope\":\"Job\",\"detectedAt\":\"never\"}}}"};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		struct made made;

		make(&made, bad[i]);
		hf_page_job_add_detail(made.object, &made.input, NULL);
		assert_non_null(hf_json_get(made.object, "restartRecords"));
		release(&made);
	}
}

static void the_detail_has_records_generations_and_the_command(void **state)
{
	struct made made;
	const struct hf_json *record, *generations;

	make(&made, page_source_status("Running", 1));
	hf_page_job_add_detail(made.object, &made.input, NULL);
	assert_string_equal(text_of(&made, "command"), "holdfast why -n team-a pytorchjob ddp");
	record = hf_json_item(hf_json_get(made.object, "restartRecords"), 0);
	assert_string_equal(hf_json_path_str(record, "cause", NULL), "application");
	assert_string_equal(hf_json_path_str(record, "rank", NULL), "worker-1");
	assert_string_equal(hf_json_path_str(record, "sentence", NULL),
			    "worker-1 exited with code 1 on node n1");
	assert_int_equal((int)hf_json_num(hf_json_path(record, "seconds", "decide", NULL), -1), 1);
	assert_int_equal((int)hf_json_num(hf_json_path(record, "seconds", "total", NULL), -1), 11);
	generations = hf_json_get(made.object, "generations");
	assert_int_equal(hf_json_len(generations), 2);
	assert_string_equal(hf_json_path_str(hf_json_item(generations, 0), "cause", NULL),
			    "application");
	assert_string_equal(hf_json_path_str(hf_json_item(generations, 1), "start", NULL),
			    "2026-01-01T00:02:11.000Z");
	assert_int_equal(hf_json_type(hf_json_get(hf_json_item(generations, 1), "end")),
			 HF_JSON_NULL);
	release(&made);
}

/* Until all ranks run again no generation has begun: the time bar shows the restart. */
static void a_generation_begins_when_all_its_ranks_run(void **state)
{
	static const char status[] =
		"{\"startTime\":\"2026-01-01T00:00:00Z\",\"conditions\":[{\"type\":\"Restarting\",\"status\":\"True\"}],"
		"\"recovery\":{\"schema\":1,\"generation\":2,\"last\":{\"generation\":2,\"cause\":\"user\",\"scope\":\"Job\","
		"\"detectedAt\":\"2026-01-01T00:02:00Z\",\"decidedAt\":\"2026-01-01T00:02:01Z\"}}}";
	const struct hf_json *last;
	struct made made;

	make(&made, status);
	hf_page_job_add_detail(made.object, &made.input, NULL);
	last = hf_json_item(hf_json_get(made.object, "generations"), 1);
	assert_int_equal(hf_json_i64(hf_json_get(last, "number"), -1), 2);
	assert_int_equal(hf_json_type(hf_json_get(last, "start")), HF_JSON_NULL);
	release(&made);
}

static void the_last_generation_of_a_finished_job_has_an_end(void **state)
{
	struct made made;
	const struct hf_json *last;

	make(&made, page_source_status("Succeeded", 0));
	hf_page_job_add_detail(made.object, &made.input, NULL);
	last = hf_json_get(made.object, "generations");
	last = hf_json_item(last, hf_json_len(last) - 1);
	assert_string_equal(hf_json_path_str(last, "end", NULL), "2026-01-01T00:01:00.000Z");
	assert_string_equal(text_of(&made, "ended"), "2026-01-01T00:01:00.000Z");
	release(&made);
}

/* The ledger of a job that has failed at its first fault: its record has no scope, because nothing restarted. */
static void a_job_that_failed_at_once_has_one_generation(void **state)
{
	static const char status[] =
		"{\"startTime\":\"2026-01-01T00:00:00Z\",\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\","
		"\"lastTransitionTime\":\"2026-01-01T00:01:00Z\"}],\"recovery\":{\"schema\":1,\"generation\":1,"
		"\"last\":{\"generation\":1,\"cause\":\"application\",\"scope\":\"\",\"detectedAt\":\"2026-01-01T00:01:00Z\"}}}";
	const struct hf_json *generations;
	struct made made;

	make(&made, status);
	hf_page_job_add_detail(made.object, &made.input, NULL);
	generations = hf_json_get(made.object, "generations");
	assert_int_equal(hf_json_len(generations), 1);
	assert_int_equal(hf_json_i64(hf_json_get(hf_json_item(generations, 0), "number"), -1), 1);
	release(&made);
}

static void the_sentence_and_next_are_those_of_the_plan(void **state)
{
	const struct hf_reason reasons[] = {
		{.time = NOON, .topic = HF_TOPIC_EVIDENCE, .text = "worker-1 exited with code 1"},
		{.time = HF_TIME_NONE, .topic = HF_TOPIC_NEXT, .text = "the pods start in 4 s"},
	};
	const struct hf_plan plan = {
		.summary = "restarting", .reasons = reasons, .reasons_len = HF_ARRAY_LEN(reasons)};
	struct made made;

	make(&made, page_source_status("Restarting", 1));
	hf_page_job_add_detail(made.object, &made.input, &plan);
	assert_string_equal(text_of(&made, "sentence"), "restarting");
	assert_string_equal(text_of(&made, "next"), "the pods start in 4 s");
	assert_int_equal(hf_json_len(hf_json_get(made.object, "why")), 2);
	release(&made);
}

static void each_class_of_the_ledger_has_a_cause(void **state)
{
	assert_int_equal(hf_page_cause_of(HF_CLASS_OUT_OF_MEMORY), HF_PAGE_APPLICATION);
	assert_int_equal(hf_page_cause_of(HF_CLASS_ADMISSION), HF_PAGE_INFRASTRUCTURE);
	assert_int_equal(hf_page_cause_of(HF_CLASS_DEVICE), HF_PAGE_DEVICE);
	assert_int_equal(hf_page_cause_of(HF_CLASS_USER), HF_PAGE_PLANNED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_has_every_member_of_the_contract),
		cmocka_unit_test(an_unknown_value_is_null),
		cmocka_unit_test(a_status_of_wrong_types_is_no_danger),
		cmocka_unit_test(the_detail_has_records_generations_and_the_command),
		cmocka_unit_test(a_generation_begins_when_all_its_ranks_run),
		cmocka_unit_test(the_last_generation_of_a_finished_job_has_an_end),
		cmocka_unit_test(a_job_that_failed_at_once_has_one_generation),
		cmocka_unit_test(the_sentence_and_next_are_those_of_the_plan),
		cmocka_unit_test(each_class_of_the_ledger_has_a_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
