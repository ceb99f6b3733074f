/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/logs_internal.h"
#include "cli/verbs_internal.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/rank.h"
#include "cli/request.h"
#include "cli/facts.h"
#include "core/model/container_reason.h"
#include "core/model/names.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * logs JOB: prints the log of the rank that failed first, else of rank 0, or of the ranks of --rank.
 *
 * Prints the present logs, or with -f (logs_follow.c) all lines until the job ends.
 */

void hf_logs_lines_init(const struct hf_logs *logs, struct hf_log_writer *lines, const char *pod)
{
	hf_log_writer_init(lines, logs->cli->out, isatty(hf_cli_out_fd(logs->cli)) == 1,
			   logs->prefix ? hf_cli_rank_of_pod(pod, hf_doc_name(logs->job)) : NULL);
}

int hf_logs_no_pods(const struct hf_logs *logs, const struct hf_json *job)
{
	struct hf_job_facts facts;
	struct hf_error err;

	hf_job_facts_read(job, &facts);
	(void)hf_error_set(
		&err, HF_E_NOT_FOUND,
		"%s has no pods, so it has no logs: the job is %s; 'holdfast why %s' says more",
		hf_doc_name(logs->job), facts.state, hf_doc_name(logs->job));
	return hf_cli_fail(logs->cli, &err);
}

const struct hf_json *hf_logs_container(const struct hf_logs *logs, const struct hf_json *pod)
{
	return hf_pod_container_status(pod, logs->options.container);
}

bool hf_logs_tell_failed_start(const struct hf_logs *logs, struct hf_doc *pod)
{
	const struct hf_json *status = hf_logs_container(logs, hf_doc_json(pod));
	char why[HF_FAILED_START_MAX];
	struct hf_error err;

	if (!hf_container_failed_start(status, why))
		return false;
	(void)fflush(logs->cli->out);
	(void)hf_error_set(&err, HF_E_NOT_FOUND, "%s: container '%s' never started: %s",
			   hf_doc_name(pod), logs->options.container, why);
	(void)hf_cli_fail(logs->cli, &err);
	(void)fflush(logs->cli->err);
	return true;
}

/* ---- printing the present logs without following them ---------------------------------------- */

struct printing;

struct source {
	struct printing *printing;
	const char *pod;
	struct hf_log_writer lines;
	struct hf_log_stream *stream;
	bool some; /* the log has at least one byte */
	/* the previous log of the container is read, because the newest run has no log */
	bool previous;
	bool over;
};

struct printing {
	const struct hf_logs *logs;
	const struct hf_cli_reply *pods;
	struct source *sources; /* as many as logs->n_pods */
	bool over;
	int exit_code;
};

static void finish_source(struct source *source)
{
	struct printing *printing = source->printing;

	source->over = true;
	for (size_t i = 0; i < printing->logs->n_pods; i++)
		if (!printing->sources[i].over)
			return;
	printing->over = true;
	hf_loop_stop(printing->logs->cli->loop);
}

/* Finds the pod of this log in the list of the job's pods. NULL: the job has no such pod. */
static struct hf_doc *find_pod(const struct source *source)
{
	const struct hf_cli_reply *pods = source->printing->pods;

	for (size_t i = 0; i < pods->n_items; i++)
		if (hf_streq(hf_doc_name(pods->items[i]), source->pod))
			return pods->items[i];
	return NULL;
}

/* If the log is empty because the program never started, prints the reason from the pod's
 * status. */
static void tell_failed_start(const struct source *source)
{
	struct hf_doc *pod = find_pod(source);

	if (pod != NULL)
		hf_logs_tell_failed_start(source->printing->logs, pod);
}

/* If the container has no log because an init container failed, names that container. */
static void tell_failed_init(const struct source *source)
{
	const struct hf_logs *logs = source->printing->logs;
	struct hf_doc *pod = find_pod(source);
	const struct hf_json *init = pod != NULL ? hf_pod_failed_init(hf_doc_json(pod)) : NULL;
	const char *name = hf_json_path_str(init, "name", NULL);
	struct hf_error err;

	if (name == NULL || hf_streq(name, logs->options.container))
		return;
	(void)hf_error_set(&err, HF_E_NOT_FOUND,
			   "%s: container '%s' never began, because init container '%s' failed; "
			   "'-c %s' prints the log of the init container",
			   source->pod, logs->options.container, name, name);
	(void)hf_cli_fail(logs->cli, &err);
}

static void start_source(struct source *source);

/* Reads the log of the previous run if the newest run never began. That happens when a pod is
 * ended while its container waits for its next run: the kubelet then reports the container as
 * lost. True: the other log is being read. */
static bool falls_back(struct source *source)
{
	const struct hf_logs *logs = source->printing->logs;
	struct hf_doc *pod = find_pod(source);
	const struct hf_json *status =
		pod == NULL ? NULL : hf_logs_container(logs, hf_doc_json(pod));
	struct hf_error err;

	if (source->some || source->previous || logs->options.previous ||
	    !hf_exit_code_is_lost(
		    hf_json_path_str(status, "state", "terminated", "reason", NULL)) ||
	    hf_json_path(status, "lastState", "terminated", NULL) == NULL)
		return false;
	(void)hf_error_set(&err, HF_E_NOT_FOUND,
			   "%s: the kubelet has no log of a last run of container '%s'; this is "
			   "the log of the run before",
			   source->pod, logs->options.container);
	(void)hf_cli_fail(logs->cli, &err);
	(void)fflush(logs->cli->err);
	source->previous = true;
	start_source(source);
	return true;
}

static void on_log(void *arg, const char *bytes, size_t len, int code, const char *message)
{
	struct source *source = arg;
	struct printing *printing = source->printing;
	struct hf_error err;

	if (len > 0) {
		source->some = true;
		if (hf_log_writer_write(&source->lines, bytes, len) != 0)
			finish_source(source); /* the reader closed the pipe */
		return;
	}
	source->stream = hf_log_stream_stop(source->stream);
	hf_log_writer_end(&source->lines);
	if (falls_back(source))
		return;
	if (code != 0) {
		(void)hf_error_set(&err, code, "%s: %s", source->pod, message);
		printing->exit_code = hf_cli_fail(printing->logs->cli, &err);
		if (!source->some)
			tell_failed_init(source);
	} else if (!source->some) {
		tell_failed_start(source);
	}
	finish_source(source);
}

static void start_source(struct source *source)
{
	const struct hf_logs *logs = source->printing->logs;
	struct hf_log_options options = logs->options;

	options.pod = source->pod;
	options.previous = options.previous || source->previous;
	source->stream = hf_store_logs(logs->cli->store, &options, on_log, source);
}

int hf_logs_print(const struct hf_logs *logs, const struct hf_cli_reply *pods)
{
	struct printing printing = {.logs = logs, .pods = pods};

	printing.sources = hf_xcalloc(logs->n_pods, sizeof(struct source));
	for (size_t i = 0; i < logs->n_pods; i++) {
		printing.sources[i].printing = &printing;
		printing.sources[i].pod = logs->pods[i];
		hf_logs_lines_init(logs, &printing.sources[i].lines, logs->pods[i]);
		start_source(&printing.sources[i]);
	}
	hf_cli_run_until(logs->cli, &printing.over);
	for (size_t i = 0; i < logs->n_pods; i++) {
		(void)hf_log_stream_stop(printing.sources[i].stream);
		hf_log_writer_release(&printing.sources[i].lines);
	}
	free(printing.sources);
	return printing.exit_code;
}

/* ---- choice of the pods -------------------------------------------------------------------------------- */

static int add_pod(struct hf_logs *logs, const char *pod)
{
	for (size_t i = 0; i < logs->n_pods; i++)
		if (hf_streq(logs->pods[i], pod))
			return 0;
	if (logs->n_pods == HF_LOGS_PODS_MAX)
		return hf_cli_usage(
			logs->cli,
			"--rank selects more than %d ranks, the most that one command prints: name fewer",
			HF_LOGS_PODS_MAX);
	logs->pods[logs->n_pods++] = hf_xstrdup(pod);
	return 0;
}

/* Adds the pods that --rank selects: "worker-1,2" or "all". */
static int add_ranks(struct hf_logs *logs, const struct hf_framework *framework, const char *list,
		     const struct hf_cli_reply *pods)
{
	HF_AUTOFREE char *copy = hf_xstrdup(list);
	char *rest = copy, *word;
	int rc = 0;

	if (hf_streq(list, "all")) {
		logs->all = true;
		for (size_t i = 0; rc == 0 && i < pods->n_items; i++)
			rc = add_pod(logs, hf_doc_name(pods->items[i]));
		return rc;
	}
	while (rc == 0 && (word = strsep(&rest, ",")) != NULL) {
		HF_AUTOFREE char *name = NULL;
		HF_AUTOFREE char *pod = NULL;
		struct hf_error err;
		if (hf_cli_rank_name(framework, hf_doc_json(logs->job), word, &name, &err) != 0)
			return hf_cli_fail(logs->cli, &err);
		pod = hf_xasprintf("%s-%s", hf_doc_name(logs->job), name);
		rc = add_pod(logs, pod);
	}
	return rc;
}

/* Chooses the pod without --rank: the failed pod that the ledger names as the first cause, if it
 * still exists; else rank 0. */
static const char *default_pod(const struct hf_logs *logs, const struct hf_cli_reply *pods)
{
	HF_AUTO_JSON recovery = hf_job_recovery(hf_doc_json(logs->job));
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

/* Computes the name of rank 0's pod from the spec, so that -f can wait for a pod that does not
 * exist yet. */
static char *expected_pod(struct hf_logs *logs, const struct hf_framework *framework)
{
	const struct hf_json *specs =
		hf_json_path(hf_doc_json(logs->job), "spec", framework->replicas_key, NULL);
	HF_AUTOFREE char *type = NULL;

	for (int role = 0; role < framework->roles_len && type == NULL; role++)
		if (hf_json_get(specs, framework->roles[role].name) != NULL)
			type = hf_xstrdup(framework->roles[role].name);
	if (type == NULL)
		return NULL;
	hf_str_lower(type);
	return hf_xasprintf("%s-%s-0", hf_doc_name(logs->job), type);
}

static int choose_pods(struct hf_logs *logs, const struct hf_framework *framework, bool follow,
		       const struct hf_cli_reply *pods)
{
	const char *ranks = hf_cli_flag(logs->cli, "rank");
	HF_AUTOFREE char *expected = NULL;
	const char *pod;
	int rc;

	if (ranks != NULL) {
		rc = add_ranks(logs, framework, ranks, pods);
		return rc == 0 && logs->n_pods == 0 && !follow
			       ? hf_logs_no_pods(logs, hf_doc_json(logs->job))
			       : rc;
	}
	pod = default_pod(logs, pods);
	if (pod == NULL && follow) {
		expected = expected_pod(logs, framework);
		pod = expected;
	}
	if (pod != NULL)
		return add_pod(logs, pod);
	return hf_logs_no_pods(logs, hf_doc_json(logs->job));
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

static int run_logs(struct hf_logs *logs, const struct hf_framework *framework)
{
	/* Do not follow a log that cannot grow: that of a previous run, or of a run that has ended. */
	bool follow = logs->options.follow && !logs->options.previous &&
		      (logs->cli->kept == NULL || !logs->cli->kept_over);
	HF_AUTO_CLI_REPLY pods = {.object = NULL};
	struct hf_error err;
	int rc;

	if (hf_cli_list_owned(logs->cli, &hf_pods, logs->job, &pods, &err) != 0)
		return hf_cli_fail(logs->cli, &err);
	rc = choose_pods(logs, framework, follow, &pods);
	if (rc != 0)
		return rc;
	logs->prefix = hf_cli_has(logs->cli, "prefix") || logs->n_pods > 1 || (follow && logs->all);
	return follow ? hf_logs_follow(logs, &pods) : hf_logs_print(logs, &pods);
}

static int verb_logs(struct hf_cli *cli)
{
	const struct hf_framework *framework;
	struct hf_logs logs = {.cli = cli};
	HF_AUTO_DOC job = NULL;
	struct hf_error err;
	int rc = parse_options(cli, &logs.options);

	if (rc != 0)
		return rc;
	if (hf_cli_find_job(cli, cli->args[0], &job, &framework, &err) != 0)
		return hf_cli_fail(cli, &err);
	logs.job = job;
	logs.resource = hf_cli_resource_of(framework);
	logs.options.ns = hf_doc_namespace(job);
	if (logs.options.container == NULL)
		logs.options.container = framework->container_name;
	rc = run_logs(&logs, framework);
	for (size_t i = 0; i < logs.n_pods; i++)
		free(logs.pods[i]);
	return rc;
}

static const struct hf_flag logs_flags[] = {
	{"follow", 'f', NULL, "print new lines as they come, through restarts, until the job ends",
	 NULL},
	{"rank", 0, "NAMES", "replicas to print, such as master-0,worker-1 or 0,2; or all", NULL},
	{"container", 'c', "NAME", "container to print", "the training container of the kind"},
	{"previous", 'p', NULL, "print the run before the container's last restart", NULL},
	{"prefix", 0, NULL, "begin each line with the replica; always on for several", NULL},
	{"tail", 0, "LINES", "print at most this many last lines", NULL},
	{"since", 0, "SPAN", "print only lines newer than this, such as 10m", NULL},
	{"timestamps", 0, NULL, "begin each line with its time", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_logs = {
	.name = "logs",
	.connects = true,
	.takes_kind = true,
	.reads_kept = true,
	.summary = "Print the logs of a job's ranks",
	.usage = "JOB",
	.note = HF_CLI_NOTE_RUN,
	.group = HF_CLI_LOOK,
	.examples = "  holdfast logs ddp -f\n"
		    "  holdfast logs ddp --rank all --tail 20\n"
		    "  holdfast logs ddp --rank worker-1 --previous\n",
	.flags = logs_flags,
	.args_min = 1,
	.words = HF_CLI_WORDS_JOBS,
	.args_max = 1,
	.run = verb_logs,
};
