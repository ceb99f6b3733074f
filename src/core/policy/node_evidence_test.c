/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"
#include "harness/test.h"

static const hf_time now = 1000 * HF_SECOND;

static struct hf_node_seen node(enum hf_node_ready ready)
{
	struct hf_node_seen seen;

	hf_node_seen_init(&seen, "n0", ready, now);
	seen.calm_since = 0;
	return seen;
}

/* ---- evidence, of one pod on one node --------------------------------------------------------- */

static struct hf_brain brain;
static struct hf_observed seen;
static int64_t after_seconds = 60;

static struct hf_evidence evidence(struct hf_node_seen *facts, const struct hf_pod *pod)
{
	struct hf_node known = {.seen = facts, .news_at = HF_TIME_NONE};

	brain.now = now;
	brain.seen = &seen;
	brain.job.recovery.node_lost_after_seconds = after_seconds;
	return hf_node_evidence(&brain, &known, pod);
}

static struct hf_node_seen silent(int seconds)
{
	struct hf_node_seen facts = node(HF_NODE_UNKNOWN);

	facts.since = facts.lease_since = now - seconds * HF_SECOND;
	facts.lease_read_at = now;
	facts.unreachable = true;
	return facts;
}

static void silence_is_measured_to_the_second(void **state)
{
	struct hf_node_seen early = silent(59), late = silent(60);
	struct hf_pod pod = {.name = "p"};
	struct hf_evidence found = evidence(&early, &pod);

	(void)state;
	brain.job.recovery.force = HF_FORCE_PRESUMED;
	assert_int_equal(found.guard, HF_GUARD_SILENCE);
	assert_int_equal(found.until, now + HF_SECOND);
	found = evidence(&late, &pod);
	assert_int_equal(found.guard, HF_GUARD_NONE);
	assert_false(found.proven);
}

static void a_node_that_gave_a_sign_of_life_is_silent_when_its_next_renewal_is_late(void **state)
{
	struct hf_node_seen facts = silent(14);
	struct hf_pod pod = {.name = "p"};

	(void)state;
	after_seconds = 8;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_NONE);
	/* The node's kubelet was held up and then woke: the node is still Unknown, but its Lease
	 * was renewed, and the next renewal is due within 10 s. */
	facts.since -= HF_MINUTE;
	facts.renewed_at = facts.lease_since;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_SILENCE);
	assert_int_equal(evidence(&facts, &pod).until, now + HF_SECOND);
	facts.renewed_at = facts.lease_since = now - 15 * HF_SECOND;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_NONE);
	after_seconds = 60;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_SILENCE);
	assert_int_equal(evidence(&facts, &pod).until, now + 45 * HF_SECOND);
}

static void a_fence_proves_when_the_lease_stood_still_for_it_and_the_margin(void **state)
{
	struct hf_node_seen early = silent(59), late = silent(60);
	struct hf_pod pod = {.name = "p", .fence_seconds = 50};

	(void)state;
	/* For a fenced pod, neither the taint, nor how long the node is Unknown, nor any report
	 * matters: only the Lease. */
	early.unreachable = late.unreachable = false;
	late.since = late.reported_at = late.beat_at = now;
	assert_int_equal(evidence(&early, &pod).guard, HF_GUARD_SILENCE);
	assert_int_equal(evidence(&early, &pod).until, now + HF_SECOND);
	assert_false(evidence(&early, &pod).proven);
	assert_int_equal(evidence(&late, &pod).guard, HF_GUARD_NONE);
	assert_true(evidence(&late, &pod).proven);
	assert_true(evidence(&late, &pod).fenced);
	late.lease_read_at = now - HF_SECOND;
	assert_int_equal(evidence(&late, &pod).guard, HF_GUARD_READ);
	/* The fence that the pod was started with counts, not the job's present setting. */
	late.lease_read_at = now;
	pod.fence_seconds = 51;
	assert_int_equal(evidence(&late, &pod).guard, HF_GUARD_SILENCE);
}

/* The node was lost before this pod was bound, or began: it was back then, and the fence of the pod is measured from there. */
static void a_fence_is_measured_from_the_last_contact_of_its_own_pod(void **state)
{
	struct hf_node_seen facts = silent(100);
	struct hf_pod bound = {.name = "p",
			       .fence_seconds = 50,
			       .bound_at = now - 59 * HF_SECOND,
			       .news_at = HF_TIME_NONE};
	struct hf_pod begun = {.name = "p",
			       .fence_seconds = 50,
			       .bound_at = HF_TIME_NONE,
			       .creation_time = now - 90 * HF_SECOND,
			       .news_at = now - 59 * HF_SECOND};

	(void)state;
	assert_int_equal(evidence(&facts, &bound).guard, HF_GUARD_SILENCE);
	assert_int_equal(evidence(&facts, &bound).until, now + HF_SECOND);
	assert_int_equal(evidence(&facts, &begun).guard, HF_GUARD_SILENCE);
	bound.bound_at -= HF_SECOND;
	begun.news_at -= HF_SECOND;
	assert_true(evidence(&facts, &bound).proven);
	assert_true(evidence(&facts, &begun).proven);
}

static void a_fence_proves_nothing_of_a_node_that_is_heard_of_or_has_no_lease(void **state)
{
	struct hf_node_seen heard = node(HF_NODE_READY), missing = silent(100), gone;
	struct hf_pod pod = {.name = "p", .fence_seconds = 50};

	(void)state;
	heard.out_of_service = true;
	assert_false(hf_node_is_fenced(&heard, &pod));
	missing.lease_since = HF_TIME_NONE;
	assert_false(hf_node_is_fenced(&missing, &pod));
	assert_false(evidence(&missing, &pod).proven);
	gone = node(HF_NODE_GONE);
	assert_false(hf_node_is_fenced(&gone, &pod));
	missing = silent(100);
	assert_true(hf_node_is_fenced(&missing, &pod));
	pod.fence_seconds = 0;
	assert_false(hf_node_is_fenced(&missing, &pod));
}

static void the_lease_must_be_read_at_both_ends(void **state)
{
	struct hf_node_seen facts = silent(100);
	struct hf_pod pod = {.name = "p"};

	(void)state;
	facts.lease_since = now - 30 * HF_SECOND;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_SILENCE);
	assert_int_equal(evidence(&facts, &pod).until, now + 30 * HF_SECOND);
	facts = silent(65);
	facts.lease_read_at = now - 6 * HF_SECOND;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_READ);
	facts.lease_read_at = now - 5 * HF_SECOND;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_NONE);
	facts.lease_since = HF_TIME_NONE;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_NONE);
	facts.lease_read_at = HF_TIME_NONE;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_READ);
}

static void a_storm_is_more_than_two_and_55_percent(void **state)
{
	static const struct {
		int32_t lost, nodes;
		enum hf_guard guard;
	} rows[] = {{1, 1, HF_GUARD_NONE},    {2, 2, HF_GUARD_NONE},    {3, 3, HF_GUARD_STORM},
		    {11, 20, HF_GUARD_STORM}, {10, 20, HF_GUARD_NONE},  {54, 100, HF_GUARD_NONE},
		    {3, 0, HF_GUARD_STORM},   {55, 100, HF_GUARD_STORM}};
	struct hf_pod pod = {.name = "p"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		struct hf_node_seen facts = silent(100);

		facts.zone_lost = rows[i].lost;
		facts.zone_nodes = rows[i].nodes;
		assert_int_equal(evidence(&facts, &pod).guard, rows[i].guard);
	}
}

static void the_end_of_a_storm_begins_the_wait_anew_and_needs_a_read_after_it(void **state)
{
	struct hf_node_seen facts = silent(300);
	struct hf_pod pod = {.name = "p"};

	(void)state;
	facts.calm_since = now - 59 * HF_SECOND;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_CALM);
	assert_int_equal(evidence(&facts, &pod).until, now + HF_SECOND);
	facts.calm_since = now - 60 * HF_SECOND;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_NONE);
	facts.lease_read_at = now - HF_SECOND;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_READ);
	facts = silent(300);
	facts.calm_since = HF_TIME_NONE;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_STORM);
	/* A live kubelet may be silent for 10 s between renewals, so the wait is 15 s at least,
	 * even if afterSeconds is shorter. */
	after_seconds = 8;
	facts.calm_since = now - 14 * HF_SECOND;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_CALM);
	facts.calm_since = now - 15 * HF_SECOND;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_NONE);
	after_seconds = 60;
}

static void a_proven_death_needs_no_calm(void **state)
{
	struct hf_node_seen fenced = silent(60), gone = node(HF_NODE_GONE), off = silent(0);
	struct hf_pod pod = {.name = "p", .fence_seconds = 50};

	(void)state;
	fenced.calm_since = gone.calm_since = off.calm_since = now;
	gone.since = now - 40 * HF_SECOND;
	gone.confirmed_at = off.confirmed_at = now;
	off.out_of_service = true;
	assert_true(evidence(&fenced, &pod).proven);
	assert_true(evidence(&gone, &pod).proven);
	assert_true(evidence(&off, &pod).proven);
}

/* Another guard may hold a pod for minutes while reads of the Lease fail, so an old read proves
 * nothing. */
static void a_read_that_is_older_than_ten_seconds_shows_nothing(void **state)
{
	struct hf_node_seen silent_node = silent(300), off = silent(100);
	struct hf_pod pod = {.name = "p"};

	(void)state;
	silent_node.lease_read_at = now - 10 * HF_SECOND;
	assert_int_equal(evidence(&silent_node, &pod).guard, HF_GUARD_NONE);
	silent_node.lease_read_at = now - 11 * HF_SECOND;
	assert_int_equal(evidence(&silent_node, &pod).guard, HF_GUARD_READ);
	off.out_of_service = true;
	off.ready = HF_NODE_NOT_READY;
	off.confirmed_at = now;
	assert_true(evidence(&off, &pod).proven);
	off.lease_read_at = now - 11 * HF_SECOND;
	assert_int_equal(evidence(&off, &pod).guard, HF_GUARD_READ);
}

static void the_mode_decides_what_is_enough(void **state)
{
	static const struct {
		enum hf_force force;
		enum hf_guard silent, gone;
	} rows[] = {{HF_FORCE_PRESUMED, HF_GUARD_NONE, HF_GUARD_NONE},
		    {HF_FORCE_PROVEN, HF_GUARD_MODE, HF_GUARD_NONE},
		    {HF_FORCE_NEVER, HF_GUARD_MODE, HF_GUARD_MODE}};
	struct hf_node_seen unknown = silent(100), gone = node(HF_NODE_GONE);
	struct hf_pod pod = {.name = "p"};

	(void)state;
	gone.since = now - 40 * HF_SECOND;
	gone.confirmed_at = now;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		brain.job.recovery.force = rows[i].force;
		assert_int_equal(evidence(&unknown, &pod).guard, rows[i].silent);
		assert_int_equal(evidence(&gone, &pod).guard, rows[i].gone);
	}
	brain.job.recovery.force = HF_FORCE_PRESUMED;
	assert_true(evidence(&gone, &pod).proven);
	gone.confirmed_at = now - HF_SECOND;
	assert_int_equal(evidence(&gone, &pod).guard, HF_GUARD_READ);
}

static void the_out_of_service_taint_needs_a_lease_that_stands_still_where_a_kubelet_lives(
	void **state)
{
	struct hf_node_seen facts = silent(0);
	struct hf_pod pod = {.name = "p"};

	(void)state;
	facts.out_of_service = true;
	facts.confirmed_at = now;
	assert_true(evidence(&facts, &pod).proven);
	facts.ready = HF_NODE_NOT_READY;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_SILENCE);
	facts.lease_since = now - 15 * HF_SECOND;
	assert_true(evidence(&facts, &pod).proven);
	facts.lease_since = HF_TIME_NONE;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_READ);
}

/* The operator's view may be old: the taint removed, the machine back, and a new pod on it. */
static void the_out_of_service_taint_is_looked_at_live_while_the_pod_is_there(void **state)
{
	struct hf_node_seen facts = silent(0);
	struct hf_pod pod = {.name = "p", .creation_time = now - 20 * HF_SECOND};

	(void)state;
	facts.out_of_service = true;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_READ);
	facts.confirmed_at = now - 10 * HF_SECOND;
	assert_true(evidence(&facts, &pod).proven);
	facts.confirmed_at = now - 11 * HF_SECOND; /* too long ago */
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_READ);
	facts.confirmed_at = now - 5 * HF_SECOND;
	/* created in the same second as the read, so perhaps after it */
	pod.creation_time = now - 5 * HF_SECOND;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_READ);
}

static void claims_are_read_before_anything_is_presumed(void **state)
{
	static const char *const names[] = {"a", "b"};
	struct hf_claim_seen claims[] = {{.name = "a"}, {.name = "b", .exclusive = true}};
	struct hf_pod pod = {.name = "p", .claims = names, .claims_len = 2};
	struct hf_node_seen facts = silent(100);

	(void)state;
	seen.claims = claims;
	seen.claims_len = 1;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_READ);
	seen.claims_len = 2;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_VOLUME);
	claims[1].exclusive = false;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_NONE);
	seen.claims_len = 0;
}

static void a_node_without_the_control_planes_taint_is_not_presumed_dead(void **state)
{
	struct hf_node_seen facts = silent(100), fenced = silent(100);
	struct hf_pod pod = {.name = "p"};

	(void)state;
	facts.unreachable = fenced.unreachable = false;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_TAINT);
	assert_int_equal(evidence(&facts, &pod).until, HF_TIME_NEVER);
	facts.unreachable = true;
	assert_int_equal(evidence(&facts, &pod).guard, HF_GUARD_NONE);
	/* A proof needs no taint. */
	pod.fence_seconds = 50;
	assert_true(evidence(&fenced, &pod).proven);
}

/* ---- the pod's own guards, which hf_node_loss_evidence adds ------------------------------------ */

static struct hf_evidence loss_evidence(struct hf_node_seen *facts, const struct hf_pod *pod)
{
	struct hf_node known = {.seen = facts, .news_at = HF_TIME_NONE};

	brain.now = now;
	brain.seen = &seen;
	brain.job.recovery.node_lost_after_seconds = after_seconds;
	brain.job.recovery.force_delete_after_seconds = 5;
	return hf_node_loss_evidence(&brain, &known, pod);
}

static void a_toleration_longer_than_300_seconds_holds_the_pod_to_its_last_second(void **state)
{
	struct hf_node_seen facts = silent(400);
	struct hf_pod pod = {.name = "p", .deletion_time = HF_TIME_NONE};

	(void)state;
	pod.tolerates_unreachable = HF_SOME_INT(401);
	assert_int_equal(loss_evidence(&facts, &pod).guard, HF_GUARD_TOLERATION);
	assert_int_equal(loss_evidence(&facts, &pod).until, now + HF_SECOND);
	pod.tolerates_unreachable = HF_SOME_INT(400);
	assert_int_equal(loss_evidence(&facts, &pod).guard, HF_GUARD_NONE);
	/* Admission adds 300 s to every pod, so that toleration is not the user's wish. */
	facts = silent(60);
	pod.tolerates_unreachable = HF_SOME_INT(300);
	assert_int_equal(loss_evidence(&facts, &pod).guard, HF_GUARD_NONE);
	pod.tolerates_unreachable = HF_SOME_INT(301);
	assert_int_equal(loss_evidence(&facts, &pod).guard, HF_GUARD_TOLERATION);
	assert_int_equal(loss_evidence(&facts, &pod).until, now + 241 * HF_SECOND);
}

static void a_terminating_pod_is_held_until_five_seconds_after_its_deadline(void **state)
{
	struct hf_node_seen facts = silent(400);
	struct hf_pod pod = {.name = "p", .deletion_time = now - 4 * HF_SECOND};

	(void)state;
	/* The toleration does not matter any more: the pod is being deleted. */
	pod.tolerates_unreachable = HF_SOME_INT(1000);
	assert_int_equal(loss_evidence(&facts, &pod).guard, HF_GUARD_DEADLINE);
	assert_int_equal(loss_evidence(&facts, &pod).until, now + HF_SECOND);
	pod.deletion_time = now - 5 * HF_SECOND;
	assert_int_equal(loss_evidence(&facts, &pod).guard, HF_GUARD_NONE);
}

static void a_proven_death_needs_neither_deadline_nor_toleration(void **state)
{
	struct hf_node_seen off = silent(0);
	struct hf_pod pod = {.name = "p", .deletion_time = now + HF_MINUTE};

	(void)state;
	off.out_of_service = true;
	off.confirmed_at = now;
	pod.tolerates_unreachable = HF_SOME_INT(1000);
	assert_true(loss_evidence(&off, &pod).proven);
	assert_int_equal(loss_evidence(&off, &pod).guard, HF_GUARD_NONE);
	pod.deletion_time = HF_TIME_NONE;
	assert_int_equal(loss_evidence(&off, &pod).guard, HF_GUARD_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence_is_measured_to_the_second),
		cmocka_unit_test(
			a_node_that_gave_a_sign_of_life_is_silent_when_its_next_renewal_is_late),
		cmocka_unit_test(a_fence_proves_when_the_lease_stood_still_for_it_and_the_margin),
		cmocka_unit_test(a_fence_is_measured_from_the_last_contact_of_its_own_pod),
		cmocka_unit_test(a_fence_proves_nothing_of_a_node_that_is_heard_of_or_has_no_lease),
		cmocka_unit_test(the_lease_must_be_read_at_both_ends),
		cmocka_unit_test(a_storm_is_more_than_two_and_55_percent),
		cmocka_unit_test(the_end_of_a_storm_begins_the_wait_anew_and_needs_a_read_after_it),
		cmocka_unit_test(a_proven_death_needs_no_calm),
		cmocka_unit_test(a_read_that_is_older_than_ten_seconds_shows_nothing),
		cmocka_unit_test(the_mode_decides_what_is_enough),
		cmocka_unit_test(
			the_out_of_service_taint_needs_a_lease_that_stands_still_where_a_kubelet_lives),
		cmocka_unit_test(the_out_of_service_taint_is_looked_at_live_while_the_pod_is_there),
		cmocka_unit_test(claims_are_read_before_anything_is_presumed),
		cmocka_unit_test(a_node_without_the_control_planes_taint_is_not_presumed_dead),
		cmocka_unit_test(
			a_toleration_longer_than_300_seconds_holds_the_pod_to_its_last_second),
		cmocka_unit_test(a_terminating_pod_is_held_until_five_seconds_after_its_deadline),
		cmocka_unit_test(a_proven_death_needs_neither_deadline_nor_toleration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
