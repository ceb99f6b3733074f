/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/kubelet_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "loop/pipe.h"
#include "loop/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

/* Starts a pod's shim, and handles the kubelet's end of the shim's socket. */

/* delay before a live shim is tried again that does not answer, or is about to end */
#define LOOK_AGAIN (20 * HF_MS)
#define MESSAGES_AT_ONCE 64
#define ENVIRON_BYTES_MAX ((size_t)3 << 20)

struct hf_kubelet_shim {
	struct hf_loop *loop;
	char *dir;
	struct hf_kubelet_shim_handler handler;
	struct hf_process *launcher;
	int errors; /* stderr of the launcher */
	int fd;
	struct hf_io *io;
	struct hf_timer *timer;
};

bool hf_kubelet_shim_alive(const char *pod_dir)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/" HF_SHIM_LOCK_FILE, pod_dir);
	HF_AUTO_FD fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static bool is_of_pod(pid_t pid, const char *mark)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(ENVIRON_BYTES_MAX);
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	if (hf_fs_read(path, &text, NULL) != 0)
		return false;
	for (const char *p = text.data; p < text.data + text.len; p += strlen(p) + 1)
		if (hf_streq(p, mark))
			return true;
	return false;
}

void hf_kubelet_kill_strays(const char *pod_uid)
{
	HF_AUTOFREE char *mark = hf_xasprintf("HOLDFAST_POD_UID=%s", pod_uid);
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		struct hf_process_id id;
		int64_t pid;

		if (hf_str_to_i64(entry->d_name, 2, INT32_MAX, &pid, NULL) != 0)
			continue;
		/* Take the identity of the process before the check, so that the kill cannot hit
		 * another process with a reused pid. */
		if (hf_process_id_get((pid_t)pid, &id, NULL) == 0 && is_of_pod((pid_t)pid, mark))
			(void)hf_process_id_kill(&id, SIGKILL, NULL);
	}
	if (proc)
		(void)closedir(proc);
}

static void close_connection(struct hf_kubelet_shim *s)
{
	s->io = hf_io_destroy(s->io);
	hf_fd_cleanup(&s->fd);
}

/* Handles "output NAME N\nLINES". */
static void on_output(const struct hf_kubelet_shim *s, char *message, size_t len)
{
	char *lines = memchr(message, '\n', len), *rest = message;
	const char *name;
	int64_t attempt;

	if (!lines)
		return;
	*lines++ = '\0';
	(void)strsep(&rest, " ");
	name = strsep(&rest, " ");
	if (name && rest && hf_str_to_i64(rest, 0, UINT32_MAX, &attempt, NULL) == 0)
		s->handler.output(s->handler.arg, name, (unsigned)attempt, lines,
				  (size_t)(message + len - lines));
}

static void on_message(struct hf_kubelet_shim *s, char *message)
{
	char *rest = message;
	const char *verb = strsep(&rest, " ");
	const char *name, *number;
	int64_t attempt;

	if (hf_streq(verb, "journal")) {
		s->handler.journal(s->handler.arg);
		return;
	}
	name = strsep(&rest, " ");
	number = strsep(&rest, " ");
	if (hf_streq(verb, "error") && number && rest &&
	    hf_str_to_i64(number, 0, UINT32_MAX, &attempt, NULL) == 0)
		s->handler.refused(s->handler.arg, name, (unsigned)attempt, rest);
}

static void on_socket(void *arg, unsigned events HF_UNUSED)
{
	struct hf_kubelet_shim *s = arg;
	static char message[HF_SHIM_OUTPUT_MAX + 1];

	for (int i = 0; i < MESSAGES_AT_ONCE; i++) {
		ssize_t n = recv(s->fd, message, sizeof(message) - 1, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			/* The shim has ended, and its last records are in the journal. */
			close_connection(s);
			hf_timer_arm(s->timer, 0);
			return;
		}
		message[n] = '\0';
		if (hf_str_has_prefix(message, "output "))
			on_output(s, message, (size_t)n);
		else
			on_message(s, message);
		if (s->fd < 0)
			return;
	}
}

static bool try_connect(struct hf_kubelet_shim *s)
{
	HF_AUTO_FD dir = open(s->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	HF_AUTO_FD fd = dir >= 0 ? hf_shim_connect(dir, SOCK_NONBLOCK) : -1;

	if (fd < 0)
		return false;
	if (hf_io_create(s->loop, fd, on_socket, s, &s->io, NULL) != 0)
		return false;
	s->fd = fd;
	fd = -1;
	hf_io_want(s->io, HF_IO_READ | HF_IO_HANGUP);
	return true;
}

static void on_timer(void *arg)
{
	struct hf_kubelet_shim *s = arg;

	if (try_connect(s))
		s->handler.ready(s->handler.arg);
	else if (!hf_kubelet_shim_alive(s->dir))
		s->handler.gone(s->handler.arg);
	else
		hf_timer_arm(s->timer, LOOK_AGAIN);
}

static void on_launched(void *arg, const struct hf_process_exit *ended)
{
	struct hf_kubelet_shim *s = arg;
	HF_AUTO_STRBUF said = HF_STRBUF_INIT(HF_ERROR_TEXT_MAX - 1);
	struct hf_error err;

	s->launcher = hf_process_destroy(s->launcher);
	if (ended->code == 0) {
		on_timer(s);
		return;
	}
	/* The process that launches the shim has exited, so the pipe has its whole output. */
	if (hf_fs_read_fd(s->errors, "the shim's errors", &said, &err) != 0 || !said.len)
		hf_strbuf_addstr(&said, "the shim could not be started");
	said.data[strcspn(said.data, "\n")] = '\0';
	s->handler.failed(s->handler.arg, said.data);
}

static struct hf_kubelet_shim *create_shim(struct hf_loop *loop, const char *pod_dir,
					   const struct hf_kubelet_shim_handler *handler)
{
	struct hf_kubelet_shim *s = hf_xcalloc(1, sizeof(*s));

	s->loop = loop;
	s->dir = hf_xstrdup(pod_dir);
	s->handler = *handler;
	s->fd = s->errors = -1;
	s->timer = hf_timer_create(loop, on_timer, s);
	return s;
}

struct hf_kubelet_shim *hf_kubelet_shim_attach(struct hf_loop *loop, const char *pod_dir,
					       const struct hf_kubelet_shim_handler *handler)
{
	struct hf_kubelet_shim *s = create_shim(loop, pod_dir, handler);

	hf_timer_arm(s->timer, 0);
	return s;
}

int hf_kubelet_shim_start(const struct hf_kubelet *kubelet, const char *pod_dir,
			  const struct hf_kubelet_shim_handler *handler,
			  struct hf_kubelet_shim **ret_shim, struct hf_error *err)
{
	struct hf_kubelet_shim *s = create_shim(kubelet->loop, pod_dir, handler);
	const char *const argv[] = {kubelet->exe, "shim", "pod", s->dir, NULL};
	int fds[2] = {-1, -1};
	struct hf_process_spec spec = {.argv = argv};
	int rc = hf_pipe_make(fds, err);

	if (!rc) {
		s->errors = fds[0];
		spec.stdio[0] = kubelet->netns_fd >= 0 ? kubelet->netns_fd : HF_PROCESS_STDIO_NULL;
		spec.stdio[1] = hf_kubelet_uplink_fd(kubelet->uplink_process);
		spec.stdio[2] = fds[1];
		rc = hf_process_spawn(s->loop, &spec, on_launched, s, &s->launcher, err);
		hf_fd_cleanup(&fds[1]);
	}
	if (rc) {
		hf_kubelet_shim_destroy(s);
		return rc;
	}
	*ret_shim = s;
	return 0;
}

struct hf_kubelet_shim *hf_kubelet_shim_destroy(struct hf_kubelet_shim *s)
{
	if (!s)
		return NULL;
	s->launcher = hf_process_destroy(s->launcher);
	s->timer = hf_timer_destroy(s->timer);
	close_connection(s);
	hf_fd_cleanup(&s->errors);
	free(s->dir);
	free(s);
	return NULL;
}

bool hf_kubelet_shim_command(struct hf_kubelet_shim *s, const char *fmt, ...)
{
	char text[HF_SHIM_MESSAGE_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* If a command cannot be sent now, it is lost. The kubelet sends it again, because it
	 * derives commands from the state. */
	return s && s->fd >= 0 && send(s->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}
