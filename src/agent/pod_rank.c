/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/pod_rank.h"

#include "base/ascii.h"
#include "base/str.h"
#include "health/process_line.h"
#include "store/resource.h"

#include <string.h>

/*
 * Reads from a pod which rank of which job it is: the controller's reference, the labels of
 * replica type and index, the annotations of generation and attempt.  A pod that lacks one of them
 * is no rank, except that a pod without an index has index 0.
 */

#define LABEL_TYPE "training.kubeflow.org/replica-type"
#define LABEL_INDEX "training.kubeflow.org/replica-index"
#define ANNOTATION_GENERATION "holdfast.dev/generation"
#define ANNOTATION_ATTEMPT "holdfast.dev/attempt"
#define GRACE_DEFAULT_S 30

static bool copy_text(const struct hf_json *object, const char *key, char *ret_text, size_t size)
{
	const char *text = hf_json_str(hf_json_get(object, key), "");

	if (*text == '\0' || strlen(text) >= size)
		return false;
	memcpy(ret_text, text, strlen(text) + 1);
	return true;
}

/* Decimal digits alone. */
static bool read_counter(const struct hf_json *object, const char *key, int64_t *ret_number)
{
	const char *text = hf_json_str(hf_json_get(object, key), "");

	return hf_ascii_is_digit(*text) && strlen(text) <= 10 &&
	       hf_str_to_i64(text, 0, HF_PROCESS_COUNTER_MAX, ret_number, NULL) == 0;
}

/* The launcher of an MPIJob is the only rank of its type, and its pod has no label with an index. */
static bool read_index(const struct hf_json *labels, int32_t *ret_index)
{
	int64_t index = 0;

	if (hf_json_get(labels, LABEL_INDEX) != NULL &&
	    (!read_counter(labels, LABEL_INDEX, &index) || index > INT32_MAX))
		return false;
	*ret_index = (int32_t)index;
	return true;
}

static bool read_controller(const struct hf_json *owners, struct hf_pod_rank *rank)
{
	for (size_t i = 0; i < hf_json_len(owners); i++) {
		const struct hf_json *owner = hf_json_item(owners, i);

		if (!hf_json_true(hf_json_get(owner, "controller"), false))
			continue;
		rank->kind = hf_resource_by_kind(hf_json_str(hf_json_get(owner, "apiVersion"), ""),
						 hf_json_str(hf_json_get(owner, "kind"), ""));
		return rank->kind != NULL && hf_resource_is_job(rank->kind) &&
		       copy_text(owner, "name", rank->job, sizeof(rank->job)) &&
		       copy_text(owner, "uid", rank->job_uid, sizeof(rank->job_uid));
	}
	return false;
}

static uint32_t read_grace(const struct hf_json *pod)
{
	int64_t grace = hf_json_i64(
		hf_json_path(pod, "spec", "terminationGracePeriodSeconds", NULL), GRACE_DEFAULT_S);

	if (grace < 0)
		return 0;
	return grace < HF_PROCESS_SPAN_MAX ? (uint32_t)grace : HF_PROCESS_SPAN_MAX;
}

void hf_pod_rank_read(const struct hf_json *pod, struct hf_pod_rank *ret_rank)
{
	const struct hf_json *meta = hf_json_get(pod, "metadata");
	const struct hf_json *labels = hf_json_get(meta, "labels");
	const struct hf_json *annotations = hf_json_get(meta, "annotations");

	*ret_rank = (struct hf_pod_rank){.kind = NULL};
	if (!read_controller(hf_json_get(meta, "ownerReferences"), ret_rank) ||
	    !copy_text(labels, LABEL_TYPE, ret_rank->type, sizeof(ret_rank->type)) ||
	    !read_index(labels, &ret_rank->index) ||
	    !read_counter(annotations, ANNOTATION_GENERATION, &ret_rank->generation) ||
	    !read_counter(annotations, ANNOTATION_ATTEMPT, &ret_rank->attempt)) {
		ret_rank->kind = NULL;
		return;
	}
	hf_str_lower(ret_rank->type);
	ret_rank->grace_s = read_grace(pod);
	ret_rank->deleting = hf_json_get(meta, "deletionTimestamp") != NULL;
}
