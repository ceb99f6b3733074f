/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_RUN_VIEW_H
#define HF_APP_RUN_VIEW_H

#include "app/progress.h"
#include "operator/operator.h"

/*
 * Brings together what `run` shows of the ranks and what it keeps: the progress on the screen, the
 * pattern of --step-regex, and the steps that are saved for `plot`.
 */
struct hf_run_view;

/* Read --progress and --step-regex. Returns 0, or an exit code after a message. */
int hf_run_view_create(const struct hf_cli *cli, struct hf_run_view **ret_view);
struct hf_run_view *hf_run_view_destroy(struct hf_run_view *view); /* NULL is fine */

struct hf_run_view_options {
	const char *job;
	const char *ranks;  /* of hf_progress_options */
	bool keyboard;      /* keys are read */
	const char *folder; /* of the run */
};
/* Begin to show the progress, which belongs to the view. */
struct hf_progress *hf_run_view_open(struct hf_run_view *view,
				     const struct hf_run_view_options *options);
/* Save the steps to the folder, if they have changed and the last save is some seconds old;
 * `now_or_never`: save at once. An error loses the saved steps, but does not stop the run. */
void hf_run_view_save(struct hf_run_view *view, hf_time now, bool now_or_never);

/* Print why the job is in its state, with the reasons and their times. */
void hf_run_view_why(struct hf_run_view *view, struct hf_operator *op, const struct hf_job_ref *job,
		     hf_time now);
/* Print the last messages of the run: a time-out, lost output. A failure of the job has been reported
 * before. */
void hf_run_view_end(const struct hf_cli *cli, bool timed_out);

#endif
