/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/device_taint.h"

#include "api/device_health.h"
#include "base/mem.h"
#include "base/str.h"
#include "ctl/backoff.h"
#include "fleet/device_taint_plan.h"
#include "fleet/given_pods.h"
#include "fleet/mend_internal.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The controller of DeviceTaintRules: which version the cluster serves, the cache of Holdfast's rules, and passes.
 *
 * A pass reads one Node, its DeviceHealth and its ResourceSlices live, asks device_taint_plan.c, and makes at most one
 * write. The next pass reads again, so each written rule is compared once more with the slices.
 * Invariants: one pass runs at a time. A create fails if the rule exists, a change is guarded by the resourceVersion,
 * a delete by the UID. Only times are kept in memory: of the next look, and since when a device plugin offers a failed
 * device. The mark of the Node says which nodes need rules, and the rules name their node and device.
 */

#define PAGE_LIMIT 100
#define RULES_MAX ((size_t)20000)
#define NODES_MAX ((size_t)20000)
/* Slices of one node: a driver has one or a few. */
#define SLICES_MAX 64
#define ARENA_MAX ((size_t)64 << 20)
/* A cluster may get the API later. */
#define DISCOVER_EVERY (10 * HF_MINUTE)
#define LOOK_EVERY (5 * HF_MINUTE)
#define LOOK_WAITING (5 * HF_SECOND)
/* A plugin learns of a fault by itself, and the kubelet writes the Node every 10 s. */
#define PLUGIN_WAIT (30 * HF_SECOND)
#define RETRY_MIN HF_SECOND
#define RETRY_MAX HF_MINUTE

/* The newest version first. v1alpha3 is not asked for: its selectors have other meanings. */
static const struct hf_resource rules_versions[] = {{.group = "resource.k8s.io",
						     .version = "v1",
						     .plural = "devicetaintrules",
						     .singular = "devicetaintrule",
						     .kind = "DeviceTaintRule"},
						    {.group = "resource.k8s.io",
						     .version = "v1beta2",
						     .plural = "devicetaintrules",
						     .singular = "devicetaintrule",
						     .kind = "DeviceTaintRule"}};

/* What is kept of a node that needs rules, or has some. */
struct taint_node {
	bool would;         /* mode observe: the node would be quarantined */
	bool halted;        /* the breaker is open, or the policy is paused: nothing new is done */
	bool last_rung;     /* every remedy was tried and a person is asked: pods leave at once */
	bool acts;          /* a Remediation of the node is under way, or waits */
	int32_t late_limit; /* see find_late_limit */
	uint64_t key;       /* of the objects' versions in the last round */
	hf_time due;        /* monotonic time of the next look; 0: at once */
	hf_time offered_since; /* monotonic time: a plugin offers a failed device; NONE: none does */
	struct hf_given_pods given; /* since that time */
	char *why_node;
};

enum taint_step {
	TAINT_IDLE,
	TAINT_DISCOVER,
	TAINT_NODE,
	TAINT_HEALTH,
	TAINT_SLICES,
	TAINT_WRITE,
	TAINT_TELL
};

struct fleet_taints {
	struct hf_fleet *fleet;
	struct hf_map *nodes; /* name → struct taint_node */
	struct hf_timer *timer;
	bool stopped;
	const struct hf_resource *kind; /* NULL: the cluster serves no DeviceTaintRule */
	bool asked;                     /* the discovery has had an answer */
	size_t version;                 /* index of the version that is asked for */
	hf_time discover_at;
	struct hf_cache *rules;

	/* The pass under way. */
	enum taint_step step;
	struct hf_call *call;
	char node[254];
	struct hf_arena *arena;
	struct hf_doc *node_doc, *health_doc;
	struct hf_doc *slices[SLICES_MAX];
	size_t slices_len;
	bool slices_cut; /* there are more slices than a pass can read */
	char *token;
	bool deletes;
	bool forget; /* the node needs no rules and has none */
	/* the last rule that this process deleted */
	char deleted_name[254], deleted_uid[64];
	unsigned failures;
};

struct rule_view {
	struct hf_doc *doc;
	struct hf_device_taint rule;
};

/* ---- nodes --------------------------------------------------------------------------------------- */

static hf_time read_clock(const struct fleet_taints *t)
{
	return hf_loop_mono(t->fleet->env.loop);
}

static void free_node(void *arg)
{
	struct taint_node *node = arg;

	free(node->why_node);
	free(node);
}

static struct taint_node *ensure_node(struct fleet_taints *t, const char *name)
{
	struct taint_node *node = hf_map_get(t->nodes, name);

	if (node != NULL)
		return node;
	node = hf_xcalloc(1, sizeof(*node));
	node->offered_since = HF_TIME_NONE;
	if (hf_map_put(t->nodes, name, node))
		return node;
	free(node);
	return NULL;
}

static void look_soon(struct fleet_taints *t, hf_time within)
{
	if (t->stopped ||
	    (hf_timer_armed(t->timer) && hf_timer_due(t->timer) <= read_clock(t) + within))
		return;
	hf_timer_arm(t->timer, within);
}

void hf_fleet_taints_wake_node(struct fleet_taints *t, const char *name)
{
	struct taint_node *node = t == NULL ? NULL : hf_map_get(t->nodes, name);

	if (node == NULL)
		return;
	node->due = 0;
	look_soon(t, 0);
}

const char *hf_fleet_taints_why_node(const struct fleet_taints *t, const char *node)
{
	const struct taint_node *found = hf_map_get(t->nodes, node);

	return found == NULL ? NULL : found->why_node;
}

bool hf_fleet_taints_may_confine(const struct fleet_policy *policy,
				 const struct fleet_health *health)
{
	return policy->spec.quarantine_devices && health != NULL && health->confined;
}

/* ---- the cache of rules ---------------------------------------------------------------------------- */

static void *read_rule(void *arg HF_UNUSED, struct hf_doc *doc)
{
	struct rule_view *view = hf_xcalloc(1, sizeof(*view));

	if (!hf_device_taint_read(doc, &view->rule)) {
		free(view);
		return NULL;
	}
	view->doc = hf_doc_ref(doc);
	return view;
}

static void free_rule(void *arg)
{
	struct rule_view *view = arg;

	hf_doc_unref(view->doc);
	free(view);
}

/* A rule of Holdfast is gone, and this process has not deleted it: a person wants the device back. As with the taint
 * of a node, the device stays in use until there is newer evidence. */
static void note_taken_off(struct fleet_taints *t, const struct rule_view *view)
{
	struct hf_fleet *fleet = t->fleet;
	struct fleet_node *node = hf_fleet_find_node(fleet, view->rule.node);

	if (hf_streq(hf_doc_uid(view->doc), t->deleted_uid) || node == NULL || !node->marked ||
	    !node->tainted || !node->mark.devices || !hf_cache_synced(t->rules))
		return;
	node->tainted = false;
	node->off_at = hf_fleet_now(fleet) / HF_US * HF_US;
	hf_fleet_look_on(fleet);
}

static void rule_changed(void *arg, enum hf_cache_change change HF_UNUSED,
			 const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	struct fleet_taints *t = arg;
	const struct hf_cache_entry *entry = now != NULL ? now : before;
	struct taint_node *node;

	if (entry != NULL) {
		const struct rule_view *view = entry->view;

		if (now == NULL)
			note_taken_off(t, view);
		node = ensure_node(t, view->rule.node);
		if (node != NULL)
			node->due = 0;
	}
	look_soon(t, 0);
}

static void rules_problem(void *arg, int code, const char *message)
{
	const struct fleet_taints *t = arg;

	hf_fleet_log_problem(t->fleet, t->kind->plural, code, message);
}

static void note_reply(void *arg, const struct hf_reply *reply)
{
	const struct fleet_taints *t = arg;

	hf_fleet_note_reply(t->fleet, reply);
}

static void create_cache(struct fleet_taints *t)
{
	const struct hf_cache_options options = {
		.loop = t->fleet->env.loop,
		.store = t->fleet->env.store,
		.resource = t->kind,
		.label_selector = HF_DEVICE_TAINT_OWNER_LABEL "=" HF_DEVICE_TAINT_OWNER,
		.entries_max = RULES_MAX,
		.page_limit = PAGE_LIMIT,
		.seed = t->fleet->env.seed ^ hf_hash_str(rules_versions[0].plural),
		.decode = read_rule,
		.view_free = free_rule,
		.changed = rule_changed,
		.problem = rules_problem,
		.heard = note_reply,
		.arg = t,
	};

	t->rules = hf_cache_create(&options);
	hf_cache_start(t->rules);
}

/* ---- the end of a pass ------------------------------------------------------------------------------- */

static void drop_reads(struct fleet_taints *t)
{
	t->node_doc = hf_doc_unref(t->node_doc);
	t->health_doc = hf_doc_unref(t->health_doc);
	for (size_t i = 0; i < t->slices_len; i++)
		t->slices[i] = hf_doc_unref(t->slices[i]);
	t->slices_len = 0;
	t->slices_cut = false;
	free(t->token);
	t->token = NULL;
	hf_arena_reset(t->arena);
}

static void end_pass(struct fleet_taints *t, bool again, hf_time wait)
{
	struct taint_node *node = hf_map_get(t->nodes, t->node);

	/* What has changed since the pass began is due at once. */
	if (node != NULL && again)
		node->due = hf_time_add(read_clock(t), wait);
	else if (node != NULL && node->due != 0 && t->forget)
		hf_map_remove(t->nodes, t->node);
	else if (node != NULL && node->due != 0)
		node->due = hf_time_add(read_clock(t), LOOK_EVERY);
	t->step = TAINT_IDLE;
	drop_reads(t);
	look_soon(t, 0);
}

static void fail_pass(struct fleet_taints *t, const struct hf_reply *reply)
{
	hf_time wait = hf_backoff_delay(RETRY_MIN, RETRY_MAX, t->failures++);

	/* The next pass reads again. */
	if (reply->code != HF_E_CONFLICT && reply->code != HF_E_EXISTS)
		hf_fleet_log_problem(t->fleet, rules_versions[0].plural, reply->code,
				     reply->message);
	end_pass(t, true, wait);
}

static void note_why_node(struct fleet_taints *t, struct taint_node *node, const char *why)
{
	bool same = hf_streq(node->why_node, why);

	free(node->why_node);
	node->why_node = why == NULL ? NULL : hf_xstrdup(why);
	if (!same)
		hf_fleet_look_on(t->fleet);
}

/* ---- the write --------------------------------------------------------------------------------------- */

static void on_reply(void *arg, const struct hf_reply *reply);

static void send_request(struct fleet_taints *t, struct hf_request *request, enum taint_step step)
{
	request->timeout = t->fleet->env.request_timeout;
	t->step = step;
	t->call = hf_store_request(t->fleet->env.store, request, on_reply, t);
}

static void take_written(struct fleet_taints *t, const struct hf_reply *reply)
{
	struct taint_node *node = hf_map_get(t->nodes, t->node);

	if (reply->code != 0 && !(t->deletes && reply->code == HF_E_NOT_FOUND)) {
		/* The API server may still perform the delete, so deleted_uid stays. */
		/* No later try would succeed, so the node is taken out of use. */
		if (!t->deletes && node != NULL &&
		    (reply->code == HF_E_FORBIDDEN || reply->code == HF_E_INVALID))
			note_why_node(t, node, reply->message);
		fail_pass(t, reply);
		return;
	}
	t->failures = 0;
	if (!t->deletes && reply->object != NULL)
		hf_cache_put_reply(t->rules, reply->object);
	else if (t->deletes)
		hf_cache_put_gone(t->rules, NULL, t->deleted_name, t->deleted_uid);
	end_pass(t, true, 0);
}

static void write_rule(struct fleet_taints *t, const struct hf_device_taint_plan *plan,
		       const struct rule_view *view)
{
	HF_AUTO_DOC body = NULL;
	struct hf_request request = {.resource = t->kind};

	t->deletes = plan->act == HF_DEVICE_TAINT_DELETE;
	if (plan->act == HF_DEVICE_TAINT_CREATE) {
		request.verb = HF_VERB_CREATE;
		body = hf_doc_from_json(hf_device_taint_json(&plan->rule, t->kind->version,
							     hf_doc_uid(t->node_doc)));
	} else if (plan->act == HF_DEVICE_TAINT_CHANGE) {
		request.verb = HF_VERB_PATCH;
		request.name = view->rule.name;
		request.patch_type = HF_PATCH_MERGE;
		body = hf_doc_from_json(hf_device_taint_patch(hf_doc_resource_version(view->doc),
							      plan->rule.cls, plan->rule.effect));
	} else {
		request.verb = HF_VERB_DELETE;
		request.name = view->rule.name;
		request.precondition_uid = hf_doc_uid(view->doc);
		request.grace_seconds = HF_GRACE_DEFAULT;
		snprintf(t->deleted_name, sizeof(t->deleted_name), "%s", view->rule.name);
		snprintf(t->deleted_uid, sizeof(t->deleted_uid), "%s", hf_doc_uid(view->doc));
	}
	request.body = body;
	send_request(t, &request, TAINT_WRITE);
}

/* ---- the decision ------------------------------------------------------------------------------------ */

/* Returns how many devices of the resource the kubelet does not offer: capacity less allocatable, or INT32_MAX if the kubelet
 * offers none. */
static int64_t count_withheld_of(const struct hf_json *status, const char *resource)
{
	const char *all = hf_json_path_str(status, "capacity", resource, NULL);
	const char *offered = hf_json_path_str(status, "allocatable", resource, NULL);
	int64_t a, b;

	if (all == NULL || offered == NULL || hf_str_to_i64(all, 0, INT32_MAX, &a, NULL) != 0 ||
	    hf_str_to_i64(offered, 0, INT32_MAX, &b, NULL) != 0)
		return 0;
	/* Without the plugin no pod is given any device. After five minutes the kubelet calls the capacity 0 too. */
	return b == 0 ? INT32_MAX : a - b;
}

/* Returns the most devices of any resource. A plugin that is removed leaves its resource behind with capacity 0: that tells
 * nothing of the other plugins. If all plugins are away, no pod is given any device. */
static int64_t count_withheld_of_any(const struct hf_json *status)
{
	const struct hf_json *capacity = hf_json_get(status, "capacity");
	int64_t most = 0, left_over = 0;
	bool present = false;
	struct hf_json *value;
	const char *key;

	for (void *it = hf_json_next(capacity, NULL, &key, &value); it != NULL;
	     it = hf_json_next(capacity, it, &key, &value)) {
		bool is_left_over = hf_streq(hf_json_str(value, NULL), "0");
		int64_t *to = is_left_over ? &left_over : &most;
		int64_t n;

		if (strchr(key, '/') == NULL)
			continue;
		n = count_withheld_of(status, key);
		*to = n > *to ? n : *to;
		present |= !is_left_over;
	}
	return present ? most : left_over;
}

static int64_t count_withheld(void *arg, const char *resource)
{
	const struct fleet_taints *t = arg;
	const struct hf_json *status = hf_json_get(hf_doc_json(t->node_doc), "status");

	return resource != NULL ? count_withheld_of(status, resource)
				: count_withheld_of_any(status);
}

/* The effect of the rules of failed devices; NULL: the node needs no rules. */
static const char *find_effect(const struct fleet_taints *t, const struct taint_node *node,
			       const struct hf_quarantine_mark *mark, bool marked)
{
	const struct fleet_node *view = hf_fleet_find_node(t->fleet, t->node);

	if (t->node_doc == NULL)
		return NULL;
	/* A person has deleted a rule, and the mark does not say so yet. */
	if (view != NULL && view->marked && view->mark.devices && !view->tainted)
		return NULL;
	if (marked && mark->devices && mark->off == HF_TIME_NONE)
		return node->last_rung ? "NoExecute" : "NoSchedule";
	return node->would && !marked ? "None" : NULL;
}

static size_t collect_rules(const struct fleet_taints *t, const struct rule_view **ret_views,
			    struct hf_device_taint *ret_rules)
{
	const struct hf_cache_entry *entry;
	size_t len = 0;

	if (t->rules == NULL)
		return 0;
	for (size_t it = 0;
	     len < HF_DEVICE_TAINTS_MAX && (entry = hf_cache_next(t->rules, &it)) != NULL;) {
		const struct rule_view *view = entry->view;

		if (!hf_streq(view->rule.node, t->node))
			continue;
		ret_views[len] = view;
		ret_rules[len++] = view->rule;
	}
	return len;
}

/* What the pass has read of the node. */
struct pass_facts {
	struct hf_quarantine_mark mark;
	struct hf_node_marks marks;
	struct hf_device_health health;
	bool marked;
	bool stays; /* a plugin offers a failed device, and the node is not taken for it */
	const struct rule_view *views[HF_DEVICE_TAINTS_MAX];
	struct hf_dra_slice slices[SLICES_MAX];
	struct hf_device_taint rules[HF_DEVICE_TAINTS_MAX];
	struct hf_device_taint_view view;
};

static void read_facts(struct fleet_taints *t, struct pass_facts *facts)
{
	struct hf_device_taint_view *view = &facts->view;

	*view = (struct hf_device_taint_view){.node = t->node,
					      .slices = facts->slices,
					      .rules = facts->rules,
					      .withheld = count_withheld,
					      .arg = t};
	if (t->node_doc != NULL) {
		hf_node_marks_read(t->node_doc, t->arena, &facts->marks);
		facts->marked =
			hf_quarantine_mark_read(facts->marks.quarantine, t->arena, &facts->mark);
	}
	if (t->health_doc != NULL) {
		hf_device_health_read(t->health_doc, t->arena, &facts->health);
		/* A report of another boot proves nothing, neither for a device nor against it. */
		if (hf_streq(facts->health.boot_id, facts->marks.boot_id))
			view->health = &facts->health;
	}
	for (size_t i = 0; i < t->slices_len; i++)
		view->slices_len +=
			hf_slice_read(t->slices[i], t->arena, &facts->slices[view->slices_len]);
	view->rules_len = collect_rules(t, facts->views, facts->rules);
}

/* Tells the jobs which failed devices no pod can be given: then their pods may run on the node. Returns false if the
 * DeviceHealth says so already. */
static bool tell_jobs(struct fleet_taints *t, const struct pass_facts *facts, bool done)
{
	const struct hf_device_taint_view *view = &facts->view;
	const char *is = hf_json_path_str(hf_doc_json(t->health_doc), "metadata", "annotations",
					  HF_DEVICES_OUT_ANNOTATION, NULL);
	bool quarantined = view->effect != NULL && facts->marked;
	const char *text = quarantined && done ? hf_device_taint_list(view, t->arena) : NULL;
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = &hf_devicehealths,
				     .name = t->node,
				     .patch_type = HF_PATCH_MERGE};
	HF_AUTO_DOC body = NULL;

	if (t->health_doc == NULL || hf_streq(text, is))
		return false;
	body = hf_device_health_note(t->health_doc, HF_DEVICES_OUT_ANNOTATION, text);
	request.body = body;
	send_request(t, &request, TAINT_TELL);
	return true;
}

static void perform_plan(struct fleet_taints *t, const struct pass_facts *facts,
			 const struct hf_device_taint_plan *plan)
{
	const struct hf_device_taint_view *view = &facts->view;
	/* Nothing is left to do for any failed device. */
	bool done = plan->why_node == NULL && plan->why_offered == NULL && view->health != NULL &&
		    view->may_create;

	if (plan->act == HF_DEVICE_TAINT_WAIT)
		end_pass(t, true, LOOK_WAITING);
	else if (plan->act == HF_DEVICE_TAINT_NOTHING && tell_jobs(t, facts, done))
		return;
	else if (plan->act == HF_DEVICE_TAINT_NOTHING || t->rules == NULL)
		end_pass(t, plan->why_offered != NULL && plan->why_node == NULL && !facts->stays,
			 LOOK_WAITING);
	else
		write_rule(t, plan,
			   plan->act == HF_DEVICE_TAINT_CREATE ? NULL : facts->views[plan->at]);
}

static bool is_left_alone(const struct pass_facts *facts, const struct fleet_policy *policy)
{
	return facts->marks.paused || (policy != NULL && (policy->paused || policy->spec.paused));
}

/* A Remediation of the node is not at an end. task: a policy asks a person; else: it will end the work on the node. */
static bool has_open_act(const struct hf_fleet *fleet, const char *node, bool task)
{
	const struct hf_cache_entry *entry;

	for (size_t it = 0; (entry = hf_cache_next(fleet->mend->cache, &it)) != NULL;) {
		const struct mend_object *object = entry->view;

		if (object->readable && !object->r.spec.dry_run &&
		    (task ? object->rung == HF_MEND_PERSON &&
				     hf_streq(object->r.spec.requested_by, "policy")
			  : hf_mend_disturbs_work(object->rung)) &&
		    !hf_mend_is_final(object->phase) && hf_streq(object->r.spec.node, node))
			return true;
	}
	return false;
}

/* How many pods that came later are evicted before a node gets the taint whose plugin offers a failed device. 0: the
 * node gets it at once. */
static int32_t find_late_limit(const struct fleet_policy *policy)
{
	return policy != NULL && policy->spec.quarantine_devices && policy->spec.drain_evicts &&
			       hf_streq(policy->spec.mode, "remediate")
		       ? policy->spec.late_pods
		       : 0;
}

static void tell_offered(struct fleet_taints *t, struct fleet_policy *policy,
			 const struct pass_facts *facts, const char *why_offered)
{
	char message[512];

	if (!hf_fleet_is_news(policy, "offered", t->node, facts->mark.at))
		return;
	snprintf(message, sizeof(message),
		 "%.250s: the node's other devices stay in use, and pods that are given the failed "
		 "one are evicted; after %d of them the node gets the taint (policy %.100s, "
		 "drain.latePods)",
		 why_offered, policy->spec.late_pods, policy->name);
	hf_fleet_event_node(t->fleet, t->node, true, "DeviceStillOffered", message);
}

/* Decides about a node whose plugin still offers a failed device after a time in which the plugin could have withheld
 * it. An act waits until no pod can be given its device, so it takes the node. */
static void decide_offered(struct fleet_taints *t, const struct taint_node *node,
			   struct fleet_policy *policy, struct pass_facts *facts,
			   struct hf_device_taint_plan *plan)
{
	int32_t limit = find_late_limit(policy), late = hf_given_pods_count(&node->given);

	if (facts->mark.late > late)
		late = facts->mark.late;
	if (limit > 0 && late >= limit) {
		plan->why_node = hf_arena_printf(
			t->arena, "%s, and %d %s been evicted or ended", plan->why_offered, late,
			late == 1 ? "pod that was given it has" : "pods that were given it have");
	} else if (limit == 0 || plan->offers_slow || has_open_act(t->fleet, t->node, false)) {
		plan->why_node = plan->why_offered;
	} else if (!hf_fleet_is_awaited(t->fleet, t->node, policy->spec.stale_after)) {
		/* Nothing shows which pods are given the device, so none would be evicted. */
		plan->why_node =
			hf_arena_printf(t->arena, "%s, and nothing is heard of the node's agent",
					plan->why_offered);
	} else {
		facts->stays = true;
		tell_offered(t, policy, facts, plan->why_offered);
	}
}

static void wait_for_plugin(struct fleet_taints *t, struct taint_node *node,
			    struct fleet_policy *policy, struct pass_facts *facts,
			    struct hf_device_taint_plan *plan)
{
	if (plan->why_offered == NULL) {
		node->offered_since = HF_TIME_NONE;
		node->given.len = 0;
		return;
	}
	hf_given_pods_note(&node->given, facts->view.health, node->offered_since != HF_TIME_NONE);
	if (node->offered_since == HF_TIME_NONE)
		node->offered_since = read_clock(t);
	else if (plan->why_node == NULL && read_clock(t) - node->offered_since >= PLUGIN_WAIT)
		decide_offered(t, node, policy, facts, plan);
}

static void decide_rules(struct fleet_taints *t)
{
	struct taint_node *node = hf_map_get(t->nodes, t->node);
	struct pass_facts *facts = HF_ARENA_NEW(t->arena, struct pass_facts);
	struct hf_device_taint_view *view = &facts->view;
	struct hf_device_taint_plan plan;
	struct fleet_policy *policy;

	if (node == NULL) {
		end_pass(t, false, 0);
		return;
	}
	memset(facts, 0, sizeof(*facts));
	read_facts(t, facts);
	policy = facts->marked ? hf_fleet_find_policy(t->fleet, facts->mark.policy) : NULL;
	view->effect = find_effect(t, node, &facts->mark, facts->marked);
	view->may_create = !node->halted && !is_left_alone(facts, policy) && !t->slices_cut;
	t->forget = view->effect == NULL && view->rules_len == 0;
	hf_device_taint_plan(view, t->arena, &plan);
	if (t->slices_cut)
		plan.why_node = "the node has too many ResourceSlices";
	wait_for_plugin(t, node, policy, facts, &plan);
	note_why_node(t, node, facts->marked && facts->mark.devices ? plan.why_node : NULL);
	perform_plan(t, facts, &plan);
}

/* ---- the reads --------------------------------------------------------------------------------------- */

static void read_slices(struct fleet_taints *t)
{
	struct hf_request request = {.verb = HF_VERB_LIST,
				     .resource = &hf_resourceslices,
				     .field_selector =
					     hf_arena_printf(t->arena, "spec.nodeName=%s", t->node),
				     .limit = PAGE_LIMIT,
				     .continue_token = t->token};

	if (t->kind == NULL)
		decide_rules(t);
	else
		send_request(t, &request, TAINT_SLICES);
}

static void take_slices(struct fleet_taints *t, const struct hf_reply *reply)
{
	/* Without the right to read slices no device is known, and the node is taken out of use. */
	if (reply->code == HF_E_FORBIDDEN || reply->code == HF_E_NOT_FOUND) {
		decide_rules(t);
		return;
	}
	if (reply->code != 0) {
		fail_pass(t, reply);
		return;
	}
	for (size_t i = 0; i < reply->n_items; i++) {
		if (t->slices_len == SLICES_MAX) {
			t->slices_cut = true;
			break;
		}
		t->slices[t->slices_len++] = hf_doc_ref(reply->items[i]);
	}
	free(t->token);
	t->token = hf_str_is_empty(reply->continue_token) || t->slices_cut
			   ? NULL
			   : hf_xstrdup(reply->continue_token);
	if (t->token != NULL)
		read_slices(t);
	else
		decide_rules(t);
}

static void read_health(struct fleet_taints *t)
{
	struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_devicehealths, .name = t->node};

	send_request(t, &request, TAINT_HEALTH);
}

/* ---- discovery --------------------------------------------------------------------------------------- */

static void ask_version(struct fleet_taints *t)
{
	struct hf_request request = {
		.verb = HF_VERB_LIST, .resource = &rules_versions[t->version], .limit = 1};

	send_request(t, &request, TAINT_DISCOVER);
}

static void take_version(struct fleet_taints *t, const struct hf_reply *reply)
{
	t->step = TAINT_IDLE;
	if (reply->code == 0) {
		t->asked = true;
		t->kind = &rules_versions[t->version];
		create_cache(t);
	} else if (reply->code == HF_E_NOT_FOUND && t->version + 1 < HF_ARRAY_LEN(rules_versions)) {
		t->version++;
		ask_version(t);
		return;
	} else {
		t->asked = reply->code == HF_E_NOT_FOUND || reply->code == HF_E_FORBIDDEN;
		t->version = 0;
		t->discover_at = hf_time_add(read_clock(t), t->asked ? DISCOVER_EVERY : RETRY_MAX);
		if (reply->code != HF_E_NOT_FOUND && hf_map_len(t->nodes) > 0)
			hf_fleet_log_problem(t->fleet, rules_versions[0].plural, reply->code,
					     reply->message);
	}
	look_soon(t, 0);
}

static void take_told(struct fleet_taints *t, const struct hf_reply *reply)
{
	if (reply->code != 0 && reply->code != HF_E_NOT_FOUND)
		fail_pass(t, reply);
	else
		end_pass(t, true, 0);
}

static void take_node(struct fleet_taints *t, const struct hf_reply *reply)
{
	if (reply->code != 0 && reply->code != HF_E_NOT_FOUND) {
		fail_pass(t, reply);
		return;
	}
	t->node_doc = reply->code != 0 ? NULL : hf_doc_ref(reply->object);
	read_health(t);
}

static void take_health(struct fleet_taints *t, const struct hf_reply *reply)
{
	if (reply->code != 0 && reply->code != HF_E_NOT_FOUND) {
		fail_pass(t, reply);
		return;
	}
	t->health_doc = reply->code != 0 ? NULL : hf_doc_ref(reply->object);
	read_slices(t);
}

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct fleet_taints *t = arg;

	t->call = NULL;
	hf_fleet_note_reply(t->fleet, reply);
	switch (t->step) {
	case TAINT_DISCOVER: take_version(t, reply); break;
	case TAINT_NODE: take_node(t, reply); break;
	case TAINT_HEALTH: take_health(t, reply); break;
	case TAINT_SLICES: take_slices(t, reply); break;
	case TAINT_WRITE: take_written(t, reply); break;
	case TAINT_TELL: take_told(t, reply); break;
	case TAINT_IDLE: break;
	}
}

/* ---- the beginning of a pass ------------------------------------------------------------------------- */

static void begin_pass(struct fleet_taints *t, const char *name, struct taint_node *node)
{
	struct hf_request request = {.verb = HF_VERB_GET, .resource = &hf_nodes, .name = t->node};

	snprintf(t->node, sizeof(t->node), "%s", name);
	node->due = HF_TIME_NEVER;
	t->forget = false;
	drop_reads(t);
	send_request(t, &request, TAINT_NODE);
}

/* Asked for in each cluster with a policy: an earlier operator may have left rules. */
static bool needs_discovery(const struct fleet_taints *t)
{
	return t->kind == NULL && t->fleet->n_policies > 0 && read_clock(t) >= t->discover_at;
}

static void on_timer(void *arg)
{
	struct fleet_taints *t = arg;
	hf_time now = read_clock(t), next = HF_TIME_NEVER;
	const char *name;
	void *value;

	if (t->stopped || t->step != TAINT_IDLE)
		return;
	if (needs_discovery(t)) {
		ask_version(t);
		return;
	}
	/* Without the rules that exist a pass would make them again. */
	if (!t->asked || (t->kind != NULL && (t->rules == NULL || !hf_cache_synced(t->rules)))) {
		look_soon(t, HF_SECOND);
		return;
	}
	for (size_t it = 0; hf_map_next(t->nodes, &it, &name, &value);) {
		struct taint_node *node = value;

		if (node->due <= now) {
			begin_pass(t, name, node);
			return;
		}
		if (node->due < next)
			next = node->due;
	}
	if (next != HF_TIME_NEVER)
		look_soon(t, next - now);
}

/* ---- rounds ------------------------------------------------------------------------------------------- */

/* The policy asks a person for the node: it has tried every remedy. A person may order a task before that. */
static bool is_last_rung(const struct hf_fleet *fleet, const struct fleet_policy *policy,
			 const char *node)
{
	return policy->spec.drain_evicts && hf_streq(policy->spec.mode, "remediate") &&
	       policy->spec.mend.allowed && has_open_act(fleet, node, true);
}

/* confined: single devices of the node are out of use. */
static void note_acts(const struct fleet_taints *t, const struct fleet_policy *policy,
		      const char *name, bool confined, struct taint_node *node)
{
	node->last_rung = confined && is_last_rung(t->fleet, policy, name);
	node->late_limit = confined ? find_late_limit(policy) : 0;
	node->acts = node->late_limit > 0 && has_open_act(t->fleet, name, false);
}

static uint64_t make_key(const struct hf_fleet *fleet, const char *name,
			 const struct taint_node *node)
{
	const struct hf_cache_entry *of_node = hf_cache_get(fleet->nodes, NULL, name);
	const struct hf_cache_entry *of_health = hf_cache_get(fleet->health, NULL, name);
	uint64_t key = (uint64_t)node->would | (uint64_t)node->halted << 1 |
		       (uint64_t)node->last_rung << 2 | (uint64_t)node->acts << 3 |
		       (uint64_t)node->late_limit << 4;

	if (of_node != NULL)
		key = key * 31 ^ hf_hash_str(of_node->resource_version);
	if (of_health != NULL)
		key = key * 31 ^ hf_hash_str(of_health->resource_version);
	return key;
}

/* A former leader may have told the jobs of a device, and nothing else of the quarantine is left. */
static bool were_jobs_told(const struct fleet_item *item)
{
	return item->health != NULL && item->health->told;
}

void hf_fleet_taints_want(struct fleet_taints *t, const struct fleet_seen *seen)
{
	const struct fleet_policy *policy = seen->policy;
	bool observes = hf_streq(policy->spec.mode, "observe");

	if (!t->asked)
		look_soon(t, 0);
	for (size_t i = 0; i < seen->len; i++) {
		const struct fleet_item *item = &seen->items[i];
		const struct hf_health_decision *d = &seen->plan.decisions[i];
		bool confined = item->node->marked && item->node->mark.devices;
		bool would = observes && d->doing == HF_HEALTH_DO_QUARANTINE &&
			     d->answer == HF_HEALTH_WOULD &&
			     hf_fleet_taints_may_confine(policy, item->health);
		struct taint_node *node = hf_map_get(t->nodes, item->name);
		uint64_t key;

		if (node == NULL && (confined || would || were_jobs_told(item)))
			node = ensure_node(t, item->name);
		if (node == NULL)
			continue;
		node->would = would;
		node->halted = hf_fleet_is_halted(seen);
		note_acts(t, policy, item->name, confined, node);
		key = make_key(t->fleet, item->name, node);
		if (key != node->key)
			node->due = 0;
		node->key = key;
		if (node->due == 0)
			look_soon(t, 0);
	}
}

/* ---- life --------------------------------------------------------------------------------------------- */

struct fleet_taints *hf_fleet_taints_create(struct hf_fleet *fleet)
{
	struct fleet_taints *t = hf_xcalloc(1, sizeof(*t));

	t->fleet = fleet;
	t->arena = hf_arena_create(ARENA_MAX);
	t->nodes = hf_map_create(NODES_MAX, fleet->env.seed, free_node);
	t->timer = hf_timer_create(fleet->env.loop, on_timer, t);
	return t;
}

void hf_fleet_taints_stop(struct fleet_taints *t)
{
	t->stopped = true;
	hf_timer_disarm(t->timer);
	if (t->call != NULL)
		hf_call_cancel(t->call);
	t->call = NULL;
}

struct fleet_taints *hf_fleet_taints_destroy(struct fleet_taints *t)
{
	if (t == NULL)
		return NULL;
	hf_fleet_taints_stop(t);
	drop_reads(t);
	hf_cache_destroy(t->rules);
	hf_timer_destroy(t->timer);
	hf_map_destroy(t->nodes);
	hf_arena_destroy(t->arena);
	free(t);
	return NULL;
}
