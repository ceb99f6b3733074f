/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/lifetime.h"

#include "base/str.h"
#include "json/json.h"

#include <string.h>

static const struct hf_json *owners_of(const struct hf_json *object)
{
	return hf_json_path(object, "metadata", "ownerReferences", NULL);
}

hf_time hf_created_at(const struct hf_json *object)
{
	const char *text = hf_json_path_str(object, "metadata", "creationTimestamp", NULL);
	hf_time at;

	return text != NULL && hf_time_parse(text, &at, NULL) == 0 ? at : 0;
}

bool hf_is_leaving(const struct hf_json *object)
{
	return hf_json_path(object, "metadata", "deletionTimestamp", NULL) != NULL;
}

void hf_set_owner(struct hf_json *metadata, const struct hf_owner *owner)
{
	struct hf_json *owners = hf_json_array(), *item = hf_json_object();

	hf_json_set_str(item, "apiVersion", owner->api_version);
	hf_json_set_str(item, "kind", owner->kind);
	hf_json_set_str(item, "name", owner->name);
	hf_json_set_str(item, "uid", owner->uid);
	hf_json_append(owners, item);
	hf_json_set(metadata, "ownerReferences", owners);
}

bool hf_is_owned_by(const struct hf_json *object, const char *uid)
{
	const struct hf_json *owners = owners_of(object);

	for (size_t i = 0; i < hf_json_len(owners); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(owners, i), "uid", NULL), uid))
			return true;
	return false;
}

const struct hf_json *hf_find_controller(const struct hf_json *object)
{
	const struct hf_json *owners = owners_of(object);

	for (size_t i = 0; i < hf_json_len(owners); i++)
		if (hf_json_true(hf_json_get(hf_json_item(owners, i), "controller"), false))
			return hf_json_item(owners, i);
	return NULL;
}

/* ---- finalizers ------------------------------------------------------------------------------- */

bool hf_has_finalizer(const struct hf_json *object, const char *finalizer)
{
	const struct hf_json *list = hf_json_path(object, "metadata", "finalizers", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_str(hf_json_item(list, i), ""), finalizer))
			return true;
	return false;
}

struct hf_doc *hf_finalizer_patch(struct hf_doc *doc, const char *finalizer, bool wanted)
{
	const struct hf_json *old = hf_json_path(hf_doc_json(doc), "metadata", "finalizers", NULL);
	struct hf_json *patch = hf_json_object(), *list = hf_json_array();
	struct hf_json *metadata = hf_json_ensure_object(patch, "metadata");

	for (size_t i = 0; i < hf_json_len(old); i++)
		if (!hf_streq(hf_json_str(hf_json_item(old, i), ""), finalizer))
			hf_json_append(list, hf_json_copy(hf_json_item(old, i)));
	if (wanted)
		hf_json_append(list, hf_json_string(finalizer));
	hf_json_set_str(metadata, "resourceVersion", hf_doc_resource_version(doc));
	if (hf_json_len(list) == 0) {
		hf_json_unref(list);
		list = hf_json_null();
	}
	hf_json_set(metadata, "finalizers", list);
	return hf_doc_from_json(patch);
}

/* ---- pods ------------------------------------------------------------------------------------- */

bool hf_is_pod_of_node(const struct hf_json *pod)
{
	const char *kind = hf_json_path_str(hf_find_controller(pod), "kind", NULL);

	return hf_streq(kind, "DaemonSet") || hf_streq(kind, "Node") ||
	       hf_json_path(pod, "metadata", "annotations", "kubernetes.io/config.mirror", NULL) !=
		       NULL;
}

/* A node may have plugins of other hardware too, such as "sriov-device-plugin". */
static bool is_plugin_name(const char *name)
{
	static const char *const makers[] = {"nvidia", "amd", "gpu"};

	if (hf_streq(name, "device-plugin") || hf_streq(name, "amdgpu-dp-ds"))
		return true;
	for (size_t i = 0; i < HF_ARRAY_LEN(makers); i++)
		if (strstr(name, makers[i]) != NULL)
			return strstr(name, "device-plugin") != NULL;
	return false;
}

bool hf_is_plugin_pod(const struct hf_json *pod)
{
	static const char *const keys[] = {"app", "name", "k8s-app", "app.kubernetes.io/name"};
	const struct hf_json *labels = hf_json_path(pod, "metadata", "labels", NULL);

	for (size_t i = 0; i < HF_ARRAY_LEN(keys); i++) {
		const char *value = hf_str_or(hf_json_path_str(labels, keys[i], NULL), "");

		if (is_plugin_name(value))
			return hf_is_pod_of_node(pod);
	}
	return false;
}

bool hf_has_pod_ended(const struct hf_json *pod)
{
	const char *phase = hf_json_path_str(pod, "status", "phase", NULL);

	return hf_streq(phase, "Succeeded") || hf_streq(phase, "Failed");
}

bool hf_is_pod_over(const struct hf_json *pod)
{
	return hf_has_pod_ended(pod) && !hf_is_leaving(pod);
}
