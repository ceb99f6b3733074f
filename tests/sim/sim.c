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

/* --- the operators' lives ------------------------------------------------------------------ */

static void on_problem(void *arg, const char *key, int code, const char *message)
{
	struct sim_life *life = arg;

	if (strchr(key, '/') == NULL)
		sim_tell(life->sim, "%s: cache of %s: %s: %s", life->name, key, hf_code_name(code),
			 message);
}

static void on_passed(void *arg, const struct hf_operator_pass *pass)
{
	struct sim_life *life = arg;
	struct sim *sim = life->sim;

	if (pass->code != 0)
		sim_tell(sim, "%s: pass over %s: %s", life->name, hf_doc_name(pass->job),
			 pass->message);
	else if (sim->story.aloud && pass->plan != NULL)
		sim_tell(sim, "%s: %s %s", life->name, hf_doc_name(pass->job),
			 hf_str_or(pass->plan->summary, "has nothing to say"));
}

struct hf_operator *sim_acting(const struct sim_life *life)
{
	return life->manager != NULL ? hf_manager_operator(life->manager) : life->op;
}

static void on_state(void *arg, enum hf_manager_state state, const char *why)
{
	struct sim_life *life = arg;

	sim_tell(life->sim, "%s: %s %s", life->name, hf_manager_state_name(state), why);
	life->sim->leaders += state == HF_MANAGER_LEADING;
}

static int begin_manager(struct sim_life *life, const struct hf_operator_options *op,
			 struct hf_error *err)
{
	const struct hf_manager_options options = {
		.op = *op,
		.elect = true,
		.lease_ns = "default",
		.lease_name = SIM_LEASE,
		.identity = life->identity,
		.changed = on_state,
		.arg = life,
	};
	int rc;

	snprintf(life->identity, sizeof(life->identity), "%s-%08x", life->name,
		 (unsigned)hf_rng_next(&life->sim->rng));
	rc = hf_manager_create(&options, &life->manager, err);
	if (rc != 0)
		return rc;
	hf_manager_start(life->manager);
	if (!life->sim->calm)
		hf_timer_arm(life->stop_timer, sim_span(life->sim, SIM_TROUBLE));
	return 0;
}

static void be_born(void *arg)
{
	struct sim_life *life = arg;
	struct sim *sim = life->sim;
	struct hf_local_faults faults;
	struct hf_operator_options options = {
		.loop = sim->loop,
		.frameworks = hf_frameworks,
		.seed = hf_rng_next(&sim->rng),
		.passed = on_passed,
		.problem = on_problem,
		.arg = life,
	};
	struct hf_error err;
	int rc;

	sim_faults_init(life, &faults);
	life->client = hf_local_client_create(sim->local, &faults);
	if (sim->narrow)
		life->client = sim_narrow_create(life->client);
	options.store = life->client;
	sim_tell(sim, "%s: starts", life->name);
	rc = sim->n_lives > 1 ? begin_manager(life, &options, &err)
			      : hf_operator_create(&options, &life->op, &err);
	if (rc != 0)
		sim_fail(sim, "start", "%s", err.text);
	else if (life->op != NULL)
		hf_operator_start(life->op);
}

static void die(struct sim_life *life)
{
	life->op = hf_operator_destroy(life->op);
	life->manager = hf_manager_destroy(life->manager);
	life->client = hf_store_destroy(life->client);
	life->stopping = life->stopped = false;
}

static void crash(void *arg)
{
	struct sim_life *life = arg;
	struct sim *sim = life->sim;

	if (life->client == NULL)
		return;
	sim_tell(sim, "%s: DIES", life->name);
	sim->crashes++;
	die(life);
	hf_timer_arm(life->birth_timer, sim_span(sim, 10 * HF_SECOND));
}

static void on_stopped(void *arg)
{
	struct sim_life *life = arg;

	sim_tell(life->sim, "%s: has stopped", life->name);
	life->stopped = true;
	sim_crash_in(life, sim_span(life->sim, HF_SECOND));
}

static void stop(void *arg)
{
	struct sim_life *life = arg;

	if (life->manager == NULL || life->stopping)
		return;
	sim_tell(life->sim, "%s: is told to stop", life->name);
	life->stopping = true;
	hf_manager_stop(life->manager, on_stopped, life);
}

void sim_crash_in(struct sim_life *life, hf_time after)
{
	if (!hf_timer_armed(life->crash_timer))
		hf_timer_arm(life->crash_timer, after);
}

static void lives_begin(struct sim *sim)
{
	static const char *const names[SIM_LIVES_MAX] = {"operator", "other"};

	/* Of every four worlds one has two, who elect a leader. */
	sim->n_lives = sim->seed % 4 == 3 ? 2 : 1;
	for (size_t i = 0; i < sim->n_lives; i++) {
		struct sim_life *life = &sim->lives[i];

		life->sim = sim;
		life->name = names[i];
		life->crash_timer = hf_timer_create(sim->loop, crash, life);
		life->birth_timer = hf_timer_create(sim->loop, be_born, life);
		life->stop_timer = hf_timer_create(sim->loop, stop, life);
		hf_timer_arm(life->birth_timer, 0);
	}
}

static void lives_calm(struct sim *sim)
{
	for (size_t i = 0; i < sim->n_lives; i++) {
		struct sim_life *life = &sim->lives[i];

		if (!life->stopping)
			hf_timer_disarm(life->crash_timer);
		hf_timer_disarm(life->stop_timer);
	}
}

static void lives_end(struct sim *sim)
{
	for (size_t i = 0; i < sim->n_lives; i++) {
		struct sim_life *life = &sim->lives[i];

		die(life);
		hf_timer_destroy(life->crash_timer);
		hf_timer_destroy(life->birth_timer);
		hf_timer_destroy(life->stop_timer);
	}
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
	lives_calm(sim);
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
	sim_checks_init(sim);
	sim_kubelet_init(sim);
	sim_people_init(sim);
	lives_begin(sim);
}

static void world_end(struct sim *sim)
{
	lives_end(sim);
	sim_people_release(sim);
	sim_kubelet_release(sim);
	sim_checks_release(sim);
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
	ret_summary->leaders += sim->leaders;
	ret_summary->requests += sim->requests;
	ret_summary->checked += sim->checks.checked;
	world_end(sim);
	sim_story_release(sim);
	free(sim);
	return ok;
}
