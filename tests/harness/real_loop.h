/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_REAL_LOOP_H
#define HF_TESTS_HARNESS_REAL_LOOP_H

/* Helpers for tests on a real loop. A test fails if an awaited event does not come within a
 * minute, or if it leaves a file descriptor open. */

#include "harness/test.h"

#include "loop/loop.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

struct hf_test_loop {
	struct hf_loop *loop;
	struct hf_timer *guard;
	size_t fds_before;
};

static inline size_t hf_test_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static inline void hf_test_on_guard(HF_UNUSED void *arg)
{
	/* Abort the program: a failed assertion of cmocka would jump out of the running loop. */
	fprintf(stderr, "nothing happened for a minute\n");
	abort();
}

static inline void hf_test_loop_init(struct hf_test_loop *t)
{
	struct hf_error err = {0};
	struct hf_loop *first = NULL;

	/* Make one loop before counting descriptors: the first loop of a process makes libuv open
	 * two that stay open. */
	assert_ok(hf_loop_create(&first, &err), &err);
	hf_loop_destroy(first);
	t->fds_before = hf_test_count_fds();
	assert_ok(hf_loop_create(&t->loop, &err), &err);
	t->guard = hf_timer_create(t->loop, hf_test_on_guard, NULL);
}

/* Until hf_loop_stop is called. */
static inline void hf_test_loop_run(struct hf_test_loop *t)
{
	hf_timer_arm(t->guard, HF_MINUTE);
	hf_loop_run(t->loop);
	hf_timer_disarm(t->guard);
}

static inline void hf_test_loop_release(struct hf_test_loop *t)
{
	t->guard = hf_timer_destroy(t->guard);
	t->loop = hf_loop_destroy(t->loop);
	assert_int_equal(hf_test_count_fds(), t->fds_before);
}

#endif
