/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_PARTS_H
#define HF_PROBES_PARTS_H

#include "health/types.h"

HF_BEGIN_DECLS

/*
 * Parts of devices that are handed out by themselves (MIG: a GPU cut into instances), and whose
 * parts they are.  The kubelet tells of a part alone; what is sick is the device.
 */

#define HF_PART_PREFIX "MIG-"
/* NVML numbers GPU instances from 0 to 14. */
#define HF_PART_INSTANCE_MAX 64

struct hf_part {
	char name[HF_HEALTH_UUID_MAX];   /* "MIG-" and a UUID */
	char device[HF_HEALTH_UUID_MAX]; /* any of its device's names */
	int32_t instance; /* the GPU instance that it is, or lies in; -1: not known */
};

struct hf_parts;

/* Twice what 64 GPUs can be cut into.  Those that are no more are known for as long as there is room: who held
 * them is asked for afterwards, and a lost GPU does not tell its instances. */
#define HF_PARTS_MAX 1024

struct hf_parts *hf_parts_create(void);
struct hf_parts *hf_parts_destroy(struct hf_parts *parts); /* NULL is fine; returns NULL */
/* It is there now.  Where there is no room it takes that of the one that was told of longest ago.  True: that
 * is news. */
bool hf_parts_tell(struct hf_parts *parts, const struct hf_part *part, hf_time now);
/* Of a part by the id that its plugin or DRA driver gives it; false: it is none, or whose it is nobody has said.
 * Two kinds of names say it themselves: those of drivers before R470, "MIG-GPU-<uuid>/<GI>/<CI>", and claims'
 * "gpu-0-mig-…".  name stays "" then. */
bool hf_parts_find(const struct hf_parts *parts, const char *id, struct hf_part *ret_part);

HF_END_DECLS

#endif
