/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "rollout/rollout_internal.h"

#include "api/lifetime.h"
#include "base/str.h"
#include "store/resource.h"

#include <stdio.h>
#include <string.h>

/*
 * The status of a DeviceRollout: its entries and conditions, the events that tell of a change, and the metrics.
 * Input: a status. Output: the changed status, one request, events. Invariant: the list of entries keeps each node in
 * work, each failed and each skipped node, but in a rollback not the nodes that were skipped before it.
 */

struct hf_rollout_node *hf_ro_find_entry(const struct hf_rollout_status *status, const char *name)
{
	for (size_t i = 0; i < status->nodes.len; i++)
		if (hf_streq(status->nodes.items[i].name, name))
			return &status->nodes.items[i];
	return NULL;
}

static struct hf_rollout_condition *find_condition(struct hf_rollout_status *status,
						   const char *type)
{
	for (size_t i = 0; i < status->conditions.len; i++)
		if (hf_streq(status->conditions.items[i].type, type))
			return &status->conditions.items[i];
	return NULL;
}

bool hf_ro_is_halted_without_evidence(struct hf_rollout_status *status)
{
	const struct hf_rollout_condition *c = find_condition(status, "Halted");

	return c != NULL && (hf_streq(c->reason, "Invalid") || hf_streq(c->reason, "Superseded"));
}

bool hf_ro_is_on_way_back(const struct ro_pass *pass)
{
	struct hf_rollout_status status = pass->r.status;
	const struct hf_rollout_condition *c = find_condition(&status, "Halted");

	if (pass->state != HF_ROLLOUT_HALTED || c == NULL)
		return pass->state == HF_ROLLOUT_ROLLING_BACK;
	return hf_streq(c->reason, "RollbackSuperseded") || hf_streq(c->reason, "NoRevision") ||
	       hf_streq(c->reason, "RollbackFailed");
}

bool hf_ro_set_condition(const struct ro *ro, struct hf_rollout_status *status, const char *type,
			 bool is_true, const char *reason, const char *message)
{
	struct hf_rollout_condition *c = find_condition(status, type);
	const char *word = is_true ? "True" : "False";
	bool same;

	if (c == NULL) {
		struct hf_rollout_condition *list = HF_ARENA_ARRAY(
			ro->pass.arena, struct hf_rollout_condition, status->conditions.len + 1);

		for (size_t i = 0; i < status->conditions.len; i++)
			list[i] = status->conditions.items[i];
		c = &list[status->conditions.len++];
		status->conditions.items = list;
		*c = (struct hf_rollout_condition){.type = type, .since = hf_ro_now(ro)};
	}
	same = hf_streq(c->status, word) && hf_streq(c->reason, reason);
	if (!hf_streq(c->status, word))
		c->since = hf_ro_now(ro);
	c->status = word;
	c->reason = reason;
	c->message = message;
	return !same;
}

/* The oldest finished entry that nothing needs: the node is done, or taken back. */
static size_t find_oldest(const struct hf_rollout_status *status, size_t *ret_count)
{
	size_t oldest = status->nodes.len;
	enum hf_rollout_phase phase;

	*ret_count = 0;
	for (size_t i = 0; i < status->nodes.len; i++) {
		const struct hf_rollout_node *entry = &status->nodes.items[i];

		if (!hf_rollout_phase_of(entry->phase, &phase) ||
		    (phase != HF_ROLLOUT_DONE && phase != HF_ROLLOUT_ROLLED_BACK))
			continue;
		++*ret_count;
		if (oldest == status->nodes.len || entry->since < status->nodes.items[oldest].since)
			oldest = i;
	}
	return oldest;
}

static void drop_entry(struct hf_rollout_status *status, size_t at)
{
	for (size_t i = at; i + 1 < status->nodes.len; i++)
		status->nodes.items[i] = status->nodes.items[i + 1];
	status->nodes.len--;
}

/* A node that was skipped before the rollback. */
static size_t find_needless(const struct hf_rollout_status *status)
{
	size_t i = 0;

	while (i < status->nodes.len &&
	       (status->nodes.items[i].was_well ||
		!hf_streq(status->nodes.items[i].phase, hf_rollout_phase_name(HF_ROLLOUT_SKIPPED))))
		i++;
	return i;
}

void hf_ro_trim_entries(struct hf_rollout_status *status)
{
	bool back = hf_streq(status->phase, hf_rollout_state_name(HF_ROLLOUT_ROLLING_BACK));
	size_t count, at = find_oldest(status, &count);

	while (count > HF_ROLLOUT_NEWEST_MAX && at < status->nodes.len) {
		drop_entry(status, at);
		at = find_oldest(status, &count);
	}
	while (back && status->nodes.len > HF_ROLLOUT_NODES_MAX &&
	       (at = find_needless(status)) < status->nodes.len)
		drop_entry(status, at);
}

bool hf_ro_write_status(struct ro *ro, const struct hf_rollout_status *status,
			struct hf_request *ret_request, struct hf_doc **ret_body)
{
	*ret_body = hf_doc_from_json(hf_rollout_status_patch(ro->pass.r.resource_version, status));
	*ret_request = (struct hf_request){.verb = HF_VERB_PATCH,
					   .resource = &hf_devicerollouts,
					   .name = ro->pass.name,
					   .subresource = "status",
					   .patch_type = HF_PATCH_MERGE,
					   .body = *ret_body};
	return true;
}

bool hf_ro_write_finalizer(struct ro *ro, bool wanted, struct hf_request *ret_request,
			   struct hf_doc **ret_body)
{
	*ret_body = hf_finalizer_patch(ro->pass.docs[RO_READ_OBJECT], HF_ROLLOUT_FINALIZER, wanted);
	*ret_request = (struct hf_request){.verb = HF_VERB_PATCH,
					   .resource = &hf_devicerollouts,
					   .name = ro->pass.name,
					   .patch_type = HF_PATCH_MERGE,
					   .body = *ret_body};
	return true;
}

/* ---- events ---------------------------------------------------------------------------------------- */

void hf_ro_tell(struct ro *ro, const char *node, bool warning, const char *reason,
		const char *message)
{
	bool whole = *node == '\0';
	const struct hf_event_note note = {.api_version = whole ? HF_ROLLOUT_API_VERSION : "v1",
					   .kind = whole ? HF_ROLLOUT_KIND : "Node",
					   .name = whole ? ro->pass.name : node,
					   .uid = whole ? ro->pass.r.uid : node,
					   .type = warning ? "Warning" : "Normal",
					   .reason = reason,
					   .message = message};

	hf_recorder_record(ro->env.recorder, &note, hf_ro_now(ro));
}

struct telling {
	const char *word, *reason;
	bool warning;
};

static const struct telling *find_telling(const struct telling *list, size_t len, const char *word)
{
	for (size_t i = 0; i < len; i++)
		if (hf_streq(list[i].word, word))
			return &list[i];
	return NULL;
}

void hf_ro_tell_change(struct ro *ro, const struct ro_object *object, const char *done)
{
	static const struct telling states[] = {
		{"Rolling", "RolloutWave", false},       {"Halted", "RolloutHalted", true},
		{"RollingBack", "RollbackBegins", true}, {"Succeeded", "RolloutSucceeded", false},
		{"Failed", "RolloutFailed", true},       {"Cancelled", "RolloutCancelled", false}};
	static const struct telling phases[] = {{"Changing", "RolloutChanges", false},
						{"Done", "RolloutProved", false},
						{"RolledBack", "RolloutTakenBack", false},
						{"Failed", "RolloutNodeFailed", true},
						{"Skipped", "RolloutSkips", true}};
	bool whole = *ro->pass.node == '\0';
	const struct telling *t = whole ? find_telling(states, HF_ARRAY_LEN(states), done)
					: find_telling(phases, HF_ARRAY_LEN(phases), done);
	const struct hf_rollout_status *status = &object->r.status;
	const struct hf_rollout_node *entry =
		whole ? NULL : hf_ro_find_entry(status, ro->pass.node);
	const char *text = status->message;
	char message[HF_ROLLOUT_MESSAGE_MAX + 320];

	if (whole && ro->metrics.done != NULL)
		hf_family_add(ro->metrics.done, 1, done, NULL);
	if (t == NULL)
		return;
	if (entry != NULL)
		text = entry->message;
	snprintf(message, sizeof(message), "DeviceRollout %s: %s", ro->pass.name,
		 hf_str_or(text, done));
	hf_ro_tell(ro, ro->pass.node, t->warning, t->reason, message);
}

/* ---- metrics --------------------------------------------------------------------------------------- */

void hf_ro_init_metrics(struct ro *ro)
{
	const struct hf_metric_options nodes = {
		.name = "holdfast_rollout_nodes",
		.help = "Nodes of unfinished DeviceRollouts, by state.",
		.type = HF_METRIC_GAUGE,
		.labels = {"rollout", "state"}};
	const struct hf_metric_options done = {.name = "holdfast_rollout_phase_total",
					       .help = "Phases that DeviceRollouts have come to.",
					       .type = HF_METRIC_COUNTER,
					       .labels = {"phase"}};

	if (ro->env.metrics == NULL)
		return;
	ro->metrics.nodes = hf_metrics_family(ro->env.metrics, &nodes);
	ro->metrics.done = hf_metrics_family(ro->env.metrics, &done);
}

void hf_ro_update_metrics(struct ro *ro)
{
	const struct hf_cache_entry *entry;

	hf_family_clear(ro->metrics.nodes);
	for (size_t it = 0; (entry = hf_cache_next(ro->cache, &it)) != NULL;) {
		const struct ro_object *object = entry->view;
		const struct hf_rollout_status *s = &object->r.status;

		if (!object->readable || hf_rollout_state_is_end(object->state))
			continue;
		hf_family_set(ro->metrics.nodes, s->counts.selected, entry->name, "selected", NULL);
		hf_family_set(ro->metrics.nodes, s->counts.changed, entry->name, "changed", NULL);
		hf_family_set(ro->metrics.nodes, s->counts.failed, entry->name, "failed", NULL);
		hf_family_set(ro->metrics.nodes, s->counts.skipped, entry->name, "skipped", NULL);
	}
}
