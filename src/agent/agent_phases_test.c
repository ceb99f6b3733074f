/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/agent_phases.h"
#include "harness/test.h"

static void a_step_that_is_wanted_during_a_save_follows_the_publication(void **state)
{
	enum hf_agent_step step = HF_STEP_IDLE;

	step = hf_agent_next_step(step, HF_STEP_WANTED);
	assert_int_equal(step, HF_STEP_IDLE);
	step = hf_agent_next_step(step, HF_STEP_PLANNED);
	assert_int_equal(step, HF_STEP_SAVING);
	step = hf_agent_next_step(step, HF_STEP_WANTED);
	assert_int_equal(step, HF_STEP_QUEUED);
	step = hf_agent_next_step(step, HF_STEP_WANTED);
	assert_int_equal(step, HF_STEP_QUEUED);
	step = hf_agent_next_step(step, HF_STEP_PUBLISHED);
	assert_int_equal(step, HF_STEP_IDLE);
}

static void a_journal_that_is_behind_stays_so_until_a_write_begins(void **state)
{
	static const enum hf_agent_journal_event all[] = {HF_JOURNAL_CHANGED, HF_JOURNAL_REFUSED,
							  HF_JOURNAL_FAILED};

	for (size_t i = 0; i < HF_ARRAY_LEN(all); i++)
		assert_int_equal(hf_agent_next_journal(HF_JOURNAL_BEHIND, all[i]),
				 HF_JOURNAL_BEHIND);
	for (int phase = 0; phase < HF_JOURNAL_PHASES; phase++)
		assert_int_equal(
			hf_agent_next_journal((enum hf_agent_journal)phase, HF_JOURNAL_TAKEN),
			HF_JOURNAL_CLEAN);
}

static void a_failed_write_leaves_the_journal_dirty(void **state)
{
	assert_int_equal(hf_agent_next_journal(HF_JOURNAL_CLEAN, HF_JOURNAL_FAILED),
			 HF_JOURNAL_DIRTY);
	assert_int_equal(hf_agent_next_journal(HF_JOURNAL_DIRTY, HF_JOURNAL_FAILED),
			 HF_JOURNAL_DIRTY);
	assert_int_equal(hf_agent_next_journal(HF_JOURNAL_CLEAN, HF_JOURNAL_CHANGED),
			 HF_JOURNAL_DIRTY);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_that_is_wanted_during_a_save_follows_the_publication),
		cmocka_unit_test(a_journal_that_is_behind_stays_so_until_a_write_begins),
		cmocka_unit_test(a_failed_write_leaves_the_journal_dirty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
