/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_TAIL_H
#define HF_CLI_TAIL_H

#include "cli/cli.h"

HF_BEGIN_DECLS

/*
 * The log of one pod's container on the output, through its restarts and through pods that
 * take the place of the first; each run of the container is printed once, from its beginning.
 * That it is not there (yet) is no error: it is looked for again and again.
 */
struct hf_cli_tail;

/* Texts are copied.  Begins at once. */
struct hf_cli_tail *hf_cli_tail_create(struct hf_cli *cli, const char *ns, const char *pod,
				       const char *container);
/* Print what is left, for some seconds at most, then call done, from the loop. */
void hf_cli_tail_finish(struct hf_cli_tail *tail, void (*done)(void *arg), void *arg);
struct hf_cli_tail *hf_cli_tail_destroy(struct hf_cli_tail *tail); /* NULL is fine */

HF_END_DECLS

#endif
