/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_MIG_INSTANCES_H
#define HF_PROBES_MIG_INSTANCES_H

#include "health/types.h"

HF_BEGIN_DECLS

/*
 * Parts of devices that are handed out by themselves (MIG: a GPU cut into instances), and whose
 * parts they are.  The kubelet tells of a part alone; what is sick is the device.
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

/* Twice what 64 GPUs can be cut into.  Those that are no more are known for as long as there is room: who held
 * them is asked for afterwards, and a lost GPU does not tell its instances. */
#define HF_MIG_INSTANCES_MAX 1024

struct hf_mig_instances *hf_mig_instances_create(void);
struct hf_mig_instances *hf_mig_instances_destroy(
	struct hf_mig_instances *parts); /* NULL is fine; returns NULL */
/* It is there now.  Where there is no room it takes that of the one that was told of longest ago.  True: that
 * is news. */
bool hf_mig_instances_tell(struct hf_mig_instances *parts, const struct hf_mig_instance *part,
			   hf_time now);
/* Of a part by the id that its plugin or DRA driver gives it; false: it is none, or whose it is nobody has said.
 * Two kinds of names say it themselves: those of drivers before R470, "MIG-GPU-<uuid>/<GI>/<CI>", and claims'
 * "gpu-0-mig-…".  name stays "" then. */
bool hf_mig_instances_find(const struct hf_mig_instances *parts, const char *id,
			   struct hf_mig_instance *ret_part);

HF_END_DECLS

#endif
