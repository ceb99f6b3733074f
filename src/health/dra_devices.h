/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HEALTH_DRA_DEVICES_H
#define HF_HEALTH_DRA_DEVICES_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * Finds the devices of Kubernetes' dynamic resource allocation (DRA) that are one GPU.
 * Input: the ResourceSlices of one node, and the UUID and PCI address that the node's agent reports.  Output: driver,
 * pool and device, or the reason why there is no answer.  Pure.
 *
 * Promises:
 * - Only the newest generation of a pool counts, and only if all of its slices are known.
 * - A device is found only if exactly one device of the node matches.
 * - If a driver publishes a UUID, the UUID decides; names and addresses may move to another device.
 */

/* Devices of one answer: the GPU, and the partitions of it that a driver offers as devices. */
#define HF_DRA_MATCHES_MAX 32

struct hf_dra_device {
	const char *name;
	const char *uuid, *pci;               /* NULL: not published */
	const char *parent_uuid, *parent_pci; /* of a partition: the whole device; NULL: none */
};

struct hf_dra_slice {
	const char *driver, *pool;
	int64_t generation;
	int64_t pool_slices; /* how many slices this generation of the pool has */
	const struct hf_dra_device *devices;
	size_t len;
};

struct hf_dra_match {
	const char *driver, *pool, *device;
};

enum hf_dra_answer {
	HF_DRA_FOUND,
	HF_DRA_NONE,       /* no driver publishes the device */
	HF_DRA_INCOMPLETE, /* a pool is being rewritten, or a part of it is missing */
	HF_DRA_AMBIGUOUS,  /* more than one device matches */
	HF_DRA_ANSWERS
};

/* uuid and pci: NULL or "" if unknown.  The answer FOUND has at least one match; the whole device, if a driver
 * publishes it, comes first. */
enum hf_dra_answer hf_dra_find(const struct hf_dra_slice *slices, size_t len, const char *uuid,
			       const char *pci, struct hf_dra_match ret_matches[HF_DRA_MATCHES_MAX],
			       size_t *ret_len);

/* Whether the device of this name is another GPU: a driver may count its devices anew.  False: it is that GPU, no device
 * has the name, or a pool is incomplete. */
bool hf_dra_is_other(const struct hf_dra_slice *slices, size_t len, const struct hf_dra_match *name,
		     const char *uuid, const char *pci);

/* The devices that the driver offers: those of the newest generation of each of its pools, as far as its slices are known. */
int64_t hf_dra_count(const struct hf_dra_slice *slices, size_t len, const char *driver);

/* "no driver publishes the device" */
const char *hf_dra_answer_text(enum hf_dra_answer answer);

HF_END_DECLS

#endif
