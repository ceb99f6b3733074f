/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/fleet_internal.h"

#include "base/compare.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/*
 * Joins a policy, its nodes and their DeviceHealth into the question that health/fleet.h decides.
 * Input: the caches and the policy's stored status. Output: struct fleet_seen with the answer.
 * Invariants: no request, no write but the nodes' matched policy.
 * Times in a DeviceHealth are from the node's clock. If the report arrived while this process
 * watched, its age is known, and its times are converted to the API server's clock. A report from
 * before that is taken as it stands; a time in the future counts as none.
 */

/* Taints of other controllers that put a node out of use. A taint that reserves a node for its kind
 * of work, such as nvidia.com/gpu, does not. */
static const char *const out_taints[] = {
	"node.kubernetes.io/",
	"ToBeDeletedByClusterAutoscaler",
	"karpenter.sh/disrupted",
	"nvidia.com/gpu-error",
};

/* An agent without news reports every six minutes. A policy that judges only newer reports gives no node away for that. */
#define LOST_MIN (15 * HF_MINUTE)

/* A write of a taint that is not on the Node after this time never arrives. */
#define LATE_MAX HF_MINUTE

/* --- choosing the policy ---------------------------------------------------------------------- */

struct hf_json *hf_fleet_make_labels(const struct hf_node_marks *marks)
{
	struct hf_json *labels = hf_json_object();

	for (size_t i = 0; i < marks->labels.len; i++)
		hf_json_set_str(labels, marks->labels.items[i].key, marks->labels.items[i].value);
	return labels;
}

static void match_policy(struct hf_fleet *fleet, struct fleet_node *node)
{
	HF_AUTO_JSON labels = hf_fleet_make_labels(&node->marks);
	bool owned = node->marked && node->tainted;

	node->matched = fleet->version;
	/* A quarantined node stays with the policy of its mark while that policy exists. */
	node->policy = owned ? hf_fleet_find_policy(fleet, node->mark.policy) : NULL;
	for (size_t i = 0; i < fleet->n_policies && node->policy == NULL; i++)
		if (hf_selector_match_labels(fleet->policies[i]->selector, labels))
			node->policy = fleet->policies[i];
	node->excluded = false;
	node->domain = NULL;
	if (node->policy == NULL)
		return;
	node->excluded = node->policy->spec.has_exclude &&
			 hf_selector_match_labels(node->policy->exclude, labels);
	if (node->policy->spec.domain_key != NULL)
		node->domain = hf_field_pair_find(node->marks.labels.items, node->marks.labels.len,
						  node->policy->spec.domain_key);
}

static void *find_view(const struct hf_cache *cache, const char *name)
{
	const struct hf_cache_entry *entry = cache == NULL ? NULL : hf_cache_get(cache, NULL, name);

	return entry == NULL ? NULL : entry->view;
}

struct fleet_node *hf_fleet_find_node(const struct hf_fleet *fleet, const char *name)
{
	return find_view(fleet->nodes, name);
}

struct fleet_health *hf_fleet_find_health(const struct hf_fleet *fleet, const char *node)
{
	return find_view(fleet->health, node);
}

struct fleet_policy *hf_fleet_policy_of(struct hf_fleet *fleet, const char *node)
{
	struct fleet_node *view = hf_fleet_find_node(fleet, node);

	if (view != NULL && view->matched != fleet->version)
		match_policy(fleet, view);
	return view == NULL ? NULL : view->policy;
}

static bool is_out_taint(const struct fleet_policy *policy, const char *key)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(out_taints); i++)
		if (hf_str_has_prefix(key, out_taints[i]))
			return true;
	for (size_t i = 0; i < policy->spec.taints_len; i++)
		if (hf_streq(key, policy->spec.taints[i]))
			return true;
	return false;
}

/* The taints of a node that is not Ready. The act of another controller may mend such a node. */
static bool is_unready_taint(const char *key)
{
	return hf_streq(key, "node.kubernetes.io/not-ready") ||
	       hf_streq(key, "node.kubernetes.io/unreachable");
}

const char *hf_fleet_find_foreign(const struct fleet_policy *policy,
				  const struct hf_node_marks *marks)
{
	if (marks->unschedulable)
		return "cordon";
	for (size_t i = 0; i < marks->taints.len; i++)
		if (is_out_taint(policy, marks->taints.items[i].key) &&
		    !is_unready_taint(marks->taints.items[i].key))
			return marks->taints.items[i].key;
	return NULL;
}

bool hf_fleet_is_foreign(const struct fleet_policy *policy, const struct fleet_node *node)
{
	if (!node->marks.ready || node->marks.unschedulable)
		return true;
	for (size_t i = 0; i < node->marks.taints.len; i++)
		if (is_out_taint(policy, node->marks.taints.items[i].key))
			return true;
	/* The node has Holdfast's taint without Holdfast's mark: a person has put the taint on. */
	return node->tainted && !node->marked;
}

/* Collects the policy's nodes that have devices by their agent's report, or that are quarantined.
 * If a selector names nodes, those out of use count too: an agent may be gone for good. */
static void collect_nodes(struct hf_fleet *fleet, struct fleet_seen *seen, struct hf_arena *arena)
{
	const struct hf_cache_entry *entry;
	size_t len = hf_cache_len(fleet->nodes);

	seen->items = HF_ARENA_ARRAY(arena, struct fleet_item, len + 1);
	for (size_t it = 0; (entry = hf_cache_next(fleet->nodes, &it)) != NULL;) {
		struct fleet_node *node = entry->view;
		struct fleet_health *health = hf_fleet_find_health(fleet, entry->name);
		bool counts;

		if (node->matched != fleet->version)
			match_policy(fleet, node);
		/* Nodes that have network ports and no GPU count only if the policy's selector
		 * selects them. */
		counts = node->marked ||
			 (health != NULL && (seen->policy->selector != NULL ? health->has_devices
									    : health->has_gpus));
		if (node->policy != seen->policy || seen->len == HF_HEALTH_NODES_MAX ||
		    (!counts &&
		     (node->policy->selector == NULL || !hf_fleet_is_foreign(node->policy, node))))
			continue;
		seen->selected += counts;
		seen->items[seen->len++] = (struct fleet_item){.name = entry->name,
							       .uid = entry->uid,
							       .node = node,
							       .health = health,
							       .counts = counts};
	}
	if (seen->len > 0)
		qsort(seen->items, seen->len, sizeof(*seen->items), hf_compare_by_name);
}

/* --- jobs ------------------------------------------------------------------------------------- */

static int32_t count_disturbed(const struct fleet_seen *seen, const char *job)
{
	int32_t n = 0;

	for (size_t i = 0; i < seen->memory.recent.len; i++) {
		const struct hf_policy_recent *r = &seen->memory.recent.items[i];

		n += hf_streq(r->job, job) && seen->now - r->at <= seen->policy->spec.job_window;
	}
	return n;
}

/* --- one node --------------------------------------------------------------------------------- */

/* The Node still has Holdfast's mark, but a person removed the taint. */
static bool is_taken_off(const struct fleet_node *node)
{
	return node->marked && !node->tainted;
}

hf_time hf_fleet_off_at(const struct fleet_node *node)
{
	if (node->tainted)
		return HF_TIME_NONE;
	return node->marked && node->mark.off > node->off_at ? node->mark.off : node->off_at;
}

/* Converts a time of the node's clock to the API server's clock. */
hf_time hf_fleet_convert_time(const struct hf_fleet *fleet, const struct fleet_health *health,
			      hf_time at, hf_time now)
{
	hf_time heard_at = health->seen_at == HF_TIME_NONE
				   ? HF_TIME_NONE
				   : now - (hf_loop_mono(fleet->env.loop) - health->seen_at);

	return hf_health_convert_time(at, health->observed_at, heard_at, now);
}

bool hf_fleet_is_awaited(const struct hf_fleet *fleet, const char *node, hf_time stale_after)
{
	const struct fleet_health *health = hf_fleet_find_health(fleet, node);
	const struct fleet_node *view = hf_fleet_find_node(fleet, node);
	hf_time since;

	if (health != NULL)
		since = health->state == HF_HEALTH_UNKNOWN ? health->unknown_since : health->got_at;
	else if (view != NULL)
		since = view->unheard_since;
	else
		return false;
	return hf_loop_mono(fleet->env.loop) - since <=
	       (stale_after > LOST_MIN ? stale_after : LOST_MIN);
}

static void set_times(const struct hf_fleet *fleet, const struct fleet_health *health, hf_time now,
		      struct hf_health_node *to)
{
	to->evidence_at = hf_fleet_convert_time(fleet, health, health->evidence_at, now);
	to->began_at = hf_fleet_convert_time(fleet, health, health->began_at, now);
	to->observed_at = hf_fleet_convert_time(fleet, health, health->observed_at, now);
	/* If the node's clock is ahead, the time of its evidence is unknown until the agent's next
	 * report. */
	if ((health->seen_at == HF_TIME_NONE || health->observed_at == HF_TIME_NONE) &&
	    health->evidence_at > now)
		to->evidence_at = HF_TIME_NONE;
}

/* Only the node's clock tells whether the evidence is older than the closing of the breaker or the
 * removal of the taint, and that clock may be wrong. The agent's next report settles the order;
 * until then the evidence does not count. */
static bool is_doubtful(const struct fleet_seen *seen, const struct fleet_item *item, hf_time off)
{
	hf_time closed = seen->memory.breaker_closed_at;

	return item->health->seen_at == HF_TIME_NONE &&
	       ((closed != HF_TIME_NONE && seen->now - closed < HF_DAY) || off != HF_TIME_NONE ||
		is_taken_off(item->node));
}

static void set_job(const struct hf_fleet *fleet, const struct fleet_seen *seen,
		    const struct fleet_health *health, struct hf_health_node *to,
		    struct hf_arena *arena)
{
	const struct fleet_holder *first = health->holders;
	const char *job = NULL;

	if (health->holders_len == 0)
		return;
	for (size_t i = 0; i < health->holders_len && job == NULL; i++)
		job = fleet->env.find_job(fleet->env.arg, health->holders[i].ns,
					  health->holders[i].pod, health->holders[i].uid);
	/* For the budget of jobs, a pod without a job counts as a job of its own. */
	to->job = job != NULL ? hf_arena_strdup(arena, job)
			      : hf_arena_printf(arena, "pods/%s/%s", first->ns, first->pod);
	to->job_restarting = fleet->env.is_restarting(fleet->env.arg, job);
	to->job_evictions = count_disturbed(seen, to->job);
}

/* The status records a quarantine of this node that is not yet visible on the Node: another leader
 * may have begun it. The node counts as out of use. */
static bool is_begun(const struct fleet_seen *seen, const char *name)
{
	for (size_t i = 0; i < seen->memory.recent.len; i++)
		if (!seen->memory.recent.items[i].done &&
		    hf_streq(seen->memory.recent.items[i].node, name))
			return true;
	return false;
}

hf_time hf_fleet_seen_off_at(const struct fleet_seen *seen, const struct fleet_item *item)
{
	hf_time off = hf_fleet_off_at(item->node);

	for (size_t i = 0; i < seen->memory.recent.len && !item->node->tainted; i++) {
		const struct hf_policy_recent *r = &seen->memory.recent.items[i];

		if (r->off > off && hf_streq(r->node, item->name))
			off = r->off;
	}
	return off;
}

static const char *label_of(const struct fleet_node *node, const char *key)
{
	return hf_field_pair_find(node->marks.labels.items, node->marks.labels.len, key);
}

/* The kind of a node, for the search of a spare node: a node with two small devices cannot take the
 * work of one with eight large devices. Without a label the number of devices decides, rounded up
 * to a power of two, so that a node which lost a device keeps its kind. */
static const char *kind_of(const struct fleet_node *node, const struct fleet_health *health,
			   struct hf_arena *arena)
{
	static const char *const keys[] = {"node.kubernetes.io/instance-type",
					   "nvidia.com/gpu.product", "amd.com/gpu.product-name"};
	const char *kind = "", *label;
	int32_t slots = 1;

	for (size_t i = 0; i < HF_ARRAY_LEN(keys); i++)
		if ((label = label_of(node, keys[i])) != NULL)
			kind = hf_arena_printf(arena, "%s%s=%s ", kind, keys[i], label);
	while (slots < health->gpus)
		slots *= 2;
	return *kind != '\0' ? kind : hf_arena_printf(arena, "%d devices", slots);
}

static bool is_spare(const struct fleet_seen *seen, const struct hf_health_node *node,
		     const struct fleet_health *health)
{
	return node->state == HF_HEALTH_HEALTHY && !node->unavailable && !node->excluded &&
	       seen->now - node->observed_at <= seen->rules.stale_after && health->has_devices &&
	       !health->works;
}

static void see_node(struct hf_fleet *fleet, const struct fleet_seen *seen,
		     const struct fleet_item *item, struct hf_health_node *to,
		     struct hf_arena *arena)
{
	const struct fleet_node *node = item->node;
	const struct fleet_health *health = item->health;
	hf_time off = hf_fleet_seen_off_at(seen, item);

	*to = (struct hf_health_node){
		.name = item->name,
		.domain = hf_str_or(node->domain, ""),
		.job = "",
		.evidence_at = HF_TIME_NONE,
		.began_at = HF_TIME_NONE,
		.observed_at = HF_TIME_NONE,
		.foreign = hf_fleet_is_foreign(seen->policy, node),
		.owned = node->marked && node->tainted,
		.owned_at = node->marked ? node->mark.at : HF_TIME_NONE,
		.excluded = node->excluded || node->marks.paused,
		.not_before = hf_fleet_not_before(fleet, item->uid),
	};
	to->unavailable = to->foreign || to->owned || is_begun(seen, item->name);
	/* Holdfast leaves a node alone on which a person has put Holdfast's taint. */
	to->excluded |= node->tainted && !node->marked;
	to->awaited = hf_fleet_is_awaited(fleet, item->name, seen->rules.stale_after);
	if (health == NULL)
		return;
	to->state = health->state;
	to->cls = health->cls;
	to->action = health->action;
	to->weighed = health->weighed_by == seen->policy;
	to->same_boot =
		node->marks.boot_id != NULL && hf_streq(node->marks.boot_id, health->boot_id);
	set_times(fleet, health, seen->now, to);
	/* A person removed the taint: evidence from before that must not bring the taint back. */
	if (is_doubtful(seen, item, off) || (is_taken_off(node) && off == HF_TIME_NONE) ||
	    (off != HF_TIME_NONE &&
	     hf_fleet_convert_time(fleet, health, health->anew_at, seen->now) <= off))
		to->evidence_at = HF_TIME_NONE;
	to->device_busy = health->holders_len > 0;
	to->by_pods = health->by_pods;
	to->rest_well = health->rest_well;
	to->like = kind_of(node, health, arena);
	to->free = is_spare(seen, to, health);
	set_job(fleet, seen, health, to, arena);
}

/* After a person removed the taint, the next quarantine of the node is charged anew. */
hf_time hf_fleet_counted_at(const struct fleet_seen *seen, size_t i)
{
	const struct hf_health_node *node = &seen->nodes[i];

	if (node->owned || node->began_at == HF_TIME_NONE)
		return HF_TIME_NONE;
	for (size_t k = 0; k < seen->memory.recent.len; k++) {
		const struct hf_policy_recent *r = &seen->memory.recent.items[k];

		if (r->done && r->off == HF_TIME_NONE && r->at >= node->began_at &&
		    seen->items[i].node->marks.created_at > r->at && hf_streq(r->node, node->name))
			return r->at;
	}
	return HF_TIME_NONE;
}

/* --- recorded quarantines --------------------------------------------------------------------- */

static const struct fleet_item *find_item(const struct fleet_seen *seen, const char *name)
{
	const struct fleet_item key = {.name = name};

	return seen->len == 0
		       ? NULL
		       : bsearch(&key, seen->items, seen->len, sizeof(key), hf_compare_by_name);
}

static bool is_owned(const struct fleet_item *item)
{
	return item != NULL && item->node->marked && item->node->tainted;
}

/* A recorded quarantine is young enough to count for the rate, the breaker, or the budget of the
 * job that it disturbed. */
static bool is_counted(const struct fleet_seen *seen, const struct hf_policy_recent *r)
{
	const struct hf_health_policy_spec *spec = &seen->policy->spec;
	hf_time age = seen->now - r->at;

	/* The newest version of the policy cannot be read, so its windows are unknown: keep the
	 * entry. */
	if (!seen->policy->usable)
		return true;
	return age <= spec->quarantine_window || age <= spec->breaker_window ||
	       (!hf_str_is_empty(r->job) && age <= spec->job_window);
}

static bool is_kept(const struct fleet_seen *seen, const struct hf_policy_recent *r)
{
	if (!is_counted(seen, r))
		return false;
	/* A quarantine that is recorded but not visible on the Node: its write may still arrive.
	 * After LATE_MAX the entry is dropped and the quarantine decided anew. */
	return r->done || seen->now - r->at <= LATE_MAX;
}

static bool is_recent(const struct hf_health_policy_memory *memory, const char *node, hf_time at)
{
	for (size_t i = 0; i < memory->recent.len; i++)
		if (hf_streq(memory->recent.items[i].node, node) &&
		    memory->recent.items[i].at >= at - HF_SECOND)
			return true;
	return false;
}

/* Holdfast put the taint on, and a person removed it before a round saw it. */
static bool was_put(const struct fleet_item *item, hf_time at)
{
	return item != NULL && item->node->put_at != HF_TIME_NONE &&
	       item->node->put_at >= at - HF_SECOND;
}

/* A removal of the taint by a person is remembered until the node is healthy. */
static bool is_off(const struct fleet_item *item)
{
	return item != NULL && !item->node->tainted && item->health != NULL &&
	       item->health->state != HF_HEALTH_HEALTHY;
}

/* When Holdfast put the taint on. A process that has seen only the removal knows it from the mark, if that is left. */
static hf_time put_time(const struct fleet_node *node)
{
	if (node->put_at != HF_TIME_NONE)
		return node->put_at;
	return node->marked ? node->mark.at : node->off_at;
}

/* Stores in the policy's status when a person removed the taint, so that a later leader knows it
 * even if the mark on the Node is removed too. */
static void note_off(struct hf_health_policy_memory *memory, const struct fleet_item *item)
{
	const struct fleet_node *node = item->node;
	struct hf_policy_recent *found = NULL;

	for (size_t i = 0; i < memory->recent.len; i++)
		if (hf_streq(memory->recent.items[i].node, item->name))
			found = &memory->recent.items[i];
	if (found == NULL && memory->recent.len == HF_HEALTH_POLICY_RECENT_MAX)
		return;
	if (found == NULL) {
		found = &memory->recent.items[memory->recent.len++];
		*found = (struct hf_policy_recent){.node = item->name,
						   .job = "",
						   .at = put_time(node),
						   .done = true,
						   .off = HF_TIME_NONE};
	}
	if (node->off_at > found->off)
		found->off = node->off_at;
}

/* The Node's mark shows a quarantine of this policy that the policy's status does not list. */
static bool is_unnoted(const struct fleet_seen *seen, const struct fleet_item *item)
{
	const struct hf_quarantine_mark *mark = &item->node->mark;

	return is_owned(item) && hf_streq(mark->policy, seen->policy->name) &&
	       mark->at <= seen->now && !is_recent(&seen->memory, item->name, mark->at);
}

/* A higher spec.breaker.epoch closes an open breaker: only evidence from then on counts. If the
 * breaker is closed already, evidence stays valid. */
static void close_breaker(struct fleet_seen *seen)
{
	struct hf_health_policy_memory *memory = &seen->memory;

	if (!seen->policy->usable || seen->policy->spec.breaker_epoch <= memory->breaker_epoch)
		return;
	memory->breaker_epoch = seen->policy->spec.breaker_epoch;
	if (!memory->breaker_open)
		return;
	memory->breaker_open = false;
	memory->breaker_closed_at = seen->now;
	seen->memory_moved = true;
}

/* Takes the quarantines stored in the policy's status, adds those that only the Nodes show, and
 * drops those that no longer count. If the list is full, a quarantine is remembered by the mark on
 * its Node alone, and no new quarantine starts. */
static void recall_memory(struct fleet_seen *seen, struct hf_arena *arena)
{
	struct hf_health_policy_memory stored, *memory = &seen->memory;
	size_t room;

	hf_health_policy_read_memory(seen->doc, arena, &stored);
	*memory = stored;
	/* Room for the stored quarantines and for those of this round. */
	room = stored.recent.len + HF_HEALTH_POLICY_RECENT_MAX + HF_FLEET_ACTS_MAX;
	memory->recent.items = HF_ARENA_ARRAY(arena, struct hf_policy_recent, room + 1);
	memory->recent.len = 0;
	for (size_t i = 0; i < stored.recent.len; i++) {
		struct hf_policy_recent *r = &stored.recent.items[i];
		const struct fleet_item *item = find_item(seen, r->node);

		if (!is_off(item) && seen->policy->usable)
			r->off = HF_TIME_NONE;
		r->done |= is_owned(item) || was_put(item, r->at);
		if (r->off == HF_TIME_NONE && !is_kept(seen, r))
			continue;
		memory->recent.items[memory->recent.len++] = *r;
	}
	for (size_t i = 0; i < seen->len && memory->recent.len < HF_HEALTH_POLICY_RECENT_MAX; i++) {
		const struct fleet_item *item = &seen->items[i];
		struct hf_policy_recent made = {.node = item->name,
						.job = "",
						.at = item->node->mark.at,
						.done = true,
						.off = HF_TIME_NONE};

		if (is_unnoted(seen, item) && is_kept(seen, &made))
			memory->recent.items[memory->recent.len++] = made;
	}
	for (size_t i = 0; i < seen->len; i++)
		if (seen->items[i].node->off_at != HF_TIME_NONE && is_off(&seen->items[i]))
			note_off(memory, &seen->items[i]);
	close_breaker(seen);
}

/* --- the question and the answer -------------------------------------------------------------- */

static struct hf_health_limit limit_of(const struct hf_policy_limit *limit)
{
	return (struct hf_health_limit){.count = limit->count,
					.percent = limit->percent,
					.at_least_one = limit->at_least_one};
}

static void set_rules(struct fleet_seen *seen)
{
	const struct hf_health_policy_spec *spec = &seen->policy->spec;
	struct hf_health_policy *rules = &seen->rules;

	*rules = hf_health_policy_default;
	/* Without the section `mend`, mode remediate acts like quarantine here, and only shows which
	 * further actions a person may take. */
	rules->mode = hf_streq(spec->mode, "observe") ? HF_HEALTH_OBSERVE : HF_HEALTH_QUARANTINES;
	rules->paused = spec->paused || seen->policy->paused;
	rules->unavailable = limit_of(&spec->unavailable);
	rules->quarantines = limit_of(&spec->quarantines);
	rules->quarantine_window = spec->quarantine_window;
	rules->concurrent = HF_HEALTH_NODES_MAX;
	rules->per_domain = spec->domain_max;
	rules->job_evictions = spec->job_max;
	rules->breaker = limit_of(&spec->breaker);
	/* If the policy cannot be read, the breaker's limit is unknown: Holdfast does not act, and
	 * the breaker does not open. */
	if (!seen->policy->usable)
		rules->breaker = (struct hf_health_limit){.count = -1, .percent = -1};
	rules->breaker_window = spec->breaker_window;
	rules->stale_after = spec->stale_after;
	hf_fleet_set_mend_rules(spec, rules);
	hf_assert(hf_health_policy_problem(rules) == NULL);
}

/* The recorded quarantine has not reached the Node, and this round wants the same one: count it
 * once. */
static bool is_wanted_again(const struct fleet_seen *seen, const struct hf_policy_recent *r)
{
	const struct fleet_item *item = r->done ? NULL : find_item(seen, r->node);

	return item != NULL && !is_owned(item) &&
	       seen->nodes[item - seen->items].cls >= HF_HEALTH_SOFTWARE &&
	       seen->now >= seen->nodes[item - seen->items].not_before;
}

static void decide_fleet(struct fleet_seen *seen, struct hf_arena *arena)
{
	struct hf_health_policy_memory *memory = &seen->memory;
	struct hf_health_quarantined *quarantined =
		HF_ARENA_ARRAY(arena, struct hf_health_quarantined, memory->recent.len + 1);
	struct hf_health_fleet fleet = {.now = seen->now,
					.nodes = seen->nodes,
					.nodes_len = seen->len,
					.selected = seen->selected,
					.quarantined = quarantined,
					.room = HF_HEALTH_POLICY_RECENT_MAX -
						(int32_t)memory->recent.len,
					.breaker = {.tripped = memory->breaker_open,
						    .epoch = (uint64_t)memory->breaker_epoch,
						    .closed_at = memory->breaker_closed_at}};
	int rc;

	for (size_t i = 0; i < memory->recent.len; i++)
		if (!is_wanted_again(seen, &memory->recent.items[i]))
			quarantined[fleet.quarantined_len++] =
				(struct hf_health_quarantined){.node = memory->recent.items[i].node,
							       .at = memory->recent.items[i].at};
	seen->spares = hf_health_fleet_spares(&fleet, &seen->rules, seen->policy->spec.spares_min,
					      seen->nodes, arena);
	/* Cannot fail: collect_nodes takes at most HF_HEALTH_NODES_MAX nodes. */
	rc = hf_health_fleet_decide(&fleet, &seen->rules, arena, &seen->plan, NULL);
	hf_assert(rc == 0);
	if (!seen->plan.breaker_tripped_now)
		return;
	memory->breaker_open = true;
	memory->breaker_opened_at = seen->now;
	seen->memory_moved = true;
}

void hf_fleet_see(struct hf_fleet *fleet, struct fleet_policy *policy, struct hf_doc *doc,
		  struct hf_arena *arena, struct fleet_seen *ret_seen)
{
	struct fleet_seen *seen = ret_seen;

	*seen = (struct fleet_seen){.policy = policy, .doc = doc, .now = hf_fleet_now(fleet)};
	set_rules(seen);
	collect_nodes(fleet, seen, arena);
	recall_memory(seen, arena);
	seen->nodes = HF_ARENA_ARRAY(arena, struct hf_health_node, seen->len + 1);
	for (size_t i = 0; i < seen->len; i++)
		see_node(fleet, seen, &seen->items[i], &seen->nodes[i], arena);
	for (size_t i = 0; i < seen->len; i++)
		seen->nodes[i].counted = hf_fleet_counted_at(seen, i) != HF_TIME_NONE;
	hf_fleet_recall_acts(fleet, seen, arena);
	decide_fleet(seen, arena);
	for (size_t i = 0; i < seen->len; i++)
		seen->silent += seen->items[i].counts &&
				seen->plan.decisions[i].why == HF_HEALTH_WHY_SILENT;
}

bool hf_fleet_is_halted(const struct fleet_seen *seen)
{
	return seen->rules.paused || seen->memory.breaker_open || seen->memory_moved;
}

bool hf_fleet_is_outdated(const struct fleet_seen *seen, size_t i)
{
	const struct hf_health_node *node = &seen->nodes[i];

	return !node->same_boot || (seen->memory.breaker_closed_at != HF_TIME_NONE &&
				    (node->evidence_at == HF_TIME_NONE ||
				     node->evidence_at < seen->memory.breaker_closed_at));
}

bool hf_fleet_is_stale(const struct fleet_seen *seen, size_t i)
{
	const struct hf_health_node *node = &seen->nodes[i];

	return hf_fleet_is_outdated(seen, i) || node->observed_at == HF_TIME_NONE ||
	       seen->now - node->observed_at > seen->rules.stale_after;
}
