/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_NETNS_INTERNAL_H
#define HF_LOCAL_NETNS_INTERNAL_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Network namespaces by rtnetlink, without the ip program.
 *
 * The node's namespace has a bridge; each pod's has eth0, one end of a veth pair whose
 * other end is a port of the bridge.  A netlink socket belongs to the namespace it was
 * opened in, so a process that has gone on to a pod's namespace can still arrange the
 * node's through a socket from before.
 */
#define HF_NET_BRIDGE "hf0"
#define HF_NET_PREFIX 16
#define HF_NET_CIDR "10.244.0.0/16"
#define HF_NET_NODE_IP "10.244.0.1"    /* the bridge */
#define HF_NET_TAP "tap0"              /* port of the way out, where there is one */
#define HF_NET_GATEWAY_IP "10.244.0.2" /* ... its router: slirp4netns' second address */
#define HF_NET_DNS_IP "10.244.0.3"     /* ... and its third, which answers for DNS */
#define HF_NET_FIRST 0x0af40010u       /* 10.244.0.16 */
#define HF_NET_LAST 0x0af4fffeu        /* 10.244.255.254 */
#define HF_NET_HOST_FIRST 0x7f000102u  /* 127.0.1.2: pods on the machine's network */
#define HF_NET_HOST_LAST 0x7f0001feu

#define HF_NET_IP_MAX 16 /* dotted IPv4 and its NUL */
void hf_net_ip_format(uint32_t ip, char ret_text[HF_NET_IP_MAX]);
int hf_net_ip_parse(const char *text, uint32_t *ret_ip, struct hf_error *err) HF_MUST_CHECK;

/* A route socket of the calling process's namespace, or -1. */
int hf_net_socket(struct hf_error *err);
/* Make the namespace of the calling process the node's: lo, bridge, its address. */
int hf_net_node_setup(struct hf_error *err) HF_MUST_CHECK;
/* In the node's namespace: wait for the tap to appear, and make it a port of the bridge. */
int hf_net_node_join_tap(int timeout_ms, struct hf_error *err) HF_MUST_CHECK;
/* Give the namespace of the calling process lo and an eth0 on the node's bridge.  gateway may be
 * NULL: no default route, so that what leads outside fails at once instead of timing out. */
int hf_net_pod_setup(int node_socket, const char *ip, int prefix, const char *gateway,
		     struct hf_error *err) HF_MUST_CHECK;

/* Become root of a new user namespace with the same uid and gid. */
int hf_net_user_ns(struct hf_error *err) HF_MUST_CHECK;
/* Enter the network namespace of fd, and the user namespace that owns it first where that is
 * another than ours.  want_net false: only the latter. */
int hf_net_enter(int netns_fd, bool want_net, struct hf_error *err) HF_MUST_CHECK;

#endif
