/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/job_orders.h"
#include "agent/processes.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/kube.h"
#include "store/resource.h"
#include "harness/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The agents and the training processes of a job, played on a real API server, and what that server can do without an
 * operator.
 *
 *     inplace_bench KUBECONFIG NAMESPACE JOB restart TIMES [SECONDS]
 *         TIMES times, one rank of PyTorchJob JOB exits with 1.  From then until each rank has its next process.
 *     inplace_bench KUBECONFIG NAMESPACE JOB floor TIMES
 *         As many watch events and writes as a restart has, without a decision: a change of JOB, a write of each
 *         node that has heard of it, and a second change that each node hears of.
 *
 * Each node is a client of its own, with its own connection: it watches the job by name, reads the orders with the
 * agent's code, and writes DeviceHealth.status.processes in the agent's form.  Processes start and stop at once.
 */

#define POD_LIMIT 20000
#define SECONDS_DEFAULT 300
/* The operator reads the first reports, and sees that the ranks run. */
#define PAUSE_FIRST (5 * HF_SECOND)
/* A delay of the operator is due at the latest then; the processes of the last restart count as running. */
#define PAUSE_BETWEEN (8 * HF_SECOND)

struct bench;

struct rank {
	char pod[HF_POD_RANK_NAME_MAX], uid[HF_POD_RANK_UID_MAX], node[HF_POD_RANK_NAME_MAX];
	struct hf_pod_rank place;
	struct hf_process_state state;
	hf_time at;
};

struct node {
	struct bench *bench;
	const char *name;
	struct hf_store *store;
	struct hf_watch *watch;
	char version[32]; /* of the last event */
	struct rank *ranks;
	size_t n_ranks;
	bool begun, writing, again;
	long heard; /* changes of the job, for the floor */
};

struct bench {
	struct hf_loop *loop;
	struct hf_kube_config config;
	struct hf_store *store;
	const char *ns, *job;
	bool floor;
	long times, done;
	struct rank *ranks;
	size_t n_ranks;
	struct node *nodes;
	size_t n_nodes, n_ready;
	struct hf_timer *pause, *limit;
	long writes, events; /* since the beginning of this restart */
	double start, down, went;
	size_t up_ranks;
	double *took;
};

static struct hf_store *connect_store(struct bench *bench)
{
	struct hf_store *store;
	struct hf_error err;

	if (hf_kube_create(bench->loop, &bench->config, &store, &err) != 0)
		die("connect", err.code, err.text);
	return store;
}

/* ---- a node writes its processes ----------------------------------------------------------------------- */

static void write_node(struct node *node);
static void end_round(struct bench *bench);

static struct hf_doc *make_report(const struct node *node)
{
	struct hf_process_entry *items = hf_xcalloc(node->n_ranks, sizeof(*items));
	struct hf_json *root = hf_json_object(), *status = hf_json_object();

	for (size_t i = 0; i < node->n_ranks; i++) {
		const struct rank *rank = &node->ranks[i];

		items[i] = (struct hf_process_entry){.ns = node->bench->ns,
						     .pod = rank->pod,
						     .uid = rank->uid,
						     .job = rank->place.job_uid,
						     .state = rank->state,
						     .at = rank->at};
	}
	hf_json_set(status, "processes", hf_process_entries_json(items, node->n_ranks, 0));
	hf_json_set(root, "status", status);
	free(items);
	return hf_doc_from_json(root);
}

static void on_written(void *arg, const struct hf_reply *reply)
{
	struct node *node = arg;
	struct bench *bench = node->bench;

	if (reply->code != 0)
		die(node->name, reply->code, reply->message);
	node->writing = false;
	if (node->again) {
		node->again = false;
		write_node(node);
	} else if (bench->n_ready < bench->n_nodes && ++bench->n_ready == bench->n_nodes) {
		hf_timer_arm(bench->pause, PAUSE_FIRST);
	}
	if (bench->start > 0 && node->ranks[0].state.phase == HF_PROCESS_LINE_DOWN)
		bench->down = now();
	if (bench->floor && bench->start > 0)
		end_round(bench);
}

static void write_node(struct node *node)
{
	HF_AUTO_DOC body = NULL;
	struct hf_request patch = {.verb = HF_VERB_PATCH,
				   .resource = &hf_devicehealths,
				   .name = node->name,
				   .subresource = "status",
				   .patch_type = HF_PATCH_MERGE,
				   .field_manager = "holdfast-agent"};

	if (node->writing) {
		node->again = true;
		return;
	}
	body = make_report(node);
	patch.body = body;
	node->writing = true;
	node->bench->writes++;
	(void)hf_store_request(node->store, &patch, on_written, node);
}

/* ---- a node obeys the job ------------------------------------------------------------------------------ */

static void report_end_of_restart(struct bench *bench)
{
	bench->took[bench->done++] = now() - bench->start;
	printf("inplace restart=%ld seconds=%.3f down=%.3f ranks=%zu nodes=%zu agent_writes=%ld events=%ld\n",
	       bench->done, bench->took[bench->done - 1],
	       bench->down > 0 ? bench->down - bench->start : 0.0, bench->n_ranks, bench->n_nodes,
	       bench->writes, bench->events);
	fflush(stdout);
	bench->start = 0;
	if (bench->done == bench->times)
		hf_loop_stop(bench->loop);
	else
		hf_timer_arm(bench->pause, PAUSE_BETWEEN);
}

/* Returns whether the rank has stopped for the barrier, which is to be published. */
static bool obey(struct bench *bench, struct rank *rank, const struct hf_process_target *target)
{
	bool stopped = false;

	if (hf_process_start_order(&target->start, &rank->state.start) > 0) {
		stopped = true;
		rank->state.phase = HF_PROCESS_LINE_DOWN;
		rank->state.start = target->start;
		rank->state.code = 0;
		rank->at = hf_loop_wall(bench->loop);
	}
	if (rank->state.phase == HF_PROCESS_LINE_DOWN && !target->hold) {
		rank->state.phase = HF_PROCESS_LINE_RUNNING;
		rank->state.ordinal++;
		rank->at = hf_loop_wall(bench->loop);
		bench->up_ranks++;
		stopped = false;
	}
	return stopped;
}

/* The processes run, as the job wants them. */
static void begin(struct node *node, const struct hf_json *job)
{
	struct hf_job_orders *orders = hf_job_orders_read(job);

	for (size_t i = 0; orders != NULL && i < node->n_ranks; i++) {
		struct hf_process_target target;

		if (hf_job_orders_target(orders, &node->ranks[i].place, &target) &&
		    target.start.known)
			node->ranks[i].state.start = target.start;
	}
	hf_job_orders_destroy(orders);
	node->begun = true;
	write_node(node);
}

static void obey_all(struct node *node, const struct hf_json *job)
{
	struct bench *bench = node->bench;
	struct hf_job_orders *orders = hf_job_orders_read(job);
	bool stopped = false;

	for (size_t i = 0; orders != NULL && i < node->n_ranks; i++) {
		struct hf_process_target target;

		if (hf_job_orders_target(orders, &node->ranks[i].place, &target) &&
		    target.start.known)
			stopped |= obey(bench, &node->ranks[i], &target);
	}
	hf_job_orders_destroy(orders);
	if (stopped)
		write_node(node);
	if (bench->start > 0 && bench->up_ranks >= bench->n_ranks)
		report_end_of_restart(bench);
}

static void watch_job(struct node *node);

static void on_event(void *arg, const struct hf_event *event)
{
	struct node *node = arg;
	struct bench *bench = node->bench;

	if (event->type == HF_EVENT_ENDED) {
		if (event->code != 0)
			die("a watch ended", event->code, event->message);
		node->watch = hf_watch_stop(node->watch);
		watch_job(node);
		return;
	}
	(void)snprintf(node->version, sizeof(node->version), "%s", event->resource_version);
	if (event->type != HF_EVENT_ADDED && event->type != HF_EVENT_MODIFIED)
		return;
	bench->events++;
	if (!node->begun) {
		begin(node, hf_doc_json(event->object));
	} else if (!bench->floor) {
		obey_all(node, hf_doc_json(event->object));
	} else if (bench->start > 0) {
		if (++node->heard == 1)
			write_node(node);
		else
			end_round(bench);
	}
}

static void watch_job(struct node *node)
{
	char selector[HF_POD_RANK_NAME_MAX + 16];
	struct hf_watch_options options = {.resource = &hf_pytorchjobs,
					   .ns = node->bench->ns,
					   .field_selector = selector,
					   .resource_version =
						   node->version[0] != '\0' ? node->version : NULL,
					   .bookmarks = true};

	(void)snprintf(selector, sizeof(selector), "metadata.name=%s", node->bench->job);
	node->watch = hf_store_watch(node->store, &options, on_event, node);
}

/* ---- the floor ----------------------------------------------------------------------------------------- */

static void on_touched(void *arg, const struct hf_reply *reply)
{
	(void)arg;
	if (reply->code != 0 && reply->code != HF_E_CANCELED)
		die("a change of the job", reply->code, reply->message);
}

static void touch_job(struct bench *bench, long n)
{
	char text[128];
	HF_AUTO_DOC body = NULL;
	struct hf_request patch = {.verb = HF_VERB_PATCH,
				   .resource = &hf_pytorchjobs,
				   .ns = bench->ns,
				   .name = bench->job,
				   .patch_type = HF_PATCH_MERGE};

	(void)snprintf(text, sizeof(text), "{\"metadata\":{\"annotations\":{\"bench\":\"%ld\"}}}",
		       n);
	body = hf_doc_from_text(text, strlen(text));
	patch.body = body;
	(void)hf_store_request(bench->store, &patch, on_touched, bench);
}

/* After the last write the second change, and after its last event the next round. */
static void end_round(struct bench *bench)
{
	size_t written = 0, heard = 0;

	for (size_t i = 0; i < bench->n_nodes; i++) {
		written += bench->nodes[i].heard > 0 && !bench->nodes[i].writing;
		heard += bench->nodes[i].heard > 1;
	}
	if (written == bench->n_nodes && bench->went == 0) {
		bench->went = now();
		touch_job(bench, 2 * bench->done + 1);
	}
	if (heard == bench->n_nodes)
		report_end_of_restart(bench);
}

/* ---- begin --------------------------------------------------------------------------------------------- */

static void on_pause(void *arg)
{
	struct bench *bench = arg;
	/* Another node each time. */
	struct node *node = &bench->nodes[(size_t)bench->done % bench->n_nodes];

	bench->start = now();
	bench->down = bench->went = 0;
	bench->writes = bench->events = 0;
	bench->up_ranks = 0;
	for (size_t i = 0; i < bench->n_nodes; i++)
		bench->nodes[i].heard = 0;
	if (bench->floor) {
		touch_job(bench, 2 * bench->done);
		return;
	}
	node->ranks[0].state.phase = HF_PROCESS_LINE_ENDED;
	node->ranks[0].state.code = 1;
	node->ranks[0].at = hf_loop_wall(bench->loop);
	write_node(node);
}

static void on_limit(void *arg)
{
	const struct bench *bench = arg;

	fprintf(stderr,
		"inplace_bench: %zu of %zu nodes were ready, %ld of %ld restarts done, %zu of %zu ranks up\n",
		bench->n_ready, bench->n_nodes, bench->done, bench->times, bench->up_ranks,
		bench->n_ranks);
	exit(1);
}

static void on_node_created(void *arg, const struct hf_reply *reply)
{
	struct node *node = arg;

	if (reply->code != 0 && reply->code != HF_E_EXISTS)
		die(node->name, reply->code, reply->message);
	watch_job(node);
}

static void create_node(struct node *node)
{
	HF_AUTOFREE char *text =
		hf_xasprintf("{\"apiVersion\":\"holdfast.dev/v1alpha1\",\"kind\":\"DeviceHealth\","
			     "\"metadata\":{\"name\":\"%s\"}}",
			     node->name);
	HF_AUTO_DOC body = hf_doc_from_text(text, strlen(text));
	const struct hf_request create = {
		.verb = HF_VERB_CREATE, .resource = &hf_devicehealths, .body = body};

	node->store = connect_store(node->bench);
	(void)hf_store_request(node->store, &create, on_node_created, node);
}

static int compare_by_node(const void *left, const void *right)
{
	return strcmp(((const struct rank *)left)->node, ((const struct rank *)right)->node);
}

static void read_pod(struct bench *bench, struct hf_doc *pod)
{
	struct rank *rank = &bench->ranks[bench->n_ranks];
	const char *node = hf_json_path_str(hf_doc_json(pod), "spec", "nodeName", NULL);

	hf_pod_rank_read(hf_doc_json(pod), &rank->place);
	if (rank->place.kind == NULL || !hf_streq(rank->place.job, bench->job) || node == NULL)
		return;
	(void)snprintf(rank->pod, sizeof(rank->pod), "%s", hf_doc_name(pod));
	(void)snprintf(rank->uid, sizeof(rank->uid), "%s", hf_doc_uid(pod));
	(void)snprintf(rank->node, sizeof(rank->node), "%s", node);
	rank->at = hf_loop_wall(bench->loop);
	rank->state = (struct hf_process_state){.phase = HF_PROCESS_LINE_RUNNING,
						.start = {.known = true,
							  .generation = rank->place.generation,
							  .attempt = rank->place.attempt},
						.ordinal = 1};
	bench->n_ranks++;
}

static void on_pods(void *arg, const struct hf_reply *reply)
{
	struct bench *bench = arg;
	struct node *node = NULL;

	if (reply->code != 0)
		die("pods", reply->code, reply->message);
	if (reply->n_items > POD_LIMIT)
		die("pods", 0, "there are too many");
	bench->ranks = hf_xcalloc(reply->n_items + 1, sizeof(*bench->ranks));
	bench->nodes = hf_xcalloc(reply->n_items + 1, sizeof(*bench->nodes));
	for (size_t i = 0; i < reply->n_items; i++)
		read_pod(bench, reply->items[i]);
	if (bench->n_ranks == 0)
		die(bench->job, 0, "has no pod on a node");
	qsort(bench->ranks, bench->n_ranks, sizeof(*bench->ranks), compare_by_node);
	for (size_t i = 0; i < bench->n_ranks; i++) {
		if (node == NULL || !hf_streq(node->name, bench->ranks[i].node)) {
			node = &bench->nodes[bench->n_nodes++];
			*node = (struct node){.bench = bench,
					      .name = bench->ranks[i].node,
					      .ranks = &bench->ranks[i]};
		}
		if (++node->n_ranks > HF_PROCESSES_MAX)
			die(node->name, 0, "has too many ranks");
	}
	for (size_t i = 0; i < bench->n_nodes; i++)
		create_node(&bench->nodes[i]);
}

static void end_bench(struct bench *bench)
{
	for (size_t i = 0; i < bench->n_nodes; i++) {
		hf_watch_stop(bench->nodes[i].watch);
		hf_store_destroy(bench->nodes[i].store);
	}
	hf_store_destroy(bench->store);
	hf_timer_destroy(bench->pause);
	hf_timer_destroy(bench->limit);
	hf_loop_destroy(bench->loop);
	hf_kube_config_release(&bench->config);
	free(bench->took);
	free(bench->nodes);
	free(bench->ranks);
}

int main(int argc, char **argv)
{
	struct bench bench = {0};
	const struct hf_request list = {.verb = HF_VERB_LIST,
					.resource = &hf_pods,
					.ns = argc > 2 ? argv[2] : NULL,
					.label_selector = "training.kubeflow.org/job-name"};
	struct hf_error err;
	long seconds = argc > 6 ? strtol(argv[6], NULL, 10) : SECONDS_DEFAULT;

	bench.floor = argc > 5 && hf_streq(argv[4], "floor");
	bench.times = argc > 5 ? strtol(argv[5], NULL, 10) : 0;
	if (bench.times < 1 || seconds < 1 || (!bench.floor && !hf_streq(argv[4], "restart"))) {
		fprintf(stderr,
			"usage: inplace_bench KUBECONFIG NAMESPACE JOB restart|floor TIMES [SECONDS]\n");
		return 2;
	}
	bench.ns = argv[2];
	bench.job = argv[3];
	if (hf_kube_config_read(argv[1], NULL, &bench.config, &err) != 0 ||
	    hf_loop_create(&bench.loop, &err) != 0)
		die("start", err.code, err.text);
	bench.store = connect_store(&bench);
	bench.took = hf_xcalloc((size_t)bench.times, sizeof(*bench.took));
	bench.pause = hf_timer_create(bench.loop, on_pause, &bench);
	bench.limit = hf_timer_create(bench.loop, on_limit, &bench);
	hf_timer_arm(bench.limit, seconds * HF_SECOND);
	(void)hf_store_request(bench.store, &list, on_pods, &bench);
	hf_loop_run(bench.loop);
	end_bench(&bench);
	return 0;
}
