/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/verbs_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/rank.h"
#include "cli/request.h"
#include "cli/facts.h"
#include "cli/pod_log.h"
#include "cli/text.h"

#include <stdlib.h>

/* wait JOB --for=STATE: waits until the job is in the state, or can no longer reach it.  Exit codes: 0,
 * 1 (the state cannot be reached), 124 (--timeout). */

#define WATCH_AGAIN_SPAN HF_SECOND

struct waiting {
	struct hf_cli *cli;
	const char *want; /* "succeeded", "running", "delete" */
	struct hf_doc *job;
	char *field_selector;
	const struct hf_resource *resource;
	struct hf_watch *watch;
	struct hf_call *call; /* the read of the job that is under way; NULL: none */
	struct hf_timer *timeout, *again;
	struct hf_pod_log *tail; /* --logs */
	bool look_once;          /* --timeout 0: read the job once */
	bool ending; /* exit_code is final, but the last lines of the log may still be printed */
	bool over;
	int exit_code;
	struct hf_strbuf result_text;
	FILE *result_out;
};

#define RESULT_BYTES_MAX 65536

static void end_wait(void *arg)
{
	struct waiting *waiting = arg;

	waiting->over = true;
	hf_loop_stop(waiting->cli->loop);
}

/* Sets the result of `wait`. Its text is printed after the last line of the log. */
static void HF_PRINTF(4, 5)
	finish_wait(struct waiting *waiting, int exit_code, FILE *out, const char *fmt, ...)
{
	va_list ap;

	if (waiting->ending)
		return;
	waiting->ending = true;
	waiting->exit_code = exit_code;
	waiting->result_out = out;
	va_start(ap, fmt);
	hf_strbuf_vaddf(&waiting->result_text, fmt, ap);
	va_end(ap);
	/* Wait for the end of the log, unless the job runs on (time-out, --for=running): then the
	 * log does not end. */
	if (waiting->tail != NULL && exit_code != HF_EXIT_TIMEOUT &&
	    !hf_streq(waiting->want, "running"))
		hf_pod_log_finish(waiting->tail, end_wait, waiting);
	else
		end_wait(waiting);
}

static void check_state(struct waiting *waiting, const struct hf_json *job)
{
	struct hf_job_facts facts;
	HF_AUTOFREE char *state = NULL;

	hf_job_facts_read(job, &facts);
	state = hf_xstrdup(facts.state);
	hf_str_lower(state);
	if (hf_streq(state, waiting->want)) {
		finish_wait(waiting, HF_EXIT_OK, waiting->cli->out, "%s is %s",
			    hf_doc_name(waiting->job), facts.state);
	} else if (hf_streq(state, "failed") || hf_streq(state, "succeeded")) {
		/* `wait --for=delete` goes on: a job that has ended can still be deleted. */
		if (hf_streq(waiting->want, "delete"))
			return;
		finish_wait(waiting, HF_EXIT_FAILED, waiting->cli->err,
			    "holdfast: %s is %s, so it will not become %s: %s",
			    hf_doc_name(waiting->job), facts.state, waiting->want, facts.message);
	}
}

static void report_deleted(struct waiting *waiting)
{
	if (hf_streq(waiting->want, "delete")) {
		finish_wait(waiting, HF_EXIT_OK, waiting->cli->out, "%s is deleted",
			    hf_doc_name(waiting->job));
		return;
	}
	finish_wait(waiting, HF_EXIT_FAILED, waiting->cli->err,
		    "holdfast: %s was deleted, so it will not become %s", hf_doc_name(waiting->job),
		    waiting->want);
}

static void on_event(void *arg, const struct hf_event *event)
{
	struct waiting *waiting = arg;

	switch (event->type) {
	case HF_EVENT_ADDED:
	case HF_EVENT_MODIFIED:
		if (hf_streq(hf_doc_uid(event->object), hf_doc_uid(waiting->job)))
			check_state(waiting, hf_doc_json(event->object));
		else
			/* the UID differs: a newer job has the name, so the awaited job was
			 * deleted */
			report_deleted(waiting);
		break;
	case HF_EVENT_DELETED: report_deleted(waiting); break;
	case HF_EVENT_BOOKMARK: break;
	case HF_EVENT_ENDED:
		/* The server may be restarting, so watch again after a second. Only --timeout
		 * limits the wait. */
		waiting->watch = hf_watch_stop(waiting->watch);
		hf_timer_arm(waiting->again, WATCH_AGAIN_SPAN);
		break;
	}
}

/* Starts a watch of the job that continues from this resourceVersion. */
static void watch_from(struct waiting *waiting, const char *version)
{
	struct hf_watch_options options = {.resource = waiting->resource,
					   .ns = hf_doc_namespace(waiting->job),
					   .field_selector = waiting->field_selector,
					   .resource_version = version};

	waiting->watch = hf_store_watch(waiting->cli->store, &options, on_event, waiting);
}

static void on_timeout(void *arg)
{
	struct waiting *waiting = arg;

	finish_wait(waiting, HF_EXIT_TIMEOUT, waiting->cli->err,
		    "holdfast: timed out waiting for %s to be %s", hf_doc_name(waiting->job),
		    hf_streq(waiting->want, "delete") ? "deleted" : waiting->want);
}

static void on_looked(void *arg, const struct hf_reply *reply)
{
	struct waiting *waiting = arg;

	waiting->call = NULL;
	if (waiting->ending)
		return;
	if (reply->code == HF_E_NOT_FOUND ||
	    (reply->code == 0 && !hf_streq(hf_doc_uid(reply->object), hf_doc_uid(waiting->job)))) {
		report_deleted(waiting);
	} else if (reply->code != 0) {
		hf_timer_arm(waiting->again, WATCH_AGAIN_SPAN);
	} else {
		check_state(waiting, hf_doc_json(reply->object));
		if (!waiting->ending && waiting->look_once)
			on_timeout(waiting);
		if (!waiting->ending)
			watch_from(waiting, hf_doc_resource_version(reply->object));
	}
}

/* Reads the job before the watch begins: a watch would not report a deletion that came before
 * it. */
static void look_and_watch(void *arg)
{
	struct waiting *waiting = arg;
	struct hf_request request = {.verb = HF_VERB_GET,
				     .resource = waiting->resource,
				     .ns = hf_doc_namespace(waiting->job),
				     .name = hf_doc_name(waiting->job)};

	waiting->call = hf_store_request(waiting->cli->store, &request, on_looked, waiting);
}

static int run_wait(struct waiting *waiting, hf_time timeout)
{
	waiting->field_selector = hf_xasprintf("metadata.name=%s", hf_doc_name(waiting->job));
	waiting->timeout = hf_timer_create(waiting->cli->loop, on_timeout, waiting);
	waiting->again = hf_timer_create(waiting->cli->loop, look_and_watch, waiting);
	if (timeout != 0)
		hf_timer_arm(waiting->timeout, timeout);
	hf_strbuf_init(&waiting->result_text, RESULT_BYTES_MAX);
	look_and_watch(waiting);
	hf_cli_run_until(waiting->cli, &waiting->over);
	hf_call_cancel(waiting->call);
	waiting->watch = hf_watch_stop(waiting->watch);
	waiting->timeout = hf_timer_destroy(waiting->timeout);
	waiting->again = hf_timer_destroy(waiting->again);
	waiting->tail = hf_pod_log_destroy(waiting->tail);
	free(waiting->field_selector);
	hf_text_print_safe(waiting->result_out, waiting->result_text.data);
	fputc('\n', waiting->result_out);
	hf_strbuf_release(&waiting->result_text);
	return waiting->exit_code;
}

/* Starts to print the log of rank 0, for --logs. */
static struct hf_pod_log *tail_first(struct hf_cli *cli, const struct hf_framework *framework,
				     struct hf_doc *job)
{
	HF_AUTOFREE char *rank = NULL;
	HF_AUTOFREE char *pod = NULL;

	if (hf_cli_rank_name(framework, hf_doc_json(job), "0", &rank, NULL) != 0)
		return NULL;
	pod = hf_xasprintf("%s-%s", hf_doc_name(job), rank);
	return hf_pod_log_create(cli, hf_doc_namespace(job), pod, framework->container_name);
}

static int verb_wait(struct hf_cli *cli)
{
	static const char *const states[] = {"succeeded", "running", "suspended", "failed",
					     "delete"};
	struct waiting waiting = {.cli = cli,
				  .want = hf_str_or(hf_cli_flag(cli, "for"), "succeeded")};
	const char *timeout_text = hf_cli_flag(cli, "timeout");
	const struct hf_framework *framework;
	HF_AUTO_DOC job = NULL;
	struct hf_error err;
	hf_time timeout = 0;
	bool known = false;
	int rc;

	for (size_t i = 0; i < HF_ARRAY_LEN(states); i++)
		known = known || hf_streq(waiting.want, states[i]);
	if (!known)
		return hf_cli_usage(cli,
				    "--for takes succeeded, running, suspended, failed or delete, "
				    "not '%s'",
				    waiting.want);
	if (timeout_text != NULL && hf_span_parse(timeout_text, &timeout, &err) != 0)
		return hf_cli_usage(cli, "--timeout: %s", err.text);
	rc = hf_cli_find_job(cli, cli->args[0], &job, &framework, &err);
	if (rc == HF_E_NOT_FOUND && hf_streq(waiting.want, "delete")) {
		fprintf(cli->out, "%s does not exist\n", cli->args[0]);
		return HF_EXIT_OK;
	}
	if (rc != 0)
		return hf_cli_fail(cli, &err);
	waiting.job = job;
	waiting.look_once = timeout_text != NULL && timeout == 0;
	waiting.resource = hf_cli_resource_of(framework);
	if (hf_cli_has(cli, "logs"))
		waiting.tail = tail_first(cli, framework, job);
	return run_wait(&waiting, timeout);
}

static const struct hf_flag wait_flags[] = {
	{"for", 0, "STATE", "succeeded, running, suspended, failed or delete", "succeeded"},
	{"timeout", 0, "SPAN",
	 "give up after this time, such as 10m, with exit code 124; 0: check once", "no limit"},
	{"logs", 0, NULL, "print the log of the first replica meanwhile", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_wait = {
	.name = "wait",
	.connects = true,
	.takes_kind = true,
	.summary = "Wait until a job is in a state, such as succeeded",
	.usage = "JOB [--for STATE]",
	.note = HF_CLI_NOTE_JOB,
	.group = HF_CLI_LOOK,
	.examples = "  holdfast wait ddp\n"
		    "  holdfast wait ddp --for=running --timeout 2m\n"
		    "  holdfast wait ddp --logs\n",
	.flags = wait_flags,
	.args_min = 1,
	.words = HF_CLI_WORDS_JOBS,
	.args_max = 1,
	.run = verb_wait,
};
