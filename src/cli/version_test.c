/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

#include "harness/cli_world.h"
#include "harness/test.h"
#include "store/resource.h"

#include <string.h>

static void a_person_gets_one_line_and_a_program_json(void **state)
{
	struct cli_world *w = *state;

	cli_world_run(w, "version", NULL);
	assert_said(w, 0, "holdfast " HF_VERSION "\n", "");
	cli_world_run(w, "--version", NULL);
	assert_said(w, 0, "holdfast " HF_VERSION "\n", "");
	cli_world_run(w, "version", "-o", "json", NULL);
	assert_has(w->out, "\"PyTorchJob\"");
	cli_world_run(w, "version", "-o", "yaml", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
}

static void no_server_is_asked_and_its_flags_mean_nothing(void **state)
{
	struct cli_world *w = *state;

	w->connect_code = HF_E_UNAVAILABLE;
	cli_world_run(w, "version", NULL);
	assert_int_equal(w->code, 0);
	cli_world_run(w, "version", "-n", "x", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	assert_has(w->err, "unknown flag '-n'");
	cli_world_run(w, "lint", "/nonexistent.yaml", "/dev/null", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	assert_has(w->err, "holdfast: cannot open '/nonexistent.yaml'");
	assert_has(w->err, "holdfast: /dev/null: the file has no document");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_person_gets_one_line_and_a_program_json,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(no_server_is_asked_and_its_flags_mean_nothing,
						cli_world_setup, cli_world_teardown),
	};

	return cmocka_run_group_tests_name("version", tests, NULL, NULL);
}
