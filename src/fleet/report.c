/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/fleet_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "fleet/fleet.h"
#include "fleet/mend_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Reports what rounds decide and do.
 * Input: the result of a round. Output: the policy's status, events of nodes and policies, metrics.
 * Invariant: the same message about a node is recorded once.
 */

#define WHY_MAX 255 /* the CRD takes 256 characters */
#define SHOWN "shown: Holdfast shows this and leaves it to a person"

/* --- names and reasons ------------------------------------------------------------------------ */

static const char *next_of(const struct hf_health_decision *d)
{
	switch (d->doing) {
	case HF_HEALTH_DO_QUARANTINE: return "quarantine";
	case HF_HEALTH_DO_RELEASE: return "release";
	case HF_HEALTH_DO_REMEDY:
	case HF_HEALTH_DO_GIVE_UP: return hf_health_action_name(d->action);
	default: return NULL;
	}
}

static bool is_shown_only(const struct hf_health_decision *d)
{
	return d->answer == HF_HEALTH_WOULD &&
	       (d->doing == HF_HEALTH_DO_REMEDY || d->doing == HF_HEALTH_DO_GIVE_UP);
}

static const char *why_of(const struct hf_health_decision *d)
{
	return is_shown_only(d) ? SHOWN : hf_health_why_text(d->why);
}

/* The policy's status lists the node. */
static bool is_news(const struct fleet_seen *seen, size_t i)
{
	const struct hf_health_decision *d = &seen->plan.decisions[i];

	return d->answer != HF_HEALTH_NOTHING || seen->nodes[i].owned ||
	       seen->nodes[i].cls >= HF_HEALTH_SOFTWARE;
}

/* --- status ----------------------------------------------------------------------------------- */

static int32_t count_pods(const struct fleet_item *item)
{
	int32_t n = 0;

	for (size_t h = 0; item->health != NULL && h < item->health->holders_len; h++)
		n += item->health->holders[h].fatal;
	return n;
}

/* Why the API server refuses the act that the plan asks for; NULL: it does not. */
static const char *find_refusal(const struct hf_fleet *fleet, const struct hf_health_decision *d)
{
	bool wants_act = d->answer == HF_HEALTH_GO &&
			 (d->doing == HF_HEALTH_DO_REMEDY || d->doing == HF_HEALTH_DO_GIVE_UP);

	return wants_act ? hf_fleet_mend_refused_create(fleet->mend, d->node) : NULL;
}

static void add_nodes(const struct hf_fleet *fleet, const struct fleet_seen *seen,
		      struct hf_health_policy_status *status, struct hf_arena *arena)
{
	status->nodes.items = HF_ARENA_ARRAY(arena, struct hf_policy_node, seen->len + 1);
	for (size_t i = 0; i < seen->len; i++) {
		const struct hf_health_node *node = &seen->nodes[i];
		const struct hf_health_decision *d = &seen->plan.decisions[i];
		const char *refusal = find_refusal(fleet, d);

		status->selected += seen->items[i].counts;
		status->unhealthy += node->cls >= HF_HEALTH_SOFTWARE;
		status->quarantined += node->owned;
		status->unavailable += node->unavailable;
		if (!is_news(seen, i))
			continue;
		status->nodes.items[status->nodes.len++] = (struct hf_policy_node){
			.name = node->name,
			.state = hf_health_state_name(node->state),
			.cls = hf_health_class_name(node->cls),
			.answer =
				hf_health_answer_name(refusal == NULL ? d->answer : HF_HEALTH_HELD),
			.next = next_of(d),
			.why = refusal == NULL ? why_of(d)
					       : hf_arena_strndup(arena, refusal,
								  hf_utf8_cut(refusal, WHY_MAX)),
			.quarantined = node->owned,
			.pods = count_pods(&seen->items[i]),
		};
	}
}

void hf_fleet_fill_status(struct hf_fleet *fleet, const struct fleet_seen *seen,
			  struct hf_arena *arena, struct hf_health_policy_status *ret_status)
{
	struct hf_health_policy_status *status = ret_status;
	bool limited = seen->rules.unavailable.count >= 0 || seen->rules.unavailable.percent >= 0;

	*status = (struct hf_health_policy_status){
		.generation = seen->policy->generation,
		.mode = seen->policy->spec.mode,
		.problem = seen->policy->problem,
		.memory = seen->memory,
		.silent = seen->silent,
		.unavailable_left = limited ? seen->plan.unavailable_left : -1,
		.quarantines_left = seen->plan.quarantines_left,
	};
	if (seen->memory.breaker_open)
		status->breaker_message = hf_arena_printf(
			arena,
			"too many nodes failed at once: Holdfast stops all actions until spec.breaker.epoch "
			"is raised to %lld",
			(long long)seen->memory.breaker_epoch + 1);
	add_nodes(fleet, seen, status, arena);
}

/* --- events ----------------------------------------------------------------------------------- */

static void record_event(struct hf_fleet *fleet, struct hf_event_note *note, bool warning)
{
	note->type = warning ? "Warning" : "Normal";
	hf_recorder_record(fleet->env.recorder, note, hf_fleet_now(fleet));
}

bool hf_fleet_is_news(struct fleet_policy *policy, const char *topic, const char *node, hf_time at)
{
	HF_AUTOFREE char *key = hf_xasprintf("%s/%s", topic, node);
	char since[HF_TIME_TEXT_MAX];
	char *copy;

	hf_time_format(at, since);
	if (hf_streq(hf_map_get(policy->told, key), since))
		return false;
	copy = hf_xstrdup(since);
	if (!hf_map_put(policy->told, key, copy))
		free(copy);
	return true;
}

void hf_fleet_event_node(struct hf_fleet *fleet, const char *node, bool warning, const char *reason,
			 const char *message)
{
	struct hf_event_note note = {.api_version = "v1",
				     .kind = "Node",
				     .name = node,
				     .uid = node,
				     .reason = reason,
				     .message = message};

	record_event(fleet, &note, warning);
}

static void record_policy_event(struct hf_fleet *fleet, const struct fleet_policy *policy,
				bool warning, const char *reason, const char *message)
{
	struct hf_event_note note = {.api_version = HF_HEALTH_POLICY_API_VERSION,
				     .kind = HF_HEALTH_POLICY_KIND,
				     .name = policy->name,
				     .uid = policy->uid,
				     .reason = reason,
				     .message = message};

	record_event(fleet, &note, warning);
}

/* The event's reason. NULL: no event. */
static const char *reason_of(const struct hf_health_decision *d)
{
	if (d->answer == HF_HEALTH_WOULD) {
		if (d->doing == HF_HEALTH_DO_QUARANTINE)
			return "WouldQuarantine";
		if (d->doing == HF_HEALTH_DO_RELEASE)
			return "WouldRelease";
		return "RemediationNeeded";
	}
	/* Events of nodes leave out an open breaker and a pause. Both concern the whole fleet, and
	 * one event of the policy reports them. */
	if (d->answer == HF_HEALTH_HELD && d->why != HF_HEALTH_WHY_BREAKER &&
	    d->why != HF_HEALTH_WHY_PAUSED)
		return d->doing == HF_HEALTH_DO_QUARANTINE ? "QuarantineBlocked"
							   : "RemediationBlocked";
	return NULL;
}

static void tell_node(struct hf_fleet *fleet, const struct fleet_seen *seen, size_t i)
{
	const struct hf_health_decision *d = &seen->plan.decisions[i];
	const char *reason = reason_of(d);
	char message[512];
	char *copy;

	if (reason == NULL) {
		if (d->answer == HF_HEALTH_NOTHING)
			hf_map_remove(seen->policy->told, d->node);
		return;
	}
	snprintf(message, sizeof(message), "%s: %s, %s (policy %s)",
		 hf_health_class_name(seen->nodes[i].cls), hf_str_or(next_of(d), "nothing"),
		 why_of(d), seen->policy->name);
	if (hf_streq(hf_map_get(seen->policy->told, d->node), message))
		return;
	copy = hf_xstrdup(message);
	/* If the table of reported messages is full, the message is sent again: the event recorder
	 * combines repeated events. */
	if (!hf_map_put(seen->policy->told, d->node, copy))
		free(copy);
	hf_fleet_event_node(fleet, d->node, d->answer == HF_HEALTH_HELD, reason, message);
}

static void tell_breaker(struct hf_fleet *fleet, const struct fleet_seen *seen)
{
	const struct hf_health_policy_memory *was = &seen->policy->status.memory;
	struct fleet_policy *policy = seen->policy;
	char message[256];

	/* Report the open breaker only after the policy's status stores it: the event must not
	 * precede the fact. */
	if (seen->memory_moved && !policy->seen) {
		policy->status.memory.breaker_open = !seen->memory.breaker_open;
		policy->seen = true;
	}
	if (seen->memory_moved || !policy->seen)
		return;
	if (seen->memory.breaker_open && !was->breaker_open) {
		snprintf(
			message, sizeof(message),
			"too many nodes failed at once: Holdfast stops all actions until a person raises "
			"spec.breaker.epoch to %lld",
			(long long)seen->memory.breaker_epoch + 1);
		record_policy_event(fleet, policy, true, "BreakerTripped", message);
	} else if (!seen->memory.breaker_open && was->breaker_open) {
		record_policy_event(
			fleet, policy, false, "BreakerClosed",
			"spec.breaker.epoch was raised: Holdfast acts again, on evidence from now on");
	}
}

static void remember_round(const struct fleet_seen *seen, struct hf_fleet *fleet,
			   struct hf_arena *arena)
{
	struct fleet_policy *policy = seen->policy;

	hf_fleet_fill_status(fleet, seen, arena, &policy->status);
	/* The round's arena is reset now, so keep the numbers and no pointers into the arena. */
	policy->status.nodes.items = NULL;
	policy->status.nodes.len = 0;
	policy->status.memory.recent.items = NULL;
	policy->status.memory.recent.len = 0;
	policy->status.breaker_message = policy->status.mode = policy->status.problem = NULL;
	memset(policy->held, 0, sizeof(policy->held));
	for (size_t i = 0; i < seen->plan.len; i++)
		policy->held[seen->plan.decisions[i].why] +=
			seen->plan.decisions[i].answer == HF_HEALTH_HELD;
	policy->seen = true;
}

/* The breaker has counted this fault, so from now on only a budget may hold the quarantine back.
 * Faults that are held for the four reasons below are not counted yet: the breaker counts them when
 * the reason ends. */
static bool is_weighed(const struct hf_health_decision *d)
{
	switch (d->why) {
	case HF_HEALTH_WHY_STALE:
	case HF_HEALTH_WHY_NO_CAPACITY:
	case HF_HEALTH_WHY_FOREIGN:
	case HF_HEALTH_WHY_FLAPS: return false;
	default: return d->doing == HF_HEALTH_DO_QUARANTINE;
	}
}

/* Notes the faults that the policy's breaker has counted without opening. */
static void mark_weighed(const struct fleet_seen *seen)
{
	for (size_t i = 0; i < seen->len && seen->policy->usable && !seen->plan.breaker.tripped;
	     i++) {
		if (is_weighed(&seen->plan.decisions[i]))
			seen->items[i].health->weighed_by = seen->policy;
	}
}

void hf_fleet_report(struct hf_fleet *fleet, const struct fleet_seen *seen)
{
	struct fleet_policy *policy = seen->policy;

	tell_breaker(fleet, seen);
	if (policy->problem != NULL && !policy->problem_told) {
		policy->problem_told = true;
		record_policy_event(fleet, policy, true, "InvalidPolicy", policy->problem);
	}
	for (size_t i = 0; i < seen->len; i++)
		tell_node(fleet, seen, i);
	mark_weighed(seen);
	if (!seen->memory_moved)
		remember_round(seen, fleet, fleet->arena);
}

/* --- metrics ---------------------------------------------------------------------------------- */

static struct hf_family *create_family(struct hf_fleet *fleet, enum hf_metric_type type,
				       const char *name, const char *help, const char *first,
				       const char *second)
{
	const struct hf_metric_options options = {
		.name = name, .help = help, .type = type, .labels = {first, second}};

	return hf_metrics_family(fleet->env.metrics, &options);
}

void hf_fleet_init_metrics(struct hf_fleet *fleet)
{
	const struct hf_metric_options seconds = {
		.name = "holdfast_quarantine_seconds",
		.help = "Seconds from the decision to quarantine a node to the taint on the Node.",
		.type = HF_METRIC_HISTOGRAM,
		.labels = {"stage"},
		.buckets = {0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30},
	};

	if (fleet->env.metrics == NULL)
		return;
	fleet->metrics.nodes =
		create_family(fleet, HF_METRIC_GAUGE, "holdfast_health_nodes",
			      "Nodes of a HealthPolicy: selected, unhealthy, quarantined, "
			      "unavailable, silent.",
			      "policy", "what");
	fleet->metrics.left = create_family(
		fleet, HF_METRIC_GAUGE, "holdfast_budget_remaining",
		"Actions that a budget of a policy still allows, by budget.", "policy", "kind");
	fleet->metrics.blocked =
		create_family(fleet, HF_METRIC_GAUGE, "holdfast_actions_blocked",
			      "Nodes whose action is held back, by reason.", "policy", "reason");
	fleet->metrics.tripped = create_family(
		fleet, HF_METRIC_GAUGE, "holdfast_breaker_tripped",
		"1 if the breaker of the policy is open: a person must raise spec.breaker.epoch.",
		"policy", NULL);
	fleet->metrics.epoch = create_family(
		fleet, HF_METRIC_GAUGE, "holdfast_breaker_epoch",
		"The breaker epoch of the policy: how often a person closed the breaker.", "policy",
		NULL);
	fleet->metrics.done =
		create_family(fleet, HF_METRIC_COUNTER, "holdfast_remediation_total",
			      "Quarantines and releases, by result.", "rung", "result");
	fleet->metrics.evictions = create_family(
		fleet, HF_METRIC_COUNTER, "holdfast_evictions_total",
		"Evictions of pods that hold failed devices, by result.", "result", NULL);
	fleet->metrics.seconds = hf_metrics_family(fleet->env.metrics, &seconds);
}

void hf_fleet_count_act(struct hf_fleet *fleet, const char *what, const char *result)
{
	hf_time took = hf_fleet_now(fleet) - fleet->began;

	if (fleet->env.metrics == NULL)
		return;
	hf_family_add(fleet->metrics.done, 1, what, result, NULL);
	if (hf_streq(what, "quarantine") && hf_streq(result, "done"))
		hf_family_observe(fleet->metrics.seconds, (double)took / (double)HF_SECOND, "taint",
				  NULL);
}

void hf_fleet_count_eviction(struct hf_fleet *fleet, const char *result)
{
	if (fleet->env.metrics != NULL)
		hf_family_add(fleet->metrics.evictions, 1, result, NULL);
}

static void update_policy(struct hf_fleet *fleet, const struct fleet_policy *policy)
{
	const struct hf_health_policy_status *s = &policy->status;
	const struct {
		const char *what;
		int32_t value;
	} nodes[] = {{"selected", s->selected},
		     {"unhealthy", s->unhealthy},
		     {"quarantined", s->quarantined},
		     {"unavailable", s->unavailable},
		     {"silent", s->silent}};

	for (size_t i = 0; i < HF_ARRAY_LEN(nodes); i++)
		hf_family_set(fleet->metrics.nodes, nodes[i].value, policy->name, nodes[i].what,
			      NULL);
	if (s->unavailable_left >= 0)
		hf_family_set(fleet->metrics.left, s->unavailable_left, policy->name, "unavailable",
			      NULL);
	hf_family_set(fleet->metrics.left, s->quarantines_left, policy->name, "quarantines", NULL);
	hf_family_set(fleet->metrics.tripped, s->memory.breaker_open ? 1 : 0, policy->name, NULL);
	hf_family_set(fleet->metrics.epoch, (double)s->memory.breaker_epoch, policy->name, NULL);
	for (size_t i = 0; i < HF_HEALTH_WHY_COUNT; i++) {
		const char *text = hf_health_why_text((enum hf_health_why)i);
		char name[32];

		if (policy->held[i] == 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, ":"), text);
		hf_family_set(fleet->metrics.blocked, policy->held[i], policy->name, name, NULL);
	}
}

void hf_fleet_update_metrics(struct hf_fleet *fleet)
{
	hf_family_clear(fleet->metrics.nodes);
	hf_family_clear(fleet->metrics.left);
	hf_family_clear(fleet->metrics.blocked);
	hf_family_clear(fleet->metrics.tripped);
	hf_family_clear(fleet->metrics.epoch);
	for (size_t i = 0; i < fleet->n_policies; i++)
		if (fleet->policies[i]->seen)
			update_policy(fleet, fleet->policies[i]);
}
