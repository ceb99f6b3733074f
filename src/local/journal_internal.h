/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_JOURNAL_INTERNAL_H
#define HF_LOCAL_JOURNAL_INTERNAL_H

#include "base/error.h"
#include "base/strbuf.h"
#include "base/time.h"
#include "loop/process.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What happened to the containers of one pod, written by its shim alone, read by the
 * kubelet: the one source of truth about starts and exits.
 *
 * A record is one line, "<crc32> <sequence> <time> <type> key=value …"; the checksum
 * covers all behind it.  A record is in the file before anybody is told.  A torn last
 * line (its writer was killed) is no record; damage anywhere else is an error.
 *
 * Readers fold the whole file each time: it is a few lines long, because only the last
 * two attempts of a container matter and the writer rewrites it (rename) when it has
 * grown past HF_JOURNAL_COMPACT_BYTES.
 */
#define HF_JOURNAL_FILE "journal"
#define HF_JOURNAL_COMPACT_BYTES ((size_t)128 << 10)
#define HF_JOURNAL_BYTES_MAX ((size_t)1 << 20) /* a reader refuses more */
/* Reserved on disk when the journal is made, so that exits can be written on a full disk. */
#define HF_JOURNAL_RESERVE_BYTES ((size_t)64 << 10)

#define HF_POD_CONTAINERS_MAX 64 /* of one pod, init containers included */
#define HF_CONTAINER_NAME_MAX 64 /* a DNS label and its NUL */
#define HF_JOURNAL_TEXT_MAX 512

enum hf_journal_type {
	HF_JOURNAL_SHIM,  /* first record: who the shim is */
	HF_JOURNAL_BEGIN, /* a container is about to be started */
	HF_JOURNAL_START, /* its program runs */
	HF_JOURNAL_FAIL,  /* it could not be started; text says why */
	HF_JOURNAL_EXIT,  /* it ended, and so did every process of it */
	HF_JOURNAL_STOP,  /* the pod is being ended, from outside, before any signal is sent */
	HF_JOURNAL_QUIT,  /* orderly end of the shim: nothing of the pod runs any more */
};

/* What a STOP is for.  Ends for other reasons are told by the pod's document. */
enum hf_journal_stop { HF_STOPPED_NOT, HF_STOPPED_BY_DRAIN, HF_STOPPED_BY_DEADLINE };

struct hf_journal_record {
	enum hf_journal_type type;
	hf_time at;                            /* wall clock */
	struct hf_process_id shim;             /* SHIM */
	char container[HF_CONTAINER_NAME_MAX]; /* BEGIN to EXIT */
	unsigned attempt;                      /* from 0 */
	unsigned backoff_s;                    /* BEGIN: back-off in force before this attempt */
	pid_t pid;                             /* START: of the container's first process */
	int code, signum;                      /* EXIT: signum 0 unless a signal ended it */
	bool oom;                              /* EXIT: the kernel killed for lack of memory */
	char text[HF_JOURNAL_TEXT_MAX];        /* FAIL */
	enum hf_journal_stop stop;             /* STOP */
	unsigned ran;                          /* STOP: attempts that ran at that moment */
};

enum hf_attempt_state {
	HF_ATTEMPT_NONE,
	HF_ATTEMPT_BEGUN,
	HF_ATTEMPT_RUNNING,
	HF_ATTEMPT_FAILED, /* never ran; counts as an exit with code 128 */
	HF_ATTEMPT_EXITED,
};

struct hf_attempt {
	enum hf_attempt_state state;
	unsigned number;
	unsigned backoff_s;
	hf_time begun, started, finished; /* HF_TIME_NONE: not yet */
	pid_t pid;
	int code, signum;
	bool oom;
	char text[HF_JOURNAL_TEXT_MAX];
};

struct hf_container_past {
	char name[HF_CONTAINER_NAME_MAX];
	struct hf_attempt last, previous; /* state NONE: there is none */
};

/* A fold over the records. */
struct hf_pod_past {
	struct hf_process_id shim; /* pid 0: no record yet */
	bool quit;
	enum hf_journal_stop stop; /* of the first STOP */
	unsigned ran_at_stop;
	hf_time stopped;
	uint64_t n_records;
	size_t n_containers; /* in order of their first BEGIN */
	struct hf_container_past containers[HF_POD_CONTAINERS_MAX];
};

void hf_pod_past_init(struct hf_pod_past *past);
/* HF_E_INVALID: a record that cannot follow those before it. */
int hf_pod_past_fold(struct hf_pod_past *past, const struct hf_journal_record *record,
		     struct hf_error *err) HF_MUST_CHECK;
/* NULL: never begun. */
const struct hf_container_past *hf_pod_past_find(const struct hf_pod_past *past, const char *name);
/* BEGUN or RUNNING attempts. */
size_t hf_pod_past_running(const struct hf_pod_past *past);

/* One line with its newline, and back.  sb should hold 2 kB. */
void hf_journal_format(const struct hf_journal_record *record, uint64_t sequence,
		       struct hf_strbuf *sb);
int hf_journal_parse(const char *line, size_t len, uint64_t *ret_sequence,
		     struct hf_journal_record *ret_record, struct hf_error *err) HF_MUST_CHECK;

/* Fold the journal in the folder dir_fd.  HF_E_NOT_FOUND: there is none. */
int hf_journal_read(int dir_fd, struct hf_pod_past *ret_past, struct hf_error *err) HF_MUST_CHECK;

/* --- the writer --- */
struct hf_journal {
	int dir_fd; /* borrowed */
	int fd;
	size_t bytes;
	uint64_t sequence;
	struct hf_pod_past past;
};

/* Makes a new, empty journal in place of any that is there. */
int hf_journal_create(struct hf_journal *journal, int dir_fd, struct hf_error *err) HF_MUST_CHECK;
void hf_journal_release(struct hf_journal *journal);
/* Appends, then fdatasync.  After a failure the file is as it was and the record may be tried
 * again; `past` has it only when this succeeded. */
int hf_journal_append(struct hf_journal *journal, const struct hf_journal_record *record,
		      struct hf_error *err) HF_MUST_CHECK;

#endif
