/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_PAGE_TABLES_H
#define HF_TESTS_HARNESS_PAGE_TABLES_H

/* The tables of the page for a test, with a source of jobs and a session of the user ada that may see everything. */

#include "harness/page_source.h"
#include "page/jobs.h"

struct page_tables {
	struct hf_loop *loop; /* the test's */
	struct page_source *source;
	struct hf_page_ranks *ranks;
	struct hf_page_ring *ring;
	struct hf_page_jobs *jobs;
	struct hf_page_sessions *sessions;
	struct hf_page_session *session;
};

/* jobs: the callbacks of the table of jobs; NULL: none. */
static inline void page_tables_open(struct page_tables *tables, struct hf_loop *loop,
				    const struct hf_page_jobs_options *jobs)
{
	struct hf_page_jobs_options options = {.seed = 0};

	if (jobs != NULL)
		options = *jobs;
	tables->loop = loop;
	tables->source = page_source_create();
	tables->ranks = hf_page_ranks_create();
	tables->ring = hf_page_ring_create(1);
	tables->sessions = hf_page_sessions_create(8082);
	tables->session = hf_page_sessions_add(tables->sessions, "1", "ada", hf_loop_mono(loop));
	tables->session->all = true;
	options.loop = loop;
	options.source = &tables->source->source;
	options.ranks = tables->ranks;
	options.ring = tables->ring;
	tables->jobs = hf_page_jobs_create(&options);
}

static inline void page_tables_close(struct page_tables *tables)
{
	hf_page_jobs_destroy(tables->jobs);
	hf_page_sessions_destroy(tables->sessions);
	hf_page_ring_destroy(tables->ring);
	hf_page_ranks_destroy(tables->ranks);
	page_source_destroy(tables->source);
}

#endif
