/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_LOGS_INTERNAL_H
#define HF_CLI_LOGS_INTERNAL_H

#include "cli/lines.h"
#include "cli/request.h"

HF_BEGIN_DECLS

#define HF_LOGS_PODS_MAX 128 /* streams of one verb */

/* What `logs` was asked for. */
struct hf_logs {
	struct hf_cli *cli;
	struct hf_doc *job;
	const struct hf_resource *resource; /* of the job */
	struct hf_log_options options;
	bool all;                     /* every pod of the job, now and later */
	char *pods[HF_LOGS_PODS_MAX]; /* else these */
	size_t n_pods;
	bool prefix;
};

/* The lines of that pod: with --prefix or several they begin with the replica. */
void hf_logs_lines_init(const struct hf_logs *logs, struct hf_cli_lines *lines, const char *pod);

/* `-f`: until the job has ended.  pods: those there are.  Returns the exit code. */
int hf_logs_follow(const struct hf_logs *logs, const struct hf_cli_reply *pods);
/* Prints the present logs of hf_logs.pods.  pods: all pods of the job. */
int hf_logs_print(const struct hf_logs *logs, const struct hf_cli_reply *pods);
/* The status of the wanted container, also of an init container; NULL: none yet. */
const struct hf_json *hf_logs_container(const struct hf_logs *logs, const struct hf_json *pod);
/* On stderr, why the wanted container of that pod never started; false: it did. */
bool hf_logs_tell_failed_start(const struct hf_logs *logs, struct hf_doc *pod);
/* "JOB has no pods: it is STATE", code 1. */
int hf_logs_no_pods(const struct hf_logs *logs, const struct hf_json *job);

HF_END_DECLS

#endif
