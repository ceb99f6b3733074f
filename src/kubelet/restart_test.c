/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/node.h"
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/runtime/shim.h"
#include "loop/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tests what survives when the kubelet is destroyed, or its program is killed, and a new one
 * starts. */

#define STR(json, ...) hf_json_path_str((json), __VA_ARGS__, NULL)
#define NUM(json, ...) hf_json_i64(hf_json_path((json), __VA_ARGS__, NULL), -1)

static void make_fifo(struct testnode *n, const char *name)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", n->dir, name);

	assert_int_equal(mkfifo(path, 0600), 0);
}

/* Writes a line to a FIFO; a script of the test waits for the line. */
static void let_go(struct testnode *n, const char *name)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", n->dir, name);
	HF_AUTO_FD fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(write(fd, "go\n", 3), 3);
}

static struct hf_process_id shim_of(struct testnode *n, const char *pod)
{
	const char *uid = STR(testnode_get(n, pod), "metadata", "uid");
	const struct hf_kubelet_pod *p = hf_map_get(n->kubelet->pods, uid);

	assert_non_null(p);
	return p->past.shim;
}

static bool shim_is_dead(struct testnode *n HF_UNUSED, void *arg)
{
	return !hf_process_id_alive(arg);
}

static void an_exit_code_is_known_though_no_kubelet_ran(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *script = hf_xasprintf(
		"echo once >> %s/count; read x < %s/go; echo bye; exit 42", n->dir, n->dir);
	char started[64];
	struct hf_process_id shim;

	make_fifo(n, "go");
	testnode_script(n, "a", "Never", script);
	testnode_wait_state(n, "a", "running", NULL);
	(void)snprintf(started, sizeof(started), "%s",
		       STR(testnode_container(n, "a", 0, false), "state", "running", "startedAt"));
	shim = shim_of(n, "a");
	testnode_stop(n);
	let_go(n, "go");
	/* The shim lives until a kubelet has read how the container ended. */
	assert_true(hf_process_id_alive(&shim));
	testnode_start(n);
	testnode_wait_phase(n, "a", "Failed");
	assert_int_equal(
		NUM(testnode_container(n, "a", 0, false), "state", "terminated", "exitCode"), 42);
	assert_string_equal(
		STR(testnode_container(n, "a", 0, false), "state", "terminated", "startedAt"),
		started);
	assert_int_equal(NUM(testnode_container(n, "a", 0, false), "restartCount"), 0);
	testnode_assert_file(n, "count", "once\n");
	testnode_assert_output(n, "a", "bye\n");
}

static void a_pod_that_runs_on_is_found_again_and_obeys(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *script =
		hf_xasprintf("echo once >> %s/count; exec tail -f /dev/null", n->dir);
	struct hf_process_id before, after;

	testnode_script(n, "a", "Always", script);
	testnode_wait_state(n, "a", "running", NULL);
	testnode_wait_file(n, "count");
	before = shim_of(n, "a");
	testnode_stop(n);
	testnode_start(n);
	after = shim_of(n, "a");
	assert_int_equal(before.pid, after.pid);
	testnode_assert_file(n, "count", "once\n");
	assert_int_equal(testnode_events(n, "a", "Started"), 1);
	testnode_delete(n, "a", 1);
	testnode_wait_gone(n, "a");
	testnode_wait(n, shim_is_dead, &before);
}

static void a_pod_whose_shim_died_meanwhile_is_lost_and_not_run_again(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *script =
		hf_xasprintf("echo once >> %s/count; exec tail -f /dev/null", n->dir);
	struct hf_process_id shim;
	const struct hf_json *t;

	testnode_script(n, "a", "Always", script);
	testnode_wait_state(n, "a", "running", NULL);
	testnode_wait_file(n, "count");
	shim = shim_of(n, "a");
	testnode_stop(n);
	assert_int_equal(kill(shim.pid, SIGKILL), 0);
	testnode_start(n);
	testnode_wait_phase(n, "a", "Failed");
	assert_string_equal(STR(testnode_status(n, "a"), "reason"), "Lost");
	assert_string_equal(testnode_condition(n, "a", "DisruptionTarget"), "True");
	t = hf_json_path(testnode_container(n, "a", 0, false), "state", "terminated", NULL);
	assert_int_equal(NUM(t, "exitCode"), 137);
	assert_string_equal(STR(t, "reason"), "ContainerStatusUnknown");
	testnode_assert_file(n, "count", "once\n");
}

static void a_pod_whose_shim_dies_is_lost_at_once(void **state)
{
	struct testnode *n = *state;
	struct hf_process_id shim;

	testnode_script(n, "a", "OnFailure", "exec tail -f /dev/null");
	testnode_wait_state(n, "a", "running", NULL);
	shim = shim_of(n, "a");
	assert_int_equal(kill(shim.pid, SIGKILL), 0);
	testnode_wait_phase(n, "a", "Failed");
	assert_string_equal(STR(testnode_status(n, "a"), "reason"), "Lost");
	/* A lost pod can be deleted like any other pod. */
	testnode_delete(n, "a", HF_GRACE_DEFAULT);
	testnode_wait_gone(n, "a");
}

static bool at_end(struct testnode *n HF_UNUSED, void *arg)
{
	char byte;

	return read(*(int *)arg, &byte, 1) == 0;
}

static void no_descendant_runs_on_when_its_shim_dies(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *fifo = hf_xasprintf("%s/alive", n->dir);
	/* The script starts a process outside of the container's session. The process ignores
	 * SIGTERM and SIGHUP, and keeps the FIFO open. */
	HF_AUTOFREE char *script = hf_xasprintf(
		"exec 3>%s; setsid sh -c \\\"trap : TERM HUP; tail -f /dev/null; :\\\" & touch %s/up; "
		"wait",
		fifo, n->dir);
	HF_AUTO_FD fd = -1;
	struct hf_process_id shim;

	make_fifo(n, "alive");
	fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	testnode_script(n, "a", "Never", script);
	testnode_wait_file(n, "up");
	shim = shim_of(n, "a");
	assert_int_equal(kill(shim.pid, SIGKILL), 0);
	testnode_wait_phase(n, "a", "Failed");
	testnode_wait(n, at_end, &fd);
}

static void a_pod_of_another_boot_is_lost(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *path = NULL;
	HF_AUTO_STRBUF journal = HF_STRBUF_INIT((size_t)1 << 20);
	struct hf_journal_record r = {.type = HF_JOURNAL_SHIM,
				      .shim = {.pid = 1,
					       .start_ticks = 1,
					       .boot_id = "00000000-0000-0000-0000-000000000000"}};
	struct hf_process_id shim;
	struct hf_error err;

	testnode_script(n, "a", "Always", "exec tail -f /dev/null");
	testnode_wait_state(n, "a", "running", NULL);
	path = hf_xasprintf("%s/node/pods/%s/journal", n->dir,
			    STR(testnode_get(n, "a"), "metadata", "uid"));
	shim = shim_of(n, "a");
	testnode_stop(n);
	assert_int_equal(kill(shim.pid, SIGKILL), 0);
	testnode_wait(n, shim_is_dead, &shim);
	hf_journal_format(&r, 1, &journal);
	r = (struct hf_journal_record){.type = HF_JOURNAL_BEGIN, .container = "main"};
	hf_journal_format(&r, 2, &journal);
	assert_ok(hf_fs_write_atomic(path, journal.data, journal.len, 0600, &err), &err);
	testnode_start(n);
	testnode_wait_phase(n, "a", "Failed");
	assert_string_equal(STR(testnode_status(n, "a"), "message"),
			    "the machine was restarted while the pod ran");
}

static void a_damaged_journal_loses_the_pod_and_says_so(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *path = NULL;
	struct hf_process_id shim;
	struct hf_error err;

	testnode_script(n, "a", "Always", "exec tail -f /dev/null");
	testnode_wait_state(n, "a", "running", NULL);
	path = hf_xasprintf("%s/node/pods/%s/journal", n->dir,
			    STR(testnode_get(n, "a"), "metadata", "uid"));
	shim = shim_of(n, "a");
	testnode_stop(n);
	assert_int_equal(kill(shim.pid, SIGKILL), 0);
	testnode_wait(n, shim_is_dead, &shim);
	assert_ok(hf_fs_write_atomic(path, "garbage\nmore\n", 13, 0600, &err), &err);
	testnode_start(n);
	testnode_wait_phase(n, "a", "Failed");
	assert_string_equal(STR(testnode_status(n, "a"), "message"),
			    "the journal of the pod's shim is damaged");
}

static void a_pod_whose_folder_is_gone_is_lost_and_not_run_again(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *path = NULL;
	struct hf_process_id shim;
	struct hf_error err;

	testnode_script(n, "a", "Always", "exec tail -f /dev/null");
	testnode_wait_phase(n, "a", "Running");
	path = hf_xasprintf("%s/node/pods/%s", n->dir,
			    STR(testnode_get(n, "a"), "metadata", "uid"));
	shim = shim_of(n, "a");
	testnode_stop(n);
	assert_int_equal(kill(shim.pid, SIGKILL), 0);
	testnode_wait(n, shim_is_dead, &shim);
	assert_ok(hf_fs_remove_tree(path, &err), &err);
	testnode_start(n);
	testnode_wait_phase(n, "a", "Failed");
	assert_string_equal(STR(testnode_status(n, "a"), "reason"), "Lost");
}

static bool no_pods(struct testnode *n, void *arg HF_UNUSED)
{
	return hf_map_len(n->kubelet->pods) == 0;
}

static void a_pod_deleted_while_no_kubelet_ran_is_ended(void **state)
{
	struct testnode *n = *state;
	struct hf_process_id shim;

	testnode_script(n, "a", "Always", "exec tail -f /dev/null");
	testnode_wait_state(n, "a", "running", NULL);
	shim = shim_of(n, "a");
	n->kubelet = hf_kubelet_destroy(n->kubelet);
	testnode_delete(n, "a", 0);
	assert_null(testnode_get(n, "a"));
	testnode_start(n);
	testnode_wait(n, no_pods, NULL);
	testnode_wait(n, shim_is_dead, &shim);
}

/* If sync_pod scheduled itself at each run, the new kubelet would never handle the shim's answer. */
static void a_pod_that_was_being_ended_is_ended_by_the_next_kubelet(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *script = hf_xasprintf("trap \\\"\\\" TERM; touch %s/up; "
						"while :; do tail -f /dev/null; done",
						n->dir);
	struct hf_process_id shim;

	testnode_script(n, "a", "Always", script);
	testnode_wait_file(n, "up");
	testnode_wait_state(n, "a", "running", NULL);
	shim = shim_of(n, "a");
	testnode_delete(n, "a", 2);
	testnode_stop(n);
	testnode_start(n);
	testnode_wait_gone(n, "a");
	testnode_wait(n, shim_is_dead, &shim);
}

static void pods_from_before_and_after_share_one_network(void **state)
{
	struct testnode *n = *state;
	bool uplink;

	if (!n->facts.pod_network) {
		(void)fprintf(stderr, "# SKIPPED: this machine refuses namespaces\n");
		return;
	}
	testnode_file(n, "server.py",
		      "import socket\n"
		      "s = socket.create_server(('', 4711))\n"
		      "s.accept()[0].sendall(b'hi')\n");
	testnode_file(
		n, "client.py",
		"import socket\n"
		"while True:\n"
		"    try: print(socket.create_connection(('web', 4711)).recv(9).decode()); break\n"
		"    except OSError: pass\n");
	testnode_create(n, &hf_services,
			"{'apiVersion':'v1','kind':'Service','metadata':{'name':'web'},"
			"'spec':{'clusterIP':'None','selector':{'app':'server'}}}");
	testnode_pod(n, "server",
		     "'restartPolicy':'Never','containers':[{'name':'main',"
		     "'command':['python3','%s/server.py']}]",
		     n->dir);
	testnode_wait_state(n, "server", "running", NULL);
	uplink = n->facts.uplink;
	testnode_stop(n);
	testnode_start(n);
	assert_int_equal(n->facts.uplink, uplink);
	testnode_pod(n, "client",
		     "'restartPolicy':'Never','containers':[{'name':'main',"
		     "'command':['python3','%s/client.py']}]",
		     n->dir);
	testnode_wait_phase(n, "client", "Succeeded");
	testnode_wait_phase(n, "server", "Succeeded");
}

static void back_off_goes_on_where_it_was(void **state)
{
	struct testnode *n = *state;

	testnode_script(n, "a", "OnFailure", "exit 1");
	testnode_wait_state(n, "a", "waiting", "CrashLoopBackOff");
	testnode_stop(n);
	testnode_start(n);
	testnode_wait_state(n, "a", "waiting", "CrashLoopBackOff");
	assert_int_equal(NUM(testnode_container(n, "a", 0, false), "restartCount"), 1);
}

static void what_has_ended_is_not_said_in_other_words_later(void **state)
{
	struct testnode *n = *state;
	char before[64];

	testnode_script(n, "a", "Never", "exit 1");
	testnode_wait_phase(n, "a", "Failed");
	testnode_stop(n);
	testnode_start(n);
	(void)snprintf(before, sizeof(before), "%s",
		       STR(testnode_get(n, "a"), "metadata", "resourceVersion"));
	testnode_script(n, "b", "Never", "exit 0");
	testnode_wait_phase(n, "b", "Succeeded");
	assert_string_equal(STR(testnode_get(n, "a"), "metadata", "resourceVersion"), before);
	testnode_delete(n, "a", HF_GRACE_DEFAULT);
	testnode_wait_gone(n, "a");
}

static bool is_told_to_stop(struct testnode *n, void *arg)
{
	const struct hf_kubelet_pod *p =
		hf_map_get(n->kubelet->pods, STR(testnode_get(n, arg), "metadata", "uid"));

	return p && p->past.stop != HF_STOPPED_NOT;
}

/* Destroys the kubelet after the drain has begun, so that no kubelet sees how the pod ends. */
static void end_in_a_drain_unseen(struct testnode *n, const char *end)
{
	HF_AUTOFREE char *script = hf_xasprintf(
		"trap \\\"read x < %s/go; %s\\\" TERM; touch %s/up; tail -f /dev/null & wait",
		n->dir, end, n->dir);
	char name[] = "a";

	make_fifo(n, "go");
	testnode_script(n, name, "Never", script);
	testnode_wait_state(n, name, "running", NULL);
	testnode_wait_file(n, "up");
	testnode_drain(n, HF_MINUTE);
	testnode_wait(n, is_told_to_stop, name);
	testnode_stop(n);
	let_go(n, "go");
	testnode_start(n);
	testnode_wait_phase(n, name, "Failed");
	assert_string_equal(STR(testnode_status(n, name), "reason"), "Terminated");
	assert_string_equal(testnode_condition(n, name, "DisruptionTarget"), "True");
}

static void an_end_in_a_drain_that_was_cut_short_is_the_drains(void **state)
{
	end_in_a_drain_unseen(*state, "exit 1");
}

static void a_good_end_in_a_drain_that_was_cut_short_is_the_drains_too(void **state)
{
	end_in_a_drain_unseen(*state, "exit 0");
}

static void a_pod_that_a_drain_left_running_is_ended_by_the_next_kubelet(void **state)
{
	struct testnode *n = *state;
	char name[] = "a";

	testnode_pod(
		n, name,
		"'terminationGracePeriodSeconds':1,'restartPolicy':'Never','containers':[{"
		"'name':'main','command':['sh','-c','trap \\\"\\\" TERM; tail -f /dev/null']}]");
	testnode_wait_state(n, name, "running", NULL);
	testnode_drain(n, HF_MINUTE);
	testnode_wait(n, is_told_to_stop, name);
	testnode_stop(n);
	testnode_start(n);
	testnode_wait_phase(n, name, "Failed");
	assert_string_equal(STR(testnode_status(n, name), "reason"), "Terminated");
}

static void two_kubelets_do_not_share_a_folder(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *dir = hf_xasprintf("%s/node", n->dir);
	struct hf_kubelet_options options = {
		.loop = n->loop, .state_dir = dir, .store = hf_memstore_store(n->memstore)};
	struct hf_kubelet *second;
	struct hf_error err;

	assert_code(hf_kubelet_create(&options, &second, &err), HF_E_CONFLICT);
	assert_code(hf_kubelet_kill_leftovers(dir, &err), HF_E_CONFLICT);
	options.state_dir = "relative";
	assert_code(hf_kubelet_create(&options, &second, &err), HF_E_INVALID);
	options.state_dir = "/proc/nope";
	assert_true(hf_kubelet_create(&options, &second, &err) < 0);
}

static void leftovers_of_a_killed_plane_can_be_ended_without_it(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *dir = hf_xasprintf("%s/node", n->dir);
	struct hf_process_id shim;
	struct hf_error err;

	testnode_script(n, "a", "Always", "exec tail -f /dev/null");
	testnode_wait_state(n, "a", "running", NULL);
	shim = shim_of(n, "a");
	testnode_stop(n);
	assert_ok(hf_kubelet_kill_leftovers(dir, &err), &err);
	testnode_wait(n, shim_is_dead, &shim);
	assert_ok(hf_kubelet_kill_leftovers("/tmp/hf-no-such-folder", &err), &err);
	testnode_start(n);
	testnode_wait_phase(n, "a", "Failed");
	assert_string_equal(STR(testnode_status(n, "a"), "reason"), "Lost");
}

static void a_kubelet_that_only_drains_ends_the_pods_with_their_grace_and_starts_none(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *dir = hf_xasprintf("%s/node", n->dir);
	char saver[] = "saver", deaf[] = "deaf";

	testnode_pod(
		n, saver,
		"'restartPolicy':'Always','containers':[{'name':'main','command':['sh','-c',"
		"'trap \\\"echo saved >%s/saved; exit 0\\\" TERM; tail -f /dev/null & wait']}]",
		n->dir);
	testnode_pod(n, deaf,
		     "'terminationGracePeriodSeconds':1,'containers':[{'name':'main','command':["
		     "'sh','-c','trap \\\"\\\" TERM; tail -f /dev/null']}]");
	testnode_wait_state(n, saver, "running", NULL);
	testnode_wait_state(n, deaf, "running", NULL);
	assert_int_equal(hf_kubelet_count_running(dir), 2);
	n->kubelet = hf_kubelet_destroy(n->kubelet);
	testnode_pod(
		n, "late",
		"'restartPolicy':'Never','containers':[{'name':'main','command':['touch','%s/late']}]",
		n->dir);
	n->only_drains = true;
	testnode_stop(n);
	assert_int_equal(hf_kubelet_count_running(dir), 2);
	testnode_start(n);
	testnode_drain(n, HF_TIME_NONE);
	testnode_wait_drained(n);
	assert_int_equal(hf_kubelet_count_running(dir), 0);
	testnode_assert_file(n, "saved", "saved\n");
	assert_false(testnode_has_file(n, "late"));
	for (size_t i = 0; i < 2; i++) {
		const struct hf_json *status = testnode_status(n, i ? deaf : saver);

		assert_string_equal(STR(status, "phase"), "Failed");
		assert_string_equal(STR(status, "reason"), "Terminated");
	}
}

/* --- kill -9 of the whole program, at any moment --- */

#define ROUNDS 12

static int be_a_plane(const char *dir)
{
	struct testnode n;

	testnode_open_at(&n, dir);
	/* Create the pod in the first round. In later rounds the store on disk has the pod. */
	if (!testnode_get(&n, "a"))
		testnode_pod(&n, "a",
			     "'restartPolicy':'Never','containers':[{'name':'main','command':"
			     "['sh','-c','echo once >> %s/count; sleep 0.2; exit 7']}]",
			     dir);
	hf_loop_run(n.loop);
	return 0;
}

struct victim {
	struct hf_process *process;
	bool ended;
};

static void on_victim(void *arg, const struct hf_process_exit *ended HF_UNUSED)
{
	((struct victim *)arg)->ended = true;
}

static bool victim_ended(struct testnode *n HF_UNUSED, void *arg)
{
	return ((struct victim *)arg)->ended;
}

static void on_time(void *arg)
{
	struct victim *v = arg;

	(void)hf_process_kill(v->process, SIGKILL, NULL);
}

/* Runs a plane for the time `span`, then kills the plane. */
static void live_and_die(struct testnode *n, const char *dir, hf_time span)
{
	char exe[4096];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	const char *const argv[] = {exe, "plane", dir, NULL};
	struct hf_process_spec spec = {
		.argv = argv,
		.stdio = {HF_PROCESS_STDIO_NULL, HF_PROCESS_STDIO_NULL, STDERR_FILENO},
		.new_session = true};
	struct victim v = {0};
	struct hf_timer *timer = hf_timer_create(n->loop, on_time, &v);
	struct hf_error err;

	assert_true(len > 0);
	exe[len] = '\0';
	assert_ok(hf_process_spawn(n->loop, &spec, on_victim, &v, &v.process, &err), &err);
	hf_timer_arm(timer, span);
	testnode_wait(n, victim_ended, &v);
	(void)hf_process_destroy(v.process);
	(void)hf_timer_destroy(timer);
}

/* Waits for the lock: a child that was being forked when its parent was killed holds the inherited
 * lock until its exec. */
static bool store_is_free(struct testnode *n, void *arg)
{
	HF_AUTOFREE char *data = hf_xasprintf("%s/store", (const char *)arg);
	struct hf_memstore_options options = {.data_dir = data};
	struct hf_memstore *memstore = NULL;
	int rc = hf_memstore_create(n->loop, &options, &memstore, NULL);

	memstore = hf_memstore_destroy(memstore);
	return rc != HF_E_CONFLICT;
}

static void killed_at_any_moment_the_plane_runs_a_pod_exactly_once(void **state)
{
	struct testnode *n = *state;

	for (int round = 0; round < ROUNDS; round++) {
		HF_AUTOFREE char *dir = hf_xasprintf("%s/r%d", n->dir, round);
		HF_AUTOFREE char *path = hf_xasprintf("%s/count", dir);
		HF_AUTO_STRBUF count = HF_STRBUF_INIT(4096);
		struct testnode m;
		const struct hf_json *t;
		struct hf_error err;

		assert_ok(hf_fs_mkdirs(dir, 0700, &err), &err);
		live_and_die(n, dir, (40 + 25 * round) * HF_MS);
		testnode_wait(n, store_is_free, dir);
		live_and_die(n, dir, (30 + 35 * round) * HF_MS);
		testnode_wait(n, store_is_free, dir);
		testnode_open_at(&m, dir);
		if (!testnode_get(&m, "a"))
			testnode_pod(&m, "a",
				     "'restartPolicy':'Never','containers':[{'name':'main',"
				     "'command':['sh','-c','echo once >> %s/count; exit 7']}]",
				     dir);
		testnode_wait_phase(&m, "a", "Failed");
		t = hf_json_path(testnode_container(&m, "a", 0, false), "state", "terminated",
				 NULL);
		assert_null(STR(testnode_status(&m, "a"), "reason"));
		assert_int_equal(NUM(t, "exitCode"), 7);
		assert_ok(hf_fs_read(path, &count, &err), &err);
		assert_string_equal(count.data, "once\n");
		testnode_close(&m);
	}
}

int main(int argc, char **argv)
{
#define T(name) TESTNODE_TEST(name, disk)
#define H(name) TESTNODE_HOST_TEST(name, disk)
	const struct CMUnitTest tests[] = {
		T(an_exit_code_is_known_though_no_kubelet_ran),
		T(a_pod_that_runs_on_is_found_again_and_obeys),
		T(a_pod_whose_shim_died_meanwhile_is_lost_and_not_run_again),
		T(a_pod_whose_shim_dies_is_lost_at_once),
		T(no_descendant_runs_on_when_its_shim_dies),
		T(a_pod_of_another_boot_is_lost),
		T(a_damaged_journal_loses_the_pod_and_says_so),
		T(a_pod_whose_folder_is_gone_is_lost_and_not_run_again),
		T(a_pod_deleted_while_no_kubelet_ran_is_ended),
		T(a_pod_that_was_being_ended_is_ended_by_the_next_kubelet),
		T(pods_from_before_and_after_share_one_network),
		T(back_off_goes_on_where_it_was),
		T(what_has_ended_is_not_said_in_other_words_later),
		T(an_end_in_a_drain_that_was_cut_short_is_the_drains),
		T(a_good_end_in_a_drain_that_was_cut_short_is_the_drains_too),
		T(a_pod_that_a_drain_left_running_is_ended_by_the_next_kubelet),
		T(two_kubelets_do_not_share_a_folder),
		T(leftovers_of_a_killed_plane_can_be_ended_without_it),
		T(a_kubelet_that_only_drains_ends_the_pods_with_their_grace_and_starts_none),
		T(killed_at_any_moment_the_plane_runs_a_pod_exactly_once),
		H(an_exit_code_is_known_though_no_kubelet_ran),
		H(a_pod_whose_shim_died_meanwhile_is_lost_and_not_run_again),
		H(no_descendant_runs_on_when_its_shim_dies),
		H(an_end_in_a_drain_that_was_cut_short_is_the_drains),
		H(leftovers_of_a_killed_plane_can_be_ended_without_it),
		H(a_kubelet_that_only_drains_ends_the_pods_with_their_grace_and_starts_none),
	};
	int rc = hf_shim_helper_main(argc, argv);

	if (rc >= 0)
		return rc;
	if (argc == 3 && hf_streq(argv[1], "plane"))
		return be_a_plane(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
