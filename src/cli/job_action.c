/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Changes a job for `suspend`, `resume`, `restart` and `delete`: finds each job named on the
 * command line, sends the verb's patch, and records --reason as an event. Refuses jobs that have
 * ended. */
#include "cli/job_action.h"

#include "base/mem.h"
#include "base/str.h"
#include "store/resource.h"

#include <stdlib.h>

#define DETAIL_BYTES_MAX 1024

int hf_job_record_reason(struct hf_cli *cli, struct hf_doc *job, const char *event_reason,
			 struct hf_error *err)
{
	const char *why = hf_cli_flag(cli, "reason");
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	HF_AUTO_DOC body = NULL;
	struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = &hf_events, .ns = hf_doc_namespace(job)};
	int rc;

	if (why == NULL)
		return 0;
	body = hf_job_reason_event(job, event_reason, why, hf_loop_wall(cli->loop));
	request.body = body;
	rc = hf_cli_request(cli, &request, &reply, err);
	return rc == 0 ? 0
		       : hf_error_wrap(
				 err,
				 "the job was changed, but --reason could not be recorded as an event");
}

static int act_on(struct hf_cli *cli, const char *word, bool dry_run, const void *arg)
{
	const struct hf_job_action *act = arg;
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	const struct hf_framework *framework;
	HF_AUTO_JSON patch = NULL;
	HF_AUTO_DOC job = NULL;
	HF_AUTO_STRBUF detail = HF_STRBUF_INIT(DETAIL_BYTES_MAX);
	const char *said = act->done;
	struct hf_error err;

	if (hf_cli_find_job(cli, word, &job, &framework, &err) != 0 ||
	    act->prepare(cli, framework, job, &patch, &err) != 0)
		return hf_cli_fail(cli, &err);
	if (patch == NULL)
		said = act->already;
	else if (hf_cli_patch_job(cli, framework, job, patch, &reply, &err) != 0 ||
		 (!dry_run && hf_job_record_reason(cli, job, act->event_reason, &err) != 0))
		return hf_cli_fail(cli, &err);
	if (patch != NULL && act->describe != NULL)
		act->describe(cli, framework, job, &detail);
	fprintf(cli->out, "%s/%s %s%s%s\n", framework->singular, hf_doc_name(job), said,
		detail.data, dry_run ? " (dry run)" : "");
	return HF_EXIT_OK;
}

int hf_cli_each_job(struct hf_cli *cli, hf_cli_job_fn act, const void *arg)
{
	int worst = HF_EXIT_OK;
	bool dry_run;
	int rc = hf_cli_dry_run(cli, &dry_run);

	if (rc != 0)
		return rc;
	for (int i = 0; i < cli->n_args; i++) {
		rc = act(cli, cli->args[i], dry_run, arg);
		worst = worst != HF_EXIT_OK ? worst : rc;
	}
	return worst;
}

int hf_job_action_run_all(struct hf_cli *cli, const struct hf_job_action *act)
{
	return hf_cli_each_job(cli, act_on, act);
}
