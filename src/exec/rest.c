/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/rest.h"

#include "base/procstat.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The processes below exec: ends all of them, and asks about one of them.
 *
 * Input: /proc.  Output: SIGKILL to each descendant that still runs, whatever its process group and
 * session are; whether a process is a descendant; when it started.
 *
 * exec is a child subreaper, so a descendant that loses its parent becomes a child of exec and is
 * found again.  hf_rest_kill reads the list of processes until a reading finds no new descendant:
 * a process may fork while the list is read.
 */

/* Most parents that exec follows from a process up to itself. */
#define DEPTH_MAX 256
/* Limit of descendants found in a call. When the found processes have ended, the next call finds
 * more. */
#define FOUND_MAX 4096

/* The descendants that run and got SIGKILL, by pid.  Static, so that the search allocates nothing. */
static struct {
	pid_t pids[FOUND_MAX];
	size_t len;
} found;

static union {
	struct dirent64 first; /* for the alignment */
	char bytes[8192];
} names;

struct process {
	pid_t parent;
	char state;
	long threads;
	uint64_t started;
};

static bool read_process(const char *proc, pid_t pid, struct process *ret_process)
{
	char path[128], text[1024];
	const char *threads, *started;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%d/stat", proc, (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	threads = hf_proc_stat_field(text, HF_PROC_THREADS);
	if (!threads)
		return false;
	ret_process->state = *hf_proc_stat_field(text, HF_PROC_STATE);
	ret_process->parent = (pid_t)strtol(hf_proc_stat_field(text, HF_PROC_PARENT), NULL, 10);
	ret_process->threads = strtol(threads, NULL, 10);
	started = hf_proc_stat_field(text, HF_PROC_START_TICKS);
	ret_process->started = started != NULL ? strtoull(started, NULL, 10) : 0;
	return true;
}

/* The index of the pid in `found`, or the index at which it would be inserted. */
static size_t find_place(pid_t pid)
{
	size_t low = 0, high = found.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (found.pids[middle] < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_found(pid_t pid)
{
	size_t at = find_place(pid);

	return at < found.len && found.pids[at] == pid;
}

static bool add_found(pid_t pid)
{
	size_t at = find_place(pid);

	if (found.len == FOUND_MAX)
		return false;
	memmove(&found.pids[at + 1], &found.pids[at], (found.len - at) * sizeof(pid_t));
	found.pids[at] = pid;
	found.len++;
	return true;
}

/* A zombie has ended, unless threads other than its first still run. */
static bool is_running(const struct process *process)
{
	return (process->state != 'Z' && process->state != 'X') || process->threads > 1;
}

/* The signal to send, and the descendant that does not get the signal. */
static struct {
	int signum;
	pid_t except;
} order;

/* Sends the signal to the process if it is a descendant that runs and is not in `found` yet.  Returns whether it is. */
static bool signal_if_below(const char *proc, pid_t pid, pid_t self)
{
	struct process process;

	if (pid <= 0 || pid == self || is_found(pid) || !read_process(proc, pid, &process) ||
	    !is_running(&process) || (process.parent != self && !is_found(process.parent)) ||
	    !add_found(pid))
		return false;
	if (pid != order.except && order.signum != 0)
		(void)kill(pid, order.signum);
	return true;
}

/* Reads the list of all processes once, and signals the descendants in it.  Returns whether it found a new one.
 * opendir() is not used, since it allocates. */
static bool signal_in_list(const char *proc, int list, pid_t self)
{
	bool more = false;
	ssize_t len;

	(void)lseek(list, 0, SEEK_SET);
	while ((len = getdents64(list, names.bytes, sizeof(names.bytes))) > 0) {
		for (ssize_t at = 0; at < len;) {
			const struct dirent64 *name = (const void *)(names.bytes + at);

			more |= signal_if_below(proc, (pid_t)strtol(name->d_name, NULL, 10), self);
			at += name->d_reclen;
		}
	}
	return more;
}

static size_t signal_all(const char *proc, pid_t self)
{
	struct process process;
	int list;

	found.len = 0;
	/* If /proc is of another PID namespace, it lists other processes. */
	if (!read_process(proc, self, &process) || process.parent != getppid())
		return HF_REST_UNKNOWN;
	list = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (list < 0)
		return HF_REST_UNKNOWN;
	while (signal_in_list(proc, list, self))
		continue;
	(void)close(list);
	return found.len;
}

size_t hf_rest_kill(const char *proc)
{
	pid_t self = getpid();

	/* The first process of a PID namespace reaches all others with one call. */
	if (self == 1)
		(void)kill(-1, SIGKILL);
	order.signum = SIGKILL;
	order.except = 0;
	return signal_all(proc, self);
}

size_t hf_rest_signal(const char *proc, pid_t except, int signum)
{
	size_t n;

	order.signum = signum;
	order.except = except;
	n = signal_all(proc, getpid());
	return n != HF_REST_UNKNOWN && is_found(except) ? n - 1 : n;
}

bool hf_rest_is_below(const char *proc, pid_t pid)
{
	pid_t self = getpid();
	struct process process;

	for (int i = 0; i < DEPTH_MAX && pid > 1 && pid != self; i++) {
		if (!read_process(proc, pid, &process))
			return false;
		if (process.parent == self)
			return true;
		pid = process.parent;
	}
	return false;
}

uint64_t hf_rest_started(const char *proc, pid_t pid)
{
	struct process process;

	return read_process(proc, pid, &process) && is_running(&process) ? process.started : 0;
}
