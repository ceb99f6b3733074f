/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBELET_RUNTIME_NETNS_INTERNAL_H
#define HF_KUBELET_RUNTIME_NETNS_INTERNAL_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Network namespaces by rtnetlink.
 *
 * The node's namespace has a bridge. Each pod's namespace has eth0, one end of a veth pair; the
 * other end is a port of the bridge. A netlink socket stays in the namespace where it was opened. A
 * process that has moved to a pod's namespace thus still configures the node's through an older
 * socket.
 */
#define HF_NET_BRIDGE "hf0"
#define HF_NET_PREFIX 16
#define HF_NET_CIDR "10.244.0.0/16"
#define HF_NET_NODE_IP "10.244.0.1" /* address of the bridge */
/* name of slirp4netns's interface, a port of the bridge that leads to other networks */
#define HF_NET_TAP "tap0"
#define HF_NET_GATEWAY_IP "10.244.0.2" /* slirp4netns: router of the pods */
#define HF_NET_DNS_IP "10.244.0.3"     /* slirp4netns: DNS server */
#define HF_NET_FIRST 0x0af40010u       /* 10.244.0.16 */
#define HF_NET_LAST 0x0af4fffeu        /* 10.244.255.254 */
/* 127.0.1.2: first address of pods on the machine's network */
#define HF_NET_HOST_FIRST 0x7f000102u
#define HF_NET_HOST_LAST 0x7f0001feu

/* Largest packet of the pods and of the way to other networks: the maximum of slirp4netns. Large
 * packets save work, because slirp4netns copies each packet. */
#define HF_NET_MTU 65520

#define HF_NET_IP_MAX 16 /* size of the text of an IPv4 address with its NUL */
void hf_net_ip_format(uint32_t ip, char ret_text[HF_NET_IP_MAX]);
int hf_net_ip_parse(const char *text, uint32_t *ret_ip, struct hf_error *err) HF_MUST_CHECK;

/* Opens a route socket in the network namespace of the calling process; -1 on an error. */
int hf_net_socket(struct hf_error *err);
/* Sets up the calling process's network namespace as the node's: the loopback interface, the
 * bridge, and the bridge's address. */
int hf_net_node_setup(struct hf_error *err) HF_MUST_CHECK;
/* Waits in the node's namespace until slirp4netns has made its interface, and makes it a port of
 * the bridge. */
int hf_net_node_join_tap(int timeout_ms, struct hf_error *err) HF_MUST_CHECK;
/* Sets up the calling process's network namespace as a pod's: the loopback interface, and an eth0
 * on the node's bridge. gateway NULL: no default route, so that connections to other networks fail
 * at once instead of timing out. */
int hf_net_pod_setup(int node_socket, const char *ip, int prefix, const char *gateway,
		     struct hf_error *err) HF_MUST_CHECK;

/* Enters a new user namespace, as its root. Outside of the namespace, the process keeps its uid
 * and gid. */
int hf_net_user_ns(struct hf_error *err) HF_MUST_CHECK;
/* Enters the network namespace netns_fd. If another user namespace owns it, enters that first.
 * want_net false: enters only the user namespace. */
int hf_net_enter(int netns_fd, bool want_net, struct hf_error *err) HF_MUST_CHECK;

#endif
