/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/check.h"

#include "base/compiler.h"
#include "base/str.h"
#include "kubelet/runtime/shim_internal.h"

#include <stdio.h>
#include <string.h>

/*
 * The tables of fields that this kubelet refuses or ignores (check.h). Each field that changes how
 * a container runs is either implemented, or has a row here.
 */
enum applies_when {
	IF_PRESENT,  /* any value but null */
	IF_NONEMPTY, /* a list or map with items */
	IF_TRUE,
	IF_FALSE,
};

enum verdict { REFUSED, IGNORED };

struct row {
	const char *path; /* keys joined by dots */
	enum applies_when when;
	enum verdict verdict;
	const char *why;
};

static const struct row pod_rows[] = {
	{"hostUsers", IF_FALSE, REFUSED,
	 "pods run with the rights of the user who started the plane"},
	{"shareProcessNamespace", IF_TRUE, REFUSED, "containers of a pod do not share processes"},
	{"setHostnameAsFQDN", IF_TRUE, REFUSED, "the host name is the pod's short name"},
	{"runtimeClassName", IF_PRESENT, REFUSED,
	 "there is one runtime: processes of this machine"},
	{"resourceClaims", IF_NONEMPTY, REFUSED, "dynamic resource allocation is not done here"},
	{"resources", IF_NONEMPTY, REFUSED, "set the resources of each container instead"},
	{"dnsConfig", IF_NONEMPTY, IGNORED, "names are resolved by the pod's hosts file"},
	{"readinessGates", IF_NONEMPTY, REFUSED, "the plane sets no other conditions"},
	{"ephemeralContainers", IF_NONEMPTY, REFUSED,
	 "containers cannot be added to a pod that runs"},
	{"securityContext.sysctls", IF_NONEMPTY, REFUSED, "kernel parameters are not set"},
	{"securityContext.seLinuxOptions", IF_NONEMPTY, REFUSED,
	 "the plane sets no SELinux labels"},
	{"securityContext.windowsOptions", IF_NONEMPTY, REFUSED, "this is not Windows"},
};

#define GRPC "gRPC probes are not run; the container counts as healthy"

static const struct row container_rows[] = {
	{"livenessProbe.grpc", IF_PRESENT, IGNORED, GRPC},
	{"readinessProbe.grpc", IF_PRESENT, IGNORED, GRPC},
	{"startupProbe.grpc", IF_PRESENT, IGNORED, GRPC},
	{"lifecycle.postStart.tcpSocket", IF_PRESENT, IGNORED, "hooks are exec, httpGet or sleep"},
	{"lifecycle.preStop.tcpSocket", IF_PRESENT, IGNORED, "hooks are exec, httpGet or sleep"},
	{"lifecycle.stopSignal", IF_PRESENT, REFUSED, "containers are stopped by SIGTERM"},
	{"volumeDevices", IF_NONEMPTY, REFUSED, "block devices are not passed on"},
	{"tty", IF_TRUE, IGNORED, "containers have no terminal"},
	{"stdin", IF_TRUE, IGNORED, "stdin is /dev/null: nothing can be attached to it"},
	{"restartPolicyRules", IF_NONEMPTY, REFUSED, "containers follow the pod's restartPolicy"},
	{"resources.claims", IF_NONEMPTY, REFUSED, "dynamic resource allocation is not done here"},
	{"securityContext.seLinuxOptions", IF_NONEMPTY, REFUSED,
	 "the plane sets no SELinux labels"},
	{"securityContext.windowsOptions", IF_NONEMPTY, REFUSED, "this is not Windows"},
};

/* State of one call. */
struct checker {
	const struct hf_kubelet_check_input *in;
	struct hf_kubelet_findings *out;
};

/* --- findings --- */

static bool is_reported(const struct hf_kubelet_findings *out, const char *text)
{
	for (size_t i = 0; i < out->n; i++) {
		const struct hf_kubelet_finding *f = &out->items[i];

		if (!f->refused && hf_streq(f->text + strlen(f->field), text))
			return true;
	}
	return false;
}

/* Adds a finding about the field PATH.FIELD. `text` says why the field is refused or ignored. */
static void add_finding(struct checker *c, bool refused, const char *path, const char *field,
			const char *text)
{
	struct hf_kubelet_findings *out = c->out;
	char full[HF_KUBELET_FIELD_MAX];
	struct hf_kubelet_finding *f;

	out->n_refused += refused;
	if (out->n == HF_KUBELET_FINDINGS_MAX)
		return;
	f = &out->items[out->n++];
	f->refused = refused;
	/* Written to a separate buffer: the compiler warns of an overlap if both members of *f are
	 * in one call. */
	(void)snprintf(full, sizeof(full), "%.160s.%.90s", path, field);
	memcpy(f->field, full, sizeof(f->field));
	(void)snprintf(f->text, sizeof(f->text), "%s%.220s", full, text);
}

static void refuse_field(struct checker *c, const char *path, const char *field, const char *why)
{
	char text[HF_KUBELET_TEXT_MAX];

	(void)snprintf(text, sizeof(text), " is not supported: %s", why);
	add_finding(c, true, path, field, text);
}

static void ignore_field(struct checker *c, const char *path, const char *field, const char *why)
{
	char text[HF_KUBELET_TEXT_MAX];

	(void)snprintf(text, sizeof(text), " is ignored: %.200s", why);
	if (!is_reported(c->out, text))
		add_finding(c, false, path, field, text);
}

/* --- rows --- */

static const struct hf_json *find_field(const struct hf_json *object, const char *path)
{
	char copy[128];
	char *rest = copy, *key;

	(void)snprintf(copy, sizeof(copy), "%s", path);
	while (object && (key = strsep(&rest, ".")))
		object = hf_json_get(object, key);
	return object;
}

static bool row_applies(const struct hf_json *value, enum applies_when when)
{
	switch (when) {
	case IF_NONEMPTY: return hf_json_len(value) > 0;
	case IF_TRUE: return hf_json_true(value, false);
	case IF_FALSE: return !hf_json_true(value, true);
	default: return hf_json_type(value) > HF_JSON_NULL;
	}
}

static void check_rows(struct checker *c, const struct hf_json *object, const char *path,
		       const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!row_applies(find_field(object, rows[i].path), rows[i].when))
			continue;
		if (rows[i].verdict == REFUSED)
			refuse_field(c, path, rows[i].path, rows[i].why);
		else
			ignore_field(c, path, rows[i].path, rows[i].why);
	}
}

/* Refuses seccomp and AppArmor profiles that upstream's runtimes would load from a file. */
static void check_profiles(struct checker *c, const struct hf_json *object, const char *path)
{
	static const char *const fields[] = {"securityContext.seccompProfile",
					     "securityContext.appArmorProfile"};

	for (size_t i = 0; i < HF_ARRAY_LEN(fields); i++) {
		const char *type = hf_json_path_str(find_field(object, fields[i]), "type", NULL);

		if (type && !hf_streq(type, "Unconfined") && !hf_streq(type, "RuntimeDefault"))
			refuse_field(c, path, fields[i], "profiles are not loaded");
	}
}

/* --- fields that need rights or namespaces --- */

/* Returns the value of a field that is in force for the container: the container's own, else the
 * pod's. */
static const struct hf_json *in_force(const struct hf_json *container, const struct hf_json *spec,
				      const char *key)
{
	const struct hf_json *own = hf_json_path(container, "securityContext", key, NULL);

	return own ? own : hf_json_path(spec, "securityContext", key, NULL);
}

static void check_user(struct checker *c, const struct hf_json *container, const char *path)
{
	static const char *const fields[] = {"runAsUser", "runAsGroup"};
	const struct hf_kubelet_check *facts = c->in->facts;
	const struct hf_json *spec = c->in->spec;
	int64_t user = hf_json_i64(in_force(container, spec, "runAsUser"), -1);

	for (size_t i = 0; i < HF_ARRAY_LEN(fields); i++) {
		const struct hf_json *value = in_force(container, spec, fields[i]);
		int64_t id = hf_json_i64(value, -1);

		if (hf_json_type(value) <= HF_JSON_NULL)
			continue;
		if (id < 0 || id > INT32_MAX)
			refuse_field(c, path, fields[i], "not a number of a user or group");
		else if (facts && !facts->root && !(i == 0 && id == facts->uid))
			refuse_field(c, path, fields[i],
				     "only root can start containers as another user");
	}
	if (hf_json_true(in_force(container, spec, "runAsNonRoot"), false) &&
	    (user == 0 || (user < 0 && facts && facts->root)))
		refuse_field(c, path, "runAsNonRoot",
			     "container has runAsNonRoot and would run as root");
}

static void check_privileges(struct checker *c, const struct hf_json *context, const char *path)
{
	const struct hf_kubelet_check *facts = c->in->facts;
	const char *proc = hf_json_path_str(context, "procMount", NULL);

	if (facts && !facts->root && hf_json_true(hf_json_get(context, "privileged"), false))
		refuse_field(c, path, "privileged", "the plane does not run as root");
	if (facts && !facts->root &&
	    hf_json_len(hf_json_path(context, "capabilities", "add", NULL)) > 0)
		refuse_field(c, path, "capabilities.add", "the plane does not run as root");
	if (proc && !hf_streq(proc, "Default"))
		refuse_field(c, path, "procMount", "only the default is supported");
	if (facts && !facts->isolate &&
	    hf_json_true(hf_json_get(context, "readOnlyRootFilesystem"), false))
		refuse_field(c, path, "readOnlyRootFilesystem",
			     "this machine refuses mount namespaces");
}

static bool is_in_memory(const struct hf_json *spec, const char *name)
{
	const struct hf_json *volumes = hf_json_get(spec, "volumes");

	for (size_t i = 0; i < hf_json_len(volumes); i++) {
		const struct hf_json *v = hf_json_item(volumes, i);

		if (hf_streq(hf_json_path_str(v, "name", NULL), name))
			return hf_streq(hf_json_path_str(v, "emptyDir", "medium", NULL), "Memory");
	}
	return false;
}

/* True if the mount needs nothing, because the path of the volume is the path of the mount. */
static bool is_in_place(const struct hf_json *spec, const struct hf_json *mount)
{
	const char *target = hf_str_or(hf_json_path_str(mount, "mountPath", NULL), "");
	const char *name = hf_json_path_str(mount, "name", NULL);
	const struct hf_json *volumes = hf_json_get(spec, "volumes");

	/* Without namespaces, /dev/shm is that of the machine. */
	if (hf_streq(target, "/dev/shm"))
		return true;
	for (size_t i = 0; i < hf_json_len(volumes); i++) {
		const struct hf_json *v = hf_json_item(volumes, i);

		if (hf_streq(hf_json_path_str(v, "name", NULL), name))
			return hf_streq(hf_json_path_str(v, "hostPath", "path", NULL), target) &&
			       hf_str_is_empty(hf_json_path_str(mount, "subPath", NULL));
	}
	return false;
}

static void refuse_mount(struct checker *c, const char *path)
{
	const char *why = c->in->facts->why;
	char text[HF_KUBELET_TEXT_MAX];

	(void)snprintf(
		text, sizeof(text),
		"pods have no mount namespaces on this machine%s%.150s%s; only a hostPath that "
		"is mounted at its own path works here",
		why ? " (" : "", hf_str_or(why, ""), why ? ")" : "");
	refuse_field(c, path, "mountPath", text);
}

static void check_mounts(struct checker *c, const struct hf_json *container, const char *path)
{
	const struct hf_json *mounts = hf_json_get(container, "volumeMounts");

	for (size_t i = 0; i < hf_json_len(mounts); i++) {
		const struct hf_json *m = hf_json_item(mounts, i);
		const char *propagation = hf_json_path_str(m, "mountPropagation", NULL);
		char at[HF_KUBELET_FIELD_MAX];

		(void)snprintf(at, sizeof(at), "%.160s.volumeMounts[%zu]", path, i);
		if (!hf_str_is_empty(hf_json_path_str(m, "subPathExpr", NULL)))
			refuse_field(c, at, "subPathExpr", "use subPath");
		if (propagation && !hf_streq(propagation, "None"))
			refuse_field(c, at, "mountPropagation", "mounts do not propagate");
		if (!hf_str_is_empty(hf_json_path_str(m, "subPath", NULL)) &&
		    is_in_memory(c->in->spec, hf_json_path_str(m, "name", NULL)))
			refuse_field(c, at, "subPath", "the volume is in memory");
		if (c->in->facts && !c->in->facts->isolate && !is_in_place(c->in->spec, m))
			refuse_mount(c, at);
	}
}

/* --- containers --- */

static void check_schemes(struct checker *c, const struct hf_json *container, const char *path)
{
	static const char *const handlers[] = {"livenessProbe", "readinessProbe", "startupProbe",
					       "lifecycle.postStart", "lifecycle.preStop"};

	for (size_t i = 0; i < HF_ARRAY_LEN(handlers); i++) {
		const struct hf_json *get =
			hf_json_get(find_field(container, handlers[i]), "httpGet");
		char field[64];

		(void)snprintf(field, sizeof(field), "%s.httpGet.scheme", handlers[i]);
		if (hf_streq(hf_json_path_str(get, "scheme", NULL), "HTTPS"))
			ignore_field(c, path, field, "probes and hooks over TLS are not run");
	}
}

static void check_command(struct checker *c, const struct hf_json *container, const char *path)
{
	if (hf_json_len(hf_json_get(container, "command")) == 0 &&
	    !hf_kubectl_is_delivery(container))
		add_finding(c, true, path, "command",
			    " is needed: images are not pulled here, so there is no entry point to "
			    "run");
}

static void check_restarts(struct checker *c, const struct hf_json *container, const char *path,
			   bool init)
{
	const char *policy = hf_json_path_str(container, "restartPolicy", NULL);

	if (policy && !(init && hf_streq(policy, "Always")))
		refuse_field(
			c, path, "restartPolicy",
			"containers follow the pod's restartPolicy; Always makes a sidecar of an "
			"init container");
}

static void check_container(struct checker *c, const struct hf_json *container, const char *path,
			    bool command_given)
{
	char context_path[HF_KUBELET_FIELD_MAX];

	(void)snprintf(context_path, sizeof(context_path), "%.160s.securityContext", path);
	check_rows(c, container, path, container_rows, HF_ARRAY_LEN(container_rows));
	if (!command_given)
		check_command(c, container, path);
	check_schemes(c, container, path);
	check_profiles(c, container, path);
	check_user(c, container, context_path);
	check_privileges(c, hf_json_get(container, "securityContext"), context_path);
	check_mounts(c, container, path);
}

static void check_containers(struct checker *c, const char *key)
{
	const struct hf_json *list = hf_json_get(c->in->spec, key);
	bool given = c->in->command_given && hf_streq(key, "containers");

	for (size_t i = 0; i < hf_json_len(list) && i < HF_POD_CONTAINERS_MAX; i++) {
		char path[HF_KUBELET_FIELD_MAX];

		(void)snprintf(path, sizeof(path), "%.160s.%s[%zu]", c->in->path, key, i);
		check_container(c, hf_json_item(list, i), path, given && i == 0);
		check_restarts(c, hf_json_item(list, i), path, hf_streq(key, "initContainers"));
	}
}

/* --- volumes --- */

static const char *unsupported_source(const struct hf_json *volume, const char *const *known,
				      size_t n)
{
	const char *key;
	struct hf_json *value;

	for (void *it = NULL; (it = hf_json_next(volume, it, &key, &value));) {
		bool found = hf_streq(key, "name") || hf_streq(key, "defaultMode") ||
			     hf_json_type(value) == HF_JSON_NULL;

		for (size_t i = 0; i < n && !found; i++)
			found = hf_streq(key, known[i]);
		if (!found)
			return key;
	}
	return NULL;
}

static void check_sources(struct checker *c, const struct hf_json *volume, const char *path)
{
	static const char *const known[] = {"configMap", "secret", "downwardAPI"};
	const struct hf_json *sources = hf_json_path(volume, "projected", "sources", NULL);

	for (size_t i = 0; i < hf_json_len(sources); i++) {
		const char *kind =
			unsupported_source(hf_json_item(sources, i), known, HF_ARRAY_LEN(known));
		char at[HF_KUBELET_FIELD_MAX];

		(void)snprintf(at, sizeof(at), "%.130s.projected.sources[%zu]", path, i);
		if (kind)
			refuse_field(c, at, kind,
				     "projected are configMap, secret and downwardAPI");
	}
}

static void check_volumes(struct checker *c)
{
	static const char *const known[] = {"emptyDir",
					    "configMap",
					    "secret",
					    "downwardAPI",
					    "projected",
					    "hostPath",
					    "persistentVolumeClaim"};
	const struct hf_json *volumes = hf_json_get(c->in->spec, "volumes");

	for (size_t i = 0; i < hf_json_len(volumes) && i < HF_POD_VOLUMES_MAX; i++) {
		const struct hf_json *volume = hf_json_item(volumes, i);
		const char *kind = unsupported_source(volume, known, HF_ARRAY_LEN(known));
		const char *medium = hf_json_path_str(volume, "emptyDir", "medium", NULL);
		char path[HF_KUBELET_FIELD_MAX];

		(void)snprintf(path, sizeof(path), "%.160s.volumes[%zu]", c->in->path, i);
		if (kind)
			refuse_field(
				c, path, kind,
				"volumes are folders of this machine; mount the storage on the "
				"machine and name its folder in hostPath");
		if (!hf_str_is_empty(medium) && !hf_streq(medium, "Memory"))
			refuse_field(c, path, "emptyDir.medium",
				     "the medium is the disk or Memory");
		check_sources(c, volume, path);
	}
}

static void check_counts(struct checker *c)
{
	const struct hf_json *spec = c->in->spec;
	char why[64];

	(void)snprintf(why, sizeof(why), "a pod has at most %d containers here",
		       HF_POD_CONTAINERS_MAX);
	if (hf_json_len(hf_json_get(spec, "containers")) +
		    hf_json_len(hf_json_get(spec, "initContainers")) >
	    HF_POD_CONTAINERS_MAX)
		refuse_field(c, c->in->path, "containers", why);
	(void)snprintf(why, sizeof(why), "a pod has fewer than %d volumes here",
		       HF_POD_VOLUMES_MAX);
	if (hf_json_len(hf_json_get(spec, "volumes")) >= HF_POD_VOLUMES_MAX)
		refuse_field(c, c->in->path, "volumes", why);
}

/* --- interface --- */

void hf_kubelet_check_template(const struct hf_kubelet_check_input *input,
			       struct hf_kubelet_findings *findings)
{
	struct checker c = {.in = input, .out = findings};
	const struct hf_json *spec = input->spec;
	const char *os = hf_json_path_str(spec, "os", "name", NULL);

	check_rows(&c, spec, input->path, pod_rows, HF_ARRAY_LEN(pod_rows));
	if (os && !hf_streq(os, "linux"))
		refuse_field(&c, input->path, "os.name", "this is Linux");
	check_profiles(&c, spec, input->path);
	if (input->facts && !input->facts->root &&
	    hf_json_len(hf_json_path(spec, "securityContext", "supplementalGroups", NULL)) > 0)
		refuse_field(&c, input->path, "securityContext.supplementalGroups",
			     "only root can set groups");
	check_counts(&c);
	check_volumes(&c);
	check_containers(&c, "initContainers");
	check_containers(&c, "containers");
}

const struct hf_kubelet_finding *hf_kubelet_first_refusal(
	const struct hf_kubelet_findings *findings)
{
	for (size_t i = 0; i < findings->n; i++)
		if (findings->items[i].refused)
			return &findings->items[i];
	return NULL;
}
