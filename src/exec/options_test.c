/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/mem.h"
#include "harness/test.h"
#include "exec/exec.h"

#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct hf_exec_options options;

/* Parses the words as those of a command line. */
static int parse(const char *words)
{
	static char text[256];
	static char *argv[32];
	int argc = 0;
	char *save = NULL;

	memset(&options, 0, sizeof(options));
	snprintf(text, sizeof(text), "%s", words);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	argv[argc] = NULL;
	return hf_exec_parse(argc, argv, &options);
}

static int clean(void **state)
{
	(void)unsetenv("HOLDFAST_AGENT_SOCKET");
	(void)unsetenv("TERMINATION_MESSAGE_PATH");
	(void)unsetenv(HF_EXEC_FENCE_ENV);
	return 0;
}

static void without_flags_all_is_where_it_usually_is(void **state)
{
	assert_int_equal(parse("-- python train.py -v"), 0);
	assert_string_equal(options.argv[0], "python");
	assert_string_equal(options.argv[2], "-v");
	assert_null(options.argv[3]);
	assert_string_equal(options.agent_socket, HF_EXEC_AGENT_SOCKET);
	assert_string_equal(options.termination_log, HF_EXEC_TERMINATION_LOG);
	assert_false(options.termination_create);
	assert_false(options.keep_code);
	assert_int_equal(options.hang_after_s, 0);
}

static void a_copy_of_the_program_needs_no_command(void **state)
{
	assert_int_equal(parse("--copy-to /holdfast/bin/holdfast-exec"), 0);
	assert_string_equal(options.copy_to, "/holdfast/bin/holdfast-exec");
	assert_int_equal(parse("--copy-to /a -- python"), HF_EXEC_CODE_USAGE);
}

static int parse_rule(const char *rule)
{
	char *const argv[] = {(char[]){"--log-rule"}, hf_xstrdup(rule), (char[]){"x"}, NULL};
	int rc = hf_exec_parse(3, argv, &options);

	free(argv[1]);
	return rc;
}

static void rules_come_from_flags_else_from_the_environment(void **state)
{
	assert_int_equal(setenv(HF_EXEC_RULES_ENV,
				"c must be finite\n\nd must be finite: (x)\nof a newer version\n",
				1),
			 0);
	assert_int_equal(parse_rule("a must recur within 1m: x"), 0);
	assert_int_equal(hf_log_rules_len(options.rules), 1);
	options.rules = hf_log_rules_destroy(options.rules);
	assert_int_equal(parse("x"), 0);
	assert_int_equal(hf_log_rules_len(options.rules), 2);
	options.rules = hf_log_rules_destroy(options.rules);
	assert_int_equal(setenv(HF_EXEC_RULES_ENV, "of a newer version", 1), 0);
	assert_int_equal(parse("x"), 0);
	assert_null(options.rules);
	assert_int_equal(unsetenv(HF_EXEC_RULES_ENV), 0);
	assert_int_equal(parse_rule("a must recur within 1m: ("), HF_EXEC_CODE_USAGE);
}

static void flags_are_taken_in_both_ways(void **state)
{
	assert_int_equal(
		parse("--agent-socket=/a --termination-log /t --hang-after 10m --keep-code x"), 0);
	assert_string_equal(options.argv[0], "x");
	assert_string_equal(options.agent_socket, "/a");
	assert_string_equal(options.termination_log, "/t");
	assert_true(options.termination_create);
	assert_int_equal(options.hang_after_s, 600);
	assert_true(options.keep_code);
}

static void the_environment_stands_behind_the_flags(void **state)
{
	(void)setenv("HOLDFAST_AGENT_SOCKET", "", 1);
	(void)setenv("TERMINATION_MESSAGE_PATH", "/env", 1);
	assert_int_equal(parse("x"), 0);
	assert_string_equal(options.agent_socket, "");
	assert_string_equal(options.termination_log, "/env");
	assert_int_equal(parse("--agent-socket=/b x"), 0);
	assert_string_equal(options.agent_socket, "/b");
}

static void a_fence_comes_from_the_operator_or_by_hand(void **state)
{
	(void)setenv(HF_EXEC_FENCE_ENV, "50", 1);
	assert_int_equal(parse("x"), 0);
	assert_int_equal(options.fence_s, 50);
	assert_int_equal(parse("--self-fence=2m x"), 0);
	assert_int_equal(options.fence_s, 120);
	assert_int_equal(parse("--self-fence 0s x"), 0);
	assert_int_equal(options.fence_s, 0);
	(void)setenv(HF_EXEC_FENCE_ENV, "", 1);
	assert_int_equal(parse("x"), 0);
	assert_int_equal(options.fence_s, 0);
}

static void a_fence_that_cannot_be_is_refused(void **state)
{
	static const char *const values[] = {"x",  "-1",    "+5",  " 5",
					     "5s", "86401", "1e3", "99999999999999999999999"};

	for (size_t i = 0; i < HF_ARRAY_LEN(values); i++) {
		(void)setenv(HF_EXEC_FENCE_ENV, values[i], 1);
		assert_int_equal(parse("x"), HF_EXEC_CODE_USAGE);
	}
	(void)setenv(HF_EXEC_FENCE_ENV, "50", 1);
	assert_int_equal(parse("--agent-socket= x"), HF_EXEC_CODE_USAGE);
	(void)unsetenv(HF_EXEC_FENCE_ENV);
	assert_int_equal(parse("--self-fence=2d x"), HF_EXEC_CODE_USAGE);
	assert_int_equal(parse("--agent-socket= x"), 0);
}

static void test_save(void **state)
{
	assert_int_equal(parse("x"), 0);
	assert_int_equal(options.save_s, 0);
	assert_int_equal(options.save_signal, 0);
	assert_false(options.hold);
	(void)setenv(HF_EXEC_SAVE_ENV, "120", 1);
	(void)setenv(HF_EXEC_HOLD_ENV, "1", 1);
	assert_int_equal(parse("--save-signal=SIGUSR1 x"), 0);
	assert_int_equal(options.save_s, 120);
	assert_int_equal(options.save_signal, SIGUSR1);
	assert_true(options.hold);
	assert_int_equal(parse("--save-grace=2m --save-signal USR2 x"), 0);
	assert_int_equal(options.save_signal, SIGUSR2);
	/* Signals that end or stop a process cannot ask a rank to save. */
	assert_int_equal(parse("--save-signal=KILL x"), HF_EXEC_CODE_USAGE);
	assert_int_equal(parse("--save-signal=10 x"), HF_EXEC_CODE_USAGE);
	assert_int_equal(parse("--save-grace=2d x"), HF_EXEC_CODE_USAGE);
	(void)setenv(HF_EXEC_SAVE_ENV, "2m", 1);
	assert_int_equal(parse("x"), HF_EXEC_CODE_USAGE);
	(void)unsetenv(HF_EXEC_SAVE_ENV);
	(void)setenv(HF_EXEC_HOLD_ENV, "0", 1);
	assert_int_equal(parse("x"), 0);
	assert_false(options.hold);
	(void)unsetenv(HF_EXEC_HOLD_ENV);
}

static void words_of_the_command_are_none_of_ours(void **state)
{
	assert_int_equal(parse("-- --keep-code --hang-after"), 0);
	assert_string_equal(options.argv[0], "--keep-code");
	assert_false(options.keep_code);
	assert_int_equal(parse("cmd --keep-code"), 0);
	assert_false(options.keep_code);
}

static void what_makes_no_sense_is_refused(void **state)
{
	static const char *const lines[] = {
		"",
		"--",
		"--keep-code",
		"--nosuch x",
		"--keep-code=yes x",
		"--hang-after",
		"--hang-after x -- y",
		"--hang-after 10ms -- y",
		"--agent-socket",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(lines); i++)
		assert_int_equal(parse(lines[i]), HF_EXEC_CODE_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_flags_all_is_where_it_usually_is, clean),
		cmocka_unit_test_setup(a_copy_of_the_program_needs_no_command, clean),
		cmocka_unit_test_setup(rules_come_from_flags_else_from_the_environment, clean),
		cmocka_unit_test_setup(flags_are_taken_in_both_ways, clean),
		cmocka_unit_test_setup(the_environment_stands_behind_the_flags, clean),
		cmocka_unit_test_setup(a_fence_comes_from_the_operator_or_by_hand, clean),
		cmocka_unit_test_setup(a_fence_that_cannot_be_is_refused, clean),
		cmocka_unit_test_setup(test_save, clean),
		cmocka_unit_test_setup(words_of_the_command_are_none_of_ours, clean),
		cmocka_unit_test_setup(what_makes_no_sense_is_refused, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
