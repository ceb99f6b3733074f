/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/verbs_internal.h"

#include "cli/act.h"

static int set_suspend(struct hf_cli *cli, bool suspend)
{
	HF_AUTO_JSON patch = hf_json_object();
	struct hf_json *spec = hf_json_ensure_object(patch, "spec");

	hf_json_set_bool(hf_json_ensure_object(spec, "runPolicy"), "suspend", suspend);
	return suspend ? hf_act_patch_all(cli, patch, "SuspendRequested", "suspended")
		       : hf_act_patch_all(cli, patch, "ResumeRequested", "resumed");
}

static int verb_suspend(struct hf_cli *cli)
{
	return set_suspend(cli, true);
}

static int verb_resume(struct hf_cli *cli)
{
	return set_suspend(cli, false);
}

static const struct hf_flag act_flags[] = {
	HF_ACT_FLAG_REASON,
	HF_ACT_FLAG_DRY_RUN,
	{NULL, 0, NULL, NULL},
};

const struct hf_cli_verb hf_verb_suspend = {
	.name = "suspend",
	.connects = true,
	.summary = "Stop a job's pods and keep the job",
	.usage = "JOB…",
	.examples = "  holdfast suspend ddp\n"
		    "  holdfast suspend pytorchjob/ddp --reason 'making room'\n"
		    "  holdfast suspend ddp --dry-run=server\n",
	.flags = act_flags,
	.args_min = 1,
	.args_max = -1,
	.run = verb_suspend,
};

const struct hf_cli_verb hf_verb_resume = {
	.name = "resume",
	.connects = true,
	.summary = "Let a suspended job train again",
	.usage = "JOB…",
	.examples = "  holdfast resume ddp\n"
		    "  holdfast resume pytorchjob/ddp --reason 'room again'\n"
		    "  holdfast resume ddp --dry-run=server\n",
	.flags = act_flags,
	.args_min = 1,
	.args_max = -1,
	.run = verb_resume,
};
