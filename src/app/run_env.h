/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_RUN_ENV_H
#define HF_APP_RUN_ENV_H

#include "cli/cli.h"

/*
 * The variables that `run` passes to the ranks, from its flags and its own environment.  Their values do
 * not appear in the job, so they are not stored.
 */
struct hf_run_env {
	char **given; /* "NAME=value" of --env and --env-file: they replace variables of the
			* manifest; ends with NULL */
	size_t n_given;
	/* all variables for the ranks (given ones and passed ones), each name once; ends with
	 * NULL */
	char **all;
	size_t n_all;
	size_t n_passed; /* of the shell */
};

#define HF_RUN_ENV_MAX 2000                         /* variables */
#define HF_RUN_ENV_FILE_BYTES_MAX ((size_t)1 << 20) /* of --env-file */

/* Read --env, --env-file and --pass-env. whole: pass every variable of the shell, even without
 * --pass-env. environ ends with NULL. Returns 0, or an exit code after a message. */
int hf_run_env_read(struct hf_cli *cli, bool whole, char *const *environ,
		    struct hf_run_env *ret_env);
void hf_run_env_release(struct hf_run_env *env);
/* True if the environment has this variable. */
bool hf_run_env_has(const struct hf_run_env *env, const char *name);
void hf_run_env_add(struct hf_run_env *env, const char *name, const char *value);

#endif
