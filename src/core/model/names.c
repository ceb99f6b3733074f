/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/names.h"

#include "base/str.h"

#include <string.h>

/*
 * The names of ranks, pods and services.  Input: job, replica type, index.  Output: texts in an
 * arena.
 */

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

/* The name of a rank's pod and service.  Built without printf, because each step calls it for each
 * rank. */
const char *hf_replica_name(struct hf_arena *arena, const char *job, const char *type,
			    int64_t index)
{
	char digits[24], *d = digits + sizeof(digits), *name, *at;
	size_t job_len, type_len, digits_len;

	hf_assert(job && type && index >= 0);
	do {
		*--d = (char)('0' + index % 10);
		index /= 10;
	} while (index > 0);
	job_len = strlen(job);
	type_len = strlen(type);
	digits_len = (size_t)(digits + sizeof(digits) - d);
	at = name = HF_ARENA_ARRAY(arena, char, job_len + type_len + digits_len + 3);
	memcpy(at, job, job_len);
	at += job_len;
	*at++ = '-';
	memcpy(at, type, type_len + 1);
	hf_str_lower(at);
	at += type_len;
	*at++ = '-';
	memcpy(at, d, digits_len);
	at[digits_len] = '\0';
	for (char *c = strchr(name, '/'); c; c = strchr(c, '/'))
		*c = '-';
	return name;
}
