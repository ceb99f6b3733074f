/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/shim.h"

#include "harness/test.h"
#include "kubelet/runtime/self_test.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/runtime/netns_internal.h"
#include "kubelet/runtime/shim_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* This program is its own shim: main calls hf_shim_helper_main first. */

/* time limit in seconds for any wait; much longer than any step of a working shim */
#define WAIT_S 60

struct fixture {
	char dir[64];
	int dir_fd;
	int client;
	struct hf_arena *arena;
	struct hf_shim_pod pod;
	struct hf_pod_past past;
	char output[4096]; /* stderr of the start */
};

/* The node's namespaces, made once for all tests. net_fd -1: this machine does not allow such
 * namespaces. */
static struct {
	pid_t pid;
	int hold; /* stdin of the process that keeps the namespaces */
	int net_fd;
	bool isolate, pid_ns;
	struct hf_cgroup_base cgroups;
} node = {.hold = -1, .net_fd = -1};

static void write_file(struct fixture *f, const char *name, const struct hf_json *json)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_RUN_BYTES_MAX);
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", f->dir, name);
	struct hf_error err;

	hf_json_write(json, HF_JSON_COMPACT, &sb);
	assert_ok(hf_fs_write_atomic(path, sb.data, sb.len, 0600, &err), &err);
}

static int set_up(void **state)
{
	struct fixture *f = hf_xcalloc(1, sizeof(*f));
	const char *const folders[] = {"run", "logs"};

	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/hf-shim-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < HF_ARRAY_LEN(folders); i++)
		assert_int_equal(mkdirat(f->dir_fd, folders[i], 0700), 0);
	f->client = -1;
	f->arena = hf_arena_create((size_t)4 << 20);
	f->pod = (struct hf_shim_pod){
		.ns = "default",
		.name = "pod",
		.uid = "11-22",
		.hostname = "pod",
		.log_bytes_max = 1 << 20,
		.log_files_max = 3,
	};
	*state = f;
	return 0;
}

static int set_up_isolated(void **state)
{
	struct fixture *f;

	set_up(state);
	f = *state;
	f->pod.isolate = true;
	f->pod.pid_ns = node.pid_ns;
	f->pod.ip = "10.244.0.9";
	f->pod.prefix = HF_NET_PREFIX;
	f->pod.cgroups = node.cgroups;
	return 0;
}

/* Simulates a machine without process namespaces. */
static int set_up_without_pid(void **state)
{
	set_up_isolated(state);
	((struct fixture *)*state)->pod.pid_ns = false;
	return 0;
}

/* Starts the fixture's shim. Returns 0 when the shim is ready. */
static int start_shim(struct fixture *f)
{
	char *const argv[] = {(char[]){"holdfast"}, (char[]){"shim"}, (char[]){"pod"}, f->dir,
			      NULL};
	HF_AUTO_JSON json = hf_shim_pod_to_json(&f->pod);
	HF_AUTO_STRBUF said = HF_STRBUF_INIT(sizeof(f->output) - 1);
	HF_AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[2];
	pid_t pid;
	int rc;

	write_file(f, HF_SHIM_CONFIG_FILE, json);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = spawn(argv, (int[]){f->pod.isolate ? node.net_fd : null, null, fds[1]});
	(void)close(fds[1]);
	rc = wait_for(pid);
	assert_int_equal(hf_fs_read_fd(fds[0], "stderr", &said, NULL), 0);
	(void)close(fds[0]);
	(void)snprintf(f->output, sizeof(f->output), "%s", said.data);
	if (rc)
		(void)fprintf(stderr, "# shim: %s", f->output);
	return rc;
}

static int connect_to(struct fixture *f)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval timeout = {.tv_sec = WAIT_S};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path),
		       "/proc/self/fd/%d/" HF_SHIM_SOCKET_FILE, f->dir_fd);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static void start_and_connect(struct fixture *f)
{
	assert_int_equal(start_shim(f), 0);
	f->client = connect_to(f);
	assert_true(f->client >= 0);
}

static void say(struct fixture *f, const char *text)
{
	assert_int_equal(send(f->client, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void read_past(struct fixture *f)
{
	struct hf_error err;

	assert_ok(hf_journal_read(f->dir_fd, &f->past, &err), &err);
}

static const struct hf_attempt *last_of(struct fixture *f, const char *name)
{
	const struct hf_container_past *c = hf_pod_past_find(&f->past, name);

	return c ? &c->last : NULL;
}

/* Waits for a message of the shim until the container's last attempt has this state. */
static const struct hf_attempt *wait_state(struct fixture *f, const char *name, unsigned attempt,
					   enum hf_attempt_state state)
{
	char message[HF_SHIM_MESSAGE_MAX + 1];

	for (;;) {
		const struct hf_attempt *a;
		ssize_t n;

		read_past(f);
		a = last_of(f, name);
		if (a && a->number == attempt && a->state >= state)
			return a;
		n = recv(f->client, message, sizeof(message) - 1, 0);
		assert_true(n > 0);
		message[n] = '\0';
		if (!hf_streq(message, "journal"))
			fail_msg("%s", message);
	}
}

static void assert_exit(struct fixture *f, const char *name, unsigned attempt, int code)
{
	const struct hf_attempt *a = wait_state(f, name, attempt, HF_ATTEMPT_FAILED);

	if (a->state == HF_ATTEMPT_FAILED)
		fail_msg("%s could not be started: %s", name, a->text);
	assert_int_equal(a->signum, 0);
	assert_int_equal(a->code, code);
}

static void run(struct fixture *f, const char *name, unsigned attempt, const struct hf_run *run)
{
	HF_AUTO_JSON json = hf_run_to_json(run);
	char text[256];

	(void)snprintf(text, sizeof(text), "run/%s.%u.json", name, attempt);
	write_file(f, text, json);
	(void)snprintf(text, sizeof(text), "start %s %u %u", name, attempt, attempt * 10);
	say(f, text);
}

static const char *const plain_env[] = {"PATH=/usr/bin:/bin", "GREETING=hello", NULL};

static void run_sh(struct fixture *f, const char *name, unsigned attempt, const char *script)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct hf_run r = {.argv = argv, .env = plain_env, .uid = -1, .gid = -1};

	run(f, name, attempt, &r);
}

/* Returns the log of an attempt without its prefixes; lines of stderr are marked. */
static const char *log_of(struct fixture *f, const char *name, unsigned attempt)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)2 << 20);
	HF_AUTO_STRBUF out = HF_STRBUF_INIT((size_t)2 << 20);
	HF_AUTOFREE char *path = hf_xasprintf("%s/logs/%s.%u.log", f->dir, name, attempt);
	struct hf_error err;
	char *rest, *line;

	assert_ok(hf_fs_read(path, &text, &err), &err);
	rest = text.data;
	while ((line = strsep(&rest, "\n")) && rest) {
		char *at = line, *stream, *tag;
		hf_time time;

		assert_ok(hf_time_parse(strsep(&at, " "), &time, &err), &err);
		stream = strsep(&at, " ");
		tag = strsep(&at, " ");
		assert_non_null(at);
		hf_strbuf_addf(&out, "%s%s%s", hf_streq(stream, "stderr") ? "!" : "", at,
			       hf_streq(tag, "F") ? "\n" : "");
	}
	return hf_arena_strdup(f->arena, out.data);
}

static void quit(struct fixture *f)
{
	char message[HF_SHIM_MESSAGE_MAX];

	say(f, "quit");
	while (recv(f->client, message, sizeof(message), 0) > 0)
		;
	(void)close(f->client);
	f->client = -1;
	read_past(f);
	assert_true(f->past.quit);
}

/* Waits until every process that holds the shim's lock has ended. */
static void wait_until_unlocked(struct fixture *f)
{
	HF_AUTO_FD fd = openat(f->dir_fd, HF_SHIM_LOCK_FILE, O_RDWR | O_CLOEXEC);

	(void)alarm(WAIT_S);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	(void)alarm(0);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	struct hf_error err;

	if (f->client >= 0) {
		read_past(f);
		if (hf_process_id_alive(&f->past.shim))
			quit(f);
		else
			(void)close(f->client);
	}
	if (faccessat(f->dir_fd, HF_SHIM_LOCK_FILE, F_OK, 0) == 0)
		wait_until_unlocked(f);
	(void)close(f->dir_fd);
	hf_arena_destroy(f->arena);
	assert_ok(hf_fs_remove_tree(f->dir, &err), &err);
	free(f);
	return 0;
}

/* --- pods with and without namespaces --- */

static void an_exit_code_and_the_output_are_kept(void **state)
{
	struct fixture *f = *state;
	const struct hf_attempt *a;

	start_and_connect(f);
	run_sh(f, "main", 0, "echo $GREETING; echo $HOME-; echo oops >&2; printf tail; exit 7");
	a = wait_state(f, "main", 0, HF_ATTEMPT_FAILED);
	assert_int_equal(a->state, HF_ATTEMPT_EXITED);
	assert_int_equal(a->code, 7);
	assert_int_equal(a->signum, 0);
	assert_true(a->started != HF_TIME_NONE && a->finished >= a->started);
	assert_non_null(strstr(log_of(f, "main", 0), "hello\n-\n"));
	assert_non_null(strstr(log_of(f, "main", 0), "!oops\n"));
	assert_true(hf_str_has_suffix(log_of(f, "main", 0), "tail"));
	/* The shim has removed the run file, which contained the environment. */
	assert_int_equal(faccessat(f->dir_fd, "run/main.0.json", F_OK, 0), -1);
}

static void a_pod_that_must_not_outlive_its_kubelet_ends_without_one(void **state)
{
	struct fixture *f = *state;
	HF_AUTOFREE char *file = hf_xasprintf("%s/term/note", f->dir);
	HF_AUTOFREE char *script = hf_xasprintf(
		"trap 'echo ended >%s; exit 0' TERM; echo up; while :; do sleep 0.1; done", file);

	assert_int_equal(mkdirat(f->dir_fd, "term", 0700), 0);
	f->pod.ends_with_kubelet = true;
	start_and_connect(f);
	run_sh(f, "main", 0, script);
	(void)wait_state(f, "main", 0, HF_ATTEMPT_RUNNING);
	while (strstr(log_of(f, "main", 0), "up") == NULL)
		(void)poll(NULL, 0, 10);
	(void)close(f->client);
	f->client = -1;
	wait_until_unlocked(f);
	read_past(f);
	assert_true(f->past.quit);
	assert_int_equal(last_of(f, "main")->code, 0);
	/* The program got SIGTERM and the time to end by itself. */
	assert_int_equal(access(file, F_OK), 0);
}

static void a_program_that_is_not_there_fails_as_runtimes_say_it(void **state)
{
	struct fixture *f = *state;
	const char *const missing[] = {"no-such-program", NULL};
	const char *const folder[] = {"/tmp", NULL};
	struct hf_run r = {.argv = missing, .env = plain_env, .uid = -1, .gid = -1};

	start_and_connect(f);
	run(f, "main", 0, &r);
	assert_string_equal(wait_state(f, "main", 0, HF_ATTEMPT_FAILED)->text,
			    "exec: \"no-such-program\": executable file not found in $PATH");
	assert_int_equal(last_of(f, "main")->state, HF_ATTEMPT_FAILED);
	r.argv = folder;
	run(f, "main", 1, &r);
	assert_string_equal(wait_state(f, "main", 1, HF_ATTEMPT_FAILED)->text,
			    "exec: \"/tmp\": Permission denied");
	r.cwd = "/nonexistent";
	run(f, "main", 2, &r);
	assert_string_equal(wait_state(f, "main", 2, HF_ATTEMPT_FAILED)->text,
			    "workingDir \"/nonexistent\": No such file or directory");
}

static void signals_reach_the_program_and_kill_ends_it(void **state)
{
	struct fixture *f = *state;
	const struct hf_attempt *a;

	start_and_connect(f);
	run_sh(f, "main", 0, "trap 'exit 3' TERM; echo ready; tail -f /dev/null & wait");
	(void)wait_state(f, "main", 0, HF_ATTEMPT_RUNNING);
	/* The program prints this line after it has set the trap. */
	while (!strstr(log_of(f, "main", 0), "ready"))
		(void)poll(NULL, 0, 5);
	say(f, "signal main 0 15");
	assert_exit(f, "main", 0, 3);

	run_sh(f, "main", 1, "exec tail -f /dev/null");
	(void)wait_state(f, "main", 1, HF_ATTEMPT_RUNNING);
	say(f, "signal main 0 9"); /* this attempt has ended already */
	say(f, "signal main 1 9");
	a = wait_state(f, "main", 1, HF_ATTEMPT_FAILED);
	assert_int_equal(a->signum, SIGKILL);
	run_sh(f, "main", 2, "kill -USR1 $$");
	a = wait_state(f, "main", 2, HF_ATTEMPT_FAILED);
	assert_int_equal(a->signum, SIGUSR1);
	assert_false(a->oom);
	for (unsigned i = 3; i < 23; i++) {
		HF_AUTOFREE char *at_once = hf_xasprintf("signal main %u 15", i);

		run_sh(f, "main", i, "exec tail -f /dev/null");
		say(f, at_once);
		assert_int_equal(wait_state(f, "main", i, HF_ATTEMPT_FAILED)->signum, SIGTERM);
	}
}

static void every_process_of_a_container_dies_with_its_program(void **state)
{
	struct fixture *f = *state;
	HF_AUTOFREE char *fifo = hf_xasprintf("%s/fifo", f->dir);
	HF_AUTOFREE char *script = NULL;
	HF_AUTO_FD reader = -1;
	char byte;

	assert_int_equal(mkfifo(fifo, 0600), 0);
	script = hf_xasprintf("(setsid sh -c 'trap \"\" TERM HUP; exec tail -f /dev/null' "
			      ">%s 2>&1 &) ; read x < %s.go; exit 0",
			      fifo, fifo);
	{
		HF_AUTOFREE char *go = hf_xasprintf("%s.go", fifo);
		HF_AUTO_FD writer = -1;

		assert_int_equal(mkfifo(go, 0600), 0);
		start_and_connect(f);
		run_sh(f, "main", 0, script);
		/* blocks until the descendant opens it */
		reader = open(fifo, O_RDONLY | O_CLOEXEC);
		assert_true(reader >= 0);
		writer = open(go, O_WRONLY | O_CLOEXEC);
		assert_int_equal(write(writer, "\n", 1), 1);
	}
	assert_exit(f, "main", 0, 0);
	/* The read sees the end of file if no process has the other end open any more. */
	assert_int_equal(fcntl(reader, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(read(reader, &byte, 1), 0);
}

static void an_attempt_is_started_once_however_often_it_is_asked_for(void **state)
{
	struct fixture *f = *state;
	HF_AUTOFREE char *script = hf_xasprintf("echo x >> %s/count", f->dir);
	HF_AUTOFREE char *path = hf_xasprintf("%s/count", f->dir);
	HF_AUTO_STRBUF count = HF_STRBUF_INIT(64);
	struct hf_error err;

	start_and_connect(f);
	for (int i = 0; i < 3; i++) {
		run_sh(f, "main", 0, script);
		(void)wait_state(f, "main", 0, HF_ATTEMPT_FAILED);
	}
	run_sh(f, "main", 1, "exit 0");
	(void)wait_state(f, "main", 1, HF_ATTEMPT_FAILED);
	run_sh(f, "main", 0, script);
	run_sh(f, "main", 2, "exit 0");
	(void)wait_state(f, "main", 2, HF_ATTEMPT_FAILED);
	assert_ok(hf_fs_read(path, &count, &err), &err);
	assert_string_equal(count.data, "x\n");
	assert_int_equal(hf_pod_past_find(&f->past, "main")->previous.number, 1);
	assert_int_equal(last_of(f, "main")->backoff_s, 20);
}

static void an_exit_is_written_while_no_kubelet_listens(void **state)
{
	struct fixture *f = *state;
	HF_AUTOFREE char *go = hf_xasprintf("%s/go", f->dir);
	HF_AUTOFREE char *script = hf_xasprintf("read x < %s; exit 42", go);
	HF_AUTO_FD writer = -1;

	assert_int_equal(mkfifo(go, 0600), 0);
	start_and_connect(f);
	run_sh(f, "main", 0, script);
	(void)wait_state(f, "main", 0, HF_ATTEMPT_RUNNING);
	(void)close(f->client);
	writer = open(go, O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(writer, "\n", 1), 1);
	f->client = connect_to(f);
	assert_true(f->client >= 0);
	assert_exit(f, "main", 0, 42);
}

static void containers_of_one_pod_run_side_by_side(void **state)
{
	struct fixture *f = *state;

	start_and_connect(f);
	for (int i = 0; i < 8; i++) {
		char name[16], script[64];

		(void)snprintf(name, sizeof(name), "c%d", i);
		(void)snprintf(script, sizeof(script), "echo %d; exit %d", i, i);
		run_sh(f, name, 0, script);
	}
	for (int i = 0; i < 8; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "c%d", i);
		assert_exit(f, name, 0, i);
	}
}

/* Tells whether a process has ended; it may still wait to be reaped. */
static void when_the_shim_is_killed_nothing_of_the_pod_runs_on(void **state)
{
	struct fixture *f = *state;
	struct hf_process_id shim;
	pid_t init;

	start_and_connect(f);
	run_sh(f, "main", 0, "tail -f /dev/null & wait");
	init = wait_state(f, "main", 0, HF_ATTEMPT_RUNNING)->pid;
	shim = f->past.shim;
	assert_true(hf_process_id_alive(&shim));
	assert_int_equal(kill(shim.pid, SIGKILL), 0);
	wait_until_unlocked(f);
	wait_gone(init);
	assert_false(hf_process_id_alive(&shim));
	/* The folder has a journal of a pod that ran, so a second start is refused. */
	assert_int_equal(start_shim(f), 1);
	assert_string_equal(f->output, "containers of this pod ran before\n");
	read_past(f);
	assert_int_equal(last_of(f, "main")->state, HF_ATTEMPT_RUNNING);
}

/* The shim writes a record after a new client has read the journal, and before the shim accepts
 * the client. */
static void an_exit_between_connect_and_accept_is_told(void **state)
{
	struct fixture *f = *state;
	HF_AUTOFREE char *go = hf_xasprintf("%s/go", f->dir);
	HF_AUTOFREE char *script = hf_xasprintf("read x < %s; exit 42", go);
	HF_AUTO_FD writer = -1;
	pid_t init;

	assert_int_equal(mkfifo(go, 0600), 0);
	start_and_connect(f);
	run_sh(f, "main", 0, script);
	init = wait_state(f, "main", 0, HF_ATTEMPT_RUNNING)->pid;
	writer = open(go, O_WRONLY | O_CLOEXEC);
	assert_int_equal(kill(f->past.shim.pid, SIGSTOP), 0);
	(void)close(f->client);
	assert_int_equal(write(writer, "\n", 1), 1);
	wait_gone(init);
	f->client = connect_to(f);
	read_past(f);
	assert_int_equal(last_of(f, "main")->state, HF_ATTEMPT_RUNNING);
	assert_int_equal(kill(f->past.shim.pid, SIGCONT), 0);
	assert_exit(f, "main", 0, 42);
}

static void a_pod_has_one_shim(void **state)
{
	struct fixture *f = *state;

	start_and_connect(f);
	assert_int_equal(start_shim(f), 1);
	assert_string_equal(f->output, HF_SHIM_TAKEN "\n");
	/* The first container is still found. */
	(void)close(f->client);
	f->client = connect_to(f);
	assert_true(f->client >= 0);
}

static void polite_signals_do_not_end_the_shim(void **state)
{
	struct fixture *f = *state;

	start_and_connect(f);
	run_sh(f, "main", 0, "exit 1");
	(void)wait_state(f, "main", 0, HF_ATTEMPT_FAILED);
	assert_int_equal(kill(f->past.shim.pid, SIGTERM), 0);
	assert_int_equal(kill(f->past.shim.pid, SIGHUP), 0);
	run_sh(f, "main", 1, "exit 2");
	assert_exit(f, "main", 1, 2);
}

static void quit_kills_what_runs_and_writes_it_down(void **state)
{
	struct fixture *f = *state;

	start_and_connect(f);
	run_sh(f, "main", 0, "tail -f /dev/null");
	(void)wait_state(f, "main", 0, HF_ATTEMPT_RUNNING);
	quit(f);
	assert_int_equal(last_of(f, "main")->signum, SIGKILL);
	wait_until_unlocked(f);
}

static void a_stop_is_written_before_the_ends_that_follow_and_nothing_is_started_after_it(
	void **state)
{
	struct fixture *f = *state;

	start_and_connect(f);
	run_sh(f, "past", 0, "exit 3");
	assert_exit(f, "past", 0, 3);
	run_sh(f, "main", 0, "tail -f /dev/null");
	(void)wait_state(f, "main", 0, HF_ATTEMPT_RUNNING);
	say(f, "stop drain");
	say(f, "stop deadline");
	say(f, "signal main 0 15");
	(void)wait_state(f, "main", 0, HF_ATTEMPT_EXITED);
	assert_int_equal(f->past.stop, HF_STOPPED_BY_DRAIN);
	assert_int_equal(f->past.ran_at_stop, 1);
	run_sh(f, "main", 1, "exit 0");
	quit(f);
	assert_int_equal(last_of(f, "main")->number, 0);
}

static void messages_that_make_no_sense_do_nothing(void **state)
{
	static const char *const odd[] = {
		"start",
		"start main",
		"start main x 0",
		"stop",
		"stop main",
		"start ../main 0 0",
		"start main 0 -1",
		"start main 99999999999 0",
		"signal main 0 0",
		"signal main 0 9999",
		"jump",
		" ",
		"start a/b 0 0",
		"signal gone 0 9",
	};
	struct fixture *f = *state;

	start_and_connect(f);
	for (size_t i = 0; i < HF_ARRAY_LEN(odd); i++)
		say(f, odd[i]);
	run_sh(f, "main", 0, "exit 5");
	assert_exit(f, "main", 0, 5);
	assert_int_equal(f->past.n_containers, 1);
}

static void a_start_without_its_run_file_is_refused_and_costs_no_attempt(void **state)
{
	struct fixture *f = *state;
	char message[HF_SHIM_MESSAGE_MAX + 1];
	ssize_t n;

	start_and_connect(f);
	say(f, "start main 0 0");
	do {
		n = recv(f->client, message, sizeof(message) - 1, 0);
		assert_true(n > 0);
		message[n] = '\0';
	} while (hf_streq(message, "journal"));
	assert_string_equal(
		message, "error main 0 cannot open 'run/main.0.json': No such file or directory");
	run_sh(f, "main", 0, "exit 0");
	(void)wait_state(f, "main", 0, HF_ATTEMPT_FAILED);
}

/* --- pods with namespaces --- */

static void a_pod_has_its_own_host_name_network_and_processes(void **state)
{
	struct fixture *f = *state;

	start_and_connect(f);
	run_sh(f, "main", 0,
	       "uname -n; grep -c : /proc/net/dev; echo $$; "
	       "grep -c 'eth0' /proc/net/route; set -- /proc/[0-9]*; echo $#");
	assert_exit(f, "main", 0, 0);
	if (node.pid_ns)
		assert_string_equal(log_of(f, "main", 0), "pod\n2\n2\n1\n2\n");
	else
		assert_true(hf_str_has_prefix(log_of(f, "main", 0), "pod\n2\n"));
}

static void two_pods_use_one_port_and_reach_each_other(void **state)
{
	static const char server[] =
		"import socket\n"
		"s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
		"s.bind(('', 23456)); s.listen(); print('up', flush=True)\n"
		"c = s.accept()[0]; c.sendall(b'hi from ' + socket.gethostname().encode()); c.close()\n";
	static const char client[] =
		"import socket, time\n"
		"s = socket.create_connection(('other', 23456)); print(s.recv(99).decode())\n";
	struct fixture *f = *state;
	const char *const serve[] = {"python3", "-c", server, NULL};
	const char *const ask[] = {"python3", "-c", client, NULL};
	HF_AUTOFREE char *hosts = hf_xasprintf("%s/hosts", f->dir);
	struct hf_run_mount mount = {.source = hosts, .target = "/etc/hosts", .is_file = true};
	struct hf_run r = {.argv = serve, .env = plain_env, .uid = -1, .gid = -1};
	struct fixture *g;
	struct hf_error err;
	void *second;

	set_up_isolated(&second);
	g = second;
	g->pod.ip = "10.244.0.10";
	g->pod.hostname = "other";
	start_and_connect(f);
	start_and_connect(g);
	run(f, "server", 0, &r);
	run(g, "server", 0, &r);
	(void)wait_state(f, "server", 0, HF_ATTEMPT_RUNNING);
	(void)wait_state(g, "server", 0, HF_ATTEMPT_RUNNING);
	while (!strstr(log_of(f, "server", 0), "up") || !strstr(log_of(g, "server", 0), "up"))
		(void)poll(NULL, 0, 5);
	r.argv = ask;
	r.mounts = &mount;
	r.n_mounts = 1;
	assert_ok(hf_fs_write_atomic(hosts, "10.244.0.10 other\n", 18, 0644, &err), &err);
	run(f, "client", 0, &r);
	assert_exit(f, "client", 0, 0);
	assert_string_equal(log_of(f, "client", 0), "hi from other\n");
	assert_exit(g, "server", 0, 0);
	tear_down(&second);
}

static void mounts_appear_where_nothing_was_and_the_machine_stays_as_it_is(void **state)
{
	struct fixture *f = *state;
	HF_AUTOFREE char *volume = hf_xasprintf("%s/volume", f->dir);
	HF_AUTOFREE char *term = hf_xasprintf("%s/term", f->dir);
	HF_AUTOFREE char *deep = hf_xasprintf("%s/not/there", f->dir);
	struct hf_run_mount mounts[] = {
		{.source = volume, .target = "/hf-test-a/b/c"},
		{.source = volume, .target = "/hf-test-ro", .read_only = true},
		{.source = term, .target = "/dev/hf-termination-log", .is_file = true},
		{.source = volume, .target = deep},
	};
	const char *const argv[] = {
		"sh", "-c",
		"echo data > /hf-test-a/b/c/file; cat /hf-test-ro/file; (echo x > /hf-test-ro/new) "
		"2>/dev/null || echo read-only; echo bye > /dev/hf-termination-log; "
		"echo x > /dev/null && test -c /dev/null && ls -d /usr/bin /dev/shm; "
		"(echo x > /hf-lost) 2>/dev/null || echo sealed; cat $0/file",
		deep, NULL};
	struct hf_run r = {.argv = argv,
			   .env = plain_env,
			   .uid = -1,
			   .gid = -1,
			   .mounts = mounts,
			   .n_mounts = HF_ARRAY_LEN(mounts)};
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(64);
	struct hf_error err;

	assert_int_equal(mkdir(volume, 0777), 0);
	assert_ok(hf_fs_write_atomic(term, "", 0, 0666, &err), &err);
	start_and_connect(f);
	run(f, "main", 0, &r);
	assert_exit(f, "main", 0, 0);
	assert_string_equal(log_of(f, "main", 0),
			    "data\nread-only\n/dev/shm\n/usr/bin\nsealed\ndata\n");
	assert_ok(hf_fs_read(term, &text, &err), &err);
	assert_string_equal(text.data, "bye\n");
	assert_int_equal(access("/hf-test-a", F_OK), -1);
	assert_int_equal(access("/hf-test-ro", F_OK), -1);
	assert_int_equal(access("/hf-lost", F_OK), -1);
	assert_int_equal(access("/dev/hf-termination-log", F_OK), -1);
}

static void a_read_only_root_leaves_volumes_writable(void **state)
{
	struct fixture *f = *state;
	HF_AUTOFREE char *volume = hf_xasprintf("%s/volume", f->dir);
	struct hf_run_mount mount = {.source = volume, .target = "/hf-test-data"};
	const char *const argv[] = {"sh", "-c",
				    "echo x > /hf-test-data/f && echo kept; "
				    "(echo x > $0/no) 2>/dev/null || echo refused",
				    f->dir, NULL};
	struct hf_run r = {.argv = argv,
			   .env = plain_env,
			   .uid = -1,
			   .gid = -1,
			   .mounts = &mount,
			   .n_mounts = 1,
			   .read_only_root = true};

	assert_int_equal(mkdir(volume, 0777), 0);
	start_and_connect(f);
	run(f, "main", 0, &r);
	assert_exit(f, "main", 0, 0);
	assert_string_equal(log_of(f, "main", 0), "kept\nrefused\n");
}

static void a_mount_that_cannot_be_made_fails_the_start(void **state)
{
	struct fixture *f = *state;
	struct hf_run_mount mount = {.source = "/nonexistent", .target = "/etc/hosts"};
	const char *const argv[] = {"true", NULL};
	struct hf_run r = {.argv = argv,
			   .env = plain_env,
			   .uid = -1,
			   .gid = -1,
			   .mounts = &mount,
			   .n_mounts = 1};

	start_and_connect(f);
	run(f, "main", 0, &r);
	assert_string_equal(wait_state(f, "main", 0, HF_ATTEMPT_FAILED)->text,
			    "cannot open '/nonexistent': No such file or directory");
	mount.source = "/tmp";
	mount.target = "/tmp/../etc";
	run(f, "main", 1, &r);
	assert_string_equal(wait_state(f, "main", 1, HF_ATTEMPT_FAILED)->text,
			    "mount path '/tmp/../etc' has '..'");
}

static void memory_volumes_are_shared_by_the_containers_of_a_pod(void **state)
{
	struct fixture *f = *state;
	HF_AUTOFREE char *volume = hf_xasprintf("%s/volume", f->dir);
	struct hf_shim_tmpfs tmpfs = {.path = volume, .bytes_max = 1 << 20};
	struct hf_run_mount mount = {.source = volume, .target = "/dev/shm"};
	const char *argv[] = {"sh", "-c",
			      "echo shared > /dev/shm/x; "
			      "head -c 2000000 /dev/zero > /dev/shm/y 2>/dev/null || echo full",
			      NULL};
	struct hf_run r = {.argv = argv,
			   .env = plain_env,
			   .uid = -1,
			   .gid = -1,
			   .mounts = &mount,
			   .n_mounts = 1};

	assert_int_equal(mkdir(volume, 0777), 0);
	f->pod.tmpfs = &tmpfs;
	f->pod.n_tmpfs = 1;
	start_and_connect(f);
	run(f, "one", 0, &r);
	assert_exit(f, "one", 0, 0);
	assert_string_equal(log_of(f, "one", 0), "full\n");
	argv[2] = "cat /dev/shm/x";
	run(f, "two", 0, &r);
	assert_exit(f, "two", 0, 0);
	assert_string_equal(log_of(f, "two", 0), "shared\n");
	assert_int_equal(faccessat(f->dir_fd, "volume/x", F_OK, 0), -1);
}

static void root_can_run_a_container_as_another_user(void **state)
{
	struct fixture *f = *state;
	const char *const argv[] = {"sh", "-c",
				    "id -u; id -g; id -G; grep NoNewPrivs "
				    "/proc/self/status",
				    NULL};
	const int64_t groups[] = {4321};
	struct hf_run r = {.argv = argv,
			   .env = plain_env,
			   .uid = 1234,
			   .gid = 2345,
			   .groups = groups,
			   .n_groups = 1,
			   .no_new_privs = true};

	if (geteuid() != 0) {
		(void)fprintf(stderr, "# SKIPPED: needs root\n");
		skip();
	}
	start_and_connect(f);
	run(f, "main", 0, &r);
	assert_exit(f, "main", 0, 0);
	assert_string_equal(log_of(f, "main", 0), "1234\n2345\n2345 4321\nNoNewPrivs:\t1\n");
}

static void a_container_that_takes_too_much_memory_is_told_apart(void **state)
{
	struct fixture *f = *state;
	const char *const argv[] = {"python3", "-c", "b = bytearray(400 << 20)", NULL};
	struct hf_run r = {.argv = argv,
			   .env = plain_env,
			   .uid = -1,
			   .gid = -1,
			   .limits = {.memory_bytes = 64 << 20, .cpu_milli = 1500}};
	const struct hf_attempt *a;

	if (!node.cgroups.memory[0]) {
		(void)fprintf(stderr, "# SKIPPED: no control group can be made here\n");
		skip();
	}
	start_and_connect(f);
	run(f, "main", 0, &r);
	a = wait_state(f, "main", 0, HF_ATTEMPT_FAILED);
	assert_int_equal(a->signum, SIGKILL);
	assert_true(a->oom);
	/* The control group is removed when its container has ended. */
	{
		HF_AUTOFREE char *path = hf_xasprintf("%s/11-22.main.0", node.cgroups.memory);

		assert_int_equal(access(path, F_OK), -1);
	}
}

/* --- the node --- */

static void read_node(int fd)
{
	HF_AUTO_STRBUF line = HF_STRBUF_INIT((size_t)64 << 10);
	HF_AUTO_JSON json = NULL;
	struct hf_error err;
	char c;

	while (read(fd, &c, 1) == 1 && c != '\n')
		hf_strbuf_addch(&line, c);
	assert_ok(hf_json_parse(line.data, line.len, NULL, &json, &err), &err);
	(void)fprintf(stderr, "# node: %s\n", line.data);
	node.isolate = hf_json_true(hf_json_get(json, "isolate"), false);
	node.pid_ns = hf_json_true(hf_json_get(json, "pidNamespace"), false);
	node.cgroups.version = (int)hf_json_i64(hf_json_path(json, "cgroups", "version", NULL), 0);
	(void)snprintf(node.cgroups.memory, sizeof(node.cgroups.memory), "%s",
		       hf_json_path_str(json, "cgroups", "memory", NULL));
	(void)snprintf(node.cgroups.cpu, sizeof(node.cgroups.cpu), "%s",
		       hf_json_path_str(json, "cgroups", "cpu", NULL));
}

static int start_node(void **state HF_UNUSED)
{
	char *const argv[] = {(char[]){"holdfast"}, (char[]){"shim"}, (char[]){"net"}, NULL};
	int in[2], out[2];
	char path[64];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	node.pid = spawn(argv, (int[]){in[0], out[1], STDERR_FILENO});
	(void)close(in[0]);
	(void)close(out[1]);
	node.hold = in[1];
	read_node(out[0]);
	(void)close(out[0]);
	if (node.isolate) {
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)node.pid);
		node.net_fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(node.net_fd >= 0);
	}
	/* Let the process end: the descriptor alone keeps the namespace. */
	(void)close(node.hold);
	return wait_for(node.pid);
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define I(name)                                                                                    \
	{                                                                                          \
#name " (namespaces)", name, set_up_isolated, tear_down, NULL                      \
	}
#define P(name)                                                                                    \
	{                                                                                          \
#name " (no process namespace)", name, set_up_without_pid, tear_down, NULL         \
	}
	const struct CMUnitTest plain[] = {
		T(an_exit_code_and_the_output_are_kept),
		T(a_program_that_is_not_there_fails_as_runtimes_say_it),
		T(signals_reach_the_program_and_kill_ends_it),
		T(every_process_of_a_container_dies_with_its_program),
		T(an_attempt_is_started_once_however_often_it_is_asked_for),
		T(an_exit_is_written_while_no_kubelet_listens),
		T(containers_of_one_pod_run_side_by_side),
		T(when_the_shim_is_killed_nothing_of_the_pod_runs_on),
		T(an_exit_between_connect_and_accept_is_told),
		T(a_pod_has_one_shim),
		T(polite_signals_do_not_end_the_shim),
		T(quit_kills_what_runs_and_writes_it_down),
		T(a_pod_that_must_not_outlive_its_kubelet_ends_without_one),
		T(a_stop_is_written_before_the_ends_that_follow_and_nothing_is_started_after_it),
		T(messages_that_make_no_sense_do_nothing),
		T(a_start_without_its_run_file_is_refused_and_costs_no_attempt),
	};
	const struct CMUnitTest isolated[] = {
		I(an_exit_code_and_the_output_are_kept),
		I(a_program_that_is_not_there_fails_as_runtimes_say_it),
		I(signals_reach_the_program_and_kill_ends_it),
		I(every_process_of_a_container_dies_with_its_program),
		I(when_the_shim_is_killed_nothing_of_the_pod_runs_on),
		I(quit_kills_what_runs_and_writes_it_down),
		I(a_pod_that_must_not_outlive_its_kubelet_ends_without_one),
		I(a_pod_has_its_own_host_name_network_and_processes),
		I(two_pods_use_one_port_and_reach_each_other),
		I(mounts_appear_where_nothing_was_and_the_machine_stays_as_it_is),
		I(a_read_only_root_leaves_volumes_writable),
		I(a_mount_that_cannot_be_made_fails_the_start),
		I(memory_volumes_are_shared_by_the_containers_of_a_pod),
		I(root_can_run_a_container_as_another_user),
		I(a_container_that_takes_too_much_memory_is_told_apart),
		P(an_exit_code_and_the_output_are_kept),
		P(signals_reach_the_program_and_kill_ends_it),
		P(every_process_of_a_container_dies_with_its_program),
		P(a_pod_that_must_not_outlive_its_kubelet_ends_without_one),
		P(when_the_shim_is_killed_nothing_of_the_pod_runs_on),
	};
	int rc = hf_shim_helper_main(argc, argv);

	if (rc >= 0)
		return rc;
	rc = cmocka_run_group_tests_name("on the machine", plain, start_node, NULL);
	if (node.isolate)
		rc += cmocka_run_group_tests_name("with namespaces", isolated, NULL, NULL);
	else
		(void)fprintf(stderr, "# SKIPPED: this machine refuses namespaces\n");
	return rc;
}
