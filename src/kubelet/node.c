/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/kubelet_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "loop/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

/*
 * Writes the Node object and its Lease. Both are created, or patched if they exist, and then kept
 * fresh as upstream's kubelet does: the Lease every 10 s and after each end of a container, the
 * Node's heartbeat every 5 minutes and when DiskPressure changes. DiskPressure evicts no pod and
 * keeps none away, because there is no other node.
 */
#define LEASE_NAMESPACE "kube-node-lease"
#define LEASE_DURATION_S 40
#define LEASE_EVERY (10 * HF_SECOND)
#define STATUS_EVERY (5 * HF_MINUTE)
#define DISK_EVERY (10 * HF_SECOND) /* as often as upstream's kubelet */
#define RETRY_AFTER HF_SECOND
#define NODE_IP "127.0.0.1"

struct hf_kubelet_node {
	struct hf_kubelet *kubelet;
	struct hf_call *node_call, *lease_call;
	struct hf_timer *node_timer, *lease_timer, *disk_timer;
	struct hf_kubelet_watch *watch; /* of the Node */
	char *selector;
	bool node_made, lease_made; /* the object exists, so patch it */
	bool renew_again; /* a renewal of the Lease was asked for while another one was in flight */
	char *uid;        /* of the Node */
	char since[HF_TIME_TEXT_MAX]; /* when the node became ready */
	bool disk_short;
	bool status_again; /* the Node's status changed while it was being written */
	char disk_since[HF_TIME_TEXT_MAX]; /* when DiskPressure last changed */
	char disk_text[1024];
};

static void write_node(void *arg);
static void write_lease(void *arg);

/* --- documents --- */

static struct hf_json *make_object(const char *api_version, const char *kind, const char *name)
{
	struct hf_json *root = hf_json_object();

	hf_json_set_str(root, "apiVersion", api_version);
	hf_json_set_str(root, "kind", kind);
	hf_json_set_str(hf_json_ensure_object(root, "metadata"), "name", name);
	return root;
}

static const char *go_architecture(const struct utsname *names)
{
	if (hf_streq(names->machine, "x86_64"))
		return "amd64";
	return hf_streq(names->machine, "aarch64") ? "arm64" : names->machine;
}

static void set_text(struct hf_json *object, const char *key, const char *path)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	if (hf_fs_read(path, &text, NULL) != 0)
		hf_strbuf_clear(&text);
	/* The file /etc/machine-id may be missing. An empty buffer has no memory to write to,
	 * hence the truncation. */
	hf_strbuf_truncate(&text, strcspn(text.data, "\n"));
	hf_json_set_str(object, key, text.data);
}

static void set_os_image(struct hf_json *info)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(8192);
	const char *key = "PRETTY_NAME=\"";
	const char *at;

	if (hf_fs_read("/etc/os-release", &text, NULL) != 0)
		hf_strbuf_clear(&text);
	at = strstr(text.data, key);
	if (at) {
		at += strlen(key);
		text.data[(size_t)(at - text.data) + strcspn(at, "\"")] = '\0';
		hf_json_set_str(info, "osImage", at);
	} else {
		hf_json_set_str(info, "osImage", "Linux");
	}
}

static void set_amounts(const struct hf_kubelet *k, struct hf_json *status)
{
	struct hf_json *capacity = hf_json_ensure_object(status, "capacity");
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	struct statvfs disk;
	char text[64];

	(void)snprintf(text, sizeof(text), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	hf_json_set_str(capacity, "cpu", text);
	(void)snprintf(text, sizeof(text), "%lldKi", (long long)pages * page / 1024);
	hf_json_set_str(capacity, "memory", text);
	(void)snprintf(text, sizeof(text), "%d", k->pods_max);
	hf_json_set_str(capacity, "pods", text);
	if (statvfs(k->state_dir, &disk) == 0) {
		(void)snprintf(text, sizeof(text), "%lluKi",
			       (unsigned long long)disk.f_blocks * disk.f_frsize / 1024);
		hf_json_set_str(capacity, "ephemeral-storage", text);
	}
	hf_json_set(status, "allocatable", hf_json_copy(capacity));
	hf_kubelet_gpus_set_amounts(k->gpus, capacity, hf_json_get(status, "allocatable"));
}

struct condition {
	const char *type;
	bool value;
	const char *reason, *message;
	const char *since; /* NULL: since the node is ready */
};

static void add_condition(const struct hf_kubelet_node *node, struct hf_json *status,
			  const struct condition *of, const char *now)
{
	struct hf_json *c = hf_json_object();

	hf_json_set_str(c, "type", of->type);
	hf_json_set_str(c, "status", of->value ? "True" : "False");
	hf_json_set_str(c, "lastHeartbeatTime", now);
	hf_json_set_str(c, "lastTransitionTime", hf_str_or(of->since, node->since));
	hf_json_set_str(c, "reason", of->reason);
	hf_json_set_str(c, "message", of->message);
	hf_json_append(hf_json_ensure_array(status, "conditions"), c);
}

static void add_address(struct hf_json *status, const char *type, const char *address)
{
	struct hf_json *a = hf_json_object();

	hf_json_set_str(a, "type", type);
	hf_json_set_str(a, "address", address);
	hf_json_append(hf_json_ensure_array(status, "addresses"), a);
}

static void set_info(struct hf_json *status, const struct utsname *names)
{
	struct hf_json *info = hf_json_ensure_object(status, "nodeInfo");

	hf_json_set_str(info, "operatingSystem", "linux");
	hf_json_set_str(info, "architecture", go_architecture(names));
	hf_json_set_str(info, "kernelVersion", names->release);
	hf_json_set_str(info, "kubeletVersion", "v" HF_VERSION "+holdfast");
	hf_json_set_str(info, "kubeProxyVersion", "");
	hf_json_set_str(info, "containerRuntimeVersion", "holdfast://" HF_VERSION);
	set_text(info, "machineID", "/etc/machine-id");
	set_text(info, "systemUUID", "/etc/machine-id");
	set_text(info, "bootID", "/proc/sys/kernel/random/boot_id");
	set_os_image(info);
}

static struct hf_json *node_status(const struct hf_kubelet_node *node)
{
	const struct condition conditions[] = {
		{"MemoryPressure", false, "KubeletHasSufficientMemory",
		 "kubelet has sufficient memory available", NULL},
		{"DiskPressure", node->disk_short,
		 node->disk_short ? "KubeletHasDiskPressure" : "KubeletHasNoDiskPressure",
		 node->disk_short ? node->disk_text : "kubelet has no disk pressure",
		 node->disk_since},
		{"PIDPressure", false, "KubeletHasSufficientPID",
		 "kubelet has sufficient PID available", NULL},
		{"Ready", true, "KubeletReady", "kubelet is posting ready status", NULL},
	};
	struct hf_json *status = hf_json_object();
	struct utsname names;
	char now[HF_TIME_TEXT_MAX];

	(void)uname(&names);
	hf_time_format(hf_loop_wall(node->kubelet->loop), now);
	set_amounts(node->kubelet, status);
	for (size_t i = 0; i < HF_ARRAY_LEN(conditions); i++)
		add_condition(node, status, &conditions[i], now);
	add_address(status, "InternalIP", NODE_IP);
	add_address(status, "Hostname", names.nodename);
	set_info(status, &names);
	return status;
}

struct hf_json *hf_kubelet_make_node(const char *name)
{
	struct hf_json *root = make_object("v1", "Node", name);
	struct hf_json *labels = hf_json_ensure_object(hf_json_get(root, "metadata"), "labels");
	struct utsname names;

	(void)uname(&names);
	hf_json_set_str(labels, "kubernetes.io/hostname", name);
	hf_json_set_str(labels, "kubernetes.io/os", "linux");
	hf_json_set_str(labels, "kubernetes.io/arch", go_architecture(&names));
	hf_json_set_str(labels, "beta.kubernetes.io/os", "linux");
	hf_json_set_str(labels, "beta.kubernetes.io/arch", go_architecture(&names));
	return root;
}

static struct hf_json *lease_object(const struct hf_kubelet_node *node)
{
	struct hf_json *root =
		make_object("coordination.k8s.io/v1", "Lease", node->kubelet->node_name);
	struct hf_json *meta = hf_json_get(root, "metadata");
	struct hf_json *spec = hf_json_ensure_object(root, "spec");
	struct hf_json *owner = hf_json_object();
	char now[HF_TIME_TEXT_MAX];

	hf_time_format_micro(hf_loop_wall(node->kubelet->loop), now);
	hf_json_set_str(meta, "namespace", LEASE_NAMESPACE);
	hf_json_set_str(owner, "apiVersion", "v1");
	hf_json_set_str(owner, "kind", "Node");
	hf_json_set_str(owner, "name", node->kubelet->node_name);
	hf_json_set_str(owner, "uid", node->uid);
	hf_json_append(hf_json_ensure_array(meta, "ownerReferences"), owner);
	hf_json_set_str(spec, "holderIdentity", node->kubelet->node_name);
	hf_json_set_i64(spec, "leaseDurationSeconds", LEASE_DURATION_S);
	hf_json_set_str(spec, "renewTime", now);
	return root;
}

/* --- writing --- */

static struct hf_call *send_request(struct hf_kubelet_node *node, struct hf_request *request,
				    struct hf_json *body, hf_reply_fn done)
{
	HF_AUTO_DOC doc = hf_doc_from_json(body);

	request->body = doc;
	request->field_manager = "kubelet";
	return hf_store_request(node->kubelet->store, request, done, node);
}

static hf_time retry_after(const struct hf_reply *reply)
{
	return reply->retry_after > 0 ? reply->retry_after : RETRY_AFTER;
}

static void on_node_status(void *arg, const struct hf_reply *reply)
{
	struct hf_kubelet_node *node = arg;
	struct hf_kubelet *k = node->kubelet;
	bool first;

	node->node_call = NULL;
	first = !node->uid;
	if (reply->code) {
		/* If the Node was deleted meanwhile, register it again. */
		node->node_made = reply->code != HF_E_NOT_FOUND;
		if (!node->node_made) {
			free(node->uid);
			node->uid = NULL;
		}
		hf_timer_arm(node->node_timer, retry_after(reply));
		return;
	}
	hf_timer_arm(node->node_timer, node->status_again ? 0 : STATUS_EVERY);
	if (!first)
		return;
	node->uid = hf_xstrdup(hf_doc_uid(reply->object));
	write_lease(node);
	if (k->ready && !k->told_ready) {
		k->told_ready = true;
		k->ready(k->arg, 0, "");
	}
}

static void write_status(struct hf_kubelet_node *node)
{
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = &hf_nodes,
				     .name = node->kubelet->node_name,
				     .subresource = "status",
				     /* The conditions of an agent stay. */
				     .patch_type = HF_PATCH_STRATEGIC};
	struct hf_json *body = hf_json_object();

	node->status_again = false;
	hf_json_set(body, "status", node_status(node));
	node->node_call = send_request(node, &request, body, on_node_status);
}

static void on_node(void *arg, const struct hf_reply *reply)
{
	struct hf_kubelet_node *node = arg;

	node->node_call = NULL;
	if (reply->code && reply->code != HF_E_EXISTS) {
		hf_timer_arm(node->node_timer, retry_after(reply));
		return;
	}
	node->node_made = true;
	write_status(node);
}

static void write_node(void *arg)
{
	struct hf_kubelet_node *node = arg;
	struct hf_request request = {.verb = HF_VERB_CREATE, .resource = &hf_nodes};

	if (node->node_call)
		return;
	if (node->node_made)
		write_status(node);
	else
		node->node_call = send_request(
			node, &request, hf_kubelet_make_node(node->kubelet->node_name), on_node);
}

static void on_namespace(void *arg, const struct hf_reply *reply)
{
	struct hf_kubelet_node *node = arg;

	node->lease_call = NULL;
	hf_timer_arm(node->lease_timer,
		     reply->code && reply->code != HF_E_EXISTS ? retry_after(reply) : 0);
}

static void make_namespace(struct hf_kubelet_node *node)
{
	struct hf_request request = {.verb = HF_VERB_CREATE, .resource = &hf_namespaces};

	node->lease_call = send_request(
		node, &request, make_object("v1", "Namespace", LEASE_NAMESPACE), on_namespace);
}

static void on_lease(void *arg, const struct hf_reply *reply)
{
	struct hf_kubelet_node *node = arg;
	bool made = node->lease_made;

	node->lease_call = NULL;
	if (reply->code == 0 || reply->code == HF_E_EXISTS) {
		/* If the Lease existed before, renew it at once. */
		node->lease_made = true;
		hf_timer_arm(node->lease_timer, reply->code || node->renew_again ? 0 : LEASE_EVERY);
		node->renew_again = false;
	} else if (reply->code == HF_E_NOT_FOUND) {
		node->lease_made = false;
		if (made)
			hf_timer_arm(node->lease_timer, 0);
		else
			make_namespace(node);
	} else {
		hf_timer_arm(node->lease_timer, retry_after(reply));
	}
}

static void write_lease(void *arg)
{
	struct hf_kubelet_node *node = arg;
	struct hf_request request = {.verb = node->lease_made ? HF_VERB_PATCH : HF_VERB_CREATE,
				     .resource = &hf_leases,
				     .ns = LEASE_NAMESPACE,
				     .patch_type = HF_PATCH_MERGE,
				     .name = node->lease_made ? node->kubelet->node_name : NULL};

	if (!node->lease_call && node->uid)
		node->lease_call = send_request(node, &request, lease_object(node), on_lease);
}

void hf_kubelet_node_renew(struct hf_kubelet_node *node)
{
	if (node->lease_call)
		node->renew_again = true;
	else
		write_lease(node);
}

void hf_kubelet_node_changed(struct hf_kubelet_node *node)
{
	if (node->node_call)
		node->status_again = true;
	else if (node->node_made)
		hf_timer_arm(node->node_timer, 0);
}

static void look_at_disk(void *arg)
{
	struct hf_kubelet_node *node = arg;
	struct hf_kubelet *k = node->kubelet;
	bool before = node->disk_short;
	struct hf_kubelet_disk disk;

	hf_timer_arm(node->disk_timer, DISK_EVERY);
	if (!hf_kubelet_disk_read(k->state_dir, &disk))
		return;
	node->disk_short = hf_kubelet_disk_is_short(&disk, before);
	if (node->disk_short == before)
		return;
	hf_time_format(hf_loop_wall(k->loop), node->disk_since);
	hf_kubelet_disk_text(&disk, k->state_dir, node->disk_text, sizeof(node->disk_text));
	hf_kubelet_notice(k, "%s", node->disk_short ? node->disk_text : "the disk has room again");
	hf_kubelet_event_node(k, node->disk_short ? "Warning" : "Normal",
			      node->disk_short ? "NodeHasDiskPressure" : "NodeHasNoDiskPressure",
			      node->disk_short ? node->disk_text : "the disk has room again");
	hf_kubelet_node_changed(node);
}

static void on_changed(void *arg HF_UNUSED, struct hf_doc *doc HF_UNUSED)
{
}

static void on_synced(void *arg HF_UNUSED)
{
}

/* If a user deletes the Node while its kubelet runs, the kubelet creates it again. The old Node's
 * Lease is deleted with it, or gets the new Node as its owner. */
static void on_removed(void *arg, struct hf_doc *last)
{
	struct hf_kubelet_node *node = arg;

	/* Nothing to do if a write has already found the deletion and created the new Node. */
	if (node->uid && !hf_streq(node->uid, hf_doc_uid(last)))
		return;
	hf_kubelet_notice(node->kubelet,
			  "the Node '%s' was deleted; the kubelet registers it again",
			  node->kubelet->node_name);
	hf_call_cancel(node->node_call);
	node->node_call = NULL;
	node->node_made = false;
	free(node->uid);
	node->uid = NULL;
	write_node(node);
}

static void watch_node(struct hf_kubelet_node *node)
{
	struct hf_kubelet_watch_options options = {.loop = node->kubelet->loop,
						   .store = node->kubelet->store,
						   .resource = &hf_nodes,
						   .changed = on_changed,
						   .removed = on_removed,
						   .synced = on_synced,
						   .arg = node};

	node->selector = hf_xasprintf("metadata.name=%s", node->kubelet->node_name);
	options.field_selector = node->selector;
	node->watch = hf_kubelet_watch_create(&options);
}

struct hf_kubelet_node *hf_kubelet_node_create(struct hf_kubelet *kubelet)
{
	struct hf_kubelet_node *node = hf_xcalloc(1, sizeof(*node));

	node->kubelet = kubelet;
	hf_time_format(hf_loop_wall(kubelet->loop), node->since);
	node->node_timer = hf_timer_create(kubelet->loop, write_node, node);
	node->lease_timer = hf_timer_create(kubelet->loop, write_lease, node);
	node->disk_timer = hf_timer_create(kubelet->loop, look_at_disk, node);
	memcpy(node->disk_since, node->since, sizeof(node->disk_since));
	look_at_disk(node);
	write_node(node);
	watch_node(node);
	return node;
}

struct hf_kubelet_node *hf_kubelet_node_destroy(struct hf_kubelet_node *node)
{
	if (!node)
		return NULL;
	hf_call_cancel(node->node_call);
	hf_call_cancel(node->lease_call);
	node->watch = hf_kubelet_watch_destroy(node->watch);
	node->node_timer = hf_timer_destroy(node->node_timer);
	node->lease_timer = hf_timer_destroy(node->lease_timer);
	node->disk_timer = hf_timer_destroy(node->disk_timer);
	free(node->uid);
	free(node->selector);
	free(node);
	return NULL;
}
