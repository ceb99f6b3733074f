/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_LOGS_INTERNAL_H
#define HF_CLI_LOGS_INTERNAL_H

#include "cli/log_writer.h"
#include "cli/request.h"

HF_BEGIN_DECLS

#define HF_LOGS_PODS_MAX 128 /* limit of the log streams that one command opens */

/* The command line of `logs`. */
struct hf_logs {
	struct hf_cli *cli;
	struct hf_doc *job;
	const struct hf_resource *resource; /* of the job */
	struct hf_log_options options;
	bool all; /* --rank all: print every pod of the job, also pods that are created later */
	char *pods[HF_LOGS_PODS_MAX]; /* the selected pods */
	size_t n_pods;
	bool prefix;
};

/* Prepare the output of one pod's lines.  If logs->prefix is set, each line begins with the replica. */
void hf_logs_lines_init(const struct hf_logs *logs, struct hf_log_writer *lines, const char *pod);

/* `-f`: print the logs until the job has ended.  pods: the present pods of the job.  Returns the exit
 * code. */
int hf_logs_follow(const struct hf_logs *logs, const struct hf_cli_reply *pods);
/* Print the present logs of hf_logs.pods.  pods: all pods of the job.  Returns the exit code. */
int hf_logs_print(const struct hf_logs *logs, const struct hf_cli_reply *pods);
/* Find the status of the container that --container selects; it may be an init container. NULL:
 * the pod has no status for it yet. */
const struct hf_json *hf_logs_container(const struct hf_logs *logs, const struct hf_json *pod);
/* Print on stderr why the selected container of the pod never started. False: it did start, so
 * nothing is printed. */
bool hf_logs_tell_failed_start(const struct hf_logs *logs, struct hf_doc *pod);
/* Report on stderr that the job has no pods.  Returns exit code 1. */
int hf_logs_no_pods(const struct hf_logs *logs, const struct hf_json *job);

HF_END_DECLS

#endif
