/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "local/admission_internal.h"

#include "base/quantity.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * Pods: the defaults that clients show and the kubelet relies on (core/v1 defaults.go and the
 * priority admission plug-in), and the checks whose lack would surprise.
 *
 * Left out, as nothing here acts on it: the service account and its token, and the
 * tolerations for lost nodes.
 */

static const char *const container_lists[] = {"initContainers", "containers"};

/* ---- defaults ----------------------------------------------------------------------------- */

static void default_probe(struct hf_json *probe)
{
	struct hf_json *get = hf_json_get(probe, "httpGet");

	if (probe == NULL)
		return;
	if (get != NULL) {
		hf_default_str(get, "path", "/");
		hf_default_str(get, "scheme", "HTTP");
	}
	hf_default_i64(probe, "timeoutSeconds", 1);
	hf_default_i64(probe, "periodSeconds", 10);
	hf_default_i64(probe, "successThreshold", 1);
	hf_default_i64(probe, "failureThreshold", 3);
}

/* A tag other than "latest" (or a digest) means that the image does not change. */
static const char *pull_policy(const char *image)
{
	const char *name = strrchr(image, '/');
	const char *tag = strchr(name != NULL ? name : image, ':');

	if (strchr(image, '@') != NULL)
		return "IfNotPresent";
	return tag == NULL || hf_streq(tag, ":latest") ? "Always" : "IfNotPresent";
}

static void default_requests(struct hf_json *resources)
{
	struct hf_json *limits = hf_json_get(resources, "limits"), *value;
	const char *key;

	if (hf_json_len(limits) == 0)
		return;
	for (void *it = NULL; (it = hf_json_next(limits, it, &key, &value)) != NULL;) {
		struct hf_json *requests = hf_json_ensure_object(resources, "requests");
		if (hf_json_get(requests, key) == NULL)
			hf_json_set(requests, key, hf_json_copy(value));
	}
}

static void default_ports(struct hf_json *container, bool host_network)
{
	struct hf_json *ports = hf_json_get(container, "ports");

	for (size_t i = 0; i < hf_json_len(ports); i++) {
		struct hf_json *port = hf_json_item(ports, i);
		hf_default_str(port, "protocol", "TCP");
		if (host_network)
			hf_default_i64(port, "hostPort",
				       hf_json_i64(hf_json_get(port, "containerPort"), 0));
	}
}

static void default_env(struct hf_json *container)
{
	struct hf_json *env = hf_json_get(container, "env");

	for (size_t i = 0; i < hf_json_len(env); i++) {
		struct hf_json *ref =
			hf_json_path(hf_json_item(env, i), "valueFrom", "fieldRef", NULL);
		if (ref != NULL)
			hf_default_str(ref, "apiVersion", "v1");
	}
}

static void default_container(struct hf_json *container, bool host_network)
{
	const char *image = hf_json_str(hf_json_get(container, "image"), "");

	hf_default_str(container, "terminationMessagePath", "/dev/termination-log");
	hf_default_str(container, "terminationMessagePolicy", "File");
	hf_default_str(container, "imagePullPolicy", pull_policy(image));
	default_requests(hf_json_ensure_object(container, "resources"));
	default_ports(container, host_network);
	default_env(container);
	default_probe(hf_json_get(container, "livenessProbe"));
	default_probe(hf_json_get(container, "readinessProbe"));
	default_probe(hf_json_get(container, "startupProbe"));
}

static void default_volume(struct hf_json *volume)
{
	static const char *const moded[] = {"configMap", "secret", "downwardAPI", "projected"};
	struct hf_json *host = hf_json_get(volume, "hostPath"), *items;

	if (hf_json_len(volume) == 1 && hf_json_get(volume, "name") != NULL)
		(void)hf_json_ensure_object(volume, "emptyDir");
	if (host != NULL)
		hf_default_str(host, "type", "");
	for (size_t i = 0; i < HF_ARRAY_LEN(moded); i++)
		if (hf_json_type(hf_json_get(volume, moded[i])) == HF_JSON_OBJECT)
			hf_default_i64(hf_json_get(volume, moded[i]), "defaultMode", 0644);
	items = hf_json_path(volume, "downwardAPI", "items", NULL);
	for (size_t i = 0; i < hf_json_len(items); i++)
		if (hf_json_get(hf_json_item(items, i), "fieldRef") != NULL)
			hf_default_str(hf_json_get(hf_json_item(items, i), "fieldRef"),
				       "apiVersion", "v1");
}

static void default_pod(struct hf_json *spec)
{
	bool host_network = hf_json_true(hf_json_get(spec, "hostNetwork"), false);
	const struct hf_json *volumes = hf_json_get(spec, "volumes");

	hf_default_str(spec, "restartPolicy", "Always");
	hf_default_i64(spec, "terminationGracePeriodSeconds", 30);
	hf_default_str(spec, "dnsPolicy", "ClusterFirst");
	hf_default_str(spec, "schedulerName", "default-scheduler");
	hf_default_bool(spec, "enableServiceLinks", true);
	hf_default_i64(spec, "priority", 0);
	hf_default_str(spec, "preemptionPolicy", "PreemptLowerPriority");
	(void)hf_json_ensure_object(spec, "securityContext");
	for (size_t l = 0; l < HF_ARRAY_LEN(container_lists); l++) {
		const struct hf_json *list = hf_json_get(spec, container_lists[l]);
		for (size_t i = 0; i < hf_json_len(list); i++)
			default_container(hf_json_item(list, i), host_network);
	}
	for (size_t i = 0; i < hf_json_len(volumes); i++)
		default_volume(hf_json_item(volumes, i));
}

/* ---- checks ------------------------------------------------------------------------------- */

struct check {
	struct hf_admission *admission;
	const struct hf_json *spec;
	char path[64]; /* "spec.containers[0]" */
};

static const char *str(const struct hf_json *object, const char *key)
{
	return hf_json_str(hf_json_get(object, key), "");
}

/* Of the items before i, does one have this name?  Lists are as long as people write them. */
static bool seen_before(const struct hf_json *list, size_t i, const char *name)
{
	for (size_t k = 0; k < i; k++)
		if (hf_streq(str(hf_json_item(list, k), "name"), name))
			return true;
	return false;
}

static void check_one_of(struct hf_admission *admission, const struct hf_json *object,
			 const char *key, const char *const *supported, const char *path)
{
	const char *value = str(object, key);

	if (*value == '\0')
		return;
	for (size_t i = 0; supported[i] != NULL; i++)
		if (hf_streq(value, supported[i]))
			return;
	hf_problem_not_supported(admission, value, supported, "%s.%s", path, key);
}

static void check_port_number(struct hf_admission *admission, const struct hf_json *port,
			      const char *path)
{
	int64_t number = hf_json_i64(port, 0);

	if (port == NULL)
		hf_problem_required(admission, "", "%s", path);
	else if (number < 1 || number > 65535)
		hf_problem_invalid(admission, port, "must be between 1 and 65535, inclusive", "%s",
				   path);
}

static void check_ports(struct check *check, const struct hf_json *container)
{
	static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
	const struct hf_json *ports = hf_json_get(container, "ports");

	for (size_t i = 0; i < hf_json_len(ports); i++) {
		const struct hf_json *port = hf_json_item(ports, i);
		const char *name = str(port, "name");
		char path[128], number[160];
		snprintf(path, sizeof(path), "%s.ports[%zu]", check->path, i);
		snprintf(number, sizeof(number), "%s.containerPort", path);
		check_port_number(check->admission, hf_json_get(port, "containerPort"), number);
		check_one_of(check->admission, port, "protocol", protocols, path);
		if (strlen(name) > 15)
			hf_problem_invalid(check->admission, hf_json_get(port, "name"),
					   "must be no more than 15 characters", "%s.name", path);
		else if (*name != '\0' && hf_dns1123_label_problem(name) != NULL)
			hf_problem_invalid(check->admission, hf_json_get(port, "name"),
					   hf_dns1123_label_problem(name), "%s.name", path);
		if (*name != '\0' && seen_before(ports, i, name))
			hf_problem_duplicate(check->admission, name, "%s.name", path);
	}
}

static void check_env(struct check *check, const struct hf_json *container)
{
	const struct hf_json *env = hf_json_get(container, "env");

	for (size_t i = 0; i < hf_json_len(env); i++) {
		const struct hf_json *var = hf_json_item(env, i);
		const char *name = str(var, "name");
		if (*name == '\0')
			hf_problem_required(check->admission, "", "%s.env[%zu].name", check->path,
					    i);
		else if (strchr(name, '=') != NULL)
			hf_problem_invalid(check->admission, hf_json_get(var, "name"),
					   "a valid environment variable name must not contain '='",
					   "%s.env[%zu].name", check->path, i);
		if (*str(var, "value") != '\0' && hf_json_len(hf_json_get(var, "valueFrom")) > 0)
			hf_problem_invalid(check->admission, NULL,
					   "may not be specified when `value` is not empty",
					   "%s.env[%zu].valueFrom", check->path, i);
	}
}

static void check_mounts(struct check *check, const struct hf_json *container)
{
	const struct hf_json *mounts = hf_json_get(container, "volumeMounts");
	const struct hf_json *volumes = hf_json_get(check->spec, "volumes");

	for (size_t i = 0; i < hf_json_len(mounts); i++) {
		const struct hf_json *mount = hf_json_item(mounts, i);
		const char *name = str(mount, "name");
		if (*name == '\0')
			hf_problem_required(check->admission, "", "%s.volumeMounts[%zu].name",
					    check->path, i);
		else if (!seen_before(volumes, hf_json_len(volumes), name))
			hf_problem_not_found(check->admission, name, "%s.volumeMounts[%zu].name",
					     check->path, i);
		if (*str(mount, "mountPath") == '\0')
			hf_problem_required(check->admission, "", "%s.volumeMounts[%zu].mountPath",
					    check->path, i);
	}
}

/* A quantity in thousandths; false after a cause. */
static bool read_amount(struct check *check, const struct hf_json *value, const char *path,
			int64_t *ret_milli)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(256);
	struct hf_error err;

	if (hf_json_type(value) == HF_JSON_STRING)
		hf_strbuf_addstr(&sb, hf_json_str(value, ""));
	else
		hf_json_write(value, HF_JSON_COMPACT, &sb);
	if (sb.full || hf_quantity_parse_milli(sb.data, ret_milli, &err) != 0) {
		hf_problem_invalid(check->admission, value,
				   "quantities must match the regular expression "
				   "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
				   "%s", path);
		return false;
	}
	if (*ret_milli < 0) {
		hf_problem_invalid(check->admission, value, "must be greater than or equal to 0",
				   "%s", path);
		return false;
	}
	return true;
}

static void check_resources(struct check *check, const struct hf_json *container)
{
	const struct hf_json *resources = hf_json_get(container, "resources");
	const struct hf_json *limits = hf_json_get(resources, "limits");
	struct hf_json *value;
	const char *key;
	char path[512];

	for (void *it = NULL; (it = hf_json_next(limits, it, &key, &value)) != NULL;) {
		int64_t milli;
		snprintf(path, sizeof(path), "%s.resources.limits[%s]", check->path, key);
		(void)read_amount(check, value, path, &milli);
	}
	const struct hf_json *requests = hf_json_get(resources, "requests");
	for (void *it = NULL; (it = hf_json_next(requests, it, &key, &value)) != NULL;) {
		const struct hf_json *limit = hf_json_get(limits, key);
		int64_t request, most;
		char message[256];
		snprintf(path, sizeof(path), "%s.resources.requests[%s]", check->path, key);
		if (!read_amount(check, value, path, &request) || limit == NULL ||
		    hf_json_type(limit) != HF_JSON_STRING ||
		    hf_quantity_parse_milli(hf_json_str(limit, ""), &most, NULL) != 0)
			continue;
		snprintf(message, sizeof(message), "must be less than or equal to %.200s limit",
			 key);
		if (request > most)
			hf_problem_invalid(check->admission, value, message, "%s", path);
	}
}

static void check_container(struct check *check, const struct hf_json *list, size_t i)
{
	static const char *const pull[] = {"Always", "IfNotPresent", "Never", NULL};
	static const char *const message[] = {"FallbackToLogsOnError", "File", NULL};
	const struct hf_json *container = hf_json_item(list, i);
	const char *name = str(container, "name");
	const char *problem = hf_dns1123_label_problem(name);

	if (*name == '\0')
		hf_problem_required(check->admission, "", "%s.name", check->path);
	else if (problem != NULL)
		hf_problem_invalid(check->admission, hf_json_get(container, "name"), problem,
				   "%s.name", check->path);
	else if (seen_before(list, i, name))
		hf_problem_duplicate(check->admission, name, "%s.name", check->path);
	if (*str(container, "image") == '\0')
		hf_problem_required(check->admission, "", "%s.image", check->path);
	check_one_of(check->admission, container, "imagePullPolicy", pull, check->path);
	check_one_of(check->admission, container, "terminationMessagePolicy", message, check->path);
	check_ports(check, container);
	check_env(check, container);
	check_mounts(check, container);
	check_resources(check, container);
}

static void check_volumes(struct check *check)
{
	const struct hf_json *volumes = hf_json_get(check->spec, "volumes");

	for (size_t i = 0; i < hf_json_len(volumes); i++) {
		const struct hf_json *volume = hf_json_item(volumes, i);
		const char *name = str(volume, "name");
		const char *problem = hf_dns1123_label_problem(name);
		if (*name == '\0')
			hf_problem_required(check->admission, "", "spec.volumes[%zu].name", i);
		else if (problem != NULL)
			hf_problem_invalid(check->admission, hf_json_get(volume, "name"), problem,
					   "spec.volumes[%zu].name", i);
		else if (seen_before(volumes, i, name))
			hf_problem_duplicate(check->admission, name, "spec.volumes[%zu].name", i);
		if (hf_json_get(volume, "hostPath") != NULL &&
		    *str(hf_json_get(volume, "hostPath"), "path") == '\0')
			hf_problem_required(check->admission, "", "spec.volumes[%zu].hostPath.path",
					    i);
	}
}

static void check_pod(struct hf_admission *admission, const struct hf_json *spec)
{
	static const char *const restart[] = {"Always", "OnFailure", "Never", NULL};
	static const char *const dns[] = {"ClusterFirstWithHostNet", "ClusterFirst", "Default",
					  "None", NULL};
	struct check check = {.admission = admission, .spec = spec};
	const struct hf_json *grace = hf_json_get(spec, "terminationGracePeriodSeconds");
	const struct hf_json *deadline = hf_json_get(spec, "activeDeadlineSeconds");

	if (hf_json_len(hf_json_get(spec, "containers")) == 0)
		hf_problem_required(admission, "", "spec.containers");
	check_volumes(&check);
	for (size_t l = 0; l < HF_ARRAY_LEN(container_lists); l++) {
		const struct hf_json *list = hf_json_get(spec, container_lists[l]);
		for (size_t i = 0; i < hf_json_len(list); i++) {
			snprintf(check.path, sizeof(check.path), "spec.%s[%zu]", container_lists[l],
				 i);
			check_container(&check, list, i);
		}
	}
	check_one_of(admission, spec, "restartPolicy", restart, "spec");
	check_one_of(admission, spec, "dnsPolicy", dns, "spec");
	if (hf_json_i64(grace, 0) < 0)
		hf_problem_invalid(admission, grace, "must be greater than or equal to 0",
				   "spec.terminationGracePeriodSeconds");
	if (deadline != NULL && hf_json_i64(deadline, 0) < 1)
		hf_problem_invalid(admission, deadline,
				   "must be between 1 and 2147483647, inclusive",
				   "spec.activeDeadlineSeconds");
	if (*str(spec, "hostname") != '\0' &&
	    hf_dns1123_label_problem(str(spec, "hostname")) != NULL)
		hf_problem_invalid(admission, hf_json_get(spec, "hostname"),
				   hf_dns1123_label_problem(str(spec, "hostname")),
				   "spec.hostname");
}

int hf_admit_pod(void *arg, struct hf_admission *admission, struct hf_error *err)
{
	int rc = hf_fields_check(admission, &hf_schema_pod, err);
	struct hf_json *spec;

	if (rc != 0)
		return rc;
	spec = hf_json_ensure_object(admission->object, "spec");
	default_pod(spec);
	/* What may change of a stored pod is the engine's to say. */
	if (admission->verb == HF_VERB_CREATE)
		check_pod(admission, spec);
	return 0;
}
