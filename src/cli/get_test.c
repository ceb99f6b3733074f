/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

#include "base/mem.h"
#include "harness/cli_world.h"
#include "harness/test.h"
#include "store/resource.h"

#include <string.h>

static void set_ready(struct cli_world *w, const char *pod, const char *status)
{
	HF_AUTOFREE char *patch =
		hf_xasprintf("{'status':{'conditions':[{'type':'Ready','status':'%s'}]}}", status);

	cli_world_patch(w, &hf_pods, pod, patch);
}

static void ready_pod(struct cli_world *w, const char *job, const char *rank, const char *status)
{
	HF_AUTOFREE char *pod = hf_xasprintf("%s-%s", job, rank);

	cli_world_pod(w, job, rank, "Running");
	set_ready(w, pod, status);
}

static void jobs_are_listed_with_what_they_are_doing(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "b", 2, "Running");
	cli_world_job(w, "a", 1, "Created");
	ready_pod(w, "b", "master-0", "True");
	ready_pod(w, "b", "worker-0", "True");
	cli_world_run(w, "get", NULL);
	assert_said(w, 0,
		    "KIND         NAME   STATE     READY   GEN   RESTARTS   AGE\n"
		    "PyTorchJob   a      Created   0/2     0     0          0s\n"
		    "PyTorchJob   b      Running   2/3     0     0          0s\n",
		    "");
	cli_world_run(w, "get", "jobs", "b", "--no-headers", "-o", "wide", NULL);
	assert_said(w, 0,
		    "PyTorchJob   b   Running   2/3   0   0   0s   -   -   -   <none>   it is so\n",
		    "");
	cli_world_run(w, "get", "-A", NULL);
	assert_has(w->out, "NAMESPACE   KIND");
	assert_has(w->out, "default     PyTorchJob   a");
}

static void restarts_are_shown_by_what_they_were_charged_to(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "a",
			"{'status':{'recovery':{'generation':4,'restarts':{'application':1,"
			"'infrastructure':2,'device':3},'last':{'cause':'device'}}}}");
	cli_world_run(w, "get", "jobs", "@latest", "-o", "wide", NULL);
	assert_has(
		w->out,
		"4     6 (1 application, 2 infrastructure, 3 device)   0s    -      -       -      device   it is so\n");
	/* A number of restarts that is not in the valid range is printed as "?", not as 0. */
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "a",
			"{'status':{'recovery':{'restarts':{'application':-1,"
			"'infrastructure':99999999999}}}}");
	cli_world_run(w, "get", "jobs", NULL);
	assert_has(w->out, "?          0s");
}

static void training_is_shown_where_ranks_report(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "a",
			"{'status':{'startTime':'2000-01-01T00:00:00Z','completionTime':"
			"'2000-01-01T00:10:00Z','recovery':{'step':1200,'savedStep':1000,"
			"'productiveSeconds':540,'saveMillis':3000,'restarts':{'application':2},"
			"'last':{'cause':'application','step':1100,'savedStep':1000}}}}");
	cli_world_run(w, "get", "jobs", "-o", "wide", NULL);
	assert_has(w->out, "STEP   SAVED   ETTR    CAUSE");
	assert_has(w->out, "1200   1000    90.0%   application");
	cli_world_run(w, "describe", "a", NULL);
	assert_has(w->out, "Steps:         1200 done, 1000 saved\n");
	assert_has(w->out, "ETTR:          90.0%\n");
	/* sqrt(2 * 3 s * 300 s) */
	assert_has(w->out, "Save every:    42s\n");
	assert_has(w->out, "RULE   LOST STEPS\n");
	assert_has(w->out, "-      100\n");
	/* A number that makes no sense is left out. */
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "a",
			"{'status':{'recovery':{'productiveSeconds':-5,'saveMillis':9e18}}}");
	cli_world_run(w, "get", "jobs", "-o", "wide", NULL);
	assert_has(w->out, "1200   1000    -      application");
}

static void pods_have_the_columns_of_kubectl(void **state)
{
	struct cli_world *w = *state;

	cli_world_pod(w, "a", "master-0", "Running");
	cli_world_run(w, "get", "pods", NULL);
	assert_said(w, 0,
		    "NAME         READY   STATUS    RESTARTS   AGE\n"
		    "a-master-0   1/1     Running   2          0s\n",
		    "");
	cli_world_run(w, "get", "po", "-o", "wide", NULL);
	assert_has(w->out, "AGE   IP         NODE\n");
	assert_has(w->out, "0s    10.0.0.1   n1\n");
	cli_world_patch(w, &hf_pods, "a-master-0",
			"{'status':{'containerStatuses':[{'name':'pytorch','ready':false,"
			"'restartCount':3,'image':'x','imageID':'',"
			"'state':{'waiting':{'reason':'CrashLoopBackOff'}}}]}}");
	cli_world_run(w, "get", "pod/a-master-0", "--no-headers", NULL);
	assert_said(w, 0, "a-master-0   0/1   CrashLoopBackOff   3   0s\n", "");
}

static void nodes_say_whether_they_take_pods(void **state)
{
	struct cli_world *w = *state;

	cli_world_put(w, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n1'},'status':"
			 "{'allocatable':{'cpu':'8','memory':'1Gi'},"
			 "'conditions':[{'type':'Ready','status':'True'}]}}");
	cli_world_put(w, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n2'},'spec':"
			 "{'unschedulable':true},'status':"
			 "{'conditions':[{'type':'Ready','status':'False'}]}}");
	cli_world_put(w, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n3'}}");
	cli_world_run(w, "get", "nodes", NULL);
	assert_said(w, 0,
		    "NAME   STATUS                        AGE\n"
		    "n1     Ready                         0s\n"
		    "n2     NotReady,SchedulingDisabled   0s\n"
		    "n3     Unknown                       0s\n",
		    "");
	cli_world_run(w, "get", "node", "n1", "-o", "wide", "--no-headers", NULL);
	assert_said(w, 0, "n1   Ready   0s   8   1Gi   <none>   <none>   <none>\n", "");
}

static void what_is_not_there_is_told_with_code_1(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_run(w, "get", "jobs", "nosuch", "a", NULL);
	assert_int_equal(w->code, HF_EXIT_FAILED);
	assert_string_equal(w->err, "holdfast: no job 'nosuch' in namespace 'default'\n");
	assert_has(w->out, "PyTorchJob   a");
	cli_world_run(w, "get", "jobs", "nosuch", "-o", "json", NULL);
	assert_int_equal(w->code, HF_EXIT_FAILED);
	assert_string_equal(w->out, "");
	cli_world_run(w, "get", "pods", NULL);
	assert_said(w, 0, "", "No resources found in namespace default\n");
	cli_world_run(w, "get", "pods", "-A", NULL);
	assert_said(w, 0, "", "No resources found\n");
}

static void mistakes_on_the_command_line_are_code_2(void **state)
{
	static const struct {
		const char *words[4], *said;
	} cases[] = {
		{{"long"}, "unknown kind 'long'"},
		{{"pdos"}, "unknown kind 'pdos': did you mean 'pods'?"},
		{{"/a"}, "unknown kind ''"},
		{{"pods/"}, "the name of the object is empty"},
		{{"jobs/a", "b"}, "give KIND/NAME alone"},
		{{"jobs", "a", "-A"}, "a name belongs to one namespace: use -n"},
		{{"jobs", "a", "-l", "x=y"}, "names and -l exclude each other"},
		{{"-l", "team in (a"}, "-l 'team in (a'"},
		{{"-w", "jobs", "a", "b"}, "-w watches one name or all objects"},
		{{"-o", "table"}, "not 'table'"},
		{{"-o", "jsonpath={.x"}, "-o jsonpath: "},
		{{"-o", "custom-columns=A"}, "'A' is not HEADER:PATH"},
		{{"-o", "custom-columns=A:{.x"}, "column 'A'"},
		{{"-o", "custom-columns=A:.x,B"}, "'B' is not HEADER:PATH"},
		{{"-n", "x", "-A"}, "not both"},
		{{"--limit", "0"}, "--limit: '0'"},
		{{"--sort-by", "{.x"}, "--sort-by: "},
		{{"nodes", "--failed"},
		 "--failed works for jobs, pods, remediations and devicerollouts only"},
		{{"-w", "--limit", "1"}, "-w cannot be combined with --sort-by"},
		{{"--request-timeout", "soon"}, "--request-timeout: 'soon'"},
	};
	struct cli_world *w = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		const char *const *word = cases[i].words;
		cli_world_run(w, "get", word[0], word[1], word[2], word[3], NULL);
		assert_has(w->err, cases[i].said);
		assert_has(w->err, "See 'holdfast get --help'.");
		assert_string_equal(w->out, "");
		assert_int_equal(w->code, HF_EXIT_USAGE);
	}
}

static void labels_select(void **state)
{
	struct cli_world *w = *state;

	cli_world_pod(w, "a", "master-0", "Running");
	cli_world_pod(w, "b", "master-0", "Running");
	cli_world_run(w, "get", "pods", "-l", "training.kubeflow.org/job-name=b", "-o", "name",
		      NULL);
	assert_said(w, 0, "pod/b-master-0\n", "");
}

static void programs_get_lists_names_paths_and_columns(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_job(w, "b", 1, "Running");
	cli_world_run(w, "get", "-o", "name", NULL);
	assert_said(w, 0, "pytorchjob.kubeflow.org/a\npytorchjob.kubeflow.org/b\n", "");
	cli_world_run(w, "get", "-o", "jsonpath={.items[*].metadata.name}", NULL);
	assert_said(w, 0, "a b", "");
	cli_world_run(w, "get", "jobs", "a", "-o", "jsonpath={.metadata.name}", NULL);
	assert_said(w, 0, "a", "");
	cli_world_run(w, "get", "-o", "custom-columns=N:.metadata.name,X:.nope", NULL);
	assert_said(w, 0, "N   X\na   <none>\nb   <none>\n", "");
	cli_world_run(w, "get", "-o", "json", NULL);
	assert_has(w->out, "\"kind\": \"List\"");
	cli_world_run(w, "get", "jobs/a", "-o", "yaml", NULL);
	assert_has(w->out, "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n");
	cli_world_run(w, "get", "pods", "-o", "json", NULL);
	assert_has(w->out, "\"items\": []");
}

static void rename_state(struct cli_world *w)
{
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "a",
			"{'status':{'conditions':[{'type':'Succeeded','status':'True',"
			"'reason':'R','message':'m'}]}}");
}

static void delete_a(struct cli_world *w)
{
	cli_world_delete(w, hf_resource_by_word("pytorchjobs"), "a");
}

static void break_off(struct cli_world *w)
{
	cli_world_break(w, HF_E_UNAVAILABLE);
}

static void a_watch_prints_each_change_until_it_ends(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_later(w, HF_SECOND, rename_state);
	cli_world_later(w, 2 * HF_SECOND, delete_a);
	cli_world_later(w, 3 * HF_SECOND, break_off);
	cli_world_run(w, "get", "-w", NULL);
	assert_string_equal(w->out,
			    "KIND         NAME   STATE        READY   GEN   RESTARTS   AGE\n"
			    "PyTorchJob   a      Running      0/2     0     0          0s\n"
			    "PyTorchJob   a      Succeeded    0/2     0     0          1s\n"
			    "PyTorchJob   a      Deleted      0/2     0     0          2s\n");
	assert_int_not_equal(w->code, 0);
}

static void a_rank_in_a_crash_loop_is_not_ready(void **state)
{
	struct cli_world *w = *state;

	/* the job's status counts the rank as active, although its pod is not Ready */
	cli_world_job(w, "a", 1, "Running");
	ready_pod(w, "a", "master-0", "False");
	cli_world_run(w, "get", "--no-headers", NULL);
	assert_said(w, 0, "PyTorchJob   a   Running   0/2   0   0   0s\n", "");
	cli_world_run(w, "describe", "a", NULL);
	assert_has(w->out, "Ready:         0 of 2\n");
	set_ready(w, "a-master-0", "True");
	cli_world_run(w, "get", "a", "--no-headers", NULL);
	assert_said(w, 0, "PyTorchJob   a   Running   1/2   0   0   0s\n", "");
	cli_world_run(w, "describe", "a", NULL);
	assert_has(w->out, "Ready:         1 of 2\n");
}

static void describe_prints_the_job_and_its_pods_as_objects(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	ready_pod(w, "a", "master-0", "True");
	cli_world_run(w, "describe", "a", "-o", "yaml", NULL);
	assert_int_equal(w->code, 0);
	assert_has(w->out, "kind: List\n");
	assert_has(w->out, "kind: PyTorchJob\n");
	assert_has(w->out, "name: a-master-0\n");
	cli_world_run(w, "describe", "a", "-o", "json", NULL);
	assert_has(w->out, "\"kind\": \"PyTorchJob\"");
	cli_world_run(w, "describe", "a", "-o", "wide", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	assert_has(w->err, "-o takes json or yaml with this verb, not 'wide'");
}

static void what_has_succeeded_counts_as_ready_also_without_its_pod(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Succeeded");
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "a",
			"{'status':{'replicaStatuses':{'Master':{'active':0,'succeeded':1}}}}");
	cli_world_run(w, "get", "--no-headers", NULL);
	assert_said(w, 0, "PyTorchJob   a   Succeeded   1/2   0   0   0s\n", "");
}

static void crash(struct cli_world *w)
{
	set_ready(w, "a-master-0", "False");
}

static void delete_pod(struct cli_world *w)
{
	cli_world_delete(w, &hf_pods, "a-worker-0");
}

static void a_watch_shows_a_job_again_when_its_pods_change(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	ready_pod(w, "a", "master-0", "True");
	ready_pod(w, "a", "worker-0", "True");
	ready_pod(w, "other", "master-0", "True");
	cli_world_later(w, HF_SECOND, crash);
	cli_world_later(w, 2 * HF_SECOND, delete_pod);
	cli_world_later(w, 33 * HF_SECOND, delete_a);
	cli_world_later(w, 34 * HF_SECOND, break_off);
	cli_world_run(w, "get", "-w", "--no-headers", NULL);
	assert_has(w->out, "a   Running      2/2   0   0   0s\n");
	assert_has(w->out, "a   Running      1/2   0   0   1s\n");
	assert_has(w->out, "a   Running      0/2   0   0   ");
	assert_string_equal(w->err, "holdfast: the server went away\n");
}

static void a_watch_begins_as_wide_as_its_widest_row(void **state)
{
	struct cli_world *w = *state;

	cli_world_pod(w, "a", "master-0", "Running");
	cli_world_pod(w, "long-name", "master-0", "Running");
	cli_world_later(w, HF_SECOND, break_off);
	cli_world_run(w, "get", "pods", "-w", NULL);
	assert_string_equal(w->out, "NAME                 READY   STATUS    RESTARTS   AGE\n"
				    "a-master-0           1/1     Running   2          0s\n"
				    "long-name-master-0   1/1     Running   2          0s\n");
}

static void a_watch_of_what_is_not_there_is_refused(void **state)
{
	struct cli_world *w = *state;

	cli_world_run(w, "get", "-w", "jobs", "nosuch", NULL);
	assert_int_equal(w->code, HF_EXIT_FAILED);
	assert_has(w->err, "no job 'nosuch'");
}

static void a_job_is_found_by_its_name_alone(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "two", 1, "Running");
	cli_world_job(w, "three", 1, "Running");
	cli_world_run(w, "get", "two", "-o", "name", NULL);
	assert_said(w, 0, "pytorchjob.kubeflow.org/two\n", "");
	cli_world_run(w, "get", "four", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	assert_has(w->err, "unknown kind 'four'");
}

static void lists_are_sorted_by_any_field(void **state)
{
	static const char *const nodes[][2] = {{"c", "10"}, {"a", "9"}, {"b", "x"}, {"d", "9"}};
	struct cli_world *w = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(nodes); i++) {
		HF_AUTOFREE char *text = hf_xasprintf(
			"{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s','labels':"
			"{'n':'%s'}}}",
			nodes[i][0], nodes[i][1]);
		cli_world_put(w, text);
	}
	cli_world_run(w, "get", "nodes", "-o", "name", "--sort-by", ".metadata.labels.n", NULL);
	assert_said(w, 0, "node/a\nnode/d\nnode/c\nnode/b\n", "");
	cli_world_run(w, "get", "nodes", "-o", "name", "--sort-by={.metadata.labels.n}",
		      "--limit=2", NULL);
	assert_said(w, 0, "node/a\nnode/d\n", "");
	cli_world_run(w, "get", "nodes", "-o", "name", "--sort-by", ".nope", NULL);
	assert_said(w, 0, "node/a\nnode/b\nnode/c\nnode/d\n", "");
}

static void what_has_failed_can_be_had_alone(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_job(w, "b", 1, "Failed");
	cli_world_pod(w, "a", "master-0", "Failed");
	cli_world_pod(w, "b", "master-0", "Running");
	cli_world_run(w, "get", "--failed", "-o", "name", NULL);
	assert_said(w, 0, "pytorchjob.kubeflow.org/b\n", "");
	cli_world_run(w, "get", "pods", "--failed", "-o", "name", NULL);
	assert_said(w, 0, "pod/a-master-0\n", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(jobs_are_listed_with_what_they_are_doing,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(restarts_are_shown_by_what_they_were_charged_to,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(training_is_shown_where_ranks_report,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(pods_have_the_columns_of_kubectl, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(nodes_say_whether_they_take_pods, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(what_is_not_there_is_told_with_code_1,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(mistakes_on_the_command_line_are_code_2,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(labels_select, cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(programs_get_lists_names_paths_and_columns,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_watch_prints_each_change_until_it_ends,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(describe_prints_the_job_and_its_pods_as_objects,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_rank_in_a_crash_loop_is_not_ready,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(
			what_has_succeeded_counts_as_ready_also_without_its_pod, cli_world_setup,
			cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_watch_shows_a_job_again_when_its_pods_change,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_watch_begins_as_wide_as_its_widest_row,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_watch_of_what_is_not_there_is_refused,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(a_job_is_found_by_its_name_alone, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(lists_are_sorted_by_any_field, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(what_has_failed_can_be_had_alone, cli_world_setup,
						cli_world_teardown),
	};

	return cmocka_run_group_tests_name("get", tests, NULL, NULL);
}
