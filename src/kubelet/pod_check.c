/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/kubelet_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * Refuses pods that require features which this kubelet lacks. Fields without a meaning here
 * (image, ports, imagePullSecrets, …) and fields that other controllers use (tolerations, affinity)
 * are ignored. Every other field that would change how a container runs is either implemented or
 * refused here.
 */
enum refuse_when {
	IF_PRESENT,  /* any value but null */
	IF_NONEMPTY, /* a list or map with items */
	IF_TRUE,
	IF_FALSE,
};

struct refusal {
	const char *path; /* keys joined by dots */
	enum refuse_when when;
	const char *why;
};

static const struct refusal pod_refusals[] = {
	{"hostUsers", IF_FALSE, "pods run with the rights of the user who started the plane"},
	{"shareProcessNamespace", IF_TRUE, "containers of a pod do not share their processes"},
	{"setHostnameAsFQDN", IF_TRUE, "the host name is the pod's short name"},
	{"runtimeClassName", IF_PRESENT, "there is one runtime: processes of this machine"},
	{"resourceClaims", IF_NONEMPTY, "dynamic resource allocation is not done here"},
	{"resources", IF_NONEMPTY, "set the resources of each container instead"},
	{"dnsConfig", IF_NONEMPTY, "names are resolved by the pod's hosts file"},
	{"readinessGates", IF_NONEMPTY, "the plane sets no other conditions"},
	{"ephemeralContainers", IF_NONEMPTY, "containers cannot be added to a pod that runs"},
	{"securityContext.sysctls", IF_NONEMPTY, "kernel parameters are not set"},
	{"securityContext.seLinuxOptions", IF_NONEMPTY, "SELinux labels are not set"},
	{"securityContext.windowsOptions", IF_NONEMPTY, "this is not Windows"},
};

static const struct refusal container_refusals[] = {
	{"livenessProbe", IF_PRESENT, "probes are not run here"},
	{"readinessProbe", IF_PRESENT, "probes are not run here"},
	{"startupProbe", IF_PRESENT, "probes are not run here"},
	{"lifecycle.preStop", IF_PRESENT, "hooks are not run here; handle SIGTERM instead"},
	{"lifecycle.postStart", IF_PRESENT, "hooks are not run here"},
	{"lifecycle.stopSignal", IF_PRESENT, "containers are stopped by SIGTERM"},
	{"volumeDevices", IF_NONEMPTY, "block devices are not passed on"},
	{"tty", IF_TRUE, "containers have no terminal"},
	{"stdin", IF_TRUE, "containers have no stdin"},
	{"restartPolicy", IF_PRESENT, "containers follow the pod's restartPolicy"},
	{"restartPolicyRules", IF_NONEMPTY, "containers follow the pod's restartPolicy"},
	{"resources.claims", IF_NONEMPTY, "dynamic resource allocation is not done here"},
	{"securityContext.seLinuxOptions", IF_NONEMPTY, "SELinux labels are not set"},
	{"securityContext.windowsOptions", IF_NONEMPTY, "this is not Windows"},
};

static const struct hf_json *find_field(const struct hf_json *object, const char *path)
{
	char copy[128];
	char *rest = copy, *key;

	(void)snprintf(copy, sizeof(copy), "%s", path);
	while (object && (key = strsep(&rest, ".")))
		object = hf_json_get(object, key);
	return object;
}

static bool is_refused_value(const struct hf_json *value, enum refuse_when when)
{
	switch (when) {
	case IF_NONEMPTY: return hf_json_len(value) > 0;
	case IF_TRUE: return hf_json_true(value, false);
	case IF_FALSE: return !hf_json_true(value, true);
	default: return hf_json_type(value) > HF_JSON_NULL;
	}
}

static int refuse_field(struct hf_error *err, const char *path, const char *field, const char *why)
{
	return hf_error_set(err, HF_E_UNSUPPORTED, "%s.%s is not supported: %s", path, field, why);
}

static int check_table(const struct hf_json *object, const char *path,
		       const struct refusal *refusals, size_t n, struct hf_error *err)
{
	for (size_t i = 0; i < n; i++)
		if (is_refused_value(find_field(object, refusals[i].path), refusals[i].when))
			return refuse_field(err, path, refusals[i].path, refusals[i].why);
	return 0;
}

/* Refuses profiles that upstream's runtimes would load from a file. */
static int check_profiles(const struct hf_json *object, const char *path, struct hf_error *err)
{
	static const char *const fields[] = {"securityContext.seccompProfile",
					     "securityContext.appArmorProfile"};

	for (size_t i = 0; i < HF_ARRAY_LEN(fields); i++) {
		const char *type = hf_json_path_str(find_field(object, fields[i]), "type", NULL);

		if (type && !hf_streq(type, "Unconfined") && !hf_streq(type, "RuntimeDefault"))
			return refuse_field(err, path, fields[i], "profiles are not loaded");
	}
	return 0;
}

/* --- fields that need rights or namespaces --- */

/* Returns the container's value of a field, or else the pod's. */
static const struct hf_json *in_force(const struct hf_json *container, const struct hf_json *spec,
				      const char *key)
{
	const struct hf_json *own = hf_json_path(container, "securityContext", key, NULL);

	return own ? own : hf_json_path(spec, "securityContext", key, NULL);
}

static int check_user(const struct hf_json *container, const struct hf_json *spec, const char *path,
		      const struct hf_kubelet_check *facts, struct hf_error *err)
{
	static const char *const fields[] = {"runAsUser", "runAsGroup"};
	int64_t user = hf_json_i64(in_force(container, spec, "runAsUser"), -1);

	for (size_t i = 0; i < HF_ARRAY_LEN(fields); i++) {
		const struct hf_json *value = in_force(container, spec, fields[i]);
		int64_t id = hf_json_i64(value, -1);

		if (hf_json_type(value) <= HF_JSON_NULL)
			continue;
		if (id < 0 || id > INT32_MAX)
			return refuse_field(err, path, fields[i],
					    "not a number of a user or group");
		if (!facts->root && !(i == 0 && id == facts->uid))
			return refuse_field(err, path, fields[i],
					    "only root can start containers as another user");
	}
	if (hf_json_true(in_force(container, spec, "runAsNonRoot"), false) &&
	    (user == 0 || (user < 0 && facts->root)))
		return hf_error_set(err, HF_E_UNSUPPORTED,
				    "container has runAsNonRoot and would run as root (%s)", path);
	return 0;
}

static int check_privileges(const struct hf_json *context, const char *path,
			    const struct hf_kubelet_check *facts, struct hf_error *err)
{
	const char *proc = hf_json_path_str(context, "procMount", NULL);

	if (!facts->root && hf_json_true(hf_json_get(context, "privileged"), false))
		return refuse_field(err, path, "privileged", "the plane does not run as root");
	if (!facts->root && hf_json_len(hf_json_path(context, "capabilities", "add", NULL)) > 0)
		return refuse_field(err, path, "capabilities.add",
				    "the plane does not run as root");
	if (proc && !hf_streq(proc, "Default"))
		return refuse_field(err, path, "procMount", "only the default is supported");
	if (!facts->isolate && hf_json_true(hf_json_get(context, "readOnlyRootFilesystem"), false))
		return refuse_field(err, path, "readOnlyRootFilesystem",
				    "this machine refuses mount namespaces");
	return 0;
}

static int check_mounts(const struct hf_json *container, const char *path, struct hf_error *err)
{
	const struct hf_json *mounts = hf_json_get(container, "volumeMounts");

	for (size_t i = 0; i < hf_json_len(mounts); i++) {
		const struct hf_json *m = hf_json_item(mounts, i);
		const char *propagation = hf_json_path_str(m, "mountPropagation", NULL);
		char at[128];

		(void)snprintf(at, sizeof(at), "%.80s.volumeMounts[%zu]", path, i);
		if (!hf_str_is_empty(hf_json_path_str(m, "subPathExpr", NULL)))
			return refuse_field(err, at, "subPathExpr", "use subPath");
		if (propagation && !hf_streq(propagation, "None"))
			return refuse_field(err, at, "mountPropagation",
					    "mount propagation is not supported");
	}
	return 0;
}

int hf_kubelet_check_container(const struct hf_json *container, const struct hf_json *spec,
			       const char *path, const struct hf_kubelet_check *facts,
			       struct hf_error *err)
{
	const struct hf_json *context = hf_json_get(container, "securityContext");
	char context_path[128];
	int rc = check_table(container, path, container_refusals, HF_ARRAY_LEN(container_refusals),
			     err);

	(void)snprintf(context_path, sizeof(context_path), "%.100s.securityContext", path);
	if (!rc && hf_json_len(hf_json_get(container, "command")) == 0 &&
	    !hf_kubectl_is_delivery(container))
		rc = hf_error_set(
			err, HF_E_UNSUPPORTED,
			"%s.command is needed: images are not pulled here, so there is no "
			"entry point to run",
			path);
	if (!rc)
		rc = check_profiles(container, path, err);
	if (!rc)
		rc = check_user(container, spec, context_path, facts, err);
	if (!rc)
		rc = check_privileges(context, context_path, facts, err);
	if (!rc)
		rc = check_mounts(container, path, err);
	return rc;
}

int hf_kubelet_check_pod(const struct hf_json *spec, const struct hf_kubelet_check *facts,
			 struct hf_error *err)
{
	const struct hf_json *context = hf_json_get(spec, "securityContext");
	const char *os = hf_json_path_str(spec, "os", "name", NULL);
	int rc = check_table(spec, "spec", pod_refusals, HF_ARRAY_LEN(pod_refusals), err);

	if (!rc && os && !hf_streq(os, "linux"))
		rc = refuse_field(err, "spec", "os.name", "this is Linux");
	if (!rc)
		rc = check_profiles(spec, "spec", err);
	if (!rc && !facts->root && (hf_json_len(hf_json_get(context, "supplementalGroups")) > 0))
		rc = refuse_field(err, "spec", "securityContext.supplementalGroups",
				  "only root can set groups");
	if (!rc && hf_json_len(hf_json_get(spec, "containers")) +
				   hf_json_len(hf_json_get(spec, "initContainers")) >
			   HF_POD_CONTAINERS_MAX)
		rc = hf_error_set(err, HF_E_UNSUPPORTED, "a pod has at most %d containers here",
				  HF_POD_CONTAINERS_MAX);
	return rc;
}
