/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/str.h"
#include "json/patch.h"

/*
 * PUT and PATCH: find the stored object, make the object that the client wants, and write it
 * (hf_op_write), or write its scale (hf_op_scale_put).
 */

static struct hf_entry *find_entry(struct hf_op *op)
{
	struct hf_entry *entry = hf_kind_find(op->kind, op->request->ns, op->request->name);

	if (!entry)
		hf_op_not_found(op);
	return entry;
}

static int check_subresource(struct hf_op *op)
{
	const struct hf_resource_info *info = op->kind->info;
	const char *sub = op->request->subresource;

	if ((hf_streq(sub, "status") && !info->status) ||
	    (hf_streq(sub, "scale") && !info->scale_spec) ||
	    (hf_streq(sub, "finalize") && op->kind->resource != &hf_namespaces))
		return hf_op_fail(op, HF_E_NOT_FOUND,
				  "the server could not find the requested resource");
	return 0;
}

int hf_op_update(struct hf_op *op)
{
	struct hf_entry *entry;
	const struct hf_json *body = hf_doc_json(op->request->body);
	int rc = check_subresource(op);

	if (rc)
		return rc;
	entry = find_entry(op);
	if (!entry)
		return op->result->code;
	if (hf_streq(op->request->subresource, "scale"))
		return hf_op_scale_put(op, entry, body);
	return hf_op_write(op, entry, hf_json_share(body));
}

static int apply_patch(struct hf_op *op, const struct hf_json *target, struct hf_json **ret_value)
{
	const struct hf_json *patch = hf_doc_json(op->request->body);
	struct hf_error err = {0};

	switch (op->request->patch_type) {
	case HF_PATCH_MERGE: *ret_value = hf_patch_merge(target, patch); return 0;
	case HF_PATCH_JSON:
		if (hf_json_patch(target, patch, ret_value, &err))
			return hf_op_fail(op, err.code, "%s", err.text);
		return 0;
	case HF_PATCH_STRATEGIC:
		if (op->kind->info->custom)
			return hf_op_fail(op, HF_E_MEDIA_TYPE,
					  "the body of the request was in an unknown format - "
					  "accepted media types include: "
					  "application/json-patch+json, "
					  "application/merge-patch+json");
		if (hf_patch_strategic(target, patch, ret_value, &err))
			return hf_op_fail(op, err.code, "%s", err.text);
		return 0;
	case HF_PATCH_APPLY: break;
	}
	return hf_op_fail(op, HF_E_MEDIA_TYPE,
			  "server-side apply of a scale is not supported: patch the scale");
}

int hf_op_patch(struct hf_op *op)
{
	struct hf_entry *entry;
	struct hf_json *desired;
	int rc = check_subresource(op);

	if (rc)
		return rc;
	if (op->request->patch_type == HF_PATCH_APPLY)
		return hf_op_apply(op, hf_kind_find(op->kind, op->request->ns, op->request->name));
	entry = find_entry(op);
	if (!entry)
		return op->result->code;
	if (hf_streq(op->request->subresource, "scale")) {
		HF_AUTO_JSON scale = hf_op_scale_of(op, entry);
		if (!scale)
			return op->result->code;
		rc = apply_patch(op, scale, &desired);
		if (rc)
			return rc;
		rc = hf_op_scale_put(op, entry, desired);
		hf_json_unref(desired);
		return rc;
	}
	rc = apply_patch(op, hf_doc_json(entry->doc), &desired);
	if (rc)
		return rc;
	if (hf_json_type(desired) != HF_JSON_OBJECT) {
		hf_json_unref(desired);
		return hf_op_fail(op, HF_E_BAD_REQUEST,
				  "the result of the patch must be an object");
	}
	return hf_op_write(op, entry, desired);
}
