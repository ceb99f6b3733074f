/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/verbs_internal.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/rank.h"
#include "cli/request.h"
#include "cli/states.h"
#include "core/names.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

/*
 * logs JOB: of the rank that failed first, else of rank 0; of others with --rank.
 *
 * With -f a pod that is not there yet, or whose container has not started, is waited for.
 */

#define RANKS_MAX 128            /* streams of one verb */
#define RETRY_SPAN (500 * HF_MS) /* while a container has not started */
#define LINE_BYTES_MAX ((size_t)64 << 10)

struct logging;

struct source {
	struct logging *logging;
	char *pod;
	struct hf_log_stream *stream;
	struct hf_timer *again;
	struct hf_strbuf line; /* with a prefix: a line not yet whole */
	bool started;          /* bytes came */
	bool told;             /* that it is waited for */
	bool over;
};

struct logging {
	struct hf_cli *cli;
	struct hf_doc *job;
	struct hf_log_options options;
	bool prefix;
	struct source sources[RANKS_MAX];
	size_t n_sources;
	bool over;
	int exit_code;
};

static void start(void *arg);

static void finish_source(struct source *source)
{
	struct logging *logging = source->logging;

	source->over = true;
	for (size_t i = 0; i < logging->n_sources; i++)
		if (!logging->sources[i].over)
			return;
	logging->over = true;
	hf_loop_stop(logging->cli->loop);
}

static void print_line(struct source *source)
{
	FILE *out = source->logging->cli->out;
	const char *name = source->pod + strlen(hf_doc_name(source->logging->job)) + 1;

	fprintf(out, "%s | ", name);
	(void)fwrite(source->line.data, 1, source->line.len, out);
	fputc('\n', out);
	hf_strbuf_clear(&source->line);
}

static void print_bytes(struct source *source, const char *bytes, size_t len)
{
	if (!source->logging->prefix) {
		(void)fwrite(bytes, 1, len, source->logging->cli->out);
		return;
	}
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] == '\n')
			print_line(source);
		else
			hf_strbuf_addch(&source->line, bytes[i]);
	}
}

static void on_log(void *arg, const char *bytes, size_t len, int code, const char *message)
{
	struct source *source = arg;
	struct logging *logging = source->logging;
	struct hf_error err;

	if (len > 0) {
		source->started = true;
		print_bytes(source, bytes, len);
		if (fflush(logging->cli->out) != 0)
			finish_source(source); /* the reader went away */
		return;
	}
	source->stream = hf_log_stream_stop(source->stream);
	if (source->line.len > 0)
		print_line(source);
	/* A real kubelet and the embedded one both answer "is waiting to start" with 400. */
	if (logging->options.follow && !source->started && !logging->options.previous &&
	    (code == HF_E_BAD_REQUEST || code == HF_E_NOT_FOUND)) {
		if (!source->told)
			fprintf(logging->cli->err, "holdfast: waiting for %s to start\n",
				source->pod);
		source->told = true;
		hf_timer_arm(source->again, RETRY_SPAN);
		return;
	}
	if (code != 0) {
		(void)hf_error_set(&err, code, "%s: %s", source->pod, message);
		logging->exit_code = hf_cli_fail(logging->cli, &err);
	}
	finish_source(source);
}

static void start(void *arg)
{
	struct source *source = arg;
	struct hf_log_options options = source->logging->options;

	options.pod = source->pod;
	source->stream = hf_store_logs(source->logging->cli->store, &options, on_log, source);
}

static int add_source(struct logging *logging, const char *pod)
{
	struct source *source = &logging->sources[logging->n_sources];

	if (logging->n_sources == RANKS_MAX)
		return hf_cli_usage(logging->cli, "more than %d ranks at a time", RANKS_MAX);
	source->logging = logging;
	source->pod = hf_xstrdup(pod);
	hf_strbuf_init(&source->line, LINE_BYTES_MAX);
	source->again = hf_timer_create(logging->cli->loop, start, source);
	logging->n_sources++;
	return 0;
}

/* --rank worker-1,2 or all */
static int add_ranks(struct logging *logging, const struct hf_framework *framework,
		     const char *list, const struct hf_cli_reply *pods)
{
	HF_AUTOFREE char *copy = hf_xstrdup(list);
	char *rest = copy, *word;
	int rc = 0;

	if (hf_streq(list, "all")) {
		for (size_t i = 0; rc == 0 && i < pods->n_items; i++)
			rc = add_source(logging, hf_doc_name(pods->items[i]));
		return rc;
	}
	while (rc == 0 && (word = strsep(&rest, ",")) != NULL) {
		HF_AUTOFREE char *name = NULL;
		HF_AUTOFREE char *pod = NULL;
		struct hf_error err;
		if (hf_cli_rank_name(framework, hf_doc_json(logging->job), word, &name, &err) != 0)
			return hf_cli_fail(logging->cli, &err);
		pod = hf_xasprintf("%s-%s", hf_doc_name(logging->job), name);
		rc = add_source(logging, pod);
	}
	return rc;
}

/* The pod that the ledger names as the first cause, if it is still there; else rank 0. */
static const char *default_pod(const struct logging *logging, const struct hf_cli_reply *pods)
{
	HF_AUTO_JSON recovery = hf_job_recovery(hf_doc_json(logging->job));
	const char *cause = hf_json_path_str(recovery, "last", "pod", NULL);
	const char *first = NULL;

	for (size_t i = 0; i < pods->n_items; i++) {
		const struct hf_json *pod = hf_doc_json(pods->items[i]);
		const char *name = hf_doc_name(pods->items[i]);
		bool failed = hf_streq(hf_json_path_str(pod, "status", "phase", NULL), "Failed");
		if (failed && hf_streq(name, cause))
			return name;
		if (hf_streq(hf_json_path_str(pod, "metadata", "labels", HF_LABEL_JOB_ROLE, NULL),
			     "master"))
			first = name;
		else if (first == NULL)
			first = name;
	}
	return first;
}

/* -f before there is any pod: the names are known from the spec. */
static char *expected_pod(struct logging *logging, const struct hf_framework *framework)
{
	const struct hf_json *specs =
		hf_json_path(hf_doc_json(logging->job), "spec", framework->replicas_key, NULL);
	HF_AUTOFREE char *type = NULL;

	for (int role = 0; role < framework->roles_len && type == NULL; role++)
		if (hf_json_get(specs, framework->roles[role].name) != NULL)
			type = hf_xstrdup(framework->roles[role].name);
	if (type == NULL)
		return NULL;
	hf_str_lower(type);
	return hf_xasprintf("%s-%s-0", hf_doc_name(logging->job), type);
}

static int no_pods(const struct logging *logging)
{
	struct hf_job_facts facts;
	struct hf_error err;

	hf_job_facts_read(hf_doc_json(logging->job), &facts);
	(void)hf_error_set(&err, HF_E_NOT_FOUND, "%s has no pods: it is %s",
			   hf_doc_name(logging->job), facts.state);
	return hf_cli_fail(logging->cli, &err);
}

static int choose(struct logging *logging, const struct hf_framework *framework)
{
	const char *ranks = hf_cli_flag(logging->cli, "rank");
	HF_AUTO_CLI_REPLY pods = {.object = NULL};
	HF_AUTOFREE char *expected = NULL;
	const char *pod;
	struct hf_error err;

	if (hf_cli_list_owned(logging->cli, &hf_pods, logging->job, &pods, &err) != 0)
		return hf_cli_fail(logging->cli, &err);
	if (ranks != NULL && hf_streq(ranks, "all") && pods.n_items == 0)
		return no_pods(logging);
	if (ranks != NULL)
		return add_ranks(logging, framework, ranks, &pods);
	pod = default_pod(logging, &pods);
	if (pod == NULL && logging->options.follow) {
		expected = expected_pod(logging, framework);
		pod = expected;
	}
	if (pod != NULL)
		return add_source(logging, pod);
	return no_pods(logging);
}

static int parse_options(struct hf_cli *cli, struct hf_log_options *options)
{
	const char *tail = hf_cli_flag(cli, "tail"), *since = hf_cli_flag(cli, "since");
	struct hf_error err;
	hf_time span = 0;

	options->follow = hf_cli_has(cli, "follow");
	options->previous = hf_cli_has(cli, "previous");
	options->timestamps = hf_cli_has(cli, "timestamps");
	options->container = hf_cli_flag(cli, "container");
	options->tail_lines = -1;
	if (tail != NULL && hf_str_to_i64(tail, -1, INT64_MAX, &options->tail_lines, &err) != 0)
		return hf_cli_usage(cli, "--tail: %s", err.text);
	if (since != NULL && hf_span_parse(since, &span, &err) != 0)
		return hf_cli_usage(cli, "--since: %s", err.text);
	options->since_seconds = (span + HF_SECOND - 1) / HF_SECOND;
	return 0;
}

static void release(struct logging *logging)
{
	for (size_t i = 0; i < logging->n_sources; i++) {
		struct source *source = &logging->sources[i];
		source->stream = hf_log_stream_stop(source->stream);
		source->again = hf_timer_destroy(source->again);
		hf_strbuf_release(&source->line);
		free(source->pod);
	}
}

static int verb_logs(struct hf_cli *cli)
{
	struct logging *logging;
	const struct hf_framework *framework;
	HF_AUTO_DOC job = NULL;
	struct hf_log_options options = {.ns = NULL};
	struct hf_error err;
	int rc = parse_options(cli, &options);

	if (rc != 0)
		return rc;
	if (hf_cli_find_job(cli, cli->args[0], &job, &framework, &err) != 0)
		return hf_cli_fail(cli, &err);
	logging = hf_xcalloc(1, sizeof(*logging));
	logging->cli = cli;
	logging->job = job;
	logging->options = options;
	logging->options.ns = hf_doc_namespace(job);
	if (options.container == NULL)
		logging->options.container = framework->container_name;
	rc = choose(logging, framework);
	logging->prefix = hf_cli_has(cli, "prefix") || logging->n_sources > 1;
	for (size_t i = 0; rc == 0 && i < logging->n_sources; i++)
		start(&logging->sources[i]);
	if (rc == 0 && logging->n_sources > 0) {
		hf_cli_run_until(cli, &logging->over);
		rc = logging->exit_code;
	}
	release(logging);
	free(logging);
	return rc;
}

static const struct hf_flag logs_flags[] = {
	{"follow", 'f', NULL, "go on as lines come; wait for a pod that has not started"},
	{"rank", 0, "NAMES", "these replicas, such as master-0,worker-1 or 0,2, or all"},
	{"container", 'c', "NAME", "this container; else the one the kind names"},
	{"previous", 'p', NULL, "of the container before its last restart"},
	{"prefix", 0, NULL, "begin each line with the replica; so it is for several"},
	{"tail", 0, "LINES", "only the last lines"},
	{"since", 0, "SPAN", "only lines newer than that, such as 10m"},
	{"timestamps", 0, NULL, "begin each line with its time"},
	{NULL, 0, NULL, NULL},
};

const struct hf_cli_verb hf_verb_logs = {
	.name = "logs",
	.connects = true,
	.summary = "Print what the ranks of a job wrote",
	.usage = "JOB",
	.examples = "  holdfast logs ddp -f\n"
		    "  holdfast logs ddp --rank all --tail 20\n"
		    "  holdfast logs ddp --rank worker-1 --previous\n",
	.flags = logs_flags,
	.args_min = 1,
	.args_max = 1,
	.run = verb_logs,
};
