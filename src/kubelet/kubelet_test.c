/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/node.h"
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/runtime/shim.h"
#include "loop/process.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tests pods of a real kubelet on a store in memory. This program is its own shim. */

#define STR(json, ...) hf_json_path_str((json), __VA_ARGS__, NULL)
#define NUM(json, ...) hf_json_i64(hf_json_path((json), __VA_ARGS__, NULL), -1)

static void a_pod_runs_to_its_end_and_its_status_tells_how(void **state)
{
	struct testnode *n = *state;
	const struct hf_json *c;

	testnode_script(n, "a", "Never", "echo hello");
	testnode_wait_phase(n, "a", "Succeeded");
	c = testnode_container(n, "a", 0, false);
	assert_string_equal(STR(c, "name"), "main");
	assert_int_equal(NUM(c, "state", "terminated", "exitCode"), 0);
	assert_string_equal(STR(c, "state", "terminated", "reason"), "Completed");
	assert_non_null(STR(c, "state", "terminated", "startedAt"));
	assert_non_null(STR(c, "state", "terminated", "finishedAt"));
	assert_int_equal(NUM(c, "restartCount"), 0);
	assert_false(hf_json_true(hf_json_get(c, "ready"), true));
	assert_string_equal(STR(c, "image"), "x");
	assert_non_null(STR(testnode_status(n, "a"), "podIP"));
	assert_non_null(STR(testnode_status(n, "a"), "startTime"));
	assert_string_equal(STR(testnode_status(n, "a"), "hostIP"), "127.0.0.1");
	assert_string_equal(STR(testnode_status(n, "a"), "qosClass"), "BestEffort");
	assert_string_equal(testnode_condition(n, "a", "Initialized"), "True");
	assert_string_equal(testnode_condition(n, "a", "Ready"), "False");
	assert_string_equal(testnode_condition(n, "a", "PodScheduled"), "True");
	testnode_assert_output(n, "a", "hello\n");
	assert_int_equal(testnode_events(n, "a", "Started"), 1);
}

static void a_pod_that_fails_says_with_what(void **state)
{
	struct testnode *n = *state;
	const struct hf_json *t;

	testnode_script(n, "a", "Never", "exit 3");
	testnode_script(n, "b", "Never", "kill -SEGV $$$$");
	testnode_pod(n, "c",
		     "'restartPolicy':'Never','containers':[{'name':'main','command':"
		     "['no-such-program']}]");
	testnode_wait_phase(n, "a", "Failed");
	t = hf_json_path(testnode_container(n, "a", 0, false), "state", "terminated", NULL);
	assert_int_equal(NUM(t, "exitCode"), 3);
	assert_string_equal(STR(t, "reason"), "Error");
	testnode_wait_phase(n, "b", "Failed");
	t = hf_json_path(testnode_container(n, "b", 0, false), "state", "terminated", NULL);
	assert_int_equal(NUM(t, "exitCode"), 139);
	assert_int_equal(NUM(t, "signal"), SIGSEGV);
	testnode_wait_phase(n, "c", "Failed");
	t = hf_json_path(testnode_container(n, "c", 0, false), "state", "terminated", NULL);
	assert_int_equal(NUM(t, "exitCode"), 128);
	assert_string_equal(STR(t, "reason"), "StartError");
	assert_string_equal(STR(t, "message"),
			    "exec: \"no-such-program\": executable file not found in $PATH");
}

static void a_pod_that_runs_is_ready(void **state)
{
	struct testnode *n = *state;
	const struct hf_json *c;

	testnode_script(n, "a", "Always", "exec tail -f /dev/null");
	testnode_wait_phase(n, "a", "Running");
	testnode_wait_state(n, "a", "running", NULL);
	c = testnode_container(n, "a", 0, false);
	assert_true(hf_json_true(hf_json_get(c, "ready"), false));
	assert_true(hf_json_true(hf_json_get(c, "started"), false));
	assert_string_equal(testnode_condition(n, "a", "Ready"), "True");
	assert_string_equal(testnode_condition(n, "a", "ContainersReady"), "True");
	assert_string_equal(testnode_condition(n, "a", "PodReadyToStartContainers"), "True");
}

static void a_container_that_fails_is_restarted_at_once_and_then_waits(void **state)
{
	struct testnode *n = *state;
	const struct hf_json *c;

	testnode_script(n, "a", "OnFailure", "exit 7");
	testnode_wait_state(n, "a", "waiting", "CrashLoopBackOff");
	c = testnode_container(n, "a", 0, false);
	assert_int_equal(NUM(c, "restartCount"), 1);
	assert_int_equal(NUM(c, "lastState", "terminated", "exitCode"), 7);
	assert_true(
		hf_str_has_prefix(STR(c, "state", "waiting", "message"),
				  "back-off 10s restarting failed container=main pod=a_default("));
	assert_string_equal(STR(testnode_status(n, "a"), "phase"), "Running");
	testnode_delete(n, "a", HF_GRACE_DEFAULT);
	testnode_wait_gone(n, "a");
}

static void on_failure_a_good_end_is_the_end(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *script =
		hf_xasprintf("test -e %s/mark && exit 0; touch %s/mark; exit 1", n->dir, n->dir);

	testnode_script(n, "a", "OnFailure", script);
	testnode_wait_phase(n, "a", "Succeeded");
	assert_int_equal(NUM(testnode_container(n, "a", 0, false), "restartCount"), 1);
	assert_int_equal(
		NUM(testnode_container(n, "a", 0, false), "lastState", "terminated", "exitCode"),
		1);
}

static void init_containers_run_one_after_the_other_before_the_rest(void **state)
{
	struct testnode *n = *state;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	HF_AUTOFREE char *path = hf_xasprintf("%s/order", n->dir);
	struct hf_error err;

	testnode_pod(n, "a",
		     "'restartPolicy':'Never','initContainers':["
		     "{'name':'one','command':['sh','-c','echo one >> %s']},"
		     "{'name':'two','command':['sh','-c','echo two >> %s']}],"
		     "'containers':[{'name':'main','command':['sh','-c','echo main >> %s']}]",
		     path, path, path);
	testnode_wait_phase(n, "a", "Succeeded");
	assert_ok(hf_fs_read(path, &text, &err), &err);
	assert_string_equal(text.data, "one\ntwo\nmain\n");
	assert_true(hf_json_true(hf_json_get(testnode_container(n, "a", 1, true), "ready"), false));

	testnode_pod(n, "b",
		     "'restartPolicy':'Never','initContainers':["
		     "{'name':'one','command':['sh','-c','exit 9']}],"
		     "'containers':[{'name':'main','command':['sh','-c','echo never >> %s']}]",
		     path);
	testnode_wait_phase(n, "b", "Failed");
	assert_int_equal(
		NUM(testnode_container(n, "b", 0, true), "state", "terminated", "exitCode"), 9);
	assert_string_equal(STR(testnode_container(n, "b", 0, false), "state", "waiting", "reason"),
			    "PodInitializing");
	assert_string_equal(testnode_condition(n, "b", "Initialized"), "False");
}

/* The sidecar starts before the program and ends after it, by SIGTERM; its exit code does not count. */
static void a_sidecar_runs_beside_the_program_and_ends_with_it(void **state)
{
	struct testnode *n = *state;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	HF_AUTOFREE char *path = hf_xasprintf("%s/order", n->dir);
	struct hf_error err;

	testnode_file(n, "side.sh",
		      "trap 'echo told >> order; exit 9' TERM\n"
		      "echo side >> order\n"
		      "while :; do sleep 0.05; done\n");
	testnode_pod(
		n, "a",
		"'restartPolicy':'Never','initContainers':[{'name':'side','restartPolicy':'Always',"
		"'workingDir':'%s','command':['sh','side.sh']},{'name':'one','command':['sh','-c',"
		"'while ! test -e %s; do sleep 0.05; done; echo one >> %s']}],'containers':[{"
		"'name':'main','command':['sh','-c','echo main >> %s']}]",
		n->dir, path, path, path);
	testnode_wait_phase(n, "a", "Succeeded");
	assert_ok(hf_fs_read(path, &text, &err), &err);
	assert_string_equal(text.data, "side\none\nmain\ntold\n");
	assert_int_equal(
		NUM(testnode_container(n, "a", 0, true), "state", "terminated", "exitCode"), 9);
	assert_string_equal(testnode_condition(n, "a", "Initialized"), "True");
}

static bool init_runs(struct testnode *n, void *arg HF_UNUSED)
{
	return hf_json_path(testnode_container(n, "job-worker-0", 0, true), "state", "running",
			    NULL);
}

/* The script of upstream's init container, with a shorter pause. */
static const char init_loop[] =
	"err=1; for i in $(seq 100); do if nslookup job-master-0; then err=0 && break; fi; "
	"sleep 0.2; done; exit $err";

static void a_worker_finds_its_master_by_name_once_that_runs(void **state)
{
	struct testnode *n = *state;

	if (!n->facts.pod_network) {
		(void)fprintf(stderr, "# SKIPPED: this machine refuses namespaces\n");
		return;
	}
	testnode_file(n, "master.py",
		      "import socket\n"
		      "s = socket.create_server(('', 23456))\n"
		      "c = s.accept()[0]\n"
		      "c.sendall(b'hello from ' + socket.gethostname().encode())\n");
	testnode_file(
		n, "worker.py",
		"import os, socket\n"
		"def ask():\n"
		"    while True:\n"
		"        try: return socket.create_connection((os.environ['MASTER_ADDR'], 23456))\n"
		"        except ConnectionRefusedError: pass\n"
		"print(ask().recv(99).decode())\n"
		"names = ['job-master-0' + end for end in\n"
		"         ('', '.default', '.default.svc', '.default.svc.cluster.local')]\n"
		"print(len({socket.gethostbyname(name) for name in names}))\n"
		"print(socket.gethostbyname(socket.gethostname()) != '127.0.0.1')\n");
	testnode_create(n, &hf_services,
			"{'apiVersion':'v1','kind':'Service','metadata':{'name':'job-master-0'},"
			"'spec':{'clusterIP':'None','selector':{'app':'job-master-0'}}}");
	testnode_pod(
		n, "job-worker-0",
		"'restartPolicy':'Never','initContainers':[{'name':'init-pytorch',"
		"'image':'alpine:3.10','command':['sh','-c','%s'],'resources':{'limits':"
		"{'cpu':'100m','memory':'20Mi'}}}],'containers':[{'name':'main','env':[{'name':"
		"'MASTER_ADDR','value':'job-master-0'}],'command':['python3','%s/worker.py']}]",
		init_loop, n->dir);
	testnode_wait(n, init_runs, NULL);
	testnode_pod(n, "job-master-0",
		     "'restartPolicy':'Never','containers':[{'name':'main',"
		     "'command':['python3','%s/master.py']}]",
		     n->dir);
	testnode_wait_phase(n, "job-worker-0", "Succeeded");
	testnode_assert_output(n, "job-worker-0", "hello from job-master-0\n1\nTrue\n");
	testnode_wait_phase(n, "job-master-0", "Succeeded");
}

static void a_deleted_pod_gets_sigterm_and_time_to_end(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *script = hf_xasprintf(
		"trap \\\"sleep 0.1; echo saved > %s/saved; exit 0\\\" TERM; touch %s/up; "
		"tail -f /dev/null & wait",
		n->dir, n->dir);

	testnode_script(n, "a", "Always", script);
	testnode_wait_file(n, "up");
	testnode_delete(n, "a", HF_GRACE_DEFAULT);
	assert_non_null(testnode_get(n, "a"));
	testnode_wait_gone(n, "a");
	assert_true(testnode_has_file(n, "saved"));
	assert_int_equal(testnode_events(n, "a", "Killing"), 1);
}

static void a_pod_that_ignores_sigterm_is_killed_when_its_grace_is_over(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *script = hf_xasprintf("trap \\\"\\\" TERM; touch %s/up; "
						"while :; do tail -f /dev/null; done",
						n->dir);
	hf_time began;

	testnode_script(n, "a", "Always", script);
	testnode_wait_file(n, "up");
	began = hf_loop_mono(n->loop);
	testnode_delete(n, "a", 1);
	testnode_wait_gone(n, "a");
	assert_true(hf_loop_mono(n->loop) - began >= HF_SECOND);
}

static bool is_killing(struct testnode *n, void *arg)
{
	return testnode_events(n, arg, "Killing") > 0;
}

/* The kubelet must look at a waiting pod only now and then: sync_pod in an endless loop would keep
 * it from handling other events. */
static void a_pod_that_waits_for_its_end_is_looked_at_now_and_then(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *script = hf_xasprintf("trap \\\"\\\" TERM; touch %s/up; "
						"while :; do tail -f /dev/null; done",
						n->dir);
	char a[] = "a";
	const char *uid;
	struct hf_kubelet_pod *pod;
	unsigned looks;

	testnode_script(n, "a", "Always", script);
	testnode_wait_file(n, "up");
	uid = hf_json_path_str(testnode_get(n, "a"), "metadata", "uid", NULL);
	pod = hf_map_get(n->kubelet->pods, uid);
	looks = pod->looks;
	testnode_delete(n, "a", 600);
	testnode_wait(n, is_killing, a);
	testnode_delete(n, "a", 600);
	assert_in_range(pod->looks - looks, 1, 20);
	testnode_delete(n, "a", 0);
	testnode_wait_gone(n, "a");
}

static bool dirs_empty(struct testnode *n, void *arg HF_UNUSED)
{
	return hf_map_len(n->kubelet->pods) == 0;
}

static void a_pod_deleted_with_force_is_killed_and_leaves_nothing(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *script = hf_xasprintf("trap \\\"\\\" TERM; touch %s/up; "
						"while :; do tail -f /dev/null; done",
						n->dir);
	HF_AUTOFREE char *dir = NULL;

	testnode_script(n, "a", "Always", script);
	testnode_wait_file(n, "up");
	dir = hf_xasprintf("%s/node/pods/%s", n->dir, STR(testnode_get(n, "a"), "metadata", "uid"));
	assert_int_equal(access(dir, F_OK), 0);
	testnode_delete(n, "a", 0);
	assert_null(testnode_get(n, "a"));
	testnode_wait(n, dirs_empty, NULL);
	assert_int_equal(access(dir, F_OK), -1);
}

static void a_pod_past_its_deadline_fails(void **state)
{
	struct testnode *n = *state;

	testnode_pod(n, "a",
		     "'restartPolicy':'OnFailure','activeDeadlineSeconds':1,'containers':"
		     "[{'name':'main','command':['tail','-f','/dev/null']}]");
	testnode_wait_phase(n, "a", "Failed");
	assert_string_equal(STR(testnode_status(n, "a"), "reason"), "DeadlineExceeded");
	assert_int_equal(
		NUM(testnode_container(n, "a", 0, false), "state", "terminated", "exitCode"), 143);
}

static void patch_deadline(struct testnode *n, const char *name)
{
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = &hf_pods,
				     .ns = "default",
				     .name = name,
				     .patch_type = HF_PATCH_MERGE};
	const char *text = "{\"spec\":{\"activeDeadlineSeconds\":1}}";
	HF_AUTO_DOC body = hf_doc_from_text(text, strlen(text));
	HF_AUTO_RESULT result = {0};

	request.body = body;
	hf_memstore_apply(n->memstore, &request, &result);
	assert_int_equal(result.code, 0);
}

/* Under every restartPolicy: the operator ends the pods of a failed job by adding
 * activeDeadlineSeconds. */
static void a_deadline_that_is_added_ends_a_running_pod_for_good(void **state)
{
	struct testnode *n = *state;

	testnode_script(n, "a", "Always", "exec tail -f /dev/null");
	testnode_wait_state(n, "a", "running", NULL);
	/* The minimum of activeDeadlineSeconds is 1; the second counts from the pod's start. */
	patch_deadline(n, "a");
	testnode_wait_phase(n, "a", "Failed");
	assert_string_equal(STR(testnode_status(n, "a"), "reason"), "DeadlineExceeded");
	assert_int_equal(NUM(testnode_container(n, "a", 0, false), "restartCount"), 0);
	assert_int_equal(
		NUM(testnode_container(n, "a", 0, false), "state", "terminated", "exitCode"), 143);
}

/* Tells whether the pod has failed. Fails the test if an earlier status showed the end of the
 * first container while the second one still ran. */
static bool ends_are_told_together(struct testnode *n, void *name)
{
	const struct hf_json *first = testnode_container(n, name, 0, false);
	const struct hf_json *second = testnode_container(n, name, 1, false);

	assert_false(hf_json_path(first, "state", "terminated", NULL) != NULL &&
		     hf_json_path(second, "state", "running", NULL) != NULL);
	return hf_streq(STR(testnode_status(n, name), "phase"), "Failed");
}

static void a_pod_that_its_kubelet_ends_has_its_ends_told_together(void **state)
{
	struct testnode *n = *state;
	char name[] = "a";

	testnode_pod(
		n, name,
		"'restartPolicy':'Never','containers':"
		"[{'name':'main','command':['tail','-f','/dev/null']},"
		"{'name':'slow','command':['sh','-c','slow() { sleep 1; exit 0; }; trap slow TERM; "
		"while :; do sleep 0.1; done']}]");
	testnode_wait_phase(n, name, "Running");
	patch_deadline(n, name);
	testnode_wait(n, ends_are_told_together, name);
	assert_string_equal(STR(testnode_status(n, name), "reason"), "DeadlineExceeded");
}

/* After the deadline, a container that waits in back-off is not started again. */
static void a_deadline_that_is_added_ends_a_pod_that_crashes(void **state)
{
	struct testnode *n = *state;

	testnode_script(n, "a", "OnFailure", "exit 3");
	testnode_wait_state(n, "a", "waiting", "CrashLoopBackOff");
	patch_deadline(n, "a");
	testnode_wait_phase(n, "a", "Failed");
	assert_string_equal(STR(testnode_status(n, "a"), "reason"), "DeadlineExceeded");
}

static void a_pod_that_a_client_declared_failed_is_stopped_and_stays_failed(void **state)
{
	struct testnode *n = *state;
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = &hf_pods,
				     .ns = "default",
				     .name = "a",
				     .subresource = "status",
				     .patch_type = HF_PATCH_MERGE};
	const char *text = "{\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\"}}";
	HF_AUTO_DOC body = hf_doc_from_text(text, strlen(text));
	HF_AUTO_RESULT result = {0};

	testnode_script(n, "a", "Always", "exec tail -f /dev/null");
	testnode_wait_state(n, "a", "running", NULL);
	request.body = body;
	hf_memstore_apply(n->memstore, &request, &result);
	assert_int_equal(result.code, 0);
	testnode_wait_state(n, "a", "terminated", NULL);
	assert_string_equal(STR(testnode_status(n, "a"), "phase"), "Failed");
	assert_string_equal(STR(testnode_status(n, "a"), "reason"), "Evicted");
}

static void a_signal_reaches_the_container_that_is_named(void **state)
{
	struct testnode *n = *state;
	struct hf_error err;

	testnode_script(n, "a", "Never", "exec tail -f /dev/null");
	assert_code(hf_kubelet_signal(n->kubelet, "default", "b", NULL, SIGKILL, &err),
		    HF_E_NOT_FOUND);
	testnode_wait_state(n, "a", "running", NULL);
	assert_code(hf_kubelet_signal(n->kubelet, "default", "a", "other", SIGKILL, &err),
		    HF_E_NOT_FOUND);
	assert_ok(hf_kubelet_signal(n->kubelet, "default", "a", NULL, SIGKILL, &err), &err);
	testnode_wait_phase(n, "a", "Failed");
	assert_int_equal(
		NUM(testnode_container(n, "a", 0, false), "state", "terminated", "exitCode"), 137);
}

static void too_much_memory_is_reported_as_such(void **state)
{
	struct testnode *n = *state;

	if (!n->facts.cgroups) {
		(void)fprintf(stderr, "# SKIPPED: no control groups for this user\n");
		return;
	}
	testnode_pod(n, "a",
		     "'restartPolicy':'Never','containers':[{'name':'main','command':"
		     "['python3','-c','b = bytearray(400 << 20)'],'resources':{'limits':"
		     "{'memory':'64Mi'}}}]");
	testnode_wait_phase(n, "a", "Failed");
	assert_string_equal(
		STR(testnode_container(n, "a", 0, false), "state", "terminated", "reason"),
		"OOMKilled");
	assert_int_equal(
		NUM(testnode_container(n, "a", 0, false), "state", "terminated", "exitCode"), 137);
}

/* --- the node --- */

static bool lease_is_there(struct testnode *n, void *arg HF_UNUSED)
{
	return hf_memstore_peek(n->memstore, &hf_leases, "kube-node-lease", "local") != NULL;
}

static const char *renew_time(struct testnode *n)
{
	return STR(
		hf_doc_json(hf_memstore_peek(n->memstore, &hf_leases, "kube-node-lease", "local")),
		"spec", "renewTime");
}

static bool lease_is_newer(struct testnode *n, void *arg)
{
	return strcmp(renew_time(n), arg) > 0;
}

static void the_node_is_registered_and_its_lease_follows_every_end(void **state)
{
	struct testnode *n = *state;
	const struct hf_json *node =
		hf_doc_json(hf_memstore_peek(n->memstore, &hf_nodes, NULL, "local"));
	char before[64];
	hf_time began = hf_loop_mono(n->loop);

	assert_string_equal(STR(node, "metadata", "labels", "kubernetes.io/hostname"), "local");
	assert_string_equal(STR(node, "status", "nodeInfo", "operatingSystem"), "linux");
	assert_string_equal(STR(node, "status", "capacity", "pods"), "110");
	assert_non_null(STR(node, "status", "allocatable", "memory"));
	testnode_wait(n, lease_is_there, NULL);
	(void)snprintf(before, sizeof(before), "%s", renew_time(n));
	testnode_script(n, "a", "Never", "exit 0");
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_wait(n, lease_is_newer, before);
	/* The time is far below the interval of the Lease. */
	assert_true(hf_loop_mono(n->loop) - began < 8 * HF_SECOND);
}

static void a_drain_ends_every_pod_and_starts_none(void **state)
{
	struct testnode *n = *state;

	testnode_script(n, "a", "Always", "trap \\\"exit 0\\\" TERM; tail -f /dev/null & wait");
	testnode_script(n, "b", "Always", "exec tail -f /dev/null");
	testnode_wait_state(n, "a", "running", NULL);
	testnode_wait_state(n, "b", "running", NULL);
	testnode_drain(n, 5 * HF_SECOND);
	testnode_script(n, "c", "Always", "exec tail -f /dev/null");
	testnode_wait_drained(n);
	/* A program that ends with 0 because of SIGTERM has not done its work, so the pod is
	 * Failed. */
	testnode_wait_phase(n, "a", "Failed");
	assert_string_equal(STR(testnode_status(n, "a"), "reason"), "Terminated");
	assert_int_equal(
		NUM(testnode_container(n, "a", 0, false), "state", "terminated", "exitCode"), 0);
	testnode_wait_phase(n, "b", "Failed");
	testnode_wait_phase(n, "c", "Failed");
	assert_string_equal(STR(testnode_status(n, "b"), "reason"), "Terminated");
	assert_string_equal(testnode_condition(n, "b", "DisruptionTarget"), "True");
	assert_int_equal(NUM(testnode_container(n, "c", 0, false), "restartCount"), 0);
}

static bool node_is_another(struct testnode *n, void *arg)
{
	const struct hf_json *node =
		hf_doc_json(hf_memstore_peek(n->memstore, &hf_nodes, NULL, "local"));
	const struct hf_json *lease =
		hf_doc_json(hf_memstore_peek(n->memstore, &hf_leases, "kube-node-lease", "local"));
	const char *uid = STR(node, "metadata", "uid");
	const struct hf_json *owner =
		hf_json_item(hf_json_path(lease, "metadata", "ownerReferences", NULL), 0);

	return uid && !hf_streq(uid, arg) && STR(node, "status", "capacity", "pods") &&
	       hf_streq(STR(owner, "uid"), uid);
}

static void a_node_that_a_client_deletes_is_registered_anew(void **state)
{
	struct testnode *n = *state;
	HF_AUTO_RESULT result = {0};
	struct hf_request request = {
		.verb = HF_VERB_DELETE, .resource = &hf_nodes, .name = "local", .grace_seconds = 0};
	char before[64];

	testnode_wait(n, lease_is_there, NULL);
	testnode_script(n, "a", "Always", "exec tail -f /dev/null");
	testnode_wait_phase(n, "a", "Running");
	(void)snprintf(before, sizeof(before), "%s",
		       hf_doc_uid(hf_memstore_peek(n->memstore, &hf_nodes, NULL, "local")));
	hf_memstore_apply(n->memstore, &request, &result);
	assert_int_equal(result.code, 0);
	testnode_wait(n, node_is_another, before);
	assert_non_null(strstr(n->notice, "was deleted; the kubelet registers it again"));
	/* The pods run on. */
	assert_string_equal(STR(testnode_status(n, "a"), "phase"), "Running");
}

struct at_drained {
	struct testnode *n;
	bool done, failed;
};

static void note_phase(void *arg)
{
	struct at_drained *d = arg;

	d->done = true;
	d->failed = hf_streq(STR(testnode_status(d->n, "a"), "phase"), "Failed") &&
		    testnode_condition(d->n, "a", "DisruptionTarget");
}

static bool is_noted(struct testnode *n HF_UNUSED, void *arg)
{
	return ((struct at_drained *)arg)->done;
}

static void a_drain_is_over_when_the_store_knows_how_each_pod_ended(void **state)
{
	struct testnode *n = *state;
	struct at_drained d = {.n = n};

	testnode_script(n, "a", "Never", "trap \\\"exit 1\\\" TERM; tail -f /dev/null & wait");
	testnode_wait_state(n, "a", "running", NULL);
	hf_kubelet_drain(n->kubelet, HF_TIME_NONE, note_phase, &d);
	testnode_wait(n, is_noted, &d);
	assert_true(d.failed);
}

static void what_ended_by_itself_before_a_drain_stays_its_own_fault(void **state)
{
	struct testnode *n = *state;

	testnode_script(n, "a", "Never", "exit 3");
	testnode_script(n, "b", "Never", "exit 0");
	testnode_wait_phase(n, "a", "Failed");
	testnode_wait_phase(n, "b", "Succeeded");
	testnode_drain(n, HF_TIME_NONE);
	testnode_wait_drained(n);
	assert_null(STR(testnode_status(n, "a"), "reason"));
	assert_null(testnode_condition(n, "a", "DisruptionTarget"));
	assert_string_equal(STR(testnode_status(n, "b"), "phase"), "Succeeded");
}

static void a_pod_may_share_the_machines_network(void **state)
{
	struct testnode *n = *state;

	testnode_pod(n, "a",
		     "'restartPolicy':'Never','hostNetwork':true,'containers':[{'name':"
		     "'main','command':['sh','-c','readlink /proc/self/ns/net']}]");
	testnode_wait_phase(n, "a", "Succeeded");
	{
		char own[64];
		ssize_t len = readlink("/proc/self/ns/net", own, sizeof(own) - 2);
		struct hf_log_options o = {.tail_lines = -1};
		struct testlog log;

		assert_true(len > 0);
		own[len] = '\n';
		own[len + 1] = '\0';
		testnode_logs(n, "a", o, &log);
		assert_string_equal(log.text.data, own);
		testlog_release(&log);
	}
}

/* Prints an address for each argument. */
static const char resolve_script[] = "import socket, sys\n"
				     "for name in sys.argv[1:]:\n"
				     "    print(socket.getaddrinfo(name, 1)[0][4][0])\n";

static void pods_on_the_machines_network_find_each_other_by_name(void **state)
{
	struct testnode *n = *state;

	testnode_file(n, "resolve.py", resolve_script);
	testnode_create(n, &hf_services,
			"{'apiVersion':'v1','kind':'Service','metadata':{'name':'job-master-0'},"
			"'spec':{'clusterIP':'None','selector':{'app':'job-master-0'}}}");
	testnode_pod(n, "job-worker-0",
		     "'restartPolicy':'Never','hostNetwork':true,'initContainers':[{'name':"
		     "'init-pytorch','command':['sh','-c','%s']}],'containers':[{'name':'main',"
		     "'ports':[{'containerPort':23456}],'command':['python3','%s/resolve.py',"
		     "'job-master-0','m.sub']}]",
		     init_loop, n->dir);
	testnode_wait(n, init_runs, NULL);
	testnode_pod(n, "job-master-0",
		     "'hostNetwork':true,'hostname':'m','subdomain':'sub','containers':[{'name':"
		     "'main','ports':[{'containerPort':23456}],'command':['tail','-f',"
		     "'/dev/null']}]");
	testnode_wait_phase(n, "job-worker-0", "Succeeded");
	testnode_assert_output(n, "job-worker-0", "127.0.0.1\n127.0.0.1\n");
	/* Both pods want the same port of the machine. The pod that starts later gets the
	 * Event. */
	assert_int_equal(testnode_events(n, "job-master-0", "HostPortShared"), 1);
	assert_int_equal(testnode_events(n, "job-worker-0", "HostPortShared"), 0);
}

/* --- other networks --- */

struct visitor {
	int listener;
	bool came;
};

static bool visited(struct testnode *n, void *arg)
{
	struct visitor *v = arg;
	HF_AUTO_FD fd = accept4(v->listener, NULL, NULL, SOCK_CLOEXEC);

	v->came = v->came || (fd >= 0 && write(fd, "outside", 7) == 7);
	return v->came;
}

/* Finds an address of this machine outside of 127.0.0.0/8. Returns false if the machine has none. */
static bool own_address(struct in_addr *ret_address)
{
	struct ifaddrs *all = NULL;
	bool found = false;

	assert_int_equal(getifaddrs(&all), 0);
	for (const struct ifaddrs *a = all; a && !found; a = a->ifa_next) {
		struct sockaddr_in in;

		if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET)
			continue;
		memcpy(&in, a->ifa_addr, sizeof(in));
		found = ntohl(in.sin_addr.s_addr) >> 24 != 127;
		*ret_address = in.sin_addr;
	}
	freeifaddrs(all);
	return found;
}

static void a_pod_reaches_other_networks_where_there_is_a_way_out(void **state)
{
	struct testnode *n = *state;
	struct visitor v = {.listener =
				    socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);
	char text[INET_ADDRSTRLEN];

	if (!n->facts.uplink || !own_address(&at.sin_addr)) {
		(void)fprintf(stderr, "# SKIPPED: %s\n", n->notice);
		(void)close(v.listener);
		return;
	}
	assert_int_equal(bind(v.listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(v.listener, 1), 0);
	assert_int_equal(getsockname(v.listener, (struct sockaddr *)&at, &len), 0);
	assert_non_null(inet_ntop(AF_INET, &at.sin_addr, text, sizeof(text)));
	testnode_file(n, "ask.py",
		      "import socket, sys\n"
		      "print(socket.create_connection((sys.argv[1], int(sys.argv[2]))).recv(9))\n");
	testnode_pod(n, "a",
		     "'restartPolicy':'Never','containers':[{'name':'main','command':['python3',"
		     "'%s/ask.py','%s','%d']}]",
		     n->dir, text, ntohs(at.sin_port));
	testnode_wait(n, visited, &v);
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_assert_output(n, "a", "b'outside'\n");
	(void)close(v.listener);
}

static void a_pod_with_a_network_finds_pods_on_the_machines(void **state)
{
	struct testnode *n = *state;
	struct in_addr address;
	/* a different port for each process, because tests of several build folders may run at
	 * once */
	int port = 20000 + getpid() % 10000;

	if (!n->facts.uplink || !own_address(&address)) {
		(void)fprintf(stderr, "# SKIPPED: %s\n", n->notice);
		return;
	}
	testnode_file(
		n, "ask.py",
		"import socket, sys\n"
		"print(socket.create_connection(('server', int(sys.argv[1])), timeout=20).recv(9))\n");
	testnode_file(n, "serve.py",
		      "import socket, sys\n"
		      "s = socket.create_server(('', int(sys.argv[1])))\n"
		      "open('serves', 'w')\n"
		      "s.accept()[0].sendall(b'hello')\n");
	testnode_create(n, &hf_services,
			"{'apiVersion':'v1','kind':'Service','metadata':{'name':'server'},"
			"'spec':{'clusterIP':'None','selector':{'app':'server'}}}");
	testnode_pod(n, "server",
		     "'restartPolicy':'Never','hostNetwork':true,'containers':[{'name':'main',"
		     "'workingDir':'%s','command':['python3','serve.py','%d']}]",
		     n->dir, port);
	testnode_wait_file(n, "serves");
	testnode_pod(n, "client",
		     "'restartPolicy':'Never','containers':[{'name':'main','command':['python3',"
		     "'%s/ask.py','%d']}]",
		     n->dir, port);
	testnode_wait_phase(n, "client", "Succeeded");
	testnode_assert_output(n, "client", "b'hello'\n");
}

/* A DNS server for the tests: it answers one name with an A record, on a loopback address of the
 * machine, as systemd-resolved does. */
static const char name_server[] =
	"import socket\n"
	"s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
	"s.bind(('127.0.0.77', 53))\n"
	"open('serves', 'w')\n"
	"while True:\n"
	"    q, at = s.recvfrom(512)\n"
	"    end = q.index(0, 12) + 5\n"
	"    good = q[12:end - 4] == b'\\x04data\\x04test\\0' and q[end - 3] == 1\n"
	"    answer = b'\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\5\\0\\4\\xc6\\x33\\x64\\7' if good else b''\n"
	"    head = b'\\x81\\x80\\0\\1\\0' + bytes([good]) + b'\\0\\0\\0\\0'\n"
	"    s.sendto(q[:2] + head + q[12:end] + answer, at)\n";

static void a_pod_resolves_names_of_other_networks(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *before = hf_xstrdup(getenv("PATH"));
	HF_AUTOFREE char *path = hf_xasprintf("%s:%s", n->dir, before);
	HF_AUTOFREE char *program = hf_xasprintf("%s/slirp4netns", n->dir);
	HF_AUTOFREE char *text = hf_xasprintf(
		"#!/bin/sh\nPATH=%s\nexport PATH\nprogram=$(command -v slirp4netns)\n"
		"exec unshare -m sh -c 'mount --bind %s/resolv.conf /etc/resolv.conf && "
		"exec \"$@\"' sh \"$program\" \"$@\"\n",
		before, n->dir);

	if (!n->facts.uplink || geteuid() != 0) {
		(void)fprintf(stderr, "# SKIPPED: needs root. %s\n", n->notice);
		return;
	}
	testnode_stop(n);
	testnode_file(n, "resolv.conf", "nameserver 127.0.0.77\n");
	testnode_file(n, "server.py", name_server);
	testnode_file(n, "slirp4netns", text);
	assert_int_equal(chmod(program, 0755), 0);
	assert_int_equal(setenv("PATH", path, 1), 0);
	testnode_start(n);
	assert_int_equal(setenv("PATH", before, 1), 0);
	testnode_pod(n, "server",
		     "'hostNetwork':true,'containers':[{'name':'main','workingDir':'%s','command':["
		     "'python3','server.py']}]",
		     n->dir);
	testnode_wait_file(n, "serves");
	testnode_script(n, "a", "Never",
			"getent ahostsv4 data.test | head -1 | cut -c1-12; "
			"getent hosts other.test || echo unknown");
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_assert_output(n, "a", "198.51.100.7\nunknown\n");
}

static void a_way_out_that_does_not_work_is_said_and_does_without(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *before = hf_xstrdup(getenv("PATH"));
	HF_AUTOFREE char *path = hf_xasprintf("%s:%s", n->dir, before);
	HF_AUTOFREE char *program = hf_xasprintf("%s/slirp4netns", n->dir);

	testnode_stop(n);
	testnode_file(n, "slirp4netns", "#!/bin/sh\nexit 1\n");
	assert_int_equal(chmod(program, 0755), 0);
	assert_int_equal(setenv("PATH", path, 1), 0);
	testnode_start(n);
	assert_int_equal(setenv("PATH", before, 1), 0);
	assert_false(n->facts.uplink);
	assert_int_equal(n->facts.pod_network, n->facts.uplink_why[0] != '\0');
	/* A pod on the machine's network needs no warning. */
	testnode_pod(n, "host",
		     "'restartPolicy':'Never','hostNetwork':true,'containers':[{'name':'main',"
		     "'command':['true']}]");
	testnode_wait_phase(n, "host", "Succeeded");
	if (n->facts.pod_network)
		assert_null(strstr(n->notice, "no other network"));
	/* Without a way to other networks, lookups fail at once. */
	testnode_script(n, "a", "Never", "getent hosts example.invalid || echo unknown");
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_assert_output(n, "a", "unknown\n");
	if (n->facts.pod_network)
		assert_true(
			hf_str_has_prefix(n->notice, "pods reach each other but no other network"));
}

/* --- pods on the machine's network --- */

static void without_namespaces_a_pod_has_an_address_and_finds_others_by_name(void **state)
{
	struct testnode *n = *state;

	assert_false(n->facts.pod_network);
	testnode_file(n, "ask.py",
		      "import socket, time\n"
		      "while True:\n"
		      "    try: print(socket.gethostbyname('web') if 0 else\n"
		      "               socket.getaddrinfo('web', 80)[0][4][0]); break\n"
		      "    except socket.gaierror: time.sleep(0.05)\n");
	testnode_create(n, &hf_services,
			"{'apiVersion':'v1','kind':'Service','metadata':{'name':'web'},"
			"'spec':{'clusterIP':'None','selector':{'app':'server'}}}");
	testnode_script(n, "server", "Always", "exec tail -f /dev/null");
	testnode_wait_phase(n, "server", "Running");
	assert_true(hf_str_has_prefix(STR(testnode_status(n, "server"), "podIP"), "127.0.1."));
	testnode_pod(n, "client",
		     "'restartPolicy':'Never','containers':[{'name':'main','command':"
		     "['python3','%s/ask.py']}]",
		     n->dir);
	testnode_wait_phase(n, "client", "Succeeded");
	{
		HF_AUTOFREE char *expected =
			hf_xasprintf("%s\n", STR(testnode_status(n, "server"), "podIP"));

		testnode_assert_output(n, "client", expected);
	}
}

int main(int argc, char **argv)
{
#define T(name) TESTNODE_TEST(name, memory)
#define H(name) TESTNODE_HOST_TEST(name, memory)
	const struct CMUnitTest tests[] = {
		T(a_pod_runs_to_its_end_and_its_status_tells_how),
		T(a_pod_that_fails_says_with_what),
		T(a_pod_that_runs_is_ready),
		T(a_container_that_fails_is_restarted_at_once_and_then_waits),
		T(on_failure_a_good_end_is_the_end),
		T(init_containers_run_one_after_the_other_before_the_rest),
		T(a_sidecar_runs_beside_the_program_and_ends_with_it),
		T(a_worker_finds_its_master_by_name_once_that_runs),
		T(a_deleted_pod_gets_sigterm_and_time_to_end),
		T(a_pod_that_ignores_sigterm_is_killed_when_its_grace_is_over),
		T(a_pod_that_waits_for_its_end_is_looked_at_now_and_then),
		T(a_pod_deleted_with_force_is_killed_and_leaves_nothing),
		T(a_pod_past_its_deadline_fails),
		T(a_deadline_that_is_added_ends_a_running_pod_for_good),
		T(a_deadline_that_is_added_ends_a_pod_that_crashes),
		T(a_pod_that_its_kubelet_ends_has_its_ends_told_together),
		T(a_pod_that_a_client_declared_failed_is_stopped_and_stays_failed),
		T(a_signal_reaches_the_container_that_is_named),
		T(too_much_memory_is_reported_as_such),
		T(the_node_is_registered_and_its_lease_follows_every_end),
		T(a_node_that_a_client_deletes_is_registered_anew),
		T(a_drain_ends_every_pod_and_starts_none),
		T(a_drain_is_over_when_the_store_knows_how_each_pod_ended),
		T(what_ended_by_itself_before_a_drain_stays_its_own_fault),
		T(a_pod_may_share_the_machines_network),
		T(pods_on_the_machines_network_find_each_other_by_name),
		T(a_pod_reaches_other_networks_where_there_is_a_way_out),
		T(a_pod_with_a_network_finds_pods_on_the_machines),
		T(a_pod_resolves_names_of_other_networks),
		T(a_way_out_that_does_not_work_is_said_and_does_without),
		H(a_pod_runs_to_its_end_and_its_status_tells_how),
		H(a_deleted_pod_gets_sigterm_and_time_to_end),
		H(a_drain_ends_every_pod_and_starts_none),
		H(pods_on_the_machines_network_find_each_other_by_name),
		H(without_namespaces_a_pod_has_an_address_and_finds_others_by_name),
	};
	int rc = hf_shim_helper_main(argc, argv);

	return rc >= 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
