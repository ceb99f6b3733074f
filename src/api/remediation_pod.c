/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/remediation.h"

#include "base/str.h"

#include <stdio.h>

/*
 * The pod of an actor. It is privileged, sees the host's processes, and has the host's root folder at
 * /host. In a privileged container /dev and /proc are the host's. The flags name each path, because the
 * program has no default for a path that changes the machine.
 */

#define HOST "/host"
/* After a deletion of the pod, a reset, which takes up to 120 s, can still end. A shutdown does not
 * wait for the pod that asked for it. */
#define RESET_GRACE_SECONDS 150
#define REBOOT_GRACE_SECONDS 10

static void append_word(struct hf_json *list, const char *word)
{
	hf_json_append(list, hf_json_string(word));
}

static void append_diagnostic(struct hf_json *args, const struct hf_remediation_pod *pod)
{
	char timeout[64];

	if (pod->words_len == 0)
		return;
	snprintf(timeout, sizeof(timeout), "--diagnostic-timeout=%llds",
		 (long long)pod->diagnostic_seconds);
	append_word(args, timeout);
	append_word(args, "--");
	for (size_t i = 0; i < pod->words_len; i++)
		append_word(args, pod->words[i]);
}

static struct hf_json *make_args(const struct hf_remediation_pod *pod)
{
	struct hf_json *args = hf_json_array();

	append_word(args, "--root=" HOST);
	append_word(args, "--proc=/proc");
	if (!pod->reboots) {
		append_word(args, "--sys=/sys");
		append_diagnostic(args, pod);
		return args;
	}
	append_word(args, "--init-pid=1");
	append_word(args, "--sysrq=/proc/sysrq-trigger");
	if (pod->arms_watchdog)
		append_word(args, "--watchdog=/dev/watchdog");
	if (pod->only != NULL) {
		append_word(args, "--only");
		append_word(args, pod->only);
	}
	return args;
}

static struct hf_json *make_env(const struct hf_remediation_pod *pod)
{
	struct hf_json *env = hf_json_array(), *node = hf_json_object(), *nonce = hf_json_object();
	struct hf_json *source = hf_json_ensure_object(node, "valueFrom");

	hf_json_set_str(node, "name", "HOLDFAST_NODE_NAME");
	hf_json_set_str(hf_json_ensure_object(source, "fieldRef"), "fieldPath", "spec.nodeName");
	hf_json_set_str(nonce, "name", "HOLDFAST_MEND_NONCE");
	hf_json_set_str(nonce, "value", pod->nonce);
	hf_json_append(env, node);
	hf_json_append(env, nonce);
	return env;
}

static struct hf_json *make_container(const struct hf_remediation_pod *pod)
{
	struct hf_json *container = hf_json_object(), *command = hf_json_array();
	struct hf_json *mount = hf_json_object(), *context, *resources;

	append_word(command, "holdfast");
	append_word(command, "mend-node");
	append_word(command, "--intent");
	append_word(command, pod->name);
	hf_json_set_str(container, "name", "actor");
	hf_json_set_str(container, "image", pod->image);
	hf_json_set(container, "command", command);
	hf_json_set(container, "args", make_args(pod));
	hf_json_set(container, "env", make_env(pod));
	/* The last line of the container's log says what the actor did, so the kubelet takes the
	 * message from there. */
	hf_json_set_str(container, "terminationMessagePolicy", "FallbackToLogsOnError");
	context = hf_json_ensure_object(container, "securityContext");
	hf_json_set_bool(context, "privileged", true);
	hf_json_set_i64(context, "runAsUser", 0);
	hf_json_set_bool(context, "readOnlyRootFilesystem", true);
	resources = hf_json_ensure_object(container, "resources");
	hf_json_set_str(hf_json_ensure_object(resources, "limits"), "memory", "256Mi");
	hf_json_set_str(hf_json_ensure_object(resources, "requests"), "memory", "32Mi");
	hf_json_set_str(mount, "name", "host");
	hf_json_set_str(mount, "mountPath", HOST);
	/* The driver's container may be mounted below the host's /run while this pod already runs.
	 * This pod has to see that mount. */
	hf_json_set_str(mount, "mountPropagation", "HostToContainer");
	hf_json_append(hf_json_ensure_array(container, "volumeMounts"), mount);
	return container;
}

static struct hf_json *make_owner(const struct hf_remediation_pod *pod)
{
	struct hf_json *owner = hf_json_object();

	hf_json_set_str(owner, "apiVersion", HF_REMEDIATION_API_VERSION);
	hf_json_set_str(owner, "kind", HF_REMEDIATION_KIND);
	hf_json_set_str(owner, "name", pod->name);
	hf_json_set_str(owner, "uid", pod->uid);
	hf_json_set_bool(owner, "controller", true);
	return owner;
}

struct hf_json *hf_remediation_pod_json(const struct hf_remediation_pod *pod)
{
	struct hf_json *object = hf_json_object(), *meta, *spec;
	struct hf_json *tolerate_all = hf_json_object(), *volume = hf_json_object();
	char name[sizeof(HF_MEND_POD_PREFIX) + HF_REMEDIATION_NAME_MAX];

	snprintf(name, sizeof(name), HF_MEND_POD_PREFIX "%s", pod->name);
	hf_json_set_str(object, "apiVersion", "v1");
	hf_json_set_str(object, "kind", "Pod");
	meta = hf_json_ensure_object(object, "metadata");
	hf_json_set_str(meta, "namespace", HF_MEND_NAMESPACE);
	hf_json_set_str(meta, "name", name);
	hf_json_set_str(hf_json_ensure_object(meta, "labels"), "app.kubernetes.io/name",
			"holdfast");
	hf_json_append(hf_json_ensure_array(meta, "ownerReferences"), make_owner(pod));
	spec = hf_json_ensure_object(object, "spec");
	hf_json_set_str(spec, "nodeName", pod->node);
	hf_json_set_str(spec, "serviceAccountName", HF_MEND_ACCOUNT);
	hf_json_set_str(spec, "restartPolicy", "Never");
	hf_json_set_i64(spec, "activeDeadlineSeconds", pod->deadline_seconds);
	hf_json_set_i64(spec, "terminationGracePeriodSeconds",
			pod->reboots ? REBOOT_GRACE_SECONDS
				     : RESET_GRACE_SECONDS + pod->diagnostic_seconds);
	hf_json_set_str(spec, "priorityClassName", "system-node-critical");
	hf_json_set_bool(spec, "hostPID", true);
	/* With the host's network the pod starts even if the node's pod network does not work. */
	hf_json_set_bool(spec, "hostNetwork", true);
	/* A sick node has taints. */
	hf_json_set_str(tolerate_all, "operator", "Exists");
	hf_json_append(hf_json_ensure_array(spec, "tolerations"), tolerate_all);
	hf_json_append(hf_json_ensure_array(spec, "containers"), make_container(pod));
	hf_json_set_str(volume, "name", "host");
	hf_json_set_str(hf_json_ensure_object(volume, "hostPath"), "path", "/");
	hf_json_append(hf_json_ensure_array(spec, "volumes"), volume);
	return object;
}
