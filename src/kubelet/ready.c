/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include <unistd.h>

/* Continues the start of the kubelet once the facts about the machine are known: prints notices
 * for the user, registers the Node, and starts the pods that waited. */

static const char *how_to_isolate(void)
{
	if (geteuid() == 0)
		return "root needs CAP_SYS_ADMIN, CAP_NET_ADMIN and a kernel with namespaces; a "
		       "container needs --privileged";
	return "to change that, run as root or allow user namespaces "
	       "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone; on Ubuntu "
	       "kernel.apparmor_restrict_unprivileged_userns=0)";
}

void hf_kubelet_probed(struct hf_kubelet *k)
{
	const char *uid;
	void *value;

	/* Called when the search for the network has ended, and when the search for GPUs has. Goes
	 * on after both. */
	if (!k->net_known || !hf_kubelet_gpus_known(k->gpus))
		return;
	k->probed = true;
	if (!k->isolate && k->network == HF_KUBELET_NETWORK_AUTO)
		hf_kubelet_notice(k,
				  "pods share this machine's network, so two jobs cannot use the "
				  "same port: %s; %s",
				  k->why, how_to_isolate());
	if (!k->isolate && !k->preload)
		hf_kubelet_notice(k,
				  "pods will not find each other by name: " HF_PRELOAD_FILE
				  " is missing; put it beside '%s'",
				  k->exe);
	if (k->isolate && !k->pid_ns)
		hf_kubelet_notice(k, "containers see all processes of this machine: %s", k->why);
	k->node = hf_kubelet_node_create(k);
	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);)
		hf_kubelet_pod_wake(value);
}
