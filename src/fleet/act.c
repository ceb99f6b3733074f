/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/device_taint.h"
#include "fleet/fleet_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "ctl/backoff.h"
#include "json/patch.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Quarantines and releases nodes, and keeps the marks of quarantined nodes true.
 * Input: a round's plan, which was made from watches and may be old. Output: writes to the policy's
 * status and to Nodes.
 *
 * A round that quarantines or releases reads the policy live, the list of all nodes if it would
 * quarantine one, and the DeviceHealth of each node it would act on. Then it decides once more,
 * writes the quarantines that are left into the policy's status, reads each Node live and writes
 * it.
 *
 * A round that only changes marks (note_taken_off, make_graver) charges no budget. So it decides
 * once, from the watches: it reads each Node live, checks that the Node still needs the change
 * (may_write), and writes it.
 *
 * Invariants: each write is guarded by the resourceVersion that was read; a budget is charged
 * before it is used, so a process that dies in between has spent a part of it and done nothing.
 */

#define PAGE_LIMIT 100
/* Wait between a round and the next round, which reports the results and retries failures. A round that has
 * stored the breaker or changed a node is followed at once: the next step depends on it. */
#define AGAIN HF_SECOND
#define SENT_AGAIN (5 * HF_MINUTE)
#define RETRY_MIN HF_SECOND
#define RETRY_MAX (30 * HF_SECOND)

static void go_to_next_node(struct hf_fleet *fleet);
static void take_written_node(struct hf_fleet *fleet, const struct hf_reply *reply);

/* --- ending a round --------------------------------------------------------------------------- */

static void end_round(struct hf_fleet *fleet, bool good)
{
	fleet->step = FLEET_IDLE;
	free(fleet->token);
	fleet->token = NULL;
	hf_map_clear(fleet->looked);
	if (good) {
		fleet->failures = 0;
		if (fleet->worked)
			hf_fleet_look_on(fleet);
		else
			hf_fleet_look_soon(fleet, AGAIN);
		return;
	}
	/* No round starts before this time, not even if a cache changes: the operator's own write
	 * of the status changes a cache. */
	fleet->rests_until = hf_loop_mono(fleet->env.loop) +
			     hf_backoff_delay(RETRY_MIN, RETRY_MAX, fleet->failures++);
	hf_fleet_look_soon(fleet, 0);
}

static void fail_round(struct hf_fleet *fleet, const struct hf_reply *reply)
{
	struct fleet_policy *policy = hf_fleet_find_policy(fleet, fleet->policy);

	if (policy != NULL)
		policy->sent = hf_json_unref(policy->sent);
	/* A conflict means that another client has written: the next round reads again. */
	if (reply->code != HF_E_CONFLICT)
		hf_fleet_log_problem(fleet, hf_healthpolicies.plural, reply->code, reply->message);
	end_round(fleet, false);
}

/* Finds the policy of the round that runs. If the policy is gone, ends the round and returns
 * NULL. */
static struct fleet_policy *policy_of(struct hf_fleet *fleet, struct hf_doc **ret_doc)
{
	struct fleet_policy *policy = hf_fleet_find_policy(fleet, fleet->policy);
	const struct hf_cache_entry *entry =
		hf_cache_get(fleet->policies_cache, NULL, fleet->policy);

	if (policy == NULL || entry == NULL || fleet->nodes == NULL) {
		end_round(fleet, true);
		return NULL;
	}
	*ret_doc = entry->doc;
	return policy;
}

/* --- reading policy, nodes and DeviceHealth live ---------------------------------------------- */

static void on_reply(void *arg, const struct hf_reply *reply);

static void send_request(struct hf_fleet *fleet, struct hf_request *request, enum fleet_step step)
{
	request->timeout = fleet->env.request_timeout;
	fleet->step = step;
	fleet->call = hf_store_request(fleet->env.store, request, on_reply, fleet);
}

static void look_at_policy(struct hf_fleet *fleet)
{
	struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_healthpolicies, .name = fleet->policy};

	send_request(fleet, &request, FLEET_LOOK_POLICY);
}

static void look_at_nodes(struct hf_fleet *fleet)
{
	struct hf_request request = {.verb = HF_VERB_LIST,
				     .resource = &hf_nodes,
				     .limit = PAGE_LIMIT,
				     .continue_token = fleet->token};

	send_request(fleet, &request, FLEET_LOOK_NODES);
}

static void take_nodes(struct hf_fleet *fleet, const struct hf_reply *reply)
{
	for (size_t i = 0; i < reply->n_items; i++) {
		struct hf_doc *doc = reply->items[i];
		char *uid = hf_xstrdup(hf_doc_uid(doc));

		hf_cache_put_live(fleet->nodes, doc);
		/* Nodes that do not fit into the map do not count as read live, so Holdfast does
		 * not act on them. */
		if (!hf_map_put(fleet->looked, hf_doc_name(doc), uid))
			free(uid);
	}
	free(fleet->token);
	fleet->token =
		hf_str_is_empty(reply->continue_token) ? NULL : hf_xstrdup(reply->continue_token);
}

static void look_at_health(struct hf_fleet *fleet)
{
	struct hf_request request = {.verb = HF_VERB_GET,
				     .resource = &hf_devicehealths,
				     .name = fleet->acts[fleet->act].node};

	send_request(fleet, &request, FLEET_LOOK_HEALTH);
}

static bool any_quarantine(const struct hf_fleet *fleet)
{
	for (size_t i = 0; i < fleet->n_acts; i++)
		if (!fleet->acts[i].release)
			return true;
	return false;
}

/* --- deciding again from the live objects ----------------------------------------------------- */

static void set_act(struct fleet_act *act, const struct fleet_seen *seen, size_t i)
{
	const struct hf_health_node *node = &seen->nodes[i];

	*act = (struct fleet_act){.release = seen->plan.decisions[i].doing == HF_HEALTH_DO_RELEASE};
	snprintf(act->node, sizeof(act->node), "%s", node->name);
	snprintf(act->uid, sizeof(act->uid), "%s", seen->items[i].uid);
	snprintf(act->cls, sizeof(act->cls), "%s", hf_health_class_name(node->cls));
	snprintf(act->job, sizeof(act->job), "%s", node->job);
	act->devices = hf_fleet_taints_may_confine(seen->policy, seen->items[i].health);
	act->by_pods = node->by_pods;
	act->counted_at = hf_fleet_counted_at(seen, i);
}

static bool is_act(const struct hf_health_decision *d)
{
	return d->answer == HF_HEALTH_GO &&
	       (d->doing == HF_HEALTH_DO_QUARANTINE || d->doing == HF_HEALTH_DO_RELEASE);
}

static bool was_looked_at(const struct hf_fleet *fleet, const struct fleet_act *act)
{
	for (size_t i = 0; i < fleet->n_acts; i++) {
		const struct fleet_act *old = &fleet->acts[i];

		if (hf_streq(old->node, act->node))
			return old->looked && hf_streq(old->uid, act->uid) &&
			       old->release == act->release &&
			       (act->release ||
				hf_streq(hf_map_get(fleet->looked, act->node), act->uid));
	}
	return false;
}

/* Acts of the new plan, limited to nodes that were read live. */
static size_t confirm_acts(const struct hf_fleet *fleet, const struct fleet_seen *seen,
			   struct fleet_act acts[HF_FLEET_ACTS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < seen->plan.len && n < HF_FLEET_ACTS_MAX; i++) {
		if (!is_act(&seen->plan.decisions[i]))
			continue;
		set_act(&acts[n], seen, i);
		n += was_looked_at(fleet, &acts[n]);
	}
	return n;
}

static void note_begun(struct fleet_seen *seen, const struct fleet_act *act)
{
	struct hf_health_policy_memory *memory = &seen->memory;

	for (size_t i = 0; i < memory->recent.len; i++) {
		struct hf_policy_recent *r = &memory->recent.items[i];

		if (r->done || !hf_streq(r->node, act->node))
			continue;
		r->at = seen->now;
		return;
	}
	/* Cannot overflow: hf_fleet_see allocates a spare entry for every node. */
	memory->recent.items[memory->recent.len++] = (struct hf_policy_recent){
		.node = act->node, .job = act->job, .at = seen->now, .off = HF_TIME_NONE};
}

static struct hf_doc *status_patch(const struct fleet_seen *seen, struct hf_json *status)
{
	struct hf_json *patch = hf_json_object();

	hf_json_set_str(hf_json_ensure_object(patch, "metadata"), "resourceVersion",
			hf_doc_resource_version(seen->doc));
	hf_json_set(patch, "status", status);
	return hf_doc_from_json(patch);
}

static struct hf_json *status_of(struct hf_fleet *fleet, const struct fleet_seen *seen)
{
	struct hf_health_policy_status status;

	hf_fleet_fill_status(fleet, seen, fleet->arena, &status);
	return hf_health_policy_status_json(&status, hf_json_get(hf_doc_json(seen->doc), "status"),
					    seen->now);
}

static void write_status(struct hf_fleet *fleet, const struct fleet_seen *seen,
			 struct hf_json *status, enum fleet_step step)
{
	HF_AUTO_DOC patch = status_patch(seen, status);
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = &hf_healthpolicies,
				     .name = seen->policy->name,
				     .subresource = "status",
				     .patch_type = HF_PATCH_MERGE,
				     .body = patch};

	send_request(fleet, &request, step);
}

static void decide_again(struct hf_fleet *fleet)
{
	struct fleet_act acts[HF_FLEET_ACTS_MAX];
	struct fleet_policy *policy;
	struct fleet_seen seen;
	struct hf_doc *doc;
	size_t n;

	policy = policy_of(fleet, &doc);
	if (policy == NULL)
		return;
	hf_arena_reset(fleet->arena);
	hf_fleet_see(fleet, policy, doc, fleet->arena, &seen);
	n = seen.memory_moved ? 0 : confirm_acts(fleet, &seen, acts);
	memcpy(fleet->acts, acts, n * sizeof(acts[0]));
	fleet->n_acts = n;
	fleet->act = 0;
	fleet->began = seen.now;
	if (n == 0) {
		end_round(fleet, true);
	} else if (any_quarantine(fleet)) {
		for (size_t i = 0; i < n; i++)
			if (!acts[i].release && acts[i].counted_at == HF_TIME_NONE)
				note_begun(&seen, &fleet->acts[i]);
		/* The plan has at most as many quarantines as there is room. */
		hf_assert(seen.memory.recent.len <= HF_HEALTH_POLICY_RECENT_MAX);
		write_status(fleet, &seen, status_of(fleet, &seen), FLEET_RECORD);
	} else {
		go_to_next_node(fleet);
	}
}

/* --- reading and writing each Node ------------------------------------------------------------ */

static void read_node(struct hf_fleet *fleet)
{
	struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_nodes, .name = fleet->acts[fleet->act].node};

	send_request(fleet, &request, FLEET_READ_NODE);
}

/* Neither the policy nor an annotation forbids writes to the Node. */
static bool is_free(const struct fleet_policy *policy, const struct fleet_node *node)
{
	return !node->marks.paused && !policy->paused && !policy->spec.paused &&
	       !hf_streq(policy->spec.mode, "observe");
}

/* The mark on the Node must be written: it lacks the time at which a person removed the taint, or
 * still has that time although the taint is back. */
static bool is_to_note(const struct fleet_node *node)
{
	return node->marked && (node->tainted ? node->mark.off != HF_TIME_NONE
					      : node->mark.off == HF_TIME_NONE ||
							hf_fleet_off_at(node) > node->mark.off);
}

/* An unknown class counts as milder. */
static bool is_milder(const char *name, enum hf_health_class than)
{
	enum hf_health_class cls;

	return than >= HF_HEALTH_SOFTWARE && (!hf_health_class_of(name, &cls) || cls < than);
}

static bool may_be_graver(const struct fleet_node *node, const char *name)
{
	enum hf_health_class cls;

	return node->marked && node->tainted && hf_health_class_of(name, &cls) &&
	       is_milder(node->mark.cls, cls);
}

/* The mark takes single devices out of use, and the Node has no taint. */
static bool is_to_widen(const struct fleet_node *node)
{
	return node->marked && node->mark.devices && node->tainted;
}

/* The Node that was just read still allows the act. */
static bool may_write(struct hf_fleet *fleet, const struct fleet_policy *policy,
		      const struct fleet_act *act)
{
	const struct hf_cache_entry *entry = hf_cache_get(fleet->nodes, NULL, act->node);
	const struct fleet_node *node = entry == NULL ? NULL : entry->view;
	const struct fleet_health *health = hf_fleet_find_health(fleet, act->node);

	if (node == NULL || !hf_streq(entry->uid, act->uid) || !is_free(policy, node))
		return false;
	if (act->note)
		return is_to_note(node);
	if (act->graver)
		return may_be_graver(node, act->cls);
	if (act->widen)
		return is_to_widen(node);
	if (health == NULL)
		return false;
	if (!hf_streq(node->marks.boot_id, health->boot_id) || node->marks.boot_id == NULL)
		return false;
	return act->release ? node->marked && node->tainted : !node->tainted;
}

static struct hf_doc *note_patch(const struct hf_fleet *fleet, const struct fleet_act *act,
				 struct hf_doc *doc)
{
	const struct fleet_node *node = hf_fleet_find_node(fleet, act->node);
	struct hf_quarantine_mark mark = node->mark;

	mark.off = hf_fleet_off_at(node);
	if (act->off > mark.off && !node->tainted)
		mark.off = act->off;
	/* The taint was removed while no operator ran: record the time of finding it. */
	if (mark.off == HF_TIME_NONE && !node->tainted)
		mark.off = hf_fleet_now(fleet);
	return hf_node_mark_patch(doc, &mark);
}

static struct hf_doc *act_patch(const struct hf_fleet *fleet, const struct fleet_policy *policy,
				const struct fleet_act *act, struct hf_doc *doc)
{
	const struct hf_quarantine_mark mark = {
		.policy = policy->name,
		.cls = act->cls,
		.at = act->counted_at != HF_TIME_NONE ? act->counted_at : fleet->began,
		.epoch = policy->status.memory.breaker_epoch,
		.devices = act->devices,
		.off = HF_TIME_NONE};

	return hf_node_quarantine_patch(doc, act->release ? NULL : &mark, hf_fleet_now(fleet));
}

/* Makes a patch that writes a graver class into the mark of an existing quarantine. */
static struct hf_doc *graver_patch(const struct hf_fleet *fleet, const struct fleet_act *act,
				   struct hf_doc *doc)
{
	struct hf_quarantine_mark mark = hf_fleet_find_node(fleet, act->node)->mark;

	mark.cls = act->cls;
	return hf_node_quarantine_patch(doc, &mark, hf_fleet_now(fleet));
}

/* Makes a patch that puts the taint on a node of which only devices were out of use. */
static struct hf_doc *widen_patch(const struct hf_fleet *fleet, const struct fleet_act *act,
				  struct hf_doc *doc)
{
	struct hf_quarantine_mark mark = hf_fleet_find_node(fleet, act->node)->mark;

	mark.devices = false;
	return hf_node_quarantine_patch(doc, &mark, hf_fleet_now(fleet));
}

static struct hf_doc *patch_of(const struct hf_fleet *fleet, const struct fleet_policy *policy,
			       const struct fleet_act *act, struct hf_doc *doc)
{
	if (act->note)
		return note_patch(fleet, act, doc);
	if (act->widen)
		return widen_patch(fleet, act, doc);
	return act->graver ? graver_patch(fleet, act, doc) : act_patch(fleet, policy, act, doc);
}

static void write_node(struct hf_fleet *fleet, struct hf_doc *doc)
{
	const struct fleet_act *act = &fleet->acts[fleet->act];
	struct fleet_policy *policy;
	struct hf_doc *stored;
	HF_AUTO_DOC patch = NULL;

	policy = policy_of(fleet, &stored);
	if (policy == NULL)
		return;
	if (!may_write(fleet, policy, act)) {
		fleet->act++;
		go_to_next_node(fleet);
		return;
	}
	patch = patch_of(fleet, policy, act, doc);
	if (patch == NULL) {
		take_written_node(
			fleet,
			&(struct hf_reply){
				.code = HF_E_BAD_REQUEST,
				.message =
					"Holdfast leaves the Node's taint unchanged: the Node object is too large to read as a whole"});
		return;
	}
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = &hf_nodes,
				     .name = act->node,
				     .patch_type = HF_PATCH_MERGE,
				     .body = patch};

	send_request(fleet, &request, FLEET_WRITE_NODE);
}

/* Leaves this node alone for a while and goes on with the others. */
static void note_refused_node(struct hf_fleet *fleet, const struct fleet_act *act,
			      const struct hf_reply *reply)
{
	if (reply->code == HF_E_CONFLICT) {
		fleet->spoilt = true;
		go_to_next_node(fleet);
		return;
	}
	hf_fleet_refuse(fleet, act->uid, reply->retry_after, true);
	if (hf_fleet_is_server_failure(reply->code)) {
		fail_round(fleet, reply);
		return;
	}
	hf_fleet_log_problem(fleet, hf_healthpolicies.plural, reply->code, reply->message);
	go_to_next_node(fleet);
}

/* Key under which the table of refusals counts rewrites of a mark's class. A tool may restore the
 * old class again and again, so the wait before each rewrite grows. */
static char *graver_key(const char *node)
{
	return hf_xasprintf("graver/%s", node);
}

static void tell_act(struct hf_fleet *fleet, const struct fleet_act *act)
{
	char message[512];

	if (act->release)
		snprintf(message, sizeof(message),
			 "policy %s removed taint " HF_QUARANTINE_TAINT ": %s", fleet->policy,
			 act->by_pods ? "the remaining fault needs a pod of the driver or device "
					"plugin, which the taint would keep away"
				      : "its faults have ended");
	else if (act->widen)
		snprintf(message, sizeof(message),
			 "policy %s put on taint " HF_QUARANTINE_TAINT ":NoSchedule: %.300s",
			 fleet->policy,
			 hf_str_or(hf_fleet_taints_why_node(fleet->taints, act->node), "unknown"));
	else if (act->devices && !act->graver)
		snprintf(
			message, sizeof(message),
			"%s: policy %s takes the failed devices out of use; the node's other devices "
			"stay in use",
			act->cls, fleet->policy);
	else
		snprintf(message, sizeof(message),
			 "%s: policy %s %s taint " HF_QUARANTINE_TAINT
			 ":NoSchedule; no new pods until the fault ends",
			 act->cls, fleet->policy,
			 act->graver ? "wrote this graver class into" : "put on");
	hf_fleet_event_node(fleet, act->node, !act->release,
			    act->release ? "Released" : "Quarantined", message);
}

static void take_written_node(struct hf_fleet *fleet, const struct hf_reply *reply)
{
	const struct fleet_act *act = &fleet->acts[fleet->act];
	const char *what = act->release ? "release" : "quarantine";

	if (!act->note && !act->graver && !act->widen)
		hf_fleet_count_act(fleet, what, reply->code == 0 ? "done" : "failed");
	if (reply->code != 0) {
		fleet->act++;
		note_refused_node(fleet, act, reply);
		return;
	}
	hf_map_remove(fleet->refusals, act->uid);
	fleet->worked |= !act->note && !act->graver;
	hf_cache_put_reply(fleet->nodes, reply->object);
	fleet->act++;
	if (act->release)
		hf_fleet_forget_late(fleet, act->node);
	if (act->graver) {
		HF_AUTOFREE char *key = graver_key(act->node);

		hf_fleet_refuse(fleet, key, 0, true);
	}
	if (!act->note)
		tell_act(fleet, act);
	go_to_next_node(fleet);
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Reads the next Node, or ends the round. */
static void go_to_next_node(struct hf_fleet *fleet)
{
	if (fleet->act < fleet->n_acts)
		read_node(fleet);
	else
		end_round(fleet, !fleet->spoilt);
}

static void health_read(struct hf_fleet *fleet, const struct hf_reply *reply)
{
	struct fleet_act *act = &fleet->acts[fleet->act++];

	if (reply->code == 0) {
		act->looked = true;
		hf_cache_put_live(fleet->health, reply->object);
	}
	if (fleet->act < fleet->n_acts)
		look_at_health(fleet);
	else
		decide_again(fleet);
}

static void node_read(struct hf_fleet *fleet, const struct hf_reply *reply)
{
	HF_AUTO_DOC doc = hf_doc_ref(reply->object);

	if (reply->code == HF_E_NOT_FOUND) {
		fleet->act++;
		go_to_next_node(fleet);
		return;
	}
	hf_cache_put_live(fleet->nodes, doc);
	write_node(fleet, doc);
}

static void status_written(struct hf_fleet *fleet, const struct hf_reply *reply)
{
	hf_cache_put_reply(fleet->policies_cache, reply->object);
	if (fleet->step == FLEET_RECORD)
		go_to_next_node(fleet);
	else
		end_round(fleet, true);
}

static void take_good_reply(struct hf_fleet *fleet, const struct hf_reply *reply)
{
	switch (fleet->step) {
	case FLEET_LOOK_POLICY:
		hf_cache_put_live(fleet->policies_cache, reply->object);
		if (any_quarantine(fleet))
			look_at_nodes(fleet);
		else
			look_at_health(fleet);
		break;
	case FLEET_LOOK_NODES:
		take_nodes(fleet, reply);
		if (fleet->token != NULL)
			look_at_nodes(fleet);
		else
			look_at_health(fleet);
		break;
	case FLEET_LOOK_HEALTH: health_read(fleet, reply); break;
	case FLEET_READ_NODE: node_read(fleet, reply); break;
	case FLEET_WRITE_NODE: take_written_node(fleet, reply); break;
	case FLEET_RECORD:
	case FLEET_STATUS: status_written(fleet, reply); break;
	case FLEET_IDLE: hf_assert(false);
	}
}

/* The object may be gone since the plan. A failed write to a Node is reported in either case. */
static bool may_fail(const struct hf_fleet *fleet, int code)
{
	return fleet->step == FLEET_WRITE_NODE ||
	       (code == HF_E_NOT_FOUND &&
		(fleet->step == FLEET_LOOK_HEALTH || fleet->step == FLEET_READ_NODE));
}

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_fleet *fleet = arg;

	fleet->call = NULL;
	hf_fleet_note_reply(fleet, reply);
	if (fleet->nodes == NULL)
		end_round(fleet, true);
	else if (reply->code != 0 && !may_fail(fleet, reply->code))
		fail_round(fleet, reply);
	else
		take_good_reply(fleet, reply);
}

/* --- beginning acts --------------------------------------------------------------------------- */

/* The class in a node's mark is milder than its worst confirmed fault. A pod that tolerates the
 * taint of a slow device must not land on a device that has died since. The class may only become
 * graver: otherwise a fault that comes and goes would cause a write each time. */
static bool is_graver(const struct fleet_seen *seen, size_t i)
{
	const struct fleet_health *health = seen->items[i].health;
	const struct hf_health_node *node = &seen->nodes[i];

	if (!node->owned || node->excluded || health == NULL || hf_fleet_is_halted(seen) ||
	    hf_fleet_is_stale(seen, i))
		return false;
	return is_milder(seen->items[i].node->mark.cls, health->sure_cls);
}

static bool may_write_mark(const struct hf_fleet *fleet, const struct fleet_seen *seen, size_t i,
			   bool graver)
{
	HF_AUTOFREE char *key = graver_key(seen->items[i].name);

	return is_free(seen->policy, seen->items[i].node) &&
	       seen->now >= seen->nodes[i].not_before &&
	       (!graver || seen->now >= hf_fleet_not_before(fleet, key));
}

static struct fleet_act *add_mark(struct hf_fleet *fleet, const struct fleet_seen *seen, size_t i)
{
	struct fleet_act *act = &fleet->acts[fleet->n_acts++];

	set_act(act, seen, i);
	act->off = hf_fleet_seen_off_at(seen, &seen->items[i]);
	return act;
}

static bool begin_marks(struct hf_fleet *fleet, const struct fleet_seen *seen)
{
	if (fleet->n_acts == 0)
		return false;
	snprintf(fleet->policy, sizeof(fleet->policy), "%s", seen->policy->name);
	go_to_next_node(fleet);
	return true;
}

/* Writes into Nodes when a person removed Holdfast's taint; runs before all other acts. Old
 * evidence must not bring that taint back, and a later leader has to know the time of the removal.
 * If the taint is back, the mark loses the time. */
static bool note_taken_off(struct hf_fleet *fleet, const struct fleet_seen *seen)
{
	for (size_t i = 0; i < seen->len && fleet->n_acts < HF_FLEET_ACTS_MAX; i++)
		if (is_to_note(seen->items[i].node) && may_write_mark(fleet, seen, i, false))
			add_mark(fleet, seen, i)->note = true;
	return begin_marks(fleet, seen);
}

/* Puts the taint on nodes of which a failed device cannot be taken out of use alone. Such a node was charged to the
 * budgets when it was quarantined, and an agent that has become silent does not end its quarantine. */
static bool widen_quarantines(struct hf_fleet *fleet, const struct fleet_seen *seen)
{
	for (size_t i = 0; i < seen->len && fleet->n_acts < HF_FLEET_ACTS_MAX; i++) {
		if (!is_to_widen(seen->items[i].node) || hf_fleet_is_halted(seen) ||
		    hf_fleet_is_outdated(seen, i) || !may_write_mark(fleet, seen, i, false) ||
		    hf_fleet_taints_why_node(fleet->taints, seen->items[i].name) == NULL)
			continue;
		add_mark(fleet, seen, i)->widen = true;
	}
	return begin_marks(fleet, seen);
}

/* Writes a graver class into the marks of Nodes; runs only if the round has no other act. */
static bool make_graver(struct hf_fleet *fleet, const struct fleet_seen *seen)
{
	for (size_t i = 0; i < seen->len && fleet->n_acts < HF_FLEET_ACTS_MAX; i++) {
		struct fleet_act *act;

		if (!is_graver(seen, i) || !may_write_mark(fleet, seen, i, true))
			continue;
		act = add_mark(fleet, seen, i);
		act->graver = true;
		snprintf(act->cls, sizeof(act->cls), "%s",
			 hf_health_class_name(seen->items[i].health->sure_cls));
	}
	return begin_marks(fleet, seen);
}

bool hf_fleet_act(struct hf_fleet *fleet, const struct fleet_seen *seen)
{
	fleet->n_acts = fleet->act = 0;
	fleet->spoilt = fleet->worked = false;
	/* Store the breaker before all acts: it must survive this process. */
	if (seen->memory_moved)
		return false;
	if (note_taken_off(fleet, seen) || widen_quarantines(fleet, seen))
		return true;
	for (size_t i = 0; i < seen->plan.len && fleet->n_acts < HF_FLEET_ACTS_MAX; i++)
		if (is_act(&seen->plan.decisions[i]))
			set_act(&fleet->acts[fleet->n_acts++], seen, i);
	if (fleet->n_acts == 0)
		return make_graver(fleet, seen);
	snprintf(fleet->policy, sizeof(fleet->policy), "%s", seen->policy->name);
	look_at_policy(fleet);
	return true;
}

/* The same status was written less than SENT_AGAIN ago. An API server with an older CRD drops some
 * fields, so that the stored status never equals the written one: without this limit each round
 * would write. */
static bool is_sent(const struct hf_fleet *fleet, const struct fleet_seen *seen,
		    const struct hf_json *status)
{
	return hf_json_equal(seen->policy->sent, status) &&
	       hf_loop_mono(fleet->env.loop) - seen->policy->sent_at < SENT_AGAIN;
}

bool hf_fleet_write_status(struct hf_fleet *fleet, const struct fleet_seen *seen)
{
	const struct hf_json *stored = hf_json_get(hf_doc_json(seen->doc), "status");
	HF_AUTO_JSON status = status_of(fleet, seen);
	HF_AUTO_JSON merged = hf_json_merge_patch(stored, status);

	if (stored != NULL && (hf_json_equal(merged, stored) || is_sent(fleet, seen, status)))
		return false;
	fleet->worked = seen->memory_moved;
	hf_json_unref(seen->policy->sent);
	seen->policy->sent = hf_json_copy(status);
	seen->policy->sent_at = hf_loop_mono(fleet->env.loop);
	snprintf(fleet->policy, sizeof(fleet->policy), "%s", seen->policy->name);
	write_status(fleet, seen, hf_steal(&status), FLEET_STATUS);
	return true;
}
