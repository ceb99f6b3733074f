/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_RUN_INPUT_H
#define HF_APP_RUN_INPUT_H

#include "app/run_env.h"
#include "cli/job_manifest.h"
#include "kubelet/kubelet.h"

/* The input of `run`: one job, the objects beside it, and the variables for the ranks. */
struct hf_run_input {
	bool script; /* true: the job was made from a program; false: it was read from a manifest */
	bool print;  /* --print-job: the manifest is printed, and nothing runs */
	struct hf_manifest manifest;
	/* objects of the manifest that are created before the job */
	struct hf_manifest_objects objects;
	/* lines to print at the start: each change that --fit made to the job, and notes; may be
	 * NULL */
	char *fitted;
	/* a line about objects of kinds that `run` cannot create; NULL: no such objects */
	char *not_created;
	struct hf_run_env env;
	bool host_network;  /* --network host */
	bool told_replaced; /* hf_run_input_replaced has seen a pod */
};

/* Read the command line and its files.  Returns 0, or an exit code after a message. */
int hf_run_input_load(struct hf_cli *cli, struct hf_run_input *ret_input);
/* Parse the list of --ranks, numbers or names, into names. Returns 0, or an exit code after a message. */
int hf_run_input_ranks(const struct hf_cli *cli, const struct hf_run_input *input, const char *list,
		       char **ret_ranks);
void hf_run_input_release(struct hf_run_input *input);

/* Describe a problem that keeps the job from ever running here, although a server would accept the job.  NULL: the
 * job has no such problem.  The caller frees the text. */
char *hf_run_input_problem(const struct hf_run_input *input);

/* Add an object for each namespace that the objects use, in front of them. Objects without a
 * namespace get the namespace of the job. */
void hf_run_input_add_namespaces(struct hf_run_input *input, const char *ns);

/* Change the pod templates for this machine (app/run_template.h). errors: the folder of the files
 * for TORCHELASTIC_ERROR_FILE. */
void hf_run_input_place(struct hf_run_input *input, const char *errors);
/* Let the pods use this machine's network for --network host, and for a program that would reach no other
 * network. The job of a program gets a free port then, so that two runs do not use one. kubelet: it is
 * ready. Returns a line that says so, or NULL: the pods get networks of their own. The
 * caller frees the line. */
char *hf_run_input_share_network(const struct hf_kubelet *kubelet, struct hf_run_input *input);
/* At the first call, with a pod of the job: return a line about variables of --env and --env-file that the
 * operator replaces in the pod. NULL: it replaces none, or a pod was seen before. The caller frees the
 * text. */
char *hf_run_input_replaced(struct hf_run_input *input, const struct hf_json *pod);
/* Write one line about the working folder and the variables that the ranks get from the shell. */
void hf_run_input_describe(const struct hf_run_input *input, struct hf_strbuf *sb);

#endif
