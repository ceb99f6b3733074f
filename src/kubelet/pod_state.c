/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <stdio.h>

/* Answers questions about a pod for other files: its spec, its grace period, its plan, whether a
 * process of it runs. Nothing here changes a pod; hf_kubelet_pod_wake only schedules sync_pod. */
#define DEFAULT_GRACE_S 30

const struct hf_json *hf_kubelet_pod_spec(const struct hf_kubelet_pod *pod)
{
	return hf_json_get(hf_doc_json(pod->spec_doc), "spec");
}

hf_time hf_kubelet_pod_grace(const struct hf_kubelet_pod *pod)
{
	int64_t s =
		hf_json_i64(hf_json_get(hf_kubelet_pod_spec(pod), "terminationGracePeriodSeconds"),
			    DEFAULT_GRACE_S);

	return (s < 0 ? 1 : s > 86400 ? 86400 : s) * HF_SECOND;
}

bool hf_kubelet_pod_active(const struct hf_kubelet_pod *pod)
{
	return pod->state == HF_KUBELET_POD_SPAWNING || pod->state == HF_KUBELET_POD_RUNNING ||
	       pod->state == HF_KUBELET_POD_QUITTING;
}

bool hf_kubelet_pod_settled(const struct hf_kubelet_pod *pod)
{
	return pod->settled || !pod->doc || !pod->kubelet->probed;
}

bool hf_kubelet_pod_drained(const struct hf_kubelet_pod *pod, const struct hf_pod_plan *plan)
{
	return pod->stop == HF_KUBELET_POD_STOP_DRAIN && (pod->past.ran_at_stop > 0 || !plan->over);
}

void hf_kubelet_pod_wake(struct hf_kubelet_pod *pod)
{
	hf_task_post(pod->task);
}

void hf_kubelet_pod_wake_in(struct hf_kubelet_pod *pod, hf_time span)
{
	if (!hf_timer_armed(pod->timer) ||
	    hf_timer_due(pod->timer) > hf_time_add(hf_loop_mono(pod->kubelet->loop), span))
		hf_timer_arm(pod->timer, span);
}

const struct hf_json *hf_kubelet_pod_deletion_time(const struct hf_kubelet_pod *pod)
{
	return hf_json_path(hf_doc_json(pod->doc), "metadata", "deletionTimestamp", NULL);
}

static enum hf_restart_policy policy_of(const struct hf_kubelet_pod *pod)
{
	const char *policy = hf_json_path_str(hf_kubelet_pod_spec(pod), "restartPolicy", NULL);

	if (hf_streq(policy, "Never"))
		return HF_RESTART_NEVER;
	return hf_streq(policy, "OnFailure") ? HF_RESTART_ON_FAILURE : HF_RESTART_ALWAYS;
}

char *hf_kubelet_container_id(const struct hf_kubelet_pod *pod, const char *container,
			      unsigned attempt)
{
	return hf_xasprintf("holdfast://%s/%s/%u", pod->uid, container, attempt);
}

const struct hf_json *hf_kubelet_find_status(const struct hf_json *pod, const char *container)
{
	static const char *const lists[] = {"containerStatuses", "initContainerStatuses"};

	for (size_t l = 0; l < HF_ARRAY_LEN(lists); l++) {
		const struct hf_json *list = hf_json_path(pod, "status", lists[l], NULL);

		for (size_t i = 0; i < hf_json_len(list); i++)
			if (!container ||
			    hf_streq(container,
				     hf_json_path_str(hf_json_item(list, i), "name", NULL)))
				return hf_json_item(list, i);
	}
	return NULL;
}

void hf_kubelet_pod_fill_plan(const struct hf_kubelet_pod *pod, struct hf_pod_plan *plan,
			      struct hf_plan_container containers[HF_POD_CONTAINERS_MAX])
{
	for (size_t i = 0; i < pod->n; i++)
		containers[i] = (struct hf_plan_container){
			.init = pod->containers[i].init,
			.sidecar = pod->containers[i].sidecar,
			.unready = pod->containers[i].unready,
			.starting =
				pod->containers[i].unstarted || pod->containers[i].post_start_runs,
			.past = hf_pod_past_find(&pod->past, pod->containers[i].name),
			.blocked_until = pod->containers[i].blocked_until,
		};
	*plan = (struct hf_pod_plan){
		.policy = policy_of(pod),
		.stopping = pod->stop != HF_KUBELET_POD_GO || pod->state == HF_KUBELET_POD_ENDED,
		.now = hf_loop_wall(pod->kubelet->loop),
		.containers = containers,
		.n = pod->n,
	};
	hf_pod_plan(plan);
}

int hf_kubelet_live_pod_fd(const struct hf_kubelet *k, int number, int flags, bool (*fits)(int fd))
{
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);) {
		const struct hf_kubelet_pod *pod = value;
		char path[64];
		int fd;

		if (!pod->config.isolate || !hf_process_id_alive(&pod->past.shim))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pod->past.shim.pid,
			       number);
		fd = open(path, flags | O_CLOEXEC);
		if (fits(fd))
			return fd;
		hf_fd_cleanup(&fd);
	}
	return -1;
}
