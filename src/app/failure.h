/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_FAILURE_H
#define HF_APP_FAILURE_H

#include "base/strbuf.h"
#include "json/json.h"

#include <stdbool.h>

/*
 * The text that `run` prints when a job has failed: the cause, the end of the failed rank's log, what
 * Holdfast did about it, and the next command.  Pure.
 */
#define HF_FAILURE_LINES 20            /* of the log that are printed */
#define HF_FAILURE_LINE_BYTES_MAX 2000 /* of each of these lines */
#define HF_FAILURE_BYTES_MAX ((size_t)128 << 10)

struct hf_failure {
	const struct hf_json *job; /* its last version */
	/* The record of a rank that failed after the job had succeeded, with replica and exitCode; NULL:
	 * the ledger has the record. */
	const struct hf_json *late;
	int exit_code;   /* of `run` */
	const char *log; /* the end of the failed rank's log; NULL: it is empty */
	size_t log_len;
	const struct hf_json
		*torch;        /* the content of TORCHELASTIC_ERROR_FILE; NULL: none was written */
	const char *full_disk; /* the folder of the logs, if its disk is full; NULL: it has room */
	const char *log_path;  /* file of the whole log; NULL: it is not kept */
	const char *run;       /* "@latest": the run in the next command; NULL: it is not kept */
};

/* The pod of the rank that failed first; NULL: no rank did. */
const char *hf_failure_pod(const struct hf_json *job);
/* Write one sentence without a point: "master-0 exited with code 3".  If no rank failed, it is the message of the
 * condition Failed. */
void hf_failure_cause(const struct hf_json *job, struct hf_strbuf *sb);
/* The whole text, in lines.  It may have control characters, which came from the program. */
void hf_failure_write(const struct hf_failure *failure, struct hf_strbuf *sb);

/* The length of the program's own output, without what a launcher (torchrun, accelerate, DeepSpeed) prints
 * about the end of its processes.  It is len if the launcher printed nothing, or nothing else is there. */
size_t hf_failure_program_len(const char *log, size_t len);

#endif
