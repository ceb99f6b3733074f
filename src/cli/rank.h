/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_RANK_H
#define HF_CLI_RANK_H

#include "core/framework.h"
#include "json/json.h"

HF_BEGIN_DECLS

/*
 * What a person calls a replica: its name behind the job's ("worker-1"), or its number among
 * all of them in the kind's order ("0" is the first master).  job: the job's document.
 * ret_name ("worker-1") is the caller's.  HF_E_INVALID: the job's spec has no such replica; the
 * text says which it has.
 */
int hf_cli_rank_name(const struct hf_framework *framework, const struct hf_json *job,
		     const char *word, char **ret_name, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
