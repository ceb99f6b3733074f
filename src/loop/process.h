/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOOP_PROCESS_H
#define HF_LOOP_PROCESS_H

#include "base/error.h"
#include "loop/loop.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Child processes on the real loop (a virtual one gives HF_E_UNSUPPORTED).  Needs
 * Linux 5.9: a process is held by a pidfd, so no signal sent through this header
 * can reach another process that took over its number.
 */
struct hf_process;

/* A process's name that no other process of this machine ever has: the number alone is
 * used again.  For files that outlive this program. */
struct hf_process_id {
	pid_t pid;
	uint64_t start_ticks; /* since boot, field 22 of /proc/PID/stat */
	char boot_id[37];     /* /proc/sys/kernel/random/boot_id */
};

struct hf_process_exit {
	int code;   /* as passed to exit; -1 where a signal ended it */
	int signum; /* that signal; 0 for an exit */
	bool known; /* false: somebody else waited for it, it is only known that it ended */
};
/* Called once, from the loop; the process is reaped by then. */
typedef void (*hf_process_fn)(void *arg, const struct hf_process_exit *exit);

#define HF_PROCESS_STDIO_NULL (-1) /* /dev/null */

struct hf_process_spec {
	const char *const *argv; /* NULL-terminated; argv[0] is a path, or see search_path */
	const char *const *env;  /* "NAME=value", NULL-terminated; NULL: this process's own */
	const char *cwd;         /* NULL: this process's own */
	/* What becomes fds 0, 1 and 2: an open fd (stays the caller's) or HF_PROCESS_STDIO_NULL. */
	int stdio[3];
	bool search_path;     /* an argv[0] without '/' is looked for in the absolute folders of
				* PATH of the child's env */
	bool new_session;     /* setsid: away from the terminal and its signals */
	bool new_group;       /* a process group of its own, whose number is the pid */
	bool sweep_group;     /* (with one of those two) when it has ended, SIGKILL to what is left
				* of its group, before its number can go to somebody else */
	bool die_with_parent; /* SIGKILL when this program ends */
};

/*
 * The child has the three stdio fds and no other, all signals at their defaults
 * and none blocked.  A program that cannot be started (not found, not executable,
 * no such cwd) is an error here, HF_E_NOT_FOUND or HF_E_IO, and no child.
 */
int hf_process_spawn(struct hf_loop *loop, const struct hf_process_spec *spec, hf_process_fn fn,
		     void *arg, struct hf_process **ret_process, struct hf_error *err)
	HF_MUST_CHECK;

/*
 * Raise this program's limit of open files to the hard one: a plane holds some fds for each pod.
 * Children get the limit that was there before: a program that closes every fd there could be
 * takes its time with a million of them.
 */
void hf_process_raise_files(void);

/* Forgets it: a child that still runs goes on, and is reaped by the loop.  NULL is fine;
 * returns NULL. */
struct hf_process *hf_process_destroy(struct hf_process *process);

pid_t hf_process_pid(const struct hf_process *process);
const struct hf_process_id *hf_process_identity(const struct hf_process *process);
bool hf_process_ended(const struct hf_process *process); /* true from before fn is called */

/* A signal to the process; 0 where it has ended already. */
int hf_process_kill(struct hf_process *process, int signum, struct hf_error *err);
/* A signal to its process group, which must be its own (new_session or new_group).
 * HF_E_NOT_FOUND once the leader was reaped: the number may be somebody else's. */
int hf_process_kill_group(struct hf_process *process, int signum, struct hf_error *err);

/* Identity of a running process; HF_E_NOT_FOUND. */
int hf_process_id_get(pid_t pid, struct hf_process_id *ret_id, struct hf_error *err) HF_MUST_CHECK;
/* Whether exactly this one runs; a zombie does not. */
bool hf_process_id_alive(const struct hf_process_id *id);
/* HF_E_NOT_FOUND where it has ended. */
int hf_process_id_kill(const struct hf_process_id *id, int signum, struct hf_error *err);

#endif
