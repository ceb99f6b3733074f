/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Serves the objects and the logs of a kept run to the verbs that read. */
#include "app/kept_store.h"

#include "base/mem.h"
#include "base/str.h"
#include "kubelet/kubelet.h"
#include "memstore/memstore.h"

#include <stdlib.h>

/* Events of a kept run do not expire. */
#define EVENT_TTL (HF_HOUR * 24 * 365 * 100)

struct hf_kept_store {
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	char *path;
};

/* Finds the pod of this name that was replaced last. NULL: no pod of this name was replaced. */
static struct hf_doc *find_replaced(const struct hf_kept_store *kept, const char *name)
{
	struct hf_error err;
	HF_AUTO_JSON list = hf_kept_run_objects(kept->path, HF_KEPT_REPLACED, &err);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		struct hf_json *pod = hf_json_item(list, i);

		if (hf_streq(hf_json_path_str(pod, "metadata", "name", NULL), name))
			return hf_doc_from_json(hf_json_ref(pod));
	}
	return NULL;
}

static struct hf_log_stream *start_log(void *arg, struct hf_doc *pod,
				       const struct hf_log_options *options, hf_log_fn fn,
				       void *fn_arg)
{
	const struct hf_kept_store *kept = arg;
	HF_AUTOFREE char *dir = hf_kept_run_logs_dir(kept->path, hf_doc_uid(pod));
	HF_AUTOFREE char *log =
		hf_kubelet_kept_log(dir, hf_doc_json(pod), options->container, options->previous);
	HF_AUTO_DOC replaced =
		log == NULL && options->previous ? find_replaced(kept, hf_doc_name(pod)) : NULL;
	struct hf_log_options last = *options;

	if (replaced == NULL)
		return hf_kubelet_kept_logs(kept->loop, dir, pod, options, fn, fn_arg);
	/* The previous run of the container was in the pod that was replaced: read the log of that
	 * pod. */
	HF_AUTOFREE char *before = hf_kept_run_logs_dir(kept->path, hf_doc_uid(replaced));
	last.previous = false;
	return hf_kubelet_kept_logs(kept->loop, before, replaced, &last, fn, fn_arg);
}

static int restore_objects(struct hf_kept_store *kept, struct hf_error *err)
{
	HF_AUTO_JSON list = hf_kept_run_objects(kept->path, HF_KEPT_OBJECTS, err);
	int rc = 0;

	if (list == NULL)
		return err->code;
	for (size_t i = 0; rc == 0 && i < hf_json_len(list); i++) {
		HF_AUTO_DOC doc = hf_doc_from_json(hf_json_ref(hf_json_item(list, i)));

		rc = hf_memstore_restore(kept->memstore, doc, err);
	}
	return rc;
}

int hf_kept_store_open(struct hf_loop *loop, const struct hf_kept_run *run,
		       struct hf_kept_store **ret_kept, struct hf_store **ret_client,
		       struct hf_error *err)
{
	const struct hf_memstore_options options = {.event_ttl = EVENT_TTL};
	struct hf_kept_store *kept = hf_xcalloc(1, sizeof(*kept));
	int rc;

	kept->loop = loop;
	kept->path = hf_xstrdup(run->path);
	rc = hf_memstore_create(loop, &options, &kept->memstore, err);
	if (rc == 0)
		rc = restore_objects(kept, err);
	if (rc != 0) {
		(void)hf_kept_store_close(kept);
		return hf_error_wrap(err, "cannot read the kept run %s", run->id);
	}
	hf_memstore_set_logs(kept->memstore,
			     &(struct hf_memstore_logs){.start = start_log, .arg = kept});
	*ret_client = hf_memstore_client_create(kept->memstore, NULL);
	*ret_kept = kept;
	return 0;
}

struct hf_kept_store *hf_kept_store_close(struct hf_kept_store *kept)
{
	if (kept == NULL)
		return NULL;
	kept->memstore = hf_memstore_destroy(kept->memstore);
	free(kept->path);
	free(kept);
	return NULL;
}
