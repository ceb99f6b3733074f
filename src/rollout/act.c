/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "rollout/rollout_internal.h"

#include "api/device_health.h"
#include "api/lifetime.h"
#include "api/node_locks.h"
#include "api/remediation.h"
#include "base/str.h"
#include "store/resource.h"

#include <inttypes.h>
#include <string.h>

/*
 * Makes the one request that a step on a node asks for.
 * Input: facts and the step. Output: a request. Invariant: each write is guarded by the version or the UID that the
 * pass has read; the create of a Lease fails if another process has created one first.
 */

static void set_guard(struct hf_json *patch, struct hf_doc *doc)
{
	hf_json_set_str(hf_json_ensure_object(patch, "metadata"), "resourceVersion",
			hf_doc_resource_version(doc));
}

static bool patch_node(struct ro *ro, struct hf_json *patch, struct hf_request *ret_request,
		       struct hf_doc **ret_body)
{
	set_guard(patch, ro->pass.docs[RO_READ_NODE]);
	*ret_body = hf_doc_from_json(patch);
	*ret_request = (struct hf_request){.verb = HF_VERB_PATCH,
					   .resource = &hf_nodes,
					   .name = ro->pass.node,
					   .patch_type = HF_PATCH_MERGE,
					   .body = *ret_body};
	return true;
}

static struct hf_json *annotations_of(struct hf_json *patch)
{
	return hf_json_ensure_object(hf_json_ensure_object(patch, "metadata"), "annotations");
}

static bool cordon_node(struct ro *ro, struct hf_request *ret_request, struct hf_doc **ret_body)
{
	struct hf_json *patch = hf_json_object();

	hf_json_set_str(annotations_of(patch), HF_ROLLOUT_ANNOTATION, ro->pass.name);
	hf_json_set_bool(hf_json_ensure_object(patch, "spec"), "unschedulable", true);
	return patch_node(ro, patch, ret_request, ret_body);
}

static bool uncordon_node(struct ro *ro, struct hf_request *ret_request, struct hf_doc **ret_body)
{
	struct hf_json *patch = hf_json_object();

	hf_json_set(annotations_of(patch), HF_ROLLOUT_ANNOTATION, hf_json_null());
	hf_json_set(hf_json_ensure_object(patch, "spec"), "unschedulable", hf_json_null());
	return patch_node(ro, patch, ret_request, ret_body);
}

static bool write_condition(struct ro *ro, const struct ro_facts *facts, bool is_true,
			    struct hf_request *ret_request, struct hf_doc **ret_body)
{
	*ret_body = hf_node_maintenance_patch(
		ro->pass.docs[RO_READ_NODE], is_true, is_true ? "DeviceRollout" : "Ended",
		is_true ? hf_ro_print_work(ro)
			: hf_arena_printf(ro->pass.arena, "%s has ended its work",
					  hf_ro_print_work(ro)),
		facts->view.now);
	*ret_request = (struct hf_request){.verb = HF_VERB_PATCH,
					   .resource = &hf_nodes,
					   .name = ro->pass.node,
					   .subresource = "status",
					   .patch_type = HF_PATCH_STRATEGIC,
					   .body = *ret_body};
	return true;
}

/* ---- the Lease ----------------------------------------------------------------------------------- */

static bool take_lease(struct ro *ro, const struct ro_facts *facts, struct hf_request *ret_request,
		       struct hf_doc **ret_body)
{
	struct hf_doc *old = ro->pass.docs[RO_READ_LEASE];
	const struct hf_owner owner = {.api_version = HF_ROLLOUT_API_VERSION,
				       .kind = HF_ROLLOUT_KIND,
				       .name = ro->pass.name,
				       .uid = ro->pass.r.uid};

	*ret_body =
		hf_node_lease(old, ro->pass.node, hf_ro_print_holder(ro), &owner, facts->view.now);
	*ret_request = (struct hf_request){.verb = old != NULL ? HF_VERB_UPDATE : HF_VERB_CREATE,
					   .resource = &hf_leases,
					   .ns = HF_MEND_NAMESPACE,
					   .name = old != NULL ? hf_doc_name(old) : NULL,
					   .body = *ret_body};
	return true;
}

static bool delete_object(const struct hf_resource *resource, struct hf_doc *doc,
			  struct hf_request *ret_request)
{
	if (doc == NULL)
		return false;
	*ret_request = (struct hf_request){.verb = HF_VERB_DELETE,
					   .resource = resource,
					   .ns = hf_doc_namespace(doc),
					   .name = hf_doc_name(doc),
					   .precondition_uid = hf_doc_uid(doc),
					   .grace_seconds = HF_GRACE_DEFAULT};
	return true;
}

/* ---- the change ---------------------------------------------------------------------------------- */

static bool write_mark(struct ro *ro, const struct ro_facts *facts, struct hf_request *ret_request,
		       struct hf_doc **ret_body)
{
	const char *key = ro->pass.spec.label.key;
	const struct hf_json *node = hf_doc_json(ro->pass.docs[RO_READ_NODE]);
	const struct hf_rollout_mark mark = {
		.rollout = ro->pass.name,
		.uid = ro->pass.r.uid,
		.at = facts->view.now,
		/* The value before the rollout is kept while the change is taken back. */
		.previous = facts->has_mark ? facts->mark.previous
			    : key == NULL   ? NULL
					  : hf_json_path_str(node, "metadata", "labels", key, NULL),
		.pod = facts->driver == NULL ? NULL : hf_doc_uid(facts->driver),
		.rolled_back = facts->view.backwards};
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_HEALTH_POLICY_TEXT_MAX);
	HF_AUTO_JSON json = hf_rollout_mark_json(&mark);
	struct hf_json *patch = hf_json_object();
	char annotation[HF_ROLLOUT_MARK_KEY_MAX];

	hf_json_write(json, HF_JSON_COMPACT, &text);
	hf_json_set_str(annotations_of(patch), hf_rollout_mark_key(&ro->pass.spec, annotation),
			text.data);
	return patch_node(ro, patch, ret_request, ret_body);
}

/* The DaemonSet creates the next pod from its newest template, which is the wanted one: see find_template_hold. */
static bool make_change(struct ro *ro, const struct ro_facts *facts, struct hf_request *ret_request,
			struct hf_doc **ret_body)
{
	const struct hf_rollout_spec *spec = &ro->pass.spec;
	const char *value;
	struct hf_json *patch;

	if (spec->daemon_set.name != NULL) {
		if (facts->driver == NULL || hf_is_leaving(hf_doc_json(facts->driver)))
			return false;
		return delete_object(&hf_pods, facts->driver, ret_request);
	}
	value = facts->view.backwards ? facts->mark.previous : spec->label.value;
	patch = hf_json_object();
	hf_json_set(hf_json_ensure_object(hf_json_ensure_object(patch, "metadata"), "labels"),
		    spec->label.key, value == NULL ? hf_json_null() : hf_json_string(value));
	return patch_node(ro, patch, ret_request, ret_body);
}

static bool ask_report(struct ro *ro, const struct ro_facts *facts, struct hf_request *ret_request,
		       struct hf_doc **ret_body)
{
	*ret_body = hf_device_health_note(ro->pass.docs[RO_READ_HEALTH], HF_REPORT_ANNOTATION,
					  facts->request);
	*ret_request = (struct hf_request){.verb = HF_VERB_PATCH,
					   .resource = &hf_devicehealths,
					   .name = ro->pass.node,
					   .patch_type = HF_PATCH_MERGE,
					   .body = *ret_body};
	return *ret_body != NULL;
}

static bool evict_pod(struct ro *ro, const struct ro_facts *facts, struct hf_request *ret_request,
		      struct hf_doc **ret_body)
{
	struct hf_doc *pod = facts->evictee;

	if (pod == NULL)
		return false;
	ro->pass.evictee = hf_ro_print_pod(ro, pod);
	*ret_body = hf_eviction(hf_doc_namespace(pod), hf_doc_name(pod), hf_doc_uid(pod));
	*ret_request = (struct hf_request){.verb = HF_VERB_CREATE,
					   .resource = &hf_pods,
					   .ns = hf_doc_namespace(pod),
					   .name = hf_doc_name(pod),
					   .subresource = "eviction",
					   .body = *ret_body};
	return true;
}

/* ---- the entry ----------------------------------------------------------------------------------- */

static bool has_resource(const struct hf_rollout_node *entry, const char *name)
{
	for (size_t i = 0; i < entry->before.resources.len; i++)
		if (hf_streq(entry->before.resources.items[i].key, name))
			return true;
	return false;
}

static void add_resource(struct ro *ro, const char *name, struct hf_rollout_node *entry)
{
	struct hf_field_pair *pair = &entry->before.resources.items[entry->before.resources.len];

	if (entry->before.resources.len == HF_ROLLOUT_RESOURCES_MAX || has_resource(entry, name))
		return;
	pair->key = hf_arena_strdup(ro->pass.arena, name);
	pair->value = hf_arena_printf(ro->pass.arena, "%" PRId64,
				      hf_ro_read_amount(&ro->pass, name) / 1000);
	entry->before.resources.len++;
}

/* All extended resources of the node, and the devices of each DRA driver. */
static void add_all_resources(struct ro *ro, struct hf_rollout_node *entry)
{
	const struct hf_json *allocatable = hf_json_path(hf_doc_json(ro->pass.docs[RO_READ_NODE]),
							 "status", "allocatable", NULL);
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(allocatable, it, &key, &value));)
		if (hf_ro_is_extended(key))
			add_resource(ro, key, entry);
	for (size_t i = 0; i < ro->pass.slices_len; i++)
		add_resource(ro, ro->pass.slices[i].driver, entry);
}

/* The times of an earlier canary of this node, so that none has to run before the change. */
static void take_history(struct ro *ro, struct hf_rollout_node *entry)
{
	struct hf_rollout_times history;

	if (!ro->pass.spec.proof.canary.wanted || ro->pass.spec.proof.canary.slower_percent < 0)
		return;
	history = hf_ro_canary_history(ro);
	if (history.run_ms > 0)
		entry->before.canary = history;
}

/* Records what the node shows before the change. A rollback is proved by the same numbers. */
static void record_before(struct ro *ro, const struct ro_facts *facts,
			  struct hf_rollout_node *entry)
{
	const struct hf_json *node = hf_doc_json(ro->pass.docs[RO_READ_NODE]);
	const struct hf_rollout_spec *spec = &ro->pass.spec;

	if (facts->view.backwards && entry->before.resources.len > 0)
		return;
	entry->before.resources.items =
		HF_ARENA_ARRAY(ro->pass.arena, struct hf_field_pair, HF_ROLLOUT_RESOURCES_MAX + 1);
	entry->before.resources.len = 0;
	for (size_t i = 0; i < spec->proof.resources.len; i++)
		add_resource(ro, spec->proof.resources.items[i], entry);
	if (spec->proof.resources.len == 0)
		add_all_resources(ro, entry);
	entry->before.driver_version = facts->view.proof.driver_version;
	entry->before.boot_id = facts->view.proof.health_boot_id;
	if (!facts->view.backwards)
		take_history(ro, entry);
	if (spec->label.key != NULL && !facts->view.backwards)
		entry->previous =
			hf_json_path_str(node, "metadata", "labels", spec->label.key, NULL);
}

/* A new canary: the entry has no times of it yet. */
static void begin_canary(struct ro *ro, bool before, struct hf_rollout_node *entry)
{
	memset(&entry->canary, 0, sizeof(entry->canary));
	entry->canary.job = hf_arena_printf(ro->pass.arena, "%s/%s", ro->pass.spec.proof.canary.ns,
					    hf_ro_canary_name(&ro->pass, before));
}

static bool take_pace(const struct ro_facts *facts, const struct hf_rollout_node_step *step,
		      struct hf_rollout_node *entry)
{
	struct hf_rollout_times *times = facts->view.phase == HF_ROLLOUT_BASELINE
						 ? &entry->before.canary
						 : &entry->canary.times;

	if (!step->takes_pace)
		return false;
	times->step_us = step->pace.step_us;
	times->run_ms = step->pace.run_ms;
	return true;
}

/* Moves the entry to the next phase. */
static void move_entry(struct ro *ro, const struct ro_facts *facts,
		       const struct hf_rollout_node_step *step, struct hf_rollout_node *entry)
{
	entry->phase = hf_rollout_phase_name(step->next);
	entry->outcome =
		step->next == HF_ROLLOUT_RESTORING ? hf_rollout_phase_name(step->outcome) : NULL;
	entry->since = facts->view.now;
	if (step->gives_up)
		entry->tries = HF_ROLLOUT_TRIES_MAX * (facts->view.backwards ? 2 : 1);
	if (step->next == HF_ROLLOUT_CORDONED)
		entry->cordoned_by_us = facts->view.own_cordon;
	if (step->next == HF_ROLLOUT_EMPTYING)
		record_before(ro, facts, entry);
	if (step->next == HF_ROLLOUT_BASELINE || step->next == HF_ROLLOUT_CANARY)
		begin_canary(ro, step->next == HF_ROLLOUT_BASELINE, entry);
	entry->canary.failed |= step->canary_failed;
	if (step->next == HF_ROLLOUT_PROVING)
		entry->changed_at = facts->view.now;
	if (step->next > HF_ROLLOUT_RESTORING && step->next != HF_ROLLOUT_FAILED)
		entry->cordoned_by_us = false;
}

/* True if a refused request may be the reason that the work ends. */
static bool ends_by_refusal(const struct ro *ro, const struct ro_facts *facts,
			    const struct hf_rollout_node_step *step)
{
	return facts->view.phase != HF_ROLLOUT_RESTORING && step->next == HF_ROLLOUT_RESTORING &&
	       (step->outcome == HF_ROLLOUT_FAILED || facts->view.phase == HF_ROLLOUT_EMPTYING) &&
	       hf_ro_refusal(ro) != NULL;
}

/* Changes the entry as the step asks for. True: it differs. */
static bool change_entry(struct ro *ro, const struct ro_facts *facts,
			 const struct hf_rollout_node_step *step, struct hf_rollout_node *entry)
{
	bool moves = step->next != facts->view.phase;
	bool put_back = !moves && hf_rollout_phase_is_end(facts->view.phase) &&
			entry->cordoned_by_us && !facts->view.own_cordon;
	bool tells = *step->message != '\0' && !hf_streq(step->message, entry->message);
	bool measured = take_pace(facts, step, entry);

	if (tells)
		entry->message = step->message;
	if (ends_by_refusal(ro, facts, step))
		entry->message =
			hf_arena_printf(ro->pass.arena, "%s: %s", step->message, hf_ro_refusal(ro));
	if (moves)
		move_entry(ro, facts, step, entry);
	if (put_back)
		entry->cordoned_by_us = false;
	return moves || put_back || tells || measured;
}

static bool keep_pace(struct ro *ro, const struct ro_facts *facts, struct hf_request *ret_request,
		      struct hf_doc **ret_body)
{
	struct hf_json *patch;

	if (facts->history == NULL)
		return false;
	patch = hf_json_object();
	hf_json_set_str(annotations_of(patch), HF_ROLLOUT_CANARY_ANNOTATION, facts->history);
	return patch_node(ro, patch, ret_request, ret_body);
}

/* The pods of a deleted job of batch/v1 would stay without this propagation. */
static bool delete_canary(struct ro *ro, struct hf_request *ret_request)
{
	if (!delete_object(hf_ro_canary_kind(&ro->pass.spec), ro->pass.docs[RO_READ_CANARY],
			   ret_request))
		return false;
	ret_request->propagation = HF_PROPAGATE_BACKGROUND;
	return true;
}

static bool perform_step(struct ro *ro, const struct ro_facts *facts,
			 const struct hf_rollout_node_step *step, struct hf_request *ret_request,
			 struct hf_doc **ret_body)
{
	switch (step->act) {
	case HF_ROLLOUT_TAKE_LEASE: return take_lease(ro, facts, ret_request, ret_body);
	case HF_ROLLOUT_CORDON: return cordon_node(ro, ret_request, ret_body);
	case HF_ROLLOUT_SET_CONDITION:
		return write_condition(ro, facts, true, ret_request, ret_body);
	case HF_ROLLOUT_EVICT: return evict_pod(ro, facts, ret_request, ret_body);
	case HF_ROLLOUT_MARK: return write_mark(ro, facts, ret_request, ret_body);
	case HF_ROLLOUT_CHANGE: return make_change(ro, facts, ret_request, ret_body);
	case HF_ROLLOUT_ASK_REPORT: return ask_report(ro, facts, ret_request, ret_body);
	case HF_ROLLOUT_CREATE_CANARY: return hf_ro_create_canary(ro, ret_request, ret_body);
	case HF_ROLLOUT_DELETE_CANARY: return delete_canary(ro, ret_request);
	case HF_ROLLOUT_KEEP_PACE: return keep_pace(ro, facts, ret_request, ret_body);
	case HF_ROLLOUT_UNCORDON: return uncordon_node(ro, ret_request, ret_body);
	case HF_ROLLOUT_CLEAR_CONDITION:
		return write_condition(ro, facts, false, ret_request, ret_body);
	case HF_ROLLOUT_RELEASE_LEASE:
		return delete_object(&hf_leases, ro->pass.docs[RO_READ_LEASE], ret_request);
	default: return false;
	}
}

bool hf_ro_act(struct ro *ro, const struct ro_facts *facts, const struct hf_rollout_node_step *step,
	       struct hf_request *ret_request, struct hf_doc **ret_body)
{
	struct hf_rollout_node *entry = ro->pass.entry;

	*ret_body = NULL;
	/* What is done at once shows in the next pass, so its message is not written. */
	if (step->act != HF_ROLLOUT_DO_NOTHING &&
	    perform_step(ro, facts, step, ret_request, ret_body)) {
		ro->doing = step->act;
		return true;
	}
	if (!change_entry(ro, facts, step, entry))
		return false;
	if (step->next != facts->view.phase)
		ro->done = entry->phase;
	return hf_ro_write_status(ro, &ro->pass.r.status, ret_request, ret_body);
}
