/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Storing and removing objects. Every change gets the next version, replaces the entry in
 * the index, and is added to engine->pending. */

static void add_change(struct hf_engine *engine, const struct hf_change *change)
{
	hf_assert(HF_VEC_PUSH(&engine->pending, *change));
}

static void set_version(struct hf_json *object, uint64_t version)
{
	char text[24], *at = text + sizeof(text) - 1;

	*at = '\0';
	for (; at > text && (version > 0 || *at == '\0'); version /= 10)
		*--at = (char)('0' + version % 10);
	hf_json_set_str(hf_json_get(object, "metadata"), "resourceVersion", at);
}

/* Returns how many bytes metadata.resourceVersion takes in the object's text. */
static size_t version_size(const struct hf_json *object)
{
	const struct hf_json *version = hf_json_path(object, "metadata", "resourceVersion", NULL);

	return version ? strlen("\"resourceVersion\":,") + hf_json_text_size(version, SIZE_MAX) : 0;
}

static struct hf_version version_of(const struct hf_entry *entry)
{
	return (struct hf_version){.doc = hf_doc_ref(entry->doc),
				   .number = entry->version,
				   .bytes = entry->bytes,
				   .written_at = entry->written_at};
}

int hf_op_size_check(struct hf_op *op, const struct hf_json *object, const char *name,
		     const struct hf_entry *entry)
{
	const struct hf_engine_env *env = &op->engine->env;
	size_t bytes_before = entry ? entry->bytes : 0;

	op->bytes = entry ? hf_json_text_size_after(hf_doc_json(entry->doc), bytes_before, object)
			  : hf_json_text_size(object, env->object_bytes_max);
	if (op->bytes > env->object_bytes_max)
		return hf_op_fail(op, HF_E_TOO_LARGE,
				  "%s \"%s\" is larger than the limit of %zu bytes",
				  op->kind->resource->plural, name, env->object_bytes_max);
	if (op->bytes > bytes_before &&
	    op->engine->bytes - bytes_before + op->bytes > env->bytes_max)
		return hf_op_fail(
			op, HF_E_TOO_LARGE,
			"the store is full: all objects together may have at most %zu bytes",
			env->bytes_max);
	return 0;
}

/* Stores object with the next version, and takes it over. Its root and metadata must be private;
 * the other parts may be shared. */
static struct hf_doc *store_version(struct hf_op *op, const char *ns, const char *name,
				    struct hf_entry *entry, struct hf_json *object)
{
	struct hf_engine *engine = op->engine;
	struct hf_change change = {.kind = op->kind, .version = ++engine->version};

	if (entry)
		change.before = version_of(entry);
	/* The limit does not count the resourceVersion, because the server sets it. The stored
	 * size counts it, because the next write computes its size from the stored size. */
	op->bytes -= version_size(object);
	set_version(object, change.version);
	op->bytes += version_size(object);
	struct hf_version version = {.doc = hf_doc_from_json(object),
				     .number = change.version,
				     .bytes = op->bytes,
				     .written_at = op->now};
	change.after = hf_doc_ref(version.doc);
	add_change(engine, &change);
	hf_kind_put(engine, op->kind, ns, name, &version);
	return hf_doc_ref(version.doc);
}

struct hf_doc *hf_op_store(struct hf_op *op, struct hf_entry *entry, struct hf_json *object)
{
	return store_version(op, entry->ns, entry->name, entry, object);
}

struct hf_doc *hf_op_store_new(struct hf_op *op, const char *ns, const char *name,
			       struct hf_json *object)
{
	return store_version(op, ns, name, NULL, object);
}

struct hf_doc *hf_op_remove(struct hf_op *op, struct hf_entry *entry)
{
	struct hf_engine *engine = op->engine;
	struct hf_change change = {
		.kind = entry->kind, .version = ++engine->version, .before = version_of(entry)};
	struct hf_json *last = hf_json_shallow(hf_doc_json(entry->doc));

	hf_json_set(last, "metadata", hf_json_shallow(hf_json_get(last, "metadata")));
	set_version(last, change.version);
	change.last = hf_doc_from_json(last);
	struct hf_doc *ret = hf_doc_ref(change.last);
	add_change(engine, &change);
	/* Copy the strings: hf_kind_put frees the entry and its strings. */
	HF_AUTOFREE char *ns = hf_xstrdup(entry->ns);
	HF_AUTOFREE char *name = hf_xstrdup(entry->name);
	hf_kind_put(engine, entry->kind, ns, name, NULL);
	return ret;
}

hf_time hf_engine_expire(struct hf_engine *engine)
{
	hf_time now = engine->env.now(engine->env.now_arg);
	hf_time due = HF_TIME_NEVER;

	for (size_t i = 0; i < engine->n_kinds; i++) {
		struct hf_kind *kind = &engine->kinds[i];
		struct hf_op op = {.engine = engine, .kind = kind, .now = now};
		while (kind->oldest &&
		       hf_time_add(kind->oldest->written_at, engine->env.event_ttl) <= now)
			hf_doc_unref(hf_op_remove(&op, kind->oldest));
		if (kind->oldest) {
			hf_time t = hf_time_add(kind->oldest->written_at, engine->env.event_ttl);
			due = t < due ? t : due;
		}
	}
	return due;
}
