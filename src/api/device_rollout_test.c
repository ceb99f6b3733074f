/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/device_rollout.h"

#include "base/str.h"
#include "harness/json_text.h"
#include "harness/test.h"
#include "json/patch.h"

#include <stdio.h>
#include <string.h>

#define ARENA_BYTES ((size_t)1 << 20)
#define T0 (1700000000 * HF_SECOND)
#define DRIVER "'change':{'daemonSet':{'namespace':'gpu','name':'driver'}}"
#define CANARY                                                                                     \
	"'template':{'apiVersion':'batch/v1','kind':'Job','metadata':{'namespace':'team-a'},"      \
	"'spec':{'template':{'spec':{}}}}"

/* In these texts ' stands for ". */
static int read_spec(const char *spec, struct hf_arena *arena, struct hf_rollout_spec *ret_spec,
		     struct hf_error *err)
{
	char text[2048];
	HF_AUTO_DOC doc = NULL;

	snprintf(text, sizeof(text), "{'metadata':{'name':'r'},'spec':{%s}}", spec);
	doc = json_doc_of(text);
	return hf_rollout_spec_read(doc, arena, ret_spec, err);
}

static void a_spec_gets_its_defaults(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_rollout_spec spec;
	struct hf_error err;

	(void)state;
	assert_ok(read_spec(DRIVER, arena, &spec, &err), &err);
	assert_string_equal(spec.daemon_set.ns, "gpu");
	assert_string_equal(spec.daemon_set.name, "driver");
	assert_null(spec.label.key);
	assert_int_equal(spec.waves_len, 4);
	assert_int_equal(spec.waves[0].count, 1);
	assert_int_equal(spec.waves[1].percent, 5);
	assert_int_equal(spec.waves[3].percent, 100);
	assert_int_equal(spec.at_once, 1);
	assert_int_equal(spec.soak, 600 * HF_SECOND);
	assert_string_equal(spec.empty, "Save");
	assert_int_equal(spec.empty_for, HF_HOUR);
	assert_int_equal(spec.proof.within, 900 * HF_SECOND);
	assert_false(spec.rolls_back);
	assert_int_equal(spec.failures_max, 0);
	assert_null(spec.group_by);
	assert_false(spec.has_selector);
	assert_false(spec.proof.canary.wanted);
	assert_ok(read_spec(DRIVER ",'proof':{'canary':{" CANARY "}}", arena, &spec, &err), &err);
	assert_true(spec.proof.canary.wanted);
	assert_int_equal(spec.proof.canary.within, 600 * HF_SECOND);
	assert_int_equal(spec.proof.canary.slower_percent, -1);
}

static void every_field_of_a_spec_is_read(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_rollout_spec spec;
	struct hf_error err;

	(void)state;
	assert_ok(
		read_spec(
			"'change':{'nodeLabel':{'key':'x.y/driver','value':''}},"
			"'nodeSelector':{'matchLabels':{'a':'b'}},'waves':[2,'10','50%'],"
			"'groupBy':'zone','atOnce':3,'soakSeconds':0,'empty':'Wait',"
			"'emptySeconds':60,'proof':{'seconds':30,'driverVersion':'570.1',"
			"'resources':['nvidia.com/gpu'],'canary':{" CANARY
			",'seconds':20,'slowerPercent':0}},'onFailure':'Rollback','maxFailures':2,"
			"'windows':[{'days':['Monday'],'start':'22:00','end':'04:00'}],"
			"'paused':true,'cancel':true",
			arena, &spec, &err),
		&err);
	assert_null(spec.daemon_set.name);
	assert_string_equal(spec.label.key, "x.y/driver");
	assert_string_equal(spec.label.value, "");
	assert_true(spec.has_selector);
	assert_int_equal(spec.waves_len, 3);
	assert_int_equal(spec.waves[1].count, 10);
	assert_int_equal(spec.waves[1].percent, -1);
	assert_int_equal(spec.waves[2].percent, 50);
	assert_string_equal(spec.group_by, "zone");
	assert_int_equal(spec.at_once, 3);
	assert_int_equal(spec.soak, 0);
	assert_string_equal(spec.empty, "Wait");
	assert_int_equal(spec.empty_for, HF_MINUTE);
	assert_int_equal(spec.proof.within, 30 * HF_SECOND);
	assert_string_equal(spec.proof.driver_version, "570.1");
	assert_int_equal(spec.proof.resources.len, 1);
	assert_string_equal(spec.proof.canary.api_version, "batch/v1");
	assert_string_equal(spec.proof.canary.kind, "Job");
	assert_string_equal(spec.proof.canary.ns, "team-a");
	assert_int_equal(spec.proof.canary.within, 20 * HF_SECOND);
	assert_int_equal(spec.proof.canary.slower_percent, 0);
	assert_true(spec.rolls_back);
	assert_int_equal(spec.failures_max, 2);
	assert_int_equal(spec.windows_len, 1);
	assert_int_equal(spec.windows[0].days, 2);
	assert_true(spec.paused);
	assert_true(spec.cancel);
}

static void a_wrong_spec_names_its_field(void **state)
{
	static const struct {
		const char *spec, *field;
	} rows[] = {
		{"'waves':['1']", "spec.change"},
		{"'change':{}", "spec.change"},
		{"'change':{'daemonSet':{'namespace':'a','name':'b'},"
		 "'nodeLabel':{'key':'a','value':'b'}}",
		 "spec.change"},
		{"'change':{'daemonSet':{'name':'b'}}", "spec.change.daemonSet.namespace"},
		{"'change':{'nodeLabel':{'key':'a b','value':'b'}}", "spec.change.nodeLabel.key"},
		{"'change':{'nodeLabel':{'key':'a','value':'b c'}}", "spec.change.nodeLabel.value"},
		{DRIVER ",'waves':[]", "spec.waves"},
		{DRIVER ",'waves':'1'", "spec.waves"},
		{DRIVER ",'waves':[0]", "spec.waves[0]"},
		{DRIVER ",'waves':['1','0%']", "spec.waves[1]"},
		{DRIVER ",'waves':['101%']", "spec.waves[0]"},
		{DRIVER ",'waves':['-1']", "spec.waves[0]"},
		{DRIVER ",'waves':['%']", "spec.waves[0]"},
		{DRIVER ",'waves':['10000000000000000']", "spec.waves[0]"},
		{DRIVER ",'waves':[true]", "spec.waves[0]"},
		{DRIVER ",'waves':['50%','25%']", "spec.waves[1]"},
		{DRIVER ",'waves':[5,'10%',5]", "spec.waves[2]"},
		{DRIVER ",'atOnce':0", "spec.atOnce"},
		{DRIVER ",'empty':'Maybe'", "spec.empty"},
		{DRIVER ",'onFailure':'Pray'", "spec.onFailure"},
		{DRIVER ",'groupBy':'a b'", "spec.groupBy"},
		{DRIVER ",'proof':{'resources':['a b']}", "spec.proof.resources[0]"},
		{DRIVER ",'proof':{'canary':{}}", "spec.proof.canary.template"},
		{DRIVER ",'proof':{'canary':{'template':{}}}", "spec.proof.canary.template.kind"},
		{DRIVER ",'proof':{'canary':{" CANARY ",'seconds':9}}",
		 "spec.proof.canary.seconds"},
		{DRIVER ",'proof':{'canary':{" CANARY ",'slowerPercent':-1}}",
		 "spec.proof.canary.slowerPercent"},
		{DRIVER ",'proof':{'canary':{" CANARY ",'slower':1}}", "spec.proof.canary.slower"},
		{DRIVER ",'windows':[{'start':'10:00','end':'10:00'}]", "spec.windows[0].end"},
		{DRIVER ",'windows':[{'start':'24:00','end':'10:00'}]", "spec.windows[0].start"},
		{DRIVER ",'windows':[{'days':['Mon'],'start':'1:00','end':'10:00'}]",
		 "spec.windows[0].days[0]"},
		{DRIVER ",'wavs':['1']", "spec.wavs"},
	};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_rollout_spec spec;
	struct hf_error err;

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		assert_int_equal(read_spec(rows[i].spec, arena, &spec, &err), HF_E_INVALID);
		if (strncmp(err.text, rows[i].field, strlen(rows[i].field)) != 0 ||
		    err.text[strlen(rows[i].field)] != ':')
			fail_msg("%s: '%s', expected %s", rows[i].spec, err.text, rows[i].field);
	}
}

static struct hf_rollout_status full_status(void)
{
	static struct hf_field_pair resources[] = {{.key = "nvidia.com/gpu", .value = "8"}};
	static struct hf_rollout_node nodes[] = {
		{.name = "n1",
		 .phase = "Restoring",
		 .outcome = "Done",
		 .since = T0,
		 .changed_at = T0 - HF_MINUTE,
		 .previous = "",
		 .cordoned_by_us = true,
		 .was_well = true,
		 .was_away = true,
		 .tries = 2,
		 .before = {.resources = {resources, 1},
			    .driver_version = "565",
			    .boot_id = "b1",
			    .canary = {.step_us = 101, .run_ms = 9000}},
		 .canary = {.job = "a/canary",
			    .times = {.step_us = 130, .run_ms = 12000},
			    .failed = true},
		 .message = "proved"},
		{.name = "n2", .phase = "Waiting", .since = T0, .changed_at = HF_TIME_NONE},
	};
	static struct hf_rollout_condition conditions[] = {{.type = "Halted",
							    .status = "True",
							    .reason = "NodeFailed",
							    .message = "n3: no GPU",
							    .since = T0}};

	return (struct hf_rollout_status){
		.phase = "Rolling",
		.message = "wave 2 of 4",
		.wave = 2,
		.started_at = T0,
		.soak_since = HF_TIME_NONE,
		.target_revision = "b7c",
		.from_revision = "a11",
		.counts = {.selected = 100, .changed = 1, .failed = 3, .skipped = 4},
		.changed = {.nodes = 1,
			    .device_minutes = 80,
			    .faults = 1,
			    .restarts = 2,
			    .step_nodes = 1},
		.unchanged = {.nodes = 99, .device_minutes = 900, .faults = 5},
		.step_permille = 1040,
		.nodes = {nodes, 2},
		.conditions = {conditions, 1},
	};
}

/* The object that an API server stores after one patch of the status. */
static struct hf_doc *stored(const struct hf_rollout_status *status)
{
	HF_AUTO_DOC doc = json_doc_of("{'metadata':{'name':'r','uid':'u','finalizers':["
				      "'holdfast.dev/rollout']},'spec':{},'status':{'phase':'Old',"
				      "'soakSince':'2023-01-01T00:00:00Z'}}");
	HF_AUTO_JSON patch = hf_rollout_status_patch("41", status);

	return hf_doc_from_json(hf_json_merge_patch(hf_doc_json(doc), patch));
}

static void the_status_is_read_as_it_was_written(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_rollout_status status = full_status();
	HF_AUTO_DOC doc = stored(&status);
	struct hf_rollout r;
	const struct hf_rollout_node *n;
	struct hf_error err;

	(void)state;
	assert_ok(hf_rollout_read(doc, arena, &r, &err), &err);
	assert_true(r.has_finalizer);
	assert_false(r.deleting);
	assert_string_equal(r.resource_version, "41");
	assert_string_equal(r.status.phase, "Rolling");
	assert_string_equal(r.status.message, "wave 2 of 4");
	assert_int_equal(r.status.wave, 2);
	assert_int_equal(r.status.started_at, T0);
	assert_int_equal(r.status.soak_since, HF_TIME_NONE);
	assert_string_equal(r.status.target_revision, "b7c");
	assert_string_equal(r.status.from_revision, "a11");
	assert_memory_equal(&r.status.counts, &status.counts, sizeof(status.counts));
	assert_memory_equal(&r.status.changed, &status.changed, sizeof(status.changed));
	assert_memory_equal(&r.status.unchanged, &status.unchanged, sizeof(status.unchanged));
	assert_int_equal(r.status.nodes.len, 2);
	n = &r.status.nodes.items[0];
	assert_string_equal(n->phase, "Restoring");
	assert_string_equal(n->outcome, "Done");
	assert_int_equal(n->since, T0);
	assert_int_equal(n->changed_at, T0 - HF_MINUTE);
	assert_string_equal(n->previous, "");
	assert_true(n->cordoned_by_us);
	assert_true(n->was_well);
	assert_true(n->was_away);
	assert_int_equal(n->tries, 2);
	assert_int_equal(n->before.resources.len, 1);
	assert_string_equal(n->before.resources.items[0].value, "8");
	assert_string_equal(n->before.driver_version, "565");
	assert_string_equal(n->before.boot_id, "b1");
	assert_int_equal(n->before.canary.step_us, 101);
	assert_int_equal(n->before.canary.run_ms, 9000);
	assert_string_equal(n->canary.job, "a/canary");
	assert_int_equal(n->canary.times.step_us, 130);
	assert_int_equal(n->canary.times.run_ms, 12000);
	assert_true(n->canary.failed);
	assert_null(r.status.nodes.items[1].canary.job);
	assert_int_equal(r.status.step_permille, 1040);
	assert_string_equal(n->message, "proved");
	assert_null(r.status.nodes.items[1].previous);
	assert_int_equal(r.status.nodes.items[1].changed_at, HF_TIME_NONE);
	assert_int_equal(r.status.conditions.len, 1);
	assert_string_equal(r.status.conditions.items[0].reason, "NodeFailed");
}

static void a_phase_of_a_wrong_type_is_an_error(void **state)
{
	static const char *const texts[] = {
		"{'metadata':{'name':'r'},'status':{'phase':7}}",
		"{'metadata':{'name':'r'},'status':{'nodes':[{'name':'n'}]}}",
		"{'metadata':{'name':'r'},'status':{'nodes':{}}}",
		"{'metadata':{}}",
	};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_rollout r;
	struct hf_error err;

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		HF_AUTO_DOC doc = json_doc_of(texts[i]);

		assert_int_equal(hf_rollout_read(doc, arena, &r, &err), HF_E_INVALID);
	}
}

static void long_lists_and_texts_are_cut(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	static struct hf_rollout_node nodes[HF_ROLLOUT_NODES_MAX + 5];
	struct hf_rollout_status status = full_status();
	char message[2 * HF_ROLLOUT_MESSAGE_MAX];
	HF_AUTO_DOC doc = NULL;
	struct hf_rollout r;
	struct hf_error err;

	(void)state;
	memset(message, 'm', sizeof(message));
	message[sizeof(message) - 1] = '\0';
	for (size_t i = 0; i < HF_ARRAY_LEN(nodes); i++)
		nodes[i] = (struct hf_rollout_node){.name = "n",
						    .phase = "Done",
						    .since = T0,
						    .changed_at = HF_TIME_NONE,
						    .message = message};
	status.nodes.items = nodes;
	status.nodes.len = HF_ARRAY_LEN(nodes);
	status.message = message;
	doc = stored(&status);
	assert_ok(hf_rollout_read(doc, arena, &r, &err), &err);
	assert_int_equal(r.status.nodes.len, HF_ROLLOUT_NODES_MAX);
	assert_int_equal(strlen(r.status.message), HF_ROLLOUT_MESSAGE_MAX);
	assert_int_equal(strlen(r.status.nodes.items[0].message), HF_ROLLOUT_MESSAGE_MAX);
}

static void a_mark_is_read_as_it_was_written(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	const struct hf_rollout_mark mark = {.rollout = "r",
					     .uid = "u",
					     .at = T0,
					     .previous = "",
					     .pod = "p",
					     .rolled_back = true};
	HF_AUTO_JSON json = hf_rollout_mark_json(&mark);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);
	struct hf_rollout_mark got;

	(void)state;
	hf_json_write(json, HF_JSON_COMPACT, &sb);
	assert_true(hf_rollout_mark_read(sb.data, arena, &got));
	assert_string_equal(got.rollout, "r");
	assert_string_equal(got.uid, "u");
	assert_int_equal(got.at, T0);
	assert_string_equal(got.previous, "");
	assert_string_equal(got.pod, "p");
	assert_true(got.rolled_back);
	assert_false(hf_rollout_mark_read(NULL, arena, &got));
	assert_false(hf_rollout_mark_read("{}", arena, &got));
	assert_false(hf_rollout_mark_read("r u", arena, &got));
}

static void rollouts_of_one_thing_share_the_key_of_the_mark(void **state)
{
	const struct hf_rollout_spec driver = {.daemon_set = {.ns = "gpu", .name = "driver"}},
				     plugin = {.daemon_set = {.ns = "gpu", .name = "plugin"}},
				     label = {.label = {.key = "x.y/driver", .value = "1"}},
				     newer = {.label = {.key = "x.y/driver", .value = "2"}};
	char a[HF_ROLLOUT_MARK_KEY_MAX], b[HF_ROLLOUT_MARK_KEY_MAX];

	(void)state;
	assert_string_equal(hf_rollout_mark_key(&label, a), hf_rollout_mark_key(&newer, b));
	assert_string_not_equal(hf_rollout_mark_key(&driver, a), hf_rollout_mark_key(&plugin, b));
	assert_string_not_equal(hf_rollout_mark_key(&driver, a), hf_rollout_mark_key(&label, b));
	assert_int_equal(strlen(a), strlen(HF_ROLLOUT_MARK_PREFIX) + 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_spec_gets_its_defaults),
		cmocka_unit_test(every_field_of_a_spec_is_read),
		cmocka_unit_test(a_wrong_spec_names_its_field),
		cmocka_unit_test(the_status_is_read_as_it_was_written),
		cmocka_unit_test(a_phase_of_a_wrong_type_is_an_error),
		cmocka_unit_test(long_lists_and_texts_are_cut),
		cmocka_unit_test(a_mark_is_read_as_it_was_written),
		cmocka_unit_test(rollouts_of_one_thing_share_the_key_of_the_mark),
	};

	return cmocka_run_group_tests_name("device_rollout", tests, NULL, NULL);
}
