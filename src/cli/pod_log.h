/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_POD_LOG_H
#define HF_CLI_POD_LOG_H

#include "cli/cli.h"

HF_BEGIN_DECLS

/*
 * Prints the log of one pod's container to the output, through restarts of the container and through
 * recreated pods of the same name.  Each run is printed once, from its beginning.  A missing pod is no
 * error: the pod is read again every 500 ms.
 */
struct hf_pod_log;

/* Start to print the log, at once. The strings are copied. */
struct hf_pod_log *hf_pod_log_create(struct hf_cli *cli, const char *ns, const char *pod,
				     const char *container);
/* Print the rest of the log, for at most 2 seconds, then call done from the loop. */
void hf_pod_log_finish(struct hf_pod_log *tail, void (*done)(void *arg), void *arg);
struct hf_pod_log *hf_pod_log_destroy(struct hf_pod_log *tail); /* NULL is fine */

HF_END_DECLS

#endif
