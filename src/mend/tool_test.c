/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "mend/mend_internal.h"

#include "harness/test.h"
#include "harness/tree.h"
#include "loop/process.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>

/* A script stands for the program that would enter a root folder: no test changes its root folder. */

static char folder[TREE_ROOT_MAX];
static struct hf_mend_options options;
static char self[512];
static bool deaf; /* signals do not reach the tool */
static int last_signal;
static unsigned signals;

int __real_hf_process_kill_group(struct hf_process *process, int signum, struct hf_error *err);
int __wrap_hf_process_kill_group(struct hf_process *process, int signum, struct hf_error *err);
int __wrap_hf_process_kill_group(struct hf_process *process, int signum, struct hf_error *err)
{
	last_signal = signum;
	signals++;
	return deaf ? 0 : __real_hf_process_kill_group(process, signum, err);
}

static int set_up(void **state)
{
	struct hf_error err;

	(void)state;
	deaf = false;
	signals = 0;
	tree_init(folder);
	assert_ok(hf_loop_create(&options.loop, &err), &err);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	options.loop = hf_loop_destroy(options.loop);
	tree_release(folder);
	return 0;
}

static struct hf_mend_tool_result run_script(const char *script, hf_time timeout)
{
	const struct hf_mend_tool tool = {.root = "/nowhere", .argv = {"tool"}, .timeout = timeout};
	struct hf_mend_tool_result result;
	struct hf_error err;

	tree_put(folder, "/self", script);
	tree_path(folder, "/self", self);
	assert_int_equal(chmod(self, 0700), 0);
	options.self = self;
	assert_ok(hf_mend_tool_run(&options, &tool, &result, &err), &err);
	return result;
}

static void the_tool_gets_its_words_and_the_root(void **state)
{
	struct hf_mend_tool_result got = run_script("#!/bin/sh\necho \"$*\"; exit 7\n", HF_MINUTE);

	(void)state;
	assert_string_equal(got.output, "mend-node --in-root /nowhere -- tool");
	assert_int_equal(got.exit_code, 7);
	assert_false(got.timed_out || got.hung);
	assert_int_equal(signals, 0);
}

static void the_end_of_the_output_is_one_printable_line(void **state)
{
	struct hf_mend_tool_result got = run_script(
		"#!/bin/sh\nprintf 'a\\n\\tb\\001\\n' >&2\nprintf 'c\\n\\n'\n", HF_MINUTE);
	char want[HF_MEND_TEXT_MAX];

	(void)state;
	assert_string_equal(got.output, "a  b? c");
	got = run_script("#!/bin/sh\nhead -c 100000 /dev/zero | tr '\\0' x; echo end\n", HF_MINUTE);
	memset(want, 'x', sizeof(want) - 1);
	snprintf(want + sizeof(want) - 4, 4, "end");
	assert_string_equal(got.output, want);
	got = run_script("#!/bin/sh\nexit 0\n", HF_MINUTE);
	assert_string_equal(got.output, "");
}

static void a_tool_at_its_deadline_is_asked_to_end(void **state)
{
	struct hf_mend_tool_result got =
		run_script("#!/bin/sh\ntrap 'echo bye; exit 0' TERM\nwhile :; do sleep 0.1; done\n",
			   500 * HF_MS);

	(void)state;
	assert_true(got.timed_out);
	assert_false(got.hung);
	assert_int_equal(last_signal, SIGTERM);
	/* The shell prints its last word after it has seen the end of sleep. */
	assert_non_null(strstr(got.output, "bye"));
}

static void a_tool_that_no_signal_ends_is_reported_as_hung(void **state)
{
	struct hf_mend_tool_result got;

	(void)state;
	deaf = true;
	got = run_script("#!/bin/sh\nexec sleep 3\n", 200 * HF_MS);
	assert_true(got.timed_out && got.hung);
	assert_int_equal(got.exit_code, -1);
	assert_int_equal(last_signal, SIGKILL);
	assert_int_equal(signals, 2);
	assert_non_null(strstr(got.output, "survived SIGKILL"));
}

static void a_program_that_is_not_there_is_an_error(void **state)
{
	const struct hf_mend_tool tool = {.root = "/", .argv = {"tool"}, .timeout = HF_SECOND};
	struct hf_mend_tool_result result;
	struct hf_error err;

	(void)state;
	options.self = "/nowhere/holdfast";
	assert_code(hf_mend_tool_run(&options, &tool, &result, &err), HF_E_NOT_FOUND);
}

static void a_tool_is_found_by_its_link_too(void **state)
{
	(void)state;
	assert_false(hf_mend_tool_exists(folder, "nvidia-smi"));
	/* The link leads to a file only inside the root folder. */
	tree_link(folder, "/usr/bin/nvidia-smi", "/etc/alternatives/nvidia-smi");
	assert_true(hf_mend_tool_exists(folder, "nvidia-smi"));
	assert_false(hf_mend_tool_exists(folder, "amd-smi"));
	tree_put(folder, "/opt/rocm/bin/amd-smi", "");
	assert_true(hf_mend_tool_exists(folder, "amd-smi"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_tool_gets_its_words_and_the_root),
		TEST(the_end_of_the_output_is_one_printable_line),
		TEST(a_tool_at_its_deadline_is_asked_to_end),
		TEST(a_tool_that_no_signal_ends_is_reported_as_hung),
		TEST(a_program_that_is_not_there_is_an_error),
		TEST(a_tool_is_found_by_its_link_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
