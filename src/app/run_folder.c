/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The folder of one `holdfast run`: the files of the live run, and what is kept at the end. */
#include "app/run_folder.h"

#include "app/failure.h"
#include "app/kept_runs.h"
#include "app/plane.h"
#include "app/sweep_runs.h"
#include "base/fs.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/explain.h"
#include "cli/facts.h"
#include "core/model/container_reason.h"
#include "kubelet/kubelet.h"
#include "store/resource.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Longest time between two saves. While a run is younger than two of these, a save waits only half
 * of the run's age, so that a run that ends early is also kept. */
#define SAVE_SPAN_MAX HF_SECOND
/* with less free space on its disk, the state directory is not used: the pods need files there */
#define FREE_BYTES_MIN ((uint64_t)16 << 20)
/* with less free space on its disk, output of ranks may be lost, and `run` reports a full disk */
#define FULL_BYTES ((uint64_t)64 << 10)
#define GONE_MAX 1024                       /* deleted pods that are remembered */
#define OBJECTS_MAX 20000                   /* limit of the kept objects of a run */
#define ERROR_BYTES_MAX ((size_t)256 << 10) /* of one TORCHELASTIC_ERROR_FILE */

struct hf_run_folder {
	struct hf_kept_run run;
	const struct hf_resource *resource; /* of the job */
	const char *container;
	char *base, *logs, *errors;
	int lock_fd; /* marks the run as alive */
	/* the folder is in the state directory, so the run is kept at its end */
	bool kept;
	/* where the objects of the run are read from; NULL: before attach, or after finish */
	struct hf_memstore *memstore;
	struct hf_map *gone; /* pod name → last version of the deleted pod */
	struct hf_map *pods; /* pod name → last version that the caller passed */
	/* what ended the failed rank, and the note about it; NULL: unknown */
	char *exception, *exception_note;
	char *end_state; /* state of a run that ended before its job; NULL: the job's state */
	bool changed;
	hf_time opened_at;
	hf_time saved_at;
	char *refused_cause;  /* why `run` gave up the job; NULL: it did not */
	struct hf_error lost; /* why the end of the run could not be saved; code 0: no error */
};

static void unref_doc(void *doc)
{
	hf_doc_unref(doc);
}

/* ---- open ---------------------------------------------------------------------------------- */

static int check_room(const char *dir, struct hf_error *err)
{
	struct statvfs st;

	if (statvfs(dir, &st) != 0)
		return hf_error_errno(err, errno, "cannot use '%s'", dir);
	if ((uint64_t)st.f_bavail * st.f_frsize < FREE_BYTES_MIN)
		return hf_error_set(err, HF_E_NO_SPACE,
				    "its disk has less than %" PRIu64 " MiB left",
				    FREE_BYTES_MIN >> 20);
	return 0;
}

/* Makes the folder of this run below base. If a folder with this name exists, an older process
 * with the same ID made it. */
static int make_folder(struct hf_run_folder *folder, const char *base, struct hf_error *err)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/runs/%s", base, folder->run.id);
	int rc;

	(void)hf_sweep_runs(base, 0);
	rc = hf_plane_make_dir(base, err);
	if (rc == 0)
		rc = hf_fs_remove_tree(path, err);
	if (rc == 0)
		rc = hf_plane_make_dir(path, err);
	if (rc == 0)
		rc = check_room(path, err);
	free(folder->run.path);
	folder->run.path = hf_steal(&path);
	if (rc == 0)
		rc = hf_kept_run_lock(folder->run.path, &folder->lock_fd, err);
	if (rc == 0)
		rc = hf_kept_run_save(&folder->run, err);
	if (rc != 0) {
		struct hf_error ignored;
		hf_fd_cleanup(&folder->lock_fd);
		(void)!hf_fs_remove_tree(folder->run.path, &ignored);
		return rc;
	}
	folder->base = hf_xstrdup(base);
	return 0;
}

/* Makes a folder in /tmp. Refuses a folder of this name that belongs to another user. */
static int make_fallback(struct hf_run_folder *folder, struct hf_error *err)
{
	HF_AUTOFREE char *base = hf_xasprintf("/tmp/holdfast-%u", (unsigned)getuid());
	struct stat st;

	if (mkdir(base, 0700) != 0 && errno != EEXIST)
		return hf_error_errno(err, errno, "cannot create '%s'", base);
	if (lstat(base, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != getuid() ||
	    (st.st_mode & 077) != 0)
		return hf_error_set(err, HF_E_IO, "'%s' is not a private folder of this user",
				    base);
	return make_folder(folder, base, err);
}

static struct hf_run_folder *allocate_folder(const struct hf_run_folder_options *options)
{
	struct hf_run_folder *folder = hf_xcalloc(1, sizeof(*folder));
	const struct hf_framework *framework = options->manifest->framework;
	const char *name = hf_doc_name(options->manifest->doc);

	folder->run = (struct hf_kept_run){
		.id = hf_xasprintf("%s-%d", name, (int)getpid()),
		.name = hf_xstrdup(name),
		.ns = hf_xstrdup(options->ns),
		.kind = hf_xstrdup(framework->kind),
		.state = hf_xstrdup("Starting"),
		.cause = hf_xstrdup(""),
		.started = options->now,
		.ended = HF_TIME_NONE,
	};
	folder->lock_fd = -1;
	folder->resource = hf_resource_by_plural(framework->group, framework->plural);
	folder->container = framework->container_name;
	folder->opened_at = options->now;
	folder->saved_at = options->now;
	folder->gone = hf_map_create(GONE_MAX, 0, unref_doc);
	folder->pods = hf_map_create(GONE_MAX, 0, unref_doc);
	return folder;
}

static void free_folder(struct hf_run_folder *folder)
{
	hf_kept_run_release(&folder->run);
	free(folder->base);
	free(folder->logs);
	free(folder->errors);
	free(folder->refused_cause);
	hf_fd_cleanup(&folder->lock_fd);
	free(folder->exception);
	free(folder->exception_note);
	free(folder->end_state);
	hf_map_destroy(folder->gone);
	hf_map_destroy(folder->pods);
	free(folder);
}

int hf_run_folder_open(const struct hf_cli *cli, const struct hf_run_folder_options *options,
		       struct hf_run_folder **ret_folder, struct hf_error *err)
{
	struct hf_run_folder *folder = allocate_folder(options);
	int rc = make_folder(folder, options->base, err);

	folder->kept = rc == 0;
	if (rc != 0) {
		fprintf(cli->err, "holdfast: this run is not kept: '%s' cannot be used: %s\n",
			options->base, err->text);
		rc = make_fallback(folder, err);
	}
	if (rc != 0) {
		free_folder(folder);
		return rc;
	}
	folder->logs = hf_xasprintf("%s/logs", folder->run.path);
	folder->errors = hf_xasprintf("%s/errors", folder->run.path);
	/* Ignore an error: without this folder, only the exceptions that torchrun's workers record
	 * are missing from reports. */
	(void)mkdir(folder->errors, 0700);
	hf_kept_runs_prune(folder->base, HF_KEPT_RUNS_MAX - 1, HF_KEPT_RUNS_BYTES_MAX);
	*ret_folder = folder;
	return 0;
}

void hf_run_folder_attach(struct hf_run_folder *folder, struct hf_memstore *memstore)
{
	folder->memstore = memstore;
}

const char *hf_run_folder_path(const struct hf_run_folder *folder)
{
	return folder->run.path;
}

bool hf_run_folder_is_full(const struct hf_run_folder *folder)
{
	struct statvfs st;

	return statvfs(folder->run.path, &st) == 0 &&
	       (uint64_t)st.f_bavail * st.f_frsize < FULL_BYTES;
}

bool hf_run_folder_is_gone(const struct hf_run_folder *folder)
{
	struct stat st;

	return lstat(folder->run.path, &st) != 0 && errno == ENOENT;
}

const char *hf_run_folder_logs(const struct hf_run_folder *folder)
{
	return folder->logs;
}

const char *hf_run_folder_errors(const struct hf_run_folder *folder)
{
	return folder->errors;
}

/* ---- save ---------------------------------------------------------------------------------- */

/* Marks a pod that was deleted during the run, so that `why` does not count it as present. */
static struct hf_doc *mark_gone(struct hf_doc *pod)
{
	struct hf_json *copy = hf_json_copy(hf_doc_json(pod));
	struct hf_json *annotations =
		hf_json_ensure_object(hf_json_ensure_object(copy, "metadata"), "annotations");

	hf_json_set_str(annotations, HF_CLI_GONE_ANNOTATION, "true");
	return hf_doc_from_json(copy);
}

void hf_run_folder_pod(struct hf_run_folder *folder, struct hf_doc *pod, bool gone)
{
	struct hf_doc *before = hf_map_get(folder->gone, hf_doc_name(pod));
	struct hf_error err;

	folder->changed = true;
	(void)hf_doc_ref(pod);
	if (!hf_map_put(folder->pods, hf_doc_name(pod), pod))
		hf_doc_unref(pod);
	if (!gone)
		return;
	/* Keep the logs of the last deleted pod of each name only. */
	if (before != NULL && !hf_streq(hf_doc_uid(before), hf_doc_uid(pod))) {
		HF_AUTOFREE char *logs = hf_xasprintf("%s/%s", folder->logs, hf_doc_uid(before));
		(void)!hf_fs_remove_tree(logs, &err);
	}
	pod = mark_gone(pod);
	if (!hf_map_put(folder->gone, hf_doc_name(pod), pod))
		hf_doc_unref(pod);
}

void hf_run_folder_changed(struct hf_run_folder *folder)
{
	folder->changed = true;
}

struct collection {
	HF_VEC(struct hf_doc *) docs; /* borrowed */
};

static void collect_doc(void *arg, struct hf_doc *doc)
{
	struct collection *collection = arg;

	(void)!HF_VEC_PUSH(&collection->docs, doc);
}

static bool is_in_store(const struct hf_run_folder *folder, const char *pod)
{
	return hf_memstore_peek(folder->memstore, &hf_pods, folder->run.ns, pod) != NULL;
}

static bool is_deleted(const struct hf_run_folder *folder, struct hf_doc *pod)
{
	struct hf_doc *gone = hf_map_get(folder->gone, hf_doc_name(pod));

	return gone != NULL && hf_streq(hf_doc_uid(gone), hf_doc_uid(pod));
}

/* Collects the pods after the end of the run, which has removed them from the store: each as the caller passed it
 * last. If the run ended before its job, they count as deleted, since the operator saw nothing of their end.
 * made: the pods that this function makes, for the caller to free. */
static void collect_last_pods(struct hf_run_folder *folder, struct collection *collection,
			      struct collection *replaced, struct collection *made)
{
	const char *name;
	void *doc;

	for (size_t it = 0; hf_map_next(folder->pods, &it, &name, &doc);) {
		if (is_deleted(folder, doc))
			continue;
		if (!hf_str_is_empty(folder->run.end)) {
			doc = mark_gone(doc);
			collect_doc(made, doc);
		}
		collect_doc(collection, doc);
	}
	for (size_t it = 0; hf_map_next(folder->gone, &it, &name, &doc);) {
		struct hf_doc *last = hf_map_get(folder->pods, name);

		collect_doc(last == NULL || is_deleted(folder, last) ? collection : replaced, doc);
	}
}

static void collect_pods(struct hf_run_folder *folder, struct collection *collection,
			 struct collection *replaced)
{
	const char *name;
	void *doc;

	hf_memstore_each(folder->memstore, &hf_pods, NULL, collect_doc, collection);
	for (size_t it = 0; hf_map_next(folder->gone, &it, &name, &doc);)
		collect_doc(is_in_store(folder, name) ? replaced : collection, doc);
}

/* Saves the objects of the run. On an error the previously saved objects stay, and the run goes
 * on. over: the run has ended. */
static void save_objects(struct hf_run_folder *folder, bool over)
{
	const struct hf_resource *const resources[] = {folder->resource, &hf_services, &hf_events,
						       &hf_nodes};
	/* The pods of a map are at most GONE_MAX, so `made` takes all. */
	struct collection made = {.docs = HF_VEC_INIT(OBJECTS_MAX)};
	struct collection collection = {.docs = HF_VEC_INIT(OBJECTS_MAX)};
	struct collection replaced = {.docs = HF_VEC_INIT(OBJECTS_MAX)};
	struct hf_error err;

	if (folder->memstore == NULL)
		return;
	for (size_t i = 0; i < HF_ARRAY_LEN(resources); i++)
		hf_memstore_each(folder->memstore, resources[i], NULL, collect_doc, &collection);
	if (over)
		collect_last_pods(folder, &collection, &replaced, &made);
	else
		collect_pods(folder, &collection, &replaced);
	(void)!hf_kept_run_save_objects(folder->run.path, HF_KEPT_OBJECTS, collection.docs.items,
					collection.docs.len, &err);
	if (replaced.docs.len > 0)
		(void)!hf_kept_run_save_objects(folder->run.path, HF_KEPT_REPLACED,
						replaced.docs.items, replaced.docs.len, &err);
	for (size_t i = 0; i < made.docs.len; i++)
		hf_doc_unref(made.docs.items[i]);
	HF_VEC_RELEASE(&made.docs);
	HF_VEC_RELEASE(&collection.docs);
	HF_VEC_RELEASE(&replaced.docs);
}

static void take_state(struct hf_run_folder *folder, struct hf_doc *job, hf_time now)
{
	HF_AUTO_STRBUF cause = HF_STRBUF_INIT(1024);
	struct hf_job_facts facts;
	struct hf_job_delay delay;

	if (job == NULL)
		return;
	hf_job_facts_read(hf_doc_json(job), &facts);
	free(folder->run.state);
	folder->run.state = hf_xstrdup(facts.state);
	folder->run.restarts = hf_job_restarts(&facts);
	/* The job's facts count a restart that still waits for the end of its delay. */
	if (hf_job_delay_read(hf_doc_json(job), now, &delay) && folder->run.restarts > 0)
		folder->run.restarts--;
	if (!hf_streq(facts.state, "Failed"))
		return;
	hf_failure_cause(hf_doc_json(job), &cause);
	free(folder->run.cause);
	folder->run.cause = hf_strbuf_detach(&cause);
}

void hf_run_folder_save(struct hf_run_folder *folder, struct hf_doc *job, hf_time now)
{
	struct hf_error err;

	folder->changed = false;
	folder->saved_at = now;
	if (!folder->kept)
		return;
	take_state(folder, job, now);
	save_objects(folder, false);
	(void)!hf_kept_run_save(&folder->run, &err);
}

void hf_run_folder_tick(struct hf_run_folder *folder, struct hf_doc *job, hf_time now)
{
	hf_time half = (folder->saved_at - folder->opened_at) / 2;
	hf_time span = half < SAVE_SPAN_MAX ? half : SAVE_SPAN_MAX;
	bool due = now - folder->saved_at >= span || now < folder->saved_at;

	if (folder->changed && due)
		hf_run_folder_save(folder, job, now);
}

void hf_run_folder_note(struct hf_run_folder *folder, const char *text)
{
	char *notes = hf_xasprintf("%s%s\n", hf_str_or(folder->run.notes, ""), text);

	free(folder->run.notes);
	folder->run.notes = notes;
	folder->changed = true;
}

void hf_run_folder_set_exception(struct hf_run_folder *folder, const char *rank,
				 const char *exception)
{
	char text[HF_STATUS_MESSAGE_MAX + 1];

	hf_status_message_write(exception, text);
	free(folder->exception);
	folder->exception = hf_xstrdup(text);
	free(folder->exception_note);
	folder->exception_note = hf_xasprintf("the exception of %s: %s", rank, text);
}

void hf_run_folder_set_cause(struct hf_run_folder *folder, const char *cause)
{
	free(folder->refused_cause);
	folder->refused_cause = hf_xstrdup(cause);
	free(folder->end_state);
	folder->end_state = hf_xstrdup("Failed");
}

void hf_run_folder_set_end(struct hf_run_folder *folder, const char *state, const char *end)
{
	free(folder->end_state);
	folder->end_state = hf_xstrdup(state);
	free(folder->run.end);
	folder->run.end = hf_xstrdup(end);
}

void hf_run_folder_finish(struct hf_run_folder *folder, struct hf_doc *job, int exit_code,
			  hf_time now)
{
	struct hf_error err;

	folder->run.ended = now;
	folder->run.exit_code = exit_code;
	take_state(folder, job, now);
	if (folder->refused_cause != NULL) {
		HF_AUTOFREE char *note = hf_xasprintf("the run failed with code %d: %s", exit_code,
						      folder->refused_cause);

		hf_run_folder_note(folder, note);
		free(folder->run.cause);
		folder->run.cause = hf_steal(&folder->refused_cause);
	}
	if (folder->exception_note != NULL)
		hf_run_folder_note(folder, folder->exception_note);
	if (folder->exception != NULL && !hf_str_is_empty(folder->run.cause)) {
		char *cause = hf_xasprintf("%s: %s", folder->run.cause, folder->exception);

		free(folder->run.cause);
		folder->run.cause = cause;
	}
	if (folder->end_state != NULL) {
		free(folder->run.state);
		folder->run.state = hf_steal(&folder->end_state);
	}
	/* The operator writes its last Events while it stops, so the objects are saved again. */
	if (folder->kept)
		save_objects(folder, true);
	folder->memstore = NULL;
	if (folder->kept && hf_kept_run_save(&folder->run, &err) != 0)
		folder->lost = err;
}

/* ---- what a failure report needs ------------------------------------------------------------ */

static struct hf_doc *find_pod(const struct hf_run_folder *folder, const char *pod)
{
	struct hf_doc *doc = folder->memstore == NULL ? NULL
						      : hf_memstore_peek(folder->memstore, &hf_pods,
									 folder->run.ns, pod);

	return doc != NULL ? doc : hf_map_get(folder->gone, pod);
}

/* Finds the log of one pod. Returns its path after the end of the run, which moves the log out of the
 * kubelet's folder; NULL: there is none. */
static char *find_log(const struct hf_run_folder *folder, struct hf_doc *doc, const char *container,
		      bool previous, struct hf_kubelet_log_extent *ret_extent)
{
	HF_AUTOFREE char *dir = hf_kept_run_logs_dir(folder->run.path, hf_doc_uid(doc));
	HF_AUTOFREE char *file = hf_kubelet_kept_log(dir, hf_doc_json(doc), container, previous);

	if (file == NULL)
		return NULL;
	hf_kubelet_log_extent(file, ret_extent);
	return hf_xasprintf("%s/%s/%s", folder->logs, hf_doc_uid(doc), strrchr(file, '/') + 1);
}

void hf_run_folder_find_log(const struct hf_run_folder *folder, const char *pod,
			    const char *container, struct hf_run_log *ret_log)
{
	const char *name = hf_str_or(container, folder->container);
	struct hf_doc *doc = find_pod(folder, pod);
	struct hf_doc *replaced = hf_map_get(folder->gone, pod);
	struct hf_kubelet_log_extent extent = {.parts = 0}, ignored;

	*ret_log = (struct hf_run_log){.path = NULL};
	if (!folder->kept || doc == NULL)
		return;
	ret_log->path = find_log(folder, doc, name, false, &extent);
	ret_log->older = extent.parts > 0 ? extent.parts - 1 : 0;
	ret_log->dropped = extent.dropped;
	/* The start before was in the same pod, or in the pod that this one replaced. */
	ret_log->before = find_log(folder, doc, name, true, &ignored);
	if (ret_log->before == NULL && replaced != NULL && replaced != doc)
		ret_log->before = find_log(folder, replaced, name, false, &ignored);
}

char *hf_run_folder_failed_init(const struct hf_run_folder *folder, const char *pod, int *ret_code)
{
	struct hf_doc *doc = find_pod(folder, pod);
	const struct hf_json *list = doc != NULL ? hf_json_path(hf_doc_json(doc), "status",
								"initContainerStatuses", NULL)
						 : NULL;

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *status = hf_json_item(list, i);
		int64_t code = hf_json_i64(
			hf_json_path(status, "state", "terminated", "exitCode", NULL), 0);

		if (code <= 0 || code > 255)
			continue;
		*ret_code = (int)code;
		return hf_xstrdup(hf_json_path_str(status, "name", NULL));
	}
	return NULL;
}

void hf_run_folder_read_log(const struct hf_run_folder *folder, const char *pod,
			    const char *container, struct hf_strbuf *sb)
{
	struct hf_doc *doc = find_pod(folder, pod);
	HF_AUTOFREE char *dir =
		doc != NULL ? hf_kept_run_logs_dir(folder->run.path, hf_doc_uid(doc)) : NULL;
	HF_AUTOFREE char *file =
		doc != NULL ? hf_kubelet_kept_log(dir, hf_doc_json(doc), container, false) : NULL;

	if (file != NULL)
		hf_kubelet_log_tail(file, sb);
}

char *hf_run_folder_word(const struct hf_run_folder *folder, bool with_server)
{
	HF_AUTO_KEPT_RUNS runs = {.n = 0};

	if (!folder->kept)
		return NULL;
	/* Make room for this run now: later, the numbers of the runs would change. */
	hf_kept_runs_prune(folder->base, HF_KEPT_RUNS_MAX - 1, HF_KEPT_RUNS_BYTES_MAX);
	hf_kept_runs_list(folder->base, &runs);
	for (size_t i = 0; i < runs.n; i++)
		if (hf_streq(runs.items[i].id, folder->run.id))
			return i == 0 && !with_server ? hf_xstrdup("@latest")
						      : hf_xasprintf("@%zu", i + 1);
	return NULL;
}

struct hf_json *hf_run_folder_torch_error(const struct hf_run_folder *folder, const char *pod)
{
	HF_AUTOFREE char *file = hf_xasprintf("%s.json", pod);
	struct hf_json *json = NULL;
	struct hf_error err;

	return hf_kept_run_read(folder->errors, file, ERROR_BYTES_MAX, &json, &err) == 0 ? json
											 : NULL;
}

/* ---- close --------------------------------------------------------------------------------- */

struct hf_run_folder *hf_run_folder_close(struct hf_run_folder *folder, const struct hf_cli *cli)
{
	struct hf_error err;
	int rc;

	if (folder == NULL)
		return NULL;
	/* A run without an end has failed before the job began, so its folder has nothing to
	 * keep. A folder that was removed was reported when that was noticed. */
	if (hf_run_folder_is_gone(folder))
		rc = folder->lost.code = 0;
	else if (folder->kept && folder->run.ended != HF_TIME_NONE)
		rc = hf_kept_run_settle(folder->run.path, &err);
	else
		rc = hf_fs_remove_tree(folder->run.path, &err);
	if (rc != 0)
		fprintf(cli->err, "holdfast: %s\n", err.text);
	if (folder->lost.code != 0)
		fprintf(cli->err, "holdfast: the end of this run is not kept: %s\n",
			folder->lost.text);
	hf_kept_runs_prune(folder->base, folder->kept ? HF_KEPT_RUNS_MAX : 0,
			   HF_KEPT_RUNS_BYTES_MAX);
	free_folder(folder);
	return NULL;
}
