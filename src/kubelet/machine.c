/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "kubelet/question.h"
#include "loop/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
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

struct hf_kubelet_probe {
	struct hf_kubelet *kubelet;
	struct hf_question *question;
	/* stdin of the child; closing it makes the child end and leave the namespace */
	int hold;
};

struct hf_kubelet_probe *hf_kubelet_probe_destroy(struct hf_kubelet_probe *p)
{
	if (!p)
		return NULL;
	p->question = hf_question_destroy(p->question);
	hf_fd_cleanup(&p->hold);
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

	/* Takes over the namespace of pods that already run, so that new pods can reach them. */
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

/* Why there is no answer of the trial. */
static const char *explain_silence(bool late)
{
	return late ? "the trial of this machine's namespaces did not end within 30 s"
		    : "the trial of this machine's namespaces failed";
}

static void on_answer(void *arg, const struct hf_json *json, bool late)
{
	const struct hf_kubelet_probe *p = arg;
	struct hf_kubelet *k = p->kubelet;
	const struct hf_json *cgroups;

	if (!json) {
		give_up(k, explain_silence(late));
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
		take_net(k, hf_question_pid(p->question));
	finish_probe(k);
}

int hf_kubelet_probe_start(struct hf_kubelet *k, struct hf_error *err)
{
	struct hf_kubelet_probe *p = hf_xcalloc(1, sizeof(*p));
	const char *const argv[] = {k->exe, "shim", "net", NULL};
	struct hf_question_options question = {
		.loop = k->loop, .argv = argv, .within = ANSWER_WITHIN, .fn = on_answer, .arg = p};
	int in[2] = {-1, -1};
	int rc = hf_pipe_make(in, err);

	p->kubelet = k;
	p->hold = in[1];
	question.input = in[0];
	if (!rc)
		rc = hf_question_ask(&question, &p->question, err);
	hf_fd_cleanup(&in[0]);
	if (rc) {
		hf_kubelet_probe_destroy(p);
		return rc;
	}
	k->probe = p;
	return 0;
}

/* --- the same question without a kubelet --- */

struct trial {
	struct hf_loop *loop;
	bool isolate;
	char *why;
	size_t why_size;
};

static void on_trial(void *arg, const struct hf_json *json, bool late)
{
	struct trial *trial = arg;

	trial->isolate = hf_json_true(hf_json_get(json, "isolate"), false);
	(void)snprintf(trial->why, trial->why_size, "%s",
		       json ? hf_json_str(hf_json_get(json, "why"), "") : explain_silence(late));
	hf_loop_stop(trial->loop);
}

bool hf_kubelet_can_isolate(const char *exe, char *why, size_t why_size)
{
	const char *const argv[] = {exe ? exe : "/proc/self/exe", "shim", "net", NULL};
	struct trial trial = {.why = why, .why_size = why_size};
	struct hf_question_options options = {.argv = argv,
					      .die_with_parent = true,
					      .within = ANSWER_WITHIN,
					      .fn = on_trial,
					      .arg = &trial};
	struct hf_question *question = NULL;
	int in[2] = {-1, -1};
	struct hf_error err;
	int rc = hf_loop_create(&trial.loop, &err);

	if (!rc)
		rc = hf_pipe_make(in, &err);
	options.loop = trial.loop;
	options.input = in[0];
	if (!rc)
		rc = hf_question_ask(&options, &question, &err);
	if (rc)
		(void)snprintf(why, why_size, "%s", err.text);
	else
		hf_loop_run(trial.loop);
	hf_question_destroy(question);
	hf_fd_cleanup(&in[0]);
	/* The end of its stdin ends the child. */
	hf_fd_cleanup(&in[1]);
	hf_loop_destroy(trial.loop);
	return !rc && trial.isolate;
}
