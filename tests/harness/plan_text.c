/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/plan_text.h"

#include "base/str.h"

/*
 * Writes a plan as YAML, which a person reads and golden files compare byte by byte. Absent
 * fields, counters of 0 and empty lists are left out.
 */

static const char *const metric_names[] = {
	[HF_METRIC_CREATED] = "created",
	[HF_METRIC_DELETED] = "deleted",
	[HF_METRIC_SUCCESSFUL] = "successful",
	[HF_METRIC_FAILED] = "failed",
	[HF_METRIC_RESTARTED] = "restarted",
	[HF_METRIC_RESTARTS] = "restarts",
	[HF_METRIC_STRAYS] = "strays",
	[HF_METRIC_FORCED_PROVEN] = "forced-proven",
	[HF_METRIC_FORCED_PRESUMED] = "forced-presumed",
};

/* ---- scalars ---------------------------------------------------------------------------------- */

/* Writes a text as a JSON string, which is also valid YAML, without its opening quote: the caller
 * has written that. */
static void quote_rest(struct hf_strbuf *sb, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			hf_strbuf_addch(sb, '\\');
		if (c == '\n')
			hf_strbuf_addstr(sb, "\\n");
		else if (c < 0x20)
			hf_strbuf_addf(sb, "\\u%04x", c);
		else
			hf_strbuf_addch(sb, *text);
	}
	hf_strbuf_addch(sb, '"');
}

static void quote(struct hf_strbuf *sb, const char *text)
{
	hf_strbuf_addch(sb, '"');
	quote_rest(sb, text);
}

static void text(struct hf_strbuf *sb, const char *key, const char *value)
{
	if (hf_str_is_empty(value))
		return;
	hf_strbuf_addf(sb, ", %s: ", key);
	quote(sb, value);
}

static void number(struct hf_strbuf *sb, const char *key, int64_t value)
{
	if (value != 0)
		hf_strbuf_addf(sb, ", %s: %lld", key, (long long)value);
}

static void opt_number(struct hf_strbuf *sb, const char *key, struct hf_opt_int value)
{
	if (value.set)
		hf_strbuf_addf(sb, ", %s: %lld", key, (long long)value.value);
}

/* Writes a time in whole seconds, or with microseconds if it has a fraction. */
static void instant(struct hf_strbuf *sb, const char *key, hf_time t)
{
	char formatted[HF_TIME_TEXT_MAX];

	if (t == HF_TIME_NONE)
		return;
	if (t == hf_time_floor_second(t))
		hf_time_format(t, formatted);
	else
		hf_time_format_micro(t, formatted);
	hf_strbuf_addf(sb, ", %s: %s", key, formatted);
}

/* Ends a map in braces. The writers above begin each member with ", ", so the first of these is
 * removed. */
static void flow_end(struct hf_strbuf *sb, size_t mark)
{
	if (sb->len >= mark + 2 && sb->data[mark] == ',') {
		for (size_t i = mark; i + 2 < sb->len; i++)
			sb->data[i] = sb->data[i + 2];
		hf_strbuf_truncate(sb, sb->len - 2);
	}
	hf_strbuf_addstr(sb, "}\n");
}

static size_t flow_begin(struct hf_strbuf *sb, const char *lead)
{
	hf_strbuf_addf(sb, "%s{", lead);
	return sb->len;
}

/* ---- status ------------------------------------------------------------------------------------- */

static void render_conditions(const struct hf_status *status, struct hf_strbuf *sb)
{
	hf_strbuf_addstr(sb, "conditions:\n");
	for (size_t i = 0; i < status->conditions_len; i++) {
		const struct hf_condition *condition = &status->conditions[i];
		size_t mark = flow_begin(sb, "- ");

		text(sb, "type", condition->type);
		text(sb, "status", condition->status);
		text(sb, "reason", condition->reason);
		text(sb, "message", condition->message);
		instant(sb, "since", condition->last_transition);
		if (condition->last_update != condition->last_transition)
			instant(sb, "updated", condition->last_update);
		flow_end(sb, mark);
	}
}

static void render_replicas(const struct hf_status *status, const struct hf_framework *framework,
			    struct hf_strbuf *sb)
{
	hf_strbuf_addstr(sb, "replicaStatuses:\n");
	for (int r = 0; r < framework->roles_len; r++) {
		const struct hf_replica_status *replica = &status->replicas[r];
		size_t mark;

		if (!replica->present)
			continue;
		hf_strbuf_addf(sb, "  %s: ", framework->roles[r].name);
		mark = flow_begin(sb, "");
		number(sb, "active", replica->active);
		number(sb, "succeeded", replica->succeeded);
		number(sb, "failed", replica->failed);
		text(sb, "selector", replica->selector);
		flow_end(sb, mark);
	}
}

static void render_record(const struct hf_record *record, struct hf_strbuf *sb)
{
	size_t mark = flow_begin(sb, "  - ");

	number(sb, "generation", record->generation);
	number(sb, "incident", record->incident);
	text(sb, "cause", hf_class_name(record->cause));
	text(sb, "reason", record->reason);
	text(sb, "message", record->message);
	text(sb, "scope", record->scope);
	text(sb, "replica", record->replica);
	text(sb, "pod", record->pod);
	text(sb, "node", record->node);
	text(sb, "device", record->device);
	opt_number(sb, "exitCode", record->exit_code);
	opt_number(sb, "signal", record->signal);
	text(sb, "rule", record->rule);
	instant(sb, "detectedAt", record->detected_at);
	instant(sb, "decidedAt", record->decided_at);
	instant(sb, "runningAt", record->running_at);
	if (record->in_place)
		hf_strbuf_addstr(sb, ", inPlace: true");
	instant(sb, "endedAt", record->ended_at);
	instant(sb, "downAt", record->down_at);
	instant(sb, "steppedAt", record->stepped_at);
	number(sb, "step", record->step);
	number(sb, "savedStep", record->saved_step);
	flow_end(sb, mark);
}

static void render_budgets(const char *key, const int64_t *values, int len, struct hf_strbuf *sb)
{
	bool any = false;
	size_t mark;

	for (int i = 0; i < len; i++)
		any = any || values[i] != 0;
	if (!any)
		return;
	hf_strbuf_addf(sb, "  %s: ", key);
	mark = flow_begin(sb, "");
	for (int i = 0; i < len; i++)
		number(sb, hf_streak_name(i), values[i]);
	flow_end(sb, mark);
}

static void render_roles(const struct hf_ledger *ledger, const struct hf_framework *framework,
			 struct hf_strbuf *sb)
{
	for (int r = 0; r < framework->roles_len; r++) {
		const struct hf_role_ledger *role = &ledger->roles[r];
		size_t mark;

		if (!role->attempts && !role->created && !role->succeeded && !role->seen &&
		    !role->trained && !role->covered && !role->hold && !role->in_place)
			continue;
		hf_strbuf_addf(sb, "  %s: ", framework->roles[r].name);
		mark = flow_begin(sb, "");
		text(sb, "attempts", role->attempts);
		text(sb, "created", role->created);
		text(sb, "succeeded", role->succeeded);
		text(sb, "seen", role->seen);
		text(sb, "initSeen", role->init_seen);
		text(sb, "trained", role->trained);
		text(sb, "covered", role->covered);
		text(sb, "hold", role->hold);
		text(sb, "inPlace", role->in_place);
		text(sb, "inPlaceSince", role->in_place_since);
		flow_end(sb, mark);
	}
}

static void render_ledger(const struct hf_ledger *ledger, const struct hf_framework *framework,
			  struct hf_strbuf *sb)
{
	size_t mark;

	if (!ledger->present)
		return;
	hf_strbuf_addstr(sb, "recovery:\n  ledger: ");
	mark = flow_begin(sb, "");
	hf_strbuf_addf(sb, ", generation: %lld", (long long)ledger->generation);
	text(sb, "phase", hf_phase_name(ledger->phase));
	instant(sb, "since", ledger->since);
	instant(sb, "notBefore", ledger->not_before);
	number(sb, "activeSeconds", ledger->active_seconds);
	number(sb, "downtimeSeconds", ledger->downtime_seconds);
	number(sb, "productiveSeconds", ledger->productive_seconds);
	text(sb, "restartHandled", ledger->restart_handled);
	number(sb, "inPlaceBase", ledger->in_place_base);
	number(sb, "inPlaceIncident", ledger->in_place_incident);
	instant(sb, "inPlaceAt", ledger->in_place_at);
	number(sb, "inPlaceWaitSeconds", ledger->in_place_wait_seconds);
	number(sb, "inPlaceGraceSeconds", ledger->in_place_grace_seconds);
	number(sb, "inPlaceSaveSeconds", ledger->in_place_save_seconds);
	number(sb, "inPlaceStreak", ledger->in_place_streak);
	instant(sb, "saveUntil", ledger->save_until);
	number(sb, "step", ledger->step);
	number(sb, "savedStep", ledger->saved_step);
	number(sb, "saveMillis", ledger->save_ms);
	instant(sb, "stepsAt", ledger->steps_at);
	number(sb, "bestStep", ledger->best_step);
	number(sb, "noProgressStreak", ledger->no_progress_streak);
	flow_end(sb, mark);
	if (ledger->incident.id > 0) {
		hf_strbuf_addstr(sb, "  incident: ");
		mark = flow_begin(sb, "");
		number(sb, "id", ledger->incident.id);
		instant(sb, "openedAt", ledger->incident.opened_at);
		text(sb, "cause", hf_class_name(ledger->incident.cause));
		text(sb, "charged", hf_budget_name(ledger->incident.charged));
		flow_end(sb, mark);
	}
	render_budgets("restarts", ledger->restarts, HF_BUDGETS, sb);
	render_budgets("streak", ledger->streak, HF_STREAKS, sb);
	render_roles(ledger, framework, sb);
	if (ledger->verdict.reason) {
		hf_strbuf_addstr(sb, "  verdict: ");
		mark = flow_begin(sb, "");
		text(sb, "reason", ledger->verdict.reason);
		text(sb, "message", ledger->verdict.message);
		instant(sb, "at", ledger->verdict.at);
		flow_end(sb, mark);
	}
	if (ledger->records_len > 0)
		hf_strbuf_addstr(sb, "  records:\n");
	for (size_t i = 0; i < ledger->records_len; i++)
		render_record(&ledger->records[i], sb);
}

/* Writes the whole resulting status, so that a golden file also shows which parts a step leaves
 * unchanged. */
static void render_status(const struct hf_plan *plan, const struct hf_framework *framework,
			  struct hf_strbuf *sb)
{
	const struct hf_status *status = &plan->status;
	size_t mark;

	hf_strbuf_addf(sb, "write: %s\n",
		       !plan->status_changed ? "nothing"
		       : plan->status_urgent ? "first"
					     : "within a second");
	render_conditions(status, sb);
	render_replicas(status, framework, sb);
	if (status->start_time != HF_TIME_NONE || status->completion_time != HF_TIME_NONE) {
		hf_strbuf_addstr(sb, "times: ");
		mark = flow_begin(sb, "");
		instant(sb, "start", status->start_time);
		instant(sb, "completion", status->completion_time);
		flow_end(sb, mark);
	}
	render_ledger(&status->ledger, framework, sb);
}

/* ---- actions ------------------------------------------------------------------------------------- */

static void render_build(const struct hf_container_build *build, struct hf_strbuf *sb)
{
	text(sb, "image", build->image);
	text(sb, "pull", build->image_pull_policy);
	for (size_t i = 0; i < build->command_len; i++)
		text(sb, i == 0 ? "command" : i == 1 ? "option" : "script", build->command[i]);
	for (size_t i = 0; i < build->limits_len; i++)
		hf_strbuf_addf(sb, ", limit-%s: %s", build->limits[i].key, build->limits[i].value);
	for (size_t i = 0; i < build->requests_len; i++)
		hf_strbuf_addf(sb, ", request-%s: %s", build->requests[i].key,
			       build->requests[i].value);
	for (size_t i = 0; i < build->env_len; i++) {
		hf_strbuf_addf(sb, ", env-%s: ", build->env[i].key);
		quote(sb, build->env[i].value);
	}
	for (size_t i = 0; i < build->mounts_len; i++)
		hf_strbuf_addf(sb, ", mount-%s: %s", build->mounts[i].key, build->mounts[i].value);
	if (build->restricted)
		hf_strbuf_addstr(sb, ", restricted: true");
}

/* True for labels, annotations and variables: all edits of such a kind share one line, because
 * there are many. */
static bool is_list(enum hf_edit_kind kind)
{
	return kind == HF_EDIT_LABEL || kind == HF_EDIT_ANNOTATION || kind == HF_EDIT_ENV ||
	       kind == HF_EDIT_ENV_FIELD;
}

/* True for edits that may occur several times. Their name becomes part of the key, because a key
 * must be unique in a YAML map. */
static bool is_by_name(enum hf_edit_kind kind)
{
	return kind == HF_EDIT_MOUNT || kind == HF_EDIT_AVOID_NODE;
}

/* Writes an edit of a container's command or arguments, or of a volume. */
static void render_word(const struct hf_edit *edit, struct hf_strbuf *sb)
{
	if (edit->kind == HF_EDIT_VOLUME_CONFIG) {
		text(sb, "configMap", edit->value);
		for (size_t i = 0; i < edit->files_len; i++)
			hf_strbuf_addf(sb, ", %s: 0%o", edit->files[i].name,
				       (unsigned)edit->files[i].mode);
		return;
	}
	if (edit->kind == HF_EDIT_VOLUME_HOST || edit->kind == HF_EDIT_VOLUME_CSI) {
		text(sb, edit->kind == HF_EDIT_VOLUME_HOST ? "path" : "driver", edit->value);
		return;
	}
	for (size_t i = 0; i < edit->words_len; i++)
		hf_strbuf_addf(sb, "%s%s", i > 0 ? " " : "words: ", edit->words[i]);
	if (edit->words_len == 0)
		text(sb, edit->kind == HF_EDIT_MOUNT ? "at" : "word", edit->value);
	if (edit->kind == HF_EDIT_MOUNT && edit->number != 0)
		hf_strbuf_addstr(sb, ", readOnly: true");
	if (edit->kind != HF_EDIT_VOLUME_EMPTY)
		hf_strbuf_addf(sb, ", container: %d", edit->container);
}

static void render_other(const struct hf_edit *edit, struct hf_strbuf *sb)
{
	size_t mark;

	if (edit->kind == HF_EDIT_RESTART_POLICY || edit->kind == HF_EDIT_SCHEDULER_NAME ||
	    edit->kind == HF_EDIT_SERVICE_ACCOUNT) {
		hf_strbuf_addf(sb, "%s\n", edit->value);
		return;
	}
	if (edit->kind == HF_EDIT_AVOID_NODE) {
		hf_strbuf_addf(sb, "%s\n", edit->number ? "required" : "preferred");
		return;
	}
	mark = flow_begin(sb, "");
	if (edit->kind != HF_EDIT_MOUNT)
		text(sb, "name", edit->add ? edit->add->name : edit->name);
	if (edit->kind == HF_EDIT_PORT) {
		number(sb, "number", edit->number);
		hf_strbuf_addf(sb, ", container: %d", edit->container);
	} else if (edit->kind >= HF_EDIT_COMMAND) {
		render_word(edit, sb);
	} else if (edit->add) {
		render_build(edit->add, sb);
	} else {
		text(sb, "template file for", edit->value);
	}
	flow_end(sb, mark);
}

/* True if edits of this kind came before, interrupted by another kind, or of a kind that has one line for each edit: their
 * line then gets another key, because a key must be unique in a YAML map. */
static bool is_interrupted(const struct hf_edit *edits, size_t i)
{
	bool list = is_list(edits[i].kind);

	for (size_t j = 0; j + (list ? 1 : 0) < i; j++)
		if (edits[j].kind == edits[i].kind && edits[j].container == edits[i].container)
			return !is_by_name(edits[i].kind);
	return false;
}

static void render_edits(const struct hf_action *action, struct hf_strbuf *sb)
{
	static const char *const kinds[] = {
		[HF_EDIT_LABEL] = "labels",
		[HF_EDIT_ANNOTATION] = "annotations",
		[HF_EDIT_ENV] = "env",
		[HF_EDIT_ENV_FIELD] = "env from fields",
		[HF_EDIT_PORT] = "port",
		[HF_EDIT_RESTART_POLICY] = "restartPolicy",
		[HF_EDIT_SCHEDULER_NAME] = "schedulerName",
		[HF_EDIT_AVOID_NODE] = "avoid node",
		[HF_EDIT_INIT_CONTAINER] = "init container",
		[HF_EDIT_COMMAND] = "command",
		[HF_EDIT_COMMAND_BEFORE] = "before the command",
		[HF_EDIT_ARGS] = "args",
		[HF_EDIT_SERVICE_ACCOUNT] = "serviceAccountName",
		[HF_EDIT_MOUNT] = "mount",
		[HF_EDIT_VOLUME_EMPTY] = "empty volume",
		[HF_EDIT_VOLUME_CONFIG] = "volume",
		[HF_EDIT_VOLUME_HOST] = "volume of the node",
		[HF_EDIT_VOLUME_CSI] = "volume of a driver",
	};

	for (size_t i = 0; i < action->edits_len; i++) {
		const struct hf_edit *edit = &action->edits[i];
		bool goes_on = i > 0 && edit[-1].kind == edit->kind &&
			       edit[-1].container == edit->container && is_list(edit->kind);

		hf_assert((size_t)edit->kind < HF_ARRAY_LEN(kinds));
		if (!goes_on) {
			hf_strbuf_addf(sb, "  %s%s",
				       is_interrupted(action->edits, i) ? "more " : "",
				       kinds[edit->kind]);
			if (edit->kind == HF_EDIT_ENV && edit->container >= 0)
				hf_strbuf_addf(sb, " of container %d", edit->container);
			if (is_by_name(edit->kind))
				hf_strbuf_addf(sb, " %s", edit->name);
			hf_strbuf_addstr(sb, ": ");
		}
		if (!is_list(edit->kind)) {
			render_other(edit, sb);
			continue;
		}
		hf_strbuf_addstr(sb, goes_on ? ", " : "[");
		hf_strbuf_addf(sb, "\"%s=", edit->name);
		quote_rest(sb, edit->value);
		if (i + 1 == action->edits_len || edit[1].kind != edit->kind ||
		    edit[1].container != edit->container)
			hf_strbuf_addstr(sb, "]\n");
	}
}

/* Writes one value of an object that the plan creates. */
static void render_leaf(const struct hf_leaf *leaf, struct hf_strbuf *sb)
{
	switch (leaf->type) {
	case HF_LEAF_TEXT: quote(sb, leaf->value); return;
	case HF_LEAF_NUMBER: hf_strbuf_addf(sb, "%lld", (long long)leaf->number); return;
	case HF_LEAF_OBJECT: hf_strbuf_addstr(sb, "{}"); return;
	case HF_LEAF_JSON: hf_strbuf_addstr(sb, leaf->value); return;
	}
}

static void render_extra(const struct hf_action *action, struct hf_strbuf *sb)
{
	const struct hf_extra *extra = action->extra;
	bool content = action->kind != HF_ACTION_DELETE_EXTRA;

	hf_strbuf_addf(sb, "- %s %s: %s\n", hf_action_name(action->kind),
		       hf_extra_kind_name(extra->kind), action->name);
	if (action->uid)
		hf_strbuf_addf(sb, "  uid: %s\n", action->uid);
	if (content && extra->annotated && !action->uid)
		hf_strbuf_addstr(sb, "  annotations: the job's\n");
	for (size_t i = 0; content && i < extra->labels_len; i++)
		hf_strbuf_addf(sb, "  label %s: %s\n", extra->labels[i].path,
			       extra->labels[i].value);
	for (size_t i = 0; content && i < extra->content_len; i++) {
		hf_strbuf_addf(sb, "  %s: ", extra->content[i].path);
		render_leaf(&extra->content[i], sb);
		hf_strbuf_addch(sb, '\n');
	}
}

/* Writes an action. A create has one line for each edit; other actions are one line. */
static void render_action(const struct hf_action *action, struct hf_strbuf *sb)
{
	size_t mark;

	if (action->extra) {
		render_extra(action, sb);
		return;
	}

	hf_strbuf_addf(sb, "- %s: ", hf_action_name(action->kind));
	if (action->kind == HF_ACTION_CREATE_POD) {
		hf_strbuf_addf(sb, "%s\n", action->name);
		render_edits(action, sb);
		return;
	}
	mark = flow_begin(sb, "");
	text(sb, "name", action->name);
	text(sb, "uid", action->uid);
	text(sb, "resourceVersion", action->resource_version);
	opt_number(sb, "grace", action->grace_seconds);
	text(sb, "message", action->message);
	for (size_t i = 0; i < action->labels_len; i++)
		text(sb, action->labels[i].key, action->labels[i].value);
	for (size_t i = 0; i < action->ports_len; i++) {
		hf_strbuf_addstr(sb, ", ");
		quote(sb, hf_str_or(action->ports[i].name, "port"));
		hf_strbuf_addf(sb, ": %d", action->ports[i].number);
	}
	flow_end(sb, mark);
}

static void render_stages(const struct hf_plan *plan, struct hf_strbuf *sb)
{
	for (size_t i = 0; i < plan->stages_len; i++) {
		hf_strbuf_addf(sb, "stage %zu:\n", i + 1);
		for (size_t a = 0; a < plan->stages[i].actions_len; a++)
			render_action(&plan->stages[i].actions[a], sb);
	}
}

/* ---- words ------------------------------------------------------------------------------------------ */

static void render_asks(const struct hf_plan *plan, struct hf_strbuf *sb)
{
	static const char *const kinds[] = {
		[HF_ASK_LEASE] = "lease", [HF_ASK_NODE] = "node", [HF_ASK_CLAIM] = "claim"};
	size_t mark;

	if (plan->asks_len > 0)
		hf_strbuf_addstr(sb, "asks:\n");
	for (size_t i = 0; i < plan->asks_len; i++) {
		hf_assert((size_t)plan->asks[i].kind < HF_ARRAY_LEN(kinds));
		mark = flow_begin(sb, "- ");
		text(sb, kinds[plan->asks[i].kind], plan->asks[i].name);
		flow_end(sb, mark);
	}
}

/* Writes the plan's events, counters, next wake-up and explanation. */
static void render_words(const struct hf_plan *plan, struct hf_strbuf *sb)
{
	size_t mark;

	if (plan->events_len > 0)
		hf_strbuf_addstr(sb, "events:\n");
	for (size_t i = 0; i < plan->events_len; i++) {
		mark = flow_begin(sb, "- ");
		text(sb, "type", plan->events[i].warning ? "Warning" : "Normal");
		text(sb, "reason", plan->events[i].reason);
		text(sb, "message", plan->events[i].message);
		text(sb, "pod", plan->events[i].pod);
		flow_end(sb, mark);
	}
	for (int i = 0; i < HF_METRICS; i++) {
		if (plan->metrics[i] != 0)
			hf_strbuf_addf(sb, "count %s: %d\n", metric_names[i], plan->metrics[i]);
	}
	if (plan->metrics[HF_METRIC_RESTARTS] != 0)
		hf_strbuf_addf(sb, "restart: {cause: %s, scope: %s}\n",
			       hf_class_name(plan->restart_cause),
			       plan->restart_scope == HF_SCOPE_JOB ? "Job" : "Replica");
	if (plan->wake_at != HF_TIME_NEVER) {
		mark = sb->len;
		instant(sb, "wake", plan->wake_at);
		for (size_t n = mark; n + 2 < sb->len; n++)
			sb->data[n] = sb->data[n + 2];
		hf_strbuf_truncate(sb, sb->len - 2);
		hf_strbuf_addch(sb, '\n');
	}
	render_asks(plan, sb);
	hf_strbuf_addstr(sb, "summary: ");
	quote(sb, hf_str_or(plan->summary, ""));
	hf_strbuf_addstr(sb, "\nwhy:\n");
	for (size_t i = 0; i < plan->reasons_len; i++) {
		mark = flow_begin(sb, "- ");
		text(sb, hf_topic_name(plan->reasons[i].topic), plan->reasons[i].text);
		instant(sb, "at", plan->reasons[i].time);
		flow_end(sb, mark);
	}
}

void hf_plan_render(const struct hf_plan *plan, const struct hf_framework *framework,
		    struct hf_strbuf *sb)
{
	hf_assert(plan->stages_len <= HF_STAGES_MAX && framework);
	render_status(plan, framework, sb);
	render_stages(plan, sb);
	render_words(plan, sb);
}
