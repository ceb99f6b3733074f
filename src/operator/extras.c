/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/operator_internal.h"

#include "base/str.h"
#include "base/vec.h"
#include "store/resource.h"

/*
 * Extra objects of jobs are watched from the first job on whose kind has any: a cluster without
 * such jobs pays nothing for them, and an operator whose role lacks the rights is told so only
 * then.  Until they are known, passes of those jobs wait.
 */

const struct hf_resource *hf_extra_resource(enum hf_extra_kind kind)
{
	static const struct hf_resource *const resources[] = {
		[HF_EXTRA_SERVICE_ACCOUNT] = &hf_serviceaccounts,
		[HF_EXTRA_CONFIG_MAP] = &hf_configmaps,
		[HF_EXTRA_ROLE] = &hf_roles,
		[HF_EXTRA_ROLE_BINDING] = &hf_rolebindings,
	};

	_Static_assert(HF_ARRAY_LEN(resources) == HF_EXTRA_KINDS, "each has its resource");
	hf_assert((size_t)kind < HF_ARRAY_LEN(resources));
	return resources[kind];
}

static bool has(const struct hf_framework *framework, size_t kind)
{
	return (framework->extra_kinds & HF_EXTRA_BIT(kind)) != 0;
}

void hf_extras_start(struct hf_operator *op, const struct hf_framework *framework)
{
	for (size_t i = 0; i < HF_EXTRA_KINDS; i++) {
		if (!has(framework, i) || op->extras[i].started || op->stopping)
			continue;
		op->extras[i].started = true;
		hf_cache_start(op->extras[i].cache);
	}
}

bool hf_extras_synced(const struct hf_operator *op, const struct hf_framework *framework)
{
	for (size_t i = 0; i < HF_EXTRA_KINDS; i++)
		if (has(framework, i) && !hf_cache_synced(op->extras[i].cache))
			return false;
	return true;
}

void hf_extras_enqueue(struct hf_operator *op)
{
	for (size_t i = 0; i < op->n_kinds; i++) {
		struct hf_kind *kind = &op->kinds[i];

		if (kind->framework->extra_kinds != 0 && kind->running &&
		    hf_extras_synced(op, kind->framework))
			hf_operator_enqueue_kind(kind);
	}
}

static void see(const struct hf_extra *extra, const struct hf_cache *cache,
		const struct hf_job *job, struct hf_views *views, struct hf_extra_seen *list,
		size_t *len)
{
	const struct hf_cache_entry *entry = hf_cache_get(cache, job->view->ns, extra->name);
	struct hf_view *view = entry == NULL ? NULL : entry->view;

	if (view == NULL)
		return;
	if (views != NULL) {
		bool pushed = HF_VEC_PUSH(views, view);

		hf_assert(pushed);
		hf_view_ref(view);
	}
	hf_view_extra(view, &list[*len]);
	list[*len].kind = extra->kind;
	list[(*len)++].owned = hf_streq(view->controller_uid, job->view->uid);
}

/* Looked up by the names that the table wants, of ranks that are all absent: that finds strangers'
 * too, and what may have to go. */
void hf_extras_see(const struct hf_observe_args *args, const struct hf_job *job,
		   struct hf_arena *arena, struct hf_views *views, struct hf_observed *seen)
{
	const struct hf_ranks_seen nobody = {0};
	struct hf_extras wanted = {.arena = arena};
	struct hf_extra_seen *list;

	job->framework->extras(job, &nobody, &wanted);
	list = HF_ARENA_ARRAY(arena, struct hf_extra_seen, wanted.len + 1);
	for (size_t i = 0; i < wanted.len; i++)
		if (args->extras[wanted.items[i].kind] != NULL)
			see(&wanted.items[i], args->extras[wanted.items[i].kind], job, views, list,
			    &seen->extras_len);
	seen->extras = list;
}
