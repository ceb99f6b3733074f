/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_SOURCE_H
#define HF_PAGE_SOURCE_H

#include "core/model/framework.h"
#include "core/model/observed.h"
#include "core/step.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * Where the page reads jobs: the caches of the operator in this process, or a test's own. All results are
 * borrowed: the page uses them within one callback. Nothing here sends a request.
 */

struct hf_page_job {
	const struct hf_framework *framework;
	const char *ns, *name, *uid;
	struct hf_doc *doc;
};

typedef void (*hf_page_job_fn)(void *arg, const struct hf_page_job *job);

struct hf_page_source {
	/* True once all jobs are listed. False: this process does not operate jobs now. */
	bool (*ready)(void *arg);
	void (*each_job)(void *arg, hf_page_job_fn fn, void *fn_arg);
	/* False: no such job. */
	bool (*find_job)(void *arg, const struct hf_framework *framework, const char *ns,
			 const char *name, struct hf_page_job *ret_job);
	/* The pods of the job. The list is in the arena; returns its length. */
	size_t (*find_pods)(void *arg, const struct hf_page_job *job, struct hf_arena *arena,
			    const struct hf_pod **ret_pods);
	/* Calls fn for each job with a pod on this node, once for a job. */
	void (*jobs_on_node)(void *arg, const char *node, hf_page_job_fn fn, void *fn_arg);
	/* What the operator would do next for the job, as `holdfast why` shows it. */
	int (*explain)(void *arg, const struct hf_page_job *job, struct hf_arena *arena,
		       struct hf_plan *ret_plan, struct hf_error *err);
	void *arg;
};

HF_END_DECLS

#endif
