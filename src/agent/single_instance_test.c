/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/single_instance.h"

#include "base/fs.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	char dir[64], state[96];
	int waits;
	int *ends; /* the other agent's lock, which the test releases while this agent waits */
} t;

static int make(void **state)
{
	t.waits = 0;
	t.ends = NULL;
	snprintf(t.dir, sizeof(t.dir), "/tmp/hf-alone-XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	snprintf(t.state, sizeof(t.state), "%s/deeper/state", t.dir);
	return 0;
}

static int unmake(void **state)
{
	struct hf_error err;

	assert_ok(hf_fs_remove_tree(t.dir, &err), &err);
	return 0;
}

static void waits(void *arg)
{
	t.waits++;
	if (t.ends != NULL)
		hf_fd_cleanup(t.ends);
}

static enum hf_single_instance take(hf_time patience, int *ret_fd)
{
	return hf_single_instance_take(t.state, patience, waits, NULL, ret_fd);
}

static void the_first_is_alone_and_the_second_says_so(void **state)
{
	HF_AUTO_FD first = -1;
	HF_AUTO_FD second = -1;

	assert_int_equal(take(0, &first), HF_SINGLE_INSTANCE_YES);
	assert_true(first >= 0);
	assert_int_equal(t.waits, 0);
	assert_int_equal(take(0, &second), HF_SINGLE_INSTANCE_NO);
	assert_int_equal(t.waits, 0);
	assert_int_equal(take(1, &second), HF_SINGLE_INSTANCE_NO);
	assert_int_equal(second, -1);
	assert_int_equal(t.waits, 1);
}

static void an_agent_that_waits_starts_when_the_other_ends(void **state)
{
	HF_AUTO_FD first = -1;
	HF_AUTO_FD second = -1;

	assert_int_equal(take(0, &first), HF_SINGLE_INSTANCE_YES);
	t.ends = &first;
	assert_int_equal(take(HF_DAY, &second), HF_SINGLE_INSTANCE_YES);
	assert_true(second >= 0);
	assert_int_equal(t.waits, 1);
}

static void an_agent_that_was_killed_leaves_no_lock(void **state)
{
	int fd;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(take(0, &fd), HF_SINGLE_INSTANCE_YES);
		assert_int_equal(close(fd), 0);
	}
	assert_int_equal(t.waits, 0);
}

static void where_no_lock_can_be_nothing_is_known(void **state)
{
	HF_AUTO_FD fd = -1;

	assert_int_equal(hf_single_instance_take("/proc/1/none", HF_DAY, waits, NULL, &fd),
			 HF_SINGLE_INSTANCE_UNKNOWN);
	snprintf(t.state, sizeof(t.state), "%s/state", t.dir);
	assert_int_equal(mkdir(t.state, 0700), 0);
	snprintf(t.state, sizeof(t.state), "%s/state/lock", t.dir);
	assert_int_equal(mkdir(t.state, 0700), 0);
	snprintf(t.state, sizeof(t.state), "%s/state", t.dir);
	assert_int_equal(take(HF_DAY, &fd), HF_SINGLE_INSTANCE_UNKNOWN);
	assert_int_equal(fd, -1);
	assert_int_equal(t.waits, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_first_is_alone_and_the_second_says_so),
		T(an_agent_that_waits_starts_when_the_other_ends),
		T(an_agent_that_was_killed_leaves_no_lock),
		T(where_no_lock_can_be_nothing_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
