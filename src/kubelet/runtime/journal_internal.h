/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBELET_RUNTIME_JOURNAL_INTERNAL_H
#define HF_KUBELET_RUNTIME_JOURNAL_INTERNAL_H

#include "base/error.h"
#include "base/strbuf.h"
#include "base/time.h"
#include "loop/process.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The journal of a pod: which containers started and how they ended. Only the pod's shim writes it;
 * the kubelet reads it. No other source tells of starts and exits.
 *
 * A record is a line: "<crc32> <sequence> <time> <type> key=value …". The checksum covers
 * everything after it. The shim writes a record before it tells any client. A torn last line means
 * that the writer was killed; a reader ignores it. Damage elsewhere is an error.
 *
 * A reader folds the whole file each time. The file is short: only the last two attempts of a
 * container matter, and the writer rewrites it (with a rename) when it has grown past
 * HF_JOURNAL_COMPACT_BYTES.
 */
#define HF_JOURNAL_FILE "journal"
#define HF_JOURNAL_COMPACT_BYTES ((size_t)128 << 10)
#define HF_JOURNAL_BYTES_MAX ((size_t)1 << 20) /* a reader refuses a longer file */
/* Size of the blocks that are reserved when the journal is created, so that exits can be recorded
 * on a full disk. */
#define HF_JOURNAL_RESERVE_BYTES ((size_t)64 << 10)

#define HF_POD_CONTAINERS_MAX 64 /* most containers of a pod, init containers included */
/* bytes of a container's name, which is a DNS label, with the NUL */
#define HF_CONTAINER_NAME_MAX 64
#define HF_JOURNAL_TEXT_MAX 512

enum hf_journal_type {
	HF_JOURNAL_SHIM,  /* the first record: the identity of the shim's process */
	HF_JOURNAL_BEGIN, /* the shim is about to start a container */
	HF_JOURNAL_START, /* the container's program runs */
	HF_JOURNAL_FAIL,  /* the container could not be started; text is the reason */
	HF_JOURNAL_EXIT,  /* the container has ended with all of its processes */
	/* the kubelet ends the pod; recorded before any container gets a signal */
	HF_JOURNAL_STOP,
	HF_JOURNAL_QUIT, /* the shim ends as planned; no process of the pod runs any more */
};

/* The reason of a STOP. Other reasons, such as a deletion, need no record: the pod's document in
 * the store has them. */
enum hf_journal_stop { HF_STOPPED_NOT, HF_STOPPED_BY_DRAIN, HF_STOPPED_BY_DEADLINE };

struct hf_journal_record {
	enum hf_journal_type type;
	hf_time at;                            /* wall clock */
	struct hf_process_id shim;             /* SHIM */
	char container[HF_CONTAINER_NAME_MAX]; /* BEGIN to EXIT */
	unsigned attempt;                      /* number of the container's start, from 0 */
	unsigned backoff_s;                    /* BEGIN: the back-off before this attempt */
	pid_t pid;                             /* START: pid of the container's first process */
	int code, signum; /* EXIT: the exit code; or the signal that ended the program, else 0 */
	bool oom;         /* EXIT: the kernel killed the program for lack of memory */
	char text[HF_JOURNAL_TEXT_MAX]; /* FAIL: the reason */
	enum hf_journal_stop stop;      /* STOP: the reason */
	/* STOP: number of containers that ran when the stop began, without sidecars */
	unsigned ran;
};

enum hf_attempt_state {
	HF_ATTEMPT_NONE,
	HF_ATTEMPT_BEGUN,
	HF_ATTEMPT_RUNNING,
	HF_ATTEMPT_FAILED, /* the program could not be started; counts as an exit with code 128 */
	HF_ATTEMPT_EXITED,
};

struct hf_attempt {
	enum hf_attempt_state state;
	unsigned number;
	unsigned backoff_s;
	hf_time begun, started, finished; /* HF_TIME_NONE: not reached */
	pid_t pid;
	int code, signum;
	bool oom;
	char text[HF_JOURNAL_TEXT_MAX];
};

struct hf_container_past {
	char name[HF_CONTAINER_NAME_MAX];
	struct hf_attempt last, previous; /* state NONE: no such attempt */
};

/* The state of a pod after all records of its journal. */
struct hf_pod_past {
	struct hf_process_id shim; /* process of the shim; pid 0: the journal has no record */
	bool quit;
	enum hf_journal_stop stop; /* reason of the first STOP */
	unsigned ran_at_stop;
	hf_time stopped;
	uint64_t n_records;
	/* number of `containers`, which are in the order of their first BEGIN */
	size_t n_containers;
	struct hf_container_past containers[HF_POD_CONTAINERS_MAX];
};

void hf_pod_past_init(struct hf_pod_past *past);
/* Applies a record to the state. HF_E_INVALID: the record cannot follow the records before it. */
int hf_pod_past_fold(struct hf_pod_past *past, const struct hf_journal_record *record,
		     struct hf_error *err) HF_MUST_CHECK;
/* Returns the past of a container; NULL: no attempt of the container has begun. */
const struct hf_container_past *hf_pod_past_find(const struct hf_pod_past *past, const char *name);
/* Counts the attempts that are BEGUN or RUNNING. */
size_t hf_pod_past_running(const struct hf_pod_past *past);

/* Convert a record to a line with its newline, and back. sb should hold 2 kB. */
void hf_journal_format(const struct hf_journal_record *record, uint64_t sequence,
		       struct hf_strbuf *sb);
int hf_journal_parse(const char *line, size_t len, uint64_t *ret_sequence,
		     struct hf_journal_record *ret_record, struct hf_error *err) HF_MUST_CHECK;

/* Reads the journal in the folder dir_fd, and applies all its records. HF_E_NOT_FOUND: the folder
 * has no journal. */
int hf_journal_read(int dir_fd, struct hf_pod_past *ret_past, struct hf_error *err) HF_MUST_CHECK;

/* --- the writer --- */
struct hf_journal {
	int dir_fd; /* borrowed */
	int fd;
	size_t bytes;
	uint64_t sequence;
	struct hf_pod_past past;
};

/* Creates an empty journal; an existing one is replaced. */
int hf_journal_create(struct hf_journal *journal, int dir_fd, struct hf_error *err) HF_MUST_CHECK;
void hf_journal_release(struct hf_journal *journal);
/* Appends a record and calls fdatasync. After a failure the file is unchanged, so the caller may
 * try again; `past` includes the record only after success. */
int hf_journal_append(struct hf_journal *journal, const struct hf_journal_record *record,
		      struct hf_error *err) HF_MUST_CHECK;

#endif
