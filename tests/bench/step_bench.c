/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/job.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "core/step.h"
#include "framework/framework.h"
#include "harness/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What one step of the brain costs: a job of N ranks that all run ("quiet"), and the same job
 * in the moment one rank has failed ("failed").
 *
 *     step_bench RANKS STEPS [quiet|failed|status]    steps per second
 *     valgrind --tool=callgrind --toggle-collect=hf_job_step step_bench RANKS STEPS quiet
 *                                              instructions, those of settling included: the
 *                                              difference between two runs is that of the steps
 */

#define ARENA_BYTES ((size_t)1 << 30)
#define START ((hf_time)1767323045 * HF_SECOND)

struct world {
	struct hf_job_view view;
	struct hf_pod *pods;
	struct hf_service_seen *services;
	struct hf_observed seen;
};

static struct hf_doc *make_job(int ranks)
{
	static const char template[] =
		"\"template\":{\"spec\":{\"containers\":[{\"name\":\"pytorch\","
		"\"image\":\"x\"}]}}";
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(65536);

	hf_strbuf_addf(
		&text,
		"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":\"ddp\","
		"\"namespace\":\"default\",\"uid\":\"u\",\"resourceVersion\":\"1\","
		"\"creationTimestamp\":\"2026-01-02T03:04:05Z\"},\"spec\":{\"runPolicy\":{\"backoffLimit\":6},"
		"\"pytorchReplicaSpecs\":{\"Master\":{\"replicas\":1,\"restartPolicy\":\"ExitCode\",%s},"
		"\"Worker\":{\"replicas\":%d,\"restartPolicy\":\"ExitCode\",%s}}}}",
		template, ranks - 1, template);
	return hf_doc_from_text(text.data, text.len);
}

static void make_pods(struct world *world, int ranks, struct hf_arena *arena)
{
	static const struct hf_container_seen running = {.name = "pytorch",
							 .phase = HF_CONTAINER_RUNNING,
							 .finished_at = HF_TIME_NONE,
							 .started_at = START};

	world->pods = HF_ARENA_ARRAY(arena, struct hf_pod, (size_t)ranks);
	world->services = HF_ARENA_ARRAY(arena, struct hf_service_seen, (size_t)ranks);
	for (int i = 0; i < ranks; i++) {
		const char *name =
			i == 0 ? "ddp-master-0" : hf_arena_printf(arena, "ddp-worker-%d", i - 1);
		world->pods[i] = (struct hf_pod){
			.name = name,
			.uid = hf_arena_printf(arena, "p%d", i),
			.resource_version = "1",
			.owned = true,
			.stamped = true,
			.generation = 1,
			.phase = HF_POD_RUNNING,
			.creation_time = START,
			.deletion_time = HF_TIME_NONE,
			.deleted_at = HF_TIME_NONE,
			.bound_at = HF_TIME_NONE,
			.node = "n",
			.containers = &running,
			.containers_len = 1,
		};
		world->services[i] = (struct hf_service_seen){
			.name = name, .uid = "s", .resource_version = "1", .owned = true};
	}
	world->seen = (struct hf_observed){.pods = world->pods,
					   .pods_len = (size_t)ranks,
					   .services = world->services,
					   .services_len = (size_t)ranks};
}

static void step(struct world *world, hf_time now, struct hf_arena *arena, struct hf_plan *ret_plan)
{
	struct hf_error err;

	if (hf_job_step(&world->view, &world->seen, now, arena, ret_plan, &err) != 0) {
		fprintf(stderr, "step_bench: %s\n", err.text);
		exit(1);
	}
}

static void measure(const char *name, struct world *world, int steps)
{
	struct hf_arena *arena = hf_arena_create(ARENA_BYTES);
	double start = cpu_seconds(), spent;
	struct hf_plan plan;
	size_t bytes = 0;

	for (int i = 0; i < steps; i++) {
		hf_arena_reset(arena);
		step(world, START + HF_MINUTE, arena, &plan);
		bytes = hf_arena_used(arena);
	}
	spent = cpu_seconds() - start;
	printf("step %-7s ranks=%zu steps=%d cpu_us_per_step=%.1f steps_per_second=%.0f bytes=%zu "
	       "actions=%zu\n",
	       name, world->seen.pods_len, steps, spent / steps * 1e6, steps / spent, bytes,
	       hf_plan_actions(&plan));
	hf_arena_destroy(arena);
}

static size_t bytes_of(const struct hf_json *json)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)64 << 20);

	hf_json_write(json, HF_JSON_COMPACT, &text);
	return text.len;
}

/* As it is written, all of it and the part that is ours. */
static void weigh(const char *when, const struct world *world)
{
	HF_AUTO_JSON status = hf_status_write(&world->view.status, &hf_framework_pytorch, NULL);

	printf(" %s=%zu %s_recovery=%zu", when, bytes_of(status), when,
	       bytes_of(hf_json_get(status, "recovery")));
}

/* One rank fails, is made anew, and all run again. */
static void weigh_all(struct world *world, int ranks, struct hf_container_seen *ended,
		      struct hf_arena *arena)
{
	struct hf_pod *pod = &world->pods[ranks / 2], running = *pod;
	struct hf_plan plan;

	printf("status ranks=%d", ranks);
	weigh("rest", world);
	pod->phase = HF_POD_FAILED;
	pod->containers = ended;
	step(world, START + HF_MINUTE, arena, &plan);
	world->view.status = plan.status;
	*pod = running;
	pod->attempt = pod->incident = 1;
	for (int i = 1; i < 8; i++) {
		step(world, START + HF_MINUTE + i * HF_SECOND, arena, &plan);
		world->view.status = plan.status;
	}
	weigh("restarted", world);
	printf("\n");
}

int main(int argc, char **argv)
{
	int ranks = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1000;
	int steps = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1000;
	const char *only = argc > 3 ? argv[3] : "";
	struct hf_arena *arena = hf_arena_create(ARENA_BYTES);
	struct hf_container_seen ended = {.name = "pytorch",
					  .phase = HF_CONTAINER_TERMINATED,
					  .exit_code = 137,
					  .finished_at = START + 30 * HF_SECOND,
					  .started_at = START};
	struct world world;
	struct hf_plan plan;

	if (ranks < 2 || ranks > HF_RANKS_MAX || steps < 1) {
		fprintf(stderr, "usage: step_bench RANKS STEPS [quiet|failed]\n");
		return 2;
	}
	struct hf_doc *doc = make_job(ranks);
	hf_job_read(doc, &hf_framework_pytorch, NULL, arena, NULL, &world.view);
	make_pods(&world, ranks, arena);
	/* Until the job is settled in Running: what one step writes the next one reads. */
	for (int i = 0; i < 8; i++) {
		step(&world, START + i * HF_SECOND, arena, &plan);
		world.view.status = plan.status;
	}
	if (strcmp(only, "status") == 0) {
		weigh_all(&world, ranks, &ended, arena);
		hf_doc_unref(doc);
		hf_arena_destroy(arena);
		return 0;
	}
	if (strcmp(only, "failed") != 0)
		measure("quiet", &world, steps);
	world.pods[ranks / 2].phase = HF_POD_FAILED;
	world.pods[ranks / 2].containers = &ended;
	if (strcmp(only, "quiet") != 0)
		measure("failed", &world, steps);
	hf_doc_unref(doc);
	hf_arena_destroy(arena);
	return 0;
}
