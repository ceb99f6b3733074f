/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/operator_internal.h"

#include "api/job.h"
#include "core/model/names.h"
#include "json/patch.h"

/*
 * Makes the patches of a job's status and of a pod that is failed or stopped, and compares a reply
 * with the patch that was sent: an API server with older CRDs drops fields without an error.
 */

struct hf_doc *hf_status_patch(struct hf_doc *job, const struct hf_framework *framework,
			       const struct hf_status *status)
{
	const struct hf_json *stored = hf_json_get(hf_doc_json(job), "status");
	HF_AUTO_JSON wanted = hf_status_write(status, framework, stored);
	HF_AUTO_JSON nothing = hf_json_object();
	bool is_object = hf_json_type(stored) == HF_JSON_OBJECT;
	HF_AUTO_JSON diff = hf_json_merge_diff(is_object ? stored : nothing, wanted);
	struct hf_json *patch;

	if (hf_json_len(diff) == 0)
		return NULL;
	patch = hf_json_object();
	hf_json_set_str(hf_json_ensure_object(patch, "metadata"), "resourceVersion",
			hf_doc_resource_version(job));
	hf_json_set(patch, "status", hf_json_ref(diff));
	return hf_doc_from_json(patch);
}

struct hf_doc *hf_fail_pod_patch(const struct hf_action *action, hf_time now)
{
	struct hf_json *patch = hf_json_object(), *condition = hf_json_object();
	struct hf_json *metadata = hf_json_ensure_object(patch, "metadata");
	struct hf_json *status = hf_json_ensure_object(patch, "status");
	char time[HF_TIME_TEXT_MAX];

	hf_time_format(now, time);
	hf_json_set_str(metadata, "uid", action->uid);
	hf_json_set_str(metadata, "resourceVersion", action->resource_version);
	hf_json_set_str(status, "phase", hf_pod_phase_name(HF_POD_FAILED));
	hf_json_set_str(condition, "type", HF_POD_COND_NODE_LOST);
	hf_json_set_str(condition, "status", "True");
	hf_json_set_str(condition, "reason", "NodeLost");
	hf_json_set_str(condition, "message", action->message);
	hf_json_set_str(condition, "lastTransitionTime", time);
	hf_json_append(hf_json_ensure_array(status, "conditions"), condition);
	return hf_doc_from_json(patch);
}

struct hf_doc *hf_stop_pod_patch(const struct hf_action *action)
{
	struct hf_json *patch = hf_json_object();
	struct hf_json *metadata = hf_json_ensure_object(patch, "metadata");

	hf_json_set_str(metadata, "uid", action->uid);
	hf_json_set_str(hf_json_ensure_object(metadata, "annotations"), HF_ANNOTATION_STOPPED,
			action->message);
	hf_json_set_i64(hf_json_ensure_object(patch, "spec"), "activeDeadlineSeconds",
			HF_STOP_DEADLINE_SECONDS);
	return hf_doc_from_json(patch);
}

/* True if the merge patch would change nothing in the stored status. */
static bool is_within(const struct hf_json *now, const struct hf_json *patch)
{
	struct hf_json *value;
	const char *key;

	if (hf_json_type(patch) != HF_JSON_OBJECT)
		return hf_json_equal(now, patch);
	if (hf_json_type(now) != HF_JSON_OBJECT)
		return false;
	for (void *it = NULL; (it = hf_json_next(patch, it, &key, &value));) {
		const struct hf_json *member = hf_json_get(now, key);

		if (hf_json_type(value) == HF_JSON_NULL ? member != NULL
							: !is_within(member, value))
			return false;
	}
	return true;
}

bool hf_status_arrived(struct hf_doc *patch, struct hf_doc *reply)
{
	HF_AUTO_JSON now = hf_doc_member_json(reply, "status");

	return is_within(now, hf_json_get(hf_doc_json(patch), "status"));
}
