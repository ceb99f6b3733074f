/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/agent_link.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char dir[64], reports[96], path[96];
static struct hf_agent_link link_;
static const struct hf_process_state running = {.phase = HF_PROCESS_LINE_RUNNING, .ordinal = 1};

static int make(void **state HF_UNUSED)
{
	snprintf(dir, sizeof(dir), "/tmp/hf-agent-link-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(reports, sizeof(reports), "%s/agent.sock", dir);
	snprintf(path, sizeof(path), "%s/" HF_EXEC_SOCKET_FILE, dir);
	hf_agent_link_open(&link_, reports);
	return 0;
}

static int unmake(void **state HF_UNUSED)
{
	hf_agent_link_close(&link_);
	(void)unlink(path);
	(void)rmdir(dir);
	return 0;
}

static int listen_as_agent(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(name.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static void test_no_agent(void **state HF_UNUSED)
{
	struct hf_agent_link none;

	hf_agent_link_open(&none, "");
	assert_false(hf_agent_link_connect(&none, 0));
	assert_true(hf_agent_link_retry_ms(&none) == INT64_MAX);
	hf_agent_link_open(&none, "@abstract/name");
	assert_true(hf_agent_link_retry_ms(&none) == INT64_MAX);
}

/* The pauses between tries to connect grow to a second, and begin short again after a target has come. */
static void test_pauses(void **state HF_UNUSED)
{
	int64_t now_ms = 0, pause_ms = 0;

	for (int i = 0; i < 8; i++) {
		assert_false(hf_agent_link_connect(&link_, now_ms));
		pause_ms = hf_agent_link_retry_ms(&link_) - now_ms;
		assert_true(pause_ms <= HF_AGENT_LINK_RETRY_MAX_MS);
		/* Not before its time. */
		assert_false(hf_agent_link_connect(&link_, now_ms + pause_ms - 1));
		assert_true(hf_agent_link_retry_ms(&link_) == now_ms + pause_ms);
		now_ms += pause_ms;
	}
	assert_true(pause_ms == HF_AGENT_LINK_RETRY_MAX_MS);
}

static void test_lines(void **state HF_UNUSED)
{
	char text[HF_PROCESS_LINE_BYTES_MAX], flood[2 * HF_PROCESS_LINE_BYTES_MAX] = "target";
	int listener = listen_as_agent(), peer;
	struct hf_process_target target;
	ssize_t n;

	assert_true(hf_agent_link_connect(&link_, 0));
	peer = accept(listener, NULL, NULL);
	hf_agent_link_send(&link_, &running, 0);
	hf_agent_link_send(&link_, &running, 0);
	n = recv(peer, text, sizeof(text), MSG_DONTWAIT);
	assert_int_equal(n, strlen("state phase=running ordinal=1"));
	assert_memory_equal(text, "state phase=running ordinal=1", (size_t)n);
	/* Once, until it is due again. */
	assert_true(recv(peer, text, sizeof(text), MSG_DONTWAIT) < 0);
	assert_false(hf_agent_link_receive(&link_, 0, &target));
	/* Lines that cannot be parsed, and lines that are too long, are skipped. */
	assert_int_equal(send(peer, "nonsense", 8, 0), 8);
	assert_int_equal(send(peer, flood, sizeof(flood), 0), sizeof(flood));
	assert_int_equal(send(peer, "target wait=7", 13, 0), 13);
	assert_true(hf_agent_link_receive(&link_, 0, &target));
	assert_int_equal(target.wait_s, 7);
	(void)close(peer);
	/* If the agent ends, exec sends its state after the next connect. */
	assert_false(hf_agent_link_receive(&link_, 100, &target));
	assert_false(hf_agent_link_is_connected(&link_));
	assert_true(hf_agent_link_retry_ms(&link_) == 100 + HF_AGENT_LINK_RETRY_MIN_MS);
	assert_true(hf_agent_link_connect(&link_, 200));
	peer = accept(listener, NULL, NULL);
	hf_agent_link_send(&link_, &running, 200);
	assert_true(recv(peer, text, sizeof(text), MSG_DONTWAIT) > 0);
	(void)close(peer);
	(void)close(listener);
}

/* If the agent reads nothing, exec does not block. exec keeps its newest state until a send
 * succeeds. */
static void test_full(void **state HF_UNUSED)
{
	int listener = listen_as_agent(), peer, sent = 0;

	assert_true(hf_agent_link_connect(&link_, 0));
	peer = accept(listener, NULL, NULL);
	for (; sent < 100000; sent++) {
		link_.due = true;
		hf_agent_link_send(&link_, &running, 0);
		if (link_.due)
			break;
	}
	assert_true(sent > 0 && sent < 100000);
	assert_true(hf_agent_link_is_connected(&link_));
	(void)close(peer);
	hf_agent_link_send(&link_, &running, 5);
	assert_false(hf_agent_link_is_connected(&link_));
	(void)close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_agent, make, unmake),
		cmocka_unit_test_setup_teardown(test_pauses, make, unmake),
		cmocka_unit_test_setup_teardown(test_lines, make, unmake),
		cmocka_unit_test_setup_teardown(test_full, make, unmake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
