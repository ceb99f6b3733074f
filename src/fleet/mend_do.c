/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/mend_internal.h"

#include "api/device_health.h"
#include "api/lifetime.h"
#include "api/node_locks.h"
#include "base/str.h"
#include "store/resource.h"

#include <stdio.h>

/*
 * Makes the one request that a step of a Remediation asks for.
 *
 * Input: facts and the step. Output: a request. Invariants: each write is guarded by the version or
 * the UID that the pass has read. A label is stored in status.saved before it is changed. The
 * create of a pod or a Lease fails if another process has created one first.
 */

static void set_guard(struct hf_json *patch, struct hf_doc *doc)
{
	hf_json_set_str(hf_json_ensure_object(patch, "metadata"), "resourceVersion",
			hf_doc_resource_version(doc));
}

static bool patch_object(const struct hf_resource *resource, const char *name,
			 struct hf_request *ret_request, struct hf_doc **ret_body,
			 struct hf_doc *body)
{
	*ret_body = body;
	*ret_request = (struct hf_request){.verb = HF_VERB_PATCH,
					   .resource = resource,
					   .name = name,
					   .patch_type = HF_PATCH_MERGE,
					   .body = body};
	return body != NULL;
}

/* ---- the status ------------------------------------------------------------------------------ */

static const struct hf_remediation_condition *find_condition(
	const struct hf_remediation_status *status, const char *type)
{
	for (size_t i = 0; i < status->conditions.len; i++)
		if (hf_streq(status->conditions.items[i].type, type))
			return &status->conditions.items[i];
	return NULL;
}

/* Merges the conditions of the step with the stored conditions. Returns true if the status or the
 * reason of a condition differs. */
static bool set_conditions(struct fleet_mend *mend, const struct mend_facts *facts,
			   const struct hf_mend_step *step, const char *message,
			   struct hf_remediation_status *status)
{
	struct hf_mend_condition news[HF_MEND_CONDITIONS];
	struct hf_remediation_condition *list =
		HF_ARENA_ARRAY(mend->arena, struct hf_remediation_condition, HF_MEND_CONDITIONS);
	bool differs = false;
	size_t len = 0;

	hf_mend_conditions(&facts->view, step, news);
	for (size_t i = 0; i < HF_MEND_CONDITIONS; i++) {
		const struct hf_remediation_condition *old = find_condition(status, news[i].type);
		const char *is = news[i].is_true ? "True" : "False";
		const char *text;
		bool same;

		if (news[i].reason == NULL) {
			if (old != NULL)
				list[len++] = *old;
			continue;
		}
		same = old != NULL && hf_streq(old->status, is);
		/* A step that is not done has the message of the object; a proof keeps its own. */
		text = !news[i].is_true || i == HF_MEND_COND_PROVEN ? message : NULL;
		if (same && news[i].is_true)
			text = old->message;
		differs |= !same || !hf_streq(old->reason, news[i].reason);
		list[len++] =
			(struct hf_remediation_condition){.type = news[i].type,
							  .status = is,
							  .reason = news[i].reason,
							  .message = text,
							  .since = same ? old->since : facts->now};
	}
	status->conditions.items = list;
	status->conditions.len = len;
	return differs;
}

static bool write_status(struct fleet_mend *mend, const struct hf_remediation_status *status,
			 struct hf_request *ret_request, struct hf_doc **ret_body)
{
	(void)patch_object(
		&hf_remediations, mend->name, ret_request, ret_body,
		hf_doc_from_json(hf_remediation_status_patch(mend->r.resource_version, status)));
	ret_request->subresource = "status";
	return true;
}

/* "": the stored message stays. */
static const char *choose_message(const struct fleet_mend *mend, const struct mend_facts *facts,
				  const struct hf_mend_step *step)
{
	const char *refusal = step->next == mend->phase && step->act != HF_MEND_DO_NOTHING
				      ? hf_fleet_mend_refusal(mend)
				      : NULL;
	bool held = facts->view.held && facts->view.saved && step->next == mend->phase;

	if (mend->phase == HF_MEND_RESTORING)
		return hf_fleet_mend_print_end(
			mend, held ? "held by annotation " HF_MEND_HOLD_ANNOTATION " on the node"
			      : refusal != NULL ? refusal
						: facts->external_leaves);
	if (refusal != NULL)
		return hf_fleet_mend_print_wait(mend, refusal);
	if (facts->cancel_why != NULL && step->outcome == HF_MEND_CANCELLED)
		return facts->cancel_why;
	return step->message;
}

static void set_approval(const struct fleet_mend *mend, const struct mend_facts *facts,
			 const struct hf_mend_step *step, struct hf_remediation_status *status)
{
	status->approval.at = step->approve ? facts->now : HF_TIME_NONE;
	status->approval.boot_id = facts->view.node_boot_id;
	status->approval.node_version = hf_doc_resource_version(mend->docs[MEND_READ_NODE]);
	/* An approval, or the loss of one, empties status.act: what an actor reported there belongs
	 * to the former approval. */
	status->act =
		(struct hf_remediation_act){.started_at = HF_TIME_NONE, .ended_at = HF_TIME_NONE};
}

/* Makes the status that the step asks for. Returns true if it differs from the stored status. */
static bool make_status(struct fleet_mend *mend, const struct mend_facts *facts,
			const struct hf_mend_step *step, struct hf_remediation_status *status)
{
	const char *phase = hf_mend_phase_name(step->next);
	const char *outcome =
		step->outcome == HF_MEND_PENDING ? NULL : hf_mend_phase_name(step->outcome);
	const char *message = choose_message(mend, facts, step);
	bool approval = step->approve || step->unapprove, differs;

	*status = mend->r.status;
	if (*message == '\0')
		message = status->message;
	differs = !hf_streq(status->phase, phase) || !hf_streq(status->outcome, outcome) ||
		  !hf_streq(status->message, message);
	status->phase = phase;
	status->outcome = outcome;
	status->message = message;
	differs |= set_conditions(mend, facts, step, message, status) || approval || step->prove;
	if (approval)
		set_approval(mend, facts, step, status);
	if (step->prove) {
		status->proof.at = facts->now;
		status->proof.boot_id = facts->view.node_boot_id;
		status->proof.text = message;
	}
	return differs;
}

/* ---- the finalizer --------------------------------------------------------------------------- */

static bool write_finalizer(struct fleet_mend *mend, bool wanted, struct hf_request *ret_request,
			    struct hf_doc **ret_body)
{
	return patch_object(
		&hf_remediations, mend->name, ret_request, ret_body,
		hf_finalizer_patch(mend->docs[MEND_READ_OBJECT], HF_MEND_FINALIZER, wanted));
}

static bool needs_finalizer(const struct fleet_mend *mend, const struct mend_facts *facts)
{
	return !facts->has_finalizer && !mend->r.deleting && !hf_mend_is_final(mend->phase) &&
	       !mend->r.spec.dry_run && mend->rung != HF_MEND_PERSON;
}

/* ---- the Lease ------------------------------------------------------------------------------- */

static bool take_lease(struct fleet_mend *mend, const struct mend_facts *facts,
		       struct hf_request *ret_request, struct hf_doc **ret_body)
{
	struct hf_doc *old = mend->docs[MEND_READ_LEASE];
	const struct hf_owner owner = hf_fleet_mend_owner(mend);

	*ret_body = hf_node_lease(old, mend->node, mend->name, &owner, facts->now);
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
	*ret_request = (struct hf_request){.verb = HF_VERB_DELETE,
					   .resource = resource,
					   .ns = HF_MEND_NAMESPACE,
					   .name = hf_doc_name(doc),
					   .precondition_uid = hf_doc_uid(doc),
					   .grace_seconds = HF_GRACE_DEFAULT};
	return true;
}

/* ---- the node -------------------------------------------------------------------------------- */

/* A quarantine that takes single devices out of use becomes one of the node: it stays the policy's, with its time. */
static bool put_taint(struct fleet_mend *mend, const struct mend_facts *facts,
		      struct hf_request *ret_request, struct hf_doc **ret_body)
{
	struct hf_quarantine_mark mark = {
		.policy = hf_arena_printf(mend->arena, HF_MEND_MARK_PREFIX "%s", mend->name),
		.cls = hf_str_or(mend->r.spec.fault.cls, "none"),
		.at = facts->now,
		.off = HF_TIME_NONE};

	if (facts->devices_out) {
		mark = facts->mark;
		mark.devices = false;
	}
	return patch_object(
		&hf_nodes, mend->node, ret_request, ret_body,
		hf_node_quarantine_patch(mend->docs[MEND_READ_NODE], &mark, facts->now));
}

static bool is_saved(const struct fleet_mend *mend, const char *key)
{
	return hf_field_pair_find(mend->r.status.saved.labels.items,
				  mend->r.status.saved.labels.len, key) != NULL;
}

/* Adds the node's labels that the act will change to status.saved. Returns false if status.saved
 * has all of them. */
static bool save_labels(struct fleet_mend *mend, const struct mend_facts *facts,
			struct hf_remediation_status *status)
{
	struct hf_field_pair *list =
		HF_ARENA_ARRAY(mend->arena, struct hf_field_pair, HF_REMEDIATION_LABELS_MAX);
	size_t len = 0;
	bool added = false;

	*status = mend->r.status;
	for (; len < status->saved.labels.len && len < HF_REMEDIATION_LABELS_MAX; len++)
		list[len] = status->saved.labels.items[len];
	for (size_t i = 0; i < facts->marks.labels.len && len < HF_REMEDIATION_LABELS_MAX; i++) {
		const struct hf_field_pair *label = &facts->marks.labels.items[i];

		if (!hf_fleet_mend_is_operand(label->key) || hf_streq(label->value, "false") ||
		    is_saved(mend, label->key))
			continue;
		list[len++] = *label;
		added = true;
	}
	status->saved.labels.items = list;
	status->saved.labels.len = len;
	return added;
}

static bool patch_labels(struct fleet_mend *mend, struct hf_json *labels,
			 struct hf_request *ret_request, struct hf_doc **ret_body)
{
	struct hf_json *patch = hf_json_object();

	set_guard(patch, mend->docs[MEND_READ_NODE]);
	hf_json_set(hf_json_get(patch, "metadata"), "labels", labels);
	return patch_object(&hf_nodes, mend->node, ret_request, ret_body, hf_doc_from_json(patch));
}

static bool turn_operands_off(struct fleet_mend *mend, const struct mend_facts *facts,
			      struct hf_request *ret_request, struct hf_doc **ret_body)
{
	struct hf_remediation_status status;
	struct hf_json *labels;

	if (save_labels(mend, facts, &status))
		return write_status(mend, &status, ret_request, ret_body);
	labels = hf_json_object();
	for (size_t i = 0; i < facts->marks.labels.len; i++)
		if (is_saved(mend, facts->marks.labels.items[i].key))
			hf_json_set_str(labels, facts->marks.labels.items[i].key, "false");
	return patch_labels(mend, labels, ret_request, ret_body);
}

/* Returns the saved labels that still have the value "false" of this act, or NULL if none has it. A
 * label that a person has changed meanwhile stays as it is. */
static struct hf_json *labels_to_restore(const struct fleet_mend *mend,
					 const struct mend_facts *facts)
{
	struct hf_json *labels = hf_json_object();

	for (size_t i = 0; i < mend->r.status.saved.labels.len; i++) {
		const struct hf_field_pair *saved = &mend->r.status.saved.labels.items[i];

		if (hf_fleet_mend_is_operand(saved->key) &&
		    hf_streq(hf_field_pair_find(facts->marks.labels.items, facts->marks.labels.len,
						saved->key),
			     "false"))
			hf_json_set_str(labels, saved->key, saved->value);
	}
	return hf_json_len(labels) > 0 ? labels : hf_json_unref(labels);
}

/* Writes into annotations of the DeviceHealth which faults the act has mended, for the agent, and when the
 * node was mended, for the jobs. */
static bool tell_mended(struct fleet_mend *mend, const struct mend_facts *facts,
			struct hf_request *ret_request, struct hf_doc **ret_body)
{
	struct hf_json *patch = hf_json_object(), *annotations;

	set_guard(patch, mend->docs[MEND_READ_HEALTH]);
	annotations = hf_json_ensure_object(hf_json_get(patch, "metadata"), "annotations");
	if (facts->cleared != NULL)
		hf_json_set_str(annotations, HF_MEND_CLEARED_ANNOTATION, facts->cleared);
	if (facts->mended != NULL)
		hf_json_set_str(annotations, HF_MENDED_ANNOTATION, facts->mended);
	return patch_object(&hf_devicehealths, mend->node, ret_request, ret_body,
			    hf_doc_from_json(patch));
}

/* Asks the agent for a report. */
static bool ask_report(struct fleet_mend *mend, const struct mend_facts *facts,
		       struct hf_request *ret_request, struct hf_doc **ret_body)
{
	return patch_object(&hf_devicehealths, mend->node, ret_request, ret_body,
			    hf_device_health_note(mend->docs[MEND_READ_HEALTH],
						  HF_REPORT_ANNOTATION, facts->request));
}

/* The actor turns the persistence mode off for the reset, and on again. If it was killed in between, no other actor may
 * act, so a person is told. Returns the message of the object. */
static const char *tell_persistence(const struct fleet_mend *mend)
{
	const struct hf_remediation_status *status = &mend->r.status;
	const char *names = NULL;

	for (size_t i = 0; i < status->saved.persistence.len; i++) {
		const struct hf_field_pair *mode = &status->saved.persistence.items[i];

		if (hf_streq(mode->value, "on"))
			names = names == NULL
					? mode->key
					: hf_arena_printf(mend->arena, "%s, %s", names, mode->key);
	}
	return names == NULL || status->act.ended_at != HF_TIME_NONE
		       ? status->message
		       : hf_arena_printf(mend->arena,
					 "%.200s; the actor did not end: turn the persistence mode "
					 "of %.200s on again",
					 hf_str_or(status->message, ""), names);
}

static bool restore_next(struct fleet_mend *mend, const struct mend_facts *facts,
			 struct hf_request *ret_request, struct hf_doc **ret_body)
{
	struct hf_remediation_status status = mend->r.status;
	struct hf_json *labels;

	if (facts->view.untold)
		return tell_mended(mend, facts, ret_request, ret_body);
	labels = labels_to_restore(mend, facts);
	if (labels != NULL)
		return patch_labels(mend, labels, ret_request, ret_body);
	if (facts->removes_taint)
		return patch_object(
			&hf_nodes, mend->node, ret_request, ret_body,
			hf_node_quarantine_patch(mend->docs[MEND_READ_NODE], NULL, facts->now));
	if (facts->external_leaves != NULL)
		return false;
	if (facts->own_external)
		return hf_fleet_mend_remove_external(mend, ret_request);
	status.message = tell_persistence(mend);
	status.saved.labels.len = status.saved.persistence.len = 0;
	status.saved.has_cordoned = status.saved.cordoned = false;
	status.saved.external.kind = NULL;
	return write_status(mend, &status, ret_request, ret_body);
}

/* Whether the act is at work on the node. After the intent the Lease does not matter: a person may have deleted it. */
static bool is_at_work(const struct fleet_mend *mend, const struct mend_facts *facts)
{
	return mend->phase < HF_MEND_RESTORING && (facts->view.lease == HF_MEND_LEASE_OURS ||
						   facts->view.act_started_at != HF_TIME_NONE);
}

/* Tells other tools by a condition of the Node that an act is at work. Returns false if the Node shows it already, or if
 * the API server refuses conditions: the act goes on without. The condition of another object is left alone, unless the
 * Lease shows that this object is not at work any more. */
static bool tell_maintenance(struct fleet_mend *mend, const struct mend_facts *facts,
			     struct hf_request *ret_request, struct hf_doc **ret_body)
{
	bool works = is_at_work(mend, facts);
	bool may_write = facts->view.lease == HF_MEND_LEASE_OURS || facts->own_maintenance;

	if (mend->no_condition || !facts->view.node_exists || !may_write ||
	    works == facts->tells_maintenance)
		return false;
	(void)patch_object(&hf_nodes, mend->node, ret_request, ret_body,
			   hf_node_maintenance_patch(
				   mend->docs[MEND_READ_NODE], works,
				   works ? "Remediation" : "Ended",
				   hf_arena_printf(mend->arena, HF_MEND_MAINTENANCE_PREFIX "%s%s",
						   mend->name, works ? "" : " has ended"),
				   facts->now));
	ret_request->subresource = "status";
	ret_request->patch_type = HF_PATCH_STRATEGIC;
	return true;
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* A restart of the job moves the pod more gently than an eviction does. But it may wait for what this very node keeps. So it
 * has half of the time of the drain. */
static bool waits_for_restart(const struct mend_facts *facts, const struct mend_left *left)
{
	hf_time since = facts->view.drain_since, until = facts->view.drain_until;

	return left->restarts &&
	       (since == HF_TIME_NONE || facts->now < since + (until - since) / 2);
}

static bool may_evict(struct fleet_mend *mend, const struct mend_facts *facts,
		      const struct mend_left *left)
{
	const struct hf_json *pod = hf_doc_json(mend->pods[left->at]);
	const struct hf_fleet *fleet = mend->fleet;
	const struct fleet_policy *policy = facts->policy;
	const char *uid = hf_json_path_str(pod, "metadata", "uid", NULL);
	const struct hf_health_drain drain = {
		.evicts = policy == NULL || policy->spec.drain_evicts,
		.evicts_at = policy == NULL ? HF_TIME_NONE : policy->evicts_at,
		.grace = policy == NULL ? 0 : policy->spec.drain_grace,
		.timeout = policy == NULL ? HF_HOUR : policy->spec.drain_timeout,
		.now = facts->now,
		.quarantined_at = facts->marked ? facts->mark.at : mend->r.created_at,
	};
	const struct hf_health_pod about = {
		.fatal = true,
		.selected = !left->unselected,
		.ended = hf_is_leaving(pod),
		.restarting = waits_for_restart(facts, left),
		.not_before = hf_fleet_not_before(fleet, hf_str_or(uid, "")),
	};
	hf_time wake = HF_TIME_NEVER;

	return uid != NULL && left->stays == NULL &&
	       hf_health_drain(&drain, &about, &wake) == HF_HEALTH_DRAIN_EVICT;
}

static bool evict_next(struct fleet_mend *mend, const struct mend_facts *facts,
		       struct hf_request *ret_request, struct hf_doc **ret_body)
{
	for (size_t i = 0; i < facts->view.pods_left; i++) {
		struct hf_doc *doc = mend->pods[facts->left[i].at];

		if (!may_evict(mend, facts, &facts->left[i]))
			continue;
		/* If this eviction is refused, the next one for the same pod waits a minute; the
		 * wait grows with each refusal. */
		hf_fleet_refuse(mend->fleet, hf_doc_uid(doc), HF_MINUTE, false);
		snprintf(mend->evicts, sizeof(mend->evicts), "%s/%s", hf_doc_namespace(doc),
			 hf_doc_name(doc));
		snprintf(mend->evicts_uid, sizeof(mend->evicts_uid), "%s", hf_doc_uid(doc));
		return hf_fleet_mend_evict(doc, ret_request, ret_body);
	}
	return false;
}

static bool create_pod(struct fleet_mend *mend, const struct mend_facts *facts,
		       struct hf_request *ret_request, struct hf_doc **ret_body)
{
	const struct hf_policy_mend *rules =
		facts->policy == NULL ? NULL : &facts->policy->spec.mend;
	bool diagnoses =
		rules != NULL && rules->words_len > 0 && mend->rung == HF_MEND_RESET_DEVICE;
	const int64_t diagnostic_seconds = diagnoses ? rules->diagnostic_seconds : 0;
	const struct hf_remediation_pod pod = {
		.name = mend->name,
		.uid = mend->r.uid,
		.node = mend->node,
		.nonce = mend->r.spec.nonce,
		.image = mend->fleet->env.image,
		.reboots = mend->rung == HF_MEND_REBOOT,
		.arms_watchdog = rules != NULL && rules->watchdog,
		.words = diagnoses ? rules->words : NULL,
		.words_len = diagnoses ? rules->words_len : 0,
		.diagnostic_seconds = diagnostic_seconds,
		.deadline_seconds = HF_MEND_POD_DEADLINE_SECONDS + diagnostic_seconds,
	};

	*ret_body = hf_doc_from_json(hf_remediation_pod_json(&pod));
	*ret_request = (struct hf_request){.verb = HF_VERB_CREATE,
					   .resource = &hf_pods,
					   .ns = HF_MEND_NAMESPACE,
					   .body = *ret_body};
	return true;
}

/* ---- one step -------------------------------------------------------------------------------- */

static bool perform_step(struct fleet_mend *mend, const struct mend_facts *facts,
			 const struct hf_mend_step *step, struct hf_request *ret_request,
			 struct hf_doc **ret_body)
{
	switch (step->act) {
	case HF_MEND_QUARANTINE: return put_taint(mend, facts, ret_request, ret_body);
	case HF_MEND_TAKE_LEASE: return take_lease(mend, facts, ret_request, ret_body);
	case HF_MEND_OPERANDS_OFF: return turn_operands_off(mend, facts, ret_request, ret_body);
	case HF_MEND_MOVE_PODS: return evict_next(mend, facts, ret_request, ret_body);
	case HF_MEND_CREATE_POD: return create_pod(mend, facts, ret_request, ret_body);
	case HF_MEND_DELETE_POD:
		/* The API server has marked the pod already: the kubelet removes it. */
		if (hf_is_leaving(hf_doc_json(mend->docs[MEND_READ_POD])))
			return false;
		return delete_object(&hf_pods, mend->docs[MEND_READ_POD], ret_request);
	case HF_MEND_ASK_REPORT: return ask_report(mend, facts, ret_request, ret_body);
	case HF_MEND_RESTORE: return restore_next(mend, facts, ret_request, ret_body);
	case HF_MEND_RELEASE_LEASE:
		return delete_object(&hf_leases, mend->docs[MEND_READ_LEASE], ret_request);
	case HF_MEND_ACT_HERE:
	case HF_MEND_DO_NOTHING:
	default: return false;
	}
}

/* The intent of an act without an actor. The request of the act is kept for the reply. */
static bool write_intent(struct fleet_mend *mend, const struct mend_facts *facts,
			 const struct hf_mend_step *step, struct hf_request *ret_request,
			 struct hf_doc **ret_body, const char **ret_what)
{
	struct hf_remediation_status status;

	if (!hf_fleet_mend_act(mend, facts, &mend->act, &mend->act_body))
		return false;
	(void)make_status(mend, facts, step, &status);
	status.act = (struct hf_remediation_act){.nonce = mend->r.spec.nonce,
						 .actor = "operator",
						 .started_at = facts->now,
						 .ended_at = HF_TIME_NONE,
						 .boot_id = facts->view.node_boot_id,
						 .tool = "operator"};
	hf_fleet_mend_save_external(mend, &status);
	*ret_what = hf_mend_phase_name(step->next);
	return write_status(mend, &status, ret_request, ret_body);
}

bool hf_fleet_mend_result(struct fleet_mend *mend, int code, const char *message,
			  struct hf_request *ret_request, struct hf_doc **ret_body)
{
	struct hf_remediation_status status = mend->r.status;

	status.act.ended_at = hf_fleet_now(mend->fleet);
	/* Without an answer the request may have been done, so only the proof decides. */
	status.act.has_exit_code = code != HF_E_TIMEOUT;
	status.act.exit_code = code == 0 ? 0 : 1;
	status.act.message = message;
	return write_status(mend, &status, ret_request, ret_body);
}

/* The step is one request that is done at once: what it changes shows in the status of the next step. If the request was
 * refused, or waits for others, the conditions are written meanwhile. */
static bool is_act_enough(const struct fleet_mend *mend, const struct mend_facts *facts,
			  const struct hf_mend_step *step)
{
	return step->next == mend->phase && facts->external_leaves == NULL &&
	       hf_fleet_mend_refusal(mend) == NULL &&
	       (step->act == HF_MEND_TAKE_LEASE || step->act == HF_MEND_CREATE_POD ||
		step->act == HF_MEND_DELETE_POD || step->act == HF_MEND_ASK_REPORT ||
		step->act == HF_MEND_RESTORE || step->act == HF_MEND_RELEASE_LEASE);
}

bool hf_fleet_mend_do(struct fleet_mend *mend, const struct mend_facts *facts,
		      const struct hf_mend_step *step, struct hf_request *ret_request,
		      struct hf_doc **ret_body, const char **ret_what)
{
	struct hf_remediation_status status;
	const char *message;
	int code;

	*ret_body = NULL;
	*ret_what = NULL;
	if (needs_finalizer(mend, facts))
		return write_finalizer(mend, true, ret_request, ret_body);
	if (tell_maintenance(mend, facts, ret_request, ret_body)) {
		*ret_what = HF_MEND_TELLS;
		return true;
	}
	if (hf_fleet_mend_take_answer(mend, &code, &message))
		return hf_fleet_mend_result(mend, code, message, ret_request, ret_body);
	if (step->act == HF_MEND_ACT_HERE)
		return write_intent(mend, facts, step, ret_request, ret_body, ret_what);
	if (make_status(mend, facts, step, &status) && !is_act_enough(mend, facts, step)) {
		if (step->next != mend->phase)
			*ret_what = hf_mend_phase_name(step->next);
		return write_status(mend, &status, ret_request, ret_body);
	}
	if (perform_step(mend, facts, step, ret_request, ret_body)) {
		if (step->act == HF_MEND_MOVE_PODS)
			*ret_what = "evict";
		return true;
	}
	if (facts->has_finalizer && hf_mend_is_final(mend->phase) &&
	    step->act == HF_MEND_DO_NOTHING && facts->view.pod == HF_MEND_POD_NONE)
		return write_finalizer(mend, false, ret_request, ret_body);
	return false;
}
