/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/str.h"

/*
 * Lists that the Kubernetes API types treat as maps or sets, by the list's name. Strategic merge
 * patches merge items by the first key (patchMergeKey). Server-side apply identifies items by all
 * keys (listType, listMapKey). Some lists are known to only one of the two.
 */

enum {
	PATCHED = 1 << 0,
	APPLIED = 1 << 1,
	BOTH = PATCHED | APPLIED,
};

static const struct hf_list_rule rules[] = {
	{"containers", {"name", NULL}, BOTH},
	{"initContainers", {"name", NULL}, BOTH},
	{"ephemeralContainers", {"name", NULL}, BOTH},
	{"env", {"name", NULL}, BOTH},
	{"ports", {"containerPort", "protocol"}, BOTH},
	{"ports", {"port", "protocol"}, BOTH}, /* of a Service */
	{"volumeMounts", {"mountPath", NULL}, BOTH},
	{"volumeDevices", {"devicePath", NULL}, BOTH},
	{"volumes", {"name", NULL}, BOTH},
	{"imagePullSecrets", {"name", NULL}, BOTH},
	{"secrets", {"name", NULL}, BOTH},
	{"hostAliases", {"ip", NULL}, BOTH},
	{"topologySpreadConstraints", {"topologyKey", "whenUnsatisfiable"}, BOTH},
	{"schedulingGates", {"name", NULL}, BOTH},
	{"resourceClaims", {"name", NULL}, BOTH},
	{"claims", {"name", NULL}, APPLIED},
	{"podIPs", {"ip", NULL}, PATCHED},
	{"addresses", {"type", NULL}, PATCHED},
	{"conditions", {"type", NULL}, BOTH},
	{"ownerReferences", {"uid", NULL}, BOTH},
	{"finalizers", {NULL, NULL}, BOTH},
};

static const struct hf_list_rule *find_rule(size_t from, const char *name, unsigned int used_by)
{
	for (size_t i = from; i < HF_ARRAY_LEN(rules); i++)
		if ((rules[i].used_by & used_by) && hf_streq(rules[i].name, name))
			return &rules[i];
	return NULL;
}

const struct hf_list_rule *hf_list_rule_patched(const char *name)
{
	return find_rule(0, name, PATCHED);
}

const struct hf_list_rule *hf_list_rule_next(const struct hf_list_rule *rule)
{
	return find_rule((size_t)(rule - rules) + 1, rule->name, PATCHED);
}

static bool has_key(const struct hf_list_rule *rule, const struct hf_json *array)
{
	for (size_t i = 0; rule->keys[0] && i < hf_json_len(array); i++)
		if (!hf_json_get(hf_json_item(array, i), rule->keys[0]))
			return false;
	return true;
}

const struct hf_list_rule *hf_list_rule_applied(const char *name, const struct hf_json *array)
{
	const struct hf_list_rule *rule = find_rule(0, name, APPLIED);

	while (rule && !has_key(rule, array))
		rule = find_rule((size_t)(rule - rules) + 1, name, APPLIED);
	return rule;
}
