/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/node.h"

#include "base/mem.h"
#include "kubelet/runtime/shim.h"

#include <stdio.h>
#include <unistd.h>

/* Tests probes and hooks on real pods. */

#define NUM(json, ...) hf_json_i64(hf_json_path((json), __VA_ARGS__, NULL), -1)

static bool is_true(const struct hf_json *container, const char *key)
{
	return hf_json_true(hf_json_get(container, key), false);
}

static bool is_ready(struct testnode *n, void *arg)
{
	return is_true(testnode_container(n, "a", 0, false), "ready") == *(const bool *)arg;
}

static void wait_ready(struct testnode *n, bool ready)
{
	testnode_wait(n, is_ready, &ready);
}

static void a_readiness_probe_decides_whether_the_pod_is_ready(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *path = hf_xasprintf("%s/healthy", n->dir);

	testnode_pod(n, "a",
		     "'containers':[{'name':'main','command':['tail','-f','/dev/null'],"
		     "'readinessProbe':{'exec':{'command':['cat','%s']},'periodSeconds':1,"
		     "'failureThreshold':1}}]",
		     path);
	testnode_wait_state(n, "a", "running", NULL);
	assert_false(is_true(testnode_container(n, "a", 0, false), "ready"));
	assert_true(is_true(testnode_container(n, "a", 0, false), "started"));
	assert_string_equal(testnode_condition(n, "a", "Ready"), "False");
	testnode_file(n, "healthy", "");
	wait_ready(n, true);
	assert_string_equal(testnode_condition(n, "a", "Ready"), "True");
	assert_int_equal(unlink(path), 0);
	wait_ready(n, false);
	assert_true(testnode_events(n, "a", "Unhealthy") > 0);
	assert_int_equal(NUM(testnode_container(n, "a", 0, false), "restartCount"), 0);
}

static bool has_restarted(struct testnode *n, void *arg HF_UNUSED)
{
	return NUM(testnode_container(n, "a", 0, false), "restartCount") > 0;
}

static void a_failed_liveness_probe_restarts_the_container(void **state)
{
	struct testnode *n = *state;

	testnode_pod(n, "a",
		     "'containers':[{'name':'main','workingDir':'%s','command':['sh','-c',"
		     "'touch alive; exec tail -f /dev/null'],'livenessProbe':{'exec':{'command':["
		     "'cat','alive']},'periodSeconds':1,'failureThreshold':2}}]",
		     n->dir);
	testnode_wait_state(n, "a", "running", NULL);
	wait_ready(n, true);
	{
		HF_AUTOFREE char *path = hf_xasprintf("%s/alive", n->dir);

		testnode_wait_file(n, "alive");
		assert_int_equal(unlink(path), 0);
	}
	testnode_wait(n, has_restarted, NULL);
	assert_int_equal(
		NUM(testnode_container(n, "a", 0, false), "lastState", "terminated", "exitCode"),
		143);
	assert_int_equal(testnode_events(n, "a", "Killing"), 1);
}

/* The liveness probe would fail at once, but it does not run before the startup probe has
 * succeeded. */
static void other_probes_wait_for_the_startup_probe(void **state)
{
	struct testnode *n = *state;

	testnode_pod(
		n, "a",
		"'containers':[{'name':'main','workingDir':'%s','command':['sh','-c','sleep 2; "
		"touch up; exec tail -f /dev/null'],'startupProbe':{'exec':{'command':['cat',"
		"'up']},'periodSeconds':1,'failureThreshold':60},'livenessProbe':{'exec':{"
		"'command':['cat','up']},'periodSeconds':1,'failureThreshold':1}}]",
		n->dir);
	testnode_wait_state(n, "a", "running", NULL);
	assert_false(is_true(testnode_container(n, "a", 0, false), "started"));
	wait_ready(n, true);
	assert_true(is_true(testnode_container(n, "a", 0, false), "started"));
	assert_int_equal(NUM(testnode_container(n, "a", 0, false), "restartCount"), 0);
	assert_int_equal(testnode_events(n, "a", "Killing"), 0);
}

/* A server that answers 200 for /good and 500 for other paths. The pod gives its port a name. */
static const char server[] =
	"import http.server\n"
	"class H(http.server.BaseHTTPRequestHandler):\n"
	"    def do_GET(self):\n"
	"        good = self.path == '/good' and self.headers['X-Probe'] == 'yes'\n"
	"        self.send_response(200 if good else 500)\n"
	"        self.end_headers()\n"
	"http.server.HTTPServer(('', 8123), H).serve_forever()\n";

static void probes_over_the_network_reach_the_pod(void **state)
{
	struct testnode *n = *state;

	if (!n->facts.pod_network) {
		(void)fprintf(stderr, "# SKIPPED: this machine refuses namespaces\n");
		return;
	}
	testnode_file(n, "server.py", server);
	testnode_pod(n, "a",
		     "'containers':[{'name':'main','command':['python3','%s/server.py'],'ports':[{"
		     "'name':'web','containerPort':8123}],'startupProbe':{'tcpSocket':{'port':8123"
		     "},'periodSeconds':1,'failureThreshold':60},'readinessProbe':{'httpGet':{"
		     "'port':'web','path':'/good','httpHeaders':[{'name':'X-Probe','value':'yes'}"
		     "]},'periodSeconds':1}}]",
		     n->dir);
	wait_ready(n, true);
	testnode_pod(n, "b",
		     "'restartPolicy':'Never','containers':[{'name':'main','command':['python3',"
		     "'%s/server.py'],'startupProbe':{'tcpSocket':{'port':8123},'periodSeconds':1,"
		     "'failureThreshold':60},'livenessProbe':{'httpGet':{'port':8123,'path':"
		     "'/bad'},'periodSeconds':1,'failureThreshold':1}}]",
		     n->dir);
	testnode_wait_phase(n, "b", "Failed");
	assert_true(testnode_events(n, "b", "Unhealthy") > 0);
}

static void a_probe_past_its_time_is_a_failure(void **state)
{
	struct testnode *n = *state;

	testnode_pod(n, "a",
		     "'restartPolicy':'Never','containers':[{'name':'main','command':['tail','-f',"
		     "'/dev/null'],'livenessProbe':{'exec':{'command':['sleep','1000']},"
		     "'timeoutSeconds':1,'failureThreshold':1}}]");
	testnode_wait_phase(n, "a", "Failed");
	assert_int_equal(testnode_events(n, "a", "Unhealthy"), 1);
}

static void hooks_run_after_the_start_and_before_the_end(void **state)
{
	struct testnode *n = *state;

	testnode_file(n, "main.sh",
		      "trap 'echo term >> order; exit 0' TERM\n"
		      "while :; do sleep 0.05; done\n");
	testnode_pod(n, "a",
		     "'terminationGracePeriodSeconds':60,'containers':[{'name':'main','workingDir':"
		     "'%s','command':['sh','main.sh'],'lifecycle':{'postStart':{'exec':{'command':["
		     "'sh','-c','echo post >> order']}},'preStop':{'exec':{'command':['sh','-c',"
		     "'sleep 0.3; echo pre >> order']}}}}]",
		     n->dir);
	testnode_wait_file(n, "order");
	wait_ready(n, true);
	testnode_delete(n, "a", HF_GRACE_DEFAULT);
	testnode_wait_gone(n, "a");
	testnode_assert_file(n, "order", "post\npre\nterm\n");
}

static void a_drain_runs_pre_stop_hooks(void **state)
{
	struct testnode *n = *state;

	testnode_pod(n, "a",
		     "'containers':[{'name':'main','workingDir':'%s','command':['tail','-f',"
		     "'/dev/null'],'lifecycle':{'preStop':{'exec':{'command':['touch','pre']}}}}]",
		     n->dir);
	testnode_wait_state(n, "a", "running", NULL);
	testnode_drain(n, 30 * HF_SECOND);
	testnode_wait_drained(n);
	testnode_assert_file(n, "pre", "");
}

static void a_failed_post_start_hook_stops_the_container(void **state)
{
	struct testnode *n = *state;

	testnode_pod(n, "a",
		     "'restartPolicy':'Never','containers':[{'name':'main','command':['tail','-f',"
		     "'/dev/null'],'lifecycle':{'postStart':{'exec':{'command':['false']}}}}]");
	testnode_wait_phase(n, "a", "Failed");
	assert_int_equal(testnode_events(n, "a", "FailedPostStartHook"), 1);
	assert_int_equal(
		NUM(testnode_container(n, "a", 0, false), "state", "terminated", "exitCode"), 143);
}

/* A later kubelet takes over the results of the probes, and does not repeat the postStart hook. */
static void verdicts_outlive_the_kubelet(void **state)
{
	struct testnode *n = *state;

	testnode_pod(n, "a",
		     "'containers':[{'name':'main','workingDir':'%s','command':['tail','-f',"
		     "'/dev/null'],'lifecycle':{'postStart':{'exec':{'command':['sh','-c','echo "
		     "post >> order']}}},'startupProbe':{'exec':{'command':['true']}},"
		     "'readinessProbe':{'exec':{'command':['true']}}}]",
		     n->dir);
	wait_ready(n, true);
	testnode_stop(n);
	testnode_start(n);
	wait_ready(n, true);
	assert_true(is_true(testnode_container(n, "a", 0, false), "started"));
	testnode_assert_file(n, "order", "post\n");
}

int main(int argc, char **argv)
{
#define T(name) TESTNODE_TEST(name, memory)
#define H(name) TESTNODE_HOST_TEST(name, memory)
	const struct CMUnitTest tests[] = {
		T(a_readiness_probe_decides_whether_the_pod_is_ready),
		T(a_failed_liveness_probe_restarts_the_container),
		T(other_probes_wait_for_the_startup_probe),
		T(probes_over_the_network_reach_the_pod),
		T(a_probe_past_its_time_is_a_failure),
		T(hooks_run_after_the_start_and_before_the_end),
		T(a_drain_runs_pre_stop_hooks),
		T(a_failed_post_start_hook_stops_the_container),
		T(verdicts_outlive_the_kubelet),
		H(a_readiness_probe_decides_whether_the_pod_is_ready),
		H(hooks_run_after_the_start_and_before_the_end),
	};
	int rc = hf_shim_helper_main(argc, argv);

	return rc >= 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
