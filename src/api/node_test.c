/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/node.h"

#include "harness/test.h"

#include <stdio.h>
#include <string.h>

#define ARENA_BYTES ((size_t)1 << 20)

static struct hf_node_facts read_node(const char *text, struct hf_arena *arena)
{
	struct hf_doc *doc = hf_doc_from_text(text, strlen(text));
	struct hf_node_facts facts;

	hf_node_read(doc, arena, &facts);
	hf_doc_unref(doc);
	return facts;
}

#define NODE(labels, spec, status)                                                                 \
	"{\"metadata\":{\"name\":\"n\",\"labels\":{" labels "}},\"spec\":{" spec                   \
	"},\"status\":{\"conditions\":[{\"type\":\"MemoryPressure\",\"status\":\"Unknown\"},"      \
	"{\"type\":\"Ready\",\"status\":\"" status "\"}]}}"

static void test_a_healthy_node_is_ready_and_schedulable(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_node_facts facts = read_node(NODE("\"topology.kubernetes.io/zone\":\"z1\"",
						    "\"podCIDR\":\"10.0.0.0/24\"", "True"),
					       arena);

	(void)state;
	assert_int_equal(facts.ready, HF_NODE_READY);
	assert_true(facts.schedulable);
	assert_false(facts.unreachable || facts.out_of_service || facts.no_execute);
	assert_string_equal(facts.zone, "z1");
}

static void test_false_and_unknown_are_not_the_same(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);

	(void)state;
	assert_int_equal(read_node(NODE("", "", "False"), arena).ready, HF_NODE_NOT_READY);
	assert_int_equal(read_node(NODE("", "", "Unknown"), arena).ready, HF_NODE_UNKNOWN);
	assert_int_equal(read_node(NODE("", "", "bad"), arena).ready, HF_NODE_NOT_READY);
	assert_null(read_node(NODE("", "", "False"), arena).zone);
}

static void test_a_node_without_the_condition_does_not_count_as_silent(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);

	(void)state;
	assert_int_equal(read_node("{\"metadata\":{\"name\":\"n\"}}", arena).ready,
			 HF_NODE_NOT_READY);
	assert_int_equal(read_node("{\"metadata\":", arena).ready, HF_NODE_NOT_READY);
}

static void test_taints_are_told_by_key_and_effect(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_node_facts facts;

	(void)state;
	facts = read_node(NODE("",
			       "\"taints\":[{\"key\":\"node.kubernetes.io/unreachable\","
			       "\"effect\":\"NoSchedule\"}]",
			       "Unknown"),
			  arena);
	assert_true(facts.unreachable);
	assert_false(facts.no_execute);
	facts = read_node(NODE("",
			       "\"unschedulable\":true,\"taints\":[{\"key\":\"x\",\"effect\":"
			       "\"NoSchedule\"},{\"key\":\"node.kubernetes.io/out-of-service\","
			       "\"value\":\"nodeshutdown\",\"effect\":\"NoExecute\"}]",
			       "True"),
			  arena);
	assert_true(facts.out_of_service);
	assert_true(facts.no_execute);
	assert_false(facts.unreachable);
	assert_false(facts.schedulable);
}

static void test_since_when_it_is_unknown_is_told_and_of_true_and_false_it_is_not(void **state)
{
	static const char *const statuses[] = {"Unknown", "True", "False"};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	char text[256];

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(statuses); i++) {
		snprintf(text, sizeof(text),
			 "{\"metadata\":{\"name\":\"n\"},\"status\":{\"conditions\":[{\"type\":"
			 "\"Ready\",\"status\":\"%s\",\"lastTransitionTime\":"
			 "\"1970-01-01T00:01:00Z\"}]}}",
			 statuses[i]);
		assert_int_equal(read_node(text, arena).unknown_at,
				 i == 0 ? HF_MINUTE : HF_TIME_NONE);
	}
	assert_int_equal(read_node(NODE("", "", "Unknown"), arena).unknown_at, HF_TIME_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_healthy_node_is_ready_and_schedulable),
		cmocka_unit_test(test_false_and_unknown_are_not_the_same),
		cmocka_unit_test(test_a_node_without_the_condition_does_not_count_as_silent),
		cmocka_unit_test(test_taints_are_told_by_key_and_effect),
		cmocka_unit_test(
			test_since_when_it_is_unknown_is_told_and_of_true_and_false_it_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
