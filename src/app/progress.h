/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_PROGRESS_H
#define HF_APP_PROGRESS_H

#include "app/history.h"
#include "base/time.h"
#include "cli/cli.h"
#include "health/beat.h"
#include "json/doc.h"
#include "pattern/pattern.h"

/*
 * What `run` shows while a job trains: on a terminal a block that is redrawn in place, with a bar for each rank; else
 * one timestamped line for each change and for each line of a rank's log.
 *
 * If the job has more than HF_PROGRESS_FEW ranks, changes of pods are counted in one line a second, and the logs of the
 * first rank alone are shown unless --ranks names others.
 *
 * The caller passes every version of the job and of its pods; this module finds the changes.
 */
struct hf_progress;

#define HF_PROGRESS_RANKS_MAX 1024 /* the plane's kubelet takes 110 pods */
/* limit of a shown log line in bytes; the rest of the line is cut off */
#define HF_PROGRESS_LINE_BYTES_MAX 4096
#define HF_PROGRESS_FEW 16

struct hf_progress_options {
	bool redraw; /* true: a block that is redrawn in place; false: one line for each change */
	bool color, utf8;
	int width, height; /* of the terminal; 0: unlimited */
	bool logs;         /* show the ranks' log lines */
	const char *
		/* names of the ranks to show logs of, such as "master-0,worker-1", or "all"; NULL:
		 * all ranks, or the first one if there are many */
		ranks;
	bool keys; /* print a line with the keys below the block */
	FILE *out;
	/* the pattern that finds steps in log lines; NULL: log lines have no steps */
	const struct hf_pattern *pattern;
	/* records every step and restart; NULL: they are not recorded */
	struct hf_history *history;
};

struct hf_progress *hf_progress_create(const struct hf_progress_options *options, const char *job);
struct hf_progress *hf_progress_destroy(struct hf_progress *progress); /* NULL is fine */

/* now: wall clock. */
void hf_progress_job(struct hf_progress *progress, struct hf_doc *job, hf_time now);
void hf_progress_pod(struct hf_progress *progress, struct hf_doc *pod, bool gone, hf_time now);
/* Add bytes of a pod's log, in the order in which they arrive. */
void hf_progress_log(struct hf_progress *progress, const char *pod, const char *bytes, size_t len,
		     hf_time now);
/* The same for the log of an init container: its name stands in each line, and no line is a step. */
void hf_progress_init_log(struct hf_progress *progress, const char *pod, const char *container,
			  const char *bytes, size_t len, hf_time now);
/* The log of a run of one of the pod's containers has ended: print an unfinished line. */
void hf_progress_log_end(struct hf_progress *progress, const char *pod, hf_time now);
/* Take a report of a training step, sent by a process of the pod with this UID. */
void hf_progress_step(struct hf_progress *progress, const char *pod_uid, const struct hf_beat *beat,
		      hf_time now);
/* Print a line of `run` itself, such as a notice or an injected fault. */
void hf_progress_note(struct hf_progress *progress, hf_time now, const char *fmt, ...)
	HF_PRINTF(3, 4);
/* Print each line of the text, if there is one. text may be NULL. */
void hf_progress_note_lines(struct hf_progress *progress, hf_time now, const char *text);
/* Redraw the block if something has changed, or if `force` is set. If the output is lines: print
 * how many pods are in which state, if that has changed and a second has passed. */
void hf_progress_draw(struct hf_progress *progress, hf_time now, bool force);
/* Print a line with the present state and the step of the slowest rank, if output is in lines; a no-op for a block. */
void hf_progress_heartbeat(struct hf_progress *progress, hf_time now);
/* Draw the block for the last time, at the end of the run. */
void hf_progress_finish(struct hf_progress *progress, hf_time now);
/* Another program uses the terminal from now on: leave the present block where it is. The next block is
 * drawn below the cursor. */
void hf_progress_leave(struct hf_progress *progress);
/* The terminal has a new size. */
void hf_progress_resize(struct hf_progress *progress, int width, int height);
void hf_progress_toggle_logs(struct hf_progress *progress);

/* The state of the job: the type of the last condition that is True, such as "Running"; "Created"
 * if no condition is True. */
const char *hf_progress_state(const struct hf_json *job);

#endif
