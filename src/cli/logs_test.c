/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

#include "harness/cli_world.h"
#include "harness/test.h"
#include "store/resource.h"

#include <string.h>

static void job_with_pods(struct cli_world *w)
{
	cli_world_job(w, "a", 2, "Running");
	cli_world_pod(w, "a", "worker-0", "Running");
	cli_world_pod(w, "a", "master-0", "Running");
	cli_world_log(w, "a-master-0", "one\ntwo");
	cli_world_log(w, "a-worker-0", "three\nfour\n");
}

static void rank_0_is_what_is_shown(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_run(w, "logs", "a", NULL);
	assert_said(w, 0, "one\ntwo", "");
	assert_int_equal(w->log_asked.tail_lines, -1);
	assert_false(w->log_asked.follow);
}

static void of_a_failed_job_it_is_the_rank_that_failed_first(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_patch(w, &hf_pods, "a-worker-0", "{'status':{'phase':'Failed'}}");
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "a",
			"{'status':{'recovery':{'last':{'pod':'a-worker-0'}}}}");
	cli_world_run(w, "logs", "a", NULL);
	assert_said(w, 0, "three\nfour\n", "");
}

static void ranks_are_chosen_by_name_number_or_all(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_run(w, "logs", "a", "--rank", "worker-0", NULL);
	assert_said(w, 0, "three\nfour\n", "");
	cli_world_run(w, "logs", "a", "--rank", "1", "--prefix", NULL);
	assert_said(w, 0, "worker-0 | three\nworker-0 | four\n", "");
	cli_world_run(w, "logs", "a", "--rank=all", NULL);
	assert_said(w, 0, "master-0 | one\nworker-0 | three\nworker-0 | four\nmaster-0 | two\n",
		    "");
	cli_world_run(w, "logs", "a", "--rank=worker-5", NULL);
	assert_said(
		w, 1, "",
		"holdfast: no replica 'worker-5' in a; it has master-0, worker-0 to worker-1\n");
	/* worker-1 is in the spec, but its pod does not exist yet. */
	cli_world_run(w, "logs", "a", "--rank=worker-1", NULL);
	assert_said(w, 1, "", "holdfast: a-worker-1: pods \"a-worker-1\" not found\n");
	/* A replica that is named twice is printed once. */
	cli_world_run(w, "logs", "a", "--rank=0,master-0", NULL);
	assert_said(w, 0, "one\ntwo", "");
}

static void a_container_that_waits_has_none(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_log(w, "a-worker-0", NULL);
	cli_world_run(w, "logs", "a", "--rank=worker-0", NULL);
	assert_int_equal(w->code, HF_EXIT_FAILED);
	assert_has(w->err, "is waiting to start");
}

/* If the log is empty, `logs` prints the reason of the failed start from the pod's status. */
static void of_a_program_that_never_started_the_reason_is_told(void **state)
{
	static const char told[] = "holdfast: a-worker-0: container 'pytorch' never started: "
				   "StartError: exec: x: not found\n";
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_log(w, "a-worker-0", "");
	cli_world_patch(w, &hf_pods, "a-worker-0",
			"{'status':{'phase':'Failed','containerStatuses':[{'name':'pytorch',"
			"'state':{'terminated':{'exitCode':128,'reason':'StartError',"
			"'message':'exec: x: not found'}}}]}}");
	cli_world_run(w, "logs", "a", "--rank=worker-0", NULL);
	assert_said(w, 0, "", told);
	/* If the log has lines, `logs` prints no reason. */
	cli_world_log(w, "a-worker-0", "three\n");
	cli_world_run(w, "logs", "a", "--rank=worker-0", NULL);
	assert_said(w, 0, "three\n", "");
	/* A container that ran and printed nothing also has an empty log: no reason is printed. */
	cli_world_log(w, "a-worker-0", "");
	cli_world_patch(w, &hf_pods, "a-worker-0",
			"{'status':{'phase':'Failed','containerStatuses':[{'name':'pytorch',"
			"'state':{'terminated':{'exitCode':1,'reason':'Error'}}}]}}");
	cli_world_run(w, "logs", "a", "--rank=worker-0", NULL);
	assert_said(w, 0, "", "");
}

/* The job failed and ended the pod while its container waited in CrashLoopBackOff: the kubelet
 * reports a last run that never began. */
static void without_a_last_run_the_log_of_the_run_before_is_printed(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_log(w, "a-worker-0", "");
	w->previous_log = "Traceback\n";
	cli_world_patch(w, &hf_pods, "a-worker-0",
			"{'status':{'phase':'Failed','containerStatuses':[{'name':'pytorch',"
			"'restartCount':3,'state':{'terminated':{'exitCode':137,"
			"'reason':'ContainerStatusUnknown'}},"
			"'lastState':{'terminated':{'exitCode':3,'reason':'Error'}}}]}}");
	cli_world_run(w, "logs", "a", "--rank=worker-0", NULL);
	assert_said(w, 0, "Traceback\n",
		    "holdfast: a-worker-0: the kubelet has no log of a last run of container "
		    "'pytorch'; this is the log of the run before\n");
	/* The last run has a log, so `logs` does not ask for the log of the run before. */
	cli_world_log(w, "a-worker-0", "three\n");
	cli_world_run(w, "logs", "a", "--rank=worker-0", NULL);
	assert_said(w, 0, "three\n", "");
}

static void flags_go_to_the_server(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_run(w, "logs", "a", "--tail=3", "--since=1500ms", "-p", "--timestamps", "-f",
		      NULL);
	assert_int_equal(w->code, 0);
	assert_int_equal(w->log_asked.tail_lines, 3);
	assert_int_equal(w->log_asked.since_seconds, 2);
	assert_true(w->log_asked.previous && w->log_asked.timestamps && w->log_asked.follow);
	cli_world_run(w, "logs", "a", "--tail=x", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	cli_world_run(w, "logs", "a", "--since=x", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
}

static void without_pods_there_are_no_logs(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 2, "Suspended");
	cli_world_run(w, "logs", "a", NULL);
	assert_said(
		w, 1, "",
		"holdfast: a has no pods, so it has no logs: the job is Suspended; 'holdfast why a' says more\n");
	cli_world_run(w, "logs", "a", "--rank=all", NULL);
	assert_said(
		w, 1, "",
		"holdfast: a has no pods, so it has no logs: the job is Suspended; 'holdfast why a' says more\n");
	cli_world_run(w, "logs", "b", NULL);
	assert_said(w, 1, "", "holdfast: no job 'b' in namespace 'default'\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rank_0_is_what_is_shown, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(of_a_failed_job_it_is_the_rank_that_failed_first,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(ranks_are_chosen_by_name_number_or_all,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_container_that_waits_has_none, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(of_a_program_that_never_started_the_reason_is_told,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(
			without_a_last_run_the_log_of_the_run_before_is_printed, cli_world_setup,
			cli_world_teardown),
		cmocka_unit_test_setup_teardown(flags_go_to_the_server, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(without_pods_there_are_no_logs, cli_world_setup,
						cli_world_teardown),
	};

	return cmocka_run_group_tests_name("logs", tests, NULL, NULL);
}
