/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_REAL_LOOP_H
#define HF_TESTS_HARNESS_REAL_LOOP_H

/* For tests on the real loop: they wait for events, fail where none comes, and leave no fd
 * behind. */

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
	/* Not a failed assertion: that would jump out of the loop and leave it running. */
	fprintf(stderr, "nothing happened for a minute\n");
	abort();
}

static inline void hf_test_loop_init(struct hf_test_loop *t)
{
	struct hf_error err = {0};
	struct hf_loop *first = NULL;

	/* The first loop of a process makes libuv open two fds that stay. */
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
