/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/report_limits.h"
#include "harness/test.h"

#include <string.h>

static struct hf_report_limits t;
static hf_time now;
static int asked;

static int setup(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	now = HF_HOUR;
	asked = 0;
	return 0;
}

static bool report(pid_t pid, const char *pod)
{
	if (!hf_report_limits_may_ask(&t, pid, now))
		return false;
	asked++;
	return hf_report_limits_may_hear(&t, pid, pod);
}

static int reports(int processes, int each, const char *pod)
{
	int heard = 0;

	for (int i = 0; i < each; i++)
		for (int p = 0; p < processes; p++)
			heard += report(1000 + p, pod);
	return heard;
}

static void a_process_has_its_share_of_each_second(void **state)
{
	(void)state;
	assert_int_equal(reports(1, 200, "a"), HF_REPORT_LIMITS_PROCESS);
	now += HF_SECOND;
	assert_int_equal(reports(1, 200, "a"), HF_REPORT_LIMITS_PROCESS);
}

static void many_processes_of_a_pod_leave_room_for_the_others(void **state)
{
	(void)state;
	/* More processes send than the node has reports to take, and than have a count of their own. */
	assert_int_equal(reports(75, HF_REPORT_LIMITS_PROCESS, "loud"), HF_REPORT_LIMITS_POD);
	/* No further look-up finds the pod of these processes: the pod is over its limit. */
	assert_int_equal(asked, HF_REPORT_LIMITS_POD);
	assert_true(report(7, "quiet"));
	now += HF_SECOND;
	assert_int_equal(reports(3000, 2, "loud"), HF_REPORT_LIMITS_POD);
	assert_true(report(7, "quiet"));
	/* In the same second the pid goes to a process of another pod, which is not over its limit. */
	now += HF_SECOND;
	assert_true(report(1000, "loud"));
	assert_true(report(1000, "quiet"));
}

static void a_node_has_an_end(void **state)
{
	char pod[] = "pod-a";
	int heard = 0;

	(void)state;
	for (int i = 0; i < 12; i++, pod[4]++)
		for (int p = 0; p < 20; p++)
			for (int n = 0; n < 50; n++)
				heard += report((pid_t)(100 * i + p + 1), pod);
	assert_int_equal(heard, HF_REPORT_LIMITS_NODE);
	assert_true(asked <= HF_REPORT_LIMITS_LOOKUPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_process_has_its_share_of_each_second, setup),
		cmocka_unit_test_setup(many_processes_of_a_pod_leave_room_for_the_others, setup),
		cmocka_unit_test_setup(a_node_has_an_end, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
