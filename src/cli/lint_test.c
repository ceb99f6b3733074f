/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

#include "base/mem.h"
#include "base/str.h"
#include "harness/cli_world.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOB(metadata)                                                                              \
	"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: " metadata                       \
	"\nspec:\n  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n"                        \
	"      template:\n        spec:\n"                                                         \
	"          containers:\n          - {name: pytorch, image: x}\n"

static char dir[64];

static int setup(void **state)
{
	struct cli_world *world = hf_xcalloc(1, sizeof(*world));

	cli_world_init(world);
	*state = world;
	(void)snprintf(dir, sizeof(dir), "/tmp/hf-lint-XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)unlink("good.yaml");
	(void)unlink("bad.yaml");
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(dir), 0);
	cli_world_release(*state);
	free(*state);
	return 0;
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void a_good_file_is_called_fine(void **state)
{
	struct cli_world *w = *state;

	put("good.yaml", JOB("{name: j}"));
	cli_world_run(w, "lint", "good.yaml", NULL);
	assert_said(w, 0, "good.yaml: PyTorchJob 'j' is fine\n", "");
}

static void one_bad_file_of_several_is_code_2_and_the_others_are_looked_at(void **state)
{
	struct cli_world *w = *state;

	put("good.yaml", JOB("{name: j}"));
	put("bad.yaml", JOB("{name: j, labels: {a: 1}}"));
	cli_world_run(w, "lint", "bad.yaml", "good.yaml", NULL);
	assert_said(
		w, HF_EXIT_USAGE, "good.yaml: PyTorchJob 'j' is fine\n",
		"holdfast: bad.yaml:3: metadata.labels: Invalid value: \"a\": must be a string\n");
}

static void no_server_is_needed(void **state)
{
	struct cli_world *w = *state;

	w->connect_code = HF_E_UNAVAILABLE;
	put("good.yaml", JOB("{name: j, namespace: nowhere}"));
	cli_world_run(w, "lint", "good.yaml", NULL);
	assert_int_equal(w->code, 0);
}

static void what_is_not_there_is_told_with_its_name(void **state)
{
	struct cli_world *w = *state;

	cli_world_run(w, "lint", "nosuch.yaml", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	assert_has(w->err, "nosuch.yaml");
	cli_world_run(w, "lint", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_good_file_is_called_fine, setup, teardown),
		cmocka_unit_test_setup_teardown(
			one_bad_file_of_several_is_code_2_and_the_others_are_looked_at, setup,
			teardown),
		cmocka_unit_test_setup_teardown(no_server_is_needed, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_there_is_told_with_its_name, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("lint", tests, NULL, NULL);
}
