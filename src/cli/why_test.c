/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/mem.h"
#include "base/str.h"
#include "json/doc.h"

#include "harness/cli_world.h"
#include "harness/test.h"
#include "store/resource.h"

#include <string.h>

static void why_begins_with_where_the_job_is(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Suspended");
	cli_world_run(w, "why", "a", NULL);
	assert_int_equal(w->code, 0);
	assert_true(hf_str_has_prefix(w->out, "default/a is "));
	cli_world_run(w, "why", "b", NULL);
	assert_said(w, 1, "", "holdfast: no job 'b' in namespace 'default'\n");
}

static void why_tells_programs_the_whole_plan(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Created");
	cli_world_run(w, "why", "a", "-o", "json", NULL);
	assert_int_equal(w->code, 0);
	HF_AUTO_DOC plan = hf_doc_from_text(w->out, strlen(w->out));
	const struct hf_json *root = hf_doc_json(plan);
	assert_non_null(hf_json_path_str(root, "summary", NULL));
	/* The job has no pods and services yet, so the step creates them. */
	assert_true(hf_json_len(hf_json_get(root, "stages")) > 0);
	assert_has(w->out, "a-master-0");
	cli_world_run(w, "why", "a", "-o", "yaml", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	assert_has(w->err, "-o takes only json with this verb, not 'yaml'");
}

static void why_names_what_the_server_refused(void **state)
{
	struct cli_world *w = *state;
	struct hf_doc *job;

	cli_world_job(w, "a", 1, "Created");
	cli_world_run(w, "why", "a", NULL);
	assert_null(strstr(w->out, "blocked"));
	job = cli_world_get(w, hf_resource_by_word("pytorchjobs"), "a");
	for (int i = 1; i <= 2; i++) {
		HF_AUTOFREE char *event = hf_xasprintf(
			"{'apiVersion':'v1','kind':'Event','metadata':{'name':'a.%d'},"
			"'involvedObject':{'kind':'PyTorchJob','name':'a','namespace':'default',"
			"'uid':'%s'},'type':'Warning','reason':'FailedCreatePod','count':%d,"
			"'lastTimestamp':'2023-11-14T22:13:0%dZ','message':'refused %d'}",
			i, hf_doc_uid(job), i, i, i);
		cli_world_put(w, event);
	}
	hf_doc_unref(job);
	cli_world_run(w, "why", "a", NULL);
	assert_int_equal(w->code, 0);
	assert_has(w->out, "  blocked   refused 2 (2 times)\n"
			   " now       next      the operator tries again, with growing delays\n");
	cli_world_run(w, "why", "a", "-o", "json", NULL);
	assert_has(w->out, "\"refused\": \"refused 2\"");
}

static void why_looks_for_what_a_job_has_beside_pods(void **state)
{
	struct cli_world *w = *state;

	cli_world_put(w, "{'apiVersion':'kubeflow.org/v1','kind':'MPIJob','metadata':{'name':'pi'},"
			 "'spec':{'mpiReplicaSpecs':{'Launcher':{'template':{'spec':{'containers':["
			 "{'name':'mpi','image':'i'}]}}}}}}");
	cli_world_run(w, "why", "pi", NULL);
	assert_int_equal(w->code, 0);
	assert_has(w->out, "ConfigMap 'pi-config' does not exist; if the operator cannot create "
			   "it, the job's events say why\n");
	/* The embedded store does not have the kind HorizontalPodAutoscaler, so the plan must not
	 * miss an object of this kind. */
	cli_world_put(w, "{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':"
			 "'e'},'spec':{'elasticPolicy':{'metrics':[]},'pytorchReplicaSpecs':{"
			 "'Worker':{'template':{'spec':{'containers':[{'name':'pytorch','image':"
			 "'i'}]}}}}}}");
	cli_world_run(w, "why", "e", NULL);
	assert_int_equal(w->code, 0);
	assert_null(strstr(w->out, "is not there"));
}

static void why_says_once_that_a_name_is_taken(void **state)
{
	struct cli_world *w = *state;
	const char *message = "the name of master-0 is taken by a pod of another owner";
	struct hf_doc *job;

	cli_world_job(w, "a", 1, "Created");
	job = cli_world_get(w, hf_resource_by_word("pytorchjobs"), "a");
	HF_AUTOFREE char *event = hf_xasprintf(
		"{'apiVersion':'v1','kind':'Event','metadata':{'name':'a.1'},"
		"'involvedObject':{'kind':'PyTorchJob','name':'a','namespace':'default',"
		"'uid':'%s'},'type':'Warning','reason':'FailedCreatePod','count':1,"
		"'lastTimestamp':'2023-11-14T22:13:00Z','message':'Error creating: %s'}",
		hf_doc_uid(job), message);
	cli_world_put(w, event);
	hf_doc_unref(job);
	cli_world_run(w, "why", "a", NULL);
	assert_has(w->out, "Error creating: the name of master-0");
	HF_AUTOFREE char *status = hf_xasprintf(
		"{'status':{'conditions':[{'type':'holdfast.dev/NameTaken','status':'True',"
		"'reason':'PodOfAnotherOwner','message':'%s'}]}}",
		message);
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "a", status);
	cli_world_run(w, "why", "a", NULL);
	assert_int_equal(w->code, 0);
	assert_has(w->out, message);
	assert_null(strstr(w->out, "Error creating"));
}

static void why_finds_pods_with_an_edited_label(void **state)
{
	struct cli_world *w = *state;
	struct hf_doc *job;

	cli_world_job(w, "a", 1, "Running");
	job = cli_world_get(w, hf_resource_by_word("pytorchjobs"), "a");
	for (int i = 0; i < 2; i++) {
		HF_AUTOFREE char *pod = hf_xasprintf(
			"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a-%s-0','labels':{"
			"'training.kubeflow.org/job-name':'%s'},'ownerReferences':[{'apiVersion':"
			"'kubeflow.org/v1','kind':'PyTorchJob','name':'a','uid':'%s','controller':"
			"true}]},'spec':{'containers':[{'name':'pytorch','image':'i'}]}}",
			i ? "worker" : "master", i ? "other" : "a", hf_doc_uid(job));
		cli_world_put(w, pod);
	}
	hf_doc_unref(job);
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "a",
			"{'status':{'recovery':{'schema':1,'generation':1,'phase':'Running',"
			"'replicas':{'Master':{'created':'0'},'Worker':{'created':'0'}}}}}");
	cli_world_run(w, "why", "a", NULL);
	assert_int_equal(w->code, 0);
	assert_null(strstr(w->out, "vanished"));
	assert_null(strstr(w->out, "infrastructure"));
}

/* A cause that may change with kubelet reports is shown as waiting: only the operator, which reads
 * these reports, can declare it final. */
static void why_fails_no_job_whose_verdict_waits(void **state)
{
	struct cli_world *w = *state;
	struct hf_doc *job;
	char now[HF_TIME_TEXT_MAX];

	cli_world_put(
		w,
		"{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':"
		"'a'},'spec':{'pytorchReplicaSpecs':{'Master':{'replicas':1,'restartPolicy':'Never',"
		"'template':{'spec':{'containers':[{'name':'pytorch','image':'i'}]}}}}},"
		"'status':{'conditions':[{'type':'Running','status':'True','reason':'R',"
		"'message':'it is so'}],'recovery':{'schema':1,'generation':1,'phase':"
		"'Running','replicas':{'Master':{'created':'0'}}}}}");
	job = cli_world_get(w, hf_resource_by_word("pytorchjobs"), "a");
	hf_time_format(hf_loop_wall(w->loop), now);
	HF_AUTOFREE char *pod = hf_xasprintf(
		"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a-master-0','annotations':{"
		"'holdfast.dev/generation':'1','holdfast.dev/attempt':'0',"
		"'holdfast.dev/incident':'0'},'labels':{'training.kubeflow.org/job-name':'a'},"
		"'ownerReferences':[{'apiVersion':'kubeflow.org/v1',"
		"'kind':'PyTorchJob','name':'a','uid':'%s','controller':true}]},'spec':{"
		"'nodeName':'n1','containers':[{'name':'pytorch','image':'i'}]},'status':{"
		"'phase':'Failed','containerStatuses':[{'name':'pytorch','state':{'terminated':{"
		"'exitCode':1,'finishedAt':'%s'}}}]}}",
		hf_doc_uid(job), now);
	hf_doc_unref(job);
	cli_world_put(w, pod);
	cli_world_run(w, "why", "a", NULL);
	assert_int_equal(w->code, 0);
	assert_null(strstr(w->out, "Failed"));
	/* The first line has the state alone, because the line blocked has the rest. */
	assert_true(hf_str_has_prefix(w->out, "default/a is Running\n"));
	assert_has(w->out,
		   "blocked   the verdict RestartPolicyNever waits for news of node n1, until "
		   "2023-11-14T22:13:40Z at the latest\n");
}

/* All pods of the tests' world (cli_world) run on the node n1. */
static void a_disk_that_is_short_is_told_by_every_verb_that_looks(void **state)
{
	static const char *const verbs[] = {"why", "describe", "get"};
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_pod(w, "a", "master-0", "Running");
	cli_world_pod(w, "a", "worker-0", "Running");
	for (size_t i = 0; i < HF_ARRAY_LEN(verbs); i++) {
		cli_world_run(w, verbs[i], i == 2 ? "jobs" : "a", NULL);
		assert_int_equal(w->code, 0);
		assert_null(strstr(w->out, "isk"));
		assert_string_equal(w->err, "");
	}
	cli_world_put(w, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n1'}}");
	cli_world_patch(w, &hf_nodes, "n1",
			"{'status':{'conditions':[{'type':'DiskPressure','status':'True',"
			"'message':'nothing is free'}]}}");
	cli_world_run(w, "why", "a", NULL);
	assert_has(w->out, " now       disk      node 'n1': nothing is free\n");
	cli_world_run(w, "why", "a", "-o", "json", NULL);
	assert_has(w->out, "\"disks\": [");
	assert_has(w->out, "\"node 'n1': nothing is free\"");
	cli_world_run(w, "describe", "a", NULL);
	assert_has(w->out, "\nDisk:          node 'n1': nothing is free\n");
	for (size_t i = 0; i < 2; i++) {
		cli_world_run(w, "get", i ? "pods" : "jobs", NULL);
		assert_int_equal(w->code, 0);
		assert_string_equal(w->err, "holdfast: warning: node 'n1': nothing is free\n");
	}
	/* With -o name, no warning is printed: a program can read the Node itself. */
	cli_world_run(w, "get", "pods", "-o", "name", NULL);
	assert_string_equal(w->err, "");
	cli_world_run(w, "get", "nodes", NULL);
	assert_has(w->out, "Unknown,DiskPressure");
}

static void describe_shows_all_there_is_of_a_job(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_pod(w, "a", "master-0", "Running");
	cli_world_patch(
		w, hf_resource_by_word("pytorchjobs"), "a",
		"{'status':{'startTime':'2023-11-14T22:13:00Z','recovery':{'generation':3,"
		"'restarts':{'application':1},'last':{'decidedAt':'2023-11-14T22:13:01Z',"
		"'cause':'application','scope':'Job','replica':'worker-0','exitCode':9,"
		"'reason':'StartError','rule':'r1','step':12,'savedStep':10},'history':[{'decidedAt':'2023-11-14T22:12:01Z',"
		"'cause':'user'}]}}}");
	cli_world_run(w, "describe", "a", NULL);
	assert_int_equal(w->code, 0);
	assert_has(w->out, "Name:          a\nNamespace:     default\nKind:          PyTorchJob\n"
			   "State:         Running\nMessage:       it is so\n");
	assert_has(w->out, "Ready:         0 of 2\nGeneration:    3\n"
			   "Restarts:      1 (application)\n");
	assert_has(w->out, "Running   True     R        ");
	assert_has(
		w->out,
		"2023-11-14T22:13:01Z   application   Job     worker-0   9      StartError   r1     2\n"
		"2023-11-14T22:12:01Z   user          -       -          -      -            -      -\n");
	assert_has(w->out, "a-master-0   1/1     Running   2          n1\n");
	assert_has(w->out, "\na is ");
	cli_world_run(w, "describe", "b", NULL);
	assert_said(w, 1, "", "holdfast: no job 'b' in namespace 'default'\n");
}

static void what_comes_from_outside_moves_no_cursor(void **state)
{
	struct cli_world *w = *state;

	cli_world_job(w, "a", 1, "Running");
	cli_world_patch(w, hf_resource_by_word("pytorchjobs"), "a",
			"{'status':{'conditions':[{'type':'Failed','status':'True','reason':'R',"
			"'message':'x\\u001b[2Jy\\u009bz'}]}}");
	cli_world_run(w, "describe", "a", NULL);
	assert_int_equal(w->code, 0);
	assert_null(strchr(w->out, '\033'));
	assert_null(strstr(w->out, "\xc2\x9b"));
	cli_world_run(w, "get", "-o", "wide", NULL);
	assert_null(strchr(w->out, '\033'));
	cli_world_run(w, "why", "a", NULL);
	assert_null(strchr(w->out, '\033'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(why_begins_with_where_the_job_is, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(why_tells_programs_the_whole_plan, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(why_names_what_the_server_refused, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(why_looks_for_what_a_job_has_beside_pods,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(why_says_once_that_a_name_is_taken, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(why_fails_no_job_whose_verdict_waits,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(why_finds_pods_with_an_edited_label,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(
			a_disk_that_is_short_is_told_by_every_verb_that_looks, cli_world_setup,
			cli_world_teardown),
		cmocka_unit_test_setup_teardown(describe_shows_all_there_is_of_a_job,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(what_comes_from_outside_moves_no_cursor,
						cli_world_setup, cli_world_teardown),
	};

	return cmocka_run_group_tests_name("why", tests, NULL, NULL);
}
