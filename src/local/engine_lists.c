/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "local/engine_internal.h"

#include "base/str.h"

/*
 * Lists that are really maps or sets, as the Kubernetes API types have it, by name: what a strategic
 * merge patch merges by (patchMergeKey) and what server-side apply tells items apart by (listType,
 * listMapKey).  The first key is the same in both; some lists are of one of the two alone.
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

static const struct hf_list_rule *find(size_t from, const char *name, unsigned int by)
{
	for (size_t i = from; i < HF_ARRAY_LEN(rules); i++)
		if ((rules[i].by & by) && hf_streq(rules[i].name, name))
			return &rules[i];
	return NULL;
}

const struct hf_list_rule *hf_list_rule_patched(const char *name)
{
	return find(0, name, PATCHED);
}

const struct hf_list_rule *hf_list_rule_next(const struct hf_list_rule *rule)
{
	return find((size_t)(rule - rules) + 1, rule->name, PATCHED);
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
	const struct hf_list_rule *rule = find(0, name, APPLIED);

	while (rule && !has_key(rule, array))
		rule = find((size_t)(rule - rules) + 1, name, APPLIED);
	return rule;
}
