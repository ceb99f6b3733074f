/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_NODE_HEALTH_H
#define HF_APP_NODE_HEALTH_H

#include "agent/agent.h"
#include "kubelet/kubelet.h"
#include "loop/loop.h"
#include "store/store.h"

/*
 * The agent of the embedded plane.  It serves ranks under `holdfast exec`.  It also watches the GPUs that the kubelet
 * offers, with the probes of `holdfast agent` except PodResources: the kubelet of this process names the owners of GPUs.  A
 * GPU that fails is reported to the kubelet, so that a restarted rank gets another GPU.
 *
 * With GPUs it starts this program as a child ("agent --nvml-child").
 */
struct hf_node_health;

struct hf_node_health_options {
	struct hf_loop *loop;
	struct hf_store *store;
	struct hf_kubelet *kubelet; /* outlives the object */
	bool gpus;                  /* the node offers GPUs, and the agent watches them */
	/* Called when the agent sends a process under `holdfast exec` its target: whether the
	 * process shall be started again or held. peer: the connection of the `holdfast exec`. */
	void (*send_target)(void *arg, struct hf_exec_peer *peer,
			    const struct hf_process_target *target);
	const char *journal; /* folder of the agent's journal; NULL: the agent keeps no journal */
};

int hf_node_health_create(const struct hf_node_health_options *options,
			  struct hf_node_health **ret_health, struct hf_error *err) HF_MUST_CHECK;
struct hf_agent *hf_node_health_agent(struct hf_node_health *health);
/* NULL is fine; returns NULL. */
struct hf_node_health *hf_node_health_destroy(struct hf_node_health *health);

#endif
