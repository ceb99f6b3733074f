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

/* Deeper no launcher goes. */
#define DEPTH_MAX 256
/* More than these are found once the first are gone. */
#define FOUND_MAX 4096

/* Those of our descendants that still run; in order.  From the start, so that it needs no memory then. */
static struct {
	pid_t pids[FOUND_MAX];
	size_t len;
} found;

static union {
	struct dirent64 first; /* where it begins */
	char bytes[8192];
} names;

struct look {
	pid_t parent;
	char state;
	long threads;
	uint64_t started;
};

static bool look(const char *proc, pid_t pid, struct look *ret_look)
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
	ret_look->state = *hf_proc_stat_field(text, HF_PROC_STATE);
	ret_look->parent = (pid_t)strtol(hf_proc_stat_field(text, HF_PROC_PARENT), NULL, 10);
	ret_look->threads = strtol(threads, NULL, 10);
	started = hf_proc_stat_field(text, HF_PROC_START_TICKS);
	ret_look->started = started != NULL ? strtoull(started, NULL, 10) : 0;
	return true;
}

/* Where it stands among those found, or would. */
static size_t place(pid_t pid)
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
	size_t at = place(pid);

	return at < found.len && found.pids[at] == pid;
}

static bool add(pid_t pid)
{
	size_t at = place(pid);

	if (found.len == FOUND_MAX)
		return false;
	memmove(&found.pids[at + 1], &found.pids[at], (found.len - at) * sizeof(pid_t));
	found.pids[at] = pid;
	found.len++;
	return true;
}

/* What has ended and was not waited for writes nothing; one whose first thread alone has ended does. */
static bool runs(const struct look *l)
{
	return (l->state != 'Z' && l->state != 'X') || l->threads > 1;
}

/* It is one more that is below us, and runs. */
static bool end_it(const char *proc, pid_t pid, pid_t self)
{
	struct look l;

	if (pid <= 0 || pid == self || is_found(pid) || !look(proc, pid, &l) || !runs(&l) ||
	    (l.parent != self && !is_found(l.parent)) || !add(pid))
		return false;
	(void)kill(pid, SIGKILL);
	return true;
}

/* One walk over all processes; true: it found one more.  Not by opendir, which asks for memory. */
static bool walk(const char *proc, int all, pid_t self)
{
	bool more = false;
	ssize_t len;

	(void)lseek(all, 0, SEEK_SET);
	while ((len = getdents64(all, names.bytes, sizeof(names.bytes))) > 0) {
		for (ssize_t at = 0; at < len;) {
			const struct dirent64 *name = (const void *)(names.bytes + at);

			more |= end_it(proc, (pid_t)strtol(name->d_name, NULL, 10), self);
			at += name->d_reclen;
		}
	}
	return more;
}

size_t hf_rest_kill(const char *proc)
{
	pid_t self = getpid();
	struct look l;
	int all;

	/* Whoever is the first of its namespace reaches all of it, and none is started meanwhile. */
	if (self == 1)
		(void)kill(-1, SIGKILL);
	found.len = 0;
	/* One that does not know us speaks of other processes. */
	if (!look(proc, self, &l) || l.parent != getppid())
		return HF_REST_UNKNOWN;
	all = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (all < 0)
		return HF_REST_UNKNOWN;
	while (walk(proc, all, self))
		continue;
	(void)close(all);
	return found.len;
}

bool hf_rest_is_below(const char *proc, pid_t pid)
{
	pid_t self = getpid();
	struct look l;

	for (int i = 0; i < DEPTH_MAX && pid > 1 && pid != self; i++) {
		if (!look(proc, pid, &l))
			return false;
		if (l.parent == self)
			return true;
		pid = l.parent;
	}
	return false;
}

uint64_t hf_rest_started(const char *proc, pid_t pid)
{
	struct look l;

	return look(proc, pid, &l) && runs(&l) ? l.started : 0;
}
