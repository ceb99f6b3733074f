/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/str.h"
#include "memstore/memstore_internal.h"

#include <stdlib.h>

/* The synchronous calls of in-process controllers: reads and writes of the engine without a client.
 * The turn that follows commits what they wrote. */

void hf_memstore_apply(struct hf_memstore *memstore, const struct hf_request *request,
		       struct hf_result *ret_result)
{
	hf_engine_apply(memstore->engine, request, ret_result);
	if (memstore->engine->pending.len > 0)
		hf_memstore_wake(memstore);
}

struct hf_doc *hf_memstore_peek(struct hf_memstore *memstore, const struct hf_resource *resource,
				const char *ns, const char *name)
{
	const struct hf_kind *kind = hf_engine_kind(memstore->engine, resource);
	struct hf_entry *entry = kind ? hf_kind_find(kind, ns, name) : NULL;

	return entry ? entry->doc : NULL;
}

void hf_memstore_each(struct hf_memstore *memstore, const struct hf_resource *resource,
		      const char *ns, hf_memstore_each_fn fn, void *arg)
{
	const struct hf_kind *kind = hf_engine_kind(memstore->engine, resource);

	if (!kind)
		return;
	for (size_t i = hf_kind_lower_bound(kind, hf_str_or(ns, ""), ""); i < kind->entries.len;
	     i++) {
		struct hf_entry *entry = kind->entries.items[i];
		if (ns && kind->resource->namespaced && !hf_streq(entry->ns, ns))
			break;
		fn(arg, entry->doc);
	}
}

size_t hf_memstore_count(const struct hf_memstore *memstore, const struct hf_resource *resource)
{
	const struct hf_kind *kind = hf_engine_kind(memstore->engine, resource);

	return kind ? kind->entries.len : 0;
}

int hf_memstore_restore(struct hf_memstore *memstore, struct hf_doc *doc, struct hf_error *err)
{
	const struct hf_json *root = hf_doc_json(doc);
	const struct hf_resource *resource =
		hf_resource_by_kind(hf_str_or(hf_json_path_str(root, "apiVersion", NULL), ""),
				    hf_str_or(hf_json_path_str(root, "kind", NULL), ""));
	const char *ns = hf_doc_namespace(doc);
	uint64_t version = strtoull(hf_doc_resource_version(doc), NULL, 10);
	int rc;

	if (!resource)
		return hf_error_set(err, HF_E_UNSUPPORTED, "an object of an unknown kind");
	if (hf_memstore_peek(memstore, resource, ns, hf_doc_name(doc)))
		return hf_error_set(err, HF_E_EXISTS, "%s '%s' exists already", resource->plural,
				    hf_doc_name(doc));
	rc = hf_engine_load(memstore->engine, resource, doc, hf_loop_wall(memstore->loop), err);
	if (rc == 0 && version > memstore->engine->version)
		hf_engine_loaded(memstore->engine, version);
	return rc;
}

int hf_memstore_mirror(struct hf_memstore *memstore, struct hf_doc *doc, struct hf_error *err)
{
	struct hf_engine *engine = memstore->engine;
	struct hf_json *root = hf_json_shallow(hf_doc_json(doc));
	const struct hf_resource *resource =
		hf_resource_by_kind(hf_str_or(hf_json_path_str(root, "apiVersion", NULL), ""),
				    hf_str_or(hf_json_path_str(root, "kind", NULL), ""));
	struct hf_kind *kind = resource ? hf_engine_kind(engine, resource) : NULL;
	const char *ns = hf_doc_namespace(doc), *name = hf_doc_name(doc);
	struct hf_entry *entry = kind ? hf_kind_find(kind, ns, name) : NULL;
	HF_AUTO_RESULT result = {.code = 0};
	struct hf_op op = {.engine = engine,
			   .kind = kind,
			   .result = &result,
			   .now = hf_loop_wall(memstore->loop)};

	hf_json_set(root, "metadata", hf_json_shallow(hf_json_get(root, "metadata")));
	if (!kind || hf_op_size_check(&op, root, name, entry) != 0) {
		int rc = !kind ? hf_error_set(err, HF_E_UNSUPPORTED, "an object of an unknown kind")
			       : hf_error_set(err, result.code, "%s", result.err.text);

		hf_json_unref(root);
		return rc;
	}
	hf_doc_unref(entry ? hf_op_store(&op, entry, root) : hf_op_store_new(&op, ns, name, root));
	hf_memstore_wake(memstore);
	return 0;
}

void hf_memstore_drop(struct hf_memstore *memstore, const struct hf_resource *resource,
		      const char *ns, const char *name)
{
	struct hf_kind *kind = hf_engine_kind(memstore->engine, resource);
	struct hf_entry *entry = kind ? hf_kind_find(kind, ns, name) : NULL;
	struct hf_op op = {
		.engine = memstore->engine, .kind = kind, .now = hf_loop_wall(memstore->loop)};

	if (!entry)
		return;
	hf_doc_unref(hf_op_remove(&op, entry));
	hf_memstore_wake(memstore);
}

size_t hf_memstore_bytes(const struct hf_memstore *memstore)
{
	return memstore->engine->bytes;
}

void hf_memstore_set_rules(struct hf_memstore *memstore, const struct hf_resource *resource,
			   const struct hf_memstore_rules *rules)
{
	struct hf_kind *kind = hf_engine_kind(memstore->engine, resource);

	hf_assert(kind);
	kind->rules = *rules;
}
