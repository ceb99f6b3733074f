/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/mem.h"
#include "base/strbuf.h"
#include "memstore/memstore.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * What the embedded store does in a second: creates of a 700-byte pod and status patches of
 * it, with so many requests under way.
 *
 *     store_bench DIR|- REQUESTS IN_FLIGHT      "-": in memory
 */

struct bench {
	struct hf_loop *loop;
	struct hf_store *store;
	int total, sent, done, in_flight;
	bool patch;
};

static void on_reply(void *arg, const struct hf_reply *reply);

static struct hf_doc *pod_doc(int i)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	hf_strbuf_addf(
		&text,
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"bench-%d\",\"labels\":{"
		"\"training.kubeflow.org/job-name\":\"bench\",\"training.kubeflow.org/replica-type\":"
		"\"worker\",\"training.kubeflow.org/replica-index\":\"%d\"}},\"spec\":{\"nodeName\":\"local\","
		"\"containers\":[{\"name\":\"pytorch\",\"image\":\"x\",\"command\":[\"/usr/bin/python3\","
		"\"train.py\"],\"env\":[{\"name\":\"RANK\",\"value\":\"%d\"},{\"name\":\"WORLD_SIZE\","
		"\"value\":\"1000\"},{\"name\":\"MASTER_ADDR\",\"value\":\"bench-master-0\"},"
		"{\"name\":\"MASTER_PORT\",\"value\":\"23456\"}],\"ports\":[{\"name\":\"pytorchjob-port\","
		"\"containerPort\":23456}]}]}}",
		i, i, i);
	return hf_doc_from_text(text.data, text.len);
}

static void send_one(struct bench *bench)
{
	static const char running[] = "{\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.1\"}}";
	int i = bench->sent++;
	HF_AUTOFREE char *name = hf_xasprintf("bench-%d", i);
	HF_AUTO_DOC body =
		bench->patch ? hf_doc_from_text(running, sizeof(running) - 1) : pod_doc(i);
	struct hf_request request = {
		.verb = bench->patch ? HF_VERB_PATCH : HF_VERB_CREATE,
		.resource = &hf_pods,
		.ns = "default",
		.name = bench->patch ? name : NULL,
		.subresource = bench->patch ? "status" : NULL,
		.patch_type = HF_PATCH_MERGE,
		.body = body,
	};

	(void)hf_store_request(bench->store, &request, on_reply, bench);
}

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct bench *bench = arg;

	if (reply->code != 0) {
		fprintf(stderr, "store_bench: %s\n", reply->message);
		exit(1);
	}
	if (bench->sent < bench->total)
		send_one(bench);
	if (++bench->done == bench->total)
		hf_loop_stop(bench->loop);
}

static double clock_of(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void run(struct bench *bench, const char *where, bool patch)
{
	double wall = clock_of(CLOCK_MONOTONIC), cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID);

	bench->sent = bench->done = 0;
	bench->patch = patch;
	for (int i = 0; i < bench->in_flight && i < bench->total; i++)
		send_one(bench);
	hf_loop_run(bench->loop);
	wall = clock_of(CLOCK_MONOTONIC) - wall;
	cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("store %-6s %-6s in_flight=%d requests=%d per_second=%.0f cpu_us=%.1f\n",
	       patch ? "patch" : "create", where, bench->in_flight, bench->total,
	       bench->total / wall, cpu / bench->total * 1e6);
}

int main(int argc, char **argv)
{
	struct bench bench = {.total = 20000, .in_flight = 32};
	struct hf_memstore_options options = {.data_dir = NULL};
	struct hf_memstore *memstore;
	struct hf_error err;
	bool memory;

	if (argc != 4) {
		fprintf(stderr, "usage: store_bench DIR|- REQUESTS IN_FLIGHT\n");
		return 2;
	}
	memory = strcmp(argv[1], "-") == 0;
	options.data_dir = memory ? NULL : argv[1];
	bench.total = (int)strtol(argv[2], NULL, 10);
	bench.in_flight = (int)strtol(argv[3], NULL, 10);
	if (hf_loop_create(&bench.loop, &err) != 0 ||
	    hf_memstore_create(bench.loop, &options, &memstore, &err) != 0) {
		fprintf(stderr, "store_bench: %s\n", err.text);
		return 1;
	}
	bench.store = hf_memstore_store(memstore);
	run(&bench, memory ? "memory" : "sqlite", false);
	run(&bench, memory ? "memory" : "sqlite", true);
	hf_memstore_destroy(memstore);
	hf_loop_destroy(bench.loop);
	return 0;
}
