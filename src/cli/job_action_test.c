/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/job_action.h"

#include "base/mem.h"
#include "harness/cli_world.h"
#include "harness/test.h"
#include "store/resource.h"

#include <string.h>

#define JOBS hf_resource_by_word("pytorchjobs")

static bool suspended(struct cli_world *w, const char *name)
{
	HF_AUTO_DOC job = cli_world_get(w, JOBS, name);

	return hf_json_true(hf_json_path(hf_doc_json(job), "spec", "runPolicy", "suspend", NULL),
			    false);
}

static char *restart_of(struct cli_world *w, const char *name)
{
	HF_AUTO_DOC job = cli_world_get(w, JOBS, name);
	const char *text = hf_json_path_str(hf_doc_json(job), "metadata", "annotations",
					    "holdfast.dev/restart", NULL);

	return text != NULL ? hf_xstrdup(text) : NULL;
}

static void suspend_and_resume_change_the_job_once(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_run(w, "resume", "a", NULL);
	assert_said(w, 0, "pytorchjob/a is not suspended\n", "");
	cli_world_run(w, "suspend", "a", NULL);
	assert_said(w, 0, "pytorchjob/a suspended\n", "");
	assert_true(suspended(w, "a"));
	cli_world_run(w, "suspend", "pytorchjob/a", NULL);
	assert_said(w, 0, "pytorchjob/a is already suspended\n", "");
	cli_world_run(w, "resume", "pytorchjobs/a", NULL);
	assert_said(w, 0, "pytorchjob/a resumed\n", "");
	assert_false(suspended(w, "a"));
}

static void a_dry_run_changes_nothing(void **state)
{
	struct cli_world *w = *state;
	HF_AUTOFREE char *restart = NULL;

	cli_world_job(w, "a", 1, "Running");
	cli_world_run(w, "suspend", "a", "--dry-run=server", "--reason", "x", NULL);
	assert_said(w, 0, "pytorchjob/a suspended (dry run)\n", "");
	assert_false(suspended(w, "a"));
	cli_world_run(w, "restart", "a", "--dry-run=server", NULL);
	assert_said(w, 0, "pytorchjob/a restarting: all ranks (dry run)\n", "");
	restart = restart_of(w, "a");
	assert_null(restart);
	cli_world_run(w, "delete", "a", "--dry-run=server", NULL);
	assert_said(w, 0, "pytorchjob/a deleted (dry run)\n", "");
	cli_world_run(w, "events", NULL);
	assert_said(w, 0, "", "No events found; the server keeps events for a limited time\n");
	cli_world_run(w, "suspend", "a", "--dry-run=client", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	assert_has(w->err, "server or none, not 'client'");
	cli_world_run(w, "delete", "a", "--dry-run=client", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
}

static void a_reason_is_kept_as_an_event(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_run(w, "suspend", "a", "--reason", "making room", NULL);
	cli_world_run(w, "events", "a", NULL);
	assert_said(w, 0,
		    "LAST SEEN   TYPE     REASON             OBJECT         COUNT   MESSAGE\n"
		    "0s          Normal   SuspendRequested   PyTorchJob/a   1       making room\n",
		    "");
}

static void a_restart_is_a_new_value_each_time(void **state)
{
	struct cli_world *w = *state;
	HF_AUTOFREE char *first = NULL;
	HF_AUTOFREE char *second = NULL;

	cli_world_job(w, "a", 2, "Running");
	cli_world_run(w, "restart", "a", NULL);
	assert_said(w, 0, "pytorchjob/a restarting: all ranks\n", "");
	first = restart_of(w, "a");
	assert_non_null(first);
	assert_null(strchr(first, ' '));
	cli_world_run(w, "restart", "a", "--rank", "2", NULL);
	assert_said(w, 0, "pytorchjob/a restarting: worker-1 alone\n", "");
	second = restart_of(w, "a");
	assert_has(second, "Z worker-1");
	assert_string_not_equal(first, second);
}

static void a_rank_of_a_gang_does_not_restart_alone(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "g", 2, "Running");
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "g",
			"{'spec':{'runPolicy':{'recovery':{'restartScope':'Job'}}}}");
	cli_world_run(w, "restart", "g", "--rank", "worker-1", NULL);
	assert_said(w, 0,
		    "pytorchjob/g restarting: all ranks, not only worker-1, because "
		    "spec.runPolicy.recovery.restartScope is Job\n",
		    "");
}

static void what_cannot_be_done_to_a_job_is_refused(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "over", 1, "Succeeded");
	cli_world_job(w, "bad", 1, "Failed");
	cli_world_job(w, "a", 1, "Running");
	cli_world_run(w, "restart", "over", NULL);
	assert_said(
		w, 1, "",
		"holdfast: over has already ended (Succeeded) and cannot be changed; create a new job instead\n");
	cli_world_run(w, "suspend", "bad", NULL);
	assert_said(
		w, 1, "",
		"holdfast: bad has already ended (Failed) and cannot be changed; create a new job instead\n");
	assert_false(suspended(w, "bad"));
	cli_world_run(w, "restart", "a", "--rank", "worker-7", NULL);
	assert_said(w, 1, "", "holdfast: no replica 'worker-7' in a; it has master-0, worker-0\n");
	cli_world_run(w, "suspend", "a", NULL);
	cli_world_run(w, "restart", "a", NULL);
	assert_said(
		w, 1, "",
		"holdfast: a is suspended, so there is nothing to restart: 'holdfast resume a' starts it\n");
}

static void a_missing_job_does_not_keep_the_others_back(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_run(w, "suspend", "nosuch", "a", NULL);
	assert_said(w, 1, "pytorchjob/a suspended\n",
		    "holdfast: no job 'nosuch' in namespace 'default'\n");
	cli_world_run(w, "suspend", "cronjob/a", NULL);
	assert_int_equal(w->code, HF_EXIT_FAILED);
	assert_has(w->err, "unknown kind of job 'cronjob'");
	cli_world_run(w, "suspend", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
}

static void delete_takes_the_job_away(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_job(w, "b", 1, "Running");
	cli_world_run(w, "delete", "a", "nosuch", "--yes", "--reason", "tidy", NULL);
	assert_said(w, 1, "pytorchjob/a deleted\n",
		    "holdfast: no job 'nosuch' in namespace 'default'\n");
	assert_null(cli_world_get(w, JOBS, "a"));
	cli_world_run(w, "events", NULL);
	assert_has(w->out, "DeleteRequested   PyTorchJob/a   1       tidy");
	cli_world_run(w, "delete", "b", "--yes", "--foreground", NULL);
	assert_said(w, 0, "pytorchjob/b deleted\n", "");
	HF_AUTO_DOC left = cli_world_get(w, JOBS, "b");
	/* The job still exists, marked as deleted: the garbage collector deletes its pods
	 * first. */
	assert_non_null(hf_json_path(hf_doc_json(left), "metadata", "deletionTimestamp", NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(suspend_and_resume_change_the_job_once,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_dry_run_changes_nothing, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_reason_is_kept_as_an_event, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_restart_is_a_new_value_each_time, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_rank_of_a_gang_does_not_restart_alone,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_done_to_a_job_is_refused,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_missing_job_does_not_keep_the_others_back,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(delete_takes_the_job_away, cli_world_setup,
						cli_world_teardown),
	};

	return cmocka_run_group_tests_name("act", tests, NULL, NULL);
}
