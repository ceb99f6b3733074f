/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_WAITING_RANK_H
#define HF_APP_WAITING_RANK_H

#include "app/log_tail.h"
#include "app/run_folder.h"
#include "cli/cli.h"
#include "memstore/memstore.h"

/* Print why a rank of the job waits for its next start, with the end of its log: for a run that is stopped meanwhile,
 * which prints no failure. Prints nothing if no rank waits. */
void hf_report_waiting_rank(const struct hf_cli *cli, struct hf_memstore *store, const char *ns,
			    const struct hf_json *job, struct hf_log_tails *tails,
			    const struct hf_run_folder *folder);

#endif
