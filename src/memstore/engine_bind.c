/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>

/* The subresource "binding": sets a pod's node and its condition PodScheduled. */

static struct hf_json *scheduled_condition(hf_time now)
{
	struct hf_json *c = hf_json_object();

	hf_json_set_str(c, "type", "PodScheduled");
	hf_json_set_str(c, "status", "True");
	hf_json_set(c, "lastProbeTime", hf_json_null());
	hf_meta_set_time(c, "lastTransitionTime", now);
	return c;
}

static struct hf_json *bound_status(const struct hf_json *stored, hf_time now)
{
	struct hf_json *status = hf_json_shallow(hf_json_get(stored, "status"));
	const struct hf_json *old = hf_json_get(status, "conditions");
	struct hf_json *conditions = hf_json_array();

	for (size_t i = 0; i < hf_json_len(old); i++)
		if (!hf_streq(hf_json_path_str(hf_json_item(old, i), "type", NULL), "PodScheduled"))
			hf_json_append(conditions, hf_json_ref(hf_json_item(old, i)));
	hf_json_append(conditions, scheduled_condition(now));
	hf_json_set(status, "conditions", conditions);
	return status;
}

static int check_binding(struct hf_op *op, const struct hf_json *pod, const struct hf_json *binding)
{
	const char *name = op->request->name;
	const char *bound = hf_json_path_str(pod, "spec", "nodeName", NULL);
	const char *uid = hf_json_path_str(binding, "metadata", "uid", NULL);
	char why[512];

	if (hf_str_is_empty(hf_json_path_str(binding, "target", "name", NULL))) {
		hf_op_problem(op, "FieldValueRequired", "target.name", "Required value");
		return hf_op_invalid(op, name);
	}
	if (!hf_str_is_empty(uid) && !hf_streq(uid, hf_json_path_str(pod, "metadata", "uid", NULL)))
		return hf_op_conflict(op,
				      "Precondition failed: UID in precondition does not match");
	if (hf_json_path(pod, "metadata", "deletionTimestamp", NULL)) {
		snprintf(why, sizeof(why), "pod %s is being deleted, cannot be assigned to a host",
			 name);
		return hf_op_conflict(op, why);
	}
	if (!hf_str_is_empty(bound)) {
		snprintf(why, sizeof(why), "pod %s is already assigned to node \"%s\"", name,
			 bound);
		return hf_op_conflict(op, why);
	}
	if (hf_json_len(hf_json_path(pod, "spec", "schedulingGates", NULL)) > 0) {
		snprintf(why, sizeof(why), "pod %s has non-empty .spec.schedulingGates", name);
		return hf_op_conflict(op, why);
	}
	return 0;
}

int hf_op_bind(struct hf_op *op)
{
	const struct hf_json *binding = hf_doc_json(op->request->body);
	struct hf_entry *entry = hf_kind_find(op->kind, op->request->ns, op->request->name);

	if (op->kind->resource != &hf_pods)
		return hf_op_fail(op, HF_E_NOT_FOUND,
				  "the server could not find the requested resource");
	if (!entry)
		return hf_op_not_found(op);
	const struct hf_json *stored = hf_doc_json(entry->doc);
	int rc = check_binding(op, stored, binding);
	if (rc)
		return rc;
	HF_AUTO_JSON object = hf_json_shallow(stored);
	struct hf_json *spec = hf_json_shallow(hf_json_get(stored, "spec"));
	hf_json_set(spec, "nodeName", hf_json_ref(hf_json_path(binding, "target", "name", NULL)));
	hf_json_set(object, "spec", spec);
	hf_json_set(object, "status", bound_status(stored, op->now));
	hf_json_set(object, "metadata", hf_json_shallow(hf_json_get(stored, "metadata")));
	rc = hf_op_size_check(op, object, entry->name, entry);
	if (rc)
		return rc;
	if (!op->request->dry_run)
		hf_doc_unref(hf_op_store(op, entry, hf_steal(&object)));
	struct hf_json *status = hf_json_object();
	hf_json_set_str(status, "kind", "Status");
	hf_json_set_str(status, "apiVersion", "v1");
	hf_json_set_str(status, "status", "Success");
	return hf_op_done(op, hf_doc_from_json(status));
}
