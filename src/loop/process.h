/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOOP_PROCESS_H
#define HF_LOOP_PROCESS_H

#include "base/error.h"
#include "loop/loop.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Child processes on the real loop; a virtual loop returns HF_E_UNSUPPORTED. Needs Linux 5.9. Each
 * process is held by a pidfd, so a signal sent through this header cannot reach another process
 * that reused the pid. */
struct hf_process;

/* A unique name of a process on this machine, for files that outlive this program. A pid alone is
 * not unique, because the kernel uses pids again. */
struct hf_process_id {
	pid_t pid;
	uint64_t start_ticks; /* start time in clock ticks since boot, field 22 of /proc/PID/stat */
	char boot_id[37];     /* id of the boot, from /proc/sys/kernel/random/boot_id */
};

struct hf_process_exit {
	int code;   /* exit code; -1 if a signal ended the process */
	int signum; /* the signal that ended the process; 0 after an exit */
	bool known; /* false: another wait() reaped the child, so code and signal are unknown */
};
/* Called once, from the loop, after the process was reaped. */
typedef void (*hf_process_fn)(void *arg, const struct hf_process_exit *exit);

#define HF_PROCESS_STDIO_NULL (-1) /* the child's fd is /dev/null */

struct hf_process_spec {
	/* NULL-terminated; argv[0] is a path, or a name if search_path is set. For "/proc/self/exe"
	 * the child's argv[0] is the name of this program. */
	const char *const *argv;
	const char *const *env; /* "NAME=value" strings, NULL-terminated; NULL: the environment of
	                          * this process */
	const char *cwd;        /* working directory of the child; NULL: the caller's */
	/* The child's fds 0, 1 and 2: an open fd, which the caller still owns, or
	 * HF_PROCESS_STDIO_NULL. */
	int stdio[3];
	bool search_path;     /* search an argv[0] without '/' in the absolute folders of PATH in
	                       * the child's env */
	bool new_session;     /* setsid: no controlling terminal, no signals from a terminal */
	bool new_group;       /* a process group of its own, numbered by the child's pid */
	bool sweep_group;     /* with new_session or new_group: after the process ended, SIGKILL
	                       * the rest of its group, before its pid can be used again */
	bool die_with_parent; /* SIGKILL the child when this program ends */
};

/* The child has the three stdio fds and no other fd. All its signals have the default action and
 * none is blocked. If the program cannot start (not found, not executable, cwd missing), the call
 * returns HF_E_NOT_FOUND or HF_E_IO and leaves no child. */
int hf_process_spawn(struct hf_loop *loop, const struct hf_process_spec *spec, hf_process_fn fn,
		     void *arg, struct hf_process **ret_process, struct hf_error *err)
	HF_MUST_CHECK;

/* Raises this program's soft limit of open files to the hard limit: the embedded plane holds
 * several fds per pod. Children keep the limit from before, because some programs close every
 * possible fd at start, which takes long with a limit of a million. */
void hf_process_raise_files(void);

/* Frees the handle. A child that still runs goes on, and the loop reaps it. Accepts NULL; returns
 * NULL. */
struct hf_process *hf_process_destroy(struct hf_process *process);

pid_t hf_process_pid(const struct hf_process *process);
bool hf_process_ended(const struct hf_process *process); /* already true when fn is called */

/* Sends a signal to the process. Returns 0 if the process has ended already. */
int hf_process_kill(struct hf_process *process, int signum, struct hf_error *err);
/* Sends a signal to the process group, which the spec must have created (new_session or new_group).
 * Returns HF_E_NOT_FOUND after the leader was reaped, because another group may then have its
 * number. */
int hf_process_kill_group(struct hf_process *process, int signum, struct hf_error *err);

/* Reads the identity of a running process; HF_E_NOT_FOUND if there is none. */
int hf_process_id_get(pid_t pid, struct hf_process_id *ret_id, struct hf_error *err) HF_MUST_CHECK;
/* True if this very process still runs; a zombie counts as ended. */
bool hf_process_id_alive(const struct hf_process_id *id);
/* Sends a signal to this very process; HF_E_NOT_FOUND if it has ended. */
int hf_process_id_kill(const struct hf_process_id *id, int signum, struct hf_error *err);

#endif
