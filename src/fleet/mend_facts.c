/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/mend_internal.h"

#include "api/device_health.h"
#include "api/lifetime.h"
#include "api/node_locks.h"
#include "base/str.h"
#include "fleet/impact.h"
#include "fleet/window.h"
#include "health/evidence.h"
#include "store/resource.h"

#include <string.h>

/*
 * Makes the input of health/mend_steps.h for one Remediation.
 *
 * Input: the objects that the pass has read live, and the caches for what counts many nodes.
 * Output: struct mend_facts. Invariants: no request is made here. An object that cannot be read
 * holds the act back. Times of the node's clock are converted to the API server's clock.
 */

/* An agent accepts an acknowledgement for an hour after the act. Holdfast stops writing it ten
 * minutes earlier. */
#define CLEARED_VALID (50 * HF_MINUTE)
#define DRAIN_DEFAULT (10 * HF_MINUTE)
#define SETTLE_DEFAULT (10 * HF_SECOND)
#define PERSON_AGAIN HF_HOUR
/* Only NVIDIA's library reports such UUIDs. */
#define NVIDIA_UUID "GPU-"

/* ---- the operands of the GPU Operator -------------------------------------------------------- */

/* Labels of a Node by which the GPU Operator places pods that keep devices open. The value "false"
 * removes such a pod. The pod of the driver has no label here: it stays. */
static const char *const operand_labels[] = {
	"nvidia.com/gpu.deploy.client",
	"nvidia.com/gpu.deploy.dcgm",
	"nvidia.com/gpu.deploy.dcgm-dra",
	"nvidia.com/gpu.deploy.dcgm-exporter",
	"nvidia.com/gpu.deploy.dcgm-exporter-dra",
	"nvidia.com/gpu.deploy.device-plugin",
	"nvidia.com/gpu.deploy.gpu-feature-discovery",
};
bool hf_fleet_mend_is_operand(const char *label)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(operand_labels); i++)
		if (hf_streq(operand_labels[i], label))
			return true;
	return false;
}

/* ---- the other Remediations ------------------------------------------------------------------ */

static hf_time latest_of(hf_time a, hf_time b)
{
	return a > b ? a : b; /* HF_TIME_NONE is the smallest */
}

static hf_time convert_time(const struct fleet_mend *mend, hf_time at, hf_time now)
{
	const struct fleet_health *health = hf_fleet_find_health(mend->fleet, mend->node);

	return health != NULL ? hf_fleet_convert_time(mend->fleet, health, at, now)
			      : hf_health_convert_time(at, HF_TIME_NONE, HF_TIME_NONE, now);
}

static bool is_since_quarantine(const struct fleet_mend *mend, const struct hf_remediation *r)
{
	const struct fleet_node *node = hf_fleet_find_node(mend->fleet, mend->node);

	return node != NULL && node->marked && hf_fleet_mend_created_at(r, node) >= node->mark.at;
}

/* A proved act on the node: faults from before its end are mended. */
static void note_mended(struct fleet_mend *mend, const struct hf_remediation *r,
			enum hf_mend_rung rung)
{
	const struct fleet_health *health = hf_fleet_find_health(mend->fleet, mend->node);
	hf_time at = hf_fleet_mend_acted_at(mend->fleet, r, rung, health);

	if (hf_fleet_mend_concerns(mend->fleet, r, rung, health, at))
		mend->others.mended_at = latest_of(mend->others.mended_at, at);
}

static void count_in_quarantine(struct fleet_mend *mend, const struct hf_remediation *r,
				enum hf_mend_phase phase, enum hf_mend_rung rung)
{
	const struct fleet_node *node = hf_fleet_find_node(mend->fleet, mend->node);
	struct mend_others *o = &mend->others;
	bool acts = !r->spec.dry_run;

	/* One that ended by a report that was wrong is made again, but not at once. */
	o->person_on_node |= rung == HF_MEND_PERSON &&
			     (phase == HF_MEND_CANCELLED ||
			      hf_fleet_now(mend->fleet) - r->created_at < PERSON_AGAIN);
	o->failed_on_node |= acts && phase == HF_MEND_FAILED &&
			     hf_fleet_action_of(rung) >= HF_HEALTH_RESET_DEVICE;
	o->external_on_node |= hf_fleet_mend_has_asked(r, phase, rung, node);
	o->cancelled_on_node |= acts && r->spec.cancel && phase == HF_MEND_CANCELLED;
}

static void count_on_node(struct fleet_mend *mend, const struct hf_remediation *r,
			  enum hf_mend_phase phase, enum hf_mend_rung rung)
{
	struct mend_others *o = &mend->others;
	bool open = !hf_mend_is_final(phase);

	hf_fleet_mend_note_attempt(&o->attempt, r->spec.attempt);
	if (phase == HF_MEND_SUCCEEDED && !r->spec.dry_run)
		note_mended(mend, r, rung);
	if (is_since_quarantine(mend, r))
		count_in_quarantine(mend, r, phase, rung);
	if (rung == HF_MEND_PERSON) {
		o->person_on_node |= open;
		return;
	}
	if (r->spec.dry_run || !open)
		return;
	o->open_on_node = true;
	o->busy_on_node |=
		phase != HF_MEND_RESTORING || hf_fleet_mend_takes_place(mend->fleet, r, phase);
	if (phase != HF_MEND_PENDING)
		o->on_node = hf_arena_strdup(mend->arena, r->name);
}

static void count_unreadable(struct fleet_mend *mend, struct hf_doc *doc)
{
	const struct hf_json *json = hf_doc_json(doc);
	int64_t attempt = hf_json_i64(hf_json_path(json, "spec", "attempt", NULL), 0);

	if (hf_fleet_mend_blocks(json))
		mend->others.unreadable = hf_arena_strdup(mend->arena, hf_doc_name(doc));
	/* Its number is taken. */
	if (hf_streq(hf_json_path_str(json, "spec", "node", NULL), mend->node))
		hf_fleet_mend_note_attempt(&mend->others.attempt, attempt);
}

void hf_fleet_mend_count_other(struct fleet_mend *mend, struct hf_doc *doc)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	struct mend_others *o = &mend->others;
	struct hf_remediation r;
	enum hf_mend_phase phase;
	enum hf_mend_rung rung;

	if (!mend->creates && hf_streq(hf_doc_name(doc), mend->name))
		return;
	if (hf_remediation_read(doc, arena, &r, NULL) != 0 ||
	    !hf_mend_phase_of(r.status.phase, &phase) || !hf_mend_rung_of(r.spec.rung, &rung)) {
		count_unreadable(mend, doc);
		return;
	}
	if (hf_streq(r.spec.node, mend->node))
		count_on_node(mend, &r, phase, rung);
	if (hf_str_is_empty(mend->policy) || !hf_streq(r.spec.policy, mend->policy) ||
	    r.spec.dry_run || rung == HF_MEND_PERSON || hf_mend_is_final(phase))
		return;
	if (!hf_fleet_mend_takes_place(mend->fleet, &r, phase))
		return;
	o->open++;
	o->begun += phase > HF_MEND_PENDING;
	o->approved += phase > HF_MEND_DRAINING;
}

/* ---- the node -------------------------------------------------------------------------------- */

static const struct hf_json *json_of(const struct fleet_mend *mend, enum mend_read read)
{
	return mend->docs[read] == NULL ? NULL : hf_doc_json(mend->docs[read]);
}

static bool has_annotation(const struct hf_json *node, const char *key)
{
	return hf_paused(hf_json_path_str(node, "metadata", "annotations", key, NULL));
}

static bool is_of_policy(const struct fleet_mend *mend)
{
	return hf_streq(mend->r.spec.requested_by, "policy");
}

/* No device of the node is out of use but those that the act names. The agent may not have read of their reset yet. */
static bool is_rest_well(const struct fleet_mend *mend, const struct hf_mend_view *view)
{
	for (size_t i = 0; i < view->seen_len; i++)
		if (view->seen[i].out && !hf_fleet_mend_names(&mend->r, view->seen[i].uuid))
			return false;
	return true;
}

/* With this success the node is well after the failed act. */
static bool makes_up_for(const struct fleet_mend *mend, const char *act)
{
	const struct hf_cache_entry *entry = hf_cache_get(mend->cache, NULL, act);
	const struct mend_object *failed = entry == NULL ? NULL : entry->view;

	return failed == NULL || hf_fleet_mend_covers(&mend->r, mend->rung, failed) ||
	       hf_fleet_mend_is_covered(mend, failed);
}

/* A quarantine for one Remediation goes with it, but stays if its act has failed. Then a later act that a person orders
 * for the node ends it by its success, if nothing else of the node is out of use. */
static bool removes_taint(const struct fleet_mend *mend, const struct mend_facts *facts)
{
	const struct hf_mend_view *view = &facts->view;
	const char *act = facts->marked ? hf_quarantine_act(facts->mark.policy) : NULL;

	if (!view->quarantined || act == NULL)
		return false;
	if (hf_streq(act, mend->name))
		return view->outcome != HF_MEND_FAILED;
	return view->outcome == HF_MEND_SUCCEEDED && !is_of_policy(mend) &&
	       is_rest_well(mend, view) && makes_up_for(mend, act);
}

static void see_node(struct fleet_mend *mend, struct mend_facts *facts)
{
	struct hf_mend_view *view = &facts->view;
	struct hf_doc *doc = mend->docs[MEND_READ_NODE];
	const struct hf_json *node = json_of(mend, MEND_READ_NODE);

	view->node_exists = doc != NULL;
	view->operands_off = true;
	if (doc == NULL)
		return;
	hf_node_marks_read(doc, mend->arena, &facts->marks);
	facts->marked = hf_quarantine_mark_read(facts->marks.quarantine, mend->arena, &facts->mark);
	view->node_ready = facts->marks.ready;
	view->node_boot_id = facts->marks.boot_id;
	view->held = has_annotation(node, HF_MEND_HOLD_ANNOTATION);
	facts->tells_maintenance = hf_node_is_in_maintenance(node);
	facts->own_maintenance =
		hf_streq(hf_node_maintenance_message(node),
			 hf_arena_printf(mend->arena, HF_MEND_MAINTENANCE_PREFIX "%s", mend->name));
	facts->devices_out =
		facts->marked && facts->mark.devices && facts->mark.off == HF_TIME_NONE;
	for (size_t i = 0; i < facts->marks.labels.len; i++)
		if (hf_fleet_mend_is_operand(facts->marks.labels.items[i].key) &&
		    !hf_streq(facts->marks.labels.items[i].value, "false"))
			view->operands_off = false;
}

/* No pod can be given a device of the act any more: DeviceTaintRules have them, or the device plugin withholds them. */
static bool are_targets_out(const struct fleet_mend *mend, const struct hf_device_health *health)
{
	for (size_t i = 0; health != NULL && i < mend->r.spec.devices.len; i++) {
		const struct hf_device_report target = {.id = mend->r.spec.devices.items[i].id,
							.uuid = mend->r.spec.devices.items[i].uuid};

		if (!hf_device_is_withheld(health, &target))
			return false;
	}
	return health != NULL;
}

/* A reset concerns only the devices that it names. Other acts concern the whole node. */
static void see_quarantine(struct fleet_mend *mend, const struct hf_device_health *health,
			   struct mend_facts *facts)
{
	/* The end of an act that waits would take its quarantine off. So the act of a person that has the Lease takes it over. */
	bool others = facts->marked && facts->view.lease == HF_MEND_LEASE_OURS &&
		      !is_of_policy(mend) && hf_fleet_mend_is_of_waiting(mend, &facts->mark);
	bool tainted = hf_node_has_quarantine_taint(&facts->marks) && !others;
	bool only_devices = !tainted && facts->devices_out && mend->rung == HF_MEND_RESET_DEVICE;
	bool out = only_devices && are_targets_out(mend, health);

	/* The devices of a policy's act follow the mark. Another device takes the taint. */
	facts->waits_for_rules = only_devices && is_of_policy(mend) && !out;
	facts->view.quarantined = tainted || out || facts->waits_for_rules;
	facts->removes_taint = removes_taint(mend, facts);
}

/* ---- the Lease and the locks of others -------------------------------------------------------- */

/* The holder is a Remediation that is over, which never changes again. A create that a former leader has sent may be
 * performed after that end. */
static bool is_left_over(const struct fleet_mend *mend, const struct hf_json *lease)
{
	const struct hf_cache_entry *entry = hf_cache_get(
		mend->cache, NULL, hf_json_path_str(lease, "spec", "holderIdentity", NULL));
	const struct mend_object *object = entry == NULL ? NULL : entry->view;

	return object != NULL && object->readable && !object->unfinished &&
	       hf_is_owned_by(lease, object->r.uid);
}

static void see_lease(struct fleet_mend *mend, struct hf_mend_view *view)
{
	const struct hf_json *lease = json_of(mend, MEND_READ_LEASE);
	const char *holder = hf_json_path_str(lease, "spec", "holderIdentity", NULL);

	view->lease = HF_MEND_LEASE_FREE;
	if (hf_str_is_empty(holder))
		return;
	view->lease = HF_MEND_LEASE_OTHERS;
	view->lease_holder = holder;
	/* A Lease with this holder may be left from a deleted Remediation of the same name, so the
	 * owner's UID has to match. */
	if (hf_streq(holder, mend->name) && hf_is_owned_by(lease, mend->r.uid))
		view->lease = HF_MEND_LEASE_OURS;
	else if (is_left_over(mend, lease))
		view->lease = HF_MEND_LEASE_FREE;
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* Longest reason of an actor's pod, in bytes. */
#define POD_WHY_MAX 220

/* The actor logs JSON, and the kubelet takes the end of its log. Returns the message of the last line, or the text
 * itself if the line is no such line. */
static const char *find_last_message(const char *text, struct hf_arena *arena)
{
	size_t len = strlen(text);
	HF_AUTO_JSON line = NULL;
	const char *at;

	while (len > 0 && strchr(" \r\n", text[len - 1]) != NULL)
		len--;
	at = memrchr(text, '\n', len);
	at = at == NULL ? text : at + 1;
	len -= (size_t)(at - text);
	if (hf_json_parse(at, len, NULL, &line, NULL) == 0 &&
	    hf_json_path_str(line, "msg", NULL) != NULL)
		return hf_arena_strdup(arena, hf_json_path_str(line, "msg", NULL));
	return text;
}

/* Adds a reason and its message, each of which may be NULL. */
static void add_why(struct hf_strbuf *why, const char *reason, const char *message)
{
	if (hf_str_is_empty(reason) && hf_str_is_empty(message))
		return;
	hf_strbuf_addf(why, "%s%s%s%s", why->len > 0 ? "; " : "", hf_str_or(reason, ""),
		       hf_str_is_empty(reason) || hf_str_is_empty(message) ? "" : ": ",
		       hf_str_or(message, ""));
}

/* Says why the actor's pod ended, or why the kubelet has not started it. Returns NULL if the pod shows no reason. */
static const char *find_pod_why(const struct fleet_mend *mend, const struct hf_json *pod)
{
	const struct hf_json *status = hf_json_get(pod, "status");
	const struct hf_json *state = hf_json_path(
		hf_json_item(hf_json_get(status, "containerStatuses"), 0), "state", NULL);
	const char *message = hf_json_path_str(state, "terminated", "message", NULL);
	const char *waits = hf_json_path_str(state, "waiting", "reason", NULL);
	HF_AUTO_STRBUF why = HF_STRBUF_INIT(8192);
	char *text = hf_arena_alloc(mend->arena, POD_WHY_MAX);

	if (!hf_str_is_empty(message))
		add_why(&why, NULL, find_last_message(message, mend->arena));
	if (!hf_streq(waits, "ContainerCreating"))
		add_why(&why, waits, NULL);
	/* The kubelet has refused or ended the pod. */
	add_why(&why, hf_json_path_str(status, "reason", NULL),
		hf_json_path_str(status, "message", NULL));
	hf_str_print(text, POD_WHY_MAX, why.data, why.len);
	return *text == '\0' ? NULL : text;
}

static void see_actor(const struct fleet_mend *mend, struct hf_mend_view *view)
{
	const struct hf_json *pod = json_of(mend, MEND_READ_POD);
	const struct hf_json *code;

	view->pod_exit = -1;
	if (pod == NULL)
		return;
	view->pod_why = find_pod_why(mend, pod);
	view->pod = HF_MEND_POD_LIVES;
	if (hf_is_leaving(pod))
		view->pod = HF_MEND_POD_LEAVES;
	if (!hf_has_pod_ended(pod))
		return;
	view->pod = HF_MEND_POD_ENDED;
	code = hf_json_path(hf_json_item(hf_json_path(pod, "status", "containerStatuses", NULL), 0),
			    "state", "terminated", "exitCode", NULL);
	view->pod_exit = (int)hf_json_i64(code, -1);
}

/* ---- devices --------------------------------------------------------------------------------- */

/* By its class, unless a rule of the cluster names a milder action for it. */
static bool needs_more_than_reset(const struct hf_device_fault *fault)
{
	enum hf_health_class cls;
	enum hf_health_action action;

	if (!hf_health_class_of(hf_str_or(fault->cls, ""), &cls) || cls <= HF_HEALTH_GPU_RESET)
		return false;
	return !hf_health_action_of(hf_str_or(fault->action, ""), &action) ||
	       action > HF_HEALTH_RESET_DEVICE;
}

static void see_device(struct fleet_mend *mend, const struct hf_device_report *device, hf_time now,
		       struct hf_mend_seen *seen)
{
	*seen = (struct hf_mend_seen){.id = device->id,
				      .uuid = device->uuid,
				      .out = hf_health_is_out(hf_impact_state(device->state)),
				      .unknown = hf_impact_is_unknown_gpu(device),
				      .fault_at = HF_TIME_NONE};
	for (size_t k = 0; k < device->faults.len; k++) {
		const struct hf_device_fault *fault = &device->faults.items[k];
		hf_time at = convert_time(mend, fault->last, now);

		if (hf_impact_counts(fault) && needs_more_than_reset(fault))
			seen->graver = fault->cls;
		if (!hf_impact_counts(fault) || at < seen->fault_at)
			continue;
		seen->fault_at = at;
		seen->fault = fault->cls;
	}
}

static void see_health(struct fleet_mend *mend, const struct hf_device_health *health,
		       struct mend_facts *facts)
{
	const struct fleet_health *known = hf_fleet_find_health(mend->fleet, mend->node);
	struct hf_mend_view *view = &facts->view;
	struct hf_mend_seen *seen =
		HF_ARENA_ARRAY(mend->arena, struct hf_mend_seen, health->devices.len + 1);

	view->health_exists = true;
	view->observed_at = convert_time(mend, health->observed_at, facts->now);
	/* A new leader has not heard the report. If the clock of the node is ahead, it may be of any time. */
	if (known != NULL && known->seen_at == HF_TIME_NONE && health->observed_at > facts->now)
		view->observed_at = HF_TIME_NONE;
	view->driver_at = health->driver_at == HF_TIME_NONE
				  ? HF_TIME_NONE
				  : convert_time(mend, health->driver_at, facts->now);
	view->health_boot_id = health->boot_id;
	view->seen = seen;
	view->seen_len = health->devices.len;
	for (size_t i = 0; i < health->devices.len; i++)
		see_device(mend, &health->devices.items[i], facts->now, &seen[i]);
}

static bool is_well_device(const struct hf_mend_seen *seen)
{
	return !seen->out && !seen->unknown && seen->fault_at == HF_TIME_NONE;
}

static bool is_well_target(const struct hf_mend_view *view,
			   const struct hf_remediation_device *target)
{
	for (size_t i = 0; i < view->seen_len; i++) {
		const struct hf_mend_seen *seen = &view->seen[i];

		/* An older agent reports no UUIDs. */
		if (hf_str_is_empty(seen->uuid) ? hf_streq(seen->id, target->id)
						: hf_streq(seen->uuid, target->uuid))
			return is_well_device(seen);
	}
	return false; /* it is gone */
}

/* A new DeviceHealth has no report yet. */
static bool has_report(const struct hf_mend_view *view)
{
	return view->health_exists && view->observed_at != HF_TIME_NONE;
}

static bool is_agent_silent(const struct fleet_mend *mend, const struct mend_facts *facts,
			    const struct fleet_policy *policy)
{
	const struct hf_mend_view *view = &facts->view;

	return mend->r.spec.fault.cls != NULL &&
	       (!has_report(view) || facts->now - view->observed_at > policy->spec.stale_after);
}

/* True if the act answers a fault, and the agent reports that the devices of the act are well. An act that names no
 * devices is about all. */
static bool is_well(const struct fleet_mend *mend, const struct mend_facts *facts)
{
	const struct hf_remediation_spec *spec = &mend->r.spec;
	const struct hf_mend_view *view = &facts->view;

	if (spec->fault.cls == NULL || !has_report(view))
		return false;
	/* The last report of a node of which nothing is heard is no news. */
	if (mend->rung == HF_MEND_EXTERNAL && facts->policy != NULL &&
	    is_agent_silent(mend, facts, facts->policy))
		return false;
	for (size_t i = 0; i < spec->devices.len; i++)
		if (!is_well_target(view, &spec->devices.items[i]))
			return false;
	for (size_t i = 0; spec->devices.len == 0 && i < view->seen_len; i++)
		if (!is_well_device(&view->seen[i]))
			return false;
	return true;
}

/* ---- the policy ------------------------------------------------------------------------------ */

/* Counts the nodes of this failure domain that are out of use, without the node of this
 * Remediation. */
static int32_t count_out(const struct fleet_mend *mend, const struct fleet_policy *policy,
			 const char *domain)
{
	const struct hf_cache_entry *entry;
	int32_t n = 0;

	for (size_t it = 0; (entry = hf_cache_next(mend->fleet->nodes, &it)) != NULL;) {
		const struct fleet_node *node = entry->view;

		n += !hf_streq(entry->name, mend->node) &&
		     (node->tainted || hf_fleet_is_foreign(policy, node)) &&
		     hf_streq(hf_field_pair_find(node->marks.labels.items, node->marks.labels.len,
						 policy->spec.domain_key),
			      domain);
	}
	return n;
}

static bool is_domain_full(const struct fleet_mend *mend, const struct mend_facts *facts,
			   const struct fleet_policy *policy)
{
	const char *domain =
		policy->spec.domain_key == NULL
			? NULL
			: hf_field_pair_find(facts->marks.labels.items, facts->marks.labels.len,
					     policy->spec.domain_key);

	return domain != NULL && mend->fleet->nodes != NULL &&
	       count_out(mend, policy, domain) >= policy->spec.domain_max;
}

static bool is_excluded(const struct fleet_policy *policy, const struct mend_facts *facts)
{
	HF_AUTO_JSON labels = hf_fleet_make_labels(&facts->marks);

	return policy->spec.has_exclude && hf_selector_match_labels(policy->exclude, labels);
}

/* True if the other acts of this policy reach the limit spec.mend.maxConcurrent. An act in phase
 * Pending counts every other act that has left Pending. A later phase counts the approved acts
 * alone. If two operators approve at once, each sees the other's approval before it creates its
 * pod. */
static bool is_limit_reached(const struct fleet_mend *mend, const struct fleet_policy *policy)
{
	int32_t at_work =
		mend->phase == HF_MEND_PENDING ? mend->others.begun : mend->others.approved;

	return at_work >= policy->spec.mend.at_once;
}

/* Restarts of processes are the job's matter: a policy has no rule for them. */
static bool is_rung_allowed(enum hf_mend_rung rung, const struct hf_policy_mend *rules)
{
	switch (rung) {
	case HF_MEND_RESET_DEVICE: return rules->resets;
	case HF_MEND_REBOOT: return rules->reboots;
	case HF_MEND_RESTART_PLUGIN: return rules->plugins;
	case HF_MEND_EXTERNAL: return rules->externals;
	default: return true;
	}
}

/* Returns the rule of the policy that forbids every act of this rung, or NULL if no rule does. */
static const char *find_rule(const struct fleet_mend *mend, const struct fleet_policy *policy)
{
	const struct hf_policy_mend *rules = &policy->spec.mend;
	struct hf_health_policy_memory memory;

	if (!policy->usable || policy->problem != NULL)
		return "the policy cannot be read";
	if (policy->paused || policy->spec.paused)
		return "the policy is paused";
	if (!hf_streq(policy->spec.mode, "remediate") || !rules->allowed)
		return "spec.mode or spec.mend of the policy allows no acts";
	if (rules->hold)
		return "spec.mend.hold of the policy holds every act back";
	if (!is_rung_allowed(mend->rung, rules))
		return "the policy does not allow this rung";
	hf_health_policy_read_memory(mend->docs[MEND_READ_POLICY], mend->arena, &memory);
	return memory.breaker_open ? "the breaker of the policy is open" : NULL;
}

/* An act that a policy has ordered is not for a node that the policy selects no more, or that a person or another tool
 * has taken out of use meanwhile. A person who orders an act knows the node. */
static const char *find_others_node(const struct fleet_mend *mend, const struct mend_facts *facts,
				    const struct fleet_policy *policy)
{
	const char *foreign = hf_fleet_find_foreign(policy, &facts->marks);
	HF_AUTO_JSON labels = hf_fleet_make_labels(&facts->marks);

	if (policy->selector != NULL && !hf_selector_match_labels(policy->selector, labels))
		return "the policy does not select the node any more";
	return foreign == NULL ? NULL
			       : hf_arena_printf(mend->arena,
						 "a person or another tool has taken the node out "
						 "of use: %s",
						 foreign);
}

/* Returns the limit of the policy that forbids the act at this moment, or NULL if the node is
 * within all limits. */
static const char *find_limit(const struct fleet_mend *mend, const struct mend_facts *facts,
			      struct fleet_policy *policy)
{
	const char *full, *closed;

	if (is_excluded(policy, facts))
		return "the policy excludes the node";
	closed = hf_window_find_closed(policy->spec.mend.windows, policy->spec.mend.windows_len,
				       facts->now, "policy", mend->arena);
	if (closed != NULL)
		return closed;
	if (is_limit_reached(mend, policy))
		return "as many acts are at work as spec.mend.maxConcurrent of the policy allows";
	if (is_domain_full(mend, facts, policy))
		return "too many nodes of the same failure domain are out of use";
	full = facts->view.quarantined ? NULL : hf_fleet_find_room(mend->fleet, policy, mend->node);
	if (full != NULL)
		return full;
	/* Another controller is asked for a node of which nothing is heard. */
	if (is_agent_silent(mend, facts, policy) &&
	    (mend->rung != HF_MEND_EXTERNAL ||
	     hf_fleet_is_awaited(mend->fleet, mend->node, policy->spec.stale_after)))
		return "the last report of the node's agent is too old";
	if (!is_of_policy(mend))
		return NULL;
	/* A node of which nothing is heard is given away with its pods. */
	return facts->at_work != NULL && !is_agent_silent(mend, facts, policy)
		       ? facts->at_work
		       : find_others_node(mend, facts, policy);
}

static const char *policy_forbids(const struct fleet_mend *mend, const struct mend_facts *facts,
				  struct fleet_policy *policy)
{
	const char *why = find_rule(mend, policy);

	return why != NULL ? why : find_limit(mend, facts, policy);
}

/* A person may write an address in a form of the vendor's tools. */
static bool is_other_address(const char *wanted, const char *is)
{
	char a[HF_HEALTH_DEVICE_MAX], b[HF_HEALTH_DEVICE_MAX];

	return !hf_str_is_empty(wanted) && !hf_str_is_empty(is) &&
	       (!hf_health_pci_normalize(wanted, strlen(wanted), a) ||
		!hf_health_pci_normalize(is, strlen(is), b) || !hf_streq(a, b));
}

/* Says which device of the act the node does not have, or which one has another address. A typing error must not reset
 * another device than meant, and what the agent does not see is never proved. */
static const char *find_unknown_target(const struct fleet_mend *mend,
				       const struct mend_facts *facts)
{
	const struct hf_mend_view *view = &facts->view;

	for (size_t i = 0; i < view->targets_len; i++) {
		const struct hf_mend_target *target = &view->targets[i];
		const struct hf_mend_seen *seen = NULL;

		for (size_t k = 0; k < view->seen_len; k++)
			if (hf_streq(view->seen[k].uuid, target->uuid))
				seen = &view->seen[k];
		if (seen == NULL)
			return hf_arena_printf(mend->arena,
					       "the node's agent reports no device with UUID %s",
					       target->uuid);
		if (is_other_address(target->id, seen->id))
			return hf_arena_printf(mend->arena, "device %s is at address %s, not %s",
					       target->uuid, seen->id, target->id);
	}
	return NULL;
}

/* What the act is for, and what no report shows. A person or a program may order an act for a fault of long ago. */
static const char *find_unseen(const struct fleet_mend *mend, const struct mend_facts *facts)
{
	const char *unknown =
		mend->rung == HF_MEND_RESET_DEVICE ? find_unknown_target(mend, facts) : NULL;

	if (unknown != NULL)
		return unknown;
	return mend->rung == HF_MEND_EXTERNAL || mend->r.spec.fault.cls == NULL ||
			       has_report(&facts->view)
		       ? NULL
		       : "no report of the node's agent shows the fault";
}

static const char *find_why_not(const struct fleet_mend *mend, const struct mend_facts *facts)
{
	const char *unknown = find_unseen(mend, facts);

	if (facts->act_missing != NULL)
		return facts->act_missing;
	if (facts->view.node_exists && facts->marks.paused)
		return "the node has annotation holdfast.dev/paused";
	if (facts->waits_for_rules)
		return "pods can still be given the failed devices";
	if (mend->others.unreadable != NULL)
		return hf_arena_printf(mend->arena, "Remediation %s cannot be read",
				       mend->others.unreadable);
	if (unknown != NULL)
		return unknown;
	if (facts->other_actor != NULL)
		return hf_arena_printf(mend->arena,
				       "the actor of Remediation %s is still on the node",
				       facts->other_actor);
	if (mend->others.on_node != NULL)
		return hf_arena_printf(mend->arena, "Remediation %s is at work on the node",
				       mend->others.on_node);
	if (hf_mend_has_actor(mend->rung) && hf_str_is_empty(mend->fleet->env.image))
		return "the operator does not know its image: HOLDFAST_IMAGE is not set";
	if (hf_str_is_empty(mend->policy))
		return NULL;
	if (facts->policy == NULL || mend->docs[MEND_READ_POLICY] == NULL)
		return hf_arena_printf(mend->arena, "spec.policy: HealthPolicy %s does not exist",
				       mend->policy);
	return policy_forbids(mend, facts, facts->policy);
}

/* ---- the Remediation's own fields ------------------------------------------------------------ */

/* Before this time the policy lets pods end by themselves. */
static hf_time first_eviction(const struct mend_facts *facts)
{
	const struct hf_health_policy_spec *spec = &facts->policy->spec;

	return facts->marked && spec->drain_evicts ? hf_time_add(facts->mark.at, spec->drain_grace)
						   : HF_TIME_NONE;
}

/* Since when the drain goes on, and the time at which it counts as failed. NONE and NEVER: the drain has not begun, or
 * something holds the act back, which is no failure of the act. */
static void see_drain(const struct fleet_mend *mend, struct mend_facts *facts)
{
	struct hf_mend_view *view = &facts->view;
	hf_time since = hf_fleet_mend_condition_time(&mend->r, "Locked", "True");

	view->drain_since = HF_TIME_NONE;
	view->drain_until = HF_TIME_NEVER;
	if (since == HF_TIME_NONE || view->held || !view->allowed || view->other_lock != NULL)
		return;
	/* While something held the act back, no pod was moved. This pass is the first after that. */
	if (hf_fleet_mend_condition_time(&mend->r, "Permitted", "False") != HF_TIME_NONE)
		since = facts->now;
	view->drain_since =
		latest_of(since, hf_fleet_mend_condition_time(&mend->r, "Permitted", "True"));
	view->drain_until =
		facts->policy == NULL
			? hf_time_add(view->drain_since, DRAIN_DEFAULT)
			: hf_time_add(latest_of(view->drain_since, first_eviction(facts)),
				      facts->policy->spec.drain_timeout);
}

/* Without an actor the times of the act are the operator's. */
static hf_time convert_act_time(const struct fleet_mend *mend, hf_time at, hf_time now)
{
	return hf_mend_has_actor(mend->rung) ? convert_time(mend, at, now) : at;
}

static const char *print_holder(const struct fleet_mend *mend,
				const struct hf_remediation_holder *holder)
{
	return hf_arena_printf(mend->arena, "%.64s (pid %lld%s%.200s)",
			       hf_str_or(holder->comm, "?"), (long long)holder->pid,
			       hf_str_is_empty(holder->pod) ? "" : " of pod ",
			       hf_str_or(holder->pod, ""));
}

static void see_act(struct fleet_mend *mend, struct mend_facts *facts)
{
	const struct hf_remediation_status *s = &mend->r.status;
	const struct hf_remediation_condition *withdrawn =
		hf_fleet_mend_find_condition(&mend->r, "Approved", "False");
	const struct hf_remediation_condition *open =
		hf_fleet_mend_find_condition(&mend->r, "HoldersGone", "False");
	struct hf_mend_view *view = &facts->view;

	view->approved_at = s->approval.at;
	view->approved_boot_id = s->approval.boot_id;
	view->withdrawn_at = withdrawn == NULL ? HF_TIME_NONE : withdrawn->since;
	view->withdrawn_why = withdrawn == NULL ? NULL : withdrawn->message;
	view->act_started_at = convert_act_time(mend, s->act.started_at, facts->now);
	view->act_ended_at = convert_act_time(mend, s->act.ended_at, facts->now);
	/* The clock of the node may differ after the reboot. The proof of a reboot is the report of
	 * the new boot, and all faults of that boot are newer than the approval. So the approval's
	 * time takes the place of the start. */
	if (mend->rung == HF_MEND_REBOOT && s->act.started_at != HF_TIME_NONE &&
	    s->approval.at != HF_TIME_NONE)
		view->act_started_at = s->approval.at;
	view->act_boot_id = s->act.boot_id;
	view->act_exit = s->act.has_exit_code ? s->act.exit_code : -1;
	view->act_failed = s->act.has_exit_code && s->act.exit_code != 0;
	view->act_message = s->act.message;
	view->act_holders = s->act.holders.len;
	if (s->act.holders.len > 0)
		view->act_holder = print_holder(mend, &s->act.holders.items[0]);
	view->kept_open = open == NULL ? NULL : open->message;
}

/* A person has the time from the agent's report, which is of the node's clock. A policy has converted it. When a task of a
 * person was created, the node was not well, whatever its last report says. */
static hf_time fault_time(const struct fleet_mend *mend, hf_time now)
{
	const struct hf_remediation_spec *spec = &mend->r.spec;

	if (spec->fault.cls == NULL || spec->fault.at == HF_TIME_NONE)
		return HF_TIME_NONE;
	if (!is_of_policy(mend))
		return convert_time(mend, spec->fault.at, now);
	return mend->rung == HF_MEND_PERSON ? latest_of(spec->fault.at, mend->r.created_at)
					    : spec->fault.at;
}

static void see_object(struct fleet_mend *mend, struct mend_facts *facts)
{
	const struct hf_remediation_spec *spec = &mend->r.spec;
	struct hf_mend_view *view = &facts->view;
	struct hf_mend_target *targets =
		HF_ARENA_ARRAY(mend->arena, struct hf_mend_target, spec->devices.len + 1);
	enum hf_mend_phase outcome;

	view->phase = mend->phase;
	view->outcome =
		hf_mend_phase_of(mend->r.status.outcome, &outcome) ? outcome : HF_MEND_FAILED;
	view->rung = mend->rung;
	view->dry_run = spec->dry_run;
	view->cancel = spec->cancel;
	view->deleting = mend->r.deleting;
	view->boot_id = spec->boot_id;
	view->fault_at = fault_time(mend, facts->now);
	view->deadline = (hf_time)spec->deadline_seconds * HF_SECOND;
	for (size_t i = 0; i < spec->devices.len; i++)
		targets[i] = (struct hf_mend_target){.id = spec->devices.items[i].id,
						     .uuid = spec->devices.items[i].uuid};
	view->targets = targets;
	view->targets_len = spec->devices.len;
	for (size_t i = 0; i < spec->devices.len; i++)
		view->driver_asked |= hf_str_has_prefix(targets[i].uuid, NVIDIA_UUID);
	view->mended_at = mend->others.mended_at;
	see_act(mend, facts);
}

/* Says why the policy does not ask for this act any more; NULL: it may. A policy that cannot be read tells nothing. */
static const char *find_end_of_rule(const struct fleet_mend *mend, const struct mend_facts *facts)
{
	const struct fleet_policy *policy = facts->policy;

	if (mend->docs[MEND_READ_POLICY] == NULL || policy == NULL)
		return "the policy of this Remediation does not exist any more";
	if (!policy->usable || policy->problem != NULL)
		return NULL;
	if (!hf_streq(policy->spec.mode, "remediate") || !policy->spec.mend.allowed)
		return "spec.mode or spec.mend of the policy allows no acts any more";
	return is_rung_allowed(mend->rung, &policy->spec.mend)
		       ? NULL
		       : "spec.mend.rungs of the policy does not allow this rung any more";
}

/* As the plan finds it: then the node goes to another controller or to a person. */
static bool is_lost(const struct fleet_mend *mend, const struct mend_facts *facts)
{
	return facts->policy != NULL && mend->others.failed_on_node &&
	       mend->rung != HF_MEND_EXTERNAL && is_agent_silent(mend, facts, facts->policy) &&
	       !hf_fleet_is_awaited(mend->fleet, mend->node, facts->policy->spec.stale_after);
}

/* Ends an act that has not begun and that nothing asks for any more. Without this it would be held
 * back for ever. */
static void see_whether_wanted(const struct fleet_mend *mend, struct mend_facts *facts)
{
	struct hf_mend_view *view = &facts->view;

	if (!mend->before_act || view->cancel || view->deleting ||
	    view->act_started_at != HF_TIME_NONE || mend->rung == HF_MEND_PERSON)
		return;
	if (is_well(mend, facts))
		facts->cancel_why = "the devices are well: nothing has to be mended";
	else if (is_of_policy(mend) && view->node_exists && !view->quarantined &&
		 !facts->devices_out)
		facts->cancel_why = "the quarantine of the node was removed";
	else if (is_of_policy(mend) && !hf_str_is_empty(mend->policy))
		facts->cancel_why = is_lost(mend, facts)
					    ? "nothing is heard of the node since an act has failed"
					    : find_end_of_rule(mend, facts);
	view->cancel = facts->cancel_why != NULL;
}

/* Makes the text of the annotation that asks the agent for a report from after the act, and notes whether the
 * DeviceHealth has it. The agent waits by its own clock, so the clocks of node and operator may differ. */
static void see_request(struct fleet_mend *mend, struct mend_facts *facts)
{
	const struct hf_remediation_act *act = &mend->r.status.act;
	hf_time seconds = (facts->view.settle + HF_SECOND - 1) / HF_SECOND;
	char at[HF_TIME_TEXT_MAX];

	hf_time_format_micro(act->ended_at != HF_TIME_NONE ? act->ended_at : act->started_at, at);
	if (facts->request == NULL)
		facts->request = hf_arena_printf(mend->arena, "%s %s %lld", mend->name, at,
						 (long long)(seconds < HF_REPORT_SECONDS_MAX
								     ? seconds
								     : HF_REPORT_SECONDS_MAX));
	facts->view.report_asked = hf_report_is_asked(mend->docs[MEND_READ_HEALTH], facts->request);
}

/* Returns the text of the annotation that ends mended faults, or NULL if there is nothing to write.
 * A fault that only a reset ends stands until the agent reads of the reset. The text names the
 * devices and the end of the act, so faults from after that time stand. */
static const char *find_cleared(const struct fleet_mend *mend, const struct mend_facts *facts)
{
	const struct hf_remediation *r = &mend->r;
	const char *text = "", *is;
	char at[HF_TIME_TEXT_MAX];

	if (mend->rung != HF_MEND_RESET_DEVICE || facts->view.outcome != HF_MEND_SUCCEEDED ||
	    mend->phase != HF_MEND_RESTORING || r->status.act.ended_at == HF_TIME_NONE ||
	    r->status.proof.at == HF_TIME_NONE || !facts->view.health_exists ||
	    facts->now - facts->view.act_ended_at > CLEARED_VALID)
		return NULL;
	for (size_t i = 0; i < r->spec.devices.len; i++)
		text = hf_arena_printf(mend->arena, "%s%s ", text, r->spec.devices.items[i].uuid);
	hf_time_format_micro(r->status.act.ended_at, at);
	text = hf_arena_printf(mend->arena, "%s%s", text, at);
	is = hf_json_path_str(json_of(mend, MEND_READ_HEALTH), "metadata", "annotations",
			      HF_MEND_CLEARED_ANNOTATION, NULL);
	return hf_streq(is, text) ? NULL : text;
}

/* The nodes of a job's failed devices are avoided no more once an act has mended them. */
static const char *find_mended(const struct fleet_mend *mend, const struct mend_facts *facts)
{
	const struct hf_remediation *r = &mend->r;
	char at[HF_TIME_TEXT_MAX];
	const char *text, *is;

	if (facts->view.outcome != HF_MEND_SUCCEEDED || mend->phase != HF_MEND_RESTORING ||
	    r->status.proof.at == HF_TIME_NONE || !facts->view.health_exists)
		return NULL;
	hf_time_format_micro(r->status.proof.at, at);
	text = hf_arena_printf(mend->arena, "%s %s", at, mend->name);
	is = hf_json_path_str(json_of(mend, MEND_READ_HEALTH), "metadata", "annotations",
			      HF_MENDED_ANNOTATION, NULL);
	/* Written already. */
	if (hf_streq(is, text))
		return NULL;
	return text;
}

void hf_fleet_mend_facts(struct fleet_mend *mend, struct mend_facts *ret_facts)
{
	struct mend_facts *facts = ret_facts;
	struct hf_mend_view *view = &facts->view;
	struct hf_device_health health;
	bool heard = mend->docs[MEND_READ_HEALTH] != NULL;

	memset(facts, 0, sizeof(*facts));
	facts->now = view->now = hf_fleet_now(mend->fleet);
	facts->policy = hf_str_is_empty(mend->policy)
				? NULL
				: hf_fleet_find_policy(mend->fleet, mend->policy);
	view->observed_at = view->driver_at = HF_TIME_NONE;
	see_object(mend, facts);
	see_node(mend, facts);
	see_lease(mend, view);
	view->other_lock = hf_node_find_lock(json_of(mend, MEND_READ_NODE), mend->node,
					     json_of(mend, MEND_READ_KURED), mend->in_maintenance,
					     mend->arena);
	see_actor(mend, view);
	if (heard) {
		hf_device_health_read(mend->docs[MEND_READ_HEALTH], mend->arena, &health);
		see_health(mend, &health, facts);
	}
	see_quarantine(mend, heard ? &health : NULL, facts);
	hf_fleet_mend_see_pods(mend, heard ? &health : NULL, facts);
	hf_fleet_mend_see_act(mend, facts);
	facts->has_finalizer = hf_has_finalizer(json_of(mend, MEND_READ_OBJECT), HF_MEND_FINALIZER);
	facts->cleared = find_cleared(mend, facts);
	facts->mended = find_mended(mend, facts);
	view->untold = facts->cleared != NULL || facts->mended != NULL;
	view->saved = mend->r.status.saved.labels.len > 0 || mend->r.status.saved.has_cordoned ||
		      mend->r.status.saved.persistence.len > 0 ||
		      !hf_str_is_empty(mend->r.status.saved.external.kind) || view->untold ||
		      facts->own_external || facts->removes_taint;
	view->external_left = facts->own_external;
	view->calling = hf_fleet_mend_is_calling(mend);
	view->settle = mend->rung == HF_MEND_REBOOT ? 0
		       : facts->policy != NULL      ? facts->policy->spec.mend.settle
						    : SETTLE_DEFAULT;
	see_request(mend, facts);
	see_whether_wanted(mend, facts);
	view->why_not = mend->before_act ? find_why_not(mend, facts) : NULL;
	view->allowed = view->why_not == NULL;
	see_drain(mend, facts);
}
