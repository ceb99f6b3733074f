/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/fleet.h"

#include "health/ladder_internal.h"

#include "base/str.h"
#include "harness/health_plan_text.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

#define NODES 1000

static struct hf_health_node nodes[NODES];
static char names[NODES][16];
static struct hf_health_fleet fleet;
static struct hf_health_policy policy;
static struct hf_health_fleet_plan plan;
static struct hf_arena *arena;
static const hf_time now = 1000 * HF_DAY;

static int setup(void **state)
{
	(void)state;
	arena = hf_arena_create((size_t)8 << 20);
	policy = hf_health_policy_default;
	policy.mode = HF_HEALTH_REMEDIATES;
	memset(nodes, 0, sizeof(nodes));
	for (int i = 0; i < NODES; i++) {
		snprintf(names[i], sizeof(names[i]), "n%03d", i);
		nodes[i] = (struct hf_health_node){
			.name = names[i],
			.state = HF_HEALTH_HEALTHY,
			.evidence_at = HF_TIME_NONE,
			.began_at = HF_TIME_NONE,
			.observed_at = now,
			.same_boot = true,
			.replaceable = true,
		};
	}
	fleet = (struct hf_health_fleet){
		.now = now,
		.nodes = nodes,
		.nodes_len = 20,
		.selected = 100,
		.room = -1,
		.breaker = {.closed_at = HF_TIME_NONE},
	};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena = hf_arena_destroy(arena);
	return 0;
}

static struct hf_health_node *ill(int i, enum hf_health_class cls, enum hf_health_action action)
{
	nodes[i].state = hf_health_is_fatal(cls) ? HF_HEALTH_UNHEALTHY : HF_HEALTH_DEGRADED_STATE;
	nodes[i].cls = cls;
	nodes[i].action = action;
	nodes[i].evidence_at = now - HF_MINUTE;
	return &nodes[i];
}

/* Ill and already quarantined by us. */
static struct hf_health_node *kept(int i, enum hf_health_class cls, enum hf_health_action action)
{
	struct hf_health_node *n = ill(i, cls, action);

	n->state = HF_HEALTH_QUARANTINED;
	n->owned = n->unavailable = true;
	n->owned_at = now - 2 * HF_MINUTE;
	return n;
}

static void decide(void)
{
	struct hf_error err = {0};

	assert_ok(hf_health_fleet_decide(&fleet, &policy, arena, &plan, &err), &err);
	assert_int_equal(plan.len, fleet.nodes_len);
}

static void expect(int i, enum hf_health_answer answer, enum hf_health_doing doing,
		   enum hf_health_why why)
{
	const struct hf_health_decision *d = &plan.decisions[i];

	assert_string_equal(d->node, names[i]);
	assert_string_equal(hf_health_answer_name(d->answer), hf_health_answer_name(answer));
	assert_string_equal(hf_health_doing_name(d->doing), hf_health_doing_name(doing));
	assert_string_equal(hf_health_why_text(d->why), hf_health_why_text(why));
}

static int going(enum hf_health_doing doing)
{
	int n = 0;

	for (size_t i = 0; i < plan.len; i++)
		n += plan.decisions[i].answer == HF_HEALTH_GO && plan.decisions[i].doing == doing;
	return n;
}

#define EXPECT(i, answer, doing, why)                                                              \
	expect((i), HF_HEALTH_##answer, HF_HEALTH_DO_##doing, HF_HEALTH_WHY_##why)

/* ---- the way of one node ------------------------------------------------------------------------ */

static void a_stopped_node_is_quarantined_then_mended_then_released(void **state)
{
	(void)state;
	ill(0, HF_HEALTH_GPU_RESET, HF_HEALTH_RESET_DEVICE);
	decide();
	EXPECT(0, GO, QUARANTINE, EVIDENCE);
	EXPECT(1, NOTHING, NOTHING, WELL);
	kept(0, HF_HEALTH_GPU_RESET, HF_HEALTH_RESET_DEVICE);
	decide();
	EXPECT(0, GO, REMEDY, EVIDENCE);
	assert_int_equal(plan.decisions[0].action, HF_HEALTH_RESET_DEVICE);
	nodes[0].running = HF_HEALTH_RESET_DEVICE;
	nodes[0].running_since = now - HF_MINUTE;
	decide();
	EXPECT(0, WAITS, NOTHING, RUNNING);
	assert_int_equal(plan.wake_at, now + 9 * HF_MINUTE);
	nodes[0].running = HF_HEALTH_RECORD;
	nodes[0].cls = HF_HEALTH_NONE;
	nodes[0].state = HF_HEALTH_PROBATION;
	decide();
	EXPECT(0, WAITS, NOTHING, SETTLING);
	nodes[0].state = HF_HEALTH_HEALTHY;
	decide();
	EXPECT(0, GO, RELEASE, MENDED);
}

static void a_suspicion_moves_nothing(void **state)
{
	(void)state;
	ill(0, HF_HEALTH_DEGRADED, HF_HEALTH_MOVE_POD)->state = HF_HEALTH_SUSPECT;
	decide();
	EXPECT(0, NOTHING, NOTHING, UNCONFIRMED);
}

/* A device on probation became Suspect, and its node is still quarantined. */
static void a_suspicion_remedies_nothing(void **state)
{
	(void)state;
	kept(0, HF_HEALTH_DEGRADED, HF_HEALTH_MOVE_POD)->state = HF_HEALTH_SUSPECT;
	kept(1, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->state = HF_HEALTH_SUSPECT;
	decide();
	EXPECT(0, WAITS, NOTHING, SETTLING);
	EXPECT(1, WAITS, NOTHING, SETTLING);
}

/* Everything but a reset can do without the name of a device. */
static void a_reset_needs_a_device_and_keeps_no_place_without(void **state)
{
	(void)state;
	policy.mode = HF_HEALTH_REMEDIATES;
	policy.concurrent = 1;
	kept(0, HF_HEALTH_GPU_RESET, HF_HEALTH_RESET_DEVICE)->no_reset = true;
	kept(1, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->no_reset = true;
	decide();
	EXPECT(0, HELD, REMEDY, NO_REMEDY);
	EXPECT(1, GO, REMEDY, EVIDENCE);
}

/* The UUID may still come, from a driver that starts; later the next rung follows. */
static void without_a_reset_the_next_rung_follows(void **state)
{
	(void)state;
	policy.mode = HF_HEALTH_REMEDIATES;
	policy.concurrent = 3;
	kept(0, HF_HEALTH_GPU_RESET, HF_HEALTH_RESET_DEVICE)->no_reset = true;
	kept(1, HF_HEALTH_GPU_RESET, HF_HEALTH_RESET_DEVICE)->no_reset = true;
	nodes[0].owned_at = now - 10 * HF_MINUTE + 1;
	nodes[1].owned_at = now - 10 * HF_MINUTE;
	decide();
	EXPECT(0, HELD, REMEDY, NO_REMEDY);
	EXPECT(1, GO, REMEDY, ESCALATED);
	assert_int_equal(plan.decisions[1].action, HF_HEALTH_RESTART_NODE);
	policy.rungs[HF_HEALTH_RESTART_NODE].attempts = 0;
	decide();
	EXPECT(1, GO, GIVE_UP, EXHAUSTED);
}

static void a_person_who_holds_is_told_apart_from_a_remedy_that_waits(void **state)
{
	(void)state;
	policy.mode = HF_HEALTH_REMEDIATES;
	kept(0, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->held = true;
	kept(1, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->no_remedy = true;
	decide();
	EXPECT(0, HELD, REMEDY, HELD);
	EXPECT(1, HELD, REMEDY, NO_REMEDY);
}

static void each_mode_does_what_it_says_and_shows_the_rest(void **state)
{
	(void)state;
	ill(0, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE);
	kept(1, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE);
	policy.mode = HF_HEALTH_OBSERVE;
	decide();
	EXPECT(0, WOULD, QUARANTINE, EVIDENCE);
	EXPECT(1, WOULD, REMEDY, EVIDENCE);
	policy.mode = HF_HEALTH_QUARANTINES;
	decide();
	EXPECT(0, GO, QUARANTINE, EVIDENCE);
	EXPECT(1, WOULD, REMEDY, EVIDENCE);
	policy.paused = true;
	decide();
	EXPECT(0, HELD, QUARANTINE, PAUSED);
}

/* ---- the promises ------------------------------------------------------------------------------- */

static void promise_1_unknown_is_left_alone(void **state)
{
	(void)state;
	ill(0, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->state = HF_HEALTH_UNKNOWN;
	ill(1, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->observed_at = HF_TIME_NONE;
	ill(2, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->observed_at = now - 16 * HF_MINUTE;
	decide();
	for (int i = 0; i < 3; i++)
		EXPECT(i, NOTHING, NOTHING, SILENT);
}

static void promise_2_what_others_have_taken_out_stays_theirs(void **state)
{
	(void)state;
	/* The node is well, and a person has cordoned it: Holdfast has nothing to release. */
	nodes[0].unavailable = nodes[0].foreign = true;
	/* Holdfast has quarantined the node and a person has cordoned it too: no remedy beside the person's work. */
	kept(1, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->foreign = true;
	/* Faults on nodes that others have taken out may come from their work, and do not count for the breaker. */
	for (int i = 2; i < 30; i++) {
		ill(i, HF_HEALTH_SOFTWARE, HF_HEALTH_RESTART_DRIVER)->foreign = true;
		nodes[i].unavailable = true;
	}
	decide();
	EXPECT(0, NOTHING, NOTHING, WELL);
	EXPECT(1, HELD, REMEDY, FOREIGN);
	EXPECT(2, HELD, QUARANTINE, FOREIGN);
	assert_false(plan.breaker.tripped);
}

static void promise_3_old_evidence_moves_nothing(void **state)
{
	(void)state;
	ill(0, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->same_boot = false;
	kept(1, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->same_boot = false;
	decide();
	EXPECT(0, HELD, QUARANTINE, STALE);
	EXPECT(1, HELD, REMEDY, STALE);
	/* The breaker was closed since. */
	nodes[0].same_boot = true;
	fleet.breaker.closed_at = now - HF_SECOND;
	decide();
	EXPECT(0, HELD, QUARANTINE, STALE);
	nodes[0].evidence_at = now;
	decide();
	EXPECT(0, GO, QUARANTINE, EVIDENCE);
}

static void promise_4_a_rung_is_not_repeated_beyond_its_cap(void **state)
{
	struct hf_health_attempt tried[6] = {
		{.action = HF_HEALTH_RESET_DEVICE, .at = now - 3 * HF_HOUR},
		{.action = HF_HEALTH_RESET_DEVICE, .at = now - 2 * HF_HOUR},
	};
	struct hf_health_node *n = kept(0, HF_HEALTH_GPU_RESET, HF_HEALTH_RESET_DEVICE);

	(void)state;
	n->attempts = tried;
	n->attempts_len = 1;
	decide();
	assert_int_equal(plan.decisions[0].action, HF_HEALTH_RESET_DEVICE);
	n->attempts_len = 2;
	decide();
	EXPECT(0, GO, REMEDY, ESCALATED);
	assert_int_equal(plan.decisions[0].action, HF_HEALTH_RESTART_NODE);
	for (int i = 2; i < 4; i++)
		tried[i] = (struct hf_health_attempt){.action = HF_HEALTH_RESTART_NODE,
						      .at = now - HF_HOUR};
	n->attempts_len = 4;
	decide();
	EXPECT(0, GO, GIVE_UP, EXHAUSTED);
	/* All remedies together also have a limit, over a week. */
	for (int i = 0; i < 5; i++)
		tried[i].at = now - (i + 2) * HF_DAY;
	n->attempts_len = 5;
	decide();
	EXPECT(0, GO, GIVE_UP, EXHAUSTED);
}

static void promise_4_what_a_rung_does_itself_is_no_new_fault(void **state)
{
	const struct hf_health_attempt restart = {.action = HF_HEALTH_RESTART_NODE,
						  .at = now - 9 * HF_MINUTE};

	(void)state;
	nodes[0] = *ill(0, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE);
	nodes[0].attempts = &restart;
	nodes[0].attempts_len = 1;
	decide();
	EXPECT(0, WAITS, NOTHING, SETTLING);
	assert_int_equal(plan.wake_at, now + HF_MINUTE);
}

/* A person has ordered the reboot, so the node is in use again since the proof. */
static void a_fault_after_the_proof_of_a_remedy_takes_the_node_out_of_use(void **state)
{
	const struct hf_health_attempt restart = {
		.action = HF_HEALTH_RESTART_NODE, .at = now - 9 * HF_MINUTE, .before_fault = true};

	(void)state;
	ill(0, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE);
	nodes[0].attempts = &restart;
	nodes[0].attempts_len = 1;
	decide();
	EXPECT(0, GO, QUARANTINE, EVIDENCE);
	kept(0, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE);
	decide();
	EXPECT(0, WAITS, NOTHING, SETTLING);
	assert_int_equal(plan.wake_at, now + HF_MINUTE);
}

static void promise_5_a_thousand_at_once_open_the_breaker(void **state)
{
	(void)state;
	fleet.nodes_len = fleet.selected = NODES;
	for (int i = 0; i < NODES; i++)
		ill(i, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE);
	decide();
	assert_true(plan.breaker.tripped && plan.breaker_tripped_now);
	assert_int_equal(going(HF_HEALTH_DO_QUARANTINE), 0);
	EXPECT(0, HELD, QUARANTINE, BREAKER);
	/* It does not close by itself. */
	fleet.breaker = plan.breaker;
	for (int i = 1; i < NODES; i++)
		nodes[i].cls = HF_HEALTH_NONE;
	decide();
	assert_true(plan.breaker.tripped);
	assert_false(plan.breaker_tripped_now);
	assert_int_equal(going(HF_HEALTH_DO_QUARANTINE), 0);
}

/* In a small cluster one node is the limit: the same node again does not open the breaker, a second node does. */
static void promise_5_one_node_alone_opens_no_breaker(void **state)
{
	const struct hf_health_quarantined was[] = {{names[0], now - 2 * HF_MINUTE},
						    {names[0], now - HF_MINUTE},
						    {names[1], now - HF_HOUR}};

	(void)state;
	fleet.nodes_len = fleet.selected = 6;
	fleet.quarantined = was;
	fleet.quarantined_len = HF_ARRAY_LEN(was);
	ill(0, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE);
	decide();
	assert_false(plan.breaker.tripped);
	EXPECT(0, GO, QUARANTINE, EVIDENCE);
	ill(2, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE);
	decide();
	assert_true(plan.breaker.tripped);
	nodes[2].cls = HF_HEALTH_NONE;
	nodes[2].state = HF_HEALTH_HEALTHY;
	decide();
	assert_false(plan.breaker.tripped);
}

static void promise_5_budgets_hold_together(void **state)
{
	(void)state;
	for (int i = 0; i < 9; i++)
		ill(i, HF_HEALTH_GPU_RESET, HF_HEALTH_RESET_DEVICE);
	decide();
	/* Five an hour. */
	assert_int_equal(going(HF_HEALTH_DO_QUARANTINE), 5);
	EXPECT(5, HELD, QUARANTINE, RATE);
	assert_int_equal(plan.wake_at, now + HF_MINUTE);
	assert_int_equal(plan.quarantines_left, 0);
	/* Ten of a hundred nodes are out of use. */
	policy.quarantines.count = -1;
	for (int i = 10; i < 18; i++)
		nodes[i].unavailable = nodes[i].foreign = true;
	decide();
	assert_int_equal(going(HF_HEALTH_DO_QUARANTINE), 2);
	EXPECT(2, HELD, QUARANTINE, UNAVAILABLE);
	/* A node that is out already (its quarantine was begun) uses no more of the budget. */
	nodes[2].unavailable = true;
	decide();
	EXPECT(2, GO, QUARANTINE, EVIDENCE);
}

static void promise_5_domains_and_remedies(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		ill(i, HF_HEALTH_GPU_RESET, HF_HEALTH_RESET_DEVICE)->domain = "rack-1";
	kept(5, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE);
	kept(6, HF_HEALTH_GPU_RESET, HF_HEALTH_RESET_DEVICE);
	decide();
	assert_int_equal(going(HF_HEALTH_DO_QUARANTINE), 2);
	EXPECT(2, HELD, QUARANTINE, DOMAIN);
	/* One remedy at a time: the node with the stricter fault comes first. */
	EXPECT(5, GO, REMEDY, EVIDENCE);
	EXPECT(6, HELD, REMEDY, CONCURRENT);
}

static void promise_5_a_job_is_not_disturbed_without_end(void **state)
{
	struct hf_health_node *n = ill(0, HF_HEALTH_DEGRADED, HF_HEALTH_MOVE_POD);

	(void)state;
	n->job = "default/llm";
	n->job_evictions = 2;
	decide();
	EXPECT(0, HELD, QUARANTINE, JOB);
	/* The job restarts already, and the ranks of this node restart with it. */
	n->job_restarting = true;
	decide();
	EXPECT(0, GO, QUARANTINE, JOB_RESTARTING);
	/* The budget of the job does not keep a node with a fatal fault in use. */
	n = ill(0, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE);
	n->job_restarting = false;
	decide();
	EXPECT(0, GO, QUARANTINE, EVIDENCE);
}

static void promise_6_a_rung_without_a_verdict_has_failed_and_the_next_follows(void **state)
{
	struct hf_health_attempt failed = {
		.action = HF_HEALTH_RESET_DEVICE, .at = now - HF_MINUTE, .failed = true};
	struct hf_health_node *n = kept(0, HF_HEALTH_GPU_RESET, HF_HEALTH_RESET_DEVICE);

	(void)state;
	n->running = HF_HEALTH_RESET_DEVICE;
	n->running_since = now - 10 * HF_MINUTE;
	decide();
	EXPECT(0, GO, FAIL, TIMED_OUT);
	n->running = HF_HEALTH_RECORD;
	n->attempts = &failed;
	n->attempts_len = 1;
	decide();
	EXPECT(0, GO, REMEDY, ESCALATED);
	assert_int_equal(plan.decisions[0].action, HF_HEALTH_RESTART_NODE);
	failed.action = HF_HEALTH_RESTART_NODE;
	decide();
	EXPECT(0, GO, GIVE_UP, EXHAUSTED);
}

static void promise_7_nothing_is_reset_or_restarted_while_a_pod_uses_it(void **state)
{
	(void)state;
	policy.concurrent = 5;
	kept(0, HF_HEALTH_GPU_RESET, HF_HEALTH_RESET_DEVICE)->device_busy = true;
	kept(1, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->undrainable = true;
	decide();
	EXPECT(0, HELD, REMEDY, DEVICE_BUSY);
	EXPECT(1, HELD, REMEDY, UNDRAINABLE);
	policy.force_drain = true;
	decide();
	EXPECT(0, HELD, REMEDY, DEVICE_BUSY);
	EXPECT(1, GO, REMEDY, EVIDENCE);
}

static void promise_8_slow_is_better_than_nothing(void **state)
{
	(void)state;
	ill(0, HF_HEALTH_DEGRADED, HF_HEALTH_MOVE_POD)->replaceable = false;
	ill(1, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->replaceable = false;
	decide();
	EXPECT(0, HELD, QUARANTINE, NO_CAPACITY);
	EXPECT(1, GO, QUARANTINE, EVIDENCE);
}

static void promise_6_release_needs_positive_evidence_of_this_boot(void **state)
{
	struct hf_health_node *n = kept(0, HF_HEALTH_NONE, HF_HEALTH_RECORD);

	(void)state;
	decide();
	EXPECT(0, WAITS, NOTHING, SETTLING);
	n->state = HF_HEALTH_UNKNOWN;
	decide();
	EXPECT(0, NOTHING, NOTHING, SILENT);
	n->state = HF_HEALTH_SUSPECT;
	decide();
	EXPECT(0, WAITS, NOTHING, SETTLING);
	n->state = HF_HEALTH_HEALTHY;
	n->same_boot = false;
	decide();
	EXPECT(0, HELD, RELEASE, STALE);
	n->same_boot = true;
	n->observed_at = now - HF_HOUR;
	decide();
	EXPECT(0, NOTHING, NOTHING, SILENT);
	n->observed_at = now;
	n->of_act = true;
	decide();
	EXPECT(0, WAITS, NOTHING, OF_ACT);
	n->of_act = false;
	decide();
	EXPECT(0, GO, RELEASE, MENDED);
}

/* A node that fails again and again must not use up the budget of the other nodes. */
static void promise_5_a_node_that_comes_and_goes_stays_out(void **state)
{
	struct hf_health_quarantined was[] = {{names[0], now - 50 * HF_MINUTE},
					      {names[0], now - 40 * HF_MINUTE},
					      {names[0], now - 30 * HF_MINUTE},
					      {names[1], now - 10 * HF_MINUTE}};
	hf_time wake;

	(void)state;
	kept(0, HF_HEALTH_NONE, HF_HEALTH_RECORD)->state = HF_HEALTH_HEALTHY;
	kept(1, HF_HEALTH_NONE, HF_HEALTH_RECORD)->state = HF_HEALTH_HEALTHY;
	fleet.quarantined = was;
	fleet.quarantined_len = HF_ARRAY_LEN(was);
	decide();
	EXPECT(0, HELD, RELEASE, FLAPS);
	EXPECT(1, GO, RELEASE, MENDED);
	(void)hf_health_ladder(&nodes[0], &fleet, &policy, &wake);
	assert_int_equal(wake, now + 10 * HF_MINUTE + 1);
	was[0].at -= 11 * HF_MINUTE;
	decide();
	EXPECT(0, GO, RELEASE, MENDED);
}

static void promise_8_each_spare_takes_the_work_of_one(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		ill(i, i == 1 ? HF_HEALTH_FABRIC : HF_HEALTH_DEGRADED, HF_HEALTH_MOVE_POD)->job =
			"j";
	ill(3, HF_HEALTH_DEGRADED, HF_HEALTH_MOVE_POD);
	nodes[9].free = true;
	hf_health_fleet_spares(&fleet, &policy, 0, nodes, arena);
	policy.job_evictions = 0;
	decide();
	EXPECT(0, HELD, QUARANTINE, NO_CAPACITY);
	EXPECT(1, GO, QUARANTINE, EVIDENCE);
	EXPECT(2, HELD, QUARANTINE, NO_CAPACITY);
	/* Nobody works there. */
	EXPECT(3, GO, QUARANTINE, EVIDENCE);
}

static void promise_8_a_quarantined_node_keeps_its_spare_until_its_work_has_gone(void **state)
{
	struct hf_health_node *out = kept(0, HF_HEALTH_DEGRADED, HF_HEALTH_MOVE_POD);

	(void)state;
	out->job = "j";
	ill(1, HF_HEALTH_DEGRADED, HF_HEALTH_MOVE_POD)->job = "k";
	nodes[9].free = true;
	hf_health_fleet_spares(&fleet, &policy, 0, nodes, arena);
	decide();
	EXPECT(1, HELD, QUARANTINE, NO_CAPACITY);
	out->job = "";
	hf_health_fleet_spares(&fleet, &policy, 0, nodes, arena);
	decide();
	EXPECT(1, GO, QUARANTINE, EVIDENCE);
}

static void promise_8_a_spare_goes_to_the_node_that_it_helps(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		ill(i, HF_HEALTH_FABRIC, HF_HEALTH_MOVE_POD)->job = "j";
	nodes[0].excluded = true;
	nodes[1].evidence_at = HF_TIME_NONE;
	nodes[2].state = HF_HEALTH_SUSPECT;
	nodes[3].observed_at = now - HF_HOUR;
	nodes[4].not_before = now + HF_MINUTE;
	ill(5, HF_HEALTH_DEGRADED, HF_HEALTH_MOVE_POD)->job = "j";
	nodes[9].free = true;
	hf_health_fleet_spares(&fleet, &policy, 0, nodes, arena);
	decide();
	EXPECT(5, GO, QUARANTINE, EVIDENCE);
}

static void promise_8_only_a_node_of_its_kind_takes_the_work_of_another(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		ill(i, HF_HEALTH_DEGRADED, HF_HEALTH_MOVE_POD)->job = names[i];
		nodes[i].like = i == 2 ? "small" : "large";
	}
	nodes[9].free = nodes[8].free = nodes[7].free = true;
	nodes[9].like = "large";
	nodes[8].like = nodes[7].like = NULL;
	hf_health_fleet_spares(&fleet, &policy, 0, nodes, arena);
	decide();
	EXPECT(0, GO, QUARANTINE, EVIDENCE);
	EXPECT(1, HELD, QUARANTINE, NO_CAPACITY);
	EXPECT(2, HELD, QUARANTINE, NO_CAPACITY);
	/* One of each kind stays free. */
	hf_health_fleet_spares(&fleet, &policy, 1, nodes, arena);
	decide();
	EXPECT(0, HELD, QUARANTINE, NO_CAPACITY);
}

/* The nodes of the job slow down together, in one decision, and each quarantine disturbs the job. */
static void nodes_of_one_job_spend_its_budget_within_one_plan(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		ill(i, HF_HEALTH_DEGRADED, HF_HEALTH_MOVE_POD)->job = "j";
	ill(5, HF_HEALTH_DEGRADED, HF_HEALTH_MOVE_POD)->job = "k";
	policy.job_evictions = 2;
	decide();
	assert_int_equal(going(HF_HEALTH_DO_QUARANTINE), 3);
	EXPECT(2, HELD, QUARANTINE, JOB);
	EXPECT(5, GO, QUARANTINE, EVIDENCE);
	/* What has stopped waits for nothing. */
	ill(4, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->job = "j";
	decide();
	EXPECT(4, GO, QUARANTINE, EVIDENCE);
	EXPECT(1, HELD, QUARANTINE, JOB);
}

/* The taint is taken off each time; so the node may use three quarantines of the window. */
static void a_node_whose_taint_goes_each_time_spends_no_more_than_three(void **state)
{
	struct hf_health_quarantined was[] = {{names[0], now - 50 * HF_MINUTE},
					      {names[0], now - 20 * HF_MINUTE},
					      {names[0], now - HF_MINUTE}};

	(void)state;
	ill(0, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE);
	fleet.quarantined = was;
	fleet.quarantined_len = HF_ARRAY_LEN(was);
	decide();
	EXPECT(0, HELD, QUARANTINE, FLAPS);
	was[0].at = now - 2 * HF_HOUR;
	decide();
	EXPECT(0, GO, QUARANTINE, EVIDENCE);
}

/* The taint would keep away the pod that mends the fault. */
static void what_pods_of_its_own_mend_is_not_tainted(void **state)
{
	struct hf_health_node *out = kept(1, HF_HEALTH_SOFTWARE, HF_HEALTH_RESTART_DRIVER);

	(void)state;
	ill(0, HF_HEALTH_SOFTWARE, HF_HEALTH_RESTART_DRIVER)->by_pods = true;
	out->by_pods = true;
	out->state = HF_HEALTH_DEGRADED_STATE;
	decide();
	EXPECT(0, NOTHING, NOTHING, PODS);
	/* One of the node's devices is not Healthy yet. */
	EXPECT(1, WAITS, NOTHING, SETTLING);
	out->rest_well = true;
	decide();
	EXPECT(1, GO, RELEASE, PODS);
	out->same_boot = false;
	decide();
	EXPECT(1, HELD, RELEASE, STALE);
}

/* ---- the rest --------------------------------------------------------------------------------------- */

static void excluded_and_failed_nodes_are_a_persons(void **state)
{
	(void)state;
	ill(0, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->excluded = true;
	kept(1, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->excluded = true;
	ill(2, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->state = HF_HEALTH_FAILED;
	kept(3, HF_HEALTH_REPLACE, HF_HEALTH_REPLACE_NODE);
	kept(4, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE)->state = HF_HEALTH_FAILED;
	decide();
	EXPECT(0, NOTHING, NOTHING, EXCLUDED);
	EXPECT(1, NOTHING, NOTHING, EXCLUDED);
	/* What comes to it would fail. */
	EXPECT(2, GO, QUARANTINE, EVIDENCE);
	EXPECT(3, GO, GIVE_UP, EVIDENCE);
	EXPECT(4, NOTHING, NOTHING, FAILED_STATE);
}

static void windows_hold_what_can_wait(void **state)
{
	/* The day 1000 days after 1970-01-01 (a Thursday) is a Wednesday. */
	const struct hf_health_window night = {
		.days = 1u << 2, .from_minute = 1320, .to_minute = 60};
	const struct hf_health_window day = {.days = 1u << 3, .from_minute = 60, .to_minute = 120};

	(void)state;
	ill(0, HF_HEALTH_DEGRADED, HF_HEALTH_MOVE_POD);
	ill(1, HF_HEALTH_REBOOT, HF_HEALTH_RESTART_NODE);
	policy.windows[0] = day;
	policy.windows_len = 1;
	decide();
	EXPECT(0, HELD, QUARANTINE, WINDOW);
	EXPECT(1, GO, QUARANTINE, EVIDENCE);
	/* Of Tuesday, over midnight. */
	policy.windows[0] = night;
	decide();
	EXPECT(0, GO, QUARANTINE, EVIDENCE);
}

static void the_next_window_is_found(void **state)
{
	const hf_time thursday = 1001 * HF_DAY;
	const struct hf_health_window windows[] = {
		{.days = 1u << 2, .from_minute = 1320, .to_minute = 60},
		{.days = 1u << 4, .from_minute = 60, .to_minute = 120}};

	(void)state;
	assert_int_equal(hf_health_find_opening(windows, 2, thursday), thursday + HF_HOUR);
	assert_int_equal(hf_health_find_opening(windows, 2, thursday + HF_HOUR),
			 thursday + 5 * HF_DAY + 22 * HF_HOUR);
	/* In a week, because the window of today is open already. */
	assert_int_equal(hf_health_find_opening(windows + 1, 1, thursday + HF_HOUR),
			 thursday + 7 * HF_DAY + HF_HOUR);
	assert_int_equal(hf_health_find_opening(windows, 0, thursday), HF_TIME_NONE);
}

static void shares_are_rounded_down(void **state)
{
	const struct hf_health_limit share = {.count = -1, .percent = 10};
	const struct hf_health_limit one = {.count = -1, .percent = 10, .at_least_one = true};
	const struct hf_health_limit both = {.count = 3, .percent = 10};
	const struct hf_health_limit none = {.count = -1, .percent = -1};

	(void)state;
	assert_int_equal(hf_health_limit_of(&share, 9), 0);
	assert_int_equal(hf_health_limit_of(&share, 19), 1);
	assert_int_equal(hf_health_limit_of(&one, 9), 1);
	assert_int_equal(hf_health_limit_of(&one, 0), 0);
	assert_int_equal(hf_health_limit_of(&both, 100), 3);
	assert_int_equal(hf_health_limit_of(&both, 20), 2);
	assert_int_equal(hf_health_limit_of(&none, 20), -1);
}

static void the_order_of_the_nodes_does_not_matter(void **state)
{
	struct hf_strbuf a = HF_STRBUF_INIT(100000), b = HF_STRBUF_INIT(100000);
	static struct hf_health_node turned[NODES];

	(void)state;
	for (int i = 0; i < 9; i++)
		ill(i, i % 2 ? HF_HEALTH_REBOOT : HF_HEALTH_GPU_RESET, HF_HEALTH_RESTART_NODE);
	decide();
	hf_health_fleet_render(&plan, &a);
	for (size_t i = 0; i < fleet.nodes_len; i++)
		turned[i] = nodes[fleet.nodes_len - 1 - i];
	fleet.nodes = turned;
	decide();
	hf_health_fleet_render(&plan, &b);
	assert_string_equal(a.data, b.data);
	assert_non_null(strstr(a.data, "- n002: held quarantine, rate: "));
	hf_strbuf_release(&a);
	hf_strbuf_release(&b);
}

static void what_cannot_be_meant_is_refused(void **state)
{
	struct hf_error err = {0};

	(void)state;
	assert_null(hf_health_policy_problem(&hf_health_policy_default));
	policy.breaker.percent = 101;
	assert_non_null(hf_health_policy_problem(&policy));
	policy = hf_health_policy_default;
	policy.rungs[HF_HEALTH_RESET_DEVICE].timeout = HF_SECOND;
	assert_non_null(hf_health_policy_problem(&policy));
	policy = hf_health_policy_default;
	policy.windows_len = HF_HEALTH_WINDOWS_MAX + 1;
	assert_non_null(hf_health_policy_problem(&policy));
	policy = hf_health_policy_default;
	policy.concurrent = -1;
	assert_non_null(hf_health_policy_problem(&policy));
	policy = hf_health_policy_default;
	fleet.nodes_len = HF_HEALTH_NODES_MAX + 1;
	assert_code(hf_health_fleet_decide(&fleet, &policy, arena, &plan, &err), HF_E_TOO_LARGE);
	assert_string_equal(hf_health_mode_name(HF_HEALTH_OBSERVE), "observe");
	assert_string_equal(hf_health_why_text(HF_HEALTH_WHY_COUNT), "?");
}

/* The node's clock is an hour ahead, and its report arrived ten seconds ago. */
static void times_of_a_nodes_clock_are_converted(void **state)
{
	hf_time heard = now - 10 * HF_SECOND, said = heard + HF_HOUR;

	(void)state;
	assert_int_equal(hf_health_convert_time(said - HF_MINUTE, said, heard, now),
			 heard - HF_MINUTE);
	assert_int_equal(hf_health_convert_time(said + HF_MINUTE, said, heard, now), heard);
	assert_int_equal(hf_health_convert_time(said, said, HF_TIME_NONE, now), now);
	assert_int_equal(hf_health_convert_time(now - HF_HOUR, HF_TIME_NONE, heard, now),
			 now - HF_HOUR);
	assert_int_equal(hf_health_convert_time(HF_TIME_NONE, said, heard, now), HF_TIME_NONE);
	assert_int_equal(hf_health_convert_time(HF_TIME_NONE, said, HF_TIME_NONE, now),
			 HF_TIME_NONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_stopped_node_is_quarantined_then_mended_then_released),
		TEST(a_suspicion_moves_nothing),
		TEST(a_suspicion_remedies_nothing),
		TEST(a_reset_needs_a_device_and_keeps_no_place_without),
		TEST(without_a_reset_the_next_rung_follows),
		TEST(a_person_who_holds_is_told_apart_from_a_remedy_that_waits),
		TEST(each_mode_does_what_it_says_and_shows_the_rest),
		TEST(promise_1_unknown_is_left_alone),
		TEST(promise_2_what_others_have_taken_out_stays_theirs),
		TEST(promise_3_old_evidence_moves_nothing),
		TEST(promise_4_a_rung_is_not_repeated_beyond_its_cap),
		TEST(promise_4_what_a_rung_does_itself_is_no_new_fault),
		TEST(a_fault_after_the_proof_of_a_remedy_takes_the_node_out_of_use),
		TEST(promise_5_a_thousand_at_once_open_the_breaker),
		TEST(promise_5_one_node_alone_opens_no_breaker),
		TEST(promise_5_budgets_hold_together),
		TEST(promise_5_domains_and_remedies),
		TEST(promise_5_a_job_is_not_disturbed_without_end),
		TEST(promise_6_a_rung_without_a_verdict_has_failed_and_the_next_follows),
		TEST(promise_7_nothing_is_reset_or_restarted_while_a_pod_uses_it),
		TEST(promise_6_release_needs_positive_evidence_of_this_boot),
		TEST(promise_8_slow_is_better_than_nothing),
		TEST(promise_8_each_spare_takes_the_work_of_one),
		TEST(promise_8_a_spare_goes_to_the_node_that_it_helps),
		TEST(promise_8_only_a_node_of_its_kind_takes_the_work_of_another),
		TEST(what_pods_of_its_own_mend_is_not_tainted),
		TEST(nodes_of_one_job_spend_its_budget_within_one_plan),
		TEST(a_node_whose_taint_goes_each_time_spends_no_more_than_three),
		TEST(promise_5_a_node_that_comes_and_goes_stays_out),
		TEST(promise_8_a_quarantined_node_keeps_its_spare_until_its_work_has_gone),
		TEST(excluded_and_failed_nodes_are_a_persons),
		TEST(windows_hold_what_can_wait),
		cmocka_unit_test(the_next_window_is_found),
		TEST(shares_are_rounded_down),
		cmocka_unit_test(times_of_a_nodes_clock_are_converted),
		TEST(the_order_of_the_nodes_does_not_matter),
		TEST(what_cannot_be_meant_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
