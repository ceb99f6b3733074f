/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/logs_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/log_follower.h"
#include "cli/facts.h"
#include "core/model/container_reason.h"
#include "core/model/names.h"
#include "store/resource.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * logs -f: prints the logs of a job's pods, through restarts of containers and of the job, until the
 * job ends.  The logs go to stdout, notices to stderr.
 *
 * States: WATCHING; then LAST_LOOK, when the job has ended: its pods are listed once more, because the
 * events of two watches come in no fixed order; then ENDING: the open logs are printed to their end.
 */

#define AGAIN_SPAN HF_SECOND
/* after the job's end, how long to wait for pods that still run */
#define LINGER_SPAN (2 * HF_SECOND)

struct rank {
	char *pod;
	struct hf_log_writer lines;
	bool began;
	bool told;    /* the reason why the program of the present run never started was printed */
	int64_t code; /* exit code of the container's last run; -1: unknown */
};

enum following_state { FOLLOWING_WATCHING, FOLLOWING_LAST_LOOK, FOLLOWING_ENDING };

struct following {
	const struct hf_logs *logs;
	struct hf_cli *cli;
	enum following_state state;
	struct hf_log_follower *follows;
	struct hf_watch *job_watch, *pod_watch;
	struct hf_call *call; /* the request under way; NULL: none */
	struct hf_timer *job_again, *pods_again, *linger;
	char *field_selector, *label_selector;
	HF_VEC(struct rank *) ranks;
	bool full;     /* the notice that there are more pods than HF_LOGS_PODS_MAX was printed */
	bool away;     /* the notice about a lost server was printed */
	bool paused;   /* the notice about a suspended job was printed */
	bool watched;  /* the job was read at least once before it ended */
	bool lingered; /* LINGER_SPAN is over: pods that still run are not waited for */
	bool over;
	int exit_code;
};

static void end_following(struct following *following)
{
	following->over = true;
	hf_loop_stop(following->cli->loop);
}

static void HF_PRINTF(2, 3) print_notice(struct following *following, const char *fmt, ...)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_ERROR_TEXT_MAX);
	struct hf_error err;
	va_list ap;

	va_start(ap, fmt);
	hf_strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	(void)hf_error_set(&err, HF_E_INTERNAL, "%s", text.data);
	(void)fflush(following->cli->out);
	(void)hf_cli_fail(following->cli, &err);
	(void)fflush(following->cli->err);
}

static void fail_following(struct following *following, int code, const char *message)
{
	struct hf_error err;

	(void)hf_error_set(&err, code, "%s", message);
	following->exit_code = hf_cli_fail(following->cli, &err);
	end_following(following);
}

/* ---- ranks -------------------------------------------------------------------------------- */

static struct rank *add_rank(struct following *following, const char *pod)
{
	struct rank *rank = hf_xcalloc(1, sizeof(*rank));

	if (!HF_VEC_PUSH(&following->ranks, rank)) {
		free(rank);
		if (!following->full)
			print_notice(
				following,
				"the job has more than %d ranks: the logs of %s and of later ranks are not shown; select ranks with --rank",
				HF_LOGS_PODS_MAX, pod);
		following->full = true;
		return NULL;
	}
	rank->pod = hf_xstrdup(pod);
	rank->code = -1;
	hf_logs_lines_init(following->logs, &rank->lines, pod);
	return rank;
}

/* Returns the rank of the pod, and adds it if it is new. NULL: --rank does not select the pod, or
 * there are too many ranks. */
static struct rank *rank_of(struct following *following, const char *pod)
{
	for (size_t i = 0; i < following->ranks.len; i++)
		if (hf_streq(following->ranks.items[i]->pod, pod))
			return following->ranks.items[i];
	return following->logs->all ? add_rank(following, pod) : NULL;
}

static int64_t exit_code_of(const struct hf_json *state)
{
	return hf_json_i64(hf_json_path(state, "terminated", "exitCode", NULL), -1);
}

static const char *annotation_of(const struct hf_json *pod, const char *name)
{
	return hf_str_or(hf_json_path_str(pod, "metadata", "annotations", name, NULL), "?");
}

static void print_restart(struct following *following, struct rank *rank, struct hf_doc *pod,
			  int64_t run)
{
	const struct hf_json *root = hf_doc_json(pod);
	const struct hf_json *status = hf_logs_container(following->logs, root);
	int64_t code = run > 0 ? exit_code_of(hf_json_get(status, "lastState")) : rank->code;
	const char *signal = hf_signal_name(hf_exit_code_signal(code));
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_ERROR_TEXT_MAX);

	hf_strbuf_addstr(&text, rank->pod);
	if (code >= 0)
		hf_strbuf_addf(&text, " ended with code %" PRId64 "%s%s%s and", code,
			       signal ? " (" : "", hf_str_or(signal, ""), signal ? ")" : "");
	hf_strbuf_addstr(&text, " starts again: ");
	if (run > 0)
		hf_strbuf_addf(&text, "restart %" PRId64 " of its container", run);
	else
		hf_strbuf_addf(&text, "a new pod, generation %s, attempt %s",
			       annotation_of(root, HF_ANNOTATION_GENERATION),
			       annotation_of(root, HF_ANNOTATION_ATTEMPT));
	print_notice(following, "%s", text.data);
}

/* ---- logs --------------------------------------------------------------------------------- */

static void on_began(void *arg, struct hf_doc *pod, int64_t run)
{
	struct following *following = arg;
	struct rank *rank = rank_of(following, hf_doc_name(pod));

	if (rank->began) {
		hf_log_writer_break_line(&rank->lines);
		print_restart(following, rank, pod, run);
	}
	rank->began = true;
	rank->told = false;
	rank->code = -1;
}

static void on_bytes(void *arg, const char *pod, const char *bytes, size_t len)
{
	struct following *following = arg;

	if (following->over ||
	    hf_log_writer_write(&rank_of(following, pod)->lines, bytes, len) == 0)
		return;
	following->exit_code = HF_EXIT_FAILED; /* the reader closed the pipe */
	end_following(following);
}

static void check_end(struct following *following)
{
	if (following->state != FOLLOWING_ENDING)
		return;
	if (!hf_log_follower_is_open(following->follows) ||
	    (following->lingered && !hf_log_follower_is_ending(following->follows)))
		end_following(following);
}

static void on_ended(void *arg, const char *pod, int code, const char *message)
{
	struct following *following = arg;
	struct hf_error err;

	hf_log_writer_end(&rank_of(following, pod)->lines);
	if (fflush(following->cli->out) == 0 && code != 0) {
		(void)hf_error_set(&err, code, "%s: %s", pod, message);
		following->exit_code = hf_cli_fail(following->cli, &err);
	}
	check_end(following);
}

static void on_linger(void *arg)
{
	struct following *following = arg;

	following->lingered = true;
	check_end(following);
}

/* ---- pods --------------------------------------------------------------------------------- */

static void see_pod(struct following *following, struct hf_doc *pod, bool join)
{
	struct rank *rank = rank_of(following, hf_doc_name(pod));
	int64_t code;

	if (rank == NULL)
		return;
	if (join)
		hf_log_follower_join_pod(following->follows, pod);
	else
		hf_log_follower_update_pod(following->follows, pod);
	code = exit_code_of(
		hf_json_get(hf_logs_container(following->logs, hf_doc_json(pod)), "state"));
	if (code >= 0)
		rank->code = code;
	if (!rank->told)
		rank->told = hf_logs_tell_failed_start(following->logs, pod);
}

/* Handles an error of a watch or a request. True: the server may come back, so try again. False:
 * the server refused access, so the verb ends. */
static bool is_away(struct following *following, int code, const char *message)
{
	if (code == HF_E_FORBIDDEN || code == HF_E_UNAUTHORIZED) {
		fail_following(following, code, message);
		return false;
	}
	if (!following->away && code != 0 && code != HF_E_GONE)
		print_notice(following, "lost the server: %s; trying again every second",
			     hf_str_or(message, "the watch ended"));
	following->away = following->away || (code != 0 && code != HF_E_GONE);
	return true;
}

static void on_pod(void *arg, const struct hf_event *event)
{
	struct following *following = arg;

	if (event->type == HF_EVENT_ENDED) {
		following->pod_watch = hf_watch_stop(following->pod_watch);
		if (is_away(following, event->code, event->message))
			hf_timer_arm(following->pods_again, AGAIN_SPAN);
		return;
	}
	following->away = false;
	if (event->type == HF_EVENT_ADDED || event->type == HF_EVENT_MODIFIED)
		see_pod(following, event->object, false);
}

static void watch_pods(void *arg)
{
	struct following *following = arg;
	struct hf_watch_options options = {.resource = &hf_pods,
					   .ns = hf_doc_namespace(following->logs->job),
					   .label_selector = following->label_selector};

	following->pod_watch = hf_store_watch(following->cli->store, &options, on_pod, following);
}

/* ---- the job ------------------------------------------------------------------------------ */

/* After the end of the job, prints a notice for each selected replica that had no log. */
static void report_missing_logs(struct following *following)
{
	const struct hf_logs *logs = following->logs;

	if (logs->all && following->ranks.len == 0 && !following->watched) {
		following->exit_code = hf_logs_no_pods(logs, hf_doc_json(logs->job));
		return;
	}
	for (size_t i = 0; i < following->ranks.len; i++) {
		if (following->ranks.items[i]->began)
			continue;
		print_notice(following, "%s has no log: it never ran, or its pod was deleted",
			     following->ranks.items[i]->pod);
		following->exit_code = HF_EXIT_FAILED;
	}
}

static void on_last_look(void *arg, const struct hf_reply *reply)
{
	struct following *following = arg;

	following->call = NULL;
	for (size_t i = 0; i < reply->n_items; i++)
		see_pod(following, reply->items[i], false);
	following->state = FOLLOWING_ENDING;
	report_missing_logs(following);
	hf_timer_arm(following->linger, LINGER_SPAN);
	check_end(following);
}

static void end_job(struct following *following, const char *how)
{
	struct hf_request request = {.verb = HF_VERB_LIST,
				     .resource = &hf_pods,
				     .ns = hf_doc_namespace(following->logs->job),
				     .label_selector = following->label_selector};

	if (following->state != FOLLOWING_WATCHING)
		return;
	following->state = FOLLOWING_LAST_LOOK;
	if (following->watched)
		print_notice(following, "%s %s", hf_doc_name(following->logs->job), how);
	hf_call_cancel(following->call);
	following->call =
		hf_store_request(following->cli->store, &request, on_last_look, following);
}

/* The job is gone: it was deleted, or the kept run ended before it. */
static void end_gone_job(struct following *following)
{
	end_job(following, hf_str_or(following->cli->kept_end, "was deleted"));
}

static void see_job(struct following *following, struct hf_doc *job)
{
	HF_AUTOFREE char *how = NULL;
	struct hf_job_facts facts;
	bool paused;

	if (!hf_streq(hf_doc_uid(job), hf_doc_uid(following->logs->job))) {
		/* the UID differs: the job was deleted, and a newer job has its name */
		end_gone_job(following);
		return;
	}
	hf_job_facts_read(hf_doc_json(job), &facts);
	if (hf_streq(facts.state, "Succeeded") || hf_streq(facts.state, "Failed")) {
		how = hf_xasprintf("is %s", facts.state);
		end_job(following, how);
		return;
	}
	following->watched = true;
	paused = hf_streq(facts.state, "Suspended");
	if (paused && !following->paused)
		print_notice(following,
			     "%s is suspended: waiting until 'holdfast resume %s' resumes it",
			     hf_doc_name(job), hf_doc_name(job));
	following->paused = paused;
}

static void on_job(void *arg, const struct hf_event *event)
{
	struct following *following = arg;

	switch (event->type) {
	case HF_EVENT_ADDED:
	case HF_EVENT_MODIFIED: see_job(following, event->object); break;
	case HF_EVENT_DELETED: end_gone_job(following); break;
	case HF_EVENT_BOOKMARK: break;
	case HF_EVENT_ENDED:
		following->job_watch = hf_watch_stop(following->job_watch);
		if (is_away(following, event->code, event->message))
			hf_timer_arm(following->job_again, AGAIN_SPAN);
		break;
	}
}

static void on_looked(void *arg, const struct hf_reply *reply)
{
	struct following *following = arg;
	struct hf_watch_options options = {.resource = following->logs->resource,
					   .ns = hf_doc_namespace(following->logs->job),
					   .field_selector = following->field_selector};

	following->call = NULL;
	if (reply->code == HF_E_NOT_FOUND) {
		end_gone_job(following);
	} else if (reply->code != 0) {
		if (is_away(following, reply->code, reply->message))
			hf_timer_arm(following->job_again, AGAIN_SPAN);
	} else {
		see_job(following, reply->object);
		if (following->state != FOLLOWING_WATCHING)
			return;
		options.resource_version = hf_doc_resource_version(reply->object);
		following->job_watch =
			hf_store_watch(following->cli->store, &options, on_job, following);
	}
}

/* Reads the job before the watch begins: a watch would not report a deletion that came before
 * it. */
static void look_and_watch(void *arg)
{
	struct following *following = arg;
	struct hf_request request = {.verb = HF_VERB_GET,
				     .resource = following->logs->resource,
				     .ns = hf_doc_namespace(following->logs->job),
				     .name = hf_doc_name(following->logs->job)};

	following->call = hf_store_request(following->cli->store, &request, on_looked, following);
}

/* ---- from beginning to end ---------------------------------------------------------------- */

static bool has_ended(const struct hf_logs *logs)
{
	struct hf_job_facts facts;

	hf_job_facts_read(hf_doc_json(logs->job), &facts);
	return hf_streq(facts.state, "Succeeded") || hf_streq(facts.state, "Failed");
}

static void begin_following(struct following *following, const struct hf_cli_reply *pods)
{
	const struct hf_logs *logs = following->logs;
	struct hf_log_follower_options options = {.loop = logs->cli->loop,
						  .store = logs->cli->store,
						  .ns = hf_doc_namespace(logs->job),
						  .container = logs->options.container,
						  .timestamps = logs->options.timestamps,
						  .tail_lines = logs->options.tail_lines,
						  .since_seconds = logs->options.since_seconds,
						  .began = on_began,
						  .bytes = on_bytes,
						  .ended = on_ended,
						  .arg = following};

	following->follows = hf_log_follower_create(&options);
	for (size_t i = 0; i < logs->n_pods; i++)
		(void)add_rank(following, logs->pods[i]);
	for (size_t i = 0; i < pods->n_items; i++)
		see_pod(following, pods->items[i], true);
	if (!has_ended(logs)) {
		for (size_t i = 0; i < following->ranks.len; i++)
			if (!following->ranks.items[i]->began)
				print_notice(following, "waiting for %s to start",
					     following->ranks.items[i]->pod);
		if (following->ranks.len == 0)
			print_notice(following, "waiting for the pods of %s",
				     hf_doc_name(logs->job));
	}
	watch_pods(following);
	look_and_watch(following);
}

static void release_following(struct following *following)
{
	hf_call_cancel(following->call);
	following->job_watch = hf_watch_stop(following->job_watch);
	following->pod_watch = hf_watch_stop(following->pod_watch);
	following->follows = hf_log_follower_destroy(following->follows);
	following->job_again = hf_timer_destroy(following->job_again);
	following->pods_again = hf_timer_destroy(following->pods_again);
	following->linger = hf_timer_destroy(following->linger);
	for (size_t i = 0; i < following->ranks.len; i++) {
		struct rank *rank = following->ranks.items[i];
		hf_log_writer_end(&rank->lines);
		hf_log_writer_release(&rank->lines);
		free(rank->pod);
		free(rank);
	}
	HF_VEC_RELEASE(&following->ranks);
	free(following->field_selector);
	free(following->label_selector);
}

int hf_logs_follow(const struct hf_logs *logs, const struct hf_cli_reply *pods)
{
	struct following following = {
		.logs = logs, .cli = logs->cli, .ranks = HF_VEC_INIT(HF_LOGS_PODS_MAX)};
	const char *name = hf_doc_name(logs->job);

	following.field_selector = hf_xasprintf("metadata.name=%s", name);
	following.label_selector = hf_xasprintf("%s=%s", HF_LABEL_JOB_NAME, name);
	following.job_again = hf_timer_create(logs->cli->loop, look_and_watch, &following);
	following.pods_again = hf_timer_create(logs->cli->loop, watch_pods, &following);
	following.linger = hf_timer_create(logs->cli->loop, on_linger, &following);
	begin_following(&following, pods);
	hf_cli_run_until(logs->cli, &following.over);
	release_following(&following);
	return following.exit_code;
}
