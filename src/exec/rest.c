/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/rest.h"

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

struct look {
	pid_t parent;
	char state;
	long threads;
};

/* "PID (NAME) STATE PARENT …": what the process calls itself may hold anything, so from the last ')'. */
static bool look(const char *proc, pid_t pid, struct look *ret_look)
{
	char path[128], text[1024], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%d/stat", proc, (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || at[2] == '\0')
		return false;
	ret_look->state = at[2];
	at += 3;
	ret_look->parent = (pid_t)strtol(at, &at, 10);
	/* Fields 5 to 19 are not ours to know; 20 is the number of threads. */
	for (int field = 5; field < 20; field++)
		(void)strtoll(at, &at, 10);
	ret_look->threads = strtol(at, &at, 10);
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

/* One walk over all processes; true: it found one more. */
static bool walk(const char *proc, DIR *all, pid_t self)
{
	const struct dirent *entry;
	bool more = false;

	rewinddir(all);
	while ((entry = readdir(all)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct look l;

		if (pid <= 0 || pid == self || is_found(pid) || !look(proc, pid, &l) || !runs(&l) ||
		    (l.parent != self && !is_found(l.parent)) || !add(pid))
			continue;
		(void)kill(pid, SIGKILL);
		more = true;
	}
	return more;
}

size_t hf_rest_kill(const char *proc)
{
	pid_t self = getpid();
	struct look l;
	DIR *all;

	/* Whoever is the first of its namespace reaches all of it, and none is started meanwhile. */
	if (self == 1)
		(void)kill(-1, SIGKILL);
	found.len = 0;
	all = opendir(proc);
	/* One that does not know us speaks of other processes. */
	if (!all || !look(proc, self, &l) || l.parent != getppid()) {
		if (all)
			(void)closedir(all);
		return HF_REST_UNKNOWN;
	}
	while (walk(proc, all, self))
		continue;
	(void)closedir(all);
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
