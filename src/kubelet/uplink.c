/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/runtime/netns_internal.h"
#include "loop/pipe.h"
#include "loop/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Connects the pods' network to other networks: runs slirp4netns, if it is installed, with its tap
 * as a port of the bridge. It needs no rights and changes nothing on the machine (no address
 * translation, no forwarding). It cannot reach the machine's own loopback.
 *
 * slirp4netns ends when its stdin ends. That is a pipe whose other end the kubelet and every shim
 * hold. It thus lives as long as a pod may need it, and a later kubelet takes the pipe over.
 */
#define PROGRAM "slirp4netns"
#define START_AGAIN HF_SECOND

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number
static const char mtu_flag[] = "--mtu=" TEXT(HF_NET_MTU);
static const char cidr_flag[] = "--cidr=" HF_NET_CIDR;

struct hf_kubelet_uplink {
	struct hf_kubelet *kubelet;
	struct hf_process *slirp, *joiner;
	int hold;
	/* the user namespace of the pods' network; open until slirp4netns has opened it by its
	 * path */
	int user_ns;
	struct hf_io *io; /* reports the end of slirp4netns */
	struct hf_timer *timer;
	bool first; /* hf_kubelet_probed has not been called yet */
};

/* --- requirements --- */

static char *find_program(void)
{
	HF_AUTOFREE char *path = hf_xstrdup(hf_str_or(getenv("PATH"), "/usr/bin:/bin"));
	char *rest = path, *folder;

	while ((folder = strsep(&rest, ":"))) {
		HF_AUTOFREE char *file = hf_xasprintf("%s/" PROGRAM, folder);

		if (folder[0] == '/' && access(file, X_OK) == 0)
			return hf_steal(&file);
	}
	return NULL;
}

static bool is_live_pipe(int fd)
{
	struct pollfd gone = {.fd = fd};
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && poll(&gone, 1, 0) == 0;
}

/* --- start of slirp4netns --- */

static void report_uplink(struct hf_kubelet_uplink *u, bool up, const char *why)
{
	struct hf_kubelet *k = u->kubelet;

	k->uplink = up;
	(void)snprintf(k->uplink_why, sizeof(k->uplink_why), "%s", why);
	if (u->first) {
		u->first = false;
		k->net_known = true;
		hf_kubelet_probed(k);
	}
}

static void let_go(struct hf_kubelet_uplink *u)
{
	u->io = hf_io_destroy(u->io);
	hf_fd_cleanup(&u->hold);
	hf_fd_cleanup(&u->user_ns);
	u->slirp = hf_process_destroy(u->slirp);
	u->joiner = hf_process_destroy(u->joiner);
}

static void on_gone(void *arg, unsigned events HF_UNUSED)
{
	struct hf_kubelet_uplink *u = arg;

	bool worked = u->joiner == NULL;

	let_go(u);
	u->kubelet->uplink = false;
	if (worked)
		hf_timer_arm(u->timer, START_AGAIN);
	else
		report_uplink(u, false,
			      PROGRAM " failed on this machine; run it by hand to see its error");
}

static void on_slirp(void *arg HF_UNUSED, const struct hf_process_exit *ended HF_UNUSED)
{
	/* on_gone, which reads the pipe, handles the end of slirp4netns. */
}

static void on_joined(void *arg, const struct hf_process_exit *ended)
{
	struct hf_kubelet_uplink *u = arg;

	u->joiner = hf_process_destroy(u->joiner);
	hf_fd_cleanup(&u->user_ns);
	if (ended->code == 0) {
		report_uplink(u, true, "");
		return;
	}
	let_go(u);
	report_uplink(u, false, PROGRAM " failed on this machine; run it by hand to see its error");
}

static int watch_pipe(struct hf_kubelet_uplink *u, struct hf_error *err)
{
	int rc = hf_io_create(u->kubelet->loop, u->hold, on_gone, u, &u->io, err);

	if (!rc)
		hf_io_want(u->io, HF_IO_HANGUP);
	return rc;
}

static int spawn_joiner(struct hf_kubelet_uplink *u, struct hf_error *err)
{
	const char *const argv[] = {u->kubelet->exe, "shim", "uplink", NULL};
	struct hf_process_spec spec = {
		.argv = argv,
		.stdio = {u->kubelet->netns_fd, HF_PROCESS_STDIO_NULL, HF_PROCESS_STDIO_NULL}};

	return hf_process_spawn(u->kubelet->loop, &spec, on_joined, u, &u->joiner, err);
}

static int spawn_slirp(struct hf_kubelet_uplink *u, const char *program, int in,
		       struct hf_error *err)
{
	HF_AUTOFREE char *net = hf_xasprintf("/proc/%d/fd/%d", (int)getpid(), u->kubelet->netns_fd);
	HF_AUTOFREE char *user =
		hf_xasprintf("--userns-path=/proc/%d/fd/%d", (int)getpid(), u->user_ns);
	const char *argv[12] = {program,       "--disable-host-loopback", cidr_flag, mtu_flag,
				"--exit-fd=0", "--netns-type=path"};
	struct hf_process_spec spec = {.argv = argv,
				       .new_session = true,
				       .stdio = {in, HF_PROCESS_STDIO_NULL, HF_PROCESS_STDIO_NULL}};
	size_t n = 6;

	if (u->kubelet->user_ns && u->user_ns >= 0)
		argv[n++] = user;
	argv[n++] = net;
	argv[n++] = HF_NET_TAP;
	return hf_process_spawn(u->kubelet->loop, &spec, on_slirp, u, &u->slirp, err);
}

static int start_slirp(struct hf_kubelet_uplink *u, struct hf_error *err)
{
	HF_AUTOFREE char *program = find_program();
	HF_AUTO_FD tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	int in[2] = {-1, -1};
	int rc;

	if (!program)
		return hf_error_set(err, HF_E_NOT_FOUND, PROGRAM " is not installed; install it");
	if (tun < 0)
		return hf_error_set(err, HF_E_IO,
				    "this user cannot open '/dev/net/tun', which " PROGRAM
				    " needs (%s); let it read and write that (mode 0666 is usual)",
				    strerror(errno));
	rc = hf_pipe_make(in, err);
	if (rc)
		return rc;
	u->hold = in[1];
	u->user_ns = ioctl(u->kubelet->netns_fd, NS_GET_USERNS);
	rc = spawn_slirp(u, program, in[0], err);
	hf_fd_cleanup(&in[0]);
	if (!rc)
		rc = spawn_joiner(u, err);
	if (!rc)
		rc = watch_pipe(u, err);
	return rc;
}

static void on_timer(void *arg)
{
	struct hf_kubelet_uplink *u = arg;
	struct hf_error err;

	if (start_slirp(u, &err) == 0)
		return;
	let_go(u);
	report_uplink(u, false, err.text);
}

struct hf_kubelet_uplink *hf_kubelet_uplink_create(struct hf_kubelet *k)
{
	struct hf_kubelet_uplink *u = hf_xcalloc(1, sizeof(*u));

	u->kubelet = k;
	u->user_ns = -1;
	u->first = true;
	u->timer = hf_timer_create(k->loop, on_timer, u);
	u->hold = hf_kubelet_live_pod_fd(k, HF_SHIM_UPLINK_FD, O_WRONLY | O_NONBLOCK, is_live_pipe);
	if (u->hold >= 0 && watch_pipe(u, NULL) == 0)
		k->uplink = true;
	else
		hf_timer_arm(u->timer, 0);
	return u;
}

struct hf_kubelet_uplink *hf_kubelet_uplink_destroy(struct hf_kubelet_uplink *u)
{
	if (!u)
		return NULL;
	let_go(u);
	u->timer = hf_timer_destroy(u->timer);
	free(u);
	return NULL;
}

bool hf_kubelet_uplink_pending(const struct hf_kubelet_uplink *u)
{
	return u->first && !u->kubelet->uplink;
}

int hf_kubelet_uplink_fd(const struct hf_kubelet_uplink *u)
{
	return u ? u->hold : -1;
}
