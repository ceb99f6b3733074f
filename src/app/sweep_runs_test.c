/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/sweep_runs.h"

#include "harness/test.h"

#include "base/fs.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* An unused process ID: IDs end at 2^22. */
#define NOBODY "2147483000"

static char base[64];

static void make(const char *sub)
{
	HF_AUTOFREE char *dir = hf_xasprintf("%s/%s/node/pods", base, sub);
	struct hf_error err;

	assert_ok(hf_fs_mkdirs(dir, 0700, &err), &err);
}

static bool there(const char *sub)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", base, sub);

	return access(path, F_OK) == 0;
}

static void begin(void)
{
	(void)snprintf(base, sizeof(base), "/tmp/hf-leftovers-XXXXXX");
	assert_non_null(mkdtemp(base));
}

static void end(void)
{
	struct hf_error err;

	assert_ok(hf_fs_remove_tree(base, &err), &err);
}

static void a_killed_run_s_folder_goes(void **state)
{
	(void)state;
	begin();
	make("run/job-" NOBODY);
	assert_int_equal(hf_sweep_runs(base), 1);
	assert_false(there("run/job-" NOBODY));
	assert_int_equal(hf_sweep_runs(base), 0);
	end();
}

static void what_was_to_be_kept_stays_and_is_ended_once(void **state)
{
	(void)state;
	begin();
	make("kept/job-" NOBODY);
	assert_int_equal(hf_sweep_runs(base), 1);
	assert_true(there("kept/job-" NOBODY "/node/pods"));
	assert_int_equal(hf_sweep_runs(base), 0);
	end();
}

static void a_kept_run_that_ended_by_itself_left_nothing(void **state)
{
	HF_AUTOFREE char *path = NULL;

	(void)state;
	begin();
	make("kept/job-" NOBODY);
	path = hf_xasprintf("%s/kept/job-" NOBODY, base);
	hf_sweep_runs_skip(path);
	assert_int_equal(hf_sweep_runs(base), 0);
	end();
}

static void who_is_alive_or_no_run_is_left_alone(void **state)
{
	HF_AUTOFREE char *mine = hf_xasprintf("run/job-%d", (int)getpid());

	(void)state;
	begin();
	assert_int_equal(hf_sweep_runs(base), 0);
	make(mine);
	make("run/other");
	make("run/job-0");
	assert_int_equal(hf_sweep_runs(base), 0);
	assert_true(there(mine));
	assert_true(there("run/other"));
	assert_true(there("run/job-0"));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_run_s_folder_goes),
		cmocka_unit_test(what_was_to_be_kept_stays_and_is_ended_once),
		cmocka_unit_test(a_kept_run_that_ended_by_itself_left_nothing),
		cmocka_unit_test(who_is_alive_or_no_run_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
