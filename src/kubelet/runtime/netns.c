/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/netns_internal.h"

#include "base/fs.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Sends rtnetlink messages to make interfaces, addresses and routes for pods, and enters
 * namespaces. Works without the ip program.
 */

#define POD_INTERFACE "eth0"
#define TAP_LOOK_MS 5

/* A request to the kernel with its attributes; the largest request of this file fits into the
 * body. */
struct message {
	struct nlmsghdr head;
	char body[1024];
};

void hf_net_ip_format(uint32_t ip, char ret_text[HF_NET_IP_MAX])
{
	(void)snprintf(ret_text, HF_NET_IP_MAX, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255,
		       ip >> 8 & 255, ip & 255);
}

int hf_net_ip_parse(const char *text, uint32_t *ret_ip, struct hf_error *err)
{
	struct in_addr addr;

	if (inet_pton(AF_INET, text, &addr) != 1)
		return hf_error_set(err, HF_E_INVALID, "'%s' is not an IPv4 address", text);
	*ret_ip = ntohl(addr.s_addr);
	return 0;
}

/* --- messages --- */

static void *append_bytes(struct message *m, const void *bytes, size_t len)
{
	char *at = (char *)m + NLMSG_ALIGN(m->head.nlmsg_len);

	hf_assert(at + len <= m->body + sizeof(m->body));
	if (bytes)
		memcpy(at, bytes, len);
	m->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(m->head.nlmsg_len) + len);
	return at;
}

static void start_message(struct message *m, uint16_t type, uint16_t flags, const void *head,
			  size_t len)
{
	memset(m, 0, sizeof(*m));
	m->head.nlmsg_len = NLMSG_LENGTH(0);
	m->head.nlmsg_type = type;
	m->head.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	append_bytes(m, head, len);
}

static struct rtattr *put_attr(struct message *m, uint16_t type, const void *bytes, size_t len)
{
	struct rtattr attr = {.rta_len = (uint16_t)RTA_LENGTH(len), .rta_type = type};
	struct rtattr *at = append_bytes(m, &attr, sizeof(attr));

	if (len)
		append_bytes(m, bytes, len);
	return at;
}

static void put_str(struct message *m, uint16_t type, const char *s)
{
	put_attr(m, type, s, strlen(s) + 1);
}

/* Closes the nested attribute that put_attr(m, type, NULL, 0) opened. */
static void close_nest(struct message *m, struct rtattr *nest)
{
	nest->rta_len = (uint16_t)((char *)m + m->head.nlmsg_len - (char *)nest);
}

/* Sends a request and waits for the kernel's reply: an error number (0: done), and before it, for
 * a query, an object. Returns an errno. */
static int exchange_messages(int fd, struct message *m, struct message *ret_object)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	union {
		struct nlmsghdr head;
		char bytes[8192];
	} reply;

	if (sendto(fd, m, m->head.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return errno;
	for (;;) {
		ssize_t n = recv(fd, &reply, sizeof(reply), 0);
		int left = (int)n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		for (struct nlmsghdr *h = &reply.head; left > 0 && NLMSG_OK(h, (unsigned)left);
		     h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_ERROR)
				return -((struct nlmsgerr *)NLMSG_DATA(h))->error;
			if (ret_object)
				memcpy(ret_object, h,
				       h->nlmsg_len < sizeof(*ret_object) ? h->nlmsg_len
									  : sizeof(*ret_object));
		}
	}
}

int hf_net_socket(struct hf_error *err)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		(void)hf_error_errno(err, errno, "cannot open a netlink socket");
	return fd;
}

static int request_change(int fd, struct message *m, const char *what, struct hf_error *err)
{
	int errnum = exchange_messages(fd, m, NULL);

	return errnum ? hf_error_errno(err, errnum, "cannot %s", what) : 0;
}

static int index_of(int fd, const char *name, int *ret_index, struct hf_error *err)
{
	struct ifinfomsg info = {.ifi_family = AF_UNSPEC};
	struct message m, object;
	int errnum;

	memset(&object, 0, sizeof(object));
	start_message(&m, RTM_GETLINK, 0, &info, sizeof(info));
	put_str(&m, IFLA_IFNAME, name);
	errnum = exchange_messages(fd, &m, &object);
	if (errnum)
		return hf_error_errno(err, errnum, "cannot find interface '%s'", name);
	*ret_index = ((struct ifinfomsg *)NLMSG_DATA(&object.head))->ifi_index;
	return 0;
}

static int set_up(int fd, const char *name, struct hf_error *err)
{
	struct ifinfomsg info = {
		.ifi_family = AF_UNSPEC, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
	struct message m;

	start_message(&m, RTM_NEWLINK, 0, &info, sizeof(info));
	put_str(&m, IFLA_IFNAME, name);
	return request_change(fd, &m, "bring an interface up", err);
}

static int add_address(int fd, const char *name, const char *ip, int prefix, struct hf_error *err)
{
	struct ifaddrmsg info = {.ifa_family = AF_INET, .ifa_prefixlen = (unsigned char)prefix};
	struct message m;
	uint32_t address;
	int index = 0;
	int rc = index_of(fd, name, &index, err);

	if (!rc)
		rc = hf_net_ip_parse(ip, &address, err);
	if (rc)
		return rc;
	address = htonl(address);
	info.ifa_index = (unsigned)index;
	start_message(&m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof(info));
	put_attr(&m, IFA_LOCAL, &address, sizeof(address));
	put_attr(&m, IFA_ADDRESS, &address, sizeof(address));
	return request_change(fd, &m, "give an interface its address", err);
}

static int add_default_route(int fd, const char *gateway, struct hf_error *err)
{
	struct rtmsg info = {.rtm_family = AF_INET,
			     .rtm_table = RT_TABLE_MAIN,
			     .rtm_protocol = RTPROT_STATIC,
			     .rtm_scope = RT_SCOPE_UNIVERSE,
			     .rtm_type = RTN_UNICAST};
	struct message m;
	uint32_t address;
	int rc = hf_net_ip_parse(gateway, &address, err);

	if (rc)
		return rc;
	address = htonl(address);
	start_message(&m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof(info));
	put_attr(&m, RTA_GATEWAY, &address, sizeof(address));
	return request_change(fd, &m, "set the default route", err);
}

static int add_bridge(int fd, const char *name, struct hf_error *err)
{
	struct ifinfomsg info = {
		.ifi_family = AF_UNSPEC, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
	struct message m;
	struct rtattr *link;

	start_message(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof(info));
	put_str(&m, IFLA_IFNAME, name);
	link = put_attr(&m, IFLA_LINKINFO, NULL, 0);
	put_str(&m, IFLA_INFO_KIND, "bridge");
	close_nest(&m, link);
	return request_change(fd, &m, "make a bridge", err);
}

static void remove_link(int fd, const char *name)
{
	struct ifinfomsg info = {.ifi_family = AF_UNSPEC};
	struct message m;

	start_message(&m, RTM_DELLINK, 0, &info, sizeof(info));
	put_str(&m, IFLA_IFNAME, name);
	(void)exchange_messages(fd, &m, NULL);
}

/* Makes a veth pair: a port of the bridge in the socket's namespace, and eth0 in netns_fd's. */
static int add_veth(int fd, const char *name, int bridge, int netns_fd, struct hf_error *err)
{
	struct ifinfomsg info = {
		.ifi_family = AF_UNSPEC, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
	struct ifinfomsg peer_info = {.ifi_family = AF_UNSPEC};
	const unsigned mtu = HF_NET_MTU;
	struct message m;
	struct rtattr *link, *data, *peer;

	start_message(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof(info));
	put_str(&m, IFLA_IFNAME, name);
	put_attr(&m, IFLA_MASTER, &bridge, sizeof(bridge));
	put_attr(&m, IFLA_MTU, &mtu, sizeof(mtu));
	link = put_attr(&m, IFLA_LINKINFO, NULL, 0);
	put_str(&m, IFLA_INFO_KIND, "veth");
	data = put_attr(&m, IFLA_INFO_DATA, NULL, 0);
	peer = put_attr(&m, VETH_INFO_PEER, NULL, 0);
	append_bytes(&m, &peer_info, sizeof(peer_info));
	put_str(&m, IFLA_IFNAME, POD_INTERFACE);
	put_attr(&m, IFLA_MTU, &mtu, sizeof(mtu));
	put_attr(&m, IFLA_NET_NS_FD, &netns_fd, sizeof(netns_fd));
	close_nest(&m, peer);
	close_nest(&m, data);
	close_nest(&m, link);
	return request_change(fd, &m, "make a veth pair", err);
}

/* --- the two kinds of namespace --- */

int hf_net_node_setup(struct hf_error *err)
{
	HF_AUTO_FD fd = hf_net_socket(err);
	int rc;

	if (fd < 0)
		return HF_E_IO;
	rc = set_up(fd, "lo", err);
	if (!rc)
		rc = add_bridge(fd, HF_NET_BRIDGE, err);
	if (!rc)
		rc = add_address(fd, HF_NET_BRIDGE, HF_NET_NODE_IP, HF_NET_PREFIX, err);
	return rc;
}

int hf_net_node_join_tap(int timeout_ms, struct hf_error *err)
{
	HF_AUTO_FD fd = hf_net_socket(err);
	struct ifinfomsg info = {
		.ifi_family = AF_UNSPEC, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
	struct message m;
	int bridge = 0, tap = 0, rc;

	if (fd < 0)
		return HF_E_IO;
	rc = index_of(fd, HF_NET_BRIDGE, &bridge, err);
	if (rc)
		return rc;
	while ((rc = index_of(fd, HF_NET_TAP, &tap, err)) != 0 && timeout_ms > 0) {
		timeout_ms -= TAP_LOOK_MS;
		(void)poll(NULL, 0, TAP_LOOK_MS);
	}
	if (rc)
		return rc;
	info.ifi_index = tap;
	start_message(&m, RTM_NEWLINK, 0, &info, sizeof(info));
	put_attr(&m, IFLA_MASTER, &bridge, sizeof(bridge));
	return request_change(fd, &m, "put the tap on the bridge", err);
}

int hf_net_pod_setup(int node_socket, const char *ip, int prefix, const char *gateway,
		     struct hf_error *err)
{
	HF_AUTO_FD fd = hf_net_socket(err);
	HF_AUTO_FD self = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	char name[IFNAMSIZ];
	uint32_t address;
	int bridge = 0;
	int rc;

	if (fd < 0)
		return HF_E_IO;
	if (self < 0)
		return hf_error_errno(err, errno, "cannot open '/proc/self/ns/net'");
	rc = hf_net_ip_parse(ip, &address, err);
	if (!rc)
		rc = index_of(node_socket, HF_NET_BRIDGE, &bridge, err);
	if (rc)
		return rc;
	/* Name the interface after the address. An interface of a pod that has just ended may
	 * still have this name. */
	(void)snprintf(name, sizeof(name), "v%08x", address);
	remove_link(node_socket, name);
	rc = add_veth(node_socket, name, bridge, self, err);
	if (!rc)
		rc = set_up(fd, "lo", err);
	if (!rc)
		rc = add_address(fd, POD_INTERFACE, ip, prefix, err);
	if (!rc)
		rc = set_up(fd, POD_INTERFACE, err);
	if (!rc && gateway)
		rc = add_default_route(fd, gateway, err);
	return rc;
}

/* --- user namespaces --- */

static int write_proc(const char *path, const char *text, struct hf_error *err)
{
	HF_AUTO_FD fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return hf_error_errno(err, errno, "cannot write '%s'", path);
	return 0;
}

int hf_net_user_ns(struct hf_error *err)
{
	char uid[64], gid[64];
	int rc;

	(void)snprintf(uid, sizeof(uid), "%u %u 1", geteuid(), geteuid());
	(void)snprintf(gid, sizeof(gid), "%u %u 1", getegid(), getegid());
	if (unshare(CLONE_NEWUSER) < 0)
		return hf_error_errno(err, errno, "cannot make a user namespace");
	/* The kernel lets an unprivileged process map its group only after "deny" was written to
	 * setgroups. */
	rc = write_proc("/proc/self/setgroups", "deny", err);
	if (!rc)
		rc = write_proc("/proc/self/uid_map", uid, err);
	if (!rc)
		rc = write_proc("/proc/self/gid_map", gid, err);
	return rc;
}

int hf_net_enter(int netns_fd, bool want_net, struct hf_error *err)
{
	HF_AUTO_FD owner = ioctl(netns_fd, NS_GET_USERNS);
	struct stat owner_stat, self_stat;

	/* EPERM: the owner is a user namespace above the present one, so this process may enter
	 * the network namespace as it is. */
	if (owner < 0 && errno != EPERM)
		return hf_error_errno(err, errno,
				      "cannot find the owner of the node's network namespace");
	if (owner >= 0) {
		if (fstat(owner, &owner_stat) < 0 || stat("/proc/self/ns/user", &self_stat) < 0)
			return hf_error_errno(err, errno, "cannot compare user namespaces");
		if (owner_stat.st_ino != self_stat.st_ino && setns(owner, CLONE_NEWUSER) < 0)
			return hf_error_errno(err, errno, "cannot enter the node's user namespace");
	}
	if (want_net && setns(netns_fd, CLONE_NEWNET) < 0)
		return hf_error_errno(err, errno, "cannot enter the node's network namespace");
	return 0;
}
