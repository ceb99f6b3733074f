/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/mend_internal.h"

#include "api/lifetime.h"
#include "base/compare.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

/*
 * What the plan of a policy needs to know of Remediations.
 *
 * - The view that the cache keeps of a Remediation (hf_fleet_read_remediation).
 * - The rungs that a policy's section `mend` allows (hf_fleet_set_mend_rules).
 * - The finished attempts of each node, and the act at work on it (hf_fleet_recall_acts). A dry run
 *   and a cancelled act are no attempts.
 *
 * Invariant: this file sends no request.
 */

#define VIEW_MAX ((size_t)4 << 20)
/* The ladder of the plan gives attempts no time limit here: the deadline of a Remediation ends its
 * act. */
#define NO_TIMEOUT (366 * HF_DAY)

/* --- views ------------------------------------------------------------------------------------ */

bool hf_fleet_mend_blocks(const struct hf_json *unreadable)
{
	enum hf_mend_phase phase;

	return !hf_mend_phase_of(hf_json_path_str(unreadable, "status", "phase", NULL), &phase) ||
	       (phase != HF_MEND_PENDING && !hf_mend_is_final(phase));
}

void *hf_fleet_read_remediation(void *arg, struct hf_doc *doc)
{
	struct mend_object *view = hf_xcalloc(1, sizeof(*view));
	struct hf_error err;

	(void)arg;
	view->arena = hf_arena_create(VIEW_MAX);
	if (hf_remediation_read(doc, view->arena, &view->r, &err) != 0)
		view->problem = hf_arena_strdup(view->arena, err.text);
	else if (!hf_mend_phase_of(view->r.status.phase, &view->phase) ||
		 !hf_mend_rung_of(view->r.spec.rung, &view->rung))
		view->problem = "spec.rung or status.phase has an unknown value";
	view->readable = view->problem == NULL;
	view->blocks = !view->readable && hf_fleet_mend_blocks(hf_doc_json(doc));
	view->unfinished = !view->readable || !hf_mend_is_final(view->phase) ||
			   hf_has_finalizer(hf_doc_json(doc), HF_MEND_FINALIZER);
	return view;
}

void hf_fleet_free_remediation(void *arg)
{
	struct mend_object *view = arg;

	hf_arena_destroy(view->arena);
	free(view);
}

/* --- rules ------------------------------------------------------------------------------------ */

enum hf_health_action hf_fleet_action_of(enum hf_mend_rung rung)
{
	switch (rung) {
	case HF_MEND_RESTART_PROCESS: return HF_HEALTH_RESTART_PROCESS;
	case HF_MEND_RESET_DEVICE: return HF_HEALTH_RESET_DEVICE;
	case HF_MEND_RESTART_PLUGIN: return HF_HEALTH_RESTART_DRIVER;
	case HF_MEND_REBOOT: return HF_HEALTH_RESTART_NODE;
	case HF_MEND_EXTERNAL: return HF_HEALTH_REPLACE_NODE;
	default: return HF_HEALTH_RECORD;
	}
}

static bool allows_acts(const struct hf_health_policy_spec *spec)
{
	return spec->mend.allowed && hf_streq(spec->mode, "remediate");
}

void hf_fleet_set_mend_rules(const struct hf_health_policy_spec *spec,
			     struct hf_health_policy *rules)
{
	for (size_t i = 0; i < HF_HEALTH_ACTIONS; i++)
		rules->rungs[i].timeout = NO_TIMEOUT;
	if (!allows_acts(spec))
		return;
	rules->mode = HF_HEALTH_REMEDIATES;
	rules->concurrent = spec->mend.at_once;
	rules->rungs[HF_HEALTH_RESTART_PROCESS].attempts = 0;
	rules->rungs[HF_HEALTH_MOVE_POD].attempts = 0;
	if (!spec->mend.plugins)
		rules->rungs[HF_HEALTH_RESTART_DRIVER].attempts = 0;
	if (!spec->mend.resets)
		rules->rungs[HF_HEALTH_RESET_DEVICE].attempts = 0;
	if (!spec->mend.reboots)
		rules->rungs[HF_HEALTH_RESTART_NODE].attempts = 0;
}

/* --- attempts --------------------------------------------------------------------------------- */

static size_t find_node(const struct fleet_seen *seen, const char *name)
{
	const struct fleet_item key = {.name = name};
	const struct fleet_item *item = seen->len == 0 ? NULL
						       : bsearch(&key, seen->items, seen->len,
								 sizeof(key), hf_compare_by_name);

	return item == NULL ? seen->len : (size_t)(item - seen->items);
}

/* The proof is of the operator's clock. The node's clock may have been ahead at the act, and later faults would count as
 * older than the act. */
static hf_time limit_to_proof(const struct hf_remediation *r, hf_time at)
{
	hf_time proof = r->status.proof.at;

	return proof != HF_TIME_NONE && at != HF_TIME_NONE && proof < at ? proof : at;
}

hf_time hf_fleet_mend_acted_at(const struct hf_fleet *fleet, const struct hf_remediation *r,
			       enum hf_mend_rung rung, const struct fleet_health *health)
{
	const struct hf_remediation_act *act = &r->status.act;
	hf_time at = act->ended_at > act->started_at ? act->ended_at : act->started_at;

	/* Without an actor the times are the operator's. */
	if (health != NULL && hf_mend_has_actor(rung))
		at = hf_fleet_convert_time(fleet, health, at, hf_fleet_now(fleet));
	return limit_to_proof(r, at);
}

/* An agent accepts the acknowledgement of a reset for an hour after the act. A fault that stands after that time was not
 * mended. */
#define CLEARED_MAX HF_HOUR

bool hf_fleet_mend_names(const struct hf_remediation *r, const char *uuid)
{
	for (size_t i = 0; i < r->spec.devices.len; i++)
		if (hf_streq(r->spec.devices.items[i].uuid, uuid))
			return true;
	return false;
}

bool hf_fleet_mend_concerns(const struct hf_fleet *fleet, const struct hf_remediation *r,
			    enum hf_mend_rung rung, const struct fleet_health *health,
			    hf_time acted_at)
{
	hf_time observed_at;

	if (rung != HF_MEND_RESET_DEVICE || health == NULL || health->sick_len == 0)
		return true;
	observed_at =
		hf_fleet_convert_time(fleet, health, health->observed_at, hf_fleet_now(fleet));
	if (acted_at != HF_TIME_NONE && observed_at != HF_TIME_NONE &&
	    observed_at - acted_at > CLEARED_MAX)
		return false;
	/* The agent may not have read of the reset yet, so a device of the act still counts. */
	for (size_t i = 0; i < health->sick_len; i++)
		if (hf_fleet_mend_names(r, health->sick[i]))
			return true;
	return false;
}

bool hf_fleet_mend_covers(const struct hf_remediation *r, enum hf_mend_rung rung,
			  const struct mend_object *failed)
{
	if (rung != HF_MEND_RESET_DEVICE)
		return true;
	if (!failed->readable || failed->rung != HF_MEND_RESET_DEVICE)
		return false;
	for (size_t i = 0; i < failed->r.spec.devices.len; i++)
		if (!hf_fleet_mend_names(r, failed->r.spec.devices.items[i].uuid))
			return false;
	return true;
}

bool hf_fleet_mend_is_covered(const struct fleet_mend *mend, const struct mend_object *failed)
{
	const struct hf_cache_entry *entry;

	for (size_t it = 0; (entry = hf_cache_next(mend->cache, &it)) != NULL;) {
		const struct mend_object *object = entry->view;

		if (object->readable && failed->readable && object->phase == HF_MEND_SUCCEEDED &&
		    !object->r.spec.dry_run && object->rung != HF_MEND_PERSON &&
		    object->r.spec.attempt > failed->r.spec.attempt &&
		    hf_streq(object->r.spec.node, failed->r.spec.node) &&
		    hf_fleet_mend_covers(&object->r, object->rung, failed))
			return true;
	}
	return false;
}

bool hf_fleet_mend_is_of_waiting(const struct fleet_mend *mend,
				 const struct hf_quarantine_mark *mark)
{
	const char *act = hf_quarantine_act(mark->policy);
	const struct hf_cache_entry *entry =
		act == NULL ? NULL : hf_cache_get(mend->cache, NULL, act);
	const struct mend_object *object = entry == NULL ? NULL : entry->view;

	return object != NULL && object->readable && object->phase == HF_MEND_PENDING &&
	       !hf_streq(act, mend->name);
}

hf_time hf_fleet_mend_created_at(const struct hf_remediation *r, const struct fleet_node *node)
{
	if (node->marked && hf_streq(hf_quarantine_act(node->mark.policy), r->name))
		return node->mark.at;
	if (r->created_at == HF_TIME_NONE || !hf_streq(r->spec.requested_by, "policy"))
		return r->created_at;
	return hf_time_add(r->created_at, HF_SECOND - 1);
}

static bool is_attempt(const struct mend_object *object)
{
	return object->readable && !object->r.spec.dry_run &&
	       (object->phase == HF_MEND_SUCCEEDED || object->phase == HF_MEND_FAILED) &&
	       hf_fleet_action_of(object->rung) != HF_HEALTH_RECORD;
}

static void add_attempt(struct hf_health_node *node, struct hf_health_attempt **ret_list,
			const struct mend_object *object, const struct fleet_item *item,
			struct hf_arena *arena)
{
	const struct hf_health_attempt attempt = {
		.action = hf_fleet_action_of(object->rung),
		.at = hf_fleet_mend_created_at(&object->r, item->node),
		.failed = object->phase == HF_MEND_FAILED,
		.before_fault = object->r.status.proof.at != HF_TIME_NONE &&
				node->evidence_at > object->r.status.proof.at};
	struct hf_health_attempt *list = *ret_list;
	size_t at;

	if (list == NULL)
		list = *ret_list =
			HF_ARENA_ARRAY(arena, struct hf_health_attempt, HF_HEALTH_ATTEMPTS_MAX + 1);
	/* Attempts are sorted, the oldest first. A full list loses its oldest attempt. */
	for (at = node->attempts_len; at > 0 && list[at - 1].at > attempt.at; at--)
		list[at] = list[at - 1];
	list[at] = attempt;
	node->attempts = list;
	if (node->attempts_len < HF_HEALTH_ATTEMPTS_MAX) {
		node->attempts_len++;
		return;
	}
	for (size_t i = 0; i < node->attempts_len; i++)
		list[i] = list[i + 1];
}

void hf_fleet_mend_note_attempt(int32_t *highest, int64_t attempt)
{
	if (attempt > *highest && attempt < INT32_MAX)
		*highest = (int32_t)attempt;
}

const struct hf_remediation_condition *hf_fleet_mend_find_condition(const struct hf_remediation *r,
								    const char *type,
								    const char *status)
{
	for (size_t i = 0; i < r->status.conditions.len; i++) {
		const struct hf_remediation_condition *c = &r->status.conditions.items[i];

		if (hf_streq(c->type, type) && hf_streq(c->status, status))
			return c;
	}
	return NULL;
}

hf_time hf_fleet_mend_condition_time(const struct hf_remediation *r, const char *type,
				     const char *status)
{
	const struct hf_remediation_condition *c = hf_fleet_mend_find_condition(r, type, status);

	return c == NULL ? HF_TIME_NONE : c->since;
}

/* No actor of the object does anything any more. */
static bool is_act_over(const struct hf_remediation *r)
{
	return r->status.act.started_at == HF_TIME_NONE || r->status.act.ended_at != HF_TIME_NONE;
}

bool hf_fleet_mend_takes_place(const struct hf_fleet *fleet, const struct hf_remediation *r,
			       enum hf_mend_phase phase)
{
	hf_time waits_since = HF_TIME_NONE;

	if (phase == HF_MEND_PENDING)
		waits_since = r->created_at;
	else if (phase == HF_MEND_DRAINING)
		waits_since = hf_fleet_mend_condition_time(r, "Permitted", "False");
	else if (phase == HF_MEND_RESTORING && is_act_over(r))
		waits_since = hf_fleet_mend_condition_time(r, "Restored", "False");
	return !hf_mend_is_final(phase) &&
	       (waits_since == HF_TIME_NONE ||
		hf_fleet_now(fleet) - waits_since < HF_MEND_WAITING_COUNTS);
}

static void set_running(struct hf_health_node *node, const struct mend_object *object)
{
	enum hf_health_action action = hf_fleet_action_of(object->rung);

	if (object->r.spec.dry_run || action == HF_HEALTH_RECORD)
		return;
	node->running = action;
	node->running_since = object->r.created_at;
}

/* No further act of a policy begins on the node; as mend_create.c finds upon live objects. */
static bool prevents_acts(const struct hf_fleet *fleet, const struct mend_object *object,
			  const struct fleet_item *item, hf_time evidence_at)
{
	const struct hf_remediation *r = &object->r;
	hf_time acted_at;

	if (r->spec.dry_run)
		return false;
	if (object->phase == HF_MEND_CANCELLED)
		return r->spec.cancel && item->node->marked &&
		       hf_fleet_mend_created_at(r, item->node) >= item->node->mark.at;
	if (object->rung == HF_MEND_PERSON)
		return false;
	if (!hf_mend_is_final(object->phase))
		return true;
	if (object->phase != HF_MEND_SUCCEEDED)
		return false;
	acted_at = hf_fleet_mend_acted_at(fleet, r, object->rung, item->health);
	return acted_at != HF_TIME_NONE && evidence_at <= acted_at &&
	       hf_fleet_mend_concerns(fleet, r, object->rung, item->health, acted_at);
}

/* The quarantine is of an act that is not at its end, or of an act of a person that has failed: then nobody knows how the
 * node is. */
static bool is_of_act(const struct hf_fleet *fleet, const struct fleet_node *node)
{
	const char *act = node->marked ? hf_quarantine_act(node->mark.policy) : NULL;
	const struct hf_cache_entry *entry =
		act == NULL ? NULL : hf_cache_get(fleet->mend->cache, NULL, act);
	const struct mend_object *object = entry == NULL ? NULL : entry->view;

	if (object == NULL)
		return act != NULL && !hf_cache_synced(fleet->mend->cache);
	return !object->readable || !hf_mend_is_final(object->phase) ||
	       (object->phase == HF_MEND_FAILED &&
		!hf_streq(object->r.spec.requested_by, "policy") &&
		!hf_fleet_mend_is_covered(fleet->mend, object));
}

/* No act may be created, because there are acts that nobody can read. */
static bool is_blocked(const struct hf_fleet *fleet, const struct hf_health_policy_spec *spec)
{
	const struct hf_cache_entry *entry;

	if (!allows_acts(spec))
		return false;
	for (size_t it = 0; (entry = hf_cache_next(fleet->mend->cache, &it)) != NULL;)
		if (((const struct mend_object *)entry->view)->blocks)
			return true;
	return !hf_cache_synced(fleet->mend->cache);
}

/* Pods work on with a slow device, and the policy may let all pods end by themselves. Pods that hang with their driver never
 * end. */
bool hf_fleet_mend_lets_work_end(const struct hf_health_policy_spec *spec,
				 const struct fleet_health *health)
{
	return !spec->drain_evicts || (hf_health_is_weak(health->cls) && !health->hangs);
}

static void set_limits(const struct hf_fleet *fleet, struct fleet_seen *seen)
{
	const struct hf_health_policy_spec *spec = &seen->policy->spec;
	bool blocked = is_blocked(fleet, spec);

	for (size_t i = 0; i < seen->len; i++) {
		const struct fleet_item *item = &seen->items[i];
		struct hf_health_node *node = &seen->nodes[i];

		node->of_act = is_of_act(fleet, item->node);
		node->held = item->node->marks.held || spec->mend.hold;
		node->no_remedy |= blocked;
		node->no_reset = item->health != NULL && !item->health->can_reset;
		node->undrainable = item->health != NULL && item->health->works &&
				    hf_fleet_mend_lets_work_end(spec, item->health);
		/* If the policy evicts pods, a busy device does not hold an act back: the pods leave
		 * the device in phase Draining. */
		if (spec->mend.allowed && spec->drain_evicts)
			node->device_busy = false;
	}
}

static bool is_open_task(const struct mend_object *object)
{
	return object->rung == HF_MEND_PERSON && !hf_mend_is_final(object->phase) &&
	       !object->r.spec.dry_run;
}

bool hf_fleet_mend_has_asked(const struct hf_remediation *r, enum hf_mend_phase phase,
			     enum hf_mend_rung rung, const struct fleet_node *node)
{
	bool other_boot = r->spec.boot_id != NULL && node->marks.boot_id != NULL &&
			  !hf_streq(r->spec.boot_id, node->marks.boot_id);

	return rung == HF_MEND_EXTERNAL && !r->spec.dry_run &&
	       !(phase == HF_MEND_CANCELLED && r->status.act.started_at == HF_TIME_NONE &&
		 other_boot);
}

static bool is_given_away(const struct mend_object *object, const struct fleet_node *node)
{
	return node->marked && hf_fleet_mend_created_at(&object->r, node) >= node->mark.at &&
	       hf_fleet_mend_has_asked(&object->r, object->phase, object->rung, node);
}

void hf_fleet_recall_acts(struct hf_fleet *fleet, struct fleet_seen *seen, struct hf_arena *arena)
{
	struct hf_health_attempt **lists =
		HF_ARENA_ARRAY(arena, struct hf_health_attempt *, seen->len + 1);
	const struct hf_cache_entry *entry;

	for (size_t i = 0; i < seen->len; i++)
		lists[i] = NULL;
	for (size_t it = 0; (entry = hf_cache_next(fleet->mend->cache, &it)) != NULL;) {
		const struct mend_object *object = entry->view;
		size_t i = object->readable ? find_node(seen, object->r.spec.node) : seen->len;
		bool prevents;

		if (i == seen->len)
			continue;
		prevents =
			prevents_acts(fleet, object, &seen->items[i], seen->nodes[i].evidence_at);
		seen->nodes[i].no_remedy |= prevents;
		seen->items[i].asked |= is_open_task(object);
		seen->items[i].called_off |= object->phase == HF_MEND_CANCELLED && prevents;
		seen->items[i].given_away |= is_given_away(object, seen->items[i].node);
		if (is_attempt(object))
			add_attempt(&seen->nodes[i], &lists[i], object, &seen->items[i], arena);
		else if (hf_fleet_mend_takes_place(fleet, &object->r, object->phase))
			set_running(&seen->nodes[i], object);
	}
	set_limits(fleet, seen);
}

const struct hf_policy_mend *hf_fleet_mend_rules(const struct fleet_mend *mend)
{
	const struct fleet_policy *policy =
		hf_str_is_empty(mend->policy) ? NULL
					      : hf_fleet_find_policy(mend->fleet, mend->policy);

	return policy == NULL || !policy->usable ? NULL : &policy->spec.mend;
}
