/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Creates the objects of a run one after the other, so that the job comes last. */
#include "app/run_objects.h"

#include "base/mem.h"
#include "store/resource.h"

#include <stdlib.h>

struct hf_run_objects {
	struct hf_run_objects_options options;
	size_t n_created; /* objects beside the job that exist */
	struct hf_call *call;
};

static void create_next(struct hf_run_objects *objects);

static void on_job(void *arg, const struct hf_reply *reply)
{
	struct hf_run_objects *objects = arg;

	objects->call = NULL;
	objects->options.done(objects->options.arg, reply->code, reply->message);
}

static void on_object(void *arg, const struct hf_reply *reply)
{
	struct hf_run_objects *objects = arg;
	struct hf_doc *doc = objects->options.in->objects.items[objects->n_created];
	HF_AUTOFREE char *text = NULL;

	objects->call = NULL;
	objects->n_created++;
	if (reply->code == 0 || reply->code == HF_E_EXISTS) {
		create_next(objects);
		return;
	}
	text = hf_xasprintf("%s '%s' of the manifest is refused: %s",
			    hf_json_path_str(hf_doc_json(doc), "kind", NULL), hf_doc_name(doc),
			    reply->message);
	objects->options.done(objects->options.arg, reply->code, text);
}

static void create_job(struct hf_run_objects *objects)
{
	struct hf_request request = {.verb = HF_VERB_CREATE,
				     .resource = objects->options.resource,
				     .ns = objects->options.ns,
				     .body = objects->options.in->manifest.doc,
				     .field_manager = "holdfast-run",
				     .field_validation = "Strict"};

	objects->call = hf_store_request(objects->options.store, &request, on_job, objects);
}

/* Creates the next object of the manifest; the job is the last object. */
static void create_next(struct hf_run_objects *objects)
{
	const struct hf_manifest_objects *list = &objects->options.in->objects;
	struct hf_request request = {.verb = HF_VERB_CREATE,
				     .field_manager = "holdfast-run",
				     .field_validation = "Strict"};
	const struct hf_json *root;

	if (objects->n_created == list->len) {
		create_job(objects);
		return;
	}
	request.body = list->items[objects->n_created];
	root = hf_doc_json(request.body);
	request.resource = hf_resource_by_kind(hf_json_path_str(root, "apiVersion", NULL),
					       hf_json_path_str(root, "kind", NULL));
	if (request.resource->namespaced)
		request.ns = hf_doc_namespace(request.body);
	objects->call = hf_store_request(objects->options.store, &request, on_object, objects);
}

struct hf_run_objects *hf_run_objects_create(const struct hf_run_objects_options *options)
{
	struct hf_run_objects *objects = hf_xcalloc(1, sizeof(*objects));

	objects->options = *options;
	hf_run_input_add_namespaces(options->in, options->ns);
	create_next(objects);
	return objects;
}

struct hf_run_objects *hf_run_objects_destroy(struct hf_run_objects *objects)
{
	if (objects != NULL)
		hf_call_cancel(objects->call);
	free(objects);
	return NULL;
}
