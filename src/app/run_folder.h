/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_RUN_FOLDER_H
#define HF_APP_RUN_FOLDER_H

#include "app/failure.h"
#include "cli/cli.h"
#include "cli/job_manifest.h"
#include "json/doc.h"
#include "memstore/memstore.h"

/*
 * The folder of one `holdfast run` (app/kept_runs.h), while it runs: saves the state of the run at most
 * once a second (more often in its first two seconds), keeps the logs of deleted pods, and tidies up at the end.
 *
 * If the state directory is full or cannot be written, the run uses a folder in /tmp, which is removed at
 * the end: the run is not kept.
 */
struct hf_run_folder;

/* Options of hf_run_folder_open, which first ends the pods that killed runs left. If the state
 * directory cannot be used, a line on stderr says so, and /tmp is used. HF_E_IO, HF_E_NO_SPACE:
 * /tmp cannot be used either. */
struct hf_run_folder_options {
	const char *base; /* the state directory */
	const struct hf_manifest *manifest;
	const char *ns; /* of the job */
	hf_time now;
};
int hf_run_folder_open(const struct hf_cli *cli, const struct hf_run_folder_options *options,
		       struct hf_run_folder **ret_folder, struct hf_error *err) HF_MUST_CHECK;
/* From now on, read the objects that are saved from this store. The store must live until
 * hf_run_folder_finish. */
void hf_run_folder_attach(struct hf_run_folder *folder, struct hf_memstore *memstore);

const char *hf_run_folder_path(const struct hf_run_folder *folder);
/* True if the disk has too little room for further log output. */
bool hf_run_folder_is_full(const struct hf_run_folder *folder);
/* True if the folder was removed, by another process, while the run lasts. */
bool hf_run_folder_is_gone(const struct hf_run_folder *folder);
/* The folder for logs of deleted pods. */
const char *hf_run_folder_logs(const struct hf_run_folder *folder);
/* The folder of the files POD.json, in which torchrun's workers record exceptions
 * (TORCHELASTIC_ERROR_FILE). */
const char *hf_run_folder_errors(const struct hf_run_folder *folder);

/* Pass every version of every pod. */
void hf_run_folder_pod(struct hf_run_folder *folder, struct hf_doc *pod, bool gone);
/* Note that an object has changed, so that the next tick that is due saves the objects. */
void hf_run_folder_changed(struct hf_run_folder *folder);
/* Save what has changed, if the last save is long enough ago. */
void hf_run_folder_tick(struct hf_run_folder *folder, struct hf_doc *job, hf_time now);
/* Save now.  job may be NULL. */
void hf_run_folder_save(struct hf_run_folder *folder, struct hf_doc *job, hf_time now);
/* Note a fact about the run that its objects do not have. `why` and `describe` show it. */
void hf_run_folder_note(struct hf_run_folder *folder, const char *text);
/* Note the exception that ended the rank with this name. */
void hf_run_folder_set_exception(struct hf_run_folder *folder, const char *rank,
				 const char *exception);
/* Note why the run has failed, if the job itself has not. The end of the run is saved with it. */
void hf_run_folder_set_cause(struct hf_run_folder *folder, const char *cause);
/* Note what ended the run before the end of its job: a phrase such as "was interrupted by SIGTERM". state: the
 * state of the run in `holdfast runs`. */
void hf_run_folder_set_end(struct hf_run_folder *folder, const char *state, const char *end);
/* Save the end of the run, with its exit code. The store is not used afterwards. */
void hf_run_folder_finish(struct hf_run_folder *folder, struct hf_doc *job, int exit_code,
			  hf_time now);

/* Return the name of the init container with which the pod failed; NULL: none. The caller frees the text.
 * ret_code: its exit code. */
char *hf_run_folder_failed_init(const struct hf_run_folder *folder, const char *pod, int *ret_code);
/* Find the log of a container of the pod; container NULL: the job's. */
void hf_run_folder_find_log(const struct hf_run_folder *folder, const char *pod,
			    const char *container, struct hf_run_log *ret_log);
/* Append the end of a container's log. */
void hf_run_folder_read_log(const struct hf_run_folder *folder, const char *pod,
			    const char *container, struct hf_strbuf *sb);
/* The name of this run for other verbs: "@latest", or "@2" if a newer run exists. with_server: a
 * server is in use, where "@latest" would name a job. NULL: the run is not kept. The caller frees
 * the text. */
char *hf_run_folder_word(const struct hf_run_folder *folder, bool with_server);
/* The error that a process of the pod recorded for torchrun; NULL: none. */
struct hf_json *hf_run_folder_torch_error(const struct hf_run_folder *folder, const char *pod);

/* Close the folder at the end of `run`, after its pods have ended: keep it or remove it. Returns
 * NULL. */
struct hf_run_folder *hf_run_folder_close(struct hf_run_folder *folder, const struct hf_cli *cli);

#endif
