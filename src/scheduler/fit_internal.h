/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_SCHEDULER_FIT_INTERNAL_H
#define HF_SCHEDULER_FIT_INTERNAL_H

#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The scheduler of pods without schedulerName, and the component of its Events. */
#define HF_SCHEDULER_NAME "default-scheduler"

/* Decides whether a pod fits on a node (fit.c). Pure functions over documents. */

/* limit of resource names of one node or pod; further names are ignored */
#define HF_FIT_RESOURCES_MAX 32

/* Amounts by resource name, in thousandths. The names are borrowed from documents. */
struct hf_amounts {
	struct {
		const char *name;
		int64_t milli;
	} items[HF_FIT_RESOURCES_MAX];
	size_t n;
};
/* hf_amounts_add adds milli to the amount of name; a sum above INT64_MAX becomes INT64_MAX.
 * hf_amounts_get returns 0 for a name that was never added. */
void hf_amounts_add(struct hf_amounts *amounts, const char *name, int64_t milli);
int64_t hf_amounts_get(const struct hf_amounts *amounts, const char *name);

/* The requests of a pod: for each resource the sum over its containers, or the request of the
 * largest init container if that is more. The amount of the resource "pods" is one. */
void hf_fit_requests(const struct hf_json *pod, struct hf_amounts *ret_requests);

/* A node, with the requests and the number of the pods that it already has. */
struct hf_fit_node {
	const struct hf_json *node;
	struct hf_amounts used;
	size_t n_pods;
};

/* Returns the name of the pod's scheduler; NULL: it is this scheduler. */
const char *hf_fit_other_scheduler(const struct hf_json *spec);
/* The member of an affinity that has the conditions which must hold. */
#define HF_FIT_REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
/* Returns a label of the pod's nodeSelector that the node does not have with that value; NULL: it has all. */
const char *hf_fit_missing_label(const struct hf_json *spec, const struct hf_json *node);
/* True if the node meets the pod's required node affinity, or the pod has none. */
bool hf_fit_node_affinity(const struct hf_json *spec, const struct hf_json *node);
/* Returns the member of the pod's affinity that this scheduler does not support; NULL: all are supported. */
const char *hf_fit_unsupported(const struct hf_json *spec);

/* Returns NULL if the pod fits on the node. Else returns the reason in kube-scheduler's words, such
 * as "node(s) were unschedulable"; the text is static or in buf. */
#define HF_FIT_REASON_MAX 256
const char *hf_fit_problem(const struct hf_json *pod, const struct hf_amounts *requests,
			   const struct hf_fit_node *node, char buf[HF_FIT_REASON_MAX]);

#endif
