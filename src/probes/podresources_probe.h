/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_PODRESOURCES_PROBE_H
#define HF_PROBES_PODRESOURCES_PROBE_H

#include "probes/podresources.h"
#include "probes/probe.h"

HF_BEGIN_DECLS

/*
 * The probe `kubelet`: the holdings, the number of allocatable devices (detector `count`), and the
 * presence of kubelet and device plugin (detector `plugin`).
 *
 * The probe reports as gone only what was present since the agent started: a kubelet without this
 * service, or a node without a plugin, is no fault. A resource that an earlier agent reported as
 * gone stays gone until it is back.
 */
struct hf_kubelet_options {
	const char *socket_path; /* "" or NULL: off, and reported as off */
	hf_time every;           /* 0: ten seconds */
	hf_time timeout;         /* of a question; 0: five seconds */
	/* Resources that are whole devices, NULL-terminated; NULL: "nvidia.com/gpu", "amd.com/gpu".
	 * The first of them that the kubelet has is what is counted. */
	const char *const *resources;
	/* A resource is held to be gone, from before this process.  Asked while none was seen; NULL: none is. */
	bool (*was_gone)(void *arg);
	void *arg;
};
#define HF_KUBELET_RESOURCES_MAX 16

struct hf_probe *hf_kubelet_probe_create(struct hf_intake *intake,
					 const struct hf_kubelet_options *options);

HF_END_DECLS

#endif
