/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/verbs_internal.h"

#include "api/device_health.h"
#include "api/device_rollout.h"
#include "api/health_policy.h"
#include "api/remediation.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/disks.h"
#include "cli/facts.h"
#include "cli/node_devices.h"
#include "cli/remediation.h"
#include "cli/request.h"
#include "cli/rollout.h"
#include "framework/framework.h"
#include "store/resource.h"
#include "store/selector.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/*
 * why node/NAME: lists what keeps pods off a node, with the source of each reason.  Input: the Node,
 * its DeviceHealth, the HealthPolicies, the DeviceRollouts and the records of jobs.  Objects that the user may not read are
 * left out.  Output: a JSON object with a summary and reasons.
 */

#define ARENA_BYTES_MAX ((size_t)16 << 20)
#define AVOIDED (24 * HF_HOUR)
#define TEXT_MAX ((size_t)4096)

struct account {
	struct hf_cli *cli;
	struct hf_arena *arena;
	const struct hf_json *node;
	const char *name;
	hf_time now;
	struct hf_json *reasons;
	hf_time mended_at; /* by the last proved act; NONE: never */
	/* `ours`: the taint is Holdfast's. `paused`: the node has the annotation that stops
	 * Holdfast's actions on it. */
	bool ours, paused;
	bool devices; /* the quarantine concerns single devices, and the Node has no taint */
	/* NULL: the DeviceHealth does not exist, or cannot be read */
	const struct hf_device_health *health;
};

HF_PRINTF(4, 5)
static void add_reason(struct account *a, const char *time, const char *topic, const char *fmt, ...)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);
	struct hf_json *reason = hf_json_object();
	va_list ap;

	va_start(ap, fmt);
	hf_strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	if (!hf_str_is_empty(time))
		hf_json_set_str(reason, "time", time);
	hf_json_set_str(reason, "topic", topic);
	hf_json_set_str(reason, "text", text.data);
	hf_json_append(a->reasons, reason);
}

static const char *str_of(const struct hf_json *item, const char *key)
{
	return hf_str_or(hf_json_path_str(item, key, NULL), "");
}

/* ---- the Node ----------------------------------------------------------------------------------- */

static const char *ready_text(const struct account *a)
{
	const char *ready = str_of(hf_find_condition(a->node, "Ready"), "status");

	return hf_streq(ready, "True")      ? "Ready"
	       : hf_streq(ready, "Unknown") ? "Unknown: its kubelet has stopped reporting"
					    : "not ready";
}

static void add_ready_reasons(struct account *a)
{
	const struct hf_json *ready = hf_find_condition(a->node, "Ready");
	const struct hf_json *disk = hf_find_condition(a->node, "DiskPressure");

	if (ready != NULL && !hf_streq(str_of(ready, "status"), "True"))
		add_reason(a, str_of(ready, "lastTransitionTime"), "ready", "Ready is %s: %s",
			   str_of(ready, "status"), str_of(ready, "message"));
	if (hf_streq(str_of(disk, "status"), "True"))
		add_reason(a, str_of(disk, "lastTransitionTime"), "disk", "%s",
			   hf_str_or(hf_json_path_str(disk, "message", NULL),
				     "the node's disk is nearly full"));
}

static const char *format_time(hf_time time, char text[HF_TIME_TEXT_MAX])
{
	text[0] = '\0';
	if (time != HF_TIME_NONE)
		hf_time_format_micro(time, text);
	return text;
}

static void add_taint_reason(struct account *a, const struct hf_json *taint,
			     const struct hf_quarantine_mark *mark)
{
	bool ours = hf_streq(str_of(taint, "key"), HF_QUARANTINE_TAINT);
	const char *act = mark != NULL ? hf_quarantine_act(mark->policy) : NULL;
	const char *owner = "", *name = "", *rest = "";

	a->ours |= ours && mark != NULL && hf_streq(str_of(taint, "effect"), "NoSchedule");
	if (ours && mark == NULL) {
		owner = ", without a record of its owner: Holdfast does not remove it";
	} else if (ours && act != NULL) {
		owner = ", Holdfast's quarantine for Remediation ";
		name = act;
		rest = ": after a failure it stays until a reboot, or an act on the same devices, "
		       "succeeds, or until you remove it";
	} else if (ours) {
		owner = ", Holdfast's quarantine under policy ";
		name = mark->policy;
	}
	add_reason(a, str_of(taint, "timeAdded"), "taint", "%s%s%s:%s%s%s%s", str_of(taint, "key"),
		   *str_of(taint, "value") != '\0' ? "=" : "", str_of(taint, "value"),
		   str_of(taint, "effect"), owner, name, rest);
}

/* The quarantine concerns single devices. Only the DeviceHealth tells whether pods can still be given one of them. */
static void add_confined_reason(struct account *a, const struct hf_quarantine_mark *mark)
{
	char at[HF_TIME_TEXT_MAX];

	format_time(mark->at, at);
	if (a->health == NULL)
		add_reason(a, at, "devices",
			   "the quarantine under policy %s, class %s, concerns the failed devices "
			   "alone; without the DeviceHealth it is not known whether pods can be "
			   "given one",
			   mark->policy, mark->cls);
	else if (!hf_str_is_empty(a->health->devices_out))
		add_reason(
			a, at, "devices",
			"the failed devices are out of use under policy %s, class %s; the others "
			"stay in use",
			mark->policy, mark->cls);
	else
		add_reason(
			a, at, "devices",
			"pods can still be given a failed device: policy %s, class %s, keeps the "
			"node in use; evicted pods that were given one since: %d",
			mark->policy, mark->cls, mark->late);
}

static const char *confined_text(const struct account *a)
{
	return a->health == NULL ? ", with failed devices in quarantine"
	       : hf_str_is_empty(a->health->devices_out)
		       ? ", with failed devices that pods can still be given"
		       : ", with devices out of use";
}

static void add_quarantine_reasons(struct account *a)
{
	const struct hf_json *taints = hf_json_path(a->node, "spec", "taints", NULL);
	const char *text = hf_json_path_str(a->node, "metadata", "annotations",
					    HF_QUARANTINE_ANNOTATION, NULL);
	struct hf_quarantine_mark mark;
	bool marked = text != NULL && hf_quarantine_mark_read(text, a->arena, &mark);

	for (size_t i = 0; i < hf_json_len(taints); i++)
		add_taint_reason(a, hf_json_item(taints, i), marked ? &mark : NULL);
	a->devices = marked && mark.devices && mark.off == HF_TIME_NONE && !a->ours;
	if (a->devices)
		add_confined_reason(a, &mark);
}

/* Only rollouts cordon nodes, and they leave their names on the node. */
static void add_cordon_reason(struct account *a)
{
	const char *rollout =
		hf_json_path_str(a->node, "metadata", "annotations", HF_ROLLOUT_ANNOTATION, NULL);

	if (hf_str_is_empty(rollout))
		add_reason(
			a, "", "cordon",
			"the node is cordoned, and not by Holdfast: an administrator or a tool did it");
	else
		add_reason(a, "", "cordon",
			   "the node is cordoned by DeviceRollout %s (annotation %s)", rollout,
			   HF_ROLLOUT_ANNOTATION);
}

static void add_change_reason(struct account *a, const char *text)
{
	struct hf_rollout_mark mark;
	char at[HF_TIME_TEXT_MAX];

	if (text != NULL && hf_rollout_mark_read(text, a->arena, &mark))
		add_reason(a, format_time(mark.at, at), "rollout", "DeviceRollout %s %s",
			   mark.rollout,
			   mark.rolled_back ? "changed the node and took the change back"
					    : "changed the node");
}

/* The marks stay on a node that rollouts have changed, also when a rollout does not list the node any
 * more. */
static void add_change_reasons(struct account *a)
{
	const struct hf_json *annotations = hf_json_path(a->node, "metadata", "annotations", NULL);
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(annotations, it, &key, &value));)
		if (hf_str_has_prefix(key, HF_ROLLOUT_MARK_PREFIX))
			add_change_reason(a, hf_json_str(value, NULL));
}

/* Other tools write conditions of the same names, with their own prefixes, while they work on a node. */
static void add_maintenance_reasons(struct account *a)
{
	static const char *const types[] = {"DrainInProgress", "MaintenanceInProgress"};
	const struct hf_json *list = hf_json_path(a->node, "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *c = hf_json_item(list, i);
		const char *slash = strrchr(str_of(c, "type"), '/');
		const char *type = slash != NULL ? slash + 1 : str_of(c, "type");

		for (size_t k = 0; k < HF_ARRAY_LEN(types); k++)
			if (hf_streq(type, types[k]) && hf_streq(str_of(c, "status"), "True"))
				add_reason(a, str_of(c, "lastTransitionTime"), "work", "%s: %s",
					   str_of(c, "type"), str_of(c, "message"));
	}
}

/* Adds a reason if an annotation of the Node holds Holdfast back. */
static bool add_annotation_reason(struct account *a, const char *key, const char *topic,
				  const char *effect)
{
	if (!hf_paused(hf_json_path_str(a->node, "metadata", "annotations", key, NULL)))
		return false;
	add_reason(a, "", topic, "annotation %s: %s", key, effect);
	return true;
}

static void add_marks_reasons(struct account *a)
{
	const struct hf_json *spec = hf_json_get(a->node, "spec");

	add_quarantine_reasons(a);
	if (hf_json_true(hf_json_get(spec, "unschedulable"), false))
		add_cordon_reason(a);
	a->paused = add_annotation_reason(a, HF_PAUSED_ANNOTATION, "paused",
					  "Holdfast does nothing to this node");
	add_annotation_reason(a, HF_MEND_HOLD_ANNOTATION, "hold",
			      "no act begins on this node, and no rollout changes it");
}

static void add_problems_reasons(struct account *a)
{
	static const char *const types[] = {"AcceleratorUnhealthy", "AcceleratorDegraded",
					    "AcceleratorDriverUnresponsive", "FabricUnhealthy"};

	for (size_t i = 0; i < HF_ARRAY_LEN(types); i++) {
		const struct hf_json *condition = hf_find_condition(a->node, types[i]);

		if (hf_streq(str_of(condition, "status"), "True"))
			add_reason(a, str_of(condition, "lastTransitionTime"), "told", "%s: %s",
				   types[i], str_of(condition, "message"));
	}
}

/* ---- the node's agent --------------------------------------------------------------------------- */

static void add_device_reasons(struct account *a, const struct hf_device_report *device)
{
	const char *id = hf_str_is_empty(device->id) ? "the node as a whole" : device->id;
	bool has_evidence = false;
	char since[HF_TIME_TEXT_MAX], last[HF_TIME_TEXT_MAX];

	if (hf_streq(device->state, "Healthy"))
		return;
	add_reason(a, format_time(device->since, since), "device", "%s is %s%s%s%s%s", id,
		   hf_str_or(device->state, "Unknown"),
		   hf_str_is_empty(device->cls) ? "" : ", class ", hf_str_or(device->cls, ""),
		   hf_str_is_empty(device->action) ? "" : ", needs ",
		   hf_str_or(device->action, ""));
	for (size_t i = 0; i < device->faults.len; i++) {
		const struct hf_device_fault *fault = &device->faults.items[i];

		/* Skip a fault that does not affect the device's state. Exception: a device is
		 * Unknown because of a fault of the whole node; there the device's own faults are
		 * still evidence. */
		if (!fault->acts && !hf_streq(device->state, "Unknown"))
			continue;
		add_reason(
			a, format_time(fault->last, last), "evidence",
			"%s %" PRId64 ", %" PRId64 " times%s%s%s", hf_str_or(fault->detector, ""),
			fault->code, fault->count,
			fault->acts
				? ""
				: " (part of a fault of the whole node, or a result of another fault)",
			fault->line != NULL ? ": " : "", hf_str_or(fault->line, ""));
		has_evidence = true;
	}
	if (!has_evidence && hf_streq(device->state, "Unknown"))
		add_reason(a, "", "evidence", "no report about %s yet", id);
}

static void read_health(struct account *a)
{
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_devicehealths, .name = a->name};
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_device_health *health;

	if (hf_cli_request(a->cli, &request, &reply, NULL) != 0)
		return;
	health = HF_ARENA_NEW(a->arena, struct hf_device_health);
	hf_device_health_read(reply.object, a->arena, health);
	a->health = health;
	a->mended_at = health->mended_at;
}

static void add_devices_reasons(struct account *a)
{
	const struct hf_device_health *health = a->health;
	char text[HF_TIME_TEXT_MAX];

	if (health == NULL) {
		add_reason(
			a, "", "agent",
			"no agent reports the devices: DeviceHealth '%s' does not exist or cannot be read",
			a->name);
		return;
	}
	if (health->observed_at != HF_TIME_NONE &&
	    a->now - health->observed_at > HF_CLI_AGENT_SILENT)
		add_reason(
			a, format_time(health->observed_at, text), "agent",
			"the agent's last report is from this time: the device states may be out of date");
	for (size_t i = 0; i < health->devices.len; i++)
		add_device_reasons(a, &health->devices.items[i]);
}

/* ---- acts that mend the node --------------------------------------------------------------------- */

static void add_mend_reason(void *arg, hf_time at, const char *text)
{
	struct account *a = arg;
	char time[HF_TIME_TEXT_MAX];

	add_reason(a, format_time(at, time), "mend", "%s", text);
}

static void add_rollout_reason(void *arg, hf_time at, const char *text)
{
	struct account *a = arg;
	char time[HF_TIME_TEXT_MAX];

	add_reason(a, format_time(at, time), "rollout", "%s", text);
}

/* ---- policies and jobs -------------------------------------------------------------------------- */

static bool is_selected(const struct account *a, const struct hf_json *policy)
{
	const struct hf_json *json = hf_json_path(policy, "spec", "selector", NULL);
	struct hf_selector *selector = NULL;
	bool selected = json == NULL;

	if (json != NULL && hf_selector_from_json(json, &selector, NULL) == 0)
		selected = hf_selector_match_labels(
			selector, hf_json_path(a->node, "metadata", "labels", NULL));
	hf_selector_destroy(selector);
	return selected;
}

/* If the status of a policy leaves out some nodes for want of room, reports that this node may be
 * one of them. */
static void add_unlisted_node_reason(struct account *a, const char *name,
				     const struct hf_json *policy)
{
	const struct hf_json *status = hf_json_get(policy, "status");
	const struct hf_json *breaker = hf_json_get(status, "breaker");
	int64_t more = hf_json_i64(hf_json_get(status, "moreNodes"), 0);
	bool open = hf_streq(str_of(breaker, "state"), "Open");

	if (more > 0 && is_selected(a, policy))
		add_reason(
			a, "", "policy",
			"%s (%s): the policy's status has no room for %lld of its nodes; this node may be one "
			"of them%s%s",
			name, hf_str_or(hf_json_path_str(status, "mode", NULL), "observe"),
			(long long)more, open ? "; its breaker is open: " : "",
			open ? str_of(breaker, "message") : "");
}

static void add_policy_reasons(struct account *a, struct hf_doc *doc)
{
	const struct hf_json *policy = hf_doc_json(doc);
	const struct hf_json *list = hf_json_path(policy, "status", "nodes", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *node = hf_json_item(list, i);

		if (!hf_streq(str_of(node, "name"), a->name))
			continue;
		add_reason(a, "", "policy", "%s (%s): %s%s%s%s%s", hf_doc_name(doc),
			   hf_str_or(hf_json_path_str(policy, "status", "mode", NULL), "observe"),
			   str_of(node, "answer"), *str_of(node, "next") != '\0' ? " " : "",
			   str_of(node, "next"), *str_of(node, "why") != '\0' ? ": " : "",
			   str_of(node, "why"));
		return;
	}
	add_unlisted_node_reason(a, hf_doc_name(doc), policy);
}

static void add_policies_reasons(struct account *a)
{
	const struct hf_request request = {.verb = HF_VERB_LIST, .resource = &hf_healthpolicies};
	HF_AUTO_CLI_REPLY reply = {.object = NULL};

	if (hf_cli_request(a->cli, &request, &reply, NULL) != 0)
		return;
	for (size_t i = 0; i < reply.n_items; i++)
		add_policy_reasons(a, reply.items[i]);
}

/* True if new pods of the job avoid this node, by the rule of core/policy/avoided_nodes.c.
 * devices: the job also avoids nodes where a device failed, until an act has mended them. */
static bool is_avoided(const struct account *a, const struct hf_json *record, bool devices)
{
	hf_time at = hf_facts_time(str_of(record, "detectedAt"));
	const char *cause = str_of(record, "cause");

	devices = devices && (a->mended_at == HF_TIME_NONE || a->mended_at <= at);
	return hf_streq(str_of(record, "node"), a->name) && at != HF_TIME_NONE &&
	       a->now - at < AVOIDED &&
	       (hf_streq(str_of(record, "reason"), "NodeLost") ||
		(devices && hf_streq(cause, "device")) || hf_streq(cause, "admission"));
}

static void add_job_reasons(struct account *a, struct hf_doc *job)
{
	const struct hf_json *recovery = hf_json_path(hf_doc_json(job), "status", "recovery", NULL);
	const struct hf_json *history = hf_json_get(recovery, "history");
	const struct hf_json *found = hf_json_get(recovery, "last");
	const struct hf_json *over =
		hf_json_path(hf_doc_json(job), "status", "completionTime", NULL);
	bool devices = hf_json_true(hf_json_path(hf_doc_json(job), "spec", "runPolicy", "recovery",
						 "device", "avoid", NULL),
				    true);

	if (over != NULL)
		return;
	for (size_t i = 0; i < hf_json_len(history) && !is_avoided(a, found, devices); i++)
		found = hf_json_item(history, i);
	if (is_avoided(a, found, devices))
		add_reason(a, str_of(found, "detectedAt"), "avoided",
			   "for 24 hours by the pods of %s/%s: %s failed here, class %s%s%s",
			   hf_doc_namespace(job), hf_doc_name(job), str_of(found, "replica"),
			   str_of(found, "cause"), *str_of(found, "reason") != '\0' ? ", " : "",
			   str_of(found, "reason"));
}

static void add_jobs_reasons(struct account *a)
{
	for (size_t i = 0; hf_frameworks[i] != NULL; i++) {
		const struct hf_request request = {
			.verb = HF_VERB_LIST, .resource = hf_cli_resource_of(hf_frameworks[i])};
		HF_AUTO_CLI_REPLY reply = {.object = NULL};

		if (hf_cli_request(a->cli, &request, &reply, NULL) != 0)
			continue;
		for (size_t k = 0; k < reply.n_items; k++)
			add_job_reasons(a, reply.items[k]);
	}
}

/* ---- printing all that is known of the node ----------------------------------------------------- */

int hf_cli_why_node(struct hf_cli *cli, const char *name, struct hf_json **ret_account,
		    struct hf_error *err)
{
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_nodes, .name = name};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct account a = {.cli = cli, .arena = arena, .name = name, .mended_at = HF_TIME_NONE};
	HF_AUTOFREE char *summary = NULL;
	struct hf_json *object;
	/* numbers of reasons; an act or a rollout alone keeps no pod off the node */
	size_t others, acts;
	int rc = hf_cli_request(cli, &request, &reply, err);

	if (rc != 0)
		return rc;
	object = hf_json_object();
	a.reasons = hf_json_ensure_array(object, "reasons");
	a.node = hf_doc_json(reply.object);
	a.now = hf_loop_wall(cli->loop);
	read_health(&a);
	add_ready_reasons(&a);
	add_marks_reasons(&a);
	add_problems_reasons(&a);
	add_devices_reasons(&a);
	add_policies_reasons(&a);
	others = hf_json_len(a.reasons);
	hf_cli_mend_reasons(cli, name, add_mend_reason, &a);
	add_maintenance_reasons(&a);
	add_change_reasons(&a);
	hf_cli_rollout_reasons(cli, name, add_rollout_reason, &a);
	acts = hf_json_len(a.reasons) - others;
	add_jobs_reasons(&a);
	summary = hf_xasprintf("%s%s%s%s", ready_text(&a),
			       a.ours      ? ", quarantined by Holdfast"
			       : a.devices ? confined_text(&a)
					   : "",
			       a.paused ? ", paused" : "",
			       hf_json_len(a.reasons) == acts ? ", and nothing keeps pods off it"
							      : "");
	hf_json_set_str(object, "summary", summary);
	*ret_account = object;
	return 0;
}
