/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/device_taint_plan.h"
#include "fleet/device_taint_rule.h"
#include "harness/json_text.h"
#include "harness/test.h"

#include "base/str.h"

#include <string.h>

static struct hf_arena *arena;
static struct hf_device_report devices[3];
static struct hf_dra_device published[2];
static struct hf_dra_slice slice;
static int64_t withheld;

static int64_t count_withheld(void *arg, const char *resource)
{
	(void)arg;
	if (resource != NULL)
		assert_string_equal(resource, "example.com/gpu");
	return withheld;
}

static int setup(void **state)
{
	(void)state;
	arena = hf_arena_create((size_t)1 << 20);
	devices[0] = (struct hf_device_report){.id = "", .kind = "node", .state = "Healthy"};
	devices[1] = (struct hf_device_report){.id = "0000:1a:00.0",
					       .uuid = "GPU-1",
					       .kind = "gpu",
					       .state = "Unhealthy",
					       .cls = "gpu-reset"};
	devices[2] = (struct hf_device_report){
		.id = "0000:1b:00.0", .uuid = "GPU-2", .kind = "gpu", .state = "Healthy"};
	published[0] = (struct hf_dra_device){.name = "gpu-0", .uuid = "GPU-1"};
	published[1] = (struct hf_dra_device){.name = "gpu-1", .uuid = "GPU-2"};
	slice = (struct hf_dra_slice){.driver = "gpu.example.com",
				      .pool = "n1",
				      .generation = 1,
				      .pool_slices = 1,
				      .devices = published,
				      .len = 2};
	withheld = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena = hf_arena_destroy(arena);
	return 0;
}

static struct hf_device_taint_view make_view(const struct hf_device_health *health)
{
	return (struct hf_device_taint_view){.node = "n1",
					     .health = health,
					     .effect = "NoSchedule",
					     .may_create = true,
					     .slices = &slice,
					     .slices_len = 1,
					     .withheld = count_withheld};
}

static struct hf_device_taint_plan plan_of(const struct hf_device_taint_view *view)
{
	struct hf_device_taint_plan plan;

	hf_device_taint_plan(view, arena, &plan);
	return plan;
}

static void a_failed_device_gets_a_rule_and_keeps_it_until_it_is_well(void **state)
{
	const struct hf_device_health health = {.devices = {devices, 3}};
	struct hf_device_taint_view view = make_view(&health);
	struct hf_device_taint_plan plan = plan_of(&view);
	struct hf_device_taint rule;

	(void)state;
	assert_int_equal(plan.act, HF_DEVICE_TAINT_CREATE);
	assert_string_equal(plan.rule.driver, "gpu.example.com");
	assert_string_equal(plan.rule.pool, "n1");
	assert_string_equal(plan.rule.device, "gpu-0");
	assert_string_equal(plan.rule.gpu, "GPU-1");
	assert_string_equal(plan.rule.cls, "gpu-reset");
	assert_string_equal(plan.rule.effect, "NoSchedule");
	assert_null(plan.why_node);
	rule = plan.rule;
	view.rules = &rule;
	view.rules_len = 1;
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_NOTHING);
	devices[1].state = "Probation";
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_NOTHING);
	devices[1].state = "Healthy";
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_DELETE);
	/* The quarantine has ended. */
	devices[1].state = "Unhealthy";
	view.effect = NULL;
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_DELETE);
	view.rules_len = 0;
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_NOTHING);
}

/* A GPU that has fallen off the bus tells no UUID. After its reboot it does, and another GPU of the node fails. */
static void a_rule_made_by_the_address_goes_when_the_device_is_well(void **state)
{
	const struct hf_device_health health = {.devices = {devices, 3}};
	struct hf_device_taint_view view = make_view(&health);
	struct hf_device_taint rule;

	(void)state;
	devices[1].uuid = NULL;
	published[0].pci = "0000:1a:00.0";
	rule = plan_of(&view).rule;
	assert_string_equal(rule.gpu, "0000:1a:00.0");
	view.rules = &rule;
	view.rules_len = 1;
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_NOTHING);
	devices[1].uuid = "GPU-1";
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_NOTHING);
	/* Its driver is away. */
	view.slices_len = 0;
	assert_null(plan_of(&view).why_node);
	view.slices_len = 1;
	devices[1].state = "Healthy";
	devices[2].state = "Unhealthy";
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_DELETE);
}

static void a_rule_follows_class_and_effect(void **state)
{
	const struct hf_device_health health = {.devices = {devices, 3}};
	struct hf_device_taint_view view = make_view(&health);
	struct hf_device_taint rule = plan_of(&view).rule;
	struct hf_device_taint_plan plan;

	(void)state;
	view.rules = &rule;
	view.rules_len = 1;
	view.effect = "NoExecute";
	plan = plan_of(&view);
	assert_int_equal(plan.act, HF_DEVICE_TAINT_CHANGE);
	assert_string_equal(plan.rule.effect, "NoExecute");
	view.may_create = false;
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_NOTHING);
	view.may_create = true;
	view.effect = "NoSchedule";
	devices[1].cls = "replace";
	plan = plan_of(&view);
	assert_int_equal(plan.act, HF_DEVICE_TAINT_CHANGE);
	assert_string_equal(plan.rule.cls, "replace");
}

/* The rule was made in mode observe. The quarantine begins while the driver is away. */
static void a_rule_follows_its_effect_while_the_driver_is_away(void **state)
{
	const struct hf_device_health health = {.devices = {devices, 3}};
	struct hf_device_taint_view view = make_view(&health);
	struct hf_device_taint rule;

	(void)state;
	view.effect = "None";
	rule = plan_of(&view).rule;
	view.rules = &rule;
	view.rules_len = 1;
	view.slices_len = 0;
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_NOTHING);
	view.effect = "NoSchedule";
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_CHANGE);
	assert_int_equal(plan_of(&view).at, 0);
	assert_string_equal(plan_of(&view).rule.effect, "NoSchedule");
	assert_string_equal(plan_of(&view).rule.cls, "gpu-reset");
}

/* Every remedy was tried, and one of the node's devices only is slow. */
static void pods_work_on_with_a_slow_device(void **state)
{
	static const char *const states[] = {"Degraded", "Failed"};
	const struct hf_device_health health = {.devices = {devices, 3}};
	struct hf_device_taint_view view = make_view(&health);
	struct hf_device_taint rule;

	(void)state;
	view.effect = "NoExecute";
	for (size_t i = 0; i < 2; i++) {
		devices[1].state = states[i];
		view.rules_len = 0;
		rule = plan_of(&view).rule;
		assert_string_equal(rule.effect, "NoSchedule");
		view.rules = &rule;
		view.rules_len = 1;
		assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_NOTHING);
	}
	devices[1].state = "Unhealthy";
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_CHANGE);
	assert_string_equal(plan_of(&view).rule.effect, "NoExecute");
	view.effect = "None";
	devices[1].state = "Degraded";
	assert_string_equal(plan_of(&view).rule.effect, "None");
}

/* The driver has renumbered its devices: the rule would take a well device out of use. */
static void a_rule_of_another_gpu_goes(void **state)
{
	const struct hf_device_health health = {.devices = {devices, 3}};
	struct hf_device_taint_view view = make_view(&health);
	struct hf_device_taint rule = plan_of(&view).rule;
	struct hf_device_taint_plan plan;

	(void)state;
	view.rules = &rule;
	view.rules_len = 1;
	slice.generation = 2;
	published[0].uuid = "GPU-2";
	published[1].uuid = "GPU-1";
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_DELETE);
	view.rules_len = 0;
	plan = plan_of(&view);
	assert_int_equal(plan.act, HF_DEVICE_TAINT_CREATE);
	assert_string_equal(plan.rule.device, "gpu-1");
	/* While the driver rewrites its pool nothing is known. */
	view.rules_len = 1;
	slice.pool_slices = 2;
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_WAIT);
	/* The driver is away: it offers no device, and the rule stays. */
	view.slices_len = 0;
	plan = plan_of(&view);
	assert_int_equal(plan.act, HF_DEVICE_TAINT_NOTHING);
	assert_null(plan.why_node);
}

/* The GPU fell off the bus, the agent has started again without its UUID, and the driver counts anew. It publishes no
 * UUIDs, and the agent has another GPU at the address of the name. */
static void a_rule_goes_if_its_name_is_of_another_gpu_of_the_agent(void **state)
{
	const struct hf_device_health health = {.devices = {devices, 3}};
	struct hf_device_taint_view view = make_view(&health);
	struct hf_device_taint rule = plan_of(&view).rule;

	(void)state;
	view.rules = &rule;
	view.rules_len = 1;
	devices[1].uuid = NULL;
	published[0] = (struct hf_dra_device){.name = "gpu-0", .pci = "0000:1a:00.0"};
	slice.len = 1;
	assert_int_not_equal(plan_of(&view).act, HF_DEVICE_TAINT_DELETE);
	published[0].pci = "0000:1b:00.0";
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_DELETE);
	/* The agent does not know which GPU that is. */
	devices[2].uuid = NULL;
	assert_int_not_equal(plan_of(&view).act, HF_DEVICE_TAINT_DELETE);
}

/* The GPU of the rule has fallen off the bus, so the driver publishes only the others, and counts them anew. */
static void a_rule_goes_if_its_name_is_given_away(void **state)
{
	struct hf_device_report others[2] = {devices[0], devices[2]};
	const struct hf_device_health health = {.devices = {devices, 3}},
				      without = {.devices = {others, 2}};
	struct hf_device_taint_view view = make_view(&health);
	struct hf_device_taint rule = plan_of(&view).rule;

	(void)state;
	view.rules = &rule;
	view.rules_len = 1;
	published[0].uuid = "GPU-2";
	published[1].uuid = "GPU-3";
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_DELETE);
	/* Its agent does not report the GPU either. */
	view.health = &without;
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_DELETE);
	/* It is not known which GPU has the name. */
	slice.pool_slices = 2;
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_NOTHING);
	slice.pool_slices = 1;
	published[0].uuid = NULL;
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_NOTHING);
	/* The driver publishes addresses alone. */
	view.health = &health;
	published[0].pci = "0000:1b:00.0";
	published[1] = (struct hf_dra_device){.name = "gpu-1", .pci = "0000:1c:00.0"};
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_DELETE);
	published[0].pci = "0000:1a:00.0";
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_NOTHING);
	/* No device has the name. */
	published[0] = (struct hf_dra_device){.name = "gpu-9", .uuid = "GPU-2"};
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_NOTHING);
}

static void what_no_rule_can_say_takes_the_node(void **state)
{
	const struct hf_device_health health = {.devices = {devices, 3}};
	struct hf_device_taint_view view = make_view(&health);

	(void)state;
	view.slices_len = 0;
	assert_non_null(strstr(plan_of(&view).why_node, "no DRA driver publishes"));
	/* A pod has it by a claim, so no device plugin withholds it. */
	devices[1].resource = "claim:gpus/one";
	assert_non_null(strstr(plan_of(&view).why_node, "no DRA driver publishes"));
	devices[1].resource = NULL;
	published[1].uuid = "GPU-1";
	view.slices_len = 1;
	assert_non_null(strstr(plan_of(&view).why_node, "more than one DRA device"));
	assert_int_equal(plan_of(&view).act, HF_DEVICE_TAINT_NOTHING);
	published[1].uuid = "GPU-2";
	assert_true(hf_device_taint_is_confined(&health));
	devices[0].state = "Unhealthy";
	assert_false(hf_device_taint_is_confined(&health));
	devices[1].state = "Healthy";
	assert_string_equal(plan_of(&view).why_node, "the fault concerns the whole node");
	assert_false(hf_device_taint_is_confined(&health));
}

/* A device plugin that withholds a failed device needs no help. */
static void a_plugin_that_withholds_the_device_is_enough(void **state)
{
	const struct hf_device_health health = {.devices = {devices, 3}};
	struct hf_device_taint_view view = make_view(&health);

	(void)state;
	view.slices_len = 0;
	devices[1].resource = devices[2].resource = "example.com/gpu";
	assert_non_null(strstr(plan_of(&view).why_offered, "still offers the failed device GPU-1"));
	withheld = 1;
	assert_null(plan_of(&view).why_offered);
	devices[2].state = "Unhealthy";
	assert_non_null(plan_of(&view).why_offered);
	withheld = 2;
	assert_null(plan_of(&view).why_offered);
	assert_null(plan_of(&view).why_node);
}

/* The agent forgets the resource of a device an hour after the last pod, and no pod is given a device that is withheld. */
static void a_device_that_no_pod_has_stays_withheld(void **state)
{
	struct hf_device_health health = {.devices = {devices, 3}};
	struct hf_device_taint_view view = make_view(&health);

	(void)state;
	view.slices_len = 0;
	assert_non_null(strstr(plan_of(&view).why_node, "no DRA driver publishes the device"));
	/* The other GPU of the node has the same resource. */
	devices[2].resource = "example.com/gpu";
	withheld = 1;
	assert_null(plan_of(&view).why_node);
	assert_null(plan_of(&view).why_offered);
	withheld = 0;
	assert_non_null(plan_of(&view).why_offered);
	devices[2].resource = "claim:a/b";
	assert_non_null(plan_of(&view).why_node);
	devices[2].resource = NULL;
	health.devices_out = "GPU-1";
	assert_non_null(plan_of(&view).why_node);
	withheld = 1;
	assert_null(plan_of(&view).why_node);
	assert_null(plan_of(&view).why_offered);
}

static void what_is_written_is_read(void **state)
{
	const struct hf_dra_match match = {
		.driver = "gpu.example.com", .pool = "n1", .device = "gpu-0"};
	struct hf_device_taint rule = {.name = hf_device_taint_name(arena, "n1", &match),
				       .node = "n1",
				       .gpu = "GPU-1",
				       .driver = match.driver,
				       .pool = match.pool,
				       .device = match.device,
				       .cls = "gpu-reset",
				       .effect = "NoSchedule"},
			       got;
	HF_AUTO_DOC doc = hf_doc_from_json(hf_device_taint_json(&rule, "v1", "u-1"));
	const struct hf_json *json = hf_doc_json(doc);

	(void)state;
	assert_true(hf_device_taint_read(doc, &got));
	assert_string_equal(got.name, rule.name);
	assert_string_equal(got.device, "gpu-0");
	assert_string_equal(got.effect, "NoSchedule");
	assert_string_equal(hf_json_path_str(json, "apiVersion", NULL), "resource.k8s.io/v1");
	assert_string_equal(hf_json_path_str(json, "spec", "taint", "key", NULL),
			    "holdfast.dev/device");
	assert_true(hf_str_has_prefix(rule.name, "n1-gpu-0-"));
}

static void only_a_rule_for_one_device_is_holdfasts(void **state)
{
#define RULE(labels, selector)                                                                     \
	"{'metadata':{'name':'r','labels':" labels                                                 \
	",'annotations':{'holdfast.dev/node':'n','holdfast.dev/gpu':'g'}},"                        \
	"'spec':{'deviceSelector':" selector ",'taint':{'key':'holdfast.dev/device'}}}"
#define OURS "{'app.kubernetes.io/managed-by':'holdfast'}"
	static const struct {
		const char *text;
		bool ours;
	} rules[] = {
		{RULE(OURS, "{'driver':'d','pool':'p','device':'x'}"), true},
		{RULE(OURS, "{}"), false},
		{RULE(OURS, "{'driver':'d','pool':'p'}"), false},
		{RULE(OURS, "{'driver':'d','pool':'p','device':''}"), false},
		{RULE("{}", "{'driver':'d','pool':'p','device':'x'}"), false},
	};
	struct hf_device_taint got;

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rules); i++) {
		HF_AUTO_DOC doc = json_doc_of(rules[i].text);

		assert_int_equal(hf_device_taint_read(doc, &got), rules[i].ours);
	}
}

static void long_names_are_cut_and_differ(void **state)
{
	struct hf_dra_match a = {.driver = "d", .pool = "p", .device = "gpu-0"}, b = a;
	char node[254];
	const char *x, *y;

	(void)state;
	memset(node, 'a', sizeof(node));
	node[149] = '.';
	node[253] = '\0';
	b.pool = "q";
	x = hf_device_taint_name(arena, node, &a);
	y = hf_device_taint_name(arena, node, &b);
	assert_string_not_equal(x, y);
	assert_true(strlen(x) <= HF_DEVICE_TAINT_NAME_MAX);
	assert_null(strstr(x, ".-"));
}

/* As drivers publish: names of attributes with and without a domain. */
static void a_slice_is_read(void **state)
{
	HF_AUTO_DOC doc = json_doc_of(
		"{'spec':{'driver':'gpu.nvidia.com','nodeName':'n1','pool':{'name':'n1','generation':7,"
		"'resourceSliceCount':2},'devices':[{'name':'gpu-0','attributes':{'uuid':{'string':'GPU-1'},"
		"'resource.kubernetes.io/pciBusID':{'string':'0000:1a:00.0'},'index':{'int':0}}},"
		"{'name':'gpu-0-mig-1g','attributes':{'gpu.nvidia.com/parentUUID':{'string':'GPU-1'}}},"
		"{'name':'odd','attributes':{'uuid':{'int':3}}}]}}");
	HF_AUTO_DOC none = json_doc_of("{'spec':{'driver':'d','pool':{'name':'p'}}}");
	struct hf_dra_slice got;

	(void)state;
	assert_true(hf_slice_read(doc, arena, &got));
	assert_int_equal(got.len, 3);
	assert_int_equal(got.generation, 7);
	assert_int_equal(got.pool_slices, 2);
	assert_string_equal(got.devices[0].uuid, "GPU-1");
	assert_string_equal(got.devices[0].pci, "0000:1a:00.0");
	assert_string_equal(got.devices[1].parent_uuid, "GPU-1");
	assert_null(got.devices[2].uuid);
	assert_false(hf_slice_read(none, arena, &got));
}

static void the_newest_generation_of_each_pool_counts(void **state)
{
	const struct hf_dra_slice slices[] = {
		{.driver = "a", .pool = "p", .generation = 1, .pool_slices = 1, .len = 9},
		{.driver = "a", .pool = "p", .generation = 2, .pool_slices = 2, .len = 4},
		{.driver = "a", .pool = "p", .generation = 2, .pool_slices = 2, .len = 3},
		{.driver = "a", .pool = "q", .generation = 1, .pool_slices = 1, .len = 1},
		{.driver = "b", .pool = "p", .generation = 5, .pool_slices = 1, .len = 2},
	};

	(void)state;
	assert_int_equal(hf_dra_count(slices, HF_ARRAY_LEN(slices), "a"), 8);
	assert_int_equal(hf_dra_count(slices, HF_ARRAY_LEN(slices), "b"), 2);
	assert_int_equal(hf_dra_count(slices, HF_ARRAY_LEN(slices), "c"), 0);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_failed_device_gets_a_rule_and_keeps_it_until_it_is_well),
		T(a_rule_made_by_the_address_goes_when_the_device_is_well),
		T(a_rule_follows_class_and_effect),
		T(a_rule_follows_its_effect_while_the_driver_is_away),
		T(pods_work_on_with_a_slow_device),
		T(a_rule_of_another_gpu_goes),
		T(a_rule_goes_if_its_name_is_of_another_gpu_of_the_agent),
		T(a_rule_goes_if_its_name_is_given_away),
		T(what_no_rule_can_say_takes_the_node),
		T(a_plugin_that_withholds_the_device_is_enough),
		T(a_device_that_no_pod_has_stays_withheld),
		T(what_is_written_is_read),
		T(only_a_rule_for_one_device_is_holdfasts),
		T(long_names_are_cut_and_differ),
		T(a_slice_is_read),
		T(the_newest_generation_of_each_pool_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
