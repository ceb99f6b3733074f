/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/runtime/netns_internal.h"

#include <fcntl.h>
#include <stdlib.h>

/*
 * The life of a pod. Every event (a new document, a message from its shim, a reply, a timer) only
 * schedules sync_pod. sync_pod compares the state with what should be and does what is missing. A
 * lost or repeated event therefore does no harm.
 *
 * So act_on_plan switches over the state alone, without a table of states and events. The other
 * places that change pod->state are hf_kubelet_pod_prepare (pod_prepare.c) and the reports of the
 * shim (pod_shim.c).
 */

#define ARENA_BYTES_MAX ((size_t)64 << 20)
/* Delay before a command is repeated that a busy shim could not take. */
#define TELL_AGAIN (20 * HF_MS)

static void remove_files(struct hf_kubelet_pod *pod)
{
	HF_AUTOFREE char *groups = hf_xasprintf("%s.", pod->uid);
	struct hf_error err;

	hf_cgroup_sweep(&pod->config.cgroups, groups);
	if (pod->kubelet->kept_logs &&
	    hf_kubelet_keep_logs(pod->dir, pod->kubelet->kept_logs, pod->uid, &err) != 0)
		hf_kubelet_notice(pod->kubelet, "the logs of pod %s/%s are not kept: %s", pod->ns,
				  pod->name, err.text);
	/* On an error the files stay; the next kubelet tries again to remove them. */
	if (hf_fs_remove_tree(pod->dir, &err) != 0)
		hf_kubelet_notice(pod->kubelet, "cannot remove the files of pod %s/%s: %s", pod->ns,
				  pod->name, err.text);
}

/* --- choice of the next step --- */

static void watch_containers(struct hf_kubelet_pod *pod)
{
	bool stopping = pod->stop != HF_KUBELET_POD_GO;

	for (size_t i = 0; i < pod->n; i++) {
		struct hf_kubelet_pod_container *c = &pod->containers[i];

		hf_kubelet_probes_sync(c, stopping || pod->state != HF_KUBELET_POD_RUNNING);
		if (!stopping && pod->state == HF_KUBELET_POD_RUNNING)
			hf_kubelet_post_start_sync(c);
	}
}

static void run_plan(struct hf_kubelet_pod *pod, const struct hf_pod_plan *plan)
{
	if (pod->stop != HF_KUBELET_POD_GO && !hf_kubelet_pod_tell_stop(pod)) {
		hf_kubelet_pod_wake_in(pod, TELL_AGAIN);
		return;
	}
	if (plan->finished) {
		pod->state = HF_KUBELET_POD_QUITTING;
		hf_kubelet_shim_command(pod->shim, "quit");
		return;
	}
	if (pod->stop != HF_KUBELET_POD_GO) {
		hf_kubelet_pod_stop_containers(pod);
		return;
	}
	for (size_t i = 0; i < plan->n; i++) {
		const struct hf_plan_container *p = &plan->containers[i];
		struct hf_kubelet_pod_container *c = &pod->containers[i];

		if (p->step != HF_STEP_START || c->refs || c->asked)
			continue;
		c->attempt = p->attempt;
		c->backoff_s = p->backoff_s;
		hf_kubelet_start_container(pod, c);
	}
	hf_kubelet_pod_stop_failed(pod);
	if (plan->end_sidecars)
		hf_kubelet_pod_stop_sidecars(pod);
	if (plan->wake != HF_TIME_NEVER)
		hf_kubelet_pod_wake_in(pod, plan->wake - plan->now);
}

static void act_on_plan(struct hf_kubelet_pod *pod, const struct hf_pod_plan *plan)
{
	switch (pod->state) {
	case HF_KUBELET_POD_NEW:
	case HF_KUBELET_POD_REFUSED:
	case HF_KUBELET_POD_PREPARING:
		if (pod->stop != HF_KUBELET_POD_GO || !pod->doc) {
			pod->state = HF_KUBELET_POD_ENDED;
			hf_kubelet_pod_wake(pod);
		} else if (pod->state == HF_KUBELET_POD_NEW && pod->kubelet->probed) {
			hf_kubelet_pod_prepare(pod);
		}
		break;
	case HF_KUBELET_POD_RUNNING: run_plan(pod, plan); break;
	case HF_KUBELET_POD_QUITTING: hf_kubelet_shim_command(pod->shim, "quit"); break;
	case HF_KUBELET_POD_SPAWNING:
	case HF_KUBELET_POD_ENDED: break;
	}
}

/* Frees a pod that has ended and is gone from the store. */
static void forget_pod(struct hf_kubelet_pod *pod)
{
	struct hf_kubelet *k = pod->kubelet;
	HF_AUTOFREE char *uid = hf_xstrdup(pod->uid);

	(void)hf_map_remove(k->pods, uid);
	hf_kubelet_hosts_changed(k);
	hf_kubelet_check_drained(k);
}

/* Finishes a pod without running processes. If the store no longer has the pod, removes its files
 * and forgets it. Else, if the pod is marked for deletion and its final status is stored, deletes
 * the object. */
static void finish_pod(struct hf_kubelet_pod *pod, bool settled)
{
	if (!pod->doc) {
		remove_files(pod);
		forget_pod(pod);
		return;
	}
	if (settled && hf_kubelet_pod_deletion_time(pod))
		hf_kubelet_pod_delete_object(pod);
}

/* Tells whether this kubelet is ending the pod, because of a drain or a deadline. The status is
 * then written once, with all terminations, the phase and the reason, as upstream's kubelet does:
 * a termination without the reason would count as the program's. */
static bool is_being_ended(const struct hf_kubelet_pod *pod, const struct hf_pod_plan *plan)
{
	return (pod->stop == HF_KUBELET_POD_STOP_DRAIN ||
		pod->stop == HF_KUBELET_POD_STOP_DEADLINE) &&
	       pod->state == HF_KUBELET_POD_RUNNING && !plan->finished;
}

static void sync_pod(void *arg)
{
	struct hf_kubelet_pod *pod = arg;
	struct hf_plan_container containers[HF_POD_CONTAINERS_MAX];
	struct hf_pod_plan plan;
	enum hf_kubelet_pod_state before = pod->state;
	bool settled = true;

	hf_timer_disarm(pod->timer);
	pod->looks++;
	/* A pod that was found on disk waits until the store's document arrives. */
	if (!pod->doc && pod->stop == HF_KUBELET_POD_GO && pod->state != HF_KUBELET_POD_ENDED)
		return;
	hf_kubelet_pod_look_for_ends(pod);
	watch_containers(pod);
	hf_kubelet_pod_fill_plan(pod, &plan, containers);
	act_on_plan(pod, &plan);
	if (pod->state != before)
		hf_kubelet_pod_fill_plan(pod, &plan, containers);
	/* Write the status only when the facts about the machine are known: before, the kubelet
	 * has not registered its Node. */
	if (pod->doc && pod->kubelet->probed)
		settled = !is_being_ended(pod, &plan) && hf_kubelet_pod_write_status(pod, &plan);
	pod->settled = settled;
	if (pod->state == HF_KUBELET_POD_ENDED && settled)
		hf_kubelet_check_drained(pod->kubelet);
	if (pod->state == HF_KUBELET_POD_ENDED)
		finish_pod(pod, settled);
}

/* --- create and destroy --- */

static void add_containers(struct hf_kubelet_pod *pod, const char *list_name, bool init)
{
	const struct hf_json *list = hf_json_get(hf_kubelet_pod_spec(pod), list_name);

	for (size_t i = 0; i < hf_json_len(list) && pod->n < HF_POD_CONTAINERS_MAX; i++) {
		struct hf_kubelet_pod_container *c = &pod->containers[pod->n++];

		*c = (struct hf_kubelet_pod_container){
			.pod = pod,
			.spec = hf_json_item(list, i),
			.init = init,
			.blocked_until = HF_TIME_NONE,
			.told = -1,
			.term_sent = -1,
			.pre_stop_attempt = -1,
			.fail_attempt = -1,
		};
		c->name = hf_str_or(hf_json_path_str(c->spec, "name", NULL), "");
		c->sidecar = init &&
			     hf_streq(hf_json_path_str(c->spec, "restartPolicy", NULL), "Always");
	}
}

static void first_doc(struct hf_kubelet_pod *pod, struct hf_doc *doc)
{
	const struct hf_json *status = hf_json_get(hf_doc_json(doc), "status");
	const char *started = hf_json_path_str(status, "startTime", NULL);
	const char *phase = hf_json_path_str(status, "phase", NULL);

	pod->spec_doc = hf_doc_ref(doc);
	free(pod->ns);
	free(pod->name);
	pod->ns = hf_xstrdup(hf_doc_namespace(doc));
	pod->name = hf_xstrdup(hf_doc_name(doc));
	add_containers(pod, "initContainers", true);
	add_containers(pod, "containers", false);
	if (started && hf_time_parse(started, &pod->start_time, NULL) != 0)
		pod->start_time = HF_TIME_NONE;
	/* The pod's phase is final: it ended before this kubelet started. */
	if (pod->state == HF_KUBELET_POD_NEW &&
	    (hf_streq(phase, "Failed") || hf_streq(phase, "Succeeded")))
		pod->state = HF_KUBELET_POD_ENDED;
	hf_kubelet_pod_take_stop(pod);
	/* Attempts that began under an earlier kubelet get no new Events. */
	for (size_t i = 0; i < pod->n; i++) {
		const struct hf_container_past *past =
			hf_pod_past_find(&pod->past, pod->containers[i].name);

		if (past)
			pod->containers[i].told = (int64_t)past->last.number;
	}
}

static struct hf_kubelet_pod *create_pod(struct hf_kubelet *kubelet, const char *uid)
{
	struct hf_kubelet_pod *pod = hf_xcalloc(1, sizeof(*pod));

	pod->kubelet = kubelet;
	pod->uid = hf_xstrdup(uid);
	pod->ns = hf_xstrdup("");
	pod->name = hf_xstrdup("");
	pod->dir = hf_xasprintf("%s/%s", kubelet->pods_dir, uid);
	pod->arena = hf_arena_create(ARENA_BYTES_MAX);
	pod->start_time = pod->sidecars_since = HF_TIME_NONE;
	pod->task = hf_task_create(kubelet->loop, sync_pod, pod);
	pod->timer = hf_timer_create(kubelet->loop, sync_pod, pod);
	return pod;
}

struct hf_kubelet_pod *hf_kubelet_pod_create(struct hf_kubelet *kubelet, struct hf_doc *doc)
{
	struct hf_kubelet_pod *pod = create_pod(kubelet, hf_doc_uid(doc));

	hf_kubelet_pod_set_doc(pod, doc);
	return pod;
}

struct hf_kubelet_pod *hf_kubelet_pod_create_found(struct hf_kubelet *kubelet, const char *uid)
{
	struct hf_kubelet_pod *pod = create_pod(kubelet, uid);
	HF_AUTO_FD dir = open(pod->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	HF_AUTO_JSON json = NULL;
	struct hf_kubelet_shim_handler handler;
	struct hf_error err;

	/* Without pod.json no shim was started for the folder, so the pod is not taken over. */
	if (dir < 0 || hf_shim_read_json(dir, HF_SHIM_CONFIG_FILE, &json, &err) != 0 ||
	    hf_shim_pod_from_json(json, pod->arena, &pod->config, &err) != 0)
		return pod;
	free(pod->ns);
	free(pod->name);
	pod->ns = hf_xstrdup(pod->config.ns);
	pod->name = hf_xstrdup(pod->config.name);
	if (pod->config.ip)
		(void)!hf_net_ip_parse(pod->config.ip, &pod->ip, NULL);
	if (hf_journal_read(dir, &pod->past, &err) == 0 && pod->past.quit) {
		pod->state = HF_KUBELET_POD_ENDED;
		return pod;
	}
	pod->state = HF_KUBELET_POD_SPAWNING;
	pod->shim = hf_kubelet_shim_attach(kubelet->loop, pod->dir,
					   hf_kubelet_pod_handler(pod, &handler));
	return pod;
}

struct hf_kubelet_pod *hf_kubelet_pod_destroy(struct hf_kubelet_pod *pod)
{
	if (!pod)
		return NULL;
	hf_call_cancel(pod->status_call);
	hf_call_cancel(pod->delete_call);
	for (size_t i = 0; i < pod->n; i++) {
		struct hf_kubelet_pod_container *c = &pod->containers[i];

		c->refs = hf_kubelet_refs_destroy(c->refs);
		c->probes = hf_kubelet_probes_destroy(c->probes);
		c->hook = hf_kubelet_exec_destroy(c->hook);
	}
	pod->refs = hf_kubelet_refs_destroy(pod->refs);
	pod->shim = hf_kubelet_shim_destroy(pod->shim);
	pod->task = hf_task_destroy(pod->task);
	pod->timer = hf_timer_destroy(pod->timer);
	pod->arena = hf_arena_destroy(pod->arena);
	(void)hf_doc_unref(pod->doc);
	(void)hf_doc_unref(pod->spec_doc);
	free(pod->uid);
	free(pod->ns);
	free(pod->name);
	free(pod->dir);
	free(pod);
	return NULL;
}

void hf_kubelet_pod_set_doc(struct hf_kubelet_pod *pod, struct hf_doc *doc)
{
	if (!pod->spec_doc)
		first_doc(pod, doc);
	hf_kubelet_pod_take_doc(pod, doc);
	if (pod->shim_gone)
		hf_kubelet_pod_shim_gone(pod);
	hf_kubelet_pod_wake(pod);
}

void hf_kubelet_pod_gone_from_store(struct hf_kubelet_pod *pod)
{
	hf_call_cancel(pod->status_call);
	hf_call_cancel(pod->delete_call);
	pod->status_call = pod->delete_call = NULL;
	(void)hf_doc_unref(pod->doc);
	pod->doc = NULL;
	/* The store does not have the pod: it was force-deleted, or belongs to another store. It
	 * ends without a grace period. */
	hf_kubelet_pod_stop(pod, HF_KUBELET_POD_STOP_DELETED, 0);
	if (pod->shim_gone)
		hf_kubelet_pod_shim_gone(pod);
	hf_kubelet_pod_wake(pod);
}
