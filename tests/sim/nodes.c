/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/nodes.h"

#include "base/mem.h"
#include "base/str.h"
#include "sim/check.h"
#include "sim/crashes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RENEW_EVERY (10 * HF_SECOND)
#define AWAY_MAX (15 * HF_MINUTE)
#define FLAP_MAX (90 * HF_SECOND)
#define SHUTDOWN_SPAN (30 * HF_SECOND)
/* The nodes of a zone come back one after the other, the last at most this long after the first. */
#define HEAL_MAX HF_MINUTE

struct sim_node *sim_node_get(struct sim *sim, const char *name)
{
	for (size_t i = 0; i < sim->nodes->n; i++)
		if (hf_streq(sim->nodes->nodes[i].name, name))
			return &sim->nodes->nodes[i];
	return NULL;
}

bool sim_node_alive(const struct sim_node *node)
{
	return node->power && node->kubelet && node->link;
}

hf_time sim_node_renewed(const struct sim_node *node)
{
	if (!sim_node_alive(node))
		return node->renewed;
	return node->alive_since +
	       (sim_now(node->sim) - node->alive_since) / RENEW_EVERY * RENEW_EVERY;
}

static uint64_t below(struct sim_node *node, uint64_t bound)
{
	return hf_rng_below(&node->sim->nodes->rng, bound);
}

static hf_time span(struct sim_node *node, hf_time max)
{
	return (hf_time)below(node, (uint64_t)max + 1);
}

/* --- objects --------------------------------------------------------------------------------- */

static void create(struct sim *sim, const struct hf_resource *resource, const char *ns,
		   const char *text)
{
	HF_AUTO_DOC body = hf_doc_from_text(text, strlen(text));
	const struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = resource, .ns = ns, .body = body};

	sim_apply(sim, &request);
}

static const char *taints_of(const struct sim_node *node, char text[512])
{
	const struct {
		bool on;
		const char *key, *effect;
	} taints[] = {
		{node->shown == SIM_SHOWN_UNKNOWN, "node.kubernetes.io/unreachable", "NoSchedule"},
		{node->shown == SIM_SHOWN_UNKNOWN && node->unreachable_execute,
		 "node.kubernetes.io/unreachable", "NoExecute"},
		{node->shown == SIM_SHOWN_NOT_READY, "node.kubernetes.io/not-ready", "NoSchedule"},
		{node->shown == SIM_SHOWN_NOT_READY && node->unreachable_execute,
		 "node.kubernetes.io/not-ready", "NoExecute"},
		{node->out_of_service, "node.kubernetes.io/out-of-service", "NoExecute"},
		{node->drained, "example.com/drain", "NoExecute"},
	};
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < HF_ARRAY_LEN(taints); i++)
		if (taints[i].on)
			len += (size_t)snprintf(
				text + len, 512 - len, "%s{\"key\":\"%s\",\"effect\":\"%s\"}",
				len > 0 ? "," : "", taints[i].key, taints[i].effect);
	return text;
}

void sim_node_write(struct sim_node *node)
{
	static const char *const statuses[] = {"True", "False", "Unknown"};
	static const char *const reasons[] = {"KubeletReady", "KubeletNotReady",
					      "NodeStatusUnknown"};
	char text[1024], list[512], since[HF_TIME_TEXT_MAX];

	if (!node->exists)
		return;
	hf_time_format(node->shown_wall, since);
	snprintf(text, sizeof(text), "{\"spec\":{\"taints\":[%s]}}", taints_of(node, list));
	node->tainted = list[0] != '\0';
	sim_patch(node->sim, &hf_nodes, NULL, node->name, NULL, text);
	snprintf(text, sizeof(text),
		 "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\",\"reason\":"
		 "\"%s\",\"lastTransitionTime\":\"%s\"}]}}",
		 statuses[node->shown], reasons[node->shown], since);
	sim_patch(node->sim, &hf_nodes, NULL, node->name, "status", text);
	sim_tell(node->sim, "node: %s is Ready=%s, taints [%s]", node->name, statuses[node->shown],
		 list);
	sim_check_weather(node->sim);
}

void sim_node_make(struct sim_node *node)
{
	char text[512];

	snprintf(
		text, sizeof(text),
		"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\",\"labels\":{"
		"\"topology.kubernetes.io/zone\":\"zone-%d\",\"zone\":\"zone-%d\"}},\"spec\":{}}",
		node->name, node->zone, node->zone);
	create(node->sim, &hf_nodes, NULL, text);
	node->exists = true;
	node->shown = SIM_SHOWN_READY;
	node->shown_since = sim_now(node->sim);
	node->shown_wall = hf_loop_wall(node->sim->loop);
	node->unreachable_execute = node->out_of_service = node->drained = false;
	sim_node_write(node);
}

/* A Lease is written only when a process is about to read it, because no other process can tell the
 * difference. */
static void renew(struct sim_node *node)
{
	char text[512], when[HF_TIME_TEXT_MAX + 8];
	hf_time at = sim_node_renewed(node);
	struct hf_doc *lease =
		hf_memstore_peek(node->sim->memstore, &hf_leases, SIM_NODE_LEASES, node->name);

	/* The node's clock may be set between two renewals. This alone writes no Lease. */
	if (!node->exists || (lease != NULL && node->written == at))
		return;
	node->written = at;
	hf_time_format_micro(at + SIM_WALL_START + node->clock, when);
	snprintf(text, sizeof(text),
		 "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		 "\"name\":\"%s\",\"namespace\":\"" SIM_NODE_LEASES "\"},\"spec\":{"
		 "\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":40,\"renewTime\":\"%s\"}}",
		 node->name, node->name, when);
	if (lease == NULL)
		create(node->sim, &hf_leases, SIM_NODE_LEASES, text);
	else
		sim_patch(node->sim, &hf_leases, SIM_NODE_LEASES, node->name, NULL, text);
}

/* Changes an annotation of the Lease at each read. Such a change is no sign of life of the node. */
static void scribble(struct sim_node *node)
{
	char text[96];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"annotations\":{\"example.com/looked\":\"%lld\"}}}",
		 (long long)(sim_now(node->sim) / HF_US));
	if (hf_memstore_peek(node->sim->memstore, &hf_leases, SIM_NODE_LEASES, node->name) != NULL)
		sim_patch(node->sim, &hf_leases, SIM_NODE_LEASES, node->name, NULL, text);
}

void sim_nodes_asked(struct sim *sim, const struct hf_request *request)
{
	if (request->resource != &hf_leases || !hf_streq(request->ns, SIM_NODE_LEASES))
		return;
	for (size_t i = 0; i < sim->nodes->n; i++) {
		struct sim_node *node = &sim->nodes->nodes[i];

		if (request->name != NULL && !hf_streq(request->name, node->name))
			continue;
		renew(node);
		scribble(node);
	}
}

/* --- scheduling ------------------------------------------------------------------------------ */

static bool is_avoided(const struct hf_json *spec, const char *name)
{
	const struct hf_json *terms = hf_json_path(spec, "affinity", "nodeAffinity",
						   "requiredDuringSchedulingIgnoredDuringExecution",
						   "nodeSelectorTerms", NULL);

	for (size_t t = 0; t < hf_json_len(terms); t++) {
		const struct hf_json *fields = hf_json_get(hf_json_item(terms, t), "matchFields");

		for (size_t f = 0; f < hf_json_len(fields); f++) {
			const struct hf_json *values =
				hf_json_get(hf_json_item(fields, f), "values");

			for (size_t v = 0; v < hf_json_len(values); v++)
				if (hf_streq(hf_json_str(hf_json_item(values, v), ""), name))
					return true;
		}
	}
	return false;
}

static bool fits(const struct sim_node *node, const struct hf_json *spec)
{
	const char *zone = hf_json_path_str(spec, "nodeSelector", "zone", NULL);
	char mine[16];

	snprintf(mine, sizeof(mine), "zone-%d", node->zone);
	return node->exists && !node->tainted && (zone == NULL || hf_streq(zone, mine)) &&
	       !is_avoided(spec, node->name);
}

struct sim_node *sim_node_for(struct sim *sim, const struct hf_json *spec)
{
	struct sim_node *found = NULL;
	uint64_t seen = 0;

	for (size_t i = 0; i < sim->nodes->n; i++)
		if (fits(&sim->nodes->nodes[i], spec) && hf_rng_below(&sim->rng, ++seen) == 0)
			found = &sim->nodes->nodes[i];
	return found;
}

/* --- fate ------------------------------------------------------------------------------------ */

static void went_down(struct sim_node *node, bool was_alive, hf_time renewed)
{
	if (was_alive) {
		node->renewed = renewed;
		node->dead_since = sim_now(node->sim);
	}
	sim_kubelet_down(node);
	sim_fence_down(node);
	sim_lifecycle_wake(node->sim);
}

static void lose(struct sim_node *node, bool *what, const char *why)
{
	bool was_alive = sim_node_alive(node);
	hf_time renewed = sim_node_renewed(node);

	sim_tell(node->sim, "world: %s %s", node->name, why);
	*what = false;
	went_down(node, was_alive, renewed);
}

static void come_back(struct sim_node *node)
{
	bool was_alive = sim_node_alive(node);

	sim_check_lost(node->sim, node->name);
	node->power = node->kubelet = node->link = true;
	node->runtime_bad = node->shutting_down = false;
	if (!node->exists) {
		node->proven_until = sim_now(node->sim);
		sim_node_make(node);
		sim_lifecycle_taints(node);
	}
	if (!was_alive) {
		sim_tell(node->sim, "world: %s is back", node->name);
		node->alive_since = sim_now(node->sim);
		sim_kubelet_up(node);
	}
	sim_lifecycle_wake(node->sim);
}

static void on_fate(void *arg)
{
	struct sim_node *node = arg;

	if (node->shutting_down && node->power) {
		lose(node, &node->power, "is switched off after its shutdown");
		hf_timer_arm(node->timer, span(node, AWAY_MAX));
	} else if (node->drained) {
		node->drained = false;
		sim_node_write(node);
		sim_lifecycle_taints(node);
		if (!sim_node_alive(node) || node->out_of_service || node->runtime_bad)
			hf_timer_arm(node->timer, span(node, HF_MINUTE));
	} else if (node->flaps && sim_node_alive(node) && !node->sim->calm) {
		lose(node, &node->link, "is cut off again");
		node->flaps = below(node, 3) > 0;
		hf_timer_arm(node->timer, span(node, FLAP_MAX));
	} else {
		come_back(node);
		if (node->out_of_service) {
			node->out_of_service = false;
			node->proven_until = sim_now(node->sim);
			sim_node_write(node);
			sim_lifecycle_taints(node);
		}
		if (node->flaps)
			hf_timer_arm(node->timer, span(node, HF_MINUTE));
	}
}

static void away(struct sim_node *node)
{
	/* In a third of the cases the node is away for a minute at most, and the control plane may
	 * not notice. */
	hf_timer_arm(node->timer,
		     below(node, 3) == 0 ? span(node, HF_MINUTE) : span(node, AWAY_MAX));
}

static void delete_node(struct sim_node *node)
{
	const struct hf_request request = {
		.verb = HF_VERB_DELETE, .resource = &hf_nodes, .name = node->name};

	if (!node->exists)
		return;
	sim_tell(node->sim, "world: the Node object of %s is deleted", node->name);
	sim_apply(node->sim, &request);
	node->exists = false;
	node->gone_since = sim_now(node->sim);
	sim_check_weather(node->sim);
	sim_check_lost(node->sim, node->name);
	sim_lifecycle_taints(node);
	sim_lifecycle_wake(node->sim);
}

static void remake(struct sim_node *node)
{
	/* The machine is re-imaged: another machine gets the same name. */
	if (sim_node_alive(node))
		lose(node, &node->power, "is re-imaged");
	delete_node(node);
	hf_timer_arm(node->timer, span(node, HF_MINUTE));
}

static void reboot(struct sim_node *node)
{
	lose(node, &node->power, "reboots");
	hf_timer_arm(node->timer, 20 * HF_SECOND + span(node, 2 * HF_MINUTE));
}

static void zone_off(struct sim_node *first)
{
	struct sim_nodes *nodes = first->sim->nodes;
	hf_time back = span(first, AWAY_MAX), spread = span(first, HEAL_MAX);

	for (size_t i = 0; i < nodes->n; i++) {
		struct sim_node *node = &nodes->nodes[i];

		if (node->zone != first->zone)
			continue;
		lose(node, &node->link, "is cut off with its zone");
		hf_timer_arm(node->timer, back + span(node, spread));
	}
}

void sim_node_cut(struct sim_node *node, hf_time for_span)
{
	lose(node, &node->link, "is cut off");
	hf_timer_arm(node->timer, for_span);
}

void sim_nodes_cut(struct sim_node *first, bool all, hf_time back, hf_time apart)
{
	struct sim_nodes *nodes = first->sim->nodes;

	for (size_t i = 0; i < nodes->n; i++) {
		struct sim_node *node = &nodes->nodes[i];

		if (!all && node->zone != first->zone)
			continue;
		lose(node, &node->link, "is cut off with its zone");
		hf_timer_arm(node->timer, back);
		back += apart;
	}
}

static void shut_down(struct sim_node *node)
{
	if (!sim_node_alive(node))
		return;
	sim_tell(node->sim, "world: %s is shut down", node->name);
	node->shutting_down = true;
	sim_kubelet_shutdown(node);
	hf_timer_arm(node->timer, span(node, SHUTDOWN_SPAN));
}

static void set_taint(struct sim_node *node, bool *taint, const char *what)
{
	if (!node->exists)
		return;
	sim_tell(node->sim, "person: taints %s %s", node->name, what);
	*taint = true;
	sim_check_lost(node->sim, node->name);
	sim_node_write(node);
	sim_lifecycle_taints(node);
	sim_lifecycle_wake(node->sim);
}

static void out_of_service(struct sim_node *node)
{
	/* An administrator sets this taint only after the machine has been switched off. */
	if (node->power)
		lose(node, &node->power, "is switched off");
	set_taint(node, &node->out_of_service, "out of service");
	away(node);
}

static void node_off(struct sim_node *node)
{
	lose(node, &node->power, "loses power");
	away(node);
}

void sim_node_off_for_ever(struct sim_node *node)
{
	node->stays_dead = true;
	lose(node, &node->power, "loses power");
}

void sim_node_mute(struct sim_node *node, hf_time for_span)
{
	lose(node, &node->kubelet, "'s kubelet dies");
	hf_timer_arm(node->timer, for_span);
}

static void kubelet_dead(struct sim_node *node)
{
	lose(node, &node->kubelet, "'s kubelet dies");
	away(node);
}

static void partitioned(struct sim_node *node)
{
	lose(node, &node->link, "is cut off");
	away(node);
}

static void flapping(struct sim_node *node)
{
	node->flaps = true;
	lose(node, &node->link, "is cut off, and flaps");
	hf_timer_arm(node->timer, span(node, FLAP_MAX));
}

static void not_ready(struct sim_node *node)
{
	node->runtime_bad = true;
	sim_tell(node->sim, "world: %s is not ready", node->name);
	sim_lifecycle_wake(node->sim);
	away(node);
}

static void taken_away(struct sim_node *node)
{
	if (node->power)
		lose(node, &node->power, "is taken away");
	delete_node(node);
	away(node);
}

static void drained(struct sim_node *node)
{
	set_taint(node, &node->drained, "to drain it");
	away(node);
}

static void clock_steps(struct sim_node *node)
{
	node->clock = sim_how_span(node->sim, 20 * HF_MINUTE) - 10 * HF_MINUTE;
}

static void kcm_restarts(struct sim_node *node)
{
	sim_lifecycle_restart(node->sim);
}

void sim_node_happens(struct sim_node *node, enum sim_trouble kind)
{
	static void (*const deeds[SIM_TROUBLES])(struct sim_node *) = {
		[SIM_NODE_OFF] = node_off,
		[SIM_KUBELET_DEAD] = kubelet_dead,
		[SIM_PARTITIONED] = partitioned,
		[SIM_FLAPPING] = flapping,
		[SIM_NOT_READY] = not_ready,
		[SIM_REBOOTED] = reboot,
		[SIM_SHUTDOWN] = shut_down,
		[SIM_NODE_DELETED] = taken_away,
		[SIM_NODE_REMADE] = remake,
		[SIM_ZONE_OFF] = zone_off,
		[SIM_OUT_OF_SERVICE] = out_of_service,
		[SIM_DRAINED] = drained,
		[SIM_NODE_CLOCK] = clock_steps,
		[SIM_KCM_RESTART] = kcm_restarts,
		[SIM_DEVICE_FAILED] = sim_device_fails,
		[SIM_AGENT_DEAD] = sim_agent_dies,
		[SIM_RECORD_LOST] = sim_fence_harmed,
	};

	hf_assert(deeds[kind] != NULL);
	deeds[kind](node);
}

static void deed_arm(struct sim *sim)
{
	unsigned per_hour = sim->mood.per_hour[SIM_BY_NODE];

	if (per_hour > 0 && !sim->calm)
		hf_timer_arm(sim->nodes->deeds,
			     span(&sim->nodes->nodes[0], 2 * HF_HOUR / per_hour));
}

static void on_deed(void *arg)
{
	struct sim *sim = arg;
	enum sim_trouble kind = sim_pick(sim, SIM_BY_NODE, &sim->nodes->rng);
	struct sim_node *node = &sim->nodes->nodes[hf_rng_below(&sim->nodes->rng, sim->nodes->n)];

	deed_arm(sim);
	if (sim->calm || kind == SIM_TROUBLES || sim_fence_fuse(node, kind))
		return;
	if (sim_do(sim, kind))
		sim_node_happens(node, kind);
}

/* --- all of them ----------------------------------------------------------------------------- */

void sim_nodes_init(struct sim *sim)
{
	struct sim_nodes *nodes = hf_xcalloc(1, sizeof(*nodes));

	sim->nodes = nodes;
	hf_rng_init(&nodes->rng, sim->seed + 3);
	nodes->n = 4 + hf_rng_below(&nodes->rng, SIM_NODES_MAX - 3);
	nodes->zones = 1 + (int)hf_rng_below(&nodes->rng, SIM_ZONES_MAX);
	if (sim->script != NULL && sim->script->zones > 0)
		nodes->zones = sim->script->zones;
	if (sim->script != NULL && sim->script->nodes > 0)
		nodes->n = sim->script->nodes;
	nodes->deeds = hf_timer_create(sim->loop, on_deed, sim);
	sim_lifecycle_init(sim);
	create(sim, &hf_namespaces, NULL,
	       "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":"
	       "\"" SIM_NODE_LEASES "\"}}");
	for (size_t i = 0; i < nodes->n; i++) {
		struct sim_node *node = &nodes->nodes[i];

		node->sim = sim;
		snprintf(node->name, sizeof(node->name), "node-%zu", i);
		node->zone = (int)i % nodes->zones;
		node->power = node->kubelet = node->link = true;
		node->alive_since = -(hf_time)span(node, RENEW_EVERY);
		node->timer = hf_timer_create(sim->loop, on_fate, node);
		sim_node_make(node);
	}
	sim_devices_init(sim);
	sim_fences_init(sim);
	sim_plugins_init(sim);
	deed_arm(sim);
}

static bool may_stay_dead(const struct sim_node *node)
{
	const struct sim_nodes *nodes = node->sim->nodes;

	/* Worlds with rare settings may have forceDelete: Never, and such a job would wait for this
	 * node for ever. */
	return !sim_node_alive(node) && node->exists && !node->out_of_service && !node->drained &&
	       nodes->n > 4 && nodes->zones == 1 && !node->sim->mood.rare;
}

void sim_nodes_calm(struct sim *sim)
{
	size_t dead = 0;

	sim_devices_calm(sim);
	sim_plugins_calm(sim);
	for (size_t i = 0; i < sim->nodes->n; i++) {
		struct sim_node *node = &sim->nodes->nodes[i];

		node->flaps = false;
		/* One or two nodes never come back. That is no storm, so their pods run elsewhere,
		 * unless Kueue ties them to a zone without other nodes. */
		if (dead < 2 && may_stay_dead(node) && span(node, 1) == 0) {
			node->stays_dead = true;
			hf_timer_disarm(node->timer);
			dead++;
			continue;
		}
		if (!sim_node_alive(node) || node->runtime_bad || node->shutting_down ||
		    !node->exists || node->drained || node->out_of_service)
			hf_timer_arm(node->timer, span(node, AWAY_MAX));
	}
}

static bool is_well(const struct sim_node *node)
{
	return !hf_timer_armed(node->timer) && sim_node_alive(node) && !node->tainted;
}

bool sim_nodes_are_well(const struct sim *sim)
{
	bool well = hf_map_len(sim->nodes->evictions) == 0;

	for (size_t i = 0; i < sim->nodes->n; i++)
		well = well && (sim->nodes->nodes[i].stays_dead || is_well(&sim->nodes->nodes[i]));
	return well;
}

void sim_nodes_release(struct sim *sim)
{
	sim_fences_release(sim);
	sim_plugins_release(sim);
	sim_devices_release(sim);
	for (size_t i = 0; i < sim->nodes->n; i++)
		hf_timer_destroy(sim->nodes->nodes[i].timer);
	hf_timer_destroy(sim->nodes->deeds);
	sim_lifecycle_release(sim);
	free(sim->nodes);
}
