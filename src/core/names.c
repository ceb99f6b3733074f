/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/names.h"

#include "base/str.h"

#include <string.h>

const char *hf_type_lower(struct hf_arena *arena, const char *type)
{
	char *lower;

	hf_assert(type);
	lower = hf_arena_strdup(arena, type);
	hf_str_lower(lower);
	return lower;
}

const char *hf_rank_name(struct hf_arena *arena, const char *type, int64_t index)
{
	hf_assert(type && index >= 0);
	return hf_arena_printf(arena, "%s-%lld", hf_type_lower(arena, type), (long long)index);
}

const char *hf_replica_name(struct hf_arena *arena, const char *job, const char *type,
			    int64_t index)
{
	char *name;

	hf_assert(job && type && index >= 0);
	name = hf_arena_printf(arena, "%s-%s-%lld", job, hf_type_lower(arena, type),
			       (long long)index);
	for (char *c = strchr(name, '/'); c; c = strchr(c, '/'))
		*c = '-';
	return name;
}
