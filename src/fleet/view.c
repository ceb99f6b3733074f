/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/fleet_internal.h"

#include "api/device_health.h"
#include "base/mem.h"
#include "base/str.h"
#include "fleet/device_taint_plan.h"
#include "health/evidence.h"
#include "fleet/impact.h"

#include <stdlib.h>
#include <string.h>

/*
 * What is kept of HealthPolicy, Node and DeviceHealth objects, and which differences matter.
 * Input: documents from the caches. Output: views without JSON. Invariant: a view holds everything
 * that an object of the API server's maximal size can hold.
 */
#define VIEW_MAX ((size_t)64 << 20)

/* --- nodes ------------------------------------------------------------------------------------ */

static const char *keep_text(struct hf_arena *arena, const char *text)
{
	return text == NULL ? NULL : hf_arena_strdup(arena, text);
}

void *hf_fleet_read_node(struct hf_fleet *fleet, struct hf_doc *doc)
{
	struct fleet_node *view = hf_xcalloc(1, sizeof(*view));
	struct hf_node_marks read;
	struct hf_arena *arena;

	view->arena = arena = hf_arena_create(VIEW_MAX);
	hf_node_marks_read(doc, fleet->scratch, &read);
	view->marks = read;
	view->marks.boot_id = keep_text(arena, read.boot_id);
	view->marks.quarantine = keep_text(arena, read.quarantine);
	view->marks.labels.items = HF_ARENA_ARRAY(arena, struct hf_field_pair, read.labels.len + 1);
	for (size_t i = 0; i < read.labels.len; i++)
		view->marks.labels.items[i] = (struct hf_field_pair){
			.key = keep_text(arena, read.labels.items[i].key),
			.value = keep_text(arena, read.labels.items[i].value)};
	view->marks.taints.items = HF_ARENA_ARRAY(arena, struct hf_node_taint, read.taints.len + 1);
	for (size_t i = 0; i < read.taints.len; i++)
		view->marks.taints.items[i] = (struct hf_node_taint){
			.key = keep_text(arena, read.taints.items[i].key),
			.value = keep_text(arena, read.taints.items[i].value),
			.effect = keep_text(arena, read.taints.items[i].effect)};
	view->marked = hf_quarantine_mark_read(view->marks.quarantine, arena, &view->mark);
	/* A mark of single devices counts like the taint: the node has its quarantine. */
	view->tainted = hf_node_has_quarantine_taint(&view->marks) ||
			(view->marked && view->mark.devices && view->mark.off == HF_TIME_NONE);
	view->put_at = view->off_at = HF_TIME_NONE;
	hf_arena_reset(fleet->scratch);
	return view;
}

void hf_fleet_free_node(void *arg)
{
	struct fleet_node *view = arg;

	hf_arena_destroy(view->arena);
	free(view);
}

static bool same_pairs(const struct hf_node_marks *a, const struct hf_node_marks *b)
{
	if (a->labels.len != b->labels.len || a->taints.len != b->taints.len)
		return false;
	for (size_t i = 0; i < a->labels.len; i++)
		if (!hf_streq(a->labels.items[i].key, b->labels.items[i].key) ||
		    !hf_streq(a->labels.items[i].value, b->labels.items[i].value))
			return false;
	for (size_t i = 0; i < a->taints.len; i++)
		if (!hf_streq(a->taints.items[i].key, b->taints.items[i].key) ||
		    !hf_streq(a->taints.items[i].effect, b->taints.items[i].effect))
			return false;
	return true;
}

bool hf_fleet_is_same_node(const struct fleet_node *a, const struct fleet_node *b)
{
	return a->marks.ready == b->marks.ready &&
	       a->marks.unschedulable == b->marks.unschedulable &&
	       a->marks.paused == b->marks.paused && a->marks.held == b->marks.held &&
	       hf_streq(a->marks.boot_id, b->marks.boot_id) &&
	       hf_streq(a->marks.quarantine, b->marks.quarantine) &&
	       same_pairs(&a->marks, &b->marks);
}

/* --- DeviceHealth objects --------------------------------------------------------------------- */

static void add_holder(struct fleet_health *view, const struct hf_device_holder *holder, bool fatal)
{
	const char *ns = hf_str_or(holder->ns, ""), *pod = hf_str_or(holder->pod, "");

	for (size_t i = 0; i < view->holders_len; i++) {
		struct fleet_holder *there = &view->holders[i];

		if (hf_streq(there->pod, pod) && hf_streq(there->ns, ns)) {
			there->fatal |= fatal;
			return;
		}
	}
	view->holders[view->holders_len++] = (struct fleet_holder){
		.ns = hf_arena_strdup(view->arena, ns),
		.pod = hf_arena_strdup(view->arena, pod),
		.uid = hf_arena_strdup(view->arena, hf_str_or(holder->uid, "")),
		.fatal = fatal};
}

static void read_holders(const struct hf_device_health *health, struct fleet_health *view)
{
	size_t room = 0;

	for (size_t i = 0; i < health->devices.len; i++)
		room += health->devices.items[i].holders.len;
	view->holders = HF_ARENA_ARRAY(view->arena, struct fleet_holder, room + 1);
	for (size_t i = 0; i < health->devices.len; i++) {
		const struct hf_device_report *device = &health->devices.items[i];
		enum hf_impact own = hf_impact_of_device(device);
		enum hf_impact shared = hf_impact_of_node(health, device);
		enum hf_impact impact = own > shared ? own : shared;

		for (size_t h = 0; h < device->holders.len; h++) {
			const struct hf_device_holder *holder = &device->holders.items[h];

			/* Each node has such a pod, such as a monitor with adminAccess, for ever. */
			if (holder->until != HF_TIME_NONE || hf_str_is_empty(holder->pod) ||
			    holder->of_node)
				continue;
			view->works = true;
			if (impact != HF_IMPACT_NONE)
				add_holder(view, holder, impact == HF_IMPACT_STOPPED);
		}
	}
}

static bool is_node(const struct hf_device_report *device)
{
	return hf_str_is_empty(device->id);
}

/* Counts the node's GPUs and network devices. A node without any is in no budget and takes no
 * work. */
static void read_devices(const struct hf_device_health *health, struct fleet_health *view)
{
	view->sick = HF_ARENA_ARRAY(view->arena, const char *, health->devices.len + 1);
	for (size_t i = 0; i < health->devices.len; i++) {
		const struct hf_device_report *device = &health->devices.items[i];

		bool out = hf_health_is_out(hf_impact_state(device->state));

		view->can_reset |=
			out && hf_impact_is_gpu(device) && !hf_str_is_empty(device->uuid);
		if (hf_impact_of_device(device) != HF_IMPACT_NONE)
			view->sick[view->sick_len++] =
				hf_arena_strdup(view->arena, hf_str_or(device->uuid, ""));
		view->has_devices |= !is_node(device);
		view->gpus += hf_impact_is_gpu(device);
		for (size_t k = 0; is_node(device) && k < device->faults.len; k++) {
			const struct hf_device_fault *fault = &device->faults.items[k];

			view->has_gpus |= fault->acts && hf_impact_is_by(fault, HF_HEALTH_COUNT);
			view->hangs |= fault->acts && hf_impact_is_by(fault, HF_HEALTH_DRIVER) &&
				       fault->code == HF_HEALTH_CODE_UNRESPONSIVE;
		}
	}
	view->has_gpus |= view->gpus > 0;
	view->has_devices |= view->has_gpus;
}

/* A pod ends this fault by running again: the device plugin's or the driver's. */
static bool is_by_pods(const struct hf_device_fault *fault)
{
	return hf_impact_is_by(fault, HF_HEALTH_PLUGIN) ||
	       (hf_impact_is_by(fault, HF_HEALTH_COUNT) &&
		fault->code == HF_HEALTH_CODE_KUBELET_FEWER) ||
	       (hf_impact_is_by(fault, HF_HEALTH_DRIVER) &&
		fault->code == HF_HEALTH_CODE_NOT_LOADED);
}

static void read_rest(const struct hf_device_health *health, struct fleet_health *view)
{
	bool any = false, others = false;

	view->rest_well = true;
	for (size_t i = 0; i < health->devices.len; i++) {
		const struct hf_device_report *device = &health->devices.items[i];
		enum hf_health_state state = hf_impact_state(device->state);

		view->rest_well &= is_node(device) || state == HF_HEALTH_HEALTHY;
		others |= !is_node(device) && hf_health_is_out(state);
		/* Only confirmed faults count, not suspicions. */
		for (size_t k = 0; k < device->faults.len && state != HF_HEALTH_SUSPECT; k++) {
			const struct hf_device_fault *fault = &device->faults.items[k];

			any |= hf_impact_counts(fault);
			others |= hf_impact_counts(fault) && !is_by_pods(fault);
		}
	}
	view->by_pods = any && !others;
}

/* Start of the newest fault. Evidence of a measured level (such as heat) is renewed while the level
 * lasts; its start stays the same. */
static hf_time find_began(const struct hf_device_health *health)
{
	hf_time at = HF_TIME_NONE;

	for (size_t i = 0; i < health->devices.len; i++) {
		const struct hf_device_report *device = &health->devices.items[i];

		if (hf_impact_of_device(device) != HF_IMPACT_NONE && device->since > at)
			at = device->since;
	}
	return at;
}

/* A repetition of the fault is a new error: each kernel line and each rise of a counter is one. A
 * measured level is one error as long as it lasts. */
static bool is_another(const struct hf_device_fault *fault)
{
	enum hf_health_detector d;

	if (!hf_health_detector_of(hf_str_or(fault->detector, ""), &d))
		return false;
	if (d == HF_HEALTH_ECC || d == HF_HEALTH_AMD)
		return fault->code == HF_HEALTH_CODE_UNCORRECTABLE;
	return d == HF_HEALTH_XID || d == HF_HEALTH_SXID || d == HF_HEALTH_AER ||
	       d == HF_HEALTH_MLX5;
}

/* Time of the newest error. Notes and faults of programs do not count. NONE: the device has no
 * other fault. */
static hf_time faults_came(const struct hf_device_report *device)
{
	hf_time at = HF_TIME_NONE;

	for (size_t k = 0; k < device->faults.len; k++) {
		const struct hf_device_fault *fault = &device->faults.items[k];
		hf_time came = is_another(fault) ? fault->last : fault->first;

		if (hf_impact_counts(fault) && came > at)
			at = came;
	}
	return at;
}

static void read_news(const struct hf_device_health *health, struct fleet_health *view)
{
	view->anew_at = view->faults_at = view->eased_at = HF_TIME_NONE;
	for (size_t i = 0; i < health->devices.len; i++) {
		const struct hf_device_report *device = &health->devices.items[i];
		hf_time came = faults_came(device);

		if (hf_impact_of_device(device) == HF_IMPACT_NONE)
			continue;
		if (came > view->faults_at)
			view->faults_at = came;
		/* A confirmed suspicion is new too. */
		if (device->since > came)
			came = device->since;
		if (came > view->anew_at)
			view->anew_at = came;
	}
	if (view->anew_at == HF_TIME_NONE)
		view->anew_at = health->evidence_at;
}

void hf_fleet_ease_health(const struct fleet_health *was, struct fleet_health *view)
{
	hf_time eased_at = was->sure_cls > view->sure_cls ? view->began_at : was->eased_at;

	if (eased_at == HF_TIME_NONE || view->began_at != eased_at ||
	    view->faults_at > was->anew_at)
		return;
	view->eased_at = eased_at;
	view->anew_at = was->anew_at;
}

static enum hf_health_class sure_class(const struct hf_device_health *health)
{
	enum hf_health_class strictest = HF_HEALTH_NONE, cls;

	for (size_t i = 0; i < health->devices.len; i++) {
		const struct hf_device_report *device = &health->devices.items[i];

		for (size_t k = 0; k < device->faults.len; k++)
			if (hf_impact_of_device(device) != HF_IMPACT_NONE &&
			    hf_impact_counts(&device->faults.items[k]) &&
			    hf_health_class_of(hf_str_or(device->faults.items[k].cls, ""), &cls) &&
			    cls > strictest)
				strictest = cls;
	}
	return strictest;
}

void *hf_fleet_read_health(struct hf_fleet *fleet, struct hf_doc *doc)
{
	struct fleet_health *view = hf_xcalloc(1, sizeof(*view));
	struct hf_device_health health;

	hf_device_health_read(doc, fleet->scratch, &health);
	view->arena = hf_arena_create(VIEW_MAX);
	view->state = hf_impact_state(health.state);
	if (!hf_health_class_of(hf_str_or(health.cls, ""), &view->cls))
		view->cls = HF_HEALTH_NONE;
	if (!hf_health_action_of(hf_str_or(health.action, ""), &view->action))
		view->action = HF_HEALTH_RECORD;
	view->confined = hf_device_taint_is_confined(&health);
	view->told = health.devices_out != NULL;
	view->observed_at = health.observed_at;
	view->evidence_at = health.evidence_at;
	view->began_at = find_began(&health);
	/* The device is Failed because of repeated suspicions, and no fault is active now: treat it
	 * as slow. */
	if (view->state == HF_HEALTH_FAILED && view->cls < HF_HEALTH_SOFTWARE) {
		view->cls = HF_HEALTH_DEGRADED;
		view->evidence_at = view->began_at;
	}
	read_news(&health, view);
	view->seen_at = HF_TIME_NONE;
	view->boot_id = keep_text(view->arena, health.boot_id);
	read_holders(&health, view);
	read_devices(&health, view);
	read_rest(&health, view);
	view->sure_cls = sure_class(&health);
	hf_arena_reset(fleet->scratch);
	return view;
}

void hf_fleet_free_health(void *arg)
{
	struct fleet_health *view = arg;

	hf_arena_destroy(view->arena);
	free(view);
}

static bool same_devices(const struct fleet_health *a, const struct fleet_health *b)
{
	if (a->sick_len != b->sick_len)
		return false;
	for (size_t i = 0; i < a->sick_len; i++)
		if (!hf_streq(a->sick[i], b->sick[i]))
			return false;
	return a->works == b->works && a->hangs == b->hangs && a->has_devices == b->has_devices &&
	       a->has_gpus == b->has_gpus && a->by_pods == b->by_pods &&
	       a->rest_well == b->rest_well && a->sure_cls == b->sure_cls && a->gpus == b->gpus;
}

static bool is_same_holder(const struct fleet_holder *a, const struct fleet_holder *b)
{
	return hf_streq(a->pod, b->pod) && hf_streq(a->ns, b->ns) && hf_streq(a->uid, b->uid) &&
	       a->fatal == b->fatal;
}

bool hf_fleet_is_same_health(const struct fleet_health *a, const struct fleet_health *b)
{
	if (a->state != b->state || a->cls != b->cls || a->action != b->action ||
	    a->evidence_at != b->evidence_at || a->began_at != b->began_at ||
	    a->anew_at != b->anew_at || !hf_streq(a->boot_id, b->boot_id) || !same_devices(a, b) ||
	    a->holders_len != b->holders_len || a->confined != b->confined)
		return false;
	for (size_t i = 0; i < a->holders_len; i++)
		if (!is_same_holder(&a->holders[i], &b->holders[i]))
			return false;
	return true;
}

/* --- policies --------------------------------------------------------------------------------- */

struct fleet_policy *hf_fleet_create_policy(const struct hf_fleet *fleet, const char *name)
{
	struct fleet_policy *policy = hf_xcalloc(1, sizeof(*policy));

	policy->name = hf_xstrdup(name);
	policy->uid = hf_xstrdup("");
	policy->evicts_at = HF_TIME_NONE;
	policy->told = hf_map_create(HF_HEALTH_NODES_MAX, fleet->env.seed, free);
	return policy;
}

static void drop_spec(struct fleet_policy *policy)
{
	hf_selector_destroy(policy->selector);
	hf_selector_destroy(policy->exclude);
	hf_selector_destroy(policy->pods);
	policy->selector = policy->exclude = policy->pods = NULL;
	policy->arena = hf_arena_destroy(policy->arena);
}

void hf_fleet_free_policy(struct fleet_policy *policy)
{
	drop_spec(policy);
	hf_map_destroy(policy->told);
	hf_json_unref(policy->sent);
	free(policy->problem);
	free(policy->uid);
	free(policy->name);
	free(policy);
}

static int read_selector(const struct hf_json *json, const char *path,
			 struct hf_selector **ret_selector, struct hf_error *err)
{
	if (json == NULL)
		return 0;
	if (hf_selector_from_json(json, ret_selector, err) != 0)
		return hf_error_wrap(err, "%s", path);
	return 0;
}

static int read_spec(struct fleet_policy *to, struct hf_doc *doc, struct hf_error *err)
{
	const struct hf_json *spec = hf_json_get(hf_doc_json(doc), "spec");
	int rc = hf_health_policy_read(doc, to->arena, &to->spec, err);

	if (rc == 0)
		rc = read_selector(hf_json_get(spec, "selector"), "spec.selector", &to->selector,
				   err);
	if (rc == 0)
		rc = read_selector(hf_json_get(spec, "exclude"), "spec.exclude", &to->exclude, err);
	if (rc == 0)
		rc = read_selector(hf_json_path(spec, "drain", "podSelector", NULL),
				   "spec.drain.podSelector", &to->pods, err);
	return rc;
}

/* No version of this policy was ever readable. The policy only observes, and other policies do not
 * take its nodes. */
static void set_observing(struct fleet_policy *policy, const struct hf_json *selector)
{
	HF_AUTO_DOC empty = hf_doc_from_text("{}", 2);
	int rc;

	drop_spec(policy);
	policy->arena = hf_arena_create(VIEW_MAX);
	rc = hf_health_policy_read(empty, policy->arena, &policy->spec, NULL);
	hf_assert(rc == 0);
	if (read_selector(selector, "spec.selector", &policy->selector, NULL) != 0)
		policy->selector = NULL;
}

static bool stops(const struct hf_json *spec)
{
	return hf_json_true(hf_json_get(spec, "paused"), false) ||
	       hf_streq(hf_json_path_str(spec, "mode", NULL), "observe");
}

void hf_fleet_update_policy(struct fleet_policy *policy, struct hf_doc *doc)
{
	const struct hf_json *root = hf_doc_json(doc);
	struct fleet_policy fresh = {.arena = hf_arena_create(VIEW_MAX)};
	struct hf_error err = {0};

	policy->generation = hf_json_i64(hf_json_path(root, "metadata", "generation", NULL), 0);
	policy->paused = hf_paused(
		hf_json_path_str(root, "metadata", "annotations", HF_PAUSED_ANNOTATION, NULL));
	free(policy->uid);
	policy->uid = hf_xstrdup(hf_doc_uid(doc));
	if (read_spec(&fresh, doc, &err) != 0) {
		/* Keep the last readable version. A policy that never had one only observes. A stop counts in any version. */
		policy->paused |= stops(hf_json_get(root, "spec"));
		drop_spec(&fresh);
		if (!hf_streq(policy->problem, err.text))
			policy->problem_told = false;
		free(policy->problem);
		policy->problem = hf_xstrdup(err.text);
		if (!policy->usable)
			set_observing(policy, hf_json_path(root, "spec", "selector", NULL));
		return;
	}
	drop_spec(policy);
	policy->spec = fresh.spec;
	policy->arena = fresh.arena;
	policy->selector = fresh.selector;
	policy->exclude = fresh.exclude;
	policy->pods = fresh.pods;
	policy->usable = true;
	free(policy->problem);
	policy->problem = NULL;
}
