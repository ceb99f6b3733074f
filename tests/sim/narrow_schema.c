/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/sim.h"

#include "base/mem.h"
#include "base/str.h"
#include "core/model/names.h"
#include "store/backend.h"

#include <stdlib.h>
#include <string.h>

/*
 * A cluster with upstream's CRDs. As an API server does, it drops status.recovery from the
 * operator's writes and answers with success. Fields for which the spec has no place are in an
 * annotation.
 */

struct narrow_schema_store {
	struct hf_store base; /* first */
	struct hf_store *behind;
};

static struct hf_call *narrow_schema_request(struct hf_store *store,
					     const struct hf_request *request, hf_reply_fn done,
					     void *arg)
{
	struct narrow_schema_store *narrow = (struct narrow_schema_store *)store;
	struct hf_request pruned = *request;
	struct hf_json *body;
	HF_AUTO_DOC doc = NULL;

	if (request->verb != HF_VERB_PATCH || !hf_streq(request->subresource, "status") ||
	    !hf_streq(request->resource->group, "kubeflow.org"))
		return hf_store_request(narrow->behind, request, done, arg);
	body = hf_json_copy(hf_doc_json(request->body));
	hf_json_remove(hf_json_get(body, "status"), "recovery");
	doc = hf_doc_from_json(body);
	pruned.body = doc;
	return hf_store_request(narrow->behind, &pruned, done, arg);
}

static struct hf_watch *narrow_schema_watch(struct hf_store *store,
					    const struct hf_watch_options *options, hf_event_fn fn,
					    void *arg)
{
	return hf_store_watch(((struct narrow_schema_store *)store)->behind, options, fn, arg);
}

static void narrow_schema_destroy(struct hf_store *store)
{
	hf_store_destroy(((struct narrow_schema_store *)store)->behind);
	free(store);
}

/* Calls and watches belong to the store behind this one, so cancel and stop need no functions
 * here. */
static const struct hf_store_ops narrow_schema_ops = {
	.name = "narrow",
	.request = narrow_schema_request,
	.watch = narrow_schema_watch,
	.destroy = narrow_schema_destroy,
};

struct hf_store *sim_narrow_schema_create(struct hf_store *behind)
{
	struct narrow_schema_store *narrow = hf_xcalloc(1, sizeof(*narrow));

	narrow->base.ops = &narrow_schema_ops;
	narrow->behind = behind;
	return &narrow->base;
}

/* Moves podFailurePolicy and recovery from the job's runPolicy into the annotation. */
void sim_narrow_schema_job(struct hf_json *job)
{
	static const char *const keys[] = {"podFailurePolicy", "recovery"};
	struct hf_json *policy = hf_json_path(job, "spec", "runPolicy", NULL);
	HF_AUTO_JSON moved = hf_json_object();
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)64 << 10);

	for (size_t i = 0; i < HF_ARRAY_LEN(keys); i++) {
		const struct hf_json *value = hf_json_get(policy, keys[i]);

		if (value == NULL)
			continue;
		hf_json_set(moved, keys[i], hf_json_copy(value));
		hf_json_remove(policy, keys[i]);
	}
	if (hf_json_len(moved) == 0)
		return;
	hf_json_write(moved, HF_JSON_COMPACT, &text);
	hf_json_set_str(hf_json_ensure_object(hf_json_get(job, "metadata"), "annotations"),
			HF_ANNOTATION_RUN_POLICY, text.data);
}

static struct hf_json *annotation(struct hf_doc *job, const char *name)
{
	const char *text =
		hf_json_path_str(hf_doc_json(job), "metadata", "annotations", name, NULL);
	struct hf_json *json = NULL;
	struct hf_error err;

	if (text == NULL || hf_json_parse(text, strlen(text), NULL, &json, &err) != 0)
		return NULL;
	return json;
}

struct hf_json *sim_status(struct hf_doc *job)
{
	struct hf_json *stored = hf_json_get(hf_doc_json(job), "status"), *status, *member;
	struct hf_json *ledger = annotation(job, HF_ANNOTATION_LEDGER);
	const char *key;

	if (ledger == NULL)
		return hf_json_ref(stored);
	status = hf_json_object();
	for (void *it = NULL; (it = hf_json_next(stored, it, &key, &member)) != NULL;)
		hf_json_set(status, key, hf_json_ref(member));
	hf_json_set(status, "recovery", ledger);
	return status;
}

struct hf_json *sim_run_policy(struct hf_doc *job)
{
	struct hf_json *policy = annotation(job, HF_ANNOTATION_RUN_POLICY);

	return policy != NULL
		       ? policy
		       : hf_json_ref(hf_json_path(hf_doc_json(job), "spec", "runPolicy", NULL));
}
