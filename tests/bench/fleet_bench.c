/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "kube/kube.h"
#include "store/resource.h"
#include "harness/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Load for an operator on a real API server, and what that server can do without one.
 *
 *     fleet_bench KUBECONFIG NAMESPACE jobs N [TIMEOUT_S]
 *         creates job-0 … (1 master, 3 workers) and waits until each has its 4 pods and services;
 *         past JOBS_PER_NAMESPACE the next ones go to NAMESPACE-1 and so on, which must be there
 *     fleet_bench KUBECONFIG NAMESPACE floor N
 *         creates copies of the pods and services of job-0, as many as N jobs have: what the
 *         server needs for them without an operator's decisions
 *     fleet_bench KUBECONFIG NAMESPACE replace FIRST N
 *         one after the other, of job-FIRST and so on: worker-0 is made to have exited 137; from
 *         sending that until the pod that replaces it is seen
 *
 * The first two keep IN_FLIGHT requests under way.
 */

#define IN_FLIGHT 32
#define RANKS 4
/* Scheduler and endpoint controllers go through all Services of a pod's namespace at each of its
 * steps: with 40,000 in one, 15,000 pods were bound after 45 minutes. */
#define JOBS_PER_NAMESPACE 1500

static const struct {
	const char *type;
	int index;
} ranks[RANKS] = {{"master", 0}, {"worker", 0}, {"worker", 1}, {"worker", 2}};

struct bench {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *ns;
	void (*send)(struct bench *, int i); /* request i of total */
	int sent, done, total;
	double start, created;

	/* jobs: what is awaited */
	int pods, services;
	double pods_at, services_at;
	double seconds;

	/* floor: of which copies are made */
	struct hf_doc *models[2 * RANKS];
	int models_len;

	/* replace */
	int first, at;
	char pod[300], uid[64];
	bool waiting;
	double *took;
};

static void request(struct bench *bench, struct hf_request *request, hf_reply_fn done)
{
	if (request->ns == NULL)
		request->ns = bench->ns;
	(void)hf_store_request(bench->store, request, done, bench);
}

/* ---- many creates -------------------------------------------------------------------------- */

static void check_end(struct bench *bench)
{
	bool all_there = bench->pods >= bench->total * RANKS && bench->services >= bench->pods;

	if (bench->done == bench->total && (bench->models_len > 0 || all_there))
		hf_loop_stop(bench->loop);
}

static void on_created(void *arg, const struct hf_reply *reply)
{
	struct bench *bench = arg;

	if (reply->code != 0)
		die("create", reply->code, reply->message);
	if (++bench->done == bench->total)
		bench->created = now();
	if (bench->sent < bench->total)
		bench->send(bench, bench->sent++);
	check_end(bench);
}

static void start_creating(struct bench *bench)
{
	bench->start = now();
	while (bench->sent < bench->total && bench->sent < IN_FLIGHT)
		bench->send(bench, bench->sent++);
}

static void create(struct bench *bench, const struct hf_resource *resource, const char *ns,
		   struct hf_json *object)
{
	HF_AUTO_DOC doc = hf_doc_from_json(object);
	struct hf_request create = {
		.verb = HF_VERB_CREATE, .resource = resource, .ns = ns, .body = doc};

	request(bench, &create, on_created);
}

/* ---- jobs ---------------------------------------------------------------------------------- */

static void send_job(struct bench *bench, int i)
{
	static const char replica[] =
		"\"restartPolicy\":\"ExitCode\",\"template\":{\"spec\":{\"containers\":[{\"name\":"
		"\"pytorch\",\"image\":\"registry.example/training:1\",\"command\":[\"python3\","
		"\"train.py\"],\"args\":[\"--epochs\",\"10\"],\"env\":[{\"name\":\"SEED\",\"value\":"
		"\"7\"},{\"name\":\"DATA\",\"value\":\"/data\"}],\"resources\":{\"limits\":{\"cpu\":"
		"\"100m\",\"memory\":\"64Mi\"}}}]}}";
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(65536);
	const int space = i / JOBS_PER_NAMESPACE;
	char ns[80];
	struct hf_json *job;
	struct hf_error err;

	(void)snprintf(ns, sizeof(ns), "%s-%d", bench->ns, space);
	hf_strbuf_addf(&sb,
		       "{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{"
		       "\"name\":\"job-%d\"},\"spec\":{\"runPolicy\":{},"
		       "\"pytorchReplicaSpecs\":{\"Master\":{\"replicas\":1,%s},"
		       "\"Worker\":{\"replicas\":3,%s}}}}",
		       i, replica, replica);
	if (hf_json_parse(sb.data, sb.len, NULL, &job, &err) != 0)
		die("job", err.code, err.text);
	create(bench, &hf_pytorchjobs, space > 0 ? ns : NULL, job);
}

/* A watch that goes on for as long as the program runs: servers end them when they like. */
struct following {
	struct bench *bench;
	const struct hf_resource *resource;
	struct hf_watch *watch;
	char version[32]; /* of the last event */
	void (*added)(struct bench *bench, struct hf_doc *object);
};

static void follow(struct following *f);

static void on_event(void *arg, const struct hf_event *event)
{
	struct following *f = arg;

	if (event->type == HF_EVENT_ENDED) {
		if (event->code != 0)
			die("a watch ended", event->code, event->message);
		f->watch = hf_watch_stop(f->watch);
		follow(f);
		return;
	}
	(void)snprintf(f->version, sizeof(f->version), "%s", event->resource_version);
	if (event->type == HF_EVENT_ADDED)
		f->added(f->bench, event->object);
}

static void follow(struct following *f)
{
	const struct hf_watch_options options = {
		.resource = f->resource,
		.ns = f->bench->total > JOBS_PER_NAMESPACE ? NULL : f->bench->ns,
		.label_selector = "training.kubeflow.org/job-name",
		.resource_version = f->version[0] != '\0' ? f->version : NULL,
		.bookmarks = true,
	};

	f->watch = hf_store_watch(f->bench->store, &options, on_event, f);
}

static void count(struct bench *bench, int *n, double *at)
{
	if (++*n == bench->total * RANKS)
		*at = now();
	check_end(bench);
}

static void on_pod(struct bench *bench, struct hf_doc *pod)
{
	count(bench, &bench->pods, &bench->pods_at);
}

static void on_service(struct bench *bench, struct hf_doc *service)
{
	count(bench, &bench->services, &bench->services_at);
}

static void on_timeout(void *arg)
{
	const struct bench *bench = arg;

	printf("fleet jobs=%d timeout_s=%.0f pods=%d services=%d\n", bench->total, bench->seconds,
	       bench->pods, bench->services);
	exit(1);
}

static void run_jobs(struct bench *bench)
{
	struct following pods = {.bench = bench, .resource = &hf_pods, .added = on_pod};
	struct following services = {.bench = bench, .resource = &hf_services, .added = on_service};
	struct hf_timer *timer = hf_timer_create(bench->loop, on_timeout, bench);

	hf_timer_arm(timer, (hf_time)(bench->seconds * (double)HF_SECOND));
	follow(&pods);
	follow(&services);
	bench->send = send_job;
	start_creating(bench);
	hf_loop_run(bench->loop);
	printf("fleet jobs=%d created_s=%.3f pods_s=%.3f services_s=%.3f\n", bench->total,
	       bench->created - bench->start, bench->pods_at - bench->start,
	       bench->services_at - bench->start);
	hf_watch_stop(pods.watch);
	hf_watch_stop(services.watch);
	hf_timer_destroy(timer);
}

/* ---- floor --------------------------------------------------------------------------------- */

static void rename_in(struct hf_json *object, const char *key, const char *from, const char *to)
{
	const char *text = hf_json_path_str(object, key, NULL);

	if (text != NULL && hf_str_has_prefix(text, from)) {
		HF_AUTOFREE char *name = hf_xasprintf("%s%s", to, text + strlen(from));

		hf_json_set_str(object, key, name);
	}
}

/* Model i % (2 · RANKS) of copy i / (2 · RANKS): as the operator sent it, for another job. */
static void send_copy(struct bench *bench, int i)
{
	int model = i % bench->models_len;
	struct hf_json *object = hf_doc_copy_json(bench->models[model]);
	struct hf_json *metadata = hf_json_get(object, "metadata");
	HF_AUTOFREE char *job = hf_xasprintf("floor-%d", i / bench->models_len);

	rename_in(metadata, "name", "job-0", job);
	hf_json_set_str(hf_json_get(metadata, "labels"), "training.kubeflow.org/job-name", job);
	create(bench, model < RANKS ? &hf_pods : &hf_services, NULL, object);
}

static void on_model(void *arg, const struct hf_reply *reply)
{
	static const char *const servers[] = {"uid", "resourceVersion", "creationTimestamp",
					      "managedFields", "generation"};
	struct bench *bench = arg;
	struct hf_json *object;

	if (reply->code != 0)
		die("read job-0's objects", reply->code, reply->message);
	object = hf_doc_copy_json(reply->object);
	for (size_t i = 0; i < HF_ARRAY_LEN(servers); i++)
		hf_json_remove(hf_json_get(object, "metadata"), servers[i]);
	hf_json_remove(object, "status");
	hf_json_remove(hf_json_get(object, "spec"), "nodeName");
	hf_json_remove(hf_json_get(object, "spec"), "clusterIPs");
	hf_json_remove(hf_json_get(object, "spec"), "serviceAccount");
	bench->models[bench->models_len++] = hf_doc_from_json(object);
	hf_loop_stop(bench->loop);
}

static void run_floor(struct bench *bench)
{
	for (int i = 0; i < 2 * RANKS; i++) {
		HF_AUTOFREE char *name =
			hf_xasprintf("job-0-%s-%d", ranks[i % RANKS].type, ranks[i % RANKS].index);
		struct hf_request get = {.verb = HF_VERB_GET,
					 .resource = i < RANKS ? &hf_pods : &hf_services,
					 .name = name};

		request(bench, &get, on_model);
		hf_loop_run(bench->loop);
	}
	bench->total *= bench->models_len;
	bench->send = send_copy;
	start_creating(bench);
	hf_loop_run(bench->loop);
	printf("fleet floor objects=%d created_s=%.3f\n", bench->total,
	       bench->created - bench->start);
	for (int i = 0; i < bench->models_len; i++)
		hf_doc_unref(bench->models[i]);
}

/* ---- replace ------------------------------------------------------------------------------- */

static void on_failed(void *arg, const struct hf_reply *reply)
{
	if (reply->code != 0)
		die("make a pod fail", reply->code, reply->message);
}

static void on_victim(void *arg, const struct hf_reply *reply)
{
	static const char status[] =
		"{\"status\":{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"pytorch\","
		"\"image\":\"i\",\"imageID\":\"\",\"ready\":false,\"restartCount\":0,\"state\":{"
		"\"terminated\":{\"exitCode\":137,\"reason\":\"Error\",\"startedAt\":"
		"\"2026-01-01T00:00:00Z\",\"finishedAt\":\"2026-01-01T00:00:01Z\"}}}]}}";
	struct bench *bench = arg;
	struct hf_request patch = {.verb = HF_VERB_PATCH,
				   .resource = &hf_pods,
				   .name = bench->pod,
				   .subresource = "status",
				   .patch_type = HF_PATCH_MERGE};
	HF_AUTO_DOC body = NULL;

	if (reply->code != 0)
		die(bench->pod, reply->code, reply->message);
	(void)snprintf(bench->uid, sizeof(bench->uid), "%s", hf_doc_uid(reply->object));
	body = hf_doc_from_text(status, strlen(status));
	patch.body = body;
	bench->waiting = true;
	bench->start = now();
	request(bench, &patch, on_failed);
}

static void fail_next(struct bench *bench)
{
	struct hf_request get = {.verb = HF_VERB_GET, .resource = &hf_pods, .name = bench->pod};

	(void)snprintf(bench->pod, sizeof(bench->pod), "job-%d-worker-0", bench->first + bench->at);
	request(bench, &get, on_victim);
}

static void on_replacement(struct bench *bench, struct hf_doc *pod)
{
	if (!bench->waiting || !hf_streq(hf_doc_name(pod), bench->pod) ||
	    hf_streq(hf_doc_uid(pod), bench->uid))
		return;
	bench->waiting = false;
	bench->took[bench->at++] = now() - bench->start;
	if (bench->at == bench->total)
		hf_loop_stop(bench->loop);
	else
		fail_next(bench);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void run_replace(struct bench *bench)
{
	struct following pods = {.bench = bench, .resource = &hf_pods, .added = on_replacement};
	struct hf_timer *timer = hf_timer_create(bench->loop, on_timeout, bench);
	int n = bench->total;

	hf_timer_arm(timer, (hf_time)(bench->seconds * (double)HF_SECOND));
	bench->took = hf_xcalloc((size_t)n, sizeof(*bench->took));
	follow(&pods);
	fail_next(bench);
	hf_loop_run(bench->loop);
	qsort(bench->took, (size_t)n, sizeof(*bench->took), by_size);
	printf("fleet replace n=%d p50_ms=%.1f p90_ms=%.1f max_ms=%.1f\n", n,
	       bench->took[n / 2] * 1e3, bench->took[n * 9 / 10] * 1e3, bench->took[n - 1] * 1e3);
	hf_watch_stop(pods.watch);
	hf_timer_destroy(timer);
	free(bench->took);
}

int main(int argc, char **argv)
{
	struct bench bench = {.seconds = 600};
	struct hf_kube_config config;
	struct hf_error err;
	const char *mode = argc > 4 ? argv[3] : "";

	if (argc < 5) {
		fprintf(stderr,
			"usage: fleet_bench KUBECONFIG NAMESPACE jobs N [TIMEOUT_S] | floor N | "
			"replace FIRST N\n");
		return 2;
	}
	bench.ns = argv[2];
	bench.total = (int)strtol(argv[argc > 5 && hf_streq(mode, "replace") ? 5 : 4], NULL, 10);
	bench.first = (int)strtol(argv[4], NULL, 10);
	if (argc > 5 && hf_streq(mode, "jobs"))
		bench.seconds = strtod(argv[5], NULL);
	hf_assert(bench.total > 0);
	if (hf_kube_config_read(argv[1], NULL, &config, &err) != 0 ||
	    hf_loop_create(&bench.loop, &err) != 0 ||
	    hf_kube_create(bench.loop, &config, &bench.store, &err) != 0)
		die("start", err.code, err.text);
	if (hf_streq(mode, "jobs"))
		run_jobs(&bench);
	else if (hf_streq(mode, "floor"))
		run_floor(&bench);
	else if (hf_streq(mode, "replace"))
		run_replace(&bench);
	else
		die(mode, 2, "no such mode");
	hf_store_destroy(bench.store);
	hf_loop_destroy(bench.loop);
	hf_kube_config_release(&config);
	return 0;
}
