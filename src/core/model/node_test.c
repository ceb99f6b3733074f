/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/model_internal.h"
#include "harness/test.h"

static const hf_time now = 1000 * HF_SECOND;

static struct hf_node_seen node(enum hf_node_ready ready)
{
	struct hf_node_seen seen;

	hf_node_seen_init(&seen, "n0", ready, now);
	seen.calm_since = 0;
	return seen;
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

static void a_node_that_was_unknown_before_the_pod_came_explains_nothing(void **state)
{
	struct hf_node_seen unknown = node(HF_NODE_UNKNOWN), gone = node(HF_NODE_GONE);
	struct hf_pod pod = {.creation_time = now - HF_MINUTE, .bound_at = now};

	(void)state;
	/* Without a time for Unknown, the node counts as lost while the pod was on it. */
	assert_false(hf_node_was_lost_before(&unknown, &pod));
	unknown.unknown_at = now - HF_SECOND;
	assert_true(hf_node_was_lost_before(&unknown, &pod));
	unknown.unknown_at = now;
	assert_false(hf_node_was_lost_before(&unknown, &pod));
	/* Without bound_at the creation time counts. */
	pod.bound_at = HF_TIME_NONE;
	assert_false(hf_node_was_lost_before(&unknown, &pod));
	unknown.unknown_at = now - HF_MINUTE - HF_SECOND;
	assert_true(hf_node_was_lost_before(&unknown, &pod));
	pod.creation_time = HF_TIME_NONE;
	assert_false(hf_node_was_lost_before(&unknown, &pod));
	/* What is gone tells no time. */
	pod.bound_at = now;
	gone.unknown_at = now - HF_SECOND;
	assert_false(hf_node_was_lost_before(&gone, &pod));
}

static void states_have_names(void **state)
{
	(void)state;
	assert_string_equal(hf_node_ready_name(HF_NODE_UNKNOWN), "Unknown");
	assert_string_equal(hf_node_ready_name(HF_NODE_GONE), "Gone");
}

/* A node is Unknown some time after it fell silent.  The renewal is a time of the node's clock, which may be wrong. */
static void a_node_is_silent_since_the_last_renewal_of_its_lease(void **state)
{
	struct hf_node_seen lost = node(HF_NODE_UNKNOWN);

	(void)state;
	assert_true(hf_node_silent_since(&lost) == HF_TIME_NONE);
	lost.renew_time = now - 50 * HF_SECOND;
	assert_true(hf_node_silent_since(&lost) == HF_TIME_NONE);
	lost.unknown_at = now;
	assert_true(hf_node_silent_since(&lost) == now - 50 * HF_SECOND);
	lost.renew_time = now - 301 * HF_SECOND;
	assert_true(hf_node_silent_since(&lost) == now);
	lost.renew_time = now + HF_SECOND;
	assert_true(hf_node_silent_since(&lost) == now);
	lost.renew_time = HF_TIME_NONE + 1;
	assert_true(hf_node_silent_since(&lost) == now);
	lost.renew_time = HF_TIME_NONE;
	assert_true(hf_node_silent_since(&lost) == now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_is_gone_unknown_or_out_of_service_and_never_not_ready),
		cmocka_unit_test(a_lease_that_stands_still_makes_a_node_suspect),
		cmocka_unit_test(a_node_that_was_unknown_before_the_pod_came_explains_nothing),
		cmocka_unit_test(a_node_is_silent_since_the_last_renewal_of_its_lease),
		cmocka_unit_test(states_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
