/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "loop/pipe.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Runs a program in a container, or a probe in a pod's network, through the pod's shim. Calls back
 * when it has ended. The program is killed if its time is over, or if the caller destroys the
 * struct.
 */

struct hf_kubelet_exec {
	int fd;
	struct hf_io *io;
	struct hf_reader *output;
	struct hf_timer *timer;
	struct hf_strbuf text; /* the first bytes of the output */
	hf_kubelet_exec_fn done;
	void *arg;
};

struct hf_kubelet_exec *hf_kubelet_exec_destroy(struct hf_kubelet_exec *e)
{
	if (!e)
		return NULL;
	e->io = hf_io_destroy(e->io);
	e->output = hf_reader_destroy(e->output);
	e->timer = hf_timer_destroy(e->timer);
	hf_fd_cleanup(&e->fd);
	hf_strbuf_release(&e->text);
	free(e);
	return NULL;
}

static void finish_exec(struct hf_kubelet_exec *e, bool ran, int code, const char *text)
{
	struct hf_kubelet_exec_result result = {.ran = ran, .code = code};

	if (e->output)
		hf_reader_drain(e->output);
	(void)snprintf(result.text, sizeof(result.text), "%s", text ? text : e->text.data);
	result.text[strcspn(result.text, "\n")] = '\0';
	/* done destroys the exec. */
	e->done(e->arg, &result);
}

static void on_output(void *arg, const char *bytes, size_t len, int read_error HF_UNUSED)
{
	struct hf_kubelet_exec *e = arg;
	size_t room = HF_KUBELET_EXEC_TEXT_MAX - 1 - e->text.len;

	hf_strbuf_add(&e->text, bytes, len < room ? len : room);
}

static void on_late(void *arg)
{
	finish_exec(arg, true, -1, "time limit exceeded");
}

static void on_socket(void *arg, unsigned events HF_UNUSED)
{
	struct hf_kubelet_exec *e = arg;
	char message[HF_SHIM_MESSAGE_MAX + 1];
	ssize_t n = recv(e->fd, message, sizeof(message) - 1, MSG_DONTWAIT);
	int64_t code;

	if (n < 0)
		return;
	message[n] = '\0';
	if (n == 0 || hf_streq(message, "wait"))
		finish_exec(e, false, -1, "the container does not run");
	else if (hf_str_has_prefix(message, "exit ") &&
		 hf_str_to_i64(message + strlen("exit "), 0, 255, &code, NULL) == 0)
		finish_exec(e, true, (int)code, NULL);
	else if (hf_str_has_prefix(message, "fail "))
		finish_exec(e, true, -1, message + strlen("fail "));
}

static bool open_link(struct hf_kubelet_exec *e, const struct hf_kubelet_pod *pod,
		      const char *container, const struct hf_kubelet_handler *handler)
{
	struct hf_loop *loop = pod->kubelet->loop;
	HF_AUTO_FD dir = open(pod->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	HF_AUTO_FD null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int out[2] = {-1, -1};
	bool sent;

	if (dir < 0 || null < 0)
		return false;
	e->fd = hf_shim_connect(dir, SOCK_NONBLOCK);
	if (e->fd < 0 || hf_pipe_make(out, NULL) != 0)
		return false;
	sent = hf_shim_ask(e->fd, handler->probe ? "probe" : "exec", container, handler->argv,
			   (const int[3]){null, out[1], out[1]});
	hf_fd_cleanup(&out[1]);
	if (!sent || hf_reader_create(loop, out[0], on_output, e, &e->output, NULL) != 0) {
		hf_fd_cleanup(&out[0]);
		return false;
	}
	if (hf_io_create(loop, e->fd, on_socket, e, &e->io, NULL) != 0)
		return false;
	hf_io_want(e->io, HF_IO_READ | HF_IO_HANGUP);
	return true;
}

struct hf_kubelet_exec *hf_kubelet_exec_start(const struct hf_kubelet_pod *pod,
					      const char *container,
					      const struct hf_kubelet_handler *handler,
					      hf_time within, hf_kubelet_exec_fn done, void *arg)
{
	struct hf_kubelet_exec *e = hf_xcalloc(1, sizeof(*e));

	e->fd = -1;
	e->done = done;
	e->arg = arg;
	hf_strbuf_init(&e->text, HF_KUBELET_EXEC_TEXT_MAX);
	e->timer = hf_timer_create(pod->kubelet->loop, on_late, e);
	if (!open_link(e, pod, container, handler))
		return hf_kubelet_exec_destroy(e);
	hf_timer_arm(e->timer, within);
	return e;
}
