/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/verbs_internal.h"

#include "api/device_health.h"
#include "api/health_policy.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/disks.h"
#include "cli/request.h"
#include "framework/framework.h"
#include "store/resource.h"
#include "store/selector.h"

#include <inttypes.h>
#include <stdarg.h>

/*
 * why node/NAME: what keeps pods off a node, and who says so.  Read from the Node, its DeviceHealth,
 * the HealthPolicies and the records of jobs; what may not be read is left out.
 */

#define ARENA_BYTES_MAX ((size_t)16 << 20)
#define AGENT_SILENT (15 * HF_MINUTE) /* as the operator counts */
#define AVOIDED (24 * HF_HOUR)
#define TEXT_MAX ((size_t)4096)

struct account {
	struct hf_cli *cli;
	struct hf_arena *arena;
	const struct hf_json *node;
	const char *name;
	hf_time now;
	struct hf_json *reasons;
	bool ours, paused; /* quarantined by Holdfast; nothing is done to it */
};

HF_PRINTF(4, 5)
static void say(struct account *a, const char *time, const char *topic, const char *fmt, ...)
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

static hf_time time_of(const char *text)
{
	hf_time time;

	return hf_time_parse(text, &time, NULL) == 0 ? time : HF_TIME_NONE;
}

/* ---- the Node ----------------------------------------------------------------------------------- */

static const struct hf_json *condition_of(const struct account *a, const char *type)
{
	const struct hf_json *list = hf_json_path(a->node, "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(str_of(hf_json_item(list, i), "type"), type))
			return hf_json_item(list, i);
	return NULL;
}

static const char *standing(const struct account *a)
{
	const char *ready = str_of(condition_of(a, "Ready"), "status");

	return hf_streq(ready, "True")      ? "Ready"
	       : hf_streq(ready, "Unknown") ? "Unknown: nothing is heard of its kubelet"
					    : "not ready";
}

static void tell_ready(struct account *a)
{
	const struct hf_json *ready = condition_of(a, "Ready");
	const struct hf_json *disk = condition_of(a, "DiskPressure");

	if (ready != NULL && !hf_streq(str_of(ready, "status"), "True"))
		say(a, str_of(ready, "lastTransitionTime"), "ready", "Ready is %s: %s",
		    str_of(ready, "status"), str_of(ready, "message"));
	if (hf_streq(str_of(disk, "status"), "True"))
		say(a, str_of(disk, "lastTransitionTime"), "disk", "%s",
		    hf_str_or(hf_json_path_str(disk, "message", NULL), "its disk is nearly full"));
}

static void tell_marks(struct account *a)
{
	const struct hf_json *spec = hf_json_get(a->node, "spec");
	const struct hf_json *taints = hf_json_get(spec, "taints");
	const char *text = hf_json_path_str(a->node, "metadata", "annotations",
					    HF_QUARANTINE_ANNOTATION, NULL);
	struct hf_quarantine_mark mark;
	bool marked = text != NULL && hf_quarantine_mark_read(text, a->arena, &mark);

	for (size_t i = 0; i < hf_json_len(taints); i++) {
		const struct hf_json *taint = hf_json_item(taints, i);
		bool ours = hf_streq(str_of(taint, "key"), HF_QUARANTINE_TAINT);

		a->ours |= ours && marked && hf_streq(str_of(taint, "effect"), "NoSchedule");
		say(a, str_of(taint, "timeAdded"), "taint", "%s%s%s:%s%s%s", str_of(taint, "key"),
		    *str_of(taint, "value") != '\0' ? "=" : "", str_of(taint, "value"),
		    str_of(taint, "effect"),
		    ours && marked ? ", Holdfast's quarantine under policy "
		    : ours         ? ", of nobody that is noted: it is not taken off"
				   : "",
		    ours && marked ? mark.policy : "");
	}
	if (hf_json_true(hf_json_get(spec, "unschedulable"), false))
		say(a, "", "cordon", "it is cordoned, which Holdfast never does");
	a->paused = hf_paused(
		hf_json_path_str(a->node, "metadata", "annotations", HF_PAUSED_ANNOTATION, NULL));
	if (a->paused)
		say(a, "", "paused", "annotation %s: nothing is done to it", HF_PAUSED_ANNOTATION);
}

static void tell_problems(struct account *a)
{
	static const char *const types[] = {"AcceleratorUnhealthy", "AcceleratorDegraded",
					    "AcceleratorDriverUnresponsive", "FabricUnhealthy"};

	for (size_t i = 0; i < HF_ARRAY_LEN(types); i++) {
		const struct hf_json *condition = condition_of(a, types[i]);

		if (hf_streq(str_of(condition, "status"), "True"))
			say(a, str_of(condition, "lastTransitionTime"), "told", "%s: %s", types[i],
			    str_of(condition, "message"));
	}
}

/* ---- its agent ---------------------------------------------------------------------------------- */

static const char *when(hf_time time, char text[HF_TIME_TEXT_MAX])
{
	text[0] = '\0';
	if (time != HF_TIME_NONE)
		hf_time_format_micro(time, text);
	return text;
}

static void tell_device(struct account *a, const struct hf_device_report *device)
{
	const char *id = hf_str_is_empty(device->id) ? "the node as a whole" : device->id;
	bool told = false;
	char since[HF_TIME_TEXT_MAX], last[HF_TIME_TEXT_MAX];

	if (hf_streq(device->state, "Healthy"))
		return;
	say(a, when(device->since, since), "device", "%s is %s%s%s%s%s", id,
	    hf_str_or(device->state, "Unknown"), hf_str_is_empty(device->cls) ? "" : ", class ",
	    hf_str_or(device->cls, ""), hf_str_is_empty(device->action) ? "" : ", needs ",
	    hf_str_or(device->action, ""));
	for (size_t i = 0; i < device->faults.len; i++) {
		const struct hf_device_fault *fault = &device->faults.items[i];

		/* What the node's own fault covers leaves its device Unknown, and is no less true. */
		if (!fault->acts && !hf_streq(device->state, "Unknown"))
			continue;
		say(a, when(fault->last, last), "evidence",
		    "%s %" PRId64 ", %" PRId64 " times%s%s%s", hf_str_or(fault->detector, ""),
		    fault->code, fault->count,
		    fault->acts ? "" : " (counts as the node's, or follows from another)",
		    fault->line != NULL ? ": " : "", hf_str_or(fault->line, ""));
		told = true;
	}
	if (!told && hf_streq(device->state, "Unknown"))
		say(a, "", "evidence", "%s has not been heard of yet", id);
}

static void tell_devices(struct account *a)
{
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_devicehealths, .name = a->name};
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_device_health health;
	char text[HF_TIME_TEXT_MAX];

	if (hf_cli_request(a->cli, &request, &reply, NULL) != 0) {
		say(a, "", "agent",
		    "no agent tells of its devices: there is no DeviceHealth to read");
		return;
	}
	hf_device_health_read(reply.object, a->arena, &health);
	if (health.observed_at != HF_TIME_NONE && a->now - health.observed_at > AGENT_SILENT)
		say(a, when(health.observed_at, text), "agent",
		    "its agent was last heard of then: what it said is of the past");
	for (size_t i = 0; i < health.devices.len; i++)
		tell_device(a, &health.devices.items[i]);
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

/* Where it has more nodes than its status tells of. */
static void tell_beyond(struct account *a, const char *name, const struct hf_json *policy)
{
	const struct hf_json *status = hf_json_get(policy, "status");
	const struct hf_json *breaker = hf_json_get(status, "breaker");
	int64_t more = hf_json_i64(hf_json_get(status, "moreNodes"), 0);
	bool open = hf_streq(str_of(breaker, "state"), "Open");

	if (more > 0 && is_selected(a, policy))
		say(a, "", "policy",
		    "%s (%s): what its status says of %lld nodes has no room there, this one may be "
		    "among them%s%s",
		    name, hf_str_or(hf_json_path_str(status, "mode", NULL), "observe"),
		    (long long)more, open ? "; its breaker is open: " : "",
		    open ? str_of(breaker, "message") : "");
}

static void tell_policy(struct account *a, struct hf_doc *doc)
{
	const struct hf_json *policy = hf_doc_json(doc);
	const struct hf_json *list = hf_json_path(policy, "status", "nodes", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *node = hf_json_item(list, i);

		if (!hf_streq(str_of(node, "name"), a->name))
			continue;
		say(a, "", "policy", "%s (%s): %s%s%s%s%s", hf_doc_name(doc),
		    hf_str_or(hf_json_path_str(policy, "status", "mode", NULL), "observe"),
		    str_of(node, "answer"), *str_of(node, "next") != '\0' ? " " : "",
		    str_of(node, "next"), *str_of(node, "why") != '\0' ? ": " : "",
		    str_of(node, "why"));
		return;
	}
	tell_beyond(a, hf_doc_name(doc), policy);
}

static void tell_policies(struct account *a)
{
	const struct hf_request request = {.verb = HF_VERB_LIST, .resource = &hf_healthpolicies};
	HF_AUTO_CLI_REPLY reply = {.object = NULL};

	if (hf_cli_request(a->cli, &request, &reply, NULL) != 0)
		return;
	for (size_t i = 0; i < reply.n_items; i++)
		tell_policy(a, reply.items[i]);
}

/* As core/avoid.c has it; devices: those whose devices failed, too. */
static bool is_avoided(const struct account *a, const struct hf_json *record, bool devices)
{
	hf_time at = time_of(str_of(record, "detectedAt"));
	const char *cause = str_of(record, "cause");

	return hf_streq(str_of(record, "node"), a->name) && at != HF_TIME_NONE &&
	       a->now - at < AVOIDED &&
	       (hf_streq(str_of(record, "reason"), "NodeLost") ||
		(devices && hf_streq(cause, "device")) || hf_streq(cause, "admission"));
}

static void tell_job(struct account *a, struct hf_doc *job)
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
		say(a, str_of(found, "detectedAt"), "avoided",
		    "for a day by pods of %s/%s: %s, class %s%s%s", hf_doc_namespace(job),
		    hf_doc_name(job), str_of(found, "replica"), str_of(found, "cause"),
		    *str_of(found, "reason") != '\0' ? ", " : "", str_of(found, "reason"));
}

static void tell_jobs(struct account *a)
{
	for (size_t i = 0; hf_frameworks[i] != NULL; i++) {
		const struct hf_request request = {
			.verb = HF_VERB_LIST, .resource = hf_cli_resource_of(hf_frameworks[i])};
		HF_AUTO_CLI_REPLY reply = {.object = NULL};

		if (hf_cli_request(a->cli, &request, &reply, NULL) != 0)
			continue;
		for (size_t k = 0; k < reply.n_items; k++)
			tell_job(a, reply.items[k]);
	}
}

/* ---- all of it ---------------------------------------------------------------------------------- */

int hf_cli_why_node(struct hf_cli *cli, const char *name, struct hf_json **ret_account,
		    struct hf_error *err)
{
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_nodes, .name = name};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct account a = {.cli = cli, .arena = arena, .name = name};
	HF_AUTOFREE char *summary = NULL;
	struct hf_json *object;
	int rc = hf_cli_request(cli, &request, &reply, err);

	if (rc != 0)
		return rc;
	object = hf_json_object();
	a.reasons = hf_json_ensure_array(object, "reasons");
	a.node = hf_doc_json(reply.object);
	a.now = hf_loop_wall(cli->loop);
	tell_ready(&a);
	tell_marks(&a);
	tell_problems(&a);
	tell_devices(&a);
	tell_policies(&a);
	tell_jobs(&a);
	summary =
		hf_xasprintf("%s%s%s%s", standing(&a), a.ours ? ", quarantined by Holdfast" : "",
			     a.paused ? ", paused" : "",
			     hf_json_len(a.reasons) == 0 ? ", and nothing speaks against it" : "");
	hf_json_set_str(object, "summary", summary);
	*ret_account = object;
	return 0;
}
