/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_RECOVERY_H
#define HF_PAGE_RECOVERY_H

#include "page/jobs.h"

HF_BEGIN_DECLS

/*
 * The recovery report: restarts by cause, how long they took, the part of the time in which jobs trained, and device
 * hours lost. Restarts come from the ledgers of the jobs, which keep the last 11 each; the others are remembered here. ETTR and
 * lost devices are sampled once a minute. A restart of the process forgets all but the ledgers. Pure: times are arguments.
 */

#define HF_PAGE_RESTARTS_MAX 4096
#define HF_PAGE_SAMPLE_EVERY HF_MINUTE
#define HF_PAGE_SAMPLES_MAX (7 * 24 * 60) /* seven days */
#define HF_PAGE_WORST_MAX 10

struct hf_page_recovery;
struct hf_page_recovery *hf_page_recovery_create(hf_time now);
struct hf_page_recovery *hf_page_recovery_destroy(
	struct hf_page_recovery *recovery); /* NULL is fine */

/* Remembers a restart that the table of jobs does not hold any more. */
void hf_page_recovery_keep(struct hf_page_recovery *recovery, const struct hf_page_row *row,
			   const struct hf_page_restart *restart);
/* Takes a sample: the mean ETTR of the jobs that are not finished, and lost_devices. */
void hf_page_recovery_sample(struct hf_page_recovery *recovery, const struct hf_page_jobs *jobs,
			     int64_t lost_devices, hf_time now);

struct hf_page_recovery_args {
	const struct hf_page_jobs *jobs;
	const struct hf_page_session *session;
	hf_time now, window, bucket;
	/* The session may see all jobs, so it may see means over all jobs; likewise for nodes. */
	bool sees_all, sees_nodes;
};
/* The JSON of the report, up to the list "worst"; the caller owns it. */
struct hf_json *hf_page_recovery_json(const struct hf_page_recovery *recovery,
				      const struct hf_page_recovery_args *args);

HF_END_DECLS

#endif
