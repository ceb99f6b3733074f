/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_PAGE_SOURCE_H
#define HF_TESTS_HARNESS_PAGE_SOURCE_H

#include "page/source.h"

#include <stdbool.h>
#include <stddef.h>

/* A source of jobs for tests and measurements: it has the jobs that were put in, each with one pod on node "n1". */
#define PAGE_SOURCE_JOBS_MAX 20000

struct page_source_job {
	char ns[64], name[64], uid[64];
	struct hf_doc *doc;
	size_t number; /* of its creation, from 0 */
	struct hf_pod pod;
	struct hf_pod_condition ready;
	char pod_name[80], pod_uid[80];
};

struct page_source {
	struct hf_page_source source; /* for the page */
	bool ready;
	struct page_source_job **jobs;
	struct hf_map *by_name; /* "ns/name" → job */
	size_t len;
	const char *next; /* the line "next" of explanations; NULL: jobs cannot be explained */
};

struct page_source *page_source_create(void);
void page_source_destroy(struct page_source *source);
/* Puts in a PyTorchJob or replaces it. status: the object's status as JSON. Returns its key, valid until the next
 * call. */
const char *page_source_put(struct page_source *source, const char *ns, const char *name,
			    const char *status);
void page_source_remove(struct page_source *source, const char *ns, const char *name);
/* The status of a job with this state, and `restarts` restarts of the application. */
const char *page_source_status(const char *state, int restarts);

#endif
