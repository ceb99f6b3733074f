/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_KEPT_RUNS_H
#define HF_APP_KEPT_RUNS_H

#include "base/error.h"
#include "base/time.h"
#include "json/doc.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * The folders of `holdfast run`, below the state directory:
 *
 *     runs/NAME-PID/run.json       what `holdfast runs` prints
 *     runs/NAME-PID/objects.json   the job, its pods, services and events, as the store had them
 *     runs/NAME-PID/replaced.json  of each rank, the pod before the last one
 *     runs/NAME-PID/steps.json     what the ranks reported (app/history.h)
 *     runs/NAME-PID/logs/UID/      the logs of a pod
 *     runs/NAME-PID/node/          the kubelet's files, while the run lasts
 *     runs/NAME-PID/lock           locked while the process of the run lives
 *     runs/NAME-PID/ended          no process of the run is left
 *     runs/.removed-NAME-PID/      a folder whose removal has begun
 *
 * The HF_KEPT_RUNS_MAX runs that ended last stay, up to HF_KEPT_RUNS_BYTES_MAX of disk.
 */
#define HF_KEPT_RUNS_MAX 20
#define HF_KEPT_RUNS_BYTES_MAX ((int64_t)512 << 20)
#define HF_KEPT_OBJECTS_BYTES_MAX ((size_t)64 << 20) /* of objects.json */

struct hf_kept_run {
	char *path;
	char *id; /* the folder's name, NAME-PID */
	char *name, *ns, *kind;
	/* the state of the job, such as "Succeeded"; "Killed" if the process ended before it wrote
	 * the end of the run */
	char *state;
	char *cause; /* why the run failed, in a phrase; "" if the run did not fail */
	/* what ended the run before the end of its job, such as "was interrupted by SIGTERM"; NULL or
	 * "": nothing */
	char *end;
	char *notes;            /* facts missing from the objects, one a line; NULL: none */
	hf_time started, ended; /* ended HF_TIME_NONE: not ended */
	/* when the folder was reduced to what is kept; HF_TIME_NONE: not yet */
	hf_time settled;
	int64_t restarts;
	int exit_code;
	bool alive; /* its process runs */
};

/* Free the strings of the run. */
void hf_kept_run_release(struct hf_kept_run *run);

struct hf_kept_runs {
	struct hf_kept_run *items; /* newest first */
	size_t n;
};

/* List the runs below base, newest first.  Folders that cannot be read are left out. */
void hf_kept_runs_list(const char *base, struct hf_kept_runs *ret_runs);
void hf_kept_runs_release(struct hf_kept_runs *runs);
#define HF_AUTO_KEPT_RUNS HF_CLEANUP(hf_kept_runs_release) struct hf_kept_runs

/*
 * Find the run that the user named: "@latest", "@2" (the one before), a folder's name NAME-PID, or the
 * newest of a job NAME or KIND/NAME.  NULL: there is none.
 */
const struct hf_kept_run *hf_kept_runs_find(const struct hf_kept_runs *runs, const char *word);
/* Call fn for each name of a kept run in the state directory: @1, @2, … and the names of the jobs.
 * For hf_cli.each_run. */
void hf_kept_runs_each(void (*fn)(void *arg, const char *name, const char *description), void *arg);
/* Set an error: no run has the name `word`. The text suggests the job with the nearest name.
 * Returns HF_E_NOT_FOUND. */
int hf_kept_runs_missing(const struct hf_kept_runs *runs, const char *word, struct hf_error *err);
/* True for "@1", "@2", …: only kept runs have such names. */
bool hf_kept_runs_is_number(const char *word);

/*
 * Write or read a file of a run's folder. The write replaces the file atomically, as
 * hf_fs_write_atomic does, but does not wait for the disk: `run` saves often, and the file needs
 * to survive only the end of the process.
 */
int hf_kept_run_write(const char *folder, const char *file, const struct hf_strbuf *text,
		      struct hf_error *err) HF_MUST_CHECK;
int hf_kept_run_read(const char *folder, const char *file, size_t bytes_max,
		     struct hf_json **ret_json, struct hf_error *err) HF_MUST_CHECK;

/* Write run.json, which `holdfast runs` reads. HF_E_NO_SPACE, HF_E_IO: the state directory is full
 * or cannot be written. */
int hf_kept_run_save(const struct hf_kept_run *run, struct hf_error *err) HF_MUST_CHECK;
/* Write the file HF_KEPT_OBJECTS or HF_KEPT_REPLACED into the folder of the run. */
#define HF_KEPT_OBJECTS "objects.json"
#define HF_KEPT_REPLACED "replaced.json"
int hf_kept_run_save_objects(const char *path, const char *file, struct hf_doc *const *objects,
			     size_t n, struct hf_error *err) HF_MUST_CHECK;
/* Read the objects of such a file into a JSON array; NULL and err on failure. */
struct hf_json *hf_kept_run_objects(const char *path, const char *file, struct hf_error *err);
/* The folder with the logs of a pod: logs/UID; while the run lasts, the kubelet's folder of the
 * pod. The caller frees the text. */
char *hf_kept_run_logs_dir(const char *path, const char *uid);

/* Reduce the folder of a run without processes to what is kept: moves the logs, removes the rest, and
 * marks the run as ended. */
int hf_kept_run_settle(const char *path, struct hf_error *err) HF_MUST_CHECK;
bool hf_kept_run_is_settled(const char *path);
/* Mark the run as alive while the descriptor is open.  The mark ends with the process. */
int hf_kept_run_lock(const char *path, int *ret_fd, struct hf_error *err) HF_MUST_CHECK;
/* The process ID at the end of a folder's name; 0: the name is not that of a run's folder. */
pid_t hf_kept_run_owner(const char *path);
/* True if the process of the run has not ended. */
bool hf_kept_run_is_alive(const char *path);

/* Remove the folder.  It gets another name first, so no other process sees a part of it.  Errors are
 * ignored: the next sweep (app/sweep_runs.h) tries again. */
#define HF_KEPT_REMOVED ".removed-"
void hf_kept_run_remove(const char *path);
/* Of the runs that have ended, remove those above the limits: the run that ended first goes first.  Errors are ignored: the next run tries again. */
void hf_kept_runs_prune(const char *base, size_t runs_max, int64_t bytes_max);

#endif
