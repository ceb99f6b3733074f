/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBELET_CHECK_H
#define HF_KUBELET_CHECK_H

#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Lists the fields of a pod template that this kubelet refuses or ignores. The kubelet decides by
 * the same function, so a caller knows before the pod exists what the kubelet will say. Pure.
 *
 * Input: the spec of a pod or of a pod template, and what is known of the machine. Output: findings,
 * in the order of the checks. Fields that mean nothing on one machine (image, ports,
 * imagePullSecrets, …) or that other parts of the plane use (tolerations, affinity) are not findings.
 */
#define HF_KUBELET_FINDINGS_MAX 32
#define HF_KUBELET_FIELD_MAX 256
#define HF_KUBELET_TEXT_MAX 512

struct hf_kubelet_finding {
	/* true: the pod never starts; false: the pod starts, and the field has no effect */
	bool refused;
	char field[HF_KUBELET_FIELD_MAX]; /* such as "spec.containers[0].tty" */
	/* why, as a sentence that begins with the field and has no full stop */
	char text[HF_KUBELET_TEXT_MAX];
};

struct hf_kubelet_findings {
	struct hf_kubelet_finding items[HF_KUBELET_FINDINGS_MAX];
	size_t n;
	/* the number of refusals, including those that did not fit into `items` */
	size_t n_refused;
};

/* What the machine allows. */
struct hf_kubelet_check {
	bool isolate;    /* the pod gets namespaces */
	const char *why; /* why it gets none; NULL: unknown */
	bool root;
	int64_t uid; /* of the plane's process */
};

struct hf_kubelet_check_input {
	const struct hf_json *spec;
	const char *path; /* the path of `spec` in its object, such as "spec.template.spec" */
	/* what is known of the machine; NULL: nothing is known, so that only fields that every
	 * machine refuses are findings */
	const struct hf_kubelet_check *facts;
	/* The operator sets the command of the first container, so a missing command there is no
	 * finding. */
	bool command_given;
};

/* Appends to `findings`, which begins as {0} and may collect from several templates. An ignored
 * field is reported once, where it occurs first. struct hf_kubelet_findings takes 25 KB: allocate
 * it on the heap. */
void hf_kubelet_check_template(const struct hf_kubelet_check_input *input,
			       struct hf_kubelet_findings *findings);
/* Returns the first refusal; NULL: the pod can start. */
const struct hf_kubelet_finding *hf_kubelet_first_refusal(
	const struct hf_kubelet_findings *findings);

#endif
