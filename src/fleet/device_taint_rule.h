/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FLEET_DEVICE_TAINT_RULE_H
#define HF_FLEET_DEVICE_TAINT_RULE_H

#include "base/arena.h"
#include "health/dra_devices.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * ResourceSlice and DeviceTaintRule of resource.k8s.io: reads the devices of slices, makes and reads Holdfast's rules.
 * A rule takes exactly one device out of use: its selector always names driver, pool and device. Pure.
 */

/* The label of Holdfast's rules, and its value. */
#define HF_DEVICE_TAINT_OWNER_LABEL "app.kubernetes.io/managed-by"
#define HF_DEVICE_TAINT_OWNER "holdfast"
/* Annotations of a rule: the node, and the UUID of the device (without a UUID its PCI address). */
#define HF_DEVICE_TAINT_NODE "holdfast.dev/node"
#define HF_DEVICE_TAINT_GPU "holdfast.dev/gpu"
/* Limits of the API: devices of a slice, bytes of a name. */
#define HF_SLICE_DEVICES_MAX 128
#define HF_DEVICE_TAINT_NAME_MAX 253

/* Reads a slice; its texts belong to the document. Returns false if the document is no slice with a driver, a pool
 * and a generation. */
bool hf_slice_read(struct hf_doc *doc, struct hf_arena *arena, struct hf_dra_slice *ret_slice);

struct hf_device_taint {
	const char *name;
	const char *node, *gpu; /* by the annotations */
	const char *driver, *pool, *device;
	const char *cls;    /* value of the taint */
	const char *effect; /* None, NoSchedule or NoExecute */
};

/* Makes the name of the rule of a device: node, device, and a hash of all three names of the device. */
const char *hf_device_taint_name(struct hf_arena *arena, const char *node,
				 const struct hf_dra_match *device);
/* Makes the rule. version: "v1" or "v1beta2". The Node with this UID owns the rule. */
struct hf_json *hf_device_taint_json(const struct hf_device_taint *rule, const char *version,
				     const char *node_uid);
/* Makes the merge patch that changes class and effect of this version of a rule. */
struct hf_json *hf_device_taint_patch(const char *resource_version, const char *cls,
				      const char *effect);
/* Reads a rule; its texts belong to the document. Returns false if the rule is not Holdfast's: the label or an
 * annotation is missing, or the selector does not name exactly one device. */
bool hf_device_taint_read(struct hf_doc *doc, struct hf_device_taint *ret_rule);

HF_END_DECLS

#endif
