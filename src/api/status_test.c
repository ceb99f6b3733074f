/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/job.h"

#include "framework/framework.h"
#include "harness/test.h"

#include <string.h>

#define ARENA_BYTES ((size_t)16 << 20)

static struct hf_json *parse(const char *text)
{
	struct hf_json *value = NULL;
	struct hf_error err;

	assert_ok(hf_json_parse(text, strlen(text), NULL, &value, &err), &err);
	return value;
}

/* A status with every field of status.h, with times in the stored form. */
static const char full[] =
	"{\"conditions\":[{\"type\":\"Created\",\"status\":\"True\",\"reason\":\"PyTorchJobCreated\","
	"\"message\":\"m\",\"lastUpdateTime\":\"2026-01-02T03:04:05Z\","
	"\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"}],"
	"\"replicaStatuses\":{\"Master\":{\"active\":1,\"selector\":\"a=b\"},"
	"\"Worker\":{\"active\":1,\"succeeded\":2,\"failed\":3}},"
	"\"startTime\":\"2026-01-02T03:04:05Z\",\"completionTime\":\"2026-01-02T03:05:05Z\","
	"\"lastReconcileTime\":\"2026-01-02T03:04:06Z\","
	"\"recovery\":{\"schema\":1,\"generation\":2,\"phase\":\"Tearing\","
	"\"since\":\"2026-01-02T03:04:05.000001Z\","
	"\"incident\":{\"id\":1,\"openedAt\":\"2026-01-02T03:04:05.000002Z\",\"cause\":\"application\","
	"\"charged\":\"application\"},"
	"\"notBefore\":\"2026-01-02T03:04:15.000000Z\",\"activeSeconds\":9,"
	"\"restarts\":{\"application\":1,\"device\":2},\"summary\":\"3 (1 application, 2 device)\",\"streak\":{\"application\":1,\"user\":2},"
	"\"replicas\":{\"Worker\":{\"attempts\":\"0:1\",\"created\":\"0-1\",\"succeeded\":\"1\","
	"\"seen\":\"0:4\",\"initSeen\":\"1:1\",\"trained\":\"0\",\"covered\":\"0\",\"hold\":\"0-1\","
	"\"inPlace\":\"1:3\",\"inPlaceSince\":\"1:2\"}},"
	"\"last\":{\"generation\":2,\"incident\":1,\"cause\":\"application\","
	"\"reason\":\"StartError\",\"message\":\"exec: x\",\"scope\":\"Job\","
	"\"replica\":\"worker-1\",\"pod\":\"p\",\"node\":\"n\",\"device\":\"d\",\"exitCode\":0,"
	"\"signal\":9,\"rule\":\"r\",\"detectedAt\":\"2026-01-02T03:04:05.000000Z\","
	"\"decidedAt\":\"2026-01-02T03:04:06.000000Z\",\"runningAt\":\"2026-01-02T03:04:07.000000Z\","
	"\"inPlace\":true,\"endedAt\":\"2026-01-02T03:04:04.000000Z\","
	"\"downAt\":\"2026-01-02T03:04:06.500000Z\",\"step\":100,\"savedStep\":90},"
	"\"history\":[{\"generation\":1,\"cause\":\"user\"}],"
	"\"downtimeSeconds\":3,\"productiveSeconds\":4,\"inPlaceBase\":1,\"inPlaceIncident\":3,"
	"\"inPlaceAt\":\"2026-01-02T03:04:06.000000Z\",\"inPlaceWaitSeconds\":60,"
	"\"inPlaceGraceSeconds\":5,\"inPlaceSaveSeconds\":9,\"inPlaceStreak\":2,\"bestStep\":100,"
	"\"noProgressStreak\":1,\"restartHandled\":\"x\","
	"\"verdict\":{\"reason\":\"ExitCode\",\"message\":\"v\",\"at\":\"2026-01-02T03:04:05.000000Z\"}}}";

static void what_was_read_is_written_the_same(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_JSON stored = parse(full);
	HF_AUTO_JSON written = NULL;
	HF_AUTO_JSON from_nothing = NULL;
	struct hf_status status;

	hf_status_read(stored, &hf_framework_pytorch, arena, &status);
	written = hf_status_write(&status, &hf_framework_pytorch, stored);
	assert_true(hf_json_equal(stored, written));
	/* A status that is written without the stored one is complete too: the struct has a member
	 * for every field. */
	from_nothing = hf_status_write(&status, &hf_framework_pytorch, NULL);
	assert_true(hf_json_equal(stored, from_nothing));
}

/* The incident that ended the job restarted nothing, also if an earlier step has written it. */
static void a_record_without_scope_is_no_restart(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_JSON stored = parse("{\"conditions\":[],\"recovery\":{\"schema\":1,\"incident\":{\"id\":2,"
				    "\"charged\":\"application\"},\"restarts\":{\"application\":2},"
				    "\"last\":{\"incident\":2,\"cause\":\"application\"}}}");
	HF_AUTO_JSON written = NULL;
	struct hf_status status;

	hf_status_read(stored, &hf_framework_pytorch, arena, &status);
	written = hf_status_write(&status, &hf_framework_pytorch, stored);
	assert_string_equal(hf_json_path_str(written, "recovery", "summary", NULL),
			    "1 (application)");
}

static void members_of_others_survive(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_JSON stored =
		parse("{\"theirs\":1,\"conditions\":[{\"type\":\"Created\",\"status\":\"True\","
		      "\"theirs\":2},{\"type\":\"Foreign\",\"status\":\"x\",\"n\":1}],"
		      "\"replicaStatuses\":{\"Master\":{\"theirs\":3,\"active\":1}}}");
	HF_AUTO_JSON written = NULL;
	struct hf_status status;
	struct hf_condition changed[2];

	hf_status_read(stored, &hf_framework_pytorch, arena, &status);
	/* The written conditions come in reverse order, and one of them has changed. */
	changed[0] = status.conditions[1];
	changed[1] = status.conditions[0];
	changed[1].status = "False";
	status.conditions = changed;
	status.replicas[0].active = 0;
	written = hf_status_write(&status, &hf_framework_pytorch, stored);
	HF_AUTO_JSON want = parse(
		"{\"theirs\":1,\"conditions\":[{\"type\":\"Foreign\",\"status\":\"x\",\"n\":1},"
		"{\"type\":\"Created\",\"status\":\"False\",\"theirs\":2}],"
		"\"replicaStatuses\":{\"Master\":{\"theirs\":3}}}");
	assert_true(hf_json_equal(written, want));
}

/* The Go operator counts replicas of type Reader in a TFJob. Holdfast has no such type and would
 * never reset that count. */
static void counts_of_a_type_that_the_kind_does_not_have_go(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_JSON stored =
		parse("{\"conditions\":[],\"replicaStatuses\":{\"Reader\":{\"active\":1},"
		      "\"Worker\":{\"active\":2}}}");
	HF_AUTO_JSON want =
		parse("{\"conditions\":[],\"replicaStatuses\":{\"Worker\":{\"active\":2}}}");
	HF_AUTO_JSON written = NULL;
	struct hf_status status;

	hf_status_read(stored, &hf_framework_tensorflow, arena, &status);
	written = hf_status_write(&status, &hf_framework_tensorflow, stored);
	assert_true(hf_json_equal(written, want));
}

static void a_cleared_field_is_removed(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_JSON stored = parse(full);
	HF_AUTO_JSON written = NULL;
	struct hf_status status;

	hf_status_read(stored, &hf_framework_pytorch, arena, &status);
	status.start_time = HF_TIME_NONE;
	status.ledger.present = false;
	written = hf_status_write(&status, &hf_framework_pytorch, stored);
	assert_null(hf_json_get(written, "startTime"));
	assert_null(hf_json_get(written, "recovery"));
	assert_non_null(hf_json_get(written, "completionTime"));
}

static void a_schema_that_is_no_number_is_told_from_none(void **state)
{
	static const char *const texts[] = {"{\"recovery\":{}}", "{\"recovery\":{\"schema\":1}}",
					    "{\"recovery\":{\"schema\":\"1\"}}"};
	static const int64_t want[] = {0, 1, -1};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
		HF_AUTO_JSON stored = parse(texts[i]);
		struct hf_status status;

		hf_status_read(stored, &hf_framework_pytorch, arena, &status);
		assert_int_equal(status.ledger.schema, want[i]);
	}
	(void)state;
}

static void a_broken_status_reads_as_not_written(void **state)
{
	static const char *const broken[] = {
		"{\"conditions\":{},\"replicaStatuses\":[],\"startTime\":7,\"recovery\":[]}",
		"{\"conditions\":[1,null,{\"status\":\"True\"}],\"replicaStatuses\":{\"Master\":3},"
		"\"startTime\":\"yesterday\",\"recovery\":{\"generation\":-5,\"incident\":\"x\"}}",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(broken); i++) {
		HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
		HF_AUTO_JSON stored = parse(broken[i]);
		struct hf_status status;
		hf_status_read(stored, &hf_framework_pytorch, arena, &status);
		assert_int_equal(status.conditions_len, 0);
		assert_false(status.replicas[0].present);
		assert_int_equal(status.start_time, HF_TIME_NONE);
		assert_int_equal(status.ledger.generation, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_read_is_written_the_same),
		cmocka_unit_test(a_record_without_scope_is_no_restart),
		cmocka_unit_test(members_of_others_survive),
		cmocka_unit_test(counts_of_a_type_that_the_kind_does_not_have_go),
		cmocka_unit_test(a_cleared_field_is_removed),
		cmocka_unit_test(a_schema_that_is_no_number_is_told_from_none),
		cmocka_unit_test(a_broken_status_reads_as_not_written),
	};

	return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
