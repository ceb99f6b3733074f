/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FLEET_GIVEN_PODS_H
#define HF_FLEET_GIVEN_PODS_H

#include "api/device_health.h"

/*
 * The pods of one node that its device plugin has given a failed device, as far as this process has seen them.
 *
 * Such a pod may fail on the device before its eviction. Its owner makes another pod, and the plugin gives that pod the
 * device too. So pods that have ended there count like evicted ones.
 */

#define HF_GIVEN_PODS_MAX 64 /* further pods do not count */

struct hf_given_pods {
	struct hf_given_pod {
		uint64_t uid; /* hash */
		bool late;    /* the pod came after the first call */
		bool ended;
	} items[HF_GIVEN_PODS_MAX];
	size_t len;
};

/* Remembers the pods on devices that stop their pods. late: this is not the first call. health may be NULL. */
void hf_given_pods_note(struct hf_given_pods *pods, const struct hf_device_health *health,
			bool late);
/* Returns how many pods that came later have ended. */
int32_t hf_given_pods_count(const struct hf_given_pods *pods);

#endif
