/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_actor.h"
#include "sim/rollout_driver.h"
#include "sim/rollout_swarm_wide.h"
#include "sim/seeds.h"

#include "api/device_rollout.h"
#include "api/node_locks.h"
#include "api/remediation.h"
#include "base/mem.h"
#include "base/str.h"
#include "health/rollout_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Rollouts under random trouble, each schedule from one seed: a driver that fails on some nodes, a second rollout of a
 * label on the same nodes, acts of a HealthPolicy and of people that take the same Leases, operators that die, a second
 * leader, lost requests, clocks that step, nodes that fall ill or are made again, and people who change any object in the
 * middle.
 *
 * The invariants of rollout_driver.h hold at each change, and these: a rollout and a node take only the phases that may
 * follow, no more nodes are in work than spec.atOnce, a wave changes no more nodes than its limit, and a rollout that
 * has stopped changes no node. No act begins on a node in work, and no node is changed during an act. After a calm time
 * no rollout writes, each that has not ended says why, and nothing is left once they are cancelled and deleted. A failed node
 * keeps its cordon until it is proved, or the rollout is cancelled or deleted.
 *
 * In a third of the seeds the driver is good and devices stay well: then the rollout ends Succeeded.
 *
 *   rollout_swarm [--corpus FILE] [--wide 0|1|2] [--start S] [--seeds N]
 *
 * The seeds of the corpus run first.
 */

#define NODES_MAX 12
#define TURNS 50
#define CALM (6 * HF_HOUR)
#define QUIET HF_HOUR /* the last part of the calm */
#define QUIET_WRITES 50
#define MOVES_MAX 500 /* of both rollouts, from a state to another */

static struct seeds seeds = {.start = 1, .count = 60};

struct swarm {
	struct rw *w;
	struct rd *d;
	struct ra *a;     /* NULL: no Remediations */
	struct rsw *wide; /* NULL: the narrow world */
	struct hf_memstore_observer observer;
	int at_once, wave_counts[2],
		wave_percent; /* waves: two counts, then a percentage, then all */
	bool held[NODES_MAX], cordoned[NODES_MAX];
	const char *pods[NODES_MAX];
	bool paused;
	/* The driver is good and devices stay well: the rollout ends Succeeded. */
	bool gentle;
	bool strangers;       /* strangers write into the status */
	bool two_leaders;     /* two operators acted at the same time */
	bool foreign;         /* nodes had the change before the rollout began with them */
	bool lost[NODES_MAX]; /* the kubelet is silent */
	bool failed
		[NODES_MAX]; /* rollout "r" has failed on the node, and has not proved it since */
	bool removed[NODES_MAX];
	char spec[2048]; /* of rollout "r" */
	unsigned troubles, changes, moves;
};

static unsigned pick(struct swarm *s, unsigned below)
{
	return rw_pick(s->w, below);
}

/* ---- what must hold ------------------------------------------------------------------------------ */

static enum hf_rollout_state state_of(const struct hf_json *rollout)
{
	enum hf_rollout_state state = HF_ROLLOUT_PENDING;

	assert_true(
		hf_rollout_state_of(hf_json_path_str(rollout, "status", "phase", NULL), &state));
	return state;
}

static enum hf_rollout_phase phase_of(const struct hf_json *entry)
{
	enum hf_rollout_phase phase = HF_ROLLOUT_WAITING;

	assert_true(hf_rollout_phase_of(hf_json_path_str(entry, "phase", NULL), &phase));
	return phase;
}

static const struct hf_json *find_entry(const struct hf_json *rollout, const char *node)
{
	const struct hf_json *list = hf_json_path(rollout, "status", "nodes", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "name", NULL), node))
			return hf_json_item(list, i);
	return NULL;
}

static int64_t tries_of(const struct hf_json *entry)
{
	return hf_json_i64(hf_json_get(entry, "tries"), 0);
}

static void note_failure(struct swarm *s, const struct hf_json *rollout, const char *node,
			 bool failed)
{
	if (hf_streq(hf_json_path_str(rollout, "metadata", "name", NULL), "r"))
		s->failed[rw_index_of(s->w, node)] = failed;
}

static bool has_cordon_of_r(const struct hf_json *node)
{
	return hf_json_true(hf_json_path(node, "spec", "unschedulable", NULL), false) &&
	       hf_streq(hf_json_path_str(node, "metadata", "annotations", "holdfast.dev/rollout",
					 NULL),
			"r");
}

/* A Node changes. The operator takes its annotation off with the cordon; a person leaves it. */
static void check_cordon(struct swarm *s, const struct hf_json *before, const struct hf_json *after)
{
	const struct hf_json *rollout = rw_get(s->w, &hf_devicerollouts, NULL, "r");
	const char *name = hf_json_path_str(after, "metadata", "name", NULL);
	const struct hf_json *entry = find_entry(rollout, name);

	if (!has_cordon_of_r(before) ||
	    hf_json_path(after, "metadata", "annotations", "holdfast.dev/rollout", NULL) != NULL ||
	    !s->failed[rw_index_of(s->w, name)] || s->strangers || rollout == NULL)
		return;
	if (!hf_json_true(hf_json_path(rollout, "spec", "cancel", NULL), false) &&
	    hf_json_path(rollout, "metadata", "deletionTimestamp", NULL) == NULL &&
	    !hf_streq(hf_json_path_str(entry, "outcome", NULL), "RolledBack"))
		rw_break(s->w, "a failed node loses its cordon without a proof", name);
}

static void check_entries(struct swarm *s, const struct hf_json *before,
			  const struct hf_json *after)
{
	const struct hf_json *list = hf_json_path(after, "status", "nodes", NULL);
	int in_work = 0;

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *entry = hf_json_item(list, i);
		const char *name = hf_json_path_str(entry, "name", NULL);
		const struct hf_json *old = find_entry(before, name);
		enum hf_rollout_phase phase = phase_of(entry);

		if (phase == HF_ROLLOUT_FAILED || phase == HF_ROLLOUT_ROLLED_BACK)
			note_failure(s, after, name, phase == HF_ROLLOUT_FAILED);
		/* An entry that strangers took away comes back to put its cordon back. */
		in_work += !hf_rollout_phase_is_end(phase) &&
			   !(s->strangers && phase == HF_ROLLOUT_RESTORING);
		if (old != NULL && tries_of(old) == tries_of(entry) && phase_of(old) != phase &&
		    !hf_rollout_phase_may_follow(phase_of(old), phase))
			rw_break(s->w, "a phase that may not follow", name);
	}
	if (in_work > s->at_once)
		rw_break(s->w, "more nodes are in work than spec.atOnce",
			 hf_json_path_str(after, "metadata", "name", NULL));
}

static void check_rollout(struct swarm *s, const struct hf_json *before,
			  const struct hf_json *after)
{
	const char *name = hf_json_path_str(after, "metadata", "name", NULL);
	enum hf_rollout_state was = state_of(before), is = state_of(after);

	s->moves += was != is;
	if (s->moves > MOVES_MAX)
		rw_break(s->w, "it goes from state to state without an end", name);
	if (was != is && !hf_rollout_state_may_follow(was, is))
		rw_break(s->w, "a state that may not follow", name);
	if (is == HF_ROLLOUT_HALTED &&
	    hf_str_is_empty(hf_json_path_str(after, "status", "message", NULL)))
		rw_break(s->w, "it halted without a message", name);
	check_entries(s, before, after);
}

/* The most nodes that wave may have changed. */
static int most_of_wave(const struct swarm *s, int wave)
{
	if (wave <= 0)
		return 0;
	if (wave <= 2)
		return s->wave_counts[wave - 1];
	return wave == 3 ? (s->w->nodes * s->wave_percent + 99) / 100 : s->w->nodes;
}

struct act_search {
	const char *node;
	bool found;
};

static void look_at_act(void *arg, struct hf_doc *doc)
{
	struct act_search *search = arg;
	const struct hf_json *act = hf_doc_json(doc);
	const char *phase = hf_json_path_str(act, "status", "phase", NULL);

	search->found |= hf_streq(hf_json_path_str(act, "spec", "node", NULL), search->node) &&
			 (hf_streq(phase, "Approved") || hf_streq(phase, "Acting") ||
			  hf_streq(phase, "Verifying"));
}

static bool is_mended(struct swarm *s, const char *node)
{
	struct act_search search = {.node = node};

	hf_memstore_each(s->w->memstore, &hf_remediations, NULL, look_at_act, &search);
	return search.found;
}

/* The pod of an actor is created. */
static void check_act(struct swarm *s, const struct hf_json *pod)
{
	static const char *const rollouts[] = {"r", "b"};
	const char *node = hf_json_path_str(pod, "spec", "nodeName", NULL);

	for (size_t i = 0; i < HF_ARRAY_LEN(rollouts); i++) {
		const struct hf_json *entry =
			find_entry(rw_get(s->w, &hf_devicerollouts, NULL, rollouts[i]), node);
		enum hf_rollout_phase phase = entry == NULL ? HF_ROLLOUT_WAITING : phase_of(entry);

		if (phase > HF_ROLLOUT_WAITING && phase < HF_ROLLOUT_RESTORING)
			rw_break(s->w, "an act begins on a node that a rollout works on", node);
	}
}

/* Nodes that the rollout has changed. A node that was made again has the newest version without this rollout's mark. */
static int count_changed(const struct swarm *s)
{
	int count = 0;
	char name[16];

	for (int i = 0; i < s->w->nodes; i++) {
		const char *mark;

		rw_name(i, name);
		mark = rd_mark(rw_get(s->w, &hf_nodes, NULL, name), NULL);
		count += s->d->runs[i] == s->d->version && mark != NULL &&
			 strstr(mark, "\"rollout\":\"r\"") != NULL;
	}
	return count;
}

/* The pod of the driver on a node is deleted. */
static void check_deletion(struct swarm *s, const struct hf_json *pod)
{
	const struct hf_json *rollout = rw_get(s->w, &hf_devicerollouts, NULL, "r");
	const char *node = hf_json_path_str(pod, "spec", "nodeName", NULL);
	enum hf_rollout_state state = state_of(rollout);
	int wave = (int)hf_json_i64(hf_json_path(rollout, "status", "wave", NULL), 0);
	/* Another node takes the place of one that has failed. */
	int failures = (int)hf_json_i64(hf_json_path(rollout, "spec", "maxFailures", NULL), 0);

	s->changes++;
	if (is_mended(s, node))
		rw_break(s->w, "the node is changed during an act", node);
	/* Of two leaders the one may stop the rollout while the other changes a node. */
	if (s->w->second == NULL && state != HF_ROLLOUT_ROLLING && state != HF_ROLLOUT_SOAKING &&
	    state != HF_ROLLOUT_ROLLING_BACK)
		rw_break(s->w, "a rollout that does not roll changes the node", node);
	if (state != HF_ROLLOUT_ROLLING_BACK && !s->foreign &&
	    count_changed(s) >= most_of_wave(s, wave) + failures)
		rw_break(s->w, "the wave has changed enough nodes already", node);
}

static void on_change(void *arg, const struct hf_memstore_change *change)
{
	struct swarm *s = arg;
	const struct hf_json *before = hf_doc_json(change->before);
	const struct hf_json *after = hf_doc_json(change->after);

	if (change->resource == &hf_pods && change->before == NULL &&
	    hf_streq(hf_json_path_str(after, "metadata", "namespace", NULL), HF_MEND_NAMESPACE))
		check_act(s, after);
	if (change->before == NULL || change->after == NULL)
		return;
	if (change->resource == &hf_devicerollouts)
		check_rollout(s, before, after);
	if (change->resource == &hf_nodes)
		check_cordon(s, before, after);
	if (change->resource == &hf_pods && !rd_is_evicted(after) &&
	    hf_json_path(before, "metadata", "deletionTimestamp", NULL) == NULL &&
	    hf_json_path(after, "metadata", "deletionTimestamp", NULL) != NULL &&
	    hf_streq(hf_json_path_str(after, "metadata", "labels", "app", NULL), "driver"))
		check_deletion(s, after);
}

static void on_reset(void *arg)
{
	rw_break(((struct swarm *)arg)->w, "the store was reset", "store");
}

/* ---- trouble ------------------------------------------------------------------------------------- */

static bool exists(struct swarm *s, const char *name)
{
	return rw_get(s->w, &hf_devicerollouts, NULL, name) != NULL;
}

/* The operator has decided to change or to mend the node. What a person does now may come too late. */
static bool is_changing(struct swarm *s, int node)
{
	char name[16];

	rw_name(node, name);
	if (is_mended(s, name) || (s->a != NULL && s->a->ends_at[node] != 0))
		return true;
	return hf_streq(rd_node_phase(s->d, "r", node), "Changing") ||
	       hf_streq(rd_node_phase(s->d, "b", node), "Changing");
}

static void fall_ill(struct swarm *s, int node)
{
	static const int ills[] = {RW_RESET, RW_REBOOT, RW_UNKNOWN, RW_UNSEEN, RW_SLOW};

	if (s->d->ready[node] && !is_changing(s, node))
		rw_say(s->w, node, ills[pick(s, HF_ARRAY_LEN(ills))]);
}

/* While the agent is silent, nobody can know that the node is well. */
static void get_well(struct swarm *s, int node)
{
	if (s->d->ready[node] && !s->w->silent[node] && !is_changing(s, node))
		rw_say(s->w, node, RW_WELL);
}

static void change_hold(struct swarm *s, int node)
{
	if (!s->held[node] && is_changing(s, node))
		return;
	s->held[node] = !s->held[node];
	rw_patch_node(s->w, node,
		      s->held[node] ? "{'metadata':{'annotations':{'holdfast.dev/hold':'yes'}}}"
				    : "{'metadata':{'annotations':{'holdfast.dev/hold':null}}}");
}

static void change_cordon(struct swarm *s, int node)
{
	if (is_changing(s, node))
		return;
	s->cordoned[node] = !rd_is_cordoned(s->d, node);
	rw_patch_node(s->w, node,
		      s->cordoned[node] ? "{'spec':{'unschedulable':true}}"
					: "{'spec':{'unschedulable':null}}");
}

/* The Node object alone: its kubelet registers again. */
static void renew_node(struct swarm *s, int node)
{
	struct rd *d = s->d;
	char name[16], text[128];

	if (is_changing(s, node) || d->bare[node])
		return;
	rw_name(node, name);
	d->bare[node] = true;
	rw_delete(s->w, &hf_nodes, name);
	rw_run(s->w, (hf_time)pick(s, 30) * HF_SECOND);
	rw_node(s->w, node);
	snprintf(text, sizeof(text),
		 "{'status':{'allocatable':{'nvidia.com/gpu':'%d','cpu':'64'}}}",
		 d->effect[node][d->runs[node]] == RD_LOSES_GPU ? RD_GPUS - 1 : RD_GPUS);
	rw_patch_status(s->w, &hf_nodes, name, text);
	d->bare[node] = s->held[node] = s->cordoned[node] = s->failed[node] = false;
}

static void delete_lease(struct swarm *s, int node)
{
	char name[40];

	snprintf(name, sizeof(name), HF_NODE_LEASE_PREFIX "n%03d", node);
	/* Without its Lease a node in work may be mended. */
	if (s->a == NULL && !is_changing(s, node))
		(void)rw_remove(s->w, &hf_leases, HF_MEND_NAMESPACE, name, 0);
}

static void put_pod(struct swarm *s, int node)
{
	if (s->pods[node] != NULL || rd_is_cordoned(s->d, node) ||
	    rw_get(s->w, &hf_pods, "default", rw_pod_name(node)) != NULL)
		return;
	s->pods[node] = rw_pod_name(node);
	rd_pod(s->d, s->pods[node], node, pick(s, 8) == 0 ? NULL : "train");
}

static void end_pod(struct swarm *s, int node)
{
	if (s->pods[node] != NULL && rw_get(s->w, &hf_pods, "default", s->pods[node]) != NULL)
		rd_end_pod(s->d, s->pods[node]);
	s->pods[node] = NULL;
}

static void kill_operator(struct swarm *s, int node)
{
	(void)node;
	rw_kill_soon(s->w);
}

static void change_leaders(struct swarm *s, int node)
{
	(void)node;
	rw_change_leaders(s->w);
	s->two_leaders |= s->w->second != NULL;
}

static void change_losses(struct swarm *s, int node)
{
	(void)node;
	s->w->refuse_permille = pick(s, 2) * 100;
}

static void change_evictions(struct swarm *s, int node)
{
	(void)node;
	s->w->refuse_evictions = !s->w->refuse_evictions;
}

static void change_pause(struct swarm *s, int node)
{
	(void)node;
	if (!exists(s, "r"))
		return;
	s->paused = !s->paused;
	rd_patch_spec(s->d, "r", s->paused ? "'paused':true" : "'paused':false");
}

static void change_template(struct swarm *s, int node)
{
	(void)node;
	if (pick(s, 8) == 0 && s->d->version + 1 < RD_VERSIONS_MAX)
		rd_set_version(s->d, s->d->version + 1);
}

static void change_daemon_set(struct swarm *s, int node)
{
	(void)node;
	s->d->gone = !s->d->gone && pick(s, 3) == 0;
}

static void end_rollout(struct swarm *s, int node)
{
	const char *name = pick(s, 2) == 0 ? "r" : "b";

	(void)node;
	if (pick(s, 6) > 0 || !exists(s, name))
		return;
	if (pick(s, 2) == 0)
		rd_patch_spec(s->d, name, "'cancel':true");
	else
		rw_delete(s->w, &hf_devicerollouts, name);
}

/* A person asks for an act. */
static void request_act(struct swarm *s, int node)
{
	if (s->a == NULL)
		return;
	ra_request(s->a, node, ra_newest_attempt(s->a, node) + 1,
		   pick(s, 2) == 0 ? "reset-device" : "reboot",
		   pick(s, 2) == 0 ? ",'policy':'p'" : "");
}

static void step_clock(struct swarm *s, int node)
{
	s->w->clock[node] = ((hf_time)pick(s, 7200) - 3600) * HF_SECOND;
}

/* The kubelet of the node is silent for a while. */
static void lose_node(struct swarm *s, int node)
{
	s->lost[node] = !s->lost[node];
	if (!s->removed[node])
		rw_set_ready(s->w, node, s->lost[node] ? "Unknown" : "True");
}

static void silence_agent(struct swarm *s, int node)
{
	/* A node that reboots says nothing, and runs no other actor. */
	if (s->a != NULL && s->a->ends_at[node] != 0)
		return;
	s->w->silent[node] = !s->w->silent[node];
	if (!s->w->silent[node] && s->w->ill[node] == RW_WELL)
		rw_say(s->w, node, RW_WELL);
}

static void add_node(struct swarm *s, int node)
{
	struct rd *d = s->d;
	char name[16], text[128];

	rw_name(node, name);
	rw_node(s->w, node);
	snprintf(text, sizeof(text),
		 "{'status':{'allocatable':{'nvidia.com/gpu':'%d','cpu':'64'}}}",
		 d->effect[node][d->runs[node]] == RD_LOSES_GPU ? RD_GPUS - 1 : RD_GPUS);
	rw_patch_status(s->w, &hf_nodes, name, text);
	d->bare[node] = s->removed[node] = s->lost[node] = false;
	s->held[node] = s->cordoned[node] = s->failed[node] = false;
}

/* A node leaves the cluster, or is added to it. */
static void change_nodes(struct swarm *s, int node)
{
	char name[16];

	if (s->removed[node]) {
		add_node(s, node);
		return;
	}
	/* An actor acts on a Node that exists. */
	if (s->a != NULL || is_changing(s, node) || s->d->bare[node])
		return;
	rw_name(node, name);
	s->d->bare[node] = s->removed[node] = s->foreign = true;
	rw_delete(s->w, &hf_nodes, name);
}

/* A person takes the new template back. */
static void return_template(struct swarm *s, int node)
{
	(void)node;
	if (pick(s, 8) > 0 || s->d->version == 1)
		return;
	rd_set_version(s->d, s->d->version - 1);
	s->foreign = true;
}

static void change_strategy(struct swarm *s, int node)
{
	(void)node;
	s->d->strategy = pick(s, 6) == 0 ? "RollingUpdate" : "OnDelete";
	s->d->object_version++;
}

static void renew_rollout(struct swarm *s, int node)
{
	(void)node;
	if (pick(s, 4) > 0)
		return;
	s->foreign = true;
	if (exists(s, "r"))
		rw_delete(s->w, &hf_devicerollouts, "r");
	rw_run(s->w, (hf_time)pick(s, 120) * HF_SECOND);
	if (s->w->op == NULL)
		rw_start(s->w);
	for (int i = 0; i < 30 && exists(s, "r"); i++)
		rw_run(s->w, 10 * HF_SECOND);
	if (!exists(s, "r")) {
		memset(s->failed, 0, sizeof(s->failed));
		rd_rollout(s->d, "r", s->spec);
		s->paused = false;
	}
}

static void write_status(struct swarm *s, int node)
{
	static const char *const texts[] = {
		"{'status':{'nodes':null}}", "{'status':{'message':'mine'}}",
		"{'status':{'conditions':null}}", "{'status':{'soakSince':null}}"};

	(void)node;
	/* The garbage collector, which this world lacks, deletes a canary that the list has lost. */
	if (s->d->canaries_made > 0)
		return;
	/* Without its list the rollout has not begun with these nodes. */
	s->foreign |= s->strangers;
	if (s->strangers && exists(s, "r"))
		rw_patch_status(s->w, &hf_devicerollouts, "r", texts[pick(s, HF_ARRAY_LEN(texts))]);
}

/* A changed node that is lost for a minute speaks against the change. The failed node of another rollout keeps its cordon, which may
 * use up the budget. */
static void lose_unchanged_node(struct swarm *s, int node)
{
	if (s->lost[node] || (!hf_streq(rd_node_phase(s->d, "r", node), "Done") &&
			      !hf_streq(rd_node_phase(s->d, "c", node), "Done")))
		lose_node(s, node);
}

/* What a well fleet bears. A clock that steps after a pod became Ready may cost the proof of its node. */
static void disturb_gently(struct swarm *s)
{
	static void (*const troubles[])(struct swarm *, int) = {
		lose_unchanged_node, put_pod,       put_pod,        end_pod,
		change_hold,         kill_operator, change_leaders, change_losses,
		change_evictions,    change_pause,  change_cordon};
	int node = (int)pick(s, (unsigned)s->w->nodes);
	const char *phase = rd_node_phase(s->d, "r", node);

	/* A node that is lost in the middle has no proof, and fails. */
	if (!hf_streq(phase, "") && !hf_streq(phase, "Done"))
		return;
	s->troubles++;
	troubles[pick(s, HF_ARRAY_LEN(troubles))](s, node);
}

static void disturb(struct swarm *s)
{
	static void (*const troubles[])(struct swarm *, int) = {
		fall_ill,          get_well,      get_well,         change_hold,
		change_cordon,     renew_node,    delete_lease,     put_pod,
		put_pod,           end_pod,       kill_operator,    change_leaders,
		change_losses,     change_pause,  change_evictions, change_template,
		change_daemon_set, end_rollout,   request_act,      step_clock,
		lose_node,         silence_agent, change_nodes,     return_template,
		change_strategy,   renew_rollout, write_status};
	int node = (int)pick(s, (unsigned)s->w->nodes);

	if (s->a != NULL) {
		s->a->reset[node] = (enum ra_end)pick(s, RA_ENDS);
		s->a->reboot[node] = pick(s, 3) == 0 ? RA_NEVER : (enum ra_end)pick(s, RA_ENDS);
	}
	s->troubles++;
	if (s->wide != NULL)
		rsw_disturb(s->wide, node);
	if (s->wide != NULL && !s->removed[node] && !s->d->bare[node] && !is_changing(s, node))
		s->foreign |= rsw_disturb_wildly(s->wide, node);
	if (s->removed[node])
		change_nodes(s, node);
	else
		troubles[pick(s, HF_ARRAY_LEN(troubles))](s, node);
}

/* ---- after the calm ------------------------------------------------------------------------------ */

static void calm_down(struct swarm *s)
{
	s->w->refuse_evictions = s->d->gone = false;
	rw_calm(s->w);
	s->d->strategy = "OnDelete";
	s->d->object_version++;
	if (s->paused)
		change_pause(s, 0);
	if (s->a != NULL)
		ra_calm(s->a);
	if (s->wide != NULL)
		rsw_calm(s->wide);
	for (int i = 0; i < s->w->nodes; i++) {
		if (s->removed[i])
			add_node(s, i);
		if (s->lost[i])
			lose_node(s, i);
		if (s->w->silent[i])
			silence_agent(s, i);
		if (s->gentle && s->cordoned[i] && rd_is_cordoned(s->d, i))
			rw_patch_node(s->w, i, "{'spec':{'unschedulable':null}}");
		if (s->held[i])
			change_hold(s, i);
		end_pod(s, i);
		s->w->clock[i] = 0;
		get_well(s, i);
	}
}

static void expect_shown(struct swarm *s, unsigned seed, const char *name)
{
	const struct hf_json *rollout = rw_get(s->w, &hf_devicerollouts, NULL, name);
	enum hf_rollout_state state;

	if (rollout == NULL)
		return;
	if (hf_json_path(rollout, "metadata", "deletionTimestamp", NULL) != NULL)
		fail_msg("seed %u: %s is never deleted: %s", seed, name, rd_message(s->d, name));
	state = state_of(rollout);
	if (!hf_rollout_state_is_end(state) && hf_str_is_empty(rd_message(s->d, name)))
		fail_msg("seed %u: %s is %s and does not say why", seed, name,
			 hf_rollout_state_name(state));
	if (state == HF_ROLLOUT_SOAKING || state == HF_ROLLOUT_ROLLING_BACK)
		fail_msg("seed %u: %s is %s for hours: %s", seed, name,
			 hf_rollout_state_name(state), rd_message(s->d, name));
}

struct orphans {
	struct rw *w;
	struct hf_doc *docs[RW_NODES_MAX];
	size_t len;
};

static void collect_orphan(void *arg, struct hf_doc *doc)
{
	struct orphans *orphans = arg;
	const struct hf_json *owners =
		hf_json_path(hf_doc_json(doc), "metadata", "ownerReferences", NULL);
	const struct hf_json *owner = hf_json_item(owners, 0);
	const char *name = hf_json_path_str(owner, "name", NULL);

	if (orphans->len < RW_NODES_MAX &&
	    hf_streq(hf_json_path_str(owner, "kind", NULL), HF_ROLLOUT_KIND) &&
	    !hf_streq(hf_json_path_str(rw_get(orphans->w, &hf_devicerollouts, NULL, name),
				       "metadata", "uid", NULL),
		      hf_json_path_str(owner, "uid", NULL)))
		orphans->docs[orphans->len++] = hf_doc_ref(doc);
}

/* The garbage collector, after rollouts are deleted: a former leader may create an object that the next one has deleted,
 * and a stranger may empty the list that has the only record of a Lease. */
static void collect_garbage(struct swarm *s)
{
	static const struct hf_resource *const kinds[] = {&hf_leases, &hf_pytorchjobs};
	struct orphans *orphans = hf_xcalloc(1, sizeof(*orphans));

	orphans->w = s->w;
	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++)
		hf_memstore_each(s->w->memstore, kinds[i], NULL, collect_orphan, orphans);
	for (size_t i = 0; i < orphans->len; i++) {
		struct hf_doc *doc = orphans->docs[i];
		const struct hf_resource *resource =
			hf_resource_by_kind(hf_json_path_str(hf_doc_json(doc), "apiVersion", NULL),
					    hf_json_path_str(hf_doc_json(doc), "kind", NULL));

		(void)rw_remove(s->w, resource, hf_doc_namespace(doc), hf_doc_name(doc),
				HF_GRACE_DEFAULT);
		hf_doc_unref(doc);
	}
	free(orphans);
	/* A rollout may have waited for such a Lease. */
	rw_run(s->w, 5 * HF_MINUTE);
}

/* Cancels and deletes both rollouts. */
static void end_all(struct swarm *s)
{
	static const char *const names[] = {"r", "b", "c"};

	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++)
		if (exists(s, names[i]) && pick(s, 2) == 0)
			rd_patch_spec(s->d, names[i], "'cancel':true");
	rw_run(s->w, 5 * HF_MINUTE);
	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++)
		if (exists(s, names[i]))
			rw_delete(s->w, &hf_devicerollouts, names[i]);
	rw_run(s->w, 5 * HF_MINUTE);
}

static void expect_calm(struct swarm *s, unsigned seed)
{
	unsigned long long writes;

	for (hf_time span = 0; span < CALM; span += HF_MINUTE) {
		/* A death of the last turn may come now. */
		if (s->w->op == NULL)
			rw_start(s->w);
		rw_run(s->w, HF_MINUTE);
	}
	writes = s->w->writes;
	rw_run(s->w, QUIET);
	if (s->w->writes - writes > QUIET_WRITES)
		fail_msg("seed %u: %llu writes in a quiet hour", seed, s->w->writes - writes);
	expect_shown(s, seed, "r");
	expect_shown(s, seed, "b");
	expect_shown(s, seed, "c");
	if (s->wide != NULL)
		rsw_expect(s->wide, seed);
	if (s->gentle && !hf_streq(rd_phase(s->d, "r"), "Succeeded"))
		fail_msg("seed %u: a well fleet with a good driver: %s %s", seed,
			 rd_phase(s->d, "r"), rd_message(s->d, "r"));
	end_all(s);
	if (s->two_leaders || s->strangers)
		collect_garbage(s);
	if (exists(s, "r") || exists(s, "b"))
		fail_msg("seed %u: a deleted rollout stays: %s %s", seed, rd_message(s->d, "r"),
			 rd_message(s->d, "b"));
	/* Cordons of people may stay. */
	for (int i = 0; i < s->w->nodes; i++)
		if (s->cordoned[i] && rd_is_cordoned(s->d, i))
			rw_patch_node(s->w, i, "{'spec':{'unschedulable':null}}");
	rd_expect_clean(s->d);
}

/* ---- one seed ------------------------------------------------------------------------------------ */

struct met {
	unsigned acts, changes, succeeded, halted, failed, cancelled, undos, deaths, lost, troubles;
};

static void draw_effects(struct swarm *s)
{
	static const enum rd_effect bad[] = {RD_BREAKS_DEVICE, RD_LOSES_GPU, RD_NOT_ANSWERS,
					     RD_NEVER_READY,   RD_CRASHES,   RD_ENDS_LATER};
	bool any = pick(s, 2) == 0 && !s->gentle;

	s->d->breaks_after = (hf_time)pick(s, 180) * HF_SECOND;
	for (int version = 2; any && version < RD_VERSIONS_MAX; version++)
		for (int i = 0; i < s->w->nodes; i++)
			if (pick(s, 8) == 0)
				s->d->effect[i][version] = bad[pick(s, HF_ARRAY_LEN(bad))];
}

/* Writes the canary of the proof; "": the rollout has none. */
static void draw_canary(struct swarm *s, char text[768])
{
	*text = '\0';
	if (s->gentle || pick(s, 3) > 0)
		return;
	rd_use_jobs(s->d);
	for (int version = 1; version < RD_VERSIONS_MAX; version++)
		s->d->canary[version] =
			(struct rd_canary){.seconds = 5 + (int)pick(s, 60),
					   .fails = pick(s, 12) == 0,
					   .own_us = 100000 + (int64_t)pick(s, 20000)};
	if (pick(s, 3) == 0)
		s->d->canary_fails_on = 1 + (int)pick(s, (unsigned)s->w->nodes);
	snprintf(text, 768, ",'canary':{'seconds':%u,%s" RD_CANARY "}", 60 + pick(s, 120),
		 pick(s, 2) == 0 ? "'slowerPercent':15," : "");
}

static void begin_rollouts(struct swarm *s)
{
	static const char *const empty[] = {"Save", "Save", "Wait", "Never"};
	const char *how = empty[pick(s, HF_ARRAY_LEN(empty))];
	const char *on_failure = pick(s, 2) == 0 ? "Rollback" : "Halt";
	char spec[2048], canary[768];

	s->at_once = 1 + (int)pick(s, 4);
	s->wave_counts[0] = 1;
	s->wave_counts[1] = 2 + (int)pick(s, 2);
	s->wave_percent = 50 + (int)pick(s, 40);
	s->d->beside_pods = hf_streq(how, "Never");
	draw_canary(s, canary);
	snprintf(spec, sizeof(spec),
		 "'change':{'daemonSet':{'namespace':'default','name':'driver'}},'atOnce':%d,"
		 "'waves':[%d,%d,'%d%%'%s],'soakSeconds':%u,'proof':{'seconds':%u%s},"
		 "'empty':'%s','emptySeconds':%u,'maxFailures':%u,'onFailure':'%s'",
		 s->at_once, s->wave_counts[0], s->wave_counts[1], s->wave_percent,
		 s->wide != NULL && s->wide->pilot ? "" : ",'100%'", pick(s, 300),
		 (s->gentle ? 900 : 60) + pick(s, 240), canary, how, 60 + pick(s, 600), pick(s, 3),
		 on_failure);
	snprintf(s->spec, sizeof(s->spec), "%s%s", spec,
		 pick(s, 3) == 0 ? ",'groupBy':'rack'" : "");
	if (s->wide != NULL) {
		rsw_add_windows(s->wide, s->spec, sizeof(s->spec));
		rsw_add_selector(s->wide, s->spec, sizeof(s->spec));
	}
	rd_rollout(s->d, "r", s->spec);
	if (s->gentle || pick(s, 2) == 0)
		return;
	snprintf(spec, sizeof(spec),
		 "'change':{'nodeLabel':{'key':'example.com/driver','value':'two'}},'atOnce':1,"
		 "'waves':[1,'100%%'],'soakSeconds':%u,'proof':{'seconds':%u},'empty':'%s',"
		 "'onFailure':'%s'",
		 pick(s, 300), 60 + pick(s, 240), how, on_failure);
	rd_rollout(s->d, "b", spec);
}

static void count_ends(struct swarm *s, struct met *met)
{
	const char *phase = rd_phase(s->d, "r");

	met->succeeded += hf_streq(phase, "Succeeded");
	met->halted += hf_streq(phase, "Halted");
	met->failed += hf_streq(phase, "Failed");
	met->cancelled += hf_streq(phase, "Cancelled");
}

static void draw_policy(struct swarm *s)
{
	char budget[256] = WIDE, text[512];

	if (s->wide != NULL)
		rsw_print_budget(s->wide, budget, sizeof(budget));
	if (!s->gentle && pick(s, 2) == 0) {
		s->a = ra_create(s->w);
		snprintf(text, sizeof(text),
			 "{'mode':'remediate','mend':{'maxConcurrent':2,'settleSeconds':10,"
			 "'deadlineSeconds':300},%s}",
			 budget);
		rw_policy(s->w, text);
		return;
	}
	if (pick(s, 2) == 0) {
		snprintf(text, sizeof(text), "{'mode':'quarantine',%s}", budget);
		rw_policy(s->w, text);
	} else if (s->wide != NULL) {
		s->wide->budget = 0;
	}
}

static void run_seed(void *arg, uint64_t number, unsigned world)
{
	struct met *met = arg;
	unsigned seed = (unsigned)number;
	struct rsw more;
	struct swarm s = {.troubles = 0};
	bool wide = world != SEEDS_NARROW;

	rw_setup((void **)&s.w);
	hf_rng_init(&s.w->rng, seed);
	s.d = rd_create(s.w, 4 + (int)pick(&s, NODES_MAX - 4));
	s.w->by_hand = true;
	s.observer =
		(struct hf_memstore_observer){.changed = on_change, .reset = on_reset, .arg = &s};
	hf_memstore_observe(s.w->memstore, &s.observer);
	s.gentle = pick(&s, 3) == 0;
	s.strangers = pick(&s, 4) == 0;
	if (wide) {
		s.wide = &more;
		rsw_begin(&more, s.w, s.d);
		more.strangers = s.strangers;
		more.wild = world == SEEDS_WILD && !s.gentle;
		more.pilot = more.wild && number % 4 == 1;
		hf_rng_init(&more.rng, seed);
	}
	draw_effects(&s);
	draw_policy(&s);
	rw_start(s.w);
	rw_run(s.w, 5 * HF_SECOND);
	rd_set_version(s.d, 2);
	begin_rollouts(&s);
	if (wide)
		rsw_begin_jobs(&more, s.gentle);
	for (int turn = 0; turn < TURNS; turn++) {
		if (s.gentle)
			disturb_gently(&s);
		else
			disturb(&s);
		rw_run(s.w, (hf_time)pick(&s, 90) * HF_SECOND);
		if (s.w->op == NULL && pick(&s, 3) > 0)
			rw_start(s.w);
	}
	calm_down(&s);
	count_ends(&s, met);
	expect_calm(&s, seed);
	met->changes += s.changes;
	met->acts += s.a == NULL ? 0 : s.a->acts;
	met->undos += (unsigned)s.d->undos;
	met->deaths += s.w->met.deaths;
	met->lost += s.w->met.lost;
	met->troubles += s.troubles;
	hf_memstore_unobserve(s.w->memstore, &s.observer);
	if (wide)
		rsw_end(&more);
	rw_teardown((void **)&s.w);
}

static void each_rollout_ends_or_says_why(void **state)
{
	struct met met = {0};

	(void)state;
	seeds_run(&seeds, run_seed, &met);
	print_message(
		"%u seeds: %u troubles, %u acts, %u changes, %u succeeded, %u halted, %u taken back, %u "
		"cancelled, %u undone templates, %u deaths, %u replies lost\n",
		seeds.count, met.troubles, met.acts, met.changes, met.succeeded, met.halted,
		met.failed, met.cancelled, met.undos, met.deaths, met.lost);
	/* That nothing broke means nothing where nothing was met. */
	assert_true(seeds.count < 60 ||
		    (met.acts > 0 && met.changes > seeds.count && met.succeeded > 0 &&
		     met.halted > 0 && met.undos > 0 && met.deaths > 0 && met.lost > 0));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rollout_ends_or_says_why),
	};

	if (!seeds_read_args(argc, argv, 3, &seeds))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
