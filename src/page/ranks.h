/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_RANKS_H
#define HF_PAGE_RANKS_H

#include "base/time.h"
#include "json/json.h"
#include "page/job_view.h"
#include "page/query.h"

HF_BEGIN_DECLS

/*
 * The steps of training processes, by the UID of their pod. Agents report them in DeviceHealth objects; on one
 * machine the processes report to this process. Pure: times are arguments.
 *
 * At most HF_PAGE_RANKS_MAX pods. If there are more, pods without a step for HF_PAGE_RANK_SILENT give way, because most of
 * them are gone; without such a pod, reports of further pods are dropped.
 */

#define HF_PAGE_RANKS_MAX ((size_t)50000)
#define HF_PAGE_RANK_SILENT HF_HOUR
#define HF_PAGE_SPARK_MAX 32

struct hf_page_rank_report {
	const char *uid;         /* of the pod */
	const char *state;       /* Advancing, Stalled, Silent; NULL: not told */
	int64_t step, total;     /* 0: unknown */
	int64_t own_us, wait_us; /* of one step; 0: unknown */
	hf_time at;              /* when the step ended */
};

struct hf_page_ranks;
struct hf_page_ranks *hf_page_ranks_create(void);
struct hf_page_ranks *hf_page_ranks_destroy(
	struct hf_page_ranks *ranks); /* NULL is fine; returns NULL */
void hf_page_ranks_report(struct hf_page_ranks *ranks, const struct hf_page_rank_report *report);
/* Computes the progress of a job from the reports of these pods. */
struct hf_page_progress hf_page_ranks_progress(const struct hf_page_ranks *ranks,
					       const struct hf_pod *pods, size_t len);
/* The name of the pod's rank, such as "worker-0": the pod's name without that of the job. */
const char *hf_page_rank_name(const struct hf_pod *pod, const char *job);
/* The JSON of a page of the job's ranks. */
struct hf_json *hf_page_ranks_json(const struct hf_page_ranks *ranks, const struct hf_page_job *job,
				   const struct hf_pod *pods, size_t len,
				   const struct hf_page_query *query);

HF_END_DECLS

#endif
