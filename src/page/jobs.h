/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_JOBS_H
#define HF_PAGE_JOBS_H

#include "loop/loop.h"
#include "page/job_view.h"
#include "page/query.h"
#include "page/ranks.h"
#include "page/ring.h"
#include "page/sessions.h"

HF_BEGIN_DECLS

/*
 * The table of jobs: one row for each job that the source has, with its JSON ready to send.
 *
 * A change of a job or of its pods marks the row. 200 ms later the row is made anew, once for all changes since;
 * if its text differs, the change goes into the ring. At most HF_PAGE_SLICE rows are made in one turn of the loop.
 */

#define HF_PAGE_SETTLE (200 * HF_MS)
#define HF_PAGE_SLICE 128
#define HF_PAGE_ROWS_MAX ((size_t)200000) /* as many as a cache of the operator */
#define HF_PAGE_LIST_BYTES_MAX ((size_t)4 << 20)

/* A restart, as the recovery report counts it. */
struct hf_page_restart {
	hf_time at;
	enum hf_page_cause cause;
	struct hf_record_parts parts;
};

struct hf_page_row {
	const struct hf_framework *framework;
	char *key;             /* "plural/ns/name", as the operator's keys */
	const char *ns, *name; /* parts of key; ns is not ended by a NUL in key, so it is a copy */
	char *state;
	const char *cause; /* a constant text; "": no restart */
	int64_t restarts;
	hf_time created;
	struct hf_training_times times;
	bool finished;
	char *sentence;                  /* of the last plan; NULL: none */
	struct hf_page_text_ref *text;   /* NULL: not made yet */
	uint64_t version;                /* number of the row's last change in the ring; 0: none */
	struct hf_page_restart *records; /* the newest first */
	size_t records_len;
	bool marked;
	struct hf_page_row *next_marked;
};

struct hf_page_jobs;
struct hf_page_jobs_options {
	struct hf_loop *loop;
	const struct hf_page_source *source;
	struct hf_page_ranks *ranks;
	struct hf_page_ring *ring;
	hf_time settle; /* 0: HF_PAGE_SETTLE */
	uint64_t seed;  /* of hash tables with names from outside */
	/* Called after changes went into the ring. */
	void (*changed)(void *arg);
	/* Called with each restart that is removed from the records of a row. */
	void (*dropped)(void *arg, const struct hf_page_row *row,
			const struct hf_page_restart *restart);
	void *arg;
};
struct hf_page_jobs *hf_page_jobs_create(const struct hf_page_jobs_options *options);
struct hf_page_jobs *hf_page_jobs_destroy(
	struct hf_page_jobs *jobs); /* NULL is fine; returns NULL */

/* The job with this key, or a pod of it, has changed or is gone. */
void hf_page_jobs_touch(struct hf_page_jobs *jobs, const char *key);
/* Every job may have changed, for instance because the operator has begun to lead. */
void hf_page_jobs_touch_all(struct hf_page_jobs *jobs);
/* The summary of the job's newest plan. */
void hf_page_jobs_tell(struct hf_page_jobs *jobs, const char *key, const char *summary);

/* Rises when a kind is first seen in a namespace. */
uint64_t hf_page_jobs_places(const struct hf_page_jobs *jobs);
size_t hf_page_jobs_len(const struct hf_page_jobs *jobs);
/* Iterates in the order in which the jobs were first seen; *it starts at 0. */
const struct hf_page_row *hf_page_jobs_next(const struct hf_page_jobs *jobs, size_t *it);
/* Appends the JSON of a page of the list: the jobs that the session may see. Marks these rows, so that the stream tells the
 * steps that they have reached since they were made. */
void hf_page_jobs_list(struct hf_page_jobs *jobs, const struct hf_page_session *session,
		       const struct hf_page_query *query, struct hf_strbuf *sb);
/* The number of rows that the session may see, by state: {"Running": 3}. The caller owns the result. */
struct hf_json *hf_page_jobs_count(const struct hf_page_jobs *jobs,
				   const struct hf_page_session *session, int64_t *ret_total);
/* Fills in the input of hf_page_job_json for this job, except the tree. */
void hf_page_jobs_input(const struct hf_page_jobs *jobs, const struct hf_page_job *job,
			struct hf_arena *arena, struct hf_page_job_input *ret_input);

HF_END_DECLS

#endif
