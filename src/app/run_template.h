/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_RUN_TEMPLATE_H
#define HF_APP_RUN_TEMPLATE_H

#include "cli/job_manifest.h"

/*
 * Changes that `run` makes to the pod templates of a job before it creates it.  Of these changes, the
 * manifest that --print-job prints has the variables of --env and --env-file alone.
 */
struct hf_run_template {
	/* working folder for containers without a workingDir; NULL: leave workingDir unset */
	const char *cwd;
	/* The folder of the files POD.json. For ranks without TORCHELASTIC_ERROR_FILE in the
	 * manifest, the variable names a file of the folder. NULL: do not set the variable. */
	const char *errors;
	/* Remove these variables ("NAME=value") from the templates: the command line sets them.
	 * NULL-terminated; may be NULL. */
	const char *const *env;
	/* the pods use this machine's network */
	bool host_network;
	/* number of the kind's port (such as pytorchjob-port) in each template; 0: leave it */
	int port;
	bool add_env; /* and add them to every container, for --print-job */
};

void hf_run_template_apply(const struct hf_run_template *change, struct hf_manifest *manifest);

#endif
