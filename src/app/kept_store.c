/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Serves the objects and the logs of a kept run to the verbs that read. */
#include "app/kept_store.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"
#include "framework/framework.h"
#include "kubelet/kubelet.h"
#include "memstore/memstore.h"

#include <stdlib.h>
#include <sys/stat.h>

/* how often a run that still runs is read */
#define FOLLOW_SPAN (500 * HF_MS)
#define VERSIONS_MAX 20000

/* Events of a kept run do not expire. */
#define EVENT_TTL (HF_HOUR * 24 * 365 * 100)

struct hf_kept_store {
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	char *path;
	/* While the run is followed. */
	struct hf_timer *again;  /* NULL: it is not followed */
	struct hf_map *versions; /* UID → resourceVersion of the object in the file */
	struct stat file; /* of the objects that were read last; each save makes a new file */
	void (*over)(void *arg);
	void *over_arg;
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

struct search {
	const char *uid;
	struct hf_doc *found;
};

static void match_uid(void *arg, struct hf_doc *doc)
{
	struct search *search = arg;

	if (hf_streq(hf_doc_uid(doc), search->uid))
		search->found = doc;
}

/* True once the container writes no more output to the log of this attempt. */
static bool is_log_over(void *arg, const char *pod_uid, const char *container, unsigned attempt)
{
	const struct hf_kept_store *kept = arg;
	struct search search = {.uid = pod_uid};
	const struct hf_json *status;

	if (!hf_kept_run_is_alive(kept->path))
		return true;
	hf_memstore_each(kept->memstore, &hf_pods, NULL, match_uid, &search);
	if (search.found == NULL)
		return true;
	status = hf_pod_container_status(hf_doc_json(search.found), container);
	return hf_json_path(status, "state", "running", NULL) == NULL ||
	       hf_json_i64(hf_json_get(status, "restartCount"), 0) > (int64_t)attempt;
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

	if (replaced == NULL) {
		struct hf_log_stream *stream =
			hf_kubelet_kept_logs(kept->loop, dir, pod, options, fn, fn_arg);

		if (kept->again != NULL && options->follow && !options->previous)
			hf_kubelet_kept_logs_follow(stream, is_log_over, arg);
		return stream;
	}
	/* The previous run of the container was in the pod that was replaced: read the log of that
	 * pod. */
	HF_AUTOFREE char *before = hf_kept_run_logs_dir(kept->path, hf_doc_uid(replaced));
	last.previous = false;
	return hf_kubelet_kept_logs(kept->loop, before, replaced, &last, fn, fn_arg);
}

static int refuse_no_job(const struct hf_kept_run *run, struct hf_error *err)
{
	if (run->alive)
		return hf_error_set(err, HF_E_NOT_FOUND, "run %s is starting: it has no job yet",
				    run->id);
	if (!hf_str_is_empty(run->end) || run->ended == HF_TIME_NONE)
		return hf_error_set(err, HF_E_NOT_FOUND,
				    "run %s %s before its job was created; no rank ran", run->id,
				    !hf_str_is_empty(run->end) ? run->end : "was killed");
	return hf_error_set(err, HF_E_NOT_FOUND, "run %s ended before its job was created: %s",
			    run->id, hf_str_is_empty(run->cause) ? run->state : run->cause);
}

/* HF_E_NOT_FOUND: the run has no job, and so nothing that a verb could show. */
static int restore_objects(struct hf_kept_store *kept, const struct hf_kept_run *run,
			   struct hf_error *err)
{
	HF_AUTO_JSON list = hf_kept_run_objects(kept->path, HF_KEPT_OBJECTS, err);
	bool has_job = false;
	int rc = 0;

	if (list == NULL && err->code != HF_E_NOT_FOUND)
		return hf_error_wrap(err, "cannot read the kept run %s", run->id);
	for (size_t i = 0; rc == 0 && i < hf_json_len(list); i++) {
		HF_AUTO_DOC doc = hf_doc_from_json(hf_json_ref(hf_json_item(list, i)));
		const struct hf_json *root = hf_doc_json(doc);

		has_job = has_job ||
			  hf_framework_by_kind(hf_json_path_str(root, "apiVersion", NULL),
					       hf_json_path_str(root, "kind", NULL)) != NULL;
		rc = hf_memstore_restore(kept->memstore, doc, err);
	}
	if (rc != 0)
		return hf_error_wrap(err, "cannot read the kept run %s", run->id);
	return has_job ? 0 : refuse_no_job(run, err);
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
		rc = restore_objects(kept, run, err);
	if (rc != 0) {
		(void)hf_kept_store_close(kept);
		return rc;
	}
	hf_memstore_set_logs(kept->memstore,
			     &(struct hf_memstore_logs){.start = start_log, .arg = kept});
	*ret_client = hf_memstore_client_create(kept->memstore, NULL);
	*ret_kept = kept;
	return 0;
}

/* ---- a run that still runs ------------------------------------------------------------------- */

/* Takes the object from the file, if it has changed there. */
static void refresh_object(struct hf_kept_store *kept, struct hf_doc *doc)
{
	const char *seen = hf_map_get(kept->versions, hf_doc_uid(doc));
	char *version;
	struct hf_error err;

	if (hf_streq(seen, hf_doc_resource_version(doc)) ||
	    hf_memstore_mirror(kept->memstore, doc, &err) != 0)
		return;
	version = hf_xstrdup(hf_doc_resource_version(doc));
	if (!hf_map_put(kept->versions, hf_doc_uid(doc), version))
		free(version);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads the objects that the run saved last. NULL: they cannot be read, or they were read before. over: read them
 * in any case. */
static struct hf_json *read_objects(struct hf_kept_store *kept, bool over)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/" HF_KEPT_OBJECTS, kept->path);
	struct hf_json *list;
	struct hf_error err;
	struct stat file;

	/* Before the file is read: if the run replaces it meanwhile, it is read again. */
	if (stat(path, &file) != 0 || (!over && is_same_file(&file, &kept->file)))
		return NULL;
	list = hf_kept_run_objects(kept->path, HF_KEPT_OBJECTS, &err);
	if (list != NULL)
		kept->file = file;
	return list;
}

static void refresh_objects(struct hf_kept_store *kept, const struct hf_json *list)
{
	for (size_t i = 0; i < hf_json_len(list); i++) {
		HF_AUTO_DOC doc = hf_doc_from_json(hf_json_ref(hf_json_item(list, i)));

		refresh_object(kept, doc);
	}
}

/* Removes the job if the run ended before the job. A verb that waits for the end of the job then goes on. */
static void drop_unfinished(struct hf_kept_store *kept, const struct hf_json *list)
{
	for (size_t i = 0; i < hf_json_len(list); i++) {
		HF_AUTO_DOC doc = hf_doc_from_json(hf_json_ref(hf_json_item(list, i)));
		const struct hf_json *root = hf_doc_json(doc);
		const struct hf_resource *resource =
			hf_resource_by_kind(hf_json_path_str(root, "apiVersion", NULL),
					    hf_json_path_str(root, "kind", NULL));
		const char *state =
			hf_str_or(hf_json_path_str(hf_job_last_condition(root), "type", NULL), "");

		if (hf_framework_by_kind(hf_json_path_str(root, "apiVersion", NULL),
					 hf_json_path_str(root, "kind", NULL)) != NULL &&
		    !hf_streq(state, "Succeeded") && !hf_streq(state, "Failed"))
			hf_memstore_drop(kept->memstore, resource, hf_doc_namespace(doc),
					 hf_doc_name(doc));
	}
}

static void on_again(void *arg)
{
	struct hf_kept_store *kept = arg;
	bool alive = hf_kept_run_is_alive(kept->path);
	HF_AUTO_JSON list = read_objects(kept, !alive);

	refresh_objects(kept, list);
	if (alive) {
		hf_timer_arm(kept->again, FOLLOW_SPAN);
		return;
	}
	kept->over(kept->over_arg);
	drop_unfinished(kept, list);
}

void hf_kept_store_follow(struct hf_kept_store *kept, void (*over)(void *arg), void *over_arg)
{
	kept->over = over;
	kept->over_arg = over_arg;
	kept->versions = hf_map_create(VERSIONS_MAX, 0, free);
	kept->again = hf_timer_create(kept->loop, on_again, kept);
	hf_timer_arm(kept->again, FOLLOW_SPAN);
}

struct hf_kept_store *hf_kept_store_close(struct hf_kept_store *kept)
{
	if (kept == NULL)
		return NULL;
	kept->again = hf_timer_destroy(kept->again);
	hf_map_destroy(kept->versions);
	kept->memstore = hf_memstore_destroy(kept->memstore);
	free(kept->path);
	free(kept);
	return NULL;
}
