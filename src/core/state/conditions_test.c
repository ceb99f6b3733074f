/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static struct brain b;
static struct hf_brain brain;
static struct hf_plan plan;

static void begin(void)
{
	brain_init(&b, &brain_kind, 1, 2);
	memset(&brain, 0, sizeof(brain));
	memset(&plan, 0, sizeof(plan));
	brain.view = &b.view;
	brain.arena = b.pass;
	brain.plan = &plan;
	brain.now = b.now;
	brain.job.framework = &brain_kind;
}

static const char *listed(void)
{
	b.plan.status.conditions = brain.conditions;
	b.plan.status.conditions_len = brain.conditions_len;
	return brain_conditions(&b);
}

static void the_same_status_and_reason_is_no_change(void **state)
{
	(void)state;
	begin();
	hf_cond_set(&brain, "Running", true, "R", "first");
	brain.now += HF_MINUTE;
	hf_cond_set(&brain, "Running", true, "R", "second");
	assert_string_equal(brain.conditions[0].message, "first");
	assert_true(brain.conditions[0].last_update == b.now);
	brain_release(&b);
}

static void a_condition_of_ours_takes_a_new_message_in_its_place(void **state)
{
	(void)state;
	begin();
	hf_cond_set(&brain, HF_COND_POD_STUCK, true, "R", "2 pods");
	hf_cond_set(&brain, "Running", true, "R", "m");
	brain.now += HF_MINUTE;
	hf_cond_set(&brain, HF_COND_POD_STUCK, true, "R", "1 pod");
	assert_string_equal(listed(), "holdfast.dev/PodStuckTerminating=True Running=True");
	assert_string_equal(brain.conditions[0].message, "1 pod");
	assert_true(brain.conditions[0].last_update == brain.now);
	assert_true(brain.conditions[0].last_transition == b.now);
	brain_release(&b);
}

static void a_new_reason_keeps_the_transition_and_moves_last(void **state)
{
	(void)state;
	begin();
	hf_cond_set(&brain, "A", true, "R", "m");
	hf_cond_set(&brain, "B", true, "R", "m");
	brain.now += HF_MINUTE;
	hf_cond_set(&brain, "A", true, "Other", "m");
	assert_string_equal(listed(), "B=True A=True");
	assert_true(brain.conditions[1].last_transition == b.now);
	assert_true(brain.conditions[1].last_update == b.now + HF_MINUTE);
	brain_release(&b);
}

static void lowering_keeps_place_reason_and_message_but_not_the_time(void **state)
{
	(void)state;
	begin();
	hf_cond_set(&brain, "Running", true, "R", "m");
	hf_cond_set(&brain, "B", true, "R", "m");
	brain.now += HF_MINUTE;
	hf_cond_lower(&brain, "Running", NULL, NULL);
	assert_string_equal(listed(), "Running=False B=True");
	assert_string_equal(brain.conditions[0].reason, "R");
	assert_true(brain.conditions[0].last_transition == brain.now);
	hf_cond_lower(&brain, "Running", "Again", "not touched: it is False already");
	assert_string_equal(brain.conditions[0].reason, "R");
	hf_cond_lower(&brain, "Nothing", NULL, NULL);
	assert_int_equal(brain.conditions_len, 2);
	brain_release(&b);
}

static void the_true_one_that_names_the_state_comes_last(void **state)
{
	static const struct {
		const char *truths;
		const char *order;
	} rows[] = {
		{"Running Created x.dev/Own", "Created=True x.dev/Own=True Running=True"},
		{"Created", "Created=True"},
		{"Failed Running Created", "Created=True Running=True Failed=True"},
		{"Created Suspended x.dev/Own", "Created=True x.dev/Own=True Suspended=True"},
		{"x.dev/Own", "x.dev/Own=True"},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		char text[128], *word, *rest;

		begin();
		snprintf(text, sizeof(text), "%s", rows[i].truths);
		for (word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
			hf_cond_set(&brain, hf_arena_strdup(b.pass, word), true, "R", "m");
		hf_cond_arrange(&brain);
		assert_string_equal(listed(), rows[i].order);
		brain_release(&b);
	}
}

static void created_is_last_while_nothing_else_is_true(void **state)
{
	(void)state;
	begin();
	hf_cond_set(&brain, "Created", true, "R", "m");
	hf_cond_set(&brain, "Running", false, "R", "m");
	hf_cond_set(&brain, "Suspended", false, "R", "m");
	hf_cond_arrange(&brain);
	assert_string_equal(listed(), "Running=False Suspended=False Created=True");
	hf_cond_set(&brain, "Running", true, "R2", "m");
	hf_cond_arrange(&brain);
	assert_string_equal(listed(), "Created=True Suspended=False Running=True");
	brain_release(&b);
}

static void a_stored_element_keeps_its_number_through_every_move(void **state)
{
	(void)state;
	begin();
	hf_cond_set(&brain, "A", true, "R", "m");
	hf_cond_set(&brain, "B", true, "R", "m");
	brain.conditions[0].stored = 0;
	brain.conditions[1].stored = 1;
	hf_cond_set(&brain, "A", false, "R", "m");
	assert_int_equal(brain.conditions[1].stored, 0);
	hf_cond_set(&brain, "C", true, "R", "m");
	assert_int_equal(brain.conditions[2].stored, -1);
	brain_release(&b);
}

static void of_two_conditions_of_one_type_the_later_stays(void **state)
{
	struct hf_condition twins[] = {
		{.type = "Created", .status = "True", .reason = "R", .message = "m"},
		{.type = "Running", .status = "False", .reason = "old", .message = "m"},
		{.type = "x.dev/Own", .status = "True", .reason = "R", .message = "m"},
		{.type = "Running", .status = "False", .reason = "new", .message = "m"}};

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	b.view.status.conditions = twins;
	b.view.status.conditions_len = HF_ARRAY_LEN(twins);
	brain_step(&b);
	assert_string_equal(brain_conditions(&b), "Running=False x.dev/Own=True Created=True");
	assert_string_equal(b.plan.status.conditions[0].reason, "new");
	assert_int_equal(b.plan.status.conditions[0].stored, 3);
	brain_quiet(&b);
	brain_release(&b);
}

static void a_whole_life_reads_as_upstream_has_it(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_step(&b);
	assert_string_equal(brain_conditions(&b), "Created=True");
	assert_int_equal(b.plan.metrics[HF_METRIC_CREATED], 1);
	brain_run_up(&b);
	assert_int_equal(b.plan.metrics[HF_METRIC_CREATED], 0);
	assert_string_equal(brain_conditions(&b), "Created=True Running=True");
	brain_exit(&b, "demo-hand-0", 1);
	brain_quiet(&b);
	assert_string_equal(brain_conditions(&b), "Created=True Running=False Restarting=True");
	brain_start_all(&b);
	brain_quiet(&b);
	assert_string_equal(brain_conditions(&b), "Created=True Restarting=False Running=True");
	brain_exit(&b, "demo-boss-0", 0);
	brain_quiet(&b);
	assert_string_equal(brain_conditions(&b),
			    "Created=True Restarting=False Running=False Succeeded=True");
	brain_release(&b);
}

static void elastic_ranks_are_replaced_in_the_background(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 0, 3);
	b.view.elastic.present = true;
	b.view.elastic.min_replicas = HF_SOME_INT(2);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	assert_true(brain_event(&b, "TestJobRestarting")->warning);
	brain_perform_all(&b);
	brain_exit(&b, "demo-hand-1", 1);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_status_and_reason_is_no_change),
		cmocka_unit_test(a_condition_of_ours_takes_a_new_message_in_its_place),
		cmocka_unit_test(a_new_reason_keeps_the_transition_and_moves_last),
		cmocka_unit_test(lowering_keeps_place_reason_and_message_but_not_the_time),
		cmocka_unit_test(the_true_one_that_names_the_state_comes_last),
		cmocka_unit_test(created_is_last_while_nothing_else_is_true),
		cmocka_unit_test(a_stored_element_keeps_its_number_through_every_move),
		cmocka_unit_test(of_two_conditions_of_one_type_the_later_stays),
		cmocka_unit_test(a_whole_life_reads_as_upstream_has_it),
		cmocka_unit_test(elastic_ranks_are_replaced_in_the_background),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
