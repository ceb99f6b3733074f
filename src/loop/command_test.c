/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of hf_command with real programs: input, output limits, timeout, descendants and failed
 * starts. Each tear_down checks that no child is left. */
#include "harness/real_loop.h"
#include "loop/command.h"

#include "base/mem.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

struct bench {
	struct hf_test_loop t;
	struct hf_loop *loop;
	struct hf_command *command;
	unsigned calls;
	int code, exit_code;
	char *output, *errors, *text;
	size_t output_len;
	bool destroy_in_callback;
};

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	hf_test_loop_init(&bench->t);
	bench->loop = bench->t.loop;
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_test_loop_release(&bench->t);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	free(bench->output);
	free(bench->errors);
	free(bench->text);
	free(bench);
	return 0;
}

static void on_result(void *arg, const struct hf_command_result *result)
{
	struct bench *bench = arg;

	bench->calls++;
	bench->code = result->code;
	bench->exit_code = result->exit_code;
	bench->output = hf_xstrndup(result->output, result->output_len);
	bench->output_len = result->output_len;
	bench->errors = hf_xstrdup(result->errors);
	bench->text = hf_xstrdup(result->err->text);
	if (bench->destroy_in_callback)
		hf_command_destroy(bench->command);
	hf_loop_stop(bench->loop);
}

static void run_command(struct bench *bench, struct hf_command_spec spec, const char *script)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct hf_error err = {0};

	spec.argv = argv;
	assert_ok(hf_command_start(bench->loop, &spec, on_result, bench, &bench->command, &err),
		  &err);
	hf_test_loop_run(&bench->t);
	assert_int_equal(bench->calls, 1);
}

static void output_errors_and_code_come_back(void **state)
{
	struct bench *bench = *state;

	run_command(bench, (struct hf_command_spec){0}, "echo out; echo err >&2; exit 4");
	assert_int_equal(bench->code, 0);
	assert_int_equal(bench->exit_code, 4);
	assert_string_equal(bench->output, "out\n");
	assert_string_equal(bench->errors, "err\n");
}

static void input_larger_than_a_pipe_is_fed(void **state)
{
	struct bench *bench = *state;
	size_t len = 300000;
	char *input = hf_xmalloc(len);

	memset(input, 'i', len);
	run_command(bench, (struct hf_command_spec){.input = input, .input_len = len}, "cat");
	assert_int_equal(bench->code, 0);
	assert_int_equal(bench->output_len, len);
	assert_memory_equal(bench->output, input, len);
	free(input);
}

static void a_program_need_not_read_its_input(void **state)
{
	struct bench *bench = *state;
	char input[200000];

	memset(input, 'i', sizeof(input));
	run_command(bench, (struct hf_command_spec){.input = input, .input_len = sizeof(input)},
		    "exec <&-; echo done");
	assert_int_equal(bench->code, 0);
	assert_string_equal(bench->output, "done\n");
}

static void too_much_output_ends_the_command(void **state)
{
	struct bench *bench = *state;

	run_command(bench, (struct hf_command_spec){.output_bytes_max = 1000}, "cat /dev/zero");
	assert_int_equal(bench->code, HF_E_TOO_LARGE);
	assert_int_equal(bench->output_len, 1000);
}

static void the_beginning_of_stderr_is_kept(void **state)
{
	struct bench *bench = *state;

	run_command(bench, (struct hf_command_spec){0},
		    "echo begin >&2; head -c 100000 /dev/zero | tr '\\0' e >&2");
	assert_int_equal(bench->code, 0);
	assert_int_equal(strlen(bench->errors), HF_COMMAND_ERRORS_BYTES_MAX);
	assert_memory_equal(bench->errors, "begin\n", 6);
}

static void a_command_past_its_timeout_is_killed_with_its_children(void **state)
{
	struct bench *bench = *state;

	run_command(bench, (struct hf_command_spec){.timeout = 20 * HF_MS},
		    "tail -f /dev/null & tail -f /dev/null");
	assert_int_equal(bench->code, HF_E_TIMEOUT);
	assert_non_null(strstr(bench->text, "sh"));
}

static void a_child_in_another_session_does_not_delay_the_result(void **state)
{
	struct bench *bench = *state;
	char *end;

	/* The background program keeps stderr open until this test kills it. */
	run_command(
		bench, (struct hf_command_spec){0},
		"left=$(setsid -f sh -c 'echo $$; exec tail -f /dev/null >/dev/null'); echo $left");
	assert_int_equal(bench->code, 0);
	pid_t left = (pid_t)strtol(bench->output, &end, 10);
	assert_true(left > 0 && *end == '\n');
	assert_int_equal(kill(left, SIGKILL), 0);
}

static void a_signal_is_an_error(void **state)
{
	struct bench *bench = *state;

	run_command(bench, (struct hf_command_spec){0}, "kill -TERM $$");
	assert_int_equal(bench->code, HF_E_INTERNAL);
	assert_int_equal(bench->exit_code, -1);
	assert_non_null(strstr(bench->text, "signal 15"));
}

static void a_command_may_be_destroyed_in_its_callback(void **state)
{
	struct bench *bench = *state;

	bench->destroy_in_callback = true;
	run_command(bench, (struct hf_command_spec){0}, "true");
	assert_int_equal(bench->exit_code, 0);
}

static void destroy_kills_and_calls_nothing(void **state)
{
	struct bench *bench = *state;
	const char *const argv[] = {"tail", "-f", "/dev/null", NULL};
	struct hf_command_spec spec = {.argv = argv};
	struct hf_error err = {0};

	assert_ok(hf_command_start(bench->loop, &spec, on_result, bench, &bench->command, &err),
		  &err);
	assert_null(hf_command_destroy(bench->command));
	assert_null(hf_command_destroy(NULL));
	assert_int_equal(bench->calls, 0);
	while (waitpid(-1, NULL, 0) > 0) /* reap the killed child, because tear_down expects none */
		;
}

static void a_program_that_is_not_there_is_an_error(void **state)
{
	struct bench *bench = *state;
	const char *const argv[] = {"no-such-program-anywhere", NULL};
	struct hf_command_spec spec = {.argv = argv, .input = "x", .input_len = 1};
	struct hf_error err = {0};
	struct hf_loop *loop = hf_loop_create_virtual(0);

	assert_code(hf_command_start(bench->loop, &spec, on_result, bench, &bench->command, &err),
		    HF_E_NOT_FOUND);
	assert_null(bench->command);
	assert_code(hf_command_start(loop, &spec, on_result, bench, &bench->command, &err),
		    HF_E_UNSUPPORTED);
	hf_loop_destroy(loop);
}

static void without_fds_a_start_fails_and_leaves_nothing_open(void **state)
{
	struct bench *bench = *state;
	const char *const argv[] = {"true", NULL};
	struct hf_command_spec spec = {.argv = argv, .input = "x", .input_len = 1};
	struct rlimit before, limit;
	struct hf_error err = {0};
	size_t open_now = hf_test_count_fds();
	int rc = -1, refusals = 0;

	/* Each round allows one more open fd, until the start succeeds. So every step of the start
	 * fails once. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	for (rlim_t allowed = 4; rc < 0; allowed++) {
		limit.rlim_cur = allowed;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		rc = hf_command_start(bench->loop, &spec, on_result, bench, &bench->command, &err);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		if (rc == 0)
			break;
		assert_int_equal(rc, HF_E_IO);
		assert_int_equal(hf_test_count_fds(), open_now);
		refusals++;
	}
	assert_true(refusals > 3);
	hf_test_loop_run(&bench->t);
	assert_int_equal(bench->code, 0);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(output_errors_and_code_come_back),
		UNIT(input_larger_than_a_pipe_is_fed),
		UNIT(a_program_need_not_read_its_input),
		UNIT(too_much_output_ends_the_command),
		UNIT(the_beginning_of_stderr_is_kept),
		UNIT(a_command_past_its_timeout_is_killed_with_its_children),
		UNIT(a_child_in_another_session_does_not_delay_the_result),
		UNIT(a_signal_is_an_error),
		UNIT(a_command_may_be_destroyed_in_its_callback),
		UNIT(destroy_kills_and_calls_nothing),
		UNIT(a_program_that_is_not_there_is_an_error),
		UNIT(without_fds_a_start_fails_and_leaves_nothing_open),
	};
	return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
