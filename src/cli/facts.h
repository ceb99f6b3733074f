/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_FACTS_H
#define HF_CLI_FACTS_H

#include "api/condition.h"
#include "base/strbuf.h"
#include "core/model/status.h"
#include "json/json.h"

HF_BEGIN_DECLS

/* Find the last condition of the job that is True: it names the job's state. NULL: no condition is
 * True. */
const struct hf_json *hf_job_last_condition(const struct hf_json *job);
/* The time that the text has in RFC 3339; HF_TIME_NONE: the text is NULL or has no such time. */
hf_time hf_facts_time(const char *text);
/* The reverse, to the second: returns `text` with the time; "" for HF_TIME_NONE. */
const char *hf_facts_time_text(hf_time at, char text[HF_TIME_TEXT_MAX]);

/* The facts of one job, for a row of a table. The strings belong to the document. */
struct hf_job_facts {
	const char *kind;
	/* the state: type of the last condition that is True; "Created" if no condition is True */
	const char *state;
	const char *message; /* message of the condition that gives `state`; "": none */
	int64_t active;      /* number of ranks with a pod that runs or is in a crash loop */
	int64_t succeeded;
	int64_t wanted; /* number of ranks that the spec asks for */
	int64_t generation;
	int64_t charged[HF_BUDGETS]; /* how many incidents each budget was charged */
	/* the charged incidents that were answered by a restart: all but the one that ended the
	 * job */
	int64_t restarts[HF_BUDGETS];
};
void hf_job_facts_read(const struct hf_json *job, struct hf_job_facts *ret_facts);
/* The sum of the restarts that the job has made, from all budgets; at most INT64_MAX. */
int64_t hf_job_restarts(const struct hf_job_facts *facts);
/* The restart that waits for the end of its delay. */
struct hf_job_delay {
	hf_time until;
	int64_t restart; /* its number in its budget, from 1; 0: it is charged to no budget */
	int64_t limit;   /* of restarts of this budget; -1: none, or unknown */
};
/* False: no restart waits. */
bool hf_job_delay_read(const struct hf_json *job, hf_time now, struct hf_job_delay *ret_delay);
/* Write "restarting in 10 s (restart 2 of 3)". */
void hf_job_delay_text(const struct hf_job_delay *delay, hf_time now, struct hf_strbuf *sb);
/* The number for the column READY: ranks that are ready or have succeeded.  ready: number of Ready pods.
 * Once the job has succeeded, its status counts ranks that still ran as succeeded, as upstream's
 * does, so `ready` is not added. */
int64_t hf_job_ready(const struct hf_job_facts *facts, int64_t ready);

/* How far a job has come, and what of its time was training. */
struct hf_job_training {
	int64_t step, saved_step; /* 0: unknown */
	bool has_ettr;
	int64_t ettr_permille;
	struct hf_training_times times; /* of the ETTR, which changes as time goes on */
	bool has_advice;
	struct hf_checkpoint_advice advice;
};
void hf_job_training_read(const struct hf_json *job, hf_time now,
			  struct hf_job_training *ret_training);
/* Steps that the restart of this record lost; -1: unknown. */
int64_t hf_record_lost_read(const struct hf_json *record);

/* The facts of one pod, for a row of a table, with the status that kubectl prints. */
struct hf_pod_facts {
	char status[64]; /* "Running", "CrashLoopBackOff", "Init:0/1", "Terminating", … */
	int64_t ready, containers, restarts;
};
void hf_pod_facts_read(const struct hf_json *pod, struct hf_pod_facts *ret_facts);

/* Find the entry of containerStatuses of the training container: the one that the kind of the pod's job names, else the
 * first.  NULL: none. */
const struct hf_json *hf_pod_main_status(const struct hf_json *pod);
/* Find the status of the container, which may be an init container; NULL: none. */
const struct hf_json *hf_pod_container_status(const struct hf_json *pod, const char *name);
/* The status of the init container that keeps the program from starting: it ended with a code other than 0, or waits for
 * its next start after such an end. NULL: there is none. */
const struct hf_json *hf_pod_failed_init(const struct hf_json *pod);

/*
 * Read an entry of containerStatuses. True: the program of the container was never started; the
 * text is the reason and the message of the node, such as "StartError: exec: …". False: the
 * program ran, or its start is under way.
 */
#define HF_FAILED_START_MAX 512
bool hf_container_failed_start(const struct hf_json *status, char ret_text[HF_FAILED_START_MAX]);

/* The same for one state of a container, or for a record of the job's ledger: objects with
 * `reason` and `message`. */
bool hf_reason_failed_start(const struct hf_json *state, char ret_text[HF_FAILED_START_MAX]);

HF_END_DECLS

#endif
