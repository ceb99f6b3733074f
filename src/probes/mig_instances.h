/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_MIG_INSTANCES_H
#define HF_PROBES_MIG_INSTANCES_H

#include "health/types.h"

HF_BEGIN_DECLS

/*
 * MIG instances: parts of a GPU that device plugins hand out like devices. The kubelet names only
 * the instance that a container holds, and faults are of a GPU, so this list maps one to the other.
 */

#define HF_MIG_PREFIX "MIG-"
/* Limit of instance numbers. NVML uses 0 to 14. */
#define HF_MIG_GPU_INSTANCE_MAX 64

struct hf_mig_instance {
	char name[HF_HEALTH_UUID_MAX];   /* "MIG-" and a UUID */
	char device[HF_HEALTH_UUID_MAX]; /* any name of the GPU that the instance is a part of */
	/* number of the GPU instance that the instance is, or lies in; -1: not known */
	int32_t instance;
};

struct hf_mig_instances;

/* Limit of the list: twice the instances of 64 GPUs. Instances that no longer exist stay while
 * there is room, because a lost GPU does not list its instances and past holders are looked up
 * later. */
#define HF_MIG_INSTANCES_MAX 1024

struct hf_mig_instances *hf_mig_instances_create(void);
struct hf_mig_instances *hf_mig_instances_destroy(
	struct hf_mig_instances *instances); /* NULL is fine; returns NULL */
/* Notes that the instance exists now. If the list is full, drops the instance whose last report is
 * oldest. True: the instance is new or has changed. */
bool hf_mig_instances_add(struct hf_mig_instances *instances, const struct hf_mig_instance *mig,
			  hf_time now);
/* Finds the GPU of an instance by the id that a device plugin or DRA driver uses. False: the id
 * names no instance, or its GPU is unknown. Two kinds of ids contain the GPU's name:
 * "MIG-GPU-<uuid>/<GI>/<CI>" of drivers before R470, and "gpu-0-mig-…" of claims. For these,
 * ret_mig's name stays "". */
bool hf_mig_instances_find(const struct hf_mig_instances *instances, const char *id,
			   struct hf_mig_instance *ret_mig);

HF_END_DECLS

#endif
