/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/nodes.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "sim/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The controllers of kube-controller-manager for nodes, with their times and quirks:
 *
 * - Node life cycle: it looks every 5 s. A node without a renewal for 50 s becomes Unknown. Its
 *   NoExecute taint comes from a queue of the zone, for one node in ten seconds. A zone in which
 *   more than two nodes and 55 % are not ready gets none. If all zones are down as a whole, it
 *   removes these taints.
 * - Taint eviction: 300 s after the taint (at once for other keys) it deletes the pod of this name,
 *   without a UID. The timer belongs to the name. When a pod is removed, the timer is cancelled
 *   only if no pod has the name by the time the removal is handled. A pod of this name on another
 *   node does not cancel it, nor does the end of the Node object.
 * - Pod GC: every 20 s it marks pods Failed and deletes them without grace. It does so for pods of
 *   a Node that has been missing for 40 s, and for terminating pods of a node that is out of
 *   service and not ready.
 */
#define LOOK_EVERY (5 * HF_SECOND)
#define GRACE (50 * HF_SECOND)
#define TAINT_EVERY (10 * HF_SECOND)
#define TOLERATED (300 * HF_SECOND)
#define GC_EVERY (20 * HF_SECOND)
#define GC_QUARANTINE (40 * HF_SECOND)
#define PODS_MAX 10000

struct pod_list {
	const char *node; /* NULL: all */
	HF_VEC(struct hf_doc *) pods;
};

struct eviction {
	struct sim *sim;
	char *name;
	struct hf_timer *timer;
};

struct sim_handling {
	struct sim *sim;
	char *name, *node;
	struct hf_timer *timer;
	struct sim_handling *next;
};

static const char *node_of(struct hf_doc *pod)
{
	return hf_str_or(hf_json_path_str(hf_doc_json(pod), "spec", "nodeName", NULL), "");
}

static bool has_ended(struct hf_doc *pod)
{
	const char *phase = hf_json_path_str(hf_doc_json(pod), "status", "phase", NULL);

	return hf_streq(phase, "Failed") || hf_streq(phase, "Succeeded");
}

static bool is_terminating(struct hf_doc *pod)
{
	return hf_json_path(hf_doc_json(pod), "metadata", "deletionTimestamp", NULL) != NULL;
}

static void collect(void *arg, struct hf_doc *pod)
{
	struct pod_list *list = arg;

	if (list->node != NULL && !hf_streq(node_of(pod), list->node))
		return;
	bool pushed = HF_VEC_PUSH(&list->pods, hf_doc_ref(pod));

	hf_assert(pushed);
}

static void list_pods(struct sim *sim, const char *node, struct pod_list *ret_list)
{
	*ret_list = (struct pod_list){.node = node, .pods = HF_VEC_INIT(PODS_MAX)};
	hf_memstore_each(sim->memstore, &hf_pods, "default", collect, ret_list);
}

static void list_release(struct pod_list *list)
{
	for (size_t i = 0; i < list->pods.len; i++)
		hf_doc_unref(list->pods.items[i]);
	HF_VEC_RELEASE(&list->pods);
}

void sim_pod_mark(struct sim *sim, const char *name, const char *type, const char *status,
		  const char *reason, const char *phase)
{
	struct hf_doc *pod = hf_memstore_peek(sim->memstore, &hf_pods, "default", name);
	HF_AUTO_JSON patch = hf_json_object();
	struct hf_json *to = hf_json_ensure_object(patch, "status"), *list, *mine;
	const struct hf_json *from = hf_json_path(hf_doc_json(pod), "status", "conditions", NULL);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)64 << 10);

	if (phase != NULL)
		hf_json_set_str(to, "phase", phase);
	list = hf_json_ensure_array(to, "conditions");
	for (size_t i = 0; i < hf_json_len(from); i++)
		if (!hf_streq(hf_json_str(hf_json_get(hf_json_item(from, i), "type"), ""), type))
			hf_json_append(list, hf_json_copy(hf_json_item(from, i)));
	mine = hf_json_object();
	hf_json_set_str(mine, "type", type);
	hf_json_set_str(mine, "status", status);
	hf_json_set_str(mine, "reason", reason);
	hf_json_append(list, mine);
	hf_json_write(patch, HF_JSON_COMPACT, &text);
	sim_patch(sim, &hf_pods, "default", name, "status", text.data);
}

static void delete_by_name(struct sim *sim, const char *name, int64_t grace)
{
	const struct hf_request request = {.verb = HF_VERB_DELETE,
					   .resource = &hf_pods,
					   .ns = "default",
					   .name = name,
					   .grace_seconds = grace};

	sim_apply(sim, &request);
}

/* --- taint eviction -------------------------------------------------------------------------- */

static void eviction_free(void *value)
{
	struct eviction *eviction = value;

	hf_timer_destroy(eviction->timer);
	free(eviction->name);
	free(eviction);
}

static bool taints_execute(const struct sim_node *node)
{
	return node->exists && ((node->shown != SIM_SHOWN_READY && node->unreachable_execute) ||
				node->out_of_service || node->drained);
}

static void check_stray(struct sim *sim, const char *name)
{
	const struct sim_node *node = sim_node_get(
		sim, node_of(hf_memstore_peek(sim->memstore, &hf_pods, "default", name)));

	/* The timer of a pod on a deleted node may be the pod's own. */
	if (node != NULL && node->exists && !taints_execute(node))
		sim_check_stray(sim, name);
}

static void evict(void *arg)
{
	struct eviction *eviction = arg;
	struct sim *sim = eviction->sim;
	HF_AUTOFREE char *name = hf_xstrdup(eviction->name);

	hf_map_remove(sim->nodes->evictions, name);
	if (hf_memstore_peek(sim->memstore, &hf_pods, "default", name) == NULL)
		return;
	sim_tell(sim, "taint eviction: deletes %s, by name", name);
	check_stray(sim, name);
	sim_pod_mark(sim, name, "DisruptionTarget", "True", "DeletionByTaintManager", NULL);
	delete_by_name(sim, name, HF_GRACE_DEFAULT);
}

static hf_time tolerated(const struct sim_node *node, struct hf_doc *pod)
{
	const struct hf_json *list = hf_json_path(hf_doc_json(pod), "spec", "tolerations", NULL);
	hf_time span = TOLERATED;

	if (node->out_of_service || node->drained)
		return 0;
	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *one = hf_json_item(list, i);

		if (hf_streq(hf_json_str(hf_json_get(one, "key"), ""),
			     "node.kubernetes.io/unreachable"))
			span = hf_json_i64(hf_json_get(one, "tolerationSeconds"), 86400) *
			       HF_SECOND;
	}
	return span;
}

static void consider(struct sim_node *node, struct hf_doc *pod)
{
	struct sim *sim = node->sim;
	struct eviction *eviction;

	/* The earlier trigger stays. */
	if (hf_map_has(sim->nodes->evictions, hf_doc_name(pod)))
		return;
	eviction = hf_xcalloc(1, sizeof(*eviction));
	eviction->sim = sim;
	eviction->name = hf_xstrdup(hf_doc_name(pod));
	eviction->timer = hf_timer_create(sim->loop, evict, eviction);
	bool put = hf_map_put(sim->nodes->evictions, eviction->name, eviction);

	hf_assert(put);
	hf_timer_arm(eviction->timer, tolerated(node, pod));
}

void sim_lifecycle_taints(struct sim_node *node)
{
	struct sim *sim = node->sim;
	struct pod_list list;

	/* The controller forgets a deleted node, and its timers run on. */
	if (sim->nodes->kcm_down || !node->exists)
		return;
	list_pods(sim, node->name, &list);
	for (size_t i = 0; i < list.pods.len; i++) {
		if (taints_execute(node))
			consider(node, list.pods.items[i]);
		else
			hf_map_remove(sim->nodes->evictions, hf_doc_name(list.pods.items[i]));
	}
	list_release(&list);
}

static void handle_pod(struct sim *sim, const char *name, const char *node_name)
{
	struct hf_doc *pod = hf_memstore_peek(sim->memstore, &hf_pods, "default", name);
	struct sim_node *node;

	if (pod == NULL) {
		hf_map_remove(sim->nodes->evictions, name);
		return;
	}
	/* The new pod of this name is on another node, so another worker handles it, and the timer
	 * stays. */
	if (!hf_streq(node_of(pod), node_name))
		return;
	node = sim_node_get(sim, node_name);
	if (node != NULL && taints_execute(node))
		consider(node, pod);
}

static void handling_free(struct sim_handling *handling)
{
	struct sim_handling **at = &handling->sim->nodes->handling;

	while (*at != handling)
		at = &(*at)->next;
	*at = handling->next;
	hf_timer_destroy(handling->timer);
	free(handling->name);
	free(handling->node);
	free(handling);
}

static void on_handle(void *arg)
{
	struct sim_handling *handling = arg;

	handle_pod(handling->sim, handling->name, handling->node);
	handling_free(handling);
}

void sim_lifecycle_pod(struct sim *sim, const struct hf_memstore_change *change)
{
	struct hf_doc *doc = change->after != NULL ? change->after : change->before;
	bool bound = change->before != NULL && change->after != NULL &&
		     !hf_streq(node_of(change->before), node_of(change->after));
	struct sim_handling *handling;

	/* Worlds without trouble of nodes have no taints. */
	if (sim->nodes->kcm_down || (change->after != NULL && !bound) ||
	    (sim->mood.per_hour[SIM_BY_NODE] == 0 && sim->script == NULL))
		return;
	handling = hf_xcalloc(1, sizeof(*handling));
	handling->sim = sim;
	handling->name = hf_xstrdup(hf_doc_name(doc));
	handling->node = hf_xstrdup(node_of(doc));
	handling->timer = hf_timer_create(sim->loop, on_handle, handling);
	handling->next = sim->nodes->handling;
	sim->nodes->handling = handling;
	hf_timer_arm(handling->timer,
		     (hf_time)hf_rng_below(&sim->nodes->rng, (uint64_t)sim->nodes->handle_max));
}

static void kcm_forget(struct sim *sim)
{
	while (sim->nodes->handling != NULL)
		handling_free(sim->nodes->handling);
	hf_map_clear(sim->nodes->evictions);
}

static void kcm_starts(void *arg)
{
	struct sim *sim = arg;

	sim_tell(sim, "kube-controller-manager: starts");
	sim->nodes->kcm_down = false;
	for (size_t i = 0; i < sim->nodes->n; i++)
		if (taints_execute(&sim->nodes->nodes[i]))
			sim_lifecycle_taints(&sim->nodes->nodes[i]);
	sim_lifecycle_wake(sim);
}

/* Its timers begin anew. */
void sim_lifecycle_restart(struct sim *sim)
{
	sim_tell(sim, "kube-controller-manager: ends");
	kcm_forget(sim);
	sim->nodes->kcm_down = true;
	hf_timer_arm(sim->nodes->kcm_up, (hf_time)hf_rng_below(&sim->nodes->rng, HF_MINUTE));
}

/* --- node life cycle ------------------------------------------------------------------------- */

struct zone {
	int nodes, not_ready;
};

static bool is_down(const struct zone *zone)
{
	return zone->nodes > 0 && zone->not_ready == zone->nodes;
}

static bool is_partly_down(const struct zone *zone)
{
	return !is_down(zone) && zone->not_ready > 2 && zone->not_ready * 100 >= zone->nodes * 55;
}

static enum sim_shown what_to_show(const struct sim_node *node)
{
	if (sim_node_alive(node))
		return node->runtime_bad ? SIM_SHOWN_NOT_READY : SIM_SHOWN_READY;
	return sim_now(node->sim) - node->renewed > GRACE ? SIM_SHOWN_UNKNOWN : node->shown;
}

static void pods_not_ready(struct sim_node *node)
{
	struct pod_list list;

	list_pods(node->sim, node->name, &list);
	for (size_t i = 0; i < list.pods.len; i++)
		if (!has_ended(list.pods.items[i]))
			sim_pod_mark(node->sim, hf_doc_name(list.pods.items[i]), "Ready", "False",
				     "NodeNotReady", NULL);
	list_release(&list);
}

static void show(struct sim_node *node)
{
	enum sim_shown now = what_to_show(node);

	if (now == node->shown)
		return;
	node->shown = now;
	node->shown_since = sim_now(node->sim);
	node->shown_wall = hf_loop_wall(node->sim->loop);
	node->unreachable_execute = false;
	sim_node_write(node);
	if (now == SIM_SHOWN_UNKNOWN)
		pods_not_ready(node);
	sim_lifecycle_taints(node);
}

static void taint(struct sim_node *node, struct zone *zones, bool all_down)
{
	struct sim_nodes *nodes = node->sim->nodes;
	bool wanted = node->shown != SIM_SHOWN_READY && !all_down;

	if (wanted == node->unreachable_execute)
		return;
	if (wanted && (is_partly_down(&zones[node->zone]) ||
		       sim_now(node->sim) < nodes->next_taint[node->zone]))
		return;
	if (wanted)
		nodes->next_taint[node->zone] = sim_now(node->sim) + TAINT_EVERY;
	node->unreachable_execute = wanted;
	sim_node_write(node);
	sim_lifecycle_taints(node);
}

static bool is_of_interest(const struct sim_node *node)
{
	return node->exists && (!sim_node_alive(node) || node->shown != SIM_SHOWN_READY ||
				node->runtime_bad || node->unreachable_execute);
}

static void on_look(void *arg)
{
	struct sim *sim = arg;
	struct sim_nodes *nodes = sim->nodes;
	struct zone zones[SIM_ZONES_MAX] = {0};
	bool again = false, all_down = true;

	if (nodes->kcm_down)
		return;
	for (size_t i = 0; i < nodes->n; i++) {
		struct sim_node *node = &nodes->nodes[i];

		if (!node->exists)
			continue;
		show(node);
		zones[node->zone].nodes++;
		zones[node->zone].not_ready += node->shown != SIM_SHOWN_READY;
		again = again || is_of_interest(node);
	}
	sim_check_clock(sim);
	for (int z = 0; z < SIM_ZONES_MAX; z++)
		all_down = all_down && (zones[z].nodes == 0 || is_down(&zones[z]));
	for (size_t i = 0; i < nodes->n; i++)
		if (nodes->nodes[i].exists)
			taint(&nodes->nodes[i], zones, all_down);
	if (again)
		hf_timer_arm(nodes->monitor, LOOK_EVERY);
}

/* --- pod GC ---------------------------------------------------------------------------------- */

static void collect_pod(struct sim *sim, struct hf_doc *pod)
{
	const struct sim_node *node = sim_node_get(sim, node_of(pod));
	const char *name = hf_doc_name(pod);

	if (node == NULL)
		return;
	if (!node->exists && sim_now(sim) - node->gone_since >= GC_QUARANTINE) {
		sim_tell(sim, "pod GC: %s is an orphan", name);
		if (!has_ended(pod))
			sim_pod_mark(sim, name, "DisruptionTarget", "True", "DeletionByPodGC",
				     "Failed");
		delete_by_name(sim, name, 0);
	} else if (node->exists && node->out_of_service && node->shown != SIM_SHOWN_READY &&
		   is_terminating(pod)) {
		sim_tell(sim, "pod GC: %s is on a node out of service", name);
		if (!has_ended(pod))
			sim_patch(sim, &hf_pods, "default", name, "status",
				  "{\"status\":{\"phase\":\"Failed\"}}");
		delete_by_name(sim, name, 0);
	}
}

static void on_gc(void *arg)
{
	struct sim *sim = arg;
	bool again = false;
	struct pod_list list;

	if (sim->nodes->kcm_down)
		return;
	list_pods(sim, NULL, &list);
	for (size_t i = 0; i < list.pods.len; i++)
		collect_pod(sim, list.pods.items[i]);
	list_release(&list);
	for (size_t i = 0; i < sim->nodes->n; i++)
		again = again || !sim->nodes->nodes[i].exists ||
			sim->nodes->nodes[i].out_of_service;
	if (again)
		hf_timer_arm(sim->nodes->gc, GC_EVERY);
}

/* --- life ------------------------------------------------------------------------------------ */

void sim_lifecycle_wake(struct sim *sim)
{
	struct sim_nodes *nodes = sim->nodes;

	if (!hf_timer_armed(nodes->monitor))
		hf_timer_arm(nodes->monitor, (hf_time)hf_rng_below(&nodes->rng, LOOK_EVERY));
	if (!hf_timer_armed(nodes->gc))
		hf_timer_arm(nodes->gc, (hf_time)hf_rng_below(&nodes->rng, GC_EVERY));
}

void sim_lifecycle_init(struct sim *sim)
{
	struct sim_nodes *nodes = sim->nodes;

	nodes->evictions = hf_map_create(PODS_MAX, 0, eviction_free);
	nodes->monitor = hf_timer_create(sim->loop, on_look, sim);
	nodes->gc = hf_timer_create(sim->loop, on_gc, sim);
	nodes->kcm_up = hf_timer_create(sim->loop, kcm_starts, sim);
	/* In most worlds the eviction controller is fast, in some it is seconds behind. */
	nodes->handle_max = hf_rng_below(&nodes->rng, 4) == 0 ? 1500 * HF_MS : 100 * HF_MS;
}

void sim_lifecycle_release(struct sim *sim)
{
	struct sim_nodes *nodes = sim->nodes;

	kcm_forget(sim);
	hf_map_destroy(nodes->evictions);
	hf_timer_destroy(nodes->monitor);
	hf_timer_destroy(nodes->gc);
	hf_timer_destroy(nodes->kcm_up);
}
