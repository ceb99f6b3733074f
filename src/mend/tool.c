/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "mend/mend_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/procstat.h"
#include "base/str.h"
#include "loop/pipe.h"
#include "loop/process.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Runs a program of the host with a deadline.  loop/command.h cannot be used: it kills a program that writes much,
 * which could interrupt a reset, and it waits without end for a program that hangs in the kernel.
 */

/* The time from SIGTERM to SIGKILL, and from SIGKILL to the verdict that the tool hangs. */
#define GRACE (10 * HF_SECOND)
#define KEEP (HF_MEND_TEXT_MAX - 1)

struct run {
	struct hf_loop *loop;
	bool ended;
	struct hf_process_exit exit;
	/* The last bytes of the output. */
	char tail[2 * KEEP];
	size_t tail_len;
};

static void on_over(void *arg)
{
	hf_loop_stop(arg);
}

void hf_mend_wait(struct hf_loop *loop, hf_time span)
{
	struct hf_timer *timer = hf_timer_create(loop, on_over, loop);

	hf_timer_arm(timer, span);
	while (hf_timer_armed(timer))
		hf_loop_run(loop);
	hf_timer_destroy(timer);
}

static void on_output(void *arg, const char *bytes, size_t len, int read_error)
{
	struct run *run = arg;

	while (len > 0) {
		size_t part = len < KEEP ? len : KEEP;

		if (run->tail_len + part > sizeof(run->tail)) {
			memmove(run->tail, run->tail + run->tail_len - KEEP, KEEP);
			run->tail_len = KEEP;
		}
		memcpy(run->tail + run->tail_len, bytes, part);
		run->tail_len += part;
		bytes += part;
		len -= part;
	}
}

static void on_end(void *arg, const struct hf_process_exit *exit)
{
	struct run *run = arg;

	run->ended = true;
	run->exit = *exit;
	hf_loop_stop(run->loop);
}

/* Runs the loop until the tool has ended, at most for the span.  Returns whether the tool has ended. */
static bool wait_for_end(struct run *run, hf_time span)
{
	struct hf_timer *timer = hf_timer_create(run->loop, on_over, run->loop);

	hf_timer_arm(timer, span);
	while (!run->ended && hf_timer_armed(timer))
		hf_loop_run(run->loop);
	hf_timer_destroy(timer);
	return run->ended;
}

static bool hangs_in_kernel(pid_t pid)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	HF_AUTOFREE char *path = hf_xasprintf("/proc/%d/stat", (int)pid);
	const char *state;

	if (hf_fs_read(path, &text, NULL) != 0)
		return false;
	state = hf_proc_stat_field(text.data, HF_PROC_STATE);
	return state != NULL && *state == 'D';
}

static void end_tool(struct run *run, struct hf_process *process, hf_time grace,
		     struct hf_mend_tool_result *result)
{
	result->timed_out = true;
	(void)hf_process_kill_group(process, SIGTERM, NULL);
	if (wait_for_end(run, grace))
		return;
	(void)hf_process_kill_group(process, SIGKILL, NULL);
	if (wait_for_end(run, grace))
		return;
	result->hung = true;
	snprintf(result->output, sizeof(result->output), "the tool survived SIGKILL%s",
		 hangs_in_kernel(hf_process_pid(process)) ? ": it waits in the kernel (state D)"
							  : "");
}

/* Keeps the end of the tool's output as one line of printable letters. */
static void keep_output(struct run *run, struct hf_mend_tool_result *result)
{
	size_t len = run->tail_len, from;

	while (len > 0 && strchr(" \n\r\t", run->tail[len - 1]) != NULL)
		len--;
	from = len > KEEP ? len - KEEP : 0;
	for (size_t i = from; i < len; i++)
		if (strchr("\n\r\t", run->tail[i]) != NULL)
			run->tail[i] = ' ';
	hf_str_print(result->output, sizeof(result->output), run->tail + from, len - from);
}

static int start_tool(const struct hf_mend_options *options, const struct hf_mend_tool *tool,
		      int fd, struct run *run, struct hf_process **ret_process,
		      struct hf_error *err)
{
	const char *argv[HF_MEND_TOOL_ARGS_MAX + 5] = {options->self, "mend-node", "--in-root",
						       tool->root, "--"};
	const struct hf_process_spec spec = {
		.argv = argv,
		.cwd = "/",
		.stdio = {HF_PROCESS_STDIO_NULL, fd, fd},
		.new_group = true,
		.sweep_group = true,
		.die_with_parent = true,
	};

	for (size_t i = 0; i < HF_MEND_TOOL_ARGS_MAX; i++)
		argv[5 + i] = tool->argv[i];
	hf_assert(tool->argv[HF_MEND_TOOL_ARGS_MAX - 1] == NULL);
	return hf_process_spawn(options->loop, &spec, on_end, run, ret_process, err);
}

int hf_mend_tool_run(const struct hf_mend_options *options, const struct hf_mend_tool *tool,
		     struct hf_mend_tool_result *ret_result, struct hf_error *err)
{
	struct run run = {.loop = options->loop};
	struct hf_process *process = NULL;
	struct hf_reader *reader = NULL;
	hf_time grace = hf_mend_shorter_of(tool->timeout, GRACE);
	int fds[2];
	int rc = hf_pipe_make(fds, err);

	*ret_result = (struct hf_mend_tool_result){.exit_code = -1};
	if (rc != 0)
		return rc;
	rc = hf_reader_create(options->loop, fds[0], on_output, &run, &reader, err);
	if (rc != 0)
		(void)close(fds[0]);
	if (rc == 0)
		rc = start_tool(options, tool, fds[1], &run, &process, err);
	(void)close(fds[1]);
	if (rc == 0) {
		if (!wait_for_end(&run, tool->timeout))
			end_tool(&run, process, grace, ret_result);
		hf_reader_drain(reader);
		if (run.ended)
			ret_result->exit_code = run.exit.known ? run.exit.code : -1;
		if (!ret_result->hung)
			keep_output(&run, ret_result);
	}
	hf_process_destroy(process);
	hf_reader_destroy(reader);
	return rc;
}

bool hf_mend_tool_exists(const char *root, const char *name)
{
	char path[512];
	struct stat st;

	/* The name may be an absolute link, which leads to its target only after the change of the root folder. */
	for (size_t i = 0; i < HF_MEND_FOLDERS; i++) {
		snprintf(path, sizeof(path), "%s%s/%s", root, hf_mend_folders[i], name);
		if (lstat(path, &st) == 0)
			return true;
	}
	return false;
}
