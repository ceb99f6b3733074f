/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_PODRESOURCES_PROBE_H
#define HF_PROBES_PODRESOURCES_PROBE_H

#include "probes/podresources.h"
#include "probes/probe.h"

HF_BEGIN_DECLS

/*
 * The probe `kubelet`. It reports the holdings, the number of allocatable devices (detector
 * `count`), and whether kubelet and device plugin are present (detector `plugin`).
 *
 * The probe reports as gone only what was present since the agent started: a kubelet without
 * PodResources, or a node without a plugin, is no fault. A resource that an earlier agent reported
 * as gone stays gone until it is back.
 */
struct hf_kubelet_options {
	/* path of the kubelet's socket; "" or NULL: the probe is off and reports that */
	const char *socket_path;
	hf_time every;   /* how often the kubelet is asked; 0: every ten seconds */
	hf_time timeout; /* how long an answer may take; 0: five seconds */
	/* Resources that are whole devices; ends with NULL. NULL: "nvidia.com/gpu", "amd.com/gpu".
	 * Counted is the first of them that the kubelet has. */
	const char *const *resources;
	/* Whether an earlier agent reported a resource as gone. Called while this agent has seen no
	 * resource. NULL: none was gone. */
	bool (*was_gone)(void *arg);
	void *arg;
};
#define HF_KUBELET_RESOURCES_MAX 16

struct hf_probe *hf_kubelet_probe_create(struct hf_intake *intake,
					 const struct hf_kubelet_options *options);

HF_END_DECLS

#endif
