/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

#include "harness/cli_world.h"
#include "harness/test.h"
#include "store/resource.h"

#include <string.h>

#define JOBS hf_resource_by_word("pytorchjobs")

static void succeed(struct cli_world *w)
{
	cli_world_patch(w, JOBS, "a",
			"{'status':{'conditions':[{'type':'Succeeded','status':'True',"
			"'reason':'R','message':'m'}]}}");
}

static void fail_job(struct cli_world *w)
{
	cli_world_patch(w, JOBS, "a",
			"{'status':{'conditions':[{'type':'Failed','status':'True',"
			"'reason':'R','message':'rank 1 died'}]}}");
}

static void delete_job(struct cli_world *w)
{
	cli_world_delete(w, JOBS, "a");
}

static void break_watches(struct cli_world *w)
{
	cli_world_break(w, HF_E_UNAVAILABLE);
}

static void a_state_that_is_there_is_not_waited_for(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_run(w, "wait", "a", "--for=running", NULL);
	assert_said(w, 0, "a is Running\n", "");
}

static void the_end_is_waited_for(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_later(w, HF_MINUTE, succeed);
	cli_world_run(w, "wait", "a", "--timeout", "2m", NULL);
	assert_said(w, 0, "a is Succeeded\n", "");
}

static void a_failed_job_is_code_1_unless_that_was_wanted(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_later(w, HF_SECOND, fail_job);
	cli_world_run(w, "wait", "a", NULL);
	assert_said(w, 1, "",
		    "holdfast: a is Failed, so it will not become succeeded: rank 1 died\n");
	cli_world_run(w, "wait", "a", "--for", "failed", NULL);
	assert_said(w, 0, "a is Failed\n", "");
}

static void a_deletion_ends_it(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_later(w, HF_SECOND, delete_job);
	cli_world_run(w, "wait", "a", NULL);
	assert_said(w, 1, "", "holdfast: a was deleted, so it will not become succeeded\n");
}

static void a_deletion_can_be_waited_for(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Succeeded");
	cli_world_later(w, HF_SECOND, delete_job);
	cli_world_run(w, "wait", "a", "--for=delete", NULL);
	assert_said(w, 0, "a is deleted\n", "");
	cli_world_run(w, "wait", "a", "--for=delete", NULL);
	assert_said(w, 0, "a does not exist\n", "");
}

static void patience_ends_with_code_124(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_run(w, "wait", "a", "--timeout", "10s", NULL);
	assert_said(w, HF_EXIT_TIMEOUT, "", "holdfast: timed out waiting for a to be succeeded\n");
	assert_int_equal(hf_loop_wall(w->loop), CLI_WORLD_START + 10 * HF_SECOND);
	cli_world_run(w, "wait", "a", "--for=delete", "--timeout", "10s", NULL);
	assert_said(w, HF_EXIT_TIMEOUT, "", "holdfast: timed out waiting for a to be deleted\n");
}

static void a_time_of_0_looks_once(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_run(w, "wait", "a", "--for=running", "--timeout=0", NULL);
	assert_said(w, 0, "a is Running\n", "");
	cli_world_run(w, "wait", "a", "--timeout=0", NULL);
	assert_int_equal(w->code, HF_EXIT_TIMEOUT);
	assert_int_equal(hf_loop_wall(w->loop), CLI_WORLD_START);
}

static void a_watch_that_breaks_is_begun_again(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_later(w, HF_SECOND, break_watches);
	cli_world_later(w, HF_SECOND + 10 * HF_MS, succeed);
	cli_world_run(w, "wait", "a", "--timeout=1m", NULL);
	assert_said(w, 0, "a is Succeeded\n", "");
}

static void mistakes_are_code_2(void **state)
{
	struct cli_world *w = *state;

	cli_world_run(w, "wait", "a", "--for=nope", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	assert_has(w->err, "not 'nope'");
	cli_world_run(w, "wait", "a", "--timeout=x", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	cli_world_run(w, "wait", "a", NULL);
	assert_said(w, 1, "", "holdfast: no job 'a' in namespace 'default'\n");
}

static void start_master(struct cli_world *w)
{
	cli_world_create(w, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a-master-0'},"
			    "'spec':{'containers':[{'name':'pytorch','image':'x'}]}}");
}

static void run_master(struct cli_world *w)
{
	cli_world_log(w, "a-master-0", "step 1\n");
	cli_world_patch(w, &hf_pods, "a-master-0",
			"{'status':{'containerStatuses':[{'name':'pytorch','restartCount':0,"
			"'ready':true,'image':'x','imageID':'','state':{'running':{}}}]}}");
}

/* Makes the master's container start and end between two reads of the pod, just before the job
 * ends. */
static void run_master_again(struct cli_world *w)
{
	cli_world_log(w, "a-master-0", "step 2\n");
	cli_world_patch(w, &hf_pods, "a-master-0",
			"{'status':{'containerStatuses':[{'name':'pytorch','restartCount':1,"
			"'ready':true,'image':'x','imageID':'','state':{'running':{}}}]}}");
	succeed(w);
}

static void meanwhile_each_run_of_the_first_replica_is_printed_once(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_later(w, HF_SECOND, start_master);
	cli_world_later(w, 2 * HF_SECOND, run_master);
	cli_world_later(w, 9 * HF_SECOND + 100 * HF_MS, run_master_again);
	cli_world_run(w, "wait", "a", "--logs", NULL);
	assert_said(w, 0, "step 1\nstep 2\na is Succeeded\n", "");
}

static void patience_ends_with_logs_too(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_run(w, "wait", "a", "--logs", "--timeout=3s", NULL);
	assert_said(w, HF_EXIT_TIMEOUT, "", "holdfast: timed out waiting for a to be succeeded\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_state_that_is_there_is_not_waited_for,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(the_end_is_waited_for, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_failed_job_is_code_1_unless_that_was_wanted,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_deletion_ends_it, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_deletion_can_be_waited_for, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(patience_ends_with_code_124, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_time_of_0_looks_once, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_watch_that_breaks_is_begun_again, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(mistakes_are_code_2, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(
			meanwhile_each_run_of_the_first_replica_is_printed_once, cli_world_setup,
			cli_world_teardown),
		cmocka_unit_test_setup_teardown(patience_ends_with_logs_too, cli_world_setup,
						cli_world_teardown),
	};

	return cmocka_run_group_tests_name("wait", tests, NULL, NULL);
}
