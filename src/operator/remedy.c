/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/remedy.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/remedy_internal.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

/* Life, caches, and when to look again. */

/* Faults of one cause come within moments: they are looked at together, so that the breaker sees
 * how many there are before the first is acted on. */
#define GATHER HF_SECOND
/* What follows from time alone (an agent falls silent, a window passes) is looked at so often. */
#define LOOK_EVERY HF_MINUTE
#define PAGE_LIMIT 100
#define REFUSALS_MAX ((size_t)HF_REMEDY_PODS_MAX)

/* --- policies ------------------------------------------------------------------------------ */

struct remedy_policy *hf_remedy_policy(const struct hf_remedy *remedy, const char *name)
{
	for (size_t i = 0; i < remedy->n_policies; i++)
		if (hf_streq(remedy->policies[i]->name, name))
			return remedy->policies[i];
	return NULL;
}

/* What it weighed another one has not. */
static void forget_weighing(struct hf_remedy *remedy, const struct remedy_policy *policy)
{
	const struct hf_cache_entry *entry;

	/* Nobody reads them yet, or any more. */
	if (remedy->health == NULL)
		return;
	for (size_t it = 0; (entry = hf_cache_next(remedy->health, &it)) != NULL;) {
		struct remedy_health *view = entry->view;

		if (view->weighed_by == policy)
			view->weighed_by = NULL;
	}
}

static struct remedy_policy *add_policy(struct hf_remedy *remedy, const char *name)
{
	size_t at = remedy->n_policies;

	if (at == HF_REMEDY_POLICIES_MAX) {
		hf_operator_problem(
			remedy->op, hf_healthpolicies.plural, HF_E_TOO_LARGE,
			"there are more policies than 16: the last by name do not count");
		if (strcmp(remedy->policies[at - 1]->name, name) < 0)
			return NULL;
		forget_weighing(remedy, remedy->policies[at - 1]);
		hf_remedy_policy_free(remedy->policies[--at]);
		remedy->n_policies--;
	}
	for (; at > 0 && strcmp(remedy->policies[at - 1]->name, name) > 0; at--)
		remedy->policies[at] = remedy->policies[at - 1];
	remedy->policies[at] = hf_remedy_policy_make(remedy->op, name);
	remedy->n_policies++;
	return remedy->policies[at];
}

static void drop_policy(struct hf_remedy *remedy, const char *name)
{
	for (size_t i = 0; i < remedy->n_policies; i++) {
		if (!hf_streq(remedy->policies[i]->name, name))
			continue;
		forget_weighing(remedy, remedy->policies[i]);
		hf_remedy_policy_free(remedy->policies[i]);
		for (remedy->n_policies--; i < remedy->n_policies; i++)
			remedy->policies[i] = remedy->policies[i + 1];
		return;
	}
}

/* The policy as it is now, if it counts. */
static void put_policy(struct hf_remedy *remedy, const struct hf_cache_entry *entry)
{
	struct remedy_policy *policy = hf_remedy_policy(remedy, entry->name);

	if (policy == NULL)
		policy = add_policy(remedy, entry->name);
	if (policy == NULL)
		return;
	hf_remedy_policy_update(policy, entry->doc);
	if (!policy->spec.drain_evicts || !hf_streq(policy->spec.mode, "remediate"))
		policy->evicts_at = HF_TIME_NONE;
	else if (policy->evicts_at == HF_TIME_NONE)
		policy->evicts_at = hf_operator_now(remedy->op);
}

/* There is room for one of those that did not count: the first by name. */
static void fill_up(struct hf_remedy *remedy)
{
	const struct hf_cache_entry *entry, *first = NULL;

	for (size_t it = 0; (entry = hf_cache_next(remedy->policies_cache, &it)) != NULL;)
		if (hf_remedy_policy(remedy, entry->name) == NULL &&
		    (first == NULL || strcmp(entry->name, first->name) < 0))
			first = entry;
	if (first != NULL)
		put_policy(remedy, first);
}

/* Our own status changes nothing of what it says. */
static bool same_wish(const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	const struct hf_json *a = hf_doc_json(before->doc), *b = hf_doc_json(now->doc);

	return hf_json_equal(hf_json_get(a, "spec"), hf_json_get(b, "spec")) &&
	       hf_json_equal(hf_json_path(a, "metadata", "annotations", NULL),
			     hf_json_path(b, "metadata", "annotations", NULL)) &&
	       hf_json_equal(hf_json_path(a, "metadata", "generation", NULL),
			     hf_json_path(b, "metadata", "generation", NULL));
}

static void policy_changed(void *arg, enum hf_cache_change change,
			   const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	struct hf_remedy *remedy = arg;

	remedy->unseen = false;
	hf_task_post(remedy->reset);
	if (change == HF_CACHE_SYNCED) {
		hf_remedy_soon(remedy, GATHER);
		return;
	}
	if (now == NULL) {
		drop_policy(remedy, before->name);
		fill_up(remedy);
		remedy->version++;
	} else if (before == NULL || !same_wish(before, now)) {
		put_policy(remedy, now);
		remedy->version++;
	}
	hf_remedy_soon(remedy, GATHER);
}

static void policies_problem(void *arg, int code, const char *message)
{
	struct hf_remedy *remedy = arg;
	bool told = remedy->unseen;

	/* Not installed: looked for again and again, said only where it is forbidden. */
	if (code == HF_E_NOT_FOUND || code == HF_E_FORBIDDEN || code == HF_E_UNSUPPORTED) {
		remedy->unseen = true;
		if (told || code != HF_E_FORBIDDEN)
			return;
	}
	hf_operator_problem(remedy->op, hf_healthpolicies.plural, code, message);
}

/* --- nodes and what is said of them -------------------------------------------------------- */

static void *node_view(void *arg, struct hf_doc *doc)
{
	return hf_remedy_node_view(arg, doc);
}

static void *health_view(void *arg, struct hf_doc *doc)
{
	return hf_remedy_health_view(arg, doc);
}

static bool is_well(const struct hf_remedy *remedy, const char *name)
{
	const struct hf_cache_entry *entry = hf_cache_get(remedy->health, NULL, name);

	return entry != NULL &&
	       ((const struct remedy_health *)entry->view)->state == HF_HEALTH_HEALTHY;
}

static bool is_released(const struct hf_remedy *remedy, const char *name)
{
	const struct remedy_act *act = &remedy->acts[remedy->act];

	return remedy->step == REMEDY_WRITE_NODE && act->release && hf_streq(act->node, name);
}

/* What of our taint the Node itself may not tell any more: it has a mark for as long as people leave it
 * there.  Where all is well, and the mark has gone as well, that was a release. */
static void follow_taint(const struct hf_remedy *remedy, const struct hf_cache_entry *before,
			 const struct hf_cache_entry *now)
{
	const struct remedy_node *was = before->view;
	struct remedy_node *node = now->view;

	node->put_at = was->marked ? was->mark.at : was->put_at;
	if (node->tainted || node->put_at == HF_TIME_NONE)
		return;
	node->off_at = hf_remedy_off(was);
	if (was->tainted && !is_released(remedy, now->name) &&
	    (node->marked || !is_well(remedy, now->name)))
		/* As it is written down. */
		node->off_at = hf_operator_now(remedy->op) / HF_US * HF_US;
}

/* Its mark went, and the taint is there still: whoever took that off may mean to keep the node out. */
static void tell_disowned(struct hf_remedy *remedy, const struct hf_cache_entry *before,
			  const struct hf_cache_entry *now)
{
	const struct remedy_node *was = before->view, *node = now->view;

	if (was->marked && was->tainted && !node->marked && node->tainted)
		hf_remedy_note_node(
			remedy, now->name, true, "QuarantineDisowned",
			"annotation holdfast.dev/quarantine is gone and the taint is not: "
			"it stays until somebody takes it off");
}

static void node_changed(void *arg, enum hf_cache_change change,
			 const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	struct hf_remedy *remedy = arg;

	if (before != NULL && now != NULL) {
		follow_taint(remedy, before, now);
		tell_disowned(remedy, before, now);
	}
	if (change == HF_CACHE_SYNCED || before == NULL || now == NULL ||
	    !hf_remedy_node_same(before->view, now->view))
		hf_remedy_soon(remedy, GATHER);
}

static bool is_same_trouble(const struct remedy_health *a, const struct remedy_health *b)
{
	return a->began_at == b->began_at &&
	       (a->began_at != HF_TIME_NONE || a->evidence_at == b->evidence_at);
}

static void health_changed(void *arg, enum hf_cache_change change,
			   const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	struct hf_remedy *remedy = arg;
	const struct remedy_health *was = before == NULL ? NULL : before->view;
	struct remedy_health *view = now == NULL ? NULL : now->view;

	if (view != NULL) {
		bool spoke = was == NULL ? hf_cache_synced(remedy->health)
					 : was->observed_at != view->observed_at;

		view->seen_at = spoke         ? hf_loop_mono(remedy->op->loop)
				: was != NULL ? was->seen_at
					      : HF_TIME_NONE;
		view->weighed_by =
			was != NULL && is_same_trouble(was, view) ? was->weighed_by : NULL;
		if (was != NULL)
			hf_remedy_health_ease(was, view);
	}
	if (change == HF_CACHE_SYNCED || was == NULL || view == NULL ||
	    !hf_remedy_health_same(was, view))
		hf_remedy_soon(remedy, GATHER);
}

static void heard(void *arg, const struct hf_reply *reply)
{
	hf_operator_heard(((const struct hf_remedy *)arg)->op, reply);
}

static void nodes_problem(void *arg, int code, const char *message)
{
	hf_operator_problem(((const struct hf_remedy *)arg)->op, hf_healthpolicies.plural, code,
			    message);
}

static void devices_problem(void *arg, int code, const char *message)
{
	/* Without agents there is nothing to do. */
	if (code != HF_E_NOT_FOUND)
		nodes_problem(arg, code, message);
}

static struct hf_cache *make_cache(struct hf_remedy *remedy, const struct hf_resource *resource)
{
	bool nodes = resource == &hf_nodes;
	const struct hf_cache_options options = {
		.loop = remedy->op->loop,
		.store = remedy->op->store,
		.resource = resource,
		.page_limit = PAGE_LIMIT,
		.seed = remedy->op->options.seed ^ hf_hash_str("remedy") ^
			hf_hash_str(resource->plural),
		.decode = nodes ? node_view : health_view,
		.view_free = nodes ? hf_remedy_node_free : hf_remedy_health_free,
		.changed = nodes ? node_changed : health_changed,
		.problem = nodes ? nodes_problem : devices_problem,
		.heard = heard,
		.arg = remedy,
	};

	return hf_cache_create(&options);
}

static void drop_calls(struct hf_remedy *remedy)
{
	if (remedy->call != NULL)
		hf_call_cancel(remedy->call);
	if (remedy->evicting != NULL)
		hf_call_cancel(remedy->evicting);
	remedy->call = remedy->evicting = NULL;
	remedy->step = REMEDY_IDLE;
	free(remedy->token);
	remedy->token = NULL;
	hf_map_clear(remedy->looked);
}

/* With the first policy nodes are watched, and with the last one no more. */
static void on_reset(void *arg)
{
	struct hf_remedy *remedy = arg;
	bool wanted = remedy->n_policies > 0 && !remedy->stopped;

	if (wanted == (remedy->nodes != NULL))
		return;
	if (wanted) {
		remedy->nodes = make_cache(remedy, &hf_nodes);
		remedy->health = make_cache(remedy, &hf_devicehealths);
		hf_cache_start(remedy->nodes);
		hf_cache_start(remedy->health);
		return;
	}
	drop_calls(remedy);
	hf_map_clear(remedy->refusals);
	remedy->nodes = hf_cache_destroy(remedy->nodes);
	remedy->health = hf_cache_destroy(remedy->health);
}

/* --- rounds -------------------------------------------------------------------------------- */

void hf_remedy_soon(struct hf_remedy *remedy, hf_time within)
{
	hf_time due = hf_timer_due(remedy->timer), now = hf_loop_mono(remedy->op->loop);

	if (now + within < remedy->rests_until)
		within = remedy->rests_until - now;
	if (remedy->stopped || (hf_timer_armed(remedy->timer) && due <= now + within))
		return;
	hf_timer_arm(remedy->timer, within);
}

void hf_remedy_refuse(struct hf_remedy *remedy, const char *uid, hf_time wait, bool grows)
{
	struct remedy_refusal *refusal = hf_map_get(remedy->refusals, uid);

	if (refusal == NULL) {
		refusal = hf_xcalloc(1, sizeof(*refusal));
		/* A table of refusals that is full is one of what is gone, mostly. */
		if (hf_map_len(remedy->refusals) >= REFUSALS_MAX)
			hf_map_clear(remedy->refusals);
		if (!hf_map_put(remedy->refusals, uid, refusal)) {
			free(refusal);
			return;
		}
	}
	refusal->times += grows;
	refusal->not_before = hf_operator_now(remedy->op) +
			      (grows ? hf_health_drain_backoff(refusal->times, wait) : wait);
}

hf_time hf_remedy_not_before(const struct hf_remedy *remedy, const char *uid)
{
	const struct remedy_refusal *refusal = hf_map_get(remedy->refusals, uid);

	return refusal == NULL ? 0 : refusal->not_before;
}

static bool can_see(const struct hf_remedy *remedy)
{
	return remedy->nodes != NULL && hf_cache_synced(remedy->nodes) &&
	       hf_cache_synced(remedy->health) && hf_cache_synced(remedy->policies_cache) &&
	       hf_cache_synced(remedy->op->pods.cache);
}

/* One policy; true: something was begun, and the others wait. */
static bool look(struct hf_remedy *remedy, struct remedy_policy *policy, hf_time *wake)
{
	const struct hf_cache_entry *entry =
		hf_cache_get(remedy->policies_cache, NULL, policy->name);
	struct remedy_seen seen;

	if (entry == NULL)
		return false;
	hf_arena_reset(remedy->arena);
	hf_remedy_see(remedy, policy, entry->doc, remedy->arena, &seen);
	hf_remedy_tell(remedy, &seen);
	if (seen.plan.wake_at < *wake)
		*wake = seen.plan.wake_at;
	if (remedy->evicting == NULL)
		hf_remedy_drain(remedy, &seen, wake);
	return hf_remedy_act(remedy, &seen) || hf_remedy_write(remedy, &seen);
}

static void on_timer(void *arg)
{
	struct hf_remedy *remedy = arg;
	hf_time now = hf_operator_now(remedy->op), wake = now + LOOK_EVERY;

	if (remedy->stopped || remedy->step != REMEDY_IDLE || !can_see(remedy))
		return;
	/* In turn, so that one that is never done keeps no other waiting. */
	remedy->turn++;
	for (size_t i = 0; i < remedy->n_policies; i++) {
		size_t at = (remedy->turn + i) % remedy->n_policies;

		if (look(remedy, remedy->policies[at], &wake))
			return;
	}
	hf_remedy_soon(remedy, wake > now ? wake - now : HF_MS);
}

/* --- life ---------------------------------------------------------------------------------- */

struct hf_remedy *hf_remedy_create(struct hf_operator *op)
{
	struct hf_remedy *remedy = hf_xcalloc(1, sizeof(*remedy));
	const struct hf_cache_options options = {
		.loop = op->loop,
		.store = op->store,
		.resource = &hf_healthpolicies,
		.seed = op->options.seed ^ hf_hash_str(hf_healthpolicies.plural),
		.keep_docs = true,
		.changed = policy_changed,
		.problem = policies_problem,
		.heard = heard,
		.arg = remedy,
	};

	remedy->op = op;
	remedy->version = 1;
	remedy->timer = hf_timer_create(op->loop, on_timer, remedy);
	remedy->reset = hf_task_create(op->loop, on_reset, remedy);
	remedy->arena = hf_arena_create(HF_REMEDY_ARENA_MAX);
	remedy->scratch = hf_arena_create(HF_REMEDY_ARENA_MAX);
	remedy->looked = hf_map_create(HF_HEALTH_NODES_MAX, op->options.seed, free);
	remedy->refusals = hf_map_create(REFUSALS_MAX, op->options.seed, free);
	remedy->policies_cache = hf_cache_create(&options);
	hf_remedy_metrics_init(remedy);
	return remedy;
}

void hf_remedy_start(struct hf_remedy *remedy)
{
	hf_cache_start(remedy->policies_cache);
}

void hf_remedy_synced(struct hf_remedy *remedy)
{
	hf_remedy_soon(remedy, GATHER);
}

void hf_remedy_stop(struct hf_remedy *remedy)
{
	remedy->stopped = true;
	hf_timer_disarm(remedy->timer);
	drop_calls(remedy);
}

struct hf_remedy *hf_remedy_destroy(struct hf_remedy *remedy)
{
	if (remedy == NULL)
		return NULL;
	drop_calls(remedy);
	hf_cache_destroy(remedy->nodes);
	hf_cache_destroy(remedy->health);
	hf_cache_destroy(remedy->policies_cache);
	while (remedy->n_policies > 0)
		hf_remedy_policy_free(remedy->policies[--remedy->n_policies]);
	hf_timer_destroy(remedy->timer);
	hf_task_destroy(remedy->reset);
	hf_map_destroy(remedy->looked);
	hf_map_destroy(remedy->refusals);
	hf_arena_destroy(remedy->arena);
	hf_arena_destroy(remedy->scratch);
	free(remedy);
	return NULL;
}
