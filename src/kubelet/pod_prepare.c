/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/check.h"
#include "kubelet/runtime/netns_internal.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Prepares a pod of the store until its shim runs: checks the spec, fetches the objects of the
 * volumes, writes the pod's folder and starts the shim. A failure that may pass is tried again.
 */

static void set_trouble(struct hf_kubelet_pod *pod, const char *reason, const char *message)
{
	bool news = !hf_streq(pod->trouble, message);

	(void)snprintf(pod->trouble_reason, sizeof(pod->trouble_reason), "%s", reason);
	(void)snprintf(pod->trouble, sizeof(pod->trouble), "%s", message);
	if (news)
		hf_kubelet_event(pod, "Warning", "Failed", "%s", message);
}

static int check_names(const struct hf_kubelet_pod *pod, struct hf_error *err)
{
	size_t counts[2] = {0, 0};

	for (size_t i = 0; i < pod->n; i++) {
		const struct hf_kubelet_pod_container *c = &pod->containers[i];

		if (hf_dns1123_label_problem(c->name))
			return hf_error_set(
				err, HF_E_INVALID, "spec.%s[%zu].name is not a DNS label",
				c->init ? "initContainers" : "containers", counts[c->init]);
		counts[c->init]++;
	}
	return 0;
}

static int check_spec(struct hf_kubelet_pod *pod, struct hf_error *err)
{
	HF_AUTOFREE struct hf_kubelet_findings *findings = hf_xcalloc(1, sizeof(*findings));
	const struct hf_kubelet_check facts = {.isolate = pod->kubelet->isolate,
					       .why = pod->kubelet->why,
					       .root = geteuid() == 0,
					       .uid = geteuid()};
	const struct hf_kubelet_check_input input = {
		.spec = hf_kubelet_pod_spec(pod), .path = "spec", .facts = &facts};
	const struct hf_kubelet_finding *refusal;

	hf_kubelet_check_template(&input, findings);
	refusal = hf_kubelet_first_refusal(findings);
	if (refusal)
		return hf_error_set(err, HF_E_UNSUPPORTED, "%s", refusal->text);
	for (size_t i = 0; i < findings->n && !pod->told_ignored; i++)
		hf_kubelet_event(pod, "Warning", "FieldIgnored", "%s", findings->items[i].text);
	/* Write these Events once, although a pod is checked again at each try to prepare it. */
	pod->told_ignored = true;
	return check_names(pod, err);
}

/* Warns once that pods reach no other network. A pod on the machine's network needs no warning. */
static void warn_of_no_uplink(const struct hf_kubelet_pod *pod)
{
	struct hf_kubelet *k = pod->kubelet;

	if (!pod->config.isolate || pod->config.host_network || k->uplink || k->told_no_uplink)
		return;
	k->told_no_uplink = true;
	hf_kubelet_notice(k,
			  "pods reach each other but no other network: %s, or use this machine's "
			  "network (--network host, or hostNetwork in the pods)",
			  k->uplink_why);
}

static void describe_sandbox(struct hf_kubelet_pod *pod)
{
	const struct hf_kubelet *k = pod->kubelet;
	const struct hf_json *spec = hf_kubelet_pod_spec(pod);
	bool host_network = hf_json_true(hf_json_get(spec, "hostNetwork"), false);
	bool host_pid = hf_json_true(hf_json_get(spec, "hostPID"), false);
	char text[HF_NET_IP_MAX];

	hf_arena_reset(pod->arena);
	if (!pod->ip && !(k->isolate && host_network))
		pod->ip = hf_kubelet_take_ip(pod->kubelet);
	hf_net_ip_format(pod->ip, text);
	pod->config = (struct hf_shim_pod){
		.ns = pod->ns,
		.name = pod->name,
		.uid = pod->uid,
		.hostname = hf_arena_strdup(pod->arena,
					    hf_str_or(hf_json_path_str(spec, "hostname", NULL),
						      hf_arena_strndup(pod->arena, pod->name, 63))),
		.isolate = k->isolate,
		.pid_ns = k->isolate && k->pid_ns && !host_pid,
		.host_network = host_network,
		.host_ipc = hf_json_true(hf_json_get(spec, "hostIPC"), false),
		.ends_with_kubelet = k->pods_end_with_process,
		.ip = pod->ip ? hf_arena_strdup(pod->arena, text) : NULL,
		.prefix = HF_NET_PREFIX,
		.gateway = k->uplink ? HF_NET_GATEWAY_IP : NULL,
		.cgroups = k->cgroups,
		.log_bytes_max = HF_KUBELET_LOG_BYTES_MAX,
		.log_files_max = HF_KUBELET_LOG_FILES_MAX,
	};
}

static int make_folders(const struct hf_kubelet_pod *pod, struct hf_error *err)
{
	static const char *const folders[] = {"run", "logs", "term", "volumes"};

	for (size_t i = 0; i < HF_ARRAY_LEN(folders); i++) {
		HF_AUTOFREE char *path = hf_xasprintf("%s/%s", pod->dir, folders[i]);
		int rc = hf_fs_mkdirs(path, 0700, err);

		if (rc)
			return rc;
	}
	return 0;
}

static int write_config(const struct hf_kubelet_pod *pod, struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)1 << 20);
	HF_AUTOFREE char *path = hf_xasprintf("%s/" HF_SHIM_CONFIG_FILE, pod->dir);
	HF_AUTO_JSON json = hf_shim_pod_to_json(&pod->config);
	int rc;

	hf_json_write(json, HF_JSON_COMPACT, &sb);
	rc = hf_strbuf_ok(&sb, "the pod's description", err);
	return rc ? rc : hf_fs_write_atomic(path, sb.data, sb.len, 0600, err);
}

static void start_shim(struct hf_kubelet_pod *pod)
{
	struct hf_kubelet_shim_handler handler;
	struct hf_kubelet_env_input input;
	struct hf_error err;
	int rc;

	describe_sandbox(pod);
	hf_kubelet_start_input(pod, NULL, pod->refs, &input);
	rc = hf_kubelet_gpus_give(pod, &err);
	if (!rc)
		rc = make_folders(pod, &err);
	if (!rc)
		rc = hf_kubelet_hosts_make(pod, &err);
	if (!rc)
		rc = hf_kubelet_volumes_make(&input, pod->dir, pod->arena, &pod->config, &err);
	if (!rc)
		rc = write_config(pod, &err);
	if (!rc)
		rc = hf_kubelet_shim_start(pod->kubelet, pod->dir,
					   hf_kubelet_pod_handler(pod, &handler), &pod->shim, &err);
	if (rc) {
		set_trouble(pod,
			    rc == HF_E_UNSUPPORTED || rc == HF_E_INVALID
				    ? "CreateContainerConfigError"
				    : "ContainerCreating",
			    err.text);
		pod->state = HF_KUBELET_POD_NEW;
		pod->retry_at = hf_time_add(hf_loop_mono(pod->kubelet->loop), HF_KUBELET_POD_RETRY);
		return;
	}
	pod->state = HF_KUBELET_POD_SPAWNING;
	hf_kubelet_pod_tell_shared_ports(pod);
	warn_of_no_uplink(pod);
	if (pod->start_time == HF_TIME_NONE)
		pod->start_time = hf_loop_wall(pod->kubelet->loop);
}

static void on_volume_refs(void *arg)
{
	struct hf_kubelet_pod *pod = arg;

	if (pod->state == HF_KUBELET_POD_PREPARING)
		start_shim(pod);
	pod->refs = hf_kubelet_refs_destroy(pod->refs);
	hf_kubelet_pod_wake(pod);
}

/* Tells whether the pod's status shows that its containers ran. Then, as this folder has no trace
 * of them, another plane ran them. */
static bool ran_elsewhere(const struct hf_kubelet_pod *pod)
{
	return hf_kubelet_pod_count_ends(pod->doc) > 0 ||
	       hf_streq(hf_json_path_str(hf_doc_json(pod->doc), "status", "phase", NULL),
			"Running");
}

void hf_kubelet_pod_prepare(struct hf_kubelet_pod *pod)
{
	struct hf_kubelet *k = pod->kubelet;
	struct hf_error err;

	if (ran_elsewhere(pod)) {
		hf_kubelet_pod_mark_lost(
			pod,
			"the plane's folder has no files of the pod, although its containers ran");
		pod->state = HF_KUBELET_POD_ENDED;
		return;
	}
	if (check_spec(pod, &err) != 0) {
		set_trouble(pod, "CreateContainerConfigError", err.text);
		pod->state = HF_KUBELET_POD_REFUSED;
		return;
	}
	if (hf_loop_mono(k->loop) < pod->retry_at) {
		hf_kubelet_pod_wake_in(pod, pod->retry_at - hf_loop_mono(k->loop));
		return;
	}
	pod->state = HF_KUBELET_POD_PREPARING;
	pod->refs = hf_kubelet_refs_create(k->store, k->loop, pod->ns);
	hf_kubelet_volumes_add_refs(hf_kubelet_pod_spec(pod), pod->refs);
	hf_kubelet_refs_fetch(pod->refs, on_volume_refs, pod);
}
