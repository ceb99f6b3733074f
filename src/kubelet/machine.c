/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "loop/pipe.h"
#include "loop/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/*
 * Finds out what this machine allows, by a child that tries it ("shim net"), and keeps the node's
 * network namespace. The namespace exists as long as a process has it open. The kubelet and each
 * pod's shim do, so a later kubelet can take it over from a shim.
 */
#define ANSWER_WITHIN (30 * HF_SECOND)
#define ANSWER_BYTES_MAX ((size_t)64 << 10)

struct hf_kubelet_probe {
	struct hf_kubelet *kubelet;
	struct hf_process *child;
	struct hf_reader *reader;
	struct hf_timer *timer;
	/* the child's stdin; the child stays in the namespace until this is closed */
	int hold;
	struct hf_strbuf answer;
};

struct hf_kubelet_probe *hf_kubelet_probe_destroy(struct hf_kubelet_probe *p)
{
	if (!p)
		return NULL;
	p->reader = hf_reader_destroy(p->reader);
	p->timer = hf_timer_destroy(p->timer);
	hf_fd_cleanup(&p->hold);
	p->child = hf_process_destroy(p->child);
	hf_strbuf_release(&p->answer);
	free(p);
	return NULL;
}

static bool is_net_ns(int fd)
{
	return fd >= 0 && ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET;
}

static void take_net(struct hf_kubelet *k, pid_t pid)
{
	char path[64];

	/* Takes the namespace of the pods that already run, so that new pods can reach them. */
	k->netns_fd = hf_kubelet_live_pod_fd(k, HF_SHIM_NETNS_FD, O_RDONLY, is_net_ns);
	if (k->netns_fd >= 0)
		return;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	k->netns_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (k->netns_fd < 0) {
		k->isolate = false;
		(void)snprintf(k->why, sizeof(k->why), "cannot open '%s': %s", path,
			       strerror(errno));
	}
}

static void finish_probe(struct hf_kubelet *k)
{
	k->probe = hf_kubelet_probe_destroy(k->probe);
	if (k->isolate)
		k->uplink_process = hf_kubelet_uplink_create(k);
	if (k->isolate && hf_kubelet_uplink_pending(k->uplink_process))
		return;
	k->net_known = true;
	hf_kubelet_probed(k);
}

static void give_up(struct hf_kubelet *k, const char *why)
{
	k->isolate = k->user_ns = k->pid_ns = false;
	(void)snprintf(k->why, sizeof(k->why), "%s", why);
	finish_probe(k);
}

static void take_answer(struct hf_kubelet_probe *p)
{
	struct hf_kubelet *k = p->kubelet;
	HF_AUTO_JSON json = NULL;
	const struct hf_json *cgroups;

	if (hf_json_parse(p->answer.data, p->answer.len, NULL, &json, NULL) != 0) {
		give_up(k, "the trial of this machine's namespaces failed");
		return;
	}
	cgroups = hf_json_get(json, "cgroups");
	k->cgroups.version = (int)hf_json_i64(hf_json_get(cgroups, "version"), 0);
	(void)snprintf(k->cgroups.memory, sizeof(k->cgroups.memory), "%s",
		       hf_json_str(hf_json_get(cgroups, "memory"), ""));
	(void)snprintf(k->cgroups.cpu, sizeof(k->cgroups.cpu), "%s",
		       hf_json_str(hf_json_get(cgroups, "cpu"), ""));
	if (k->network == HF_KUBELET_NETWORK_HOST) {
		give_up(k, "the option for the machine's network is set");
		return;
	}
	k->isolate = hf_json_true(hf_json_get(json, "isolate"), false);
	k->user_ns = hf_json_true(hf_json_get(json, "userNamespace"), false);
	k->pid_ns = hf_json_true(hf_json_get(json, "pidNamespace"), false);
	(void)snprintf(k->why, sizeof(k->why), "%s", hf_json_str(hf_json_get(json, "why"), ""));
	if (k->isolate)
		take_net(k, hf_process_pid(p->child));
	finish_probe(k);
}

static void on_answer(void *arg, const char *bytes, size_t len, int read_error HF_UNUSED)
{
	struct hf_kubelet_probe *p = arg;

	hf_strbuf_add(&p->answer, bytes, len);
	/* The end of the output without a line means that the child died. */
	if (len == 0 || memchr(bytes, '\n', len))
		take_answer(p);
}

static void on_late(void *arg)
{
	struct hf_kubelet_probe *p = arg;

	(void)hf_process_kill(p->child, SIGKILL, NULL);
	give_up(p->kubelet, "the trial of this machine's namespaces did not end within 30 s");
}

static void on_exit_of_child(void *arg HF_UNUSED, const struct hf_process_exit *ended HF_UNUSED)
{
	/* on_answer handles the end of the child's output. */
}

int hf_kubelet_probe_start(struct hf_kubelet *k, struct hf_error *err)
{
	struct hf_kubelet_probe *p = hf_xcalloc(1, sizeof(*p));
	const char *const argv[] = {k->exe, "shim", "net", NULL};
	int in[2] = {-1, -1}, out[2] = {-1, -1};
	struct hf_process_spec spec = {.argv = argv, .new_session = true};
	int rc;

	p->kubelet = k;
	p->hold = -1;
	hf_strbuf_init(&p->answer, ANSWER_BYTES_MAX);
	p->timer = hf_timer_create(k->loop, on_late, p);
	rc = hf_pipe_make(in, err);
	if (!rc)
		rc = hf_pipe_make(out, err);
	if (!rc) {
		spec.stdio[0] = in[0];
		spec.stdio[1] = out[1];
		spec.stdio[2] = HF_PROCESS_STDIO_NULL;
		p->hold = in[1];
		rc = hf_process_spawn(k->loop, &spec, on_exit_of_child, p, &p->child, err);
	}
	hf_fd_cleanup(&in[0]);
	hf_fd_cleanup(&out[1]);
	if (!rc)
		rc = hf_reader_create(k->loop, out[0], on_answer, p, &p->reader, err);
	if (rc) {
		hf_fd_cleanup(&out[0]);
		hf_kubelet_probe_destroy(p);
		return rc;
	}
	hf_timer_arm(p->timer, ANSWER_WITHIN);
	k->probe = p;
	return 0;
}
