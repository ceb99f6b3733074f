/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_LOCAL_CHECK_H
#define HF_APP_LOCAL_CHECK_H

#include "cli/job_manifest.h"

/*
 * The function for cli->check_here: reports what keeps the pods of a job from ever running on this machine,
 * as far as the manifest alone decides it.  That is what the kubelet refuses (kubelet/check.h), resources
 * that the machine lacks, and, as a warning, what the kubelet ignores.
 */
void hf_local_check(const struct hf_manifest *job, hf_finding_fn found, void *arg);

/* What a machine has. */
struct hf_local_machine {
	int64_t cpus;
	int64_t memory_bytes;
};
/* The part of hf_local_check about resources, for a given machine.  Pure. */
void hf_local_check_resources(const struct hf_manifest *job, const struct hf_local_machine *machine,
			      hf_finding_fn found, void *arg);

#endif
