/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "operator/operator_internal.h"

#include "api/job.h"
#include "framework/framework.h"

#include <string.h>

#define JOB(status)                                                                                \
	"{\"metadata\":{\"name\":\"ddp\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":"   \
	"\"42\"},\"spec\":{\"pytorchReplicaSpecs\":{}}" status "}"
#define STORED                                                                                     \
	",\"status\":{\"foreign\":{\"x\":1},\"conditions\":[{\"type\":\"Other\",\"status\":"       \
	"\"True\",\"odd\":[1]},{\"type\":\"Created\",\"status\":\"True\",\"reason\":\"R\","        \
	"\"message\":\"m\",\"lastUpdateTime\":\"2026-01-01T00:00:00Z\",\"lastTransitionTime\":"    \
	"\"2026-01-01T00:00:00Z\",\"extra\":\"kept\"}],\"replicaStatuses\":{\"Master\":{"          \
	"\"active\":1}}}"

static struct hf_doc *doc(const char *text)
{
	return hf_doc_from_text(text, strlen(text));
}

static struct hf_status read_status(struct hf_doc *job, struct hf_arena *arena)
{
	struct hf_status status;

	hf_status_read(hf_json_get(hf_doc_json(job), "status"), &hf_framework_pytorch, arena,
		       &status);
	return status;
}

static void test_an_unchanged_status_makes_no_patch(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
	HF_AUTO_DOC job = doc(JOB(STORED));
	struct hf_status status = read_status(job, arena);

	assert_null(hf_status_patch(job, &hf_framework_pytorch, &status));
}

static void test_a_patch_names_the_version_and_only_what_changed(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
	HF_AUTO_DOC job = doc(JOB(STORED));
	struct hf_status status = read_status(job, arena);

	status.replicas[0].active = 0;
	status.replicas[0].succeeded = 1;
	HF_AUTO_DOC patch = hf_status_patch(job, &hf_framework_pytorch, &status);
	HF_AUTO_DOC want =
		doc("{\"metadata\":{\"resourceVersion\":\"42\"},\"status\":{"
		    "\"replicaStatuses\":{\"Master\":{\"active\":null,\"succeeded\":1}}}}");

	assert_true(hf_json_equal(hf_doc_json(patch), hf_doc_json(want)));
}

static void test_foreign_conditions_and_members_survive_in_the_rebuilt_list(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
	HF_AUTO_DOC job = doc(JOB(STORED));
	struct hf_status status = read_status(job, arena);
	struct hf_condition conditions[8];

	assert_int_equal(status.conditions_len, 2);
	memcpy(conditions, status.conditions, 2 * sizeof(conditions[0]));
	conditions[2] = (struct hf_condition){.type = "Running",
					      .status = "True",
					      .reason = "R",
					      .message = "m",
					      .last_update = 0,
					      .last_transition = 0,
					      .stored = -1};
	status.conditions = conditions;
	status.conditions_len = 3;
	HF_AUTO_DOC patch = hf_status_patch(job, &hf_framework_pytorch, &status);
	const struct hf_json *list = hf_json_path(hf_doc_json(patch), "status", "conditions", NULL);

	assert_int_equal(hf_json_len(list), 3);
	assert_int_equal(hf_json_len(hf_json_get(hf_json_item(list, 0), "odd")), 1);
	assert_string_equal(hf_json_path_str(hf_json_item(list, 1), "extra", NULL), "kept");
	assert_string_equal(hf_json_path_str(hf_json_item(list, 2), "type", NULL), "Running");
	assert_null(hf_json_path(hf_doc_json(patch), "status", "foreign", NULL));
}

static void test_a_job_without_status_gets_one(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
	HF_AUTO_DOC job = doc(JOB(""));
	struct hf_status status = read_status(job, arena);

	status.start_time = HF_SECOND;
	HF_AUTO_DOC patch = hf_status_patch(job, &hf_framework_pytorch, &status);

	assert_string_equal(hf_json_path_str(hf_doc_json(patch), "status", "startTime", NULL),
			    "1970-01-01T00:00:01Z");
}

static void test_a_reply_is_searched_for_what_was_sent(void **state)
{
	HF_AUTO_DOC patch =
		doc("{\"metadata\":{\"resourceVersion\":\"1\"},\"status\":{\"startTime\":"
		    "\"t\",\"gone\":null,\"recovery\":{\"generation\":2}}}");
	HF_AUTO_DOC whole = doc("{\"status\":{\"startTime\":\"t\",\"other\":1,\"recovery\":{"
				"\"generation\":2,\"schema\":1}}}");
	HF_AUTO_DOC pruned = doc("{\"status\":{\"startTime\":\"t\",\"other\":1}}");
	HF_AUTO_DOC changed =
		doc("{\"status\":{\"startTime\":\"t\",\"recovery\":{\"generation\":1}}}");
	HF_AUTO_DOC kept = doc("{\"status\":{\"startTime\":\"t\",\"gone\":1,\"recovery\":{"
			       "\"generation\":2}}}");
	HF_AUTO_DOC nothing = doc("{}");

	assert_true(hf_status_arrived(patch, whole));
	assert_false(hf_status_arrived(patch, pruned));
	assert_false(hf_status_arrived(patch, changed));
	assert_false(hf_status_arrived(patch, kept));
	assert_false(hf_status_arrived(patch, nothing));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_unchanged_status_makes_no_patch),
		cmocka_unit_test(test_a_patch_names_the_version_and_only_what_changed),
		cmocka_unit_test(test_foreign_conditions_and_members_survive_in_the_rebuilt_list),
		cmocka_unit_test(test_a_job_without_status_gets_one),
		cmocka_unit_test(test_a_reply_is_searched_for_what_was_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
