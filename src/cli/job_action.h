/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_JOB_ACTION_H
#define HF_CLI_JOB_ACTION_H

#include "cli/job_patch.h"
#include "cli/request.h"

HF_BEGIN_DECLS

/* The common part of suspend, resume, restart and delete: finding the jobs, patching them, and
 * recording --reason. */

#define HF_JOB_ACTION_FLAG_DRY_RUN                                                                 \
	{                                                                                          \
		"dry-run", 0, "WHERE",                                                             \
			"server: the server checks the request and changes nothing; none: off",    \
			NULL                                                                       \
	}
#define HF_JOB_ACTION_FLAG_REASON                                                                  \
	{                                                                                          \
		"reason", 0, "TEXT", "your reason, recorded as an event of the job", NULL          \
	}

struct hf_job_action {
	/* Makes the merge patch for the job, from its present version. Returns an error if the job
	 * does not allow the action. Leaves *ret_patch NULL if the job is already as wanted. */
	int (*prepare)(struct hf_cli *cli, const struct hf_framework *framework, struct hf_doc *job,
		       struct hf_json **ret_patch, struct hf_error *err);
	/* Appends what the action does to the job's ranks to the printed line. May be NULL. */
	void (*describe)(const struct hf_cli *cli, const struct hf_framework *framework,
			 struct hf_doc *job, struct hf_strbuf *line);
	const char *event_reason; /* reason of the Event in which --reason is recorded */
	const char *done;         /* "pytorchjob/ddp <done>" is printed */
	const char *already; /* text to print in place of `done` if the job is already as wanted */
};

/* Acts on one job of the command line. word: the job as the user wrote it, such as
 * "pytorchjob/ddp". Returns an exit code. */
typedef int (*hf_cli_job_fn)(struct hf_cli *cli, const char *word, bool dry_run, const void *arg);
/* Call act for each job named on the command line.  Returns the exit code of the first job that
 * failed; the other jobs are still acted on.  HF_EXIT_USAGE: --dry-run has a wrong value. */
int hf_cli_each_job(struct hf_cli *cli, hf_cli_job_fn act, const void *arg);
/* Perform the action on each job named on the command line. Returns the exit code of the first job
 * that failed. */
int hf_job_action_run_all(struct hf_cli *cli, const struct hf_job_action *act);

/* Record --reason as an event of the job.  Does nothing if the flag is absent. */
int hf_job_record_reason(struct hf_cli *cli, struct hf_doc *job, const char *event_reason,
			 struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
