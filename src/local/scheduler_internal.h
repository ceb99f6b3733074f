/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_SCHEDULER_INTERNAL_H
#define HF_LOCAL_SCHEDULER_INTERNAL_H

#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a pod may go to a node (scheduler_fit.c): pure, over documents. */

#define HF_FIT_RESOURCES_MAX 32 /* names of resources of one node or pod; more are ignored */

/* Amounts by resource name, in thousandths; names are borrowed from documents. */
struct hf_amounts {
	struct {
		const char *name;
		int64_t milli;
	} items[HF_FIT_RESOURCES_MAX];
	size_t n;
};
void hf_amounts_add(struct hf_amounts *amounts, const char *name, int64_t milli);
int64_t hf_amounts_get(const struct hf_amounts *amounts, const char *name);

/* What a pod asks for: the sum of its containers or the largest init container, whichever is
 * more, and one of "pods". */
void hf_fit_requests(const struct hf_json *pod, struct hf_amounts *ret_requests);

struct hf_fit_node {
	const struct hf_json *node;
	struct hf_amounts used;
	size_t n_pods;
};

/* NULL: it fits.  Else why not, in kube-scheduler's words ("node(s) were unschedulable");
 * text is buf or static. */
#define HF_FIT_REASON_MAX 256
const char *hf_fit_problem(const struct hf_json *pod, const struct hf_amounts *requests,
			   const struct hf_fit_node *node, char buf[HF_FIT_REASON_MAX]);

#endif
