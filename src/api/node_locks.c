/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/node_locks.h"

#include "api/condition.h"
#include "api/remediation.h"
#include "base/str.h"
#include "json/json.h"

#include <stdio.h>
#include <string.h>

#define KURED_LOCK "weave.works/kured-node-lock"

struct hf_doc *hf_node_lease(struct hf_doc *old, const char *node, const char *holder,
			     const struct hf_owner *owner, hf_time now)
{
	struct hf_json *lease = old != NULL ? hf_doc_copy_json(old) : hf_json_object();
	struct hf_json *metadata = hf_json_ensure_object(lease, "metadata"), *spec;
	char name[sizeof(HF_NODE_LEASE_PREFIX) + 253], text[HF_TIME_TEXT_MAX];

	snprintf(name, sizeof(name), HF_NODE_LEASE_PREFIX "%s", node);
	hf_time_format_micro(now, text);
	hf_json_set_str(lease, "apiVersion", "coordination.k8s.io/v1");
	hf_json_set_str(lease, "kind", "Lease");
	hf_json_set_str(metadata, "name", name);
	hf_json_set_str(metadata, "namespace", HF_MEND_NAMESPACE);
	hf_set_owner(metadata, owner);
	spec = hf_json_ensure_object(lease, "spec");
	hf_json_set_str(spec, "holderIdentity", holder);
	hf_json_set_str(spec, "acquireTime", text);
	hf_json_set_str(spec, "renewTime", text);
	return hf_doc_from_json(lease);
}

/* kured's lock is JSON in an annotation of its DaemonSet: {"nodeID": NODE}, or a list of such objects in "locks". */
bool hf_node_has_kured_lock(const struct hf_json *daemon_set, const char *node)
{
	const char *text =
		hf_json_path_str(daemon_set, "metadata", "annotations", KURED_LOCK, NULL);
	HF_AUTO_JSON lock = NULL;
	const struct hf_json *locks;

	if (hf_str_is_empty(text))
		return false;
	if (hf_json_parse(text, strlen(text), NULL, &lock, NULL) != 0)
		return true;
	if (hf_streq(hf_json_path_str(lock, "nodeID", NULL), node))
		return true;
	locks = hf_json_get(lock, "locks");
	for (size_t i = 0; i < hf_json_len(locks); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(locks, i), "nodeID", NULL), node))
			return true;
	return false;
}

/* The type is the word, or ends with "/" and the word. */
static bool has_word(const char *type, const char *word)
{
	const char *slash = type == NULL ? NULL : strrchr(type, '/');

	return hf_streq(slash == NULL ? type : slash + 1, word);
}

const char *hf_node_find_maintenance(const struct hf_json *node)
{
	const struct hf_json *list = hf_json_path(node, "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *item = hf_json_item(list, i);
		const char *type = hf_json_path_str(item, "type", NULL);

		if ((has_word(type, "DrainInProgress") ||
		     has_word(type, "MaintenanceInProgress")) &&
		    !hf_streq(type, HF_MAINTENANCE_CONDITION) &&
		    hf_streq(hf_json_path_str(item, "status", NULL), "True"))
			return type;
	}
	return NULL;
}

const char *hf_node_find_lock(const struct hf_json *node, const char *name,
			      const struct hf_json *kured, bool in_maintenance,
			      struct hf_arena *arena)
{
	const char *condition = hf_node_find_maintenance(node);

	if (hf_node_has_kured_lock(kured, name))
		return "kured";
	if (in_maintenance)
		return "NodeMaintenance";
	return condition == NULL
		       ? NULL
		       : hf_arena_printf(arena, "the tool that set condition %s", condition);
}

bool hf_node_is_in_maintenance(const struct hf_json *node)
{
	return hf_condition_is_true(node, HF_MAINTENANCE_CONDITION);
}

const char *hf_node_maintenance_message(const struct hf_json *node)
{
	return hf_node_is_in_maintenance(node)
		       ? hf_json_path_str(hf_find_condition(node, HF_MAINTENANCE_CONDITION),
					  "message", NULL)
		       : NULL;
}

struct hf_doc *hf_node_maintenance_patch(struct hf_doc *node, bool is_true, const char *reason,
					 const char *message, hf_time now)
{
	struct hf_json *patch = hf_json_object(), *item = hf_json_object();
	char text[HF_TIME_TEXT_MAX];

	hf_time_format(now, text);
	hf_json_set_str(item, "type", HF_MAINTENANCE_CONDITION);
	hf_json_set_str(item, "status", is_true ? "True" : "False");
	hf_json_set_str(item, "reason", reason);
	hf_json_set_str(item, "message", message);
	hf_json_set_str(item, "lastHeartbeatTime", text);
	hf_json_set_str(item, "lastTransitionTime", text);
	hf_json_set_str(hf_json_ensure_object(patch, "metadata"), "resourceVersion",
			hf_doc_resource_version(node));
	hf_json_append(hf_json_ensure_array(hf_json_ensure_object(patch, "status"), "conditions"),
		       item);
	return hf_doc_from_json(patch);
}
