/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_EVENTS_H
#define HF_CLI_EVENTS_H

#include "cli/cli.h"
#include "cli/output.h"

HF_BEGIN_DECLS

/* The events of a job, its pods and services (NULL: of the namespace), oldest first, as a table
 * for the caller to print and destroy. */
int hf_cli_events(struct hf_cli *cli, struct hf_doc *job, struct hf_table **ret_table,
		  struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
