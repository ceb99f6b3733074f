/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/kubelet_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

/* Fetches all ConfigMaps and Secrets that a pod names and calls back when each has a reply. */

struct ref {
	struct hf_kubelet_refs *refs;
	const struct hf_resource *resource;
	char *name;
	struct hf_call *call;
	struct hf_doc *doc;
	struct hf_error err;
};

struct hf_kubelet_refs {
	struct hf_store *store;
	char *ns;
	struct hf_task *none; /* calls `done` from the loop if there is no object to fetch */
	struct ref items[HF_KUBELET_REFS_MAX];
	size_t n, waiting;
	bool too_many;
	hf_kubelet_refs_fn done;
	void *arg;
};

static void on_none(void *arg)
{
	struct hf_kubelet_refs *refs = arg;

	refs->done(refs->arg);
}

struct hf_kubelet_refs *hf_kubelet_refs_create(struct hf_store *store, struct hf_loop *loop,
					       const char *ns)
{
	struct hf_kubelet_refs *refs = hf_xcalloc(1, sizeof(*refs));

	refs->store = store;
	refs->ns = hf_xstrdup(ns);
	refs->none = hf_task_create(loop, on_none, refs);
	return refs;
}

struct hf_kubelet_refs *hf_kubelet_refs_destroy(struct hf_kubelet_refs *refs)
{
	if (!refs)
		return NULL;
	for (size_t i = 0; i < refs->n; i++) {
		hf_call_cancel(refs->items[i].call);
		(void)hf_doc_unref(refs->items[i].doc);
		free(refs->items[i].name);
	}
	refs->none = hf_task_destroy(refs->none);
	free(refs->ns);
	free(refs);
	return NULL;
}

static const struct ref *find_ref(const struct hf_kubelet_refs *refs,
				  const struct hf_resource *resource, const char *name)
{
	for (size_t i = 0; i < refs->n; i++)
		if (refs->items[i].resource == resource && hf_streq(refs->items[i].name, name))
			return &refs->items[i];
	return NULL;
}

void hf_kubelet_refs_add(struct hf_kubelet_refs *refs, const struct hf_resource *resource,
			 const char *name)
{
	struct ref *ref;

	if (hf_str_is_empty(name) || find_ref(refs, resource, name))
		return;
	if (refs->n == HF_KUBELET_REFS_MAX) {
		refs->too_many = true;
		return;
	}
	ref = &refs->items[refs->n++];
	ref->refs = refs;
	ref->resource = resource;
	ref->name = hf_xstrdup(name);
}

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct ref *ref = arg;
	struct hf_kubelet_refs *refs = ref->refs;

	ref->call = NULL;
	if (reply->code)
		(void)hf_error_set(&ref->err, reply->code, "%s", reply->message);
	else
		ref->doc = hf_doc_ref(reply->object);
	if (--refs->waiting == 0)
		refs->done(refs->arg);
}

void hf_kubelet_refs_fetch(struct hf_kubelet_refs *refs, hf_kubelet_refs_fn done, void *arg)
{
	refs->done = done;
	refs->arg = arg;
	refs->waiting = refs->n;
	if (!refs->n)
		hf_task_post(refs->none);
	for (size_t i = 0; i < refs->n; i++) {
		struct ref *ref = &refs->items[i];
		struct hf_request request = {.verb = HF_VERB_GET,
					     .resource = ref->resource,
					     .ns = refs->ns,
					     .name = ref->name};

		ref->call = hf_store_request(refs->store, &request, on_reply, ref);
	}
}

struct hf_doc *hf_kubelet_refs_get(const struct hf_kubelet_refs *refs,
				   const struct hf_resource *resource, const char *name,
				   struct hf_error *err)
{
	const struct ref *ref = find_ref(refs, resource, name);

	if (ref && ref->doc)
		return ref->doc;
	if (ref)
		(void)hf_error_set(err, ref->err.code, "%s", ref->err.text);
	else if (refs->too_many)
		(void)hf_error_set(err, HF_E_TOO_LARGE, "the pod names more than %d objects",
				   HF_KUBELET_REFS_MAX);
	else
		(void)hf_error_set(err, HF_E_INVALID, "a reference to a %s has no name",
				   resource->singular);
	return NULL;
}
