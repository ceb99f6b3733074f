/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_RUN_INPUT_H
#define HF_APP_RUN_INPUT_H

#include "app/run_env.h"
#include "cli/job_manifest.h"

/* What `run` was asked to run: one job, the objects beside it, and the variables for the ranks. */
struct hf_run_input {
	bool script; /* the job was made of a program, not read from a manifest */
	bool print;  /* --print-job: the manifest is printed, and nothing runs */
	struct hf_manifest manifest;
	struct hf_manifest_objects objects; /* to be created before the job */
	char *fitted;      /* a line for each change that --fit made to the job; NULL: no --fit */
	char *not_created; /* a line about objects of unknown kinds; NULL: none */
	struct hf_run_env env;
};

/* Read the command line and its files.  Returns 0, or an exit code after a message. */
int hf_run_input_load(struct hf_cli *cli, struct hf_run_input *ret_input);
void hf_run_input_release(struct hf_run_input *input);

/* Describe a problem that keeps the job from ever running here, although a server would accept the job.  NULL: the
 * job has no such problem.  The caller frees the text. */
char *hf_run_input_problem(const struct hf_run_input *input);

/* Add the namespaces of all objects in front of the objects.  Objects without a namespace get that of the job. */
void hf_run_input_add_namespaces(struct hf_run_input *input, const char *ns);

/* Change the pod templates for this machine (app/run_template.h).  errors: a folder. */
void hf_run_input_place(struct hf_run_input *input, const char *errors);
/* Write one line about the working folder and the variables that the ranks get from the shell. */
void hf_run_input_describe(const struct hf_run_input *input, struct hf_strbuf *sb);

#endif
