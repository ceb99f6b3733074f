/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/str.h"

#include <inttypes.h>

/*
 * Tells of ports of the machine that several pods with hostNetwork name. Upstream's scheduler
 * keeps such pods apart, but one machine has no other node, and a manifest may name a port that no
 * program uses: each PyTorch worker names the master's port. So the pod starts, and an Event names
 * the other pod.
 */

struct wanted {
	int64_t port;
	const char *protocol;
};

static struct wanted wanted_port(const struct hf_json *port)
{
	return (struct wanted){
		.port = hf_json_i64(hf_json_get(port, "hostPort"),
				    hf_json_i64(hf_json_get(port, "containerPort"), 0)),
		.protocol = hf_str_or(hf_json_path_str(port, "protocol", NULL), "TCP"),
	};
}

static bool pod_wants(const struct hf_kubelet_pod *pod, const struct wanted *w)
{
	for (size_t i = 0; i < pod->n; i++) {
		const struct hf_json *ports = hf_json_get(pod->containers[i].spec, "ports");

		for (size_t k = 0; k < hf_json_len(ports); k++) {
			struct wanted other = wanted_port(hf_json_item(ports, k));

			if (other.port == w->port && hf_streq(other.protocol, w->protocol))
				return true;
		}
	}
	return false;
}

static const struct hf_kubelet_pod *find_rival(const struct hf_kubelet_pod *pod,
					       const struct wanted *w)
{
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(pod->kubelet->pods, &it, &uid, &value);) {
		const struct hf_kubelet_pod *other = value;

		if (other != pod && hf_kubelet_pod_active(other) && other->config.host_network &&
		    pod_wants(other, w))
			return other;
	}
	return NULL;
}

static void tell_shared_ports(struct hf_kubelet_pod *pod, const struct hf_json *container)
{
	const struct hf_json *ports = hf_json_get(container, "ports");

	for (size_t i = 0; i < hf_json_len(ports); i++) {
		struct wanted w = wanted_port(hf_json_item(ports, i));
		const struct hf_kubelet_pod *rival = w.port > 0 ? find_rival(pod, &w) : NULL;

		if (rival)
			hf_kubelet_event(pod, "Normal", "HostPortShared",
					 "hostNetwork: pod %s/%s names port %" PRId64
					 "/%s of this machine too; if both listen on it, the "
					 "second one fails",
					 rival->ns, rival->name, w.port, w.protocol);
	}
}

void hf_kubelet_pod_tell_shared_ports(struct hf_kubelet_pod *pod)
{
	if (!pod->config.host_network)
		return;
	for (size_t i = 0; i < pod->n; i++)
		tell_shared_ports(pod, pod->containers[i].spec);
}
