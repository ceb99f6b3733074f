/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_SHIM_INTERNAL_H
#define HF_LOCAL_SHIM_INTERNAL_H

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "json/json.h"
#include "local/cgroup_internal.h"
#include "local/journal_internal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The shim of a pod, and what it shares with the kubelet: the files of a pod's folder
 * and the messages on its socket.
 *
 *     pod.json              struct hf_shim_pod, written before the shim starts
 *     lock                  locked (flock) as long as the shim lives
 *     journal               local/journal_internal.h
 *     ctl                   the socket (SOCK_SEQPACKET)
 *     run/NAME.N.json       struct hf_run of attempt N; the shim unlinks it when read
 *     logs/NAME.N.log       CRI lines; older parts .log.1, .log.2 …
 *     term/NAME.N           termination message
 *     volumes/NAME/         content of volumes
 *     shm/                  what the containers see as /dev/shm
 *     root/                 where a container's root is put together, where it needs one
 *     hosts, nsswitch.conf, resolv.conf   bound over those in /etc
 *     shim.log              what the shim says when it breaks
 *
 * Messages are text, one a packet.  To the shim:
 *     start NAME N BACKOFF_S     begin attempt N of a container from its run file
 *     signal NAME N SIGNUM       to the container's main process; SIGKILL ends all of it
 *     stop WHY                   write down that what ends from here on was ended, by the
 *                                plane (drain) or for its time (deadline); no more starts
 *     exec NAME\0WORD\0WORD…     with three descriptors: a program more in a container (no NAME:
 *                                the first main one); this connection is its from here on
 *     quit                       kill what runs, write the last record, end
 * From it:
 *     journal                    the journal has grown (several changes may make one message)
 *     wait                       (exec) that container does not run
 *     started N, exit N, fail T  (exec) it has begun; it has ended with that; it could not begin
 *     error TEXT                 a start that could not even be begun
 * A start of an attempt that is not newer than the last one does nothing, so a kubelet
 * that does not know whether it asked already asks again.
 */
#define HF_SHIM_CONFIG_FILE "pod.json"
#define HF_SHIM_LOCK_FILE "lock"
#define HF_SHIM_SOCKET_FILE "ctl"
#define HF_SHIM_TAKEN "the pod has a shim already" /* what a second one says, and ends */
#define HF_SHIM_LOG_FILE "shim.log"
#define HF_SHIM_NEW_ROOT "root"
#define HF_SHIM_MESSAGE_MAX 1024
#define HF_SHIM_CLIENTS_MAX 4
#define HF_SHIM_EXEC_MAX ((size_t)128 << 10) /* what a packet may be, by the kernel's default */
#define HF_SHIM_EXEC_WORDS_MAX 4096

#define HF_RUN_BYTES_MAX                                                                           \
	((size_t)3 << 20) /* arguments and environment; the kernel's own limit
					      (ARG_MAX) is about 2 MiB */
#define HF_RUN_MOUNTS_MAX 256
#define HF_RUN_GROUPS_MAX 64
#define HF_POD_VOLUMES_MAX 128

/* What a container cannot have done but exit with; upstream's runtimes say 128 too. */
#define HF_START_FAILED_CODE 128

struct hf_shim_tmpfs {
	const char *path;  /* absolute */
	int64_t bytes_max; /* 0: the kernel's default, half of the memory */
};

struct hf_shim_pod {
	const char *ns, *name, *uid;
	const char *hostname;
	bool isolate;      /* namespaces: mounts, IPC, UTS, and by the two below */
	bool pid_ns;       /* process numbers of their own */
	bool host_network; /* stay in the machine's network (and keep its host name) */
	bool host_ipc;
	const char *ip;      /* dotted IPv4; isolate and not host_network */
	const char *gateway; /* NULL: no way out, so that trying fails at once */
	int prefix;
	struct hf_cgroup_base cgroups;
	const struct hf_shim_tmpfs *tmpfs;
	size_t n_tmpfs;
	int64_t log_bytes_max; /* of one file */
	int log_files_max;
};

struct hf_run_mount {
	const char *source, *target; /* absolute */
	bool read_only;
	bool is_file;
};

struct hf_run {
	const char *const *argv; /* NULL-terminated, at least one */
	const char *const *env;  /* "NAME=value", NULL-terminated */
	const char *cwd;         /* NULL: "/" */
	int64_t uid, gid;        /* -1: as the kubelet */
	const int64_t *groups;   /* supplementary, with uid or gid only */
	size_t n_groups;
	const struct hf_run_mount *mounts;
	size_t n_mounts;
	bool read_only_root;
	bool no_new_privs;
	bool init; /* an init container */
	struct hf_cgroup_limits limits;
};

/* Both directions of the two files; strings of what is read live in the arena. */
struct hf_json *hf_shim_pod_to_json(const struct hf_shim_pod *pod);
int hf_shim_pod_from_json(const struct hf_json *json, struct hf_arena *arena,
			  struct hf_shim_pod *ret_pod, struct hf_error *err) HF_MUST_CHECK;
struct hf_json *hf_run_to_json(const struct hf_run *run);
int hf_run_from_json(const struct hf_json *json, struct hf_arena *arena, struct hf_run *ret_run,
		     struct hf_error *err) HF_MUST_CHECK;
/* Parse the file name in dir_fd. */
int hf_shim_read_json(int dir_fd, const char *name, struct hf_json **ret_json, struct hf_error *err)
	HF_MUST_CHECK;

/* --- log files in CRI format: "<RFC 3339> stdout F <line>" --- */
#define HF_LOG_LINE_MAX ((size_t)16 << 10) /* longer lines come in parts, tagged P */

struct hf_log_sink {
	int dir_fd; /* borrowed */
	char name[HF_CONTAINER_NAME_MAX + 32];
	int fd;
	int64_t bytes, bytes_max;
	int64_t held; /* up to where the file has blocks */
	int files_max;
	uint64_t lost; /* bytes that could not be written since the last that could */
	bool told;     /* that some are lost is said in the log, though not how many */
	struct {
		size_t len;
		char line[HF_LOG_LINE_MAX];
	} part[2];
};

int hf_log_sink_open(struct hf_log_sink *sink, int dir_fd, const char *name, int64_t bytes_max,
		     int files_max, struct hf_error *err) HF_MUST_CHECK;
/* stream 0: stdout, 1: stderr.  Never fails: what cannot be written is counted, and said in the
 * log once it can. */
void hf_log_sink_add(struct hf_log_sink *sink, int stream, const char *bytes, size_t len,
		     hf_time now);
/* Writes lines that have no end yet, and closes. */
void hf_log_sink_close(struct hf_log_sink *sink, hf_time now);

/* --- mounts of one container, called in its own mount namespace --- */
struct hf_mount_plan {
	const char *pod_dir; /* absolute; a folder of it serves as the new root where one is made */
	bool proc;           /* a new process namespace needs its own /proc */
	const struct hf_run_mount *mounts;
	size_t n_mounts;
	bool read_only_root;
};
int hf_mounts_apply(const struct hf_mount_plan *plan, struct hf_error *err) HF_MUST_CHECK;
/* Changes of mounts made from here on stay here; those of the machine are still seen. */
int hf_mounts_detach(struct hf_error *err) HF_MUST_CHECK;

/* --- the first process of a container --- */
enum hf_child_report_type { HF_CHILD_STARTED = 1, HF_CHILD_FAILED, HF_CHILD_EXITED };
struct hf_child_report {
	int type;
	int code, signum;
	char text[HF_JOURNAL_TEXT_MAX];
};
struct hf_child {
	const struct hf_shim_pod *pod;
	const struct hf_run *run;
	const char *pod_dir;
	const struct hf_cgroup *cgroup;
	int out, err; /* become the program's stdout and stderr */
	int report;   /* struct hf_child_report; never blocks: three at most fit a pipe */
	int lifeline; /* reads its end when the shim is gone */
};
/* The pid, or -1 and errno. */
pid_t hf_child_start(const struct hf_child *child);
/* SIGKILL to every child of this process but those in keep, and reap them, until there is
 * none: descendants come up as their parents die (this process must be a subreaper). */
void hf_child_kill_strays(const pid_t *keep, size_t n_keep);

/* What failed, with errno; NULL: it is who it should be. */
const char *hf_child_change_user(const struct hf_run *run);
/* All signals as at the start of a program; blocked: none comes. */
void hf_child_signals(bool blocked);

/* --- a program more in a container --- */
struct hf_exec {
	const struct hf_shim_pod *pod;
	const struct hf_run *run; /* of the container: environment, folder, user */
	const struct hf_cgroup *cgroup;
	pid_t pid; /* its first process */
	const char *const *argv;
	int client, stdio[3];
};
/* The descriptors stay the caller's. -1 and errno: nothing was started. */
int hf_exec_start(const struct hf_exec *exec);

/* --- kubectl.c: what pods have as kubectl --- */
/* An init container that would bring kubectl from its image. */
bool hf_kubectl_is_delivery(const struct hf_json *container);
int hf_kubectl_deliver(const char *pods_dir, const char *ns);           /* "shim deliver" */
int hf_kubectl_main(const char *pods_dir, const char *ns, char **argv); /* "shim kubectl" */

/* --- fork, clone and exec, all of this module (tools/layers names the file) --- */
pid_t hf_shim_fork(unsigned long namespaces); /* as clone(2) with SIGCHLD; 0 in the child */
/* Look argv[0] up in PATH of env and become it; only returns to say why not: an errno. */
int hf_shim_exec(const char *const *argv, const char *const *env);

/*
 * --- the verb's two halves ---
 *
 * "shim pod FOLDER": stdin is the node's network namespace (or /dev/null where the pod gets no
 * namespaces), stdout is kept open as long as the pod lives.  Returns when the shim, a process of its own by then, is ready (0), or with 1
 * and the reason on stderr.
 *
 * "shim net": prints one line of JSON about what this machine allows, then stays in the node's
 * network namespace until its stdin ends:
 *     {"isolate":true,"userNamespace":false,"pidNamespace":true,"why":"",
 *      "cgroups":{"version":1,"memory":"…","cpu":"…"},"cgroupsWhy":""}
 */
int hf_shim_run_pod(const char *pod_dir);
int hf_shim_run_net(void);
/* The shim keeps the node's network namespace open under this number, for a later kubelet. */
#define HF_SHIM_NETNS_FD 9
/* ... and, under this one, what keeps the way out of it alive (its stdout at birth). */
#define HF_SHIM_UPLINK_FD 8
/* "shim uplink": stdin is the node's namespace; makes the tap a port of its bridge. */
int hf_shim_run_uplink(void);
/* The shim itself; ready_fd gets "ok" or what is wrong, and is closed.  Returns the exit code. */
int hf_shim_serve(const char *pod_dir, int ready_fd);
/* Enter the namespaces of a pod: the user namespace of netns_fd's owner, then new ones. */
int hf_shim_enter(const struct hf_shim_pod *pod, int netns_fd, struct hf_error *err) HF_MUST_CHECK;

#endif
