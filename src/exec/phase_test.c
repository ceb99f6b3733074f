/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/phase.h"
#include "harness/test.h"

#include <string.h>

static const char letters[HF_EXEC_PHASES + 1] = "WRSTEDL";

/* The expected next phases: a row for each phase, in the order of the events; '-': the event must not happen in
 * this phase. */
static const char *const table[HF_EXEC_PHASES] = {
	[HF_EXEC_WAITING] = "WR---LLL", [HF_EXEC_RUNNING] = "SREL--RL",
	[HF_EXEC_SAVING] = "SSDLT-SL",  [HF_EXEC_STOPPING] = "TTDL--TL",
	[HF_EXEC_ENDED] = "DE---LLL",   [HF_EXEC_DOWN] = "DR---LLL",
	[HF_EXEC_LEAVING] = "LLLLLLLL",
};

static void test_table(void **state HF_UNUSED)
{
	for (int phase = 0; phase < HF_EXEC_PHASES; phase++)
		for (int event = 0; event < HF_EXEC_EVENTS; event++) {
			char wanted = table[phase][event];

			if (wanted == '-')
				continue;
			assert_int_equal(letters[hf_exec_next_phase((enum hf_exec_phase)phase,
								    (enum hf_exec_event)event)],
					 wanted);
		}
}

/* A process of one start never runs beside a process of another: only GO starts a process, and only in a phase
 * where none runs. */
static void test_starts(void **state HF_UNUSED)
{
	for (int phase = 0; phase < HF_EXEC_PHASES; phase++)
		for (int event = 0; event < HF_EXEC_EVENTS; event++) {
			enum hf_exec_phase from = (enum hf_exec_phase)phase;

			if (table[phase][event] == '-' || hf_exec_phase_has_cmd(from) ||
			    !hf_exec_phase_has_cmd(
				    hf_exec_next_phase(from, (enum hf_exec_event)event)))
				continue;
			assert_int_equal(event, HF_EXEC_GO);
			assert_true(from == HF_EXEC_WAITING || from == HF_EXEC_DOWN);
		}
}

static void test_told(void **state HF_UNUSED)
{
	assert_int_equal(hf_exec_told_phase(HF_EXEC_WAITING), HF_PROCESS_LINE_WAITING);
	assert_int_equal(hf_exec_told_phase(HF_EXEC_RUNNING), HF_PROCESS_LINE_RUNNING);
	/* exec reports DOWN only if nothing runs. */
	assert_int_equal(hf_exec_told_phase(HF_EXEC_STOPPING), HF_PROCESS_LINE_RUNNING);
	assert_int_equal(hf_exec_told_phase(HF_EXEC_ENDED), HF_PROCESS_LINE_ENDED);
	assert_int_equal(hf_exec_told_phase(HF_EXEC_DOWN), HF_PROCESS_LINE_DOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_starts),
		cmocka_unit_test(test_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
