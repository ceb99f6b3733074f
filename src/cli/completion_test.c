/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/str.h"

#include "harness/cli_world.h"
#include "harness/test.h"

#include <string.h>

#define COMPLETE(...) cli_world_run(w, "__complete", "--", __VA_ARGS__, NULL)

static void verbs_come_from_the_table(void **state)
{
	struct cli_world *w = *state;

	COMPLETE("wa");
	assert_said(w, 0, "wait\tWait until a job is in a state, such as succeeded\n", "");
	COMPLETE("");
	assert_has(w->out, "get\tList jobs");
	assert_has(w->out, "help\tShow the help of a verb\n");
	assert_null(strstr(w->out, "__complete"));
	COMPLETE("help", "ver");
	assert_said(w, 0, "version\tPrint the version\n", "");
	/* Flags may stand before the verb. */
	COMPLETE("-n", "default", "ver");
	assert_said(w, 0, "version\tPrint the version\n", "");
	COMPLETE("nosuch", "");
	assert_said(w, 0, "", "");
	cli_world_run(w, "__complete", NULL);
	assert_said(w, 0, "", "");
}

static void flags_and_their_values_come_from_the_tables(void **state)
{
	struct cli_world *w = *state;

	COMPLETE("get", "--na");
	assert_said(w, 0, "--namespace\tthe namespace\n", "");
	COMPLETE("completion", "--na");
	assert_said(w, 0, "", "");
	COMPLETE("get", "-o", "j");
	assert_said(w, 0, "json\n", "");
	COMPLETE("why", "-o", "");
	assert_said(w, 0, "json\n", "");
	COMPLETE("check", "-o", "");
	assert_said(w, 0, "json\n", "");
	COMPLETE("check", "m");
	assert_said(w, 0, "migrate\n", "");
	COMPLETE("get", "--sort-by", "");
	assert_said(w, 0, "", "");
	COMPLETE("get", "--output=");
	assert_said(w, 0, "--output=json\n--output=yaml\n--output=wide\n--output=name\n", "");
	COMPLETE("get", "--color", "a");
	assert_said(w, 0, "auto\nalways\n", "");
	COMPLETE("wait", "--for", "");
	assert_said(w, 0, "succeeded\nrunning\nsuspended\nfailed\ndelete\n", "");
	COMPLETE("get", "--kubeconfig", "/x");
	assert_said(w, 0, ":files\n", "");
	/* The value of a flag may begin with a dash. The switch --watch has no value, so --col is
	 * the next flag. */
	COMPLETE("get", "--watch", "--col");
	assert_has(w->out, "--color\t");
	COMPLETE("get", "--nosuch", "x");
	assert_int_equal(w->code, 0);
	COMPLETE("get", "--nosuch=", "--nosuch=");
	assert_int_equal(w->code, 0);
}

static void names_come_from_the_server(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "ddp", 1, "Running");
	cli_world_job(w, "big", 1, "Suspended");
	cli_world_pod(w, "ddp", "worker-0", "Running");
	cli_world_put(w, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'gpu-7'}}");
	COMPLETE("why", "");
	assert_has(w->out,
		   "node/\ta node\nrollout/\ta rollout of a driver\n@latest\tthe newest job\n");
	assert_has(w->out, "ddp\tRunning\n");
	assert_has(w->out, "big\tSuspended\n");
	COMPLETE("why", "d");
	assert_said(w, 0, "ddp\tRunning\n", "");
	COMPLETE("why", "pytorchjob/");
	assert_has(w->out, "pytorchjob/ddp\tRunning\n");
	COMPLETE("why", "node/g");
	assert_has(w->out, "node/gpu-7");
	COMPLETE("logs", "node/");
	assert_said(w, 0, "", "");
	/* `why` takes one job, and `suspend` takes any number of jobs. */
	COMPLETE("why", "big", "");
	assert_said(w, 0, "", "");
	COMPLETE("suspend", "big", "d");
	assert_said(w, 0, "ddp\tRunning\n", "");
	COMPLETE("get", "pod");
	assert_said(w, 0, "pods\n", "");
	COMPLETE("get", "pods", "");
	assert_said(w, 0, "ddp-worker-0\n", "");
	COMPLETE("get", "jobs", "b");
	assert_said(w, 0, "big\tSuspended\n", "");
	COMPLETE("why", "-n", "other", "d");
	assert_said(w, 0, "", "");
	COMPLETE("why", "-n", "def");
	assert_has(w->out, "default");
	COMPLETE("lint", "");
	assert_said(w, 0, ":files\n", "");
}

static void without_a_server_there_is_no_error(void **state)
{
	struct cli_world *w = *state;

	w->connect_code = HF_E_UNAVAILABLE;
	COMPLETE("why", "");
	assert_said(w, 0,
		    "node/\ta node\nrollout/\ta rollout of a driver\n@latest\tthe newest job\n",
		    "");
}

static void control_characters_of_the_line_are_not_printed(void **state)
{
	struct cli_world *w = *state;

	COMPLETE("get", "--output=\033[2J");
	assert_null(strchr(w->out, '\033'));
	COMPLETE("\033", "\033[2J", "");
	assert_null(strchr(w->out, '\033'));
}

static void there_is_a_script_for_three_shells(void **state)
{
	static const char *const shells[] = {"bash", "zsh", "fish"};
	struct cli_world *w = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(shells); i++) {
		cli_world_run(w, "completion", shells[i], NULL);
		assert_int_equal(w->code, 0);
		assert_has(w->out, "__complete --");
	}
	cli_world_run(w, "completion", "tcsh", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	assert_has(w->err, "there is no completion for 'tcsh', but for bash, zsh and fish");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(verbs_come_from_the_table, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(flags_and_their_values_come_from_the_tables,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(names_come_from_the_server, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(without_a_server_there_is_no_error, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(control_characters_of_the_line_are_not_printed,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(there_is_a_script_for_three_shells, cli_world_setup,
						cli_world_teardown),
	};

	return cmocka_run_group_tests_name("completion", tests, NULL, NULL);
}
