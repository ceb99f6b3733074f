/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBELET_RUNTIME_SHIM_INTERNAL_H
#define HF_KUBELET_RUNTIME_SHIM_INTERNAL_H

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "json/json.h"
#include "kubelet/runtime/cgroup_internal.h"
#include "kubelet/runtime/journal_internal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The shim of a pod, and the interface it shares with the kubelet: the files in a pod's folder and
 * the messages on its socket.
 *
 *       pod.json              struct hf_shim_pod, written before the shim starts
 *       lock                  locked (flock) as long as the shim lives
 *       journal               kubelet/runtime/journal_internal.h
 *       ctl                   the socket (SOCK_SEQPACKET)
 *       run/NAME.N.json       struct hf_run of attempt N; the shim unlinks it after reading
 *       logs/NAME.N.log       CRI lines; older parts .log.1, .log.2 …
 *       term/NAME.N           termination message
 *       volumes/NAME/         content of volumes
 *       shm/                  /dev/shm of the containers
 *       root/                 where a container's root is assembled, if it needs its own
 *       hosts, nsswitch.conf, resolv.conf   bound over those in /etc
 *       shim.log              the shim's own errors
 *
 * A message is a packet of text. Messages to the shim:
 *
 *       start NAME N BACKOFF_S     start attempt N of a container from its run file
 *       signal NAME N SIGNUM       signal the container's main process; SIGKILL ends all of it
 *       stop WHY                   record that the kubelet ends the pod, because of a drain or
 *                                  its deadline; no container starts any more
 *       exec NAME\0WORD\0WORD…     with three descriptors: run a program in a container (no NAME:
 *                                  the first main one); this connection then belongs to it
 *       probe NAME\0WORD\0WORD…    the same for a probe over the pod's network, see hf_shim_probe
 *       quit                       kill what runs, write the last record, end
 *
 * Messages from the shim:
 *
 *       journal                    the journal has grown (one message may stand for several records)
 *       wait                       exec: the container does not run
 *       started N, exit N, fail T  exec: the program has started, has ended with N, or cannot start
 *       error NAME N TEXT          a start failed before its BEGIN record
 *       output NAME N\nLINES       lines of a log in CRI format that could not be written to it
 *
 * The shim ignores a start of an attempt that is not newer than the last one. A kubelet that does
 * not know whether it sent a command may therefore repeat it.
 */
#define HF_SHIM_CONFIG_FILE "pod.json"
#define HF_SHIM_LOCK_FILE "lock"
#define HF_SHIM_SOCKET_FILE "ctl"
/* The text that a second shim prints for a folder that has a shim already; then the second shim
 * ends. */
#define HF_SHIM_TAKEN "the pod has a shim already"
#define HF_SHIM_LOG_FILE "shim.log"
#define HF_SHIM_NEW_ROOT "root"
#define HF_SHIM_MESSAGE_MAX 1024
#define HF_SHIM_OUTPUT_MAX ((size_t)64 << 10) /* of the message "output" */
#define HF_SHIM_CLIENTS_MAX 4
/* limit of a message, by the kernel's default size of a packet */
#define HF_SHIM_EXEC_MAX ((size_t)128 << 10)
#define HF_SHIM_EXEC_WORDS_MAX 4096

/* limit of arguments and environment in JSON; the kernel's own limit (ARG_MAX) is about 2 MiB */
#define HF_RUN_BYTES_MAX ((size_t)3 << 20)
#define HF_RUN_MOUNTS_MAX 256
#define HF_RUN_GROUPS_MAX 64
#define HF_POD_VOLUMES_MAX 128

/* Exit code of a container that could not be started; upstream's runtimes use 128 too. */
#define HF_START_FAILED_CODE 128

struct hf_shim_tmpfs {
	const char *path;  /* absolute */
	int64_t bytes_max; /* size limit; 0: the kernel's default, half of the memory */
};

/* If a shim must not outlive its kubelet, it ends the pod after this time without a connection. */
#define HF_SHIM_ALONE_MAX (2 * HF_SECOND)

/* A GPU that a container of the pod has. */
struct hf_shim_gpu {
	const char *container, *resource, *id;
};

struct hf_shim_pod {
	const char *ns, *name, *uid;
	const char *hostname;
	/* the pod has its own namespaces of mounts, IPC and host name; the other fields can add or
	 * remove some */
	bool isolate;
	bool pid_ns; /* a process namespace */
	/* the pod uses the machine's network and host name */
	bool host_network;
	bool host_ipc;
	/* the shim ends the pod if no kubelet is connected (HF_SHIM_ALONE_MAX) */
	bool ends_with_kubelet;
	const char *ip; /* the pod's IPv4 address; used if isolate is set and host_network is not */
	/* address of the way to other networks; NULL: no such way, so that connections to other
	 * networks fail at once */
	const char *gateway;
	int prefix;
	struct hf_cgroup_base cgroups;
	const struct hf_shim_tmpfs *tmpfs;
	size_t n_tmpfs;
	struct hf_shim_gpu *gpus;
	size_t n_gpus;
	int64_t log_bytes_max; /* per file */
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
	int64_t uid, gid;        /* -1: the kubelet's */
	const int64_t *groups;   /* supplementary groups; used only if uid or gid is set */
	size_t n_groups;
	const struct hf_run_mount *mounts;
	size_t n_mounts;
	bool read_only_root;
	bool no_new_privs;
	bool init;    /* is an init container */
	bool sidecar; /* the container is a sidecar: a STOP record does not count it as running */
	struct hf_cgroup_limits limits;
};

/* Convert pod.json and run files from and to JSON. Strings of the result live in the arena. */
struct hf_json *hf_shim_pod_to_json(const struct hf_shim_pod *pod);
int hf_shim_pod_from_json(const struct hf_json *json, struct hf_arena *arena,
			  struct hf_shim_pod *ret_pod, struct hf_error *err) HF_MUST_CHECK;
struct hf_json *hf_run_to_json(const struct hf_run *run);
int hf_run_from_json(const struct hf_json *json, struct hf_arena *arena, struct hf_run *ret_run,
		     struct hf_error *err) HF_MUST_CHECK;
/* Reads and parses the file `name` in dir_fd. */
int hf_shim_read_json(int dir_fd, const char *name, struct hf_json **ret_json, struct hf_error *err)
	HF_MUST_CHECK;

/* --- log files in CRI format: "<RFC 3339> stdout F <line>" --- */
/* The tag of a note about lost output that a client got nevertheless. A reader that followed the log at that
 * time has those lines and need not show the note. */
#define HF_LOG_TAG_SHOWN 'N'
/* limit of a line in bytes; a longer line is split into parts with the tag P, and so is a line
 * with carriage returns */
#define HF_LOG_LINE_MAX ((size_t)16 << 10)

/* The file NAME.dropped has the number of bytes that were dropped with the oldest parts of the log NAME. */
#define HF_LOG_DROPPED ".dropped"

struct hf_log_sink {
	int dir_fd; /* borrowed */
	char name[HF_CONTAINER_NAME_MAX + 32];
	int fd;
	int64_t bytes, bytes_max;
	int64_t held; /* offset up to which blocks are reserved for the file */
	int files_max;
	int64_t dropped; /* bytes of parts that were dropped */
	uint64_t lost;   /* bytes of output that were lost since the last successful write */
	/* Called with the lines that cannot be written, in CRI format. Returns true if a client got
	 * them. NULL: not called. */
	bool (*spill)(void *arg, const char *lines, size_t len);
	void *spill_arg;
	bool shown; /* a client got all of the lost output */
	/* the log already has the note that output is lost from here on; the number of bytes is
	 * still to come */
	bool told;
	struct {
		size_t len;
		char line[HF_LOG_LINE_MAX];
	} part[2];
};

int hf_log_sink_open(struct hf_log_sink *sink, int dir_fd, const char *name, int64_t bytes_max,
		     int files_max, struct hf_error *err) HF_MUST_CHECK;
/* Adds output. stream 0: stdout, 1: stderr. Never fails: bytes that cannot be written are passed to `spill`
 * and counted, and the log reports their number once it can. */
void hf_log_sink_add(struct hf_log_sink *sink, int stream, const char *bytes, size_t len,
		     hf_time now);
/* Sends a message with lines to a client. If its socket is full, waits a second: the client has unread
 * messages. *stuck, which begins as false: such a wait was in vain, and nothing was sent since; then it does
 * not wait, because the program must not be slowed down for ever by a client that does not read. */
bool hf_log_send(int client, const struct hf_strbuf *message, bool *stuck);
/* Writes the unfinished lines of both streams and closes the log. */
void hf_log_sink_close(struct hf_log_sink *sink, hf_time now);

/* --- mounts of a container; call these in its mount namespace --- */
struct hf_mount_plan {
	/* absolute path of the pod's folder; its subfolder root/ becomes the container's root if a
	 * new root is needed */
	const char *pod_dir;
	bool proc; /* mount a new /proc, for the pod's process namespace */
	const struct hf_run_mount *mounts;
	size_t n_mounts;
	bool read_only_root;
};
int hf_mounts_apply(const struct hf_mount_plan *plan, struct hf_error *err) HF_MUST_CHECK;
/* Makes later changes of mounts private to this process. Mounts that the machine makes later still
 * appear in this process. */
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
	int out, err; /* file descriptors that become the program's stdout and stderr */
	/* pipe for struct hf_child_report. Writes never block: the pipe holds the three reports
	 * that a container can have */
	int report;
	int lifeline; /* pipe that has its end of file when the shim has ended */
};
/* Starts the init process of a container. Returns its pid; -1 and errno on an error. */
pid_t hf_child_start(const struct hf_child *child);
/* Kills (SIGKILL) and reaps every child of this process except those in keep, until none is left.
 * This process must be a subreaper: descendants become its children as their parents die. */
void hf_child_kill_strays(const pid_t *keep, size_t n_keep);

/* Changes the user and groups of this process. Returns NULL, or the name of the failed step with
 * errno set. */
const char *hf_child_change_user(const struct hf_run *run);
/* Resets the handlers of all signals to their defaults. blocked: also blocks all signals; false:
 * unblocks them. */
void hf_child_signals(bool blocked);

/* --- exec: another program in a container --- */
struct hf_exec {
	const struct hf_shim_pod *pod;
	/* environment, working folder and user of the container, which the program gets too */
	const struct hf_run *run;
	const struct hf_cgroup *cgroup;
	pid_t pid; /* pid of the container's init */
	const char *const *argv;
	bool probe; /* run hf_shim_probe(argv) in the helper itself; false: argv is a program */
	int client, stdio[3];
};
/* Starts the helper process. The caller still has to close its descriptors. Returns -1 and errno
 * if nothing was started. */
int hf_exec_start(const struct hf_exec *exec);

/* --- shim_client.c: the other end of the socket --- */
/* Connects to the shim of the pod in this folder. socket_flags: SOCK_NONBLOCK, or 0. Returns -1 if
 * no shim answers. */
int hf_shim_connect(int pod_dir, int socket_flags);
/* Sends the message "exec" or "probe" with its three descriptors. argv is NULL-terminated. */
bool hf_shim_ask(int fd, const char *verb, const char *container, const char *const *argv,
		 const int stdio[3]);

/* --- shim_probe.c --- */
/* Runs a probe over the network of this process. argv: "tcp" TIMEOUT_S HOST PORT, or "http" TIMEOUT_S
 * HOST PORT PATH [HEADER…]. Returns the exit code; a failure is described on stdout. */
int hf_shim_probe(const char *const *argv);

/* --- kubectl.c: the stand-in for kubectl in pods --- */
/* Tells whether this init container of an MPIJob's launcher would copy kubectl from its image. */
bool hf_kubectl_is_delivery(const struct hf_json *container);
int hf_kubectl_deliver(const char *pods_dir, const char *ns);           /* "shim deliver" */
int hf_kubectl_main(const char *pods_dir, const char *ns, char **argv); /* "shim kubectl" */

/* --- fork, clone and exec, all of this module (tools/layers names the file) --- */
/* Starts a process in new namespaces, by clone(2) with SIGCHLD; returns 0 in the child */
pid_t hf_shim_fork(unsigned long namespaces);
/* Searches argv[0] in the PATH of env and replaces this process by it. Returns only on failure,
 * with an errno. */
int hf_shim_exec(const char *const *argv, const char *const *env);

/*
 * --- the subcommands of the verb ---
 *
 * "shim pod FOLDER": stdin is the node's network namespace (or /dev/null if the pod gets no
 * namespaces); stdout stays open as long as the pod lives. Returns 0 when the shim, by then a
 * process of its own, is ready; or 1 with the reason on stderr.
 *
 * "shim net": prints a line of JSON about what this machine allows, then stays in the node's
 * network namespace until its stdin ends:
 *
 *       {"isolate":true,"userNamespace":false,"pidNamespace":true,"why":"",
 *        "cgroups":{"version":1,"memory":"…","cpu":"…"},"cgroupsWhy":""}
 */
int hf_shim_run_pod(const char *pod_dir);
int hf_shim_run_net(void);
/* Number of the descriptor by which a shim keeps the node's network namespace open, for a later
 * kubelet. */
#define HF_SHIM_NETNS_FD 9
/* Number of the descriptor by which a shim keeps slirp4netns alive: a pipe, which is the shim's
 * stdout at its start. */
#define HF_SHIM_UPLINK_FD 8
/* "shim uplink": enters the node's network namespace, which is stdin, and makes slirp4netns's
 * interface a port of the bridge. */
int hf_shim_run_uplink(void);
/* "shim gpus SYSFS": prints a line of JSON with the GPUs of this machine:
 *
 *       {"gpus":[{"resource":"nvidia.com/gpu","id":"GPU-…"}],"why":""} */
int hf_shim_run_gpus(const char *sysfs);
#define HF_SHIM_NVIDIA "nvidia.com/gpu"
#define HF_SHIM_AMD "amd.com/gpu"
/* Runs the shim. Writes "ok" or an error to ready_fd and closes it. Returns the exit code. */
int hf_shim_serve(const char *pod_dir, int ready_fd);
/* Enters a pod's namespaces: first the user namespace that owns netns_fd, then new ones. */
int hf_shim_enter(const struct hf_shim_pod *pod, int netns_fd, struct hf_error *err) HF_MUST_CHECK;

#endif
