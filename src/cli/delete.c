/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast delete: asks for confirmation on a terminal, records --reason as an event, then
 * deletes each job. The garbage collector deletes the pods and services. */
#include "cli/verbs_internal.h"

#include "base/str.h"
#include "cli/job_action.h"

#include <string.h>
#include <unistd.h>

static bool ask_to_delete(struct hf_cli *cli, const struct hf_framework *framework,
			  struct hf_doc *job)
{
	char answer[8];

	/* Asks the user for each job, unless a flag makes that unnecessary or standard input is no
	 * terminal. */
	if (hf_cli_has(cli, "yes") || hf_cli_has(cli, "dry-run") || isatty(STDIN_FILENO) != 1)
		return true;
	fprintf(cli->err, "Delete %s/%s and its pods? [y/N] ", framework->singular,
		hf_doc_name(job));
	if (fgets(answer, sizeof(answer), stdin) == NULL)
		return false;
	return answer[0] == 'y' || answer[0] == 'Y';
}

static int delete_one(struct hf_cli *cli, const char *word, bool dry_run, const void *arg HF_UNUSED)
{
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	const struct hf_framework *framework;
	HF_AUTO_DOC job = NULL;
	struct hf_error err;
	struct hf_request request = {.verb = HF_VERB_DELETE,
				     .grace_seconds = HF_GRACE_DEFAULT,
				     .propagation = HF_PROPAGATE_BACKGROUND,
				     .dry_run = dry_run};

	if (hf_cli_find_job(cli, word, &job, &framework, &err) != 0)
		return hf_cli_fail(cli, &err);
	if (!ask_to_delete(cli, framework, job)) {
		fprintf(cli->err, "holdfast: %s/%s is not deleted: you did not answer 'y'\n",
			framework->singular, hf_doc_name(job));
		return HF_EXIT_FAILED;
	}
	if (!dry_run && hf_job_record_reason(cli, job, "DeleteRequested", &err) != 0)
		return hf_cli_fail(cli, &err);
	request.resource = hf_cli_resource_of(framework);
	request.ns = hf_doc_namespace(job);
	request.name = hf_doc_name(job);
	request.precondition_uid = hf_doc_uid(job);
	if (hf_cli_has(cli, "foreground"))
		request.propagation = HF_PROPAGATE_FOREGROUND;
	if (hf_cli_request(cli, &request, &reply, &err) != 0)
		return hf_cli_fail(cli, &err);
	fprintf(cli->out, "%s/%s deleted%s\n", framework->singular, hf_doc_name(job),
		dry_run ? " (dry run)" : "");
	return HF_EXIT_OK;
}

static int verb_delete(struct hf_cli *cli)
{
	return hf_cli_each_job(cli, delete_one, NULL);
}

static const struct hf_flag delete_flags[] = {
	{"yes", 'y', NULL, "delete without asking", NULL},
	{"foreground", 0, NULL, "remove the job only after its pods and services are gone", NULL},
	HF_JOB_ACTION_FLAG_REASON,
	HF_JOB_ACTION_FLAG_DRY_RUN,
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_delete = {
	.name = "delete",
	.connects = true,
	.summary = "Delete a job with its pods and services",
	.usage = "JOB…",
	.note = HF_CLI_NOTE_JOB,
	.group = HF_CLI_ACT,
	.examples = "  holdfast delete ddp\n"
		    "  holdfast delete pytorchjob/ddp --yes\n"
		    "  holdfast delete ddp --foreground\n",
	.flags = delete_flags,
	.args_min = 1,
	.words = HF_CLI_WORDS_JOBS,
	.args_max = -1,
	.run = verb_delete,
};
