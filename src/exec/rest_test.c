/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/rest.h"

#include "harness/test.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* A pipe for pids: each process of a test writes its own pid when it is ready. */
static int tell[2];

/* opendir() fails, as without memory. */
DIR *__wrap_opendir(const char *name);
DIR *__wrap_opendir(const char *name)
{
	errno = ENOMEM;
	return NULL;
}

static int setup(void **state)
{
	(void)state;
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	return pipe(tell);
}

static int teardown(void **state)
{
	(void)state;
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	(void)close(tell[0]);
	(void)close(tell[1]);
	return 0;
}

static void stay(void)
{
	pid_t self = getpid();

	(void)!write(tell[1], &self, sizeof(self));
	for (;;)
		(void)pause();
}

static pid_t told(void)
{
	pid_t pid = 0;

	assert_int_equal(read(tell[0], &pid, sizeof(pid)), sizeof(pid));
	return pid;
}

/* Waits until the process has ended; it may stay as a zombie. */
static void await_end(pid_t pid)
{
	siginfo_t info;

	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_status, SIGKILL);
}

static void sessions_and_grandchildren_end(void **state)
{
	pid_t pids[3];

	(void)state;
	if (fork() == 0) {
		if (fork() == 0) {
			(void)setsid();
			if (fork() == 0)
				stay();
			stay();
		}
		stay();
	}
	for (int i = 0; i < 3; i++)
		pids[i] = told();
	assert_int_equal(hf_rest_kill("/proc"), 3);
	/* The orphans become children of the test, as exec asks the kernel to do (PR_SET_CHILD_SUBREAPER). */
	for (int i = 0; i < 3; i++)
		while (waitpid(pids[i], NULL, 0) != pids[i])
			assert_int_equal(errno, ECHILD);
	assert_int_equal(hf_rest_kill("/proc"), 0);
}

/* The stacks of all ranks are asked for while the launcher stands still. */
static void all_but_one_get_the_signal(void **state)
{
	pid_t launcher, rank, found[2];
	siginfo_t info;

	(void)state;
	launcher = fork();
	if (launcher == 0) {
		if (fork() == 0)
			stay();
		stay();
	}
	found[0] = told();
	found[1] = told();
	rank = found[found[0] == launcher];
	assert_int_equal(hf_rest_signal("/proc", launcher, 0), 1);
	assert_int_equal(hf_rest_signal("/proc", launcher, SIGUSR1), 1);
	assert_int_equal(waitid(P_PID, (id_t)launcher, &info, WEXITED | WNOWAIT | WNOHANG), 0);
	for (int i = 0; i < 1000 && hf_rest_signal("/proc", launcher, 0) > 0; i++)
		(void)poll(NULL, 0, 10);
	assert_int_equal(hf_rest_signal("/proc", launcher, 0), 0);
	assert_int_equal(kill(launcher, 0), 0);
	assert_int_not_equal(rank, launcher);
	assert_int_equal(hf_rest_kill("/proc"), 1);
	await_end(launcher);
}

/* The tracer does not reap its zombie, so the test cannot either: a call that waits for the process would not
 * return. */
static void a_traced_process_delays_no_kill(void **state)
{
	pid_t traced, other, tracer;

	(void)state;
	traced = fork();
	if (traced == 0) {
		(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		stay();
	}
	assert_int_equal(told(), traced);
	tracer = fork();
	if (tracer == 0) {
		if (ptrace(PTRACE_SEIZE, traced, NULL, NULL) != 0)
			_exit(1);
		stay();
	}
	assert_int_equal(told(), tracer);
	other = fork();
	if (other == 0)
		stay();
	assert_int_equal(told(), other);
	assert_int_equal(hf_rest_kill("/proc"), 3);
	await_end(other);
	await_end(tracer);
	await_end(traced);
	/* The process has ended but is not reaped yet: it counts as ended, and has written nothing more. */
	assert_int_equal(hf_rest_kill("/proc"), 0);
}

static void what_has_ended_does_not_count(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(hf_rest_kill("/proc"), 0);
}

static void other_folders_tell_nothing(void **state)
{
	(void)state;
	assert_true(hf_rest_kill("/proc/none") == HF_REST_UNKNOWN);
	assert_true(hf_rest_kill("/") == HF_REST_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sessions_and_grandchildren_end, setup, teardown),
		cmocka_unit_test_setup_teardown(all_but_one_get_the_signal, setup, teardown),
		cmocka_unit_test_setup_teardown(a_traced_process_delays_no_kill, setup, teardown),
		cmocka_unit_test_setup_teardown(what_has_ended_does_not_count, setup, teardown),
		cmocka_unit_test_setup_teardown(other_folders_tell_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
