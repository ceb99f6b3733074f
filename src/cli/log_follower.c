/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Prints the logs of many pods while their containers restart. Each pod has one `struct follow`,
 * and each has at most one log stream open. When a run ends, the stream of the next run is
 * opened. */
#include "cli/log_follower.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/facts.h"
#include "core/model/container_reason.h"

#include <stdlib.h>

#define AGAIN_SPAN (500 * HF_MS)
/* failed attempts to open one log, after which the caller is told that the log has ended */
#define TRIES_MAX 10

struct follow {
	struct hf_log_follower *follows;
	struct hf_doc *pod; /* the version of the pod that the caller passed last */
	char *container;
	bool is_init; /* followed for init_bytes */
	/* number (restartCount) of the run that had its log opened last; -1: no log was opened */
	int64_t told;
	/* number (restartCount) of the newest run of the container; -1: the container never ran */
	int64_t newest;
	bool running; /* the newest run has not ended */
	/* the container was lost while it waited for its next run, so the "previous" log is that
	 * of the last run */
	bool lost;
	/* the pod existed before the verb started: limit its next log by tail_lines and
	 * since_seconds */
	bool joined;
	struct hf_log_stream *stream;
	/* The options of the log that is open, or was open last. */
	struct hf_log_options log;
	struct hf_timer *again;
	bool waiting;     /* `again` is armed */
	bool failed;      /* all tries failed */
	hf_time heard_at; /* when the log last had bytes; HF_TIME_NONE: it had none */
	int tries;        /* failed tries since the last bytes */
};

struct hf_log_follower {
	struct hf_log_follower_options options;
	HF_VEC(struct follow *) items;
};

/* container: its name, which may be that of an init container; NULL: the training container. */
static const struct hf_json *container_status(const struct hf_json *pod, const char *container)
{
	return container == NULL ? hf_pod_main_status(pod)
				 : hf_pod_container_status(pod, container);
}

/* True if the pod was ended while its container waited for its next run: the kubelet then reports
 * a run that never began as lost. */
static bool has_lost_run(const struct hf_json *status)
{
	return hf_exit_code_is_lost(
		       hf_json_path_str(status, "state", "terminated", "reason", NULL)) &&
	       hf_json_path(status, "lastState", "terminated", NULL) != NULL;
}

int64_t hf_container_run(const struct hf_json *pod, const char *container, bool *ret_running)
{
	const struct hf_json *status = container_status(pod, container);
	const struct hf_json *state = hf_json_get(status, "state");
	int64_t count = hf_json_i64(hf_json_get(status, "restartCount"), 0);

	*ret_running = hf_json_get(state, "running") != NULL;
	if (*ret_running || hf_json_get(state, "terminated") != NULL)
		return count;
	/* A waiting container with a lastState has run before. If its first start failed, there is no
	 * lastState and no run. */
	if (hf_json_path(status, "lastState", "terminated", NULL) != NULL)
		return hf_streq(hf_json_path_str(state, "waiting", "reason", NULL),
				"ContainerCreating")
			       ? count - 1
			       : count;
	return -1;
}

static void next_run(struct follow *follow);
static void open_log(void *arg);

/* True if it makes sense to open the log again: the run is still the newest run, and the server
 * did not refuse access. */
static bool worth_a_try(const struct follow *follow, int code)
{
	return code != 0 && code != HF_E_FORBIDDEN && code != HF_E_UNAUTHORIZED &&
	       !follow->log.previous && follow->newest == follow->told;
}

static void on_log(void *arg, const char *bytes, size_t len, int code, const char *message)
{
	struct follow *follow = arg;
	const struct hf_log_follower_options *options = &follow->follows->options;

	if (len > 0) {
		follow->tries = 0;
		follow->heard_at = hf_loop_mono(options->loop);
		if (follow->is_init)
			options->init_bytes(options->arg, hf_doc_name(follow->pod),
					    follow->container, bytes, len);
		else
			options->bytes(options->arg, hf_doc_name(follow->pod), bytes, len);
		return;
	}
	follow->stream = hf_log_stream_stop(follow->stream);
	if (worth_a_try(follow, code) && ++follow->tries < TRIES_MAX) {
		follow->waiting = true;
		hf_timer_arm(follow->again, AGAIN_SPAN);
		return;
	}
	follow->failed = worth_a_try(follow, code);
	next_run(follow);
	options->ended(options->arg, hf_doc_name(follow->pod), code, message);
}

static void open_log(void *arg)
{
	struct follow *follow = arg;
	const struct hf_log_follower_options *options = &follow->follows->options;

	follow->waiting = false;
	if (follow->heard_at != HF_TIME_NONE) {
		hf_time silent = hf_loop_mono(options->loop) - follow->heard_at;
		follow->log.tail_lines = -1;
		follow->log.since_seconds = silent / HF_SECOND + 1;
	}
	follow->log.pod = hf_doc_name(follow->pod);
	follow->stream = hf_store_logs(options->store, &follow->log, on_log, follow);
}

static void next_run(struct follow *follow)
{
	const struct hf_log_follower_options *options = &follow->follows->options;
	bool missed, previous;

	if (follow->stream != NULL || follow->waiting || follow->newest <= follow->told)
		return;
	/* True if a run was missed: it ended before its log was opened. The kubelet keeps the log
	 * of the previous run only, so print that log; runs before it are lost. */
	missed = follow->running && follow->newest - follow->told > 1;
	previous = missed || follow->lost;
	follow->told = missed ? follow->newest - 1 : follow->newest;
	follow->log = (struct hf_log_options){
		.ns = options->ns,
		.container = follow->container,
		.follow = !previous,
		.previous = previous,
		.timestamps = options->timestamps,
		.tail_lines = follow->joined ? options->tail_lines : -1,
		.since_seconds = follow->joined ? options->since_seconds : 0,
	};
	follow->joined = follow->failed = false;
	follow->heard_at = HF_TIME_NONE;
	follow->tries = 0;
	if (options->began != NULL && !follow->is_init)
		options->began(options->arg, follow->pod, follow->told);
	open_log(follow);
}

/* init: the name of an init container; NULL: the container of the options. */
static struct follow *find_follow(struct hf_log_follower *follows, struct hf_doc *pod,
				  const char *init)
{
	struct follow *follow;

	for (size_t i = 0; i < follows->items.len; i++) {
		follow = follows->items.items[i];
		if (hf_streq(hf_doc_uid(follow->pod), hf_doc_uid(pod)) &&
		    follow->is_init == (init != NULL) &&
		    (init == NULL || hf_streq(follow->container, init)))
			return follow;
	}
	follow = hf_xcalloc(1, sizeof(*follow));
	if (!HF_VEC_PUSH(&follows->items, follow)) {
		free(follow);
		return NULL;
	}
	follow->follows = follows;
	follow->pod = hf_doc_ref(pod);
	follow->is_init = init != NULL;
	follow->again = hf_timer_create(follows->options.loop, open_log, follow);
	follow->told = follow->newest = -1;
	return follow;
}

static void update_follow(struct hf_log_follower *follows, struct hf_doc *pod, const char *init,
			  bool join)
{
	const struct hf_json *root = hf_doc_json(pod);
	const char *container = init != NULL ? init : follows->options.container;
	bool running;
	int64_t run = hf_container_run(root, container, &running);
	struct follow *follow = run >= 0 ? find_follow(follows, pod, init) : NULL;

	if (follow == NULL)
		return;
	if (follow->container == NULL)
		follow->container = hf_xstrdup(
			hf_json_path_str(container_status(root, container), "name", NULL));
	hf_doc_unref(follow->pod);
	follow->pod = hf_doc_ref(pod);
	if (join && follow->told < run - 1)
		follow->told = run - 1;
	follow->joined = follow->joined || join;
	if (run > follow->newest)
		follow->newest = run;
	follow->running = running;
	follow->lost = has_lost_run(container_status(root, container));
	if (follow->failed && follow->newest == follow->told) {
		follow->failed = false;
		follow->tries = 0;
		open_log(follow);
		return;
	}
	next_run(follow);
}

static void update_follows(struct hf_log_follower *follows, struct hf_doc *pod, bool join)
{
	const struct hf_json *inits =
		hf_json_path(hf_doc_json(pod), "status", "initContainerStatuses", NULL);

	for (size_t i = 0; follows->options.init_bytes != NULL && i < hf_json_len(inits); i++) {
		const char *name = hf_json_path_str(hf_json_item(inits, i), "name", NULL);

		if (name != NULL)
			update_follow(follows, pod, name, join);
	}
	update_follow(follows, pod, NULL, join);
}

void hf_log_follower_update_pod(struct hf_log_follower *follows, struct hf_doc *pod)
{
	update_follows(follows, pod, false);
}

void hf_log_follower_join_pod(struct hf_log_follower *follows, struct hf_doc *pod)
{
	update_follows(follows, pod, true);
}

static bool is_open(const struct follow *follow)
{
	return follow->stream != NULL || follow->waiting;
}

bool hf_log_follower_is_open(const struct hf_log_follower *follows)
{
	for (size_t i = 0; i < follows->items.len; i++)
		if (is_open(follows->items.items[i]))
			return true;
	return false;
}

bool hf_log_follower_is_ending(const struct hf_log_follower *follows)
{
	for (size_t i = 0; i < follows->items.len; i++)
		if (is_open(follows->items.items[i]) && !follows->items.items[i]->running)
			return true;
	return false;
}

struct hf_log_follower *hf_log_follower_create(const struct hf_log_follower_options *options)
{
	struct hf_log_follower *follows = hf_xcalloc(1, sizeof(*follows));

	follows->options = *options;
	follows->items.len_max = HF_LOG_FOLLOWER_PODS_MAX;
	return follows;
}

struct hf_log_follower *hf_log_follower_destroy(struct hf_log_follower *follows)
{
	if (follows == NULL)
		return NULL;
	for (size_t i = 0; i < follows->items.len; i++) {
		struct follow *follow = follows->items.items[i];
		follow->stream = hf_log_stream_stop(follow->stream);
		follow->again = hf_timer_destroy(follow->again);
		hf_doc_unref(follow->pod);
		free(follow->container);
		free(follow);
	}
	HF_VEC_RELEASE(&follows->items);
	free(follows);
	return NULL;
}
