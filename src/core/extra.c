/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/brain_internal.h"

#include "base/str.h"

#include <string.h>

static const struct {
	const char *name, *version, *root;
} kinds[] = {
	[HF_EXTRA_SERVICE_ACCOUNT] = {"ServiceAccount", "v1", NULL},
	[HF_EXTRA_CONFIG_MAP] = {"ConfigMap", "v1", "data"},
	[HF_EXTRA_ROLE] = {"Role", "rbac.authorization.k8s.io/v1", "rules"},
	/* An API server lets nobody change its roleRef. */
	[HF_EXTRA_ROLE_BINDING] = {"RoleBinding", "rbac.authorization.k8s.io/v1", "subjects"},
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

const char *hf_extra_kind_root(enum hf_extra_kind kind)
{
	hf_assert((size_t)kind < HF_ARRAY_LEN(kinds));
	return kinds[kind].root;
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
	extra->labels[extra->labels_len++] = (struct hf_leaf){key, value};
}

void hf_extra_set(struct hf_extras *extras, struct hf_extra *extra, const char *path,
		  const char *value)
{
	hf_assert(path && value);
	extra->content = hf_grow(extras->arena, extra->content, extra->content_len,
				 &extra->content_cap, sizeof(*extra->content));
	extra->content[extra->content_len++] = (struct hf_leaf){path, value};
}

/* The finish of MurmurHash3: sums of what is not mixed would cancel out. */
static uint64_t mix(uint64_t h)
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
	return mix(mix(hf_hash_str(path)) + hf_hash_str(value));
}

uint64_t hf_extra_digest(const struct hf_extra *extra)
{
	const char *root = hf_extra_kind_root(extra->kind);
	size_t len = root ? strlen(root) : 0;
	uint64_t sum = 0;

	for (size_t i = 0; root && i < extra->content_len; i++) {
		const struct hf_leaf *leaf = &extra->content[i];

		if (strncmp(leaf->path, root, len) == 0 && leaf->path[len] == '/')
			sum += hf_leaf_digest(leaf->path, leaf->value);
	}
	return sum;
}
