/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/actions/actions_internal.h"

#include "base/quantity.h"
#include "base/str.h"

/*
 * Pod groups of gang schedulers: one group for each active job, under the job's name.  Volcano
 * looks at a group before its pods exist, and says by the group's phase whether there is room.
 * Schedulers that read scheduler-plugins' groups look at pods.
 */

#define VOLCANO "volcano"
#define VOLCANO_GROUP_ANNOTATION "scheduling.k8s.io/group-name"
#define VOLCANO_TASK_ANNOTATION "volcano.sh/task-spec"
#define VOLCANO_QUEUE "default"
#define GROUP_LABEL "scheduling.x-k8s.io/pod-group"

static bool is_volcano(const struct hf_settings *settings)
{
	return settings->gang_scheduler && hf_str_case_eq(settings->gang_scheduler, VOLCANO);
}

enum hf_extra_kind hf_pod_group_kind(const struct hf_settings *settings)
{
	hf_assert(settings->gang_scheduler);
	return is_volcano(settings) ? HF_EXTRA_VOLCANO_GROUP : HF_EXTRA_POD_GROUP;
}

/* ---- the group ------------------------------------------------------------------------------ */

struct sum {
	const char *resource;
	struct hf_quantity quantity;
};
struct sums {
	struct sum *items;
	size_t len, cap;
};

/* An amount that cannot be parsed as a quantity is left out: the API server refuses a pod with such
 * an amount. */
static void add_amount(struct sums *sums, const struct hf_key_value *amount, int32_t n,
		       struct hf_arena *arena)
{
	struct hf_quantity quantity;
	struct hf_error err;
	size_t i = 0;

	if (hf_quantity_parse(amount->value, &quantity, &err) < 0)
		return;
	while (i < sums->len && !hf_streq(sums->items[i].resource, amount->key))
		i++;
	if (i == sums->len) {
		sums->items =
			hf_grow(arena, sums->items, sums->len, &sums->cap, sizeof(*sums->items));
		sums->items[sums->len++] = (struct sum){.resource = amount->key};
	}
	hf_quantity_add(&sums->items[i].quantity, &quantity, n);
}

/* Sum up the requests of the group's first members, in the order of the kind's replica types.
 * Upstream orders the types by priority classes that it never reads, so upstream's order is the
 * random order of a Go map. */
static void add_requests(const struct hf_job *job, int64_t members, struct sums *sums,
			 struct hf_arena *arena)
{
	for (int r = 0; r < job->framework->roles_len && members > 0; r++) {
		const struct hf_role *role = &job->roles[r];
		int32_t n = !role->present             ? 0
			    : role->replicas < members ? role->replicas
						       : (int32_t)members;

		members -= n;
		for (size_t i = 0; n > 0 && i < role->pod->containers_len; i++) {
			const struct hf_container *container = &role->pod->containers[i];

			for (size_t k = 0; k < container->requests_len; k++)
				add_amount(sums, &container->requests[k], n, arena);
		}
	}
}

/* A Volcano group has the member minResources even if nothing is requested, as upstream writes
 * it. */
static void set_resources(const struct hf_job *job, int64_t members, struct hf_extras *extras,
			  struct hf_extra *group)
{
	const struct hf_run_policy *policy = &job->view->run_policy;
	struct hf_arena *arena = extras->arena;
	struct sums sums = {0};
	char text[HF_QUANTITY_TEXT_MAX];

	for (size_t i = 0; policy->has_min_resources && i < policy->min_resources_len; i++)
		add_amount(&sums, &policy->min_resources[i], 1, arena);
	if (!policy->has_min_resources)
		add_requests(job, members, &sums, arena);
	if (group->kind == HF_EXTRA_VOLCANO_GROUP)
		hf_extra_set_object(extras, group, "spec/minResources");
	for (size_t i = 0; i < sums.len; i++)
		hf_extra_set(
			extras, group,
			hf_arena_printf(arena, "spec/minResources/%s",
					hf_leaf_key(arena, sums.items[i].resource)),
			hf_arena_strdup(arena, hf_quantity_format(&sums.items[i].quantity, text)));
}

void hf_pod_group_extra(const struct hf_job *job, const struct hf_ranks_seen *seen,
			struct hf_extras *extras)
{
	const struct hf_run_policy *policy = &job->view->run_policy;
	int64_t members = policy->min_available.set ? policy->min_available.value : job->ranks;
	struct hf_extra *group;

	if (!job->settings->gang_scheduler)
		return;
	group = hf_extras_add(extras, hf_pod_group_kind(job->settings), job->view->name);
	group->gone = seen->life != HF_LIFE_ACTIVE;
	if (group->gone)
		return;
	group->annotated = true;
	group->gate = group->kind == HF_EXTRA_VOLCANO_GROUP;
	/* Upstream's types leave 0 out. */
	if (members != 0)
		hf_extra_set_number(extras, group, "spec/minMember", members);
	set_resources(job, members, extras, group);
	if (group->kind == HF_EXTRA_VOLCANO_GROUP) {
		hf_extra_set(extras, group, "spec/queue",
			     hf_str_is_empty(policy->queue) ? VOLCANO_QUEUE : policy->queue);
		if (!hf_str_is_empty(policy->priority_class))
			hf_extra_set(extras, group, "spec/priorityClassName",
				     policy->priority_class);
	} else if (policy->schedule_timeout_seconds.set) {
		hf_extra_set_number(extras, group, "spec/scheduleTimeoutSeconds",
				    policy->schedule_timeout_seconds.value);
	}
}

/* ---- admission ------------------------------------------------------------------------------ */

bool hf_pod_group_awaited(const struct hf_brain *b)
{
	const struct hf_settings *settings = b->job.settings;

	if (!is_volcano(settings) ||
	    (b->seen->extras_unknown & HF_EXTRA_BIT(HF_EXTRA_VOLCANO_GROUP)))
		return false;
	for (size_t i = 0; i < b->seen->extras_len; i++) {
		const struct hf_extra_seen *seen = &b->seen->extras[i];

		if (seen->kind == HF_EXTRA_VOLCANO_GROUP && hf_streq(seen->name, b->view->name))
			return !seen->owned || seen->terminating || !seen->ready;
	}
	return true;
}

/* ---- edits of pods -------------------------------------------------------------------------- */

void hf_pod_group_edits(const struct hf_brain *b, int role, struct hf_edits *edits)
{
	const struct hf_settings *settings = b->job.settings;
	struct hf_edit scheduler = {.kind = HF_EDIT_SCHEDULER_NAME,
				    .value = settings->gang_scheduler};
	struct hf_edit member = {
		.kind = HF_EDIT_LABEL, .name = GROUP_LABEL, .value = b->view->name};
	struct hf_edit task = {.kind = HF_EDIT_ANNOTATION,
			       .name = VOLCANO_TASK_ANNOTATION,
			       .value = b->roles[role].lower};

	if (!settings->gang_scheduler)
		return;
	if (is_volcano(settings)) {
		scheduler.value = VOLCANO;
		member.kind = HF_EDIT_ANNOTATION;
		member.name = VOLCANO_GROUP_ANNOTATION;
		hf_edits_add(edits, &task);
	}
	hf_edits_add(edits, &member);
	if (hf_str_is_empty(b->job.roles[role].pod->scheduler_name))
		hf_edits_add(edits, &scheduler);
}

/* An event, sent once: with the first pod of the job. */
void hf_pod_group_warn(const struct hf_brain *b)
{
	const struct hf_framework *framework = b->job.framework;
	const char *gang = b->job.settings->gang_scheduler;
	bool other = false;

	if (!gang)
		return;
	if (is_volcano(b->job.settings))
		gang = VOLCANO;
	for (int r = 0; r < framework->roles_len; r++) {
		const struct hf_role *role = &b->job.roles[r];

		other = other || (role->present && !hf_str_is_empty(role->pod->scheduler_name) &&
				  !hf_streq(role->pod->scheduler_name, gang));
	}
	if (other)
		hf_event(b, true,
			 hf_str_or(framework->template_scheduler_reason,
				   "SetPodTemplateSchedulerName"),
			 "Another scheduler is specified when gang-scheduling is enabled and it "
			 "will not be overwritten");
}
