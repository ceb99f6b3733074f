/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FRAMEWORK_MPI_WIRE_INTERNAL_H
#define HF_FRAMEWORK_MPI_WIRE_INTERNAL_H

#include "core/model/framework.h"

HF_BEGIN_DECLS

/* Names, paths and texts inside an MPIJob's pods. Images, mpirun, horovodrun and users' scripts
 * depend on them, so they equal upstream 1.9's, byte for byte. Do not reword them. */
#define MPI_CONFIG_VOLUME "mpi-job-config"
#define MPI_CONFIG_PATH "/etc/mpi"
#define MPI_KUBECTL_VOLUME "mpi-job-kubectl"
#define MPI_KUBECTL_PATH "/opt/kube"
#define MPI_KUBECTL_CONTAINER "kubectl-delivery"
#define MPI_KUBECTL_IMAGE "ghcr.io/kubeflow/training-v1/kubectl-delivery:latest"
#define MPI_HOSTFILE "hostfile"
#define MPI_KUBEXEC "kubexec.sh"
#define MPI_DISCOVER_HOSTS "discover_hosts.sh"

/* Host names are the job's pod names. Every text is allocated in the arena. */
const char *hf_mpi_launcher(struct hf_arena *arena, const char *job); /* "<job>-launcher" */
const char *hf_mpi_config(struct hf_arena *arena, const char *job);   /* "<job>-config" */

/* The hostfile: one line for each host. The launcher comes first if it is a host, then all
 * workers. */
const char *hf_mpi_hostfile(struct hf_arena *arena, const char *job, int32_t workers, int64_t slots,
			    bool launcher_computes);
/* The remote shell script of mpirun. */
const char *hf_mpi_kubexec(struct hf_arena *arena, const char *main_container);
/* The script that lists the running workers, for elastic Horovod. workers is an array of names,
 * which this function sorts. */
const char *hf_mpi_discover_hosts(struct hf_arena *arena, const char *job, const char **workers,
				  size_t workers_len, int64_t slots, bool launcher_computes);

HF_END_DECLS

#endif
