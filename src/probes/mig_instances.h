/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_MIG_INSTANCES_H
#define HF_PROBES_MIG_INSTANCES_H

#include "health/types.h"

HF_BEGIN_DECLS

/*
 * MIG instances: parts of a GPU that device plugins hand out like devices, with the GPU of each.
 * The kubelet names only the instance; faults belong to the GPU.
 */

#define HF_MIG_PREFIX "MIG-"
/* NVML numbers GPU instances from 0 to 14. */
#define HF_MIG_GPU_INSTANCE_MAX 64

struct hf_mig_instance {
	char name[HF_HEALTH_UUID_MAX];   /* "MIG-" and a UUID */
	char device[HF_HEALTH_UUID_MAX]; /* any of its device's names */
	int32_t instance; /* the GPU instance that it is, or lies in; -1: not known */
};

struct hf_mig_instances;

/* Twice the instances of 64 GPUs. Former instances stay known while there is room: questions
 * about past holders come later, and a lost GPU does not list its instances. */
#define HF_MIG_INSTANCES_MAX 1024

struct hf_mig_instances *hf_mig_instances_create(void);
struct hf_mig_instances *hf_mig_instances_destroy(
	struct hf_mig_instances *instances); /* NULL is fine; returns NULL */
/* Notes that the instance exists now. A full list drops the instance that was named longest ago.
 * True: the instance is new or has changed. */
bool hf_mig_instances_add(struct hf_mig_instances *instances, const struct hf_mig_instance *mig,
			  hf_time now);
/* Finds an instance by the id of a device plugin or DRA driver; false: no instance, or one on an
 * unknown GPU. Two kinds of ids name the GPU themselves: "MIG-GPU-<uuid>/<GI>/<CI>" of drivers
 * before R470, and "gpu-0-mig-…" of claims. For these, name stays "". */
bool hf_mig_instances_find(const struct hf_mig_instances *instances, const char *id,
			   struct hf_mig_instance *ret_mig);

HF_END_DECLS

#endif
