/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast describe: prints one job with its conditions, restarts, pods and events, and with the
 * operator's next step. */
#include "cli/verbs_internal.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/disks.h"
#include "cli/events.h"
#include "cli/explain.h"
#include "cli/leader.h"
#include "cli/output.h"
#include "cli/ready.h"
#include "cli/remediation.h"
#include "cli/request.h"
#include "cli/rollout.h"
#include "cli/facts.h"
#include "cli/text.h"
#include "store/resource.h"

#include <inttypes.h>

static void print_optional(FILE *out, const char *name, const char *value)
{
	if (!hf_str_is_empty(value))
		hf_output_field(out, name, "%s", value);
}

static void add_record(struct hf_table *table, const struct hf_json *record)
{
	const struct hf_json *code = hf_json_get(record, "exitCode");
	int64_t lost = hf_record_lost_read(record);

	hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(record, "decidedAt", NULL), ""));
	hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(record, "cause", NULL), ""));
	hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(record, "scope", NULL), "-"));
	hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(record, "replica", NULL), "-"));
	if (code != NULL)
		hf_table_cell(table, "%" PRId64, hf_json_i64(code, 0));
	else
		hf_table_cell(table, "-");
	hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(record, "reason", NULL), "-"));
	hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(record, "rule", NULL), "-"));
	if (lost >= 0)
		hf_table_cell(table, "%" PRId64, lost);
	else
		hf_table_cell(table, "-");
}

static void print_restarts(FILE *out, const struct hf_json *job)
{
	static const char *const headers[] = {"DECIDED", "CAUSE",  "SCOPE", "REPLICA",
					      "CODE",    "REASON", "RULE",  "LOST STEPS"};
	HF_AUTO_JSON recovery = hf_job_recovery(job);
	const struct hf_json *last = hf_json_get(recovery, "last");
	const struct hf_json *history = hf_json_get(recovery, "history");
	struct hf_table *table;

	if (last == NULL)
		return;
	table = hf_table_create(headers, HF_ARRAY_LEN(headers));
	add_record(table, last);
	for (size_t i = 0; i < hf_json_len(history); i++)
		add_record(table, hf_json_item(history, i));
	fputs("\nRestarts, newest first:\n", out);
	hf_table_print(table, out, true);
	hf_table_destroy(table);
}

static void print_pods(struct hf_cli *cli, const struct hf_cli_reply *pods)
{
	static const char *const headers[] = {"NAME", "READY", "STATUS", "RESTARTS", "NODE"};
	struct hf_table *table = hf_table_create(headers, HF_ARRAY_LEN(headers));

	for (size_t i = 0; i < pods->n_items; i++) {
		const struct hf_json *pod = hf_doc_json(pods->items[i]);
		struct hf_pod_facts facts;
		hf_pod_facts_read(pod, &facts);
		hf_table_cell(table, "%s", hf_doc_name(pods->items[i]));
		hf_table_cell(table, "%" PRId64 "/%" PRId64, facts.ready, facts.containers);
		hf_table_cell(table, "%s", facts.status);
		hf_table_cell(table, "%" PRId64, facts.restarts);
		hf_table_cell(table, "%s",
			      hf_str_or(hf_json_path_str(pod, "spec", "nodeName", NULL), "<none>"));
	}
	fputs("\nPods:\n", cli->out);
	hf_table_print(table, cli->out, true);
	hf_table_destroy(table);
}

static void print_disk(void *arg, const char *node, const char *why)
{
	const struct hf_cli *cli = arg;

	fprintf(cli->out, "%-14s node '%s': ", "Disk:", node);
	hf_text_print_safe(cli->out, why);
	fputc('\n', cli->out);
}

/* Lines of what ranks report; none for a job that reports nothing. */
static void print_training(FILE *out, const struct hf_json *job, hf_time now)
{
	struct hf_job_training training;
	char span[HF_TIME_TEXT_MAX];

	hf_job_training_read(job, now, &training);
	if (training.step > 0 && training.saved_step > 0)
		fprintf(out, "%-14s %" PRId64 " done, %" PRId64 " saved\n", "Steps:", training.step,
			training.saved_step);
	else if (training.step > 0)
		fprintf(out, "%-14s %" PRId64 " done\n", "Steps:", training.step);
	if (training.has_ettr)
		fprintf(out, "%-14s %" PRId64 ".%" PRId64 "%%\n",
			"ETTR:", training.ettr_permille / 10, training.ettr_permille % 10);
	if (!training.has_advice)
		return;
	hf_span_format(training.advice.seconds * HF_SECOND, span);
	hf_output_field(out, "Save every:", "%s", span);
}

static void print_mend(void *arg, hf_time at, const char *text)
{
	const struct hf_cli *cli = arg;
	char time[HF_TIME_TEXT_MAX] = "";

	if (at != HF_TIME_NONE)
		hf_time_format(at, time);
	fputs("\nMended:        ", cli->out);
	fprintf(cli->out, "%s  ", time);
	hf_text_print_safe(cli->out, text);
	fputc('\n', cli->out);
}

static void print_no_leader(struct hf_cli *cli, struct hf_doc *job)
{
	HF_AUTO_NO_LEADER missing = {.found = NULL};

	hf_no_leader_find(cli, &job, 1, &missing);
	print_optional(cli->out, "Operator:", missing.found);
}

static void print_head(struct hf_cli *cli, struct hf_doc *job, const struct hf_cli_reply *pods)
{
	const struct hf_json *root = hf_doc_json(job);
	char restarts[HF_RESTARTS_TEXT_MAX];
	struct hf_job_facts facts;
	struct hf_ready *ready = hf_ready_create();

	hf_job_facts_read(root, &facts);
	hf_output_field(cli->out, "Name:", "%s", hf_doc_name(job));
	hf_output_field(cli->out, "Namespace:", "%s", hf_doc_namespace(job));
	hf_output_field(cli->out, "Kind:", "%s", facts.kind);
	hf_output_field(cli->out, "State:", "%s", hf_str_or(cli->kept_state, facts.state));
	print_optional(cli->out, "Message:", facts.message);
	print_optional(cli->out, "Started:", hf_json_path_str(root, "status", "startTime", NULL));
	print_optional(cli->out,
		       "Completed:", hf_json_path_str(root, "status", "completionTime", NULL));
	for (size_t i = 0; i < pods->n_items; i++)
		(void)hf_ready_see(ready, pods->items[i], false);
	hf_output_field(cli->out, "Ready:", "%" PRId64 " of %" PRId64,
			hf_job_ready(&facts, hf_ready_count(ready, hf_doc_namespace(job),
							    hf_doc_name(job))),
			facts.wanted);
	hf_ready_destroy(ready);
	hf_output_field(cli->out, "Generation:", "%" PRId64, facts.generation);
	hf_restarts_text(facts.restarts, restarts);
	hf_output_field(cli->out, "Restarts:", "%s", restarts);
	print_training(cli->out, root, hf_loop_wall(cli->loop));
	print_no_leader(cli, job);
	hf_cli_short_disks(cli, pods->items, pods->n_items, print_disk, cli);
}

/* Prints -o json or -o yaml: a List of the job and its pods. */
static int print_objects(struct hf_cli *cli, const struct hf_output *output, struct hf_doc *job,
			 const struct hf_cli_reply *pods)
{
	HF_AUTOFREE struct hf_doc **docs = hf_xcalloc(pods->n_items + 1, sizeof(struct hf_doc *));

	docs[0] = job;
	for (size_t i = 0; i < pods->n_items; i++)
		docs[i + 1] = pods->items[i];
	return hf_output_docs(cli, output, docs, pods->n_items + 1, false);
}

static int parse_format(struct hf_cli *cli, struct hf_output *ret_output)
{
	int rc = hf_output_parse(cli, ret_output);

	if (rc != 0 || ret_output->kind == HF_OUTPUT_TABLE || ret_output->kind == HF_OUTPUT_JSON ||
	    ret_output->kind == HF_OUTPUT_YAML)
		return rc;
	return hf_cli_usage(cli, "-o takes json or yaml with this verb, not '%s'",
			    hf_cli_flag(cli, "output"));
}

static int verb_describe(struct hf_cli *cli)
{
	HF_AUTO_EXPLANATION explanation = {.arena = NULL};
	HF_AUTO_CLI_REPLY pods = {.object = NULL};
	const struct hf_framework *framework;
	struct hf_table *events;
	HF_AUTO_OUTPUT output = {.kind = HF_OUTPUT_TABLE};
	const char *act = hf_cli_remediation_named(cli->args[0]);
	HF_AUTOFREE char *end = NULL;
	const char *rollout = hf_cli_rollout_named(cli->args[0]);
	HF_AUTO_DOC job = NULL;
	struct hf_error err;

	if (parse_format(cli, &output) != 0)
		return HF_EXIT_USAGE;
	if (act != NULL)
		return hf_cli_describe_remediation(cli, act, &output);
	if (rollout != NULL)
		return hf_cli_describe_rollout(cli, rollout, &output);
	if (hf_cli_find_job(cli, cli->args[0], &job, &framework, &err) != 0 ||
	    hf_cli_list_owned(cli, &hf_pods, job, &pods, &err) != 0)
		return hf_cli_fail(cli, &err);
	if (output.kind != HF_OUTPUT_TABLE)
		return print_objects(cli, &output, job, &pods);
	hf_cli_print_kept_notes(cli);
	print_head(cli, job, &pods);
	hf_output_conditions(cli->out, hf_doc_json(job));
	print_restarts(cli->out, hf_doc_json(job));
	print_pods(cli, &pods);
	hf_cli_mend_of_job(cli, job, print_mend, cli);
	if (hf_cli_events(cli, job, &events, &err) != 0)
		return hf_cli_fail(cli, &err);
	if (hf_table_rows(events) > 0) {
		fputs("\nEvents:\n", cli->out);
		hf_table_print(events, cli->out, true);
	}
	hf_table_destroy(events);
	if (hf_cli_explain(cli, framework, job, &explanation, &err) != 0)
		return hf_cli_fail(cli, &err);
	end = hf_cli_kept_end(cli, job);
	fprintf(cli->out, "\n%s %s", hf_doc_name(job), end == NULL ? "is " : "");
	hf_text_print_safe(cli->out, end != NULL ? end : hf_str_or(explanation.plan.summary, ""));
	fputc('\n', cli->out);
	return HF_EXIT_OK;
}

static const struct hf_flag describe_flags[] = {
	{"output", 'o', "FORMAT", "json or yaml: the job and its pods, or the object", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_describe = {
	.name = "describe",
	.connects = true,
	.takes_kind = true,
	.reads_kept = true,
	.summary = "Show one job with its pods and restarts, one Remediation or DeviceRollout",
	.usage = "JOB | remediation/NAME | rollout/NAME",
	.note = HF_CLI_NOTE_RUN,
	.group = HF_CLI_LOOK,
	.examples = "  holdfast describe ddp\n"
		    "  holdfast describe pytorchjob/ddp\n"
		    "  holdfast describe remediation/gpu-7-3\n"
		    "  holdfast describe rollout/driver-570\n"
		    "  holdfast describe ddp -o json\n",
	.flags = describe_flags,
	.args_min = 1,
	.words = HF_CLI_WORDS_ACTS,
	.args_max = 1,
	.run = verb_describe,
};
