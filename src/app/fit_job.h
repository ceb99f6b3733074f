/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_FIT_JOB_H
#define HF_APP_FIT_JOB_H

#include "app/job_resources.h"
#include "base/strbuf.h"

/*
 * `run --fit`: changes a job so that its pods fit on this machine.
 *
 * - GPUs: reduces the replicas until the GPUs are enough for all pods, but keeps one pod of each replica
 *   type.  If the GPUs are not enough for these either, removes GPUs from all pods.
 * - CPU and memory: if the pods together ask for more than the machine has, removes the resource from all
 *   pods.
 * - Devices that are not GPUs are removed from all pods.
 *
 * Appends a line for each change to notes.  Pure.
 */
void hf_fit_job(const struct hf_local_machine *machine, struct hf_manifest *job,
		struct hf_strbuf *notes);

#endif
