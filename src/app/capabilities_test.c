/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/capabilities.h"

#include "base/str.h"
#include "harness/test.h"

#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SYSLOG ((uint64_t)1 << CAP_SYSLOG)

/* Returns a set of this process, such as "CapEff:". */
static uint64_t read_set(const char *name)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t set = 0;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (hf_str_has_prefix(line, name))
			set = strtoull(line + strlen(name), NULL, 16);
	if (file != NULL)
		(void)fclose(file);
	return set;
}

/* Runs the function in a child, because a process cannot get its capabilities back. The exit code: 0 if it returned true. */
static int run_in_child(bool (*fn)(void))
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(fn() ? 0 : 1);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static bool keep_syslog(void)
{
	uint64_t before = read_set("CapPrm:");
	struct hf_error err;

	return hf_capabilities_keep(SYSLOG, &err) == 0 &&
	       read_set("CapPrm:") == (before & SYSLOG) &&
	       read_set("CapEff:") == (before & SYSLOG) && read_set("CapInh:") == 0;
}

static bool keep_syslog_in_the_bounding_set(void)
{
	uint64_t before = read_set("CapBnd:");
	struct hf_error err;

	return hf_capabilities_keep(SYSLOG, &err) == 0 &&
	       read_set("CapBnd:") == (before & SYSLOG) &&
	       hf_capabilities_keep(~(uint64_t)0, &err) == 0 &&
	       read_set("CapPrm:") == (read_set("CapBnd:") & SYSLOG);
}

static void all_but_the_kept_capabilities_are_given_up(void **state)
{
	assert_int_equal(run_in_child(keep_syslog), 0);
}

static void children_do_not_get_them_back(void **state)
{
	if ((read_set("CapEff:") >> CAP_SETPCAP & 1) == 0)
		skip(); /* without this capability the bounding set stays as it is */
	assert_int_equal(run_in_child(keep_syslog_in_the_bounding_set), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_but_the_kept_capabilities_are_given_up),
		cmocka_unit_test(children_do_not_get_them_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
