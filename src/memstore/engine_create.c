/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * POST: completes and checks a new object (name, uid, namespace, first status) and stores it. A
 * POST of a subresource is an eviction or a binding, which change an object that exists.
 */

#define GENERATED_SUFFIX 5
/* limit in bytes of generateName; with its suffix the name has 63 bytes, the longest DNS label */
#define GENERATED_BASE_MAX 58
#define GENERATE_TRIES 8

static void make_uid(struct hf_engine *engine, char uid[37])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char b[16];
	char *at = uid;

	engine->env.random(engine->env.random_arg, b, sizeof(b));
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* RFC 9562: version 4 */
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof(b); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		*at++ = digits[b[i] >> 4];
		*at++ = digits[b[i] & 0x0f];
	}
	*at = '\0';
}

/* Makes a name of base and random characters, from apimachinery's alphabet: it has no vowels, so
 * that no words come out. */
static void generate_name(struct hf_engine *engine, struct hf_json *meta, const char *base)
{
	static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
	unsigned char b[GENERATED_SUFFIX];
	char name[GENERATED_BASE_MAX + GENERATED_SUFFIX + 1];
	size_t len = strnlen(base, GENERATED_BASE_MAX);

	memcpy(name, base, len);
	engine->env.random(engine->env.random_arg, b, sizeof(b));
	for (size_t i = 0; i < GENERATED_SUFFIX; i++)
		name[len + i] = alphabet[b[i] % (sizeof(alphabet) - 1)];
	name[len + GENERATED_SUFFIX] = '\0';
	hf_json_set_str(meta, "name", name);
}

static int check_namespace(struct hf_op *op)
{
	const char *ns = op->request->ns;

	if (!op->kind->resource->namespaced)
		return 0;
	struct hf_entry *entry = hf_kind_find(hf_engine_kind(op->engine, &hf_namespaces), "", ns);
	if (!entry) {
		/* The object of the Status is the missing namespace, not the object that was to be
		 * created. */
		struct hf_request about = {.resource = &hf_namespaces, .name = ns};
		op->request = &about;
		op->kind = hf_engine_kind(op->engine, &hf_namespaces);
		return hf_op_not_found(op);
	}
	if (hf_json_path(hf_doc_json(entry->doc), "metadata", "deletionTimestamp", NULL)) {
		char why[160];
		const char *name = hf_doc_name(op->request->body);
		snprintf(why, sizeof(why),
			 "unable to create new content in namespace %s because "
			 "it is being terminated",
			 ns);
		return hf_op_forbidden(op, name, why);
	}
	return 0;
}

static int check_create_meta(struct hf_op *op, struct hf_json *meta)
{
	const char *ns = hf_json_path_str(meta, "namespace", NULL);

	if (!hf_str_is_empty(hf_json_path_str(meta, "resourceVersion", NULL)))
		return hf_op_fail(op, HF_E_BAD_REQUEST,
				  "resourceVersion should not be set on objects to be created");
	if (!op->kind->resource->namespaced)
		hf_json_remove(meta, "namespace");
	else if (!hf_str_is_empty(ns) && !hf_streq(ns, op->request->ns))
		return hf_op_fail(op, HF_E_BAD_REQUEST,
				  "the namespace of the provided object does not match the "
				  "namespace sent on the request");
	else
		hf_json_set_str(meta, "namespace", op->request->ns);
	return 0;
}

static void set_system_fields(struct hf_op *op, struct hf_json *meta)
{
	static const char *const server_fields[] = {
		"deletionTimestamp", "deletionGracePeriodSeconds",
		"selfLink",          "resourceVersion",
		"managedFields",     "generation"};
	char uid[37];

	for (size_t i = 0; i < HF_ARRAY_LEN(server_fields); i++)
		if (!op->applied || !hf_streq(server_fields[i], "managedFields"))
			hf_json_remove(meta, server_fields[i]);
	make_uid(op->engine, uid);
	hf_json_set_str(meta, "uid", uid);
	hf_meta_set_time(meta, "creationTimestamp", op->now);
	if (op->kind->info->generation)
		hf_json_set_i64(meta, "generation", 1);
}

static void set_namespace_defaults(struct hf_json *object)
{
	struct hf_json *meta = hf_json_get(object, "metadata");
	struct hf_json *labels = hf_json_members(hf_json_get(meta, "labels"));
	struct hf_json *spec = hf_json_members(hf_json_get(object, "spec"));
	struct hf_json *finalizers = hf_json_array();

	hf_json_set_str(labels, "kubernetes.io/metadata.name",
			hf_str_or(hf_json_path_str(meta, "name", NULL), ""));
	hf_json_set(meta, "labels", labels);
	/* A namespace begins with this finalizer. The garbage collector removes it when the
	 * namespace is empty. */
	hf_json_append(finalizers, hf_json_string("kubernetes"));
	hf_json_set(spec, "finalizers", finalizers);
	hf_json_set(object, "spec", spec);
}

/* Binds a claim at once. The kubelet makes a folder for it when a pod needs it, so there is nothing
 * to wait for. */
static void bind_claim(struct hf_json *object)
{
	struct hf_json *status = hf_json_object();
	struct hf_json *spec = hf_json_get(object, "spec");
	const struct hf_json *size = hf_json_path(spec, "resources", "requests", "storage", NULL);
	HF_AUTOFREE char *volume = hf_xasprintf(
		"local-%s", hf_str_or(hf_json_path_str(object, "metadata", "name", NULL), ""));

	hf_json_set_str(status, "phase", "Bound");
	hf_json_set(status, "accessModes", hf_json_copy(hf_json_get(spec, "accessModes")));
	if (size)
		hf_json_set(hf_json_ensure_object(status, "capacity"), "storage",
			    hf_json_copy(size));
	if (hf_json_type(spec) == HF_JSON_OBJECT &&
	    hf_str_is_empty(hf_json_path_str(spec, "volumeName", NULL)))
		hf_json_set_str(spec, "volumeName", volume);
	hf_json_set(object, "status", status);
}

/* Sets the status of a new object, as the API server's create strategies do. A client's status is
 * dropped, except for nodes. */
static void set_initial_status(struct hf_op *op, struct hf_json *object)
{
	const struct hf_resource *r = op->kind->resource;

	if (r == &hf_nodes || !op->kind->info->status)
		/* nodes keep the status of the request, because a kubelet registers its node with
		 * a status */
		return;
	hf_json_remove(object, "status");
	if (r == &hf_namespaces)
		set_namespace_defaults(object);
	if (r == &hf_pods) {
		hf_pod_init(object);
	} else if (r == &hf_persistentvolumeclaims) {
		bind_claim(object);
	} else if (r == &hf_namespaces) {
		struct hf_json *status = hf_json_object();
		hf_json_set_str(status, "phase", "Active");
		hf_json_set(object, "status", status);
	}
}

static int check_name(struct hf_op *op, const struct hf_json *meta)
{
	const char *name = hf_str_or(hf_json_path_str(meta, "name", NULL), "");
	const char *problem;

	if (*name == '\0') {
		hf_op_problem(op, "FieldValueRequired", "metadata.name",
			      "Required value: name or generateName is required");
		return hf_op_invalid(op, "");
	}
	problem = hf_meta_name_problem(op->kind, name);
	if (problem)
		hf_op_problem(op, "FieldValueInvalid", "metadata.name", "Invalid value: \"%s\": %s",
			      name, problem);
	hf_meta_check(op, meta, NULL);
	return hf_op_has_problems(op) ? hf_op_invalid(op, name) : 0;
}

/* Generates an unused name if the client sent generateName only. */
static void choose_name(struct hf_op *op, struct hf_json *meta)
{
	const char *base = hf_json_path_str(meta, "generateName", NULL);

	if (!hf_str_is_empty(hf_json_path_str(meta, "name", NULL)) || hf_str_is_empty(base))
		return;
	for (int i = 0; i < GENERATE_TRIES; i++) {
		generate_name(op->engine, meta, base);
		if (!hf_kind_find(op->kind, op->request->ns, hf_json_path_str(meta, "name", NULL)))
			return;
	}
}

/* Completes and checks a new object. The root and metadata of *object are private. */
static int prepare_create(struct hf_op *op, struct hf_json **object)
{
	struct hf_json *meta = hf_json_get(*object, "metadata");
	int rc = check_create_meta(op, meta);

	if (rc)
		return rc;
	choose_name(op, meta);
	set_system_fields(op, meta);
	set_initial_status(op, *object);
	rc = hf_op_admit(op, HF_VERB_CREATE, NULL, object);
	if (rc)
		return rc;
	meta = hf_json_get(*object, "metadata");
	rc = check_name(op, meta);
	if (rc)
		return rc;
	const char *name = hf_json_path_str(meta, "name", NULL);
	if (hf_kind_find(op->kind, op->request->ns, name))
		return hf_op_exists(op, name);
	if (op->kind->entries.len >= op->engine->env.objects_max)
		return hf_op_fail(op, HF_E_TOO_LARGE,
				  "the store is full: it may have at most %zu %s",
				  op->engine->env.objects_max, op->kind->resource->plural);
	return hf_op_size_check(op, *object, name, NULL);
}

int hf_op_create(struct hf_op *op)
{
	const struct hf_json *body = hf_doc_json(op->request->body);

	if (hf_streq(op->request->subresource, "eviction"))
		return hf_op_evict(op);
	if (op->request->subresource)
		return hf_op_bind(op);
	int rc = hf_meta_check_type(op, body);
	if (rc == 0)
		rc = check_namespace(op);
	if (rc)
		return rc;
	HF_AUTO_JSON object = hf_json_members(body);
	hf_json_set(object, "metadata", hf_json_members(hf_json_get(body, "metadata")));
	rc = prepare_create(op, &object);
	if (rc)
		return rc;
	if (op->request->dry_run)
		return hf_op_done(op, hf_doc_from_json(hf_steal(&object)));
	const struct hf_json *meta = hf_json_get(object, "metadata");
	const char *ns = hf_str_or(hf_json_path_str(meta, "namespace", NULL), "");
	const char *name = hf_json_path_str(meta, "name", NULL);
	/* ns and name point into the object, which lives on in the stored document. */
	return hf_op_done(op, hf_op_store_new(op, ns, name, hf_steal(&object)));
}
