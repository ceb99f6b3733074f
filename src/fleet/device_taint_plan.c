/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/device_taint_plan.h"

#include "base/str.h"
#include "fleet/impact.h"

#include <string.h>

/* Before the name of a ResourceClaim, where a device of a plugin has its resource. */
#define CLAIM "claim:"
#define WHOLE_NODE "the fault concerns the whole node"

static bool is_node(const struct hf_device_report *device)
{
	return hf_str_is_empty(device->id);
}

static bool has_failed(const struct hf_device_report *device)
{
	return !is_node(device) && hf_impact_of_device(device) != HF_IMPACT_NONE;
}

static bool has_node_failed(const struct hf_device_health *health)
{
	const struct hf_device_report *node = hf_impact_node_report(health);

	return node != NULL && hf_impact_of_device(node) != HF_IMPACT_NONE;
}

bool hf_device_taint_is_confined(const struct hf_device_health *health)
{
	bool any = false;

	for (size_t i = 0; i < health->devices.len; i++)
		any |= has_failed(&health->devices.items[i]);
	return any && !has_node_failed(health);
}

/* The name of the device in the annotation of its rule: the UUID, or else the PCI address. */
static const char *gpu_of(const struct hf_device_report *device)
{
	return hf_str_is_empty(device->uuid) ? device->id : device->uuid;
}

/* The agent may not have known the UUID when the rule was made, or may not know it now. */
static bool names_device(const struct hf_device_taint *rule, const struct hf_device_report *device)
{
	return hf_streq(rule->gpu, device->uuid) || hf_streq(rule->gpu, device->id);
}

static enum hf_dra_answer find_device(const struct hf_device_taint_view *view,
				      const struct hf_device_report *device,
				      struct hf_dra_match *matches, size_t *len)
{
	return hf_dra_find(view->slices, view->slices_len, device->uuid, device->id, matches, len);
}

static bool has_rule(const struct hf_device_taint_view *view, const struct hf_device_report *device)
{
	for (size_t i = 0; i < view->rules_len; i++)
		if (names_device(&view->rules[i], device))
			return true;
	return false;
}

const char *hf_device_taint_list(const struct hf_device_taint_view *view, struct hf_arena *arena)
{
	const char *text = NULL;

	for (size_t i = 0; view->health != NULL && i < view->health->devices.len; i++) {
		const struct hf_device_report *device = &view->health->devices.items[i];

		if (has_failed(device))
			text = text == NULL
				       ? hf_arena_printf(arena, "%.100s", gpu_of(device))
				       : hf_arena_printf(arena, "%s %.100s", text, gpu_of(device));
	}
	return text;
}

/* ---- rules that are not needed ------------------------------------------------------------------ */

/* Whether the driver has given the name of the rule's device to another GPU. */
static bool is_given_away(const struct hf_device_taint_view *view,
			  const struct hf_device_taint *rule, const char *uuid, const char *pci)
{
	const struct hf_dra_match name = {
		.driver = rule->driver, .pool = rule->pool, .device = rule->device};

	return hf_dra_is_other(view->slices, view->slices_len, &name, uuid, pci);
}

/* The driver publishes the device under the name of the rule. */
static bool has_name(const struct hf_device_taint_view *view, const struct hf_device_report *device,
		     const struct hf_device_taint *rule, enum hf_dra_answer *ret_answer)
{
	struct hf_dra_match matches[HF_DRA_MATCHES_MAX];
	size_t len;

	*ret_answer = find_device(view, device, matches, &len);
	for (size_t i = 0; i < len; i++)
		if (hf_streq(matches[i].driver, rule->driver) &&
		    hf_streq(matches[i].pool, rule->pool) &&
		    hf_streq(matches[i].device, rule->device))
			return true;
	return false;
}

/* Whether the rule still belongs to this device. While the driver is away, or rewrites its pool, the rule stays. */
static bool is_rule_of(const struct hf_device_taint_view *view,
		       const struct hf_device_report *device, const struct hf_device_taint *rule)
{
	enum hf_dra_answer answer;

	if (has_name(view, device, rule, &answer) || answer == HF_DRA_INCOMPLETE)
		return true;
	return answer == HF_DRA_NONE && !is_given_away(view, rule, device->uuid, device->id);
}

/* The driver has given the name of the rule to another GPU that the agent knows by its UUID. */
static bool is_of_another(const struct hf_device_taint_view *view,
			  const struct hf_device_taint *rule)
{
	enum hf_dra_answer answer;

	for (size_t i = 0; i < view->health->devices.len; i++) {
		const struct hf_device_report *device = &view->health->devices.items[i];

		if (!is_node(device) && !hf_str_is_empty(device->uuid) &&
		    has_name(view, device, rule, &answer))
			return true;
	}
	return false;
}

static bool is_needed(const struct hf_device_taint_view *view, const struct hf_device_taint *rule)
{
	if (view->effect == NULL)
		return false;
	/* Without a DeviceHealth nothing shows that the device is well. */
	if (view->health == NULL)
		return true;
	for (size_t i = 0; i < view->health->devices.len; i++) {
		const struct hf_device_report *device = &view->health->devices.items[i];

		if (is_node(device) || !names_device(rule, device))
			continue;
		return hf_impact_state(device->state) != HF_HEALTH_HEALTHY &&
		       is_rule_of(view, device, rule);
	}
	/* The agent does not report the GPU any more, or has lost its UUID. Only a PCI address has a colon. */
	if (is_of_another(view, rule))
		return false;
	return strchr(rule->gpu, ':') == NULL ? !is_given_away(view, rule, rule->gpu, NULL)
					      : !is_given_away(view, rule, NULL, rule->gpu);
}

/* ---- failed devices ------------------------------------------------------------------------------ */

/* Pods work on with a slow device until they end by themselves. */
static const char *find_effect(const struct hf_device_taint_view *view,
			       const struct hf_device_report *device)
{
	return hf_streq(view->effect, "NoExecute") && hf_impact_of_device(device) == HF_IMPACT_SLOW
		       ? "NoSchedule"
		       : view->effect;
}

/* Brings class and effect of a rule of the device up to date. Returns false if they are. */
static bool plan_change(const struct hf_device_taint_view *view,
			const struct hf_device_report *device, size_t at,
			struct hf_device_taint_plan *plan)
{
	const char *cls = hf_str_or(device->cls, "none"), *effect = find_effect(view, device);
	const struct hf_device_taint *rule = &view->rules[at];

	if (hf_streq(rule->effect, effect) && hf_streq(rule->cls, cls))
		return false;
	plan->act = HF_DEVICE_TAINT_CHANGE;
	plan->at = at;
	plan->rule.cls = cls;
	plan->rule.effect = effect;
	return true;
}

static bool plan_match(const struct hf_device_taint_view *view,
		       const struct hf_device_report *device, const struct hf_dra_match *match,
		       struct hf_arena *arena, struct hf_device_taint_plan *plan)
{
	const char *name = hf_device_taint_name(arena, view->node, match);

	for (size_t i = 0; i < view->rules_len; i++)
		if (hf_streq(view->rules[i].name, name))
			return plan_change(view, device, i, plan);
	plan->act = HF_DEVICE_TAINT_CREATE;
	plan->rule = (struct hf_device_taint){.name = name,
					      .node = view->node,
					      .gpu = gpu_of(device),
					      .driver = match->driver,
					      .pool = match->pool,
					      .device = match->device,
					      .cls = hf_str_or(device->cls, "none"),
					      .effect = find_effect(view, device)};
	return true;
}

/* The resource of the kubelet that has the device. The agent knows it while a pod has the device, and for an hour after;
 * other devices of the kind have the same. NULL: unknown, or they have several, or a pod has the device by a claim. */
static const char *find_resource(const struct hf_device_health *health,
				 const struct hf_device_report *device)
{
	const char *found = NULL;

	if (!hf_str_is_empty(device->resource))
		return hf_str_has_prefix(device->resource, CLAIM) ? NULL : device->resource;
	for (size_t i = 0; i < health->devices.len; i++) {
		const struct hf_device_report *other = &health->devices.items[i];

		if (!hf_streq(other->kind, device->kind) || hf_str_is_empty(other->resource) ||
		    hf_str_has_prefix(other->resource, CLAIM))
			continue;
		if (found != NULL && !hf_streq(found, other->resource))
			return NULL;
		found = other->resource;
	}
	return found;
}

/* How many devices of this resource have failed. */
static int64_t count_failed(const struct hf_device_health *health, const char *resource)
{
	int64_t n = 0;

	for (size_t i = 0; i < health->devices.len; i++)
		n += has_failed(&health->devices.items[i]) &&
		     hf_streq(find_resource(health, &health->devices.items[i]), resource);
	return n;
}

/* The device is no device of DRA. If its device plugin withholds it from pods, nothing has to be done. */
static void plan_plugin(const struct hf_device_taint_view *view,
			const struct hf_device_report *device, enum hf_dra_answer answer,
			struct hf_arena *arena, struct hf_device_taint_plan *plan)
{
	const char *resource = find_resource(view->health, device);

	if (resource != NULL && answer == HF_DRA_NONE) {
		if (view->withheld(view->arg, resource) >= count_failed(view->health, resource))
			return;
		plan->why_offered = hf_arena_printf(
			arena, "the device plugin of %.100s still offers the failed device %.100s",
			resource, gpu_of(device));
		plan->offers_slow |= hf_impact_of_device(device) == HF_IMPACT_SLOW;
		return;
	}
	/* No pod had a device of the node for an hour. The plugin withheld this one before, and still withholds as many. */
	if (resource == NULL && answer == HF_DRA_NONE &&
	    hf_device_is_withheld(view->health, device) &&
	    view->withheld(view->arg, NULL) >= count_failed(view->health, NULL))
		return;
	plan->why_node = hf_arena_printf(arena, "device %.100s: %s", gpu_of(device),
					 hf_dra_answer_text(answer));
}

/* Returns true if the plan has a write. */
static bool plan_device(const struct hf_device_taint_view *view,
			const struct hf_device_report *device, struct hf_arena *arena,
			struct hf_device_taint_plan *plan)
{
	struct hf_dra_match matches[HF_DRA_MATCHES_MAX];
	size_t len;
	enum hf_dra_answer answer = find_device(view, device, matches, &len);

	if (answer == HF_DRA_INCOMPLETE) {
		plan->act = HF_DEVICE_TAINT_WAIT;
		return false;
	}
	/* A driver that is away offers no device. */
	if (answer != HF_DRA_FOUND && !has_rule(view, device)) {
		plan_plugin(view, device, answer, arena, plan);
		return false;
	}
	for (size_t i = 0; i < len; i++)
		if (plan_match(view, device, &matches[i], arena, plan))
			return true;
	for (size_t i = 0; i < view->rules_len; i++)
		if (names_device(&view->rules[i], device) && plan_change(view, device, i, plan))
			return true;
	return false;
}

void hf_device_taint_plan(const struct hf_device_taint_view *view, struct hf_arena *arena,
			  struct hf_device_taint_plan *ret_plan)
{
	*ret_plan = (struct hf_device_taint_plan){.act = HF_DEVICE_TAINT_NOTHING};
	/* A wrong rule first: it takes a well device out of use. */
	for (size_t i = 0; i < view->rules_len; i++)
		if (!is_needed(view, &view->rules[i])) {
			ret_plan->act = HF_DEVICE_TAINT_DELETE;
			ret_plan->at = i;
			return;
		}
	if (view->effect == NULL || view->health == NULL || !view->may_create)
		return;
	for (size_t i = 0; i < view->health->devices.len; i++)
		if (has_failed(&view->health->devices.items[i]) &&
		    plan_device(view, &view->health->devices.items[i], arena, ret_plan))
			return;
	if (ret_plan->why_node == NULL && has_node_failed(view->health))
		ret_plan->why_node = WHOLE_NODE;
}
