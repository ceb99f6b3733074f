/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_CONFIG_H
#define HF_OPERATOR_CONFIG_H

#include "core/model/job.h"

#include <stddef.h>

/*
 * The operator's config file.  Its `recovery` has the fields of a job's spec.runPolicy.recovery and
 * gives the default for every job of the cluster.  A field of the job itself has priority.
 *
 * recovery: {restartScope: Job, backoff: {initialSeconds: 5}}
 *
 * An unknown field is refused, and values must keep the rules for jobs.  Errors name file, line and
 * field: "op.yaml:3:5: recovery.restartScope: Unsupported value…".
 */
struct hf_operator_config;

#define HF_OPERATOR_CONFIG_BYTES_MAX ((size_t)1 << 20)

/* Read the config from a text.  name: the file's name, for errors.  HF_E_INVALID: a field is wrong;
 * HF_E_BAD_REQUEST: the text is not YAML. */
int hf_operator_config_parse(const char *text, size_t len, const char *name,
			     struct hf_operator_config **ret_config, struct hf_error *err)
	HF_MUST_CHECK;
/* NULL is fine; returns NULL. */
struct hf_operator_config *hf_operator_config_destroy(struct hf_operator_config *config);
/* The defaults of `recovery`.  Their texts live as long as the config. */
const struct hf_recovery_spec *hf_operator_config_recovery(const struct hf_operator_config *config);

#endif
