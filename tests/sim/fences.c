/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/nodes.h"

#include "agent/contact_keeper.h"
#include "agent/fences.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "exec/fence.h"
#include "sim/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Ranks that fence themselves. The agent's record of contacts, the judgement of `holdfast exec`,
 * and the agent's list of such ranks are the program's own code. They work on files, in a folder
 * for each node.
 *
 * While a node is well it makes no difference whether its record is written, so it is not. A node
 * is watched from some time before anything happens to it (the fuse) until it has been well for a
 * while. Real ranks look at the record every second. A look before the record is too old changes
 * nothing, so only the looks after that are simulated.
 */
#define FUSE (40 * HF_SECOND)
/* within this time a new keeper of contacts has its first contact */
#define FOUND_WITHIN (20 * HF_SECOND)
#define TICK (5 * HF_SECOND)
#define WELL_FOR HF_MINUTE
#define LOOK_EVERY HF_SECOND
#define DELAY_MAX HF_SECOND
#define RANKS_MAX 1000

struct rank {
	struct sim_fence *at;
	char uid[64];
	uint32_t seconds;
	bool runs;           /* true: the rank runs; false: it waits for a contact */
	hf_time waits_since; /* since when the rank waits for a contact; 0: it does not */
	bool opened;
	struct hf_fence fence;
	struct hf_timer *look;
};

struct sim_fence {
	struct sim_node *node;
	char folder[64], record[96];
	char boot_id[HF_CONTACT_BOOT_MAX];
	unsigned boots;
	hf_time booted_at; /* when the machine last booted, by the world's clock */
	bool watched;
	hf_time watched_since,
		wanted_at; /* wanted_at: when trouble was last planned for this node */
	/* since when the agent runs, and when the record was last harmed; never: a time before the
	 * run */
	hf_time agent_since, harmed_at;
	struct hf_store *client;
	struct hf_contact_keeper *keeper; /* NULL: the node is not watched, or its agent is dead */
	struct hf_fences *told; /* what the agent has told of its ranks; NULL: the agent is dead */
	struct hf_timer *tick, *fuse;
	enum sim_trouble due;
};

struct sim_fences {
	char folder[48];
	struct hf_rng rng;
	struct hf_map *ranks; /* uid → struct rank */
};

static hf_time span(const struct sim_fence *fence, hf_time max)
{
	return (hf_time)hf_rng_below(&fence->node->sim->nodes->fences->rng, (uint64_t)max + 1);
}

static hf_time boot_clock(void *arg)
{
	const struct sim_fence *fence = arg;

	return sim_now(fence->node->sim) - fence->booted_at;
}

/* --- a machine's boot ------------------------------------------------------------------------ */

static void boot(struct sim_fence *fence)
{
	char path[128];
	struct hf_error err;
	int rc;

	snprintf(fence->boot_id, sizeof(fence->boot_id), "%s-%u", fence->node->name,
		 ++fence->boots);
	fence->booted_at = sim_now(fence->node->sim) - span(fence, 24 * HF_HOUR);
	snprintf(path, sizeof(path), "%s/sys/kernel/random/boot_id", fence->folder);
	rc = hf_fs_write_atomic(path, fence->boot_id, strlen(fence->boot_id), 0600, &err);
	hf_assert(rc == 0);
}

/* --- the agent ------------------------------------------------------------------------------- */

static void on_request(void *arg, const struct hf_request *request, struct hf_fault *fault)
{
	struct sim_fence *fence = arg;
	struct sim *sim = fence->node->sim;

	sim_nodes_asked(sim, request);
	if (!fence->node->link) {
		fault->refuse = HF_E_UNAVAILABLE;
		fault->message = "cut off by the simulator";
	} else if (!sim->calm && span(fence, 3) == 0) {
		fault->delay_before = span(fence, DELAY_MAX);
		fault->delay_after = span(fence, DELAY_MAX);
	}
}

static void keeper_ends(struct sim_fence *fence)
{
	fence->keeper = hf_contact_keeper_destroy(fence->keeper);
	fence->client = hf_store_destroy(fence->client);
}

static void keeper_begins(struct sim_fence *fence)
{
	const struct hf_memstore_faults faults = {.request = on_request, .arg = fence};
	struct hf_contact_keeper_options options = {.loop = fence->node->sim->loop,
						    .node = fence->node->name,
						    .boot_id = fence->boot_id,
						    .path = fence->record,
						    .clock = boot_clock,
						    .arg = fence};

	fence->client = options.store =
		hf_memstore_client_create(fence->node->sim->memstore, &faults);
	fence->keeper = hf_contact_keeper_create(&options);
}

static void agent_ends(struct sim_fence *fence)
{
	keeper_ends(fence);
	fence->told = hf_fences_destroy(fence->told);
}

static void agent_begins(struct sim_fence *fence)
{
	fence->told = hf_fences_create();
	fence->agent_since = sim_now(fence->node->sim);
}

/* Finds the name of a pod on this node by its UID, as the agent would. */
static bool pod_name(void *arg, const char *uid, struct hf_pod_name *ret_name)
{
	const struct sim_fence *fence = arg;
	const struct sim_pod_truth *pod = sim_pod_truth(fence->node->sim, uid);

	if (pod == NULL || pod->gone)
		return false;
	*ret_name = (struct hf_pod_name){.ns = "default", .name = pod->name, .uid = uid};
	return true;
}

bool sim_fence_news(struct sim_node *node)
{
	struct sim_fence *fence = node->fence;
	const char *key;
	void *value;

	if (fence == NULL || !sim_agent_up(node))
		return false;
	if (fence->told == NULL)
		agent_begins(fence);
	for (size_t it = 0; hf_map_next(node->sim->nodes->fences->ranks, &it, &key, &value);) {
		const struct rank *rank = value;

		if (rank->at == fence)
			hf_fences_heard(fence->told, rank->uid, rank->seconds, sim_now(node->sim));
	}
	return hf_fences_look(fence->told, pod_name, fence, sim_now(node->sim));
}

void sim_fence_tell(struct sim_node *node, struct hf_strbuf *sb)
{
	struct sim_fence *fence = node->fence;
	struct hf_device_health health = {.fences = {0}};

	if (fence == NULL)
		return;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 20);

	if (fence->told != NULL) {
		hf_fences_list(fence->told, pod_name, fence, arena, &health);
		hf_fences_published(fence->told, pod_name, fence);
	}
	hf_strbuf_addf(sb, ",\"fences\":[");
	for (size_t i = 0; i < health.fences.len; i++) {
		const struct hf_fence_report *report = &health.fences.items[i];

		hf_strbuf_addf(sb,
			       "%s{\"namespace\":\"%s\",\"pod\":\"%s\",\"uid\":\"%s\","
			       "\"seconds\":%lld}",
			       i > 0 ? "," : "", report->ns, report->pod, report->uid,
			       (long long)report->seconds);
	}
	hf_strbuf_addf(sb, "]");
}

void sim_fence_agent_dies(struct sim_node *node)
{
	if (node->fence != NULL)
		agent_ends(node->fence);
}

/* --- ranks ----------------------------------------------------------------------------------- */

static void rank_free(void *value)
{
	struct rank *rank = value;

	hf_timer_destroy(rank->look);
	free(rank);
}

static int64_t boot_ms(struct sim_fence *fence)
{
	return boot_clock(fence) / HF_MS;
}

static struct hf_fence *opened(struct rank *rank)
{
	char socket[96];

	if (!rank->opened) {
		snprintf(socket, sizeof(socket), "%s/agent.sock", rank->at->folder);
		hf_fence_open(&rank->fence, socket, rank->seconds, rank->at->folder);
	}
	rank->opened = true;
	return &rank->fence;
}

/* Arms the timer for the first look after the record has become too old. */
static void look_again(struct rank *rank)
{
	struct sim_fence *fence = rank->at;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_CONTACT_BYTES_MAX);
	struct hf_contact contact;
	struct hf_error err;
	hf_time in = 0;

	if (hf_fs_read(fence->record, &text, &err) == 0 &&
	    hf_contact_parse(text.data, text.len, &contact))
		in = (hf_time)contact.at_ms * HF_MS + rank->seconds * HF_SECOND - boot_clock(fence);
	hf_timer_arm(rank->look, (in > 0 ? in : 0) + HF_MS + span(fence, LOOK_EVERY));
}

static void on_look(void *arg)
{
	struct rank *rank = arg;

	if (hf_fence_holds(opened(rank), boot_ms(rank->at)))
		look_again(rank);
	else
		sim_kubelet_fenced(rank->at->node, rank->uid, rank->fence.why); /* frees the rank */
}

static struct rank *rank_of(struct sim_fence *fence, const char *uid, uint32_t seconds)
{
	struct hf_map *ranks = fence->node->sim->nodes->fences->ranks;
	struct rank *rank = hf_map_get(ranks, uid);

	if (rank != NULL)
		return rank;
	rank = hf_xcalloc(1, sizeof(*rank));
	rank->at = fence;
	rank->seconds = seconds;
	snprintf(rank->uid, sizeof(rank->uid), "%s", uid);
	rank->look = hf_timer_create(fence->node->sim->loop, on_look, rank);
	bool put = hf_map_put(ranks, rank->uid, rank);

	hf_assert(put);
	return rank;
}

static void agent_looks(struct sim_fence *fence);

enum sim_fence_word sim_fence_starts(struct sim_node *node, const char *uid, int64_t seconds)
{
	struct sim_fence *fence = node->fence;
	struct rank *rank;

	if (fence == NULL)
		return SIM_FENCE_HOLDS;
	rank = rank_of(fence, uid, (uint32_t)seconds);
	if (fence->watched)
		agent_looks(fence);
	if (fence->watched && !hf_fence_lets_start(opened(rank), boot_ms(fence))) {
		if (rank->waits_since == 0)
			rank->waits_since = sim_now(node->sim);
		return sim_now(node->sim) - rank->waits_since < seconds * HF_SECOND
			       ? SIM_FENCE_WAITS
			       : SIM_FENCE_NEVER;
	}
	rank->runs = true;
	if (fence->watched)
		look_again(rank);
	return SIM_FENCE_HOLDS;
}

void sim_fence_ended(struct sim *sim, const char *uid)
{
	if (sim->nodes->fences != NULL)
		hf_map_remove(sim->nodes->fences->ranks, uid);
}

/* Fills the list with the ranks of this node. Returns their number. */
static size_t ranks_at(const struct sim_fence *fence, struct rank *list[RANKS_MAX])
{
	size_t len = 0;
	const char *key;
	void *value;

	for (size_t it = 0;
	     hf_map_next(fence->node->sim->nodes->fences->ranks, &it, &key, &value);) {
		struct rank *rank = value;

		if (rank->at != fence)
			continue;
		hf_assert(len < RANKS_MAX);
		list[len++] = rank;
	}
	return len;
}

/* --- when a node is watched ------------------------------------------------------------------ */

static void watch(struct sim_fence *fence)
{
	struct rank *ranks[RANKS_MAX];

	fence->wanted_at = sim_now(fence->node->sim);
	if (fence->watched)
		return;
	fence->watched = true;
	fence->watched_since = sim_now(fence->node->sim);
	hf_timer_arm(fence->tick, 0);
	for (size_t i = ranks_at(fence, ranks); i-- > 0;)
		hf_timer_arm(ranks[i]->look, FOUND_WITHIN);
}

static void unwatch(struct sim_fence *fence)
{
	struct rank *ranks[RANKS_MAX];

	fence->watched = false;
	keeper_ends(fence);
	for (size_t i = ranks_at(fence, ranks); i-- > 0;)
		hf_timer_disarm(ranks[i]->look);
}

static bool is_well(const struct sim_fence *fence)
{
	const struct sim_node *node = fence->node;
	hf_time now = sim_now(node->sim);

	return sim_node_alive(node) && sim_agent_up(node) && !hf_timer_armed(node->timer) &&
	       !hf_timer_armed(fence->fuse) && now - node->alive_since >= WELL_FOR &&
	       now - fence->agent_since >= WELL_FOR && now - fence->harmed_at >= WELL_FOR &&
	       now - fence->wanted_at >= WELL_FOR;
}

static bool is_over(const struct sim_fence *fence)
{
	struct rank *ranks[RANKS_MAX];

	if (fence->node->sim->script != NULL)
		return false;
	return is_well(fence) || (fence->node->stays_dead && ranks_at(fence, ranks) == 0);
}

/* Tells the agent's code which ranks it has heard, and starts or stops the keeper of contacts. */
static void agent_looks(struct sim_fence *fence)
{
	struct sim_node *node = fence->node;

	if (!node->power || !sim_agent_up(node))
		return;
	(void)sim_fence_news(node);
	if (fence->keeper == NULL)
		keeper_begins(fence);
	hf_contact_keeper_want(fence->keeper, hf_fences_wanted(fence->told, sim_now(node->sim)));
}

static void on_tick(void *arg)
{
	struct sim_fence *fence = arg;

	if (is_over(fence)) {
		unwatch(fence);
		return;
	}
	agent_looks(fence);
	hf_timer_arm(fence->tick, TICK);
}

static bool concerns_contacts(enum sim_trouble kind)
{
	switch (kind) {
	case SIM_NODE_OFF:
	case SIM_KUBELET_DEAD:
	case SIM_PARTITIONED:
	case SIM_FLAPPING:
	case SIM_REBOOTED:
	case SIM_SHUTDOWN:
	case SIM_NODE_DELETED:
	case SIM_NODE_REMADE:
	case SIM_ZONE_OFF:
	case SIM_OUT_OF_SERVICE:
	case SIM_AGENT_DEAD:
	case SIM_RECORD_LOST: return true;
	default: return false;
	}
}

static void on_fuse(void *arg)
{
	struct sim_fence *fence = arg;
	struct sim *sim = fence->node->sim;

	if (!sim->calm && sim_do(sim, fence->due))
		sim_node_happens(fence->node, fence->due);
}

bool sim_fence_fuse(struct sim_node *node, enum sim_trouble kind)
{
	struct sim_nodes *nodes = node->sim->nodes;
	bool ready = true;

	if (node->fence == NULL || !concerns_contacts(kind))
		return false;
	for (size_t i = 0; i < nodes->n; i++) {
		struct sim_node *other = &nodes->nodes[i];

		if (other != node && (kind != SIM_ZONE_OFF || other->zone != node->zone))
			continue;
		watch(other->fence);
		ready = ready && sim_now(node->sim) - other->fence->watched_since >= FUSE;
	}
	if (ready && !hf_timer_armed(node->fence->fuse))
		return false;
	if (!hf_timer_armed(node->fence->fuse)) {
		node->fence->due = kind;
		hf_timer_arm(node->fence->fuse, FUSE);
	}
	return true;
}

/* --- what happens to it ----------------------------------------------------------------------- */

void sim_fence_down(struct sim_node *node)
{
	struct sim_fence *fence = node->fence;
	struct rank *ranks[RANKS_MAX];

	if (fence == NULL || node->power)
		return;
	agent_ends(fence);
	for (size_t i = ranks_at(fence, ranks); i-- > 0;)
		hf_map_remove(node->sim->nodes->fences->ranks, ranks[i]->uid);
	/* In every other case the folder is on a disk, so the next boot finds the old record. */
	if (span(fence, 1) == 0)
		(void)unlink(fence->record);
	boot(fence);
}

void sim_fence_harmed(struct sim_node *node)
{
	struct sim_fence *fence = node->fence;
	struct hf_contact contact = {.at_ms = (uint64_t)boot_ms(fence)};
	char text[HF_CONTACT_BYTES_MAX];
	struct rank *ranks[RANKS_MAX];
	struct hf_error err;
	uint64_t how = sim_how(node->sim, 4);
	size_t len;
	int rc;

	snprintf(contact.boot_id, sizeof(contact.boot_id), "%s",
		 how == 1 ? "another" : fence->boot_id);
	if (how == 2)
		contact.at_ms += 3600 * 1000;
	len = hf_contact_format(&contact, text);
	sim_tell(node->sim, "world: the record of contacts of %s is damaged (kind %d)", node->name,
		 (int)how);
	if (how == 0) {
		(void)unlink(fence->record);
	} else {
		rc = hf_fs_write_atomic(fence->record, text, how == 3 ? len / 2 : len, 0644, &err);
		hf_assert(rc == 0);
	}
	fence->harmed_at = sim_now(node->sim);
	for (size_t i = ranks_at(fence, ranks); i-- > 0;)
		if (ranks[i]->runs)
			hf_timer_arm(ranks[i]->look, HF_MS + span(fence, LOOK_EVERY));
}

bool sim_fence_may_act(const struct sim_node *node, hf_time within)
{
	const struct sim_fence *fence = node->fence;
	hf_time now = sim_now(node->sim);

	/* After its death an agent begins only when it next looks at its ranks. */
	return !sim_node_alive(node) || !sim_agent_up(node) || fence->told == NULL ||
	       now - node->alive_since < within || now - fence->agent_since < within ||
	       now - fence->harmed_at < within;
}

/* --- all of them ------------------------------------------------------------------------------ */

static void fence_create(struct sim_node *node, const struct sim_fences *fences)
{
	struct sim_fence *fence = hf_xcalloc(1, sizeof(*fence));
	char path[96];
	struct hf_error err;
	int rc;

	*fence = (struct sim_fence){.node = node,
				    .agent_since = -HF_HOUR,
				    .harmed_at = -HF_HOUR,
				    .watched_since = -HF_HOUR};
	node->fence = fence;
	snprintf(fence->folder, sizeof(fence->folder), "%s/%s", fences->folder, node->name);
	snprintf(fence->record, sizeof(fence->record), "%s/" HF_CONTACT_FILE, fence->folder);
	snprintf(path, sizeof(path), "%s/sys/kernel/random", fence->folder);
	rc = hf_fs_mkdirs(path, 0700, &err);
	hf_assert(rc == 0);
	boot(fence);
	fence->told = hf_fences_create();
	fence->tick = hf_timer_create(node->sim->loop, on_tick, fence);
	fence->fuse = hf_timer_create(node->sim->loop, on_fuse, fence);
	if (node->sim->script != NULL)
		watch(fence);
}

void sim_fences_init(struct sim *sim)
{
	struct sim_fences *fences;

	if (!sim->mood.fences)
		return;
	sim->nodes->fences = fences = hf_xcalloc(1, sizeof(*fences));
	hf_rng_init(&fences->rng, sim->seed + 6);
	fences->ranks = hf_map_create(RANKS_MAX, 0, rank_free);
	/* A folder in memory, if there is one: each record is synced to its disk, which is slow. */
	snprintf(fences->folder, sizeof(fences->folder), "%s/hf-sim-fences-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (mkdtemp(fences->folder) == NULL)
		hf_assert(false);
	for (size_t i = 0; i < sim->nodes->n; i++)
		fence_create(&sim->nodes->nodes[i], fences);
}

void sim_fences_release(struct sim *sim)
{
	struct sim_fences *fences = sim->nodes->fences;
	struct hf_error err;
	int rc;

	if (fences == NULL)
		return;
	hf_map_destroy(fences->ranks);
	for (size_t i = 0; i < sim->nodes->n; i++) {
		struct sim_fence *fence = sim->nodes->nodes[i].fence;

		agent_ends(fence);
		hf_timer_destroy(fence->tick);
		hf_timer_destroy(fence->fuse);
		free(fence);
	}
	rc = hf_fs_remove_tree(fences->folder, &err);
	hf_assert(rc == 0);
	free(fences);
	sim->nodes->fences = NULL;
}
