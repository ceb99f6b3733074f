/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_JOBS_INTERNAL_H
#define HF_PAGE_JOBS_INTERNAL_H

#include "base/map.h"
#include "page/jobs.h"

/* Shared by jobs.c and jobs_list.c. */
struct hf_page_jobs {
	struct hf_page_jobs_options options;
	/* "plural/ns" of all rows so far; the values have no meaning */
	struct hf_map *places;
	struct hf_map *rows;               /* key → row */
	struct hf_page_row *first, **last; /* marked rows, in the order of the marks */
	struct hf_timer *timer;
	struct hf_arena *arena; /* of the row that is made */
};

#endif
