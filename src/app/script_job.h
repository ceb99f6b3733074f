/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_SCRIPT_JOB_H
#define HF_APP_SCRIPT_JOB_H

#include "cli/job_manifest.h"

/*
 * `run train.py`, `run --module pkg.train` and `run -- CMD`: makes the job that `run` would otherwise
 * read from a manifest.  It is a PyTorchJob with one pod for each rank: Master is rank 0, Worker I is rank
 * I + 1.
 */
#define HF_SCRIPT_IMAGE "registry.example/replace-me:latest" /* `run` pulls no image */
/* restarts without --max-restarts; only ranks that a signal killed are restarted */
#define HF_SCRIPT_RESTARTS 3

/* True if the word names a program to run; the words behind it are then the program's arguments.
 * literal: the word stands behind "--". */
bool hf_script_is_program(const struct hf_cli *cli, const char *word, bool literal);

/* Refuse a word that hf_script_is_program does not take for a program, and that is one: a script or a
 * binary without the right to execute it. Returns 0, or HF_EXIT_USAGE after a message. */
int hf_script_check_manifest(struct hf_cli *cli, const char *word);

/*
 * Make the job of the words and flags of `run`.  Each rank has a GPU of its own, if there are GPUs.  --nproc
 * takes torchrun's values: a number, "gpu" (a rank for each GPU), "cpu" (a rank for each CPU, and no GPUs),
 * or "auto" (gpu if there is one, else cpu).  Without it: a rank for each GPU, else one.
 *
 * ret_nproc: the number of ranks.  note: gets a line if --fit changed it.  Returns 0, or HF_EXIT_USAGE
 * after a message.
 */
int hf_script_job_make(struct hf_cli *cli, struct hf_manifest *ret_manifest, int64_t *ret_nproc,
		       struct hf_strbuf *note);
/* Print the manifest as YAML.  Returns an exit code. */
int hf_script_job_print(struct hf_cli *cli, const struct hf_manifest *manifest);

/* The flags of other launchers, for hf_cli_verb.foreign. */
extern const struct hf_cli_foreign hf_script_foreign_flags[];

#endif
