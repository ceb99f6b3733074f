/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/rollout_plan.h"

#include "base/str.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

#define T0 (1700000000 * HF_SECOND)
#define NODES 100

static const struct hf_rollout_limit waves[] = {{1, -1}, {-1, 5}, {-1, 100}};

struct scene {
	struct hf_rollout_view view;
	struct hf_rollout_member members[NODES];
	char names[NODES][8];
	struct hf_arena *arena;
};

static struct scene *begin(int nodes)
{
	static struct scene s;

	memset(&s, 0, sizeof(s));
	s.arena = hf_arena_create((size_t)1 << 20);
	for (int i = 0; i < nodes; i++) {
		snprintf(s.names[i], sizeof(s.names[i]), "n%02d", i);
		s.members[i] = (struct hf_rollout_member){
			.name = s.names[i], .group = "", .changed_at = HF_TIME_NONE};
	}
	s.view = (struct hf_rollout_view){.now = T0,
					  .state = HF_ROLLOUT_ROLLING,
					  .wave = 1,
					  .soak_since = HF_TIME_NONE,
					  .newest_end = HF_TIME_NONE,
					  .waves = waves,
					  .waves_len = HF_ARRAY_LEN(waves),
					  .at_once = 3,
					  .soak = 10 * HF_MINUTE,
					  .template_is_back = true,
					  .can_go_back = true,
					  .members = s.members,
					  .members_len = (size_t)nodes};
	return &s;
}

static struct hf_rollout_plan decide(struct scene *s)
{
	struct hf_rollout_plan plan;

	hf_arena_reset(s->arena);
	hf_rollout_plan(&s->view, s->arena, &plan);
	return plan;
}

static void end(struct scene *s)
{
	s->arena = hf_arena_destroy(s->arena);
}

static void set_phase(struct scene *s, int i, enum hf_rollout_phase phase)
{
	struct hf_rollout_member *m = &s->members[i];

	m->listed = true;
	m->phase = phase;
	m->tries = 1;
	m->changed = m->marked = phase == HF_ROLLOUT_DONE || phase == HF_ROLLOUT_FAILED ||
				 phase == HF_ROLLOUT_PROVING;
	m->changed_at = m->marked ? T0 + i : HF_TIME_NONE;
	if (phase == HF_ROLLOUT_DONE)
		s->view.newest_end = T0;
}

/* The names of the nodes that begin, with blanks between. */
static const char *begins(const struct hf_rollout_plan *plan)
{
	static char text[256];
	size_t len = 0;

	*text = '\0';
	for (size_t i = 0; i < plan->begin_len; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? " " : "",
					plan->begin[i]->name);
	return text;
}

static void a_percentage_is_rounded_up(void **state)
{
	const struct hf_rollout_limit five = {-1, 5}, all = {-1, 100}, seven = {7, -1};

	(void)state;
	assert_int_equal(hf_rollout_wave_size(&five, 100), 5);
	assert_int_equal(hf_rollout_wave_size(&five, 1), 1);
	assert_int_equal(hf_rollout_wave_size(&five, 21), 2);
	assert_int_equal(hf_rollout_wave_size(&five, 0), 0);
	assert_int_equal(hf_rollout_wave_size(&all, 19), 19);
	assert_int_equal(hf_rollout_wave_size(&seven, 3), 3);
}

static void the_first_wave_is_one_node(void **state)
{
	struct scene *s = begin(100);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.state = HF_ROLLOUT_PENDING;
	s->view.wave = 0;
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING);
	assert_int_equal(plan.wave, 1);
	s->view.state = HF_ROLLOUT_ROLLING;
	s->view.wave = 1;
	plan = decide(s);
	assert_string_equal(begins(&plan), "n00");
	set_phase(s, 0, HF_ROLLOUT_PROVING);
	plan = decide(s);
	assert_string_equal(begins(&plan), "");
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING);
	assert_int_equal(plan.work, 1);
	end(s);
}

/* The only changed node was made again in the soak. */
static void a_wave_begins_again_if_no_changed_node_is_left(void **state)
{
	struct scene *s = begin(100);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.state = HF_ROLLOUT_SOAKING;
	s->view.soak_since = T0;
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING);
	assert_int_equal(plan.wave, 1);
	assert_int_equal(plan.soak_since, HF_TIME_NONE);
	assert_non_null(strstr(plan.message, "wave 1 of 3 begins again"));
	end(s);
}

/* The only wave is one node of four. */
static void another_node_takes_the_place_of_a_failed_one_in_the_last_wave(void **state)
{
	static const struct hf_rollout_limit one[] = {{1, -1}};
	struct scene *s = begin(4);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.waves = one;
	s->view.waves_len = 1;
	s->view.failures_max = 1;
	set_phase(s, 0, HF_ROLLOUT_FAILED);
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING);
	assert_string_equal(begins(&plan), "n01");
	set_phase(s, 1, HF_ROLLOUT_SKIPPED);
	s->members[1].tries = HF_ROLLOUT_TRIES_MAX;
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING);
	assert_string_equal(begins(&plan), "n02");
	set_phase(s, 2, HF_ROLLOUT_DONE);
	assert_int_equal(decide(s).next, HF_ROLLOUT_SOAKING);
	end(s);
}

static void a_wave_soaks_before_the_next(void **state)
{
	struct scene *s = begin(100);
	struct hf_rollout_plan plan;

	(void)state;
	set_phase(s, 0, HF_ROLLOUT_DONE);
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_SOAKING);
	s->view.state = HF_ROLLOUT_SOAKING;
	s->view.now = T0 + 10 * HF_MINUTE - 1;
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_SOAKING);
	assert_int_equal(plan.wake_at, T0 + 10 * HF_MINUTE);
	assert_non_null(strstr(plan.message, "wave 1 of 3 soaks until"));
	s->view.now++;
	/* No operator ran meanwhile: the soak lasts as long from now on, or 16 minutes. */
	s->view.seen_since = s->view.now;
	assert_int_equal(decide(s).wake_at, T0 + 20 * HF_MINUTE);
	s->view.soak = HF_HOUR;
	s->view.now = s->view.seen_since = T0 + 5 * HF_HOUR;
	assert_int_equal(decide(s).wake_at, T0 + 5 * HF_HOUR + 16 * HF_MINUTE);
	s->view.soak = 10 * HF_MINUTE;
	s->view.now = T0 + 10 * HF_MINUTE;
	s->view.seen_since = T0;
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING);
	assert_int_equal(plan.wave, 2);
	s->view.state = HF_ROLLOUT_ROLLING;
	s->view.wave = 2;
	plan = decide(s);
	/* Of five nodes one is done, and three may be in work. */
	assert_string_equal(begins(&plan), "n01 n02 n03");
	/* The operator has just begun: it sees only after a minute that a changed node is lost. */
	s->view.seen_since = s->view.now;
	plan = decide(s);
	assert_string_equal(begins(&plan), "");
	assert_int_equal(plan.wake_at, s->view.now + 65 * HF_SECOND);
	s->view.now += 65 * HF_SECOND;
	plan = decide(s);
	assert_string_equal(begins(&plan), "n01 n02 n03");
	end(s);
}

static void the_last_wave_ends_the_rollout(void **state)
{
	struct scene *s = begin(3);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.wave = 3;
	for (int i = 0; i < 3; i++)
		set_phase(s, i, HF_ROLLOUT_DONE);
	assert_int_equal(decide(s).next, HF_ROLLOUT_SOAKING);
	s->view.state = HF_ROLLOUT_SOAKING;
	s->view.now = T0 + HF_HOUR;
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_SUCCEEDED);
	assert_non_null(strstr(plan.message, "3 of 3 nodes changed and proved"));
	end(s);
}

static void a_node_is_done_without_an_entry_by_its_mark(void **state)
{
	struct scene *s = begin(10);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.wave = 3;
	s->members[0].changed = s->members[0].marked = true; /* by this rollout */
	s->members[1].changed = true;                        /* before it */
	plan = decide(s);
	assert_int_equal(plan.selected, 9);
	assert_int_equal(plan.changed, 1);
	assert_string_equal(begins(&plan), "n02 n03 n04");
	/* Another has taken the change away: the node fails, and is not changed again. */
	s->members[0].changed = false;
	s->members[0].sick = "the label has another value";
	plan = decide(s);
	assert_ptr_equal(plan.fails, &s->members[0]);
	assert_string_equal(begins(&plan), "");
	end(s);
}

static void groups_take_turns(void **state)
{
	struct scene *s = begin(9);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.wave = 3;
	for (int i = 0; i < 9; i++)
		s->members[i].group = i < 5 ? "a" : i < 8 ? "b" : "c";
	plan = decide(s);
	assert_string_equal(begins(&plan), "n00 n05 n08");
	set_phase(s, 0, HF_ROLLOUT_DONE);
	set_phase(s, 5, HF_ROLLOUT_DONE);
	set_phase(s, 8, HF_ROLLOUT_DONE);
	plan = decide(s);
	assert_string_equal(begins(&plan), "n01 n06 n02");
	end(s);
}

static void a_blocked_node_is_passed_over(void **state)
{
	struct scene *s = begin(3);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.wave = 3;
	s->members[0].blocked = "annotation holdfast.dev/hold";
	plan = decide(s);
	assert_string_equal(begins(&plan), "n01 n02");
	set_phase(s, 1, HF_ROLLOUT_DONE);
	set_phase(s, 2, HF_ROLLOUT_DONE);
	assert_int_equal(decide(s).next, HF_ROLLOUT_SOAKING);
	s->view.state = HF_ROLLOUT_SOAKING;
	s->view.now = T0 + HF_HOUR;
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_SUCCEEDED);
	assert_non_null(strstr(plan.message, "1 skipped, first n00: annotation holdfast.dev/hold"));
	end(s);
}

static void a_wave_waits_for_a_node_that_may_begin_later(void **state)
{
	struct scene *s = begin(3);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.wave = 3;
	s->view.wait_until = s->view.now + HF_MINUTE;
	s->members[0].blocked = "annotation holdfast.dev/hold";
	s->members[1].blocked = s->members[2].blocked = "the node is not Ready";
	s->members[1].passing = s->members[2].passing = true;
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING);
	assert_non_null(strstr(plan.message,
			       "for 2 nodes that may not begin yet, first n01: the node is not "
			       "Ready"));
	assert_int_equal(plan.wake_at, s->view.wait_until);
	/* A node that may begin is not kept waiting. */
	s->members[2].blocked = NULL;
	plan = decide(s);
	assert_string_equal(begins(&plan), "n02");
	/* The time is over. */
	s->members[2].blocked = "the node is not Ready";
	s->view.wait_until = s->view.now;
	assert_int_equal(decide(s).next, HF_ROLLOUT_SOAKING);
	/* A pause and a closed window do not end the wave without these nodes. */
	s->view.paused = true;
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING);
	assert_non_null(strstr(plan.message, "paused (spec.paused)"));
	s->view.paused = false;
	s->view.closed = "no window of the rollout is open";
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING);
	assert_non_null(strstr(plan.message, "no window of the rollout is open"));
	s->view.closed = NULL;
	/* A person has to end a hold. */
	s->view.wait_until = s->view.now + HF_MINUTE;
	s->members[1].passing = s->members[2].passing = false;
	assert_int_equal(decide(s).next, HF_ROLLOUT_SOAKING);
	end(s);
}

static void a_wave_waits_for_a_budget(void **state)
{
	struct scene *s = begin(2);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.wave = 3;
	s->members[0].limited = s->members[1].limited = true;
	plan = decide(s);
	assert_string_equal(begins(&plan), "");
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING);
	end(s);
}

static void a_skipped_node_is_tried_once_more_at_the_end(void **state)
{
	struct scene *s = begin(4);
	struct hf_rollout_plan plan;

	(void)state;
	set_phase(s, 0, HF_ROLLOUT_SKIPPED);
	/* In an earlier wave another node takes its place. */
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING);
	assert_string_equal(begins(&plan), "n01");
	s->view.wave = 3;
	plan = decide(s);
	assert_string_equal(begins(&plan), "n01 n02 n03");
	for (int i = 1; i < 4; i++)
		set_phase(s, i, HF_ROLLOUT_DONE);
	plan = decide(s);
	assert_string_equal(begins(&plan), "n00");
	/* A person holds the node meanwhile: it is one node of the two counts. */
	s->members[0].blocked = "annotation holdfast.dev/hold";
	s->view.state = HF_ROLLOUT_SOAKING;
	s->view.now = T0 + HF_HOUR;
	assert_string_equal(decide(s).message,
			    "3 of 4 nodes changed and proved, 0 failed, 1 skipped, "
			    "first n00: annotation holdfast.dev/hold");
	s->view.state = HF_ROLLOUT_ROLLING;
	s->members[0].blocked = NULL;
	s->members[0].tries = 2;
	assert_int_equal(decide(s).next, HF_ROLLOUT_SOAKING);
	end(s);
}

/* All proved nodes are sick. The status lists as many failed nodes as it can. */
static void many_sick_nodes_halt_before_the_status_is_full(void **state)
{
	struct scene *s = begin(20);
	struct hf_rollout_plan plan;

	(void)state;
	for (int i = 0; i < 20; i++) {
		set_phase(s, i, i < 10 ? HF_ROLLOUT_FAILED : HF_ROLLOUT_DONE);
		s->members[i].sick = "device a: reset";
	}
	plan = decide(s);
	assert_string_equal(plan.fails->name, "n10");
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING);
	s->view.full = true;
	plan = decide(s);
	assert_null(plan.fails);
	assert_int_equal(plan.next, HF_ROLLOUT_HALTED);
	assert_string_equal(plan.halt_reason, "NodeFailed");
	s->view.failures_max = 10;
	assert_string_equal(decide(s).fails->name, "n10");
	end(s);
}

static void a_failed_node_halts(void **state)
{
	struct scene *s = begin(10);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.wave = 3;
	set_phase(s, 4, HF_ROLLOUT_FAILED);
	s->members[4].message = "no proof within 900 s: device GPU-1: gpu-reset";
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_HALTED);
	assert_string_equal(plan.halt_reason, "NodeFailed");
	assert_string_equal(plan.halt, "1 node failed, first n04: no proof within 900 s: device "
				       "GPU-1: gpu-reset");
	assert_string_equal(begins(&plan), "");
	s->view.failures_max = 1;
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING);
	assert_string_equal(begins(&plan), "n00 n01 n02");
	end(s);
}

static void a_proved_node_that_gets_sick_fails(void **state)
{
	struct scene *s = begin(10);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.wave = 3;
	set_phase(s, 4, HF_ROLLOUT_DONE);
	s->members[5].changed = s->members[5].marked = true;
	s->members[5].sick = "device GPU-1: gpu-reset";
	plan = decide(s);
	assert_string_equal(plan.fails->name, "n05");
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING);
	/* A node that the rollout has not changed is no evidence. */
	s->members[5].changed = s->members[5].marked = false;
	assert_null(decide(s).fails);
	end(s);
}

static void a_proved_node_that_is_lost_fails(void **state)
{
	struct scene *s = begin(6);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.wave = 3;
	set_phase(s, 0, HF_ROLLOUT_DONE);
	set_phase(s, 1, HF_ROLLOUT_DONE);
	s->members[1].lost = "the node has not been Ready for a minute";
	s->members[2].lost = s->members[1].lost;
	plan = decide(s);
	assert_string_equal(plan.fails->name, "n01");
	assert_string_equal(plan.fails_why, "the node has not been Ready for a minute, after the "
					    "change was proved");
	/* Half of the unchanged nodes are lost too: the change is not the cause. */
	s->members[3].lost = s->members[1].lost;
	assert_null(decide(s).fails);
	/* They were lost long before. */
	s->members[1].lost_for = HF_MINUTE;
	s->members[2].lost_for = s->members[3].lost_for = 11 * HF_MINUTE;
	assert_null(decide(s).fails);
	s->members[2].lost_for = s->members[3].lost_for = 12 * HF_MINUTE;
	assert_string_equal(decide(s).fails->name, "n01");
	s->members[2].lost_for = s->members[3].lost_for = 0;
	/* A sick device counts all the same. */
	s->members[1].sick = "device GPU-1: gpu-reset";
	assert_string_equal(decide(s).fails_why,
			    "device GPU-1: gpu-reset, after the change was proved");
	end(s);
}

static void a_rollout_without_nodes_says_why(void **state)
{
	struct scene *s = begin(2);

	(void)state;
	s->view.state = HF_ROLLOUT_SOAKING;
	s->view.wave = 3;
	s->members[0].changed = s->members[1].changed = true;
	assert_string_equal(decide(s).message,
			    "nothing to change: all 2 selected nodes have the newest "
			    "template of the DaemonSet already");
	s->view.members_len = 0;
	assert_string_equal(decide(s).message,
			    "nothing to change: spec.nodeSelector selects no node "
			    "with a pod of the DaemonSet");
	s->view.is_label = true;
	assert_string_equal(decide(s).message,
			    "nothing to change: spec.nodeSelector selects no node");
	end(s);
}

static void rates_of_faults_are_compared(void **state)
{
	const struct hf_rollout_totals quiet = {.nodes = 90, .device_minutes = 60000, .faults = 10};
	const struct hf_rollout_totals none = {.nodes = 90};
	struct hf_rollout_totals changed = {.nodes = 10, .device_minutes = 6000, .faults = 3};
	struct scene *s = begin(10);
	struct hf_rollout_plan plan;

	(void)state;
	/* One fault is expected. */
	assert_false(hf_rollout_is_worse(&changed, &quiet));
	changed.faults = 4;
	assert_true(hf_rollout_is_worse(&changed, &quiet));
	assert_false(hf_rollout_is_worse(&changed, &none));
	/* Thirty are expected: three times as many are needed. */
	changed = (struct hf_rollout_totals){.device_minutes = 180000, .faults = 89};
	assert_false(hf_rollout_is_worse(&changed, &quiet));
	changed.faults = 90;
	assert_true(hf_rollout_is_worse(&changed, &quiet));
	s->view.changed = changed;
	s->view.unchanged = quiet;
	plan = decide(s);
	assert_string_equal(plan.halt_reason, "MoreFaults");
	assert_string_equal(plan.halt, "changed nodes had 90 faults in 3000 device-hours, and "
				       "unchanged nodes 10 in 1000");
	end(s);
}

static void rates_of_restarts_are_compared(void **state)
{
	struct hf_rollout_totals quiet = {.nodes = 90, .device_minutes = 60000, .restarts = 10};
	struct hf_rollout_totals changed = {.nodes = 10, .device_minutes = 6000, .restarts = 3};
	struct scene *s = begin(10);
	struct hf_rollout_plan plan;

	(void)state;
	/* One restart is expected. */
	s->view.changed = changed;
	s->view.unchanged = quiet;
	assert_null(decide(s).halt_reason);
	s->view.changed.restarts = 4;
	plan = decide(s);
	assert_string_equal(plan.halt_reason, "MoreRestarts");
	assert_string_equal(plan.halt, "changed nodes had 4 restarts of jobs by devices in 100 "
				       "device-hours, and unchanged nodes 10 in 1000");
	/* Faults and restarts are not added up. */
	s->view.changed.restarts = s->view.changed.faults = 2;
	assert_null(decide(s).halt_reason);
	end(s);
}

static void slower_steps_halt(void **state)
{
	struct scene *s = begin(10);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.steps = (struct hf_rollout_steps){
		.changed_nodes = 3, .unchanged_nodes = 5, .permille = 1199};
	assert_null(decide(s).halt_reason);
	s->view.steps.permille = 1285;
	plan = decide(s);
	assert_string_equal(plan.halt_reason, "SlowerSteps");
	assert_string_equal(plan.halt,
			    "ranks on 3 changed nodes work 1.28 times as long in each step as "
			    "ranks of the same jobs on 5 unchanged nodes");
	end(s);
}

static void a_canary_that_never_succeeded_halts(void **state)
{
	struct scene *s = begin(10);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.wave = 3;
	set_phase(s, 2, HF_ROLLOUT_SKIPPED);
	assert_null(decide(s).halt_reason);
	s->members[2].canary_failed = true;
	s->members[2].message = "the canary, job a/b, failed before the change: no such image";
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_HALTED);
	assert_string_equal(plan.halt_reason, "CanaryFailed");
	assert_string_equal(plan.halt,
			    "no node was changed, because of node n02: the canary, job a/b, failed "
			    "before the change: no such image");
	assert_string_equal(begins(&plan), "");
	/* On another node the canary has succeeded: this node is no evidence. */
	set_phase(s, 3, HF_ROLLOUT_DONE);
	assert_null(decide(s).halt_reason);
	end(s);
}

static void a_rollback_takes_the_newest_change_first(void **state)
{
	struct scene *s = begin(6);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.state = HF_ROLLOUT_HALTED;
	s->view.rolls_back = true;
	for (int i = 0; i < 4; i++)
		set_phase(s, i, i == 2 ? HF_ROLLOUT_FAILED : HF_ROLLOUT_DONE);
	s->members[5].changed = true; /* a new node that has the newest revision */
	set_phase(s, 4, HF_ROLLOUT_PROVING);
	s->members[4].message = "the node is well; held by annotation holdfast.dev/hold";
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_HALTED);
	assert_string_equal(
		plan.message,
		"halted; the change is taken back once no node is in work: 1 node left, "
		"first n04: the node is well; held by annotation holdfast.dev/hold");
	set_phase(s, 4, HF_ROLLOUT_DONE);
	assert_int_equal(decide(s).next, HF_ROLLOUT_ROLLING_BACK);
	s->view.state = HF_ROLLOUT_ROLLING_BACK;
	s->view.template_is_back = false;
	plan = decide(s);
	assert_true(plan.undo_template);
	assert_string_equal(begins(&plan), "");
	/* While the DaemonSet is away, the rollback waits for it. */
	s->view.problem = "spec.change.daemonSet: DaemonSet gpu/driver does not exist";
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING_BACK);
	assert_non_null(strstr(plan.message, "does not exist"));
	s->view.problem = NULL;
	/* A person has deleted the revision. */
	s->view.can_go_back = false;
	s->view.closed = "the controller of DaemonSets has not seen the newest template";
	assert_int_equal(decide(s).next, HF_ROLLOUT_ROLLING_BACK);
	s->view.closed = NULL;
	assert_string_equal(decide(s).halt_reason, "NoRevision");
	s->view.can_go_back = true;
	s->view.template_is_back = true;
	s->view.at_once = 6;
	plan = decide(s);
	assert_string_equal(begins(&plan), "n04 n03 n02 n01 n00 n05");
	/* A label that the rollout did not write is left alone. */
	s->view.is_label = true;
	plan = decide(s);
	assert_string_equal(begins(&plan), "n04 n03 n02 n01 n00");
	end(s);
}

static void a_rollback_ends_when_nothing_is_left(void **state)
{
	struct scene *s = begin(3);

	(void)state;
	s->view.state = HF_ROLLOUT_ROLLING_BACK;
	for (int i = 0; i < 3; i++) {
		set_phase(s, i, HF_ROLLOUT_ROLLED_BACK);
		s->members[i].back = s->members[i].marked = true;
	}
	assert_int_equal(decide(s).next, HF_ROLLOUT_ENDED_FAILED);
	/* A node on which the rollback failed is not tried for ever. */
	set_phase(s, 1, HF_ROLLOUT_FAILED);
	s->members[1].back = true;
	assert_int_equal(decide(s).next, HF_ROLLOUT_ENDED_FAILED);
	end(s);
}

/* What breaks one well node on the way back would break the next one too. */
static void a_rollback_that_breaks_well_nodes_stops(void **state)
{
	struct scene *s = begin(8);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.state = HF_ROLLOUT_ROLLING_BACK;
	s->view.rolls_back = true;
	for (int i = 0; i < 4; i++)
		set_phase(s, i, HF_ROLLOUT_DONE);
	/* This node had failed with the change. */
	set_phase(s, 4, HF_ROLLOUT_FAILED);
	s->members[4].back = true;
	set_phase(s, 3, HF_ROLLOUT_FAILED);
	s->members[3].back = s->members[3].was_well = true;
	s->members[3].changed = false;
	s->members[3].message = "no proof within 900 s: the pod is not Ready";
	set_phase(s, 2, HF_ROLLOUT_PROVING);
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ROLLING_BACK);
	assert_string_equal(begins(&plan), "");
	assert_string_equal(plan.message,
			    "the rollback stops once no node is in work: 1 left; n03: "
			    "no proof within 900 s: the pod is not Ready");
	set_phase(s, 2, HF_ROLLOUT_ROLLED_BACK);
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_HALTED);
	assert_string_equal(plan.halt_reason, "RollbackFailed");
	assert_string_equal(plan.halt,
			    "1 well node failed while the change was taken back, first n03: no "
			    "proof within 900 s: the pod is not Ready; 2 nodes keep the change");
	/* It does not begin anew. */
	s->view.state = HF_ROLLOUT_HALTED;
	assert_int_equal(decide(s).next, HF_ROLLOUT_HALTED);
	s->view.state = HF_ROLLOUT_ROLLING_BACK;
	/* The change has broken the device: the way back works. */
	s->members[3].out = true;
	plan = decide(s);
	assert_string_equal(begins(&plan), "n01 n00");
	s->members[3].out = false;
	s->members[3].was_away = true;
	plan = decide(s);
	assert_string_equal(begins(&plan), "n01 n00");
	s->members[3].was_away = false;
	s->view.failures_max = 1;
	plan = decide(s);
	assert_string_equal(begins(&plan), "n01 n00");
	end(s);
}

static void a_rollback_names_the_nodes_that_keep_the_change(void **state)
{
	struct scene *s = begin(4);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.state = HF_ROLLOUT_ROLLING_BACK;
	set_phase(s, 0, HF_ROLLOUT_SKIPPED); /* never changed */
	set_phase(s, 1, HF_ROLLOUT_ROLLED_BACK);
	s->members[1].back = s->members[1].marked = true;
	set_phase(s, 2, HF_ROLLOUT_DONE);
	s->members[2].blocked = "annotation holdfast.dev/hold";
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ENDED_FAILED);
	assert_int_equal(plan.left, 1);
	assert_string_equal(plan.message,
			    "taken back (condition Halted says why); 0 nodes failed on the way "
			    "back, 1 keeps the change, first n02: "
			    "annotation holdfast.dev/hold");
	set_phase(s, 2, HF_ROLLOUT_ROLLED_BACK);
	s->members[2].changed = false;
	assert_int_equal(decide(s).left, 0);
	/* A node that got the newest revision without the rollout. */
	s->members[3].changed = true;
	s->members[3].blocked = "annotation holdfast.dev/hold";
	assert_int_equal(decide(s).left, 1);
	s->view.is_label = true;
	assert_int_equal(decide(s).left, 0);
	/* The rollout has changed the node, and a person has taken its mark away. */
	set_phase(s, 3, HF_ROLLOUT_DONE);
	s->members[3].blocked = NULL;
	s->members[3].marked = false;
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ENDED_FAILED);
	assert_non_null(strstr(plan.message, "1 keeps the change, first n03: its mark is gone"));
	end(s);
}

static void what_is_superseded_halts_and_is_not_taken_back(void **state)
{
	struct scene *s = begin(3);

	(void)state;
	s->view.superseded = "the template of DaemonSet gpu/driver was changed again";
	s->view.rolls_back = true;
	assert_string_equal(decide(s).halt_reason, "Superseded");
	s->view.state = HF_ROLLOUT_HALTED;
	assert_int_equal(decide(s).next, HF_ROLLOUT_HALTED);
	/* A person gives the DaemonSet its wanted template again. */
	s->view.superseded = NULL;
	s->view.halted_without_evidence = true;
	assert_int_equal(decide(s).next, HF_ROLLOUT_HALTED);
	/* A node that was in work fails its proof. */
	set_phase(s, 0, HF_ROLLOUT_FAILED);
	assert_int_equal(decide(s).next, HF_ROLLOUT_ROLLING_BACK);
	/* A rollback has evidence, which its own halt must not hide. */
	s->view.state = HF_ROLLOUT_ROLLING_BACK;
	s->view.superseded = "the template of DaemonSet gpu/driver was changed again";
	assert_string_equal(decide(s).halt_reason, "RollbackSuperseded");
	end(s);
}

static void a_paused_or_closed_rollout_begins_with_no_node(void **state)
{
	struct scene *s = begin(3);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.wave = 3;
	s->view.paused = true;
	plan = decide(s);
	assert_string_equal(begins(&plan), "");
	assert_non_null(strstr(plan.message, "paused"));
	s->view.paused = false;
	s->view.closed = "no window is open";
	plan = decide(s);
	assert_string_equal(begins(&plan), "");
	assert_non_null(strstr(plan.message, "no window is open"));
	end(s);
}

static void a_rival_or_a_problem_keeps_it_pending(void **state)
{
	struct scene *s = begin(3);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.state = HF_ROLLOUT_PENDING;
	s->view.wave = 0;
	s->view.rival = "older";
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_PENDING);
	assert_non_null(strstr(plan.message, "older"));
	s->view.problem = "spec.change.daemonSet: DaemonSet gpu/driver does not exist";
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_PENDING);
	assert_non_null(strstr(plan.message, "does not exist"));
	s->view.state = HF_ROLLOUT_ROLLING;
	s->view.wave = 1;
	assert_string_equal(decide(s).halt_reason, "Invalid");
	end(s);
}

static void a_cancel_waits_for_the_nodes_in_work(void **state)
{
	struct scene *s = begin(3);

	(void)state;
	s->view.cancel = true;
	set_phase(s, 0, HF_ROLLOUT_PROVING);
	assert_int_equal(decide(s).next, HF_ROLLOUT_ROLLING);
	set_phase(s, 0, HF_ROLLOUT_DONE);
	assert_int_equal(decide(s).next, HF_ROLLOUT_CANCELLED);
	for (int i = 0; i < HF_ROLLOUT_SUCCEEDED; i++) {
		s->view.state = (enum hf_rollout_state)i;
		assert_int_equal(decide(s).next, HF_ROLLOUT_CANCELLED);
	}
	s->view.state = HF_ROLLOUT_SUCCEEDED;
	assert_int_equal(decide(s).next, HF_ROLLOUT_SUCCEEDED);
	end(s);
}

static void the_order_of_the_nodes_does_not_matter(void **state)
{
	struct scene *s = begin(9);
	struct hf_rollout_member turned[9];
	struct hf_rollout_plan plan;
	char first[256];

	(void)state;
	s->view.wave = 3;
	for (int i = 0; i < 9; i++)
		s->members[i].group = i % 2 ? "a" : "b";
	plan = decide(s);
	snprintf(first, sizeof(first), "%s", begins(&plan));
	for (int i = 0; i < 9; i++)
		turned[i] = s->members[8 - i];
	s->view.members = turned;
	plan = decide(s);
	assert_string_equal(begins(&plan), first);
	end(s);
}

/* Nodes 0 and 1 had the newest template when the rollout began. */
static void a_rollback_leaves_nodes_that_had_the_change_before(void **state)
{
	struct scene *s = begin(4);
	struct hf_rollout_plan plan;

	(void)state;
	s->view.state = HF_ROLLOUT_ROLLING_BACK;
	for (int i = 0; i < 3; i++)
		s->members[i].changed = true;
	s->members[0].had_before = s->members[1].had_before = true;
	set_phase(s, 1, HF_ROLLOUT_DONE);
	plan = decide(s);
	assert_string_equal(begins(&plan), "n01 n02");
	set_phase(s, 1, HF_ROLLOUT_ROLLED_BACK);
	set_phase(s, 2, HF_ROLLOUT_ROLLED_BACK);
	plan = decide(s);
	assert_int_equal(plan.next, HF_ROLLOUT_ENDED_FAILED);
	assert_int_equal(plan.left, 0);
	end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_percentage_is_rounded_up),
		cmocka_unit_test(a_rollback_leaves_nodes_that_had_the_change_before),
		cmocka_unit_test(the_first_wave_is_one_node),
		cmocka_unit_test(another_node_takes_the_place_of_a_failed_one_in_the_last_wave),
		cmocka_unit_test(a_wave_soaks_before_the_next),
		cmocka_unit_test(a_wave_begins_again_if_no_changed_node_is_left),
		cmocka_unit_test(the_last_wave_ends_the_rollout),
		cmocka_unit_test(a_node_is_done_without_an_entry_by_its_mark),
		cmocka_unit_test(groups_take_turns),
		cmocka_unit_test(a_blocked_node_is_passed_over),
		cmocka_unit_test(a_wave_waits_for_a_node_that_may_begin_later),
		cmocka_unit_test(a_wave_waits_for_a_budget),
		cmocka_unit_test(a_skipped_node_is_tried_once_more_at_the_end),
		cmocka_unit_test(many_sick_nodes_halt_before_the_status_is_full),
		cmocka_unit_test(a_failed_node_halts),
		cmocka_unit_test(a_proved_node_that_gets_sick_fails),
		cmocka_unit_test(a_proved_node_that_is_lost_fails),
		cmocka_unit_test(a_rollout_without_nodes_says_why),
		cmocka_unit_test(rates_of_faults_are_compared),
		cmocka_unit_test(rates_of_restarts_are_compared),
		cmocka_unit_test(slower_steps_halt),
		cmocka_unit_test(a_canary_that_never_succeeded_halts),
		cmocka_unit_test(a_rollback_takes_the_newest_change_first),
		cmocka_unit_test(a_rollback_ends_when_nothing_is_left),
		cmocka_unit_test(a_rollback_that_breaks_well_nodes_stops),
		cmocka_unit_test(a_rollback_names_the_nodes_that_keep_the_change),
		cmocka_unit_test(what_is_superseded_halts_and_is_not_taken_back),
		cmocka_unit_test(a_paused_or_closed_rollout_begins_with_no_node),
		cmocka_unit_test(a_rival_or_a_problem_keeps_it_pending),
		cmocka_unit_test(a_cancel_waits_for_the_nodes_in_work),
		cmocka_unit_test(the_order_of_the_nodes_does_not_matter),
	};

	return cmocka_run_group_tests_name("rollout_plan", tests, NULL, NULL);
}
