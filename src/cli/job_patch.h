/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_JOB_PATCH_H
#define HF_CLI_JOB_PATCH_H

#include "core/model/framework.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/* The merge patches with which people act on a job, for the verbs and for the page. Pure. */

/* Return HF_E_CONFLICT if the job has succeeded or failed, because such a job cannot be changed
 * any more. */
int hf_job_refuse_ended(struct hf_doc *job, struct hf_error *err) HF_MUST_CHECK;

/* Make the patch that suspends or resumes the job. *ret_patch stays NULL if the job is already as wanted. */
int hf_job_patch_suspend(struct hf_doc *job, bool suspend, struct hf_json **ret_patch,
			 struct hf_error *err) HF_MUST_CHECK;
/* Make the patch that restarts the job, or the rank that `word` names (as hf_cli_rank_name takes it); NULL: all
 * ranks. */
struct hf_job_restart {
	const struct hf_framework *framework;
	struct hf_doc *job;
	const char *word;
	hf_time now; /* wall clock; each restart needs a new value */
};
int hf_job_patch_restart(const struct hf_job_restart *restart, struct hf_json **ret_patch,
			 struct hf_error *err) HF_MUST_CHECK;

/* Make the Event that records the reason of a person for an action on the job. */
struct hf_doc *hf_job_reason_event(struct hf_doc *job, const char *event_reason, const char *text,
				   hf_time now);

HF_END_DECLS

#endif
