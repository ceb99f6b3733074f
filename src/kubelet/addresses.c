/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"
#include "kubelet/runtime/netns_internal.h"

#include "base/fs.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* Finds and gives out addresses: those of pods, and that of the machine. */

/* an address reserved for documentation (RFC 5737): packets to it would leave by the machine's
 * default route */
#define ELSEWHERE "192.0.2.1"
#define ANY_PORT 9

void hf_kubelet_machine_ip(char ret_text[16])
{
	/* Finds the machine's address: to connect a datagram socket sends nothing, but chooses the
	 * route and the local address of the route. */
	HF_AUTO_FD fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(ANY_PORT)};
	socklen_t len = sizeof(at);

	ret_text[0] = '\0';
	if (fd < 0 || inet_pton(AF_INET, ELSEWHERE, &at.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		return;
	hf_net_ip_format(ntohl(at.sin_addr.s_addr), ret_text);
}

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

/* Returns a free address for a pod. The addresses are given out in a circle, so that an address is
 * reused late: the interface of a pod that has just ended may still exist. */
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
