/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBELET_RUNTIME_SELF_TEST_H
#define HF_KUBELET_RUNTIME_SELF_TEST_H

/* Helpers for tests that start themselves as a shim. The main function of such a test calls
 * hf_shim_helper_main before anything else. */

#include "harness/test.h"

#include "base/fs.h"

#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static inline pid_t spawn(char *const argv[], const int stdio[3])
{
	char path[] = "PATH=/usr/bin:/bin", *const environment[] = {path, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;

	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(posix_spawn_file_actions_adddup2(&actions, stdio[i], i), 0);
	assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environment), 0);
	(void)posix_spawn_file_actions_destroy(&actions);
	return pid;
}

static inline int wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline bool is_gone(pid_t pid)
{
	char path[64], state = '?';
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (hf_fs_read(path, &text, NULL) != 0)
		return true;
	if (strrchr(text.data, ')'))
		state = strrchr(text.data, ')')[2];
	return state == 'Z' || state == 'X';
}

/* Waits until the process has ended; another process may still have to reap it. */
static inline void wait_gone(pid_t pid)
{
	(void)alarm(60);
	while (!is_gone(pid))
		(void)poll(NULL, 0, 5);
	(void)alarm(0);
}

#endif
