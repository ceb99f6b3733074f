/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/admission_internal.h"

#include "base/str.h"

#include <string.h>

/*
 * Admission of pods: the defaults that clients show and the kubelet relies on (upstream's core/v1
 * defaults.go and the priority admission plug-in), then the rules of api/pod_rules.h for a new pod.
 *
 * Left out, because the plane does not act on them: service accounts and their tokens, and the
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

/* Returns the default imagePullPolicy. An image with a digest, or with a tag other than "latest",
 * does not change, so it need not be pulled again. */
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

/* ---- */

static void check_pod(struct hf_admission *admission, const struct hf_json *spec)
{
	HF_AUTO_ARENA arena = hf_arena_create(HF_ADMISSION_BYTES_MAX);
	struct hf_field_errors errors;

	hf_field_errors_init(&errors, arena);
	hf_pod_rules_check(spec, "spec", &errors);
	hf_admission_report(admission, &errors);
}

int hf_admit_pod(void *arg, struct hf_admission *admission, struct hf_error *err)
{
	int rc = hf_fields_check(admission, &hf_schema_pod, err);
	struct hf_json *spec;

	if (rc != 0)
		return rc;
	spec = hf_json_ensure_object(admission->object, "spec");
	default_pod(spec);
	/* Check the spec of new pods only: engine_pod.c checks changes of stored pods. */
	if (admission->verb == HF_VERB_CREATE)
		check_pod(admission, spec);
	return 0;
}
