/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/check_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/text.h"
#include "cli/verbs_internal.h"
#include "json/json.h"

#include <stdlib.h>
#include <string.h>

/* holdfast check: reads the facts of a cluster, prints a line for each finding, and what to do. */

/* A request to a server that answers at all takes far less. */
#define REQUEST_TIMEOUT (10 * HF_SECOND)
#define JSON_BYTES_MAX ((size_t)4 << 20)

static const char *const words[] = {
	[HF_CHECK_OK] = "ok", [HF_CHECK_WARN] = "warn", [HF_CHECK_FAIL] = "fail"};

static size_t count_lines(const struct hf_check_lines *lines, enum hf_check_result result)
{
	size_t n = 0;

	for (size_t i = 0; i < lines->list.len; i++)
		n += lines->list.items[i].result == result;
	return n;
}

static void print_line(const struct hf_cli *cli, const struct hf_check_line *line, int width)
{
	static const char *const colors[] = {[HF_CHECK_OK] = "\033[32m",
					     [HF_CHECK_WARN] = "\033[33m",
					     [HF_CHECK_FAIL] = "\033[31m"};

	fprintf(cli->out, "%s%-4s%s  %-*s  ", cli->color ? colors[line->result] : "",
		words[line->result], cli->color ? "\033[0m" : "", width, line->check);
	hf_text_print(cli->out, line->found, cli->utf8);
	if (line->action != NULL) {
		fprintf(cli->out, "\n      %*s  -> ", width, "");
		hf_text_print(cli->out, line->action, cli->utf8);
	}
	fputc('\n', cli->out);
}

static void print_steps(const struct hf_cli *cli, const struct hf_check_step *steps)
{
	fputs("\nSteps to Holdfast (docs/how-to/migrate.md):\n", cli->out);
	for (size_t i = 0; i < HF_CHECK_STEPS; i++) {
		fprintf(cli->out, " %zu. %s%s\n", i + 1, steps[i].title,
			steps[i].done ? " (done)" : "");
		if (steps[i].done)
			continue;
		fputs("    ", cli->out);
		hf_text_print(cli->out, steps[i].command, cli->utf8);
		fputc('\n', cli->out);
	}
}

static void print_lines(const struct hf_cli *cli, const struct hf_check_lines *lines,
			const struct hf_check_step *steps)
{
	int width = 0;

	for (size_t i = 0; i < lines->list.len; i++) {
		int len = (int)strlen(lines->list.items[i].check);

		width = len > width ? len : width;
	}
	for (size_t i = 0; i < lines->list.len; i++)
		print_line(cli, &lines->list.items[i], width);
	if (steps != NULL)
		print_steps(cli, steps);
	fprintf(cli->out, "\n%zu ok, %zu warn, %zu fail\n", count_lines(lines, HF_CHECK_OK),
		count_lines(lines, HF_CHECK_WARN), count_lines(lines, HF_CHECK_FAIL));
}

static void print_json(const struct hf_cli *cli, const struct hf_check_lines *lines,
		       const struct hf_check_step *steps)
{
	HF_AUTO_JSON object = hf_json_object();
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(JSON_BYTES_MAX);
	struct hf_json *checks = hf_json_ensure_array(object, "checks");

	for (size_t i = 0; i < lines->list.len; i++) {
		const struct hf_check_line *line = &lines->list.items[i];
		struct hf_json *item = hf_json_object();

		hf_json_set_str(item, "check", line->check);
		hf_json_set_str(item, "result", words[line->result]);
		hf_json_set_str(item, "found", line->found);
		if (line->action != NULL)
			hf_json_set_str(item, "action", line->action);
		hf_json_append(checks, item);
	}
	for (size_t i = 0; steps != NULL && i < HF_CHECK_STEPS; i++) {
		struct hf_json *item = hf_json_object();

		hf_json_set_str(item, "title", steps[i].title);
		hf_json_set_str(item, "command", steps[i].command);
		hf_json_set_bool(item, "done", steps[i].done);
		hf_json_append(hf_json_ensure_array(object, "steps"), item);
	}
	hf_json_set_i64(object, "failed", (int64_t)count_lines(lines, HF_CHECK_FAIL));
	hf_json_set_i64(object, "warned", (int64_t)count_lines(lines, HF_CHECK_WARN));
	hf_json_write(object, HF_JSON_INDENTED, &text);
	fprintf(cli->out, "%s\n", text.data);
}

static int check_cluster(struct hf_cli *cli, struct hf_check_facts *facts,
			 struct hf_check_lines *lines)
{
	struct hf_check_step steps[HF_CHECK_STEPS] = {{.title = NULL}};
	const struct hf_check_step *shown = facts->migrate ? steps : NULL;
	struct hf_error err;

	if (hf_check_fetch(cli, facts, &err) != 0) {
		(void)hf_cli_fail(cli, &err);
		return HF_EXIT_UNREACHABLE;
	}
	hf_check_ask_rights(cli, facts);
	hf_check_decide(facts, lines);
	if (facts->migrate)
		hf_check_plan(facts, steps);
	if (hf_cli_has(cli, "output"))
		print_json(cli, lines, shown);
	else
		print_lines(cli, lines, shown);
	for (size_t i = 0; i < HF_CHECK_STEPS; i++)
		free(steps[i].command);
	return count_lines(lines, HF_CHECK_FAIL) > 0 ? HF_EXIT_FAILED : HF_EXIT_OK;
}

static int verb_check(struct hf_cli *cli)
{
	const char *output = hf_cli_flag(cli, "output");
	struct hf_check_facts facts;
	struct hf_check_lines lines;
	int rc;

	if (output != NULL && !hf_streq(output, "json"))
		return hf_cli_usage(cli, "-o takes only json with this verb, not '%s'", output);
	if (cli->n_args > 0 && !hf_streq(cli->args[0], "migrate"))
		return hf_cli_usage(cli, "the argument can only be 'migrate', not '%s'",
				    cli->args[0]);
	if (cli->request_timeout == 0)
		cli->request_timeout = REQUEST_TIMEOUT;
	hf_check_facts_init(&facts);
	hf_check_lines_init(&lines);
	facts.migrate = cli->n_args > 0;
	facts.as_operator = hf_cli_has(cli, "as-operator");
	facts.ns = cli->ns;
	rc = check_cluster(cli, &facts, &lines);
	hf_check_lines_release(&lines);
	hf_check_facts_release(&facts);
	return rc;
}

static const struct hf_flag check_flags[] = {
	{"as-operator", 0, NULL, "check that your credentials have the rights of the operator",
	 NULL},
	{"output", 'o', "FORMAT", "json: each check with its result and what to do", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_check = {
	.name = "check",
	.connects = true,
	.summary = "Check a cluster before and after an installation",
	.usage = "[migrate]",
	.group = HF_CLI_ON_CLUSTER,
	.examples = "  holdfast check\n"
		    "  holdfast check migrate\n"
		    "  holdfast check -o json\n",
	.note = "With 'migrate', also what a migration from training-operator 1.x needs, and its steps.\n"
		"Nothing is changed. The exit code is 1 if a check failed.",
	.flags = check_flags,
	.words = HF_CLI_WORDS_CHECK,
	.args_max = 1,
	.run = verb_check,
};
