/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/verbs_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/disks.h"
#include "cli/events.h"
#include "cli/explain.h"
#include "cli/leader.h"
#include "cli/remediation.h"
#include "cli/request.h"
#include "cli/rollout.h"
#include "cli/text.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* why JOB: prints the state of the job, the reasons with their times, and the operator's next step.
 * why node/NAME: prints what keeps pods off a node (why_node.c).
 * why rollout/NAME: prints the state of a DeviceRollout and its reasons (rollout.c). */

#define PRINT_BYTES_MAX ((size_t)16 << 20)

static void print_clock(FILE *out, hf_time time)
{
	time_t seconds = (time_t)(time / HF_SECOND);
	struct tm tm;

	if (time != HF_TIME_NONE && localtime_r(&seconds, &tm) != NULL)
		fprintf(out, " %02d:%02d:%02d  ", tm.tm_hour, tm.tm_min, tm.tm_sec);
	else
		fputs(" now       ", out);
}

static struct hf_json *plan_to_json(const struct hf_plan *plan)
{
	struct hf_json *object = hf_json_object(), *list;
	char text[HF_TIME_TEXT_MAX];

	hf_json_set_str(object, "summary", plan->summary);
	list = hf_json_ensure_array(object, "reasons");
	for (size_t i = 0; i < plan->reasons_len; i++) {
		struct hf_json *reason = hf_json_object();
		if (plan->reasons[i].time != HF_TIME_NONE) {
			hf_time_format_micro(plan->reasons[i].time, text);
			hf_json_set_str(reason, "time", text);
		}
		hf_json_set_str(reason, "topic", hf_topic_name(plan->reasons[i].topic));
		hf_json_set_str(reason, "text", plan->reasons[i].text);
		hf_json_append(list, reason);
	}
	list = hf_json_ensure_array(object, "stages");
	for (size_t i = 0; i < plan->stages_len; i++) {
		struct hf_json *stage = hf_json_array();
		for (size_t k = 0; k < plan->stages[i].actions_len; k++) {
			struct hf_json *action = hf_json_object();
			hf_json_set_str(action, "do",
					hf_action_name(plan->stages[i].actions[k].kind));
			hf_json_set_str(action, "name", plan->stages[i].actions[k].name);
			hf_json_append(stage, action);
		}
		hf_json_append(list, stage);
	}
	hf_json_set_bool(object, "statusChanged", plan->status_changed);
	if (plan->wake_at != HF_TIME_NEVER) {
		hf_time_format_micro(plan->wake_at, text);
		hf_json_set_str(object, "wakeAt", text);
	}
	return object;
}

static void add_disk(void *arg, const char *node, const char *why)
{
	HF_AUTOFREE char *text = hf_xasprintf("node '%s': %s", node, why);

	hf_json_append(hf_json_ensure_array(arg, "disks"), hf_json_string(text));
}

static void print_disk(void *arg, const char *node, const char *why)
{
	const struct hf_cli *cli = arg;

	print_clock(cli->out, HF_TIME_NONE);
	fprintf(cli->out, "%-9s node '%s': ", "disk", node);
	hf_text_print_safe(cli->out, why);
	fputc('\n', cli->out);
}

static void add_mend(void *arg, hf_time at, const char *text)
{
	struct hf_json *reason = hf_json_object();
	char time[HF_TIME_TEXT_MAX];

	if (at != HF_TIME_NONE) {
		hf_time_format_micro(at, time);
		hf_json_set_str(reason, "time", time);
	}
	hf_json_set_str(reason, "topic", "mend");
	hf_json_set_str(reason, "text", text);
	hf_json_append(hf_json_ensure_array(arg, "reasons"), reason);
}

static void add_reason(struct hf_json *object, const char *topic, const char *text)
{
	struct hf_json *reason = hf_json_object();

	hf_json_set_str(reason, "topic", topic);
	hf_json_set_str(reason, "text", text);
	hf_json_append(hf_json_ensure_array(object, "reasons"), reason);
}

static void add_no_leader(struct hf_cli *cli, struct hf_doc *job, struct hf_json *object)
{
	HF_AUTO_NO_LEADER missing = {.found = NULL};

	hf_no_leader_find(cli, &job, 1, &missing);
	if (missing.found == NULL)
		return;
	add_reason(object, "blocked", missing.found);
	add_reason(object, "next", missing.action);
}

static int print_json(struct hf_cli *cli, const struct hf_explanation *explanation,
		      struct hf_doc *job, struct hf_doc *refusal)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(PRINT_BYTES_MAX);
	HF_AUTO_JSON object = plan_to_json(&explanation->plan);
	HF_AUTOFREE char *end = hf_cli_kept_end(cli, job);

	if (refusal != NULL)
		hf_json_set_str(object, "refused",
				hf_json_path_str(hf_doc_json(refusal), "message", NULL));
	if (end != NULL)
		hf_json_set_str(object, "summary", end);
	if (!hf_str_is_empty(cli->kept_notes))
		hf_json_set_str(object, "run", cli->kept_notes);
	add_no_leader(cli, job, object);
	hf_cli_mend_of_job(cli, job, add_mend, object);
	hf_cli_short_disks(cli, explanation->docs, explanation->n_docs, add_disk, object);
	hf_json_write(object, HF_JSON_INDENTED, &text);
	fprintf(cli->out, "%s\n", text.data);
	return HF_EXIT_OK;
}

/* Prints a reason. If `run --inject` sent the signal, the operator could not know that. */
static void print_reason(const struct hf_cli *cli, const char *text)
{
	const char *guess = strstr(text, "Holdfast did not send the signal");

	if (guess == NULL || strstr(hf_str_or(cli->kept_notes, ""), "from --inject") == NULL) {
		hf_text_print_safe(cli->out, text);
		return;
	}
	HF_AUTOFREE char *before = hf_xstrndup(text, (size_t)(guess - text));

	hf_text_print_safe(cli->out, before);
	fputs("--inject of 'holdfast run' sent a signal to this job", cli->out);
}

/* Returns the summary, which is the state and what holds the job: "Created for 33s: no node takes …". If a
 * line below has the same text with its topic, returns the state alone. The caller frees it. */
static char *make_headline(const struct hf_plan *plan)
{
	const char *summary = hf_str_or(plan->summary, "");
	const char *colon = strstr(summary, ": ");

	for (size_t i = 0; colon != NULL && i < plan->reasons_len; i++)
		if (plan->reasons[i].topic == HF_TOPIC_BLOCKED &&
		    hf_streq(plan->reasons[i].text, colon + 2))
			return hf_xstrndup(summary, (size_t)(colon - summary));
	return hf_xstrdup(summary);
}

static void print_text(struct hf_cli *cli, struct hf_doc *job, const struct hf_plan *plan)
{
	HF_AUTOFREE char *end = hf_cli_kept_end(cli, job);
	HF_AUTOFREE char *headline = end == NULL ? make_headline(plan) : hf_steal(&end);

	fprintf(cli->out, "%s/%s %s", hf_doc_namespace(job), hf_doc_name(job),
		cli->kept_end == NULL ? "is " : "");
	hf_text_print_safe(cli->out, headline);
	fputc('\n', cli->out);
	for (size_t i = 0; i < plan->reasons_len; i++) {
		const struct hf_reason *reason = &plan->reasons[i];
		print_clock(cli->out, reason->time);
		fprintf(cli->out, "%-9s ", hf_topic_name(reason->topic));
		print_reason(cli, reason->text);
		fputc('\n', cli->out);
	}
}

static void print_no_leader(struct hf_cli *cli, struct hf_doc *job)
{
	HF_AUTO_NO_LEADER missing = {.found = NULL};

	hf_no_leader_find(cli, &job, 1, &missing);
	if (missing.found == NULL)
		return;
	fputs(" now       blocked   ", cli->out);
	hf_text_print_safe(cli->out, missing.found);
	fputs("\n now       next      ", cli->out);
	hf_text_print_safe(cli->out, missing.action);
	fputc('\n', cli->out);
}

static void print_mend(void *arg, hf_time at, const char *text)
{
	const struct hf_cli *cli = arg;

	print_clock(cli->out, at);
	fprintf(cli->out, "%-9s ", "mend");
	hf_text_print_safe(cli->out, text);
	fputc('\n', cli->out);
}

/* Prints why the server refuses to create an object of the plan. The operator repeats the request
 * with growing delays; the job waits until a user removes the cause. */
static void print_refusal(struct hf_cli *cli, const struct hf_json *event)
{
	int64_t count = hf_json_i64(hf_json_get(event, "count"), 1);

	print_clock(cli->out, hf_event_time(event));
	fprintf(cli->out, "%-9s ", "blocked");
	hf_text_print_safe(cli->out, hf_str_or(hf_json_path_str(event, "message", NULL), ""));
	if (count > 1)
		fprintf(cli->out, " (%" PRId64 " times)", count);
	fputs("\n now       next      the operator tries again, with growing delays\n", cli->out);
}

/* True if the plan already has the text of this Event. The operator itself refuses some objects,
 * for instance if a name is in use, and then plan and Event say the same. */
static bool is_in_plan(const struct hf_plan *plan, const struct hf_json *event)
{
	const char *message = hf_str_or(hf_json_path_str(event, "message", NULL), "");
	static const char prefix[] = "Error creating: ";

	if (hf_str_has_prefix(message, prefix))
		message += sizeof(prefix) - 1;
	for (size_t i = 0; i < plan->reasons_len; i++)
		if (hf_streq(plan->reasons[i].text, message))
			return true;
	return false;
}

static bool makes_something(const struct hf_plan *plan)
{
	for (size_t i = 0; i < plan->stages_len; i++)
		for (size_t k = 0; k < plan->stages[i].actions_len; k++)
			switch (plan->stages[i].actions[k].kind) {
			case HF_ACTION_CREATE_POD:
			case HF_ACTION_CREATE_SERVICE:
			case HF_ACTION_CREATE_EXTRA: return true;
			default: break;
			}
	return false;
}

/* Prints {"summary", "reasons"}. what: "node gpu-7". */
static int print_account(const struct hf_cli *cli, const char *what, const char *name,
			 const struct hf_json *account, bool as_json)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(PRINT_BYTES_MAX);
	const struct hf_json *reasons;

	if (as_json) {
		hf_json_write(account, HF_JSON_INDENTED, &text);
		fprintf(cli->out, "%s\n", text.data);
		return HF_EXIT_OK;
	}
	fprintf(cli->out, "%s %s is ", what, name);
	hf_text_print_safe(cli->out, hf_json_path_str(account, "summary", NULL));
	fputc('\n', cli->out);
	reasons = hf_json_get(account, "reasons");
	for (size_t i = 0; i < hf_json_len(reasons); i++) {
		const struct hf_json *reason = hf_json_item(reasons, i);
		const char *at = hf_json_path_str(reason, "time", NULL);
		hf_time time;

		if (at == NULL || hf_time_parse(at, &time, NULL) != 0)
			time = HF_TIME_NONE;
		print_clock(cli->out, time);
		fprintf(cli->out, "%-9s ", hf_json_path_str(reason, "topic", NULL));
		hf_text_print_safe(cli->out, hf_json_path_str(reason, "text", NULL));
		fputc('\n', cli->out);
	}
	return HF_EXIT_OK;
}

static int why_node(struct hf_cli *cli, const char *name, bool as_json)
{
	HF_AUTO_JSON account = NULL;
	struct hf_error err;

	if (hf_cli_why_node(cli, name, &account, &err) != 0)
		return hf_cli_fail(cli, &err);
	return print_account(cli, "node", name, account, as_json);
}

static int why_rollout(struct hf_cli *cli, const char *name, bool as_json)
{
	HF_AUTO_JSON account = NULL;
	struct hf_error err;

	if (hf_cli_why_rollout(cli, name, &account, &err) != 0)
		return hf_cli_fail(cli, &err);
	return print_account(cli, "rollout", name, account, as_json);
}

static int verb_why(struct hf_cli *cli)
{
	const char *node = hf_cli_node_named(cli->args[0]);
	const char *rollout = hf_cli_rollout_named(cli->args[0]);
	HF_AUTO_EXPLANATION explanation = {.arena = NULL};
	const char *output = hf_cli_flag(cli, "output");
	const struct hf_framework *framework;
	HF_AUTO_DOC job = NULL;
	HF_AUTO_DOC refusal = NULL;
	struct hf_error err;

	if (output != NULL && !hf_streq(output, "json"))
		return hf_cli_usage(cli, "-o takes only json with this verb, not '%s'", output);
	if (node != NULL)
		return why_node(cli, node, output != NULL);
	if (rollout != NULL)
		return why_rollout(cli, rollout, output != NULL);
	if (hf_cli_find_job(cli, cli->args[0], &job, &framework, &err) != 0 ||
	    hf_cli_explain(cli, framework, job, &explanation, &err) != 0)
		return hf_cli_fail(cli, &err);
	/* The Event is an addition: if Events cannot be read, the rest is still printed. */
	if (makes_something(&explanation.plan))
		(void)!hf_cli_last_refusal(cli, job, &refusal, &err);
	if (refusal != NULL && is_in_plan(&explanation.plan, hf_doc_json(refusal))) {
		hf_doc_unref(refusal);
		refusal = NULL;
	}
	if (output != NULL)
		return print_json(cli, &explanation, job, refusal);
	hf_cli_print_kept_notes(cli);
	print_text(cli, job, &explanation.plan);
	print_no_leader(cli, job);
	hf_cli_mend_of_job(cli, job, print_mend, cli);
	if (refusal != NULL)
		print_refusal(cli, hf_doc_json(refusal));
	hf_cli_short_disks(cli, explanation.docs, explanation.n_docs, print_disk, cli);
	return HF_EXIT_OK;
}

static const struct hf_flag why_flags[] = {
	{"output", 'o', "FORMAT", "json: also has the operator's plan for the next step", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_why = {
	.name = "why",
	.connects = true,
	.takes_kind = true,
	.reads_kept = true,
	.summary = "Explain the state of a job, a node or a rollout, and what happens next",
	.usage = "JOB | node/NAME | rollout/NAME",
	.note = HF_CLI_NOTE_RUN,
	.group = HF_CLI_LOOK,
	.examples = "  holdfast why ddp\n"
		    "  holdfast why pytorchjob/ddp -n team-a\n"
		    "  holdfast why ddp -o json\n"
		    "  holdfast why node/gpu-7\n"
		    "  holdfast why rollout/driver-570\n",
	.flags = why_flags,
	.args_min = 1,
	.words = HF_CLI_WORDS_NODES,
	.args_max = 1,
	.run = verb_why,
};
