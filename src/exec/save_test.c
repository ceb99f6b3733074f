/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/save.h"
#include "harness/test.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	struct hf_save save;
	int exec_fd, rank_fd; /* the socket of exec and the socket of a rank */
} t;

static int bind_socket(struct sockaddr_un *ret_name, socklen_t *ret_len)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*ret_len = sizeof(*ret_name);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name.sun_family)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret_name, ret_len), 0);
	return fd;
}

static struct hf_exec_sender sender_;

static int make(void **state HF_UNUSED)
{
	struct sockaddr_un name;
	socklen_t len;

	memset(&t, 0, sizeof(t));
	memset(&sender_, 0, sizeof(sender_));
	t.exec_fd = bind_socket(&name, &len);
	t.rank_fd = bind_socket(&sender_.name, &sender_.len);
	sender_.pid = getpid();
	return 0;
}

static int unmake(void **state HF_UNUSED)
{
	(void)close(t.exec_fd);
	if (t.rank_fd >= 0)
		(void)close(t.rank_fd);
	return 0;
}

static size_t ask(void)
{
	return hf_save_ask(&t.save, "/proc", t.exec_fd);
}

/* The number of requests to save that have arrived at the rank. */
static int count_requests(void)
{
	char text[64];
	int n = 0;

	for (ssize_t len; (len = recv(t.rank_fd, text, sizeof(text), MSG_DONTWAIT)) >= 0; n++) {
		assert_int_equal(len, strlen("holdfast/1 save=1"));
		assert_memory_equal(text, "holdfast/1 save=1", (size_t)len);
	}
	return n;
}

static void test_asked_once(void **state HF_UNUSED)
{
	assert_int_equal(ask(), 0);
	hf_save_can(&t.save, "/proc", &sender_);
	hf_save_can(&t.save, "/proc", &sender_);
	/* The report of a regular checkpoint before the request is no answer to the request. */
	hf_save_did(&t.save, "/proc", getpid());
	assert_int_equal(ask(), 1);
	assert_int_equal(ask(), 1);
	assert_int_equal(count_requests(), 1);
	hf_save_did(&t.save, "/proc", 1);
	assert_int_equal(ask(), 1);
	hf_save_did(&t.save, "/proc", getpid());
	assert_int_equal(ask(), 0);
	hf_save_can(&t.save, "/proc", &sender_);
	assert_int_equal(ask(), 0);
	assert_int_equal(count_requests(), 0);
}

static void test_dead_process(void **state HF_UNUSED)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	sender_.pid = pid;
	hf_save_can(&t.save, "/proc", &sender_);
	assert_int_equal(ask(), 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(ask(), 0);
}

/* exec does not wait for a process whose socket is gone: the process cannot get the request. */
static void test_socket_gone(void **state HF_UNUSED)
{
	hf_save_can(&t.save, "/proc", &sender_);
	(void)close(t.rank_fd);
	t.rank_fd = -1;
	assert_int_equal(ask(), 0);
}

static void test_senders_without_a_name(void **state HF_UNUSED)
{
	sender_.len = sizeof(sender_.name.sun_family);
	hf_save_can(&t.save, "/proc", &sender_);
	sender_.len = sizeof(sender_.name) + 1;
	hf_save_can(&t.save, "/proc", &sender_);
	sender_.pid = 0;
	sender_.len = sizeof(sender_.name);
	hf_save_can(&t.save, "/proc", &sender_);
	assert_int_equal(ask(), 0);
}

/* Processes that have ended make room. */
static void test_many(void **state HF_UNUSED)
{
	for (int i = 0; i < HF_SAVE_PROCESSES_MAX + 10; i++) {
		sender_.pid = 0x3fffff00 + i;
		hf_save_can(&t.save, "/proc", &sender_);
	}
	sender_.pid = getpid();
	hf_save_can(&t.save, "/proc", &sender_);
	assert_int_equal(ask(), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)
	const struct CMUnitTest tests[] = {
		TEST(test_asked_once),  TEST(test_dead_process),
		TEST(test_socket_gone), TEST(test_senders_without_a_name),
		TEST(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
