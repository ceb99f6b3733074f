/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

#include "harness/cli_world.h"
#include "harness/test.h"
#include "store/resource.h"

#include <string.h>

/* In the tests' world (cli_world) a log stream ends at once, so these tests change the job while
 * `logs -f` runs. */

#define POD(name, more)                                                                            \
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'" name                                \
	"','labels':{'training.kubeflow.org/job-name':'a'}" more                                   \
	"},'spec':{'containers':[{'name':'pytorch','image':'x'}]}}"
#define CONTAINER(count, more)                                                                      \
	"{'status':{'phase':'Running','containerStatuses':[{'name':'pytorch','restartCount':" count \
	"," more "}]}}"

static void job_is(struct cli_world *w, const char *state)
{
	HF_AUTO_STRBUF patch = HF_STRBUF_INIT(1024);

	hf_strbuf_addf(&patch,
		       "{'status':{'conditions':[{'type':'%s','status':'True','reason':'R',"
		       "'message':'m'}]}}",
		       state);
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "a", patch.data);
}

static void succeed(struct cli_world *w)
{
	job_is(w, "Succeeded");
}

static void fail_job(struct cli_world *w)
{
	job_is(w, "Failed");
}

static void job_with_pods(struct cli_world *w)
{
	cli_world_job(w, "a", 2, "Running");
	cli_world_pod(w, "a", "worker-0", "Running");
	cli_world_pod(w, "a", "master-0", "Running");
	cli_world_log(w, "a-master-0", "one");
	cli_world_log(w, "a-worker-0", "three\nfour\n");
}

static void make_master(struct cli_world *w)
{
	cli_world_create(w, POD("a-master-0", ""));
}

static void start_master(struct cli_world *w)
{
	cli_world_log(w, "a-master-0", "here\n");
	cli_world_patch(w, &hf_pods, "a-master-0", CONTAINER("0", "'state':{'running':{}}"));
}

static void pods_and_their_start_are_waited_for(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 2, "Created");
	cli_world_later(w, 5 * HF_SECOND, make_master);
	cli_world_later(w, 50 * HF_SECOND, start_master);
	cli_world_later(w, 60 * HF_SECOND, succeed);
	cli_world_run(w, "logs", "a", "-f", NULL);
	assert_said(w, 0, "here\n",
		    "holdfast: waiting for a-master-0 to start\nholdfast: a is Succeeded\n");
}

static void fail_to_start_master(struct cli_world *w)
{
	cli_world_log(w, "a-master-0", "");
	cli_world_patch(w, &hf_pods, "a-master-0",
			CONTAINER("0",
				  "'state':{'terminated':{'exitCode':128,'reason':'StartError',"
				  "'message':'exec: x'}}"));
}

static void why_a_program_never_started_is_told_once(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 2, "Created");
	cli_world_later(w, 5 * HF_SECOND, make_master);
	cli_world_later(w, 6 * HF_SECOND, fail_to_start_master);
	cli_world_later(w, 9 * HF_SECOND, fail_job);
	cli_world_run(w, "logs", "a", "-f", NULL);
	assert_has(w->err, "holdfast: a-master-0: container 'pytorch' never started: StartError: "
			   "exec: x\n");
	assert_null(strstr(strstr(w->err, "never started") + 1, "never started"));
}

static void all_of_a_job_without_pods_are_waited_for(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 2, "Created");
	cli_world_later(w, 5 * HF_SECOND, make_master);
	cli_world_later(w, 6 * HF_SECOND, start_master);
	cli_world_later(w, 7 * HF_SECOND, fail_job);
	cli_world_run(w, "logs", "a", "-f", "--rank=all", NULL);
	assert_said(w, 0, "master-0 | here\n",
		    "holdfast: waiting for the pods of a\nholdfast: a is Failed\n");
}

static void restart_container(struct cli_world *w)
{
	cli_world_log(w, "a-master-0", "two\n");
	cli_world_patch(w, &hf_pods, "a-master-0",
			CONTAINER("3", "'lastState':{'terminated':{'exitCode':9}},"
				       "'state':{'running':{}}"));
}

static void the_next_run_of_a_container_is_told_with_how_the_last_one_ended(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_later(w, 5 * HF_SECOND, restart_container);
	cli_world_later(w, 9 * HF_SECOND, succeed);
	cli_world_run(w, "logs", "a", "-f", NULL);
	assert_said(w, 0, "one\ntwo\n",
		    "holdfast: a-master-0 ended with code 9 and starts again: restart 3 of its "
		    "container\nholdfast: a is Succeeded\n");
}

static void end_master(struct cli_world *w)
{
	cli_world_patch(w, &hf_pods, "a-master-0",
			CONTAINER("2", "'state':{'terminated':{'exitCode':143}}"));
}

static void delete_master(struct cli_world *w)
{
	cli_world_delete(w, &hf_pods, "a-master-0");
}

static void remake_master(struct cli_world *w)
{
	cli_world_create(w, POD("a-master-0", ",'annotations':{'holdfast.dev/generation':'2',"
					      "'holdfast.dev/attempt':'0'}"));
}

static void a_pod_made_anew_is_followed_too(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_later(w, 5 * HF_SECOND, end_master);
	cli_world_later(w, 6 * HF_SECOND, delete_master);
	cli_world_later(w, 50 * HF_SECOND, remake_master);
	cli_world_later(w, 51 * HF_SECOND, start_master);
	cli_world_later(w, 60 * HF_SECOND, succeed);
	cli_world_run(w, "logs", "a", "-f", "--rank=all", NULL);
	assert_said(
		w, 0, "worker-0 | three\nworker-0 | four\nmaster-0 | one\nmaster-0 | here\n",
		"holdfast: a-master-0 ended with code 143 (SIGTERM) and starts again: a new pod, "
		"generation 2, attempt 0\nholdfast: a is Succeeded\n");
}

static void tail_and_since_are_for_what_was_there_before(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_later(w, 5 * HF_SECOND, succeed);
	cli_world_run(w, "logs", "a", "-f", "--tail=3", "--since=10s", "--timestamps", NULL);
	assert_int_equal(w->code, 0);
	assert_int_equal(w->log_asked.tail_lines, 3);
	assert_int_equal(w->log_asked.since_seconds, 10);
	assert_true(w->log_asked.follow && w->log_asked.timestamps && !w->log_asked.previous);
}

static void what_comes_later_is_told_whole(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_later(w, 5 * HF_SECOND, restart_container);
	cli_world_later(w, 9 * HF_SECOND, succeed);
	cli_world_run(w, "logs", "a", "-f", "--tail=3", "--since=10s", NULL);
	assert_int_equal(w->code, 0);
	assert_int_equal(w->log_asked.tail_lines, -1);
	assert_int_equal(w->log_asked.since_seconds, 0);
}

static void of_a_job_that_has_ended_there_is_what_there_is(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	job_is(w, "Succeeded");
	cli_world_run(w, "logs", "a", "-f", NULL);
	assert_said(w, 0, "one", "");
	cli_world_run(w, "logs", "a", "-f", "--rank=worker-1", NULL);
	assert_said(w, 1, "",
		    "holdfast: a-worker-1 has no log: it never ran, or its pod was deleted\n");
}

static void the_log_of_a_job_without_pods_is_explained(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Succeeded");
	cli_world_run(w, "logs", "a", "-f", "--rank=all", NULL);
	assert_said(
		w, 1, "",
		"holdfast: a has no pods, so it has no logs: the job is Succeeded; 'holdfast why a' says more\n");
	cli_world_run(w, "logs", "a", "-f", NULL);
	assert_said(w, 1, "",
		    "holdfast: a-master-0 has no log: it never ran, or its pod was deleted\n");
}

static void delete_job(struct cli_world *w)
{
	cli_world_delete(w, hf_resource_by_word("pytorchjobs"), "a");
}

static void the_end_of_a_job_may_be_its_deletion(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_later(w, 5 * HF_SECOND, delete_job);
	cli_world_run(w, "logs", "a", "-f", NULL);
	assert_said(w, 0, "one", "holdfast: a was deleted\n");
}

static void suspend(struct cli_world *w)
{
	job_is(w, "Suspended");
}

static void a_suspended_job_is_waited_for(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_later(w, 5 * HF_SECOND, suspend);
	cli_world_later(w, 6 * HF_SECOND, suspend);
	cli_world_later(w, 500 * HF_SECOND, succeed);
	cli_world_run(w, "logs", "a", "-f", NULL);
	assert_said(w, 0, "one",
		    "holdfast: a is suspended: waiting until 'holdfast resume a' resumes it\n"
		    "holdfast: a is Succeeded\n");
}

static void go_away(struct cli_world *w)
{
	cli_world_break(w, HF_E_UNAVAILABLE);
}

static void a_server_that_restarts_is_waited_for(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_later(w, 5 * HF_SECOND, go_away);
	cli_world_later(w, 9 * HF_SECOND, restart_container);
	cli_world_later(w, 12 * HF_SECOND, succeed);
	cli_world_run(w, "logs", "a", "-f", NULL);
	assert_string_equal(w->out, "one\ntwo\n");
	assert_int_equal(w->code, 0);
	assert_has(
		w->err,
		"holdfast: lost the server: the server went away; trying again every second\nholdfast: a-master-0");
}

static void forbid(struct cli_world *w)
{
	cli_world_break(w, HF_E_FORBIDDEN);
}

static void a_server_that_refuses_is_not(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_later(w, 5 * HF_SECOND, forbid);
	cli_world_run(w, "logs", "a", "-f", NULL);
	assert_string_equal(w->out, "one");
	assert_has(w->err, "the server went away");
	assert_int_equal(w->code, HF_EXIT_FAILED);
}

static void make_worker(struct cli_world *w)
{
	cli_world_log(w, "a-worker-1", "five\n");
	cli_world_create(w, POD("a-worker-1", ""));
	cli_world_patch(w, &hf_pods, "a-worker-1", CONTAINER("0", "'state':{'running':{}}"));
}

static void ranks_that_come_later_are_among_all(void **state)
{
	struct cli_world *w = *state;

	job_with_pods(w);
	cli_world_later(w, 5 * HF_SECOND, make_worker);
	cli_world_later(w, 9 * HF_SECOND, succeed);
	cli_world_run(w, "logs", "a", "-f", "--rank=all", NULL);
	assert_has(w->out, "worker-1 | five\n");
	assert_said(w, 0, w->out, "holdfast: a is Succeeded\n");
	cli_world_later(w, 0, succeed);
	cli_world_run(w, "logs", "a", "-f", "--rank=master-0", NULL);
	assert_string_equal(w->out, "one");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, cli_world_setup, cli_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pods_and_their_start_are_waited_for),
		TEST(why_a_program_never_started_is_told_once),
		TEST(all_of_a_job_without_pods_are_waited_for),
		TEST(the_next_run_of_a_container_is_told_with_how_the_last_one_ended),
		TEST(a_pod_made_anew_is_followed_too),
		TEST(tail_and_since_are_for_what_was_there_before),
		TEST(what_comes_later_is_told_whole),
		TEST(of_a_job_that_has_ended_there_is_what_there_is),
		TEST(the_log_of_a_job_without_pods_is_explained),
		TEST(the_end_of_a_job_may_be_its_deletion),
		TEST(a_suspended_job_is_waited_for),
		TEST(a_server_that_restarts_is_waited_for),
		TEST(a_server_that_refuses_is_not),
		TEST(ranks_that_come_later_are_among_all),
	};

	return cmocka_run_group_tests_name("logs_follow", tests, NULL, NULL);
}
