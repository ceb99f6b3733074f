/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_RANK_H
#define HF_CLI_RANK_H

#include "core/model/framework.h"
#include "json/json.h"

HF_BEGIN_DECLS

/*
 * Find the replica that the user named: by name without the job's ("worker-1"), or by its number
 * among all replicas in the kind's order ("0" is the first master).  job: the job's document.  The
 * caller frees ret_name ("worker-1").  HF_E_INVALID: the spec has no such replica; the error text
 * lists the replicas of the job.
 */
int hf_cli_rank_name(const struct hf_framework *framework, const struct hf_json *job,
		     const char *word, char **ret_name, struct hf_error *err) HF_MUST_CHECK;

/* Return the pod's name without the job's ("worker-1"); the whole name if it does not begin with the job's. */
const char *hf_cli_rank_of_pod(const char *pod, const char *job);

HF_END_DECLS

#endif
