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

static void write_index(const char *sub)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s/run.json", base, sub);
	struct hf_error err;

	assert_ok(hf_fs_write_atomic(path, "{}", 2, 0600, &err), &err);
}

static void a_killed_run_without_an_index_is_removed(void **state)
{
	(void)state;
	begin();
	make("runs/job-" NOBODY);
	assert_int_equal(hf_sweep_runs(base, 0), 1);
	assert_false(there("runs/job-" NOBODY));
	assert_int_equal(hf_sweep_runs(base, 0), 0);
	end();
}

static void a_killed_run_keeps_its_logs_and_is_swept_once(void **state)
{
	(void)state;
	begin();
	make("runs/job-" NOBODY "/node/pods/uid-1/logs/old");
	make("runs/job-" NOBODY "/node/pods/uid-1/volumes");
	write_index("runs/job-" NOBODY);
	assert_int_equal(hf_sweep_runs(base, 0), 1);
	assert_true(there("runs/job-" NOBODY "/logs/uid-1/old"));
	assert_false(there("runs/job-" NOBODY "/node"));
	assert_int_equal(hf_sweep_runs(base, 0), 0);
	end();
}

static void a_removal_that_was_cut_off_is_finished(void **state)
{
	(void)state;
	begin();
	make("runs/.removed-job-" NOBODY);
	assert_int_equal(hf_sweep_runs(base, 0), 0);
	assert_false(there("runs/.removed-job-" NOBODY));
	end();
}

static void runs_that_are_alive_and_other_folders_are_left_alone(void **state)
{
	HF_AUTOFREE char *mine = hf_xasprintf("runs/job-%d", (int)getpid());

	(void)state;
	begin();
	assert_int_equal(hf_sweep_runs(base, 0), 0);
	make(mine);
	make("runs/other");
	make("runs/job-0");
	assert_int_equal(hf_sweep_runs(base, 0), 0);
	assert_true(there(mine));
	assert_true(there("runs/other"));
	assert_true(there("runs/job-0"));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_run_without_an_index_is_removed),
		cmocka_unit_test(a_removal_that_was_cut_off_is_finished),
		cmocka_unit_test(a_killed_run_keeps_its_logs_and_is_swept_once),
		cmocka_unit_test(runs_that_are_alive_and_other_folders_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
