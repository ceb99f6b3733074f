/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_QUERY_H
#define HF_PAGE_QUERY_H

#include "base/error.h"
#include "base/time.h"

#include <stdint.h>

HF_BEGIN_DECLS

/* The parameters of the page's lists. Pure; texts are borrowed from the request. */

#define HF_PAGE_LIMIT_DEFAULT 50
#define HF_PAGE_LIMIT_MAX 500
/* Bytes of a filter or a continue token: a namespace, a kind and a name with a number. */
#define HF_PAGE_TEXT_MAX 512

enum hf_page_sort {
	HF_PAGE_SORT_NAME,
	HF_PAGE_SORT_AGE,      /* the newest first */
	HF_PAGE_SORT_RESTARTS, /* the most first */
	HF_PAGE_SORT_STATE,    /* jobs that need a look first, see hf_page_state_order */
	HF_PAGE_SORT_STRAGGLER,
	HF_PAGE_SORT_RANK,
};

struct hf_page_query {
	/* filters; NULL: none */
	const char *ns, *kind, *state, *cause, *q;
	enum hf_page_sort sort;
	int64_t limit;
	const char *token; /* NULL: the first page */
	int64_t start;     /* lists that are numbered: the first item */
	hf_time window;    /* of the recovery report */
	hf_time bucket;    /* of the recovery report: the length of one bar */
	const char *rank;  /* NULL: none */
	int64_t tail;      /* lines of a log */
	bool once;         /* the stream ends after the catch-up */
};

/* Returns the value of a parameter; NULL: absent. */
typedef const char *(*hf_page_param_fn)(void *arg, const char *name);

/* HF_E_BAD_REQUEST: a value is wrong; the text names the parameter and what it may be. */
int hf_page_query_read(hf_page_param_fn param, void *arg, struct hf_page_query *ret_query,
		       struct hf_error *err) HF_MUST_CHECK;

/* The place of a state in the order of sort=state: the lower, the earlier. */
int hf_page_state_order(const char *state);

HF_END_DECLS

#endif
