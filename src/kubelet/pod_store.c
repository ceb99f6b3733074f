/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "json/patch.h"

/*
 * Sends a pod's requests to the store: its status, and the deletion of its object after its end.
 * The status is written only if it differs from the stored one.
 */
#define REPLY_RETRY HF_SECOND

/* Returns the members of a status that this kubelet writes. Other members belong to other writers
 * and are not patched. */
static struct hf_json *own_part(const struct hf_json *status)
{
	static const char *const keys[] = {
		"phase", "reason", "message",   "conditions",        "hostIP",
		"podIP", "podIPs", "startTime", "containerStatuses", "initContainerStatuses",
	};
	struct hf_json *part = hf_json_object();

	for (size_t i = 0; i < HF_ARRAY_LEN(keys); i++)
		hf_json_set(part, keys[i], hf_json_copy(hf_json_get(status, keys[i])));
	return part;
}

void hf_kubelet_pod_take_doc(struct hf_kubelet_pod *pod, struct hf_doc *doc)
{
	int64_t version;

	/* Documents come from replies and from the watch. Skip a document older than the present
	 * one. */
	if (hf_str_to_i64(hf_doc_resource_version(doc), 0, INT64_MAX, &version, NULL) == 0) {
		if ((uint64_t)version < pod->doc_version)
			return;
		pod->doc_version = (uint64_t)version;
	}
	hf_doc_ref(doc);
	(void)hf_doc_unref(pod->doc);
	pod->doc = doc;
}

size_t hf_kubelet_pod_count_ends(struct hf_doc *doc)
{
	static const char *const lists[] = {"containerStatuses", "initContainerStatuses"};
	size_t n = 0;

	for (size_t l = 0; l < HF_ARRAY_LEN(lists); l++) {
		const struct hf_json *list =
			hf_json_path(hf_doc_json(doc), "status", lists[l], NULL);

		for (size_t i = 0; i < hf_json_len(list); i++) {
			const struct hf_json *s = hf_json_item(list, i);

			n += hf_json_path(s, "state", "terminated", NULL) != NULL;
			n += hf_json_path(s, "lastState", "terminated", NULL) != NULL;
			n += (size_t)hf_json_i64(hf_json_get(s, "restartCount"), 0);
		}
	}
	return n;
}

static void on_status(void *arg, const struct hf_reply *reply)
{
	struct hf_kubelet_pod *pod = arg;

	pod->status_call = NULL;
	if (reply->code == 0 && reply->object) {
		size_t before = hf_kubelet_pod_count_ends(pod->doc);

		hf_kubelet_pod_take_doc(pod, reply->object);
		/* A container has ended. The operator may wait for the node's next heartbeat
		 * before it decides, so renew the Lease now. */
		if (hf_kubelet_pod_count_ends(pod->doc) > before && pod->kubelet->node)
			hf_kubelet_node_renew(pod->kubelet->node);
		hf_kubelet_pod_wake(pod);
	} else if (reply->code != HF_E_NOT_FOUND) {
		/* After a conflict, wait for the newer document, which the watch delivers soon. */
		hf_kubelet_pod_wake_in(pod, reply->retry_after > 0         ? reply->retry_after
					    : reply->code == HF_E_CONFLICT ? 50 * HF_MS
									   : REPLY_RETRY);
	}
}

/* Tells whether the stored status is final. A final status is not written again, even if its text
 * would differ. */
static bool is_final(const struct hf_kubelet_pod *pod, const struct hf_json *status)
{
	static const char *const lists[] = {"containerStatuses", "initContainerStatuses"};
	const char *phase = hf_json_path_str(status, "phase", NULL);

	if (pod->state != HF_KUBELET_POD_ENDED ||
	    (!hf_streq(phase, "Failed") && !hf_streq(phase, "Succeeded")))
		return false;
	for (size_t l = 0; l < HF_ARRAY_LEN(lists); l++) {
		const struct hf_json *list = hf_json_get(status, lists[l]);

		for (size_t i = 0; i < hf_json_len(list); i++)
			if (hf_json_path(hf_json_item(list, i), "state", "running", NULL))
				return false;
	}
	return true;
}

/* Writes the pod's status if it differs from the stored one. Returns true if the stored status is
 * up to date. */
bool hf_kubelet_pod_write_status(struct hf_kubelet_pod *pod, const struct hf_pod_plan *plan)
{
	const struct hf_json *stored = hf_json_get(hf_doc_json(pod->doc), "status");
	HF_AUTO_JSON from = own_part(stored);
	HF_AUTO_JSON to = hf_kubelet_status_build(pod, plan, hf_loop_wall(pod->kubelet->loop));
	HF_AUTO_JSON diff = hf_json_merge_diff(from, to);
	HF_AUTO_JSON patch = hf_json_object();
	HF_AUTO_DOC body = NULL;
	struct hf_json *meta = hf_json_ensure_object(patch, "metadata");
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = &hf_pods,
				     .ns = pod->ns,
				     .name = pod->name,
				     .subresource = "status",
				     .patch_type = HF_PATCH_MERGE,
				     .field_manager = "kubelet"};

	if (is_final(pod, stored) || hf_json_len(diff) == 0)
		return true;
	if (pod->status_call)
		return false;
	hf_json_set_str(meta, "uid", pod->uid);
	/* The patch replaces the whole list of conditions. So it names the resourceVersion: the
	 * server refuses the patch if another writer has changed a condition meanwhile. */
	hf_json_set_str(meta, "resourceVersion", hf_doc_resource_version(pod->doc));
	hf_json_set(patch, "status", hf_steal(&diff));
	body = hf_doc_from_json(hf_steal(&patch));
	request.body = body;
	pod->status_call = hf_store_request(pod->kubelet->store, &request, on_status, pod);
	return false;
}

static void on_deleted(void *arg, const struct hf_reply *reply)
{
	struct hf_kubelet_pod *pod = arg;

	pod->delete_call = NULL;
	if (reply->code == 0 || reply->code == HF_E_NOT_FOUND || reply->code == HF_E_CONFLICT) {
		/* Do not repeat the deletion: the object is deleted, or a new pod has its name (a
		 * conflict), or a finalizer keeps the object. */
		pod->removed = true;
		return;
	}
	hf_kubelet_pod_wake_in(pod, reply->retry_after > 0 ? reply->retry_after : REPLY_RETRY);
}

void hf_kubelet_pod_delete_object(struct hf_kubelet_pod *pod)
{
	struct hf_request request = {.verb = HF_VERB_DELETE,
				     .resource = &hf_pods,
				     .ns = pod->ns,
				     .name = pod->name,
				     .precondition_uid = pod->uid,
				     .grace_seconds = 0,
				     .field_manager = "kubelet"};

	if (!pod->delete_call && !pod->removed)
		pod->delete_call = hf_store_request(pod->kubelet->store, &request, on_deleted, pod);
}
