/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/fleet.h"

#include "base/mem.h"
#include "base/str.h"
#include "fleet/device_taint.h"
#include "fleet/fleet_internal.h"
#include "fleet/mend_internal.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

/*
 * The fleet's controller: its life, its caches, and when a round starts.
 * Input: HealthPolicy, Node and DeviceHealth objects. Output: rounds, which call the other files of
 * this folder.
 * Invariants: rounds do not overlap; Nodes and DeviceHealth objects are cached only while there is
 * a policy.
 */

/* How soon a round follows a change that is no fault of a device. */
#define AFTER_CHANGE HF_SECOND
/* Longest time between rounds. Some changes come from time alone: an agent becomes silent, or a
 * window ends. */
#define LOOK_EVERY HF_MINUTE
#define PAGE_LIMIT 100

/* --- policies --------------------------------------------------------------------------------- */

/* A policy object is freed and its memory may be reused by another policy. That policy's breaker
 * has not counted these nodes' faults, so remove the pointers to the old one. */
static void forget_weighing(struct hf_fleet *fleet, const struct fleet_policy *policy)
{
	const struct hf_cache_entry *entry;

	/* DeviceHealth objects are cached only while there is a policy. */
	if (fleet->health == NULL)
		return;
	for (size_t it = 0; (entry = hf_cache_next(fleet->health, &it)) != NULL;) {
		struct fleet_health *view = entry->view;

		if (view->weighed_by == policy)
			view->weighed_by = NULL;
	}
}

static struct fleet_policy *add_policy(struct hf_fleet *fleet, const char *name)
{
	size_t at = fleet->n_policies;

	if (at == HF_FLEET_POLICIES_MAX) {
		hf_fleet_log_problem(
			fleet, hf_healthpolicies.plural, HF_E_TOO_LARGE,
			"more than 16 HealthPolicies: the last ones by name are ignored; delete or merge some");
		if (strcmp(fleet->policies[at - 1]->name, name) < 0)
			return NULL;
		forget_weighing(fleet, fleet->policies[at - 1]);
		hf_fleet_free_policy(fleet->policies[--at]);
		fleet->n_policies--;
	}
	for (; at > 0 && strcmp(fleet->policies[at - 1]->name, name) > 0; at--)
		fleet->policies[at] = fleet->policies[at - 1];
	fleet->policies[at] = hf_fleet_create_policy(fleet, name);
	fleet->n_policies++;
	return fleet->policies[at];
}

static void drop_policy(struct hf_fleet *fleet, const char *name)
{
	for (size_t i = 0; i < fleet->n_policies; i++) {
		if (!hf_streq(fleet->policies[i]->name, name))
			continue;
		forget_weighing(fleet, fleet->policies[i]);
		hf_fleet_free_policy(fleet->policies[i]);
		for (fleet->n_policies--; i < fleet->n_policies; i++)
			fleet->policies[i] = fleet->policies[i + 1];
		return;
	}
}

/* Takes over the policy's newest object. Policies beyond HF_FLEET_POLICIES_MAX are ignored. */
static void put_policy(struct hf_fleet *fleet, const struct hf_cache_entry *entry)
{
	struct fleet_policy *policy = hf_fleet_find_policy(fleet, entry->name);

	if (policy == NULL)
		policy = add_policy(fleet, entry->name);
	if (policy == NULL)
		return;
	hf_fleet_update_policy(policy, entry->doc);
	if (!policy->spec.drain_evicts || !hf_streq(policy->spec.mode, "remediate"))
		policy->evicts_at = HF_TIME_NONE;
	else if (policy->evicts_at == HF_TIME_NONE)
		policy->evicts_at = hf_fleet_now(fleet);
}

/* After the deletion of a policy, takes over one that was ignored for want of room: the first by
 * name. */
static void add_left_out_policy(struct hf_fleet *fleet)
{
	const struct hf_cache_entry *entry, *first = NULL;

	for (size_t it = 0; (entry = hf_cache_next(fleet->policies_cache, &it)) != NULL;)
		if (hf_fleet_find_policy(fleet, entry->name) == NULL &&
		    (first == NULL || strcmp(entry->name, first->name) < 0))
			first = entry;
	if (first != NULL)
		put_policy(fleet, first);
}

/* A person's part of the policy is unchanged: spec, annotations and generation. The operator's own
 * writes change the status only. */
static bool same_wish(const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	const struct hf_json *a = hf_doc_json(before->doc), *b = hf_doc_json(now->doc);

	return hf_json_equal(hf_json_get(a, "spec"), hf_json_get(b, "spec")) &&
	       hf_json_equal(hf_json_path(a, "metadata", "annotations", NULL),
			     hf_json_path(b, "metadata", "annotations", NULL)) &&
	       hf_json_equal(hf_json_path(a, "metadata", "generation", NULL),
			     hf_json_path(b, "metadata", "generation", NULL));
}

/* What permits the acts of the policy is unchanged. */
static bool same_permission(const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	return before != NULL && now != NULL && same_wish(before, now) &&
	       hf_json_equal(hf_json_path(hf_doc_json(before->doc), "status", "breaker", NULL),
			     hf_json_path(hf_doc_json(now->doc), "status", "breaker", NULL));
}

static void policy_changed(void *arg, enum hf_cache_change change,
			   const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	struct hf_fleet *fleet = arg;

	fleet->unseen = false;
	hf_task_post(fleet->reset);
	if (change == HF_CACHE_SYNCED) {
		hf_fleet_look_soon(fleet, AFTER_CHANGE);
		return;
	}
	if (!same_permission(before, now))
		hf_fleet_mend_wake(fleet->mend, MEND_READ_POLICY,
				   (now != NULL ? now : before)->name);
	if (now == NULL) {
		drop_policy(fleet, before->name);
		add_left_out_policy(fleet);
		fleet->version++;
	} else if (before == NULL || !same_wish(before, now)) {
		put_policy(fleet, now);
		fleet->version++;
	}
	hf_fleet_look_soon(fleet, AFTER_CHANGE);
}

static void policies_problem(void *arg, int code, const char *message)
{
	struct hf_fleet *fleet = arg;

	hf_fleet_log_list_problem(fleet, hf_healthpolicies.plural, &fleet->unseen, code, message);
}

/* --- nodes and their DeviceHealth ------------------------------------------------------------- */

static void *node_view(void *arg, struct hf_doc *doc)
{
	return hf_fleet_read_node(arg, doc);
}

static void *health_view(void *arg, struct hf_doc *doc)
{
	return hf_fleet_read_health(arg, doc);
}

static bool is_well(const struct hf_fleet *fleet, const char *name)
{
	const struct fleet_health *health = hf_fleet_find_health(fleet, name);

	return health != NULL && health->state == HF_HEALTH_HEALTHY;
}

static bool is_released(const struct hf_fleet *fleet, const char *name)
{
	const struct fleet_act *act = &fleet->acts[fleet->act];

	return fleet->step == FLEET_WRITE_NODE && act->release && hf_streq(act->node, name);
}

/* The end of an act took its quarantine off: taint and mark went by one write. No policy had quarantined the node, so each
 * policy decides anew. */
static bool is_end_of_act(const struct fleet_node *was, const struct fleet_node *node)
{
	return was->marked && was->tainted && !node->marked &&
	       hf_quarantine_act(was->mark.policy) != NULL;
}

/* Remembers when Holdfast put its taint on a node and when a person removed it, in case the person
 * removes the mark on the Node as well, which has the same times. If the node is healthy and the
 * mark is gone too, Holdfast released the node and no person did. */
static void follow_taint(const struct hf_fleet *fleet, const struct hf_cache_entry *before,
			 const struct hf_cache_entry *now)
{
	const struct fleet_node *was = before->view;
	struct fleet_node *node = now->view;

	node->put_at = was->marked ? was->mark.at : was->put_at;
	/* A person has deleted the rule of a device, and the mark does not say so yet. */
	if (was->marked && was->mark.devices && !was->tainted && node->marked &&
	    node->mark.devices && node->mark.at == was->mark.at) {
		node->tainted = false;
		node->off_at = hf_fleet_off_at(was);
		return;
	}
	if (node->tainted || node->put_at == HF_TIME_NONE)
		return;
	node->off_at = hf_fleet_off_at(was);
	if (was->tainted && !is_released(fleet, now->name) && !is_end_of_act(was, node) &&
	    (node->marked || !is_well(fleet, now->name)))
		/* Round down to microseconds, as the stored time is. */
		node->off_at = hf_fleet_now(fleet) / HF_US * HF_US;
}

/* A person removed Holdfast's mark from a Node but not the taint, perhaps to keep the node out of
 * use: records an event. */
static void tell_disowned(struct hf_fleet *fleet, const struct hf_cache_entry *before,
			  const struct hf_cache_entry *now)
{
	const struct fleet_node *was = before->view, *node = now->view;

	if (was->marked && was->tainted && !node->marked && node->tainted)
		hf_fleet_event_node(
			fleet, now->name, true, "QuarantineDisowned",
			"annotation holdfast.dev/quarantine was removed and the taint was not: "
			"Holdfast leaves the taint until a person removes it");
}

/* A live read of a version that is known is no news. Else two passes that read the same node would wake
 * each other for ever. */
static bool is_news(const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	return now != NULL &&
	       (before == NULL || !hf_streq(before->resource_version, now->resource_version));
}

static void wake_node(struct hf_fleet *fleet, const char *name, enum mend_read read)
{
	hf_fleet_mend_wake(fleet->mend, read, name);
	hf_fleet_taints_wake_node(fleet->taints, name);
}

static void follow_silence(const struct hf_fleet *fleet, const struct hf_cache_entry *before,
			   struct fleet_node *node)
{
	const struct fleet_node *was = before == NULL ? NULL : before->view;

	node->unheard_since = was == NULL ? hf_loop_mono(fleet->env.loop) : was->unheard_since;
}

/* The DeviceHealth was deleted. */
static void begin_silence(const struct hf_fleet *fleet, const char *name)
{
	struct fleet_node *node = hf_fleet_find_node(fleet, name);

	if (node != NULL)
		node->unheard_since = hf_loop_mono(fleet->env.loop);
}

static void node_changed(void *arg, enum hf_cache_change change,
			 const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	struct hf_fleet *fleet = arg;

	if (now != NULL)
		follow_silence(fleet, before, now->view);
	if (before != NULL && now != NULL) {
		follow_taint(fleet, before, now);
		tell_disowned(fleet, before, now);
	}
	if (is_news(before, now))
		wake_node(fleet, now->name, MEND_READ_NODE);
	if (change == HF_CACHE_SYNCED || before == NULL || now == NULL ||
	    !hf_fleet_is_same_node(before->view, now->view))
		hf_fleet_look_soon(fleet, AFTER_CHANGE);
}

/* No device of the node has a fault: nothing has to be gathered. */
static bool is_good_news(const struct fleet_health *view)
{
	return view->state == HF_HEALTH_HEALTHY || view->state == HF_HEALTH_PROBATION;
}

static bool is_same_trouble(const struct fleet_health *a, const struct fleet_health *b)
{
	return a->began_at == b->began_at &&
	       (a->began_at != HF_TIME_NONE || a->evidence_at == b->evidence_at);
}

/* Takes over from the former report what the new one cannot know. */
static void follow_health(const struct hf_fleet *fleet, const struct fleet_health *was,
			  struct fleet_health *view)
{
	bool spoke = was == NULL ? hf_cache_synced(fleet->health)
				 : was->observed_at != view->observed_at;
	/* A write of an earlier report has arrived late, or the node's clock was set back. Until the next report the
	 * times are read as if the clock were right, so an old report is old. */
	bool is_older = was != NULL && view->observed_at < was->observed_at;

	view->seen_at = is_older      ? HF_TIME_NONE
			: spoke       ? hf_loop_mono(fleet->env.loop)
			: was != NULL ? was->seen_at
				      : HF_TIME_NONE;
	view->got_at = was != NULL && !spoke ? was->got_at : hf_loop_mono(fleet->env.loop);
	view->unknown_since = was != NULL && was->state == HF_HEALTH_UNKNOWN &&
					      hf_streq(was->boot_id, view->boot_id)
				      ? was->unknown_since
				      : hf_loop_mono(fleet->env.loop);
	view->weighed_by = was != NULL && is_same_trouble(was, view) ? was->weighed_by : NULL;
	if (was != NULL)
		hf_fleet_ease_health(was, view);
}

static void health_changed(void *arg, enum hf_cache_change change,
			   const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	struct hf_fleet *fleet = arg;
	const struct fleet_health *was = before == NULL ? NULL : before->view;
	struct fleet_health *view = now == NULL ? NULL : now->view;

	if (view != NULL) {
		follow_health(fleet, was, view);
		if (is_news(before, now))
			wake_node(fleet, now->name, MEND_READ_HEALTH);
	} else if (was != NULL) {
		begin_silence(fleet, before->name);
	}
	if (change == HF_CACHE_SYNCED || was == NULL || view == NULL)
		hf_fleet_gather(fleet);
	else if (hf_fleet_is_same_health(was, view))
		return;
	else if (is_good_news(view))
		hf_fleet_look_on(fleet);
	else
		hf_fleet_gather(fleet);
}

static void note_reply(void *arg, const struct hf_reply *reply)
{
	hf_fleet_note_reply(arg, reply);
}

static void nodes_problem(void *arg, int code, const char *message)
{
	hf_fleet_log_problem(arg, hf_healthpolicies.plural, code, message);
}

static void devices_problem(void *arg, int code, const char *message)
{
	/* Without the kind DeviceHealth there are no agents and no work. */
	if (code != HF_E_NOT_FOUND)
		nodes_problem(arg, code, message);
}

static struct hf_cache *make_cache(struct hf_fleet *fleet, const struct hf_resource *resource)
{
	bool nodes = resource == &hf_nodes;
	const struct hf_cache_options options = {
		.loop = fleet->env.loop,
		.store = fleet->env.store,
		.resource = resource,
		.page_limit = PAGE_LIMIT,
		.seed = fleet->env.seed ^ hf_hash_str("remedy") ^ hf_hash_str(resource->plural),
		.decode = nodes ? node_view : health_view,
		.view_free = nodes ? hf_fleet_free_node : hf_fleet_free_health,
		.changed = nodes ? node_changed : health_changed,
		.problem = nodes ? nodes_problem : devices_problem,
		.heard = note_reply,
		.arg = fleet,
	};

	return hf_cache_create(&options);
}

static void drop_calls(struct hf_fleet *fleet)
{
	if (fleet->call != NULL)
		hf_call_cancel(fleet->call);
	if (fleet->evicting != NULL)
		hf_call_cancel(fleet->evicting);
	fleet->call = fleet->evicting = NULL;
	fleet->evict_on = hf_doc_unref(fleet->evict_on);
	fleet->step = FLEET_IDLE;
	free(fleet->token);
	fleet->token = NULL;
	hf_map_clear(fleet->looked);
}

/* Begins to watch nodes when the first policy appears, and stops after the deletion of the last
 * one. */
static void on_reset(void *arg)
{
	struct hf_fleet *fleet = arg;
	bool wanted = fleet->n_policies > 0 && !fleet->stopped;

	if (wanted == (fleet->nodes != NULL))
		return;
	if (wanted) {
		fleet->nodes = make_cache(fleet, &hf_nodes);
		fleet->health = make_cache(fleet, &hf_devicehealths);
		hf_cache_start(fleet->nodes);
		hf_cache_start(fleet->health);
		return;
	}
	drop_calls(fleet);
	fleet->gathers = false;
	hf_map_clear(fleet->refusals);
	fleet->nodes = hf_cache_destroy(fleet->nodes);
	fleet->health = hf_cache_destroy(fleet->health);
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* Runs the round of one policy. True: its requests are under way, and the rounds of the other
 * policies wait. */
static bool run_policy(struct hf_fleet *fleet, struct fleet_policy *policy, hf_time *wake)
{
	const struct hf_cache_entry *entry =
		hf_cache_get(fleet->policies_cache, NULL, policy->name);
	struct fleet_seen seen;

	if (entry == NULL)
		return false;
	hf_arena_reset(fleet->arena);
	hf_fleet_see(fleet, policy, entry->doc, fleet->arena, &seen);
	hf_fleet_report(fleet, &seen);
	if (seen.plan.wake_at < *wake)
		*wake = seen.plan.wake_at;
	hf_fleet_mend_want(fleet->mend, &seen);
	hf_fleet_taints_want(fleet->taints, &seen);
	if (fleet->evicting == NULL)
		hf_fleet_drain(fleet, &seen, wake);
	return hf_fleet_act(fleet, &seen) || hf_fleet_write_status(fleet, &seen);
}

static void on_timer(void *arg)
{
	struct hf_fleet *fleet = arg;
	hf_time now = hf_fleet_now(fleet), wake = now + LOOK_EVERY;

	if (fleet->stopped || fleet->step != FLEET_IDLE || !hf_fleet_can_see(fleet))
		return;
	fleet->gathers = false;
	/* Start with the next policy each time: a policy with endless work must not starve the
	 * others. */
	fleet->turn++;
	for (size_t i = 0; i < fleet->n_policies; i++) {
		size_t at = (fleet->turn + i) % fleet->n_policies;

		if (run_policy(fleet, fleet->policies[at], &wake))
			return;
	}
	hf_fleet_look_soon(fleet, wake > now ? wake - now : HF_MS);
}

/* --- life ------------------------------------------------------------------------------------- */

static struct hf_fleet *fleet_of(struct hf_controller *controller)
{
	return (struct hf_fleet *)controller;
}

static void start_fleet(struct hf_controller *controller)
{
	hf_cache_start(fleet_of(controller)->policies_cache);
	hf_fleet_mend_start(fleet_of(controller)->mend);
}

static void wake_fleet(struct hf_controller *controller)
{
	hf_fleet_look_soon(fleet_of(controller), AFTER_CHANGE);
}

static void stop_fleet(struct hf_controller *controller)
{
	struct hf_fleet *fleet = fleet_of(controller);

	fleet->stopped = true;
	hf_fleet_mend_stop(fleet->mend);
	hf_fleet_taints_stop(fleet->taints);
	hf_timer_disarm(fleet->timer);
	drop_calls(fleet);
}

static void update_metrics(struct hf_controller *controller)
{
	hf_fleet_update_metrics(fleet_of(controller));
	hf_fleet_mend_update_metrics(fleet_of(controller)->mend);
}

static void destroy_fleet(struct hf_controller *controller)
{
	struct hf_fleet *fleet = fleet_of(controller);

	drop_calls(fleet);
	fleet->mend = hf_fleet_mend_destroy(fleet->mend);
	fleet->taints = hf_fleet_taints_destroy(fleet->taints);
	hf_cache_destroy(fleet->nodes);
	hf_cache_destroy(fleet->health);
	hf_cache_destroy(fleet->policies_cache);
	while (fleet->n_policies > 0)
		hf_fleet_free_policy(fleet->policies[--fleet->n_policies]);
	hf_timer_destroy(fleet->timer);
	hf_task_destroy(fleet->reset);
	hf_map_destroy(fleet->looked);
	hf_map_destroy(fleet->refusals);
	hf_arena_destroy(fleet->arena);
	hf_arena_destroy(fleet->scratch);
	free(fleet);
}

static const struct hf_controller_ops fleet_ops = {
	.start = start_fleet,
	.wake = wake_fleet,
	.stop = stop_fleet,
	.update_metrics = update_metrics,
	.destroy = destroy_fleet,
	.find_limits = hf_fleet_find_limits,
};

struct hf_controller *hf_fleet_create(const struct hf_controller_env *env)
{
	struct hf_fleet *fleet = hf_xcalloc(1, sizeof(*fleet));
	const struct hf_cache_options options = {
		.loop = env->loop,
		.store = env->store,
		.resource = &hf_healthpolicies,
		.seed = env->seed ^ hf_hash_str(hf_healthpolicies.plural),
		.keep_docs = true,
		.changed = policy_changed,
		.problem = policies_problem,
		.heard = note_reply,
		.arg = fleet,
	};

	fleet->controller.ops = &fleet_ops;
	fleet->env = *env;
	fleet->version = 1;
	fleet->timer = hf_timer_create(env->loop, on_timer, fleet);
	fleet->reset = hf_task_create(env->loop, on_reset, fleet);
	fleet->arena = hf_arena_create(HF_FLEET_ARENA_MAX);
	fleet->scratch = hf_arena_create(HF_FLEET_ARENA_MAX);
	fleet->looked = hf_map_create(HF_HEALTH_NODES_MAX, env->seed, free);
	fleet->refusals = hf_map_create(HF_FLEET_REFUSALS_MAX, env->seed, free);
	fleet->policies_cache = hf_cache_create(&options);
	hf_fleet_init_metrics(fleet);
	fleet->mend = hf_fleet_mend_create(fleet);
	fleet->taints = hf_fleet_taints_create(fleet);
	return &fleet->controller;
}
