/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/shim.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/runtime/netns_internal.h"
#include "kubelet/runtime/shim_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * The shim of a pod: takes commands from clients on the pod's socket, starts, signals and reaps
 * containers, copies their output to log files, and writes every start and exit to the journal. One
 * thread; the loop waits in poll. A record is in the journal before a client hears of it.
 */

#define ARENA_BYTES_MAX ((size_t)16 << 20)
#define READ_AT_ONCE ((size_t)64 << 10) /* capacity of a pipe */
#define RETRY_MS 1000 /* delay in ms before records are tried again that could not be written */
#define DRAIN_ROUNDS_MAX 64
/* delay in ms between two looks for a kubelet, of a shim that must not outlive it */
#define LOOK_MS 1000
/* the first kubelet connects within this time, even if many pods start at once */
#define FIRST_KUBELET_MAX (60 * HF_SECOND)
/* from SIGTERM, because no kubelet is connected, to SIGKILL */
#define ALONE_GRACE (10 * HF_SECOND)
/* limit of unwritten records: a START and an end for each container, and a STOP */
#define PENDING_MAX (HF_POD_CONTAINERS_MAX * 2 + 1)
/* descriptors in poll: the socket, signals, clients, and three for each container */
#define POLL_MAX (2 + HF_SHIM_CLIENTS_MAX + 3 * HF_POD_CONTAINERS_MAX)

struct shim;

struct container {
	struct shim *shim;
	char name[HF_CONTAINER_NAME_MAX];
	unsigned attempt;
	pid_t pid; /* pid of init; 0: free slot */
	int out, err, report;
	bool started;
	/* the last report of the container's init; type 0: no report yet */
	struct hf_child_report end;
	struct hf_cgroup group;
	struct hf_log_sink *log;
	struct hf_arena *arena; /* lifetime of `run` */
	struct hf_run run;
};

struct shim {
	const char *pod_dir;
	int dir_fd, logs_fd, lock_fd, listen_fd, signal_fd;
	int lifeline[2];
	int clients[HF_SHIM_CLIENTS_MAX]; /* -1: free slot */
	struct hf_arena *arena;           /* holds the pod's description; process lifetime */
	struct hf_shim_pod pod;
	struct hf_journal journal;
	/* Records that wait for free space on the disk, oldest first. */
	struct hf_journal_record pending[PENDING_MAX];
	size_t n_pending;
	struct container containers[HF_POD_CONTAINERS_MAX];
	bool stopping, quitting, done;
	bool spill_stuck; /* the last lines of a log could not be sent to a client in time */
	/* Since this time no kubelet is connected; HF_TIME_NONE: one is connected. Only for a pod
	 * with ends_with_kubelet. */
	hf_time alone_since;
	bool terminated; /* the containers got SIGTERM because no kubelet is connected */
};

static hf_time wall_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (hf_time)ts.tv_sec * HF_SECOND + ts.tv_nsec;
}

static hf_time mono_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (hf_time)ts.tv_sec * HF_SECOND + ts.tv_nsec;
}

/* --- clients --- */

static void tell_client(int client, const char *text)
{
	/* Ignore a failed send: if the socket is full, the client has unread messages, and reads
	 * the journal because of them. */
	(void)send(client, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void tell_all(struct shim *shim)
{
	for (size_t i = 0; i < HF_SHIM_CLIENTS_MAX; i++)
		if (shim->clients[i] >= 0)
			tell_client(shim->clients[i], "journal");
}

static void accept_client(struct shim *shim)
{
	int fd = accept4(shim->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (fd < 0)
		return;
	/* Accept only clients of the same user. The mode of the folder keeps other users out; the
	 * check here helps if the mode was changed. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	    (peer.uid == geteuid() || peer.uid == 0)) {
		for (size_t i = 0; i < HF_SHIM_CLIENTS_MAX; i++) {
			if (shim->clients[i] < 0) {
				shim->clients[i] = fd;
				/* Make the new client read the journal: records may have been
				 * written after the client read it and before this accept. */
				tell_client(fd, "journal");
				return;
			}
		}
	}
	(void)close(fd);
}

/* --- records --- */

static void flush_pending(struct shim *shim)
{
	size_t done = 0;

	while (done < shim->n_pending) {
		struct hf_error err;
		int rc = hf_journal_append(&shim->journal, &shim->pending[done], &err);

		if (rc && rc != HF_E_INVALID)
			break;
		if (rc)
			(void)fprintf(stderr, "shim: %s\n", err.text);
		done++;
	}
	if (!done)
		return;
	shim->n_pending -= done;
	memmove(shim->pending, shim->pending + done, shim->n_pending * sizeof(shim->pending[0]));
	tell_all(shim);
}

/* Writes a record to the journal, then tells all clients that the journal has grown. If the disk
 * is full, the record and the message wait for free space. */
static void write_record(struct shim *shim, const struct hf_journal_record *r)
{
	hf_assert(shim->n_pending < PENDING_MAX);
	shim->pending[shim->n_pending++] = *r;
	flush_pending(shim);
}

static struct hf_journal_record record_of(const struct container *c, enum hf_journal_type type)
{
	struct hf_journal_record r = {.type = type, .at = wall_now(), .attempt = c->attempt};

	(void)snprintf(r.container, sizeof(r.container), "%s", c->name);
	return r;
}

/* --- output --- */

/* Copies a piece of a container's output to its log. Returns false if there is nothing to read
 * now. */
static bool read_output(struct container *c, int stream)
{
	static char buf[READ_AT_ONCE];
	int *fd = stream ? &c->err : &c->out;
	ssize_t n;

	if (*fd < 0)
		return false;
	n = read(*fd, buf, sizeof(buf));
	if (n > 0) {
		hf_log_sink_add(c->log, stream, buf, (size_t)n, wall_now());
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		hf_fd_cleanup(fd);
	return false;
}

/* Reads the output that is left after all processes of the container have ended. The number of
 * rounds is limited, because a process that escaped might keep the pipe open. */
static void drain_output(struct container *c)
{
	for (int stream = 0; stream < 2; stream++)
		for (int i = 0; i < DRAIN_ROUNDS_MAX && read_output(c, stream); i++)
			;
	hf_log_sink_close(c->log, wall_now());
}

/* Sends lines that could not be written to the log to the kubelet, in messages of whole lines. */
static bool spill_lines(void *arg, const char *lines, size_t len)
{
	const struct container *c = arg;
	bool shown = len > 0;

	for (size_t at = 0; at < len && shown;) {
		HF_AUTO_STRBUF message = HF_STRBUF_INIT(HF_SHIM_OUTPUT_MAX);
		size_t most = HF_SHIM_OUTPUT_MAX - HF_SHIM_MESSAGE_MAX;
		size_t take = len - at < most ? len - at : most;
		const char *end = memrchr(lines + at, '\n', take);

		hf_assert(end); /* a line is shorter than a message */
		take = (size_t)(end - (lines + at)) + 1;
		hf_strbuf_addf(&message, "output %s %u\n", c->name, c->attempt);
		hf_strbuf_add(&message, lines + at, take);
		at += take;
		shown = false;
		for (size_t i = 0; i < HF_SHIM_CLIENTS_MAX; i++)
			shown = (c->shim->clients[i] >= 0 &&
				 hf_log_send(c->shim->clients[i], &message,
					     &c->shim->spill_stuck)) ||
				shown;
	}
	return shown;
}

/* --- containers --- */

static struct container *find_container(struct shim *shim, const char *name)
{
	for (size_t i = 0; i < HF_POD_CONTAINERS_MAX; i++)
		if (shim->containers[i].pid && hf_streq(shim->containers[i].name, name))
			return &shim->containers[i];
	return NULL;
}

static size_t list_running(const struct shim *shim, pid_t ret_pids[HF_POD_CONTAINERS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < HF_POD_CONTAINERS_MAX; i++)
		if (shim->containers[i].pid)
			ret_pids[n++] = shim->containers[i].pid;
	return n;
}

static void release_container(struct container *c)
{
	hf_fd_cleanup(&c->out);
	hf_fd_cleanup(&c->err);
	hf_fd_cleanup(&c->report);
	free(c->log);
	hf_arena_destroy(c->arena);
	memset(c, 0, sizeof(*c));
	c->out = c->err = c->report = -1;
}

static void read_reports(struct shim *shim, struct container *c)
{
	struct hf_child_report r;

	while (c->report >= 0) {
		ssize_t n = read(c->report, &r, sizeof(r));

		if (n < 0 && errno == EINTR)
			continue;
		if (n != (ssize_t)sizeof(r)) {
			if (n >= 0 || errno != EAGAIN)
				hf_fd_cleanup(&c->report);
			return;
		}
		r.text[sizeof(r.text) - 1] = '\0';
		if (r.type != HF_CHILD_STARTED) {
			c->end = r;
		} else if (!c->started) {
			struct hf_journal_record start = record_of(c, HF_JOURNAL_START);

			c->started = true;
			start.pid = c->pid;
			write_record(shim, &start);
		}
	}
}

static void container_ended(struct shim *shim, struct container *c, int status)
{
	struct hf_journal_record r = record_of(c, HF_JOURNAL_EXIT);

	read_reports(shim, c);
	if (c->end.type == HF_CHILD_FAILED) {
		r.type = HF_JOURNAL_FAIL;
		(void)snprintf(r.text, sizeof(r.text), "%s", c->end.text);
	} else if (c->end.type == HF_CHILD_EXITED) {
		r.code = c->end.code;
		r.signum = c->end.signum;
	} else if (WIFSIGNALED(status)) {
		r.signum = WTERMSIG(status);
	} else {
		r.code = WEXITSTATUS(status);
	}
	r.oom = r.type == HF_JOURNAL_EXIT && hf_cgroup_oom_killed(&c->group);
	hf_cgroup_remove(&c->group);
	drain_output(c);
	release_container(c);
	write_record(shim, &r);
}

static void reap_children(struct shim *shim)
{
	struct signalfd_siginfo info;
	bool any = false;
	int status;
	pid_t pid;

	while (read(shim->signal_fd, &info, sizeof(info)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (size_t i = 0; i < HF_POD_CONTAINERS_MAX; i++) {
			if (shim->containers[i].pid == pid) {
				container_ended(shim, &shim->containers[i], status);
				any = true;
			}
		}
	}
	if (any && !shim->pod.pid_ns) {
		pid_t pids[HF_POD_CONTAINERS_MAX];

		hf_child_kill_strays(pids, list_running(shim, pids));
	}
}

/* --- start of a container --- */

static struct container *free_slot(struct shim *shim)
{
	for (size_t i = 0; i < HF_POD_CONTAINERS_MAX; i++)
		if (!shim->containers[i].pid)
			return &shim->containers[i];
	return NULL;
}

static int read_run(struct shim *shim, const char *name, unsigned attempt, struct hf_arena *arena,
		    struct hf_run *ret_run, struct hf_error *err)
{
	HF_AUTO_JSON json = NULL;
	char path[HF_CONTAINER_NAME_MAX + 32];
	int rc;

	(void)snprintf(path, sizeof(path), "run/%s.%u.json", name, attempt);
	rc = hf_shim_read_json(shim->dir_fd, path, &json, err);
	/* Remove the run file after reading it: its environment may contain secrets. */
	(void)unlinkat(shim->dir_fd, path, 0);
	return rc ? rc : hf_run_from_json(json, arena, ret_run, err);
}

static int open_output(struct shim *shim, struct container *c, struct hf_child *child,
		       struct hf_error *err)
{
	int out[2], e[2], report[2];

	if (pipe2(out, O_CLOEXEC) < 0)
		return hf_error_errno(err, errno, "cannot make a pipe");
	c->out = out[0];
	child->out = out[1];
	if (pipe2(e, O_CLOEXEC) < 0)
		return hf_error_errno(err, errno, "cannot make a pipe");
	c->err = e[0];
	child->err = e[1];
	if (pipe2(report, O_CLOEXEC) < 0)
		return hf_error_errno(err, errno, "cannot make a pipe");
	c->report = report[0];
	child->report = report[1];
	child->lifeline = shim->lifeline[0];
	(void)fcntl(c->out, F_SETFL, O_NONBLOCK);
	(void)fcntl(c->err, F_SETFL, O_NONBLOCK);
	(void)fcntl(c->report, F_SETFL, O_NONBLOCK);
	return 0;
}

/* Starts the init process of a container, with its control group and pipes. The caller has written
 * the BEGIN record. */
static int launch_container(struct shim *shim, struct container *c, const struct hf_run *run,
			    struct hf_error *err)
{
	char group[256];
	struct hf_child child = {.pod = &shim->pod,
				 .run = run,
				 .pod_dir = shim->pod_dir,
				 .cgroup = &c->group,
				 .out = -1,
				 .err = -1,
				 .report = -1};
	int rc;

	(void)snprintf(group, sizeof(group), "%s.%s.%u", shim->pod.uid, c->name, c->attempt);
	rc = hf_cgroup_make(&shim->pod.cgroups, group, &run->limits, &c->group, err);
	if (!rc)
		rc = open_output(shim, c, &child, err);
	if (!rc) {
		c->pid = hf_child_start(&child);
		if (c->pid < 0)
			rc = hf_error_errno(err, errno, "cannot start a process");
	}
	hf_fd_cleanup(&child.out);
	hf_fd_cleanup(&child.err);
	hf_fd_cleanup(&child.report);
	if (rc)
		hf_cgroup_remove(&c->group);
	return rc;
}

static int prepare_container(struct shim *shim, struct container *c, const char *name,
			     unsigned attempt, struct hf_error *err)
{
	char log[HF_CONTAINER_NAME_MAX + 32];
	int rc;

	(void)snprintf(c->name, sizeof(c->name), "%s", name);
	c->attempt = attempt;
	c->shim = shim;
	c->log = hf_xmalloc(sizeof(*c->log));
	(void)snprintf(log, sizeof(log), "%s.%u.log", name, attempt);
	rc = hf_log_sink_open(c->log, shim->logs_fd, log, shim->pod.log_bytes_max,
			      shim->pod.log_files_max, err);
	c->log->spill = spill_lines;
	c->log->spill_arg = c;
	if (!rc && shim->n_pending)
		rc = hf_error_set(err, HF_E_NO_SPACE, "the pod's journal cannot be written");
	return rc;
}

static void start_container(struct shim *shim, const char *name, unsigned attempt,
			    unsigned backoff_s, struct hf_error *err)
{
	const struct hf_container_past *past = hf_pod_past_find(&shim->journal.past, name);
	struct container *c = free_slot(shim);
	struct hf_journal_record r;

	hf_error_clear(err);
	if (past && (attempt <= past->last.number || find_container(shim, name)))
		return; /* a repeated command */
	if (!c || shim->stopping || shim->quitting) {
		(void)hf_error_set(err, HF_E_TOO_MANY,
				   "the pod is being ended or has too many containers");
		return;
	}
	c->arena = hf_arena_create(ARENA_BYTES_MAX);
	if (prepare_container(shim, c, name, attempt, err) != 0 ||
	    read_run(shim, name, attempt, c->arena, &c->run, err) != 0) {
		release_container(c);
		return;
	}
	r = record_of(c, HF_JOURNAL_BEGIN);
	r.backoff_s = backoff_s;
	if (hf_journal_append(&shim->journal, &r, err) != 0) {
		release_container(c);
		return;
	}
	if (launch_container(shim, c, &c->run, err) != 0) {
		r = record_of(c, HF_JOURNAL_FAIL);
		(void)snprintf(r.text, sizeof(r.text), "%s", err->text);
		hf_error_clear(err);
		release_container(c);
		write_record(shim, &r);
	}
}

/* --- commands --- */

static bool parse_number(const char *word, int64_t max, unsigned *ret)
{
	int64_t n;

	if (!word || hf_str_to_i64(word, 0, max, &n, NULL) != 0)
		return false;
	*ret = (unsigned)n;
	return true;
}

/* Writes the STOP record before any container gets a signal. Containers that end after this record
 * were ended by the kubelet. */
static void stop_pod(struct shim *shim, const char *why)
{
	struct hf_journal_record r = {.type = HF_JOURNAL_STOP, .at = wall_now()};

	if (hf_streq(why, "drain"))
		r.stop = HF_STOPPED_BY_DRAIN;
	else if (hf_streq(why, "deadline"))
		r.stop = HF_STOPPED_BY_DEADLINE;
	if (shim->stopping || r.stop == HF_STOPPED_NOT)
		return;
	/* Reap first: a container that has already ended, did so by itself, and its EXIT must come
	 * before the STOP. */
	reap_children(shim);
	shim->stopping = true;
	for (size_t i = 0; i < HF_POD_CONTAINERS_MAX; i++)
		r.ran += shim->containers[i].pid && !shim->containers[i].run.sidecar;
	write_record(shim, &r);
}

static void signal_containers(const struct shim *shim, int signum)
{
	for (size_t i = 0; i < HF_POD_CONTAINERS_MAX; i++)
		if (shim->containers[i].pid)
			(void)kill(shim->containers[i].pid, signum);
}

static void quit_pod(struct shim *shim)
{
	shim->quitting = true;
	signal_containers(shim, SIGKILL);
}

static void obey_command(struct shim *shim, int client, char *message)
{
	char *rest = message;
	const char *verb = strsep(&rest, " ");
	const char *name = strsep(&rest, " ");
	const char *first = strsep(&rest, " ");
	unsigned attempt = 0, value = 0;
	struct hf_error err;

	if (hf_streq(verb, "quit")) {
		quit_pod(shim);
		return;
	}
	if (hf_streq(verb, "stop")) {
		stop_pod(shim, name);
		return;
	}
	/* The container's name becomes part of a path, so it must not contain "/". */
	if (!name || hf_dns1123_label_problem(name) || !parse_number(first, UINT32_MAX, &attempt) ||
	    !parse_number(rest, INT32_MAX, &value))
		return;
	if (hf_streq(verb, "start")) {
		start_container(shim, name, attempt, value, &err);
		if (err.code) {
			char text[HF_SHIM_MESSAGE_MAX];

			(void)snprintf(text, sizeof(text), "error %s %u %s", name, attempt,
				       err.text);
			tell_client(client, text);
		}
	} else if (hf_streq(verb, "signal")) {
		struct container *c = find_container(shim, name);

		if (c && c->attempt == attempt && value > 0 && value < NSIG)
			(void)kill(c->pid, (int)value);
	}
}

/* --- exec --- */

/* Returns the running container with this name. Without a name, returns the first running
 * container that is not an init container. */
static const struct container *find_for_exec(const struct shim *shim, const char *name)
{
	for (size_t i = 0; i < HF_POD_CONTAINERS_MAX; i++) {
		const struct container *c = &shim->containers[i];

		if (c->pid && c->started && (name[0] ? hf_streq(c->name, name) : !c->run.init))
			return c;
	}
	return NULL;
}

/* Runs a program in a container. text: the container's name and the words of the command, each
 * ended by a NUL. */
static void exec_in(struct shim *shim, int client, bool probe, const char *text, size_t len,
		    const int stdio[3])
{
	const struct container *c = find_for_exec(shim, text);
	const char *argv[HF_SHIM_EXEC_WORDS_MAX + 1];
	struct hf_exec exec = {.pod = &shim->pod, .argv = argv, .probe = probe, .client = client};
	size_t n = 0;

	for (const char *word = text + strlen(text) + 1;
	     word < text + len && n < HF_SHIM_EXEC_WORDS_MAX; word += strlen(word) + 1)
		argv[n++] = word;
	argv[n] = NULL;
	/* Exec works while the pod is being stopped, because preStop hooks need it; it does not
	 * while the shim ends. */
	if (!c || shim->quitting) {
		tell_client(client, "wait");
		return;
	}
	exec.run = &c->run;
	exec.cgroup = &c->group;
	exec.pid = c->pid;
	memcpy(exec.stdio, stdio, sizeof(exec.stdio));
	if (n == 0 || hf_exec_start(&exec) < 0)
		tell_client(client, "fail the program cannot be started");
}

/* Takes stdin, stdout and stderr from the message. Returns false unless it has exactly three
 * descriptors; the kernel closes any others. */
static bool take_stdio(struct msghdr *message, int ret_stdio[3])
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);

	ret_stdio[0] = ret_stdio[1] = ret_stdio[2] = -1;
	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
		return false;
	memcpy(ret_stdio, CMSG_DATA(header),
	       header->cmsg_len >= CMSG_LEN(3 * sizeof(int)) ? 3 * sizeof(int)
							     : header->cmsg_len - CMSG_LEN(0));
	return header->cmsg_len == CMSG_LEN(3 * sizeof(int));
}

static void read_client(struct shim *shim, int *client)
{
	static char text[HF_SHIM_EXEC_MAX + 1];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(3 * sizeof(int))];
	} control;
	struct iovec part = {.iov_base = text, .iov_len = HF_SHIM_EXEC_MAX};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(*client, &message, MSG_CMSG_CLOEXEC);
	int stdio[3] = {-1, -1, -1};
	bool probe;

	if (n > 0) {
		bool passed = take_stdio(&message, stdio);

		text[n] = '\0';
		probe = hf_str_has_prefix(text, "probe ");
		if (passed && (probe || hf_str_has_prefix(text, "exec "))) {
			const char *name = strchr(text, ' ') + 1;

			exec_in(shim, *client, probe, name, (size_t)(text + n - name), stdio);
			/* Close the client's socket here: the helper process has a copy of it. */
			hf_fd_cleanup(client);
		} else {
			obey_command(shim, *client, text);
			tell_client(*client, "journal");
		}
		for (size_t i = 0; i < HF_ARRAY_LEN(stdio); i++)
			hf_fd_cleanup(&stdio[i]);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		hf_fd_cleanup(client);
	}
}

/* --- a program that is gone --- */

static bool has_client(const struct shim *shim)
{
	for (size_t i = 0; i < HF_SHIM_CLIENTS_MAX; i++)
		if (shim->clients[i] >= 0)
			return true;
	return false;
}

/* Ends the pod if its kubelet is gone: SIGTERM, then SIGKILL after ALONE_GRACE. A kubelet that
 * lost its connection has HF_SHIM_ALONE_MAX to connect again. */
static void look_for_kubelet(struct shim *shim)
{
	hf_time now = mono_now();
	pid_t pids[HF_POD_CONTAINERS_MAX];

	if (!shim->pod.ends_with_kubelet || shim->quitting)
		return;
	if (has_client(shim)) {
		shim->alone_since = HF_TIME_NONE;
		return;
	}
	if (shim->alone_since == HF_TIME_NONE)
		shim->alone_since = now;
	if (now - shim->alone_since < HF_SHIM_ALONE_MAX)
		return;
	if (!shim->terminated)
		signal_containers(shim, SIGTERM);
	shim->terminated = true;
	if (list_running(shim, pids) == 0 ||
	    now - shim->alone_since >= HF_SHIM_ALONE_MAX + ALONE_GRACE)
		quit_pod(shim);
}

/* The end of a client wakes the loop, so the clock counts only while there is none. */
static int wait_ms(const struct shim *shim)
{
	if (shim->n_pending)
		return RETRY_MS;
	return shim->pod.ends_with_kubelet && !has_client(shim) ? LOOK_MS : -1;
}

/* Tells whether the loop can end: every record is written, or nothing will read the records. */
static bool has_quit(const struct shim *shim)
{
	pid_t pids[HF_POD_CONTAINERS_MAX];

	return shim->quitting && (!shim->n_pending || shim->terminated) &&
	       list_running(shim, pids) == 0;
}

/* --- the loop --- */

static size_t add_fd(struct pollfd *fds, size_t n, int fd)
{
	fds[n] = (struct pollfd){.fd = fd, .events = POLLIN};
	return n + 1;
}

/* Fills fds in the order that dispatch_events expects. Free slots have -1, which poll ignores. */
static size_t collect_fds(const struct shim *shim, struct pollfd fds[POLL_MAX])
{
	size_t n = add_fd(fds, 0, shim->listen_fd);

	n = add_fd(fds, n, shim->signal_fd);
	for (size_t i = 0; i < HF_SHIM_CLIENTS_MAX; i++)
		n = add_fd(fds, n, shim->clients[i]);
	for (size_t i = 0; i < HF_POD_CONTAINERS_MAX; i++) {
		const struct container *c = &shim->containers[i];

		n = add_fd(fds, n, c->out);
		n = add_fd(fds, n, c->err);
		n = add_fd(fds, n, c->report);
	}
	return n;
}

static void dispatch_events(struct shim *shim, const struct pollfd fds[POLL_MAX])
{
	const struct pollfd *of_containers = fds + 2 + HF_SHIM_CLIENTS_MAX;

	for (size_t i = 0; i < HF_POD_CONTAINERS_MAX; i++) {
		struct container *c = &shim->containers[i];

		if (of_containers[3 * i].revents)
			(void)read_output(c, 0);
		if (of_containers[3 * i + 1].revents)
			(void)read_output(c, 1);
		if (of_containers[3 * i + 2].revents)
			read_reports(shim, c);
	}
	if (fds[1].revents)
		reap_children(shim);
	for (size_t i = 0; i < HF_SHIM_CLIENTS_MAX; i++)
		if (fds[2 + i].revents && shim->clients[i] >= 0)
			read_client(shim, &shim->clients[i]);
	if (fds[0].revents)
		accept_client(shim);
}

static void run_turn(struct shim *shim)
{
	struct pollfd fds[POLL_MAX];
	size_t n = collect_fds(shim, fds);

	if (poll(fds, n, wait_ms(shim)) > 0)
		dispatch_events(shim, fds);
	look_for_kubelet(shim);
	if (shim->n_pending)
		flush_pending(shim);
	if (has_quit(shim)) {
		struct hf_journal_record r = {.type = HF_JOURNAL_QUIT, .at = wall_now()};

		struct hf_error err;

		/* Ignore a failed write: the pod counts as finished without a QUIT record, because
		 * the journal has the end of every container. */
		if (hf_journal_append(&shim->journal, &r, &err) != 0)
			(void)fprintf(stderr, "shim: %s\n", err.text);
		tell_all(shim);
		shim->done = true;
	}
}

/* --- start of the shim --- */

static int mount_tmpfs(const struct hf_shim_tmpfs *t, struct hf_error *err)
{
	char options[64];

	if (t->bytes_max > 0)
		(void)snprintf(options, sizeof(options), "mode=1777,size=%" PRId64, t->bytes_max);
	else
		(void)snprintf(options, sizeof(options), "mode=1777");
	if (mount("tmpfs", t->path, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		return hf_error_errno(err, errno, "cannot mount a tmpfs on '%s'", t->path);
	return 0;
}

/* Enters a new network namespace and sets the host name. */
static int enter_own_network(const struct hf_shim_pod *pod, int netns_fd, struct hf_error *err)
{
	HF_AUTO_FD node_socket = -1;
	int rc = hf_net_enter(netns_fd, true, err);

	if (rc)
		return rc;
	node_socket = hf_net_socket(err);
	if (node_socket < 0)
		return HF_E_IO;
	if (unshare(CLONE_NEWUTS | CLONE_NEWNET) < 0)
		return hf_error_errno(err, errno, "cannot make a network namespace");
	if (sethostname(pod->hostname, strlen(pod->hostname)) < 0)
		return hf_error_errno(err, errno, "cannot set the host name");
	return hf_net_pod_setup(node_socket, pod->ip, pod->prefix, pod->gateway, err);
}

int hf_shim_enter(const struct hf_shim_pod *pod, int netns_fd, struct hf_error *err)
{
	int rc = pod->host_network ? hf_net_enter(netns_fd, false, err)
				   : enter_own_network(pod, netns_fd, err);

	if (!rc && !pod->host_ipc && unshare(CLONE_NEWIPC) < 0)
		rc = hf_error_errno(err, errno, "cannot make an IPC namespace");
	if (!rc)
		rc = hf_mounts_detach(err);
	for (size_t i = 0; !rc && i < pod->n_tmpfs; i++)
		rc = mount_tmpfs(&pod->tmpfs[i], err);
	return rc;
}

static int take_lock(struct shim *shim, struct hf_error *err)
{
	shim->lock_fd = openat(shim->dir_fd, HF_SHIM_LOCK_FILE,
			       O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (shim->lock_fd < 0)
		return hf_error_errno(err, errno, "cannot open the pod's lock");
	if (flock(shim->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	hf_fd_cleanup(&shim->lock_fd);
	return hf_error_set(err, HF_E_CONFLICT, HF_SHIM_TAKEN);
}

static int listen_for_kubelet(struct shim *shim, struct hf_error *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	/* Bind the socket by a path in /proc: a socket's path has at most 107 bytes, and the path
	 * of the folder may be longer. */
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path),
		       "/proc/self/fd/%d/" HF_SHIM_SOCKET_FILE, shim->dir_fd);
	(void)unlinkat(shim->dir_fd, HF_SHIM_SOCKET_FILE, 0);
	shim->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (shim->listen_fd < 0 ||
	    bind(shim->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    fchmodat(shim->dir_fd, HF_SHIM_SOCKET_FILE, 0600, 0) < 0 ||
	    listen(shim->listen_fd, HF_SHIM_CLIENTS_MAX) < 0)
		return hf_error_errno(err, errno, "cannot listen on the pod's socket");
	return 0;
}

static int watch_children(struct shim *shim, struct hf_error *err)
{
	static const int ignored[] = {SIGPIPE, SIGTERM, SIGINT,  SIGHUP,
				      SIGQUIT, SIGUSR1, SIGUSR2, SIGXFSZ};
	sigset_t set;

	/* Ignore the signals that a shutdown of the machine sends to every process: the shim must
	 * record how its containers end. */
	for (size_t i = 0; i < HF_ARRAY_LEN(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	shim->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (shim->signal_fd < 0 || pipe2(shim->lifeline, O_CLOEXEC) < 0)
		return hf_error_errno(err, errno, "cannot watch processes");
	if (!shim->pod.pid_ns)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	return 0;
}

/* Creates the journal. Refuses a folder if its journal says that containers ran: no pod runs
 * twice. */
static int make_journal(struct shim *shim, struct hf_error *err)
{
	HF_AUTOFREE struct hf_pod_past *past = hf_xmalloc(sizeof(*past));
	int rc = hf_journal_read(shim->dir_fd, past, err);

	if (rc == 0 && past->n_containers > 0)
		return hf_error_set(err, HF_E_EXISTS, "containers of this pod ran before");
	if (rc != 0 && rc != HF_E_NOT_FOUND)
		return rc;
	return hf_journal_create(&shim->journal, shim->dir_fd, err);
}

static int read_pod(struct shim *shim, struct hf_error *err)
{
	HF_AUTO_JSON json = NULL;
	int rc = hf_shim_read_json(shim->dir_fd, HF_SHIM_CONFIG_FILE, &json, err);

	return rc ? rc : hf_shim_pod_from_json(json, shim->arena, &shim->pod, err);
}

static int be_born(struct shim *shim, struct hf_error *err)
{
	struct hf_journal_record r = {.type = HF_JOURNAL_SHIM, .at = wall_now()};
	int rc;

	shim->dir_fd = open(shim->pod_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (shim->dir_fd < 0)
		return hf_error_errno(err, errno, "cannot open '%s'", shim->pod_dir);
	rc = take_lock(shim, err);
	if (!rc)
		rc = read_pod(shim, err);
	if (!rc)
		rc = make_journal(shim, err);
	if (!rc && shim->pod.isolate)
		rc = hf_shim_enter(&shim->pod, HF_SHIM_NETNS_FD, err);
	if (rc)
		return rc;
	(void)mkdirat(shim->dir_fd, "logs", 0700);
	(void)mkdirat(shim->dir_fd, HF_SHIM_NEW_ROOT, 0700);
	shim->logs_fd = openat(shim->dir_fd, "logs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (shim->logs_fd < 0)
		return hf_error_errno(err, errno, "cannot open the folder of logs");
	rc = watch_children(shim, err);
	if (!rc)
		rc = listen_for_kubelet(shim, err);
	if (!rc)
		rc = hf_process_id_get(getpid(), &r.shim, err);
	return rc ? rc : hf_journal_append(&shim->journal, &r, err);
}

static void release_shim(struct shim *shim)
{
	int *fds[] = {&shim->listen_fd,   &shim->signal_fd,  &shim->lifeline[0],
		      &shim->lifeline[1], &shim->logs_fd,    &shim->clients[0],
		      &shim->clients[1],  &shim->clients[2], &shim->clients[3]};

	_Static_assert(HF_SHIM_CLIENTS_MAX == 4, "each client is closed");
	for (size_t i = 0; i < HF_ARRAY_LEN(fds); i++)
		hf_fd_cleanup(fds[i]);
	hf_journal_release(&shim->journal);
	if (shim->lock_fd >= 0) /* otherwise another shim owns these files */
		(void)unlinkat(shim->dir_fd, HF_SHIM_SOCKET_FILE, 0);
	hf_arena_destroy(shim->arena);
	/* Release the lock of the folder last, so that the next process which gets the lock finds
	 * everything closed. */
	hf_fd_cleanup(&shim->dir_fd);
	hf_fd_cleanup(&shim->lock_fd);
}

int hf_shim_serve(const char *pod_dir, int ready_fd)
{
	struct shim *shim = hf_xcalloc(1, sizeof(*shim));
	struct hf_error err;
	int rc;

	shim->pod_dir = pod_dir;
	shim->alone_since = mono_now() + FIRST_KUBELET_MAX;
	shim->dir_fd = shim->logs_fd = shim->lock_fd = shim->listen_fd = shim->signal_fd = -1;
	shim->lifeline[0] = shim->lifeline[1] = shim->journal.fd = -1;
	for (size_t i = 0; i < HF_SHIM_CLIENTS_MAX; i++)
		shim->clients[i] = -1;
	for (size_t i = 0; i < HF_POD_CONTAINERS_MAX; i++)
		release_container(&shim->containers[i]);
	shim->arena = hf_arena_create(ARENA_BYTES_MAX);
	rc = be_born(shim, &err);
	(void)!write(ready_fd, rc ? err.text : "ok", rc ? strlen(err.text) : 2);
	(void)close(ready_fd);
	while (!rc && !shim->done)
		run_turn(shim);
	release_shim(shim);
	free(shim);
	return rc ? 1 : 0;
}
