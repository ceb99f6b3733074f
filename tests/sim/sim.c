/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/sim.h"

#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WALL_START (1700000000 * HF_SECOND)

void sim_on_reset(void *arg)
{
	sim_fail(arg, "engine", "changes were undone");
}

bool sim_chance(struct sim *sim, unsigned permille)
{
	return hf_rng_below(&sim->rng, 1000) < permille;
}

hf_time sim_span(struct sim *sim, hf_time max)
{
	return (hf_time)hf_rng_below(&sim->rng, (uint64_t)max + 1);
}

void sim_fail(struct sim *sim, const char *invariant, const char *fmt, ...)
{
	char text[768];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sim_tell(sim, "BROKEN: %s: %s", invariant, text);
	if (!sim->failed)
		snprintf(sim->failure, sizeof(sim->failure), "%s: %s", invariant, text);
	sim->failed = true;
	hf_loop_stop(sim->loop);
}

int sim_apply(struct sim *sim, const struct hf_request *request)
{
	HF_AUTO_RESULT result = {0};

	hf_local_apply(sim->local, request, &result);
	if (result.code != 0)
		sim_tell(sim, "  (not done: %s)", result.err.text);
	return result.code;
}

int sim_patch(struct sim *sim, const struct hf_resource *resource, const char *ns, const char *name,
	      const char *subresource, const char *text)
{
	HF_AUTO_DOC body = hf_doc_from_text(text, strlen(text));
	const struct hf_request request = {.verb = HF_VERB_PATCH,
					   .resource = resource,
					   .ns = ns,
					   .name = name,
					   .subresource = subresource,
					   .body = body,
					   .patch_type = HF_PATCH_MERGE};

	return sim_apply(sim, &request);
}

/* --- the operator's lives ------------------------------------------------------------------ */

static void on_problem(void *arg, const char *key, int code, const char *message)
{
	struct sim *sim = arg;

	if (strchr(key, '/') == NULL)
		sim_tell(sim, "operator: cache of %s: %s: %s", key, hf_code_name(code), message);
}

static void on_passed(void *arg, const struct hf_operator_pass *pass)
{
	struct sim *sim = arg;

	if (pass->code != 0)
		sim_tell(sim, "operator: pass over %s: %s", hf_doc_name(pass->job), pass->message);
	else if (sim->story.aloud && pass->plan != NULL)
		sim_tell(sim, "operator: %s %s", hf_doc_name(pass->job),
			 hf_str_or(pass->plan->summary, "has nothing to say"));
}

static void be_born(void *arg)
{
	struct sim *sim = arg;
	struct hf_local_faults faults;
	struct hf_operator_options options = {
		.loop = sim->loop,
		.frameworks = hf_frameworks,
		.seed = hf_rng_next(&sim->rng),
		.passed = on_passed,
		.problem = on_problem,
		.arg = sim,
	};
	struct hf_error err;

	sim_faults_init(sim, &faults);
	sim->client = hf_local_client_create(sim->local, &faults);
	if (sim->narrow)
		sim->client = sim_narrow_create(sim->client);
	options.store = sim->client;
	sim_tell(sim, "operator: starts");
	if (hf_operator_create(&options, &sim->op, &err) != 0) {
		sim_fail(sim, "start", "%s", err.text);
		return;
	}
	hf_operator_start(sim->op);
}

static void die(struct sim *sim)
{
	sim->op = hf_operator_destroy(sim->op);
	sim->client = hf_store_destroy(sim->client);
	sim->stopping = sim->stopped = false;
}

static void crash(void *arg)
{
	struct sim *sim = arg;

	if (sim->op == NULL)
		return;
	sim_tell(sim, "operator: DIES");
	sim->crashes++;
	die(sim);
	hf_timer_arm(sim->birth_timer, sim_span(sim, 10 * HF_SECOND));
}

static void on_stopped(void *arg)
{
	struct sim *sim = arg;

	sim_tell(sim, "operator: has stopped");
	sim->stopped = true;
	sim_crash_in(sim, sim_span(sim, HF_SECOND));
}

static void stop(void *arg)
{
	struct sim *sim = arg;

	if (sim->op == NULL || sim->stopping)
		return;
	sim_tell(sim, "operator: is told to stop");
	sim->stopping = true;
	hf_operator_stop(sim->op, on_stopped, sim);
}

void sim_stop_soon(struct sim *sim)
{
	hf_timer_arm(sim->stop_timer, sim_span(sim, HF_SECOND));
}

void sim_crash_in(struct sim *sim, hf_time after)
{
	if (!hf_timer_armed(sim->crash_timer))
		hf_timer_arm(sim->crash_timer, after);
}

/* --- one seed ------------------------------------------------------------------------------ */

static void random_bytes(void *arg, void *bytes, size_t len)
{
	struct sim *sim = arg;
	unsigned char *at = bytes;

	for (size_t i = 0; i < len; i++)
		at[i] = (unsigned char)hf_rng_next(&sim->rng);
}

/* A third of the seeds has none of a trouble, a third little, a third much. */
static unsigned trouble(struct sim *sim, unsigned little, unsigned much)
{
	const unsigned levels[] = {0, little, much};

	return levels[hf_rng_below(&sim->rng, HF_ARRAY_LEN(levels))];
}

static void draw_mood(struct sim *sim)
{
	struct sim_mood *mood = &sim->mood;

	mood->refuse_permille = trouble(sim, 20, 200);
	mood->lose_permille = trouble(sim, 20, 100);
	mood->late_permille = trouble(sim, 100, 500);
	mood->crash_permille = trouble(sim, 10, 60);
	mood->watch_end_permille = trouble(sim, 5, 120);
	mood->watch_late_permille = trouble(sim, 50, 300);
	mood->watch_twice_permille = trouble(sim, 20, 200);
	mood->people_per_hour = 20 + trouble(sim, 100, 400);
	mood->clock_permille = trouble(sim, 0, 50);
	mood->fail_percent = trouble(sim, 20, 60);
	mood->run_max = HF_SECOND * (hf_time)(1 + hf_rng_below(&sim->rng, 120));
	mood->start_max = HF_MS * (hf_time)(1 + hf_rng_below(&sim->rng, 5000));
}

static bool run_for(struct sim *sim, hf_time span)
{
	hf_loop_run_until(sim->loop, hf_loop_mono(sim->loop) + span);
	return !sim->failed;
}

static void live(struct sim *sim)
{
	if (!run_for(sim, SIM_TROUBLE))
		return;
	sim_tell(sim, "---- calm ----");
	sim->calm = true;
	if (!sim->stopping)
		hf_timer_disarm(sim->crash_timer);
	hf_timer_disarm(sim->stop_timer);
	sim_people_calm(sim);
	if (!run_for(sim, SIM_CALM))
		return;
	sim_tell(sim, "---- quiet ----");
	sim->quiet = true;
	if (run_for(sim, SIM_QUIET))
		sim_check_end(sim);
}

static void world_begin(struct sim *sim)
{
	struct hf_local_options options = {.random = random_bytes, .random_arg = sim};
	struct hf_error err;
	int rc;

	sim->loop = hf_loop_create_virtual(WALL_START);
	rc = hf_local_create(sim->loop, &options, &sim->local, &err);
	hf_assert(rc == 0);
	sim->gc = hf_gc_create(sim->local, NULL);
	sim->crash_timer = hf_timer_create(sim->loop, crash, sim);
	sim->birth_timer = hf_timer_create(sim->loop, be_born, sim);
	sim->stop_timer = hf_timer_create(sim->loop, stop, sim);
	sim_checks_init(sim);
	sim_kubelet_init(sim);
	sim_people_init(sim);
	hf_timer_arm(sim->birth_timer, 0);
}

static void world_end(struct sim *sim)
{
	die(sim);
	sim_people_release(sim);
	sim_kubelet_release(sim);
	sim_checks_release(sim);
	hf_timer_destroy(sim->crash_timer);
	hf_timer_destroy(sim->birth_timer);
	hf_timer_destroy(sim->stop_timer);
	hf_gc_destroy(sim->gc);
	hf_local_destroy(sim->local);
	hf_loop_destroy(sim->loop);
}

bool sim_run(const struct sim_options *options, struct sim_summary *ret_summary)
{
	struct sim *sim = hf_xcalloc(1, sizeof(*sim));
	bool ok;

	sim->seed = options->seed;
	sim->narrow = options->narrow;
	sim->story.aloud = options->aloud;
	hf_rng_init(&sim->rng, options->seed);
	draw_mood(sim);
	world_begin(sim);
	live(sim);
	ok = !sim->failed;
	if (!ok) {
		if (!options->aloud)
			sim_story_print(sim);
		printf("seed %llu: %s\n", (unsigned long long)sim->seed, sim->failure);
	}
	ret_summary->crashes += sim->crashes;
	ret_summary->requests += sim->requests;
	ret_summary->checked += sim->checks.checked;
	world_end(sim);
	sim_story_release(sim);
	free(sim);
	return ok;
}
