/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_RUN_REPORT_H
#define HF_APP_RUN_REPORT_H

#include "app/log_tail.h"
#include "app/run_folder.h"
#include "cli/cli.h"

/* What `run` prints on stderr when a job has failed or when the run was ended. */
struct hf_run_report {
	const struct hf_cli *cli;
	struct hf_run_folder *folder;
	struct hf_log_tails *tails;
	struct hf_doc *job; /* the last version */
	bool script;        /* the job is a program */
	bool many;          /* more than one pod has run */
};

/*
 * Print why the job failed. Call this before the pods are ended: to end them may take a while.
 *
 * pod: the pod of the rank that failed, or NULL. late: as in struct hf_failure. Returns the exit code of the run:
 * exit_code, or that of an init container, if one failed.
 */
int hf_run_report_failure(const struct hf_run_report *report, int exit_code, const char *pod,
			  const struct hf_json *late);
/* Print how to read the logs of a run that was ended. Nothing if they are not kept. */
void hf_run_report_logs(const struct hf_cli *cli, const struct hf_run_folder *folder);

#endif
