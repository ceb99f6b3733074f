/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_TOP_H
#define HF_APP_TOP_H

#include "base/strbuf.h"
#include "base/time.h"
#include "core/model/status.h"
#include "json/doc.h"

/*
 * What `holdfast top` shows: a row for each job, or for each rank of one job.
 *
 * The caller passes each version of the jobs, pods and DeviceHealths.  The model keeps the numbers of the rows
 * and no documents.  A rate needs two reports with different steps, so it is unknown at first.
 */
struct hf_top;

#define HF_TOP_JOBS_MAX 100000
#define HF_TOP_PODS_MAX 100000

struct hf_top_job {
	char *uid, *ns, *name, *kind, *state, *cause; /* cause: of the last restart; "": none */
	int64_t wanted, succeeded, generation, step, saved_step;
	int64_t restarts[HF_BUDGETS];
	int64_t restarts_made; /* their sum */
	bool has_ettr;
	int64_t ettr_permille; /* at the time of the last change of the job */
	hf_time created, steps_at;
	double rate;   /* steps a second; 0: unknown */
	int64_t ready; /* Ready pods and succeeded ranks; set by hf_top_jobs */
	bool marked;   /* the present watch has not reported the job yet */
};

struct hf_top_rank {
	char *uid, *ns, *job, *pod, *node, *status; /* status: as kubectl prints it */
	int64_t restarts;
	bool marked; /* the present watch has not reported the pod yet */
	/* The last report of the rank's process, from the node's agent. */
	bool reported;
	int64_t step, total;
	int64_t own_us; /* 0: unknown */
	hf_time advanced_at;
	double rate; /* steps a second; 0: unknown */
	double score; /* own time divided by the median of the job; 0: unknown; set by hf_top_ranks */
};

enum hf_top_sort {
	HF_TOP_BY_STATE, /* jobs that need attention first; ranks: in their order */
	HF_TOP_BY_NAME,
	HF_TOP_BY_RESTARTS, /* most first */
	HF_TOP_BY_PROGRESS, /* jobs: lowest ETTR first; ranks: lowest step first */
	HF_TOP_BY_SCORE,    /* ranks: stragglers first; jobs: slowest rate first */
	HF_TOP_SORTS,
};
const char *hf_top_sort_name(enum hf_top_sort sort);
/* The states of jobs up to a NULL, those that need attention first. */
extern const char *const hf_top_states[];

struct hf_top *hf_top_create(void);
struct hf_top *hf_top_destroy(struct hf_top *top); /* NULL is fine */

/* A new version of an object; gone: it was deleted. now: wall clock. */
void hf_top_see_job(struct hf_top *top, struct hf_doc *job, bool gone, hf_time now);
void hf_top_see_pod(struct hf_top *top, struct hf_doc *pod, bool gone);
void hf_top_see_health(struct hf_top *top, struct hf_doc *health);
/* A watch was lost, and another one begins. Marks the jobs of a kind, or all pods (kind NULL). The rows stay; a new
 * version of the object removes its mark. */
void hf_top_mark(struct hf_top *top, const char *kind);
/* Removes the rows that are still marked: their objects were deleted while there was no watch. */
void hf_top_sweep(struct hf_top *top, const char *kind);

/* The rows in the order of `sort`. The arrays are the model's, and valid until the next call of the same
 * function or the next change. */
struct hf_top_job *const *hf_top_jobs(struct hf_top *top, enum hf_top_sort sort, size_t *ret_n);
struct hf_top_rank *const *hf_top_ranks(struct hf_top *top, const struct hf_top_job *job,
					enum hf_top_sort sort, size_t *ret_n);
/* The job with this UID; NULL: it is gone. */
struct hf_top_job *hf_top_find(const struct hf_top *top, const char *uid);

/* ---- tables ------------------------------------------------------------------------------------------ */

#define HF_TOP_COLUMNS_MAX 12
#define HF_TOP_CELL_MAX 96

struct hf_top_column {
	const char *header;
	/* The column with the largest number is left out first if the terminal is too narrow; 0: always
	 * shown. */
	int spare;
	bool right; /* numbers stand at the right */
};
struct hf_top_cells {
	char text[HF_TOP_COLUMNS_MAX][HF_TOP_CELL_MAX];
};
enum hf_top_job_column {
	HF_TOP_JOB_NS,
	HF_TOP_JOB_NAME,
	HF_TOP_JOB_KIND,
	HF_TOP_JOB_STATE,
	HF_TOP_JOB_READY,
	HF_TOP_JOB_STEP,
	HF_TOP_JOB_RATE,
	HF_TOP_JOB_ETTR,
	HF_TOP_JOB_RESTARTS,
	HF_TOP_JOB_CAUSE,
	HF_TOP_JOB_AGE,
	HF_TOP_JOB_COLUMNS,
};
enum hf_top_rank_column {
	HF_TOP_RANK_NAME,
	HF_TOP_RANK_STATE,
	HF_TOP_RANK_STEP,
	HF_TOP_RANK_RATE,
	HF_TOP_RANK_OWN,
	HF_TOP_RANK_WAIT,
	HF_TOP_RANK_SCORE,
	HF_TOP_RANK_NODE,
	HF_TOP_RANK_RESTARTS,
	HF_TOP_RANK_LAST,
	HF_TOP_RANK_COLUMNS,
};
extern const struct hf_top_column hf_top_job_columns[HF_TOP_JOB_COLUMNS];
extern const struct hf_top_column hf_top_rank_columns[HF_TOP_RANK_COLUMNS];
void hf_top_job_cells(const struct hf_top_job *job, hf_time now, struct hf_top_cells *ret_cells);
/* rate: steps a second of the job; 0: unknown. */
void hf_top_rank_cells(const struct hf_top_rank *rank, const struct hf_top_job *job, hf_time now,
		       struct hf_top_cells *ret_cells);

/* ---- the screen -------------------------------------------------------------------------------------- */

struct hf_top_screen {
	int width, height; /* of the terminal */
	bool color, utf8;
	bool namespaces; /* jobs of several namespaces are shown */
	hf_time now;
	char *open;     /* UID of the job whose ranks are shown; NULL: jobs are shown */
	char *selected; /* UID of the selected row; NULL: the first */
	size_t first;   /* number of the first row on the screen */
	enum hf_top_sort sort;
	const char *notice; /* shown in the last line instead of the keys; NULL: none */
};
/* Draws a whole screen: exactly `height` lines, none wider than `width`. Moves first and selected into
 * range. */
void hf_top_draw(struct hf_top *top, struct hf_top_screen *screen, struct hf_strbuf *out);

enum hf_top_key {
	HF_TOP_NO_KEY,
	HF_TOP_UP,
	HF_TOP_DOWN,
	HF_TOP_PAGE_UP,
	HF_TOP_PAGE_DOWN,
	HF_TOP_ENTER,
	HF_TOP_BACK,
	HF_TOP_SORT,
	HF_TOP_QUIT,
};
/* Decodes the bytes of a terminal. A lone Esc means BACK: the caller calls hf_top_keys_end when no byte has
 * followed for some ms. */
struct hf_top_keys {
	char sequence[8];
	size_t len;
};
enum hf_top_key hf_top_keys_feed(struct hf_top_keys *keys, char byte);
enum hf_top_key hf_top_keys_end(struct hf_top_keys *keys);
/* Performs a key that moves, opens, closes or sorts. */
void hf_top_press(struct hf_top *top, struct hf_top_screen *screen, enum hf_top_key key);

#endif
