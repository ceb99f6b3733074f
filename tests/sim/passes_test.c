/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/str.h"
#include "framework/framework.h"
#include "harness/test.h"
#include "memstore/memstore.h"
#include "operator/operator.h"

#include <stdio.h>
#include <string.h>

/*
 * How many passes a job takes from its creation until it has succeeded, and how many of them change
 * nothing. The operator works on the in-memory store. A scripted scheduler and kubelet write to each pod
 * what real ones write: PodScheduled, the binding, startTime with waiting containers,
 * PodReadyToStartContainers, running, ready, terminated, and phase Succeeded.
 */

#define RANKS_MAX 64
#define TEXT_MAX 2048
#define START (1700000000 * HF_SECOND)
#define NODE "n1"

/* Times of a pod, counted from its creation. */
#define AT_BIND (30 * HF_MS)
#define AT_SYNC (80 * HF_MS)
#define AT_SANDBOX (600 * HF_MS)
#define AT_RUN (1500 * HF_MS)
#define AT_READY (1600 * HF_MS)
#define AT_PROBE (3500 * HF_MS) /* a write that changes only a condition's probe time */
#define AT_EXIT (60 * HF_SECOND)
#define AT_OVER (60 * HF_SECOND + 300 * HF_MS)

struct pod {
	struct world *world;
	struct hf_timer *timer;
	char name[64];
	int stage;
};

struct world {
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	struct hf_operator *op;
	struct hf_store *client;
	struct hf_memstore_observer observer;
	struct pod pods[RANKS_MAX];
	int n_pods;
	unsigned passes, idle; /* idle: nothing was written or created */
	bool succeeded;
};

/* --- scheduler and kubelet -------------------------------------------------------------------- */

static void ignore_reply(void *arg, const struct hf_reply *reply)
{
	assert_int_equal(reply->code, 0);
}

static void patch_pod(const struct pod *pod, const char *subresource, const char *text)
{
	HF_AUTO_DOC body = hf_doc_from_text(text, strlen(text));
	const struct hf_request request = {.verb = hf_streq(subresource, "binding") ? HF_VERB_CREATE
										    : HF_VERB_PATCH,
					   .resource = &hf_pods,
					   .ns = "default",
					   .name = pod->name,
					   .subresource = subresource,
					   .patch_type = HF_PATCH_MERGE,
					   .body = body};

	(void)hf_store_request(hf_memstore_store(pod->world->memstore), &request, ignore_reply,
			       NULL);
}

static void write_status(const struct pod *pod, const char *phase, const char *state, bool ready,
			 const char *probed)
{
	char text[TEXT_MAX], now[HF_TIME_TEXT_MAX];

	hf_time_format(START + AT_SYNC, now);
	snprintf(text, sizeof(text),
		 "{\"status\":{\"phase\":\"%s\",\"startTime\":\"%s\",\"conditions\":["
		 "{\"type\":\"PodReadyToStartContainers\",\"status\":\"%s\"},"
		 "{\"type\":\"Initialized\",\"status\":\"True\"},"
		 "{\"type\":\"Ready\",\"status\":\"%s\",\"lastProbeTime\":%s},"
		 "{\"type\":\"ContainersReady\",\"status\":\"%s\"},"
		 "{\"type\":\"PodScheduled\",\"status\":\"True\"}],"
		 "\"containerStatuses\":[{\"name\":\"pytorch\",\"ready\":%s,\"restartCount\":0,"
		 "\"state\":{%s}}]}}",
		 phase, now, pod->stage >= 3 ? "True" : "False", ready ? "True" : "False", probed,
		 ready ? "True" : "False", ready ? "true" : "false", state);
	patch_pod(pod, "status", text);
}

#define WAITING "\"waiting\":{\"reason\":\"ContainerCreating\"}"
#define RUNNING "\"running\":{\"startedAt\":\"2023-11-14T22:13:22Z\"}"
#define ENDED                                                                                      \
	"\"terminated\":{\"exitCode\":0,\"reason\":\"Completed\",\"finishedAt\":"                  \
	"\"2023-11-14T22:14:20Z\"}"

static void play_stage(void *arg)
{
	static const hf_time at[] = {AT_BIND,  AT_SYNC,  AT_SANDBOX, AT_RUN,
				     AT_READY, AT_PROBE, AT_EXIT,    AT_OVER};
	struct pod *pod = arg;
	int stage = pod->stage++;

	switch (stage) {
	case 0:
		patch_pod(pod, "binding",
			  "{\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"" NODE
			  "\"}}");
		break;
	case 1:
	case 2: write_status(pod, "Pending", WAITING, false, "null"); break;
	case 3:
	case 4: write_status(pod, "Running", RUNNING, stage == 4, "null"); break;
	case 5: write_status(pod, "Running", RUNNING, true, "\"2023-11-14T22:13:24Z\""); break;
	case 6: write_status(pod, "Running", ENDED, false, "null"); break;
	default: write_status(pod, "Succeeded", ENDED, false, "null"); return;
	}
	hf_timer_arm(pod->timer, at[pod->stage] - at[stage]);
}

static void watch_store(void *arg, const struct hf_memstore_change *change)
{
	struct world *world = arg;
	struct pod *pod;

	if (change->resource != &hf_pods || change->before != NULL)
		return;
	assert_true(world->n_pods < RANKS_MAX);
	pod = &world->pods[world->n_pods];
	pod->world = world;
	snprintf(pod->name, sizeof(pod->name), "%s", hf_doc_name(change->after));
	pod->timer = hf_timer_create(world->loop, play_stage, pod);
	/* Ranks differ by some 7 ms. */
	hf_timer_arm(pod->timer, AT_BIND + world->n_pods++ * 7 * HF_MS);
}

/* The store in memory undoes nothing. */
static void fail_reset(void *arg)
{
	fail_msg("the store was reset");
}

/* --- the operator ------------------------------------------------------------------------------ */

static void count_pass(void *arg, const struct hf_operator_pass *pass)
{
	struct world *world = arg;
	const struct hf_plan *plan = pass->plan;

	assert_int_equal(pass->code, 0);
	assert_non_null(plan);
	world->passes++;
	world->idle += plan->stages_len == 0 && !plan->status_changed;
	for (size_t i = 0; i < plan->status.conditions_len; i++)
		world->succeeded |= hf_streq(plan->status.conditions[i].type, "Succeeded") &&
				    plan->status.conditions[i].status;
}

static void create_objects(struct world *world, int ranks)
{
	static const char node[] =
		"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"" NODE "\"},"
		"\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}";
	char text[TEXT_MAX];
	const char *const texts[] = {node, text};
	const struct hf_resource *const resources[] = {
		&hf_nodes, hf_resource_by_plural("kubeflow.org", "pytorchjobs")};

	snprintf(
		text, sizeof(text),
		"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":"
		"\"job\",\"namespace\":\"default\"},\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{"
		"\"replicas\":%d,\"template\":{\"spec\":{\"containers\":[{\"name\":\"pytorch\","
		"\"image\":\"x\"}]}}}}}}",
		ranks);
	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		HF_AUTO_DOC body = hf_doc_from_text(texts[i], strlen(texts[i]));
		const struct hf_request request = {.verb = HF_VERB_CREATE,
						   .resource = resources[i],
						   .ns = i == 0 ? NULL : "default",
						   .body = body};

		(void)hf_store_request(hf_memstore_store(world->memstore), &request, ignore_reply,
				       NULL);
	}
}

static void run_job(int ranks, struct world *world)
{
	static const struct hf_framework *const frameworks[] = {&hf_framework_pytorch, NULL};
	const struct hf_memstore_options memory = {.data_dir = NULL};
	struct hf_operator_options options = {.frameworks = frameworks,
					      .seed = 1,
					      .watch_nodes = true,
					      .passed = count_pass,
					      .arg = world};
	struct hf_error err;

	*world = (struct world){.loop = hf_loop_create_virtual(START)};
	assert_ok(hf_memstore_create(world->loop, &memory, &world->memstore, &err), &err);
	world->observer = (struct hf_memstore_observer){
		.changed = watch_store, .reset = fail_reset, .arg = world};
	hf_memstore_observe(world->memstore, &world->observer);
	world->client = hf_memstore_client_create(world->memstore, NULL);
	options.loop = world->loop;
	options.store = world->client;
	assert_ok(hf_operator_create(&options, &world->op, &err), &err);
	hf_operator_start(world->op);
	hf_loop_run_until(world->loop, hf_loop_mono(world->loop) + HF_SECOND);
	create_objects(world, ranks);
	hf_loop_run_until(world->loop, hf_loop_mono(world->loop) + 2 * HF_MINUTE);
	hf_operator_destroy(world->op);
	hf_store_destroy(world->client);
	hf_memstore_unobserve(world->memstore, &world->observer);
	for (int i = 0; i < world->n_pods; i++)
		hf_timer_destroy(world->pods[i].timer);
	hf_memstore_destroy(world->memstore);
	hf_loop_destroy(world->loop);
	assert_true(world->succeeded);
	assert_int_equal(world->n_pods, ranks);
	print_message("%d ranks: %u passes, %u of them without any change\n", ranks, world->passes,
		      world->idle);
}

static void test_a_job_of_2_ranks(void **state)
{
	struct world world;

	run_job(2, &world);
	/* 12 passes before the operator ignored changes that no step depends on. */
	assert_in_range(world.passes, 1, 10);
}

static void test_a_job_of_64_ranks(void **state)
{
	struct world world;

	run_job(64, &world);
	/* 167 passes before that, most of them while the ranks succeeded one after the other. */
	assert_in_range(world.passes, 1, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_job_of_2_ranks),
		cmocka_unit_test(test_a_job_of_64_ranks),
	};

	return cmocka_run_group_tests_name("passes", tests, NULL, NULL);
}
