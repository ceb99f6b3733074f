/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_FIT_JOB_H
#define HF_APP_FIT_JOB_H

#include "app/job_resources.h"
#include "base/strbuf.h"

/*
 * `run --fit`: changes a job so that its pods fit on this machine.
 *
 * - GPUs: as many pods as there are GPUs for, at least one of each replica type.  If those are too many
 *   already, no pod has GPUs.
 * - CPU and memory: if the pods ask for more than there is, none asks for any.
 * - Other devices are left out.
 *
 * Appends a line for each change to notes.  Pure.
 */
void hf_fit_job(const struct hf_local_machine *machine, struct hf_manifest *job,
		struct hf_strbuf *notes);

#endif
