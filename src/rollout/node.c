/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "rollout/rollout_internal.h"

#include "api/device_health.h"
#include "api/lifetime.h"
#include "api/node_locks.h"
#include "api/remediation.h"
#include "base/quantity.h"
#include "base/str.h"
#include "fleet/impact.h"
#include "health/fleet.h"

#include <string.h>

/*
 * Makes the input of health/rollout_node.h for one node of a DeviceRollout.
 * Input: the objects that the pass has read live. Output: struct ro_facts. Invariants: no request is made here. Times
 * of the node's clock are converted to the API server's clock.
 */

/* A pod that crashes again and again is Ready for a moment after each start. */
#define READY_SETTLES (10 * HF_SECOND)
/* A DRA driver leaves its ResourceSlices when it ends. The kubelet deletes them 30 s later, if no driver has registered again. */
#define SLICES_STAY (40 * HF_SECOND)

static const struct hf_json *json_of(const struct ro *ro, enum ro_read read)
{
	return ro->pass.docs[read] == NULL ? NULL : hf_doc_json(ro->pass.docs[read]);
}

/* ---- pods ---------------------------------------------------------------------------------------- */

/* Returns why the pod may not be moved; NULL: it may. */
static const char *find_why_pod_stays(const struct hf_json *pod)
{
	const struct hf_json *annotations = hf_json_path(pod, "metadata", "annotations", NULL);

	if (hf_is_leaving(pod))
		return NULL;
	if (hf_find_controller(pod) == NULL)
		return "has no controller that would create it again";
	if (hf_streq(hf_json_path_str(annotations, "cluster-autoscaler.kubernetes.io/safe-to-evict",
				      NULL),
		     "false"))
		return "has annotation cluster-autoscaler.kubernetes.io/safe-to-evict: false";
	if (hf_streq(hf_json_path_str(annotations, "karpenter.sh/do-not-disrupt", NULL), "true"))
		return "has annotation karpenter.sh/do-not-disrupt: true";
	return NULL;
}

static const char *find_job(const struct ro *ro, struct hf_doc *pod)
{
	return ro->env.find_job(ro->env.arg, hf_doc_namespace(pod), hf_doc_name(pod),
				hf_doc_uid(pod));
}

/* A pod that a restart of its job moves is not evicted. */
static bool may_evict(const struct ro *ro, struct hf_doc *pod)
{
	const struct hf_json *json = hf_doc_json(pod);

	return !hf_is_leaving(json) && !ro->env.is_moved(ro->env.arg, find_job(ro, pod), json);
}

static const char *find_why_stuck(const struct ro *ro, struct hf_doc *pod)
{
	const struct hf_json *json = hf_doc_json(pod);
	const char *why = find_why_pod_stays(json);

	if (why != NULL || hf_is_leaving(json))
		return why;
	why = ro->env.fails_by_eviction(ro->env.arg, find_job(ro, pod), json);
	return why == NULL
		       ? NULL
		       : hf_arena_printf(ro->pass.arena,
					 "belongs to a job that one more eviction would fail (%s)",
					 why);
}

static void see_pods(struct ro *ro, struct ro_facts *facts)
{
	struct hf_rollout_node_view *view = &facts->view;
	struct ro_pass *pass = &ro->pass;

	for (size_t i = 0; i < pass->pods_len; i++) {
		const struct hf_json *pod = hf_doc_json(pass->pods[i]);
		const char *stuck;

		if (pass->spec.daemon_set.name != NULL &&
		    hf_ro_is_of_daemon_set(pod, &pass->spec)) {
			if (facts->driver == NULL || hf_is_leaving(hf_doc_json(facts->driver)))
				facts->driver = pass->pods[i];
			continue;
		}
		if (hf_has_pod_ended(pod) || hf_is_pod_of_node(pod) ||
		    !hf_asks_for_devices(hf_json_get(pod, "spec")))
			continue;
		if (view->pods_left++ == 0)
			view->left_pod = hf_ro_print_pod(ro, pass->pods[i]);
		stuck = find_why_stuck(ro, pass->pods[i]);
		if (stuck != NULL && view->stuck_pod == NULL) {
			view->stuck_pod = hf_ro_print_pod(ro, pass->pods[i]);
			view->stuck_why = stuck;
		}
		if (facts->evictee == NULL && may_evict(ro, pass->pods[i]))
			facts->evictee = pass->pods[i];
	}
}

/* ---- the node ------------------------------------------------------------------------------------ */

/* A change now would bring another template than the wanted one. The pass on the whole decides what becomes of the
 * rollout. */
static const char *find_template_hold(const struct ro_pass *pass, const struct ro_facts *facts)
{
	const struct hf_rollout_node_view *view = &facts->view;
	const struct hf_rollout_status *status = &pass->r.status;
	const char *problem;

	if (pass->spec.daemon_set.name == NULL || view->phase > HF_ROLLOUT_CHANGING)
		return NULL;
	problem = hf_ro_find_daemon_set_problem(pass);
	if (problem != NULL)
		return problem;
	if (!hf_ro_is_observed(pass))
		return RO_UNSEEN_TEMPLATE;
	/* The DaemonSet may not select the node any more. Then no pod would come to be proved. */
	if (facts->driver == NULL && !view->marked)
		return RO_NO_DRIVER;
	return hf_streq(pass->newest.hash,
			view->backwards ? status->from_revision : status->target_revision)
		       ? NULL
		       : hf_arena_printf(pass->arena, "the template of %s was changed again",
					 hf_ro_print_daemon_set(pass));
}

static const char *find_hold(struct ro *ro, const struct ro_facts *facts,
			     const struct hf_node_marks *marks)
{
	const char *closed;

	if (marks->held)
		return "annotation " HF_MEND_HOLD_ANNOTATION " of the node";
	if (marks->paused)
		return "annotation " HF_PAUSED_ANNOTATION " of the node";
	if (facts->view.backwards)
		return NULL;
	if (hf_node_has_quarantine_taint(marks))
		return "the node is quarantined";
	/* The proof would fail, and the change would be blamed. */
	if (!marks->ready)
		return "the node is not Ready";
	if (hf_ro_is_stale(ro, ro->pass.node))
		return RO_SILENT;
	closed = facts->view.phase <= HF_ROLLOUT_LOCKED ? hf_ro_find_closed(ro) : NULL;
	if (closed != NULL)
		return closed;
	/* The cordon takes the node out of use. Afterwards only an open breaker would hold it, until the change. */
	return facts->view.phase <= HF_ROLLOUT_CHANGING && !facts->view.marked
		       ? hf_ro_find_limit(ro, ro->pass.node)
		       : NULL;
}

static bool is_at_work(const struct ro_object *object, const char *node)
{
	const struct hf_rollout_node *entry =
		object->readable ? hf_ro_find_entry(&object->r.status, node) : NULL;
	enum hf_rollout_phase phase;

	return entry != NULL && hf_rollout_phase_of(entry->phase, &phase) &&
	       phase > HF_ROLLOUT_WAITING && !hf_rollout_phase_is_end(phase);
}

/* Returns another rollout that works on the node; NULL: none. A person may have deleted its Lease. */
static const char *find_other_rollout(const struct ro *ro)
{
	const struct hf_cache_entry *entry;

	for (size_t it = 0; (entry = hf_cache_next(ro->cache, &it)) != NULL;)
		if (!hf_streq(entry->name, ro->pass.name) && is_at_work(entry->view, ro->pass.node))
			return hf_arena_printf(ro->pass.arena, "DeviceRollout %s", entry->name);
	return NULL;
}

static void see_mark(struct ro *ro, struct ro_facts *facts)
{
	facts->has_mark = hf_ro_find_mark(
		&ro->pass, hf_json_path(json_of(ro, RO_READ_NODE), "metadata", "annotations", NULL),
		&facts->mark);
	facts->view.marked = facts->has_mark && facts->mark.rolled_back == facts->view.backwards;
	facts->view.marked_at = facts->has_mark ? facts->mark.at : HF_TIME_NONE;
}

/* The Node was made again after its cordon or its change, and has neither: it is another node. */
static bool is_made_again(const struct ro *ro, const struct ro_facts *facts,
			  const struct hf_node_marks *marks)
{
	const struct hf_rollout_node_view *view = &facts->view;
	hf_time changed_at = ro->pass.entry->changed_at;

	return !facts->has_mark && !view->own_cordon && view->phase > HF_ROLLOUT_LOCKED &&
	       view->phase < HF_ROLLOUT_RESTORING &&
	       marks->created_at > (changed_at != HF_TIME_NONE ? changed_at : view->since);
}

static void see_node(struct ro *ro, struct ro_facts *facts)
{
	struct hf_rollout_node_view *view = &facts->view;
	const struct hf_json *node = json_of(ro, RO_READ_NODE);
	struct hf_node_marks marks;

	view->node_exists = node != NULL;
	if (node == NULL)
		return;
	hf_node_marks_read(ro->pass.docs[RO_READ_NODE], ro->pass.arena, &marks);
	view->cordoned = marks.unschedulable;
	view->own_cordon = hf_streq(
		hf_json_path_str(node, "metadata", "annotations", HF_ROLLOUT_ANNOTATION, NULL),
		ro->pass.name);
	view->in_maintenance = hf_streq(hf_node_maintenance_message(node), hf_ro_print_work(ro));
	/* Without the right to write the condition, the work goes on without it. */
	if (ro->no_condition)
		view->in_maintenance = facts->view.phase < HF_ROLLOUT_RESTORING;
	view->proof.node_ready = marks.ready;
	view->proof.boot_id = marks.boot_id;
	see_mark(ro, facts);
	view->node_exists = !is_made_again(ro, facts, &marks);
	view->on_hold = marks.held;
	view->held = find_hold(ro, facts, &marks);
	if (view->held == NULL)
		view->held = find_template_hold(&ro->pass, facts);
	view->other_lock = hf_node_find_lock(node, ro->pass.node, json_of(ro, RO_READ_KURED),
					     ro->pass.in_maintenance, ro->pass.arena);
	if (view->other_lock == NULL && view->phase == HF_ROLLOUT_WAITING)
		view->other_lock = find_other_rollout(ro);
}

static void see_lease(struct ro *ro, struct hf_rollout_node_view *view)
{
	const struct hf_json *lease = json_of(ro, RO_READ_LEASE);
	const char *holder = hf_json_path_str(lease, "spec", "holderIdentity", NULL);

	view->lease = HF_ROLLOUT_LEASE_FREE;
	if (hf_str_is_empty(holder))
		return;
	view->lease_holder = holder;
	view->lease =
		hf_streq(holder, hf_ro_print_holder(ro)) && hf_is_owned_by(lease, ro->pass.r.uid)
			? HF_ROLLOUT_LEASE_OURS
			: HF_ROLLOUT_LEASE_OTHERS;
}

/* ---- the proof ----------------------------------------------------------------------------------- */

/* On the way back the label has to have its previous value again, or a third one: then another writer has replaced the change,
 * and there is nothing left to take back. */
static bool has_wanted_label(const struct ro *ro, const struct ro_facts *facts)
{
	const char *value = ro->pass.spec.label.value;
	const char *is = hf_json_path_str(json_of(ro, RO_READ_NODE), "metadata", "labels",
					  ro->pass.spec.label.key, NULL);

	if (!facts->view.backwards)
		return hf_streq(is, value);
	return !hf_streq(is, value) || hf_streq(facts->mark.previous, value);
}

static void see_change(struct ro *ro, struct ro_facts *facts)
{
	const struct ro_pass *pass = &ro->pass;
	struct hf_rollout_proof *proof = &facts->view.proof;
	const struct hf_json *pod = facts->driver == NULL ? NULL : hf_doc_json(facts->driver);
	const char *wanted, *is;
	hf_time ready;

	proof->complete_at = facts->request_at = pass->entry->changed_at;
	if (pass->spec.daemon_set.name == NULL) {
		/* An unreadable spec names neither. */
		proof->changed = proof->begun =
			pass->spec.label.key != NULL && has_wanted_label(ro, facts);
		proof->pod_ready = true;
		return;
	}
	wanted = facts->view.backwards ? pass->r.status.from_revision
				       : pass->r.status.target_revision;
	is = hf_json_path_str(pod, "metadata", "labels", "controller-revision-hash", NULL);
	proof->changed =
		pod != NULL && !hf_is_leaving(pod) && wanted != NULL && hf_streq(is, wanted);
	proof->begun =
		proof->changed || (facts->view.marked && (pod == NULL || hf_is_leaving(pod)));
	ready = proof->changed ? hf_ro_find_ready(pod, true) : HF_TIME_NONE;
	if (ready != HF_TIME_NONE)
		facts->request_at = ready;
	ready = hf_ro_convert_time(ro, pass->node, ready);
	proof->pod_ready = ready != HF_TIME_NONE && ready <= facts->view.now - READY_SETTLES;
	if (ready > proof->complete_at)
		proof->complete_at = ready;
}

static void see_device(struct ro *ro, const struct hf_device_report *device,
		       struct hf_rollout_proof *proof)
{
	bool sick = hf_health_is_out(hf_impact_state(device->state));

	for (size_t k = 0; k < device->faults.len; k++) {
		const struct hf_device_fault *fault = &device->faults.items[k];

		sick |= hf_impact_counts(fault) && proof->complete_at != HF_TIME_NONE &&
			hf_ro_convert_time(ro, ro->pass.node, fault->first) > proof->complete_at;
	}
	if (hf_impact_is_unknown_gpu(device))
		proof->unknown = device->uuid;
	if (!sick || proof->sick != NULL)
		return;
	proof->sick = hf_str_or(device->uuid, hf_str_or(device->id, "node"));
	proof->sick_class = hf_str_or(device->cls, device->state);
}

static void see_health(struct ro *ro, struct ro_facts *facts)
{
	struct hf_rollout_proof *proof = &facts->view.proof;
	struct hf_device_health health;

	proof->driver_wanted = facts->view.backwards ? NULL : ro->pass.spec.proof.driver_version;
	proof->observed_at = HF_TIME_NONE;
	proof->health_wanted =
		proof->driver_wanted != NULL || ro->pass.entry->before.boot_id != NULL;
	if (ro->pass.docs[RO_READ_HEALTH] == NULL)
		return;
	hf_device_health_read(ro->pass.docs[RO_READ_HEALTH], ro->pass.arena, &health);
	proof->health_exists = true;
	proof->observed_at = hf_ro_convert_time(ro, ro->pass.node, health.observed_at);
	proof->health_boot_id = health.boot_id;
	proof->driver_version = health.driver_version;
	for (size_t i = 0; i < health.devices.len; i++)
		see_device(ro, &health.devices.items[i], proof);
}

static void see_resources(struct ro *ro, struct ro_facts *facts)
{
	const struct hf_rollout_node *entry = ro->pass.entry;
	struct hf_rollout_resource *list = HF_ARENA_ARRAY(
		ro->pass.arena, struct hf_rollout_resource, entry->before.resources.len + 1);

	for (size_t i = 0; i < entry->before.resources.len; i++) {
		const struct hf_field_pair *pair = &entry->before.resources.items[i];

		list[i] = (struct hf_rollout_resource){
			.name = pair->key, .now_milli = hf_ro_read_amount(&ro->pass, pair->key)};
		if (hf_quantity_parse_milli(pair->value, &list[i].before_milli, NULL) != 0)
			list[i].before_milli = 0;
	}
	if (hf_ro_has_dra(entry) && facts->view.proof.complete_at != HF_TIME_NONE)
		facts->view.proof.fresh_at =
			hf_time_add(facts->view.proof.complete_at, SLICES_STAY);
	facts->view.proof.resources = list;
	facts->view.proof.resources_len = entry->before.resources.len;
}

/* Makes the text of the annotation that asks the agent for a report from after the change. */
static void see_request(struct ro *ro, struct ro_facts *facts)
{
	char at[HF_TIME_TEXT_MAX];

	if (facts->view.proof.complete_at == HF_TIME_NONE)
		return;
	hf_time_format_micro(facts->request_at, at);
	facts->request = hf_arena_printf(ro->pass.arena, "%s %s 0", ro->pass.name, at);
	facts->view.proof.report_asked =
		hf_report_is_asked(ro->pass.docs[RO_READ_HEALTH], facts->request);
}

/* ---- the entry and the rollout ------------------------------------------------------------------- */

static enum hf_rollout_empty empty_of(const char *text)
{
	return hf_streq(text, "Never")  ? HF_ROLLOUT_EMPTY_NEVER
	       : hf_streq(text, "Wait") ? HF_ROLLOUT_EMPTY_WAIT
					: HF_ROLLOUT_EMPTY_SAVE;
}

static void see_entry(struct ro *ro, struct ro_facts *facts)
{
	const struct ro_pass *pass = &ro->pass;
	const struct hf_rollout_node *entry = pass->entry;
	struct hf_rollout_node_view *view = &facts->view;
	bool known = hf_rollout_phase_of(entry->phase, &view->phase);

	/* An entry that cannot be read gets no passes. */
	hf_assert(known);
	view->outcome = HF_ROLLOUT_FAILED;
	(void)hf_rollout_phase_of(entry->outcome, &view->outcome);
	view->since = entry->since == HF_TIME_NONE ? view->now : entry->since;
	view->changed_at = entry->changed_at;
	view->backwards = hf_ro_is_on_way_back(pass);
	view->had_failed = view->backwards && !entry->was_well;
	view->ends = hf_ro_ends(&pass->r, &pass->spec);
	view->stops = view->ends || pass->state == HF_ROLLOUT_HALTED ||
		      hf_rollout_state_is_end(pass->state) || pass->spec_problem != NULL;
	view->stop_why = pass->r.deleting             ? "the DeviceRollout is deleted"
			 : pass->spec.cancel          ? "the rollout is cancelled"
			 : pass->spec_problem != NULL ? pass->spec_problem
						      : "the rollout halted";
	view->no_spec = view->ends ? NULL : pass->spec_problem;
	view->empty = empty_of(pass->spec.empty);
	view->empty_for = pass->spec.empty_for;
	view->prove_within = pass->spec.proof.within;
}

void hf_ro_node_facts(struct ro *ro, struct ro_facts *ret_facts)
{
	memset(ret_facts, 0, sizeof(*ret_facts));
	ret_facts->view.now = hf_ro_now(ro);
	ret_facts->view.seen_since = ro->seen_since;
	see_entry(ro, ret_facts);
	see_lease(ro, &ret_facts->view);
	see_pods(ro, ret_facts);
	see_node(ro, ret_facts);
	see_change(ro, ret_facts);
	see_health(ro, ret_facts);
	see_resources(ro, ret_facts);
	see_request(ro, ret_facts);
	hf_ro_see_canary(ro, ret_facts);
}
