/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Changes a job for `suspend`, `resume`, `restart` and `delete`: finds each job named on the
 * command line, sends the verb's patch, and records --reason as an event. Refuses jobs that have
 * ended. */
#include "cli/job_action.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"
#include "store/resource.h"

#include <stdlib.h>

#define DETAIL_BYTES_MAX 1024

static struct hf_json *reference_to(struct hf_doc *job)
{
	const struct hf_json *root = hf_doc_json(job);
	struct hf_json *reference = hf_json_object();

	hf_json_set_str(reference, "apiVersion", hf_json_path_str(root, "apiVersion", NULL));
	hf_json_set_str(reference, "kind", hf_json_path_str(root, "kind", NULL));
	hf_json_set_str(reference, "name", hf_doc_name(job));
	hf_json_set_str(reference, "namespace", hf_doc_namespace(job));
	hf_json_set_str(reference, "uid", hf_doc_uid(job));
	return reference;
}

int hf_job_record_reason(struct hf_cli *cli, struct hf_doc *job, const char *event_reason,
			 struct hf_error *err)
{
	const char *why = hf_cli_flag(cli, "reason");
	HF_AUTOFREE char *prefix = hf_xasprintf("%s.", hf_doc_name(job));
	struct hf_json *event = hf_json_object(), *metadata;
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	char now[HF_TIME_TEXT_MAX];
	int rc = 0;

	hf_time_format(hf_loop_wall(cli->loop), now);
	hf_json_set_str(event, "apiVersion", "v1");
	hf_json_set_str(event, "kind", "Event");
	metadata = hf_json_ensure_object(event, "metadata");
	hf_json_set_str(metadata, "generateName", prefix);
	hf_json_set_str(metadata, "namespace", hf_doc_namespace(job));
	hf_json_set(event, "involvedObject", reference_to(job));
	hf_json_set_str(event, "type", "Normal");
	hf_json_set_str(event, "reason", event_reason);
	hf_json_set_str(event, "message", why);
	hf_json_set_str(hf_json_ensure_object(event, "source"), "component", "holdfast");
	hf_json_set_str(event, "firstTimestamp", now);
	hf_json_set_str(event, "lastTimestamp", now);
	hf_json_set_i64(event, "count", 1);

	HF_AUTO_DOC body = hf_doc_from_json(event);
	struct hf_request request = {.verb = HF_VERB_CREATE,
				     .resource = &hf_events,
				     .ns = hf_doc_namespace(job),
				     .body = body};
	if (why != NULL)
		rc = hf_cli_request(cli, &request, &reply, err);
	return rc == 0 ? 0
		       : hf_error_wrap(
				 err,
				 "the job was changed, but --reason could not be recorded as an event");
}

int hf_job_refuse_ended(struct hf_doc *job, struct hf_error *err)
{
	struct hf_job_facts facts;

	hf_job_facts_read(hf_doc_json(job), &facts);
	if (!hf_streq(facts.state, "Succeeded") && !hf_streq(facts.state, "Failed"))
		return 0;
	return hf_error_set(
		err, HF_E_CONFLICT,
		"%s has already ended (%s) and cannot be changed; create a new job instead",
		hf_doc_name(job), facts.state);
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
