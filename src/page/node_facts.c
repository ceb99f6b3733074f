/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Reads Nodes, DeviceHealth objects and Remediations, and tells the state of a node in one word and one sentence. */
#include "page/node_facts.h"

#include "api/condition.h"
#include "api/device_health.h"
#include "api/health_policy.h"
#include "base/mem.h"
#include "base/str.h"
#include "health/types.h"
#include "page/json_out.h"

#include <stdlib.h>
#include <string.h>

/* Memory for reading one object; the store limits the size of an object. */
#define READ_BYTES_MAX ((size_t)32 << 20)
#define DEVICES_BYTES_MAX ((size_t)1 << 20)
#define SENTENCE_MAX ((size_t)2048)

static char *copy_text(const char *text)
{
	return hf_str_is_empty(text) ? NULL : hf_xstrdup(text);
}

/* ---- the Node --------------------------------------------------------------------------------------- */

struct hf_page_node *hf_page_node_read(struct hf_doc *doc)
{
	struct hf_page_node *node = hf_xcalloc(1, sizeof(*node));
	HF_AUTO_ARENA arena = hf_arena_create(READ_BYTES_MAX);
	HF_AUTO_JSON tree = hf_page_tree(doc);
	const struct hf_json *ready = hf_find_condition(tree, "Ready");
	const char *status = hf_str_or(hf_json_path_str(ready, "status", NULL), "Unknown");
	struct hf_quarantine_mark mark;
	struct hf_node_marks marks;

	hf_node_marks_read(doc, arena, &marks);
	node->ready = hf_streq(status, "True");
	node->unknown = hf_streq(status, "Unknown");
	node->cordoned = marks.unschedulable;
	node->paused = marks.paused;
	node->since = hf_page_time_of(ready, "lastTransitionTime");
	if (marks.quarantine != NULL && hf_node_has_quarantine_taint(&marks) &&
	    hf_quarantine_mark_read(marks.quarantine, arena, &mark)) {
		node->quarantined = true;
		node->policy = copy_text(mark.policy);
		node->cls = copy_text(mark.cls);
		node->since = mark.at;
	}
	return node;
}

void hf_page_node_free(void *arg)
{
	struct hf_page_node *node = arg;

	free(node->policy);
	free(node->cls);
	free(node);
}

/* ---- the DeviceHealth ---------------------------------------------------------------------------------- */

static void add_evidence(struct hf_json *list, const struct hf_device_fault *fault)
{
	struct hf_json *item = hf_json_object();

	hf_page_set_time(item, "at", fault->last);
	hf_page_set_text(item, "source", fault->detector);
	hf_page_set_text(item, "text", fault->line);
	hf_page_set_count(item, "code", fault->code);
	hf_page_set_text(item, "class", fault->cls);
	hf_page_set_count(item, "count", fault->count);
	hf_json_set_bool(item, "active", fault->acts);
	hf_json_append(list, item);
}

static struct hf_json *device_json(const struct hf_device_report *device, size_t index)
{
	struct hf_json *item = hf_json_object();
	struct hf_json *list;
	bool has_class = !hf_str_is_empty(device->cls) && !hf_streq(device->cls, "none");

	hf_page_set_count(item, "index", (int64_t)index);
	hf_page_set_text(item, "uuid", device->uuid);
	hf_page_set_text(item, "pci", hf_str_is_empty(device->id) ? NULL : device->id);
	hf_page_set_text(item, "model", NULL); /* agents do not report it */
	hf_page_set_text(item, "kind", device->kind);
	hf_page_set_text(item, "state", device->state);
	hf_page_set_text(item, "class", has_class ? device->cls : NULL);
	hf_page_set_text(item, "action", device->action);
	hf_page_set_time(item, "since", device->since);
	list = hf_json_ensure_array(item, "evidence");
	for (size_t i = 0; i < device->faults.len; i++)
		add_evidence(list, &device->faults.items[i]);
	list = hf_json_ensure_array(item, "pods");
	for (size_t i = 0; i < device->holders.len; i++) {
		const struct hf_device_holder *holder = &device->holders.items[i];
		struct hf_json *pod;

		if (holder->until != HF_TIME_NONE)
			continue;
		pod = hf_json_object();
		hf_page_set_text(pod, "namespace", holder->ns);
		hf_page_set_text(pod, "name", holder->pod);
		hf_json_append(list, pod);
	}
	return item;
}

static void take_devices(struct hf_page_health *view, const struct hf_device_health *health)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(DEVICES_BYTES_MAX);
	HF_AUTO_JSON list = hf_json_array();

	for (size_t i = 0; i < health->devices.len; i++) {
		const struct hf_device_report *device = &health->devices.items[i];

		hf_json_append(list, device_json(device, i));
		if (device->since != HF_TIME_NONE && device->since > view->since)
			view->since = device->since;
		if (hf_str_is_empty(device->id))
			continue; /* the node itself */
		view->total++;
		view->well += hf_streq(device->state, hf_health_state_name(HF_HEALTH_HEALTHY));
	}
	hf_json_write(list, HF_JSON_COMPACT, &sb);
	view->devices = sb.full ? hf_xstrdup("[]") : hf_strbuf_detach(&sb);
}

struct hf_page_health *hf_page_health_read(struct hf_doc *doc, struct hf_page_ranks *ranks)
{
	struct hf_page_health *view = hf_xcalloc(1, sizeof(*view));
	HF_AUTO_ARENA arena = hf_arena_create(READ_BYTES_MAX);
	struct hf_device_health health;

	hf_device_health_read(doc, arena, &health);
	view->since = HF_TIME_NONE;
	view->state = hf_xstrdup(hf_str_or(health.state, "Unknown"));
	view->cls = hf_streq(health.cls, "none") ? NULL : copy_text(health.cls);
	view->action = hf_streq(health.action, "none") ? NULL : copy_text(health.action);
	view->observed_at = health.observed_at;
	take_devices(view, &health);
	for (size_t i = 0; i < health.ranks.len; i++) {
		const struct hf_rank_report *rank = &health.ranks.items[i];
		const struct hf_page_rank_report report = {.uid = rank->uid,
							   .state = rank->state,
							   .step = rank->step,
							   .total = rank->total,
							   .own_us = rank->own_us,
							   .at = rank->advanced_at};

		hf_page_ranks_report(ranks, &report);
	}
	return view;
}

void hf_page_health_free(void *arg)
{
	struct hf_page_health *health = arg;

	free(health->state);
	free(health->cls);
	free(health->action);
	free(health->devices);
	free(health);
}

/* ---- the Remediation ------------------------------------------------------------------------------------ */

struct hf_page_mend *hf_page_mend_read(struct hf_doc *doc)
{
	struct hf_page_mend *mend = hf_xcalloc(1, sizeof(*mend));
	HF_AUTO_JSON tree = hf_page_tree(doc);

	mend->node = hf_xstrdup(hf_str_or(hf_json_path_str(tree, "spec", "node", NULL), ""));
	mend->rung = hf_xstrdup(hf_str_or(hf_json_path_str(tree, "spec", "rung", NULL), ""));
	mend->phase =
		hf_xstrdup(hf_str_or(hf_json_path_str(tree, "status", "phase", NULL), "Pending"));
	mend->message = copy_text(hf_json_path_str(tree, "status", "message", NULL));
	mend->at = hf_page_time_of(hf_json_get(tree, "metadata"), "creationTimestamp");
	return mend;
}

void hf_page_mend_free(void *arg)
{
	struct hf_page_mend *mend = arg;

	free(mend->node);
	free(mend->rung);
	free(mend->phase);
	free(mend->message);
	free(mend);
}

/* ---- the row -------------------------------------------------------------------------------------------- */

const char *hf_page_node_state(const struct hf_page_node_input *input)
{
	const struct hf_page_node *node = input->node;

	if (node != NULL && node->quarantined)
		return "Quarantined";
	if (node != NULL && !node->ready)
		return node->unknown ? "Unknown" : "NotReady";
	if (input->health != NULL && !hf_streq(input->health->state, "Healthy") &&
	    !hf_streq(input->health->state, "Unknown"))
		return input->health->state;
	if (node != NULL && node->cordoned)
		return "Cordoned";
	if (node == NULL && input->health == NULL)
		return "Unknown";
	return input->health != NULL ? input->health->state : "Ready";
}

static const char *agent_word(const struct hf_page_node_input *input)
{
	const struct hf_page_health *health = input->health;

	if (health == NULL)
		return "none";
	return health->observed_at != HF_TIME_NONE &&
			       input->now - health->observed_at > HF_PAGE_AGENT_SILENT
		       ? "silent"
		       : "ok";
}

static const char *answer_part(const struct hf_page_node_input *input, const char *key)
{
	return hf_str_or(hf_json_path_str(input->answer, key, NULL), "");
}

static void write_marks(const struct hf_page_node *node, struct hf_strbuf *sb)
{
	const char *act = hf_quarantine_act(node->policy);

	hf_strbuf_addstr(sb, node->ready     ? "Ready"
			     : node->unknown ? "Unknown: its kubelet has stopped reporting"
					     : "not ready");
	if (node->quarantined && act != NULL)
		hf_strbuf_addf(sb, ", quarantined by Holdfast for Remediation %s", act);
	else if (node->quarantined)
		hf_strbuf_addf(sb, ", quarantined by Holdfast under policy %s, class %s",
			       hf_str_or(node->policy, "(unknown)"),
			       hf_str_or(node->cls, "unknown"));
	if (node->cordoned)
		hf_strbuf_addstr(sb, ", cordoned");
	if (node->paused)
		hf_strbuf_addstr(sb, ", paused: Holdfast does nothing to this node");
}

static void write_sentence(const struct hf_page_node_input *input, struct hf_strbuf *sb)
{
	const struct hf_page_health *health = input->health;

	if (input->node == NULL)
		hf_strbuf_addstr(sb, "no Node object");
	else
		write_marks(input->node, sb);
	if (health == NULL)
		hf_strbuf_addstr(sb, "; no agent reports its devices");
	else if (health->total > 0 && health->well < health->total)
		hf_strbuf_addf(sb, "; %d of %d devices are healthy%s%s%s%s", health->well,
			       health->total, health->cls == NULL ? "" : ", class ",
			       hf_str_or(health->cls, ""), health->action == NULL ? "" : ", needs ",
			       hf_str_or(health->action, ""));
	if (hf_streq(agent_word(input), "silent"))
		hf_strbuf_addstr(sb, "; its agent is silent, so the devices' states may be old");
	if (*answer_part(input, "why") != '\0')
		hf_strbuf_addf(sb, "; policy: %s %s: %s", answer_part(input, "answer"),
			       answer_part(input, "next"), answer_part(input, "why"));
}

struct hf_json *hf_page_node_json(const struct hf_page_node_input *input)
{
	const struct hf_page_health *health = input->health;
	HF_AUTO_STRBUF sentence = HF_STRBUF_INIT(SENTENCE_MAX);
	struct hf_json *object = hf_json_object();
	struct hf_json *devices;
	hf_time since = input->node != NULL ? input->node->since : HF_TIME_NONE;

	if ((input->node == NULL || !input->node->quarantined) && health != NULL &&
	    health->since > since)
		since = health->since;
	write_sentence(input, &sentence);
	hf_json_set_str(object, "name", input->name);
	hf_json_set_str(object, "state", hf_page_node_state(input));
	hf_page_set_text(object, "class", health == NULL ? NULL : health->cls);
	devices = hf_json_ensure_object(object, "devices");
	hf_page_set_count(devices, "well", health == NULL ? -1 : health->well);
	hf_page_set_count(devices, "total", health == NULL ? -1 : health->total);
	hf_page_set_time(object, "since", since);
	hf_json_set_str(object, "agent", agent_word(input));
	hf_page_set_time(object, "heard", health == NULL ? HF_TIME_NONE : health->observed_at);
	hf_page_set_text(object, "action", health == NULL ? NULL : health->action);
	hf_json_set_str(object, "sentence", sentence.data);
	return object;
}
