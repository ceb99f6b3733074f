/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/framework.h"

#include "base/str.h"
#include "core/model/names.h"

#include <string.h>

/*
 * Questions about the table of a kind of job, and the list of edits of one pod.
 */

/* First capacity of the list: labels, stamps and twenty variables fit without growing. */
#define EDITS_FIRST 32

int hf_framework_role(const struct hf_framework *framework, const char *type)
{
	hf_assert(framework && type);
	for (int i = 0; i < framework->roles_len; i++) {
		if (hf_str_case_eq(framework->roles[i].name, type))
			return i;
	}
	return -1;
}

size_t hf_framework_container(const struct hf_framework *framework, const struct hf_template *pod)
{
	for (size_t i = 0; i < pod->containers_len; i++) {
		if (hf_streq(pod->containers[i].name, framework->container_name))
			return i;
	}
	return 0;
}

const char *hf_framework_pod_name(const struct hf_framework *framework, int role,
				  struct hf_arena *arena, const char *job, int64_t index)
{
	const struct hf_role_type *type = &framework->roles[role];
	char *name;

	hf_assert(role < framework->roles_len);
	if (!hf_has_role(framework->single_roles, role))
		return hf_replica_name(arena, job, type->name, index);
	name = hf_arena_printf(arena, "%s-%s", job, hf_type_lower(arena, type->name));
	for (char *c = strchr(name, '/'); c; c = strchr(c, '/'))
		*c = '-';
	return name;
}

void hf_edits_init(struct hf_edits *edits, const char **shared, struct hf_arena *arena)
{
	hf_assert(shared && arena);
	edits->shared = shared;
	edits->arena = arena;
	edits->items = HF_ARENA_ARRAY(arena, struct hf_edit, EDITS_FIRST);
	edits->len = 0;
	edits->cap = EDITS_FIRST;
	edits->bytes = 0;
}

void hf_edits_add(struct hf_edits *edits, const struct hf_edit *edit)
{
	hf_assert(edits->arena && edits->len <= edits->cap);
	if (edits->len == edits->cap) {
		struct hf_edit *grown =
			HF_ARENA_ARRAY(edits->arena, struct hf_edit, 2 * edits->cap);

		memcpy(grown, edits->items, edits->len * sizeof(*grown));
		edits->items = grown;
		edits->cap *= 2;
	}
	edits->items[edits->len++] = *edit;
}

void hf_edits_env_text(struct hf_edits *edits, int container, const char *name, const char *value)
{
	struct hf_edit edit = {
		.kind = HF_EDIT_ENV, .container = container, .name = name, .value = value};

	hf_assert(container >= HF_EDIT_EVERY_CONTAINER && name && value);
	edits->bytes += strlen(value);
	hf_edits_add(edits, &edit);
}

void hf_edits_env(struct hf_edits *edits, int container, const char *name, const char *fmt, ...)
{
	HF_AUTO_STRBUF value = HF_STRBUF_INIT(HF_ENV_VALUE_MAX);
	va_list ap;

	va_start(ap, fmt);
	hf_strbuf_vaddf(&value, fmt, ap);
	va_end(ap);
	hf_edits_env_text(edits, container, name, hf_arena_strdup(edits->arena, value.data));
}
