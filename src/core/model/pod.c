/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/model_internal.h"

#include "base/str.h"
#include "core/model/container_reason.h"
#include "core/model/framework.h"

/*
 * Questions about one pod and its containers, as the kubelet has reported them.  Input: one pod, or
 * one container of a pod.  Output: a yes or no, or a container.  Nothing here uses the job's
 * ledger.
 */

const struct hf_container_seen *hf_pod_find_container(const struct hf_pod *pod, const char *name)
{
	for (size_t i = 0; name && i < pod->containers_len; i++) {
		if (!pod->containers[i].init && hf_streq(pod->containers[i].name, name))
			return &pod->containers[i];
	}
	return NULL;
}

struct hf_container_termination hf_container_last_termination(
	const struct hf_container_seen *container)
{
	/* A kubelet that has lost a container writes an exit code that it made up.  lastState, from
	 * before, shows how the program ended. */
	bool lost =
		hf_exit_code_is_lost(container->terminated_reason) && container->last_exit_code.set;

	if (container->phase == HF_CONTAINER_TERMINATED && !lost)
		return (struct hf_container_termination){.exit_code =
								 HF_SOME_INT(container->exit_code),
							 .signal = container->signal,
							 .reason = container->terminated_reason,
							 .message = container->terminated_message};
	return (struct hf_container_termination){.exit_code = container->last_exit_code,
						 .signal = container->last_signal,
						 .reason = container->last_reason,
						 .message = container->last_message};
}

bool hf_container_is_over(const struct hf_container_seen *seen)
{
	return seen->phase == HF_CONTAINER_TERMINATED &&
	       (seen->again == HF_AGAIN_NEVER ||
		(seen->again == HF_AGAIN_ON_FAILURE && seen->exit_code == 0));
}

const struct hf_container_seen *hf_pod_keeper(const struct hf_pod *pod,
					      const struct hf_container_seen *own)
{
	for (size_t i = 0; i < pod->containers_len; i++) {
		const struct hf_container_seen *other = &pod->containers[i];

		if (other != own && !other->init && !hf_container_is_over(other))
			return other;
	}
	return NULL;
}

bool hf_pod_goes_on(const struct hf_pod *pod, const struct hf_container_seen *own)
{
	if (hf_pod_keeper(pod, own))
		return true;
	/* An init container that runs beside main containers is a native sidecar.  The kubelet ends
	 * it last. */
	for (size_t i = 0; i < pod->containers_len; i++) {
		if (pod->containers[i].init && pod->containers[i].phase == HF_CONTAINER_RUNNING)
			return true;
	}
	return false;
}

bool hf_container_has_begun(const struct hf_container_seen *seen)
{
	return seen->phase == HF_CONTAINER_RUNNING || seen->phase == HF_CONTAINER_TERMINATED ||
	       seen->restart_count > 0 || seen->last_exit_code.set;
}

bool hf_pod_has_begun(const struct hf_pod *pod)
{
	for (size_t i = 0; i < pod->containers_len; i++) {
		if (!pod->containers[i].init && hf_container_has_begun(&pod->containers[i]))
			return true;
	}
	return false;
}

/*
 * The kubelet itself has reported the termination.
 *
 * A controller that fails the pod of a lost node, Holdfast included, leaves its containers as they
 * were and gives no reason.  An init container may have ended with 0 before.  If another container
 * runs on, the termination of the own container is the kubelet's report.
 */
bool hf_pod_is_reported(const struct hf_pod *pod, const struct hf_container_seen *own)
{
	if (own && hf_container_is_over(own) && own->exit_code != 0)
		return true;
	if (pod->phase != HF_POD_FAILED)
		return false;
	for (size_t i = 0; i < pod->containers_len; i++) {
		if (pod->containers[i].phase == HF_CONTAINER_TERMINATED &&
		    (pod->containers[i].exit_code != 0 || pod->containers[i].signal != 0))
			return true;
	}
	return !hf_str_is_empty(pod->reason);
}

bool hf_pod_is_inherited(const struct hf_job_view *job, const struct hf_pod *pod)
{
	hf_assert(job->framework);
	/* A pod that is younger than the job in the view belongs to a newer job of the same
	 * name. */
	return !pod->owned && hf_streq(pod->maker, job->framework->kind) &&
	       pod->deletion_time != HF_TIME_NONE && pod->creation_time != HF_TIME_NONE &&
	       job->creation_time != HF_TIME_NONE && pod->creation_time <= job->creation_time;
}

bool hf_pod_is_terminal(const struct hf_pod *pod)
{
	return pod->phase == HF_POD_SUCCEEDED || pod->phase == HF_POD_FAILED;
}

bool hf_pod_is_terminating(const struct hf_pod *pod)
{
	return pod->deletion_time != HF_TIME_NONE;
}
