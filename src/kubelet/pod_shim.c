/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/*
 * Handles the reports of a pod's shim: the journal has grown, a start was refused, the shim is
 * ready, could not be started or is gone. If the shim is gone before its containers ended, the pod
 * is lost.
 */

static void tell_events(struct hf_kubelet_pod *pod)
{
	for (size_t i = 0; i < pod->n; i++) {
		struct hf_kubelet_pod_container *c = &pod->containers[i];
		const struct hf_container_past *past = hf_pod_past_find(&pod->past, c->name);

		if (!past || (int64_t)past->last.number <= c->told ||
		    past->last.state < HF_ATTEMPT_RUNNING)
			continue;
		c->told = (int64_t)past->last.number;
		if (past->last.state == HF_ATTEMPT_FAILED)
			hf_kubelet_event(pod, "Warning", "Failed", "Error: %s", past->last.text);
		else
			hf_kubelet_event(pod, "Normal", "Started", "Started container %s", c->name);
	}
}

/* Continues a stop that an earlier kubelet has recorded in the journal, with a new grace
 * period. */
void hf_kubelet_pod_take_stop(struct hf_kubelet_pod *pod)
{
	if (pod->stop != HF_KUBELET_POD_GO || pod->past.stop == HF_STOPPED_NOT)
		return;
	pod->stop = pod->past.stop == HF_STOPPED_BY_DRAIN ? HF_KUBELET_POD_STOP_DRAIN
							  : HF_KUBELET_POD_STOP_DEADLINE;
	pod->stop_since = hf_loop_mono(pod->kubelet->loop);
	pod->stop_grace = hf_kubelet_pod_grace(pod);
	pod->stop_told = true;
}

static void read_journal(struct hf_kubelet_pod *pod)
{
	HF_AUTO_FD dir = open(pod->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is_gone = dir < 0 && errno == ENOENT;
	struct hf_error err;
	int rc = dir < 0 ? HF_E_IO : hf_journal_read(dir, &pod->past, &err);

	/* The pod's folder was removed, so the kubelet cannot learn how its containers end: the end
	 * of the shim ends them, and the pod is lost. */
	if (is_gone || (rc == HF_E_NOT_FOUND && pod->past.shim.pid))
		(void)hf_process_id_kill(&pod->past.shim, SIGKILL, NULL);
	/* If the journal cannot be read now, a later event reads it again. A damaged journal is
	 * handled by hf_kubelet_pod_shim_gone. */
	if (rc != 0)
		return;
	for (size_t i = 0; i < pod->n; i++) {
		struct hf_kubelet_pod_container *c = &pod->containers[i];
		const struct hf_container_past *past = hf_pod_past_find(&pod->past, c->name);

		if (past && c->asked && past->last.number >= c->attempt) {
			c->asked = false;
			c->blocked_until = HF_TIME_NONE;
			c->reason[0] = c->message[0] = '\0';
		}
	}
	if (pod->spec_doc)
		hf_kubelet_pod_take_stop(pod);
	tell_events(pod);
}

static void on_shim_ready(void *arg)
{
	struct hf_kubelet_pod *pod = arg;

	if (pod->state == HF_KUBELET_POD_SPAWNING)
		pod->state = HF_KUBELET_POD_RUNNING;
	pod->trouble[0] = '\0';
	pod->stop_told = false;
	/* The connection broke, and with it commands that were sent: repeat them on the new
	 * connection. */
	for (size_t i = 0; i < pod->n; i++)
		pod->containers[i].asked = false;
	read_journal(pod);
	hf_kubelet_hosts_changed(pod->kubelet);
	hf_kubelet_pod_wake(pod);
}

static void on_shim_journal(void *arg)
{
	struct hf_kubelet_pod *pod = arg;

	read_journal(pod);
	hf_kubelet_pod_wake(pod);
}

static void on_shim_refused(void *arg, const char *name, unsigned attempt, const char *text)
{
	struct hf_kubelet_pod *pod = arg;

	for (size_t i = 0; i < pod->n; i++) {
		struct hf_kubelet_pod_container *c = &pod->containers[i];

		if (hf_streq(c->name, name) && c->attempt == attempt && c->asked)
			hf_kubelet_start_block(pod, c, "RunContainerError", text,
					       HF_KUBELET_POD_RETRY);
	}
}

static void on_shim_output(void *arg, const char *name, unsigned attempt, const char *lines,
			   size_t len)
{
	struct hf_kubelet_pod *pod = arg;
	struct hf_kubelet *k = pod->kubelet;

	if (!k->told_spill)
		hf_kubelet_notice(
			k,
			"output of pod %s/%s cannot be written to its log, and is not kept "
			"(no room on the disk of %s?)",
			pod->ns, pod->name, k->state_dir);
	k->told_spill = true;
	hf_kubelet_logs_spill(k, pod->uid, name, attempt, lines, len);
}

/* Marks the pod as lost: the attempts that ran when the shim died have ended, with unknown exit
 * codes. */
void hf_kubelet_pod_mark_lost(struct hf_kubelet_pod *pod, const char *why)
{
	hf_time now = hf_loop_wall(pod->kubelet->loop);

	pod->lost = true;
	(void)snprintf(pod->lost_text, sizeof(pod->lost_text), "%s", why);
	for (size_t i = 0; i < pod->past.n_containers; i++) {
		struct hf_attempt *a = &pod->past.containers[i].last;

		if (!hf_attempt_running(a))
			continue;
		if (a->state == HF_ATTEMPT_BEGUN)
			a->started = a->begun;
		a->state = HF_ATTEMPT_EXITED;
		a->code = 137;
		a->signum = 0;
		a->finished = now;
		(void)snprintf(a->text, sizeof(a->text),
			       "the container was lost with its shim; its exit code is unknown");
	}
	hf_kubelet_event(pod, "Warning", "Lost", "%s", why);
}

static const char *why_lost(const struct hf_kubelet_pod *pod)
{
	struct hf_process_id self;

	if (pod->past.shim.pid && hf_process_id_get(getpid(), &self, NULL) == 0 &&
	    !hf_streq(self.boot_id, pod->past.shim.boot_id))
		return "the machine was restarted while the pod ran";
	return "the pod's shim process is gone, and its containers with it";
}

static const char *why_unreadable(int dir)
{
	return dir < 0 ? "the pod's folder was removed while the pod ran"
		       : "the journal of the pod's shim is damaged";
}

/* Kills processes of the pod that are still alive after the shim's end. Without a process
 * namespace, the kernel does not end them with the shim. */
static void kill_strays(const struct hf_kubelet_pod *pod)
{
	if (!pod->config.pid_ns)
		hf_kubelet_kill_strays(pod->uid);
}

void hf_kubelet_pod_shim_gone(void *arg)
{
	struct hf_kubelet_pod *pod = arg;
	struct hf_pod_plan plan;
	struct hf_plan_container containers[HF_POD_CONTAINERS_MAX];
	HF_AUTO_FD dir = open(pod->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct hf_error err;
	int rc;

	pod->shim = hf_kubelet_shim_destroy(pod->shim);
	/* Without the store's document the pod's containers are unknown: handle the end of the
	 * shim when the document arrives. */
	if (!pod->spec_doc && pod->stop == HF_KUBELET_POD_GO) {
		pod->shim_gone = true;
		return;
	}
	pod->shim_gone = false;
	rc = dir < 0 ? HF_E_IO : hf_journal_read(dir, &pod->past, &err);
	/* The shim died before it started a container, so a new shim may be started. */
	if (pod->state == HF_KUBELET_POD_SPAWNING &&
	    (rc == HF_E_NOT_FOUND || (rc == 0 && pod->past.n_containers == 0 && !pod->past.quit))) {
		pod->state = HF_KUBELET_POD_NEW;
		hf_kubelet_pod_wake(pod);
		return;
	}
	if (rc && rc != HF_E_NOT_FOUND)
		hf_kubelet_pod_mark_lost(pod, why_unreadable(dir));
	else
		tell_events(pod);
	if (pod->spec_doc)
		hf_kubelet_pod_take_stop(pod);
	hf_kubelet_pod_fill_plan(pod, &plan, containers);
	if (!pod->lost && !plan.finished && !pod->past.quit)
		hf_kubelet_pod_mark_lost(pod, why_lost(pod));
	kill_strays(pod);
	pod->state = HF_KUBELET_POD_ENDED;
	hf_kubelet_hosts_changed(pod->kubelet);
	pod->settled = false;
	hf_kubelet_pod_wake(pod);
	hf_kubelet_check_drained(pod->kubelet);
}

static void on_shim_failed(void *arg, const char *text)
{
	struct hf_kubelet_pod *pod = arg;
	struct hf_kubelet_shim_handler handler;

	pod->shim = hf_kubelet_shim_destroy(pod->shim);
	/* The folder already has a shim: an earlier kubelet started it and was killed. Connect to
	 * that shim. */
	if (hf_streq(text, HF_SHIM_TAKEN)) {
		pod->shim = hf_kubelet_shim_attach(pod->kubelet->loop, pod->dir,
						   hf_kubelet_pod_handler(pod, &handler));
		return;
	}
	hf_kubelet_event(pod, "Warning", "FailedCreatePodSandBox",
			 "Failed to create pod sandbox: %s", text);
	(void)snprintf(pod->trouble, sizeof(pod->trouble), "failed to create pod sandbox: %s",
		       text);
	pod->trouble_reason[0] = '\0';
	pod->state = HF_KUBELET_POD_NEW;
	pod->retry_at = hf_time_add(hf_loop_mono(pod->kubelet->loop), HF_KUBELET_POD_RETRY);
	hf_kubelet_pod_wake(pod);
}

const struct hf_kubelet_shim_handler *hf_kubelet_pod_handler(
	struct hf_kubelet_pod *pod, struct hf_kubelet_shim_handler *handler)
{
	*handler = (struct hf_kubelet_shim_handler){
		.ready = on_shim_ready,
		.failed = on_shim_failed,
		.journal = on_shim_journal,
		.refused = on_shim_refused,
		.output = on_shim_output,
		.gone = hf_kubelet_pod_shim_gone,
		.arg = pod,
	};
	return handler;
}
