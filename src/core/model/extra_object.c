/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/model_internal.h"

#include "base/str.h"

#include <string.h>

/*
 * The kinds of extra objects, the members of each kind that are kept up to date, and the digests
 * that compare contents.
 */

static const struct {
	const char *name, *version, *members[HF_EXTRA_MEMBERS_MAX + 1];
} kinds[] = {
	[HF_EXTRA_SERVICE_ACCOUNT] = {"ServiceAccount", "v1", {NULL}},
	[HF_EXTRA_CONFIG_MAP] = {"ConfigMap", "v1", {"data"}},
	[HF_EXTRA_ROLE] = {"Role", "rbac.authorization.k8s.io/v1", {"rules"}},
	/* A RoleBinding's roleRef is not compared, because the API server refuses to change it. */
	[HF_EXTRA_ROLE_BINDING] = {"RoleBinding", "rbac.authorization.k8s.io/v1", {"subjects"}},
	[HF_EXTRA_AUTOSCALER] = {"HorizontalPodAutoscaler",
				 "autoscaling/v2",
				 {"spec/scaleTargetRef", "spec/minReplicas", "spec/maxReplicas",
				  HF_AUTOSCALER_METRICS}},
	[HF_EXTRA_POD_GROUP] = {"PodGroup",
				"scheduling.x-k8s.io/v1alpha1",
				{"spec/minMember", "spec/minResources",
				 "spec/scheduleTimeoutSeconds"}},
	/* The queue of an existing group is not changed: Volcano's admission or a person chose
	 * it. */
	[HF_EXTRA_VOLCANO_GROUP] = {"PodGroup",
				    "scheduling.volcano.sh/v1beta1",
				    {"spec/minMember", "spec/minResources",
				     "spec/priorityClassName"}},
};
_Static_assert(HF_ARRAY_LEN(kinds) == HF_EXTRA_KINDS, "each kind of object has its line");

const char *hf_extra_kind_name(enum hf_extra_kind kind)
{
	hf_assert((size_t)kind < HF_ARRAY_LEN(kinds));
	return kinds[kind].name;
}

const char *hf_extra_kind_version(enum hf_extra_kind kind)
{
	hf_assert((size_t)kind < HF_ARRAY_LEN(kinds));
	return kinds[kind].version;
}

const char *const *hf_extra_kind_members(enum hf_extra_kind kind)
{
	hf_assert((size_t)kind < HF_ARRAY_LEN(kinds));
	return kinds[kind].members;
}

struct hf_extra *hf_extras_add(struct hf_extras *extras, enum hf_extra_kind kind, const char *name)
{
	hf_assert(extras->arena && name);
	extras->items = hf_grow(extras->arena, extras->items, extras->len, &extras->cap,
				sizeof(*extras->items));
	extras->items[extras->len] = (struct hf_extra){.kind = kind, .name = name};
	return &extras->items[extras->len++];
}

void hf_extra_label(struct hf_extras *extras, struct hf_extra *extra, const char *key,
		    const char *value)
{
	hf_assert(key && value);
	extra->labels = hf_grow(extras->arena, extra->labels, extra->labels_len, &extra->labels_cap,
				sizeof(*extra->labels));
	extra->labels[extra->labels_len++] = (struct hf_leaf){.path = key, .value = value};
}

static void add_leaf(struct hf_extras *extras, struct hf_extra *extra, const struct hf_leaf *leaf)
{
	extra->content = hf_grow(extras->arena, extra->content, extra->content_len,
				 &extra->content_cap, sizeof(*extra->content));
	extra->content[extra->content_len++] = *leaf;
}

void hf_extra_set(struct hf_extras *extras, struct hf_extra *extra, const char *path,
		  const char *value)
{
	const struct hf_leaf leaf = {.path = path, .value = value};

	hf_assert(path && value);
	add_leaf(extras, extra, &leaf);
}

void hf_extra_set_number(struct hf_extras *extras, struct hf_extra *extra, const char *path,
			 int64_t number)
{
	const struct hf_leaf leaf = {.path = path, .type = HF_LEAF_NUMBER, .number = number};

	hf_assert(path);
	add_leaf(extras, extra, &leaf);
}

void hf_extra_set_object(struct hf_extras *extras, struct hf_extra *extra, const char *path)
{
	const struct hf_leaf leaf = {.path = path, .type = HF_LEAF_OBJECT};

	hf_assert(path);
	add_leaf(extras, extra, &leaf);
}

void hf_extra_set_json(struct hf_extras *extras, struct hf_extra *extra, const char *path,
		       const char *json, uint64_t digest)
{
	const struct hf_leaf leaf = {
		.path = path, .value = json, .type = HF_LEAF_JSON, .digest = digest};

	hf_assert(path && json);
	add_leaf(extras, extra, &leaf);
}

const char *hf_leaf_key(struct hf_arena *arena, const char *key)
{
	char *escaped = hf_arena_alloc(arena, 2 * strlen(key) + 1), *to = escaped;

	for (const char *from = key; *from; from++) {
		bool special = *from == '~' || *from == '/' || (*from == '[' && from == key);

		if (special)
			*to++ = '~';
		*to++ = !special ? *from : *from == '~' ? '0' : *from == '/' ? '1' : '2';
	}
	*to = '\0';
	return escaped;
}

/* The last step of MurmurHash3.  Digests are added up, and without this mixing the sum of two
 * different contents could be equal. */
static uint64_t mix_bits(uint64_t h)
{
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdu;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53u;
	return h ^ h >> 33;
}

uint64_t hf_leaf_digest(const char *path, const char *value)
{
	hf_assert(path && value);
	return mix_bits(mix_bits(hf_hash_str(path)) + hf_hash_str(value));
}

uint64_t hf_number_digest(const char *path, int64_t number)
{
	hf_assert(path);
	/* The digest of a number.  No text has the same digest, except with a chance of 1 in
	 * 2^64. */
	return mix_bits(mix_bits(hf_hash_str(path)) + mix_bits((uint64_t)number + 1));
}

static uint64_t leaf_digest(const struct hf_leaf *leaf)
{
	switch (leaf->type) {
	case HF_LEAF_TEXT: return hf_leaf_digest(leaf->path, leaf->value);
	case HF_LEAF_NUMBER: return hf_number_digest(leaf->path, leaf->number);
	case HF_LEAF_OBJECT: break;
	case HF_LEAF_JSON: return leaf->digest;
	}
	return 0;
}

static bool is_under(const char *path, const char *member)
{
	size_t len = strlen(member);

	return strncmp(path, member, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

uint64_t hf_extra_digest(const struct hf_extra *extra)
{
	const char *const *members = hf_extra_kind_members(extra->kind);
	uint64_t sum = 0;

	for (size_t i = 0; i < extra->content_len; i++)
		for (size_t k = 0; members[k]; k++)
			if (is_under(extra->content[i].path, members[k]))
				sum += leaf_digest(&extra->content[i]);
	return sum;
}
