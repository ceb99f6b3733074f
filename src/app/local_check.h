/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_LOCAL_CHECK_H
#define HF_APP_LOCAL_CHECK_H

#include "app/job_resources.h"

/*
 * The function for cli->check_here: reports what keeps the pods of a job from ever running on this machine,
 * as far as the manifest alone decides it.  That is what the kubelet refuses (kubelet/check.h), resources
 * that the machine lacks, and, as a warning, what the kubelet ignores.  With the flag --fit, resources are
 * left out: app/fit_job.h changes the job.
 */
void hf_local_check(const struct hf_cli *cli, const struct hf_manifest *job, hf_finding_fn found,
		    void *arg);

/* Return the resources of this machine that pods may use; --gpus can limit the GPUs. GPUs are
 * counted only if the job asks for some. */
struct hf_local_machine hf_local_machine_of(const struct hf_cli *cli,
					    const struct hf_manifest *job);

/* Report only the problems with resources, for a given machine. Pure. */
void hf_local_check_resources(const struct hf_manifest *job, const struct hf_local_machine *machine,
			      hf_finding_fn found, void *arg);

#endif
