/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/rollout_swarm_wide.h"

#include "api/condition.h"
#include "api/device_rollout.h"
#include "api/lifetime.h"
#include "api/node_locks.h"
#include "api/remediation.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The wide world of rollout_swarm: rollout_swarm_wide.h. */

#define KEY "example.com/driver"
#define HAND "hand" /* value that people give the label */
#define DAY_MINUTES 1440

static unsigned pick(struct rsw *s, unsigned below)
{
	return rw_pick(s->w, below);
}

static const struct hf_json *status_of(struct rsw *s, const char *name)
{
	return hf_json_get(rw_get(s->w, &hf_devicerollouts, NULL, name), "status");
}

static const char *phase_of(struct rsw *s, const char *name)
{
	return hf_str_or(hf_json_path_str(status_of(s, name), "phase", NULL), "");
}

/* ---- at each change ------------------------------------------------------------------------------ */

static bool is_out(const struct hf_json *node)
{
	const struct hf_json *taints = hf_json_path(node, "spec", "taints", NULL);
	bool out = hf_json_true(hf_json_path(node, "spec", "unschedulable", NULL), false);

	for (size_t i = 0; i < hf_json_len(taints); i++)
		out |= hf_streq(hf_json_path_str(hf_json_item(taints, i), "key", NULL),
				"holdfast.dev/device");
	return out;
}

static void count_out(void *arg, struct hf_doc *doc)
{
	*(int *)arg += is_out(hf_doc_json(doc));
}

static bool is_in_window(const struct rsw *s)
{
	int minute = (int)(hf_loop_wall(s->w->loop) / HF_MINUTE % DAY_MINUTES);

	for (size_t i = 0; i < HF_ARRAY_LEN(s->windows); i++) {
		int from = s->windows[i][0], to = s->windows[i][1];

		if (from <= to ? minute >= from && minute < to : minute >= from || minute < to)
			return true;
	}
	return !s->windowed;
}

static const char *owner_of(const struct hf_json *node)
{
	return hf_json_true(hf_json_path(node, "spec", "unschedulable", NULL), false)
		       ? hf_json_path_str(node, "metadata", "annotations", "holdfast.dev/rollout",
					  NULL)
		       : NULL;
}

static bool is_ready(const struct hf_json *node)
{
	return hf_condition_is_true(node, "Ready");
}

static void check_cordon(struct rsw *s, const struct hf_json *node)
{
	const char *name = hf_json_path_str(node, "metadata", "name", NULL);
	const char *owner = owner_of(node);
	int out = 0;

	if (s->two_leaders || hf_streq(phase_of(s, owner), "RollingBack"))
		return;
	if (hf_streq(owner, "r") && !is_in_window(s))
		rw_break(s->w, "the node is cordoned while no window is open", name);
	hf_memstore_each(s->w->memstore, &hf_nodes, NULL, count_out, &out);
	/* A node that is out of use already costs nothing more. */
	if (s->budget > 0 && out > s->budget && is_ready(node))
		rw_break(s->w, "the rollout exceeds the budget of the policy", name);
}

static const char *label_of(const struct hf_json *node)
{
	return hf_str_or(hf_json_path_str(node, "metadata", "labels", KEY, NULL), "");
}

static void check_label(struct rsw *s, const struct hf_json *node)
{
	const char *name = hf_json_path_str(node, "metadata", "name", NULL);

	if (!hf_json_true(hf_json_path(node, "spec", "unschedulable", NULL), false))
		rw_break(s->w, "the label is changed without a cordon", name);
	if (rd_mark(node, KEY) == NULL)
		rw_break(s->w, "the label is changed without a mark", name);
}

struct search {
	const char *node;
	bool found;
};

static bool requests_device(const struct hf_json *pod)
{
	return hf_json_path(hf_json_item(hf_json_path(pod, "spec", "containers", NULL), 0),
			    "resources", "limits", "nvidia.com/gpu", NULL) != NULL;
}

static void find_bare(void *arg, struct hf_doc *doc)
{
	struct search *search = arg;
	const struct hf_json *pod = hf_doc_json(doc);

	search->found |= requests_device(pod) && !hf_has_pod_ended(pod) &&
			 hf_find_controller(pod) == NULL &&
			 hf_streq(hf_json_path_str(pod, "spec", "nodeName", NULL), search->node);
}

static bool is_locked_by_rollout(const struct rsw *s, const char *node)
{
	char lease[64];
	const char *holder;

	snprintf(lease, sizeof(lease), HF_NODE_LEASE_PREFIX "%s", node);
	holder = hf_json_path_str(rw_get(s->w, &hf_leases, HF_MEND_NAMESPACE, lease), "spec",
				  "holderIdentity", NULL);
	return holder != NULL && hf_str_has_prefix(holder, "devicerollouts/");
}

/* A pod that requests a device is to leave. */
static void check_eviction(struct rsw *s, const struct hf_json *pod)
{
	struct search search = {.node = hf_json_path_str(pod, "spec", "nodeName", NULL)};

	if (!requests_device(pod) || hf_has_pod_ended(pod) ||
	    hf_str_has_prefix(hf_json_path_str(pod, "metadata", "name", NULL), "canary-"))
		return;
	/* A Remediation empties a node by rules of its own, and moves pods without a controller before a reboot. A node that a
	 * rollout has failed on keeps its cordon meanwhile. */
	if (!is_locked_by_rollout(s, search.node))
		return;
	if (hf_find_controller(pod) == NULL)
		rw_break(s->w, "a pod without a controller is moved", search.node);
	hf_memstore_each(s->w->memstore, &hf_pods, NULL, find_bare, &search);
	if (search.found)
		rw_break(s->w, "a pod is moved beside one that may not be moved", search.node);
}

static int64_t wave_of(const struct hf_json *rollout)
{
	return hf_json_i64(hf_json_path(rollout, "status", "wave", NULL), 0);
}

/* The next wave begins. */
static void check_wave(struct rsw *s, const struct hf_json *before, const struct hf_json *rollout)
{
	const struct hf_json *nodes = hf_json_path(rollout, "status", "nodes", NULL);
	hf_time now = hf_loop_wall(s->w->loop);

	/* The same wave begins again if no changed node is left. */
	if (wave_of(before) == wave_of(rollout))
		return;
	for (size_t i = 0; i < hf_json_len(nodes); i++) {
		const struct hf_json *entry = hf_json_item(nodes, i);
		const char *name = hf_json_path_str(entry, "name", NULL);
		hf_time since;

		/* A node that has left the cluster since, or was made again, has nothing to soak. */
		if (hf_streq(hf_json_path_str(entry, "phase", NULL), "Done") &&
		    rd_mark(rw_get(s->w, &hf_nodes, NULL, name), NULL) != NULL &&
		    hf_time_parse(hf_json_path_str(entry, "since", NULL), &since, NULL) == 0 &&
		    now - since < s->soak - HF_SECOND)
			rw_break(s->w, "the wave begins before its predecessor has soaked",
				 hf_json_path_str(entry, "name", NULL));
	}
}

static bool has_wave(const struct hf_json *rollout, const char *phase)
{
	return hf_streq(hf_json_path_str(rollout, "status", "phase", NULL), phase);
}

static void on_node(struct rsw *s, const struct hf_memstore_change *change)
{
	const struct hf_json *before = hf_doc_json(change->before);
	const struct hf_json *after = hf_doc_json(change->after);

	if (change->after == NULL)
		return;
	if (change->before == NULL) {
		int node = rw_index_of(s->w, hf_doc_name(change->after));

		s->label[node][0] = '\0';
		s->renewed[node] = true;
		return;
	}
	if (owner_of(before) == NULL && owner_of(after) != NULL)
		check_cordon(s, after);
	if (!hf_streq(label_of(before), label_of(after)) && s->begun &&
	    !hf_streq(label_of(after), HAND))
		check_label(s, after);
}

static void on_change(void *arg, const struct hf_memstore_change *change)
{
	struct rsw *s = arg;
	const struct hf_json *before = hf_doc_json(change->before);
	const struct hf_json *after = hf_doc_json(change->after);

	s->two_leaders |= s->w->second != NULL;
	if (change->resource == &hf_nodes)
		on_node(s, change);
	if (change->before == NULL || change->after == NULL)
		return;
	if (change->resource == &hf_pods &&
	    hf_json_path(before, "metadata", "deletionTimestamp", NULL) == NULL &&
	    hf_json_path(after, "metadata", "deletionTimestamp", NULL) != NULL)
		check_eviction(s, after);
	if (change->resource == &hf_devicerollouts && !s->strangers &&
	    hf_streq(hf_doc_name(change->after), "r") && has_wave(before, "Soaking") &&
	    has_wave(after, "Rolling"))
		check_wave(s, before, after);
}

static void on_reset(void *arg)
{
	rw_break(((struct rsw *)arg)->w, "the store was reset", "store");
}

/* ---- the beginning ------------------------------------------------------------------------------- */

static void give_labels(struct rsw *s)
{
	for (int i = 0; i < s->w->nodes; i++) {
		char name[16];

		if (pick(s, 3) > 0)
			continue;
		rw_name(i, name);
		rw_patch(s->w, &hf_nodes, name, "{'metadata':{'labels':{'" KEY "':'one'}}}");
		snprintf(s->label[i], sizeof(s->label[i]), "one");
	}
}

void rsw_begin(struct rsw *s, struct rw *w, struct rd *d)
{
	*s = (struct rsw){.w = w, .d = d};
	s->budget = pick(s, 3) == 0 ? 0 : 1 + (int)pick(s, 4);
	give_labels(s);
	s->observer =
		(struct hf_memstore_observer){.changed = on_change, .reset = on_reset, .arg = s};
	hf_memstore_observe(w->memstore, &s->observer);
}

void rsw_end(struct rsw *s)
{
	hf_memstore_unobserve(s->w->memstore, &s->observer);
}

/* Three windows from the begin of the world at 22:13 on. The last one is open for the whole calm time. */
void rsw_add_windows(struct rsw *s, char *text, size_t size)
{
	static const char soak[] = "'soakSeconds':";
	size_t len = strlen(text);
	int at = 22 * 60 + (int)pick(s, 30);

	s->soak = strtoll(strstr(text, soak) + sizeof(soak) - 1, NULL, 10) * HF_SECOND;
	if (pick(s, 2) == 0)
		return;
	s->windowed = true;
	for (size_t i = 0; i < HF_ARRAY_LEN(s->windows); i++) {
		int lasts = i + 1 < HF_ARRAY_LEN(s->windows) ? 1 + (int)pick(s, 12) : 12 * 60;

		s->windows[i][0] = at % DAY_MINUTES;
		s->windows[i][1] = (at + lasts) % DAY_MINUTES;
		at += lasts + 1 + (int)pick(s, 15);
	}
	snprintf(text + len, size - len,
		 ",'windows':[{'start':'%02d:%02d','end':'%02d:%02d'},{'start':'%02d:%02d','end':"
		 "'%02d:%02d'},{'start':'%02d:%02d','end':'%02d:%02d'}]",
		 s->windows[0][0] / 60, s->windows[0][0] % 60, s->windows[0][1] / 60,
		 s->windows[0][1] % 60, s->windows[1][0] / 60, s->windows[1][0] % 60,
		 s->windows[1][1] / 60, s->windows[1][1] % 60, s->windows[2][0] / 60,
		 s->windows[2][0] % 60, s->windows[2][1] / 60, s->windows[2][1] % 60);
}

void rsw_print_budget(const struct rsw *s, char *text, size_t size)
{
	char most[32];

	snprintf(most, sizeof(most), s->budget > 0 ? "'count':%d" : "'percent':50", s->budget);
	snprintf(text, size,
		 "'budget':{'maxUnavailable':{%s},'maxQuarantines':{'count':60}},"
		 "'breaker':{'percent':100}",
		 most);
}

void rsw_begin_jobs(struct rsw *s, bool gentle)
{
	s->begun = true;
	if (pick(s, 3) == 0) {
		rd_use_jobs(s->d);
		for (int version = 1; version < RD_VERSIONS_MAX; version++)
			s->d->own_us[version] = 100000 + (int64_t)pick(s, gentle ? 15000 : 40000);
		rd_train(s->d, s->w->nodes);
	}
	s->has_rival = pick(s, 3) == 0;
	if (!s->has_rival)
		return;
	rd_rollout(s->d, "c",
		   "'change':{'nodeLabel':{'key':'" KEY "','value':'three'}},'atOnce':1,"
		   "'soakSeconds':30,'proof':{'seconds':60},'onFailure':'Rollback',"
		   "'nodeSelector':{'matchLabels':{'pool':'odd'}}");
}

/* ---- trouble ------------------------------------------------------------------------------------- */

void rsw_disturb(struct rsw *s, int node)
{
	static const char *const names[] = {"q0", "q1", "q2", "q3", "q4",  "q5",
					    "q6", "q7", "q8", "q9", "q10", "q11"};

	if (node >= (int)HF_ARRAY_LEN(names) || pick(s, 3) > 0)
		return;
	if (s->pod[node] != NULL) {
		if (rw_get(s->w, &hf_pods, "default", s->pod[node]) != NULL)
			rd_end_pod(s->d, s->pod[node]);
		s->pod[node] = NULL;
		return;
	}
	if (rd_is_cordoned(s->d, node) || rw_get(s->w, &hf_pods, "default", names[node]) != NULL)
		return;
	s->pod[node] = names[node];
	s->bare[node] = pick(s, 3) == 0;
	rd_pod(s->d, names[node], node, s->bare[node] ? NULL : "other");
}

void rsw_add_selector(struct rsw *s, char *text, size_t size)
{
	size_t len = strlen(text);

	if (s->wild && hf_rng_below(&s->rng, 2) == 0)
		snprintf(text + len, size - len,
			 ",'nodeSelector':{'matchExpressions':[{'key':'left','operator':"
			 "'DoesNotExist'}]}");
}

bool rsw_disturb_wildly(struct rsw *s, int node)
{
	switch (s->wild ? hf_rng_below(&s->rng, 8) : 7) {
	case 0:
	case 1:
		/* A pod that becomes Ready makes a sick node well, and an act may begin before. */
		if (!s->d->ready[node] || s->w->ill[node] != RW_WELL)
			return false;
		rd_evict(s->d, node);
		return true;
	case 2:
		rw_patch_node(s->w, node, "{'metadata':{'labels':{'" KEY "':'" HAND "'}}}");
		return false;
	case 3: rw_patch_node(s->w, node, "{'metadata':{'labels':{'left':'yes'}}}"); return true;
	case 4: rw_patch_node(s->w, node, "{'metadata':{'labels':{'left':null}}}"); return true;
	default: return false;
	}
}

void rsw_calm(struct rsw *s)
{
	for (int i = 0; i < s->w->nodes; i++) {
		if (s->pod[i] != NULL && rw_get(s->w, &hf_pods, "default", s->pod[i]) != NULL)
			rd_end_pod(s->d, s->pod[i]);
		s->pod[i] = NULL;
	}
}

/* ---- at the end ---------------------------------------------------------------------------------- */

static void expect_numbers(struct rsw *s, unsigned seed, const char *name)
{
	const struct hf_json *status = status_of(s, name), *nodes = hf_json_get(status, "nodes");
	int failed = 0, skipped = 0, lost = 0;

	for (size_t i = 0; i < hf_json_len(nodes); i++) {
		const struct hf_json *entry = hf_json_item(nodes, i);
		const char *phase = hf_json_path_str(entry, "phase", NULL);

		failed += hf_streq(phase, "Failed");
		skipped += hf_streq(phase, "Skipped");
		lost += hf_streq(phase, "Failed") &&
			hf_json_true(hf_json_get(entry, "wasWell"), false) &&
			!hf_json_true(hf_json_get(entry, "wasAway"), false);
	}
	if (status == NULL || s->strangers)
		return;
	if (failed != rd_count(s->d, name, "failed") || skipped != rd_count(s->d, name, "skipped"))
		fail_msg("seed %u: %s counts %d failed and %d skipped nodes, and lists %d and %d",
			 seed, name, rd_count(s->d, name, "failed"),
			 rd_count(s->d, name, "skipped"), failed, skipped);
	if (hf_streq(name, "r") && lost > 3 + 4)
		fail_msg("seed %u: a rollback has broken %d well nodes", seed, lost);
}

struct left {
	struct rsw *s;
	const char *revision;
	int count;
};

static void count_left(void *arg, struct hf_doc *doc)
{
	struct left *left = arg;
	const struct hf_json *pod = hf_doc_json(doc);

	left->count += hf_streq(hf_json_path_str(pod, "metadata", "labels",
						 "controller-revision-hash", NULL),
				left->revision) &&
		       rw_get(left->s->w, &hf_nodes, NULL,
			      hf_json_path_str(pod, "spec", "nodeName", NULL)) != NULL;
}

/* Condition RolledBack says that nothing is left of the change. */
static void expect_taken_back(struct rsw *s, unsigned seed)
{
	struct left left = {.s = s};

	if (hf_str_has_prefix(rd_condition(s->d, "r", "RolledBack"), "True")) {
		left.revision = hf_json_path_str(status_of(s, "r"), "targetRevision", NULL);
		hf_memstore_each(s->w->memstore, &hf_pods, "default", count_left, &left);
	}
	/* A person may have given the template its newer version again. */
	if (left.count > 0 && s->d->undos > 0 && !s->strangers)
		print_message("seed %u: %d nodes have the change that was taken back\n", seed,
			      left.count);
	if (s->has_rival || s->strangers ||
	    !hf_str_has_prefix(rd_condition(s->d, "b", "RolledBack"), "True"))
		return;
	for (int i = 0; i < s->w->nodes; i++) {
		char name[16];

		rw_name(i, name);
		if (!s->renewed[i] &&
		    !hf_streq(label_of(rw_get(s->w, &hf_nodes, NULL, name)), HAND) &&
		    !hf_streq(label_of(rw_get(s->w, &hf_nodes, NULL, name)), s->label[i]))
			fail_msg("seed %u: %s has label '%s' instead of '%s' after the rollback",
				 seed, name, label_of(rw_get(s->w, &hf_nodes, NULL, name)),
				 s->label[i]);
	}
}

void rsw_expect(struct rsw *s, unsigned seed)
{
	expect_numbers(s, seed, "r");
	expect_numbers(s, seed, "b");
	expect_numbers(s, seed, "c");
	expect_taken_back(s, seed);
}
