/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/node.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/facts_internal.h"
#include "operator/operator_internal.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

/*
 * Watches Nodes and counts lost nodes for the storm guard.
 *
 * Input: Node objects from a cache.  Output: facts about a node for a step; jobs in the queue when
 * readiness or a taint of a node with their pods changes.  A kubelet's routine report changes
 * nothing and queues no job.
 *
 * The numbers of zones are updated with each change.  Every hour, nodes that were cordoned and lost
 * for a day are removed from the numbers.
 */

/* In a storm the numbers of its zone may change every second; the jobs that it holds are queued
 * after this time. */
#define STORM_GATHER HF_SECOND
/* A node that has been away for longer does not count for storms: it waits to be deleted. */
#define RETIRED_AFTER HF_DAY
#define RETIRED_LOOK HF_HOUR
/* Names of missing nodes are swept when there are twice as many as were in use at the last
 * sweep. */
#define MISSING_MIN 64
/* Nodes are listed in pages of this size, because a Node names every image that it holds: 20 KB and
 * more. */
#define PAGE_LIMIT 100
#define MISSING_MAX 65536

struct zone {
	int32_t nodes, lost;
	hf_time calm; /* monotonic: since when the numbers are below a storm's; NONE: a storm now */
};

struct node_view {
	struct hf_node_facts facts;
	hf_time since; /* monotonic: since when facts.ready has its present value */
	/* monotonic: when the node last had a taint that evicts pods, was Unknown, or did not
	 * exist; NONE: never */
	hf_time evicted;
	hf_time joined; /* monotonic: since when the node has been in its zone */
	struct zone *zone;
	bool counted; /* the numbers of the storm guard include the node */
	char zone_name[];
};

struct missing {
	hf_time since;
};

struct hf_nodes {
	struct hf_operator *op;
	struct hf_cache *cache;
	bool unseen;
	/* label → struct zone; zones are never removed, because views point to them */
	struct hf_map *zones;
	struct zone whole;
	uint64_t lists;   /* the number of lists that the cache had read at the time `watching` */
	hf_time watching; /* monotonic: since when no change of a node was missed */
	/* name → struct missing, of nodes that pods name and that do not exist */
	struct hf_map *missing;
	size_t sweep_at;
	struct hf_timer *storm, *retire;
};

hf_time hf_moment_at(const struct hf_moment *moment, hf_time mono)
{
	return mono == HF_TIME_NONE ? HF_TIME_NONE : moment->now - (moment->mono - mono);
}

/* --- the jobs that a node concerns ------------------------------------------------------------ */

void hf_nodes_enqueue(struct hf_operator *op, const char *name)
{
	const struct hf_cache *pods = op->pods.cache;
	const struct hf_cache_entry *e;

	for (e = hf_cache_first(pods, HF_PODS_BY_NODE, name); e != NULL;
	     e = hf_cache_after(pods, HF_PODS_BY_NODE, e)) {
		const struct hf_view *view = e->view;
		const char *key = hf_map_get(op->job_keys, view->controller_uid);

		if (key != NULL)
			hf_operator_enqueue(op, key);
		else /* the pod's job is gone, and a later job may wait for the pod's name */
			hf_operator_enqueue_by_name(op, e->ns, e->name);
	}
}

static bool has_pods(const struct hf_nodes *nodes, const char *name)
{
	return hf_cache_first(nodes->op->pods.cache, HF_PODS_BY_NODE, name) != NULL;
}

/* The numbers of a zone have changed: queue the jobs with pods on Unknown nodes. */
static void on_storm(void *arg)
{
	struct hf_nodes *nodes = arg;
	const struct hf_cache_entry *entry;

	for (size_t it = 0; (entry = hf_cache_next(nodes->cache, &it)) != NULL;)
		if (((const struct node_view *)entry->view)->facts.ready == HF_NODE_UNKNOWN)
			hf_nodes_enqueue(nodes->op, entry->name);
}

/* --- storm numbers ---------------------------------------------------------------------------- */

/* The node counts as lost for the storm guard.  A proven death does not count, because it casts no
 * doubt on the operator's own view. */
static bool is_lost(const struct hf_node_facts *facts)
{
	return facts->ready == HF_NODE_UNKNOWN && !facts->out_of_service;
}

static struct zone *zone_of(struct hf_nodes *nodes, const char *name)
{
	struct zone *zone;

	if (name == NULL)
		return NULL;
	zone = hf_map_get(nodes->zones, name);
	if (zone != NULL)
		return zone;
	zone = hf_xcalloc(1, sizeof(*zone));
	zone->calm = hf_loop_mono(nodes->op->loop);
	if (hf_map_put(nodes->zones, name, zone))
		return zone;
	free(zone);
	return NULL;
}

static bool is_retired(const struct hf_nodes *nodes, const struct node_view *view)
{
	hf_time at = view->facts.unknown_at;
	hf_time away = at == HF_TIME_NONE ? hf_loop_mono(nodes->op->loop) - view->since
					  : hf_operator_now(nodes->op) - at;

	return away > RETIRED_AFTER;
}

/* The node was cordoned before it fell silent, so it was being drained or rebooted. */
static bool was_cordoned_before(const struct hf_node_facts *facts)
{
	return facts->cordoned_at != HF_TIME_NONE && facts->unknown_at != HF_TIME_NONE &&
	       facts->cordoned_at < facts->unknown_at;
}

/* The node counts for the numbers of its zone.  People cordon dead nodes; that must not make a
 * storm smaller. */
static bool counts_as_node(struct hf_nodes *nodes, const struct node_view *view)
{
	if (view->facts.schedulable)
		return true;
	if (!is_lost(&view->facts) || was_cordoned_before(&view->facts) || is_retired(nodes, view))
		return false;
	if (!hf_timer_armed(nodes->retire))
		hf_timer_arm(nodes->retire, RETIRED_LOOK);
	return true;
}

static void add_to_zone(struct hf_nodes *nodes, const struct node_view *view, int by)
{
	if (!view->counted)
		return;
	nodes->whole.nodes += by;
	nodes->whole.lost += is_lost(&view->facts) ? by : 0;
	if (view->zone != NULL) {
		view->zone->nodes += by;
		view->zone->lost += is_lost(&view->facts) ? by : 0;
	}
}

static bool counts_alike(const struct node_view *a, const struct node_view *b)
{
	return a->counted == b->counted && a->zone == b->zone &&
	       is_lost(&a->facts) == is_lost(&b->facts);
}

static bool is_in_storm(const struct zone *zone)
{
	return hf_nodes_are_in_storm(zone->nodes, zone->lost);
}

/* Note the begin or the end of a storm.  Must be called only after a change was counted as a whole:
 * a half-counted change may look like a storm, or like its end. */
static void note_storm(const struct hf_nodes *nodes, struct zone *zone)
{
	if (zone == NULL)
		return;
	if (is_in_storm(zone))
		zone->calm = HF_TIME_NONE;
	else if (zone->calm == HF_TIME_NONE)
		zone->calm = hf_loop_mono(nodes->op->loop);
}

static void recount_node(struct hf_nodes *nodes, const struct node_view *was, struct node_view *now)
{
	int32_t lost = nodes->whole.lost;

	if (now != NULL)
		now->counted = counts_as_node(nodes, now);
	if (was != NULL && now != NULL && counts_alike(was, now))
		return;
	if (was != NULL)
		add_to_zone(nodes, was, -1);
	if (now != NULL)
		add_to_zone(nodes, now, 1);
	note_storm(nodes, &nodes->whole);
	note_storm(nodes, was == NULL ? NULL : was->zone);
	note_storm(nodes, now == NULL ? NULL : now->zone);
	if ((lost > 0 || nodes->whole.lost > 0) && !hf_timer_armed(nodes->storm))
		hf_timer_arm(nodes->storm, STORM_GATHER);
}

/* Runs every hour: remove nodes that have been cordoned and lost for a day from the numbers. */
static void on_retire(void *arg)
{
	struct hf_nodes *nodes = arg;
	const struct hf_cache_entry *entry;

	for (size_t it = 0; (entry = hf_cache_next(nodes->cache, &it)) != NULL;) {
		struct node_view *view = entry->view, was = *view;

		if (view->counted && !view->facts.schedulable)
			recount_node(nodes, &was, view);
	}
}

/* --- nodes that are gone ---------------------------------------------------------------------- */

static void retire_cordoned(struct hf_nodes *nodes)
{
	const char *name;
	void *value;

	for (size_t it = 0; hf_map_next(nodes->missing, &it, &name, &value);)
		if (!has_pods(nodes, name))
			hf_map_remove(nodes->missing, name);
	nodes->sweep_at = 2 * hf_map_len(nodes->missing);
	if (nodes->sweep_at < MISSING_MIN)
		nodes->sweep_at = MISSING_MIN;
}

/* Returns since when the Node object has been missing. If that was not known yet, notes it as
 * now. */
static hf_time missing_since(struct hf_nodes *nodes, const char *name)
{
	struct missing *missing = hf_map_get(nodes->missing, name);
	hf_time now = hf_loop_mono(nodes->op->loop);

	if (missing != NULL)
		return missing->since;
	if (hf_map_len(nodes->missing) >= nodes->sweep_at)
		retire_cordoned(nodes);
	missing = hf_xcalloc(1, sizeof(*missing));
	missing->since = now;
	/* If the table is full, the node counts as gone since now, at each look: never for long
	 * enough to be proof. */
	if (!hf_map_put(nodes->missing, name, missing))
		free(missing);
	return now;
}

/* --- the watch -------------------------------------------------------------------------------- */

static void *decode_node(void *arg, struct hf_doc *doc)
{
	struct hf_nodes *nodes = arg;
	struct hf_arena *scratch = nodes->op->scratch;
	struct hf_node_facts facts;
	struct node_view *view;
	size_t size;

	hf_node_read(doc, scratch, &facts);
	size = strlen(hf_str_or(facts.zone, "")) + 1;
	view = hf_xcalloc(1, sizeof(*view) + size);
	view->facts = facts;
	memcpy(view->zone_name, hf_str_or(facts.zone, ""), size);
	view->facts.zone = facts.zone == NULL ? NULL : view->zone_name;
	view->zone = zone_of(nodes, view->facts.zone);
	hf_arena_reset(scratch);
	return view;
}

static bool same_standing(const struct hf_node_facts *a, const struct hf_node_facts *b)
{
	return a->ready == b->ready && a->unknown_at == b->unknown_at &&
	       a->unreachable == b->unreachable && a->out_of_service == b->out_of_service &&
	       a->no_execute == b->no_execute;
}

/* Returns true if the node's Ready condition has not changed. A node that was Unknown, Ready and
 * Unknown again has changed: the time in its condition differs. */
static bool stands_as_before(const struct hf_node_facts *was, const struct hf_node_facts *now)
{
	return was->ready == now->ready && was->unknown_at == now->unknown_at;
}

/* Taint eviction may act on pods of the node.  A silent node gets its taint later, or the taint
 * waits in the controller's queue. */
static bool has_evicting_taint(const struct hf_node_facts *facts)
{
	return facts->no_execute || facts->ready == HF_NODE_UNKNOWN;
}

static hf_time evicted_until(const struct hf_nodes *nodes, const struct node_view *was,
			     const char *name)
{
	if (was == NULL)
		return hf_map_has(nodes->missing, name) ? hf_loop_mono(nodes->op->loop)
							: HF_TIME_NONE;
	return has_evicting_taint(&was->facts) ? hf_loop_mono(nodes->op->loop) : was->evicted;
}

static void begin_watching(struct hf_nodes *nodes)
{
	nodes->lists = hf_cache_stats(nodes->cache)->relists;
	nodes->watching = hf_loop_mono(nodes->op->loop);
}

static void take_change(void *arg, enum hf_cache_change change, const struct hf_cache_entry *before,
			const struct hf_cache_entry *now)
{
	struct hf_nodes *nodes = arg;
	const struct node_view *was = before == NULL ? NULL : before->view;
	struct node_view *view = now == NULL ? NULL : now->view;

	nodes->unseen = false;
	if (change == HF_CACHE_SYNCED) {
		begin_watching(nodes);
		hf_operator_check_synced(nodes->op);
		return;
	}
	if (view != NULL) {
		bool as_before = was != NULL && stands_as_before(&was->facts, &view->facts);
		bool moved = was == NULL || was->zone != view->zone;

		view->since = as_before ? was->since : hf_loop_mono(nodes->op->loop);
		view->joined = moved ? hf_loop_mono(nodes->op->loop) : was->joined;
		view->evicted = evicted_until(nodes, was, now->name);
		hf_map_remove(nodes->missing, now->name);
	} else if (has_pods(nodes, before->name)) {
		missing_since(nodes, before->name);
	}
	recount_node(nodes, was, view);
	if (was == NULL || view == NULL || !same_standing(&was->facts, &view->facts))
		hf_nodes_enqueue(nodes->op, (now != NULL ? now : before)->name);
}

static void take_problem(void *arg, int code, const char *message)
{
	struct hf_nodes *nodes = arg;
	bool told = nodes->unseen;

	/* An operator of one namespace has no right to list Nodes.  It goes on without, and logs
	 * that once. */
	if (code == HF_E_FORBIDDEN || code == HF_E_UNSUPPORTED) {
		nodes->unseen = true;
		hf_operator_check_synced(nodes->op);
		if (told)
			return;
	}
	hf_operator_problem(nodes->op, hf_nodes.plural, code, message);
}

/* --- life ------------------------------------------------------------------------------------- */

struct hf_nodes *hf_nodes_create(struct hf_operator *op)
{
	struct hf_nodes *nodes = hf_xcalloc(1, sizeof(*nodes));
	const struct hf_cache_options options = {
		.loop = op->loop,
		.store = op->store,
		.resource = &hf_nodes,
		.page_limit = PAGE_LIMIT,
		.seed = op->options.seed ^ hf_hash_str(hf_nodes.plural),
		.decode = decode_node,
		.view_free = free,
		.changed = take_change,
		.problem = take_problem,
		.arg = nodes,
	};

	nodes->op = op;
	nodes->whole.calm = nodes->watching = hf_loop_mono(op->loop);
	nodes->sweep_at = MISSING_MIN;
	nodes->zones = hf_map_create(HF_ZONES_MAX, op->options.seed, free);
	nodes->missing = hf_map_create(MISSING_MAX, op->options.seed, free);
	nodes->storm = hf_timer_create(op->loop, on_storm, nodes);
	nodes->retire = hf_timer_create(op->loop, on_retire, nodes);
	nodes->cache = hf_cache_create(&options);
	return nodes;
}

void hf_nodes_start(struct hf_nodes *nodes)
{
	hf_cache_start(nodes->cache);
}

struct hf_nodes *hf_nodes_destroy(struct hf_nodes *nodes)
{
	if (nodes == NULL)
		return NULL;
	hf_cache_destroy(nodes->cache);
	hf_timer_destroy(nodes->storm);
	hf_timer_destroy(nodes->retire);
	hf_map_destroy(nodes->zones);
	hf_map_destroy(nodes->missing);
	free(nodes);
	return NULL;
}

/* --- facts for a step ------------------------------------------------------------------------- */

static bool can_see(const struct hf_nodes *nodes)
{
	return !nodes->unseen && hf_cache_synced(nodes->cache);
}

bool hf_nodes_synced(const struct hf_nodes *nodes)
{
	return nodes->unseen || hf_cache_synced(nodes->cache);
}

/* Since when the node's zone, or the cluster, has been seen without a storm.  A storm that came and
 * went while the watch was broken, or before the node was in the zone, was not seen.  So calm
 * begins with the watch. */
static hf_time calm_since(struct hf_nodes *nodes, const struct node_view *view,
			  const struct zone *zone)
{
	hf_time calm = zone->calm;

	if (nodes->lists != hf_cache_stats(nodes->cache)->relists)
		begin_watching(nodes);
	if (calm == HF_TIME_NONE)
		return HF_TIME_NONE;
	calm = calm < nodes->watching ? nodes->watching : calm;
	return view != NULL && calm < view->joined ? view->joined : calm;
}

/* The zone that decides for this node: its own zone.  If only the cluster is in a storm, or was in
 * a storm later than the zone, the cluster decides, because a zone of one or two nodes has no storm
 * of its own. */
static const struct zone *find_guarding(const struct hf_nodes *nodes, const struct node_view *view)
{
	const struct zone *whole = &nodes->whole;
	const struct zone *zone = view == NULL ? NULL : view->zone;

	if (zone == NULL || (is_in_storm(whole) && !is_in_storm(zone)))
		return whole;
	if (is_in_storm(zone))
		return zone;
	return whole->calm > zone->calm ? whole : zone;
}

bool hf_nodes_see(struct hf_nodes *nodes, const char *name, const struct hf_moment *moment,
		  struct hf_arena *arena, struct hf_node_seen *ret_node)
{
	const struct hf_cache_entry *entry = hf_cache_get(nodes->cache, NULL, name);
	const struct node_view *view = entry == NULL ? NULL : entry->view;
	const struct zone *zone = find_guarding(nodes, view);
	struct hf_node_seen node;

	if (!can_see(nodes))
		return false;
	hf_node_seen_init(&node, name, HF_NODE_GONE, HF_TIME_NONE);
	node.zone_nodes = zone->nodes;
	node.zone_lost = zone->lost;
	node.calm_since = hf_moment_at(moment, calm_since(nodes, view, zone));
	if (view == NULL) {
		node.since = hf_moment_at(moment, missing_since(nodes, name));
	} else {
		node.ready = view->facts.ready;
		node.since = hf_moment_at(moment, view->since);
		node.unknown_at = view->facts.unknown_at;
		node.unreachable = view->facts.unreachable;
		node.out_of_service = view->facts.out_of_service;
		node.no_execute = view->facts.no_execute;
		if (view->evicted != HF_TIME_NONE)
			node.evicted_at = hf_moment_at(moment, view->evicted);
		/* The text is copied, because the plan may live longer than the view. */
		if (zone != &nodes->whole)
			node.zone = hf_arena_strdup(arena, view->facts.zone);
	}
	*ret_node = node;
	return true;
}

bool hf_nodes_evicts(const struct hf_nodes *nodes, const char *name)
{
	const struct hf_cache_entry *entry = hf_cache_get(nodes->cache, NULL, name);
	const struct node_view *view = entry == NULL ? NULL : entry->view;

	if (!can_see(nodes) || view == NULL || has_evicting_taint(&view->facts))
		return true;
	/* view->evicted is the last time at which the node had an evicting taint. That time counts
	 * for a while after the removal of the taint: the watch of pods may report the eviction
	 * later than the watch of nodes reports the removal. */
	return view->evicted != HF_TIME_NONE &&
	       hf_loop_mono(nodes->op->loop) - view->evicted < HF_POD_HISTORY_KEPT;
}

void hf_nodes_put(struct hf_nodes *nodes, struct hf_doc *node)
{
	hf_cache_put_reply(nodes->cache, node);
}

void hf_nodes_count(const struct hf_nodes *nodes, int32_t *ret_lost, int32_t *ret_storms)
{
	const char *name;
	void *value;

	*ret_lost = nodes->whole.lost;
	*ret_storms = 0;
	for (size_t it = 0; hf_map_next(nodes->zones, &it, &name, &value);)
		*ret_storms += is_in_storm(value);
	/* If no zone is in a storm but the cluster is, the cluster counts as one zone. */
	if (*ret_storms == 0)
		*ret_storms = is_in_storm(&nodes->whole);
}
