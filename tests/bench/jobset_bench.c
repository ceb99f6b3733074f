/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/mem.h"
#include "base/str.h"
#include "kube/kube.h"
#include "store/store.h"
#include "store/resource.h"
#include "harness/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The agents in the pods of a JobSet that restarts in place, played on a real API server with the real JobSet controller.
 *
 *     jobset_bench KUBECONFIG NAMESPACE JOBSET TIMES [SECONDS]
 *         TIMES times, the agent of one pod starts anew.  From then until all agents have let their workers start.
 *
 * Each pod is a client of its own, with its own connection and its own watch of the JobSet, and does what JobSet 0.12's
 * cmd/in-place-restart-agent does:
 * - After its start it writes its attempt into an annotation of its pod, by server-side apply: status.current… + 1, or 0 if
 *   the JobSet has none yet.
 * - If its attempt is not above status.previous…, it ends, and its container starts anew.
 * - If its attempt equals status.current…, it lets the worker start.
 * Containers start and stop at once.  A new agent keeps the connection and the watch of the one before it.
 */

#define POD_LIMIT 20000
#define NAME_BYTES 254
#define SECONDS_DEFAULT 300
#define PAUSE (8 * HF_SECOND)
#define ATTEMPT "jobset.sigs.k8s.io/in-place-restart-attempt"
#define NONE (-1)

struct bench;

struct agent {
	struct bench *bench;
	char pod[NAME_BYTES];
	struct hf_store *store;
	struct hf_watch *watch;
	char version[32]; /* of the last event */
	int64_t previous, current; /* attempts in the JobSet's status, as read; NONE: absent */
	int64_t attempt; /* the attempt in the pod's annotation; NONE: the pod has none */
	int64_t writing; /* the attempt in the write under way; NONE: no write is under way */
	bool lets_run;
};

struct bench {
	struct hf_loop *loop;
	struct hf_kube_config config;
	struct hf_store *store;
	const char *ns, *jobset;
	long times, done;
	struct agent *agents;
	size_t n_agents, n_run, n_down;
	struct hf_timer *pause, *limit;
	bool begun;
	double start, down, written;
	long writes, events; /* since the beginning of this restart */
};

static const struct hf_resource jobsets = {
	.group = "jobset.x-k8s.io",
	.version = "v1alpha2",
	.plural = "jobsets",
	.singular = "jobset",
	.kind = "JobSet",
	.namespaced = true,
};

static struct hf_store *connect_store(struct bench *bench)
{
	struct hf_store *store;
	struct hf_error err;

	if (hf_kube_create(bench->loop, &bench->config, &store, &err) != 0)
		die("connect", err.code, err.text);
	return store;
}

static void report_end_of_restart(struct bench *bench)
{
	printf("jobset restart=%ld seconds=%.3f down=%.3f written=%.3f ranks=%zu agent_writes=%ld events=%ld\n",
	       ++bench->done, now() - bench->start, bench->down - bench->start,
	       bench->written - bench->start, bench->n_agents, bench->writes, bench->events);
	fflush(stdout);
	bench->start = 0;
	if (bench->done == bench->times)
		hf_loop_stop(bench->loop);
	else
		hf_timer_arm(bench->pause, PAUSE);
}

/* ---- one agent ----------------------------------------------------------------------------------------- */

static void reconcile(struct agent *agent);

static void on_written(void *arg, const struct hf_reply *reply)
{
	struct agent *agent = arg;

	if (reply->code != 0)
		die(agent->pod, reply->code, reply->message);
	agent->attempt = agent->writing;
	agent->writing = NONE;
	agent->bench->written = now();
	reconcile(agent);
}

static void write_attempt(struct agent *agent, int64_t attempt)
{
	HF_AUTOFREE char *text = hf_xasprintf(
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
		"\"annotations\":{\"" ATTEMPT "\":\"%lld\"}}}",
		agent->pod, (long long)attempt);
	HF_AUTO_DOC body = hf_doc_from_text(text, strlen(text));
	const struct hf_request apply = {.verb = HF_VERB_PATCH,
					 .resource = &hf_pods,
					 .ns = agent->bench->ns,
					 .name = agent->pod,
					 .body = body,
					 .patch_type = HF_PATCH_APPLY,
					 .field_manager = "in-place-restart-agent",
					 .force = true};

	agent->writing = attempt;
	agent->bench->writes++;
	(void)hf_store_request(agent->store, &apply, on_written, agent);
}

/* The agent and its worker end, and their containers start anew. */
static void start_anew(struct agent *agent)
{
	struct bench *bench = agent->bench;

	agent->attempt = NONE;
	bench->n_run -= agent->lets_run;
	agent->lets_run = false;
	if (bench->start > 0 && ++bench->n_down == bench->n_agents)
		bench->down = now();
}

static void let_run(struct agent *agent)
{
	struct bench *bench = agent->bench;

	agent->lets_run = true;
	if (++bench->n_run < bench->n_agents)
		return;
	if (!bench->begun) {
		bench->begun = true;
		hf_timer_arm(bench->pause, PAUSE);
	} else {
		report_end_of_restart(bench);
	}
}

static void reconcile(struct agent *agent)
{
	if (agent->writing != NONE)
		return;
	if (agent->attempt != NONE && agent->attempt <= agent->previous)
		start_anew(agent);
	if (agent->attempt == NONE)
		write_attempt(agent, agent->current == NONE ? 0 : agent->current + 1);
	else if (!agent->lets_run && agent->attempt == agent->current)
		let_run(agent);
}

static void watch_jobset(struct agent *agent);

static void on_event(void *arg, const struct hf_event *event)
{
	struct agent *agent = arg;
	const struct hf_json *status;

	if (event->type == HF_EVENT_ENDED) {
		if (event->code != 0)
			die("a watch ended", event->code, event->message);
		agent->watch = hf_watch_stop(agent->watch);
		watch_jobset(agent);
		return;
	}
	(void)snprintf(agent->version, sizeof(agent->version), "%s", event->resource_version);
	if (event->type != HF_EVENT_ADDED && event->type != HF_EVENT_MODIFIED)
		return;
	agent->bench->events++;
	status = hf_json_get(hf_doc_json(event->object), "status");
	agent->previous = hf_json_i64(hf_json_get(status, "previousInPlaceRestartAttempt"), NONE);
	agent->current = hf_json_i64(hf_json_get(status, "currentInPlaceRestartAttempt"), NONE);
	reconcile(agent);
}

static void watch_jobset(struct agent *agent)
{
	char selector[NAME_BYTES + 16];
	const struct hf_watch_options options = {
		.resource = &jobsets,
		.ns = agent->bench->ns,
		.field_selector = selector,
		.resource_version = agent->version[0] != '\0' ? agent->version : NULL,
		.bookmarks = true};

	(void)snprintf(selector, sizeof(selector), "metadata.name=%s", agent->bench->jobset);
	agent->watch = hf_store_watch(agent->store, &options, on_event, agent);
}

/* ---- all agents ---------------------------------------------------------------------------------------- */

static void on_pause(void *arg)
{
	struct bench *bench = arg;
	struct agent *agent = &bench->agents[(size_t)bench->done % bench->n_agents];

	bench->writes = bench->events = 0;
	bench->n_down = 0;
	bench->start = bench->down = now();
	start_anew(agent);
	reconcile(agent);
}

static void on_limit(void *arg)
{
	const struct bench *bench = arg;

	fprintf(stderr,
		"jobset_bench: %zu of %zu workers run, %ld of %ld restarts done; %s has attempt %lld, the JobSet "
		"previous %lld and current %lld\n",
		bench->n_run, bench->n_agents, bench->done, bench->times, bench->agents[0].pod,
		(long long)bench->agents[0].attempt, (long long)bench->agents[0].previous,
		(long long)bench->agents[0].current);
	exit(1);
}

static void on_pods(void *arg, const struct hf_reply *reply)
{
	struct bench *bench = arg;

	if (reply->code != 0)
		die("pods", reply->code, reply->message);
	if (reply->n_items == 0 || reply->n_items > POD_LIMIT)
		die("pods", 0, "there are none, or too many");
	bench->agents = hf_xcalloc(reply->n_items, sizeof(*bench->agents));
	bench->n_agents = reply->n_items;
	for (size_t i = 0; i < reply->n_items; i++) {
		struct agent *agent = &bench->agents[i];

		*agent = (struct agent){.bench = bench,
					.store = connect_store(bench),
					.previous = NONE,
					.current = NONE,
					.attempt = NONE,
					.writing = NONE};
		(void)snprintf(agent->pod, sizeof(agent->pod), "%s", hf_doc_name(reply->items[i]));
		watch_jobset(agent);
	}
}

static void end_bench(struct bench *bench)
{
	for (size_t i = 0; i < bench->n_agents; i++) {
		hf_watch_stop(bench->agents[i].watch);
		hf_store_destroy(bench->agents[i].store);
	}
	hf_store_destroy(bench->store);
	hf_timer_destroy(bench->pause);
	hf_timer_destroy(bench->limit);
	hf_loop_destroy(bench->loop);
	hf_kube_config_release(&bench->config);
	free(bench->agents);
}

int main(int argc, char **argv)
{
	struct bench bench = {0};
	char selector[NAME_BYTES + 64];
	const struct hf_request list = {.verb = HF_VERB_LIST,
					.resource = &hf_pods,
					.ns = argc > 2 ? argv[2] : NULL,
					.label_selector = selector};
	struct hf_error err;
	long seconds = argc > 5 ? strtol(argv[5], NULL, 10) : SECONDS_DEFAULT;

	bench.times = argc > 4 ? strtol(argv[4], NULL, 10) : 0;
	if (bench.times < 1 || seconds < 1) {
		fprintf(stderr,
			"usage: jobset_bench KUBECONFIG NAMESPACE JOBSET TIMES [SECONDS]\n");
		return 2;
	}
	bench.ns = argv[2];
	bench.jobset = argv[3];
	(void)snprintf(selector, sizeof(selector), "jobset.sigs.k8s.io/jobset-name=%s",
		       bench.jobset);
	if (hf_kube_config_read(argv[1], NULL, &bench.config, &err) != 0 ||
	    hf_loop_create(&bench.loop, &err) != 0)
		die("start", err.code, err.text);
	bench.store = connect_store(&bench);
	bench.pause = hf_timer_create(bench.loop, on_pause, &bench);
	bench.limit = hf_timer_create(bench.loop, on_limit, &bench);
	hf_timer_arm(bench.limit, seconds * HF_SECOND);
	(void)hf_store_request(bench.store, &list, on_pods, &bench);
	hf_loop_run(bench.loop);
	end_bench(&bench);
	return 0;
}
