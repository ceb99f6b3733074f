/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_swarm.h"

#include "api/node_locks.h"
#include "api/remediation.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* What must hold in the wide world of remedy_swarm: the limits of each policy at each write, and an end without remains.
 */

/* ---- what must hold under each policy --------------------------------------------------------------- */

static bool has_taint(const struct hf_json *node)
{
	const struct hf_json *taints = hf_json_path(node, "spec", "taints", NULL);

	for (size_t i = 0; i < hf_json_len(taints); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(taints, i), "key", NULL),
			     "holdfast.dev/device"))
			return true;
	return false;
}

/* Copies the name in the mark of the Node; "": it has none. */
static void read_mark(const struct hf_json *node, char policy[300])
{
	const char *mark =
		hf_json_path_str(node, "metadata", "annotations", "holdfast.dev/quarantine", NULL);
	HF_AUTO_JSON json = NULL;

	*policy = '\0';
	if (mark != NULL && hf_json_parse(mark, strlen(mark), NULL, &json, NULL) == 0)
		snprintf(policy, 300, "%s", hf_str_or(hf_json_path_str(json, "policy", NULL), ""));
}

/* The nodes that this policy has taken out of use; domain: only those with the same value of this label. */
static int count_taken(struct rs *s, const char *policy, const char *key, const char *domain)
{
	int n = 0;

	for (int i = 0; i < s->w->nodes; i++) {
		const struct hf_json *node;
		char name[16], mark[300];

		rw_name(i, name);
		node = rw_get(s->w, &hf_nodes, NULL, name);
		read_mark(node, mark);
		n += hf_streq(mark, policy) && has_taint(node) &&
		     (key == NULL ||
		      hf_streq(hf_json_path_str(node, "metadata", "labels", key, NULL), domain));
	}
	return n;
}

/* What an operator can see of a person's change that came at the same moment. */
#define SEEN_AFTER (5 * HF_SECOND)

static void check_quarantine(struct rs *s, const struct hf_json *node)
{
	const struct hf_json *policy, *budget;
	char mark[300];
	const char *name = hf_json_path_str(node, "metadata", "name", NULL), *key;
	int64_t count, percent;
	int taken;

	read_mark(node, mark);
	if (hf_str_has_prefix(mark, "remediations/") || s->w->second != NULL ||
	    hf_loop_wall(s->w->loop) - s->changed_at < SEEN_AFTER)
		return;
	policy = rw_get(s->w, &hf_healthpolicies, NULL, mark);
	budget = hf_json_path(policy, "spec", "budget", NULL);
	if (policy == NULL || hf_streq(hf_json_path_str(policy, "spec", "mode", NULL), "observe")) {
		rw_break(s->w, "a quarantine that no policy orders", name);
		return;
	}
	taken = count_taken(s, mark, NULL, NULL);
	count = hf_json_i64(hf_json_path(budget, "maxUnavailable", "count", NULL), 1000);
	percent = hf_json_i64(hf_json_path(budget, "maxUnavailable", "percent", NULL), 100);
	if (taken > count || (taken > 1 && taken * 100 > percent * s->w->nodes))
		rw_break(s->w, "more nodes are out than the budget of the policy allows", name);
	key = hf_json_path_str(budget, "perDomain", "topologyKey", NULL);
	if (key != NULL &&
	    count_taken(s, mark, key, hf_json_path_str(node, "metadata", "labels", key, NULL)) >
		    hf_json_i64(hf_json_path(budget, "perDomain", "max", NULL), 1))
		rw_break(s->w, "more nodes of a domain are out than the policy allows", name);
}

static bool is_at_work(const char *phase)
{
	return hf_streq(phase, "Approved") || hf_streq(phase, "Acting") ||
	       hf_streq(phase, "Verifying");
}

/* The window of print_policy is open. The world begins on a Tuesday at 22:13. */
static bool is_window_open(struct rs *s, const struct hf_json *policy)
{
	const struct hf_json *windows = hf_json_path(policy, "spec", "mend", "windows", NULL);
	const char *start = hf_json_path_str(hf_json_item(windows, 0), "start", NULL);
	hf_time minute = hf_loop_wall(s->w->loop) / HF_MINUTE % (24 * 60);

	if (hf_json_len(windows) == 0)
		return true;
	return hf_streq(start, "22:00") ? minute >= 22 * 60 && minute < 23 * 60 + 30 : minute < 40;
}

/* The operator starts the actor of an act: everything that its policy asks for holds at this moment. */
static void check_actor(struct rs *s, const struct hf_json *pod)
{
	const char *name =
		hf_json_path_str(pod, "metadata", "name", NULL) + strlen(HF_MEND_POD_PREFIX);
	const struct hf_json *act = rw_get(s->w, &hf_remediations, NULL, name);
	const char *of = hf_json_path_str(act, "spec", "policy", NULL);
	const struct hf_json *policy = rw_get(s->w, &hf_healthpolicies, NULL, of == NULL ? "" : of);
	const struct hf_json *node = rw_get(s->w, &hf_nodes, NULL, rs_text_of(act, "node"));
	struct rs_list list;
	int at_work = 0;

	if (hf_node_find_maintenance(node) != NULL)
		rw_break(s->w, "an act beside another tool", name);
	if (hf_json_path(node, "metadata", "annotations", "holdfast.dev/paused", NULL) != NULL)
		rw_break(s->w, "an act on a node that is paused", name);
	if (of == NULL)
		return;
	if (!hf_streq(hf_json_path_str(policy, "spec", "mode", NULL), "remediate"))
		rw_break(s->w, "an act that no policy allows", name);
	if (!s->clocks_step && !is_window_open(s, policy))
		rw_break(s->w, "an act outside of the window", name);
	if (hf_streq(rs_text_of(act, "requestedBy"), "policy") &&
	    hf_json_true(hf_json_path(node, "spec", "unschedulable", NULL), false))
		rw_break(s->w, "an act of a policy on a node that is cordoned", name);
	rs_list_acts(s, &list);
	for (size_t i = 0; i < list.len; i++)
		at_work += hf_streq(rs_text_of(hf_doc_json(list.docs[i]), "policy"), of) &&
			   is_at_work(rs_phase_of(list.docs[i]));
	rs_drop_list(&list);
	if (at_work > hf_json_i64(hf_json_path(policy, "spec", "mend", "maxConcurrent", NULL), 1))
		rw_break(s->w, "more acts than maxConcurrent", name);
}

/* A policy orders an act: a fault of the node is confirmed. */
static void check_order(struct rs *s, const struct hf_json *act)
{
	const char *name = rs_text_of(act, "node");
	hf_time now = hf_loop_wall(s->w->loop);

	for (int i = 0; i < s->w->nodes; i++) {
		char node[16];

		rw_name(i, node);
		if (hf_streq(node, name) && s->w->ill[i] == RW_SUSPECT && !s->w->mute[i] &&
		    !s->w->silent[i] && now - s->w->ill_since[i] > SEEN_AFTER)
			rw_break(s->w, "an act for a suspicion", name);
	}
}

static bool has_device_out(const struct hf_json *node)
{
	const char *mark =
		hf_json_path_str(node, "metadata", "annotations", "holdfast.dev/quarantine", NULL);

	return mark != NULL && strstr(mark, "\"scope\":\"Device\"") != NULL &&
	       strstr(mark, "takenOff") == NULL;
}

static void on_change(void *arg, const struct hf_memstore_change *change)
{
	struct rs *s = arg;
	const struct hf_json *before = hf_doc_json(change->before);
	const struct hf_json *after = hf_doc_json(change->after);

	/* A node with a device out of use counts against the budget already. */
	if (change->resource == &hf_nodes && before != NULL && after != NULL &&
	    !has_taint(before) && has_taint(after) && !has_device_out(before))
		check_quarantine(s, after);
	if (change->resource == &hf_remediations && before == NULL &&
	    hf_streq(rs_text_of(after, "requestedBy"), "policy") &&
	    !hf_str_has_prefix(hf_json_path_str(after, "metadata", "name", NULL), "odd-"))
		check_order(s, after);
	if (change->resource == &hf_pods && before == NULL &&
	    hf_streq(hf_json_path_str(after, "metadata", "namespace", NULL), HF_MEND_NAMESPACE))
		check_actor(s, after);
}

static void on_reset(void *arg)
{
	(void)arg;
}

static bool is_open_on(const struct rs_list *list, const char *node)
{
	for (size_t i = 0; i < list->len; i++)
		if (hf_streq(rs_text_of(hf_doc_json(list->docs[i]), "node"), node) &&
		    !rs_is_final(list->docs[i]) &&
		    !hf_streq(rs_text_of(hf_doc_json(list->docs[i]), "rung"), "person"))
			return true;
	return false;
}

/* The mark of the Node names an act that has failed: a person looks at the node. */
static bool is_of_failed_act(const struct rs_list *list, const char *mark)
{
	for (size_t i = 0; i < list->len; i++) {
		char part[300];

		snprintf(part, sizeof(part), "\"remediations/%s\"", hf_doc_name(list->docs[i]));
		if (strstr(mark, part) != NULL)
			return hf_streq(rs_phase_of(list->docs[i]), "Failed");
	}
	return false;
}

/* Nothing is left on the node that neither an open act nor a sick device explains. */
static void expect_clean_node(struct rs *s, unsigned seed, const struct rs_list *list, int node)
{
	const struct hf_json *json, *labels;
	const char *mark, *problem = NULL;
	char name[16];

	rw_name(node, name);
	json = rw_get(s->w, &hf_nodes, NULL, name);
	if (json == NULL || is_open_on(list, name))
		return;
	labels = hf_json_path(json, "metadata", "labels", NULL);
	mark = hf_str_or(
		hf_json_path_str(json, "metadata", "annotations", "holdfast.dev/quarantine", NULL),
		"");
	if (hf_streq(hf_json_path_str(labels, "nvidia.com/gpu.deploy.device-plugin", NULL),
		     "false"))
		problem = "a label of the GPU Operator is off";
	else if (hf_json_true(hf_json_path(json, "spec", "unschedulable", NULL), false))
		problem = "it is cordoned";
	else if (s->w->ill[node] == RW_WELL && rw_tainted(s->w, node) &&
		 !is_of_failed_act(list, mark))
		problem = "it is well and tainted";
	else if (s->w->ill[node] == RW_WELL && *mark != '\0' && !rw_tainted(s->w, node) &&
		 strstr(mark, "takenOff") == NULL)
		problem = "it is well and has the mark";
	if (problem == NULL)
		return;
	rs_print_node(s, list, node);
	fail_msg("seed %u: %s: %s: %s", seed, name, problem, mark);
}

static void add_actor(void *arg, struct hf_doc *doc)
{
	struct rs_list *list = arg;

	if (hf_streq(hf_doc_namespace(doc), HF_MEND_NAMESPACE) &&
	    list->len < HF_ARRAY_LEN(list->docs))
		list->docs[list->len++] = hf_doc_ref(doc);
}

static void expect_no_actor(struct rs *s, unsigned seed)
{
	struct rs_list list = {.len = 0};
	const struct hf_json *act;

	hf_memstore_each(s->w->memstore, &hf_pods, NULL, add_actor, &list);
	for (size_t i = 0; i < list.len; i++) {
		act = rw_get(s->w, &hf_remediations, NULL,
			     hf_doc_name(list.docs[i]) + strlen(HF_MEND_POD_PREFIX));
		if (act == NULL || ra_is_final(hf_json_path_str(act, "status", "phase", NULL))) {
			fail_msg("seed %u: pod %s is left", seed, hf_doc_name(list.docs[i]));
		}
	}
	rs_drop_list(&list);
}

void rs_expect_clean(struct rs *s, unsigned seed, const struct rs_list *list)
{
	for (int i = 0; i < s->w->nodes; i++)
		expect_clean_node(s, seed, list, i);
	expect_no_actor(s, seed);
}

void rs_watch(struct rs *s)
{
	s->observer =
		(struct hf_memstore_observer){.changed = on_change, .reset = on_reset, .arg = s};
	hf_memstore_observe(s->w->memstore, &s->observer);
}

void rs_unwatch(struct rs *s)
{
	hf_memstore_unobserve(s->w->memstore, &s->observer);
}
