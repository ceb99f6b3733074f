/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/verbs_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/act.h"
#include "core/names.h"

#include <stdlib.h>
#include <time.h>

/* A new value of the annotation is one restart (core/names.h): the time makes it new. */
static int verb_restart(struct hf_cli *cli)
{
	const char *rank = hf_cli_flag(cli, "rank");
	HF_AUTO_JSON patch = hf_json_object();
	struct hf_json *annotations;
	HF_AUTOFREE char *value = NULL;
	char now[HF_TIME_TEXT_MAX];
	struct timespec ts;

	if (rank != NULL && hf_dns1123_label_problem(rank) != NULL)
		return hf_cli_usage(cli, "--rank takes a replica such as worker-1, not '%s'", rank);
	(void)clock_gettime(CLOCK_REALTIME, &ts);
	hf_time_format_micro((hf_time)ts.tv_sec * HF_SECOND + ts.tv_nsec, now);
	value = rank != NULL ? hf_xasprintf("%s %s", now, rank) : hf_xstrdup(now);
	annotations =
		hf_json_ensure_object(hf_json_ensure_object(patch, "metadata"), "annotations");
	hf_json_set_str(annotations, HF_ANNOTATION_RESTART, value);
	return hf_act_patch_all(cli, patch, "RestartRequested", "restarting");
}

static const struct hf_flag restart_flags[] = {
	{"rank", 0, "REPLICA", "only this one, such as worker-1"},
	HF_ACT_FLAG_REASON,
	HF_ACT_FLAG_DRY_RUN,
	{NULL, 0, NULL, NULL},
};

const struct hf_cli_verb hf_verb_restart = {
	.name = "restart",
	.connects = true,
	.summary = "Restart a job or one of its replicas; charged to no budget",
	.usage = "JOB…",
	.examples = "  holdfast restart ddp\n"
		    "  holdfast restart ddp --rank worker-1\n"
		    "  holdfast restart ddp --reason 'new data set'\n",
	.flags = restart_flags,
	.args_min = 1,
	.args_max = -1,
	.run = verb_restart,
};
