/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_REMEDIATION_H
#define HF_CLI_REMEDIATION_H

#include "api/remediation.h"
#include "cli/output.h"
#include "cli/request.h"

HF_BEGIN_DECLS

/* Remediations in tables, in `describe` and in `why node/NAME`. The table is made from the fields as they
 * are, so an object that cannot be read as a whole has a row too. */

#define HF_CLI_REMEDIATION_COLUMNS 9
#define HF_CLI_REMEDIATION_WIDE 2 /* the last columns, which only -o wide prints */
extern const char *const hf_cli_remediation_headers[HF_CLI_REMEDIATION_COLUMNS];
/* deleted: the row is for an object that was deleted. */
void hf_cli_remediation_row(struct hf_table *table, struct hf_doc *doc, hf_time now, bool wide,
			    bool deleted);

/* "0000:1a:00.0 (GPU-1), GPU-2"; "the node" without devices. */
void hf_cli_remediation_devices(const struct hf_remediation_spec *spec, struct hf_strbuf *text);

/* phase: status.phase; NULL: no operator has seen the object yet. */
bool hf_cli_remediation_has_ended(const char *phase);

/* The NAME of "remediation/NAME"; NULL: the word does not name a Remediation. */
const char *hf_cli_remediation_named(const char *word);
/* Print one Remediation for people. Returns an exit code. */
int hf_cli_describe_remediation(struct hf_cli *cli, const char *name,
				const struct hf_output *output);

/* Lists the Remediations of this node: all that are not at an end, else the newest. Calls fn for each one
 * with what happens or happened, and for each of its conditions that is not True. Calls nothing if
 * Remediations cannot be read. */
typedef void (*hf_cli_mend_fn)(void *arg, hf_time at, const char *text);
void hf_cli_mend_reasons(struct hf_cli *cli, const char *node, hf_cli_mend_fn fn, void *arg);

/* Calls fn for each act that answered a device failure of this job, and for each act and rollout that evicted a pod of it, by
 * the records of its ledger: "gpu-7: reset-device of 0000:1a:00.0 after Xid 79, back in 41 s". (job_acts.c) */
void hf_cli_mend_of_job(struct hf_cli *cli, struct hf_doc *job, hf_cli_mend_fn fn, void *arg);

HF_END_DECLS

#endif
