/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/rollout.h"

#include "api/device_rollout.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"
#include "store/resource.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

/*
 * DeviceRollouts for people. Input: objects from the server. Output: rows of a table, the description of one
 * object, the reasons of its state, and the rollouts of a node. Texts of the server are printed without
 * control characters.
 */

#define ARENA_BYTES_MAX ((size_t)16 << 20)
#define TEXT_MAX ((size_t)4096)

/* A DeviceRollout, and its fields as far as they could be read. */
struct seen_rollout {
	struct hf_doc *doc;
	struct hf_rollout rollout;
	struct hf_rollout_spec spec;
	bool has_spec; /* else spec_error says which field is wrong */
	struct hf_error spec_error;
};

/* ---- texts ---------------------------------------------------------------------------------------- */

static void add_change(const struct seen_rollout *seen, struct hf_strbuf *text)
{
	const struct hf_rollout_spec *spec = &seen->spec;

	if (spec->daemon_set.name != NULL)
		hf_strbuf_addf(text, "DaemonSet %s/%s", spec->daemon_set.ns, spec->daemon_set.name);
	else
		hf_strbuf_addf(text, "label %s=%s", spec->label.key, spec->label.value);
	if (seen->rollout.status.target_revision != NULL)
		hf_strbuf_addf(text, ", revision %s%s%s", seen->rollout.status.target_revision,
			       seen->rollout.status.from_revision != NULL ? ", before " : "",
			       hf_str_or(seen->rollout.status.from_revision, ""));
}

static void add_waves(const struct hf_rollout_spec *spec, struct hf_strbuf *text)
{
	for (size_t i = 0; i < spec->waves_len; i++) {
		const struct hf_rollout_wave *wave = &spec->waves[i];

		hf_strbuf_addf(text, "%s%d%s", i > 0 ? ", " : "",
			       wave->percent >= 0 ? wave->percent : wave->count,
			       wave->percent >= 0 ? "%" : "");
	}
}

static void add_counts(const struct hf_rollout_status *status, struct hf_strbuf *text)
{
	hf_strbuf_addf(text, "%d of %d nodes changed", status->counts.changed,
		       status->counts.selected);
	if (status->counts.failed > 0)
		hf_strbuf_addf(text, ", %d failed", status->counts.failed);
	if (status->counts.skipped > 0)
		hf_strbuf_addf(text, ", %d skipped", status->counts.skipped);
}

static void add_evidence(const struct hf_rollout_evidence *evidence, struct hf_strbuf *text)
{
	hf_strbuf_addf(text,
		       "%" PRId64 " node(s), %" PRId64 ".%" PRId64 " device-hours, %" PRId64
		       " fault(s), %" PRId64 " restart(s) of jobs by devices",
		       evidence->nodes, evidence->device_minutes / 60,
		       evidence->device_minutes % 60 / 6, evidence->faults, evidence->restarts);
}

static void add_steps(const struct hf_rollout_status *status, struct hf_strbuf *text)
{
	hf_strbuf_addf(text,
		       "ranks on %" PRId64 " changed node(s) work %" PRId64 ".%02" PRId64
		       " times as long in each step as ranks of the same jobs on %" PRId64
		       " other node(s)",
		       status->changed.step_nodes, status->step_permille / 1000,
		       status->step_permille % 1000 / 10, status->unchanged.step_nodes);
}

static void add_canary(const struct hf_rollout_spec *spec, struct hf_strbuf *text)
{
	char within[HF_TIME_TEXT_MAX];

	hf_span_format(spec->proof.canary.within, within);
	hf_strbuf_addf(text, "%s in namespace %s, within %s", spec->proof.canary.kind,
		       spec->proof.canary.ns, within);
	if (spec->proof.canary.slower_percent >= 0)
		hf_strbuf_addf(text, ", at most %d %% slower than before",
			       spec->proof.canary.slower_percent);
}

static void add_node(const struct hf_rollout_node *node, struct hf_strbuf *text)
{
	hf_strbuf_addf(text, "%s is %s%s%s", node->name, node->phase,
		       node->message != NULL ? ": " : "", hf_str_or(node->message, ""));
}

/* ---- the table ------------------------------------------------------------------------------------- */

const char *const hf_cli_rollout_headers[HF_CLI_ROLLOUT_COLUMNS] = {
	"NAME", "PHASE", "WAVE", "CHANGED", "FAILED", "AGE", "MESSAGE"};

static int64_t get_number(const struct hf_json *object, const char *key)
{
	return hf_json_i64(hf_json_get(object, key), 0);
}

void hf_cli_rollout_row(struct hf_table *table, struct hf_doc *doc, hf_time now, bool deleted)
{
	const struct hf_json *root = hf_doc_json(doc);
	const struct hf_json *spec = hf_json_get(root, "spec");
	const struct hf_json *status = hf_json_get(root, "status");
	const struct hf_json *counts = hf_json_get(status, "counts");
	size_t waves = hf_json_len(hf_json_get(spec, "waves"));
	bool paused = hf_json_true(hf_json_get(spec, "paused"), false);

	hf_table_cell(table, "%s", hf_doc_name(doc));
	hf_table_cell(table, "%s%s",
		      deleted ? "Deleted"
			      : hf_str_or(hf_json_path_str(status, "phase", NULL), "Pending"),
		      paused && !deleted ? " (paused)" : "");
	if (waves > 0)
		hf_table_cell(table, "%" PRId64 "/%zu", get_number(status, "wave"), waves);
	else
		hf_table_cell(table, "%" PRId64, get_number(status, "wave"));
	hf_table_cell(table, "%" PRId64 "/%" PRId64, get_number(counts, "changed"),
		      get_number(counts, "selected"));
	hf_table_cell(table, "%" PRId64, get_number(counts, "failed"));
	hf_table_cell_age(table, hf_json_path_str(root, "metadata", "creationTimestamp", NULL),
			  now);
	hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(status, "message", NULL), ""));
}

/* ---- one object ------------------------------------------------------------------------------------ */

const char *hf_cli_rollout_named(const char *word)
{
	static const char *const kinds[] = {"rollout/", "rollouts/", "devicerollout/",
					    "devicerollouts/", "dro/"};

	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++)
		if (hf_str_has_prefix(word, kinds[i]))
			return word + strlen(kinds[i]);
	return NULL;
}

bool hf_cli_rollout_has_ended(const char *phase)
{
	static const char *const ends[] = {"Succeeded", "Failed", "Cancelled"};

	for (size_t i = 0; i < HF_ARRAY_LEN(ends); i++)
		if (hf_streq(phase, ends[i]))
			return true;
	return false;
}

/* Reads an object. A wrong spec does not hide the status: the operator reports the wrong field there. */
static int read_doc(struct hf_doc *doc, struct hf_arena *arena, struct seen_rollout *ret_seen,
		    struct hf_error *err)
{
	ret_seen->doc = doc;
	ret_seen->has_spec =
		hf_rollout_spec_read(doc, arena, &ret_seen->spec, &ret_seen->spec_error) == 0;
	return hf_rollout_read(doc, arena, &ret_seen->rollout, err);
}

static int find_rollout(struct hf_cli *cli, const char *name, struct hf_cli_reply *reply,
			struct hf_error *err)
{
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_devicerollouts, .name = name};

	return hf_cli_request(cli, &request, reply, err);
}

static void print_spec(FILE *out, const struct seen_rollout *seen)
{
	const struct hf_rollout_spec *spec = &seen->spec;
	HF_AUTO_STRBUF change = HF_STRBUF_INIT(TEXT_MAX);
	HF_AUTO_STRBUF waves = HF_STRBUF_INIT(TEXT_MAX);
	HF_AUTO_STRBUF canary = HF_STRBUF_INIT(TEXT_MAX);
	char soak[HF_TIME_TEXT_MAX];

	hf_output_field(out, "Name:", "%s", seen->rollout.name);
	if (!seen->has_spec) {
		hf_output_field(out, "Wrong field:", "%s", seen->spec_error.text);
		return;
	}
	add_change(seen, &change);
	add_waves(spec, &waves);
	hf_span_format(spec->soak, soak);
	hf_output_field(out, "Change:", "%s", change.data);
	hf_output_field(out, "Waves:", "%s; %s after each", waves.data, soak);
	hf_output_field(out, "At once:", "%d", spec->at_once);
	hf_output_field(out, "Empty:", "%s", spec->empty);
	if (spec->proof.canary.wanted) {
		add_canary(spec, &canary);
		hf_output_field(out, "Canary:", "%s", canary.data);
	}
	hf_output_field(out, "On failure:", "%s, after %d failed node(s)",
			spec->rolls_back ? "Rollback" : "Halt", spec->failures_max + 1);
	if (spec->paused || spec->cancel)
		hf_output_field(out, "Ordered:", "%s",
				spec->cancel ? "spec.cancel: stop, and change no more nodes"
					     : "spec.paused: begin no more nodes");
}

static void print_status(FILE *out, const struct hf_rollout_status *status)
{
	HF_AUTO_STRBUF counts = HF_STRBUF_INIT(TEXT_MAX);
	HF_AUTO_STRBUF changed = HF_STRBUF_INIT(TEXT_MAX);
	HF_AUTO_STRBUF unchanged = HF_STRBUF_INIT(TEXT_MAX);
	HF_AUTO_STRBUF steps = HF_STRBUF_INIT(TEXT_MAX);
	char at[HF_TIME_TEXT_MAX];

	hf_output_field(out, "Phase:", "%s%s", hf_str_or(status->phase, "Pending"),
			status->phase == NULL ? " (no operator has seen it yet)" : "");
	if (status->message != NULL)
		hf_output_field(out, "Message:", "%s", status->message);
	if (status->wave > 0)
		hf_output_field(out, "Wave:", "%d", status->wave);
	add_counts(status, &counts);
	hf_output_field(out, "Nodes:", "%s", counts.data);
	if (status->started_at != HF_TIME_NONE)
		hf_output_field(out, "Started:", "%s", hf_facts_time_text(status->started_at, at));
	if (status->soak_since != HF_TIME_NONE)
		hf_output_field(out, "Soaks since:", "%s",
				hf_facts_time_text(status->soak_since, at));
	if (status->changed.nodes == 0)
		return;
	add_evidence(&status->changed, &changed);
	add_evidence(&status->unchanged, &unchanged);
	hf_output_field(out, "Changed:", "%s", changed.data);
	hf_output_field(out, "Unchanged:", "%s", unchanged.data);
	if (status->step_permille > 0) {
		add_steps(status, &steps);
		hf_output_field(out, "Steps:", "%s", steps.data);
	}
}

static void print_nodes(FILE *out, const struct hf_rollout_status *status)
{
	static const char *const headers[] = {"NODE", "PHASE", "SINCE", "MESSAGE"};
	struct hf_table *table = hf_table_create(headers, HF_ARRAY_LEN(headers));
	char at[HF_TIME_TEXT_MAX];

	for (size_t i = 0; i < status->nodes.len; i++) {
		const struct hf_rollout_node *node = &status->nodes.items[i];

		hf_table_cell(table, "%s", node->name);
		hf_table_cell(table, "%s", node->phase);
		hf_table_cell(table, "%s", hf_facts_time_text(node->since, at));
		hf_table_cell(table, "%s", hf_str_or(node->message, ""));
	}
	if (status->nodes.len > 0) {
		fputs("\nNodes at work, failed, and the newest others:\n", out);
		hf_table_print(table, out, true);
	}
	hf_table_destroy(table);
}

int hf_cli_describe_rollout(struct hf_cli *cli, const char *name, const struct hf_output *output)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct seen_rollout seen;
	struct hf_error err;

	if (find_rollout(cli, name, &reply, &err) != 0)
		return hf_cli_fail(cli, &err);
	if (output->kind != HF_OUTPUT_TABLE)
		return hf_output_docs(cli, output, &reply.object, 1, true);
	if (read_doc(reply.object, arena, &seen, &err) != 0)
		return hf_cli_fail(cli, &err);
	print_spec(cli->out, &seen);
	print_status(cli->out, &seen.rollout.status);
	print_nodes(cli->out, &seen.rollout.status);
	if (seen.rollout.status.conditions.len > 0)
		hf_output_conditions(cli->out, hf_doc_json(reply.object));
	return HF_EXIT_OK;
}

/* ---- why it is so ------------------------------------------------------------------------------------ */

static void add_reason(struct hf_json *reasons, hf_time at, const char *topic, const char *text)
{
	struct hf_json *reason = hf_json_object();
	char time[HF_TIME_TEXT_MAX];

	if (at != HF_TIME_NONE) {
		hf_time_format_micro(at, time);
		hf_json_set_str(reason, "time", time);
	}
	hf_json_set_str(reason, "topic", topic);
	hf_json_set_str(reason, "text", text);
	hf_json_append(reasons, reason);
}

static void add_spec_reasons(const struct seen_rollout *seen, struct hf_json *reasons)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

	if (!seen->has_spec) {
		add_reason(reasons, HF_TIME_NONE, "spec", seen->spec_error.text);
		return;
	}
	add_change(seen, &text);
	add_reason(reasons, seen->rollout.created_at, "change", text.data);
	if (seen->spec.cancel)
		add_reason(reasons, HF_TIME_NONE, "cancel",
			   "spec.cancel: the operator puts cordons back and changes no more nodes");
	else if (seen->spec.paused)
		add_reason(reasons, HF_TIME_NONE, "paused",
			   "spec.paused: the operator begins with no more nodes");
}

/* Returns true for Halted or RolledBack with status True, and for other conditions with another status. */
static bool tells_trouble(const struct hf_rollout_condition *c)
{
	bool is_true = hf_streq(c->status, "True");

	return hf_streq(c->type, "Halted") || hf_streq(c->type, "RolledBack") ? is_true : !is_true;
}

static void add_condition_reasons(const struct hf_rollout_status *status, struct hf_json *reasons)
{
	for (size_t i = 0; i < status->conditions.len; i++) {
		const struct hf_rollout_condition *c = &status->conditions.items[i];
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

		/* The summary has the message of the status. */
		if (!tells_trouble(c) || hf_streq(c->message, status->message))
			continue;
		hf_strbuf_addf(&text, "%s is %s (%s)%s%s", hf_str_or(c->type, "?"),
			       hf_str_or(c->status, "?"), hf_str_or(c->reason, "?"),
			       hf_str_is_empty(c->message) ? "" : ": ", hf_str_or(c->message, ""));
		add_reason(reasons, c->since, "condition", text.data);
	}
}

static bool is_node_done(const struct hf_rollout_node *node)
{
	return hf_streq(node->phase, "Done") || hf_streq(node->phase, "RolledBack");
}

static void add_node_reasons(const struct hf_rollout_status *status, struct hf_json *reasons)
{
	for (size_t i = 0; i < status->nodes.len; i++) {
		const struct hf_rollout_node *node = &status->nodes.items[i];
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

		if (is_node_done(node))
			continue;
		add_node(node, &text);
		add_reason(reasons, node->since, "node", text.data);
	}
}

static void add_evidence_reasons(const struct hf_rollout_status *status, struct hf_json *reasons)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);
	HF_AUTO_STRBUF steps = HF_STRBUF_INIT(TEXT_MAX);

	if (status->changed.nodes == 0)
		return;
	hf_strbuf_addstr(&text, "changed: ");
	add_evidence(&status->changed, &text);
	hf_strbuf_addstr(&text, "; not changed: ");
	add_evidence(&status->unchanged, &text);
	add_reason(reasons, HF_TIME_NONE, "evidence", text.data);
	if (status->step_permille > 0) {
		add_steps(status, &steps);
		add_reason(reasons, HF_TIME_NONE, "evidence", steps.data);
	}
}

static void add_next_reason(const struct hf_rollout_status *status, struct hf_json *reasons)
{
	if (status->phase == NULL)
		add_reason(
			reasons, HF_TIME_NONE, "next",
			"no operator has seen the rollout yet: is one running, with the rights of "
			"'holdfast manifests --rollouts'?");
	else if (hf_streq(status->phase, "Halted"))
		add_reason(reasons, HF_TIME_NONE, "next",
			   "no more nodes are changed, and changed nodes stay as they are; nodes "
			   "without a proof stay cordoned until spec.cancel is true or the "
			   "DeviceRollout is deleted");
}

/* The operator's message has the wave and the numbers. */
static char *make_summary(const struct hf_rollout_status *status)
{
	const char *phase = hf_str_or(status->phase, "Pending");
	const char *message = hf_str_or(status->message, "");

	if (hf_str_is_empty(message))
		return hf_xstrdup(phase);
	/* "halted: 1 node failed" has the phase already. */
	if (strncasecmp(message, phase, strlen(phase)) == 0)
		return hf_xstrdup(message);
	return hf_xasprintf("%s: %s", phase, message);
}

int hf_cli_why_rollout(struct hf_cli *cli, const char *name, struct hf_json **ret_account,
		       struct hf_error *err)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	HF_AUTOFREE char *summary = NULL;
	struct seen_rollout seen;
	struct hf_json *reasons;
	int rc = find_rollout(cli, name, &reply, err);

	if (rc == 0)
		rc = read_doc(reply.object, arena, &seen, err);
	if (rc != 0)
		return rc;
	summary = make_summary(&seen.rollout.status);
	*ret_account = hf_json_object();
	hf_json_set_str(*ret_account, "summary", summary);
	reasons = hf_json_ensure_array(*ret_account, "reasons");
	add_spec_reasons(&seen, reasons);
	add_condition_reasons(&seen.rollout.status, reasons);
	add_node_reasons(&seen.rollout.status, reasons);
	add_evidence_reasons(&seen.rollout.status, reasons);
	add_next_reason(&seen.rollout.status, reasons);
	return 0;
}

/* ---- the rollouts of a node ---------------------------------------------------------------------------- */

void hf_cli_rollout_reasons(struct hf_cli *cli, const char *node, hf_cli_rollout_fn fn, void *arg)
{
	const struct hf_request request = {.verb = HF_VERB_LIST, .resource = &hf_devicerollouts};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_rollout rollout;

	if (hf_cli_request(cli, &request, &reply, NULL) != 0)
		return;
	for (size_t i = 0; i < reply.n_items; i++) {
		hf_arena_reset(arena);
		if (hf_rollout_read(reply.items[i], arena, &rollout, NULL) != 0 ||
		    hf_cli_rollout_has_ended(rollout.status.phase))
			continue;
		for (size_t k = 0; k < rollout.status.nodes.len; k++) {
			const struct hf_rollout_node *entry = &rollout.status.nodes.items[k];
			HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

			if (!hf_streq(entry->name, node))
				continue;
			hf_strbuf_addf(&text, "DeviceRollout %s, which is %s: ", rollout.name,
				       hf_str_or(rollout.status.phase, "Pending"));
			add_node(entry, &text);
			fn(arg, entry->since, text.data);
		}
	}
}
