/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast suspend and holdfast resume: set spec.runPolicy.suspend of a job. */
#include "cli/verbs_internal.h"

#include "cli/job_action.h"

static int prepare_suspend(struct hf_cli *cli, const struct hf_framework *framework,
			   struct hf_doc *job, struct hf_json **ret_patch, struct hf_error *err)
{
	return hf_job_patch_suspend(job, true, ret_patch, err);
}

static int prepare_resume(struct hf_cli *cli, const struct hf_framework *framework,
			  struct hf_doc *job, struct hf_json **ret_patch, struct hf_error *err)
{
	return hf_job_patch_suspend(job, false, ret_patch, err);
}

static int verb_suspend(struct hf_cli *cli)
{
	static const struct hf_job_action act = {.prepare = prepare_suspend,
						 .event_reason = "SuspendRequested",
						 .done = "suspended",
						 .already = "is already suspended"};

	return hf_job_action_run_all(cli, &act);
}

static int verb_resume(struct hf_cli *cli)
{
	static const struct hf_job_action act = {.prepare = prepare_resume,
						 .event_reason = "ResumeRequested",
						 .done = "resumed",
						 .already = "is not suspended"};

	return hf_job_action_run_all(cli, &act);
}

static const struct hf_flag act_flags[] = {
	HF_JOB_ACTION_FLAG_REASON,
	HF_JOB_ACTION_FLAG_DRY_RUN,
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_suspend = {
	.name = "suspend",
	.connects = true,
	.summary = "Suspend a job: delete its pods and keep the job",
	.usage = "JOB…",
	.note = HF_CLI_NOTE_JOB,
	.group = HF_CLI_ACT,
	.examples = "  holdfast suspend ddp\n"
		    "  holdfast suspend pytorchjob/ddp --reason 'making room'\n"
		    "  holdfast suspend ddp --dry-run=server\n",
	.flags = act_flags,
	.args_min = 1,
	.words = HF_CLI_WORDS_JOBS,
	.args_max = -1,
	.run = verb_suspend,
};

const struct hf_cli_verb hf_verb_resume = {
	.name = "resume",
	.connects = true,
	.summary = "Resume a suspended job: create its pods again",
	.usage = "JOB…",
	.note = HF_CLI_NOTE_JOB,
	.group = HF_CLI_ACT,
	.examples = "  holdfast resume ddp\n"
		    "  holdfast resume pytorchjob/ddp --reason 'room again'\n"
		    "  holdfast resume ddp --dry-run=server\n",
	.flags = act_flags,
	.args_min = 1,
	.words = HF_CLI_WORDS_JOBS,
	.args_max = -1,
	.run = verb_resume,
};
