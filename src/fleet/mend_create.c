/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/mend_internal.h"

#include "api/device_health.h"
#include "base/fs.h"
#include "base/str.h"
#include "fleet/impact.h"
#include "store/resource.h"

#include <stdio.h>
#include <string.h>

/*
 * Creates the Remediation that the plan of a policy asks for.
 *
 * Input: the objects that the pass has read live; the caches have them as well. Output: one create.
 * Invariants: the plan is made again from the live objects. A node has at most one open
 * Remediation, and a policy at most spec.mend.maxConcurrent. Two operators choose the same name for
 * the same act, so the second create fails.
 */

/* Before a person, the external controller is asked once in each quarantine. Class support needs a
 * person. Pods that work keep the node, unless nothing is heard of it any more. */
static bool may_give_away(const struct hf_policy_mend *rules, const struct hf_health_node *node,
			  const struct hf_health_decision *d, bool given)
{
	return rules->externals && node->cls != HF_HEALTH_SUPPORT && !given &&
	       (!node->undrainable || d->why == HF_HEALTH_WHY_LOST);
}

/* Finds the rung that the plan asks for. False: the plan asks for no act that can be performed, and for no
 * person. */
static bool find_rung(const struct fleet_mend *mend, const struct fleet_policy *policy,
		      const struct hf_health_decision *d, const struct hf_health_node *node,
		      enum hf_mend_rung *ret_rung)
{
	if (d->answer != HF_HEALTH_GO)
		return false;
	if (d->doing == HF_HEALTH_DO_GIVE_UP)
		*ret_rung =
			may_give_away(&policy->spec.mend, node, d, mend->others.external_on_node)
				? HF_MEND_EXTERNAL
				: HF_MEND_PERSON;
	else if (d->doing != HF_HEALTH_DO_REMEDY)
		return false;
	else if (d->action == HF_HEALTH_RESET_DEVICE)
		*ret_rung = HF_MEND_RESET_DEVICE;
	else if (d->action == HF_HEALTH_RESTART_NODE)
		*ret_rung = HF_MEND_REBOOT;
	else if (d->action == HF_HEALTH_RESTART_DRIVER)
		*ret_rung = HF_MEND_RESTART_PLUGIN;
	else
		return false;
	return true;
}

static bool may_create(const struct fleet_mend *mend, const struct fleet_policy *policy,
		       enum hf_mend_rung rung)
{
	const struct mend_others *o = &mend->others;
	const struct hf_json *node = hf_doc_json(mend->docs[MEND_READ_NODE]);

	if (rung == HF_MEND_PERSON)
		return !o->person_on_node && !o->busy_on_node && !o->cancelled_on_node;
	return !o->open_on_node && !o->cancelled_on_node && o->unreadable == NULL &&
	       o->open < policy->spec.mend.at_once && !policy->spec.mend.hold &&
	       !hf_paused(hf_json_path_str(node, "metadata", "annotations", HF_MEND_HOLD_ANNOTATION,
					   NULL));
}

/* ---- the spec -------------------------------------------------------------------------------- */

static void set_fault(const struct hf_device_report *device, struct hf_remediation_spec *spec)
{
	for (size_t k = 0; k < device->faults.len; k++) {
		const struct hf_device_fault *fault = &device->faults.items[k];

		if (!hf_impact_counts(fault) || !hf_streq(fault->cls, spec->fault.cls) ||
		    spec->fault.text != NULL)
			continue;
		spec->fault.text = hf_str_or(fault->line, fault->detector);
		spec->fault.code = fault->code;
	}
}

/* Lists the devices that are out of use: the fault of each is to be mended by the reset. */
static void set_devices(const struct hf_device_health *health, enum hf_mend_rung rung,
			struct hf_remediation_spec *spec, struct hf_arena *arena)
{
	spec->devices.items =
		HF_ARENA_ARRAY(arena, struct hf_remediation_device, HF_REMEDIATION_DEVICES_MAX);
	for (size_t i = 0; i < health->devices.len; i++) {
		const struct hf_device_report *device = &health->devices.items[i];

		if (!hf_health_is_out(hf_impact_state(device->state)))
			continue;
		set_fault(device, spec);
		if (rung != HF_MEND_RESET_DEVICE || hf_str_is_empty(device->uuid) ||
		    !hf_impact_is_gpu(device) || spec->devices.len == HF_REMEDIATION_DEVICES_MAX)
			continue;
		spec->devices.items[spec->devices.len++] =
			(struct hf_remediation_device){.id = device->id, .uuid = device->uuid};
	}
}

static bool gives_up(enum hf_mend_rung rung)
{
	return rung == HF_MEND_PERSON || rung == HF_MEND_EXTERNAL;
}

/* A boot ends the faults of a GPU that has not come back. Then the quarantine has the time of the fault. */
static hf_time find_fault_time(const struct hf_health_node *node, enum hf_mend_rung rung)
{
	return node->evidence_at == HF_TIME_NONE && gives_up(rung) ? node->owned_at
								   : node->evidence_at;
}

static const char *find_class(const struct fleet_seen *seen, size_t i, enum hf_mend_rung rung)
{
	const struct hf_health_node *node = &seen->nodes[i];

	return node->cls < HF_HEALTH_SOFTWARE && gives_up(rung) ? seen->items[i].node->mark.cls
								: hf_health_class_name(node->cls);
}

static bool fill_spec(struct fleet_mend *mend, const struct fleet_seen *seen, size_t i,
		      enum hf_mend_rung rung, struct hf_remediation_spec *spec)
{
	const struct hf_health_node *node = &seen->nodes[i];
	char *nonce = hf_arena_alloc(mend->arena, HF_REMEDIATION_NONCE_LEN + 1);
	struct hf_device_health health = {0};

	/* A node that is given away may have no report. */
	if ((mend->docs[MEND_READ_HEALTH] == NULL && !gives_up(rung)) ||
	    find_fault_time(node, rung) == HF_TIME_NONE || mend->others.attempt == INT32_MAX ||
	    hf_random_hex(nonce, HF_REMEDIATION_NONCE_LEN, NULL) != 0)
		return false;
	if (mend->docs[MEND_READ_HEALTH] != NULL)
		hf_device_health_read(mend->docs[MEND_READ_HEALTH], mend->arena, &health);
	*spec = (struct hf_remediation_spec){
		.node = mend->node,
		.rung = hf_mend_rung_name(rung),
		.fault = {.cls = find_class(seen, i, rung), .at = find_fault_time(node, rung)},
		/* The last report of a silent node may be of an earlier boot. */
		.boot_id = rung == HF_MEND_PERSON ? NULL : seen->items[i].node->marks.boot_id,
		.attempt = mend->others.attempt + 1,
		.nonce = nonce,
		.policy = mend->policy,
		.requested_by = "policy",
		.deadline_seconds = seen->policy->spec.mend.deadline,
	};
	set_devices(&health, rung, spec, mend->arena);
	return rung != HF_MEND_RESET_DEVICE || spec->devices.len > 0;
}

static struct hf_json *make_object(const struct hf_remediation_spec *spec, enum hf_mend_rung rung)
{
	struct hf_json *json = hf_remediation_object(spec);

	/* A person's task changes nothing that would have to be put back. */
	if (rung != HF_MEND_PERSON)
		hf_json_append(
			hf_json_ensure_array(hf_json_ensure_object(json, "metadata"), "finalizers"),
			hf_json_string(HF_MEND_FINALIZER));
	return json;
}

/* True if the node has evidence of a fault from after the last proved act on the node. Older
 * evidence creates no Remediation. */
static bool is_new(const struct fleet_mend *mend, const struct hf_health_node *node,
		   enum hf_mend_rung rung)
{
	return mend->others.mended_at == HF_TIME_NONE ||
	       find_fault_time(node, rung) > mend->others.mended_at;
}

bool hf_fleet_mend_make(struct fleet_mend *mend, struct hf_request *ret_request,
			struct hf_doc **ret_body)
{
	struct fleet_policy *policy = hf_fleet_find_policy(mend->fleet, mend->policy);
	const struct hf_cache_entry *entry =
		hf_cache_get(mend->fleet->policies_cache, NULL, mend->policy);
	HF_AUTO_ARENA arena = hf_arena_create(HF_FLEET_ARENA_MAX);
	struct hf_remediation_spec spec;
	struct fleet_seen seen;
	enum hf_mend_rung rung;

	if (policy == NULL || entry == NULL || mend->fleet->nodes == NULL ||
	    mend->docs[MEND_READ_NODE] == NULL)
		return false;
	hf_fleet_see(mend->fleet, policy, entry->doc, arena, &seen);
	for (size_t i = 0; i < seen.len && !seen.memory_moved; i++) {
		if (!hf_streq(seen.items[i].name, mend->node))
			continue;
		if (!find_rung(mend, policy, &seen.plan.decisions[i], &seen.nodes[i], &rung) ||
		    !may_create(mend, policy, rung) || !is_new(mend, &seen.nodes[i], rung) ||
		    !fill_spec(mend, &seen, i, rung, &spec))
			return false;
		*ret_body = hf_doc_from_json(make_object(&spec, rung));
		*ret_request = (struct hf_request){
			.verb = HF_VERB_CREATE, .resource = &hf_remediations, .body = *ret_body};
		return true;
	}
	return false;
}

/* ---- which acts are asked for ------------------------------------------------------------------ */

static bool is_wanted(const struct fleet_seen *seen, size_t i)
{
	const struct hf_health_decision *d = &seen->plan.decisions[i];
	const struct fleet_item *item = &seen->items[i];

	if (d->answer != HF_HEALTH_GO || strlen(d->node) > HF_REMEDIATION_NODE_MAX)
		return false;
	if (d->doing != HF_HEALTH_DO_GIVE_UP)
		return d->doing == HF_HEALTH_DO_REMEDY;
	return !item->called_off &&
	       (!item->asked ||
		may_give_away(&seen->policy->spec.mend, &seen->nodes[i], d, item->given_away));
}

/* The list may be too short for all nodes, and some of them may get no act. So each round begins after the last node of
 * the former one. */
void hf_fleet_mend_list_wanted(struct fleet_mend *mend, const struct fleet_seen *seen)
{
	struct fleet_policy *policy = seen->policy;
	size_t from = policy->wants_from;

	if (!policy->spec.mend.allowed || seen->memory_moved)
		return;
	for (size_t i = 0; i < mend->wanted_len;) {
		if (hf_streq(mend->wanted[i].policy, policy->name))
			mend->wanted[i] = mend->wanted[--mend->wanted_len];
		else
			i++;
	}
	for (size_t n = 0; n < seen->plan.len && mend->wanted_len < HF_MEND_WANTED_MAX; n++) {
		size_t i = (from + n) % seen->plan.len;
		struct mend_wanted *wanted = &mend->wanted[mend->wanted_len];

		if (!is_wanted(seen, i))
			continue;
		snprintf(wanted->node, sizeof(wanted->node), "%s", seen->plan.decisions[i].node);
		snprintf(wanted->policy, sizeof(wanted->policy), "%s", policy->name);
		mend->wanted_len++;
		policy->wants_from = i + 1;
	}
}
