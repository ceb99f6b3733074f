/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Runs a program to its end: starts it in a process group of its own, feeds stdin, collects stdout
 * and stderr up to a maximum, and enforces a timeout. The result callback runs once, after the
 * program has ended. In every case the rest of the group is killed. */
#include "loop/command.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "loop/loop_internal.h"
#include "loop/pipe.h"
#include "loop/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct hf_command {
	struct hf_loop *loop;
	hf_command_fn fn;
	void *arg;
	char *name;
	struct hf_process *process;
	struct hf_timer *timer;
	struct hf_reader *out, *errs;
	struct hf_strbuf output, errors;
	int in_fd;
	struct hf_io *in_io;
	struct hf_strbuf input;
	size_t input_sent;
	struct hf_error err; /* code != 0: the reason why the group was killed */
};

static void close_input(struct hf_command *command)
{
	command->in_io = hf_io_destroy(command->in_io);
	hf_fd_cleanup(&command->in_fd);
}

static void on_writable(void *arg, unsigned events)
{
	struct hf_command *command = arg;
	size_t left = command->input.len - command->input_sent;
	ssize_t len = 0;

	if (left > 0)
		len = write(command->in_fd, command->input.data + command->input_sent, left);
	if (len > 0)
		command->input_sent += (size_t)len;
	/* A program may ignore its input. After EPIPE no more input is written, and the command
	 * goes on. */
	if (command->input_sent == command->input.len ||
	    (len < 0 && errno != EAGAIN && errno != EINTR))
		close_input(command);
}

static void kill_group(struct hf_command *command)
{
	(void)hf_process_kill_group(command->process, SIGKILL, NULL);
}

static void on_output(void *arg, const char *bytes, size_t len, int read_error)
{
	struct hf_command *command = arg;

	hf_strbuf_add(&command->output, bytes, len);
	if (command->err.code == 0 &&
	    hf_strbuf_ok(&command->output, command->name, &command->err) < 0) {
		hf_reader_pause(command->out);
		kill_group(command);
	}
}

static void on_errors(void *arg, const char *bytes, size_t len, int read_error)
{
	struct hf_command *command = arg;

	hf_strbuf_add(&command->errors, bytes, len); /* bytes beyond the maximum are dropped */
}

static void on_timeout(void *arg)
{
	struct hf_command *command = arg;

	hf_error_set(&command->err, HF_E_TIMEOUT, "'%s' was killed: it still ran at its timeout",
		     command->name);
	kill_group(command);
}

static void command_free(struct hf_command *command)
{
	hf_process_destroy(command->process);
	hf_timer_destroy(command->timer);
	hf_reader_destroy(command->out);
	hf_reader_destroy(command->errs);
	close_input(command);
	hf_strbuf_release(&command->output);
	hf_strbuf_release(&command->errors);
	hf_strbuf_release(&command->input);
	free(command->name);
	free(command);
}

static void on_ended(void *arg, const struct hf_process_exit *ended)
{
	struct hf_command *command = arg;

	/* Do not wait for the end of the streams: a descendant in another session may hold them
	 * open for ever. */
	hf_reader_drain(command->out);
	hf_reader_drain(command->errs);
	if (command->err.code == 0 && !ended->known)
		hf_error_set(&command->err, HF_E_INTERNAL,
			     "the exit status of '%s' is unknown: another wait() took it",
			     command->name);
	else if (command->err.code == 0 && ended->signum != 0)
		hf_error_set(&command->err, HF_E_INTERNAL, "'%s' was killed by signal %d",
			     command->name, ended->signum);

	struct hf_command_result result = {
		.code = command->err.code,
		.err = &command->err,
		.exit_code = ended->code,
		.output = command->output.data,
		.output_len = command->output.len,
		.errors = command->errors.data,
	};
	hf_command_fn fn = command->fn;
	command->fn = NULL; /* hf_command_destroy inside fn then returns at once; command_free
	                     * below frees the command */
	fn(command->arg, &result);
	command_free(command);
}

/* The child's ends of the pipes. This process closes them after the spawn. */
struct child_ends {
	int fds[3];
};

static void child_ends_release(struct child_ends *ends)
{
	for (int i = 0; i < 3; i++) {
		if (ends->fds[i] >= 0)
			close(ends->fds[i]);
		ends->fds[i] = HF_PROCESS_STDIO_NULL;
	}
}

static int open_stream(struct hf_command *command, hf_reader_fn fn, struct hf_reader **ret_reader,
		       int *ret_child_end, struct hf_error *err)
{
	int fds[2];
	int rc = hf_pipe_make(fds, err);

	if (rc < 0)
		return rc;
	rc = hf_reader_create(command->loop, fds[0], fn, command, ret_reader, err);
	if (rc < 0) {
		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	*ret_child_end = fds[1];
	return 0;
}

static int open_input(struct hf_command *command, int *ret_child_end, struct hf_error *err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return hf_error_errno(err, errno, "cannot make a pipe");
	*ret_child_end = fds[0];
	command->in_fd = fds[1];
	int rc = hf_io_create(command->loop, fds[1], on_writable, command, &command->in_io, err);
	if (rc == 0)
		hf_io_want(command->in_io, HF_IO_WRITE);
	return rc;
}

static int start_child(struct hf_command *command, const struct hf_command_spec *spec,
		       struct child_ends *ends, struct hf_error *err)
{
	int rc = open_stream(command, on_output, &command->out, &ends->fds[1], err);

	if (rc == 0)
		rc = open_stream(command, on_errors, &command->errs, &ends->fds[2], err);
	if (rc == 0 && spec->input_len > 0)
		rc = open_input(command, &ends->fds[0], err);
	if (rc < 0)
		return rc;
	struct hf_process_spec child = {
		.argv = spec->argv,
		.env = spec->env,
		.cwd = spec->cwd,
		.stdio = {ends->fds[0], ends->fds[1], ends->fds[2]},
		.search_path = true,
		.new_group = true,
		.sweep_group = true,
		.die_with_parent = true,
	};
	return hf_process_spawn(command->loop, &child, on_ended, command, &command->process, err);
}

int hf_command_start(struct hf_loop *loop, const struct hf_command_spec *spec, hf_command_fn fn,
		     void *arg, struct hf_command **ret_command, struct hf_error *err)
{
	struct child_ends ends = {.fds = {-1, -1, -1}};
	struct hf_command *command;

	hf_assert(fn && spec->argv && spec->argv[0]);
	if (!hf_loop_is_real(loop))
		return hf_error_set(err, HF_E_UNSUPPORTED, "a virtual loop runs no programs");
	command = hf_xcalloc(1, sizeof(*command));
	command->loop = loop;
	command->fn = fn;
	command->arg = arg;
	command->in_fd = -1;
	command->name = hf_xstrdup(spec->argv[0]);
	hf_strbuf_init(&command->output, spec->output_bytes_max ? spec->output_bytes_max
								: HF_COMMAND_OUTPUT_BYTES_MAX);
	hf_strbuf_init(&command->errors, HF_COMMAND_ERRORS_BYTES_MAX);
	hf_strbuf_init(&command->input, spec->input_len);
	hf_strbuf_add(&command->input, spec->input, spec->input_len);
	command->timer = hf_timer_create(loop, on_timeout, command);
	int rc = start_child(command, spec, &ends, err);
	child_ends_release(&ends);
	if (rc < 0) {
		hf_command_destroy(command);
		return rc;
	}
	if (spec->timeout > 0)
		hf_timer_arm(command->timer, spec->timeout);
	if (ret_command)
		*ret_command = command;
	return 0;
}

struct hf_command *hf_command_destroy(struct hf_command *command)
{
	if (!command || !command->fn)
		return NULL;
	if (command->process)
		kill_group(command);
	command_free(command);
	return NULL;
}
