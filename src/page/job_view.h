/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_JOB_VIEW_H
#define HF_PAGE_JOB_VIEW_H

#include "core/model/status.h"
#include "page/source.h"

HF_BEGIN_DECLS

/* A job as the page shows it. Pure: documents and times in, JSON out. */

/* What reports of the job's ranks say of the job as a whole. */
struct hf_page_progress {
	int64_t step, total;     /* 0: unknown */
	double steps_per_second; /* negative: unknown */
};

struct hf_page_job_input {
	const struct hf_page_job *job;
	const struct hf_json *tree; /* of the job's document */
	const struct hf_pod *pods;
	size_t pods_len;
	struct hf_page_progress progress;
	const char *sentence; /* of the last plan; NULL: none yet */
	hf_time now;
};

/* The facts that lists are filtered and sorted by. Texts are borrowed from the tree. */
struct hf_page_job_keys {
	const char *state;
	const char *cause; /* of the last restart: "application", … ; "": none */
	int64_t restarts;
	hf_time created;
	struct hf_training_times times;
};

/* The JSON of a job in lists and in the stream. The caller owns it. */
struct hf_json *hf_page_job_json(const struct hf_page_job_input *input,
				 struct hf_page_job_keys *ret_keys);
/* Adds what the page of one job shows. plan: NULL if the job cannot be explained. */
void hf_page_job_add_detail(struct hf_json *object, const struct hf_page_job_input *input,
			    const struct hf_plan *plan);

/* The cause of a record in the words of the page: application, infrastructure, device or planned. */
enum hf_page_cause {
	HF_PAGE_APPLICATION,
	HF_PAGE_INFRASTRUCTURE,
	HF_PAGE_DEVICE,
	HF_PAGE_PLANNED,
	HF_PAGE_CAUSES,
};
enum hf_page_cause hf_page_cause_of(enum hf_class cls);
const char *hf_page_cause_name(enum hf_page_cause cause);
/* Reads the status of a job into the arena. Returns a tree, which the status borrows from and the caller
 * owns. */
struct hf_json *hf_page_read_status(const struct hf_json *tree,
				    const struct hf_framework *framework, struct hf_arena *arena,
				    struct hf_status *ret_status);
/* The tree of a document, as a new reference. A document without a tree is parsed for this call alone, so that the
 * cache keeps only its text. NULL: not valid JSON. */
struct hf_json *hf_page_tree(struct hf_doc *doc);
/* True if condition Ready of the pod is True. */
bool hf_page_pod_is_ready(const struct hf_pod *pod);

HF_END_DECLS

#endif
