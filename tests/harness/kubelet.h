/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_KUBELET_H
#define HF_TESTS_HARNESS_KUBELET_H

/* Messages of PodResources as a kubelet makes them. */

#include "harness/protobuf.h"

/* Adds a message ContainerDevices with one device, its topology, and a field of a newer version,
 * which readers must skip. */
static inline void hf_kubelet_device(struct hf_strbuf *to, unsigned field, const char *resource,
				     const char *id)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);

	hf_pb_text(&sb, 1, resource);
	hf_pb_text(&sb, 2, id);
	hf_pb_text(&sb, 3, "\x0a\x02\x08\x01");
	hf_pb_number(&sb, 77, UINT64_MAX);
	hf_pb_bytes(to, field, sb.data, sb.len);
}

/* A claim of one device. */
static inline void hf_kubelet_claim(struct hf_strbuf *to, const char *claim, const char *device)
{
	HF_AUTO_STRBUF cdi = HF_STRBUF_INIT(4096);
	HF_AUTO_STRBUF resource = HF_STRBUF_INIT(4096);
	HF_AUTO_STRBUF dynamic = HF_STRBUF_INIT(4096);

	hf_pb_text(&cdi, 1, "k8s.gpu.nvidia.com/device=gpu-1");
	hf_pb_bytes(&resource, 1, cdi.data, cdi.len);
	hf_pb_text(&resource, 2, "gpu.nvidia.com");
	hf_pb_text(&resource, 3, "node-a");
	hf_pb_text(&resource, 4, device);
	hf_pb_text(&dynamic, 2, claim);
	hf_pb_text(&dynamic, 3, "ml");
	hf_pb_bytes(&dynamic, 4, resource.data, resource.len);
	hf_pb_bytes(to, 5, dynamic.data, dynamic.len);
}

/* Adds a pod whose container holds one device, either of a device plugin or by a resource
 * claim. */
static inline void hf_kubelet_pod(struct hf_strbuf *to, const char *pod, const char *id,
				  const char *claim)
{
	HF_AUTO_STRBUF container = HF_STRBUF_INIT(4096);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);

	hf_pb_text(&container, 1, "trainer");
	hf_pb_text(&container, 3, "\x01\x02"); /* CPUs, packed */
	if (claim)
		hf_kubelet_claim(&container, claim, id);
	else
		hf_kubelet_device(&container, 2, "nvidia.com/gpu", id);
	/* Fields come in any order. */
	hf_pb_bytes(&sb, 3, container.data, container.len);
	hf_pb_text(&sb, 1, pod);
	hf_pb_text(&sb, 2, "ml");
	hf_pb_bytes(to, 1, sb.data, sb.len);
}

#endif
