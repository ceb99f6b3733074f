/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/brain_internal.h"
#include "harness/test.h"

static const hf_time now = 1000 * HF_SECOND;

static struct hf_node_seen node(enum hf_node_ready ready)
{
	return (struct hf_node_seen){.name = "n0",
				     .ready = ready,
				     .since = now,
				     .confirmed_at = HF_TIME_NONE,
				     .lease_read_at = HF_TIME_NONE,
				     .lease_since = HF_TIME_NONE,
				     .renewed_at = HF_TIME_NONE,
				     .reported_at = HF_TIME_NONE};
}

static void lost_is_gone_unknown_or_out_of_service_and_never_not_ready(void **state)
{
	struct hf_node_seen unknown = node(HF_NODE_UNKNOWN), gone = node(HF_NODE_GONE);
	struct hf_node_seen refusing = node(HF_NODE_NOT_READY), well = node(HF_NODE_READY);

	(void)state;
	assert_true(hf_node_is_lost(&unknown));
	assert_true(hf_node_is_lost(&gone));
	assert_false(hf_node_is_lost(&refusing));
	assert_false(hf_node_is_lost(&well));
	well.out_of_service = true;
	assert_true(hf_node_is_lost(&well));
}

static void a_lease_that_stands_still_makes_a_node_suspect(void **state)
{
	struct hf_node_seen well = node(HF_NODE_READY), refusing = node(HF_NODE_NOT_READY);

	(void)state;
	assert_true(hf_node_is_suspect(&refusing, now));
	assert_false(hf_node_is_suspect(&well, now));
	well.lease_since = now - 14 * HF_SECOND;
	assert_false(hf_node_is_suspect(&well, now));
	well.lease_since = now - 15 * HF_SECOND;
	assert_true(hf_node_is_suspect(&well, now));
}

static void states_have_names(void **state)
{
	(void)state;
	assert_string_equal(hf_node_ready_name(HF_NODE_UNKNOWN), "Unknown");
	assert_string_equal(hf_node_ready_name(HF_NODE_GONE), "Gone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_is_gone_unknown_or_out_of_service_and_never_not_ready),
		cmocka_unit_test(a_lease_that_stands_still_makes_a_node_suspect),
		cmocka_unit_test(states_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
