/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/operator_internal.h"

#include "api/extra_object.h"
#include "base/str.h"
#include "base/vec.h"
#include "operator/kinds_internal.h"
#include "store/resource.h"

/*
 * Extra objects of jobs: ConfigMaps, ServiceAccounts, Roles, RoleBindings, autoscalers, pod groups.
 *
 * Input: the kinds of objects that a job's table lists.  Output: caches that are started, and the
 * objects for a step.
 *
 * A kind is watched from the first job that needs it, so a cluster without such jobs needs no
 * rights for it.  Passes of those jobs wait until the kind is listed.  Rare kinds, such as
 * autoscalers, are watched from the first job that has such an object, and no pass waits for them.
 * With a gang scheduler all jobs have pod groups: see groups.c.
 */

#define POD_GROUPS (HF_EXTRA_BIT(HF_EXTRA_POD_GROUP) | HF_EXTRA_BIT(HF_EXTRA_VOLCANO_GROUP))

const struct hf_resource *hf_extra_resource(enum hf_extra_kind kind)
{
	static const struct hf_resource *const resources[] = {
		[HF_EXTRA_SERVICE_ACCOUNT] = &hf_serviceaccounts,
		[HF_EXTRA_CONFIG_MAP] = &hf_configmaps,
		[HF_EXTRA_ROLE] = &hf_roles,
		[HF_EXTRA_ROLE_BINDING] = &hf_rolebindings,
		[HF_EXTRA_AUTOSCALER] = &hf_autoscalers,
		[HF_EXTRA_POD_GROUP] = &hf_podgroups,
		[HF_EXTRA_VOLCANO_GROUP] = &hf_volcano_podgroups,
	};

	_Static_assert(HF_ARRAY_LEN(resources) == HF_EXTRA_KINDS, "each has its resource");
	hf_assert((size_t)kind < HF_ARRAY_LEN(resources));
	return resources[kind];
}

const struct hf_kind *hf_groups_kind(const struct hf_operator *op)
{
	unsigned kinds =
		hf_extra_kinds(op->options.frameworks[0], &op->options.settings) & POD_GROUPS;

	if (kinds == 0)
		return NULL;
	return &op->extras[kinds == HF_EXTRA_BIT(HF_EXTRA_POD_GROUP) ? HF_EXTRA_POD_GROUP
								     : HF_EXTRA_VOLCANO_GROUP];
}

/* True: a pass over a job of this kind waits until the extra objects of that kind are listed. */
static bool waits_for(const struct hf_operator *op, const struct hf_framework *framework,
		      size_t kind)
{
	unsigned kinds = hf_extra_kinds(framework, &op->options.settings);

	return (kinds & ~framework->rare_kinds & HF_EXTRA_BIT(kind)) != 0;
}

void hf_extras_start_kind(struct hf_operator *op, enum hf_extra_kind kind)
{
	if (op->extras[kind].started || op->stopping)
		return;
	op->extras[kind].started = true;
	hf_cache_start(op->extras[kind].cache);
}

void hf_extras_start(struct hf_operator *op, const struct hf_framework *framework)
{
	for (size_t i = 0; i < HF_EXTRA_KINDS; i++)
		if (waits_for(op, framework, i))
			hf_extras_start_kind(op, (enum hf_extra_kind)i);
}

void hf_extras_start_rare(struct hf_operator *op, const struct hf_job_view *job)
{
	if (job->elastic.has_metrics && !op->options.settings.no_autoscaler &&
	    (job->framework->rare_kinds & HF_EXTRA_BIT(HF_EXTRA_AUTOSCALER)) != 0)
		hf_extras_start_kind(op, HF_EXTRA_AUTOSCALER);
}

bool hf_extras_synced(const struct hf_operator *op, const struct hf_framework *framework)
{
	for (size_t i = 0; i < HF_EXTRA_KINDS; i++)
		if (waits_for(op, framework, i) && !hf_cache_synced(op->extras[i].cache))
			return false;
	return true;
}

/* Queue the jobs that waited until extra objects were listed. */
void hf_extras_enqueue(struct hf_operator *op)
{
	for (size_t i = 0; i < op->n_kinds; i++) {
		struct hf_kind *kind = &op->kinds[i];

		if (hf_extra_kinds(kind->framework, &op->options.settings) != 0 && kind->running &&
		    hf_extras_synced(op, kind->framework))
			hf_operator_enqueue_kind(kind);
	}
}

/* --- how an API server changes an extra object ------------------------------------------------ */

/* Remember the answer to a write as the wanted object, because an API server adds defaults and
 * formats numbers in its own way.  The digests are lost with the process; the next process then
 * writes once more. */
void hf_extras_settle(struct hf_job_state *state, const struct hf_extra *extra,
		      struct hf_doc *object, struct hf_arena *arena)
{
	struct hf_settled *settled = &state->settled[extra->kind];
	struct hf_extra_seen seen;

	if (object == NULL || *hf_extra_kind_members(extra->kind) == NULL)
		return;
	(void)hf_extra_read(object, extra->kind, NULL, arena, &seen);
	*settled = (struct hf_settled){.wanted = hf_extra_digest(extra), .seen = seen.digest};
}

uint64_t hf_extras_as_wanted(const struct hf_job_state *state, enum hf_extra_kind kind,
			     uint64_t digest)
{
	if (state != NULL && state->settled[kind].seen == digest)
		return state->settled[kind].wanted;
	return digest;
}

/* --- what a step sees ------------------------------------------------------------------------- */

static void see_extra(const struct hf_extra *extra, const struct hf_cache *cache,
		      const struct hf_observe_args *args, struct hf_views *views,
		      struct hf_extra_seen *list, size_t *len)
{
	const struct hf_job_view *job = args->job;
	const struct hf_cache_entry *entry = hf_cache_get(cache, job->ns, extra->name);
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
	list[*len].digest = hf_extras_as_wanted(args->state, extra->kind, list[*len].digest);
	list[(*len)++].owned = hf_streq(view->controller_uid, job->uid);
}

/* Collect the extra objects of the job, by the names that the table gives for a job without ranks.
 * So the step also sees objects of other owners, and objects to delete. */
void hf_extras_see(const struct hf_observe_args *args, const struct hf_job *job,
		   struct hf_arena *arena, struct hf_views *views, struct hf_observed *seen)
{
	const struct hf_ranks_seen nobody = {0};
	struct hf_extras wanted = {.arena = arena};
	struct hf_extra_seen *list;

	hf_job_extras(job, &nobody, &wanted);
	list = HF_ARENA_ARRAY(arena, struct hf_extra_seen, wanted.len + 1);
	for (size_t i = 0; i < wanted.len; i++) {
		enum hf_extra_kind kind = wanted.items[i].kind;

		if (args->extras[kind] != NULL && hf_cache_synced(args->extras[kind]))
			see_extra(&wanted.items[i], args->extras[kind], args, views, list,
				  &seen->extras_len);
		else
			seen->extras_unknown |= HF_EXTRA_BIT(kind);
	}
	seen->extras = list;
}
