/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_HEALTH_H
#define HF_TESTS_HARNESS_HEALTH_H

#include "health/step.h"

HF_BEGIN_DECLS

/*
 * A node for tests of the health step: GPUs gpu-0, gpu-1 … and ports port-0, port-1 …. All
 * detectors report at each step. Samples, evidence and orders that the test adds go into the next
 * step and are dropped after it.
 */
#define HEALTH_ITEMS_MAX 256

struct health_node {
	struct hf_arena *arenas[2];
	int turn;
	hf_time now;
	const char *boot; /* "boot" at first */
	hf_time boot_at;  /* NONE at first */
	struct hf_health_config config;
	struct hf_health_memory memory;
	struct hf_health_plan plan;
	struct hf_health_presence devices[HF_HEALTH_DEVICES_MAX];
	size_t devices_len;
	struct hf_health_sample samples[HEALTH_ITEMS_MAX];
	size_t samples_len;
	struct hf_health_evidence evidence[HEALTH_ITEMS_MAX];
	size_t evidence_len;
	struct hf_health_order orders[HEALTH_ITEMS_MAX];
	size_t orders_len;
};

void health_init(struct health_node *n, int gpus, int ports);
void health_release(struct health_node *n);
/* Advances the clock by `span`, then runs a step. */
void health_step(struct health_node *n, hf_time span);
/* Adds a sample for the next step; the caller fills in its values. */
struct hf_health_sample *health_sample(struct health_node *n, enum hf_health_detector detector,
				       const char *device);
struct hf_health_evidence *health_xid(struct health_node *n, int code, const char *device);
/* Adds an order for the next step, with the time of that step unless the test sets another. */
void health_order(struct health_node *n, enum hf_health_order_kind kind,
		  enum hf_health_action action, const char *device);
struct hf_health_device *health_device(struct health_node *n, const char *device);
/* Returns the open fault of a device with this detector and code; NULL: there is none. */
const struct hf_health_fault *health_fault(struct health_node *n, const char *device,
					   enum hf_health_detector detector, int code);

HF_END_DECLS

#endif
