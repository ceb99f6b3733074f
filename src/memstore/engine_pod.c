/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/str.h"

/* What an API server does only for pods (upstream: pkg/registry/core/pod): the initial status with
 * the QoS class, the fields that an update may change, and the grace period of a deletion. */

#define DEFAULT_GRACE_S 30

static struct hf_json *condition_new(const char *type, const char *reason, const char *message)
{
	struct hf_json *c = hf_json_object();

	hf_json_set_str(c, "type", type);
	hf_json_set_str(c, "status", "False");
	hf_json_set(c, "lastProbeTime", hf_json_null());
	hf_json_set(c, "lastTransitionTime", hf_json_null());
	hf_json_set_str(c, "reason", reason);
	hf_json_set_str(c, "message", message);
	return c;
}

/* Guaranteed: all containers have limits of cpu and memory, with equal or absent requests.
 * BestEffort: no container has either. Burstable: the rest. */
static const char *qos_class(const struct hf_json *spec)
{
	static const char *const lists[] = {"containers", "initContainers"};
	static const char *const names[] = {"cpu", "memory"};
	bool any = false, guaranteed = true;

	for (size_t l = 0; l < HF_ARRAY_LEN(lists); l++) {
		const struct hf_json *list = hf_json_get(spec, lists[l]);
		for (size_t i = 0; i < hf_json_len(list) * HF_ARRAY_LEN(names); i++) {
			const char *name = names[i % HF_ARRAY_LEN(names)];
			const struct hf_json *resources = hf_json_get(
				hf_json_item(list, i / HF_ARRAY_LEN(names)), "resources");
			const struct hf_json *limit = hf_json_path(resources, "limits", name, NULL);
			const struct hf_json *request =
				hf_json_path(resources, "requests", name, NULL);
			any = any || limit || request;
			if (!limit || (request && !hf_json_equal(limit, request)))
				guaranteed = false;
		}
	}
	return !any ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

void hf_pod_init(struct hf_json *object)
{
	const struct hf_json *spec = hf_json_get(object, "spec");
	struct hf_json *status = hf_json_object();

	hf_json_set_str(status, "phase", "Pending");
	if (hf_json_len(hf_json_get(spec, "schedulingGates")) > 0)
		hf_json_append(hf_json_ensure_array(status, "conditions"),
			       condition_new("PodScheduled", "SchedulingGated",
					     "Scheduling is blocked due to non-empty scheduling "
					     "gates"));
	hf_json_set_str(status, "qosClass", qos_class(spec));
	hf_json_set(object, "status", status);
}

/* Returns a copy of a pod's spec without the fields that an update may change. The update is
 * allowed if this copy is the same before and after. */
static struct hf_json *fixed_part(const struct hf_json *spec)
{
	static const char *const lists[] = {"containers", "initContainers"};
	struct hf_json *fixed = hf_json_shallow(spec);

	/* Tolerations are left out of the comparison, so every change of them is allowed.
	 * (Upstream allows only additions.) Scheduling gates are left out too: hf_pod_check_update
	 * checks them. */
	hf_json_remove(fixed, "tolerations");
	hf_json_remove(fixed, "schedulingGates");
	hf_json_remove(fixed, "activeDeadlineSeconds");
	hf_json_remove(fixed, "terminationGracePeriodSeconds");
	for (size_t l = 0; l < HF_ARRAY_LEN(lists); l++) {
		const struct hf_json *list = hf_json_get(spec, lists[l]);
		if (!list)
			continue;
		struct hf_json *copy = hf_json_array();
		for (size_t i = 0; i < hf_json_len(list); i++) {
			struct hf_json *container = hf_json_shallow(hf_json_item(list, i));
			hf_json_remove(container, "image");
			hf_json_append(copy, container);
		}
		hf_json_set(fixed, lists[l], copy);
	}
	return fixed;
}

/* Leaves out node selector and affinity, which may change while a pod has scheduling gates.
 * (Upstream allows only narrower ones.) */
static void set_aside_placement(struct hf_json *fixed)
{
	hf_json_remove(fixed, "nodeSelector");
	hf_json_remove(fixed, "affinity");
}

/* Checks a change of activeDeadlineSeconds: the field may be added or lowered. */
static void check_deadline(struct hf_op *op, const struct hf_json *old, const struct hf_json *new)
{
	const struct hf_json *was = hf_json_get(old, "activeDeadlineSeconds");
	const struct hf_json *is = hf_json_get(new, "activeDeadlineSeconds");

	if (hf_json_type(was) != HF_JSON_INT)
		return;
	if (hf_json_type(is) != HF_JSON_INT)
		hf_op_problem(op, "FieldValueInvalid", "spec.activeDeadlineSeconds",
			      "Invalid value: null: must not update from a positive integer to nil "
			      "value");
	else if (hf_json_i64(is, 0) > hf_json_i64(was, 0))
		hf_op_problem(op, "FieldValueInvalid", "spec.activeDeadlineSeconds",
			      "Invalid value: %lld: must be less than or equal to previous value",
			      (long long)hf_json_i64(is, 0));
}

void hf_pod_check_update(struct hf_op *op, const struct hf_json *before,
			 const struct hf_json *after)
{
	const struct hf_json *old = hf_json_get(before, "spec"), *new = hf_json_get(after, "spec");

	if (hf_json_equal(old, new))
		return;
	HF_AUTO_JSON old_fixed = fixed_part(old);
	HF_AUTO_JSON new_fixed = fixed_part(new);
	if (hf_json_len(hf_json_get(old, "schedulingGates")) > 0) {
		set_aside_placement(old_fixed);
		set_aside_placement(new_fixed);
	}
	if (!hf_json_equal(old_fixed, new_fixed))
		hf_op_problem(
			op, "FieldValueForbidden", "spec",
			"Forbidden: pod updates may not change fields other than "
			"`spec.containers[*].image`,`spec.initContainers[*].image`,"
			"`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
			"existing tolerations),`spec.terminationGracePeriodSeconds` (allow it "
			"to be set to 1 if it was previously negative)");
	check_deadline(op, old, new);
	for (size_t i = 0; i < hf_json_len(hf_json_get(new, "schedulingGates")); i++) {
		const struct hf_json *gate = hf_json_item(hf_json_get(new, "schedulingGates"), i);
		const struct hf_json *old_gates = hf_json_get(old, "schedulingGates");
		size_t k = 0;
		while (k < hf_json_len(old_gates) &&
		       !hf_json_equal(hf_json_item(old_gates, k), gate))
			k++;
		if (k == hf_json_len(old_gates))
			hf_op_problem(op, "FieldValueForbidden", "spec.schedulingGates",
				      "Forbidden: only deletion is allowed, but found new "
				      "scheduling gate '%s'",
				      hf_str_or(hf_json_path_str(gate, "name", NULL), ""));
	}
}

int64_t hf_pod_grace_seconds(const struct hf_json *pod, int64_t asked)
{
	const char *phase = hf_json_path_str(pod, "status", "phase", NULL);
	int64_t grace = asked;

	if (grace == HF_GRACE_DEFAULT)
		grace = hf_json_i64(
			hf_json_path(pod, "spec", "terminationGracePeriodSeconds", NULL),
			DEFAULT_GRACE_S);
	/* No grace period for a pod without a node, which was never started, and for a finished
	 * pod, which has no processes. */
	if (hf_str_is_empty(hf_json_path_str(pod, "spec", "nodeName", NULL)) ||
	    hf_streq(phase, "Succeeded") || hf_streq(phase, "Failed"))
		return 0;
	return grace < 0 ? 1 : grace;
}
