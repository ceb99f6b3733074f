/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/runtime/netns_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Resolves names. Each pod has a hosts file with itself and every service of its plane. It is bound
 * over /etc/hosts; without mount namespaces the preloaded library reads it. The file is rewritten
 * in place, because the bind would not show a new file under the old name.
 *
 * A headless service has the addresses of the pods that its selector matches. A service with a
 * cluster address has them too, if its ports are the pods' own: nothing here translates ports.
 *
 * A pod with hostNetwork has the machine's address. For readers on the machine's network that is the
 * loopback address, which works without any network card. Readers with a network of their own reach
 * the machine through the uplink, by the machine's address in its own network.
 */
#define FILE_BYTES_MAX ((size_t)4 << 20)

static bool selector_matches(const struct hf_json *selector, const struct hf_json *labels)
{
	const char *key;
	struct hf_json *value;

	for (void *it = NULL; (it = hf_json_next(selector, it, &key, &value));)
		if (!hf_streq(hf_json_str(value, ""), hf_json_str(hf_json_get(labels, key), NULL)))
			return false;
	return hf_json_len(selector) > 0;
}

/* Tells whether each targetPort equals the service's port. */
static bool ports_are_plain(const struct hf_json *ports)
{
	for (size_t i = 0; i < hf_json_len(ports); i++) {
		const struct hf_json *port = hf_json_item(ports, i);
		const struct hf_json *target = hf_json_get(port, "targetPort");

		if (target && hf_json_i64(target, -1) != hf_json_i64(hf_json_get(port, "port"), 0))
			return false;
	}
	return true;
}

static bool is_usable(const struct hf_json *spec)
{
	return hf_streq(hf_json_path_str(spec, "clusterIP", NULL), "None") ||
	       ports_are_plain(hf_json_get(spec, "ports"));
}

/* The reader of a hosts file, and the machine's address from the reader's view. */
struct reader {
	const struct hf_kubelet_pod *pod;
	/* address of the machine for the pod; "": the pod cannot reach the machine */
	char machine[HF_NET_IP_MAX];
};

static void init_reader(const struct hf_kubelet_pod *pod, struct reader *r)
{
	*r = (struct reader){.pod = pod};
	if (pod->config.host_network || !pod->config.isolate)
		(void)snprintf(r->machine, sizeof(r->machine), "%s", HF_KUBELET_HOST_IP);
	else if (pod->kubelet->uplink)
		hf_kubelet_machine_ip(r->machine);
}

/* Returns the address under which the reader reaches the pod. NULL: the pod does not run, or the
 * reader cannot reach it. */
static const char *address_of(const struct reader *r, const struct hf_kubelet_pod *pod)
{
	if (pod->state != HF_KUBELET_POD_RUNNING || !pod->spec_doc)
		return NULL;
	if (pod->config.host_network)
		return r->machine[0] ? r->machine : NULL;
	return pod->config.ip;
}

static void add_service(const struct reader *r, struct hf_doc *service, struct hf_strbuf *sb)
{
	const struct hf_kubelet *k = r->pod->kubelet;
	const struct hf_json *spec = hf_json_get(hf_doc_json(service), "spec");
	const char *ns = hf_doc_namespace(service), *name = hf_doc_name(service);
	const char *uid;
	void *value;

	if (!is_usable(spec))
		return;
	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);) {
		const struct hf_kubelet_pod *pod = value;
		const char *ip = address_of(r, pod);

		if (!ip || !hf_streq(pod->ns, ns) ||
		    !selector_matches(hf_json_get(spec, "selector"),
				      hf_json_path(hf_doc_json(pod->doc ? pod->doc : pod->spec_doc),
						   "metadata", "labels", NULL)))
			continue;
		hf_strbuf_addf(sb, "%s", ip);
		if (hf_streq(ns, r->pod->ns))
			hf_strbuf_addf(sb, " %s", name);
		hf_strbuf_addf(sb, " %s.%s %s.%s.svc %s.%s.svc.cluster.local\n", name, ns, name, ns,
			       name, ns);
	}
}

/* Adds the name HOSTNAME.SUBDOMAIN of each pod that sets spec.subdomain. HOSTNAME is spec.hostname,
 * or the pod's name if spec.hostname is not set. Upstream also requires a headless service with the
 * name of the subdomain; Holdfast does not check this. */
static void add_subdomains(const struct reader *r, struct hf_strbuf *sb)
{
	const struct hf_kubelet *k = r->pod->kubelet;
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);) {
		const struct hf_kubelet_pod *pod = value;
		const char *ip = address_of(r, pod);
		const char *subdomain = pod->spec_doc ? hf_json_path_str(hf_kubelet_pod_spec(pod),
									 "subdomain", NULL)
						      : NULL;
		const char *host = pod->config.hostname;

		if (!ip || hf_str_is_empty(subdomain))
			continue;
		hf_strbuf_addf(sb, "%s", ip);
		if (hf_streq(pod->ns, r->pod->ns))
			hf_strbuf_addf(sb, " %s.%s", host, subdomain);
		hf_strbuf_addf(sb, " %s.%s.%s.svc %s.%s.%s.svc.cluster.local\n", host, subdomain,
			       pod->ns, host, subdomain, pod->ns);
	}
}

static void add_aliases(const struct hf_kubelet_pod *pod, struct hf_strbuf *sb)
{
	const struct hf_json *aliases = hf_json_get(hf_kubelet_pod_spec(pod), "hostAliases");

	for (size_t i = 0; i < hf_json_len(aliases); i++) {
		const struct hf_json *alias = hf_json_item(aliases, i);
		const struct hf_json *names = hf_json_get(alias, "hostnames");

		hf_strbuf_addstr(sb, hf_str_or(hf_json_path_str(alias, "ip", NULL), "127.0.0.1"));
		for (size_t k = 0; k < hf_json_len(names); k++)
			hf_strbuf_addf(sb, " %s", hf_json_str(hf_json_item(names, k), "localhost"));
		hf_strbuf_addch(sb, '\n');
	}
}

static void compose_hosts(const struct hf_kubelet_pod *pod, struct hf_strbuf *sb)
{
	const struct hf_kubelet *k = pod->kubelet;
	struct hf_doc *service;
	struct reader r;

	init_reader(pod, &r);
	hf_strbuf_addstr(sb, "# Written by Holdfast; follows services and pods.\n"
			     "127.0.0.1 localhost\n"
			     "::1 localhost ip6-localhost ip6-loopback\n");
	/* The pod's own name resolves to its address: libraries that announce their host's address
	 * must not get the loopback's. */
	if (pod->config.ip)
		hf_strbuf_addf(sb, "%s %s\n", pod->config.ip, pod->config.hostname);
	/* A machine without the file is no error: minimal images have none. */
	if (pod->config.host_network && access("/etc/hosts", F_OK) == 0)
		if (hf_fs_read("/etc/hosts", sb, NULL) != 0)
			hf_strbuf_addstr(sb, "# the machine's own file cannot be read\n");
	add_aliases(pod, sb);
	for (size_t it = 0;
	     k->service_watch && hf_kubelet_watch_next(k->service_watch, &it, &service);)
		add_service(&r, service, sb);
	add_subdomains(&r, sb);
}

static int write_in_place(const char *path, const struct hf_strbuf *sb, struct hf_error *err)
{
	HF_AUTO_FD fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	HF_AUTO_STRBUF before = HF_STRBUF_INIT(FILE_BYTES_MAX);

	if (fd < 0 || fchmod(fd, 0644) < 0)
		return hf_error_errno(err, errno, "cannot open '%s'", path);
	if (hf_fs_read_fd(fd, path, &before, NULL) == 0 && before.len == sb->len &&
	    memcmp(before.data, sb->data, sb->len) == 0)
		return 0;
	/* Overwrite the file in one write and then cut off its end, so that a concurrent reader
	 * sees whole lines of the old or the new text. */
	if (pwrite(fd, sb->data, sb->len, 0) != (ssize_t)sb->len ||
	    ftruncate(fd, (off_t)sb->len) < 0)
		return hf_error_errno(err, errno, "cannot write '%s'", path);
	return 0;
}

static int write_hosts(const struct hf_kubelet_pod *pod, struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(FILE_BYTES_MAX);
	HF_AUTOFREE char *path = hf_xasprintf("%s/hosts", pod->dir);

	compose_hosts(pod, &sb);
	return write_in_place(path, &sb, err);
}

/* Writes the machine's nsswitch.conf with a new line for hosts: first the hosts file, then DNS if
 * the pods can reach a DNS server. The machine's own line may name systemd-resolved, which does
 * not know the pods. */
static void compose_nsswitch(bool uplink, struct hf_strbuf *sb)
{
	HF_AUTO_STRBUF own = HF_STRBUF_INIT(FILE_BYTES_MAX);
	char *rest, *line;

	hf_strbuf_addf(sb, "hosts: files%s\n", uplink ? " dns" : "");
	if (hf_fs_read("/etc/nsswitch.conf", &own, NULL) != 0)
		return;
	rest = own.data;
	while ((line = strsep(&rest, "\n")))
		if (!hf_str_has_prefix(line + strspn(line, " \t"), "hosts:"))
			hf_strbuf_addf(sb, "%s\n", line);
}

static int write_etc(const struct hf_kubelet_pod *pod, const char *name, const struct hf_strbuf *sb,
		     struct hf_error *err)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", pod->dir, name);

	return write_in_place(path, sb, err);
}

int hf_kubelet_hosts_make(struct hf_kubelet_pod *pod, struct hf_error *err)
{
	HF_AUTO_STRBUF nsswitch = HF_STRBUF_INIT(FILE_BYTES_MAX);
	HF_AUTO_STRBUF resolv = HF_STRBUF_INIT(4096);
	int rc;

	compose_nsswitch(pod->kubelet->uplink, &nsswitch);
	if (pod->kubelet->uplink)
		hf_strbuf_addstr(&resolv, "nameserver " HF_NET_DNS_IP "\n");
	else
		hf_strbuf_addstr(&resolv, "# There is no way out of the pod's network.\n"
					  "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
	rc = write_etc(pod, "nsswitch.conf", &nsswitch, err);
	if (!rc)
		rc = write_etc(pod, "resolv.conf", &resolv, err);
	return rc ? rc : write_hosts(pod, err);
}

void hf_kubelet_hosts_write_all(void *kubelet_arg)
{
	struct hf_kubelet *k = kubelet_arg;
	const char *uid;
	void *value;

	for (size_t it = 0; hf_map_next(k->pods, &it, &uid, &value);) {
		struct hf_kubelet_pod *pod = value;
		struct hf_error err;

		if (!pod->spec_doc || !hf_kubelet_pod_active(pod) ||
		    pod->state == HF_KUBELET_POD_QUITTING)
			continue;
		if (write_hosts(pod, &err) != 0)
			hf_kubelet_event(pod, "Warning", "FailedHosts", "%s", err.text);
	}
}

void hf_kubelet_hosts_changed(struct hf_kubelet *k)
{
	hf_task_post(k->hosts_task);
}
