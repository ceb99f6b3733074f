/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/device_taint_rule.h"

#include "api/health_policy.h"
#include "api/lifetime.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define GROUP "resource.k8s.io/"
#define KIND "DeviceTaintRule"

/* ---- slices ---------------------------------------------------------------------------------- */

/* Finds an attribute by the last part of its name: a driver may write "uuid", or "gpu.example.com/uuid". */
static const char *find_attribute(const struct hf_json *attributes, const char *const *names,
				  size_t names_len)
{
	const char *key;
	struct hf_json *value;

	for (void *it = hf_json_next(attributes, NULL, &key, &value); it != NULL;
	     it = hf_json_next(attributes, it, &key, &value)) {
		const char *slash = strrchr(key, '/'), *last = slash == NULL ? key : slash + 1;

		for (size_t i = 0; i < names_len; i++)
			if (hf_str_case_eq(last, names[i]))
				return hf_json_path_str(value, "string", NULL);
	}
	return NULL;
}

static void read_device(const struct hf_json *json, struct hf_dra_device *device)
{
	static const char *const uuids[] = {"uuid"};
	static const char *const addresses[] = {"pciBusID", "pciAddress", "pciAddr", "pcieBusID"};
	static const char *const parents[] = {"parentUUID"};
	static const char *const parent_addresses[] = {"parentPciBusID", "parentPCIAddress"};
	const struct hf_json *attributes = hf_json_get(json, "attributes");

	*device = (struct hf_dra_device){
		.name = hf_json_path_str(json, "name", NULL),
		.uuid = find_attribute(attributes, uuids, HF_ARRAY_LEN(uuids)),
		.pci = find_attribute(attributes, addresses, HF_ARRAY_LEN(addresses)),
		.parent_uuid = find_attribute(attributes, parents, HF_ARRAY_LEN(parents)),
		.parent_pci = find_attribute(attributes, parent_addresses,
					     HF_ARRAY_LEN(parent_addresses)),
	};
}

bool hf_slice_read(struct hf_doc *doc, struct hf_arena *arena, struct hf_dra_slice *ret_slice)
{
	const struct hf_json *spec = hf_json_get(hf_doc_json(doc), "spec");
	const struct hf_json *pool = hf_json_get(spec, "pool"),
			     *list = hf_json_get(spec, "devices");
	size_t len = hf_json_len(list);
	struct hf_dra_device *devices;

	if (len > HF_SLICE_DEVICES_MAX)
		return false;
	devices = HF_ARENA_ARRAY(arena, struct hf_dra_device, len + 1);
	for (size_t i = 0; i < len; i++)
		read_device(hf_json_item(list, i), &devices[i]);
	*ret_slice = (struct hf_dra_slice){
		.driver = hf_json_path_str(spec, "driver", NULL),
		.pool = hf_json_path_str(pool, "name", NULL),
		.generation = hf_json_i64(hf_json_get(pool, "generation"), -1),
		.pool_slices = hf_json_i64(hf_json_get(pool, "resourceSliceCount"), -1),
		.devices = devices,
		.len = len};
	return !hf_str_is_empty(ret_slice->driver) && !hf_str_is_empty(ret_slice->pool) &&
	       ret_slice->generation >= 0 && ret_slice->pool_slices > 0;
}

/* ---- rules ----------------------------------------------------------------------------------- */

const char *hf_device_taint_name(struct hf_arena *arena, const char *node,
				 const struct hf_dra_match *device)
{
	const char *all = hf_arena_printf(arena, "%s\n%s\n%s\n%s", node, device->driver,
					  device->pool, device->device);
	/* A node's name has at most 253 bytes, a device's at most 63. */
	char *begin = hf_arena_printf(arena, "%.150s", node);
	char hash[17];

	/* The name is cut; a part of it must not end with a dot. */
	for (size_t len = strlen(begin);
	     len > 0 && (begin[len - 1] == '.' || begin[len - 1] == '-');)
		begin[--len] = '\0';
	snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)hf_hash_str(all));
	return hf_arena_printf(arena, "%s-%.63s-%.8s", begin, device->device, hash);
}

struct hf_json *hf_device_taint_json(const struct hf_device_taint *rule, const char *version,
				     const char *node_uid)
{
	struct hf_json *json = hf_json_object(), *metadata, *part, *spec;
	const struct hf_owner owner = {
		.api_version = "v1", .kind = "Node", .name = rule->node, .uid = node_uid};
	char api_version[64];

	/* An empty selector would take every device of the cluster out of use. */
	hf_assert(!hf_str_is_empty(rule->driver) && !hf_str_is_empty(rule->pool) &&
		  !hf_str_is_empty(rule->device));
	snprintf(api_version, sizeof(api_version), GROUP "%s", version);
	hf_json_set_str(json, "apiVersion", api_version);
	hf_json_set_str(json, "kind", KIND);
	metadata = hf_json_ensure_object(json, "metadata");
	hf_json_set_str(metadata, "name", rule->name);
	part = hf_json_ensure_object(metadata, "labels");
	hf_json_set_str(part, HF_DEVICE_TAINT_OWNER_LABEL, HF_DEVICE_TAINT_OWNER);
	part = hf_json_ensure_object(metadata, "annotations");
	hf_json_set_str(part, HF_DEVICE_TAINT_NODE, rule->node);
	hf_json_set_str(part, HF_DEVICE_TAINT_GPU, rule->gpu);
	hf_set_owner(metadata, &owner);
	spec = hf_json_ensure_object(json, "spec");
	part = hf_json_ensure_object(spec, "deviceSelector");
	hf_json_set_str(part, "driver", rule->driver);
	hf_json_set_str(part, "pool", rule->pool);
	hf_json_set_str(part, "device", rule->device);
	part = hf_json_ensure_object(spec, "taint");
	hf_json_set_str(part, "key", HF_QUARANTINE_TAINT);
	hf_json_set_str(part, "value", rule->cls);
	hf_json_set_str(part, "effect", rule->effect);
	return json;
}

struct hf_json *hf_device_taint_patch(const char *resource_version, const char *cls,
				      const char *effect)
{
	struct hf_json *patch = hf_json_object(), *taint;

	hf_json_set_str(hf_json_ensure_object(patch, "metadata"), "resourceVersion",
			resource_version);
	taint = hf_json_ensure_object(hf_json_ensure_object(patch, "spec"), "taint");
	hf_json_set_str(taint, "value", cls);
	hf_json_set_str(taint, "effect", effect);
	/* The API server sets the time anew. */
	hf_json_set(taint, "timeAdded", hf_json_null());
	return patch;
}

bool hf_device_taint_read(struct hf_doc *doc, struct hf_device_taint *ret_rule)
{
	const struct hf_json *json = hf_doc_json(doc);
	const struct hf_json *annotations = hf_json_path(json, "metadata", "annotations", NULL);
	const struct hf_json *selector = hf_json_path(json, "spec", "deviceSelector", NULL);
	const struct hf_json *taint = hf_json_path(json, "spec", "taint", NULL);

	*ret_rule = (struct hf_device_taint){
		.name = hf_doc_name(doc),
		.node = hf_json_path_str(annotations, HF_DEVICE_TAINT_NODE, NULL),
		.gpu = hf_json_path_str(annotations, HF_DEVICE_TAINT_GPU, NULL),
		.driver = hf_json_path_str(selector, "driver", NULL),
		.pool = hf_json_path_str(selector, "pool", NULL),
		.device = hf_json_path_str(selector, "device", NULL),
		.cls = hf_json_path_str(taint, "value", NULL),
		.effect = hf_json_path_str(taint, "effect", NULL)};
	return hf_streq(hf_json_path_str(json, "metadata", "labels", HF_DEVICE_TAINT_OWNER_LABEL,
					 NULL),
			HF_DEVICE_TAINT_OWNER) &&
	       hf_streq(hf_json_path_str(taint, "key", NULL), HF_QUARANTINE_TAINT) &&
	       !hf_str_is_empty(ret_rule->node) && !hf_str_is_empty(ret_rule->gpu) &&
	       !hf_str_is_empty(ret_rule->driver) && !hf_str_is_empty(ret_rule->pool) &&
	       !hf_str_is_empty(ret_rule->device);
}
