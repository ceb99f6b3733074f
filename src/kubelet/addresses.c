/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"
#include "kubelet/runtime/netns_internal.h"

/* The addresses of pods. */

static bool ip_is_taken(const struct hf_kubelet *k, uint32_t ip)
{
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);) {
		const struct hf_kubelet_pod *pod = value;

		if (pod->ip == ip && pod->state != HF_KUBELET_POD_ENDED)
			return true;
	}
	return false;
}

/* Returns the next free address. Addresses are reused as late as possible, because the interface of
 * a pod that has just ended may still exist. */
uint32_t hf_kubelet_take_ip(struct hf_kubelet *k)
{
	uint32_t first = k->isolate ? HF_NET_FIRST : HF_NET_HOST_FIRST;
	uint32_t last = k->isolate ? HF_NET_LAST : HF_NET_HOST_LAST;

	do
		k->last_ip = k->last_ip < first || k->last_ip >= last ? first : k->last_ip + 1;
	while (ip_is_taken(k, k->last_ip));
	return k->last_ip;
}

void hf_kubelet_skip_known_ips(struct hf_kubelet *k)
{
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);) {
		const struct hf_kubelet_pod *pod = value;

		if (pod->ip > k->last_ip)
			k->last_ip = pod->ip;
	}
}
