/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/exec_socket.h"
#include "base/fs.h"
#include "harness/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define POD_UID "0a1b2c3d-0000-4000-8000-0123456789ab"

static struct {
	struct hf_loop *loop;
	struct hf_exec_socket *socket;
	char dir[64], path[96];
	const char *uid; /* pod of each peer; NULL: none */
	bool refuse;
	pid_t asked;
	int opened, told, closed, troubles;
	char noted[HF_PROCESS_WORDS_MAX];
	struct hf_exec_peer *peer; /* the last one */
	struct hf_process_state last;
} t;

static bool identify(void *arg HF_UNUSED, pid_t pid, char ret_uid[HF_REPORT_POD_UID_MAX])
{
	t.asked = pid;
	if (t.uid == NULL)
		return false;
	snprintf(ret_uid, HF_REPORT_POD_UID_MAX, "%s", t.uid);
	return true;
}

static bool on_opened(void *arg HF_UNUSED, struct hf_exec_peer *peer, const char *pod_uid)
{
	assert_string_equal(pod_uid, POD_UID);
	if (t.refuse)
		return false;
	t.opened++;
	t.peer = peer;
	return true;
}

static void on_noted(void *arg HF_UNUSED, const char *pod_uid, const char *words)
{
	assert_string_equal(pod_uid, POD_UID);
	snprintf(t.noted, sizeof(t.noted), "%s", words);
}

static void on_told(void *arg HF_UNUSED, struct hf_exec_peer *peer,
		    const struct hf_process_state *state)
{
	t.told++;
	t.peer = peer;
	t.last = *state;
}

static void on_closed(void *arg HF_UNUSED, struct hf_exec_peer *peer HF_UNUSED)
{
	t.closed++;
}

static void on_trouble(void *arg HF_UNUSED, const char *why HF_UNUSED)
{
	t.troubles++;
}

static int make(void **state HF_UNUSED)
{
	struct hf_exec_socket_options options;
	struct hf_error err;

	memset(&t, 0, sizeof(t));
	snprintf(t.dir, sizeof(t.dir), "/tmp/hf-exec-socket-XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	snprintf(t.path, sizeof(t.path), "%s/s", t.dir);
	assert_ok(hf_loop_create(&t.loop, &err), &err);
	t.uid = POD_UID;
	options = (struct hf_exec_socket_options){.loop = t.loop,
						  .path = t.path,
						  .mode = 0666,
						  .look_every = HF_MS,
						  .identify = identify,
						  .opened = on_opened,
						  .told = on_told,
						  .noted = on_noted,
						  .closed = on_closed,
						  .trouble = on_trouble};
	assert_ok(hf_exec_socket_create(&options, &t.socket, &err), &err);
	return 0;
}

static int unmake(void **state HF_UNUSED)
{
	hf_exec_socket_destroy(t.socket);
	assert_int_equal(t.opened, t.closed);
	hf_loop_destroy(t.loop);
	assert_int_equal(rmdir(t.dir), 0);
	return 0;
}

static int join_socket(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(name.sun_path, t.path, strlen(t.path) + 1);
	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static void tell(int fd, const char *line)
{
	assert_int_equal(send(fd, line, strlen(line), MSG_NOSIGNAL), strlen(line));
}

static void stop(void *arg HF_UNUSED)
{
	hf_loop_stop(t.loop);
}

static void run_for(hf_time span)
{
	struct hf_timer *timer = hf_timer_create(t.loop, stop, NULL);

	hf_timer_arm(timer, span);
	hf_loop_run(t.loop);
	hf_timer_destroy(timer);
}

/* The loop serves sockets before timers. */
static void run_loop(void)
{
	run_for(3 * HF_MS);
}

/* The agent has closed the connection. */
static bool is_closed(int fd)
{
	char text[HF_PROCESS_LINE_BYTES_MAX];
	ssize_t n;

	while ((n = recv(fd, text, sizeof(text), MSG_DONTWAIT)) > 0)
		continue;
	return n == 0 || (n < 0 && errno == ECONNRESET);
}

static void test_states_and_targets(void **state HF_UNUSED)
{
	const struct hf_process_target target = {.start = {true, 2, 0}, .wait_s = 60};
	HF_AUTO_FD fd = join_socket();
	char text[HF_PROCESS_LINE_BYTES_MAX];
	struct stat st;
	ssize_t n;

	tell(fd, "state phase=running ordinal=1");
	run_loop();
	assert_int_equal(t.opened, 1);
	assert_int_equal(t.asked, getpid());
	assert_int_equal(t.told, 1);
	assert_int_equal(t.last.phase, HF_PROCESS_LINE_RUNNING);
	hf_exec_socket_send(t.peer, &target);
	n = recv(fd, text, sizeof(text), MSG_DONTWAIT);
	assert_int_equal(n, strlen("target generation=2 attempt=0 wait=60"));
	assert_memory_equal(text, "target generation=2 attempt=0 wait=60", (size_t)n);
	assert_int_equal(stat(t.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
	hf_fd_cleanup(&fd);
	run_loop();
	assert_int_equal(t.closed, 1);
}

static void test_notes(void **state HF_UNUSED)
{
	HF_AUTO_FD fd = join_socket();

	tell(fd, "note words=log rule 'loss': nan is not finite");
	tell(fd, "note words=");
	run_loop();
	assert_string_equal(t.noted, "log rule 'loss': nan is not finite");
	assert_int_equal(t.told, 0);
}

static void test_broken_lines(void **state HF_UNUSED)
{
	HF_AUTO_FD fd = join_socket();
	char flood[4 * HF_PROCESS_LINE_BYTES_MAX];

	memset(flood, 'x', sizeof(flood));
	tell(fd, "state phase=running");
	tell(fd, "target wait=1");
	assert_int_equal(send(fd, flood, sizeof(flood), 0), sizeof(flood));
	run_loop();
	assert_int_equal(t.told, 0);
	tell(fd, "state phase=running ordinal=1");
	run_loop();
	assert_int_equal(t.told, 1);
}

static void test_strangers(void **state HF_UNUSED)
{
	HF_AUTO_FD none = -1, refused = -1;

	t.uid = NULL;
	none = join_socket();
	run_loop();
	assert_true(is_closed(none));
	t.uid = POD_UID;
	t.refuse = true;
	refused = join_socket();
	run_loop();
	assert_true(is_closed(refused));
	assert_int_equal(t.opened, 0);
}

/* A process connects, hands the connection to another process and ends: its pid does not prove a pod any more. */
static void test_dead_process(void **state HF_UNUSED)
{
	HF_AUTO_FD fd = -1;
	int pair[2];
	pid_t pid;
	char byte = 0;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		int own = join_socket();
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(own));
		memcpy(CMSG_DATA(c), &own, sizeof(own));
		_exit(sendmsg(pair[1], &message, 0) == 1 ? 0 : 1);
	}
	assert_int_equal(recvmsg(pair[0], &message, 0), 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)close(pair[0]);
	(void)close(pair[1]);
	{
		int pidfd = -1;
		socklen_t len = sizeof(pidfd);
		int probe = join_socket();

		/* Kernels before 6.5 cannot tell. */
		if (getsockopt(probe, SOL_SOCKET, 77, &pidfd, &len) != 0) {
			(void)close(probe);
			skip();
		}
		(void)close(pidfd);
		(void)close(probe);
	}
	run_loop();
	assert_true(is_closed(fd));
}

/* A peer that reads nothing, and a peer that floods, are closed; the agent takes lines of a third peer as before. */
static void test_peers_that_do_harm(void **state HF_UNUSED)
{
	const struct hf_process_target target = {.wait_s = 60};
	HF_AUTO_FD deaf = join_socket(), loud = -1, other = -1;
	int closed;

	run_loop();
	for (int i = 0; i < 100000 && t.closed == 0; i++) {
		hf_exec_socket_send(t.peer, &target);
		if (i % 100 == 0)
			run_loop();
	}
	assert_int_equal(t.closed, 1);
	loud = join_socket();
	for (int i = 0; i < 200; i++)
		if (send(loud, "state phase=running ordinal=1", 29, MSG_DONTWAIT | MSG_NOSIGNAL) <
		    0)
			run_loop();
	closed = t.closed;
	for (int i = 0; i < 100 && t.closed == closed; i++) {
		(void)send(loud, "state phase=running ordinal=1", 29, MSG_DONTWAIT | MSG_NOSIGNAL);
		run_loop();
	}
	assert_true(t.closed > closed);
	assert_in_range(t.told, 1, 3 * HF_REPORT_LIMITS_PROCESS);
	/* All peers here are one process, whose lines are limited; in the next second it may send again. */
	run_for(HF_SECOND);
	other = join_socket();
	t.told = 0;
	tell(other, "state phase=running ordinal=2");
	run_loop();
	assert_int_equal(t.told, 1);
}

static void test_too_many(void **state HF_UNUSED)
{
	int fds[HF_EXEC_PEERS_MAX + 10];

	for (size_t i = 0; i < HF_ARRAY_LEN(fds); i++) {
		fds[i] = join_socket();
		assert_true(fds[i] >= 0);
		/* One process may connect 60 times in a second. */
		if (i % 50 == 49) {
			run_for(HF_SECOND);
		}
	}
	run_loop();
	assert_int_equal(t.opened, HF_EXEC_PEERS_MAX);
	assert_true(is_closed(fds[HF_EXEC_PEERS_MAX]));
	assert_false(is_closed(fds[0]));
	for (size_t i = 0; i < HF_ARRAY_LEN(fds); i++)
		(void)close(fds[i]);
	for (int i = 0; i < 20 && t.closed < t.opened; i++)
		run_loop();
	assert_int_equal(t.closed, t.opened);
}

/* Another process with access to the folder has removed the socket's name. */
static void test_name_removed(void **state HF_UNUSED)
{
	HF_AUTO_FD before = join_socket(), after = -1;

	run_loop();
	assert_int_equal(unlink(t.path), 0);
	for (int i = 0; i < 100 && after < 0; i++) {
		run_loop();
		after = join_socket();
	}
	run_loop();
	assert_int_equal(t.opened, 2);
	/* A connection from before the removal goes on. */
	tell(before, "state phase=running ordinal=1");
	run_loop();
	assert_int_equal(t.told, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)
	const struct CMUnitTest tests[] = {
		TEST(test_states_and_targets), TEST(test_notes),
		TEST(test_broken_lines),       TEST(test_strangers),
		TEST(test_dead_process),       TEST(test_peers_that_do_harm),
		TEST(test_too_many),           TEST(test_name_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
