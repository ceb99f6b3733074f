/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast restart: writes an annotation that makes the operator restart the whole job or one
 * replica. */
#include "cli/verbs_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/job_action.h"
#include "cli/rank.h"

#include <stdlib.h>

static int prepare_restart(struct hf_cli *cli, const struct hf_framework *framework,
			   struct hf_doc *job, struct hf_json **ret_patch, struct hf_error *err)
{
	const struct hf_job_restart restart = {.framework = framework,
					       .job = job,
					       .word = hf_cli_flag(cli, "rank"),
					       .now = hf_loop_wall(cli->loop)};

	return hf_job_patch_restart(&restart, ret_patch, err);
}

/* Appends which ranks restart. If the job's restartScope is Job, all ranks restart, even if --rank
 * names one. */
static void describe_restart(const struct hf_cli *cli, const struct hf_framework *framework,
			     struct hf_doc *job, struct hf_strbuf *line)
{
	const char *word = hf_cli_flag(cli, "rank");
	HF_AUTOFREE char *rank = NULL;
	bool together = hf_streq(hf_json_path_str(hf_doc_json(job), "spec", "runPolicy", "recovery",
						  "restartScope", NULL),
				 "Job");

	if (word == NULL || hf_cli_rank_name(framework, hf_doc_json(job), word, &rank, NULL) != 0)
		hf_strbuf_addstr(line, ": all ranks");
	else if (together)
		hf_strbuf_addf(
			line,
			": all ranks, not only %s, because spec.runPolicy.recovery.restartScope "
			"is Job",
			rank);
	else
		hf_strbuf_addf(line, ": %s alone", rank);
}

static int verb_restart(struct hf_cli *cli)
{
	static const struct hf_job_action act = {.prepare = prepare_restart,
						 .describe = describe_restart,
						 .event_reason = "RestartRequested",
						 .done = "restarting"};

	return hf_job_action_run_all(cli, &act);
}

static const struct hf_flag restart_flags[] = {
	{"rank", 0, "REPLICA", "restart only this replica, such as worker-1 or 0", NULL},
	HF_JOB_ACTION_FLAG_REASON,
	HF_JOB_ACTION_FLAG_DRY_RUN,
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_restart = {
	.name = "restart",
	.connects = true,
	.summary = "Restart a job or one replica, without using its restart budgets",
	.usage = "JOB…",
	.note = HF_CLI_NOTE_JOB,
	.group = HF_CLI_ACT,
	.examples = "  holdfast restart ddp\n"
		    "  holdfast restart ddp --rank worker-1\n"
		    "  holdfast restart ddp --reason 'new data set'\n",
	.flags = restart_flags,
	.args_min = 1,
	.words = HF_CLI_WORDS_JOBS,
	.args_max = -1,
	.run = verb_restart,
};
