/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "exec/exec_internal.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64], path[96];
static struct hf_exec_link link_;
static struct hf_exec_sender sender_;

static int make(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/hf-link-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	hf_exec_link_open(&link_, path);
	return 0;
}

static int unmake(void **state)
{
	(void)close(link_.agent_fd);
	(void)close(link_.report_fd);
	(void)unlink(path);
	(void)rmdir(dir);
	return 0;
}

static int listen_as_agent(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(name.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

/* Sends a report as a program does: from a socket of its own, to the name with '@' for the NUL. */
static void send_report(const char *text)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	size_t len = strlen(link_.report_name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(name.sun_path + 1, link_.report_name + 1, len - 1);
	if (sendto(fd, text, strlen(text), 0, (struct sockaddr *)&name,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) !=
	    (ssize_t)strlen(text))
		_exit(1);
	(void)close(fd);
}

/* Starts a child that sends the report; the child stays a zombie until the test reaps it. */
static pid_t report(const char *text)
{
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0) {
		send_report(text);
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_status, 0);
	return pid;
}

static bool receive(struct hf_beat *ret_beat)
{
	int left = 100;

	return hf_exec_link_receive(&link_, 0, &left, ret_beat, &sender_);
}

static void an_agent_hears_what_is_sent(void **state)
{
	struct hf_beat beat = {.rank = -1, .has_step = true, .step = 7};
	int agent = listen_as_agent();
	char text[64];
	ssize_t n;

	assert_true(hf_exec_link_send(&link_, &beat));
	n = recv(agent, text, sizeof(text) - 1, 0);
	assert_int_equal(n, 17);
	text[n] = '\0';
	assert_string_equal(text, "holdfast/1 step=7");
	(void)close(agent);
}

static void without_an_agent_nothing_is_waited_for(void **state)
{
	struct hf_beat beat = {.rank = -1};
	struct hf_exec_link none;

	assert_false(hf_exec_link_send(&link_, &beat));
	hf_exec_link_open(&none, "");
	assert_false(hf_exec_link_send(&none, &beat));
	(void)close(none.report_fd);
}

static void an_agent_that_does_not_read_is_not_waited_for(void **state)
{
	struct hf_beat beat = {.rank = -1};
	int agent = listen_as_agent(), sent = 0;

	while (sent < 100000 && hf_exec_link_send(&link_, &beat))
		sent++;
	assert_true(sent > 0 && sent < 100000);
	(void)close(agent);
}

static void an_agent_that_was_renewed_is_found_again(void **state)
{
	struct hf_beat beat = {.rank = -1};
	int agent = listen_as_agent();

	assert_true(hf_exec_link_send(&link_, &beat));
	(void)close(agent);
	assert_false(hf_exec_link_send(&link_, &beat));
	(void)unlink(path);
	agent = listen_as_agent();
	assert_true(hf_exec_link_send(&link_, &beat));
	(void)close(agent);
}

static void reports_of_the_program_come_in_and_nonsense_does_not(void **state)
{
	struct hf_beat beat;
	char large[2 * HF_BEAT_BYTES_MAX];
	pid_t sender;

	assert_false(receive(&beat));
	memset(large, 'x', sizeof(large));
	large[sizeof(large) - 1] = '\0';
	report("holdfast/9 step=1");
	report(large);
	sender = report("holdfast/1 step=5 own_us=10");
	assert_true(receive(&beat));
	assert_int_equal(beat.step, 5);
	assert_int_equal(sender_.pid, sender);
	assert_false(receive(&beat));
	while (waitpid(-1, NULL, 0) > 0)
		continue;
}

/* A report of a process that is no descendant does not count, though the process sees the socket's name (same
 * network namespace, same user). */
static void a_stranger_does_not_speak_for_the_program(void **state)
{
	struct hf_beat beat;
	int go[2], status;
	pid_t exec;

	assert_int_equal(pipe(go), 0);
	exec = fork();
	if (exec == 0) {
		char byte;
		bool heard, own;

		/* This child ran the receiver: its parent is no descendant of it, and the parent's report is in
		 * the queue. */
		(void)!read(go[0], &byte, 1);
		heard = receive(&beat);
		(void)report("holdfast/1 step=2");
		own = receive(&beat) && beat.step == 2;
		_exit(heard ? 1 : own ? 0 : 2);
	}
	send_report("holdfast/1 step=1");
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(exec, &status, 0), exec);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	(void)close(go[0]);
	(void)close(go[1]);
}

/* The test is no descendant of itself, and stands for a child that /proc need not confirm. */
static void a_child_is_known_without_proc(void **state)
{
	struct hf_beat beat;
	int left = 100;

	send_report("holdfast/1 step=1");
	assert_false(receive(&beat));
	send_report("holdfast/1 step=2");
	assert_false(hf_exec_link_receive(&link_, getpid() + 1, &left, &beat, &sender_));
	send_report("holdfast/1 step=3");
	assert_true(hf_exec_link_receive(&link_, getpid(), &left, &beat, &sender_));
	assert_int_equal(beat.step, 3);
}

static void a_flood_has_an_end(void **state)
{
	struct hf_beat beat;
	int left = 2;

	for (int i = 0; i < 3; i++)
		(void)report("nonsense");
	(void)report("holdfast/1 step=9");
	assert_false(hf_exec_link_receive(&link_, 0, &left, &beat, &sender_));
	assert_true(receive(&beat));
	assert_int_equal(beat.step, 9);
	while (waitpid(-1, NULL, 0) > 0)
		continue;
}

static void a_path_that_is_too_long_is_no_agent(void **state)
{
	char longer[200];
	struct hf_exec_link link;

	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	hf_exec_link_open(&link, longer);
	assert_int_equal(link.agent_fd, -1);
	(void)close(link.report_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_agent_hears_what_is_sent, make, unmake),
		cmocka_unit_test_setup_teardown(without_an_agent_nothing_is_waited_for, make,
						unmake),
		cmocka_unit_test_setup_teardown(an_agent_that_does_not_read_is_not_waited_for, make,
						unmake),
		cmocka_unit_test_setup_teardown(an_agent_that_was_renewed_is_found_again, make,
						unmake),
		cmocka_unit_test_setup_teardown(
			reports_of_the_program_come_in_and_nonsense_does_not, make, unmake),
		cmocka_unit_test_setup_teardown(a_stranger_does_not_speak_for_the_program, make,
						unmake),
		cmocka_unit_test_setup_teardown(a_child_is_known_without_proc, make, unmake),
		cmocka_unit_test_setup_teardown(a_flood_has_an_end, make, unmake),
		cmocka_unit_test_setup_teardown(a_path_that_is_too_long_is_no_agent, make, unmake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
