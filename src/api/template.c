/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/lifetime.h"
#include "api/reader_internal.h"

#include "base/str.h"
#include "base/strbuf.h"

#include <string.h>

/* Reads the facts of a pod template that core needs; all other fields stay in the document. */

/* The most items of a list that are read here. The API server limits a pod by the size of the
 * object, which is at most 1.5 MiB, with at least ten bytes for each container. */
#define CONTAINERS_MAX 4096
#define PORTS_MAX 4096
#define QUANTITY_BYTES_MAX 64 /* the longest text of a quantity that is a JSON number */

static void read_ports(struct hf_reader *r, const struct hf_json *container,
		       struct hf_container *ret_container)
{
	const struct hf_json *array = hf_reader_get(r, container, "ports", HF_JSON_ARRAY);
	size_t n = hf_json_len(array) < PORTS_MAX ? hf_json_len(array) : PORTS_MAX, len = 0;
	struct hf_port *ports = HF_ARENA_ARRAY(r->arena, struct hf_port, n + 1);

	for (size_t i = 0; i < n; i++) {
		const struct hf_json *port = hf_reader_item(r, array, "ports", i, HF_JSON_OBJECT);
		size_t mark = hf_reader_enter(r, ".ports[%zu]", i);
		struct hf_opt_int number = hf_reader_int(r, port, "containerPort", 1, 65535);
		const char *name = hf_str_or(hf_reader_str(r, port, "name"), "");
		if (number.set) {
			ports[len].name = name;
			ports[len++].number = (int32_t)number.value;
		}
		hf_reader_leave(r, mark);
	}
	ret_container->ports = ports;
	ret_container->ports_len = len;
}

/* Reads the names of a container's environment variables, and the names of resources with
 * limits. */
static void read_details(struct hf_reader *r, const struct hf_json *container,
			 struct hf_container *ret_container)
{
	const struct hf_json *env = hf_reader_get(r, container, "env", HF_JSON_ARRAY);
	const struct hf_json *limits = hf_json_path(container, "resources", "limits", NULL);
	const char **names = HF_ARENA_ARRAY(r->arena, const char *, hf_json_len(env) + 1);
	const char **keys = HF_ARENA_ARRAY(r->arena, const char *, hf_json_len(limits) + 1);
	struct hf_json *value;
	const char *key;

	for (size_t i = 0; i < hf_json_len(env); i++)
		names[i] = hf_json_str(hf_json_get(hf_json_item(env, i), "name"), "");
	ret_container->env = names;
	ret_container->env_len = hf_json_len(env);
	if (hf_json_type(limits) == HF_JSON_OBJECT)
		for (void *it = NULL; (it = hf_json_next(limits, it, &key, &value)) != NULL;)
			keys[ret_container->limits_len++] = key;
	ret_container->limits = keys;
}

/* Reads names with quantities; a quantity may be a text or a number. */
const struct hf_key_value *hf_read_amounts(struct hf_reader *r, const struct hf_json *amounts,
					   size_t *ret_len)
{
	size_t n = hf_json_type(amounts) == HF_JSON_OBJECT ? hf_json_len(amounts) : 0, len = 0;
	struct hf_key_value *read = HF_ARENA_ARRAY(r->arena, struct hf_key_value, n + 1);
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; n > 0 && (it = hf_json_next(amounts, it, &key, &value)) != NULL;) {
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(QUANTITY_BYTES_MAX);

		if (hf_json_type(value) != HF_JSON_STRING)
			hf_json_write(value, HF_JSON_COMPACT, &text);
		read[len].key = key;
		read[len++].value = hf_json_str(value, hf_arena_strdup(r->arena, text.data));
	}
	*ret_len = len;
	return read;
}

/* Reads the requests of a member of a pod group. As in upstream, an empty map of requests counts as
 * present. */
static void read_requests(struct hf_reader *r, const struct hf_json *container,
			  struct hf_container *ret_container)
{
	const struct hf_json *resources = hf_json_get(container, "resources");
	const struct hf_json *requests = hf_json_get(resources, "requests");

	if (hf_json_type(requests) != HF_JSON_OBJECT)
		requests = hf_json_get(resources, "limits");
	ret_container->requests = hf_read_amounts(r, requests, &ret_container->requests_len);
}

static const struct hf_container *read_containers(struct hf_reader *r, const struct hf_json *pod,
						  const char *key, unsigned details,
						  size_t *ret_len)
{
	const struct hf_json *array = hf_reader_get(r, pod, key, HF_JSON_ARRAY);
	size_t n = hf_json_len(array) < CONTAINERS_MAX ? hf_json_len(array) : CONTAINERS_MAX;
	struct hf_container *containers = HF_ARENA_ARRAY(r->arena, struct hf_container, n + 1);

	for (size_t i = 0; i < n; i++) {
		const struct hf_json *item = hf_reader_item(r, array, key, i, HF_JSON_OBJECT);
		size_t mark = hf_reader_enter(r, ".%s[%zu]", key, i);
		containers[i].name = hf_str_or(hf_reader_str(r, item, "name"), "");
		containers[i].image = hf_str_or(hf_reader_str(r, item, "image"), "");
		containers[i].has_command =
			hf_json_len(hf_reader_get(r, item, "command", HF_JSON_ARRAY)) > 0;
		read_ports(r, item, &containers[i]);
		if ((details & HF_READ_DETAILS) != 0)
			read_details(r, item, &containers[i]);
		if ((details & HF_READ_REQUESTS) != 0)
			read_requests(r, item, &containers[i]);
		hf_reader_leave(r, mark);
	}
	*ret_len = n;
	return containers;
}

/* Tells whether Kueue chooses the node (its scheduling gate is present) or has chosen it (the node
 * selector names the host). */
static bool is_placed(struct hf_reader *r, const struct hf_json *pod)
{
	const struct hf_json *gates = hf_reader_get(r, pod, "schedulingGates", HF_JSON_ARRAY);
	const struct hf_json *selector = hf_reader_get(r, pod, "nodeSelector", HF_JSON_OBJECT);

	for (size_t i = 0; i < hf_json_len(gates); i++)
		if (hf_streq(hf_json_str(hf_json_get(hf_json_item(gates, i), "name"), NULL),
			     "kueue.x-k8s.io/topology"))
			return true;
	return hf_json_get(selector, "kubernetes.io/hostname") != NULL;
}

/* Tells whether a container asks for a device: the amount is above 0 and the name has the form that
 * the API server requires of extended resources. */
static bool is_device(const char *resource, const struct hf_json *amount)
{
	return strchr(resource, '/') != NULL && strstr(resource, "kubernetes.io/") == NULL &&
	       !hf_streq(hf_json_str(amount, NULL), "0") && hf_json_i64(amount, 1) != 0;
}

static bool asks_for_devices(const struct hf_json *pod, const char *containers)
{
	static const char *const lists[] = {"limits", "requests"};
	const struct hf_json *array = hf_json_get(pod, containers);
	struct hf_json *amount;
	const char *key;

	for (size_t i = 0; i < hf_json_len(array) && i < CONTAINERS_MAX; i++) {
		for (size_t l = 0; l < HF_ARRAY_LEN(lists); l++) {
			const struct hf_json *amounts =
				hf_json_path(hf_json_item(array, i), "resources", lists[l], NULL);

			if (hf_json_type(amounts) != HF_JSON_OBJECT)
				continue;
			for (void *it = NULL;
			     (it = hf_json_next(amounts, it, &key, &amount)) != NULL;)
				if (is_device(key, amount))
					return true;
		}
	}
	return false;
}

bool hf_asks_for_devices(const struct hf_json *pod_spec)
{
	return asks_for_devices(pod_spec, "containers") ||
	       asks_for_devices(pod_spec, "initContainers") ||
	       hf_json_len(hf_json_get(pod_spec, "resourceClaims")) > 0;
}

const char *hf_find_shared_claim(const struct hf_json *pod_spec)
{
	const struct hf_json *claims = hf_json_get(pod_spec, "resourceClaims");

	for (size_t i = 0; i < hf_json_len(claims); i++) {
		const char *name =
			hf_json_path_str(hf_json_item(claims, i), "resourceClaimName", NULL);

		if (!hf_str_is_empty(name))
			return name;
	}
	return NULL;
}

void hf_read_template(struct hf_reader *r, const struct hf_json *replica, unsigned details,
		      struct hf_template *ret_template)
{
	const struct hf_json *template = hf_reader_get(r, replica, "template", HF_JSON_OBJECT);
	struct hf_field_errors *errors = r->errors;
	size_t mark = hf_reader_enter(r, ".template");
	const struct hf_json *pod;

	/* The check of types has reported all errors of the template, so the reads below report
	 * none. */
	if (errors != NULL && !hf_check_template_types(r, template))
		r->errors = NULL;
	pod = hf_reader_get(r, template, "spec", HF_JSON_OBJECT);
	(void)hf_reader_enter(r, ".spec");
	ret_template->containers =
		read_containers(r, pod, "containers", details, &ret_template->containers_len);
	ret_template->init_containers =
		read_containers(r, pod, "initContainers", 0, &ret_template->init_containers_len);
	ret_template->restart_policy = hf_reader_str(r, pod, "restartPolicy");
	ret_template->scheduler_name = hf_reader_str(r, pod, "schedulerName");
	ret_template->service_account = (details & HF_READ_DETAILS) != 0
						? hf_reader_str(r, pod, "serviceAccountName")
						: NULL;
	ret_template->placed = is_placed(r, pod);
	ret_template->devices = hf_asks_for_devices(pod);
	ret_template->shared_claims = hf_find_shared_claim(pod) != NULL;
	ret_template->termination_grace_seconds =
		hf_reader_int(r, pod, "terminationGracePeriodSeconds", 0, INT32_MAX);
	r->errors = errors;
	hf_reader_leave(r, mark);
}
