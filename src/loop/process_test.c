/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of hf_process with real children of /bin/sh. Each test waits for an event, never for a
 * time. */
#include "harness/real_loop.h"
#include "loop/process.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "loop/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* With this argument the test prints its argv[0] and ends. */
#define SAY_NAME "say-name"

struct bench {
	struct hf_test_loop t;
	struct hf_loop *loop;
	struct hf_process *process;
	struct hf_process_exit ended;
	unsigned exits;
	struct hf_reader *reader;
	struct hf_strbuf out;
	bool out_ended;
	int out_fd;     /* write end of the pipe, for the child */
	size_t waiting; /* number of events until the loop stops */
};

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	hf_test_loop_init(&bench->t);
	bench->loop = bench->t.loop;
	hf_strbuf_init(&bench->out, 1 << 20);
	bench->out_fd = -1;
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_process_destroy(bench->process);
	hf_reader_destroy(bench->reader);
	hf_test_loop_release(&bench->t);
	hf_strbuf_release(&bench->out);
	free(bench);
	return 0;
}

static void count_event(struct bench *bench)
{
	assert_true(bench->waiting > 0);
	if (--bench->waiting == 0)
		hf_loop_stop(bench->loop);
}

static void run_until_events(struct bench *bench, size_t events)
{
	bench->waiting = events;
	hf_test_loop_run(&bench->t);
	assert_int_equal(bench->waiting, 0);
}

static void on_exit_event(void *arg, const struct hf_process_exit *ended)
{
	struct bench *bench = arg;

	assert_true(hf_process_ended(bench->process));
	bench->ended = *ended;
	bench->exits++;
	count_event(bench);
}

static void on_out(void *arg, const char *bytes, size_t len, int read_error)
{
	struct bench *bench = arg;

	assert_int_equal(read_error, 0);
	hf_strbuf_add(&bench->out, bytes, len);
	if (len > 0)
		return;
	bench->out_ended = true;
	count_event(bench);
}

/* Opens a pipe: the reader collects its output; out_fd is the child's end. */
static void open_out(struct bench *bench)
{
	struct hf_error err = {0};
	int fds[2];

	assert_ok(hf_pipe_make(fds, &err), &err);
	assert_ok(hf_reader_create(bench->loop, fds[0], on_out, bench, &bench->reader, &err), &err);
	bench->out_fd = fds[1];
}

static void spawn_script(struct bench *bench, struct hf_process_spec spec, const char *script)
{
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	struct hf_error err = {0};

	spec.argv = argv;
	spec.stdio[0] = spec.stdio[2] = HF_PROCESS_STDIO_NULL;
	spec.stdio[1] = bench->out_fd;
	assert_ok(hf_process_spawn(bench->loop, &spec, on_exit_event, bench, &bench->process, &err),
		  &err);
	if (bench->out_fd >= 0)
		close(bench->out_fd);
	bench->out_fd = -1;
}

static void an_exit_code_comes_back(void **state)
{
	struct bench *bench = *state;

	spawn_script(bench, (struct hf_process_spec){0}, "exit 37");
	assert_false(hf_process_ended(bench->process));
	run_until_events(bench, 1);
	assert_true(bench->ended.known);
	assert_int_equal(bench->ended.code, 37);
	assert_int_equal(bench->ended.signum, 0);
	/* The loop has reaped the child, so waitpid finds none. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void a_child_has_the_limit_of_files_that_this_program_was_started_with(void **state)
{
	struct bench *bench = *state;
	struct rlimit before, low, raised;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = 123;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	hf_process_raise_files();
	hf_process_raise_files(); /* a second call must not take the raised limit for the original
	                           * one */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &raised), 0);
	assert_int_equal(raised.rlim_cur, before.rlim_max);
	open_out(bench);
	spawn_script(bench, (struct hf_process_spec){0}, "ulimit -Sn");
	run_until_events(bench, 2);
	assert_string_equal(bench->out.data, "123\n");
}

static void a_signal_comes_back(void **state)
{
	struct bench *bench = *state;

	spawn_script(bench, (struct hf_process_spec){0}, "kill -SEGV $$");
	run_until_events(bench, 1);
	assert_int_equal(bench->ended.code, -1);
	assert_int_equal(bench->ended.signum, SIGSEGV);
}

static void env_cwd_and_stdout_are_those_given(void **state)
{
	struct bench *bench = *state;
	const char *const env[] = {"WHO=holdfast", NULL};

	open_out(bench);
	spawn_script(bench, (struct hf_process_spec){.env = env, .cwd = "/proc"},
		     "echo \"$WHO $(pwd) $HOME.\"");
	run_until_events(bench, 2);
	assert_string_equal(bench->out.data, "holdfast /proc .\n");
}

static void the_child_has_three_fds_and_default_signals(void **state)
{
	struct bench *bench = *state;
	/* This fd is not close-on-exec. The child must not get it all the same. */
	int stray = fcntl(0, F_DUPFD, 50);

	assert_true(stray >= 50);
	open_out(bench);
	/* fd 3 is the folder that ls itself opens. */
	spawn_script(bench, (struct hf_process_spec){0},
		     "ls /proc/self/fd; grep -E 'SigBlk|SigIgn' /proc/self/status");
	run_until_events(bench, 2);
	close(stray);
	assert_string_equal(bench->out.data, "0\n1\n2\n3\nSigBlk:\t0000000000000000\n"
					     "SigIgn:\t0000000000000000\n");
}

static void fds_that_are_each_others_targets_do_not_mix(void **state)
{
	struct bench *bench = *state;
	const char *const argv[] = {"/bin/sh", "-c", "cat; echo err >&2", NULL};
	struct hf_error err = {0};
	int in[2], kept0 = fcntl(0, F_DUPFD_CLOEXEC, 60), kept1 = fcntl(1, F_DUPFD_CLOEXEC, 60);

	open_out(bench);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(write(in[1], "in ", 3), 3);
	close(in[1]);
	/* This process's fd 1 becomes fd 0 of the child, and its fd 0 becomes fd 1 and fd 2 of the
	 * child. */
	dup2(in[0], 1);
	dup2(bench->out_fd, 0);
	struct hf_process_spec spec = {.argv = argv, .stdio = {1, 0, 0}};
	int rc = hf_process_spawn(bench->loop, &spec, on_exit_event, bench, &bench->process, &err);
	dup2(kept0, 0);
	dup2(kept1, 1);
	close(kept0);
	close(kept1);
	close(in[0]);
	close(bench->out_fd);
	assert_ok(rc, &err);
	run_until_events(bench, 2);
	assert_string_equal(bench->out.data, "in err\n");
}

static void a_program_that_is_not_there_is_an_error_and_no_child(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	const char *argv[] = {"/no/such/program", NULL};
	struct hf_process_spec spec = {.argv = argv, .stdio = {-1, -1, -1}};

	assert_code(
		hf_process_spawn(bench->loop, &spec, on_exit_event, bench, &bench->process, &err),
		HF_E_NOT_FOUND);
	assert_int_equal(err.code, HF_E_NOT_FOUND);
	assert_non_null(strstr(err.text, "/no/such/program"));
	argv[0] = "no-such-program-anywhere";
	spec.search_path = true;
	assert_code(
		hf_process_spawn(bench->loop, &spec, on_exit_event, bench, &bench->process, &err),
		HF_E_NOT_FOUND);
	argv[0] = "/etc/passwd"; /* a file that exists and is not executable */
	assert_code(
		hf_process_spawn(bench->loop, &spec, on_exit_event, bench, &bench->process, &err),
		HF_E_IO);
	argv[0] = "true";
	spec.cwd = "/no/such/folder";
	assert_code(
		hf_process_spawn(bench->loop, &spec, on_exit_event, bench, &bench->process, &err),
		HF_E_NOT_FOUND);
	assert_non_null(strstr(err.text, "/no/such/folder"));
	assert_null(bench->process);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void a_program_is_found_in_path_of_the_childs_env(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	const char *const argv[] = {"true", NULL};
	const char *const nowhere[] = {"PATH=/proc:relative:", NULL};
	const char *const there[] = {"PATH=/proc::/usr/bin:/bin", NULL};
	struct hf_process_spec spec = {
		.argv = argv, .env = nowhere, .stdio = {-1, -1, -1}, .search_path = true};

	assert_code(
		hf_process_spawn(bench->loop, &spec, on_exit_event, bench, &bench->process, &err),
		HF_E_NOT_FOUND);
	spec.env = there;
	assert_ok(hf_process_spawn(bench->loop, &spec, on_exit_event, bench, &bench->process, &err),
		  &err);
	run_until_events(bench, 1);
	assert_int_equal(bench->ended.code, 0);
}

static void a_kill_reaches_the_process_and_later_ones_are_harmless(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};

	spawn_script(bench, (struct hf_process_spec){0}, "exec tail -f /dev/null");
	assert_ok(hf_process_kill(bench->process, SIGTERM, &err), &err);
	run_until_events(bench, 1);
	assert_int_equal(bench->ended.signum, SIGTERM);
	assert_ok(hf_process_kill(bench->process, SIGTERM, &err), &err);
}

static void a_session_of_its_own_is_killed_as_a_whole(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};

	open_out(bench);
	/* The grandchild holds the pipe open, so the end of file shows that the grandchild has
	 * ended. */
	spawn_script(bench, (struct hf_process_spec){.new_session = true},
		     "tail -f /dev/null & wait");
	assert_int_equal(getsid(hf_process_pid(bench->process)), hf_process_pid(bench->process));
	assert_ok(hf_process_kill_group(bench->process, SIGKILL, &err), &err);
	run_until_events(bench, 2);
	assert_int_equal(bench->ended.signum, SIGKILL);
	assert_code(hf_process_kill_group(bench->process, SIGKILL, &err), HF_E_NOT_FOUND);
}

static void sweep_group_kills_the_rest_of_the_group(void **state)
{
	struct bench *bench = *state;

	open_out(bench);
	spawn_script(bench, (struct hf_process_spec){.new_group = true, .sweep_group = true},
		     "tail -f /dev/null & exit 3");
	run_until_events(bench,
			 2); /* the exit of the child, and the end of file on the pipe that the
	                    * grandchild held */
	assert_int_equal(bench->ended.code, 3);
	assert_true(bench->out_ended);
}

static void a_child_of_this_program_has_its_name(void **state)
{
	static const char *const argv[] = {"/proc/self/exe", SAY_NAME, NULL};
	struct hf_process_spec spec = {.argv = argv};
	struct bench *bench = *state;

	open_out(bench);
	spec.stdio[0] = spec.stdio[2] = HF_PROCESS_STDIO_NULL;
	spec.stdio[1] = bench->out_fd;
	assert_int_equal(
		hf_process_spawn(bench->loop, &spec, on_exit_event, bench, &bench->process, NULL),
		0);
	hf_fd_cleanup(&bench->out_fd);
	run_until_events(bench, 2);
	assert_string_equal(bench->out.data, program_invocation_short_name);
}

static void a_forgotten_child_is_reaped_by_the_loop(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	struct hf_process_id id;

	open_out(bench);
	spawn_script(bench, (struct hf_process_spec){0}, "exec tail -f /dev/null");
	assert_ok(hf_process_id_get(hf_process_pid(bench->process), &id, &err), &err);
	bench->process = hf_process_destroy(bench->process);
	assert_true(hf_process_id_alive(&id));
	hf_reader_pause(bench->reader);
	/* hf_loop_run returns, because a child without a handle does not keep the loop running. */
	hf_loop_run(bench->loop);
	hf_reader_resume(bench->reader);
	assert_ok(hf_process_id_kill(&id, SIGKILL, &err), &err);
	run_until_events(bench, 1); /* end of file on the child's pipe */
	/* The loop reaps the child in a later turn. Until then kill finds the zombie and
	 * succeeds. */
	while (kill(id.pid, 0) == 0) {
		spawn_script(bench, (struct hf_process_spec){0}, "exit 0");
		run_until_events(bench, 1);
		bench->process = hf_process_destroy(bench->process);
	}
	assert_int_equal(errno, ESRCH);
}

static void many_forgotten_children_are_reaped_in_any_order(void **state)
{
	enum { COUNT = 3 };
	struct bench *bench = *state;
	const char *const argv[] = {"/bin/sh", "-c", "exec tail -f /dev/null", NULL};
	struct hf_process_spec spec = {.argv = argv, .stdio = {-1, -1, -1}};
	struct hf_process_id ids[COUNT];
	struct hf_error err = {0};
	/* The child in the middle of the list of orphans ends first. */
	static const int order[COUNT] = {1, 0, 2};

	for (int i = 0; i < COUNT; i++) {
		struct hf_process *process = NULL;
		assert_ok(
			hf_process_spawn(bench->loop, &spec, on_exit_event, bench, &process, &err),
			&err);
		assert_ok(hf_process_id_get(hf_process_pid(process), &ids[i], &err), &err);
		hf_process_destroy(process);
	}
	for (int i = 0; i < COUNT; i++) {
		assert_ok(hf_process_id_kill(&ids[order[i]], SIGKILL, &err), &err);
		/* Another child keeps the loop running until the loop has reaped this one. */
		while (kill(ids[order[i]].pid, 0) == 0) {
			spawn_script(bench, (struct hf_process_spec){0}, "exit 0");
			run_until_events(bench, 1);
			bench->process = hf_process_destroy(bench->process);
		}
	}
}

static void orphans_left_at_the_end_are_let_go(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	struct hf_process_id id;

	spawn_script(bench, (struct hf_process_spec){0}, "exec tail -f /dev/null");
	assert_ok(hf_process_id_get(hf_process_pid(bench->process), &id, &err), &err);
	bench->process = hf_process_destroy(bench->process);
	hf_test_loop_release(&bench->t); /* asserts that no fd is left open */
	assert_true(hf_process_id_alive(&id));
	assert_ok(hf_process_id_kill(&id, SIGKILL, &err), &err);
	assert_int_equal(waitpid(id.pid, NULL, 0), id.pid);
	hf_test_loop_init(&bench->t);
	bench->loop = bench->t.loop;
}

static void a_child_may_end_with_its_parent(void **state)
{
	struct bench *bench = *state;
	int kill_switch[2];

	/* A forked process is the parent here: the child must be killed when that parent ends. */
	open_out(bench);
	assert_int_equal(pipe2(kill_switch, O_CLOEXEC), 0);
	pid_t parent = fork();
	assert_true(parent >= 0);
	if (parent == 0) {
		const char *const argv[] = {"/bin/sh", "-c", "echo up; exec tail -f /dev/null",
					    NULL};
		struct hf_process_spec spec = {
			.argv = argv, .stdio = {-1, bench->out_fd, -1}, .die_with_parent = true};
		struct hf_process *process;
		char c;

		if (hf_process_spawn(bench->loop, &spec, on_exit_event, bench, &process, NULL) < 0)
			_exit(1);
		close(kill_switch[1]);
		(void)!read(kill_switch[0], &c, 1);
		_exit(0);
	}
	close(bench->out_fd);
	bench->out_fd = -1;
	close(kill_switch[0]);
	close(kill_switch[1]);
	run_until_events(bench, 1); /* end of file on the pipe that the grandchild held */
	assert_int_equal(waitpid(parent, NULL, 0), parent);
}

static void destroy_in_callback(void *arg, const struct hf_process_exit *ended)
{
	struct bench *bench = arg;

	bench->process = hf_process_destroy(bench->process);
	count_event(bench);
}

static void a_process_may_be_destroyed_in_its_own_callback(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	const char *const argv[] = {"/bin/true", NULL};
	struct hf_process_spec spec = {.argv = argv, .stdio = {-1, -1, -1}};

	assert_ok(hf_process_spawn(bench->loop, &spec, destroy_in_callback, bench, &bench->process,
				   &err),
		  &err);
	run_until_events(bench, 1);
	assert_null(bench->process);
}

static void an_identity_names_one_process_only(void **state)
{
	struct hf_error err = {0};
	struct hf_process_id id, other;

	assert_ok(hf_process_id_get(getpid(), &id, &err), &err);
	assert_int_equal(id.pid, getpid());
	assert_int_equal(strlen(id.boot_id), 36);
	assert_true(hf_process_id_alive(&id));
	other = id;
	other.start_ticks++;
	assert_false(hf_process_id_alive(&other));
	/* The wrong start time keeps the signal away from this process. */
	assert_code(hf_process_id_kill(&other, SIGKILL, &err), HF_E_NOT_FOUND);
	other = id;
	other.boot_id[0] ^= 1;
	assert_false(hf_process_id_alive(&other));
	assert_code(hf_process_id_get(0, &other, &err), HF_E_NOT_FOUND);
	assert_code(hf_process_id_get(-5, &other, &err), HF_E_NOT_FOUND);
	assert_ok(hf_process_id_kill(&id, 0, &err), &err);
}

static void many_children_each_end_once(void **state)
{
	enum { COUNT = 30 };
	struct bench *bench = *state;
	const char *const argv[] = {"/bin/true", NULL};
	struct hf_process_spec spec = {.argv = argv, .stdio = {-1, -1, -1}};
	struct bench each[COUNT];
	struct hf_error err = {0};

	memset(each, 0, sizeof(each));
	bench->waiting = COUNT;
	for (int i = 0; i < COUNT; i++) {
		each[i].loop = bench->loop;
		/* Keeps `waiting` above 0, so the run ends only when the loop has nothing left to
		 * wait for. */
		each[i].waiting = COUNT;
		assert_ok(hf_process_spawn(bench->loop, &spec, on_exit_event, &each[i],
					   &each[i].process, &err),
			  &err);
	}
	hf_loop_run(bench->loop); /* hf_loop_run returns without a stop once no fd is watched */
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(each[i].exits, 1);
		assert_int_equal(each[i].ended.code, 0);
		hf_process_destroy(each[i].process);
	}
}

static void the_virtual_loop_refuses_processes(void **state)
{
	struct bench *bench = *state;
	struct hf_loop *loop = hf_loop_create_virtual(0);
	const char *const argv[] = {"/bin/true", NULL};
	struct hf_process_spec spec = {.argv = argv};
	struct hf_error err = {0};

	assert_code(hf_process_spawn(loop, &spec, on_exit_event, bench, &bench->process, &err),
		    HF_E_UNSUPPORTED);
	hf_loop_destroy(loop);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		UNIT(an_exit_code_comes_back),
		UNIT(a_child_has_the_limit_of_files_that_this_program_was_started_with),
		UNIT(a_signal_comes_back),
		UNIT(env_cwd_and_stdout_are_those_given),
		UNIT(the_child_has_three_fds_and_default_signals),
		UNIT(fds_that_are_each_others_targets_do_not_mix),
		UNIT(a_program_that_is_not_there_is_an_error_and_no_child),
		UNIT(a_program_is_found_in_path_of_the_childs_env),
		UNIT(a_kill_reaches_the_process_and_later_ones_are_harmless),
		UNIT(a_session_of_its_own_is_killed_as_a_whole),
		UNIT(sweep_group_kills_the_rest_of_the_group),
		UNIT(a_child_of_this_program_has_its_name),
		UNIT(a_forgotten_child_is_reaped_by_the_loop),
		UNIT(many_forgotten_children_are_reaped_in_any_order),
		UNIT(orphans_left_at_the_end_are_let_go),
		UNIT(a_child_may_end_with_its_parent),
		UNIT(a_process_may_be_destroyed_in_its_own_callback),
		UNIT(an_identity_names_one_process_only),
		UNIT(many_children_each_end_once),
		UNIT(the_virtual_loop_refuses_processes),
	};
	if (argc == 2 && strcmp(argv[1], SAY_NAME) == 0)
		return fputs(argv[0], stdout) < 0;
	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
