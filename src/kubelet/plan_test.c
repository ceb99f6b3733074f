/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/plan_internal.h"

#include "harness/test.h"

#include <string.h>

/* A pod of up to four containers, with their journals and the plan for them. */
struct pod {
	struct hf_plan_container c[4];
	struct hf_container_past past[4];
	struct hf_pod_plan plan;
};

#define START (1700000000 * HF_SECOND)

static void init(struct pod *p, enum hf_restart_policy policy, size_t n_init, size_t n_main)
{
	memset(p, 0, sizeof(*p));
	for (size_t i = 0; i < n_init + n_main; i++) {
		p->c[i].init = i < n_init;
		p->c[i].past = &p->past[i];
		p->c[i].blocked_until = HF_TIME_NONE;
	}
	p->plan = (struct hf_pod_plan){
		.policy = policy, .now = START, .containers = p->c, .n = n_init + n_main};
}

static void plan_at(struct pod *p, hf_time after)
{
	p->plan.now = START + after;
	hf_pod_plan(&p->plan);
}

static void set(struct pod *p, size_t i, enum hf_attempt_state state, int code)
{
	struct hf_attempt *a = &p->past[i].last;

	a->state = state;
	a->begun = a->started = START;
	a->finished = state >= HF_ATTEMPT_FAILED ? START : HF_TIME_NONE;
	a->code = code;
}

static void begins_with_the_first_init_container(void **state)
{
	struct pod p;

	init(&p, HF_RESTART_NEVER, 2, 2);
	plan_at(&p, 0);
	assert_int_equal(p.c[0].step, HF_STEP_START);
	assert_int_equal(p.c[0].attempt, 0);
	for (int i = 1; i < 4; i++)
		assert_int_equal(p.c[i].step, HF_STEP_NONE);
	assert_int_equal(p.plan.phase, HF_PHASE_PENDING);
	assert_false(p.plan.initialized);
	set(&p, 0, HF_ATTEMPT_RUNNING, 0);
	plan_at(&p, 0);
	assert_int_equal(p.c[1].step, HF_STEP_NONE);
	set(&p, 0, HF_ATTEMPT_EXITED, 0);
	plan_at(&p, 0);
	assert_int_equal(p.c[1].step, HF_STEP_START);
	set(&p, 1, HF_ATTEMPT_EXITED, 0);
	plan_at(&p, 0);
	assert_true(p.plan.initialized);
	assert_int_equal(p.c[2].step, HF_STEP_START);
	assert_int_equal(p.c[3].step, HF_STEP_START);
	assert_int_equal(p.plan.wake, HF_TIME_NEVER);
}

/* Container 0 is a sidecar, and container 1 runs the program. */
static void a_sidecar_starts_first_and_ends_last(void **state)
{
	struct pod p;

	init(&p, HF_RESTART_NEVER, 1, 1);
	p.c[0].sidecar = true;
	plan_at(&p, 0);
	assert_int_equal(p.c[0].step, HF_STEP_START);
	assert_int_equal(p.c[1].step, HF_STEP_NONE);
	set(&p, 0, HF_ATTEMPT_RUNNING, 0);
	p.c[0].starting = true;
	plan_at(&p, 0);
	assert_false(p.plan.initialized);
	assert_int_equal(p.c[1].step, HF_STEP_NONE);
	p.c[0].starting = false;
	plan_at(&p, 0);
	assert_true(p.plan.initialized);
	assert_int_equal(p.c[1].step, HF_STEP_START);
	set(&p, 1, HF_ATTEMPT_RUNNING, 0);
	plan_at(&p, 0);
	assert_int_equal(p.plan.phase, HF_PHASE_RUNNING);
	assert_false(p.plan.end_sidecars);
	set(&p, 1, HF_ATTEMPT_EXITED, 0);
	plan_at(&p, 0);
	assert_true(p.plan.end_sidecars);
	assert_true(p.plan.over);
	assert_false(p.plan.finished);
	assert_int_equal(p.plan.phase, HF_PHASE_RUNNING);
	set(&p, 0, HF_ATTEMPT_EXITED, 143);
	plan_at(&p, 0);
	assert_int_equal(p.c[0].step, HF_STEP_NONE);
	assert_true(p.plan.finished);
	assert_int_equal(p.plan.phase, HF_PHASE_SUCCEEDED);
}

static void a_sidecar_that_ends_is_restarted_and_the_program_runs_on(void **state)
{
	struct pod p;

	init(&p, HF_RESTART_NEVER, 1, 1);
	p.c[0].sidecar = true;
	set(&p, 0, HF_ATTEMPT_EXITED, 1);
	set(&p, 1, HF_ATTEMPT_RUNNING, 0);
	plan_at(&p, 0);
	assert_int_equal(p.c[0].step, HF_STEP_START);
	assert_int_equal(p.c[0].attempt, 1);
	assert_true(p.plan.initialized);
	assert_int_equal(p.plan.phase, HF_PHASE_RUNNING);
	p.plan.stopping = true;
	plan_at(&p, 0);
	assert_int_equal(p.c[0].step, HF_STEP_NONE);
}

/* Container 0 is a sidecar, container 1 an init container, and container 2 runs the program. */
static void a_failed_init_container_ends_the_sidecars_before_it(void **state)
{
	struct pod p;

	init(&p, HF_RESTART_NEVER, 2, 1);
	p.c[0].sidecar = true;
	set(&p, 0, HF_ATTEMPT_RUNNING, 0);
	set(&p, 1, HF_ATTEMPT_EXITED, 3);
	plan_at(&p, 0);
	assert_true(p.plan.end_sidecars);
	assert_int_equal(p.c[2].step, HF_STEP_NONE);
	set(&p, 0, HF_ATTEMPT_EXITED, 0);
	plan_at(&p, 0);
	assert_true(p.plan.finished);
	assert_int_equal(p.plan.phase, HF_PHASE_FAILED);
}

static void an_init_container_that_fails_ends_a_pod_that_never_restarts(void **state)
{
	struct pod p;

	init(&p, HF_RESTART_NEVER, 1, 1);
	set(&p, 0, HF_ATTEMPT_EXITED, 1);
	plan_at(&p, 0);
	assert_true(p.plan.finished);
	assert_int_equal(p.plan.phase, HF_PHASE_FAILED);
	p.plan.policy = HF_RESTART_ON_FAILURE;
	plan_at(&p, 0);
	assert_false(p.plan.finished);
	assert_int_equal(p.c[0].step, HF_STEP_START);
	assert_int_equal(p.c[0].attempt, 1);
	assert_int_equal(p.c[1].step, HF_STEP_NONE);
	/* An init container that has succeeded is not restarted, under any policy. */
	p.plan.policy = HF_RESTART_ALWAYS;
	set(&p, 0, HF_ATTEMPT_EXITED, 0);
	plan_at(&p, 0);
	assert_int_equal(p.c[0].step, HF_STEP_NONE);
	assert_int_equal(p.c[1].step, HF_STEP_START);
}

static void the_policy_decides_which_container_starts_again(void **state)
{
	static const struct {
		enum hf_restart_policy policy;
		enum hf_attempt_state state;
		int code;
		enum hf_container_step step;
		bool finished;
		enum hf_pod_phase phase;
	} rows[] = {
		{HF_RESTART_NEVER, HF_ATTEMPT_EXITED, 0, HF_STEP_NONE, true, HF_PHASE_SUCCEEDED},
		{HF_RESTART_NEVER, HF_ATTEMPT_EXITED, 1, HF_STEP_NONE, true, HF_PHASE_FAILED},
		{HF_RESTART_NEVER, HF_ATTEMPT_FAILED, 0, HF_STEP_NONE, true, HF_PHASE_FAILED},
		{HF_RESTART_ON_FAILURE, HF_ATTEMPT_EXITED, 0, HF_STEP_NONE, true,
		 HF_PHASE_SUCCEEDED},
		{HF_RESTART_ON_FAILURE, HF_ATTEMPT_EXITED, 1, HF_STEP_START, false,
		 HF_PHASE_RUNNING},
		{HF_RESTART_ON_FAILURE, HF_ATTEMPT_FAILED, 0, HF_STEP_START, false,
		 HF_PHASE_RUNNING},
		{HF_RESTART_ALWAYS, HF_ATTEMPT_EXITED, 0, HF_STEP_START, false, HF_PHASE_RUNNING},
		{HF_RESTART_ALWAYS, HF_ATTEMPT_EXITED, 1, HF_STEP_START, false, HF_PHASE_RUNNING},
		{HF_RESTART_ALWAYS, HF_ATTEMPT_RUNNING, 0, HF_STEP_NONE, false, HF_PHASE_RUNNING},
		{HF_RESTART_ALWAYS, HF_ATTEMPT_BEGUN, 0, HF_STEP_NONE, false, HF_PHASE_PENDING},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		struct pod p;

		init(&p, rows[i].policy, 0, 1);
		set(&p, 0, rows[i].state, rows[i].code);
		plan_at(&p, 0);
		assert_int_equal(p.c[0].step, rows[i].step);
		assert_int_equal(p.plan.finished, rows[i].finished);
		assert_int_equal(p.plan.phase, rows[i].phase);
	}
}

static void a_pod_is_as_bad_as_its_worst_container_and_over_with_its_last(void **state)
{
	struct pod p;

	init(&p, HF_RESTART_NEVER, 0, 2);
	set(&p, 0, HF_ATTEMPT_EXITED, 1);
	set(&p, 1, HF_ATTEMPT_RUNNING, 0);
	plan_at(&p, 0);
	assert_false(p.plan.finished);
	assert_int_equal(p.plan.phase, HF_PHASE_RUNNING);
	set(&p, 1, HF_ATTEMPT_EXITED, 0);
	plan_at(&p, 0);
	assert_true(p.plan.finished);
	assert_int_equal(p.plan.phase, HF_PHASE_FAILED);
}

/* Lets the container fail repeatedly, each attempt after `lasts`, and checks when the next one
 * begins. */
static void fail_repeatedly(struct pod *p, hf_time lasts, const unsigned *expected_delays, size_t n)
{
	hf_time now = 0;

	for (unsigned attempt = 0; attempt < n; attempt++) {
		struct hf_attempt *a = &p->past[0].last;

		plan_at(p, now);
		if (expected_delays[attempt]) {
			assert_int_equal(p->c[0].step, HF_STEP_BACKOFF);
			assert_int_equal(p->c[0].at,
					 START + now + expected_delays[attempt] * HF_SECOND);
			assert_int_equal(p->plan.wake, p->c[0].at);
			now = p->c[0].at - START;
			plan_at(p, now - 1);
			assert_int_equal(p->c[0].step, HF_STEP_BACKOFF);
			plan_at(p, now);
		}
		assert_int_equal(p->c[0].step, HF_STEP_START);
		assert_int_equal(p->c[0].attempt, attempt);
		*a = (struct hf_attempt){.state = HF_ATTEMPT_EXITED,
					 .number = attempt,
					 .backoff_s = p->c[0].backoff_s,
					 .begun = START + now,
					 .started = START + now,
					 .finished = START + now + lasts,
					 .code = 1};
		now += lasts;
	}
}

static void back_off_doubles_up_to_five_minutes(void **state)
{
	static const unsigned delays[] = {0, 0, 10, 20, 40, 80, 160, 300, 300, 300};
	struct pod p;

	init(&p, HF_RESTART_ALWAYS, 0, 1);
	fail_repeatedly(&p, HF_SECOND, delays, HF_ARRAY_LEN(delays));
}

static void an_attempt_of_ten_minutes_makes_up_for_those_before(void **state)
{
	static const unsigned short_ones[] = {0, 0, 10, 20, 40};
	struct pod p;

	init(&p, HF_RESTART_ON_FAILURE, 0, 1);
	fail_repeatedly(&p, HF_SECOND, short_ones, HF_ARRAY_LEN(short_ones));
	p.past[0].last.finished = p.past[0].last.begun + HF_BACKOFF_RESET + HF_SECOND;
	plan_at(&p, p.past[0].last.finished - START);
	assert_int_equal(p.c[0].step, HF_STEP_START);
	assert_int_equal(p.c[0].backoff_s, HF_BACKOFF_FIRST_S);
}

static void what_cannot_be_prepared_waits_without_losing_its_turn(void **state)
{
	struct pod p;

	init(&p, HF_RESTART_NEVER, 0, 2);
	p.c[0].blocked_until = START + 5 * HF_SECOND;
	plan_at(&p, 0);
	assert_int_equal(p.c[0].step, HF_STEP_BLOCKED);
	assert_int_equal(p.c[1].step, HF_STEP_START);
	assert_int_equal(p.plan.wake, START + 5 * HF_SECOND);
	assert_false(p.plan.finished);
	set(&p, 1, HF_ATTEMPT_EXITED, 0);
	plan_at(&p, HF_SECOND);
	assert_int_equal(p.plan.phase, HF_PHASE_PENDING);
	plan_at(&p, 5 * HF_SECOND);
	assert_int_equal(p.c[0].step, HF_STEP_START);
}

static void stopping_starts_nothing_and_ends_with_the_last_process(void **state)
{
	struct pod p;

	init(&p, HF_RESTART_ALWAYS, 1, 1);
	p.plan.stopping = true;
	plan_at(&p, 0);
	assert_true(p.plan.finished);
	assert_int_equal(p.plan.phase, HF_PHASE_FAILED);
	init(&p, HF_RESTART_ALWAYS, 0, 1);
	p.plan.stopping = true;
	set(&p, 0, HF_ATTEMPT_RUNNING, 0);
	plan_at(&p, 0);
	assert_false(p.plan.finished);
	assert_int_equal(p.c[0].step, HF_STEP_NONE);
	set(&p, 0, HF_ATTEMPT_EXITED, 0);
	plan_at(&p, 0);
	assert_true(p.plan.finished);
	assert_int_equal(p.plan.phase, HF_PHASE_SUCCEEDED);
	/* Between two attempts. */
	set(&p, 0, HF_ATTEMPT_EXITED, 1);
	plan_at(&p, 0);
	assert_true(p.plan.finished);
	assert_false(p.plan.over);
	p.plan.policy = HF_RESTART_NEVER;
	plan_at(&p, 0);
	assert_true(p.plan.over);
	assert_int_equal(p.plan.phase, HF_PHASE_FAILED);
}

static void exit_codes_are_those_a_shell_would_tell(void **state)
{
	struct hf_attempt a = {.state = HF_ATTEMPT_EXITED, .code = 3};

	assert_int_equal(hf_attempt_exit_code(&a), 3);
	a.signum = 9;
	assert_int_equal(hf_attempt_exit_code(&a), 137);
	assert_false(hf_attempt_succeeded(&a));
	a = (struct hf_attempt){.state = HF_ATTEMPT_FAILED};
	assert_int_equal(hf_attempt_exit_code(&a), 128);
	assert_false(hf_attempt_succeeded(&a));
	assert_true(hf_attempt_ended(&a));
	assert_string_equal(hf_kubelet_phase_name(HF_PHASE_SUCCEEDED), "Succeeded");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sidecar_starts_first_and_ends_last),
		cmocka_unit_test(a_sidecar_that_ends_is_restarted_and_the_program_runs_on),
		cmocka_unit_test(a_failed_init_container_ends_the_sidecars_before_it),
		cmocka_unit_test(begins_with_the_first_init_container),
		cmocka_unit_test(an_init_container_that_fails_ends_a_pod_that_never_restarts),
		cmocka_unit_test(the_policy_decides_which_container_starts_again),
		cmocka_unit_test(a_pod_is_as_bad_as_its_worst_container_and_over_with_its_last),
		cmocka_unit_test(back_off_doubles_up_to_five_minutes),
		cmocka_unit_test(an_attempt_of_ten_minutes_makes_up_for_those_before),
		cmocka_unit_test(what_cannot_be_prepared_waits_without_losing_its_turn),
		cmocka_unit_test(stopping_starts_nothing_and_ends_with_the_last_process),
		cmocka_unit_test(exit_codes_are_those_a_shell_would_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
