/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/device_health.h"

#include "base/str.h"
#include "harness/json_text.h"
#include "harness/test.h"
#include "json/patch.h"

#include <stdio.h>
#include <string.h>

#define ARENA_BYTES ((size_t)4 << 20)
#define T0 (1700000000 * HF_SECOND)

static void read_status(struct hf_json *status, struct hf_arena *arena,
			struct hf_device_health *ret_health)
{
	struct hf_json *object = hf_device_health_object("node-1", "n-uid");
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_JSON_BYTES_MAX);
	struct hf_doc *doc;

	hf_json_set(object, "status", status);
	hf_json_write(object, HF_JSON_COMPACT, &sb);
	hf_json_unref(object);
	doc = hf_doc_from_text(sb.data, sb.len);
	hf_device_health_read(doc, arena, ret_health);
	ret_health->node = hf_arena_strdup(arena, ret_health->node);
	hf_doc_unref(doc);
}

static struct hf_device_health one_sick_device(void)
{
	static struct hf_device_fault fault = {
		.detector = "xid",
		.code = 119,
		.subcode = -1,
		.severity = "fatal",
		.cls = "gpu-reset",
		.action = "reset-device",
		.unit = "GSP",
		.line = "NVRM: Xid (PCI:0000:1A:00): 119, Timeout",
		.first = T0,
		.last = T0 + 5 * HF_SECOND,
		.count = 2,
		.acts = true,
	};
	static struct hf_device_holder holders[] = {
		{.ns = "team",
		 .pod = "a-worker-0",
		 .uid = "u0",
		 .container = "pytorch",
		 .resource = "nvidia.com/gpu",
		 .resource_id = "GPU-1",
		 .until = HF_TIME_NONE},
		{.ns = "team", .pod = "b-worker-0", .until = T0 + HF_SECOND, .of_node = true},
	};
	static struct hf_device_report devices[] = {
		{.id = "",
		 .kind = "node",
		 .state = "Healthy",
		 .since = T0,
		 .hold_until = HF_TIME_NONE},
		{.id = "0000:1a:00.0",
		 .uuid = "GPU-1",
		 .kind = "gpu",
		 .resource = "nvidia.com/gpu",
		 .resource_id = "GPU-1",
		 .state = "Unhealthy",
		 .cls = "gpu-reset",
		 .action = "reset-device",
		 .since = T0,
		 .hold_until = T0 + 600 * HF_SECOND,
		 .generation = 3,
		 .faults = {&fault, 1},
		 .holders = {holders, 2}},
	};
	static struct hf_detector_report detectors[] = {
		{.name = "xid", .state = "On", .since = T0},
		{.name = "ecc", .state = "Off", .reason = "no libnvidia-ml.so.1", .since = T0},
	};

	return (struct hf_device_health){
		.observed_at = T0 + 6 * HF_SECOND + 1234000,
		.driver_at = T0 + 3 * HF_SECOND,
		.driver_version = "570.86.15",
		.library_version = "570.86.10",
		.module_version = "570.86.16",
		.firmware_version = "570.86.17",
		.boot_id = "b-1",
		.agent_version = "0.1.0",
		.rules_hash = "00ff",
		.state = "Unhealthy",
		.cls = "gpu-reset",
		.action = "reset-device",
		.evidence_at = T0 + 5 * HF_SECOND,
		.lost_records = 7,
		.detectors = {detectors, 2},
		.devices = {devices, 2},
	};
}

static void test_what_is_written_is_read(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_device_health health = one_sick_device(), got;
	const struct hf_device_report *gpu;

	(void)state;
	read_status(hf_device_health_status(&health), arena, &got);
	assert_string_equal(got.node, "node-1");
	assert_int_equal(got.observed_at, health.observed_at);
	assert_int_equal(got.driver_at, T0 + 3 * HF_SECOND);
	assert_string_equal(got.driver_version, "570.86.15");
	assert_string_equal(got.library_version, "570.86.10");
	assert_string_equal(got.module_version, "570.86.16");
	assert_string_equal(got.firmware_version, "570.86.17");
	assert_string_equal(got.boot_id, "b-1");
	assert_string_equal(got.rules_hash, "00ff");
	assert_string_equal(got.state, "Unhealthy");
	assert_string_equal(got.cls, "gpu-reset");
	assert_int_equal(got.evidence_at, health.evidence_at);
	assert_int_equal(got.lost_records, 7);
	assert_int_equal(got.detectors.len, 2);
	assert_string_equal(got.detectors.items[1].reason, "no libnvidia-ml.so.1");
	assert_null(got.detectors.items[0].reason);
	assert_int_equal(got.devices.len, 2);
	assert_string_equal(got.devices.items[0].id, "");
	assert_int_equal(got.devices.items[0].hold_until, HF_TIME_NONE);
	gpu = &got.devices.items[1];
	assert_string_equal(gpu->id, "0000:1a:00.0");
	assert_int_equal(gpu->generation, 3);
	assert_int_equal(gpu->faults.len, 1);
	assert_int_equal(gpu->faults.items[0].code, 119);
	assert_int_equal(gpu->faults.items[0].subcode, -1);
	assert_int_equal(gpu->faults.items[0].last, T0 + 5 * HF_SECOND);
	assert_true(gpu->faults.items[0].acts);
	assert_int_equal(gpu->holders.len, 2);
	assert_string_equal(gpu->holders.items[0].uid, "u0");
	assert_int_equal(gpu->holders.items[0].until, HF_TIME_NONE);
	assert_null(gpu->holders.items[1].uid);
	assert_int_equal(gpu->holders.items[1].until, T0 + HF_SECOND);
	assert_false(gpu->holders.items[0].of_node);
	assert_true(gpu->holders.items[1].of_node);
}

static void test_the_object_goes_with_its_node(void **state)
{
	struct hf_json *object = hf_device_health_object("node-1", "n-uid");
	struct hf_json *bare = hf_device_health_object("node-1", NULL);
	const struct hf_json *owner =
		hf_json_item(hf_json_path(object, "metadata", "ownerReferences", NULL), 0);

	(void)state;
	assert_string_equal(hf_json_path_str(object, "apiVersion", NULL), "holdfast.dev/v1alpha1");
	assert_string_equal(hf_json_path_str(object, "kind", NULL), "DeviceHealth");
	assert_string_equal(hf_json_path_str(owner, "kind", NULL), "Node");
	assert_string_equal(hf_json_path_str(owner, "uid", NULL), "n-uid");
	assert_null(hf_json_path(bare, "metadata", "ownerReferences", NULL));
	hf_json_unref(object);
	hf_json_unref(bare);
}

static void test_no_more_is_written_than_the_schema_takes(void **state)
{
	static struct hf_device_report devices[HF_DEVICE_HEALTH_DEVICES_MAX + 3];
	static struct hf_device_fault faults[HF_DEVICE_HEALTH_FAULTS_MAX + 1];
	static char line[HF_DEVICE_HEALTH_TEXT_MAX + 8];
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_device_health health = {.observed_at = T0,
					  .driver_at = HF_TIME_NONE,
					  .evidence_at = HF_TIME_NONE},
				got;

	(void)state;
	memset(line, 'x', sizeof(line) - 1);
	/* The limit falls inside a character of two bytes, so the text is cut before this
	 * character. */
	line[HF_DEVICE_HEALTH_TEXT_MAX - 1] = (char)0xC3;
	line[HF_DEVICE_HEALTH_TEXT_MAX] = (char)0xA4;
	for (size_t i = 0; i < HF_ARRAY_LEN(faults); i++)
		faults[i] = (struct hf_device_fault){.detector = "xid", .cls = "app", .line = line};
	for (size_t i = 0; i < HF_ARRAY_LEN(devices); i++)
		devices[i] = (struct hf_device_report){
			.id = "d", .state = "Healthy", .faults = {faults, HF_ARRAY_LEN(faults)}};
	health.devices.items = devices;
	health.devices.len = HF_ARRAY_LEN(devices);
	read_status(hf_device_health_status(&health), arena, &got);
	assert_int_equal(got.devices.len, HF_DEVICE_HEALTH_DEVICES_MAX);
	assert_int_equal(got.dropped_devices, 3);
	assert_int_equal(got.devices.items[0].faults.len, HF_DEVICE_HEALTH_FAULTS_MAX);
	assert_int_equal(strlen(got.devices.items[0].faults.items[0].line),
			 HF_DEVICE_HEALTH_TEXT_MAX - 1);
}

/* Only the time of the annotation counts. */
static void test_the_end_of_the_last_act_is_read(void **state)
{
	static const struct {
		const char *annotations;
		hf_time at;
	} cases[] = {
		{"{\"holdfast.dev/mended\":\"1970-01-01T00:00:07.5Z n-1\"}", 7500 * HF_MS},
		{"{\"holdfast.dev/mended\":\"1970-01-01T00:00:07Z\",\"x\":\"y\"}", 7 * HF_SECOND},
		{"{\"holdfast.dev/mended\":\"soon\"}", HF_TIME_NONE},
		{"{\"holdfast.dev/mended\":7}", HF_TIME_NONE},
		{"{}", HF_TIME_NONE},
		{"7", HF_TIME_NONE},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
		struct hf_device_health got;
		char text[256];
		HF_AUTO_DOC doc = NULL;

		snprintf(
			text, sizeof(text),
			"{\"metadata\":{\"name\":\"n\",\"annotations\":%s},\"status\":{\"bootID\":\"b\"}}",
			cases[i].annotations);
		doc = hf_doc_from_text(text, strlen(text));
		hf_device_health_read(doc, arena, &got);
		assert_int_equal(got.mended_at, cases[i].at);
		assert_string_equal(got.boot_id, "b");
	}
}

static void test_devices_that_no_pod_is_given_are_named(void **state)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"n\",\"annotations\":{\"holdfast.dev/devices-out\":\"GPU-1 "
		"0000:1c:00.0\"}},\"status\":{}}";
	const struct {
		struct hf_device_report device;
		bool withheld;
	} cases[] = {
		{{.id = "0000:1a:00.0", .uuid = "GPU-1"}, true},
		{{.id = "0000:1a:00.0", .uuid = "GPU-"}, false},
		{{.id = "0000:1c:00.0"}, true},
		{{.id = "0000:1b:00.0", .uuid = "GPU-11"}, false},
		{{.id = ""}, false},
	};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));
	struct hf_device_health health;

	(void)state;
	hf_device_health_read(doc, arena, &health);
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++)
		assert_int_equal(hf_device_is_withheld(&health, &cases[i].device),
				 cases[i].withheld);
	health.devices_out = NULL;
	assert_false(hf_device_is_withheld(&health, &cases[0].device));
}

/* The API server keeps members that a merge patch does not name, so the patch names every member of
 * the status. */
static void test_a_well_node_takes_back_what_was_said_of_a_sick_one(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_device_health sick = one_sick_device(), got;
	struct hf_device_health well = {.observed_at = T0 + HF_MINUTE,
					.driver_at = HF_TIME_NONE,
					.boot_id = "b-1",
					.state = "Healthy",
					.evidence_at = HF_TIME_NONE};
	struct hf_json *before, *patch, *after;

	(void)state;
	sick.dropped_devices = 2;
	before = hf_device_health_status(&sick);
	patch = hf_device_health_status(&well);
	after = hf_json_merge_patch(before, patch);
	assert_null(hf_json_get(after, "class"));
	assert_null(hf_json_get(after, "action"));
	assert_null(hf_json_get(after, "evidenceTime"));
	read_status(after, arena, &got);
	assert_string_equal(got.state, "Healthy");
	assert_null(got.cls);
	assert_null(got.action);
	assert_int_equal(got.evidence_at, HF_TIME_NONE);
	assert_int_equal(got.driver_at, HF_TIME_NONE);
	assert_null(got.driver_version);
	assert_null(got.library_version);
	assert_null(got.module_version);
	assert_null(got.firmware_version);
	assert_int_equal(got.lost_records, 0);
	assert_int_equal(got.dropped_devices, 0);
	assert_int_equal(got.devices.len, 0);
	assert_int_equal(got.detectors.len, 0);
	hf_json_unref(before);
	hf_json_unref(patch);
}

static void test_broken_documents_have_no_fields(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"{\"status\":7}",
		"{\"status\":{\"devices\":{}}}",
		"{\"status\":{\"observedTime\":\"yesterday\",\"devices\":[1,[],null]}}",
	};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		struct hf_doc *doc = hf_doc_from_text(bad[i], strlen(bad[i]));
		struct hf_device_health got;

		hf_device_health_read(doc, arena, &got);
		assert_int_equal(got.observed_at, HF_TIME_NONE);
		assert_null(got.state);
		for (size_t d = 0; d < got.devices.len; d++)
			assert_null(got.devices.items[d].state);
		hf_doc_unref(doc);
	}
}

static void test_classes_are_reasons_and_back(void **state)
{
	static const char *const classes[] = {"gpu-reset", "reboot", "replace", ""};
	static const char *const reasons[] = {"GpuReset", "Reboot", "Replace", ""};
	char text[HF_DEVICE_REASON_MAX], all[3 * HF_DEVICE_REASON_MAX];

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(classes); i++) {
		hf_device_reason(classes[i], text);
		assert_string_equal(text, reasons[i]);
		hf_device_class(reasons[i], text);
		assert_string_equal(text, classes[i]);
	}
	hf_device_reason(NULL, text);
	assert_string_equal(text, "");
	memset(all, 'A', sizeof(all) - 1);
	all[sizeof(all) - 1] = '\0';
	hf_device_class(all, text);
	assert_true(strlen(text) < sizeof(text));
	hf_device_reason(all, text);
	assert_int_equal(strlen(text), sizeof(text) - 1);
}

static void ranks_are_read_as_they_were_written(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_rank_report ranks[] = {
		{.ns = "team",
		 .pod = "a-worker-0",
		 .uid = "u0",
		 .rank = 3,
		 .group = "tp-0",
		 .state = HF_RANK_STALLED,
		 .step = 120,
		 .total = 200,
		 .own_us = 31000,
		 .advanced_at = T0,
		 .heard_at = T0 + HF_SECOND},
		{.pod = "b",
		 .rank = -1,
		 .state = HF_RANK_ADVANCING,
		 .advanced_at = HF_TIME_NONE,
		 .heard_at = HF_TIME_NONE},
	};
	struct hf_device_health health = {.observed_at = T0,
					  .driver_at = HF_TIME_NONE,
					  .evidence_at = HF_TIME_NONE,
					  .ranks = {ranks, 2}};
	struct hf_device_health again;

	read_status(hf_device_health_status(&health), arena, &again);
	assert_int_equal(again.ranks.len, 2);
	assert_string_equal(again.ranks.items[0].pod, "a-worker-0");
	assert_string_equal(again.ranks.items[0].group, "tp-0");
	assert_string_equal(again.ranks.items[0].state, "Stalled");
	assert_int_equal(again.ranks.items[0].rank, 3);
	assert_int_equal(again.ranks.items[0].step, 120);
	assert_int_equal(again.ranks.items[0].own_us, 31000);
	assert_true(again.ranks.items[0].advanced_at == T0);
	assert_true(again.ranks.items[0].heard_at == T0 + HF_SECOND);
	assert_int_equal(again.ranks.items[1].rank, -1);
	assert_null(again.ranks.items[1].group);
	assert_true(again.ranks.items[1].advanced_at == HF_TIME_NONE);
}

static void fences_are_read_as_they_were_written(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_fence_report fences[] = {
		{.ns = "team", .pod = "a-worker-0", .uid = "u0", .seconds = 50}};
	struct hf_device_health health = {.observed_at = T0,
					  .driver_at = HF_TIME_NONE,
					  .evidence_at = HF_TIME_NONE,
					  .fences = {fences, 1}};
	struct hf_device_health again;

	read_status(hf_device_health_status(&health), arena, &again);
	assert_int_equal(again.fences.len, 1);
	assert_string_equal(again.fences.items[0].pod, "a-worker-0");
	assert_string_equal(again.fences.items[0].uid, "u0");
	assert_int_equal(again.fences.items[0].seconds, 50);
}

static void read_text(const char *text, struct hf_arena *arena, struct hf_device_health *ret_health)
{
	struct hf_json *status = NULL;
	struct hf_error err;

	assert_ok(hf_json_parse(text, strlen(text), NULL, &status, &err), &err);
	read_status(status, arena, ret_health);
}

static void processes_are_read_with_their_limits(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_device_health health;
	const struct hf_process_report *p;

	(void)state;
	read_text("{\"processes\":[{\"namespace\":\"n\",\"pod\":\"p\",\"uid\":\"u\",\"job\":\"j\","
		  "\"generation\":3,\"attempt\":1,\"ordinal\":2,\"phase\":\"Ended\",\"code\":137,"
		  "\"signal\":9,\"cause\":\"Killed\",\"message\":\"last\",\"step\":120,"
		  "\"savedStep\":100,\"time\":\"2023-11-14T22:13:20.000000Z\"},"
		  "{\"uid\":\"v\",\"generation\":-1,\"attempt\":\"1\",\"code\":256,\"signal\":0,"
		  "\"step\":-5,\"phase\":7,\"time\":\"now\"},[],null]}",
		  arena, &health);
	p = health.processes.items;
	assert_string_equal(p[0].pod, "p");
	assert_string_equal(p[0].job, "j");
	assert_string_equal(p[0].phase, "Ended");
	assert_int_equal(p[0].generation, 3);
	assert_int_equal(p[0].attempt, 1);
	assert_int_equal(p[0].ordinal, 2);
	assert_int_equal(p[0].code, 137);
	assert_int_equal(p[0].signal, 9);
	assert_string_equal(p[0].cause, "Killed");
	assert_string_equal(p[0].message, "last");
	assert_int_equal(p[0].step, 120);
	assert_int_equal(p[0].saved_step, 100);
	assert_true(p[0].at == T0);
	/* A number that is out of range or of a wrong type counts as absent. */
	assert_int_equal(p[1].generation, -1);
	assert_int_equal(p[1].attempt, -1);
	assert_int_equal(p[1].code, -1);
	assert_int_equal(p[1].signal, -1);
	assert_int_equal(p[1].step, 0);
	assert_null(p[1].phase);
	assert_true(p[1].at == HF_TIME_NONE);
}

static void no_more_processes_are_read_than_a_node_can_have(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)1 << 20);
	struct hf_device_health health;

	(void)state;
	hf_strbuf_addstr(&text, "{\"processes\":[");
	for (int i = 0; i < 1000; i++)
		hf_strbuf_addf(&text, "%s{\"uid\":\"u%d\"}", i > 0 ? "," : "", i);
	hf_strbuf_addstr(&text, "]}");
	read_text(text.data, arena, &health);
	assert_true(health.processes.len <= HF_DEVICE_HEALTH_PROCESSES_MAX);
	/* A message that is too long counts as absent. */
	hf_strbuf_clear(&text);
	hf_strbuf_addstr(&text, "{\"processes\":[{\"uid\":\"u\",\"message\":\"");
	for (int i = 0; i < 513; i++)
		hf_strbuf_addch(&text, 'x');
	hf_strbuf_addstr(&text, "\"}]}");
	read_text(text.data, arena, &health);
	assert_int_equal(health.processes.len, 1);
	assert_null(health.processes.items[0].message);
}

static bool is_asked(const char *annotations, const char *wanted)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	HF_AUTO_DOC doc = NULL;

	hf_strbuf_addf(&text, "{'metadata':{'annotations':{%s}}}", annotations);
	doc = json_doc_of(text.data);
	return hf_report_is_asked(doc, wanted);
}

static void a_request_for_a_later_report_is_enough(void **state)
{
	(void)state;
	assert_true(is_asked("'holdfast.dev/report':'n-1 T 10'", "n-1 T 10"));
	assert_true(is_asked("'holdfast.dev/report':'n-1 T 16'", "n-1 T 10"));
	assert_false(is_asked("'holdfast.dev/report':'n-1 T 9'", "n-1 T 10"));
	assert_false(is_asked("'holdfast.dev/report':'n-1 U 10'", "n-1 T 10"));
	assert_false(is_asked("'holdfast.dev/report':'n-1 T 9999'", "n-1 T 10"));
	assert_false(is_asked("'holdfast.dev/report':'n-1 T'", "n-1 T 10"));
	assert_false(is_asked("'holdfast.dev/report':''", "n-1 T 10"));
	assert_false(is_asked("", "n-1 T 10"));
	assert_false(hf_report_is_asked(NULL, "n-1 T 10"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_for_a_later_report_is_enough),
		cmocka_unit_test(processes_are_read_with_their_limits),
		cmocka_unit_test(no_more_processes_are_read_than_a_node_can_have),
		cmocka_unit_test(ranks_are_read_as_they_were_written),
		cmocka_unit_test(fences_are_read_as_they_were_written),
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_the_object_goes_with_its_node),
		cmocka_unit_test(test_no_more_is_written_than_the_schema_takes),
		cmocka_unit_test(test_the_end_of_the_last_act_is_read),
		cmocka_unit_test(test_a_well_node_takes_back_what_was_said_of_a_sick_one),
		cmocka_unit_test(test_devices_that_no_pod_is_given_are_named),
		cmocka_unit_test(test_broken_documents_have_no_fields),
		cmocka_unit_test(test_classes_are_reasons_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
