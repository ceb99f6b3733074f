/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/remediation.h"

#include "base/str.h"
#include "harness/test.h"
#include "json/patch.h"

#include <string.h>

#define ARENA_BYTES ((size_t)1 << 20)
#define T0 (1700000000 * HF_SECOND)
#define NONCE "00112233445566778899aabbccddeeff"

static struct hf_remediation_device devices[] = {{.id = "0000:1a:00.0", .uuid = "GPU-1"},
						 {.uuid = "GPU-2"}};

static struct hf_remediation_spec reset_spec(void)
{
	return (struct hf_remediation_spec){
		.node = "n1",
		.rung = "reset-device",
		.devices = {devices, 2},
		.fault = {.cls = "gpu-reset", .code = 79, .text = "NVRM: Xid 79", .at = T0},
		.boot_id = "b-1",
		.attempt = 3,
		.nonce = NONCE,
		.policy = "p",
		.requested_by = "policy",
		.deadline_seconds = 600,
		.dry_run = true,
	};
}

static struct hf_remediation_status full_status(void)
{
	static struct hf_remediation_condition conditions[] = {
		{.type = "Quarantined",
		 .status = "True",
		 .reason = "Tainted",
		 .message = "taint is on the node",
		 .since = T0},
	};
	static struct hf_remediation_holder holders[] = {
		{.pid = 4711, .comm = "python", .pod = "team/a-worker-0"},
		{.pid = 12, .comm = "dcgm"},
	};
	static struct hf_field_pair labels[] = {
		{.key = "nvidia.com/gpu.deploy.dcgm", .value = "true"},
		{.key = "nvidia.com/gpu.deploy.device-plugin", .value = ""}};
	static struct hf_field_pair modes[] = {{.key = "GPU-1", .value = "on"}};

	return (struct hf_remediation_status){
		.phase = "Restoring",
		.message = "putting labels back",
		.outcome = "Succeeded",
		.conditions = {conditions, 1},
		.approval = {.at = T0 + HF_SECOND, .boot_id = "b-1", .node_version = "17"},
		.act = {.nonce = NONCE,
			.actor = "a1",
			.started_at = T0 + 2 * HF_SECOND,
			.ended_at = T0 + 7 * HF_SECOND,
			.boot_id = "b-1",
			.tool = "nvidia-smi",
			.has_exit_code = true,
			.exit_code = 0,
			.message = "GPU was reset",
			.holders = {holders, 2}},
		.saved = {.labels = {labels, 2},
			  .has_cordoned = true,
			  .cordoned = false,
			  .persistence = {modes, 1},
			  .external = {"fix.example/v1", "Fix", "fixes"}},
		.proof = {.boot_id = "b-1", .text = "same UUID", .at = T0 + 9 * HF_SECOND},
	};
}

/* Takes both. */
static struct hf_json *merged(struct hf_json *object, struct hf_json *patch)
{
	struct hf_json *result = hf_json_merge_patch(object, patch);

	hf_json_unref(object);
	hf_json_unref(patch);
	return result;
}

/* Returns the object that an API server stores after the create and one patch of the status. */
static struct hf_json *stored(const struct hf_remediation_spec *spec,
			      const struct hf_remediation_status *status)
{
	struct hf_json *object = hf_remediation_object(spec);

	return status == NULL ? object : merged(object, hf_remediation_status_patch("41", status));
}

/* Takes the object. */
static int read_object(struct hf_json *object, struct hf_arena *arena, struct hf_remediation *ret,
		       struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_JSON_BYTES_MAX);
	HF_AUTO_DOC doc = NULL;

	hf_json_write(object, HF_JSON_COMPACT, &sb);
	hf_json_unref(object);
	doc = hf_doc_from_text(sb.data, sb.len);
	return hf_remediation_read(doc, arena, ret, err);
}

static void the_spec_is_read_as_it_was_written(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_remediation_spec spec = reset_spec();
	struct hf_remediation got;
	struct hf_error err;

	(void)state;
	assert_ok(read_object(stored(&spec, NULL), arena, &got, &err), &err);
	assert_string_equal(got.name, "n1-3");
	assert_string_equal(got.spec.node, "n1");
	assert_string_equal(got.spec.rung, "reset-device");
	assert_int_equal(got.spec.devices.len, 2);
	assert_string_equal(got.spec.devices.items[0].id, "0000:1a:00.0");
	assert_string_equal(got.spec.devices.items[0].uuid, "GPU-1");
	assert_null(got.spec.devices.items[1].id);
	assert_string_equal(got.spec.fault.cls, "gpu-reset");
	assert_int_equal(got.spec.fault.code, 79);
	assert_int_equal(got.spec.fault.at, T0);
	assert_string_equal(got.spec.boot_id, "b-1");
	assert_int_equal(got.spec.attempt, 3);
	assert_string_equal(got.spec.nonce, NONCE);
	assert_string_equal(got.spec.policy, "p");
	assert_string_equal(got.spec.requested_by, "policy");
	assert_int_equal(got.spec.deadline_seconds, 600);
	assert_true(got.spec.dry_run);
	assert_false(got.spec.cancel);
	assert_false(got.deleting);
	assert_null(got.status.phase);
	assert_int_equal(got.status.act.started_at, HF_TIME_NONE);
	assert_int_equal(got.status.approval.at, HF_TIME_NONE);
	assert_int_equal(got.status.proof.at, HF_TIME_NONE);
}

static void the_status_is_read_as_it_was_written(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_remediation_spec spec = reset_spec();
	struct hf_remediation_status status = full_status();
	struct hf_remediation got;
	struct hf_error err;

	(void)state;
	assert_ok(read_object(stored(&spec, &status), arena, &got, &err), &err);
	assert_string_equal(got.resource_version, "41");
	assert_string_equal(got.status.phase, "Restoring");
	assert_string_equal(got.status.message, "putting labels back");
	assert_string_equal(got.status.outcome, "Succeeded");
	assert_int_equal(got.status.conditions.len, 1);
	assert_string_equal(got.status.conditions.items[0].reason, "Tainted");
	assert_int_equal(got.status.conditions.items[0].since, T0);
	assert_int_equal(got.status.approval.at, T0 + HF_SECOND);
	assert_string_equal(got.status.approval.boot_id, "b-1");
	assert_string_equal(got.status.approval.node_version, "17");
	assert_string_equal(got.status.act.nonce, NONCE);
	assert_string_equal(got.status.act.actor, "a1");
	assert_int_equal(got.status.act.started_at, T0 + 2 * HF_SECOND);
	assert_int_equal(got.status.act.ended_at, T0 + 7 * HF_SECOND);
	assert_true(got.status.act.has_exit_code);
	assert_int_equal(got.status.act.exit_code, 0);
	assert_int_equal(got.status.act.holders.len, 2);
	assert_int_equal(got.status.act.holders.items[0].pid, 4711);
	assert_string_equal(got.status.act.holders.items[0].pod, "team/a-worker-0");
	assert_null(got.status.act.holders.items[1].pod);
	assert_int_equal(got.status.saved.labels.len, 2);
	assert_string_equal(got.status.saved.labels.items[1].value, "");
	assert_true(got.status.saved.has_cordoned);
	assert_false(got.status.saved.cordoned);
	assert_string_equal(got.status.saved.persistence.items[0].value, "on");
	assert_string_equal(got.status.saved.external.api_version, "fix.example/v1");
	assert_string_equal(got.status.saved.external.kind, "Fix");
	assert_string_equal(got.status.saved.external.ns, "fixes");
	assert_string_equal(got.status.proof.text, "same UUID");
}

/* A merge patch keeps members that it does not name, so the patch of an empty status names every
 * member. */
static void an_empty_status_takes_back_the_former_one(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_remediation_spec spec = reset_spec();
	struct hf_remediation_status full = full_status();
	struct hf_remediation_status empty = {
		.phase = "Draining",
		.approval = {.at = HF_TIME_NONE},
		.act = {.started_at = HF_TIME_NONE, .ended_at = HF_TIME_NONE},
		.proof = {.at = HF_TIME_NONE}};
	struct hf_json *patch = hf_remediation_status_patch("42", &empty);
	struct hf_json *object = merged(stored(&spec, &full), patch);
	struct hf_remediation got;
	struct hf_error err;

	(void)state;
	assert_ok(read_object(object, arena, &got, &err), &err);
	assert_string_equal(got.status.phase, "Draining");
	assert_null(got.status.outcome);
	assert_int_equal(got.status.approval.at, HF_TIME_NONE);
	assert_int_equal(got.status.act.started_at, HF_TIME_NONE);
	assert_false(got.status.act.has_exit_code);
	assert_int_equal(got.status.act.holders.len, 0);
	assert_int_equal(got.status.saved.labels.len, 0);
	assert_false(got.status.saved.has_cordoned);
	assert_int_equal(got.status.proof.at, HF_TIME_NONE);
}

static void the_actor_writes_its_part_alone(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_remediation_spec spec = reset_spec();
	struct hf_remediation_status status = full_status();
	const struct hf_remediation_act act = {
		.nonce = NONCE, .started_at = T0, .ended_at = HF_TIME_NONE, .boot_id = "b-1"};
	const struct hf_field_pair mode = {.key = "GPU-2", .value = "off"};
	const struct hf_remediation_act_write write = {.resource_version = "43",
						       .phase = "Acting",
						       .act = &act,
						       .persistence = &mode,
						       .persistence_len = 1};
	struct hf_json *patch = hf_remediation_act_patch(&write);
	struct hf_remediation got;
	struct hf_error err;

	(void)state;
	assert_int_equal(hf_json_len(hf_json_path(patch, "status", NULL)), 3);
	assert_int_equal(hf_json_len(patch), 2);
	assert_ok(read_object(merged(stored(&spec, &status), patch), arena, &got, &err), &err);
	assert_string_equal(got.resource_version, "43");
	assert_string_equal(got.status.phase, "Acting");
	assert_int_equal(got.status.act.started_at, T0);
	assert_int_equal(got.status.act.ended_at, HF_TIME_NONE);
	assert_null(got.status.act.tool);
	assert_int_equal(got.status.act.holders.len, 0);
	/* The operator's part stays. */
	assert_string_equal(got.status.approval.node_version, "17");
	assert_int_equal(got.status.saved.labels.len, 2);
	assert_int_equal(got.status.saved.persistence.len, 2);
}

static void texts_and_lists_are_cut_to_the_schema(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	static struct hf_remediation_holder holders[HF_REMEDIATION_HOLDERS_MAX + 5];
	static char message[HF_REMEDIATION_MESSAGE_MAX + 9];
	struct hf_remediation_spec spec = reset_spec();
	struct hf_remediation_status status = full_status();
	struct hf_remediation got;
	struct hf_error err;

	(void)state;
	memset(message, 'x', sizeof(message) - 1);
	/* The limit falls inside a character of two bytes, so the text is cut before this
	 * character. */
	message[HF_REMEDIATION_MESSAGE_MAX - 1] = (char)0xC3;
	message[HF_REMEDIATION_MESSAGE_MAX] = (char)0xA4;
	status.act.message = message;
	status.act.holders.items = holders;
	status.act.holders.len = HF_ARRAY_LEN(holders);
	assert_ok(read_object(stored(&spec, &status), arena, &got, &err), &err);
	assert_int_equal(got.status.act.holders.len, HF_REMEDIATION_HOLDERS_MAX);
	assert_int_equal(strlen(got.status.act.message), HF_REMEDIATION_MESSAGE_MAX - 1);
}

#define SPEC                                                                                       \
	"\"metadata\":{\"name\":\"n1-1\"},\"spec\":{\"node\":\"n1\",\"rung\":\"reboot\","          \
	"\"attempt\":1,\"nonce\":\"" NONCE "\"}"

/* A field that cannot be read must not count as absent. */
static void a_wrong_field_is_an_error(void **state)
{
	static const struct {
		const char *text, *word;
	} bad[] = {
		{"", ""},
		{"{", ""},
		{"[]", ""},
		{"{}", "metadata"},
		{"{\"metadata\":{\"name\":\"n\"}}", "spec"},
		{"{\"metadata\":{\"name\":\"n\"},\"spec\":{\"node\":\"\",\"rung\":\"reboot\","
		 "\"attempt\":1,\"nonce\":\"" NONCE "\"}}",
		 "spec.node"},
		{"{\"metadata\":{\"name\":\"n\"},\"spec\":{\"node\":\"n\",\"rung\":\"reboot\","
		 "\"attempt\":1,\"nonce\":\"" NONCE "0\"}}",
		 "spec.nonce"},
		{"{\"metadata\":{\"name\":\"n\"},\"spec\":{\"node\":\"n\",\"rung\":\"reboot\","
		 "\"attempt\":1,\"nonce\":\"0011\"}}",
		 "spec.nonce"},
		{"{\"metadata\":{\"name\":\"n\"},\"spec\":{\"node\":\"n\",\"rung\":\"reboot\","
		 "\"attempt\":0,\"nonce\":\"" NONCE "\"}}",
		 "spec.attempt"},
		{"{" SPEC ",\"status\":7}", "status"},
		{"{" SPEC ",\"status\":{\"phase\":7}}", "status.phase"},
		{"{" SPEC ",\"status\":{\"act\":[]}}", "status.act"},
		{"{" SPEC ",\"status\":{\"act\":{\"startedAt\":7}}}", "status.act.startedAt"},
		{"{" SPEC ",\"status\":{\"act\":{\"startedAt\":\"soon\"}}}",
		 "status.act.startedAt"},
		{"{" SPEC ",\"status\":{\"act\":{\"exitCode\":\"0\"}}}", "status.act.exitCode"},
		{"{" SPEC ",\"status\":{\"approval\":{\"bootID\":true}}}",
		 "status.approval.bootID"},
	};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		HF_AUTO_DOC doc = hf_doc_from_text(bad[i].text, strlen(bad[i].text));
		struct hf_remediation got;
		struct hf_error err;

		assert_int_not_equal(hf_remediation_read(doc, arena, &got, &err), 0);
		if (strstr(err.text, bad[i].word) == NULL)
			fail_msg("%s: %s", bad[i].text, err.text);
	}
}

static void unknown_fields_and_nulls_are_passed_over(void **state)
{
	static const char text[] = "{\"metadata\":{\"name\":\"n1-1\",\"deletionTimestamp\":"
				   "\"2026-01-01T00:00:00Z\"},\"spec\":{\"node\":\"n1\",\"rung\":"
				   "\"reboot\",\"attempt\":1,\"nonce\":\"" NONCE
				   "\",\"later\":{\"a\":[1]},\"cancel\":true},\"status\":{\"act\":"
				   "{\"startedAt\":null,\"later\":1}}}";
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));
	struct hf_remediation got;
	struct hf_error err;

	(void)state;
	assert_ok(hf_remediation_read(doc, arena, &got, &err), &err);
	assert_true(got.deleting);
	assert_true(got.spec.cancel);
	assert_int_equal(got.spec.deadline_seconds, HF_REMEDIATION_DEADLINE_DEFAULT);
	assert_int_equal(got.status.act.started_at, HF_TIME_NONE);
}

/* The pod has the form that the admission policy (deploy/mend/policy.yaml) demands. */
static void the_pod_has_the_form_of_the_policy(void **state)
{
	struct hf_remediation_pod pod = {.name = "n1-3",
					 .uid = "u-1",
					 .node = "n1",
					 .nonce = NONCE,
					 .image = "holdfast:1",
					 .deadline_seconds = 600};
	HF_AUTO_JSON reset = hf_remediation_pod_json(&pod);
	static const char *const words[] = {"dcgmi", "--root=/"};
	struct hf_json *reboot, *diagnosed;
	const struct hf_json *container =
		hf_json_item(hf_json_path(reset, "spec", "containers", NULL), 0);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_JSON_BYTES_MAX);

	(void)state;
	assert_string_equal(hf_json_path_str(reset, "metadata", "name", NULL), "mend-n1-3");
	assert_string_equal(hf_json_path_str(reset, "metadata", "namespace", NULL),
			    "holdfast-mend");
	assert_string_equal(hf_json_path_str(reset, "spec", "nodeName", NULL), "n1");
	assert_string_equal(hf_json_path_str(reset, "spec", "serviceAccountName", NULL),
			    "holdfast-mender");
	assert_string_equal(hf_json_path_str(reset, "spec", "restartPolicy", NULL), "Never");
	assert_int_equal(hf_json_i64(hf_json_path(reset, "spec", "activeDeadlineSeconds", NULL), 0),
			 600);
	hf_json_write(hf_json_get(container, "command"), HF_JSON_COMPACT, &sb);
	assert_string_equal(sb.data, "[\"holdfast\",\"mend-node\",\"--intent\",\"n1-3\"]");
	hf_strbuf_clear(&sb);
	/* The pod of a reset gets no argument with which it could reboot the machine. */
	hf_json_write(hf_json_get(container, "args"), HF_JSON_COMPACT, &sb);
	assert_string_equal(sb.data, "[\"--root=/host\",\"--proc=/proc\",\"--sys=/sys\"]");
	hf_strbuf_clear(&sb);
	/* Words are never flags of the actor. */
	pod.words = words;
	pod.words_len = HF_ARRAY_LEN(words);
	pod.diagnostic_seconds = 90;
	diagnosed = hf_remediation_pod_json(&pod);
	hf_json_write(
		hf_json_path(hf_json_item(hf_json_path(diagnosed, "spec", "containers", NULL), 0),
			     "args", NULL),
		HF_JSON_COMPACT, &sb);
	assert_string_equal(sb.data, "[\"--root=/host\",\"--proc=/proc\",\"--sys=/sys\","
				     "\"--diagnostic-timeout=90s\",\"--\",\"dcgmi\",\"--root=/\"]");
	hf_strbuf_clear(&sb);
	hf_json_unref(diagnosed);
	pod.words_len = 0;
	pod.reboots = pod.arms_watchdog = true;
	pod.only = "logind";
	reboot = hf_remediation_pod_json(&pod);
	container = hf_json_item(hf_json_path(reboot, "spec", "containers", NULL), 0);
	hf_json_write(hf_json_get(container, "args"), HF_JSON_COMPACT, &sb);
	assert_string_equal(sb.data, "[\"--root=/host\",\"--proc=/proc\",\"--init-pid=1\","
				     "\"--sysrq=/proc/sysrq-trigger\","
				     "\"--watchdog=/dev/watchdog\",\"--only\",\"logind\"]");
	hf_json_unref(reboot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_spec_is_read_as_it_was_written),
		cmocka_unit_test(the_status_is_read_as_it_was_written),
		cmocka_unit_test(an_empty_status_takes_back_the_former_one),
		cmocka_unit_test(the_actor_writes_its_part_alone),
		cmocka_unit_test(texts_and_lists_are_cut_to_the_schema),
		cmocka_unit_test(a_wrong_field_is_an_error),
		cmocka_unit_test(unknown_fields_and_nulls_are_passed_over),
		cmocka_unit_test(the_pod_has_the_form_of_the_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
