/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

/* The subresource "scale": a small object with the replicas of a job. hf_op_scale_of makes the
 * Scale of an object, hf_op_scale_put writes spec.replicas. */

static struct hf_json *at_path(const struct hf_json *object, const char *path)
{
	HF_AUTOFREE char *copy = hf_xstrdup(path);
	const struct hf_json *at = object;
	char *rest = copy;

	for (char *key; (key = strsep(&rest, "."));)
		at = hf_json_get(at, key);
	return hf_json_share(at);
}

/* Returns a copy of object with value at path. Only the parents of the value are copied; the copy
 * shares all other parts. */
static struct hf_json *with_path(const struct hf_json *object, const char *path,
				 struct hf_json *value)
{
	const char *dot = strchr(path, '.');
	struct hf_json *out = hf_json_shallow(object);
	HF_AUTOFREE char *key = dot ? hf_xstrndup(path, (size_t)(dot - path)) : hf_xstrdup(path);

	hf_json_set(out, key, dot ? with_path(hf_json_get(object, key), dot + 1, value) : value);
	return out;
}

struct hf_json *hf_op_scale_of(struct hf_op *op, struct hf_entry *entry)
{
	static const char *const copied[] = {"name", "namespace", "uid", "resourceVersion",
					     "creationTimestamp"};
	const struct hf_resource_info *info = op->kind->info;
	const struct hf_json *object = hf_doc_json(entry->doc);

	if (!info->scale_spec) {
		hf_op_fail(op, HF_E_NOT_FOUND, "the server could not find the requested resource");
		return NULL;
	}
	HF_AUTO_JSON replicas = at_path(object, info->scale_spec);
	HF_AUTO_JSON active = at_path(object, info->scale_status);
	HF_AUTO_JSON selector = at_path(object, info->scale_selector);
	struct hf_json *scale = hf_json_object();
	struct hf_json *meta = hf_json_object(), *status = hf_json_object();

	hf_json_set_str(scale, "kind", "Scale");
	hf_json_set_str(scale, "apiVersion", "autoscaling/v1");
	for (size_t i = 0; i < HF_ARRAY_LEN(copied); i++)
		hf_json_set(meta, copied[i],
			    hf_json_ref(hf_json_path(object, "metadata", copied[i], NULL)));
	hf_json_set(scale, "metadata", meta);
	/* An absent number of replicas means one worker, as the kinds define. */
	hf_json_set_i64(hf_json_ensure_object(scale, "spec"), "replicas", hf_json_i64(replicas, 1));
	hf_json_set_i64(status, "replicas", hf_json_i64(active, 0));
	hf_json_set_str(status, "selector", hf_json_str(selector, NULL));
	hf_json_set(scale, "status", status);
	return scale;
}

int hf_op_scale_put(struct hf_op *op, struct hf_entry *entry, const struct hf_json *scale)
{
	const char *spec = op->kind->info->scale_spec;
	const struct hf_json *replicas = hf_json_path(scale, "spec", "replicas", NULL);
	const struct hf_json *stored = hf_doc_json(entry->doc);
	const char *version = hf_json_path_str(scale, "metadata", "resourceVersion", NULL);
	const struct hf_request *asked = op->request;
	struct hf_request plain = *asked;

	if (hf_json_type(replicas) != HF_JSON_INT || hf_json_i64(replicas, -1) < 0 ||
	    hf_json_i64(replicas, 0) > INT32_MAX) {
		hf_op_problem(op, "FieldValueInvalid", "spec.replicas",
			      "Invalid value: must be a whole number from 0 to 2147483647");
		return hf_op_invalid(op, entry->name);
	}
	/* A job without an entry for workers has no replicas to scale, so the request is
	 * refused. */
	HF_AUTOFREE char *parent = hf_xstrndup(spec, (size_t)(strrchr(spec, '.') - spec));
	HF_AUTO_JSON holder = at_path(stored, parent);
	if (!holder) {
		hf_op_problem(op, "FieldValueNotFound", parent, "Not found: nothing to scale");
		return hf_op_invalid(op, entry->name);
	}
	struct hf_json *desired = with_path(stored, spec, hf_json_share(replicas));
	struct hf_json *meta = hf_json_shallow(hf_json_get(stored, "metadata"));
	if (!hf_str_is_empty(version))
		hf_json_set_str(meta, "resourceVersion", version);
	hf_json_set(desired, "metadata", meta);

	plain.subresource = NULL;
	op->request = &plain;
	op->scales = true;
	int rc = hf_op_write(op, entry, desired);
	op->scales = false;
	op->request = asked;
	if (rc)
		return rc;
	/* The reply to the client is the Scale of the object that was stored. */
	struct hf_entry now = *entry;
	now.doc = op->result->object;
	struct hf_json *reply = hf_op_scale_of(op, &now);
	hf_doc_unref(op->result->object);
	return hf_op_done(op, hf_doc_from_json(reply));
}
