/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/remediation.h"

#include "base/str.h"
#include "cli/facts.h"
#include "store/resource.h"

#include <inttypes.h>
#include <string.h>

/*
 * Remediations for people. Input: objects from the server. Output: rows of a table, the description of one
 * object, and the acts of a node. Texts of the server are printed without control characters.
 */

#define ARENA_BYTES_MAX ((size_t)16 << 20)
#define TEXT_MAX ((size_t)4096)

/* ---- the table ----------------------------------------------------------------------------------- */

const char *const hf_cli_remediation_headers[HF_CLI_REMEDIATION_COLUMNS] = {
	"NAME", "NODE", "RUNG", "PHASE", "DEVICES", "FAULT", "AGE", "REQUESTED", "MESSAGE"};

static void add_devices(struct hf_table *table, const struct hf_json *spec)
{
	const struct hf_json *list = hf_json_get(spec, "devices");
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *device = hf_json_item(list, i);
		const char *id = hf_json_path_str(device, "id", NULL);

		hf_strbuf_addf(
			&text, "%s%s", i > 0 ? "," : "",
			hf_str_or(id, hf_str_or(hf_json_path_str(device, "uuid", NULL), "?")));
	}
	hf_table_cell(table, "%s", text.len > 0 ? text.data : "<node>");
}

void hf_cli_remediation_row(struct hf_table *table, struct hf_doc *doc, hf_time now, bool wide,
			    bool deleted)
{
	const struct hf_json *root = hf_doc_json(doc);
	const struct hf_json *spec = hf_json_get(root, "spec");
	const struct hf_json *code = hf_json_path(spec, "fault", "code", NULL);
	const char *cls = hf_json_path_str(spec, "fault", "class", NULL);
	const char *phase = hf_str_or(hf_json_path_str(root, "status", "phase", NULL), "Pending");

	hf_table_cell(table, "%s", hf_doc_name(doc));
	hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(spec, "node", NULL), "?"));
	hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(spec, "rung", NULL), "?"));
	hf_table_cell(table, "%s%s", deleted ? "Deleted" : phase,
		      hf_json_true(hf_json_get(spec, "dryRun"), false) ? " (dry run)" : "");
	add_devices(table, spec);
	if (cls != NULL && hf_json_i64(code, 0) != 0)
		hf_table_cell(table, "%s %" PRId64, cls, hf_json_i64(code, 0));
	else
		hf_table_cell(table, "%s", hf_str_or(cls, "<none>"));
	hf_table_cell_age(table, hf_json_path_str(root, "metadata", "creationTimestamp", NULL),
			  now);
	if (!wide)
		return;
	hf_table_cell(table, "%s",
		      hf_str_or(hf_json_path_str(spec, "requestedBy", NULL), "<none>"));
	hf_table_cell(table, "%s",
		      hf_str_or(hf_json_path_str(root, "status", "message", NULL), ""));
}

/* ---- the description of one object ---------------------------------------------------------------- */

const char *hf_cli_remediation_named(const char *word)
{
	static const char *const kinds[] = {"remediation/", "remediations/", "rem/"};

	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++)
		if (hf_str_has_prefix(word, kinds[i]))
			return word + strlen(kinds[i]);
	return NULL;
}

void hf_cli_remediation_devices(const struct hf_remediation_spec *spec, struct hf_strbuf *text)
{
	for (size_t i = 0; i < spec->devices.len; i++) {
		const struct hf_remediation_device *device = &spec->devices.items[i];
		bool has_id = !hf_str_is_empty(device->id);

		hf_strbuf_addf(text, "%s%s%s%s%s", i > 0 ? ", " : "", has_id ? device->id : "",
			       has_id ? " (" : "", hf_str_or(device->uuid, "?"), has_id ? ")" : "");
	}
	if (spec->devices.len == 0)
		hf_strbuf_addstr(text, "the node");
}

static void print_spec(const struct hf_cli *cli, const struct hf_remediation *r)
{
	const struct hf_remediation_spec *spec = &r->spec;
	HF_AUTO_STRBUF devices = HF_STRBUF_INIT(TEXT_MAX);
	char at[HF_TIME_TEXT_MAX];

	hf_cli_remediation_devices(spec, &devices);
	hf_output_field(cli->out, "Name:", "%s", r->name);
	hf_output_field(cli->out, "Node:", "%s", spec->node);
	hf_output_field(cli->out, "Rung:", "%s%s%s", spec->rung, spec->dry_run ? ", dry run" : "",
			spec->cancel ? ", cancelled by a person" : "");
	hf_output_field(cli->out, "Devices:", "%s", devices.data);
	if (spec->fault.cls != NULL)
		hf_output_field(cli->out, "Fault:", "%s, code %" PRId64 "%s%s%s%s", spec->fault.cls,
				spec->fault.code, spec->fault.at != HF_TIME_NONE ? ", " : "",
				hf_facts_time_text(spec->fault.at, at),
				spec->fault.text != NULL ? ": " : "",
				hf_str_or(spec->fault.text, ""));
	hf_output_field(cli->out, "Requested by:", "%s%s%s",
			hf_str_or(spec->requested_by, "<unknown>"),
			spec->policy != NULL ? ", under policy " : "", hf_str_or(spec->policy, ""));
}

static void print_act(const struct hf_cli *cli, const struct hf_remediation_act *act)
{
	char from[HF_TIME_TEXT_MAX], to[HF_TIME_TEXT_MAX];

	if (act->started_at != HF_TIME_NONE)
		hf_output_field(cli->out, "Act:", "%s%sfrom %s%s%s", hf_str_or(act->tool, ""),
				act->tool != NULL ? " " : "",
				hf_facts_time_text(act->started_at, from),
				act->ended_at != HF_TIME_NONE ? " to " : "",
				hf_facts_time_text(act->ended_at, to));
	/* A tool that was ended has no exit code; the actor writes -1. */
	if (act->has_exit_code && act->exit_code < 0)
		hf_output_field(cli->out, "Result:", "no exit code%s%s",
				act->message != NULL ? ": " : "", hf_str_or(act->message, ""));
	else if (act->has_exit_code)
		hf_output_field(cli->out, "Result:", "exit code %d%s%s", act->exit_code,
				act->message != NULL ? ": " : "", hf_str_or(act->message, ""));
	for (size_t i = 0; i < act->holders.len; i++)
		hf_output_field(cli->out, "Open by:", "%s (pid %" PRId64 ")%s%s",
				hf_str_or(act->holders.items[i].comm, "?"),
				act->holders.items[i].pid,
				act->holders.items[i].pod != NULL ? " of pod " : "",
				hf_str_or(act->holders.items[i].pod, ""));
}

/* What the act has changed, and its end takes back. */
static void print_saved(const struct hf_cli *cli, const struct hf_remediation *r)
{
	const struct hf_remediation_status *status = &r->status;
	const char *ns = status->saved.external.ns;

	for (size_t i = 0; i < status->saved.labels.len; i++)
		hf_output_field(cli->out, "To put back:", "label %s=%s",
				status->saved.labels.items[i].key,
				status->saved.labels.items[i].value);
	/* The object of another controller has the name of the node. */
	if (status->saved.external.kind != NULL)
		hf_output_field(cli->out, "To delete:", "%s %s%s%s of %s",
				status->saved.external.kind, hf_str_or(ns, ""),
				ns != NULL ? "/" : "", r->spec.node,
				hf_str_or(status->saved.external.api_version, "?"));
}

static void print_status(const struct hf_cli *cli, const struct hf_remediation *r)
{
	const struct hf_remediation_status *status = &r->status;
	char at[HF_TIME_TEXT_MAX];

	hf_output_field(cli->out, "Phase:", "%s%s", hf_str_or(status->phase, "Pending"),
			status->phase == NULL ? " (no operator has seen it yet)" : "");
	if (status->message != NULL)
		hf_output_field(cli->out, "Message:", "%s", status->message);
	if (status->approval.at != HF_TIME_NONE)
		hf_output_field(cli->out, "Approved:", "%s, in boot %s",
				hf_facts_time_text(status->approval.at, at),
				hf_str_or(status->approval.boot_id, "?"));
	print_act(cli, &status->act);
	print_saved(cli, r);
	if (status->proof.at != HF_TIME_NONE)
		hf_output_field(cli->out, "Proof:", "%s: %s",
				hf_facts_time_text(status->proof.at, at),
				hf_str_or(status->proof.text, ""));
}

int hf_cli_describe_remediation(struct hf_cli *cli, const char *name,
				const struct hf_output *output)
{
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_remediations, .name = name};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_remediation r;
	struct hf_error err;

	if (hf_cli_request(cli, &request, &reply, &err) != 0)
		return hf_cli_fail(cli, &err);
	if (output->kind != HF_OUTPUT_TABLE)
		return hf_output_docs(cli, output, &reply.object, 1, true);
	if (hf_remediation_read(reply.object, arena, &r, &err) != 0)
		return hf_cli_fail(cli, &err);
	print_spec(cli, &r);
	print_status(cli, &r);
	if (r.status.conditions.len > 0)
		hf_output_conditions(cli->out, hf_doc_json(reply.object));
	return HF_EXIT_OK;
}

/* ---- the acts of a node ----------------------------------------------------------------------------- */

bool hf_cli_remediation_has_ended(const char *phase)
{
	static const char *const ends[] = {"Succeeded", "Failed", "Cancelled"};

	for (size_t i = 0; i < HF_ARRAY_LEN(ends); i++)
		if (hf_streq(phase, ends[i]))
			return true;
	return false;
}

static void tell_one(const struct hf_remediation *r, hf_cli_mend_fn fn, void *arg)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

	hf_strbuf_addf(&text, "%s: %s of ", r->name, r->spec.rung);
	hf_cli_remediation_devices(&r->spec, &text);
	hf_strbuf_addf(&text, " is %s%s%s", hf_str_or(r->status.phase, "Pending"),
		       r->status.message != NULL ? ": " : "", hf_str_or(r->status.message, ""));
	fn(arg, r->created_at, text.data);
	for (size_t i = 0; i < r->status.conditions.len; i++) {
		const struct hf_remediation_condition *c = &r->status.conditions.items[i];

		/* A condition may only repeat what the object waits for. */
		if (hf_streq(c->status, "True") ||
		    (!hf_str_is_empty(c->message) && hf_streq(c->message, r->status.message)))
			continue;
		hf_strbuf_clear(&text);
		hf_strbuf_addf(&text, "%s: %s is %s (%s)%s%s", r->name, hf_str_or(c->type, "?"),
			       hf_str_or(c->status, "?"), hf_str_or(c->reason, "?"),
			       c->message != NULL ? ": " : "", hf_str_or(c->message, ""));
		fn(arg, c->since, text.data);
	}
}

void hf_cli_mend_reasons(struct hf_cli *cli, const char *node, hf_cli_mend_fn fn, void *arg)
{
	const struct hf_request request = {.verb = HF_VERB_LIST, .resource = &hf_remediations};
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_ARENA last_arena = hf_arena_create(ARENA_BYTES_MAX);
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_remediation r, last = {.spec = {.attempt = 0}};
	bool at_work = false;

	if (hf_cli_request(cli, &request, &reply, NULL) != 0)
		return;
	for (size_t i = 0; i < reply.n_items; i++) {
		const struct hf_json *root = hf_doc_json(reply.items[i]);

		hf_arena_reset(arena);
		if (!hf_streq(hf_json_path_str(root, "spec", "node", NULL), node) ||
		    hf_remediation_read(reply.items[i], arena, &r, NULL) != 0)
			continue;
		if (!hf_cli_remediation_has_ended(r.status.phase)) {
			at_work = true;
			tell_one(&r, fn, arg);
		} else if (r.spec.attempt > last.spec.attempt) {
			hf_arena_reset(last_arena);
			if (hf_remediation_read(reply.items[i], last_arena, &last, NULL) != 0)
				last.spec.attempt = 0;
		}
	}
	if (!at_work && last.spec.attempt > 0)
		tell_one(&last, fn, arg);
}
