/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_FAILURE_H
#define HF_APP_FAILURE_H

#include "cli/cli.h"
#include "base/strbuf.h"
#include "json/json.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The text that `run` prints when a job has failed: the cause, the end of the failed rank's log, what
 * Holdfast did about it, and the next command.  Pure, except for hf_failure_print.
 */
#define HF_FAILURE_LINES 20 /* how many lines at the end of the log are printed */
/* bytes of each printed line; the rest of a longer line is left out */
#define HF_FAILURE_LINE_BYTES_MAX 2000
#define HF_FAILURE_BYTES_MAX ((size_t)128 << 10)

/* The files of a rank's log, with the paths that they have after the end of the run. */
struct hf_run_log {
	char *path;   /* the youngest part of the last log; NULL: no log, or the run is not kept */
	char *before; /* the same of the start before; NULL: there is none */
	int older;    /* further parts beside `path` */
	int64_t dropped; /* bytes of parts that are not kept */
};
void hf_run_log_release(struct hf_run_log *log);
#define HF_AUTO_RUN_LOG HF_CLEANUP(hf_run_log_release) struct hf_run_log

struct hf_failure {
	const struct hf_json *job; /* its last version */
	/* If a rank failed after the job had succeeded, the record of this failure, with the keys
	 * replica and exitCode. NULL: the failure is in the job's ledger. */
	const struct hf_json *late;
	bool script;   /* the job is a program, so --max-restarts is a flag for it */
	int exit_code; /* of `run` */
	/* the init container that failed, so that the rank never started; NULL: none */
	const char *init;
	/* the end of the log of `init`, or of the failed rank if `init` is NULL; NULL: the log is empty */
	const char *log;
	size_t log_len;
	const struct hf_json
		*torch; /* the content of TORCHELASTIC_ERROR_FILE; NULL: no worker wrote the file */
	/* the folder of the logs, if its disk is full; NULL: the disk has room */
	const char *full_disk;
	const struct hf_run_log *files; /* of the log; NULL: it is not kept */
	/* the folder with the logs of all ranks; NULL: the job has one rank */
	const char *log_dir;
	/* the name of the run in the printed next command, such as "@latest"; NULL: the run is not
	 * kept */
	const char *run;
};

/* Make the record of a rank's failure, as the job's ledger has it. end: the state `terminated` of the container. */
struct hf_json *hf_failure_record(const struct hf_json *end, const char *rank);
/* Make the record `late` of a pod that has failed, of the rank with this name. ret_cause: a phrase; the
 * caller frees it. */
struct hf_json *hf_failure_late(const struct hf_json *pod, const char *rank, char **ret_cause);

/* The name of the pod of the rank that failed first; NULL: no rank failed. */
const char *hf_failure_pod(const struct hf_json *job);
/* Write one sentence without a point: "master-0 exited with code 3".  If no rank failed, it is the message of the
 * condition Failed. */
void hf_failure_cause(const struct hf_json *job, struct hf_strbuf *sb);
/* Write the whole report, in lines. The text may have control characters that the program
 * printed. */
void hf_failure_write(const struct hf_failure *failure, struct hf_strbuf *sb);

/* Write why a rank waits for its next start: how it ended, and the end of its log. For a run that is stopped meanwhile.
 * late: the record of the rank. */
void hf_failure_write_waiting(const struct hf_failure *failure, struct hf_strbuf *sb);
/* The exception that ended the program: "KeyError: 'x'", from torchrun's record or from the tracebacks in the log; NULL:
 * none is known. The text may have control characters that the program printed. The caller frees it. */
char *hf_failure_exception(const struct hf_failure *failure);

/* The number of bytes before the lines in which a launcher (torchrun, accelerate, DeepSpeed)
 * reports the end of its processes: the program's own output. If the launcher printed nothing, or
 * the program printed nothing, the result is len. */
size_t hf_failure_program_len(const char *log, size_t len);

/* Return the exit code of the rank that failed first, from the job's ledger. */
int hf_failure_exit_code(const struct hf_json *job);
/* Print the text on stderr, without the control characters of programs. */
void hf_failure_print(const struct hf_cli *cli, const struct hf_strbuf *text);

#endif
